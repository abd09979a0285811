// Penetration depth of two convex shapes: the expanding polytope algorithm (van den Bergen, "Proximity queries and
// penetration depth computation on 3D game objects", GDC 2001).
//
// The polytope lies inside the Minkowski difference, around the origin. The distance of its nearest face is a lower
// bound of the depth, the support along that face's normal an upper bound. When they differ, the support point is
// added: faces that it sees are removed, the rim of the hole (the horizon) is joined to it. The depth is the distance
// of the nearest face in the end; the witness points have the barycentric coordinates of the projected origin in it.
//
// The visible faces are found by a walk over the edges, depth first, without a stack: a removed face remembers by
// which of its edges the walk came in, and which edge of the face before that was.
#include "physics/base/vec.h"
#include "physics/collision/convex_private.h"

// Places in SnEpaFace.slot; a removed face holds EPA_REMOVED - (3 * edge it was entered by + edge of the face before).
enum { EPA_NOT_LISTED = -1, EPA_REMOVED = -2, EPA_FIRST = 9 };

SN_FUNC void sn_epa_reset(SnEpa *p) { p->nvert = p->nface = p->nfree = p->ncandidate = p->nrim = p->ncreated = 0; }

SN_FUNC int sn_epa_support(SnCcd *c, SnEpa *p, const sn_real *d, sn_real norm) {
  sn_real dir[3] = {1, 0, 0};
  if (norm > SN_CCD_MIN) sn_set3(dir, d[0] / norm, d[1] / norm, d[2] / norm);
  sn_ccd_support(c, dir, p->vert + p->nvert);
  return p->nvert++;
}

SN_FUNC sn_real sn_epa_attach(SnEpa *p, int v1, int v2, int v3, int adj1, int adj2, int adj3) {
  const int at = p->nfree > 0 ? p->free_face[--p->nfree] : p->nface++;
  SnEpaFace *f = p->face + at;
  f->v[0] = (short)v1;
  f->v[1] = (short)v2;
  f->v[2] = (short)v3;
  f->adj[0] = (short)adj1;
  f->adj[1] = (short)adj2;
  f->adj[2] = (short)adj3;
  f->slot = EPA_NOT_LISTED;
  p->ncreated++;
  f->dist2 = 0;
  if (!sn_project_origin(f->n, p->vert[v3].v, p->vert[v2].v, p->vert[v1].v)) return 0;

  // away from the centre
  sn_real outward[3];
  sn_sub3(outward, p->vert[v1].v, p->center);
  if (sn_dot3(f->n, outward) < 0) sn_scale3(f->n, f->n, -1);
  f->dist2 = sn_dot3(f->n, f->n);
  return f->dist2;
}

// Takes a face out of the polytope; code: how the walk came here.
SN_LOCAL void epa_remove(SnEpa *p, int face, int code) {
  const int slot = p->face[face].slot;
  if (slot >= 0) {
    const short last = p->candidate[--p->ncandidate];
    p->candidate[slot] = last;
    p->candidate_dist2[slot] = p->candidate_dist2[p->ncandidate];
    p->face[last].slot = (short)slot;
  }
  p->face[face].slot = (short)(EPA_REMOVED - code);
  p->free_face[p->nfree++] = (short)face;
}

// The edge of a face that starts at vertex.
SN_LOCAL int epa_edge(const SnEpaFace *f, int vertex) { return f->v[0] == vertex ? 0 : (f->v[1] == vertex ? 1 : 2); }

SN_LOCAL bool epa_sees(const SnEpaFace *f, const sn_real *w) {
  const sn_real above = sn_dot3(f->n, w) - f->dist2;
#ifdef SN_SINGLE
  return above > sn_max(sn_sqrt(f->dist2) * SN_EPA_SEEN, SN_CCD_MIN);
#else
  return above > SN_CCD_MIN;
#endif
}

