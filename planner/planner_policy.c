// A policy's rollout as the beginning of a plan. The policy of the task, a network, chooses controls in each state from
// where the optimised rows begin; these controls are the warm start, in place of the shifted plan, or where they cost
// less than that. Both rollouts are on the base step, and may be paused at any of them.
//
// Of a rollout that diverges, or that the deadline cuts, nothing is used: the plan begins with the shifted one then.
#include "planner/planner_private.h"

SnCode sn_planner_policy_load(SnPlanner *p, SnError *err) {
  const SnTask *task = p->def.task;
  SnError why = {0};
  bool ok = true;
  if (!task->policy) return SN_OK;
  SnPolicy *network = p->policy.network = sn_policy_load(task->policy, &why);
  SnCode code = network ? sn_policy_bind(network, p->m, p->in_force.cost, task->policy, &why) : why.code;
  if (code != SN_OK) {
    const SnPlace *place = &task->policy_place;
    return sn_fail(err, code, "%s:%d:%d: %.1200s", place->file ? place->file : task->file, place->line, place->column,
                   why.text);
  }
  p->policy.ctrl = sn_planner_calloc((size_t)p->horizon * (size_t)p->m->nu, sizeof *p->policy.ctrl, &ok);
  p->policy.scratch = sn_planner_calloc(sn_policy_scratch(network), sizeof *p->policy.scratch, &ok);
  return ok ? SN_OK : sn_fail(err, SN_ERR_MEMORY, "planner: out of memory");
}

void sn_planner_policy_free(SnPlanner *p) {
  sn_policy_free(p->policy.network);
  free(p->policy.ctrl);
  free(p->policy.scratch);
}

SnCode sn_planner_policy_check(const SnPlanner *p, const SnSettings *s, SnError *err) {
  char name[16];
  if (s->warm_start == SN_BEGIN_SHIFTED || p->policy.network) return SN_OK;
  sn_settings_choice_name(sn_settings_find("warm_start"), s->warm_start, name, (int)sizeof name);
  return sn_fail(err, SN_ERR_UNSUPPORTED,
                 "warm_start: '%s' wants a policy, and task '%.100s' names none (policy: FILE.onnx); 'shifted' does "
                 "without",
                 name, p->def.task->name);
}

void sn_planner_policy_begin(SnPlanner *p) {
  p->policy.stage = p->in_force.settings.warm_start == SN_BEGIN_SHIFTED ? SN_POLICY_DECIDED : SN_POLICY_ROLLOUT;
  p->policy.begun = p->policy.taken = false;
}

// The rollout of the stage, in the tracer's world, which is free until the iterations are done.
static void begin_rollout(SnPlanner *p) {
  const SnState state = sn_planner_rollout_state(p, &p->progress.start);
  const bool policy = p->policy.stage == SN_POLICY_ROLLOUT;
  sn_rollout_runner_begin(p->runners.tracer, &state, policy ? p->policy.ctrl : p->warm_start.ctrl, p->progress.target,
                          p->horizon, p->in_force.settings.max_velocity, NULL);
  if (policy) sn_rollout_runner_follow(p->runners.tracer, p->policy.network, p->policy.scratch, p->policy.ctrl);
  p->policy.begun = true;
}

static void decide(SnPlanner *p, bool take) {
  if (take) sn_planner_copy(p->warm_start.ctrl, p->policy.ctrl, (size_t)p->horizon * (size_t)p->m->nu);
  p->policy.taken = take;
  p->policy.stage = SN_POLICY_DECIDED;
}

// The rollout of the stage has ended.
static void end_rollout(SnPlanner *p) {
  const double cost = sn_rollout_runner_cost(p->runners.tracer, NULL);
  p->policy.begun = false;
  if (p->policy.stage == SN_POLICY_SHIFTED) {
    decide(p, p->policy.cost < cost);
  } else if (!isfinite(cost)) {
    decide(p, false);
  } else if (p->in_force.settings.warm_start == SN_BEGIN_BETTER) {
    p->policy.cost = cost;
    p->policy.stage = SN_POLICY_SHIFTED;
  } else {
    decide(p, true);
  }
}

bool sn_planner_policy_choose(SnPlanner *p, double until) {
  const double deadline = p->progress.request.deadline, stop = until < deadline ? until : deadline;
  while (p->policy.stage != SN_POLICY_DECIDED) {
    if (!p->policy.begun) begin_rollout(p);
    if (sn_rollout_runner_run(p->runners.tracer, &p->def.clock, stop) == SN_ROLLOUT_UNDER_WAY) {
      if (sn_planner_now(p) < deadline) return false;
      decide(p, false);
    } else {
      end_rollout(p);
    }
  }
  return true;
}
