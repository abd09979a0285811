// Several contacts of one pair (multi-contact): where flat faces, or an edge and a face, touch, one point cannot say
// so.
//
// The corners of the final simplex (of GJK for separated shapes, of EPA for overlapping ones) name the feature of each
// shape: one corner, an edge, a face. Of the faces that meet in it, the two that look at each other along the contact
// normal are taken; where there are none, an edge of one shape and a face of the other that are parallel within 5
// degrees. The one feature is then clipped by the sides of the other (Sutherland and Hodgman 1974), points above the
// face are dropped, and of more than four the quadrilateral of largest area is kept. Each point that is left is a
// contact, with its projection on the other feature as partner.
//
// Which corner comes first, and so the order of the contacts, follows MuJoCo 4.0.0's single-shot pipeline.
#include "physics/base/vec.h"
#include "physics/collision/collide_private.h"
#include "physics/collision/convex_private.h"
#include "physics/collision/feature_private.h"

enum { MULTI_CLIP_MAX = 2 * SN_POLY_MAX };

// The height of x above the plane through `at` with normal n.
SN_LOCAL sn_real multi_height(const sn_real *x, const sn_real *at, const sn_real *n) {
  sn_real r[3];
  sn_sub3(r, x, at);
  return sn_dot3(r, n);
}

// Moves corners [from, to) on by one place.
SN_LOCAL void multi_move(SnClipCorner *v, int from, int to) {
  for (int i = to; i > from; --i) v[i] = v[i - 1];
}

// One cut of the clipping, in place: what of the polygon v[n] lies on the inner side of the plane through `at` with
// normal `inner`; what is cut off makes room for the side `side`. Of a convex polygon no corner is written where one is
// still to be read; where rounding would have it so, those move on.
SN_LOCAL int multi_cut(SnClipCorner *v, int n, const sn_real *at, const sn_real *inner, int side) {
  const SnClipCorner first = v[0];
  SnClipCorner a = first, b;
  sn_real da = multi_height(first.x, at, inner), db;
  int count = 0, next = 1, end = n;  // corners [next, end) are still to be read
  for (int i = 0; i < n; ++i, a = b, da = db) {
    sn_real ab[3];
    b = next < end ? v[next++] : first;
    db = multi_height(b.x, at, inner);
    const bool in_a = da > -SN_CCD_MIN, in_b = db > -SN_CCD_MIN;
    const sn_real t = in_a != in_b && da - db != 0 ? da / (da - db) : -1;
    const bool cut = t >= 0 && t <= 1;
    if (count + 2 > MULTI_CLIP_MAX) return count;
    if (next < end && count + cut + in_b > next) {
      if (end == MULTI_CLIP_MAX) return count;
      multi_move(v, next++, end++);
    }
    if (cut) {
      sn_sub3(ab, b.x, a.x);
      sn_addscl3(v[count].x, a.x, ab, t);
      v[count++].side = in_a ? (short)side : a.side;
    }
    if (in_b) v[count++] = b;
  }
  return count;
}

// Inward normal of side k of a face with normal n, which starts at corner `here` and ends at `next`.
SN_LOCAL void multi_side(const sn_real *here, const sn_real *next, const sn_real *n, sn_real *inner) {
  sn_real above[3], along[3], up[3];
  sn_add3(above, here, n);
  sn_sub3(along, next, here);
  sn_sub3(up, above, here);
  sn_cross(inner, along, up);
  sn_normalize3(inner);
}

// Clips the polygon v[n] by the sides of a face with normal `up`; returns its size then.
SN_LOCAL int multi_clip(const SnPatch *clip, const sn_real *up, SnClipCorner *v, int n) {
  sn_real here[3], next[3], inner[3];
  sn_patch_corner(clip, 0, here);
  for (int e = 0; e < clip->n && n > 0; ++e) {
    sn_patch_corner(clip, e + 1 < clip->n ? e + 1 : 0, next);
    multi_side(here, next, up, inner);
    n = multi_cut(v, n, here, inner, SN_PATCH_SIDE + e);
    sn_copy3(here, next);
  }
  return n;
}

