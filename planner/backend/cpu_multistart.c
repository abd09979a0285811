#include "planner/backend/cpu_multistart_private.h"

#include <stdlib.h>

// Knots and rows of a start between two looks at the clock: about 0.1 ms for 39 controls.
enum { KNOTS = 8, ROWS = 64 };

struct SnCpuMultistart {
  const SnModel *m;
  const SnCost *cost;
  int max_step;
  int capacity;              // starts
  SnMultistartStart *start;  // (capacity); `base` is where the memory of one begins
  SnGradient *item;          // (capacity)
  double *term;              // (capacity, nterm)
  sn_real *best_term;        // (nterm)
  sn_real *scratch;          // of the noise
  SnAdamMoments before;      // those of start 0 before the iteration under way
  SnMultistart multistart;   // of the job under way
  SnGradientBatch batch;
  bool begun;      // a job is under way
  bool under_way;  // an iteration of it is:
  int prepared;    // starts whose controls are made
  int evaluated;   // starts whose value and gradient are taken
  int at;          // parts of the next one that are done, knots and rows
  SnLaneShared shared;
  SnLane lane;
};

static size_t rows_of(const SnModel *m, int max_step) { return (size_t)max_step * (size_t)m->nu; }
static size_t knots_of(const SnModel *m, int max_step) { return (size_t)sn_multistart_knots(max_step) * (size_t)m->nu; }

// Numbers of one start: base, ctrl, ctrl_bar; offset, best, gradient, both moments; the terms.
static size_t start_numbers(const SnModel *m, const SnCost *cost, int max_step) {
  return 3 * rows_of(m, max_step) + 5 * knots_of(m, max_step) + (size_t)cost->nterm;
}

size_t sn_cpu_multistart_bytes(const SnModel *m, const SnCost *cost, int max_step) {
  return sizeof(SnMultistartStart) + sizeof(SnGradient) + sizeof(double) * (size_t)cost->nterm +
         sizeof(sn_real) * start_numbers(m, cost, max_step);
}

static bool make_start(const SnCpuMultistart *h, SnMultistartStart *s) {
  const size_t rows = rows_of(h->m, h->max_step), knots = knots_of(h->m, h->max_step);
  sn_real *x = calloc(start_numbers(h->m, h->cost, h->max_step) + 1, sizeof *x);
  if (!x) return false;
  *s = (SnMultistartStart){.base = x,
                           .offset = x + 3 * rows,
                           .best = x + 3 * rows + knots,
                           .gradient = x + 3 * rows + 2 * knots,
                           .moments = {x + 3 * rows + 3 * knots, x + 3 * rows + 4 * knots, 1, 1},
                           .ctrl = x + rows,
                           .ctrl_bar = x + 2 * rows,
                           .term = x + 3 * rows + 5 * knots};
  return true;
}

SnCpuMultistart *sn_cpu_multistart_create(const SnModel *m, const SnCost *cost, int max_step, SnError *err) {
  SnCpuMultistart *h = calloc(1, sizeof *h);
  if (h) {
    h->m = m;
    h->cost = cost;
    h->max_step = max_step;
    h->lane = (SnLane){.n = 1, .shared = &h->shared};
    h->best_term = calloc((size_t)cost->nterm + 1, sizeof *h->best_term);
    h->scratch = calloc((size_t)sn_candidate_scratch(sn_multistart_knots(max_step), 1), sizeof *h->scratch);
    h->before.first = calloc(2 * knots_of(m, max_step) + 1, sizeof *h->before.first);
    h->before.second = h->before.first ? h->before.first + knots_of(m, max_step) : NULL;
  }
  if (h && h->best_term && h->scratch && h->before.first) return h;
  sn_cpu_multistart_free(h);
  sn_fail(err, SN_ERR_MEMORY, "multistart: out of memory");
  return NULL;
}

void sn_cpu_multistart_free(SnCpuMultistart *h) {
  if (!h) return;
  for (int i = 0; i < h->capacity; ++i) free(h->start[i].base);
  free(h->start);
  free(h->item);
  free(h->term);
  free(h->best_term);
  free(h->scratch);
  free(h->before.first);
  free(h);
}

