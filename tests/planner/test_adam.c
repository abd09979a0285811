// Adam: its arithmetic against a plain one; as a planner, on gradients by differences: improvement, determinism, the
// deadline, divergence, starts, knots, live changes.
#include "planner/adam.h"
#include "planner/planner.h"
#include "planner/spline.h"
#include "tests/planner/bench_body.h"
#include "tests/planner/difference_backend.h"

// ---- arithmetic, on the controls of the bench body: a motor in [-3, 3], two muscles ----

enum { NU = 3, ROWS = 30, MOST = (ROWS + 2) * NU };

static SnLaneShared shared;
static SnLane lane = {.n = 1, .shared = &shared};
static uint64_t draws;

static sn_real draw(void) {
  uint64_t x = 0x9e3779b97f4a7c15u * ++draws;  // splitmix64, S. Vigna
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return (sn_real)((double)((x ^ (x >> 31)) >> 11) * 0x1p-52 - 1);
}

static SnAdamGrid grid_of(int spacing, int phase, int interpolation) {
  return (SnAdamGrid){.nstep = ROWS,
                      .knots = sn_noise_knots(ROWS, spacing, phase),
                      .spacing = spacing,
                      .phase = phase,
                      .interpolation = interpolation};
}

static void base_controls(sn_real *base) {
  for (int t = 0; t < ROWS; ++t) {
    base[NU * t] = 2 * draw();
    base[NU * t + 1] = SN_R(0.5) + SN_R(0.4) * draw();
    base[NU * t + 2] = SN_R(0.5) + SN_R(0.4) * draw();
  }
}

static const int grids[][3] = {{1, 0, SN_SPLINE_ZERO},   {4, 0, SN_SPLINE_ZERO},  {4, 3, SN_SPLINE_LINEAR},
                               {7, 5, SN_SPLINE_LINEAR}, {5, 2, SN_SPLINE_CUBIC}, {29, 11, SN_SPLINE_CUBIC}};

// <ctrl_bar, d ctrl> = <gradient, d offset> by differences, also where the clamp acts; without offsets the base.
static void chain_rule(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof grids / sizeof *grids; ++i) {
    const SnAdamGrid g = grid_of(grids[i][0], grids[i][1], grids[i][2]);
    sn_real base[ROWS * NU], ctrl[ROWS * NU], bar[ROWS * NU], offset[MOST] = {0}, gradient[MOST];
    assert_true(g.knots * NU <= MOST);
    base_controls(base);
    sn_adam_controls(body.m, &g, &lane, base, offset, ctrl);
    assert_memory_equal(ctrl, base, sizeof base);
    for (int k = 0; k < g.knots * NU; ++k) offset[k] = SN_R(0.6) * draw();
    for (int k = 0; k < ROWS * NU; ++k) bar[k] = draw();
    sn_adam_gradient(body.m, &g, &lane, base, offset, bar, gradient);
    int clamped = 0;
    for (int k = 0; k < g.knots * NU; ++k) {
      const sn_real h = SN_R(1e-4), at = offset[k];
      double slope = 0;
      for (int side = -1; side <= 1; side += 2) {
        offset[k] = at + (sn_real)side * h;
        sn_adam_controls(body.m, &g, &lane, base, offset, ctrl);
        for (int r = 0; r < ROWS * NU; ++r) slope += side * (double)bar[r] * (double)ctrl[r];
        for (int r = 0; r < ROWS * NU; ++r) clamped += r % NU > 0 && (ctrl[r] == 0 || ctrl[r] == 1);
      }
      offset[k] = at;
      slope /= 2 * (double)h;
      if (!(fabs(slope - (double)gradient[k]) < (sizeof(sn_real) == 4 ? 2e-2 : 1e-8)))
        fail_msg("grid %d, entry %d: %g, difference %g", (int)i, k, (double)gradient[k], slope);
    }
    assert_true(clamped > 0);
  }
}

