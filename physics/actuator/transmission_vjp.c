// The adjoint of transmission.c.
//
// As in tendon.c, sum_z r_z (moment . z) = moment . A with the one motion A = sum_z r_z z.
// Ball joint: its length is phi . g, phi the rotation vector of the joint, whose derivative with respect to a small
// turn in the body's frame is the inverse right Jacobian of rotations, 1 + [phi]/2 + k [phi]^2, k = (1 - (t/2)
// cot(t/2)) / t^2 (t = |phi|); so is that of a site's rotation relative to its reference. Gears fixed to the parent
// turn with -A in the body's frame. Site: W = (p x f + tau, f) works on A_site - A_c at the site, and its reaction, at
// the reference site, on A_ref - A_c; c is the last link that carries both, whose dofs the moment leaves out. f and tau
// are fixed to the reference (or the site). Slider-crank: the length is a function of v, from slider to crank site, and
// of the axis a; with y_v and y_a their velocities in A, the chain rule of its gradient (d_v, d_a) gives forces h_v =
// d/dt d_v and h_a as in actuator_private.h. Adhesion: the mean over contacts of n . (A_1 - A_2) at the contact's point
// goes to that point and that normal.
#include "physics/actuator/actuator_private.h"
#include "physics/base/vec.h"

// True when nothing asks for output o.
SN_LOCAL bool trn_idle(const SnAdjoint *a, int o) {
  bool idle = !sn_any(a->trn_length_bar[o]) && !(*a->sat_on && sn_any(a->sat_trn_bar[o]));
  for (int z = 0; z < SN_NMOTION; ++z) idle = idle && !sn_any(a->trn_rate_bar[SN_NMOTION * o + z]);
  return idle;
}

// Actuator i on the ball or free joint j.
SN_LOCAL void trn_turn_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, int j) {
  const int o = m->actuator_outadr[i], ball = m->jnt_type[j] == SN_JNT_BALL;
  const int dof = m->jnt_dofadr[j], turn = dof + (ball ? 0 : 3), n = ball ? 3 : 6;
  const sn_bar *rate = a->trn_rate_bar + SN_NMOTION * o;
  const sn_real *moment = w->actuator_moment + m->mom_rowadr[o];
  for (int k = 0; k < n; ++k) a->qvel_bar[dof + k] += rate[SN_VEL] * moment[k];
  if (m->actuator_trntype[i] == SN_TRN_JOINTINPARENT) {
    sn_bar A[3] = {0}, t[3];
    for (int z = 0; z < SN_NMOTION; ++z) sn_addtoscl3(A, a->motion + z * m->nv + turn, rate[z]);
    if (*a->sat_on) sn_addtoscl3(A, a->sat_motion + turn, a->sat_trn_bar[o]);
    sn_cross(t, moment + n - 3, A);
    sn_subfrom3(a->qpos_bar + turn, t);
  }
  if (!ball) return;  // no length
  sn_real phi[3];
  sn_bar bar[3];
  sn_ball_rotation(m, w, j, phi);
  sn_scale3(bar, m->actuator_gear + 6 * o, a->trn_length_bar[o]);
  sn_right_jacobian_inverse_transpose(bar, phi);
  sn_addto3(a->qpos_bar + turn, bar);
}

#if defined(SN_MODEL_BARS)
// Gear of an actuator on hinge or slide j: length gear q, rates gear z.
SN_LOCAL void trn_gear_model_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int o, int j) {
  const int dof = m->jnt_dofadr[j];
  sn_bar bar = a->trn_length_bar[o] * w->qpos[m->jnt_qposadr[j]];
  for (int z = 0; z < SN_NMOTION; ++z) bar += a->trn_rate_bar[SN_NMOTION * o + z] * a->motion[z * m->nv + dof];
  if (*a->sat_on) bar += a->sat_trn_bar[o] * a->sat_motion[dof];
  sn_model_bar(a)->actuator_gear[6 * o] += bar;
}

// Gear of an actuator on tendon t.
SN_LOCAL void trn_tendon_model_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int o, int t) {
  sn_bar bar = a->trn_length_bar[o] * w->ten_length[t];
  for (int z = 0; z < SN_NMOTION; ++z) bar += a->trn_rate_bar[SN_NMOTION * o + z] * a->ten_rate[SN_NMOTION * t + z];
  for (int k = 0; *a->sat_on && k < m->ten_J_rownnz[t]; ++k) {
    const int e = m->ten_J_rowadr[t] + k;
    bar += a->sat_trn_bar[o] * w->ten_J[e] * a->sat_motion[m->ten_J_colind[e]];
  }
  sn_model_bar(a)->actuator_gear[6 * o] += bar;
}

