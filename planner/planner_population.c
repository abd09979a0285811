// Planners by sampling that go on from a mean: MPPI and CEM (planner/optimize/mppi.c, cem.c). An iteration measures
// candidates around the mean, moves the mean by a weighted mean of their noises, and measures it there. It is candidate
// 0 of the next iteration. The plan is the best that was measured, candidates and means, so it is never worse than the
// warm start, and a plan of one iteration may serve its mean. The next plan begins at the plan served.
//
// An iteration whose mean counts has one candidate more than the settings say: `candidates` of the plan tells.
#include "planner/optimize/cem.h"
#include "planner/optimize/mppi.h"
#include "planner/planner_private.h"

// What an iteration works on: its candidates, the mean that they lead to, a rollout of that mean.
typedef enum PopulationStage { POPULATION_CANDIDATES, POPULATION_MEAN, POPULATION_MEASURE } PopulationStage;

struct SnPopulation {
  sn_real *mean;  // (horizon, nu)
  sn_real *next;  // (horizon, nu) the mean that the candidates lead to
  // What is known of the mean, and of the next one.
  double cost, next_cost;
  double *term, *next_term;  // (nterm)
  SnBatch batch;             // of the next mean alone
  unsigned char done;
  int warn;
  bool known;  // the mean was measured, under the weights in force
  bool moves;  // the iteration ends with a mean, not with its candidates
  PopulationStage stage;
  int control;  // the next one whose mean is computed
  // Of the noises, for each control at each knot.
  sn_real *off, *variance, *deviation;  // (nu, knots)
  int knots, interpolation;             // that deviations belong to
  int capacity;                         // candidates that there is room for
  double *weight;                       // (capacity)
};

static void population_free(SnPlanner *p) {
  SnPopulation *x = p->iterations.population;
  if (!x) return;
  void *const memory[] = {x->mean, x->next, x->term, x->next_term, x->off, x->variance, x->deviation, x->weight};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; ++i) free(memory[i]);
  free(x);
  p->iterations.population = NULL;
}

static SnCode create(SnPlanner *p, SnError *err) {
  const size_t nu = (size_t)p->m->nu, rows = (size_t)p->horizon * nu, nterm = (size_t)p->in_force.cost->nterm;
  const size_t knots = (size_t)sn_multistart_knots(p->horizon) * nu;
  bool ok = true;
  SnPopulation *x = p->iterations.population = sn_planner_calloc(1, sizeof *x, &ok);
  if (!x) return sn_fail(err, SN_ERR_MEMORY, "planner: out of memory");
  x->mean = sn_planner_calloc(rows, sizeof *x->mean, &ok);
  x->next = sn_planner_calloc(rows, sizeof *x->next, &ok);
  x->term = sn_planner_calloc(nterm, sizeof *x->term, &ok);
  x->next_term = sn_planner_calloc(nterm, sizeof *x->next_term, &ok);
  x->off = sn_planner_calloc(knots, sizeof *x->off, &ok);
  x->variance = sn_planner_calloc(knots, sizeof *x->variance, &ok);
  x->deviation = sn_planner_calloc(knots, sizeof *x->deviation, &ok);
  if (ok) return SN_OK;
  population_free(p);
  return sn_fail(err, SN_ERR_MEMORY, "planner: out of memory");
}

static double population_bytes(const SnPlanner *p, const SnSettings *s) {
  const double knots = 3.0 * sn_multistart_knots(p->horizon) * p->m->nu * (double)sizeof(sn_real);
  return sn_planner_candidates_bytes(p, s) + sn_planner_ctrl_bytes(p, 2) + knots +
         s->candidates * (double)sizeof(double);
}

static SnCode population_reserve(SnPlanner *p, const SnSettings *s, SnError *err) {
  SnCode code = sn_planner_candidates_reserve(p, s, err);
  if (code == SN_OK && !p->iterations.population) code = create(p, err);
  if (code != SN_OK || s->candidates <= p->iterations.population->capacity) return code;
  bool ok = true;
  double *weight = sn_planner_calloc((size_t)s->candidates, sizeof *weight, &ok);
  if (!ok) return sn_fail(err, SN_ERR_MEMORY, "planner: no memory for %d candidates", s->candidates);
  free(p->iterations.population->weight);
  p->iterations.population->weight = weight;
  p->iterations.population->capacity = s->candidates;
  return SN_OK;
}

// ---- an iteration ----

// The mean is the best controls so far.
static void return_to_best(SnPlanner *p, SnPopulation *x) {
  sn_planner_copy(x->mean, sn_planner_best(p), sn_planner_rows(p));
  x->known = p->iterations.measured;
  x->cost = p->result.best_cost;
  memcpy(x->term, p->result.best_term, sizeof *x->term * (size_t)p->in_force.cost->nterm);
}

// Deviations are fresh in every plan, and where the knots are others.
static void population_begin(SnPlanner *p, int most, int iterations) {
  (void)iterations;  // one after the other: the next one needs this one's mean
  SnPopulation *x = p->iterations.population;
  const bool fresh = p->iterations.next == 0;
  if (fresh || !p->iterations.measured) return_to_best(p, x);
  sn_planner_candidates_begin(p, x->mean, x->cost, x->known ? x->term : NULL, most);
  SnNoiseSettings *noise = &p->candidates.noise;
  x->moves = most > p->candidates.count;
  x->stage = POPULATION_CANDIDATES;
  x->done = 0;
  x->warn = 0;
  if (p->iterations.optimizer == &sn_optimizer_mppi) return;
  if (fresh || noise->knots != x->knots || noise->interpolation != x->interpolation)
    for (int i = 0; i < noise->knots * p->m->nu; ++i) x->deviation[i] = 1;
  x->knots = noise->knots;
  x->interpolation = noise->interpolation;
  noise->deviation = x->deviation;
}

