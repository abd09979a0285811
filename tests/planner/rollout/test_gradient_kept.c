// Kept worlds: whatever memory there is for them, gradients have the bits of those from worlds that are made again; for
// any number of threads, after a pause at every step, in two phases, with contacts from distance, and when one memory
// serves several rollouts. Nothing is allocated meanwhile.
#include "clients/reference/probe_task.h"
#include "planner/rollout/gradient.h"
#include "planner/rollout/world_store.h"
#include "tests/planner/counting_clock.h"
#include "tests/support/allocations.h"
#include "tests/support/slow.h"
#include "tests/support/small_models.h"
#include "tests/support/step_fixture.h"

enum { STEPS = 16, ITEMS = 3, MODELS = 2 * SN_SMALL_MODELS + 3 };

typedef struct Fixture {
  SnOracle o;
  SnTask *task;
  SnCost *cost;
  sn_real *ctrl, *target, *bar;  // of all items
  SnState state;
  size_t nctrl, ntarget, nbar;  // numbers of one item
  SnGradient item[ITEMS];
} Fixture;

// Far from the floor, so that it has no row, and under `discrete` a factor that none of the small models has alone.
static const char *const pendulum =
    "<mujoco><option integrator='discrete'/><worldbody><geom type='plane' size='1 1 1' pos='0 0 -9'/><body><joint "
    "name='a' axis='0 1 0' stiffness='3' damping='.2'/><geom type='capsule' size='.03' fromto='0 0 0 .3 0 0'/><body "
    "pos='.3 0 0'><joint name='b' axis='0 1 0' damping='.1'/><geom type='capsule' size='.03' fromto='0 0 0 .3 0 0'/>"
    "</body></body></worldbody><actuator><position joint='a' kp='9'/><motor joint='b'/></actuator></mujoco>";

static const char *other_model(int i) {
  return i == 0 ? sn_branching_model() : (i == 1 ? sn_slipping_model() : pendulum);
}

static void open_fixture(Fixture *x, int i) {
  SnError err = {0};
  char text[4000];
  memset(x, 0, sizeof *x);
  if (i < 2 * SN_SMALL_MODELS)
    sn_step_model(&x->o, i % SN_SMALL_MODELS);
  else
    sn_oracle_load_string(&x->o, other_model(i - 2 * SN_SMALL_MODELS));
  if (i >= SN_SMALL_MODELS && i < 2 * SN_SMALL_MODELS) sn_step_integrator(&x->o, SN_STEP_INTEGRATORS - 1);
  const SnModel *m = x->o.m;
  if (!sn_probe_task(m, text, sizeof text)) fail_msg("model %d: nothing moves", i);
  x->task = sn_task_parse(text, strlen(text), "small.yaml", &err);
  x->cost = sn_cost_create(x->task, m, &err);
  if (!x->cost) fail_msg("%s", err.text);
  x->nctrl = (size_t)STEPS * (size_t)m->nu;
  x->ntarget = (size_t)(STEPS + 1) * (size_t)x->cost->ntarget;
  x->nbar = x->nctrl + 2 * (size_t)m->nv + (size_t)m->na;
  x->ctrl = calloc(ITEMS * x->nctrl + 1, sizeof *x->ctrl);
  x->target = calloc(x->ntarget + 1, sizeof *x->target);
  x->bar = calloc(ITEMS * x->nbar + 1, sizeof *x->bar);
  sn_cost_schedule(x->cost, 0, (double)m->opt.timestep, STEPS + 1, x->target);
  SnOracle draw = {.rng = 7};
  for (size_t k = 0; k < ITEMS * x->nctrl; ++k) x->ctrl[k] = (sn_real)(0.4 * sn_oracle_uniform(&draw));
  const SnWorld *w = &x->o.w;
  x->state = (SnState){.qpos = w->qpos, .qvel = w->qvel, .act = w->act};
  x->state.mocap_pos = w->mocap_pos;
  x->state.mocap_quat = w->mocap_quat;
  for (size_t k = 0; k < ITEMS; ++k) {
    sn_real *bar = x->bar + k * x->nbar;
    x->item[k] = (SnGradient){.state = x->state,
                              .ctrl = x->ctrl + k * x->nctrl,
                              .target = x->target,
                              .nstep = STEPS,
                              .max_velocity = 1e3,
                              .ctrl_bar = bar,
                              .qpos_bar = bar + x->nctrl,
                              .qvel_bar = bar + x->nctrl + m->nv,
                              .act_bar = bar + x->nctrl + 2 * m->nv};
  }
}

