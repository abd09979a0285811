// The discrete adjoint of a run: with fixed steps it is the derivative of what the run computes, so that differences of
// runs agree; with chosen steps it is that of the motion itself, to the tolerance.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "physics/model/model_bar.h"
#include "physics/step/horizon.h"
#include "physics/step/step.h"
#include "tests/support/small_models.h"
#include "tests/support/slow.h"
#include "tests/support/step_fixture.h"

enum { KNOTS = 3, OUTS = 3, MOST = 400 };

// A run of a model: its start, its inputs, weights of its outputs; then the gradient.
typedef struct Case {
  SnOracle o;
  SnHorizon *h;
  SnHorizonInput in;
  sn_real knot_time[KNOTS], out_time[OUTS], knot[MOST];
  sn_real qpos[MOST], qvel[MOST], act[MOST];              // the start
  sn_real out_qpos[MOST], out_qvel[MOST], out_act[MOST];  // the weights
  sn_real g_qpos[MOST], g_qvel[MOST], g_act[MOST], g_knot[MOST];
} Case;

// Whether impedances have exact diagonals.
static void set_exact(Case *c, bool on) {
  c->o.m->opt.enableflags = (c->o.m->opt.enableflags & ~SN_ENBL_DIAGEXACT) | (on ? SN_ENBL_DIAGEXACT : 0);
}

static void draw(SnOracle *o, sn_real *x, int n, double size) {
  assert_true(n <= MOST);
  for (int i = 0; i < n; ++i) x[i] = (sn_real)(size * sn_oracle_uniform(o));
}

static void begin(Case *c, const SnHorizonSettings *s, double duration) {
  const SnModel *m = c->o.m;
  SnError err = {0};
  if (!(c->h = sn_horizon_create(m, s, &err))) fail_msg("%s", err.text);
  for (int k = 0; k < KNOTS; ++k) c->knot_time[k] = (sn_real)(duration * (0.35 * k + 0.1));
  for (int k = 0; k < OUTS; ++k) c->out_time[k] = (sn_real)(duration * (0.5 * k));
  c->in = (SnHorizonInput){.duration = (sn_real)duration,
                           .nknot = KNOTS,
                           .knot_time = c->knot_time,
                           .knot = c->knot,
                           .nout = OUTS,
                           .out_time = c->out_time};
  draw(&c->o, c->knot, KNOTS * m->nu, 0.5);
  draw(&c->o, c->out_qpos, OUTS * m->nv, 1);
  draw(&c->o, c->out_qvel, OUTS * m->nv, 0.1);
  draw(&c->o, c->out_act, OUTS * m->na, 1);
  for (int i = 0; i < m->nq; ++i) c->qpos[i] = (sn_real)c->o.d->qpos[i];
  for (int i = 0; i < m->nv; ++i) c->qvel[i] = (sn_real)c->o.d->qvel[i];
  for (int i = 0; i < m->na; ++i) c->act[i] = (sn_real)(0.5 + 0.3 * sn_oracle_uniform(&c->o));
}

// Runs from the start moved by eps times a direction (2 nv + na + KNOTS nu). outputs: KNOTS states, as positions,
// velocities and activations one after the other.
static void run(Case *c, const double *direction, double eps, sn_real *qpos, sn_real *qvel, sn_real *act) {
  const SnModel *m = c->o.m;
  SnWorld *w = &c->h->world;
  const SnHorizonOutput out = {.qpos = qpos, .qvel = qvel, .act = act};
  sn_real tangent[MOST], knot[MOST];
  SnHorizonStatus status;
  SnError err = {0};
  const double *d = direction;
  memcpy(w->qpos, c->qpos, sizeof *w->qpos * (size_t)m->nq);
  memcpy(knot, c->knot, sizeof knot);
  for (int i = 0; i < m->nv; ++i) tangent[i] = (sn_real)(d ? *d++ : 0);
  sn_integrate_pos(m, &c->h->lane, w->qpos, tangent, (sn_real)eps);
  for (int i = 0; i < m->nv; ++i) w->qvel[i] = c->qvel[i] + (sn_real)(d ? eps * *d++ : 0);
  for (int i = 0; i < m->na; ++i) w->act[i] = c->act[i] + (sn_real)(d ? eps * *d++ : 0);
  for (int i = 0; i < c->in.nknot * m->nu; ++i) knot[i] += (sn_real)(d ? eps * *d++ : 0);
  SnHorizonInput in = c->in;
  in.knot = knot;
  memset(w->qacc_warmstart, 0, sizeof *w->qacc_warmstart * (size_t)m->nv);
  if (sn_horizon_run(c->h, &in, &out, &status, &err) != SN_OK) fail_msg("%s", err.text);
  if (status != SN_HORIZON_DONE) fail_msg("%s", sn_horizon_status_text(status));
}

