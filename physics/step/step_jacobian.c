// The Jacobians of a step from its adjoint: row k is the gradient of entry k of the next state. The adjoint is linear
// in what it starts from, so rows go side by side, one a column of a pack (bar.h), and share what depends on the state
// alone.
//
// Most rows need no adjoint of their own. An activation depends on itself and on its control alone, so all activations
// share one; not where a controller has some, which depend on its length. But under RK4, which moves them with a mean
// velocity, positions move with the new velocity v+: from
//   q+ = q (+) h v+,    q_bar += R q+_bar,    v+_bar += h J q+_bar
// (integrate.c; R and J are 1 but for turns) the row of position k is the sum over i of h J_ik times the row of
// velocity i, and column k of R at the positions of its own joint.
#include "physics/base/vec.h"
#include "physics/step/integrate_private.h"
#include "physics/step/step.h"

// Adjoints that are run, in this order: of each velocity, under RK4 of each position, of all activations together.
SN_INLINE int jacobian_activations(const SnModel *m) { return m->opt.integrator == SN_INT_RK4 ? 2 * m->nv : m->nv; }
SN_INLINE int jacobian_adjoints(const SnModel *m) { return jacobian_activations(m) + (m->na > 0); }

// Sets column c of NEXT, zero before, for adjoint k. each: of each activation on its own.
SN_LOCAL void jacobian_set(const SnModel *m, SnAdjoint *a, int c, int k, bool each) {
  if (k < m->nv)
    sn_set_column(a->qvel_next_bar + k, c, 1);
  else if (k < jacobian_activations(m))
    sn_set_column(a->qpos_next_bar + k - m->nv, c, 1);
  else if (each)
    sn_set_column(a->act_next_bar + k - jacobian_activations(m), c, 1);
  else
    for (int i = 0; i < m->na; ++i) sn_set_column(a->act_next_bar + i, c, 1);
}

// Row `row` of A and B from column c of RESULT.
SN_LOCAL void jacobian_row(const SnModel *m, const SnAdjoint *a, SnLane *lane, int c, int row, sn_real *A, sn_real *B) {
  const int nv = m->nv;
  sn_real *to = A + row * (2 * nv + m->na), *to_ctrl = B + row * m->nu;
  (void)lane;
  SN_FOR(i, nv) {
    to[i] = sn_column(a->qpos_bar[i], c);
    to[nv + i] = sn_column(a->qvel_bar[i], c);
  }
  SN_FOR(i, m->na) to[2 * nv + i] = sn_column(a->act_bar[i], c);
  SN_FOR(i, m->nu) to_ctrl[i] = sn_column(a->ctrl_bar[i], c);
}

// Rows of all activations from column c of RESULT.
SN_LOCAL void jacobian_activation_rows(const SnModel *m, const SnAdjoint *a, SnLane *lane, int c, sn_real *A,
                                       sn_real *B) {
  const int first = 2 * m->nv, n = first + m->na;
  (void)lane;
  SN_FOR(i, m->nactuator) {
    const int k = m->actuator_actadr[i], u = m->actuator_ctrladr[i];
    if (m->actuator_actnum[i] == 0) continue;
    sn_zero(A + (first + k) * n, n);
    sn_zero(B + (first + k) * m->nu, m->nu);
    A[(first + k) * n + first + k] = sn_column(a->act_bar[k], c);
    B[(first + k) * m->nu + u] = sn_column(a->ctrl_bar[u], c);
  }
}

#if defined(SN_MODEL_BARS)
// Where a bar stands in the memory of SnParameterRows, and its numbers behind it.
enum { ROWS_HEAD = (sizeof(SnModelBar) + 63) / 64 * 64 };
SN_INLINE SnModelBar *rows_bar(const SnParameterRows *by) { return (SnModelBar *)by->memory; }

void sn_parameter_rows_clear(const SnParameterRows *by) {
  sn_model_bar_init(by->tangents, rows_bar(by), (char *)by->memory + ROWS_HEAD);
}

void sn_parameter_rows_begin(const SnParameterRows *by, SnAdjoint *a) {
  sn_parameter_rows_clear(by);
  a->host->model = rows_bar(by);
}

