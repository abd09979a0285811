// Sleeping trees against MuJoCo's over hundreds of steps: who falls asleep, when, in which cycle, what wakes them. The
// adjoint of steps in which trees sleep or fall asleep against differences. What is refused.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "physics/constraint/constraint.h"
#include "physics/import/import_mjcf.h"
#include "physics/step/step.h"
#include "tests/support/constraint_models.h"
#include "tests/support/gradcheck.h"
#include "tests/support/step_fixture.h"

enum { MOST_TREES = 64 };

// Whether outputs of a stage are NaN before it runs, so that nothing can be kept: debug builds.
static bool poisons(void) {
#if defined(NDEBUG)
  return false;
#else
  return true;
#endif
}

#define FLOOR "<geom type='plane' size='5 5 1'/>"
#define BALL(name, pos, more) \
  "<body name='" name "' pos='" pos "' " more "><freejoint/><geom type='sphere' size='.1' mass='1'/></body>"
#define BOX(name, pos, more) \
  "<body name='" name "' pos='" pos "' " more "><freejoint/><geom type='box' size='.1 .1 .1' mass='1'/></body>"
#define SLIDE(name, pos, more, joint)                                                                    \
  "<body name='" name "' pos='" pos "' " more "><joint name='" name "' type='slide' axis='1 0 0' " joint \
  "/><geom type='sphere' size='.1' mass='1' contype='0' conaffinity='0'/><site name='" name "'/></body>"

// What happens from outside at a step; both engines get the same numbers.
typedef struct Event {
  int step;
  enum { QVEL, QPOS, MOCAP, CTRL } what;
  int index;
  double value;
} Event;

// A run, and what it has to show.
typedef struct Run {
  const char *name, *option, *world, *rest;
  int steps, asleep, woken;  // least number of trees that sleep at once, and of times that one was woken
  Event event[4];
} Run;

