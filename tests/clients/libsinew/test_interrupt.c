// Calls that their caller interrupts: it alone is asked, what is interrupted ends, and the handle goes on to work with
// the same numbers as one that nobody has interrupted. The work is long enough to be asked about several times.
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "physics/base/clock.h"
#include "tests/clients/libsinew/batch_fixture.h"
#include "tests/support/slow.h"

enum { LONG = SN_SLOW ? 8000 : 60000 };

static SinewModel *model;
static SinewTask *task;
static double *ctrl;  // (LONG, NU)

static int setup(void **state) {
  (void)state;
  uint64_t seed = 3;
  model = test_model_of_text(body_xml);
  task = test_task(body_task);
  ctrl = calloc((size_t)LONG * NU, sizeof *ctrl);
  for (size_t i = 0; i < (size_t)LONG * NU; ++i) ctrl[i] = 0.3 + 0.3 * test_random(&seed);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  free(ctrl);
  sinew_task_free(task);
  sinew_model_free(model);
  return 0;
}

// Says yes when asked for the time `at`, 1 being the first; 0: never.
typedef struct Caller {
  pthread_t thread;
  atomic_int asked, elsewhere;  // times, and those on other threads
  int at;
  double thinks;          // before it says yes [s]
  SinewPlanner *planner;  // another thread uses it meanwhile; NULL: none
  bool refused;           // and was refused
} Caller;

#ifndef NDEBUG
// Uses a planner that makes a plan for another thread, which debug builds refuse.
static void *intrude(void *user) {
  Caller *c = user;
  c->refused = sinew_planner_reset(c->planner, 0, NULL) == SINEW_ERR_STATE;
  return NULL;
}
#endif

static bool ask(void *user) {
  Caller *c = user;
  if (!pthread_equal(pthread_self(), c->thread)) atomic_fetch_add(&c->elsewhere, 1);
#ifndef NDEBUG
  pthread_t thread;
  if (c->planner && pthread_create(&thread, NULL, intrude, c) == 0) pthread_join(thread, NULL);
#endif
  const bool yes = atomic_fetch_add(&c->asked, 1) + 1 == c->at;
  const struct timespec nap = sn_clock_timespec(c->thinks);
  if (yes) nanosleep(&nap, NULL);
  return yes;
}

static void expect(Caller *c, int at) {
  c->thread = pthread_self();
  c->at = at;
  atomic_store(&c->asked, 0);
}

static void assert_interrupted(const Caller *c, SinewStatus status, const SinewError *err) {
  test_refused(status, err, SINEW_ERR_INTERRUPTED, "interrupted");
  assert_string_equal(sinew_status_name(status), "interrupted");
  assert_int_equal(c->asked, c->at);  // not once more after it has said so
  assert_int_equal(c->elsewhere, 0);
}

// ---- batches ----

// Holds a batch of long rollouts, and the last states and derivatives of the first two of them.
typedef struct Long {
  SinewBackend *cpu;
  SinewBatch *batch;
  double qpos[2 * (LONG + 1) * NQ], ctrl_bar[2 * LONG * NU];
} Long;

static void make_long(Long *x, int threads, bool gradients, Caller *c) {
  SinewError err;
  SinewBatchDef def = sinew_default_batch();
  def.model = model;
  def.backend = x->cpu = test_cpu(threads);
  def.capacity = 2;
  def.steps = LONG;
  def.gradients = gradients;
  def.interrupt = c ? ask : NULL;
  def.interrupt_user = c;
  if (!(x->batch = sinew_batch_create(&def, &err))) fail_msg("%s", err.text);
}

static void free_long(Long *x) {
  sinew_batch_free(x->batch);
  sinew_backend_close(x->cpu);
}

static SinewStatus roll(Long *x, int count, const double *controls, SinewError *err) {
  SinewRollouts r = sinew_default_rollouts();
  r.count = count;
  r.steps = LONG;
  r.one_state = r.one_ctrl = true;
  r.ctrl = controls;
  r.out_qpos = x->qpos;
  return sinew_batch_rollout(x->batch, &r, err);
}

