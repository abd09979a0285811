// A planner on a device: jobs of several iterations, slices, deadlines, live changes, plans shown ahead of their turn;
// and the loss of the device. The device is a script (device_backend.h).
#include "tests/planner/device_backend.h"

typedef struct Rig {
  SnPool *pool;
  SnBackend *cpu;
  DeviceBackend d;
  SnPlanner *p;
} Rig;

static SnSettings adam_settings(int iterations) {
  SnSettings s = task->settings;
  s.planner = SN_PLANNER_ADAM;
  s.adam_iterations = iterations;
  s.adam_rate = 0.05;
  s.adam_starts = 2;
  return s;
}

// On the device with jobs of that many iterations (0: on the CPU itself), with the CPU as fallback or without one.
static Rig *make_rig(int job_iterations, const SnSettings *settings, bool fallback) {
  SnError err = {0};
  Rig *x = calloc(1, sizeof *x);
  x->pool = sn_pool_create(1, &err);
  x->cpu = sn_backend_cpu(x->pool, &err);
  SnPlannerDef def = sn_default_planner_def();
  def.model = body.m;
  def.task = task;
  def.backend = device_backend(&x->d, x->cpu, job_iterations > 0 ? job_iterations : 1);
  if (job_iterations == 0) def.backend = x->cpu;
  def.fallback = fallback ? x->cpu : NULL;
  def.settings = *settings;
  def.seed = 3;
  def.clock = device_clock(&x->d);
  x->p = sn_planner_create(&def, &err);
  if (!x->p) fail_msg("%s", err.text);
  return x;
}

static void free_rig(Rig *x) {
  sn_planner_free(x->p);
  assert_int_equal(x->d.models, 0);
  sn_backend_free(x->cpu);
  sn_pool_free(x->pool);
  free(x);
}

static SnPlanRequest initial_request(const Rig *x, double time) {
  const SnStart *s = sn_planner_initial(x->p);
  SnPlanRequest r = sn_default_plan_request();
  r.time = time;
  r.qpos = s->qpos;
  r.qvel = s->qvel;
  r.act = s->act;
  return r;
}

static void begin(Rig *x, const SnPlanRequest *r) {
  SnError err = {0};
  if (sn_planner_begin(x->p, r, &err) != SN_OK) fail_msg("%s", err.text);
}

static SnPlan plan_now(Rig *x, const SnPlanRequest *r) {
  SnPlan plan;
  begin(x, r);
  while (!sn_planner_slice(x->p, INFINITY)) continue;
  sn_planner_finish(x->p, &plan);
  return plan;
}

static double evaluate(Rig *x, const SnPlan *plan) {
  SnError err = {0};
  const SnStart *s = sn_planner_initial(x->p);
  const SnEvaluateRequest q = {
      .time = plan->start, .qpos = s->qpos, .qvel = s->qvel, .act = s->act, .nstep = plan->nstep, .ctrl = plan->ctrl};
  SnEvaluation e;
  if (sn_planner_evaluate(x->p, &q, INFINITY, &e, &err) != SN_OK) fail_msg("%s", err.text);
  return e.cost;
}

static void same_plan(const SnPlan *a, const SnPlan *b) {
  assert_true(a->status == b->status && a->iterations == b->iterations && a->candidates == b->candidates);
  assert_true(a->cost_before == b->cost_before && a->cost_after == b->cost_after && a->nstep == b->nstep);
  assert_memory_equal(&a->gradient_norm, &b->gradient_norm, sizeof a->gradient_norm);
  assert_memory_equal(a->ctrl, b->ctrl, sizeof(sn_real) * (size_t)a->nstep * (size_t)a->nu);
  for (int i = 0; i < a->nterm; ++i) assert_true(a->term[i] == b->term[i]);
}

// ---- jobs ----

