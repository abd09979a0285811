// Integration with chosen step sizes against known solutions (a pendulum's period, a damped spring, a symmetric top)
// and against MuJoCo's own Runge-Kutta method with small steps (a cube tossed onto its edge, a hand with muscles).
#include "physics/step/horizon.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "physics/step/horizon_private.h"
#include "tests/support/slow.h"
#include "tests/support/step_fixture.h"
#include "tests/support/tolerance.h"

static const char spring[] =
    "<mujoco><option gravity='0 0 0'/><worldbody><body><joint type='slide' stiffness='40' damping='1.2'/>"
    "<inertial pos='0 0 0' mass='2' diaginertia='1 1 1'/></body></worldbody></mujoco>";
static const char pendulum[] =
    "<mujoco><option gravity='0 0 -10'/><worldbody><body><joint axis='0 1 0'/>"
    "<inertial pos='0 0 -.5' mass='2' diaginertia='.1 .1 .1'/></body></worldbody></mujoco>";
static const char top[] =
    "<mujoco><option gravity='0 0 -3'/><worldbody><body><freejoint/>"
    "<inertial pos='0 0 0' mass='2' diaginertia='.2 .2 .3'/></body></worldbody></mujoco>";

// A problem with a known solution: writes the start, or returns the error of a state at time t.
typedef struct Problem {
  const char *xml;
  double duration;
  void (*begin)(SnWorld *w);
  double (*error)(const sn_real *qpos, const sn_real *qvel, double t);
} Problem;

static void spring_begin(SnWorld *w) { w->qpos[0] = 1; }
static double spring_error(const sn_real *qpos, const sn_real *qvel, double t) {
  const double d = 0.3, s = sqrt(20 - d * d), e = exp(-d * t);
  const double x = e * (cos(s * t) + d / s * sin(s * t)), v = -e * 20 / s * sin(s * t);
  return fabs((double)qpos[0] - x) + fabs((double)qvel[0] - v);
}

// Half a period behind the start at 2 rad the pendulum stands at -2 rad: T = 2 pi sqrt(I / (m g l)) / agm(1, cos 1).
static double half_period(void) {
  double a = 1, b = cos(1.0);
  for (int k = 0; k < 8; ++k) {
    const double next = (a + b) / 2;
    b = sqrt(a * b);
    a = next;
  }
  return 3.14159265358979323846 * sqrt((0.1 + 2 * 0.25) / (2 * 10 * 0.5)) / a;
}
static void pendulum_begin(SnWorld *w) { w->qpos[0] = 2; }
static double pendulum_error(const sn_real *qpos, const sn_real *qvel, double t) {
  (void)t;
  return fabs((double)qpos[0] + 2) + fabs((double)qvel[0]);
}

static const double spin[3] = {1.5, 0, 3};
static void top_begin(SnWorld *w) {
  w->qvel[0] = 1;
  w->qvel[2] = 2;
  for (int e = 0; e < 3; ++e) w->qvel[3 + e] = (sn_real)spin[e];
}
static void turn(double *q, double x, double y, double z) {
  const double angle = sqrt(x * x + y * y + z * z), s = angle > 0 ? sin(angle / 2) / angle : 0;
  q[0] = cos(angle / 2);
  q[1] = s * x;
  q[2] = s * y;
  q[3] = s * z;
}
// R = exp(t L / I1) exp(t w3 (1 - I3 / I1) e3): the axis of the body goes round the angular momentum L.
static double top_error(const sn_real *qpos, const sn_real *qvel, double t) {
  double p[4], q[4], r[4];
  turn(p, t * spin[0], 0, t * spin[2] * .3 / .2);
  turn(q, 0, 0, t * spin[2] * (1 - .3 / .2));
  r[0] = p[0] * q[0] - p[3] * q[3];
  r[1] = p[1] * q[0] + p[2] * q[3];
  r[2] = p[2] * q[0] - p[1] * q[3];
  r[3] = p[0] * q[3] + p[3] * q[0];
  double error = 0, sign = r[0] * (double)qpos[3] + r[3] * (double)qpos[6] + r[1] * (double)qpos[4] < 0 ? -1 : 1;
  for (int e = 0; e < 4; ++e) error += fabs((double)qpos[3 + e] - sign * r[e]);
  error += fabs((double)qpos[0] - t) + fabs((double)qpos[2] - 2 * t + 1.5 * t * t);
  return error + fabs((double)qvel[3] - spin[0] * cos(0.5 * spin[2] * t));
}

