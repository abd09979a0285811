// Runs a fuzz target over files and folders, without a fuzz engine: a corpus in CI, a crash by hand. A fuzz engine
// brings its own main and links the target alone.
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Returns the number of inputs run.
static int replay(const char *path) {
  DIR *folder = opendir(path);
  if (folder) {
    int n = 0;
    for (struct dirent *e; (e = readdir(folder));) {
      char child[4096];
      if (e->d_name[0] == '.') continue;
      snprintf(child, sizeof child, "%s/%s", path, e->d_name);
      n += replay(child);
    }
    closedir(folder);
    return n;
  }
  FILE *f = fopen(path, "rb");
  if (!f) {
    fprintf(stderr, "%s cannot be read\n", path);
    exit(1);
  }
  fseek(f, 0, SEEK_END);
  const long size = ftell(f);
  rewind(f);
  uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
  const bool ok = data && size >= 0 && fread(data, 1, (size_t)size, f) == (size_t)size;
  fclose(f);
  if (ok) LLVMFuzzerTestOneInput(data, (size_t)size);
  free(data);
  return ok;
}

int main(int argc, char **argv) {
  int n = 0;
  for (int i = 1; i < argc; ++i) n += replay(argv[i]);
  printf("%d inputs\n", n);
  return n > 0 ? 0 : 1;
}
