// Contacts that pull: rows, forces and steps as MuJoCo's, in touch and in the gap, by both cones; a magnet that holds a
// ball; derivatives of a step by state and by the numbers of adhesion against differences.
#include <stdio.h>

#include "physics/constraint/constraint.h"
#include "physics/model/model_arrays.h"
#include "physics/step/step.h"
#include "tests/support/gradcheck.h"
#include "tests/support/parameter_check.h"
#include "tests/support/surface_model.h"
#include "tests/support/tolerance.h"

static void same(const char *what, const sn_real *ours, const double *ref, int n, double tolerance) {
  for (int i = 0; i < n; ++i)
    if (!(fabs((double)ours[i] - ref[i]) <= tolerance * (1 + fabs(ref[i]))))
      fail_msg("%s[%d] is %.12g, MuJoCo's %.12g", what, i, (double)ours[i], ref[i]);
}

// A hundred steps, each from MuJoCo's state.
static void against_mujoco(void **state) {
  (void)state;
  for (int k = 0; k < 2; ++k) {
    SnOracle o;
    int pulling = 0;
    sn_adhesion_load(&o, k == 1);
    assert_true(o.m->nadhesive > 3);
    for (int t = 0; t < 100; ++t) {
      sn_oracle_copy_state(&o);
      mj_forward(o.mj, o.d);
      sn_forward(o.m, &o.w, &o.lane);
      assert_int_equal(o.w.nefc[0], o.d->nefc);
      same("efc_aref", o.w.efc_aref, o.d->efc_aref, o.d->nefc, SN_TOL(1e-9, 1e-2));
      same("qfrc_adhesion", o.w.qfrc_adhesion, o.d->qfrc_adhesion, o.m->nv, SN_TOL(1e-9, 1e-4));
      for (int i = 0; i < o.d->ncon; ++i) {
        double ref[6];
        sn_real ours[6];
        mj_contactForce(o.mj, o.d, i, ref);
        sn_contact_force(&o.w, i, ours);
        same("force of a contact", ours, ref, 6, SN_TOL(1e-8, 1e-2));
        pulling += ref[0] < 0;
      }
      mj_step(o.mj, o.d);
      sn_step(o.m, &o.w, &o.lane);
      same("qvel", o.w.qvel, o.d->qvel, o.m->nv, SN_TOL(1e-8, 1e-2));
    }
    assert_true(pulling > 20);
    sn_oracle_free(&o);
  }
}

// A ball hangs below a magnet that is strong enough, and falls from another one; nothing pulls where passive forces are
// off.
static void a_magnet_holds(void **state) {
  (void)state;
  static const struct {
    const char *adhesion, *option;
    bool holds;
  } cases[] = {{"60", "", true}, {"30", "", false}, {"60", "<flag spring='disable' damper='disable'/>", false}};
  for (int i = 0; i < 3; ++i) {
    char xml[1000];
    SnOracle o;
    snprintf(xml, sizeof xml,
             "<mujoco><option>%s</option><worldbody><geom type='box' size='.3 .3 .05' pos='0 0 1' adhesion='%s' "
             "gap='.01'/><body "
             "pos='0 0 .85'><freejoint/><geom size='.1' mass='4'/></body></worldbody></mujoco>",
             cases[i].option, cases[i].adhesion);
    sn_oracle_load_string(&o, xml);
    sn_oracle_copy_state(&o);
    o.w.qpos[2] += SN_R(1e-4);
    for (int t = 0; t < 500; ++t) sn_step(o.m, &o.w, &o.lane);
    assert_int_equal(o.w.qpos[2] > SN_R(.84), cases[i].holds);
    sn_oracle_free(&o);
  }
}

enum { MOST = 40 };

// Derivative of the next velocity (nv) by coordinate d, by central differences.
static void difference(SnGradWorld *g, int d, double h, double *out) {
  double dx[2 * MOST] = {0}, ends[2][MOST];
  for (int e = 0; e < 2; ++e) {
    dx[d] = e == 0 ? h : -h;
    sn_grad_world_move(g, dx);
    sn_step(g->m, &g->w, &g->lane);
    for (int i = 0; i < g->m->nv; ++i) ends[e][i] = (double)g->w.qvel[i];
  }
  for (int i = 0; i < g->m->nv; ++i) out[i] = (ends[0][i] - ends[1][i]) / (2 * h);
}