static SinewStatus go_back(Long *x, int count, SinewError *err) {
  static double ones[2 * (LONG + 1) * NV];
  SinewTrajectoryBars bars = sinew_default_bars();
  SinewGradients out = sinew_default_gradients();
  for (int i = 0; i < count; ++i) ones[((size_t)i * (LONG + 1) + 50) * NV] = 1;
  bars.qvel = ones;
  out.ctrl = x->ctrl_bar;
  return sinew_batch_vjp(x->batch, &bars, &out, err);
}

// One rollout on two threads: the caller waits for the other one.
static void test_batches(void **state) {
  (void)state;
  static Long plain, x;
  SinewError err;
  make_long(&plain, 1, true, NULL);
  test_accepted(roll(&plain, 2, ctrl, &err), &err);
  test_accepted(go_back(&plain, 2, &err), &err);
  for (int k = 0; k < 8; ++k) {
    const int threads = 1 + (k & 1), count = 1 + (k >> 1 & 1);
    const bool gradients = k >= 4;
    Caller c = {.at = 0};
    make_long(&x, threads, gradients, &c);
    for (int again = 0; again < 2; ++again) {
      expect(&c, 1 + again);
      assert_interrupted(&c, roll(&x, count, NULL, &err), &err);
    }
    if (gradients) test_refused(go_back(&x, count, &err), &err, SINEW_ERR_STATE, "no rollouts yet");
    expect(&c, 0);
    test_accepted(roll(&x, count, ctrl, &err), &err);
    assert_true(c.asked > 0 && c.elsewhere == 0);
    assert_memory_equal(x.qpos, plain.qpos, sizeof *x.qpos * (size_t)count * (LONG + 1) * NQ);
    for (int again = 0; gradients && again < 2; ++again) {
      expect(&c, 2);
      assert_interrupted(&c, go_back(&x, count, &err), &err);
    }
    expect(&c, 0);
    if (gradients) test_accepted(go_back(&x, count, &err), &err);
    if (gradients) assert_memory_equal(x.ctrl_bar, plain.ctrl_bar, sizeof *x.ctrl_bar * (size_t)count * LONG * NU);
    free_long(&x);
  }
  free_long(&plain);
}

static SinewStatus linearize(Long *x, double *A, SinewError *err) {
  SinewLinearization out = sinew_default_linearization();
  out.A = A;
  return sinew_batch_linearize(x->batch, &out, err);
}

// The other thread has done all the rest before the caller has said yes: the call is interrupted all the same.
static void test_late(void **state) {
  (void)state;
  static Long x;
  SinewError err;
  Caller c = {.at = 0};
  double *A = calloc((size_t)LONG * (2 * NV + NA) * (2 * NV + NA), sizeof *A);
  make_long(&x, 2, true, &c);
  expect(&c, 0);
  test_accepted(roll(&x, 1, ctrl, &err), &err);
  const double begin = sn_clock_now();
  test_accepted(go_back(&x, 1, &err), &err);
  test_accepted(linearize(&x, A, &err), &err);
  c.thinks = sn_clock_now() - begin;
  expect(&c, 1);
  assert_interrupted(&c, go_back(&x, 1, &err), &err);
  expect(&c, 1);
  assert_interrupted(&c, linearize(&x, A, &err), &err);
  free_long(&x);
  free(A);
}

// ---- bodies that settle, planners ----

static SinewPlannerDef planner_def(SinewBackend *cpu, const SinewTask *of, const char *const *settings, Caller *c) {
  SinewPlannerDef def = sinew_default_planner();
  def.model = model;
  def.task = of;
  def.backend = cpu;
  def.settings = settings;
  def.interrupt = ask;
  def.interrupt_user = c;
  return def;
}