// Removes `first` and the faces that w sees from there on, and lists the rim in order. False when there is no room for
// it.
SN_LOCAL bool epa_horizon(SnEpa *p, int first, const sn_real *w, int capacity) {
  int f = first, entry = -1, i = 0;
  p->nrim = 0;
  epa_remove(p, first, EPA_FIRST);
  for (;;) {
    const int next = p->face[f].adj[i];
    if (p->face[next].slot >= EPA_NOT_LISTED) {
      const int edge = epa_edge(p->face + next, p->face[f].v[(i + 1) % 3]);
      if (epa_sees(p->face + next, w)) {
        epa_remove(p, next, 3 * edge + i);
        f = next;
        entry = edge;
        i = (edge + 1) % 3;
        continue;
      }
      if (p->nrim >= capacity) return false;
      p->rim_face[p->nrim] = (short)next;
      p->rim_edge[p->nrim++] = (short)edge;
    }
    // next edge: of this face, or of the face from which the walk came
    for (;;) {
      if (entry < 0) {
        if (++i == 3) return true;
        break;
      }
      if (i == (entry + 1) % 3) {
        i = (entry + 2) % 3;
        break;
      }
      i = (EPA_REMOVED - p->face[f].slot) % 3;
      f = p->face[f].adj[entry];
      const int code = EPA_REMOVED - p->face[f].slot;
      entry = code == EPA_FIRST ? -1 : code / 3;
    }
  }
}

// Index that the next attached face will have, after `ahead` others.
SN_LOCAL int epa_next_face(const SnEpa *p, int ahead) {
  return ahead < p->nfree ? p->free_face[p->nfree - 1 - ahead] : p->nface + ahead - p->nfree;
}

// Joins the rim to vertex w. lower2, upper2: bounds of the squared depth; faces outside cannot be nearest. Returns the
// number of faces made: less than the rim where one is degenerate.
SN_LOCAL int epa_join(SnEpa *p, int w, sn_real lower2, sn_real upper2) {
  const int n = p->nrim, first = epa_next_face(p, 0);
  int previous = epa_next_face(p, n - 1), here = first;
  for (int k = 0; k < n; ++k) {
    const int beyond = p->rim_face[k], edge = p->rim_edge[k];
    const int next = k + 1 < n ? epa_next_face(p, 1) : first;
    SnEpaFace *f = p->face + beyond;
    const int v1 = f->v[edge], v2 = f->v[(edge + 1) % 3];
    f->adj[edge] = (short)here;
    const sn_real dist2 = sn_epa_attach(p, w, v2, v1, previous, beyond, next);
    if (dist2 == 0) return k;
    if (dist2 >= lower2 && dist2 <= upper2) {
      p->face[here].slot = (short)p->ncandidate;
      p->candidate_dist2[p->ncandidate] = dist2;
      p->candidate[p->ncandidate++] = (short)here;
    }
    previous = here;
    here = next;
  }
  return n;
}

// True when the corners of the last vertex were met before: a polyhedron has no more to offer there. MuJoCo does not
// number the corners of a prism, so that the other shape's alone ends the search, before its end at times.
SN_LOCAL bool epa_is_repeated(const SnCcd *c, const SnEpa *p) {
  const SnCcdVertex *last = p->vert + p->nvert - 1;
  const bool prism = c->a.support == SN_SUPPORT_PRISM;
  for (const SnCcdVertex *v = p->vert; v < last; ++v)
    if ((prism || v->i1 == last->i1) && v->i2 == last->i2) return true;
  return false;
}

// Witness points of a face, depth, and its corners as the simplex.
SN_LOCAL void epa_finish(SnCcd *c, const SnEpa *p, const SnEpaFace *f) {
  const SnCcdVertex *v1 = p->vert + f->v[0], *v2 = p->vert + f->v[1], *v3 = p->vert + f->v[2];
  sn_real lambda[3];
  sn_epa_coordinates(lambda, v1->v, v2->v, v3->v, f->n);
  for (int i = 0; i < 3; ++i) {
    c->x1[i] = lambda[0] * v1->v1[i] + lambda[1] * v2->v1[i] + lambda[2] * v3->v1[i];
    c->x2[i] = lambda[0] * v1->v2[i] + lambda[1] * v2->v2[i] + lambda[2] * v3->v2[i];
  }
  sn_ccd_straighten(c, f->n);
  c->dist[0] = -sn_sqrt(f->dist2);
  c->nx = 1;
  c->n = 3;
  c->simplex[0] = *v1;
  c->simplex[1] = *v2;
  c->simplex[2] = *v3;
}

