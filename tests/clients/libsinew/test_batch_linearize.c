// Jacobians along rollouts: those of single steps from the same warm start, to the bit; MuJoCo's differences; rollouts
// that diverge; what is refused.
#include <stdio.h>

#include "tests/clients/libsinew/pair_fixture.h"

enum { STEPS = 3, COUNT = 2 };

static SinewBackend *cpu[2];  // of 1 thread and of 3

static int setup(void **state) {
  (void)state;
  return body_open_cpus(cpu);
}

static int teardown(void **state) {
  (void)state;
  return body_close_cpus(cpu);
}

// Rollouts from one state, and the Jacobians along them.
typedef struct Along {
  BodyPair *b;
  SinewBatch *batch;
  size_t n, nu, ns;
  double *ctrl, *A, *B, *C, *D;
  int status[COUNT];
} Along;

static double *zeros(size_t n) { return calloc(n + 1, sizeof(double)); }

static Along make_along(BodyPair *b, SinewBackend *backend, const SinewCfd *cfd) {
  const SinewSizes *s = sinew_model_sizes(b->model);
  const size_t rows = COUNT * STEPS;
  Along x = {.b = b, .n = (size_t)s->nstate, .nu = (size_t)s->nu, .ns = (size_t)s->nsensordata};
  SinewBatchDef def = sinew_default_batch();
  def.model = b->model;
  def.backend = backend;
  def.capacity = COUNT;
  def.steps = STEPS;
  def.gradients = true;
  def.cfd = cfd;
  if (!(x.batch = sinew_batch_create(&def, &b->err))) fail_msg("%s", b->err.text);
  x.ctrl = zeros(rows * x.nu);
  x.A = zeros(rows * x.n * x.n);
  x.B = zeros(rows * x.n * x.nu);
  x.C = zeros(rows * x.ns * x.n);
  x.D = zeros(rows * x.ns * x.nu);
  return x;
}

static void free_along(Along *x) {
  double *const buffers[] = {x->ctrl, x->A, x->B, x->C, x->D};
  for (int i = 0; i < 5; ++i) free(buffers[i]);
  sinew_batch_free(x->batch);
}

// Rolls out from the body's state: its controls in the first step, then others.
static void roll(Along *x, int count) {
  const SinewState at = sinew_data_state(x->b->data);
  const double *first = sinew_data_array(x->b->data, "ctrl", NULL, NULL);
  SinewRollouts r = sinew_default_rollouts();
  for (size_t k = 0; k < COUNT * STEPS * x->nu; ++k)
    x->ctrl[k] = k / x->nu % STEPS == 0 ? first[k % x->nu] : 0.3 + 0.1 * (double)(k % 5);
  r.count = count;
  r.steps = STEPS;
  r.one_state = true;
  r.time = &at.time, r.qpos = at.qpos, r.qvel = at.qvel, r.act = at.act, r.mocap = at.mocap;
  r.ctrl = x->ctrl;
  r.status = x->status;
  body_ok(x->b, sinew_batch_rollout(x->batch, &r, &x->b->err));
}

static void linearize(Along *x, bool sensors) {
  SinewLinearization out = sinew_default_linearization();
  out.A = x->A, out.B = x->B, out.status = x->status;
  if (sensors) out.C = x->C, out.D = x->D;
  body_ok(x->b, sinew_batch_linearize(x->batch, &out, &x->b->err));
}

static void assert_same(const double *x, const double *y, size_t n) { assert_memory_equal(x, y, n * sizeof *x); }

