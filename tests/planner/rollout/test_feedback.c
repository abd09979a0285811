// Rollouts with feedback: the law itself against MuJoCo's differences of states, its bits in batches and with pauses,
// and a rollout of the controls that it applied.
#include "planner/backend/backend.h"
#include "tests/planner/counting_clock.h"
#include "tests/planner/sensing_body.h"
#include "tests/support/tolerance.h"

enum { STEPS = SENSING_STEPS, ROWS = STEPS + 1, NQ = SENSING_NQ, NV = SENSING_NV, NA = SENSING_NA, NU = SENSING_NU };
enum { N = 2 * NV + NA, COUNT = 5 };

typedef struct Path {
  sn_real qpos[ROWS * NQ], qvel[ROWS * NV], act[ROWS * NA], ctrl[STEPS * NU];
  double cost;
} Path;

typedef struct Fixture {
  SensingBody *body;
  SnPool *pool;
  SnBackend *backend;
  SnBackendModel *model;
  SensingInput input[COUNT];
  SnState state[COUNT];
  sn_real ctrl[COUNT * STEPS * NU], gain[COUNT * STEPS * NU * N], difference[COUNT * N];
  Path nominal;
} Fixture;

static SnTrajectory trajectory(Path *p) { return (SnTrajectory){.qpos = p->qpos, .qvel = p->qvel, .act = p->act}; }

static Fixture *open_fixture(int threads) {
  SnError err = {0};
  Fixture *x = calloc(1, sizeof *x);
  SnOracle draw = {.rng = 5};
  x->body = sensing_open();
  x->pool = sn_pool_create(threads, &err);
  x->backend = sn_backend_cpu(x->pool, &err);
  assert_true(sn_backend_has(x->backend, SN_BACKEND_FEEDBACK));
  x->model = sn_backend_load(x->backend, x->body->m, x->body->cost, STEPS, &err);
  if (!x->model) fail_msg("%s", err.text);
  for (int k = 0; k < COUNT; ++k) {
    x->state[k] = sensing_input(x->body, &x->input[k], k);
    memcpy(x->ctrl + k * STEPS * NU, x->input[k].ctrl, sizeof x->input[k].ctrl);
  }
  for (int i = 0; i < COUNT * STEPS * NU * N; ++i) x->gain[i] = SN_R(0.05) * (sn_real)sn_oracle_uniform(&draw);
  return x;
}

static void close_fixture(Fixture *x) {
  sn_backend_unload(x->backend, x->model);
  sn_backend_free(x->backend);
  sn_pool_free(x->pool);
  sensing_close(x->body);
  free(x);
}

// Rolls out the first states, with feedback or without, `slice` readings of the clock at a time (0: at once).
static void roll(Fixture *x, const SnFeedback *feedback, Path *out, int count, int slice) {
  CountingClock counting = {0};
  const SnClock clock = counting_clock(&counting);
  SnTrajectory to[COUNT];
  double cost[COUNT];
  unsigned char done[COUNT] = {0};
  sn_real target[COUNT * ROWS * SENSING_TARGETS];
  for (int k = 0; k < count; ++k) {
    to[k] = trajectory(&out[k]);
    memcpy(target + k * ROWS * SENSING_TARGETS, x->input[k].target, sizeof x->input[k].target);
  }
  const SnBatch batch = {.state = x->state,
                         .nstate = count,
                         .ctrl = x->ctrl,
                         .nctrl = count,
                         .target = target,
                         .ntable = count,
                         .feedback = feedback,
                         .nstep = STEPS,
                         .count = count,
                         .max_velocity = 1e3,
                         .cost = cost,
                         .done = done,
                         .out = to};
  double until = slice > 0 ? slice : (double)INFINITY;
  while (!sn_backend_rollouts(x->backend, x->model, &batch, &clock, until)) until += slice;
  for (int k = 0; k < count; ++k) out[k].cost = cost[k];
}

// Feedback about the states of the first rollout; controls go to the paths.
static void make_feedback(Fixture *x, Path *out, SnFeedback *feedback) {
  roll(x, NULL, &x->nominal, 1, 0);
  for (int k = 0; k < COUNT; ++k)
    feedback[k] = (SnFeedback){.qpos = x->nominal.qpos,
                               .qvel = x->nominal.qvel,
                               .act = x->nominal.act,
                               .gain = x->gain + k * STEPS * NU * N,
                               .difference = x->difference + k * N,
                               .ctrl = out[k].ctrl};
}

