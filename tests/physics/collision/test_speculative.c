// Contacts before impact against MuJoCo: which, in which order, where, and what they do.
#include <math.h>
#include <stdio.h>

#include "physics/constraint/constraint.h"
#include "physics/step/step.h"
#include "tests/support/oracle.h"
#include "tests/support/tolerance.h"

#define HEAD(options)                                                                                              \
  "<mujoco><option timestep='.01' gravity='0 0 0' " options                                                        \
  "><flag speculative='enable'/></option><asset>"                                                                  \
  "<mesh name='wedge' vertex='.1 0 -.05 -.05 .09 -.05 -.05 -.09 -.05 0 0 .1'/>"                                    \
  "<mesh name='prism' vertex='.1 0 -.03 .03 .09 -.03 -.08 .06 -.03 -.08 -.06 -.03 .03 -.09 -.03 .1 0 .03 .03 .09 " \
  ".03 -.08 .06 .03 -.08 -.06 .03 .03 -.09 .03'/></asset><worldbody>"
#define TAIL "</worldbody></mujoco>"

// How MuJoCo's contacts and ours differ.
typedef enum Difference { SAME, TIE, OTHER } Difference;

static double farthest(const sn_real *a, const double *b, int n) {
  double most = 0;
  for (int k = 0; k < n; ++k) most = sn_larger(most, fabs((double)a[k] - b[k]));
  return most;
}

// A tie: the contact agrees in all but its point, which rounding chooses: corners of a cap of equal areas, and which
// end of an edge comes first.
static Difference contact_differs(const SnContact *a, const mjContact *b, double tol) {
  const double dist = fabs((double)a->dist - b->dist) / (1 + fabs(b->dist)), frame = farthest(a->frame, b->frame, 9);
  const bool same = a->geom[0] == b->geom[0] && a->geom[1] == b->geom[1] && a->dim == b->dim &&
                    a->exclude == b->exclude && farthest(a->friction, b->friction, 5) == 0;
  if (!same || !(dist <= tol) || !(frame <= tol)) return OTHER;
  return farthest(a->pos, b->pos, 3) <= tol ? SAME : TIE;
}

static Difference differs(const SnOracle *o, double tol) {
  Difference worst = SAME;
  if (o->w.ncon[0] != o->d->ncon) return OTHER;
  for (int i = 0; i < o->d->ncon; ++i) {
    const Difference d = contact_differs(o->w.contact + i, o->d->contact + i, tol);
    if (d > worst) worst = d;
  }
  return worst;
}

// Both engines at MuJoCo's state.
static void forward(SnOracle *o) {
  mj_forward(o->mj, o->d);
  sn_oracle_copy_state(o);
  sn_forward(o->m, &o->w, &o->lane);
}

// A number in [low, high).
static double between(SnOracle *o, double low, double high) {
  return low + (high - low) * (sn_oracle_uniform(o) + 1) / 2;
}

// What was met on the way.
typedef struct Tally {
  int states, foreseen, ties, others;
} Tally;

static void tally(SnOracle *o, Tally *t, double tol, const char *what) {
  forward(o);
  ++t->states;
  for (int i = 0; i < o->d->ncon; ++i)
    t->foreseen += o->d->contact[i].exclude == 0 && o->d->contact[i].dist > o->d->contact[i].includemargin;
  const Difference d = differs(o, tol);
  t->ties += d == TIE;
  t->others += d == OTHER;
  if (d == OTHER) print_message("%s, state %d: %d contacts, MuJoCo %d\n", what, t->states, o->w.ncon[0], o->d->ncon);
}

// Shares of states that may differ, by ties and otherwise.
static void judge(const Tally *t, int foreseen, double ties, double others) {
  print_message("%d states, %d contacts before impact; %d states with a tie, %d others differ\n", t->states,
                t->foreseen, t->ties, t->others);
  if (sizeof(sn_real) < sizeof(double)) return;  // rounding moves the choices
  assert_true(t->foreseen >= foreseen);
  assert_true(t->ties <= ties * t->states);
  assert_true(t->others <= others * t->states);
}

