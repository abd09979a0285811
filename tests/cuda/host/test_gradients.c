// Gradients on a device, the host in its place: bit for bit those of the CPU's backend in double precision, whatever
// the chunks, the slices and what runs between; what is left of them when the device is lost; products beside what
// diverges, and floats, to the precision that is written here.
#include <float.h>

#include "clients/base/statistics.h"
#include "tests/cuda/plugin_fixture.h"

enum { ITEMS = 4, SEED = 5 };
static const int lengths[ITEMS] = {20, 37, 7, 1};

// A batch with everything that a gradient can give.
typedef struct Batch {
  SnGradientBatch batch;
  SnGradient item[ITEMS];
  double *memory[ITEMS];  // outputs of an item, one after another
  size_t bytes[ITEMS];
  sn_real *in[ITEMS];  // qvel, ctrl, target
  unsigned char *pair;
} Batch;

static sn_real wave(int i, int k) { return sn_sin((sn_real)((i + SEED) * 7 + k * 3) * SN_R(0.37)); }

static void make_item(const Scene *x, Batch *b, int k) {
  const SnModel *m = x->m;
  const int n = lengths[k], nv = m->nv, nu = m->nu;
  const size_t target = (size_t)(n + 1) * (size_t)x->cost->ntarget;
  const size_t outputs = (size_t)(x->cost->nterm + n * nu + 2 * nv + m->na) + target;
  double *out = b->memory[k] = calloc(outputs + 1, sizeof *out);
  sn_real *qvel = b->in[k] = calloc((size_t)(nv + n * nu) + target + 1, sizeof *qvel);
  sn_real *ctrl = qvel + nv, *row = ctrl + n * nu;
  const SnState *state = sn_planner_initial(x->p);
  b->bytes[k] = outputs * sizeof *out;
  for (int i = 0; i < nv; ++i) qvel[i] = state->qvel[i] + SN_R(0.1) * wave(i, k);
  if (n > 0 && nu > 0) sn_task_initial_plan(x->task, m, 0, ctrl);
  for (int i = nu; i < n * nu; ++i) ctrl[i] = ctrl[i - nu];
  for (int i = 0; i < n * nu; ++i) ctrl[i] += SN_R(0.1) + SN_R(0.1) * wave(i, k + 11);
  sn_cost_schedule(x->cost, 0.1 * k, (double)m->opt.timestep, n + 1, row);
  b->item[k] = (SnGradient){.state = *state,
                            .ctrl = ctrl,
                            .target = row,
                            .nstep = n,
                            .max_velocity = 1e3,
                            .term = out,
                            .ctrl_bar = out + x->cost->nterm,
                            .qpos_bar = out + x->cost->nterm + n * nu,
                            .qvel_bar = out + x->cost->nterm + n * nu + nv,
                            .act_bar = out + x->cost->nterm + n * nu + 2 * nv,
                            .target_bar = out + x->cost->nterm + n * nu + 2 * nv + m->na};
  b->item[k].state.time = 0.1 * k;
  b->item[k].state.qvel = qvel;
}

static Batch *make_batch(const Scene *x, SnGradientMethod method, bool cfd) {
  Batch *b = calloc(1, sizeof *b);
  for (int k = 0; k < ITEMS; ++k) make_item(x, b, k);
  const SnSettings s = x->task->settings;
  SnError err = {0};
  b->pair = sn_cfd_pairs(x->task, x->m, &err);
  assert_non_null(b->pair);
  b->batch = (SnGradientBatch){
      .settings = {.method = method, .cfd = sn_cfd_settings(&s, b->pair, cfd)}, .item = b->item, .count = ITEMS};
  return b;
}

static void free_batch(Batch *b) {
  for (int k = 0; k < ITEMS; ++k) {
    free(b->memory[k]);
    free(b->in[k]);
  }
  free(b->pair);
  free(b);
}

// Fills the outputs with what must not stay.
static void clear_batch(Batch *b) {
  for (int k = 0; k < ITEMS; ++k) {
    memset(b->memory[k], 0xff, b->bytes[k]);
    b->item[k].status = SN_GRADIENT_PENDING;
    b->item[k].cost = b->item[k].norm = NAN;
  }
}

