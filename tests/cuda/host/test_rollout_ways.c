// Rollouts whose worlds have a part of a warp or a thread each, on the emulator: the same results as a warp gives, also
// where neither has room for what a world needs.
#include "tests/cuda/plugin_fixture.h"

enum { STEPS = 30, COUNT = 300 };  // of which the emulator runs 256 at once by threads, all by parts, 128 by warps
enum { WARPS = 32, PARTS = 8, THREADS = 1, AUTO = 0 };

// The same at once and in slices of time, by that way in one library as by warps in the other. Ends the scene. Returns
// in how many slices it was; nothing was full.
static int compare(Scene *x, int nstep, int count, bool noisy, const char *warp, const char *other, int way,
                   double slice) {
  SnError err = {0};
  SnBackend *warps = open_threads(warp, WARPS, ""), *ways = open_threads(other, way, "");
  Rollouts want = rollouts_make(x, nstep, count, noisy), r = rollouts_make(x, nstep, count, noisy);
  rollouts_run(x, warps, &want);
  rollouts_run_as(x, ways, &r, true);
  rollouts_equal(&want, &r);
  for (int i = 0; i < count; ++i) assert_true(want.batch.warn[i] == 0 && r.batch.warn[i] == 0);
  SnBackendModel *d = scene_load(ways, x, nstep);
  if (sn_backend_reserve_batches(ways, d, count, &err) != SN_OK) fail_msg("%s", err.text);
  CountingClock clock = {0};
  int calls = 1;
  rollouts_clear(&r);
  while (!rollouts_until(ways, d, &r, &clock, slice)) ++calls;
  rollouts_equal(&want, &r);
  sn_backend_unload(ways, d);
  rollouts_free(&want);
  rollouts_free(&r);
  sn_backend_free(warps);
  sn_backend_free(ways);
  scene_close(x);
  return calls;
}

static int compare_task(const char *task, bool noisy, const char *warp, const char *other, int way) {
  Scene x;
  assert_true(scene_open(&x, task));
  const int slices = compare(&x, STEPS, COUNT, noisy, warp, other, way, 5);
  assert_true(slices > 2);
  return slices;
}

// With and without noise, in both number types; and by the launches of device_cuda.c, on a CUDA runtime that is the
// host.
static void as_by_warps(void **state) {
  (void)state;
  static const char *const tasks[] = {"arm_reach", "billiard"}, *const libraries[] = {"emulator_double", "emulator"};
  static const int ways[] = {AUTO, PARTS, THREADS};
  for (int i = 0; i < 3; ++i) {
    const int way = ways[i];
    for (int k = 0; k < 4; ++k) compare_task(tasks[k % 2], k % 2, libraries[k / 2], libraries[k / 2], way);
#if defined(SN_TEST_FAKE_CUDA)
    for (int k = 0; k < 2; ++k) compare_task(tasks[k], k, "emulator", "cuda", way);
#else
    print_message("left out: the Toolkit's headers are not there, so device_cuda.c is not compiled\n");
#endif
  }
}

// More candidates of a batch than run at once by warps have parts of them without being asked: then they are one group.
static void many_by_parts(void **state) {
  (void)state;
  const int warps = compare_task("arm_reach", true, "emulator", "emulator", WARPS);
  const int parts = compare_task("arm_reach", true, "emulator", "emulator", AUTO);
  const int asked = compare_task("arm_reach", true, "emulator", "emulator", PARTS);
  print_message("%d slices by warps, %d by parts\n", warps, parts);
  assert_true(parts < warps && asked == parts);
}

// Opens n balls on a plane, each with a contact of four rows; `free`: each is a body of its own, else all are one.
static void scene_balls(Scene *x, int n, bool free_balls) {
  static const char *const text =
      "model: balls.xml\n"
      "settings: {horizon: 20}\n"
      "terms:\n"
      "  - {name: ball, residual: {position: {body: b}}, target: {value: [0, 0, 0.3]}, norm: squared, weight: 1}\n";
  const size_t size = 500 + (size_t)n * 100;
  char *xml = calloc(1, size);
  size_t used = (size_t)snprintf(xml, size,
                                 "<mujoco><option timestep='0.005'/><worldbody>"
                                 "<geom type='plane' size='50 1 .1'/>"
                                 "<body name='b' pos='0 0 .099'><freejoint/><geom size='.1'/>");
  for (int i = 1; i < n; ++i)
    used += (size_t)snprintf(
        xml + used, size - used,
        free_balls ? "</body><body pos='%g 0 .099'><freejoint/><geom size='.1'/>" : "<geom size='.1' pos='%g 0 0'/>",
        0.3 * i);
  snprintf(xml + used, size - used,
           "</body><body pos='0 1 .5'><joint name='rail' type='slide' axis='1 0 0'/><geom size='.05'/></body>"
           "</worldbody><actuator><motor joint='rail'/></actuator></mujoco>");
  scene_parse(x, xml, text);
  free(xml);
}

