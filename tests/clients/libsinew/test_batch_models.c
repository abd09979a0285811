// Batches whose rollouts have models of their own: each is, to the bit, what a batch of that model alone makes of it,
// forward and back; models of another structure are refused.
#include <math.h>
#include <stdio.h>

#include "tests/clients/libsinew/batch_fixture.h"

static SinewModel *model;
static SinewTask *task;
static SinewBackend *cpu, *cpu_one;
static SinewModel *other[N];  // the model itself, and copies that differ

static SinewModel *with_array(const char *name, int at, double value) {
  SinewError err;
  int rows, cols;
  const double *from = sinew_model_array(model, name, &rows, &cols);
  assert_non_null(from);
  double x[200];
  memcpy(x, from, sizeof *x * (size_t)(rows * cols));
  x[at] = value;
  const SinewArray array = {name, x, rows, cols};
  SinewModel *m = sinew_model_with_arrays(model, &array, 1, &err);
  if (!m) fail_msg("%s", err.text);
  return m;
}

static SinewModel *with_option(double timestep, int integrator) {
  SinewError err;
  SinewOptions options = sinew_default_options();
  test_accepted(sinew_model_get_options(model, &options, &err), &err);
  options.timestep = timestep;
  options.integrator = integrator;
  SinewModel *m = sinew_model_with_options(model, &options, &err);
  if (!m) fail_msg("%s", err.text);
  return m;
}

// The floor moves, which hangs on the world: it is not computed in steps. A time step changes schedules of targets.
static int setup(void **state) {
  (void)state;
  model = test_model_of_text(body_xml);
  task = test_task(body_task);
  cpu = test_cpu(2);
  cpu_one = test_cpu(1);
  other[0] = with_array("geom_pos", 2, -0.4);
  other[1] = model;
  other[2] = with_array("body_mass", 2, 2);
  other[3] = with_option(0.003, 1);  // mjINT_RK4
  other[4] = with_array("actuator_gainprm", 0, 1.5);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  for (int i = 0; i < N; ++i)
    if (other[i] != model) sinew_model_free(other[i]);
  sinew_backend_close(cpu);
  sinew_backend_close(cpu_one);
  sinew_task_free(task);
  sinew_model_free(model);
  return 0;
}

enum { NSTATE = 2 * NV + NA };

// Bars of everything, and what comes back.
typedef struct Way {
  double qpos[N * ROWS * NQ], qvel[N * ROWS * NV], act[N * ROWS * NA], sensordata[N * ROWS * NS], ctrl[N * T * NU];
  double ctrl_bar[N * T * NU], qpos_bar[N * NQ], qvel_bar[N * NV], act_bar[N * NA];
  double A[N * T * NSTATE * NSTATE];  // of each step
  int status[N];
} Way;

static void random_way(Way *w, uint64_t seed) {
  memset(w, 0, sizeof *w);
  for (size_t i = 0; i < offsetof(Way, ctrl_bar) / sizeof(double); ++i) ((double *)w)[i] = test_random(&seed);
}

static void go_back(SinewBatch *batch, Way *w) {
  SinewError err;
  SinewTrajectoryBars bars = sinew_default_bars();
  SinewGradients out = sinew_default_gradients();
  bars.coordinates = SINEW_ARRAY;
  bars.qpos = w->qpos, bars.qvel = w->qvel, bars.act = w->act, bars.sensordata = w->sensordata, bars.ctrl = w->ctrl;
  out.ctrl = w->ctrl_bar, out.qpos = w->qpos_bar, out.qvel = w->qvel_bar, out.act = w->act_bar;
  out.status = w->status;
  test_accepted(sinew_batch_vjp(batch, &bars, &out, &err), &err);
  SinewLinearization linearization = sinew_default_linearization();
  linearization.A = w->A;
  test_accepted(sinew_batch_linearize(batch, &linearization, &err), &err);
}

// Compares n numbers a rollout of all rollouts with row i of others.
static void assert_row(const double *x, const double *y, int i, int n) {
  assert_memory_equal(x + i * n, y + i * n, sizeof *x * (size_t)n);
}

static void compare(const Rollouts *x, const Rollouts *y, int i) {
  assert_row(x->out_time, y->out_time, i, ROWS);
  assert_row(x->out_qpos, y->out_qpos, i, ROWS * NQ);
  assert_row(x->out_qvel, y->out_qvel, i, ROWS * NV);
  assert_row(x->out_act, y->out_act, i, ROWS * NA);
  assert_row(x->out_sensordata, y->out_sensordata, i, ROWS * NS);
  assert_row(x->out_warmstart, y->out_warmstart, i, NV);
  assert_row(x->cost, y->cost, i, 1);
}

static void compare_ways(const Way *w, const Way *v, int i) {
  assert_row(w->ctrl_bar, v->ctrl_bar, i, T * NU);
  assert_row(w->qpos_bar, v->qpos_bar, i, NQ);
  assert_row(w->qvel_bar, v->qvel_bar, i, NV);
  assert_row(w->act_bar, v->act_bar, i, NA);
  assert_row(w->A, v->A, i, T * NSTATE * NSTATE);
  assert_int_equal(w->status[i], SINEW_OK);
}

// All rollouts, those that use their own qpos0 and mocap poses too.
static SinewRollouts call_of(Rollouts *x, int how) {
  SinewRollouts r = rollouts_of(x);
  r.one_state = how & 1;
  if (how & 2) r.qpos = r.mocap = NULL;
  return r;
}