// All candidates are done: they are weighed. False where none of them has a cost.
static bool begin_mean(SnPlanner *p, SnPopulation *x) {
  const SnSettings *s = &p->in_force.settings;
  const int n = p->candidates.count, *rank = p->candidates.rank;
  const int finite = sn_rank_candidates(p->candidates.cost, n, p->candidates.rank);
  if (finite == 0) return false;
  if (p->iterations.optimizer == &sn_optimizer_cem)
    sn_cem_weights(s->cem_elites, rank, finite, n, x->weight);
  else
    sn_mppi_weights(s->mppi_temperature, s->mppi_relative, p->candidates.cost, rank, finite, n, x->weight);
  x->stage = POPULATION_MEAN;
  x->control = 0;
  return true;
}

// Where the candidates lead, control by control: their noises are made again. False when the clock reaches `stop`.
static bool find_mean(SnPlanner *p, SnPopulation *x, double stop) {
  const SnNoiseSettings *noise = &p->candidates.noise;
  const bool cem = p->iterations.optimizer == &sn_optimizer_cem;
  for (; x->control < p->m->nu; ++x->control) {
    const size_t at = (size_t)x->control * (size_t)noise->knots;
    if (stop < INFINITY && sn_planner_now(p) >= stop) return false;
    sn_noise_moments(noise, x->control, x->weight, p->candidates.count, p->candidates.scratch, x->off + at,
                     x->variance + at);
  }
  for (int i = 0; cem && i < noise->knots * p->m->nu; ++i) x->off[i] *= (sn_real)(1 - p->in_force.settings.cem_keep);
  sn_noise_mean_controls(p->m, noise, x->off, x->mean, p->grid.steps, x->next);
  x->batch = p->candidates.batch;
  x->batch.ctrl = x->next;
  x->batch.noise = NULL;
  x->batch.first = 0;
  x->batch.count = 1;
  x->batch.cost = &x->next_cost;
  x->batch.term = x->next_term;
  x->batch.done = &x->done;
  x->batch.warn = &x->warn;
  x->stage = POPULATION_MEASURE;
  return true;
}

static void population_submit(SnPlanner *p) {
  SnPopulation *x = p->iterations.population;
  if (x->stage == POPULATION_CANDIDATES)
    sn_planner_candidates_submit(p);
  else if (x->stage == POPULATION_MEASURE)
    sn_backend_rollouts_submit(p->device.backend, p->device.model, &x->batch);
}

static SnWorked population_work(SnPlanner *p, double stop) {
  SnPopulation *x = p->iterations.population;
  if (x->stage == POPULATION_CANDIDATES) {
    const SnWorked worked = sn_planner_candidates_work(p, stop);
    if (worked != SN_WORKED_ALL || !x->moves || !begin_mean(p, x)) return worked;
  }
  if (x->stage == POPULATION_MEAN && !find_mean(p, x, stop)) return SN_WORKED_PAUSED;
  return sn_backend_rollouts(p->device.backend, p->device.model, &x->batch, &p->def.clock, stop) ? SN_WORKED_ALL
                                                                                                 : SN_WORKED_PAUSED;
}

// The mean is there, and what the next candidates deviate by.
static void take_mean(SnPlanner *p, SnPopulation *x) {
  const SnSettings *s = &p->in_force.settings;
  sn_real *old = x->mean;
  double *old_term = x->term;
  x->mean = x->next;
  x->next = old;
  x->term = x->next_term;
  x->next_term = old_term;
  x->cost = x->next_cost;
  x->known = true;
  ++p->result.candidates;
  p->result.warn |= x->warn;
  if (p->iterations.optimizer == &sn_optimizer_cem)
    sn_cem_deviation(&p->candidates.noise, p->m->nu, s->cem_keep, s->cem_least, x->variance, p->candidates.scratch,
                     x->deviation);
  if (x->cost < p->result.best_cost) {
    sn_planner_copy(sn_planner_best(p), x->mean, sn_planner_rows(p));
    p->result.best_cost = x->cost;
    memcpy(p->result.best_term, x->term, sizeof *x->term * (size_t)p->in_force.cost->nterm);
  }
}

static void population_end(SnPlanner *p) {
  SnPopulation *x = p->iterations.population;
  if (x->stage == POPULATION_MEASURE && !x->done) sn_backend_abandon(p->device.backend, p->device.model);
  if (sn_planner_candidates_end(p) == 0) return;
  if (x->done) take_mean(p, x);
  if (!x->done || !isfinite(x->cost)) return_to_best(p, x);
}

const SnOptimizer sn_optimizer_mppi = {.kind = SN_PLANNER_MPPI,
                                       .least = 1,
                                       .announces = SN_BACKEND_ROLLOUTS_SUBMIT,
                                       .reserve = population_reserve,
                                       .bytes = population_bytes,
                                       .begin = population_begin,
                                       .submit = population_submit,
                                       .work = population_work,
                                       .end = population_end,
                                       .free = population_free};

const SnOptimizer sn_optimizer_cem = {.kind = SN_PLANNER_CEM,
                                      .least = 1,
                                      .announces = SN_BACKEND_ROLLOUTS_SUBMIT,
                                      .reserve = population_reserve,
                                      .bytes = population_bytes,
                                      .begin = population_begin,
                                      .submit = population_submit,
                                      .work = population_work,
                                      .end = population_end,
                                      .free = population_free};
