// Gradients of what a caller makes of a trajectory: random linear functionals of all states, controls and sensors
// against differences of rollouts; in two phases as in one; what is refused; nothing is taken from the heap.
#include <stdio.h>

#include "physics/sensor/sensor.h"
#include "physics/step/step.h"
#include "planner/backend/backend.h"
#include "tests/planner/counting_clock.h"
#include "tests/planner/sensing_body.h"
#include "tests/support/allocations.h"

enum { STEPS = SENSING_STEPS, ROWS = STEPS + 1, NQ = SENSING_NQ, NV = SENSING_NV, NA = SENSING_NA, NU = SENSING_NU };
enum { ITEMS = 5, SENSORS = 60, TANGENT = 2 * NV + NA };

// Holds the weights of a linear functional of a trajectory, in the numbers of its arrays.
typedef struct Functional {
  double cost;  // factor of the rollout's cost
  bool qpos, qvel, act, sensordata, ctrl;
  sn_real on_qpos[ROWS * NQ], on_qvel[ROWS * NV], on_act[ROWS * NA], on_sensor[ROWS * SENSORS], on_ctrl[STEPS * NU];
  sn_real tangent[ROWS * NV];  // of on_qpos, at the states of a trajectory
} Functional;

typedef struct Path {
  sn_real qpos[ROWS * NQ], qvel[ROWS * NV], act[ROWS * NA], sensordata[ROWS * SENSORS];
} Path;

typedef struct Result {
  sn_real ctrl[STEPS * NU], qpos[NV], qvel[NV], act[NA], target[ROWS * SENSING_TARGETS];
  sn_real cost, norm, steps;
} Result;

typedef struct Fixture {
  SensingBody *body;
  const SnCost *cost;  // NULL: none
  SnPool *pool;
  SnGradientWork *work;
  SensingInput input[ITEMS];
  SnState state[ITEMS];
  Path path[ITEMS];
  SnTrajectory out[ITEMS];
  Functional functional[ITEMS];
  SnTrajectoryBar bar[ITEMS];
  Result result[ITEMS];
  SnGradient item[ITEMS];
  SnGradientBatch batch;
} Fixture;

static const SnClock *steady(void) {
  static SnClock clock;
  clock = sn_clock_monotonic();
  return &clock;
}

static SnTrajectory trajectory(Path *p) {
  return (SnTrajectory){.qpos = p->qpos, .qvel = p->qvel, .act = p->act, .sensordata = p->sensordata};
}

static void draw_numbers(SnOracle *draw, sn_real *x, int n) {
  for (int i = 0; i < n; ++i) x[i] = (sn_real)sn_oracle_uniform(draw);
}

// A functional of everything; sensors without a gradient and those that are not computed have no weight.
static void draw_functional(const SnModel *m, Functional *f, int seed) {
  SnOracle draw = {.rng = (uint64_t)(1000 + seed)};
  f->qpos = f->qvel = f->act = f->sensordata = f->ctrl = true;
  draw_numbers(&draw, f->on_qpos, ROWS * NQ);
  draw_numbers(&draw, f->on_qvel, ROWS * NV);
  draw_numbers(&draw, f->on_act, ROWS * NA);
  draw_numbers(&draw, f->on_sensor, ROWS * m->nsensordata);
  draw_numbers(&draw, f->on_ctrl, STEPS * NU);
  for (int i = 0; i < m->nsensor; ++i)
    for (int k = 0; k < m->sensor_dim[i] * ROWS && !sn_sensor_differentiable(m, i); ++k)
      f->on_sensor[(k / m->sensor_dim[i]) * m->nsensordata + m->sensor_adr[i] + k % m->sensor_dim[i]] = 0;
}

