// Rows of equalities: connect, weld, joint, tendon (manual, Computation, Constraint model, Equality).
//
// Connect: residual p1 - p2 of the two anchors, J = J_p1 - J_p2.
// Weld: the same three rows and three of the relative orientation. With q1, q2 the world orientations of the
// two welded frames (object 1's times the relative pose) and w the angular velocities, all in the world frame,
//   residual s * vec(q2* q1),   rate s/2 * vec(q2* (w1 - w2) q1),   s = torquescale.
// Joint, tendon: x1 - x1ref - a0 - sum_k a_k (x2 - x2ref)^k, k = 1..4.
//
// The reference acceleration of a connect or weld is reduced by Jdot v, the acceleration of its residual at
// zero qacc. A point at p fixed to a body has the acceleration b_lin + b_ang x (p - c) + w x pdot with
// b = sum_i cdof_dot_i v_i over the body's dofs and c the centre of its spatial vectors. Differentiating the
// weld's rate with dq1 = w1 q1 / 2 and dq2* = -q2* w2 / 2 (w as pure quaternions) gives, with d = w1 - w2,
//   s/2 * vec(q2* [b1_ang - b2_ang + d x (w1 + w2) / 2  - |d|^2 / 2] q1),
// where the last term is the scalar part of the bracket.
//
// Adjoint. All rows of a connect or weld take their impedance at the norm of the residual: what the impedance receives
// goes to the components in proportion to them (nothing at zero norm). An anchor p of a body with twist (w, l) moves at
// l + w x (p - c): a force F on that velocity gives the twist ((p - c) x F, F) and the anchor the force F x w; the bias
// is treated alike, its acceleration being acc_bar's. Every rotation row is F . s vec(q2* X q1) for a quaternion X (1,
// w1 - w2, the bracket above); as multiplication by a quaternion is adjoint to that by its conjugate,
//   X_bar = s q2 (0, F) q1*,   torques  vec(X* X_bar) / 2 on body 1,  -vec(X_bar X*) / 2 on body 2.
// A joint's or tendon's polynomial has its second derivative in J. A mocap body receives wrenches, the world nothing.
#include "physics/base/vec.h"
#include "physics/constraint/constraint.h"
#include "physics/constraint/constraint_private.h"
#include "physics/dynamics/dynamics.h"

// One end of a connect or weld.
typedef struct EqualityEnd {
  int body, site;   // site: -1: the frame is the body's
  sn_real pos[3];   // anchor [m], world frame
  sn_real quat[4];  // welded frame, world frame; of a weld only
} EqualityEnd;

SN_LOCAL EqualityEnd equality_end(const SnModel *m, const SnWorld *w, int eq, int object) {
  EqualityEnd e;
  const int id = object == 0 ? m->eq_obj1id[eq] : m->eq_obj2id[eq];
  const bool weld = m->eq_type[eq] == SN_EQ_WELD, site = m->eq_objtype[eq] == SN_OBJ_SITE;
  const sn_real *data = m->eq_data + SN_NEQDATA * eq;
  e.body = site ? m->site_bodyid[id] : id;
  e.site = site ? id : -1;
  // anchors in eq_data: connect has object 1 first, weld object 2 first
  const sn_real *anchor = site ? m->site_pos + 3 * id : data + 3 * (weld ? 1 - object : object);
  sn_mulmatvec3(e.pos, w->xmat + 9 * e.body, anchor);
  sn_addto3(e.pos, w->xpos + 3 * e.body);
  sn_copy4(e.quat, w->xquat + 4 * e.body);
  if (weld && site) sn_mulquat(e.quat, w->xquat + 4 * e.body, m->site_quat + 4 * id);
  if (weld && !site && object == 0) sn_mulquat(e.quat, w->xquat + 4 * e.body, data + 6);
  return e;
}

// r = scale * (q2* v q1) of a quaternion v, vector part.
SN_LOCAL void weld_rotate(sn_real *r, const EqualityEnd *e, const sn_real *v, sn_real scale) {
  sn_real neg[4], t[4], u[4];
  sn_negquat(neg, e[1].quat);
  sn_mulquat(t, neg, v);
  sn_mulquat(u, t, e[0].quat);
  sn_scale3(r, u + 1, scale);
}

