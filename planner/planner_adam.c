// Planning by gradients. A plan begins with one start or several: the warm start, and copies of it with the noise of
// sampling. An iteration takes value and gradient of every start's controls; between two iterations Adam moves them
// (adam.h). So n iterations try n - 1 moves, and the first one measures the warm start. The best controls that were
// measured, of all starts and iterations, are the plan.
//
// A start whose rollout diverged goes half the way back to its best controls, as often as it takes, and forgets the
// mean direction that led it out; one that has no finite controls yet goes half the way to the task's initial plan. A
// gradient that left the range of numbers counts as 0.
#include "planner/adam.h"
#include "planner/planner_private.h"

// One start of a plan.
typedef struct Start {
  sn_real *base;           // (horizon, nu) controls that offsets are added to
  sn_real *offset, *best;  // (knots, nu) of the iterate; of the best one
  sn_real *gradient;       // (knots, nu) at the iterate, normalised, not limited
  SnAdamMoments moments;
  sn_real *ctrl, *ctrl_bar;  // (horizon, nu) of the iterate
  double *term;              // (nterm)
  double best_cost;          // infinity: none yet
} Start;

struct SnAdamState {
  int room;          // starts that there is room for
  Start *start;      // (room)
  SnGradient *item;  // (room)
  SnGradientBatch batch;
  int used;         // starts of this plan
  SnAdamGrid grid;  // of this plan
  int knots;        // settings that the grid was made from
  int interpolation, starts;
  int moved;   // steps that the plan was shifted by since
  bool known;  // moments and grid are those of the plan before
  SnLaneShared shared;
  SnLane lane;
};

// Rows of knots that any grid can have.
static size_t most_knots(const SnPlanner *p) { return (size_t)p->horizon + 2; }

static void free_start(Start *s) {
  sn_real *const all[] = {s->base,          s->offset,         s->best, s->gradient,
                          s->moments.first, s->moments.second, s->ctrl, s->ctrl_bar};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) free(all[i]);
  free(s->term);
}

static bool make_start(const SnPlanner *p, Start *s) {
  const size_t rows = (size_t)p->horizon * (size_t)p->m->nu, knots = most_knots(p) * (size_t)p->m->nu;
  bool ok = true;
  memset(s, 0, sizeof *s);
  s->base = sn_planner_room(rows, sizeof(sn_real), &ok);
  s->ctrl = sn_planner_room(rows, sizeof(sn_real), &ok);
  s->ctrl_bar = sn_planner_room(rows, sizeof(sn_real), &ok);
  s->offset = sn_planner_room(knots, sizeof(sn_real), &ok);
  s->best = sn_planner_room(knots, sizeof(sn_real), &ok);
  s->gradient = sn_planner_room(knots, sizeof(sn_real), &ok);
  s->moments.first = sn_planner_room(knots, sizeof(sn_real), &ok);
  s->moments.second = sn_planner_room(knots, sizeof(sn_real), &ok);
  s->term = sn_planner_room((size_t)p->cost->nterm, sizeof(double), &ok);
  if (!ok) free_start(s);
  return ok;
}

// Starts [a->room, n); those that there are keep their place.
static bool grow(SnPlanner *p, SnAdamState *a, int n) {
  bool ok = true;
  Start *start = sn_planner_room((size_t)n, sizeof *start, &ok);
  SnGradient *item = sn_planner_room((size_t)n, sizeof *item, &ok);
  int made = a->room;
  while (ok && made < n && (ok = make_start(p, &start[made]))) ++made;
  ok = ok && p->def.backend->need_gradients(p->def.backend, p->device, n, NULL) == SN_OK;
  if (!ok) {
    for (int i = a->room; i < made; ++i) free_start(&start[i]);
    free(start);
    free(item);
    return false;
  }
  if (a->room > 0) memcpy(start, a->start, sizeof *start * (size_t)a->room);
  free(a->start);
  free(a->item);
  a->start = start;
  a->item = item;
  a->room = n;
  return true;
}

