// Gradients of rollouts: against differences of rollouts, the same bits from any number of threads and after any
// pauses, both methods alike, and what comes of rollouts that diverge.
#include "planner/backend/backend.h"
#include "tests/planner/bench_body.h"

enum { STEPS = 24, NQ = 2, NV = 2, NA = 2, NU = 3, TERMS = 5, TARGETS = 20, ITEMS = 3 };

// What a gradient gives.
typedef struct Result {
  double cost, norm, term[TERMS];
  sn_real ctrl[STEPS * NU], qpos[NV], qvel[NV], act[NA], target[(STEPS + 1) * TARGETS];
} Result;

// Inputs of one gradient.
typedef struct Input {
  sn_real qpos[NQ], qvel[NV], act[NA], ctrl[STEPS * NU], target[(STEPS + 1) * TARGETS], before[NU];
} Input;

typedef struct Fixture {
  SnPool *pool;
  SnBackend *backend;
  SnModel *m;
  SnCost *cost;
  SnBackendModel *model;
  SnRolloutRunner *runner;
  Input input[ITEMS];
  SnGradient item[ITEMS];
  Result result[ITEMS];
  SnGradientBatch batch;
} Fixture;

// The task of the bench body, with a term on the rates of controls before its others.
static SnTask *smooth;

static int setup(void **state) {
  SnError err = {0};
  char text[2000];
  static const char terms[] = "terms:\n";
  body_setup(state);
  const char *rest = strstr(body_task, terms);
  const int head = (int)(rest - body_task);
  snprintf(
      text, sizeof text,
      "%.*sterms:\n  - {name: rate, residual: {control_rate: all}, target: 0.3, norm: euclidean, width: 1, weight: "
      "0.02}\n%s",
      head, body_task, rest + strlen(terms));
  smooth = sn_task_parse(text, strlen(text), "smooth.yaml", &err);
  if (!smooth) fail_msg("%s", err.text);
  return 0;
}

static int teardown(void **state) {
  sn_task_free(smooth);
  return body_teardown(state);
}

static sn_real wave(int i, int k) { return sn_sin((sn_real)(i * 7 + k * 3) * SN_R(0.37)); }

// The first one does not know the controls before.
static SnState state_of(const Input *in, int k) {
  return (SnState){
      .time = 0.1 * k, .qpos = in->qpos, .qvel = in->qvel, .act = in->act, .before = k > 0 ? in->before : NULL};
}

// Three different gradients on a pool of `threads`.
static void make_fixture(Fixture *x, int threads) {
  SnError err = {0};
  memset(x, 0, sizeof *x);
  x->pool = sn_pool_create(threads, &err);
  x->backend = sn_backend_cpu(x->pool, &err);
  x->m = sn_task_model(smooth, body.m, &err);
  x->cost = sn_cost_create(smooth, x->m, &err);
  assert_true(x->m->nq == NQ && x->m->nv == NV && x->m->na == NA && x->m->nu == NU);
  assert_true(x->cost->ntarget <= TARGETS && x->cost->nterm == TERMS);
  x->model = sn_backend_load(x->backend, x->m, x->cost, STEPS, &err);
  assert_non_null(x->model);
  assert_int_equal(sn_backend_reserve_gradients(x->backend, x->model, ITEMS, &err), SN_OK);
  x->runner = sn_rollout_runner_create(x->m, x->cost, &err);
  for (int k = 0; k < ITEMS; ++k) {
    Input *in = &x->input[k];
    Result *out = &x->result[k];
    for (int i = 0; i < NQ; ++i) in->qpos[i] = SN_R(0.3) + SN_R(0.2) * wave(i, k);
    for (int i = 0; i < NV; ++i) in->qvel[i] = wave(i, k + 5);
    for (int i = 0; i < NA; ++i) in->act[i] = SN_R(0.4) + SN_R(0.2) * wave(i, k + 9);
    for (int i = 0; i < STEPS * NU; ++i) in->ctrl[i] = SN_R(0.5) + SN_R(0.4) * wave(i, k + 11);
    sn_cost_schedule(x->cost, 0.1 * k, 0.01, STEPS + 1, in->target);
    for (int i = 0; i < NU; ++i) in->before[i] = wave(i, k + 13);
    x->item[k] = (SnGradient){.state = state_of(in, k),
                              .ctrl = in->ctrl,
                              .target = in->target,
                              .nstep = STEPS,
                              .max_velocity = 1e3,
                              .term = out->term,
                              .ctrl_bar = out->ctrl,
                              .qpos_bar = out->qpos,
                              .qvel_bar = out->qvel,
                              .act_bar = out->act,
                              .target_bar = out->target};
  }
  x->batch = (SnGradientBatch){.settings = sn_default_gradient_settings(), .item = x->item, .count = ITEMS};
}

