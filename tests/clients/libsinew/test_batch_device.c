// Batches of libsinew on a device, which the host stands in for: the bits of the CPU, values and derivatives; what a
// budget has no room for.
#include "tests/clients/libsinew/batch_fixture.h"

static SinewModel *model;
static SinewTask *task;
static SinewBackend *cpu, *device;

static SinewBackend *open_device(double memory) {
  SinewError err;
  SinewBackendOptions options = sinew_default_backend();
  options.folder = SN_TEST_LIBRARY_DIR;
  options.memory = memory;
  SinewBackend *b = sinew_backend_open("emulator_double", &options, &err);
  if (!b) fail_msg("%s", err.text);
  return b;
}

static int setup(void **state) {
  (void)state;
  model = test_model_of_text(body_xml);
  task = test_task(body_task);
  cpu = test_cpu(2);
  device = open_device(0);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  sinew_backend_close(cpu);
  sinew_backend_close(device);
  sinew_task_free(task);
  sinew_model_free(model);
  return 0;
}

// With a task and without, kept for the way back or not, all of their own or one state for all.
static void test_values(void **state) {
  (void)state;
  static Rollouts x, y;
  for (int k = 0; k < 8; ++k) {
    SinewBatch *ours = make_batch(model, k & 1 ? task : NULL, cpu, k & 2),
               *there = make_batch(model, k & 1 ? task : NULL, device, k & 2);
    random_rollouts(&x, 61);
    y = x;
    SinewRollouts r = rollouts_of(&x), s = rollouts_of(&y);
    r.one_state = s.one_state = k & 4;
    run_batch(ours, &r);
    for (int again = 0; again < 2; ++again) {
      run_batch(there, &s);
      assert_memory_equal(&x, &y, sizeof x);
    }
    assert_true(x.out_qpos[N * ROWS * NQ - 1] != 0 && x.status[N - 1] == SINEW_OK);
    sinew_batch_free(ours);
    sinew_batch_free(there);
  }
}

// Bars of everything, and what comes back.
typedef struct Way {
  double qpos[N * ROWS * NQ], qvel[N * ROWS * NV], act[N * ROWS * NA], sensordata[N * ROWS * NS], ctrl[N * T * NU];
  double ctrl_bar[N * T * NU], qpos_bar[N * NQ], qvel_bar[N * NV], act_bar[N * NA];
  int status[N];
} Way;

static void go_back(SinewBatch *batch, Way *w) {
  SinewError err;
  SinewTrajectoryBars bars = sinew_default_bars();
  SinewGradients out = sinew_default_gradients();
  bars.coordinates = SINEW_ARRAY;
  bars.qpos = w->qpos, bars.qvel = w->qvel, bars.act = w->act, bars.sensordata = w->sensordata, bars.ctrl = w->ctrl;
  out.ctrl = w->ctrl_bar, out.qpos = w->qpos_bar, out.qvel = w->qvel_bar, out.act = w->act_bar;
  out.status = w->status;
  test_accepted(sinew_batch_vjp(batch, &bars, &out, &err), &err);
}

static void test_derivatives(void **state) {
  (void)state;
  static Rollouts x, y;
  static Way w, v;
  uint64_t seed = 62;
  random_rollouts(&x, 63);
  for (int i = 0; i < N * NV; ++i) x.warmstart[i] = 100 * test_random(&seed);
  y = x;
  double *const bars = w.qpos;
  for (size_t i = 0; i < offsetof(Way, ctrl_bar) / sizeof *bars; ++i) bars[i] = test_random(&seed);
  v = w;
  SinewBatch *ours = make_batch(model, task, cpu, true), *there = make_batch(model, task, device, true);
  const SinewRollouts r = rollouts_of(&x), s = rollouts_of(&y);
  run_batch(ours, &r);
  run_batch(there, &s);
  assert_memory_equal(&x, &y, sizeof x);
  memset(y.warmstart, 0, sizeof y.warmstart);  // it was copied
  go_back(ours, &w);
  for (int again = 0; again < 2; ++again) {
    memset(v.ctrl_bar, 0x55, sizeof v - offsetof(Way, ctrl_bar));
    go_back(there, &v);
    assert_memory_equal(&w, &v, offsetof(Way, status) + sizeof w.status);
  }
  assert_true(w.ctrl_bar[0] != 0 && w.status[0] == SINEW_OK);
  sinew_batch_free(ours);
  sinew_batch_free(there);
}

static void test_refused_on_devices(void **state) {
  (void)state;
  static Rollouts x;
  SinewError err;
  const SinewModel *models[N] = {model, model, model, model, model};
  SinewBatch *batch = make_batch(model, NULL, device, true);
  random_rollouts(&x, 64);
  SinewRollouts r = rollouts_of(&x);
  r.models = models;
  test_refused(sinew_batch_rollout(batch, &r, &err), &err, SINEW_ERR_UNSUPPORTED, "emulator_double");
  r.models = NULL;
  run_batch(batch, &r);
  const SinewLinearization out = sinew_default_linearization();
  test_refused(sinew_batch_linearize(batch, &out, &err), &err, SINEW_ERR_UNSUPPORTED, "emulator_double");
  sinew_batch_free(batch);
}

static void test_budget(void **state) {
  (void)state;
  SinewError err;
  SinewBackend *small = open_device(120e3);
  SinewBatchDef def = sinew_default_batch();
  def.model = model;
  def.backend = small;
  def.capacity = 1000;
  def.steps = 100;
  assert_null(sinew_batch_create(&def, &err));
  test_refused(err.status, &err, SINEW_ERR_LIMIT, "rollouts with all states at once, the budget is 120.0 kB");
  def.gradients = true;
  assert_null(sinew_batch_create(&def, &err));
  test_refused(err.status, &err, SINEW_ERR_LIMIT, "1000 gradients, the budget is 120.0 kB");
  sinew_backend_close(small);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_derivatives),
                                     cmocka_unit_test(test_refused_on_devices), cmocka_unit_test(test_budget)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
