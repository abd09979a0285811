// Sensors of energy, with MuJoCo's definitions (mj_energyPos, mj_energyVel).
//
// Potential energy is that of gravity, -sum m g . c over the bodies, and of the springs of joints and tendons: with x
// the stretch (of rotations the angle, of a free joint's translation the distance)
//
//   V(x) = k x^2 / 2 + p_0 x^3 / 3 + p_1 x^4 / 4,    dV/dx = x (k + p_0 x + p_1 x^2).
//
// Kinetic energy is v' M v / 2, M with the inertia of rotors and of tendons.
//
// Adjoint. -m g pulls at each centre of mass; a stretch hands on dV/dx, of rotations along the axis of the turn. The
// kinetic energy of a link with momentum P = m u and angular momentum L = I w about its centre of mass c gives
// (L + (c - c_0) x P, P) to its twist; and as it depends on the place of c at a given twist, and on how I is turned,
// the force P x w at c and the torque L x w. A rotor gives its inertia times its velocity, likewise a tendon.
//
// At a stretch of length 0 the direction is taken as 0. Tendons with armature that branch are cut to M's pattern, so
// that a model with armature of tendons has no gradient of kinetic energy here.
#include "physics/base/polynomial.h"
#include "physics/base/vec.h"
#include "physics/dynamics/dynamics.h"
#include "physics/sensor/sensor.h"
#include "physics/sensor/sensor_private.h"

SN_LOCAL sn_real energy_of_stretch(sn_real k, const sn_real *poly, sn_real x) {
  return x * x * (k / 2 + x * (poly[0] / 3 + x * (poly[1] / 4)));
}

SN_LOCAL bool energy_joint_has_spring(const SnModel *m, int j) {
  return m->jnt_stiffness[j] != 0 || m->jnt_stiffnesspoly[SN_NPOLY * j] != 0 ||
         m->jnt_stiffnesspoly[SN_NPOLY * j + 1] != 0;
}

SN_LOCAL sn_real energy_joint(const SnModel *m, const SnWorld *w, int j) {
  const sn_real k = m->jnt_stiffness[j], *poly = m->jnt_stiffnesspoly + SN_NPOLY * j;
  sn_real dif[6], sum = 0;
  const int n = sn_joint_stretch(m, w, j, dif);
  if (n == 1) sum = energy_of_stretch(k, poly, dif[0]);
  for (int e = 0; e + 3 <= n; e += 3) sum += energy_of_stretch(k, poly, sn_norm3(dif + e));
  return sum;
}

#if defined(SN_MODEL_BARS)
// Bars of the coefficients of V(x).
SN_LOCAL void energy_spring_model_vjp(sn_real *linear, sn_real *poly, sn_real x, sn_real bar) {
  if (linear) linear[0] += bar * x * x / 2;
  for (int k = 0; poly && k < SN_NPOLY; ++k) poly[k] += bar * x * x * (k == 0 ? x / 3 : x * x / 4);
}

// The spring of joint j by the model: stretches dif, n numbers.
SN_LOCAL void energy_joint_model_vjp(const SnModel *m, SnModelBar *to, int j, const sn_real *dif, int n, sn_real bar) {
  const sn_real k = m->jnt_stiffness[j], *poly = m->jnt_stiffnesspoly + SN_NPOLY * j;
  sn_real *linear = to->jnt_stiffness ? to->jnt_stiffness + j : NULL;
  sn_real *others = to->jnt_stiffnesspoly ? to->jnt_stiffnesspoly + SN_NPOLY * j : NULL;
  sn_real *rest = to->qpos_spring ? to->qpos_spring + m->jnt_qposadr[j] : NULL;
  if (n == 1) {
    energy_spring_model_vjp(linear, others, dif[0], bar);
    if (rest) rest[0] -= bar * dif[0] * sn_polynomial(k, poly, dif[0]);
  }
  for (int e = 0; e + 3 <= n; e += 3) energy_spring_model_vjp(linear, others, sn_norm3(dif + e), bar);
  if (rest && n == 6) sn_addtoscl3(rest, dif, -bar * sn_polynomial(k, poly, sn_norm3(dif)));
}

