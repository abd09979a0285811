// The backends by their names.
#include "planner/backend/backend.h"

#include <pthread.h>

#include "planner/backend/backend_plugin.h"

// Those in libraries of their own. The first `LISTED` are for users, the others for checks.
enum { LISTED = 1 };
static const char *const library_names[] = {"cuda",         "cuda_double",         "emulator", "emulator_double",
                                            "emulator_fma", "emulator_fma_double", "fake_cuda"};
enum { LIBRARIES = sizeof library_names / sizeof library_names[0] };

SnBackendOptions sn_default_backend_options(void) { return (SnBackendOptions){0}; }

SnBackend *sn_backend_open(const char *name, SnPool *pool, const SnBackendOptions *options, SnError *err) {
  const SnBackendOptions none = sn_default_backend_options();
  if (strcmp(name, "cpu") == 0) return sn_backend_cpu(pool, err);
  for (int i = 0; i < LIBRARIES; ++i)
    if (strcmp(name, library_names[i]) == 0) return sn_backend_plugin(library_names[i], options ? options : &none, err);
  sn_fail(err, SN_ERR_NOT_FOUND, "there is no backend '%s'; known are cpu, cuda and cuda_double", name);
  return NULL;
}

static const char *found_names[LISTED + 2];
static pthread_once_t found_once = PTHREAD_ONCE_INIT;

static void find_names(void) {
  int n = 0;
  found_names[n++] = "cpu";
  for (int i = 0; i < LISTED; ++i)
    if (sn_backend_plugin_found(library_names[i])) found_names[n++] = library_names[i];
}

const char *const *sn_backend_names(void) {
  pthread_once(&found_once, find_names);
  return found_names;
}

void sn_backend_free(SnBackend *b) {
  if (b) b->destroy(b);
}
