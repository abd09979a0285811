// Transmissions, activations and forces against MuJoCo.
#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/oracle.h"
#include "tests/harness/tolerance.h"

#define BODIES                                                                                                      \
  "<worldbody><site name='w' pos='.3 .1 1' euler='10 20 30'/>"                                                      \
  "<body name='a' pos='0 0 1' gravcomp='.7'><joint name='h' axis='0 1 .2' range='-60 60' actuatorfrcrange='-2 3'/>" \
  "<joint name='s' type='slide' axis='1 0 .1' actuatorgravcomp='true'/>"                                            \
  "<geom size='.05' pos='.1 0 0'/><site name='a' pos='.05 0 .02' euler='10 40 30'/>"                                \
  "<body name='b' pos='.2 0 0' gravcomp='1.2'><joint name='ball' type='ball' actuatorgravcomp='true'/>"             \
  "<geom size='.03' pos='.1 0 0'/><site name='b' pos='.06 0 .02' euler='-50 20 70'/>"                               \
  "<body name='c' pos='.15 0 0'><joint name='c' axis='0 1 0'/><geom size='.02' pos='.1 0 0'/>"                      \
  "<site name='c' pos='.1 .01 .01' euler='0 30 0'/></body></body>"                                                  \
  "<body name='d' pos='0 .3 0'><joint name='d' axis='0 0 1'/><geom size='.02' pos='.05 0 0'/>"                      \
  "<site name='d' pos='.1 0 0' euler='90 0 20'/></body></body>"                                                     \
  "<body name='f' pos='.2 .2 1.5'><freejoint name='f'/><geom size='.03' pos='.01 0 0'/>"                            \
  "<site name='f' pos='.02 .02 .01' euler='5 6 7'/></body></worldbody>"                                             \
  "<tendon><spatial name='t' actuatorfrcrange='-4 3'><site site='w'/><site site='a'/><site site='c'/></spatial>"    \
  "<spatial name='t2'><site site='b'/><site site='f'/></spatial>"                                                   \
  "<fixed name='x'><joint joint='h' coef='.3'/><joint joint='d' coef='-2'/></fixed></tendon>"

static const char kZoo[] =
    "<mujoco><option timestep='.004'/>" BODIES
    "<actuator>"
    // transmissions
    "<motor joint='h' gear='2'/><motor joint='s'/><motor joint='ball' gear='1 2 3'/><motor jointinparent='ball' "
    "gear='3 1 -2'/>"
    "<motor joint='f' gear='1 2 3 4 5 6'/><motor jointinparent='f' gear='1 -2 3 4 -5 6'/><motor jointinparent='c' "
    "gear='-3'/>"
    "<motor tendon='t' gear='1.5'/><motor tendon='t' gear='-.5'/><motor tendon='t2'/><motor tendon='x' gear='4'/>"
    "<motor site='c' gear='1 2 3 .4 .5 .6'/><motor site='f' gear='0 0 1 0 0 0'/>"
    "<motor site='c' refsite='a' gear='1 2 3 0 0 0'/><motor site='c' refsite='d' gear='1 2 3 .3 .2 .1'/>"
    "<motor site='f' refsite='b' gear='0 0 0 1 2 3'/><motor site='d' refsite='w' gear='0 0 0 .5 0 0'/>"
    "<motor cranksite='b' slidersite='a' cranklength='.5' gear='3'/><motor cranksite='c' slidersite='d' "
    "cranklength='.05'/>"
    "<motor cranksite='f' slidersite='w' cranklength='2'/>"
    // activations, gains, biases
    "<general joint='h' dyntype='integrator' gainprm='3' actrange='-.2 .6'/>"
    "<general joint='h' dyntype='filter' dynprm='.03' gainprm='3' actearly='true'/>"
    "<general joint='h' dyntype='filterexact' dynprm='.02' gainprm='3' ctrlrange='-.3 .4'/>"
    "<general joint='s' dyntype='filterexact' dynprm='.02' gainprm='3' actearly='true' actrange='-.1 .1' "
    "forcerange='-.1 .2'/>"
    "<general joint='s' gaintype='affine' gainprm='1 2 3' biastype='affine' biasprm='.3 -2 .4'/>"
    "<position joint='c' kp='20' kv='.5' forcerange='-3 3'/><velocity joint='c' kv='2'/><intvelocity joint='d' kp='3' "
    "actrange='-1 1'/>"
    "<damper joint='d' kv='2' ctrlrange='0 1'/><cylinder joint='s' timeconst='.1' area='3' bias='.1 .2 .3'/>"
    "<muscle tendon='t' timeconst='.01 .04' range='.75 1.05' force='10' lengthrange='.4 1'/>"
    "<muscle tendon='t2' tausmooth='.3' scale='5' lengthrange='.1 1.5' ctrlrange='-1 2'/>"
    "<muscle joint='h' lengthrange='-1 1' lmin='.3' lmax='1.9' vmax='2' fpmax='1' fvmax='1.5'/>"
    // servos on rotations, whose setpoints are taken modulo a turn
    "<position joint='ball' kp='2' gear='0 .3 0'/><position jointinparent='ball' kp='2' gear='.1 .2 .1'/>"
    "<position site='c' refsite='a' kp='1' gear='0 0 0 .2 0 .1'/><intvelocity site='c' refsite='a' kp='1' gear='0 0 0 "
    "0 .1 .1'/>"
    "<general group='3' joint='d' dyntype='filter' dynprm='.1'/>"
    "</actuator></mujoco>";

