// Closed-form contacts of a box with spheres and capsules.
//
// All are computed in the frame of the box, where it is |x_i| <= s_i. Sphere: clamp the centre to the box. Capsule: the
// point of the axis nearest to the box, and a second one that makes a rocking capsule stable. The choices of points,
// ties and thresholds are those of MuJoCo 4.0.0 (engine_collision_box.c); tests compare with the library.
#include "physics/collide.h"

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

SN_FUNC int sn_collide_sphere_box(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  sn_real d[3], centre[3];
  sn_sub3(d, a->pos, b->pos);
  sn_mulmattvec3(centre, b->mat, d);
  return box_sphere(b, centre, a->size[0], reach, con);
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

// Step along the axis from the nearest point to a second one. The pattern of signs of h against the corner tells
// whether the axis runs along an edge, over a face or away from the box (no second point: false).
SN_LOCAL bool box_second_corner(const BoxCapsule *c, const BoxNearest *near, sn_real *step) {
  int pattern = c->sign ^ near->corner;
  if (pattern == 0 || pattern == 7) return false;
  const bool one = pattern == 1 || pattern == 2 || pattern == 4;
  if (!one) pattern = 7 - pattern;
  const int ax = pattern >> 1, ax1 = (ax + 1) % 3, ax2 = (ax + 2) % 3;
  const sn_real forward = one ? 1 - near->x : 1 + near->x, back = one ? 1 + near->x : 1 - near->x;
  const sn_real dir = one ? SN_R(1.0) : SN_R(-1.0);
  if (c->axis[ax] * c->axis[ax] > SN_R(0.5)) {
    *step = dir * sn_min(2 * c->size[ax] / sn_abs(c->h[ax]), forward);
  } else {
    *step = sn_min(2 * c->size[ax1] / sn_abs(c->h[ax1]), back);
    *step = -dir * sn_min(2 * c->size[ax2] / sn_abs(c->h[ax2]), *step);
  }
  return true;
}

SN_LOCAL bool box_second_edge(const BoxCapsule *c, const BoxNearest *near, sn_real *step) {
  const int ax = near->axis, pattern = (c->sign ^ near->corner) & (7 - (1 << ax));
  if (pattern != 1 && pattern != 2 && pattern != 4) return false;
  // `over`: of the two directions across the edge the one that the axis follows more
  const int a1 = (ax + 1) % 3, a2 = (ax + 2) % 3, over = sn_abs(c->axis[a1]) > sn_abs(c->axis[a2]) ? a1 : a2;
  const bool up = (pattern >> over) & 1;
  const sn_real rest = ((c->sign >> ax) & 1) == (int)up ? 1 - near->along : 1 + near->along;
  sn_real x = sn_min(2 * c->size[over] / sn_abs(c->h[over]), up ? 1 - near->x : 1 + near->x);
  x = sn_min(c->size[ax] * rest / sn_abs(c->h[ax]), x);
  *step = up ? x : -x;
  return true;
}

SN_LOCAL bool box_second_face(const BoxCapsule *c, const BoxNearest *near, sn_real *step) {
  if (near->axis < 0) return false;
  const sn_real dir = near->x < 0 ? SN_R(1.0) : SN_R(-1.0);  // from the near end towards the other
  sn_real x = 2;
  for (int i = 0; i < 3; ++i) {
    if (i == near->axis) continue;
    for (int side = -1; side <= 1; side += 2) {
      const sn_real e = ((sn_real)side * c->size[i] - (c->p[i] - dir * c->h[i])) / c->h[i] * dir;
      if (e > 0 && e < x) x = e;
    }
  }
  *step = dir * x;
  return true;
}

SN_FUNC int sn_collide_capsule_box(const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  BoxCapsule c = {.size = b->size, .half = a->size[1], .radius = a->size[0]};
  sn_real d[3], centre[3], step = 0;
  sn_sub3(d, a->pos, b->pos);
  sn_mulmattvec3(c.p, b->mat, d);
  sn_set3(d, a->mat[2], a->mat[5], a->mat[8]);
  sn_mulmattvec3(c.axis, b->mat, d);
  sn_scale3(c.h, c.axis, c.half);
  c.sign = (c.h[0] > 0) + 2 * (c.h[1] > 0) + 4 * (c.h[2] > 0);
  const BoxNearest near = box_nearest(&c, reach);
  if (near.feature == BOX_NOTHING) return 0;
  bool second = false;
  if (near.feature == BOX_FACE) second = box_second_face(&c, &near, &step);
  if (near.feature == BOX_EDGE) second = box_second_edge(&c, &near, &step);
  if (near.feature == BOX_CORNER) second = box_second_corner(&c, &near, &step);
  int n = 0;
  for (int k = 0; k < 1 + second; ++k) {
    sn_real local[3];
    sn_addscl3(local, c.p, c.h, k ? step + near.x : near.x);
    // to the world and back, as MuJoCo does: where faces tie exactly, its rounding decides
    sn_mulmatvec3(centre, b->mat, local);
    sn_addto3(centre, b->pos);
    sn_sub3(d, centre, b->pos);
    sn_mulmattvec3(centre, b->mat, d);
    n += box_sphere(b, centre, c.radius, reach, con + n);
  }
  return n;
}
