#include "tests/cuda/agree_case.h"

#include <stdio.h>
#include <stdlib.h>

#include "clients/reference/mujoco_reference.h"
#include "tests/support/actuator_models.h"
#include "tests/support/constraint_models.h"
#include "tests/support/convex_scene.h"
#include "tests/support/small_models.h"
#include "tests/support/dynamics_models.h"

const char *const agree_kind_name[AGREE_NKIND] = {
#define AGREE_TEXT(name, text) text,
    AGREE_KINDS(AGREE_TEXT)
#undef AGREE_TEXT
};

// ---- models ----

// Contacts and joints under some of the options that change their rows: every STRIDE-th combination.
enum { STRIDE = 23, CASES = 200 };

static const char *const options[] = {"<option integrator='implicitfast' timestep='.004'/>",
                                      "<option integrator='RK4' timestep='.004'/>"};

static bool load_text(AgreeCase *c, int *i) {
  const struct {
    const char *name, *xml;
  } list[] = {{"small 0", sn_small_model(0)},
              {"small 1", sn_small_model(1)},
              {"small 2", sn_small_model(2)},
              {"branches", sn_branching_model()},
              {"slipping", sn_slipping_model()},
              {"tendons", sn_tendon_xml},
              {"wraps", sn_wrap_xml},
              {"actuators", sn_actuator_xml},
              {"passive", sn_passive_xml},
              {"controllers", sn_controller_xml},
              {"motors", sn_motor_xml},
              {"orientations", sn_orientation_xml}};
  const int n = sizeof list / sizeof *list;
  if (*i >= n) {
    *i -= n;
    return false;
  }
  snprintf(c->name, sizeof c->name, "%s", list[*i].name);
  sn_oracle_load_string(&c->o, list[*i].xml);
  return true;
}

static bool load_rows(AgreeCase *c, int *i) {
  static SnConstraintCase cases[CASES];
  const int n = sn_constraint_cases(cases, CASES), picked = (n + STRIDE - 1) / STRIDE;
  if (*i >= 2 * picked) {
    *i -= 2 * picked;
    return false;
  }
  const SnConstraintCase *z = cases + STRIDE * (*i / 2);
  const bool contacts = *i % 2 == 0;
  snprintf(c->name, sizeof c->name, "%s: %s condim %d impratio %g solref %s solimp %s %s",
           contacts ? "contacts" : "joints", z->cone, z->condim, z->impratio, z->solref, z->solimp, z->flag);
  if (contacts)
    sn_constraint_load_contacts(&c->o, z);
  else
    sn_constraint_load_joints(&c->o, z);
  return true;
}

static bool load_integrators(AgreeCase *c, int *i) {
  const char *name;
  for (size_t k = 0; k < sizeof options / sizeof *options; ++k)
    for (int j = 0; sn_dynamics_load_inline(&c->o, options[k], j, &name); ++j) {
      if ((*i)-- == 0) {
        snprintf(c->name, sizeof c->name, "%s, %s", name, k ? "RK4" : "implicitfast");
        return true;
      }
      sn_oracle_free(&c->o);
    }
  return false;
}

static bool load_convex(AgreeCase *c, int *i) {
  if ((*i)-- != 0) return false;
  snprintf(c->name, sizeof c->name, "convex shapes");
  sn_convex_scene(&c->o,
                  "<body><freejoint/><geom type='ellipsoid' size='.1 .2 .15'/></body>"
                  "<body><freejoint/><geom type='capsule' size='.1 .2'/></body>"
                  "<body><freejoint/><geom type='sphere' size='.1'/></body>");
  return true;
}

// ---- states ----

// Copies n numbers into the memory of the case, from `used` on.
static sn_real *keep(AgreeCase *c, const sn_real *from, int n, size_t *used) {
  sn_real *to = c->memory + *used;
  if (n > 0) memcpy(to, from, sizeof *to * (size_t)n);
  *used += (size_t)n;
  return to;
}

// The state of MuJoCo, and its controls, as state number c->count of the case.
static void keep_state(AgreeCase *c) {
  const SnModel *m = c->o.m;
  const SnWorld *w = &c->o.w;
  const size_t size = (size_t)(m->nq + 2 * m->nv + m->na + 7 * m->nmocap + m->nu);
  size_t used = (size_t)c->count * size;
  if (!c->memory && !(c->memory = calloc(AGREE_STATES * size + 1, sizeof *c->memory))) abort();
  sn_oracle_copy_state(&c->o);
  c->state[c->count] = (SnState){.time = c->o.d->time,
                                 .qpos = keep(c, w->qpos, m->nq, &used),
                                 .qvel = keep(c, w->qvel, m->nv, &used),
                                 .act = keep(c, w->act, m->na, &used),
                                 .mocap_pos = keep(c, w->mocap_pos, 3 * m->nmocap, &used),
                                 .mocap_quat = keep(c, w->mocap_quat, 4 * m->nmocap, &used),
                                 .qacc_warmstart = keep(c, w->qacc_warmstart, m->nv, &used)};
  c->ctrl[c->count++] = keep(c, w->ctrl, m->nu, &used);
}

