// Where geoms touch at the time of impact (speculative.c): the contact points, what stands between them, and the
// distance that makes a contact of them.
//
// Two convex shapes are collided where they will be, inflated so far that they overlap: then the search makes several
// contacts of faces and edges that face each other (multicontact.c). A plane takes the corners of the face of a
// box or mesh that looks at it most, four of them; of a cylinder's cap or of the line of its side, and of a capsule the
// ends of the line that lies along it; else the nearest point.
#include "physics/base/vec.h"
#include "physics/collision/collision.h"
#include "physics/collision/convex_private.h"
#include "physics/collision/feature_private.h"
#include "physics/collision/ray.h"
#include "physics/collision/speculative_private.h"

#if !defined(SN_PACK)
// The points of a contact on the geoms. It was made with inflated shapes, whose points lie beyond along its own normal;
// they are brought back along that of the impact.
SN_LOCAL void impact_points(const SnSwept *s, const SnContact *con, sn_real x[2][3]) {
  const sn_real out = SN_R(0.5) * (s->reach - con->dist), back = SN_R(0.5) * s->reach;
  for (int side = 0; side < 2; ++side) {
    const sn_real sign = side == 0 ? SN_R(1.0) : SN_R(-1.0);
    sn_addscl3(x[side], con->pos, con->frame, sign * out);
    sn_addtoscl3(x[side], s->normal, -sign * back);
  }
}

SN_LOCAL int impact_convex(const SnModel *m, const SnSwept *s, SnSweptPoint *point) {
  const SnShape a = sn_swept_shape(s->geom), b = sn_swept_shape(s->geom + 1);
  SnContact con[SN_SPEC_POINTS];
  const int max = m->opt.disableflags & SN_DSBL_MULTICCD ? 1 : SN_SPEC_POINTS;
  const int n = sn_collide_convex(m, &a, &b, s->reach, con, max);
  for (int i = 0; i < n; ++i) {
    point[i].made = con[i];
    point[i].code = -1;
    impact_points(s, con + i, point[i].x);
  }
  return n;
}

// The face of a shape whose normal is most nearly opposite to n.
SN_LOCAL int impact_face(const SnConvex *b, const sn_real *n) {
  const int faces = b->type == SN_GEOM_BOX ? 6 : (b->type == SN_GEOM_MESH ? b->npoly : 2);
  sn_real least = 2, normal[3];
  int best = 0;
  for (int i = 0; i < faces; ++i) {
    sn_face_normal(b, i, normal);
    if (!(sn_dot3(normal, n) < least)) continue;
    least = sn_dot3(normal, n);
    best = i;
  }
  return best;
}

SN_FUNC bool sn_swept_has_line(const SnModel *m, const SnSwept *s, const sn_real *n) {
  const int type = m->geom_type[s->pair.geom[1]];
  sn_real axis[3];
  if (type != SN_GEOM_CAPSULE && type != SN_GEOM_CYLINDER) return false;
  sn_shape_axis(axis, s->geom[1].mat);
  return sn_abs(sn_dot3(axis, n)) < SN_MULTI_EDGE;
}

// How far from the axis of a capsule, against the normal, and along it the line through the nearest point of the
// inflated capsule ends.
SN_LOCAL void impact_capsule_end(const SnSwept *s, const sn_real *n, const sn_real *axis, sn_real *x) {
  const SnSweptGeom *g = s->geom + 1;
  const sn_real radius = g->start.size[0];
  sn_addtoscl3(x, n, -radius);
  sn_addtoscl3(x, axis, sn_dot3(axis, n) * (radius + SN_R(0.5) * s->reach));
}

// The ends of the line of a capsule or a cylinder that lies along a plane; of a cylinder the lower one first.
SN_LOCAL int impact_line(const SnModel *m, const SnSwept *s, const sn_real *n, SnSweptPoint *point) {
  const SnSweptGeom *g = s->geom + 1;
  const bool capsule = m->geom_type[g->start.geom] == SN_GEOM_CAPSULE;
  sn_real axis[3], out[3];
  sn_shape_axis(axis, g->mat);
  const sn_real lean = sn_dot3(axis, n), first = capsule || lean >= 0 ? SN_R(-1.0) : SN_R(1.0);
  sn_addscl3(out, n, axis, -lean);
  sn_normalize3(out);
  for (int i = 0; i < 2; ++i) {
    sn_real *x = point[i].x[1];
    const sn_real end = i == 0 ? first : -first;
    point[i].code = end > 0;
    sn_addscl3(x, g->pos, axis, end * g->start.size[1]);
    if (capsule)
      impact_capsule_end(s, n, axis, x);
    else
      sn_addtoscl3(x, out, -g->start.size[0]);
  }
  return 2;
}

// The corners of the face of a box, a mesh or a cylinder that looks at a plane through `origin`, as far as they are
// within reach of it.
SN_LOCAL int impact_corners(const SnSwept *s, const SnConvex *b, const sn_real *n, SnSweptPoint *point) {
  SnClipCorner corner[SN_POLY_MAX];
  SnPatch patch;
  sn_real d[3];
  int count = 0, pick[SN_SPEC_POINTS] = {0, 1, 2, 3};
  sn_patch_face(&patch, b, impact_face(b, n));
  for (int i = 0; i < patch.n && count < SN_POLY_MAX; ++i) {
    sn_patch_corner(&patch, i, corner[count].x);
    sn_sub3(d, corner[count].x, s->geom[0].pos);
    if (sn_dot3(d, n) > s->reach) continue;
    corner[count++].side = (short)i;
  }
  if (count > SN_SPEC_POINTS) sn_largest_quad(corner, count, pick);
  count = sn_mini(count, SN_SPEC_POINTS);
  for (int i = 0; i < count; ++i) {
    point[i].code = corner[pick[i]].side;
    sn_copy3(point[i].x[1], corner[pick[i]].x);
  }
  return count;
}

