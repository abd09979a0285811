// A multistart's arithmetic, by hand: beginning, steps, stepping back, evaluation, selection. Jobs of the CPU backend:
// one of several iterations is as many of one, whatever the pauses and the threads.
#include "planner/optimize/multistart.h"

#include "planner/optimize/sampling.h"
#include "tests/planner/optimize/multistart_case.h"

static SnLaneShared shared;
static SnLane lane = {.n = 1, .shared = &shared};

static void near(sn_real got, double wanted) {
  if (!(fabs((double)got - wanted) < (sizeof(sn_real) == 4 ? 1e-6 : 1e-14)))
    fail_msg("%.17g, wanted %.17g", (double)got, wanted);
}

static void opening(void **state) {
  (void)state;
  Case x;
  make_case(&x);
  for (int i = 0; i < 2; ++i) {
    Memory *y = &x.memory[i];
    for (int k = 0; k < N; ++k) {
      y->offset[k] = y->best[k] = 7;
      y->first[k] = (sn_real)(k + 1);
      y->second[k] = (sn_real)(100 + k);
    }
    x.start[i].moments.power1 = SN_R(0.5);
    x.start[i].best_cost = 3;
    x.start[i].diverged = 1;
  }
  x.r.keep = 1;
  x.r.left = 2;
  sn_multistart_init(body.m, &lane, &x.r, 0, &x.start[0], x.scratch);
  sn_multistart_init(body.m, &lane, &x.r, 1, &x.start[1], x.scratch);
  assert_memory_equal(x.memory[0].base, x.nominal, sizeof x.nominal);
  sn_real noisy[ROWS * NU];
  sn_candidate_controls(body.m, &x.r.noise, 1, &lane, x.nominal, ROWS, x.scratch, noisy);
  assert_memory_equal(x.memory[1].base, noisy, sizeof noisy);
  assert_memory_not_equal(noisy, x.nominal, sizeof noisy);
  for (int i = 0; i < 2; ++i) {
    assert_true(isinf((double)x.start[i].best_cost) && x.start[i].diverged == 0);
    for (int k = 0; k < N; ++k) assert_true(x.memory[i].offset[k] == 0 && x.memory[i].best[k] == 0);
  }
  // start 0 keeps its moments, two knots further; the others begin anew
  for (int k = 0; k < N; ++k) {
    const bool there = k < N - 2 * NU;
    assert_true(x.memory[0].first[k] == (there ? (sn_real)(k + 2 * NU + 1) : 0));
    assert_true(x.memory[0].second[k] == (there ? (sn_real)(100 + k + 2 * NU) : 0));
    assert_true(x.memory[1].first[k] == 0 && x.memory[1].second[k] == 0);
  }
  assert_true(x.start[0].moments.power1 == SN_R(0.5) && x.start[1].moments.power1 == 1);
  x.r.left = 1000;
  sn_multistart_init(body.m, &lane, &x.r, 0, &x.start[0], x.scratch);
  for (int k = 0; k < N; ++k) assert_true(x.memory[0].first[k] == 0);
  sn_multistart_controls(body.m, &lane, &x.r, &x.start[0]);
  assert_memory_equal(x.memory[0].ctrl, x.nominal, sizeof x.nominal);
}

// Moments of rows of 1, 1, 2, 2, 2, 4 base steps, moved by some of them: shares of base steps, by hand. Where all
// shares are alike they stay so, but for what comes from behind the horizon.
static void moments_on_a_grid(void **state) {
  (void)state;
  SnError err = {0};
  static const int lengths[ROWS] = {1, 1, 2, 2, 2, 4};
  for (int left = 0; left <= 13; ++left) {
    Case x;
    make_case(&x);
    x.r.keep = 1;
    x.r.left = left;
    if (sn_grid_parse("2x1,3x2,1x4", 12, &x.r.time, &err) != SN_OK) fail_msg("%s", err.text);
    sn_real *first = x.memory[0].first, *second = x.memory[0].second;
    double share[12 + 4] = {0};  // of each base step, none from behind the horizon
    for (int t = 0, s = 0; t < ROWS; ++t) {
      first[NU * t] = (sn_real)(lengths[t] * 3);
      second[NU * t] = (sn_real)(lengths[t] * lengths[t] * 25);
      first[NU * t + 1] = (sn_real)(t + 1);
      second[NU * t + 1] = (sn_real)((t + 1) * (t + 1));
      for (int k = 0; k < lengths[t]; ++k) share[s++] = (t + 1.0) / lengths[t];
    }
    sn_multistart_init(body.m, &lane, &x.r, 0, &x.start[0], x.scratch);
    for (int t = 0, s = left; t < ROWS; s += lengths[t++]) {
      const int there = s + lengths[t] < 12 ? lengths[t] : (s < 12 ? 12 - s : 0);
      double sum = 0;
      for (int k = 0; k < there; ++k) sum += share[s + k];
      near(first[NU * t], 3.0 * there);
      near(second[NU * t], 25.0 * there * there);
      near(first[NU * t + 1], sum);
      near(second[NU * t + 1], sum * sum);
    }
  }
}

