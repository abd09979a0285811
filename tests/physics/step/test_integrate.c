// The next state against mj_step: Euler, implicitfast, implicit, Runge-Kutta 4, their flags, saturated actuators,
// spinning bodies.
#include "physics/dynamics/dynamics.h"
#include "physics/step/step.h"
#include "tests/support/dynamics_models.h"

#include <stdio.h>
#include <stdlib.h>

static double worst;

// Largest error of a state relative to its largest change in the step.
static double change_error(const sn_real *ours, const double *ref, const double *before, int n) {
  double error = 0, change = 0;
  for (int i = 0; i < n; ++i) {
    error = sn_larger(error, fabs((double)ours[i] - ref[i]));
    change = sn_larger(change, fabs(ref[i] - before[i]));
  }
  return error / (change + 1e-6);
}

// Compares the world's state with what mj_step makes of MuJoCo's.
static void compare_step(SnOracle *o, const char *name, double tol) {
  const SnModel *m = o->m;
  mjData *before = mj_copyData(NULL, o->mj, o->d);
  mj_step(o->mj, o->d);
  const double eq = change_error(o->w.qpos, o->d->qpos, before->qpos, m->nq);
  const double ev = change_error(o->w.qvel, o->d->qvel, before->qvel, m->nv);
  const double ea = change_error(o->w.act, o->d->act, before->act, m->na);
  mj_deleteData(before);
  if (!(eq <= tol && ev <= tol && ea <= tol)) fail_msg("%s: errors of qpos %g, qvel %g, act %g", name, eq, ev, ea);
  assert_true(fabs((double)o->w.time[0] - o->d->time) < SN_TOL(1e-12, 1e-5));
  worst = sn_larger(worst, sn_larger(eq, sn_larger(ev, ea)));
}

// sn_integrate alone, from MuJoCo's fields of the stages before it.
static void check_integrate(SnOracle *o, const char *name) {
  sn_kinematics(o->m, &o->w, &o->lane);
  sn_com_pos(o->m, &o->w, &o->lane);
  sn_oracle_fill(o);
  sn_integrate(o->m, &o->w, &o->lane);
  for (int i = 0; i < o->m->nv; ++i) assert_true(o->w.qacc_warmstart[i] == o->w.qacc[i]);
  compare_step(o, name, SN_TOL_STEP);
}

static void euler(void **state) {
  (void)state;
  sn_dynamics_for_models(3, 1.0, check_integrate);
  sn_dynamics_for_inline("<option timestep='.02'/>", 3, 3.0, check_integrate);
  sn_dynamics_for_inline("<option timestep='.02'><flag eulerdamp='disable'/></option>", 3, 3.0, check_integrate);
  sn_dynamics_for_inline("<option timestep='.02'><flag damper='disable'/></option>", 3, 3.0, check_integrate);
  sn_dynamics_for_inline("<option timestep='.02'><flag actuation='disable'/></option>", 3, 3.0, check_integrate);
  print_message("largest error relative to the change %.2g\n", worst);
}

static void implicitfast(void **state) {
  (void)state;
  worst = 0;
  sn_dynamics_for_inline("<option integrator='implicitfast' timestep='.02'/>", 3, 3.0, check_integrate);
  sn_dynamics_for_inline("<option integrator='implicitfast' timestep='.02'><flag damper='disable'/></option>", 3, 3.0,
                         check_integrate);
  sn_dynamics_for_inline(
      "<option integrator='implicitfast' timestep='.02'><flag spring='disable' damper='disable'/></option>", 3, 3.0,
      check_integrate);
  sn_dynamics_for_inline("<option integrator='implicitfast' timestep='.02'><flag actuation='disable'/></option>", 3,
                         3.0, check_integrate);
  print_message("largest error relative to the change %.2g\n", worst);
}

