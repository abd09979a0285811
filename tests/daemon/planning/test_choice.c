// Where a session plans by measurement (choice.c): a device is opened for a measurement, and for nothing else.
#include <dirent.h>
#include <unistd.h>

#include "daemon/config/config.h"
#include "daemon/planning/backends_private.h"
#include "tests/cuda/plugin_fixture.h"

// How often a backend was opened by its name (the linker's --wrap).
static int opened;
SnBackend *__real_sn_backend_open(const char *name, SnPool *pool, const SnBackendOptions *options, SnError *err);
SnBackend *__wrap_sn_backend_open(const char *name, SnPool *pool, const SnBackendOptions *options, SnError *err);
SnBackend *__wrap_sn_backend_open(const char *name, SnPool *pool, const SnBackendOptions *options, SnError *err) {
  ++opened;
  return __real_sn_backend_open(name, pool, options, err);
}

static void wake(void *context) { (void)context; }

// Names the one result in the cache; "" where there is none.
static void find_result(const char *cache, char path[300]) {
  DIR *d = opendir(cache);
  assert_non_null(d);
  path[0] = '\0';
  for (const struct dirent *e; (e = readdir(d));)
    if (strncmp(e->d_name, "contest-", 8) == 0) snprintf(path, 300, "%s/%s", cache, e->d_name);
  closedir(d);
}

// The first opening of a model measures. What is kept serves the next ones, without a device; what is damaged is
// measured anew.
static void devices_are_opened_to_measure(void **state) {
  (void)state;
  char cache[] = "/tmp/sinew-test-XXXXXX", library[100], path[300];
  SnLog log = {.fd = -1};
  SnConfig config;
  SnBackends b;
  SnError err = {0};
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  assert_non_null(mkdtemp(cache));
  snprintf(library, sizeof library, "%s/libsinew_cuda.so", cache);
  assert_int_equal(symlink(SN_TEST_LIBRARIES "/libsinew_emulator_double.so", library), 0);
  sn_config_default(&config);
  assert_int_equal(sn_config_set(&config, "backend", "auto", &err), SN_OK);
  assert_int_equal(sn_config_set(&config, "backend_folder", cache, &err), SN_OK);
  assert_int_equal(sn_config_set(&config, "cache", cache, &err), SN_OK);
  assert_int_equal(sn_config_set(&config, "threads", "1", &err), SN_OK);
  if (sn_backends_open(&b, &config, &log, wake, NULL, &err) != SN_OK) fail_msg("%s", err.text);
  assert_true(sn_backends_view(&b).automatic);
  assert_int_equal(opened, 1);  // that which plans

  SnSettings settings = x.task->settings;
  settings.planner = SN_PLANNER_ILQG;  // the CPU's in any case
  assert_false(sn_backends_wins(&b, "arm_reach", x.p, &settings));
  assert_int_equal(opened, 1);
  settings.planner = SN_PLANNER_SAMPLING;
  const bool wins = sn_backends_wins(&b, "arm_reach", x.p, &settings);
  assert_int_equal(opened, 2);
  find_result(cache, path);
  assert_true(path[0]);
  for (int again = 0; again < 3; ++again) assert_true(sn_backends_wins(&b, "arm_reach", x.p, &settings) == wins);
  assert_int_equal(opened, 2);
  assert_int_equal(truncate(path, 10), 0);
  sn_backends_wins(&b, "arm_reach", x.p, &settings);
  assert_int_equal(opened, 3);

  sn_backends_close(&b);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(unlink(library), 0);
  assert_int_equal(rmdir(cache), 0);
  scene_close(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(devices_are_opened_to_measure)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
