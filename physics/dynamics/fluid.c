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
// with the derivatives of c0 and c1 by s_k as further c (FluidSlope). The areas a are scaled to a largest one of 1.
//
// Implicit integrators need B = d(t, f)/d(w, v) in their matrix. implicitfast has it symmetrised, but for free bodies,
// which have equations of their own.
//
// Adjoint, with x_z = (w, v) of the motion z at the part, of
//   x_l . F(x_v)  +  h x_y . B(x_v) x_n
// by the velocities x_l, x_v, x_y, x_n, each a bar (N, F) in axes of the part: on the twist of the link it is
// (p x RF + RN, RF). A displacement of the link turns the axes and moves p, which leaves
//   torque at p  sum N x w + F x v,    force  sum F x w.
// Of a simple body, whose matrix is diagonal in its dofs, x_y . B x_n is a sum over dofs, and only slides turn in its
// axes: they stay where what carries the link is, so that only the link's own dofs displace the part against them.
#include "physics/base/vec.h"
#include "physics/dynamics/dynamics.h"

// A part of a link at this moment: axes, place from the tree's centre, velocity through the fluid (w, v) in its axes,
// and the fluid. The coefficients are those of the model, or moved ones.
typedef struct FluidPart {
  int link, index;
  SnFluidMatrix way;
  SnFluid kind;
  const sn_real *coef;
  sn_real density, viscosity;
  sn_real R[9], p[3], x[6];
} FluidPart;

// What the force along v depends on, see the head of the file: c (8), and their derivatives by s1, s2, s3.
typedef struct FluidSlope {
  sn_real a[3], s[3], per[3];    // scaled areas; the three forms; 1 / s, or 0
  sn_real most, speed, root[2];  // largest area; square roots of s1, s2, s3
  sn_real c[8], by[8][3];
  sn_real turn[2], turn_by[2];  // likewise of w: factors of 1 and of w (m^2 w)', their derivatives by m^2 w
} FluidSlope;

