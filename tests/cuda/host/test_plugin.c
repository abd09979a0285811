// A backend in a library, from the program's side, on the emulator: what is refused and how, memory, stages.
#include "cuda/kernels/kernels.h"
#include "tests/cuda/host/device_behind.h"
#include "tests/cuda/host/job_fixture.h"

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
  char version[80];
  snprintf(version, sizeof version, "is of version %d of the interface", SN_PLUGIN_VERSION + 1000);
  expect_refusal("tpu", "", 0, SN_ERR_NOT_FOUND, "there is no backend 'tpu'; known are cpu, cuda");
  expect_refusal("../evil", "", 0, SN_ERR_NOT_FOUND, "there is no backend");
  expect_refusal("cuda", "/nowhere", 0, SN_ERR_NOT_FOUND,
                 "'cuda': its library cannot be opened: /nowhere/libsinew_cuda.so");
  expect_refusal("cuda", SN_TEST_STRANGE_LIBRARIES, 0, SN_ERR_UNSUPPORTED, version);
  expect_refusal("cuda_double", SN_TEST_STRANGE_LIBRARIES, 0, SN_ERR_FORMAT, "it has no sn_plugin");
  expect_refusal("emulator_double", SN_TEST_LIBRARIES, 7, SN_ERR_NOT_FOUND, "'emulator_double': ");
  const char *const *names = sn_backend_names();
  assert_string_equal(names[0], "cpu");
  assert_true(names == sn_backend_names());
  for (int i = 1; names[i]; ++i) assert_string_equal(names[i], "cuda");
}

// A world has a number of threads that there are kernels for.
static void block_options(void **state) {
  (void)state;
  SnError err = {0};
  SnBackendOptions options = sn_default_backend_options();
  options.folder = SN_TEST_LIBRARIES;
  static const int wrong[] = {33, 12, -8, -1, 2, 4, 16, 64, 256, 288}, right[] = {0, 1, 8, 32};
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; ++k) {
    char words[80];
    options.block_threads = wrong[k];
    assert_null(sn_backend_open("emulator_double", NULL, &options, &err));
    snprintf(words, sizeof words, "block threads: %d, allowed are 1, 8 and 32, and 0 for what is best", wrong[k]);
    assert_non_null(strstr(err.text, words));
    assert_int_equal(err.code, SN_ERR_ARGUMENT);
  }
  for (size_t k = 0; k < sizeof right / sizeof *right; ++k)
    sn_backend_free(open_threads("emulator_double", right[k], ""));
}

static void description(void **state) {
  (void)state;
  char text[300];
  SnBackend *b = open_library("emulator_double", 0, NULL);
  sn_backend_describe(b, text, sizeof text);
  printf("%s\n", text);
  assert_non_null(strstr(text, "emulator"));
  assert_non_null(strstr(text, "double"));
  assert_string_equal(sn_backend_name(b), "emulator_double");
  assert_false(sn_backend_lost(b, text, sizeof text));
  SnBackendMemory memory;
  memory = sn_backend_memory(b);
  assert_int_equal(memory.used, 0);
  assert_true(memory.budget > 0 && memory.budget < memory.total);
  sn_backend_free(b);
}

// ---- memory ----

static void sessions_share_a_model(void **state) {
  const Scene *x = *state;
  SnBackend *b = open_library("emulator_double", 0, NULL);
  SnBackendModel *first = scene_load(b, x, 16);
  const size_t one = memory_used(b);
  SnBackendModel *second = scene_load(b, x, 16);
  const size_t two = memory_used(b);
  // Another time step is another model.
  SnModel *other = sn_model_copy(x->m, NULL);
  other->opt.timestep *= SN_R(0.5);
  SnModel *mine = sn_model_copy(other, NULL);
  SnError err = {0};
  SnBackendModel *third = sn_backend_load(b, mine, x->cost, 16, &err);
  if (!third) fail_msg("%s", err.text);
  const size_t three = memory_used(b);
  printf("one session takes %zu bytes, a second %zu more, another model %zu more\n", one, two - one, three - two);
  assert_true(two - one < one / 4 && three - two > one / 2);
  sn_backend_unload(b, first);
  assert_true(memory_used(b) < three);
  sn_backend_unload(b, second);
  sn_backend_unload(b, third);
  assert_int_equal(memory_used(b), 0);
  sn_model_free(other);
  sn_model_free(mine);
  sn_backend_free(b);
}

static int no_sweep(SnDevice *d, SnKernel kernel, int threads) {
  (void)d;
  return kernel == SN_KERNEL_SWEEP ? 0 : 128 / threads;
}

