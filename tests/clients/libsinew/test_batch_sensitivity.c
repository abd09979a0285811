// Sensitivities along rollouts: products with bars beside sinew_batch_vjp, which goes the other way, on models with all
// kinds of joints, contacts, tendons and actuators; many states; rollouts that diverge; what is refused.
#include <math.h>
#include <stdio.h>

#include "tests/clients/libsinew/pair_fixture.h"

enum { COUNT = 2, PARAMETERS = 33, STEPS = 12, LONG = 4000, DAMPING = 12 };

// What each parameter is: an array, times 1 + step. The arrays of some models are empty, or all zero.
static const char *const arrays[PARAMETERS] = {"actuator_biasprm",
                                               "actuator_ctrlrange",
                                               "actuator_dynprm",
                                               "actuator_forcerange",
                                               "actuator_gainprm",
                                               "actuator_gear",
                                               "body_gravcomp",
                                               "body_inertia",
                                               "body_invweight0",
                                               "body_mass",
                                               "body_pos",
                                               "dof_armature",
                                               "dof_damping",
                                               "dof_frictionloss",
                                               "dof_invweight0",
                                               "eq_solref",
                                               "geom_friction",
                                               "geom_pos",
                                               "geom_size",
                                               "geom_solimp",
                                               "geom_solref",
                                               "jnt_actfrcrange",
                                               "jnt_pos",
                                               "jnt_range",
                                               "jnt_solref",
                                               "jnt_stiffness",
                                               "site_pos",
                                               "tendon_damping",
                                               "tendon_frictionloss",
                                               "tendon_invweight0",
                                               "tendon_lengthspring",
                                               "tendon_range",
                                               "tendon_stiffness"};

static SinewBackend *cpu[2];  // of 1 thread and of 3

static int setup(void **state) {
  (void)state;
  return body_open_cpus(cpu);
}

static int teardown(void **state) {
  (void)state;
  return body_close_cpus(cpu);
}

static double *zeros(size_t n) { return calloc(n + 1, sizeof(double)); }

// A number from -1 to 1 for each k.
static double noise(size_t k) { return sin(12.9898 * (double)k + 78.233); }

static double *noises(size_t n, size_t from) {
  double *x = zeros(n);
  for (size_t i = 0; i < n; ++i) x[i] = noise(from + i);
  return x;
}

// Rollouts from the body's state, and their sensitivities by the parameters and one column more.
typedef struct Along {
  BodyPair *b;
  SinewBatch *batch;
  SinewParameters *parameters;
  size_t n, ns, nu, cols, rows;
  double *ctrl, *initial, *state, *sensordata;
  int steps, status[COUNT];
} Along;

static Along make_along(BodyPair *b, SinewBackend *backend, int steps, const SinewCfd *cfd) {
  const SinewSizes *s = sinew_model_sizes(b->model);
  SinewBatchDef def = sinew_default_batch();
  Along x = {.b = b, .n = (size_t)s->nstate, .ns = (size_t)s->nsensordata, .nu = (size_t)s->nu, .cols = PARAMETERS + 1};
  x.steps = steps;
  x.rows = (size_t)steps + 1;
  def.model = b->model, def.backend = backend, def.cfd = cfd;
  def.capacity = COUNT, def.steps = steps, def.gradients = true, def.max_velocity = 1e6;
  if (!(x.batch = sinew_batch_create(&def, &b->err))) fail_msg("%s", b->err.text);
  x.parameters = body_parameters(b->model, arrays, PARAMETERS, &b->err);
  x.ctrl = noises(COUNT * (size_t)steps * x.nu, 7);
  for (size_t i = 0; i < COUNT * (size_t)steps * x.nu; ++i) x.ctrl[i] = 0.4 + 0.3 * x.ctrl[i];
  x.initial = zeros(COUNT * x.n * x.cols);
  for (size_t i = 0; i < COUNT * x.n; ++i) x.initial[i * x.cols + PARAMETERS] = noise(i);
  x.state = zeros(COUNT * x.rows * x.n * x.cols);
  x.sensordata = zeros(COUNT * x.rows * x.ns * x.cols);
  return x;
}

