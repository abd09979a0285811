// Sensors that are known after the solver alone: accelerations, forces between bodies, tendons among them, touch,
// forces of limits. Values against MuJoCo's sensordata, gradients through contacts, equalities and the solver against
// differences, alone and between the halves of a step's adjoint.
#include <stdio.h>
#include <stdlib.h>

#include "physics/constraint/constraint.h"
#include "physics/sensor/sensor.h"
#include "physics/step/step.h"
#include "tests/support/gradcheck.h"
#include "tests/support/oracle.h"
#include "tests/support/tolerance.h"

enum { ROWS = 400, NUMBERS = 200 };

static const char bodies[] =
    "<worldbody><geom name='floor' type='plane' size='3 3 1' condim='4' friction='.8 .1 .01'/>"
    "<site name='still' pos='1 1 1' euler='10 20 30'/>"
    "<body name='slab' pos='2 0 .5'><geom type='box' size='.2 .2 .1'/><site name='slab' pos='0 0 .1' euler='3 4 5'/>"
    "</body>"
    "<body name='upper' pos='0 0 .6'><joint name='shoulder' type='ball' range='0 50' damping='.1'/>"
    "<geom type='capsule' fromto='0 0 0 .2 0 -.2' size='.04'/><site name='upper' pos='.03 0 -.05' euler='20 40 60'/>"
    "<geom name='wrap' type='cylinder' size='.03 .1' pos='.15 0 -.1' euler='80 10 0' contype='0' conaffinity='0'/>"
    "<site name='side' pos='.2 .05 -.05'/>"
    "<body name='lower' gravcomp='.7' pos='.2 0 -.2'><joint name='elbow' axis='0 1 .2' range='-30 30' armature='.01'/>"
    "<geom type='capsule' fromto='0 0 0 .2 0 -.2' size='.03'/><site name='lower' pos='0 0 0' euler='5 6 7'/>"
    "<site name='zone' type='capsule' size='.08 .1' pos='.2 0 -.2' euler='0 45 0'/>"
    "<body name='hand' pos='.2 0 -.2' euler='10 20 0'><geom name='hand' type='sphere' size='.06' condim='6' mass='.3' "
    "friction='.7 .02 .01'/><site name='hand' euler='50 20 10' type='sphere' size='.07'/><site name='a' pos='.03 0 "
    ".02'/>"
    "<body name='finger' pos='.05 0 0'><joint name='finger' axis='0 0 1' type='hinge' range='-40 40'/>"
    "<geom type='box' size='.05 .02 .02' pos='.05 0 0'/><site name='b' pos='.05 .02 .01'/><site name='finger' "
    "type='box' size='.06 .03 .03' pos='.05 0 0' "
    "euler='2 3 4'/></body></body></body></body>"
    "<body name='box' pos='.9 .2 .099' euler='1 2 3'><freejoint/><geom type='box' size='.15 .12 .1' condim='3' "
    "friction='.6'/><site name='box' type='cylinder' size='.3 .2' pos='.02 .01 .03' euler='5 6 7'/>"
    "<site name='corner' type='ellipsoid' size='.1 .12 .15' pos='.15 .12 -.1' euler='9 8 7'/>"
    "<body name='rider' pos='0 0 .2'><joint name='rider' axis='1 0 .3' range='-20 20'/><geom type='ellipsoid' "
    "size='.05 .06 .04' pos='.02 .03 .04'/><site name='rider' pos='.01 0 0' euler='40 1 2'/></body></body>"
    "<body name='m' mocap='true' pos='.9 .2 .9' euler='20 40 60'><geom type='sphere' size='.05' contype='0' "
    "conaffinity='0'/><site name='m' pos='.1 .2 .3'/></body>"
    "<body name='held' pos='.9 .2 .6'><freejoint/><geom type='box' size='.06 .05 .04' euler='3 4 5'/>"
    "<site name='held' pos='.01 .02 .03' euler='6 5 4'/></body></worldbody>"
    "<equality><weld body1='held' body2='m' torquescale='.7' solref='.05 1' relpose='.1 .05 -.2 1 .2 .1 0'/>"
    "<connect body1='rider' body2='held' anchor='.05 .02 .3' solref='.06 1'/>"
    "<joint joint1='finger' joint2='elbow' polycoef='.1 .4 .1 0 0' solref='.05 1'/>"
    "<tendon tendon1='t' tendon2='long' polycoef='.1 .3 .2 .1 .4' solref='.08 1'/></equality>"
    "<tendon><spatial name='t' stiffness='30' damping='1' springlength='.02' range='0 .1'><site site='a'/><site "
    "site='b'/></spatial><spatial name='long' stiffness='20' damping='.8' springlength='.1' range='.2 .9' "
    "frictionloss='.3'><site site='upper'/><geom geom='wrap' sidesite='side'/><site site='b'/><pulley "
    "divisor='2'/><site site='upper'/><site site='lower'/><site site='a'/><geom geom='hand'/><site site='b'/><pulley "
    "divisor='1.5'/><site site='lower'/><geom geom='hand'/><site site='b'/><pulley divisor='2'/>"
    "<site site='slab'/><site site='box'/></spatial><spatial name='heavy' armature='.04' "
    "stiffness='5' limited='true' range='0 .4'><site site='held'/><site site='rider'/><site "
    "site='still'/></spatial><fixed name='x' range='-.2 .1' frictionloss='.1'><joint joint='elbow' coef='1'/><joint "
    "joint='rider' coef='.5'/></fixed></tendon>"
    "<actuator><motor joint='elbow' gear='3'/><motor site='box' gear='1 2 3 .1 .2 .3'/><adhesion body='hand' gain='20' "
    "ctrlrange='0 1'/><muscle tendon='x' lengthrange='-1 1' force='10'/>"
    "<position name='p' joint='finger' kp='5' kv='.3'/><motor tendon='long' gear='-1.5'/><position tendon='heavy' "
    "kp='3' "
    "kv='.2' gear='.8'/></actuator>";