SN_FUNC void sn_epa_coordinates(sn_real *lambda, const sn_real *v1, const sn_real *v2, const sn_real *v3,
                                const sn_real *p) {
  // in the plane of two axes where the triangle is largest
  sn_real a[3], b[3];
  sn_sub3(a, v2, v1);
  sn_sub3(b, v3, v1);
  const sn_real mu1 = sn_abs(b[2] * a[1] - a[2] * b[1]), mu2 = sn_abs(b[2] * a[0] - a[2] * b[0]);
  const sn_real mu3 = sn_abs(b[1] * a[0] - a[1] * b[0]);
  int i = 0, j = 2;
  if (mu1 >= mu2 && mu1 >= mu3)
    i = 1;
  else if (mu2 < mu3)
    j = 1;
  const sn_real a1 = v1[i] - p[i], a2 = v2[i] - p[i], a3 = v3[i] - p[i];
  const sn_real b1 = v1[j] - p[j], b2 = v2[j] - p[j], b3 = v3[j] - p[j];
  const sn_real c1 = a2 * b3 - a3 * b2, c2 = a3 * b1 - a1 * b3, c3 = a1 * b2 - a2 * b1;
  const sn_real sum = c1 + c2 + c3;
  sn_set3(lambda, c1 / sum, c2 / sum, c3 / sum);
}

// The candidate nearest to the origin, -1: none.
SN_LOCAL int epa_nearest(const SnEpa *p) {
  sn_real least = SN_CCD_FAR;
  int best = -1;
  for (int i = 0; i < p->ncandidate; ++i) {
    if (p->candidate_dist2[i] < least) {
      least = p->candidate_dist2[i];
      best = i;
    }
  }
  return best < 0 ? -1 : p->candidate[best];
}

SN_FUNC bool sn_epa(SnCcd *c, SnEpa *p) {
  const bool discrete = sn_ccd_is_discrete(c);
  const sn_real tolerance = discrete ? SN_EPA_MINTOL : c->tolerance;
  const int iterations = sn_mini(c->iterations, SN_EPA_ITER);
  const int rim_max = sn_mini(sn_maxi(c->iterations, 35) - 11, SN_EPA_VERTS), face_max = 6 * c->iterations;
  sn_real upper = SN_CCD_FAR, upper2 = SN_CCD_FAR;
  SnEpaFace best = p->face[0];  // kept aside: its place is used again when it is removed
  bool any = false;
  c->nx = 0;
  c->dist[0] = 0;

  for (int k = 0; k < iterations; ++k) {
    // lower bound: the nearest face. None better than the upper bound: the last one was the answer.
    const int at = epa_nearest(p);
    if (at < 0 || p->face[at].dist2 > upper2) break;
    best = p->face[at];
    any = true;
    if (!(best.dist2 > 0)) break;
    const sn_real lower2 = best.dist2, lower = sn_sqrt(lower2);

    // upper bound: the support along its normal
    const int w = sn_epa_support(c, p, best.n, lower);
    const sn_real reach = sn_dot3(best.n, p->vert[w].v) / lower;
    if (reach < upper) {
      upper = reach;
      upper2 = reach * reach;
    }
    if (reach - lower < tolerance) {
      if (k == 0 && !(lower - tolerance <= upper)) return false;  // the origin was outside
      break;
    }
    if (discrete && epa_is_repeated(c, p)) break;

    if (!epa_horizon(p, at, p->vert[w].v, rim_max) || p->nrim < 3) return false;
    if (p->nrim > face_max - p->ncreated || p->nface + p->nrim - p->nfree > SN_EPA_FACES) break;
    if (epa_join(p, w, lower2, upper2) < p->nrim || p->ncandidate == 0) break;
  }
  if (!any) return false;
  epa_finish(c, p, &best);
  return true;
}
