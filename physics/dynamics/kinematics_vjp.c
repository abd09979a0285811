// The adjoint of kinematics.c: one sweep from the leaves; and what motions do to links, tendons and actuators.
//
// Stages leave, per link, a wrench W (the derivative for a small rigid displacement of the link), the derivatives T_z
// of the twists of the motions z, and P of cacc. With S_k the axis of dof k (cdof), z_k its velocity in motion z, and
// d_k the displacement that all dofs before k make,
//   dtwist_z = sum_k (d_k x S_k) z_k + S_k dz_k,    dcacc = sum_k v_k [ dV_k x S_k + V_k x (d_k x S_k) ] + (V_k x S_k)
//   dv_k
// with V_k the velocity before the joint. So, dofs from the last to the first, with W, T, P summed over all behind k:
//   qpos_bar_k += S_k . W,    qvel_bar_k += S_k . T_v + (V_k x S_k) . P
//   W += S_k xx U,  U = sum_z z_k T_z + v_k V_k xt P;    T_v += v_k S_k xx P
// where d . (S xx U) = U . (d x S) and S . (V xt P) = P . (V x S) for the cross product x of motions. The turns of a
// ball or free joint have one V before all three, and their axes are displaced by the joint as a whole; a free joint's
// translations are displaced by nothing. What a link has summed up, its base adds: one sweep from the leaves.
//
// By the model. A shift or turn of a link in its base does what a joint there would do that does not move, S . W with
// the sum W over all behind. At a joint, between the frames R before it and R' behind it, W behind it and U of its
// axes:
//   anchor p moved by d (world):  what is behind shifts by d - R' R^-1 d, its axes a run through another point: d x a
//   axis of a slide by e:         a shift (q - q0) e, and the axis itself
//   axis of a hinge by e:         a turn sin(q - q0) e + (1 - cos(q - q0)) a x e about the anchor, and the axis itself
//   q0 of either:                 - S . W
#include "physics/base/vec.h"
#include "physics/dynamics/dynamics.h"

// r += s * (V xt P): S . (V xt P) = P . (V x S).
SN_INLINE void kin_add_velocity_wrench(sn_bar *r, const sn_real *V, const sn_bar *P, sn_real s) {
  sn_bar t[3];
  sn_cross(t, P, V);
  sn_addtoscl3(r, t, s);
  sn_cross(t, P + 3, V + 3);
  sn_addtoscl3(r, t, s);
  sn_cross(t, P + 3, V);
  sn_addtoscl3(r + 3, t, s);
}

// The wrench on a mocap body: the torque at its origin instead of the tree's centre.
SN_LOCAL void kin_mocap_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int link) {
  const int mocap = m->body_mocapid[link];
  if (mocap < 0) return;
  const sn_bar *W = a->wrench + 6 * link;
  sn_bar *bar = a->mocap_bar + 6 * mocap, t[3];
  sn_real arm[3];
  sn_sub3(arm, w->subtree_com + 3 * m->body_rootid[link], w->xpos + 3 * link);
  sn_cross(t, arm, W + 3);
  for (int e = 0; e < 3; ++e) {
    bar[e] += W[e] + t[e];
    bar[3 + e] += W[3 + e];
  }
}

#if defined(SN_SERIAL) || defined(SN_MODEL_BARS)
// The sums of a link on its way from the last dof to the first: wrench, twist_bar and acc_bar of it.
typedef struct KinSweep {
  sn_bar *W, *T, *P;
  sn_real V[6];  // velocity before the dof at hand
} KinSweep;

#if defined(SN_MODEL_BARS)
// Keeps the wrench W of what is behind dof k, before its axis adds to it.
SN_LOCAL void kin_keep_wrench(const SnAdjoint *a, const KinSweep *s, int k) {
  if (sn_model_bar(a)) sn_copy(sn_model_bar(a)->dof_wrench + 6 * k, s->W, 6);
}
#endif