void sn_parameter_row(const SnParameterRows *by, int c, sn_real *out) {
  sn_model_bar_apply(by->tangents, rows_bar(by), c, out);
}

void sn_parameter_rows_end(SnAdjoint *a) { a->host->model = NULL; }

// Begins E, whose rows of activations are zero unless they get one. Returns whether parameters move what these depend
// on.
SN_LOCAL bool jacobian_begin_parameters(const SnModel *m, SnAdjoint *a, const SnStepJacobian *to) {
  const int cols = sn_model_tangents_count(to->by->tangents);
  sn_parameter_rows_begin(to->by, a);
  if (m->na > 0) memset(to->E + (size_t)2 * (size_t)m->nv * (size_t)cols, 0, sizeof *to->E * (size_t)(m->na * cols));
  const SnModelBar *bar = sn_model_bar(a);
  return bar->actuator_dynprm || bar->actuator_actrange || bar->actuator_ctrlrange;
}
#endif

// The row of the next state that adjoint k gives.
SN_INLINE int jacobian_row_of(const SnModel *m, int k) {
  const int first = jacobian_activations(m);
  return k < m->nv ? m->nv + k : k < first ? k - m->nv : 2 * m->nv + k - first;
}

// Adjoints first ... first + num of a step, side by side.
SN_LOCAL void jacobian_adjoint(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, int first, int num,
                               bool each) {
  SN_FOR(i, m->nv) a->qpos_next_bar[i] = a->qvel_next_bar[i] = sn_bar_of(0);
  SN_FOR(i, m->na) a->act_next_bar[i] = sn_bar_of(0);
  SN_FOR(i, sn_past_size(m)) a->past_next_bar[i] = sn_bar_of(0);
  SN_SYNC(lane);
  SN_ONE(lane) {
    for (int c = 0; c < num; ++c) jacobian_set(m, a, c, first + c, each);
  }
  SN_SYNC(lane);
  sn_adjoint_clear(m, a, lane);
  sn_step_vjp(m, w, a, lane);
  sn_position_vjp(m, w, a, lane);
}

// Whether each activation needs an adjoint of its own.
SN_LOCAL bool jacobian_each(const SnModel *m) {
  for (int i = 0; i < m->nactuator; ++i)
    if (m->actuator_gaintype[i] > SN_GAIN_MUSCLE && m->actuator_actnum[i] > 0) return true;
  return false;
}

SN_FUNC void sn_jacobian_rows(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, const SnStepJacobian *to) {
  const int activations = jacobian_activations(m);
  bool each = jacobian_each(m);
#if defined(SN_MODEL_BARS)
  if (to->by) each = jacobian_begin_parameters(m, a, to) || each;
#endif
  const int n = each ? activations + m->na : jacobian_adjoints(m);
  for (int first = 0; first < n; first += SN_COLUMNS) {
    const int num = sn_mini(SN_COLUMNS, n - first);
    jacobian_adjoint(m, w, a, lane, first, num, each);
    for (int c = 0; c < num; ++c) {
      const int k = first + c, row = jacobian_row_of(m, k);
      if (k >= activations && !each) {
        jacobian_activation_rows(m, a, lane, c, to->A, to->B);
        continue;
      }
      jacobian_row(m, a, lane, c, row, to->A, to->B);
#if defined(SN_MODEL_BARS)
      if (to->by) sn_parameter_row(to->by, c, to->E + row * sn_model_tangents_count(to->by->tangents));
#endif
    }
    SN_SYNC(lane);
#if defined(SN_MODEL_BARS)
    if (to->by) sn_parameter_rows_clear(to->by);
#endif
  }
#if defined(SN_MODEL_BARS)
  if (to->by) sn_parameter_rows_end(a);
#endif
}

#if !defined(SN_PACK)
// Row k of X from the rows of the velocities of `num` dofs from `adr` on, times qacc_bar.
SN_LOCAL void jacobian_combine(const SnAdjoint *a, sn_real *X, int cols, int nv, int k, int adr, int num) {
  for (int e = 0; e < cols; ++e) X[k * cols + e] = a->qacc_bar[adr] * X[(nv + adr) * cols + e];
  for (int i = adr + 1; i < adr + num; ++i)
    for (int e = 0; e < cols; ++e) X[k * cols + e] += a->qacc_bar[i] * X[(nv + i) * cols + e];
}