// In turn with calls that have no models: nothing of the others stays behind.
static void check_models(SinewBackend *backend, const SinewTask *of, bool gradients, int how) {
  static Rollouts x, y, z;
  static Way w, v;
  SinewBatch *batch = make_batch(model, of, backend, gradients);
  random_rollouts(&x, 41);
  random_way(&w, 42);
  y = z = x;
  v = w;
  SinewRollouts r = call_of(&x, how), s = call_of(&y, how);
  for (int again = 0; again < 2; ++again) {
    r.models = (const SinewModel *const *)other;
    run_batch(batch, &r);
    if (gradients) go_back(batch, &w);
    run_batch(batch, &s);
    compare(&x, &y, 1);
    if (gradients) go_back(batch, &v);
    if (gradients) compare_ways(&w, &v, 1);
  }
  int different = 0;
  for (int i = 0; i < N; ++i) {
    SinewBatch *alone = make_batch(other[i], of, cpu_one, gradients);
    const SinewRollouts own = call_of(&z, how);
    run_batch(alone, &own);
    compare(&x, &z, i);
    if (gradients) go_back(alone, &v);
    if (gradients) compare_ways(&w, &v, i);
    different += memcmp(x.out_qpos + i * ROWS * NQ, y.out_qpos + i * ROWS * NQ, ROWS * NQ * sizeof(double)) != 0;
    sinew_batch_free(alone);
  }
  assert_int_equal(different, N - 1);
  sinew_batch_free(batch);
}

static void test_models(void **state) {
  (void)state;
  for (int how = 0; how < 4; ++how)
    for (int gradients = 0; gradients < 2; ++gradients) {
      check_models(cpu, task, gradients, how);
      check_models(cpu_one, NULL, gradients, how);
    }
}

static void test_refused_models(void **state) {
  (void)state;
  static Rollouts x;
  SinewError err;
  SinewBatch *batch = make_batch(model, NULL, cpu, false);
  random_rollouts(&x, 43);
  SinewRollouts r = rollouts_of(&x);
  SinewModel *list[N] = {other[0], other[1], other[2], NULL, other[4]};
  r.models = (const SinewModel *const *)list;
  test_refused(sinew_batch_rollout(batch, &r, &err), &err, SINEW_ERR_ARGUMENT, "models[3] is NULL");
  static const char *const from[] = {"<site name='tip'", "type='ball'", "limited='true'", "axis='0 1 0'"},
                           *const to[] = {"<site/><site name='tip'", "type='free'", "limited='false'",
                                          "axis='0 1 0' frictionloss='1'"},
                           *const word[] = {
                               "models[2]: site_bodyid has the shape (6, 1), that of the batch's model (5, 1)",
                               "models[2]: qpos0 has the shape", "models[2]: its bodies have other arrays",
                               "models[2]: its bodies have other arrays"};
  list[3] = model;
  for (int k = 0; k < 4; ++k) {
    char xml[4000];
    const char *at = strstr(body_xml, from[k]);
    snprintf(xml, sizeof xml, "%.*s%s%s", (int)(at - body_xml), body_xml, to[k], at + strlen(from[k]));
    list[2] = test_model_of_text(xml);
    for (int again = 0; again < 2; ++again)
      test_refused(sinew_batch_rollout(batch, &r, &err), &err, SINEW_ERR_ARGUMENT, word[k]);
    sinew_model_free(list[2]);
  }
  sinew_batch_free(batch);
}

// Bodies whose contacts act from a distance are chosen as pairs of the batch's model: as many others are refused.
static void test_pairs(void **state) {
  (void)state;
  static const char xml[] =
      "<mujoco><worldbody><geom type='plane' size='1 1 1' conaffinity='0'/>"
      "<body name='a' pos='0 0 1'><freejoint/><geom size='.1' contype='0'/></body>"
      "<body name='b' pos='1 0 1'><freejoint/><geom size='.1' contype='0' conaffinity='0'/></body>"
      "</worldbody></mujoco>";
  static const char *const bodies[] = {"a", NULL};
  SinewError err;
  SinewModel *of = test_model_of_text(xml);
  const SinewArray affinity = {"geom_conaffinity", (const double[]){0, 0, 1}, 3, 1};
  SinewModel *swapped = sinew_model_with_arrays(of, &affinity, 1, &err);
  if (!swapped) fail_msg("%s", err.text);
  SinewCfd cfd = sinew_default_cfd();
  cfd.use = SINEW_CFD_FORWARD;
  for (int chosen = 0; chosen < 2; ++chosen) {
    cfd.bodies = chosen ? bodies : NULL;
    SinewBatchDef def = sinew_default_batch();
    def.model = of;
    def.backend = cpu;
    def.capacity = def.steps = 1;
    def.cfd = &cfd;
    SinewBatch *batch = sinew_batch_create(&def, &err);
    if (!batch) fail_msg("%s", err.text);
    SinewRollouts r = sinew_default_rollouts();
    r.count = r.steps = 1;
    r.models = (const SinewModel *const[]){of};
    test_accepted(sinew_batch_rollout(batch, &r, &err), &err);
    r.models = (const SinewModel *const[]){swapped};
    const SinewStatus status = sinew_batch_rollout(batch, &r, &err);
    if (chosen)
      test_refused(status, &err, SINEW_ERR_ARGUMENT, "models[0]: other geoms can touch");
    else
      test_accepted(status, &err);
    sinew_batch_free(batch);
  }
  sinew_model_free(swapped);
  sinew_model_free(of);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_models), cmocka_unit_test(test_refused_models),
                                     cmocka_unit_test(test_pairs)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