// Gear of an actuator on the ball or free joint j, whose rates are those of `turn` and, of a free joint, three before.
SN_LOCAL void trn_turn_model_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int i, int o, int j) {
  const bool ball = m->jnt_type[j] == SN_JNT_BALL, in_parent = m->actuator_trntype[i] == SN_TRN_JOINTINPARENT;
  const int dof = m->jnt_dofadr[j], turn = ball ? 0 : 3;
  sn_bar A[6] = {0}, turned[3];
  sn_real quat[4], phi[3];
  for (int z = 0; z < SN_NMOTION; ++z)
    for (int k = 0; k < turn + 3; ++k) A[k] += a->trn_rate_bar[SN_NMOTION * o + z] * a->motion[z * m->nv + dof + k];
  for (int k = 0; *a->sat_on && k < turn + 3; ++k) A[k] += a->sat_trn_bar[o] * a->sat_motion[dof + k];
  sn_copy4(quat, w->qpos + m->jnt_qposadr[j] + turn);
  sn_normalize4(quat);
  if (ball) {
    sn_quat2vel(phi, quat);
    sn_addtoscl3(A, phi, a->trn_length_bar[o]);
  }
  if (in_parent) {
    sn_real mat[9];
    sn_quat2mat(mat, quat);
    sn_copy3(turned, A + turn);
    sn_mulmatvec3(A + turn, mat, turned);
  }
  for (int k = 0; k < turn + 3; ++k) sn_model_bar(a)->actuator_gear[6 * o + k] += A[k];
}
#endif

// An orientation of ball joint j: its three rates are those of its dofs.
SN_LOCAL void trn_orientation_joint_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int o, int j) {
  const int dof = m->jnt_dofadr[j];
  sn_real phi[3];
  sn_bar bar[3];
  sn_copy3(bar, a->trn_length_bar + o);
  sn_ball_rotation(m, w, j, phi);
  sn_right_jacobian_inverse_transpose(bar, phi);
  sn_addto3(a->qpos_bar + dof, bar);
  for (int k = 0; k < 3; ++k) a->qvel_bar[dof + k] += a->trn_rate_bar[SN_NMOTION * (o + k) + SN_VEL];
}

SN_LOCAL void trn_joint_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int j) {
  const int dof = m->jnt_dofadr[j], type = m->jnt_type[j];
  for (int k = m->jnt_act_adr[j]; k < m->jnt_act_adr[j + 1]; ++k) {
    const int i = m->jnt_act[k], o = m->actuator_outadr[i];
    const sn_real gear = m->actuator_gear[6 * o];
    if (m->actuator_trntype[i] == SN_TRN_SO3) {
      trn_orientation_joint_vjp(m, w, a, o, j);
      continue;
    }
#if defined(SN_MODEL_BARS)
    if (sn_model_bar(a) && sn_model_bar(a)->actuator_gear) {
      if (type == SN_JNT_BALL || type == SN_JNT_FREE)
        trn_turn_model_vjp(m, w, a, i, o, j);
      else
        trn_gear_model_vjp(m, w, a, o, j);
    }
#endif
    if (type == SN_JNT_BALL || type == SN_JNT_FREE) {
      if (!trn_idle(a, o)) trn_turn_vjp(m, w, a, i, j);
      continue;
    }
    a->qpos_bar[dof] += gear * a->trn_length_bar[o];
    a->qvel_bar[dof] += gear * a->trn_rate_bar[SN_NMOTION * o + SN_VEL];
  }
}

SN_LOCAL void trn_tendon_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int t) {
  (void)w;
  for (int k = m->ten_act_adr[t]; k < m->ten_act_adr[t + 1]; ++k) {
    const int o = m->actuator_outadr[m->ten_act[k]];
    const sn_real gear = m->actuator_gear[6 * o];
#if defined(SN_MODEL_BARS)
    if (sn_model_bar(a) && sn_model_bar(a)->actuator_gear) trn_tendon_model_vjp(m, w, a, o, t);
#endif
    a->ten_length_bar[t] += gear * a->trn_length_bar[o];
    if (*a->sat_on) a->sat_ten_bar[t] += gear * a->sat_trn_bar[o];
    for (int z = 0; z < SN_NMOTION; ++z)
      a->ten_rate_bar[SN_NMOTION * t + z] += gear * a->trn_rate_bar[SN_NMOTION * o + z];
  }
}

