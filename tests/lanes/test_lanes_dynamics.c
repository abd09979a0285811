// The smooth dynamics and all integrators on several lanes: every real field of the world has the bits of one lane.
// (`discrete`, which finds a step by its constraints, too: test_lanes_step.c.)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

// A warp has a way of its own through reductions, factors and solves.
static void check_lanes(SnOracle *o, const char *name) {
  check_number(o, name, 3);
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

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(integrators)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
