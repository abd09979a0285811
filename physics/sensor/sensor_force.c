// Sensors of accelerations, and of the force that a body passes to its parent.
//
// Accelerations are those of frame.c. The interaction of body B with its parent, about a point p of B, is what the
// bodies b of its subtree need, less what contacts and equalities exert on them from outside:
//
//   F = sum_b m a_b - sum f,    N = sum_b [I alpha + w x I w + (c_b - p) x m a_b] - sum [t + (x - p) x f]
//
// with c_b a centre of mass, a_b its acceleration (gravity's opposite included), f, t force and torque at x. Spatial
// tendons that lead out of the subtree act on it, too: sensor_force_tendon.c.
//
// Adjoint. With bars F^, N^ of these two in world axes, a force at x whose sum has the arm x - p has the bar
//
//   f: F^ + N^ x (x - p),   t: N^,   x: f x N^,   p: -f x N^,
//
// m a_b at c_b alike. For the turning part, with u = N^ x w,
//
//   alpha: I N^,   w: I w x N^ + I u,   a small turn of I: I alpha x N^ + I N^ x alpha + I w x u + I u x w.
//
// Forces of contacts and equalities hand their bars to efc_force, frames and places of contacts to these.
#include "physics/base/vec.h"
#include "physics/constraint/constraint.h"
#include "physics/sensor/sensor.h"
#include "physics/sensor/sensor_private.h"

SN_FUNC bool sn_sensor_is_force(int type) {
  switch (type) {
    case SN_SENS_ACCELEROMETER:
    case SN_SENS_FORCE:
    case SN_SENS_TORQUE:
    case SN_SENS_FRAMELINACC:
    case SN_SENS_FRAMEANGACC:
      return true;
    default:
      return false;
  }
}

SN_FUNC bool sn_force_sensor_supported(const SnModel *m, int i) {
  const int type = m->sensor_type[i];
  if (type == SN_SENS_FRAMELINACC || type == SN_SENS_FRAMEANGACC)
    return sn_object_has_frame(m, m->sensor_objtype[i], m->sensor_objid[i]);
  // MuJoCo sums torques of trees about their own centres of mass where they reach the world
  return type != SN_SENS_TORQUE || m->site_bodyid[m->sensor_objid[i]] > 0;
}

// ---- accelerations ----

SN_LOCAL void force_acceleration_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  const int type = m->sensor_type[i], id = m->sensor_objid[i];
  sn_real acc[6], mat[9];
  sn_object_acceleration(m, w, m->sensor_objtype[i], id, acc);
  if (type != SN_SENS_ACCELEROMETER) {
    sn_copy3(value, acc + (type == SN_SENS_FRAMELINACC ? 3 : 0));
    return;
  }
  sn_object_pose(m, w, SN_OBJ_SITE, id, NULL, mat);
  sn_mulmattvec3(value, mat, acc + 3);
}

SN_LOCAL void force_acceleration_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *bar) {
  const int type = m->sensor_type[i], id = m->sensor_objid[i];
  sn_real acc[6], mat[9], acc_bar[6] = {0}, torque[3];
  if (type != SN_SENS_ACCELEROMETER) {
    sn_copy3(acc_bar + (type == SN_SENS_FRAMELINACC ? 3 : 0), bar);
    sn_object_acceleration_vjp(m, w, a, m->sensor_objtype[i], id, acc_bar);
    return;
  }
  sn_object_acceleration(m, w, SN_OBJ_SITE, id, acc);
  sn_object_pose(m, w, SN_OBJ_SITE, id, NULL, mat);
  sn_mulmatvec3(acc_bar + 3, mat, bar);
  sn_cross(torque, acc_bar + 3, acc + 3);
  sn_object_acceleration_vjp(m, w, a, SN_OBJ_SITE, id, acc_bar);
  sn_object_pose_vjp(m, w, a, SN_OBJ_SITE, id, NULL, torque);
}

// ---- what a body passes to its parent ----

// How a body moves: centre and axes of its inertia, its velocity and acceleration there.
typedef struct ForceBody {
  sn_real pos[3], mat[9], vel[6], acc[6];
} ForceBody;

SN_LOCAL void force_body(const SnModel *m, const SnWorld *w, int body, ForceBody *b) {
  sn_object_pose(m, w, SN_OBJ_BODY, body, b->pos, b->mat);
  sn_point_velocity(m, w, body, b->pos, b->vel);
  sn_point_acceleration(m, w, body, b->pos, b->acc);
}

// r (torque, force) += s times force f and torque t at x, about p.
SN_LOCAL void force_add(sn_real *r, const sn_real *p, sn_real s, const sn_real *x, const sn_real *f, const sn_real *t) {
  sn_real arm[3], turn[3];
  sn_sub3(arm, x, p);
  sn_cross(turn, arm, f);
  sn_addto3(turn, t);
  sn_addtoscl3(r, turn, s);
  sn_addtoscl3(r + 3, f, s);
}

