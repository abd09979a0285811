// One state of a rollout on the way back: its world made again, and the derivative of the cost taken through its step.
//
// The cost is sum_t c_t(x_t, u_t, g_t) with x_{t+1} = step(x_t, u_t), g_t the targets. With p_t = d cost / d x_t,
//
//   p_H = dc_H/dx,   p_t = A_t' p_{t+1} + dc_t/dx,   d cost / du_t = B_t' p_{t+1} + dc_t/du,   A, B = d step / d(x, u).
//
// Only p_{t+1} ties the steps together. SN_GRADIENT_SWEEP applies A_t' and B_t' as the adjoint of the step, and c_t
// shares its sweep over the links; SN_GRADIENT_PRODUCTS forms A_t, B_t and dc_t ahead, in parallel.
#include <math.h>

#include "planner/gradient_private.h"

static void copy(sn_real *to, const sn_real *from, int n) { memcpy(to, from, sizeof *to * (size_t)n); }
static void clear(sn_real *x, int n) { memset(x, 0, sizeof *x * (size_t)n); }

// Puts the world into state t of the rollout. The solver starts at the acceleration that the rollout found, or that of
// the same softened world in the item before.
static void set_state(const SnModel *m, SnWorld *w, const SnGradientItem *item, int t) {
  const SnGradient *out = item->out;
  const size_t k = (size_t)t, last = (size_t)(t < out->nstep ? t : t - 1);
  SnStart start = out->start;
  start.qpos = item->states.qpos + k * (size_t)m->nq;
  start.qvel = item->states.qvel + k * (size_t)m->nv;
  start.act = item->states.act + k * (size_t)m->na;
  start.qacc_warmstart = (item->soft_start ? item->soft_qacc : item->states.qacc) + k * (size_t)m->nv;
  sn_world_set_start(m, w, &start);
  w->time[0] = item->time[k];
  copy(w->ctrl, out->ctrl + last * (size_t)m->nu, m->nu);
}

// The stages at the world's state, as they are differentiated: the one place that knows of softened worlds.
static void run_stages(const SnGradientWork *g, SnWorld *w, SnLane *lane) {
  w->soft[0] = g->settings.soft;
  sn_forward(g->m, w, lane);
  sn_solve_finish(g->m, w, lane);
}

// Adds the derivative of the cost of state t to the adjoint, between the halves of a step's adjoint. That with respect
// to the targets stays in the slot: outputs are written in order, going back, so that none is after a failure.
static void add_cost(const SnGradientWork *g, SnGradientThread *thread, const SnGradientItem *item, int t,
                     SnGradientSlot *slot) {
  const SnGradient *out = item->out;
  clear(slot->target_bar, g->cost->ntarget);
  sn_cost_vjp(g->cost, g->m, &slot->world, &thread->adjoint, &thread->lane,
              out->target + (size_t)t * (size_t)g->cost->ntarget, t < out->nstep ? item->running : item->terminal,
              thread->res, slot->target_bar);
}

void sn_gradient_make(const SnGradientWork *g, SnGradientThread *thread, SnGradientItem *item, int t,
                      SnGradientSlot *slot) {
  const SnModel *m = g->m;
  SnWorld *w = &slot->world;
  SnAdjoint *a = &thread->adjoint;
  set_state(m, w, item, t);
  run_stages(g, w, &thread->lane);
  if (g->settings.soft.on) copy(item->soft_qacc + (size_t)t * (size_t)m->nv, w->qacc, m->nv);
  if (g->settings.method != SN_GRADIENT_PRODUCTS) return;
  if (t < item->out->nstep) sn_step_jacobian(m, w, a, &thread->lane, slot->A, slot->B);
  sn_adjoint_clear(m, a, &thread->lane);
  sn_motion_rest(m, w, a, &thread->lane);
  add_cost(g, thread, item, t, slot);
  sn_position_vjp(m, w, a, &thread->lane);
  copy(slot->state_bar, a->qpos_bar, m->nv);
  copy(slot->state_bar + m->nv, a->qvel_bar, m->nv);
  copy(slot->state_bar + 2 * m->nv, a->act_bar, m->na);
  copy(slot->ctrl_bar, a->ctrl_bar, m->nu);
}

static bool is_finite(const sn_real *x, int n) {
  sn_real sum = 0;
  for (int i = 0; i < n; ++i) sum += 0 * x[i];
  return sum == 0;
}

// y += J' x, J (n, cols).
static void add_product(sn_real *SN_RESTRICT y, const sn_real *SN_RESTRICT J, const sn_real *SN_RESTRICT x, int n,
                        int cols) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < cols; ++j) y[j] += J[i * cols + j] * x[i];
}

static void go_back_by_products(const SnGradientWork *g, SnGradientItem *item, int t, const SnGradientSlot *slot) {
  const SnModel *m = g->m;
  const int n = (int)sn_state_size(m);
  copy(item->scratch, slot->state_bar, n);
  if (t < item->out->nstep) {
    sn_real *ctrl_bar = item->out->ctrl_bar + (size_t)t * (size_t)m->nu;
    copy(ctrl_bar, slot->ctrl_bar, m->nu);
    add_product(item->scratch, slot->A, item->state_bar, n, n);
    add_product(ctrl_bar, slot->B, item->state_bar, n, m->nu);
  }
  copy(item->state_bar, item->scratch, n);
}

static void go_back_by_sweep(const SnGradientWork *g, SnGradientThread *thread, SnGradientItem *item, int t,
                             SnGradientSlot *slot) {
  const SnModel *m = g->m;
  SnAdjoint *a = &thread->adjoint;
  sn_adjoint_clear(m, a, &thread->lane);
  if (t < item->out->nstep) {
    copy(a->qpos_next_bar, item->state_bar, m->nv);
    copy(a->qvel_next_bar, item->state_bar + m->nv, m->nv);
    copy(a->act_next_bar, item->state_bar + 2 * m->nv, m->na);
    sn_step_vjp(m, &slot->world, a, &thread->lane);
  } else {
    sn_motion_rest(m, &slot->world, a, &thread->lane);
  }
  add_cost(g, thread, item, t, slot);
  sn_position_vjp(m, &slot->world, a, &thread->lane);
  copy(item->state_bar, a->qpos_bar, m->nv);
  copy(item->state_bar + m->nv, a->qvel_bar, m->nv);
  copy(item->state_bar + 2 * m->nv, a->act_bar, m->na);
  if (t < item->out->nstep) copy(item->out->ctrl_bar + (size_t)t * (size_t)m->nu, a->ctrl_bar, m->nu);
}

bool sn_gradient_back(const SnGradientWork *g, SnGradientThread *thread, SnGradientItem *item, int t,
                      SnGradientSlot *slot) {
  const SnModel *m = g->m;
  if (g->settings.method == SN_GRADIENT_PRODUCTS)
    go_back_by_products(g, item, t, slot);
  else
    go_back_by_sweep(g, thread, item, t, slot);
  const int ntarget = g->cost->ntarget;
  if (item->out->target_bar) copy(item->out->target_bar + (size_t)t * (size_t)ntarget, slot->target_bar, ntarget);
  const int nu = t < item->out->nstep ? m->nu : 0;
  return is_finite(item->state_bar, (int)sn_state_size(m)) &&
         (nu == 0 || is_finite(item->out->ctrl_bar + (size_t)t * (size_t)nu, nu));
}
