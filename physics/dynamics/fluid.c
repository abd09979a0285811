// Forces of a fluid on bodies and geoms (MuJoCo manual, Computation, Fluid forces, both of its models).
//
// A part, listed at load by setup_fluid.c, has a frame R at p in its link. With w and v the velocities of turning and
// of the point p through the fluid, in axes of the part, torque t and force f in the same axes are, rho the density and
// mu the viscosity,
//   box        t_i = -mu T w_i - rho A_i |w_i| w_i,    f_i = -mu D v_i - rho B_i |v_i| v_i
//   ellipsoid  t = -(mu T + rho |m w|) w + rho (Mv x v + Iw x w)
//              f = -(mu D + rho |v| (P b + S)) v + rho (Mv x w + k w x v) + rho K C v x (v x av)
// where products of two vectors without a sign go axis by axis. P = pi sqrt(s3 / s2) is the area that meets the stream
// and C = P s2 / (|v| s3), with the forms s1 = v.v, s2 = v.av, s3 = av.av. Where one of them is 0 viscosity alone acts.
// All that depends on s1, s2, s3 is a sum of products of their powers, so that the force along v is
//   f_i = v_i (c0 + c1 a_i),    df_i/dv_j = (c0 + c1 a_i) delta_ij + v_i sum_k (c_(1+k) + a_i c_(4+k)) 2 a_j^(k-1) v_j
// with the derivatives of c0 and c1 by s_k as further c (SnFluidSlope). The areas a are scaled to a largest one of 1.
//
// Implicit integrators need B = d(t, f)/d(w, v) in their matrix. implicitfast has it symmetrised, but for free bodies,
// which have equations of their own; discrete, too, and of drag alone: without lift and what of the fluid moves along
// (as found in MuJoCo 4.0.0).
#include "physics/base/vec.h"
#include "physics/dynamics/dynamics.h"
#include "physics/dynamics/fluid_private.h"

// Part k of entry `entry` of fluidlink_list.
SN_FUNC void sn_fluid_part(const SnModel *m, const SnWorld *w, int entry, int k, SnFluidPart *part) {
  const int link = m->fluidlink_list[entry];
  const sn_real *V = w->cvel + 6 * link;
  sn_real t[3], v[3];
  part->link = link;
  part->index = k;
  part->way = (SnFluidMatrix)m->fluidlink_matrix[entry];
  part->kind = (SnFluid)m->fluid_kind[k];
  part->coef = m->fluid_coef + SN_NFLUIDCOEF * k;
  part->drag = false;
  part->density = m->opt.density;
  part->viscosity = m->opt.viscosity;
  sn_mulmatmat3(part->R, w->xmat + 9 * link, m->fluid_mat + 9 * k);
  sn_mulmatvec3(part->p, w->xmat + 9 * link, m->fluid_pos + 3 * k);
  sn_addto3(part->p, w->xpos + 3 * link);
  sn_subfrom3(part->p, w->subtree_com + 3 * m->body_rootid[link]);
  sn_cross(t, V, part->p);
  sn_add3(v, V + 3, t);
  sn_subfrom3(v, m->opt.wind);
  sn_mulmattvec3(part->x, part->R, V);
  sn_mulmattvec3(part->x + 3, part->R, v);
}

// Forms of v, square roots of them.
SN_LOCAL void fluid_forms(const SnFluidPart *part, SnFluidSlope *to) {
  const sn_real *area = part->coef + SN_ELL_AREA, *v = part->x + 3;
  to->most = sn_max(sn_max(area[0], area[1]), area[2]);
  for (int k = 0; k < 3; ++k) to->s[k] = 0;
  for (int e = 0; e < 3; ++e) {
    const sn_real a = to->a[e] = to->most > 0 ? area[e] / to->most : 0, vv = v[e] * v[e];
    to->s[0] += vv;
    to->s[1] += a * vv;
    to->s[2] += a * a * vv;
  }
  for (int k = 0; k < 3; ++k) to->per[k] = to->s[k] > 0 ? 1 / to->s[k] : 0;
  to->speed = sn_sqrt(to->s[0]);
  for (int k = 0; k < 2; ++k) to->root[k] = sn_sqrt(to->s[1 + k]);
}