SN_LOCAL sn_real multi_area(const sn_real *a, const sn_real *b, const sn_real *c, const sn_real *d) {
  sn_real ac[3], bd[3], n[3];
  sn_sub3(ac, a, c);
  sn_sub3(bd, b, d);
  sn_cross(n, ac, bd);
  return sn_norm3(n) * SN_R(0.5);
}

// For each first corner the others advance while the area grows.
SN_FUNC void sn_largest_quad(const SnClipCorner *v, int n, int *best) {
  int b = 1, c = 2, d = 3;
  sn_real most = multi_area(v[0].x, v[1].x, v[2].x, v[3].x);
  for (int i = 0; i < 4; ++i) best[i] = i;
  for (int a = 0; a < n; ++a) {
    const sn_real *va = v[a].x;
    for (;;) {
      sn_real area = multi_area(va, v[b].x, v[c].x, v[(d + 1) % n].x);
      if (!(area > most)) break;
      most = area;
      d = (d + 1) % n;
      while ((area = multi_area(va, v[b].x, v[(c + 1) % n].x, v[d].x)) > most) {
        most = area;
        c = (c + 1) % n;
      }
      while ((area = multi_area(va, v[(b + 1) % n].x, v[c].x, v[d].x)) > most) {
        most = area;
        b = (b + 1) % n;
      }
      best[0] = a;
      best[1] = b;
      best[2] = c;
      best[3] = d;
    }
    if (b == a) {
      b = (b + 1) % n;
      if (c == b) {
        c = (c + 1) % n;
        if (d == c) d = (d + 1) % n;
      }
    }
  }
}

// The two corners of a polygon that are farthest apart.
SN_LOCAL void multi_farthest(const SnClipCorner *v, int n, int *best) {
  sn_real most = 0;
  best[0] = 0;
  best[1] = 1;
  for (int i = 0; i < n; ++i)
    for (int j = i + 1; j < n; ++j) {
      sn_real d[3];
      sn_sub3(d, v[j].x, v[i].x);
      if (sn_dot3(d, d) > most) {
        most = sn_dot3(d, d);
        best[0] = i;
        best[1] = j;
      }
    }
}

// Two features that face each other: clip, and be clipped. n: normal of `clip`; along: direction from the face of
// `clip` to the other feature, in which the distance is measured.
typedef struct SnMatch {
  SnPatch clip, cut;
  sn_real n[3];
  sn_real along[3];
  sn_real normal[3];  // of the contact, from A to B reversed: the way in which margins move the witness points
  bool swapped;       // clip belongs to B
} SnMatch;

// What a contact has to know for its adjoint.
SN_LOCAL void multi_remember(const SnMatch *t, const SnClipCorner *p, int *corner) {
  corner[SN_PATCH_CLIP] = t->clip.face;
  corner[SN_PATCH_CUT] = t->cut.face;
  corner[SN_PATCH_START] = t->cut.end[0];
  corner[SN_PATCH_END] = t->cut.end[1];
  corner[SN_PATCH_IN] = p->before;
  corner[SN_PATCH_OUT] = p->side;
}