// States near the reference pose and far from it, by turns.
static void sample_states(AgreeCase *c) {
  while (c->count < AGREE_STATES) {
    sn_constraint_sample(&c->o, c->count % 2 ? 3 : 0.1);
    keep_state(c);
  }
}

// States of a body under smooth controls.
static void drive_states(AgreeCase *c) {
  sn_drive_start(&c->o);
  for (int k = 0; c->count < AGREE_STATES; ++k) {
    sn_drive_controls(&c->o, 1, k * c->o.mj->opt.timestep);
    if (k >= 50 && k % 10 == 0) keep_state(c);
    mj_step(c->o.mj, c->o.d);
  }
}

// ---- costs ----

typedef struct Text {
  char *text;
  size_t used, capacity;
  AgreeCost *cost;
  int count;
} Text;

static void add(Text *t, AgreeKind kind, const char *residual, const char *rest) {
  if (t->count == AGREE_TERMS || t->used + 1000 > t->capacity) return;
  t->used += (size_t)snprintf(t->text + t->used, t->capacity - t->used, "  - {name: t%d, residual: {%s}%s}\n", t->count,
                              residual, rest);
  t->cost->kind[t->count++] = kind;
}

static void named(Text *t, AgreeKind kind, const char *quantity, const char *name, const char *rest) {
  char residual[500];
  snprintf(residual, sizeof residual, quantity, name);
  add(t, kind, residual, rest);
}

static bool all_named(const SnModel *m, SnNameKind kind) {
  for (int i = 0; i < sn_model_count(m, kind); ++i)
    if (!sn_model_name(m, kind, i)[0]) return false;
  return sn_model_count(m, kind) > 0;
}

// A term an element where elements have names, else one for all of them.
static void add_coordinates(Text *t, const SnModel *m) {
  static const char rest[] = ", target: 0.3, terminal: 1";
  int turning = 0, bound = 0;
  for (int j = 0; j < m->njnt; ++j) {
    turning += m->jnt_type[j] == SN_JNT_BALL;
    bound += m->jnt_type[j] != SN_JNT_FREE;
  }
  if (all_named(m, SN_NAME_JNT)) {
    for (int j = 0; j < m->njnt; ++j) {
      const char *name = sn_model_name(m, SN_NAME_JNT, j);
      const bool ball = m->jnt_type[j] == SN_JNT_BALL;
      if (m->jnt_type[j] != SN_JNT_FREE)
        named(t, AGREE_POSITION, "joint_position: \"%s\"", name, ball ? ", terminal: 1" : rest);
      named(t, AGREE_VELOCITY, "joint_velocity: \"%s\"", name, rest);
    }
  } else {
    if (bound) add(t, AGREE_POSITION, "joint_position: all", turning ? ", terminal: 1" : rest);
    if (m->nv > 0) add(t, AGREE_VELOCITY, "joint_velocity: all", rest);
  }
  if (all_named(m, SN_NAME_TENDON))
    for (int i = 0; i < m->ntendon; ++i)
      named(t, AGREE_TENDON, "tendon_length: \"%s\"", sn_model_name(m, SN_NAME_TENDON, i), rest);
  else if (m->ntendon > 0)
    add(t, AGREE_TENDON, "tendon_length: all", rest);
  if (all_named(m, SN_NAME_ACTUATOR) && m->na == m->nu)
    for (int i = 0; i < m->nu; ++i)
      named(t, AGREE_ACTIVATION, "activation: \"%s\"", sn_model_name(m, SN_NAME_ACTUATOR, i), rest);
  else if (m->na > 0)
    add(t, AGREE_ACTIVATION, "activation: all", rest);
  if (m->nu > 0) add(t, AGREE_CONTROL, "control: all", ", target: 0.1, side: above");
  if (m->nu > 0)
    add(t, AGREE_CONTROL, "control_rate: all",
        ", norm: smooth_abs, width: 1, gate: {residual: {joint_velocity: all}, target: 0.1, norm: squared, below: 1, "
        "width: 2}");
}

