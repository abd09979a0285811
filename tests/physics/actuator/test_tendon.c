// Tendon paths, lengths and moment arms against MuJoCo, and their properties.
#include <stdio.h>

#include "physics/actuator/actuator.h"
#include "tests/support/actuator_models.h"
#include "tests/support/oracle.h"
#include "tests/support/tolerance.h"

// Runs the stage on MuJoCo's kinematics and compares.
static void compare(SnOracle *o) {
  mj_forward(o->mj, o->d);
  sn_oracle_fill(o);
  sn_world_poison(o->m, &o->w, SN_STAGE_TENDON);
  sn_tendon(o->m, &o->w, &o->lane);
  sn_oracle_check("ten_length", o->w.ten_length, o->d->ten_length, o->m->ntendon, SN_TOL_TENDON);
  sn_oracle_check("ten_J", o->w.ten_J, o->d->ten_J, o->m->nJten, SN_TOL_MOMENT);
  bool same = true;  // in float a path may touch when MuJoCo's does not
  for (int t = 0; t < o->m->ntendon; ++t) same = same && o->w.ten_wrapnum[t] == o->d->ten_wrapnum[t];
  if (!same && sizeof(sn_real) == sizeof(float)) return;
  int points = 0;
  for (int t = 0; t < o->m->ntendon; ++t) {
    if (o->w.ten_wrapnum[t] != o->d->ten_wrapnum[t])
      fail_msg("tendon %s: %d path points, MuJoCo has %d", sn_model_name(o->m, SN_NAME_TENDON, t), o->w.ten_wrapnum[t],
               o->d->ten_wrapnum[t]);
    assert_int_equal(o->w.ten_wrapadr[t], o->d->ten_wrapadr[t]);
    points += o->d->ten_wrapnum[t];
  }
  sn_oracle_check("wrap_xpos", o->w.wrap_xpos, o->d->wrap_xpos, 3 * points, SN_TOL_TENDON);
  for (int i = 0; i < points; ++i) assert_int_equal(o->w.wrap_obj[i], o->d->wrap_obj[i]);
}

static void every_branch(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, sn_tendon_xml);
  sn_model_need_all(o.m);
  for (int k = 0; k < 500; ++k) {
    sn_oracle_randomize(&o, 1);
    for (int i = 0; i < 3; ++i) o.d->mocap_pos[i] += 0.1 * sn_oracle_uniform(&o);
    compare(&o);
  }
  sn_oracle_free(&o);
}

// True when the end lies on the ray opposite the side point (of a cylinder: seen along its axis), where the winding of
// the path jumps and the last bit decides.
static bool on_the_jump(const char *side, const char *end, int cylinder) {
  double s[3], p[3];
  if (!side || sscanf(side, "%lf %lf %lf", s, s + 1, s + 2) != 3) return false;
  assert_int_equal(sscanf(end, "%lf %lf %lf", p, p + 1, p + 2), 3);
  if (cylinder) s[2] = p[2] = 0;
  const double cross[3] = {s[1] * p[2] - s[2] * p[1], s[2] * p[0] - s[0] * p[2], s[0] * p[1] - s[1] * p[0]};
  const double dot = s[0] * p[0] + s[1] * p[1] + s[2] * p[2];
  return dot < 0 && fabs(cross[0]) + fabs(cross[1]) + fabs(cross[2]) < 1e-12;
}

// Endpoints opposite across the centre or in one direction from it, side sites in line with an endpoint or on the axis.
static void degenerate(void **state) {
  (void)state;
  static const char *const ends[] = {"-.2 0 0", ".2 0 0",    "0 .2 0",   "0 0 .2",
                                     ".1 0 .3", "-.1 0 -.3", "-.06 0 0", "0 .06 0"};
  static const char *const sides[] = {NULL, "0 .1 0", "0 -.1 0", ".1 0 0", "-.1 0 0", "0 0 .1", "0 .01 0", "0 0 .01"};
  int cases = 0;
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j)
      for (int s = 0; s < 8; ++s)
        for (int cylinder = 0; cylinder < 2; ++cylinder) {
          if (on_the_jump(sides[s], ends[i], cylinder) || on_the_jump(sides[s], ends[j], cylinder)) continue;
          char xml[2000];
          snprintf(xml, sizeof xml,
                   "<mujoco><worldbody><body><joint/><geom name='g' type='%s' size='.05 .1'/><site name='s' pos='%s'/>"
                   "<site name='a' pos='%s'/></body><site name='b' pos='%s'/></worldbody>"
                   "<tendon><spatial><site site='a'/><geom geom='g' %s/><site site='b'/></spatial></tendon></mujoco>",
                   cylinder ? "cylinder" : "sphere", sides[s] ? sides[s] : "0 0 0", ends[i], ends[j],
                   sides[s] ? "sidesite='s'" : "");
          SnOracle o;
          sn_oracle_load_string(&o, xml);
          mj_forward(o.mj, o.d);
          sn_oracle_fill(&o);
          sn_tendon(o.m, &o.w, &o.lane);
          const double e = sn_oracle_error(o.w.ten_length, o.d->ten_length, 1);
          if (!(e < SN_TOL_TENDON))
            fail_msg("ends %s, %s, side %s, cylinder %d: length %g, MuJoCo %g", ends[i], ends[j],
                     sides[s] ? sides[s] : "none", cylinder, (double)o.w.ten_length[0], o.d->ten_length[0]);
          sn_oracle_free(&o);
          ++cases;
        }
  print_message("%d configurations\n", cases);
}

