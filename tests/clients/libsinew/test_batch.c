// Batches of libsinew: the same as single steps, whatever the threads; what is refused.
#include "tests/clients/libsinew/batch_fixture.h"

#include <math.h>

#include "clients/libsinew/batch_private.h"
#include "tests/support/allocations.h"

static SinewModel *model;
static SinewTask *task;
static SinewBackend *cpu, *cpu_one;

static int setup(void **state) {
  (void)state;
  model = test_model_of_text(body_xml);
  task = test_task(body_task);
  cpu = test_cpu(2);
  cpu_one = test_cpu(1);
  const SinewSizes *s = sinew_model_sizes(model);
  assert_true(s->nq == NQ && s->nv == NV && s->na == NA && s->nu == NU && s->nsensordata == NS);
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

static void assert_same(const double *a, const double *b, size_t n) { assert_memory_equal(a, b, n * sizeof *a); }

// ---- values ----

// Compares rollout i with one body that is stepped; its sensors with those of a body put into each state.
static void compare_with_steps(const Rollouts *x, int i) {
  SinewError err;
  SinewData *data = sinew_data_create(model, &err), *looker = sinew_data_create(model, &err);
  SinewState s = {x->time[i], x->qpos + i * NQ, x->qvel + i * NV, x->act + i * NA, x->mocap + i * 7};
  test_accepted(sinew_data_set_state(data, &s, &err), &err);
  for (int t = 0; t <= T; ++t) {
    const int row = i * ROWS + t;
    const double *ctrl = x->ctrl + (i * T + (t < T ? t : T - 1)) * NU;
    const SinewState now = sinew_data_state(data);
    assert_true(now.time == x->out_time[row]);
    assert_same(now.qpos, x->out_qpos + row * NQ, NQ);
    assert_same(now.qvel, x->out_qvel + row * NV, NV);
    assert_same(now.act, x->out_act + row * NA, NA);
    test_accepted(sinew_data_set_state(looker, &now, &err), &err);
    memcpy(sinew_data_array(looker, "ctrl", NULL, NULL), ctrl, NU * sizeof *ctrl);
    test_accepted(sinew_forward(looker, &err), &err);
    assert_same(sinew_data_array(looker, "sensordata", NULL, NULL), x->out_sensordata + row * NS, NS);
    memcpy(sinew_data_array(data, "ctrl", NULL, NULL), ctrl, NU * sizeof *ctrl);
    if (t < T) test_accepted(sinew_step(data, 1, &err), &err);
  }
  sinew_data_free(looker);
  sinew_data_free(data);
}

static void test_rollouts_are_steps(void **state) {
  (void)state;
  static Rollouts x;
  SinewBatch *batch = make_batch(model, NULL, cpu, false);
  random_rollouts(&x, 1);
  const SinewRollouts r = rollouts_of(&x);
  run_batch(batch, &r);
  for (int i = 0; i < N; ++i) {
    compare_with_steps(&x, i);
    assert_true(x.status[i] == SINEW_OK && x.good_states[i] == ROWS && x.cost[i] == 0);
  }
  assert_int_equal(sinew_batch_terms(batch), 0);
  SinewBatch *with = make_batch(model, NULL, cpu, true);
  assert_true(sinew_batch_memory(batch) > 1000 && sinew_batch_memory(with) > sinew_batch_memory(batch) + 8 * N * ROWS);
  sinew_batch_free(with);
  const SinewState start = sinew_batch_initial(batch);
  assert_true(start.time == 0 && start.qpos[0] == 1 && start.qvel[0] == 0 && start.mocap[0] == 0.3);
  sinew_batch_free(batch);
}

// Threads, and that a batch keeps its rollouts, change no bit.
static void test_any_threads_and_kept(void **state) {
  (void)state;
  static Rollouts x, y;
  random_rollouts(&x, 2);
  y = x;
  SinewBatch *batch = make_batch(model, task, cpu_one, false);
  SinewRollouts r = rollouts_of(&x);
  run_batch(batch, &r);
  sinew_batch_free(batch);
  r = rollouts_of(&y);
  for (int kept = 0; kept < 2; ++kept) {
    batch = make_batch(model, task, cpu, kept);
    memset(y.out_time, 0, sizeof y - offsetof(Rollouts, out_time));
    run_batch(batch, &r);
    assert_memory_equal(&x, &y, sizeof x);
    run_batch(batch, &r);  // again in the same memory
    assert_memory_equal(&x, &y, sizeof x);
    sinew_batch_free(batch);
  }
}

enum { HALF = T / 2 };

// Runs half 0 or 1 of the rollouts from where `y` stands, and puts it at the end of it.
static void run_half(SinewBatch *batch, const Rollouts *x, int half, Rollouts *y) {
  for (int i = 0; i < N; ++i)
    memcpy(y->ctrl + i * HALF * NU, x->ctrl + (i * T + half * HALF) * NU, HALF * NU * sizeof(double));
  SinewRollouts r = rollouts_of(y);
  r.steps = HALF;
  run_batch(batch, &r);
  for (int i = 0; i < N; ++i) {
    const int row = i * (HALF + 1) + HALF;
    y->time[i] = y->out_time[row];
    memcpy(y->qpos + i * NQ, y->out_qpos + row * NQ, NQ * sizeof(double));
    memcpy(y->qvel + i * NV, y->out_qvel + row * NV, NV * sizeof(double));
    memcpy(y->act + i * NA, y->out_act + row * NA, NA * sizeof(double));
  }
  memcpy(y->warmstart, y->out_warmstart, sizeof y->warmstart);
}

// Whether y ends where the rollouts of x do, to the bit.
static bool ends_alike(const Rollouts *x, const Rollouts *y) {
  bool same = memcmp(x->out_warmstart, y->out_warmstart, sizeof x->out_warmstart) == 0;
  for (int i = 0; i < N; ++i) {
    const int row = i * ROWS + T;
    same = same && x->out_time[row] == y->time[i];
    same = same && memcmp(x->out_qpos + row * NQ, y->qpos + i * NQ, NQ * sizeof(double)) == 0;
    same = same && memcmp(x->out_qvel + row * NV, y->qvel + i * NV, NV * sizeof(double)) == 0;
    same = same && memcmp(x->out_act + row * NA, y->act + i * NA, NA * sizeof(double)) == 0;
  }
  return same;
}

// Two rollouts, the second from the end of the first with its warm start, are one, by each integrator; without the warm
// start the solver ends elsewhere within its tolerance.
static void test_chained(void **state) {
  (void)state;
  static Rollouts x, y;
  SinewError err;
  SinewOptions options = sinew_default_options();
  test_accepted(sinew_model_get_options(model, &options, &err), &err);
  for (int k = 0; k < 6; ++k) {
    static const int integrator[] = {0, 1, 3};  // mjINT_EULER, mjINT_RK4, mjINT_IMPLICITFAST
    options.integrator = integrator[k / 2];
    SinewModel *m = sinew_model_with_options(model, &options, &err);
    SinewBatch *batch = make_batch(m, task, cpu, k & 1);
    random_rollouts(&x, 21);
    y = x;
    const SinewRollouts r = rollouts_of(&x);
    run_batch(batch, &r);
    run_half(batch, &x, 0, &y);
    Rollouts cold = y;
    run_half(batch, &x, 1, &y);
    assert_true(ends_alike(&x, &y));
    memset(cold.warmstart, 0, sizeof cold.warmstart);
    run_half(batch, &x, 1, &cold);
    assert_false(ends_alike(&x, &cold));
    sinew_batch_free(batch);
    sinew_model_free(m);
  }
}

// The cost is the sum of its terms, and the planner's; schedules of targets begin at each rollout's own time.
static void test_cost(void **state) {
  (void)state;
  static Rollouts x;
  SinewError err;
  SinewBatch *batch = make_batch(model, task, cpu, false);
  SinewPlannerDef def = sinew_default_planner();
  def.model = model;
  def.task = task;
  def.backend = cpu;
  SinewPlanner *p = sinew_planner_create(&def, &err);
  random_rollouts(&x, 3);
  for (int i = 0; i < N; ++i) {  // the planner asks for quaternions of about unit length
    double *q = x.qpos + i * NQ, n = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    for (int k = 0; k < 4; ++k) q[k] /= n;
  }
  const SinewRollouts r = rollouts_of(&x);
  run_batch(batch, &r);
  assert_int_equal(sinew_batch_terms(batch), 4);
  for (int i = 0; i < N; ++i) {
    double cost, sum = 0;
    SinewState s = {x.time[i], x.qpos + i * NQ, x.qvel + i * NV, x.act + i * NA, x.mocap + i * 7};
    test_accepted(sinew_planner_evaluate(p, &s, x.ctrl + i * T * NU, T, &cost, NULL, &err), &err);
    for (int k = 0; k < 4; ++k) sum += x.term[i * 4 + k];
    assert_true(fabs(sum - x.cost[i]) <= 1e-14 * cost);
    if (fabs(cost - x.cost[i]) > 1e-9 * cost) fail_msg("rollout %d costs %.12g, planned %.12g", i, x.cost[i], cost);
  }
  sinew_planner_free(p);
  sinew_batch_free(batch);
}

static void test_one_for_all(void **state) {
  (void)state;
  static Rollouts x, y;
  for (int kept = 0; kept < 2; ++kept) {
    SinewBatch *batch = make_batch(model, task, cpu, kept);
    random_rollouts(&x, 4);
    for (int i = 1; i < N; ++i) {
      x.time[i] = x.time[0];
      memcpy(x.qpos + i * NQ, x.qpos, NQ * sizeof(double));
      memcpy(x.qvel + i * NV, x.qvel, NV * sizeof(double));
      memcpy(x.act + i * NA, x.act, NA * sizeof(double));
      memcpy(x.mocap + i * 7, x.mocap, 7 * sizeof(double));
    }
    y = x;
    SinewRollouts r = rollouts_of(&x), s = rollouts_of(&y);
    s.one_state = true;
    run_batch(batch, &r);
    run_batch(batch, &s);
    assert_memory_equal(&x, &y, sizeof x);
    for (int i = 1; i < N; ++i) memcpy(x.ctrl + i * T * NU, x.ctrl, T * NU * sizeof(double));
    memcpy(y.ctrl, x.ctrl, sizeof y.ctrl);
    s.one_ctrl = true;
    run_batch(batch, &r);
    run_batch(batch, &s);
    assert_memory_equal(&x, &y, sizeof x);
    sinew_batch_free(batch);
  }
}

// Arrays that are not there: rest, zero controls, no results.
static void test_nothing_given(void **state) {
  (void)state;
  static Rollouts x, y;
  static const double rest[NQ] = {1}, goal[7] = {0.3, 0, 0.2, 1};
  for (int kept = 0; kept < 2; ++kept) {
    SinewBatch *batch = make_batch(model, NULL, cpu, kept);
    memset(&x, 0, sizeof x);
    memset(&y, 0, sizeof y);
    for (int i = 0; i < N; ++i) {
      memcpy(x.qpos + i * NQ, rest, sizeof rest);
      memcpy(x.mocap + i * 7, goal, sizeof goal);
    }
    SinewRollouts r = rollouts_of(&x), s = rollouts_of(&y);
    run_batch(batch, &r);
    s.time = s.qpos = s.qvel = s.act = s.mocap = s.ctrl = NULL;
    run_batch(batch, &s);
    assert_memory_equal(x.out_time, y.out_time, sizeof x - offsetof(Rollouts, out_time));
    assert_true(y.out_time[T] > 0 && y.out_qpos[NQ * T] == 1);
    SinewRollouts none = sinew_default_rollouts();
    none.count = none.steps = 1;
    run_batch(batch, &none);
    sinew_batch_free(batch);
  }
}

// One rollout that diverges leaves the others as they are.
static void test_divergence(void **state) {
  (void)state;
  enum { BAD = 2 };
  static Rollouts x, y;
  for (int kept = 0; kept < 2; ++kept) {
    SinewBatch *batch = make_batch(model, task, cpu, kept);
    random_rollouts(&x, 5);
    y = x;
    y.qvel[BAD * NV + 3] = 9e9;
    const SinewRollouts r = rollouts_of(&x);
    SinewRollouts s = rollouts_of(&y);
    unsigned warnings[N];
    s.warnings = warnings;
    run_batch(batch, &r);
    run_batch(batch, &s);
    for (int i = 0; i < N; ++i) {
      const bool bad = i == BAD;
      assert_int_equal(y.status[i], bad ? SINEW_ERR_DIVERGED : SINEW_OK);
      assert_int_equal(warnings[i] & SINEW_WARN_BAD_STATE, bad ? SINEW_WARN_BAD_STATE : 0);
      assert_true(bad ? isinf(y.cost[i]) : y.cost[i] == x.cost[i]);
      assert_true(bad ? y.good_states[i] < ROWS : y.good_states[i] == ROWS);
      for (int t = 0; t < ROWS; ++t) {
        const double *q = y.out_qpos + (i * ROWS + t) * NQ;
        const bool gone = t >= y.good_states[i];
        assert_true(isnan(y.out_warmstart[i * NV]) == bad);
        assert_true(isnan(q[0]) == gone && isnan(y.out_time[i * ROWS + t]) == gone);
        assert_true(isnan(y.out_sensordata[(i * ROWS + t) * NS]) == gone);
        if (!bad) assert_same(q, x.out_qpos + (i * ROWS + t) * NQ, NQ);
      }
    }
    sinew_batch_free(batch);
  }
}

static void test_max_velocity(void **state) {
  (void)state;
  static Rollouts x;
  SinewError err;
  SinewBatchDef def = sinew_default_batch();
  def.model = model;
  def.backend = cpu;
  def.capacity = N;
  def.steps = T;
  def.max_velocity = 1e-3;
  SinewBatch *batch = sinew_batch_create(&def, &err);
  random_rollouts(&x, 6);
  const SinewRollouts r = rollouts_of(&x);
  run_batch(batch, &r);
  for (int i = 0; i < N; ++i) assert_true(x.status[i] == SINEW_ERR_DIVERGED && x.good_states[i] == 0);
  sinew_batch_free(batch);
}

// Contacts from distance in the steps themselves change them; in derivatives only they do not.
static void test_cfd(void **state) {
  (void)state;
  static Rollouts x[3];
  for (int use = SINEW_CFD_NONE; use <= SINEW_CFD_FORWARD; ++use) {
    SinewError err;
    SinewCfd cfd = sinew_default_cfd();
    SinewBatchDef def = sinew_default_batch();
    cfd.use = (SinewCfdUse)use;
    cfd.bodies = (const char *const[]){"lower", NULL};
    def.model = model;
    def.backend = cpu;
    def.capacity = N;
    def.steps = T;
    def.cfd = &cfd;
    SinewBatch *batch = sinew_batch_create(&def, &err);
    if (!batch) fail_msg("%s", err.text);
    random_rollouts(&x[use], 7);
    const SinewRollouts r = rollouts_of(&x[use]);
    run_batch(batch, &r);
    sinew_batch_free(batch);
  }
  assert_memory_equal(&x[SINEW_CFD_NONE], &x[SINEW_CFD_BACKWARD], sizeof x[0]);
  assert_memory_not_equal(x[SINEW_CFD_NONE].out_qpos, x[SINEW_CFD_FORWARD].out_qpos, sizeof x[0].out_qpos);
}

// ---- memory, misuse ----

static void test_nothing_is_allocated(void **state) {
  (void)state;
  static Rollouts x;
  static double ctrl_bar[N * T * NU], qpos_bar[N * NQ];
  SinewError err;
  SinewBatch *batch = make_batch(model, task, cpu, true);
  SinewTrajectoryBars bars = sinew_default_bars();
  SinewGradients out = sinew_default_gradients();
  random_rollouts(&x, 8);
  const SinewRollouts r = rollouts_of(&x);
  bars.coordinates = SINEW_ARRAY;
  bars.qpos = x.out_qpos;
  out.ctrl = ctrl_bar;
  out.qpos = qpos_bar;
  const long before = sn_allocations();
  for (int k = 0; k < 3; ++k) {
    test_accepted(sinew_batch_rollout(batch, &r, &err), &err);
    test_accepted(sinew_batch_vjp(batch, &bars, &out, &err), &err);
  }
  assert_int_equal(sn_allocations(), before);
  sinew_batch_free(batch);
  assert_true(before > 0);
}

static void test_definitions_refused(void **state) {
  (void)state;
  SinewError err;
  SinewBatchDef good = sinew_default_batch();
  SinewCfd strange = sinew_default_cfd();
  strange.use = SINEW_CFD_BACKWARD;
  strange.bodies = (const char *const[]){"nose", NULL};
  good.model = model;
  good.backend = cpu;
  good.capacity = good.steps = 1;
  SinewBatchDef def[10];
  for (int i = 0; i < 10; ++i) def[i] = good;
  def[0].size = 1;
  def[1].model = NULL;
  def[2].backend = NULL;
  def[3].capacity = 0;
  def[4].capacity = 1 << 21;
  def[5].steps = 0;
  def[6].steps = 1 << 21;
  def[7].max_velocity = -1;
  def[8].max_velocity = (double)NAN;
  def[9].cfd = &strange;
  static const char *const word[] = {"size",           "model is NULL",     "backend is NULL",
                                     "capacity: 0",    "capacity: 2097152", "steps: 0",
                                     "steps: 2097152", "max_velocity",      "max_velocity"};
  for (int i = 0; i < 9; ++i) {
    assert_null(sinew_batch_create(&def[i], &err));
    test_refused(err.status, &err, SINEW_ERR_ARGUMENT, word[i]);
  }
  assert_null(sinew_batch_create(&def[9], &err));
  test_refused(err.status, &err, SINEW_ERR_NOT_FOUND, "nose");
  assert_null(sinew_batch_create(NULL, &err));
  test_refused(err.status, &err, SINEW_ERR_ARGUMENT, "NULL");
  assert_null(sinew_batch_create(NULL, NULL));
}

static void test_rollouts_refused(void **state) {
  (void)state;
  static Rollouts x;
  SinewError err;
  SinewBatch *batch = make_batch(model, NULL, cpu, false);
  struct {
    double *at, value;
    const char *word;
  } numbers[] = {{x.time + 1, (double)NAN, "time[0] of rollout 1: nan"},
                 {x.qpos + 2 * NQ + 3, (double)INFINITY, "qpos[3] of rollout 2: inf"},
                 {x.qvel, 2e10, "qvel[0] of rollout 0: 2e+10"},
                 {x.act + NA, (double)NAN, "act[0] of rollout 1"},
                 {x.mocap + 8, -1e11, "mocap[0][1] of rollout 1"},
                 {x.warmstart + 4, (double)NAN, "qacc_warmstart[0] of rollout 1"},
                 {x.ctrl + N * T * NU - 1, (double)NAN, "ctrl[11][2] of rollout 4"}};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) {
    random_rollouts(&x, 9);
    *numbers[i].at = numbers[i].value;
    const SinewRollouts r = rollouts_of(&x);
    test_refused(sinew_batch_rollout(batch, &r, &err), &err, SINEW_ERR_ARGUMENT, numbers[i].word);
    assert_true(x.good_states[0] == 0);  // nothing was written
  }
  random_rollouts(&x, 9);
  SinewRollouts r[5];
  for (int i = 0; i < 5; ++i) r[i] = rollouts_of(&x);
  r[0].size = 0;
  r[1].count = 0;
  r[2].count = N + 1;
  r[3].steps = 0;
  r[4].steps = T + 1;
  static const char *const word[] = {"size", "count: 0", "capacity of the batch, 5", "steps: 0",
                                     "steps of the batch, 12"};
  for (int i = 0; i < 5; ++i) test_refused(sinew_batch_rollout(batch, &r[i], &err), &err, SINEW_ERR_ARGUMENT, word[i]);
  test_refused(sinew_batch_rollout(batch, NULL, &err), &err, SINEW_ERR_ARGUMENT, "NULL");
  test_refused(sinew_batch_rollout(NULL, &r[0], &err), &err, SINEW_ERR_ARGUMENT, "batch is NULL");
  assert_null(sinew_batch_model(NULL));
  assert_int_equal(sinew_batch_memory(NULL), 0);
  assert_int_equal(sinew_batch_terms(NULL), 0);
  assert_null(sinew_batch_initial(NULL).qpos);
  sinew_batch_free(NULL);
  sinew_batch_free(batch);
}

