// Refinements on a device, the host in its place, through planners: bit for bit those of the CPU's backend in double
// precision, alone and with other sessions, whole and in slices, while settings, weights and targets change; graphs are
// counted, deadlines tested, memory watched, devices lost.
#include "cuda/engine.h"
#include "tests/cuda/plugin_rig.h"

enum { MOST = 8 };

// A backend of a library as planner/backend_plugin.c makes it: the engine behind it is in reach.
typedef struct Opened {
  SnBackend table;
  SnEngine *engine;
} Opened;

// What a device was asked for, counted on the way.
static struct {
  int records, runs, copies_in, copies_out;
  void (*record)(SnDevice *, SnStream *);
  void (*run)(SnDevice *, SnStream *, SnGraph *);
  void (*copy_in)(SnDevice *, SnStream *, void *, const void *, size_t);
  SnStream *stream[16];  // of the runs
} count;

static void count_record(SnDevice *d, SnStream *s) {
  ++count.records;
  count.record(d, s);
}

static void count_run(SnDevice *d, SnStream *s, SnGraph *g) {
  if (count.runs < 16) count.stream[count.runs] = s;
  ++count.runs;
  count.run(d, s, g);
}

static void count_copy_in(SnDevice *d, SnStream *s, void *to, const void *from, size_t bytes) {
  ++count.copies_in;
  count.copy_in(d, s, to, from, bytes);
}

static void start_counting(SnBackend *b) {
  SnDevice *d = ((Opened *)b)->engine->device;
  memset(&count, 0, sizeof count);
  count.record = d->record;
  count.run = d->run;
  count.copy_in = d->copy_in;
  d->record = count_record;
  d->run = count_run;
  d->copy_in = count_copy_in;
}

static void stop_counting(SnBackend *b) {
  SnDevice *d = ((Opened *)b)->engine->device;
  d->record = count.record;
  d->run = count.run;
  d->copy_in = count.copy_in;
}

// ---- planners ----

static SnSettings settings_of(const Scene *x, int horizon, int iterations) {
  SnSettings s = x->task->settings;
  s.planner = SN_PLANNER_ADAM;
  s.horizon = horizon;
  s.knots = s.knots < horizon ? s.knots : horizon;
  s.adam_iterations = iterations;
  s.adam_rate = 0.03;
  return s;
}

static SnPlanner *planner(const Scene *x, SnBackend *b, const SnSettings *s, uint64_t seed, const SnClock *clock) {
  SnError err = {0};
  SnPlannerDef def = sn_default_planner_def();
  def.model = x->o.m;
  def.task = x->task;
  def.backend = b;
  def.settings = *s;
  def.seed = seed;
  if (clock) def.clock = *clock;
  SnPlanner *p = sn_planner_create(&def, &err);
  if (!p) fail_msg("%s", err.text);
  return p;
}

// From the initial state, whose time is another one.
static SnPlanRequest request_at(SnPlanner *p, double time) {
  const SnStart *s = sn_planner_initial(p);
  SnPlanRequest r = sn_default_plan_request();
  r.time = time;
  r.qpos = s->qpos;
  r.qvel = s->qvel;
  r.act = s->act;
  return r;
}

static void begin_at(SnPlanner *p, double time) {
  SnError err = {0};
  const SnPlanRequest r = request_at(p, time);
  if (sn_planner_begin(p, &r, &err) != SN_OK) fail_msg("%s", err.text);
}

static SnPlan finish(SnPlanner *p) {
  SnPlan plan;
  while (!sn_planner_slice(p, INFINITY)) continue;
  sn_planner_finish(p, &plan);
  return plan;
}

static SnPlan plan_at(SnPlanner *p, double time) {
  begin_at(p, time);
  return finish(p);
}

static void expect_equal(const SnPlan *a, const SnPlan *b) {
  assert_int_equal(a->status, b->status);
  assert_int_equal(a->iterations, b->iterations);
  assert_int_equal(a->candidates, b->candidates);
  assert_int_equal(a->nstep, b->nstep);
  assert_memory_equal(&a->cost_before, &b->cost_before, sizeof(double));
  assert_memory_equal(&a->cost_after, &b->cost_after, sizeof(double));
  assert_memory_equal(&a->gradient_norm, &b->gradient_norm, sizeof(double));
  assert_memory_equal(a->term, b->term, sizeof(double) * (size_t)a->nterm);
  assert_memory_equal(a->ctrl, b->ctrl, sizeof(sn_real) * (size_t)a->nstep * (size_t)a->nu);
}

