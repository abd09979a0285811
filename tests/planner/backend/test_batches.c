// Batches of rollouts that differ in state, controls and targets: the bits of single rollouts from any number of
// threads and after any pauses; with a cost and without; what they write; nothing is taken from the heap.
#include "physics/sensor/sensor.h"
#include "physics/step/step.h"
#include "tests/planner/counting_clock.h"
#include "tests/planner/sensing_body.h"
#include "tests/support/allocations.h"
#include "tests/support/tolerance.h"

enum { STEPS = SENSING_STEPS, ROWS = STEPS + 1, COUNT = 9, TERMS = 7, SENSORS = 68 };

// All that a rollout writes.
typedef struct Output {
  double cost, term[TERMS];
  int warn, steps;
  sn_real time[ROWS], qpos[ROWS * SENSING_NQ], qvel[ROWS * SENSING_NV], act[ROWS * SENSING_NA];
  sn_real qacc[ROWS * SENSING_NV], each[ROWS], sensordata[ROWS * SENSORS];
} Output;

typedef struct Fixture {
  SensingBody *body;
  SnPool *pool;
  SnBackend *backend;
  SnBackendModel *model;
  SensingInput input[COUNT];
  SnState state[COUNT];
  sn_real ctrl[COUNT * STEPS * SENSING_NU], target[COUNT * ROWS * SENSING_TARGETS];
  SnTrajectory out[COUNT];
  Output output[COUNT];
  double cost[COUNT], term[COUNT * TERMS];
  unsigned char done[COUNT];
  int warn[COUNT], steps[COUNT];
  SnBatch batch;
} Fixture;

static SnTrajectory trajectory(Output *o) {
  return (SnTrajectory){.qpos = o->qpos,
                        .qvel = o->qvel,
                        .act = o->act,
                        .cost = o->each,
                        .qacc = o->qacc,
                        .time = o->time,
                        .sensordata = o->sensordata};
}

static Fixture *open_fixture(int threads, bool with_cost) {
  SnError err = {0};
  Fixture *x = calloc(1, sizeof *x);
  x->body = sensing_open();
  const SnCost *cost = with_cost ? x->body->cost : NULL;
  const int ntarget = x->body->cost->ntarget;
  assert_true(x->body->m->nsensordata <= SENSORS && x->body->cost->nterm == TERMS);
  x->pool = sn_pool_create(threads, &err);
  x->backend = sn_backend_cpu(x->pool, &err);
  assert_true(sn_backend_has(x->backend, SN_BACKEND_BATCHES));
  x->model = sn_backend_load(x->backend, x->body->m, cost, STEPS, &err);
  if (!x->model) fail_msg("%s", err.text);
  for (int k = 0; k < COUNT; ++k) {
    x->state[k] = sensing_input(x->body, &x->input[k], k);
    memcpy(x->ctrl + k * STEPS * SENSING_NU, x->input[k].ctrl, sizeof x->input[k].ctrl);
    memcpy(x->target + k * ROWS * ntarget, x->input[k].target, sizeof(sn_real) * ROWS * (size_t)ntarget);
    x->out[k] = trajectory(&x->output[k]);
  }
  x->batch = (SnBatch){.state = x->state,
                       .nstate = COUNT,
                       .ctrl = x->ctrl,
                       .nctrl = COUNT,
                       .target = with_cost ? x->target : NULL,
                       .ntable = with_cost ? COUNT : 1,
                       .nstep = STEPS,
                       .count = COUNT,
                       .max_velocity = 1e3,
                       .cost = x->cost,
                       .term = x->term,
                       .done = x->done,
                       .warn = x->warn,
                       .steps = x->steps,
                       .out = x->out};
  return x;
}

static void close_fixture(Fixture *x) {
  sn_backend_unload(x->backend, x->model);
  sn_backend_free(x->backend);
  sn_pool_free(x->pool);
  sensing_close(x->body);
  free(x);
}

