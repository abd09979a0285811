// A backend in a library, from the program's side, on the emulator: what is refused and how, rollouts against those of
// the CPU, slices of time, memory, faults.
#include "tests/cuda/plugin_rig.h"

static const SnClock *monotonic(void) {
  static SnClock clock;
  clock = sn_clock_monotonic();
  return &clock;
}

// ---- opening ----

static void expect_refusal(const char *name, const char *folder, int device, SnCode code, const char *words) {
  SnError err = {0};
  SnBackendOptions options = sn_default_backend_options();
  options.folder = folder;
  options.device = device;
  SnBackend *b = sn_backend_open(name, NULL, &options, &err);
  if (b) fail_msg("'%s' was opened", name);
  if (!strstr(err.text, words)) fail_msg("%s: '%s' does not say '%s'", name, err.text, words);
  assert_int_equal(err.code, code);
}

static void refusals(void **state) {
  (void)state;
  expect_refusal("tpu", "", 0, SN_ERR_NOT_FOUND, "there is no backend 'tpu'; known are cpu, cuda");
  expect_refusal("../evil", "", 0, SN_ERR_NOT_FOUND, "there is no backend");
  expect_refusal("cuda", "/nowhere", 0, SN_ERR_NOT_FOUND,
                 "'cuda': its library cannot be opened: /nowhere/libsinew_cuda.so");
  expect_refusal("cuda", SN_TEST_STRANGE_LIBRARIES, 0, SN_ERR_UNSUPPORTED, "is of version 1001 of the interface");
  expect_refusal("cuda_double", SN_TEST_STRANGE_LIBRARIES, 0, SN_ERR_FORMAT, "it has no sn_plugin_open");
  expect_refusal("emulator_double", SN_TEST_LIBRARIES, 7, SN_ERR_NOT_FOUND, "'emulator_double': ");
  const char *const *names = sn_backend_names();
  assert_string_equal(names[0], "cpu");
  assert_true(names == sn_backend_names());
  for (int i = 1; names[i]; ++i) assert_string_equal(names[i], "cuda");
}

static void description(void **state) {
  (void)state;
  char text[300];
  SnBackend *b = open_library("emulator_double", 0, NULL);
  b->describe(b, text, sizeof text);
  printf("%s\n", text);
  assert_non_null(strstr(text, "emulator"));
  assert_non_null(strstr(text, "double"));
  assert_string_equal(b->name, "emulator_double");
  assert_false(b->lost(b, text, sizeof text));
  SnBackendMemory memory;
  b->memory(b, &memory);
  assert_int_equal(memory.used, 0);
  assert_true(memory.budget > 0 && memory.budget < memory.total);
  sn_backend_free(b);
}

// ---- rollouts ----

// The same bits as the CPU: the same text in the same number type. Noise is of a seed, contacts as they are or from a
// distance in the steps themselves.
static void same_as_cpu(const char *name, int nstep) {
  Scene x;
  if (!scene_open(&x, name)) return;
  SnBackend *b = open_library("emulator_double", 0, NULL);
  const SnSoft soft = sn_soft_settings(&x.task->settings, NULL, true);
  for (int softened = 0; softened < 2; ++softened) {
    Rollouts cpu = rollouts_make(&x, nstep, 6), device = rollouts_make(&x, nstep, 6);
    rollouts_noisy(&cpu);
    rollouts_noisy(&device);
    if (softened) cpu.batch.start.soft = device.batch.start.soft = &soft;
    rollouts_run(&x, x.cpu, &cpu);
    rollouts_run(&x, b, &device);
    for (int i = 1; i < 6; ++i) assert_true(isfinite(cpu.batch.cost[i]) && cpu.batch.cost[i] != cpu.batch.cost[0]);
    rollouts_equal(&cpu, &device);
    assert_memory_equal(cpu.batch.warn, device.batch.warn, 6 * sizeof(int));
    // Another seed is other noise, the same on both; candidate 0 has none.
    const double first = device.batch.cost[0], second = device.batch.cost[1];
    cpu.noise.seed = device.noise.seed = 12;
    rollouts_run(&x, x.cpu, &cpu);
    rollouts_run(&x, b, &device);
    assert_true(device.batch.cost[0] == first && device.batch.cost[1] != second);
    rollouts_equal(&cpu, &device);
    rollouts_free(&cpu);
    rollouts_free(&device);
  }
  sn_backend_free(b);
  scene_close(&x);
}

