// Closed-form contacts of a box with spheres and capsules.
//
// All are computed in the frame of the box, where it is |x_i| <= s_i. Sphere: clamp the centre to the box. Capsule: the
// point of the axis nearest to the box, and a second one that makes a rocking capsule stable. The choices of points,
// ties and thresholds are those of MuJoCo 4.0.0 (engine_collision_box.c); tests compare with the library.
#include "physics/base/vec.h"
#include "physics/collision/collide_private.h"

// Contact of a sphere at `centre` (in the frame of the box) with the box.
SN_LOCAL int box_sphere(const SnShape *box, const sn_real *centre, sn_real radius, sn_real reach, SnContact *con) {
  sn_real clamped[3], n[3], pos[3];
  for (int i = 0; i < 3; ++i) clamped[i] = sn_clip(centre[i], -box->size[i], box->size[i]);
  sn_sub3(n, clamped, centre);
  const sn_real dist = sn_normalize3(n);
  if (dist - radius > reach) return 0;
  if (dist > SN_MINVAL) {
    // midway between the box's point and the sphere's
    sn_addscl3(pos, centre, n, radius);
    sn_addto3(pos, clamped);
    sn_scale3(pos, pos, SN_R(0.5));
    sn_contact_write_local(con, box, dist - radius, pos, n, 0);
    return 1;
  }
  // the centre is inside: out by the nearest face
  sn_real closest = 2 * (box->size[0] + box->size[1] + box->size[2]);
  int axis = 0;
  sn_real sign = 1;
  for (int i = 0; i < 3; ++i)
    for (int side = 0; side < 2; ++side) {
      const sn_real d = sn_abs((side ? box->size[i] : -box->size[i]) - centre[i]);
      if (closest > d) {
        closest = d;
        axis = i;
        sign = side ? SN_R(-1.0) : SN_R(1.0);
      }
    }
  sn_zero(n, 3);
  n[axis] = sign;
  sn_addscl3(pos, centre, n, (radius - closest) / 2);
  sn_contact_write_local(con, box, -closest - radius, pos, n, 1);
  return 1;
}

// Adjoint of the contact of a sphere at `centre` (in the world): adds to the wrench (6) on the box, sets the bar of the
// centre. Outside, a coordinate of the box's point follows the centre where it is not clamped (on the seam: clamped).
// Inside, the nearest face is a plane whose normal is against the contact's; of equally near ones the face taken. On
// the surface (SN_STEADY_LENGTH), too, the normal is taken as fixed to the box.
SN_LOCAL void box_sphere_vjp(const SnShape *box, const sn_real *centre, sn_real radius, bool inside,
                             const SnContact *con, const SnContactBar *bar, sn_real *wrench, sn_real *centre_bar) {
  sn_real d[3], local[3], point[3], near_bar[3], follow[3];
  if (inside || con->dist + radius < SN_STEADY_LENGTH) {
    SnContactBar face = *bar;
    sn_scale3(face.normal, bar->normal, -1);
    sn_scale3(d, con->frame, -1);
    sn_plane_point_vjp(box, d, centre, radius, con->dist, &face, wrench, centre_bar);
    return;
  }
  sn_sub3(d, centre, box->pos);
  sn_mulmattvec3(local, box->mat, d);
  for (int i = 0; i < 3; ++i) d[i] = sn_clip(local[i], -box->size[i], box->size[i]);
  sn_mulmatvec3(point, box->mat, d);
  sn_addto3(point, box->pos);
  sn_two_spheres_vjp(centre, radius, point, 0, con->frame, bar, centre_bar, near_bar);
  sn_push(wrench, box, point, near_bar);
  sn_mulmattvec3(d, box->mat, near_bar);
  for (int i = 0; i < 3; ++i)
    if (sn_abs(local[i]) >= box->size[i]) d[i] = 0;
  sn_mulmatvec3(follow, box->mat, d);
  sn_addto3(centre_bar, follow);
  sn_scale3(follow, follow, -1);
  sn_push(wrench, box, centre, follow);
}

SN_FUNC int sn_collide_sphere_box(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  sn_real d[3], centre[3];
  sn_sub3(d, a->pos, b->pos);
  sn_mulmattvec3(centre, b->mat, d);
  return box_sphere(b, centre, a->size[0], reach, con);
}