// W += what dof k's axis receives when everything before it moves; V is the velocity before its joint.
SN_LOCAL void kin_sweep_axis(const SnModel *m, const SnWorld *w, const SnAdjoint *a, KinSweep *s, int k) {
  sn_bar U[6] = {0};
  for (int z = 0; z < SN_NMOTION; ++z) {
    const sn_bar rate = a->motion[z * m->nv + k];
    SN_UNROLL for (int e = 0; e < 6; ++e) U[e] += rate * s->T[6 * z + e];
  }
  kin_add_velocity_wrench(U, s->V, s->P, w->qvel[k]);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) sn_copy(sn_model_bar(a)->dof_pull + 6 * k, U, 6);
#endif
  sn_addcrossforce(s->W, w->cdof + 6 * k, U, sn_bar_of(1));
}

SN_INLINE void kin_sweep_qpos(const SnWorld *w, SnAdjoint *a, const KinSweep *s, int k) {
  a->qpos_bar[k] += sn_dot(w->cdof + 6 * k, s->W, 6);
}

SN_INLINE void kin_sweep_qvel(const SnWorld *w, SnAdjoint *a, const KinSweep *s, int k) {
  a->qvel_bar[k] += sn_dot(w->cdof + 6 * k, s->T + 6 * SN_VEL, 6) + sn_dot(w->cdof_dot + 6 * k, s->P, 6);
}

// T_v += what the velocity before dof k receives from the acceleration of its axis.
SN_INLINE void kin_sweep_velocity(const SnWorld *w, KinSweep *s, int k) {
  sn_addcrossforce(s->T + 6 * SN_VEL, w->cdof + 6 * k, s->P, sn_bar_of(w->qvel[k]));
}

// Three turns [k, k + 3) of a ball or free joint.
SN_LOCAL void kin_sweep_turns(const SnModel *m, const SnWorld *w, SnAdjoint *a, KinSweep *s, int k) {
#if defined(SN_MODEL_BARS)
  kin_keep_wrench(a, s, k);
#endif
  for (int i = k; i < k + 3; ++i) kin_sweep_axis(m, w, a, s, i);
  for (int i = k; i < k + 3; ++i) {
    kin_sweep_qpos(w, a, s, i);
    kin_sweep_qvel(w, a, s, i);
  }
  for (int i = k; i < k + 3; ++i) kin_sweep_velocity(w, s, i);
}

// V <- V less the velocity of `n` dofs from k.
SN_INLINE void kin_sweep_back(const SnWorld *w, KinSweep *s, int k, int n) {
  for (int i = k; i < k + n; ++i) SN_UNROLL for (int e = 0; e < 6; ++e) s->V[e] -= w->cdof[6 * i + e] * w->qvel[i];
}

// The dofs of a link from the last to the first; the links behind it are summed up.
SN_LOCAL void kin_sweep_link(const SnModel *m, const SnWorld *w, SnAdjoint *a, int link) {
  KinSweep s = {a->wrench + 6 * link, a->twist_bar + 6 * SN_NMOTION * link, a->acc_bar + 6 * link, {0}};
  for (int c = m->child_adr[link]; c < m->child_adr[link + 1]; ++c) {
    const int child = m->child_body[c];
    if (sn_is_left_out(m, a, child)) continue;
    SN_UNROLL for (int e = 0; e < 6; ++e) s.W[e] += a->wrench[6 * child + e];
    SN_UNROLL for (int e = 0; e < 6; ++e) s.P[e] += a->acc_bar[6 * child + e];
    SN_UNROLL for (int e = 0; e < 6 * SN_NMOTION; ++e) s.T[e] += a->twist_bar[6 * SN_NMOTION * child + e];
  }
  sn_copy(s.V, w->cvel + 6 * link, 6);
  const int first = m->body_dofadr[link];
  for (int k = first + m->body_dofnum[link] - 1; k >= first;) {
    const int type = m->jnt_type[m->dof_jntid[k]];
    if (type == SN_JNT_HINGE || type == SN_JNT_SLIDE) {
      kin_sweep_back(w, &s, k, 1);
#if defined(SN_MODEL_BARS)
      kin_keep_wrench(a, &s, k);
#endif
      kin_sweep_qpos(w, a, &s, k);
      kin_sweep_qvel(w, a, &s, k);
      kin_sweep_axis(m, w, a, &s, k);
      kin_sweep_velocity(w, &s, k);
      k -= 1;
      continue;
    }
    k -= 2;
    kin_sweep_back(w, &s, k, 3);
    kin_sweep_turns(m, w, a, &s, k);
    k -= 1;
    if (type == SN_JNT_BALL) continue;
    for (int i = k - 2; i <= k; ++i) {
      kin_sweep_qpos(w, a, &s, i);
      kin_sweep_qvel(w, a, &s, i);
    }
    k -= 3;
  }
  kin_mocap_vjp(m, w, a, link);
}