static const char sensors[] =
    "<accelerometer site='still'/><accelerometer site='slab'/><accelerometer site='upper'/><accelerometer site='hand'/>"
    "<accelerometer site='finger' cutoff='8'/><accelerometer site='rider'/><accelerometer site='m'/>"
    "<framelinacc objtype='body' objname='lower'/><frameangacc objtype='body' objname='rider'/>"
    "<framelinacc objtype='xbody' objname='hand'/><frameangacc objtype='geom' objname='hand'/>"
    "<framelinacc objtype='site' objname='box'/><framelinacc objtype='site' objname='still'/>"
    "<force site='upper'/><torque site='upper'/><force site='lower'/><torque site='lower'/><force site='hand'/><torque "
    "site='hand'/><force site='slab'/><torque site='slab'/>"
    "<force site='box'/><torque site='rider'/><force site='rider'/><force site='held'/><torque site='held'/>"
    "<force site='m'/><torque site='m'/><force site='still'/><force site='finger'/><torque "
    "site='finger'/>"
    "<touch site='zone'/><touch site='hand'/><touch site='finger'/><touch site='box'/><touch site='corner'/>"
    "<jointlimitfrc joint='shoulder'/><jointlimitfrc joint='elbow'/><jointlimitfrc joint='rider'/><tendonlimitfrc "
    "tendon='x'/><jointlimitfrc joint='finger' cutoff='.5'/><actuatorfrc actuator='p'/><framepos objtype='site' "
    "objname='hand'/><jointvel joint='elbow'/>";

// Two balls whose contact turns with them and passes torques on in all directions.
static const char balls[] =
    "<worldbody><body pos='0 0 3'><joint type='ball'/><geom type='sphere' size='.5' pos='.1 0 0' condim='6' friction='"
    ".7 .2 .1' solref='.2 1'/><site name='ball' pos='.1 .2 0' euler='7 8 9'/></body><body pos='.8 0 3'><joint "
    "type='slide' axis='.2 0 1'/><joint type='slide' axis='0 1 .1'/><geom size='.5'/></body></worldbody>"
    "<sensor><force site='ball'/><torque site='ball'/></sensor>";

typedef struct Case {
  const char *name, *option;
} Case;
static const Case cases[] = {
    {"pyramids", "<option/>"},
    {"elliptic", "<option cone='elliptic' impratio='2'/>"},
    {"implicitfast", "<option integrator='implicitfast' cone='elliptic'/>"},
    {"noslip", "<option noslip_iterations='4' cone='elliptic'/>"},
    {"noslip of pyramids", "<option noslip_iterations='3' integrator='implicitfast'/>"},
    {"exact diagonals", "<option cone='elliptic'><flag diagexact='enable'/></option>"},
    {"exact diagonals and noslip", "<option noslip_iterations='2'><flag diagexact='enable'/></option>"},
    {"weightless", "<option gravity='0 0 0' integrator='RK4'/>"}};

