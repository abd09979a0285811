// Adjoint of the forces of a fluid (fluid.c).
//
// With x_z = (w, v) of the motion z at a part,
//   x_l . F(x_v)  +  h x_y . B(x_v) x_n
// has by each of the velocities x_l, x_v, x_y, x_n a bar (N, F) in axes of the part. discrete has h x_l . B x_a for the
// second product, of free bodies h x_y . B (x_n - x_a) besides, and for each dof i that moves the part -h x_i . B x_i
// times the bar of efm_sdiag (metric.c), x_i of the motion of that dof alone. How displacements change the latter, at
// one velocity in the part's axes, is in inertia.c.
//
// On the twist of the link a bar is (p x RF + RN, RF). A displacement of the link turns the axes and moves p, which
// leaves
//   torque at p  sum N x w + F x v,    force  sum F x w.
// Of a simple body, whose matrix is diagonal in its dofs, x_y . B x_n is a sum over dofs, and only slides turn in its
// axes: they stay where what carries the link is, so that only the link's own dofs displace the part against them.
#include "physics/base/vec.h"
#include "physics/dynamics/dynamics.h"
#include "physics/dynamics/fluid_private.h"

// out += the derivative of l' B x by the velocity of an ellipsoid, times scale.
SN_LOCAL void fluid_curve(const SnFluidPart *part, const SnFluidSlope *s, const sn_bar *l, const sn_bar *x,
                          sn_real scale, sn_bar *out) {
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
SN_LOCAL void fluid_turn_curve(const SnFluidPart *part, const SnFluidSlope *s, const sn_bar *l, const sn_bar *x,
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
SN_LOCAL void fluid_bilinear_curve(const SnFluidPart *part, const sn_bar *l, const sn_bar *x, sn_real scale,
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
SN_LOCAL void fluid_implicit_curve(const SnFluidPart *part, const SnFluidSlope *s, sn_real h, const sn_bar *l,
                                   const sn_bar *x, sn_bar *out) {
  if (part->kind == SN_FLUID_BOX) {
    for (int e = 0; e < 6; ++e) out[e] -= 2 * h * sn_fluid_box_square(part, e) * sn_sign(part->x[e]) * l[e] * x[e];
    return;
  }
  const bool whole = part->way == SN_FLUID_WHOLE;
  const sn_real scale = whole ? h : SN_R(0.5) * h;
  for (int k = 0; k < (whole ? 1 : 2); ++k) {
    const sn_bar *left = k ? x : l, *right = k ? l : x;
    fluid_curve(part, s, left, right, scale, out);
    fluid_turn_curve(part, s, left, right, scale, out);
    if (!part->drag) fluid_bilinear_curve(part, left, right, scale, out);
  }
}

// Velocity of a part in its axes, of a twist about the tree's centre.
SN_LOCAL void fluid_velocity(const SnFluidPart *part, const sn_bar *twist, sn_bar *x) {
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
SN_LOCAL void fluid_pull(const SnFluidPart *part, const sn_bar *b, const sn_bar *x, sn_bar *twist_bar, FluidBar *to) {
  sn_bar torque[3], force[3];
  sn_mulmatvec3(torque, part->R, b);
  sn_mulmatvec3(force, part->R, b + 3);
  sn_addto3(twist_bar, torque);
  sn_addcross(twist_bar, part->p, force);
  sn_addto3(twist_bar + 3, force);
  fluid_displace(b, x, to);
}

// A product h sign x_left . B x_right of a part; dof: -1, or the dof in whose motion alone both are. Of axes, x_left is
// -metric_bar x_right for the unit motion of the dof.
typedef struct FluidProduct {
  SnMotion left, right;
  sn_real sign;
  int dof;
  bool axis;
} FluidProduct;

// How many pairs of motions the integrator makes a product of, of a part.
SN_LOCAL int fluid_pairs(const SnModel *m, const SnFluidPart *part) {
  if (!sn_has_metric(m)) return m->opt.integrator == SN_INT_IMPLICITFAST || m->opt.integrator == SN_INT_IMPLICIT;
  return m->jnt_type[m->dof_jntid[m->body_dofadr[part->link]]] == SN_JNT_FREE ? 3 : 1;
}

// Products of such a pair: one, or one for each dof.
SN_INLINE int fluid_pair_products(const SnModel *m, const SnFluidPart *part) {
  return part->way == SN_FLUID_DIAGONAL ? m->body_dofnum[part->link] : 1;
}

// All products that the integrator makes of a part.
SN_LOCAL int fluid_products(const SnModel *m, const SnFluidPart *part) {
  const int own = m->body_dofnum[part->link], last = m->body_dofadr[part->link] + own - 1;
  if (own == 0) return 0;
  int count = fluid_pairs(m, part) * fluid_pair_products(m, part);
  if (sn_has_metric(m)) count += part->way == SN_FLUID_DIAGONAL ? own : m->M_rownnz[last];
  return count;
}

// Product d of a part, and its velocities y and n.
SN_LOCAL FluidProduct fluid_product(const SnModel *m, const SnWorld *w, const SnAdjoint *a, const SnFluidPart *part,
                                    int d, sn_bar *y, sn_bar *n) {
  const FluidProduct implicit = {SN_Y, SN_NEXT, 1, -1, false};
  const FluidProduct discrete[] = {
      {SN_LAMBDA, SN_ACC, 1, -1, false}, {SN_Y, SN_NEXT, 1, -1, false}, {SN_Y, SN_ACC, -1, -1, false}};
  const int link = part->link, first = m->body_dofadr[link], per = fluid_pair_products(m, part);
  const int axis = d - fluid_pairs(m, part) * per;
  FluidProduct p = !sn_has_metric(m) ? implicit : discrete[axis < 0 ? d / per : 0];
  sn_bar left[6], right[6];
  if (axis >= 0) {
    const int last = first + m->body_dofnum[link] - 1;
    p.axis = true;
    p.dof = part->way == SN_FLUID_DIAGONAL ? first + axis : m->M_colind[m->M_rowadr[last] + axis];
  } else if (part->way == SN_FLUID_DIAGONAL) {
    p.dof = first + d % per;
  } else {
    fluid_velocity(part, sn_twist(m, a, link, p.left), y);
    fluid_velocity(part, sn_twist(m, a, link, p.right), n);
    return p;
  }
  for (int e = 0; e < 6; ++e) {
    const sn_real S = w->cdof[6 * p.dof + e];
    left[e] = p.axis ? -S * a->metric_bar[p.dof] : S * a->motion[(int)p.left * m->nv + p.dof];
    right[e] = p.axis ? sn_bar_of(S) : S * a->motion[(int)p.right * m->nv + p.dof];
  }
  fluid_velocity(part, left, y);
  fluid_velocity(part, right, n);
  return p;
}

// The link's own dofs displace a part, in axes of its own, against what carries the link.
SN_LOCAL void fluid_displace_dofs(const SnModel *m, const SnWorld *w, SnAdjoint *a, const SnFluidPart *part,
                                  const FluidBar *to) {
  sn_bar W[6];
  sn_mulmatvec3(W, part->R, to->torque);
  sn_mulmatvec3(W + 3, part->R, to->force);
  sn_addcross(W, part->p, W + 3);
  const int first = m->body_dofadr[part->link];
  for (int k = first; k < first + m->body_dofnum[part->link]; ++k) a->qpos_bar[k] += sn_dot(w->cdof + 6 * k, W, 6);
}

// True where the axis of a dof of a simple body stays when the body turns.
SN_LOCAL bool fluid_is_slide(const SnModel *m, int dof) {
  const int joint = m->dof_jntid[dof], type = m->jnt_type[joint];
  return type == SN_JNT_SLIDE || (type == SN_JNT_FREE && dof < m->jnt_dofadr[joint] + 3);
}

// The products of a part: x_bar gets the bar of its velocity. A displacement of the link receives to[0], one of the
// part in its link to[1], too.
SN_LOCAL void fluid_implicit_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, const SnFluidPart *part,
                                 const SnFluidSlope *s, const sn_real *B, sn_bar *x_bar, FluidBar to[2]) {
  const int link = part->link;
  const int count = fluid_products(m, part);
  FluidBar slides = {0};
  for (int d = 0; d < count; ++d) {
    sn_bar y[6], n[6], y_bar[6], n_bar[6];
    const FluidProduct p = fluid_product(m, w, a, part, d, y, n);
    const sn_real h = p.sign * sn_timestep(m, w);
    for (int r = 0; r < 6; ++r) y_bar[r] = n_bar[r] = sn_bar_of(0);
    for (int r = 0; r < 6; ++r)
      for (int c = 0; c < 6; ++c) {
        y_bar[r] += h * B[6 * r + c] * n[c];
        n_bar[c] += h * B[6 * r + c] * y[r];
      }
    fluid_implicit_curve(part, s, h, y, n, x_bar);
    if (p.dof < 0) {
      fluid_pull(part, y_bar, y, sn_twist_bar(m, a, link, p.left), to);
      fluid_pull(part, n_bar, n, sn_twist_bar(m, a, link, p.right), to);
    } else {
      FluidBar *out = !p.axis && fluid_is_slide(m, p.dof) ? &slides : to + 1;
      fluid_displace(y_bar, y, out);
      fluid_displace(n_bar, n, out);
    }
  }
  if (part->way != SN_FLUID_DIAGONAL) return;
  fluid_displace_dofs(m, w, a, part, &slides);
  sn_addto3(to[1].torque, slides.torque);
  sn_addto3(to[1].force, slides.force);
}

#if defined(SN_MODEL_BARS)
// The scalar that is differentiated, of one part: x_l . F and all products.
SN_LOCAL sn_bar fluid_value(const SnModel *m, const SnWorld *w, const SnAdjoint *a, const SnFluidPart *part) {
  const int count = fluid_products(m, part);
  SnFluidPart matrix = *part;
  SnFluidSlope s;
  sn_real f[6], B[36];
  sn_bar l[6], y[6], n[6], sum = {0};
  fluid_velocity(part, sn_twist(m, a, part->link, SN_LAMBDA), l);
  sn_fluid_force(part, f);
  for (int e = 0; e < 6; ++e) sum += f[e] * l[e];
  matrix.drag = sn_has_metric(m);
  if (count > 0) sn_fluid_matrix(&matrix, &s, B);
  if (count > 0) sn_fluid_symmetrise(part->way, B);
  for (int d = 0; d < count; ++d) {
    const sn_real h = sn_timestep(m, w) * fluid_product(m, w, a, part, d, y, n).sign;
    for (int r = 0; r < 6; ++r)
      for (int c = 0; c < 6; ++c) sum += h * B[6 * r + c] * y[r] * n[c];
  }
  return sum;
}

// A part by the model. x_bar: of its velocity; to: what displacements receive, as in fluid_implicit_vjp. The scalar is
// linear in density and viscosity; by the coefficients it is a difference of a function of a few numbers.
SN_LOCAL void fluid_model_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a, const SnFluidPart *part,
                              const sn_bar *x_bar, const FluidBar to[2]) {
  const int link = part->link, k = part->index;
  SnModelBar *bar = sn_model_bar(a);
  SnFluidPart moved = *part;
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
  SnFluidPart part;
  SnFluidSlope s;
  FluidBar none = {0}, to[2] = {none, none};
  sn_real f[6], B[36];
  sn_bar l[6], x[6], f_bar[6], x_bar[6], torque[3], force[3], *wrench = a->wrench + 6 * link;
  sn_fluid_part(m, w, entry, k, &part);
  sn_fluid_force(&part, f);
  sn_fluid_matrix(&part, &s, B);
  fluid_velocity(&part, sn_twist(m, a, link, SN_LAMBDA), l);
  for (int c = 0; c < 6; ++c) {
    x[c] = sn_bar_of(part.x[c]);
    f_bar[c] = sn_bar_of(f[c]);
    x_bar[c] = sn_bar_of(0);
    for (int r = 0; r < 6; ++r) x_bar[c] += sn_fluid_scale(&part) * B[6 * r + c] * l[r];
  }
  part.drag = sn_has_metric(m);
  if (part.drag) sn_fluid_matrix(&part, &s, B);
  sn_fluid_symmetrise(part.way, B);
  fluid_implicit_vjp(m, w, a, &part, &s, B, x_bar, to);
  fluid_pull(&part, f_bar, l, sn_twist_bar(m, a, link, SN_LAMBDA), to);
  fluid_pull(&part, x_bar, x, sn_twist_bar(m, a, link, SN_VEL), to);
  sn_mulmatvec3(torque, part.R, to->torque);
  sn_mulmatvec3(force, part.R, to->force);
  sn_addto3(wrench, torque);
  sn_addcross(wrench, part.p, force);
  sn_addto3(wrench + 3, force);
#if defined(SN_MODEL_BARS)
  part.drag = false;
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