// Adds a product of powers p (3) of the forms to coefficient `at`, with its derivatives.
SN_LOCAL void fluid_term(SnFluidSlope *to, int at, sn_real value, const sn_real *p) {
  to->c[at] += value;
  for (int k = 0; k < 3; ++k) to->by[at][k] += p[k] * value * to->per[k];
}

// Adds it to c0 (at 0) or c1 (at 1), and its derivatives to those of the other coefficients that they are.
SN_LOCAL void fluid_power(SnFluidSlope *to, int at, sn_real value, sn_real p1, sn_real p2, sn_real p3) {
  const sn_real p[3] = {p1, p2, p3};
  fluid_term(to, at, value, p);
  for (int k = 0; k < 3; ++k) {
    sn_real less[3] = {p1, p2, p3};
    less[k] -= 1;
    fluid_term(to, 2 + 3 * at + k, p[k] * value * to->per[k], less);
  }
}

// Coefficients of the force along v; all of them, or with `slopes` off c0 and c1 alone.
SN_LOCAL void fluid_slope(const SnFluidPart *part, bool slopes, SnFluidSlope *to) {
  const sn_real *coef = part->coef, rho = part->density, half = SN_R(0.5);
  *to = (SnFluidSlope){.c = {-part->viscosity * coef[SN_ELL_MOVE]}};
  fluid_forms(part, to);
  if (!(to->s[0] > 0 && to->s[1] > 0 && to->s[2] > 0)) return;
  const sn_real ratio = SN_PI * sn_sqrt(to->most) * to->root[0] / to->root[1];  // |v| C sqrt(most), as areas are scaled
  const sn_real blunt = -rho * coef[SN_ELL_BLUNT] * to->speed * SN_PI * sn_sqrt(to->most) * to->root[1] / to->root[0];
  const sn_real slender = -rho * coef[SN_ELL_SLENDER] * to->speed;
  const sn_real lift = part->drag ? 0 : rho * coef[SN_ELL_KUTTA] * ratio;
  const sn_real out = lift * to->s[1] / to->speed, across = -lift * to->speed;
  if (slopes) {
    fluid_power(to, 0, blunt, half, -half, half);
    fluid_power(to, 0, slender, half, 0, 0);
    fluid_power(to, 0, out, -half, 1 + half, -half);
    fluid_power(to, 1, across, half, half, -half);
  } else {
    to->c[0] += blunt + slender + out;
    to->c[1] += across;
  }
}

// The same for the drag of turning.
SN_LOCAL void fluid_turn_slope(const SnFluidPart *part, SnFluidSlope *to) {
  const sn_real *moment = part->coef + SN_ELL_MOMENT, *w = part->x, rho = part->density;
  sn_real s = 0;
  for (int e = 0; e < 3; ++e) s += moment[e] * moment[e] * w[e] * w[e];
  const sn_real r = sn_sqrt(s), per = r > 0 ? 1 / r : 0;
  to->turn[0] = -part->viscosity * part->coef[SN_ELL_TURN] - rho * r;
  to->turn[1] = to->turn_by[0] = -rho * per;
  to->turn_by[1] = rho * per * per * per;
}

