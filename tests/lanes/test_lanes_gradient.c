// The adjoint of a step on several lanes: every result has the bits of one lane.
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/discrete_model.h"
#include "tests/support/lanes.h"
#include "tests/support/small_models.h"
#include "tests/support/oracle.h"
#include "tests/support/past_models.h"
#include "tests/support/plastic_model.h"
#include "tests/support/surface_model.h"

#include "physics/step/step.h"
#include "physics/world/adjoint.h"

typedef struct Gradient {
  const SnModel *m;
  SnWorld w;
  SnAdjoint a;
  void *memory[2];
} Gradient;

static void run(SnLane *lane, void *arg) {
  Gradient *g = arg;
  sn_forward(g->m, &g->w, lane);
  SN_SYNC(lane);
  sn_adjoint_clear(g->m, &g->a, lane);
  sn_step_vjp(g->m, &g->w, &g->a, lane);
  sn_position_vjp(g->m, &g->w, &g->a, lane);
  if (sn_has_sleep(g->m)) sn_integrate(g->m, &g->w, lane);
}

static void gradient_on(Gradient *g, SnOracle *o, int lanes) {
  g->m = o->m;
  g->memory[0] = aligned_alloc(64, sn_world_size(o->m));
  g->memory[1] = aligned_alloc(64, (sn_adjoint_size(o->m) + 63) / 64 * 64);
  sn_world_init(o->m, &g->w, g->memory[0]);
  sn_world_copy_state(o->m, &g->w, &o->w);
  if (sn_has_sleep(o->m)) g->w.sleep_on[0] = 1;
  sn_adjoint_init(o->m, &g->a, g->memory[1]);
  for (int i = 0; i < o->m->nv; ++i) {
    g->a.qpos_next_bar[i] = (sn_real)(1 + i % 3);
    g->a.qvel_next_bar[i] = (sn_real)(2 - i % 5);
  }
  for (int i = 0; i < o->m->na; ++i) g->a.act_next_bar[i] = 1;
  for (int i = 0; i < sn_past_size(o->m); ++i) g->a.past_next_bar[i] = (sn_real)(1 + i % 4);
  sn_lanes_run(lanes, run, g);
}

static void gradient_free(Gradient *g) {
  free(g->memory[0]);
  free(g->memory[1]);
}

static void same(const sn_real *a, const sn_real *b, int n) {
  if (n) assert_memory_equal(a, b, sizeof(sn_real) * (size_t)n);
}

static void compare(SnOracle *o) {
  const SnModel *m = o->m;
  Gradient one, many;
  gradient_on(&one, o, 1);
  for (int n = 2; n <= 8; n += 3) {  // 2, 5, 8
    gradient_on(&many, o, n);
    same(one.a.qpos_bar, many.a.qpos_bar, m->nv);
    same(one.a.qvel_bar, many.a.qvel_bar, m->nv);
    same(one.a.act_bar, many.a.act_bar, m->na);
    same(one.a.ctrl_bar, many.a.ctrl_bar, m->nu);
    same(one.a.mocap_bar, many.a.mocap_bar, 6 * m->nmocap);
    same(one.a.past_bar, many.a.past_bar, sn_past_size(m));
    if (sn_has_sleep(m)) {
      same(one.w.qpos, many.w.qpos, m->nq);
      same(one.w.sleep_qpos, many.w.sleep_qpos, m->nq);
      assert_memory_equal(one.w.tree_asleep, many.w.tree_asleep, sizeof(int) * (size_t)m->ntree);
    }
    gradient_free(&many);
  }
  gradient_free(&one);
}

static void small_models(void **state) {
  (void)state;
  static const int integrators[] = {SN_INT_EULER, SN_INT_IMPLICITFAST, SN_INT_RK4};
  const char *const other[] = {sn_branching_model(), sn_terrain_model(), sn_slipping_model()};
  for (int i = 0; i < SN_SMALL_MODELS + 3; ++i) {
    SnOracle o;
    sn_oracle_load_string(&o, i < SN_SMALL_MODELS ? sn_small_model(i) : other[i - SN_SMALL_MODELS]);
    for (int k = 0; k < 3; ++k) {
      o.m->opt.integrator = integrators[k];
      sn_oracle_randomize(&o, 1);
      sn_oracle_copy_state(&o);
      compare(&o);
    }
    sn_oracle_free(&o);
  }
}