// All links, from the leaves.
SN_LOCAL void kin_sweep_links(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  for (int level = m->nlevel - 1; level >= 0; --level) {
    const int *body = m->level_body + m->level_adr[level];
    SN_FOR(k, m->level_adr[level + 1] - m->level_adr[level])
    if (!sn_is_left_out(m, a, body[k])) kin_sweep_link(m, w, a, body[k]);
    SN_SYNC(lane);
  }
}
#endif

#if !defined(SN_SERIAL)
// The sweep on several lanes, to the same numbers. A sum over links goes level by level, a lane an entry; what dofs add
// to it and read of it is done for all of them at once, before and behind. Of a dof, kin_dof holds the terms that it
// adds (for rotations two each, then one for translations), and the sum that it reads.
enum { KIN_TERMS = 9, KIN_DOF = 15 };

// The terms of s S xx f, as sn_addcrossforce adds them.
SN_INLINE void kin_force_terms(sn_bar *term, const sn_real *S, const sn_bar *f, sn_bar s) {
  sn_cross(term, S, f);
  sn_cross(term + 3, S + 3, f + 3);
  sn_cross(term + 6, S, f + 3);
  for (int e = 0; e < KIN_TERMS; ++e) term[e] *= s;
}

// Adds up entry e of a link's sum and of those that hang on it; stride: from link to link.
SN_INLINE sn_bar kin_add_children(const SnModel *m, const sn_bar *x, int stride, int link, int e) {
  const int end = m->child_adr[link + 1];
  sn_bar sum = x[stride * link + e];
  for (int c = m->child_adr[link]; c < end; ++c) sum += x[stride * m->child_body[c] + e];
  return sum;
}

// The same with the terms of dofs, from the last to the first. Turns read the sum together, before all three have
// added to it, or behind that (late), where a single dof reads it before in both cases.
SN_LOCAL void kin_add_dofs(const SnModel *m, SnAdjoint *a, sn_bar *x, int stride, int link, int e, bool late) {
  const int first = m->body_dofadr[link];
  sn_bar sum = kin_add_children(m, x, stride, link, e), *dof = a->kin_dof;
  for (int k = first + m->body_dofnum[link] - 1; k >= first;) {
    const int type = m->jnt_type[m->dof_jntid[k]], n = type == SN_JNT_BALL || type == SN_JNT_FREE ? 3 : 1;
    k -= n;
    for (int i = k + 1; i <= k + n && !(late && n == 3); ++i) dof[KIN_DOF * i + KIN_TERMS + e] = sum;
    for (int i = k + 1; i <= k + n; ++i) {
      const sn_bar *term = dof + KIN_DOF * i;
      sum += term[e < 3 ? e : 3 + e];
      if (e < 3) sum += term[3 + e];
    }
    for (int i = k + 1; i <= k + n && late && n == 3; ++i) dof[KIN_DOF * i + KIN_TERMS + e] = sum;
    if (type != SN_JNT_FREE) continue;
    k -= 3;
    for (int i = k + 1; i <= k + 3; ++i) dof[KIN_DOF * i + KIN_TERMS + e] = sum;
  }
  x[stride * link + e] = sum;
}