static Problem problems[] = {{spring, 1.5, spring_begin, spring_error},
                             {pendulum, 0, pendulum_begin, pendulum_error},
                             {top, 1.0, top_begin, top_error}};
enum { PROBLEMS = sizeof problems / sizeof *problems };

static SnHorizon *make(const SnModel *m, const SnHorizonSettings *s) {
  SnError err = {0};
  SnHorizon *h = sn_horizon_create(m, s, &err);
  if (!h) fail_msg("%s", err.text);
  return h;
}

static void go(SnHorizon *h, const SnHorizonInput *in, const SnHorizonOutput *out) {
  SnError err = {0};
  SnHorizonStatus status;
  if (sn_horizon_run(h, in, out, &status, &err) != SN_OK) fail_msg("%s", err.text);
  if (status != SN_HORIZON_DONE) fail_msg("%s", sn_horizon_status_text(status));
}

// The error at the end of a problem; *steps: accepted ones.
static double solve(const SnModel *m, const Problem *p, const SnHorizonSettings *s, int *steps) {
  SnHorizon *h = make(m, s);
  const SnHorizonInput in = {.duration = (sn_real)p->duration};
  p->begin(&h->world);
  go(h, &in, NULL);
  const double error = p->error(h->world.qpos, h->world.qvel, p->duration);
  assert_true(h->reached == in.duration);
  *steps = h->accepted;
  sn_horizon_free(h);
  return error;
}

// Each step is longer or shorter than the one before by what the errors say, of a step and of the two accepted before
// it.
static void sizes(void **state) {
  (void)state;
  static const double error[] = {0.3, 2.5, 0.8, 0.01, 0.5, 40, 0.9};
  SnOracle o;
  sn_oracle_load_string(&o, spring);
  SnHorizonSettings s = sn_horizon_defaults();
  s.d = SN_R(0.1);
  SnHorizon *h = make(o.m, &s);
  double r1 = 1, r2 = 1;
  h->scratch->last = h->scratch->before = 1;
  for (size_t k = 0; k < sizeof error / sizeof *error; ++k) {
    const bool accepted = error[k] < 1;
    const double r = 1 / error[k], order = sn_tableau(s.method)->order,
                 is = (double)sn_horizon_factor(h, (sn_real)error[k], accepted);
    const double ought = 0.9 * pow(r, 0.7 / order) * pow(r1, -0.4 / order) * pow(r2, 0.1 / order);
    const double bound = accepted ? fmax(1, fmin(10, ought)) : fmax(0.2, fmin(0.9, ought));
    if (!(fabs(is - bound) < SN_TOL(1e-12, 1e-5))) fail_msg("error %g: %.15g times, not %.15g", error[k], is, bound);
    if (!accepted) continue;
    r2 = r1;
    r1 = r;
  }
  sn_horizon_free(h);
  sn_oracle_free(&o);
}

// Halving fixed steps divides the error by two to the order.
static void convergence(void **state) {
  (void)state;
  static const int begin[SN_RK_METHODS] = {1600, 400, 400, 400, 60, 50, 30, 30, 10};
  sn_needs_doubles();
  for (int k = 0; k < PROBLEMS; ++k) {
    SnOracle o;
    sn_oracle_load_string(&o, problems[k].xml);
    for (int method = 0; method < SN_RK_METHODS; ++method) {
      SnHorizonSettings s = sn_horizon_defaults();
      double error[2];
      int steps;
      s.method = method;
      for (int fine = 0; fine < 2; ++fine) {
        s.fixed_step = (sn_real)(problems[k].duration / (begin[method] << fine));
        error[fine] = solve(o.m, problems + k, &s, &steps);
        assert_int_equal(steps, begin[method] << fine);
      }
      const double order = log2(error[0] / error[1]);
      print_message("problem %d, %s: error %.2g, order %.2f\n", k, sn_tableau(method)->name, error[1], order);
      if (!(order > sn_tableau(method)->order - 0.3) && !(error[1] < 1e-12)) fail_msg("it is of a lower order");
    }
    sn_oracle_free(&o);
  }
}

