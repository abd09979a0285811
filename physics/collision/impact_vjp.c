// The adjoint of contacts before impact (speculative.c, impact.c).
//
// A pair is swept again, and the advances are taken back one after the other. With d_i, n_i distance and normal after
// the fraction t_i, c_i the rate there, and the target d* = 0.98 m + 0.02 d_0,
//
//   t_(i+1) = t_i + (d_i - d*) / c_i,   c_i = n_i (s1 - s2) + |w1| r1 + |w2| r2,
//
// so what is differentiated is the iterate itself, not a root that it is near. d_i, n_i and points have the adjoint of
// their collider: torque and force on each geom where it was placed. A geom stands at x + t s, turned by E = exp(t w).
// A small turn a of where it starts turns it by E a, a change of w by J t dw, one of t by w dt, J the left Jacobian:
//
//   x_bar += f,   s_bar += t f,   a_bar += E'q,   w_bar += t J'q,   t_bar += f s + q w       for force f, torque q.
//
// A point y of the geom is mapped back to x + E'(y - x - t s): with g its bar, that of y is E g, and E gets the torque
// -(y - x - t s) x E g. Displacement and turn follow the twist (o, v) of the body about c: s = h (v + o x (x - c)), w =
// h o. Radii of bounding spheres are constants, and so are who is swept, how many advances are made, and what is
// hidden.
#include "physics/base/vec.h"
#include "physics/collision/convex_private.h"
#include "physics/collision/speculative_private.h"

#if !defined(SN_PACK)
// Bars of a geom that moves through the step.
typedef struct ImpactGeomBar {
  sn_real wrench[6];  // torque and force where it starts
  sn_real shift[3], turn[3];
  sn_real spin, travel;
} ImpactGeomBar;

typedef struct ImpactBar {
  ImpactGeomBar geom[2];
  sn_real t, target, first;  // of the present time; of d*; of d_0, besides that of its state
  sn_real speed, reach;
  SnContactBar near;  // of the present state
} ImpactBar;

// Takes a torque on E alone back.
SN_LOCAL void impact_pull_turn(const SnSweptGeom *g, sn_real t, const sn_real *torque, ImpactBar *bar,
                               ImpactGeomBar *to) {
  sn_real x[3], back[3];
  sn_copy3(x, torque);
  sn_scale3(back, g->turn, -t);
  sn_right_jacobian_transpose(x, back);
  sn_addtoscl3(to->turn, x, t);
  bar->t += sn_dot3(torque, g->turn);
}

// Takes torque and force (12) on both geoms back, which were placed at t.
SN_LOCAL void impact_pull(const SnSwept *s, sn_real t, const sn_real *wrench, ImpactBar *bar) {
  for (int side = 0; side < 2; ++side) {
    const SnSweptGeom *g = s->geom + side;
    ImpactGeomBar *to = bar->geom + side;
    const sn_real *torque = wrench + 6 * side, *force = torque + 3;
    sn_real x[3];
    sn_mulmattvec3(x, g->rotation, torque);
    sn_addto3(to->wrench, x);
    sn_addto3(to->wrench + 3, force);
    sn_addtoscl3(to->shift, force, t);
    bar->t += sn_dot3(force, g->shift);
    impact_pull_turn(g, t, torque, bar, to);
  }
}

// The bar of a point that was mapped back becomes that of the point at the impact.
SN_LOCAL void impact_back_vjp(const SnSwept *s, int side, const sn_real *x, const sn_real *back_bar, ImpactBar *bar,
                              sn_real *x_bar) {
  const SnSweptGeom *g = s->geom + side;
  sn_real arm[3], torque[3], wrench[12] = {0};
  sn_sub3(arm, x, g->pos);
  sn_mulmatvec3(x_bar, g->rotation, back_bar);
  sn_cross(torque, x_bar, arm);
  impact_pull_turn(g, s->state[s->last].t, torque, bar, bar->geom + side);
  sn_scale3(wrench + 6 * side + 3, x_bar, -1);
  impact_pull(s, s->state[s->last].t, wrench, bar);
  sn_addto3(bar->geom[side].wrench + 3, back_bar);
}

