// What holds of every kind of work on a device, the host in its place: the bits of the CPU in double whatever the
// device and its memory are like, near it in float; pauses, what runs between them and what is dropped leave no trace;
// memory that fails or moves; a device that is lost at any launch.
#include "tests/cuda/host/job_fixture.h"

#include <float.h>
#include <malloc.h>

#include "clients/base/statistics.h"
#include "tests/planner/sensing_body.h"
#include "tests/support/slow.h"

// Calls a test for each kind.
#define FOR_KINDS(kind) for (JobKind kind = 0; kind < JOB_KINDS; ++kind)

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

static void on_arm(SceneTest *test) {
  Scene x;
  assert_true(scene_open(&x, "arm_reach"));
  test(&x);
  scene_close(&x);
}

// Opens balls that leave the plane at once, and a cart on a rail that shall go where a mocap body is.
static void scene_pile(Scene *x) {
  static const char *const xml =
      "<mujoco><option timestep='0.005' gravity='0 0 9'/><worldbody><geom type='plane' size='1 1 .1'/>"
      "<body name='goal' mocap='true' pos='.3 0 .2'/>"
      "<body name='ball' pos='0 0 .099'><freejoint/><geom size='.1' mass='1'/></body>"
      "<body pos='.4 0 .099'><freejoint/><geom size='.1' mass='1'/></body>"
      "<body pos='.8 0 .099'><freejoint/><geom size='.1' mass='1'/></body>"
      "<body name='cart' pos='0 1 .5'><joint name='rail' type='slide' axis='1 0 0'/><geom size='.05' mass='1'/></body>"
      "</worldbody><actuator><motor joint='rail' ctrlrange='-5 5' ctrllimited='true'/></actuator></mujoco>";

  static const char *const text =
      "model: pile.xml\n"
      "settings: {horizon: 20}\n"
      "terms:\n"
      "  - {name: reach, residual: {position: {body: cart}}, target: {position: {body: goal}}, norm: squared, weight: "
      "1}\n"
      "  - {name: ball, residual: {position: {body: ball}}, target: {value: [0, 0, 0.3]}, norm: squared, weight: 2, "
      "terminal: 1}\n";
  scene_parse(x, xml, text);
}