// A first step has the length of the rate; limits of the gradient and of the controls.
static void moving(void **state) {
  (void)state;
  Case x;
  make_case(&x);
  for (int k = 0; k < ROWS; ++k) x.nominal[NU * k + 2] = SN_R(0.97);
  sn_multistart_init(body.m, &lane, &x.r, 0, &x.start[0], x.scratch);
  Memory *y = &x.memory[0];
  y->gradient[0] = 2;
  y->gradient[1] = SN_R(-0.5);
  y->gradient[2] = SN_R(-4.0);  // to 1.07, cut at 1
  sn_multistart_step(body.m, &lane, &x.r, &x.start[0]);
  near(y->offset[0], -0.1 * 2 / (2 + 1e-8));
  near(y->offset[1], 0.1 * 0.5 / (0.5 + 1e-8));
  near(y->offset[2], 1 - 0.97);
  near(y->offset[3], 0);
  near(y->first[0], 0.2);
  near(y->second[0], 0.04);
  near(x.start[0].moments.power1, 0.9);
  sn_multistart_controls(body.m, &lane, &x.r, &x.start[0]);
  near(y->ctrl[0], 0.3 - 3 * 0.1 * 2 / (2 + 1e-8));
  near(y->ctrl[1], 0.5 + 0.1 * 0.5 / (0.5 + 1e-8));
  near(y->ctrl[2], 1);
  // the second: means 0.9 * 0.2 + 0.1 * 0.6 of a gradient of norm 5 that counts as 1
  x.r.rule.clip = SN_CLIP_GLOBAL;
  memset(y->gradient, 0, sizeof y->gradient);
  y->gradient[0] = 3;
  y->gradient[1] = 4;
  sn_multistart_step(body.m, &lane, &x.r, &x.start[0]);
  near(y->first[0], 0.24);
  near(y->second[0], 0.99 * 0.04 + 0.01 * 0.36);
  near(y->first[1], -0.9 * 0.05 + 0.1 * 0.8);
}

static void stepping_back(void **state) {
  (void)state;
  Case x;
  make_case(&x);
  sn_multistart_init(body.m, &lane, &x.r, 0, &x.start[0], x.scratch);
  Memory *y = &x.memory[0];
  for (int k = 0; k < N; ++k) y->first[k] = y->second[k] = 1;
  // without a finite iterate the base goes half the way to the initial plan, and again
  for (int n = 1; n <= 2; ++n) {
    sn_multistart_evaluate(body.m, &lane, &x.r, &x.start[0], SN_GRADIENT_DIVERGED, (sn_real)INFINITY);
    assert_true(x.start[0].diverged == 1 && isinf((double)x.start[0].best_cost));
    sn_multistart_step(body.m, &lane, &x.r, &x.start[0]);
    near(y->base[0], 0.1 + 0.2 / (1 << n));
    near(y->base[NU * (ROWS - 1) + 1], 0.25 + 0.25 / (1 << n));
    assert_true(y->offset[0] == 0 && y->first[3] == 0 && y->second[3] == 1);
  }
  // with one, offsets go half the way back to it
  for (int k = 0; k < ROWS * NU; ++k) y->ctrl_bar[k] = 1;
  y->offset[4] = SN_R(0.2);
  sn_multistart_evaluate(body.m, &lane, &x.r, &x.start[0], SN_GRADIENT_DONE, 5);
  assert_true(x.start[0].diverged == 0);
  y->offset[4] = SN_R(0.6);
  y->first[4] = 9;
  sn_multistart_evaluate(body.m, &lane, &x.r, &x.start[0], SN_GRADIENT_DIVERGED, (sn_real)INFINITY);
  sn_multistart_step(body.m, &lane, &x.r, &x.start[0]);
  near(y->offset[4], 0.4);
  near(y->base[0], 0.15);
  assert_true(y->first[4] == 0 && x.start[0].best_cost == 5);
}