// Several plans in a row, each shifted against the one before.
static void compare_plans(const Scene *x, SnBackend *dev, const SnSettings *s, int plans) {
  SnPlanner *a = planner(x, x->cpu, s, 3, NULL), *b = planner(x, dev, s, 3, NULL);
  for (int k = 0; k < plans; ++k) {
    const double time = 3 * k * (double)x->m->opt.timestep;
    const SnPlan want = plan_at(a, time), got = plan_at(b, time);
    assert_int_equal(want.status, SN_PLAN_OK);
    assert_int_equal(want.iterations, s->adam_iterations);
    assert_true(want.cost_after < want.cost_before);
    expect_equal(&want, &got);
  }
  sn_planner_free(a);
  sn_planner_free(b);
}

static void same_plans_as_cpu(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  SnSettings s = settings_of(&x, 20, 5);
  compare_plans(&x, dev, &s, 2);
  s.gradient = SN_GRADIENT_PRODUCTS;
  s.adam_starts = 3;
  compare_plans(&x, dev, &s, 2);
  s.gradient = SN_GRADIENT_SWEEP;
  s.adam_moments = SN_MOMENTS_KEPT;
  compare_plans(&x, dev, &s, 4);
  s.adam_knots = 6;
  s.adam_interpolation = SN_SPLINE_CUBIC;
  s.adam_clip = SN_CLIP_STEP;
  compare_plans(&x, dev, &s, 4);
  s.cfd = SN_CFD_BACKWARD;
  compare_plans(&x, dev, &s, 2);
  sn_backend_free(dev);
  scene_close(&x);
}

// A hand with contacts, some at a distance, too.
static void same_plans_of_a_hand(void **state) {
  (void)state;
  Scene x;
  if (!scene_open(&x, "hand_balls")) skip();
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  SnSettings s = settings_of(&x, 10, 3);
  s.adam_starts = 2;
  compare_plans(&x, dev, &s, 1);
  s.cfd = SN_CFD_BACKWARD;
  s.cfd_reach = 0.02;
  compare_plans(&x, dev, &s, 1);
  sn_backend_free(dev);
  scene_close(&x);
}

// Starts that diverge step back; the others go on.
static void diverging(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  SnSettings s = settings_of(&x, 20, 6);
  s.adam_starts = 4;
  s.noise_scale = 1;
  SnPlanner *free = planner(&x, x.cpu, &s, 3, NULL);
  int differ = 0;
  for (double most = 0.05; most < 3; most *= 1.6) {
    s.max_velocity = most;
    SnPlanner *a = planner(&x, x.cpu, &s, 3, NULL), *b = planner(&x, dev, &s, 3, NULL);
    const SnPlan want = plan_at(a, 0), got = plan_at(b, 0);
    expect_equal(&want, &got);
    sn_planner_reset(free, 3, NULL);
    const SnPlan without = plan_at(free, 0);
    differ += want.status == SN_PLAN_OK && without.cost_after != want.cost_after;
    sn_planner_free(a);
    sn_planner_free(b);
  }
  assert_true(differ > 0);
  sn_planner_free(free);
  sn_backend_free(dev);
  scene_close(&x);
}

// The rule, a weight and a target change between two iterations: the CPU's plan bit for bit, and one graph for all.
static void tuned_live(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  SnSettings s = settings_of(&x, 20, 6);
  SnPlanner *p[2] = {planner(&x, x.cpu, &s, 3, NULL), planner(&x, dev, &s, 3, NULL)};
  const double target[3] = {0.3, 0.1, 1.2};
  SnPlan plan[2];
  start_counting(dev);
  for (int k = 0; k < 2; ++k) {
    SnSettings tuned = s;
    begin_at(p[k], 0);
    // On the CPU a slice ends with an iteration; a device's does when its end has come.
    for (int i = 0; i < 5; ++i) {
      if (i == 1) tuned.adam_rate = 0.1;
      if (i == 2) tuned.adam_clip_norm = 0.01;
      if (i > 0 && i < 3) assert_int_equal(sn_planner_configure(p[k], &tuned, NULL), SN_OK);
      if (i == 3) assert_int_equal(sn_planner_set_weight(p[k], "effort", 0.5, 0, NULL), SN_OK);
      if (i == 4) assert_int_equal(sn_planner_set_target(p[k], "reach", target, 3, NULL), SN_OK);
      assert_false(sn_planner_slice(p[k], k == 0 ? INFINITY : -1));
      assert_int_equal(sn_planner_iterations(p[k]), i + 1);
    }
    plan[k] = finish(p[k]);
  }
  expect_equal(&plan[0], &plan[1]);
  assert_int_equal(count.records, 1);
  assert_int_equal(count.runs, 6);
  stop_counting(dev);
  sn_planner_free(p[0]);
  sn_planner_free(p[1]);
  sn_backend_free(dev);
  scene_close(&x);
}

