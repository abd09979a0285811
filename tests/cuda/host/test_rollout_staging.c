// Batches whose candidates differ in state, controls and targets and give all their states, on the emulator, beside
// what holds of all jobs (test_job*.c): what they share and leave out.
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_cpu), cmocka_unit_test(few_outputs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