static void knots_at_their_bounds(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof grids / sizeof *grids; ++i) {
    const SnAdamGrid g = grid_of(grids[i][0], grids[i][1], grids[i][2]);
    sn_real base[ROWS * NU], before[ROWS * NU], after[ROWS * NU], offset[MOST];
    base_controls(base);
    for (int k = 0; k < g.knots * NU; ++k) offset[k] = 5 * draw();
    sn_adam_controls(body.m, &g, &lane, base, offset, before);
    sn_adam_project(body.m, &g, &lane, base, offset);
    sn_adam_controls(body.m, &g, &lane, base, offset, after);
    for (int k = 0; k < g.knots * NU; ++k) assert_true(fabs((double)offset[k]) <= (k % NU ? 1.0 : 2.0));
    // where a knot belongs to one control the cut is exact: nothing changes behind the clamp
    for (int r = 0; g.spacing == 1 && r < ROWS * NU; ++r) {
      const sn_real u = base[r] + (r % NU ? 1 : 3) * offset[r];
      assert_true(fabs((double)(after[r] - before[r])) < 1e-6 && fabs((double)(u - after[r])) < 1e-6);
    }
    // and a control that was cut there, rounding or not, has the derivative inside: else it would stay
    sn_real bar[ROWS * NU], gradient[MOST];
    for (int r = 0; r < ROWS * NU; ++r) bar[r] = 1;
    sn_adam_gradient(body.m, &g, &lane, base, offset, bar, gradient);
    for (int r = 0; g.spacing == 1 && r < ROWS * NU; ++r) assert_true(gradient[r] == (r % NU ? 1 : 3));
  }
}

// Ten steps against the formulas in the paper, written out.
static void steps(void **state) {
  (void)state;
  const SnAdamGrid g = grid_of(1, 0, SN_SPLINE_ZERO);
  const SnAdamRule rule = {.rate = SN_R(0.01), .beta1 = SN_R(0.9), .beta2 = SN_R(0.999), .epsilon = SN_R(1e-8)};
  sn_real first[MOST] = {0}, second[MOST] = {0}, offset[MOST] = {0}, gradient[MOST];
  SnAdamMoments moments = {first, second, 1, 1};
  double m[MOST] = {0}, v[MOST] = {0}, y[MOST] = {0};
  for (int n = 1; n <= 10; ++n) {
    for (int k = 0; k < g.knots * NU; ++k) gradient[k] = SN_R(0.001) * draw() * (sn_real)(k + 1);
    sn_adam_step(body.m, &g, &rule, &lane, gradient, &moments, offset);
    for (int k = 0; k < g.knots * NU; ++k) {
      const double d = (double)gradient[k];
      m[k] = 0.9 * m[k] + 0.1 * d;
      v[k] = 0.999 * v[k] + 0.001 * d * d;
      y[k] -= 0.01 * (m[k] / (1 - pow(0.9, n))) / (sqrt(v[k] / (1 - pow(0.999, n))) + 1e-8);
      if (!(fabs(y[k] - (double)offset[k]) < (sizeof(sn_real) == 4 ? 1e-4 : 1e-12)))
        fail_msg("step %d, entry %d: %g, wanted %g", n, k, (double)offset[k], y[k]);
    }
  }
  // whatever comes, moments stay numbers
  for (int k = 0; k < g.knots * NU; ++k) gradient[k] = k % 2 ? SN_R(1e30) : SN_R(-1e-30);
  sn_adam_step(body.m, &g, &rule, &lane, gradient, &moments, offset);
  for (int k = 0; k < g.knots * NU; ++k)
    assert_true(isfinite((double)first[k]) && isfinite((double)second[k]) && isfinite((double)offset[k]));
}