// Feature 1: the centre is inside.
SN_FUNC void sn_collide_sphere_box_vjp(const SnShape *a, const SnShape *b, const SnContact *con,
                                       const SnContactBar *bar, sn_real *wrench) {
  sn_real centre_bar[3];
  box_sphere_vjp(b, a->pos, a->size[0], con->feature & 1, con, bar, wrench + 6, centre_bar);
  sn_addto3(wrench + 3, centre_bar);
}

// The feature of the box that is nearest to a capsule's axis p + x h, x in [-1, 1].
typedef enum BoxFeature { BOX_NOTHING, BOX_FACE, BOX_EDGE, BOX_CORNER } BoxFeature;
typedef struct BoxNearest {
  BoxFeature feature;
  sn_real x;      // of the nearest point on the axis
  sn_real along;  // position on the edge, in [-1, 1]
  int axis;       // normal of the face (-1: the end is inside the box) or direction of the edge
  int corner;     // bit i: the upper end in direction i
} BoxNearest;

// A capsule in the frame of a box.
typedef struct BoxCapsule {
  const sn_real *size;    // of the box
  sn_real p[3], axis[3];  // centre, unit axis
  sn_real h[3];           // axis times half length
  sn_real half, radius;
  int sign;  // bit i: h[i] > 0
} BoxCapsule;

// -1, 0 or 1: clamps x to [-1, 1] and says where; `was` when nothing was clamped.
SN_LOCAL int box_clamp(sn_real *x, int was) {
  if (*x > 1) {
    *x = 1;
    return 1;
  }
  if (*x < -1) {
    *x = -1;
    return -1;
  }
  return was;
}

// Nearest points of the axis and the edge in direction j through corner `edge` (bit j unset); false when parallel. An
// edge that was clamped to a corner in between counts as that corner, as in MuJoCo.
SN_LOCAL bool box_edge_nearest(const BoxCapsule *c, int j, int edge, sn_real *square, BoxNearest *near) {
  sn_real d[3];
  for (int k = 0; k < 3; ++k) d[k] = (k == j ? SN_R(0.0) : ((edge >> k) & 1 ? c->size[k] : -c->size[k])) - c->p[k];
  const sn_real s = c->size[j], ma = s * s, mb = -s * c->h[j], mc = c->half * c->half;
  const sn_real u = -s * d[j], v = sn_dot3(c->h, d), det = ma * mc - mb * mb;
  if (sn_abs(det) < SN_MINVAL) return false;
  const sn_real inv = 1 / det;
  sn_real x1 = (mc * u - mb * v) * inv, x2 = (ma * v - mb * u) * inv;
  int end = box_clamp(&x1, 0);
  if (end) x2 = (v - mb * x1) * (1 / mc);
  if (box_clamp(&x2, 0)) {
    x1 = (u - mb * x2) * (1 / ma);
    end = box_clamp(&x1, end);
  }
  sn_addtoscl3(d, c->h, -x2);
  d[j] += s * x1;
  *square = sn_dot3(d, d);
  *near = (BoxNearest){end ? BOX_CORNER : BOX_EDGE, x2, x1, j, edge + (end > 0 ? 1 << j : 0)};
  return true;
}

SN_LOCAL BoxNearest box_nearest(const BoxCapsule *c, sn_real reach) {
  BoxNearest best = {BOX_NOTHING, 0, 0, -1, 0};
  sn_real least = reach + 2 * (c->radius + c->half + c->size[0] + c->size[1] + c->size[2]);
  for (int end = -1; end <= 1; end += 2) {  // an end over a face
    sn_real square = 0;
    int outside = 0, axis = -1;
    for (int k = 0; k < 3; ++k) {
      const sn_real x = c->p[k] + c->h[k] * (sn_real)end, over = x - sn_clip(x, -c->size[k], c->size[k]);
      if (over == 0) continue;
      ++outside;
      axis = k;
      square += over * over;
    }
    if (outside > 1 || !(square < least)) continue;
    least = square;
    best = (BoxNearest){BOX_FACE, (sn_real)end, 0, axis, 0};
  }
  for (int j = 0; j < 3; ++j)
    for (int edge = 0; edge < 8; ++edge) {
      sn_real square;
      BoxNearest near;
      if ((edge >> j) & 1 || !box_edge_nearest(c, j, edge, &square, &near)) continue;
      if (square < least - SN_MINVAL) {  // the slack keeps an axis parallel to a face from flickering
        least = square;
        best = near;
      }
    }
  return best;
}

