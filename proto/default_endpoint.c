#include "proto/default_endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool sn_runtime_folder(char *path, size_t size) {
  const char *runtime = getenv("XDG_RUNTIME_DIR");
  const int n = runtime && *runtime == '/' ? snprintf(path, size, "%s/sinew", runtime)
                                           : snprintf(path, size, "/tmp/sinew-%lu", (unsigned long)getuid());
  return n > 0 && (size_t)n < size;
}

bool sn_default_endpoint(char *address, size_t size) {
  char folder[4096];
  if (!sn_runtime_folder(folder, sizeof folder)) return false;
  const int n = snprintf(address, size, "ipc://%s/sinewd.sock", folder);
  return n > 0 && (size_t)n < size;
}
