// States that a planner is asked about: evaluations, predicted states, latency, activations that nobody measured.
#include <float.h>

#include "tests/planner/planner_fixture.h"

// An evaluation of a plan's controls gives the plan's cost, bit for bit, and its states.
static void evaluated(void **state) {
  (void)state;
  Fixture *x = make_fixture(2, false, 3);
  SnError err = {0};
  SnPlanRequest r = initial_request(x, 0.3);
  r.want_states = true;
  const SnPlan plan = plan_now(x, &r);
  assert_non_null(plan.qpos);
  sn_real qpos[41 * 2], qvel[41 * 2], act[41 * 2];
  sn_real cost[41];
  SnEvaluation e;
  SnEvaluateRequest q = {.time = 0.3,
                         .qpos = r.qpos,
                         .qvel = r.qvel,
                         .act = r.act,
                         .nstep = plan.nstep,
                         .ctrl = plan.ctrl,
                         .states = {qpos, qvel, act, cost}};
  assert_int_equal(sn_planner_evaluate(x->p, &q, INFINITY, &e, &err), SN_OK);
  assert_true(e.cost == plan.cost_after && !e.diverged && e.nmeasure == 1);
  assert_memory_equal(e.term, plan.term, sizeof(double) * (size_t)plan.nterm);
  assert_memory_equal(qpos, plan.qpos, sizeof qpos);
  assert_memory_equal(qvel, plan.qvel, sizeof qvel);
  assert_memory_equal(act, plan.act, sizeof act);
  assert_true(e.measure[0] > 0 && e.met[0] == (e.measure[0] <= 0.05));
  q.nstep = 0;
  assert_int_equal(sn_planner_evaluate(x->p, &q, INFINITY, &e, &err), SN_OK);
  assert_true(e.cost == plan.cost_now);
  q.nstep = plan.nstep;
  assert_int_equal(sn_planner_evaluate(x->p, &q, 0, &e, &err), SN_ERR_TIMEOUT);
  free_fixture(x);
}

// Evaluations and predicted states in slices have the bits of those in one go, with a plan made in between.
static void evaluated_in_slices(void **state) {
  (void)state;
  Fixture *x = make_fixture(2, true, 5);
  SnError err = {0};
  SnPlanRequest r = initial_request(x, 0);
  r.want_states = true;
  r.max_iterations = 1;
  SnPlan whole, sliced;
  assert_int_equal(sn_planner_plan(x->p, &r, &whole, &err), SN_OK);
  assert_non_null(whole.qpos);
  const size_t nq = (size_t)(whole.nstep + 1) * (size_t)whole.nq, nu = (size_t)whole.nstep * (size_t)whole.nu;
  sn_real *ctrl = malloc(nu * sizeof *ctrl), *qpos = malloc(nq * sizeof *qpos), *again = malloc(nq * sizeof *again);
  memcpy(ctrl, whole.ctrl, nu * sizeof *ctrl);
  memcpy(qpos, whole.qpos, nq * sizeof *qpos);
  SnEvaluateRequest q = {.time = 0, .qpos = r.qpos, .qvel = r.qvel, .act = r.act, .nstep = whole.nstep, .ctrl = ctrl};
  q.states.qpos = again;
  SnEvaluation a, b;
  assert_int_equal(sn_planner_evaluate(x->p, &q, INFINITY, &a, &err), SN_OK);
  const double cost = a.cost, term = a.term[0];
  assert_memory_equal(again, qpos, nq * sizeof *qpos);

  assert_int_equal(sn_planner_reset(x->p, 5, &err), SN_OK);
  memset(again, 0, nq * sizeof *again);
  assert_int_equal(sn_planner_evaluate_begin(x->p, &q, &err), SN_OK);
  assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_OK);
  int n = 0;
  bool evaluated = false, planned = false;
  for (; !evaluated || !planned; ++n) {
    if (!evaluated) evaluated = sn_planner_evaluate_slice(x->p, (double)atomic_load(&x->count.reads) + 10);
    if (!planned) planned = sn_planner_slice(x->p, (double)atomic_load(&x->count.reads) + 10);
  }
  sn_planner_evaluate_finish(x->p, &b);
  sn_planner_finish(x->p, &sliced);
  assert_true(n > 2);
  assert_true(b.cost == cost && b.term[0] == term);
  assert_memory_equal(again, qpos, nq * sizeof *qpos);
  assert_non_null(sliced.qpos);
  assert_memory_equal(sliced.ctrl, ctrl, nu * sizeof *ctrl);
  assert_memory_equal(sliced.qpos, qpos, nq * sizeof *qpos);
  free(ctrl);
  free(qpos);
  free(again);
  free_fixture(x);
}