// The row of position k from the bars of its joint's positions and velocities: those of `num` dofs from `adr` on.
SN_LOCAL void jacobian_position_row(const SnModel *m, const SnAdjoint *a, int k, int adr, int num,
                                    const SnStepJacobian *to, int parameters) {
  const int nv = m->nv, n = 2 * nv + m->na;
  jacobian_combine(a, to->A, n, nv, k, adr, num);
  jacobian_combine(a, to->B, m->nu, nv, k, adr, num);
  if (parameters > 0) jacobian_combine(a, to->E, parameters, nv, k, adr, num);
  for (int i = adr; i < adr + num; ++i) to->A[k * n + i] += a->qpos_bar[i];
}

// Positions that move with the new velocity, which sn_integrate_vjp has left in rk_rate: of a turn its three dofs one
// after the other, those of different joints at once.
SN_LOCAL void jacobian_positions(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, const SnStepJacobian *to) {
  int parameters = 0;
#if defined(SN_MODEL_BARS)
  if (to->by) parameters = sn_model_tangents_count(to->by->tangents);
#endif
  if (sn_sleeps(m, w)) {  // who falls asleep stays where it is
    SN_FOR(i, m->nv) if (w->tree_next[m->dof_treeid[i]] >= 0) w->rk_rate[i] = 0;
    SN_SYNC(lane);
  }
  for (int e = 0; e < 3; ++e) {
    SN_FOR(i, m->nv) {
      const int j = m->dof_jntid[i], type = m->jnt_type[j], k = i - m->jnt_dofadr[j];
      const bool turns = type == SN_JNT_BALL || (type == SN_JNT_FREE && k >= 3);
      a->qpos_next_bar[i] = turns ? k % 3 == e : e == 0;
      a->qpos_bar[i] = a->qacc_bar[i] = 0;
    }
    SN_SYNC(lane);
    sn_integrate_pos_vjp(m, lane, w->rk_rate, sn_timestep(m, w), a->qpos_next_bar, a->qpos_bar, a->qacc_bar);
    SN_FOR(i, m->nv) {
      const int j = m->dof_jntid[i], type = m->jnt_type[j], k = i - m->jnt_dofadr[j];
      const bool turns = type == SN_JNT_BALL || (type == SN_JNT_FREE && k >= 3);
      if (a->qpos_next_bar[i] != 0)
        jacobian_position_row(m, a, i, turns ? i - k % 3 : i, turns ? 3 : 1, to, parameters);
    }
    SN_SYNC(lane);
  }
}

#if defined(SN_HAS_COLUMNS)
// Those of the text that is compiled with SN_PACK.
void sn_jacobian_rows_columns(const SnModel *m, SnWorld *w, SnAdjointColumns *a, SnLane *lane,
                              const SnStepJacobian *to);
size_t sn_model_bar_size_columns(const SnModelTangents *tangents);
#endif

#if defined(SN_MODEL_BARS)
size_t sn_parameter_rows_size(const SnModelTangents *tangents) {
  size_t size = sn_model_bar_size(tangents);
#if defined(SN_HAS_COLUMNS)
  const size_t columns = sn_model_bar_size_columns(tangents);
  size = size > columns ? size : columns;
#endif
  return ROWS_HEAD + size;
}
#endif

SN_FUNC void sn_step_sensitivity(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, const SnStepJacobian *to) {
#if defined(SN_HAS_COLUMNS)
  if (a->host && a->host->columns)
    sn_jacobian_rows_columns(m, w, a->host->columns, lane, to);
  else
#endif
    sn_jacobian_rows(m, w, a, lane, to);
  if (m->opt.integrator != SN_INT_RK4) jacobian_positions(m, w, a, lane, to);
}

SN_FUNC void sn_step_jacobian(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, sn_real *A, sn_real *B) {
  const SnStepJacobian to = {A, B, NULL, NULL};
  sn_step_sensitivity(m, w, a, lane, &to);
}
#endif
