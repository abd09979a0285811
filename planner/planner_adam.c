// Planning by gradients. A plan begins with one start or several: the warm start, and copies of it with the noise of
// sampling; the backend optimizes them (multistart.h). Here stands what a planner asks of it, and what Adam remembers
// from plan to plan.
#include "planner/optimize/adam.h"
#include "planner/planner_private.h"

struct SnAdamState {
  SnMultistartJob job;
  bool open;        // it was begun, and neither ended nor, where it was dropped, another one begun
  SnAdamGrid grid;  // of the latest job that has come to something, as what follows
  SnGrid time;      // time grid of its rows
  int knots;        // settings that the grid was made from
  int interpolation, starts;
  int moved;      // steps that the plan was shifted by since
  bool known;     // moments and grid are those of the plan before
  int capacity;   // starts that the backend has capacity for
  bool fresh;     // it is new: nothing is remembered there
  sn_real *next;  // (horizon, nu) where the next plan begins, if its warm start is the last iterate
  bool advanced;  // it is there
};

bool sn_planner_adam_is_fresh(const SnPlanner *p) { return p->iterations.adam->fresh; }

static SnCode adam_check(const SnPlanner *p, SnError *err) {
  return sn_planner_check_gradients(p, "adam", SN_BACKEND_MULTISTART, err);
}

SnCode sn_planner_adam_reserve(SnPlanner *p, int starts, SnError *err) {
  bool ok = true;
  if (!p->iterations.adam) p->iterations.adam = sn_planner_calloc(1, sizeof *p->iterations.adam, &ok);
  if (!ok) return sn_fail(err, SN_ERR_MEMORY, "planner: out of memory");
  if (!p->iterations.adam->next)
    p->iterations.adam->next = sn_planner_calloc((size_t)p->horizon * (size_t)p->m->nu, sizeof(sn_real), &ok);
  if (!ok) return sn_fail(err, SN_ERR_MEMORY, "planner: out of memory");
  const SnCode code = sn_backend_reserve_multistart(p->device.backend, p->device.model, starts, err);
  if (code != SN_OK || starts <= p->iterations.adam->capacity) return code;
  p->iterations.adam->capacity = starts;
  p->iterations.adam->fresh = true;
  p->iterations.adam->known = false;
  return SN_OK;
}

double sn_planner_adam_bytes(const SnPlanner *p, int starts) {
  return sn_planner_ctrl_bytes(p, 1) + sn_planner_backend_bytes(p, p->horizon, starts, starts);
}

static double adam_bytes(const SnPlanner *p, const SnSettings *s) { return sn_planner_adam_bytes(p, s->adam_starts); }

static SnCode adam_reserve(SnPlanner *p, const SnSettings *s, SnError *err) {
  const SnCode code = adam_check(p, err);
  return code == SN_OK ? sn_planner_adam_reserve(p, s->adam_starts, err) : code;
}

static void adam_free(SnPlanner *p) {
  if (p->iterations.adam) free(p->iterations.adam->next);
  free(p->iterations.adam);
  p->iterations.adam = NULL;
}

static void adam_shift(SnPlanner *p, int k) {
  enum {
    FAR = 1 << 20
  };  // other planners' plans count too, for months: beyond this nothing of the plan before is left
  SnAdamState *a = p->iterations.adam;
  if (!a) return;
  a->moved = (a->moved < FAR ? a->moved : FAR) + k;
  a->advanced = false;
}

static void adam_forget(SnPlanner *p) {
  if (!p->iterations.adam) return;
  p->iterations.adam->known = false;
  p->iterations.adam->capacity = 0;
  p->iterations.adam->moved = 0;
  p->iterations.adam->grid.phase = 0;
}

// ---- snapshots ----

