// Parameters of a model through sinew.h: derivatives of rollouts and of integrations by them against differences of
// whole runs, several at once, and what is refused. All arrays and pairs of geoms stand in test_model_tangents.py.
#include <math.h>
#include <string.h>

#include "tests/clients/libsinew/pair_fixture.h"

enum { STEPS = 15, COUNT = 2, PARAMETERS = 6, MOST = 64 };

// A ball and a box on a floor, an arm with a muscle and a tendon around a cylinder.
static const char scene[] =
    "<mujoco><option timestep='0.004' tolerance='1e-15'/><worldbody><geom type='plane' size='2 2 1'/>"
    "<body pos='0 0 0.099'><freejoint/><geom type='box' size='0.1 0.1 0.1' mass='1'/>"
    "<geom size='0.08' pos='0 0.12 0' mass='0.4'/></body>"
    "<body pos='1 0 1'><joint name='j' axis='0 1 0' damping='0.1' stiffness='1'/><geom type='capsule' size='0.02' "
    "fromto='0 0 0 0.3 0 0'/><site name='end' pos='0.2 0 0.04'/></body>"
    "<site name='start' pos='0.8 0 1.02'/><geom name='roll' type='cylinder' size='0.05 0.1' pos='1 0 1' euler='90 0 0' "
    "contype='0' conaffinity='0'/></worldbody>"
    "<tendon><spatial name='t'><site site='start'/><geom geom='roll'/><site site='end'/></spatial></tendon>"
    "<actuator><muscle tendon='t' lengthrange='0.2 0.6' force='20'/></actuator></mujoco>";

// What each parameter is: an array, times 1 + step.
static const char *const arrays[PARAMETERS] = {"body_mass",        "geom_size",   "geom_friction",
                                               "actuator_gainprm", "dof_damping", "site_pos"};

typedef struct Scene {
  BodyPair b;
  SinewBackend *backend;
  SinewBatch *batch;
  double qpos[COUNT * MOST], qvel[COUNT * MOST], ctrl[STEPS], bar[COUNT * (STEPS + 1) * MOST];
  double out[COUNT * (STEPS + 1) * MOST];
  int nq, nv;
} Scene;

static void refused(SinewStatus status, const SinewError *err, SinewStatus wanted, const char *word) {
  if (status != wanted || !strstr(err->text, word)) fail_msg("%d, %s: '%s' is expected", (int)status, err->text, word);
}

static SinewParameters *all_parameters(const SinewModel *model, SinewError *err) {
  SinewParameters *all = body_parameters(model, arrays, PARAMETERS, err);
  assert_int_equal(sinew_parameters_count(all), PARAMETERS);
  return all;
}

static void open_scene(Scene *s) {
  memset(s, 0, sizeof *s);
  body_open_string(&s->b, scene);
  s->nq = sinew_model_sizes(s->b.model)->nq;
  s->nv = sinew_model_sizes(s->b.model)->nv;
  for (int i = 0; i < COUNT; ++i) {
    memcpy(s->qpos + i * s->nq, s->b.o.mj->qpos0, sizeof(double) * (size_t)s->nq);
    for (int k = 0; k < s->nv; ++k) s->qvel[i * s->nv + k] = 0.3 * sn_oracle_uniform(&s->b.o);
  }
  for (int t = 0; t < STEPS; ++t) s->ctrl[t] = 0.6;
  for (int i = 0; i < COUNT * (STEPS + 1) * s->nq; ++i) s->bar[i] = sn_oracle_uniform(&s->b.o);
  s->backend = sinew_backend_open("cpu", NULL, &s->b.err);
  SinewBatchDef def = sinew_default_batch();
  def.model = s->b.model;
  def.backend = s->backend;
  def.capacity = COUNT;
  def.steps = STEPS;
  def.gradients = true;
  s->batch = sinew_batch_create(&def, &s->b.err);
  if (!s->batch) fail_msg("%s", s->b.err.text);
}

static void close_scene(Scene *s) {
  sinew_batch_free(s->batch);
  sinew_backend_close(s->backend);
  body_close(&s->b);
}