SN_LOCAL void force_of_body(const SnModel *m, const SnWorld *w, int body, const sn_real *p, sn_real *r) {
  ForceBody b;
  sn_real f[3], t[3], Iw[3], gyro[3];
  force_body(m, w, body, &b);
  sn_scale3(f, b.acc + 3, m->body_mass[body]);
  sn_sensor_inertia(m, body, b.mat, b.acc, t);
  sn_sensor_inertia(m, body, b.mat, b.vel, Iw);
  sn_cross(gyro, b.vel, Iw);
  sn_addto3(t, gyro);
  force_add(r, p, 1, b.pos, f, t);
}

// How often the force on geom[1] of contact i counts for a subtree: 1, -1, 0.
SN_LOCAL int force_contact_sign(const SnModel *m, const SnContact *con, SnBodies bodies) {
  return sn_bodies_have(bodies, m->geom_bodyid[con->geom[1]]) - sn_bodies_have(bodies, m->geom_bodyid[con->geom[0]]);
}

// Force and torque of contact i in world axes.
SN_LOCAL void force_of_contact(const SnWorld *w, int i, sn_real *f, sn_real *t) {
  sn_real local[6];
  sn_contact_force(w, i, local);
  sn_mulmattvec3(f, w->contact[i].frame, local);
  sn_mulmattvec3(t, w->contact[i].frame, local + 3);
}

// (torque about p, force) that bodies pass to the others, in world axes.
SN_LOCAL void force_interaction(const SnModel *m, const SnWorld *w, SnBodies bodies, const sn_real *p, sn_real *r) {
  sn_real f[3], t[3];
  sn_zero(r, 6);
  for (int b = bodies.first; b <= bodies.last; ++b) force_of_body(m, w, b, p, r);
  for (int i = 0; i < w->ncon[0]; ++i) {
    const int sign = w->contact[i].efc_address < 0 ? 0 : force_contact_sign(m, w->contact + i, bodies);
    if (sign == 0) continue;
    force_of_contact(w, i, f, t);
    force_add(r, p, (sn_real)-sign, w->contact[i].pos, f, t);
  }
  for (int row = 0; row < w->ne[0]; row += sn_equality_size(m, w, row)) {
    SnEqualityForce e;
    if (!sn_equality_force(m, w, row, &e)) continue;
    for (int side = 0; side < 2; ++side)
      if (sn_bodies_have(bodies, e.body[side]))
        force_add(r, p, side == 0 ? SN_R(-1.0) : SN_R(1.0), e.pos[side], e.force, e.torque);
  }
}

// Bars of force f at x, of its place, and of p, added; s: how often it counts. bar: (torque, force) of the sum.
SN_LOCAL void force_add_vjp(const sn_real *bar, const sn_real *p, sn_real s, const sn_real *x, const sn_real *f,
                            sn_real *f_bar, sn_real *x_bar, sn_real *p_bar) {
  sn_real arm[3], t[3];
  sn_sub3(arm, x, p);
  sn_cross(t, bar, arm);
  sn_addto3(t, bar + 3);
  sn_scale3(f_bar, t, s);
  sn_cross(t, f, bar);
  sn_scale3(x_bar, t, s);
  sn_subfrom3(p_bar, x_bar);
}

SN_LOCAL void force_of_body_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int body, const sn_real *p,
                                const sn_real *bar, sn_real *p_bar) {
  const sn_real *N = bar;
  ForceBody b;
  sn_real f[3], f_bar[3], x_bar[3], acc_bar[6], vel_bar[6] = {0}, torque[3], Iw[3], Ia[3], IN[3], Iu[3], u[3], t[3];
  force_body(m, w, body, &b);
  sn_scale3(f, b.acc + 3, m->body_mass[body]);
  force_add_vjp(bar, p, 1, b.pos, f, f_bar, x_bar, p_bar);
  sn_sensor_inertia(m, body, b.mat, b.vel, Iw);
  sn_sensor_inertia(m, body, b.mat, b.acc, Ia);
  sn_sensor_inertia(m, body, b.mat, N, IN);
  sn_cross(u, N, b.vel);
  sn_sensor_inertia(m, body, b.mat, u, Iu);
  sn_copy3(acc_bar, IN);
  sn_scale3(acc_bar + 3, f_bar, m->body_mass[body]);
  sn_cross(vel_bar, Iw, N);
  sn_addto3(vel_bar, Iu);
  sn_cross(torque, Ia, N);
  sn_cross(t, IN, b.acc);
  sn_addto3(torque, t);
  sn_cross(t, Iw, u);
  sn_addto3(torque, t);
  sn_cross(t, Iu, b.vel);
  sn_addto3(torque, t);
  sn_point_acceleration_vjp(m, w, a, body, b.pos, acc_bar, x_bar);
  sn_object_velocity_vjp(m, w, a, SN_OBJ_BODY, body, vel_bar);
  sn_object_pose_vjp(m, w, a, SN_OBJ_BODY, body, x_bar, torque);
#if defined(SN_MODEL_BARS)
  sn_mass_model_bar(a, body, sn_dot3(f_bar, b.acc + 3));
  sn_inertia_model_bar(a, body, b.mat, N, b.acc);
  sn_inertia_model_bar(a, body, b.mat, u, b.vel);
#endif
}

