// What sessions of a device share and what may move under them: memory of blocks and the pool, streams of several
// models, copies that are on their way, warnings that pass through many launches, profiles, budgets. Whatever happens
// between two calls of a session, it gets what the CPU gives.
#include "cuda/host/gradient_memory_private.h"
#include "tests/cuda/host/multistart_fixture.h"

enum { STEPS = 20, ITEMS = 3 };

// The model that was loaded last.
static SnDeviceModel *model_of(SnBackend *b) { return device_host_of(b)->models; }

// ---- gradients: a batch of the initial state, with controls of their own ----

typedef struct Gradients {
  SnGradientBatch batch;
  SnGradient item[ITEMS];
  sn_real *ctrl[ITEMS], *target;
  sn_real *bar[ITEMS];  // of controls
  int nu;
} Gradients;

static Gradients *gradients_make(const Scene *x, int steps) {
  Gradients *g = calloc(1, sizeof *g);
  const int nu = g->nu = x->m->nu;
  g->target = calloc((size_t)(steps + 1) * (size_t)x->cost->ntarget + 1, sizeof *g->target);
  sn_cost_schedule(x->cost, 0, (double)x->m->opt.timestep, steps + 1, g->target);
  for (int k = 0; k < ITEMS; ++k) {
    g->ctrl[k] = calloc((size_t)(steps * nu) + 1, sizeof *g->ctrl[k]);
    g->bar[k] = calloc((size_t)(steps * nu) + 1, sizeof *g->bar[k]);
    for (int i = 0; i < steps * nu; ++i) g->ctrl[k][i] = SN_R(0.2) + SN_R(0.1) * sn_sin((sn_real)(i + 5 * k));
    g->item[k] = (SnGradient){.state = *sn_planner_initial(x->p),
                              .ctrl = g->ctrl[k],
                              .target = g->target,
                              .nstep = steps,
                              .max_velocity = 1e3,
                              .ctrl_bar = g->bar[k]};
  }
  g->batch = (SnGradientBatch){.settings = sn_default_gradient_settings(), .item = g->item, .count = ITEMS};
  return g;
}

static void gradients_free(Gradients *g) {
  for (int k = 0; k < ITEMS; ++k) {
    free(g->ctrl[k]);
    free(g->bar[k]);
  }
  free(g->target);
  free(g);
}

static void gradients_clear(Gradients *g) {
  for (int k = 0; k < ITEMS; ++k) {
    g->item[k].status = SN_GRADIENT_PENDING;
    g->item[k].cost = NAN;
  }
}

static SnBackendModel *gradients_load(SnBackend *b, const Scene *x, int most) {
  SnError err = {0};
  SnBackendModel *d = scene_load(b, x, most);
  if (sn_backend_reserve_gradients(b, d, ITEMS, &err) != SN_OK) fail_msg("%s", err.text);
  return d;
}

static void gradients_done(SnBackend *b, bool done) {
  char text[300] = "not done";
  if (done) return;
  sn_backend_lost(b, text, sizeof text);
  fail_msg("%s", text);
}

static void gradients_equal(const Gradients *a, const Gradients *b) {
  for (int k = 0; k < ITEMS; ++k) {
    assert_int_equal(a->item[k].status, b->item[k].status);
    assert_memory_equal(&a->item[k].cost, &b->item[k].cost, sizeof(double));
    assert_memory_equal(a->bar[k], b->bar[k], sizeof(sn_real) * (size_t)(a->item[k].nstep * a->nu));
  }
}

static void gradients_run(SnBackend *b, SnBackendModel *d, Gradients *g) {
  gradients_clear(g);
  gradients_done(b, sn_backend_gradients(b, d, &g->batch, steady_clock(), INFINITY));
}

// ---- memory that moves ----

// A batch that was stopped between its launches goes on although another session has made the pool larger meanwhile.
static void pool_moves_under_a_batch(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  Gradients *want = gradients_make(&x, STEPS), *got = gradients_make(&x, STEPS);
  SnBackendModel *cpu = gradients_load(x.cpu, &x, STEPS);
  for (int i = 0; i < 4; ++i) {
    const int groups = 1 + i % 2;
    want->batch.settings.method = got->batch.settings.method = i < 2 ? SN_GRADIENT_SWEEP : SN_GRADIENT_PRODUCTS;
    gradients_run(x.cpu, cpu, want);
    SnBackend *b = open_library("emulator_double", 0, NULL);
    SnBackendModel *d = gradients_load(b, &x, STEPS);
    CountingClock counting = {0};
    const SnClock clock = counting_clock(&counting);
    gradients_clear(got);
    assert_false(sn_backend_gradients(b, d, &got->batch, &clock, groups));
    const int before = model_of(b)->generation;
    SnBackendModel *longer = gradients_load(b, &x, 20 * STEPS);
    assert_true(model_of(b)->generation > before);
    gradients_done(b, sn_backend_gradients(b, d, &got->batch, steady_clock(), INFINITY));
    gradients_equal(want, got);
    sn_backend_unload(b, d);
    sn_backend_unload(b, longer);
    sn_backend_free(b);
  }
  sn_backend_unload(x.cpu, cpu);
  gradients_free(want);
  gradients_free(got);
  scene_close(&x);
}