// Runs rollouts, of `model` or, where it is NULL, of the batch's own; writes the number of each (COUNT).
static void run(Scene *s, const SinewModel *model, double *number) {
  const SinewModel *models[COUNT] = {model, model};
  SinewRollouts r = sinew_default_rollouts();
  r.count = COUNT;
  r.steps = STEPS;
  r.one_ctrl = true;
  r.qpos = s->qpos;
  r.qvel = s->qvel;
  r.ctrl = s->ctrl;
  r.out_qpos = s->out;
  r.models = model ? models : NULL;
  const SinewStatus status = sinew_batch_rollout(s->batch, &r, &s->b.err);
  if (status != SINEW_OK) fail_msg("%s", s->b.err.text);
  const int n = (STEPS + 1) * s->nq;
  for (int i = 0; i < COUNT; ++i) {
    number[i] = 0;
    for (int k = 0; k < n; ++k) number[i] += s->bar[i * n + k] * s->out[i * n + k];
  }
}

static void rollouts(void **state) {
  (void)state;
  Scene s;
  double up[COUNT], down[COUNT], plain[COUNT * MOST], beside[COUNT * MOST], got[COUNT * PARAMETERS];
  open_scene(&s);
  SinewParameters *all = all_parameters(s.b.model, &s.b.err);
  SinewTrajectoryBars bars = sinew_default_bars();
  SinewGradients out = sinew_default_gradients();
  bars.coordinates = SINEW_ARRAY;
  bars.qpos = s.bar;
  run(&s, NULL, up);
  out.qvel = plain;
  assert_int_equal(sinew_batch_vjp(s.batch, &bars, &out, &s.b.err), SINEW_OK);
  out.qvel = beside;
  out.parameters = all;
  out.parameter = got;
  for (int again = 0; again < 2; ++again)
    if (sinew_batch_vjp(s.batch, &bars, &out, &s.b.err) != SINEW_OK) fail_msg("%s", s.b.err.text);
  assert_memory_equal(plain, beside, sizeof(double) * (size_t)(COUNT * s.nv));
  for (int p = 0; p < PARAMETERS; ++p) {
    SinewModel *more = body_moved(s.b.model, arrays[p], 1e-6, &s.b.err),
               *less = body_moved(s.b.model, arrays[p], -1e-6, &s.b.err);
    run(&s, more, up);
    run(&s, less, down);
    for (int i = 0; i < COUNT; ++i) {
      const double difference = (up[i] - down[i]) / 2e-6, found = got[i * PARAMETERS + p];
      if (!(fabs(found - difference) <= 1e-5 * (fabs(difference) + 1e-3)) || found == 0)
        fail_msg("%s, rollout %d: %.10g, by differences %.10g", arrays[p], i, found, difference);
    }
    sinew_model_free(more);
    sinew_model_free(less);
  }
  sinew_parameters_free(all);
  close_scene(&s);
}

static void integrations(void **state) {
  (void)state;
  BodyPair b;
  double start[MOST], qpos[MOST], out_time = 0.05, got[PARAMETERS], end[2], bar[MOST];
  body_open_string(&b, scene);
  const int nq = sinew_model_sizes(b.model)->nq;
  SinewParameters *all = all_parameters(b.model, &b.err);
  for (int k = 0; k < nq; ++k) bar[k] = k == 7;  // of the hinge: contacts' moments move
  memcpy(start, b.o.mj->qpos0, sizeof(double) * (size_t)nq);
  start[2] = 0.5;  // nothing touches
  for (int run = 0; run < 2 * PARAMETERS + 1; ++run) {
    SinewModel *m = run == 0 ? NULL : body_moved(b.model, arrays[(run - 1) / 2], run % 2 ? 1e-4 : -1e-4, &b.err);
    SinewIntegratorDef def = sinew_default_integrator();
    def.model = m ? m : b.model;
    def.gradients = true;
    def.rtol = def.atol = 1e-10;
    SinewIntegrator *x = sinew_integrator_create(&def, &b.err);
    const SinewState from = {.qpos = start};
    SinewIntegration in = sinew_default_integration();
    const double knot_time = 0, knot = 0.7;
    in.duration = out_time;
    in.nknot = 1;
    in.knot_time = &knot_time;
    in.knot = &knot;
    in.nout = 1;
    in.out_time = &out_time;
    in.out_qpos = qpos;
    if (sinew_integrator_run(x, &from, &in, NULL, &b.err) != SINEW_OK) fail_msg("%s", b.err.text);
    if (run == 0) {
      SinewIntegrationBars bars = sinew_default_integration_bars();
      bars.coordinates = SINEW_ARRAY;
      bars.out_qpos = bar;
      bars.parameter = got;
      refused(sinew_integrator_vjp(x, &bars, &b.err), &b.err, SINEW_ERR_ARGUMENT, "parameters is NULL");
      bars.parameters = all;
      if (sinew_integrator_vjp(x, &bars, &b.err) != SINEW_OK) fail_msg("%s", b.err.text);
    } else {
      end[run % 2] = qpos[7];
    }
    if (run > 0 && run % 2 == 0) {
      const double difference = (end[1] - end[0]) / 2e-4, found = got[(run - 1) / 2];
      if (!(fabs(found - difference) <= 1e-5 * (fabs(difference) + 1e-3)))
        fail_msg("%s: %.10g, by differences %.10g", arrays[(run - 1) / 2], found, difference);
    }
    sinew_integrator_free(x);
    sinew_model_free(m);
  }
  assert_true(got[3] != 0 && got[4] != 0 && got[5] != 0);
  sinew_parameters_free(all);
  body_close(&b);
}