static Fixture *open_fixture(int threads, bool with_cost) {
  SnError err = {0};
  Fixture *x = calloc(1, sizeof *x);
  x->body = sensing_open();
  x->cost = with_cost ? x->body->cost : NULL;
  assert_true(x->body->m->nsensordata <= SENSORS);
  x->pool = sn_pool_create(threads, &err);
  x->work = sn_gradient_create(x->body->m, x->cost, STEPS, ITEMS, SN_GRADIENT_KEEP, x->pool, &err);
  if (!x->work) fail_msg("%s", err.text);
  for (int k = 0; k < ITEMS; ++k) {
    Result *r = &x->result[k];
    x->state[k] = sensing_input(x->body, &x->input[k], k);
    x->out[k] = trajectory(&x->path[k]);
    draw_functional(x->body->m, &x->functional[k], k);
    x->item[k] = (SnGradient){.state = x->state[k],
                              .ctrl = x->input[k].ctrl,
                              .target = with_cost ? x->input[k].target : NULL,
                              .nstep = STEPS,
                              .max_velocity = 1e3,
                              .out = &x->out[k],
                              .ctrl_bar = r->ctrl,
                              .qpos_bar = r->qpos,
                              .qvel_bar = r->qvel,
                              .act_bar = r->act,
                              .target_bar = with_cost ? r->target : NULL};
  }
  x->batch = (SnGradientBatch){.settings = sn_default_gradient_settings(), .item = x->item, .count = ITEMS};
  return x;
}

static void close_fixture(Fixture *x) {
  sn_gradient_free(x->work);
  sn_pool_free(x->pool);
  sensing_close(x->body);
  free(x);
}

// Derivative of w . qpos for a small motion by the tangent: at quaternions q <- q exp(v / 2).
static void tangent_of(const SnModel *m, const sn_real *qpos, const sn_real *w, sn_real *bar) {
  for (int j = 0; j < m->njnt; ++j) {
    const bool free_joint = m->jnt_type[j] == SN_JNT_FREE, ball = m->jnt_type[j] == SN_JNT_BALL;
    const int q = m->jnt_qposadr[j], v = m->jnt_dofadr[j], turn = free_joint ? 3 : 0;
    for (int k = 0; k < (free_joint ? 3 : ball ? 0 : 1); ++k) bar[v + k] = w[q + k];
    if (!free_joint && !ball) continue;
    const sn_real *p = qpos + q + turn, *g = w + q + turn;
    bar[v + turn] = (-g[0] * p[1] + g[1] * p[0] + g[2] * p[3] - g[3] * p[2]) / 2;
    bar[v + turn + 1] = (-g[0] * p[2] - g[1] * p[3] + g[2] * p[0] + g[3] * p[1]) / 2;
    bar[v + turn + 2] = (-g[0] * p[3] + g[1] * p[2] - g[2] * p[1] + g[3] * p[0]) / 2;
  }
}

// The bars of a functional along a path.
static SnTrajectoryBar bar_of(const SnModel *m, Functional *f, const Path *p) {
  for (int t = 0; t < ROWS; ++t) tangent_of(m, p->qpos + t * NQ, f->on_qpos + t * NQ, f->tangent + t * NV);
  return (SnTrajectoryBar){.cost = f->cost,
                           .qpos = f->qpos ? f->tangent : NULL,
                           .qvel = f->qvel ? f->on_qvel : NULL,
                           .act = f->act ? f->on_act : NULL,
                           .sensordata = f->sensordata ? f->on_sensor : NULL,
                           .ctrl = f->ctrl ? f->on_ctrl : NULL};
}

static double weigh(bool on, const sn_real *w, const sn_real *x, int n) {
  double sum = 0;
  for (int i = 0; on && i < n; ++i)
    if (w[i] != 0) sum += (double)w[i] * (double)x[i];
  return sum;
}