// The central difference of the weighted outputs along a direction.
static double difference(Case *c, const double *direction, double eps) {
  static sn_real qpos[2][MOST], qvel[2][MOST], act[2][MOST], tangent[MOST];
  const SnModel *m = c->o.m;
  double sum = 0;
  for (int k = 0; k < 2; ++k) run(c, direction, k ? eps : -eps, qpos[k], qvel[k], act[k]);
  for (int k = 0; k < OUTS; ++k) {
    sn_difference_pos(m, &c->h->lane, qpos[0] + k * m->nq, qpos[1] + k * m->nq, tangent);
    for (int i = 0; i < m->nv; ++i) sum += (double)(c->out_qpos[k * m->nv + i] * tangent[i]);
  }
  for (int i = 0; i < OUTS * m->nv; ++i) sum += (double)(c->out_qvel[i] * (qvel[1][i] - qvel[0][i]));
  for (int i = 0; i < OUTS * m->na; ++i) sum += (double)(c->out_act[i] * (act[1][i] - act[0][i]));
  return sum / (2 * eps);
}

// The way back of the last run.
static void go_back(Case *c, const SnCfd *cfd) {
  SnError err = {0};
  const SnHorizonBars bars = {.out_qpos = c->out_qpos,
                              .out_qvel = c->out_qvel,
                              .out_act = c->out_act,
                              .qpos = c->g_qpos,
                              .qvel = c->g_qvel,
                              .act = c->g_act,
                              .knot = c->g_knot};
  if (sn_horizon_vjp(c->h, &c->in, cfd, &bars, &err) != SN_OK) fail_msg("%s", err.text);
}

static void gradient(Case *c, const SnCfd *cfd) {
  run(c, NULL, 0, NULL, NULL, NULL);
  go_back(c, cfd);
}

static double along(const Case *c, const double *d) {
  const SnModel *m = c->o.m;
  double sum = 0;
  for (int i = 0; i < m->nv; ++i) sum += (double)c->g_qpos[i] * *d++;
  for (int i = 0; i < m->nv; ++i) sum += (double)c->g_qvel[i] * *d++;
  for (int i = 0; i < m->na; ++i) sum += (double)c->g_act[i] * *d++;
  for (int i = 0; i < KNOTS * m->nu; ++i) sum += (double)c->g_knot[i] * *d++;
  return sum;
}

// Differences along random directions, where two steps of the difference agree; returns how many could be compared.
static int compare(Case *c, const char *name, int draws) {
  const SnModel *m = c->o.m;
  double direction[4 * MOST];
  int compared = 0;
  gradient(c, NULL);
  for (int k = 0; k < draws; ++k) {
    for (int i = 0; i < 2 * m->nv + m->na + KNOTS * m->nu; ++i) direction[i] = sn_oracle_uniform(&c->o);
    const double d = difference(c, direction, 1e-6), fine = difference(c, direction, 3e-7), g = along(c, direction);
    if (!isfinite(g)) fail_msg("%s: the gradient is %g", name, g);
    if (fabs(d - fine) > 1e-6 * (fabs(d) + 1e-2)) continue;
    if (fabs(g - d) > 1e-5 * (fabs(d) + 1e-1)) fail_msg("%s: gradient %.10g, difference %.10g", name, g, d);
    ++compared;
  }
  return compared;
}