// Follows rollout i by steps of a body. At each state the solver has been where the rollout's was: then it starts
// there.
static void compare_with_steps(const Along *x, int i, bool sensors) {
  BodyPair *b = x->b;
  SinewData *data = sinew_data_create(b->model, &b->err);
  const SinewState at = sinew_data_state(b->data);
  double *A = zeros(x->n * x->n), *B = zeros(x->n * x->nu), *C = zeros(x->ns * x->n), *D = zeros(x->ns * x->nu);
  double *warm = sinew_data_array(data, "qacc_warmstart", NULL, NULL), *saved = zeros(x->n);
  const size_t nv = (size_t)sinew_model_sizes(b->model)->nv;
  body_ok(b, sinew_data_set_state(data, &at, &b->err));
  for (int t = 0; t < STEPS; ++t) {
    const size_t k = (size_t)(i * STEPS + t);
    if (x->nu) memcpy(sinew_data_array(data, "ctrl", NULL, NULL), x->ctrl + k * x->nu, x->nu * sizeof(double));
    memcpy(saved, warm, nv * sizeof *warm);
    body_ok(b, sinew_forward(data, &b->err));
    memcpy(warm, sinew_data_array(data, "qacc", NULL, NULL), nv * sizeof *warm);
    body_ok(b, sinew_step_jacobian(data, A, B, sensors ? C : NULL, sensors ? D : NULL, &b->err));
    assert_same(x->A + k * x->n * x->n, A, x->n * x->n);
    assert_same(x->B + k * x->n * x->nu, B, x->n * x->nu);
    assert_same(x->C + k * x->ns * x->n, C, x->ns * x->n);
    assert_same(x->D + k * x->ns * x->nu, D, x->ns * x->nu);
    memcpy(warm, saved, nv * sizeof *warm);
    body_ok(b, sinew_step(data, 1, &b->err));
  }
  double *const buffers[] = {A, B, C, D, saved};
  for (int j = 0; j < 5; ++j) free(buffers[j]);
  sinew_data_free(data);
}

// MuJoCo's differences at the first state of both rollouts.
static void compare_with_mujoco(const char *name, const Along *x, bool sensors, int *compared, int *skipped) {
  const SnOracle *o = &x->b->o;
  const int n = (int)x->n, nu = (int)x->nu, ns = (int)x->ns;
  double *fine[4], *coarse[4];
  const size_t size[4] = {x->n * x->n, x->n * x->nu, x->ns * x->n, x->ns * x->nu};
  for (int i = 0; i < 4; ++i) fine[i] = zeros(size[i]), coarse[i] = zeros(size[i]);
  mjd_transitionFD(o->mj, o->d, 1e-6, 1, fine[0], nu ? fine[1] : NULL, ns ? fine[2] : NULL, nu && ns ? fine[3] : NULL);
  mjd_transitionFD(o->mj, o->d, 4e-6, 1, coarse[0], nu ? coarse[1] : NULL, ns ? coarse[2] : NULL,
                   nu && ns ? coarse[3] : NULL);
  for (size_t i = 0; i < COUNT; ++i) {
    const size_t k = i * STEPS;
    body_compare_columns(name, x->A + k * size[0], fine[0], coarse[0], n, n, compared, skipped);
    body_compare_columns(name, x->B + k * size[1], fine[1], coarse[1], n, nu, compared, skipped);
    if (!sensors) continue;
    body_compare_columns(name, x->C + k * size[2], fine[2], coarse[2], ns, n, compared, skipped);
    body_compare_columns(name, x->D + k * size[3], fine[3], coarse[3], ns, nu, compared, skipped);
  }
  for (int i = 0; i < 4; ++i) free(fine[i]), free(coarse[i]);
}

