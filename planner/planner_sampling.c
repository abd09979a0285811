// Planners by sampling: what they share, a plan and noisy copies of it, its candidates, and predictive sampling itself.
// There an iteration compares the best controls so far (candidate 0) with noisy copies of them, and the winner takes
// all. The noise has knots on a grid that moves with the plan, so a sum of noises stays a spline with these knots.
#include <stdlib.h>

#include "planner/planner_private.h"

// Arrays whose length is the number of candidates.
static SnCode candidates_reserve(SnPlanner *p, int n, SnError *err) {
  if (n <= p->candidates.capacity) return SN_OK;
  bool ok = true;
  double *cost = sn_planner_calloc((size_t)n, sizeof *cost, &ok);
  double *term = sn_planner_calloc((size_t)n * (size_t)p->in_force.cost->nterm, sizeof *term, &ok);
  unsigned char *done = sn_planner_calloc((size_t)n, sizeof *done, &ok);
  int *warn = sn_planner_calloc((size_t)n, sizeof *warn, &ok);
  int *rank = sn_planner_calloc((size_t)n, sizeof *rank, &ok);
  if (!ok) {
    free(cost);
    free(term);
    free(done);
    free(warn);
    free(rank);
    return sn_fail(err, SN_ERR_MEMORY, "planner: no memory for %d candidates", n);
  }
  free(p->candidates.cost);
  free(p->candidates.term);
  free(p->candidates.done);
  free(p->candidates.warn);
  free(p->candidates.rank);
  p->candidates.cost = cost;
  p->candidates.term = term;
  p->candidates.done = done;
  p->candidates.warn = warn;
  p->candidates.rank = rank;
  p->candidates.capacity = n;
  return SN_OK;
}

double sn_planner_candidates_bytes(const SnPlanner *p, const SnSettings *s) {
  const double each = (1 + p->in_force.cost->nterm) * (double)sizeof(double) + 2 * (double)sizeof(int) + 1;
  return s->candidates * each;
}

SnCode sn_planner_candidates_reserve(SnPlanner *p, const SnSettings *s, SnError *err) {
  const SnCode code = sn_backend_reserve_rollouts(p->device.backend, p->device.model, s->candidates, err);
  return code == SN_OK ? candidates_reserve(p, s->candidates, err) : code;
}

int sn_planner_noise_spacing(const SnPlanner *p) {
  return (p->horizon - 1 + p->in_force.settings.knots - 2) / (p->in_force.settings.knots - 1);
}

SnNoiseSettings sn_planner_noise(const SnPlanner *p) {
  const SnSettings *s = &p->in_force.settings;
  const int spacing = sn_planner_noise_spacing(p), phase = p->warm_start.phase % spacing;
  return (SnNoiseSettings){.seed = p->def.seed,
                           .plan = (uint32_t)p->progress.number,
                           .iteration = (uint32_t)p->iterations.next,
                           .spacing = spacing,
                           .phase = phase,
                           .knots = sn_noise_knots(p->horizon, spacing, phase),
                           .interpolation = s->interpolation,
                           .colour = s->noise,
                           .scale = s->noise_scale,
                           .grid = p->grid.grid};
}

static SnBatch batch_of(SnPlanner *p, const sn_real *base, int first, int count) {
  const size_t nterm = (size_t)p->in_force.cost->nterm;
  return (SnBatch){.state = &p->candidates.state,
                   .nstate = 1,
                   .ctrl = base,
                   .nctrl = 1,
                   .target = sn_planner_grid_target(p),
                   .ntable = 1,
                   .noise = &p->candidates.noise,
                   .nstep = p->grid.steps,
                   .first = first,
                   .count = count,
                   .max_velocity = p->in_force.settings.max_velocity,
                   .cost = p->candidates.cost + first,
                   .term = p->candidates.term + (size_t)first * nterm,
                   .done = p->candidates.done + first,
                   .warn = p->candidates.warn + first};
}

