// Cost of controls that somebody else chose, and its gradient: a rollout of its own, then the way back along it on a
// model of its own at the backend, so that plans of the same planner do not touch either. A device rolls out once more
// for its gradient, in its own numbers; cost, terms, states and measures are the CPU's.
#include "planner/planner_private.h"

#include <stdlib.h>

enum { EVALUATE_MAX_STEPS = 1 << 16 };

static SnCode evaluate_reserve(SnPlanner *p, int rows, SnError *err) {
  if (rows <= p->evaluation.capacity) return SN_OK;
  const SnCode code = sn_planner_take_evaluation(p, rows - 1, false, err);
  if (code != SN_OK) return code;
  sn_real *target =
      realloc(p->evaluation.target, sizeof *target * ((size_t)rows * (size_t)p->in_force.cost->ntarget + 1));
  if (!target) return sn_fail(err, SN_ERR_MEMORY, "evaluate: out of memory");
  p->evaluation.target = target;
  p->evaluation.capacity = rows;
  return SN_OK;
}

// Capacity for the gradient of an evaluation of at most `steps` steps.
typedef struct SnEvaluateGradient {
  SnBackend *backend;
  SnBackendModel *device;  // there
  int steps;
  SnTrajectory states;  // of the rollout, where the request has no room for them (steps + 1 rows)
  SnGradient item;
  SnGradientBatch batch;
  bool asked;  // of the evaluation in progress
} SnEvaluateGradient;

void sn_planner_evaluate_free(SnPlanner *p) {
  SnEvaluateGradient *g = p->evaluation.gradient;
  if (!g) return;
  if (g->device) sn_backend_unload(g->backend, g->device);
  free(g->states.time);
  free(g->states.qpos);
  free(g->states.qvel);
  free(g->states.act);
  free(g->states.qacc);
  free(g->states.past);
  free(g->item.ctrl_bar);
  free(g->item.qpos_bar);
  free(g->item.qvel_bar);
  free(g->item.act_bar);
  free(g->item.target_bar);
  free(g);
  p->evaluation.gradient = NULL;
  sn_planner_give_gradient(p);
}

static SnCode load_gradient(SnPlanner *p, SnError *err) {
  SnEvaluateGradient *g = p->evaluation.gradient;
  SnBackend *b = g->backend = p->device.backend;
  if (!sn_backend_has(b, SN_BACKEND_GRADIENTS))
    return sn_fail(err, SN_ERR_UNSUPPORTED, "the backend '%s' makes no gradients", sn_backend_name(b));
  if (!(g->device = sn_backend_load_as(b, p->m, p->pending.cost, g->steps, &p->def.settings, err)))
    return err ? err->code : SN_ERR_MEMORY;
  return sn_backend_reserve_gradients(b, g->device, 1, err);
}

void sn_planner_evaluate_move(SnPlanner *p) {
  SnEvaluateGradient *g = p->evaluation.gradient;
  SnError err = {0};
  if (!g) return;
  sn_backend_unload(g->backend, g->device);
  g->device = NULL;
  g->item.status = SN_GRADIENT_PENDING;
  if (load_gradient(p, &err) != SN_OK) sn_planner_evaluate_free(p);
}

static SnCode make_gradient(SnPlanner *p, int steps, SnError *err) {
  const size_t rows = (size_t)steps + 1, nq = (size_t)p->m->nq, nv = (size_t)p->m->nv, na = (size_t)p->m->na;
  bool ok = true;
  SnEvaluateGradient *g = p->evaluation.gradient = sn_planner_calloc(1, sizeof *g, &ok);
  if (!g) return sn_fail(err, SN_ERR_MEMORY, "gradient: out of memory");
  g->steps = steps;
  g->states = (SnTrajectory){.time = sn_planner_calloc(rows, sizeof(sn_real), &ok),
                             .qpos = sn_planner_calloc(rows * nq, sizeof(sn_real), &ok),
                             .qvel = sn_planner_calloc(rows * nv, sizeof(sn_real), &ok),
                             .act = sn_planner_calloc(rows * na, sizeof(sn_real), &ok),
                             .qacc = sn_planner_calloc(rows * nv, sizeof(sn_real), &ok),
                             .past = sn_planner_calloc(rows * (size_t)sn_past_size(p->m), sizeof(sn_real), &ok)};
  g->item.ctrl_bar = sn_planner_calloc((size_t)steps * (size_t)p->m->nu, sizeof(sn_real), &ok);
  g->item.qpos_bar = sn_planner_calloc(nv, sizeof(sn_real), &ok);
  g->item.qvel_bar = sn_planner_calloc(nv, sizeof(sn_real), &ok);
  g->item.act_bar = sn_planner_calloc(na, sizeof(sn_real), &ok);
  g->item.target_bar = sn_planner_calloc(rows * (size_t)p->in_force.cost->ntarget, sizeof(sn_real), &ok);
  if (!ok) return sn_fail(err, SN_ERR_MEMORY, "gradient: out of memory");
  return load_gradient(p, err);
}

