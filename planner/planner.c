// A planner's life: creation, reset, what can be read and tuned. How a plan is made stands in planner_plan.c.
#include "planner/planner.h"

#include <stdio.h>
#include <stdlib.h>

#include "planner/planner_private.h"
#include "planner/base/random.h"

SnPlannerDef sn_default_planner_def(void) {
  return (SnPlannerDef){.settings = sn_default_settings(), .clock = sn_clock_monotonic(), .settle_until = INFINITY};
}

const SnOptimizer *const sn_optimizers[SN_PLANNER_KINDS] = {
    [SN_PLANNER_SAMPLING] = &sn_optimizer_sampling, [SN_PLANNER_ADAM] = &sn_optimizer_adam,
    [SN_PLANNER_ILQG] = &sn_optimizer_ilqg,         [SN_PLANNER_LBFGS] = &sn_optimizer_lbfgs,
    [SN_PLANNER_MPPI] = &sn_optimizer_mppi,         [SN_PLANNER_CEM] = &sn_optimizer_cem,
    [SN_PLANNER_HYBRID] = &sn_optimizer_hybrid,
};

void sn_planner_shift_optimizers(SnPlanner *p, int k) {
  for (int i = 0; i < SN_PLANNER_KINDS; ++i)
    if (sn_optimizers[i]->shift) sn_optimizers[i]->shift(p, k);
}

void sn_planner_forget_plan(SnPlanner *p) {
  for (int i = 0; i < SN_PLANNER_KINDS; ++i)
    if (sn_optimizers[i]->forget) sn_optimizers[i]->forget(p);
}

SnPlanRequest sn_default_plan_request(void) { return (SnPlanRequest){.deadline = INFINITY}; }

// ---- creation ----

static void make_state(const SnModel *m, SnStateBuffer *s, bool *ok) {
  s->qpos = sn_planner_calloc((size_t)m->nq, sizeof(sn_real), ok);
  s->qvel = sn_planner_calloc((size_t)m->nv, sizeof(sn_real), ok);
  s->act = sn_planner_calloc((size_t)m->na, sizeof(sn_real), ok);
  s->past = sn_planner_calloc((size_t)sn_past_size(m), sizeof(sn_real), ok);
  s->mocap_pos = sn_planner_calloc(3 * (size_t)m->nmocap, sizeof(sn_real), ok);
  s->mocap_quat = sn_planner_calloc(4 * (size_t)m->nmocap, sizeof(sn_real), ok);
  s->qacc_warmstart = sn_planner_calloc((size_t)m->nv, sizeof(sn_real), ok);
}

static void free_state(SnStateBuffer *s) {
  free(s->qpos);
  free(s->qvel);
  free(s->act);
  free(s->past);
  free(s->mocap_pos);
  free(s->mocap_quat);
  free(s->qacc_warmstart);
}