// The spring of tendon t, stretched by x, likewise.
SN_LOCAL void energy_tendon_model_vjp(const SnModel *m, SnModelBar *to, int t, sn_real x, sn_real bar) {
  energy_spring_model_vjp(to->tendon_stiffness ? to->tendon_stiffness + t : NULL,
                          to->tendon_stiffnesspoly ? to->tendon_stiffnesspoly + SN_NPOLY * t : NULL, x, bar);
  if (to->tendon_lengthspring && x != 0)
    to->tendon_lengthspring[2 * t + (x > 0)] -=
        bar * x * sn_polynomial(m->tendon_stiffness[t], m->tendon_stiffnesspoly + SN_NPOLY * t, x);
}
#endif

// An axis stays the same in the frames before and behind its turn, so that dV/dx along dif / x is a tangent.
SN_LOCAL void energy_joint_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int j, sn_real bar) {
  const sn_real k = m->jnt_stiffness[j], *poly = m->jnt_stiffnesspoly + SN_NPOLY * j;
  sn_real dif[6], *out = a->qpos_bar + m->jnt_dofadr[j];
  const int n = sn_joint_stretch(m, w, j, dif);
  if (n == 1) out[0] += bar * dif[0] * sn_polynomial(k, poly, dif[0]);
  for (int e = 0; e + 3 <= n; e += 3) sn_addtoscl3(out + e, dif + e, bar * sn_polynomial(k, poly, sn_norm3(dif + e)));
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) energy_joint_model_vjp(m, sn_model_bar(a), j, dif, n, bar);
#endif
}

SN_LOCAL sn_real energy_potential(const SnModel *m, const SnWorld *w) {
  const bool gravity = !(m->opt.disableflags & SN_DSBL_GRAVITY), springs = !(m->opt.disableflags & SN_DSBL_SPRING);
  sn_real sum = 0, pos[3];
  for (int i = 1; gravity && i < m->nbody; ++i) {
    sn_object_pose(m, w, SN_OBJ_BODY, i, pos, NULL);
    sum -= m->body_mass[i] * sn_dot3(m->opt.gravity, pos);
  }
  for (int j = 0; springs && j < m->njnt; ++j)
    if (energy_joint_has_spring(m, j)) sum += energy_joint(m, w, j);
  for (int t = 0; springs && t < m->ntendon; ++t)
    sum +=
        energy_of_stretch(m->tendon_stiffness[t], m->tendon_stiffnesspoly + SN_NPOLY * t, sn_tendon_stretch(m, w, t));
  return sum;
}

SN_LOCAL void energy_potential_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, sn_real bar) {
  const bool gravity = !(m->opt.disableflags & SN_DSBL_GRAVITY), springs = !(m->opt.disableflags & SN_DSBL_SPRING);
  sn_real pull[3];
  for (int i = 1; gravity && i < m->nbody; ++i) {
    sn_scale3(pull, m->opt.gravity, -bar * m->body_mass[i]);
    sn_object_pose_vjp(m, w, a, SN_OBJ_BODY, i, pull, NULL);
#if defined(SN_MODEL_BARS)
    sn_real pos[3];
    sn_object_pose(m, w, SN_OBJ_BODY, i, pos, NULL);
    sn_mass_model_bar(a, i, -bar * sn_dot3(m->opt.gravity, pos));
    if (sn_model_bar(a) && sn_model_bar(a)->gravity)
      sn_addtoscl3(sn_model_bar(a)->gravity, pos, -bar * m->body_mass[i]);
#endif
  }
  for (int j = 0; springs && j < m->njnt; ++j)
    if (energy_joint_has_spring(m, j)) energy_joint_vjp(m, w, a, j, bar);
  for (int t = 0; springs && t < m->ntendon; ++t) {
    const sn_real x = sn_tendon_stretch(m, w, t);
    a->ten_length_bar[t] += bar * x * sn_polynomial(m->tendon_stiffness[t], m->tendon_stiffnesspoly + SN_NPOLY * t, x);
#if defined(SN_MODEL_BARS)
    if (sn_model_bar(a)) energy_tendon_model_vjp(m, sn_model_bar(a), t, x, bar);
#endif
  }
}

