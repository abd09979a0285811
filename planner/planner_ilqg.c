// Planning by iLQG (planner/optimize/ilqg.h). An iteration has four stages, each of which pauses by the clock:
//
//   measure   the best controls so far are rolled out, where their cost is not known
//   expand    Jacobians of the steps and models of the cost along that rollout
//   back      the pass from the last step to the first: a change of the controls k and a feedback K. Where it fails,
//             it begins anew with more regularisation
//   search    rollouts of u + alpha k + K (x (-) x of before) for several alpha at once; the best one is the plan
//
// The candidates of an iteration are the controls so far (0) and one for each alpha. Those up to the first that was not
// finished count. What an iteration leaves for later ones takes effect when it counts, so the numbers of iterations and
// candidates reproduce a plan. Controls after the search are those that were applied, the feedback included.
#include "planner/optimize/ilqg.h"

#include <stdio.h>
#include <stdlib.h>

#include "planner/base/control_range.h"
#include "planner/planner_private.h"

// Memory that one planner may take [bytes], as for starts of Adam: refused beyond, before the machine runs out.
static const double most_ilqg_memory = 1 << 30;

// The factor from one alpha to the next, from 1 on.
static const double alpha_factor = 0.4;

typedef enum IlqgStage { ILQG_MEASURE, ILQG_EXPAND, ILQG_BACK, ILQG_SEARCH, ILQG_DONE } IlqgStage;

// Candidates behind number 0, one for each alpha, and the memory of each array.
typedef struct IlqgCandidates {
  int capacity;         // candidates that the arrays hold, number 0 included
  double *cost;         // (capacity)
  double *term;         // (capacity, nterm)
  unsigned char *done;  // (capacity)
  int *warn;            // (capacity)
  sn_real *ctrl;        // (capacity, horizon, nu) before feedback
  sn_real *applied;     // (capacity, horizon, nu)
  sn_real *difference;  // (capacity, n) scratch of the feedback
  sn_real *states;      // of all paths
  SnTrajectory *path;   // (capacity) that of number 0 belongs to the best controls so far
  SnFeedback *feedback;
} IlqgCandidates;

struct SnIlqgState {
  SnIlqg *pass;
  sn_number *A, *B;    // (horizon, n, n), (horizon, n, nu)
  SnExpansion cost;    // models of the cost of all states
  sn_number *k, *K;    // (horizon, nu), (horizon, nu, n) of the pass under way
  sn_number *gain;     // K of the latest iteration that counts and had a pass, on the base step
  sn_number *lo, *hi;  // (nu) limits of a change
  sn_number *weight;   // (nu) of each control in the regularisation
  IlqgCandidates c;
  bool has_gain;
  SnIlqgMu mu, trial;  // regularisation that is in force, and that of the pass under way
  bool expanded;       // A, B and cost belong to the best controls so far
  SnCfdSettings cfd;   // contacts from distance in A and B
  // The iteration under way.
  IlqgStage stage;
  int count;     // its candidates, number 0 included
  bool given;    // the backend knows the rollout that it shall expand
  bool passing;  // the pass has begun
  int t;         // next step of the pass, going down
  bool passed;   // it is through
  SnState state;
  SnRollout rolled;
  SnGradient item;
  SnGradientStatus status;
  SnLinearization linearization;
  SnBatch batch;
};

// ---- memory ----

static size_t tangent_size(const SnPlanner *p) { return (size_t)sn_tangent_size(p->m); }

// Numbers of a path: time, qpos, qvel, act, qacc of horizon + 1 states.
static size_t path_size(const SnPlanner *p) {
  return ((size_t)p->horizon + 1) * (size_t)(1 + p->m->nq + 2 * p->m->nv + p->m->na);
}

static SnTrajectory path_at(const SnPlanner *p, sn_real *at) {
  const size_t rows = (size_t)p->horizon + 1, nq = (size_t)p->m->nq, nv = (size_t)p->m->nv;
  SnTrajectory path = {.time = at};
  path.qpos = path.time + rows;
  path.qvel = path.qpos + rows * nq;
  path.qacc = path.qvel + rows * nv;
  path.act = path.qacc + rows * nv;
  return path;
}

