// Rollouts of a backend in a library, on the emulator, against those of the CPU, beside what holds of all jobs
// (test_jobs.c): by a table in float; more candidates than run at once; several sessions in one launch.
#include "clients/base/statistics.h"
#include "tests/cuda/plugin_fixture.h"

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

// More candidates of a planner's than the device runs at once by warps, which they have however many they are: when
// time is up, the first of them are complete.
static void some_are_complete(void **state) {
  (void)state;
  enum { STEPS = 20, COUNT = 600 };
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *b = open_library("emulator_double", 0, NULL);
  Rollouts want = rollouts_make(&x, STEPS, COUNT), r = rollouts_make(&x, STEPS, COUNT);
  rollouts_noisy(&want);
  rollouts_noisy(&r);
  rollouts_run(&x, x.cpu, &want);
  SnBackendModel *d = scene_load(b, &x, STEPS);
  CountingClock count = {0};
  int before = 0, halts = 0;
  for (bool all = false; !all;) {
    all = rollouts_until(b, d, &r, &count, 5);
    int done = 0;
    while (done < COUNT && r.batch.done[done]) ++done;
    for (int i = done; i < COUNT; ++i) assert_int_equal(r.batch.done[i], 0);
    if (done > before && before == 0) assert_int_equal(done, 128);
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
  snprintf(fault, sizeof fault, "resident:16,launch:%d", launches + 1);  // of a multiprocessor: 64 run at once
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
// abandoned on the way and begun anew, one session goes. (The part tsan runs this: several threads run blocks.)
static void sessions_in_slices(void **state) {
  (void)state;
  enum { N = 4 };
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  Sessions *s = sessions_open(&x, open_library("emulator_double", 0, "blocks:3"), N, 6);
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
      cmocka_unit_test(floats_are_near),          cmocka_unit_test(some_are_complete),
      cmocka_unit_test(sessions_share_launches),  cmocka_unit_test(sessions_in_slices),
      cmocka_unit_test(sessions_lose_the_device), cmocka_unit_test(sessions_without_capacity)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