// Adds sign times the columns of one end: translation in rows 0..2, world-frame rotation in rows 3..5.
SN_LOCAL void add_end_columns(const SnModel *m, SnWorld *w, const EqualityEnd *e, sn_real sign, SnBlock block) {
  const int *chain = m->chain_dof + m->chain_adr[e->body], num = m->chain_adr[e->body + 1] - m->chain_adr[e->body];
  const int *col = w->efc_J_colind + block.adr;
  sn_real *J = w->efc_J + block.adr, offset[3], lin[3];
  sn_sub3(offset, e->pos, w->subtree_com + 3 * m->body_rootid[e->body]);
  for (int i = 0, k = 0; i < num; ++i) {
    while (col[k] != chain[i]) ++k;
    const sn_real *cdof = w->cdof + 6 * chain[i];
    sn_cross(lin, cdof, offset);
    sn_addto3(lin, cdof + 3);
    for (int r = 0; r < 3; ++r) J[r * block.nnz + k] += sign * lin[r];
    for (int r = 3; r < block.num; ++r) J[r * block.nnz + k] += sign * cdof[r - 3];
  }
}

SN_LOCAL void connect_rows(const SnModel *m, SnWorld *w, int eq, SnBlock block) {
  const EqualityEnd e[2] = {equality_end(m, w, eq, 0), equality_end(m, w, eq, 1)};
  sn_real *J = w->efc_J + block.adr;
  sn_zero(J, block.num * block.nnz);
  add_end_columns(m, w, e, 1, block);
  add_end_columns(m, w, e + 1, -1, block);
  sn_sub3(w->efc_pos + block.row, e[0].pos, e[1].pos);
  if (m->eq_type[eq] != SN_EQ_WELD) return;
  const sn_real scale = m->eq_data[SN_NEQDATA * eq + 10], one[4] = {1, 0, 0, 0};
  weld_rotate(w->efc_pos + block.row + 3, e, one, scale);
  for (int k = 0; k < block.nnz; ++k) {
    sn_real *c = J + 3 * block.nnz + k;
    const sn_real v[4] = {0, c[0], c[block.nnz], c[2 * block.nnz]};
    sn_real r[3];
    weld_rotate(r, e, v, SN_R(0.5) * scale);
    for (int i = 0; i < 3; ++i) c[i * block.nnz] = r[i];
  }
}

// Position and derivative row of object 1 or 2 of a joint or tendon equality, added times scale.
SN_LOCAL void add_scalar_columns(const SnModel *m, SnWorld *w, int eq, int id, sn_real scale, SnBlock block) {
  const int *col = w->efc_J_colind + block.adr;
  sn_real *J = w->efc_J + block.adr;
  const bool joint = m->eq_type[eq] == SN_EQ_JOINT;
  const int n = joint ? 1 : m->ten_J_rownnz[id];
  const int *dof = joint ? m->jnt_dofadr + id : m->ten_J_colind + m->ten_J_rowadr[id];
  for (int i = 0, k = 0; i < n; ++i) {
    while (col[k] != dof[i]) ++k;
    J[k] += scale * (joint ? SN_R(1.0) : w->ten_J[m->ten_J_rowadr[id] + i]);
  }
}

// Joint position or tendon length less its value in qpos0.
SN_LOCAL sn_real scalar_value(const SnModel *m, const SnWorld *w, int eq, int id) {
  if (m->eq_type[eq] == SN_EQ_TENDON) return w->ten_length[id] - m->tendon_length0[id];
  return w->qpos[m->jnt_qposadr[id]] - m->qpos0[m->jnt_qposadr[id]];
}

// Slope of what is taken off the first value for the second, x beyond its reference; its own slope in *curve.
SN_LOCAL sn_real scalar_slope(const sn_real *p, sn_real x, sn_real *curve) {
  *curve = 2 * p[2] + x * (6 * p[3] + x * 12 * p[4]);
  return p[1] + x * (2 * p[2] + x * (3 * p[3] + x * 4 * p[4]));
}