// An evaluation with a gradient steps along the controls once, as one without: the clock is read once a step, then once
// for each world on the way back and each step back. Cost, terms, states and measures are the same bits, and so is the
// gradient whether the request has room for states or not.
static void evaluate_once(void) {
  Fixture *x = make_fixture(1, true, 3);
  SnError err = {0};
  const SnPlanRequest r = initial_request(x, 0.3);
  enum { STEPS = 40, NU = 3 };
  sn_real ctrl[STEPS * NU], bar[STEPS * NU], qpos[2][(STEPS + 1) * 2];
  for (int i = 0; i < STEPS * NU; ++i) ctrl[i] = SN_R(0.3) + SN_R(0.1) * sn_sin((sn_real)i);
  SnEvaluateRequest q = {
      .time = 0.3, .qpos = r.qpos, .qvel = r.qvel, .act = r.act, .nstep = STEPS, .ctrl = ctrl, .states.qpos = qpos[0]};
  SnEvaluation e;
  long reads = atomic_load(&x->count.reads);
  assert_int_equal(sn_planner_evaluate(x->p, &q, 1e9, &e, &err), SN_OK);
  const long plain = atomic_load(&x->count.reads) - reads;
  const double cost = e.cost, measure = e.measure[0];
  double term[4];
  assert_int_equal(e.nterm, 4);
  memcpy(term, e.term, sizeof term);
  assert_null(e.gradient);
  q.gradient = true;
  for (int room = 1; room >= 0; --room) {
    q.states.qpos = room ? qpos[1] : NULL;
    reads = atomic_load(&x->count.reads);
    assert_int_equal(sn_planner_evaluate(x->p, &q, 1e9, &e, &err), SN_OK);
    const long both = atomic_load(&x->count.reads) - reads;
    printf("clock read %ld times without a gradient, %ld with\n", plain, both);
    assert_true(plain == STEPS + 1 && both >= plain + 2 * (STEPS + 1) && both <= plain + 2 * (STEPS + 1) + 2);
    assert_true(e.cost == cost && e.measure[0] == measure && e.gradient->cost == cost);
    assert_memory_equal(e.term, term, sizeof term);
    assert_memory_equal(qpos[0], qpos[1], sizeof qpos[0]);
    assert_int_equal(e.gradient->status, SN_GRADIENT_DONE);
    assert_true(e.gradient->norm > 0);
    if (room) memcpy(bar, e.gradient->ctrl_bar, sizeof bar);
  }
  assert_memory_equal(bar, e.gradient->ctrl_bar, sizeof bar);
  free_fixture(x);
}

// Where worlds of a rollout can be kept, as with Euler's steps, one more would save what it costs; with RK4 none are.
static void evaluated_once(void **state) {
  (void)state;
  const int integrator = body.m->opt.integrator;
  evaluate_once();
  body.m->opt.integrator = SN_INT_RK4;
  evaluate_once();
  body.m->opt.integrator = integrator;
}

// The state is rolled forward under the plan in force, whose rows come first.
static void latency(void **state) {
  (void)state;
  Fixture *x = make_fixture(2, false, 3);
  SnError err = {0};
  SnPlanRequest r = initial_request(x, 0);
  SnPlan plan = plan_now(x, &r);
  sn_real force[40 * 3];
  memcpy(force, plan.ctrl, sizeof force);
  r.time = 0.04;
  r.latency = 0.05;
  r.want_states = true;
  plan = plan_now(x, &r);
  assert_true(plan.lead == 5 && plan.nstep == 45 && plan.start == 0.04 && plan.stamp == 0.04);
  assert_memory_equal(plan.ctrl, force + 4 * 3, 5 * 3 * sizeof *force);
  sn_real qpos[46 * 2];
  const SnEvaluateRequest q = {.time = 0.04,
                               .qpos = r.qpos,
                               .qvel = r.qvel,
                               .act = r.act,
                               .nstep = 45,
                               .ctrl = plan.ctrl,
                               .states = {.qpos = qpos}};
  SnEvaluation e;
  assert_int_equal(sn_planner_evaluate(x->p, &q, INFINITY, &e, &err), SN_OK);
  for (int i = 0; i < 46 * 2; ++i) assert_true(fabs((double)(qpos[i] - plan.qpos[i])) < 1e-4);
  r.latency = 1;
  assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_ERR_ARGUMENT);
  assert_non_null(strstr(err.text, "latency: 1 s, allowed is 0 to the length of a plan, 0.4 s"));
  free_fixture(x);
}

