// Predictive sampling: an iteration compares the best controls so far (candidate 0) with noisy copies of them, and the
// winner takes all. The noise has knots on a grid that moves with the plan, so a sum of noises stays a spline with
// these knots.
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
  if (!ok) {
    free(cost);
    free(term);
    free(done);
    free(warn);
    return sn_fail(err, SN_ERR_MEMORY, "planner: no memory for %d candidates", n);
  }
  free(p->candidates.cost);
  free(p->candidates.term);
  free(p->candidates.done);
  free(p->candidates.warn);
  p->candidates.cost = cost;
  p->candidates.term = term;
  p->candidates.done = done;
  p->candidates.warn = warn;
  p->candidates.capacity = n;
  return SN_OK;
}

// Steps between knots of the noise: `knots` of them span the horizon.
static int knot_spacing(const SnPlanner *p) {
  return (p->horizon - 1 + p->in_force.settings.knots - 2) / (p->in_force.settings.knots - 1);
}

SnNoiseSettings sn_planner_noise(SnPlanner *p) {
  const SnSettings *s = &p->in_force.settings;
  const int spacing = knot_spacing(p);
  p->warm_start.phase %= spacing;
  return (SnNoiseSettings){.seed = p->def.seed,
                           .plan = (uint32_t)p->progress.number,
                           .iteration = (uint32_t)p->iterations.next,
                           .spacing = spacing,
                           .phase = p->warm_start.phase,
                           .knots = sn_noise_knots(p->horizon, spacing, p->warm_start.phase),
                           .interpolation = s->interpolation,
                           .colour = s->noise,
                           .scale = s->noise_scale};
}

static void sampling_begin(SnPlanner *p, int most, int iterations) {
  (void)iterations;  // one after the other: the next one needs this one's winner
  const SnSettings *s = &p->in_force.settings;
  p->candidates.noise = sn_planner_noise(p);
  p->candidates.count = s->candidates < p->candidates.capacity ? s->candidates : p->candidates.capacity;
  if (most < p->candidates.count) p->candidates.count = most;
  memset(p->candidates.done, 0, (size_t)p->candidates.count);
  memset(p->candidates.warn, 0, sizeof *p->candidates.warn * (size_t)p->candidates.count);
  // Candidate 0 is the winner of the iteration before: its cost is known, unless the weights have changed since.
  const int first = p->iterations.measured ? 1 : 0;
  const size_t nterm = (size_t)p->in_force.cost->nterm;
  if (first) {
    p->candidates.cost[0] = p->result.best_cost;
    memcpy(p->candidates.term, p->result.best_term, sizeof(double) * nterm);
    p->candidates.done[0] = 1;
  }
  p->candidates.state = sn_planner_rollout_state(p, &p->progress.start);
  p->candidates.batch = (SnBatch){.state = &p->candidates.state,
                                  .nstate = 1,
                                  .ctrl = p->warm_start.ctrl,
                                  .nctrl = 1,
                                  .target = p->progress.target,
                                  .ntable = 1,
                                  .noise = &p->candidates.noise,
                                  .nstep = p->horizon,
                                  .first = first,
                                  .count = p->candidates.count - first,
                                  .max_velocity = s->max_velocity,
                                  .cost = p->candidates.cost + first,
                                  .term = p->candidates.term + (size_t)first * nterm,
                                  .done = p->candidates.done + first,
                                  .warn = p->candidates.warn + first};
}

static void sampling_submit(SnPlanner *p) {
  sn_backend_rollouts_submit(p->device.backend, p->device.model, &p->candidates.batch);
}

static SnWorked sampling_work(SnPlanner *p, double stop) {
  return sn_backend_rollouts(p->device.backend, p->device.model, &p->candidates.batch, &p->def.clock, stop)
             ? SN_WORKED_ALL
             : SN_WORKED_PAUSED;
}

// Takes the best of the iteration's candidates that count.
static void sampling_end(SnPlanner *p) {
  int used = 0;
  if (memchr(p->candidates.done, 0, (size_t)p->candidates.count))
    sn_backend_abandon(p->device.backend, p->device.model);
  const int best = sn_best_candidate(p->candidates.cost, p->candidates.done, p->candidates.count, &used);
  if (used == 0 || (p->iterations.measured && used == 1 && p->candidates.count > 1)) return;
  if (!p->iterations.measured) {
    p->result.cost_before = p->candidates.cost[0];
    p->result.cost_now = p->iterations.state_cost;
  }
  p->iterations.measured = true;
  sn_planner_mark_version(p);
  if (best > 0) {
    sn_noise_candidate(p->m, &p->candidates.noise, best, p->warm_start.ctrl, p->horizon, p->candidates.scratch,
                       p->candidates.winner);
    sn_real *old = p->warm_start.ctrl;
    p->warm_start.ctrl = p->candidates.winner;
    p->candidates.winner = old;
  }
  p->result.best_cost = p->candidates.cost[best];
  memcpy(p->result.best_term, p->candidates.term + (size_t)best * (size_t)p->in_force.cost->nterm,
         sizeof(double) * (size_t)p->in_force.cost->nterm);
  for (int i = 0; i < used; ++i) p->result.warn |= p->candidates.warn[i];
  p->result.iterations = ++p->iterations.next;
  p->result.candidates = used;
}

static SnCode sampling_reserve(SnPlanner *p, const SnSettings *s, SnError *err) {
  const SnCode code = sn_backend_reserve_rollouts(p->device.backend, p->device.model, s->candidates, err);
  return code == SN_OK ? candidates_reserve(p, s->candidates, err) : code;
}

const SnOptimizer sn_optimizer_sampling = {.least = 1,
                                           .announces = SN_BACKEND_ROLLOUTS_SUBMIT,
                                           .reserve = sampling_reserve,
                                           .begin = sampling_begin,
                                           .submit = sampling_submit,
                                           .work = sampling_work,
                                           .end = sampling_end};