SN_LOCAL void scalar_rows(const SnModel *m, SnWorld *w, int eq, SnBlock block) {
  const sn_real *a = m->eq_data + SN_NEQDATA * eq;
  const int id1 = m->eq_obj1id[eq], id2 = m->eq_obj2id[eq];
  sn_real value = scalar_value(m, w, eq, id1) - a[0];
  sn_zero(w->efc_J + block.adr, block.nnz);
  add_scalar_columns(m, w, eq, id1, 1, block);
  if (id2 >= 0) {
    const sn_real x = scalar_value(m, w, eq, id2);
    sn_real curve;
    value -= x * (a[1] + x * (a[2] + x * (a[3] + x * a[4])));
    add_scalar_columns(m, w, eq, id2, -scalar_slope(a, x, &curve), block);
  }
  w->efc_pos[block.row] = value;
}

#if !defined(SN_PACK)
SN_FUNC void sn_equality_rows(const SnModel *m, SnWorld *w, int s, SnBlock block) {
  const int eq = m->src_id[s], type = m->eq_type[eq];
  if (type == SN_EQ_CONNECT || type == SN_EQ_WELD)
    connect_rows(m, w, eq, block);
  else
    scalar_rows(m, w, eq, block);
}

SN_FUNC sn_real sn_equality_weight(const SnModel *m, int eq, int k) {
  const int id[2] = {m->eq_obj1id[eq], m->eq_obj2id[eq]};
  sn_real sum = 0;
  for (int i = 0; i < 2; ++i) {
    switch (m->eq_type[eq]) {
      case SN_EQ_CONNECT:
      case SN_EQ_WELD: {
        const int body = m->eq_objtype[eq] == SN_OBJ_SITE ? m->site_bodyid[id[i]] : id[i];
        sum += m->body_invweight0[2 * body + (k > 2)];
        break;
      }
      case SN_EQ_JOINT:
        sum += id[i] < 0 ? 0 : m->dof_invweight0[m->jnt_dofadr[id[i]]];
        break;
      default:
        sum += id[i] < 0 ? 0 : m->tendon_invweight0[id[i]];
        break;
    }
  }
  return sum;
}
#endif

// bias = sum of cdof_dot_i qvel_i over the dofs of a body: its spatial acceleration at zero qacc, gravity
// left out. The axes of a ball joint turn with their own body.
SN_LOCAL void body_bias(const SnModel *m, const SnWorld *w, int body, sn_real *bias) {
  sn_zero(bias, 6);
  for (int k = m->chain_adr[body]; k < m->chain_adr[body + 1]; ++k) {
    const int i = m->chain_dof[k], joint = m->dof_jntid[i], type = m->jnt_type[joint];
    sn_real dot[6];
    if (type == SN_JNT_BALL || (type == SN_JNT_FREE && i >= m->jnt_dofadr[joint] + 3))
      sn_crossmotion(dot, w->cvel + 6 * m->dof_bodyid[i], w->cdof + 6 * i);
    else
      for (int j = 0; j < 6; ++j) dot[j] = w->cdof_dot[6 * i + j];
    for (int j = 0; j < 6; ++j) bias[j] += dot[j] * w->qvel[i];
  }
}

// Acceleration at zero qacc of the anchor of one end: linear acc, angular part of bias.
SN_LOCAL void end_bias(const SnModel *m, const SnWorld *w, const EqualityEnd *e, sn_real *acc, sn_real *ang) {
  sn_real bias[6], offset[3], vel[3], t[3];
  const sn_real *cvel = w->cvel + 6 * e->body;
  body_bias(m, w, e->body, bias);
  sn_sub3(offset, e->pos, w->subtree_com + 3 * m->body_rootid[e->body]);
  sn_cross(vel, cvel, offset);
  sn_addto3(vel, cvel + 3);
  sn_cross(acc, bias, offset);
  sn_addto3(acc, bias + 3);
  sn_cross(t, cvel, vel);
  sn_addto3(acc, t);
  sn_copy3(ang, bias);
}

