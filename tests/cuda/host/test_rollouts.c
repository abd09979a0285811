// Rollouts and plans of a backend in a library, on the emulator, against those of the CPU: the same bits in double, by
// a table in float; slices of time; what overflows; several sessions in one launch.
#include "clients/base/statistics.h"
#include "tests/cuda/plugin_fixture.h"

// The same bits as the CPU: the same text in the same number type. Noise is of a seed, contacts as they are or from a
// distance in the steps themselves.
static void same_as_cpu(const char *name, int nstep) {
  Scene x;
  if (!scene_open(&x, name)) skip();
  SnBackend *b = open_library("emulator_double", 0, NULL);
  const SnCfdSettings cfd = sn_cfd_settings(&x.task->settings, NULL, true);
  for (int with_cfd = 0; with_cfd < 2; ++with_cfd) {
    Rollouts cpu = rollouts_make(&x, nstep, 6), device = rollouts_make(&x, nstep, 6);
    rollouts_noisy(&cpu);
    rollouts_noisy(&device);
    SnState initial = *cpu.batch.state;
    if (with_cfd) initial.cfd = &cfd;
    cpu.batch.state = device.batch.state = &initial;
    rollouts_run(&x, x.cpu, &cpu);
    rollouts_run(&x, b, &device);
    for (int i = 1; i < 6; ++i) assert_true(isfinite(cpu.batch.cost[i]) && cpu.batch.cost[i] != cpu.batch.cost[0]);
    rollouts_equal(&cpu, &device);
    assert_memory_equal(cpu.batch.warn, device.batch.warn, 6 * sizeof(int));
    // Another seed is other noise, the same on both; candidate 0 has none.
    const double first = device.batch.cost[0], second = device.batch.cost[1];
    cpu.noise.seed = device.noise.seed = 12;
    rollouts_run(&x, x.cpu, &cpu);
    rollouts_run(&x, b, &device);
    assert_true(device.batch.cost[0] == first && device.batch.cost[1] != second);
    rollouts_equal(&cpu, &device);
    rollouts_free(&cpu);
    rollouts_free(&device);
  }
  sn_backend_free(b);
  scene_close(&x);
}

static void arm_same_as_cpu(void **state) {
  (void)state;
  same_as_cpu("arm_reach", 100);
}

static void hand_same_as_cpu(void **state) {
  (void)state;
  same_as_cpu("hand_balls", 48);
}

// Nor does it matter how much shared memory there is, how many blocks run at once and how many candidates a block
// takes.
static void shapes_do_not_matter(void **state) {
  (void)state;
  static const char *const faults[] = {"shared:65536", "shared:6000", "blocks:3"};
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  Rollouts cpu = rollouts_make(&x, 30, 40), device = rollouts_make(&x, 30, 40);
  rollouts_noisy(&cpu);
  rollouts_noisy(&device);
  rollouts_run(&x, x.cpu, &cpu);
  for (int k = 0; k < 3; ++k) {
    SnBackend *b = open_library("emulator_double", 0, faults[k]);
    rollouts_clear(&device);
    rollouts_run(&x, b, &device);
    rollouts_equal(&cpu, &device);
    sn_backend_free(b);
  }
  rollouts_free(&cpu);
  rollouts_free(&device);
  scene_close(&x);
}

// Two plans of a planner on the backend, without a deadline, into ctrl (2, rows).
static size_t make_plans(const Scene *x, SnBackend *b, int planner, sn_real *ctrl, double cost[2]) {
  SnError err = {0};
  size_t rows = 0;
  SnPlannerDef def = sn_default_planner_def();
  def.model = x->o.m;
  def.task = x->task;
  def.backend = b;
  def.settings = x->task->settings;
  def.settings.planner = planner;
  def.settings.horizon = 32;
  def.settings.candidates = 20;
  def.settings.iterations = 2;
  def.settings.adam_iterations = 4;
  def.settings.adam_starts = 2;
  def.seed = 5;
  SnPlanner *p = sn_planner_create(&def, &err);
  if (!p) fail_msg("%s", err.text);
  const SnState *s = sn_planner_initial(p);
  for (int k = 0; k < 2; ++k) {
    SnPlan plan;
    SnPlanRequest q = sn_default_plan_request();
    q.time = 8 * k * (double)x->m->opt.timestep;
    q.qpos = s->qpos;
    q.qvel = s->qvel;
    q.act = s->act;
    if (sn_planner_plan(p, &q, &plan, &err) != SN_OK) fail_msg("%s", err.text);
    const size_t n = (size_t)plan.nstep * (size_t)plan.nu;
    memcpy(ctrl + rows, plan.ctrl, sizeof *ctrl * n);
    rows += n;
    cost[k] = plan.cost_after;
    assert_string_equal(plan.backend, sn_backend_name(b));
    assert_false(plan.device_lost);
  }
  sn_planner_free(p);
  return rows;
}

