// Centres of mass, motion axes, inertia matrix, factor and solves against MuJoCo; symmetry and positive definiteness.
#include "physics/dynamics/dynamics.h"
#include "tests/support/dynamics_models.h"

#include <stdlib.h>

static double worst;

static void same(const char *model, const char *field, const sn_real *ours, const double *ref, int n) {
  const double e = sn_oracle_error(ours, ref, n);
  if (!(e <= SN_TOL_INERTIA)) fail_msg("%s: %s: relative error %g", model, field, e);
  worst = sn_larger(worst, e);
}

static void positions(SnOracle *o) {
  sn_kinematics(o->m, &o->w, &o->lane);
  sn_com_pos(o->m, &o->w, &o->lane);
  sn_oracle_fill_stage(o, SN_STAGE_TENDON);
  sn_make_M(o->m, &o->w, &o->lane);
  sn_factor_M(o->m, &o->w, &o->lane);
}

static void check_matrix(SnOracle *o, const char *name) {
  const SnModel *m = o->m;
  const mjData *d = o->d;
  positions(o);
  same(name, "subtree_com", o->w.subtree_com, d->subtree_com, 3 * m->nbody);
  same(name, "cdof", o->w.cdof, d->cdof, 6 * m->nv);
  for (int k = 0; k < m->nlink; ++k) {
    const int i = m->level_body[k];
    same(name, "crb", o->w.crb + 10 * i, d->crb + 10 * i, 10);
  }
  same(name, "M", o->w.M, d->M, m->nC);
  same(name, "qLD", o->w.qLD, d->qLD, m->nC);
  same(name, "qLDiagInv", o->w.qLDiagInv, d->qLDiagInv, m->nv);
  assert_int_equal(*o->w.warn, 0);
}

// M x against MuJoCo; x back from M x; x'M x > 0; y'M x = x'M y.
static void check_solve(SnOracle *o, const char *name) {
  const SnModel *m = o->m;
  positions(o);
  double *x = calloc((size_t)m->nv + 1, sizeof *x), *Mx = calloc((size_t)m->nv + 1, sizeof *Mx);
  sn_real *our_x = calloc((size_t)m->nv + 1, sizeof *our_x), *our_Mx = calloc((size_t)m->nv + 1, sizeof *our_Mx);
  double energy = 0;
  for (int i = 0; i < m->nv; ++i) our_x[i] = (sn_real)(x[i] = sn_oracle_uniform(o));
  mj_mulM(o->mj, o->d, Mx, x);
  sn_mul_M(m, &o->w, &o->lane, our_Mx, our_x);
  same(name, "M x", our_Mx, Mx, m->nv);
  for (int i = 0; i < m->nv; ++i) energy += (double)(our_x[i] * our_Mx[i]);
  assert_true(m->nv == 0 || energy > 0);
  mj_solveM(o->mj, o->d, Mx, x, 1);
  sn_solve_LD(m, &o->lane, o->w.qLD, o->w.qLDiagInv, our_x);
  const double e = sn_oracle_error(our_x, Mx, m->nv);
  if (!(e <= SN_TOL(1e-9, 2e-3))) fail_msg("%s: M^-1 x: relative error %g", name, e);
  free(x);
  free(Mx);
  free(our_x);
  free(our_Mx);
}

static void matrix(void **state) {
  (void)state;
  sn_dynamics_for_models(5, 1.0, check_matrix);
  print_message("largest relative error %.2g\n", worst);
}

static void solve(void **state) {
  (void)state;
  sn_dynamics_for_models(2, 1.0, check_solve);
}

// Without sn_model_need_all the root's centre of mass is all that is known, and all that is used.
static void roots_only(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o,
                        "<mujoco><worldbody><body name='base' pos='.1 .2 .3'><geom size='.2'/><body><joint axis='0 1 "
                        "0'/><geom size='.1' pos='.2 0 0'/>"
                        "<body pos='.4 0 0'><geom size='.1'/><body pos='.1 0 0'><joint/><geom size='.1' pos='0 .1 "
                        "0'/></body></body></body></body></worldbody></mujoco>");
  for (int i = 0; i < 5; ++i) {
    sn_dynamics_sample(&o, 1);
    positions(&o);
    same("roots", "subtree_com", o.w.subtree_com + 3, o.d->subtree_com + 3, 3);
    assert_true(o.w.subtree_com[0] == 0 && isnan(o.w.subtree_com[6]));
    same("roots", "cdof", o.w.cdof, o.d->cdof, 6 * o.m->nv);
    same("roots", "M", o.w.M, o.d->M, o.m->nC);
  }
  sn_oracle_free(&o);
}

// Bodies with a subtreecom sensor are added, whatever they hang on.
static void asked_for(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(
      &o,
      "<mujoco><worldbody><body name='base' pos='.1 .2 .3'><geom size='.2'/><body name='a'><joint/><geom "
      "size='.1' pos='.2 0 0'/><body name='b' pos='.4 0 0'><geom size='.1'/><body><joint/><geom size='.1' "
      "pos='0 .1 0'/></body></body></body></body><body name='c'><joint/><geom size='.1' pos='.2 1 0'/></body>"
      "</worldbody><sensor><subtreecom body='b'/><subtreecom body='world'/></sensor></mujoco>");
  const int b = sn_model_find(o.m, SN_NAME_BODY, "b");
  for (int i = 0; i < 3; ++i) {
    sn_dynamics_sample(&o, 1);
    positions(&o);
    same("sensor", "subtree_com", o.w.subtree_com, o.d->subtree_com, 3);
    same("sensor", "subtree_com", o.w.subtree_com + 3 * b, o.d->subtree_com + 3 * b, 3);
    same("sensor", "cdof", o.w.cdof, o.d->cdof, 6 * o.m->nv);
  }
  sn_oracle_free(&o);
}

// A pivot that rounding or zero inertia made non-positive is clamped, and said.
static void bad_pivot(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o,
                        "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='.2 0 0'/><body pos='.4 0 "
                        "0'><joint/><geom size='.1'/></body></body></worldbody></mujoco>");
  sn_dynamics_sample(&o, 1);
  positions(&o);
  o.w.M[o.m->M_rowadr[1] + o.m->M_rownnz[1] - 1] = 0;
  sn_factor_M(o.m, &o.w, &o.lane);
  assert_int_equal(*o.w.warn, SN_WARN_INERTIA);
  for (int i = 0; i < o.m->nv; ++i) assert_true(isfinite(o.w.qLDiagInv[i]));
  sn_oracle_free(&o);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(matrix), cmocka_unit_test(solve), cmocka_unit_test(roots_only),
                                     cmocka_unit_test(asked_for), cmocka_unit_test(bad_pivot)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