// A body in the adjoint of an output: its link, where it is pulled, its weighted twist A less that of the link that
// both sites have in common, and A there.
typedef struct TrnEnd {
  int body, site;  // site: -1: none
  sn_real r[3];
  sn_bar A[6], v[3];
} TrnEnd;

// A += sign times the weighted twist of a body.
SN_LOCAL void trn_add_twist(const SnModel *m, const SnAdjoint *a, int o, int body, sn_real sign, sn_bar *A) {
  for (int z = 0; z < SN_NMOTION; ++z) {
    const sn_bar rate = sign * a->trn_rate_bar[SN_NMOTION * o + z], *twist = sn_twist(m, a, body, (SnMotion)z);
    for (int e = 0; e < 6; ++e) A[e] += rate * twist[e];
  }
  if (!*a->sat_on) return;
  for (int e = 0; e < 6; ++e) A[e] += sign * a->sat_trn_bar[o] * a->sat_twist[6 * m->link_of_body[body] + e];
}

SN_LOCAL void trn_open(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int o, int body, const sn_real *p,
                       int common, TrnEnd *end) {
  end->body = body;
  end->site = -1;
  sn_zero(end->A, 6);
  sn_sub3(end->r, p, sn_twist_origin(m, w, body));
  trn_add_twist(m, a, o, body, 1, end->A);
  if (common) trn_add_twist(m, a, o, common, -1, end->A);
  sn_cross(end->v, end->A, end->r);
  sn_addto3(end->v, end->A + 3);
}

// Force f and torque t on a body where it is pulled: to its wrench.
SN_LOCAL void trn_push(const SnModel *m, SnAdjoint *a, const TrnEnd *end, const sn_bar *f, const sn_bar *t) {
  sn_bar *wrench = sn_body_wrench(m, a, end->body), moment[3];
  sn_cross(moment, end->r, f);
  for (int e = 0; e < 3; ++e) {
    wrench[e] += moment[e] + t[e];
    wrench[3 + e] += f[e];
  }
#if defined(SN_MODEL_BARS)
  if (!sn_model_bar(a) || end->site < 0) return;
  sn_addto3(sn_model_bar(a)->site_wrench + 6 * end->site, t);
  sn_addto3(sn_model_bar(a)->site_wrench + 6 * end->site + 3, f);
#endif
}

// The same force and torque, times the rates' bars and sign, to the bars of the twists of `body`.
SN_LOCAL void trn_pull(const SnModel *m, SnAdjoint *a, int o, int body, const TrnEnd *end, const sn_real *f,
                       const sn_real *t, sn_real sign) {
  sn_real W[6];
  sn_cross(W, end->r, f);
  sn_addto3(W, t);
  sn_copy3(W + 3, f);
  for (int z = 0; z < SN_NMOTION; ++z) {
    const sn_bar rate = sign * a->trn_rate_bar[SN_NMOTION * o + z];
    sn_bar *bar = sn_twist_bar(m, a, body, (SnMotion)z);
    for (int e = 0; e < 6; ++e) bar[e] += rate * W[e];
  }
  if (!*a->sat_on) return;
  sn_bar *bar = a->sat_twist_bar + 6 * m->link_of_body[body];
  for (int e = 0; e < 6; ++e) bar[e] += sign * a->sat_trn_bar[o] * W[e];
}

// A slider-crank: the vector v from slider to crank and the slider's axis; or derivatives by them.
typedef struct TrnCrank {
  sn_real v[3], axis[3];
} TrnCrank;
// Rates of the same, or their bars.
typedef struct TrnCrankBar {
  sn_bar v[3], axis[3];
} TrnCrankBar;