static void expect_equal(const Batch *a, const Batch *b) {
  for (int k = 0; k < ITEMS; ++k) {
    assert_int_equal(a->item[k].status, b->item[k].status);
    assert_memory_equal(&a->item[k].cost, &b->item[k].cost, sizeof(double));
    assert_memory_equal(&a->item[k].norm, &b->item[k].norm, sizeof(double));
    assert_int_equal(a->item[k].warn, b->item[k].warn);
    assert_memory_equal(a->memory[k], b->memory[k], a->bytes[k]);
  }
}

static SnBackendModel *load(const Scene *x, SnBackend *b) {
  SnError err = {0};
  SnBackendModel *d = sn_backend_load(b, x->m, x->cost, 40, &err);
  if (!d) fail_msg("%s", err.text);
  if (sn_backend_reserve_gradients(b, d, ITEMS, &err) != SN_OK) fail_msg("%s", err.text);
  return d;
}

static void run(SnBackend *b, SnBackendModel *d, Batch *batch) {
  const SnClock clock = sn_clock_monotonic();
  clear_batch(batch);
  char text[300] = "not done";
  if (sn_backend_gradients(b, d, &batch->batch, &clock, INFINITY)) return;
  sn_backend_lost(b, text, sizeof text);
  fail_msg("%s", text);
}

// ---- tests ----

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

static void check_bits(const Scene *x) {
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  SnBackendModel *a = load(x, x->cpu), *d = load(x, dev);
  for (int method = SN_GRADIENT_SWEEP; method <= SN_GRADIENT_PRODUCTS; ++method)
    for (int cfd = 0; cfd <= 1; ++cfd) {
      Batch *want = make_batch(x, (SnGradientMethod)method, cfd), *got = make_batch(x, (SnGradientMethod)method, cfd);
      // The second time solvers with CFD start from the first.
      for (int again = 0; again <= cfd; ++again) {
        for (int k = 0; k < ITEMS; ++k) want->item[k].continues = got->item[k].continues = again;
        run(x->cpu, a, want);
        run(dev, d, got);
        for (int k = 0; k < ITEMS; ++k) assert_int_equal(want->item[k].status, SN_GRADIENT_DONE);
        assert_true(want->item[0].norm > 0 || x->m->nu == 0);
        expect_equal(want, got);
      }
      free_batch(want);
      free_batch(got);
    }
  sn_backend_unload(x->cpu, a);
  sn_backend_unload(dev, d);
  sn_backend_free(dev);
}

static void same_bits_as_cpu(void **state) {
  (void)state;
  on_scenes(check_bits);
}

// An item whose rollout diverges has no gradient; one that is not pending stays as it is; the others do not notice.
static void diverging(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  SnBackendModel *a = load(&x, x.cpu), *d = load(&x, dev);
  for (int method = SN_GRADIENT_SWEEP; method <= SN_GRADIENT_PRODUCTS; ++method) {
    Batch *want = make_batch(&x, (SnGradientMethod)method, false);
    Batch *got = make_batch(&x, (SnGradientMethod)method, false);
    want->item[1].max_velocity = got->item[1].max_velocity = 0.02;
    run(x.cpu, a, want);
    run(dev, d, got);
    assert_int_equal(want->item[1].status, SN_GRADIENT_DIVERGED);
    expect_equal(want, got);
    const SnClock clock = sn_clock_monotonic();
    clear_batch(got);
    got->item[2].status = SN_GRADIENT_UNBOUNDED;
    assert_true(sn_backend_gradients(dev, d, &got->batch, &clock, INFINITY));
    assert_int_equal(got->item[2].status, SN_GRADIENT_UNBOUNDED);
    assert_true(isnan(got->item[2].cost) && isnan(got->item[2].term[0]));
    assert_memory_equal(got->memory[3], want->memory[3], want->bytes[3]);
    free_batch(want);
    free_batch(got);
  }
  sn_backend_unload(x.cpu, a);
  sn_backend_unload(dev, d);
  sn_backend_free(dev);
  scene_close(&x);
}