static void add_frames(Text *t, const SnModel *m) {
  static const char rest[] = ", target: [0.3, -0.2, 0.1], terminal: 1";
  for (int i = 1; i < m->nbody && t->count < AGREE_TERMS - 40; ++i) {
    const char *name = sn_model_name(m, SN_NAME_BODY, i);
    if (!name[0]) continue;
    named(t, AGREE_POINT, "position: {body: \"%s\"}", name, rest);
    named(t, AGREE_TURN, "orientation: {body: \"%s\"}", name, ", terminal: 1");
    if (i > 2) continue;
    named(t, AGREE_VELOCITY, "velocity: {body: \"%s\"}", name, rest);
    named(t, AGREE_POINT, "position: {bodies: [world, \"%s\"]}", name,
          ", target: [0.3, -0.2, 0.1], terminal: 1, gate: {residual: {position: {body: world}}, target: [0.3, 0.4, 0], "
          "norm: euclidean}");
    named(t, AGREE_VELOCITY, "angular_velocity: {body: \"%s\"}, axis: [z, x]", name,
          ", weights: [2, 0.5], terminal: 1");
  }
  for (int i = 0; i < sn_model_count(m, SN_NAME_SITE) && t->count < AGREE_TERMS - 20; ++i) {
    const char *name = sn_model_name(m, SN_NAME_SITE, i);
    if (name[0]) named(t, AGREE_POINT, "position: {site: \"%s\"}", name, rest);
  }
}

static bool bind(AgreeCost *c, const char *text, const SnModel *m, SnError *err) {
  c->task = sn_task_parse(text, strlen(text), "agree.yaml", err);
  c->cost = c->task ? sn_cost_create(c->task, m, err) : NULL;
  return c->cost != NULL;
}

static void drop(AgreeCost *c) {
  sn_cost_free(c->cost);
  sn_task_free(c->task);
  c->cost = NULL;
  c->task = NULL;
}

// Sensors that a term can look at: with a terminal weight, or, where they depend on the control, without; with a
// gradient, or not (then in the cost of all terms alone).
static void add_sensors(Text *t, const SnModel *m, bool smooth) {
  static const char *const rest[] = {", terminal: 1", ""};
  for (int i = 0; i < m->nsensor; ++i) {
    const char *name = sn_model_name(m, SN_NAME_SENSOR, i);
    for (int k = 0; k < 2 && name[0]; ++k) {
      SnError err = {0};
      AgreeCost one = {0};
      char text[500];
      snprintf(text, sizeof text, "model: agree\nterms:\n  - {name: t, residual: {sensor: \"%s\"}%s}\n", name, rest[k]);
      const bool ok = bind(&one, text, m, &err);
      const bool takes = ok && (!smooth || sn_cost_check_gradient(one.cost, m, &err) == SN_OK);
      drop(&one);
      if (takes) named(t, AGREE_SENSOR, "sensor: \"%s\"", name, rest[k]);
      if (ok) break;
    }
  }
}

static void make_cost(AgreeCost *c, const SnModel *m, const char *name, bool smooth) {
  SnError err = {0};
  Text t = {.capacity = 1 << 17, .cost = c};
  if (!(t.text = malloc(t.capacity))) abort();
  t.used = (size_t)snprintf(t.text, t.capacity, "model: agree\nterms:\n");
  add_coordinates(&t, m);
  add_frames(&t, m);
  add_sensors(&t, m, smooth);
  if (!bind(c, t.text, m, &err)) fail_msg("%s: %s", name, err.text);
  free(t.text);
}

// ---- cases ----

static bool load(AgreeCase *c, int i, int real, bool *missing) {
  const char *name = NULL;
  *missing = false;
  const bool inlined = load_text(c, &i) || load_rows(c, &i) || load_convex(c, &i) || load_integrators(c, &i);
  if (inlined) {
    sample_states(c);
    return true;
  }
  if (i >= real || !sn_constraint_load_real(&c->o, i, 0, &name, missing)) return false;
  snprintf(c->name, sizeof c->name, "%s", name);
  if (*missing)
    printf("%s: skipped, the file is not there\n", name);
  else
    drive_states(c);
  return true;
}

bool agree_case_open(AgreeCase *c, int i, int real) {
  bool missing;
  memset(c, 0, sizeof *c);
  if (!load(c, i, real, &missing)) return false;
  if (missing) return true;
  make_cost(&c->all, c->o.m, c->name, false);
  make_cost(&c->smooth, c->o.m, c->name, true);
  return true;
}

void agree_case_close(AgreeCase *c) {
  drop(&c->all);
  drop(&c->smooth);
  free(c->memory);
  sn_oracle_free(&c->o);
}
