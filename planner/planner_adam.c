// Planning by gradients. A plan begins with one start or several: the warm start, and copies of it with the noise of
// sampling; the backend optimizes them (multistart.h). Here stands what a planner asks of it, and what Adam remembers
// from plan to plan.
#include "planner/optimize/adam.h"
#include "planner/planner_private.h"

struct SnAdamState {
  SnMultistartJob job;
  SnAdamGrid grid;  // of this plan
  int knots;        // settings that the grid was made from
  int interpolation, starts;
  int moved;     // steps that the plan was shifted by since
  bool known;    // moments and grid are those of the plan before
  int capacity;  // starts that the backend has capacity for
  bool fresh;    // it is new: nothing is remembered there
};

SnCode sn_planner_adam_check(const SnPlanner *p, SnError *err) {
  const SnBackend *b = p->backend;
  if (sn_backend_has(b, SN_BACKEND_MULTISTART)) return SN_OK;
  return sn_fail(err, SN_ERR_UNSUPPORTED, "planner: adam needs gradients, and the backend '%s' makes none",
                 sn_backend_name(b));
}

static SnCode adam_reserve(SnPlanner *p, const SnSettings *s, SnError *err) {
  SnBackend *b = p->backend;
  bool ok = true;
  SnCode code = sn_planner_adam_check(p, err);
  if (code != SN_OK) return code;
  if (!p->adam) p->adam = sn_planner_calloc(1, sizeof *p->adam, &ok);
  if (!ok) return sn_fail(err, SN_ERR_MEMORY, "planner: out of memory");
  code = sn_backend_reserve_multistart(b, p->device, s->adam_starts, err);
  if (code != SN_OK || s->adam_starts <= p->adam->capacity) return code;
  p->adam->capacity = s->adam_starts;
  p->adam->fresh = true;
  p->adam->known = false;
  return SN_OK;
}

void sn_planner_adam_free(SnPlanner *p) {
  free(p->adam);
  p->adam = NULL;
}

void sn_planner_adam_shift(SnPlanner *p, int k) {
  enum {
    FAR = 1 << 20
  };  // other planners' plans count too, for months: beyond this nothing of the plan before is left
  if (p->adam) p->adam->moved = (p->adam->moved < FAR ? p->adam->moved : FAR) + k;
}

void sn_planner_adam_forget(SnPlanner *p) {
  if (!p->adam) return;
  p->adam->known = false;
  p->adam->capacity = 0;
  p->adam->moved = 0;
  p->adam->grid.phase = 0;
}

static int adam_iterations(const SnSettings *s) { return s->adam_iterations; }

// ---- a plan's beginning ----

static bool same_structure(const SnPlanner *p) {
  const SnAdamState *a = p->adam;
  const SnSettings *s = &p->settings;
  return a->knots == s->adam_knots && a->interpolation == s->adam_interpolation && a->starts == s->adam_starts;
}

// The grid of the settings, moved in time with the plan: knots stay where they were. Returns how many knots the plan
// has left behind.
static int make_grid(SnPlanner *p) {
  SnAdamState *a = p->adam;
  const int n = p->settings.adam_knots, moved = a->grid.phase + a->moved;
  const int spacing = n > 0 ? (p->horizon - 1 + n - 2) / (n - 1) : 1;
  a->grid = (SnAdamGrid){.nstep = p->horizon,
                         .spacing = spacing,
                         .phase = moved % spacing,
                         .interpolation = n > 0 ? p->settings.adam_interpolation : SN_SPLINE_ZERO};
  a->grid.knots = sn_noise_knots(p->horizon, spacing, a->grid.phase);
  a->knots = n;
  a->interpolation = p->settings.adam_interpolation;
  a->starts = p->settings.adam_starts;
  a->moved = 0;
  return moved / spacing;
}

// ---- iterations ----

// Within a plan (what is sought or how it is measured has changed) moments are fresh. What the backend remembers is
// that of the plan before only once a job of this plan has come to something.
static void adam_begin(SnPlanner *p, int most, int iterations) {
  SnAdamState *a = p->adam;
  const bool init = p->iteration == 0 || !p->measured || !same_structure(p) || a->fresh;
  const bool keep = p->settings.adam_moments == SN_MOMENTS_KEPT && a->known && same_structure(p) && p->iteration == 0;
  const int left = init ? make_grid(p) : 0, most_worth = sn_backend_job_iterations(p->backend);
  const int worth = most_worth > 1 ? most_worth : 1;
  a->known = a->known && !init;
  a->job = (SnMultistartJob){.state = sn_planner_rollout_state(p, &p->rolled_state),
                             .target = p->target,
                             .nstep = p->horizon,
                             .max_velocity = p->settings.max_velocity,
                             .settings = {.method = (SnGradientMethod)p->settings.gradient, .cfd = p->backward},
                             .grid = a->grid,
                             .rule = sn_adam_rule(&p->settings),
                             .noise = sn_planner_noise(p),
                             .initial_ctrl = p->initial_ctrl,
                             .starts = a->starts,
                             .count = most < a->starts ? most : a->starts,
                             .init = init,
                             .keep = keep,
                             .left = left,
                             .measured = p->measured,
                             .iterations = iterations < worth ? iterations : worth,
                             .deadline = sn_planner_iteration_deadline(p),
                             .ctrl = p->nominal,
                             .cost_before = p->cost_before,
                             .best_cost = p->best_cost,
                             .gradient_norm = p->gradient_norm,
                             .best_term = p->best_term};
}

static void adam_submit(SnPlanner *p) { sn_backend_multistart_submit(p->backend, p->device, &p->adam->job); }

static SnWorked adam_work(SnPlanner *p, double stop) {
  if (sn_backend_multistart(p->backend, p->device, &p->adam->job, &p->def.clock, stop)) return SN_WORKED_ALL;
  return sn_backend_job_iterations(p->backend) > 1 ? SN_WORKED_PART : SN_WORKED_PAUSED;
}

static void adam_end(SnPlanner *p) {
  SnAdamState *a = p->adam;
  const SnMultistartJob *job = &a->job;
  sn_backend_multistart_end(p->backend, p->device, &a->job);
  if (job->done == 0) return;
  if (!p->measured) {
    p->cost_before = job->cost_before;
    p->cost_now = p->state_cost;
    p->measured = true;
  }
  p->best_cost = job->best_cost;
  p->gradient_norm = job->gradient_norm;
  p->warn |= job->warn;
  p->used = p->trying;
  p->iteration += job->done;
  p->iterations = p->iteration;
  p->candidates = job->used;
  a->known = true;
  a->fresh = false;
}

const SnOptimizer sn_optimizer_adam = {adam_reserve, adam_iterations, adam_begin, adam_submit, adam_work, adam_end};