static void arm_same_as_cpu(void **state) {
  (void)state;
  same_as_cpu("arm_reach", 100);
}

static void hand_same_as_cpu(void **state) {
  (void)state;
  same_as_cpu("hand_balls", 48);
}

// Nor does it matter how much fast memory there is, how many blocks run at once and how many candidates a block takes.
static void shapes_do_not_matter(void **state) {
  (void)state;
  static const char *const faults[] = {"fast:65536", "fast:6000", "blocks:3"};
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  Rollouts cpu = rollouts_make(&x, 30, 40), device = rollouts_make(&x, 30, 40);
  rollouts_noisy(&cpu);
  rollouts_noisy(&device);
  rollouts_run(&x, x.cpu, &cpu);
  for (int k = 0; k < 3; ++k) {
    SnBackend *b = open_library("emulator_double", 0, faults[k]);
    rollouts_clear(&device);
    rollouts_run(&x, b, &device);
    rollouts_equal(&cpu, &device);
    sn_backend_free(b);
  }
  rollouts_free(&cpu);
  rollouts_free(&device);
  scene_close(&x);
}

// Two plans of a planner on the backend, without a deadline, into ctrl (2, rows).
static size_t make_plans(const Scene *x, SnBackend *b, int planner, sn_real *ctrl, double cost[2]) {
  SnError err = {0};
  size_t rows = 0;
  SnPlannerDef def = sn_default_planner_def();
  def.model = x->o.m;
  def.task = x->task;
  def.backend = b;
  def.settings = x->task->settings;
  def.settings.planner = planner;
  def.settings.horizon = 32;
  def.settings.candidates = 20;
  def.settings.iterations = 2;
  def.settings.adam_iterations = 4;
  def.settings.adam_starts = 2;
  def.seed = 5;
  SnPlanner *p = sn_planner_create(&def, &err);
  if (!p) fail_msg("%s", err.text);
  const SnStart *s = sn_planner_initial(p);
  for (int k = 0; k < 2; ++k) {
    SnPlan plan;
    SnPlanRequest q = sn_default_plan_request();
    q.time = 8 * k * (double)x->m->opt.timestep;
    q.qpos = s->qpos;
    q.qvel = s->qvel;
    q.act = s->act;
    if (sn_planner_plan(p, &q, &plan, &err) != SN_OK) fail_msg("%s", err.text);
    const size_t n = (size_t)plan.nstep * (size_t)plan.nu;
    memcpy(ctrl + rows, plan.ctrl, sizeof *ctrl * n);
    rows += n;
    cost[k] = plan.cost_after;
    assert_string_equal(plan.backend, b->name);
    assert_false(plan.device_lost);
  }
  sn_planner_free(p);
  return rows;
}

// Whole plans: the same bits by both planners.
static void plans_are_the_same(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *b = open_library("emulator_double", 0, NULL);
  for (int planner = SN_PLANNER_SAMPLING; planner <= SN_PLANNER_ADAM; ++planner) {
    sn_real ctrl[2][4096];
    double cost[2][2];
    const size_t rows = make_plans(&x, x.cpu, planner, ctrl[0], cost[0]);
    assert_true(rows < 4096);
    assert_int_equal(make_plans(&x, b, planner, ctrl[1], cost[1]), rows);
    assert_memory_equal(ctrl[0], ctrl[1], sizeof(sn_real) * rows);
    assert_memory_equal(cost[0], cost[1], sizeof cost[0]);
  }
  sn_backend_free(b);
  scene_close(&x);
}

// How far floats are from doubles: the largest relative difference of a candidate's cost. Where bodies touch, paths
// part for good once a contact begins a step earlier or later, so the table is of whole rollouts and not of steps.
typedef struct FloatLimit {
  const char *task;
  int nstep;
  double limit;
} FloatLimit;

