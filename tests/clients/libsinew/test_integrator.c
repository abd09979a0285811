// Integration with chosen steps through sinew.h: fixed steps of RK4 against MuJoCo's, methods against each other, the
// way back against differences of runs, how runs end, what is refused.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/clients/libsinew/pair_fixture.h"

enum { OUTS = 5, KNOTS = 3, MOST = 400 };

// A run of a body from MuJoCo's state: its horizon, its results, bars of these, derivatives.
typedef struct Run {
  BodyPair b;
  SinewIntegratorDef def;
  SinewIntegrator *x;
  SinewIntegration in;
  SinewIntegrationReport report;
  int nq, nv, na, nu;
  double knot_time[KNOTS], knot[MOST], out_time[OUTS], start[MOST], act[MOST];
  double qpos[MOST], qvel[MOST], out_act[MOST];
} Run;

static void refused(SinewStatus status, const SinewError *err, SinewStatus wanted, const char *word) {
  if (status != wanted || !strstr(err->text, word)) fail_msg("%d, %s: '%s' is expected", (int)status, err->text, word);
}

// A link on a ball joint, one on a hinge, a motor with a filter and a muscle, nothing that touches or has limits.
static const char smooth_xml[] =
    "<mujoco><option timestep='0.002'/><worldbody><body pos='0 0 1'><joint type='ball' damping='0.1'/>"
    "<geom type='capsule' size='0.03 0.1' fromto='0 0 0 0.3 0 0' contype='0' conaffinity='0'/>"
    "<body pos='0.3 0 0'><joint name='j' axis='0 1 0' damping='0.05' stiffness='1'/>"
    "<geom type='capsule' size='0.02' fromto='0 0 0 0.2 0 0.05' contype='0' conaffinity='0'/></body></body></worldbody>"
    "<actuator><general joint='j' dyntype='filter' dynprm='0.03' gainprm='0.5'/><muscle joint='j' lengthrange='-3 3' "
    "force='2'/></actuator></mujoco>";

// Opens a body of body_open in a random state, or, below 0, that one in a gentle one.
static void open_run(Run *r, int body, double duration) {
  memset(r, 0, sizeof *r);
  if (body < 0) {
    body_open_string(&r->b, smooth_xml);
    for (int i = 0; i < r->b.o.mj->nq; ++i) r->b.o.d->qpos[i] += 0.1 * sn_oracle_uniform(&r->b.o);
    mju_normalize4(r->b.o.d->qpos);
    for (int i = 0; i < r->b.o.mj->nv; ++i) r->b.o.d->qvel[i] = sn_oracle_uniform(&r->b.o);
  } else {
    body_open(&r->b, body);
    body_sample(&r->b, 0.5);
  }
  const SinewSizes *s = sinew_model_sizes(r->b.model);
  r->nq = s->nq;
  r->nv = s->nv;
  r->na = s->na;
  r->nu = s->nu;
  assert_true(OUTS * r->nq <= MOST && KNOTS * r->nu <= MOST);
  r->def = sinew_default_integrator();
  r->def.model = r->b.model;
  r->def.gradients = true;
  r->in = sinew_default_integration();
  r->in.duration = duration;
  r->in.nknot = KNOTS;
  r->in.nout = OUTS;
  r->in.knot_time = r->knot_time;
  r->in.knot = r->knot;
  r->in.out_time = r->out_time;
  r->in.out_qpos = r->qpos;
  r->in.out_qvel = r->qvel;
  r->in.out_act = r->out_act;
  for (int k = 0; k < OUTS; ++k) r->out_time[k] = duration * k / (OUTS - 1);
  for (int k = 0; k < KNOTS; ++k) r->knot_time[k] = duration * (0.1 + 0.35 * k);
  for (int i = 0; i < KNOTS * r->nu; ++i) r->knot[i] = 0.5 + 0.4 * sn_oracle_uniform(&r->b.o);
  memcpy(r->start, r->b.o.d->qpos, sizeof(double) * (size_t)r->nq);
  for (int i = 0; i < r->na; ++i) r->act[i] = 0.5 + 0.3 * sn_oracle_uniform(&r->b.o);
  r->report = sinew_default_integration_report();
}

