// The distance of two geoms, whatever the model's filters of contacts say, and its derivatives.
//
// Values. What finds the nearest points of contacts at a distance (CFD) finds them here: the closed forms of contacts,
// of which the nearest one counts; ellipsoid_distance.c; GJK and EPA, sharpened by Newton's method. A depth is the
// least displacement that parts the geoms. So is it in MuJoCo's mj_geomDistance, but for two things: its convex pairs
// are good to what ccd_tolerance and ccd_iterations allow (at their defaults 1e-4 m and more where curved shapes
// overlap), ours to rounding; and of a capsule whose axis enters a box it gives the depth of a contact, which may be
// any less. Of a height field the nearest of its prisms counts, or the deepest. Polyhedra within 1e-8 m of touching
// have a distance good to 3e-8 m, and one of the normals that part them. Geoms that overlap deeply, with centres or
// axes that coincide, get a displacement that parts them but not always the least one: EPA has no direction to begin
// with there (as in MuJoCo), and closed forms take a fixed one.
//
// Derivatives. A collider gives dist d, midpoint p and normal n of a contact; the nearest points are
//
//   from = p - n d / 2,    to = p + n d / 2,
//
// so that bars of these four become those of a contact,
//
//   p_bar = from_bar + to_bar,    e = to_bar - from_bar,    d_bar += n'e / 2,    n_bar += e d / 2,
//
// and its adjoint gives torque and force on both geoms: the derivative with respect to a small turn of a geom about its
// centre and to a displacement. Where geoms are given in the other order of their types, the first and the second
// change places and n changes its sign.
//
// By qpos. A geom moves with its body: dof k turns it by w_k and displaces its centre x by v_k + w_k x (x - c), with
// (w_k, v_k) = cdof about c. Torque and force on it give
//
//   w_k'(torque + (x - c) x force) + v_k'force.
//
// By sizes. A search depends on few numbers: their derivatives are its central differences, as those of contacts
// (collide.c). Meshes, height fields and planes have no sizes that count.
//
// Kinks. Where two choices are equally near, what is given is the derivative of the one that was found: of a point in
// the middle of a box the face that made the contact, of parallel edges and faces the point that was found carried with
// the geoms (collide_convex.c, surface.c: a straight direction of the first shape turns the normal), of coinciding
// centres a fixed normal (collide_primitive.c). All of them are finite.
#include <math.h>

#include "physics/base/vec.h"
#include "physics/collision/collide_private.h"
#include "physics/collision/collision.h"

// The geoms in the order of their types. Returns true when that is not the caller's.
SN_LOCAL bool dist_order(const SnModel *m, const SnPlacedGeom *g1, const SnPlacedGeom *g2, SnShape *a, SnShape *b) {
  const bool swap = m->geom_type[g1->geom] > m->geom_type[g2->geom];
  const SnPlacedGeom *first = swap ? g2 : g1, *second = swap ? g1 : g2;
  const SnShape one = {first->pos, first->mat, m->geom_size + 3 * first->geom, first->geom};
  const SnShape two = {second->pos, second->mat, m->geom_size + 3 * second->geom, second->geom};
  *a = one;
  *b = two;
  return swap;
}

SN_FUNC SnCollider sn_geoms_collider(const SnModel *m, int g1, int g2) {
  const int t1 = m->geom_type[g1], t2 = m->geom_type[g2];
  return (SnCollider)m->type_collider[SN_GEOM_TYPES * sn_mini(t1, t2) + sn_maxi(t1, t2)];
}

// What finds the nearest points of two types. A capsule's closed form makes contacts of its ends and of edges, which
// are not the depth where its axis is in the box.
SN_LOCAL SnCollider dist_collider(const SnModel *m, int g1, int g2) {
  const SnCollider far = sn_far_collider(sn_geoms_collider(m, g1, g2), m->geom_type[g2]);
  return far == SN_COLLIDER_CAPSULE_BOX ? SN_COLLIDER_CONVEX : far;
}

// True when bounding spheres show the geoms to be farther apart than limit; a plane has none.
SN_LOCAL bool dist_is_far(const SnModel *m, const SnShape *a, const SnShape *b, sn_real limit) {
  sn_real d[3];
  if (m->geom_type[a->geom] == SN_GEOM_PLANE) return false;
  sn_sub3(d, b->pos, a->pos);
  return sn_norm3(d) > m->geom_rbound[a->geom] + m->geom_rbound[b->geom] + sn_max(limit, 0);
}