// Gradient g of a slider-crank's length at x and its Hessian-vector product h with the rates y. Where the rod is too
// short the length is that of forward's choice, v . axis; so it is at the point where it just reaches.
SN_LOCAL void trn_crank_hvp(TrnCrank *g, TrnCrankBar *h, const TrnCrank *x, const TrnCrankBar *y, sn_real rod,
                            sn_real gear) {
  const sn_real av = sn_dot3(x->v, x->axis), det = av * av + rod * rod - sn_dot3(x->v, x->v);
  const sn_real root = det > 0 ? sn_sqrt(det) : 0, per = det > 0 ? 1 / root : 0;
  const sn_bar dav = sn_dot3(x->axis, y->v) + sn_dot3(x->v, y->axis), droot = (av * dav - sn_dot3(x->v, y->v)) * per;
  const sn_real share = 1 - av * per, lean = per;  // of g->axis in v and g->v in the axis, of g->v in v
  const sn_bar dshare = (av * droot * per - dav) * per, dlean = -per * per * droot;
  for (int e = 0; e < 3; ++e) {
    g->v[e] = gear * (share * x->axis[e] + lean * x->v[e]);
    g->axis[e] = gear * share * x->v[e];
    h->v[e] = gear * (dshare * x->axis[e] + share * y->axis[e] + dlean * x->v[e] + lean * y->v[e]);
    h->axis[e] = gear * (dshare * x->v[e] + share * y->v[e]);
  }
}

SN_LOCAL void trn_crank_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i) {
  const int o = m->actuator_outadr[i], crank = m->actuator_trnid[2 * i], slider = m->actuator_trnid[2 * i + 1];
  const sn_real *mat = w->site_xmat + 9 * slider;
  TrnCrank x = {.axis = {mat[2], mat[5], mat[8]}}, g;
  TrnCrankBar y, h;
  sn_real turn[3], back[3];
  sn_bar f[3], t[3];
  const sn_real none[3] = {0, 0, 0};
  const sn_bar length_bar = a->trn_length_bar[o], no_torque[3] = {0};
  TrnEnd ends[2];
  trn_open(m, w, a, o, m->site_bodyid[slider], w->site_xpos + 3 * slider, 0, ends);
  trn_open(m, w, a, o, m->site_bodyid[crank], w->site_xpos + 3 * crank, 0, ends + 1);
  ends[0].site = slider;
  ends[1].site = crank;
  sn_sub3(x.v, w->site_xpos + 3 * crank, w->site_xpos + 3 * slider);
  sn_sub3(y.v, ends[1].v, ends[0].v);
  sn_cross(y.axis, ends[0].A, x.axis);
  trn_crank_hvp(&g, &h, &x, &y, m->actuator_cranklength[i], m->actuator_gear[6 * o]);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a) && sn_model_bar(a)->actuator_gear && m->actuator_gear[6 * o] != 0)
    sn_model_bar(a)->actuator_gear[6 * o] +=
        (length_bar * w->actuator_length[o] + sn_dot3(g.v, y.v) + sn_dot3(g.axis, y.axis)) / m->actuator_gear[6 * o];
#endif
  sn_cross(turn, x.axis, g.axis);
  trn_pull(m, a, o, ends[1].body, ends + 1, g.v, none, 1);
  sn_scale3(back, turn, -1);
  trn_pull(m, a, o, ends[0].body, ends, g.v, back, -1);

  // crank: tension, and the field's value at the displaced site
  sn_addtoscl3(h.v, g.v, length_bar);
  sn_cross(f, g.v, ends[1].A);
  sn_addto3(f, h.v);
  trn_push(m, a, ends + 1, f, no_torque);
  // slider: the same reversed; the axis turns, and its velocity with it
  sn_cross(f, ends[0].A, g.v);
  sn_subfrom3(f, h.v);
  sn_cross(t, x.axis, h.axis);
  sn_addtoscl3(t, turn, length_bar);
  sn_cross(h.v, g.axis, ends[0].A);
  sn_cross(h.axis, x.axis, h.v);
  sn_addto3(t, h.axis);
  trn_push(m, a, ends, f, t);
}

// Last link that carries both links.
SN_LOCAL int trn_common_link(const SnModel *m, int link0, int link1) {
  while (link0 != link1) {
    if (link0 > link1)
      link0 = m->body_base[link0];
    else
      link1 = m->body_base[link1];
  }
  return link0;
}

// The turn of a site relative to a reference has the bar `bar` as a rotation vector; *turn: the torque on the site.
SN_LOCAL void trn_relative_turn_vjp(const SnModel *m, const SnWorld *w, int site, int ref, sn_bar *bar, sn_bar *turn) {
  sn_real v[3];
  sn_relative_turn(m, w, site, ref, v);
  // the site's turn in the reference's frame is one before the rotation: the right Jacobian of its inverse
  sn_scale3(v, v, -1);
  sn_right_jacobian_inverse_transpose(bar, v);
  sn_mulmatvec3(turn, w->site_xmat + 9 * ref, bar);
}