// Chosen steps keep the error near the tolerance, and take fewer steps the higher the order.
static void tolerances(void **state) {
  (void)state;
  sn_needs_doubles();
  for (int k = 0; k < PROBLEMS; ++k) {
    SnOracle o;
    sn_oracle_load_string(&o, problems[k].xml);
    for (int method = SN_RK_HEUN; method < SN_RK_METHODS; ++method) {
      SnHorizonSettings s = sn_horizon_defaults();
      int steps, before = 0;
      s.method = method;
      if (!sn_tableau(method)->error) continue;
      for (s.rtol = s.atol = SN_R(1e-3); s.rtol > SN_R(1e-9); s.rtol = s.atol *= SN_R(1e-2)) {
        if (sn_tableau(method)->order < 3 && s.rtol < SN_R(1e-6)) break;
        const double error = solve(o.m, problems + k, &s, &steps);
        if (!(error < 200 * (double)s.rtol)) fail_msg("%s at %g: error %g", sn_tableau(method)->name, s.rtol, error);
        assert_true(steps > before);
        before = steps;
      }
    }
    sn_oracle_free(&o);
  }
}

// Interpolated outputs are as good as the steps; forced ones lie on steps. Those at the ends are the states there.
static void outputs(void **state) {
  (void)state;
  SnOracle o;
  sn_needs_doubles();
  sn_oracle_load_string(&o, top);
  for (int method = 0; method < SN_RK_METHODS; ++method)
    for (int stop = 0; stop < 2; ++stop) {
      SnHorizonSettings s = sn_horizon_defaults();
      sn_real time[9], qpos[9 * 7], qvel[9 * 6];
      s.method = method;
      s.stop_at_outputs = stop;
      s.fixed_step = sn_tableau(method)->order < 3 ? SN_R(1e-4) : SN_R(5e-3);
      SnHorizon *h = make(o.m, &s);
      for (int k = 0; k < 9; ++k) time[k] = SN_R(0.12345) * (sn_real)k;
      time[8] = 1;
      const SnHorizonInput in = {.duration = 1, .nout = 9, .out_time = time};
      const SnHorizonOutput out = {.qpos = qpos, .qvel = qvel};
      top_begin(&h->world);
      go(h, &in, &out);
      for (int k = 0; k < 9; ++k) {
        const double error = top_error(qpos + 7 * k, qvel + 6 * k, (double)time[k]);
        if (!(error < (method == 0 ? 3e-3 : 1e-6)))
          fail_msg("%s: output %d off by %g", sn_tableau(method)->name, k, error);
      }
      assert_memory_equal(qpos + 7 * 8, h->world.qpos, sizeof *qpos * 7);
      sn_horizon_free(h);
    }
  sn_oracle_free(&o);
}

static const char motor[] =
    "<mujoco><option gravity='0 0 0'/><worldbody><body><joint name='j' type='slide'/>"
    "<inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/></body></worldbody>"
    "<actuator><motor joint='j'/></actuator></mujoco>";

