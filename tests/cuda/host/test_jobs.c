// What every kind of work on a device computes, the host in its place: the bits of the CPU in double whatever the
// device is like, near it in float. What holds while it is computed: test_job_pauses.c; its memory: test_job_memory.c.
#include "tests/cuda/host/job_fixture.h"

#include <float.h>

#include "clients/base/statistics.h"
#include "tests/support/slow.h"

typedef void SceneTest(const Scene *x);

// On tasks without contacts, with them and without controls, and on a hand, where it is there.
static void on_scenes(SceneTest *test) {
  const char *const names[] = {"arm_reach", "billiard", "hand_balls"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    Scene x;
    if (!scene_open(&x, names[i])) continue;
    test(&x);
    scene_close(&x);
  }
  sn_oracle_needs_myosuite();
}

// What is computed moves from item to item, and is what it should come to.
static void is_something(const Job *j) {
  for (int k = 0; k < JOB_ITEMS; ++k) {
    if (job_has_gradients(j)) assert_int_equal(j->book[k].status, SN_GRADIENT_DONE);
    if (job_is_adam(j)) assert_int_equal(j->book[k].status, j->adam.iterations);
    if (j->kind < JOB_SWEEP) assert_int_equal(j->book[k].done, 1);
    if (j->kind == JOB_BATCH && k > 0) assert_true(j->batch.cost[k] != j->batch.cost[0]);
  }
  if (j->m->nu == 0) return;
  if (job_has_gradients(j)) assert_true(j->scalar[1] > 0);
  if (job_is_adam(j)) assert_true(j->adam.best_cost < j->adam.cost_before);
}

// Under sanitizers a hand is computed once, and with contacts from distance alone: floats_are_near has it without them.
static void check_bits(const Scene *x) {
  const bool slow = SN_SLOW && x->m->nv > 20;
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  FOR_KINDS(kind) for (int cfd = slow; cfd <= 1; ++cfd) {
    Job *want = job_make(x, kind, cfd), *got = job_make(x, kind, cfd);
    SnBackendModel *a = job_load(x->cpu, x, kind), *d = job_load(dev, x, kind);
    for (int again = 0; again < (slow ? 1 : 2); ++again) {
      // The second time solvers with CFD start from the first; other noise is other candidates.
      for (int k = 0; k < JOB_ITEMS; ++k) want->item[k].continues = got->item[k].continues = again;
      want->noise.seed += (uint64_t)again;
      got->noise.seed += (uint64_t)again;
      const double first = again && kind == JOB_ROLLOUTS ? got->batch.cost[1] : 0;
      job_run(x->cpu, a, want);
      job_run(dev, d, got);
      is_something(want);
      job_same(want, got);
      if (again && kind == JOB_ROLLOUTS && x->m->nu > 0) assert_true(got->batch.cost[1] != first);
    }
    sn_backend_unload(x->cpu, a);
    sn_backend_unload(dev, d);
    job_free(want);
    job_free(got);
  }
  sn_backend_free(dev);
}

static void same_bits_as_cpu(void **state) {
  (void)state;
  on_scenes(check_bits);
}

// It does not matter how many blocks run at once.
static void same_bits_on_any_device(void **state) {
  const Scene *x = *state;
  static const char *const faults[] = {"blocks:3", "multiprocessors:1,resident:1", "resident:5",
                                       "multiprocessors:1,resident:2,blocks:2"};
  FOR_KINDS(kind) {
    Job *want = job_make(x, kind, false), *got = job_make(x, kind, false);
    job_alone(x->cpu, x, want);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; ++i) {
      SnBackend *dev = open_library("emulator_double", 0, faults[i]);
      job_alone(dev, x, got);
      job_same(want, got);
      sn_backend_free(dev);
    }
    job_free(want);
    job_free(got);
  }
}

// Bounds on velocities that some pass: the bits of the CPU, and items with limits of their own know nothing of it.
static void diverging(void **state) {
  const Scene *x = *state;
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  int early = 0, never = 0;
  FOR_KINDS(kind) {
    Job *free = job_make(x, kind, false), *want = job_make(x, kind, false), *got = job_make(x, kind, false);
    int differ = 0;
    job_alone(dev, x, free);
    for (double most = 1e-3; most < 8; most *= 2.5) {
      job_limit(want, most);
      job_limit(got, most);
      job_alone(x->cpu, x, want);
      job_alone(dev, x, got);
      job_same(want, got);
      differ += memcmp(free->number, got->number, got->nnumber * sizeof *got->number) != 0;
      for (int k = 0; k < JOB_ITEMS && kind == JOB_BATCH; ++k) {
        const bool ended = !isnan(got->out[k].time[JOB_STEPS]);
        early += got->steps[k] > 0 && got->steps[k] < JOB_STEPS && !ended;
        never += got->steps[k] == JOB_STEPS && ended;
      }
      if (!job_has_gradients(got)) continue;
      if (most < 0.01) assert_int_equal(got->book[1].status, SN_GRADIENT_DIVERGED);
      for (int k = 0; k < JOB_ITEMS; ++k)
        assert_true(k == 1 || memcmp(&free->book[k], &got->book[k], sizeof free->book[k]) == 0);
      assert_memory_equal(free->item[0].ctrl_bar, got->item[0].ctrl_bar, sizeof(double) * JOB_STEPS * (size_t)x->m->nu);
    }
    assert_true(differ > 0);
    job_free(free);
    job_free(want);
    job_free(got);
  }
  assert_true(early > 0 && never > 0);
  sn_backend_free(dev);
}