void sn_planner_candidates_begin(SnPlanner *p, const sn_real *base, double cost, const double *term, int most) {
  const SnSettings *s = &p->in_force.settings;
  p->candidates.noise = sn_planner_noise(p);
  p->candidates.count = s->candidates < p->candidates.capacity ? s->candidates : p->candidates.capacity;
  if (most < p->candidates.count) p->candidates.count = most;
  memset(p->candidates.done, 0, (size_t)p->candidates.count);
  memset(p->candidates.warn, 0, sizeof *p->candidates.warn * (size_t)p->candidates.count);
  p->candidates.known = term != NULL;
  if (term) {
    p->candidates.cost[0] = cost;
    memcpy(p->candidates.term, term, sizeof *term * (size_t)p->in_force.cost->nterm);
    p->candidates.done[0] = 1;
  }
  p->candidates.state = sn_planner_iteration_state(p, &p->progress.start);
  const int first = term ? 1 : 0;
  p->candidates.batch = batch_of(p, base, first, p->candidates.count - first);
}

void sn_planner_candidates_submit(SnPlanner *p) {
  sn_backend_rollouts_submit(p->device.backend, p->device.model, &p->candidates.batch);
}

SnWorked sn_planner_candidates_work(SnPlanner *p, double stop) {
  return sn_backend_rollouts(p->device.backend, p->device.model, &p->candidates.batch, &p->def.clock, stop)
             ? SN_WORKED_ALL
             : SN_WORKED_PAUSED;
}

// The best of the iteration's candidates is the best so far.
static void take_candidate(SnPlanner *p, int best) {
  sn_noise_candidate(p->m, &p->candidates.noise, best, p->candidates.batch.ctrl, p->grid.steps, p->candidates.scratch,
                     p->candidates.winner);
  sn_planner_copy(sn_planner_best(p), p->candidates.winner, sn_planner_rows(p));
  const size_t nterm = (size_t)p->in_force.cost->nterm;
  p->result.best_cost = p->candidates.cost[best];
  p->result.gradient_norm = (double)NAN;
  memcpy(p->result.best_term, p->candidates.term + (size_t)best * nterm, sizeof(double) * nterm);
}

int sn_planner_candidates_end(SnPlanner *p) {
  int used = 0;
  if (memchr(p->candidates.done, 0, (size_t)p->candidates.count))
    sn_backend_abandon(p->device.backend, p->device.model);
  const int best = sn_best_candidate(p->candidates.cost, p->candidates.done, p->candidates.count, &used);
  if (used == 0 || (p->candidates.known && used == 1 && p->candidates.count > 1)) return 0;
  const bool first = !p->iterations.measured;
  if (first) {
    p->result.cost_before = p->candidates.cost[0];
    p->result.cost_now = p->iterations.state_cost;
  }
  p->iterations.measured = true;
  sn_planner_mark_version(p);
  if (first || p->candidates.cost[best] < p->result.best_cost) take_candidate(p, best);
  for (int i = 0; i < used; ++i) p->result.warn |= p->candidates.warn[i];
  p->result.iterations = ++p->iterations.next;
  p->result.candidates = used;
  return used;
}

// ---- predictive sampling ----

// Candidate 0 is the winner of the iteration before: its cost is known, unless the weights have changed since.
static void sampling_begin(SnPlanner *p, int most, int iterations) {
  (void)iterations;  // one after the other: the next one needs this one's winner
  sn_planner_candidates_begin(p, sn_planner_best(p), p->result.best_cost,
                              p->iterations.measured ? p->result.best_term : NULL, most);
}

static void sampling_end(SnPlanner *p) { sn_planner_candidates_end(p); }

const SnOptimizer sn_optimizer_sampling = {.kind = SN_PLANNER_SAMPLING,
                                           .least = 1,
                                           .announces = SN_BACKEND_ROLLOUTS_SUBMIT,
                                           .reserve = sn_planner_candidates_reserve,
                                           .bytes = sn_planner_candidates_bytes,
                                           .begin = sampling_begin,
                                           .submit = sn_planner_candidates_submit,
                                           .work = sn_planner_candidates_work,
                                           .end = sampling_end};
