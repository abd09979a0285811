// Cost of controls that somebody else chose: a rollout of its own, which plans of the same planner do not touch.
#include "planner/planner_private.h"

#include <stdlib.h>

enum { EVALUATE_MAX_STEPS = 1 << 16 };

static SnCode evaluate_room(SnPlanner *p, int rows, SnError *err) {
  if (rows <= p->evaluate_room) return SN_OK;
  sn_real *target = realloc(p->evaluate_target, sizeof *target * ((size_t)rows * (size_t)p->cost->ntarget + 1));
  if (!target) return sn_fail(err, SN_ERR_MEMORY, "evaluate: out of memory");
  p->evaluate_target = target;
  p->evaluate_room = rows;
  return SN_OK;
}

static SnCode check_controls(const SnPlanner *p, const SnEvaluateRequest *r, SnError *err) {
  if (r->nstep < 0 || r->nstep > EVALUATE_MAX_STEPS)
    return sn_fail(err, SN_ERR_LIMIT, "evaluate: %d steps, allowed is 0 to %d", r->nstep, EVALUATE_MAX_STEPS);
  for (size_t i = 0; i < (size_t)r->nstep * (size_t)p->m->nu; ++i)
    if (sn_is_bad(r->ctrl[i])) return sn_fail(err, SN_ERR_ARGUMENT, "ctrl[%zu]: not finite", i);
  return SN_OK;
}

// Norms in the state that a rollout's world is in, whose stages have run, and, without steps, its cost.
static void evaluate_state(SnPlanner *p, SnRollout *at) {
  SnEvaluation *e = &p->evaluation;
  const int nstep = p->evaluate_steps, nterm = e->nterm;
  const sn_real *target = p->evaluate_target + (size_t)nstep * (size_t)p->cost->ntarget;
  const double now = sn_rollout_judge(at, target, nstep == 0 ? p->evaluate_term : NULL, p->evaluate_value);
  if (nstep == 0) e->cost = now;
  for (int i = 0; i < e->nmeasure; ++i)
    p->evaluate_met[i] = p->evaluate_value[nterm + i] <= p->def.task->measure[i].below;
}

SnCode sn_planner_evaluate_begin(SnPlanner *p, const SnEvaluateRequest *r, SnError *err) {
  SnPlanRequest state = sn_default_plan_request();
  state.time = r->time;
  state.qpos = r->qpos;
  state.qvel = r->qvel;
  state.act = r->act;
  state.mocap_pos = r->mocap_pos;
  state.mocap_quat = r->mocap_quat;
  p->evaluate_steps = 0;
  p->evaluation = (SnEvaluation){.nterm = p->cost->nterm,
                                 .nmeasure = p->cost->nall - p->cost->nterm,
                                 .term = p->evaluate_term,
                                 .measure = p->evaluate_value + p->cost->nterm,
                                 .met = p->evaluate_met};
  SnCode code = check_controls(p, r, err);
  if (code == SN_OK) code = evaluate_room(p, r->nstep + 1, err);
  if (code == SN_OK) code = sn_planner_take_state(p, &state, &p->probe, &p->evaluation.act_estimated, err);
  if (code != SN_OK) return code;
  sn_cost_schedule(p->wanted, r->time, p->h, r->nstep + 1, p->evaluate_target);
  const SnStart start = sn_planner_prepare(p, &p->probe);
  p->evaluate_steps = r->nstep;
  if (r->nstep == 0)
    evaluate_state(p, p->judge);
  else
    sn_rollout_begin(p->evaluator, &start, r->ctrl, p->evaluate_target, r->nstep, p->settings.max_velocity, &r->states);
  return SN_OK;
}

bool sn_planner_evaluate_slice(SnPlanner *p, double until) {
  return p->evaluate_steps == 0 || sn_rollout_run(p->evaluator, &p->def.clock, until) != SN_ROLLOUT_PAUSED;
}

void sn_planner_evaluate_finish(SnPlanner *p, SnEvaluation *result) {
  SnEvaluation *e = &p->evaluation;
  if (p->evaluate_steps > 0) {
    e->cost = sn_rollout_cost(p->evaluator, p->evaluate_term);
    e->diverged = !isfinite(e->cost);
    if (!e->diverged) evaluate_state(p, p->evaluator);
    for (int i = 0; e->diverged && i < e->nmeasure; ++i) {
      p->evaluate_value[e->nterm + i] = INFINITY;
      p->evaluate_met[i] = false;
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