// Without a deadline nobody waits between two iterations of a plan: one copy in, a graph an iteration.
static void copies_and_graphs(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  SnSettings s = settings_of(&x, 20, 9);
  s.adam_starts = 2;
  SnPlanner *p = planner(&x, dev, &s, 3, NULL);
  plan_at(p, 0);
  start_counting(dev);
  for (int k = 0; k < 5; ++k) plan_at(p, 0.01 * k);
  assert_int_equal(count.records, 0);
  assert_int_equal(count.runs, 5 * 9);
  assert_int_equal(count.copies_in, 5);
  stop_counting(dev);
  sn_planner_free(p);
  sn_backend_free(dev);
  scene_close(&x);
}

// Sessions with their own seeds, weights, numbers of starts and iterations share launches; each plan is that which its
// session makes alone.
static void check_batched(const Scene *x, int n) {
  SnBackend *dev = open_library("emulator_double", 0, NULL), *alone = open_library("emulator_double", 0, NULL);
  SnPlanner *p[MOST], *q[MOST];
  for (int k = 0; k < n; ++k) {
    SnSettings s = settings_of(x, 12 + 3 * (k % 3), 3 + k % 4);
    s.adam_starts = 1 + k % 3;
    if (k % 4 == 3) s.gradient = SN_GRADIENT_PRODUCTS;
    p[k] = planner(x, dev, &s, (uint64_t)(k + 1), NULL);
    q[k] = planner(x, alone, &s, (uint64_t)(k + 1), NULL);
    assert_int_equal(sn_planner_set_weight(p[k], "effort", 0.01 * k, 0, NULL), SN_OK);
    assert_int_equal(sn_planner_set_weight(q[k], "effort", 0.01 * k, 0, NULL), SN_OK);
  }
  for (int round = 0; round < 2; ++round) {
    SnPlan want[MOST];
    for (int k = 0; k < n; ++k) want[k] = plan_at(q[k], 0.02 * round);
    start_counting(dev);
    for (int k = 0; k < n; ++k) begin_at(p[k], 0.02 * round);
    for (int k = 0; k < n; ++k) sn_planner_submit(p[k]);
    for (int k = 0; k < n; ++k) {
      const SnPlan got = finish(p[k]);
      expect_equal(&want[k], &got);
    }
    // As many as the longest plan has iterations, not as all of them together.
    assert_int_equal(count.runs, n > 3 ? 6 : 2 + n);
    stop_counting(dev);
  }
  for (int k = 0; k < n; ++k) {
    sn_planner_free(p[k]);
    sn_planner_free(q[k]);
  }
  sn_backend_free(dev);
  sn_backend_free(alone);
}

static void batched(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  check_batched(&x, 2);
  check_batched(&x, 8);
  scene_close(&x);
}

// Jobs that come and go while another goes on, one iteration a slice.
static void come_and_go(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  SnSettings s = settings_of(&x, 16, 8);
  SnPlanner *p[3], *q[3];
  for (int k = 0; k < 3; ++k) {
    p[k] = planner(&x, dev, &s, (uint64_t)(k + 1), NULL);
    q[k] = planner(&x, x.cpu, &s, (uint64_t)(k + 1), NULL);
    begin_at(p[k], 0);
  }
  sn_planner_slice(p[0], -1);
  sn_planner_submit(p[1]);
  sn_planner_slice(p[0], -1);
  sn_planner_submit(p[2]);
  sn_planner_slice(p[1], -1);
  SnPlan dropped;
  sn_planner_finish(p[2], &dropped);  // what the others' launches did for it counts
  assert_true(dropped.iterations >= 1 && dropped.iterations < 8);
  for (int k = 0; k < 2; ++k) {
    const SnPlan want = plan_at(q[k], 0), got = finish(p[k]);
    expect_equal(&want, &got);
  }
  SnError err = {0};
  SnPlan want;
  SnPlanRequest r = request_at(q[2], 0);
  r.max_iterations = dropped.iterations;
  assert_int_equal(sn_planner_plan(q[2], &r, &want, &err), SN_OK);
  expect_equal(&want, &dropped);
  for (int k = 0; k < 3; ++k) {
    sn_planner_free(p[k]);
    sn_planner_free(q[k]);
  }
  sn_backend_free(dev);
  scene_close(&x);
}