// A latency between two steps ends with the later one: a plan that is in force earlier than its rows say would be late.
static void latency_off_the_grid(void **state) {
  (void)state;
  static const struct {
    double latency;
    int lead;
  } cases[] = {{0, 0}, {0.0001, 1}, {0.0099, 1}, {0.01, 1}, {0.0101, 2}, {0.025, 3}, {0.03, 3}, {0.0349, 4}};
  Fixture *x = make_fixture(1, false, 3);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    SnPlanRequest r = initial_request(x, 0);
    r.latency = cases[i].latency;
    const SnPlan plan = plan_now(x, &r);
    if (plan.lead != cases[i].lead)
      fail_msg("latency %g s, steps of 0.01 s: lead %d, wanted %d", r.latency, plan.lead, cases[i].lead);
    assert_int_equal(plan.nstep, 40 + plan.lead);
  }
  free_fixture(x);
}

// Rolling forward heeds the clock as rollouts do: slices do not change the plan, and a deadline within the lead leaves
// the warm start.
static void latency_in_slices(void **state) {
  (void)state;
  Fixture *whole = make_fixture(1, false, 3), *sliced = make_fixture(1, true, 3);
  SnError err = {0};
  SnPlanRequest a = initial_request(whole, 0), b = initial_request(sliced, 0);
  plan_now(whole, &a);
  plan_now(sliced, &b);
  a.time = b.time = 0.04;
  a.latency = b.latency = 0.3;
  a.want_states = b.want_states = true;
  const SnPlan one = plan_now(whole, &a);
  SnPlan many;
  assert_int_equal(sn_planner_begin(sliced->p, &b, &err), SN_OK);
  const long began = atomic_load(&sliced->count.reads);
  assert_false(sn_planner_slice(sliced->p, (double)began + 5));
  assert_true(atomic_load(&sliced->count.reads) - began < 10);
  // An evaluation in between has worlds of its own.
  const SnEvaluateRequest q = {.time = 0, .qpos = b.qpos, .qvel = b.qvel, .act = b.act, .nstep = 40, .ctrl = one.ctrl};
  SnEvaluation e;
  assert_int_equal(sn_planner_evaluate(sliced->p, &q, INFINITY, &e, &err), SN_OK);
  while (!sn_planner_slice(sliced->p, (double)atomic_load(&sliced->count.reads) + 7)) continue;
  sn_planner_finish(sliced->p, &many);
  assert_true(many.lead == 30 && many.status == SN_PLAN_OK);
  assert_memory_equal(many.ctrl, one.ctrl, sizeof(sn_real) * 70 * 3);
  assert_memory_equal(many.qpos, one.qpos, sizeof(sn_real) * 71 * 2);

  b.time = 0.08;
  b.deadline = (double)atomic_load(&sliced->count.reads) + 15;
  const SnPlan late = plan_now(sliced, &b);
  assert_true(late.status == SN_PLAN_WARM_START && late.lead == 30 && late.nstep == 70 && !late.qpos);
  assert_true(late.iterations == 0 && late.candidates == 0 && isnan(late.cost_after));
  free_fixture(whole);
  free_fixture(sliced);
}

// Works on a plan until it is there or the clock shows an infinite time. Returns how often the clock was read.
static long work(Fixture *x, const SnPlanRequest *r) {
  SnError err = {0};
  const long began = atomic_load(&x->count.reads);
  assert_int_equal(sn_planner_begin(x->p, r, &err), SN_OK);
  while (!sn_planner_slice(x->p, DBL_MAX) && !(x->count.end && atomic_load(&x->count.reads) > x->count.end)) continue;
  sn_planner_drop(x->p);
  return atomic_load(&x->count.reads) - began;
}

