// Batches and planners of libsinew on a device, which the host stands in for: rollouts that diverge, in doubles and in
// floats, and devices that get lost. test_batch_device.c has the rest of batches.
#include <unistd.h>

#include "tests/clients/libsinew/batch_fixture.h"

#include <math.h>

#include "clients/base/statistics.h"
#include "clients/libsinew/backend_private.h"

static SinewModel *model;
static SinewTask *task;
static SinewBackend *cpu;

static int setup(void **state) {
  (void)state;
  model = test_model_of_text(body_xml);
  task = test_task(body_task);
  cpu = test_cpu(2);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  sinew_backend_close(cpu);
  sinew_task_free(task);
  sinew_model_free(model);
  return 0;
}

// Holds rollouts and derivatives of a cost of all that they have.
typedef struct Results {
  Rollouts x;
  double ctrl_bar[N * T * NU], qpos_bar[N * NQ], qvel_bar[N * NV], act_bar[N * NA];
  int status[N];
} Results;

// Computes them; one rollout diverges.
static void compute(SinewBackend *backend, bool gradients, Results *out) {
  SinewError err;
  SinewBatch *batch = make_batch(model, task, backend, gradients);
  memset(out, 0, sizeof *out);
  random_rollouts(&out->x, 91);
  out->x.qvel[3 * NV + 3] = 9e9;
  const SinewRollouts r = rollouts_of(&out->x);
  run_batch(batch, &r);
  if (gradients) {
    SinewTrajectoryBars bars = sinew_default_bars();
    SinewGradients to = sinew_default_gradients();
    bars.coordinates = SINEW_ARRAY;
    bars.qpos = out->x.out_qpos, bars.qvel = out->x.out_qvel, bars.act = out->x.out_act;
    bars.sensordata = out->x.out_sensordata, bars.ctrl = out->x.ctrl;
    to.ctrl = out->ctrl_bar, to.qpos = out->qpos_bar, to.qvel = out->qvel_bar, to.act = out->act_bar;
    to.status = out->status;
    test_accepted(sinew_batch_vjp(batch, &bars, &to, &err), &err);
  }
  sinew_batch_free(batch);
}

static SinewBackend *open_device(const char *name) {
  SinewError err;
  SinewBackendOptions options = sinew_default_backend();
  options.folder = SN_TEST_LIBRARY_DIR;
  SinewBackend *backend = sinew_backend_open(name, &options, &err);
  if (!backend) fail_msg("%s", err.text);
  return backend;
}

static void assert_close(const char *name, const double *a, const double *b, size_t n, double tolerance) {
  double largest = 0, error = 0;
  for (size_t i = 0; i < n; ++i) {
    assert_int_equal(isfinite(a[i]), isfinite(b[i]));
    if (!isfinite(b[i])) continue;
    largest = sn_larger(largest, fabs(b[i]));
    error = sn_larger(error, fabs(a[i] - b[i]));
  }
  if (!(error <= tolerance * largest)) fail_msg("%s: error %g of %g", name, error, largest);
}

static void compare(const Results *a, const Results *b, double tolerance) {
  assert_memory_equal(a->x.status, b->x.status, sizeof a->x.status);
  assert_memory_equal(a->x.good_states, b->x.good_states, sizeof a->x.good_states);
  assert_memory_equal(a->status, b->status, sizeof a->status);
  assert_close("qpos", a->x.out_qpos, b->x.out_qpos, N * ROWS * NQ, tolerance);
  assert_close("qvel", a->x.out_qvel, b->x.out_qvel, N * ROWS * NV, tolerance);
  assert_close("act", a->x.out_act, b->x.out_act, N * ROWS * NA, tolerance);
  assert_close("time", a->x.out_time, b->x.out_time, N * ROWS, tolerance);
  assert_close("sensordata", a->x.out_sensordata, b->x.out_sensordata, N * ROWS * NS, tolerance);
  assert_close("cost", a->x.cost, b->x.cost, N, tolerance);
  assert_close("ctrl_bar", a->ctrl_bar, b->ctrl_bar, N * T * NU, 100 * tolerance);
  assert_close("qpos_bar", a->qpos_bar, b->qpos_bar, N * NQ, 100 * tolerance);
  assert_close("qvel_bar", a->qvel_bar, b->qvel_bar, N * NV, 100 * tolerance);
  assert_close("act_bar", a->act_bar, b->act_bar, N * NA, 100 * tolerance);
}

