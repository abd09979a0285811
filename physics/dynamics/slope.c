// How forces on links change with the velocities of the dofs: what implicit integrators add to M.
//
// Twists and wrenches of a link about its tree's centre are linear in those of the dofs that move it, so that
//   d qfrc_i / d qvel_j = S_i' sum_k (B_k S_j + I_k c_j)
// over the links k that both dofs move, the subtree of the deeper one. B_k is the slope of what acts on link k by its
// twist: of a fluid (fluid.c), and with `implicit` also of -bias. For the latter, with velocity V_k, inertia I_k and
// x*, x the products of motions with forces and motions, the bias force I A + V x* I V and A = sum S' qvel
// (bias.c) give
//   -[I (s x V) + s x* (I V) + V x* (I s)]       for the twist s,      c_j = -(S'_j - S_j x W_j)
// because A_k grows by S'_j + S_j x (V_k - W_j), where W_j is the velocity behind j's joint: of a free joint's slides
// that behind the slides, which its turns see. Sums over subtrees are made once, of B as 6 x 6 matrices and of I as
// crb.
#include "physics/base/vec.h"
#include "physics/dynamics/dynamics.h"

#if !defined(SN_PACK)
SN_FUNC void sn_sum_subtrees(const SnModel *m, SnLane *lane, sn_real *x, int n) {
  for (int level = m->nlevel - 2; level >= 0; --level) {
    const int *body = m->level_body + m->level_adr[level];
    SN_FOR(k, m->level_adr[level + 1] - m->level_adr[level]) {
      for (int c = m->child_adr[body[k]]; c < m->child_adr[body[k] + 1]; ++c)
        for (int e = 0; e < n; ++e) x[n * body[k] + e] += x[n * m->child_body[c] + e];
    }
    SN_SYNC(lane);
  }
}

// Slope of -bias of link i by its twist.
SN_LOCAL void slope_bias(const SnWorld *w, int i, sn_real *out) {
  const sn_real *V = w->cvel + 6 * i, *I = w->cinert + 10 * i;
  sn_real momentum[6];
  sn_mulinert(momentum, I, V);
  for (int c = 0; c < 6; ++c) {
    sn_real s[6] = {0}, t[6], f[6], sum[6];
    s[c] = 1;
    sn_crossmotion(t, s, V);
    sn_mulinert(sum, I, t);
    sn_crossforce(f, s, momentum);
    for (int e = 0; e < 6; ++e) sum[e] += f[e];
    sn_mulinert(t, I, s);
    sn_crossforce(f, V, t);
    for (int e = 0; e < 6; ++e) out[6 * e + c] = -(sum[e] + f[e]);
  }
}

// c of the dofs of link i.
SN_LOCAL void slope_axes(const SnModel *m, SnWorld *w, int i) {
  const int end = m->body_dofadr[i] + m->body_dofnum[i];
  sn_real vel[6], t[6];
  sn_copy(vel, w->cvel + 6 * m->body_base[i], 6);
  for (int d = m->body_dofadr[i]; d < end;) {
    const int type = m->jnt_type[m->dof_jntid[d]], first = m->jnt_dofadr[m->dof_jntid[d]];
    const int last = d + (type == SN_JNT_BALL || type == SN_JNT_FREE ? 3 : 1);
    for (int k = d; k < last; ++k)
      for (int e = 0; e < 6; ++e) vel[e] += w->cdof[6 * k + e] * w->qvel[k];
    for (int k = d; k < last; ++k) {
      sn_real *c = w->dof_slope + 6 * k;
      const bool fixed = type == SN_JNT_FREE && k < first + 3;  // such a slide has no S' of its own
      sn_crossmotion(t, w->cdof + 6 * k, vel);
      for (int e = 0; e < 6; ++e) c[e] = t[e] - (fixed ? 0 : w->cdof_dot[6 * k + e]);
    }
    d = last;
  }
}

SN_FUNC void sn_velocity_slopes(const SnModel *m, SnWorld *w, SnLane *lane) {
  const bool implicit = m->opt.integrator == SN_INT_IMPLICIT;
  if (m->nv == 0) return;  // no slope is kept where nothing moves
  SN_FOR(k, m->nlink) {
    const int i = m->level_body[k];
    if (implicit)
      slope_bias(w, i, w->link_slope + 36 * i);
    else
      sn_zero(w->link_slope + 36 * i, 36);
    if (implicit) slope_axes(m, w, i);
  }
  SN_SYNC(lane);
  if (sn_in_fluid(m)) sn_fluid_slopes(m, w, lane);
  sn_sum_subtrees(m, lane, w->link_slope, 36);
}

SN_FUNC sn_real sn_velocity_slope(const SnModel *m, const SnWorld *w, int i, int j) {
  const int body = m->dof_bodyid[m->dof_bodyid[i] > m->dof_bodyid[j] ? i : j];
  const sn_real *C = w->link_slope + 36 * body, *S = w->cdof + 6 * i;
  sn_real sum = 0, f[6];
  for (int r = 0; r < 6; ++r) sum += S[r] * sn_dot(C + 6 * r, w->cdof + 6 * j, 6);
  if (m->opt.integrator != SN_INT_IMPLICIT) return sum;
  sn_mulinert(f, w->crb + 10 * body, w->dof_slope + 6 * j);
  return sum + sn_dot(S, f, 6);
}
#endif