// The functional of the rollout of some inputs.
static double value(const Fixture *x, SnRolloutRunner *r, const Functional *f, const SensingInput *in, int k) {
  static Path p;
  const SnModel *m = x->body->m;
  const SnTrajectory out = trajectory(&p);
  SnState state = x->state[k];
  state.qpos = in->qpos;
  state.qvel = in->qvel;
  state.act = in->act;
  sn_rollout_runner_begin(r, &state, in->ctrl, x->cost ? in->target : NULL, STEPS, 1e3, &out);
  assert_int_equal(sn_rollout_runner_run(r, steady(), INFINITY), SN_ROLLOUT_DONE);
  return f->cost * sn_rollout_runner_cost(r, NULL) + weigh(f->qpos, f->on_qpos, p.qpos, ROWS * NQ) +
         weigh(f->qvel, f->on_qvel, p.qvel, ROWS * NV) + weigh(f->act, f->on_act, p.act, ROWS * NA) +
         weigh(f->sensordata, f->on_sensor, p.sensordata, ROWS * m->nsensordata) +
         weigh(f->ctrl, f->on_ctrl, in->ctrl, STEPS * NU);
}

// Moves all inputs along a direction.
static SensingInput moved(const Fixture *x, const SensingInput *in, const sn_real *tangent, const sn_real *ctrl,
                          double by) {
  SensingInput to = *in;
  sn_integrate_pos(x->body->m, &x->body->o.lane, to.qpos, tangent, (sn_real)by);
  for (int i = 0; i < NV; ++i) to.qvel[i] += (sn_real)by * tangent[NV + i];
  for (int i = 0; i < NA; ++i) to.act[i] += (sn_real)by * tangent[2 * NV + i];
  for (int i = 0; i < STEPS * NU; ++i) to.ctrl[i] += (sn_real)by * ctrl[i];
  return to;
}

// Item k's gradient along random directions: of the initial state alone, of controls alone.
static double against_differences(const Fixture *x, SnRolloutRunner *r, int k) {
  const double h = 1e-6;
  double worst = 0;
  for (int d = 0; d < 4; ++d) {
    SnOracle draw = {.rng = (uint64_t)(9 + d)};
    sn_real tangent[TANGENT] = {0}, ctrl[STEPS * NU] = {0};
    if (d % 2 == 0)
      draw_numbers(&draw, tangent, TANGENT);
    else
      draw_numbers(&draw, ctrl, STEPS * NU);
    const SensingInput up = moved(x, &x->input[k], tangent, ctrl, h), down = moved(x, &x->input[k], tangent, ctrl, -h);
    const Result *g = &x->result[k];
    const double difference =
        (value(x, r, &x->functional[k], &up, k) - value(x, r, &x->functional[k], &down, k)) / (2 * h);
    const double ours = weigh(true, tangent, g->qpos, NV) + weigh(true, tangent + NV, g->qvel, NV) +
                        weigh(true, tangent + 2 * NV, g->act, NA) + weigh(true, ctrl, g->ctrl, STEPS * NU);
    const double error = fabs(ours - difference) / (1e-3 + fabs(difference));
    if (!(error <= 1e-5)) fail_msg("item %d, direction %d: %.12g, difference %.12g", k, d, ours, difference);
    worst = sn_larger(worst, error);
  }
  return worst;
}

// Rollouts alone, then the bars of what came of them, then the way back.
static void two_phases(Fixture *x, const SnClock *clock, double more) {
  for (int phase = 0; phase < 2; ++phase) {
    x->batch.forward = phase == 0;
    for (int k = 0; k < ITEMS; ++k) {
      SnGradient *g = &x->item[k];
      if (phase == 0) g->status = SN_GRADIENT_PENDING;
      if (phase == 1) x->bar[k] = bar_of(x->body->m, &x->functional[k], &x->path[k]);
      g->bar = phase == 0 ? NULL : &x->bar[k];
    }
    double until = more;
    while (!sn_gradient_run(x->work, &x->batch, clock, until)) until += more;
    for (int k = 0; k < ITEMS && phase == 0; ++k) assert_int_equal(x->item[k].status, SN_GRADIENT_ROLLED);
  }
  for (int k = 0; k < ITEMS; ++k) {
    x->result[k].cost = (sn_real)x->item[k].cost;
    x->result[k].norm = (sn_real)x->item[k].norm;
    x->result[k].steps = (sn_real)x->item[k].steps;
  }
}