static const Run runs[] = {
    {"boxes fall asleep, a ball wakes them",
     "",
     FLOOR BOX("a", "0 0 .0995", "") BOX("b", "0 0 .2982", "") BOX("c", "1 0 .0995", "") BOX("d", "1 1 .0995", "")
         BALL("e", "0 0 4", ""),
     "",
     700,
     4,
     2,
     {{0}}},
    {"a sleeper is pushed, one is moved",
     "",
     FLOOR BOX("a", "0 0 .0995", "") BOX("b", "0 0 .2982", "") BOX("c", "1 0 .0995", "") BOX("d", "2 0 .0995", ""),
     "",
     500,
     4,
     4,
     {{200, QVEL, 12, .5}, {300, QPOS, 2, .45}, {330, QVEL, 18, 1}}},
    {"islands through equalities",
     "gravity='0 0 0'",
     FLOOR SLIDE("a", "0 0 1", "", "damping='3'") SLIDE("b", "0 1 1", "", "damping='3'")
         SLIDE("c", "0 2 1", "", "damping='3' frictionloss='.1'") BALL("d", "0 3 1", "") BALL("e", ".3 3 1", ""),
     "<equality><joint joint1='a' joint2='b'/><weld body1='d' body2='c'/><connect body1='d' body2='e' anchor='.2 0 0'/>"
     "</equality>",
     900,
     5,
     2,
     {{5, QVEL, 0, .3}, {700, QVEL, 1, .2}}},
    {"those that sleep at the start, a tower, one that floats",
     "",
     FLOOR BOX("a", "0 0 .0995", "sleep='init'") BOX("b", "0 0 .2982", "sleep='init'")
         BALL("c", "1 0 2", "sleep='init'") BALL("d", "0 0 1.5", "") BALL("e", "1 0 3", "sleep='never'"),
     "",
     600,
     3,
     3,
     {{0}}},
    {"a limit of a tendon wakes",
     "gravity='0 0 0'",
     SLIDE("a", "0 0 1", "sleep='init'", "") SLIDE("b", "1 0 1", "", ""),
     "<tendon><spatial limited='true' range='0 1.2'><site site='a'/><site site='b'/></spatial></tendon>",
     600,
     1,
     1,
     {{0, QVEL, 1, .41}}},
    {"a mocap body wakes by contact and by equality",
     "",
     FLOOR "<body name='hand' mocap='true' pos='-1 0 .09'><geom type='sphere' size='.1'/></body>"
           "<body name='lead' mocap='true' pos='3 0 1'/>" BOX("a", "0 0 .0995", "") BOX("b", ".25 0 .0995", "")
               BALL("c", "2 0 .0995", ""),
     "<equality><connect body1='lead' body2='c' anchor='0 0 -.9'/></equality>",
     400,
     2,
     2,
     {{150, MOCAP, 0, -.195}}},
    {"actuators that may sleep",
     "gravity='0 0 0'",
     SLIDE("a", "0 0 1", "sleep='allowed'", "damping='1'") SLIDE("b", "0 1 1", "sleep='allowed'", "damping='1'")
         SLIDE("c", "0 2 1", "", "damping='1'"),
     "<actuator><motor joint='a'/><motor site='b' gear='1 0 0 0 0 0'/><motor joint='c'/></actuator>",
     400,
     2,
     1,
     {{50, CTRL, 0, 1}, {60, CTRL, 2, 1}, {200, QVEL, 1, .1}}},
    {"sites, and their references in trees that move and in the world",
     "gravity='0 0 0'",
     SLIDE("a", "0 0 1", "sleep='allowed'", "damping='9'") SLIDE("b", "0 1 1", "sleep='never'", "damping='.01'")
         SLIDE("c", "0 2 1", "sleep='allowed'", "damping='9'") "<site name='r' pos='0 0 1.4'/>",
     "<actuator><general site='a' refsite='b' gear='1 0 0 0 0 0' gainprm='.01' biastype='affine' biasprm='0 -.01 0'/>"
     "<general site='r' refsite='c' gear='1 0 0 0 0 0' gainprm='.01' biastype='affine' biasprm='.02 -.01 "
     "0'/></actuator>",
     400,
     2,
     0,
     {{0, QVEL, 1, .5}}},
    {"a contact with one that is about to sleep",
     "gravity='0 0 0' sleep_tolerance='.01'",
     BALL("a", "0 0 1", "") BALL("b", ".2001125 0 1", "sleep='init'"),
     "",
     60,
     2,
     1,
     {{0, QVEL, 0, .005}}},
    {"implicitfast, elliptic cones",
     "integrator='implicitfast' cone='elliptic'",
     FLOOR BOX("a", "0 0 .0995", "") BOX("b", "0 0 .2982", "") BALL("c", "0 0 3", ""),
     "",
     600,
     2,
     2,
     {{0}}},
    {"implicit",
     "integrator='implicit'",
     FLOOR BOX("a", "0 0 .0995", "") BALL("b", "0.02 0 2", "") BOX("c", "1 0 .12", ""),
     "",
     500,
     2,
     1,
     {{0}}},
    {"pairs of geoms by name",
     "",
     FLOOR
     "<body pos='0 0 .1'><freejoint/><geom name='a' type='box' size='.1 .1 .1' contype='0' conaffinity='0'/></body>"
     "<body pos='0 0 2'><freejoint/><geom name='b' type='box' size='.1 .1 .1' contype='0' conaffinity='0'/></body>"
     "<geom name='f' type='plane' size='9 9 1' pos='0 0 0'/>",
     "<contact><pair geom1='a' geom2='f'/><pair geom1='a' geom2='b'/></contact>",
     500,
     1,
     1,
     {{0}}},
};

static void load(SnOracle *o, const char *option, const char *flags, const char *world, const char *rest) {
  enum { CAPACITY = 20000 };
  char *xml = malloc(CAPACITY);
  snprintf(xml, CAPACITY,
           "<mujoco><option timestep='.005' %s><flag sleep='enable' %s/></option><worldbody>%s</worldbody>%s</mujoco>",
           option, flags, world, rest);
  sn_oracle_load_string(o, xml);
  free(xml);
}

static void happen(SnOracle *o, const Event *e) {
  const int i = e->index;
  if (e->what == QVEL) o->w.qvel[i] = (sn_real)(o->d->qvel[i] = e->value);
  if (e->what == QPOS) o->w.qpos[i] = (sn_real)(o->d->qpos[i] = e->value);
  if (e->what == MOCAP) o->w.mocap_pos[i] = (sn_real)(o->d->mocap_pos[i] = e->value);
  if (e->what == CTRL) o->w.ctrl[i] = (sn_real)(o->d->ctrl[i] = e->value);
}

static void check_trees(const SnOracle *o, const char *what, int step) {
  for (int t = 0; t < o->m->ntree; ++t)
    if (o->w.tree_asleep[t] != o->d->tree_asleep[t])
      fail_msg("%s, step %d: tree %d has %d, MuJoCo %d", what, step, t, o->w.tree_asleep[t], o->d->tree_asleep[t]);
}

// The largest difference [m, rad, m/s, rad/s].
static double apart(const sn_real *ours, const double *theirs, int n) {
  double most = 0;
  for (int i = 0; i < n; ++i) most = sn_larger(most, fabs((double)ours[i] - theirs[i]));
  return most;
}