static void clipping(void **state) {
  (void)state;
  const SnAdamGrid g = grid_of(5, 2, SN_SPLINE_LINEAR);
  SnAdamRule rule = {.clip = SN_CLIP_OFF, .clip_norm = SN_R(0.5)};
  const int n = g.knots * NU;
  const double tolerance = sizeof(sn_real) == 4 ? 1e-5 : 1e-12;
  sn_real raw[MOST], x[MOST];
  for (int k = 0; k < n; ++k) raw[k] = draw() * (k < NU ? SN_R(0.01) : SN_R(1.0));
  memcpy(x, raw, sizeof raw);
  const double norm = (double)sn_adam_norm(&lane, raw, n);
  double sum = 0;
  for (int k = 0; k < n; ++k) sum += (double)raw[k] * (double)raw[k];
  assert_true(fabs(norm - sqrt(sum)) < tolerance * norm && norm > 1);
  sn_adam_clip(body.m, &g, &rule, &lane, x);
  assert_memory_equal(x, raw, sizeof *raw * (size_t)n);
  rule.clip = SN_CLIP_GLOBAL;
  sn_adam_clip(body.m, &g, &rule, &lane, x);
  for (int k = 0; k < n; ++k) assert_true(fabs((double)x[k] - (double)raw[k] * 0.5 / norm) < tolerance);
  memcpy(x, raw, sizeof raw);
  rule.clip = SN_CLIP_STEP;
  sn_adam_clip(body.m, &g, &rule, &lane, x);
  assert_memory_equal(x, raw, sizeof *raw * NU);  // short enough as it is
  for (int j = 1; j < g.knots; ++j) {
    const double before = (double)sn_adam_norm(&lane, raw + j * NU, NU),
                 after = (double)sn_adam_norm(&lane, x + j * NU, NU);
    assert_true(fabs(after - fmin(before, 0.5)) < tolerance);
  }
  x[1] = (sn_real)NAN;
  assert_true(isinf((double)sn_adam_norm(&lane, x, n)));
  x[1] = SN_R(1e30);
  x[0] = SN_R(1e30);
  assert_true(isfinite((double)sn_adam_norm(&lane, x, n)));
}

// ---- the planner ----

typedef struct Rig {
  SnPool *pool;
  SnBackend *cpu;
  DifferenceBackend differences;
  SnPlanner *p;
  CountingClock count;
} Rig;

static SnSettings adam_settings(void) {
  SnSettings s = task->settings;
  s.planner = SN_PLANNER_ADAM;
  s.adam_iterations = 8;
  s.adam_rate = 0.05;
  return s;
}

// exact: with the CPU backend's own gradients.
static Rig *open_rig(int threads, bool counting, const SnSettings *settings, bool exact) {
  SnError err = {0};
  Rig *x = calloc(1, sizeof *x);
  x->pool = sn_pool_create(threads, &err);
  x->cpu = sn_backend_cpu(x->pool, &err);
  SnPlannerDef def = sn_default_planner_def();
  def.model = body.m;
  def.task = task;
  def.backend = exact ? x->cpu : difference_backend(&x->differences, x->cpu);
  def.settings = *settings;
  def.seed = 3;
  if (counting) def.clock = counting_clock(&x->count);
  x->p = sn_planner_create(&def, &err);
  if (!x->p) fail_msg("%s", err.text);
  return x;
}

static Rig *make_rig(int threads, bool counting, const SnSettings *settings) {
  return open_rig(threads, counting, settings, false);
}

