// Transmissions, activations and forces against MuJoCo.
#include <stdio.h>
#include <stdlib.h>

#include "physics/actuator/actuator.h"
#include "physics/collision/collision.h"
#include "physics/dynamics/dynamics.h"
#include "tests/support/actuator_models.h"
#include "tests/support/oracle.h"
#include "tests/support/tolerance.h"

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

static const char *const models[] = {sn_actuator_xml, sn_controller_xml, sn_motor_xml, sn_orientation_xml};

static void every_branch(void **state) {
  (void)state;
  for (int x = 0; x < 4; ++x) {
    SnOracle o;
    sn_oracle_load_string(&o, models[x]);
    for (int k = 0; k < 300; ++k) {
      sn_oracle_randomize(&o, 1);
      for (int i = 0; i < o.m->na; ++i) o.d->act[i] *= 1.3;
      compare(&o);
    }
    sn_oracle_free(&o);
  }
}

// Flags and groups that switch things off; a control that is not a number switches all controls off.
static void switches(void **state) {
  (void)state;
  for (int k = 0; k < 28; ++k) {
    SnError err;
    const int c = k / 4;
    mjModel *mj = sn_oracle_read_string(models[k % 4], &err);
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
    for (int sample = 0; sample < 20; ++sample) {
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
    snprintf(xml, sizeof xml, sn_adhesion_xml, cones[c]);
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

// Contacts that a world with CFD has at a distance pull on nothing.
static void adhesion_with_cfd(void **state) {
  (void)state;
  char xml[2000];
  snprintf(xml, sizeof xml, sn_adhesion_xml, "pyramidal");
  SnOracle o;
  sn_oracle_load_string(&o, xml);
  sn_real *plain = malloc(sizeof *plain * (size_t)o.m->nmom + 1);
  assert_non_null(plain);
  int added = 0, pulls = 0;
  for (int k = 0; k < 50; ++k) {
    sn_oracle_randomize(&o, 1);
    o.d->qpos[2] += 0.1;
    sn_oracle_copy_state(&o);
    for (int cfd = 0; cfd < 2; ++cfd) {
      *o.w.cfd = (SnCfd){.on = cfd, .solimp = {0, SN_R(0.1), 1, 1, 4}, .width = SN_R(0.002)};
      sn_kinematics(o.m, &o.w, &o.lane);
      sn_com_pos(o.m, &o.w, &o.lane);
      const int before = *o.w.ncon;
      sn_collision(o.m, &o.w, &o.lane);
      added += cfd && *o.w.ncon > before;
      sn_transmission(o.m, &o.w, &o.lane);
      if (!cfd) memcpy(plain, o.w.actuator_moment, sizeof *plain * (size_t)o.m->nmom);
    }
    for (int i = 0; i < o.m->nmom; ++i) {
      assert_true(fabs((double)(plain[i] - o.w.actuator_moment[i])) < SN_TOL(1e-12, 1e-5));
      pulls += plain[i] != 0;
    }
  }
  assert_true(added > 10 && pulls > 10);
  free(plain);
  sn_oracle_free(&o);
}

static void no_actuators(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, sn_passive_xml);
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
                                     cmocka_unit_test(adhesion),     cmocka_unit_test(adhesion_with_cfd),
                                     cmocka_unit_test(no_actuators), cmocka_unit_test(passive_only),
                                     cmocka_unit_test(real_models)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
