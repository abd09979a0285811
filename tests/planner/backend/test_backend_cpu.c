// The CPU backend: the same costs from any number of threads, with and without pauses; abandoned batches.
#include "planner/backend/backend.h"
#include "tests/planner/bench_body.h"

enum { STEPS = 25, COUNT = 20, TERMS = 4 };

typedef struct Fixture {
  SnPool *pool;
  SnBackend *backend;
  SnModel *m;
  SnCost *cost;
  SnBackendModel *model;
  SnBatch batch;
  SnState state;
  SnNoiseSettings noise;
  sn_real qpos[2], qvel[2], act[2], ctrl[STEPS * 3], target[(STEPS + 1) * 16];
  double cost_of[COUNT], term_of[COUNT * TERMS];
  unsigned char done[COUNT];
} Fixture;

static void make_fixture(Fixture *x, int threads) {
  SnError err = {0};
  memset(x, 0, sizeof *x);
  x->pool = sn_pool_create(threads, &err);
  x->backend = sn_backend_cpu(x->pool, &err);
  x->m = sn_task_model(task, body.m, &err);
  x->cost = sn_cost_create(task, x->m, &err);
  assert_true(x->cost->ntarget <= 16 && x->cost->nterm == TERMS);
  x->model = sn_backend_load(x->backend, x->m, x->cost, STEPS, &err);
  assert_non_null(x->model);
  sn_cost_schedule(x->cost, 0, 0.01, STEPS + 1, x->target);
  x->noise = (SnNoiseSettings){.seed = 5,
                               .plan = 1,
                               .spacing = 6,
                               .phase = 2,
                               .knots = sn_noise_knots(STEPS, 6, 2),
                               .interpolation = SN_SPLINE_CUBIC,
                               .colour = SN_NOISE_BROWN,
                               .scale = SN_R(0.4)};
  x->state = (SnState){.qpos = x->qpos, .qvel = x->qvel, .act = x->act};
  x->batch = (SnBatch){.state = &x->state,
                       .nstate = 1,
                       .ctrl = x->ctrl,
                       .nctrl = 1,
                       .target = x->target,
                       .ntable = 1,
                       .noise = &x->noise,
                       .nstep = STEPS,
                       .count = COUNT,
                       .max_velocity = 1e3,
                       .cost = x->cost_of,
                       .term = x->term_of,
                       .done = x->done};
}

static void free_fixture(Fixture *x) {
  sn_backend_unload(x->backend, x->model);
  sn_cost_free(x->cost);
  sn_model_free(x->m);
  sn_backend_free(x->backend);
  sn_pool_free(x->pool);
}

static void threads_and_pauses(void **state) {
  (void)state;
  double cost[COUNT], term[COUNT * TERMS];
  const SnClock monotonic = sn_clock_monotonic();
  for (int threads = 1; threads <= 8; ++threads) {
    Fixture x;
    make_fixture(&x, threads);
    assert_true(sn_backend_rollouts(x.backend, x.model, &x.batch, &monotonic, INFINITY));
    if (threads == 1) {
      memcpy(cost, x.cost_of, sizeof cost);
      memcpy(term, x.term_of, sizeof term);
      for (int i = 1; i < COUNT; ++i) assert_true(isfinite(cost[i]) && cost[i] != cost[0]);
    }
    assert_memory_equal(cost, x.cost_of, sizeof cost);
    assert_memory_equal(term, x.term_of, sizeof term);
    // Once more, a few readings of the clock at a time.
    CountingClock count = {0};
    const SnClock clock = counting_clock(&count);
    memset(x.done, 0, sizeof x.done);
    memset(x.cost_of, 0, sizeof x.cost_of);
    int calls = 1;
    while (!sn_backend_rollouts(x.backend, x.model, &x.batch, &clock, (double)atomic_load(&count.reads) + 40)) ++calls;
    assert_true(calls > 5);
    assert_memory_equal(cost, x.cost_of, sizeof cost);
    free_fixture(&x);
  }
}

// A batch of later candidates, after one that was abandoned half way.
static void abandoned(void **state) {
  (void)state;
  Fixture x;
  make_fixture(&x, 3);
  const SnClock monotonic = sn_clock_monotonic();
  double cost[COUNT];
  sn_backend_rollouts(x.backend, x.model, &x.batch, &monotonic, INFINITY);
  memcpy(cost, x.cost_of, sizeof cost);
  CountingClock count = {0};
  const SnClock clock = counting_clock(&count);
  memset(x.done, 0, sizeof x.done);
  assert_false(sn_backend_rollouts(x.backend, x.model, &x.batch, &clock, 30));
  sn_backend_abandon(x.backend, x.model);
  memset(x.done, 0, sizeof x.done);
  x.batch.first = 7;
  x.batch.count = 5;
  assert_true(sn_backend_rollouts(x.backend, x.model, &x.batch, &monotonic, INFINITY));
  assert_memory_equal(cost + 7, x.cost_of, 5 * sizeof *cost);
  char text[80];
  sn_backend_describe(x.backend, text, sizeof text);
  assert_string_equal(text, sizeof(sn_real) == 8 ? "cpu, double, 3 threads" : "cpu, float, 3 threads");
  assert_string_equal(sn_backend_names()[0], "cpu");
  free_fixture(&x);
}

