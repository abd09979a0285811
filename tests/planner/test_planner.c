// Planning: determinism, anytime behaviour, warm start, latency, states, live tuning, bad requests.
#include "planner/planner.h"
#include "tests/planner/bench_body.h"

typedef struct Rig {
  SnPool *pool;
  SnBackend *backend;
  SnPlanner *p;
  CountingClock count;
} Rig;

// Heap allocations of this program, counted by the linker's --wrap.
static atomic_long allocations;
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size) {
  atomic_fetch_add(&allocations, 1);
  return __real_malloc(size);
}
void *__wrap_calloc(size_t n, size_t size) {
  atomic_fetch_add(&allocations, 1);
  return __real_calloc(n, size);
}
void *__wrap_realloc(void *p, size_t size) {
  atomic_fetch_add(&allocations, 1);
  return __real_realloc(p, size);
}
void *__wrap_aligned_alloc(size_t alignment, size_t size) {
  atomic_fetch_add(&allocations, 1);
  return __real_aligned_alloc(alignment, size);
}

static Rig *make_rig(int threads, bool counting, uint64_t seed) {
  SnError err = {0};
  Rig *x = calloc(1, sizeof *x);
  x->pool = sn_pool_create(threads, &err);
  x->backend = sn_backend_cpu(x->pool, &err);
  SnPlannerDef def = sn_default_planner_def();
  def.model = body.m;
  def.task = task;
  def.backend = x->backend;
  def.settings = task->settings;
  def.seed = seed;
  if (counting) def.clock = counting_clock(&x->count);
  x->p = sn_planner_create(&def, &err);
  if (!x->p) fail_msg("%s", err.text);
  return x;
}

static void free_rig(Rig *x) {
  sn_planner_free(x->p);
  sn_backend_free(x->backend);
  sn_pool_free(x->pool);
  free(x);
}

// A request from the initial state, at a time.
static SnPlanRequest initial_request(const Rig *x, double time) {
  const SnStart *s = sn_planner_initial(x->p);
  SnPlanRequest r = sn_default_plan_request();
  r.time = time;
  r.qpos = s->qpos;
  r.qvel = s->qvel;
  r.act = s->act;
  return r;
}

static SnPlan plan_now(Rig *x, const SnPlanRequest *r) {
  SnError err = {0};
  SnPlan plan;
  if (sn_planner_plan(x->p, r, &plan, &err) != SN_OK) fail_msg("%s", err.text);
  return plan;
}

static size_t ctrl_bytes(const SnPlan *plan) { return sizeof(sn_real) * (size_t)plan->nstep * (size_t)plan->nu; }

static void improves(void **state) {
  (void)state;
  Rig *x = make_rig(2, false, 1);
  SnPlanRequest r = initial_request(x, 0);
  r.max_iterations = 8;
  const SnPlan plan = plan_now(x, &r);
  printf("cost before %.4f, after %.4f, now %.4f\n", plan.cost_before, plan.cost_after, plan.cost_now);
  assert_int_equal(plan.status, SN_PLAN_OK);
  assert_true(plan.cost_after < 0.8 * plan.cost_before);
  assert_true(plan.number == 1 && plan.nstep == 40 && plan.lead == 0 && plan.iterations == 8 && plan.candidates == 12);
  assert_true(plan.start == 0 && fabs(plan.step - 0.01) < 1e-9 && plan.deadline_met && isnan(plan.gradient_norm));
  double sum = 0;
  for (int i = 0; i < plan.nterm; ++i) sum += plan.term[i];
  assert_true(fabs(sum - plan.cost_after) < 1e-6 * sum);
  for (int k = 0; k < plan.nstep * plan.nu; ++k)
    assert_true(plan.ctrl[k] >= (k % 3 ? 0 : -3) && plan.ctrl[k] <= (k % 3 ? 1 : 3));
  free_rig(x);
}