static void test_matrices(void **state) {
  (void)state;
  int compared = 0, skipped = 0;
  for (int i = 0; i < BODY_MODELS; ++i) {
    BodyPair b;
    const char *name = body_open(&b, i);
    const bool sensors = i != 5;  // it has two whose derivative is not known
    Along one = make_along(&b, cpu[0], NULL), many = make_along(&b, cpu[1], NULL);
    body_sample(&b, 1);
    roll(&one, COUNT);
    roll(&many, COUNT);
    for (int again = 0; again < 2; ++again) {
      linearize(&one, sensors);
      linearize(&many, sensors);
      const size_t rows = COUNT * STEPS;
      assert_same(one.A, many.A, rows * one.n * one.n);
      assert_same(one.D, many.D, rows * one.ns * one.nu);
    }
    for (int k = 0; k < COUNT; ++k) {
      assert_int_equal(one.status[k], SINEW_OK);
      compare_with_steps(&one, k, sensors);
    }
    if (b.o.mj->opt.integrator != mjINT_RK4) compare_with_mujoco(name, &one, sensors, &compared, &skipped);
    roll(&many, 1);  // all threads on one rollout
    linearize(&many, sensors);
    assert_same(one.A, many.A, STEPS * one.n * one.n);
    assert_same(one.C, many.C, STEPS * one.ns * one.n);
    free_along(&one);
    free_along(&many);
    body_close(&b);
  }
  printf("%d columns compared, %d left out\n", compared, skipped);
  assert_true(compared > 200 && skipped < compared / 2);
}

// With contacts from distance in derivatives only: those of a body with them.
static void test_cfd(void **state) {
  (void)state;
  BodyPair b;
  SinewCfd cfd = sinew_default_cfd();
  cfd.use = SINEW_CFD_BACKWARD;
  cfd.friction = true;
  body_open(&b, 1);
  body_sample(&b, 0.1);
  Along x = make_along(&b, cpu[1], &cfd), plain = make_along(&b, cpu[1], NULL);
  double *A = zeros(x.n * x.n), *warm = sinew_data_array(b.data, "qacc_warmstart", NULL, NULL);
  roll(&x, COUNT);
  roll(&plain, COUNT);
  linearize(&x, false);
  linearize(&plain, false);
  body_ok(&b, sinew_forward(b.data, &b.err));
  memcpy(warm, sinew_data_array(b.data, "qacc", NULL, NULL), (size_t)sinew_model_sizes(b.model)->nv * sizeof *warm);
  body_ok(&b, sinew_data_set_cfd(b.data, &cfd, &b.err));
  body_ok(&b, sinew_step_jacobian(b.data, A, NULL, NULL, NULL, &b.err));
  assert_same(x.A, A, x.n * x.n);
  assert_true(memcmp(x.A, plain.A, x.n * x.n * sizeof *A) != 0);
  free(A);
  free_along(&x);
  free_along(&plain);
  body_close(&b);
}

// A body that falls faster than it may: the steps before are as they are, zeros follow.
static void test_diverged(void **state) {
  (void)state;
  BodyPair b;
  SinewError err;
  body_open_string(&b,
                   "<mujoco><option timestep='.1'/><worldbody><body><joint type='slide' axis='0 0 1'/>"
                   "<geom size='.1'/></body></worldbody></mujoco>");
  SinewBatchDef def = sinew_default_batch();
  def.model = b.model;
  def.backend = cpu[1];
  def.capacity = 2;
  def.steps = 6;
  def.gradients = true;
  def.max_velocity = 2.5;  // from rest: reached after three steps
  SinewBatch *batch = sinew_batch_create(&def, &err);
  double qvel[2] = {0, 2}, A[2][6][2][2];
  int good[2], status[2];
  SinewRollouts r = sinew_default_rollouts();
  r.count = 2, r.steps = 6, r.qvel = qvel, r.good_states = good;
  body_ok(&b, sinew_batch_rollout(batch, &r, &b.err));
  assert_true(good[0] == 3 && good[1] == 5);
  SinewLinearization out = sinew_default_linearization();
  memset(A, 0x55, sizeof A);
  out.A = &A[0][0][0][0], out.status = status;
  body_ok(&b, sinew_batch_linearize(batch, &out, &b.err));
  for (int i = 0; i < 2; ++i)
    for (int t = 0; t < 6; ++t) {
      const bool made = t < good[i];
      assert_true(A[i][t][0][0] == made && A[i][t][1][1] == made && A[i][t][0][1] == (made ? 0.1 : 0));
    }
  assert_true(status[0] == SINEW_ERR_DIVERGED && status[1] == SINEW_ERR_DIVERGED);
  qvel[1] = 0;
  r.steps = 2;
  body_ok(&b, sinew_batch_rollout(batch, &r, &b.err));
  body_ok(&b, sinew_batch_linearize(batch, &out, &b.err));
  assert_true(status[0] == SINEW_OK && status[1] == SINEW_OK);
  sinew_batch_free(batch);
  body_close(&b);
}