SnCode sn_cpu_multistart_reserve(SnCpuMultistart *h, int n, SnError *err) {
  if (n <= h->capacity) return SN_OK;
  SnMultistartStart *start = calloc((size_t)n, sizeof *start);
  SnGradient *item = calloc((size_t)n, sizeof *item);
  double *term = calloc((size_t)n * (size_t)h->cost->nterm + 1, sizeof *term);
  int made = h->capacity;
  while (start && item && term && made < n && make_start(h, &start[made])) ++made;
  if (made < n) {
    for (int i = h->capacity; i < made; ++i) free(start[i].base);
    free(start);
    free(item);
    free(term);
    return sn_fail(err, SN_ERR_MEMORY, "adam from %d starts: out of memory", n);
  }
  if (h->capacity > 0) memcpy(start, h->start, sizeof *start * (size_t)h->capacity);
  free(h->start);
  free(h->item);
  free(h->term);
  h->start = start;
  h->item = item;
  h->term = term;
  h->capacity = n;
  return SN_OK;
}

static void begin_job(SnCpuMultistart *h, SnMultistartJob *job) {
  for (int k = 0; k < h->cost->nterm; ++k) h->best_term[k] = (sn_real)job->best_term[k];
  h->multistart = (SnMultistart){.grid = job->grid,
                                 .rule = sn_adam_rule(&job->rule),
                                 .noise = sn_noise(&job->noise),
                                 .initial_ctrl = job->initial_ctrl,
                                 .keep = job->keep,
                                 .left = job->left,
                                 .time = sn_state_grid(&job->state),
                                 .starts = job->starts,
                                 .nominal = job->ctrl,
                                 .measured = job->measured,
                                 .cost_before = (sn_real)job->cost_before,
                                 .best_cost = (sn_real)job->best_cost,
                                 .gradient_norm = (sn_real)job->gradient_norm,
                                 .best_term = h->best_term,
                                 .next = job->next,
                                 .best_start = job->best_start};
  h->multistart.nlisted = job->nlisted;
  for (int i = 0; i < job->nlisted; ++i) h->multistart.listed[i] = job->listed[i];
  job->done = job->used = 0;
  job->rolled = false;
  h->begun = true;
}

static void copy_moments(const SnCpuMultistart *h, SnAdamMoments *to, const SnAdamMoments *from) {
  const size_t bytes = knots_of(h->m, h->max_step) * sizeof *to->first;
  memcpy(to->first, from->first, bytes);
  memcpy(to->second, from->second, bytes);
  to->power1 = from->power1;
  to->power2 = from->power2;
}

static bool is_late(const SnClock *clock, double until) {
  return until < (double)INFINITY && clock->now(clock->context) >= until;
}

static void begin_iteration(SnCpuMultistart *h, const SnMultistartJob *job) {
  copy_moments(h, &h->before, &h->start[0].moments);
  for (int i = 0; i < job->count; ++i) h->item[i].status = SN_GRADIENT_PENDING;
  h->batch = (SnGradientBatch){.settings = job->settings, .item = h->item, .count = job->count};
  h->prepared = h->evaluated = h->at = 0;
  h->under_way = true;
}

static SnPart next_part(const SnCpuMultistart *h, int before, int size, int n) {
  return (SnPart){h->at - before, sn_mini(h->at - before + size, n)};
}

// Makes the controls of a start from its next offsets, part after part, until `until`. False when there are more.
static bool make_controls(SnCpuMultistart *h, SnMultistartStart *s, bool init, const SnClock *clock, double until) {
  const SnAdamGrid *g = &h->multistart.grid;
  const int knots = init ? 0 : g->knots, all = knots + g->nstep;
  while (h->at < all) {
    if (h->at < knots) {
      const SnPart part = next_part(h, 0, KNOTS, knots);
      sn_multistart_project(h->m, &h->lane, &h->multistart, s, part);
      h->at = part.to;
    } else {
      const SnPart part = next_part(h, knots, ROWS, g->nstep);
      sn_multistart_rows(h->m, &h->lane, &h->multistart, s, part);
      h->at = knots + part.to;
    }
    if (h->at < all && is_late(clock, until)) return false;
  }
  return true;
}

