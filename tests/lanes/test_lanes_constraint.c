// Rows and their solver on several lanes: the bits of one lane.
#include <stdio.h>
#include <stdlib.h>

#include "physics/solver.h"
#include "tests/harness/constraint_zoo.h"
#include "tests/harness/lanes.h"

static void run_stages(SnLane *lane, void *arg) {
  SnOracle *o = arg;
  sn_make_constraint(o->m, &o->w, lane);
  sn_reference_constraint(o->m, &o->w, lane);
  sn_solve(o->m, &o->w, lane);
}

// Copies what the stages compute.
static sn_real *outputs(const SnOracle *o, size_t *n) {
  const SnWorld *w = &o->w;
  const size_t nefc = (size_t)w->nefc[0], nv = (size_t)o->m->nv;
  const size_t nJ = nefc ? (size_t)(w->efc_J_rowadr[nefc - 1] + w->efc_J_rownnz[nefc - 1]) : 0;
  *n = nJ + 4 * nefc + 3 * nv;
  sn_real *out = calloc(*n + 1, sizeof *out), *p = out;
#define PUT(field, count) memcpy(p, w->field, sizeof(sn_real) * (count)), p += (count)
  PUT(efc_J, nJ);
  PUT(efc_D, nefc);
  PUT(efc_aref, nefc);
  PUT(efc_force, nefc);
  PUT(efc_jar, nefc);
  PUT(qacc, nv);
  PUT(qfrc_constraint, nv);
  if (nefc && w->hessian_status[0] >= SN_HESSIAN_UPDATED) PUT(hessian_inv, nv);
#undef PUT
  return out;
}

static void compare(SnOracle *o) {
  size_t n, k;
  sn_oracle_fill(o);
  sn_lanes_run(1, run_stages, o);
  sn_real *one = outputs(o, &n);
  for (int lanes = 2; lanes <= 5; lanes += 3) {
    sn_oracle_fill(o);
    sn_lanes_run(lanes, run_stages, o);
    sn_real *many = outputs(o, &k);
    assert_true(n == k);
    assert_memory_equal(one, many, sizeof(sn_real) * n);
    free(many);
  }
  free(one);
}

static void zoo(void **state) {
  (void)state;
  static SnZooCase cases[200];
  const int n = sn_zoo_cases(cases, 200);
  for (int i = 0; i < n; i += 7)
    for (int kind = 0; kind < 2; ++kind) {
      SnOracle o;
      if (kind)
        sn_zoo_contacts(&o, cases + i);
      else
        sn_zoo_joints(&o, cases + i);
      sn_zoo_sample(&o, 1);
      compare(&o);
      sn_oracle_free(&o);
    }
}

static void hand(void **state) {
  (void)state;
  SnOracle o;
  const char *name;
  bool missing;
  sn_zoo_real(&o, 0, 100, &name, &missing);
  if (missing) {
    printf("%s: skipped, the file is not there\n", name);
    return;
  }
  compare(&o);
  sn_oracle_free(&o);
}

int main(void) {
  printf("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(zoo), cmocka_unit_test(hand)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
