// A step that lasts longer than the model's time step (SnWorld.step) is that of a model with this time step: bit for
// bit ours, stages, integrators and adjoints, and MuJoCo's. So nothing that is made when a model is loaded depends on
// its time step.
#include <stdio.h>

#include "physics/step/step.h"
#include "tests/support/slow.h"
#include "tests/support/small_models.h"
#include "tests/support/step_fixture.h"
#include "tests/support/tolerance.h"

enum { TIMES = 8 };  // 16 ms of 2 ms: refsafe bounds springs of 20 ms then

// The same model twice: with its own time step, and with a longer one.
typedef struct Twins {
  SnOracle own, longer;
} Twins;

static void open_longer(Twins *t) {
  SnError err = {0};
  mjModel *mj = mj_copyModel(NULL, t->own.mj);
  if (!mj) fail_msg("out of memory");
  mj->opt.timestep *= TIMES;
  if (sn_oracle_open(&t->longer, mj, &err) != SN_OK) fail_msg("%s", err.text);
}

static void same(const char *what, const sn_real *a, const sn_real *b, int n, int step) {
  if (n > 0 && memcmp(a, b, sizeof *a * (size_t)n)) fail_msg("step %d: %s differs", step, what);
}

// The adjoints of the step from where both worlds are, forward run.
static void same_adjoint(Twins *t, SnAdjoint *a, SnAdjoint *b, int step) {
  const SnModel *m = t->own.m;
  SnAdjoint *const each[2] = {a, b};
  SnOracle *const o[2] = {&t->own, &t->longer};
  for (int k = 0; k < 2; ++k) {
    sn_adjoint_clear(m, each[k], &o[k]->lane);
    for (int i = 0; i < m->nv; ++i) {
      each[k]->qpos_next_bar[i] = (sn_real)(i % 3) - SN_R(0.7);
      each[k]->qvel_next_bar[i] = (sn_real)(i % 5) - SN_R(1.3);
    }
    for (int i = 0; i < m->na; ++i) each[k]->act_next_bar[i] = (sn_real)(i % 2) + SN_R(0.1);
    sn_step_vjp(o[k]->m, &o[k]->w, each[k], &o[k]->lane);
    sn_position_vjp(o[k]->m, &o[k]->w, each[k], &o[k]->lane);
  }
  same("qpos_bar", a->qpos_bar, b->qpos_bar, m->nv, step);
  same("qvel_bar", a->qvel_bar, b->qvel_bar, m->nv, step);
  same("act_bar", a->act_bar, b->act_bar, m->na, step);
  same("ctrl_bar", a->ctrl_bar, b->ctrl_bar, m->nu, step);
}

// One step of both worlds under controls of the step's number.
static void step_both(Twins *t, SnAdjoint *a, SnAdjoint *b, int step) {
  const SnModel *m = t->own.m;
  const SnWorld *x = &t->own.w, *y = &t->longer.w;
  SnOracle *const o[2] = {&t->own, &t->longer};
  for (int k = 0; k < 2; ++k) {
    for (int i = 0; i < m->nu; ++i) o[k]->w.ctrl[i] = SN_R(0.5) * sn_sin((sn_real)(step + i));
    sn_forward(o[k]->m, &o[k]->w, &o[k]->lane);
  }
  assert_int_equal(*x->nefc, *y->nefc);
  same("efc_KBIP", x->efc_KBIP, y->efc_KBIP, 4 * *x->nefc, step);
  same("actuator_force", x->actuator_force, y->actuator_force, m->nout, step);
  same("qacc", x->qacc, y->qacc, m->nv, step);
  if (step % 8 == 3) same_adjoint(t, a, b, step);
  for (int k = 0; k < 2; ++k) sn_integrate(o[k]->m, &o[k]->w, &o[k]->lane);
  same("time", x->time, y->time, 1, step);
  same("qpos", x->qpos, y->qpos, m->nq, step);
  same("qvel", x->qvel, y->qvel, m->nv, step);
  same("act", x->act, y->act, m->na, step);
}

