// Rollouts: the same steps as sn_step, the cost's formula, pauses that change nothing, divergence.
#include "physics/step/step.h"
#include "planner/rollout/rollout_runner.h"
#include "tests/planner/bench_body.h"

enum { STEPS = 30 };

typedef struct Run {
  SnModel *m;
  SnCost *cost;
  SnRolloutRunner *r;
  SnState state;
  sn_real qpos[4], qvel[4], act[4];
  sn_real *ctrl, *target;
} Run;

static Run make_run(void) {
  SnError err = {0};
  Run run = {.m = sn_task_model(task, body.m, &err)};
  if (!run.m) fail_msg("%s", err.text);
  run.cost = sn_cost_create(task, run.m, &err);
  if (!run.cost) fail_msg("%s", err.text);
  run.r = sn_rollout_runner_create(run.m, run.cost, &err);
  run.ctrl = calloc(STEPS * (size_t)run.m->nu, sizeof *run.ctrl);
  run.target = calloc((STEPS + 1) * (size_t)run.cost->ntarget, sizeof *run.target);
  SnWorld *w = sn_rollout_runner_world(run.r);
  if (sn_task_reset(task, run.m, w, sn_rollout_runner_lane(run.r), 3, NULL, INFINITY, &err) != SN_OK)
    fail_msg("%s", err.text);
  memcpy(run.qpos, w->qpos, sizeof(sn_real) * (size_t)run.m->nq);
  memcpy(run.qvel, w->qvel, sizeof(sn_real) * (size_t)run.m->nv);
  memcpy(run.act, w->act, sizeof(sn_real) * (size_t)run.m->na);
  run.state = (SnState){.time = 0.5, .qpos = run.qpos, .qvel = run.qvel, .act = run.act};
  for (int t = 0; t < STEPS; ++t)
    for (int i = 0; i < run.m->nu; ++i)
      run.ctrl[t * run.m->nu + i] = SN_R(0.5) + SN_R(0.5) * sn_sin((sn_real)(t + 2 * i) * SN_R(0.3));
  sn_cost_schedule(run.cost, 0.5, 0.01, STEPS + 1, run.target);
  return run;
}

// The arrays of a state point into the run: set after the run has its final place.
static void link_state(Run *run) {
  run->state.qpos = run->qpos;
  run->state.qvel = run->qvel;
  run->state.act = run->act;
}

static void free_run(Run *run) {
  free(run->ctrl);
  free(run->target);
  sn_rollout_runner_free(run->r);
  sn_cost_free(run->cost);
  sn_model_free(run->m);
}

static void as_steps(void **state) {
  (void)state;
  Run run = make_run();
  link_state(&run);
  const SnModel *m = run.m;
  sn_real qpos[(STEPS + 1) * 2], qvel[(STEPS + 1) * 2], act[(STEPS + 1) * 2];
  sn_real cost[STEPS + 1];
  const SnTrajectory out = {.qpos = qpos, .qvel = qvel, .act = act, .cost = cost};
  const SnClock clock = sn_clock_monotonic();
  sn_rollout_runner_begin(run.r, &run.state, run.ctrl, run.target, STEPS, 1e3, &out);
  assert_int_equal(sn_rollout_runner_run(run.r, &clock, INFINITY), SN_ROLLOUT_DONE);
  void *memory = aligned_alloc(64, (sn_world_size(m) + 63) / 64 * 64);
  SnWorld w;
  sn_world_init(m, &w, memory);
  sn_world_set_state(m, &w, &run.state);
  for (int t = 0; t <= STEPS; ++t) {
    assert_memory_equal(w.qpos, qpos + t * m->nq, sizeof(sn_real) * (size_t)m->nq);
    assert_memory_equal(w.qvel, qvel + t * m->nv, sizeof(sn_real) * (size_t)m->nv);
    assert_memory_equal(w.act, act + t * m->na, sizeof(sn_real) * (size_t)m->na);
    if (t == STEPS) break;
    memcpy(w.ctrl, run.ctrl + t * m->nu, sizeof(sn_real) * (size_t)m->nu);
    sn_step(m, &w, sn_rollout_runner_lane(run.r));
  }
  // Total: mean of the running costs plus the terminal one; parts add up to it.
  double total = cost[STEPS], term[8], parts = 0;
  for (int t = 0; t < STEPS; ++t) total += cost[t] / STEPS;
  const double j = sn_rollout_runner_cost(run.r, term);
  for (int i = 0; i < run.cost->nterm; ++i) parts += term[i];
  const double tight = sizeof(sn_real) == 4 ? 1e-5 : 1e-12;
  assert_true(fabs(j - total) < tight * total && fabs(j - parts) < tight * total && j > 0);
  free(memory);
  free_run(&run);
}

