#include "proto/default_endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int sn_endpoint_port(const char *rest) {
  const char *colon = strrchr(rest, ':');
  if (!colon || colon[1] < '0' || colon[1] > '9') return 0;
  char *end;
  const long port = strtol(colon + 1, &end, 10);
  return *end || port > 65535 ? 0 : (int)port;
}

const char *sn_endpoint_fault(const char *address) {
  static const char *const wanted = "expected ipc://PATH or tcp://HOST:PORT with a port from 1 to 65535";
  if (!strncmp(address, "ipc://", 6)) return address[6] ? NULL : wanted;
  if (strncmp(address, "tcp://", 6) != 0) return wanted;
  return address[6] != ':' && sn_endpoint_port(address + 6) > 0 ? NULL : wanted;
}