// Three plans in a row, whatever the number of threads.
static void threads(void **state) {
  (void)state;
  sn_real first[3][40 * 3];
  double cost[3];
  for (int n = 1; n <= 8; ++n) {
    Rig *x = make_rig(n, false, 7);
    for (int k = 0; k < 3; ++k) {
      SnPlanRequest r = initial_request(x, 0.05 * k);
      const SnPlan plan = plan_now(x, &r);
      assert_int_equal(ctrl_bytes(&plan), sizeof first[k]);
      if (n == 1) {
        memcpy(first[k], plan.ctrl, sizeof first[k]);
        cost[k] = plan.cost_after;
      }
      assert_memory_equal(first[k], plan.ctrl, sizeof first[k]);
      assert_true(cost[k] == plan.cost_after);
    }
    free_rig(x);
  }
  assert_memory_not_equal(first[0], first[1], sizeof first[0]);
}

static void seeds(void **state) {
  (void)state;
  Rig *a = make_rig(1, false, 0), *b = make_rig(1, false, 11), *c = make_rig(1, false, 11);
  const sn_real *qa = sn_planner_initial(a->p)->qpos, *qb = sn_planner_initial(b->p)->qpos,
                *qc = sn_planner_initial(c->p)->qpos;
  assert_true(qa[0] == SN_R(0.2) && qa[1] == SN_R(0.1));
  assert_true(qb[0] != qa[0] && fabs((double)(qb[0] - qa[0])) <= 0.1 && fabs((double)(qb[1] - qa[1])) <= 0.1);
  assert_memory_equal(qb, qc, 2 * sizeof *qb);
  assert_true(sn_planner_initial(a->p)->act[0] == SN_R(0.05));
  SnError err = {0};
  assert_int_equal(sn_planner_reset(b->p, 0, &err), SN_OK);
  assert_memory_equal(qa, sn_planner_initial(b->p)->qpos, 2 * sizeof *qa);
  free_rig(a);
  free_rig(b);
  free_rig(c);
}

// The deadline is read at every step of a rollout: hardly anything happens after it.
static void deadline(void **state) {
  (void)state;
  for (int n = 1; n <= 4; n += 3) {
    for (int budget = 20; budget < 2500; budget += 171) {
      Rig *x = make_rig(n, true, 5);
      SnPlanRequest r = initial_request(x, 0);
      r.max_iterations = 1000;
      r.deadline = (double)atomic_load(&x->count.reads) + budget;
      const SnPlan plan = plan_now(x, &r);
      // Each thread reads the clock once more to see that time is up, and the planner a few times.
      assert_true((double)atomic_load(&x->count.reads) <= r.deadline + 3 * n + 6);
      assert_true(plan.deadline_met == false || plan.iterations > 0);
      if (budget < 35) assert_int_equal(plan.status, SN_PLAN_WARM_START);
      if (budget > 400) assert_int_equal(plan.status, SN_PLAN_OK);
      free_rig(x);
    }
  }
}

// The numbers that a plan reports reproduce it bit for bit, without a clock.
static void reproduced(void **state) {
  (void)state;
  int partial = 0;
  for (int budget = 60; budget < 2500; budget += 173) {
    Rig *x = make_rig(3, true, 5), *y = make_rig(2, false, 5);
    SnPlanRequest r = initial_request(x, 0);
    r.max_iterations = 1000;
    r.deadline = (double)atomic_load(&x->count.reads) + budget;
    const SnPlan a = plan_now(x, &r);
    if (a.iterations > 0) {
      partial += a.candidates < 12;
      SnPlanRequest s = initial_request(y, 0);
      s.max_iterations = a.iterations;
      s.max_candidates = a.candidates;
      const SnPlan b = plan_now(y, &s);
      assert_true(b.iterations == a.iterations && b.candidates == a.candidates && b.cost_after == a.cost_after);
      assert_memory_equal(a.ctrl, b.ctrl, ctrl_bytes(&a));
    }
    free_rig(x);
    free_rig(y);
  }
  assert_true(partial > 3);
}