static SnCode make_buffers(SnPlanner *p, SnError *err) {
  const SnModel *m = p->m;
  const size_t horizon = (size_t)p->horizon, nu = (size_t)m->nu, rows = 2 * horizon;
  bool ok = true;
  make_state(m, &p->initial.state, &ok);
  make_state(m, &p->latest.state, &ok);
  make_state(m, &p->progress.start, &ok);
  make_state(m, &p->evaluation.state, &ok);
  p->initial.ctrl = sn_planner_calloc(nu, sizeof(sn_real), &ok);
  p->warm_start.ctrl = sn_planner_calloc(horizon * nu, sizeof(sn_real), &ok);
  p->grid.ctrl = sn_planner_calloc(horizon * nu, sizeof(sn_real), &ok);
  p->grid.target = sn_planner_calloc((horizon + 1) * (size_t)p->in_force.cost->ntarget, sizeof(sn_real), &ok);
  p->candidates.winner = sn_planner_calloc(horizon * nu, sizeof(sn_real), &ok);
  p->active_plan.ctrl = sn_planner_calloc(rows * nu, sizeof(sn_real), &ok);
  p->progress.target = sn_planner_calloc((horizon + 1) * (size_t)p->in_force.cost->ntarget, sizeof(sn_real), &ok);
  p->progress.before = sn_planner_calloc(nu, sizeof(sn_real), &ok);
  p->candidates.scratch = sn_planner_calloc(3 * (horizon + 2), sizeof(sn_real), &ok);
  p->result.best_term = sn_planner_calloc((size_t)p->in_force.cost->nterm, sizeof(double), &ok);
  p->result.gate_number = sn_planner_calloc((size_t)p->in_force.cost->ngate, sizeof(double), &ok);
  p->result.gate_factor = sn_planner_calloc((size_t)p->in_force.cost->ngate, sizeof(double), &ok);
  p->result.ctrl = sn_planner_calloc(rows * nu, sizeof(sn_real), &ok);
  p->result.qpos = sn_planner_calloc((rows + 1) * (size_t)m->nq, sizeof(sn_real), &ok);
  p->result.qvel = sn_planner_calloc((rows + 1) * (size_t)m->nv, sizeof(sn_real), &ok);
  p->result.act = sn_planner_calloc((rows + 1) * (size_t)m->na, sizeof(sn_real), &ok);
  p->evaluation.term = sn_planner_calloc((size_t)p->in_force.cost->nterm, sizeof(double), &ok);
  p->evaluation.value = sn_planner_calloc((size_t)p->in_force.cost->nall, sizeof(double), &ok);
  p->evaluation.met = sn_planner_calloc((size_t)(p->in_force.cost->nall - p->in_force.cost->nterm), sizeof(bool), &ok);
  return ok ? sn_planner_take_settings(p, err) : sn_fail(err, SN_ERR_MEMORY, "planner: out of memory");
}

SnCode sn_planner_check_gradients(const SnPlanner *p, const char *planner, SnBackendFeature feature, SnError *err) {
  const SnBackend *b = p->device.backend;
  if (sn_backend_has(b, feature)) return SN_OK;
  return sn_fail(err, SN_ERR_UNSUPPORTED, "planner: %s needs gradients, and the backend '%s' makes none", planner,
                 sn_backend_name(b));
}

// Chosen steps have an adjoint, and no Jacobians.
static SnCode check_integrator(const SnSettings *s, SnError *err) {
  char name[16];
  sn_settings_choice_name(sn_settings_find("integrator"), s->integrator, name, (int)sizeof name);
  if (s->integrator == 0) return SN_OK;
  if (s->planner == SN_PLANNER_ILQG)
    return sn_fail(err, SN_ERR_UNSUPPORTED,
                   "integrator: '%s' has no Jacobians of steps, which planner 'ilqg' needs; 'step' has them", name);
  if (s->gradient == SN_GRADIENT_PRODUCTS)
    return sn_fail(err, SN_ERR_UNSUPPORTED,
                   "integrator: '%s' has no Jacobians of steps, which gradient 'products' needs; 'sweep' does without",
                   name);
  return SN_OK;
}

// Buffers of controls and sensors and springs that yield have an adjoint, and no Jacobians.
static SnCode check_past(const SnModel *m, const SnSettings *s, SnError *err) {
  const bool ilqg = s->planner == SN_PLANNER_ILQG;
  if (sn_past_size(m) == 0 || (!ilqg && s->gradient != SN_GRADIENT_PRODUCTS)) return SN_OK;
  return sn_fail(err, SN_ERR_UNSUPPORTED,
                 "%s: the model's steps have no Jacobians, because actuators or sensors have history buffers (delay, "
                 "nsample) or springs yield (springyield); %s does without",
                 ilqg ? "planner 'ilqg'" : "gradient 'products'", ilqg ? "planner 'adam'" : "gradient 'sweep'");
}

// A planner by gradients needs terms that have one, and each a backend that has what its iterations ask for.
static SnCode check_optimizer(const SnPlanner *p, const SnSettings *s, SnError *err) {
  const SnOptimizer *optimizer = sn_planner_optimizer(s);
  SnCode code = check_integrator(s, err);
  if (code == SN_OK) code = check_past(p->m, s, err);
  if (code == SN_OK) code = sn_cfd_check(p->m, s, err);
  if (code == SN_OK) code = sn_planner_policy_check(p, s, err);
  if (code == SN_OK && optimizer->descends) code = sn_cost_check_gradient(p->in_force.cost, p->m, err);
  return code == SN_OK && optimizer->check ? optimizer->check(p, err) : code;
}

