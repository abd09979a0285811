// Steps under random controls, and what is differentiated of a step: every kind of element that the engine supports.
#include <stdlib.h>

#include "physics/sensor/sensor.h"
#include "physics/step/step.h"
#include "physics/world/adjoint.h"
#include "tests/golden/golden.h"
#include "tests/support/actuator_models.h"
#include "tests/support/constraint_models.h"
#include "tests/support/convex_scene.h"
#include "tests/support/small_models.h"
#include "tests/support/dynamics_models.h"
#include "tests/support/step_fixture.h"

enum { STARTS = 3, STEPS = 32, FEW_STEPS = 16 };

const char golden_sensors[] =
    "<mujoco><worldbody><site name='w' pos='.3 .1 1' euler='10 20 30'/>"
    "<body name='a' pos='0 0 1'><joint name='h' axis='0 1 .2' limited='true' range='-20 20'/>"
    "<joint name='s' type='slide' axis='1 0 .1' limited='true' range='-.2 .2'/>"
    "<geom name='a' type='box' size='.05 .03 .02' pos='.1 0 0'/><site name='a' pos='.05 0 .02' euler='10 40 30'/>"
    "<body name='b' pos='.2 0 0'><joint name='ball' type='ball'/><geom type='capsule' size='.03 .1' pos='.1 0 0'/>"
    "<site name='b' pos='.06 0 .02' euler='-50 20 70'/></body></body>"
    "<body name='f' pos='.2 .2 1.5'><freejoint/><geom name='f' type='ellipsoid' size='.03 .04 .05'/>"
    "<site name='f' pos='.02 .02 .01' euler='5 6 7'/></body></worldbody>"
    "<tendon><spatial name='t' limited='true' range='.3 .35'><site site='w'/><site site='a'/><site site='b'/></spatial>"
    "</tendon><actuator><motor name='u' joint='h' gear='2'/><motor name='v' tendon='t'/></actuator><sensor>"
    "<jointpos name='s0' joint='h'/><jointvel name='s1' joint='s'/><ballquat name='s2' joint='ball'/>"
    "<ballangvel name='s3' joint='ball'/><tendonpos name='s4' tendon='t'/><tendonvel name='s5' tendon='t'/>"
    "<actuatorpos name='s6' actuator='v'/><actuatorvel name='s7' actuator='u'/><actuatorfrc name='s8' actuator='v'/>"
    "<jointlimitpos name='s9' joint='h'/><jointlimitvel name='s10' joint='h'/><tendonlimitpos name='s11' tendon='t'/>"
    "<framepos name='s12' objtype='site' objname='b' reftype='body' refname='f'/>"
    "<framequat name='s13' objtype='geom' objname='f' reftype='site' refname='a'/>"
    "<framexaxis name='s14' objtype='body' objname='b'/><framezaxis name='s15' objtype='site' objname='f'/>"
    "<framelinvel name='s16' objtype='site' objname='b' reftype='body' refname='f'/>"
    "<frameangvel name='s17' objtype='body' objname='b' reftype='site' refname='f'/><gyro name='s18' site='b'/>"
    "<velocimeter name='s19' site='b'/><subtreecom name='s20' body='a'/><clock/><jointactuatorfrc joint='h'/>"
    "<tendonactuatorfrc tendon='t'/><jointlimitfrc joint='h'/><tendonlimitvel tendon='t'/><tendonlimitfrc tendon='t'/>"
    "<frameyaxis objtype='xbody' objname='f'/></sensor></mujoco>";

// Where a run starts: the model's own start first, then random states.
static void start_of(SnOracle *o, int start, bool scattered) {
  if (start == 0) {
    sn_world_reset(o->m, &o->w);
    return;
  }
  mj_resetData(o->mj, o->d);
  if (scattered)
    sn_convex_scatter(o, 0.12 * start);
  else
    sn_oracle_randomize(o, start == 1 ? 1 : 0.1);
  sn_oracle_copy_state(o);
}