static void close_fixture(Fixture *x) {
  free(x->ctrl);
  free(x->target);
  free(x->bar);
  sn_cost_free(x->cost);
  sn_task_free(x->task);
  sn_oracle_free(&x->o);
}

static SnGradientSettings settings_of(int method, bool cfd) {
  SnGradientSettings s = sn_default_gradient_settings();
  s.method = (SnGradientMethod)method;
  if (cfd)
    s.cfd = (SnCfdSettings){
        .on = 1, .solimp = {SN_R(0.0), SN_R(0.1), SN_R(0.2), SN_R(1.0), SN_R(4.0)}, .width = SN_R(0.002)};
  return s;
}

// All gradients, so many at a time, with or without an end of the rollouts between, and pauses after `readings` of the
// clock; 0: none.
static void compute(Fixture *x, SnGradientWork *work, const SnGradientSettings *settings, int together, bool phases,
                    int readings) {
  CountingClock count = {0};
  const SnClock clock = counting_clock(&count);
  memset(x->bar, 0xff, ITEMS * x->nbar * sizeof *x->bar);
  for (int k = 0; k < ITEMS; ++k) x->item[k].status = SN_GRADIENT_PENDING;
  const long before = sn_allocations();
  for (int first = 0; first < ITEMS; first += together)
    for (int phase = phases ? 0 : 1; phase < 2; ++phase) {
      SnGradientBatch batch = {
          .settings = *settings, .item = x->item + first, .count = together, .forward = phase == 0};
      while (!sn_gradient_run(work, &batch, &clock, readings ? (double)atomic_load(&count.reads) + readings : INFINITY))
        continue;
    }
  assert_int_equal(sn_allocations() - before, 0);
  for (int k = 0; k < ITEMS; ++k) assert_int_equal(x->item[k].status, SN_GRADIENT_DONE);
}

static SnGradientWork *work_of(const Fixture *x, size_t keep, SnPool *pool) {
  SnError err = {0};
  SnGradientWork *work = sn_gradient_create(x->o.m, x->cost, STEPS, ITEMS, keep, pool, &err);
  if (!work) fail_msg("%s", err.text);
  return work;
}

// Memory for nothing, for a few worlds, for some of the rollouts, for all. Slow builds take some of the cases.
static void same_bits(void **state) {
  (void)state;
  SnError err = {0};
  for (int i = 0; i < MODELS; i += SN_SLOW ? 5 : 1) {
    Fixture x;
    open_fixture(&x, i);
    const size_t whole = sn_world_store_size(x.o.m, STEPS), keep[] = {0, 1000, whole / 4, 2 * whole, 9 * whole};
    sn_real *want = calloc(ITEMS * x.nbar + 1, sizeof *want);
    for (int kind = 0; kind < 4; kind += SN_SLOW ? 3 : 1) {
      const SnGradientSettings settings = settings_of(kind % 2, kind >= 2);
      for (int k = 0; k < 5; k += SN_SLOW ? 2 : 1)
        for (int threads = 1; threads <= 2; ++threads) {
          SnPool *pool = sn_pool_create(threads, &err);
          SnGradientWork *work = work_of(&x, keep[k], pool);
          for (int way = 0; way < 6; ++way) {
            compute(&x, work, &settings, way < 3 ? ITEMS : 1, way % 3 == 2, way % 3 == 1 ? 2 + 2 * threads : 0);
            if (k == 0 && threads == 1 && way == 0) memcpy(want, x.bar, ITEMS * x.nbar * sizeof *want);
            assert_memory_equal(want, x.bar, ITEMS * x.nbar * sizeof *want);
          }
          sn_gradient_free(work);
          sn_pool_free(pool);
        }
    }
    free(want);
    close_fixture(&x);
  }
}