// Clips and writes the contacts (witness points on `clip` in x1, on `cut` in x2, the other way round when swapped);
// returns their number.
SN_LOCAL int multi_contacts(SnCcd *c, const SnMatch *t, sn_real margin, int max) {
  SnClipCorner v[MULTI_CLIP_MAX];
  sn_real origin[3], r[3];
  int best[4];
  if (t->clip.n < 3) return 0;
  for (int i = 0; i < t->cut.n; ++i) {
    sn_patch_corner(&t->cut, i, v[i].x);
    v[i].side = (short)i;
  }
  const int n = multi_clip(&t->clip, t->n, v, t->cut.n);

  // not above the face
  sn_patch_corner(&t->clip, 0, origin);
  int kept = 0;
  for (int i = 0; i < n; ++i) {
    sn_sub3(r, v[i].x, origin);
    if (sn_dot3(r, t->n) > margin) continue;
    v[i].before = v[i > 0 ? i - 1 : n - 1].side;
    if (kept != i) v[kept] = v[i];
    kept++;
  }

  const bool pick4 = max < 5 && kept > 4, pick2 = !pick4 && t->cut.n == 2 && kept > 2;
  if (pick4)
    sn_largest_quad(v, kept, best);
  else if (pick2)
    multi_farthest(v, kept, best);
  const int count = pick4 ? 4 : (pick2 ? 2 : sn_mini(kept, max));
  for (int i = 0; i < count; ++i) {
    const SnClipCorner *corner = v + (pick4 || pick2 ? best[i] : i);
    const sn_real *p = corner->x;
    multi_remember(t, corner, c->corner[i]);
    sn_real *on = (t->swapped ? c->x2 : c->x1) + 3 * i, *other = (t->swapped ? c->x1 : c->x2) + 3 * i;
    sn_sub3(r, p, origin);
    sn_addscl3(on, p, t->n, -sn_dot3(r, t->n));
    sn_sub3(r, on, p);
    c->dist[i] = sn_dot3(r, t->along);
    sn_addscl3(other, on, t->along, -c->dist[i]);
  }
  return count;
}

// Faces that look at each other along the contact (dir: from A's witness point to B's, against A's normals): the most
// nearly opposite.
SN_LOCAL bool multi_match_faces(const SnFeature *a, const SnFeature *b, const sn_real *dir, SnMatch *t) {
  const sn_real bound = sn_norm3(dir) * SN_MULTI_EDGE;
  sn_real most = -SN_MULTI_FACE, n1[3], n2[3];
  bool found = false;
  for (int i = 0; i < a->nface; ++i) {
    sn_face_normal(a->s, a->face[i], n1);
    if (!(sn_dot3(n1, dir) < -bound)) continue;
    for (int j = 0; j < b->nface; ++j) {
      sn_face_normal(b->s, b->face[j], n2);
      if (!(sn_dot3(n2, dir) > bound) || !(sn_dot3(n1, n2) < most)) continue;
      most = sn_dot3(n1, n2);
      found = true;
      sn_patch_face(&t->clip, a->s, a->face[i]);
      sn_patch_face(&t->cut, b->s, b->face[j]);
      sn_copy3(t->n, n1);
      sn_copy3(t->along, n2);
      sn_scale3(t->normal, n2, -1);
    }
  }
  t->swapped = false;
  return found;
}

// The first face of f that looks along out, and an edge of e that lies in it. x: witness point of e's shape.
SN_LOCAL bool multi_match_edge(const SnFeature *f, SnFeature *e, const sn_real *out, const sn_real *x, bool swapped,
                               SnMatch *t) {
  sn_real n[3], end[3], dir[3];
  int id;
  const int count = sn_feature_edge_count(e);
  sn_feature_edge_start(e, x);
  for (int i = 0; i < f->nface; ++i) {
    sn_face_normal(f->s, f->face[i], n);
    if (!(sn_dot3(n, out) > SN_CCD_MIN)) continue;
    for (int k = 0; k < count; ++k) {
      if (!sn_feature_edge(e, k, end, &id, dir) || !(sn_abs(sn_dot3(dir, n)) < SN_MULTI_EDGE)) continue;
      sn_patch_face(&t->clip, f->s, f->face[i]);
      sn_patch_edge(&t->cut, e->v, end, e->id[0], id);
      sn_copy3(t->n, n);
      sn_scale3(t->along, n, -1);
      sn_scale3(t->normal, n, swapped ? SN_R(-1.0) : SN_R(1.0));
      t->swapped = swapped;
      return true;
    }
  }
  return false;
}