static void judging(void **state) {
  (void)state;
  Case x;
  make_case(&x);
  SnMultistartStart *s = &x.start[0];
  Memory *y = &x.memory[0];
  sn_multistart_init(body.m, &lane, &x.r, 0, s, x.scratch);
  y->ctrl_bar[0] = 1;
  y->ctrl_bar[1] = 4;
  y->offset[1] = SN_R(0.125);
  sn_multistart_evaluate(body.m, &lane, &x.r, s, SN_GRADIENT_DONE, 8);
  assert_true(y->gradient[0] == 3 && y->gradient[1] == 4 && y->gradient[2] == 0);  // in units of the controls
  assert_true(s->norm == 5 && s->cost == 8 && s->best_cost == 8 && y->best[1] == SN_R(0.125));
  // as good is not better
  y->offset[1] = SN_R(0.25);
  sn_multistart_evaluate(body.m, &lane, &x.r, s, SN_GRADIENT_DONE, 8);
  assert_true(y->best[1] == SN_R(0.125));
  // a derivative that left the range of numbers counts as 0, its cost counts
  sn_multistart_evaluate(body.m, &lane, &x.r, s, SN_GRADIENT_UNBOUNDED, 7);
  assert_true(isnan((double)s->norm) && y->gradient[0] == 0 && s->best_cost == 7 && y->best[1] == SN_R(0.25));
  y->ctrl_bar[2] = (sn_real)INFINITY;
  sn_multistart_evaluate(body.m, &lane, &x.r, s, SN_GRADIENT_DONE, 6);
  assert_true(isnan((double)s->norm) && y->gradient[2] == 0 && s->best_cost == 6 && s->diverged == 0);
}

typedef struct Choice {
  int measured, count;
  double best_cost, cost[STARTS];
  int chosen;  // whose controls the nominal has then, -1: as before
  double terms, wanted;
} Choice;

static void choosing(void **state) {
  (void)state;
  const double inf = (double)INFINITY, nan = (double)NAN;
  const Choice choices[] = {
      {0, 3, nan, {5, 5, 6}, -1, 100, 5},          // the warm start itself, also at equal cost
      {0, 3, nan, {5, 4, 4}, 1, 101, 4},           // the earlier one at equal cost
      {0, 1, nan, {5, 4, 4}, -1, 100, 5},          // those beyond `count` do not take part
      {0, 3, nan, {inf, inf, 9}, 2, 102, 9},       // the warm start diverged
      {0, 3, nan, {inf, inf, inf}, -1, 100, inf},  // all did
      {1, 3, 4, {4, 4, 4}, -1, 0, 4},              // none is better
      {1, 3, 4, {3, 2, 3}, 1, 101, 2},
      {1, 2, 4, {inf, 3, 2}, 1, 101, 3},
      {1, 3, inf, {inf, 3, inf}, 1, 101, 3},
  };
  for (size_t i = 0; i < sizeof choices / sizeof *choices; ++i) {
    const Choice *c = &choices[i];
    const SnCost cost = {.nterm = 4};
    Case x;
    make_case(&x);
    sn_real before[ROWS * NU];
    memcpy(before, x.nominal, sizeof before);
    x.r.measured = c->measured;
    x.r.best_cost = (sn_real)c->best_cost;
    x.r.gradient_norm = 77;
    for (int k = 0; k < STARTS; ++k) {
      x.start[k].cost = (sn_real)c->cost[k];
      x.start[k].norm = (sn_real)(10 + k);
      for (int j = 0; j < ROWS * NU; ++j) x.memory[k].ctrl[j] = (sn_real)(1000 * k + j);
      for (int j = 0; j < 4; ++j) x.memory[k].term[j] = (sn_real)(100 + k);
    }
    sn_multistart_select_best(body.m, cost.nterm, &lane, &x.r, x.start, c->count);
    assert_true(x.r.measured == 1 && (double)x.r.best_cost == c->wanted);
    assert_memory_equal(x.nominal, c->chosen < 0 ? before : x.memory[c->chosen].ctrl, sizeof before);
    for (int j = 0; j < 4; ++j) assert_true((double)x.best_term[j] == c->terms);
    assert_true((double)x.r.gradient_norm == (c->terms > 0 ? c->terms - 90 : 77));
    if (!c->measured) assert_true((double)x.r.cost_before == c->cost[0]);
  }
}

