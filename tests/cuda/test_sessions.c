// What sessions of a device share and what may move under them: memory of blocks and the pool, streams of several
// models, copies that are on their way, warnings that pass through many launches, profiles, budgets. Whatever happens
// between two calls of a session, it gets what the CPU gives.
#include "tests/cuda/host/job_fixture.h"
#include "tests/cuda/host/multistart_fixture.h"

enum { STEPS = 20, ITEMS = 3 };

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

// A sledge of more boxes than there is room for contacts with the plane, which it falls onto in the last of four steps
// unless its motor lifts it a little.
static void scene_sledge(Scene *x) {
  enum { BOXES = 200 };
  static const char task[] =
      "model: sledge.xml\nsettings: {horizon: 4, knots: 2}\nterms:\n  - {name: height, residual: {position: {site: "
      "top}}, "
      "target: [0, 0, 0.1], norm: squared, weight: 1}\n";
  char *xml = calloc(BOXES + 4, 200);
  size_t n = (size_t)sprintf(xml,
                             "<mujoco><worldbody><geom type='plane' size='1 1 1'/><body pos='0 0 .01038'><joint "
                             "name='lift' type='slide' axis='0 0 1' damping='1'/><site name='top'/>");
  for (int i = 0; i < BOXES; ++i)
    n += (size_t)sprintf(xml + n, "<geom type='box' size='.01 .01 .01' mass='.01' pos='%g %g 0'/>", 0.03 * (i % 20),
                         0.03 * (i / 20));
  sprintf(xml + n, "</body></worldbody><actuator><motor joint='lift' ctrlrange='-20 20'/></actuator></mujoco>");
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

// A changed cost that there is no memory for: its model does not fit, or it does, but not what the session has room
// for. Nothing is computed until there is memory, and asking for more is refused in words; then it has all of its room
// again.
static void room_after_a_change(void **state) {
  (void)state;
  Scene x;
  const double place[3] = {0.5, 0.5, 0.5};
  scene_pile(&x);
  for (JobKind kind = 0; kind < JOB_KINDS; ++kind) {
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(warnings_of_slices), cmocka_unit_test(warnings_of_multistarts),
                                     cmocka_unit_test(profile_of_a_plan), cmocka_unit_test(room_after_a_change)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