// However many iterations a job has: the same plans, from one to the next.
static void jobs(void **state) {
  (void)state;
  const int lengths[] = {1, 3, 4, 100}, asked[] = {12, 4, 3, 1};
  SnSettings s = adam_settings(12);
  s.adam_moments = SN_MOMENTS_KEPT;
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
    Rig *x = make_rig(lengths[i], &s, false), *y = make_rig(0, &s, false);
    for (int k = 0; k < 3; ++k) {
      SnPlanRequest r = initial_request(x, 0.05 * k);
      x->d.jobs = 0;
      const SnPlan a = plan_now(x, &r), b = plan_now(y, &r);
      same_plan(&a, &b);
      assert_true(a.iterations == 12 && a.cost_after < a.cost_before && x->d.jobs == asked[i]);
      assert_string_equal(a.backend, "scripted");
      assert_string_equal(b.backend, "cpu");
      assert_true(!a.device_lost && !a.remark[0]);
    }
    // as many as are asked for, the last with fewer candidates
    SnPlanRequest r = initial_request(x, 0.2);
    r.max_iterations = 6;
    r.max_candidates = 1;
    const SnPlan a = plan_now(x, &r), b = plan_now(y, &r);
    same_plan(&a, &b);
    assert_true(a.iterations == 6 && a.candidates == 1);
    free_rig(x);
    free_rig(y);
  }
}

// A slice holds as many iterations as fit, at least one; between two slices the best so far can be looked at.
static void slices(void **state) {
  (void)state;
  const double lengths[] = {2.5, 0.25};
  const int wanted[] = {2, 1};
  const SnSettings s = adam_settings(7);
  Rig *y = make_rig(0, &s, false);
  const SnPlanRequest r = initial_request(y, 0);
  const SnPlan b = plan_now(y, &r);
  for (int i = 0; i < 2; ++i) {
    Rig *x = make_rig(100, &s, false);
    SnPlan plan, peek;
    double last = INFINITY;
    int done = 0;
    x->d.seconds = 1;
    begin(x, &r);
    assert_false(sn_planner_peek(x->p, &peek));
    while (!sn_planner_slice(x->p, x->d.now + lengths[i])) {
      done += wanted[i];
      assert_int_equal(sn_planner_iterations(x->p), done);
      assert_true(sn_planner_peek(x->p, &peek) && peek.iterations == done && peek.cost_after <= last);
      last = peek.cost_after;
    }
    assert_true(done == 6);
    sn_planner_finish(x->p, &plan);
    same_plan(&plan, &b);
    free_rig(x);
  }
  free_rig(y);
}

// No iteration is begun that would end after the deadline, nobody waits for it in vain, and the number of iterations
// reproduces the plan.
static void deadline(void **state) {
  (void)state;
  const SnSettings s = adam_settings(0);
  for (int n = 0; n < 5; ++n) {
    Rig *x = make_rig(4, &s, false), *y = make_rig(0, &s, false);
    SnPlanRequest r = initial_request(x, 0);
    SnPlan plan;
    x->d.seconds = 1;
    x->d.now = 50;
    r.deadline = 50 + 2.4 * n;
    begin(x, &r);
    int calls = 0;
    while (!sn_planner_slice(x->p, n % 2 ? INFINITY : x->d.now + 1.5)) ++calls;
    assert_true(calls < 20);
    sn_planner_finish(x->p, &plan);
    assert_true(plan.deadline_met && plan.iterations == (int)(2.4 * n));
    assert_int_equal(plan.status, n == 0 ? SN_PLAN_WARM_START : SN_PLAN_OK);
    if (n > 0) {
      r.deadline = INFINITY;
      r.max_iterations = plan.iterations;
      r.max_candidates = plan.candidates;
      const SnPlan again = plan_now(y, &r);
      same_plan(&plan, &again);
    }
    free_rig(x);
    free_rig(y);
  }
}