// Controls that jump, or go linearly, between knots: positions of a mass are polynomials of the times, exactly.
static void controls(void **state) {
  (void)state;
  static const sn_real time[] = {SN_R(0.3), SN_R(0.5)}, knot[] = {1, -2};
  SnOracle o;
  sn_oracle_load_string(&o, motor);
  for (int linear = 0; linear < 2; ++linear) {
    SnHorizonSettings s = sn_horizon_defaults();
    s.linear = linear;
    SnHorizon *h = make(o.m, &s);
    const SnHorizonInput in = {.duration = 1, .nknot = 2, .knot_time = time, .knot = knot};
    go(h, &in, NULL);
    const double v = linear ? 0.3 + 0.2 * -0.5 - 1.0 : 0.5 - 1.0;
    const double x = linear ? 0.045 + 0.06 + 0.02 - 0.02 + 0.5 * 0.2 - 0.25 : 0.125 + 0.25 - 0.25;
    assert_true(fabs((double)h->world.qvel[0] - v) < SN_TOL(1e-12, 1e-5));
    assert_true(fabs((double)h->world.qpos[0] - x) < SN_TOL(1e-12, 1e-5));
    sn_horizon_free(h);
  }
  sn_oracle_free(&o);
}

// The start of a toss, MuJoCo's; the world takes it over.
static void toss(SnOracle *o, SnWorld *w) {
  o->d->qpos[2] = 0.2;
  o->d->qvel[1] = -0.1;
  o->d->qvel[2] = -2;
  for (int i = 0; i < 7; ++i) w->qpos[i] = (sn_real)o->d->qpos[i];
  for (int i = 0; i < 6; ++i) w->qvel[i] = (sn_real)o->d->qvel[i];
}

// The cube's hard contacts: the tighter the tolerance the nearer to MuJoCo's Runge-Kutta method of small steps.
static void cube(void **state) {
  (void)state;
  SnOracle o;
  sn_needs_doubles();
  sn_oracle_load_file(&o, SN_TEST_SOURCE_DIR "/../physics/models/cube_toss.xml");
  o.mj->opt.integrator = mjINT_RK4;
  o.mj->opt.timestep = 2e-5;
  mj_resetData(o.mj, o.d);
  toss(&o, &o.w);
  for (int k = 0; k < 50000; ++k) mj_step(o.mj, o.d);
  for (int k = 0; k < 3; ++k) {
    static const double tolerance[] = {1e-5, 1e-7, 1e-9}, most[] = {2e-2, 2e-4, 2e-5};
    SnHorizonSettings s = sn_horizon_defaults();
    s.rtol = s.atol = (sn_real)tolerance[k];
    SnHorizon *h = make(o.m, &s);
    const SnHorizonInput in = {.duration = 1};
    memcpy(h->world.qpos, o.w.qpos, 7 * sizeof *o.w.qpos);
    memcpy(h->world.qvel, o.w.qvel, 6 * sizeof *o.w.qvel);
    go(h, &in, NULL);
    double error = 0;
    for (int i = 0; i < o.m->nq; ++i) error = sn_larger(error, fabs((double)h->world.qpos[i] - o.d->qpos[i]));
    print_message("tolerance %g: %d steps and %d rejected, %.7g at the end, error %.2g\n", tolerance[k], h->accepted,
                  h->rejected, (double)h->world.qpos[1], error);
    assert_true(error < most[k]);
    sn_horizon_free(h);
  }
  sn_oracle_free(&o);
}

// A hand with muscles: chosen steps against MuJoCo's Runge-Kutta method with steps of 10 us, 20 ms. It starts inside
// the ranges of its joints: where a row begins to act in the first stage of a fixed step, that step is of first order.
static void hand(void **state) {
  (void)state;
  SnOracle o;
  sn_needs_doubles();
  sn_oracle_load_myosuite(&o, "simhive/myo_sim/hand/myohand.xml");
  SnHorizonSettings s = sn_horizon_defaults();
  s.rtol = s.atol = SN_R(1e-7);
  SnHorizon *h = make(o.m, &s);
  o.mj->opt.integrator = mjINT_RK4;
  o.mj->opt.timestep = 1e-5;
  mj_resetData(o.mj, o.d);
  for (int j = 0; j < o.m->njnt; ++j) {
    const double *range = o.mj->jnt_range + 2 * j;
    h->world.qpos[j] = (sn_real)(o.d->qpos[j] = 0.5 * (range[0] + range[1]) + 0.01);
  }
  for (int i = 0; i < o.m->nu; ++i) h->world.ctrl[i] = (sn_real)(o.d->ctrl[i] = 0.2 + 0.15 * (i % 5));
  for (int k = 0; k < 2000; ++k) mj_step(o.mj, o.d);
  const SnHorizonInput in = {.duration = SN_R(0.02)};
  go(h, &in, NULL);
  double error = 0;
  for (int i = 0; i < o.m->nq; ++i) error = sn_larger(error, fabs((double)h->world.qpos[i] - o.d->qpos[i]));
  for (int i = 0; i < o.m->na; ++i) error = sn_larger(error, fabs((double)h->world.act[i] - o.d->act[i]));
  print_message("%d steps and %d rejected, error %.2g\n", h->accepted, h->rejected, error);
  assert_true(error < 2e-6);
  sn_horizon_free(h);
  sn_oracle_free(&o);
}