// An infinite time ends a plan wherever it comes, and the next one has iterations: no time was measured by it.
static void ended_by_the_clock(void **state) {
  (void)state;
  Fixture *x = make_fixture(1, true, 3);
  SnPlanRequest r = initial_request(x, 0);
  r.max_iterations = 1;
  r.want_states = true;
  const long all = work(x, &r);
  for (long at = all - 60; at <= all; ++at) {
    x->count.end = atomic_load(&x->count.reads) + at;
    work(x, &r);
    x->count.end = 0;
    SnPlanRequest next = r;
    next.deadline = (double)atomic_load(&x->count.reads) + 1e6;
    const SnPlan plan = plan_now(x, &next);
    if (plan.status != SN_PLAN_OK || plan.iterations != 1)
      fail_msg("ended at reading %ld of %ld: status %d, %d iterations", at, all, (int)plan.status, plan.iterations);
  }
  free_fixture(x);
}

// Activations that nobody measured follow the controls of the plan in force, or those reported.
static void estimated_act(void **state) {
  (void)state;
  Fixture *x = make_fixture(2, false, 3);
  SnError err = {0};
  SnPlanRequest r = initial_request(x, 0);
  r.want_states = true;
  SnPlan plan = plan_now(x, &r);
  assert_false(plan.act_estimated);
  sn_real wanted[2], qpos[2], qvel[2];
  memcpy(wanted, plan.act + 6 * 2, sizeof wanted);
  memcpy(qpos, plan.qpos + 6 * 2, sizeof qpos);
  memcpy(qvel, plan.qvel + 6 * 2, sizeof qvel);
  r.time = 0.06;
  r.qpos = qpos;
  r.qvel = qvel;
  r.act = NULL;
  plan = plan_now(x, &r);
  assert_true(plan.act_estimated);
  for (int i = 0; i < 2; ++i) assert_true(fabs((double)(plan.act[i] - wanted[i])) < 1e-6);
  // Full excitation reported since then.
  const double times[1] = {0.06};
  const double full[3] = {0, 1, 1};
  const SnApplied applied = {1, times, full};
  r.time = 0.16;
  r.applied = &applied;
  plan = plan_now(x, &r);
  assert_true(plan.act[0] > SN_R(0.8) && plan.act[1] > SN_R(0.8));
  assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_OK);
  free_fixture(x);
}

// Reported controls of several rows count each in its time: one report is the same as two after one another.
static void reported_rows(void **state) {
  (void)state;
  const double times[3] = {-1, 0, 0.05};
  const double rows[9] = {0, 0, 0, 0, 1, 1, 0, 0, 0.5};
  sn_real once[2], twice[2];
  for (int k = 0; k < 2; ++k) {
    Fixture *x = make_fixture(1, false, 3);
    SnPlanRequest r = initial_request(x, 0);
    plan_now(x, &r);
    r.act = NULL;
    r.want_states = true;
    const SnApplied all = {3, times, rows}, first = {1, times + 1, rows + 3}, last = {1, times + 2, rows + 6};
    if (k == 0) {
      r.time = 0.05;
      r.applied = &first;
      plan_now(x, &r);
    }
    r.time = 0.1;
    r.applied = k == 0 ? &last : &all;
    memcpy(k == 0 ? twice : once, plan_now(x, &r).act, sizeof once);
    free_fixture(x);
  }
  for (int i = 0; i < 2; ++i) assert_true(fabs((double)(once[i] - twice[i])) < 1e-6);
  assert_true(once[0] > SN_R(0.1) && once[1] > once[0] + SN_R(0.1));
}

// ---- a state after a long gap ----

enum { GAP = 200, REPORTED = 20000 };  // steps since the state before; rows of controls that were applied meanwhile

typedef struct Report {
  double time[REPORTED], ctrl[REPORTED * 3];
  SnApplied applied;
} Report;

static Report *make_report(double from, double until) {
  Report *report = calloc(1, sizeof *report);
  for (int i = 0; i < REPORTED; ++i) {
    report->time[i] = from + (until - from) * i / REPORTED;
    for (int j = 0; j < 3; ++j) report->ctrl[3 * i + j] = 0.5 + 0.5 * sin(0.001 * i + j);
  }
  report->applied = (SnApplied){.n = REPORTED, .time = report->time, .ctrl = report->ctrl};
  return report;
}

// A state without activations, GAP steps after the plan that is made here first.
static SnPlanRequest late_request(Fixture *x, const Report *report) {
  SnPlanRequest r = initial_request(x, 0);
  plan_now(x, &r);
  r.time = 0.01 * GAP;
  r.act = NULL;
  r.applied = report ? &report->applied : NULL;
  r.want_states = true;
  r.max_iterations = 1;
  return r;
}