static void fixed_steps(void **state) {
  (void)state;
  static const int method[] = {SN_RK_EULER, SN_RK_BOSH3, SN_RK_RK4, SN_RK_TSIT5, SN_RK_DOPRI8};
  sn_needs_doubles();
  int compared = 0, draws = 0;
  for (int i = 0; i <= SN_SMALL_MODELS; ++i)
    for (int k = 0; k < 5; ++k) {
      static Case c;
      SnHorizonSettings s = sn_horizon_defaults();
      s.method = method[k];
      s.fixed_step = SN_R(1.3e-3);
      s.keep = 100;
      s.linear = k % 2;
      s.stop_at_outputs = k % 3 == 0;
      if (i < SN_SMALL_MODELS)
        sn_step_model(&c.o, i);
      else
        sn_oracle_load_string(&c.o, sn_branching_model());
      sn_oracle_randomize(&c.o, 1);
      set_exact(&c, k == 1 || k == 4);
      begin(&c, &s, 0.012);
      compared += compare(&c, sn_tableau(method[k])->name, 4);
      draws += 4;
      sn_horizon_free(c.h);
      sn_oracle_free(&c.o);
    }
  print_message("%d of %d differences could be compared\n", compared, draws);
  assert_true(2 * compared > draws);
}

static const char *cube_file(void) { return SN_TEST_SOURCE_DIR "/../physics/models/cube_toss.xml"; }

static void toss(Case *c, double fall) {
  mj_resetData(c->o.mj, c->o.d);
  c->o.d->qpos[2] = 0.2;
  c->o.d->qvel[1] = -0.1;
  c->o.d->qvel[2] = fall;
}

// Weighs coordinate i of the position at the end alone.
static void weigh_end(Case *c, int i) {
  memset(c->out_qpos, 0, sizeof c->out_qpos);
  memset(c->out_qvel, 0, sizeof c->out_qvel);
  c->out_qpos[(OUTS - 1) * c->o.m->nv + i] = 1;
}

// The slope of the toss by the fall that it starts with, at a tolerance.
static double toss_slope(Case *c, double fall, double tolerance, double duration, bool events) {
  SnHorizonSettings s = sn_horizon_defaults();
  s.rtol = s.atol = (sn_real)tolerance;
  s.keep = 20000;
  s.events = events;
  toss(c, fall);
  begin(c, &s, duration);
  weigh_end(c, 1);
  gradient(c, NULL);
  sn_horizon_free(c->h);
  return (double)c->g_qvel[2];
}

// The same by differences of runs at tolerance 1e-12.
static double toss_difference(Case *c, double fall, double duration) {
  double direction[12] = {0};
  SnHorizonSettings s = sn_horizon_defaults();
  s.rtol = s.atol = SN_R(1e-12);
  toss(c, fall);
  begin(c, &s, duration);
  weigh_end(c, 1);
  direction[6 + 2] = 1;
  const double slope = difference(c, direction, 1e-4);
  sn_horizon_free(c->h);
  return slope;
}

// The cube's end after 1 s, and its slope by the fall that it starts with, with chosen steps: the moments of touch and
// release move, whatever the impedance is with which a contact begins, and loose tolerances have a slope, too.
static void chosen_steps(void **state) {
  (void)state;
  static Case c;
  static const double start[] = {0, 0.01, 0.1, 0.9}, tolerance[] = {1e-4, 1e-5, 1e-7, 1e-10};
  static const double allowed[] = {0.3, 0.05, 5e-3, 1e-3};
  sn_needs_doubles();
  sn_oracle_load_file(&c.o, cube_file());
  for (int k = SN_SLOW ? 3 : 0; k < 4; ++k) {
    for (int i = 0; i < c.o.m->ncpair; ++i) c.o.m->conparam[SN_NCONPARAM * i + 10] = (sn_real)start[k];
    const double slope = toss_difference(&c, -2, 1);
    for (int t = 0; t < 4; ++t) {
      const double got = toss_slope(&c, -2, tolerance[t], 1, true), off = fabs(got / slope - 1);
      print_message("solimp[0] %g, tolerance %g: slope %.6g of %.6g, %.2g off\n", start[k], tolerance[t], got, slope,
                    off);
      if (!(off < allowed[t])) fail_msg("a slope is off by more than %g", allowed[t]);
    }
  }
  // what the moments do to it
  assert_true(fabs(toss_slope(&c, -2, 1e-7, 1, false)) > 1);
  sn_oracle_free(&c.o);
}

