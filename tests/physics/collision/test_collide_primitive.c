// Closed-form pairs against MuJoCo: the same number of contacts, in the same order, with the same distance, point
// and frame, in random, aligned and degenerate configurations.
#include <stdio.h>

#include "physics/collision/collision.h"
#include "tests/support/convex_scene.h"
#include "tests/support/tolerance.h"

typedef struct Case {
  const char *name;
  const char *geom1, *geom2;  // type and size, geom 1 before geom 2 in MuJoCo's order of types
  double near;                // distance of the centres at which the two about touch
} Case;

static const Case cases[] = {
    {"plane sphere", "plane' size='1 1 1", "sphere' size='.1", .1},
    {"plane capsule", "plane' size='1 1 1", "capsule' size='.1 .2", .2},
    {"plane cylinder", "plane' size='1 1 1", "cylinder' size='.1 .2", .2},
    {"plane flat cylinder", "plane' size='1 1 1", "cylinder' size='.3 .05", .15},
    {"plane box", "plane' size='1 1 1", "box' size='.1 .15 .2", .15},
    {"plane ellipsoid", "plane' size='1 1 1", "ellipsoid' size='.1 .15 .2", .15},
    {"plane mesh", "plane' size='1 1 1", "mesh' mesh='hull", .15},
    {"plane cube mesh", "plane' size='1 1 1", "mesh' mesh='cube", .15},
    {"plane prism mesh", "plane' size='1 1 1", "mesh' mesh='prism", .15},
    {"plane round mesh", "plane' size='1 1 1", "mesh' mesh='round", .15},
    {"sphere sphere", "sphere' size='.1", "sphere' size='.2", .3},
    {"sphere capsule", "sphere' size='.1", "capsule' size='.1 .2", .3},
    {"sphere cylinder", "sphere' size='.1", "cylinder' size='.15 .2", .3},
    {"small sphere cylinder", "sphere' size='.02", "cylinder' size='.25 .2", .2},
    {"sphere box", "sphere' size='.1", "box' size='.1 .15 .2", .25},
    {"small sphere box", "sphere' size='.01", "box' size='.1 .15 .2", .1},
    {"capsule capsule", "capsule' size='.1 .2", "capsule' size='.05 .3", .25},
    {"equal capsules", "capsule' size='.1 .2", "capsule' size='.1 .2", .2},
    {"thin capsules", "capsule' size='.001 .02", "capsule' size='.0005 .03", .002},
    {"capsule box", "capsule' size='.05 .2", "box' size='.1 .15 .2", .25},
    {"long capsule box", "capsule' size='.02 .5", "box' size='.1 .15 .2", .2},
    {"short capsule box", "capsule' size='.02 .03", "box' size='.1 .1 .1", .12},
    {"box box", "box' size='.1 .15 .2", "box' size='.1 .1 .1", .25},
    {"plates", "box' size='.3 .2 .02", "box' size='.2 .3 .04", .06},
    {"equal cubes", "box' size='.1 .1 .1", "box' size='.1 .1 .1", .2},
};

// Vertices of a prism over n points of a circle, regular or not.
static const char *prism(char *text, int n, double uneven) {
  int k = 0;
  for (int i = 0; i < 2 * n; ++i) {
    const double t = 2 * mjPI * (i % n + uneven * sin(3.0 * (i % n))) / n;
    k += sprintf(text + k, "%.9g %.9g %g ", 0.1 * cos(t), 0.1 * sin(t), i < n ? -.05 : .05);
  }
  return text;
}

static void load(SnOracle *o, const Case *c) {
  char xml[8000], prism_text[2000], round_text[2000];
  const int plane = strncmp(c->geom1, "plane", 5) == 0;
  snprintf(
      xml, sizeof xml,
      "<mujoco><option/><default><geom margin='.02' gap='.01'/></default>"
      "<asset>" SN_CONVEX_HULL
      "<mesh name='cube' vertex='.1 .1 .1 -.1 .1 .1 .1 -.1 .1 -.1 -.1 .1 .1 .1 -.1 -.1 .1 -.1 .1 -.1 -.1 -.1 -.1 -.1'/>"
      "<mesh name='prism' vertex='%s'/><mesh name='round' vertex='%s'/>"
      "</asset><worldbody><body name='a' %s>%s<geom type='%s'/></body>"
      "<body name='b'><freejoint/><geom type='%s'/></body></worldbody></mujoco>",
      prism(prism_text, 7, 0.3), prism(round_text, 20, 0), plane ? "mocap='true'" : "", plane ? "" : "<freejoint/>",
      c->geom1, c->geom2);
  sn_oracle_load_string(o, xml);
}