// Between two slices; not within one.
static void tuned(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings s = adam_settings(9);
  Rig *x = make_rig(100, &s, false);
  const SnPlanRequest r = initial_request(x, 0);
  SnPlan plan, peek;
  x->d.seconds = 1;
  begin(x, &r);
  assert_false(sn_planner_slice(x->p, x->d.now + 3));
  assert_true(sn_planner_peek(x->p, &peek) && peek.iterations == 3 && peek.label == 0);
  const double light = peek.cost_after;
  assert_int_equal(sn_planner_set_weight(x->p, "reach", 30, 20, &err), SN_OK);
  s.adam_iterations = 11;
  s.adam_starts = 3;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  sn_planner_label(x->p, 4);
  assert_false(sn_planner_slice(x->p, x->d.now + 3));
  assert_true(sn_planner_peek(x->p, &peek) && peek.iterations == 6 && peek.label == 4 && peek.candidates == 3);
  assert_true(peek.cost_after > 2 * light && peek.cost_after <= peek.cost_before);
  while (!sn_planner_slice(x->p, x->d.now + 3)) continue;
  sn_planner_finish(x->p, &plan);
  assert_true(plan.iterations == 11 && plan.label == 4 && evaluate(x, &plan) == plan.cost_after);
  free_rig(x);
}

// Shown to the device, with the lead rolled forward, any number of times; a plan that ends before its turn; a change
// that comes too late for the job.
static void submitted(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings s = adam_settings(5);
  Rig *x = make_rig(100, &s, false), *y = make_rig(0, &s, false);
  SnPlanRequest r = initial_request(x, 0);
  SnPlan plan;
  r.latency = 0.05;
  sn_planner_submit(x->p);
  assert_int_equal(x->d.submits, 0);
  begin(x, &r);
  sn_planner_submit(x->p);
  sn_planner_submit(x->p);
  assert_true(x->d.submits == 2 && x->d.job && x->d.job->iterations == 5 && x->d.job->open && x->d.jobs == 0);
  assert_int_equal(sn_planner_set_weight(x->p, "reach", 30, 20, &err), SN_OK);
  sn_planner_label(x->p, 1);
  assert_true(sn_planner_slice(x->p, INFINITY));
  sn_planner_submit(x->p);
  assert_int_equal(x->d.submits, 2);
  sn_planner_finish(x->p, &plan);
  begin(y, &r);
  sn_planner_submit(y->p);
  while (!sn_planner_slice(y->p, INFINITY)) continue;
  SnPlan other;
  sn_planner_finish(y->p, &other);
  assert_true(plan.label == 0 && plan.iterations == 5 && plan.lead == 5);
  same_plan(&plan, &other);
  // never sliced: the warm start; and the next plan drops what was shown
  begin(x, &r);
  sn_planner_submit(x->p);
  sn_planner_finish(x->p, &plan);
  assert_true(plan.status == SN_PLAN_WARM_START && !x->d.job);
  begin(x, &r);
  sn_planner_submit(x->p);
  begin(x, &r);
  assert_null(x->d.job);
  while (!sn_planner_slice(x->p, INFINITY)) continue;
  sn_planner_finish(x->p, &plan);
  assert_true(plan.iterations == 5 && plan.label == 1);
  // sampling has nothing to show
  s.planner = SN_PLANNER_SAMPLING;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  x->d.submits = 0;
  begin(x, &r);
  sn_planner_submit(x->p);
  assert_int_equal(x->d.submits, 0);
  free_rig(x);
  free_rig(y);
}

// Moments are kept from plan to plan; not beyond a job that was shown and dropped, of which nobody knows how far it
// came.
static void dropped(void **state) {
  (void)state;
  SnSettings s = adam_settings(5);
  s.adam_moments = SN_MOMENTS_KEPT;
  Rig *x = make_rig(100, &s, false);
  const SnPlanRequest r = initial_request(x, 0);
  plan_now(x, &r);
  begin(x, &r);
  sn_planner_submit(x->p);
  assert_true(x->d.job->open && x->d.job->keep);
  begin(x, &r);
  sn_planner_submit(x->p);
  assert_true(x->d.job->open && !x->d.job->keep);
  while (!sn_planner_slice(x->p, INFINITY)) continue;
  begin(x, &r);
  sn_planner_submit(x->p);
  assert_true(x->d.job->keep);
  free_rig(x);
}