SN_LOCAL bool dist_ellipsoid(const SnModel *m, const SnShape *a, const SnShape *b, SnContact *con) {
  SnNearest near;
  sn_real mid[3];
  if (!sn_ellipsoid_nearest(m->geom_type[a->geom], a, b, &near)) return false;
  sn_add3(mid, near.x1, near.x2);
  sn_scale3(mid, mid, SN_R(0.5));
  sn_contact_write(con, near.dist, mid, near.normal, 0);
  return true;
}

// Finds the nearest points as a contact, con[0]; con has room for SN_MAXCON_PAIR. Where they are not nearer than limit
// only its dist is of account, which is not either. Returns false where the search fails.
SN_LOCAL bool dist_find(const SnModel *m, const SnShape *a, const SnShape *b, SnCollider collider, sn_real limit,
                        SnContact *con) {
  con->dist = limit;
  if (dist_is_far(m, a, b, limit)) return true;
  if (collider == SN_COLLIDER_ELLIPSOID && dist_ellipsoid(m, a, b, con)) return true;
  if (collider == SN_COLLIDER_ELLIPSOID || collider == SN_COLLIDER_CONVEX)
    return sn_convex_nearest(m, a, b, limit, con);
  if (collider == SN_COLLIDER_HFIELD_FAR) return sn_hfield_nearest(m, a, b, limit, con);
  const int n = sn_collide_shapes(m, a, b, collider, limit, SN_MAXCON_PAIR, con);
  if (n > 0) sn_contact_nearest(con, n);
  return true;
}

SN_FUNC bool sn_geom_has_surface(const SnModel *m, int g) {
  const int type = m->geom_type[g], data = m->geom_dataid[g];
  if (type == SN_GEOM_HFIELD) return data >= 0;
  return type != SN_GEOM_MESH || (data >= 0 && m->mesh_vertnum[data] > 0);
}

SN_FUNC bool sn_geoms_nearest(const SnModel *m, const SnPlacedGeom *g1, const SnPlacedGeom *g2, sn_real limit,
                              SnDistance *r) {
  SnShape a, b;
  SnContact con[SN_MAXCON_PAIR] = {{0}};
  const bool swap = dist_order(m, g1, g2, &a, &b);
  r->within = false;
  r->dist = limit;
  sn_zero(r->from, 3);
  sn_zero(r->to, 3);
  sn_zero(r->normal, 3);
  r->collider = dist_collider(m, a.geom, b.geom);
  limit = sn_min(limit, SN_MAXVAL);
  if (!dist_find(m, &a, &b, r->collider, limit, con)) return false;
  if (con->dist >= limit) return true;
  sn_normalize3(con->frame);
  r->within = true;
  r->contact = *con;
  r->dist = con->dist;
  sn_scale3(r->normal, con->frame, swap ? SN_R(-1.0) : SN_R(1.0));
  sn_addscl3(r->from, con->pos, r->normal, SN_R(-0.5) * con->dist);
  sn_addscl3(r->to, con->pos, r->normal, SN_R(0.5) * con->dist);
  return true;
}

// Bars of the contact of r, whose normal points the other way where the geoms have changed places.
SN_LOCAL SnContactBar dist_contact_bar(const SnDistance *r, const SnDistanceBar *bar, bool swap) {
  SnContactBar contact = {0, {0}, {0}, {0}};
  sn_real spread[3];
  sn_add3(contact.pos, bar->from, bar->to);
  sn_sub3(spread, bar->to, bar->from);
  contact.dist = bar->dist + SN_R(0.5) * sn_dot3(r->normal, spread);
  sn_addscl3(contact.normal, bar->normal, spread, SN_R(0.5) * r->dist);
  if (swap) sn_scale3(contact.normal, contact.normal, -1);
  return contact;
}

SN_FUNC void sn_geom_distance_vjp(const SnModel *m, const SnPlacedGeom *g1, const SnPlacedGeom *g2, const SnDistance *r,
                                  const SnDistanceBar *bar, sn_real *wrench) {
  SnShape a, b;
  sn_real own[12] = {0};
  if (!r->within) return;
  const bool swap = dist_order(m, g1, g2, &a, &b);
  const SnContactBar contact = dist_contact_bar(r, bar, swap);
  sn_collide_shapes_vjp(m, &a, &b, r->collider, 0, &r->contact, &contact, own);
  for (int i = 0; i < 12; ++i) wrench[i] += own[swap ? (i + 6) % 12 : i];
}