// A site within 1e-6 of its body's frame is taken to be there, also on a stretch of path that never changes.
static void nearly_equal_frames(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o,
                        "<mujoco><worldbody><site name='w' pos='.3 0 .1'/><body><joint axis='0 1 0'/><geom name='g' "
                        "size='.05' pos='7e-7 0 0'/><site name='a' pos='.1 0 0'/><site name='b' pos='-7e-7 0 0'/><site "
                        "name='s' pos='0 0 7e-7'/></body></worldbody><tendon><spatial><site site='a'/><site site='b'/>"
                        "</spatial><spatial><site site='a'/><geom geom='g' sidesite='s'/><site site='w'/></spatial>"
                        "</tendon></mujoco>");
  sn_model_need_all(o.m);
  for (int k = 0; k < 20; ++k) {
    sn_oracle_randomize(&o, 1);
    compare(&o);
  }
  sn_oracle_free(&o);
}

// Models of people: random poses inside the joint ranges.
static void real_models(void **state) {
  (void)state;
  static const char *const files[] = {"envs/myo/assets/hand/myohand_baoding.xml", "simhive/myo_sim/arm/myoarm.xml",
                                      "simhive/myo_sim/torso/myotorso.xml", "simhive/myo_sim/leg/myolegs.xml",
                                      "simhive/myo_sim/finger/myofinger_v0.xml"};
  for (size_t f = 0; f < sizeof files / sizeof *files; ++f) {
    SnOracle o;
    sn_oracle_load_myosuite(&o, files[f]);
    sn_model_need_all(o.m);
    print_message("%s: %d tendons, %d path entries, %d straight segments, %d that may wrap, %d moment arms\n", files[f],
                  o.m->ntendon, o.m->nwrap, o.m->nseg, o.m->nwseg, o.m->narm);
    for (int k = 0; k < 100; ++k) {
      sn_oracle_randomize(&o, 1);
      compare(&o);
    }
    sn_oracle_free(&o);
  }
}

// Moment arms are the derivative of the length: central differences of our own lengths along MuJoCo's kinematics.
static void moment_arms_are_derivatives(void **state) {
  (void)state;
  if (sizeof(sn_real) == sizeof(float)) skip();
  SnOracle o;
  sn_oracle_load_string(&o, sn_tendon_xml);
  const double h = 1e-6;
  double J[64], dq[64], length[2][16];
  assert_true(o.m->nv <= 64 && o.m->ntendon <= 16);
  for (int k = 0; k < 20; ++k) {
    sn_oracle_randomize(&o, 0);
    mj_forward(o.mj, o.d);
    sn_oracle_fill(&o);
    sn_tendon(o.m, &o.w, &o.lane);
    for (int v = 0; v < o.m->nv; ++v) dq[v] = sn_oracle_uniform(&o);
    for (int t = 0; t < o.m->ntendon; ++t) {
      J[t] = 0;
      for (int i = 0; i < o.m->ten_J_rownnz[t]; ++i)
        J[t] += (double)o.w.ten_J[o.m->ten_J_rowadr[t] + i] * dq[o.m->ten_J_colind[o.m->ten_J_rowadr[t] + i]];
    }
    double q[64];
    memcpy(q, o.d->qpos, sizeof(double) * (size_t)o.m->nq);
    for (int side = 0; side < 2; ++side) {
      memcpy(o.d->qpos, q, sizeof(double) * (size_t)o.m->nq);
      mj_integratePos(o.mj, o.d->qpos, dq, side ? h : -h);
      mj_forward(o.mj, o.d);
      sn_oracle_fill(&o);
      sn_tendon(o.m, &o.w, &o.lane);
      for (int t = 0; t < o.m->ntendon; ++t) length[side][t] = (double)o.w.ten_length[t];
    }
    // the inside wrap is solved to 1e-6 only, as in MuJoCo: its length is still right to second order
    for (int t = 0; t < o.m->ntendon; ++t)
      assert_true(fabs((length[1][t] - length[0][t]) / (2 * h) - J[t]) < 2e-6 * (1 + fabs(J[t])));
  }
  sn_oracle_free(&o);
}

// Moving all trees and the mocap body together changes no length.
static void rigid_motion(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, sn_tendon_xml);
  sn_oracle_randomize(&o, 0);
  mj_forward(o.mj, o.d);
  sn_oracle_fill(&o);
  sn_tendon(o.m, &o.w, &o.lane);
  sn_real before[16];
  memcpy(before, o.w.ten_length, sizeof(sn_real) * (size_t)o.m->ntendon);
  const double c = cos(0.5), s = sin(0.5);
  for (int i = 0; i < o.m->nsite; ++i) {
    sn_real *p = o.w.site_xpos + 3 * i, x = p[0], y = p[1];
    p[0] = (sn_real)(c * x - s * y + 1);
    p[1] = (sn_real)(s * x + c * y - 2);
  }
  for (int i = 0; i < o.m->ngeom; ++i) {
    sn_real *p = o.w.geom_xpos + 3 * i, *r = o.w.geom_xmat + 9 * i;
    for (int k = -1; k < 3; ++k) {
      sn_real *a = k < 0 ? p : r + k, *b = k < 0 ? p + 1 : r + 3 + k;
      const sn_real x = *a, y = *b;
      *a = (sn_real)(c * x - s * y + (k < 0 ? 1 : 0));
      *b = (sn_real)(s * x + c * y - (k < 0 ? 2 : 0));
    }
  }
  sn_tendon(o.m, &o.w, &o.lane);
  for (int t = 0; t < o.m->ntendon; ++t)
    assert_true(fabs((double)(before[t] - o.w.ten_length[t])) < SN_TOL(1e-12, 1e-5));
  sn_oracle_free(&o);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_branch),
                                     cmocka_unit_test(degenerate),
                                     cmocka_unit_test(nearly_equal_frames),
                                     cmocka_unit_test(rigid_motion),
                                     cmocka_unit_test(moment_arms_are_derivatives),
                                     cmocka_unit_test(real_models)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