static void free_along(Along *x) {
  double *const buffers[] = {x->ctrl, x->initial, x->state, x->sensordata};
  for (int i = 0; i < 4; ++i) free(buffers[i]);
  sinew_parameters_free(x->parameters);
  sinew_batch_free(x->batch);
}

static void roll(Along *x) {
  const SinewState at = sinew_data_state(x->b->data);
  SinewRollouts r = sinew_default_rollouts();
  r.count = COUNT, r.steps = x->steps, r.one_state = true;
  r.time = &at.time, r.qpos = at.qpos, r.qvel = at.qvel, r.act = at.act, r.mocap = at.mocap;
  r.ctrl = x->ctrl;
  r.status = x->status;
  body_ok(x->b, sinew_batch_rollout(x->batch, &r, &x->b->err));
}

static void sensitivities(Along *x, bool sensors) {
  SinewSensitivity out = sinew_default_sensitivity();
  out.parameters = x->parameters, out.columns = (int)x->cols, out.initial = x->initial;
  out.state = x->state, out.status = x->status;
  if (sensors) out.sensordata = x->sensordata;
  body_ok(x->b, sinew_batch_sensitivity(x->batch, &out, &x->b->err));
}

// Sum of the bars of rollout i times column c of its sensitivities.
static double product(const Along *x, size_t i, size_t c, double *const bar[3], const double *sensor_bar) {
  const size_t nv = (size_t)sinew_model_sizes(x->b->model)->nv, width[3] = {nv, nv, x->n - 2 * nv};
  double sum = 0;
  for (size_t t = 0; t < x->rows; ++t) {
    const size_t k = i * x->rows + t;
    const double *S = x->state + k * x->n * x->cols + c, *Y = x->sensordata + k * x->ns * x->cols + c;
    for (size_t g = 0, row = 0; g < 3; row += width[g++])
      for (size_t j = 0; j < width[g]; ++j) sum += bar[g][k * width[g] + j] * S[(row + j) * x->cols];
    for (size_t j = 0; sensor_bar && j < x->ns; ++j) sum += sensor_bar[k * x->ns + j] * Y[j * x->cols];
  }
  return sum;
}

static void compare(const char *name, double forward, double back, double scale, int column) {
  if (!(fabs(forward - back) <= 1e-9 * (fabs(back) + scale)))
    fail_msg("%s, column %d: %.15g forward, %.15g back", name, column, forward, back);
}

// Both ways must agree to rounding. Counts columns that are not zero.
static void compare_ways(const char *name, Along *x, bool sensors, int *moving) {
  const size_t nv = (size_t)sinew_model_sizes(x->b->model)->nv, na = x->n - 2 * nv, all = COUNT * x->rows;
  double *bar[3] = {noises(all * nv, 1), noises(all * nv, 2), noises(all * na, 3)}, *sensor = noises(all * x->ns, 4);
  double *q = zeros(COUNT * nv), *v = zeros(COUNT * nv), *a = zeros(COUNT * na), got[COUNT * PARAMETERS];
  SinewTrajectoryBars bars = sinew_default_bars();
  SinewGradients out = sinew_default_gradients();
  bars.qpos = bar[0], bars.qvel = bar[1], bars.act = bar[2], bars.sensordata = sensors ? sensor : NULL;
  out.qpos = q, out.qvel = v, out.act = a, out.parameters = x->parameters, out.parameter = got;
  body_ok(x->b, sinew_batch_vjp(x->batch, &bars, &out, &x->b->err));
  for (size_t i = 0; i < COUNT; ++i) {
    double scale = 0, back = 0;
    for (size_t p = 0; p < PARAMETERS; ++p) scale = sn_larger(scale, fabs(got[i * PARAMETERS + p]));
    for (size_t p = 0; p < PARAMETERS; ++p) {
      const double forward = product(x, i, p, bar, sensors ? sensor : NULL);
      compare(name, forward, got[i * PARAMETERS + p], scale, (int)p);
      *moving += forward != 0;
    }
    const double *first = x->initial + i * x->n * x->cols + PARAMETERS;
    for (size_t j = 0; j < nv; ++j) back += q[i * nv + j] * first[j * x->cols];
    for (size_t j = 0; j < nv; ++j) back += v[i * nv + j] * first[(nv + j) * x->cols];
    for (size_t j = 0; j < na; ++j) back += a[i * na + j] * first[(2 * nv + j) * x->cols];
    compare(name, product(x, i, PARAMETERS, bar, sensors ? sensor : NULL), back, 1, PARAMETERS);
  }
  double *const buffers[] = {bar[0], bar[1], bar[2], sensor, q, v, a};
  for (int i = 0; i < 7; ++i) free(buffers[i]);
}