static void slices(void **state) {
  (void)state;
  Rig *x = make_rig(2, false, 5), *y = make_rig(2, true, 5);
  SnPlanRequest r = initial_request(x, 0);
  const SnPlan a = plan_now(x, &r);
  SnError err = {0};
  SnPlanRequest s = initial_request(y, 0);
  assert_int_equal(sn_planner_begin(y->p, &s, &err), SN_OK);
  int n = 1;
  while (!sn_planner_slice(y->p, (double)atomic_load(&y->count.reads) + 50)) {
    ++n;
    // An evaluation in between does not touch the plan.
    SnEvaluation e;
    const SnEvaluateRequest q = {.time = 0, .qpos = s.qpos, .qvel = s.qvel, .act = s.act};
    assert_int_equal(sn_planner_evaluate(y->p, &q, INFINITY, &e, &err), SN_OK);
  }
  SnPlan b;
  sn_planner_finish(y->p, &b);
  assert_true(n > 10);
  assert_true(a.cost_after == b.cost_after);
  assert_memory_equal(a.ctrl, b.ctrl, ctrl_bytes(&a));
  // Without a plan in progress there is nothing to finish.
  sn_planner_finish(y->p, &b);
  assert_int_equal(b.nstep, 0);
  free_rig(x);
  free_rig(y);
}

// Evaluations and predicted states in slices have the bits of those in one go, with a plan made in between.
static void evaluated_in_slices(void **state) {
  (void)state;
  Rig *x = make_rig(2, true, 5);
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
  free_rig(x);
}

// With one candidate there is no noise: plans are the initial plan, shifted.
static void warm_start(void **state) {
  (void)state;
  Rig *x = make_rig(1, false, 3);
  SnPlanRequest r = initial_request(x, 0);
  SnPlan plan = plan_now(x, &r);
  sn_real first[40 * 3];
  memcpy(first, plan.ctrl, sizeof first);
  SnError err = {0};
  SnSettings s = *sn_planner_settings(x->p);
  s.candidates = 1;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  r.time = 0.0701;
  plan = plan_now(x, &r);
  for (int t = 0; t < 40; ++t)
    for (int i = 0; i < 3; ++i) assert_true(plan.ctrl[3 * t + i] == first[3 * (t + 7 < 40 ? t + 7 : 39) + i]);
  assert_true(plan.start == 0.0701);
  // Back in time: as it is.
  r.time = 0;
  const SnPlan again = plan_now(x, &r);
  assert_true(again.ctrl[0] == first[3 * 7]);
  free_rig(x);
}

static void deadline_before_all(void **state) {
  (void)state;
  Rig *x = make_rig(2, true, 3);
  SnPlanRequest r = initial_request(x, 0);
  r.deadline = 0;
  const SnPlan plan = plan_now(x, &r);
  assert_int_equal(plan.status, SN_PLAN_WARM_START);
  assert_true(plan.nstep == 40 && plan.iterations == 0 && isnan(plan.cost_after) && !plan.deadline_met);
  assert_true(isfinite(plan.cost_now));
  free_rig(x);
}

static void diverged(void **state) {
  (void)state;
  Rig *x = make_rig(2, false, 3);
  SnError err = {0};
  SnSettings s = *sn_planner_settings(x->p);
  s.max_velocity = 1e-3;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  SnPlanRequest r = initial_request(x, 0);
  SnPlan plan = plan_now(x, &r);
  assert_int_equal(plan.status, SN_PLAN_DIVERGED);
  assert_true(plan.nstep == 0 && plan.ctrl == NULL && isinf(plan.cost_after));
  s.max_velocity = 1e3;
  sn_planner_configure(x->p, &s, &err);
  plan = plan_now(x, &r);
  assert_int_equal(plan.status, SN_PLAN_OK);
  free_rig(x);
}