// A pendulum of two links with limits, friction and motors, which strikes its limits while controls go on: all that a
// run starts with, by every method that estimates its error, by interpolated outputs and by those at ends of steps.
static void limits(void **state) {
  (void)state;
  static Case c;
  static const int method[] = {SN_RK_HEUN, SN_RK_BOSH3, SN_RK_TSIT5, SN_RK_DOPRI8};
  static const double tolerance[] = {1e-6, 1e-8, 1e-10, 1e-11};
  sn_needs_doubles();
  sn_oracle_load_string(
      &c.o,
      "<mujoco><option><flag refsafe='disable'/></option>"
      "<default><joint axis='0 1 0' limited='true' damping='.02' solimplimit='.9 .95 .01' solreflimit='.02 .4'/>"
      "<geom contype='0' conaffinity='0'/></default>"
      "<worldbody><body pos='0 0 1'><joint name='a' range='-20 20'/>"
      "<geom type='capsule' fromto='0 0 0 0 0 -.4' size='.03'/><body pos='0 0 -.4'>"
      "<joint name='b' range='-30 30' frictionloss='.02'/><geom type='capsule' fromto='0 0 0 0 0 -.3' size='.02'/>"
      "</body></body></worldbody><actuator><motor joint='a'/><motor joint='b'/></actuator></mujoco>");
  c.o.d->qvel[0] = 3;
  c.o.d->qvel[1] = -5;
  for (int k = SN_SLOW ? 4 : 0; k < 8; ++k) {
    SnHorizonSettings s = sn_horizon_defaults();
    s.method = method[k / 2];
    s.rtol = s.atol = (sn_real)tolerance[k / 2];
    s.keep = 100000;
    s.linear = k % 2;
    s.stop_at_outputs = k % 2 == 0;
    set_exact(&c, k % 4 >= 2);
    begin(&c, &s, 0.6);
    double direction[4 + KNOTS * 2];
    gradient(&c, NULL);
    for (int i = 0; i < 4 + KNOTS * 2; ++i) direction[i] = sn_oracle_uniform(&c.o);
    const double d = difference(&c, direction, 1e-5), g = along(&c, direction);
    print_message("%s: gradient %.9g, difference %.9g, %d steps\n", sn_tableau(s.method)->name, g, d, c.h->accepted);
    assert_true(fabs(g - d) < 1e-4 * (fabs(d) + 0.1));
    sn_horizon_free(c.h);
  }
  sn_oracle_free(&c.o);
}

// A disc that falls onto a plane, where contact points slide over its rim: the rate of their gaps is not the velocity
// of what is there.
static void points_that_slide(void **state) {
  (void)state;
  static Case c;
  sn_needs_doubles();
  sn_oracle_load_string(&c.o,
                        "<mujoco><option timestep='.005'/><worldbody><geom type='plane' size='5 5 .1'/>"
                        "<body pos='0 0 .3' euler='20 30 0'><freejoint/><geom type='cylinder' size='.1 .06'/></body>"
                        "</worldbody></mujoco>");
  SnHorizonSettings s = sn_horizon_defaults();
  s.rtol = s.atol = SN_R(1e-9);
  s.keep = 100000;
  for (int k = 0; k < (SN_SLOW ? 1 : 4); ++k) {
    double direction[12 + KNOTS];
    for (int i = 0; i < 6; ++i) c.o.d->qvel[i] = 0.1 * sn_oracle_uniform(&c.o);
    set_exact(&c, k % 2 == 1);
    begin(&c, &s, 0.4);
    gradient(&c, NULL);
    for (int i = 0; i < 12; ++i) direction[i] = sn_oracle_uniform(&c.o);
    const double d = difference(&c, direction, 1e-6), g = along(&c, direction);
    print_message("disc: gradient %.9g, difference %.9g, %d steps\n", g, d, c.h->accepted);
    assert_true(fabs(g - d) < 1e-3 * (fabs(d) + 1));
    sn_horizon_free(c.h);
  }
  sn_oracle_free(&c.o);
}

