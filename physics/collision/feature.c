// Faces and edges of convex shapes at the features that a simplex names. Which corner of a polygon comes first follows
// MuJoCo 4.0.0's single-shot pipeline: it decides the order of contacts.
#include "physics/collision/feature_private.h"

#include "physics/base/vec.h"
#include "physics/collision/convex_private.h"

enum { FEATURE_CAP_SIDES = 16 };

// From the shape's frame to the world's.
SN_LOCAL void feature_world(const SnConvex *s, const sn_real *local, sn_real *r) {
  sn_mulmatvec3(r, s->mat, local);
  sn_addto3(r, s->pos);
}

SN_FUNC void sn_feature_init(SnFeature *f, const SnConvex *s, const SnCcd *c, bool first) {
  const int pick[3] = {0, c->n >= 2 ? 1 : 0, c->n > 2 ? 2 : 0};
  f->s = s;
  for (int i = 0; i < 3; ++i) {
    const SnCcdVertex *v = c->simplex + pick[i];
    f->id[i] = first ? v->i1 : v->i2;
    sn_copy3(f->v + 3 * i, first ? v->v1 : v->v2);
  }
  if (f->id[0] == f->id[1]) {
    f->dim = f->id[0] == f->id[2] ? 1 : 2;
    f->id[1] = f->id[2];
    sn_copy3(f->v + 3, f->v + 6);
  } else {
    f->dim = f->id[2] == f->id[0] || f->id[2] == f->id[1] ? 2 : 3;
  }
}

// Face of a box whose outward normal is within 5 degrees of dir, -1: none. Faces: +x -x +y -y +z -z.
SN_LOCAL int feature_box_face_along(const SnConvex *s, const sn_real *dir) {
  sn_real d[3];
  sn_mulmattvec3(d, s->mat, dir);
  sn_scale3(d, d, 1 / sn_norm3(d));
  for (int i = 0; i < 6; ++i)
    if ((i & 1 ? -d[i / 2] : d[i / 2]) > SN_MULTI_FACE) return i;
  return -1;
}

// Faces of a box that its corners have in common; where that is none, or (three corners) ambiguous, the one along dir.
SN_LOCAL void feature_box_faces(SnFeature *f, const sn_real *dir) {
  f->face = f->own;
  f->nface = 0;
  for (int k = 0; k < 3; ++k) {
    int up = 0;
    for (int i = 0; i < f->dim; ++i) up += (f->id[i] >> k) & 1;
    if (up == f->dim)
      f->own[f->nface++] = 2 * k;
    else if (up == 0)
      f->own[f->nface++] = 2 * k + 1;
  }
  if (f->dim == 1 || f->nface == 1 || (f->dim == 2 && f->nface > 0)) return;
  f->own[0] = feature_box_face_along(f->s, dir);
  f->nface = f->own[0] >= 0;
}

// Polygons of a mesh that its corners have in common: all of one corner, up to two of an edge, one of three corners.
SN_LOCAL void feature_mesh_faces(SnFeature *f) {
  const SnConvex *s = f->s;
  const int *map1 = s->map + s->mapadr[f->id[0]], n1 = s->mapnum[f->id[0]];
  f->face = map1;
  f->nface = n1;
  if (f->dim == 1) return;
  f->face = f->own;
  f->nface = 0;
  const int *map2 = s->map + s->mapadr[f->id[1]], n2 = s->mapnum[f->id[1]];
  for (int i = 0; i < n1 && f->nface < 2; ++i)
    for (int j = 0; j < n2 && f->nface < 2; ++j)
      if (map1[i] == map2[j]) f->own[f->nface++] = map1[i];
  if (f->dim == 2) return;
  const int *map3 = s->map + s->mapadr[f->id[2]], n3 = s->mapnum[f->id[2]], n12 = f->nface;
  f->nface = 0;
  for (int i = 0; i < n12; ++i)
    for (int j = 0; j < n3; ++j)
      if (f->own[i] == map3[j]) {
        f->own[0] = f->own[i];
        f->nface = 1;
        return;
      }
}

