// The memory of every kind of work on a device, the host in its place: where it moves, where there is little or none of
// it, where it comes back, and that none is lost.
#include "tests/cuda/host/job_fixture.h"

#include <malloc.h>

#include "tests/support/slow.h"

// A job that was stopped goes on, and another is computed, although a session with more to do has moved the memory that
// they share; and although the model that was loaded last, with a stream of its own, is another.
static void memory_moves(void **state) {
  const Scene *x = *state;
  Scene y;
  SnError err = {0};
  assert_true(scene_open(&y, "billiard"));
  FOR_KINDS(kind) {
    SnBackend *dev = open_library("emulator_double", 0, NULL);
    Job *want = job_make(x, kind, false), *got = job_make(x, kind, false);
    SnBackendModel *d = job_load(dev, x, kind), *last = job_load(dev, &y, kind);
    CountingClock count = {0};
    job_alone(x->cpu, x, want);
    job_clear(got);
    assert_false(job_slice(dev, d, got, &count));
    SnBackendModel *longer = scene_load(dev, x, 20 * JOB_MOST);
    const size_t before = memory_used(dev);
    // Gradients move Adam's pool and tell it so; more starts would have it begin anew.
    if (job_reserve(dev, longer, kind < JOB_ADAM ? kind : JOB_SWEEP, 100, &err) != SN_OK) fail_msg("%s", err.text);
    assert_true(memory_used(dev) > before);
    assert_true(job_until(dev, d, got, steady_clock(), (double)INFINITY));
    job_same(want, got);
    job_run(dev, d, got);
    job_same(want, got);
    sn_backend_unload(dev, longer);
    sn_backend_unload(dev, d);
    sn_backend_unload(dev, last);
    assert_int_equal(memory_used(dev), 0);
    sn_backend_free(dev);
    job_free(want);
    job_free(got);
  }
  scene_close(&y);
}

// A device that runs three candidates at once, so that they go in groups where there is little room.
static const char *device_of(JobKind kind) { return kind < JOB_SWEEP ? "multiprocessors:1,resident:3" : ""; }

// What does not fit is refused in words. A session that was there stays as it was: it computes candidates, one by one,
// and nothing else.
static void expect_refusal(const Scene *x, SnBackend *dev, SnBackendModel *d, Job *got, const SnError *err) {
  char text[300];
  assert_int_equal(err->code, SN_ERR_LIMIT);
  assert_non_null(strstr(err->text, "emulator: model 'arm_reach' "));
  assert_non_null(strstr(err->text, "the budget is "));
  if (!d) return;
  assert_non_null(strstr(err->text, " with horizon 37 needs "));
  assert_non_null(strstr(err->text, " are taken; fewer of them or a shorter horizon need less"));
  job_clear(got);
  if (got->kind != JOB_ROLLOUTS) assert_false(job_until(dev, d, got, steady_clock(), (double)INFINITY));
  assert_false(sn_backend_lost(dev, text, sizeof text));
  sn_backend_abandon(dev, d);
  Job *want = job_make(x, JOB_ROLLOUTS, false), *few = job_make(x, JOB_ROLLOUTS, false);
  job_alone(x->cpu, x, want);
  job_run(dev, d, few);
  job_same(want, few);
  job_free(want);
  job_free(few);
}

// Whether a job fits a budget; then it has the bits that are wanted.
static bool fits(const Scene *x, const Job *want, double budget) {
  SnError err = {0};
  Job *got = job_make(x, want->kind, false);
  SnBackend *dev = open_library("emulator_double", budget, device_of(want->kind));
  SnBackendModel *d = sn_backend_load(dev, x->m, x->cost, JOB_MOST, &err);
  const size_t before = memory_used(dev);
  const bool enough = d && job_reserve(dev, d, want->kind, 0, &err) == SN_OK;
  assert_true(memory_used(dev) <= (size_t)budget);
  if (enough) {
    job_run(dev, d, got);
    job_same(want, got);
  } else {
    assert_int_equal(memory_used(dev), before);
    expect_refusal(x, dev, d, got, &err);
  }
  sn_backend_unload(dev, d);
  assert_int_equal(memory_used(dev), 0);
  sn_backend_free(dev);
  job_free(got);
  return enough;
}

// What a job takes where there is no budget; in one of exactly that it fits after less room, too, which is given back.
static double whole_of(const Scene *x, JobKind kind) {
  SnBackend *dev = open_library("emulator_double", 0, device_of(kind));
  SnBackendModel *d = job_load(dev, x, kind);
  const size_t whole = memory_used(dev);
  sn_backend_unload(dev, d);
  sn_backend_free(dev);
  dev = open_library("emulator_double", (double)whole, device_of(kind));
  d = scene_load(dev, x, JOB_MOST);
  assert_int_equal(job_reserve(dev, d, kind, -2, NULL), SN_OK);
  assert_true(memory_used(dev) < whole);
  assert_int_equal(job_reserve(dev, d, kind, 0, NULL), SN_OK);
  assert_int_equal(memory_used(dev), whole);
  sn_backend_unload(dev, d);
  sn_backend_free(dev);
  return (double)whole;
}

// Budgets from next to nothing to what is taken without one.
static void budgets(void **state) {
  const Scene *x = *state;
  FOR_KINDS(kind) {
    Job *want = job_make(x, kind, false);
    const double whole = whole_of(x, kind);
    double lo = 0, hi = whole;
    job_alone(x->cpu, x, want);
    for (double budget = 1000; hi - lo > 1024; budget = 0.5 * (lo + hi)) *(fits(x, want, budget) ? &hi : &lo) = budget;
    assert_true(hi < whole);
    for (double budget = hi; budget < whole; budget *= 1.3) assert_true(fits(x, want, budget));
    if (kind == JOB_SWEEP) assert_true(whole > 1.5 * hi);
    job_free(want);
  }
}