// Chosen steps of the planner's own rollouts.
static SnCode choose(const SnPlanner *p, SnError *err) {
  SnHorizonSettings chosen;
  if (!sn_chosen_settings(&p->def.settings, &chosen)) return SN_OK;
  const SnCode code = sn_rollout_runner_choose(p->runners.tracer, &chosen, false, err);
  return code == SN_OK ? sn_rollout_runner_choose(p->runners.evaluator, &chosen, false, err) : code;
}

static SnCode build(SnPlanner *p, SnError *err) {
  const SnPlannerDef *def = &p->def;
  SnCode code = sn_settings_validate(&def->settings, err);
  if (code != SN_OK) return code;
  p->in_force.settings = p->pending.settings = def->settings;
  p->horizon = def->settings.horizon;
  if (!(p->m = sn_task_model(def->task, def->model, err))) return err ? err->code : SN_ERR_MEMORY;
  p->h = (double)p->m->opt.timestep;
  p->in_force.cost = sn_cost_create(def->task, p->m, err);
  p->pending.cost = p->in_force.cost ? sn_cost_create(def->task, p->m, err) : NULL;
  p->result.cost = p->pending.cost ? sn_cost_create(def->task, p->m, err) : NULL;
  if (!p->result.cost) return err ? err->code : SN_ERR_NOT_FOUND;
  if (!(p->cfd.pair = sn_cfd_pairs(def->task, p->m, err))) return err ? err->code : SN_ERR_NOT_FOUND;
  if ((code = sn_planner_policy_load(p, err)) != SN_OK) return code;
  if ((code = sn_planner_take_own(p, err)) != SN_OK) return code;
  if (!(p->runners.scratch = sn_rollout_runner_create(p->m, p->pending.cost, err))) return SN_ERR_MEMORY;
  if (!(p->runners.tracer = sn_rollout_runner_create(p->m, p->in_force.cost, err))) return SN_ERR_MEMORY;
  if (!(p->runners.evaluator = sn_rollout_runner_create(p->m, p->pending.cost, err))) return SN_ERR_MEMORY;
  if ((code = choose(p, err)) != SN_OK) return code;
  if ((code = sn_planner_grid_check(p, &def->settings, NULL, err)) != SN_OK) return code;
  if ((code = sn_planner_load(p, err)) != SN_OK) return code;
  if ((code = check_optimizer(p, &def->settings, err)) != SN_OK) return code;
  if ((code = make_buffers(p, err)) != SN_OK) return code;
  return sn_planner_reset(p, def->seed, err);
}

SnPlanner *sn_planner_create(const SnPlannerDef *def, SnError *err) {
  SnError local;
  SnPlanner *p = calloc(1, sizeof *p);
  if (!p) {
    sn_fail(err, SN_ERR_MEMORY, "planner: out of memory");
    return NULL;
  }
  p->def = *def;
  if (build(p, err ? err : &local) == SN_OK) return p;
  sn_planner_free(p);
  return NULL;
}

void sn_planner_free(SnPlanner *p) {
  if (!p) return;
  sn_planner_evaluate_free(p);
  if (p->device.model) sn_backend_unload(p->device.backend, p->device.model);
  for (int i = 0; i < SN_PLANNER_KINDS; ++i)
    if (sn_optimizers[i]->free) sn_optimizers[i]->free(p);
  free(p->cfd.pair);
  sn_planner_policy_free(p);
  sn_rollout_runner_free(p->runners.scratch);
  sn_rollout_runner_free(p->runners.tracer);
  sn_rollout_runner_free(p->runners.evaluator);
  sn_cost_free(p->result.cost);
  sn_cost_free(p->pending.cost);
  sn_cost_free(p->in_force.cost);
  free_state(&p->initial.state);
  free_state(&p->latest.state);
  free_state(&p->progress.start);
  free_state(&p->evaluation.state);
  void *const buffers[] = {
      p->initial.ctrl,       p->warm_start.ctrl,  p->candidates.winner, p->active_plan.ctrl,   p->progress.target,
      p->candidates.scratch, p->result.best_term, p->result.ctrl,       p->result.qpos,        p->result.qvel,
      p->result.act,         p->evaluation.term,  p->evaluation.value,  p->evaluation.met,     p->evaluation.target,
      p->candidates.cost,    p->candidates.term,  p->candidates.done,   p->candidates.warn,    p->candidates.rank,
      p->progress.before,    p->grid.ctrl,        p->grid.target,       p->result.gate_number, p->result.gate_factor};
  for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; ++i) free(buffers[i]);
  sn_model_free(p->m);
  sn_planner_give_all(p);
  free(p);
}