SN_FUNC void sn_feature_faces(SnFeature *f, const sn_real *dir) {
  f->nface = 0;
  f->face = f->own;
  if (f->s->type == SN_GEOM_BOX) {
    feature_box_faces(f, dir);
  } else if (f->s->type == SN_GEOM_MESH) {
    feature_mesh_faces(f);
  } else if (f->s->type == SN_GEOM_CYLINDER && f->dim == 1) {
    f->own[0] = f->id[0];
    f->nface = 1;
  }
}

SN_FUNC void sn_face_normal(const SnConvex *s, int face, sn_real *n) {
  const sn_real *mat = s->mat;
  if (s->type == SN_GEOM_MESH) {
    sn_mulmatvec3(n, mat, s->polynormal + 3 * face);
    return;
  }
  const int axis = s->type == SN_GEOM_BOX ? face / 2 : 2;
  const sn_real sign = face & 1 ? SN_R(-1.0) : SN_R(1.0);
  for (int i = 0; i < 3; ++i) n[i] = sign * mat[3 * i + axis];
}

SN_FUNC int sn_feature_edge_count(const SnFeature *f) {
  switch (f->s->type) {
    case SN_GEOM_CAPSULE:
    case SN_GEOM_CYLINDER:
      return 1;
    case SN_GEOM_BOX:
      return f->dim == 2 ? 1 : 3;
    case SN_GEOM_MESH:
      return f->dim == 2 ? 1 : f->s->mapnum[f->id[0]];
    default:
      return 0;
  }
}

SN_FUNC void sn_feature_edge_start(SnFeature *f, const sn_real *x) {
  const SnConvex *s = f->s;
  const sn_real *mat = s->mat, *size = s->size;
  sn_real r[3], local[3];
  if (s->type == SN_GEOM_CAPSULE) {
    // the line of the mantle through x, from end to end
    const sn_real axis[3] = {mat[2], mat[5], mat[8]};
    sn_sub3(r, x, s->pos);
    const sn_real at = sn_dot3(r, axis);
    sn_addscl3(f->v, x, axis, -at - size[1]);
    sn_addscl3(f->v + 3, x, axis, size[1] - at);
  } else if (s->type == SN_GEOM_CYLINDER) {
    const sn_real down = f->id[0] == 0 ? SN_R(-1.0) : SN_R(1.0);
    if (s->margin > 0) {
      sn_sub3(r, f->v, s->pos);
      sn_mulmattvec3(local, mat, r);
      const sn_real n2 = local[0] * local[0] + local[1] * local[1];
      const sn_real scale = n2 >= SN_CCD_MIN2 ? size[0] / sn_sqrt(n2) : 0;
      sn_set3(local, scale * local[0], scale * local[1], -down * size[1]);
      feature_world(s, local, f->v);
    }
    for (int i = 0; i < 3; ++i) f->v[3 + i] = f->v[i] + 2 * size[1] * (down * mat[3 * i + 2]);
  } else {
    for (int k = 0; k < (f->dim == 2 ? 2 : 1); ++k) {
      if (s->type == SN_GEOM_MESH)
        sn_copy3(local, s->vert + 3 * f->id[k]);
      else
        for (int i = 0; i < 3; ++i) local[i] = (f->id[k] >> i) & 1 ? size[i] : -size[i];
      feature_world(s, local, f->v + 3 * k);
    }
  }
}

SN_FUNC bool sn_feature_edge(const SnFeature *f, int k, sn_real *end, int *id, sn_real *dir) {
  const SnConvex *s = f->s;
  sn_real local[3];
  const bool box = s->type == SN_GEOM_BOX, mesh = s->type == SN_GEOM_MESH;
  *id = f->id[1];
  if (!box && !mesh) {
    const sn_real sign = s->type == SN_GEOM_CYLINDER && f->id[0] == 0 ? SN_R(-1.0) : SN_R(1.0);
    sn_copy3(end, f->v + 3);
    for (int i = 0; i < 3; ++i) dir[i] = sign * s->mat[3 * i + 2];
    return true;
  }
  if (f->dim == 2) {
    sn_copy3(end, f->v + 3);
  } else if (box) {
    *id = f->id[0] ^ (1 << k);
    for (int i = 0; i < 3; ++i) local[i] = (*id >> i) & 1 ? s->size[i] : -s->size[i];
    feature_world(s, local, end);
  } else {
    // the corner before this one in polygon k
    const int face = s->map[s->mapadr[f->id[0]] + k], n = s->polynum[face], *corner = s->polyvert + s->polyadr[face];
    int at = 0;
    while (at < n && corner[at] != f->id[0]) ++at;
    if (at == n) return false;
    *id = corner[at == 0 ? n - 1 : at - 1];
    sn_copy3(local, s->vert + 3 * *id);
    feature_world(s, local, end);
  }
  sn_sub3(dir, end, f->v);
  sn_normalize3(dir);
  return true;
}

