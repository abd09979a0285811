// Every kernel on several lanes, as the jobs of a backend launch it on the emulator: the bits of the CPU, which has one
// lane, in all that a job gives. Blocks have several items one after the other; time of stages is measured.
#include "clients/reference/probe_task.h"
#include "tests/cuda/host/job_fixture.h"
#include "tests/support/small_models.h"

// What is computed of a model.
typedef struct Work {
  JobKind kind;
  bool cfd, products;  // contacts from distance; by products where the kind does not say so
  double most;         // limits velocities, of one item where each has its own limit; 0: of none
} Work;

static Job *make(const Scene *x, const SnWorld *at, const Work *work) {
  Job *j = job_make(x, work->kind, work->cfd);
  for (int k = 0; k < JOB_ITEMS; ++k) {
    j->state[k].qpos = at->qpos;
    j->state[k].qvel = job_near(j, at->qvel, (size_t)x->m->nv, 0.05, k);
    j->state[k].act = at->act;
    j->item[k].state = j->state[k];
  }
  j->adam.state = j->state[0];
  if (work->products) j->gradients.settings.method = SN_GRADIENT_PRODUCTS;
  if (work->most > 0) job_limit(j, work->most);
  return j;
}

// In slices; candidates beside those of another session.
static void run(const Scene *x, SnBackend *b, Job *j, Job *beside) {
  SnBackendModel *d = job_load(b, x, j->kind), *other = job_load(b, x, j->kind);
  SnBackendStage stage[SN_NMARK];
  CountingClock count = {0};
  assert_int_equal(sn_backend_profile(b, d, stage, SN_NMARK), SN_NMARK);
  if (j->kind < JOB_SWEEP) sn_backend_rollouts_submit(b, other, &beside->batch);
  job_clear(j);
  for (int calls = 0; !job_slice(b, d, j, &count); ++calls) assert_true(calls < 1000);
  assert_int_equal(sn_backend_profile(b, d, stage, SN_NMARK), SN_NMARK);
  assert_true(stage[SN_MARK_SOLVER].time > 0 || (job_is_adam(j) && j->adam.max_velocity < 1));  // no step then
  sn_backend_unload(b, other);
  sn_backend_unload(b, d);
}

static void compare(const Scene *x, const SnWorld *at, const Work *work, int lanes) {
  char fault[60];
  snprintf(fault, sizeof fault, "lanes:%d,multiprocessors:1,resident:2", lanes);
  SnBackend *b = open_library("emulator_double", 0, fault);
  Job *want = make(x, at, work), *got = make(x, at, work);
  job_alone(x->cpu, x, want);
  run(x, b, got, want);
  job_same(want, got);
  if (job_has_gradients(got))
    assert_int_equal(got->item[1].status, work->most > 0 ? SN_GRADIENT_DIVERGED : SN_GRADIENT_DONE);
  job_free(want);
  job_free(got);
  sn_backend_free(b);
}

// Numbers of lanes, 0 at the end. More than a warp's 32, and than the parts of a sum, take ways of their own: all
// works have them, on the first model.
static const int some[] = {5, 0}, many[] = {2, 8, 32, 40, 0};

// From a state that is drawn, with a task that looks at all that moves.
static void small_models(void **state) {
  (void)state;
  static const Work works[] = {{.kind = JOB_ROLLOUTS},
                               {.kind = JOB_BATCH},
                               {.kind = JOB_SWEEP},
                               {.kind = JOB_SWEEP, .most = 1e-9},
                               {.kind = JOB_PRODUCTS},
                               {.kind = JOB_BARS, .cfd = true},
                               {.kind = JOB_BARS, .products = true},
                               {.kind = JOB_ADAM},
                               {.kind = JOB_ADAM, .most = 1e-9}};
  for (int i = 0; i < SN_SMALL_MODELS; ++i) {
    char text[2000];
    SnOracle o;
    Scene x;
    sn_oracle_load_string(&o, sn_small_model(i));
    sn_oracle_randomize(&o, 1);
    sn_oracle_copy_state(&o);
    assert_true(sn_probe_task(o.m, text, sizeof text));
    scene_parse(&x, sn_small_model(i), text);
    for (size_t k = 0; k < sizeof works / sizeof *works; ++k)
      for (const int *lanes = i == 0 ? many : some; *lanes; ++lanes) compare(&x, &o.w, &works[k], *lanes);
    scene_close(&x);
    sn_oracle_free(&o);
  }
}

static void myohand(void **state) {
  (void)state;
  static const Work works[] = {{.kind = JOB_ROLLOUTS}, {.kind = JOB_ADAM}};
  Scene x;
  if (!scene_open(&x, "hand_balls")) skip();
  sn_oracle_copy_state(&x.o);
  for (int k = 0; k < 2; ++k) compare(&x, &x.o.w, &works[k], some[0]);
  scene_close(&x);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(small_models), cmocka_unit_test(myohand)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