static void free_rig(Rig *x) {
  sn_planner_free(x->p);
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

static SnPlan plan_now(Rig *x, const SnPlanRequest *r) {
  SnError err = {0};
  SnPlan plan;
  if (sn_planner_plan(x->p, r, &plan, &err) != SN_OK) fail_msg("%s", err.text);
  return plan;
}

static SnPlan plan_at(Rig *x, double time) {
  const SnPlanRequest r = initial_request(x, time);
  return plan_now(x, &r);
}

static void configure(Rig *x, const SnSettings *s) {
  SnError err = {0};
  if (sn_planner_configure(x->p, s, &err) != SN_OK) fail_msg("%s", err.text);
}

static size_t ctrl_bytes(const SnPlan *plan) { return sizeof(sn_real) * (size_t)plan->nstep * (size_t)plan->nu; }

static double evaluate(Rig *x, const SnPlan *plan) {
  SnError err = {0};
  const SnStart *s = sn_planner_initial(x->p);
  const SnEvaluateRequest q = {
      .time = plan->start, .qpos = s->qpos, .qvel = s->qvel, .act = s->act, .nstep = plan->nstep, .ctrl = plan->ctrl};
  SnEvaluation e;
  if (sn_planner_evaluate(x->p, &q, INFINITY, &e, &err) != SN_OK) fail_msg("%s", err.text);
  return e.cost;
}

static void improves(void **state) {
  (void)state;
  SnSettings s = adam_settings();
  s.adam_iterations = 25;
  Rig *x = make_rig(1, false, &s);
  const SnPlan plan = plan_at(x, 0);
  printf("cost before %.4f, after %.4f, gradient %.4f\n", plan.cost_before, plan.cost_after, plan.gradient_norm);
  assert_int_equal(plan.status, SN_PLAN_OK);
  assert_true(plan.cost_after < 0.6 * plan.cost_before && plan.cost_before == x->differences.costs[0]);
  assert_true(plan.iterations == 25 && plan.candidates == 1 && x->differences.ncost == 25);
  assert_true(plan.gradient_norm > 0 && isfinite(plan.gradient_norm));
  double best = INFINITY;
  for (int i = 0; i < 25; ++i) best = fmin(best, x->differences.costs[i]);
  assert_true(plan.cost_after == best && evaluate(x, &plan) == best);
  for (int k = 0; k < plan.nstep * plan.nu; ++k)
    assert_true(plan.ctrl[k] >= (k % 3 ? 0 : -3) && plan.ctrl[k] <= (k % 3 ? 1 : 3));
  // the next plan begins with what is left of this one
  const SnPlan next = plan_at(x, 0);
  assert_true(next.cost_before == best && next.cost_after <= best);
  free_rig(x);
}

// The best iterate is kept, also when the rate is far too large; one iteration measures the warm start alone.
static void never_worse(void **state) {
  (void)state;
  SnSettings s = adam_settings();
  s.adam_rate = 10;
  s.adam_iterations = 6;
  Rig *x = make_rig(1, false, &s);
  for (int k = 0; k < 4; ++k) {
    const SnPlan plan = plan_at(x, 0.05 * k);
    assert_true(plan.cost_after <= plan.cost_before);
  }
  SnError err = {0};
  assert_int_equal(sn_planner_reset(x->p, 3, &err), SN_OK);
  SnPlanRequest r = initial_request(x, 0);
  r.max_iterations = 1;
  const SnPlan plan = plan_now(x, &r);
  assert_true(plan.cost_after == plan.cost_before && plan.iterations == 1 && plan.status == SN_PLAN_OK);
  free_rig(x);
}

// The same plans in slices of any length and with any number of threads; the numbers that a plan reports reproduce it.
static void repeats(void **state) {
  (void)state;
  SnSettings s = adam_settings();
  s.adam_iterations = 4;
  s.adam_starts = 3;
  Rig *x = make_rig(1, false, &s), *y = make_rig(4, true, &s);
  SnError err = {0};
  for (int k = 0; k < 3; ++k) {
    const SnPlan a = plan_at(x, 0.05 * k);
    SnPlanRequest r = initial_request(y, 0.05 * k);
    assert_int_equal(sn_planner_begin(y->p, &r, &err), SN_OK);
    int n = 0;
    while (!sn_planner_slice(y->p, (double)atomic_load(&y->count.reads) + 40)) ++n;
    SnPlan b;
    sn_planner_finish(y->p, &b);
    assert_true(n > 20 && a.candidates == 3 && b.candidates == 3);
    assert_true(a.cost_after == b.cost_after && a.gradient_norm == b.gradient_norm);
    assert_memory_equal(a.ctrl, b.ctrl, ctrl_bytes(&a));
  }
  free_rig(x);
  free_rig(y);
}

// The same with the engine's gradients, which lead where differences do.
static void exact_gradients(void **state) {
  (void)state;
  SnSettings s = adam_settings();
  s.adam_starts = 2;
  Rig *differences = make_rig(1, false, &s), *x = open_rig(1, false, &s, true), *y = open_rig(4, true, &s, true);
  SnError err = {0};
  for (int k = 0; k < 3; ++k) {
    const SnPlan about = plan_at(differences, 0.05 * k), a = plan_at(x, 0.05 * k);
    assert_true(a.cost_after < a.cost_before && a.candidates == 2 && a.gradient_norm > 0);
    // in single precision differences are rounding
    if (k == 0 && sizeof(sn_real) == 8) assert_true(fabs(a.cost_after - about.cost_after) < 0.02 * about.cost_after);
    if (k == 0) assert_true(evaluate(x, &a) == a.cost_after);
    SnPlanRequest r = initial_request(y, 0.05 * k);
    assert_int_equal(sn_planner_begin(y->p, &r, &err), SN_OK);
    int n = 0;
    while (!sn_planner_slice(y->p, (double)atomic_load(&y->count.reads) + 40)) ++n;
    SnPlan b;
    sn_planner_finish(y->p, &b);
    assert_true(n > 20 && b.candidates == 2);
    assert_true(a.cost_after == b.cost_after && a.gradient_norm == b.gradient_norm);
    assert_memory_equal(a.ctrl, b.ctrl, ctrl_bytes(&a));
  }
  free_rig(differences);
  free_rig(x);
  free_rig(y);
}

static void deadline(void **state) {
  (void)state;
  SnSettings s = adam_settings();
  s.adam_iterations = 0;
  s.adam_starts = 2;
  int partial = 0, none = 0;
  for (int budget = 10; budget < 1000; budget += 97) {
    Rig *x = make_rig(1, true, &s), *y = make_rig(1, false, &s);
    SnPlanRequest r = initial_request(x, 0);
    r.deadline = (double)atomic_load(&x->count.reads) + budget;
    const SnPlan a = plan_now(x, &r);
    assert_true((double)atomic_load(&x->count.reads) <= r.deadline + 9);
    none += a.iterations == 0;
    if (a.iterations == 0) {
      assert_int_equal(a.status, SN_PLAN_WARM_START);
    } else {
      partial += a.candidates == 1;
      r = initial_request(y, 0);
      r.max_iterations = a.iterations;
      r.max_candidates = a.candidates;
      const SnPlan b = plan_now(y, &r);
      assert_true(b.iterations == a.iterations && b.candidates == a.candidates && b.cost_after == a.cost_after);
      assert_memory_equal(a.ctrl, b.ctrl, ctrl_bytes(&a));
    }
    free_rig(x);
    free_rig(y);
  }
  assert_true(partial > 3 && none > 0 && none < 5);
}

// Iterates that diverge cost infinity, are left by halves of the way, and never are the plan.
static void diverging(void **state) {
  (void)state;
  SnSettings s = adam_settings();
  s.adam_rate = 1.5;
  s.adam_iterations = 12;
  s.max_velocity = 7;
  Rig *x = make_rig(1, false, &s);
  const SnPlan plan = plan_at(x, 0);
  int lost = 0, back = 0;
  for (int i = 1; i < x->differences.ncost; ++i) {
    lost += isinf(x->differences.costs[i]);
    back += isinf(x->differences.costs[i - 1]) && isfinite(x->differences.costs[i]);
  }
  printf("%d of %d iterates diverged, %d times back; cost %.4f to %.4f\n", lost, x->differences.ncost, back,
         plan.cost_before, plan.cost_after);
  assert_true(lost > 0 && back > 0);
  assert_int_equal(plan.status, SN_PLAN_OK);
  assert_true(isfinite(plan.cost_after) && plan.cost_after < plan.cost_before);
  // all of them: a status, no controls, and the next plan is as good as ever
  SnSettings slow = s;
  slow.max_velocity = 1e-3;
  configure(x, &slow);
  assert_int_equal(plan_at(x, 0.05).status, SN_PLAN_DIVERGED);
  configure(x, &s);
  assert_int_equal(plan_at(x, 0.1).status, SN_PLAN_OK);
  free_rig(x);
}

// A warm start that diverges finds back to controls that do not.
static void diverging_warm_start(void **state) {
  (void)state;
  SnSettings s = adam_settings();
  s.adam_rate = 0.5;
  s.adam_iterations = 10;
  Rig *x = make_rig(1, false, &s);
  plan_at(x, 0);
  SnSettings strict = s;
  strict.max_velocity = 2.5;
  configure(x, &strict);
  const SnPlan plan = plan_at(x, 0);
  assert_true(isinf(plan.cost_before) && isfinite(plan.cost_after));
  assert_int_equal(plan.status, SN_PLAN_OK);
  free_rig(x);
}

static void starts(void **state) {
  (void)state;
  SnSettings s = adam_settings();
  s.adam_starts = 4;
  s.adam_iterations = 3;
  Rig *x = make_rig(2, false, &s);
  const SnPlan plan = plan_at(x, 0);
  assert_true(plan.candidates == 4 && x->differences.ncost == 12);
  assert_true(plan.cost_before == x->differences.costs[0]);
  for (int i = 1; i < 4; ++i) assert_true(x->differences.costs[i] != x->differences.costs[0]);
  double best = INFINITY;
  for (int i = 0; i < 12; ++i) best = fmin(best, x->differences.costs[i]);
  assert_true(plan.cost_after == best && evaluate(x, &plan) == best);
  free_rig(x);
}

// With knots the change to the warm start is a spline.
static void few_knots(void **state) {
  (void)state;
  SnSettings s = adam_settings();
  s.adam_knots = 5;
  s.adam_interpolation = SN_SPLINE_ZERO;
  Rig *x = make_rig(1, false, &s);
  const SnPlan plan = plan_at(x, 0);
  assert_true(plan.cost_after < plan.cost_before);
  int changes = 0;
  for (int t = 1; t < 40; ++t) changes += plan.ctrl[3 * t] != plan.ctrl[3 * t - 3];
  assert_true(changes > 1 && changes <= 4);
  // the grid moves with the plan: after 3 steps the knots are where they were
  int at[4], n = 0, moved = 0;
  for (int t = 1; t < 40; ++t)
    if (plan.ctrl[3 * t] != plan.ctrl[3 * t - 3] && n < 4) at[n++] = t;
  const SnPlan next = plan_at(x, 0.03);
  for (int t = 1; t < 37; ++t)
    if (next.ctrl[3 * t] != next.ctrl[3 * t - 3]) {
      bool known = false;
      for (int i = 0; i < n; ++i) known |= at[i] == t + 3;
      moved += !known;
    }
  assert_int_equal(moved, 0);
  free_rig(x);
}

// Kept moments change the plans after the first, and only these.
static void moments_kept(void **state) {
  (void)state;
  SnSettings fresh = adam_settings(), kept = fresh;
  kept.adam_moments = SN_MOMENTS_KEPT;
  Rig *x = make_rig(1, false, &fresh), *y = make_rig(1, false, &kept);
  for (int k = 0; k < 3; ++k) {
    const SnPlan a = plan_at(x, 0.05 * k), b = plan_at(y, 0.05 * k);
    assert_true(b.cost_after <= b.cost_before);
    if (k == 0)
      assert_memory_equal(a.ctrl, b.ctrl, ctrl_bytes(&a));
    else
      assert_memory_not_equal(a.ctrl, b.ctrl, ctrl_bytes(&a));
  }
  // a reset forgets them
  SnError err = {0};
  assert_int_equal(sn_planner_reset(x->p, 3, &err), SN_OK);
  assert_int_equal(sn_planner_reset(y->p, 3, &err), SN_OK);
  const SnPlan a = plan_at(x, 0), b = plan_at(y, 0);
  assert_memory_equal(a.ctrl, b.ctrl, ctrl_bytes(&a));
  free_rig(x);
  free_rig(y);
}

// From sampling to Adam and back between plans; a plan in progress goes on as it began.
static void live(void **state) {
  (void)state;
  SnSettings sampling = task->settings, adam = adam_settings();
  Rig *x = make_rig(1, false, &sampling);
  SnError err = {0};
  SnPlan plan = plan_at(x, 0);
  assert_true(isnan(plan.gradient_norm) && plan.candidates == 12);
  SnPlanRequest r = initial_request(x, 0);
  assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_OK);
  assert_false(sn_planner_slice(x->p, INFINITY));
  configure(x, &adam);
  while (!sn_planner_slice(x->p, INFINITY)) continue;
  sn_planner_finish(x->p, &plan);
  assert_true(isnan(plan.gradient_norm) && plan.iterations == 2);
  const double before = plan.cost_after;
  plan = plan_at(x, 0);
  assert_true(plan.cost_before == before && plan.cost_after < before && plan.iterations == 8 && plan.gradient_norm > 0);
  configure(x, &sampling);
  plan = plan_at(x, 0);
  assert_true(isnan(plan.gradient_norm) && plan.iterations == 2 && plan.candidates == 12);
  free_rig(x);
}