// Capacity for as many steps as were asked for at most so far.
static SnCode gradient_reserve(SnPlanner *p, int steps, SnError *err) {
  if (p->device.stranded) return sn_fail(err, SN_ERR_STATE, "no gradient: %s", p->result.remark);
  SnCode code = sn_cost_check_gradient(p->in_force.cost, p->m, err);
  if (code != SN_OK) return code;
  if (p->evaluation.gradient && p->evaluation.gradient->steps >= steps) return SN_OK;
  sn_planner_evaluate_free(p);
  code = sn_planner_take_evaluation(p, steps, true, err);
  if (code == SN_OK) code = make_gradient(p, steps, err);
  if (code != SN_OK) sn_planner_evaluate_free(p);
  return code;
}

// Where the rollout puts its states: all that the way back needs, in the request's arrays where it has them.
static SnTrajectory kept_states(const SnPlanner *p, const SnEvaluateRequest *r) {
  SnTrajectory out = r->states;
  if (!r->gradient) return out;
  const SnTrajectory *own = &p->evaluation.gradient->states;
  if (!out.time) out.time = own->time;
  if (!out.qpos) out.qpos = own->qpos;
  if (!out.qvel) out.qvel = own->qvel;
  if (!out.act) out.act = own->act;
  if (!out.qacc) out.qacc = own->qacc;
  if (!out.past) out.past = own->past;
  return out;
}

static void begin_gradient(SnPlanner *p, const SnEvaluateRequest *r, const SnState *initial) {
  SnEvaluateGradient *g = p->evaluation.gradient;
  g->asked = true;
  g->item.state = *initial;
  g->item.ctrl = r->ctrl;
  g->item.target = p->evaluation.target;
  g->item.nstep = r->nstep;
  g->item.max_velocity = p->pending.settings.max_velocity;
  g->item.rolled = sn_rollout_runner_rollout(p->runners.evaluator);
  g->item.status = SN_GRADIENT_PENDING;
  g->batch = (SnGradientBatch){
      .settings = {.method = (SnGradientMethod)p->pending.settings.gradient,
                   .cfd = sn_cfd_settings(&p->pending.settings, p->cfd.pair, sn_cfd_backward(&p->pending.settings))},
      .item = &g->item,
      .count = 1};
  sn_backend_update(g->backend, g->device);
}

static void drop_gradient(SnPlanner *p) {
  SnEvaluateGradient *g = p->evaluation.gradient;
  if (!g || !g->asked) return;
  sn_backend_abandon(g->backend, g->device);
  g->asked = false;
}

static SnCode check_controls(const SnPlanner *p, const SnEvaluateRequest *r, SnError *err) {
  if (r->nstep < 0 || r->nstep > EVALUATE_MAX_STEPS)
    return sn_fail(err, SN_ERR_LIMIT, "evaluate: %d steps, allowed is 0 to %d", r->nstep, EVALUATE_MAX_STEPS);
  if (r->gradient && r->nstep == 0)
    return sn_fail(err, SN_ERR_ARGUMENT, "evaluate: a gradient needs controls of at least one step");
  for (size_t i = 0; i < (size_t)r->nstep * (size_t)p->m->nu; ++i)
    if (sn_is_bad(r->ctrl[i])) return sn_fail(err, SN_ERR_ARGUMENT, "ctrl[%zu]: not finite", i);
  return SN_OK;
}

// Norms in the state that a rollout's world is in, whose stages have run, and, without steps, its cost.
static void evaluate_state(SnPlanner *p, SnRolloutRunner *at) {
  SnEvaluation *e = &p->evaluation.result;
  const int nstep = p->evaluation.steps, nterm = e->nterm;
  const sn_real *target = p->evaluation.target + (size_t)nstep * (size_t)p->in_force.cost->ntarget;
  const double now =
      sn_rollout_runner_evaluate(at, target, nstep == 0 ? p->evaluation.term : NULL, p->evaluation.value);
  if (nstep == 0) e->cost = now;
  for (int i = 0; i < e->nmeasure; ++i)
    p->evaluation.met[i] = p->evaluation.value[nterm + i] <= p->def.task->measure[i].below;
}