static void close_run(Run *r) {
  sinew_integrator_free(r->x);
  body_close(&r->b);
}

static void make(Run *r) {
  sinew_integrator_free(r->x);
  r->x = sinew_integrator_create(&r->def, &r->b.err);
  if (!r->x) fail_msg("%s", r->b.err.text);
}

static SinewState state_of(const Run *r) {
  return (SinewState){.qpos = r->start, .qvel = r->b.o.d->qvel, .act = r->act};
}

// Runs, and fails the test unless it comes to its end.
static void go(Run *r) {
  const SinewState from = state_of(r);
  if (sinew_integrator_run(r->x, &from, &r->in, &r->report, &r->b.err) != SINEW_OK) fail_msg("%s", r->b.err.text);
  if (r->report.end != SINEW_END_DONE) fail_msg("%s", sinew_integration_end_text(r->report.end));
}

static double distance(const double *a, const double *b, int n) {
  double most = 0;
  for (int i = 0; i < n; ++i) most = sn_larger(most, fabs(a[i] - b[i]));
  return most;
}

// Steps of RK4 at outputs that lie on them, controls held: mj_step with that integrator.
static void fixed_steps_are_mujocos(void **state) {
  (void)state;
  Run r;
  open_run(&r, 2, 1);
  mjModel *mj = r.b.o.mj;
  mjData *d = r.b.o.d;
  assert_int_equal(mj->opt.integrator, mjINT_RK4);
  const double dt = mj->opt.timestep;
  r.def.method = "rk4";
  r.def.fixed_step = dt;
  r.in.duration = dt * (OUTS - 1);
  for (int k = 0; k < OUTS; ++k) r.out_time[k] = dt * k;
  r.in.nknot = 1;
  r.knot_time[0] = 0;
  make(&r);
  go(&r);
  assert_int_equal(r.report.accepted, OUTS - 1);
  for (int i = 0; i < r.nu; ++i) d->ctrl[i] = r.knot[i];
  for (int i = 0; i < r.na; ++i) d->act[i] = r.act[i];
  for (int k = 1; k < OUTS; ++k) {
    mj_step(mj, d);
    const double off = distance(d->qpos, r.qpos + k * r.nq, r.nq) + distance(d->qvel, r.qvel + k * r.nv, r.nv) +
                       distance(d->act, r.out_act + k * r.na, r.na);
    if (!(off < 1e-9)) fail_msg("step %d of RK4 is %.3g from MuJoCo's", k, off);
  }
  close_run(&r);
}

// A method of order 5 at 1e-9 and one of order 8 at 1e-11; twice the same is the same to the bit.
static void methods_agree(void **state) {
  (void)state;
  static double qpos[MOST], qvel[MOST], act[MOST];
  Run r;
  open_run(&r, -1, 0.2);
  r.def.method = "dopri8";
  r.def.rtol = r.def.atol = 1e-11;
  make(&r);
  go(&r);
  memcpy(qpos, r.qpos, sizeof qpos);
  memcpy(qvel, r.qvel, sizeof qvel);
  memcpy(act, r.out_act, sizeof act);
  go(&r);
  assert_memory_equal(qpos, r.qpos, sizeof qpos);
  r.def.method = "tsit5";
  r.def.rtol = r.def.atol = 1e-9;
  make(&r);
  go(&r);
  printf("tsit5: %d steps, %d rejected, %d evaluations\n", r.report.accepted, r.report.rejected, r.report.evaluations);
  const double off =
      distance(qpos, r.qpos, OUTS * r.nq) + distance(qvel, r.qvel, OUTS * r.nv) + distance(act, r.out_act, OUTS * r.na);
  if (!(off < 1e-6)) fail_msg("tsit5 and dopri8 differ by %.3g", off);
  static double time[100000];
  const int n = sinew_integrator_steps(r.x, time, 100000);
  assert_int_equal(n, r.report.accepted);
  assert_true(n > 3 && time[0] == 0 && time[n - 1] < r.in.duration);
  for (int k = 1; k < n; ++k) assert_true(time[k] > time[k - 1]);
  close_run(&r);
}