// The bars of twists and accelerations, but for those of the velocity.
SN_LOCAL void kin_sum_level(const SnModel *m, SnAdjoint *a, SnLane *lane, const int *body, int n) {
  enum { N = 6 * SN_NMOTION };
  sn_bar *T = a->twist_bar, *P = a->acc_bar;
  (void)lane;
  SN_FOR(item, N * n) {
    const int link = body[item / N], e = item % N;
    if (e / 6 == SN_VEL)
      P[6 * link + e % 6] = kin_add_children(m, P, 6, link, e % 6);
    else
      T[N * link + e] = kin_add_children(m, T, N, link, e);
  }
}

// Velocity before the joint of dof k, from that of its link.
SN_INLINE void kin_velocity_before(const SnModel *m, const SnWorld *w, int k, sn_real *V) {
  const int link = m->dof_bodyid[k];
  const sn_real *cdof = w->cdof, *qvel = w->qvel;
  sn_copy(V, w->cvel + 6 * link, 6);
  for (int d = m->body_dofadr[link] + m->body_dofnum[link] - 1; d >= k;) {
    const int type = m->jnt_type[m->dof_jntid[d]], n = type == SN_JNT_BALL || type == SN_JNT_FREE ? 3 : 1;
    d -= n;
    for (int i = d + 1; i <= d + n; ++i)
      for (int e = 0; e < 6; ++e) V[e] -= cdof[6 * i + e] * qvel[i];
  }
}

// True where dof k is a slide of a free joint, whose axis nothing displaces.
SN_INLINE bool kin_is_free_slide(const SnModel *m, int k) {
  const int j = m->dof_jntid[k];
  return m->jnt_type[j] == SN_JNT_FREE && k < m->jnt_dofadr[j] + 3;
}

// What dof k adds to the bar of the velocity before it.
SN_LOCAL void kin_velocity_terms(const SnModel *m, const SnWorld *w, SnAdjoint *a, int k) {
  if (!kin_is_free_slide(m, k))
    kin_force_terms(a->kin_dof + KIN_DOF * k, w->cdof + 6 * k, a->acc_bar + 6 * m->dof_bodyid[k],
                    sn_bar_of(w->qvel[k]));
}

// The bar of the velocity of dof k, and what its axis adds to the wrench.
SN_LOCAL void kin_wrench_terms(const SnModel *m, const SnWorld *w, SnAdjoint *a, int k) {
  const int link = m->dof_bodyid[k];
  const sn_bar *P = a->acc_bar + 6 * link, *Tv = a->kin_dof + KIN_DOF * k + KIN_TERMS;
  sn_bar U[6] = {0};
  sn_real V[6];
  a->qvel_bar[k] += sn_dot(w->cdof + 6 * k, Tv, 6) + sn_dot(w->cdof_dot + 6 * k, P, 6);
  if (kin_is_free_slide(m, k)) return;
  for (int z = 0; z < SN_NMOTION; ++z) {
    const sn_bar rate = a->motion[z * m->nv + k], *T = z == SN_VEL ? Tv : a->twist_bar + 6 * (SN_NMOTION * link + z);
    for (int e = 0; e < 6; ++e) U[e] += rate * T[e];
  }
  kin_velocity_before(m, w, k, V);
  kin_add_velocity_wrench(U, V, P, w->qvel[k]);
  kin_force_terms(a->kin_dof + KIN_DOF * k, w->cdof + 6 * k, U, sn_bar_of(1));
}