// Length of a site relative to a reference.
SN_LOCAL void trn_refsite_length_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const TrnEnd *site,
                                     const TrnEnd *ref, const sn_real *force) {
  const int o = m->actuator_outadr[i], id = m->actuator_trnid[2 * i], ref_id = m->actuator_trnid[2 * i + 1];
  const sn_real *gear = m->actuator_gear + 6 * o;
  const sn_bar length_bar = a->trn_length_bar[o];
  sn_real v[3];
  sn_bar f[3], t[3], turn[3] = {0}, local[3];
  if (gear[3] != 0 || gear[4] != 0 || gear[5] != 0) {
    sn_scale3(local, gear + 3, length_bar);
    trn_relative_turn_vjp(m, w, id, ref_id, local, turn);
  }
  sn_scale3(f, force, length_bar);
  trn_push(m, a, site, f, turn);
  sn_sub3(v, w->site_xpos + 3 * id, w->site_xpos + 3 * ref_id);
  sn_cross(t, f, v);
  sn_subfrom3(t, turn);
  sn_scale3(f, f, -1);
  trn_push(m, a, ref, f, t);
}

#if defined(SN_MODEL_BARS)
// Gear of an actuator on a site: of its moment along the fields of site and reference, and of its length.
SN_LOCAL void trn_site_model_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int i, const TrnEnd *site,
                                 const TrnEnd *ref) {
  const int o = m->actuator_outadr[i], id = m->actuator_trnid[2 * i], ref_id = m->actuator_trnid[2 * i + 1];
  const sn_real *mat = w->site_xmat + 9 * (ref_id >= 0 ? ref_id : id);
  sn_bar v[3], turn[3], local[3], *out = sn_model_bar(a)->actuator_gear + 6 * o;
  sn_sub3(v, site->v, ref->v);
  sn_sub3(turn, site->A, ref->A);
  if (ref_id >= 0) {
    sn_real arm[3];
    sn_sub3(arm, w->site_xpos + 3 * id, w->site_xpos + 3 * ref_id);
    sn_addtoscl3(v, arm, a->trn_length_bar[o]);
    sn_relative_turn(m, w, id, ref_id, arm);
    sn_addtoscl3(out + 3, arm, a->trn_length_bar[o]);
  }
  sn_mulmattvec3(local, mat, v);
  sn_addto3(out, local);
  sn_mulmattvec3(local, mat, turn);
  sn_addto3(out + 3, local);
}
#endif

SN_LOCAL void trn_site_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i) {
  const int o = m->actuator_outadr[i], id = m->actuator_trnid[2 * i], ref_id = m->actuator_trnid[2 * i + 1];
  const int body = m->site_bodyid[id], ref_body = ref_id >= 0 ? m->site_bodyid[ref_id] : 0;
  const int common = ref_id >= 0 ? trn_common_link(m, m->link_of_body[body], m->link_of_body[ref_body]) : 0;
  const sn_real *gear = m->actuator_gear + 6 * o, *mat = w->site_xmat + 9 * (ref_id >= 0 ? ref_id : id);
  sn_real force[3], torque[3];
  sn_bar f[3], t[3], spin[3];
  const sn_bar none[3] = {0};
  TrnEnd site, ref = {0};
  sn_mulmatvec3(force, mat, gear);
  sn_mulmatvec3(torque, mat, gear + 3);
  trn_open(m, w, a, o, body, w->site_xpos + 3 * id, common, &site);
  site.site = id;
  trn_pull(m, a, o, body, &site, force, torque, 1);
  if (common) trn_pull(m, a, o, common, &site, force, torque, -1);
  if (ref_id >= 0) {
    trn_open(m, w, a, o, ref_body, w->site_xpos + 3 * ref_id, common, &ref);
    ref.site = ref_id;
    trn_pull(m, a, o, ref_body, &ref, force, torque, -1);
    if (common) trn_pull(m, a, o, common, &ref, force, torque, 1);
  }

  // the fields' values at the displaced sites; force and torque turn
  sn_cross(f, force, site.A);
  trn_push(m, a, &site, f, none);
  sn_cross(f, ref.A, force);
  if (ref_id >= 0) trn_push(m, a, &ref, f, none);
  sn_sub3(f, site.v, ref.v);
  sn_cross(t, force, f);
  sn_sub3(f, site.A, ref.A);
  sn_cross(spin, torque, f);
  sn_addto3(t, spin);
  trn_push(m, a, ref_id >= 0 ? &ref : &site, none, t);
  if (ref_id >= 0) trn_refsite_length_vjp(m, w, a, i, &site, &ref, force);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a) && sn_model_bar(a)->actuator_gear) trn_site_model_vjp(m, w, a, i, &site, &ref);