// Weights, starts and the rate change while a plan is made: the best so far is measured anew.
static void tuned_in_flight(void **state) {
  (void)state;
  SnSettings s = adam_settings();
  Rig *x = make_rig(1, false, &s);
  SnError err = {0};
  SnPlanRequest r = initial_request(x, 0);
  SnPlan peek, plan;
  assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_OK);
  assert_false(sn_planner_slice(x->p, INFINITY));
  assert_true(sn_planner_peek(x->p, &peek) && peek.gradient_norm > 0);
  const double light = peek.cost_after;
  assert_int_equal(sn_planner_set_weight(x->p, "reach", 30, 20, &err), SN_OK);
  sn_planner_label(x->p, 7);
  assert_false(sn_planner_slice(x->p, INFINITY));
  assert_true(sn_planner_peek(x->p, &peek) && peek.label == 7 && peek.cost_after > 2 * light);
  s.adam_starts = 3;
  s.adam_rate = 0.02;
  configure(x, &s);
  while (!sn_planner_slice(x->p, INFINITY)) continue;
  sn_planner_finish(x->p, &plan);
  assert_true(plan.candidates == 3 && plan.iterations == 8 && plan.cost_after < peek.cost_after);
  assert_true(evaluate(x, &plan) == plan.cost_after);
  free_rig(x);
}