// The weighted sum of positions, whose first four numbers are a quaternion that counts by its direction. bar: its
// derivative.
static double weigh(const double *weight, const double *qpos, int nq, double *bar) {
  double sum = 0, along = 0, length = 0;
  for (int i = 0; i < 4; ++i) {
    length += qpos[i] * qpos[i];
    along += weight[i] * qpos[i];
  }
  length = sqrt(length);
  for (int i = 0; i < nq; ++i) {
    const double u = i < 4 ? qpos[i] / length : qpos[i];
    sum += weight[i] * u;
    if (bar) bar[i] = i < 4 ? (weight[i] - u * along / length) / length : weight[i];
  }
  return sum;
}

// The weighted outputs with one input moved.
static double moved(Run *r, const double *weight, double *input, double eps) {
  const double before = *input;
  double sum = 0;
  *input = before + eps;
  go(r);
  *input = before;
  for (int k = 0; k < OUTS; ++k) sum += weigh(weight + k * r->nq, r->qpos + k * r->nq, r->nq, NULL);
  for (int i = 0; i < OUTS * r->nv; ++i) sum += 0.1 * weight[i] * r->qvel[i];
  return sum;
}

// Fixed steps, so that differences are of the same function; derivatives by a quaternion's entries.
static void way_back(void **state) {
  (void)state;
  Run all, *r = &all;
  open_run(r, -1, 0.1);
  static double weight[MOST], qvel_weight[MOST], qpos_bar[MOST], qpos[MOST], qvel[MOST], act[MOST], knot[MOST];
  for (int i = 0; i < MOST; ++i) {
    weight[i] = sn_oracle_uniform(&r->b.o);
    qvel_weight[i] = 0.1 * weight[i];
  }
  r->def.linear = true;
  r->def.fixed_step = r->in.duration / 20;
  make(r);
  go(r);
  SinewIntegrationBars bars = sinew_default_integration_bars();
  bars.coordinates = SINEW_ARRAY;
  for (int k = 0; k < OUTS; ++k) weigh(weight + k * r->nq, r->qpos + k * r->nq, r->nq, qpos_bar + k * r->nq);
  bars.out_qpos = qpos_bar;
  bars.out_qvel = qvel_weight;
  bars.qpos = qpos;
  bars.qvel = qvel;
  bars.act = act;
  bars.knot = knot;
  if (sinew_integrator_vjp(r->x, &bars, &r->b.err) != SINEW_OK) fail_msg("%s", r->b.err.text);
  const struct {
    const char *name;
    double *input, *got;
    int n;
  } part[] = {{"qpos", r->start, qpos, r->nq},
              {"qvel", r->b.o.d->qvel, qvel, r->nv},
              {"act", r->act, act, r->na},
              {"knot", r->knot, knot, KNOTS * r->nu}};
  int compared = 0;
  for (size_t p = 0; p < sizeof part / sizeof *part; ++p)
    for (int i = 0; i < part[p].n; ++i) {
      const double eps = 1e-6, up = moved(r, weight, part[p].input + i, eps);
      const double slope = (up - moved(r, weight, part[p].input + i, -eps)) / (2 * eps);
      if (!(fabs(slope - part[p].got[i]) < 1e-5 * (1 + fabs(slope))))
        fail_msg("%s[%d]: %.9g, by difference %.9g", part[p].name, i, part[p].got[i], slope);
      compared += slope != 0;
    }
  assert_true(compared > r->nv);
  close_run(r);
}

// Chosen steps: little memory gives the bits of much, and the backsolve agrees to the tolerance, where it is had.
static void two_adjoints(void **state) {
  (void)state;
  Run r;
  open_run(&r, -1, 0.1);
  static double weight[MOST], qvel[3][MOST];
  for (int i = 0; i < MOST; ++i) weight[i] = sn_oracle_uniform(&r.b.o);
  r.def.rtol = r.def.atol = 1e-9;
  for (int k = 0; k < 3; ++k) {
    SinewIntegrationBars bars = sinew_default_integration_bars();
    bars.out_qvel = weight;
    bars.qvel = qvel[k];
    bars.adjoint = k == 2 ? SINEW_BACKSOLVE : SINEW_DISCRETE;
    r.def.memory = k == 1 ? 60000 : (size_t)1 << 28;
    make(&r);
    go(&r);
    if (sinew_integrator_vjp(r.x, &bars, &r.b.err) != SINEW_OK) fail_msg("%s", r.b.err.text);
    for (int i = 0; i < r.nv; ++i) {
      assert_true(k != 1 || qvel[1][i] == qvel[0][i]);
      assert_true(fabs(qvel[k][i] - qvel[0][i]) < 1e-5);
    }
    bars.adjoint = (SinewAdjoint)2;
    refused(sinew_integrator_vjp(r.x, &bars, &r.b.err), &r.b.err, SINEW_ERR_ARGUMENT, "adjoint is 2");
  }
  close_run(&r);
}