void sn_planner_adam_snapshot(const SnPlanner *p, SnAdamSnapshot *s) {
  const SnAdamState *a = p->iterations.adam;
  *s = (SnAdamSnapshot){.used = a != NULL};
  if (!a) return;
  s->known = a->known && sn_backend_moments(p->device.backend, p->device.model, &s->moments);
  s->moved = a->moved;
  s->phase = a->grid.phase;
  s->knots = a->knots;
  s->interpolation = a->interpolation;
  s->starts = a->starts;
  s->grid = a->time;
  s->capacity = a->capacity;
}

// Means of squares are not negative, and powers of numbers below 1 not above it.
static SnCode check_moments(const SnMomentsView *s, SnError *err) {
  for (int i = 0; i < s->size; ++i)
    if (!isfinite(s->first[i]) || !isfinite(s->second[i]) || s->second[i] < 0)
      return sn_fail(err, SN_ERR_ARGUMENT, "moments[%d]: %g and %g, allowed are finite numbers, the second at least 0",
                     i, (double)s->first[i], (double)s->second[i]);
  if (s->power1 >= 0 && s->power1 <= 1 && s->power2 >= 0 && s->power2 <= 1) return SN_OK;
  return sn_fail(err, SN_ERR_ARGUMENT, "powers of beta1 and beta2: %g and %g, allowed are 0 to 1", s->power1,
                 s->power2);
}

static SnCode check_adam(const SnAdamSnapshot *s, SnError *err) {
  enum { STEPS = 1 << 24 };  // so that sums stay integers
  const int starts = (int)sn_settings_info(sn_settings_find("adam_starts"))->hi;
  const struct {
    const char *name;
    int value, most;
  } x[] = {{"moved", s->moved, STEPS},    {"phase", s->phase, STEPS},
           {"knots", s->knots, STEPS},    {"interpolation", s->interpolation, STEPS},
           {"starts", s->starts, starts}, {"capacity", s->capacity, starts}};
  for (size_t i = 0; i < sizeof x / sizeof *x; ++i)
    if (x[i].value < 0 || x[i].value > x[i].most)
      return sn_fail(err, SN_ERR_ARGUMENT, "adam: %s is %d, allowed are 0 to %d", x[i].name, x[i].value, x[i].most);
  return s->known ? check_moments(&s->moments, err) : SN_OK;
}

SnCode sn_planner_adam_restore(SnPlanner *p, const SnAdamSnapshot *s, SnError *err) {
  if (!s->used) {
    adam_forget(p);
    return SN_OK;
  }
  const int starts = s->capacity > 0 ? s->capacity : 1;  // 0: it is reserved anew before it is used
  SnCode code = check_adam(s, err);
  if (code == SN_OK) code = adam_check(p, err);
  if (code == SN_OK) code = sn_planner_take(p, SN_PLANNER_ADAM, sn_planner_adam_bytes(p, starts), err);
  if (code == SN_OK) code = sn_planner_adam_reserve(p, starts, err);
  if (code != SN_OK) return code;
  SnAdamState *a = p->iterations.adam;
  a->moved = s->moved;
  a->grid.phase = s->phase;
  a->knots = s->knots;
  a->interpolation = s->interpolation;
  a->starts = s->starts;
  a->time = s->grid;
  a->capacity = s->capacity;
  a->fresh = true;  // until the next plan's first iteration, which begins anew in any case
  a->known = s->known && sn_backend_set_moments(p->device.backend, p->device.model, &s->moments);
  return SN_OK;
}

// ---- a plan's beginning ----

static bool same_structure(const SnPlanner *p) {
  const SnAdamState *a = p->iterations.adam;
  const SnSettings *s = &p->in_force.settings;
  return a->knots == s->adam_knots && a->interpolation == s->adam_interpolation && a->starts == s->adam_starts &&
         sn_grid_equal(&a->time, &p->grid.grid);
}

