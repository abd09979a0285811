// Contacts before impact backwards: distance, point and frame as functions of positions and velocities, against
// differences; and accelerations, against those of MuJoCo.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "physics/collision/collision.h"
#include "physics/dynamics/dynamics.h"
#include "physics/step/step.h"
#include "tests/support/gradcheck.h"
#include "tests/support/slow.h"

#define HEAD                                                                                    \
  "<mujoco><option timestep='.01' gravity='0 0 0'><flag speculative='enable'/></option><asset>" \
  "<mesh name='wedge' vertex='.1 0 -.05 -.05 .09 -.05 -.05 -.09 -.05 0 0 .1'/></asset><worldbody>"
#define TAIL "</worldbody></mujoco>"
enum { CONTACTS = 8, NUMBERS = 13 };

typedef struct Foreseen {
  SnGradWorld g;
  double spin, tilt;
  bool plane;
  int ncon, feature[CONTACTS], seen, several;
  double base[CONTACTS * NUMBERS];  // at the base state
} Foreseen;

static void run(Foreseen *k, const double *dx) {
  sn_grad_world_move(&k->g, dx);
  sn_grad_world_velocities(&k->g);
}

static double between(SnOracle *o, double low, double high) {
  return low + (high - low) * (sn_oracle_uniform(o) + 1) / 2;
}

// All numbers of the contacts; false: they are not those of the base.
static bool read_contacts(const Foreseen *k, double *y) {
  const SnWorld *w = &k->g.w;
  if (w->ncon[0] != k->ncon) return false;
  memset(y, 0, sizeof *y * CONTACTS * NUMBERS);
  for (int i = 0; i < k->ncon; ++i) {
    const SnContact *con = w->contact + i;
    if (con->feature != k->feature[i]) return false;
    y[NUMBERS * i] = (double)con->dist;
    for (int e = 0; e < 3; ++e) y[NUMBERS * i + 1 + e] = (double)con->pos[e];
    for (int e = 0; e < 9; ++e) y[NUMBERS * i + 4 + e] = (double)con->frame[e];
  }
  return true;
}

static bool sample(void *context) {
  Foreseen *k = context;
  SnOracle *o = k->g.o;
  sn_oracle_randomize(o, 1);
  for (int b = 1; b < o->mj->nbody; ++b) {
    double *q = o->d->qpos + 7 * (b - 1), *v = o->d->qvel + 6 * (b - 1);
    const bool last = b == o->mj->nbody - 1;
    for (int e = 0; e < 3; ++e) q[e] = .05 * sn_oracle_uniform(o);
    for (int e = 0; e < 3; ++e) v[e] = 10 * sn_oracle_uniform(o);
    q[3] = 1;
    for (int e = 0; e < 3; ++e) q[4 + e] = k->tilt * sn_oracle_uniform(o);
    mju_normalize4(q + 3);
    for (int e = 0; e < 3; ++e) v[3 + e] = k->spin * sn_oracle_uniform(o);
    if (last) {
      q[2] += .6;
      v[2] = -between(o, 70, 110);
    }
  }
  sn_grad_world_sample(&k->g);
  run(k, NULL);
  const SnWorld *w = &k->g.w;
  k->ncon = w->ncon[0];
  if (k->ncon == 0 || k->ncon > CONTACTS) return false;
  for (int i = 0; i < k->ncon; ++i) {
    if (w->contact[i].exclude || w->contact[i].dist < w->contact[i].includemargin) return false;
    k->feature[i] = w->contact[i].feature;
  }
  ++k->seen;
  k->several += k->ncon > 1;
  return read_contacts(k, k->base);
}