static void check_bits(Twins *t, int integrator) {
  SnAdjoint a, b;
  open_longer(t);
  sn_step_integrator(&t->own, integrator);
  sn_step_integrator(&t->longer, integrator);
  void *memory[2];
  for (int k = 0; k < 2; ++k)
    if (!(memory[k] = aligned_alloc(64, (sn_adjoint_size(t->own.m) + 63) / 64 * 64))) fail_msg("out of memory");
  sn_adjoint_init(t->own.m, &a, memory[0]);
  sn_adjoint_init(t->own.m, &b, memory[1]);
  sn_world_reset(t->own.m, &t->own.w);
  sn_world_reset(t->longer.m, &t->longer.w);
  t->own.w.step[0] = TIMES * t->own.m->opt.timestep;
  for (int step = 0; step < sn_draws(40); ++step) step_both(t, &a, &b, step);
  free(memory[0]);
  free(memory[1]);
  sn_oracle_free(&t->longer);
}

static void bit_for_bit(void **state) {
  (void)state;
  for (int i = 0; i < SN_SMALL_MODELS; ++i)
    for (int k = 0; k < SN_STEP_INTEGRATORS; ++k) {
      Twins t;
      sn_step_model(&t.own, i);
      check_bits(&t, k);
      sn_oracle_free(&t.own);
    }
}

static void hand_bit_for_bit(void **state) {
  (void)state;
  Twins t;
  sn_oracle_load_myosuite(&t.own, "envs/myo/assets/hand/myohand_baoding.xml");
  check_bits(&t, 0);
  sn_oracle_free(&t.own);
}

// Largest error relative to the largest change in the step.
static double change_error(const sn_real *ours, const double *ref, const double *before, int n) {
  double error = 0, change = 0;
  for (int i = 0; i < n; ++i) {
    error = sn_larger(error, fabs((double)ours[i] - ref[i]));
    change = sn_larger(change, fabs(ref[i] - before[i]));
  }
  return error / (change + 1e-6);
}

// Steps of 2, 16, 2, ... ms, where MuJoCo's option changes between two of them.
static double against_mj_step(SnOracle *o, int steps) {
  const double base = o->mj->opt.timestep;
  double worst = 0;
  for (int step = 0; step < steps; ++step) {
    o->mj->opt.timestep = (step % 2 ? TIMES : 1) * base;
    sn_mujoco_controls(o->mj, o->d, 1, 0.05 * step, NULL);
    mj_forward(o->mj, o->d);  // before the copy: both solvers start from its solution
    sn_oracle_copy_state(o);
    o->w.step[0] = step % 2 ? (sn_real)o->mj->opt.timestep : 0;
    mjData *before = mj_copyData(NULL, o->mj, o->d);
    sn_step(o->m, &o->w, &o->lane);
    mj_step(o->mj, o->d);
    worst = sn_larger(worst, change_error(o->w.qpos, o->d->qpos, before->qpos, o->m->nq));
    worst = sn_larger(worst, change_error(o->w.qvel, o->d->qvel, before->qvel, o->m->nv));
    worst = sn_larger(worst, change_error(o->w.act, o->d->act, before->act, o->m->na));
    assert_true(fabs((double)o->w.time[0] - o->d->time) < 1e-12);
    mj_deleteData(before);
  }
  o->mj->opt.timestep = base;
  return worst;
}

static void against_mujoco(void **state) {
  (void)state;
  sn_needs_doubles();
  for (int i = 0; i < SN_SMALL_MODELS; ++i)
    for (int k = 0; k < SN_STEP_INTEGRATORS; ++k) {
      SnOracle o;
      sn_step_model(&o, i);
      sn_step_integrator(&o, k);
      const double worst = against_mj_step(&o, 12);
      print_message("small model %d, %s: %.2g\n", i, sn_integrator_name[k], worst);
      assert_true(worst < (i == 1 ? 1e-4 : 1e-8));  // convex contacts move by 1e-9 and more by rounding
      sn_oracle_free(&o);
    }
  SnOracle o;
  sn_oracle_load_myosuite(&o, "envs/myo/assets/hand/myohand_baoding.xml");
  const double worst = against_mj_step(&o, 12);
  print_message("MyoHand: %.2g\n", worst);
  assert_true(worst < 1e-6);
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bit_for_bit), cmocka_unit_test(hand_bit_for_bit),
                                     cmocka_unit_test(against_mujoco)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
