#include "planner/backend/contest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/cost/cost.h"
#include "planner/optimize/multistart.h"
#include "planner/task/settings.h"

enum { GROWTH = 4, RUNS = 5, FEW = 3, SHARE = 40, SIDES = SN_CONTEST_CPUS + 1 };

// A run: the sides, the device last, and room for the largest count.
typedef struct Run {
  const SnContestDef *def;
  SnBackend *side[SIDES];
  SnBackendModel *loaded[SIDES];
  int sides;
  SnNoiseSettings noise;
  double *cost;         // (most)
  unsigned char *done;  // (most)
  SnGradient *item;     // (most)
  sn_number *ctrl_bar;  // (most, steps, nu)
  sn_number *ctrl, *initial;
  double *term;
} Run;

const char *sn_contest_name(SnContestKind kind) {
  static const char *const names[] = {"steps", "gradients", "refinements"};
  return names[kind];
}

static SnNoiseSettings noise_of(int steps) {
  SnNoiseSettings noise = {.seed = 1, .spacing = (steps + 14) / 15, .interpolation = SN_SPLINE_LINEAR};
  noise.colour = SN_NOISE_PINK;
  noise.scale = SN_R(0.1);
  noise.knots = sn_noise_knots(steps, noise.spacing, noise.phase);
  return noise;
}

static SnCode open_run(Run *x, SnError *err) {
  const SnContestDef *def = x->def;
  const size_t most = (size_t)def->most, nu = (size_t)def->model->nu, rows = (size_t)def->steps * nu;
  for (int k = 0; k < def->ncpu; ++k) x->side[x->sides++] = def->cpu[k];
  x->side[x->sides++] = def->device;
  x->noise = noise_of(def->steps);
  x->cost = calloc(most, sizeof *x->cost);
  x->done = calloc(most, sizeof *x->done);
  x->item = calloc(most, sizeof *x->item);
  x->ctrl_bar = calloc(most * rows + 1, sizeof *x->ctrl_bar);
  x->ctrl = calloc(rows + 1, sizeof *x->ctrl);
  x->term = calloc((size_t)def->cost->nterm + 1, sizeof *x->term);
  x->initial = calloc(nu + 1, sizeof *x->initial);
  if (!x->cost || !x->done || !x->item || !x->ctrl_bar || !x->ctrl || !x->term || !x->initial)
    return sn_fail(err, SN_ERR_MEMORY, "out of memory for a measurement of %d at once", def->most);
  for (size_t i = 0; i < most; ++i)
    x->item[i] = (SnGradient){.state = def->state,
                              .ctrl = def->ctrl,
                              .target = def->target,
                              .nstep = def->steps,
                              .max_velocity = 1e6,
                              .ctrl_bar = x->ctrl_bar + i * rows};
  for (int k = 0; k < x->sides; ++k)
    if (!(x->loaded[k] = sn_backend_load(x->side[k], def->model, def->cost, def->steps, err))) return err->code;
  return SN_OK;
}

static void close_run(Run *x) {
  for (int k = 0; k < x->sides; ++k)
    if (x->loaded[k]) sn_backend_unload(x->side[k], x->loaded[k]);
  free(x->cost);
  free(x->done);
  free(x->item);
  free(x->ctrl_bar);
  free(x->ctrl);
  free(x->term);
  free(x->initial);
}

static bool run_steps(Run *x, int side, int n) {
  const SnContestDef *def = x->def;
  const SnBatch batch = {.state = &def->state,
                         .nstate = 1,
                         .ctrl = def->ctrl,
                         .nctrl = 1,
                         .target = def->target,
                         .ntable = 1,
                         .noise = &x->noise,
                         .nstep = def->steps,
                         .count = n,
                         .max_velocity = 1e6,
                         .cost = x->cost,
                         .done = x->done};
  memset(x->done, 0, (size_t)n);
  return sn_backend_rollouts(x->side[side], x->loaded[side], &batch, &def->clock, INFINITY);
}

static bool run_gradients(Run *x, int side, int n) {
  SnGradientBatch batch = {.settings = sn_default_gradient_settings(), .item = x->item, .count = n};
  for (int i = 0; i < n; ++i) x->item[i].status = SN_GRADIENT_PENDING;
  return sn_backend_gradients(x->side[side], x->loaded[side], &batch, &x->def->clock, INFINITY);
}

static bool run_refinements(Run *x, int side, int n) {
  const SnContestDef *def = x->def;
  const SnSettings s = sn_default_settings();
  SnBackend *b = x->side[side];
  SnMultistartJob job = {.state = def->state,
                         .target = def->target,
                         .nstep = def->steps,
                         .max_velocity = 1e6,
                         .settings = sn_default_gradient_settings(),
                         .grid = {.nstep = def->steps,
                                  .knots = sn_noise_knots(def->steps, 1, 0),
                                  .spacing = 1,
                                  .interpolation = SN_SPLINE_ZERO},
                         .rule = sn_adam_settings(&s),
                         .noise = x->noise,
                         .initial_ctrl = x->initial,
                         .starts = n,
                         .count = n,
                         .init = true,
                         .iterations = 1,
                         .deadline = INFINITY,
                         .ctrl = x->ctrl,
                         .best_cost = INFINITY,
                         .gradient_norm = NAN,
                         .best_term = x->term};
  memcpy(x->ctrl, def->ctrl, sizeof *x->ctrl * (size_t)def->steps * (size_t)def->model->nu);
  const bool done = sn_backend_multistart(b, x->loaded[side], &job, &def->clock, INFINITY);
  sn_backend_multistart_end(b, x->loaded[side], &job);
  return done;
}