// Adjoint of x and along of the nearest points: adds to the bars of p and h, in the frame of the box. A coordinate that
// is clamped is fixed; so are both where axis and edge are parallel (sine below SN_STEADY_SINE).
SN_LOCAL void box_nearest_vjp(const BoxCapsule *c, const BoxNearest *near, sn_real x_bar, sn_real along_bar,
                              sn_real *p_bar, sn_real *h_bar) {
  if (near->feature == BOX_FACE) return;
  const int j = near->axis;
  sn_real d[3];
  for (int k = 0; k < 3; ++k)
    d[k] = (k == j ? SN_R(0.0) : ((near->corner >> k) & 1 ? c->size[k] : -c->size[k])) - c->p[k];
  const sn_real s = c->size[j], ma = s * s, mb = -s * c->h[j], mc = c->half * c->half;
  const bool free1 = sn_abs(near->along) < 1, free2 = sn_abs(near->x) < 1;
  sn_real u_bar = 0, v_bar = 0, mb_bar;  // of ma x1 + mb x2 = u, mb x1 + mc x2 = v
  if (free1 && free2) {
    const sn_real det = ma * mc - mb * mb;
    if (!(det > SN_STEADY_SINE * SN_STEADY_SINE * ma * mc)) return;
    const sn_real inv = 1 / det;
    u_bar = (mc * along_bar - mb * x_bar) * inv;
    v_bar = (ma * x_bar - mb * along_bar) * inv;
  } else if (free1) {
    u_bar = along_bar / ma;
  } else if (free2) {
    v_bar = x_bar / mc;
  }
  mb_bar = -u_bar * near->x - v_bar * near->along;
  for (int k = 0; k < 3; ++k) {
    p_bar[k] -= v_bar * c->h[k];
    h_bar[k] += v_bar * d[k];
  }
  p_bar[j] += s * u_bar;
  h_bar[j] -= s * mb_bar;
}

// A step along the axis from the nearest point to a second one, and what bounds it: the width of the box in direction
// `by`, or, -1, the end of the axis.
typedef struct BoxStep {
  sn_real x;
  int by;
} BoxStep;

SN_INLINE void box_bound(BoxStep *s, sn_real x, int by) {
  if (x < s->x) *s = (BoxStep){x, by};
}

// The pattern of signs of h against the corner tells whether the axis runs along an edge, over a face or away from the
// box (no second point: false).
SN_LOCAL bool box_second_corner(const BoxCapsule *c, const BoxNearest *near, BoxStep *step) {
  int pattern = c->sign ^ near->corner;
  if (pattern == 0 || pattern == 7) return false;
  const bool one = pattern == 1 || pattern == 2 || pattern == 4;
  if (!one) pattern = 7 - pattern;
  const int ax = pattern >> 1, ax1 = (ax + 1) % 3, ax2 = (ax + 2) % 3;
  const sn_real forward = one ? 1 - near->x : 1 + near->x, back = one ? 1 + near->x : 1 - near->x;
  const sn_real dir = one ? SN_R(1.0) : SN_R(-1.0);
  if (c->axis[ax] * c->axis[ax] > SN_R(0.5)) {
    *step = (BoxStep){forward, -1};
    box_bound(step, 2 * c->size[ax] / sn_abs(c->h[ax]), ax);
    step->x = dir * step->x;
  } else {
    *step = (BoxStep){back, -1};
    box_bound(step, 2 * c->size[ax1] / sn_abs(c->h[ax1]), ax1);
    box_bound(step, 2 * c->size[ax2] / sn_abs(c->h[ax2]), ax2);
    step->x = -dir * step->x;
  }
  return true;
}

// How a step from an edge goes: over the box in direction `over`, of the two across the edge the one that the axis
// follows more; up or down the capsule; and along the edge over 1 + towards * along of its half.
typedef struct BoxOver {
  int over;
  bool up;
  sn_real towards;
} BoxOver;