// Batches of one model that are submitted together go in one launch as far as there are slots for them, and no farther.
static void batches_together(void **state) {
  const Scene *x = *state;
  enum { SESSIONS = 3, EACH = 200 };
  SnBackend *b = open_threads("emulator_double", AUTO, "");
  SnBackendModel *d[SESSIONS];
  Rollouts want = rollouts_make(x, STEPS, EACH, true), r[SESSIONS];
  rollouts_run(x, x->cpu, &want);
  for (int i = 0; i < SESSIONS; ++i) {
    r[i] = rollouts_make(x, STEPS, EACH, true);
    d[i] = scene_load(b, x, STEPS);
    assert_int_equal(sn_backend_reserve_batches(b, d[i], EACH, NULL), SN_OK);
  }
  for (int i = 0; i < SESSIONS; ++i) sn_backend_rollouts_submit(b, d[i], &r[i].batch);
  for (int i = 0; i < SESSIONS; ++i) {
    assert_true(sn_backend_rollouts(b, d[i], &r[i].batch, steady_clock(), INFINITY));
    rollouts_equal(&want, &r[i]);
    rollouts_free(&r[i]);
    sn_backend_unload(b, d[i]);
  }
  rollouts_free(&want);
  sn_backend_free(b);
}

// Forty contacts are what a thread has room for, 64 a part of a warp. A world that has more is computed again by a
// warp: nothing is lost, and nobody is told that anything were full. So it is at once, and in slices of time.
static void more_contacts_than_there_is_room_for(void **state) {
  (void)state;
  const int balls[] = {8, 44, 60, 72}, way[] = {THREADS, THREADS, AUTO, AUTO}, count[] = {4, 4, 160, 160};
  for (int k = 0; k < 4; ++k) {
    Scene x;
    scene_balls(&x, balls[k], false);
    compare(&x, 3, count[k], true, "emulator", "emulator", way[k], 3);
  }
}

// Those alone are computed again that did not fit: one of five hundred has its balls on the plane, the others above it.
static void one_has_no_room(int way, int balls) {
  enum { MANY = 500, SHORT = 2, ONE = 377 };
  Scene x;
  scene_balls(&x, balls, false);
  const size_t nq = (size_t)x.m->nq;
  double *qpos = calloc(MANY * nq, sizeof *qpos), *zero = calloc(MANY * (size_t)x.m->nv, sizeof *zero);
  SnState states[MANY];
  for (int i = 0; i < MANY; ++i) {
    memcpy(qpos + (size_t)i * nq, x.m->qpos0, nq * sizeof *qpos);
    if (i != ONE) qpos[(size_t)i * nq + 2] += 1 + 0.01 * i;
    states[i] = (SnState){.qpos = qpos + (size_t)i * nq, .qvel = zero};
  }
  SnBackend *ways = open_threads("emulator", way, ""), *warps = open_threads("emulator", WARPS, "");
  Rollouts want = rollouts_make(&x, SHORT, MANY, false), r = rollouts_make(&x, SHORT, MANY, false);
  want.batch.state = r.batch.state = states;
  want.batch.nstate = r.batch.nstate = MANY;
  rollouts_run(&x, warps, &want);
  rollouts_run_as(&x, ways, &r, true);
  rollouts_equal(&want, &r);
  for (int i = 0; i < MANY; ++i) assert_int_equal(r.batch.warn[i], 0);
  rollouts_free(&want);
  rollouts_free(&r);
  sn_backend_free(warps);
  sn_backend_free(ways);
  scene_close(&x);
  free(qpos);
  free(zero);
}

static void one_of_many(void **state) {
  (void)state;
  one_has_no_room(THREADS, 44);
  one_has_no_room(AUTO, 70);
}

// A world that no thread has the memory for is refused when its model is loaded, with both numbers. So is one for which
// the budget has no room for all threads, and what was taken counts in it.
static void refused(void **state) {
  const Scene *x = *state;
  SnError err = {0};
  Scene large;
  scene_balls(&large, 100, true);
  SnBackend *threads = open_threads("emulator", THREADS, "");
  assert_null(sn_backend_load(threads, large.m, large.cost, 4, &err));
  print_message("%s\n", err.text);
  assert_int_equal(err.code, SN_ERR_LIMIT);
  assert_non_null(strstr(err.text, "a thread has at most 229376"));
  scene_close(&large);
  const size_t before = sn_backend_memory(threads).used;
  SnBackendModel *d = scene_load(threads, x, 4);
  assert_true(sn_backend_memory(threads).used > before + ((size_t)100 << 20));
  sn_backend_unload(threads, d);
  sn_backend_free(threads);
  threads = open_threads("emulator", THREADS, "memory:100000000");
  assert_null(sn_backend_load(threads, x->m, x->cost, 4, &err));
  print_message("%s\n", err.text);
  assert_int_equal(err.code, SN_ERR_LIMIT);
  assert_non_null(strstr(err.text, "no room for all threads"));
  sn_backend_free(threads);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(as_by_warps),      cmocka_unit_test(many_by_parts),
      cmocka_unit_test(batches_together), cmocka_unit_test(more_contacts_than_there_is_room_for),
      cmocka_unit_test(one_of_many),      cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, open_arm, close_arm);
}