// Three sums from the leaves: all but these two; the bar of the velocity; the wrench.
SN_LOCAL void kin_sweep(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  enum { N = 6 * SN_NMOTION };
  for (int pass = 0; pass < 3; ++pass) {
    for (int level = m->nlevel - 1; level >= 0; --level) {
      const int *body = m->level_body + m->level_adr[level], n = m->level_adr[level + 1] - m->level_adr[level];
      if (pass == 0) kin_sum_level(m, a, lane, body, n);
      if (pass == 1) SN_FOR(i, 6 * n) kin_add_dofs(m, a, a->twist_bar + 6 * SN_VEL, N, body[i / 6], i % 6, false);
      if (pass == 2) SN_FOR(i, 6 * n) kin_add_dofs(m, a, a->wrench, 6, body[i / 6], i % 6, true);
      SN_SYNC(lane);
    }
    if (pass == 0) SN_FOR(k, m->nv) kin_velocity_terms(m, w, a, k);
    if (pass == 1) SN_FOR(k, m->nv) kin_wrench_terms(m, w, a, k);
    if (pass < 2) SN_SYNC(lane);  // behind a level there is one already
  }
  SN_FOR(k, m->nv) a->qpos_bar[k] += sn_dot(w->cdof + 6 * k, a->kin_dof + KIN_DOF * k + KIN_TERMS, 6);
  SN_FOR(k, m->nlink) kin_mocap_vjp(m, w, a, m->level_body[k]);
  SN_SYNC(lane);
}
#endif

#if defined(SN_MODEL_BARS)
// A joint on the way back through its link: the frame behind it, then that before it.
typedef struct KinJoint {
  sn_real pos[3], mat[9], before_pos[3], before_mat[9];
  sn_real anchor[3];
} KinJoint;

// Finds anchor and the frame before joint j from that behind it.
SN_LOCAL void kin_joint_back(const SnModel *m, const SnWorld *w, int j, KinJoint *f) {
  const int type = m->jnt_type[j], adr = m->jnt_qposadr[j];
  const sn_real *q = w->qpos + adr, *p = m->jnt_pos + 3 * j;
  if (type == SN_JNT_SLIDE) {
    sn_copy(f->before_mat, f->mat, 9);
    sn_addscl3(f->before_pos, f->pos, w->cdof + 6 * m->jnt_dofadr[j] + 3, m->qpos0[adr] - q[0]);
    sn_frame_point(f->anchor, f->before_pos, f->before_mat, p);
    return;
  }
  sn_real turn[4], mat[9];
  if (type == SN_JNT_BALL) {
    sn_copy4(turn, q);
    sn_normalize4(turn);
  } else {
    sn_axisangle2quat(turn, m->jnt_axis + 3 * j, q[0] - m->qpos0[adr]);
  }
  sn_real back[4];
  sn_negquat(back, turn);
  sn_quat2mat(mat, back);
  sn_mulmatmat3(f->before_mat, f->mat, mat);
  sn_frame_point(f->anchor, f->pos, f->mat, p);
  sn_real arm[3];
  sn_mulmatvec3(arm, f->before_mat, p);
  sn_sub3(f->before_pos, f->anchor, arm);
}

// Torque about a point of a wrench about c.
SN_LOCAL void kin_torque(sn_bar *torque, const sn_bar *W, const sn_real *c, const sn_real *point) {
  sn_real arm[3];
  sn_bar t[3];
  sn_sub3(arm, c, point);
  sn_cross(t, arm, W + 3);
  sn_add3(torque, W, t);
}

// Anchor of joint j, of a hinge, slide or ball.
SN_LOCAL void kin_anchor_model_vjp(const SnModel *m, const SnWorld *w, SnModelBar *bar, int j, const KinJoint *f) {
  const int dof = m->jnt_dofadr[j], n = m->jnt_type[j] == SN_JNT_BALL ? 3 : 1;
  const sn_bar *force = bar->dof_wrench + 6 * dof + 3;
  sn_bar local[3], t[3] = {0}, u[3];
  for (int k = dof; m->jnt_type[j] != SN_JNT_SLIDE && k < dof + n; ++k) {
    sn_cross(u, w->cdof + 6 * k, bar->dof_pull + 6 * k + 3);  // U . (d x a) = d . (a x U)
    sn_addto3(t, u);
  }
  sn_addto3(t, force);
  sn_mulmattvec3(local, f->before_mat, t);
  sn_mulmattvec3(u, f->mat, force);
  sn_subfrom3(local, u);
  sn_addto3(bar->jnt_pos + 3 * j, local);
}

