#include "tests/cuda/check_task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/oracle.h"

// Whether the processor runs what a library of that name is compiled to.
static bool processor_can(const char *name) {
#if defined(__x86_64__)
  return !strstr(name, "_fma") || __builtin_cpu_supports("fma");
#else
  (void)name;
  return true;
#endif
}

int check_backends_open(CheckBackends *b, const char *name, const char *folder, int threads) {
  SnError err = {0};
  SnBackendOptions options = sn_default_backend_options();
  memset(b, 0, sizeof *b);
  if (!processor_can(name)) {
    printf("skipped: %s is compiled to fused products, and this processor has none\n", name);
    return CHECK_SKIPPED;
  }
  options.folder = folder;
  options.block_threads = threads;
  if (!(b->pool = sn_pool_create(2, &err)) || !(b->cpu = sn_backend_cpu(b->pool, &err))) {
    fprintf(stderr, "%s\n", err.text);
    return 1;
  }
  if (!(b->other = sn_backend_open(name, b->pool, &options, &err))) {
    const bool cuda = strncmp(name, "cuda", 4) == 0 && err.code == SN_ERR_NOT_FOUND;
    printf(cuda ? "skipped: no CUDA device: %s\n" : "%s\n", err.text);
    return cuda ? CHECK_SKIPPED : 1;
  }
  sn_backend_describe(b->other, b->text, sizeof b->text);
  printf("%s\n", b->text);
  return 0;
}

void check_backends_close(CheckBackends *b) {
  sn_backend_free(b->other);
  sn_backend_free(b->cpu);
  sn_pool_free(b->pool);
}

void check_ended(bool ended, const SnBackend *b, const char *what) {
  char text[300] = "it has no room";
  if (ended) return;
  sn_backend_lost(b, text, sizeof text);
  fail_msg("%s: %s stopped: %s", what, sn_backend_name(b), text);
}

void *check_array(size_t n, size_t size) {
  void *x = calloc(n + 1, size);
  if (!x) abort();
  return x;
}

bool check_task_open(BenchTask *t, const char *name, int steps, SnError *err) {
  static char tasks[4096], models[4096], myosuite[5000];
  const char *folder = getenv("SINEW_SOURCE_DIR");
  if (!folder) folder = SN_TEST_SOURCE_DIR "/..";
  BenchTaskArgs c = bench_default_task_args();
  snprintf(tasks, sizeof tasks, "%s/planner/tasks", folder);
  snprintf(models, sizeof models, "%s/physics/models", folder);
  c.task = name;
  c.tasks = tasks;
  c.places.models[c.places.nmodels++] = models;
  if (sn_oracle_myosuite()) {
    snprintf(myosuite, sizeof myosuite, "myosuite=%s", sn_oracle_myosuite());
    c.places.models[c.places.nmodels++] = myosuite;
  }
  const SnCode code = bench_task_open(t, &c, steps, err);
  if (code != SN_OK && (code != SN_ERR_NOT_FOUND || !t->task)) {
    fprintf(stderr, "%s: %s\n", name, err->text);
    exit(1);
  }
  return code == SN_OK;
}