static void floats_are_near(void **state) {
  (void)state;
  static const FloatLimit table[] = {
      {"arm_reach", 16, 5e-6},  {"arm_reach", 64, 5e-6},  {"arm_reach", 256, 1e-5},
      {"hand_pose", 16, 5e-6},  {"hand_pose", 64, 5e-6},  {"hand_pose", 256, 5e-5},
      {"hand_balls", 16, 5e-6}, {"hand_balls", 64, 5e-5}, {"hand_balls", 256, 1e-3},
  };
  SnBackend *b = open_library("emulator", 0, NULL);
  char text[300];
  b->describe(b, text, sizeof text);
  assert_non_null(strstr(text, "float"));
  for (size_t k = 0; k < sizeof table / sizeof table[0]; ++k) {
    Scene x;
    if (!scene_open(&x, table[k].task)) continue;
    Rollouts cpu = rollouts_make(&x, table[k].nstep, 4), device = rollouts_make(&x, table[k].nstep, 4);
    rollouts_noisy(&cpu);
    rollouts_noisy(&device);
    rollouts_run(&x, x.cpu, &cpu);
    rollouts_run(&x, b, &device);
    double worst = 0;
    for (int i = 0; i < 4; ++i)
      worst = fmax(worst, fabs(device.batch.cost[i] - cpu.batch.cost[i]) / fabs(cpu.batch.cost[i]));
    printf("%s, %d steps: costs in float differ by %.2e, allowed are %.0e\n", table[k].task, table[k].nstep, worst,
           table[k].limit);
    assert_true(worst > 0 && worst < table[k].limit);
    rollouts_free(&cpu);
    rollouts_free(&device);
    scene_close(&x);
  }
  sn_backend_free(b);
}

// ---- time ----

static SnBackendModel *load(SnBackend *b, const Scene *x, int nstep) {
  SnError err = {0};
  SnBackendModel *d = b->load(b, x->m, x->cost, nstep, &err);
  if (!d) fail_msg("%s", err.text);
  return d;
}

static bool run_until(SnBackend *b, SnBackendModel *d, Rollouts *r, CountingClock *count, double more) {
  const SnClock clock = counting_clock(count);
  return b->rollouts(b, d, &r->batch, &clock, (double)atomic_load(&count->reads) + more);
}

// Rollouts that are interrupted, abandoned, taken up again between those of another session.
static void slices(void **state) {
  (void)state;
  enum { STEPS = 60, COUNT = 9 };
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *b = open_library("emulator_double", 0, NULL);
  Rollouts want = rollouts_make(&x, STEPS, COUNT),
           r[2] = {rollouts_make(&x, STEPS, COUNT), rollouts_make(&x, STEPS, COUNT)};
  rollouts_noisy(&want);
  rollouts_run(&x, b, &want);
  SnBackendModel *d[2] = {load(b, &x, STEPS), load(b, &x, STEPS)};
  CountingClock count = {0};
  for (int k = 0; k < 2; ++k) rollouts_noisy(&r[k]);
  // No time at all: nothing is done.
  assert_false(run_until(b, d[0], &r[0], &count, 0));
  for (int i = 0; i < COUNT; ++i) assert_int_equal(r[0].batch.done[i], 0);
  // A first slice is one step, which takes a second; then half of the time that is left.
  bool done[2] = {false, false};
  int calls = 0;
  for (; !done[0] || !done[1]; ++calls)
    for (int k = 0; k < 2; ++k)
      if (!done[k]) done[k] = run_until(b, d[k], &r[k], &count, 4 + k);
  assert_true(calls > 3);
  for (int k = 0; k < 2; ++k) rollouts_equal(&want, &r[k]);
  // Another batch after one that was abandoned half way. (New sessions have not measured yet what a step takes.)
  for (int k = 0; k < 2; ++k) {
    b->unload(b, d[k]);
    d[k] = load(b, &x, STEPS);
  }
  rollouts_clear(&r[0]);
  assert_false(run_until(b, d[0], &r[0], &count, 4));
  b->abandon(b, d[0]);
  rollouts_clear(&r[0]);
  r[0].batch.first = 3;
  r[0].batch.count = 4;
  assert_true(b->rollouts(b, d[0], &r[0].batch, monotonic(), INFINITY));
  assert_memory_equal(want.batch.cost + 3, r[0].batch.cost, 4 * sizeof(double));
  // A session goes while its batch is under way; the other is not touched.
  b->unload(b, d[0]);
  d[0] = load(b, &x, STEPS);
  rollouts_clear(&r[0]);
  rollouts_clear(&r[1]);
  assert_false(run_until(b, d[1], &r[1], &count, 4));
  assert_false(run_until(b, d[0], &r[0], &count, 4));
  b->unload(b, d[0]);
  assert_true(b->rollouts(b, d[1], &r[1].batch, monotonic(), INFINITY));
  rollouts_equal(&want, &r[1]);
  b->unload(b, d[1]);
  for (int k = 0; k < 2; ++k) rollouts_free(&r[k]);
  rollouts_free(&want);
  sn_backend_free(b);
  scene_close(&x);
}

