// Where the program sinew-import lies.
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/libsinew/model_private.h"
#include "physics/base/folders.h"

// Writes the folder of the file that this code is part of: libsinew.so, or the program where it is linked statically.
static bool find_own_folder(char folder[PATH_MAX]) {
  static const char here = 0;
  Dl_info info;
  if (!dladdr(&here, &info) || !info.dli_fname || !realpath(info.dli_fname, folder)) return false;
  *strrchr(folder, '/') = 0;
  return true;
}

bool api_find_importer(char *path, size_t size, SnError *err) {
  // from lib/ and from lib/TRIPLET/
  static const char *const place[] = {"sinew-import", "../bin/sinew-import", "../../bin/sinew-import"};
  char folder[PATH_MAX];
  if (sn_default_importer(path, size) && sn_is_program(path)) return true;
  const bool known = find_own_folder(folder);
  for (size_t i = 0; known && i < sizeof place / sizeof *place; ++i)
    if ((size_t)snprintf(path, size, "%s/%s", folder, place[i]) < size && sn_is_program(path)) return true;
  sn_fail(
      err, SN_ERR_NOT_FOUND,
      "sinew-import, which reads MJCF and .mjb, is neither beside the running program nor at %s, ../bin or ../../bin "
      "from there",
      known ? folder : "the place of libsinew");
  return false;
}