// Runs the batch anew; `more` readings of the clock at a time, 0: without a deadline. Returns the calls.
static int run(Fixture *x, int more) {
  const int nterm = x->batch.target ? TERMS : 0;
  CountingClock count = {0};
  const SnClock clock = counting_clock(&count);
  int calls = 1;
  memset(x->output, 0x55, sizeof x->output);
  memset(x->done, 0, sizeof x->done);
  while (!sn_backend_rollouts(x->backend, x->model, &x->batch, &clock,
                              more > 0 ? (double)atomic_load(&count.reads) + more : INFINITY))
    ++calls;
  for (int i = 0; i < x->batch.count; ++i) {
    Output *o = &x->output[i];
    o->cost = x->cost[i];
    memset(o->term, 0, sizeof o->term);
    memcpy(o->term, x->term + i * nterm, sizeof(double) * (size_t)nterm);
    o->warn = x->warn[i];
    o->steps = x->steps[i];
    assert_int_equal(x->done[i], 1);
  }
  return calls;
}

// The same rollout alone, by a runner of its own.
static void alone(const SensingBody *b, const SnCost *cost, const SnState *state, const sn_real *ctrl,
                  const sn_real *target, Output *o) {
  SnError err = {0};
  SnRolloutRunner *r = sn_rollout_runner_create(b->m, cost, &err);
  const SnClock clock = sn_clock_monotonic();
  const SnTrajectory out = trajectory(o);
  memset(o, 0x55, sizeof *o);
  memset(o->term, 0, sizeof o->term);
  sn_rollout_runner_begin(r, state, ctrl, target, STEPS, 1e3, &out);
  assert_int_equal(sn_rollout_runner_run(r, &clock, INFINITY), SN_ROLLOUT_DONE);
  o->cost = sn_rollout_runner_cost(r, o->term);
  o->warn = sn_rollout_runner_rollout(r)->warn;
  o->steps = STEPS;
  sn_rollout_runner_free(r);
}

static void same(const Output *a, const Output *b) { assert_memory_equal(a, b, sizeof *a); }

static void threads_and_pauses(void **state) {
  (void)state;
  for (int with_cost = 0; with_cost < 2; ++with_cost) {
    Output *want = calloc(COUNT, sizeof *want);
    for (int threads = 1; threads <= 4; ++threads) {
      Fixture *x = open_fixture(threads, with_cost);
      const SensingBody *b = x->body;
      for (int k = 0; threads == 1 && k < COUNT; ++k) {
        alone(b, with_cost ? b->cost : NULL, &x->state[k], x->input[k].ctrl, x->input[k].target, &want[k]);
        assert_true(with_cost ? want[k].cost > 0 : want[k].cost == 0);
        assert_true(k == 0 || memcmp(want[k].qpos, want[0].qpos, sizeof want->qpos) != 0);
      }
      assert_int_equal(run(x, 0), 1);
      for (int k = 0; k < COUNT; ++k) same(&want[k], &x->output[k]);
      assert_true(run(x, 25) > 5);
      for (int k = 0; k < COUNT; ++k) same(&want[k], &x->output[k]);
      close_fixture(x);
    }
    free(want);
  }
}

// One state for all with controls of each one's own, and the other way round.
static void shared_parts(void **state) {
  (void)state;
  Output want;
  Fixture *x = open_fixture(2, true);
  const int ntarget = x->body->cost->ntarget;
  for (int part = 0; part < 3; ++part) {
    x->batch.nstate = part == 0 ? 1 : COUNT;
    x->batch.nctrl = part == 1 ? 1 : COUNT;
    x->batch.ntable = part == 2 ? 1 : COUNT;
    run(x, 0);
    for (int k = 0; k < COUNT; ++k) {
      alone(x->body, x->body->cost, &x->state[part == 0 ? 0 : k], x->input[part == 1 ? 0 : k].ctrl,
            x->target + (part == 2 ? 0 : k) * ROWS * ntarget, &want);
      same(&want, &x->output[k]);
    }
  }
  close_fixture(x);
}