// ---- memory ----

static size_t used(SnBackend *b) {
  SnBackendMemory m;
  b->memory(b, &m);
  return m.used;
}

static void sessions_share_a_model(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *b = open_library("emulator_double", 0, NULL);
  SnBackendModel *first = load(b, &x, 16);
  const size_t one = used(b);
  SnBackendModel *second = load(b, &x, 16);
  const size_t two = used(b);
  // Another time step is another model.
  SnModel *other = sn_model_copy(x.m, NULL);
  other->opt.timestep *= SN_R(0.5);
  SnModel *mine = sn_model_copy(other, NULL);
  SnError err = {0};
  SnBackendModel *third = b->load(b, mine, x.cost, 16, &err);
  if (!third) fail_msg("%s", err.text);
  const size_t three = used(b);
  printf("one session takes %zu bytes, a second %zu more, another model %zu more\n", one, two - one, three - two);
  assert_true(two - one < one / 4 && three - two > one / 2);
  b->unload(b, first);
  assert_true(used(b) < three);
  b->unload(b, second);
  b->unload(b, third);
  assert_int_equal(used(b), 0);
  sn_model_free(other);
  sn_model_free(mine);
  sn_backend_free(b);
  scene_close(&x);
}

// Batches that do not fit at once run in groups; what fits not even so is refused, and what there was stays.
static void budget(void **state) {
  (void)state;
  enum { STEPS = 20, COUNT = 300 };
  Scene x;
  SnError err = {0};
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *b = open_library("emulator_double", 0, NULL);
  Rollouts want = rollouts_make(&x, STEPS, COUNT), got = rollouts_make(&x, STEPS, COUNT);
  rollouts_noisy(&want);
  rollouts_noisy(&got);
  rollouts_run(&x, b, &want);
  // What a session takes with room for 1 and for 150 rollouts.
  SnBackendModel *d = load(b, &x, STEPS);
  const size_t small = used(b);
  assert_int_equal(b->need_rollouts(b, d, COUNT / 2, &err), SN_OK);
  const size_t half = used(b);
  b->unload(b, d);
  sn_backend_free(b);

  b = open_library("emulator_double", (double)half + 1000, NULL);
  d = load(b, &x, STEPS);
  assert_int_equal(b->need_rollouts(b, d, COUNT, &err), SN_OK);
  assert_true(used(b) <= half + 1000);
  assert_true(b->rollouts(b, d, &got.batch, monotonic(), INFINITY));
  rollouts_equal(&want, &got);
  b->unload(b, d);
  sn_backend_free(b);

  b = open_library("emulator_double", (double)small + 1000, NULL);
  d = load(b, &x, STEPS);
  assert_int_equal(b->need_rollouts(b, d, COUNT, &err), SN_ERR_LIMIT);
  printf("%s\n", err.text);
  assert_non_null(strstr(err.text, "emulator: model 'arm_reach' with horizon 20 needs "));
  assert_non_null(strstr(err.text, " rollouts at once, the budget is "));
  assert_non_null(strstr(err.text, " are taken; fewer of them or a shorter horizon need less"));
  assert_int_equal(used(b), small);
  rollouts_clear(&got);
  assert_true(b->rollouts(b, d, &got.batch, monotonic(), INFINITY));  // one by one
  rollouts_equal(&want, &got);
  b->unload(b, d);
  sn_backend_free(b);

  b = open_library("emulator_double", 1000, NULL);
  assert_null(b->load(b, x.m, x.cost, STEPS, &err));
  printf("%s\n", err.text);
  assert_int_equal(err.code, SN_ERR_LIMIT);
  assert_non_null(strstr(err.text, "emulator: model 'arm_reach' takes "));
  assert_non_null(strstr(err.text, ", the budget is 1.0 kB of which 0 bytes are taken"));
  assert_int_equal(used(b), 0);
  sn_backend_free(b);
  rollouts_free(&want);
  rollouts_free(&got);
  scene_close(&x);
}

// ---- faults ----

