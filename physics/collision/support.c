// Support functions: the point of a convex shape that is farthest along a unit direction d.
//
// With d in the geom's frame: sphere r d; segment (0, 0, sign(d_z) h); capsule, the sum of both; ellipsoid S^2 d / |S
// d| with S = diag(sizes), from the gradient of d'x on x' S^-2 x = 1; cylinder, the rim's point nearest to d; box, the
// corner of d's signs. A mesh is searched: all its vertices when they are few, else by climbing along the edges of its
// hull from the last answer or from the vertex that is extreme in the nearest of 27 directions, whichever is better. On
// a convex hull a vertex with no better neighbour is the best of all.
#include "physics/base/vec.h"
#include "physics/collision/convex_private.h"

// Meshes with fewer vertices are searched one by one.
enum { SUPPORT_CLIMB_MIN = 10 };

SN_LOCAL void support_init_mesh(SnConvex *s, const SnModel *m, int mesh) {
  const int vertadr = m->mesh_vertadr[mesh], polyadr = m->mesh_polyadr[mesh];
  const bool climb = m->mesh_graphadr[mesh] >= 0 && m->mesh_vertnum[mesh] >= SUPPORT_CLIMB_MIN;
  s->support = climb ? SN_SUPPORT_HULL : SN_SUPPORT_MESH;
  s->vert = m->mesh_vert + 3 * vertadr;
  s->nvert = m->mesh_vertnum[mesh];
  s->npoly = m->mesh_polynum[mesh];
  if (climb) {
    s->graph = m->mesh_graph + m->mesh_graphadr[mesh];
    s->extrema = m->mesh_extrema + 27 * mesh;
  }
  s->mapadr = m->mesh_polymapadr + vertadr;
  s->mapnum = m->mesh_polymapnum + vertadr;
  s->map = m->mesh_polymap;
  s->polyadr = m->mesh_polyvertadr + polyadr;
  s->polynum = m->mesh_polyvertnum + polyadr;
  s->polyvert = m->mesh_polyvert;
  s->polynormal = m->mesh_polynormal + 3 * polyadr;
}

SN_FUNC void sn_convex_init(SnConvex *s, const SnModel *m, const SnShape *shape, sn_real margin) {
  s->type = m->geom_type[shape->geom];
  s->pos = shape->pos;
  s->mat = shape->mat;
  s->size = shape->size;
  s->margin = margin;
  s->vertex = -1;
  s->hull = -1;
  s->npoly = 0;
  switch (s->type) {
    case SN_GEOM_CAPSULE:
      s->support = SN_SUPPORT_CAPSULE;
      break;
    case SN_GEOM_ELLIPSOID:
      s->support = SN_SUPPORT_ELLIPSOID;
      break;
    case SN_GEOM_CYLINDER:
      s->support = SN_SUPPORT_CYLINDER;
      break;
    case SN_GEOM_BOX:
      s->support = SN_SUPPORT_BOX;
      break;
    case SN_GEOM_MESH:
      support_init_mesh(s, m, m->geom_dataid[shape->geom]);
      break;
    default:
      s->support = SN_SUPPORT_SPHERE;
      break;
  }
}

// Vertex farthest along the local direction d, by looking at all of them.
SN_LOCAL int support_search(const SnConvex *s, const sn_real *d) {
  int best = sn_maxi(s->vertex, 0);
  sn_real most = s->vertex >= 0 ? sn_dot3(d, s->vert + 3 * best) : -SN_CCD_FAR;
  for (int i = 0; i < s->nvert; ++i) {
    const sn_real dot = sn_dot3(d, s->vert + 3 * i);
    if (dot > most) {
      most = dot;
      best = i;
    }
  }
  return best;
}

// -1, 0 or 1: the cell of a direction's component in the grid of MuJoCo's mesh_extrema.
SN_LOCAL int support_cell(sn_real x) { return (x > SN_R(0.4)) - (x < SN_R(-0.4)); }

// The same by climbing on the hull: returns the index in the graph.
SN_LOCAL int support_climb(const SnConvex *s, const sn_real *d) {
  const int n = s->graph[0];
  const int *adr = s->graph + 2, *id = adr + n, *edge = id + n;
  int best = s->extrema[9 * support_cell(d[0]) + 3 * support_cell(d[1]) + support_cell(d[2]) + 13];
  sn_real most = sn_dot3(d, s->vert + 3 * id[best]);
  if (s->hull >= 0) {
    const sn_real warm = sn_dot3(d, s->vert + 3 * id[s->hull]);
    if (!(most > warm)) {
      best = s->hull;
      most = warm;
    }
  }
  for (int from = -1; from != best;) {
    from = best;
    for (int i = adr[from]; edge[i] >= 0; ++i) {
      const sn_real dot = sn_dot3(d, s->vert + 3 * id[edge[i]]);
      if (dot > most) {
        most = dot;
        best = edge[i];
      }
    }
  }
  return best;
}