// Body `b` with a free joint: near a place, turned at random, at a speed.
static void throw_body(SnOracle *o, int b, const double *at, double spread, const double *speed, double spin) {
  const int j = o->mj->body_jntadr[b];
  double *q = o->d->qpos + o->mj->jnt_qposadr[j], *v = o->d->qvel + o->mj->jnt_dofadr[j];
  for (int k = 0; k < 3; ++k) q[k] = at[k] + spread * sn_oracle_uniform(o);
  for (int k = 0; k < 4; ++k) q[3 + k] = sn_oracle_uniform(o);
  mju_normalize4(q + 3);
  for (int k = 0; k < 3; ++k) v[k] = speed[k] * (1 + .1 * sn_oracle_uniform(o));
  for (int k = 0; k < 3; ++k) v[3 + k] = spin * sn_oracle_uniform(o);
}

static const char *const shapes[] = {
    "type='sphere' size='.05'",       "type='capsule' size='.03 .08'", "type='ellipsoid' size='.03 .05 .08'",
    "type='cylinder' size='.04 .07'", "type='box' size='.03 .05 .08'", "type='mesh' mesh='wedge'",
    "type='mesh' mesh='prism'"};
enum { SHAPES = sizeof shapes / sizeof *shapes };

// Every shape thrown at a plane.
static void planes(void **state) {
  (void)state;
  const double spins[] = {0, 20, 150, 600};
  Tally t = {0};
  for (int s = 0; s < SHAPES; ++s) {
    char xml[2000];
    SnOracle o;
    snprintf(xml, sizeof xml,
             HEAD("") "<geom type='plane' size='1 1 1'/><body><freejoint/><geom %s margin='.002'/></body>" TAIL,
             shapes[s]);
    sn_oracle_load_string(&o, xml);
    for (int k = 0; k < 80; ++k) {
      const double at[3] = {0, 0, .7}, speed[3] = {between(&o, -30, 30), between(&o, -30, 30), -between(&o, 20, 120)};
      throw_body(&o, 1, at, .3, speed, spins[k % 4]);
      tally(&o, &t, 1e-7, shapes[s]);
    }
    sn_oracle_free(&o);
  }
  judge(&t, 700, .02, 0);
}

// Every shape thrown at every other.
static void pairs(void **state) {
  (void)state;
  const double spins[] = {0, 10, 60, 200};
  Tally t = {0};
  for (int s = 0; s < SHAPES * SHAPES; ++s) {
    char xml[2000], what[200];
    SnOracle o;
    snprintf(what, sizeof what, "%s, %s", shapes[s % SHAPES], shapes[s / SHAPES]);
    snprintf(xml, sizeof xml,
             HEAD("") "<body><freejoint/><geom %s gap='.01'/></body><body><freejoint/><geom %s/></body>" TAIL,
             shapes[s % SHAPES], shapes[s / SHAPES]);
    sn_oracle_load_string(&o, xml);
    for (int k = 0; k < 40; ++k) {
      const double at[3] = {0, 0, 0}, rest[3] = {between(&o, -10, 10), between(&o, -3, 3), 0}, far[3] = {.6, 0, 0},
                   speed[3] = {-between(&o, 20, 120), between(&o, -5, 5), between(&o, -5, 5)};
      throw_body(&o, 1, at, .03, rest, spins[k % 4]);
      throw_body(&o, 2, far, .05, speed, spins[k / 4 % 4]);
      tally(&o, &t, 2e-5, what);
    }
    sn_oracle_free(&o);
  }
  judge(&t, 1200, .02, 0);
}

// The end of a capsule that turns about a hinge meets a box after all advances, and one more for the time alone.
static void last_advance(void **state) {
  (void)state;
  Tally t = {0};
  SnOracle o;
  sn_oracle_load_string(
      &o, HEAD("") "<geom type='box' size='1 1 .1' pos='0 0 -.1'/><body pos='-.187 .074 .144'><joint axis='0 1 0'/>"
                   "<geom type='capsule' size='.03 .06' pos='.1 0 0'/></body>" TAIL);
  for (int k = 0; k < 200; ++k) {
    o.d->qpos[0] = between(&o, .5, .68);
    o.d->qvel[0] = between(&o, 15, 40);
    tally(&o, &t, 1e-7, "last advance");
  }
  sn_oracle_free(&o);
  judge(&t, 50, 0, 0);
}