void sn_planner_reset_nominal(SnPlanner *p) {
  const size_t nu = (size_t)p->m->nu;
  for (int t = 0; t < p->horizon; ++t) sn_planner_copy(p->warm_start.ctrl + (size_t)t * nu, p->initial.ctrl, nu);
  p->warm_start.phase = 0;
  sn_planner_forget_plan(p);
}

void sn_planner_drop_batch(SnPlanner *p) {
  if (p->iterations.begun) sn_backend_abandon(p->device.backend, p->device.model);
  p->iterations.begun = p->iterations.rolled = false;
}

void sn_planner_store_world(SnPlanner *p, const SnWorld *w, SnStateBuffer *s) {
  const SnModel *m = p->m;
  sn_planner_copy(s->qpos, w->qpos, (size_t)m->nq);
  sn_planner_copy(s->qvel, w->qvel, (size_t)m->nv);
  sn_planner_copy(s->act, w->act, (size_t)m->na);
  sn_planner_copy(s->past, w->past, (size_t)sn_past_size(m));
  sn_planner_copy(s->mocap_pos, w->mocap_pos, 3 * (size_t)m->nmocap);
  sn_planner_copy(s->mocap_quat, w->mocap_quat, 4 * (size_t)m->nmocap);
}

// The task's initial state and plan with a seed.
static SnCode settle(SnPlanner *p, uint64_t seed, SnError *err) {
  SnWorld *w = sn_rollout_runner_world(p->runners.scratch);
  SnLane *lane = sn_rollout_runner_lane(p->runners.scratch);
  const SnClock *clock = p->def.settle_clock.now ? &p->def.settle_clock : &p->def.clock;
  const SnCode code = sn_task_reset(p->def.task, p->m, w, lane, seed, clock, p->def.settle_until, err);
  if (code != SN_OK) return code;
  p->def.seed = seed;
  p->initial.state.time = 0;
  sn_planner_store_world(p, w, &p->initial.state);
  sn_cost_capture(p->in_force.cost, p->m, w, lane);
  sn_cost_capture(p->pending.cost, p->m, w, lane);
  sn_cost_capture(p->result.cost, p->m, w, lane);
  sn_backend_update(p->device.backend, p->device.model);
  sn_task_initial_plan(p->def.task, p->m, seed, p->initial.ctrl);
  p->initial.view = sn_planner_prepare(p, &p->initial.state);
  p->initial.settled = true;
  return SN_OK;
}

// Takes the initial state for the latest one.
static void forget_state(SnPlanner *p) {
  const SnModel *m = p->m;
  p->latest.state.time = 0;
  sn_planner_copy(p->latest.state.qpos, p->initial.state.qpos, (size_t)m->nq);
  sn_planner_copy(p->latest.state.qvel, p->initial.state.qvel, (size_t)m->nv);
  sn_planner_copy(p->latest.state.act, p->initial.state.act, (size_t)m->na);
  sn_planner_copy(p->latest.state.past, p->initial.state.past, (size_t)sn_past_size(m));
  sn_planner_copy(p->latest.state.mocap_pos, p->initial.state.mocap_pos, 3 * (size_t)m->nmocap);
  sn_planner_copy(p->latest.state.mocap_quat, p->initial.state.mocap_quat, 4 * (size_t)m->nmocap);
}

