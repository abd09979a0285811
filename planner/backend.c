#include "planner/backend.h"

const char *const *sn_backend_names(void) {
  static const char *const names[] = {"cpu", NULL};
  return names;
}

void sn_backend_free(SnBackend *b) {
  if (b) b->destroy(b);
}
