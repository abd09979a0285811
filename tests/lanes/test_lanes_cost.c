// Costs and their derivatives on several lanes: the bits of one lane.
#include <stdlib.h>

#include "physics/step/step.h"
#include "tests/support/lanes.h"
#include "tests/planner/bench_body.h"
#include "tests/planner/cost/cost_body.h"

typedef struct Evaluation {
  SnCost *cost;
  sn_real *target, *res, *value;
} Evaluation;

static void evaluate(SnLane *lane, void *arg) {
  Evaluation *e = arg;
  sn_cost_residual(e->cost, body.m, &body.w, lane, (SnCostInput){.target = e->target}, 0, e->cost->nall, e->res);
  sn_cost_norm(e->cost, lane, e->res, 0, e->cost->nall, e->value);
}

static void any_number_of_lanes(void **state) {
  (void)state;
  SnError err = {0};
  Evaluation e = {.cost = sn_cost_create(task, body.m, &err)};
  if (!e.cost) fail_msg("%s", err.text);
  const size_t nres = (size_t)e.cost->nres, nall = (size_t)e.cost->nall;
  e.target = calloc((size_t)e.cost->ntarget, sizeof *e.target);
  e.res = calloc(nres, sizeof *e.res);
  e.value = calloc(nall, sizeof *e.value);
  sn_real *res = calloc(nres, sizeof *res), *value = calloc(nall, sizeof *value);
  sn_cost_schedule(e.cost, 0.3, 0.01, 1, e.target);
  for (int k = 0; k < 20; ++k) {
    sn_oracle_randomize(&body, 1);
    mj_forward(body.mj, body.d);
    sn_oracle_fill(&body);
    sn_lanes_run(1, evaluate, &e);
    memcpy(res, e.res, sizeof *res * nres);
    memcpy(value, e.value, sizeof *value * nall);
    for (int lanes = 2; lanes <= 7; ++lanes) {
      memset(e.value, 0, sizeof *value * nall);
      sn_lanes_run(lanes, evaluate, &e);
      assert_memory_equal(res, e.res, sizeof *res * nres);
      assert_memory_equal(value, e.value, sizeof *value * nall);
    }
  }
  free(e.target);
  free(e.res);
  free(e.value);
  free(res);
  free(value);
  sn_cost_free(e.cost);
}

// The derivative of a cost in one state.
typedef struct Slope {
  const SnModel *m;
  const SnCost *cost;
  SnWorld w;
  SnAdjoint a;
  void *memory[2];
  const sn_real *target, *weight;
  sn_real *res, *target_bar, *before_bar;
} Slope;

static void differentiate(SnLane *lane, void *arg) {
  Slope *s = arg;
  sn_forward(s->m, &s->w, lane);
  sn_adjoint_clear(s->m, &s->a, lane);
  sn_motion_rest(s->m, &s->w, &s->a, lane);
  const SnCostInput in = {.target = s->target, .before = s->m->qpos0, .since = SN_R(0.125)};
  sn_cost_vjp(s->cost, s->m, &s->w, &s->a, lane, (SnCostVjp){in, s->weight, 1, s->res, s->target_bar, s->before_bar});
  sn_position_vjp(s->m, &s->w, &s->a, lane);
}

static void slope_make(Slope *s, const SnOracle *o, const SnCost *cost, const sn_real *target, const sn_real *weight) {
  *s = (Slope){.m = o->m, .cost = cost, .target = target, .weight = weight};
  s->memory[0] = aligned_alloc(64, (sn_world_size(o->m) + 63) / 64 * 64);
  s->memory[1] = aligned_alloc(64, (sn_adjoint_size(o->m) + 63) / 64 * 64);
  sn_world_init(o->m, &s->w, s->memory[0]);
  sn_world_copy_state(o->m, &s->w, &o->w);
  sn_adjoint_init(o->m, &s->a, s->memory[1]);
  s->res = calloc((size_t)cost->nres + 1, sizeof *s->res);
  s->target_bar = calloc((size_t)cost->ntarget + 1, sizeof *s->target_bar);
  s->before_bar = calloc((size_t)o->m->nu, sizeof *s->before_bar);
}

static void slope_free(Slope *s) {
  free(s->memory[0]);
  free(s->memory[1]);
  free(s->res);
  free(s->target_bar);
  free(s->before_bar);
}

static void same(const sn_real *a, const sn_real *b, int n) {
  if (n) assert_memory_equal(a, b, sizeof *a * (size_t)n);
}

static void compare_slopes(const Slope *one, const Slope *many) {
  const SnModel *m = one->m;
  same(one->res, many->res, one->cost->nres);
  same(one->target_bar, many->target_bar, one->cost->ntarget);
  same(one->a.qpos_bar, many->a.qpos_bar, m->nv);
  same(one->a.qvel_bar, many->a.qvel_bar, m->nv);
  same(one->a.act_bar, many->a.act_bar, m->na);
  same(one->a.ctrl_bar, many->a.ctrl_bar, m->nu);
  same(one->before_bar, many->before_bar, m->nu);
  same(one->a.mocap_bar, many->a.mocap_bar, 6 * m->nmocap);
}

// A cost of all quantities; every third term has another norm, one the weight 0.
static SnTask *whole_task(void) {
  static const char *const norm[] = {"squared, side: above", "euclidean, width: 0.3",
                                     "smooth_abs, width: 0.2, side: below"};
  static char text[12000];
  SnError err = {0};
  int n = snprintf(text, sizeof text, "model: x\nterms:\n");
  for (int i = 0; i < COST_QUANTITIES; ++i)
    n += snprintf(text + n, sizeof text - (size_t)n, "  - {name: q%d, %s, norm: %s}\n", i, cost_quantity[i],
                  norm[i % 3]);
  assert_true((size_t)n < sizeof text);
  SnTask *whole = sn_task_parse(text, strlen(text), "whole.yaml", &err);
  if (!whole) fail_msg("%s", err.text);
  return whole;
}

static void derivatives(void **state) {
  (void)state;
  SnError err = {0};
  SnOracle o;
  SnLaneShared shared;
  SnLane lane = {.n = 1, .shared = &shared};
  sn_real target[400] = {0}, weight[COST_QUANTITIES];
  sn_oracle_load_string(&o, cost_body);
  SnTask *whole = whole_task();
  SnCost *cost = sn_cost_create(whole, o.m, &err);
  if (!cost) fail_msg("%s", err.text);
  assert_true(cost->ntarget <= 400);
  for (int i = 0; i < COST_QUANTITIES; ++i) weight[i] = i == 4 ? 0 : SN_R(0.7) + SN_R(0.1) * (sn_real)i;
  for (int k = 0; k < 5; ++k) {
    Slope one, many;
    sn_oracle_randomize(&o, 1);
    sn_oracle_copy_state(&o);
    sn_forward(o.m, &o.w, &lane);
    sn_cost_capture(cost, o.m, &o.w, &lane);
    sn_cost_schedule(cost, 0.3, 0.01, 1, target);
    sn_oracle_randomize(&o, 1);
    sn_oracle_copy_state(&o);
    slope_make(&one, &o, cost, target, weight);
    sn_lanes_run(1, differentiate, &one);
    assert_true(one.a.qpos_bar[0] != 0);
    for (int lanes = 2; lanes <= 5; ++lanes) {
      slope_make(&many, &o, cost, target, weight);
      sn_lanes_run(lanes, differentiate, &many);
      compare_slopes(&one, &many);
      slope_free(&many);
    }
    slope_free(&one);
  }
  sn_cost_free(cost);
  sn_task_free(whole);
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(any_number_of_lanes), cmocka_unit_test(derivatives)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
