// Sizes of steps: the error of a step, the controller, the first step. Host only (horizon.h).
//
// With r the inverse of the error of a step in units of the tolerance, k the order of the method and r1, r2 those of
// the accepted steps before it, the next size is this one times
//   safety r^((P + I + D) / k) r1^(-(P + 2 D) / k) r2^(D / k),
// bounded by `shrink` and `grow`; at least 1 behind an accepted step, at most `safety` behind a rejected one.
#include "physics/base/vec.h"
#include "physics/step/horizon_private.h"

// Adds the square of x in units of the tolerance at sizes a and b of the state.
static void add_square(const SnHorizon *h, double *sum, sn_real x, sn_real a, sn_real b) {
  const sn_real scale = h->settings.atol + h->settings.rtol * sn_max(sn_abs(a), sn_abs(b));
  *sum += (double)(x / scale) * (double)(x / scale);
}

// to (nq): the change of qpos, to first order, by a small tangent (nv).
static void tangent_to_qpos(const SnModel *m, const sn_real *qpos, const sn_real *tangent, sn_real *to) {
  for (int j = 0; j < m->njnt; ++j) {
    const int type = m->jnt_type[j];
    int q = m->jnt_qposadr[j], v = m->jnt_dofadr[j];
    if (type == SN_JNT_FREE) {
      sn_copy3(to + q, tangent + v);
      q += 3;
      v += 3;
    }
    if (type == SN_JNT_FREE || type == SN_JNT_BALL) {
      const sn_real half[4] = {0, tangent[v] / 2, tangent[v + 1] / 2, tangent[v + 2] / 2};
      sn_mulquat(to + q, qpos + q, half);
    } else {
      to[q] = tangent[v];
    }
  }
}

sn_real sn_horizon_error(SnHorizon *h, const SnKeptStep *s) {
  const SnModel *m = &h->model;
  SnHorizonScratch *x = h->scratch;
  const SnWorld *w = &h->world;
  const sn_real dt = s->time[1];
  double sum = 0;
  sn_horizon_sum(h, s, x->rk->b, x->rk->stages);
  for (int i = 0; i < m->nv; ++i) x->moved[i] = dt * x->xi[i];
  sn_horizon_sum(h, s, x->rk->error, x->rk->stages);
  for (int i = 0; i < m->nv; ++i) {
    x->xi[i] *= dt;
    add_square(h, &sum, x->xi[i], 0, x->moved[i]);
    add_square(h, &sum, dt * x->dv[i], s->qvel[i], w->qvel[i]);
  }
  tangent_to_qpos(m, w->qpos, x->xi, x->quat_error);
  for (int i = 0; i < m->nq; ++i) add_square(h, &sum, x->quat_error[i], s->qpos[i], w->qpos[i]);
  for (int i = 0; i < m->na; ++i) add_square(h, &sum, dt * x->dact[i], s->act[i], w->act[i]);
  return (sn_real)sqrt(sum / sn_maxi(m->nq + 2 * m->nv + m->na, 1));
}

sn_real sn_horizon_factor(SnHorizon *h, sn_real error, bool accepted) {
  const SnHorizonSettings *s = &h->settings;
  SnHorizonScratch *x = h->scratch;
  const sn_real order = (sn_real)x->rk->order, r = 1 / sn_max(error, SN_MINVAL);
  sn_real factor = s->safety * sn_pow(r, (s->p + s->i + s->d) / order);
  factor *= sn_pow(x->last, -(s->p + 2 * s->d) / order) * sn_pow(x->before, s->d / order);
  if (!accepted) return sn_clip(factor, s->shrink, s->safety);
  x->before = x->last;
  x->last = error > SN_MINVAL ? r : 1;
  return sn_clip(factor, 1, s->grow);
}

// Root mean square, in units of the tolerance, of (qpos, qvel, act) when q (nq) is the part of qpos.
static sn_real size_of(const SnHorizon *h, const SnKeptStep *s, const sn_real *q, const sn_real *v,
                       const sn_real *act) {
  const SnModel *m = &h->model;
  double sum = 0;
  for (int i = 0; i < m->nq; ++i) add_square(h, &sum, q[i], s->qpos[i], 0);
  for (int i = 0; i < m->nv; ++i) add_square(h, &sum, v[i], s->qvel[i], 0);
  for (int i = 0; i < m->na; ++i) add_square(h, &sum, act[i], s->act[i], 0);
  return (sn_real)sqrt(sum / sn_maxi(m->nq + m->nv + m->na, 1));
}

// d0, d1, d2 of the book are sizes of the state, of its rate and of the rate's rate.
sn_real sn_horizon_first(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, int segment) {
  const SnModel *m = &h->model;
  SnHorizonScratch *x = h->scratch;
  static const double one = 1;
  const sn_real d0 = size_of(h, s, s->qpos, s->qvel, s->act);
  tangent_to_qpos(m, s->qpos, s->rate, x->quat_error);
  const sn_real d1 = size_of(h, s, x->quat_error, s->acc, s->adot);
  const sn_real h0 = d0 < SN_R(1e-5) || d1 < SN_R(1e-5) ? SN_R(1e-6) : SN_R(0.01) * d0 / d1;
  sn_horizon_sum(h, s, &one, 1);
  sn_horizon_move(h, s, h0, false);
  if (!sn_horizon_forward(h, in, s, segment, 1, h0)) return h0;
  for (int i = 0; i < m->nv; ++i) {
    x->xi[i] = s->rate[m->nv + i] - s->rate[i];
    x->dv[i] = s->acc[m->nv + i] - s->acc[i];
  }
  for (int i = 0; i < m->na; ++i) x->dact[i] = s->adot[m->na + i] - s->adot[i];
  tangent_to_qpos(m, s->qpos, x->xi, x->quat_error);
  const sn_real d2 = size_of(h, s, x->quat_error, x->dv, x->dact) / h0, most = sn_max(d1, d2);
  const sn_real h1 =
      most <= SN_MINVAL ? sn_max(SN_R(1e-6), h0 * SN_R(1e-3)) : sn_pow(SN_R(0.01) / most, 1 / (sn_real)x->rk->order);
  return sn_min(100 * h0, h1);
}
