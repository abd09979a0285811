// Buffers of controls and sensors: readings and chained steps against MuJoCo, what a reset leaves, samples out of
// order, the adjoint against differences, derivatives by delays, what is refused.
#include <stdio.h>
#include <stdlib.h>

#include "physics/constraint/constraint.h"
#include "physics/model/model_bar.h"
#include "physics/sensor/sensor.h"
#include "physics/step/horizon.h"
#include "physics/step/step.h"
#include "tests/support/model_refusals.h"
#include "tests/support/parameter_check.h"
#include "tests/support/past_models.h"
#include "tests/support/step_fixture.h"
#include "tests/support/tolerance.h"

#define NO_SENSORS ""

static const struct {
  const char *name, *xml;
} kModels[] = {{"Euler", SN_PAST_MODEL("Euler", SN_PAST_SENSORS)},
               {"implicitfast", SN_PAST_MODEL("implicitfast", SN_PAST_SENSORS)},
               {"implicit", SN_PAST_MODEL("implicit", SN_PAST_SENSORS)},
               {"RK4, no sensors", SN_PAST_MODEL("RK4", NO_SENSORS)}};
enum { MODELS = sizeof kModels / sizeof *kModels };

static void draw_controls(SnOracle *o) {
  for (int i = 0; i < o->mj->nu; ++i) o->d->ctrl[i] = sn_oracle_uniform(o);
}

// ---- readings ----

// Any times and samples: ours against MuJoCo's own reading, between samples, at them and beyond.
static void readings(void **state) {
  (void)state;
  sn_needs_doubles();
  SnOracle o;
  sn_oracle_load_string(&o, kModels[0].xml);
  const int n = o.m->actuator_history[4], adr = o.m->actuator_historyadr[2];
  double times[16], samples[16];
  assert_int_equal(n, 6);
  for (int round = 0; round < 200; ++round) {
    double at = sn_oracle_uniform(&o);
    for (int k = 0; k < n; ++k) {
      times[k] = at += 0.01 + 0.05 * (1 + sn_oracle_uniform(&o));
      samples[k] = sn_oracle_uniform(&o);
    }
    mj_initCtrlHistory(o.mj, o.d, 2, times, samples);
    sn_oracle_copy_state(&o);
    const double span = times[n - 1] - times[0],
                 when = round % 3 == 0 ? times[round % n] : times[0] + span * 0.6 * (1 + sn_oracle_uniform(&o));
    for (int interp = 0; interp < 3; ++interp) {
      SnHistoryRead read;
      mjtNum result;
      const mjtNum *p = mj_readCtrl(o.mj, o.d, 2, when + o.mj->actuator_delay[2], &result, interp);
      sn_real value;
      sn_history_read(o.w.past + adr, n, when, interp, &read);
      sn_history_value(o.w.past + adr, n, 1, &read, &value);
      const double wanted = p ? *p : result;
      if (!(fabs((double)value - wanted) < 1e-12))
        fail_msg("round %d, interp %d: %.15g, MuJoCo's %.15g", round, interp, (double)value, wanted);
    }
  }
  sn_oracle_free(&o);
}

// Rates of readings are the differences of readings by the time, between samples and, one-sided, at them.
static void rates(void **state) {
  (void)state;
  sn_needs_doubles();
  SnOracle o;
  sn_oracle_load_string(&o, kModels[0].xml);
  const int n = 6, adr = o.m->actuator_historyadr[2];
  sn_real *buffer = o.w.past + adr;
  for (int k = 0; k < n; ++k) buffer[2 + n + k] = (sn_real)sn_oracle_uniform(&o);
  for (int round = 0; round < 100; ++round) {
    const bool at_sample = round % 4 == 0;
    const double when = at_sample ? (double)buffer[2 + 1 + round % 5] : -0.009 + 0.0085 * sn_oracle_uniform(&o);
    for (int interp = 1; interp < 3; ++interp) {
      SnHistoryRead read, before, after;
      sn_real rate = 0, x, y;
      const double h = 1e-8;
      sn_history_read(buffer, n, when, interp, &read);
      sn_history_read(buffer, n, when - h, interp, &before);
      sn_history_read(buffer, n, at_sample ? when : when + h, interp, &after);
      for (int k = 0; k < read.count; ++k) rate += read.rate[k] * buffer[2 + n + read.at[k]];
      sn_history_value(buffer, n, 1, &before, &x);
      sn_history_value(buffer, n, 1, &after, &y);
      const double difference = (double)(y - x) / (at_sample ? h : 2 * h);
      if (!(fabs((double)rate - difference) < 1e-2 + 1e-4 * fabs(difference)))
        fail_msg("interp %d at %g: rate %g, difference %g", interp, when, (double)rate, difference);
    }
  }
  sn_oracle_free(&o);
}

