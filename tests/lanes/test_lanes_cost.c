// Costs on several lanes: the bits of one lane.
#include <stdlib.h>

#include "tests/harness/lanes.h"
#include "tests/planner/bench_body.h"

typedef struct Judge {
  SnCost *cost;
  sn_real *target, *res, *value;
} Judge;

static void judge(SnLane *lane, void *arg) {
  Judge *j = arg;
  sn_cost_residual(j->cost, body.m, &body.w, lane, j->target, 0, j->cost->nall, j->res);
  sn_cost_norm(j->cost, lane, j->res, 0, j->cost->nall, j->value);
}

static void any_number_of_lanes(void **state) {
  (void)state;
  SnError err = {0};
  Judge j = {.cost = sn_cost_create(task, body.m, &err)};
  if (!j.cost) fail_msg("%s", err.text);
  const size_t nres = (size_t)j.cost->nres, nall = (size_t)j.cost->nall;
  j.target = calloc((size_t)j.cost->ntarget, sizeof *j.target);
  j.res = calloc(nres, sizeof *j.res);
  j.value = calloc(nall, sizeof *j.value);
  sn_real *res = calloc(nres, sizeof *res), *value = calloc(nall, sizeof *value);
  sn_cost_schedule(j.cost, 0.3, 0.01, 1, j.target);
  for (int k = 0; k < 20; ++k) {
    sn_oracle_randomize(&body, 1);
    mj_forward(body.mj, body.d);
    sn_oracle_fill(&body);
    sn_lanes_run(1, judge, &j);
    memcpy(res, j.res, sizeof *res * nres);
    memcpy(value, j.value, sizeof *value * nall);
    for (int lanes = 2; lanes <= 7; ++lanes) {
      memset(j.value, 0, sizeof *value * nall);
      sn_lanes_run(lanes, judge, &j);
      assert_memory_equal(res, j.res, sizeof *res * nres);
      assert_memory_equal(value, j.value, sizeof *value * nall);
    }
  }
  free(j.target);
  free(j.res);
  free(j.value);
  free(res);
  free(value);
  sn_cost_free(j.cost);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(any_number_of_lanes)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