static void test_both_ways(void **state) {
  (void)state;
  int moving = 0;
  for (int i = 0; i < BODY_MODELS; ++i) {
    BodyPair b;
    const char *name = body_open(&b, i);
    const bool sensors = i != 5;  // it has some whose derivative is not known
    Along one = make_along(&b, cpu[0], STEPS, NULL), many = make_along(&b, cpu[1], STEPS, NULL);
    body_sample(&b, 0.3);
    roll(&one);
    roll(&many);
    sensitivities(&one, sensors);
    sensitivities(&many, sensors);
    for (int k = 0; k < COUNT; ++k) assert_int_equal(one.status[k], SINEW_OK);
    assert_memory_equal(one.state, many.state, sizeof(double) * COUNT * one.rows * one.n * one.cols);
    assert_memory_equal(one.sensordata, many.sensordata, sizeof(double) * COUNT * one.rows * one.ns * one.cols);
    compare_ways(name, &one, sensors, &moving);
    free_along(&one);
    free_along(&many);
    body_close(&b);
  }
  print_message("%d derivatives are not zero\n", moving);
  assert_true(moving >= 150);
}

// The step is differentiated as with contacts from distance, in both ways.
static void test_from_distance(void **state) {
  (void)state;
  int moving = 0;
  BodyPair b;
  const char *name = body_open(&b, 1);
  SinewCfd cfd = sinew_default_cfd();
  Along x = make_along(&b, cpu[1], STEPS, &cfd);
  body_sample(&b, 0.3);
  roll(&x);
  sensitivities(&x, true);
  compare_ways(name, &x, true, &moving);
  free_along(&x);
  body_close(&b);
}

static const char swing[] =
    "<mujoco><option timestep='0.001'/><worldbody><body><joint name='j' axis='0 1 0' damping='0.2'/><geom size='0.1' "
    "pos='0.3 0 0'/></body></worldbody><actuator><motor joint='j'/></actuator>"
    "<sensor><jointpos joint='j'/><jointvel joint='j' cutoff='0.5'/><jointvel joint='j'/></sensor></mujoco>";

// More states than matrices are made for at a time; sensors of a joint are its state, but for one that is cut off.
static void test_many_states(void **state) {
  (void)state;
  int moving = 0;
  BodyPair b;
  const char *name = body_open(&b, 4);
  Along x = make_along(&b, cpu[1], 1200, NULL);
  assert_true(2 * x.rows * (x.n + x.ns) * (x.n + PARAMETERS) > 4 << 20);
  body_sample(&b, 0.1);
  roll(&x);
  sensitivities(&x, true);
  compare_ways(name, &x, true, &moving);
  free_along(&x);
  body_close(&b);
  body_open_string(&b, swing);
  x = make_along(&b, cpu[1], LONG, NULL);
  roll(&x);
  sensitivities(&x, true);
  int cut = 0;
  for (size_t t = 0; t < x.rows; ++t) {
    const double *S = x.state + t * x.n * x.cols, *Y = x.sensordata + t * x.ns * x.cols;
    assert_memory_equal(Y, S, sizeof(double) * x.cols);
    assert_memory_equal(Y + 2 * x.cols, S + x.cols, sizeof(double) * x.cols);
    cut += t > 0 && Y[x.cols + DAMPING] == 0 && S[x.cols + DAMPING] != 0;
  }
  assert_true(cut > 10);
  free_along(&x);
  body_close(&b);
}