// The upper limit of the last joint as a parameter.
static SnModelTangents *upper_limit(const SnModel *m) {
  SnModel moved[2] = {*m, *m};
  sn_real range[2][8];
  const SnModel *const plus = moved, *const minus = moved + 1;
  const double step = 1e-4;
  SnError err = {0};
  assert_true(m->njnt <= 4);
  for (int k = 0; k < 2; ++k) {
    memcpy(range[k], m->jnt_range, sizeof *m->jnt_range * 2 * (size_t)m->njnt);
    range[k][2 * m->njnt - 1] += (sn_real)(k == 0 ? step : -step);
    moved[k].jnt_range = range[k];
  }
  SnModelTangents *t = sn_model_tangents_create(m, &plus, &minus, &step, 1, &err);
  if (!t) fail_msg("%s", err.text);
  return t;
}

// Where a floor stands (a mocap body), and where a limit is (the model): the moment at which it is
// met moves with them.
static void moments_of_model(void **state) {
  (void)state;
  static Case c;
  sn_needs_doubles();
  sn_oracle_load_string(
      &c.o,
      "<mujoco><option><flag refsafe='disable'/></option><default><geom solimp='.9 .95 .001' solref='.01 .3'/>"
      "<joint solimplimit='.9 .95 .01' solreflimit='.02 .4'/></default><worldbody>"
      "<body mocap='true'><geom type='plane' size='5 5 .1'/></body><body pos='0 0 .3'><freejoint/><geom "
      "size='.1'/></body>"
      "<body pos='0 2 1'><joint axis='0 1 0' limited='true' range='-20 20'/>"
      "<geom type='capsule' fromto='0 0 0 0 0 -.4' size='.03' contype='0' "
      "conaffinity='0'/></body></worldbody></mujoco>");
  SnModel *m = c.o.m;
  SnHorizonSettings s = sn_horizon_defaults();
  s.rtol = s.atol = SN_R(1e-10);
  s.keep = 10000;
  c.o.d->qvel[2] = -1;
  c.o.d->qvel[6] = 3;
  begin(&c, &s, 0.3);
  sn_real mocap[6] = {0}, end[40];
  SnModelBar model;
  SnModelTangents *tangents = upper_limit(m);
  void *memory = aligned_alloc(64, (sn_model_bar_size(tangents) + 63) / 64 * 64);
  sn_model_bar_init(tangents, &model, memory);
  SnError err = {0};
  const SnHorizonBars bars = {.out_qpos = c.out_qpos, .mocap = mocap, .model = &model};
  sn_real limit = 0;
  memset(c.out_qpos, 0, sizeof c.out_qpos);
  memset(c.out_qvel, 0, sizeof c.out_qvel);
  c.out_qpos[2 * m->nv + 2] = 1;  // the ball's height at the end
  c.out_qpos[2 * m->nv + 6] = 1;  // the pendulum's angle
  run(&c, NULL, 0, NULL, NULL, NULL);
  if (sn_horizon_vjp(c.h, &c.in, NULL, &bars, &err) != SN_OK) fail_msg("%s", err.text);
  sn_model_bar_apply(tangents, &model, 0, &limit);
  for (int k = 0; k < 2; ++k) {
    const double eps = 1e-5;
    double value[2];
    sn_real *moved = k == 0 ? c.h->world.mocap_pos + 2 : m->jnt_range + 3;
    for (int e = 0; e < 2; ++e) {
      const sn_real was = *moved;
      *moved += (sn_real)(e ? eps : -eps);
      run(&c, NULL, 0, end, NULL, NULL);
      value[e] = (double)(end[2 * m->nq + 2] + end[2 * m->nq + 7]);
      *moved = was;
    }
    const double d = (value[1] - value[0]) / (2 * eps), g = k == 0 ? (double)mocap[5] : (double)limit;
    print_message("%s: %.8g, difference %.8g\n", k == 0 ? "height of the floor" : "upper limit", g, d);
    assert_true(fabs(d) > 0.1);
    assert_true(fabs(g - d) < 1e-4 * fabs(d));
  }
  sn_model_tangents_free(tangents);
  free(memory);
  sn_horizon_free(c.h);
  sn_oracle_free(&c.o);
}

