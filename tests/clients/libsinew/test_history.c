// Buffers of controls and sensors in libsinew: bodies, batches that go on, gradients through buffers, plans, refusals.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/clients/libsinew/body_fixture.h"
#include "tests/support/past_models.h"
#include "tests/support/plastic_model.h"

enum { STEPS = 24, ROWS = STEPS + 1, HALF = 11, NU = 9, NV = 8, NQ = 9, MOST = 200, SENSORS = 20 };

static SinewModel *model;
static SinewBackend *cpu;
static int nhistory, na, nsensordata;

static int setup(void **state) {
  (void)state;
  model = test_model_of_text(SN_PAST_MODEL("implicitfast", SN_PAST_SENSORS));
  cpu = test_cpu(1);
  const SinewSizes *s = sinew_model_sizes(model);
  nhistory = s->nhistory, na = s->na, nsensordata = s->nsensordata;
  assert_true(s->nu == NU && s->nv == NV && s->nq == NQ && nhistory > 100 && nhistory <= MOST);
  assert_true(nsensordata <= SENSORS);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  sinew_backend_close(cpu);
  sinew_model_free(model);
  return 0;
}

static uint64_t rng;
static double uniform(void) {
  rng = rng * 6364136223846793005u + 1442695040888963407u;
  return (double)(rng >> 11) / (double)(1ull << 52) - 1;
}

// Whether a number of the buffers is a sample: neither a mark, a cursor nor a time. Those are the ones that stay when
// all samples of a body are moved by a step under other controls; here they are told by their places.
static void samples(bool *is) {
  const int width[][2] = {{5, 1}, {4, 1}, {6, 1}, {6, 1}, {3, 1}, {3, 3}, {4, 1},
                          {5, 3}, {3, 3}, {2, 1}, {4, 1}, {4, 4}, {3, 1}, {6, 1}};
  int at = 0;
  for (size_t k = 0; k < sizeof width / sizeof *width; ++k) {
    for (int i = 0; i < 2 + width[k][0]; ++i) is[at++] = false;
    for (int i = 0; i < width[k][0] * width[k][1]; ++i) is[at++] = true;
  }
  assert_int_equal(at, nhistory);
}

static SinewBatch *make_batch(int capacity, bool gradients) {
  SinewError err;
  SinewBatchDef def = sinew_default_batch();
  def.model = model;
  def.backend = cpu;
  def.capacity = capacity;
  def.steps = STEPS;
  def.gradients = gradients;
  SinewBatch *batch = sinew_batch_create(&def, &err);
  if (!batch) fail_msg("%s", err.text);
  return batch;
}

typedef struct Run {
  double ctrl[STEPS * NU], qvel[NV], history[MOST], time;
  double out_qpos[ROWS * NQ], out_qvel[ROWS * NV], out_act[ROWS * 4], out_history[ROWS * MOST],
      out_sensordata[ROWS * SENSORS], out_warm[NV], out_time[ROWS];
} Run;

static SinewRollouts rollouts_of(Run *x, int steps) {
  SinewRollouts r = sinew_default_rollouts();
  r.count = 1;
  r.steps = steps;
  r.time = &x->time;
  r.qvel = x->qvel;
  r.ctrl = x->ctrl;
  r.history = x->history;
  r.out_time = x->out_time;
  r.out_qpos = x->out_qpos;
  r.out_qvel = x->out_qvel;
  r.out_act = x->out_act;
  r.out_history = x->out_history;
  r.out_sensordata = x->out_sensordata;
  r.out_qacc_warmstart = x->out_warm;
  return r;
}