// One of the 24 rotations that map axes to axes.
static void aligned_quat(SnOracle *o, double quat[4]) {
  static const double quarter[4][2] = {{1, 0},
                                       {0.70710678118654752440, 0.70710678118654752440},
                                       {0, 1},
                                       {0.70710678118654752440, -0.70710678118654752440}};
  mju_copy4(quat, (double[4]){1, 0, 0, 0});
  for (int i = 0; i < 3; ++i) {
    const int axis = sn_oracle_pick(o, 3), turn = sn_oracle_pick(o, 4);
    double q[4] = {quarter[turn][0], 0, 0, 0}, r[4];
    q[1 + axis] = quarter[turn][1];
    mju_mulQuat(r, quat, q);
    mju_copy4(quat, r);
  }
}

static void random_quat(SnOracle *o, double quat[4]) {
  for (int i = 0; i < 4; ++i) quat[i] = sn_oracle_uniform(o);
  mju_normalize4(quat);
}

typedef enum Mode { RANDOM, ALIGNED, NEARLY_PARALLEL, LATTICE, MODES } Mode;
static const char *mode_name[MODES] = {"random", "aligned", "nearly parallel", "lattice"};

// Poses of the two bodies: independent; b turned by quarters relative to a; the same and then turned a little; both
// axis aligned at positions on a lattice, so that corners, edges and faces meet exactly.
static void pose(SnOracle *o, const Case *c, Mode mode, double *pos1, double *quat1, double *pos2, double *quat2) {
  double quarter[4], tilt[4], dir[3], turn[3];
  for (int i = 0; i < 3; ++i) pos1[i] = mode == LATTICE ? 0 : 0.3 * sn_oracle_uniform(o);
  if (mode == LATTICE)
    aligned_quat(o, quat1);
  else
    random_quat(o, quat1);
  aligned_quat(o, quarter);
  mju_mulQuat(quat2, quat1, quarter);
  if (mode == RANDOM) random_quat(o, quat2);
  if (mode == NEARLY_PARALLEL) {
    for (int i = 0; i < 3; ++i) turn[i] = sn_oracle_uniform(o);
    mju_axisAngle2Quat(tilt, turn, pow(10, -1 - 5 * (1 + sn_oracle_uniform(o))));
    double r[4];
    mju_mulQuat(r, quat2, tilt);
    mju_copy4(quat2, r);
    mju_normalize4(quat2);
  }
  for (int i = 0; i < 3; ++i) dir[i] = sn_oracle_uniform(o);
  mju_normalize3(dir);
  const double far = c->near * (0.5 + 0.6 * (1 + sn_oracle_uniform(o)));
  for (int i = 0; i < 3; ++i) pos2[i] = pos1[i] + far * dir[i];
  if (mode == LATTICE)
    for (int i = 0; i < 3; ++i) pos2[i] = pos1[i] + 0.5 * c->near * (sn_oracle_pick(o, 5) - 2);
}

// Distances, points and frames agree; if not, text says what differs.
static bool agree(const mjContact *a, const SnContact *b, char *text, size_t size) {
  double worst = fabs(a->dist - (double)b->dist);
  for (int i = 0; i < 3; ++i) worst = sn_larger(worst, fabs(a->pos[i] - (double)b->pos[i]));
  for (int i = 0; i < 9; ++i) worst = sn_larger(worst, fabs(a->frame[i] - (double)b->frame[i]));
  snprintf(text, size,
           "dist %.12g/%.12g pos %.9g %.9g %.9g/%.9g %.9g %.9g normal %.6g %.6g %.6g/%.6g %.6g %.6g worst %g",
           (double)b->dist, a->dist, (double)b->pos[0], (double)b->pos[1], (double)b->pos[2], a->pos[0], a->pos[1],
           a->pos[2], (double)b->frame[0], (double)b->frame[1], (double)b->frame[2], a->frame[0], a->frame[1],
           a->frame[2], worst);
  return worst < SN_TOL_CONTACT;
}