static double ilqg_bytes(const SnPlanner *p, int candidates) {
  const double n = sn_tangent_size(p->m), nu = p->m->nu, rows = p->horizon + 1;
  const double each = 2 * n * n + 4 * n * nu + nu * nu + n + 4 * nu;
  const double candidate = (double)path_size(p) + 2 * rows * nu;
  return (rows * each + candidates * candidate) * (double)sizeof(sn_real);
}

static void free_candidates(IlqgCandidates *c) {
  void *const arrays[] = {c->cost,    c->term,       c->done,   c->warn, c->ctrl,
                          c->applied, c->difference, c->states, c->path, c->feedback};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i) free(arrays[i]);
}

static void ilqg_free(SnPlanner *p) {
  SnIlqgState *x = p->iterations.ilqg;
  if (!x) return;
  void *const arrays[] = {
      x->A, x->B, x->cost.lx, x->cost.lxx, x->cost.lu, x->cost.lux, x->cost.luu, x->cost.before_lu, x->cost.before_luu,
      x->k, x->K, x->gain,    x->lo,       x->hi,      x->weight};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i) free(arrays[i]);
  free_candidates(&x->c);
  sn_ilqg_free(x->pass);
  free(x);
  p->iterations.ilqg = NULL;
}

// Positions of hinges and slides follow their velocities where the integrator makes q + h v' of them.
static void make_ties(const SnModel *m, int *tie) {
  for (int i = 0; i < sn_tangent_size(m); ++i) tie[i] = -1;
  if (m->opt.integrator == SN_INT_RK4) return;
  for (int j = 0; j < m->njnt; ++j)
    if (m->jnt_type[j] == SN_JNT_HINGE || m->jnt_type[j] == SN_JNT_SLIDE)
      tie[m->jnt_dofadr[j]] = m->nv + m->jnt_dofadr[j];
}

static SnCode make_state_arrays(SnPlanner *p, SnError *err) {
  const size_t n = tangent_size(p), nu = (size_t)p->m->nu, steps = (size_t)p->horizon, rows = steps + 1;
  bool ok = true;
  SnIlqgState *x = p->iterations.ilqg = sn_planner_calloc(1, sizeof *x, &ok);
  int *tie = sn_planner_calloc(n, sizeof *tie, &ok);
  if (ok) {
    make_ties(p->m, tie);
    x->pass = sn_ilqg_create((int)n, (int)nu, tie, err);
    x->A = sn_planner_calloc(steps * n * n, sizeof *x->A, &ok);
    x->B = sn_planner_calloc(steps * n * nu, sizeof *x->B, &ok);
    x->cost.lx = sn_planner_calloc(rows * n, sizeof *x->A, &ok);
    x->cost.lxx = sn_planner_calloc(rows * n * n, sizeof *x->A, &ok);
    x->cost.lu = sn_planner_calloc(steps * nu, sizeof *x->A, &ok);
    x->cost.lux = sn_planner_calloc(steps * nu * n, sizeof *x->A, &ok);
    x->cost.luu = sn_planner_calloc(steps * nu * nu, sizeof *x->A, &ok);
    x->cost.before_lu = sn_planner_calloc(steps * nu, sizeof *x->A, &ok);
    x->cost.before_luu = sn_planner_calloc(steps * nu, sizeof *x->A, &ok);
    x->k = sn_planner_calloc(steps * nu, sizeof *x->k, &ok);
    x->K = sn_planner_calloc(steps * nu * n, sizeof *x->K, &ok);
    x->gain = sn_planner_calloc(steps * nu * n, sizeof *x->gain, &ok);
    x->lo = sn_planner_calloc(nu, sizeof *x->lo, &ok);
    x->hi = sn_planner_calloc(nu, sizeof *x->hi, &ok);
    x->weight = sn_planner_calloc(nu, sizeof *x->weight, &ok);
    ok = ok && x->pass;
  }
  free(tie);
  if (ok) return SN_OK;
  ilqg_free(p);
  return sn_fail(err, SN_ERR_MEMORY, "planner: no memory for ilqg");
}

