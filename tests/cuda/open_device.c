// Opens a backend of a device by its name and says what it is.
//   open_device NAME FOLDER
// Ends with 0; 77 when there is no device ("skipped: ..."), 1 when anything else is wrong.
#include <stdio.h>
#include <string.h>

#include "planner/backend/backend.h"

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  SnError err = {0};
  SnPool *pool = sn_pool_create(1, &err);
  if (!pool) return 1;
  SnBackendOptions options = sn_default_backend_options();
  options.folder = argv[2];
  SnBackend *b = sn_backend_open(argv[1], pool, &options, &err);
  if (!b) {
    // A library that is not there, or does not load, is no missing device.
    const bool none = err.code == SN_ERR_NOT_FOUND && !strstr(err.text, "cannot be opened");
    printf("%s: %s\n", none ? "skipped: no device" : "failed", err.text);
    sn_pool_free(pool);
    return none ? 77 : 1;
  }
  char text[400];
  sn_backend_describe(b, text, sizeof text);
  printf("%s\n", text);
  sn_backend_free(b);
  sn_pool_free(pool);
  return 0;
}