// A run that does not come to its end is data; outputs that it has not reached are NaN.
static void ends(void **state) {
  (void)state;
  Run r;
  open_run(&r, -1, 0.2);
  const SinewState from = state_of(&r);
  SinewIntegrationBars bars = sinew_default_integration_bars();
  r.def.max_steps = 4;
  make(&r);
  if (sinew_integrator_run(r.x, &from, &r.in, &r.report, &r.b.err) != SINEW_OK) fail_msg("%s", r.b.err.text);
  assert_int_equal(r.report.end, SINEW_END_STEPS);
  assert_true(r.report.reached < 0.2 && r.report.accepted + r.report.rejected == 4);
  assert_true(isfinite(r.qpos[0]) && isnan(r.qpos[(OUTS - 1) * r.nq]) && isnan(r.qvel[(OUTS - 1) * r.nv]) &&
              isnan(r.out_act[(OUTS - 1) * r.na]));
  refused(sinew_integrator_vjp(r.x, &bars, &r.b.err), &r.b.err, SINEW_ERR_STATE, "no run that was done");
  r.def.max_steps = 100000;
  r.def.memory = 4000;
  make(&r);
  if (sinew_integrator_run(r.x, &from, &r.in, &r.report, &r.b.err) != SINEW_OK) fail_msg("%s", r.b.err.text);
  assert_int_equal(r.report.end, SINEW_END_MEMORY);
  r.def.memory = (size_t)1 << 30;
  r.def.gradients = false;
  make(&r);
  go(&r);
  assert_int_equal(sinew_integrator_steps(r.x, NULL, 0), 0);
  refused(sinew_integrator_vjp(r.x, &bars, &r.b.err), &r.b.err, SINEW_ERR_STATE, "without gradients");
  r.def.rtol = r.def.atol = 1e-9;
  r.def.smallest_step = 0.1;
  make(&r);
  if (sinew_integrator_run(r.x, &from, &r.in, &r.report, &r.b.err) != SINEW_OK) fail_msg("%s", r.b.err.text);
  assert_int_equal(r.report.end, SINEW_END_SMALLEST);
  close_run(&r);
}

// A run without controls has none, whatever the run before it had.
static void without_controls(void **state) {
  (void)state;
  Run r;
  double used[MOST];
  open_run(&r, -1, 0.1);
  make(&r);
  go(&r);
  r.in.nknot = 0;
  go(&r);
  memcpy(used, r.qpos, sizeof used);
  make(&r);
  go(&r);
  assert_memory_equal(used, r.qpos, sizeof *used * (size_t)(OUTS * r.nq));
  close_run(&r);
}

// Nothing moves in a world without joints, and that is done.
static void nothing_moves(void **state) {
  (void)state;
  BodyPair b;
  SinewIntegratorDef def = sinew_default_integrator();
  SinewIntegration in = sinew_default_integration();
  SinewIntegrationReport report = sinew_default_integration_report();
  SinewIntegrationBars bars = sinew_default_integration_bars();
  const SinewState from = {.time = 0};
  body_open_string(&b, "<mujoco><worldbody><geom size='0.1'/></worldbody></mujoco>");
  def.model = b.model;
  def.gradients = true;
  in.duration = 1;
  SinewIntegrator *x = sinew_integrator_create(&def, &b.err);
  if (!x) fail_msg("%s", b.err.text);
  body_ok(&b, sinew_integrator_run(x, &from, &in, &report, &b.err));
  assert_int_equal(report.end, SINEW_END_DONE);
  assert_true(report.reached == 1);
  body_ok(&b, sinew_integrator_vjp(x, &bars, &b.err));
  sinew_integrator_free(x);
  body_close(&b);
}