// The grid of the settings, moved in time with the plan: knots stay where they were. Writes how many knots the plan has
// left behind; of a knot for every row of a time grid, how many base steps.
static SnAdamGrid next_grid(const SnPlanner *p, int *left) {
  const SnAdamState *a = p->iterations.adam;
  const int n = p->in_force.settings.adam_knots, moved = a->grid.phase + a->moved;
  const int spacing = n > 0 ? (p->horizon - 1 + n - 2) / (n - 1) : 1;
  SnAdamGrid grid = {.nstep = p->grid.steps,
                     .spacing = spacing,
                     .phase = moved % spacing,
                     .interpolation = n > 0 ? p->in_force.settings.adam_interpolation : SN_SPLINE_ZERO};
  if (n > 0) grid.time = p->grid.grid;
  grid.knots = sn_noise_knots(n > 0 ? p->horizon : p->grid.steps, spacing, grid.phase);
  *left = moved / spacing;
  return grid;
}

// A job that began anew has come to something: the one before is forgotten.
static void take_grid(const SnPlanner *p, SnAdamState *a) {
  a->grid = a->job.grid;
  a->time = p->grid.grid;
  a->knots = p->in_force.settings.adam_knots;
  a->interpolation = p->in_force.settings.adam_interpolation;
  a->starts = p->in_force.settings.adam_starts;
  a->moved = 0;
  a->known = false;
}

// ---- iterations ----

// Iterations of one job: as many as are left and as the backend finds worth asking for.
static int job_iterations(const SnPlanner *p, int left) {
  const int worth = sn_backend_job_iterations(p->device.backend);
  return sn_mini(left, worth > 1 ? worth : 1);
}

SnMultistartJob *sn_planner_adam_job(SnPlanner *p, bool init, int starts, int most, int iterations) {
  SnAdamState *a = p->iterations.adam;
  int left = 0;
  const SnAdamGrid grid = init ? next_grid(p, &left) : a->grid;
  const int best_start = init ? 0 : a->job.best_start;
  a->open = true;
  a->job =
      (SnMultistartJob){.state = sn_planner_iteration_state(p, &p->progress.start),
                        .target = sn_planner_grid_target(p),
                        .nstep = p->grid.steps,
                        .max_velocity = p->in_force.settings.max_velocity,
                        .settings = {.method = (SnGradientMethod)p->in_force.settings.gradient, .cfd = p->cfd.backward},
                        .grid = grid,
                        .rule = sn_adam_settings(&p->in_force.settings),
                        .noise = sn_planner_noise(p),
                        .initial_ctrl = p->initial.ctrl,
                        .starts = starts,
                        .count = sn_mini(most, starts),
                        .init = init,
                        .left = left,
                        .measured = p->iterations.measured,
                        .iterations = job_iterations(p, iterations),
                        .deadline = sn_planner_iteration_deadline(p),
                        .ctrl = sn_planner_best(p),
                        .cost_before = p->result.cost_before,
                        .best_cost = p->result.best_cost,
                        .gradient_norm = p->result.gradient_norm,
                        .best_term = p->result.best_term,
                        .best_start = best_start};
  return &a->job;
}

// Within a plan (what is sought or how it is measured has changed) moments are fresh. What is remembered is that of the
// plan before until a job of this plan has come to something: one that came to nothing leaves no trace. But a job of
// several iterations that was dropped may have made some of them.
static void adam_begin(SnPlanner *p, int most, int iterations) {
  SnAdamState *a = p->iterations.adam;
  const SnSettings *s = &p->in_force.settings;
  a->known = a->known && !(a->open && sn_backend_job_iterations(p->device.backend) > 1);
  const bool init = p->iterations.next == 0 || !p->iterations.measured || !same_structure(p) || a->fresh;
  const bool keep = s->adam_moments == SN_MOMENTS_KEPT && a->known && same_structure(p) && p->iterations.next == 0;
  SnMultistartJob *job = sn_planner_adam_job(p, init, s->adam_starts, most, iterations);
  job->keep = keep;
  if (s->adam_warm_start == SN_WARM_START_LAST) job->next = a->next;
}