// Whole plans: the same bits by both planners.
static void plans_are_the_same(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *b = open_library("emulator_double", 0, NULL);
  for (int planner = SN_PLANNER_SAMPLING; planner <= SN_PLANNER_ADAM; ++planner) {
    sn_real ctrl[2][4096];
    double cost[2][2];
    const size_t rows = make_plans(&x, x.cpu, planner, ctrl[0], cost[0]);
    assert_true(rows < 4096);
    assert_int_equal(make_plans(&x, b, planner, ctrl[1], cost[1]), rows);
    assert_memory_equal(ctrl[0], ctrl[1], sizeof(sn_real) * rows);
    assert_memory_equal(cost[0], cost[1], sizeof cost[0]);
  }
  sn_backend_free(b);
  scene_close(&x);
}

// How far floats are from doubles: the largest relative difference of a candidate's cost. Where bodies touch, rollouts
// part for good once a contact begins a step earlier or later, so the table is of whole rollouts and not of steps.
typedef struct FloatLimit {
  const char *task;
  int nstep;
  double limit;
} FloatLimit;

static void floats_are_near(void **state) {
  (void)state;
  static const FloatLimit table[] = {
      {"arm_reach", 16, 5e-6},  {"arm_reach", 64, 5e-6},  {"arm_reach", 256, 1e-5},
      {"hand_pose", 16, 5e-6},  {"hand_pose", 64, 5e-6},  {"hand_pose", 256, 5e-5},
      {"hand_balls", 16, 5e-6}, {"hand_balls", 64, 5e-5}, {"hand_balls", 256, 1e-3},
  };
  SnBackend *b = open_library("emulator", 0, NULL);
  char text[300];
  sn_backend_describe(b, text, sizeof text);
  assert_non_null(strstr(text, "float"));
  for (size_t k = 0; k < sizeof table / sizeof table[0]; ++k) {
    Scene x;
    if (!scene_open(&x, table[k].task)) continue;
    Rollouts cpu = rollouts_make(&x, table[k].nstep, 4), device = rollouts_make(&x, table[k].nstep, 4);
    rollouts_noisy(&cpu);
    rollouts_noisy(&device);
    rollouts_run(&x, x.cpu, &cpu);
    rollouts_run(&x, b, &device);
    double worst = 0;
    for (int i = 0; i < 4; ++i)
      worst = sn_larger(worst, fabs(device.batch.cost[i] - cpu.batch.cost[i]) / fabs(cpu.batch.cost[i]));
    printf("%s, %d steps: costs in float differ by %.2e, allowed are %.0e\n", table[k].task, table[k].nstep, worst,
           table[k].limit);
    assert_true(worst > 0 && worst < table[k].limit);
    rollouts_free(&cpu);
    rollouts_free(&device);
    scene_close(&x);
  }
  sn_backend_free(b);
  sn_oracle_needs_myosuite();
}