static void refuses_definitions(void **state) {
  (void)state;
  Run r;
  open_run(&r, -1, 0.1);
  SinewIntegratorDef d[8];
  for (int k = 0; k < 8; ++k) d[k] = r.def;
  d[0].model = NULL;
  d[1].method = "rk45";
  d[2].rtol = 0;
  d[3].atol = (double)NAN;
  d[4].method = "rk4";
  d[5].max_steps = 0;
  d[6].memory = 10;
  d[7].method = NULL;
  const char *const word[] = {"model", "'rk45'", "rtol", "atol", "fixed_step", "max_steps", "memory", "method"};
  for (int k = 0; k < 8; ++k) {
    assert_null(sinew_integrator_create(d + k, &r.b.err));
    refused(r.b.err.status, &r.b.err, k == 1 ? SINEW_ERR_NOT_FOUND : SINEW_ERR_ARGUMENT, word[k]);
  }
  assert_null(sinew_integrator_create(NULL, &r.b.err));
  sinew_integrator_free(NULL);
  close_run(&r);
}

static void refuses_runs(void **state) {
  (void)state;
  Run r;
  open_run(&r, -1, 0.1);
  make(&r);
  SinewState from = state_of(&r);
  SinewIntegration in = r.in;
  in.duration = 0;
  refused(sinew_integrator_run(r.x, &from, &in, NULL, &r.b.err), &r.b.err, SINEW_ERR_ARGUMENT, "duration");
  in = r.in;
  in.knot = NULL;
  refused(sinew_integrator_run(r.x, &from, &in, NULL, &r.b.err), &r.b.err, SINEW_ERR_ARGUMENT,
          "knot_time or knot is NULL");
  in = r.in;
  in.nout = -1;
  refused(sinew_integrator_run(r.x, &from, &in, NULL, &r.b.err), &r.b.err, SINEW_ERR_ARGUMENT, "nout");
  go(&r);  // what was done before a refusal cannot be gone back through
  refused(sinew_integrator_run(r.x, &from, &in, NULL, &r.b.err), &r.b.err, SINEW_ERR_ARGUMENT, "nout");
  SinewIntegrationBars none = sinew_default_integration_bars();
  refused(sinew_integrator_vjp(r.x, &none, &r.b.err), &r.b.err, SINEW_ERR_STATE, "no run that was done");
  assert_int_equal(sinew_integrator_steps(r.x, NULL, 0), 0);
  r.out_time[2] = 9;
  refused(sinew_integrator_run(r.x, &from, &r.in, NULL, &r.b.err), &r.b.err, SINEW_ERR_ARGUMENT, "out_time[2]");
  r.out_time[2] = 0.05;
  r.knot[1] = (double)INFINITY;
  refused(sinew_integrator_run(r.x, &from, &r.in, NULL, &r.b.err), &r.b.err, SINEW_ERR_ARGUMENT, "control");
  r.knot[1] = 0;
  r.start[1] = (double)NAN;
  refused(sinew_integrator_run(r.x, &from, &r.in, NULL, &r.b.err), &r.b.err, SINEW_ERR_DIVERGED, "qpos[1]");
  r.start[1] = 0;
  refused(sinew_integrator_run(r.x, NULL, &r.in, NULL, &r.b.err), &r.b.err, SINEW_ERR_ARGUMENT, "from is NULL");
  refused(sinew_integrator_run(NULL, &from, &r.in, NULL, &r.b.err), &r.b.err, SINEW_ERR_ARGUMENT, "integrator is NULL");
  go(&r);
  SinewIntegrationBars bars = sinew_default_integration_bars();
  double nan[MOST] = {0};
  nan[1] = (double)NAN;
  bars.out_qvel = nan;
  refused(sinew_integrator_vjp(r.x, &bars, &r.b.err), &r.b.err, SINEW_ERR_ARGUMENT, "out_qvel[1]");
  bars.coordinates = (SinewCoordinates)7;
  refused(sinew_integrator_vjp(r.x, &bars, &r.b.err), &r.b.err, SINEW_ERR_ARGUMENT, "coordinates");
  refused(sinew_integrator_vjp(NULL, &bars, &r.b.err), &r.b.err, SINEW_ERR_ARGUMENT, "integrator is NULL");
  close_run(&r);
}