// ---- steps ----

static void compare(const SnOracle *o, const char *name, int step, double tolerance) {
  char text[100];
  sn_real data[100];
  assert_true(o->m->nsensordata <= 100);
  snprintf(text, sizeof text, "%s, step %d: past", name, step);
  sn_oracle_check(text, o->w.past, o->d->history, o->m->nhistory, tolerance);
  snprintf(text, sizeof text, "%s, step %d: qvel", name, step);
  sn_oracle_check(text, o->w.qvel, o->d->qvel, o->m->nv, tolerance);
  SnWorld w = o->w;
  SnLane lane = o->lane;
  mj_forward(o->mj, o->d);
  sn_forward(o->m, &w, &lane);
  sn_sensor_data(o->m, &w, &lane, data);
  snprintf(text, sizeof text, "%s, step %d: sensordata", name, step);
  sn_oracle_check(text, data, o->d->sensordata, o->m->nsensordata, tolerance);
}

// Both engines go their own ways from one state.
static void chained(void **state) {
  (void)state;
  for (int i = 0; i < MODELS; ++i) {
    SnOracle o;
    sn_oracle_load_string(&o, kModels[i].xml);
    sn_model_need_all(o.m);
    sn_oracle_copy_state(&o);
    for (int step = 0; step < 400; ++step) {
      if (step % 3 == 0) draw_controls(&o);
      for (int k = 0; k < o.m->nu; ++k) o.w.ctrl[k] = (sn_real)o.d->ctrl[k];
      sn_step(o.m, &o.w, &o.lane);
      mj_step(o.mj, o.d);
      if (step % 20 == 19) compare(&o, kModels[i].name, step, SN_TOL(1e-6, 5e-2));
    }
    sn_oracle_free(&o);
  }
}

// A clock that is set back: samples go in between those that are there, or take the place of one of the same time.
static void out_of_order(void **state) {
  (void)state;
  sn_needs_doubles();
  SnOracle o;
  sn_oracle_load_string(&o, kModels[0].xml);
  for (int step = 0; step < 60; ++step) {
    draw_controls(&o);
    if (step % 7 == 5) o.d->time -= step % 2 ? 0.006 : 0.0047;
    if (step % 29 == 28) o.d->time -= 1;
    sn_oracle_copy_state(&o);
    sn_step(o.m, &o.w, &o.lane);
    mj_step(o.mj, o.d);
    compare(&o, "set back", step, 1e-9);
  }
  sn_oracle_free(&o);
}

static void resets(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, kModels[0].xml);
  for (int i = 0; i < sn_past_size(o.m); ++i) o.w.past[i] = 7;
  mj_resetData(o.mj, o.d);
  sn_world_reset(o.m, &o.w);
  sn_oracle_check("past after a reset", o.w.past, o.d->history, o.m->nhistory, SN_TOL(1e-15, 1e-6));
  for (int i = 0; i < sn_past_size(o.m); ++i) o.w.past[i] = 7;
  mj_resetDataKeyframe(o.mj, o.d, 0);
  sn_world_reset_key(o.m, &o.w, 0);
  sn_oracle_check("past of a keyframe", o.w.past, o.d->history, o.m->nhistory, SN_TOL(1e-15, 1e-6));
  int bad;
  assert_true(sn_past_good(o.m, o.w.past, &bad));
  const int adr = o.m->actuator_historyadr[1];
  o.w.past[adr + 1] = SN_R(1.5);
  assert_false(sn_past_good(o.m, o.w.past, &bad));
  assert_int_equal(bad, adr + 1);
  o.w.past[adr + 1] = 1;
  assert_false(sn_past_good(o.m, o.w.past, &bad));  // the one before the newest is later
  o.w.past[adr + 1] = (sn_real)NAN;
  sn_step(o.m, &o.w, &o.lane);  // leads nowhere outside
  sn_oracle_free(&o);
}

