// The part of a convex shape that touches: corner, edge, face, or a patch of curved surface.
//
// At the nearest point x with outward normal n every constraint of a shape is either active or slack: a coordinate of
// a box is at its limit or the normal has no component along it; a point of a capsule's segment is an end or the
// normal is square to the segment; a corner carries a part of x, or the normal leans away from it. One of the two
// numbers is zero up to rounding (or up to the noise of GJK and EPA on curved shapes, 1e-5), so the larger one, each
// relative to its scale, says which it is: no tolerance is needed. Where both are zero the feature of fewer
// dimensions is taken.
//
// Curvature is that of the support function h(n) = max n'x over the shape: its gradient is the point of the surface
// with normal n, its Hessian S on the tangent plane has the principal radii of curvature (Schneider, "Convex Bodies:
// The Brunn-Minkowski Theory", section 2.5). Sphere r I; ellipsoid h = sqrt(n'A n), S = (A - A n n'A / h^2) / h; rim
// of a cylinder h = r |n_perp| + ..., S = r / |n_perp| along the rim and 0 across; a corner 0. Along a straight line S
// is infinite: these directions are listed apart. Radii of a sphere around a core add.
#include "physics/collision/surface_private.h"

#include "physics/base/vec.h"
#include "physics/collision/convex_private.h"

// Column k of the shape's frame.
SN_LOCAL void surface_axis(const SnConvex *s, int k, sn_real *r) {
  sn_set3(r, s->mat[k], s->mat[3 + k], s->mat[6 + k]);
}

// at = the point `local` of the shape's frame.
SN_LOCAL void surface_place(SnSurface *t, const sn_real *local) {
  sn_mulmatvec3(t->at, t->s->mat, local);
  sn_addto3(t->at, t->s->pos);
}

// True when what is active is the limit, `gap` away, and not the freedom to move along: `lean` is the normal's
// component.
SN_LOCAL bool surface_at_limit(sn_real gap, sn_real scale, sn_real lean) { return !(gap > lean * scale); }

SN_LOCAL void surface_kind(SnSurface *t, int nflat) {
  t->kind = nflat == 0 ? SN_SURFACE_POINT : (nflat == 1 ? SN_SURFACE_LINE : SN_SURFACE_PLANE);
  t->nflat = nflat;
}

// Segment of half length size[1] along z, with a radius.
SN_LOCAL void surface_capsule(SnSurface *t, const sn_real *x, const sn_real *n) {
  const SnConvex *s = t->s;
  const sn_real z = x[2] - s->size[0] * n[2], half = s->size[1];
  sn_real local[3] = {0, 0, 0};
  t->radius = s->size[0];
  if (surface_at_limit(half - sn_abs(z), half + t->radius, z > 0 ? n[2] : -n[2])) {
    local[2] = z > 0 ? half : -half;
    surface_kind(t, 0);
  } else {
    surface_axis(s, 2, t->flat);
    surface_kind(t, 1);
  }
  surface_place(t, local);
}

SN_LOCAL void surface_cylinder(SnSurface *t, const sn_real *x, const sn_real *n) {
  const SnConvex *s = t->s;
  const sn_real out = sn_sqrt(x[0] * x[0] + x[1] * x[1]), lean = sn_sqrt(n[0] * n[0] + n[1] * n[1]);
  const bool side = surface_at_limit(s->size[0] - out, s->size[0], lean);
  const bool cap = surface_at_limit(s->size[1] - sn_abs(x[2]), s->size[1], x[2] > 0 ? n[2] : -n[2]);
  sn_real local[3] = {0, 0, 0};
  if (cap || !side) local[2] = x[2] > 0 ? s->size[1] : -s->size[1];
  if (side) t->radius = s->size[0];
  if (!side) {
    surface_axis(s, 0, t->flat);
    surface_axis(s, 1, t->flat + 3);
    surface_kind(t, 2);
  } else {
    surface_axis(s, 2, t->flat);
    surface_kind(t, 1);
    if (cap) {
      t->kind = SN_SURFACE_RIM;
      t->nflat = 0;
    }
  }
  surface_place(t, local);
}

SN_LOCAL void surface_box(SnSurface *t, const sn_real *x, const sn_real *n) {
  const SnConvex *s = t->s;
  sn_real local[3] = {0, 0, 0};
  int nflat = 0;
  for (int k = 0; k < 3; ++k) {
    // a third flat direction would leave no face
    if (nflat == 2 || surface_at_limit(s->size[k] - sn_abs(x[k]), s->size[k], x[k] > 0 ? n[k] : -n[k]))
      local[k] = x[k] > 0 ? s->size[k] : -s->size[k];
    else
      surface_axis(s, k, t->flat + 3 * nflat++);
  }
  surface_kind(t, nflat);
  surface_place(t, local);
}

