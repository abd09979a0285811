// The broad phase by sweeping: the near pairs of a model with a list are those that a test of every pair finds, in the
// order of the list; contacts of a model with too many pairs to list them are MuJoCo's, in its order.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "physics/collision/collide_private.h"
#include "physics/collision/collision.h"
#include "physics/step/step.h"
#include "tests/support/oracle.h"
#include "tests/support/slow.h"
#include "tests/support/tolerance.h"

// Bodies of one or two geoms of every kind, chains of two, on two planes and a terrain; some pairs predefined, with
// margins of their own, some bodies excluded.
static void load(SnOracle *o, int bodies, const char *option) {
  static const char *const geom[] = {"size='.05'", "type='capsule' size='.03 .05'", "type='box' size='.04 .05 .03'",
                                     "size='.04' margin='.01' gap='.01' friction='.5'"};
  char *xml = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&xml, &size);
  fprintf(
      f,
      "<mujoco>%s<asset><hfield name='h' nrow='3' ncol='3' size='1 1 .1 .1' elevation='1 2 3 4 5 6 7 8 9'/></asset>"
      "<worldbody><geom name='floor' type='plane' size='1 1 1' pos='0 0 -.4'/><geom type='plane' size='1 1 1' euler='0 "
      "90 0' pos='-1 0 0'/><geom type='hfield' hfield='h' pos='0 0 -.5'/>",
      option);
  for (int i = 0; i < bodies; ++i) {
    fprintf(f,
            "<body name='b%d'><joint type='slide' axis='1 0 0'/><joint type='slide' axis='0 1 0'/><joint type='slide' "
            "axis='0 0 1'/><geom name='g%d' %s/>",
            i, i, geom[i % 4]);
    if (i % 3 == 0) fprintf(f, "<geom %s pos='.06 0 0'/>", geom[(i / 3) % 4]);
    if (i % 5 == 0)
      fprintf(f, "<body pos='0 0 .08'><joint axis='0 1 0'/><geom %s pos='0 0 .05'/></body>", geom[i / 5 % 4]);
    fprintf(f, "</body>");
  }
  fprintf(f, "</worldbody><contact>");
  for (int i = 0; i + 7 < bodies; i += 9)
    fprintf(f, "<pair geom1='g%d' geom2='g%d' margin='.2'/><exclude body1='b%d' body2='b%d'/>", i, i + 7, i, i + 4);
  fprintf(f, "</contact></mujoco>");
  fclose(f);
  sn_oracle_load_string(o, xml);
  free(xml);
}

// Bodies at random in a box of half extents `far`.
static void scatter(SnOracle *o, double far) {
  for (int i = 0; i < o->mj->nq; ++i) o->d->qpos[i] = far * sn_oracle_uniform(o);
  mj_kinematics(o->mj, o->d);
  mj_comPos(o->mj, o->d);
  sn_oracle_fill_stage(o, SN_STAGE_KINEMATICS);
}

static void near_pairs(void **state) {
  (void)state;
  for (int midphase = 0; midphase < 2; ++midphase) {
    SnOracle o;
    load(&o, 180, midphase ? "<option><flag midphase='disable'/></option>" : "");
    const SnModel *m = o.m;
    assert_true(m->nsweep > 0 && !m->unlisted && m->ncpair > 20000);
    for (int k = 0; k < sn_draws(20); ++k) {
      int n = 0;
      scatter(&o, k % 2 ? 0.5 : 2);
      if (k == 5) o.w.geom_xpos[3 * 40 + 1] = (sn_real)NAN;
      if (k == 6) o.w.geom_xpos[3 * 50] = SN_R(1e9);
      const int near = sn_sweep(m, &o.w, &o.lane);
      for (int p = 0; p < m->ncpair; ++p) {
        if (!sn_collide_is_near(m, &o.w, p)) continue;
        if (n >= near || o.w.col_near[n] != p) fail_msg("pose %d: pair %d of %d is %d", k, n, near, p);
        ++n;
      }
      assert_int_equal(n, near);
      if (k < 4) print_message("%d of %d pairs are near\n", near, m->ncpair);
    }
    sn_oracle_free(&o);
  }
}

static void unlisted(void **state) {
  (void)state;
  for (int midphase = 0; midphase < 2; ++midphase) {
    SnOracle o;
    load(&o, 480, midphase ? "<option><flag midphase='disable'/></option>" : "");
    const SnModel *m = o.m;
    assert_true(m->unlisted && m->ncpair == m->npair);
    for (int k = 0; k < sn_draws(6); ++k) {
      double worst = 0;
      scatter(&o, k % 2 ? 0.6 : 1.5);
      mj_collision(o.mj, o.d);
      sn_collision(m, &o.w, &o.lane);
      assert_true(o.d->ncon > 20);
      if (sizeof(sn_real) == sizeof(float)) continue;
      if (o.w.ncon[0] != o.d->ncon) fail_msg("%d contacts, MuJoCo has %d", o.w.ncon[0], o.d->ncon);
      for (int i = 0; i < o.d->ncon; ++i) {
        const SnContact *ours = o.w.contact + i;
        const mjContact *con = o.d->contact + i;
        assert_int_equal(ours->geom[0], con->geom[0]);
        assert_int_equal(ours->geom[1], con->geom[1]);
        assert_int_equal(ours->dim, con->dim);
        worst = sn_larger(worst, fabs((double)ours->dist - con->dist));
        worst = sn_larger(worst, fabs((double)ours->includemargin - con->includemargin));
        for (int e = 0; e < 5; ++e) worst = sn_larger(worst, fabs((double)ours->friction[e] - con->friction[e]));
        for (int e = 0; e < mjNREF; ++e) worst = sn_larger(worst, fabs((double)ours->solref[e] - con->solref[e]));
      }
      print_message("%d contacts of %d geoms, largest difference %.2g\n", o.d->ncon, m->ngeom, worst);
      assert_true(worst < SN_ALIKE(1e-9, 0.05));
    }
    sn_oracle_free(&o);
  }
}

// The adjoint of contacts that no list names: of the distance of round shapes the normal and its opposite.
static void unlisted_vjp(void **state) {
  (void)state;
  SnOracle o;
  load(&o, 480, "");
  const SnModel *m = o.m;
  scatter(&o, 0.6);
  sn_collision(m, &o.w, &o.lane);
  int found = 0;
  for (int i = 0; i < o.w.ncon[0]; ++i) {
    const sn_real bar[13] = {1}, omega[6] = {0};  // of dist
    if (m->geom_type[o.w.contact[i].geom[1]] > SN_GEOM_CAPSULE) continue;
    sn_real wrench[12], twist[12];
    sn_contact_vjp(m, &o.w, o.w.contact + i, bar, omega, wrench, twist);
    found += o.w.contact[i].pair >= m->ncpair;
    for (int k = 0; k < 3; ++k) {
      assert_true(sn_abs(wrench[3 + k] + o.w.contact[i].frame[k]) < SN_TOL(1e-6, 1e-3));
      assert_true(sn_abs(wrench[9 + k] - o.w.contact[i].frame[k]) < SN_TOL(1e-6, 1e-3));
    }
  }
  assert_true(found > 20);
  sn_oracle_free(&o);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(near_pairs), cmocka_unit_test(unlisted),
                                     cmocka_unit_test(unlisted_vjp)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