// Several bodies of several geoms among things that stand still: what hides what, order, names, margins, gaps.
static const char *const crowd =
    HEAD("cone='elliptic'")
    "<geom type='plane' size='3 3 1' condim='4'/>"
    "<geom type='box' size='.6 .3 .004' pos='.2 0 .3' euler='0 10 0'/>"
    "<geom type='cylinder' size='.05 .4' pos='-.4 0 .4' euler='90 0 0' condim='6' gap='.02'/>"
    "<body pos='0 .5 .5' mocap='true'><geom type='capsule' size='.04 .3'/><geom type='sphere' size='.1' pos='.3 0 0'/></body>"
    "<body name='a'><freejoint/><geom type='box' size='.1 .1 .01' condim='1'/><geom size='.05' pos='.15 0 0'/>"
    "<geom name='aa' type='mesh' mesh='wedge' pos='0 0 .1' contype='2' conaffinity='2'/></body>"
    "<body name='b'><freejoint/><geom type='ellipsoid' size='.05 .1 .06' margin='.01'/><geom type='capsule' size='.02 .1' pos='0 0 .1'/></body>"
    "<body name='c'><freejoint/><geom name='cc' type='mesh' mesh='prism' contype='3' conaffinity='3'/><body pos='.2 0 0'><joint axis='0 1 0'/>"
    "<geom type='cylinder' size='.03 .05' solref='-3000 -40'/></body></body>"
    "<body name='e'><freejoint/><geom name='ee' type='sphere' size='.07' adhesion='3'/></body>"
    "</worldbody><contact><pair geom1='aa' geom2='ee' condim='6' margin='.005' solref='.03 .9'/>"
    "<pair geom1='cc' geom2='ee'/><exclude body1='a' body2='b'/></contact></mujoco>";

static void crowds(void **state) {
  (void)state;
  const double spins[] = {0, 10, 60, 200};
  Tally t = {0};
  SnOracle o;
  sn_oracle_load_string(&o, crowd);
  for (int k = 0; k < 600; ++k) {
    for (int b = 2; b < o.mj->nbody; ++b) {
      if (o.mj->body_dofnum[b] != 6) continue;
      const double at[3] = {0, 0, .6}, speed[3] = {between(&o, -60, 60), between(&o, -60, 60), between(&o, -120, 30)};
      throw_body(&o, b, at, .6, speed, spins[(k + b) % 4]);
    }
    tally(&o, &t, 2e-5, "crowd");
  }
  sn_oracle_free(&o);
  judge(&t, 3500, .1, .05);
}

// Whole steps: a ball that would pass through a thin wall, and a plate that turns, by every integrator, cone and
// dimension.
static void steps(void **state) {
  (void)state;
  const char *const integrator[] = {"Euler", "implicitfast", "implicit", "RK4"};
  const int dims[] = {1, 3, 4, 6};
  int foreseen = 0;
  for (int k = 0; k < 32; ++k) {
    char xml[2000];
    SnOracle o;
    snprintf(
        xml, sizeof xml,
        "<mujoco><option timestep='.01' integrator='%s' cone='%s'><flag speculative='enable' %s/></option><worldbody>"
        "<geom type='box' size='.01 1 1' condim='%d' %s/><body pos='-.5 0 .2'><freejoint/><geom size='.03'/></body>"
        "<body pos='.4 0 -.2' euler='7 10 3'><freejoint/><geom type='box' size='.005 .1 "
        ".2'/></body></worldbody></mujoco>",
        integrator[k % 4], k / 4 % 2 ? "elliptic" : "pyramidal", k % 3 ? "" : "multiccd='disable'", dims[k / 8],
        k % 5 ? "" : "solref='0 -99' solimp='.995 .995 .001'");
    sn_oracle_load_string(&o, xml);
    o.d->qvel[0] = 60;
    o.d->qvel[4] = 5;
    o.d->qvel[6] = -20;
    o.d->qvel[10] = 1;
    for (int step = 0; step < 6; ++step) {
      sn_oracle_copy_state(&o);
      mj_step(o.mj, o.d);
      sn_step(o.m, &o.w, &o.lane);
      for (int i = 0; i < o.d->ncon; ++i) foreseen += o.d->contact[i].dist > 0 && o.d->contact[i].exclude == 0;
      sn_oracle_check("qvel", o.w.qvel, o.d->qvel, o.m->nv, SN_TOL(1e-7, 1e-2));
      sn_oracle_check("qpos", o.w.qpos, o.d->qpos, o.m->nq, SN_TOL(1e-7, 1e-2));
    }
    if (k % 4 != 3) assert_true(o.d->qpos[0] < 0);  // the ball did not go through
    sn_oracle_free(&o);
  }
  assert_true(foreseen > 50);
}