SN_LOCAL bool multi_match(SnFeature *a, SnFeature *b, const SnCcd *c, SnMatch *t) {
  sn_real dir[3], back[3];
  sn_sub3(dir, c->x2, c->x1);
  sn_sub3(back, c->x1, c->x2);
  sn_feature_faces(a, back);
  sn_feature_faces(b, dir);
  if (multi_match_faces(a, b, dir, t)) return true;

  // an edge of one and a face of the other: first the edge of the smaller feature
  const bool edge_of_b = a->nface && b->dim != 3 && (b->dim < a->dim || !b->nface);
  const bool try_a = a->dim != 3 && b->nface, try_b = b->dim != 3 && a->nface;
  if (edge_of_b)
    return multi_match_edge(a, b, back, c->x2, false, t) || (try_a && multi_match_edge(b, a, dir, c->x1, true, t));
  return (try_a && multi_match_edge(b, a, dir, c->x1, true, t)) ||
         (try_b && multi_match_edge(a, b, back, c->x2, false, t));
}

SN_FUNC int sn_multicontact(SnCcd *c, int max) {
  SnFeature a, b;
  SnMatch t;
  if (c->n <= 0) return 1;
  if ((c->a.type == SN_GEOM_MESH && !c->a.npoly) || (c->b.type == SN_GEOM_MESH && !c->b.npoly)) return 1;
  sn_feature_init(&a, &c->a, c, true);
  sn_feature_init(&b, &c->b, c, false);
  if (!multi_match(&a, &b, c, &t)) return 1;

  // a capsule's line is at its radius already, margin included: it is made from the witness point
  const sn_real margin1 = c->a.type == SN_GEOM_CAPSULE ? 0 : SN_R(0.5) * c->a.margin;
  const sn_real margin2 = c->b.type == SN_GEOM_CAPSULE ? 0 : SN_R(0.5) * c->b.margin;
  const int n = multi_contacts(c, &t, margin1 + margin2, sn_mini(max, SN_CCD_MAXCON));
  if (n <= 0) return 1;
  c->feature = t.cut.s ? SN_FEATURE_FACES : (t.swapped ? SN_FEATURE_EDGE_A : SN_FEATURE_EDGE_B);
  if (margin1 != 0 || margin2 != 0) {
    for (int i = 0; i < n; ++i) {
      sn_addtoscl3(c->x1 + 3 * i, t.normal, margin1);
      sn_addtoscl3(c->x2 + 3 * i, t.normal, -margin2);
      c->dist[i] -= margin1 + margin2;
    }
  }
  return n;
}

// The adjoint. It holds still the shape whose face clips, with outward normal n, and asks what the point p that was cut
// out does when the other one moves; what that takes from the common motion of both, which moves point and normal
// rigidly, is left for the first shape. p is a corner of the other shape, carried by it; or a point of one of its
// edges, which stays in a side of the clipping face: it slides along the edge; or a point of its face above a corner
// of the clipping face: it stays on that line. A face of a mesh is not quite flat, so that its normal does not say
// where. There p lies on the chord that the side a of the corner which cuts first makes of two edges e1, e2 of the
// face, where side b cuts it:
//
//   p = P + s (Q - P),   dP = e1 a'xi(P) / a'e1,   dQ likewise,   b'dp = b'xi(p),
//
// xi(x) being how x moves with the clipping face. Where an earlier side has cut off an end of the chord, that end is
// taken for uncut: the flatter the face the smaller the difference. With h = n'(p - o), o in the face, and `along` the
// other face's normal (of an edge: -n), the contact has dist = -h n'along at pos = p - h n - along dist / 2, normal +-
// along.
//
// The line of a capsule's mantle that lies on a face, and that of a cylinder, which stands for an edge, lies where the
// nearest points of the two shapes have their normal n, in a capsule r (n - a a'n) from its axis a (r: half the margin
// included), in a cylinder that at length r. It does not turn with the shape about its axis. So n has a bar, too, which
// is left to the caller. (The cylinder's line is that of the corner which the last simplex had first, only about this.)
//
// Where an edge is parallel to the side that it meets, or a face square to the line in which it is met, the point is
// carried.
typedef struct SnCut {
  const SnConvex *clip, *cut;  // shapes
  bool faces;                  // `cut` gives a face, else an edge
  sn_real n[3], along[3];
  sn_real p[3], h;
  sn_real edge[3];  // unit vector along the edge of `cut` that has p
  sn_real side[3];  // normal of the side of `clip` that has p
  bool on_edge, on_side;
  // the chord of a mesh's face that p lies on
  bool on_chord;
  sn_real first[3], second[3];  // normals of the sides a, b
  sn_real end[6], through[6];   // P, Q and unit vectors along e1, e2
} SnCut;

