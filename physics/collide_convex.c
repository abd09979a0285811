// Contacts of two convex geoms, one or both without a closed form.
//
// A margin, the radius of a sphere and that of a capsule only offset a surface along its normal: they are left out
// first (the shapes shrink to point, segment or bare geom), GJK finds the distance of what is left, and the witness
// points are moved outwards again. This is exact and covers all contacts inside a margin. Only where the shrunken
// shapes overlap does EPA look for the depth, with everything put back.
//
// Pairs of ellipsoids take this path too, not Newton's method: MuJoCo's distance is that of the optimum to 1e-9 m at
// tight tolerances, but its normal is off by up to 3e-5 and at default tolerances its depth by up to 4e-4 m, so to
// agree is to take the same steps. smooth.c has the exact answer, which a derivative should start from.
#include "physics/ccd.h"
#include "physics/collide.h"
#include "physics/vec.h"

// Takes margin and radius off a shape; returns by how much it shrank.
SN_LOCAL sn_real convex_shrink(SnConvex *s) {
  sn_real off = SN_R(0.5) * s->margin;
  s->margin = 0;
  if (s->type == SN_GEOM_SPHERE) {
    off += s->size[0];
    s->support = SN_SUPPORT_POINT;
  } else if (s->type == SN_GEOM_CAPSULE) {
    off += s->size[0];
    s->support = SN_SUPPORT_LINE;
  }
  return off;
}

// Puts a shape back, but for what it has learned.
SN_LOCAL void convex_restore(SnConvex *s, sn_real margin, SnSupport support) {
  s->margin = margin;
  s->support = support;
}

// Moves the witness points outwards by off1, off2.
SN_LOCAL void convex_inflate(SnCcd *c, sn_real off1, sn_real off2) {
  if (off1 == 0 && off2 == 0) return;
  sn_real n[3];
  sn_sub3(n, c->x2, c->x1);
  sn_normalize3(n);
  sn_addtoscl3(c->x1, n, off1);
  sn_addtoscl3(c->x2, n, -off2);
  c->dist[0] -= off1 + off2;
}

SN_LOCAL sn_real convex_least(const SnCcd *c) {
  sn_real least = c->dist[0];
  for (int i = 1; i < c->nx; ++i) least = sn_min(c->dist[i], least);
  return least;
}

SN_LOCAL void convex_guess(SnCcd *c) {
  sn_copy3(c->x1, c->a.pos);
  sn_copy3(c->x2, c->b.pos);
}

// Depth of overlapping shapes.
SN_LOCAL void convex_penetration(SnCcd *c, int max) {
  SnEpa polytope;
  c->dist[0] = 0;
  if (!sn_epa_start(c, &polytope)) return;
  if (sn_epa(c, &polytope) && max > 1) c->nx = sn_multicontact(c, max);
}

SN_LOCAL bool convex_is_round(const SnConvex *s) { return s->type == SN_GEOM_SPHERE || s->type == SN_GEOM_CAPSULE; }

SN_FUNC sn_real sn_ccd(SnCcd *c, int max) {
  convex_guess(c);
  if (convex_is_round(&c->a) || convex_is_round(&c->b) || c->a.margin > 0 || c->b.margin > 0) {
    const sn_real margin1 = c->a.margin, margin2 = c->b.margin, cutoff = c->cutoff;
    const SnSupport support1 = c->a.support, support2 = c->b.support;
    const sn_real off1 = convex_shrink(&c->a), off2 = convex_shrink(&c->b);
    c->cutoff += off1 + off2;
    sn_gjk(c);
    c->cutoff = cutoff;
    convex_restore(&c->a, margin1, support1);
    convex_restore(&c->b, margin2, support2);
    if (c->dist[0] > sn_max(c->tolerance, SN_CCD_SHALLOW)) {
      if (c->nx) convex_inflate(c, off1, off2);
      if (c->dist[0] > cutoff) {
        c->nx = 0;
        return c->dist[0] = SN_CCD_FAR;
      }
      if (c->dist[0] < 0 && max > 1) c->nx = sn_multicontact(c, max);
      return convex_least(c);
    }
    convex_guess(c);
  }
  sn_gjk(c);
  if (c->dist[0] <= sn_max(c->tolerance, SN_CCD_SHALLOW) && c->n > 1 && !c->separated) convex_penetration(c, max);
  return convex_least(c);
}

SN_FUNC int sn_collide_convex(const SnModel *m, SnWorld *w, int g1, int g2, sn_real margin, SnContact *con, int max) {
  SnCcd c;
  sn_convex_init(&c.a, m, w, g1, margin);
  sn_convex_init(&c.b, m, w, g2, margin);
  c.tolerance = sn_max(m->opt.ccd_tolerance, SN_CCD_TOLERANCE);
  c.iterations = m->opt.ccd_iterations;
  c.cutoff = 0;
  if (!(sn_ccd(&c, max) < 0)) return 0;
  const int n = sn_mini(c.nx, max);
  for (int i = 0; i < n; ++i) {
    const sn_real *x1 = c.x1 + 3 * i, *x2 = c.x2 + 3 * i;
    con[i].dist = margin + c.dist[i];
    con[i].feature = 0;
    sn_add3(con[i].pos, x1, x2);
    sn_scale3(con[i].pos, con[i].pos, SN_R(0.5));
    sn_zero(con[i].frame, 9);
    sn_sub3(con[i].frame, x1, x2);
    sn_normalize3(con[i].frame);
  }
  return n;
}