// The force out (6) on a part, in its axes.
SN_FUNC void sn_fluid_force(const SnFluidPart *part, sn_real *out) {
  const sn_real *coef = part->coef, *w = part->x, *v = part->x + 3, rho = part->density;
  if (part->kind == SN_FLUID_BOX) {
    for (int e = 0; e < 6; ++e)
      out[e] = -sn_fluid_box_linear(part, e) * w[e] - sn_fluid_box_square(part, e) * sn_abs(w[e]) * w[e];
    return;
  }
  SnFluidSlope s;
  sn_real Mv[3], Iw[3], kw[3];
  fluid_slope(part, false, &s);
  fluid_turn_slope(part, &s);
  for (int e = 0; e < 3; ++e) {
    Mv[e] = rho * coef[SN_ELL_MASS + e] * v[e];
    Iw[e] = rho * coef[SN_ELL_INERTIA + e] * w[e];
    kw[e] = rho * coef[SN_ELL_MAGNUS] * w[e];
    out[e] = s.turn[0] * w[e];
    out[3 + e] = v[e] * (s.c[0] + s.c[1] * s.a[e]);
  }
  sn_addcross(out, Mv, v);
  sn_addcross(out, Iw, w);
  sn_addcross(out + 3, Mv, w);
  sn_addcross(out + 3, kw, v);
  for (int e = 0; e < 6; ++e) out[e] *= sn_fluid_scale(part);
}

// Adds the matrix of x -> a x x, or with `scale` of x -> (x scale) x a, to the block of B at `at`.
SN_LOCAL void fluid_add_cross(sn_real *B, int at, const sn_real *a, const sn_real *scale) {
  for (int r = 0; r < 3; ++r) {
    const int c = (r + 1) % 3, d = (r + 2) % 3;
    B[at + 6 * r + c] += scale ? scale[c] * a[d] : -a[d];
    B[at + 6 * r + d] += scale ? -scale[d] * a[c] : a[c];
  }
}

// B (6, 6) of an ellipsoid with these slopes.
SN_LOCAL void fluid_ellipsoid_matrix(const SnFluidPart *part, const SnFluidSlope *s, sn_real *B) {
  enum { TW = 0, TV = 3, FW = 18, FV = 21 };
  const sn_real *coef = part->coef, *w = part->x, *v = part->x + 3, rho = part->density;
  const sn_real *moment = coef + SN_ELL_MOMENT;
  sn_real mass[3], inertia[3], Mv[3], Iw[3], kw[3], kv[3];
  sn_zero(B, 36);
  for (int e = 0; e < 3; ++e) {
    Mv[e] = (mass[e] = rho * coef[SN_ELL_MASS + e]) * v[e];
    Iw[e] = (inertia[e] = rho * coef[SN_ELL_INERTIA + e]) * w[e];
    kw[e] = rho * coef[SN_ELL_MAGNUS] * w[e];
    kv[e] = -rho * coef[SN_ELL_MAGNUS] * v[e];
    for (int f = 0; f < 3; ++f) {
      const sn_real a = s->a[e], b = s->a[f], m2 = moment[f] * moment[f];
      const sn_real along = s->c[2] + a * s->c[5] + b * (s->c[3] + a * s->c[6] + b * (s->c[4] + a * s->c[7]));
      B[TW + 6 * e + f] = s->turn[1] * w[e] * m2 * w[f];
      B[FV + 6 * e + f] = 2 * v[e] * along * v[f];
    }
    B[TW + 7 * e] += s->turn[0];
    B[FV + 7 * e] += s->c[0] + s->c[1] * s->a[e];
  }
  if (part->drag) return;
  fluid_add_cross(B, TV, Mv, NULL);
  fluid_add_cross(B, TV, v, mass);
  fluid_add_cross(B, TW, Iw, NULL);
  fluid_add_cross(B, TW, w, inertia);
  fluid_add_cross(B, FW, Mv, NULL);
  fluid_add_cross(B, FV, w, mass);
  fluid_add_cross(B, FW, kv, NULL);
  fluid_add_cross(B, FV, kw, NULL);
}