static void free_fixture(Fixture *x) {
  sn_rollout_runner_free(x->runner);
  sn_backend_unload(x->backend, x->model);
  sn_cost_free(x->cost);
  sn_model_free(x->m);
  sn_backend_free(x->backend);
  sn_pool_free(x->pool);
}

// Fills the outputs with what must not stay, and computes the batch.
static void compute(Fixture *x) {
  const SnClock clock = sn_clock_monotonic();
  for (int k = 0; k < x->batch.count; ++k) {
    memset(&x->result[k], 0xff, sizeof x->result[k]);
    x->item[k].status = SN_GRADIENT_PENDING;
  }
  assert_true(sn_backend_gradients(x->backend, x->model, &x->batch, &clock, INFINITY));
  for (int k = 0; k < x->batch.count; ++k) {
    x->result[k].cost = x->item[k].cost;
    x->result[k].norm = x->item[k].norm;
  }
}

static double cost_of(Fixture *x, const Input *in, int k) {
  const SnClock clock = sn_clock_monotonic();
  const SnState state = state_of(in, k);
  sn_rollout_runner_begin(x->runner, &state, in->ctrl, in->target, STEPS, 1e3, NULL);
  assert_int_equal(sn_rollout_runner_run(x->runner, &clock, INFINITY), SN_ROLLOUT_DONE);
  return sn_rollout_runner_cost(x->runner, NULL);
}

// Every coordinate of every input.
static void against_differences(void **state) {
  (void)state;
  if (sizeof(sn_real) == 4) skip();
  for (int method = SN_GRADIENT_SWEEP; method <= SN_GRADIENT_PRODUCTS; ++method) {
    Fixture x;
    make_fixture(&x, 1);
    x.batch.settings.method = (SnGradientMethod)method;
    compute(&x);
    for (int k = 0; k < ITEMS; ++k) {
      Input in = x.input[k];
      const Result *r = &x.result[k];
      assert_true(r->cost == cost_of(&x, &in, k));
      const struct {
        const char *name;
        sn_real *x;
        const sn_real *bar;
        int n;
      } part[] = {{"ctrl", in.ctrl, r->ctrl, STEPS * NU},
                  {"qpos", in.qpos, r->qpos, NV},
                  {"qvel", in.qvel, r->qvel, NV},
                  {"act", in.act, r->act, NA},
                  {"target", in.target, r->target, (STEPS + 1) * x.cost->ntarget}};
      for (size_t p = 0; p < sizeof part / sizeof *part; ++p) {
        double worst = 0, scale = 1e-3, sum = 0;
        for (int i = 0; i < part[p].n; ++i) {
          const sn_real kept = part[p].x[i];
          part[p].x[i] = kept + SN_R(1e-6);
          const double up = cost_of(&x, &in, k);
          part[p].x[i] = kept - SN_R(1e-6);
          const double down = cost_of(&x, &in, k);
          part[p].x[i] = kept;
          const double difference = (up - down) / 2e-6;
          worst = sn_larger(worst, fabs(difference - (double)part[p].bar[i]));
          scale = sn_larger(scale, fabs(difference));
          sum += (double)(part[p].bar[i] * part[p].bar[i]);
        }
        if (!(worst <= 1e-6 * scale && worst > 0))
          fail_msg("item %d, %s: off by %g of %g", k, part[p].name, worst, scale);
        assert_true(sum > 0);
        if (p == 0) assert_true(fabs(r->norm - sqrt(sum)) <= 1e-12 * r->norm);
      }
    }
    free_fixture(&x);
  }
}

