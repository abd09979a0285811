// Planners of libsinew make the plans that sinewd serves, bit for bit.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/clients/libsinew/body_fixture.h"
#include "tests/support/daemon_group.h"

enum { PLANS = 5, EXECUTE = 8, NQ = 2, NA = 6 };

// Holds the same settings for both.
typedef struct Case {
  const char *const *settings;
  Sinew__V1__PlannerSettings wire;
  double latency;
} Case;

static SinewPlanner *make(const SinewModel *model, const SinewTask *task, SinewBackend *cpu, const Case *c) {
  SinewError err;
  SinewPlannerDef def = sinew_default_planner();
  def.model = model;
  def.task = task;
  def.backend = cpu;
  def.settings = c->settings;
  def.seed = 5;
  SinewPlanner *p = sinew_planner_create(&def, &err);
  if (!p) fail_msg("%s", err.text);
  return p;
}

static uint64_t open_session(Case *c, Sinew__V1__Reply **reply) {
  Sinew__V1__OpenRequest open = SINEW__V1__OPEN_REQUEST__INIT;
  Sinew__V1__SessionSettings session = SINEW__V1__SESSION_SETTINGS__INIT;
  session.has_latency_case = SINEW__V1__SESSION_SETTINGS__HAS_LATENCY_LATENCY;
  session.latency = c->latency;
  open.task = "arm_reach";
  open.seed = 5;
  open.planner = &c->wire;
  open.session = &session;
  *reply = SN_TEST_REPLY(open, OPEN, &open);
  return (*reply)->open->session;
}

static Sinew__V1__Reply *plan_of_sinewd(uint64_t session, const SinewState *s) {
  Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
  Sinew__V1__State state = SINEW__V1__STATE__INIT;
  state.time = s->time;
  state.qpos = (double *)(uintptr_t)s->qpos;
  state.qvel = (double *)(uintptr_t)s->qvel;
  state.act = (double *)(uintptr_t)s->act;
  state.n_qpos = state.n_qvel = NQ;
  state.n_act = s->act ? NA : 0;
  plan.session = session;
  plan.state = &state;
  plan.want_states = true;
  return SN_TEST_REPLY(plan, PLAN, &plan);
}

static void assert_same(const double *a, const double *b, size_t n) { assert_memory_equal(a, b, n * sizeof *a); }

static void compare(const SinewPlan *ours, const Sinew__V1__Plan *theirs) {
  const size_t rows = (size_t)ours->steps;
  assert_true(ours->refined && theirs->status == SINEW__V1__PLAN__STATUS__OK);
  assert_int_equal(theirs->steps, rows);
  assert_int_equal(theirs->lead, ours->lead);
  assert_int_equal(theirs->iterations, ours->iterations);
  assert_int_equal(theirs->candidates, ours->candidates);
  assert_int_equal(theirs->n_ctrl, rows * NA);
  assert_same(ours->ctrl, theirs->ctrl, rows * NA);
  assert_same(ours->qpos, theirs->states->qpos, (rows + 1) * NQ);
  assert_same(ours->qvel, theirs->states->qvel, (rows + 1) * NQ);
  assert_same(ours->act, theirs->states->act, (rows + 1) * NA);
  assert_same(&ours->cost_before, &theirs->cost_before, 1);
  assert_same(&ours->cost_after, &theirs->cost_after, 1);
  assert_true(ours->gradient_norm == theirs->gradient_norm || isnan(theirs->gradient_norm));
  assert_true(ours->stuck == theirs->stuck && ours->unimproved == (int)theirs->unimproved);
}

// Plans in lockstep: the body is where the plan before expected it. Every other state has no activations.
static void check_case(SinewPlanner *p, Case *c) {
  Sinew__V1__Reply *opened;
  const uint64_t session = open_session(c, &opened);
  double qpos[NQ], qvel[NQ], act[NA];
  SinewPlanRequest r = sinew_default_plan_request();
  r.state = sinew_planner_initial(p);
  r.latency = c->latency;
  r.want_states = true;
  assert_same(r.state.qpos, opened->open->initial->qpos, NQ);
  assert_same(r.state.act, opened->open->initial->act, NA);
  sn_test_done(opened);
  for (int i = 0; i < PLANS; ++i) {
    SinewError err;
    const SinewPlan *ours;
    test_accepted(sinew_planner_plan(p, &r, &ours, &err), &err);
    Sinew__V1__Reply *theirs = plan_of_sinewd(session, &r.state);
    compare(ours, theirs->plan);
    sn_test_done(theirs);
    memcpy(qpos, ours->qpos + EXECUTE * NQ, sizeof qpos);
    memcpy(qvel, ours->qvel + EXECUTE * NQ, sizeof qvel);
    memcpy(act, ours->act + EXECUTE * NA, sizeof act);
    r.state = (SinewState){ours->start + EXECUTE * ours->step, qpos, qvel, i % 2 ? act : NULL, NULL};
  }
}

static void check(Case *c) {
  SinewModel *model = test_model_of_file(SN_TEST_SOURCE_DIR "/../physics/models/arm_reach.xml");
  SinewTask *task = sinew_task_load(SN_TEST_SOURCE_DIR "/../planner/tasks/arm_reach.yaml", NULL);
  SinewBackend *cpu = test_cpu(1);
  SinewPlanner *p = make(model, task, cpu, c);
  check_case(p, c);
  sinew_planner_free(p);
  sinew_backend_close(cpu);
  sinew_task_free(task);
  sinew_model_free(model);
}

static void test_adam(void **state) {
  (void)state;
  Case c = {.settings = (const char *const[]){"adam_iterations=6", "adam_starts=2", "adam_rate=0.03", NULL},
            .wire = SINEW__V1__PLANNER_SETTINGS__INIT,
            .latency = 0.02};
  c.wire.has_adam_iterations_case = SINEW__V1__PLANNER_SETTINGS__HAS_ADAM_ITERATIONS_ADAM_ITERATIONS;
  c.wire.adam_iterations = 6;
  c.wire.has_adam_starts_case = SINEW__V1__PLANNER_SETTINGS__HAS_ADAM_STARTS_ADAM_STARTS;
  c.wire.adam_starts = 2;
  c.wire.has_adam_rate_case = SINEW__V1__PLANNER_SETTINGS__HAS_ADAM_RATE_ADAM_RATE;
  c.wire.adam_rate = 0.03;
  check(&c);
}

static void test_sampling(void **state) {
  (void)state;
  Case c = {.settings = (const char *const[]){"planner=sampling", "iterations=3", NULL},
            .wire = SINEW__V1__PLANNER_SETTINGS__INIT};
  c.wire.has_planner_case = SINEW__V1__PLANNER_SETTINGS__HAS_PLANNER_PLANNER;
  c.wire.planner = "sampling";
  c.wire.has_iterations_case = SINEW__V1__PLANNER_SETTINGS__HAS_ITERATIONS_ITERATIONS;
  c.wire.iterations = 3;
  check(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_adam), cmocka_unit_test(test_sampling)};
  return cmocka_run_group_tests(tests, sn_test_group_setup, sn_test_group_teardown);
}