void sn_planner_adam_submit(SnPlanner *p) {
  sn_backend_multistart_submit(p->device.backend, p->device.model, &p->iterations.adam->job);
}

SnWorked sn_planner_adam_work(SnPlanner *p, double stop) {
  SnMultistartJob *job = &p->iterations.adam->job;
  const bool before = job->rolled;
  if (sn_backend_multistart(p->device.backend, p->device.model, job, &p->def.clock, stop)) return SN_WORKED_ALL;
  if (job->rolled && !before && !job->next) return SN_WORKED_ROLLED;
  return sn_backend_job_iterations(p->device.backend) > 1 ? SN_WORKED_PART : SN_WORKED_PAUSED;
}

const SnMultistartJob *sn_planner_adam_end(SnPlanner *p) {
  SnAdamState *a = p->iterations.adam;
  sn_backend_multistart_end(p->device.backend, p->device.model, &a->job);
  a->open = false;
  if (a->job.done == 0) return NULL;
  if (a->job.init) take_grid(p, a);
  a->fresh = false;
  p->result.warn |= a->job.warn;
  sn_planner_mark_version(p);
  p->iterations.next += a->job.done;
  p->result.iterations = p->iterations.next;
  p->result.candidates = a->job.used;
  return &a->job;
}

// The last iterate of the plan before was never measured, and diverges: the plan in force takes its place.
static bool falls_back(SnPlanner *p, const SnMultistartJob *job) {
  const size_t nu = (size_t)p->m->nu;
  const bool last = p->in_force.settings.adam_warm_start == SN_WARM_START_LAST && p->active_plan.rows > 0;
  if (!last || !job->init || p->iterations.next != job->done || isfinite(job->best_cost)) return false;
  for (int t = 0; t < p->horizon; ++t)
    sn_planner_copy(p->warm_start.ctrl + (size_t)t * nu, sn_planner_force_row(p, p->progress.start.time + t * p->h),
                    nu);
  p->iterations.adam->known = false;
  return true;
}

static void adam_end(SnPlanner *p) {
  const SnMultistartJob *job = sn_planner_adam_end(p);
  if (!job || (!p->iterations.measured && falls_back(p, job))) return;
  if (!p->iterations.measured) {
    p->result.cost_before = job->cost_before;
    p->result.cost_now = p->iterations.state_cost;
    p->iterations.measured = true;
  }
  p->result.best_cost = job->best_cost;
  p->result.gradient_norm = job->gradient_norm;
  p->iterations.adam->known = true;
  p->iterations.adam->advanced = job->next != NULL;
}

// The next plan begins where the step from the last iterate leads, whose rows are those of its time grid.
static void adam_advance(SnPlanner *p) {
  SnAdamState *a = p->iterations.adam;
  if (!a->advanced || p->in_force.settings.adam_warm_start != SN_WARM_START_LAST) return;
  if (!sn_grid_equal(&a->time, &p->grid.grid)) return;
  a->advanced = false;
  sn_planner_copy(sn_planner_best(p), a->next, sn_planner_rows(p));
  sn_planner_grid_keep(p);
}

// Of several starts those count that are done.
static bool adam_whole(const SnPlanner *p) { return p->in_force.settings.adam_starts == 1; }

const SnOptimizer sn_optimizer_adam = {.kind = SN_PLANNER_ADAM,
                                       .descends = true,
                                       .least = 2,  // the first one measures the warm start
                                       .announces = SN_BACKEND_MULTISTART_SUBMIT,
                                       .check = adam_check,
                                       .reserve = adam_reserve,
                                       .bytes = adam_bytes,
                                       .begin = adam_begin,
                                       .submit = sn_planner_adam_submit,
                                       .work = sn_planner_adam_work,
                                       .whole = adam_whole,
                                       .end = adam_end,
                                       .advance = adam_advance,
                                       .shift = adam_shift,
                                       .forget = adam_forget,
                                       .free = adam_free};