// Support points in the geom's frame: r from the local direction d.
SN_LOCAL void support_ellipsoid(const SnConvex *s, const sn_real *d, sn_real *r) {
  const sn_real *size = s->size;
  sn_set3(r, d[0] * size[0], d[1] * size[1], d[2] * size[2]);
  const sn_real norm2 = sn_dot3(r, r);
  if (norm2 < SN_CCD_MIN2) {
    sn_set3(r, size[0], 0, 0);
    return;
  }
  const sn_real inv = 1 / sn_sqrt(norm2);
  for (int i = 0; i < 3; ++i) r[i] *= inv * size[i];
}

SN_LOCAL void support_cylinder(SnConvex *s, const sn_real *d, sn_real *r) {
  const sn_real n2 = d[0] * d[0] + d[1] * d[1];
  const sn_real scale = n2 >= SN_CCD_MIN2 ? s->size[0] / sn_sqrt(n2) : 0;
  s->vertex = !(d[2] >= 0);
  sn_set3(r, scale * d[0], scale * d[1], s->vertex ? -s->size[1] : s->size[1]);
}

SN_LOCAL void support_box(SnConvex *s, const sn_real *d, sn_real *r) {
  s->vertex = 0;
  for (int i = 0; i < 3; ++i) {
    r[i] = d[i] >= 0 ? s->size[i] : -s->size[i];
    if (r[i] > 0) s->vertex |= 1 << i;
  }
}

// The best corner of the end of a prism that d points to.
SN_LOCAL void support_prism(SnConvex *s, const sn_real *d, sn_real *r) {
  const int start = d[2] < 0 ? 0 : 3;
  sn_real most = sn_dot3(s->vert + 3 * start, d);
  s->vertex = start;
  for (int i = start + 1; i < start + 3; ++i) {
    const sn_real dot = sn_dot3(s->vert + 3 * i, d);
    if (dot > most) {
      most = dot;
      s->vertex = i;
    }
  }
  sn_copy3(r, s->vert + 3 * s->vertex);
}

SN_FUNC void sn_prism_middle(sn_real *r, const sn_real *vert) {
  sn_zero(r, 3);
  for (int i = 0; i < 6; ++i) sn_addto3(r, vert + 3 * i);
  sn_scale3(r, r, SN_R(1.0) / SN_R(6.0));
}

SN_FUNC void sn_support(SnConvex *s, const sn_real *dir, sn_real *res) {
  const sn_real *pos = s->pos, *mat = s->mat, *size = s->size;
  sn_real d[3], r[3];
  if (s->support == SN_SUPPORT_POINT) {
    sn_copy3(res, pos);
    return;
  }
  if (s->support == SN_SUPPORT_PRISM) {
    support_prism(s, dir, res);
    return;
  }
  if (s->support == SN_SUPPORT_SPHERE) {
    for (int i = 0; i < 3; ++i) res[i] = size[0] * dir[i] + pos[i];
    return;
  }
  if (s->support == SN_SUPPORT_LINE) {
    const sn_real h = mat[2] * dir[0] + mat[5] * dir[1] + mat[8] * dir[2] >= 0 ? size[1] : -size[1];
    for (int i = 0; i < 3; ++i) res[i] = mat[3 * i + 2] * h + pos[i];
    return;
  }
  sn_mulmattvec3(d, mat, dir);
  switch (s->support) {
    case SN_SUPPORT_CAPSULE:
      sn_scale3(r, d, size[0]);
      r[2] += d[2] >= 0 ? size[1] : -size[1];
      break;
    case SN_SUPPORT_ELLIPSOID:
      support_ellipsoid(s, d, r);
      break;
    case SN_SUPPORT_CYLINDER:
      support_cylinder(s, d, r);
      break;
    case SN_SUPPORT_BOX:
      support_box(s, d, r);
      break;
    case SN_SUPPORT_MESH:
      s->vertex = support_search(s, d);
      sn_copy3(r, s->vert + 3 * s->vertex);
      break;
    default:
      s->hull = support_climb(s, d);
      s->vertex = s->graph[2 + s->graph[0] + s->hull];
      sn_copy3(r, s->vert + 3 * s->vertex);
      break;
  }
  sn_mulmatvec3(res, mat, r);
  sn_addto3(res, pos);
}

SN_FUNC void sn_ccd_support(SnCcd *c, const sn_real *dir, SnCcdVertex *v) {
  const sn_real back[3] = {-dir[0], -dir[1], -dir[2]};
  sn_support(&c->a, dir, v->v1);
  if (c->a.margin > 0) sn_addtoscl3(v->v1, dir, SN_R(0.5) * c->a.margin);
  sn_support(&c->b, back, v->v2);
  if (c->b.margin > 0) sn_addtoscl3(v->v2, back, SN_R(0.5) * c->b.margin);
  sn_sub3(v->v, v->v1, v->v2);
  v->i1 = c->a.vertex;
  v->i2 = c->b.vertex;
}

SN_LOCAL bool support_is_discrete(const SnConvex *s) {
  if (s->margin != 0) return false;
  return s->support == SN_SUPPORT_POINT || s->support == SN_SUPPORT_LINE || s->type == SN_GEOM_BOX ||
         s->type == SN_GEOM_MESH || s->type == SN_GEOM_HFIELD;
}

SN_FUNC bool sn_ccd_is_discrete(const SnCcd *c) { return support_is_discrete(&c->a) && support_is_discrete(&c->b); }
