// Adjoints of the colliders: distance, point and frame of every contact of two bodies, apart and overlapping, against
// central differences; degenerate poses stay finite.
#include <stdio.h>
#include <stdlib.h>

#include "physics/vec.h"
#include "tests/harness/convex_scene.h"
#include "tests/harness/gradcheck.h"

typedef struct Pair {
  const char *name;
  const char *geom1, *geom2;  // type and size
  double size;                // distance of the centres at which the two about touch
} Pair;

static const Pair pairs[] = {
    {"plane sphere", "plane' size='1 1 1", "sphere' size='.1", .1},
    {"plane capsule", "plane' size='1 1 1", "capsule' size='.1 .2", .2},
    {"plane cylinder", "plane' size='1 1 1", "cylinder' size='.1 .2", .2},
    {"plane box", "plane' size='1 1 1", "box' size='.1 .15 .2", .15},
    {"plane ellipsoid", "plane' size='1 1 1", "ellipsoid' size='.1 .15 .2", .15},
    {"plane mesh", "plane' size='1 1 1", "mesh' mesh='hull", .15},
    {"sphere sphere", "sphere' size='.1", "sphere' size='.2", .3},
    {"sphere capsule", "sphere' size='.1", "capsule' size='.1 .2", .3},
    {"sphere cylinder", "sphere' size='.1", "cylinder' size='.15 .2", .3},
    {"small sphere cylinder", "sphere' size='.02", "cylinder' size='.25 .2", .2},
    {"capsule capsule", "capsule' size='.1 .2", "capsule' size='.05 .3", .25},
    {"sphere box", "sphere' size='.1", "box' size='.1 .15 .2", .25},
    {"small sphere box", "sphere' size='.01", "box' size='.1 .15 .2", .1},
    {"capsule box", "capsule' size='.05 .2", "box' size='.1 .15 .2", .25},
    {"long capsule box", "capsule' size='.02 .5", "box' size='.1 .15 .2", .2},
    {"short capsule box", "capsule' size='.02 .03", "box' size='.1 .1 .1", .12},
    {"box box", "box' size='.1 .15 .2", "box' size='.1 .1 .1", .25},
    {"plates", "box' size='.3 .2 .02", "box' size='.2 .3 .04", .06},
    {"rods", "box' size='.01 .4 .01", "box' size='.3 .01 .01", .03},
    {"long capsules", "capsule' size='.02 .5", "capsule' size='.03 .4", .1},
};
enum { PAIRS = sizeof pairs / sizeof *pairs, MOST = SN_MAXCON_PAIR, OUT = 13 };

typedef enum Range { APART, TOUCHING, DEEP, RANGES } Range;
static const char *range_name[RANGES] = {"apart", "touching", "deep"};
static const double range_from[RANGES] = {1.5, 0.8, 0.05}, range_to[RANGES] = {2.5, 1.2, 0.7};

typedef struct Scene {
  SnOracle o;
  SnGradWorld g;
  const Pair *pair;
  Range range;
  int ncon, feature[MOST];  // at the base
} Scene;

// Geoms that touch at 1 m, off the centres of mass of their bodies.
static void load(Scene *s, const Pair *p) {
  char xml[4000];
  const bool plane = strncmp(p->geom1, "plane", 5) == 0;
  snprintf(xml, sizeof xml,
           "<mujoco><default><geom margin='.5' pos='.02 -.03 .01' euler='20 -30 50'/></default><asset>" SN_CONVEX_HULL
           "</asset><worldbody><body name='a' %s>%s<geom type='%s'/></body><body name='b'><freejoint/><geom type='%s'/>"
           "<geom size='.1' pos='.2 .3 .1' contype='0' conaffinity='0'/></body></worldbody></mujoco>",
           plane ? "mocap='true'" : "", plane ? "" : "<freejoint/>", p->geom1, p->geom2);
  memset(s, 0, sizeof *s);
  s->pair = p;
  sn_oracle_load_string(&s->o, xml);
  sn_grad_world_init(&s->g, &s->o);
}

static void unload(Scene *s) {
  sn_grad_world_free(&s->g);
  sn_oracle_free(&s->o);
}

static void random_quat(SnOracle *o, double *quat) {
  for (int i = 0; i < 4; ++i) quat[i] = sn_oracle_uniform(o);
  mju_normalize4(quat);
}

static void run(SnGradWorld *g) {
  sn_kinematics(g->m, &g->w, &g->lane);
  sn_com_pos(g->m, &g->w, &g->lane);
  sn_tendon(g->m, &g->w, &g->lane);
  sn_collision(g->m, &g->w, &g->lane);
  sn_transmission(g->m, &g->w, &g->lane);
  sn_velocity(g->m, &g->w, &g->lane);
}