// Slices of a plan until it is there, each of `readings` of the clock.
static int slices_of(Fixture *x, double readings) {
  int n = 1;
  for (; !sn_planner_slice(x->p, (double)atomic_load(&x->count.reads) + readings); ++n) continue;
  return n;
}

// An activation as an evaluation estimates it, from the latest state that is known.
static sn_real estimate_now(Fixture *x, const SnPlanRequest *r) {
  const sn_real ctrl[3] = {0};
  sn_real act[4];
  const SnEvaluateRequest q = {
      .time = r->time, .qpos = r->qpos, .qvel = r->qvel, .nstep = 1, .ctrl = ctrl, .states.act = act};
  SnEvaluation e;
  SnError err = {0};
  assert_int_equal(sn_planner_evaluate(x->p, &q, INFINITY, &e, &err), SN_OK);
  assert_true(e.act_estimated);
  return act[0];
}

// An estimate over many steps pauses within a slice, however many rows were reported, and comes to the same bits.
static void estimated_in_slices(void **state) {
  (void)state;
  enum { ROUNDS = (GAP + 63) / 64 };  // 64 steps each, the first of them when the plan begins
  Report *report = make_report(0, 0.01 * GAP);
  for (int reported = 0; reported < 2; ++reported) {
    Fixture *whole = make_fixture(1, true, 3), *sliced = make_fixture(1, true, 3);
    SnError err = {0};
    SnPlan many;
    const SnPlanRequest a = late_request(whole, reported ? report : NULL),
                        b = late_request(sliced, reported ? report : NULL);
    const SnPlan one = plan_now(whole, &a);
    const sn_real before = estimate_now(sliced, &b);
    assert_true(!reported || fabs((double)(one.act[0] - before)) > 1e-3);
    const long from = atomic_load(&sliced->count.reads);
    assert_int_equal(sn_planner_begin(sliced->p, &b, &err), SN_OK);
    assert_true(atomic_load(&sliced->count.reads) - from <= 3);
    for (int i = 2; i < ROUNDS; ++i)
      assert_false(sn_planner_slice(sliced->p, (double)atomic_load(&sliced->count.reads) + 1));
    // Until it is done the state before is the one that an evaluation starts from.
    assert_true(estimate_now(sliced, &b) == before);
    assert_true(slices_of(sliced, 7) > 2);
    sn_planner_finish(sliced->p, &many);
    assert_true(one.status == SN_PLAN_OK && many.status == SN_PLAN_OK && many.act_estimated);
    assert_true(many.cost_now == one.cost_now && many.cost_after == one.cost_after);
    assert_memory_equal(many.act, one.act, sizeof(sn_real) * 41 * 2);
    assert_memory_equal(many.ctrl, one.ctrl, sizeof(sn_real) * 40 * 3);
    free_fixture(whole);
    free_fixture(sliced);
  }
  free(report);
}

// A plan that is dropped meanwhile leaves the state before as it was; a deadline meanwhile leaves the warm start.
static void estimate_given_up(void **state) {
  (void)state;
  Fixture *whole = make_fixture(1, true, 3), *dropped = make_fixture(1, true, 3);
  SnError err = {0};
  SnPlanRequest a = late_request(whole, NULL), b = late_request(dropped, NULL);
  assert_int_equal(sn_planner_begin(dropped->p, &b, &err), SN_OK);
  assert_false(sn_planner_slice(dropped->p, (double)atomic_load(&dropped->count.reads) + 1));
  sn_planner_drop(dropped->p);
  assert_true(estimate_now(whole, &a) == estimate_now(dropped, &b));

  b.deadline = (double)atomic_load(&dropped->count.reads) + 3;
  const SnPlan late = plan_now(dropped, &b);
  assert_true(late.status == SN_PLAN_WARM_START && late.act_estimated && late.start == b.time && late.nstep == 40);
  assert_true(isfinite(late.cost_now) && !late.qpos);
  b.deadline = INFINITY;
  b.time += 0.01;
  const SnPlan next = plan_now(dropped, &b);
  assert_true(next.status == SN_PLAN_OK && isfinite(next.cost_after));
  free_fixture(whole);
  free_fixture(dropped);
}