// Candidates [3, 3 + COUNT): each has the noise of its own number on its own base.
static void noise_on_each(void **state) {
  (void)state;
  Output want;
  sn_real scratch[3 * (STEPS + 2)], ctrl[STEPS * SENSING_NU];
  const SnNoiseSettings noise = {.seed = 5,
                                 .spacing = 6,
                                 .knots = sn_noise_knots(STEPS, 6, 0),
                                 .interpolation = SN_SPLINE_LINEAR,
                                 .colour = SN_NOISE_PINK,
                                 .scale = SN_R(0.3)};
  Fixture *x = open_fixture(2, true);
  x->batch.noise = &noise;
  for (int first = 0; first < 4; first += 3) {
    x->batch.first = first;
    run(x, 0);
    for (int k = 0; k < COUNT; ++k) {
      memcpy(ctrl, x->input[k].ctrl, sizeof ctrl);
      if (first + k > 0) sn_noise_candidate(x->body->m, &noise, first + k, x->input[k].ctrl, STEPS, scratch, ctrl);
      alone(x->body, x->body->cost, &x->state[k], ctrl, x->input[k].target, &want);
      same(&want, &x->output[k]);
    }
  }
  close_fixture(x);
}

// What is not asked for changes nothing.
static void few_outputs(void **state) {
  (void)state;
  Fixture *x = open_fixture(2, true);
  run(x, 0);
  double cost[COUNT];
  Output first = x->output[0];
  memcpy(cost, x->cost, sizeof cost);
  x->batch.term = NULL;
  x->batch.warn = x->batch.steps = NULL;
  x->out[0] = (SnTrajectory){.sensordata = x->output[0].sensordata};
  memset(x->cost, 0, sizeof cost);
  run(x, 0);
  assert_memory_equal(cost, x->cost, sizeof cost);
  assert_memory_equal(first.sensordata, x->output[0].sensordata, sizeof first.sensordata);
  x->batch.out = NULL;
  memset(x->cost, 0, sizeof cost);
  run(x, 0);
  assert_memory_equal(cost, x->cost, sizeof cost);
  close_fixture(x);
}

// The numbers of sensors that the engine computes, against MuJoCo's in the same state; others are NaN.
static void compare_sensors(SnOracle *o, const sn_real *data) {
  for (int i = 0; i < o->m->nsensor; ++i)
    for (int k = 0; k < o->m->sensor_dim[i]; ++k) {
      const int at = o->m->sensor_adr[i] + k;
      const double ref = o->d->sensordata[at], value = (double)data[at];
      if (!sn_sensor_supported(o->m, i))
        assert_true(isnan(value));
      else if (!(fabs(value - ref) <= SN_TOL(1e-6, 2e-2) * (1 + fabs(ref))))
        fail_msg("sensor %d of type %d: %g, MuJoCo %g", i, o->m->sensor_type[i], value, ref);
    }
}

// A world stepped by hand goes through the same states; MuJoCo has the same sensors there.
static void by_hand(void **state) {
  (void)state;
  Fixture *x = open_fixture(1, false);
  SnOracle *o = &x->body->o;
  const SnModel *m = x->body->m;
  sn_real data[SENSORS];
  run(x, 0);
  for (int k = 0; k < COUNT; ++k) {
    const Output *out = &x->output[k];
    sn_world_set_state(m, &o->w, &x->state[k]);
    for (int t = 0; t < ROWS; ++t) {
      if (t < STEPS) memcpy(o->w.ctrl, x->input[k].ctrl + t * SENSING_NU, sizeof(sn_real) * SENSING_NU);
      assert_memory_equal(o->w.qpos, out->qpos + t * SENSING_NQ, sizeof(sn_real) * SENSING_NQ);
      assert_memory_equal(o->w.qvel, out->qvel + t * SENSING_NV, sizeof(sn_real) * SENSING_NV);
      assert_memory_equal(o->w.act, out->act + t * SENSING_NA, sizeof(sn_real) * SENSING_NA);
      assert_memory_equal(o->w.time, out->time + t, sizeof(sn_real));
      for (int i = 0; i < SENSING_NQ; ++i) o->d->qpos[i] = (double)o->w.qpos[i];
      for (int i = 0; i < SENSING_NV; ++i) o->d->qvel[i] = (double)o->w.qvel[i];
      for (int i = 0; i < SENSING_NA; ++i) o->d->act[i] = (double)o->w.act[i];
      for (int i = 0; i < SENSING_NU; ++i) o->d->ctrl[i] = (double)o->w.ctrl[i];
      for (int i = 0; i < 3; ++i) o->d->mocap_pos[i] = (double)o->w.mocap_pos[i];
      o->d->time = (double)*o->w.time;
      mj_forward(o->mj, o->d);
      sn_forward(m, &o->w, &o->lane);
      sn_sensor_data(m, &o->w, &o->lane, data);
      assert_memory_equal(o->w.qacc, out->qacc + t * SENSING_NV, sizeof(sn_real) * SENSING_NV);
      assert_memory_equal(data, out->sensordata + t * m->nsensordata, sizeof(sn_real) * (size_t)m->nsensordata);
      compare_sensors(o, data);
      if (t < STEPS) sn_integrate(m, &o->w, &o->lane);
    }
  }
  close_fixture(x);
}