// ---- bits ----

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
static void check_devices(const Scene *x) {
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

static void same_bits_on_any_device(void **state) {
  (void)state;
  on_arm(check_devices);
}

// Bounds on velocities that some pass: the bits of the CPU, and items with limits of their own know nothing of it.
static void check_divergence(const Scene *x) {
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

static void diverging(void **state) {
  (void)state;
  on_arm(check_divergence);
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

// ---- pauses ----

enum { SESSIONS = 4, UNDER_WAY = 3 };

// A session with candidates, gradients and a multistart under way at once.
typedef struct Session {
  SnBackendModel *d;
  Job *want[UNDER_WAY], *got[UNDER_WAY];
  bool done[UNDER_WAY];
} Session;

// Session i has jobs of its own length, number and noise.
static Job *make_unlike(const Scene *x, JobKind kind, int i) {
  Job *j = job_make(x, kind, false);
  j->batch.nstep -= 4 * i;
  j->batch.count -= i % 3;
  j->noise.knots = sn_noise_knots(j->batch.nstep, 8, 3);
  j->noise.seed += (uint64_t)i;
  j->adam.noise.seed += (uint64_t)i;
  j->adam.iterations -= i;
  j->adam.starts = j->adam.count = JOB_STARTS - i % 2;
  return j;
}

// Loads the session and submits what can be; the rest begins when it is asked for.
static void begin_session(const Scene *x, SnBackend *dev, Session *s) {
  if (!s->d) s->d = job_load(dev, x, s->got[0]->kind);
  for (int k = 0; k < UNDER_WAY; ++k) {
    assert_int_equal(job_reserve(dev, s->d, s->got[k]->kind, 0, NULL), SN_OK);
    job_clear(s->got[k]);
    s->done[k] = false;
  }
  job_submit(dev, s->d, s->got[0]);
  job_submit(dev, s->d, s->got[2]);
}

static bool all_done(const Session *s) {
  bool all = true;
  for (int i = 0; i < SESSIONS * UNDER_WAY; ++i) all = all && s[i / UNDER_WAY].done[i % UNDER_WAY];
  return all;
}

// Sessions of a model, each stopped by its clock wherever that can be, the others' work between. What one does is
// dropped on its way, and it begins others; one goes and comes back.
static void check_slices(const Scene *x) {
  static const JobKind kinds[SESSIONS][UNDER_WAY] = {{JOB_ROLLOUTS, JOB_SWEEP, JOB_ADAM},
                                                     {JOB_BATCH, JOB_PRODUCTS, JOB_ADAM_PRODUCTS},
                                                     {JOB_ROLLOUTS, JOB_BARS, JOB_ADAM_PRODUCTS},
                                                     {JOB_BATCH, JOB_TWO_CALLS, JOB_ADAM}};
  SnBackend *dev = open_library("emulator_double", 0, "blocks:3");
  Session sessions[SESSIONS] = {{0}};
  CountingClock count = {0};
  for (int i = 0; i < SESSIONS; ++i) {
    Session *s = &sessions[i];
    for (int k = 0; k < UNDER_WAY; ++k) {
      s->want[k] = make_unlike(x, kinds[i][k], i);
      s->got[k] = make_unlike(x, kinds[i][k], i == 1 ? 0 : i);
      job_alone(x->cpu, x, s->want[k]);
    }
    begin_session(x, dev, s);
  }
  int calls = 0;
  for (; !all_done(sessions); ++calls) {
    Session *s = &sessions[calls % SESSIONS];
    const int k = calls / SESSIONS % UNDER_WAY;
    assert_true(calls < 1000);
    if (!s->done[k]) s->done[k] = job_slice(dev, s->d, s->got[k], &count);
    if (calls == SESSIONS) {
      assert_true(!sessions[1].done[0] && !sessions[3].done[0]);
      sn_backend_abandon(dev, sessions[1].d);
      for (int j = 0; j < UNDER_WAY; ++j) {
        job_free(sessions[1].got[j]);
        sessions[1].got[j] = make_unlike(x, kinds[1][j], 1);
      }
      begin_session(x, dev, &sessions[1]);
      sn_backend_unload(dev, sessions[3].d);
      sessions[3].d = NULL;
      begin_session(x, dev, &sessions[3]);
    }
  }
  printf("%d jobs in %d slices\n", SESSIONS * UNDER_WAY, calls);
  for (int i = 0; i < SESSIONS; ++i) {
    for (int k = 0; k < UNDER_WAY; ++k) {
      job_same(sessions[i].want[k], sessions[i].got[k]);
      job_free(sessions[i].want[k]);
      job_free(sessions[i].got[k]);
    }
    sn_backend_unload(dev, sessions[i].d);
  }
  sn_backend_free(dev);
}

static void slices(void **state) {
  (void)state;
  on_arm(check_slices);
}

// There is no room for the contacts of the first steps alone: a job in slices says so at its end.
static void warnings_of_slices(void **state) {
  (void)state;
  Scene x;
  scene_pile(&x);
  SnModel *narrow = sn_model_copy(x.m, NULL);
  narrow->nconmax = 1;
  x.m = narrow;
  Job *j = job_make(&x, JOB_ROLLOUTS, false);
  job_alone(x.cpu, &x, j);
  assert_true(j->book[0].warn & SN_WARN_CONTACT_FULL);
  check_slices(&x);
  job_free(j);
  sn_model_free(narrow);
  scene_close(&x);
}

// A multistart that ends in the launches of a longer one stands still from then on: later it goes on from where it was.
static void ended(void **state) {
  (void)state;
  Scene x;
  scene_parse(&x, sensing_xml, sensing_task);
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  for (JobKind kind = JOB_ADAM; kind < JOB_KINDS; ++kind) {
    Job *want = job_make(&x, kind, true), *got = job_make(&x, kind, true), *longer = job_make(&x, kind, true);
    SnBackendModel *a = job_load(x.cpu, &x, kind), *d = job_load(dev, &x, kind), *e = job_load(dev, &x, kind);
    want->adam.iterations = got->adam.iterations = 2;
    want->adam.next = got->adam.next = NULL;  // else the step is done already when it ends
    job_clear(got);
    sn_backend_multistart_submit(dev, d, &got->adam);
    job_run(dev, e, longer);
    job_run(x.cpu, a, want);
    for (int again = 0; again < 2; ++again) {
      assert_true(job_until(dev, d, got, steady_clock(), (double)INFINITY));
      if (again) assert_true(job_until(x.cpu, a, want, steady_clock(), (double)INFINITY));
      job_same(want, got);
      want->adam.init = got->adam.init = false;
    }
    sn_backend_unload(x.cpu, a);
    sn_backend_unload(dev, d);
    sn_backend_unload(dev, e);
    job_free(want);
    job_free(got);
    job_free(longer);
  }
  sn_backend_free(dev);
  scene_close(&x);
}

// Begins a job with other controls, and stops it before its first launch or half way. Nothing of it counts.
static void stop_other(const Scene *x, SnBackend *dev, SnBackendModel *d, JobKind kind, bool half) {
  Job *other = job_make(x, kind, false);
  CountingClock count = {0};
  const SnClock clock = counting_clock(&count);
  other->ctrl[0] += 0.5;
  other->first[0] += 0.5;
  job_clear(other);
  const bool done = half ? job_slice(dev, d, other, &count) : job_until(dev, d, other, &clock, -1);
  assert_false(done);
  for (int i = 0; i < JOB_ITEMS; ++i) assert_true(!other->done[i] && other->item[i].status != SN_GRADIENT_DONE);
  if (job_is_adam(other)) sn_backend_multistart_end(dev, d, &other->adam);
  if (!job_is_adam(other)) sn_backend_abandon(dev, d);
  job_free(other);
}

// A job that is dropped, before its inputs have been read or half way, leaves nothing behind; nor does one whose
// session goes, and its model with it. (The emulator is lost where a host writes to what a copy has not read yet.)
static void check_dropped(const Scene *x) {
  FOR_KINDS(kind) for (int half = 0; half < 2; ++half) {
    SnBackend *dev = open_library("emulator_double", 0, NULL);
    Job *want = job_make(x, kind, false), *got = job_make(x, kind, false), *late = job_make(x, kind, false);
    SnBackendModel *d = job_load(dev, x, kind);
    CountingClock count = {0};
    const SnClock clock = counting_clock(&count);
    char text[300] = "";
    job_alone(x->cpu, x, want);
    stop_other(x, dev, d, kind, half);
    job_run(dev, d, got);
    job_same(want, got);
    sn_backend_unload(dev, d);
    d = job_load(dev, x, kind);  // which has not measured yet what a step takes
    job_clear(late);
    assert_false(half ? job_slice(dev, d, late, &count) : job_until(dev, d, late, &clock, -1));
    sn_backend_unload(dev, d);
    if (sn_backend_lost(dev, text, sizeof text)) fail_msg("%s", text);
    job_alone(dev, x, got);
    job_same(want, got);
    sn_backend_free(dev);
    job_free(want);
    job_free(got);
    job_free(late);
  }
}

static void dropped(void **state) {
  (void)state;
  on_arm(check_dropped);
}

// A job that was stopped goes on, and another is computed, although a session with more to do has moved the memory that
// they share; and although the model that was loaded last, with a stream of its own, is another.
static void check_moves(const Scene *x) {
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

static void memory_moves(void **state) {
  (void)state;
  on_arm(check_moves);
}

// ---- memory ----

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
static void check_budgets(const Scene *x) {
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

static void budgets(void **state) {
  (void)state;
  on_arm(check_budgets);
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
static void check_allocations(const Scene *x) {
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

static void allocations_fail(void **state) {
  (void)state;
  on_arm(check_allocations);
}

// Jobs by the hundreds take no memory: neither the budget's, nor the device's, nor the process's. (Sanitizers have a
// heap of their own, of which mallinfo2 knows nothing.)
static void check_growth(const Scene *x) {
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

static void no_growth(void **state) {
  (void)state;
  on_arm(check_growth);
}

// ---- loss ----

// After a loss there is a reason, whatever is asked for returns at once, and there is no room for more.
static void expect_loss(const Scene *x, SnBackend *dev, SnBackendModel *d, Job *got) {
  char text[300] = "";
  SnError err = {0};
  assert_true(sn_backend_lost(dev, text, sizeof text));
  assert_non_null(strstr(text, "launch"));
  if (job_is_adam(got)) sn_backend_multistart_end(dev, d, &got->adam);
  assert_int_equal(got->adam.done, 0);
  job_submit(dev, d, got);
  assert_false(job_until(dev, d, got, steady_clock(), (double)INFINITY));
  sn_backend_abandon(dev, d);
  assert_int_equal(job_reserve(dev, d, got->kind, 50, &err), SN_ERR_STATE);
  assert_non_null(strstr(err.text, "the device is lost: "));
  assert_null(sn_backend_load(dev, x->m, x->cost, 2 * JOB_STEPS, &err));
  sn_backend_update(dev, d);
}

// The device of two sessions is lost at launch n of their jobs, in slices or without a deadline: nothing of that call
// counts, and all memory is given back. Returns whether the jobs have fewer launches.
static bool lost_at(const Scene *x, const Job *want, bool slices, int n) {
  char fault[32], text[300];
  snprintf(fault, sizeof fault, "launch:%d", n);
  SnBackend *dev = open_library("emulator_double", 0, fault);
  SnBackendModel *d[2];
  Job *got[2], *was[2];
  bool done[2] = {false, false};
  CountingClock count = {0};
  for (int i = 0; i < 2; ++i) {
    got[i] = job_make(x, want->kind, false);
    was[i] = job_make(x, want->kind, false);
    d[i] = job_load(dev, x, want->kind);
    job_clear(got[i]);
  }
  for (int i = 0; i < 2; ++i) job_submit(dev, d[i], got[i]);
  for (int i = 0; (!done[0] || !done[1]) && !sn_backend_lost(dev, text, sizeof text); i = 1 - i) {
    if (done[i]) continue;
    for (int k = 0; k < 2; ++k) {
      memcpy(was[k]->number, got[k]->number, got[k]->nnumber * sizeof *got[k]->number);
      memcpy(was[k]->item, got[k]->item, sizeof got[k]->item);
    }
    done[i] =
        slices ? job_slice(dev, d[i], got[i], &count) : job_until(dev, d[i], got[i], steady_clock(), (double)INFINITY);
  }
  for (int i = 0; i < 2; ++i) {
    if (done[i]) job_same(want, got[i]);
    if (!done[i]) expect_loss(x, dev, d[i], got[i]);
    for (int k = 0; k < JOB_ITEMS && !done[i]; ++k)
      assert_true(!got[i]->done[k] && got[i]->item[k].status == was[i]->item[k].status);
    if (!done[i]) assert_memory_equal(got[i]->number, was[i]->number, got[i]->nnumber * sizeof *got[i]->number);
    sn_backend_unload(dev, d[i]);
    job_free(got[i]);
    job_free(was[i]);
  }
  sn_backend_free(dev);
  return done[0] && done[1];
}

// At every launch in turn.
static void check_loss(const Scene *x) {
  FOR_KINDS(kind) for (int slices = 0; slices < 2; ++slices) {
    Job *want = job_make(x, kind, false);
    int n = 1;
    job_alone(x->cpu, x, want);
    while (!lost_at(x, want, slices, n)) assert_true(++n < 1000);
    printf("%s: %d launches\n", job_names[kind], n - 1);
    assert_true(n > (slices ? 3 : 1));
    job_free(want);
  }
}

static void lost(void **state) {
  (void)state;
  on_arm(check_loss);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits_as_cpu),
                                     cmocka_unit_test(same_bits_on_any_device),
                                     cmocka_unit_test(diverging),
                                     cmocka_unit_test(floats_are_near),
                                     cmocka_unit_test(warnings_of_starts),
                                     cmocka_unit_test(slices),
                                     cmocka_unit_test(warnings_of_slices),
                                     cmocka_unit_test(room_after_a_change),
                                     cmocka_unit_test(ended),
                                     cmocka_unit_test(dropped),
                                     cmocka_unit_test(memory_moves),
                                     cmocka_unit_test(budgets),
                                     cmocka_unit_test(allocations_fail),
                                     cmocka_unit_test(no_growth),
                                     cmocka_unit_test(lost)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