// Largest difference of what two jobs computed, relative to the largest number of an array of `n`.
static double error_of(const double *a, const double *b, size_t n) {
  double most = 0, off = 0;
  for (size_t i = 0; i < n; ++i) {
    assert_int_equal(isfinite(a[i]) != 0, isfinite(b[i]) != 0);
    if (!isfinite(a[i])) continue;
    most = sn_larger(most, fabs(a[i]));
    off = sn_larger(off, fabs(a[i] - b[i]));
  }
  return off / (most + DBL_MIN);
}

// What is compared in float: costs of candidates, derivatives, what Adam gains. (Its iterates part: it moves a control
// by its rate also where rounding says in which direction. What they gain does less.)
static double float_error(const Job *a, const Job *b) {
  double worst = 0;
  if (job_is_adam(a)) {
    const double gain = a->adam.cost_before - a->adam.best_cost;
    return fabs((b->adam.cost_before - b->adam.best_cost) - gain) / (gain + DBL_MIN);
  }
  if (!job_has_gradients(a)) return error_of(a->batch.cost, b->batch.cost, JOB_ITEMS);
  for (int k = 0; k < JOB_ITEMS; ++k) {
    const double *from = a->item[k].term, *to = b->item[k].term;
    const size_t n = (size_t)(a->item[k].target_bar - from);
    worst = sn_larger(worst, error_of(from, to, n));
  }
  return worst;
}

static void check_floats(const Scene *x) {
  static const struct {
    const char *model;
    double most[JOB_KINDS];
  } table[] = {{"arm_reach.xml", {5e-6, 1e-5, 1e-5, 1e-5, 1e-3, 1e-3, 0.05, 0.05}},
               {"billiard.xml", {5e-6, 1e-5, 1e-5, 1e-5, 1e-3, 1e-3, 0.05, 0.05}},
               {"", {5e-6, 1e-5, 5e-3, 5e-3, 1e-2, 1e-2, 0.05, 0.05}}};
  SnBackend *dev = open_library("emulator", 0, NULL);
  int row = 0;
  while (table[row].model[0] && strcmp(table[row].model, x->task->model) != 0) ++row;
  FOR_KINDS(kind) {
    Job *want = job_make(x, kind, false), *got = job_make(x, kind, false);
    job_alone(x->cpu, x, want);
    job_alone(dev, x, got);
    const double off = float_error(want, got);
    printf("%s, %s: %.2g in floats\n", x->task->model, job_names[kind], off);
    for (int k = 0; k < JOB_ITEMS; ++k)
      assert_true(want->book[k].done == got->book[k].done && want->book[k].status == got->book[k].status);
    assert_true((off > 0 || x->m->nu == 0) && off < table[row].most[kind]);
    job_free(want);
    job_free(got);
  }
  sn_backend_free(dev);
}

static void floats_are_near(void **state) {
  (void)state;
  on_scenes(check_floats);
}

// A multistart says that contacts were dropped in what it tried, whichever start it was. A sledge with room for one of
// two contacts falls onto the plane in the last steps, unless its motor lifts it a little.
static void warnings_of_starts(void **state) {
  (void)state;
  Scene x;
  scene_parse(&x,
              "<mujoco><worldbody><geom type='plane' size='1 1 1'/><body pos='0 0 .0148'>"
              "<joint name='lift' type='slide' axis='0 0 1'/><site name='top'/>"
              "<geom size='.01' mass='1'/><geom size='.01' mass='1' pos='.1 0 0'/></body></worldbody>"
              "<actuator><motor joint='lift' ctrlrange='-20 20'/></actuator></mujoco>",
              "model: sledge.xml\nsettings: {horizon: 20}\nterms:\n"
              "  - {name: height, residual: {position: {site: top}}, target: [0, 0, 0.1], norm: squared, weight: 1}\n");
  SnModel *narrow = sn_model_copy(x.m, NULL);
  narrow->nconmax = 1;
  x.m = narrow;
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  Job *want = job_make(&x, JOB_ADAM, false), *got = job_make(&x, JOB_ADAM, false);
  job_alone(x.cpu, &x, want);
  job_alone(dev, &x, got);
  assert_int_equal(want->adam.warn, SN_WARN_CONTACT_FULL);
  job_same(want, got);
  job_free(want);
  job_free(got);
  sn_model_free(narrow);
  sn_backend_free(dev);
  scene_close(&x);
}
int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits_as_cpu), cmocka_unit_test(same_bits_on_any_device),
                                     cmocka_unit_test(diverging), cmocka_unit_test(floats_are_near),
                                     cmocka_unit_test(warnings_of_starts)};
  return cmocka_run_group_tests(tests, open_arm, close_arm);
}