// An end of a line along a plane, of a capsule or a cylinder.
SN_LOCAL void impact_line_vjp(const SnModel *m, const SnSwept *s, const SnSweptPoint *p, const sn_real *x_bar,
                              ImpactBar *bar, sn_real *wrench) {
  const SnSweptGeom *g = s->geom + 1;
  const sn_real radius = g->start.size[0], end = p->code ? g->start.size[1] : -g->start.size[1];
  sn_real n[3], axis[3], axis_bar[3], n_bar[3], q[3], q_bar[3];
  sn_shape_axis(n, s->geom[0].mat);
  sn_shape_axis(axis, g->mat);
  const sn_real lean = sn_dot3(axis, n), along = sn_dot3(axis, x_bar);
  sn_scale3(axis_bar, x_bar, end);
  if (m->geom_type[g->start.geom] == SN_GEOM_CAPSULE) {
    const sn_real far = radius + SN_R(0.5) * s->reach;
    sn_addtoscl3(axis_bar, x_bar, lean * far);
    sn_addtoscl3(axis_bar, n, along * far);
    sn_scale3(n_bar, x_bar, -radius);
    sn_addtoscl3(n_bar, axis, along * far);
    bar->reach += SN_R(0.5) * lean * along;
  } else {
    sn_addscl3(q, n, axis, -lean);
    const sn_real length = sn_normalize3(q);
    sn_scale3(n_bar, x_bar, -radius);
    sn_direction_vjp(q_bar, q, length, n_bar);
    const sn_real off = sn_dot3(axis, q_bar);
    sn_addscl3(n_bar, q_bar, axis, -off);
    sn_addtoscl3(axis_bar, q_bar, -lean);
    sn_addtoscl3(axis_bar, n, -off);
  }
  sn_addto3(wrench + 9, x_bar);
  sn_turn(wrench + 6, axis, axis_bar);
  sn_turn(wrench, n, n_bar);
}

// A point of a geom against a plane.
SN_LOCAL void impact_plane_vjp(const SnModel *m, const SnSwept *s, const SnSweptPoint *p, const sn_real *x_bar,
                               ImpactBar *bar, sn_real *wrench) {
  const SnShape a = sn_swept_shape(s->geom), b = sn_swept_shape(s->geom + 1);
  sn_real n[3];
  sn_shape_axis(n, a.mat);
  if (p->code < 0) {
    SnContactBar near = {.dist = SN_R(0.5) * sn_dot3(n, x_bar), .pos = {x_bar[0], x_bar[1], x_bar[2]}};
    sn_scale3(near.normal, x_bar, SN_R(0.5) * p->made.dist);
    sn_collide_shapes_vjp(m, &a, &b, s->collider, SN_MAXVAL, &p->made, &near, wrench);
  } else if (sn_swept_has_line(m, s, n)) {
    impact_line_vjp(m, s, p, x_bar, bar, wrench);
  } else {
    sn_push(wrench + 6, &b, p->x[1], x_bar);
  }
}

// The points of a contact of two convex shapes, inflated by reach: see impact_points.
SN_LOCAL void impact_convex_vjp(const SnModel *m, const SnSwept *s, const SnSweptPoint *p, sn_real x_bar[2][3],
                                ImpactBar *bar, sn_real *wrench) {
  const SnShape a = sn_swept_shape(s->geom), b = sn_swept_shape(s->geom + 1);
  SnContactBar made = {0};
  sn_real e[3];
  sn_add3(made.pos, x_bar[0], x_bar[1]);
  sn_sub3(e, x_bar[0], x_bar[1]);
  const sn_real out = SN_R(0.5) * sn_dot3(e, p->made.frame);
  sn_scale3(made.normal, e, SN_R(0.5) * (s->reach - p->made.dist));
  made.dist = -out;
  bar->reach += out - SN_R(0.5) * sn_dot3(e, s->normal);
  sn_addtoscl3(bar->near.normal, e, SN_R(-0.5) * s->reach);
  sn_collide_convex_vjp(m, &a, &b, s->reach, &p->made, &made, wrench);
}

