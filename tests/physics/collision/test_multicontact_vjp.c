// Adjoint of multi-contacts against differences: faces on faces, edges on faces.
#include <stdio.h>

#include "tests/support/convex_pair.h"

// Outward normal of a random face of geom g, or (edge) a direction in which an edge sticks out, in the geom's frame.
static void outward(SnPair *p, int g, bool edge, double *n) {
  SnOracle *o = &p->o;
  const int type = o->m->geom_type[g];
  mju_zero3(n);
  if (type == SN_GEOM_MESH) {
    SnConvex s;
    const SnShape shape = sn_shape(o->m, &o->w, g);
    sn_convex_init(&s, o->m, &shape, 0);
    const int a = sn_oracle_pick(o, s.npoly);
    for (int k = 0; k < 3; ++k) n[k] = (double)s.polynormal[3 * a + k];
    // between two faces that have an edge in common
    for (int b = sn_oracle_pick(o, s.npoly), tries = 0; edge && tries < 2 * s.npoly; b = (b + 1) % s.npoly, ++tries) {
      int common = 0;
      for (int i = 0; i < s.polynum[a]; ++i)
        for (int j = 0; j < s.polynum[b]; ++j) common += s.polyvert[s.polyadr[a] + i] == s.polyvert[s.polyadr[b] + j];
      if (common != 2) continue;
      const double t = 0.5 + 0.3 * sn_oracle_uniform(o);
      for (int k = 0; k < 3; ++k) n[k] += t * ((double)s.polynormal[3 * b + k] - n[k]);
      break;
    }
  } else if (type == SN_GEOM_BOX) {
    const int k = sn_oracle_pick(o, 3);
    n[k] = sn_oracle_pick(o, 2) ? 1 : -1;
    if (edge) n[(k + 1) % 3] = 0.5 + 0.4 * sn_oracle_uniform(o);
  } else if (edge) {
    n[0] = sn_oracle_uniform(o);
    n[1] = sn_oracle_uniform(o);
  } else {
    n[2] = sn_oracle_pick(o, 2) ? 1 : -1;
  }
  mju_normalize3(n);
}

// Turns geom g so that its direction n becomes the z axis times `sign`, but for a random turn about it and up to `most`
// [rad].
static void orient(SnPair *p, int g, const double *n, double sign, double most) {
  double *mat = p->mat + 9 * g, r[9], other[3], axis[3], q[4], turn[9];
  for (int i = 0; i < 3; ++i) other[i] = sn_oracle_uniform(&p->o);
  mju_scl3(r + 6, n, sign);
  mju_cross(r, other, n);
  mju_normalize3(r);
  mju_cross(r + 3, r + 6, r);
  for (int i = 0; i < 3; ++i) axis[i] = sn_oracle_uniform(&p->o);
  mju_normalize3(axis);
  mju_axisAngle2Quat(q, axis, most * sn_oracle_uniform(&p->o));
  mju_quat2Mat(turn, q);
  mju_mulMatMat(mat, turn, r, 3, 3, 3);
}

static bool sample_flat(void *context) {
  SnPair *p = context;
  SnOracle *o = &p->o;
  for (int tries = 0; tries < 200; ++tries) {
    sn_pair_sizes(p);
    const bool capsule = o->m->geom_type[0] == SN_GEOM_CAPSULE, first = capsule || sn_oracle_pick(o, 2);
    double n[3];
    outward(p, 0, p->wanted == 2 && first, n);
    orient(p, 0, n, 1, 0.035);
    outward(p, 1, p->wanted == 2 && !first, n);
    orient(p, 1, n, -1, 0.035);
    mju_zero(p->pos, 6);
    p->pos[5] = 3;
    sn_pair_approach(p, (const double[3]){0, 0, 1});
    for (int k = 3; k < 5; ++k) p->pos[k] = 0.03 * sn_oracle_uniform(o);
    sn_pair_place(p, NULL);
    p->count = sn_pair_collide(p, p->base);
    if (p->count < 1) continue;
    p->which = sn_oracle_pick(o, p->count);
    const int feature = p->base[p->which].feature;
    if ((p->wanted == 1) == (feature == SN_FEATURE_FACES) && feature != SN_FEATURE_NEAREST) {
      double y[SN_PAIR_NY], off = 0;
      if (!sn_pair_forward(p, NULL, y)) continue;
      for (int k = 0; k < 3; ++k) off = sn_larger(off, fabs(y[1 + k] - (double)p->base[p->which].pos[k]));
      assert_true(isfinite(off));
      // a cylinder's line: nearest points on the same face, and the line there
      const int max = p->max;
      SnContact near;
      p->max = 1;
      const bool found = sn_pair_collide(p, &near) == 1;
      p->max = max;
      if (p->line && (!found || sn_dist3(near.frame, p->base[p->which].frame) > SN_R(1e-3))) continue;
      if (off < 1e-3 && sn_pair_is_smooth(p)) return true;
    }
  }
  return false;
}