SN_FUNC void sn_patch_corner(const SnPatch *p, int k, sn_real *r) {
  static const signed char box[6][4][3] = {
      {{1, 1, 1}, {1, 1, -1}, {1, -1, -1}, {1, -1, 1}}, {{-1, 1, -1}, {-1, 1, 1}, {-1, -1, 1}, {-1, -1, -1}},
      {{-1, 1, -1}, {1, 1, -1}, {1, 1, 1}, {-1, 1, 1}}, {{-1, -1, 1}, {1, -1, 1}, {1, -1, -1}, {-1, -1, -1}},
      {{-1, 1, 1}, {1, 1, 1}, {1, -1, 1}, {-1, -1, 1}}, {{1, 1, -1}, {-1, 1, -1}, {-1, -1, -1}, {1, -1, -1}}};
  static const sn_real cosine[FEATURE_CAP_SIDES] = {
      SN_R(1.0),  SN_R(0.923879532511287),  SN_R(0.707106781186548),  SN_R(0.38268343236509),
      SN_R(0.0),  SN_R(-0.38268343236509),  SN_R(-0.707106781186547), SN_R(-0.923879532511287),
      SN_R(-1.0), SN_R(-0.923879532511287), SN_R(-0.707106781186548), SN_R(-0.38268343236509),
      SN_R(0.0),  SN_R(0.38268343236509),   SN_R(0.707106781186547),  SN_R(0.923879532511287)};
  static const sn_real sine[FEATURE_CAP_SIDES] = {
      SN_R(0.0),  SN_R(0.38268343236509),   SN_R(0.707106781186547),  SN_R(0.923879532511287),
      SN_R(1.0),  SN_R(0.923879532511287),  SN_R(0.707106781186548),  SN_R(0.38268343236509),
      SN_R(0.0),  SN_R(-0.38268343236509),  SN_R(-0.707106781186547), SN_R(-0.923879532511287),
      SN_R(-1.0), SN_R(-0.923879532511287), SN_R(-0.707106781186548), SN_R(-0.38268343236509)};
  const SnConvex *s = p->s;
  sn_real local[3];
  if (!s) {
    sn_copy3(r, p->edge + 3 * k);
    return;
  }
  if (s->type == SN_GEOM_BOX) {
    for (int i = 0; i < 3; ++i) local[i] = box[p->face][k][i] > 0 ? s->size[i] : -s->size[i];
  } else if (s->type == SN_GEOM_CYLINDER) {
    const sn_real sign = p->face == 0 ? SN_R(1.0) : SN_R(-1.0);
    sn_set3(local, s->size[0] * cosine[k], sign * (s->size[0] * -sine[k]), sign * s->size[1]);
  } else {
    sn_copy3(local, s->vert + 3 * s->polyvert[s->polyadr[p->face] + p->n - 1 - k]);
  }
  feature_world(s, local, r);
}

SN_FUNC void sn_patch_face(SnPatch *p, const SnConvex *s, int face) {
  p->s = s;
  p->face = face;
  p->end[0] = p->end[1] = -1;
  p->n = s->type == SN_GEOM_BOX ? 4 : (s->type == SN_GEOM_CYLINDER ? FEATURE_CAP_SIDES : s->polynum[face]);
}

SN_FUNC void sn_patch_edge(SnPatch *p, const sn_real *start, const sn_real *end, int id1, int id2) {
  p->s = NULL;
  p->face = -1;
  p->n = 2;
  p->end[0] = id1;
  p->end[1] = id2;
  sn_copy3(p->edge, start);
  sn_copy3(p->edge + 3, end);
}
