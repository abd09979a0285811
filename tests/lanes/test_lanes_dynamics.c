// The smooth dynamics and all integrators on several lanes: every real field of the world has the bits of one lane.
// (`discrete`, which finds a step by its constraints, too: test_lanes_step.c.) M's factor and solves for any number of
// dofs.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "physics/dynamics/dynamics.h"
#include "physics/step/step.h"
#include "tests/support/lanes.h"
#include "tests/support/dynamics_models.h"

typedef struct Steps {
  const SnModel *m;
  SnWorld *w;
} Steps;

static void two_steps(SnLane *lane, void *arg) {
  Steps *steps = arg;
  for (int i = 0; i < 2; ++i) sn_step(steps->m, steps->w, lane);
}

// Steps a fresh world from the oracle's state on n lanes; the caller frees the memory.
static void *step_on(SnOracle *o, int n, SnWorld *w) {
  void *memory = aligned_alloc(64, sn_world_size(o->m));
  sn_world_init(o->m, w, memory);
  sn_world_copy_state(o->m, w, &o->w);
  Steps steps = {o->m, w};
  sn_lanes_run(n, two_steps, &steps);
  return memory;
}

static void same_bits(const char *model, const char *field, const void *a, const void *b, size_t bytes) {
  if (bytes && memcmp(a, b, bytes) != 0) fail_msg("%s: %s depends on the number of lanes", model, field);
}

// Whether a field is scratch of a factor or of sums, which a warp has in registers.
static bool is_scratch(const char *field) { return strcmp(field, "hessian") == 0 || strcmp(field, "solver_part") == 0; }

static void check_number(SnOracle *o, const char *name, int n) {
  const SnModel *m = o->m;
  SnWorld one, many;
  void *a = step_on(o, 1, &one), *b = step_on(o, n, &many);
#define SN_WORLD_FIELD(stage, type, field, rows, cols)               \
  if (SN_STAGE_##stage != SN_STAGE_COLLISION && !is_scratch(#field)) \
    same_bits(name, #field, one.field, many.field, sizeof(type) * (size_t)(rows) * (size_t)(cols));
#include "physics/world/world_fields.inc"
#undef SN_WORLD_FIELD
  assert_int_equal(*one.warn, *many.warn);
  free(a);
  free(b);
}

// A warp has a way of its own through reductions, and so has a part of one through factors and solves.
static void check_lanes(SnOracle *o, const char *name) {
  check_number(o, name, 3);
  check_number(o, name, 8);
  check_number(o, name, SN_WARP);
}

static void integrators(void **state) {
  (void)state;
  static const char *const names[] = {"Euler", "implicitfast", "implicit", "RK4"};
  for (int i = 0; i < 4; ++i) {
    char option[100];
    snprintf(option, sizeof option, "<option integrator='%s'><flag contact='disable'/></option>", names[i]);
    sn_dynamics_for_inline(option, 1, 1.0, check_lanes);
  }
}

// ---- the factor of M and its solves alone

enum { SIZES = 16, MOST = 132 };

typedef struct Solve {
  SnOracle *o;
  sn_real x[MOST];
} Solve;

static void factor_and_solve(SnLane *lane, void *arg) {
  Solve *s = arg;
  sn_factor_M(s->o->m, &s->o->w, lane);
  sn_solve_LD(s->o->m, lane, s->o->w.qLD, s->o->w.qLDiagInv, s->x);
}

// A tree of n hinges: chains that leave each other at random places.
static void random_tree(SnOracle *o, SnOracle *rng, int n) {
  static char xml[80000];
  int open = 0;
  size_t at = (size_t)snprintf(xml, sizeof xml, "<mujoco><worldbody>");
  for (int i = 0; i < n; ++i) {
    at += (size_t)snprintf(xml + at, sizeof xml - at,
                           "<body pos='.1 .02 .03'><joint axis='%d 1 .3' armature='.01'/><geom size='.05' mass='%g'/>",
                           i % 3, 1 + 0.5 * sn_oracle_uniform(rng));
    for (++open; open > 0 && sn_oracle_pick(rng, 3) == 0; --open)
      at += (size_t)snprintf(xml + at, sizeof xml - at, "</body>");
  }
  for (; open > 0; --open) at += (size_t)snprintf(xml + at, sizeof xml - at, "</body>");
  snprintf(xml + at, sizeof xml - at, "</worldbody></mujoco>");
  sn_oracle_load_string(o, xml);
}

// Bits of the factor and of a solve on n lanes.
static void same_solve(SnOracle *o, const Solve *one, const sn_real *LD, const sn_real *x, int n) {
  Solve s = {.o = o};
  memcpy(s.x, x, sizeof s.x);
  sn_lanes_run(n, factor_and_solve, &s);
  if (memcmp(s.x, one->x, sizeof s.x) != 0 || memcmp(o->w.qLD, LD, sizeof *LD * (size_t)o->m->nC) != 0)
    fail_msg("%d dofs: M^-1 x, or the factor, is another one on %d lanes", o->m->nv, n);
}

static void same_solves(SnOracle *o, const sn_real *x) {
  static const int lanes[] = {2, 3, 4, 8, 16, SN_WARP};
  Solve one = {.o = o};
  sn_real *LD = calloc((size_t)o->m->nC, sizeof *LD);
  assert_non_null(LD);
  memcpy(one.x, x, sizeof one.x);
  sn_lanes_run(1, factor_and_solve, &one);
  memcpy(LD, o->w.qLD, sizeof *LD * (size_t)o->m->nC);
  for (size_t k = 0; k < sizeof lanes / sizeof *lanes; ++k) same_solve(o, &one, LD, x, lanes[k]);
  free(LD);
}

// All numbers of rows that a lane can have, and more than it keeps in registers; zeros of both signs, too.
static void sizes(void **state) {
  (void)state;
  static const int size[SIZES] = {1, 2, 7, 8, 9, 15, 17, 31, 33, 40, 47, 49, 63, 65, 128, 130};
  SnOracle rng = {.rng = 1};
  for (int i = 0; i < SIZES; ++i) {
    SnOracle o;
    random_tree(&o, &rng, size[i]);
    assert_int_equal(o.m->nv, size[i]);
    for (int k = 0; k < o.mj->nq; ++k) o.d->qpos[k] = 0.5 * sn_oracle_uniform(&rng);
    mj_forward(o.mj, o.d);
    sn_oracle_fill(&o);
    for (int zeros = 0; zeros < 2; ++zeros) {
      sn_real x[MOST] = {0};
      for (int k = 0; k < size[i]; ++k) {
        const sn_real number = (sn_real)sn_oracle_uniform(&rng);
        x[k] = zeros ? number * 0 : number;
      }
      same_solves(&o, x);
    }
    sn_oracle_free(&o);
  }
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(integrators), cmocka_unit_test(sizes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