// A pair is swept when one of its geoms moves by the half width of the thinner one: a ball of 0.04 m above a plate.
static void thin(void **state) {
  (void)state;
  const double half[] = {.01, .02, .06}, step[] = {.0095, .0105, .0195, .0205, .0395, .0405};
  int foreseen = 0;
  for (int k = 0; k < 18; ++k) {
    char xml[1000];
    SnOracle o;
    snprintf(xml, sizeof xml,
             HEAD("") "<geom type='box' size='.5 .5 %g'/><body><freejoint/><geom size='.04'/></body>" TAIL,
             half[k % 3]);
    sn_oracle_load_string(&o, xml);
    o.d->qpos[2] = half[k % 3] + .04 + .9 * step[k / 3];
    o.d->qvel[2] = -100 * step[k / 3];
    forward(&o);
    assert_int_equal(o.w.ncon[0], o.d->ncon);
    foreseen += o.d->ncon;
    sn_oracle_free(&o);
  }
  assert_int_equal(foreseen, 5 + 3 + 1);
}

// Nothing is foreseen without the flag, without nativeccd, of height fields, in a world with contacts from distance.
static int count(const char *flags, const char *geom, bool cfd) {
  char xml[2000];
  SnOracle o;
  snprintf(
      xml, sizeof xml,
      "<mujoco><option timestep='.01'><flag %s/></option><asset><hfield name='h' nrow='3' ncol='3' size='1 1 .1 .1' "
      "elevation='0 0 0 0 1 0 0 0 0'/></asset><worldbody><geom %s/><body pos='0 0 .5'><freejoint/><geom size='.05'/>"
      "</body></worldbody></mujoco>",
      flags, geom);
  sn_oracle_load_string(&o, xml);
  o.d->qvel[2] = -100;
  if (cfd) {
    const SnCfd off = {.on = 1, .solimp = {0, SN_R(0.1), SN_R(0.01), SN_R(0.5), 2}, .width = SN_R(0.01)};
    *o.w.cfd = off;
  }
  forward(&o);
  const int n = o.w.ncon[0];
  if (!cfd) assert_int_equal(n, o.d->ncon);
  sn_oracle_free(&o);
  return n;
}

static void flags(void **state) {
  (void)state;
  const char *const plane = "type='plane' size='1 1 1'";
  assert_int_equal(count("speculative='enable'", plane, false), 1);
  assert_int_equal(count("speculative='disable'", plane, false), 0);
  assert_int_equal(count("speculative='enable' nativeccd='disable'", plane, false), 0);
  assert_int_equal(count("speculative='enable' contact='disable'", plane, false), 0);
  assert_int_equal(count("speculative='enable'", "type='hfield' hfield='h'", false), 0);
  assert_int_equal(count("speculative='enable'", plane, true), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(planes), cmocka_unit_test(pairs), cmocka_unit_test(last_advance),
                                     cmocka_unit_test(crowds), cmocka_unit_test(steps), cmocka_unit_test(thin),
                                     cmocka_unit_test(flags)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