static void draw_controls(SnOracle *o) {
  const SnModel *m = o->m;
  for (int i = 0; i < m->nu; ++i) {
    const double lo = m->ctrl_limited[i] ? m->ctrl_range[2 * i] : -1,
                 hi = m->ctrl_limited[i] ? m->ctrl_range[2 * i + 1] : 1;
    o->w.ctrl[i] = lo + (hi - lo) * 0.5 * (1 + sn_oracle_uniform(o));
  }
}

static void add_contact(Hash *h, const SnContact *c) {
  hash_doubles(h, &c->dist, 1);
  hash_doubles(h, c->pos, 3);
  hash_doubles(h, c->frame, 9);
  hash_doubles(h, c->friction, 5);
  hash_doubles(h, c->solref, SN_NREF);
  hash_doubles(h, c->solimp, SN_NIMP);
  hash_doubles(h, &c->mu, 1);
  const int whole[] = {c->dim, c->geom[0], c->geom[1], c->exclude, c->efc_address};
  hash_ints(h, whole, 5);
}

typedef struct Hashes {
  Hash *state, *contacts, *rows, *sensors;
} Hashes;

static void add_step(Hashes *h, const SnOracle *o) {
  const SnModel *m = o->m;
  const SnWorld *w = &o->w;
  hash_doubles(h->state, w->time, 1);
  hash_doubles(h->state, w->qpos, (size_t)m->nq);
  hash_doubles(h->state, w->qvel, (size_t)m->nv);
  hash_doubles(h->state, w->act, (size_t)m->na);
  hash_ints(h->state, w->warn, 1);
  for (int i = 0; i < w->ncon[0]; ++i) add_contact(h->contacts, w->contact + i);
  hash_doubles(h->rows, w->efc_force, (size_t)w->nefc[0]);
  hash_doubles(h->rows, w->efc_pos, (size_t)w->nefc[0]);
  hash_ints(h->rows, w->efc_state, (size_t)w->nefc[0]);
  hash_doubles(h->rows, w->qacc, (size_t)m->nv);
  hash_ints(h->rows, w->solver_niter, 1);
}

// All stages of a state have run.
static void add_sensors(Hash *h, const SnOracle *o) {
  double *value = calloc((size_t)o->m->nsensordata + 1, sizeof *value);
  for (int i = 0; i < o->m->nsensor; ++i) {
    if (!sn_sensor_supported(o->m, i)) continue;
    sn_sensor_value(o->m, &o->w, i, value);
    hash_doubles(h, value, (size_t)o->m->sensor_dim[i]);
  }
  free(value);
}

// The adjoint of the step from the world's state, and its Jacobians.
static void add_gradient(Hash *h, SnOracle *o, SnAdjoint *a, double *A) {
  const SnModel *m = o->m;
  const size_t nv = (size_t)m->nv, na = (size_t)m->na, nu = (size_t)m->nu, n = 2 * nv + na;
  sn_forward(m, &o->w, &o->lane);
  sn_adjoint_clear(m, a, &o->lane);
  for (size_t i = 0; i < nv; ++i) a->qpos_next_bar[i] = sn_oracle_uniform(o);
  for (size_t i = 0; i < nv; ++i) a->qvel_next_bar[i] = sn_oracle_uniform(o);
  for (size_t i = 0; i < na; ++i) a->act_next_bar[i] = sn_oracle_uniform(o);
  sn_step_vjp(m, &o->w, a, &o->lane);
  sn_position_vjp(m, &o->w, a, &o->lane);
  hash_doubles(h, a->qpos_bar, nv);
  hash_doubles(h, a->qvel_bar, nv);
  hash_doubles(h, a->act_bar, na);
  hash_doubles(h, a->ctrl_bar, nu);
  hash_doubles(h, a->mocap_bar, 6 * (size_t)m->nmocap);
  if (!A) return;
  sn_step_jacobian(m, &o->w, a, &o->lane, A, A + n * n);
  hash_doubles(h, A, n * (n + nu));
}