SnCode sn_planner_reset(SnPlanner *p, uint64_t seed, SnError *err) {
  sn_planner_drop(p);
  const SnCode code = p->initial.settled && seed == p->def.seed ? SN_OK : settle(p, seed, err);
  if (code != SN_OK) return code;
  forget_state(p);
  sn_planner_reset_nominal(p);
  p->warm_start.exists = p->latest.has_act = p->progress.active = p->progress.finished = false;
  p->active_plan.rows = 0;
  p->unimproved = 0;
  p->progress.number = 0;
  p->progress.rollout_seconds = 0;
  return SN_OK;
}

void sn_planner_take_over(SnPlanner *p, SnPlanner *from) {
  sn_planner_hand_room(from, p);
  p->pending.settings = from->pending.settings;
  p->pending.version = from->pending.version;
  sn_cost_copy_live(p->pending.cost, from->pending.cost);
}

const SnModel *sn_planner_model(const SnPlanner *p) { return p->m; }
const SnCost *sn_planner_cost(const SnPlanner *p) { return p->pending.cost; }
const SnTask *sn_planner_task(const SnPlanner *p) { return p->def.task; }
double sn_planner_length(const SnPlanner *p) { return p->horizon * p->h; }
const SnState *sn_planner_initial(const SnPlanner *p) { return &p->initial.view; }
const SnSettings *sn_planner_settings(const SnPlanner *p) { return &p->pending.settings; }
int sn_planner_least_iterations_of(const SnOptimizer *optimizer, const SnSettings *s) {
  const bool last = optimizer->kind == SN_PLANNER_ADAM && s->adam_warm_start == SN_WARM_START_LAST;
  return last ? 1 : optimizer->least;  // a warm start that was never measured is new
}

// ---- live tuning ----

SnCode sn_planner_configure(SnPlanner *p, const SnSettings *settings, SnError *err) {
  SnCode code = sn_settings_may_change(&p->in_force.settings, settings, err);
  if (code == SN_OK) code = sn_planner_grid_check(p, settings, NULL, err);
  if (code == SN_OK) code = check_optimizer(p, settings, err);
  if (code == SN_OK) code = sn_planner_make_room(p, settings, err);
  if (code != SN_OK) return code;
  p->pending.settings = *settings;
  p->pending_refused = false;
  return SN_OK;
}

SnCode sn_planner_set_target(SnPlanner *p, const char *term, const double *value, int n, SnError *err) {
  const int i = sn_cost_find(p->pending.cost, term);
  if (i < 0) return sn_cost_no_term(p->pending.cost, term, err);
  const SnCode code = sn_cost_set_target(p->pending.cost, i, value, n, err);
  p->cost_changed = p->cost_changed || code == SN_OK;
  p->pending_refused = p->pending_refused && code != SN_OK;
  return code;
}

SnCode sn_planner_set_weight(SnPlanner *p, const char *term, double weight, double terminal, SnError *err) {
  const int i = sn_cost_find(p->pending.cost, term);
  if (i < 0 || i >= p->pending.cost->nterm) return sn_cost_no_term(p->pending.cost, term, err);
  const SnCode code = sn_cost_set_weight(p->pending.cost, i, weight, terminal, err);
  p->cost_changed = p->cost_changed || code == SN_OK;
  p->pending_refused = p->pending_refused && code != SN_OK;
  return code;
}

void sn_planner_remark(const SnPlanner *p, const SnSettings *settings, char *text, size_t size) {
  static const double noticeable = 1e-3;
  const SnCfdSettings cfd = sn_cfd_settings(settings, p->cfd.pair, true);
  const double jump = sn_cfd_backward(settings) ? sn_cfd_jump(p->m, &cfd) : 0;
  text[0] = '\0';
  if (jump > noticeable)
    snprintf(text, size,
             "contacts from distance: where bodies begin to touch, the impedance jumps by %g, from cfd_touch %g to "
             "solimp[0] of the contact",
             jump, settings->cfd_touch);
}

void sn_planner_set_version(SnPlanner *p, uint64_t version) { p->pending.version = version; }