// Both engines go their own way. What sleeps is the same at every step.
static void go(const Run *r, const char *flags) {
  SnOracle o;
  int most = 0, woken = 0;
  double worst = 0;
  load(&o, r->option, flags, r->world, r->rest);
  SnWorld *w = &o.w;
  check_trees(&o, r->name, -1);
  assert_int_equal(w->sleep_on[0], 1);
  for (int step = 0; step < r->steps; ++step) {
    int before[MOST_TREES], asleep = 0;
    memcpy(before, w->tree_asleep, sizeof(int) * (size_t)o.m->ntree);
    if (!SN_TOL(true, false)) sn_oracle_copy_state(&o);
    for (int k = 0; k < 4; ++k)
      if (r->event[k].value != 0 && r->event[k].step == step) happen(&o, &r->event[k]);
    mj_step(o.mj, o.d);
    sn_step(o.m, w, &o.lane);
    check_trees(&o, r->name, step);
    assert_int_equal(w->ncon[0], o.d->ncon);
    assert_int_equal(w->nefc[0], o.d->nefc);
    const double e = sn_larger(apart(w->qpos, o.d->qpos, o.m->nq), apart(w->qvel, o.d->qvel, o.m->nv));
    if (!(e <= SN_TOL(1e-6, .05))) fail_msg("%s, step %d: states are %g apart", r->name, step, e);
    worst = sn_larger(worst, e);
    for (int t = 0; t < o.m->ntree; ++t) {
      asleep += w->tree_asleep[t] >= 0;
      woken += before[t] >= 0 && w->tree_asleep[t] < 0;
    }
    most = asleep > most ? asleep : most;
  }
  printf("%s: %d trees, %d asleep at once, %d woken, states within %.1e\n", r->name, o.m->ntree, most, woken, worst);
  if (most < r->asleep || woken < r->woken) fail_msg("%s: %d asleep at once, %d woken", r->name, most, woken);
  sn_oracle_free(&o);
}

static void as_mujoco(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof runs / sizeof *runs; ++i) go(runs + i, "");
}

// A limit of a tendon wakes no sleeper where limits are off; an equality does where equalities are.
static void switched_off(void **state) {
  (void)state;
  const Run limit = {
      "a limit that is off",
      "gravity='0 0 0'",
      SLIDE("a", "0 0 1", "sleep='init'", "") SLIDE("b", "1 0 1", "", ""),
      "<tendon><spatial limited='true' range='0 1.2'><site site='a'/><site site='b'/></spatial></tendon>",
      200,
      1,
      0,
      {{0, QVEL, 1, .41}}};
  const Run equality = {"an equality that is off",
                        "gravity='0 0 0'",
                        SLIDE("a", "0 0 1", "sleep='init'", "") SLIDE("b", "1 0 1", "sleep='init'", ""),
                        "<equality><joint joint1='a' joint2='b'/></equality>",
                        60,
                        1,
                        1,
                        {{20, QVEL, 1, .2}}};
  go(&limit, "limit='disable'");
  go(&limit, "constraint='disable'");
  go(&equality, "equality='disable'");
  go(&equality, "constraint='disable'");
}

// What acts between two sites that never move has no force, whether a tree sleeps or none does.
static void actuators_on_nothing_rest(void **state) {
  (void)state;
  for (int asleep = 0; asleep < 2; ++asleep) {
    char xml[1000];
    SnOracle o;
    snprintf(xml, sizeof xml,
             "<mujoco><option><flag sleep='enable'/></option><worldbody><site name='a'/><site name='b' pos='.1 .2 .3'/>"
             "<body pos='0 0 9' sleep='%s'><freejoint/><geom size='.1'/><site name='c'/></body></worldbody><actuator>"
             "<position slidersite='a' cranksite='b' cranklength='1' kp='5'/><orientation site='a' refsite='b' kp='2'/>"
             "<position slidersite='a' cranksite='c' cranklength='20' kp='5'/></actuator></mujoco>",
             asleep ? "init" : "allowed");
    sn_oracle_load_string(&o, xml);
    for (int i = 0; i < o.mj->nu; ++i) o.d->ctrl[i] = 0.7;
    mj_forward(o.mj, o.d);
    sn_oracle_copy_state(&o);
    sn_forward(o.m, &o.w, &o.lane);
    assert_int_equal(o.w.nasleep[0], asleep);
    sn_oracle_check("actuator_force", o.w.actuator_force, o.d->actuator_force, o.m->nout, SN_TOL(1e-12, 1e-5));
    for (int i = 0; i < 4; ++i) assert_true(o.w.actuator_force[i] == 0);
    assert_true((o.w.actuator_force[4] == 0) == asleep);
    sn_oracle_free(&o);
  }
}