static void refused(const SnModel *m, const SnHorizonSettings *s, const char *text) {
  SnError err = {0};
  assert_null(sn_horizon_create(m, s, &err));
  assert_int_equal(err.code, SN_ERR_ARGUMENT);
  if (!strstr(err.text, text)) fail_msg("'%s' does not say '%s'", err.text, text);
}

static void bad_input(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, motor);
  SnHorizonSettings s = sn_horizon_defaults();
  s.rtol = 0;
  refused(o.m, &s, "rtol is 0: must be above 0");
  s = sn_horizon_defaults();
  s.atol = (sn_real)NAN;
  refused(o.m, &s, "atol is nan");
  s = sn_horizon_defaults();
  s.method = 9;
  refused(o.m, &s, "method is 9: must be");
  s.method = SN_RK_RK4;
  refused(o.m, &s, "method rk4 has no error estimate");
  s = sn_horizon_defaults();
  s.largest_step = -1;
  refused(o.m, &s, "largest_step is -1");
  s = sn_horizon_defaults();
  s.max_steps = 0;
  refused(o.m, &s, "max_steps is 0");
  s = sn_horizon_defaults();
  SnError jumps = {0};
  o.m->opt.noslip_iterations = 2;
  assert_null(sn_horizon_create(o.m, &s, &jumps));
  assert_int_equal(jumps.code, SN_ERR_UNSUPPORTED);
  assert_non_null(strstr(jumps.text, "option noslip_iterations is 2"));
  o.m->opt.noslip_iterations = 0;
  o.m->opt.enableflags |= SN_ENBL_SPECULATIVE;
  assert_null(sn_horizon_create(o.m, &s, &jumps));
  assert_non_null(strstr(jumps.text, "flag speculative"));
  o.m->opt.enableflags &= ~SN_ENBL_SPECULATIVE;
  SnHorizon *h = make(o.m, &s);
  static const sn_real down[] = {SN_R(0.2), SN_R(0.1)};
  static const sn_real knot[] = {1, (sn_real)INFINITY};
  static const sn_real up[] = {SN_R(0.1), SN_R(0.2)};
  const SnHorizonInput in[] = {{.duration = -1},
                               {.duration = 1, .nout = 2, .out_time = down},
                               {.duration = SN_R(0.15), .nout = 2, .out_time = up},
                               {.duration = 1, .nknot = 2, .knot_time = up, .knot = knot}};
  static const char *const text[] = {"duration is -1: must be", "out_time[1] is 0.1: must be behind",
                                     "out_time[1] is 0.2: must be 0 to 0.15 s", "control of a knot is inf"};
  for (int k = 0; k < 4; ++k) {
    SnError err = {0};
    SnHorizonStatus status;
    assert_int_equal(sn_horizon_run(h, in + k, NULL, &status, &err), SN_ERR_ARGUMENT);
    if (!strstr(err.text, text[k])) fail_msg("'%s' does not say '%s'", err.text, text[k]);
  }
  sn_horizon_free(h);
  sn_oracle_free(&o);
}