// The full implicit integrator, whose matrix is made when a model is loaded with it.
static void implicit(void **state) {
  (void)state;
  for (int i = 0; i <= SN_SMALL_MODELS; ++i) {
    const char *model = i < SN_SMALL_MODELS ? sn_small_model(i) : sn_branching_model();
    const int body = (int)(strlen(model) - strlen("</mujoco>"));
    char xml[20000];
    SnOracle o;
    snprintf(xml, sizeof xml, "%.*s<option integrator='implicit'/></mujoco>", body, model);
    sn_oracle_load_string(&o, xml);
    assert_int_equal(o.m->opt.integrator, SN_INT_IMPLICIT);
    sn_oracle_randomize(&o, 1);
    sn_oracle_copy_state(&o);
    compare(&o);
    sn_oracle_free(&o);
  }
}

// The integrator `discrete`, which has passes of its own, of rows, tendons and actuators.
static void discrete(void **state) {
  (void)state;
  static const char *const xml[] = {SN_DISCRETE_MODEL(".02", "elliptic"), SN_DISCRETE_MODEL(".004", "pyramidal"),
                                    SN_DISCRETE_MODEL(".01' density='300", "pyramidal")};
  for (int i = 0; i < 3; ++i) {
    SnOracle o;
    sn_oracle_load_string(&o, xml[i]);
    assert_true(sn_has_metric(o.m));
    for (int k = 0; k < 3; ++k) {
      if (k > 0) sn_oracle_randomize(&o, 1);  // at first some free bodies touch nothing
      sn_oracle_copy_state(&o);
      compare(&o);
    }
    sn_oracle_free(&o);
  }
}

// Buffers of controls and sensors, filled by some steps, and springs that have yielded in some.
static void buffers(void **state) {
  (void)state;
  static const char *const xml[] = {SN_PAST_MODEL("implicitfast", SN_PAST_SENSORS),
                                    SN_PLASTIC_MODEL("implicitfast", ""), SN_PAST_MODEL("discrete", SN_PAST_SENSORS),
                                    SN_PLASTIC_MODEL("discrete", "")};
  for (int i = 0; i < 4; ++i) {
    SnOracle o;
    sn_oracle_load_string(&o, xml[i]);
    for (int t = 0; t < 12 + 60 * (i % 2); ++t) {
      for (int k = 0; k < o.mj->nu; ++k) o.d->ctrl[k] = sn_oracle_uniform(&o);
      mj_step(o.mj, o.d);
    }
    sn_oracle_copy_state(&o);
    compare(&o);
    sn_oracle_free(&o);
  }
}

// Moving surfaces and such that stick, several contacts of which push one link.
static void surfaces(void **state) {
  (void)state;
  for (int k = 0; k < 4; ++k) {
    SnOracle o;
    (k < 2 ? sn_surface_load : sn_adhesion_load)(&o, k % 2 == 1);
    for (int t = 0; t < 300 && (t < 20 || o.d->ncon <= 3); ++t) mj_step(o.mj, o.d);
    assert_true(o.d->ncon > 3);
    sn_oracle_copy_state(&o);
    compare(&o);
    sn_oracle_free(&o);
  }
}

// Trees that sleep, fall asleep, are woken by a contact; then the step itself is taken, too.
static void sleepers(void **state) {
  (void)state;
  SnOracle o;
  int asleep = 0, woken = 0;
  sn_oracle_load_string(&o, sn_sleeping_model());
  for (int t = 0; t < 150; ++t) {
    int before = 0, after = 0;
    for (int k = 0; k < o.m->ntree; ++k) before += o.d->tree_asleep[k] >= 0;
    sn_oracle_copy_state(&o);
    mj_step(o.mj, o.d);
    for (int k = 0; k < o.m->ntree; ++k) after += o.d->tree_asleep[k] >= 0;
    asleep += after > before;
    woken += after < before;
    if (t % 40 == 0 || after != before) compare(&o);
  }
  assert_true(asleep > 0 && woken > 0);
  sn_oracle_free(&o);
}

static void myohand(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_myosuite(&o, "envs/myo/assets/hand/myohand_baoding.xml");
  for (int k = 0; k < 2; ++k) {
    sn_oracle_randomize(&o, 1);
    sn_oracle_copy_state(&o);
    compare(&o);
  }
  sn_oracle_free(&o);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(small_models), cmocka_unit_test(implicit), cmocka_unit_test(discrete), cmocka_unit_test(buffers),
      cmocka_unit_test(surfaces),     cmocka_unit_test(sleepers), cmocka_unit_test(myohand)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