// Capacity for so many candidates; what is known of number 0 stays.
static SnCode reserve_candidates(SnPlanner *p, int count, SnError *err) {
  IlqgCandidates *old = &p->iterations.ilqg->c, c = {.capacity = count};
  const size_t most = (size_t)count, row = (size_t)p->horizon * (size_t)p->m->nu, path = path_size(p);
  bool ok = true;
  if (count <= old->capacity) return SN_OK;
  c.cost = sn_planner_calloc(most, sizeof *c.cost, &ok);
  c.term = sn_planner_calloc(most * (size_t)p->in_force.cost->nterm, sizeof *c.term, &ok);
  c.done = sn_planner_calloc(most, sizeof *c.done, &ok);
  c.warn = sn_planner_calloc(most, sizeof *c.warn, &ok);
  c.ctrl = sn_planner_calloc(most * row, sizeof *c.ctrl, &ok);
  c.applied = sn_planner_calloc(most * row, sizeof *c.applied, &ok);
  c.difference = sn_planner_calloc(most * tangent_size(p), sizeof *c.difference, &ok);
  c.states = sn_planner_calloc(most * path, sizeof *c.states, &ok);
  c.path = sn_planner_calloc(most, sizeof *c.path, &ok);
  c.feedback = sn_planner_calloc(most, sizeof *c.feedback, &ok);
  if (!ok) {
    free_candidates(&c);
    return sn_fail(err, SN_ERR_MEMORY, "planner: no memory for %d candidates of ilqg", count);
  }
  if (old->capacity > 0) sn_planner_copy(c.states, old->states, path);
  for (int i = 0; i < count; ++i) c.path[i] = path_at(p, c.states + (size_t)i * path);
  free_candidates(old);
  *old = c;
  return SN_OK;
}

static SnCode ilqg_check(const SnPlanner *p, SnError *err) {
  const SnBackend *b = p->device.backend;
  if (sn_backend_has(b, SN_BACKEND_FEEDBACK)) return SN_OK;
  return sn_fail(err, SN_ERR_UNSUPPORTED,
                 "planner: ilqg needs Jacobians and rollouts with feedback, which the backend '%s' does not make",
                 sn_backend_name(b));
}

static double optimizer_bytes(const SnPlanner *p, const SnSettings *s) {
  return ilqg_bytes(p, s->ilqg_alphas + 1) + sn_planner_backend_bytes(p, p->horizon, 1, 0);
}

static SnCode ilqg_reserve(SnPlanner *p, const SnSettings *s, SnError *err) {
  SnBackend *b = p->device.backend;
  const int count = s->ilqg_alphas + 1;
  const double bytes = ilqg_bytes(p, count), mib = 1 << 20;
  SnCode code = ilqg_check(p, err);
  if (code != SN_OK) return code;
  if (bytes > most_ilqg_memory)
    return sn_fail(err, SN_ERR_LIMIT, "ilqg with %d alphas over %d steps takes %.0f MiB, allowed is %.0f", count - 1,
                   p->horizon, bytes / mib, most_ilqg_memory / mib);
  if (!p->iterations.ilqg) code = make_state_arrays(p, err);
  if (code == SN_OK) code = reserve_candidates(p, count, err);
  if (code == SN_OK) code = sn_backend_reserve_gradients(b, p->device.model, 1, err);
  return code == SN_OK ? sn_backend_reserve_batches(b, p->device.model, count, err) : code;
}

// ---- stages ----

// Rollouts of candidates [first, first + count).
static SnBatch batch_of(SnPlanner *p, int first, int count) {
  IlqgCandidates *c = &p->iterations.ilqg->c;
  const size_t at = (size_t)first, row = sn_planner_rows(p);
  return (SnBatch){.state = &p->iterations.ilqg->state,
                   .nstate = 1,
                   .ctrl = c->ctrl + at * row,
                   .nctrl = count,
                   .target = sn_planner_grid_target(p),
                   .ntable = 1,
                   .feedback = first > 0 ? c->feedback + first : NULL,
                   .nstep = p->grid.steps,
                   .first = first,
                   .count = count,
                   .max_velocity = p->in_force.settings.max_velocity,
                   .cost = c->cost + first,
                   .term = c->term + at * (size_t)p->in_force.cost->nterm,
                   .done = c->done + first,
                   .warn = c->warn + first,
                   .out = c->path + first};
}

