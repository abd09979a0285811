// Backends of libsinew: the CPU, libraries, what is refused.
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "clients/libsinew/backend_private.h"
#include "tests/clients/libsinew/body_fixture.h"

static void test_cpu_says_its_threads(void **state) {
  (void)state;
  SinewError err;
  SinewBackend *b = test_cpu(3);
  assert_string_equal(sinew_backend_description(b), "cpu, double, 3 threads");
  sinew_backend_close(b);
  b = sinew_backend_open("cpu", NULL, &err);
  assert_non_null(b);
  assert_int_equal(err.status, SINEW_OK);
  cpu_set_t set;
  assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
  assert_int_equal(sn_pool_size(b->pool), CPU_COUNT(&set));
  sinew_backend_close(b);
}

// Threads are as many as processors that the process may use, not as the machine has.
static void test_threads_follow_affinity(void **state) {
  (void)state;
  cpu_set_t all, one;
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i)
    if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  SinewBackend *b = sinew_backend_open("cpu", NULL, NULL);
  assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
  assert_string_equal(sinew_backend_description(b), "cpu, double, 1 thread");
  sinew_backend_close(b);
}

static void test_libraries(void **state) {
  (void)state;
  SinewError err;
  SinewBackendOptions options = sinew_default_backend();
  const char *const *names = sinew_backend_names();
  assert_string_equal(names[0], "cpu");
  assert_ptr_equal(sinew_backend_names(), names);
  options.folder = SN_TEST_LIBRARY_DIR;
  SinewBackend *b = sinew_backend_open("emulator_double", &options, &err);
  if (!b) fail_msg("%s", err.text);
  assert_non_null(strstr(sinew_backend_description(b), "double"));
  sinew_backend_close(b);
  options.block_threads = 48;
  assert_null(sinew_backend_open("emulator_double", &options, &err));
  test_refused(err.status, &err, SINEW_ERR_ARGUMENT, "block threads: 48");
  options.block_threads = 8;
  sinew_backend_close(b = sinew_backend_open("emulator_double", &options, &err));
  if (!b) fail_msg("%s", err.text);
  options = sinew_default_backend();
  options.block_threads = -1;
  assert_null(sinew_backend_open("cpu", &options, &err));
  test_refused(err.status, &err, SINEW_ERR_ARGUMENT, "block_threads: -1");
  options.folder = "/nowhere";
  options.block_threads = 0;
  assert_null(sinew_backend_open("emulator_double", &options, &err));
  test_refused(err.status, &err, SINEW_ERR_NOT_FOUND, "/nowhere/libsinew_emulator_double.so");
  assert_null(sinew_backend_open("abacus", NULL, &err));
  test_refused(err.status, &err, SINEW_ERR_NOT_FOUND, "there is no backend 'abacus'");
}

static void test_misuse(void **state) {
  (void)state;
  static const struct {
    int threads, device;
    double memory;
    size_t size;
    const char *word;
  } wrong[] = {{-1, 0, 0, sizeof(SinewBackendOptions), "threads: -1"},
               {257, 0, 0, sizeof(SinewBackendOptions), "threads: 257, allowed is 0 to 256"},
               {0, -1, 0, sizeof(SinewBackendOptions), "device: -1"},
               {0, 0, -1, sizeof(SinewBackendOptions), "memory: -1"},
               {0, 0, (double)NAN, sizeof(SinewBackendOptions), "memory"},
               {0, 0, 0, 0, "SinewBackendOptions"}};
  SinewError err;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    const SinewBackendOptions options = {
        .size = wrong[i].size, .threads = wrong[i].threads, .device = wrong[i].device, .memory = wrong[i].memory};
    assert_null(sinew_backend_open("cpu", &options, &err));
    test_refused(err.status, &err, SINEW_ERR_ARGUMENT, wrong[i].word);
  }
  assert_null(sinew_backend_open(NULL, NULL, &err));
  test_refused(err.status, &err, SINEW_ERR_ARGUMENT, "name is NULL");
  assert_null(sinew_backend_open(NULL, NULL, NULL));
  assert_string_equal(sinew_backend_description(NULL), "");
  sinew_backend_close(NULL);
}

// What a child of fork() finds: 0, or the number of the first thing that is not as it should be.
static int in_child(SinewBatch *batch, SinewBackend *backend, const SinewModel *model) {
  SinewRollouts r = sinew_default_rollouts();
  SinewError err;
  alarm(20);  // what waits for threads that are not there ends
  r.count = 2;
  r.steps = 3;
  r.one_state = true;
  if (sinew_batch_rollout(batch, &r, &err) != SINEW_ERR_STATE || !strstr(err.text, "fork()")) return 1;
  SinewData *data = sinew_data_create(model, &err);
  if (!data || sinew_step(data, 3, &err) != SINEW_OK) return 2;
  sinew_data_free(data);
  sinew_batch_free(batch);
  sinew_backend_close(backend);
  return 0;
}

// Threads do not come along in a fork: a child is told so, and neither waits for them nor at the end.
static void test_fork(void **state) {
  (void)state;
  SinewModel *model = test_model_of_text(body_xml);
  SinewBackend *backend = test_cpu(2);
  SinewBatchDef def = sinew_default_batch();
  SinewError err;
  def.model = model;
  def.backend = backend;
  def.capacity = 2;
  def.steps = 3;
  SinewBatch *batch = sinew_batch_create(&def, &err);
  assert_non_null(batch);
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) _exit(in_child(batch, backend, model));
  int how = -1;
  assert_true(child > 0 && waitpid(child, &how, 0) == child);
  assert_true(WIFEXITED(how));
  assert_int_equal(WEXITSTATUS(how), 0);
  sinew_batch_free(batch);
  sinew_backend_close(backend);
  sinew_model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_cpu_says_its_threads),
                                     cmocka_unit_test(test_threads_follow_affinity), cmocka_unit_test(test_libraries),
                                     cmocka_unit_test(test_misuse), cmocka_unit_test(test_fork)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