// What pulls from a distance is refused, whichever has the gap; and the solver is as exact as the tolerance asks for.
static void options(void **state) {
  (void)state;
  static const char *const geom[] = {"", "", "adhesion='3' gap='.01'"};
  static const char *const pair[] = {"<pair geom1='floor' geom2='ball' adhesion='2'/>",
                                     "<pair geom1='floor' geom2='ball' adhesion='2' gap='.01'/>", ""};
  SnHorizonSettings s = sn_horizon_defaults();
  s.rtol = SN_R(1e-9);
  for (int k = 0; k < 3; ++k) {
    char xml[500];
    SnError err = {0};
    SnOracle o;
    snprintf(xml, sizeof xml,
             "<mujoco><worldbody><geom name='floor' type='plane' size='1 1 1'/><body><freejoint/>"
             "<geom name='ball' size='.1' %s/></body></worldbody><contact>%s</contact></mujoco>",
             geom[k], pair[k]);
    sn_oracle_load_string(&o, xml);
    o.m->opt.tolerance = SN_R(1e-8);
    o.m->opt.iterations = 10;
    SnHorizon *h = sn_horizon_create(o.m, &s, &err);
    if ((h == NULL) != (k > 0)) fail_msg("model %d: %s", k, err.text);
    if (h)
      assert_true(h->model.opt.tolerance <= SN_R(1.01e-11) && h->model.opt.iterations >= 100);
    else
      assert_non_null(strstr(err.text, "adhesion and gap"));
    sn_horizon_free(h);
    sn_oracle_free(&o);
  }
}

// Limits end a run with a status, and leave the world at a state that it reached.
static void limits(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_file(&o, SN_TEST_SOURCE_DIR "/../physics/models/cube_toss.xml");
  for (int k = 0; k < 4; ++k) {
    static const SnHorizonStatus wanted[] = {SN_HORIZON_STEPS, SN_HORIZON_SMALLEST, SN_HORIZON_KEEP, SN_HORIZON_BAD};
    SnHorizonSettings s = sn_horizon_defaults();
    SnHorizonStatus status;
    SnError err = {0};
    if (k == 0) s.max_steps = 10;
    if (k == 1) s.smallest_step = SN_R(0.005);
    if (k == 2) s.keep = 5;
    SnHorizon *h = make(o.m, &s);
    const SnHorizonInput in = {.duration = 1};
    toss(&o, &h->world);
    if (k == 3) h->world.qvel[0] = (sn_real)NAN;
    assert_int_equal(sn_horizon_run(h, &in, NULL, &status, &err), SN_OK);
    assert_int_equal(status, wanted[k]);
    assert_true(h->reached < in.duration && strlen(sn_horizon_status_text(status)) > 8);
    assert_true(k != 0 || h->accepted + h->rejected == 10);
    assert_true(k != 2 || h->accepted == 5);
    const sn_real *qpos, *qvel;
    sn_real time[2];
    if (k < 2) {
      sn_horizon_step(h, 0, time, &qpos, &qvel, NULL);  // nothing is kept: the step that was not finished
      assert_true(time[0] == h->reached);
      for (int i = 0; i < h->model.nq; ++i) assert_true(h->world.qpos[i] == qpos[i]);
      for (int i = 0; i < h->model.nv; ++i) assert_true(h->world.qvel[i] == qvel[i]);
    }
    sn_horizon_free(h);
  }
  sn_oracle_free(&o);
}

