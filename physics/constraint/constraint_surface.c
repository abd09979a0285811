// Surfaces that move along their geoms, as conveyor belts and turntables do (MuJoCo manual, XMLreference, surfacevel).
//
// A geom with frame R at p has the field of velocities s(x) = R v + R o x (x - p), angular velocity R o. The velocity J
// v of a contact's rows grows by that of geom[1] less that of geom[0] at the contact's point: along the tangents, and
// about the normal for dim 4 and more; not along the normal, not in rolling.
//
// Adjoint: with the coefficients F of the contact velocities of the motion v (constraint_contact.c), g = sum of F over
// the tangents and h = F of the spin along the normal are the bars of s and of the angular velocity. Then
//   t1_bar, t2_bar += F s,   n_bar += F R o,   x_bar += g x R o,
// and with r = x - p and the sign of the side a displacement of the geom receives
//   torque at p  (R v) x g + (R o) x (h + r x g),    force  -(g x R o);    v_bar += R' g,   o_bar += R' (h + r x g).
#include "physics/base/vec.h"
#include "physics/constraint/constraint_private.h"

// Moves geom g's surface: 1 for geom[1] of a contact, -1 for geom[0], 0 where it does not move.
SN_LOCAL sn_real surface_sign(const SnModel *m, const SnContact *con, int side) {
  const sn_real *v = m->geom_surfacevel + 6 * con->geom[side];
  for (int e = 0; e < 6; ++e)
    if (v[e] != 0) return side == 0 ? SN_R(-1.0) : SN_R(1.0);
  return 0;
}

// Velocity and angular velocity of the surface of a geom at a point of a contact, in world axes.
SN_LOCAL void surface_field(const SnModel *m, const SnWorld *w, const SnContact *con, int side, sn_real *lin,
                            sn_real *ang) {
  const int g = con->geom[side];
  const sn_real *v = m->geom_surfacevel + 6 * g, *R = w->geom_xmat + 9 * g;
  sn_real r[3];
  sn_mulmatvec3(lin, R, v);
  sn_mulmatvec3(ang, R, v + 3);
  sn_sub3(r, con->pos, w->geom_xpos + 3 * g);
  sn_addcross(lin, ang, r);
}

#if !defined(SN_PACK)
SN_FUNC void sn_surface_velocity(const SnModel *m, const SnWorld *w, int i, sn_real vel[6]) {
  const SnContact *con = w->contact + i;
  sn_real lin[3] = {0}, ang[3] = {0};
  sn_zero(vel, 6);
  for (int side = 0; side < 2; ++side) {
    const sn_real sign = surface_sign(m, con, side);
    sn_real s[3], o[3];
    if (sign == 0) continue;
    surface_field(m, w, con, side, s, o);
    sn_addtoscl3(lin, s, sign);
    sn_addtoscl3(ang, o, sign);
  }
  if (con->dim > 1) {
    vel[1] = sn_dot3(con->frame + 3, lin);
    vel[2] = sn_dot3(con->frame + 6, lin);
  }
  if (con->dim > 3) vel[3] = sn_dot3(con->frame, ang);
}

SN_FUNC void sn_surface_rows(const SnModel *m, SnWorld *w, int i) {
  const SnContact *con = w->contact + i;
  sn_real vel[6], *rows = w->efc_vel + con->efc_address;
  if (con->efc_address < 0 || con->dim == 1) return;
  sn_surface_velocity(m, w, i, vel);
  for (int k = 1; k < con->dim; ++k) {
    if (m->opt.cone == SN_CONE_ELLIPTIC) {
      rows[k] += vel[k];
    } else {
      rows[2 * k - 2] += con->friction[k - 1] * vel[k];
      rows[2 * k - 1] -= con->friction[k - 1] * vel[k];
    }
  }
}
#endif

// One side of a contact; F (6): coefficients of its velocities of the motion v.
SN_LOCAL void surface_side_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, int side, const sn_bar *F) {
  const SnContact *con = w->contact + i;
  const sn_real sign = surface_sign(m, con, side);
  const int geom = con->geom[side], link = m->link_of_geom[geom];
  const sn_real *R = w->geom_xmat + 9 * geom, *v = m->geom_surfacevel + 6 * geom;
  sn_bar *frame = a->con_frame_bar + 9 * i, g[3], h[3] = {0}, t[3], torque[3];
  sn_real s[3], o[3], lin[3], r[3];
  if (sign == 0) return;
  surface_field(m, w, con, side, s, o);
  sn_mulmatvec3(lin, R, v);
  sn_sub3(r, con->pos, w->geom_xpos + 3 * geom);
  sn_addtoscl3(frame + 3, s, sign * F[1]);
  sn_addtoscl3(frame + 6, s, sign * F[2]);
  for (int e = 0; e < 3; ++e) g[e] = sign * (con->frame[3 + e] * F[1] + con->frame[6 + e] * F[2]);
  if (con->dim > 3) {
    sn_addtoscl3(frame, o, sign * F[3]);
    for (int e = 0; e < 3; ++e) h[e] = sign * con->frame[e] * F[3];
  }
  sn_cross(t, g, o);
  sn_addto3(a->con_pos_bar + 3 * i, t);
  sn_addcross(h, r, g);
  sn_cross(torque, lin, g);
  sn_addcross(torque, o, h);
  sn_scale3(t, t, -1);
  sn_bar *wrench = a->wrench + 6 * link;
  sn_real arm[3];
  sn_sub3(arm, w->geom_xpos + 3 * geom, w->subtree_com + 3 * m->body_rootid[link]);
  sn_addto3(wrench, torque);
  sn_addcross(wrench, arm, t);
  sn_addto3(wrench + 3, t);
#if defined(SN_MODEL_BARS)
  SnModelBar *bar = sn_model_bar(a);
  if (!bar) return;
  sn_addto3(bar->geom_wrench + 6 * geom, torque);
  sn_addto3(bar->geom_wrench + 6 * geom + 3, t);
  if (!bar->geom_surfacevel) return;
  sn_mulmattvec3(t, R, g);
  sn_addto3(bar->geom_surfacevel + 6 * geom, t);
  sn_mulmattvec3(t, R, h);
  sn_addto3(bar->geom_surfacevel + 6 * geom + 3, t);
#endif
}

SN_FUNC void sn_surface_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i) {
  const SnContact *con = w->contact + i;
  const bool pyramid = m->opt.cone == SN_CONE_PYRAMIDAL;
  sn_bar F[6] = {0};
  if (con->efc_address < 0 || con->dim == 1) return;
  for (int k = 1; k < con->dim; ++k) {
    const sn_bar *z = a->row_z + 3 * con->efc_address + 2;
    F[k] = pyramid ? con->friction[k - 1] * (z[3 * (2 * k - 2)] - z[3 * (2 * k - 1)]) : z[3 * k];
  }
  for (int side = 0; side < 2; ++side) surface_side_vjp(m, w, a, i, side, F);
}