SN_LOCAL void force_of_contact_vjp(const SnWorld *w, SnAdjoint *a, int i, sn_real sign, const sn_real *p,
                                   const sn_real *bar, sn_real *p_bar) {
  const SnContact *con = w->contact + i;
  sn_real local[6], f[3], t[3], f_bar[3], t_bar[3], x_bar[3], local_bar[6];
  sn_contact_force(w, i, local);
  force_of_contact(w, i, f, t);
  force_add_vjp(bar, p, sign, con->pos, f, f_bar, x_bar, p_bar);
  sn_scale3(t_bar, bar, sign);
  sn_mulmatvec3(local_bar, con->frame, f_bar);
  sn_mulmatvec3(local_bar + 3, con->frame, t_bar);
  sn_contact_force_vjp(w, a, i, local_bar);
  sn_addto3(a->con_pos_bar + 3 * i, x_bar);
  for (int k = 0; k < 3; ++k) {
    sn_addtoscl3(a->con_frame_bar + 9 * i + 3 * k, f_bar, local[k]);
    sn_addtoscl3(a->con_frame_bar + 9 * i + 3 * k, t_bar, local[3 + k]);
  }
}

SN_LOCAL void force_of_equality_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int row, SnBodies bodies,
                                    const sn_real *p, const sn_real *bar, sn_real *p_bar) {
  SnEqualityForce e, to = {.torque = {0}};
  if (!sn_equality_force(m, w, row, &e)) return;
  for (int side = 0; side < 2; ++side) {
    const sn_real sign = side == 0 ? SN_R(-1.0) : SN_R(1.0);
    sn_real f_bar[3];
    if (!sn_bodies_have(bodies, e.body[side])) continue;
    force_add_vjp(bar, p, sign, e.pos[side], e.force, f_bar, to.pos[side], p_bar);
    sn_addto3(to.force, f_bar);
    sn_addtoscl3(to.torque, bar, sign);
  }
  sn_equality_force_vjp(m, w, a, row, &to);
}

// Bars of what force_interaction gives, likewise. Adds what p receives to p_bar.
SN_LOCAL void force_interaction_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnBodies bodies, const sn_real *p,
                                    const sn_real *bar, sn_real *p_bar) {
  for (int b = bodies.first; b <= bodies.last; ++b) force_of_body_vjp(m, w, a, b, p, bar, p_bar);
  for (int i = 0; i < w->ncon[0]; ++i) {
    const int sign = w->contact[i].efc_address < 0 ? 0 : force_contact_sign(m, w->contact + i, bodies);
    if (sign != 0) force_of_contact_vjp(w, a, i, (sn_real)-sign, p, bar, p_bar);
  }
  for (int row = 0; row < w->ne[0]; row += sn_equality_size(m, w, row))
    force_of_equality_vjp(m, w, a, row, bodies, p, bar, p_bar);
}

SN_LOCAL void force_site_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  const int site = m->sensor_objid[i];
  const SnBodies bodies = sn_force_bodies(m, m->site_bodyid[site]);
  sn_real pos[3], mat[9], r[6];
  sn_object_pose(m, w, SN_OBJ_SITE, site, pos, mat);
  force_interaction(m, w, bodies, pos, r);
  if (m->sensor_tendons[i]) sn_force_of_tendons(m, w, bodies, pos, r);
  sn_mulmattvec3(value, mat, r + (m->sensor_type[i] == SN_SENS_FORCE ? 3 : 0));
}

SN_LOCAL void force_site_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *bar) {
  const int site = m->sensor_objid[i], part = m->sensor_type[i] == SN_SENS_FORCE ? 3 : 0;
  const SnBodies bodies = sn_force_bodies(m, m->site_bodyid[site]);
  const bool tendons = m->sensor_tendons[i];
  sn_real pos[3], mat[9], r[6], r_bar[6] = {0}, p_bar[3] = {0}, torque[3];
  sn_object_pose(m, w, SN_OBJ_SITE, site, pos, mat);
  force_interaction(m, w, bodies, pos, r);
  if (tendons) sn_force_of_tendons(m, w, bodies, pos, r);
  sn_mulmatvec3(r_bar + part, mat, bar);
  sn_cross(torque, r_bar + part, r + part);
  force_interaction_vjp(m, w, a, bodies, pos, r_bar, p_bar);
  if (tendons) sn_force_of_tendons_vjp(m, w, a, bodies, pos, r_bar, p_bar);
  sn_object_pose_vjp(m, w, a, SN_OBJ_SITE, site, p_bar, torque);
}

SN_FUNC void sn_force_sensor_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  if (m->sensor_type[i] == SN_SENS_FORCE || m->sensor_type[i] == SN_SENS_TORQUE)
    force_site_value(m, w, i, value);
  else
    force_acceleration_value(m, w, i, value);
}

SN_FUNC void sn_force_sensor_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real bar[3]) {
  if (m->sensor_type[i] == SN_SENS_FORCE || m->sensor_type[i] == SN_SENS_TORQUE)
    force_site_vjp(m, w, a, i, bar);
  else
    force_acceleration_vjp(m, w, a, i, bar);
}