// v' M v / 2 by the rows of M's lower triangle, the diagonal last.
SN_LOCAL sn_real energy_kinetic(const SnModel *m, const SnWorld *w) {
  sn_real sum = 0;
  for (int i = 0; i < m->nv; ++i) {
    const int adr = m->M_rowadr[i], last = adr + m->M_rownnz[i] - 1;
    sn_real row = w->M[last] * w->qvel[i] / 2;
    for (int k = adr; k < last; ++k) row += w->M[k] * w->qvel[m->M_colind[k]];
    sum += w->qvel[i] * row;
  }
  return sum;
}

// Rows of M of a simple body are constants: by velocities and positions its energy goes by these, not by the link.
SN_LOCAL void energy_link_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int link, sn_real bar) {
  const sn_real *G = w->link_xinertia + 6 * link, *c = w->link_xcom + 3 * link, *twist = w->cvel + 6 * link;
  const bool simple = m->body_dofnum[link] > 0 && m->dof_simplenum[m->body_dofadr[link]] > 0;
  sn_real vel[6], P[3], L[3], arm[3], t[3], force[3], torque[3];
  sn_point_velocity(m, w, link, c, vel);
  sn_scale3(P, vel + 3, bar * m->link_mass[link]);
  sn_set3(L, G[0] * twist[0] + G[3] * twist[1] + G[4] * twist[2], G[3] * twist[0] + G[1] * twist[1] + G[5] * twist[2],
          G[4] * twist[0] + G[5] * twist[1] + G[2] * twist[2]);
  sn_scale3(L, L, bar);
  sn_sub3(arm, c, sn_twist_origin(m, w, link));
  sn_cross(t, arm, P);
  sn_cross(force, P, vel);
  sn_cross(torque, L, vel);
  if (!simple) {
    sn_real *out = sn_twist_bar(m, a, link, SN_VEL);
    sn_addto3(out, L);
    sn_addto3(out, t);
    sn_addto3(out + 3, P);
    sn_point_wrench(m, w, a, link, c, force, torque);
  }
#if defined(SN_MODEL_BARS)
  SnModelBar *to = sn_model_bar(a);
  const sn_real *R = w->xmat + 9 * link;
  if (to && to->link_mass) to->link_mass[link] += bar / 2 * sn_dot3(vel + 3, vel + 3);
  if (to && to->link_com) {
    sn_mulmattvec3(t, R, force);
    sn_addto3(to->link_com + 3 * link, t);
  }
  if (to && to->link_inertia) sn_add_inertia_bar(to->link_inertia + 6 * link, R, twist, twist, bar / 2);
#endif
}

SN_LOCAL void energy_kinetic_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, sn_real bar) {
  for (int k = 0; k < m->nlink; ++k)
    if (m->body_treeid[m->level_body[k]] >= 0) energy_link_vjp(m, w, a, m->level_body[k], bar);
  for (int i = 0; i < m->nv; ++i)
    a->qvel_bar[i] += bar * (m->dof_simplenum[i] ? m->dof_M0[i] : m->dof_arm[i]) * w->qvel[i];
#if defined(SN_MODEL_BARS)
  for (int i = 0; sn_model_bar(a) && sn_model_bar(a)->dof_arm && i < m->nv; ++i)
    sn_model_bar(a)->dof_arm[i] += bar / 2 * w->qvel[i] * w->qvel[i];
#endif
}

SN_FUNC bool sn_energy_differentiable(const SnModel *m, int type) {
  if (type == SN_SENS_E_POTENTIAL) return m->nplastic == 0;  // rests of springs that yield are no constants
  for (int t = 0; t < m->ntendon; ++t)
    if (m->ten_arm[t] != 0) return false;
  return true;
}

SN_FUNC sn_real sn_energy_value(const SnModel *m, const SnWorld *w, int type) {
  return type == SN_SENS_E_POTENTIAL ? energy_potential(m, w) : energy_kinetic(m, w);
}

SN_FUNC void sn_energy_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int type, sn_real bar) {
  if (type == SN_SENS_E_POTENTIAL)
    energy_potential_vjp(m, w, a, bar);
  else
    energy_kinetic_vjp(m, w, a, bar);
}