static void refusals(void **state) {
  (void)state;
  Scene s;
  BodyPair other;
  double number[COUNT], step = 1e-5, got[COUNT];
  open_scene(&s);
  SinewError *err = &s.b.err;
  SinewModel *more = body_moved(s.b.model, "body_mass", 1e-5, err);
  const SinewModel *const plus[1] = {more}, *const nothing[1] = {NULL};
  body_open_string(&other, "<mujoco><worldbody><body><joint/><geom size='0.1'/></body></worldbody></mujoco>");
  const SinewModel *const strange[1] = {other.model};
  assert_null(sinew_parameters_create(NULL, plus, plus, &step, 1, err));
  refused(err->status, err, SINEW_ERR_ARGUMENT, "model, plus, minus or step is NULL");
  assert_null(sinew_parameters_create(s.b.model, plus, nothing, &step, 1, err));
  refused(err->status, err, SINEW_ERR_ARGUMENT, "minus[0] is NULL");
  assert_null(sinew_parameters_create(s.b.model, strange, plus, &step, 1, err));
  refused(err->status, err, SINEW_ERR_ARGUMENT, "plus[0]");
  step = (double)NAN;
  assert_null(sinew_parameters_create(s.b.model, plus, plus, &step, 1, err));
  refused(err->status, err, SINEW_ERR_ARGUMENT, "step[0]");
  SinewOptions options = sinew_default_options();
  step = 1e-5;
  sinew_model_get_options(s.b.model, &options, err);
  options.timestep = 0.01;
  SinewModel *slow = sinew_model_with_options(s.b.model, &options, err);
  if (!slow) fail_msg("%s", err->text);
  const SinewModel *const slower[1] = {slow};
  assert_null(sinew_parameters_create(s.b.model, slower, plus, &step, 1, err));
  refused(err->status, err, SINEW_ERR_UNSUPPORTED, "timestep");
  options.timestep = 0.005;
  options.noslip_iterations = 3;
  SinewModel *slipping = sinew_model_with_options(s.b.model, &options, err);
  SinewParameters *of_slipping = sinew_parameters_create(slipping, NULL, NULL, NULL, 0, err);
  assert_non_null(of_slipping);
  sinew_parameters_free(of_slipping);
  sinew_model_free(slipping);
  SinewParameters *none = sinew_parameters_create(s.b.model, NULL, NULL, NULL, 0, err);
  assert_int_equal(sinew_parameters_count(none), 0);
  SinewParameters *of_other = sinew_parameters_create(other.model, strange, strange, &step, 1, err);
  assert_non_null(of_other);
  run(&s, NULL, number);
  SinewTrajectoryBars bars = sinew_default_bars();
  SinewGradients out = sinew_default_gradients();
  bars.coordinates = SINEW_ARRAY;
  bars.qpos = s.bar;
  out.parameter = got;
  refused(sinew_batch_vjp(s.batch, &bars, &out, err), err, SINEW_ERR_ARGUMENT, "parameters is NULL");
  out.parameters = of_other;
  refused(sinew_batch_vjp(s.batch, &bars, &out, err), err, SINEW_ERR_ARGUMENT, "another structure");
  out.parameters = none;
  assert_int_equal(sinew_batch_vjp(s.batch, &bars, &out, err), SINEW_OK);
  assert_int_equal(sinew_parameters_count(NULL), 0);
  sinew_parameters_free(none);
  sinew_parameters_free(of_other);
  sinew_model_free(slow);
  sinew_model_free(more);
  body_close(&other);
  close_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rollouts), cmocka_unit_test(integrations),
                                     cmocka_unit_test(refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
