// Planning by L-BFGS: unknowns are offsets to the warm start, one for each control of each step, in the units of
// control_range.h, within the ranges of the controls. The rule stands in optimize/lbfgs.c; here stands what is asked of
// a backend: a value and a gradient an iteration, by the same operation on every backend.
#include "planner/optimize/lbfgs.h"
#include "planner/planner_private.h"

struct SnLbfgsState {
  SnLbfgs rule;
  sn_real *base;        // (horizon, nu) controls that offsets are added to
  sn_real *ctrl, *bar;  // (horizon, nu) of the iteration under way; the bars end as the gradient of the offsets
  double *term;         // (nterm)
  SnGradient item;
  SnGradientBatch batch;
  bool fresh;  // it is new, or its rule is not that of the plan
  bool ended;  // there is nothing left to try
};

static SnCode lbfgs_check(const SnPlanner *p, SnError *err) {
  return sn_planner_check_gradients(p, "lbfgs", SN_BACKEND_GRADIENTS, err);
}

static void state_free(SnLbfgsState *s) {
  if (!s) return;
  sn_lbfgs_free(&s->rule);
  free(s->base);
  free(s->ctrl);
  free(s->bar);
  free(s->term);
  free(s);
}

static void lbfgs_free(SnPlanner *p) {
  state_free(p->iterations.lbfgs);
  p->iterations.lbfgs = NULL;
}

// Unknowns that there is room for: those of a horizon without a time grid. On a grid the last ones stay 0.
static size_t most_rows(const SnPlanner *p) { return (size_t)p->horizon * (size_t)p->m->nu; }

// A state with room for so many pairs.
static SnLbfgsState *state_create(const SnPlanner *p, int memory) {
  bool ok = true;
  SnLbfgsState *s = sn_planner_calloc(1, sizeof *s, &ok);
  if (!s) return NULL;
  s->base = sn_planner_calloc(most_rows(p), sizeof *s->base, &ok);
  s->ctrl = sn_planner_calloc(most_rows(p), sizeof *s->ctrl, &ok);
  s->bar = sn_planner_calloc(most_rows(p), sizeof *s->bar, &ok);
  s->term = sn_planner_calloc((size_t)p->in_force.cost->nterm, sizeof *s->term, &ok);
  if (ok && sn_lbfgs_create(&s->rule, (int)most_rows(p), memory)) return s;
  state_free(s);
  return NULL;
}

// Three tables, and those of the rule (optimize/lbfgs.c).
static double lbfgs_bytes(const SnPlanner *p, const SnSettings *s) {
  return sn_planner_ctrl_bytes(p, 9 + 2 * s->lbfgs_memory) + sn_planner_backend_bytes(p, p->horizon, 1, 0);
}

// Memory for more pairs begins anew: a plan under way goes on from its best controls.
static SnCode lbfgs_reserve(SnPlanner *p, const SnSettings *s, SnError *err) {
  SnLbfgsState *old = p->iterations.lbfgs;
  SnCode code = lbfgs_check(p, err);
  if (code == SN_OK) code = sn_backend_reserve_gradients(p->device.backend, p->device.model, 1, err);
  if (code != SN_OK || (old && old->rule.room >= s->lbfgs_memory)) return code;
  SnLbfgsState *made = state_create(p, s->lbfgs_memory);
  if (!made) return sn_fail(err, SN_ERR_MEMORY, "planner: lbfgs: out of memory for %d pairs", s->lbfgs_memory);
  made->fresh = true;
  state_free(old);
  p->iterations.lbfgs = made;
  return SN_OK;
}

// ---- offsets and controls ----

// An offset of 0 is allowed whatever the base is.
static void put_limits(const SnPlanner *p, SnLbfgsState *s) {
  const SnModel *m = p->m;
  for (size_t i = sn_planner_rows(p); i < most_rows(p); ++i) s->rule.lo[i] = s->rule.hi[i] = 0;
  for (size_t i = 0; i < sn_planner_rows(p); ++i) {
    const int k = (int)(i % (size_t)m->nu);
    const sn_real unit = sn_ctrl_unit(m, k), far = m->ctrl_limited[k] ? 0 : (sn_real)INFINITY;
    s->rule.lo[i] = -far;
    s->rule.hi[i] = far;
    if (!m->ctrl_limited[k] || !(unit > 0)) continue;
    s->rule.lo[i] = sn_min((m->ctrl_range[2 * k] - s->base[i]) / unit, 0);
    s->rule.hi[i] = sn_max((m->ctrl_range[2 * k + 1] - s->base[i]) / unit, 0);
  }
}

// Controls of the rule's trial; where offsets are 0 the base as it is.
static void put_controls(const SnPlanner *p, SnLbfgsState *s) {
  for (size_t i = 0; i < sn_planner_rows(p); ++i) {
    const int k = (int)(i % (size_t)p->m->nu);
    const sn_real offset = s->rule.trial[i];
    s->ctrl[i] = offset == 0 ? s->base[i] : sn_ctrl_clip(p->m, k, s->base[i] + sn_ctrl_unit(p->m, k) * offset);
  }
}

// ---- iterations ----