#if !defined(SN_PACK)
SN_FUNC void sn_equality_bias(const SnModel *m, SnWorld *w, int s, int row) {
  const int eq = m->src_id[s];
  if (m->eq_type[eq] != SN_EQ_CONNECT && m->eq_type[eq] != SN_EQ_WELD) return;
  const EqualityEnd e[2] = {equality_end(m, w, eq, 0), equality_end(m, w, eq, 1)};
  const sn_real factor = sn_row_spring(m, w, row).factor;  // all rows have the same spring
  sn_real acc[2][3], ang[2][3];
  for (int i = 0; i < 2; ++i) end_bias(m, w, e + i, acc[i], ang[i]);
  for (int i = 0; i < 3; ++i) w->efc_aref[row + i] -= (acc[0][i] - acc[1][i]) / factor;
  if (m->eq_type[eq] != SN_EQ_WELD) return;
  sn_real diff[3], sum[3], t[3], r[3];
  sn_sub3(diff, w->cvel + 6 * e[0].body, w->cvel + 6 * e[1].body);
  sn_add3(sum, w->cvel + 6 * e[0].body, w->cvel + 6 * e[1].body);
  sn_cross(t, diff, sum);
  const sn_real half = SN_R(0.5);
  const sn_real v[4] = {-half * sn_dot3(diff, diff), ang[0][0] - ang[1][0] + half * t[0],
                        ang[0][1] - ang[1][1] + half * t[1], ang[0][2] - ang[1][2] + half * t[2]};
  weld_rotate(r, e, v, half * m->eq_data[SN_NEQDATA * eq + 10]);
  for (int i = 0; i < 3; ++i) w->efc_aref[row + 3 + i] -= r[i] / factor;
}
#endif

#if defined(SN_MODEL_BARS)
// The same to the frame that the end is fixed to: a site's, or that of a body in its link.
SN_LOCAL void end_model_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, const EqualityEnd *e, const sn_bar *force,
                            const sn_bar *torque) {
  if (!sn_model_bar(a)) return;
  if (e->site >= 0) {
    sn_addto3(sn_model_bar(a)->site_wrench + 6 * e->site, torque);
    sn_addto3(sn_model_bar(a)->site_wrench + 6 * e->site + 3, force);
    return;
  }
  sn_real arm[3];
  sn_bar t[3];
  sn_sub3(arm, e->pos, w->xpos + 3 * e->body);
  sn_cross(t, arm, force);
  sn_addto3(t, torque);
  sn_welded_model_vjp(m, w, a, e->body, force, t);
}
#endif

// Adds a force at the anchor of an end and a torque to the wrench of its body.
SN_LOCAL void add_end_wrench(const SnModel *m, const SnWorld *w, SnAdjoint *a, const EqualityEnd *e,
                             const sn_bar *force, const sn_bar *torque) {
  sn_bar *wrench = sn_body_wrench(m, a, e->body), t[3];
  sn_real arm[3];
  sn_sub3(arm, e->pos, sn_twist_origin(m, w, e->body));
  sn_cross(t, arm, force);
  sn_addto3(t, torque);
  sn_addto3(wrench, t);
  sn_addto3(wrench + 3, force);
#if defined(SN_MODEL_BARS)
  end_model_vjp(m, w, a, e, force, torque);
#endif
}

// Adds the bar of the velocity of an end's anchor in one motion: to the twist's bar, and to the force on the anchor.
SN_LOCAL void anchor_velocity_vjp(const sn_bar *T, const sn_real *arm, const sn_bar *F, sn_bar *T_bar, sn_bar *force) {
  sn_bar t[3];
  sn_cross(t, arm, F);
  sn_addto3(T_bar, t);
  sn_addto3(T_bar + 3, F);
  sn_cross(t, F, T);
  sn_addto3(force, t);
}

