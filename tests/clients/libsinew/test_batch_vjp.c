// The way back through batches of libsinew: against differences, against single steps, against planners.
#include "tests/clients/libsinew/batch_fixture.h"

#include <math.h>

#include "clients/base/statistics.h"

static SinewModel *model;
static SinewTask *task;
static SinewBackend *cpu, *cpu_one;

static int setup(void **state) {
  (void)state;
  model = test_model_of_text(body_xml);
  task = test_task(body_task);
  cpu = test_cpu(2);
  cpu_one = test_cpu(1);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  sinew_backend_close(cpu);
  sinew_backend_close(cpu_one);
  sinew_task_free(task);
  sinew_model_free(model);
  return 0;
}

// Holds a linear cost of trajectories: its bars, and the derivatives that come back.
typedef struct Way {
  double qpos[N * ROWS * NQ], qvel[N * ROWS * NV], act[N * ROWS * NA], sensordata[N * ROWS * NS], ctrl[N * T * NU];
  double cost[N];
  double ctrl_bar[N * T * NU], qpos_bar[N * NQ], qvel_bar[N * NV], act_bar[N * NA];
  int status[N];
} Way;

static void fill(double *x, size_t n, uint64_t *seed) {
  for (size_t i = 0; i < n; ++i) x[i] = test_random(seed);
}

static void random_way(Way *w, uint64_t seed) {
  memset(w, 0, sizeof *w);
  fill(w->qpos, N * ROWS * NQ, &seed);
  fill(w->qvel, N * ROWS * NV, &seed);
  fill(w->act, N * ROWS * NA, &seed);
  fill(w->sensordata, N * ROWS * NS, &seed);
  fill(w->ctrl, N * T * NU, &seed);
  fill(w->cost, N, &seed);
}

static SinewTrajectoryBars bars_of(const Way *w, SinewCoordinates coordinates) {
  SinewTrajectoryBars bars = sinew_default_bars();
  bars.coordinates = coordinates;
  bars.qpos = w->qpos, bars.qvel = w->qvel, bars.act = w->act, bars.sensordata = w->sensordata;
  bars.ctrl = w->ctrl, bars.cost = w->cost;
  return bars;
}

static SinewGradients gradients_of(Way *w) {
  SinewGradients out = sinew_default_gradients();
  out.ctrl = w->ctrl_bar, out.qpos = w->qpos_bar, out.qvel = w->qvel_bar, out.act = w->act_bar;
  out.status = w->status;
  return out;
}

static void go_back(SinewBatch *batch, const SinewTrajectoryBars *bars, Way *w) {
  SinewError err;
  const SinewGradients out = gradients_of(w);
  test_accepted(sinew_batch_vjp(batch, bars, &out, &err), &err);
  for (int i = 0; i < N; ++i) assert_int_equal(w->status[i], SINEW_OK);
}