// Axis of joint j, a hinge or slide.
SN_LOCAL void kin_axis_model_vjp(const SnModel *m, const SnWorld *w, SnModelBar *bar, int j, const sn_real *c,
                                 const KinJoint *f) {
  const int dof = m->jnt_dofadr[j], adr = m->jnt_qposadr[j];
  const sn_bar *W = bar->dof_wrench + 6 * dof, *U = bar->dof_pull + 6 * dof;
  const sn_real *a = w->cdof + 6 * dof;
  const sn_real q = w->qpos[adr] - m->qpos0[adr];
  sn_bar e[3], t[3], torque[3], local[3];
  if (m->jnt_type[j] == SN_JNT_SLIDE) {
    sn_addscl3(e, U + 3, W + 3, q);
  } else {
    kin_torque(torque, W, c, f->anchor);
    kin_torque(e, U, c, f->anchor);
    sn_addtoscl3(e, torque, sn_sin(q));
    sn_cross(t, torque, a);
    sn_addtoscl3(e, t, 1 - sn_cos(q));
  }
  sn_mulmattvec3(local, f->before_mat, e);
  sn_addto3(bar->jnt_axis + 3 * j, local);
}

// Adds the bars of axes that stages have handed on themselves (dof_own) to what the sweep has kept of the dofs of link
// i, and to the wrench W on the link: the bars, and the wrench of the axes on dofs before them.
SN_LOCAL void kin_own_model_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int i, sn_bar *W) {
  const SnModelBar *bar = sn_model_bar(a);
  const int first = m->body_dofadr[i];
  sn_bar behind[6] = {0};
  for (int k = first + m->body_dofnum[i] - 1; k >= first;) {
    const int n = m->jnt_type[m->dof_jntid[k]] == SN_JNT_BALL ? 3 : 1;
    sn_bar joint[6] = {0};
    for (int d = k - n + 1; d <= k; ++d) {
      const sn_bar *own = bar->dof_own + 6 * d;
      for (int e = 0; e < 6; ++e) bar->dof_wrench[6 * d + e] += behind[e];
      for (int e = 0; e < 6; ++e) bar->dof_pull[6 * d + e] += own[e];
      sn_addcrossforce(joint, w->cdof + 6 * d, own, sn_bar_of(1));
    }
    for (int e = 0; e < 6; ++e) behind[e] += joint[e];
    k -= n;
  }
  for (int e = 0; e < 6; ++e) W[e] += behind[e];
}

// A link's frame in its base and its joints, from what the sweep has kept.
SN_LOCAL void kin_link_model_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i) {
  SnModelBar *bar = sn_model_bar(a);
  const int first = m->body_jntadr[i], base = m->body_base[i];
  const sn_real *c = w->subtree_com + 3 * m->body_rootid[i];
  sn_bar W[6];
  KinJoint f;
  if (m->body_mocapid[i] >= 0 || (m->body_jntnum[i] > 0 && m->jnt_type[first] == SN_JNT_FREE)) return;
  sn_copy(W, a->wrench + 6 * i, 6);
  kin_own_model_vjp(m, w, a, i, W);
  sn_copy3(f.pos, w->xpos + 3 * i);
  sn_copy(f.mat, w->xmat + 9 * i, 9);
  for (int j = first + m->body_jntnum[i] - 1; j >= first && m->body_jntnum[i] > 0; --j) {
    const int dof = m->jnt_dofadr[j];
    kin_joint_back(m, w, j, &f);
    if (bar->jnt_pos) kin_anchor_model_vjp(m, w, bar, j, &f);
    if (m->jnt_type[j] != SN_JNT_BALL) {
      if (bar->jnt_axis) kin_axis_model_vjp(m, w, bar, j, c, &f);
      if (bar->qpos0) bar->qpos0[m->jnt_qposadr[j]] -= sn_dot(w->cdof + 6 * dof, bar->dof_wrench + 6 * dof, 6);
    }
    sn_copy3(f.pos, f.before_pos);
    sn_copy(f.mat, f.before_mat, 9);
  }
  sn_bar local[3], torque[3];
  if (bar->base_pos) {
    sn_mulmattvec3(local, w->xmat + 9 * base, W + 3);
    sn_addto3(bar->base_pos + 3 * i, local);
  }
  if (!bar->base_mat) return;
  kin_torque(torque, W, c, f.pos);
  sn_mulmattvec3(local, w->xmat + 9 * base, torque);
  sn_addto3(bar->base_mat + 3 * i, local);
}