// body_bias has one term that cacc has not: where a body slides behind its own ball joint, the velocity H of those
// slides turns the ball's axes along, which adds H x B to the linear acceleration of all that is behind, B the ball's
// angular velocity. F: bar of that acceleration for `body`.
SN_LOCAL void ball_slide_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int body, const sn_bar *F) {
  for (int link = m->link_of_body[body]; link != 0; link = m->body_base[link]) {
    const int first = m->body_jntadr[link], end = first + m->body_jntnum[link];
    int ball = first;
    while (ball < end && m->jnt_type[ball] != SN_JNT_BALL) ++ball;
    if (ball + 1 >= end) continue;
    const int turn = m->jnt_dofadr[ball], slide = turn + 3, last = m->body_dofadr[link] + m->body_dofnum[link];
    sn_real H[3] = {0, 0, 0}, B[3] = {0, 0, 0};
    sn_bar H_bar[3], B_bar[3], t[3], *torque = a->wrench + 6 * link;
    for (int k = turn; k < slide; ++k) sn_addtoscl3(B, w->cdof + 6 * k, w->qvel[k]);
    for (int k = slide; k < last; ++k) sn_addtoscl3(H, w->cdof + 6 * k + 3, w->qvel[k]);
    sn_cross(H_bar, B, F);
    sn_cross(B_bar, F, H);
    sn_cross(t, H, H_bar);
    sn_addto3(torque, t);
    sn_cross(t, B, B_bar);
    sn_addto3(torque, t);
    for (int k = turn; k < slide; ++k) a->qvel_bar[k] += sn_dot3(w->cdof + 6 * k, B_bar);
    for (int k = slide; k < last; ++k) a->qvel_bar[k] += sn_dot3(w->cdof + 6 * k + 3, H_bar);
  }
}

// The same as anchor_velocity_vjp of an anchor's acceleration at zero qacc, as in end_bias.
SN_LOCAL void anchor_bias_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int body, const sn_real *arm,
                              const sn_bar *F, sn_bar *force) {
  const sn_bar *V = sn_twist(m, a, body, SN_VEL);
  sn_bar *V_bar = sn_twist_bar(m, a, body, SN_VEL), A[6], vel[3], g[3], t[3];
  sn_cross(vel, V, arm);
  sn_addto3(vel, V + 3);
  sn_cross(t, vel, F);
  sn_addto3(V_bar, t);
  sn_cross(g, F, V);
  anchor_velocity_vjp(V, arm, g, V_bar, force);
  const int link = m->link_of_body[body];
  sn_copy(A, w->cacc + 6 * link, 6);
  anchor_velocity_vjp(A, arm, F, a->acc_bar + 6 * link, force);
  ball_slide_vjp(m, w, a, body, F);
}

// Translation rows of one end, which enters the residual with `sign`.
SN_LOCAL void anchor_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, const EqualityEnd *e, sn_real sign,
                         int row) {
  const sn_bar *pos = a->row_pos + row, *rate = a->row_z + 3 * row, *c = a->row_c + row;
  const sn_real per = -sign / sn_row_spring(m, w, row).factor;
  const sn_bar zero[3] = {0}, bias[3] = {per * c[0], per * c[1], per * c[2]};
  sn_real arm[3];
  sn_bar force[3];
  sn_sub3(arm, e->pos, sn_twist_origin(m, w, e->body));
  sn_scale3(force, pos, sign);
  for (int z = 0; z < 3; ++z) {
    const sn_bar F[3] = {sign * rate[z], sign * rate[3 + z], sign * rate[6 + z]};
    anchor_velocity_vjp(sn_twist(m, a, e->body, (SnMotion)z), arm, F, sn_twist_bar(m, a, e->body, (SnMotion)z), force);
  }
  anchor_bias_vjp(m, w, a, e->body, arm, bias, force);
  add_end_wrench(m, w, a, e, force, zero);
}