// There is no way on in this iteration: the candidates behind number 0 count as tried.
static void give_up(SnIlqgState *x) {
  for (int i = 1; i < x->count; ++i) {
    x->c.cost[i] = (double)INFINITY;
    x->c.done[i] = 1;
  }
  x->stage = ILQG_DONE;
}

static bool measure(SnPlanner *p, double stop) {
  SnIlqgState *x = p->iterations.ilqg;
  if (!sn_backend_rollouts(p->device.backend, p->device.model, &x->batch, &p->def.clock, stop)) return false;
  if (!isfinite(x->c.cost[0]))
    give_up(x);
  else
    x->stage = x->count > 1 ? ILQG_EXPAND : ILQG_DONE;
  return true;
}

// Shows the backend the rollout of the best controls so far, without a gradient of it.
static void give_rollout(SnPlanner *p) {
  SnIlqgState *x = p->iterations.ilqg;
  x->rolled = sn_rollout_make(p->in_force.cost, &x->state, sn_planner_best(p), sn_planner_grid_target(p), p->grid.steps,
                              p->in_force.settings.max_velocity, &x->c.path[0]);
  x->rolled.status = SN_ROLLOUT_DONE;
  x->rolled.t = p->grid.steps;
  x->rolled.total = (sn_real)x->c.cost[0];
  x->item = (SnGradient){.state = x->state,
                         .ctrl = sn_planner_best(p),
                         .target = sn_planner_grid_target(p),
                         .nstep = p->grid.steps,
                         .max_velocity = p->in_force.settings.max_velocity,
                         .rolled = &x->rolled,
                         .status = SN_GRADIENT_PENDING};
  SnGradientBatch batch = {.settings = {.cfd = p->cfd.backward}, .item = &x->item, .count = 1, .forward = true};
  sn_backend_gradients(p->device.backend, p->device.model, &batch, &p->def.clock, (double)INFINITY);
  x->cfd = p->cfd.backward;
  x->linearization = (SnLinearization){.count = 1,
                                       .nstep = p->grid.steps,
                                       .cfd = p->cfd.backward,
                                       .A = x->A,
                                       .B = x->B,
                                       .cost = &x->cost,
                                       .status = &x->status};
  x->given = true;
}

static bool expand(SnPlanner *p, double stop) {
  SnIlqgState *x = p->iterations.ilqg;
  if (!x->given) give_rollout(p);
  if (!sn_backend_linearize(p->device.backend, p->device.model, &x->linearization, &p->def.clock, stop)) return false;
  x->expanded = x->status == SN_GRADIENT_DONE;
  x->stage = ILQG_BACK;
  if (!x->expanded) give_up(x);
  return true;
}

static void make_limits(SnPlanner *p, const sn_real *ctrl) {
  const SnModel *m = p->m;
  SnIlqgState *x = p->iterations.ilqg;
  for (int i = 0; i < m->nu; ++i) {
    const bool limited = m->ctrl_limited[i];
    x->lo[i] = limited ? m->ctrl_range[2 * i] - ctrl[i] : (sn_number)-INFINITY;
    x->hi[i] = limited ? m->ctrl_range[2 * i + 1] - ctrl[i] : (sn_number)INFINITY;
  }
}

// One step of the pass. The regularisation is counted as a weight of changes in the cost, which is a mean over steps.
static bool step_back(SnPlanner *p, size_t t) {
  SnIlqgState *x = p->iterations.ilqg;
  const size_t n = tangent_size(p), nu = (size_t)p->m->nu;
  make_limits(p, sn_planner_best(p) + t * nu);
  const int length = sn_grid_length(&p->grid.grid, (int)t);
  const SnIlqgStep step = {.A = x->A + t * n * n,
                           .B = x->B + t * n * nu,
                           .lx = x->cost.lx + t * n,
                           .lu = x->cost.lu + t * nu,
                           .lxx = x->cost.lxx + t * n * n,
                           .lux = x->cost.lux + t * nu * n,
                           .luu = x->cost.luu + t * nu * nu,
                           .lo = x->lo,
                           .hi = x->hi,
                           .weight = x->weight,
                           .mu = (sn_number)(length * x->trial.mu / p->horizon),
                           .duration = (sn_number)(length * p->h)};
  return sn_ilqg_step(x->pass, &step, x->k + t * nu, x->K + t * nu * n);
}