static void implicit(void **state) {
  (void)state;
  worst = 0;
  sn_dynamics_for_inline("<option integrator='implicit' timestep='.02'/>", 3, 3.0, check_integrate);
  sn_dynamics_for_inline("<option integrator='implicit' timestep='.02'><flag damper='disable'/></option>", 3, 3.0,
                         check_integrate);
  sn_dynamics_for_inline(
      "<option integrator='implicit' timestep='.02'><flag spring='disable' damper='disable'/></option>", 3, 3.0,
      check_integrate);
  sn_dynamics_for_inline("<option integrator='implicit' timestep='.02'><flag actuation='disable'/></option>", 3, 3.0,
                         check_integrate);
  print_message("largest error relative to the change %.2g\n", worst);
}

// The stages after the first are the engine's own: whole evaluations, of which test_step compares more.
static void runge_kutta(void **state) {
  (void)state;
  worst = 0;
  sn_dynamics_for_inline("<option integrator='RK4' timestep='.01'><flag contact='disable' island='disable'/></option>",
                         3, 2.0, check_integrate);
  sn_dynamics_for_inline(
      "<option integrator='RK4' timestep='.01'><flag contact='disable' island='disable' actuation='disable'/></option>",
      3, 2.0, check_integrate);
  print_message("largest error relative to the change %.2g\n", worst);
}

static void run_model(const char *xml, int nstate, double speed) {
  SnOracle o;
  sn_oracle_load_string(&o, xml);
  for (int i = 0; i < nstate; ++i) {
    sn_dynamics_sample(&o, speed);
    for (int k = 0; k < o.mj->nu && i % 2; ++k) o.d->ctrl[k] *= 3;  // beyond its range
    mj_forward(o.mj, o.d);
    check_integrate(&o, xml);
  }
  sn_oracle_free(&o);
}

// Every term of an actuator's slope in velocity, and each way to saturate: own range, joint's, tendon's, disabled
// group.
static void actuator_slopes(void **state) {
  (void)state;
  worst = 0;
  static const char *const body =
      "<compiler autolimits='true'/><worldbody><body><joint name='a' axis='0 1 0' damping='.1' actuatorfrcrange='-2 "
      "2'/>"
      "<geom size='.1' pos='.3 0 0'/><site name='s' pos='.3 0 0'/><body pos='.4 0 0'><joint name='b' axis='0 1 "
      ".3'/><geom size='.1' pos='.2 0 0'/>"
      "<site name='t' pos='.2 0 .1'/><body pos='.2 0 0'><joint name='c' type='ball'/><geom type='box' size='.1 .05 "
      ".1'/></body></body></body>"
      "<body pos='0 1 1'><freejoint/><geom type='box' size='.1 .2 .15' pos='.05 0 0'/><site name='f' pos='.1 .1 "
      ".2'/></body>"
      "<body pos='0 2 1'><freejoint/><geom type='box' size='.1 .2 .15'/><site name='g' pos='.1 .1 "
      ".2'/></body></worldbody>"
      "<tendon><fixed name='u' actuatorfrcrange='-3 3'><joint joint='a' coef='1'/><joint joint='b' coef='.5'/></fixed>"
      "<spatial name='v'><site site='s'/><site site='t'/></spatial><spatial name='w' damping='3'><site site='s'/><site "
      "site='f'/><site site='g'/></spatial></tendon>";
  static const char *const actuators[] = {
      "<velocity joint='a' kv='.4'/><velocity joint='b' kv='.5' gear='3'/><general jointinparent='c' gear='1 2 3' "
      "biastype='affine' biasprm='.1 0 -.3'/>",
      "<velocity tendon='u' kv='.7'/><velocity tendon='u' kv='2'/><velocity tendon='v' kv='1'/><position tendon='w' "
      "kp='5' kv='2'/>",
      "<velocity joint='b' kv='3' forcerange='-1 1'/><general tendon='v' gainprm='2 .1 .5' gaintype='affine' "
      "biastype='affine' biasprm='1 2 -.3'/>",
      "<general site='f' gear='1 2 3 .1 .2 .3' biastype='affine' biasprm='0 0 -2'/><general site='g' gear='0 1 0 .3 0 "
      ".1' biastype='affine' biasprm='0 0 -3'/>",
      "<general joint='b' dyntype='filter' dynprm='.1' gaintype='affine' gainprm='1 0 -2'/><general joint='a' "
      "dyntype='filterexact' dynprm='.1' gaintype='affine' gainprm='1 0 -2' actearly='true'/>",
      "<general joint='b' dyntype='integrator' gaintype='affine' gainprm='1 0 -2' actlimited='true' actrange='-.2 .2' "
      "actearly='true'/>",
      "<muscle tendon='v' lengthrange='.1 .6' force='50'/><muscle joint='b' lengthrange='-1 1' force='20' "
      "gear='.5'/><muscle tendon='u' lengthrange='-1 1' force='5'/>",
      "<velocity joint='b' kv='3' group='2'/><velocity joint='a' kv='1'/>",
      "<general joint='b' ctrlrange='-1 1' gaintype='affine' gainprm='1 0 -2'/><muscle tendon='v' lengthrange='.1 .6' "
      "force='50'/>",
      "<velocity tendon='u' kv='3' forcerange='-1 1'/><velocity tendon='u' kv='2'/><velocity tendon='u' kv='1'/>",
  };
  for (size_t i = 0; i < sizeof actuators / sizeof *actuators; ++i) {
    static char xml[5000];
    static const char *const options[] = {"/>", "actuatorgroupdisable='2'/>", "><flag clampctrl='disable'/></option>"};
    for (int k = 0; k < 3; ++k) {
      snprintf(xml, sizeof xml,
               "<mujoco><option integrator='implicitfast' timestep='.02' %s%s<actuator>%s</actuator></mujoco>",
               options[k], body, actuators[i]);
      run_model(xml, 20, 3);
    }
  }
  print_message("largest error relative to the change %.2g\n", worst);
}