// X_bar of F . scale vec(q2* X q1), and the torques on the two bodies.
SN_LOCAL void weld_rotate_vjp(const EqualityEnd *e, const sn_bar *X, const sn_bar *F, sn_real scale, sn_bar *X_bar,
                              sn_bar torque[2][3]) {
  const sn_bar Y[4] = {sn_bar_of(0), scale * F[0], scale * F[1], scale * F[2]};
  sn_real back[4];
  sn_bar neg[4], t[4];
  sn_mulquat(t, e[1].quat, Y);
  sn_negquat(back, e[0].quat);
  sn_mulquat(X_bar, t, back);
  sn_negquat(neg, X);
  sn_mulquat(t, neg, X_bar);
  sn_addtoscl3(torque[0], t + 1, SN_R(0.5));
  sn_mulquat(t, X_bar, neg);
  sn_addtoscl3(torque[1], t + 1, SN_R(-0.5));
}

// The bias of the rotation rows: F . s/2 vec(q2* [..] q1).
SN_LOCAL void weld_bias_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, const EqualityEnd *e, const sn_bar *F,
                            sn_real scale, sn_bar torque[2][3]) {
  const sn_real half = SN_R(0.5), *A[2];
  const sn_bar *V[2];
  for (int i = 0; i < 2; ++i) {
    V[i] = sn_twist(m, a, e[i].body, SN_VEL);
    A[i] = w->cacc + 6 * m->link_of_body[e[i].body];
  }
  sn_bar diff[3], sum[3], t[3], diff_bar[3], sum_bar[3], X_bar[4];
  sn_sub3(diff, V[0], V[1]);
  sn_add3(sum, V[0], V[1]);
  sn_cross(t, diff, sum);
  const sn_bar X[4] = {-half * sn_dot3(diff, diff), A[0][0] - A[1][0] + half * t[0], A[0][1] - A[1][1] + half * t[1],
                       A[0][2] - A[1][2] + half * t[2]};
  weld_rotate_vjp(e, X, F, half * scale, X_bar, torque);
  sn_cross(diff_bar, sum, X_bar + 1);
  sn_scale3(diff_bar, diff_bar, half);
  sn_addtoscl3(diff_bar, diff, -X_bar[0]);
  sn_cross(sum_bar, X_bar + 1, diff);
  for (int i = 0; i < 2; ++i) {
    const sn_real sign = i == 0 ? 1 : -1;
    sn_addtoscl3(a->acc_bar + 6 * m->link_of_body[e[i].body], X_bar + 1, sign);
    sn_bar *V_bar = sn_twist_bar(m, a, e[i].body, SN_VEL);
    sn_addtoscl3(V_bar, diff_bar, sign);
    sn_addtoscl3(V_bar, sum_bar, half);
  }
}

// Rotation rows [row, row + 3) of a weld.
SN_LOCAL void weld_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, const EqualityEnd *e, sn_real scale, int row) {
  const sn_bar one[4] = {sn_bar_of(1)}, zero[3] = {0}, *rate = a->row_z + 3 * row, *c = a->row_c + row;
  const sn_real per = -1 / sn_row_spring(m, w, row).factor;
  const sn_bar bias[3] = {per * c[0], per * c[1], per * c[2]};
  sn_bar torque[2][3] = {0}, X_bar[4];
  weld_rotate_vjp(e, one, a->row_pos + row, scale, X_bar, torque);
  for (int z = 0; z < 3; ++z) {
    const sn_bar F[3] = {rate[z], rate[3 + z], rate[6 + z]};
    sn_bar X[4] = {0};
    sn_sub3(X + 1, sn_twist(m, a, e[0].body, (SnMotion)z), sn_twist(m, a, e[1].body, (SnMotion)z));
    weld_rotate_vjp(e, X, F, SN_R(0.5) * scale, X_bar, torque);
    sn_addto3(sn_twist_bar(m, a, e[0].body, (SnMotion)z), X_bar + 1);
    sn_subfrom3(sn_twist_bar(m, a, e[1].body, (SnMotion)z), X_bar + 1);
  }
  weld_bias_vjp(m, w, a, e, bias, scale, torque);
  for (int i = 0; i < 2; ++i) add_end_wrench(m, w, a, e + i, zero, torque[i]);
}