// Each part of a trajectory alone, and all of them; with a task's cost, without, and with a factor of it.
static void parts(void **state) {
  (void)state;
  if (sizeof(sn_real) == 4) skip();
  SnError err = {0};
  for (int method = SN_GRADIENT_SWEEP; method <= SN_GRADIENT_PRODUCTS; ++method)
    for (int with_cost = 0; with_cost < 2; ++with_cost) {
      Fixture *x = open_fixture(1, with_cost);
      SnRolloutRunner *r = sn_rollout_runner_create(x->body->m, x->cost, &err);
      double worst = 0;
      x->batch.settings.method = (SnGradientMethod)method;
      for (int part = 0; part < 8; ++part) {
        for (int k = 0; k < ITEMS; ++k) {
          Functional *f = &x->functional[k];
          bool *const on[] = {&f->qpos, &f->qvel, &f->act, &f->sensordata, &f->ctrl};
          for (int i = 0; i < 5; ++i) *on[i] = part >= 5 || part == i;
          f->cost = part < 6 ? 0 : part == 6 ? 1 : -0.7;
        }
        two_phases(x, steady(), INFINITY);
        for (int k = 0; k < ITEMS; ++k) {
          assert_int_equal(x->item[k].status, SN_GRADIENT_DONE);
          worst = sn_larger(worst, against_differences(x, r, k));
        }
      }
      print_message("method %d, %s: differences agree to %.1g\n", method, with_cost ? "with a task" : "no cost", worst);
      sn_rollout_runner_free(r);
      close_fixture(x);
    }
}

// The bar of the motor's force at the last state: that of the control that still stands there.
static void last_state(void **state) {
  (void)state;
  for (int method = SN_GRADIENT_SWEEP; method <= SN_GRADIENT_PRODUCTS; ++method) {
    Fixture *x = open_fixture(1, false);
    const SnModel *m = x->body->m;
    const int at = m->sensor_adr[sn_model_find(m, SN_NAME_SENSOR, "force")];
    sn_real bar[ROWS * SENSORS] = {0};
    bar[STEPS * m->nsensordata + at] = 3;
    const SnTrajectoryBar force = {.sensordata = bar};
    x->batch.settings.method = (SnGradientMethod)method;
    for (int k = 0; k < ITEMS; ++k) x->item[k].bar = &force;
    assert_true(sn_gradient_run(x->work, &x->batch, steady(), INFINITY));
    for (int k = 0; k < ITEMS; ++k)
      for (int i = 0; i < STEPS * NU; ++i)
        assert_true(x->result[k].ctrl[i] == (i == (STEPS - 1) * NU + 2 ? SN_R(3.0) : 0));
    close_fixture(x);
  }
}

// The task's cost alone by a bar of 1 is the gradient without a bar, bit for bit.
static void cost_alone(void **state) {
  (void)state;
  static Result want[ITEMS];
  const SnTrajectoryBar one = {.cost = 1};
  for (int method = SN_GRADIENT_SWEEP; method <= SN_GRADIENT_PRODUCTS; ++method) {
    Fixture *x = open_fixture(2, true);
    x->batch.settings.method = (SnGradientMethod)method;
    assert_true(sn_gradient_run(x->work, &x->batch, steady(), INFINITY));
    memcpy(want, x->result, sizeof want);
    for (int k = 0; k < ITEMS; ++k) {
      x->item[k].status = SN_GRADIENT_PENDING;
      x->item[k].bar = &one;
    }
    assert_true(sn_gradient_run(x->work, &x->batch, steady(), INFINITY));
    assert_memory_equal(want, x->result, sizeof want);
    close_fixture(x);
  }
}