static void load(SnOracle *o, const Case *c) {
  char xml[12000];
  const size_t n =
      (size_t)snprintf(xml, sizeof xml, "<mujoco>%s%s<sensor>%s</sensor></mujoco>", c->option, bodies, sensors);
  assert_true(n < sizeof xml);
  sn_oracle_load_string(o, xml);
}

// Some state near rest, in which bodies touch the floor more or less.
static void draw(SnOracle *o) {
  sn_oracle_randomize(o, 0.3);
  mjData *d = o->d;
  const int body = mj_name2id(o->mj, mjOBJ_BODY, "box");
  if (body < 0) return;
  const int box = o->mj->jnt_qposadr[o->mj->body_jntadr[body]];
  const double place[7] = {0.9, 0.2, 0.09, 1, 0.02, 0.01, 0.1};
  for (int i = 0; i < 7; ++i) d->qpos[box + i] = place[i] + 0.02 * sn_oracle_uniform(o);
  double turn = 0;
  for (int i = 3; i < 7; ++i) turn += d->qpos[box + i] * d->qpos[box + i];
  for (int i = 3; i < 7; ++i) d->qpos[box + i] /= sqrt(turn);
}

static void values(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
    SnOracle o;
    int touched = 0, limited = 0;
    load(&o, cases + k);
#ifdef SN_SINGLE
    if (sn_has_noslip(o.m)) {
      print_message("skipped: %s, whose sweeps end elsewhere in float\n", cases[k].name);
      sn_oracle_free(&o);
      continue;
    }
#endif
    assert_true(o.m->nsensordata <= NUMBERS);
    for (int sample = 0; sample < 40; ++sample) {
      draw(&o);
      mj_forward(o.mj, o.d);
      sn_oracle_copy_state(&o);
      sn_forward(o.m, &o.w, &o.lane);
      sn_solve_finish(o.m, &o.w, &o.lane);
      for (int i = 0; i < o.m->nsensor; ++i) {
        sn_real value[4];
        const double *ref = o.d->sensordata + o.m->sensor_adr[i];
        double scale = 20;
        assert_true(sn_sensor_supported(o.m, i));
        sn_sensor_value(o.m, &o.w, i, value);
        for (int j = 0; j < o.m->nv; ++j) scale = sn_larger(scale, fabs(o.d->qacc[j]));
        for (int j = 0; j < o.d->nefc; ++j) scale = sn_larger(scale, fabs(o.d->efc_force[j]));
        touched += o.m->sensor_type[i] == SN_SENS_TOUCH && ref[0] > 0;
        limited += o.m->sensor_type[i] == SN_SENS_JOINTLIMITFRC && ref[0] > 0;
        for (int j = 0; j < o.m->sensor_dim[i]; ++j)
          if (!(fabs((double)value[j] - ref[j]) <= scale * SN_TOL(1e-7, 5e-2)))
            fail_msg("%s, sample %d: sensor %d of type %d, number %d: %.9g, MuJoCo %.9g", cases[k].name, sample, i,
                     o.m->sensor_type[i], j, (double)value[j], ref[j]);
      }
    }
    assert_true(touched > 20 && limited > 5);
    sn_oracle_free(&o);
  }
}

// ---- gradient ----

typedef struct Gradient {
  SnGradWorld g;
  bool step;  // with the next state beside the sensors, in one adjoint
  int nefc, ncon, type[ROWS], id[ROWS], state[ROWS];
  bool held[NUMBERS];  // by a cutoff
} Gradient;

static void run(Gradient *x, const double *dx) {
  sn_grad_world_move(&x->g, dx);
  sn_forward(x->g.m, &x->g.w, &x->g.lane);
  sn_solve_finish(x->g.m, &x->g.w, &x->g.lane);
}

static bool at_cutoff(const SnModel *m, int i, sn_real value) {
  return m->sensor_cutoff[i] > 0 && sn_abs(value) >= m->sensor_cutoff[i];
}

// States of Newton's solution: those of noslip's are rounding where a force is at its bound.
static const int *states(const SnModel *m, const SnWorld *w) { return sn_has_noslip(m) ? w->slip_state : w->efc_state; }

static bool sample_state(void *context) {
  Gradient *x = context;
  const SnModel *m = x->g.m;
  const SnWorld *w = &x->g.w;
  sn_real data[NUMBERS];
  draw(x->g.o);
  sn_grad_world_sample(&x->g);
  run(x, NULL);
  sn_sensor_data(m, w, &x->g.lane, data);
  for (int i = 0; i < m->nsensor; ++i)
    for (int k = 0; k < m->sensor_dim[i]; ++k)
      x->held[m->sensor_adr[i] + k] = at_cutoff(m, i, data[m->sensor_adr[i] + k]);
  x->nefc = *w->nefc;
  x->ncon = *w->ncon;
  assert_true(x->nefc <= ROWS);
  for (int i = 0; i < x->nefc; ++i) {
    x->state[i] = states(m, w)[i];
    x->type[i] = w->efc_type[i];
    x->id[i] = w->efc_id[i];
  }
  return true;
}