// A servo whose force is exactly the limit that it, its joint or its tendon has: MuJoCo takes its damping as gone.
static void exactly_at_a_limit(void **state) {
  (void)state;
  static const char *const limits[][3] = {{"", "", ""},
                                          {"forcerange='-2 2'", "", ""},
                                          {"", "actuatorfrcrange='-2 2'", ""},
                                          {"", "", "actuatorfrcrange='-2 2'"}};
  double next[4];
  for (int k = 0; k < 4; ++k) {
    char xml[1000];
    SnOracle o;
    snprintf(xml, sizeof xml,
             "<mujoco><compiler autolimits='true'/><option integrator='implicitfast' timestep='.02' gravity='0 0 0'/>"
             "<worldbody><body><joint name='a' type='slide' axis='1 0 0' %s/><geom size='.1'/></body></worldbody>"
             "<tendon><fixed name='u' %s><joint joint='a' coef='1'/></fixed></tendon><actuator><general %s %s "
             "gainprm='1' biastype='affine' biasprm='0 0 -1'/></actuator></mujoco>",
             limits[k][1], limits[k][2], k == 3 ? "tendon='u'" : "joint='a'", limits[k][0]);
    sn_oracle_load_string(&o, xml);
    o.d->qvel[0] = 1;
    o.d->ctrl[0] = 3;
    mj_forward(o.mj, o.d);
    assert_true(o.d->actuator_force[0] == 2 && o.d->qfrc_actuator[0] == 2);
    check_integrate(&o, xml);
    next[k] = o.d->qvel[0];
    sn_oracle_free(&o);
  }
  for (int k = 1; k < 4; ++k) assert_true(next[k] > next[0] + 1e-6);
}

// Bodies that spin freely: simple, off-centre, with welded and with jointed parts.
static void gyroscopic(void **state) {
  (void)state;
  worst = 0;
  run_model(
      "<mujoco><option integrator='implicitfast' timestep='.02' gravity='0 0 0'/><worldbody><body><freejoint/><geom "
      "type='box' size='.1 .2 .3'/></body>"
      "<body pos='1 0 0'><freejoint/><geom type='box' size='.1 .2 .3' pos='.1 .05 .2'/></body>"
      "<body pos='2 0 0'><joint type='free' damping='.1 .2' armature='.1'/><geom type='box' size='.1 .2 .3' pos='.1 "
      ".05 .2'/><body pos='.3 .2 0'><geom size='.2'/></body></body>"
      "<body pos='3 0 0'><freejoint/><geom type='box' size='.1 .2 .3'/><body pos='.3 .2 0'><joint/><geom "
      "size='.2'/></body></body></worldbody></mujoco>",
      10, 10);
  print_message("largest error relative to the change %.2g\n", worst);
}

