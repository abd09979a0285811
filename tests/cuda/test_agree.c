// A backend against the cpu, through the table alone: steps and their adjoints on every kind of element, batches from
// different states with gradients of a cost of their states, rollouts, gradients and multistarts of the tasks that come
// with sinew; and that a repetition gives the same bits.
//
//   cuda_test_agree BACKEND FOLDER [REAL [OUT [THREADS]]]
//
// FOLDER: of libsinew_BACKEND.so. REAL: how many models of MyoSuite, in the order of tests/support (default 1). OUT:
// file that gets a line of JSON a comparison. THREADS: of a world (1: in rollouts a thread has one alone). Exit status
// 77, with the reason, where BACKEND is of CUDA and there is no device, or is of fused products and the processor has
// none.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "clients/bench/bench_multistart.h"
#include "tests/cuda/agree_batch.h"
#include "tests/cuda/agree_case.h"
#include "tests/cuda/agree_table.h"
#include "tests/cuda/check_task.h"

enum { STEPS = 32, CANDIDATES = 8 };

static const char *name = "", *out;
static int real = 1;
static AgreeTolerance tolerance;
static SnBackend *cpu, *other;

static void must(bool ok, const char *what, const SnError *err) {
  if (!ok) fail_msg("%s: %s", what, err->text);
}

// A model on one of the two backends, with room.
static SnBackendModel *load(SnBackend *b, const SnModel *m, const SnCost *cost, int steps, int gradients) {
  SnError err = {0};
  SnBackendModel *x = sn_backend_load(b, m, cost, steps, &err);
  must(x != NULL, sn_backend_name(b), &err);
  must(gradients == 0 || sn_backend_reserve_gradients(b, x, gradients, &err) == SN_OK, sn_backend_name(b), &err);
  return x;
}

static int methods(void) {
  char text[64];
  const int setting = sn_settings_find("gradient");
  int n = 0;
  while (sn_settings_choice_name(setting, n, text, sizeof text)[0]) ++n;
  return n;
}

// ---- one step ----

// What one batch of gradients gives, for each item: cost and terms, then the bars.
typedef struct Bars {
  int n, nterm, sizes[5];  // of the bars: qpos, qvel, act, ctrl, target
  double *term;            // (n, nterm)
  double *cost;            // (n)
  sn_real *bar[5];         // (n, size)
  int *status;             // (n)
} Bars;

static Bars make_bars(const SnModel *m, const SnCost *cost, int steps, int n) {
  Bars b = {.n = n, .nterm = cost->nterm, .sizes = {m->nv, m->nv, m->na, steps * m->nu, (steps + 1) * cost->ntarget}};
  b.term = check_array((size_t)(n * cost->nterm), sizeof *b.term);
  b.cost = check_array((size_t)n, sizeof *b.cost);
  b.status = check_array((size_t)n, sizeof *b.status);
  for (int k = 0; k < 5; ++k) b.bar[k] = check_array((size_t)n * (size_t)b.sizes[k], sizeof *b.bar[k]);
  return b;
}

static void free_bars(Bars *b) {
  free(b->term);
  free(b->cost);
  free(b->status);
  for (int k = 0; k < 5; ++k) free(b->bar[k]);
}

typedef struct Inputs {
  const char *name;
  const SnModel *m;
  const SnCost *cost;
  const SnState *state;        // (n)
  const sn_real *const *ctrl;  // (n)
  const sn_real *target;
  int n, steps;
  SnGradientSettings settings;
} Inputs;

static void run_gradients(SnBackend *b, const Inputs *in, Bars *out_bars) {
  const SnClock clock = sn_clock_monotonic();
  SnGradient *item = check_array((size_t)in->n, sizeof *item);
  SnGradientBatch batch = {.settings = in->settings, .item = item, .count = in->n};
  for (int i = 0; i < in->n; ++i)
    item[i] = (SnGradient){.state = in->state[i],
                           .ctrl = in->ctrl[i],
                           .target = in->target,
                           .nstep = in->steps,
                           .max_velocity = 1e6,
                           .status = SN_GRADIENT_PENDING,
                           .term = out_bars->term + i * out_bars->nterm,
                           .qpos_bar = out_bars->bar[0] + i * out_bars->sizes[0],
                           .qvel_bar = out_bars->bar[1] + i * out_bars->sizes[1],
                           .act_bar = out_bars->bar[2] + i * out_bars->sizes[2],
                           .ctrl_bar = out_bars->bar[3] + i * out_bars->sizes[3],
                           .target_bar = out_bars->bar[4] + i * out_bars->sizes[4]};
  SnBackendModel *x = load(b, in->m, in->cost, in->steps, in->n);
  check_ended(sn_backend_gradients(b, x, &batch, &clock, INFINITY), b, in->name);
  sn_backend_unload(b, x);
  for (int i = 0; i < in->n; ++i) {
    out_bars->cost[i] = item[i].cost;
    out_bars->status[i] = item[i].status;
  }
  free(item);
}