// A planner plans on after another session has moved what the launches of its plans write to: the pool alone, or the
// memory of blocks alone.
static void memory_moves_under_a_planner(void **state) {
  (void)state;
  Scene x;
  SnError err = {0};
  assert_true(scene_open(&x, "arm_reach"));
  const SnSettings s = settings_of(&x, STEPS, 3);
  for (int blocks = 0; blocks < 2; ++blocks) {
    SnBackend *b = open_library("emulator_double", 0, NULL);
    SnPlanner *p = planner(&x, b, &s, 1, NULL), *q = planner(&x, x.cpu, &s, 1, NULL);
    SnBackendModel *other = scene_load(b, &x, 5 * STEPS), *longer = scene_load(b, &x, 50 * STEPS);
    // So many states that all blocks are there that run at once.
    assert_int_equal(sn_backend_reserve_gradients(b, other, 2, &err), SN_OK);
    SnPlan want = plan_at(q, 0), got = plan_at(p, 0);
    expect_equal(&want, &got);
    const SnDeviceModel *m = model_of(b);
    const char *slots = m->part[SN_MEMORY_SLOTS].p, *scratch = m->part[SN_MEMORY_SCRATCH].p;
    const int pool = m->generation;
    if (blocks)
      assert_int_equal(sn_backend_reserve_rollouts(b, longer, 500, &err), SN_OK);
    else
      assert_int_equal(sn_backend_reserve_gradients(b, other, 3, &err), SN_OK);
    assert_int_equal(m->part[SN_MEMORY_SLOTS].p != slots || m->part[SN_MEMORY_SCRATCH].p != scratch, blocks);
    assert_int_equal(m->generation - pool, !blocks);
    want = plan_at(q, 0.1);
    got = plan_at(p, 0.1);
    expect_equal(&want, &got);
    sn_backend_unload(b, other);
    sn_backend_unload(b, longer);
    sn_planner_free(p);
    sn_planner_free(q);
    sn_backend_free(b);
  }
  scene_close(&x);
}

// ---- streams and copies ----

// Each model has a stream of its own: what goes in must be there before the launches of that model, whichever was
// loaded last.
static void two_models(void **state) {
  (void)state;
  Scene x, y;
  assert_true(scene_open(&x, "arm_reach") && scene_open(&y, "billiard"));
  SnBackend *b = open_library("emulator_double", 0, NULL);
  Gradients *want = gradients_make(&x, STEPS), *got = gradients_make(&x, STEPS);
  Rollouts cpu = rollouts_make(&x, STEPS, ITEMS), device = rollouts_make(&x, STEPS, ITEMS);
  SnBackendModel *on_cpu = gradients_load(x.cpu, &x, STEPS), *d = gradients_load(b, &x, STEPS);
  SnBackendModel *last = gradients_load(b, &y, STEPS);
  gradients_run(x.cpu, on_cpu, want);
  gradients_run(b, d, got);
  gradients_equal(want, got);
  rollouts_run(&x, x.cpu, &cpu);
  assert_true(sn_backend_rollouts(b, d, &device.batch, steady_clock(), INFINITY));
  rollouts_equal(&cpu, &device);
  sn_backend_unload(b, d);
  sn_backend_unload(b, last);
  sn_backend_unload(x.cpu, on_cpu);
  gradients_free(want);
  gradients_free(got);
  rollouts_free(&cpu);
  rollouts_free(&device);
  sn_backend_free(b);
  scene_close(&x);
  scene_close(&y);
}

