// What spatial tendons that lead out of a body's subtree exert on it, for sensors of force and torque.
//
// A tendon pulls along its lines with the force T that acts along its length: spring, damper, actuators, rows of
// limits, friction loss and equalities, and what its armature b resists, -b (J qacc + Jdot qvel). A line with the
// direction u from p0 to p1, over the divisor of its pulley, pulls with T u at p1 and -T u at p0. Inside the subtree of
// body B, and outside, these sum to zero, arcs included. So lines with one end in it are what the interaction about p
// has,
//
//   F -= T sum s u,    N -= T sum s (p0 - p) x u,    s = 1 where p1 is in the subtree, else -1.
//
// Adjoint. N^ . N + F^ . F of these is -T r, r the rate of the tendon's length when all that is in the subtree moves at
// v(x) = F^ + N^ x (x - p), and nothing else. So T has the bar -r. With dv the difference of the velocities of its
// ends, and u x N^ at an end that moves, a line of the length l has
//
//   r = u . dv,   force on p1 = (dv - u (u . dv)) / l + [u x N^],   the opposite, likewise, on p0.
//
// Of a path that wraps, let y_i be the velocity of its end i relative to the geom, g its gradient and h its change at y
// (actuator/tendon.c). Then r = g . y; the force on end i is h_i + (1, 0 or -1) g_i x N^, and the geom gets the
// reaction of h_i at the end, and the torque g_i x y_i. All of it is multiplied by -T.
#include "physics/actuator/actuator.h"
#include "physics/base/vec.h"
#include "physics/constraint/constraint.h"
#include "physics/dynamics/dynamics.h"
#include "physics/sensor/sensor.h"
#include "physics/sensor/sensor_private.h"

// Bodies of a subtree, and the point about which moments count.
typedef struct TendonSubtree {
  SnBodies bodies;
  const sn_real *p;
} TendonSubtree;

// An end of a line, and whether it is in the subtree.
typedef struct TendonEnd {
  sn_real pos[3];
  bool in;
} TendonEnd;

// A step leaves out the frames of sites between others of their rigid body.
SN_LOCAL TendonEnd tendon_site(const SnModel *m, const SnWorld *w, const TendonSubtree *s, int site) {
  TendonEnd end = {.in = sn_bodies_have(s->bodies, m->site_bodyid[site])};
  sn_site_pose(m, w, site, end.pos, NULL);
  return end;
}

// Direction of a line; returns 1 over its length. One without length has MuJoCo's direction and 0.
SN_LOCAL sn_real tendon_direction(const TendonEnd *a, const TendonEnd *b, sn_real *u) {
  sn_sub3(u, b->pos, a->pos);
  const sn_real length = sn_norm3(u);
  if (length < SN_MINVAL) {
    sn_set3(u, 1, 0, 0);
    return 0;
  }
  sn_scale3(u, u, 1 / length);
  return 1 / length;
}

// Adds what a line pulls with at the force 1 (torque about p, force) to pull.
SN_LOCAL bool tendon_line(const TendonSubtree *s, const TendonEnd *a, const TendonEnd *b, sn_real scale,
                          sn_real *pull) {
  sn_real u[3], arm[3], turn[3];
  if (a->in == b->in) return false;
  const sn_real sign = b->in ? scale : -scale;
  tendon_direction(a, b, u);
  sn_sub3(arm, a->pos, s->p);
  sn_cross(turn, arm, u);
  sn_addtoscl3(pull, turn, sign);
  sn_addtoscl3(pull + 3, u, sign);
  return true;
}

// Segment k of a path, which may wrap.
SN_LOCAL bool tendon_wrap(const SnModel *m, const SnWorld *w, const TendonSubtree *s, int k, sn_real *pull) {
  const TendonEnd a = tendon_site(m, w, s, m->wseg_site[2 * k]), b = tendon_site(m, w, s, m->wseg_site[2 * k + 1]);
  if (!w->wseg_on[k]) return tendon_line(s, &a, &b, m->wseg_scale[k], pull);
  TendonEnd on = {.in = sn_bodies_have(s->bodies, m->geom_bodyid[m->wseg_geom[k]])}, off = on;
  sn_copy3(on.pos, w->wseg_point + 6 * k);
  sn_copy3(off.pos, w->wseg_point + 6 * k + 3);
  const bool before = tendon_line(s, &a, &on, m->wseg_scale[k], pull);
  return tendon_line(s, &off, &b, m->wseg_scale[k], pull) || before;
}

