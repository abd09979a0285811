// Adjoints of the colliders: distance, point and frame of every contact of two bodies, apart and overlapping, against
// central differences; degenerate poses stay finite.
#include <math.h>
#include <stdio.h>

#include "physics/collision/collision.h"
#include "physics/dynamics/dynamics.h"
#include "tests/support/convex_scene.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tolerance.h"

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
    {"capsules", "capsule' size='.1 .2", "capsule' size='.05 .3", .25},
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
enum { PAIRS = sizeof pairs / sizeof *pairs, MOST = SN_MAXCON_PAIR, CROWD = 100, OUT = 13 };

// How the geoms are turned: independently; the second from the first by quarters, then a little; by quarters; the
// first, too, and centres on a lattice, so that corners, edges, faces and axes meet exactly.
typedef enum Mode { RANDOM, TILTED, ALIGNED, LATTICE, MODES } Mode;
static const char *mode_name[MODES] = {"", ", tilted", ", aligned", ", lattice"};

typedef enum Range { APART, TOUCHING, DEEP, RANGES } Range;
static const char *range_name[RANGES] = {"apart", "touching", "deep"};
static const double range_from[RANGES] = {1.5, 0.8, 0.05}, range_to[RANGES] = {2.5, 1.2, 0.7};

typedef struct Scene {
  SnOracle o;
  SnGradWorld g;
  const Pair *pair;
  Range range;
  Mode mode;
  int most;                                  // contacts that y has room for
  int ncon, made_by[CROWD], feature[CROWD];  // at the base
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
  s->most = MOST;
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

static void run(SnGradWorld *g) { sn_grad_world_velocities(g); }

// Places geom 0, of a free body or a plane of a mocap body, and geom 1, of a free body.
static void pose(Scene *s, double pos[2][3], double quat[2][4]) {
  const mjModel *mj = s->o.mj;
  mjData *d = s->o.d;
  for (int g = 0, at = 0; g < 2; ++g) {
    const bool mocap = g == 0 && mj->nmocap > 0;
    double *to = mocap ? d->mocap_pos : d->qpos + at, *turn = mocap ? d->mocap_quat : d->qpos + at + 3, back[4], arm[3];
    mju_negQuat(back, mj->geom_quat + 4 * g);
    mju_mulQuat(turn, quat[g], back);
    mju_normalize4(turn);
    mju_rotVecQuat(arm, mj->geom_pos + 3 * g, turn);
    mju_sub3(to, pos[g], arm);
    at += mocap ? 0 : 7;
  }
  sn_grad_world_sample(&s->g);
}

static void note_base(Scene *s) {
  sn_grad_world_move(&s->g, NULL);
  run(&s->g);
  s->ncon = s->g.w.ncon[0];
  assert_true(s->ncon <= s->most);
  for (int i = 0; i < s->ncon; ++i) {
    s->made_by[i] = s->g.w.contact[i].pair;
    s->feature[i] = s->g.w.contact[i].feature;
  }
}

// One of the rotations that map axes to axes.
static void quarters(SnOracle *o, double quat[4]) {
  static const double turn[4][2] = {{1, 0}, {M_SQRT1_2, M_SQRT1_2}, {0, 1}, {M_SQRT1_2, -M_SQRT1_2}};
  mju_copy4(quat, (double[4]){1, 0, 0, 0});
  for (int i = 0; i < 3; ++i) {
    const double *t = turn[sn_oracle_pick(o, 4)];
    double q[4] = {t[0], 0, 0, 0}, r[4];
    q[1 + sn_oracle_pick(o, 3)] = t[1];
    mju_mulQuat(r, quat, q);
    mju_copy4(quat, r);
  }
}

static void draw_pose(Scene *s, double pos[2][3], double quat[2][4]) {
  SnOracle *o = &s->o;
  double q[4], r[4], tilt[3], dir[3];
  random_quat(o, quat[0]);
  if (s->mode == LATTICE) quarters(o, quat[0]);
  quarters(o, q);
  mju_mulQuat(quat[1], quat[0], q);
  if (s->mode == RANDOM) random_quat(o, quat[1]);
  for (int i = 0; i < 3; ++i) tilt[i] = sn_oracle_uniform(o);
  mju_axisAngle2Quat(q, tilt, 0.05 + 0.05 * sn_oracle_uniform(o));
  mju_mulQuat(r, quat[1], q);
  mju_normalize4(r);
  if (s->mode == TILTED) mju_copy4(quat[1], r);
  for (int i = 0; i < 3; ++i) {
    pos[0][i] = s->mode == LATTICE ? 0 : 0.3 * sn_oracle_uniform(o);
    dir[i] = sn_oracle_uniform(o);
  }
  mju_normalize3(dir);
  const double from = range_from[s->range], to = range_to[s->range];
  const double far = s->pair->size * (from + (to - from) * 0.5 * (1 + sn_oracle_uniform(o)));
  for (int i = 0; i < 3; ++i)
    pos[1][i] = pos[0][i] + (s->mode == LATTICE ? 0.5 * s->pair->size * (sn_oracle_pick(o, 5) - 2) : far * dir[i]);
}

static bool sample(void *context) {
  Scene *s = context;
  double pos[2][3], quat[2][4];
  draw_pose(s, pos, quat);
  pose(s, pos, quat);
  note_base(s);
  return s->ncon > 0;
}

// x: tangent of qpos, then a turn and a displacement of each mocap body.
static int dimension(const SnGradWorld *g) { return g->m->nv + 6 * g->m->nmocap; }

static void move(SnGradWorld *g, const double *dx) {
  const int nv = g->m->nv;
  double full[256] = {0};
  assert_true(sn_grad_world_nx(g) <= 256);
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

// Whether a contact is of the pairs that this test is about.
static bool is_closed(const Scene *s, const SnContact *con) {
  const SnCollider c = (SnCollider)s->g.m->cpair_collider[con->pair];
  return c != SN_COLLIDER_CONVEX && !(c == SN_COLLIDER_BOX_BOX && con->cfd == SN_CONTACT_FAR);
}

static bool forward(void *context, const double *dx, double *y) {
  Scene *s = context;
  SnGradWorld *g = &s->g;
  move(g, dx);
  run(g);
  if (g->w.ncon[0] != s->ncon) return false;
  memset(y, 0, sizeof *y * (size_t)(s->most * OUT));
  for (int i = 0; i < s->ncon; ++i, y += OUT) {
    const SnContact *con = g->w.contact + i;
    if (con->pair != s->made_by[i] || con->feature != s->feature[i]) return false;
    if (!is_closed(s, con)) continue;
    y[0] = (double)con->dist;
    for (int k = 0; k < 3; ++k) y[1 + k] = (double)con->pos[k];
    for (int k = 0; k < 9; ++k) y[4 + k] = (double)con->frame[k];
  }
  return true;
}

static void set_bars(const Scene *s, const double *ybar) {
  const SnAdjoint *a = &s->g.a;
  for (int i = 0; i < s->ncon; ++i, ybar += OUT) {
    const bool closed = is_closed(s, s->g.w.contact + i);
    a->con_dist_bar[i] = closed ? (sn_real)ybar[0] : 0;
    for (int k = 0; k < 3; ++k) a->con_pos_bar[3 * i + k] = closed ? (sn_real)ybar[1 + k] : 0;
    for (int k = 0; k < 9; ++k) a->con_frame_bar[9 * i + k] = closed ? (sn_real)ybar[4 + k] : 0;
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
    for (int range = 0; range < RANGES; ++range)
      for (int mode = RANDOM; mode <= ALIGNED; ++mode) {
        char name[64];
        if (mode == ALIGNED && !strstr(pairs[i].name, "capsules")) continue;  // the others are not smooth there
        snprintf(name, sizeof name, "%s, %s%s", pairs[i].name, range_name[range], mode_name[mode]);
        s.range = (Range)range;
        s.mode = (Mode)mode;
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

// Force and torque about the world's origin that the two bodies receive in all.
static void resultant(const Scene *s, const double *xbar, double *force, double *torque) {
  const SnGradWorld *g = &s->g;
  const double *free_bar = xbar, *mocap_bar = xbar + g->m->nv;
  double t[3], r[3];
  mju_zero3(force);
  mju_zero3(torque);
  for (int k = 0; k < g->m->nv / 6; ++k, free_bar += 6) {
    const double *pos = s->o.d->qpos + 7 * k;
    mju_rotVecQuat(t, free_bar + 3, pos + 3);
    mju_cross(r, pos, free_bar);
    mju_addTo3(force, free_bar);
    mju_addTo3(torque, t);
    mju_addTo3(torque, r);
  }
  for (int k = 0; k < g->m->nmocap; ++k, mocap_bar += 6) {
    mju_cross(r, s->o.d->mocap_pos + 3 * k, mocap_bar + 3);
    mju_addTo3(force, mocap_bar + 3);
    mju_addTo3(torque, mocap_bar);
    mju_addTo3(torque, r);
  }
}

// The scene as a whole moves and turns its contacts with it: the forces add up to pos_bar, and the torques to those of
// pos and normal (the tangents, with zero bars here, follow the axes of the world). True for every choice at
// degenerate poses but one: where centres coincide the normal is fixed, `turns` false.
static void check_resultant(Scene *s, const double *ybar, const double *xbar, bool turns) {
  double force[3], torque[3], f[3] = {0}, t[3] = {0}, r[3], size = 1;
  resultant(s, xbar, force, torque);
  for (int i = 0; i < s->ncon; ++i, ybar += OUT) {
    const SnContact *con = s->g.w.contact + i;
    double pos[3], normal[3];
    for (int k = 0; k < 3; ++k) {
      pos[k] = (double)con->pos[k];
      normal[k] = (double)con->frame[k];
    }
    mju_addTo3(f, ybar + 1);
    mju_cross(r, pos, ybar + 1);
    mju_addTo3(t, r);
    mju_cross(r, normal, ybar + 4);
    mju_addTo3(t, r);
  }
  for (int i = 0; i < dimension(&s->g); ++i) size = sn_larger(size, fabs(xbar[i]));
  for (int i = 0; i < 3; ++i)
    if (!(fabs(force[i] - f[i]) <= SN_TOL(1e-10, 2e-3) * size) ||
        (turns && !(fabs(torque[i] - t[i]) <= SN_TOL(1e-10, 2e-3) * size)))
      fail_msg("%s%s: force[%d] %g, %g expected; torque %g, %g expected", s->pair->name, mode_name[s->mode], i,
               force[i], f[i], torque[i], t[i]);
}

static bool centres_coincide(const Scene *s) {
  const bool spheres = s->g.m->geom_type[0] == SN_GEOM_SPHERE || s->g.m->geom_type[0] == SN_GEOM_CAPSULE;
  const bool box = s->g.m->geom_type[1] == SN_GEOM_BOX;
  for (int i = 0; spheres && !box && i < s->ncon; ++i)
    if (s->g.w.contact[i].dist < SN_TOL(1e-10, 1e-6) - s->g.m->geom_size[0] - s->g.m->geom_size[3]) return true;
  return false;
}

// Finite where the shape of a contact is not defined, and right as far as symmetry tells.
static void degenerate(void **state) {
  (void)state;
  for (int i = 0; i < PAIRS; ++i) {
    Scene s;
    load(&s, pairs + i);
    for (int mode = ALIGNED; mode < MODES; ++mode) {
      double largest = 0;
      int contacts = 0, coincide = 0;
      s.mode = (Mode)mode;
      for (int k = 0; k < 200; ++k) {
        double ybar[MOST * OUT], xbar[64] = {0};
        s.range = (Range)(k % RANGES);
        if (!sample(&s)) continue;
        for (int e = 0; e < MOST * OUT; ++e) ybar[e] = e % OUT < 7 ? sn_oracle_uniform(&s.o) : 0;
        adjoint(&s, ybar, xbar);
        for (int e = 0; e < dimension(&s.g); ++e) {
          if (!isfinite(xbar[e]))
            fail_msg("%s%s, %d: gradient[%d] = %g", pairs[i].name, mode_name[mode], k, e, xbar[e]);
          largest = sn_larger(largest, fabs(xbar[e]));
        }
        const bool same = centres_coincide(&s);
        check_resultant(&s, ybar, xbar, !same);
        contacts += s.ncon;
        coincide += same;
        for (int e = 0; e < MOST * OUT; ++e) ybar[e] = sn_oracle_uniform(&s.o);
        adjoint(&s, ybar, xbar);
        for (int e = 0; e < dimension(&s.g); ++e) assert_true(isfinite(xbar[e]));
      }
      printf("%s%s: %d contacts, centres coincide %d times, largest gradient %.3g\n", pairs[i].name, mode_name[mode],
             contacts, coincide, largest);
      assert_true(contacts > 50);
    }
    unload(&s);
  }
}

// The scene of a pair at given poses of its geoms; bars of the first contact.
static void gradient_at(Scene *s, double pos[2][3], double quat[2][4], const double *ybar, double *xbar) {
  double all[MOST * OUT] = {0};
  pose(s, pos, quat);
  note_base(s);
  assert_true(s->ncon > 0);
  memcpy(all, ybar, sizeof *ybar * OUT);
  memset(xbar, 0, sizeof *xbar * 64);
  adjoint(s, all, xbar);
}

static void close_to(double value, double expected, double tolerance) {
  if (!(fabs(value - expected) <= tolerance)) fail_msg("%.17g, %.17g expected", value, expected);
}

static const Pair *find(const char *name) {
  for (int i = 0; i < PAIRS; ++i)
    if (strcmp(pairs[i].name, name) == 0) return pairs + i;
  fail_msg("no pair %s", name);
  return NULL;
}

// The choices at non-smooth points, as the functions' headers state them.
static void choices(void **state) {
  (void)state;
  Scene s;
  double xbar[64], force[3];
  double origin[2][3] = {{0}}, unit[2][4] = {{1, 0, 0, 0}, {1, 0, 0, 0}};
  const double dist[OUT] = {1}, point[OUT] = {0, 1, 2, 3}, tangent[OUT] = {0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6};

  load(&s, find("sphere sphere"));  // coinciding centres: the normal, here x, is fixed
  gradient_at(&s, origin, unit, dist, xbar);
  for (int k = 0; k < 3; ++k) {
    close_to(xbar[k], k == 0 ? -1 : 0, SN_TOL(1e-15, 1e-6));
    close_to(xbar[6 + k], k == 0 ? 1 : 0, SN_TOL(1e-15, 1e-6));
  }
  gradient_at(&s, origin, unit, point, xbar);
  for (int k = 0; k < 3; ++k) {
    close_to(xbar[k], k == 0 ? point[1] / 2 : point[1 + k], SN_TOL(1e-15, 1e-6));
    close_to(xbar[6 + k], k == 0 ? point[1] / 2 : 0, SN_TOL(1e-15, 1e-6));
  }
  unload(&s);

  load(&s, find("small sphere box"));  // the centre in the middle of the box: out by the face that made the contact
  gradient_at(&s, origin, unit, dist, xbar);
  for (int k = 0; k < 3; ++k) close_to(xbar[k], -(double)s.g.w.contact[0].frame[k], SN_TOL(1e-15, 1e-6));
  close_to(mju_norm3(xbar), 1, SN_TOL(1e-15, 1e-6));
  unload(&s);

  load(&s, find("plane capsule"));  // upright: the tangents turn with the plane, but not about the normal
  double above[2][3] = {{0, 0, 0}, {0.1, 0.2, 0.3}};
  gradient_at(&s, above, unit, tangent, xbar);
  double t[3], torque[3], both[3];
  for (int k = 0; k < 3; ++k) t[k] = (double)s.g.w.contact[0].frame[3 + k];
  mju_cross(both, t, tangent + 7);
  for (int k = 0; k < 3; ++k) t[k] = (double)s.g.w.contact[0].frame[6 + k];
  mju_cross(torque, t, tangent + 10);
  mju_addTo3(both, torque);
  for (int k = 0; k < 6; ++k) close_to(xbar[k], 0, SN_TOL(1e-15, 1e-6));
  for (int k = 0; k < 3; ++k) close_to(xbar[6 + k], k < 2 ? both[k] : 0, SN_TOL(1e-12, 1e-5));
  unload(&s);

  load(&s, find("plane cylinder"));  // on its cap: the points are fixed to the cylinder
  gradient_at(&s, above, unit, point, xbar);
  resultant(&s, xbar, force, torque);
  double arm[3], own[3], turn[3], at[3], push[3] = {point[1], point[2], point[3] / 2};  // half of the height counts
  for (int k = 0; k < 3; ++k) at[k] = (double)s.g.w.contact[0].pos[k];
  at[2] += (double)s.g.w.contact[0].dist / 2;
  mju_sub3(arm, at, s.o.d->qpos);
  mju_cross(own, arm, push);
  mju_rotVecQuat(turn, xbar + 3, s.o.d->qpos + 3);
  for (int k = 0; k < 3; ++k) {
    close_to(xbar[k], push[k], SN_TOL(1e-12, 1e-5));
    close_to(turn[k], own[k], SN_TOL(1e-12, 1e-5));
  }
  unload(&s);
}

static bool sample_state(void *context) {
  Scene *s = context;
  sn_oracle_randomize(&s->o, 1);
  sn_grad_world_sample(&s->g);
  note_base(s);
  return s->ncon > 0;
}

// Many contacts at random states of a whole model.
static void check_model(Scene *s, const char *name, int samples) {
  s->most = CROWD;
  const SnGradCase c = {.name = name,
                        .nx = dimension(&s->g),
                        .ny = s->most * OUT,
                        .context = s,
                        .sample = sample_state,
                        .forward = forward,
                        .adjoint = adjoint,
                        .samples = samples};
  sn_gradcheck(&c, 3);
  unload(s);
}

// Links in series, geoms of the world and of fixed bodies, a body that carries others; in a world with CFD, too, where
// most contacts are at a distance.
static void trees(void **state) {
  (void)state;
  for (int cfd = 0; cfd < 2; ++cfd) {
    Scene s = {0};
    sn_oracle_load_string(
        &s.o,
        "<mujoco><default><geom margin='.03'/></default><worldbody><geom type='plane' size='5 5 .1' pos='0 0 -.1'/>"
        "<geom type='capsule' size='.05 .4' pos='.3 .1 0' euler='80 10 0'/>"
        "<body pos='0 0 .3'><joint axis='0 1 0'/><joint axis='1 0 .2'/><geom type='capsule' size='.03 .2'/>"
        "<body pos='0 0 .2'><joint axis='0 1 .3'/><geom type='capsule' size='.03 .15' pos='0 .05 .1'/>"
        "<body pos='.1 0 .2'><joint type='ball'/><geom type='sphere' size='.06' pos='.05 0 0'/>"
        "<body pos='.1 .1 0'><geom type='sphere' size='.05'/></body></body></body></body>"
        "<body pos='.2 .3 .2'><freejoint/><geom type='box' size='.1 .08 .06' pos='.02 .03 0'/></body>"
        "<body pos='-.2 -.1 .3'><freejoint/><geom type='capsule' size='.04 .1' pos='.02 .03 0' euler='30 40 0'/></body>"
        "</worldbody></mujoco>");
    sn_grad_world_init(&s.g, &s.o);
    if (cfd) *s.g.w.cfd = (SnCfd){.on = 1, .solimp = {0, SN_R(0.1), 1, SN_R(0.5), 2}, .width = SN_R(0.002)};
    check_model(&s, cfd ? "trees, CFD" : "trees", 20);
  }
}

static void hand(void **state) {
  (void)state;
  Scene s = {0};
  sn_oracle_load_myosuite(&s.o, "envs/myo/assets/hand/myohand_baoding.xml");
  sn_grad_world_init(&s.g, &s.o);
  check_model(&s, "MyoHand with two balls", 6);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(smooth), cmocka_unit_test(degenerate), cmocka_unit_test(choices),
                                     cmocka_unit_test(trees), cmocka_unit_test(hand)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