// A control that is a quaternion turns nothing after a reset, nor do samples of it.
static void resets_of_quaternions(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(
      &o,
      "<mujoco><worldbody><body><joint name='h'/><geom size='.1' pos='.1 .1 0'/><body><joint name='b' type='ball'/>"
      "<geom size='.1' pos='.1 0 0'/></body></body></worldbody><actuator><motor joint='h' delay='.004' nsample='4'/>"
      "<orientation joint='b' kp='2' input='quat' delay='.005' nsample='5' interp='linear'/><orientation joint='b' "
      "kp='1' delay='.004' nsample='3'/><orientation joint='b' kp='1' input='quat'/></actuator><keyframe><key "
      "time='.5'/></keyframe></mujoco>");
  for (int key = -1; key < 1; ++key) {
    for (int i = 0; i < sn_past_size(o.m); ++i) o.w.past[i] = 7;
    if (key < 0) {
      mj_resetData(o.mj, o.d);
      sn_world_reset(o.m, &o.w);
    } else {
      mj_resetDataKeyframe(o.mj, o.d, key);
      sn_world_reset_key(o.m, &o.w, key);
    }
    assert_true(o.m->nu == 12 && o.w.ctrl[1] == (key < 0) && o.w.ctrl[8] == (key < 0));
    sn_oracle_check("controls", o.w.ctrl, o.d->ctrl, o.m->nu, 0);
    sn_oracle_check("past", o.w.past, o.d->history, o.m->nhistory, SN_TOL(1e-15, 1e-6));
  }
  // between its samples a quaternion goes from there to where it is told to
  mj_resetData(o.mj, o.d);
  sn_world_reset(o.m, &o.w);
  for (int k = 0; k < 5; ++k) {
    o.d->ctrl[1] = o.w.ctrl[1] = SN_R(0.6);
    o.d->ctrl[2] = o.w.ctrl[2] = SN_R(0.8);
    mj_step(o.mj, o.d);
    sn_step(o.m, &o.w, &o.lane);
    sn_oracle_check("velocity", o.w.qvel, o.d->qvel, o.m->nv, SN_TOL(1e-9, 1e-3));
  }
  sn_oracle_free(&o);
}

// Intervals that are shorter than a step, as long, or longer, with phases and without.
static void short_intervals(void **state) {
  (void)state;
  static const char *const interval[] = {".001", ".001 -.0005", ".00237", ".00237 -.001",
                                         ".004", ".004 -.001",  ".0061"};
  for (size_t i = 0; i < sizeof interval / sizeof *interval; ++i) {
    SnOracle o;
    char xml[600];
    snprintf(xml, sizeof xml,
             "<mujoco><option timestep='.004'/><worldbody><body><joint name='j' axis='1 0 0'/><geom size='.1' pos='0 "
             ".2 0'/></body></worldbody><sensor><jointpos joint='j' nsample='5' delay='.006' interp='linear' "
             "interval='%s'/></sensor></mujoco>",
             interval[i]);
    sn_oracle_load_string(&o, xml);
    sn_world_reset(o.m, &o.w);
    for (int step = 0; step < 20; ++step) {
      int bad;
      sn_oracle_check(interval[i], o.w.past, o.d->history, o.m->nhistory, SN_TOL(1e-12, 1e-5));
      assert_true(sn_past_good(o.m, o.w.past, &bad));
      sn_step(o.m, &o.w, &o.lane);
      mj_step(o.mj, o.d);
    }
    sn_oracle_free(&o);
  }
}

// ---- the adjoint ----

enum { NX = 120, NY = 300 };

typedef struct Through {
  SnGradWorld g;
  int sample[NX], nsample;  // places of the samples in `past`
  sn_real bar[NY];          // of sensors
} Through;

static void list_samples(Through *x, int adr, int n, int dim) {
  for (int k = 0; n > 0 && k < n * dim; ++k) x->sample[x->nsample++] = adr + 2 + n + k;
}

// A state that MuJoCo has come to, so that buffers are full.
static bool sample_state(void *context) {
  Through *x = context;
  SnOracle *o = x->g.o;
  mj_resetData(o->mj, o->d);
  for (int i = 0; i < o->mj->nv; ++i) o->d->qvel[i] = 0.5 * sn_oracle_uniform(o);
  for (int step = 0; step < 12 + sn_oracle_pick(o, 9); ++step) {
    draw_controls(o);
    mj_step(o->mj, o->d);
  }
  draw_controls(o);
  sn_grad_world_sample(&x->g);
  return true;
}

static void move(Through *x, const double *dx) {
  SnGradWorld *g = &x->g;
  sn_grad_world_move(g, dx);
  for (int k = 0; dx && k < x->nsample; ++k) g->w.past[x->sample[k]] += (sn_real)dx[sn_grad_world_nx(g) + k];
}

