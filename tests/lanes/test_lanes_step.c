// Whole steps on several lanes: every field of the world has the bits of one lane.
#include <stdio.h>
#include <stdlib.h>

#include "physics/step/step.h"
#include "tests/support/discrete_model.h"
#include "tests/support/lanes.h"
#include "tests/support/oracle.h"
#include "tests/support/past_models.h"
#include "tests/support/plastic_model.h"
#include "tests/support/sigmoid_model.h"

typedef struct Steps {
  SnOracle *o;
  SnWorld *w;
  int nstep;
} Steps;

static void run_steps(SnLane *lane, void *arg) {
  Steps *steps = arg;
  for (int i = 0; i < steps->nstep; ++i) {
    sn_step(steps->o->m, steps->w, lane);
    SN_SYNC(lane);
  }
}

// Steps a fresh world from the oracle's state on n lanes; the caller frees the memory.
static void *step_on(SnOracle *o, int n, int nstep, SnWorld *w) {
  void *memory = aligned_alloc(64, sn_world_size(o->m));
  sn_world_init(o->m, w, memory);
  sn_world_copy_state(o->m, w, &o->w);
  *w->cfd = *o->w.cfd;
  Steps steps = {o, w, nstep};
  sn_lanes_run(n, run_steps, &steps);
  return memory;
}

static void compare(SnOracle *o, int nstep) {
  SnWorld one, many;
  void *a = step_on(o, 1, nstep, &one);
  for (int n = 2; n <= 8; n += 3) {  // 2, 5, 8
    void *b = step_on(o, n, nstep, &many);
    assert_int_equal(*one.warn, *many.warn);
    assert_memory_equal(one.qpos, many.qpos, sizeof(sn_real) * (size_t)o->m->nq);
    assert_memory_equal(one.qvel, many.qvel, sizeof(sn_real) * (size_t)o->m->nv);
    assert_memory_equal(one.qacc, many.qacc, sizeof(sn_real) * (size_t)o->m->nv);
    if (o->m->na) assert_memory_equal(one.act, many.act, sizeof(sn_real) * (size_t)o->m->na);
    if (sn_past_size(o->m)) assert_memory_equal(one.past, many.past, sizeof(sn_real) * (size_t)sn_past_size(o->m));
    assert_int_equal(one.ncon[0], many.ncon[0]);
    assert_int_equal(one.nefc[0], many.nefc[0]);
    free(b);
  }
  free(a);
}

// Random states of a model, a few steps each, where contacts act from a distance or not.
static void compare_model(const char *path, int nstate, int nstep, bool cfd) {
  SnOracle o;
  sn_oracle_load_file(&o, path);
  const SnCfd settings = {.on = cfd, .solimp = {0, SN_R(0.1), SN_R(0.3), SN_R(0.5), 2}, .width = SN_R(0.002)};
  *o.w.cfd = settings;
  for (int i = 0; i < nstate; ++i) {
    sn_oracle_randomize(&o, 1.0);
    sn_oracle_copy_state(&o);
    compare(&o, nstep);
  }
  sn_oracle_free(&o);
}

// States as they are, with contacts from distance and collision without choices, and with smoothed hard contacts.
static void small_models(void **state) {
  (void)state;
  const SnCfd smooth = {.on = 1,
                        .friction = 1,
                        .solimp = {0, SN_R(0.1), SN_R(0.3), SN_R(0.5), 2},
                        .width = SN_R(0.002),
                        .smooth = SN_R(0.01)};
  static const char *const xml[] = {
      "<mujoco><worldbody><geom type='plane' size='1 1 .1'/>"
      "<body pos='0 0 .1'><freejoint/><geom type='box' size='.1 .1 .1'/></body>"
      "<body pos='.3 0 .1'><freejoint/><geom type='ellipsoid' size='.1 .12 .11'/></body>"
      "<body pos='0 .2 .1'><freejoint/><geom type='box' size='.1 .1 .1'/></body></worldbody></mujoco>",
      "<mujoco><option cone='elliptic' integrator='implicitfast'/><worldbody><geom type='plane' size='1 1 .1'/>"
      "<body pos='0 0 .5'><joint type='ball' damping='.1'/><geom type='capsule' fromto='0 0 0 0 0 -.5' size='.05'/>"
      "<body pos='0 0 -.5'><joint axis='0 1 0' range='-1 1' limited='true' frictionloss='.1'/>"
      "<geom type='cylinder' size='.05 .2'/></body></body></worldbody></mujoco>",
      SN_PAST_MODEL("implicitfast", SN_PAST_SENSORS),
      SN_PLASTIC_MODEL("implicitfast", ""),
  };
  for (size_t i = 0; i < sizeof xml / sizeof *xml; ++i) {
    SnOracle o;
    sn_oracle_load_string(&o, xml[i]);
    for (int k = 0; k < 4; ++k) {
      if (k >= 2) *o.w.cfd = smooth;
      sn_oracle_randomize(&o, 1.0);
      sn_oracle_copy_state(&o);
      compare(&o, 3);
    }
    sn_oracle_sigmoid(&o, 0.02, 0.2, 0.3);
    for (int k = 0; k < 2; ++k) {
      sn_oracle_randomize(&o, 1.0);
      sn_oracle_copy_state(&o);
      compare(&o, 3);
    }
    sn_oracle_free(&o);
  }
}

// The integrator `discrete`, whose effective inertia the solver has.
static void discrete(void **state) {
  (void)state;
  static const char *const xml[] = {SN_DISCRETE_MODEL(".02", "elliptic"), SN_DISCRETE_MODEL(".004", "pyramidal"),
                                    SN_DISCRETE_MODEL(".01' density='300", "pyramidal"),
                                    SN_PAST_MODEL("discrete", SN_PAST_SENSORS), SN_PLASTIC_MODEL("discrete", "")};
  for (size_t i = 0; i < sizeof xml / sizeof *xml; ++i) {
    SnOracle o;
    sn_oracle_load_string(&o, xml[i]);
    assert_true(sn_has_metric(o.m));
    for (int k = 0; k < 3; ++k) {
      if (k > 0) sn_oracle_randomize(&o, 1.0);  // at first some free bodies touch nothing
      sn_oracle_copy_state(&o);
      compare(&o, 3);
    }
    sn_oracle_free(&o);
  }
}

static void compare_hand(int nstate, int nstep, bool cfd) {
  sn_oracle_needs_myosuite();
  char path[4096];
  snprintf(path, sizeof path, "%s/envs/myo/assets/hand/myohand_baoding.xml", sn_oracle_myosuite());
  compare_model(path, nstate, nstep, cfd);
}

static void myohand(void **state) {
  (void)state;
  compare_hand(2, 2, false);
}

static void myohand_from_distance(void **state) {
  (void)state;
  compare_hand(1, 1, true);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(small_models), cmocka_unit_test(discrete),
                                     cmocka_unit_test(myohand), cmocka_unit_test(myohand_from_distance)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