// A run from buffers that a body has filled in some steps.
static void draw(Run *x, uint64_t seed) {
  SinewError err;
  SinewData *data = sinew_data_create(model, &err);
  memset(x, 0, sizeof *x);
  rng = seed;
  double *ctrl = sinew_data_array(data, "ctrl", NULL, NULL);
  for (int k = 0; k < 9; ++k) {
    for (int i = 0; i < NU; ++i) ctrl[i] = uniform();
    test_accepted(sinew_step(data, 1, &err), &err);
  }
  x->time = sinew_data_time(data);
  memcpy(x->history, sinew_data_array(data, "history", NULL, NULL), sizeof(double) * (size_t)nhistory);
  sinew_data_free(data);
  for (int i = 0; i < STEPS * NU; ++i) x->ctrl[i] = uniform();
  for (int i = 0; i < NV; ++i) x->qvel[i] = 0.3 * uniform();
}

// A rollout has the buffers of a body that is stepped; a second one goes on from the middle, bit for bit.
static void test_goes_on(void **state) {
  (void)state;
  static Run x, y;
  SinewError err;
  draw(&x, 3);
  SinewBatch *batch = make_batch(1, false);
  SinewRollouts r = rollouts_of(&x, STEPS);
  test_accepted(sinew_batch_rollout(batch, &r, &err), &err);
  SinewData *data = sinew_data_create(model, &err);
  const SinewState from = {.time = x.time, .qvel = x.qvel};
  test_accepted(sinew_data_set_state(data, &from, &err), &err);
  double *history = sinew_data_array(data, "history", NULL, NULL);
  memcpy(history, x.history, sizeof(double) * (size_t)nhistory);
  for (int t = 0; t < STEPS; ++t) {
    assert_memory_equal(history, x.out_history + t * nhistory, sizeof(double) * (size_t)nhistory);
    memcpy(sinew_data_array(data, "ctrl", NULL, NULL), x.ctrl + t * NU, sizeof(double) * NU);
    test_accepted(sinew_step(data, 1, &err), &err);
  }
  assert_memory_equal(history, x.out_history + STEPS * nhistory, sizeof(double) * (size_t)nhistory);
  sinew_data_free(data);
  y = x;
  r = rollouts_of(&y, HALF);
  test_accepted(sinew_batch_rollout(batch, &r, &err), &err);
  static Run z;
  z.time = y.out_time[HALF];
  memcpy(z.history, y.out_history + HALF * nhistory, sizeof(double) * (size_t)nhistory);
  memcpy(z.ctrl, x.ctrl + HALF * NU, sizeof(double) * (STEPS - HALF) * NU);
  r = rollouts_of(&z, STEPS - HALF);
  r.qpos = y.out_qpos + HALF * NQ;
  r.qvel = y.out_qvel + HALF * NV;
  r.act = y.out_act + HALF * na;
  r.qacc_warmstart = y.out_warm;
  test_accepted(sinew_batch_rollout(batch, &r, &err), &err);
  const int last = STEPS - HALF;
  assert_memory_equal(z.out_qvel + last * NV, x.out_qvel + STEPS * NV, sizeof(double) * NV);
  assert_memory_equal(z.out_history + last * nhistory, x.out_history + STEPS * nhistory,
                      sizeof(double) * (size_t)nhistory);
  sinew_batch_free(batch);
}

// ---- gradients ----

typedef struct Weights {
  double qvel[ROWS * NV], sensordata[ROWS * SENSORS], history[ROWS * MOST];
} Weights;

static double number_of(SinewBatch *batch, Run *x, const Weights *f) {
  SinewError err;
  const SinewRollouts r = rollouts_of(x, STEPS);
  test_accepted(sinew_batch_rollout(batch, &r, &err), &err);
  double sum = 0;
  for (int i = 0; i < ROWS * NV; ++i) sum += f->qvel[i] * x->out_qvel[i];
  for (int i = 0; i < ROWS * nsensordata; ++i) sum += f->sensordata[i] * x->out_sensordata[i];
  for (int i = 0; i < ROWS * nhistory; ++i) sum += f->history[i] * x->out_history[i];
  return sum;
}

static void check(double ours, double difference, double scale, const char *what, int i) {
  if (!(fabs(ours - difference) < 1e-5 * (scale + fabs(difference))))
    fail_msg("%s[%d]: %.10g, difference %.10g", what, i, ours, difference);
}