// Debug builds notice two threads on a batch, or on batches of one backend.
static void test_two_threads(void **state) {
  (void)state;
  static Rollouts x;
  SinewError err;
  SinewBatch *batch = make_batch(model, NULL, cpu, false);
  ApiGuard *const guards[] = {&batch->guard, &cpu->guard};
  random_rollouts(&x, 10);
  const SinewRollouts r = rollouts_of(&x);
  for (int i = 0; i < 2; ++i) {
    atomic_store(&guards[i]->busy, 1);  // as a thread in a call leaves it
    const SinewStatus status = sinew_batch_rollout(batch, &r, &err);
#ifdef NDEBUG
    test_accepted(status, &err);
#else
    test_refused(status, &err, SINEW_ERR_STATE, "another thread");
#endif
    atomic_store(&guards[i]->busy, 0);
    run_batch(batch, &r);
  }
  sinew_batch_free(batch);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rollouts_are_steps),
                                     cmocka_unit_test(test_any_threads_and_kept),
                                     cmocka_unit_test(test_chained),
                                     cmocka_unit_test(test_cost),
                                     cmocka_unit_test(test_one_for_all),
                                     cmocka_unit_test(test_nothing_given),
                                     cmocka_unit_test(test_divergence),
                                     cmocka_unit_test(test_max_velocity),
                                     cmocka_unit_test(test_cfd),
                                     cmocka_unit_test(test_nothing_is_allocated),
                                     cmocka_unit_test(test_definitions_refused),
                                     cmocka_unit_test(test_rollouts_refused),
                                     cmocka_unit_test(test_two_threads)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