// Contacts as they are, carried rigidly, and from distance.
static void gradients(Hash *h, SnOracle *o, SnAdjoint *a, double *A) {
  const SnCfd hard = *o->w.cfd;
  const SnCfd kinds[] = {
      {.on = 0},
      {.on = 0, .surrogate = 1},
      {.on = 1, .solimp = {0, 0.1, 0.2, 1, 4}, .width = 0.002},
      {.on = 1, .friction = 1, .solimp = {0.01, 0.2, 0.05, 0.6, 2}, .width = 0.01},
  };
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
    *o->w.cfd = kinds[k];
    add_gradient(h, o, a, k % 2 ? NULL : A);
  }
  *o->w.cfd = hard;
}

static int pairs[8][8];  // contacts seen, by the types of their geoms

static void model_lines(const char *name, const char *detail, SnOracle *o, bool scattered) {
  const SnModel *m = o->m;
  const size_t n = 2 * (size_t)m->nv + (size_t)m->na;
  Hashes h = {hash_new(), hash_new(), hash_new(), hash_new()};
  Hash *g = hash_new();
  SnAdjoint a;
  void *memory = aligned_alloc(64, (sn_adjoint_size(m) + 63) / 64 * 64);
  double *A = calloc(n * (n + (size_t)m->nu) + 1, sizeof *A);
  sn_adjoint_init(m, &a, memory);
  o->rng = 1;
  for (int start = 0; start < STARTS; ++start) {
    start_of(o, start, scattered);
    for (int k = 0; k < (start ? FEW_STEPS : STEPS); ++k) {
      draw_controls(o);
      sn_step(m, &o->w, &o->lane);
      add_step(&h, o);
      for (int i = 0; i < o->w.ncon[0]; ++i)
        ++pairs[m->geom_type[o->w.contact[i].geom[0]]][m->geom_type[o->w.contact[i].geom[1]]];
      if (start && k == 2) gradients(g, o, &a, A);
    }
    sn_forward(m, &o->w, &o->lane);
    add_sensors(h.sensors, o);
    gradients(g, o, &a, A);
  }
  free(A);
  free(memory);
  golden_line(hash_end(h.state), "state/%s%s", name, detail);
  golden_line(hash_end(h.contacts), "contacts/%s%s", name, detail);
  golden_line(hash_end(h.rows), "rows/%s%s", name, detail);
  golden_line(hash_end(h.sensors), "sensors/%s%s", name, detail);
  golden_line(hash_end(g), "gradient/%s%s", name, detail);
}

// Takes the oracle: lines with the model's own integrator or with all.
static void run_model(const char *name, SnOracle *o, bool all_integrators, bool scattered) {
  if (golden_model(name, o)) {
    if (!all_integrators) model_lines(name, "", o, scattered);
    for (int k = 0; all_integrators && k < SN_STEP_INTEGRATORS; ++k) {
      char detail[32];
      snprintf(detail, sizeof detail, "/%s", sn_integrator_name[k]);
      sn_step_integrator(o, k);
      model_lines(name, detail, o, scattered);
    }
  }
  sn_oracle_free(o);
}

// Bodies of every shape, two of those that collide with their like.
static void shapes(void) {
  SnOracle o;
  sn_convex_scene(&o,
                  "<geom type='plane' size='2 2 1' pos='0 0 -.25'/>"
                  "<body><freejoint/><geom size='.12'/></body><body><freejoint/><geom size='.08'/></body>"
                  "<body><freejoint/><geom type='capsule' size='.08 .1'/></body>"
                  "<body><freejoint/><geom type='capsule' size='.05 .2'/></body>"
                  "<body><freejoint/><geom type='ellipsoid' size='.1 .15 .2'/></body>"
                  "<body><freejoint/><geom type='ellipsoid' size='.2 .1 .1'/></body>"
                  "<body><freejoint/><geom type='cylinder' size='.15 .1'/></body>"
                  "<body><freejoint/><geom type='box' size='.1 .15 .1'/></body>"
                  "<body><freejoint/><geom type='mesh' mesh='hull'/></body>");
  run_model("shapes", &o, false, true);
  for (int a = 0, seen = 0; a < 8; ++a)
    for (int b = 0; b < 8; ++b)
      if ((seen += pairs[a][b] > 0, a == 7 && b == 7)) print_message("contacts of %d kinds of pairs of geoms\n", seen);
}

