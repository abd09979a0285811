// Copies of a model with other numbers in its arrays: each array that may change is the one that the importer makes of
// an mjModel after the same numbers were written into it, and steps and derivatives are MuJoCo's. Constants made anew
// are those of mj_setConst.
#include <mujoco/mjxmacro.h>
#include <stdio.h>
#include <stdlib.h>

#include "clients/libsinew/model_private.h"
#include "clients/reference/compare.h"
#include "physics/import/import_mjcf.h"
#include "physics/model/model_file.h"
#include "physics/step/step.h"
#include "tests/clients/libsinew/pair_fixture.h"
#include "tests/support/step_fixture.h"

// ---- MuJoCo's side ----

// An array of mjModel, or NULL.
typedef struct Place {
  void *data;
  size_t size;  // bytes of a number
} Place;

static Place place_of(mjModel *m, const char *name) {
#define X(type, field, rows, cols) \
  if (strcmp(name, #field) == 0) return (Place){m->field, sizeof(type)};
#define XNV X
  MJMODEL_POINTERS
#undef X
#undef XNV
  return (Place){NULL, 0};
}

static void write_numbers(mjModel *m, const char *name, const double *value, int n) {
  const Place p = place_of(m, name);
  if (n > 0 && !p.data) fail_msg("mjModel has no %s", name);
  SinewField field = {.integer = p.size < sizeof(mjtNum)};
  for (int i = 0; i < n; ++i) {
    if (!field.integer)
      ((mjtNum *)p.data)[i] = value[i];
    else if (p.size == sizeof(int))
      ((int *)p.data)[i] = (int)value[i];
    else
      ((mjtByte *)p.data)[i] = (mjtByte)value[i];
  }
}

// Frames as libsinew has them, each for itself, and boxes of bodies' geoms that keep no pair apart.
static void free_frames(mjModel *m, const SinewModel *model) {
  static const char *const frames[] = {"body_ipos", "body_iquat", "geom_pos", "geom_quat", "site_pos", "site_quat"};
  for (int i = 0; i < 6; ++i) {
    int rows, cols;
    const double *value = sinew_model_array(model, frames[i], &rows, &cols);
    write_numbers(m, frames[i], value, rows * cols);
  }
  for (int i = 0; i < m->nbody; ++i)
    if (!m->body_simple[i]) m->body_sameframe[i] = mjSAMEFRAME_NONE;
  memset(m->geom_sameframe, mjSAMEFRAME_NONE, (size_t)m->ngeom);
  memset(m->site_sameframe, mjSAMEFRAME_NONE, (size_t)m->nsite);
  for (int i = 0; i < m->nbvhstatic; ++i)
    for (int k = 3; k < 6; ++k) m->bvh_aabb[6 * i + k] = 1e3;
}

// What MuJoCo derives from flags and hints, of which mj_setConst computes some and a user writes the rest.
static void follow_flags(mjModel *m, const SinewModel *model) {
  mjModel *other = mj_copyModel(NULL, m);
  mjData *d = mj_makeData(other);
  mj_setConst(other, d);
  memcpy(m->jnt_actuatorid, other->jnt_actuatorid, sizeof(int) * (size_t)m->njnt);
  memcpy(m->tendon_actuatorid, other->tendon_actuatorid, sizeof(int) * (size_t)m->ntendon);
  memcpy(m->body_subtreemass, other->body_subtreemass, sizeof(mjtNum) * (size_t)m->nbody);
  memcpy(m->body_margin, other->body_margin, sizeof(mjtNum) * (size_t)m->nbody);
  m->ngravcomp = other->ngravcomp;
  m->flg_gravcomp = other->flg_gravcomp;
  mj_deleteData(d);
  mj_deleteModel(other);
  for (int b = 0; b < m->nbody; ++b) m->body_contype[b] = m->body_conaffinity[b] = 0;
  for (int g = 0; g < m->ngeom; ++g) {
    m->body_contype[m->geom_bodyid[g]] |= m->geom_contype[g];
    m->body_conaffinity[m->geom_bodyid[g]] |= m->geom_conaffinity[g];
  }
  // bounding volumes of geoms: test sizes_bring_their_bounds
  memcpy(m->geom_rbound, sinew_model_array(model, "geom_rbound", NULL, NULL), sizeof(mjtNum) * (size_t)m->ngeom);
  memcpy(m->geom_aabb, sinew_model_array(model, "geom_aabb", NULL, NULL), sizeof(mjtNum) * 6 * (size_t)m->ngeom);
}

// ---- changes ----

static bool in(const char *name, const char *list) {
  char word[80];
  snprintf(word, sizeof word, " %s ", name);
  return strstr(list, word) != NULL;
}

static const char flags[] =
    " jnt_limited jnt_actfrclimited jnt_actgravcomp eq_active0 tendon_limited tendon_actfrclimited actuator_actlimited "
    "actuator_actearly actuator_forcelimited actuator_ctrllimited ";
static const char quats[] = " body_quat body_iquat geom_quat site_quat key_mquat ";
// What begins to act where it was zero.
static const char added[] =
    " jnt_stiffness jnt_stiffnesspoly dof_damping dof_frictionloss dof_armature tendon_stiffness "
    "tendon_stiffnesspoly tendon_damping tendon_frictionloss body_gravcomp actuator_damping actuator_armature site_pos "
    "geom_pos body_pos body_ipos jnt_pos ";

// Rotations among positions.
static void normalize_positions(const mjModel *m, double *qpos) {
  for (int j = 0; j < m->njnt; ++j) {
    if (m->jnt_type[j] == mjJNT_FREE) mju_normalize4(qpos + m->jnt_qposadr[j] + 3);
    if (m->jnt_type[j] == mjJNT_BALL) mju_normalize4(qpos + m->jnt_qposadr[j]);
  }
}

static int other_integer(const char *name, int i, int x) {
  if (in(name, flags)) return i % 3 == 0 ? !x : x;
  if (strstr(name, "dim")) return x == 3 ? 4 : 3;
  if (strstr(name, "con")) return x ? x ^ 2 : 0;  // MuJoCo refuses geoms that were not compiled to collide
  return i % 3 == 0 ? x ^ 2 : x;                  // priorities, groups
}

static double other_real(const char *name, int i, double x) {
  if (in(name, quats)) return x + .02 * (i % 4);
  if (strstr(name, "dampingpoly")) return x * 1.05 + 1e-5;
  if (in(name, added)) return x * 1.05 + .004 * (1 + i % 3);
  return x * 1.05;
}

// Whether entry i, or its group, stays: what may not change although others of its array may.
static bool stays(const mjModel *m, const char *name, int i) {
  if (strcmp(name, "wrap_prm") == 0) return m->wrap_type[i] == mjWRAP_SPHERE || m->wrap_type[i] == mjWRAP_CYLINDER;
  if (strcmp(name, "geom_size") == 0) return m->geom_type[i / 3] == mjGEOM_MESH || m->geom_type[i / 3] == mjGEOM_HFIELD;
  // a tendon that wraps around geoms, or pulls on a free body, has no inertia
  if (strcmp(name, "actuator_armature") == 0) return m->actuator_trntype[i] == mjTRN_TENDON;
  if (strncmp(name, "body_", 5) == 0 && i < 4) return true;  // MuJoCo does not look at the world's frame
  const int body = in(name, " body_ipos body_iquat ") ? i / (strcmp(name, "body_ipos") ? 4 : 3)
                   : in(name, " jnt_pos jnt_axis ")   ? m->jnt_bodyid[i / 3]
                                                      : -1;
  return body >= 0 && m->body_simple[body];
}

// Other numbers for a whole array; the caller frees them.
static double *other_numbers(const mjModel *m, const SinewModel *model, const SinewField *field) {
  const int n = field->rows * field->cols;
  const double *real = sinew_model_array(model, field->name, NULL, NULL);
  const int *integer = sinew_model_int_array(model, field->name, NULL, NULL);
  double *value = calloc((size_t)n + 1, sizeof *value);
  for (int i = 0; i < n; ++i) {
    value[i] = integer ? integer[i] : real[i];
    if (!stays(m, field->name, i))
      value[i] = integer ? other_integer(field->name, i, integer[i]) : other_real(field->name, i, value[i]);
  }
  for (int i = 0; i + 3 < n && in(field->name, quats); i += 4)
    if (!stays(m, field->name, i)) mju_normalize4(value + i);
  for (int i = 0; i + 2 < n && strcmp(field->name, "jnt_axis") == 0; i += 3)
    if (!stays(m, field->name, i)) value[i] += .1, mju_normalize3(value + i);
  for (int i = 0; i + m->nq <= n && m->nq && in(field->name, " qpos0 qpos_spring key_qpos "); i += m->nq) {
    for (int k = 0; k < m->nq; ++k) value[i + k] += .01 * (k % 2);
    normalize_positions(m, value + i);
  }
  return value;
}

// ---- comparison ----

static void assert_same_image(const SnModel *a, const SnModel *b, const char *model, const char *name) {
  SnError err = {0};
  size_t na = 0, nb = 0;
  void *one = sn_model_write(a, &na, &err), *two = sn_model_write(b, &nb, &err);
  if (!one || !two || na != nb || memcmp(one, two, na) != 0)
    fail_msg("%s, %s: another model than MuJoCo's", model, name);
  free(one);
  free(two);
}

// All fields of `steps` steps, from where MuJoCo is after a while.
static void compare_steps(SnOracle *o, int steps, const char *model, const char *name) {
  SnCompare c;
  sn_model_need_all(o->m);
  sn_world_init(o->m, &o->w, o->memory);
  for (int k = 0; k < 30; ++k) {
    sn_drive_controls(o, 1, k * o->mj->opt.timestep);
    mj_step(o->mj, o->d);
  }
  sn_compare_init(&c);
  for (int k = 0; k < steps; ++k) {
    sn_oracle_copy_state(o);
    mj_forward(o->mj, o->d);
    sn_compare_begin(&c, o);
    sn_forward(o->m, &o->w, &o->lane);
    for (int stage = SN_STAGE_KINEMATICS; stage <= SN_STAGE_SOLVER; ++stage) sn_compare_stage(&c, o, (SnStage)stage, k);
    sn_oracle_copy_state(o);
    sn_step(o->m, &o->w, &o->lane);
    mj_step(o->mj, o->d);
    sn_compare_next(&c, o, k);
  }
  for (int f = 0; f < SN_CMP_COUNT; ++f)
    if (c.field[f].differs)
      fail_msg("%s, %s: %s[%d] differs by %g in step %d (%s)", model, name, sn_compared_name((SnCompared)f),
               c.field[f].element, c.field[f].rel, c.field[f].step, c.note);
  sn_compare_free(&c);
}

static SinewModel *with(const SinewModel *model, const SinewArray *arrays, int n) {
  SinewError err;
  SinewModel *changed = sinew_model_with_arrays(model, arrays, n, &err);
  if (!changed) fail_msg("%s", err.text);
  assert_int_equal(err.status, SINEW_OK);
  return changed;
}

// Opens MuJoCo's model with the same changes, and checks that the importer makes the same of it.
static void open_changed(SnOracle *o, const mjModel *mj, const SinewModel *base, const SinewModel *changed,
                         const SinewArray *arrays, int n, const char *model) {
  SnError err = {0};
  mjModel *other = mj_copyModel(NULL, mj);
  free_frames(other, base);
  for (int i = 0; i < n; ++i) write_numbers(other, arrays[i].name, arrays[i].value, arrays[i].rows * arrays[i].cols);
  follow_flags(other, changed);
  if (sn_oracle_open(o, other, &err) != SN_OK) fail_msg("%s", err.text);
  assert_same_image(changed->model, o->m, model, arrays[0].name);
}

// Model i of pair_fixture.h, without a path that is a matter of rounding.
static const char *open_pair(BodyPair *b, int i) {
  if (i > 0) return body_open(b, i);
  memset(b, 0, sizeof *b);
  sn_step_model(&b->o, 0);
  body_make(b);
  return "arm";
}

static void every_array_acts_as_in_mujoco(void **state) {
  (void)state;
  for (int i = 0; i < BODY_MODELS; ++i) {
    BodyPair b;
    SinewField field;
    const char *model = open_pair(&b, i);
    for (int f = 0; sinew_model_field(b.model, f, &field); ++f) {
      if (!field.input || field.rows * field.cols == 0) continue;
      SnOracle o;
      double *value = other_numbers(b.o.mj, b.model, &field);
      const SinewArray array = {field.name, value, field.rows, field.cols};
      SinewModel *changed = with(b.model, &array, 1);
      open_changed(&o, b.o.mj, b.model, changed, &array, 1, model);
      if (i != 1) compare_steps(&o, 3, model, field.name);  // contacts in the pile depend on rounding
      sn_oracle_free(&o);
      sinew_model_free(changed);
      free(value);
    }
    body_close(&b);
  }
}

// ---- constants ----

// Every array of a model with constants made anew, against those that mj_setConst leaves.
static void compare_constants(SinewModel *model, mjModel *mj, const char *name) {
  SinewField field;
  for (int f = 0; sinew_model_field(model, f, &field); ++f) {
    const Place p = place_of(mj, field.name);
    if (!field.input && strcmp(field.name, "body_subtreemass") != 0) continue;
    if (field.integer) continue;
    const double *ours = sinew_model_array(model, field.name, NULL, NULL), *theirs = p.data;
    double scale = 1e-6;
    for (int i = 0; i < field.rows * field.cols; ++i) scale = sn_larger(scale, fabs(theirs[i]));
    for (int i = 0; i < field.rows * field.cols; ++i)
      if (!(fabs(ours[i] - theirs[i]) <= 1e-9 * scale))
        fail_msg("%s: %s[%d] is %g, MuJoCo's %g of %g", name, field.name, i, ours[i], theirs[i], scale);
  }
}

// As compiled, and after changes of what the constants follow from.
static void check_constants(BodyPair *b, const char *name) {
  static const char *const names[] = {"body_mass",    "body_inertia",  "qpos0",    "body_pos",
                                      "dof_armature", "actuator_gear", "site_pos", "geom_size"};
  enum { N = sizeof names / sizeof *names };
  SinewArray arrays[N];
  double *value[N];
  SinewField field;
  int n = 0;
  free_frames(b->o.mj, b->model);
  SinewModel *same = sinew_model_with_constants(b->model, &b->err);
  if (!same) fail_msg("%s: %s", name, b->err.text);
  compare_constants(same, b->o.mj, name);
  for (int f = 0; sinew_model_field(b->model, f, &field); ++f)
    for (int k = 0; k < N; ++k) {
      if (strcmp(field.name, names[k]) != 0) continue;
      value[n] = other_numbers(b->o.mj, b->model, &field);
      arrays[n] = (SinewArray){field.name, value[n], field.rows, field.cols};
      ++n;
    }
  assert_int_equal(n, N);
  SinewModel *changed = with(b->model, arrays, N), *constant = sinew_model_with_constants(changed, &b->err);
  if (!constant) fail_msg("%s: %s", name, b->err.text);
  for (int i = 0; i < N; ++i) write_numbers(b->o.mj, arrays[i].name, arrays[i].value, arrays[i].rows * arrays[i].cols);
  follow_flags(b->o.mj, changed);
  mj_setConst(b->o.mj, b->o.d);
  compare_constants(constant, b->o.mj, name);
  for (int i = 0; i < N; ++i) free(value[i]);
  sinew_model_free(constant);
  sinew_model_free(changed);
  sinew_model_free(same);
  body_close(b);
}

static void constants_are_those_of_mj_setConst(void **state) {
  (void)state;
  for (int i = 0; i < BODY_MODELS; ++i) {
    BodyPair b;
    const char *name = open_pair(&b, i);
    check_constants(&b, name);
  }
}

// Slides, hinges and free bodies with and without simple dofs, welds and connects, tendons with armature.
static void constants_of_simple_bodies(void **state) {
  (void)state;
  BodyPair b;
  body_open_string(
      &b,
      "<mujoco><default><geom type='box' size='.1 .2 .3' mass='2'/></default><worldbody>"
      "<body><joint name='s' type='slide' armature='1'/><geom/></body>"
      "<body><joint type='slide' axis='1 0 1'/><geom/></body>"
      "<body><joint type='slide'/><geom/><body><geom/></body></body>"
      "<body><joint type='slide' axis='1 0 0'/><joint type='slide' axis='0 1 0'/><joint type='ball'/><geom/></body>"
      "<body name='a'><joint name='h' damping='1'/><geom pos='1 0 0'/><body name='b' pos='1 0 0'><joint name='k' "
      "axis='0 1 0'/><geom pos='.1 .2 .3'/></body></body><body name='c' pos='1 1 1'><freejoint/><geom/></body>"
      "<body name='d' pos='1 1 2'><joint type='ball' pos='.1 0 0'/><geom/></body></worldbody>"
      "<equality><connect body1='b' body2='c' anchor='.1 .2 .3'/><weld body1='a' body2='d'/></equality>"
      "<tendon><fixed name='t' armature='.5'><joint joint='h' coef='1'/><joint joint='k' coef='-2'/></fixed></tendon>"
      "<actuator><motor joint='s' gear='3'/><motor tendon='t'/><general joint='h' armature='.2'/></actuator></mujoco>");
  check_constants(&b, "simple bodies");
}

static void constants_of_myosuite(void **state) {
  (void)state;
  BodyPair b;
  sn_oracle_needs_myosuite();
  body_open_myosuite(&b, "simhive/myo_sim/hand/myohand.xml");
  check_constants(&b, "MyoHand");
  body_open_myosuite(&b, "simhive/myo_sim/arm/myoarm.xml");
  check_constants(&b, "MyoArm");
}

// ---- what follows, what is refused ----

// Geoms of all types but meshes, of the sizes given. MuJoCo keeps pairs apart by what follows from them.
static mjModel *read_sizes(const char *sphere, const char *others) {
  char xml[2000];
  SnError err = {0};
  snprintf(xml, sizeof xml,
           "<mujoco><worldbody><geom type='plane' size='%s'/><body><freejoint/><geom size='%s'/><geom type='capsule' "
           "size='%s'/><geom type='cylinder' size='%s'/><geom type='ellipsoid' size='%s'/><geom type='box' size='%s' "
           "pos='1 0 0'/></body></worldbody></mujoco>",
           others, sphere, others, others, others, others);
  mjModel *mj = sn_oracle_read_string(xml, &err);
  if (!mj) fail_msg("%s", err.text);
  return mj;
}

static void sizes_bring_their_bounds(void **state) {
  (void)state;
  mjModel *small = read_sizes(".1", ".1 .2 .3"), *large = read_sizes(".7", ".5 .4 .6");
  SnError why = {0};
  SinewError err;
  SinewModel *base = api_model_wrap(sn_import_mjmodel(small, &why), &err);
  double radius[6] = {0, 9, 9, 9, 9, 9};
  const SinewArray arrays[] = {{"geom_size", large->geom_size, 6, 3}, {"geom_rbound", radius, 6, 1}};
  SinewModel *changed = with(base, arrays, 1), *given = with(base, arrays, 2);
  assert_memory_equal(changed->model->geom_rbound, large->geom_rbound, 6 * sizeof(double));
  assert_memory_equal(changed->model->geom_aabb, large->geom_aabb, 36 * sizeof(double));
  assert_memory_equal(given->model->geom_rbound, radius, sizeof radius);
  assert_memory_equal(given->model->geom_aabb, large->geom_aabb, 36 * sizeof(double));
  sinew_model_free(given);
  sinew_model_free(changed);
  sinew_model_free(base);
  mj_deleteModel(small);
  mj_deleteModel(large);
}

// Several arrays at once: A and B of a step are those of MuJoCo's differences.
static void derivatives_are_those_of_the_copy(void **state) {
  (void)state;
  static const char *const names[] = {"body_mass",        "dof_damping",      "jnt_stiffness", "geom_friction",
                                      "actuator_gainprm", "actuator_biasprm", "site_pos",      "tendon_stiffness"};
  enum { N = sizeof names / sizeof *names };
  BodyPair b;
  SnOracle o;
  SinewField field;
  SinewArray arrays[N];
  double *value[N];
  int n = 0;
  open_pair(&b, 0);
  for (int f = 0; sinew_model_field(b.model, f, &field); ++f)
    for (int k = 0; k < N; ++k) {
      if (strcmp(field.name, names[k]) != 0) continue;
      value[n] = other_numbers(b.o.mj, b.model, &field);
      arrays[n] = (SinewArray){field.name, value[n], field.rows, field.cols};
      ++n;
    }
  assert_int_equal(n, N);
  SinewModel *changed = with(b.model, arrays, N);
  open_changed(&o, b.o.mj, b.model, changed, arrays, N, "arm");
  sn_oracle_randomize(&o, 1);
  const int nx = 2 * o.mj->nv + o.mj->na, nu = o.mj->nu, size = nx * (nx + nu);
  double *ours = calloc((size_t)size, sizeof *ours), *fine = calloc((size_t)size, sizeof *fine),
         *coarse = calloc((size_t)size, sizeof *coarse);
  SinewData *data = sinew_data_create(changed, &b.err);
  const SinewState at = {o.d->time, o.d->qpos, o.d->qvel, o.d->act, NULL};
  body_ok(&b, sinew_data_set_state(data, &at, &b.err));
  memcpy(sinew_data_array(data, "ctrl", NULL, NULL), o.d->ctrl, sizeof(double) * (size_t)nu);
  body_ok(&b, sinew_step_jacobian(data, ours, ours + nx * nx, NULL, NULL, &b.err));
  mjd_transitionFD(o.mj, o.d, 1e-6, 1, fine, fine + nx * nx, NULL, NULL);
  mjd_transitionFD(o.mj, o.d, 4e-6, 1, coarse, coarse + nx * nx, NULL, NULL);
  int compared = 0, skipped = 0;
  body_compare_columns("A", ours, fine, coarse, nx, nx, &compared, &skipped);
  body_compare_columns("B", ours + nx * nx, fine + nx * nx, coarse + nx * nx, nx, nu, &compared, &skipped);
  assert_true(compared > 2 * skipped);
  free(ours);
  free(fine);
  free(coarse);
  sinew_data_free(data);
  sn_oracle_free(&o);
  sinew_model_free(changed);
  for (int k = 0; k < N; ++k) free(value[k]);
  body_close(&b);
}

static void refused(const SinewModel *model, const SinewArray *arrays, int n, SinewStatus status, const char *part) {
  SinewError err;
  if (sinew_model_with_arrays(model, arrays, n, &err)) fail_msg("accepted: %s", part);
  if (err.status != status || !strstr(err.text, part))
    fail_msg("expected \"%s\" (%d), got %d: %s", part, status, err.status, err.text);
  assert_null(sinew_model_with_arrays(model, arrays, n, NULL));
}

// A mesh, a body with a diagonal inertia matrix, a tendon that pulls on it and one that wraps around a geom.
static SinewModel *read_scene(void) {
  SnError why = {0};
  SinewError err;
  mjModel *mj = sn_oracle_read_string(
      "<mujoco><asset><mesh name='m' vertex='0 0 0 1 0 0 0 1 0 0 0 1'/></asset><worldbody><geom name='g' type='mesh' "
      "mesh='m'/><geom name='ball' size='.1'/><site name='a'/><site name='s' pos='.5 0 0'/><body name='brick' pos='0 0 "
      "1'>"
      "<freejoint/><geom type='box' size='.1 .1 .1'/><site name='b'/></body></worldbody>"
      "<tendon><spatial name='line'><site site='a'/><site site='b'/></spatial><spatial name='round'><site site='a'/>"
      "<geom geom='ball' sidesite='s'/><site site='b'/></spatial></tendon></mujoco>",
      &why);
  if (!mj) fail_msg("%s", why.text);
  SinewModel *model = api_model_wrap(sn_import_mjmodel(mj, &why), &err);
  mj_deleteModel(mj);
  assert_non_null(model);
  return model;
}

static void what_may_not_change_is_refused(void **state) {
  (void)state;
  SinewModel *model = read_scene();
  double x[40] = {0};
#define REFUSED(status, part, ...)                                                                                    \
  refused(model, (const SinewArray[]){__VA_ARGS__}, sizeof((SinewArray[]){__VA_ARGS__}) / sizeof(SinewArray), status, \
          part)
#define ARRAY(name, rows, cols) {name, x, rows, cols}
  REFUSED(SINEW_ERR_NOT_FOUND, "no array 'mass'", ARRAY("mass", 2, 1));
  REFUSED(SINEW_ERR_NOT_FOUND, "no array '(null)'", ARRAY(NULL, 2, 1));
  REFUSED(SINEW_ERR_UNSUPPORTED, "array 'geom_type' cannot have other numbers: it says what there is",
          ARRAY("geom_type", 3, 1));
  REFUSED(SINEW_ERR_UNSUPPORTED, "array 'mesh_vert' cannot have other numbers: it is part of a mesh",
          ARRAY("mesh_vert", 4, 3));
  REFUSED(SINEW_ERR_UNSUPPORTED, "'body_subtreemass' cannot have other numbers: it follows",
          ARRAY("body_subtreemass", 2, 1));
  REFUSED(SINEW_ERR_ARGUMENT, "array 'body_mass' has the shape (1, 2); expected (2, 1)", ARRAY("body_mass", 1, 2));
  REFUSED(SINEW_ERR_ARGUMENT, "array 'body_mass' is given twice", ARRAY("body_mass", 2, 1), ARRAY("body_mass", 2, 1));
  REFUSED(SINEW_ERR_ARGUMENT, "array 'body_mass': value is NULL", {"body_mass", NULL, 2, 1});
  x[1] = -1;
  REFUSED(SINEW_ERR_ARGUMENT, "body_mass[1] is -1: must be at least 0", ARRAY("body_mass", 2, 1));
  x[1] = NAN;
  REFUSED(SINEW_ERR_ARGUMENT, "body_mass[1] is nan: must be finite", ARRAY("body_mass", 2, 1));
  x[1] = .5;
  REFUSED(SINEW_ERR_ARGUMENT, "geom_condim[1] is 0.5: must be a whole number", ARRAY("geom_condim", 3, 1));
  x[1] = 0;
  REFUSED(SINEW_ERR_ARGUMENT, "geom_condim[0] is 0", ARRAY("geom_condim", 3, 1));
  REFUSED(SINEW_ERR_ARGUMENT, "body_quat[0] is 0: must begin a unit quaternion", ARRAY("body_quat", 2, 4));
  REFUSED(SINEW_ERR_UNSUPPORTED, "geom_size[0] cannot have another number: geom 0 'g' has the size of its mesh",
          ARRAY("geom_size", 3, 3));
  x[3] = .1;
  REFUSED(SINEW_ERR_UNSUPPORTED, "body_ipos[3] cannot have another number: the inertia matrix of body 1 'brick'",
          ARRAY("body_ipos", 2, 3));
  x[0] = 1;
  REFUSED(SINEW_ERR_UNSUPPORTED, "tendon_armature[0] cannot have another number: the inertia matrix of body 1 'brick'",
          ARRAY("tendon_armature", 2, 1));
  x[0] = 0, x[1] = 1;
  REFUSED(SINEW_ERR_UNSUPPORTED, "tendon 1 'round' cannot have an armature: it wraps around a geom",
          ARRAY("tendon_armature", 2, 1));
  REFUSED(SINEW_ERR_UNSUPPORTED, "wrap_prm[3] cannot have another number: it is a geom's side site",
          ARRAY("wrap_prm", 5, 1));
#undef REFUSED
  refused(model, NULL, 1, SINEW_ERR_ARGUMENT, "arrays is NULL");
  refused(model, NULL, -1, SINEW_ERR_ARGUMENT, "n is -1");
  refused(NULL, NULL, 0, SINEW_ERR_ARGUMENT, "model is NULL");
  SinewError err;
  assert_null(sinew_model_with_constants(NULL, &err));
  assert_int_equal(err.status, SINEW_ERR_ARGUMENT);
  SinewModel *copy = with(model, NULL, 0);
  assert_same_image(copy->model, model->model, "scene", "no array");
  sinew_model_free(copy);
  sinew_model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_array_acts_as_in_mujoco),  cmocka_unit_test(constants_are_those_of_mj_setConst),
      cmocka_unit_test(constants_of_simple_bodies),     cmocka_unit_test(constants_of_myosuite),
      cmocka_unit_test(sizes_bring_their_bounds),       cmocka_unit_test(derivatives_are_those_of_the_copy),
      cmocka_unit_test(what_may_not_change_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