// More room is new room, where nothing is remembered: the next job opens, also when as many starts as before are
// wanted.
static void new_room(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings s = adam_settings(9);
  Rig *x = make_rig(100, &s, false);
  const SnPlanRequest r = initial_request(x, 0);
  SnPlan plan;
  x->d.seconds = 1;
  begin(x, &r);
  assert_false(sn_planner_slice(x->p, x->d.now + 3));
  sn_planner_submit(x->p);
  assert_false(x->d.job->open);
  assert_false(sn_planner_slice(x->p, x->d.now + 3));
  for (int starts = 5; starts >= 2; starts -= 3) {
    s.adam_starts = starts;
    assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  }
  sn_planner_submit(x->p);
  assert_true(x->d.job->open && x->d.job->measured && x->d.job->starts == 2);
  while (!sn_planner_slice(x->p, INFINITY)) continue;
  sn_planner_finish(x->p, &plan);
  assert_true(plan.iterations == 9 && plan.cost_after < plan.cost_before);
  free_rig(x);
}

// ---- the loss ----

// In the third job: the plan goes on at the CPU with the iterations that are left, from the best so far.
static void lost(void **state) {
  (void)state;
  const SnSettings s = adam_settings(12);
  Rig *x = make_rig(3, &s, true), *y = make_rig(0, &s, false);
  SnPlanRequest r = initial_request(x, 0);
  SnPlan plan;
  r.max_iterations = 6;
  const double best = plan_now(y, &r).cost_after;
  r.max_iterations = 0;
  x->d.lose_at = 3;
  plan = plan_now(x, &r);
  assert_true(plan.status == SN_PLAN_OK && plan.iterations == 12 && plan.candidates == 2 && plan.device_lost);
  assert_string_equal(plan.backend, "cpu");
  assert_string_equal(plan.remark, "scripted is lost: call 3 failed; cpu goes on");
  assert_true(plan.cost_before == best && plan.cost_after < best && evaluate(x, &plan) == plan.cost_after);
  assert_true(x->d.models == 0 && x->d.calls == 3);
  // the next plans are made there from their beginning
  const double after = plan.cost_after;
  plan = plan_now(x, &r);
  assert_true(plan.cost_before == after && plan.iterations == 12 && plan.device_lost && !plan.remark[0]);
  free_rig(x);
  free_rig(y);
}

// At any call of a plan: the plan is there, as good as the warm start at least.
static void lost_anywhere(void **state) {
  (void)state;
  SnSettings s = adam_settings(6);
  for (int sampling = 0; sampling < 2; ++sampling) {
    s.planner = sampling ? SN_PLANNER_SAMPLING : SN_PLANNER_ADAM;
    s.iterations = 3;
    for (int at = 1; at <= 4; ++at) {
      Rig *x = make_rig(2, &s, true);
      SnPlanRequest r = initial_request(x, 0);
      r.want_states = true;
      x->d.lose_at = at;
      const SnPlan plan = plan_now(x, &r);
      assert_true(plan.status == SN_PLAN_OK && plan.iterations == (sampling ? 3 : 6) && plan.qpos);
      assert_true(plan.cost_after <= plan.cost_before && evaluate(x, &plan) == plan.cost_after);
      assert_true(plan.device_lost == (at <= 3));
      free_rig(x);
    }
  }
}