// Two terms by hand from the states.
static void formula(void **state) {
  (void)state;
  Run run = make_run();
  link_state(&run);
  sn_real qpos[(STEPS + 1) * 2], qvel[(STEPS + 1) * 2];
  const SnTrajectory out = {.qpos = qpos, .qvel = qvel};
  const SnClock clock = sn_clock_monotonic();
  sn_rollout_runner_begin(run.r, &run.state, run.ctrl, run.target, STEPS, 1e3, &out);
  sn_rollout_runner_run(run.r, &clock, INFINITY);
  double elbow = 0, speed = 0, effort = 0, term[8];
  for (int t = 0; t < STEPS; ++t) {
    const double goal = -0.3 + 0.2 * sin(2 * (double)SN_PI * (0.5 + 0.01 * t)), e = (double)qpos[2 * t + 1] - goal;
    elbow += 0.1 * e * e / STEPS;
    speed += 0.001 * (double)(qvel[2 * t] * qvel[2 * t] + qvel[2 * t + 1] * qvel[2 * t + 1]) / STEPS;
    for (int i = 0; i < 3; ++i)
      effort += 0.01 * (sqrt((double)(run.ctrl[3 * t + i] * run.ctrl[3 * t + i]) + 0.01) - 0.1) / STEPS;
  }
  sn_rollout_runner_cost(run.r, term);
  const double tight = sizeof(sn_real) == 4 ? 1e-4 : 1e-10;
  assert_true(fabs(term[1] - elbow) < tight * elbow);
  assert_true(fabs(term[2] - speed) < tight * speed);
  assert_true(fabs(term[3] - effort) < tight * effort);
  free_run(&run);
}

static void pauses(void **state) {
  (void)state;
  Run run = make_run();
  link_state(&run);
  const SnClock monotonic = sn_clock_monotonic();
  double whole[8], pieces[8];
  sn_rollout_runner_begin(run.r, &run.state, run.ctrl, run.target, STEPS, 1e3, NULL);
  sn_rollout_runner_run(run.r, &monotonic, INFINITY);
  const double a = sn_rollout_runner_cost(run.r, whole);
  CountingClock count = {0};
  const SnClock clock = counting_clock(&count);
  sn_rollout_runner_begin(run.r, &run.state, run.ctrl, run.target, STEPS, 1e3, NULL);
  int paused = 0;
  // Each call gets three readings of the clock: two steps.
  while (sn_rollout_runner_run(run.r, &clock, (double)atomic_load(&count.reads) + 2) == SN_ROLLOUT_UNDER_WAY) ++paused;
  assert_int_equal(paused, STEPS / 2);
  const double b = sn_rollout_runner_cost(run.r, pieces);
  assert_true(a == b);
  assert_memory_equal(whole, pieces, sizeof(double) * (size_t)run.cost->nterm);
  free_run(&run);
}

// A weight of 0 takes a term out of the cost, also where its norm is not a number.
static void weight_zero(void **state) {
  (void)state;
  Run run = make_run();
  link_state(&run);
  const SnClock clock = sn_clock_monotonic();
  const int reach = sn_cost_find(run.cost, "reach"), elbow = sn_cost_find(run.cost, "elbow");
  double term[8];
  for (int t = 0; t <= STEPS; ++t) run.target[t * run.cost->ntarget + run.cost->term_target[elbow]] = (sn_real)NAN;
  for (int k = 0; k < 2; ++k) {
    sn_rollout_runner_begin(run.r, &run.state, run.ctrl, run.target, STEPS, 1e3, NULL);
    assert_int_equal(sn_rollout_runner_run(run.r, &clock, INFINITY), k == 0 ? SN_ROLLOUT_DIVERGED : SN_ROLLOUT_DONE);
    run.cost->weight[elbow] = 0;
  }
  assert_true(isfinite(sn_rollout_runner_cost(run.r, term)) && term[elbow] == 0 && term[reach] > 0);
  assert_true(isfinite(sn_rollout_runner_evaluate(run.r, run.target, term, NULL)) && term[elbow] == 0 &&
              term[reach] > 0);
  free_run(&run);
}

static void divergence(void **state) {
  (void)state;
  Run run = make_run();
  link_state(&run);
  const SnClock clock = sn_clock_monotonic();
  double term[8];
  sn_rollout_runner_begin(run.r, &run.state, run.ctrl, run.target, STEPS, 1e-3, NULL);
  assert_int_equal(sn_rollout_runner_run(run.r, &clock, INFINITY), SN_ROLLOUT_DIVERGED);
  assert_true(isinf(sn_rollout_runner_cost(run.r, term)) && isinf(term[0]));
  run.qvel[0] = (sn_real)NAN;
  sn_rollout_runner_begin(run.r, &run.state, run.ctrl, run.target, STEPS, 1e3, NULL);
  assert_int_equal(sn_rollout_runner_run(run.r, &clock, INFINITY), SN_ROLLOUT_DIVERGED);
  run.qvel[0] = 0;
  sn_rollout_runner_begin(run.r, &run.state, run.ctrl, run.target, STEPS, 1e3, NULL);
  assert_int_equal(sn_rollout_runner_run(run.r, &clock, INFINITY), SN_ROLLOUT_DONE);
  free_run(&run);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_steps), cmocka_unit_test(formula), cmocka_unit_test(pauses),
                                     cmocka_unit_test(weight_zero), cmocka_unit_test(divergence)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