SN_LOCAL int impact_plane(const SnModel *m, const SnSwept *s, SnSweptPoint *point) {
  const SnShape b = sn_swept_shape(s->geom + 1);
  const int type = m->geom_type[b.geom];
  SnConvex shape;
  sn_real n[3], d[3];
  int count = 0;
  sn_shape_axis(n, s->geom[0].mat);
  sn_convex_init(&shape, m, &b, 0);
  if (sn_swept_has_line(m, s, n)) {
    count = impact_line(m, s, n, point);
  } else if (type == SN_GEOM_BOX || type == SN_GEOM_CYLINDER || (type == SN_GEOM_MESH && shape.npoly > 0)) {
    count = impact_corners(s, &shape, n, point);
  }
  if (count == 0) {
    if (!sn_swept_nearest(m, s, &point[0].made)) return 0;
    point[0].code = -1;
    sn_addscl3(point[0].x[1], point[0].made.pos, n, SN_R(0.5) * point[0].made.dist);
    count = 1;
  }
  for (int i = 0; i < count; ++i) {
    sn_sub3(d, point[i].x[1], s->geom[0].pos);
    sn_addscl3(point[i].x[0], point[i].x[1], n, -sn_dot3(d, n));
  }
  return count;
}

SN_FUNC int sn_swept_points(const SnModel *m, SnSwept *s, SnSweptPoint point[SN_SPEC_POINTS]) {
  for (int side = 0; side < 2; ++side) sn_swept_place(s->geom + side, s->state[s->last].t);
  return s->collider == SN_COLLIDER_CONVEX ? impact_convex(m, s, point) : impact_plane(m, s, point);
}

// True when a geom stands in the way of a point of the geom that moves farther, on side `side`.
SN_LOCAL bool impact_is_hidden(const SnModel *m, const SnWorld *w, const SnSwept *s, int side, const sn_real *from,
                               const sn_real *to) {
  const int mover = s->pair.geom[side], other = s->pair.geom[1 - side];
  const int weld = m->body_weldid[m->geom_bodyid[other]];
  sn_real along[3];
  sn_sub3(along, to, from);
  const sn_real length = sn_normalize3(along);
  for (int k = 0; length > 0 && k < m->ncpair; ++k) {
    const int a = m->cpair_geom[2 * k], b = m->cpair_geom[2 * k + 1], g = a == mover ? b : a;
    if ((a != mover && b != mover) || g == other || m->geom_type[g] == SN_GEOM_HFIELD) continue;
    if (weld != 0 && m->body_weldid[m->geom_bodyid[g]] == weld) continue;
    const sn_real endless[3] = {0, 0, 0};
    const SnRayShape shape = {m->geom_type[g], m->geom_dataid[g], w->geom_xpos + 3 * g, w->geom_xmat + 9 * g,
                              m->geom_type[g] == SN_GEOM_PLANE ? endless : m->geom_size + 3 * g};
    const sn_real x = sn_ray(m, &shape, from, along, NULL);
    if (!(x >= 0 && x < length)) continue;
    SnContact con[SN_COLLIDE_SLOTS];
    const int n = sn_collide_pair(m, w, k, con);
    bool touches = false;
    for (int i = 0; i < n; ++i) touches = touches || con[i].dist < m->conparam[SN_NCONPARAM * m->cpair_param[k]];
    if (!touches) return true;
  }
  return false;
}

// The distance of all contacts of a pair.
SN_LOCAL sn_real impact_dist(const SnModel *m, const SnWorld *w, const SnSwept *s) {
  sn_real k, b;
  sn_swept_spring(m, w, s, &k, &b);
  if (k < SN_MINVAL) return s->margin - m->conparam[SN_NCONPARAM * s->pair.param + 12];
  return s->margin - (1 - s->t - b) / k * s->speed;
}

SN_FUNC int sn_speculate(const SnModel *m, const SnWorld *w, int pair, SnContact *con, int n) {
  SnSwept s;
  SnSweptPoint point[SN_SPEC_POINTS];
  const sn_real margin = m->conparam[SN_NCONPARAM * sn_pair_info(m, pair).param];
  for (int i = 0; i < n; ++i)
    if (con[i].dist < margin) return n;
  if (!sn_speculate_is_near(m, w, pair)) return n;
  sn_swept_begin(&s, m, w, pair);
  if (!sn_swept_impact(m, &s)) return n;
  const int found = sn_swept_points(m, &s, point), side = s.geom[1].travel > s.geom[0].travel;
  const sn_real dist = impact_dist(m, w, &s), share = s.geom[0].travel / (s.geom[0].travel + s.geom[1].travel);
  int seen = 0;
  for (int i = 0; i < found; ++i) {
    sn_real x[2][3];
    for (int g = 0; g < 2; ++g) sn_swept_back(s.geom + g, point[i].x[g], x[g]);
    if (impact_is_hidden(m, w, &s, side, x[side], point[i].x[side])) continue;
    SnContact *to = con + seen++;
    to->dist = dist;
    for (int e = 0; e < 3; ++e) to->pos[e] = share * x[0][e] + (1 - share) * x[1][e];
    sn_copy3(to->frame, s.normal);
    sn_zero(to->frame + 3, 3);
    to->feature = SN_FEATURE_IMPACT + i;
    for (int e = 0; e < 6; ++e) to->corner[e] = -1;
  }
  return seen > 0 ? seen : n;
}
#endif