// Poses of the bodies a (free, or a mocap body that carries a plane) and b.
static void pose(Scene *s, const double *pos1, const double *quat1, const double *pos2, const double *quat2) {
  mjData *d = s->o.d;
  const bool plane = s->g.m->nmocap > 0;
  mju_copy3(plane ? d->mocap_pos : d->qpos, pos1);
  mju_copy4(plane ? d->mocap_quat : d->qpos + 3, quat1);
  mju_copy3(d->qpos + (plane ? 0 : 7), pos2);
  mju_copy4(d->qpos + (plane ? 3 : 10), quat2);
  sn_grad_world_sample(&s->g);
}

static void note_base(Scene *s) {
  sn_grad_world_move(&s->g, NULL);
  run(&s->g);
  s->ncon = s->g.w.ncon[0];
  for (int i = 0; i < s->ncon; ++i) s->feature[i] = s->g.w.contact[i].feature;
}

static bool sample(void *context) {
  Scene *s = context;
  double pos1[3], quat1[4], pos2[3], quat2[4], dir[3];
  random_quat(&s->o, quat1);
  random_quat(&s->o, quat2);
  for (int i = 0; i < 3; ++i) {
    pos1[i] = 0.3 * sn_oracle_uniform(&s->o);
    dir[i] = sn_oracle_uniform(&s->o);
  }
  mju_normalize3(dir);
  const double from = range_from[s->range], to = range_to[s->range];
  const double far = s->pair->size * (from + (to - from) * 0.5 * (1 + sn_oracle_uniform(&s->o)));
  for (int i = 0; i < 3; ++i) pos2[i] = pos1[i] + far * dir[i];
  pose(s, pos1, quat1, pos2, quat2);
  note_base(s);
  return s->ncon > 0;
}

// x: tangent of qpos, then a turn and a displacement of each mocap body.
static int dimension(const SnGradWorld *g) { return g->m->nv + 6 * g->m->nmocap; }

static void move(SnGradWorld *g, const double *dx) {
  const int nv = g->m->nv;
  double full[64] = {0};
  memcpy(full, dx, sizeof *dx * (size_t)nv);
  sn_grad_world_move(g, full);
  for (int i = 0; i < g->m->nmocap; ++i) {
    const double *turn = dx + nv + 6 * i;
    double local[3], back[4], quat[4];
    for (int k = 0; k < 4; ++k) quat[k] = (double)g->w.mocap_quat[4 * i + k];
    mju_negQuat(back, quat);
    mju_rotVecQuat(local, turn, back);
    mju_quatIntegrate(quat, local, 1);
    for (int k = 0; k < 4; ++k) g->w.mocap_quat[4 * i + k] = (sn_real)quat[k];
    for (int k = 0; k < 3; ++k) g->w.mocap_pos[3 * i + k] += (sn_real)turn[3 + k];
  }
}

static bool forward(void *context, const double *dx, double *y) {
  Scene *s = context;
  SnGradWorld *g = &s->g;
  move(g, dx);
  run(g);
  if (g->w.ncon[0] != s->ncon) return false;
  memset(y, 0, sizeof *y * MOST * OUT);
  for (int i = 0; i < s->ncon; ++i, y += OUT) {
    const SnContact *con = g->w.contact + i;
    if (con->feature != s->feature[i]) return false;
    y[0] = (double)con->dist;
    for (int k = 0; k < 3; ++k) y[1 + k] = (double)con->pos[k];
    for (int k = 0; k < 9; ++k) y[4 + k] = (double)con->frame[k];
  }
  return true;
}

static void set_bars(const Scene *s, const double *ybar) {
  const SnAdjoint *a = &s->g.a;
  for (int i = 0; i < s->ncon; ++i, ybar += OUT) {
    a->con_dist_bar[i] = (sn_real)ybar[0];
    for (int k = 0; k < 3; ++k) a->con_pos_bar[3 * i + k] = (sn_real)ybar[1 + k];
    for (int k = 0; k < 9; ++k) a->con_frame_bar[9 * i + k] = (sn_real)ybar[4 + k];
  }
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  Scene *s = context;
  SnGradWorld *g = &s->g;
  sn_grad_world_move(g, NULL);
  run(g);
  sn_adjoint_clear(g->m, &g->a, &g->lane);
  set_bars(s, ybar);
  sn_collision_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_kinematics_vjp(g->m, &g->w, &g->a, &g->lane);
  for (int i = 0; i < g->m->nv; ++i) xbar[i] += (double)g->a.qpos_bar[i];
  for (int i = 0; i < 6 * g->m->nmocap; ++i) xbar[g->m->nv + i] += (double)g->a.mocap_bar[i];
}

static void smooth(void **state) {
  (void)state;
  for (int i = 0; i < PAIRS; ++i) {
    Scene s;
    load(&s, pairs + i);
    for (int range = 0; range < RANGES; ++range) {
      char name[64];
      snprintf(name, sizeof name, "%s, %s", pairs[i].name, range_name[range]);
      s.range = (Range)range;
      const SnGradCase c = {.name = name,
                            .nx = dimension(&s.g),
                            .ny = MOST * OUT,
                            .context = &s,
                            .sample = sample,
                            .forward = forward,
                            .adjoint = adjoint,
                            .samples = 30};
      sn_gradcheck(&c, 7);
    }
    unload(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(smooth)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