SnCode sn_planner_evaluate_begin(SnPlanner *p, const SnEvaluateRequest *r, SnError *err) {
  SnPlanRequest state = sn_default_plan_request();
  state.time = r->time;
  state.qpos = r->qpos;
  state.qvel = r->qvel;
  state.act = r->act;
  state.mocap_pos = r->mocap_pos;
  state.mocap_quat = r->mocap_quat;
  state.past = r->past;
  p->evaluation.steps = 0;
  p->evaluation.rolled = false;
  drop_gradient(p);
  sn_planner_watch(p);
  p->evaluation.result = (SnEvaluation){.nterm = p->in_force.cost->nterm,
                                        .nmeasure = p->in_force.cost->nall - p->in_force.cost->nterm,
                                        .term = p->evaluation.term,
                                        .measure = p->evaluation.value + p->in_force.cost->nterm,
                                        .met = p->evaluation.met};
  SnCode code = check_controls(p, r, err);
  if (code == SN_OK) code = evaluate_reserve(p, r->nstep + 1, err);
  if (code == SN_OK && r->gradient) code = gradient_reserve(p, r->nstep, err);
  SnEstimate estimate;
  if (code == SN_OK) code = sn_planner_take_state(p, &state, &p->evaluation.state, p->runners.scratch, &estimate, err);
  if (code != SN_OK) return code;
  sn_planner_estimate(p, &estimate, INFINITY);
  sn_planner_take_estimate(p, &estimate);
  p->evaluation.result.act_estimated = estimate.act;
  sn_cost_schedule(p->pending.cost, r->time, p->h, r->nstep + 1, p->evaluation.target);
  SnState initial = sn_planner_prepare(p, &p->evaluation.state);
  p->evaluation.cfd = sn_cfd_settings(&p->pending.settings, p->cfd.pair, sn_cfd_forward(&p->pending.settings));
  if (p->evaluation.cfd.on) initial.cfd = &p->evaluation.cfd;
  p->evaluation.steps = r->nstep;
  if (r->gradient) begin_gradient(p, r, &initial);
  const SnTrajectory kept = kept_states(p, r);
  if (r->nstep == 0)
    evaluate_state(p, p->runners.scratch);
  else
    sn_rollout_runner_begin(p->runners.evaluator, &initial, r->ctrl, p->evaluation.target, r->nstep,
                            p->pending.settings.max_velocity, &kept);
  return SN_OK;
}

bool sn_planner_evaluate_slice(SnPlanner *p, double until) {
  if (p->evaluation.steps == 0) return true;
  const bool stranded = !sn_planner_watch(p);
  SnEvaluateGradient *g = p->evaluation.gradient;
  if (!p->evaluation.rolled)
    p->evaluation.rolled = sn_rollout_runner_run(p->runners.evaluator, &p->def.clock, until) != SN_ROLLOUT_UNDER_WAY;
  if (!p->evaluation.rolled || !g || !g->asked || stranded) return p->evaluation.rolled;
  return sn_backend_gradients(g->backend, g->device, &g->batch, &p->def.clock, until);
}

void sn_planner_evaluate_finish(SnPlanner *p, SnEvaluation *result) {
  SnEvaluation *e = &p->evaluation.result;
  SnEvaluateGradient *g = p->evaluation.gradient;
  if (g && g->asked && g->item.status != SN_GRADIENT_PENDING) {
    e->gradient = &g->item;
    g->asked = false;  // it is done: there is nothing to drop
  }
  e->device_lost = p->device.stranded;
  e->target = p->evaluation.target;
  if (p->evaluation.steps > 0) {
    e->cost = sn_rollout_runner_cost(p->runners.evaluator, p->evaluation.term);
    e->diverged = !isfinite(e->cost);
    if (!e->diverged) evaluate_state(p, p->runners.evaluator);
    for (int i = 0; e->diverged && i < e->nmeasure; ++i) {
      p->evaluation.value[e->nterm + i] = INFINITY;
      p->evaluation.met[i] = false;
    }
  }
  *result = *e;
}

SnCode sn_planner_evaluate(SnPlanner *p, const SnEvaluateRequest *r, double deadline, SnEvaluation *result,
                           SnError *err) {
  const SnCode code = sn_planner_evaluate_begin(p, r, err);
  if (code != SN_OK) return code;
  if (!sn_planner_evaluate_slice(p, deadline))
    return sn_fail(err, SN_ERR_TIMEOUT, "evaluate: the deadline came before the end of the rollout");
  sn_planner_evaluate_finish(p, result);
  return SN_OK;
}