// A derivative that leaves the range of numbers is 0, its cost stays; by either method.
static void unbounded(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  const int term = sn_cost_find(x.cost, "speed");
  x.cost->weight[term] = 0;
  x.cost->terminal[term] = 5e307;  // far beyond what may be set
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  SnBackendModel *a = load(&x, x.cpu), *d = load(&x, dev);
  for (int method = SN_GRADIENT_SWEEP; method <= SN_GRADIENT_PRODUCTS; ++method) {
    Batch *want = make_batch(&x, (SnGradientMethod)method, false);
    Batch *got = make_batch(&x, (SnGradientMethod)method, false);
    run(x.cpu, a, want);
    run(dev, d, got);
    assert_int_equal(want->item[1].status, SN_GRADIENT_UNBOUNDED);
    assert_true(isfinite(want->item[1].cost) && want->item[1].norm == 0);
    expect_equal(want, got);
    free_batch(want);
    free_batch(got);
  }
  sn_backend_unload(dev, d);
  sn_backend_free(dev);
  sn_backend_unload(x.cpu, a);
  scene_close(&x);
}

// Two sessions on one model, each stopped by its clock between any two groups of launches, the other's between.
static void slices(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  SnBackendModel *d[2] = {load(&x, dev), load(&x, dev)};
  for (int method = SN_GRADIENT_SWEEP; method <= SN_GRADIENT_PRODUCTS; ++method) {
    Batch *want = make_batch(&x, (SnGradientMethod)method, false);
    run(dev, d[0], want);
    Batch *got[2] = {make_batch(&x, (SnGradientMethod)method, false), make_batch(&x, (SnGradientMethod)method, false)};
    CountingClock count = {0};
    const SnClock clock = counting_clock(&count);
    bool done[2] = {false, false};
    int calls = 0;
    for (int k = 0; k < 2; ++k) clear_batch(got[k]);
    while (!done[0] || !done[1]) {
      const int k = calls++ % 2;
      // One group a call: the clock is read before it, and again before the next.
      if (!done[k])
        done[k] = sn_backend_gradients(dev, d[k], &got[k]->batch, &clock, (double)atomic_load(&count.reads) + 1);
      assert_true(calls < 1000);
    }
    assert_true(calls >= 6);
    for (int k = 0; k < 2; ++k) {
      expect_equal(want, got[k]);
      free_batch(got[k]);
    }
    free_batch(want);
  }
  for (int k = 0; k < 2; ++k) sn_backend_unload(dev, d[k]);
  sn_backend_free(dev);
  scene_close(&x);
}

// A gradient that was abandoned leaves nothing behind.
static void abandoned(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  SnBackendModel *d = load(&x, dev);
  Batch *want = make_batch(&x, SN_GRADIENT_SWEEP, false), *got = make_batch(&x, SN_GRADIENT_SWEEP, false);
  run(dev, d, want);
  CountingClock count = {0};
  const SnClock clock = counting_clock(&count);
  clear_batch(got);
  got->item[0].max_velocity = 1e-3;
  assert_false(sn_backend_gradients(dev, d, &got->batch, &clock, 2));
  sn_backend_abandon(dev, d);
  got->item[0].max_velocity = 1e3;
  run(dev, d, got);
  expect_equal(want, got);
  free_batch(want);
  free_batch(got);
  sn_backend_unload(dev, d);
  sn_backend_free(dev);
  scene_close(&x);
}

// The smallest budget that gradients are made with; what they take then.
static double smallest_budget(const Scene *x) {
  double lo = 0, hi = 1e9;
  while (hi - lo > 4096) {
    const double budget = 0.5 * (lo + hi);
    SnBackend *dev = open_library("emulator_double", budget, NULL);
    SnBackendModel *d = sn_backend_load(dev, x->m, x->cost, 40, NULL);
    SnError err = {0};
    if (d && sn_backend_reserve_gradients(dev, d, ITEMS, &err) == SN_OK)
      hi = budget;
    else
      lo = budget;
    if (d && err.code != SN_OK) assert_int_equal(err.code, SN_ERR_LIMIT);
    sn_backend_unload(dev, d);
    SnBackendMemory memory;
    memory = sn_backend_memory(dev);
    assert_true(memory.used == 0);
    sn_backend_free(dev);
  }
  return hi;
}