// Looks at the shapes of a model for which so many threads a world were asked for (0: as the library thinks): rollouts
// alone have fewer than a warp.
static void check_shapes(const Scene *x, const SnDeviceModel *model, int asked) {
  SnLayout line, bars;
  assert_int_equal(sn_world_place(x->m, SN_LAYOUT_LINE, &line, NULL), SN_OK);
  assert_int_equal(sn_adjoint_place(x->m, &bars, NULL), SN_OK);
  for (int k = 0; k < SN_NKERNEL; ++k) {
    const SnKernelShape *s = &model->shape[k];
    const int threads = asked == 8 && k == SN_KERNEL_ROLLOUT ? 8 : 32;
    const bool world = k == SN_KERNEL_ROLLOUT || k == SN_KERNEL_FORWARD || k == SN_KERNEL_JACOBIAN;
    const bool adjoint = k == SN_KERNEL_SWEEP || k == SN_KERNEL_JACOBIAN;
    assert_true(s->threads == threads && s->resident == 3 * 32 * 32 / threads && s->slot.stride % 64 == 0);
    assert_true(s->slot.world.bytes == (world ? line.bytes : 0) && s->slot.adjoint.bytes == (adjoint ? bars.bytes : 0));
    assert_true(s->slot.stride == SN_KERNEL_HEAD + s->slot.world.bytes + s->slot.adjoint.bytes);
  }
  // Of what parts of a warp have slots of warps have room for, at least.
  const SnKernelShape *many = &model->many;
  assert_true(many->threads == (asked ? 0 : 8) && many->resident == (asked ? 0 : 3 * 128));
  assert_true(asked || many->slot.stride > SN_KERNEL_HEAD);
  assert_true(many->slot.stride <= model->shape[SN_KERNEL_ROLLOUT].slot.stride);
}

// A block has room for its head, and for what its kernel works on by itself. A device that a kernel does not run on
// gets no model.
static void shapes(void **state) {
  const Scene *x = *state;
  SnError err = {0};
  static const int asked[] = {0, 8, 32};
  for (size_t k = 0; k < sizeof asked / sizeof *asked; ++k) {
    SnBackend *b = open_threads("emulator_double", asked[k], "multiprocessors:3");
    SnBackendModel *d = scene_load(b, x, 4);
    check_shapes(x, d->model, asked[k]);
    sn_backend_unload(b, d);
    sn_backend_free(b);
  }
  SnBackend *b = open_threads("emulator_double", 32, "multiprocessors:3");
  device_behind(b)->resident = no_sweep;
  assert_null(sn_backend_load(b, x->m, x->cost, 4, &err));
  assert_int_equal(err.code, SN_ERR_LIMIT);
  assert_non_null(strstr(err.text, "emulator: kernel SWEEP does not run on this device with 32 threads"));
  sn_backend_free(b);
}

// What stages take is measured from the first question on, and touches no result.
static void stages(void **state) {
  const Scene *x = *state;
  enum { STEPS = 10, COUNT = 300, CAPACITY = 40 };  // more than run at once by warps
  SnBackend *b = open_library("emulator_double", 0, NULL);
  Rollouts want = rollouts_make(x, STEPS, COUNT, false), got = rollouts_make(x, STEPS, COUNT, false);
  rollouts_run(x, b, &want);
  SnBackendModel *d = scene_load(b, x, STEPS);
  assert_int_equal(sn_backend_reserve_batches(b, d, COUNT, NULL), SN_OK);
  SnBackendStage stage[CAPACITY];
  const int n = sn_backend_profile(b, d, stage, CAPACITY);
  assert_int_equal(n, SN_NMARK);
  for (int k = 0; k < n; ++k) assert_true(stage[k].time == 0);
  assert_true(sn_backend_rollouts(b, d, &got.batch, steady_clock(), INFINITY));
  rollouts_equal(&want, &got);
  assert_int_equal(sn_backend_profile(b, d, stage, CAPACITY), n);
  assert_string_equal(stage[SN_MARK_TENDON].name, sn_mark_name(SN_MARK_TENDON));
  assert_true(stage[SN_MARK_TENDON].time > 0 && stage[SN_MARK_COST].time > 0);
  assert_true(stage[SN_MARK_SOLVER_VJP].time == 0);
  // So it is for gradients, of any session of the model.
  Job *j = job_make(x, JOB_SWEEP, false);
  job_alone(b, x, j);
  job_free(j);
  assert_int_equal(sn_backend_profile(b, d, stage, CAPACITY), n);
  assert_true(stage[SN_MARK_TENDON].time > 0 && stage[SN_MARK_SOLVER_VJP].time > 0);
  // Each question begins anew; a smaller room gets the first of them.
  assert_int_equal(sn_backend_profile(b, d, stage, 3), n);
  for (int k = 0; k < 3; ++k) assert_true(stage[k].time == 0);
  sn_backend_unload(b, d);
  rollouts_free(&want);
  rollouts_free(&got);
  sn_backend_free(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(refusals),    cmocka_unit_test(block_options),
      cmocka_unit_test(description), cmocka_unit_test(sessions_share_a_model),
      cmocka_unit_test(shapes),      cmocka_unit_test(stages),
  };
  return cmocka_run_group_tests(tests, open_arm, close_arm);
}