// Candidate i > 0: the controls so far and a part of the change, before feedback.
static void make_candidates(SnPlanner *p) {
  SnIlqgState *x = p->iterations.ilqg;
  const size_t row = sn_planner_rows(p), n = tangent_size(p);
  const SnTrajectory *path = &x->c.path[0];
  double alpha = 1;
  for (int i = 1; i < x->count; ++i, alpha *= alpha_factor) {
    sn_real *ctrl = x->c.ctrl + (size_t)i * row;
    for (size_t k = 0; k < row; ++k) ctrl[k] = sn_planner_best(p)[k] + (sn_real)alpha * x->k[k];
    x->c.feedback[i] = (SnFeedback){.qpos = path->qpos,
                                    .qvel = path->qvel,
                                    .act = path->act,
                                    .gain = x->K,
                                    .difference = x->c.difference + (size_t)i * n,
                                    .ctrl = x->c.applied + (size_t)i * row};
  }
  x->batch = batch_of(p, 1, x->count - 1);
}

static bool pass_back(SnPlanner *p, double stop) {
  SnIlqgState *x = p->iterations.ilqg;
  const size_t n = tangent_size(p), last = (size_t)p->grid.steps;
  for (;;) {
    if (!x->passing) {
      sn_ilqg_begin(x->pass, x->cost.lx + last * n, x->cost.lxx + last * n * n);
      x->t = p->grid.steps - 1;
      x->passing = true;
    }
    for (; x->t >= 0; --x->t) {
      if (stop < INFINITY && sn_planner_now(p) >= stop) return false;
      if (!step_back(p, (size_t)x->t)) break;
    }
    if (x->t < 0) break;
    x->passing = false;
    x->trial = sn_ilqg_more(x->trial);
    if (!sn_ilqg_beyond(x->trial)) continue;
    give_up(x);
    return true;
  }
  x->passed = true;
  make_candidates(p);
  x->stage = ILQG_SEARCH;
  return true;
}

static bool search(SnPlanner *p, double stop) {
  SnIlqgState *x = p->iterations.ilqg;
  if (!sn_backend_rollouts(p->device.backend, p->device.model, &x->batch, &p->def.clock, stop)) return false;
  x->stage = ILQG_DONE;
  return true;
}

// ---- iterations ----

static void ilqg_begin(SnPlanner *p, int most, int iterations) {
  (void)iterations;  // one after the other: the next one is about this one's winner
  SnIlqgState *x = p->iterations.ilqg;
  const SnSettings *s = &p->in_force.settings;
  const bool first = p->iterations.next == 0, measured = p->iterations.measured;
  if (first) x->mu = (SnIlqgMu){.mu = s->ilqg_regularization, .factor = 1};
  if (first) x->has_gain = false;
  x->expanded = x->expanded && !first && measured && sn_cfd_equal(&x->cfd, &p->cfd.backward);
  x->trial = x->mu;
  x->given = x->passing = x->passed = false;
  x->count = s->ilqg_alphas + 1 < x->c.capacity ? s->ilqg_alphas + 1 : x->c.capacity;
  if (most < x->count) x->count = most;
  x->state = sn_planner_iteration_state(p, &p->progress.start);
  for (int i = 0; i < p->m->nu; ++i) {
    const sn_real unit = sn_ctrl_unit(p->m, i);
    x->weight[i] = 1 / (unit * unit);
  }
  memset(x->c.done, 0, (size_t)x->count);
  memset(x->c.warn, 0, sizeof *x->c.warn * (size_t)x->count);
  if (!measured) {
    sn_planner_copy(x->c.ctrl, sn_planner_best(p), sn_planner_rows(p));
    x->batch = batch_of(p, 0, 1);
    x->stage = ILQG_MEASURE;
    return;
  }
  x->c.cost[0] = p->result.best_cost;
  memcpy(x->c.term, p->result.best_term, sizeof(double) * (size_t)p->in_force.cost->nterm);
  x->c.done[0] = 1;
  x->stage = x->count == 1 ? ILQG_DONE : (x->expanded ? ILQG_BACK : ILQG_EXPAND);
  if (!isfinite(x->c.cost[0])) give_up(x);
}

