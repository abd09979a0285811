// Batches whose candidates differ in state, controls and targets and give all their states, on the emulator, beside
// what holds of all jobs (test_jobs.c): what they share and leave out, in one launch with those of another session,
// where there is no room for them.
#include "tests/cuda/host/job_fixture.h"
#include "tests/planner/sensing_body.h"

// Computes both batches, on the CPU and on the device. They have the same bits, and no two candidates the same states.
static void expect_same(const Scene *x, SnBackend *b, Job *want, Job *got) {
  job_alone(x->cpu, x, want);
  job_alone(b, x, got);
  job_same(want, got);
  for (int k = 0; k < JOB_ITEMS; ++k) assert_int_equal(got->done[k], 1);
}

// All of their own; one state, one base, one table of targets for all; without noise; from the fourth candidate on;
// without a cost.
static void same_as_cpu(void **state) {
  (void)state;
  Scene x, bare;
  scene_parse(&x, sensing_xml, sensing_task);
  bare = x;
  bare.cost = NULL;
  SnBackend *b = open_library("emulator_double", 0, "blocks:2");
  assert_true(sn_backend_has(b, SN_BACKEND_BATCHES));
  for (int variant = 0; variant < 7; ++variant) {
    Job *both[] = {job_make(&x, JOB_BATCH, false), job_make(&x, JOB_BATCH, false)}, *got = both[1];
    for (int i = 0; i < 2; ++i) {
      SnBatch *batch = &both[i]->batch;
      if (variant == 1) batch->nstate = 1;
      if (variant == 2) batch->nctrl = 1;
      if (variant == 3) batch->ntable = 1;
      if (variant == 4) batch->noise = NULL;
      if (variant == 5) batch->first = 3;
      if (variant == 6) batch->target = NULL, batch->ntable = 1;
    }
    expect_same(variant == 6 ? &bare : &x, b, both[0], got);
    assert_true(variant == 6 ? got->batch.cost[0] == 0 : got->batch.cost[0] > 0);
    for (int i = 1; i < JOB_ITEMS; ++i) assert_memory_not_equal(got->out[i].qvel, got->out[0].qvel, 200);
    job_free(both[0]);
    job_free(got);
  }
  sn_backend_free(b);
  scene_close(&x);
}

// Arrays that nobody wants are left out; without any there are costs and steps.
static void few_outputs(void **state) {
  (void)state;
  Scene x;
  scene_parse(&x, sensing_xml, sensing_task);
  SnBackend *b = open_library("emulator_double", 0, NULL);
  for (int none = 0; none < 2; ++none) {
    Job *both[] = {job_make(&x, JOB_BATCH, false), job_make(&x, JOB_BATCH, false)};
    for (int i = 0; i < 2; ++i) {
      for (int k = 0; k < JOB_ITEMS; ++k) {
        const SnTrajectory all = both[i]->out[k];
        both[i]->out[k] = (SnTrajectory){.time = k == 2 ? all.time : NULL, .sensordata = k % 2 ? all.sensordata : NULL};
      }
      if (none) both[i]->batch.out = NULL;
      both[i]->batch.term = NULL;
      both[i]->batch.warn = NULL;
    }
    expect_same(&x, b, both[0], both[1]);
    assert_int_equal(both[1]->steps[0], JOB_STEPS);
    job_free(both[0]);
    job_free(both[1]);
  }
  sn_backend_free(b);
  scene_close(&x);
}

// A batch of its own and one of a planner's, submitted in two sessions of a model: they go on in the same launches, in
// slices of time.
static void together_in_slices(void **state) {
  (void)state;
  static const JobKind kinds[] = {JOB_BATCH, JOB_ROLLOUTS};
  Scene x;
  scene_parse(&x, sensing_xml, sensing_task);
  SnBackend *b = open_library("emulator_double", 0, NULL);
  Job *want[2], *got[2];
  SnBackendModel *d[2];
  for (int k = 0; k < 2; ++k) {
    want[k] = job_make(&x, kinds[k], false);
    got[k] = job_make(&x, kinds[k], false);
    job_alone(x.cpu, &x, want[k]);
    job_clear(got[k]);
    d[k] = job_load(b, &x, kinds[k]);
  }
  CountingClock count = {0};
  for (int k = 0; k < 2; ++k) sn_backend_rollouts_submit(b, d[k], &got[k]->batch);
  bool done[2] = {false, false};
  int calls = 0;
  for (; !done[0] || !done[1]; ++calls)
    for (int k = 0; k < 2; ++k)
      if (!done[k]) done[k] = job_slice(b, d[k], got[k], &count);
  assert_true(calls > 2);
  for (int k = 0; k < 2; ++k) {
    job_same(want[k], got[k]);
    sn_backend_unload(b, d[k]);
    job_free(want[k]);
    job_free(got[k]);
  }
  sn_backend_free(b);
  scene_close(&x);
}

