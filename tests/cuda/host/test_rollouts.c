// Rollouts of a backend in a library, on the emulator, against those of the CPU, beside what holds of all jobs
// (test_job*.c): more candidates than run at once; several sessions in one launch.
#include "tests/cuda/plugin_fixture.h"

// More candidates of a planner's than the device runs at once by warps, which they have however many they are: when
// time is up, the first of them are complete.
static void some_are_complete(void **state) {
  const Scene *x = *state;
  enum { STEPS = 20, COUNT = 600 };
  SnBackend *b = open_library("emulator_double", 0, NULL);
  Rollouts want = rollouts_make(x, STEPS, COUNT, true), r = rollouts_make(x, STEPS, COUNT, true);
  rollouts_run(x, x->cpu, &want);
  SnBackendModel *d = scene_load(b, x, STEPS);
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

static Sessions *sessions_open(const Scene *x, SnBackend *b, int n, int count) {
  Sessions *s = calloc(1, sizeof *s);
  s->n = n;
  s->b = b;
  for (int i = 0; i < n; ++i) {
    const int nstep = TOGETHER_STEPS - 7 * i % TOGETHER_STEPS;
    Rollouts *const both[] = {&s->r[i], &s->want[i]};
    for (int k = 0; k < 2; ++k) {
      *both[k] = rollouts_make(x, nstep, count + i % 3, true);
      both[k]->noise->seed = (uint64_t)(11 + i);
    }
    rollouts_run(x, x->cpu, &s->want[i]);
    s->d[i] = scene_load(b, x, nstep);
    assert_int_equal(sn_backend_reserve_rollouts(b, s->d[i], s->r[i].batch.count, NULL), SN_OK);
  }
  return s;
}

// A batch may go when it has been submitted: each is a copy, overwritten at once.
static void sessions_submit(Sessions *s) {
  for (int i = 0; i < s->n; ++i) {
    SnBatch batch = s->r[i].batch;
    SnNoiseSettings noise = *s->r[i].noise;
    SnState state = *batch.state;
    batch.state = &state;
    batch.noise = &noise;
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
// was not submitted; nothing to be done is none. `from`: the session that waits first.
static void take_launches(const Scene *x, int n, int count, int from, int launches) {
  char fault[60];
  // Sixteen of a multiprocessor: 64 run at once. (The part tsan runs this: several threads run blocks.)
  snprintf(fault, sizeof fault, "resident:16,blocks:3,launch:%d", launches + 1);
  Sessions *s = sessions_open(x, open_library("emulator_double", 0, fault), n, count);
  sessions_submit(s);
  sessions_submit(s);  // any number of times
  for (int k = 0; k < n; ++k) {
    const int i = (from + k) % n;
    assert_true(sessions_run(s, i));
    rollouts_equal(&s->want[i], &s->r[i]);
    assert_memory_equal(s->want[i].batch.warn, s->r[i].batch.warn, sizeof(int) * (size_t)s->r[i].batch.count);
  }
  SnBatch none = s->r[0].batch;
  none.count = 0;
  sn_backend_rollouts_submit(s->b, s->d[0], &none);
  assert_true(sn_backend_rollouts(s->b, s->d[0], &none, steady_clock(), INFINITY));
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

// Where the budget has no room for blocks of two sessions at once, they follow one another.
static void sessions_without_capacity(void **state) {
  const Scene *x = *state;
  Sessions *s = sessions_open(x, open_library("emulator_double", 0, NULL), 2, 30);
  const size_t used = memory_used(s->b);
  sessions_close(s);
  s = sessions_open(x, open_library("emulator_double", (double)used - 64, "launch:3"), 2, 30);
  assert_true(memory_used(s->b) < used);
  sessions_submit(s);
  for (int i = 0; i < 2; ++i) {
    assert_true(sessions_run(s, i));
    rollouts_equal(&s->want[i], &s->r[i]);
  }
  assert_false(sessions_run(s, 0));
  assert_true(sessions_lost(s));
  sessions_close(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(some_are_complete), cmocka_unit_test(sessions_share_launches),
                                     cmocka_unit_test(sessions_without_capacity)};
  return cmocka_run_group_tests(tests, open_arm, close_arm);
}