// Adds to row_pos what the rows' common impedance receives.
SN_LOCAL void common_impedance_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnBlock block) {
  const sn_real *pos = w->efc_pos + block.row, norm = sn_sqrt(sn_dot(pos, pos, block.num));
  if (!(norm > 0)) return;
  sn_bar bar = {0};
  for (int r = 0; r < block.num; ++r) bar += sn_impedance_bar(m, w, a, block.row + r, -pos[r]);
  for (int r = 0; r < block.num; ++r) a->row_pos[block.row + r] += bar * (pos[r] / norm);
}

// Adds scale times the bars of a scalar row to joint or tendon `id`; extra: what its position receives besides.
SN_LOCAL void scalar_object_vjp(const SnModel *m, SnAdjoint *a, bool joint, int id, sn_real scale, sn_bar extra,
                                int row) {
  const sn_bar *z = a->row_z + 3 * row, pos = scale * a->row_pos[row] + extra;
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a) && joint && sn_model_bar(a)->qpos0) sn_model_bar(a)->qpos0[m->jnt_qposadr[id]] -= pos;
  if (sn_model_bar(a) && !joint && sn_model_bar(a)->tendon_length0) sn_model_bar(a)->tendon_length0[id] -= pos;
#endif
  if (joint) {
    a->qpos_bar[m->jnt_dofadr[id]] += pos;
    a->qvel_bar[m->jnt_dofadr[id]] += scale * z[2];
    return;
  }
  a->ten_length_bar[id] += pos;
  for (int k = 0; k < 3; ++k) a->ten_rate_bar[SN_NMOTION * id + k] += scale * z[k];
}

SN_LOCAL void scalar_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int eq, int row) {
  const sn_real *p = m->eq_data + SN_NEQDATA * eq;
  const sn_bar *z = a->row_z + 3 * row;
  const int id1 = m->eq_obj1id[eq], id2 = m->eq_obj2id[eq];
  const bool joint = m->eq_type[eq] == SN_EQ_JOINT;
  scalar_object_vjp(m, a, joint, id1, 1, sn_bar_of(0), row);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a) && sn_model_bar(a)->eq_data) sn_model_bar(a)->eq_data[SN_NEQDATA * eq] -= a->row_pos[row];
#endif
  if (id2 < 0) return;
  const sn_real x = scalar_value(m, w, eq, id2);
  sn_real curve;
  const sn_real slope = scalar_slope(p, x, &curve);
  sn_bar rates = {0};
  for (int k = 0; k < 3; ++k)
    rates += z[k] * (joint ? a->motion[k * m->nv + m->jnt_dofadr[id2]] : a->ten_rate[SN_NMOTION * id2 + k]);
  scalar_object_vjp(m, a, joint, id2, -slope, -curve * rates, row);
#if defined(SN_MODEL_BARS)
  if (!sn_model_bar(a) || !sn_model_bar(a)->eq_data) return;
  sn_bar *bar = sn_model_bar(a)->eq_data + SN_NEQDATA * eq;
  sn_real power = 1;  // of a_k: x^k and its slope
  for (int k = 1; k <= 4; ++k) {
    bar[k] -= a->row_pos[row] * power * x + rates * (sn_real)k * power;
    power *= x;
  }
#endif
}

SN_FUNC void sn_equality_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnBlock block) {
  const int eq = w->efc_id[block.row], type = m->eq_type[eq];
  if (type != SN_EQ_CONNECT && type != SN_EQ_WELD) {
    scalar_vjp(m, w, a, eq, block.row);
    return;
  }
  const EqualityEnd e[2] = {equality_end(m, w, eq, 0), equality_end(m, w, eq, 1)};
  common_impedance_vjp(m, w, a, block);
  anchor_vjp(m, w, a, e, 1, block.row);
  anchor_vjp(m, w, a, e + 1, -1, block.row);
  if (type == SN_EQ_WELD) weld_vjp(m, w, a, e, m->eq_data[SN_NEQDATA * eq + 10], block.row + 3);
}