static void expect(SinewStatus status, const SinewError *err, SinewStatus wanted, const char *word) {
  if (status != wanted || err->status != wanted || !strstr(err->text, word)) fail_msg("%d: %s", status, err->text);
}

static void test_refused(void **state) {
  (void)state;
  BodyPair b;
  SinewError err;
  body_open(&b, 5);
  Along x = make_along(&b, cpu[0], NULL);
  SinewLinearization out = sinew_default_linearization();
  expect(sinew_batch_linearize(NULL, &out, &err), &err, SINEW_ERR_ARGUMENT, "batch is NULL");
  expect(sinew_batch_linearize(x.batch, NULL, &err), &err, SINEW_ERR_ARGUMENT, "NULL");
  expect(sinew_batch_linearize(x.batch, &out, &err), &err, SINEW_ERR_STATE, "no rollouts yet");
  roll(&x, COUNT);
  body_ok(&b, sinew_batch_linearize(x.batch, &out, &err));  // nothing is wanted
  out.D = x.D;
  expect(sinew_batch_linearize(x.batch, &out, &err), &err, SINEW_ERR_UNSUPPORTED, "has no derivative");
  free_along(&x);
  SinewBatchDef def = sinew_default_batch();
  def.model = b.model;
  def.backend = cpu[0];
  def.capacity = 1;
  def.steps = 1;
  SinewBatch *batch = sinew_batch_create(&def, &err);
  expect(sinew_batch_linearize(batch, &out, &err), &err, SINEW_ERR_STATE, "without SinewBatchDef.gradients");
  sinew_batch_free(batch);
  body_close(&b);
}

static bool stops(void *user) { return *(const bool *)user; }

// The rollouts outlast an interruption: what is then made of them is the same.
static void test_interrupted(void **state) {
  (void)state;
  enum { MANY = 1600 };
  BodyPair b;
  bool stop = false;
  body_open(&b, 4);
  const size_t n = (size_t)sinew_model_sizes(b.model)->nstate;
  double *A = zeros(MANY * n * n), *whole = zeros(MANY * n * n);
  for (int i = 0; i < 2; ++i) {
    SinewBatchDef def = sinew_default_batch();
    SinewRollouts r = sinew_default_rollouts();
    SinewLinearization out = sinew_default_linearization();
    def.model = b.model;
    def.backend = cpu[i];
    def.capacity = r.count = 1;
    def.steps = r.steps = MANY;
    def.gradients = true;
    def.interrupt = stops;
    def.interrupt_user = &stop;
    SinewBatch *batch = sinew_batch_create(&def, &b.err);
    body_ok(&b, sinew_batch_rollout(batch, &r, &b.err));
    out.A = whole;
    body_ok(&b, sinew_batch_linearize(batch, &out, &b.err));
    out.A = A;
    stop = true;
    expect(sinew_batch_linearize(batch, &out, &b.err), &b.err, SINEW_ERR_INTERRUPTED, "interrupted");
    stop = false;
    body_ok(&b, sinew_batch_linearize(batch, &out, &b.err));
    assert_same(A, whole, MANY * n * n);
    sinew_batch_free(batch);
  }
  free(A);
  free(whole);
  body_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_matrices), cmocka_unit_test(test_cfd),
                                     cmocka_unit_test(test_diverged), cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_interrupted)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