// An evaluation of a plan's controls gives the plan's cost, bit for bit, and its states.
static void evaluated(void **state) {
  (void)state;
  Rig *x = make_rig(2, false, 3);
  SnError err = {0};
  SnPlanRequest r = initial_request(x, 0.3);
  r.want_states = true;
  const SnPlan plan = plan_now(x, &r);
  assert_non_null(plan.qpos);
  sn_real qpos[41 * 2], qvel[41 * 2], act[41 * 2];
  double cost[41];
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
  free_rig(x);
}

// The state is rolled forward under the plan in force, whose rows come first.
static void latency(void **state) {
  (void)state;
  Rig *x = make_rig(2, false, 3);
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
  free_rig(x);
}

// Rolling forward heeds the clock as rollouts do: slices do not change the plan, and a deadline within the lead leaves
// the warm start.
static void latency_in_slices(void **state) {
  (void)state;
  Rig *whole = make_rig(1, false, 3), *sliced = make_rig(1, true, 3);
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
  free_rig(whole);
  free_rig(sliced);
}

// Activations that nobody measured follow the controls of the plan in force, or those reported.
static void estimated_act(void **state) {
  (void)state;
  Rig *x = make_rig(2, false, 3);
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
  const sn_real full[3] = {0, 1, 1};
  const SnApplied applied = {1, times, full};
  r.time = 0.16;
  r.applied = &applied;
  plan = plan_now(x, &r);
  assert_true(plan.act[0] > SN_R(0.8) && plan.act[1] > SN_R(0.8));
  assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_OK);
  free_rig(x);
}

// Reported controls of several rows count each in its time: one report is the same as two after one another.
static void reported_rows(void **state) {
  (void)state;
  const double times[3] = {-1, 0, 0.05};
  const sn_real rows[9] = {0, 0, 0, 0, 1, 1, 0, 0, SN_R(0.5)};
  sn_real once[2], twice[2];
  for (int k = 0; k < 2; ++k) {
    Rig *x = make_rig(1, false, 3);
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
    free_rig(x);
  }
  for (int i = 0; i < 2; ++i) assert_true(fabs((double)(once[i] - twice[i])) < 1e-6);
  assert_true(once[0] > SN_R(0.1) && once[1] > once[0] + SN_R(0.1));
}

static void live_tuning(void **state) {
  (void)state;
  Rig *x = make_rig(2, false, 3);
  SnError err = {0};
  SnPlanRequest r = initial_request(x, 0);
  const double now = plan_now(x, &r).cost_now;
  assert_int_equal(sn_planner_set_weight(x->p, "reach", 3, 2, &err), SN_OK);
  const double heavier = plan_now(x, &r).cost_now;
  assert_true(heavier > 2 * now);
  const double goal[3] = {0, 0, 0};
  assert_int_equal(sn_planner_set_target(x->p, "reach", goal, 3, &err), SN_OK);
  assert_true(plan_now(x, &r).cost_now != heavier);
  assert_int_equal(sn_planner_set_target(x->p, "reach", NULL, 0, &err), SN_OK);
  assert_true(plan_now(x, &r).cost_now == heavier);
  assert_int_equal(sn_planner_set_weight(x->p, "nothing", 1, 1, &err), SN_ERR_NOT_FOUND);
  assert_int_equal(sn_planner_set_weight(x->p, "effort", 1, 1, &err), SN_ERR_ARGUMENT);
  SnSettings s = *sn_planner_settings(x->p);
  s.horizon = 41;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_ERR_STATE);
  s.horizon = 40;
  s.candidates = 200;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  assert_int_equal(plan_now(x, &r).candidates, 200);
  free_rig(x);
}