// A number of velocities, answers of sensors and samples in buffers: by controls and by the samples at the start.
static void test_gradients(void **state) {
  (void)state;
  static Run x, moved;
  static Weights f;
  static double ctrl[STEPS * NU], history[MOST], bar[MOST];
  bool sample[MOST];
  SinewError err;
  draw(&x, 5);
  samples(sample);
  for (int i = 0; i < ROWS * NV; ++i) f.qvel[i] = uniform();
  for (int i = 0; i < ROWS * nsensordata; ++i) f.sensordata[i] = uniform();
  for (int t = 0; t < ROWS; ++t)
    for (int i = 0; i < nhistory; ++i) f.history[t * nhistory + i] = sample[i] ? uniform() : 0;
  SinewBatch *batch = make_batch(1, true);
  number_of(batch, &x, &f);
  SinewTrajectoryBars bars = sinew_default_bars();
  bars.qvel = f.qvel;
  bars.sensordata = f.sensordata;
  bars.history = f.history;
  SinewGradients out = sinew_default_gradients();
  out.ctrl = ctrl;
  out.history = history;
  test_accepted(sinew_batch_vjp(batch, &bars, &out, &err), &err);
  memcpy(bar, history, sizeof bar);
  const double h = 1e-6;
  for (int i = 0; i < STEPS * NU; i += 7) {
    moved = x;
    moved.ctrl[i] += h;
    const double up = number_of(batch, &moved, &f);
    moved.ctrl[i] -= 2 * h;
    check(ctrl[i], (up - number_of(batch, &moved, &f)) / (2 * h), 1, "ctrl", i);
  }
  int moving = 0;
  for (int i = 0; i < nhistory; ++i) {
    if (!sample[i]) {
      assert_true(bar[i] == 0);
      continue;
    }
    moved = x;
    moved.history[i] += h;
    const double up = number_of(batch, &moved, &f);
    moved.history[i] -= 2 * h;
    check(bar[i], (up - number_of(batch, &moved, &f)) / (2 * h), 1, "history", i);
    moving += bar[i] != 0;
  }
  assert_true(moving > 60);
  sinew_batch_free(batch);
}

// ---- bodies, plans, refusals ----

static void test_bodies(void **state) {
  (void)state;
  static Run x;
  SinewError err;
  draw(&x, 7);
  SinewData *data = sinew_data_create(model, &err), *other = sinew_data_create(model, &err);
  double *history = sinew_data_array(data, "history", NULL, NULL), fresh[MOST];
  memcpy(fresh, history, sizeof(double) * (size_t)nhistory);
  memcpy(history, x.history, sizeof(double) * (size_t)nhistory);
  test_accepted(sinew_data_copy_state(other, data, &err), &err);
  assert_memory_equal(sinew_data_array(other, "history", NULL, NULL), x.history, sizeof(double) * (size_t)nhistory);
  const SinewState rest = {0};
  test_accepted(sinew_data_set_state(data, &rest, &err), &err);
  assert_memory_equal(history, fresh, sizeof(double) * (size_t)nhistory);
  history[1] = 77;
  assert_int_equal(sinew_step(data, 1, &err), SINEW_ERR_DIVERGED);
  assert_non_null(strstr(err.text, "history[1] is 77; allowed are finite numbers: of each buffer a mark"));
  sinew_data_free(data);
  sinew_data_free(other);
}

static void test_refusals(void **state) {
  (void)state;
  static Run x;
  SinewError err;
  draw(&x, 9);
  SinewBatch *batch = make_batch(1, true);
  SinewRollouts r = rollouts_of(&x, STEPS);
  test_accepted(sinew_batch_rollout(batch, &r, &err), &err);
  const SinewLinearization linear = sinew_default_linearization();
  assert_int_equal(sinew_batch_linearize(batch, &linear, &err), SINEW_ERR_UNSUPPORTED);
  assert_non_null(strstr(err.text, "history buffers (delay, nsample)"));
  SinewSensitivity sensitivity = sinew_default_sensitivity();
  assert_int_equal(sinew_batch_sensitivity(batch, &sensitivity, &err), SINEW_ERR_UNSUPPORTED);
  x.history[2] = x.history[3];  // two samples of one time
  assert_int_equal(sinew_batch_rollout(batch, &r, &err), SINEW_ERR_ARGUMENT);
  assert_non_null(strstr(err.text, "of rollout 0: "));
  sinew_batch_free(batch);
}