// Rollouts that are interrupted, abandoned, taken up again between those of another session.
static void slices(void **state) {
  (void)state;
  enum { STEPS = 60, COUNT = 9 };
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *b = open_library("emulator_double", 0, NULL);
  Rollouts want = rollouts_make(&x, STEPS, COUNT),
           r[2] = {rollouts_make(&x, STEPS, COUNT), rollouts_make(&x, STEPS, COUNT)};
  rollouts_noisy(&want);
  rollouts_run(&x, b, &want);
  SnBackendModel *d[2] = {scene_load(b, &x, STEPS), scene_load(b, &x, STEPS)};
  CountingClock count = {0};
  for (int k = 0; k < 2; ++k) rollouts_noisy(&r[k]);
  // No time at all: nothing is done.
  assert_false(rollouts_until(b, d[0], &r[0], &count, 0));
  for (int i = 0; i < COUNT; ++i) assert_int_equal(r[0].batch.done[i], 0);
  // A first slice is one step, which takes a second; then half of the time that is left.
  bool done[2] = {false, false};
  int calls = 0;
  for (; !done[0] || !done[1]; ++calls)
    for (int k = 0; k < 2; ++k)
      if (!done[k]) done[k] = rollouts_until(b, d[k], &r[k], &count, 4 + k);
  assert_true(calls > 3);
  for (int k = 0; k < 2; ++k) rollouts_equal(&want, &r[k]);
  // Another batch after one that was abandoned half way. (New sessions have not measured yet what a step takes.)
  for (int k = 0; k < 2; ++k) {
    sn_backend_unload(b, d[k]);
    d[k] = scene_load(b, &x, STEPS);
  }
  rollouts_clear(&r[0]);
  assert_false(rollouts_until(b, d[0], &r[0], &count, 4));
  sn_backend_abandon(b, d[0]);
  rollouts_clear(&r[0]);
  r[0].batch.first = 3;
  r[0].batch.count = 4;
  assert_true(sn_backend_rollouts(b, d[0], &r[0].batch, steady_clock(), INFINITY));
  assert_memory_equal(want.batch.cost + 3, r[0].batch.cost, 4 * sizeof(double));
  // A session goes while its batch is under way; the other is not touched.
  sn_backend_unload(b, d[0]);
  d[0] = scene_load(b, &x, STEPS);
  rollouts_clear(&r[0]);
  rollouts_clear(&r[1]);
  assert_false(rollouts_until(b, d[1], &r[1], &count, 4));
  assert_false(rollouts_until(b, d[0], &r[0], &count, 4));
  sn_backend_unload(b, d[0]);
  assert_true(sn_backend_rollouts(b, d[1], &r[1].batch, steady_clock(), INFINITY));
  rollouts_equal(&want, &r[1]);
  sn_backend_unload(b, d[1]);
  for (int k = 0; k < 2; ++k) rollouts_free(&r[k]);
  rollouts_free(&want);
  sn_backend_free(b);
  scene_close(&x);
}

// More candidates than the device runs at once: when time is up, the first of them are complete.
static void some_are_complete(void **state) {
  (void)state;
  enum { STEPS = 20, COUNT = 600 };
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *b = open_library("emulator_double", 0, NULL);
  Rollouts want = rollouts_make(&x, STEPS, COUNT), r = rollouts_make(&x, STEPS, COUNT);
  rollouts_noisy(&want);
  rollouts_noisy(&r);
  rollouts_run(&x, b, &want);
  SnBackendModel *d = scene_load(b, &x, STEPS);
  CountingClock count = {0};
  int before = 0, halts = 0;
  for (bool all = false; !all;) {
    all = rollouts_until(b, d, &r, &count, 5);
    int done = 0;
    while (done < COUNT && r.batch.done[done]) ++done;
    for (int i = done; i < COUNT; ++i) assert_int_equal(r.batch.done[i], 0);
    if (done > before && done < COUNT) ++halts;
    before = done;
  }
  assert_true(halts >= 2);
  rollouts_equal(&want, &r);
  sn_backend_unload(b, d);
  rollouts_free(&want);
  rollouts_free(&r);
  sn_backend_free(b);
  scene_close(&x);
}

// Contacts that do not fit are a status on both sides.
static void overflow_is_told(void **state) {
  (void)state;
  enum { STEPS = 5, COUNT = 2 };
  Scene x;
  scene_pile(&x);
  const SnModel *m = x.m;
  SnModel *narrow = sn_model_copy(m, NULL);
  SnBackend *b = open_library("emulator_double", 0, NULL);
  Rollouts cpu = rollouts_make(&x, STEPS, COUNT), device = rollouts_make(&x, STEPS, COUNT);
  for (int k = 0; k < 2; ++k) {
    rollouts_run(&x, x.cpu, &cpu);
    rollouts_run(&x, b, &device);
    rollouts_equal(&cpu, &device);
    for (int i = 0; i < COUNT; ++i) {
      assert_int_equal(cpu.batch.warn[i] & SN_WARN_CONTACT_FULL, k ? SN_WARN_CONTACT_FULL : 0);
      assert_int_equal(device.batch.warn[i], cpu.batch.warn[i]);
    }
    narrow->nconmax = 1;
    x.m = narrow;
  }
  rollouts_free(&cpu);
  rollouts_free(&device);
  sn_backend_free(b);
  sn_model_free(narrow);
  scene_close(&x);
}

// ---- several sessions of a model ----

enum { MOST_SESSIONS = 34, TOGETHER_STEPS = 40 };

// Sessions on a device, each with a batch of its own noise, size and horizon (the first has the longest), and what the
// CPU makes of it.
typedef struct Sessions {
  int n;
  SnBackend *b;
  SnBackendModel *d[MOST_SESSIONS];
  Rollouts r[MOST_SESSIONS], want[MOST_SESSIONS];
} Sessions;