// Without another backend: what there is, at once, deadline or not.
static void lost_alone(void **state) {
  (void)state;
  const SnSettings s = adam_settings(12);
  Rig *x = make_rig(3, &s, false);
  SnPlanRequest r = initial_request(x, 0);
  sn_real before[40 * 3];
  SnPlan plan = plan_now(x, &r);
  memcpy(before, plan.ctrl, sizeof before);
  x->d.lose_at = x->d.calls + 3;
  plan = plan_now(x, &r);
  assert_true(plan.status == SN_PLAN_OK && plan.iterations == 6 && plan.device_lost);
  assert_string_equal(plan.backend, "scripted");
  assert_non_null(strstr(plan.remark, "scripted is lost: call "));
  assert_non_null(strstr(plan.remark, "no fallback"));
  memcpy(before, plan.ctrl, sizeof before);
  for (int k = 1; k <= 2; ++k) {
    r.time = 0.05 * k;
    r.latency = 0.02;
    r.want_states = true;
    plan = plan_now(x, &r);
    assert_true(plan.status == SN_PLAN_WARM_START && plan.iterations == 0 && plan.device_lost && plan.nstep == 42);
    assert_true(isnan(plan.cost_before) && plan.qpos);
    for (int t = 0; t < 20; ++t)  // what was in force there
      for (int j = 0; j < 3; ++j) assert_true(plan.ctrl[3 * t + j] == before[3 * (t + 5 * k) + j]);
  }
  assert_int_equal(x->d.models, 1);
  free_rig(x);
}

// Before a planner is made, and where there is no other backend then.
static void lost_before(void **state) {
  (void)state;
  SnError err = {0};
  const SnSettings s = adam_settings(4);
  Rig *x = make_rig(3, &s, true);
  SnPlannerDef def = sn_default_planner_def();
  def.model = body.m;
  def.task = task;
  def.backend = &x->d.table;
  def.fallback = x->cpu;
  def.settings = s;
  x->d.lost = true;
  SnPlanner *p = sn_planner_create(&def, &err);
  if (!p) fail_msg("%s", err.text);
  SnPlan plan;
  const SnPlanRequest r = initial_request(x, 0);
  assert_int_equal(sn_planner_plan(p, &r, &plan, &err), SN_OK);
  assert_true(plan.device_lost && plan.iterations == 4);
  assert_string_equal(plan.backend, "cpu");
  sn_planner_free(p);
  def.fallback = NULL;
  assert_null(sn_planner_create(&def, &err));
  assert_string_equal(err.text, "the device is lost");
  free_rig(x);
}

// Gradients of evaluations: the same at the fallback; without one there is none.
static void lost_evaluating(void **state) {
  (void)state;
  SnError err = {0};
  const SnSettings s = adam_settings(4);
  sn_real ctrl[20 * 3], bar[20 * 3];
  for (int k = 0; k < 60; ++k) ctrl[k] = SN_R(0.1);
  for (int fallback = 0; fallback < 2; ++fallback) {
    Rig *x = make_rig(3, &s, fallback);
    const SnStart *at = sn_planner_initial(x->p);
    const SnEvaluateRequest q = {
        .qpos = at->qpos, .qvel = at->qvel, .act = at->act, .nstep = 20, .ctrl = ctrl, .gradient = true};
    SnEvaluation e;
    assert_int_equal(sn_planner_evaluate(x->p, &q, INFINITY, &e, &err), SN_OK);
    assert_true(e.gradient && e.gradient->status == SN_GRADIENT_DONE && !e.device_lost);
    memcpy(bar, e.gradient->ctrl_bar, sizeof bar);
    const double cost = e.cost;
    x->d.lose_at = x->d.calls + 1;
    assert_int_equal(sn_planner_evaluate_begin(x->p, &q, &err), SN_OK);
    int n = 0;
    while (!sn_planner_evaluate_slice(x->p, INFINITY)) assert_true(++n < 5);
    sn_planner_evaluate_finish(x->p, &e);
    assert_true(x->d.lost && e.cost == cost && e.device_lost == !fallback);
    if (fallback) {
      assert_true(e.gradient && e.gradient->status == SN_GRADIENT_DONE);
      assert_memory_equal(bar, e.gradient->ctrl_bar, sizeof bar);
    } else {
      assert_null(e.gradient);
      assert_int_equal(sn_planner_evaluate_begin(x->p, &q, &err), SN_ERR_STATE);
      assert_non_null(strstr(err.text, "scripted is lost"));
    }
    // costs alone need no device
    SnEvaluateRequest plain = q;
    plain.gradient = false;
    assert_int_equal(sn_planner_evaluate(x->p, &plain, INFINITY, &e, &err), SN_OK);
    assert_true(e.cost == cost);
    free_rig(x);
  }
}