static const char task_text[] =
    "model: m\nsettings: {horizon: 32, planner: adam}\nterms:\n  - {name: position, residual: {joint_position: [j, "
    "k]}, target: 0.5, "
    "weight: 1}\n";

// Plans know the buffers: those of the request, or those of the state before with the controls that were served.
static void test_plans(void **state) {
  (void)state;
  SinewError err;
  SinewTask *task = sinew_task_parse(task_text, strlen(task_text), "late.yaml", &err);
  if (!task) fail_msg("%s", err.text);
  SinewPlannerDef def = sinew_default_planner();
  def.model = model;
  def.task = task;
  def.backend = cpu;
  SinewPlanner *planner = sinew_planner_create(&def, &err), *told = sinew_planner_create(&def, &err);
  if (!planner || !told) fail_msg("%s", err.text);
  SinewData *data = sinew_data_create(model, &err);
  double *ctrl = sinew_data_array(data, "ctrl", NULL, NULL);
  for (int round = 0; round < 3; ++round) {
    SinewPlanRequest request = sinew_default_plan_request();
    const SinewPlan *plan, *plan_told;
    request.state = sinew_data_state(data);
    request.max_iterations = 3;
    test_accepted(sinew_planner_plan(planner, &request, &plan, &err), &err);
    request.history = sinew_data_array(data, "history", NULL, NULL);
    test_accepted(sinew_planner_plan(told, &request, &plan_told, &err), &err);
    // the task looks at no sensor, and the controls are those of the plans: both know the same
    assert_memory_equal(plan->ctrl, plan_told->ctrl, sizeof(double) * NU * (size_t)plan->steps);
    assert_true(plan->cost_after == plan_told->cost_after && plan->cost_after < plan->cost_before);
    for (int k = 0; k < 4; ++k) {
      test_accepted(sinew_planner_control(planner, sinew_data_time(data), ctrl, &err), &err);
      test_accepted(sinew_step(data, 1, &err), &err);
    }
  }
  static double bad[MOST];
  SinewPlanRequest request = sinew_default_plan_request();
  request.state = sinew_data_state(data);
  request.max_iterations = 1;
  request.history = bad;
  assert_int_equal(sinew_planner_plan(told, &request, NULL, &err), SINEW_ERR_ARGUMENT);
  assert_non_null(strstr(err.text, "past["));
  sinew_planner_free(planner);
  sinew_planner_free(told);
  const char *const settings[] = {"planner=ilqg", NULL}, *const products[] = {"gradient=products", NULL};
  def.settings = settings;
  assert_null(sinew_planner_create(&def, &err));
  assert_int_equal(err.status, SINEW_ERR_UNSUPPORTED);
  assert_non_null(strstr(err.text, "planner 'ilqg': the model's steps have no Jacobians"));
  def.settings = products;
  assert_null(sinew_planner_create(&def, &err));
  assert_non_null(strstr(err.text, "gradient 'products'"));
  sinew_data_free(data);
  sinew_task_free(task);
}

// ---- springs that yield: their rests end the history ----

enum { RESTS = 14, RNU = 6, RNV = 7, BALL = 3 };

typedef struct Bend {
  double ctrl[STEPS * RNU], qvel[RNV], history[RESTS], out_history[ROWS * RESTS], cost;
} Bend;

// The weighted sum of all rests of a rollout.
static double rests(SinewBatch *batch, Bend *x, const double *weight) {
  SinewError err;
  SinewRollouts r = sinew_default_rollouts();
  double sum = 0;
  r.count = 1;
  r.steps = STEPS;
  r.qvel = x->qvel;
  r.ctrl = x->ctrl;
  r.history = x->history;
  r.out_history = x->out_history;
  test_accepted(sinew_batch_rollout(batch, &r, &err), &err);
  for (int i = 0; i < ROWS * RESTS; ++i) sum += weight[i] * x->out_history[i];
  return sum;
}