static void small_models(void) {
  static SnConstraintCase cases[200];
  SnOracle o;
  char name[64], xml[12000];
  for (int i = 0; i < SN_SMALL_MODELS; ++i) {
    snprintf(name, sizeof name, "small%d", i);
    sn_step_model(&o, i);
    run_model(name, &o, true, false);
  }
  sn_oracle_load_string(&o, sn_branching_model());
  run_model("branches", &o, true, false);
  sn_oracle_load_string(&o, sn_terrain_model());
  run_model("terrain", &o, false, false);
  const int n = sn_constraint_cases(cases, 200);
  for (int i = 0; i < n; i += 13) {
    snprintf(name, sizeof name, "contact_rows_%d", i);
    sn_constraint_load_contacts(&o, cases + i);
    run_model(name, &o, false, false);
    snprintf(name, sizeof name, "joint_rows_%d", i);
    sn_constraint_load_joints(&o, cases + i);
    run_model(name, &o, i % 2, false);
  }
  const char *text;
  for (int i = 0; sn_dynamics_load_inline(&o, i % 2 ? "<option integrator='implicitfast'/>" : "", i, &text); ++i) {
    snprintf(name, sizeof name, "dynamics%d", i);
    run_model(name, &o, false, false);
  }
  const char *const models[][2] = {{"tendons", sn_tendon_xml},      {"wraps", sn_wrap_xml},
                                   {"actuators", sn_actuator_xml},  {"passive", sn_passive_xml},
                                   {"all_sensors", golden_sensors}, {"controllers", sn_controller_xml},
                                   {"motors", sn_motor_xml},        {"orientations", sn_orientation_xml}};
  for (size_t i = 0; i < sizeof models / sizeof *models; ++i) {
    sn_oracle_load_string(&o, models[i][1]);
    run_model(models[i][0], &o, i == 2 || i >= 4, false);
  }
  for (int i = 0; i < 2; ++i) {
    snprintf(xml, sizeof xml, sn_adhesion_xml, i ? "elliptic" : "pyramidal");
    snprintf(name, sizeof name, "adhesion%d", i);
    sn_oracle_load_string(&o, xml);
    run_model(name, &o, false, false);
  }
}

static void large_models(void) {
  static const char *const own[] = {"arm_reach", "billiard"};
  static const char *const myosuite[][2] = {{"myohand", "simhive/myo_sim/hand/myohand.xml"},
                                            {"myoarm", "simhive/myo_sim/arm/myoarm.xml"},
                                            {"baoding", "envs/myo/assets/hand/myohand_baoding.xml"},
                                            {"tabletennis", "envs/myo/assets/arm/myoarm_tabletennis.xml"},
                                            {"myolegs", "simhive/myo_sim/leg/myolegs.xml"}};
  SnOracle o;
  char path[5000];
  for (size_t i = 0; i < sizeof own / sizeof *own; ++i) {
    snprintf(path, sizeof path, "%s/../physics/models/%s.xml", SN_TEST_SOURCE_DIR, own[i]);
    sn_oracle_load_file(&o, path);
    run_model(own[i], &o, true, false);
  }
  for (size_t i = 0; i < sizeof myosuite / sizeof *myosuite; ++i) {
    snprintf(path, sizeof path, "%s/%s", sn_oracle_myosuite() ? sn_oracle_myosuite() : "", myosuite[i][1]);
    if (!sn_oracle_myosuite()) {
      golden_skip(myosuite[i][0], "the MyoSuite models are not in the cache folder");
      continue;
    }
#ifdef SN_TEST_SLOW
    golden_skip(myosuite[i][0], "takes too long in this build");
#else
    sn_oracle_load_file(&o, path);
    run_model(myosuite[i][0], &o, false, false);
#endif
  }
}

void golden_steps(void **state) {
  (void)state;
  const int before = golden_failures();
  small_models();
  large_models();
  shapes();
  assert_int_equal(golden_failures() - before, 0);
}