static bool same_branch(const Gradient *x, const sn_real *data) {
  const SnModel *m = x->g.m;
  const SnWorld *w = &x->g.w;
  if (*w->nefc != x->nefc || *w->ncon != x->ncon) return false;
  for (int i = 0; i < x->nefc; ++i) {
    if (w->efc_type[i] != x->type[i] || w->efc_id[i] != x->id[i]) return false;
    if (states(m, w)[i] != x->state[i] && fabs((double)w->efc_jar[i]) > 1e-10) return false;
  }
  for (int i = 0; i < m->nsensor; ++i)
    for (int k = 0; k < m->sensor_dim[i]; ++k)
      if (x->held[m->sensor_adr[i] + k] != at_cutoff(m, i, data[m->sensor_adr[i] + k])) return false;
  return true;
}

static bool forward(void *context, const double *dx, double *y) {
  Gradient *x = context;
  SnGradWorld *g = &x->g;
  sn_real data[NUMBERS];
  run(x, dx);
  sn_sensor_data(g->m, &g->w, &g->lane, data);
  if (!same_branch(x, data)) return false;
  for (int k = 0; k < g->m->nsensordata; ++k) *y++ = (double)data[k];
  if (!x->step) return true;
  sn_integrate(g->m, &g->w, &g->lane);
  for (int k = 0; k < g->m->nv; ++k) *y++ = (double)g->w.qvel[k];
  return true;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  Gradient *x = context;
  SnGradWorld *g = &x->g;
  const SnModel *m = g->m;
  sn_real bar[NUMBERS];
  run(x, NULL);
  for (int k = 0; k < m->nsensordata; ++k) bar[k] = (sn_real)*ybar++;
  sn_adjoint_clear(m, &g->a, &g->lane);
  if (x->step) {
    for (int k = 0; k < m->nv; ++k) g->a.qpos_next_bar[k] = 0;
    for (int k = 0; k < m->na; ++k) g->a.act_next_bar[k] = 0;
    for (int k = 0; k < m->nv; ++k) g->a.qvel_next_bar[k] = (sn_real)*ybar++;
    sn_step_vjp(m, &g->w, &g->a, &g->lane);
  } else {
    sn_motion_rest(m, &g->w, &g->a, &g->lane);
  }
  sn_sensor_data_vjp(m, &g->w, &g->a, &g->lane, bar);
  sn_position_vjp(m, &g->w, &g->a, &g->lane);
  sn_grad_world_result(g, xbar);
}

// Gradients of all sensors of a model, with and without a step; frees the model.
static void gradient(SnOracle *o, const char *what) {
  static Gradient x;
  for (int step = 0; step < 2; ++step) {
    char name[60];
    snprintf(name, sizeof name, "%s%s", what, step ? ", with a step" : "");
    sn_grad_world_init(&x.g, o);
    x.step = step == 1;
    for (int i = 0; i < o->m->nsensor; ++i) assert_true(sn_sensor_differentiable(o->m, i));
    const SnGradCase c = {.name = name,
                          .nx = sn_grad_world_nx(&x.g),
                          .ny = o->m->nsensordata + (step ? o->m->nv : 0),
                          .context = &x,
                          .sample = sample_state,
                          .forward = forward,
                          .adjoint = adjoint,
                          .step = 1e-7,
                          .tolerance = 1e-5,
                          .samples = 6};
    sn_gradcheck(&c, 1);
    sn_grad_world_free(&x.g);
  }
  sn_oracle_free(o);
}

static void gradients(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
    SnOracle o;
    load(&o, cases + k);
    gradient(&o, cases[k].name);
  }
}

static void gradients_through_turning_contacts(void **state) {
  (void)state;
  const char *cone[] = {"pyramidal", "elliptic"};
  for (int k = 0; k < 2; ++k) {
    SnOracle o;
    char xml[1000];
    snprintf(xml, sizeof xml, "<mujoco><option cone='%s'/>%s</mujoco>", cone[k], balls);
    sn_oracle_load_string(&o, xml);
    gradient(&o, k == 0 ? "two balls, pyramids" : "two balls, elliptic");
  }
}