// Two phases have the bits of one, from any number of threads and after any pauses; and so has a way back that is
// taken again.
static void phases_threads_pauses(void **state) {
  (void)state;
  static Result want[ITEMS];
  static Path path[ITEMS];
  for (int method = SN_GRADIENT_SWEEP; method <= SN_GRADIENT_PRODUCTS; ++method)
    for (int threads = 1; threads <= 4; ++threads) {
      Fixture *x = open_fixture(threads, true);
      x->batch.settings.method = (SnGradientMethod)method;
      for (int k = 0; k < ITEMS; ++k) x->functional[k].cost = 0.3;
      two_phases(x, steady(), INFINITY);
      if (threads == 1) {
        memcpy(want, x->result, sizeof want);
        memcpy(path, x->path, sizeof path);
        for (int k = 0; k < ITEMS; ++k) assert_true(want[k].norm > 0 && want[k].steps == STEPS);
      }
      assert_memory_equal(want, x->result, sizeof want);
      // In one go, the bars being known.
      CountingClock count = {0};
      const SnClock clock = counting_clock(&count);
      memset(x->result, 0xff, sizeof want);
      memset(x->path, 0, sizeof path);
      for (int k = 0; k < ITEMS; ++k) x->item[k].status = SN_GRADIENT_PENDING;
      while (!sn_gradient_run(x->work, &x->batch, &clock, (double)atomic_load(&count.reads) + 9)) continue;
      assert_memory_equal(want[1].ctrl, x->result[1].ctrl, sizeof want->ctrl);
      assert_memory_equal(path, x->path, sizeof path);
      // Forward with pauses, back with pauses.
      memset(x->result, 0xff, sizeof want);
      memset(x->path, 0, sizeof path);
      two_phases(x, &clock, 8 + (double)atomic_load(&count.reads));
      assert_memory_equal(want, x->result, sizeof want);
      assert_memory_equal(path, x->path, sizeof path);
      // Back again: the clock is read for items, worlds and steps on the way back, not for steps forward.
      memset(x->result, 0xff, sizeof want);
      atomic_store(&count.reads, 0);
      for (int k = 0; k < ITEMS; ++k) x->item[k].status = SN_GRADIENT_ROLLED;
      assert_true(sn_gradient_run(x->work, &x->batch, &clock, 1e9));
      assert_true(threads > 1 || atomic_load(&count.reads) <= ITEMS * (2 * ROWS + 1) + 2);
      for (int k = 0; k < ITEMS; ++k) {
        assert_int_equal(x->item[k].status, SN_GRADIENT_DONE);
        assert_memory_equal(want[k].ctrl, x->result[k].ctrl, sizeof want->ctrl);
        assert_memory_equal(want[k].act, x->result[k].act, sizeof want->act);
      }
      close_fixture(x);
    }
}

static bool all_zero(const sn_real *v, int n) {
  for (int i = 0; i < n; ++i)
    if (v[i] != 0) return false;
  return true;
}