// Every allocation fails once: a text or less at once, nothing leaks, and what could be loaded works.
static void allocations_fail(void **state) {
  (void)state;
  enum { STEPS = 12, COUNT = 7 };
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *b = open_library("emulator_double", 0, NULL);
  Rollouts want = rollouts_make(&x, STEPS, COUNT), got = rollouts_make(&x, STEPS, COUNT);
  rollouts_run(&x, b, &want);
  sn_backend_free(b);
  // Some failures are made up for by less memory, so the end is where many in a row change nothing.
  int failed = 0, good = 0;
  for (int n = 1; good < 20; ++n) {
    bool all = false;
    char fault[40];
    SnError err = {0};
    snprintf(fault, sizeof fault, "alloc:%d", n);
    b = open_library("emulator_double", 0, fault);
    SnBackendModel *d = b->load(b, x.m, x.cost, STEPS, &err);
    if (d) {
      const size_t before = used(b);
      SnCode code = b->need_rollouts(b, d, COUNT, &err);
      if (code != SN_OK) assert_int_equal(used(b), before);
      if (code == SN_OK) code = b->need_gradients(b, d, 3, &err);
      if (code == SN_OK) code = b->need_refine(b, d, 2, &err);
      all = code == SN_OK;
      rollouts_clear(&got);
      assert_true(b->rollouts(b, d, &got.batch, monotonic(), INFINITY));
      rollouts_equal(&want, &got);
      b->unload(b, d);
    }
    good = all ? good + 1 : 0;
    if (!all) {
      ++failed;
      assert_int_equal(err.code, SN_ERR_LIMIT);
      assert_non_null(strstr(err.text, "the device has no memory for it"));
    }
    assert_int_equal(used(b), 0);
    sn_backend_free(b);
  }
  printf("%d allocations failed\n", failed);
  assert_true(failed >= 10);
  rollouts_free(&want);
  rollouts_free(&got);
  scene_close(&x);
}

// The device is lost at the n-th launch: all operations return at once, and all memory is given back.
static void launches_fail(void **state) {
  (void)state;
  enum { STEPS = 12, COUNT = 3 };
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  Rollouts r = rollouts_make(&x, STEPS, COUNT);
  for (int n = 1; n <= 3; ++n) {
    char fault[40], text[300] = "";
    SnError err = {0};
    CountingClock count = {0};
    snprintf(fault, sizeof fault, "launch:%d", n);
    SnBackend *b = open_library("emulator_double", 0, fault);
    SnBackendModel *d = load(b, &x, STEPS), *other = load(b, &x, STEPS);
    rollouts_clear(&r);
    assert_int_equal(b->need_rollouts(b, d, COUNT, &err), SN_OK);
    while (!b->lost(b, text, sizeof text)) assert_false(run_until(b, d, &r, &count, 3));
    printf("%s\n", text);
    assert_non_null(strstr(text, "launch"));
    for (int i = 0; i < COUNT; ++i) assert_int_equal(r.batch.done[i], 0);
    // Everything else, too.
    assert_false(b->rollouts(b, other, &r.batch, monotonic(), INFINITY));
    b->abandon(b, d);
    assert_int_equal(b->need_rollouts(b, other, 50, &err), SN_ERR_STATE);
    assert_non_null(strstr(err.text, "the device is lost: "));
    assert_null(b->load(b, x.m, x.cost, 2 * STEPS, &err));
    b->update(b, d);
    b->unload(b, d);
    b->unload(b, other);
    sn_backend_free(b);
  }
  rollouts_free(&r);
  scene_close(&x);
}

// ---- what changes live, and what overflows ----

static const char *const pile_xml =
    "<mujoco><option timestep='0.005'/><worldbody><geom type='plane' size='1 1 .1'/>"
    "<body name='goal' mocap='true' pos='.3 0 .2'/>"
    "<body name='ball' pos='0 0 .099'><freejoint/><geom size='.1' mass='1'/></body>"
    "<body pos='.4 0 .099'><freejoint/><geom size='.1' mass='1'/></body>"
    "<body pos='.8 0 .099'><freejoint/><geom size='.1' mass='1'/></body>"
    "<body name='cart' pos='0 1 .5'><joint name='rail' type='slide' axis='1 0 0'/><geom size='.05' mass='1'/></body>"
    "</worldbody><actuator><motor joint='rail' ctrlrange='-5 5' ctrllimited='true'/></actuator></mujoco>";