static void sessions_load(Sessions *s, const Scene *x, int i) {
  SnError err = {0};
  s->d[i] = scene_load(s->b, x, s->r[i].batch.nstep);
  if (sn_backend_reserve_rollouts(s->b, s->d[i], s->r[i].batch.count, &err) != SN_OK) fail_msg("%s", err.text);
}

static Sessions *sessions_open(const Scene *x, SnBackend *b, int n, int count) {
  Sessions *s = calloc(1, sizeof *s);
  s->n = n;
  s->b = b;
  for (int i = 0; i < n; ++i) {
    const int nstep = TOGETHER_STEPS - 7 * i % TOGETHER_STEPS;
    Rollouts *const both[] = {&s->r[i], &s->want[i]};
    for (int k = 0; k < 2; ++k) {
      *both[k] = rollouts_make(x, nstep, count + i % 3);
      rollouts_noisy(both[k]);
      both[k]->noise.seed = (uint64_t)(11 + i);
    }
    rollouts_run(x, x->cpu, &s->want[i]);
    sessions_load(s, x, i);
  }
  return s;
}

// A batch may go when it has been submitted: each is a copy, overwritten at once.
static void sessions_submit(Sessions *s) {
  for (int i = 0; i < s->n; ++i) {
    SnBatch batch = s->r[i].batch;
    SnNoiseSettings noise = s->r[i].noise;
    SnState state = *batch.state;
    batch.state = &state;
    if (batch.noise) batch.noise = &noise;
    sn_backend_rollouts_submit(s->b, s->d[i], &batch);
    memset(&batch, 0x7f, sizeof batch);
    memset(&noise, 0x7f, sizeof noise);
    memset(&state, 0x7f, sizeof state);
  }
}

static bool sessions_run(Sessions *s, int i) {
  return sn_backend_rollouts(s->b, s->d[i], &s->r[i].batch, steady_clock(), INFINITY);
}

static bool sessions_lost(const Sessions *s) {
  char text[300];
  return sn_backend_lost(s->b, text, sizeof text);
}

static void sessions_close(Sessions *s) {
  for (int i = 0; i < s->n; ++i) {
    sn_backend_unload(s->b, s->d[i]);
    rollouts_free(&s->r[i]);
    rollouts_free(&s->want[i]);
  }
  sn_backend_free(s->b);
  free(s);
}

// Batches of n sessions take that many launches and not one more: the device is lost at the next one, of a session that
// was not submitted. `from`: the session that waits first.
static void take_launches(const Scene *x, int n, int count, int from, int launches) {
  char fault[40];
  snprintf(fault, sizeof fault, "launch:%d", launches + 1);
  Sessions *s = sessions_open(x, open_library("emulator_double", 0, fault), n, count);
  sessions_submit(s);
  sessions_submit(s);  // any number of times
  for (int k = 0; k < n; ++k) {
    const int i = (from + k) % n;
    assert_true(sessions_run(s, i));
    rollouts_equal(&s->want[i], &s->r[i]);
    assert_memory_equal(s->want[i].batch.warn, s->r[i].batch.warn, sizeof(int) * (size_t)s->r[i].batch.count);
  }
  assert_false(sessions_lost(s));
  assert_false(sessions_run(s, 0));
  assert_true(sessions_lost(s));
  sessions_close(s);
}

static void sessions_share_launches(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  take_launches(&x, 1, 6, 0, 1);
  take_launches(&x, 2, 6, 0, 1);
  take_launches(&x, 8, 6, 0, 1);
  take_launches(&x, 2, 6, 1, 2);   // the short one waits first: the long one goes on alone
  take_launches(&x, 34, 2, 0, 3);  // more than one launch takes
  take_launches(&x, 2, 50, 0, 2);  // more than the device runs at once
  take_launches(&x, 3, 30, 0, 2);  // of three such two
  scene_close(&x);
  if (!scene_open(&x, "hand_pose")) skip();
  take_launches(&x, 3, 2, 0, 1);
  scene_close(&x);
}

