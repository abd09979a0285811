// Velocities and bias force against MuJoCo; what the bias force must be on its own.
#include "physics/dynamics/dynamics.h"
#include "tests/support/dynamics_models.h"

#include <stdlib.h>

static double worst;

// Forces that cancel leave what rounding makes of their parts: floats are compared to no less than 0.01.
static void same(const char *model, const char *field, const sn_real *ours, const double *ref, int n) {
  double error = 0, scale = SN_TOL(1e-6, 1e-2);
  for (int i = 0; i < n; ++i) {
    error = sn_larger(error, fabs((double)ours[i] - ref[i]));
    scale = sn_larger(scale, fabs(ref[i]));
  }
  const double e = error / scale;
  if (!(e <= SN_TOL_BIAS)) fail_msg("%s: %s: relative error %g", model, field, e);
  worst = sn_larger(worst, e);
}

static void until_bias(SnOracle *o) {
  sn_kinematics(o->m, &o->w, &o->lane);
  sn_com_pos(o->m, &o->w, &o->lane);
  sn_oracle_fill_stage(o, SN_STAGE_TENDON);
  sn_oracle_fill_stage(o, SN_STAGE_TRANSMISSION);
  sn_velocity(o->m, &o->w, &o->lane);
  sn_bias(o->m, &o->w, &o->lane);
}

static void check_bias(SnOracle *o, const char *name) {
  const SnModel *m = o->m;
  const mjData *d = o->d;
  until_bias(o);
  same(name, "cvel", o->w.cvel, d->cvel, 6 * m->nbody);
  same(name, "cdof_dot", o->w.cdof_dot, d->cdof_dot, 6 * m->nv);
  same(name, "ten_velocity", o->w.ten_velocity, d->ten_velocity, m->ntendon);
  same(name, "actuator_velocity", o->w.actuator_velocity, d->actuator_velocity, m->nout);
  same(name, "qfrc_bias", o->w.qfrc_bias, d->qfrc_bias, m->nv);
}

static void against_mujoco(void **state) {
  (void)state;
  sn_dynamics_for_models(5, 2.0, check_bias);
  sn_dynamics_for_inline("<option gravity='1 2 3'/>", 2, 2.0, check_bias);
  sn_dynamics_for_inline("<option><flag gravity='disable'/></option>", 2, 2.0, check_bias);
  sn_dynamics_for_inline("<option><flag actuation='disable'/></option>", 2, 2.0, check_bias);
  sn_dynamics_for_inline("<option actuatorgroupdisable='0'/>", 2, 2.0, check_bias);
  print_message("largest relative error %.2g\n", worst);
}

// At rest the bias force is the slope of the potential energy: nudging a coordinate changes it by -g m z.
static void check_gravity(SnOracle *o, const char *name) {
  const SnModel *m = o->m;
  const double eps = 1e-6;
  until_bias(o);
  double *qpos = malloc(sizeof *qpos * (size_t)m->nq), *dq = calloc((size_t)m->nv, sizeof *dq);
  mju_copy(qpos, o->d->qpos, m->nq);
  o->mj->opt.enableflags |= mjENBL_ENERGY;
  o->mj->opt.disableflags |= mjDSBL_SPRING;
  for (int i = 0; i < m->nv; ++i) {
    double energy[2];
    for (int side = 0; side < 2; ++side) {
      mju_copy(o->d->qpos, qpos, m->nq);
      dq[i] = side ? eps : -eps;
      mj_integratePos(o->mj, o->d->qpos, dq, 1);
      mj_fwdPosition(o->mj, o->d);
      mj_energyPos(o->mj, o->d);
      energy[side] = o->d->energy[0];
    }
    dq[i] = 0;
    const double slope = (energy[1] - energy[0]) / (2 * eps);
    if (!(fabs(slope - (double)o->w.qfrc_bias[i]) <= SN_TOL(1e-5, 1e-3) * (1 + fabs(slope))))
      fail_msg("%s: dof %d: slope %g, bias %g", name, i, slope, (double)o->w.qfrc_bias[i]);
  }
  free(qpos);
  free(dq);
}

static void gravity_slope(void **state) {
  (void)state;
  sn_dynamics_for_inline("", 2, 0.0, check_gravity);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(against_mujoco), cmocka_unit_test(gravity_slope)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