static void test_settling(void **state) {
  (void)state;
  static const char *const none[] = {NULL};
  SinewError err;
  char text[3000];
  snprintf(text, sizeof text, "%s\n", body_task);
  char *at = strstr(text, "activation: 0.05");
  memcpy(at, "settle: 60      ", 16);
  SinewTask *slow = test_task(text);
  SinewBackend *cpu = test_cpu(1);
  Caller c = {.at = 0};
  SinewBatchDef def = sinew_default_batch();
  def.model = model;
  def.task = slow;
  def.backend = cpu;
  def.capacity = def.steps = 1;
  def.interrupt = ask;
  def.interrupt_user = &c;
  expect(&c, 1);
  assert_null(sinew_batch_create(&def, &err));
  assert_interrupted(&c, err.status, &err);
  SinewPlannerDef planner = planner_def(cpu, slow, none, &c);
  expect(&c, 1);
  assert_null(sinew_planner_create(&planner, &err));
  assert_interrupted(&c, err.status, &err);
  expect(&c, 0);
  SinewPlanner *p = sinew_planner_create(&planner, &err);
  if (!p) fail_msg("%s", err.text);
  const double before = sinew_planner_initial(p).qpos[0];
  expect(&c, 1);
  assert_interrupted(&c, sinew_planner_reset(p, 5, &err), &err);
  assert_true(sinew_planner_initial(p).qpos[0] == before);
  expect(&c, 0);
  test_accepted(sinew_planner_reset(p, 5, &err), &err);
  assert_true(sinew_planner_initial(p).qpos[0] != before);
  sinew_planner_free(p);
  sinew_backend_close(cpu);
  sinew_task_free(slow);
}

static void check_planner(const char *const *settings, int threads) {
  SinewError err;
  SinewBackend *cpu = test_cpu(threads);
  Caller c = {.at = 0};
  double first[NU], row[NU], cost;
  const SinewPlannerDef def = planner_def(cpu, task, settings, &c);
  expect(&c, 0);
  SinewPlanner *p = sinew_planner_create(&def, &err);
  if (!p) fail_msg("%s", err.text);
  SinewPlanRequest r = sinew_default_plan_request();
  r.state = sinew_planner_initial(p);
  r.max_iterations = 1;
  test_accepted(sinew_planner_plan(p, &r, NULL, &err), &err);
  test_accepted(sinew_planner_control(p, 0, first, &err), &err);
  for (int budget = 0; budget < 2; ++budget) {
    const SinewPlan *plan = (const SinewPlan *)&err;
    r.max_iterations = 1000000;
    r.budget = budget ? 1000 : 0;
    expect(&c, 3);
    assert_interrupted(&c, sinew_planner_plan(p, &r, &plan, &err), &err);
    assert_null(plan);
    test_accepted(sinew_planner_control(p, 0, row, &err), &err);
    assert_memory_equal(row, first, sizeof row);
  }
#ifndef NDEBUG
  c.planner = p;
  r.budget = 5;
  expect(&c, 3);
  assert_interrupted(&c, sinew_planner_plan(p, &r, NULL, &err), &err);
  assert_true(c.refused);
  c.planner = NULL;
#endif
  expect(&c, 2);
  assert_interrupted(&c, sinew_planner_evaluate(p, &r.state, ctrl, LONG, &cost, NULL, &err), &err);
  r.max_iterations = 1;
  expect(&c, 0);
  test_accepted(sinew_planner_evaluate(p, &r.state, ctrl, 1, &cost, NULL, &err), &err);
  test_accepted(sinew_planner_plan(p, &r, NULL, &err), &err);
  assert_int_equal(c.elsewhere, 0);
  sinew_planner_free(p);
  sinew_backend_close(cpu);
}

static void test_planners(void **state) {
  (void)state;
  static const char *const adam[] = {"planner=adam", NULL}, *const sampling[] = {"planner=sampling", NULL};
  for (int threads = 1; threads <= 2; ++threads) {
    check_planner(adam, threads);
    check_planner(sampling, threads);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_batches), cmocka_unit_test(test_late),
                                     cmocka_unit_test(test_settling), cmocka_unit_test(test_planners)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