SN_LOCAL void multi_cut_edge(SnCut *k, const int *corner, int side) {
  sn_real a[3], b[3];
  SnPatch patch;
  if (k->faces) {
    sn_patch_face(&patch, k->cut, corner[SN_PATCH_CUT]);
    sn_patch_corner(&patch, side, a);
    sn_patch_corner(&patch, side + 1 < patch.n ? side + 1 : 0, b);
    sn_sub3(k->edge, b, a);
  } else if (k->cut->type == SN_GEOM_MESH) {
    sn_sub3(a, k->cut->vert + 3 * corner[SN_PATCH_END], k->cut->vert + 3 * corner[SN_PATCH_START]);
    sn_mulmatvec3(k->edge, k->cut->mat, a);
  } else {
    // of a box: the axis in which the two corners differ; capsule, cylinder: the third
    int axis = 2;
    if (k->cut->type == SN_GEOM_BOX) {
      const int bits = corner[SN_PATCH_START] ^ corner[SN_PATCH_END];
      axis = bits & 1 ? 0 : (bits & 2 ? 1 : 2);
    }
    for (int i = 0; i < 3; ++i) k->edge[i] = k->cut->mat[3 * i + axis];
  }
  sn_normalize3(k->edge);
  k->on_edge = true;
}

SN_LOCAL void multi_clip_side(SnCut *k, const int *corner, int side) {
  sn_real a[3], b[3];
  SnPatch patch;
  sn_patch_face(&patch, k->clip, corner[SN_PATCH_CLIP]);
  sn_patch_corner(&patch, side, a);
  sn_patch_corner(&patch, side + 1 < patch.n ? side + 1 : 0, b);
  multi_side(a, b, k->n, k->side);
  k->on_side = true;
}

// Finds the chord that side `first` of the clipping face makes of the face of `cut`, across which `second` cuts.
SN_LOCAL void multi_chord(SnCut *k, const int *corner, int first, int second) {
  SnPatch patch;
  sn_real at[3], a[3], b[3], r[3];
  int n = 0;
  multi_clip_side(k, corner, second);
  sn_copy3(k->second, k->side);
  multi_clip_side(k, corner, first);
  sn_copy3(k->first, k->side);
  sn_patch_face(&patch, k->clip, corner[SN_PATCH_CLIP]);
  sn_patch_corner(&patch, first, at);
  sn_patch_face(&patch, k->cut, corner[SN_PATCH_CUT]);
  sn_patch_corner(&patch, patch.n - 1, a);
  for (int i = 0; i < patch.n && n < 2; ++i) {
    sn_patch_corner(&patch, i, b);
    sn_sub3(r, a, at);
    const sn_real da = sn_dot3(r, k->first);
    sn_sub3(r, b, at);
    const sn_real db = sn_dot3(r, k->first);
    if ((da > 0) != (db > 0)) {
      sn_sub3(r, b, a);
      sn_addscl3(k->end + 3 * n, a, r, da / (da - db));
      sn_normalize3(r);
      sn_copy3(k->through + 3 * n++, r);
    }
    sn_copy3(a, b);
  }
  k->on_chord = n == 2;
}