// Between two iterations of one plan.
static void configured_in_flight(void **state) {
  (void)state;
  Rig *x = make_rig(2, false, 3);
  SnError err = {0};
  SnPlanRequest r = initial_request(x, 0);
  assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_OK);
  assert_false(sn_planner_slice(x->p, INFINITY));
  SnSettings s = *sn_planner_settings(x->p);
  s.candidates = 30;
  s.iterations = 3;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  assert_false(sn_planner_slice(x->p, INFINITY));
  assert_true(sn_planner_slice(x->p, INFINITY));
  SnPlan plan;
  sn_planner_finish(x->p, &plan);
  assert_true(plan.iterations == 3 && plan.candidates == 30);
  free_rig(x);
}

// Weights, settings and label change together at the begin of an iteration, and the plan says which of them its costs
// belong to: equal to what an evaluation under these weights says.
static void retuned_in_flight(void **state) {
  (void)state;
  Rig *x = make_rig(2, false, 3);
  SnError err = {0};
  SnPlan plan, peek;
  SnPlanRequest r = initial_request(x, 0);
  r.max_iterations = 4;
  assert_false(sn_planner_peek(x->p, &peek));
  assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_OK);
  assert_false(sn_planner_peek(x->p, &peek));
  assert_false(sn_planner_slice(x->p, INFINITY));
  assert_int_equal(sn_planner_set_weight(x->p, "reach", 30, 20, &err), SN_OK);
  sn_planner_label(x->p, 7);
  assert_true(sn_planner_peek(x->p, &peek));
  assert_true(peek.label == 0 && peek.iterations == 1 && peek.nstep == 40 && !peek.qpos);
  const double light = peek.cost_after, now = peek.cost_now;
  assert_false(sn_planner_slice(x->p, INFINITY));  // begun before the change: old weights
  assert_true(sn_planner_peek(x->p, &peek));
  assert_true(peek.label == 0 && peek.iterations == 2 && peek.cost_after <= light && peek.cost_now == now);
  assert_false(sn_planner_slice(x->p, INFINITY));
  assert_true(sn_planner_peek(x->p, &peek));
  assert_true(peek.label == 7 && peek.iterations == 3 && peek.cost_after <= peek.cost_before);
  assert_true(peek.cost_after > 2 * light && peek.cost_now > 2 * now);
  assert_true(sn_planner_slice(x->p, INFINITY));
  sn_planner_finish(x->p, &plan);
  assert_true(plan.label == 7 && plan.iterations == 4 && plan.cost_after <= peek.cost_after);
  const SnEvaluateRequest q = {.qpos = r.qpos, .qvel = r.qvel, .act = r.act, .nstep = plan.nstep, .ctrl = plan.ctrl};
  SnEvaluation e;
  assert_int_equal(sn_planner_evaluate(x->p, &q, INFINITY, &e, &err), SN_OK);
  assert_true(e.cost == plan.cost_after);
  assert_false(sn_planner_peek(x->p, &peek));
  free_rig(x);
}

static void bad_requests(void **state) {
  (void)state;
  Rig *x = make_rig(1, false, 3);
  SnError err = {0};
  SnPlan plan;
  SnPlanRequest r = initial_request(x, 0);
  const sn_real bad[2] = {0, (sn_real)NAN};
  r.qvel = bad;
  assert_int_equal(sn_planner_plan(x->p, &r, &plan, &err), SN_ERR_ARGUMENT);
  assert_non_null(strstr(err.text, "qvel[1]: nan"));
  r = initial_request(x, (double)INFINITY);
  assert_int_equal(sn_planner_plan(x->p, &r, &plan, &err), SN_ERR_ARGUMENT);
  r = initial_request(x, 0);
  const sn_real quat[4] = {0, 0, 0, 0};
  r.mocap_quat = quat;
  assert_int_equal(sn_planner_plan(x->p, &r, &plan, &err), SN_ERR_ARGUMENT);
  assert_non_null(strstr(err.text, "mocap_quat[0]: a quaternion of length 0"));
  r = initial_request(x, 0);
  SnSettings s = *sn_planner_settings(x->p);
  s.iterations = 0;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  assert_int_equal(sn_planner_plan(x->p, &r, &plan, &err), SN_ERR_ARGUMENT);
  assert_non_null(strstr(err.text, "there is no deadline"));
  // The planner is as before.
  r.max_iterations = 1;
  assert_int_equal(sn_planner_plan(x->p, &r, &plan, &err), SN_OK);
  assert_true(plan.number == 1);
  const SnEvaluateRequest q = {.time = 0, .qpos = r.qpos, .qvel = bad, .act = r.act};
  SnEvaluation e;
  assert_int_equal(sn_planner_evaluate(x->p, &q, INFINITY, &e, &err), SN_ERR_ARGUMENT);
  free_rig(x);
}