// Chunks of few states give the same bits.
static void chunks(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  const double least = smallest_budget(&x);
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  SnBackendModel *d = load(&x, dev);
  SnBackendMemory memory;
  memory = sn_backend_memory(dev);
  assert_true((double)memory.used > 1.5 * least);
  for (int method = SN_GRADIENT_SWEEP; method <= SN_GRADIENT_PRODUCTS; ++method)
    for (double budget = least; budget < (double)memory.used; budget *= 1.25) {
      SnBackend *small = open_library("emulator_double", budget, NULL);
      SnBackendModel *s = load(&x, small);
      Batch *want = make_batch(&x, (SnGradientMethod)method, false);
      Batch *got = make_batch(&x, (SnGradientMethod)method, false);
      run(dev, d, want);
      run(small, s, got);
      expect_equal(want, got);
      free_batch(want);
      free_batch(got);
      sn_backend_unload(small, s);
      sn_backend_free(small);
    }
  sn_backend_unload(dev, d);
  sn_backend_free(dev);
  scene_close(&x);
}

// Largest difference of two batches' outputs relative to the largest number of the kind.
static double difference(const Batch *a, const Batch *b) {
  double worst = 0;
  for (int k = 0; k < ITEMS; ++k) {
    const size_t n = a->bytes[k] / sizeof(double);
    double most = 0, off = 0;
    assert_int_equal(a->item[k].status, b->item[k].status);
    for (size_t i = 0; i < n; ++i) {
      most = sn_larger(most, fabs(a->memory[k][i]));
      off = sn_larger(off, fabs(a->memory[k][i] - b->memory[k][i]));
    }
    worst = sn_larger(worst, off / (most + DBL_MIN));
  }
  return worst;
}

// Some items diverge: what products read of them does not reach the others.
static void check_diverged(const Scene *x) {
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  SnBackendModel *d = load(x, dev);
  Batch *first = make_batch(x, SN_GRADIENT_PRODUCTS, false), *got = make_batch(x, SN_GRADIENT_PRODUCTS, false);
  if (x->m->nu > 0) {
    run(dev, d, first);
    got->item[1].max_velocity = 1e-3;
    run(dev, d, got);
    assert_int_equal(got->item[1].status, SN_GRADIENT_DIVERGED);
    assert_memory_equal(first->memory[0], got->memory[0], first->bytes[0]);
    assert_memory_equal(first->memory[2], got->memory[2], first->bytes[2]);
  }
  free_batch(first);
  free_batch(got);
  sn_backend_unload(dev, d);
  sn_backend_free(dev);
}

static void diverged_beside_others(void **state) {
  (void)state;
  on_scenes(check_diverged);
}

// Nothing of a launch gets into the next: a long rollout with derivatives beyond numbers, then shorter ones, whose
// places beyond their ends lie where those were.
static void products_after_unbounded(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  const int term = sn_cost_find(x.cost, "speed");
  SnBackend *dev[2] = {open_library("emulator_double", 0, NULL), open_library("emulator_double", 0, NULL)};
  SnBackendModel *d[2] = {load(&x, dev[0]), load(&x, dev[1])};
  Batch *want = make_batch(&x, SN_GRADIENT_PRODUCTS, false), *got = make_batch(&x, SN_GRADIENT_PRODUCTS, false);
  run(dev[0], d[0], want);
  for (int place = 0; place < ITEMS; ++place) {
    const SnGradient longest = got->item[1], other = got->item[place];
    const sn_real weight = x.cost->terminal[term];
    x.cost->terminal[term] = 5e307;
    got->item[1] = other;
    got->item[place] = longest;
    run(dev[1], d[1], got);
    assert_int_equal(got->item[place].status, SN_GRADIENT_UNBOUNDED);
    x.cost->terminal[term] = weight;
    got->item[place] = other;
    got->item[1] = longest;
    run(dev[1], d[1], got);
    expect_equal(want, got);
  }
  for (int k = 0; k < 2; ++k) {
    sn_backend_unload(dev[k], d[k]);
    sn_backend_free(dev[k]);
  }
  free_batch(want);
  free_batch(got);
  scene_close(&x);
}