#if !defined(SN_PACK)
SN_FUNC int sn_equality_size(const SnModel *m, const SnWorld *w, int row) {
  const int type = m->eq_type[w->efc_id[row]];
  return type == SN_EQ_WELD ? 6 : type == SN_EQ_CONNECT ? 3 : 1;
}

SN_FUNC sn_real sn_equality_pull(const SnModel *m, const SnWorld *w, int row, int t) {
  const int eq = w->efc_id[row], id1 = m->eq_obj1id[eq], id2 = m->eq_obj2id[eq];
  if (m->eq_type[eq] != SN_EQ_TENDON) return 0;
  sn_real sum = id1 == t, curve;
  if (id2 == t) sum -= scalar_slope(m->eq_data + SN_NEQDATA * eq, scalar_value(m, w, eq, id2), &curve);
  return sum;
}

SN_FUNC void sn_equality_pull_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int row, int t, sn_real bar) {
  const int eq = w->efc_id[row], id2 = m->eq_obj2id[eq];
  sn_real curve;
  if (m->eq_type[eq] != SN_EQ_TENDON || id2 != t) return;
  const sn_real x = scalar_value(m, w, eq, id2);
  scalar_slope(m->eq_data + SN_NEQDATA * eq, x, &curve);
  a->ten_length_bar[id2] -= bar * curve;
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a) && sn_model_bar(a)->tendon_length0) sn_model_bar(a)->tendon_length0[id2] += bar * curve;
  if (!sn_model_bar(a) || !sn_model_bar(a)->eq_data) return;
  sn_real power = 1;  // x^(k-1)
  for (int k = 1; k <= 4; ++k) {
    sn_model_bar(a)->eq_data[SN_NEQDATA * eq + k] -= bar * (sn_real)k * power;
    power *= x;
  }
#endif
}

// The rate s/2 vec(q2* (0, w) q1) of a weld has f as its force: so the torque is s/2 vec(q2 (0, f) q1*).
SN_FUNC bool sn_equality_force(const SnModel *m, const SnWorld *w, int row, SnEqualityForce *f) {
  const int eq = w->efc_id[row], size = sn_equality_size(m, w, row);
  if (size == 1) return false;
  const EqualityEnd e[2] = {equality_end(m, w, eq, 0), equality_end(m, w, eq, 1)};
  for (int i = 0; i < 2; ++i) {
    f->body[i] = e[i].body;
    sn_copy3(f->pos[i], e[i].pos);
  }
  sn_copy3(f->force, w->efc_force + row);
  sn_zero(f->torque, 3);
  if (size == 3) return true;
  const sn_real X[4] = {0}, scale = SN_R(0.5) * m->eq_data[SN_NEQDATA * eq + 10];
  sn_real torque[4], turn[2][3] = {{0}};
  weld_rotate_vjp(e, X, w->efc_force + row + 3, scale, torque, turn);
  sn_copy3(f->torque, torque + 1);
  return true;
}

SN_FUNC void sn_equality_force_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int row,
                                   const SnEqualityForce *bar) {
  const int eq = w->efc_id[row];
  const EqualityEnd e[2] = {equality_end(m, w, eq, 0), equality_end(m, w, eq, 1)};
  sn_real turn[2][3] = {{0}};
  sn_addto3(a->row_pos + row, bar->force);
  if (sn_equality_size(m, w, row) == 6) {
    const sn_real X[4] = {0, bar->torque[0], bar->torque[1], bar->torque[2]};
    const sn_real scale = SN_R(0.5) * m->eq_data[SN_NEQDATA * eq + 10];
    sn_real r[3], torque[4];
    weld_rotate(r, e, X, scale);
    sn_addto3(a->row_pos + row + 3, r);
    weld_rotate_vjp(e, X, w->efc_force + row + 3, scale, torque, turn);
  }
  for (int i = 0; i < 2; ++i) add_end_wrench(m, w, a, e + i, bar->pos[i], turn[i]);
}
#endif