SN_LOCAL void multi_recall(SnCut *k, const SnConvex *a, const SnConvex *b, const SnContact *con) {
  const bool swapped = con->feature == SN_FEATURE_EDGE_A;
  const int *corner = con->corner;
  k->clip = swapped ? b : a;
  k->cut = swapped ? a : b;
  k->faces = con->feature == SN_FEATURE_FACES;
  sn_face_normal(k->clip, corner[SN_PATCH_CLIP], k->n);
  if (k->faces)
    sn_face_normal(k->cut, corner[SN_PATCH_CUT], k->along);
  else
    sn_scale3(k->along, k->n, -1);
  k->h = -con->dist / sn_dot3(k->n, k->along);
  sn_addscl3(k->p, con->pos, k->along, SN_R(0.5) * con->dist);
  sn_addtoscl3(k->p, k->n, k->h);
  // a capsule's line was cut with half the margin around it, which was then taken off along the normal
  if (!k->faces && k->cut->type == SN_GEOM_CAPSULE) sn_addtoscl3(k->p, k->n, SN_R(-0.5) * k->cut->margin);
  k->on_edge = k->on_side = k->on_chord = false;
  const int in = corner[SN_PATCH_IN] - SN_PATCH_SIDE, out = corner[SN_PATCH_OUT] - SN_PATCH_SIDE;
  if (k->faces && k->cut->type == SN_GEOM_MESH && in >= 0 && out >= 0 && in != out)
    multi_chord(k, corner, sn_mini(in, out), sn_maxi(in, out));
  for (int i = 0; i < 2; ++i) {
    const int side = corner[i == 0 ? SN_PATCH_IN : SN_PATCH_OUT];
    if (side >= SN_PATCH_SIDE)
      multi_clip_side(k, corner, side - SN_PATCH_SIDE);
    else
      multi_cut_edge(k, corner, side);
  }
}

// force: bar of p; becomes that of the point of `cut` that lies there.
SN_LOCAL void multi_slide_vjp(const SnCut *k, sn_real *force) {
  if (!k->on_side) return;
  if (k->on_edge) {
    const sn_real sine = sn_dot3(k->edge, k->side);
    if (sn_abs(sine) > SN_STEADY_SINE) sn_addtoscl3(force, k->side, -sn_dot3(k->edge, force) / sine);
  } else {
    const sn_real lean = sn_dot3(k->along, k->n);
    if (sn_abs(lean) > SN_STEADY_SINE) sn_scale3(force, k->along, sn_dot3(k->n, force) / lean);
  }
}

// Adds the wrench of a force on p, a point of a line of the mantle of a capsule or a cylinder, to that shape; n: the
// normal towards which the line lies, in n_bar what the line's place owes to it.
SN_LOCAL void multi_push_line(const SnCut *k, const sn_real *n, const sn_real *force, sn_real *wrench, sn_real *n_bar) {
  const SnConvex *s = k->cut;
  const sn_real axis[3] = {s->mat[2], s->mat[5], s->mat[8]};
  const bool capsule = s->type == SN_GEOM_CAPSULE;
  const sn_real lean = sn_dot3(axis, n), square = sn_max(1 - lean * lean, SN_STEADY_SINE);
  const sn_real radius = capsule ? s->size[0] + SN_R(0.5) * s->margin : s->size[0] / sn_sqrt(square);
  sn_real out[3], arm[3], axis_bar[3], moved[3], t[3];
  // from the axis to the line: out = radius (n - lean axis)
  sn_sub3(arm, k->p, s->pos);
  sn_scale3(out, n, radius);
  sn_addtoscl3(out, axis, -radius * lean);
  sn_subfrom3(arm, out);
  sn_cross(t, arm, force);
  sn_addto3(wrench, t);
  sn_addto3(wrench + 3, force);
  // its derivative; of a cylinder, whose line stays on the mantle, without the part along itself
  sn_copy3(moved, force);
  if (!capsule) sn_addtoscl3(moved, out, -sn_dot3(out, force) / sn_max(sn_dot3(out, out), SN_MINVAL));
  const sn_real along = sn_dot3(axis, moved);
  sn_scale3(axis_bar, moved, -radius * lean);
  sn_addtoscl3(axis_bar, n, -radius * along);
  sn_turn(wrench, axis, axis_bar);
  sn_scale3(n_bar, moved, radius);
  sn_addtoscl3(n_bar, axis, -radius * along);
}