static double dot(const double *a, const double *b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// The cost of rollout i whose bars are those of `w`, by arrays.
static double cost_of(const Rollouts *x, const Way *w, int i) {
  return w->cost[i] * x->cost[i] + dot(w->qpos + i * ROWS * NQ, x->out_qpos + i * ROWS * NQ, ROWS * NQ) +
         dot(w->qvel + i * ROWS * NV, x->out_qvel + i * ROWS * NV, ROWS * NV) +
         dot(w->act + i * ROWS * NA, x->out_act + i * ROWS * NA, ROWS * NA) +
         dot(w->sensordata + i * ROWS * NS, x->out_sensordata + i * ROWS * NS, ROWS * NS) +
         dot(w->ctrl + i * T * NU, x->ctrl + i * T * NU, T * NU);
}

// A quaternion's own length is not part of a motion: bars have no part along it, as those of any function of the
// rotation.
static void drop_lengths(const Rollouts *x, Way *w) {
  for (int row = 0; row < N * ROWS; ++row) {
    const double *q = x->out_qpos + row * NQ;
    double *bar = w->qpos + row * NQ;
    const double along = dot(q, bar, 4) / dot(q, q, 4);
    for (int k = 0; k < 4; ++k) bar[k] -= along * q[k];
  }
}

// Differences of all rollouts at once: entry k of every one changes by h. `stride` is the row of one.
static void check_differences(SinewBatch *batch, Rollouts *x, const Way *w, double *input, int stride, int k,
                              const double *bar, const char *name) {
  const double h = 1e-6;
  const SinewRollouts r = rollouts_of(x);
  double up[N], at[N];
  for (int i = 0; i < N; ++i) {
    at[i] = input[i * stride + k];
    input[i * stride + k] = at[i] + h;
  }
  run_batch(batch, &r);
  for (int i = 0; i < N; ++i) {
    up[i] = cost_of(x, w, i);
    input[i * stride + k] = at[i] - h;
  }
  run_batch(batch, &r);
  for (int i = 0; i < N; ++i) {
    const double difference = (up[i] - cost_of(x, w, i)) / (2 * h);
    input[i * stride + k] = at[i];
    if (!(fabs(difference - bar[i * stride + k]) <= 2e-5 * (1 + fabs(difference))))
      fail_msg("%s[%d] of rollout %d: %.9g, difference %.9g", name, k, i, bar[i * stride + k], difference);
  }
}

// A cost of everything, with the task's in it, by entries of arrays. Quaternions are not of unit length.
static void test_differences(void **state) {
  (void)state;
  static Rollouts x;
  static Way w;
  SinewBatch *batch = make_batch(model, task, cpu, true);
  random_rollouts(&x, 21);
  random_way(&w, 22);
  const SinewRollouts r = rollouts_of(&x);
  run_batch(batch, &r);
  drop_lengths(&x, &w);
  const SinewTrajectoryBars bars = bars_of(&w, SINEW_ARRAY);
  go_back(batch, &bars, &w);
  for (int k = 0; k < T * NU; k += 4) check_differences(batch, &x, &w, x.ctrl, T * NU, k, w.ctrl_bar, "ctrl");
  for (int k = 0; k < NQ; ++k) check_differences(batch, &x, &w, x.qpos, NQ, k, w.qpos_bar, "qpos");
  for (int k = 0; k < NV; ++k) check_differences(batch, &x, &w, x.qvel, NV, k, w.qvel_bar, "qvel");
  for (int k = 0; k < NA; ++k) check_differences(batch, &x, &w, x.act, NA, k, w.act_bar, "act");
  sinew_batch_free(batch);
}

// Any threads, any number of calls, one state or control for all: the same bits. Both coordinates agree where there is
// no quaternion.
static void test_same_bits(void **state) {
  (void)state;
  static Rollouts x;
  static Way w, v;
  random_rollouts(&x, 31);
  random_way(&w, 32);
  v = w;
  const SinewRollouts r = rollouts_of(&x);
  SinewTrajectoryBars bars = bars_of(&w, SINEW_ARRAY);
  SinewBatch *batch = make_batch(model, task, cpu_one, true);
  run_batch(batch, &r);
  go_back(batch, &bars, &w);
  sinew_batch_free(batch);
  batch = make_batch(model, task, cpu, true);
  run_batch(batch, &r);
  go_back(batch, NULL, &v);  // another cost meanwhile
  go_back(batch, &bars, &v);
  assert_memory_equal(&v, &w, sizeof w);
  memset(x.ctrl, 0, sizeof x.ctrl);  // what was given may go
  memset(x.qpos, 0, sizeof x.qpos);
  go_back(batch, &bars, &v);
  assert_memory_equal(&v, &w, sizeof w);
  bars.qpos = NULL;
  bars.coordinates = SINEW_ARRAY;
  go_back(batch, &bars, &v);
  double ctrl_bar[N * T * NU];
  memcpy(ctrl_bar, v.ctrl_bar, sizeof ctrl_bar);
  bars.coordinates = SINEW_TANGENT;
  go_back(batch, &bars, &v);
  assert_memory_equal(ctrl_bar, v.ctrl_bar, sizeof ctrl_bar);
  SinewGradients one = sinew_default_gradients();
  SinewError err;
  one.qvel = v.qpos_bar;
  test_accepted(sinew_batch_vjp(batch, &bars, &one, &err), &err);
  assert_memory_equal(v.qpos_bar, v.qvel_bar, sizeof v.qvel_bar);
  sinew_batch_free(batch);
}

// The derivative of the cost is that of planners.
static void test_gradient_is_the_planners(void **state) {
  (void)state;
  static Rollouts x;
  static Way w;
  SinewError err;
  SinewPlannerDef def = sinew_default_planner();
  def.model = model;
  def.task = task;
  def.backend = cpu;
  SinewPlanner *p = sinew_planner_create(&def, &err);
  SinewBatch *batch = make_batch(model, task, cpu, true);
  random_rollouts(&x, 41);
  const SinewState start = sinew_batch_initial(batch), planned = sinew_planner_initial(p);
  assert_memory_equal(start.qpos, planned.qpos, NQ * sizeof *start.qpos);
  assert_memory_equal(start.qvel, planned.qvel, NV * sizeof *start.qvel);
  assert_memory_equal(start.act, planned.act, NA * sizeof *start.act);
  assert_memory_equal(start.mocap, planned.mocap, 7 * sizeof *start.mocap);
  SinewRollouts r = rollouts_of(&x);
  r.one_state = true;
  r.time = NULL;
  r.qpos = start.qpos, r.qvel = start.qvel, r.act = start.act, r.mocap = start.mocap;
  run_batch(batch, &r);
  go_back(batch, NULL, &w);
  for (int i = 0; i < N; ++i) {
    double cost, gradient[T * NU];
    test_accepted(sinew_planner_evaluate(p, &start, x.ctrl + i * T * NU, T, &cost, gradient, &err), &err);
    for (int k = 0; k < T * NU; ++k)
      if (fabs(gradient[k] - w.ctrl_bar[i * T * NU + k]) > 1e-7 * (1e-3 + fabs(gradient[k])))
        fail_msg("ctrl %d of rollout %d: %.9g, the planner's %.9g", k, i, w.ctrl_bar[i * T * NU + k], gradient[k]);
  }
  sinew_batch_free(batch);
  sinew_planner_free(p);
}

// Goes back through rollout i by single steps.
static void chain_steps(const Rollouts *x, const Way *w, SinewCoordinates coordinates, int i, Way *chained) {
  SinewError err;
  SinewData *data = sinew_data_create(model, &err);
  const int nq = coordinates == SINEW_ARRAY ? NQ : NV;
  double qpos[NQ], qvel[NV], act[NA], before_qpos[NQ], before_qvel[NV], before_act[NA], ctrl[NU];
  memcpy(qpos, w->qpos + (i * ROWS + T) * nq, (size_t)nq * sizeof *qpos);
  memcpy(qvel, w->qvel + (i * ROWS + T) * NV, sizeof qvel);
  memcpy(act, w->act + (i * ROWS + T) * NA, sizeof act);
  for (int t = T - 1; t >= 0; --t) {
    const int row = i * ROWS + t;
    const SinewState s = {x->out_time[row], x->out_qpos + row * NQ, x->out_qvel + row * NV, x->out_act + row * NA,
                          x->mocap + i * 7};
    const SinewStateBar next = {qpos, qvel, act}, before = {before_qpos, before_qvel, before_act};
    test_accepted(sinew_data_set_state(data, &s, &err), &err);
    memcpy(sinew_data_array(data, "ctrl", NULL, NULL), x->ctrl + (i * T + t) * NU, sizeof ctrl);
    test_accepted(sinew_step_vjp(data, coordinates, &next, w->sensordata + row * NS, &before, ctrl, &err), &err);
    for (int k = 0; k < NU; ++k) chained->ctrl_bar[(i * T + t) * NU + k] = ctrl[k] + w->ctrl[(i * T + t) * NU + k];
    for (int k = 0; k < nq; ++k) qpos[k] = before_qpos[k] + w->qpos[row * nq + k];
    for (int k = 0; k < NV; ++k) qvel[k] = before_qvel[k] + w->qvel[row * NV + k];
    for (int k = 0; k < NA; ++k) act[k] = before_act[k] + w->act[row * NA + k];
  }
  memcpy(chained->qpos_bar + i * nq, qpos, (size_t)nq * sizeof *qpos);
  memcpy(chained->qvel_bar + i * NV, qvel, sizeof qvel);
  memcpy(chained->act_bar + i * NA, act, sizeof act);
  sinew_data_free(data);
}

static void assert_close(const double *a, const double *b, size_t n, const char *name) {
  double largest = 1;
  for (size_t i = 0; i < n; ++i) largest = sn_larger(largest, fabs(b[i]));
  for (size_t i = 0; i < n; ++i)
    if (!(fabs(a[i] - b[i]) <= 1e-7 * largest)) fail_msg("%s[%zu]: %.12g, by steps %.12g", name, i, a[i], b[i]);
}

// A cost without the task's, in both coordinates. At the last state a sensor has no step: its bar there is 0.
static void test_chain_of_steps(void **state) {
  (void)state;
  static Rollouts x;
  static Way w, chained;
  SinewBatch *batch = make_batch(model, NULL, cpu, true);
  random_rollouts(&x, 51);
  const SinewRollouts r = rollouts_of(&x);
  run_batch(batch, &r);
  for (int c = 0; c < 2; ++c) {
    const SinewCoordinates coordinates = c ? SINEW_ARRAY : SINEW_TANGENT;
    random_way(&w, 52);
    if (c) drop_lengths(&x, &w);
    for (int i = 0; i < N; ++i) memset(w.sensordata + (i * ROWS + T) * NS, 0, NS * sizeof(double));
    chained = w;
    const SinewTrajectoryBars bars = bars_of(&w, coordinates);
    go_back(batch, &bars, &w);
    for (int i = 0; i < N; ++i) chain_steps(&x, &w, coordinates, i, &chained);
    assert_close(w.ctrl_bar, chained.ctrl_bar, N * T * NU, "ctrl");
    assert_close(w.qpos_bar, chained.qpos_bar, (size_t)N * (c ? NQ : NV), "qpos");
    assert_close(w.qvel_bar, chained.qvel_bar, N * NV, "qvel");
    assert_close(w.act_bar, chained.act_bar, N * NA, "act");
  }
  sinew_batch_free(batch);
}

// Without a task there is no cost, whatever its factor: without bars all derivatives are 0.
static void test_no_cost(void **state) {
  (void)state;
  static Rollouts x;
  static Way w;
  static const double zero[N * T * NU];
  SinewBatch *batch = make_batch(model, NULL, cpu, true);
  random_rollouts(&x, 61);
  const SinewRollouts r = rollouts_of(&x);
  run_batch(batch, &r);
  memset(w.ctrl_bar, 1, sizeof w.ctrl_bar);
  go_back(batch, NULL, &w);
  assert_memory_equal(w.ctrl_bar, zero, sizeof zero);
  sinew_batch_free(batch);
}

// A rollout that diverged has derivatives 0, whatever its bars; others are not touched by it.
static void test_divergence(void **state) {
  (void)state;
  enum { BAD = 1 };
  static Rollouts x, y;
  static Way w, v;
  SinewError err;
  SinewBatch *batch = make_batch(model, task, cpu, true);
  random_rollouts(&x, 71);
  random_way(&w, 72);
  v = w;
  y = x;
  y.qvel[BAD * NV + 3] = 9e9;
  const SinewRollouts r = rollouts_of(&x), s = rollouts_of(&y);
  SinewTrajectoryBars bars = bars_of(&w, SINEW_ARRAY);
  run_batch(batch, &r);
  go_back(batch, &bars, &w);
  run_batch(batch, &s);
  for (int k = 0; k < ROWS * NQ; ++k) v.qpos[BAD * ROWS * NQ + k] = (double)NAN;
  memset(v.ctrl_bar, 1, sizeof v.ctrl_bar);
  memset(v.qpos_bar, 1, sizeof v.qpos_bar);
  bars = bars_of(&v, SINEW_ARRAY);
  const SinewGradients out = gradients_of(&v);
  test_accepted(sinew_batch_vjp(batch, &bars, &out, &err), &err);
  for (int i = 0; i < N; ++i) {
    assert_int_equal(v.status[i], i == BAD ? SINEW_ERR_DIVERGED : SINEW_OK);
    for (int k = i * T * NU; k < (i + 1) * T * NU; ++k) assert_true(v.ctrl_bar[k] == (i == BAD ? 0 : w.ctrl_bar[k]));
    for (int k = i * NQ; k < (i + 1) * NQ; ++k) assert_true(v.qpos_bar[k] == (i == BAD ? 0 : w.qpos_bar[k]));
  }
  sinew_batch_free(batch);
}

static void test_misuse(void **state) {
  (void)state;
  static Rollouts x;
  static Way w;
  SinewError err;
  SinewBatch *batch = make_batch(model, task, cpu, false);
  random_rollouts(&x, 81);
  const SinewRollouts r = rollouts_of(&x);
  SinewGradients out = gradients_of(&w);
  run_batch(batch, &r);
  test_refused(sinew_batch_vjp(batch, NULL, &out, &err), &err, SINEW_ERR_STATE, "without SinewBatchDef.gradients");
  sinew_batch_free(batch);
  batch = make_batch(model, task, cpu, true);
  test_refused(sinew_batch_vjp(batch, NULL, &out, &err), &err, SINEW_ERR_STATE, "no rollouts yet");
  run_batch(batch, &r);
  random_way(&w, 82);
  SinewTrajectoryBars bars = bars_of(&w, SINEW_TANGENT);
  w.qvel[(2 * ROWS + 3) * NV] = (double)NAN;
  test_refused(sinew_batch_vjp(batch, &bars, &out, &err), &err, SINEW_ERR_ARGUMENT, "rollout 2");
  w.qvel[(2 * ROWS + 3) * NV] = 0;
  bars.coordinates = (SinewCoordinates)7;
  test_refused(sinew_batch_vjp(batch, &bars, &out, &err), &err, SINEW_ERR_ARGUMENT, "coordinates: 7");
  bars.coordinates = SINEW_TANGENT;
  bars.size = 0;
  test_refused(sinew_batch_vjp(batch, &bars, &out, &err), &err, SINEW_ERR_ARGUMENT, "size");
  out.size = 0;
  test_refused(sinew_batch_vjp(batch, NULL, &out, &err), &err, SINEW_ERR_ARGUMENT, "size");
  test_refused(sinew_batch_vjp(batch, NULL, NULL, &err), &err, SINEW_ERR_ARGUMENT, "NULL");
  test_refused(sinew_batch_vjp(NULL, NULL, &out, &err), &err, SINEW_ERR_ARGUMENT, "batch is NULL");
  SinewRollouts bad = r;
  bad.count = 0;
  assert_int_equal(sinew_batch_rollout(batch, &bad, NULL), SINEW_ERR_ARGUMENT);
  out = gradients_of(&w);
  test_accepted(sinew_batch_vjp(batch, NULL, &out, &err), &err);  // those of before are still there
  sinew_batch_free(batch);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_differences),
                                     cmocka_unit_test(test_same_bits),
                                     cmocka_unit_test(test_gradient_is_the_planners),

                                     cmocka_unit_test(test_chain_of_steps),
                                     cmocka_unit_test(test_no_cost),
                                     cmocka_unit_test(test_divergence),
                                     cmocka_unit_test(test_misuse)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