static bool same_bits(const Bars *a, const Bars *b) {
  bool same = memcmp(a->cost, b->cost, sizeof *a->cost * (size_t)a->n) == 0 &&
              memcmp(a->term, b->term, sizeof *a->term * (size_t)(a->n * a->nterm)) == 0;
  for (int k = 0; k < 5; ++k)
    same = same && memcmp(a->bar[k], b->bar[k], sizeof *a->bar[k] * (size_t)a->n * (size_t)a->sizes[k]) == 0;
  return same;
}

// Errors of all bars of each item. Errors up to `allowed` count as none.
static void compare_bars(AgreeRow row, const Bars *ours, const Bars *ref, const Inputs *in, double allowed) {
  static const char *const bar_name[] = {"qpos", "qvel", "act", "ctrl", "target"};
  const char *where = in->name;
  char method[64];
  sn_settings_choice_name(sn_settings_find("gradient"), in->settings.method, method, sizeof method);
  for (int i = 0; i < ref->n; ++i) {
    if (ours->status[i] != ref->status[i]) {
      agree_note(row, INFINITY, "%s, state %d, %s: status %d, not %d", where, i, method, ours->status[i],
                 ref->status[i]);
      continue;
    }
    for (int k = 0; k < 5; ++k) {
      if (ref->sizes[k] == 0) continue;
      const size_t at = (size_t)i * (size_t)ref->sizes[k];
      const double error = agree_error(ours->bar[k] + at, ref->bar[k] + at, ref->sizes[k]);
      agree_note(row, error > allowed ? error : 0, "%s, state %d, %s: %s_bar", where, i, method, bar_name[k]);
    }
  }
}

// Gradients of the other backend, twice, beside those of the CPU.
static void check_gradients(AgreeRow row, const Inputs *in, double allowed) {
  Bars bars[3];
  for (int k = 0; k < 3; ++k) {
    bars[k] = make_bars(in->m, in->cost, in->steps, in->n);
    run_gradients(k ? other : cpu, in, &bars[k]);
  }
  if (!same_bits(&bars[1], &bars[2])) fail_msg("%s: a repetition gives other bits", in->name);
  compare_bars(row, &bars[1], &bars[0], in, allowed);
  for (int k = 0; k < 3; ++k) free_bars(&bars[k]);
}

// Terms of one kind together: their errors relative to the largest of the kind.
static void compare_terms(const AgreeCase *c, const AgreeCost *cost, const double *ours, const double *ref, int state) {
  for (int kind = 0; kind < AGREE_NKIND; ++kind) {
    double a[AGREE_TERMS], b[AGREE_TERMS];
    int n = 0;
    for (int i = 0; i < cost->cost->nterm; ++i) {
      if (cost->kind[i] != (AgreeKind)kind) continue;
      a[n] = ours[i];
      b[n++] = ref[i];
    }
    if (n > 0)
      agree_note(AGREE_ROW_STEP, agree_error(a, b, n), "%s, state %d: %s", c->name, state, agree_kind_name[kind]);
  }
}

// The terms of rollouts of one step from every state of a case, (count, nterm).
static void run_steps(SnBackend *b, const AgreeCase *c, const sn_real *target, double *term, double *cost) {
  const SnClock clock = sn_clock_monotonic();
  SnBackendModel *x = load(b, c->o.m, c->all.cost, 1, 0);
  for (int i = 0; i < c->count; ++i) {
    unsigned char done = 0;
    const SnBatch batch = {.state = &c->state[i],
                           .nstate = 1,
                           .ctrl = c->ctrl[i],
                           .nctrl = 1,
                           .target = target,
                           .ntable = 1,
                           .nstep = 1,
                           .count = 1,
                           .max_velocity = 1e6,
                           .cost = cost + i,
                           .term = term + i * c->all.cost->nterm,
                           .done = &done};
    check_ended(sn_backend_rollouts(b, x, &batch, &clock, INFINITY), b, c->name);
    assert_true(done);
    sn_backend_abandon(b, x);
  }
  sn_backend_unload(b, x);
}