// The contact point, from both geoms' points and their travels; bar->t is that of the time of the last state, at which
// the geoms are placed.
SN_LOCAL void impact_point_vjp(const SnModel *m, SnSwept *s, const SnSweptPoint *p, const sn_real *pos_bar,
                               ImpactBar *bar) {
  const sn_real l0 = s->geom[0].travel, l1 = s->geom[1].travel, share = l0 / (l0 + l1);
  sn_real back[2][3], back_bar[3], x_bar[2][3], d[3], wrench[12] = {0};
  for (int side = 0; side < 2; ++side) {
    sn_swept_place(s->geom + side, s->state[s->last].t);
    sn_swept_back(s->geom + side, p->x[side], back[side]);
    sn_scale3(back_bar, pos_bar, side == 0 ? share : 1 - share);
    impact_back_vjp(s, side, p->x[side], back_bar, bar, x_bar[side]);
  }
  sn_sub3(d, back[0], back[1]);
  const sn_real share_bar = sn_dot3(d, pos_bar) / ((l0 + l1) * (l0 + l1));
  bar->geom[0].travel += share_bar * l1;
  bar->geom[1].travel -= share_bar * l0;
  if (s->collider == SN_COLLIDER_CONVEX)
    impact_convex_vjp(m, s, p, x_bar, bar, wrench);
  else
    impact_plane_vjp(m, s, p, x_bar[1], bar, wrench);
  impact_pull(s, s->state[s->last].t, wrench, bar);
}

// The rate of the nearest points of the last state, at which the geoms are placed.
SN_LOCAL void impact_rate_vjp(SnSwept *s, sn_real rate_bar, ImpactBar *bar) {
  const SnContact *near = &s->state[s->last].near;
  sn_real x[3], v[3], arm[3], arm_bar[3], turn_bar[3], wrench[12] = {0};
  for (int side = 0; side < 2; ++side) {
    const SnSweptGeom *g = s->geom + side;
    const sn_real sign = side == 0 ? rate_bar : -rate_bar, half = side == 0 ? SN_R(-0.5) : SN_R(0.5);
    sn_addscl3(x, near->pos, near->frame, half * near->dist);
    sn_swept_velocity(g, x, v);
    sn_addtoscl3(bar->near.normal, v, sign);
    sn_addtoscl3(bar->geom[side].shift, near->frame, sign);
    sn_sub3(arm, x, g->pos);
    sn_cross(turn_bar, arm, near->frame);
    sn_addtoscl3(bar->geom[side].turn, turn_bar, sign);
    sn_cross(arm_bar, near->frame, g->turn);
    sn_scale3(arm_bar, arm_bar, sign);
    sn_scale3(wrench + 6 * side + 3, arm_bar, -1);
    sn_addto3(bar->near.pos, arm_bar);
    bar->near.dist += half * sn_dot3(near->frame, arm_bar);
    sn_addtoscl3(bar->near.normal, arm_bar, half * near->dist);
  }
  impact_pull(s, s->state[s->last].t, wrench, bar);
}

// From the bars of time of impact, speed and reach to those of the last state.
SN_LOCAL void impact_last_vjp(SnSwept *s, ImpactBar *bar) {
  const SnSweptState *first = s->state, *last = s->state + s->last;
  const sn_real target = s->margin + SN_SPEC_TARGET * (first->near.dist - s->margin);
  bar->near.dist += 2 * bar->reach;
  bar->t -= s->speed * bar->reach;
  bar->speed += (1 - s->t) * bar->reach;
  for (int side = 0; side < 2; ++side) sn_swept_place(s->geom + side, last->t);
  const sn_real rate = sn_swept_rate(s, &last->near), mean = (first->near.dist - last->near.dist) / last->t;
  sn_real rate_bar = rate >= mean ? bar->speed : 0;
  const sn_real mean_bar = rate >= mean ? 0 : bar->speed / last->t;
  if (s->extrapolated) {
    const sn_real step_bar = bar->t / rate;
    bar->near.dist += step_bar;
    bar->target -= step_bar;
    rate_bar -= step_bar * (last->near.dist - target) / rate;
  }
  bar->first += mean_bar;
  bar->near.dist -= mean_bar;
  bar->t -= mean_bar * mean;
  impact_rate_vjp(s, rate_bar, bar);
}