static void methods_agree(void **state) {
  (void)state;
  Fixture x;
  make_fixture(&x, 1);
  compute(&x);
  Result sweep[ITEMS];
  memcpy(sweep, x.result, sizeof sweep);
  x.batch.settings.method = SN_GRADIENT_PRODUCTS;
  compute(&x);
  const double tight = sizeof(sn_real) == 4 ? 1e-3 : 1e-10;
  for (int k = 0; k < ITEMS; ++k) {
    const Result *a = &sweep[k], *b = &x.result[k];
    assert_true(a->cost == b->cost);
    for (int i = 0; i < STEPS * NU; ++i) assert_true(fabs((double)(a->ctrl[i] - b->ctrl[i])) <= tight * a->norm);
    for (int i = 0; i < NV; ++i) {
      assert_true(fabs((double)(a->qpos[i] - b->qpos[i])) <= tight * (1 + fabs((double)a->qpos[i])));
      assert_true(fabs((double)(a->qvel[i] - b->qvel[i])) <= tight * (1 + fabs((double)a->qvel[i])));
    }
  }
  free_fixture(&x);
}

static void threads_and_pauses(void **state) {
  (void)state;
  Result *alone = calloc(ITEMS, sizeof *alone);
  for (int method = SN_GRADIENT_SWEEP; method <= SN_GRADIENT_PRODUCTS; ++method) {
    for (int threads = 1; threads <= 4; ++threads) {
      Fixture x;
      make_fixture(&x, threads);
      x.batch.settings.method = (SnGradientMethod)method;
      compute(&x);
      if (threads == 1) memcpy(alone, x.result, sizeof x.result);
      assert_memory_equal(alone, x.result, sizeof x.result);
      // One by one.
      x.batch.count = 1;
      for (int k = 0; k < ITEMS; ++k) {
        Result *out = &x.result[k];
        memset(out, 0xff, sizeof *out);
        x.batch.item = &x.item[k];
        x.item[k].status = SN_GRADIENT_PENDING;
        const SnClock monotonic = sn_clock_monotonic();
        assert_true(sn_backend_gradients(x.backend, x.model, &x.batch, &monotonic, INFINITY));
        out->cost = x.item[k].cost;
        out->norm = x.item[k].norm;
      }
      assert_memory_equal(alone, x.result, sizeof x.result);
      // Once more, a few readings of the clock at a time.
      CountingClock count = {0};
      const SnClock clock = counting_clock(&count);
      x.batch.item = x.item;
      x.batch.count = ITEMS;
      for (int k = 0; k < ITEMS; ++k) {
        memset(&x.result[k], 0xff, sizeof x.result[k]);
        x.item[k].status = SN_GRADIENT_PENDING;
      }
      int calls = 1;
      while (!sn_backend_gradients(x.backend, x.model, &x.batch, &clock, (double)atomic_load(&count.reads) + 9))
        ++calls;
      assert_true(calls > 2 * STEPS * ITEMS / 10);  // of steps, and of steps back
      for (int k = 0; k < ITEMS; ++k) {
        x.result[k].cost = x.item[k].cost;
        x.result[k].norm = x.item[k].norm;
      }
      assert_memory_equal(alone, x.result, sizeof x.result);
      free_fixture(&x);
    }
  }
  free(alone);
}

// A batch that is dropped half way leaves nothing behind; items that are done are left alone.
static void abandoned(void **state) {
  (void)state;
  Fixture x;
  make_fixture(&x, 2);
  compute(&x);
  Result *whole = calloc(ITEMS, sizeof *whole);
  memcpy(whole, x.result, sizeof x.result);
  for (int reads = 10; reads < 140; reads += 10) {
    CountingClock count = {0};
    const SnClock clock = counting_clock(&count);
    for (int k = 0; k < ITEMS; ++k) x.item[k].status = SN_GRADIENT_PENDING;
    assert_false(sn_backend_gradients(x.backend, x.model, &x.batch, &clock, reads));
    sn_backend_abandon(x.backend, x.model);
    compute(&x);
    assert_memory_equal(whole, x.result, sizeof x.result);
  }
  const SnClock clock = sn_clock_monotonic();
  memset(x.result[1].ctrl, 0, sizeof x.result[1].ctrl);
  assert_true(sn_backend_gradients(x.backend, x.model, &x.batch, &clock, INFINITY));
  assert_true(x.result[1].ctrl[0] == 0 && whole[1].ctrl[0] != 0);
  free(whole);
  free_fixture(&x);
}