// Faces and edges that lie on faces: turned by a few degrees from parallel.
static void check_flat(const char *geom1, const char *geom2) {
  for (int edge = !strcmp(geom1, "capsule"); edge < 2; ++edge) {  // capsules have no face
    char name[100];
    SnPair p = {0};
    sn_pair_load(&p.o, geom1, geom2);
    p.geom[1] = 1;
    p.o.m->opt.ccd_tolerance = SN_R(1e-12);
    p.o.m->opt.ccd_iterations = 500;
    snprintf(name, sizeof name, "%s %s, %s", geom1, geom2, edge ? "edges on faces" : "faces");
    p.name = name;
    p.nearest = -0.01;
    p.farthest = 0.01;
    p.max = 4;
    p.wanted = edge ? 2 : 1;
    // MuJoCo takes the edge of a cylinder from the support point that GJK found first, which is only roughly on the
    // side of the face; differentiated is what it converges to
    p.line = edge && (strstr(geom1, "cylinder") || !strcmp(geom2, "cylinder")) && strcmp(geom1, "capsule") != 0;
    // a chord that an earlier side has cut is taken for whole, which a face that is nearly flat allows
    const bool cushion = strstr(geom1, "cushion") || strstr(geom2, "cushion");
    p.smoothness = 2e-7;
    p.reach = 0.02;
    const SnGradCase c = {.name = name,
                          .nx = SN_PAIR_NX,
                          .ny = SN_PAIR_NY,
                          .context = &p,
                          .sample = sample_flat,
                          .forward = sn_pair_forward,
                          .adjoint = sn_pair_adjoint,
                          .tolerance = p.line ? 5e-3 : (cushion ? 1e-4 : 1e-6),
                          .samples = 60};
    sn_gradcheck(&c, 1);
    sn_oracle_free(&p.o);
  }
}

// The normal of the upper face of a cushion, in the geom's frame: that of most corners.
static void upper_face(SnPair *p, double *n) {
  const SnShape shape = sn_shape(p->o.m, &p->o.w, 0);
  SnConvex s;
  int most = 0;
  sn_convex_init(&s, p->o.m, &shape, 0);
  for (int i = 0; i < s.npoly; ++i)
    if (s.polynum[i] > s.polynum[most]) most = i;
  for (int k = 0; k < 3; ++k) n[k] = (double)s.polynormal[3 * most + k];
}

// Two cushions, one upon the other, with one contact: where strips of their upper faces meet, which are one polygon
// each.
static bool sample_crossing(void *context) {
  SnPair *p = context;
  const double up[3] = {0, 0, 1};
  double n[3];
  for (int tries = 0; tries < 400; ++tries) {
    upper_face(p, n);
    orient(p, 0, n, 1, 2e-4);
    orient(p, 1, n, -1, 2e-4);
    mju_zero(p->pos, 6);
    p->pos[5] = 3;
    sn_pair_approach(p, up);
    for (int k = 3; k < 5; ++k) p->pos[k] = 0.03 * sn_oracle_uniform(&p->o);
    sn_pair_place(p, NULL);
    p->count = sn_pair_collide(p, p->base);
    if (p->count == 1 && p->base[0].feature == SN_FEATURE_NEAREST && sn_pair_is_smooth(p)) return true;
  }
  return false;
}

// An edge that crosses a diagonal of a face which is not quite flat: there the lines say where the contact is, not the
// face. EPA leaves some points 1e-8 m off the lines, and differences show how that changes.
static void crossing(void **state) {
  (void)state;
  SnPair p = {.name = "cushions, crossing", .nearest = -0.01, .farthest = -0.001, .max = 1, .smoothness = 2e-7};
  sn_pair_load(&p.o, "mesh' mesh='cushion", "mesh' mesh='cushion");
  p.geom[1] = 1;
  p.reach = 0.02;
  p.o.m->opt.ccd_tolerance = SN_R(1e-12);
  p.o.m->opt.ccd_iterations = 500;
  const SnGradCase c = {.name = p.name,
                        .nx = SN_PAIR_NX,
                        .ny = SN_PAIR_NY,
                        .context = &p,
                        .sample = sample_crossing,
                        .forward = sn_pair_forward,
                        .adjoint = sn_pair_adjoint,
                        .tolerance = 1e-2,
                        .samples = 40};
  sn_gradcheck(&c, 1);
  sn_oracle_free(&p.o);
}

// Faces against faces, and edges against faces.
static void multi(void **state) {
  (void)state;
  check_flat("box", "mesh' mesh='hull");
  check_flat("box", "mesh' mesh='cube");
  check_flat("mesh' mesh='cube", "mesh' mesh='cube");
  check_flat("mesh' mesh='hull", "mesh' mesh='hull");
  check_flat("mesh' mesh='cushion", "mesh' mesh='cushion");
  check_flat("box", "mesh' mesh='cushion");
  check_flat("mesh' mesh='cushion", "box");
  check_flat("cylinder", "box");
  check_flat("cylinder", "cylinder");
  check_flat("cylinder", "mesh' mesh='cube");
  check_flat("capsule", "mesh' mesh='cube");
  check_flat("capsule", "mesh' mesh='hull");
  check_flat("capsule", "cylinder");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(multi), cmocka_unit_test(crossing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