// ---- what is refused ----

static void without_gradients(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings adam = adam_settings(4), sampling = task->settings;
  Rig *x = make_rig(3, &sampling, false);
  static const char text[] = "planner: adam needs gradients, and the backend 'scripted' makes none";
  const SnPlanRequest r = initial_request(x, 0);
  SnPlan plan;
  x->d.table.need_refine = NULL;
  assert_int_equal(sn_planner_configure(x->p, &adam, &err), SN_ERR_UNSUPPORTED);
  assert_string_equal(err.text, text);
  begin(x, &r);
  assert_false(sn_planner_slice(x->p, INFINITY));
  assert_int_equal(sn_planner_configure(x->p, &adam, &err), SN_ERR_UNSUPPORTED);
  while (!sn_planner_slice(x->p, INFINITY)) continue;
  sn_planner_finish(x->p, &plan);
  assert_true(plan.status == SN_PLAN_OK && plan.iterations == 2);
  SnPlannerDef def = sn_default_planner_def();
  def.model = body.m;
  def.task = task;
  def.backend = &x->d.table;
  def.settings = adam;
  assert_null(sn_planner_create(&def, &err));
  assert_int_equal(err.code, SN_ERR_UNSUPPORTED);
  assert_string_equal(err.text, text);
  free_rig(x);
}

// Settings without room: refused at once where nothing is under way; else the plan goes on with the old ones, weights
// and label too, and says so, until something else is set.
static void without_room(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings s = adam_settings(6);
  Rig *x = make_rig(2, &s, false);
  const SnPlanRequest r = initial_request(x, 0);
  SnPlan plan, peek;
  x->d.most = 3;
  s.adam_starts = 4;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_ERR_LIMIT);
  assert_string_equal(err.text, "4 starts do not fit: room for 3");
  assert_int_equal(sn_planner_settings(x->p)->adam_starts, 2);
  begin(x, &r);
  sn_planner_submit(x->p);  // under way
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  assert_int_equal(sn_planner_set_weight(x->p, "reach", 30, 20, &err), SN_OK);
  sn_planner_label(x->p, 5);
  assert_false(sn_planner_slice(x->p, INFINITY));
  assert_true(sn_planner_peek(x->p, &peek));
  const double before = peek.cost_after;
  while (!sn_planner_slice(x->p, INFINITY)) continue;
  sn_planner_finish(x->p, &plan);
  assert_true(plan.candidates == 2 && plan.label == 0 && plan.cost_after <= before && plan.iterations == 6);
  assert_string_equal(plan.remark, "settings are not in force: 4 starts do not fit: room for 3");
  // the next plan tries again, and the next one has room
  plan = plan_now(x, &r);
  assert_true(plan.candidates == 2 && plan.label == 0 && plan.remark[0]);
  begin(x, &r);
  assert_false(sn_planner_slice(x->p, INFINITY));
  s.adam_starts = 3;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  sn_planner_label(x->p, 6);
  while (!sn_planner_slice(x->p, INFINITY)) continue;
  sn_planner_finish(x->p, &plan);
  assert_true(plan.candidates == 3 && plan.label == 6 && plan.cost_after > 2 * before);
  plan = plan_now(x, &r);
  assert_true(plan.candidates == 3 && plan.label == 6 && !plan.remark[0]);
  free_rig(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(jobs),
                                     cmocka_unit_test(slices),
                                     cmocka_unit_test(deadline),
                                     cmocka_unit_test(tuned),
                                     cmocka_unit_test(submitted),
                                     cmocka_unit_test(dropped),
                                     cmocka_unit_test(new_room),
                                     cmocka_unit_test(lost),
                                     cmocka_unit_test(lost_anywhere),
                                     cmocka_unit_test(lost_alone),
                                     cmocka_unit_test(lost_before),
                                     cmocka_unit_test(lost_evaluating),
                                     cmocka_unit_test(without_gradients),
                                     cmocka_unit_test(without_room)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