// Two models: each in its own stream, one iteration of the other for each of ours.
static void two_models(void **state) {
  (void)state;
  Scene x[2];
  for (int k = 0; k < 2; ++k) assert_true(scene_open(&x[k], "arm_reach"));
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  SnPlanner *p[2], *q[2];
  x[1].task->options.timestep = 2 * (double)x[0].m->opt.timestep;
  x[1].task->options.has_timestep = true;
  for (int k = 0; k < 2; ++k) {
    SnSettings s = settings_of(&x[k], 16, 4);
    p[k] = planner(&x[k], dev, &s, 1, NULL);
    q[k] = planner(&x[k], x[k].cpu, &s, 1, NULL);
    begin_at(p[k], 0);
  }
  start_counting(dev);
  sn_planner_submit(p[1]);
  for (int k = 0; k < 2; ++k) {
    const SnPlan want = plan_at(q[k], 0), got = finish(p[k]);
    expect_equal(&want, &got);
  }
  assert_int_equal(count.runs, 8);
  int first = 0;
  for (int i = 0; i < 8; ++i) first += count.stream[i] == count.stream[0];
  assert_int_equal(first, 4);
  assert_ptr_not_equal(count.stream[0], count.stream[1]);
  stop_counting(dev);
  for (int k = 0; k < 2; ++k) {
    sn_planner_free(p[k]);
    sn_planner_free(q[k]);
  }
  sn_backend_free(dev);
  for (int k = 0; k < 2; ++k) scene_close(&x[k]);
}

// ---- deadlines ----

// A clock on which an iteration takes `step` seconds, whatever else is asked for.
typedef struct StepClock {
  double now, step;
} StepClock;

static double step_now(void *context) { return ((StepClock *)context)->now; }

static StepClock *stepped;
static void step_run(SnDevice *d, SnStream *s, SnGraph *g) {
  stepped->now += stepped->step;
  count.run(d, s, g);
}

static SnPlan plan_until(SnPlanner *p, double time, double deadline) {
  SnError err = {0};
  SnPlan plan;
  SnPlanRequest r = request_at(p, time);
  r.deadline = deadline;
  if (sn_planner_plan(p, &r, &plan, &err) != SN_OK) fail_msg("%s", err.text);
  return plan;
}

static void deadlines(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  StepClock time = {0, 1};
  const SnClock clock = {step_now, &time};
  SnSettings s = settings_of(&x, 16, 0);
  SnPlanner *p = planner(&x, dev, &s, 1, &clock);
  start_counting(dev);
  stepped = &time;
  ((Opened *)dev)->engine->device->run = step_run;
  // The first iteration is tried whatever it takes; from then on it is known.
  SnPlan plan = plan_until(p, 0, 0.5);
  assert_int_equal(plan.iterations, 1);
  assert_false(plan.deadline_met);
  for (int n = 1; n < 6; ++n) {
    const double from = time.now;
    plan = plan_until(p, 0, from + n + 0.5);
    assert_int_equal(plan.iterations, n);
    assert_true(plan.deadline_met);
    assert_true(time.now == from + n);
  }
  // No time: nothing is begun.
  plan = plan_until(p, 0, time.now);
  assert_int_equal(plan.iterations, 0);
  assert_int_equal(plan.status, SN_PLAN_WARM_START);
  // An iteration that took long once does not stop plans for ever.
  time.step = 100;
  plan = plan_until(p, 0, time.now + 10);
  assert_int_equal(plan.iterations, 10 / 100 + 1);
  time.step = 1;
  int plans = 0;
  do plan = plan_until(p, 0, time.now + 10);
  while (plan.iterations == 0 && ++plans < 100);
  assert_true(plans > 5 && plans < 40);
  assert_int_equal(plan.iterations, 10);
  stop_counting(dev);
  sn_planner_free(p);
  sn_backend_free(dev);
  scene_close(&x);
}