// A ball that never touches the floor has the slope of free flight; contacts from distance on the way back give it
// another one, and leave the run alone. With contacts from distance in the run, differences agree.
static void from_distance(void **state) {
  (void)state;
  static Case c;
  SnError err = {0};
  sn_real back[6];
  const SnCfd cfd = {.on = 1, .solimp = {0, SN_R(0.05), 1, 1, 4}, .width = SN_R(0.05)};
  SnHorizonSettings s = sn_horizon_defaults();
  sn_needs_doubles();
  sn_oracle_load_string(&c.o,
                        "<mujoco><option gravity='0 0 -2'/><worldbody><geom type='plane' size='5 5 .1'/>"
                        "<body pos='0 0 .3'><freejoint/><geom size='.1'/></body></worldbody></mujoco>");
  s.fixed_step = SN_R(2e-3);
  s.keep = 1000;
  begin(&c, &s, 0.1);
  weigh_end(&c, 2);
  gradient(&c, NULL);
  assert_true(fabs((double)c.g_qvel[2] - 0.1) < 1e-9);
  gradient(&c, &cfd);
  assert_true(fabs((double)c.g_qvel[2] - 0.1) > 1e-6);
  assert_int_equal(c.h->world.cfd->on, 0);
  // and so has the continuous adjoint, to its tolerance
  const SnHorizonBars bars = {.out_qpos = c.out_qpos, .qvel = back};
  if (sn_horizon_backsolve(c.h, &c.in, &cfd, &bars, &err) != SN_OK) fail_msg("%s", err.text);
  assert_true(fabs((double)(back[2] - c.g_qvel[2])) < 1e-4 * fabs((double)c.g_qvel[2] - 0.1));
  assert_int_equal(c.h->world.cfd->on, 0);
  *c.h->world.cfd = cfd;
  assert_int_equal(compare(&c, "contacts from distance", 4), 4);
  sn_horizon_free(c.h);
  sn_oracle_free(&c.o);
}

// Contacts on the way back alone do not say which rows began at an event: with collision that is smoothed over 5 mm the
// slope of the toss is the exact one, since smoothing changes next to nothing else there.
static void run_of_its_own_contacts(void **state) {
  (void)state;
  static Case c;
  const SnCfd smooth = {.on = 1, .smooth = 0.005f, .solimp = {0, SN_R(1e-12), SN_R(1e-6), 1, 4}, .width = SN_R(1e-9)};
  SnHorizonSettings s = sn_horizon_defaults();
  sn_needs_doubles();
  sn_oracle_load_file(&c.o, cube_file());
  s.rtol = s.atol = SN_R(1e-8);
  s.keep = 20000;
  toss(&c, -2);
  begin(&c, &s, 0.3);
  weigh_end(&c, 1);
  gradient(&c, NULL);
  const double exact = (double)c.g_qvel[2];
  go_back(&c, &smooth);
  print_message("slope of the toss: %.9g, smoothed %.9g\n", exact, (double)c.g_qvel[2]);
  assert_true(fabs((double)c.g_qvel[2] - exact) < 1e-4 * fabs(exact) && (double)c.g_qvel[2] != exact);
  sn_horizon_free(c.h);
  sn_oracle_free(&c.o);
}