// Makes the controls of the next start, and what is asked of it, until `until`. False when there is more of it.
static bool prepare_start(SnCpuMultistart *h, const SnMultistartJob *job, const SnClock *clock, double until) {
  const bool init = job->init && job->done == 0;
  const int i = h->prepared;
  SnMultistartStart *s = &h->start[i];
  if (h->at == 0 && init) sn_multistart_init(h->m, &h->lane, &h->multistart, i, s, h->scratch);
  if (i < job->count) {
    if (h->at == 0 && !init) sn_multistart_move(h->m, &h->lane, &h->multistart, s);
    if (!make_controls(h, s, init, clock, until)) return false;
    h->item[i] = (SnGradient){.state = job->state,
                              .ctrl = s->ctrl,
                              .target = job->target,
                              .nstep = job->nstep,
                              .max_velocity = job->max_velocity,
                              .continues = !init,
                              .status = SN_GRADIENT_PENDING,
                              .term = h->term + (size_t)i * (size_t)h->cost->nterm,
                              .ctrl_bar = s->ctrl_bar};
  }
  h->at = 0;
  h->prepared++;
  return true;
}

// Prepares starts, a part of one at least, until `until`; those that take no part too where the job begins anew. False
// when there are more.
static bool prepare(SnCpuMultistart *h, const SnMultistartJob *job, const SnClock *clock, double until) {
  const int n = job->init && job->done == 0 ? job->starts : job->count;
  while (h->prepared < n)
    if (!prepare_start(h, job, clock, until) || is_late(clock, until)) return false;
  return true;
}

// Makes the gradient of a start, some knots at a time, until `until`. False when there are more.
static bool make_gradient(SnCpuMultistart *h, SnMultistartStart *s, const SnClock *clock, double until) {
  const int knots = h->multistart.grid.knots;
  while (h->at < knots) {
    const SnPart part = next_part(h, 0, KNOTS, knots);
    sn_multistart_gradient(h->m, &h->lane, &h->multistart, s, part);
    h->at = part.to;
    if (h->at < knots && is_late(clock, until)) return false;
  }
  return true;
}

// Takes value and gradient of the next start, which are done, until `until`. False when there is more of it.
static bool evaluate_start(SnCpuMultistart *h, SnMultistartJob *job, const SnClock *clock, double until) {
  const SnGradient *g = &h->item[h->evaluated];
  SnMultistartStart *s = &h->start[h->evaluated];
  if (g->status == SN_GRADIENT_DONE && !make_gradient(h, s, clock, until)) return false;
  for (int k = 0; k < h->cost->nterm; ++k) s->term[k] = (sn_real)g->term[k];
  sn_multistart_take(h->m, &h->lane, &h->multistart, s, (int)g->status, (sn_real)g->cost);
  job->warn |= g->warn;
  h->at = 0;
  h->evaluated++;
  return true;
}

static bool may_evaluate(const SnCpuMultistart *h) {
  if (h->evaluated >= h->batch.count) return false;
  const SnGradientStatus status = h->item[h->evaluated].status;
  return status != SN_GRADIENT_PENDING && status != SN_GRADIENT_ROLLED;
}

// Whether the iteration under way counts as it is, without a gradient.
static bool counts_rolled(const SnMultistartJob *job) { return job->rolled && job->measured && !job->next; }