// The bits of a run do not depend on what ran before: a ball that slides under an elliptic cone, beside others whose
// rows have been there before it. In floats the tolerance is near rounding, and a run takes many times as many steps.
static void runs_are_independent(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(
      &o,
      "<mujoco><option cone='elliptic' tolerance='1e-12'><flag refsafe='disable'/></option><default>"
      "<geom friction='.3 .01 .001' condim='4' solimp='.9 .95 .001'/></default><worldbody>"
      "<geom type='plane' size='5 5 .1'/><body><freejoint/><geom size='.1'/></body>"
      "<body><freejoint/><geom size='.1'/></body><body><freejoint/><geom type='box' size='.1 .1 .1'/></body>"
      "</worldbody></mujoco>");
  SnHorizonSettings s = sn_horizon_defaults();
  s.rtol = s.atol = SN_R(1e-5);
  SnHorizon *used = make(o.m, &s), *fresh = NULL;
  sn_real start[21] = {0, 0, SN_R(.0999), 1, 0, 0, 0, 2, 0, SN_R(.9), 1, 0, 0, 0, 0, 2, SN_R(.9), 1};
  const int runs = SN_SLOW || sizeof(sn_real) == sizeof(float) ? 40 : 300;
  for (int run = 0; run < runs; ++run) {
    fresh = make(o.m, &s);
    sn_real speed[6] = {0};
    for (int i = 0; i < 6; ++i) speed[i] = (sn_real)(i == 2 ? 0 : 1.5 * sn_oracle_uniform(&o));
    for (int k = 0; k < 3; ++k) {  // the used one has all three on the floor first
      SnHorizon *h = k < 2 ? used : fresh;
      const SnHorizonInput in = {.duration = (sn_real)(k == 0 ? 0.01 + 1e-4 * run : 0.25)};
      memcpy(h->world.qpos, start, sizeof start);
      if (k == 0) h->world.qpos[9] = h->world.qpos[16] = SN_R(.0999);
      for (int i = 0; i < 18; ++i)
        h->world.qvel[i] = k > 0 ? (i < 6 ? speed[i] : 0) : (sn_real)(i % 6 == 2 ? 0 : 2 * sn_oracle_uniform(&o));
      memset(h->world.qacc_warmstart, 0, 18 * sizeof *h->world.qacc_warmstart);
      go(h, &in, NULL);
    }
    assert_int_equal(used->rejected, fresh->rejected);
    assert_memory_equal(used->world.qpos, fresh->world.qpos, sizeof start);
    sn_horizon_free(fresh);
  }
  sn_horizon_free(used);
  sn_oracle_free(&o);
}

// A cube that comes to rest on contacts which begin with nearly all of their force chatters: tens of thousands of
// touches in a second. Events are ignored when they come too close, so that a loose tolerance costs few steps; and a
// cube whose contacts begin with none meets each of its events.
static void chatter(void **state) {
  (void)state;
  SnOracle o;
  sn_needs_doubles();
  for (int k = 0; k < 2; ++k) {
    sn_oracle_load_file(&o, SN_TEST_SOURCE_DIR "/../physics/models/cube_toss.xml");
    for (int i = 0; i < o.m->ncpair; ++i) o.m->conparam[SN_NCONPARAM * i + 10] = k ? SN_R(0.9) : 0;
    SnHorizonSettings s = sn_horizon_defaults();
    s.keep = 100000;
    SnHorizon *h = make(o.m, &s);
    const SnHorizonInput in = {.duration = 1};
    toss(&o, &h->world);
    if (k) h->world.qvel[2] = SN_R(-1.3);
    go(h, &in, NULL);
    int crossings = 0;
    for (int i = 0; i < h->accepted; ++i) {
      sn_real time[2];
      sn_horizon_step(h, i, time, NULL, NULL, NULL);
      crossings += time[1] < SN_R(1.6e-8);
    }
    print_message("solimp[0] %g: %d steps, %d across events, %d evaluations\n", k ? 0.9 : 0.0, h->accepted, crossings,
                  h->evaluations);
    assert_true(h->evaluations < (k ? 20000 : 3000) && crossings > (k ? 50 : 15));
    sn_horizon_free(h);
    sn_oracle_free(&o);
  }
}

int main(void) {
  problems[1].duration = half_period();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sizes),
      cmocka_unit_test(convergence),
      cmocka_unit_test(tolerances),
      cmocka_unit_test(outputs),
      cmocka_unit_test(controls),
      cmocka_unit_test(cube),
      cmocka_unit_test(hand),
      cmocka_unit_test(bad_input),
      cmocka_unit_test(options),
      cmocka_unit_test(limits),
      cmocka_unit_test(runs_are_independent),
      cmocka_unit_test(chatter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