// An iteration of Adam pauses after each start that it prepares, and again after each that it evaluates; the best
// controls and the costs are those of one without pauses.
static void starts_pause(void **state) {
  (void)state;
  enum { STARTS = 8 };
  SnError err = {0};
  Fixture x;
  sn_real want[STEPS * 3], initial[3] = {0};
  double term[TERMS], cost = 0;
  const SnClock monotonic = sn_clock_monotonic();
  make_fixture(&x, 1);
  assert_int_equal(sn_backend_reserve_multistart(x.backend, x.model, STARTS, &err), SN_OK);
  for (int pauses = 0; pauses < 2; ++pauses) {
    memset(x.ctrl, 0, sizeof x.ctrl);
    SnMultistartJob job = {.state = x.state,
                           .target = x.target,
                           .nstep = STEPS,
                           .max_velocity = 1e3,
                           .settings = sn_default_gradient_settings(),
                           .grid = {.nstep = STEPS, .knots = STEPS, .spacing = 1, .interpolation = SN_SPLINE_ZERO},
                           .rule = sn_adam_settings(&task->settings),
                           .noise = x.noise,
                           .initial_ctrl = initial,
                           .starts = STARTS,
                           .count = STARTS,
                           .init = true,
                           .iterations = 1,
                           .deadline = INFINITY,
                           .ctrl = x.ctrl,
                           .best_term = term};
    CountingClock count = {0};
    const SnClock clock = counting_clock(&count);
    if (!pauses) assert_true(sn_backend_multistart(x.backend, x.model, &job, &monotonic, INFINITY));
    for (int i = 0; pauses && i < STARTS; ++i) {  // one start, one look at the clock, which has reached the end
      assert_false(sn_backend_multistart(x.backend, x.model, &job, &clock, (double)i));
      assert_int_equal(atomic_load(&count.reads), i + 1);
    }
    int calls = 1;
    while (pauses && !sn_backend_multistart(x.backend, x.model, &job, &clock, (double)atomic_load(&count.reads) + 2))
      ++calls;
    if (pauses) assert_true(calls > STARTS * STEPS);
    assert_int_equal(job.used, STARTS);
    sn_backend_multistart_end(x.backend, x.model, &job);
    assert_true(isfinite(job.best_cost) && job.best_cost < job.cost_before);
    if (!pauses) {
      memcpy(want, x.ctrl, sizeof want);
      cost = job.best_cost;
    }
    assert_memory_equal(want, x.ctrl, sizeof want);
    assert_true(job.best_cost == cost);
  }
  free_fixture(&x);
}

// Calls that two iterations of Adam from one long start take, each until its second look at the clock, with knots that
// are `spacing` steps apart. The controls go to ctrl.
static int calls_of_a_start(int spacing, sn_real *ctrl) {
  enum { LONG = 400 };
  static sn_real target[(LONG + 1) * 16];
  sn_real initial[3] = {0};
  double term[TERMS];
  SnError err = {0};
  Fixture x;
  make_fixture(&x, 1);
  sn_backend_unload(x.backend, x.model);
  x.model = sn_backend_load(x.backend, x.m, x.cost, LONG, &err);
  sn_cost_schedule(x.cost, 0, 0.01, LONG + 1, target);
  assert_int_equal(sn_backend_reserve_multistart(x.backend, x.model, 1, &err), SN_OK);
  SnMultistartJob job = {.state = x.state,
                         .target = target,
                         .nstep = LONG,
                         .max_velocity = 1e3,
                         .settings = sn_default_gradient_settings(),
                         .grid = {.nstep = LONG,
                                  .knots = sn_noise_knots(LONG, spacing, 0),
                                  .spacing = spacing,
                                  .interpolation = SN_SPLINE_ZERO},
                         .rule = sn_adam_settings(&task->settings),
                         .noise = x.noise,
                         .initial_ctrl = initial,
                         .starts = 1,
                         .count = 1,
                         .init = true,
                         .iterations = 2,
                         .deadline = INFINITY,
                         .ctrl = ctrl,
                         .best_term = term};
  CountingClock count = {0};
  const SnClock clock = counting_clock(&count);
  int calls = 1;
  while (!sn_backend_multistart(x.backend, x.model, &job, &clock, (double)atomic_load(&count.reads) + 2)) ++calls;
  sn_backend_multistart_end(x.backend, x.model, &job);
  free_fixture(&x);
  return calls;
}

// One long start pauses inside, too: the more knots it has, the more often.
static void a_start_pauses(void **state) {
  (void)state;
  sn_real ctrl[400 * 3] = {0};
  const int many = calls_of_a_start(1, ctrl), few = calls_of_a_start(100, ctrl);
  print_message("two iterations of 400 steps: %d calls with 400 knots, %d with %d\n", many, few,
                sn_noise_knots(400, 100, 0));
  assert_true(many > few + 40);  // at least a gradient and a step of 50 parts each, two parts a call
}

// Backends by name. A program of floats has no libraries, and says so.
static void by_name(void **state) {
  (void)state;
  SnError err = {0};
  SnPool *pool = sn_pool_create(1, &err);
  SnBackend *b = sn_backend_open("cpu", pool, NULL, &err);
  assert_non_null(b);
  assert_string_equal(sn_backend_name(b), "cpu");
  sn_backend_free(b);
  SnBackendOptions options = sn_default_backend_options();
  options.folder = "/nowhere";
  assert_null(sn_backend_open("emulator", pool, &options, &err));
  if (sizeof(sn_real) == 8) {
    assert_int_equal(err.code, SN_ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "/nowhere/libsinew_emulator.so"));
  } else {
    assert_int_equal(err.code, SN_ERR_UNSUPPORTED);
    assert_string_equal(err.text, "backend 'emulator': a program whose numbers are floats has the backend 'cpu' alone");
    assert_null(sn_backend_names()[1]);
  }
  sn_pool_free(pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(threads_and_pauses), cmocka_unit_test(abandoned),
                                     cmocka_unit_test(starts_pause), cmocka_unit_test(a_start_pauses),
                                     cmocka_unit_test(by_name)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