static void roll(SnRolloutRunner *r, SnRollout *rollout, SnWorldStore *store) {
  const SnClock clock = sn_clock_monotonic();
  assert_int_equal(sn_rollout_runner_advance(r, rollout, store, &clock, INFINITY), SN_ROLLOUT_DONE);
}

// What is forgotten leaves its memory to the next rollout, however often.
static void keeps_again(SnRolloutRunner *r, const SnRollout *start, SnWorldStore *store, bool whole) {
  for (int again = 0; again < 20; ++again) {
    SnRollout rollout = *start;
    sn_world_store_clear(store, false);
    roll(r, &rollout, store);
    for (int t = 0; t <= STEPS; ++t) assert_int_equal(sn_world_store_whole(store, t), whole);
  }
}

// A view holds what the world that is made again holds, where the way back reads it, and a world is there for each
// state.
static void kept_solution(void **state) {
  (void)state;
  for (int i = 0; i < MODELS; ++i) {
    Fixture x;
    open_fixture(&x, i);
    const SnModel *m = x.o.m;
    const size_t nv = (size_t)m->nv, rows = STEPS + 1, size = (sn_world_size(m) + 63) / 64 * 64;
    SnError err = {0};
    SnWorldStore *store = sn_world_store_create(STEPS, sn_world_store_size(m, STEPS));
    SnRolloutRunner *r = sn_rollout_runner_create(m, x.cost, &err);
    SnTrajectory out = {.time = calloc(rows, sizeof(sn_real)),
                        .qpos = calloc(rows * (size_t)m->nq, sizeof(sn_real)),
                        .qvel = calloc(rows * nv, sizeof(sn_real)),
                        .act = calloc(rows * (size_t)m->na + 1, sizeof(sn_real)),
                        .qacc = calloc(rows * nv, sizeof(sn_real))};
    sn_real sum[64], *saved = calloc((size_t)sn_rollout_saved_size(m), sizeof *saved);
    SnRollout rollout = sn_rollout_make(x.cost, &x.state, x.ctrl, x.target, STEPS, 1e3, &out);
    rollout.sum = sum;
    rollout.saved = saved;
    const SnRollout start = rollout;
    roll(r, &rollout, store);
    const SnRolloutVjp b = {.rollout = &rollout};
    void *memory[2] = {aligned_alloc(64, size), aligned_alloc(64, size)};
    SnWorld own, made, view;
    sn_world_init(m, &own, memory[0]);
    sn_world_init(m, &made, memory[1]);
    int with_rows = 0;
    for (int t = 0; t <= STEPS; ++t) {
      SnLane *lane = sn_rollout_runner_lane(r);
      const bool kept = sn_world_store_view(store, m, lane, &b, t, &own, &view);
      assert_int_equal(kept, m->opt.integrator != SN_INT_RK4);
      if (!kept) continue;
      sn_rollout_vjp_recompute(m, lane, &b, t, &made);
      assert_int_equal(view.nefc[0], made.nefc[0]);
      assert_memory_equal(view.qacc, made.qacc, nv * sizeof(sn_real));
      assert_memory_equal(view.efc_force, made.efc_force, (size_t)made.nefc[0] * sizeof(sn_real));
      if (made.nefc[0] > 0) assert_memory_equal(view.hessian_inv, made.hessian_inv, nv * sizeof(sn_real));
      with_rows += made.nefc[0] > 0;
    }
    const bool whole = sn_world_store_whole(store, 0);
    sn_world_store_clear(store, false);
    for (int t = 0; t <= STEPS; ++t)
      assert_false(sn_world_store_whole(store, t) ||
                   sn_world_store_view(store, m, sn_rollout_runner_lane(r), &b, t, &own, &view));
    keeps_again(r, &start, store, whole);
    print_message("model %d: %d of %d states have rows\n", i, with_rows, STEPS + 1);
    sn_real *const arrays[] = {out.time, out.qpos, out.qvel, out.act, out.qacc, saved};
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays; ++k) free(arrays[k]);
    free(memory[0]);
    free(memory[1]);
    sn_rollout_runner_free(r);
    sn_world_store_free(store);
    close_fixture(&x);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(kept_solution)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