static SnWorked ilqg_work(SnPlanner *p, double stop) {
  static bool (*const stage[ILQG_DONE])(SnPlanner *, double) = {measure, expand, pass_back, search};
  const SnIlqgState *x = p->iterations.ilqg;
  while (x->stage != ILQG_DONE)
    if (!stage[x->stage](p, stop)) return SN_WORKED_PAUSED;
  return SN_WORKED_ALL;
}

// Candidate `best` becomes the best so far.
static void take_candidate(SnPlanner *p, int best) {
  SnIlqgState *x = p->iterations.ilqg;
  const size_t row = sn_planner_rows(p), nterm = (size_t)p->in_force.cost->nterm;
  p->result.best_cost = x->c.cost[best];
  memcpy(p->result.best_term, x->c.term + (size_t)best * nterm, sizeof(double) * nterm);
  if (best == 0) return;
  sn_planner_copy(sn_planner_best(p), x->c.applied + (size_t)best * row, row);
  sn_planner_copy(x->c.states, x->c.states + (size_t)best * path_size(p), path_size(p));
  x->expanded = false;
}

// Regularisation and gains for what comes: less where a change was good, more where none was. Gains of a time grid hold
// over its steps, as controls do.
static void learn(const SnPlanner *p, SnIlqgState *x, int best, int used) {
  const SnIlqgMu next = best > 0 ? sn_ilqg_less(x->trial) : sn_ilqg_more(x->trial);
  if (used == 1) return;
  if (!sn_ilqg_beyond(next)) x->mu = next;
  if (!x->passed) return;
  sn_number *old = x->gain;
  x->gain = x->K;
  x->K = old;
  if (p->grid.grid.parts > 0)
    sn_grid_spread(&p->grid.grid, p->horizon, p->m->nu * sn_tangent_size(p->m), x->gain, x->gain);
  x->has_gain = true;
}

static void ilqg_end(SnPlanner *p) {
  SnIlqgState *x = p->iterations.ilqg;
  int used = 0;
  if (x->stage != ILQG_DONE) sn_backend_abandon(p->device.backend, p->device.model);
  const int best = sn_best_candidate(x->c.cost, x->c.done, x->count, &used);
  if (used == 0 || (p->iterations.measured && used == 1 && x->count > 1)) return;
  if (!p->iterations.measured) {
    p->result.cost_before = x->c.cost[0];
    p->result.cost_now = p->iterations.state_cost;
  }
  p->iterations.measured = true;
  sn_planner_mark_version(p);
  take_candidate(p, best);
  learn(p, x, best, used);
  for (int i = 0; i < used; ++i) p->result.warn |= x->c.warn[i];
  p->result.gradient_norm = (double)NAN;
  p->result.iterations = ++p->iterations.next;
  p->result.candidates = used;
}

static const sn_number *ilqg_gain(const SnPlanner *p) {
  const SnIlqgState *x = p->iterations.ilqg;
  return x && x->has_gain ? x->gain : NULL;
}

static const SnTrajectory *ilqg_states(const SnPlanner *p) {
  return p->iterations.ilqg && p->iterations.measured ? &p->iterations.ilqg->c.path[0] : NULL;
}

const SnOptimizer sn_optimizer_ilqg = {.kind = SN_PLANNER_ILQG,
                                       .descends = true,
                                       .least = 1,
                                       .announces = SN_BACKEND_ROLLOUTS_SUBMIT,
                                       .check = ilqg_check,
                                       .reserve = ilqg_reserve,
                                       .bytes = optimizer_bytes,
                                       .begin = ilqg_begin,
                                       .work = ilqg_work,
                                       .end = ilqg_end,
                                       .gain = ilqg_gain,
                                       .states = ilqg_states,
                                       .free = ilqg_free};