// The advances backwards: bar->near and bar->t are those of the last state.
SN_LOCAL void impact_advance_vjp(const SnModel *m, SnSwept *s, ImpactBar *bar) {
  const sn_real target = s->margin + SN_SPEC_TARGET * (s->state[0].near.dist - s->margin);
  sn_real shift[3];
  sn_sub3(shift, s->geom[0].shift, s->geom[1].shift);
  for (int i = s->last; i >= 0; --i) {
    const SnSweptState *now = s->state + i;
    sn_real wrench[12] = {0};
    if (i == 0) bar->near.dist += bar->first + SN_SPEC_TARGET * bar->target;
    for (int side = 0; side < 2; ++side) sn_swept_place(s->geom + side, now->t);
    const SnShape a = sn_swept_shape(s->geom), b = sn_swept_shape(s->geom + 1);
    sn_collide_shapes_vjp(m, &a, &b, s->collider, s->collider == SN_COLLIDER_CONVEX ? 0 : SN_MAXVAL, &now->near,
                          &bar->near, wrench);
    impact_pull(s, now->t, wrench, bar);
    if (i == 0) return;
    const SnSweptState *last = now - 1;
    const SnContactBar none = {0};
    const sn_real step_bar = bar->t / last->closing;
    const sn_real closing_bar = -step_bar * (last->near.dist - target) / last->closing;
    bar->near = none;
    bar->near.dist = step_bar;
    bar->target -= step_bar;
    sn_scale3(bar->near.normal, shift, closing_bar);
    for (int side = 0; side < 2; ++side) {
      sn_addtoscl3(bar->geom[side].shift, last->near.frame, side == 0 ? closing_bar : -closing_bar);
      bar->geom[side].spin += closing_bar * s->geom[side].bound;
    }
  }
}

// From bars of displacement and turn to the twist of a geom's body (rotation, translation) about `origin`; the force on
// its centre is added.
SN_LOCAL void impact_twist(const SnSweptGeom *g, ImpactGeomBar *bar, sn_real h, const sn_real *omega,
                           const sn_real *origin, sn_real *twist) {
  const sn_real length = sn_norm3(g->shift);
  sn_real arm[3], v_bar[3], r[3];
  if (length > 0) sn_addtoscl3(bar->shift, g->shift, bar->travel / length);
  bar->spin += bar->travel * g->bound;
  if (g->spin > 0) sn_addtoscl3(bar->turn, g->turn, bar->spin / g->spin);
  sn_scale3(v_bar, bar->shift, h);
  sn_sub3(arm, g->start.pos, origin);
  sn_cross(twist, arm, v_bar);
  sn_copy3(twist + 3, v_bar);
  if (g->turns) sn_addtoscl3(twist, bar->turn, h);
  sn_cross(r, v_bar, omega);
  sn_addto3(bar->wrench + 3, r);
}

SN_FUNC void sn_impact_vjp(const SnModel *m, const SnWorld *w, const SnContact *con, const SnContactBar *con_bar,
                           const sn_real *omega, sn_real *wrench, sn_real *twist) {
  SnSwept s;
  SnSweptPoint point[SN_SPEC_POINTS];
  ImpactBar bar = {0};
  sn_real k, b, impact_bar = 0;
  const int i = con->feature - SN_FEATURE_IMPACT;
  sn_zero(twist, 12);
  sn_swept_begin(&s, m, w, con->pair);
  if (!sn_swept_impact(m, &s) || sn_swept_points(m, &s, point) <= i) return;
  sn_swept_spring(m, w, &s, &k, &b);
  if (k >= SN_MINVAL) {
    impact_bar = con_bar->dist * s.speed / k;
    bar.speed = -con_bar->dist * (1 - s.t - b) / k;
  }
  sn_copy3(bar.near.normal, con_bar->normal);
  impact_point_vjp(m, &s, point + i, con_bar->pos, &bar);
  const sn_real placed_bar = bar.t;
  bar.t = impact_bar;
  impact_last_vjp(&s, &bar);
  bar.t += placed_bar;
  impact_advance_vjp(m, &s, &bar);
  for (int side = 0; side < 2; ++side) {
    const int body = m->geom_bodyid[con->geom[side]];
    if (m->chain_adr[body] < m->chain_adr[body + 1])
      impact_twist(s.geom + side, bar.geom + side, sn_timestep(m, w), omega + 3 * side,
                   w->subtree_com + 3 * m->body_rootid[m->link_of_body[body]], twist + 6 * side);
    for (int e = 0; e < 6; ++e) wrench[6 * side + e] += bar.geom[side].wrench[e];
  }
}
#endif