// What sensors answer, then the next velocities and activations, and the samples after the step.
static bool forward(void *context, const double *dx, double *y) {
  Through *x = context;
  SnGradWorld *g = &x->g;
  sn_real data[NY];
  move(x, dx);
  sn_forward(g->m, &g->w, &g->lane);
  sn_solve_finish(g->m, &g->w, &g->lane);
  sn_sensor_data(g->m, &g->w, &g->lane, data);
  for (int i = 0; i < g->m->nsensor; ++i)
    for (int k = 0; k < g->m->sensor_dim[i]; ++k)
      y[g->m->sensor_adr[i] + k] = sn_sensor_differentiable(g->m, i) ? (double)data[g->m->sensor_adr[i] + k] : 0;
  y += g->m->nsensordata;
  sn_integrate(g->m, &g->w, &g->lane);
  for (int i = 0; i < g->m->nv; ++i) *y++ = (double)g->w.qvel[i];
  for (int i = 0; i < g->m->na; ++i) *y++ = (double)g->w.act[i];
  for (int k = 0; k < x->nsample; ++k) *y++ = (double)g->w.past[x->sample[k]];
  return true;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  Through *x = context;
  SnGradWorld *g = &x->g;
  const SnModel *m = g->m;
  move(x, NULL);
  sn_forward(m, &g->w, &g->lane);
  sn_adjoint_clear(m, &g->a, &g->lane);
  for (int i = 0; i < m->nsensordata; ++i) x->bar[i] = (sn_real)*ybar++;
  for (int i = 0; i < m->nsensor; ++i)
    for (int k = 0; k < m->sensor_dim[i] && !sn_sensor_differentiable(m, i); ++k) x->bar[m->sensor_adr[i] + k] = 0;
  for (int i = 0; i < m->nv; ++i) {
    g->a.qpos_next_bar[i] = 0;
    g->a.qvel_next_bar[i] = (sn_real)*ybar++;
  }
  for (int i = 0; i < m->na; ++i) g->a.act_next_bar[i] = (sn_real)*ybar++;
  for (int i = 0; i < sn_past_size(m); ++i) g->a.past_next_bar[i] = 0;
  for (int k = 0; k < x->nsample; ++k) g->a.past_next_bar[x->sample[k]] = (sn_real)*ybar++;
  sn_step_vjp(m, &g->w, &g->a, &g->lane);
  sn_sensor_data_vjp(m, &g->w, &g->a, &g->lane, x->bar);
  sn_position_vjp(m, &g->w, &g->a, &g->lane);
  sn_grad_world_result(g, xbar);
  for (int k = 0; k < x->nsample; ++k) xbar[sn_grad_world_nx(g) + k] += (double)g->a.past_bar[x->sample[k]];
}

static void gradients(void **state) {
  (void)state;
  for (int i = 0; i < MODELS; ++i) {
    static Through x;
    SnOracle o;
    sn_oracle_load_string(&o, kModels[i].xml);
    memset(&x, 0, sizeof x);
    sn_grad_world_init(&x.g, &o);
    for (int k = 0; k < o.m->nactuator; ++k)
      list_samples(&x, o.m->actuator_historyadr[k], o.m->actuator_history[2 * k], o.m->actuator_ctrlnum[k]);
    for (int k = 0; k < o.m->nsensor; ++k)
      list_samples(&x, o.m->sensor_historyadr[k], o.m->sensor_history[2 * k], o.m->sensor_dim[k]);
    const SnGradCase c = {.name = kModels[i].name,
                          .nx = sn_grad_world_nx(&x.g) + x.nsample,
                          .ny = o.m->nsensordata + o.m->nv + o.m->na + x.nsample,
                          .context = &x,
                          .sample = sample_state,
                          .forward = forward,
                          .adjoint = adjoint,
                          .tolerance = 1e-5,
                          .samples = 12};
    assert_true(x.nsample < NX && c.ny < NY);
    sn_gradcheck(&c, 1);
    sn_grad_world_free(&x.g);
    sn_oracle_free(&o);
  }
}

// ---- delays as parameters ----

static SnModel *copy_with_delay(const SnModel *m, int i, double step) {
  SnError err;
  SnModel *moved = sn_model_copy(m, &err);
  if (!moved) fail_msg("%s", err.text);
  moved->actuator_delay[i] += (sn_real)step;
  return moved;
}

// Parameters are delays in s and, where cubics bend, in tenths of a s: differences are the better for it.
static SnModel *with_delay(const SnModel *m, int p, double step) {
  static const struct {
    int actuator;
    double unit;
  } late[] = {{1, 1}, {3, 0.1}};
  return copy_with_delay(m, late[p].actuator, late[p].unit * step);
}