static void dense(const SnOracle *o, double *ref, sn_real *ours) {
  const int nv = o->m->nv;
  memset(ref, 0, sizeof *ref * (size_t)(nv * o->m->nout));
  memset(ours, 0, sizeof *ours * (size_t)(nv * o->m->nout));
  for (int i = 0; i < o->m->nout; ++i) {
    for (int k = 0; k < o->d->moment_rownnz[i]; ++k) {
      const int at = o->d->moment_rowadr[i] + k;
      ref[i * nv + o->d->moment_colind[at]] = o->d->actuator_moment[at];
    }
    for (int k = 0; k < o->m->mom_rownnz[i]; ++k) {
      const int at = o->m->mom_rowadr[i] + k;
      ours[i * nv + o->m->mom_colind[at]] = o->w.actuator_moment[at];
    }
  }
}

// Each row of actuator_moment on its own, so that large ones do not hide small ones.
static void compare_transmission(SnOracle *o) {
  sn_world_poison(o->m, &o->w, SN_STAGE_TRANSMISSION);
  sn_transmission(o->m, &o->w, &o->lane);
  sn_oracle_check("actuator_length", o->w.actuator_length, o->d->actuator_length, o->m->nout, SN_TOL_TENDON);
  const int nv = o->m->nv;
  double *ref = malloc(sizeof *ref * (size_t)(nv * o->m->nout) + 1);
  sn_real *ours = malloc(sizeof *ours * (size_t)(nv * o->m->nout) + 1);
  dense(o, ref, ours);
  for (int i = 0; i < o->m->nout; ++i) {
    char name[40];
    snprintf(name, sizeof name, "actuator_moment row %d", i);
    sn_oracle_check(name, ours + i * nv, ref + i * nv, nv, SN_TOL_MOMENT);
  }
  free(ref);
  free(ours);
}

static void compare_actuation(SnOracle *o) {
  sn_world_poison(o->m, &o->w, SN_STAGE_ACTUATION);
  sn_actuation(o->m, &o->w, &o->lane);
  sn_oracle_check("act_dot", o->w.act_dot, o->d->act_dot, o->m->na, SN_TOL_FORCES);
  for (int i = 0; i < o->m->nout; ++i) {
    char name[40];
    snprintf(name, sizeof name, "actuator_force %d", i);
    sn_oracle_check(name, o->w.actuator_force + i, o->d->actuator_force + i, 1, SN_TOL_FORCES);
  }
  sn_oracle_check("qfrc_actuator", o->w.qfrc_actuator, o->d->qfrc_actuator, o->m->nv, SN_TOL_FORCES);
}

// The activations that mj_step leaves (Euler).
static void compare_next_activation(SnOracle *o) {
  sn_real next[256];
  assert_true(o->m->na <= 256);
  sn_next_activation(o->m, &o->w, &o->lane, o->m->opt.timestep, next);
  mj_step(o->mj, o->d);
  sn_oracle_check("next act", next, o->d->act, o->m->na, SN_TOL_FORCES);
}

static void compare(SnOracle *o) {
  for (int i = 0; i < o->m->nu; ++i) o->d->ctrl[i] *= 1.5;  // beyond their ranges, too
  mj_forward(o->mj, o->d);
  sn_oracle_fill(o);
  compare_transmission(o);
  compare_actuation(o);
  compare_next_activation(o);
}

static void every_branch(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, kZoo);
  for (int k = 0; k < 300; ++k) {
    sn_oracle_randomize(&o, 1);
    for (int i = 0; i < o.m->na; ++i) o.d->act[i] *= 1.3;
    compare(&o);
  }
  sn_oracle_free(&o);
}