// A gradient of a cost with a term that has none is refused; the cost alone is not. Whether two geoms touch has none.
static void refused_gradient(void **state) {
  (void)state;
  static const char xml[] =
      "<mujoco><worldbody><geom name='floor' type='plane' size='1 1 .1'/><body pos='0 0 .1'><joint name='x' "
      "type='slide'/>"
      "<geom name='ball' size='.1'/></body></worldbody><actuator><motor joint='x'/></actuator>"
      "<sensor><contact name='stop' geom1='floor' geom2='ball' data='found'/></sensor></mujoco>";
  static const char text[] =
      "model: x\nsettings: {horizon: 8, knots: 2}\nterms: [{name: a, residual: {sensor: stop}}]\n";
  SnError err = {0};
  SnOracle o;
  SnEvaluation e;
  sn_oracle_load_string(&o, xml);
  SnPlannerDef def = sn_default_planner_def();
  SnPool *pool = sn_pool_create(1, &err);
  SnTask *stop = sn_task_parse(text, strlen(text), "stop.yaml", &err);
  def.model = o.m;
  def.task = stop;
  def.settings = stop->settings;
  def.backend = sn_backend_cpu(pool, &err);
  SnPlanner *p = sn_planner_create(&def, &err);
  assert_non_null(p);
  const sn_real zero = 0;
  SnEvaluateRequest q = {.qpos = &zero, .qvel = &zero, .nstep = 1, .ctrl = &zero};
  assert_int_equal(sn_planner_evaluate(p, &q, INFINITY, &e, &err), SN_OK);
  q.gradient = true;
  assert_int_equal(sn_planner_evaluate(p, &q, INFINITY, &e, &err), SN_ERR_UNSUPPORTED);
  assert_string_equal(err.text, "term 'a': sensor 'stop' has no gradient");
  sn_planner_free(p);
  sn_backend_free(def.backend);
  sn_task_free(stop);
  sn_pool_free(pool);
  sn_oracle_free(&o);
}

// A plan without a deadline ends though "as many iterations as the deadline allows" is what is wanted meanwhile.
static void endless(void **state) {
  (void)state;
  Fixture *x = make_fixture(1, false, 1);
  SnError err = {0};
  SnSettings s = *sn_planner_settings(x->p);
  const SnPlanRequest r = initial_request(x, 0);
  SnPlan plan;
  assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_OK);
  assert_false(sn_planner_slice(x->p, INFINITY));
  s.iterations = 0;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  int slices = 0;
  while (!sn_planner_slice(x->p, INFINITY)) assert_true(++slices < 100);
  sn_planner_finish(x->p, &plan);
  assert_int_equal(plan.status, SN_PLAN_OK);
  free_fixture(x);
}

// Mean over the rows of the sum of squared differences over the time step, the first one from `before`.
static double roughness(const SnPlan *plan, const sn_real *before) {
  double sum = 0;
  for (int k = plan->lead * plan->nu; k < plan->nstep * plan->nu; ++k) {
    const bool first = k < (plan->lead + 1) * plan->nu;
    const sn_real last = first ? before[k - plan->lead * plan->nu] : plan->ctrl[k - plan->nu];
    sum += pow((double)(plan->ctrl[k] - last) / plan->step, 2);
  }
  return sum / (plan->nstep - plan->lead);
}

static void expect_cost(const SnPlan *plan, const sn_real *before) {
  const double wanted = roughness(plan, before), off = fabs(plan->cost_after - wanted);
  if (!(off <= 1e-9 * (1 + wanted))) fail_msg("cost %.12g, wanted %.12g", plan->cost_after, wanted);
}