static void test_doubles(void **state) {
  (void)state;
  static Results ours, device;
  SinewBackend *backend = open_device("emulator_double");
  for (int gradients = 0; gradients < 2; ++gradients) {
    compute(cpu, gradients, &ours);
    compute(backend, gradients, &device);
    assert_memory_equal(&ours.x, &device.x, sizeof ours.x);
    compare(&device, &ours, 1e-13);
  }
  assert_true(ours.ctrl_bar[0] != 0 && ours.status[3] == SINEW_ERR_DIVERGED);
  sinew_backend_close(backend);
}

static void test_floats(void **state) {
  (void)state;
  static Results ours, device;
  SinewBackend *backend = open_device("emulator");
  for (int gradients = 0; gradients < 2; ++gradients) {
    compute(cpu, gradients, &ours);
    compute(backend, gradients, &device);
    compare(&device, &ours, 1e-4);
  }
  sinew_backend_close(backend);
}

// Opens a device that will be lost at a launch.
static SinewBackend failing_device(const char *fault) {
  SnError why = {0};
  SinewBackend backend = {.process = getpid()};
  SnBackendOptions options = sn_default_backend_options();
  options.folder = SN_TEST_LIBRARY_DIR;
  options.fault = fault;
  backend.backend = sn_backend_open("emulator_double", NULL, &options, &why);
  if (!backend.backend) fail_msg("%s", why.text);
  return backend;
}

// A device that is lost is a status; what was kept is gone.
static void test_batch_is_lost(void **state) {
  (void)state;
  static Results x;
  SinewError err;
  SinewBackend backend = failing_device("launch:1");
  SinewBatch *batch = make_batch(model, task, &backend, true);
  random_rollouts(&x.x, 92);
  const SinewRollouts r = rollouts_of(&x.x);
  SinewGradients to = sinew_default_gradients();
  test_refused(sinew_batch_rollout(batch, &r, &err), &err, SINEW_ERR_DEVICE, "the device is lost");
  test_refused(sinew_batch_vjp(batch, NULL, &to, &err), &err, SINEW_ERR_STATE, "no rollouts yet");
  sinew_batch_free(batch);
  sn_backend_free(backend.backend);
}

// A planner goes on at its fallback; without one its plans are no longer refined.
static void test_planner_is_lost(void **state) {
  (void)state;
  for (int fallback = 0; fallback < 2; ++fallback) {
    SinewError err;
    SinewBackend backend = failing_device("launch:2");
    SinewPlannerDef def = sinew_default_planner();
    def.model = model;
    def.task = task;
    def.backend = &backend;
    def.fallback = fallback ? cpu : NULL;
    SinewPlanner *p = sinew_planner_create(&def, &err);
    if (!p) fail_msg("%s", err.text);
    SinewPlanRequest request = sinew_default_plan_request();
    const SinewPlan *plan;
    request.state = sinew_planner_initial(p);
    for (int i = 0; i < 4; ++i) test_accepted(sinew_planner_plan(p, &request, &plan, &err), &err);
    assert_true(plan->device_lost && plan->refined == (fallback == 1));
    assert_string_equal(plan->backend, fallback ? "cpu" : "emulator_double");
    double ctrl[NU] = {0}, gradient[NU], cost;
    const SinewStatus status = sinew_planner_evaluate(p, &request.state, ctrl, 1, &cost, gradient, &err);
    if (fallback)
      test_accepted(status, &err);
    else
      test_refused(status, &err, SINEW_ERR_DEVICE, "the device is lost");
    sinew_planner_free(p);
    sn_backend_free(backend.backend);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_doubles), cmocka_unit_test(test_floats),
                                     cmocka_unit_test(test_batch_is_lost), cmocka_unit_test(test_planner_is_lost)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