// Of three corners: false, and the one that does not carry x in place 2, when the normal leans away from it.
SN_LOCAL bool surface_triangle(const SnConvex *s, int *corner, const sn_real *x, const sn_real *n) {
  const sn_real *v[3] = {s->vert + 3 * corner[0], s->vert + 3 * corner[1], s->vert + 3 * corner[2]};
  sn_real a[3], b[3], face[3], r[3], c[3], weight[3];
  sn_sub3(a, v[1], v[0]);
  sn_sub3(b, v[2], v[0]);
  sn_cross(face, a, b);
  const sn_real area2 = sn_dot3(face, face);
  for (int i = 0; i < 3; ++i) {
    sn_sub3(a, v[(i + 1) % 3], x);
    sn_sub3(b, v[(i + 2) % 3], x);
    sn_cross(r, a, b);
    weight[i] = area2 > 0 ? sn_dot3(r, face) / area2 : 0;
  }
  int least = weight[1] < weight[0] ? 1 : 0;
  if (weight[2] < weight[least]) least = 2;
  sn_cross(c, n, face);
  if (area2 > 0 && weight[least] * sn_sqrt(area2) > sn_norm3(c)) return true;
  const int drop = corner[least];
  corner[least] = corner[2];
  corner[2] = drop;
  return false;
}

// True for a diagonal of an upright face of a prism: corners of both ends that are not above each other.
SN_LOCAL bool surface_prism_diagonal(const SnConvex *s, int v1, int v2) {
  return s->type == SN_GEOM_HFIELD && v1 / 3 != v2 / 3 && v1 % 3 != v2 % 3;
}

// The face that has the line of two corners inside it, a diagonal; -1: the line is an edge, of two faces.
SN_LOCAL int surface_diagonal(const SnConvex *s, int v1, int v2) {
  int face = -1;
  for (int i = 0; s->npoly && i < s->mapnum[v1]; ++i)
    for (int j = 0; j < s->mapnum[v2]; ++j)
      if (s->map[s->mapadr[v1] + i] == s->map[s->mapadr[v2] + j]) {
        if (face >= 0) return -1;
        face = s->map[s->mapadr[v1] + i];
      }
  return face;
}

SN_LOCAL void surface_mesh(SnSurface *t, const int *corner, const sn_real *x, const sn_real *n) {
  const SnConvex *s = t->s;
  int id[3] = {corner[0], corner[1], corner[2]}, count = 1;
  if (id[0] < 0) {  // nobody said: the farthest one
    SnConvex search = *s;
    sn_real ignored[3], dir[3];
    sn_mulmatvec3(dir, s->mat, n);
    sn_support(&search, dir, ignored);
    id[0] = search.vertex;
  }
  for (int i = 1; i < 3; ++i) {  // those that differ, first
    bool known = id[i] < 0;
    for (int k = 0; k < count; ++k) known = known || id[i] == id[k];
    if (!known) id[count++] = id[i];
  }
  if (count == 3 && !surface_triangle(s, id, x, n)) count = 2;
  const sn_real *v0 = s->vert + 3 * id[0];
  sn_real edge[6], r[3];
  for (int k = 1; k < count; ++k) sn_sub3(edge + 3 * (k - 1), s->vert + 3 * id[k], v0);
  if (count == 2) {
    sn_sub3(r, x, v0);
    const sn_real length2 = sn_dot3(edge, edge), along = sn_dot3(r, edge) / (length2 > 0 ? length2 : 1);
    const sn_real lean = sn_abs(sn_dot3(n, edge));
    if (!(sn_min(along, 1 - along) * sn_sqrt(length2) > lean)) {
      if (along > SN_R(0.5)) id[0] = id[1];
      count = 1;
    } else {
      const int face = surface_diagonal(s, id[0], id[1]);
      if (surface_prism_diagonal(s, id[0], id[1])) {
        sn_set3(edge + 3, 0, 0, 1);
        count = 3;
      } else if (face >= 0) {
        sn_cross(edge + 3, s->polynormal + 3 * face, edge);
        count = 3;
        t->diagonal = true;
      }
    }
  }
  for (int k = 0; k + 1 < count; ++k) {
    sn_mulmatvec3(t->flat + 3 * k, s->mat, edge + 3 * k);
    sn_normalize3(t->flat + 3 * k);
  }
  surface_kind(t, count - 1);
  surface_place(t, s->vert + 3 * id[0]);
}