// What a plan with a deadline came to is what that number of iterations gives.
static void deadline_repeats(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  CountingClock counting = {0};
  const SnClock clock = counting_clock(&counting);
  SnSettings s = settings_of(&x, 16, 0);
  s.adam_starts = 2;
  for (int until = 8; until < 60; until += 13) {
    SnPlanner *a = planner(&x, dev, &s, 1, &clock), *b = planner(&x, x.cpu, &s, 1, NULL);
    const SnPlan got = plan_until(a, 0, (double)atomic_load(&counting.reads) + until);
    SnError err = {0};
    SnPlan want;
    SnPlanRequest r = request_at(b, 0);
    r.max_iterations = got.iterations;
    assert_true(got.iterations > 0);
    assert_int_equal(sn_planner_plan(b, &r, &want, &err), SN_OK);
    expect_equal(&want, &got);
    sn_planner_free(a);
    sn_planner_free(b);
  }
  sn_backend_free(dev);
  scene_close(&x);
}

// ---- loss ----

// The device is lost at every launch and run in turn: whatever came of a plan, the next one is made by the CPU.
static void lost(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  const SnSettings s = settings_of(&x, 10, 4);
  bool done = false;
  int n = 0;
  while (!done) {
    char fault[32], text[300] = "";
    snprintf(fault, sizeof fault, "launch:%d", ++n);
    SnBackend *dev = open_library("emulator_double", 0, fault);
    SnError err = {0};
    SnPlannerDef def = sn_default_planner_def();
    def.model = x.o.m;
    def.task = x.task;
    def.backend = dev;
    def.fallback = x.cpu;
    def.settings = s;
    SnPlanner *p[2] = {sn_planner_create(&def, &err), sn_planner_create(&def, &err)};
    SnPlanner *q = planner(&x, x.cpu, &s, 0, NULL);
    for (int k = 0; k < 2; ++k) begin_at(p[k], 0);
    sn_planner_submit(p[1]);
    for (int k = 0; k < 2; ++k) {
      const SnPlan got = finish(p[k]);
      assert_int_equal(got.status, SN_PLAN_OK);
      assert_int_equal(got.iterations, 4);
    }
    done = !dev->lost(dev, text, sizeof text);
    assert_true(done || text[0] != 0);
    const SnPlan want = plan_at(q, 0), got = plan_at(p[1], 0);
    assert_int_equal(got.iterations, want.iterations);
    assert_true(isfinite(got.cost_after));
    for (int k = 0; k < 2; ++k) sn_planner_free(p[k]);
    sn_planner_free(q);
    sn_backend_free(dev);
    assert_true(n < 1000);
  }
  printf("%d launches and runs\n", n - 1);
  assert_true(n > 4);
  scene_close(&x);
}

// ---- memory ----

// Plans in thousands take no memory: neither the budget's, nor the device's, nor graphs.
static void no_growth(void **state) {
  (void)state;
  enum { PLANS = 10000 };
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  SnDevice *device = ((Opened *)dev)->engine->device;
  const SnSettings s = settings_of(&x, 2, 1);
  SnPlanner *p = planner(&x, dev, &s, 1, NULL);
  plan_at(p, 0);
  SnBackendMemory before, after;
  dev->memory(dev, &before);
  const size_t free_before = device->memory_free(device);
  start_counting(dev);
  for (int k = 0; k < PLANS; ++k) assert_int_equal(plan_at(p, 0).iterations, 1);
  dev->memory(dev, &after);
  assert_int_equal(count.runs, PLANS);
  assert_int_equal(count.records, 0);
  stop_counting(dev);
  assert_true(before.used == after.used && before.used > 0);
  assert_true(device->memory_free(device) == free_before);
  sn_planner_free(p);
  dev->memory(dev, &after);
  assert_true(after.used == 0);
  sn_backend_free(dev);
  scene_close(&x);
}

