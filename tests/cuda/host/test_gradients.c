// Gradients on a device, the host in its place, beside what holds of all jobs (test_job*.c): a part of a caller's cost,
// derivatives that leave the range of numbers, items that are not pending.
#include "tests/cuda/host/job_fixture.h"
#include "tests/planner/sensing_body.h"

// Leaves one part of the bars (5: none), and `part` times the session's cost.
static void leave_part(Job *j, int part) {
  for (int k = 0; k < JOB_ITEMS; ++k) {
    SnTrajectoryBar *bar = &j->bar[k];
    const SnTrajectoryBar all = *bar;
    *bar = (SnTrajectoryBar){.cost = part};
    if (part == 0) bar->qpos = all.qpos;
    if (part == 1) bar->qvel = all.qvel;
    if (part == 2) bar->act = all.act;
    if (part == 3) bar->sensordata = all.sensordata;
    if (part == 4) bar->ctrl = all.ctrl;
  }
}

// Each part of a caller's cost alone, with a cost of the session or without one, in one call or in two.
static void parts(void **state) {
  (void)state;
  Scene x;
  scene_parse(&x, sensing_xml, sensing_task);
  SnBackend *dev = open_library("emulator_double", 0, "blocks:2");
  for (JobKind kind = JOB_BARS; kind <= JOB_TWO_CALLS; ++kind)
    for (int variant = 0; variant < 4 * 6; ++variant) {
      const int part = variant / 4;
      const bool with_cost = variant % 2;
      Job *both[2];
      Scene with = x;
      if (!with_cost) with.cost = NULL;
      for (int i = 0; i < 2; ++i) {
        Job *j = both[i] = job_make(&x, kind, false);
        j->gradients.settings.method = variant % 4 < 2 ? SN_GRADIENT_SWEEP : SN_GRADIENT_PRODUCTS;
        for (int k = 0; k < JOB_ITEMS && !with_cost; ++k) j->item[k].target = NULL, j->item[k].target_bar = NULL;
        leave_part(j, part);
        job_alone(i ? dev : x.cpu, &with, j);
      }
      job_same(both[0], both[1]);
      for (int k = 0; k < JOB_ITEMS; ++k)
        assert_true(both[1]->item[k].status == SN_GRADIENT_DONE && (both[1]->item[k].norm > 0 || part == 5));
      for (int i = 0; i < 2; ++i) job_free(both[i]);
    }
  sn_backend_free(dev);
  scene_close(&x);
}

static void swap_items(Job *j, int a, int b) {
  const SnGradient first = j->item[a];
  j->item[a] = j->item[b];
  j->item[b] = first;
}

// Weights far beyond what may be set: a derivative that leaves the range of numbers is 0, its cost stays. Nothing of
// that gets into the next launch, of shorter rollouts, whose places beyond their ends lie where the longest had its.
static void unbounded(void **state) {
  const Scene *x = *state;
  double *const weight = &x->cost->terminal[sn_cost_find(x->cost, "speed")], usual = *weight;
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  for (JobKind kind = JOB_SWEEP; kind <= JOB_PRODUCTS; ++kind) {
    Job *want = job_make(x, kind, false), *got = job_make(x, kind, false), *huge = job_make(x, kind, false);
    SnBackendModel *d = job_load(dev, x, kind);
    job_alone(x->cpu, x, want);
    for (int place = 0; place < JOB_ITEMS; ++place) {
      swap_items(got, place, 1);
      swap_items(huge, place, 1);
      *weight = 5e307;
      job_alone(x->cpu, x, huge);
      job_run(dev, d, got);
      *weight = usual;
      assert_int_equal(got->item[place].status, SN_GRADIENT_UNBOUNDED);
      assert_true(isfinite(got->item[place].cost) && got->item[place].norm == 0);
      job_same(huge, got);
      swap_items(got, place, 1);
      swap_items(huge, place, 1);
      job_run(dev, d, got);
      job_same(want, got);
    }
    sn_backend_unload(dev, d);
    job_free(want);
    job_free(got);
    job_free(huge);
  }
  sn_backend_free(dev);
}

// An item that is not pending stays as it is, and others do not notice.
static void not_pending(void **state) {
  const Scene *x = *state;
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  for (JobKind kind = JOB_SWEEP; kind <= JOB_PRODUCTS; ++kind) {
    Job *want = job_make(x, kind, false), *got = job_make(x, kind, false);
    SnBackendModel *d = job_load(dev, x, kind);
    job_alone(x->cpu, x, want);
    job_clear(got);
    got->item[2].status = SN_GRADIENT_ROLLED + 40;
    assert_true(job_until(dev, d, got, steady_clock(), (double)INFINITY));
    assert_int_equal(got->item[2].status, SN_GRADIENT_ROLLED + 40);
    assert_true(isnan(got->item[2].cost) && got->item[2].term[0] != want->item[2].term[0]);
    assert_memory_equal(got->item[3].term, want->item[3].term, sizeof(double) * (size_t)x->cost->nterm);
    assert_memory_equal(got->item[3].ctrl_bar, want->item[3].ctrl_bar, sizeof(double) * (size_t)x->m->nu);
    sn_backend_unload(dev, d);
    job_free(want);
    job_free(got);
  }
  sn_backend_free(dev);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(parts), cmocka_unit_test(unbounded),
                                     cmocka_unit_test(not_pending)};
  return cmocka_run_group_tests(tests, open_arm, close_arm);
}
