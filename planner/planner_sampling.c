// Predictive sampling: an iteration compares the best controls so far (candidate 0) with noisy copies of them, and the
// winner takes all. The noise has knots on a grid that moves with the plan, so a sum of noises stays a spline with
// these knots.
#include <stdlib.h>

#include "planner/planner_private.h"

// Arrays whose length is the number of candidates.
static SnCode candidates_reserve(SnPlanner *p, int n, SnError *err) {
  if (n <= p->capacity) return SN_OK;
  bool ok = true;
  double *cost = sn_planner_calloc((size_t)n, sizeof *cost, &ok);
  double *term = sn_planner_calloc((size_t)n * (size_t)p->cost->nterm, sizeof *term, &ok);
  unsigned char *done = sn_planner_calloc((size_t)n, sizeof *done, &ok);
  int *warn = sn_planner_calloc((size_t)n, sizeof *warn, &ok);
  if (!ok) {
    free(cost);
    free(term);
    free(done);
    free(warn);
    return sn_fail(err, SN_ERR_MEMORY, "planner: no memory for %d candidates", n);
  }
  free(p->candidate_cost);
  free(p->candidate_term);
  free(p->candidate_done);
  free(p->candidate_warn);
  p->candidate_cost = cost;
  p->candidate_term = term;
  p->candidate_done = done;
  p->candidate_warn = warn;
  p->capacity = n;
  return SN_OK;
}

// Steps between knots of the noise: `knots` of them span the horizon.
static int knot_spacing(const SnPlanner *p) {
  return (p->horizon - 1 + p->settings.knots - 2) / (p->settings.knots - 1);
}

SnNoise sn_planner_noise(SnPlanner *p) {
  const SnSettings *s = &p->settings;
  const int spacing = knot_spacing(p);
  p->phase %= spacing;
  return (SnNoise){.seed = p->def.seed,
                   .plan = (uint32_t)p->number,
                   .iteration = (uint32_t)p->iteration,
                   .spacing = spacing,
                   .phase = p->phase,
                   .knots = sn_noise_knots(p->horizon, spacing, p->phase),
                   .interpolation = s->interpolation,
                   .colour = s->noise,
                   .scale = (sn_real)s->noise_scale};
}

static void sampling_begin(SnPlanner *p, int most, int iterations) {
  (void)iterations;  // one after the other: the next one needs this one's winner
  const SnSettings *s = &p->settings;
  p->noise = sn_planner_noise(p);
  p->count = s->candidates < p->capacity ? s->candidates : p->capacity;
  if (most < p->count) p->count = most;
  memset(p->candidate_done, 0, (size_t)p->count);
  memset(p->candidate_warn, 0, sizeof *p->candidate_warn * (size_t)p->count);
  // Candidate 0 is the winner of the iteration before: its cost is known, unless the weights have changed since.
  const int first = p->measured ? 1 : 0;
  const size_t nterm = (size_t)p->cost->nterm;
  if (first) {
    p->candidate_cost[0] = p->best_cost;
    memcpy(p->candidate_term, p->best_term, sizeof(double) * nterm);
    p->candidate_done[0] = 1;
  }
  p->batch = (SnBatch){.state = sn_planner_rollout_state(p, &p->rolled_state),
                       .ctrl = p->nominal,
                       .target = p->target,
                       .noise = &p->noise,
                       .nstep = p->horizon,
                       .first = first,
                       .count = p->count - first,
                       .max_velocity = s->max_velocity,
                       .cost = p->candidate_cost + first,
                       .term = p->candidate_term + (size_t)first * nterm,
                       .done = p->candidate_done + first,
                       .warn = p->candidate_warn + first};
}

static void sampling_submit(SnPlanner *p) { sn_backend_rollouts_submit(p->backend, p->device, &p->batch); }

static SnWorked sampling_work(SnPlanner *p, double stop) {
  return sn_backend_rollouts(p->backend, p->device, &p->batch, &p->def.clock, stop) ? SN_WORKED_ALL : SN_WORKED_PAUSED;
}

// Takes the best of the iteration's candidates that count.
static void sampling_end(SnPlanner *p) {
  int used = 0;
  if (memchr(p->candidate_done, 0, (size_t)p->count)) sn_backend_abandon(p->backend, p->device);
  const int best = sn_best_candidate(p->candidate_cost, p->candidate_done, p->count, &used);
  if (used == 0 || (p->measured && used == 1 && p->count > 1)) return;
  if (!p->measured) {
    p->cost_before = p->candidate_cost[0];
    p->cost_now = p->state_cost;
  }
  p->measured = true;
  p->used = p->trying;
  if (best > 0) {
    sn_noise_candidate(p->m, &p->noise, best, p->nominal, p->horizon, p->scratch, p->winner);
    sn_real *old = p->nominal;
    p->nominal = p->winner;
    p->winner = old;
  }
  p->best_cost = p->candidate_cost[best];
  memcpy(p->best_term, p->candidate_term + (size_t)best * (size_t)p->cost->nterm,
         sizeof(double) * (size_t)p->cost->nterm);
  for (int i = 0; i < used; ++i) p->warn |= p->candidate_warn[i];
  p->iterations = ++p->iteration;
  p->candidates = used;
}

static SnCode sampling_reserve(SnPlanner *p, const SnSettings *s, SnError *err) {
  const SnCode code = sn_backend_reserve_rollouts(p->backend, p->device, s->candidates, err);
  return code == SN_OK ? candidates_reserve(p, s->candidates, err) : code;
}
static int sampling_iterations(const SnSettings *s) { return s->iterations; }

const SnOptimizer sn_optimizer_sampling = {sampling_reserve, sampling_iterations, sampling_begin,
                                           sampling_submit,  sampling_work,       sampling_end};