static void delays(void **state) {
  (void)state;
  sn_needs_doubles();
  static const char *const names[] = {"delay of 'line'", "delay of 'affine'"};
  SnOracle o;
  SnError err;
  sn_oracle_load_string(&o,
                        "<mujoco><option timestep='.003'/>" SN_PAST_BODIES
                        "<actuator><motor name='held' joint='j' delay='.012' nsample='5'/><position name='line' "
                        "joint='k' kp='5' delay='.0071' nsample='4' interp='linear'/><motor name='cubic' tendon='t' "
                        "gear='3' delay='.01' nsample='6' interp='cubic'/><general name='affine' joint='j' "
                        "gaintype='affine' gainprm='1 .5 -.4' delay='.0045' nsample='6' interp='cubic'/></actuator>"
                        "</mujoco>");
  for (int step = 0; step < 20; ++step) {
    draw_controls(&o);
    mj_step(o.mj, o.d);
  }
  sn_check_step_parameters(&o, "delays", names, 2, with_delay);
  SnModel *plus = copy_with_delay(o.m, 0, 1e-5), *minus = copy_with_delay(o.m, 0, -1e-5);
  const double step = 1e-5;
  assert_null(
      sn_model_tangents_create(o.m, (const SnModel *const *)&plus, (const SnModel *const *)&minus, &step, 1, &err));
  assert_int_equal(err.code, SN_ERR_UNSUPPORTED);
  assert_non_null(strstr(err.text, "it moves the delay of actuator 'held'"));
  sn_model_free(plus);
  sn_model_free(minus);
  sn_oracle_free(&o);
}

// ---- what is refused ----

#define ONE_SENSOR \
  "<worldbody><body><joint name='j'/><geom size='.1'/></body></worldbody><sensor><jointpos name='slow' joint='j' "
static void refusals(void **state) {
  (void)state;
  sn_expect_refused("<mujoco><option integrator='RK4'/>" ONE_SENSOR "nsample='3' delay='.01'/></sensor></mujoco>",
                    "sensor 'slow': a history buffer (nsample) with integrator RK4 is not supported");
  sn_expect_refused("<mujoco><option><flag sensor='disable'/></option>" ONE_SENSOR "nsample='3'/></sensor></mujoco>",
                    "sensor 'slow': a history buffer (nsample) with flag sensor='disable' is not supported");
  SnOracle o;
  SnError err = {0};
  sn_oracle_load_string(&o, kModels[0].xml);
  const SnHorizonSettings settings = sn_horizon_defaults();
  assert_null(sn_horizon_create(o.m, &settings, &err));
  assert_int_equal(err.code, SN_ERR_UNSUPPORTED);
  assert_non_null(strstr(err.text, "history buffer"));
  sn_oracle_free(&o);
}

// Numbers of a file that do not fit are named, and lead nowhere.
static void bad_numbers(void **state) {
  (void)state;
  SnOracle o;
  SnError err;
  sn_oracle_load_string(&o, kModels[0].xml);
  SnModel *m = o.m;
  const SnBadNumber cases[] = {
      {&m->actuator_history[1], 3, "actuator_history[1] is 3"},
      {&m->actuator_history[0], 6, "actuator_history[2] is 4: buffers follow each other"},
      {&m->actuator_history[0], 0, "actuator_history[0] is 0: a buffer has at least one sample"},
      {&m->actuator_historyadr[0], -1, "actuator_history[0] is 5"},
      {&m->sensor_history[2], 4, "sensor_history[4] is 3: buffers follow each other"},
      {&m->nhistory, m->nhistory + 1, "model: buffers have"}};
  sn_expect_bad_numbers(m, cases, sizeof cases / sizeof *cases);
  m->actuator_delay[0] = -1;
  assert_int_equal(sn_model_check(m, &err), SN_ERR_FORMAT);
  m->actuator_delay[0] = SN_R(0.012);
  assert_int_equal(sn_model_check(m, &err), SN_OK);
  sn_oracle_free(&o);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(readings),        cmocka_unit_test(rates),     cmocka_unit_test(chained),
      cmocka_unit_test(out_of_order),    cmocka_unit_test(resets),    cmocka_unit_test(resets_of_quaternions),
      cmocka_unit_test(short_intervals), cmocka_unit_test(delays),    cmocka_unit_test(refusals),
      cmocka_unit_test(bad_numbers),     cmocka_unit_test(gradients),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
