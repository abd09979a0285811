// A multistart on several lanes: the bits of one lane.
#include <stdlib.h>

#include "tests/support/lanes.h"
#include "tests/planner/optimize/multistart_case.h"

// Three iterations of three starts whose "costs" and gradients are made up here from the controls, with a start that
// diverges, a derivative that is not finite, and one that has no bound: a better cost without a gradient.
typedef struct Run {
  Case x;
  SnCost cost;
  int unbounded;  // starts that were better without a gradient
} Run;

static void rollouts(Run *run, int iteration, int i) {
  SnMultistartStart *s = &run->x.start[i];
  for (int k = 0; k < ROWS * NU; ++k) s->ctrl_bar[k] = 2 * (s->ctrl[k] - SN_R(0.1) * (sn_real)(k % 4));
  if (iteration == 1 && i == 0) s->ctrl_bar[7] = (sn_real)INFINITY;
  for (int k = 0; k < 4; ++k) s->term[k] = s->ctrl[k];
}

static SnGradientStatus status_of(int iteration, int i) {
  if ((i == 1 && iteration == 2) || (i == 2 && iteration == 0)) return SN_GRADIENT_DIVERGED;
  return i == 2 && iteration == 1 ? SN_GRADIENT_UNBOUNDED : SN_GRADIENT_DONE;
}

static void optimize(SnLane *lane, void *argument) {
  Run *run = argument;
  Case *x = &run->x;
  for (int iteration = 0; iteration < 4; ++iteration) {
    for (int i = 0; i < STARTS; ++i) {
      if (iteration == 0)
        sn_multistart_init(body.m, lane, &x->r, i, &x->start[i], x->scratch);
      else
        sn_multistart_step(body.m, lane, &x->r, &x->start[i]);
      sn_multistart_controls(body.m, lane, &x->r, &x->start[i]);
      SN_ONE(lane) rollouts(run, iteration, i);
      SN_SYNC(lane);
      const SnGradientStatus status = status_of(iteration, i);
      sn_real cost = 0;
      for (int k = 0; k < ROWS * NU; ++k) cost += x->start[i].ctrl[k] * x->start[i].ctrl[k];
      sn_multistart_evaluate(body.m, lane, &x->r, &x->start[i], status,
                             status == SN_GRADIENT_DIVERGED ? (sn_real)INFINITY : cost);
      SN_ONE(lane) run->unbounded += status == SN_GRADIENT_UNBOUNDED && x->start[i].best_cost == cost;
    }
    sn_multistart_select_best(body.m, run->cost.nterm, lane, &x->r, x->start, STARTS);
  }
}

static void make_run(Run *run, int clip, int keep) {
  make_case(&run->x);
  run->cost = (SnCost){.nterm = 4};
  run->unbounded = 0;
  run->x.r.rule.clip = clip;
  run->x.r.keep = keep;
  run->x.r.left = 1;
  if (clip == SN_CLIP_GLOBAL) run->x.r.time = (SnGrid){2, {2, ROWS - 2}, {1, 2}};
  for (int k = 0; k < N; ++k) run->x.memory[0].first[k] = SN_R(0.01) * (sn_real)k;
}

// All numbers; pointers differ from run to run.
static void same(const Run *a, const Run *b) {
  assert_memory_equal(a->x.memory, b->x.memory, sizeof a->x.memory);
  assert_memory_equal(a->x.nominal, b->x.nominal, sizeof a->x.nominal);
  assert_memory_equal(a->x.best_term, b->x.best_term, sizeof a->x.best_term);
  assert_true(a->x.r.best_cost == b->x.r.best_cost && a->x.r.cost_before == b->x.r.cost_before);
  assert_memory_equal(&a->x.r.gradient_norm, &b->x.r.gradient_norm, sizeof a->x.r.gradient_norm);
  for (int i = 0; i < STARTS; ++i) {
    const SnMultistartStart *p = &a->x.start[i], *q = &b->x.start[i];
    assert_true(p->cost == q->cost && p->best_cost == q->best_cost && p->diverged == q->diverged);
    assert_true(p->moments.power1 == q->moments.power1 && p->moments.power2 == q->moments.power2);
  }
}

static void any_number_of_lanes(void **state) {
  (void)state;
  const int clips[] = {SN_CLIP_OFF, SN_CLIP_GLOBAL, SN_CLIP_STEP};
  Run *one = calloc(1, sizeof *one), *some = calloc(1, sizeof *some);
  for (int i = 0; i < 6; ++i) {
    make_run(one, clips[i / 2], i % 2);
    sn_lanes_run(1, optimize, one);
    assert_int_equal(one->unbounded, 1);
    assert_true(isfinite((double)one->x.r.best_cost) && one->x.r.best_cost < one->x.r.cost_before);
    for (int lanes = 2; lanes <= 7; ++lanes) {
      make_run(some, clips[i / 2], i % 2);
      sn_lanes_run(lanes, optimize, some);
      same(one, some);
    }
  }
  free(one);
  free(some);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(any_number_of_lanes)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
