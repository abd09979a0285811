// Gradients on a device, the host in its place, beside what holds of all jobs (test_jobs.c): derivatives that leave the
// range of numbers, items that are not pending, and what one launch of products leaves for the next.
#include "tests/cuda/host/job_fixture.h"

// Weights far beyond what may be set: a derivative that leaves the range of numbers is 0, its cost stays; by either
// method. An item that is not pending stays as it is, and others do not notice.
static void unbounded(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  const int term = sn_cost_find(x.cost, "speed");
  x.cost->weight[term] = 0;
  x.cost->terminal[term] = 5e307;
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  for (JobKind kind = JOB_SWEEP; kind <= JOB_PRODUCTS; ++kind) {
    Job *want = job_make(&x, kind, false), *got = job_make(&x, kind, false);
    SnBackendModel *d = job_load(dev, &x, kind);
    job_alone(x.cpu, &x, want);
    job_run(dev, d, got);
    assert_int_equal(want->item[1].status, SN_GRADIENT_UNBOUNDED);
    assert_true(isfinite(want->item[1].cost) && want->item[1].norm == 0);
    job_same(want, got);
    job_clear(got);
    got->item[2].status = SN_GRADIENT_ROLLED + 40;
    assert_true(job_until(dev, d, got, steady_clock(), (double)INFINITY));
    assert_int_equal(got->item[2].status, SN_GRADIENT_ROLLED + 40);
    assert_true(isnan(got->item[2].cost) && got->item[2].term[0] != want->item[2].term[0]);
    assert_memory_equal(got->item[3].term, want->item[3].term, sizeof(double) * (size_t)x.cost->nterm);
    assert_memory_equal(got->item[3].ctrl_bar, want->item[3].ctrl_bar, sizeof(double) * (size_t)x.m->nu);
    sn_backend_unload(dev, d);
    job_free(want);
    job_free(got);
  }
  sn_backend_free(dev);
  scene_close(&x);
}

// Nothing of a launch gets into the next: a long rollout with derivatives beyond numbers, then shorter ones, whose
// places beyond their ends lie where those were.
static void products_after_unbounded(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  const int term = sn_cost_find(x.cost, "speed");
  const double weight = x.cost->terminal[term];
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  Job *want = job_make(&x, JOB_PRODUCTS, false), *got = job_make(&x, JOB_PRODUCTS, false);
  SnBackendModel *d = job_load(dev, &x, JOB_PRODUCTS);
  job_alone(dev, &x, want);
  for (int place = 0; place < JOB_ITEMS; ++place) {
    const SnGradient longest = got->item[1], other = got->item[place];
    x.cost->terminal[term] = 5e307;
    got->item[1] = other;
    got->item[place] = longest;
    job_run(dev, d, got);
    assert_int_equal(got->item[place].status, SN_GRADIENT_UNBOUNDED);
    x.cost->terminal[term] = weight;
    got->item[place] = other;
    got->item[1] = longest;
    job_run(dev, d, got);
    job_same(want, got);
  }
  sn_backend_unload(dev, d);
  sn_backend_free(dev);
  job_free(want);
  job_free(got);
  scene_close(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(unbounded), cmocka_unit_test(products_after_unbounded)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
