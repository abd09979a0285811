// u = ctrl + gain (x (-) predicted x). Differences of positions are those that MuJoCo's mj_differentiatePos makes: of
// quaternions the rotation vector, in the frame of the predicted one, that leads from it to the measured one. Which
// entries are quaternions the sizes of the model's quantities say: 4 of a ball joint, 7 of a free one.
#include "clients/libsinew_client/feedback_private.h"

#include <math.h>

#include "clients/libsinew_client/accept_private.h"
#include "physics/base/vec.h"

enum { BALL = 4, FREE = 7 };

// Positions and velocities that the quantities of qpos stand for.
static bool fits(const Sinew__V1__ModelDescription *m) {
  size_t nq = 0, nv = 0;
  for (size_t i = 0; i < m->n_qpos; ++i) {
    const uint32_t size = m->qpos[i]->size;
    if (m->qpos[i]->address != nq || (size != 1 && size != BALL && size != FREE)) return false;
    nq += size;
    nv += size == 1 ? 1 : size - 1;
  }
  return nq == m->nq && nv == m->nv;
}

const char *sn_gain_fault(const Sinew__V1__ModelDescription *m, const Sinew__V1__Plan *p) {
  const size_t width = (size_t)m->nu * (2 * (size_t)m->nv + m->na), rows = (size_t)p->steps + 1;
  const Sinew__V1__Trajectory *x = p->states;
  if (p->gain_rows == 0 && p->n_gain == 0) return NULL;
  if (p->gain_rows > p->steps - p->lead || p->n_gain != p->gain_rows * width) return "its gains have the wrong size";
  if (!x || x->n_qpos != rows * m->nq || x->n_qvel != rows * m->nv || x->n_act != rows * m->na)
    return "its gains come without the states that they refer to";
  if (!fits(m)) return "its gains are for a model whose positions are not described";
  if (sn_first_not_finite(p->gain, p->n_gain) < p->n_gain || sn_first_not_finite(x->qpos, x->n_qpos) < x->n_qpos ||
      sn_first_not_finite(x->qvel, x->n_qvel) < x->n_qvel || sn_first_not_finite(x->act, x->n_act) < x->n_act)
    return "its gains, or the states that they refer to, are not finite";
  return NULL;
}

// Adds gain times d for all controls; `column` is the column of d among those of the gain.
static void add(const double *gain, size_t nu, size_t n, size_t column, double d, double *ctrl) {
  for (size_t i = 0; i < nu; ++i) ctrl[i] += gain[i * n + column] * d;
}

static void turn_between(const double *from, const double *to, double *turn) {
  sn_real a[4], b[4], back[4], q[4], velocity[3];
  for (int k = 0; k < 4; ++k) {
    a[k] = (sn_real)from[k];
    b[k] = (sn_real)to[k];
  }
  sn_normalize4(a);
  sn_normalize4(b);
  sn_negquat(back, a);
  sn_mulquat(q, back, b);
  sn_quat2vel(velocity, q);
  for (int k = 0; k < 3; ++k) turn[k] = velocity[k];
}

// Entries of one joint; returns how many columns it has.
static size_t add_joint(const double *gain, size_t nu, size_t n, size_t column, uint32_t size, const double *from,
                        const double *to, double *ctrl) {
  double d[6];
  const size_t plain = size == 1 ? 1 : size - BALL, columns = size == 1 ? 1 : size - 1;
  for (size_t k = 0; k < plain; ++k) d[k] = to[k] - from[k];
  if (size > 1) turn_between(from + plain, to + plain, d + plain);
  for (size_t k = 0; k < columns; ++k) add(gain, nu, n, column + k, d[k], ctrl);
  return columns;
}

bool sn_feedback(const Sinew__V1__ModelDescription *m, const Sinew__V1__Plan *p, size_t row, const SinewState *state,
                 double *ctrl) {
  const size_t nu = m->nu, nq = m->nq, nv = m->nv, na = m->na, n = 2 * nv + na;
  if (row < p->lead || row - p->lead >= p->gain_rows) return false;
  const double *gain = p->gain + (row - p->lead) * nu * n;
  const double *qpos = p->states->qpos + row * nq, *qvel = p->states->qvel + row * nv, *act = p->states->act + row * na;
  size_t column = 0;
  for (size_t i = 0; i < m->n_qpos; ++i) {
    const uint32_t at = m->qpos[i]->address;
    column += add_joint(gain, nu, n, column, m->qpos[i]->size, qpos + at, state->qpos + at, ctrl);
  }
  for (size_t k = 0; k < nv; ++k) add(gain, nu, n, nv + k, state->qvel[k] - qvel[k], ctrl);
  for (size_t k = 0; k < na; ++k) add(gain, nu, n, 2 * nv + k, state->act[k] - act[k], ctrl);
  return true;
}