static sn_real *targets(const SnCost *cost, const SnModel *m, int steps) {
  sn_real *target = check_array((size_t)(steps + 1) * (size_t)cost->ntarget, sizeof *target);
  sn_cost_schedule(cost, 0, (double)m->opt.timestep, steps + 1, target);
  return target;
}

static void check_step(const AgreeCase *c) {
  const int nterm = c->all.cost->nterm;
  sn_real *target = targets(c->all.cost, c->o.m, 1);
  double *term[2], cost[2][AGREE_STATES];
  for (int k = 0; k < 2; ++k) term[k] = check_array((size_t)(c->count * nterm), sizeof(double));
  run_steps(cpu, c, target, term[0], cost[0]);
  run_steps(other, c, target, term[1], cost[1]);
  for (int i = 0; i < c->count; ++i) {
    assert_true(isfinite(cost[0][i]));
    compare_terms(c, &c->all, term[1] + i * nterm, term[0] + i * nterm, i);
  }
  for (int k = 0; k < 2; ++k) free(term[k]);
  free(target);
}

static void check_adjoint(const AgreeCase *c, AgreeRow row, const SnCfdSettings *cfd) {
  const SnModel *m = c->o.m;
  const SnCost *cost = c->smooth.cost;
  sn_real *target = targets(cost, m, 1);
  for (int k = 0; k < methods(); ++k) {
    const Inputs in = {.name = c->name,
                       .m = m,
                       .cost = cost,
                       .state = c->state,
                       .ctrl = (const sn_real *const *)c->ctrl,
                       .target = target,
                       .n = c->count,
                       .steps = 1,
                       .settings = {.method = (SnGradientMethod)k, .cfd = *cfd}};
    // The CPU's packs of columns evaluate the stages of RK4 anew, whose solver and searches end elsewhere by rounding.
    const bool packs = k == SN_GRADIENT_PRODUCTS && m->opt.integrator == SN_INT_RK4;
    check_gradients(row, &in, packs ? 1e-12 : 0);
  }
  free(target);
}

// Over all cases.
static int over_cases(void (*check)(const AgreeCase *c)) {
  int n = 0;
  for (int i = 0;; ++i) {
    AgreeCase c;
    const bool more = agree_case_open(&c, i, real);
    if (more && c.count > 0) {
      check(&c);
      ++n;
    }
    agree_case_close(&c);
    if (!more) return n;
  }
}

static void plain_adjoint(const AgreeCase *c) {
  const SnCfdSettings none = {0};
  check_adjoint(c, AGREE_ROW_ADJOINT, &none);
}

// All pairs within 0.2 m, with their friction.
static void cfd_adjoint(const AgreeCase *c) {
  const SnCfdSettings cfd = {
      .on = 1, .friction = 1, .solimp = {SN_R(0.0), SN_R(0.1), SN_R(0.2), SN_R(1.0), SN_R(4.0)}, .width = SN_R(0.002)};
  check_adjoint(c, AGREE_ROW_CFD, &cfd);
}

static void holds(AgreeRow row) { assert_true(agree_row_holds(row, name, tolerance, out)); }

static void steps(void **state) {
  (void)state;
  printf("%d models\n", over_cases(check_step));
  holds(AGREE_ROW_STEP);
}

static void adjoints(void **state) {
  (void)state;
  over_cases(plain_adjoint);
  holds(AGREE_ROW_ADJOINT);
}

static void cfd_adjoints(void **state) {
  (void)state;
  over_cases(cfd_adjoint);
  holds(AGREE_ROW_CFD);
}

static void batch_of(const AgreeCase *c) { agree_batch_check(cpu, other, c); }

static void batches(void **state) {
  (void)state;
  if (!sn_backend_has(other, SN_BACKEND_BATCHES)) fail_msg("%s makes no batches", name);
  over_cases(batch_of);
  holds(AGREE_ROW_BATCH);
  holds(AGREE_ROW_BARS);
}

// ---- tasks ----

static const char *const tasks[] = {"arm_reach", "billiard", "hand_pose", "hand_balls", "ball_catch"};
enum { TASKS = sizeof tasks / sizeof *tasks };

// The time grid of the steps, and over how many of the tasks.
static SnGrid grid;
static int ntask = TASKS;