// ---- frames that are left as they were ----

// Frames, inertias and accelerations of a step are those of a world that computes all of them, byte by byte.
static void same_frames(const SnModel *m, const SnWorld *w, const SnWorld *fresh, const char *what, int step) {
#define SAME(name, n)                                                   \
  if (memcmp(w->name, fresh->name, sizeof *w->name * (size_t)(n)) != 0) \
  fail_msg("%s, step %d: other %s", what, step, #name)
  SAME(xpos, 3 * m->nbody);
  SAME(xquat, 4 * m->nbody);
  SAME(xmat, 9 * m->nbody);
  SAME(xanchor, 3 * m->njnt);
  SAME(xaxis, 3 * m->njnt);
  SAME(geom_xpos, 3 * m->ngeom);
  SAME(geom_xmat, 9 * m->ngeom);
  SAME(site_xpos, 3 * m->nsite);
  SAME(link_xcom, 3 * m->nbody);
  SAME(subtree_com, 3 * m->nbody);
  SAME(cdof, 6 * m->nv);
  SAME(cinert, 10 * m->nbody);
  SAME(link_xinertia, 6 * m->nbody);
  SAME(qLD, m->nC);
  SAME(qacc, m->nv);
#undef SAME
}

// A step of the world beside one of a new world. Returns how many trees kept their frames.
static int step_beside(SnOracle *o, SnWorld *fresh, void *memory, const char *what, int step) {
  int held = 0;
  sn_world_init(o->m, fresh, memory);
  sn_world_copy_state(o->m, fresh, &o->w);
  fresh->sleep_on[0] = 1;
  sn_forward(o->m, fresh, &o->lane);
  sn_step(o->m, &o->w, &o->lane);
  same_frames(o->m, &o->w, fresh, what, step);
  for (int t = 0; t < o->m->ntree; ++t) held += o->w.tree_framed[t] == SN_FRAMES_HELD;
  return held;
}

// Moves all sleepers without a word to the world: they sleep on where they are now.
static void carry_sleepers(SnOracle *o) {
  for (int j = 0; j < o->m->njnt; ++j) {
    const int adr = o->m->jnt_qposadr[j], tree = o->m->body_treeid[o->m->jnt_bodyid[j]];
    if (o->w.tree_asleep[tree] >= 0) o->w.qpos[adr] = o->w.sleep_qpos[adr] += SN_R(0.25);
  }
}

static void sleepers_keep_their_frames(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof runs / sizeof *runs; ++i) {
    const Run *r = runs + i;
    SnOracle o;
    SnWorld fresh;
    int held = 0;
    load(&o, r->option, "", r->world, r->rest);
    void *memory = aligned_alloc(64, sn_world_size(o.m));
    for (int step = 0; step < r->steps; ++step) {
      for (int k = 0; k < 4; ++k)
        if (r->event[k].value != 0 && r->event[k].step == step) happen(&o, &r->event[k]);
      held += step_beside(&o, &fresh, memory, r->name, step);
    }
    if (sizeof(sn_real) == 8) assert_true(held > 0 || poisons());
    carry_sleepers(&o);
    for (int step = 0; step < 3; ++step) step_beside(&o, &fresh, memory, "sleepers that are elsewhere", step);
    free(memory);
    sn_oracle_free(&o);
  }
}

// Trees on one static body share the centre that their inertias refer to, so that one that moves moves it for all.
static void trees_of_one_root_keep_nothing(void **state) {
  (void)state;
  SnOracle o;
  SnWorld fresh;
  int asleep = 0;
  load(&o, "gravity='0 0 0'", "",
       "<body><geom size='.1'/>" SLIDE("a", "0 0 1", "sleep='init'", "")
           SLIDE("b", "0 1 1", "sleep='never'", "") "</body>",
       "");
  void *memory = aligned_alloc(64, sn_world_size(o.m));
  o.w.qvel[1] = 1;
  for (int step = 0; step < 50; ++step) {
    assert_int_equal(step_beside(&o, &fresh, memory, "one root", step), 0);
    asleep += o.w.tree_asleep[0] >= 0;
  }
  assert_int_equal(asleep, 50);
  free(memory);
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(as_mujoco),
      cmocka_unit_test(switched_off),
      cmocka_unit_test(actuators_on_nothing_rest),
      cmocka_unit_test(sleepers_keep_their_frames),
      cmocka_unit_test(trees_of_one_root_keep_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