// ---- jobs ----

enum { STEPS = 20 };

typedef struct Fixture {
  SnPool *pool;
  SnBackend *backend;
  SnBackendModel *model;
  SnPlanner *p;  // of it the body, the cost and the initial state
  sn_real *target, ctrl[STEPS * NU], initial[NU];
  double term[4];
  SnMultistartJob job;
} Fixture;

static void make_fixture(Fixture *x, int threads) {
  SnError err = {0};
  memset(x, 0, sizeof *x);
  x->pool = sn_pool_create(threads, &err);
  x->backend = sn_backend_cpu(x->pool, &err);
  SnPlannerDef def = sn_default_planner_def();
  def.model = body.m;
  def.task = task;
  def.backend = x->backend;
  def.settings = task->settings;
  if (!(x->p = sn_planner_create(&def, &err))) fail_msg("%s", err.text);
  const SnCost *cost = sn_planner_cost(x->p);
  if (!(x->model = sn_backend_load(x->backend, sn_planner_model(x->p), cost, STEPS, &err))) fail_msg("%s", err.text);
  x->target = calloc((STEPS + 1) * (size_t)cost->ntarget, sizeof *x->target);
  sn_cost_schedule(cost, 0, 0.01, STEPS + 1, x->target);
  assert_int_equal(sn_backend_reserve_multistart(x->backend, x->model, STARTS, &err), SN_OK);
  for (int k = 0; k < STEPS * NU; ++k) x->ctrl[k] = k % NU ? SN_R(0.1) : 0;
  x->job = (SnMultistartJob){.state = *sn_planner_initial(x->p),
                             .target = x->target,
                             .nstep = STEPS,
                             .max_velocity = 1000,
                             .settings = sn_default_gradient_settings(),
                             .grid = {STEPS, STEPS + 1, 1, 0, SN_SPLINE_ZERO},
                             .rule = {SN_R(0.05), SN_R(0.9), SN_R(0.999), SN_R(1e-8), SN_CLIP_GLOBAL, SN_R(1.0)},
                             .noise = {.seed = 9,
                                       .spacing = 5,
                                       .knots = sn_noise_knots(STEPS, 5, 0),
                                       .interpolation = SN_SPLINE_LINEAR,
                                       .scale = SN_R(0.2)},
                             .initial_ctrl = x->initial,
                             .starts = STARTS,
                             .count = STARTS,
                             .init = true,
                             .iterations = 1,
                             .deadline = INFINITY,
                             .ctrl = x->ctrl,
                             .best_term = x->term};
}

static void free_fixture(Fixture *x) {
  sn_backend_unload(x->backend, x->model);
  sn_planner_free(x->p);
  sn_backend_free(x->backend);
  sn_pool_free(x->pool);
  free(x->target);
}

// The job before has ended: the next one goes on.
static void next_job(Fixture *x, int iterations) {
  x->job.init = false;
  x->job.measured = true;
  x->job.iterations = iterations;
}

static const SnClock real_time = {NULL, NULL};

static void same(const Fixture *a, const Fixture *b) {
  assert_memory_equal(a->ctrl, b->ctrl, sizeof a->ctrl);
  assert_memory_equal(a->term, b->term, sizeof a->term);
  assert_true(a->job.best_cost == b->job.best_cost && a->job.gradient_norm == b->job.gradient_norm);
}

