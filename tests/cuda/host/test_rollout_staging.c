// Batches whose candidates differ in state, controls and targets and give all their states, on the emulator, beside
// what holds of all jobs (test_jobs.c): what they share and leave out, in groups, in one launch with those of other
// sessions.
#include "tests/cuda/batch_fixture.h"

enum { COUNT = 9 };

static SnNoiseSettings some_noise(void) {
  return (SnNoiseSettings){.seed = 5,
                           .spacing = 6,
                           .knots = sn_noise_knots(SENSING_STEPS, 6, 0),
                           .interpolation = SN_SPLINE_LINEAR,
                           .colour = SN_NOISE_PINK,
                           .scale = SN_R(0.3)};
}

// All of their own; one state, one base, one table of targets for all; noise on each one's base, and from the fourth
// candidate on; without a cost.
static void same_as_cpu(void **state) {
  (void)state;
  Many *x = many_open(COUNT);
  Written *cpu = written_make(x), *device = written_make(x);
  SnBackend *b = open_library("emulator_double", 0, "blocks:2");
  const SnNoiseSettings noise = some_noise();
  assert_true(sn_backend_has(b, SN_BACKEND_BATCHES));
  for (int k = 0; k < 7; ++k) {
    for (int on_device = 0; on_device < 2; ++on_device) {
      Written *w = on_device ? device : cpu;
      SnBatch batch = many_batch(x, w, k != 6);
      if (k == 1) batch.nstate = 1;
      if (k == 2) batch.nctrl = 1;
      if (k == 3) batch.ntable = 1;
      if (k >= 4) batch.noise = &noise;
      if (k == 5) batch.first = 3;
      many_run(x, on_device ? b : x->cpu, &batch, w);
    }
    written_same(cpu, device, COUNT);
    assert_true(k == 6 ? device->cost[0] == 0 : device->cost[0] > 0);
    for (int i = 1; i < COUNT; ++i) assert_memory_not_equal(device->out[i].qvel, device->out[0].qvel, 200);
  }
  sn_backend_free(b);
  written_free(cpu);
  written_free(device);
  many_close(x);
}

// Arrays that nobody wants are left out; without any there are costs and steps.
static void few_outputs(void **state) {
  (void)state;
  Many *x = many_open(COUNT);
  Written *cpu = written_make(x), *device = written_make(x);
  SnBackend *b = open_library("emulator_double", 0, NULL);
  for (int k = 0; k < 2; ++k) {
    for (int on_device = 0; on_device < 2; ++on_device) {
      Written *w = on_device ? device : cpu;
      SnBatch batch = many_batch(x, w, true);
      SnTrajectory out[COUNT] = {{0}};
      for (int i = 1; i < COUNT; i += 2) out[i] = (SnTrajectory){.sensordata = w->out[i].sensordata};
      out[4].time = w->out[4].time;
      batch.out = k ? NULL : out;
      batch.term = NULL;
      batch.warn = NULL;
      many_run(x, on_device ? b : x->cpu, &batch, w);
    }
    written_same(cpu, device, COUNT);
    assert_int_equal(device->steps[0], SENSING_STEPS);
  }
  sn_backend_free(b);
  written_free(cpu);
  written_free(device);
  many_close(x);
}

// A batch of its own and one of a planner's, submitted in two sessions of a model: they go on in the same launches, in
// slices of time.
static void together_in_slices(void **state) {
  (void)state;
  Many *x = many_open(COUNT);
  Written *want[2] = {written_make(x), written_make(x)}, *got[2] = {written_make(x), written_make(x)};
  SnBackend *b = open_library("emulator_double", 0, NULL);
  const SnNoiseSettings noise = some_noise();
  SnBackendModel *d[2];
  SnBatch batch[2];
  for (int k = 0; k < 2; ++k) {
    batch[k] = many_batch(x, want[k], true);
    if (k == 1) batch[k].nstate = batch[k].nctrl = batch[k].ntable = 1;
    if (k == 1) batch[k].noise = &noise, batch[k].out = NULL;
    many_run(x, x->cpu, &batch[k], want[k]);
    SnBatch to = many_batch(x, got[k], true);
    written_clear(got[k], COUNT);
    batch[k].cost = to.cost, batch[k].term = to.term, batch[k].done = to.done;
    batch[k].warn = to.warn, batch[k].steps = to.steps;
    if (batch[k].out) batch[k].out = to.out;
    d[k] = many_load(x, b, true);
    assert_int_equal(sn_backend_reserve_rollouts(b, d[k], COUNT, NULL), SN_OK);
    assert_int_equal(sn_backend_reserve_batches(b, d[k], COUNT, NULL), SN_OK);
  }
  CountingClock count = {0};
  const SnClock clock = counting_clock(&count);
  for (int k = 0; k < 2; ++k) sn_backend_rollouts_submit(b, d[k], &batch[k]);
  bool done[2] = {false, false};
  int calls = 0;
  for (; !done[0] || !done[1]; ++calls)
    for (int k = 0; k < 2; ++k)
      if (!done[k]) done[k] = sn_backend_rollouts(b, d[k], &batch[k], &clock, (double)atomic_load(&count.reads) + 4);
  assert_true(calls > 2);
  for (int k = 0; k < 2; ++k) written_same(want[k], got[k], COUNT);
  for (int k = 0; k < 2; ++k) {
    sn_backend_unload(b, d[k]);
    written_free(want[k]);
    written_free(got[k]);
  }
  sn_backend_free(b);
  many_close(x);
}