// Flags and groups that switch things off; a control that is not a number switches all controls off.
static void switches(void **state) {
  (void)state;
  for (int c = 0; c < 7; ++c) {
    SnError err;
    mjModel *mj = sn_oracle_read_string(kZoo, &err);
    assert_non_null(mj);
    sn_oracle_tighten(mj);
    if (c == 0) mj->opt.disableflags |= mjDSBL_ACTUATION;
    if (c == 1) mj->opt.disableflags |= mjDSBL_CLAMPCTRL;
    if (c == 2) mj->opt.disableflags |= mjDSBL_GRAVITY;
    if (c == 3) mj->opt.disableactuator = 1 << 3;
    if (c == 4) mj->opt.disableactuator = 1;
    if (c == 5) mj->opt.disableflags |= mjDSBL_SPRING | mjDSBL_DAMPER;
    SnOracle o;
    assert_int_equal(sn_oracle_open(&o, mj, &err), SN_OK);
    for (int k = 0; k < 20; ++k) {
      sn_oracle_randomize(&o, 1);
      if (c == 6) o.d->ctrl[5] = NAN;
      if (c == 0) memset(o.d->act_dot, 0, sizeof(double) * (size_t)o.m->na);
      compare(&o);
    }
    sn_oracle_free(&o);
  }
}

// Adhesion: contacts of every kind on a pile of bodies, some in the gap, one on a geom of the world.
static void adhesion(void **state) {
  (void)state;
  static const char *const cones[] = {"pyramidal", "elliptic"};
  for (int c = 0; c < 2; ++c) {
    char xml[2000];
    snprintf(
        xml, sizeof xml,
        "<mujoco><option cone='%s'/><default><geom margin='.1' gap='.05'/></default><worldbody>"
        "<geom type='plane' size='1 1 1'/><body name='a' pos='0 0 .05'><freejoint/><geom size='.1' condim='4'/>"
        "<body name='b' pos='.19 0 0'><joint/><geom size='.1' condim='1'/></body></body>"
        "<body name='c' pos='0 0 .3'><joint type='slide' axis='0 .2 1'/><joint/><geom size='.1' condim='6'/></body>"
        "</worldbody><actuator><adhesion body='a' ctrlrange='0 1' gain='2'/><adhesion body='b' ctrlrange='0 1'/>"
        "<adhesion body='c' ctrlrange='0 2'/><adhesion body='world' ctrlrange='0 2'/></actuator></mujoco>",
        cones[c]);
    SnOracle o;
    sn_oracle_load_string(&o, xml);
    int touching = 0;
    for (int k = 0; k < 100; ++k) {
      sn_oracle_randomize(&o, 1);
      o.d->qpos[7] *= 0.2;
      o.d->qpos[8] *= 0.2;
      compare(&o);
      for (int i = 0; i < o.d->ncon; ++i) touching |= 1 << o.d->contact[i].exclude;
    }
    assert_int_equal(touching & 3, 3);  // contacts with rows and contacts in the gap
    sn_oracle_free(&o);
  }
}

static void no_actuators(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, "<mujoco>" BODIES "</mujoco>");
  sn_oracle_randomize(&o, 1);
  compare(&o);
  sn_oracle_free(&o);
}

static void real_models(void **state) {
  (void)state;
  static const char *const files[] = {"envs/myo/assets/hand/myohand_baoding.xml", "simhive/myo_sim/arm/myoarm.xml",
                                      "simhive/myo_sim/torso/myotorso.xml", "simhive/myo_sim/leg/myolegs.xml"};
  for (size_t f = 0; f < sizeof files / sizeof *files; ++f) {
    SnOracle o;
    sn_oracle_load_myosuite(&o, files[f]);
    for (int k = 0; k < 50; ++k) {
      sn_oracle_randomize(&o, 3);
      compare(&o);
    }
    sn_oracle_free(&o);
  }
}

// A muscle without activation gives its passive force alone, and pulls.
static void passive_only(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(
      &o,
      "<mujoco><worldbody><site name='w' pos='0 0 1'/><body><joint name='h' axis='0 1 0'/><geom size='.1' pos='.3 0 "
      "0'/>"
      "<site name='s' pos='.3 0 .1'/></body></worldbody><tendon><spatial name='t'><site site='w'/><site site='s'/>"
      "</spatial></tendon><actuator><muscle tendon='t' force='10' lengthrange='.7 1.2'/></actuator></mujoco>");
  for (int k = 0; k < 50; ++k) {
    sn_oracle_randomize(&o, 3);
    o.d->act[0] = o.d->ctrl[0] = 0;
    mj_forward(o.mj, o.d);
    sn_oracle_fill(&o);
    sn_actuation(o.m, &o.w, &o.lane);
    const sn_real still = o.w.actuator_force[0];
    assert_true(still <= 0);
    o.w.actuator_velocity[0] = 7;
    sn_actuation(o.m, &o.w, &o.lane);
    assert_true(o.w.actuator_force[0] == still);
    o.w.act[0] = 1;
    o.w.actuator_velocity[0] = 0;
    sn_actuation(o.m, &o.w, &o.lane);
    assert_true(o.w.actuator_force[0] <= still);
  }
  sn_oracle_free(&o);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_branch), cmocka_unit_test(switches),
                                     cmocka_unit_test(adhesion),     cmocka_unit_test(no_actuators),
                                     cmocka_unit_test(passive_only), cmocka_unit_test(real_models)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
