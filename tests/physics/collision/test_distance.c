// The distance of two geoms against MuJoCo's mj_geomDistance: every pair of types, apart, in each other and about to
// touch, and all of a hand with an object; nearest points that two planes prove; limits, other orders, refusals.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "physics/collision/collision.h"
#include "physics/collision/convex_private.h"
#include "physics/dynamics/dynamics.h"
#include "tests/support/convex_scene.h"
#include "tests/support/tolerance.h"

static const char *const names[] = {"plane", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh"};

enum { SEED = 17, TYPES = 7, SAMPLES = 300, PLANE = 0, CAPSULE = 2, ELLIPSOID = 3, BOX = 5, MESH = 6 };

static const char *const geom_text[TYPES] = {
    "plane' size='1 1 1",      "sphere' size='.1",      "capsule' size='.06 .12", "ellipsoid' size='.06 .1 .15",
    "cylinder' size='.08 .12", "box' size='.06 .1 .14", "mesh' mesh='hull"};

// Two geoms of each type, 2 i and 2 i + 1. The test alone moves them.
static void load(SnOracle *o) {
  char xml[4000] =
      "<mujoco><asset>" SN_CONVEX_HULL
      "</asset><worldbody><geom type='plane' size='1 1 1'/><geom name='second' type='plane' size='1 1 1'/>";
  for (int i = 1; i < TYPES; ++i)
    for (int k = 0; k < 2; ++k) {
      char body[200];
      snprintf(body, sizeof body, "<body><freejoint/><geom type='%s'/></body>", geom_text[i]);
      strcat(xml, body);
    }
  strcat(xml, "</worldbody></mujoco>");
  sn_oracle_load_string(o, xml);
  o->rng = SEED;
}

// Puts a geom anywhere, in MuJoCo and here.
static void place(SnOracle *o, int geom, double far, SnPlacedGeom *g) {
  double quat[4], *pos = o->d->geom_xpos + 3 * geom, *mat = o->d->geom_xmat + 9 * geom;
  for (int i = 0; i < 4; ++i) quat[i] = sn_oracle_uniform(o);
  mju_normalize4(quat);
  mju_quat2Mat(mat, quat);
  for (int i = 0; i < 3; ++i) pos[i] = far * sn_oracle_uniform(o);
  g->geom = geom;
  for (int i = 0; i < 3; ++i) g->pos[i] = (sn_real)pos[i];
  for (int i = 0; i < 9; ++i) g->mat[i] = (sn_real)mat[i];
}

static SnDistance distance(const SnOracle *o, const SnPlacedGeom *g1, const SnPlacedGeom *g2, double limit) {
  SnDistance r;
  SnError err;
  if (sn_geom_distance(o->m, g1, g2, (sn_real)limit, &r, &err) != SN_OK) fail_msg("%s", err.text);
  return r;
}

// to - from = dist normal, and the normal is of unit length.
static void check_form(const SnDistance *r) {
  assert_true(fabs((double)sn_norm3(r->normal) - 1) <= SN_TOL(1e-12, 1e-5));
  for (int i = 0; i < 3; ++i)
    assert_true(fabs((double)(r->to[i] - r->from[i] - r->dist * r->normal[i])) <= SN_TOL(1e-12, 1e-5));
}

// How far a nearest point is from the plane with normal `out` that supports its shape. Where that is zero for both,
// the distance of the planes is a lower bound of the distance of the shapes, and an upper one of their depth.
static double unsupported(const SnOracle *o, const SnPlacedGeom *g, const sn_real *point, const sn_real *out) {
  const SnShape shape = {g->pos, g->mat, o->m->geom_size + 3 * g->geom, g->geom};
  SnConvex s;
  sn_real x[3];
  if (o->m->geom_type[g->geom] == SN_GEOM_PLANE) {
    sn_sub3(x, point, g->pos);
    return fabs((double)(x[0] * g->mat[2] + x[1] * g->mat[5] + x[2] * g->mat[8]));
  }
  sn_convex_init(&s, o->m, &shape, 0);
  sn_support(&s, out, x);
  return fabs((double)(sn_dot3(x, out) - sn_dot3(point, out)));
}

static double proof(const SnOracle *o, const SnPlacedGeom *g1, const SnPlacedGeom *g2, const SnDistance *r) {
  sn_real back[3];
  sn_scale3(back, r->normal, -1);
  return sn_larger(unsupported(o, g1, r->from, r->normal), unsupported(o, g2, r->to, back));
}

// What was seen of a pair of types.
typedef struct Tally {
  int apart, inside, beyond;
  int shallow;                 // MuJoCo's depth is less: a capsule in a box
  int elsewhere;               // its points are others at the same distance: parallel edges and faces
  double dist, points, proof;  // largest differences [m]
} Tally;

static void compare(const SnOracle *o, const SnPlacedGeom *g1, const SnPlacedGeom *g2, double limit, Tally *t) {
  double fromto[6];
  const double ref = mj_geomDistance(o->mj, o->d, g1->geom, g2->geom, limit, fromto);
  const SnDistance r = distance(o, g1, g2, limit);
  if (!r.within) {
    assert_true(ref == limit && r.dist == (sn_real)limit);
    assert_true(sn_norm3(r.normal) == 0 && sn_norm3(r.from) == 0 && sn_norm3(r.to) == 0);
    ++t->beyond;
    return;
  }
  check_form(&r);
  t->proof = sn_larger(t->proof, proof(o, g1, g2, &r));
  ++*(r.dist < 0 ? &t->inside : &t->apart);
  const int types[2] = {o->m->geom_type[g1->geom], o->m->geom_type[g2->geom]};
  const bool rod = types[0] + types[1] == SN_GEOM_CAPSULE + SN_GEOM_BOX && sn_maxi(types[0], types[1]) == SN_GEOM_BOX;
  if (rod && r.dist < -o->m->geom_size[6 * CAPSULE] && ref > (double)r.dist + 1e-6) {
    ++t->shallow;
    return;
  }
  double points = 0;
  for (int i = 0; i < 3; ++i)
    points = sn_larger(points, sn_larger(fabs((double)r.from[i] - fromto[i]), fabs((double)r.to[i] - fromto[3 + i])));
  t->dist = sn_larger(t->dist, fabs((double)r.dist - ref));
  if (points > 1e-3)
    ++t->elsewhere;
  else
    t->points = sn_larger(t->points, points);
}

static void check_tally(const Tally *t, const char *name1, const char *name2) {
  printf(
      "%s, %s: %d apart, %d inside, %d beyond, %d shallow, %d elsewhere; distances differ by %.2g m, points by "
      "%.2g, from planes by %.2g\n",
      name1, name2, t->apart, t->inside, t->beyond, t->shallow, t->elsewhere, t->dist, t->points, t->proof);
  assert_true(t->apart > 30 && t->inside > 30 && t->beyond > 0);
  assert_true(t->dist <= SN_TOL(1e-9, 2e-4));
  assert_true(t->points <= SN_TOL(1e-5, 1e-3));
}

// Closed forms and polyhedra agree to rounding. Of curved convex pairs MuJoCo's search ends where the distance is good
// to 1e-12 m or rounding hides the rest, which leaves its points uncertain by about the root of that.
static void every_pair(void **state) {
  (void)state;
  SnOracle o;
  load(&o);
  printf("seed %d\n", SEED);
  for (int i = 0; i < TYPES; ++i)
    for (int j = sn_maxi(i, 1); j < TYPES; ++j) {
      Tally t = {0};
      for (int k = 0; k < SAMPLES; ++k) {
        static const double far[3] = {0.1, 0.2, 0.5};
        SnPlacedGeom g[2];
        place(&o, 2 * i, far[k % 3], g);
        place(&o, 2 * j + 1, far[k % 3], g + 1);
        compare(&o, g + k % 2, g + 1 - k % 2, k % 5 == 0 ? 0.1 : 10, &t);
      }
      check_tally(&t, names[i], names[j]);
      assert_true(t.proof <= SN_TOL(1e-10, 1e-4));
      assert_true(t.elsewhere <= SN_TOL(0, SAMPLES / 10));
      assert_true((t.shallow > 0) == (i == CAPSULE && j == BOX));
    }
  sn_oracle_free(&o);
}

// At any gap, positive, negative or none: two geoms apart are moved towards each other along their normal. Where
// corners or edges meet, another direction may part them sooner than the normal does. In floats EPA loses its way at a
// few corners, for contacts, too.
static void about_to_touch(void **state) {
  (void)state;
  static const double gap[] = {1e-4, 1e-6, 1e-7, 1e-8, 1e-9, 1e-14, 0, -1e-14, -1e-9, -1e-8, -1e-7, -1e-6, -1e-4};
  SnOracle o;
  load(&o);
  double dist = 0, turned = 0, proven = 0;
  int count = 0, lost = 0, round = 0;
  o.m->opt.ccd_tolerance = SN_R(1e-6);  // the default: no result depends on it
  o.m->opt.ccd_iterations = 35;
  for (int k = 0; k < 3000; ++k) {
    SnPlacedGeom g[2];
    const int i = sn_oracle_pick(&o, TYPES), j = 1 + sn_oracle_pick(&o, TYPES - 1);
    place(&o, 2 * i, 0.4, g);
    place(&o, 2 * j + 1, 0.4, g + 1);
    const SnDistance apart = distance(&o, g, g + 1, 10);
    if (apart.dist < SN_R(0.01)) continue;
    const double wanted = gap[k % (int)(sizeof gap / sizeof *gap)];
    for (int e = 0; e < 3; ++e) g[1].pos[e] -= (apart.dist - (sn_real)wanted) * apart.normal[e];
    const SnDistance r = distance(&o, g, g + 1, 10);
    assert_true(r.within);
    check_form(&r);
    const double over = (double)r.dist - wanted;
    const double off = wanted < 0 && r.dist < 0 ? -over : fabs(over);
    ++count;
    if (!(off <= SN_TOL(1e-7, 1e-4)))
      ++lost;
    else
      proven = sn_larger(proven, proof(&o, g, g + 1, &r));
    dist = sn_larger(dist, off);
    if (sn_maxi(i, j) > ELLIPSOID) continue;
    ++round;
    for (int e = 0; e < 3; ++e) turned = sn_larger(turned, fabs((double)(r.normal[e] - apart.normal[e])));
  }
  printf(
      "seed %d: %d pairs about to touch: %d lost, distance off by %.2g m, from planes by %.2g; %d of them round: "
      "normals off by %.2g\n",
      SEED, count, lost, dist, proven, round, turned);
  assert_true(count > 1500 && round > 400);
  assert_true(lost <= SN_TOL(0, count / 100));
  assert_true(proven <= SN_TOL(1e-4, 1e-2));
  assert_true(turned <= SN_TOL(1e-6, 1e-2));
  sn_oracle_free(&o);
}

// The pairs that the model's own filters leave to contacts.
static bool is_candidate(const SnModel *m, int g1, int g2) {
  for (int i = 0; i < m->ncpair; ++i) {
    const int *g = m->cpair_geom + 2 * i;
    if ((g[0] == g1 && g[1] == g2) || (g[0] == g2 && g[1] == g1)) return true;
  }
  return false;
}

static void hand(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_myosuite(&o, "envs/myo/assets/hand/myohand_die.xml");
  o.rng = SEED;
  Tally t = {0};
  int candidates = 0, filtered = 0, unread = 0, left_out = 0;
  for (int k = 0; k < 3; ++k) {
    sn_oracle_randomize(&o, 0);
    mj_kinematics(o.mj, o.d);
    sn_oracle_copy_state(&o);
    sn_kinematics(o.m, &o.w, &o.lane);
    for (int i = 0; i < o.m->ngeom; ++i)
      for (int j = i + 1; j < o.m->ngeom; ++j) {
        SnPlacedGeom g[2] = {{.geom = i}, {.geom = j}};
        SnDistance r;
        SnError err;
        for (int s = 0; s < 2; ++s) sn_geom_pose(o.m, &o.w, g[s].geom, g[s].pos, g[s].mat);
        const SnCode code = sn_geom_distance(o.m, g, g + 1, 1, &r, &err);
        if (code != SN_OK) {
          assert_int_equal(code, SN_ERR_UNSUPPORTED);
          ++left_out;
          continue;
        }
        compare(&o, g, g + 1, 0.1, &t);
        const bool candidate = is_candidate(o.m, i, j);
        candidates += candidate;
        filtered += !candidate;
        unread += !o.m->need_geom[i] || !o.m->need_geom[j];
      }
  }
  printf("%d candidates, %d filtered, %d with a frame that no stage needs, %d refused\n", candidates, filtered, unread,
         left_out);
  check_tally(&t, "hand", "die");
  assert_true(candidates > 1000 && filtered > 1000 && unread > 0 && left_out > 0);
  sn_oracle_free(&o);
}

static void expect(const SnOracle *o, const SnPlacedGeom *g1, const SnPlacedGeom *g2, double limit, SnCode code,
                   const char *text) {
  SnDistance r;
  SnError err;
  assert_int_equal(sn_geom_distance(o->m, g1, g2, (sn_real)limit, &r, &err), code);
  if (!strstr(err.text, text)) fail_msg("'%s' is not in: %s", text, err.text);
}

static void refusals(void **state) {
  (void)state;
  SnOracle o;
  load(&o);
  SnPlacedGeom g[3];
  place(&o, 2 * PLANE, 1, g);
  place(&o, 2 * PLANE + 1, 1, g + 1);
  place(&o, 2 * BOX, 1, g + 2);
  expect(&o, g, g + 1, 1, SN_ERR_UNSUPPORTED, "geom 0 '' (plane) and geom 1 'second' (plane)");
  expect(&o, g, g + 2, (double)NAN, SN_ERR_ARGUMENT, "limit");
  g[2].geom = o.m->ngeom;
  expect(&o, g, g + 2, 1, SN_ERR_ARGUMENT, "geom 14: the model has geoms 0 to 13");
  g[2].geom = -1;
  expect(&o, g + 2, g, 1, SN_ERR_ARGUMENT, "geom -1");
  g[2].geom = 2 * BOX;
  g[2].mat[4] = (sn_real)NAN;
  expect(&o, g, g + 2, 1, SN_ERR_ARGUMENT, "geom 10: position beyond 1e10 m, or no rotation");
  place(&o, 2 * BOX, 1, g + 2);
  for (int i = 0; i < 9; ++i) g[2].mat[i] *= SN_R(1.01);
  expect(&o, g, g + 2, 1, SN_ERR_ARGUMENT, "no rotation");
  place(&o, 2 * BOX, 1, g + 2);
  for (int i = 0; i < 9; ++i) g[2].mat[i] *= -1;
  expect(&o, g, g + 2, 1, SN_ERR_ARGUMENT, "no rotation");
  place(&o, 2 * BOX, 1, g + 2);
  g[2].pos[1] = SN_R(2e10);
  expect(&o, g, g + 2, 1, SN_ERR_ARGUMENT, "geom 10: position");
  place(&o, 2 * MESH, 1, g + 2);
  o.m->mesh_vertnum[0] = 0;  // as the importer leaves a mesh that nothing can touch
  expect(&o, g + 2, g, 1, SN_ERR_UNSUPPORTED, "(mesh)");
  sn_oracle_free(&o);
}

// Below any limit but just not at it; without end; in both orders; a geom and itself.
static void limits(void **state) {
  (void)state;
  SnOracle o;
  load(&o);
  for (int k = 0; k < 400; ++k) {
    SnPlacedGeom g[2];
    const int i = sn_oracle_pick(&o, TYPES), j = 1 + sn_oracle_pick(&o, TYPES - 1);
    place(&o, 2 * i, 0.4, g);
    place(&o, 2 * j + 1, 0.4, g + 1);
    const SnDistance r = distance(&o, g, g + 1, (double)INFINITY), back = distance(&o, g + 1, g, (double)INFINITY);
    const double d = (double)r.dist, near = SN_TOL(1e-9, 1e-4);
    assert_true(r.within && back.within && fabs(d - (double)back.dist) <= near);
    assert_false(distance(&o, g, g + 1, d - near).within);
    const SnDistance above = distance(&o, g, g + 1, d + near);
    assert_true(above.within && fabs((double)above.dist - d) <= near / 2);
    if (i > PLANE) {
      g[1] = g[0];
      g[1].pos[0] += SN_R(1e-3);
      const SnDistance same = distance(&o, g, g + 1, 1);
      assert_true(same.within && same.dist < 0);
      check_form(&same);
    }
  }
  sn_oracle_free(&o);
}

// Two rods that cross, at a pose by thirds of a turn: GJK ends in a triangle as thin as rounding.
static void thin_triangle(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o,
                        "<mujoco><worldbody><body><freejoint/><geom type='cylinder' size='.178255 .557837'/></body>"
                        "<body><freejoint/><geom type='cylinder' size='.178255 .557837'/></body></worldbody></mujoco>");
  const sn_real a = SN_R(0.33333333333333343), b = SN_R(0.66666666666666685);
  const sn_real x = SN_R(0.1756875827241641), y = SN_R(0.26353137408624616);
  const SnPlacedGeom g[2] = {{0, {x, y, y}, {-a, -b, -b, b, a, -b, b, -b, a}},
                             {1, {x, -y, 0}, {-1, 0, 0, 0, 1, 0, 0, 0, -1}}};
  const SnDistance r = distance(&o, g, g + 1, 1);
  check_form(&r);
  assert_true(fabs((double)r.dist - (sqrt(2) * (double)y - 2 * .178255)) <= SN_TOL(1e-12, 1e-5));
  assert_true(proof(&o, g, g + 1, &r) <= SN_TOL(1e-12, 1e-4));
  assert_true(fabs((double)r.normal[0] - sqrt(.5)) <= SN_TOL(1e-12, 1e-4));
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_pair), cmocka_unit_test(about_to_touch),
                                     cmocka_unit_test(hand),       cmocka_unit_test(refusals),
                                     cmocka_unit_test(limits),     cmocka_unit_test(thin_triangle)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