// The rate of a plan's first controls is that from those in force before: the plan before says them, the lead, or the
// body; at first nobody, as in an evaluation.
static void hand_over(void **state) {
  (void)state;
  if (sizeof(sn_real) == 4) skip();
  static const char text[] =
      "model: body.xml\nperturb: {plan: 0.2}\nplan: 0.2\nsettings: {planner: sampling, horizon: 10, candidates: 1, "
      "iterations: 1, knots: 4}\nterms:\n  - {name: rate, residual: {control_rate: all}}\n";
  SnError err = {0};
  SnTask *rates = sn_task_parse(text, strlen(text), "rates.yaml", &err);
  if (!rates) fail_msg("%s", err.text);
  Fixture *x = make_fixture_of(rates, 1, false, 2);
  SnSettings s = rates->settings;
  const double reported[3] = {0.5, 0.25, 0.75};
  const sn_real third[3] = {SN_R(0.5), SN_R(0.25), SN_R(0.75)};
  sn_real first[30];
  SnPlanRequest r = initial_request(x, 0);
  s.candidates = 50;  // the best of them differs from step to step
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  assert_int_equal(sn_planner_set_target(x->p, "rate", (const double[]){40, -10, 10}, 3, &err), SN_OK);
  SnPlan plan = plan_now(x, &r);
  memcpy(first, plan.ctrl, sizeof first);
  assert_true(first[0] != first[3] && first[3] != first[6]);
  s.candidates = 1;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  assert_int_equal(sn_planner_set_target(x->p, "rate", NULL, 0, &err), SN_OK);
  r.time = 0.02;
  plan = plan_now(x, &r);
  expect_cost(&plan, first + 3);
  r.time = 0.03;
  r.latency = 0.02;
  plan = plan_now(x, &r);
  assert_true(plan.lead == 2 && plan.cost_after > 0);
  expect_cost(&plan, plan.ctrl + 3);
  r.time = 0.04;
  r.latency = 0;
  r.applied = &(SnApplied){.n = 1, .time = (const double[]){0.01}, .ctrl = reported};
  plan = plan_now(x, &r);
  expect_cost(&plan, third);
  assert_int_equal(sn_planner_reset(x->p, 2, &err), SN_OK);
  r = initial_request(x, 0);
  plan = plan_now(x, &r);
  assert_true(plan.cost_after == 0);
  assert_int_equal(sn_planner_set_target(x->p, "rate", (const double[]){40, -10, 10}, 3, &err), SN_OK);
  s.candidates = 50;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  assert_int_equal(sn_planner_reset(x->p, 2, &err), SN_OK);
  plan = plan_now(x, &r);
  assert_true(cost_of(x->p, &plan) == plan.cost_after && plan.cost_after > 0);
  free_fixture(x);
  sn_task_free(rates);
}

// A plan says what its gates are in the state that it answers, whatever the weights of their terms.
static void gates(void **state) {
  (void)state;
  static const char text[] =
      "model: x\nterms:\n"
      "  - {name: none, residual: {joint_position: elbow}}\n"
      "  - {name: opens, residual: {joint_position: elbow}, gate: {residual: {joint_position: shoulder}, above: 0.2, "
      "width: 0.1}}\n"
      "  - {name: times, residual: {joint_position: elbow}, weight: 0, gate: {residual: {joint_position: [shoulder, "
      "elbow]}, target: [0.5, 0.3], norm: squared}}\n";
  SnError err = {0};
  SnTask *of = sn_task_parse(text, sizeof text - 1, "task.yaml", &err);
  if (!of) fail_msg("%s", err.text);
  Fixture *x = make_fixture_of(of, 1, false, 0);
  SnPlanRequest r = initial_request(x, 0);
  const double tolerance = sizeof(sn_real) == sizeof(double) ? 1e-12 : 1e-6;
  for (int k = 0; k < 2; ++k) {
    const sn_real qpos[2] = {k ? SN_R(0.4) : SN_R(0.2), SN_R(0.1)};
    r.qpos = qpos;
    const SnPlan plan = plan_now(x, &r);
    const double product = k ? 0.1 * 0.1 + 0.2 * 0.2 : 0.3 * 0.3 + 0.2 * 0.2;
    assert_int_equal(plan.ngate, 2);
    assert_true(fabs(plan.gate_number[0] - (k ? 0.4 : 0.2)) < tolerance);
    assert_true(fabs(plan.gate_factor[0] - 1 / (1 + exp(k ? -2.0 : 0.0))) < tolerance);
    assert_true(fabs(plan.gate_number[1] - product) < tolerance && plan.gate_factor[1] == plan.gate_number[1]);
  }
  free_fixture(x);
  sn_task_free(of);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gates),
                                     cmocka_unit_test(evaluated),
                                     cmocka_unit_test(evaluated_in_slices),
                                     cmocka_unit_test(evaluated_once),
                                     cmocka_unit_test(latency),
                                     cmocka_unit_test(latency_off_the_grid),
                                     cmocka_unit_test(latency_in_slices),
                                     cmocka_unit_test(estimated_act),
                                     cmocka_unit_test(reported_rows),
                                     cmocka_unit_test(estimated_in_slices),
                                     cmocka_unit_test(estimate_given_up),
                                     cmocka_unit_test(refused_gradient),
                                     cmocka_unit_test(endless),
                                     cmocka_unit_test(ended_by_the_clock),
                                     cmocka_unit_test(hand_over)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