static const char *const pile_task =
    "model: pile.xml\n"
    "settings: {horizon: 20}\n"
    "terms:\n"
    "  - {name: reach, residual: {position: {body: cart}}, target: {position: {body: goal}}, norm: squared, weight: "
    "1}\n"
    "  - {name: ball, residual: {position: {body: ball}}, target: {value: [0, 0, 0.3]}, norm: squared, weight: 2, "
    "terminal: 1}\n";

// Weights, and targets that follow an element or do not.
static void live_changes(void **state) {
  (void)state;
  enum { STEPS = 20, COUNT = 5 };
  Scene x;
  scene_parse(&x, pile_xml, pile_task);
  SnError err = {0};
  SnBackend *b = open_library("emulator_double", 0, NULL);
  Rollouts cpu = rollouts_make(&x, STEPS, COUNT), device = rollouts_make(&x, STEPS, COUNT);
  rollouts_noisy(&cpu);
  rollouts_noisy(&device);
  SnBackendModel *d = load(b, &x, STEPS), *other = load(b, &x, STEPS);
  const double place[3] = {0.5, 0.5, 0.5};
  double last = -1;
  for (int k = 0; k < 4; ++k) {
    if (k == 1) assert_int_equal(sn_cost_set_weight(x.cost, 1, 3, 0, &err), SN_OK);
    if (k == 2) assert_int_equal(sn_cost_set_target(x.cost, 0, place, 3, &err), SN_OK);
    if (k == 3) assert_int_equal(sn_cost_set_target(x.cost, 0, NULL, 0, &err), SN_OK);
    sn_cost_schedule(x.cost, 0, (double)x.m->opt.timestep, STEPS + 1, cpu.target);
    memcpy(device.target, cpu.target, sizeof *cpu.target * (STEPS + 1) * (size_t)x.cost->ntarget);
    b->update(b, d);
    rollouts_run(&x, x.cpu, &cpu);
    rollouts_clear(&device);
    assert_true(b->rollouts(b, d, &device.batch, monotonic(), INFINITY));
    rollouts_equal(&cpu, &device);
    assert_true(cpu.batch.cost[0] != last);
    last = cpu.batch.cost[0];
  }
  b->unload(b, d);
  b->unload(b, other);
  assert_int_equal(used(b), 0);
  rollouts_free(&cpu);
  rollouts_free(&device);
  sn_backend_free(b);
  scene_close(&x);
}

// Contacts that do not fit are a status on both sides.
static void overflow_is_told(void **state) {
  (void)state;
  enum { STEPS = 5, COUNT = 2 };
  Scene x;
  scene_parse(&x, pile_xml, pile_task);
  const SnModel *m = x.m;
  SnModel *narrow = sn_model_copy(m, NULL);
  SnBackend *b = open_library("emulator_double", 0, NULL);
  Rollouts cpu = rollouts_make(&x, STEPS, COUNT), device = rollouts_make(&x, STEPS, COUNT);
  for (int k = 0; k < 2; ++k) {
    rollouts_run(&x, x.cpu, &cpu);
    rollouts_run(&x, b, &device);
    rollouts_equal(&cpu, &device);
    for (int i = 0; i < COUNT; ++i) {
      assert_int_equal(cpu.batch.warn[i] & SN_WARN_CONTACT_FULL, k ? SN_WARN_CONTACT_FULL : 0);
      assert_int_equal(device.batch.warn[i], cpu.batch.warn[i]);
    }
    narrow->nconmax = 1;
    x.m = narrow;
  }
  rollouts_free(&cpu);
  rollouts_free(&device);
  sn_backend_free(b);
  sn_model_free(narrow);
  scene_close(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(refusals),
                                     cmocka_unit_test(description),
                                     cmocka_unit_test(arm_same_as_cpu),
                                     cmocka_unit_test(hand_same_as_cpu),
                                     cmocka_unit_test(shapes_do_not_matter),
                                     cmocka_unit_test(plans_are_the_same),
                                     cmocka_unit_test(floats_are_near),
                                     cmocka_unit_test(slices),
                                     cmocka_unit_test(sessions_share_a_model),
                                     cmocka_unit_test(budget),
                                     cmocka_unit_test(allocations_fail),
                                     cmocka_unit_test(launches_fail),
                                     cmocka_unit_test(live_changes),
                                     cmocka_unit_test(overflow_is_told)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