static bool all_zero(const sn_real *x, int n) {
  for (int i = 0; i < n; ++i)
    if (x[i] != 0) return false;
  return true;
}

// One of three diverges: a status, an infinite cost and no gradient; the others are as without it.
static void divergence(void **state) {
  (void)state;
  for (int method = SN_GRADIENT_SWEEP; method <= SN_GRADIENT_PRODUCTS; ++method) {
    Fixture x;
    make_fixture(&x, 3);
    x.batch.settings.method = (SnGradientMethod)method;
    compute(&x);
    const Result last = x.result[2];
    x.item[1].max_velocity = 1e-3;
    x.input[0].act[0] = (sn_real)NAN;
    compute(&x);
    for (int k = 0; k < 2; ++k) {
      assert_int_equal(x.item[k].status, SN_GRADIENT_DIVERGED);
      assert_true(isinf(x.item[k].cost) && isinf(x.result[k].term[0]) && x.item[k].norm == 0);
      assert_true(all_zero(x.result[k].ctrl, STEPS * NU) && all_zero(x.result[k].qpos, NV));
      assert_true(all_zero(x.result[k].target, (STEPS + 1) * x.cost->ntarget));
    }
    assert_int_equal(x.item[2].status, SN_GRADIENT_DONE);
    assert_memory_equal(&last, &x.result[2], sizeof last);
    free_fixture(&x);
  }
}

// A rollout made before, with all of its states, is taken instead of one more: the same bits, diverged or not, and the
// clock is not read for its steps.
static void rolled_already(void **state) {
  (void)state;
  for (int method = SN_GRADIENT_SWEEP; method <= SN_GRADIENT_PRODUCTS; ++method) {
    Fixture x;
    make_fixture(&x, 1);
    x.batch.settings.method = (SnGradientMethod)method;
    x.item[1].max_velocity = 1e-3;
    compute(&x);
    Result *whole = calloc(ITEMS, sizeof *whole);
    memcpy(whole, x.result, sizeof x.result);
    enum { ROWS = STEPS + 1 };
    static sn_real time[ROWS], qpos[ROWS * NQ], qvel[ROWS * NV], act[ROWS * NA], qacc[ROWS * NV];
    const SnTrajectory states = {.time = time, .qpos = qpos, .qvel = qvel, .act = act, .qacc = qacc};
    for (int k = 0; k < ITEMS; ++k) {
      SnGradient *g = &x.item[k];
      Result *r = &x.result[k];
      CountingClock count = {0};
      const SnClock clock = counting_clock(&count);
      sn_rollout_runner_begin(x.runner, &g->state, g->ctrl, g->target, STEPS, g->max_velocity, &states);
      sn_rollout_runner_run(x.runner, &clock, INFINITY);
      memset(r, 0xff, sizeof *r);
      g->status = SN_GRADIENT_PENDING;
      g->rolled = sn_rollout_runner_rollout(x.runner);
      x.batch = (SnGradientBatch){.settings = x.batch.settings, .item = g, .count = 1};
      assert_true(sn_backend_gradients(x.backend, x.model, &x.batch, &clock, 1e9));
      r->cost = g->cost;
      r->norm = g->norm;
      assert_int_equal(g->status, k == 1 ? SN_GRADIENT_DIVERGED : SN_GRADIENT_DONE);
      assert_memory_equal(r, &whole[k], sizeof *r);
      assert_true(atomic_load(&count.reads) <= 3 * ROWS + 2);  // of steps, of worlds and steps on the way back
    }
    free(whole);
    free_fixture(&x);
  }
}

// Outputs that nobody asks for change nothing.
static void few_outputs(void **state) {
  (void)state;
  Fixture x;
  make_fixture(&x, 1);
  compute(&x);
  const Result whole = x.result[0];
  SnGradient *g = &x.item[0];
  g->term = NULL;
  g->qpos_bar = g->qvel_bar = g->act_bar = g->target_bar = NULL;
  compute(&x);
  assert_memory_equal(whole.ctrl, x.result[0].ctrl, sizeof whole.ctrl);
  free_fixture(&x);
}