static void test_rests(void **state) {
  (void)state;
  static Bend x;
  static double weight[ROWS * RESTS];
  double by_ctrl[STEPS * RNU], by_history[RESTS];
  const double h = 1e-6;
  SinewError err;
  SinewModel *const with_delays = model;
  model = test_model_of_text(SN_PLASTIC_MODEL("implicitfast", ""));
  const SinewSizes *s = sinew_model_sizes(model);
  assert_true(s->nhistory == RESTS && s->nplastic == RESTS && s->nu == RNU && s->nv == RNV);
  SinewData *data = sinew_data_create(model, &err);
  double *ctrl = sinew_data_array(data, "ctrl", NULL, NULL), *plastic = sinew_data_array(data, "history", NULL, NULL);
  rng = 5;
  memcpy(x.history, plastic, sizeof x.history);
  for (int i = 0; i < RNV; ++i) x.qvel[i] = sinew_data_array(data, "qvel", NULL, NULL)[i] = 3 * uniform();
  for (int i = 0; i < STEPS * RNU; ++i) x.ctrl[i] = uniform();
  for (int i = 0; i < ROWS * RESTS; ++i) weight[i] = uniform();
  SinewBatch *batch = make_batch(1, true);
  const double cost = rests(batch, &x, weight);
  for (int t = 0; t < STEPS; ++t) {
    assert_memory_equal(plastic, x.out_history + t * RESTS, sizeof x.history);
    memcpy(ctrl, x.ctrl + t * RNU, sizeof(double) * RNU);
    test_accepted(sinew_step(data, 1, &err), &err);
  }
  assert_memory_equal(plastic, x.out_history + STEPS * RESTS, sizeof x.history);
  int moved = 0;
  for (int i = 0; i < RESTS; ++i) moved += plastic[i] != x.history[i];
  assert_true(moved >= 8 && isfinite(cost));
  SinewTrajectoryBars bars = sinew_default_bars();
  SinewGradients g = sinew_default_gradients();
  bars.history = weight;
  g.ctrl = by_ctrl;
  g.history = by_history;
  test_accepted(sinew_batch_vjp(batch, &bars, &g, &err), &err);
  for (int i = 0; i < RESTS + STEPS * RNU; ++i) {
    double *at = i < RESTS ? x.history + i : x.ctrl + (i - RESTS);
    const double ours = i < RESTS ? by_history[i] : by_ctrl[i - RESTS], before = *at;
    // a ball joint's rest moves as a rotation, a tendon's as a range: the engine's own test has these
    if (i >= BALL && i < RESTS && i != BALL + 4) continue;
    *at = before + h;
    const double up = rests(batch, &x, weight);
    *at = before - h;
    const double difference = (up - rests(batch, &x, weight)) / (2 * h);
    *at = before;
    if (!(fabs(ours - difference) <= 1e-6)) fail_msg("number %d: %.10g, by differences %.10g", i, ours, difference);
  }
  x.history[BALL] = 2;
  SinewRollouts r = sinew_default_rollouts();
  r.count = r.steps = 1;
  r.ctrl = x.ctrl;
  r.history = x.history;
  assert_int_equal(sinew_batch_rollout(batch, &r, &err), SINEW_ERR_ARGUMENT);
  assert_non_null(strstr(err.text, "history[3] of rollout 0: 2, allowed are"));
  sinew_batch_free(batch);
  sinew_data_free(data);
  sinew_model_free(model);
  model = with_delays;
}

int main(void) {
  print_message("seeds 3 to 9\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_goes_on), cmocka_unit_test(test_gradients),
                                     cmocka_unit_test(test_bodies),  cmocka_unit_test(test_refusals),
                                     cmocka_unit_test(test_plans),   cmocka_unit_test(test_rests)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