// Room comes first; then nothing is taken, however often a batch is computed.
static void memory_is_reserved(void **state) {
  (void)state;
  Many *x = many_open(COUNT);
  Written *want = written_make(x), *got = written_make(x);
  SnBackend *b = open_library("emulator_double", 0, NULL);
  SnError err = {0};
  SnBatch batch = many_batch(x, want, true);
  many_run(x, x->cpu, &batch, want);
  batch = many_batch(x, got, true);
  SnBackendModel *d = many_load(x, b, true);
  const size_t small = memory_used(b);
  assert_int_equal(sn_backend_reserve_batches(b, d, COUNT, &err), SN_OK);
  const size_t room = memory_used(b);
  assert_true(room > small + 8 * (size_t)(COUNT * got->size));
  for (int k = 0; k < 3; ++k) {
    written_clear(got, COUNT);
    assert_true(sn_backend_rollouts(b, d, &batch, steady_clock(), INFINITY));
    written_same(want, got, COUNT);
    assert_int_equal(memory_used(b), room);
  }
  sn_backend_unload(b, d);
  sn_backend_free(b);

  // Too little: told, and nothing else happens. A batch for which there is no room is not computed; others are.
  b = open_library("emulator_double", (double)small + 1000, NULL);
  d = many_load(x, b, true);
  assert_int_equal(sn_backend_reserve_batches(b, d, COUNT, &err), SN_ERR_LIMIT);
  printf("%s\n", err.text);
  assert_non_null(strstr(err.text, " rollouts with all states at once, the budget is "));
  assert_int_equal(memory_used(b), small);
  written_clear(got, COUNT);
  assert_false(sn_backend_rollouts(b, d, &batch, steady_clock(), INFINITY));
  for (int i = 0; i < COUNT; ++i) assert_int_equal(got->done[i], 0);
  char text[256];
  assert_false(sn_backend_lost(b, text, sizeof text));
  sn_backend_abandon(b, d);
  batch.nstate = batch.nctrl = batch.ntable = 1;
  batch.out = NULL;
  assert_true(sn_backend_rollouts(b, d, &batch, steady_clock(), INFINITY));
  assert_true(got->done[COUNT - 1] && got->cost[COUNT - 1] == want->cost[0]);
  sn_backend_unload(b, d);
  sn_backend_free(b);
  written_free(want);
  written_free(got);
  many_close(x);
}

// A batch larger than what the budget has room for runs in groups.
static void groups(void **state) {
  (void)state;
  enum { ALL = MANY_MOST };
  Many *x = many_open(ALL);
  Written *want = written_make(x), *got = written_make(x);
  SnBatch batch = many_batch(x, want, true);
  many_run(x, x->cpu, &batch, want);
  batch = many_batch(x, got, true);
  // One block a multiprocessor: four run at once.
  const char *fault = "shared:12000";
  SnBackend *b = open_library("emulator_double", 0, fault);
  SnBackendModel *d = many_load(x, b, true);
  assert_int_equal(sn_backend_reserve_batches(b, d, 2 * ALL / 3, NULL), SN_OK);
  const size_t part = memory_used(b);
  assert_int_equal(sn_backend_reserve_batches(b, d, ALL, NULL), SN_OK);
  assert_true(memory_used(b) > part);
  sn_backend_unload(b, d);
  sn_backend_free(b);
  b = open_library("emulator_double", (double)part, fault);
  d = many_load(x, b, true);
  assert_int_equal(sn_backend_reserve_batches(b, d, ALL, NULL), SN_OK);
  assert_true(memory_used(b) <= part);
  written_clear(got, ALL);
  assert_true(sn_backend_rollouts(b, d, &batch, steady_clock(), INFINITY));
  written_same(want, got, ALL);
  sn_backend_unload(b, d);
  sn_backend_free(b);
  written_free(want);
  written_free(got);
  many_close(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(same_as_cpu),        cmocka_unit_test(few_outputs), cmocka_unit_test(together_in_slices),
      cmocka_unit_test(memory_is_reserved), cmocka_unit_test(groups),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
