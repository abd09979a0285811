// Compiled models from files and from bytes.
#include <mujoco/mujoco.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "physics/import/import_mjcf.h"

mjModel *sn_import_read(const char *path, char *why, int size) {
  static const char ending[] = ".mjb";
  const size_t n = strlen(path), m = strlen(ending);
  why[0] = '\0';
  if (n > m && strcmp(path + n - m, ending) == 0) return mj_loadModel(path, NULL);
  return mj_loadXML(path, NULL, why, size);
}

// The number that mj_saveModel writes first.
static bool is_compiled(const void *bytes, size_t size) {
  static const int32_t id = 54321;
  return size >= sizeof id && memcmp(bytes, &id, sizeof id) == 0;
}

mjModel *sn_import_read_bytes(const void *bytes, int size, const char *folder, char *why, int why_size) {
  why[0] = '\0';
  if (is_compiled(bytes, (size_t)size)) return mj_loadModelBuffer(bytes, size);
  char name[4096 + 32];  // of a file that nobody has, so that it hides none
  snprintf(name, sizeof name, "%s/.sinew-model-in-memory.xml", folder);
  mjVFS files;
  mj_defaultVFS(&files);
  mjModel *mj = NULL;
  if (mj_addBufferVFS(&files, name, bytes, size) == 0)
    mj = mj_loadXML(name, &files, why, why_size);
  else
    snprintf(why, (size_t)why_size, "Could not allocate memory for %d bytes", size);
  mj_deleteVFS(&files);
  return mj;
}
