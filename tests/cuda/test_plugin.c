// A backend in a library, from the program's side, on the emulator: what is refused and how, rollouts against those of
// the CPU, slices of time, memory, faults.
#include "tests/cuda/plugin_rig.h"

static const SnClock *monotonic(void) {
  static SnClock clock;
  clock = sn_clock_monotonic();
  return &clock;
}

// ---- opening ----

static void expect_refusal(const char *name, const char *folder, int device, SnCode code, const char *words) {
  SnError err = {0};
  SnBackendOptions options = sn_default_backend_options();
  options.folder = folder;
  options.device = device;
  SnBackend *b = sn_backend_open(name, NULL, &options, &err);
  if (b) fail_msg("'%s' was opened", name);
  if (!strstr(err.text, words)) fail_msg("%s: '%s' does not say '%s'", name, err.text, words);
  assert_int_equal(err.code, code);
}

static void refusals(void **state) {
  (void)state;
  expect_refusal("tpu", "", 0, SN_ERR_NOT_FOUND, "there is no backend 'tpu'; known are cpu, cuda");
  expect_refusal("../evil", "", 0, SN_ERR_NOT_FOUND, "there is no backend");
  expect_refusal("cuda", "/nowhere", 0, SN_ERR_NOT_FOUND, "'cuda': its library cannot be opened: /nowhere/libsinew_cuda.so");
  expect_refusal("cuda", SN_TEST_STRANGE_LIBRARIES, 0, SN_ERR_UNSUPPORTED, "is of version 1001 of the interface");
  expect_refusal("cuda_double", SN_TEST_STRANGE_LIBRARIES, 0, SN_ERR_FORMAT, "it has no sn_plugin_open");
  expect_refusal("emulator_double", SN_TEST_LIBRARIES, 7, SN_ERR_NOT_FOUND, "'emulator_double': ");
  const char *const *names = sn_backend_names();
  assert_string_equal(names[0], "cpu");
  assert_true(names == sn_backend_names());
  for (int i = 1; names[i]; ++i) assert_string_equal(names[i], "cuda");
}

static void description(void **state) {
  (void)state;
  char text[300];
  SnBackend *b = open_library("emulator_double", 0, NULL);
  b->describe(b, text, sizeof text);
  printf("%s\n", text);
  assert_non_null(strstr(text, "emulator"));
  assert_non_null(strstr(text, "double"));
  assert_string_equal(b->name, "emulator_double");
  assert_false(b->lost(b, text, sizeof text));
  SnBackendMemory memory;
  b->memory(b, &memory);
  assert_int_equal(memory.used, 0);
  assert_true(memory.budget > 0 && memory.budget < memory.total);
  sn_backend_free(b);
}

// ---- rollouts ----

// The same bits as the CPU: the same text in the same number type. Noise is of a seed, contacts as they are or from a
// distance in the steps themselves.
static void same_as_cpu(const char *name, int nstep) {
  Scene x;
  if (!scene_open(&x, name)) return;
  SnBackend *b = open_library("emulator_double", 0, NULL);
  const SnSoft soft = sn_soft_settings(&x.task->settings, NULL, true);
  for (int softened = 0; softened < 2; ++softened) {
    Rollouts cpu = rollouts_make(&x, nstep, 6), device = rollouts_make(&x, nstep, 6);
    rollouts_noisy(&cpu);
    rollouts_noisy(&device);
    if (softened) cpu.batch.start.soft = device.batch.start.soft = &soft;
    rollouts_run(&x, x.cpu, &cpu);
    rollouts_run(&x, b, &device);
    for (int i = 1; i < 6; ++i) assert_true(isfinite(cpu.batch.cost[i]) && cpu.batch.cost[i] != cpu.batch.cost[0]);
    rollouts_equal(&cpu, &device);
    assert_memory_equal(cpu.batch.warn, device.batch.warn, 6 * sizeof(int));
    // Another seed is other noise, the same on both; candidate 0 has none.
    const double first = device.batch.cost[0], second = device.batch.cost[1];
    cpu.noise.seed = device.noise.seed = 12;
    rollouts_run(&x, x.cpu, &cpu);
    rollouts_run(&x, b, &device);
    assert_true(device.batch.cost[0] == first && device.batch.cost[1] != second);
    rollouts_equal(&cpu, &device);
    rollouts_free(&cpu);
    rollouts_free(&device);
  }
  sn_backend_free(b);
  scene_close(&x);
}

static void arm_same_as_cpu(void **state) {
  (void)state;
  same_as_cpu("arm_reach", 100);
}

static void hand_same_as_cpu(void **state) {
  (void)state;
  same_as_cpu("hand_balls", 48);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(refusals), cmocka_unit_test(description),
                                     cmocka_unit_test(arm_same_as_cpu), cmocka_unit_test(hand_same_as_cpu)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