// The continuous adjoint, integrated backwards by steps of its own, agrees with that of the steps: on smooth models,
// with knots that jump or bend, and through contacts.
static void backsolve(void **state) {
  (void)state;
  static Case c;
  sn_needs_doubles();
  for (int k = 0; k <= SN_SMALL_MODELS + 1; ++k) {
    if (k == 1) continue;  // a heap of bodies inside each other: no two ways agree
    double worst = 0, size = 0;
    SnError err = {0};
    SnHorizonSettings s = sn_horizon_defaults();
    s.method = k % 2 ? SN_RK_TSIT5 : SN_RK_DOPRI8;
    s.rtol = s.atol = SN_R(1e-9);
    s.keep = k % 3 ? 100000 : 20;
    s.checkpoints = k % 3 ? 0 : 2000;
    s.linear = k % 2;
    if (k < SN_SMALL_MODELS)
      sn_step_model(&c.o, k);
    else
      sn_oracle_load_file(&c.o, cube_file());
    if (k < SN_SMALL_MODELS)
      sn_oracle_randomize(&c.o, 1);
    else
      toss(&c, -2);
    begin(&c, &s, k < SN_SMALL_MODELS ? 0.05 : k == SN_SMALL_MODELS ? 0.06 : 0.3);
    gradient(&c, NULL);
    static sn_real got[4][MOST];
    memset(got, 0, sizeof got);
    const SnHorizonBars bars = {.out_qpos = c.out_qpos,
                                .out_qvel = c.out_qvel,
                                .out_act = c.out_act,
                                .qpos = got[0],
                                .qvel = got[1],
                                .act = got[2],
                                .knot = got[3]};
    const int evaluations = c.h->evaluations;
    if (sn_horizon_backsolve(c.h, &c.in, NULL, &bars, &err) != SN_OK) fail_msg("%s", err.text);
    const sn_real *const want[] = {c.g_qpos, c.g_qvel, c.g_act, c.g_knot};
    const int n[] = {c.o.m->nv, c.o.m->nv, c.o.m->na, KNOTS * c.o.m->nu};
    for (int g = 0; g < 4; ++g)
      for (int i = 0; i < n[g]; ++i) {
        const double off = fabs((double)(got[g][i] - want[g][i])), mine = fabs((double)want[g][i]);
        if (!(off <= worst)) worst = off;
        if (mine > size) size = mine;
      }
    print_message("model %d: %.2g of %.3g, %d steps, %d evaluations\n", k, worst, size, c.h->accepted,
                  c.h->evaluations - evaluations);
    if (!(worst < (k <= SN_SMALL_MODELS ? 1e-5 : 1e-3) * size)) fail_msg("the two adjoints differ");
    sn_horizon_free(c.h);
    sn_oracle_free(&c.o);
  }
}

// Compares the gradient, bit by bit, with `all` (4, MOST), or writes it there.
static void same_bits(const Case *c, sn_real all[4][MOST], bool write, const char *what) {
  const sn_real *const got[] = {c->g_qpos, c->g_qvel, c->g_act, c->g_knot};
  for (int g = 0; g < 4; ++g) {
    if (write) memcpy(all[g], got[g], sizeof all[g]);
    for (int j = 0; j < MOST; ++j)
      if (memcmp(&all[g][j], &got[g][j], sizeof(sn_real)) != 0)
        fail_msg("%s: bar %d[%d] is %.17g, with all steps kept %.17g", what, g, j, (double)got[g][j],
                 (double)all[g][j]);
  }
}

// The way back of the last run from a copy of it, after another run.
static void go_back_by_copy(Case *c, const SnCfd *cfd) {
  static double direction[4 * MOST];
  const size_t bytes = sn_horizon_run_bytes(c->h);
  assert_true(bytes > 0);
  void *kept = malloc(bytes);
  sn_horizon_save_run(c->h, kept);
  for (int i = 0; i < 4 * MOST; ++i) direction[i] = 1;
  run(c, direction, 1e-3, NULL, NULL, NULL);
  sn_horizon_load_run(c->h, kept);
  free(kept);
  go_back(c, cfd);
}