// What is dropped while its inputs are still on their way, and what goes away then: the next one is as if nothing had
// been. (The emulator is lost where a host writes to what a copy has not read yet.)
static void dropped_on_the_way(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *b = open_library("emulator_double", 0, NULL);
  Gradients *want = gradients_make(&x, STEPS), *got = gradients_make(&x, STEPS), *other = gradients_make(&x, STEPS);
  Rollouts r = rollouts_make(&x, STEPS, ITEMS), s = rollouts_make(&x, STEPS, ITEMS);
  SnBackendModel *cpu = gradients_load(x.cpu, &x, STEPS), *d = gradients_load(b, &x, STEPS);
  gradients_run(x.cpu, cpu, want);
  CountingClock counting = {0};
  const SnClock clock = counting_clock(&counting);
  for (int i = 0; i < STEPS * x.m->nu; ++i) other->ctrl[0][i] = 0;
  gradients_clear(other);
  assert_false(sn_backend_gradients(b, d, &other->batch, &clock, -1));
  sn_backend_abandon(b, d);
  gradients_run(b, d, got);
  gradients_equal(want, got);
  rollouts_run(&x, x.cpu, &r);
  const sn_real asked = s.ctrl[0];
  s.ctrl[0] = asked + SN_R(0.5);
  sn_backend_rollouts_submit(b, d, &s.batch);
  sn_backend_abandon(b, d);
  s.ctrl[0] = asked;
  sn_backend_rollouts_submit(b, d, &s.batch);
  gradients_done(b, sn_backend_rollouts(b, d, &s.batch, steady_clock(), INFINITY));
  rollouts_equal(&r, &s);
  // A session goes while its candidates wait, and with it the model.
  SnBackendModel *late = scene_load(b, &x, 2 * STEPS);
  sn_backend_rollouts_submit(b, late, &s.batch);
  sn_backend_unload(b, d);
  sn_backend_unload(b, late);
  char text[300] = "";
  if (sn_backend_lost(b, text, sizeof text)) fail_msg("%s", text);
  sn_backend_unload(x.cpu, cpu);
  gradients_free(want);
  gradients_free(got);
  gradients_free(other);
  rollouts_free(&r);
  rollouts_free(&s);
  sn_backend_free(b);
  scene_close(&x);
}

// ---- warnings ----

// Balls that lie on the plane and leave it at once: too many contacts in the first steps alone. A rollout in slices
// says so at its end.
static void warnings_of_slices(void **state) {
  (void)state;
  Scene x;
  scene_pile(&x);
  SnModel *narrow = sn_model_copy(x.m, NULL);
  narrow->nconmax = 1;
  x.m = narrow;
  SnBackend *b = open_library("emulator_double", 0, NULL);
  Rollouts cpu = rollouts_make(&x, STEPS, ITEMS), device = rollouts_make(&x, STEPS, ITEMS);
  sn_real *up = calloc((size_t)x.m->nv, sizeof *up);
  for (int i = 0; i < 3; ++i) up[6 * i + 2] = 3;
  SnState initial = *cpu.batch.state;
  initial.qvel = up;
  cpu.batch.state = device.batch.state = &initial;
  rollouts_run(&x, x.cpu, &cpu);
  SnBackendModel *d = scene_load(b, &x, STEPS);
  CountingClock counting = {0};
  int calls = 1;
  while (!rollouts_until(b, d, &device, &counting, 3)) ++calls;
  assert_true(calls > 2);
  rollouts_equal(&cpu, &device);
  for (int i = 0; i < ITEMS; ++i) {
    assert_true(cpu.batch.warn[i] & SN_WARN_CONTACT_FULL);
    assert_int_equal(device.batch.warn[i], cpu.batch.warn[i]);
  }
  sn_backend_unload(b, d);
  free(up);
  rollouts_free(&cpu);
  rollouts_free(&device);
  sn_backend_free(b);
  sn_model_free(narrow);
  scene_close(&x);
}

// A sledge of more boxes than there is room for contacts with the plane.
static void scene_sledge(Scene *x) {
  enum { BOXES = 200 };
  static const char task[] =
      "model: sledge.xml\nsettings: {horizon: 4, knots: 2}\nterms:\n  - {name: height, residual: {position: {site: "
      "top}}, "
      "target: [0, 0, 0.1], norm: squared, weight: 1}\n";
  char *xml = calloc(BOXES + 4, 200);
  size_t n = (size_t)sprintf(xml,
                             "<mujoco><worldbody><geom type='plane' size='1 1 1'/><body pos='0 0 .0099'><joint "
                             "name='lift' type='slide' axis='0 0 1' damping='1'/><site name='top'/>");
  for (int i = 0; i < BOXES; ++i)
    n += (size_t)sprintf(xml + n, "<geom type='box' size='.01 .01 .01' mass='.01' pos='%g %g 0'/>", 0.03 * (i % 20),
                         0.03 * (i / 20));
  sprintf(xml + n, "</body></worldbody><actuator><motor joint='lift' ctrlrange='-1 1'/></actuator></mujoco>");
  scene_parse(x, xml, task);
  free(xml);
}

// A plan of Adam says that contacts were dropped in what it tried.
static void warnings_of_multistarts(void **state) {
  (void)state;
  Scene x;
  scene_sledge(&x);
  SnBackend *b = open_library("emulator_double", 0, NULL);
  SnSettings s = settings_of(&x, 4, 2);
  s.adam_starts = 2;
  SnPlanner *p = planner(&x, b, &s, 1, NULL), *q = planner(&x, x.cpu, &s, 1, NULL);
  const SnPlan want = plan_at(q, 0), got = plan_at(p, 0);
  assert_true(want.warn & SN_WARN_CONTACT_FULL);
  assert_int_equal(got.warn, want.warn);
  sn_planner_free(p);
  sn_planner_free(q);
  sn_backend_free(b);
  scene_close(&x);
}