static bool all_nan(const sn_real *v, int n) {
  for (int i = 0; i < n; ++i)
    if (!isnan(v[i])) return false;
  return true;
}

// The fastest dof in rows [from, to).
static sn_real fastest(const Output *o, int from, int to) {
  sn_real most = 0;
  for (int i = from * SENSING_NV; i < to * SENSING_NV; ++i) most = sn_max(most, sn_abs(o->qvel[i]));
  return most;
}

static void no_rows(const SnModel *m, const Output *o, int from) {
  const int n = ROWS - from;
  assert_true(all_nan(o->qpos + from * SENSING_NQ, n * SENSING_NQ) && all_nan(o->time + from, n));
  assert_true(all_nan(o->qvel + from * SENSING_NV, n * SENSING_NV) && all_nan(o->each + from, n));
  assert_true(all_nan(o->act + from * SENSING_NA, n * SENSING_NA));
  assert_true(all_nan(o->qacc + from * SENSING_NV, n * SENSING_NV));
  assert_true(all_nan(o->sensordata + from * m->nsensordata, n * m->nsensordata));
}

// A bound on the velocity that some pass: each says after how many steps, and has no rows from there on. The others
// know nothing of it.
static void divergence(void **state) {
  (void)state;
  Fixture *x = open_fixture(2, true);
  Output want[COUNT];
  run(x, 0);
  memcpy(want, x->output, sizeof want);
  int early = 0, never = 0;
  for (int c = 0; c < COUNT; ++c) {
    const sn_real limit = SN_R(0.999) * fastest(&want[c], 0, ROWS);
    x->batch.max_velocity = (double)limit;
    run(x, 7 * c);
    for (int k = 0; k < COUNT; ++k) {
      const Output *o = &x->output[k];
      int t = 0;
      while (t < ROWS && fastest(&want[k], t, t + 1) <= limit) ++t;
      if (t == ROWS) {
        same(&want[k], o);
        ++never;
        continue;
      }
      early += t < STEPS;
      assert_true(isinf(o->cost) && isinf(o->term[0]));
      assert_int_equal(o->steps, t);
      assert_memory_equal(o->qpos, want[k].qpos, sizeof(sn_real) * (size_t)(t * SENSING_NQ));
      assert_memory_equal(o->sensordata, want[k].sensordata, sizeof(sn_real) * (size_t)(t * x->body->m->nsensordata));
      no_rows(x->body->m, o, t);
    }
  }
  print_message("%d diverged on the way, %d not at all\n", early, never);
  assert_true(early > 0 && never > 0);
  close_fixture(x);
}

// A batch that is computed again and again takes nothing from the heap.
static void no_memory(void **state) {
  (void)state;
  Fixture *x = open_fixture(2, true);
  run(x, 0);
  const long before = sn_allocations();
  run(x, 0);
  run(x, 40);
  assert_true(sn_allocations() == before);
  close_fixture(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(threads_and_pauses), cmocka_unit_test(shared_parts), cmocka_unit_test(noise_on_each),
      cmocka_unit_test(few_outputs),        cmocka_unit_test(by_hand),      cmocka_unit_test(divergence),
      cmocka_unit_test(no_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