// Sessions come, grow and go while others stay; at the end all is given back. What does not fit is refused, and the
// planner goes on as it was.
static void rooms(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  SnSettings s = settings_of(&x, 16, 3);
  SnPlanner *q = planner(&x, x.cpu, &s, 1, NULL), *p = planner(&x, dev, &s, 1, NULL);
  for (int k = 0; k < 6; ++k) {
    s.adam_starts = 1 + k;
    SnPlanner *other = planner(&x, dev, &s, 5, NULL);
    begin_at(p, 0.02 * k);
    begin_at(other, 0);
    sn_planner_submit(p);
    sn_planner_submit(other);
    if (k % 2) {
      finish(other);
      sn_planner_free(other);
    }
    const SnPlan want = plan_at(q, 0.02 * k), got = finish(p);
    expect_equal(&want, &got);
    if (k % 2 == 0) sn_planner_free(other);
    s.adam_starts = 2 + k;
    assert_int_equal(sn_planner_configure(p, &s, NULL), SN_OK);
    assert_int_equal(sn_planner_configure(q, &s, NULL), SN_OK);
  }
  sn_planner_free(p);
  SnBackendMemory memory;
  dev->memory(dev, &memory);
  assert_true(memory.used == 0);
  sn_planner_free(q);
  sn_backend_free(dev);
  scene_close(&x);
}

// Floats: what a refinement comes to, against the CPU in double. Adam moves a control by its rate also where its
// derivative is small, and rounding then says in which direction: iterates part, what they gain does less.
static void floats(void **state) {
  (void)state;
  const struct {
    const char *task;
    int horizon, iterations;
    double most;  // difference of what was gained, as a part of it
  } table[] = {{"arm_reach", 20, 8, 0.05}, {"hand_balls", 10, 3, 0.05}};
  SnBackend *dev = open_library("emulator", 0, NULL);
  for (size_t k = 0; k < sizeof table / sizeof *table; ++k) {
    Scene x;
    if (!scene_open(&x, table[k].task)) continue;
    const SnSettings s = settings_of(&x, table[k].horizon, table[k].iterations);
    SnPlanner *a = planner(&x, x.cpu, &s, 1, NULL), *b = planner(&x, dev, &s, 1, NULL);
    const SnPlan want = plan_at(a, 0), got = plan_at(b, 0);
    const double gain = want.cost_before - want.cost_after;
    const double off = fabs((got.cost_before - got.cost_after) - gain) / gain;
    printf("%s: %d iterations gain %.4g, in floats %.2g of it otherwise\n", table[k].task, want.iterations, gain, off);
    assert_true(off > 0 && off < table[k].most);
    sn_planner_free(a);
    sn_planner_free(b);
    scene_close(&x);
  }
  sn_backend_free(dev);
}

// Products by a scan give a plan as good as those by a kernel, to rounding.
static void scanned(void **state) {
  (void)state;
  Scene x;
  SnError err = {0};
  assert_true(scene_open(&x, "arm_reach"));
  SnBackendOptions options = sn_default_backend_options();
  options.folder = SN_TEST_LIBRARIES;
  options.chain = "scan";
  SnBackend *dev = sn_backend_open("emulator_double", NULL, &options, &err);
  if (!dev) fail_msg("%s", err.text);
  SnSettings s = settings_of(&x, 20, 5);
  s.gradient = SN_GRADIENT_PRODUCTS;
  s.adam_starts = 2;
  SnPlanner *a = planner(&x, x.cpu, &s, 1, NULL), *b = planner(&x, dev, &s, 1, NULL);
  const SnPlan want = plan_at(a, 0), got = plan_at(b, 0);
  assert_int_equal(got.iterations, 5);
  assert_true(got.cost_before == want.cost_before);
  assert_true(fabs(got.cost_after - want.cost_after) < 1e-9 * want.cost_after);
  assert_true(got.gradient_norm != want.gradient_norm);
  sn_planner_free(a);
  sn_planner_free(b);
  sn_backend_free(dev);
  scene_close(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(same_plans_as_cpu),
      cmocka_unit_test(same_plans_of_a_hand),
      cmocka_unit_test(diverging),
      cmocka_unit_test(tuned_live),
      cmocka_unit_test(copies_and_graphs),
      cmocka_unit_test(batched),
      cmocka_unit_test(come_and_go),
      cmocka_unit_test(two_models),
      cmocka_unit_test(deadlines),
      cmocka_unit_test(deadline_repeats),
      cmocka_unit_test(lost),
      cmocka_unit_test(rooms),
      cmocka_unit_test(floats),
      cmocka_unit_test(scanned),
      cmocka_unit_test(no_growth),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