// What spatial tendon t does to the subtree at the force 1. False: no line of it has one end there.
SN_LOCAL bool tendon_pull(const SnModel *m, const SnWorld *w, const TendonSubtree *s, int t, sn_real *pull) {
  const int adr = m->tendon_adr[t], end = adr + m->tendon_num[t];
  sn_real scale = 1;
  bool any = false;
  sn_zero(pull, 6);
  for (int i = adr; i < end; ++i) {
    if (m->wrap_type[i] == SN_WRAP_PULLEY) scale = 1 / m->wrap_prm[i];
    if (m->wrap_seg[i] >= 0) any = tendon_wrap(m, w, s, m->wrap_seg[i], pull) || any;
    if (m->wrap_type[i] != SN_WRAP_SITE || i + 1 == end || m->wrap_type[i + 1] != SN_WRAP_SITE) continue;
    const TendonEnd a = tendon_site(m, w, s, m->wrap_objid[i]), b = tendon_site(m, w, s, m->wrap_objid[i + 1]);
    any = tendon_line(s, &a, &b, scale, pull) || any;
  }
  return any;
}

// Slope of row r by the length of tendon t; 0 where it is none of t.
SN_LOCAL sn_real tendon_row_pull(const SnModel *m, const SnWorld *w, int r, int t) {
  switch (w->efc_type[r]) {
    case SN_CNSTR_EQUALITY:
      return sn_equality_pull(m, w, r, t);
    case SN_CNSTR_FRICTION_TENDON:
      return w->efc_id[r] == t;
    case SN_CNSTR_LIMIT_TENDON:
      return w->efc_id[r] == t ? sn_tendon_limit_pull(m, w, r) : 0;
    default:
      return 0;
  }
}

// J qacc + Jdot qvel of tendon t.
SN_LOCAL sn_real tendon_acceleration(const SnModel *m, const SnWorld *w, int t) {
  const SnRow row = sn_tendon_row(m, w, t);
  sn_real sum = sn_tendon_dot(m, w, t);
  for (int k = 0; k < row.n; ++k) sum += row.J[k] * w->qacc[row.col[k]];
  return sum;
}

// The force along tendon t.
SN_LOCAL sn_real tendon_force(const SnModel *m, const SnWorld *w, int t) {
  sn_real passive[2];
  sn_tendon_passive(m, w, t, passive);
  sn_real sum = passive[0] + passive[1];
  for (int k = m->ten_act_adr[t]; k < m->ten_act_adr[t + 1]; ++k) {
    const int out = m->actuator_outadr[m->ten_act[k]];
    sum += m->actuator_gear[6 * out] * w->actuator_force[out];
  }
  for (int r = 0; r < w->nefc[0]; ++r) sum += tendon_row_pull(m, w, r, t) * w->efc_force[r];
  if (m->ten_arm[t] != 0) sum -= m->ten_arm[t] * tendon_acceleration(m, w, t);
  return sum;
}

SN_FUNC void sn_force_of_tendons(const SnModel *m, const SnWorld *w, SnBodies bodies, const sn_real *p, sn_real *r) {
  const TendonSubtree s = {bodies, p};
  sn_real pull[6];
  for (int t = 0; t < m->ntendon; ++t) {
    if (m->tendon_type[t] != SN_TENDON_SPATIAL || !tendon_pull(m, w, &s, t, pull)) continue;
    const sn_real force = tendon_force(m, w, t);
    for (int e = 0; e < 6; ++e) r[e] -= force * pull[e];
  }
}

// Armature of tendon t, from the bar of J qacc + Jdot qvel.
SN_LOCAL void tendon_acceleration_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int t, sn_real bar) {
  const SnRow row = sn_tendon_row(m, w, t);
  for (int k = 0; k < row.n; ++k) a->qacc_bar[row.col[k]] += bar * row.J[k];
  a->ten_rate_bar[SN_NMOTION * t + SN_ACC] += bar;
  sn_tendon_dot_vjp(m, w, a, t, bar);
}

// What goes on from the bar of the force along tendon t.
SN_LOCAL void tendon_force_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int t, sn_real bar) {
  sn_tendon_passive_vjp(m, w, a, t, bar);
  for (int k = m->ten_act_adr[t]; k < m->ten_act_adr[t + 1]; ++k) {
    const int out = m->actuator_outadr[m->ten_act[k]];
    a->force_bar[out] += bar * m->actuator_gear[6 * out];
#if defined(SN_MODEL_BARS)
    if (sn_model_bar(a) && sn_model_bar(a)->actuator_gear)
      sn_model_bar(a)->actuator_gear[6 * out] += bar * w->actuator_force[out];
#endif
  }
  for (int r = 0; r < w->nefc[0]; ++r) {
    a->row_pos[r] += bar * tendon_row_pull(m, w, r, t);
    if (w->efc_type[r] == SN_CNSTR_EQUALITY) sn_equality_pull_vjp(m, w, a, r, t, bar * w->efc_force[r]);
  }
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a) && sn_model_bar(a)->ten_arm) sn_model_bar(a)->ten_arm[t] -= bar * tendon_acceleration(m, w, t);
#endif
  if (m->ten_arm[t] != 0) tendon_acceleration_vjp(m, w, a, t, -bar * m->ten_arm[t]);
}

// The motion of a subtree that a bar (torque, force) asks for, times minus the force of the tendon.
typedef struct TendonMotion {
  const TendonSubtree *s;
  const sn_real *bar;
  sn_real times;
} TendonMotion;