static void assert_same(const Path *a, const Path *b, int k) {
  assert_memory_equal(a[k].qpos, b[k].qpos, sizeof a->qpos);
  assert_memory_equal(a[k].qvel, b[k].qvel, sizeof a->qvel);
  assert_memory_equal(a[k].act, b[k].act, sizeof a->act);
  assert_true(a[k].cost == b[k].cost);
}

// What MuJoCo makes of the law at one step.
static void check_law(Fixture *x, const Path *p, int k, int t) {
  const SnModel *m = x->body->m;
  double from[NQ], to[NQ], d[N];
  for (int i = 0; i < NQ; ++i) from[i] = (double)x->nominal.qpos[t * NQ + i], to[i] = (double)p->qpos[t * NQ + i];
  mj_differentiatePos(x->body->o.mj, d, 1, from, to);
  for (int i = 0; i < NV; ++i) d[NV + i] = (double)(p->qvel[t * NV + i] - x->nominal.qvel[t * NV + i]);
  for (int i = 0; i < NA; ++i) d[2 * NV + i] = (double)(p->act[t * NA + i] - x->nominal.act[t * NA + i]);
  for (int i = 0; i < NU; ++i) {
    double u = (double)x->ctrl[(k * STEPS + t) * NU + i];
    for (int j = 0; j < N; ++j) u += (double)x->gain[((k * STEPS + t) * NU + i) * N + j] * d[j];
    if (m->ctrl_limited[i]) u = fmin(fmax(u, (double)m->ctrl_range[2 * i]), (double)m->ctrl_range[2 * i + 1]);
    if (!(fabs(u - (double)p->ctrl[t * NU + i]) < SN_TOL(1e-12, 1e-5)))
      fail_msg("rollout %d, step %d, control %d: %.15g, not %.15g", k, t, i, (double)p->ctrl[t * NU + i], u);
  }
}

static void law(void **state) {
  (void)state;
  Fixture *x = open_fixture(1);
  static Path out[COUNT], plain[COUNT];
  SnFeedback feedback[COUNT];
  int limited = 0, moved = 0;
  make_feedback(x, out, feedback);
  roll(x, feedback, out, COUNT, 0);
  // The first one is the nominal: nothing is corrected. Others are.
  assert_same(&x->nominal, out, 0);
  for (int k = 0; k < COUNT; ++k)
    for (int t = 0; t < STEPS; ++t) {
      check_law(x, &out[k], k, t);
      for (int i = 0; i < NU; ++i) {
        moved += out[k].ctrl[t * NU + i] != x->ctrl[(k * STEPS + t) * NU + i];
        limited += x->body->m->ctrl_limited[i] && fabs((double)out[k].ctrl[t * NU + i]) == 1;
      }
    }
  assert_true(moved > 100 && limited > 0);
  // The controls that were applied give the same rollouts without feedback.
  for (int k = 0; k < COUNT; ++k) memcpy(x->ctrl + k * STEPS * NU, out[k].ctrl, sizeof out[k].ctrl);
  roll(x, NULL, plain, COUNT, 0);
  for (int k = 0; k < COUNT; ++k) assert_same(plain, out, k);
  close_fixture(x);
}

static void pauses_and_threads(void **state) {
  (void)state;
  static Path out[COUNT], again[COUNT];
  SnFeedback feedback[COUNT];
  Fixture *x = open_fixture(1);
  make_feedback(x, out, feedback);
  roll(x, feedback, out, COUNT, 0);
  close_fixture(x);
  for (int threads = 1; threads <= 3; threads += 2) {
    x = open_fixture(threads);
    make_feedback(x, again, feedback);
    roll(x, feedback, again, COUNT, 7);
    for (int k = 0; k < COUNT; ++k) {
      assert_same(again, out, k);
      assert_memory_equal(again[k].ctrl, out[k].ctrl, sizeof out->ctrl);
    }
    close_fixture(x);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(law), cmocka_unit_test(pauses_and_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