// One diverges on its way forward: it stays so, has no rows from there on and no gradient. The others know nothing of
// it. A place where nothing is kept is made anew.
static void divergence(void **state) {
  (void)state;
  static Result want[ITEMS];
  Fixture *x = open_fixture(2, true);
  two_phases(x, steady(), INFINITY);
  memcpy(want, x->result, sizeof want);
  x->item[2].max_velocity = 1e-3;
  x->batch.forward = true;
  for (int k = 0; k < ITEMS; ++k) x->item[k].status = SN_GRADIENT_PENDING;
  assert_true(sn_gradient_run(x->work, &x->batch, steady(), INFINITY));
  assert_int_equal(x->item[2].status, SN_GRADIENT_DIVERGED);
  assert_true(isinf(x->item[2].cost) && x->item[2].steps == 0 && isnan(x->path[2].qpos[0]));
  x->batch.forward = false;
  memset(x->result, 0xff, sizeof want);
  for (int k = 0; k < ITEMS; ++k) x->item[k].status = SN_GRADIENT_ROLLED;
  assert_true(sn_gradient_run(x->work, &x->batch, steady(), INFINITY));
  for (int k = 0; k < ITEMS; ++k) {
    const Result *r = &x->result[k];
    if (k != 2)
      assert_memory_equal(want[k].ctrl, r->ctrl, sizeof r->ctrl);
    else
      assert_true(all_zero(r->ctrl, STEPS * NU) && all_zero(r->qpos, NV) && all_zero(r->act, NA));
    assert_int_equal(x->item[k].status, k == 2 ? SN_GRADIENT_DIVERGED : SN_GRADIENT_DONE);
  }
  // Half of its steps: another rollout than the one that is kept.
  x->item[0].nstep = STEPS / 2;
  x->item[0].status = SN_GRADIENT_ROLLED;
  x->bar[0] = (SnTrajectoryBar){.cost = 1};
  assert_true(sn_gradient_run(x->work, &x->batch, steady(), INFINITY));
  assert_true(x->item[0].status == SN_GRADIENT_DONE && x->item[0].steps == STEPS / 2 && x->item[0].norm > 0);
  close_fixture(x);
}

static void refused(const SnModel *m, const SnTrajectoryBar *bar, SnCode code, const char *words) {
  SnError err = {0};
  assert_int_equal(sn_trajectory_bar_check(m, bar, STEPS, &err), code);
  if (!strstr(err.text, words)) fail_msg("'%s' does not say '%s'", err.text, words);
}

static void refusals(void **state) {
  (void)state;
  Fixture *x = open_fixture(1, true);
  const SnModel *m = x->body->m;
  Functional *f = &x->functional[0];
  SnTrajectoryBar bar = bar_of(m, f, &x->path[0]);
  assert_int_equal(sn_trajectory_bar_check(m, &bar, STEPS, NULL), SN_OK);
  static const char *const names[] = {"inside", "user"};
  for (int i = 0; i < 2; ++i) {
    char words[80];
    const int at = m->sensor_adr[sn_model_find(m, SN_NAME_SENSOR, names[i])];
    f->on_sensor[STEPS * m->nsensordata + at] = SN_R(1e-9);
    snprintf(words, sizeof words, "bar of sensordata[%d][%d]: sensor '%s' has no gradient", STEPS, at, names[i]);
    refused(m, &bar, SN_ERR_UNSUPPORTED, words);
    f->on_sensor[STEPS * m->nsensordata + at] = 0;
  }
  f->on_sensor[2 * m->nsensordata] = (sn_real)NAN;
  refused(m, &bar, SN_ERR_ARGUMENT, "bar of sensordata[2][0]: not finite");
  bar.sensordata = NULL;
  f->on_qvel[3 * NV + 1] = (sn_real)INFINITY;
  refused(m, &bar, SN_ERR_ARGUMENT, "bar of qvel[3][1]: not finite");
  bar.qvel = NULL;
  f->on_ctrl[STEPS * NU - 1] = (sn_real)NAN;
  refused(m, &bar, SN_ERR_ARGUMENT, "bar of ctrl[19][3]: not finite");
  bar.ctrl = NULL;
  bar.cost = (double)NAN;
  refused(m, &bar, SN_ERR_ARGUMENT, "bar of cost: not finite");
  close_fixture(x);
}

static void no_memory(void **state) {
  (void)state;
  Fixture *x = open_fixture(2, true);
  CountingClock count = {0};
  const SnClock clock = counting_clock(&count);
  two_phases(x, &clock, INFINITY);
  const long before = sn_allocations();
  two_phases(x, &clock, INFINITY);
  two_phases(x, &clock, 60);
  assert_true(sn_allocations() == before);
  close_fixture(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(parts),      cmocka_unit_test(last_state),
                                     cmocka_unit_test(cost_alone), cmocka_unit_test(phases_threads_pauses),
                                     cmocka_unit_test(divergence), cmocka_unit_test(refusals),
                                     cmocka_unit_test(no_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