// v += sign times the velocity of a point of the subtree.
SN_LOCAL void tendon_velocity(const TendonMotion *o, const sn_real *pos, sn_real sign, sn_real *v) {
  sn_real arm[3], turn[3];
  sn_sub3(arm, pos, o->s->p);
  sn_cross(turn, o->bar, arm);
  sn_addtoscl3(v, turn, sign);
  sn_addtoscl3(v, o->bar + 3, sign);
}

// A line from site 0 to site 1, of which one moves.
SN_LOCAL void tendon_line_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, const TendonMotion *o, const int *site,
                              sn_real scale) {
  const TendonEnd end[2] = {tendon_site(m, w, o->s, site[0]), tendon_site(m, w, o->s, site[1])};
  sn_real u[3], dv[3] = {0}, f[3], turn[3];
  if (end[0].in == end[1].in) return;
  const sn_real per = tendon_direction(&end[0], &end[1], u), times = o->times * scale;
  tendon_velocity(o, end[end[1].in].pos, end[1].in ? 1 : -1, dv);
  sn_addscl3(f, dv, u, -sn_dot3(u, dv));
  sn_scale3(f, f, per);
  sn_cross(turn, u, o->bar);
  for (int i = 0; i < 2; ++i) {
    const sn_real sign = i == 1 ? times : -times;
    sn_real on[3];
    sn_scale3(on, f, sign);
    if (end[i].in) sn_addtoscl3(on, turn, sign);
    sn_object_push(m, w, a, SN_OBJ_SITE, site[i], end[i].pos, on);
  }
}

// Segment k of a path, which touches its geom.
SN_LOCAL void tendon_touch_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, const TendonMotion *o, int k) {
  const int *site = m->wseg_site + 2 * k, geom = m->wseg_geom[k];
  const TendonEnd end[2] = {tendon_site(m, w, o->s, site[0]), tendon_site(m, w, o->s, site[1])};
  const sn_real in = sn_bodies_have(o->s->bodies, m->geom_bodyid[geom]), scale = m->wseg_scale[k];
  sn_real y[6] = {0}, g[6], h[6], force[3] = {0}, torque[3] = {0};
  for (int i = 0; i < 2; ++i) tendon_velocity(o, end[i].pos, o->times * (end[i].in - in), y + 3 * i);
  sn_tendon_wrap_vjp(m, w, a, k, y, g, h);
  for (int e = 0; e < 6; ++e) {
    y[e] *= scale;
    h[e] *= scale;
  }
  for (int i = 0; i < 2; ++i) {
    sn_real on[3], turn[3], arm[3];
    sn_cross(turn, g + 3 * i, o->bar);
    sn_addscl3(on, h + 3 * i, turn, scale * o->times * (end[i].in - in));
    sn_object_push(m, w, a, SN_OBJ_SITE, site[i], end[i].pos, on);
    sn_subfrom3(force, h + 3 * i);
    sn_sub3(arm, end[i].pos, w->geom_xpos + 3 * geom);
    sn_cross(turn, h + 3 * i, arm);
    sn_addto3(torque, turn);
    sn_cross(turn, g + 3 * i, y + 3 * i);
    sn_addto3(torque, turn);
  }
  sn_object_pose_vjp(m, w, a, SN_OBJ_GEOM, geom, force, torque);
}

// What places of sites and geoms get from the pull of tendon t.
SN_LOCAL void tendon_pull_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, const TendonMotion *o, int t) {
  const int adr = m->tendon_adr[t], end = adr + m->tendon_num[t];
  sn_real scale = 1;
  for (int i = adr; i < end; ++i) {
    const int k = m->wrap_seg[i];
    if (m->wrap_type[i] == SN_WRAP_PULLEY) scale = 1 / m->wrap_prm[i];
    if (k >= 0 && w->wseg_on[k]) tendon_touch_vjp(m, w, a, o, k);
    if (k >= 0 && !w->wseg_on[k]) tendon_line_vjp(m, w, a, o, m->wseg_site + 2 * k, m->wseg_scale[k]);
    if (m->wrap_type[i] != SN_WRAP_SITE || i + 1 == end || m->wrap_type[i + 1] != SN_WRAP_SITE) continue;
    tendon_line_vjp(m, w, a, o, m->wrap_objid + i, scale);
  }
}

SN_FUNC void sn_force_of_tendons_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnBodies bodies,
                                     const sn_real *p, const sn_real *bar, sn_real *p_bar) {
  const TendonSubtree s = {bodies, p};
  sn_real pull[6], turn[3];
  for (int t = 0; t < m->ntendon; ++t) {
    if (m->tendon_type[t] != SN_TENDON_SPATIAL || !tendon_pull(m, w, &s, t, pull)) continue;
    const sn_real force = tendon_force(m, w, t);
    const TendonMotion o = {&s, bar, -force};
    tendon_pull_vjp(m, w, a, &o, t);
    sn_cross(turn, pull + 3, bar);
    sn_addtoscl3(p_bar, turn, force);
    tendon_force_vjp(m, w, a, t, -sn_dot(bar, pull, 6));
  }
}