SN_FUNC void sn_surface_init(SnSurface *t, const SnConvex *s, const int *corner, const sn_real *x, const sn_real *n) {
  sn_real r[3], lx[3], ln[3];
  sn_sub3(r, x, s->pos);
  sn_mulmattvec3(lx, s->mat, r);
  sn_mulmattvec3(ln, s->mat, n);
  t->s = s;
  t->radius = 0;
  t->diagonal = false;
  sn_copy3(t->at, s->pos);
  surface_kind(t, 0);
  switch (s->type) {
    case SN_GEOM_CAPSULE:
      surface_capsule(t, lx, ln);
      break;
    case SN_GEOM_ELLIPSOID:
      t->kind = SN_SURFACE_ELLIPSOID;
      break;
    case SN_GEOM_CYLINDER:
      surface_cylinder(t, lx, ln);
      break;
    case SN_GEOM_BOX:
      surface_box(t, lx, ln);
      break;
    case SN_GEOM_MESH:
    case SN_GEOM_HFIELD:
      surface_mesh(t, corner, lx, ln);
      break;
    default:
      t->radius = s->size[0];
      break;
  }
}

SN_FUNC void sn_surface_cross(SnSurface *t, const SnSurface *other) {
  const bool line = other->nflat == 1 || (other->nflat == 2 && other->diagonal);
  sn_real across[3];
  if (!t->diagonal || !line) return;
  sn_cross(across, t->flat, other->flat);
  if (sn_norm3(across) > SN_STEADY_SINE) surface_kind(t, 1);
}

SN_LOCAL void surface_ellipsoid(const SnSurface *t, const sn_real *n, const sn_real *tangent, SnSurfacePoint *r) {
  const sn_real *mat = t->s->mat, *size = t->s->size;
  sn_real ln[3], l1[3], l2[3], g[3];
  sn_mulmattvec3(ln, mat, n);
  sn_mulmattvec3(l1, mat, tangent);
  sn_mulmattvec3(l2, mat, tangent + 3);
  for (int i = 0; i < 3; ++i) {
    ln[i] *= size[i];
    l1[i] *= size[i];
    l2[i] *= size[i];
  }
  const sn_real h = sn_norm3(ln), inv = 1 / sn_max(h, SN_MINVAL), g1 = sn_dot3(l1, ln) * inv,
                g2 = sn_dot3(l2, ln) * inv;
  r->s[0] = (sn_dot3(l1, l1) - g1 * g1) * inv;
  r->s[1] = (sn_dot3(l1, l2) - g1 * g2) * inv;
  r->s[2] = (sn_dot3(l2, l2) - g2 * g2) * inv;
  for (int i = 0; i < 3; ++i) g[i] = size[i] * ln[i] * inv;
  sn_mulmatvec3(r->x, mat, g);
  sn_addto3(r->x, t->at);
}

// r->s = radius along the unit vector of the tangent plane that is square to both the normal and `axis`, 0 across.
SN_LOCAL void surface_across(const sn_real *n, const sn_real *axis, const sn_real *tangent, sn_real radius,
                             SnSurfacePoint *r) {
  sn_real u[3];
  sn_cross(u, axis, n);
  sn_normalize3(u);
  const sn_real u1 = sn_dot3(u, tangent), u2 = sn_dot3(u, tangent + 3);
  r->s[0] = radius * u1 * u1;
  r->s[1] = radius * u1 * u2;
  r->s[2] = radius * u2 * u2;
}

SN_FUNC void sn_surface_point(const SnSurface *t, const sn_real *n, const sn_real *tangent, SnSurfacePoint *r) {
  sn_copy3(r->x, t->at);
  r->s[0] = r->s[2] = t->radius;
  r->s[1] = 0;
  switch (t->kind) {
    case SN_SURFACE_ELLIPSOID:
      surface_ellipsoid(t, n, tangent, r);
      return;
    case SN_SURFACE_RIM: {
      sn_real u[3];
      sn_addscl3(u, n, t->flat, -sn_dot3(n, t->flat));
      const sn_real out = sn_normalize3(u);
      sn_addtoscl3(r->x, u, t->radius);
      surface_across(n, t->flat, tangent, t->radius / sn_max(out, SN_R(1e-6)), r);
      return;
    }
    case SN_SURFACE_LINE:
      surface_across(n, t->flat, tangent, t->radius, r);
      break;
    default:
      break;
  }
  sn_addtoscl3(r->x, n, t->radius);
}