// B, and of an ellipsoid the slopes that it is made of.
SN_FUNC void sn_fluid_matrix(const SnFluidPart *part, SnFluidSlope *s, sn_real *B) {
  if (part->kind == SN_FLUID_BOX) {
    sn_zero(B, 36);
    for (int e = 0; e < 6; ++e)
      B[7 * e] = -sn_fluid_box_linear(part, e) - 2 * sn_fluid_box_square(part, e) * sn_abs(part->x[e]);
    return;
  }
  fluid_slope(part, true, s);
  fluid_turn_slope(part, s);
  fluid_ellipsoid_matrix(part, s, B);
}

// Symmetrises B where the matrix of an integrator has it so.
SN_FUNC void sn_fluid_symmetrise(SnFluidMatrix way, sn_real *B) {
  for (int r = 0; r < 6 && way != SN_FLUID_WHOLE; ++r)
    for (int c = 0; c < r; ++c) B[6 * r + c] = B[6 * c + r] = SN_R(0.5) * (B[6 * r + c] + B[6 * c + r]);
}

// Adds the force of part k on its link, about the centre of its tree.
SN_LOCAL void fluid_push(const SnModel *m, SnWorld *w, int entry, int k) {
  SnFluidPart part;
  sn_real f[6], torque[3], force[3], *out = w->fluid_wrench + 6 * m->fluidlink_list[entry];
  sn_fluid_part(m, w, entry, k, &part);
  sn_fluid_force(&part, f);
  sn_mulmatvec3(torque, part.R, f);
  sn_mulmatvec3(force, part.R, f + 3);
  sn_addto3(out, torque);
  sn_addcross(out, part.p, force);
  sn_addto3(out + 3, force);
}

SN_FUNC void sn_fluid(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(k, m->nlink) sn_zero(w->fluid_wrench + 6 * m->level_body[k], 6);
  SN_SYNC(lane);
  SN_FOR(k, m->nfluidlink) {
    for (int i = m->fluidlink_adr[k]; i < m->fluidlink_adr[k + 1]; ++i) fluid_push(m, w, k, i);
  }
  SN_SYNC(lane);
  sn_sum_subtrees(m, lane, w->fluid_wrench, 6);
  SN_FOR(i, m->nv) w->qfrc_fluid[i] = sn_dot(w->cdof + 6 * i, w->fluid_wrench + 6 * m->dof_bodyid[i], 6);
  SN_SYNC(lane);
}

// Adds B of part k to that of its link, on twists about the centre of its tree.
SN_LOCAL void fluid_add_slopes(const SnModel *m, SnWorld *w, int entry, int k) {
  SnFluidPart part;
  SnFluidSlope s;
  sn_real B[36], *out = w->link_slope + 36 * m->fluidlink_list[entry];
  sn_fluid_part(m, w, entry, k, &part);
  part.drag = sn_has_metric(m);
  sn_fluid_matrix(&part, &s, B);
  sn_fluid_symmetrise(part.way, B);
  for (int c = 0; c < 6; ++c) {
    // column c: the twist that is 1 there
    sn_real unit[6] = {0}, x[6], f[6], v[3], torque[3], force[3];
    unit[c] = 1;
    sn_cross(v, unit, part.p);
    sn_addto3(v, unit + 3);
    sn_mulmattvec3(x, part.R, unit);
    sn_mulmattvec3(x + 3, part.R, v);
    for (int r = 0; r < 6; ++r) f[r] = sn_dot(B + 6 * r, x, 6);
    sn_mulmatvec3(torque, part.R, f);
    sn_mulmatvec3(force, part.R, f + 3);
    sn_addcross(torque, part.p, force);
    for (int r = 0; r < 3; ++r) {
      out[6 * r + c] += torque[r];
      out[6 * (3 + r) + c] += force[r];
    }
  }
}

SN_FUNC void sn_fluid_slopes(const SnModel *m, SnWorld *w, SnLane *lane) {
  (void)lane;
  SN_FOR(k, m->nfluidlink) {
    for (int i = m->fluidlink_adr[k]; i < m->fluidlink_adr[k + 1]; ++i) fluid_add_slopes(m, w, k, i);
  }
  SN_SYNC(lane);
}