// A changed cost that there is no memory for: its model does not fit, or it does, but not what the session has room
// for. Nothing is computed until there is memory, and asking for more is refused in words; then it has all of its room
// again.
static void room_after_a_change(void **state) {
  (void)state;
  Scene x;
  const double place[3] = {0.5, 0.5, 0.5};
  scene_pile(&x);
  FOR_KINDS(kind) {
    const bool groups = kind < JOB_SWEEP;  // where there is little room candidates go in groups
    const int more = groups ? 0 : 200;
    SnError err = {0};
    SnBackend *b = open_library("emulator_double", 0, NULL);
    SnBackendModel *other = scene_load(b, &x, JOB_MOST), *d;
    const size_t model = memory_used(b);
    if (!groups) sn_backend_unload(b, other);
    d = scene_load(b, &x, JOB_MOST);
    assert_int_equal(job_reserve(b, d, kind, more, &err), SN_OK);
    const size_t whole = memory_used(b) + (groups ? 1000 : model / 2);
    assert_true(groups || whole > 3 * model);
    sn_backend_unload(b, d);
    if (groups) sn_backend_unload(b, other);
    sn_backend_free(b);
    b = open_library("emulator_double", (double)whole, NULL);
    other = scene_load(b, &x, JOB_MOST);
    d = scene_load(b, &x, JOB_MOST);
    assert_int_equal(job_reserve(b, d, kind, more, &err), SN_OK);
    assert_int_equal(sn_cost_set_target(x.cost, 0, kind % 2 ? NULL : place, kind % 2 ? 0 : 3, &err), SN_OK);
    assert_int_equal(sn_cost_set_weight(x.cost, 1, 3 + kind, 1, &err), SN_OK);
    Job *want = job_make(&x, kind, false), *got = job_make(&x, kind, false);
    sn_backend_update(b, d);
    job_clear(got);
    const bool fits = job_until(b, d, got, steady_clock(), (double)INFINITY);
    assert_false(fits);
    assert_int_equal(job_reserve(b, d, kind, more + 50, &err), SN_ERR_STATE);
    assert_non_null(strstr(err.text, "has no model since its cost was changed"));
    sn_backend_abandon(b, d);
    sn_backend_unload(b, other);
    job_run(b, d, got);
    job_alone(x.cpu, &x, want);
    job_same(want, got);
    sn_backend_unload(b, d);
    assert_int_equal(memory_used(b), 0);
    sn_backend_free(b);
    job_free(want);
    job_free(got);
  }
  scene_close(&x);
}

// Every allocation fails in turn: what needed it is refused in words, what there was stays, and asked for again it is
// there. Some failures are made up for by less memory.
static void allocations_fail(void **state) {
  const Scene *x = *state;
  int refused = 0;
  FOR_KINDS(kind) {
    Job *want = job_make(x, kind, false), *got = job_make(x, kind, false);
    job_alone(x->cpu, x, want);
    for (int n = 1; n <= 16; ++n) {
      char fault[32];
      SnError err = {0};
      snprintf(fault, sizeof fault, "alloc:%d", n);
      SnBackend *dev = open_library("emulator_double", 0, fault);
      SnBackendModel *d = sn_backend_load(dev, x->m, x->cost, JOB_MOST, &err);
      if (!d) d = scene_load(dev, x, JOB_MOST);
      for (int more = 0; more < 4; more += 3) {
        const size_t before = memory_used(dev);
        SnError told = {0};
        if (job_reserve(dev, d, kind, more, &told) == SN_OK) continue;
        err = told;
        assert_int_equal(memory_used(dev), before);
        assert_int_equal(job_reserve(dev, d, kind, more, NULL), SN_OK);
      }
      if (err.code != SN_OK) {
        ++refused;
        assert_int_equal(err.code, SN_ERR_LIMIT);
        assert_non_null(strstr(err.text, "the device has no memory for it"));
      }
      job_run(dev, d, got);
      job_same(want, got);
      sn_backend_unload(dev, d);
      assert_int_equal(memory_used(dev), 0);
      sn_backend_free(dev);
    }
    job_free(want);
    job_free(got);
  }
  printf("%d refused\n", refused);
  assert_true(refused > 40);
}

// Jobs by the hundreds take no memory: neither the budget's, nor the device's, nor the process's. (Sanitizers have a
// heap of their own, of which mallinfo2 knows nothing.)
static void no_growth(void **state) {
  const Scene *x = *state;
  FOR_KINDS(kind) {
    SnBackend *dev = open_library("emulator_double", 0, NULL);
    Job *j = job_make(x, kind, false);
    SnBackendModel *d = job_load(dev, x, kind);
    job_run(dev, d, j);
    const size_t used = memory_used(dev), heap = mallinfo2().uordblks;
    for (int k = 0; k < (SN_SLOW ? 10 : 200); ++k) job_run(dev, d, j);
    assert_true(used > 0 && memory_used(dev) == used);
    assert_true(mallinfo2().uordblks < heap + 4096);
    sn_backend_unload(dev, d);
    assert_int_equal(memory_used(dev), 0);
    sn_backend_free(dev);
    job_free(j);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(memory_moves), cmocka_unit_test(budgets),
                                     cmocka_unit_test(room_after_a_change), cmocka_unit_test(allocations_fail),
                                     cmocka_unit_test(no_growth)};
  return cmocka_run_group_tests(tests, open_arm, close_arm);
}
