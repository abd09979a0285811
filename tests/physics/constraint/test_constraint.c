// Rows against MuJoCo: every type of row, both cones, every condim, direct and refsafe solref; real models.
#include "tests/support/constraint_models.h"

#include <stdio.h>
#include <string.h>

static int count[8];  // rows by type

static void check_and_count(SnOracle *o, const char *what) {
  sn_constraint_make_rows(o);
  sn_constraint_check_rows(o, what);
  for (int r = 0; r < o->w.nefc[0]; ++r) count[o->w.efc_type[r]]++;
}

static void over_cases(void (*load)(SnOracle *, const SnConstraintCase *), int samples, const char *name) {
  memset(count, 0, sizeof count);
  const int n = sn_constraint_for_cases(load, samples, name, check_and_count);
  printf("%s: %d models, rows by type:", name, n);
  for (int t = 0; t < 8; ++t) printf(" %d", count[t]);
  printf("\n");
}

static void contacts(void **state) {
  (void)state;
  over_cases(sn_constraint_load_contacts, 6, "contacts");
}

static void joints_tendons_equalities(void **state) {
  (void)state;
  over_cases(sn_constraint_load_joints, 4, "joints");
}

static void disable_flags(void **state) {
  (void)state;
  static const SnConstraintCase c = {"elliptic", 3, 1, "0.02 1", "0 0", "0.9 0.95 0.001 0.5 2", "", NULL};
  static const int flag[] = {mjDSBL_CONSTRAINT, mjDSBL_EQUALITY, mjDSBL_FRICTIONLOSS, mjDSBL_LIMIT, mjDSBL_CONTACT};
  for (int kind = 0; kind < 2; ++kind)
    for (int i = 0; i < 5; ++i) {
      SnOracle o;
      if (kind)
        sn_constraint_load_contacts(&o, &c);
      else
        sn_constraint_load_joints(&o, &c);
      o.mj->opt.disableflags |= flag[i];
      o.m->opt.disableflags |= flag[i];
      sn_constraint_sample(&o, 1);
      sn_constraint_make_rows(&o);
      sn_constraint_check_rows(&o, "disable flags");
      sn_oracle_free(&o);
    }
}

static void check_real(SnOracle *o, const char *name) {
  sn_constraint_make_rows(o);
  sn_constraint_check_rows(o, name);
  printf("%s: %d rows of %d, %d contacts of %d\n", name, o->w.nefc[0], o->m->nefcmax, o->w.ncon[0], o->m->nconmax);
}

static void real_models(void **state) {
  (void)state;
  sn_constraint_for_real(100, check_real);
}

// With too little room whole sources are dropped from the end, and the world says so.
static void overflow(void **state) {
  (void)state;
  static const SnConstraintCase c = {"pyramidal", 4, 1, "0.02 1", "0 0", "0.9 0.95 0.001 0.5 2", "", NULL};
  SnOracle o;
  sn_constraint_load_contacts(&o, &c);
  sn_constraint_sample(&o, 1);
  while (o.d->nefc < 8) sn_constraint_sample(&o, 1);
  sn_constraint_make_rows(&o);
  assert_int_equal(*o.w.warn, 0);
  const int nefc = o.w.nefc[0];
  o.m->nefcmax = nefc - 1;
  sn_constraint_make_rows(&o);
  assert_int_equal(*o.w.warn, SN_WARN_EFC_FULL);
  assert_true(o.w.nefc[0] < nefc && o.w.nefc[0] > 0);
  assert_int_equal(o.w.contact[o.w.efc_id[o.w.nefc[0] - 1]].efc_address, o.w.block_row[o.w.nblock[0] - 1]);
  int without = 0;
  for (int i = 0; i < o.w.ncon[0]; ++i) without += o.w.contact[i].exclude == 0 && o.w.contact[i].efc_address < 0;
  assert_true(without >= 1);
  sn_oracle_free(&o);
}

int main(void) {
  printf("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(contacts), cmocka_unit_test(joints_tendons_equalities),
                                     cmocka_unit_test(disable_flags), cmocka_unit_test(real_models),
                                     cmocka_unit_test(overflow)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