// ---- on the host alone ----

#if !defined(__CUDACC__)
static const char *dist_type_name(int type) {
  static const char *const name[] = {
      "plane", "height field", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "signed distance field"};
  return type >= 0 && type < (int)(sizeof name / sizeof name[0]) ? name[type] : "unknown";
}

// Says that two geoms cannot be collided, and why.
static SnCode dist_refuse(const SnModel *m, int g1, int g2, const char *why, SnError *err) {
  return sn_fail(err, SN_ERR_UNSUPPORTED, "distance of geom %d '%s' (%s) and geom %d '%s' (%s): %s", g1,
                 sn_model_name(m, SN_NAME_GEOM, g1), dist_type_name(m->geom_type[g1]), g2,
                 sn_model_name(m, SN_NAME_GEOM, g2), dist_type_name(m->geom_type[g2]), why);
}

// True for a position below 1e10 m and a matrix that is a rotation.
static bool dist_is_pose(const SnPlacedGeom *g) {
  static const sn_real tolerance = sizeof(sn_real) == sizeof(float) ? SN_R(1e-4) : SN_R(1e-6);
  sn_real third[3];
  const sn_real *mat = g->mat;
  sn_cross(third, mat, mat + 3);
  bool good = sn_abs(sn_norm3(mat) - 1) <= tolerance && sn_abs(sn_norm3(mat + 3) - 1) <= tolerance &&
              sn_abs(sn_dot3(mat, mat + 3)) <= tolerance && sn_dist3(third, mat + 6) <= tolerance;
  for (int i = 0; i < 3; ++i) good = good && !sn_is_bad(g->pos[i]);
  return good;
}

static SnCode dist_check(const SnModel *m, const SnPlacedGeom *g1, const SnPlacedGeom *g2, sn_real limit,
                         SnError *err) {
  const SnPlacedGeom *geom[2] = {g1, g2};
  for (int i = 0; i < 2; ++i) {
    const int g = geom[i]->geom;
    if (g < 0 || g >= m->ngeom)
      return sn_fail(err, SN_ERR_ARGUMENT, "distance: geom %d: the model has geoms 0 to %d", g, m->ngeom - 1);
    if (!dist_is_pose(geom[i]))
      return sn_fail(err, SN_ERR_ARGUMENT, "distance: geom %d: position beyond 1e10 m, or no rotation", g);
  }
  if (isnan(limit)) return sn_fail(err, SN_ERR_ARGUMENT, "distance: the limit is not a number");
  if (sn_geoms_collider(m, g1->geom, g2->geom) == SN_COLLIDER_NONE)
    return dist_refuse(m, g1->geom, g2->geom, "the engine has no collider for these types", err);
  for (int i = 0; i < 2; ++i) {
    const int g = geom[i]->geom;
    if (!sn_geom_has_surface(m, g))
      return dist_refuse(m, g1->geom, g2->geom,
                         m->geom_type[g] == SN_GEOM_HFIELD
                             ? "the model was imported without heights that nothing can touch"
                             : "the model was imported without a mesh that nothing can touch",
                         err);
  }
  return SN_OK;
}

SnCode sn_geom_distance(const SnModel *m, const SnPlacedGeom *g1, const SnPlacedGeom *g2, sn_real limit, SnDistance *r,
                        SnError *err) {
  const SnCode code = dist_check(m, g1, g2, limit, err);
  if (code != SN_OK) return code;
  *r = (SnDistance){.within = false};
  if (!sn_geoms_nearest(m, g1, g2, limit, r))
    return sn_fail(err, SN_ERR_STATE, "distance of geoms %d and %d: the search for the nearest points failed", g1->geom,
                   g2->geom);
  return SN_OK;
}

void sn_geom_distance_surrogate_vjp(const SnModel *m, const SnPlacedGeom *g1, const SnPlacedGeom *g2,
                                    const SnDistance *r, const SnDistanceBar *bar, sn_real *wrench) {
  if (!r->within) return;
  const SnShape a = {g1->pos, g1->mat, m->geom_size + 3 * g1->geom, g1->geom};
  const SnShape b = {g2->pos, g2->mat, m->geom_size + 3 * g2->geom, g2->geom};
  SnContact con = r->contact;
  SnContactBar contact = {.dist = bar->dist};
  sn_copy3(con.frame, r->normal);
  sn_copy3(contact.normal, bar->normal);
  sn_collide_surrogate_vjp(&a, &b, &con, &contact, wrench);
  sn_push(wrench, &a, r->from, bar->from);
  sn_push(wrench + 6, &b, r->to, bar->to);
}