static void refused(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings s = adam_settings();
  Rig *x = make_rig(1, false, &s);
  s.adam_knots = 1;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_ERR_ARGUMENT);
  assert_string_equal(err.text, "adam_knots: 1, allowed is 0, or 2 to the 40 steps of the horizon");
  s.adam_knots = 41;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_ERR_ARGUMENT);
  s = adam_settings();
  s.adam_iterations = 0;
  configure(x, &s);
  const SnPlanRequest r = initial_request(x, 0);
  assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_ERR_ARGUMENT);
  free_rig(x);
}

// The tip reaches the goal and stays there, a plan every 5 steps.
static void closed_loop(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings s = adam_settings();
  s.adam_iterations = 12;
  s.adam_rate = 0.1;
  Rig *x = make_rig(1, false, &s);
  assert_int_equal(sn_planner_set_weight(x->p, "elbow", 0, 0, &err), SN_OK);
  SnPlanRequest r = initial_request(x, 0);
  r.want_states = true;
  sn_real qpos[2], qvel[2], act[2];
  double distance = 0;
  for (int k = 0; k < 30; ++k) {
    const SnPlan plan = plan_now(x, &r);
    assert_true(plan.cost_after <= plan.cost_before);
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
    if (k >= 12 && !(distance < 0.1)) fail_msg("plan %d: %g m from the goal", k, distance);
  }
  printf("closed loop: %.4f m from the goal at the end\n", distance);
  free_rig(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(chain_rule),
                                     cmocka_unit_test(knots_at_their_bounds),
                                     cmocka_unit_test(steps),
                                     cmocka_unit_test(clipping),
                                     cmocka_unit_test(improves),
                                     cmocka_unit_test(never_worse),
                                     cmocka_unit_test(repeats),
                                     cmocka_unit_test(exact_gradients),
                                     cmocka_unit_test(deadline),
                                     cmocka_unit_test(diverging),
                                     cmocka_unit_test(diverging_warm_start),
                                     cmocka_unit_test(starts),
                                     cmocka_unit_test(few_knots),
                                     cmocka_unit_test(moments_kept),
                                     cmocka_unit_test(live),
                                     cmocka_unit_test(tuned_in_flight),
                                     cmocka_unit_test(refused),
                                     cmocka_unit_test(closed_loop)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