// Blocks have whole warps, and memory of at least no bytes.
static void block_options(void **state) {
  (void)state;
  SnError err = {0};
  SnBackendOptions options = sn_default_backend_options();
  options.folder = SN_TEST_LIBRARIES;
  options.block_threads = 33;
  assert_null(sn_backend_open("emulator_double", NULL, &options, &err));
  assert_non_null(strstr(err.text, "33"));
  options.block_threads = 64;
  options.block_shared = -1;
  assert_null(sn_backend_open("emulator_double", NULL, &options, &err));
  assert_int_equal(err.code, SN_ERR_ARGUMENT);
}

// The device is lost at every launch in turn: no result, the reason, and all memory is given back.
static void lost(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  const SnClock clock = sn_clock_monotonic();
  Batch *got = make_batch(&x, SN_GRADIENT_SWEEP, false);
  int faults = 0;
  for (int n = 1; n < 1000; ++n) {
    char fault[32], text[300] = "";
    snprintf(fault, sizeof fault, "launch:%d", n);
    SnBackend *dev = open_library("emulator_double", 0, fault);
    SnBackendModel *d = load(&x, dev);
    clear_batch(got);
    const bool done = sn_backend_gradients(dev, d, &got->batch, &clock, INFINITY),
               gone = sn_backend_lost(dev, text, sizeof text);
    assert_true(done != gone);
    if (gone) {
      ++faults;
      assert_true(text[0] != 0);
      for (int k = 0; k < ITEMS; ++k) assert_int_equal(got->item[k].status, SN_GRADIENT_PENDING);
      assert_false(sn_backend_gradients(dev, d, &got->batch, &clock, INFINITY));
    }
    sn_backend_unload(dev, d);
    sn_backend_free(dev);
    if (done) break;
  }
  printf("%d launches\n", faults);
  assert_true(faults >= 4);
  free_batch(got);
  scene_close(&x);
}

// Floats: the float library against the CPU in double, on states and controls that floats hold about. Outputs of an
// item relative to its largest; a gradient grows with its horizon, and contacts make it steep.
static void check_float(const Scene *x) {
  const struct {
    const char *model;
    double most;
  } table[] = {{"arm_reach", 1e-5}, {"billiard", 1e-5}, {"hand_balls", 5e-3}};
  SnBackend *dev = open_library("emulator", 0, NULL);
  SnBackendModel *a = load(x, x->cpu), *d = load(x, dev);
  for (int method = SN_GRADIENT_SWEEP; method <= SN_GRADIENT_PRODUCTS; ++method) {
    Batch *want = make_batch(x, (SnGradientMethod)method, false), *got = make_batch(x, (SnGradientMethod)method, false);
    run(x->cpu, a, want);
    run(dev, d, got);
    const double off = difference(want, got);
    const int row = !strcmp(x->task->model, "arm_reach.xml") ? 0 : !strcmp(x->task->model, "billiard.xml") ? 1 : 2;
    printf("%s, %s: %.2g relative in floats\n", table[row].model, method ? "products" : "sweep", off);
    assert_true(off > 0 && off < table[row].most);
    free_batch(want);
    free_batch(got);
  }
  sn_backend_unload(x->cpu, a);
  sn_backend_unload(dev, d);
  sn_backend_free(dev);
}

static void floats(void **state) {
  (void)state;
  on_scenes(check_float);
}

int main(void) {
  printf("seed %d\n", SEED);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(same_bits_as_cpu),
      cmocka_unit_test(diverging),
      cmocka_unit_test(unbounded),
      cmocka_unit_test(slices),
      cmocka_unit_test(abandoned),
      cmocka_unit_test(chunks),
      cmocka_unit_test(diverged_beside_others),
      cmocka_unit_test(products_after_unbounded),
      cmocka_unit_test(block_options),
      cmocka_unit_test(lost),
      cmocka_unit_test(floats),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