// Finds the nearest points of r again with another size of one of its two shapes. Returns whether they are about where
// they were, within `near` [m]; *found counts the searches that found any.
static bool dist_resized(const SnModel *m, SnShape shape[2], int side, const sn_real *size, sn_real near,
                         const SnDistance *r, SnContact *con, int *found) {
  const sn_real *own = shape[side].size;
  shape[side].size = size;
  const bool good = dist_find(m, shape, shape + 1, r->collider, SN_MAXVAL, con);
  shape[side].size = own;
  if (!good || con->dist >= SN_MAXVAL) {
    *con = r->contact;
    return false;
  }
  ++*found;
  sn_normalize3(con->frame);
  return sn_dist3(con->pos, r->contact.pos) <= near;
}

void sn_geom_distance_size_vjp(const SnModel *m, const SnPlacedGeom *g1, const SnPlacedGeom *g2, const SnDistance *r,
                               const SnDistanceBar *bar, sn_real *size_bar) {
  SnShape shape[2];
  if (!r->within) return;
  const bool swap = dist_order(m, g1, g2, shape, shape + 1);
  const SnContactBar contact = dist_contact_bar(r, bar, swap);
  for (int k = 0; k < 6; ++k) {
    const int side = k / 3;
    const sn_real *size = shape[side].size, h = SN_DIFFERENCE * size[k % 3], near = SN_R(0.01) * size[k % 3];
    SnContact end[2][SN_MAXCON_PAIR];
    bool steady = true;
    int found = 0;
    const int type = m->geom_type[shape[side].geom];
    if (h == 0 || type == SN_GEOM_PLANE || type == SN_GEOM_MESH || type == SN_GEOM_HFIELD) continue;
    for (int e = 0; e < 2; ++e) {
      sn_real moved[3];
      sn_copy3(moved, size);
      moved[k % 3] += e == 0 ? h : -h;
      steady = dist_resized(m, shape, side, moved, near, r, end[e], &found) && steady;
    }
    sn_real sum = contact.dist * (end[0]->dist - end[1]->dist);
    for (int e = 0; e < 3 && steady; ++e)
      sum += contact.pos[e] * (end[0]->pos[e] - end[1]->pos[e]) +
             contact.normal[e] * (end[0]->frame[e] - end[1]->frame[e]);
    if (found > 0) size_bar[swap ? (k + 3) % 6 : k] += sum / ((sn_real)found * h);
  }
}

void sn_geom_distance_jacobian(const SnModel *m, const SnPlacedGeom *g1, const SnPlacedGeom *g2, const SnDistance *r,
                               sn_real *jacobian) {
  for (int row = 0; row < SN_DISTANCE_ROWS; ++row) {
    SnDistanceBar bar = {0};
    sn_real *part[4] = {&bar.dist, bar.from, bar.to, bar.normal};
    part[(row + 2) / 3][row == 0 ? 0 : (row - 1) % 3] = 1;
    sn_zero(jacobian + 12 * row, 12);
    sn_geom_distance_vjp(m, g1, g2, r, &bar, jacobian + 12 * row);
  }
}

void sn_geom_distance_by_qpos(const SnModel *m, const SnWorld *w, const SnPlacedGeom *g1, const SnPlacedGeom *g2,
                              const sn_real *wrench, sn_real *qpos_bar) {
  const SnPlacedGeom *geom[2] = {g1, g2};
  for (int side = 0; side < 2; ++side) {
    const int body = m->geom_bodyid[geom[side]->geom];
    const sn_real *force = wrench + 6 * side + 3;
    sn_real arm[3], torque[3];
    sn_sub3(arm, geom[side]->pos, sn_twist_origin(m, w, body));
    sn_cross(torque, arm, force);
    sn_addto3(torque, wrench + 6 * side);
    for (int k = m->chain_adr[body]; k < m->chain_adr[body + 1]; ++k) {
      const int dof = m->chain_dof[k];
      const sn_real *axis = w->cdof + 6 * dof;
      qpos_bar[dof] += sn_dot3(axis, torque) + sn_dot3(axis + 3, force);
    }
  }
}
#endif
