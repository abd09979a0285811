// Frames against mj_kinematics, folding, and frames on demand.
#include "physics/dynamics/dynamics.h"
#include "tests/support/dynamics_models.h"

static double worst;

static void same(const char *model, const char *field, const sn_real *ours, const double *ref, int n) {
  const double e = sn_oracle_error(ours, ref, n);
  if (!(e <= SN_TOL_FRAME)) fail_msg("%s: %s: relative error %g", model, field, e);
  worst = sn_larger(worst, e);
}

static void check_frames(SnOracle *o, const char *name) {
  const SnModel *m = o->m;
  const SnWorld *w = &o->w;
  const mjData *d = o->d;
  sn_kinematics(m, &o->w, &o->lane);
  same(name, "xpos", w->xpos, d->xpos, 3 * m->nbody);
  same(name, "xquat", w->xquat, d->xquat, 4 * m->nbody);
  same(name, "xmat", w->xmat, d->xmat, 9 * m->nbody);
  same(name, "xipos", w->xipos, d->xipos, 3 * m->nbody);
  same(name, "ximat", w->ximat, d->ximat, 9 * m->nbody);
  same(name, "xanchor", w->xanchor, d->xanchor, 3 * m->njnt);
  same(name, "xaxis", w->xaxis, d->xaxis, 3 * m->njnt);
  same(name, "geom_xpos", w->geom_xpos, d->geom_xpos, 3 * m->ngeom);
  same(name, "geom_xmat", w->geom_xmat, d->geom_xmat, 9 * m->ngeom);
  same(name, "site_xpos", w->site_xpos, d->site_xpos, 3 * m->nsite);
  same(name, "site_xmat", w->site_xmat, d->site_xmat, 9 * m->nsite);
}

static void frames(void **state) {
  (void)state;
  sn_dynamics_for_models(5, 1.0, check_frames);
  print_message("largest relative error %.2g\n", worst);
}

// A coordinate quaternion of any length turns like the unit one, and is left as it is; a zero one is no turn.
static void quaternions(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(
      &o,
      "<mujoco><worldbody><body pos='0 0 1'><freejoint/><geom size='.1' pos='.1 0 0'/>"
      "<body pos='.2 0 0'><joint type='ball'/><geom size='.1' pos='.1 0 0'/></body></body></worldbody></mujoco>");
  sn_model_need_all(o.m);
  for (int i = 0; i < 4; ++i) {
    sn_dynamics_sample(&o, 0);
    const double scale[4] = {2, 1e-3, 30, 0};
    for (int k = 3; k < 11; ++k) o.d->qpos[k] *= scale[i];
    mj_forward(o.mj, o.d);
    sn_oracle_copy_state(&o);
    check_frames(&o, "scaled quaternions");
    for (int k = 3; k < 11; ++k) assert_true(o.w.qpos[k] == (sn_real)o.d->qpos[k]);
  }
  sn_oracle_free(&o);
}

// By default only what something reads is computed; any frame can be had on demand.
static void needed_only(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(
      &o,
      "<mujoco><worldbody><geom name='floor' type='plane' size='1 1 1'/><site name='w' pos='1 2 3'/><body pos='0 0 "
      "1'><joint axis='0 1 0'/>"
      "<geom name='bone' size='.1' pos='.1 0 0' contype='0' conaffinity='0'/><geom name='skin' size='.1' pos='.2 0 0'/>"
      "<geom name='wrap' type='cylinder' size='.02 .1' contype='0' conaffinity='0'/>"
      "<site name='used' pos='.3 0 .1'/><site name='idle' pos='.4 0 .1'/><body pos='.2 0 0' euler='0 30 0'>"
      "<geom name='far' size='.1' contype='0' conaffinity='0'/><site name='fix' pos='0 .1 0' euler='20 0 "
      "0'/></body></body></worldbody>"
      "<tendon><spatial><site site='w'/><geom geom='wrap'/><site site='used'/></spatial></tendon></mujoco>");
  sn_dynamics_sample(&o, 1);
  sn_kinematics(o.m, &o.w, &o.lane);
  const SnModel *m = o.m;
  static const char *const geoms[] = {"floor", "bone", "skin", "wrap", "far"}, *const sites[] = {"w", "used", "idle",
                                                                                                 "fix"};
  static const int geom_needed[] = {1, 0, 1, 1, 0}, site_needed[] = {1, 1, 0, 0};
  for (int k = 0; k < 5; ++k) {
    const int i = sn_model_find(m, SN_NAME_GEOM, geoms[k]);
    assert_int_equal(!isnan(o.w.geom_xpos[3 * i]), geom_needed[k]);
    sn_real pos[3], mat[9];
    sn_geom_pose(m, &o.w, i, pos, mat);
    same(geoms[k], "sn_geom_pose", pos, o.d->geom_xpos + 3 * i, 3);
    same(geoms[k], "sn_geom_pose", mat, o.d->geom_xmat + 9 * i, 9);
  }
  for (int k = 0; k < 4; ++k) {
    const int i = sn_model_find(m, SN_NAME_SITE, sites[k]);
    assert_int_equal(!isnan(o.w.site_xpos[3 * i]), site_needed[k]);
    sn_real pos[3], mat[9];
    sn_site_pose(m, &o.w, i, pos, mat);
    same(sites[k], "sn_site_pose", pos, o.d->site_xpos + 3 * i, 3);
    same(sites[k], "sn_site_pose", mat, o.d->site_xmat + 9 * i, 9);
  }
  sn_site_pose(m, &o.w, 1, o.w.site_xpos, NULL);
  sn_oracle_free(&o);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(frames), cmocka_unit_test(quaternions),
                                     cmocka_unit_test(needed_only)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