// ---- profiles ----

// The first question measures from then on.
static void profile_of_a_plan(void **state) {
  (void)state;
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *b = open_library("emulator_double", 0, NULL);
  const SnSettings s = settings_of(&x, STEPS, 2);
  SnPlanner *p = planner(&x, b, &s, 1, NULL);
  plan_at(p, 0);
  SnBackendModel *same = scene_load(b, &x, STEPS);
  SnBackendStage stage[SN_NMARK];
  assert_int_equal(sn_backend_profile(b, same, stage, SN_NMARK), SN_NMARK);
  plan_at(p, 0);
  assert_int_equal(sn_backend_profile(b, same, stage, SN_NMARK), SN_NMARK);
  assert_true(stage[SN_MARK_TENDON].time > 0 && stage[SN_MARK_SOLVER_VJP].time > 0);
  sn_backend_unload(b, same);
  sn_planner_free(p);
  sn_backend_free(b);
  scene_close(&x);
}

// ---- budgets ----

// What a session gives back when it grows does not count: what fits alone fits also after less.
static void growth_gives_back(void **state) {
  (void)state;
  enum { FEW = 300, MANY = 400 };
  Scene x;
  SnError err = {0};
  assert_true(scene_open(&x, "arm_reach"));
  SnBackend *b = open_library("emulator_double", 0, NULL);
  SnBackendModel *d = scene_load(b, &x, STEPS);
  assert_int_equal(sn_backend_reserve_rollouts(b, d, MANY, &err), SN_OK);
  const size_t whole = memory_used(b);
  sn_backend_unload(b, d);
  sn_backend_free(b);
  b = open_library("emulator_double", (double)whole + 4096, NULL);
  d = scene_load(b, &x, STEPS);
  assert_int_equal(sn_backend_reserve_rollouts(b, d, FEW, &err), SN_OK);
  const size_t few = memory_used(b);
  assert_int_equal(sn_backend_reserve_rollouts(b, d, MANY, &err), SN_OK);
  assert_true(few < whole && memory_used(b) == whole);
  sn_backend_unload(b, d);
  sn_backend_free(b);
  scene_close(&x);
}

// A changed cost whose model fits, but not what the session has room for: once there is memory it has all of that
// again.
static void room_after_a_change(void **state) {
  (void)state;
  enum { MANY = 200 };
  Scene x;
  SnError err = {0};
  scene_pile(&x);
  SnBackend *b = open_library("emulator_double", 0, NULL);
  SnBackendModel *d = scene_load(b, &x, STEPS);
  const size_t model = memory_used(b);
  assert_int_equal(sn_backend_reserve_gradients(b, d, MANY, &err), SN_OK);
  const size_t whole = memory_used(b);
  sn_backend_unload(b, d);
  sn_backend_free(b);
  assert_true(whole > 3 * model);
  b = open_library("emulator_double", (double)(whole + model / 2), NULL);
  SnBackendModel *other = scene_load(b, &x, STEPS);
  d = scene_load(b, &x, STEPS);
  assert_int_equal(sn_backend_reserve_gradients(b, d, MANY, &err), SN_OK);
  Gradients *want = gradients_make(&x, STEPS), *got = gradients_make(&x, STEPS);
  const double place[3] = {0.5, 0.5, 0.5};
  assert_int_equal(sn_cost_set_target(x.cost, 0, place, 3, &err), SN_OK);
  sn_backend_update(b, d);
  gradients_clear(got);
  const bool fits = sn_backend_gradients(b, d, &got->batch, steady_clock(), INFINITY);
  assert_false(fits);
  sn_backend_abandon(b, d);
  sn_backend_unload(b, other);
  gradients_run(b, d, got);
  SnBackendModel *cpu = gradients_load(x.cpu, &x, STEPS);
  gradients_run(x.cpu, cpu, want);
  gradients_equal(want, got);
  sn_backend_unload(x.cpu, cpu);
  sn_backend_unload(b, d);
  gradients_free(want);
  gradients_free(got);
  sn_backend_free(b);
  scene_close(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(pool_moves_under_a_batch),
                                     cmocka_unit_test(memory_moves_under_a_planner),
                                     cmocka_unit_test(two_models),
                                     cmocka_unit_test(dropped_on_the_way),
                                     cmocka_unit_test(warnings_of_slices),
                                     cmocka_unit_test(warnings_of_multistarts),
                                     cmocka_unit_test(profile_of_a_plan),
                                     cmocka_unit_test(growth_gives_back),
                                     cmocka_unit_test(room_after_a_change)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