// On the manifold: a step of velocity 0 keeps qpos, one of a full turn about any axis returns to the same rotation,
// which is the negative of its quaternion, and unnormalised quaternions come back unit.
static void positions(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o,
                        "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body><body><joint type='ball'/><joint "
                        "type='slide'/><geom size='.1'/></body></worldbody></mujoco>");
  sn_dynamics_sample(&o, 1);
  double qpos[12], qvel[10];
  sn_real ours[12], vel[10];
  for (int i = 0; i < 12; ++i) ours[i] = (sn_real)(qpos[i] = o.d->qpos[i] * (i == 8 ? 1.0 : 1.1));
  for (int i = 0; i < 10; ++i) vel[i] = (sn_real)(qvel[i] = 3 * sn_oracle_uniform(&o));
  mj_integratePos(o.mj, qpos, qvel, .1);
  sn_integrate_pos(o.m, &o.lane, ours, vel, (sn_real).1);
  assert_true(sn_oracle_error(ours, qpos, 12) < SN_TOL(1e-14, 1e-6));
  for (int i = 0; i < 10; ++i) vel[i] = (sn_real)(qvel[i] = 0);
  mj_integratePos(o.mj, qpos, qvel, .1);
  sn_integrate_pos(o.m, &o.lane, ours, vel, (sn_real).1);
  assert_true(sn_oracle_error(ours, qpos, 12) < SN_TOL(1e-14, 1e-6));
  static const int turn[2] = {3, 6}, quat[2] = {3, 7};  // dof and coordinate of the rotations
  for (int k = 0; k < 2; ++k) {
    double axis[3];
    for (int i = 0; i < 3; ++i) axis[i] = sn_oracle_uniform(&o);
    mju_normalize3(axis);
    for (int i = 0; i < 3; ++i) vel[turn[k] + i] = (sn_real)(2 * mjPI / 0.1 * axis[i]);
    for (int i = 0; i < 4; ++i) qpos[quat[k] + i] *= -1;
  }
  sn_integrate_pos(o.m, &o.lane, ours, vel, (sn_real).1);
  assert_true(sn_oracle_error(ours, qpos, 12) < SN_TOL(1e-14, 1e-6));
  sn_oracle_free(&o);
}

// Nothing that moves: the memory behind a world stays as it was.
static void nothing_moves(void **state) {
  (void)state;
  const char *const integrator[] = {"Euler", "implicitfast", "implicit", "RK4", "discrete"};
  for (int k = 0; k < 10; ++k) {
    enum { GUARD = 4096 };
    char xml[500];
    SnOracle o;
    SnWorld w;
    snprintf(
        xml, sizeof xml,
        "<mujoco><option integrator='%s' %s/><worldbody><geom size='.1'/><body mocap='true'><geom size='.1'/></body>"
        "</worldbody></mujoco>",
        integrator[k % 5], k < 5 ? "" : "density='3' viscosity='1'");
    sn_oracle_load_string(&o, xml);
    const size_t size = sn_world_size(o.m);
    unsigned char *memory = aligned_alloc(64, (size + 63) / 64 * 64 + GUARD);
    assert_non_null(memory);
    memset(memory, 0xa5, size + GUARD);
    sn_world_init(o.m, &w, memory);
    sn_step(o.m, &w, &o.lane);
    assert_true((double)w.time[0] == (double)(sn_real)o.m->opt.timestep);
    for (size_t i = size; i < size + GUARD; ++i) assert_int_equal(memory[i], 0xa5);
    free(memory);
    sn_oracle_free(&o);
  }
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(positions),    cmocka_unit_test(euler),
                                     cmocka_unit_test(implicitfast), cmocka_unit_test(implicit),
                                     cmocka_unit_test(runge_kutta),  cmocka_unit_test(actuator_slopes),
                                     cmocka_unit_test(gyroscopic),   cmocka_unit_test(exactly_at_a_limit),
                                     cmocka_unit_test(nothing_moves)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