// At the top of a hill that is steeper than numbers reach: the cost is finite, its derivative is not.
static void unbounded(void **state) {
  (void)state;
  static const char xml[] =
      "<mujoco><option timestep='0.01' gravity='0 0 0'/><worldbody><body><joint name='x' type='slide' "
      "stiffness='-1e9'/>"
      "<geom size='.1'/></body></worldbody><actuator><motor joint='x' ctrlrange='-1 1'/></actuator></mujoco>";
  static const char text[] = "model: x\nterms:\n  - {name: x, residual: {joint_position: all}, target: 1}\n";
  enum { LONG = 120 };
  SnError err = {0};
  SnOracle o;
  sn_oracle_load_string(&o, xml);
  SnTask *hill = sn_task_parse(text, strlen(text), "hill.yaml", &err);
  SnCost *cost = sn_cost_create(hill, o.m, &err);
  sn_real zero = 0, ctrl[LONG] = {0}, target[LONG + 1], ctrl_bar[LONG], target_bar[LONG + 1];
  sn_cost_schedule(cost, 0, 0.01, LONG + 1, target);
  SnGradient g = {.state = {.qpos = &zero, .qvel = &zero, .act = &zero},
                  .ctrl = ctrl,
                  .target = target,
                  .nstep = LONG,
                  .max_velocity = 1e3,
                  .ctrl_bar = ctrl_bar,
                  .target_bar = target_bar};
  SnGradientBatch batch = {.settings = sn_default_gradient_settings(), .item = &g, .count = 1};
  const SnClock clock = sn_clock_monotonic();
  for (int threads = 1; threads <= 3; ++threads) {
    SnPool *pool = sn_pool_create(threads, &err);
    SnGradientWork *work = sn_gradient_create(o.m, cost, LONG, 1, SN_GRADIENT_KEEP, pool, &err);
    for (int again = 0; again < 4; ++again) {
      batch.settings.method = again < 2 ? SN_GRADIENT_SWEEP : SN_GRADIENT_PRODUCTS;
      for (int t = 0; t <= LONG; ++t) target_bar[t] = 1;
      g.status = SN_GRADIENT_PENDING;
      g.nstep = LONG;
      ctrl_bar[0] = 1;
      assert_true(sn_gradient_run(work, &batch, &clock, INFINITY));
      assert_int_equal(g.status, SN_GRADIENT_UNBOUNDED);
      assert_true(fabs(g.cost - 1) < 1e-6 && g.norm == 0 && all_zero(ctrl_bar, LONG) && all_zero(target_bar, LONG + 1));
      g.status = SN_GRADIENT_PENDING;
      g.nstep = 4;
      assert_true(sn_gradient_run(work, &batch, &clock, INFINITY));
      assert_int_equal(g.status, SN_GRADIENT_DONE);
      assert_true(g.norm > 0);
    }
    sn_gradient_free(work);
    sn_pool_free(pool);
  }
  sn_cost_free(cost);
  sn_task_free(hill);
  sn_oracle_free(&o);
}

// A gradient whose squares are beyond numbers has its norm all the same.
static void large(void **state) {
  (void)state;
  const double scale = sizeof(sn_real) == 4 ? 0x1p80 : 0x1p600;
  Fixture x;
  make_fixture(&x, 1);
  compute(&x);
  const double norm = x.result[0].norm;
  for (int i = 0; i < TERMS; ++i) {
    x.cost->weight[i] *= (sn_real)scale;
    x.cost->terminal[i] *= (sn_real)scale;
  }
  compute(&x);
  assert_int_equal(x.item[0].status, SN_GRADIENT_DONE);
  if (!(fabs(x.result[0].norm / scale - norm) <= 1e-6 * norm))
    fail_msg("norm %g of the gradient, %g of %g times it", norm, x.result[0].norm, scale);
  free_fixture(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(against_differences), cmocka_unit_test(methods_agree), cmocka_unit_test(threads_and_pauses),
      cmocka_unit_test(abandoned),           cmocka_unit_test(divergence),    cmocka_unit_test(rolled_already),
      cmocka_unit_test(few_outputs),         cmocka_unit_test(unbounded),     cmocka_unit_test(large)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