// Task i at its start; false where its model is not there.
static bool open_task(BenchTask *t, int i) {
  SnError err = {0};
  if (check_task_open(t, tasks[i], STEPS, &err)) return true;
  printf("%s: skipped: %s\n", tasks[i], err.text);
  return false;
}

static SnState grid_state(const BenchTask *t) {
  SnState s = bench_task_state(t);
  s.grid = &grid;
  return s;
}

static void run_rollouts(SnBackend *b, const BenchTask *t, double *cost, double *term) {
  const SnClock clock = sn_clock_monotonic();
  const SnNoiseSettings noise = {.seed = 7,
                                 .spacing = 4,
                                 .knots = sn_noise_knots(sn_grid_begin(&grid, STEPS), 4, 0),
                                 .interpolation = SN_SPLINE_CUBIC,
                                 .colour = SN_NOISE_PINK,
                                 .scale = SN_R(0.1),
                                 .grid = grid};
  unsigned char done[CANDIDATES] = {0};
  const SnState initial = grid_state(t);
  const SnBatch batch = {.state = &initial,
                         .nstate = 1,
                         .ctrl = t->ctrl,
                         .nctrl = 1,
                         .target = t->target,
                         .ntable = 1,
                         .noise = &noise,
                         .nstep = STEPS,
                         .count = CANDIDATES,
                         .max_velocity = 1e3,
                         .cost = cost,
                         .term = term,
                         .done = done};
  SnBackendModel *x = load(b, t->m, t->cost, STEPS, 0);
  check_ended(sn_backend_rollouts(b, x, &batch, &clock, INFINITY), b, t->task->name);
  for (int i = 0; i < CANDIDATES; ++i) assert_true(done[i]);
  sn_backend_unload(b, x);
}

static void rollouts(void **state) {
  (void)state;
  for (int i = 0; i < ntask; ++i) {
    BenchTask t;
    if (open_task(&t, i)) {
      const int n = CANDIDATES * t.cost->nterm;
      double cost[3][CANDIDATES], *term[3];
      for (int k = 0; k < 3; ++k) {
        term[k] = check_array((size_t)n, sizeof(double));
        run_rollouts(k ? other : cpu, &t, cost[k], term[k]);
      }
      assert_memory_equal(cost[1], cost[2], sizeof cost[1]);
      assert_memory_equal(term[1], term[2], sizeof(double) * (size_t)n);
      for (int k = 0; k < CANDIDATES; ++k) {
        const int at = k * t.cost->nterm;
        agree_note(AGREE_ROW_ROLLOUT, agree_error(&cost[1][k], &cost[0][k], 1), "%s, candidate %d", tasks[i], k);
        agree_note(AGREE_ROW_ROLLOUT, agree_error(term[1] + at, term[0] + at, t.cost->nterm),
                   "%s, terms of candidate %d", tasks[i], k);
      }
      for (int k = 0; k < 3; ++k) free(term[k]);
    }
    bench_task_close(&t);
  }
  holds(AGREE_ROW_ROLLOUT);
}

// By the planner's own jobs: settings, noise and contacts from distance as the task has them.
static void run_multistart(SnBackend *b, const BenchTask *t, int method, int iterations, BenchMultistart *job) {
  SnError err = {0};
  must(bench_multistart_open(job, t, b, 1, 2, &err) == SN_OK, tasks[0], &err);
  job->job.settings.method = (SnGradientMethod)method;
  job->job.state.grid = &grid;
  if (grid.parts > 0) {  // knots that stand in time
    const int knots = sn_noise_knots(sn_grid_begin(&grid, STEPS), 6, 2);
    job->job.grid = (SnAdamGrid){STEPS, knots, 6, 2, SN_SPLINE_LINEAR, grid};
    job->job.noise.grid = grid;
    job->job.noise.knots = sn_noise_knots(sn_grid_begin(&grid, STEPS), job->job.noise.spacing, job->job.noise.phase);
  }
  check_ended(bench_multistarts_run(job, 1, iterations, &err) == SN_OK, b, t->task->name);
}

// The task's controls with white noise: constant ones may lead activations to where the control is, to the last bit,
// and there the time constant of a muscle jumps. (arm_reach: its step is half of a resting muscle's time constant.)
static sn_real *lively_controls(const BenchTask *t) {
  const SnNoiseSettings noise = {.seed = 3,
                                 .spacing = 1,
                                 .knots = sn_noise_knots(STEPS, 1, 0),
                                 .interpolation = SN_SPLINE_ZERO,
                                 .colour = SN_NOISE_WHITE,
                                 .scale = SN_R(0.05)};
  sn_real *ctrl = check_array((size_t)(STEPS * t->m->nu), sizeof *ctrl),
          *scratch = check_array(3 * (STEPS + 2), sizeof *scratch);
  sn_noise_candidate(t->m, &noise, 1, t->ctrl, STEPS, scratch, ctrl);
  free(scratch);
  return ctrl;
}