static void begin_anew(SnPlanner *p, SnLbfgsState *s) {
  const SnSettings *x = &p->in_force.settings;
  const SnLbfgsRule rule = {.memory = x->lbfgs_memory,
                            .trials = x->lbfgs_trials,
                            .first = (sn_real)x->lbfgs_first,
                            .longest = (sn_real)x->lbfgs_longest};
  s->fresh = s->ended = false;
  sn_planner_copy(s->base, sn_planner_best(p), sn_planner_rows(p));
  put_limits(p, s);
  sn_lbfgs_begin(&s->rule, &rule);
}

static bool same_rule(const SnLbfgsState *s, const SnSettings *x) {
  const SnLbfgsRule *r = &s->rule.rule;
  return r->memory == x->lbfgs_memory && r->trials == x->lbfgs_trials && r->first == (sn_real)x->lbfgs_first &&
         r->longest == (sn_real)x->lbfgs_longest;
}

// What is sought, or how it is measured, has changed: the rule begins at the best controls so far.
static void lbfgs_begin(SnPlanner *p, int most, int iterations) {
  (void)most;
  (void)iterations;  // one after the other: each looks at the one before
  SnLbfgsState *s = p->iterations.lbfgs;
  const SnSettings *x = &p->in_force.settings;
  if (p->iterations.next == 0 || !p->iterations.measured || s->fresh || !same_rule(s, x)) begin_anew(p, s);
  put_controls(p, s);
  s->item = (SnGradient){.state = sn_planner_iteration_state(p, &p->progress.start),
                         .ctrl = s->ctrl,
                         .target = sn_planner_grid_target(p),
                         .nstep = p->grid.steps,
                         .max_velocity = x->max_velocity,
                         .status = SN_GRADIENT_PENDING,
                         .term = s->term,
                         .ctrl_bar = s->bar};
  s->batch = (SnGradientBatch){
      .settings = {.method = (SnGradientMethod)x->gradient, .cfd = p->cfd.backward}, .item = &s->item, .count = 1};
}

static SnWorked lbfgs_work(SnPlanner *p, double stop) {
  SnLbfgsState *s = p->iterations.lbfgs;
  if (s->ended) return SN_WORKED_PART;
  return sn_backend_gradients(p->device.backend, p->device.model, &s->batch, &p->def.clock, stop) ? SN_WORKED_ALL
                                                                                                  : SN_WORKED_PAUSED;
}

// The gradient of the offsets, in place; its length.
static double put_gradient(const SnPlanner *p, SnLbfgsState *s) {
  double sum = 0;
  for (size_t i = sn_planner_rows(p); i < most_rows(p); ++i) s->bar[i] = 0;
  for (size_t i = 0; i < sn_planner_rows(p); ++i) {
    s->bar[i] *= sn_ctrl_unit(p->m, (int)(i % (size_t)p->m->nu));
    sum += (double)s->bar[i] * (double)s->bar[i];
  }
  return sqrt(sum);
}

// Takes the iteration's controls where they are better than the best so far, or the first that were measured.
static void take_result(SnPlanner *p, const SnLbfgsState *s, double norm) {
  const bool first = !p->iterations.measured;
  if (first) {
    p->result.cost_before = s->item.cost;
    p->result.cost_now = p->iterations.state_cost;
    p->iterations.measured = true;
  }
  if (!first && !(s->item.cost < p->result.best_cost)) return;
  p->result.best_cost = s->item.cost;
  p->result.gradient_norm = norm;
  memcpy(p->result.best_term, s->term, sizeof *s->term * (size_t)p->in_force.cost->nterm);
  sn_planner_copy(sn_planner_best(p), s->ctrl, sn_planner_rows(p));
}

// Controls that diverge before any that do not: half the way to the task's initial plan, and on from there.
static void step_back(const SnPlanner *p, SnLbfgsState *s) {
  for (size_t i = 0; i < sn_planner_rows(p); ++i)
    s->base[i] += SN_R(0.5) * (p->initial.ctrl[i % (size_t)p->m->nu] - s->base[i]);
  put_limits(p, s);
}

static void lbfgs_end(SnPlanner *p) {
  SnLbfgsState *s = p->iterations.lbfgs;
  if (s->item.status == SN_GRADIENT_PENDING) {
    if (!s->ended) sn_backend_abandon(p->device.backend, p->device.model);
    return;
  }
  const bool known = s->item.status == SN_GRADIENT_DONE;
  const double norm = known ? put_gradient(p, s) : (double)NAN;
  take_result(p, s, norm);
  if (s->item.status == SN_GRADIENT_DIVERGED && !s->rule.begun)
    step_back(p, s);
  else
    s->ended = !sn_lbfgs_take(&s->rule, (sn_real)s->item.cost, known ? s->bar : NULL);
  p->result.warn |= s->item.warn;
  sn_planner_mark_version(p);
  p->result.iterations = ++p->iterations.next;
  p->result.candidates = 1;
}

static bool lbfgs_whole(const SnPlanner *p) {
  (void)p;
  return true;
}

const SnOptimizer sn_optimizer_lbfgs = {.kind = SN_PLANNER_LBFGS,
                                        .descends = true,
                                        .least = 2,  // the first one measures the warm start
                                        .check = lbfgs_check,
                                        .reserve = lbfgs_reserve,
                                        .bytes = lbfgs_bytes,
                                        .begin = lbfgs_begin,
                                        .work = lbfgs_work,
                                        .whole = lbfgs_whole,
                                        .end = lbfgs_end,
                                        .free = lbfgs_free};