// Wrenches on geoms and sites: to their frames in their links. Leaves the wrenches at zero.
SN_LOCAL void kin_objects_model_vjp(const SnWorld *w, int count, const int *link, sn_bar *wrench, sn_bar *pos,
                                    sn_bar *turn) {
  sn_bar local[3];
  for (int i = 0; i < count; ++i) {
    const sn_real *R = w->xmat + 9 * link[i];
    if (turn) {
      sn_mulmattvec3(local, R, wrench + 6 * i);
      sn_addto3(turn + 3 * i, local);
    }
    if (pos) {
      sn_mulmattvec3(local, R, wrench + 6 * i + 3);
      sn_addto3(pos + 3 * i, local);
    }
  }
  sn_zero(wrench, 6 * count);
}

SN_FUNC void sn_welded_model_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int body, const sn_bar *force,
                                 const sn_bar *torque) {
  const int link = m->link_of_body[body];
  const SnModelBar *bar = sn_model_bar(a);
  sn_bar local[3];
  if (!bar || link == body) return;
  if (bar->base_pos) {
    sn_mulmattvec3(local, w->xmat + 9 * link, force);
    sn_addto3(bar->base_pos + 3 * body, local);
  }
  if (bar->base_mat) {
    sn_mulmattvec3(local, w->xmat + 9 * link, torque);
    sn_addto3(bar->base_mat + 3 * body, local);
  }
}

SN_FUNC void sn_kinematics_model_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a) {
  SnModelBar *bar = sn_model_bar(a);
  for (int k = 0; k < m->nlink; ++k) kin_link_model_vjp(m, w, a, m->level_body[k]);
  sn_zero(bar->dof_own, 6 * m->nv);
  kin_objects_model_vjp(w, m->ngeom, m->link_of_geom, bar->geom_wrench, bar->geom_lpos, bar->geom_lmat);
  kin_objects_model_vjp(w, m->nsite, m->link_of_site, bar->site_wrench, bar->site_lpos, bar->site_lmat);
  kin_objects_model_vjp(w, m->nbody, m->link_of_body, bar->body_wrench, bar->body_lpos, bar->body_lmat);
}
#endif

SN_FUNC void sn_kinematics_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  SN_SYNC(lane);
#if defined(SN_SERIAL)
  kin_sweep_links(m, w, a, lane);
#elif !defined(SN_MODEL_BARS)
  kin_sweep(m, w, a, lane);
#else
  if (sn_model_bar(a))
    kin_sweep_links(m, w, a, lane);
  else
    kin_sweep(m, w, a, lane);
#endif
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) {
    SN_ONE(lane) sn_kinematics_model_vjp(m, w, a);
    SN_SYNC(lane);
  }
#endif
}

