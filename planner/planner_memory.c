// What a planner takes of a budget, computed before it is allocated. Each part has what it needed at most, as the
// memory itself: capacity is kept. Small things, as names and settings, are not counted.
#include "planner/base/budget.h"
#include "planner/planner_private.h"

static double world_bytes(const SnPlanner *p) { return (double)sn_world_size(p->m); }

double sn_planner_row_bytes(const SnPlanner *p, double rows) {
  const double states = p->m->nq + 2.0 * p->m->nv + p->m->na + 1 + sn_past_size(p->m);
  return rows * states * (double)sizeof(sn_real);
}

double sn_planner_ctrl_bytes(const SnPlanner *p, double tables) {
  return tables * p->horizon * p->m->nu * (double)sizeof(sn_real);
}

// The backend that has its room in the program's own memory, or may have it one day.
double sn_planner_backend_bytes(const SnPlanner *p, int steps, int gradients, int starts) {
  const SnBackend *b = p->def.fallback ? p->def.fallback : p->def.backend;
  const SnBackendRoom room = {.max_step = steps, .gradients = gradients, .starts = starts};
  return sn_backend_bytes(b, p->m, p->in_force.cost, &room);
}

// What a policy takes, and the controls of its rollout.
static double policy_bytes(const SnPlanner *p) {
  const SnPolicy *x = p->policy.network;
  if (!x) return 0;
  return sn_policy_bytes(x) + (double)sizeof(float) * (double)sn_policy_scratch(x) + sn_planner_ctrl_bytes(p, 1);
}

// Buffers of planner.c, and the worlds of its runners.
static double own_bytes(const SnPlanner *p) {
  const double rows = p->horizon + 1, real = (double)sizeof(sn_real);
  return policy_bytes(p) + 3 * world_bytes(p) + sn_planner_ctrl_bytes(p, 7) +
         2 * rows * p->in_force.cost->ntarget * real + sn_planner_row_bytes(p, 2 * rows) + 3 * (rows + 1) * real;
}

SnCode sn_planner_take(SnPlanner *p, int part, double bytes, SnError *err) {
  const double more = bytes - p->memory.part[part];
  if (more <= 0) return SN_OK;
  const SnCode code = p->def.budget ? sn_budget_take(p->def.budget, p->memory.taken, more, err) : SN_OK;
  if (code != SN_OK) return code;
  p->memory.part[part] = bytes;
  p->memory.taken += more;
  return SN_OK;
}

static void give(SnPlanner *p, int part, double bytes) {
  const double less = p->memory.part[part] - bytes;
  if (p->def.budget) sn_budget_give(p->def.budget, less);
  p->memory.part[part] = bytes;
  p->memory.taken -= less;
}

SnCode sn_planner_take_own(SnPlanner *p, SnError *err) {
  return sn_planner_take(p, SN_MEMORY_OWN, own_bytes(p) + sn_planner_backend_bytes(p, p->horizon, 0, 0), err);
}

SnCode sn_planner_reserve(SnPlanner *p, const SnOptimizer *optimizer, const SnSettings *s, SnError *err) {
  const int part = (int)optimizer->kind;
  const double before = p->memory.part[part];
  SnCode code = optimizer->check ? optimizer->check(p, err) : SN_OK;
  if (code == SN_OK) code = sn_planner_take(p, part, optimizer->bytes(p, s), err);
  if (code != SN_OK) return code;
  code = optimizer->reserve(p, s, err);
  if (code != SN_OK) give(p, part, before);
  return code;
}

// Takes what an optimizer needs, which reserves it later.
static SnCode take_ahead(SnPlanner *p, const SnOptimizer *optimizer, const SnSettings *s, SnError *err) {
  return sn_planner_take(p, (int)optimizer->kind, optimizer->bytes(p, s), err);
}

SnCode sn_planner_make_room(SnPlanner *p, const SnSettings *s, SnError *err) {
  const SnOptimizer *next = sn_planner_optimizer(s), *now = p->progress.active ? p->iterations.optimizer : next;
  const double before = p->memory.part[now->kind];
  SnCode code = take_ahead(p, now, s, err);
  if (code == SN_OK) code = p->iterations.begun ? take_ahead(p, next, s, err) : sn_planner_reserve(p, next, s, err);
  if (code != SN_OK) give(p, (int)now->kind, before);
  return code;
}

// The budget stays as it is: nobody else can take what is handed on.
void sn_planner_hand_room(SnPlanner *from, SnPlanner *to) {
  if (from->def.budget != to->def.budget) return;
  for (int part = 0; part < SN_PLANNER_KINDS; ++part) {
    const double more = from->memory.part[part] - to->memory.part[part];
    if (more <= 0) continue;
    from->memory.part[part] -= more;
    from->memory.taken -= more;
    to->memory.part[part] += more;
    to->memory.taken += more;
  }
}

SnCode sn_planner_take_evaluation(SnPlanner *p, int steps, bool gradient, SnError *err) {
  const double rows = steps + 1, targets = rows * p->in_force.cost->ntarget * (double)sizeof(sn_real);
  const double way_back = sn_planner_row_bytes(p, rows) + targets + steps * (double)p->m->nu * (double)sizeof(sn_real);
  const SnCode code = sn_planner_take(p, SN_MEMORY_EVALUATION, targets, err);
  if (code != SN_OK || !gradient) return code;
  return sn_planner_take(p, SN_MEMORY_GRADIENT, way_back + sn_planner_backend_bytes(p, steps, 1, 0), err);
}

void sn_planner_give_gradient(SnPlanner *p) { give(p, SN_MEMORY_GRADIENT, 0); }

void sn_planner_give_all(SnPlanner *p) {
  if (p->def.budget) sn_budget_give(p->def.budget, p->memory.taken);
}

double sn_planner_bytes(const SnPlanner *p) { return p->memory.taken; }