// Columns of velocities of A; returns how many have no kink between the ends of their differences.
static int compare_columns(SnGradWorld *g, const char *what) {
  const int nv = g->m->nv, n = 2 * nv;
  static sn_real A[4 * MOST * MOST], B[1];
  double scale = 0, wide[MOST], narrow[MOST];
  int compared = 0;
  assert_true(nv <= MOST && g->m->nu == 0);
  sn_grad_world_move(g, NULL);
  sn_forward(g->m, &g->w, &g->lane);
  sn_step_jacobian(g->m, &g->w, &g->a, &g->lane, A, B);
  for (int i = 0; i < nv * n; ++i) scale = sn_larger(scale, fabs((double)A[nv * n + i]));
  for (int d = 0; d < n; ++d) {
    bool smooth = true;
    difference(g, d, 1e-6, wide);
    difference(g, d, 3e-7, narrow);
    for (int i = 0; i < nv; ++i) smooth = smooth && fabs(wide[i] - narrow[i]) <= 1e-7 * scale;
    for (int i = 0; i < nv && smooth; ++i)
      if (!(fabs((double)A[(nv + i) * n + d] - narrow[i]) <= 1e-6 * scale))
        fail_msg("%s, velocity %d by coordinate %d: %.10g, by differences %.10g", what, i, d,
                 (double)A[(nv + i) * n + d], narrow[i]);
    compared += smooth;
  }
  return compared;
}

static void by_state(void **state) {
  (void)state;
  if (sizeof(sn_real) == 4) skip();  // differences of floats are rounding
  int compared = 0, all = 0;
  for (int k = 0; k < 2; ++k) {
    SnOracle o;
    SnGradWorld g;
    sn_adhesion_load(&o, k == 1);
    sn_grad_world_init(&g, &o);
    for (int t = 0; t < 100; ++t) {
      mj_step(o.mj, o.d);
      if (t % 20 < 19) continue;
      sn_grad_world_sample(&g);
      compared += compare_columns(&g, k ? "elliptic" : "pyramidal");
      all += 2 * o.m->nv;
    }
    sn_grad_world_free(&g);
    sn_oracle_free(&o);
  }
  print_message("%d of %d columns compared\n", compared, all);
  assert_true(compared > all / 2);
}

enum { PARAMETERS = 4 };
static const char *const names[PARAMETERS] = {"geom_adhesion", "pair_adhesion", "geom_friction", "geom_solimp"};

static SnModel *moved(const SnModel *m, int p, double step) {
  SnModelArray a;
  SnError err;
  double value[100];
  assert_true(sn_model_find_array(m, names[p], &a) && a.rows * a.cols <= 100);
  for (int i = 0; i < a.rows * a.cols; ++i) value[i] = (double)((const sn_real *)a.data)[i] * (1 + step);
  const SnNewArray array = {names[p], value, a.rows, a.cols};
  SnModel *copy = sn_model_with_arrays(m, &array, 1, &err);
  if (!copy) fail_msg("%s: %s", names[p], err.text);
  return copy;
}

static void parameters(void **state) {
  (void)state;
  if (sizeof(sn_real) == 4) skip();
  for (int k = 0; k < 2; ++k) {
    SnOracle o;
    sn_adhesion_load(&o, k == 1);
    for (int t = 0; t < 40; ++t) mj_step(o.mj, o.d);
    // what is held together moves as without adhesion; what slides or is torn off does not
    o.d->qvel[6] = 3;
    o.d->qvel[12] = 5;
    sn_check_step_parameters(&o, k ? "elliptic" : "pyramidal", names, PARAMETERS, moved);
    sn_oracle_free(&o);
  }
}

// Under flag override MuJoCo's bounding volumes say which pairs pull in a gap, and the engine does not follow them: the
// option is refused by the geom or the actuator, without gaps it is not.
static void override_is_refused(void **state) {
  (void)state;
  static const char *const gap[] = {"gap='.02'", ""};
  static const char *const pulls[] = {"geom 1 'b'", "actuator 0 'cup'"};
  static const char *const cup = "<actuator><adhesion name='cup' body='a' ctrlrange='0 1'/></actuator>";
  for (int k = 0; k < 4; ++k) {
    const bool geom = k < 2, refused = k % 2 == 0;
    char text[200];
    char xml[1000];
    SnOracle o;
    SnError err = {0};
    sn_real none[SN_NIMP];
    for (int e = 0; e < SN_NIMP; ++e) none[e] = (sn_real)NAN;
    snprintf(xml, sizeof xml,
             "<mujoco><worldbody><geom type='plane' size='3 3 1' %s/><body name='a' pos='0 0 "
             ".11'><freejoint/><geom name='b' size='.1' %s/></body></worldbody>%s</mujoco>",
             gap[k % 2], geom ? "adhesion='3'" : "", geom ? "" : cup);
    snprintf(text, sizeof text, "%s: adhesion in a model with gaps, with flag override", pulls[geom ? 0 : 1]);
    sn_oracle_load_string(&o, xml);
    SnOption opt = o.m->opt;
    opt.enableflags |= SN_ENBL_OVERRIDE;
    SnModel *copy = sn_model_with_options(o.m, &opt, none, none, &err);
    assert_true((copy == NULL) == refused);
    if (refused) assert_int_equal(err.code, SN_ERR_UNSUPPORTED);
    if (refused) assert_non_null(strstr(err.text, text));
    sn_model_free(copy);
    sn_oracle_free(&o);
  }
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(against_mujoco), cmocka_unit_test(a_magnet_holds),
                                     cmocka_unit_test(by_state), cmocka_unit_test(parameters),
                                     cmocka_unit_test(override_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