static void gradients(void **state) {
  (void)state;
  for (int i = 0; i < ntask; ++i) {
    BenchTask t;
    if (open_task(&t, i)) {
      const SnState initial = grid_state(&t);
      sn_real *noisy = lively_controls(&t);
      const sn_real *ctrl = noisy;
      for (int k = 0; k < methods(); ++k) {
        const Inputs in = {.name = tasks[i],
                           .m = t.m,
                           .cost = t.cost,
                           .state = &initial,
                           .ctrl = &ctrl,
                           .target = t.target,
                           .n = 1,
                           .steps = STEPS,
                           .settings = {.method = (SnGradientMethod)k}};
        check_gradients(AGREE_ROW_GRADIENT, &in, 0);
      }
      free(noisy);
    }
    bench_task_close(&t);
  }
  holds(AGREE_ROW_GRADIENT);
}

static void multistarts(void **state) {
  (void)state;
  int better = 0;
  for (int i = 0; i < ntask; ++i) {
    BenchTask t;
    if (open_task(&t, i)) {
      for (int k = 0; k < methods(); ++k) {
        BenchMultistart ref, ours, again;
        const size_t bytes = sizeof(sn_real) * (size_t)STEPS * (size_t)t.m->nu;
        run_multistart(cpu, &t, k, 4, &ref);
        run_multistart(other, &t, k, 4, &ours);
        run_multistart(other, &t, k, 4, &again);
        better += ref.job.best_cost < ref.job.cost_before;
        assert_memory_equal(ours.ctrl, again.ctrl, bytes);
        assert_true(ours.job.best_cost == again.job.best_cost);
        agree_note(AGREE_ROW_MULTISTART, agree_error(&ours.job.cost_before, &ref.job.cost_before, 1),
                   "%s: cost before, method %d", tasks[i], k);
        agree_note(AGREE_ROW_MULTISTART, agree_error(&ours.job.best_cost, &ref.job.best_cost, 1), "%s: cost, method %d",
                   tasks[i], k);
        agree_note(AGREE_ROW_MULTISTART, agree_error(ours.ctrl, ref.ctrl, STEPS * t.m->nu), "%s: controls, method %d",
                   tasks[i], k);
        bench_multistart_close(&ref);
        bench_multistart_close(&ours);
        bench_multistart_close(&again);
      }
    }
    bench_task_close(&t);
  }
  assert_true(better >= methods());  // there is something to agree on
  holds(AGREE_ROW_MULTISTART);
}

// All of that where the later steps are longer.
static void time_grids(void **state) {
  SnError err = {0};
  must(sn_grid_parse("12x1,16x2,4x3", 56, &grid, &err) == SN_OK, "grid", &err);
  assert_int_equal(sn_grid_steps(&grid, 56), STEPS);
  ntask = 3;
  rollouts(state);
  gradients(state);
  multistarts(state);
  grid = (SnGrid){0};
  ntask = TASKS;
}

// ---- the program ----

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: %s BACKEND FOLDER [REAL [OUT [THREADS]]]\n", argv[0]);
    return 2;
  }
  name = argv[1];
  if (argc > 3) real = atoi(argv[3]);
  if (argc > 4 && *argv[4]) out = argv[4];
  CheckBackends b;
  const int status = check_backends_open(&b, name, argv[2], argc > 5 ? atoi(argv[5]) : 0);
  cpu = b.cpu;
  other = b.other;
  tolerance = strstr(b.text, "float") ? AGREE_FLOAT : strcmp(name, "emulator_double") == 0 ? AGREE_BITS : AGREE_DOUBLE;
  const struct CMUnitTest list[] = {cmocka_unit_test(steps),        cmocka_unit_test(adjoints),
                                    cmocka_unit_test(cfd_adjoints), cmocka_unit_test(batches),
                                    cmocka_unit_test(rollouts),     cmocka_unit_test(gradients),
                                    cmocka_unit_test(multistarts),  cmocka_unit_test(time_grids)};
  const int failed = status ? status : cmocka_run_group_tests(list, NULL, NULL);
  check_backends_close(&b);
  return failed;
}