// Slices of time, turn by turn: those that do not wait go on, too, and each has what it has alone. One batch is
// abandoned on the way and begun anew, one session goes.
static void sessions_in_slices(void **state) {
  (void)state;
  enum { N = 4 };
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  Sessions *s = sessions_open(&x, open_library("emulator_double", 0, NULL), N, 6);
  CountingClock count = {0};
  bool done[N] = {false};
  sessions_submit(s);
  int calls = 0;
  for (; !(done[0] && done[1] && done[2] && done[3]); ++calls) {
    assert_true(calls < 200);
    const int i = calls % N;
    if (!done[i]) done[i] = rollouts_until(s->b, s->d[i], &s->r[i], &count, 4);
    if (calls == 2) {
      sn_backend_abandon(s->b, s->d[1]);
      rollouts_clear(&s->r[1]);
      sn_backend_rollouts_submit(s->b, s->d[1], &s->r[1].batch);
    }
    if (calls == 3) {
      assert_false(done[3]);
      sn_backend_unload(s->b, s->d[3]);
      sessions_load(s, &x, 3);
    }
  }
  printf("%d sessions of up to %d steps in %d slices\n", N, TOGETHER_STEPS, calls);
  for (int i = 0; i < N; ++i) rollouts_equal(&s->want[i], &s->r[i]);
  // Submitted and never asked for: the next batch is another.
  sn_backend_rollouts_submit(s->b, s->d[0], &s->r[0].batch);
  assert_true(sessions_run(s, 1));
  sn_backend_abandon(s->b, s->d[0]);
  rollouts_clear(&s->r[0]);
  s->r[0].batch.first = 3;
  s->r[0].batch.count = 2;
  sn_backend_rollouts_submit(s->b, s->d[0], &s->r[0].batch);
  assert_true(sessions_run(s, 1));
  assert_true(sessions_run(s, 0));
  assert_memory_equal(s->want[0].batch.cost + 3, s->r[0].batch.cost, 2 * sizeof(double));
  // Nothing to be done is no launch.
  s->r[0].batch.count = 0;
  sn_backend_rollouts_submit(s->b, s->d[0], &s->r[0].batch);
  assert_true(sessions_run(s, 0));
  sessions_close(s);
  scene_close(&x);
}

// The device is lost at launch n, for all n until there is none left: who was not complete gets nothing.
static void sessions_lose_the_device(void **state) {
  (void)state;
  enum { N = 3 };
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  int n = 0, losses = 0;
  for (bool through = false; !through;) {
    char fault[40];
    snprintf(fault, sizeof fault, "launch:%d", ++n);
    assert_true(n < 100);
    Sessions *s = sessions_open(&x, open_library("emulator_double", 0, fault), N, 6);
    CountingClock count = {0};
    bool done[N] = {false};
    sessions_submit(s);
    for (int k = 0; k < 100 * N && !sessions_lost(s); ++k)
      if (!done[k % N]) done[k % N] = rollouts_until(s->b, s->d[k % N], &s->r[k % N], &count, 6);
    through = done[0] && done[1] && done[2];
    assert_true(through != sessions_lost(s));
    for (int i = 0; i < N; ++i) {
      if (done[i]) rollouts_equal(&s->want[i], &s->r[i]);
      for (int c = 0; c < s->r[i].batch.count; ++c) assert_int_equal(s->r[i].batch.done[c], done[i]);
      if (!done[i]) sn_backend_rollouts_submit(s->b, s->d[i], &s->r[i].batch);
      assert_true(done[i] || !sessions_run(s, i));
      losses += !done[i];
    }
    sessions_close(s);
  }
  assert_true(n > 5 && losses > 5);
  scene_close(&x);
}

// Where the budget has no room for blocks of two sessions at once, they follow one another.
static void sessions_without_capacity(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  Sessions *s = sessions_open(&x, open_library("emulator_double", 0, NULL), 2, 30);
  const size_t used = memory_used(s->b);
  sessions_close(s);
  s = sessions_open(&x, open_library("emulator_double", (double)used - 64, "launch:3"), 2, 30);
  assert_true(memory_used(s->b) < used);
  sessions_submit(s);
  for (int i = 0; i < 2; ++i) {
    assert_true(sessions_run(s, i));
    rollouts_equal(&s->want[i], &s->r[i]);
  }
  assert_false(sessions_run(s, 0));
  assert_true(sessions_lost(s));
  sessions_close(s);
  scene_close(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arm_same_as_cpu),          cmocka_unit_test(hand_same_as_cpu),
      cmocka_unit_test(shapes_do_not_matter),     cmocka_unit_test(plans_are_the_same),
      cmocka_unit_test(floats_are_near),          cmocka_unit_test(slices),
      cmocka_unit_test(some_are_complete),        cmocka_unit_test(overflow_is_told),
      cmocka_unit_test(sessions_share_launches),  cmocka_unit_test(sessions_in_slices),
      cmocka_unit_test(sessions_lose_the_device), cmocka_unit_test(sessions_without_capacity)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