#if defined(SN_SERIAL)
// Twists of a link; those of its base are done.
SN_LOCAL void kin_propagate_link(const SnModel *m, const SnWorld *w, SnAdjoint *a, int link) {
  sn_bar twist[6 * SN_NMOTION];
  sn_copy(twist, a->twist + 6 * SN_NMOTION * m->body_base[link], 6 * SN_NMOTION);
  for (int k = m->body_dofadr[link]; k < m->body_dofadr[link] + m->body_dofnum[link]; ++k) {
    const sn_real *S = w->cdof + 6 * k;
    for (int z = 0; z < SN_NMOTION; ++z) {
      const sn_bar rate = a->motion[z * m->nv + k];
      for (int e = 0; e < 6; ++e) twist[6 * z + e] += S[e] * rate;
    }
  }
  sn_copy(a->twist + 6 * SN_NMOTION * link, twist, 6 * SN_NMOTION);
}

// Those of the n links of a level.
SN_LOCAL void kin_propagate_level(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane, const int *body,
                                  int n) {
  (void)lane;
  for (int k = 0; k < n; ++k)
    if (!sn_is_left_out(m, a, body[k])) kin_propagate_link(m, w, a, body[k]);
}
#else
// The same, a lane an entry of a twist.
SN_LOCAL void kin_propagate_level(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane, const int *body,
                                  int n) {
  enum { N = 6 * SN_NMOTION };
  SN_FOR(item, N * n) {
    const int link = body[item / N], e = item % N, first = m->body_dofadr[link], end = first + m->body_dofnum[link];
    const sn_bar *rate = a->motion + e / 6 * m->nv;
    sn_bar twist = a->twist[N * m->body_base[link] + e];
    for (int k = first; k < end; ++k) twist += w->cdof[6 * k + e % 6] * rate[k];
    a->twist[N * link + e] = twist;
  }
}
#endif

// rate[z] = J z for a sparse row J of n entries. The sums are local, so that they stay in registers.
SN_LOCAL void kin_row_rates(const SnModel *m, const SnAdjoint *a, const sn_real *J, const int *col, int n,
                            sn_bar *rate) {
  sn_bar sum[SN_NMOTION] = {0};
  for (int k = 0; k < n; ++k) {
    const sn_bar *motion = a->motion + col[k];
    const sn_real j = J[k];
    for (int z = 0; z < SN_NMOTION; ++z) sum[z] += j * motion[z * m->nv];
  }
  sn_copy(rate, sum, SN_NMOTION);
}

// trn_rate of the outputs of actuator i: that of its tendon times the gear, or moment times motion.
SN_LOCAL void kin_output_rates(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i) {
  const int first = m->actuator_outadr[i];
  if (m->actuator_trntype[i] == SN_TRN_TENDON) {
    const sn_real gear = m->actuator_gear[6 * first];
    const sn_bar *rate = a->ten_rate + SN_NMOTION * m->actuator_trnid[2 * i];
    for (int z = 0; z < SN_NMOTION; ++z) a->trn_rate[SN_NMOTION * first + z] = gear * rate[z];
    return;
  }
  for (int out = first; out < first + m->actuator_outnum[i]; ++out) {
    const int adr = m->mom_rowadr[out];
    kin_row_rates(m, a, w->actuator_moment + adr, m->mom_colind + adr, m->mom_rownnz[out],
                  a->trn_rate + SN_NMOTION * out);
  }
}

SN_FUNC void sn_motion_propagate(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  SN_SYNC(lane);
  for (int level = 0; level < m->nlevel; ++level) {
    const int *body = m->level_body + m->level_adr[level];
    kin_propagate_level(m, w, a, lane, body, m->level_adr[level + 1] - m->level_adr[level]);
    SN_SYNC(lane);
  }
  if (sn_pass_over(m, a)) return;  // nothing there asks for rates
  SN_FOR(t, m->ntendon) {
    const int adr = m->ten_J_rowadr[t];
    kin_row_rates(m, a, w->ten_J + adr, m->ten_J_colind + adr, m->ten_J_rownnz[t], a->ten_rate + SN_NMOTION * t);
  }
  SN_SYNC(lane);
  SN_FOR(i, m->nactuator) kin_output_rates(m, w, a, i);
  SN_SYNC(lane);
}