SN_LOCAL bool box_over(const BoxCapsule *c, const BoxNearest *near, BoxOver *o) {
  const int ax = near->axis, pattern = (c->sign ^ near->corner) & (7 - (1 << ax));
  if (pattern != 1 && pattern != 2 && pattern != 4) return false;
  const int a1 = (ax + 1) % 3, a2 = (ax + 2) % 3;
  o->over = sn_abs(c->axis[a1]) > sn_abs(c->axis[a2]) ? a1 : a2;
  o->up = (pattern >> o->over) & 1;
  o->towards = ((c->sign >> ax) & 1) == (int)o->up ? SN_R(-1.0) : SN_R(1.0);
  return true;
}

SN_LOCAL bool box_second_edge(const BoxCapsule *c, const BoxNearest *near, BoxStep *step) {
  BoxOver o;
  const int ax = near->axis;
  if (!box_over(c, near, &o)) return false;
  *step = (BoxStep){o.up ? 1 - near->x : 1 + near->x, -1};
  box_bound(step, 2 * c->size[o.over] / sn_abs(c->h[o.over]), o.over);
  box_bound(step, c->size[ax] * (1 + o.towards * near->along) / sn_abs(c->h[ax]), ax);
  if (!o.up) step->x = -step->x;
  return true;
}

SN_LOCAL bool box_second_face(const BoxCapsule *c, const BoxNearest *near, BoxStep *step) {
  if (near->axis < 0) return false;
  const sn_real dir = near->x < 0 ? SN_R(1.0) : SN_R(-1.0);  // from the near end towards the other
  *step = (BoxStep){2, -1};
  for (int i = 0; i < 3; ++i) {
    if (i == near->axis) continue;
    for (int side = -1; side <= 1; side += 2) {
      const sn_real e = ((sn_real)side * c->size[i] - (c->p[i] - dir * c->h[i])) / c->h[i] * dir;
      if (e > 0) box_bound(step, e, i);
    }
  }
  step->x = dir * step->x;
  return true;
}

SN_LOCAL bool box_second(const BoxCapsule *c, const BoxNearest *near, BoxStep *step) {
  if (near->feature == BOX_FACE) return box_second_face(c, near, step);
  if (near->feature == BOX_EDGE) return box_second_edge(c, near, step);
  return box_second_corner(c, near, step);
}

// Adjoint of a step: adds to the bars of x, along, p and h. Up to the end of the axis x + step is fixed; across the box
// step = +-2 size / |h|; to the end of an edge +-size (1 + towards along) / |h|; from an end over a face
// (+-size - p) / h + dir. Where the axis is at a right angle to that direction (sine below SN_STEADY_SINE) the step is
// fixed.
SN_LOCAL void box_step_vjp(const BoxCapsule *c, const BoxNearest *near, BoxStep step, sn_real bar, sn_real *x_bar,
                           sn_real *along_bar, sn_real *p_bar, sn_real *h_bar) {
  const int k = step.by;
  if (k < 0) {
    *x_bar -= bar;
    return;
  }
  if (sn_abs(c->axis[k]) < SN_STEADY_SINE) return;
  const sn_real h = c->h[k];
  if (near->feature == BOX_FACE) {
    const sn_real dir = near->x < 0 ? SN_R(1.0) : SN_R(-1.0);
    p_bar[k] -= bar / h;
    h_bar[k] -= bar * (step.x - dir) / h;
    return;
  }
  if (near->feature == BOX_EDGE && k == near->axis) {
    BoxOver o;
    if (!box_over(c, near, &o)) return;
    *along_bar += (o.up ? bar : -bar) * o.towards * c->size[k] / sn_abs(h);
  }
  h_bar[k] -= bar * step.x / h;
}

// Feature of a contact: whether the point of the axis is inside, then what is nearest, then whether it is the second
// contact. At a face the corner tells the end.
SN_LOCAL int box_feature(const BoxNearest *near, bool second) {
  const int corner = near->feature == BOX_FACE ? near->x > 0 : near->corner;
  return 2 * ((int)near->feature + 4 * (near->axis + 1 + 4 * (corner + 8 * second)));
}