static void run(const Case *c, Mode mode, int trials, int *differ, int *contacts) {
  SnOracle o;
  load(&o, c);
  o.rng = 7;
  const int plane = o.mj->nmocap;
  *differ = *contacts = 0;
  for (int t = 0; t < trials; ++t) {
    double *q = o.d->qpos;
    if (plane)
      pose(&o, c, mode, o.d->mocap_pos, o.d->mocap_quat, q, q + 3);
    else
      pose(&o, c, mode, q, q + 3, q + 7, q + 10);
    mj_kinematics(o.mj, o.d);
    mj_collision(o.mj, o.d);
    sn_oracle_fill(&o);
    sn_collision(o.m, &o.w, &o.lane);
    char text[500] = "";
    bool same = o.w.ncon[0] == o.d->ncon;
    if (!same) snprintf(text, sizeof text, "%d contacts, MuJoCo %d", o.w.ncon[0], o.d->ncon);
    for (int i = 0; same && i < o.d->ncon; ++i) same = agree(o.d->contact + i, o.w.contact + i, text, sizeof text);
    *contacts += o.d->ncon;
    if (!same && ++*differ <= 2) printf("  %s, %s, trial %d: %s\n", c->name, mode_name[mode], t, text);
  }
  sn_oracle_free(&o);
}

// Where MuJoCo rounds otherwise, what lies aligned is taken otherwise by up to a fifth, and nothing else. In float,
// geoms are rounded, so that which of several equally near points is taken differs: random poses only, and some of them
// (equal areas of a round mesh's face, nearly equal points) may differ.
static void all_pairs(void **state) {
  (void)state;
  int bad = 0;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
    for (Mode mode = 0; mode < SN_TOL(MODES, ALIGNED); mode = (Mode)(mode + 1)) {
      int differ, contacts;
      run(cases + i, mode, 3000, &differ, &contacts);
      printf("%-24s %-16s %5d contacts, %d of 3000 configurations differ\n", cases[i].name, mode_name[mode], contacts,
             differ);
      bad += differ > (mode == RANDOM ? SN_TOL(0, 450) : SN_ALIKE(0, 600));
    }
  assert_int_equal(bad, 0);
}

// Capsules whose axes pass within `gap` of each other at a small angle, inside both or at an end of both: the nearest
// points must be exact to rounding, or the normal, which is that of the gap, is not. (A float holds no such gap.)
static void crossing_capsules(void **state) {
  (void)state;
  if (sizeof(sn_real) == sizeof(float)) skip();
  static const double angles[] = {1.3e-3, 1.3e-2, 0.13, 1}, gap = 1e-9;
  double worst = 0;
  for (int k = 0; k < 200; ++k) {
    const double angle = angles[k % 4], yaw = 0.7 * k, along = k % 8 < 4 ? 0.1 : 0.0003 * k,
                 back = k % 8 < 4 ? 0.1 : -0.03;
    const double a[2] = {cos(yaw), sin(yaw)}, b[2] = {cos(yaw + angle), sin(yaw + angle)};
    char xml[1000];
    snprintf(
        xml, sizeof xml,
        "<mujoco><worldbody><geom type='capsule' size='.01 .1' zaxis='%.17g %.17g 0'/><body pos='%.17g %.17g "
        "%.17g'><freejoint/><geom type='capsule' size='.01 .1' zaxis='%.17g %.17g 0'/></body></worldbody></mujoco>",
        a[0], a[1], along * a[0] + back * b[0], along * a[1] + back * b[1], gap, b[0], b[1]);
    SnOracle o;
    sn_oracle_load_string(&o, xml);
    mj_forward(o.mj, o.d);
    sn_oracle_fill(&o);
    sn_collision(o.m, &o.w, &o.lane);
    assert_int_equal(o.d->ncon, 1);
    assert_int_equal(o.w.ncon[0], 1);
    assert_true(fabs((double)o.w.contact[0].dist - o.d->contact[0].dist) < 1e-15);
    for (int i = 0; i < 3; ++i)
      worst = sn_larger(worst, fabs((double)o.w.contact[0].frame[i] - o.d->contact[0].frame[i]));
    sn_oracle_free(&o);
  }
  print_message("largest error of a normal across %g m: %.2g\n", gap, worst);
  assert_true(worst < 1e-6);  // rounding of the capsules' places, 1e-16, over the gap
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_pairs),
      cmocka_unit_test(crossing_capsules),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