static void one_or_many(void **state) {
  (void)state;
  Fixture x, y, z;
  CountingClock count = {0};
  const SnClock clock = counting_clock(&count);
  make_fixture(&x, 1);
  make_fixture(&y, 1);
  make_fixture(&z, 3);
  x.job.iterations = 5;
  assert_true(sn_backend_multistart(x.backend, x.model, &x.job, &real_time, INFINITY));
  sn_backend_multistart_end(x.backend, x.model, &x.job);
  assert_true(x.job.done == 5 && x.job.used == STARTS && x.job.best_cost < x.job.cost_before);
  double before = NAN;
  for (int n = 0; n < 5; ++n) {
    if (n > 0) next_job(&y, 1);
    assert_true(sn_backend_multistart(y.backend, y.model, &y.job, &real_time, INFINITY));
    sn_backend_multistart_end(y.backend, y.model, &y.job);
    assert_true(y.job.done == 1 && y.job.used == STARTS);
    if (n == 0) before = y.job.cost_before;
  }
  assert_true(before == x.job.cost_before);
  same(&x, &y);
  // two jobs, with pauses, on three threads
  int pauses = 0;
  z.job.iterations = 2;
  for (int n = 0; n < 2; ++n) {
    if (n > 0) next_job(&z, 3);
    while (!sn_backend_multistart(z.backend, z.model, &z.job, &clock, (double)atomic_load(&count.reads) + 9)) ++pauses;
    sn_backend_multistart_end(z.backend, z.model, &z.job);
  }
  assert_true(pauses > 20);
  same(&x, &z);
  free_fixture(&x);
  free_fixture(&y);
  free_fixture(&z);
}

// A job that ends half way: starts that are complete count, up to the first that is not; as in a job of so many.
static void ended_early(void **state) {
  (void)state;
  int partial = 0, none = 0;
  CountingClock count = {0};
  const SnClock clock = counting_clock(&count);
  for (int budget = 5; budget < 700; budget += 41) {
    Fixture x, y;
    make_fixture(&x, 1);
    make_fixture(&y, 1);
    x.job.iterations = 4;
    const bool all =
        sn_backend_multistart(x.backend, x.model, &x.job, &clock, (double)atomic_load(&count.reads) + budget);
    sn_backend_multistart_end(x.backend, x.model, &x.job);
    const int done = x.job.done, used = x.job.used;
    assert_true(done >= 0 && done <= 4 && used >= 0 && used <= STARTS && all == (done == 4 && used == STARTS));
    none += done == 0;
    partial += done > 0 && used < STARTS;
    for (int n = 0; n < done; ++n) {
      if (n > 0) next_job(&y, 1);
      y.job.count = n == done - 1 ? used : STARTS;
      assert_true(sn_backend_multistart(y.backend, y.model, &y.job, &real_time, INFINITY));
      sn_backend_multistart_end(y.backend, y.model, &y.job);
    }
    if (done > 0) same(&x, &y);
    // the room is free for another job
    x.job.init = true;
    x.job.measured = false;
    x.job.iterations = 1;
    assert_true(sn_backend_multistart(x.backend, x.model, &x.job, &real_time, INFINITY));
    sn_backend_multistart_end(x.backend, x.model, &x.job);
    assert_true(x.job.done == 1 && isfinite(x.job.best_cost));
    free_fixture(&x);
    free_fixture(&y);
  }
  assert_true(partial > 3 && none > 0);
}

static void capacity(void **state) {
  (void)state;
  SnError err = {0};
  Fixture x;
  make_fixture(&x, 1);
  assert_int_equal(sn_backend_reserve_multistart(x.backend, x.model, 1000000, &err), SN_ERR_LIMIT);
  assert_non_null(strstr(err.text, "adam from 1000000 starts over 20 steps takes "));
  assert_non_null(strstr(err.text, " MiB, allowed on the CPU is 1024"));
  // what there is stays; more of it keeps what starts remember
  x.job.iterations = 2;
  assert_true(sn_backend_multistart(x.backend, x.model, &x.job, &real_time, INFINITY));
  sn_backend_multistart_end(x.backend, x.model, &x.job);
  const double best = x.job.best_cost;
  assert_int_equal(sn_backend_reserve_multistart(x.backend, x.model, STARTS + 5, &err), SN_OK);
  next_job(&x, 6);
  assert_true(sn_backend_multistart(x.backend, x.model, &x.job, &real_time, INFINITY));
  sn_backend_multistart_end(x.backend, x.model, &x.job);
  assert_true(x.job.best_cost < best);
  free_fixture(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(opening),       cmocka_unit_test(moments_on_a_grid), cmocka_unit_test(moving),
      cmocka_unit_test(stepping_back), cmocka_unit_test(judging),           cmocka_unit_test(choosing),
      cmocka_unit_test(one_or_many),   cmocka_unit_test(ended_early),       cmocka_unit_test(capacity)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