// A step of at most 1e-6 that moves a contact by more than a millimetre has led to another choice among corners, or to
// another number of advances.
static bool forward(void *context, const double *dx, double *y) {
  Foreseen *k = context;
  run(k, dx);
  if (!read_contacts(k, y)) return false;
  for (int i = 0; i < CONTACTS * NUMBERS; ++i)
    if (fabs(y[i] - k->base[i]) > 1e-3) return false;
  return true;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  Foreseen *k = context;
  SnGradWorld *g = &k->g;
  run(k, NULL);
  sn_adjoint_clear(g->m, &g->a, &g->lane);
  sn_grad_world_motions(g);
  sn_adjoint_clear_contacts(&g->w, &g->a, &g->lane);
  for (int i = 0; i < k->ncon; ++i) {
    g->a.con_dist_bar[i] = (sn_real)ybar[NUMBERS * i];
    for (int e = 0; e < 3; ++e) g->a.con_pos_bar[3 * i + e] = (sn_real)ybar[NUMBERS * i + 1 + e];
    for (int e = 0; e < 9; ++e) g->a.con_frame_bar[9 * i + e] = (sn_real)ybar[NUMBERS * i + 4 + e];
  }
  sn_collision_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_kinematics_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_grad_world_result(g, xbar);
}

static void check(const char *name, const char *bodies, double tilt, double spin, double step, double tolerance) {
  static Foreseen k;
  char xml[2000];
  SnOracle o;
  memset(&k, 0, sizeof k);
  k.spin = spin;
  k.tilt = tilt;
  snprintf(xml, sizeof xml, HEAD "%s" TAIL, bodies);
  sn_oracle_load_string(&o, xml);
  sn_grad_world_init(&k.g, &o);
  const SnGradCase c = {.name = name,
                        .nx = sn_grad_world_nx(&k.g),
                        .ny = CONTACTS * NUMBERS,
                        .context = &k,
                        .sample = sample,
                        .forward = forward,
                        .adjoint = adjoint,
                        .step = step,
                        .tolerance = tolerance,
                        .samples = sn_draws(12)};
  sn_gradcheck(&c, 1);
  print_message("%s: %d states, %d with several contacts\n", name, k.seen, k.several);
  sn_grad_world_free(&k.g);
  sn_oracle_free(&o);
}

#define PLANE "<geom type='plane' size='1 1 1'/>"
#define BODY(geom) "<body><freejoint/><geom " geom "/></body>"
#define SPHERE "type='sphere' size='.05'"
#define CAPSULE "type='capsule' size='.03 .08'"
#define ELLIPSOID "type='ellipsoid' size='.03 .05 .08'"
#define CYLINDER "type='cylinder' size='.04 .07'"
#define BOX "type='box' size='.08 .05 .03'"
#define WEDGE "type='mesh' mesh='wedge'"

static void planes(void **state) {
  (void)state;
  check("sphere", PLANE BODY(SPHERE " margin='.003'"), 1, 0, 1e-6, 1e-6);
  check("spinning sphere", PLANE BODY(SPHERE), 1, 50, 1e-6, 1e-6);
  check("capsule", PLANE BODY(CAPSULE), 1, 60, 1e-7, 1e-5);
  check("ellipsoid", PLANE BODY(ELLIPSOID), 1, 60, 1e-7, 1e-5);
  check("lying capsule", PLANE BODY(CAPSULE " euler='90 0 0'"), .02, 1, 1e-7, 1e-5);
  check("lying cylinder", PLANE BODY(CYLINDER " euler='90 0 0'"), .02, 1, 1e-7, 1e-5);
  check("box", PLANE BODY(BOX " solref='-2000 -120'"), .5, 60, 1e-7, 1e-5);
  check("box at the last advance", PLANE BODY(BOX), .5, 500, 1e-8, 1e-4);
  check("wedge", PLANE BODY(WEDGE), .5, 60, 1e-7, 1e-5);
}

static void pairs(void **state) {
  (void)state;
  check("spheres", BODY(SPHERE) BODY(SPHERE " margin='.003'"), 1, 30, 1e-7, 1e-5);
  check("box, sphere", BODY(BOX) BODY(SPHERE), 1, 20, 1e-7, 1e-5);
  check("box, capsule", BODY(BOX) BODY(CAPSULE), 1, 20, 1e-7, 1e-5);
  check("boxes", BODY(BOX) BODY(BOX), 1, 20, 1e-7, 1e-5);
  check("boxes, face on face", BODY("type='box' size='.3 .3 .03'") BODY(BOX), .01, 1, 1e-7, 1e-5);
  check("wedge, box", BODY(WEDGE) BODY(BOX), .3, 20, 1e-7, 1e-5);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(planes), cmocka_unit_test(pairs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