SN_LOCAL BoxNearest box_recall(const BoxCapsule *c, int feature) {
  BoxNearest near = {(BoxFeature)((feature >> 1) & 3), 0, 0, ((feature >> 3) & 3) - 1, (feature >> 5) & 7};
  if (near.feature == BOX_FACE) {
    near.x = near.corner ? SN_R(1.0) : SN_R(-1.0);
    return near;
  }
  sn_real square;
  BoxNearest again = near;
  if (box_edge_nearest(c, near.axis, near.corner & ~(1 << near.axis), &square, &again)) {
    near.x = again.x;
    near.along = again.along;
  }
  return near;
}

SN_LOCAL BoxCapsule box_capsule(const SnShape *a, const SnShape *b) {
  BoxCapsule c = {.size = b->size, .half = a->size[1], .radius = a->size[0]};
  sn_real d[3];
  sn_sub3(d, a->pos, b->pos);
  sn_mulmattvec3(c.p, b->mat, d);
  sn_shape_axis(d, a->mat);
  sn_mulmattvec3(c.axis, b->mat, d);
  sn_scale3(c.h, c.axis, c.half);
  c.sign = (c.h[0] > 0) + 2 * (c.h[1] > 0) + 4 * (c.h[2] > 0);
  return c;
}

SN_FUNC int sn_collide_capsule_box(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  const BoxCapsule c = box_capsule(a, b);
  sn_real d[3], centre[3];
  BoxStep step = {0, -1};
  const BoxNearest near = box_nearest(&c, reach);
  if (near.feature == BOX_NOTHING) return 0;
  const bool second = box_second(&c, &near, &step);
  int n = 0;
  for (int k = 0; k < 1 + second; ++k) {
    sn_real local[3];
    sn_addscl3(local, c.p, c.h, k ? step.x + near.x : near.x);
    // to the world and back, as MuJoCo does: where faces tie exactly, its rounding decides
    sn_mulmatvec3(centre, b->mat, local);
    sn_addto3(centre, b->pos);
    sn_sub3(d, centre, b->pos);
    sn_mulmattvec3(centre, b->mat, d);
    if (!box_sphere(b, centre, c.radius, reach, con + n)) continue;
    con[n++].feature |= box_feature(&near, k > 0);
  }
  return n;
}

// The contact of a sphere at a.pos + x h, x as the feature says it moves with the pose; h along the capsule.
SN_FUNC void sn_collide_capsule_box_vjp(const SnShape *a, const SnShape *b, const SnContact *con,
                                        const SnContactBar *bar, sn_real *wrench) {
  const BoxCapsule c = box_capsule(a, b);
  const BoxNearest near = box_recall(&c, con->feature);
  BoxStep step = {0, -1};
  const bool second = con->feature >> 8 && box_second(&c, &near, &step);
  sn_real h[3], centre[3], centre_bar[3], p_bar[3] = {0, 0, 0}, h_bar[3] = {0, 0, 0}, p_world[3], h_world[3];
  const sn_real x = near.x + step.x;
  sn_shape_axis(h, a->mat);
  sn_scale3(h, h, c.half);
  sn_addscl3(centre, a->pos, h, x);
  box_sphere_vjp(b, centre, c.radius, con->feature & 1, con, bar, wrench + 6, centre_bar);
  sn_real x_bar = sn_dot3(h, centre_bar), along_bar = 0;
  if (second) box_step_vjp(&c, &near, step, x_bar, &x_bar, &along_bar, p_bar, h_bar);
  box_nearest_vjp(&c, &near, x_bar, along_bar, p_bar, h_bar);
  sn_mulmatvec3(p_world, b->mat, p_bar);
  sn_mulmatvec3(h_world, b->mat, h_bar);
  sn_addto3(wrench + 3, centre_bar);
  sn_addto3(wrench + 3, p_world);
  sn_scale3(p_world, p_world, -1);
  sn_push(wrench + 6, b, a->pos, p_world);
  sn_scale3(p_world, h_world, -1);
  sn_turn(wrench + 6, h, p_world);
  sn_addtoscl3(h_world, centre_bar, x);
  sn_turn(wrench, h, h_world);
}