// Planning takes no memory from the heap.
static void no_allocation(void **state) {
  (void)state;
  Rig *x = make_rig(2, false, 3);
  SnPlanRequest r = initial_request(x, 0);
  r.want_states = true;
  plan_now(x, &r);
  const long before = atomic_load(&allocations);
  for (int k = 1; k < 4; ++k) {
    r.time = 0.05 * k;
    r.latency = 0.02;
    plan_now(x, &r);
  }
  assert_int_equal(atomic_load(&allocations), before);
  assert_true(before > 0);
  free_rig(x);
}

// Our own engine as the body: the tip comes close to its goal and stays there.
static void closed_loop(void **state) {
  (void)state;
  Rig *x = make_rig(2, false, 1);
  SnError err = {0};
  SnSettings s = *sn_planner_settings(x->p);
  s.candidates = 32;
  s.iterations = 4;
  sn_planner_configure(x->p, &s, &err);
  sn_planner_set_weight(x->p, "elbow", 0, 0, &err);
  SnPlanRequest r = initial_request(x, 0);
  r.want_states = true;
  sn_real qpos[2], qvel[2], act[2];
  double distance = 0;
  for (int k = 0; k < 30; ++k) {
    const SnPlan plan = plan_now(x, &r);
    assert_int_equal(plan.status, SN_PLAN_OK);
    memcpy(qpos, plan.qpos + 5 * 2, sizeof qpos);
    memcpy(qvel, plan.qvel + 5 * 2, sizeof qvel);
    memcpy(act, plan.act + 5 * 2, sizeof act);
    r.qpos = qpos;
    r.qvel = qvel;
    r.act = act;
    r.time += 5 * 0.01;
    const SnEvaluateRequest q = {.time = r.time, .qpos = qpos, .qvel = qvel, .act = act};
    SnEvaluation e;
    assert_int_equal(sn_planner_evaluate(x->p, &q, INFINITY, &e, &err), SN_OK);
    distance = e.measure[0];
    if (k >= 10) assert_true(distance < 0.1);
  }
  printf("closed loop: %.4f m from the goal at the end\n", distance);
  free_rig(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(improves),
                                     cmocka_unit_test(threads),
                                     cmocka_unit_test(seeds),
                                     cmocka_unit_test(deadline),
                                     cmocka_unit_test(reproduced),
                                     cmocka_unit_test(slices),
                                     cmocka_unit_test(warm_start),
                                     cmocka_unit_test(deadline_before_all),
                                     cmocka_unit_test(diverged),
                                     cmocka_unit_test(evaluated),
                                     cmocka_unit_test(evaluated_in_slices),
                                     cmocka_unit_test(latency),
                                     cmocka_unit_test(latency_in_slices),
                                     cmocka_unit_test(estimated_act),
                                     cmocka_unit_test(reported_rows),
                                     cmocka_unit_test(live_tuning),
                                     cmocka_unit_test(configured_in_flight),
                                     cmocka_unit_test(retuned_in_flight),
                                     cmocka_unit_test(bad_requests),
                                     cmocka_unit_test(no_allocation),
                                     cmocka_unit_test(closed_loop)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