// Part k of entry `entry` of fluidlink_list.
SN_LOCAL void fluid_part(const SnModel *m, const SnWorld *w, int entry, int k, FluidPart *part) {
  const int link = m->fluidlink_list[entry];
  const sn_real *V = w->cvel + 6 * link;
  sn_real t[3], v[3];
  part->link = link;
  part->index = k;
  part->way = (SnFluidMatrix)m->fluidlink_matrix[entry];
  part->kind = (SnFluid)m->fluid_kind[k];
  part->coef = m->fluid_coef + SN_NFLUIDCOEF * k;
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
SN_LOCAL void fluid_forms(const FluidPart *part, FluidSlope *to) {
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
SN_LOCAL void fluid_term(FluidSlope *to, int at, sn_real value, const sn_real *p) {
  to->c[at] += value;
  for (int k = 0; k < 3; ++k) to->by[at][k] += p[k] * value * to->per[k];
}

// Adds it to c0 (at 0) or c1 (at 1), and its derivatives to those of the other coefficients that they are.
SN_LOCAL void fluid_power(FluidSlope *to, int at, sn_real value, sn_real p1, sn_real p2, sn_real p3) {
  const sn_real p[3] = {p1, p2, p3};
  fluid_term(to, at, value, p);
  for (int k = 0; k < 3; ++k) {
    sn_real less[3] = {p1, p2, p3};
    less[k] -= 1;
    fluid_term(to, 2 + 3 * at + k, p[k] * value * to->per[k], less);
  }
}

// Coefficients of the force along v; all of them, or with `slopes` off c0 and c1 alone.
SN_LOCAL void fluid_slope(const FluidPart *part, bool slopes, FluidSlope *to) {
  const sn_real *coef = part->coef, rho = part->density, half = SN_R(0.5);
  *to = (FluidSlope){.c = {-part->viscosity * coef[SN_ELL_MOVE]}};
  fluid_forms(part, to);
  if (!(to->s[0] > 0 && to->s[1] > 0 && to->s[2] > 0)) return;
  const sn_real ratio = SN_PI * sn_sqrt(to->most) * to->root[0] / to->root[1];  // |v| C sqrt(most), as areas are scaled
  const sn_real blunt = -rho * coef[SN_ELL_BLUNT] * to->speed * SN_PI * sn_sqrt(to->most) * to->root[1] / to->root[0];
  const sn_real slender = -rho * coef[SN_ELL_SLENDER] * to->speed, lift = rho * coef[SN_ELL_KUTTA] * ratio;
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
SN_LOCAL void fluid_turn_slope(const FluidPart *part, FluidSlope *to) {
  const sn_real *moment = part->coef + SN_ELL_MOMENT, *w = part->x, rho = part->density;
  sn_real s = 0;
  for (int e = 0; e < 3; ++e) s += moment[e] * moment[e] * w[e] * w[e];
  const sn_real r = sn_sqrt(s), per = r > 0 ? 1 / r : 0;
  to->turn[0] = -part->viscosity * part->coef[SN_ELL_TURN] - rho * r;
  to->turn[1] = to->turn_by[0] = -rho * per;
  to->turn_by[1] = rho * per * per * per;
}

// What the force of the head of the file is multiplied by. MuJoCo leaves it out of the matrix of implicit integrators.
SN_INLINE sn_real fluid_scale(const FluidPart *part) {
  return part->kind == SN_FLUID_BOX ? SN_R(1.0) : part->coef[SN_ELL_SCALE];
}

// Coefficient of a box along axis e of (w, v): of viscosity, and of density.
SN_INLINE sn_real fluid_box_linear(const FluidPart *part, int e) {
  return part->viscosity * part->coef[e < 3 ? SN_BOX_TURN : SN_BOX_MOVE];
}
SN_INLINE sn_real fluid_box_square(const FluidPart *part, int e) {
  return part->density * part->coef[e < 3 ? SN_BOX_TORQUE + e : SN_BOX_FORCE + e - 3];
}

// The force out (6) on a part, in its axes.
SN_LOCAL void fluid_force(const FluidPart *part, sn_real *out) {
  const sn_real *coef = part->coef, *w = part->x, *v = part->x + 3, rho = part->density;
  if (part->kind == SN_FLUID_BOX) {
    for (int e = 0; e < 6; ++e)
      out[e] = -fluid_box_linear(part, e) * w[e] - fluid_box_square(part, e) * sn_abs(w[e]) * w[e];
    return;
  }
  FluidSlope s;
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
  for (int e = 0; e < 6; ++e) out[e] *= fluid_scale(part);
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
SN_LOCAL void fluid_matrix(const FluidPart *part, const FluidSlope *s, sn_real *B) {
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
SN_LOCAL void fluid_slopes(const FluidPart *part, FluidSlope *s, sn_real *B) {
  if (part->kind == SN_FLUID_BOX) {
    sn_zero(B, 36);
    for (int e = 0; e < 6; ++e)
      B[7 * e] = -fluid_box_linear(part, e) - 2 * fluid_box_square(part, e) * sn_abs(part->x[e]);
    return;
  }
  fluid_slope(part, true, s);
  fluid_turn_slope(part, s);
  fluid_matrix(part, s, B);
}

// Symmetrises B where the matrix of an integrator has it so.
SN_LOCAL void fluid_symmetrise(SnFluidMatrix way, sn_real *B) {
  for (int r = 0; r < 6 && way != SN_FLUID_WHOLE; ++r)
    for (int c = 0; c < r; ++c) B[6 * r + c] = B[6 * c + r] = SN_R(0.5) * (B[6 * r + c] + B[6 * c + r]);
}

#if !defined(SN_PACK)
// Adds the force of part k on its link, about the centre of its tree.
SN_LOCAL void fluid_push(const SnModel *m, SnWorld *w, int entry, int k) {
  FluidPart part;
  sn_real f[6], torque[3], force[3], *out = w->fluid_wrench + 6 * m->fluidlink_list[entry];
  fluid_part(m, w, entry, k, &part);
  fluid_force(&part, f);
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
  FluidPart part;
  FluidSlope s;
  sn_real B[36], *out = w->link_slope + 36 * m->fluidlink_list[entry];
  fluid_part(m, w, entry, k, &part);
  fluid_slopes(&part, &s, B);
  fluid_symmetrise(part.way, B);
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
#endif

// out += the derivative of l' B x by the velocity of an ellipsoid, times scale.
SN_LOCAL void fluid_curve(const FluidPart *part, const FluidSlope *s, const sn_bar *l, const sn_bar *x, sn_real scale,
                          sn_bar *out) {
  const sn_real *v = part->x + 3, *a = s->a;
  sn_bar lx = {0}, lax = {0}, P[2] = {0}, X[3] = {0}, by[3] = {0}, L[2] = {0}, Q[3] = {0};
  for (int e = 0; e < 3; ++e) {
    const sn_bar along = l[3 + e] * v[e], moved = 2 * v[e] * x[3 + e];
    lx += l[3 + e] * x[3 + e];
    lax += a[e] * l[3 + e] * x[3 + e];
    P[0] += along;
    P[1] += a[e] * along;
    X[0] += moved;
    X[1] += a[e] * moved;
    X[2] += a[e] * a[e] * moved;
  }
  for (int k = 0; k < 3; ++k) {
    by[k] = s->by[0][k] * lx + s->by[1][k] * lax;
    for (int e = 0; e < 3; ++e) by[k] += (s->by[2 + e][k] * P[0] + s->by[5 + e][k] * P[1]) * X[e];
    L[0] += s->c[2 + k] * X[k];
    L[1] += s->c[5 + k] * X[k];
    Q[k] = s->c[2 + k] * P[0] + s->c[5 + k] * P[1];
  }
  for (int e = 0; e < 3; ++e) {
    const sn_bar forms = by[0] + a[e] * (by[1] + a[e] * by[2]), moved = Q[0] + a[e] * (Q[1] + a[e] * Q[2]);
    out[3 + e] += scale * (2 * v[e] * forms + (L[0] + a[e] * L[1]) * l[3 + e] + 2 * moved * x[3 + e]);
  }
}

// The same of the drag of turning.
SN_LOCAL void fluid_turn_curve(const FluidPart *part, const FluidSlope *s, const sn_bar *l, const sn_bar *x,
                               sn_real scale, sn_bar *out) {
  const sn_real *moment = part->coef + SN_ELL_MOMENT, *w = part->x;
  sn_bar lx = {0}, lw = {0}, qx = {0};
  for (int e = 0; e < 3; ++e) {
    lx += l[e] * x[e];
    lw += l[e] * w[e];
    qx += moment[e] * moment[e] * w[e] * x[e];
  }
  const sn_bar whole = s->turn_by[0] * lx + s->turn_by[1] * lw * qx;
  for (int e = 0; e < 3; ++e) {
    const sn_real m2 = moment[e] * moment[e];
    out[e] += scale * (m2 * w[e] * whole + s->turn[1] * (qx * l[e] + lw * m2 * x[e]));
  }
}

// The same of the fluid that moves along and of Magnus lift, which are bilinear in the velocity.
SN_LOCAL void fluid_bilinear_curve(const FluidPart *part, const sn_bar *l, const sn_bar *x, sn_real scale,
                                   sn_bar *out) {
  const sn_real *coef = part->coef, rho = scale * part->density, lift = rho * coef[SN_ELL_MAGNUS];
  const sn_real *mass = coef + SN_ELL_MASS, *inertia = coef + SN_ELL_INERTIA;
  const sn_bar *lf = l + 3, *xv = x + 3;
  sn_bar Mx[3], Ix[3], t[3], turn[3], move[3];
  for (int e = 0; e < 3; ++e) {
    Mx[e] = rho * mass[e] * xv[e];
    Ix[e] = rho * inertia[e] * x[e];
    turn[e] = lift * xv[e];
    move[e] = lift * lf[e];
  }
  sn_addcross(out, lf, Mx);
  sn_addcross(out, l, Ix);
  sn_addcross(out, turn, lf);
  sn_addcross(out + 3, l, Mx);
  sn_addcross(out + 3, move, x);
  sn_cross(t, x, l);
  for (int e = 0; e < 3; ++e) out[e] += rho * inertia[e] * t[e];
  sn_cross(t, x, lf);
  sn_addcross(t, xv, l);
  for (int e = 0; e < 3; ++e) out[3 + e] += rho * mass[e] * t[e];
}

// out += h d(l' B x) by the velocity of a part, B as the integrator has it.
SN_LOCAL void fluid_implicit_curve(const FluidPart *part, const FluidSlope *s, sn_real h, const sn_bar *l,
                                   const sn_bar *x, sn_bar *out) {
  if (part->kind == SN_FLUID_BOX) {
    for (int e = 0; e < 6; ++e) out[e] -= 2 * h * fluid_box_square(part, e) * sn_sign(part->x[e]) * l[e] * x[e];
    return;
  }
  const bool whole = part->way == SN_FLUID_WHOLE;
  const sn_real scale = whole ? h : SN_R(0.5) * h;
  for (int k = 0; k < (whole ? 1 : 2); ++k) {
    const sn_bar *left = k ? x : l, *right = k ? l : x;
    fluid_curve(part, s, left, right, scale, out);
    fluid_turn_curve(part, s, left, right, scale, out);
    fluid_bilinear_curve(part, left, right, scale, out);
  }
}

// Velocity of a part in its axes, of a twist about the tree's centre.
SN_LOCAL void fluid_velocity(const FluidPart *part, const sn_bar *twist, sn_bar *x) {
  sn_bar v[3];
  sn_cross(v, twist, part->p);
  sn_addto3(v, twist + 3);
  sn_mulmattvec3(x, part->R, twist);
  sn_mulmattvec3(x + 3, part->R, v);
}

// Bars of a part, on their way to its link: what a displacement receives, torque and force in its own axes.
typedef struct FluidBar {
  sn_bar torque[3], force[3];
} FluidBar;

// What a displacement receives of the bar b of a velocity x.
SN_INLINE void fluid_displace(const sn_bar *b, const sn_bar *x, FluidBar *to) {
  sn_addcross(to->torque, b, x);
  sn_addcross(to->torque, b + 3, x + 3);
  sn_addcross(to->force, b + 3, x);
}

// The bar b of a velocity x: to the bar of the twist, and to what a displacement receives.
SN_LOCAL void fluid_pull(const FluidPart *part, const sn_bar *b, const sn_bar *x, sn_bar *twist_bar, FluidBar *to) {
  sn_bar torque[3], force[3];
  sn_mulmatvec3(torque, part->R, b);
  sn_mulmatvec3(force, part->R, b + 3);
  sn_addto3(twist_bar, torque);
  sn_addcross(twist_bar, part->p, force);
  sn_addto3(twist_bar + 3, force);
  fluid_displace(b, x, to);
}

// Products x_y . B x_n that an implicit integrator makes of a link: one, or one for each dof.
SN_LOCAL int fluid_products(const SnModel *m, const FluidPart *part) {
  if (m->opt.integrator != SN_INT_IMPLICITFAST && m->opt.integrator != SN_INT_IMPLICIT) return 0;
  return part->way == SN_FLUID_DIAGONAL ? m->body_dofnum[part->link] : 1;
}

// Velocities y and n of a part in product d.
SN_LOCAL void fluid_product(const SnModel *m, const SnWorld *w, const SnAdjoint *a, const FluidPart *part, int d,
                            sn_bar *y, sn_bar *n) {
  const int link = part->link;
  if (part->way != SN_FLUID_DIAGONAL) {
    fluid_velocity(part, sn_twist(m, a, link, SN_Y), y);
    fluid_velocity(part, sn_twist(m, a, link, SN_NEXT), n);
    return;
  }
  const int dof = m->body_dofadr[link] + d;
  sn_bar twist[6];
  for (int e = 0; e < 6; ++e) twist[e] = w->cdof[6 * dof + e] * a->motion[SN_Y * m->nv + dof];
  fluid_velocity(part, twist, y);
  for (int e = 0; e < 6; ++e) twist[e] = w->cdof[6 * dof + e] * a->motion[SN_NEXT * m->nv + dof];
  fluid_velocity(part, twist, n);
}

// The link's own dofs displace a part, in axes of its own, against what carries the link.
SN_LOCAL void fluid_displace_dofs(const SnModel *m, const SnWorld *w, SnAdjoint *a, const FluidPart *part,
                                  const FluidBar *to) {
  sn_bar W[6];
  sn_mulmatvec3(W, part->R, to->torque);
  sn_mulmatvec3(W + 3, part->R, to->force);
  sn_addcross(W, part->p, W + 3);
  const int first = m->body_dofadr[part->link];
  for (int k = first; k < first + m->body_dofnum[part->link]; ++k) a->qpos_bar[k] += sn_dot(w->cdof + 6 * k, W, 6);
}

// The products of a part: x_bar gets the bar of its velocity. A displacement of the link receives to[0], one of the
// part in its link to[1], too.
SN_LOCAL void fluid_implicit_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, const FluidPart *part,
                                 const FluidSlope *s, const sn_real *B, sn_bar *x_bar, FluidBar to[2]) {
  const int link = part->link;
  const sn_real h = sn_timestep(m, w);
  const int count = fluid_products(m, part);
  FluidBar slides = {0};
  for (int d = 0; d < count; ++d) {
    sn_bar y[6], n[6], y_bar[6], n_bar[6];
    fluid_product(m, w, a, part, d, y, n);
    for (int r = 0; r < 6; ++r) y_bar[r] = n_bar[r] = sn_bar_of(0);
    for (int r = 0; r < 6; ++r)
      for (int c = 0; c < 6; ++c) {
        y_bar[r] += h * B[6 * r + c] * n[c];
        n_bar[c] += h * B[6 * r + c] * y[r];
      }
    fluid_implicit_curve(part, s, h, y, n, x_bar);
    if (part->way != SN_FLUID_DIAGONAL) {
      fluid_pull(part, y_bar, y, sn_twist_bar(m, a, link, SN_Y), to);
      fluid_pull(part, n_bar, n, sn_twist_bar(m, a, link, SN_NEXT), to);
    } else {
      const bool slide = m->jnt_type[m->dof_jntid[m->body_dofadr[link] + d]] == SN_JNT_SLIDE;
      fluid_displace(y_bar, y, slide ? &slides : to + 1);
      fluid_displace(n_bar, n, slide ? &slides : to + 1);
    }
  }
  if (part->way != SN_FLUID_DIAGONAL) return;
  fluid_displace_dofs(m, w, a, part, &slides);
  sn_addto3(to[1].torque, slides.torque);
  sn_addto3(to[1].force, slides.force);
}

#if defined(SN_MODEL_BARS)
// The scalar that is differentiated, of one part: x_l . F + h x_y . B x_n.
SN_LOCAL sn_bar fluid_value(const SnModel *m, const SnWorld *w, const SnAdjoint *a, const FluidPart *part) {
  const int count = fluid_products(m, part);
  FluidSlope s;
  sn_real f[6], B[36];
  sn_bar l[6], y[6], n[6], sum = {0};
  fluid_velocity(part, sn_twist(m, a, part->link, SN_LAMBDA), l);
  fluid_force(part, f);
  for (int e = 0; e < 6; ++e) sum += f[e] * l[e];
  if (count > 0) fluid_slopes(part, &s, B);
  if (count > 0) fluid_symmetrise(part->way, B);
  for (int d = 0; d < count; ++d) {
    fluid_product(m, w, a, part, d, y, n);
    for (int r = 0; r < 6; ++r)
      for (int c = 0; c < 6; ++c) sum += sn_timestep(m, w) * B[6 * r + c] * y[r] * n[c];
  }
  return sum;
}

// A part by the model. x_bar: of its velocity; to: what displacements receive, as in fluid_implicit_vjp. The scalar is
// linear in density and viscosity; by the coefficients it is a difference of a function of a few numbers.
SN_LOCAL void fluid_model_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a, const FluidPart *part,
                              const sn_bar *x_bar, const FluidBar to[2]) {
  const int link = part->link, k = part->index;
  SnModelBar *bar = sn_model_bar(a);
  FluidPart moved = *part;
  sn_bar world[3], local[3];
  sn_mulmatvec3(world, part->R, x_bar + 3);
  if (bar->wind) sn_subfrom3(bar->wind, world);
  moved.density = 1;
  moved.viscosity = 0;
  if (bar->density) bar->density[0] += fluid_value(m, w, a, &moved);
  moved.density = 0;
  moved.viscosity = 1;
  if (bar->viscosity) bar->viscosity[0] += fluid_value(m, w, a, &moved);
  sn_add3(local, to[0].force, to[1].force);
  sn_mulmatvec3(world, part->R, local);
  sn_mulmattvec3(local, w->xmat + 9 * link, world);
  if (bar->fluid_pos) sn_addto3(bar->fluid_pos + 3 * k, local);
  sn_add3(local, to[0].torque, to[1].torque);
  sn_mulmatvec3(world, part->R, local);
  sn_mulmattvec3(local, w->xmat + 9 * link, world);
  if (bar->fluid_mat) sn_addto3(bar->fluid_mat + 3 * k, local);
  if (!bar->fluid_coef) return;
  sn_real coef[SN_NFLUIDCOEF];
  sn_copy(coef, part->coef, SN_NFLUIDCOEF);
  moved = *part;
  moved.coef = coef;
  for (int c = 0; c < SN_NFLUIDCOEF; ++c) {
    const sn_real h = SN_DIFFERENCE * (coef[c] != 0 ? sn_abs(coef[c]) : 1);
    sn_bar end[2];
    for (int e = 0; e < 2; ++e) {
      coef[c] = part->coef[c] + (e == 0 ? h : -h);
      end[e] = fluid_value(m, w, a, &moved);
    }
    coef[c] = part->coef[c];
    bar->fluid_coef[SN_NFLUIDCOEF * k + c] += (end[0] - end[1]) / (2 * h);
  }
}
#endif

SN_LOCAL void fluid_part_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int entry, int k) {
  const int link = m->fluidlink_list[entry];
  FluidPart part;
  FluidSlope s;
  FluidBar none = {0}, to[2] = {none, none};
  sn_real f[6], B[36];
  sn_bar l[6], x[6], f_bar[6], x_bar[6], torque[3], force[3], *wrench = a->wrench + 6 * link;
  fluid_part(m, w, entry, k, &part);
  fluid_force(&part, f);
  fluid_slopes(&part, &s, B);
  fluid_velocity(&part, sn_twist(m, a, link, SN_LAMBDA), l);
  for (int c = 0; c < 6; ++c) {
    x[c] = sn_bar_of(part.x[c]);
    f_bar[c] = sn_bar_of(f[c]);
    x_bar[c] = sn_bar_of(0);
    for (int r = 0; r < 6; ++r) x_bar[c] += fluid_scale(&part) * B[6 * r + c] * l[r];
  }
  fluid_symmetrise(part.way, B);
  fluid_implicit_vjp(m, w, a, &part, &s, B, x_bar, to);
  fluid_pull(&part, f_bar, l, sn_twist_bar(m, a, link, SN_LAMBDA), to);
  fluid_pull(&part, x_bar, x, sn_twist_bar(m, a, link, SN_VEL), to);
  sn_mulmatvec3(torque, part.R, to->torque);
  sn_mulmatvec3(force, part.R, to->force);
  sn_addto3(wrench, torque);
  sn_addcross(wrench, part.p, force);
  sn_addto3(wrench + 3, force);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) fluid_model_vjp(m, w, a, &part, x_bar, to);
#endif
}

SN_FUNC void sn_fluid_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  (void)lane;
  SN_FOR(k, m->nfluidlink) {
    for (int i = m->fluidlink_adr[k]; i < m->fluidlink_adr[k + 1]; ++i) fluid_part_vjp(m, w, a, k, i);
  }
  SN_SYNC(lane);
}