// force: bar of p; becomes that of the point of `cut` that lies there. What is left for the ends of the chord goes to
// wrench. Returns false where the chord does not say where p is: nothing is changed then.
SN_LOCAL bool multi_chord_vjp(const SnCut *k, const SnShape *cut, sn_real *force, sn_real *wrench) {
  sn_real chord[3], r[3], rest[3], f[3];
  sn_sub3(chord, k->end + 3, k->end);
  sn_sub3(r, k->p, k->end);
  const sn_real length2 = sn_dot3(chord, chord), across = sn_dot3(k->second, chord);
  const sn_real sine[2] = {sn_dot3(k->first, k->through), sn_dot3(k->first, k->through + 3)};
  if (!(sn_abs(across) > SN_STEADY_SINE * sn_sqrt(length2)) || !(sn_abs(sine[0]) > SN_STEADY_SINE) ||
      !(sn_abs(sine[1]) > SN_STEADY_SINE))
    return false;
  const sn_real s = sn_clip(sn_dot3(r, chord) / length2, 0, 1), c = sn_dot3(chord, force) / across;
  sn_copy3(rest, force);
  sn_addtoscl3(rest, k->second, -c);
  sn_copy3(force, rest);
  for (int i = 0; i < 2; ++i) {
    sn_scale3(f, k->first, -(i == 0 ? 1 - s : s) * sn_dot3(rest, k->through + 3 * i) / sine[i]);
    sn_push(wrench, cut, k->end + 3 * i, f);
  }
  return true;
}

SN_FUNC bool sn_multicontact_has_line(const SnConvex *a, const SnConvex *b, const SnContact *con) {
  const int cut = con->feature == SN_FEATURE_EDGE_A ? a->type : b->type;
  return con->feature != SN_FEATURE_FACES && (cut == SN_GEOM_CAPSULE || cut == SN_GEOM_CYLINDER);
}

SN_FUNC void sn_multicontact_vjp(const SnConvex *a, const SnConvex *b, const SnContact *con, const SnContactBar *bar,
                                 const sn_real *normal, sn_real *normal_bar, sn_real *wrench) {
  SnCut k;
  multi_recall(&k, a, b, con);
  const bool swapped = k.clip == b;
  sn_real *on_clip = wrench + (swapped ? 6 : 0), *on_cut = wrench + (swapped ? 0 : 6);
  sn_real force[3], own[6] = {0, 0, 0, 0, 0, 0}, along_bar[3], back[3];

  // bars of h, along and the part of pos in the face
  const sn_real lean = sn_dot3(k.n, k.along);
  const sn_real dist_bar = bar->dist - SN_R(0.5) * sn_dot3(bar->pos, k.along);
  const sn_real h_bar = -lean * dist_bar;
  sn_addscl3(force, bar->pos, k.n, h_bar - sn_dot3(bar->pos, k.n));
  if (k.faces) {
    sn_scale3(along_bar, bar->normal, -1);
    sn_addtoscl3(along_bar, bar->pos, SN_R(-0.5) * con->dist);
    sn_addtoscl3(along_bar, k.n, -k.h * dist_bar);
    sn_turn(own, k.along, along_bar);
  }
  const SnShape cut = {.pos = k.cut->pos, .mat = k.cut->mat, .size = k.cut->size};
  if (!k.on_chord || !multi_chord_vjp(&k, &cut, force, own)) multi_slide_vjp(&k, force);
  sn_zero(normal_bar, 3);
  if (!normal) {
    sn_push(own, &cut, k.p, force);
  } else {
    sn_real out[3];
    sn_scale3(out, normal, swapped ? SN_R(1.0) : SN_R(-1.0));
    multi_push_line(&k, out, force, own, normal_bar);
    if (!swapped) sn_scale3(normal_bar, normal_bar, -1);
    sn_cross(back, normal, normal_bar);
    sn_subfrom3(on_clip, back);
  }

  // the rest of the common motion's wrench
  const SnShape body = {.pos = k.clip->pos, .mat = k.clip->mat, .size = k.clip->size};
  for (int i = 0; i < 6; ++i) on_cut[i] += own[i];
  sn_scale3(back, own + 3, -1);
  sn_push(on_clip, &body, con->pos, bar->pos);
  sn_turn(on_clip, con->frame, bar->normal);
  sn_push(on_clip, &body, k.cut->pos, back);
  sn_subfrom3(on_clip, own);
}