static bool adam_room(SnPlanner *p, const SnSettings *s) {
  bool ok = p->def.backend->need_gradients && p->def.backend->gradients;
  if (!ok) return false;
  if (!p->adam) {
    p->adam = sn_planner_room(1, sizeof *p->adam, &ok);
    if (!ok) return false;
    p->adam->lane = (SnLane){.n = 1, .shared = &p->adam->shared};
  }
  return s->adam_starts <= p->adam->room || grow(p, p->adam, s->adam_starts);
}

void sn_planner_adam_free(SnPlanner *p) {
  if (!p->adam) return;
  for (int i = 0; i < p->adam->room; ++i) free_start(&p->adam->start[i]);
  free(p->adam->start);
  free(p->adam->item);
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

// Drops the first `left` knots of one moment; new ones are 0.
static void shift_moment(const SnPlanner *p, sn_real *moment, int left) {
  const size_t nu = (size_t)p->m->nu, most = most_knots(p);
  const size_t gone = (size_t)left < most ? (size_t)left : most;
  memmove(moment, moment + gone * nu, sizeof *moment * (most - gone) * nu);
  memset(moment + (most - gone) * nu, 0, sizeof *moment * gone * nu);
}

static void clear_moments(const SnPlanner *p, SnAdamMoments *x) {
  const size_t n = most_knots(p) * (size_t)p->m->nu;
  memset(x->first, 0, sizeof *x->first * n);
  memset(x->second, 0, sizeof *x->second * n);
  x->power1 = x->power2 = 1;
}

// Starts from the nominal. Within a plan (what is sought or how it is judged has changed) moments are fresh.
static void open_starts(SnPlanner *p) {
  SnAdamState *a = p->adam;
  const bool keep = p->settings.adam_moments == SN_MOMENTS_KEPT && a->known && same_structure(p) && p->iteration == 0;
  const size_t rows = (size_t)p->horizon * (size_t)p->m->nu, knots = most_knots(p) * (size_t)p->m->nu;
  const int left = make_grid(p);
  const SnNoise noise = sn_planner_noise(p);
  a->used = a->starts < a->room ? a->starts : a->room;
  for (int i = 0; i < a->used; ++i) {
    Start *s = &a->start[i];
    if (i == 0)
      sn_planner_copy(s->base, p->nominal, rows);
    else
      sn_noise_candidate(p->m, &noise, i, p->nominal, p->horizon, p->scratch, s->base);
    memset(s->offset, 0, sizeof *s->offset * knots);
    memset(s->best, 0, sizeof *s->best * knots);
    s->best_cost = INFINITY;
    if (i == 0 && keep) {
      shift_moment(p, s->moments.first, left);
      shift_moment(p, s->moments.second, left);
    } else {
      clear_moments(p, &s->moments);
    }
  }
  a->known = true;
}

// ---- iterations ----

static SnAdamRule rule_of(const SnSettings *s) {
  return (SnAdamRule){.rate = (sn_real)s->adam_rate,
                      .beta1 = (sn_real)s->adam_beta1,
                      .beta2 = (sn_real)s->adam_beta2,
                      .epsilon = (sn_real)s->adam_epsilon,
                      .clip = s->adam_clip,
                      .clip_norm = (sn_real)s->adam_clip_norm};
}

// Half the way back from controls that diverged.
static void step_back(SnPlanner *p, Start *s) {
  const SnModel *m = p->m;
  const int n = p->adam->grid.knots * m->nu;
  for (int i = 0; i < n; ++i) s->moments.first[i] = 0;
  if (isfinite(s->best_cost)) {
    for (int i = 0; i < n; ++i) s->offset[i] = s->best[i] + SN_R(0.5) * (s->offset[i] - s->best[i]);
    return;
  }
  for (int t = 0; t < p->horizon; ++t)
    for (int k = 0; k < m->nu; ++k) {
      sn_real *u = s->base + t * m->nu + k;
      *u += SN_R(0.5) * (p->initial_ctrl[k] - *u);
    }
}

// From the iterate that was measured to the next.
static void move(SnPlanner *p, int i) {
  SnAdamState *a = p->adam;
  Start *s = &a->start[i];
  const SnAdamRule rule = rule_of(&p->settings);
  if (a->item[i].status == SN_GRADIENT_DIVERGED) {
    step_back(p, s);
    return;
  }
  sn_adam_clip(p->m, &a->grid, &rule, &a->lane, s->gradient);
  sn_adam_step(p->m, &a->grid, &rule, &a->lane, s->gradient, &s->moments, s->offset);
  sn_adam_project(p->m, &a->grid, &a->lane, s->base, s->offset);
}

static void adam_begin(SnPlanner *p, int most) {
  SnAdamState *a = p->adam;
  const bool anew = p->iteration == 0 || !p->measured || !same_structure(p);
  if (anew) open_starts(p);
  for (int i = 0; i < a->used; ++i) {
    Start *s = &a->start[i];
    if (!anew) move(p, i);
    sn_adam_controls(p->m, &a->grid, &a->lane, s->base, s->offset, s->ctrl);
    a->item[i] = (SnGradient){.start = sn_planner_start(p, &p->start),
                              .ctrl = s->ctrl,
                              .target = p->target,
                              .nstep = p->horizon,
                              .max_velocity = p->settings.max_velocity,
                              .continues = !anew,
                              .status = SN_GRADIENT_PENDING,
                              .term = s->term,
                              .ctrl_bar = s->ctrl_bar};
  }
  a->batch = (SnGradientBatch){.settings = {.method = (SnGradientMethod)p->settings.gradient, .soft = p->backward},
                               .item = a->item,
                               .count = most < a->used ? most : a->used};
}

static bool adam_work(SnPlanner *p, double stop) {
  return p->def.backend->gradients(p->def.backend, p->device, &p->adam->batch, &p->def.clock, stop);
}

// The iterate of a start that was measured: its gradient, whether it is the start's best. Returns the gradient's norm.
static double judge_start(SnPlanner *p, int i) {
  SnAdamState *a = p->adam;
  Start *s = &a->start[i];
  const int n = a->grid.knots * p->m->nu;
  sn_real norm = 0;
  if (a->item[i].status == SN_GRADIENT_DONE) {
    sn_adam_gradient(p->m, &a->grid, &a->lane, s->base, s->offset, s->ctrl_bar, s->gradient);
    norm = sn_adam_norm(&a->lane, s->gradient, n);
  }
  if (a->item[i].status != SN_GRADIENT_DONE || !isfinite((double)norm)) {
    memset(s->gradient, 0, sizeof *s->gradient * (size_t)n);
    norm = (sn_real)NAN;
  }
  if (a->item[i].cost < s->best_cost) {
    s->best_cost = a->item[i].cost;
    sn_planner_copy(s->best, s->offset, (size_t)n);
  }
  return (double)norm;
}

// Starts that are complete count, in their order up to the first that is not.
static void adam_end(SnPlanner *p) {
  SnAdamState *a = p->adam;
  int used = 0;
  while (used < a->batch.count && a->item[used].status != SN_GRADIENT_PENDING) ++used;
  if (used == 0) return;
  for (int i = 0; i < used; ++i) {
    const double norm = judge_start(p, i), cost = a->item[i].cost;
    const bool first = i == 0 && !p->measured;
    if (first) {
      p->cost_before = cost;
      p->cost_now = p->judged;
      p->measured = true;
    }
    if (!first && !(cost < p->best_cost)) continue;
    p->best_cost = cost;
    p->gradient_norm = norm;
    memcpy(p->best_term, a->start[i].term, sizeof(double) * (size_t)p->cost->nterm);
    if (!first) sn_planner_copy(p->nominal, a->start[i].ctrl, (size_t)p->horizon * (size_t)p->m->nu);
  }
  p->used = p->trying;
  p->iterations = p->iteration + 1;
  p->candidates = used;
}

const SnImprover sn_improve_adam = {adam_room, adam_iterations, adam_begin, adam_work, adam_end};
