// Rows and their solver on several lanes, forwards and backwards: the bits of one lane.
#include <stdio.h>
#include <stdlib.h>

#include "physics/base/vec.h"
#include "physics/constraint/constraint.h"
#include "physics/constraint/solver_private.h"
#include "physics/dynamics/dynamics.h"
#include "physics/step/step.h"
#include "physics/world/adjoint.h"
#include "tests/support/constraint_models.h"
#include "tests/support/lanes.h"
#include "tests/support/sigmoid_model.h"

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

// Numbers of lanes, 0 at the end. A warp has a way of its own through the factor of H and its solves, and so has a part
// of one with a lane for each row of a supernode.
static const int few[] = {2, 5, 8, 0}, a_warp[] = {SN_WARP, 0}, parts[] = {8, 16, SN_WARP, 0};

static void compare(SnOracle *o, const int *lanes) {
  size_t n, k;
  sn_oracle_fill(o);
  sn_lanes_run(1, run_stages, o);
  sn_real *one = outputs(o, &n);
  for (; *lanes; ++lanes) {
    sn_oracle_fill(o);
    sn_lanes_run(*lanes, run_stages, o);
    sn_real *many = outputs(o, &k);
    assert_true(n == k);
    assert_memory_equal(one, many, sizeof(sn_real) * n);
    free(many);
  }
  free(one);
}

static void models(void **state) {
  (void)state;
  static SnConstraintCase cases[200];
  const int n = sn_constraint_cases(cases, 200);
  for (int i = 0; i < n; i += 7)
    for (int kind = 0; kind < 2; ++kind) {
      SnOracle o;
      if (kind)
        sn_constraint_load_contacts(&o, cases + i);
      else
        sn_constraint_load_joints(&o, cases + i);
      sn_constraint_sample(&o, 1);
      compare(&o, few);
      if (i % 35 == 0) compare(&o, a_warp);
      sn_oracle_free(&o);
    }
}

typedef struct Backward {
  SnOracle *o;
  SnAdjoint a;
  void *memory;
} Backward;

// A solve of few iterations, its adjoint, and that of its rows.
static void run_backwards(SnLane *lane, void *arg) {
  Backward *k = arg;
  const SnModel *m = k->o->m;
  SnWorld *w = &k->o->w;
  sn_forward(m, w, lane);
  sn_adjoint_clear(m, &k->a, lane);
  SN_FOR(i, m->nv) k->a.qacc_bar[i] = 1;
  SN_SYNC(lane);
  sn_solve_vjp(m, w, &k->a, lane);
  sn_motion_propagate(m, w, &k->a, lane);
  sn_constraint_vjp(m, w, &k->a, lane);
}

static Backward backwards(SnOracle *o, int lanes) {
  Backward k = {.o = o, .memory = aligned_alloc(64, (sn_adjoint_size(o->m) + 63) / 64 * 64)};
  sn_adjoint_init(o->m, &k.a, k.memory);
  sn_oracle_copy_state(o);
  sn_lanes_run(lanes, run_backwards, &k);
  // the bars of link 0 are never read: static bodies may have left something there
  sn_zero(k.a.wrench, 6);
  sn_zero(k.a.twist_bar, 6 * SN_NMOTION);
  sn_zero(k.a.acc_bar, 6);
  return k;
}

static void compare_backwards(SnOracle *o, const int *lanes) {
  const SnModel *m = o->m;
  const int iterations = m->opt.iterations;
  o->m->opt.iterations = 2;
  Backward one = backwards(o, 1);
  for (; *lanes; ++lanes) {
    Backward many = backwards(o, *lanes);
#define SN_ADJOINT_FIELD(group, type, field, rows, cols)                                      \
  if (memcmp(one.a.field, many.a.field, sizeof(type) * (size_t)(rows) * (size_t)(cols)) != 0) \
    fail_msg("%s of the adjoint depends on the number of lanes", #field);
#include "physics/world/adjoint_fields.inc"
#undef SN_ADJOINT_FIELD
    free(many.memory);
  }
  free(one.memory);
  o->m->opt.iterations = iterations;
}

static void models_backwards(void **state) {
  (void)state;
  static SnConstraintCase cases[200];
  const int n = sn_constraint_cases(cases, 200);
  for (int i = 0; i < n; i += 11)
    for (int kind = 0; kind < 2; ++kind) {
      SnOracle o;
      if (kind)
        sn_constraint_load_contacts(&o, cases + i);
      else
        sn_constraint_load_joints(&o, cases + i);
      sn_constraint_sample(&o, 1);
      compare_backwards(&o, few);
      *o.w.cfd = (SnCfd){.on = 1, .solimp = {0, SN_R(0.1), 1, SN_R(0.5), 2}, .width = SN_R(0.002)};
      compare_backwards(&o, few);
      sn_oracle_sigmoid(&o, 0.02, 0.2, 0.3);
      compare_backwards(&o, few);
      sn_oracle_free(&o);
    }
}

static void hand(void **state) {
  (void)state;
  SnOracle o;
  const char *name;
  bool missing;
  sn_oracle_needs_myosuite();
  sn_constraint_load_real(&o, 0, 100, &name, &missing);
  assert_false(missing);
  compare(&o, few);
  compare(&o, a_warp);
  compare_backwards(&o, a_warp);
  sn_oracle_free(&o);
}

// More than 64 dofs: a lane of a warp has up to four of them, and a set of dofs two words.
static void many_dofs(void **state) {
  (void)state;
  SnOracle o;
  const char *name;
  bool missing;
  sn_oracle_needs_myosuite();
  sn_constraint_load_real(&o, 7, 20, &name, &missing);
  assert_false(missing);
  assert_true(o.m->nv > 64);
  compare(&o, parts);
  sn_oracle_free(&o);
}

int main(void) {
  printf("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(models), cmocka_unit_test(hand), cmocka_unit_test(many_dofs),
                                     cmocka_unit_test(models_backwards)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