typedef struct Kind {
  SnBackendFeature feature;
  SnCode (*reserve)(SnBackend *b, SnBackendModel *x, int count, SnError *err);
  bool (*run)(Run *x, int side, int n);
} Kind;

static const Kind kinds[SN_NCONTEST] = {{SN_BACKEND_GRADIENTS, sn_backend_reserve_rollouts, run_steps},
                                        {SN_BACKEND_GRADIENTS, sn_backend_reserve_gradients, run_gradients},
                                        {SN_BACKEND_MULTISTART, sn_backend_reserve_multistart, run_refinements}};

static double now(const Run *x) { return x->def->clock.now(x->def->clock.context); }

// Time of so many on a side [s], the least of a few runs: what else the machine does only adds to it. No run begins
// after `limit` seconds, but that there are a few in four times as long. Negative: there is no memory for them, or the
// device is lost.
static double time_of(Run *x, int side, SnContestKind kind, int n, double limit) {
  const double first = now(x);
  double least = INFINITY;
  for (int k = 0; k < RUNS && (k == 0 || now(x) - first < (k < FEW ? 4 : 1) * limit); ++k) {
    const double begin = now(x);
    if (!kinds[kind].run(x, side, n)) return -1;
    least = fmin(least, now(x) - begin);
  }
  return least;
}

// The CPU's times of a row: measured where there is time, else in proportion to those of the row before.
static bool add_cpus(Run *x, SnContestKind kind, SnContestRow *row, const SnContestRow *before, double limit,
                     double left) {
  for (int k = 0; k + 1 < x->sides; ++k) {
    const double growth = before ? (double)row->count / before->count : 1;
    row->scaled[k] = before && (before->scaled[k] || growth * before->cpu[k] > left);
    row->cpu[k] = row->scaled[k] ? growth * before->cpu[k] : time_of(x, k, kind, row->count, limit);
    if (row->cpu[k] < 0) return false;
    left -= row->scaled[k] ? 0 : row->cpu[k];
  }
  return true;
}

// All counts of a kind, until `until` on the clock. The first run of each count on the device is not counted: it takes
// memory, and the very first one brings what the device needs.
static void measure(Run *x, SnContestKind kind, double until, SnContest *c) {
  const int device = x->sides - 1;
  const double limit = x->def->seconds / (SHARE * SN_NCONTEST);
  SnContestRow *before = NULL;
  for (int k = 0; k + 1 < x->sides; ++k)
    if (kinds[kind].reserve(x->side[k], x->loaded[k], x->def->most, NULL) != SN_OK) return;
  for (int k = 0; k + 1 < x->sides; ++k) time_of(x, k, kind, 1, 0);
  for (int n = 1; n <= x->def->most && c->rows[kind] < SN_CONTEST_SIZES; n *= GROWTH) {
    SnContestRow *row = &c->row[kind][c->rows[kind]];
    *row = (SnContestRow){.count = n};
    if (before && now(x) + 2 * before->device > until) return;
    if (kinds[kind].reserve(x->side[device], x->loaded[device], n, NULL) != SN_OK) return;
    if (time_of(x, device, kind, n, 0) < 0 || (row->device = time_of(x, device, kind, n, limit)) < 0) return;
    if (!add_cpus(x, kind, row, before, limit, 0.5 * (until - now(x)))) return;
    before = row;
    ++c->rows[kind];
  }
}

SnCode sn_contest_run(const SnContestDef *def, SnContest *contest, SnError *err) {
  Run x = {.def = def};
  char reason[200];
  *contest = (SnContest){.steps = def->steps};
  SnCode code = open_run(&x, err);
  const double begin = now(&x);
  for (int kind = 0; code == SN_OK && kind < SN_NCONTEST; ++kind)
    if (sn_backend_has(def->device, kinds[kind].feature))
      measure(&x, (SnContestKind)kind, begin + (kind + 1) * def->seconds / SN_NCONTEST, contest);
  if (code == SN_OK && sn_backend_lost(def->device, reason, sizeof reason))
    code = sn_fail(err, SN_ERR_STATE, "%s is lost: %s", sn_backend_name(def->device), reason);
  close_run(&x);
  return code;
}

int sn_contest_from(const SnContest *contest, SnContestKind kind, int cpu) {
  const SnContestRow *row = contest->row[kind];
  int i = contest->rows[kind];
  while (i > 0 && row[i - 1].device < row[i - 1].cpu[cpu]) --i;
  return i < contest->rows[kind] ? row[i].count : 0;
}

void sn_contest_text(const SnContest *contest, SnContestKind kind, int cpu, char *text, size_t size) {
  const int rows = contest->rows[kind], from = sn_contest_from(contest, kind, cpu);
  if (rows == 0) {
    snprintf(text, size, "%s: not made by the device", sn_contest_name(kind));
    return;
  }
  const SnContestRow *last = &contest->row[kind][rows - 1];
  const double per_s = kind == SN_CONTEST_STEPS ? (double)last->count * contest->steps : last->count;
  char wins[40];
  snprintf(wins, sizeof wins, from ? "from %d at once on" : "the CPU at any count", from);
  snprintf(text, size, "%s: %s (%.4g/s on the CPU%s, %.4g/s on the device at %d)", sn_contest_name(kind), wins,
           per_s / last->cpu[cpu], last->scaled[cpu] ? ", in proportion" : "", per_s / last->device, last->count);
}