#endif
}

// Orientation of a site relative to another one: torques along the axes of the site, which turn with it.
SN_LOCAL void trn_orientation_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i) {
  const int first = m->actuator_outadr[i], id = m->actuator_trnid[2 * i], ref_id = m->actuator_trnid[2 * i + 1];
  const sn_real *mat = w->site_xmat + 9 * id, none[3] = {0, 0, 0};
  const sn_bar no_force[3] = {0};
  sn_bar length_bar[3], turn[3], t[3], spin[3];
  TrnEnd site, ref;
  for (int e = 0; e < 3; ++e) {
    const int o = first + e;
    const sn_real axis[3] = {mat[e], mat[3 + e], mat[6 + e]};
    trn_open(m, w, a, o, m->site_bodyid[id], w->site_xpos + 3 * id, 0, &site);
    trn_open(m, w, a, o, m->site_bodyid[ref_id], w->site_xpos + 3 * ref_id, 0, &ref);
    site.site = id;
    ref.site = ref_id;
    trn_pull(m, a, o, site.body, &site, none, axis, 1);
    trn_pull(m, a, o, ref.body, &ref, none, axis, -1);
    sn_sub3(spin, site.A, ref.A);
    sn_cross(t, axis, spin);
    trn_push(m, a, &site, no_force, t);
  }
  sn_copy3(length_bar, a->trn_length_bar + first);
  trn_relative_turn_vjp(m, w, id, ref_id, length_bar, turn);
  trn_push(m, a, &site, no_force, turn);
  sn_scale3(turn, turn, -1);
  trn_push(m, a, &ref, no_force, turn);
}

SN_LOCAL void trn_body_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i) {
  const int o = m->actuator_outadr[i], body = m->actuator_trnid[2 * i];
  const sn_real none[3] = {0, 0, 0};
  int count = 0;
  for (int c = 0; c < *w->ncon; ++c) count += sn_adheres(m, w->contact + c, body);
  if (count == 0) return;
  const sn_real share = SN_R(1.0) / (sn_real)count;
  for (int c = 0; c < *w->ncon; ++c) {
    const SnContact *con = w->contact + c;
    if (!sn_adheres(m, con, body)) continue;
    TrnEnd ends[2];
    sn_bar spin[3], t[3];
    for (int side = 0; side < 2; ++side) {
      trn_open(m, w, a, o, m->geom_bodyid[con->geom[side]], con->pos, 0, ends + side);
      trn_pull(m, a, o, ends[side].body, ends + side, con->frame, none, side == 0 ? share : -share);
    }
    for (int e = 0; e < 3; ++e) a->con_frame_bar[9 * c + e] += share * (ends[0].v[e] - ends[1].v[e]);
    sn_sub3(spin, ends[0].A, ends[1].A);
    sn_cross(t, con->frame, spin);
    sn_addtoscl3(a->con_pos_bar + 3 * c, t, share);
  }
}

SN_FUNC void sn_transmission_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  SN_SYNC(lane);
  SN_FOR(j, m->njnt) trn_joint_vjp(m, w, a, j);
  SN_FOR(t, m->ntendon) trn_tendon_vjp(m, w, a, t);
  // they share links and contacts, and are few
  SN_ONE(lane) {
    for (int k = 0; k < m->nspaceact; ++k) {
      const int i = m->space_act[k];
      bool idle = true;
      for (int o = m->actuator_outadr[i]; o < m->actuator_outadr[i] + m->actuator_outnum[i]; ++o)
        idle = idle && trn_idle(a, o);
      if (idle) continue;
      switch (m->actuator_trntype[i]) {
        case SN_TRN_SO3:
          trn_orientation_vjp(m, w, a, i);
          break;
        case SN_TRN_SITE:
          trn_site_vjp(m, w, a, i);
          break;
        case SN_TRN_SLIDERCRANK:
          trn_crank_vjp(m, w, a, i);
          break;
        default:
          trn_body_vjp(m, w, a, i);
          break;
      }
    }
  }
  SN_SYNC(lane);
}