// Makes the gradients of the starts, until `until`. The only start's rollout comes first, with a pause behind it.
static bool make_gradients(SnCpuMultistart *h, SnMultistartJob *job, SnCpuGradients *gradients, void *context,
                           const SnClock *clock, double until) {
  SnGradient *only = job->count == 1 ? h->item : NULL;
  if (only && only->status == SN_GRADIENT_PENDING) {
    h->batch.forward = true;
    if (!gradients(context, &h->batch, clock, until)) return false;
    job->rolled = only->status == SN_GRADIENT_ROLLED;
    h->batch.forward = false;
    if (!job->rolled) return true;
    if (until < (double)INFINITY) return false;
  }
  return gradients(context, &h->batch, clock, until);
}

// Takes starts that are done, in their order, a part of one at least, until `until`. False when it is reached.
static bool evaluate(SnCpuMultistart *h, SnMultistartJob *job, const SnClock *clock, double until) {
  while (may_evaluate(h))
    if (!evaluate_start(h, job, clock, until) || is_late(clock, until)) return false;
  return true;
}

// The starts that were evaluated count, and the best of them is selected.
static void end_iteration(SnCpuMultistart *h, SnMultistartJob *job) {
  const int nterm = h->cost->nterm;
  const bool first = !h->multistart.measured;
  sn_multistart_select_best(h->m, h->cost->nterm, &h->lane, &h->multistart, h->start, h->evaluated);
  sn_multistart_advance(h->m, &h->lane, &h->multistart, h->start);
  if (first) job->cost_before = (double)h->multistart.cost_before;
  job->best_cost = (double)h->multistart.best_cost;
  job->gradient_norm = (double)h->multistart.gradient_norm;
  job->best_start = h->multistart.best_start;
  for (int k = 0; k < nterm; ++k) job->best_term[k] = (double)h->best_term[k];
  job->measured = true;
  job->used = h->evaluated;
  job->rolled = false;
  ++job->done;
  h->under_way = false;
}

bool sn_cpu_multistart_run(SnCpuMultistart *h, SnMultistartJob *job, SnCpuGradients *gradients, void *context,
                           const SnClock *clock, double until) {
  if (!h->begun) begin_job(h, job);
  while (job->done < job->iterations) {
    if (!h->under_way) begin_iteration(h, job);
    if (!prepare(h, job, clock, until)) return false;
    while (h->evaluated < job->count) {
      if (!may_evaluate(h) && !make_gradients(h, job, gradients, context, clock, until)) return false;
      if (!evaluate(h, job, clock, until) && h->evaluated < job->count) return false;
    }
    end_iteration(h, job);
  }
  return true;
}

void sn_cpu_multistart_end(SnCpuMultistart *h, SnMultistartJob *job) {
  if (!h->begun) job->done = job->used = 0;
  if (h->under_way) {
    while (may_evaluate(h)) evaluate_start(h, job, NULL, (double)INFINITY);
    if (h->evaluated == 0 && counts_rolled(job)) evaluate_start(h, job, NULL, (double)INFINITY);
    if (h->evaluated > 0) end_iteration(h, job);
  }
  sn_cpu_multistart_abandon(h);
}

void sn_cpu_multistart_abandon(SnCpuMultistart *h) {
  if (h->under_way) copy_moments(h, &h->start[0].moments, &h->before);
  h->begun = h->under_way = false;
}

bool sn_cpu_multistart_moments(const SnCpuMultistart *h, SnMomentsView *moments) {
  if (h->capacity == 0 || h->begun) return false;
  const SnAdamMoments *from = &h->start[0].moments;
  *moments = (SnMomentsView){.size = (int)knots_of(h->m, h->max_step),
                             .first = from->first,
                             .second = from->second,
                             .power1 = (double)from->power1,
                             .power2 = (double)from->power2};
  return true;
}

bool sn_cpu_multistart_set_moments(SnCpuMultistart *h, const SnMomentsView *moments) {
  if (h->capacity == 0 || h->begun || moments->size != (int)knots_of(h->m, h->max_step)) return false;
  const SnAdamMoments from = {(sn_real *)(uintptr_t)moments->first, (sn_real *)(uintptr_t)moments->second,
                              (sn_real)moments->power1, (sn_real)moments->power2};
  copy_moments(h, &h->start[0].moments, &from);
  return true;
}