// Too little room: told, and nothing else happens. A batch for which there is no room is not computed; others are.
static void no_room(void **state) {
  (void)state;
  Scene x;
  SnError err = {0};
  char text[256];
  scene_parse(&x, sensing_xml, sensing_task);
  SnBackend *b = open_library("emulator_double", 0, NULL);
  SnBackendModel *d = scene_load(b, &x, JOB_MOST);
  const size_t small = memory_used(b);
  sn_backend_unload(b, d);
  sn_backend_free(b);
  b = open_library("emulator_double", (double)small + 1000, NULL);
  d = scene_load(b, &x, JOB_MOST);
  assert_int_equal(sn_backend_reserve_batches(b, d, JOB_ITEMS, &err), SN_ERR_LIMIT);
  printf("%s\n", err.text);
  assert_non_null(strstr(err.text, " rollouts with all states at once, the budget is "));
  assert_int_equal(memory_used(b), small);
  Job *want = job_make(&x, JOB_BATCH, false), *got = job_make(&x, JOB_BATCH, false);
  job_alone(x.cpu, &x, want);
  job_clear(got);
  assert_false(job_until(b, d, got, steady_clock(), (double)INFINITY));
  for (int i = 0; i < JOB_ITEMS; ++i) assert_int_equal(got->done[i], 0);
  assert_false(sn_backend_lost(b, text, sizeof text));
  sn_backend_abandon(b, d);
  got->batch.nstate = got->batch.nctrl = got->batch.ntable = 1;
  got->batch.out = NULL;
  assert_true(job_until(b, d, got, steady_clock(), (double)INFINITY));
  assert_true(got->done[JOB_ITEMS - 1] && got->batch.cost[0] == want->batch.cost[0]);
  sn_backend_unload(b, d);
  sn_backend_free(b);
  job_free(want);
  job_free(got);
  scene_close(&x);
}

enum { MANY = 7 };

// Holds a job whose batch has more candidates, all of them of their own.
typedef struct Many {
  Job *j;
  SnState state[MANY];
  SnTrajectory out[MANY];
  unsigned char done[MANY];
  int warn[MANY], steps[MANY];
} Many;

static Many *many_make(const Scene *x) {
  Many *y = calloc(1, sizeof *y);
  Job *j = y->j = job_make(x, JOB_BATCH, false);
  SnBatch *b = &j->batch;
  for (int i = 0; i < MANY; ++i) {
    y->state[i] = j->state[0];
    y->state[i].qvel = job_near(j, j->state[0].qvel, (size_t)x->m->nv, 0.1, i);
    job_trajectory(j, &y->out[i], JOB_STEPS);
  }
  b->state = y->state;
  b->nstate = b->nctrl = b->ntable = b->count = MANY;  // controls and targets: those of longer rollouts, cut anew
  b->target = job_near(j, j->target, (size_t)(MANY * (JOB_STEPS + 1) * x->cost->ntarget), 0.1, 0);
  b->cost = job_out(j, MANY);
  b->term = job_out(j, MANY * (size_t)x->cost->nterm);
  b->done = y->done;
  b->warn = y->warn;
  b->steps = y->steps;
  b->out = y->out;
  y->out[0].time = NULL;
  return y;
}

static void many_free(Many *y) {
  job_free(y->j);
  free(y);
}

// A batch larger than what the budget has room for runs in groups: inputs and results of the second are its own.
static void groups(void **state) {
  (void)state;
  static const char one_block_each[] = "resident:1";  // a multiprocessor: four run at once
  Scene x;
  scene_parse(&x, sensing_xml, sensing_task);
  Many *want = many_make(&x), *got = many_make(&x);
  SnBackend *b = open_library("emulator_double", 0, one_block_each);
  SnBackendModel *d = job_load(b, &x, JOB_BATCH);
  const size_t part = memory_used(b);
  assert_int_equal(sn_backend_reserve_batches(b, d, MANY, NULL), SN_OK);
  assert_true(memory_used(b) > part);
  sn_backend_unload(b, d);
  sn_backend_free(b);
  b = open_library("emulator_double", (double)part, one_block_each);
  job_alone(x.cpu, &x, want->j);
  job_alone(b, &x, got->j);
  job_same(want->j, got->j);
  assert_memory_equal(want->steps, got->steps, sizeof got->steps);
  assert_memory_equal(want->warn, got->warn, sizeof got->warn);
  for (int i = 0; i < MANY; ++i) assert_int_equal(got->done[i], 1);
  sn_backend_free(b);
  many_free(want);
  many_free(got);
  scene_close(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_cpu), cmocka_unit_test(few_outputs),
                                     cmocka_unit_test(together_in_slices), cmocka_unit_test(no_room),
                                     cmocka_unit_test(groups)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