// A way back that keeps few steps and replays the others has the bits of one that keeps all, as often as it is run:
// over events, knots that jump or bend, interpolated outputs, contacts from distance on the way back.
static void few_steps_are_kept(void **state) {
  (void)state;
  static Case c, first;
  static const int method[] = {SN_RK_TSIT5, SN_RK_TSIT5, SN_RK_BOSH3, SN_RK_HEUN, SN_RK_DOPRI8};
  static const int keep[] = {100000, 7, 1};
  const SnCfd cfd = {.on = 1, .solimp = {0, SN_R(0.05), 1, 1, 4}, .width = SN_R(0.05)};
  for (int k = 0; k < (SN_SLOW ? 3 : 7); ++k) {
    sn_real all[4][MOST] = {{0}};
    const bool cube = k % 5 < 2;
    if (cube) {
      sn_oracle_load_file(&c.o, cube_file());
      toss(&c, -2);
    } else {
      sn_step_model(&c.o, k % SN_SMALL_MODELS);
      sn_oracle_randomize(&c.o, 1);
    }
    for (int i = 0; i < 3; ++i) {
      char what[80];
      SnHorizonSettings s = sn_horizon_defaults();
      s.method = method[k % 5];
      s.rtol = s.atol = SN_R(1e-5);
      s.keep = keep[i];
      s.checkpoints = i == 0 ? 0 : 20000 / keep[i];
      s.linear = k % 2;
      s.stop_at_outputs = k % 3 == 0;
      const SnOracle o = c.o;
      if (i > 0) c = first;  // the same knots and weights
      c.o = o;
      begin(&c, &s, cube ? 0.2 : 0.03);
      if (i > 0) {
        memcpy(c.knot, first.knot, sizeof c.knot);
        memcpy(c.out_qpos, first.out_qpos, sizeof c.out_qpos);
        memcpy(c.out_qvel, first.out_qvel, sizeof c.out_qvel);
        memcpy(c.out_act, first.out_act, sizeof c.out_act);
        memcpy(c.act, first.act, sizeof c.act);
      }
      first = c;
      snprintf(what, sizeof what, "case %d, keep %d", k, keep[i]);
      gradient(&c, k < 5 ? NULL : &cfd);
      same_bits(&c, all, i == 0, what);
      go_back(&c, k < 5 ? NULL : &cfd);
      same_bits(&c, all, false, what);
      if (i == 1) assert_true(k % 5 > 3 || c.h->accepted > keep[i]);
      if (c.h->accepted > keep[i]) assert_int_equal(sn_horizon_run_bytes(c.h), 0);
      if (i == 0) go_back_by_copy(&c, k < 5 ? NULL : &cfd);
      same_bits(&c, all, false, what);
      sn_horizon_free(c.h);
    }
    sn_oracle_free(&c.o);
  }
}

static void refused(void **state) {
  (void)state;
  static Case c;
  sn_oracle_load_file(&c.o, cube_file());
  for (int k = 0; k < 2; ++k) {
    SnHorizonSettings s = sn_horizon_defaults();
    const SnHorizonBars bars = {0};
    SnError err = {0};
    s.keep = k;
    begin(&c, &s, 1);
    assert_int_equal(sn_horizon_vjp(c.h, &c.in, NULL, &bars, &err), SN_ERR_STATE);
    assert_non_null(strstr(err.text, k ? "there is no run that is done" : "keep is 0"));
    sn_horizon_free(c.h);
  }
  sn_oracle_free(&c.o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fixed_steps),   cmocka_unit_test(chosen_steps),
      cmocka_unit_test(limits),        cmocka_unit_test(moments_of_model),
      cmocka_unit_test(from_distance), cmocka_unit_test(run_of_its_own_contacts),
      cmocka_unit_test(backsolve),     cmocka_unit_test(few_steps_are_kept),
      cmocka_unit_test(refused),       cmocka_unit_test(points_that_slide),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