// Compares sensor i, the i-th of a model whose sensors have three numbers each.
static void assert_as_mujoco(const SnOracle *o, int i, double tolerance) {
  sn_real value[3];
  sn_sensor_value(o->m, &o->w, i, value);
  for (int k = 0; k < 3; ++k) {
    const double ought = o->d->sensordata[3 * i + k];
    if (!(fabs((double)value[k] - ought) <= tolerance * (20 + fabs(ought))))
      fail_msg("sensor %d, number %d: %.9g, MuJoCo %.9g", i, k, (double)value[k], ought);
  }
}

// A contact between bodies of a subtree is within it, and does not count; for one of them it does.
static void within(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(
      &o,
      "<mujoco><worldbody><body pos='0 0 1'><joint axis='0 1 0'/><geom size='.1'/><site name='a'/><body pos='.3 0 0'>"
      "<joint axis='0 1 0'/><geom size='.05' contype='0' conaffinity='0'/><body pos='-.11 0 .02'><joint axis='0 1 0'/>"
      "<geom size='.1'/><site name='c'/></body></body></body></worldbody><sensor><force site='a'/><torque site='a'/>"
      "<force site='c'/><torque site='c'/></sensor></mujoco>");
  mj_forward(o.mj, o.d);
  sn_oracle_copy_state(&o);
  sn_forward(o.m, &o.w, &o.lane);
  sn_solve_finish(o.m, &o.w, &o.lane);
  assert_int_equal(o.d->ncon, 1);
  for (int i = 0; i < o.m->nsensor; ++i) {
    assert_as_mujoco(&o, i, SN_TOL(1e-7, 5e-2));
  }
  sn_oracle_free(&o);
}

// Bounds of a tendon that are equally far have rows that pull against each other.
static void between_bounds(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(
      &o,
      "<mujoco><worldbody><site name='w' pos='0 0 1'/><body pos='0 0 .5'><joint type='slide' axis='0 0 "
      "1'/><geom size='.05'/><site name='s'/></body></worldbody><tendon><spatial range='.25 .75' "
      "margin='.3'><site site='w'/><site site='s'/></spatial></tendon><sensor><force site='s'/></sensor>"
      "</mujoco>");
  sn_real value[3];
  mj_forward(o.mj, o.d);
  assert_int_equal(o.d->nefc, 2);
  sn_oracle_copy_state(&o);
  sn_forward(o.m, &o.w, &o.lane);
  sn_solve_finish(o.m, &o.w, &o.lane);
  sn_sensor_value(o.m, &o.w, 0, value);
  for (int k = 0; k < 3; ++k) assert_true(fabs((double)value[k] - o.d->sensordata[k]) <= SN_TOL(1e-9, 1e-2));
  sn_oracle_free(&o);
}

// A site between others of its rigid body has a frame that a step leaves out. The world has no torque.
static void welded(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(
      &o,
      "<mujoco><worldbody><site name='w' pos='.5 0 0'/><body name='a' pos='0 0 1'><joint axis='0 1 0'/><geom "
      "size='.1'/>"
      "<site name='a'/><body name='b' pos='.3 0 0'><geom size='.1'/><site name='between' pos='.1 .1 0'/><site "
      "name='b'/>"
      "<body pos='.2 0 .1'><joint/><geom size='.1'/><site name='c'/></body></body></body></worldbody><tendon><spatial "
      "stiffness='20' springlength='.1'><site site='w'/><site site='a'/><site site='between'/><site site='b'/><site "
      "site='c'/></spatial></tendon><sensor><force site='a'/><force site='b'/><torque site='b'/><force "
      "site='w'/><force "
      "site='c'/><torque site='w'/></sensor></mujoco>");
  mj_forward(o.mj, o.d);
  sn_oracle_copy_state(&o);
  sn_forward(o.m, &o.w, &o.lane);
  for (int i = 0; i < 5; ++i) {
    assert_true(sn_sensor_supported(o.m, i) && sn_sensor_differentiable(o.m, i));
    assert_int_equal(sn_sensor_stage(o.m, i), SN_STAGE_SOLVER);
    assert_as_mujoco(&o, i, SN_TOL(1e-10, 1e-3));
  }
  assert_false(sn_sensor_supported(o.m, 5));
  sn_oracle_free(&o);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values), cmocka_unit_test(gradients),      cmocka_unit_test(gradients_through_turning_contacts),
      cmocka_unit_test(within), cmocka_unit_test(between_bounds), cmocka_unit_test(welded)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