// A ball at the end of a spring whose other end a mocap body carries, off its origin: the height of the ball at the
// end.
static double hung(SinewIntegrator *x, const double *mocap) {
  const double end = 0.3, qpos[3] = {0.1, 0.05, 0.6}, qvel[3] = {0};
  double out[3];
  const SinewState from = {.qpos = qpos, .qvel = qvel, .mocap = mocap};
  SinewIntegration run = sinew_default_integration();
  run.duration = end;
  run.nout = 1;
  run.out_time = &end;
  run.out_qpos = out;
  SinewIntegrationReport report = sinew_default_integration_report();
  assert_int_equal(sinew_integrator_run(x, &from, &run, &report, NULL), SINEW_OK);
  assert_int_equal(report.end, SINEW_END_DONE);
  return out[2];
}

// Derivatives by mocap bodies: displacements first, then turns about the world's axes, by either adjoint.
static void by_mocap_bodies(void **state) {
  (void)state;
  BodyPair b;
  body_open_string(
      &b,
      "<mujoco><worldbody><body mocap='true' pos='0 0 1'><site name='a' pos='.2 .1 .05'/></body>"
      "<body><joint type='slide' axis='1 0 0' damping='.2'/><joint type='slide' axis='0 1 0'/>"
      "<joint type='slide' axis='0 0 1'/><geom size='.05' mass='1'/><site name='b'/></body></worldbody>"
      "<tendon><spatial stiffness='80' springlength='.1'><site site='a'/><site site='b'/></spatial></tendon>"
      "</mujoco>");
  SinewIntegratorDef def = sinew_default_integrator();
  def.model = b.model;
  def.rtol = def.atol = 1e-10;
  def.gradients = true;
  SinewIntegrator *x = sinew_integrator_create(&def, NULL);
  assert_non_null(x);
  double pose[7] = {0.05, -0.1, 1.1, 0.8, 0.3, -0.2, 0}, bar[6], want[6];
  mju_normalize4(pose + 3);
  for (int k = 0; k < 6; ++k) {
    const double eps = 1e-5;
    double value[2];
    for (int side = 0; side < 2; ++side) {
      double moved[7], turn[4], axis[3] = {k == 3, k == 4, k == 5};
      memcpy(moved, pose, sizeof moved);
      mju_axisAngle2Quat(turn, axis, side ? eps : -eps);
      if (k < 3) moved[k] += side ? eps : -eps;
      if (k >= 3) mju_mulQuat(moved + 3, turn, pose + 3);
      value[side] = hung(x, moved);
    }
    want[k] = (value[1] - value[0]) / (2 * eps);
  }
  for (int way = 0; way < 2; ++way) {
    SinewIntegrationBars bars = sinew_default_integration_bars();
    const double out[3] = {0, 0, 1};
    bars.adjoint = way ? SINEW_BACKSOLVE : SINEW_DISCRETE;
    bars.out_qpos = out;
    bars.mocap = bar;
    hung(x, pose);
    assert_int_equal(sinew_integrator_vjp(x, &bars, NULL), SINEW_OK);
    for (int k = 0; k < 6; ++k)
      if (!(fabs(bar[k] - want[k]) <= 1e-6)) fail_msg("%d: %g, by differences %g", k, bar[k], want[k]);
  }
  assert_true(fabs(want[2]) > 0.1 && fabs(want[3] - want[0]) > 0.01);
  sinew_integrator_free(x);
  body_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(fixed_steps_are_mujocos),
                                     cmocka_unit_test(methods_agree),
                                     cmocka_unit_test(way_back),
                                     cmocka_unit_test(two_adjoints),
                                     cmocka_unit_test(by_mocap_bodies),
                                     cmocka_unit_test(ends),
                                     cmocka_unit_test(without_controls),
                                     cmocka_unit_test(nothing_moves),
                                     cmocka_unit_test(refuses_definitions),
                                     cmocka_unit_test(refuses_runs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