static void expect(SinewStatus got, const SinewError *err, SinewStatus wanted, const char *word) {
  if (got != wanted || !strstr(err->text, word)) fail_msg("%d, %s: '%s' is expected", (int)got, err->text, word);
}

static void test_refusals(void **state) {
  (void)state;
  BodyPair b, other;
  SinewError err;
  body_open(&b, 5);
  body_open_string(&other, swing);
  Along x = make_along(&b, cpu[1], STEPS, NULL), y = make_along(&other, cpu[1], STEPS, NULL);
  SinewSensitivity out = sinew_default_sensitivity();
  out.parameters = x.parameters, out.columns = (int)x.cols, out.sensordata = x.sensordata;
  expect(sinew_batch_sensitivity(NULL, &out, &err), &err, SINEW_ERR_ARGUMENT, "batch is NULL");
  expect(sinew_batch_sensitivity(x.batch, NULL, &err), &err, SINEW_ERR_ARGUMENT, "NULL");
  expect(sinew_batch_sensitivity(x.batch, &out, &err), &err, SINEW_ERR_STATE, "no rollouts yet");
  roll(&x);
  expect(sinew_batch_sensitivity(x.batch, &out, &err), &err, SINEW_ERR_UNSUPPORTED, "has no derivative");
  double *sensors = zeros(x.ns);
  sensors[0] = 1;
  out.sensors = sensors;
  body_ok(&b, sinew_batch_sensitivity(x.batch, &out, &err));
  for (size_t i = 0; i < COUNT * x.rows * x.ns * x.cols; ++i)
    if (i / x.cols % x.ns != 0 && x.sensordata[i] != 0) fail_msg("a sensor that was left out has a derivative");
  out.columns = PARAMETERS - 1;
  expect(sinew_batch_sensitivity(x.batch, &out, &err), &err, SINEW_ERR_ARGUMENT, "columns is 32");
  out.columns = PARAMETERS + 1;
  out.parameters = y.parameters;
  expect(sinew_batch_sensitivity(x.batch, &out, &err), &err, SINEW_ERR_ARGUMENT, "another structure");
  out.parameters = x.parameters, out.initial = x.initial;
  x.initial[x.n * x.cols + 3] = (double)NAN;
  expect(sinew_batch_sensitivity(x.batch, &out, &err), &err, SINEW_ERR_ARGUMENT, "initial of rollout 1, number 3");
  out.initial = NULL, out.parameters = NULL, out.columns = 0;
  body_ok(&b, sinew_batch_sensitivity(x.batch, &out, &err));  // nothing is wanted
  free(sensors);
  free_along(&x);
  free_along(&y);
  body_close(&b);
  body_close(&other);
}

// One rollout of two leaves the range of velocities: it has zeros, the other its own.
static void test_divergence(void **state) {
  (void)state;
  BodyPair b;
  body_open_string(&b, swing);
  Along x = make_along(&b, cpu[1], STEPS, NULL);
  for (size_t i = 0; i < (size_t)x.steps; ++i) x.ctrl[i] = 1e9;
  roll(&x);
  assert_int_equal(x.status[0], SINEW_ERR_DIVERGED);
  sensitivities(&x, true);
  assert_int_equal(x.status[0], SINEW_ERR_DIVERGED);
  assert_int_equal(x.status[1], SINEW_OK);
  double sums[COUNT] = {0};
  const size_t each = x.rows * x.n * x.cols;
  for (size_t i = 0; i < COUNT * each; ++i) sums[i / each] += fabs(x.state[i]);
  assert_true(sums[0] == 0 && sums[1] > 0);
  free_along(&x);
  body_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_both_ways), cmocka_unit_test(test_from_distance),
                                     cmocka_unit_test(test_many_states), cmocka_unit_test(test_refusals),
                                     cmocka_unit_test(test_divergence)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
