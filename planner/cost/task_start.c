// Where a task starts: the model with its options, the initial state and the initial plan.
#include "physics/step/step.h"
#include "planner/cost/cost.h"
#include "planner/base/control_range.h"
#include "planner/base/random.h"

#include <stdlib.h>

// Numbers of a task, or NaN where it has none.
static void fill_contacts(sn_real *to, const double *from, int given, int n) {
  for (int k = 0; k < n; ++k) to[k] = k < given ? (sn_real)from[k] : (sn_real)NAN;
}

SnModel *sn_task_model(const SnTask *task, const SnModel *model, SnError *err) {
  const SnTaskOptions *o = &task->options;
  SnOption opt = model->opt;
  static const int integrators[] = {SN_INT_EULER, SN_INT_RK4, SN_INT_IMPLICIT, SN_INT_IMPLICITFAST,
                                    SN_INT_DISCRETE};  // SN_TASK_INTEGRATORS
  if (o->has_integrator) opt.integrator = integrators[o->integrator];
  if (o->has_timestep) opt.timestep = (sn_real)o->timestep;
  if (o->has_tolerance) opt.tolerance = (sn_real)o->tolerance;
  if (o->has_ls_tolerance) opt.ls_tolerance = (sn_real)o->ls_tolerance;
  if (o->has_ccd_tolerance) opt.ccd_tolerance = (sn_real)o->ccd_tolerance;
  if (o->has_impratio) opt.impratio = (sn_real)o->impratio;
  if (o->has_iterations) opt.iterations = o->iterations;
  if (o->has_ls_iterations) opt.ls_iterations = o->ls_iterations;
  if (o->has_ccd_iterations) opt.ccd_iterations = o->ccd_iterations;
  if (o->has_contact) opt.contact = o->contact;
  if (o->has_contact_width) opt.contact_width = (sn_real)o->contact_width;
  if (o->has_contact_stiffness) opt.contact_stiffness = (sn_real)o->contact_stiffness;
  if (o->has_contact_restitution) opt.contact_restitution = (sn_real)o->contact_restitution;
  sn_real solref[SN_NREF], solimp[SN_NIMP];
  fill_contacts(solref, o->solref, o->nsolref, SN_NREF);
  fill_contacts(solimp, o->solimp, o->nsolimp, SN_NIMP);
  return sn_model_with_options(model, &opt, solref, solimp, err);
}

// Uniform in (-1, 1), number k of a stream.
static sn_real spread(uint64_t seed, uint32_t stream, int k) {
  return 2 * sn_random_unit(sn_random(seed, 0, 0, (uint32_t)k, stream << 24).word[0]) - 1;
}

static bool scalar_joint(const SnModel *m, int j) {
  return m->jnt_type[j] == SN_JNT_HINGE || m->jnt_type[j] == SN_JNT_SLIDE;
}

// Changes joint j by +-width, inside its range.
static void perturb_joint(const SnModel *m, SnWorld *w, uint64_t seed, int j, double width) {
  if (!(width > 0) || !scalar_joint(m, j)) return;
  sn_real *q = w->qpos + m->jnt_qposadr[j];
  *q += (sn_real)width * spread(seed, SN_RANDOM_POSE, j);
  if (m->jnt_limited[j]) *q = sn_clip(*q, m->jnt_range[2 * j], m->jnt_range[2 * j + 1]);
}

static void perturb_pose(const SnTask *task, const SnModel *m, SnWorld *w, uint64_t seed) {
  if (seed == 0) return;
  for (int j = 0; j < m->njnt; ++j) {
    double width = task->perturb_joints;
    for (int k = 0; k < task->nperturb; ++k)
      if (strcmp(task->perturb[k].name, sn_model_name(m, SN_NAME_JNT, j)) == 0) width = task->perturb[k].value;
    perturb_joint(m, w, seed, j, width);
  }
}

// Index of a keyframe by name or, failing that, by number; -1: qpos0.
static int keyframe_index(const SnTask *task, const SnModel *m) {
  if (!task->keyframe) return -1;
  const int key = sn_model_find(m, SN_NAME_KEY, task->keyframe);
  if (key >= 0) return key;
  const int k = (int)strtol(task->keyframe, NULL, 10);
  return k >= 0 && k < m->nkey ? k : -1;
}

static void put(sn_real *to, const double *from, int n) {
  for (int i = 0; i < n; ++i) to[i] = (sn_real)from[i];
}

static void set_velocities(const SnTask *task, const SnModel *m, SnWorld *w) {
  for (int k = 0; k < task->nvelocity; ++k) {
    const int j = sn_model_find(m, SN_NAME_JNT, task->velocity[k].name);
    if (j >= 0) w->qvel[m->jnt_dofadr[j]] = (sn_real)task->velocity[k].value;
  }
}

// Puts the free bodies of the task where they start.
static void place_bodies(const SnTask *task, const SnModel *m, SnWorld *w, uint64_t seed) {
  for (int k = 0; k < task->nbody; ++k) {
    const SnBodyState *from = &task->body[k];
    const int body = sn_model_find(m, SN_NAME_BODY, from->name);
    if (body < 0) continue;
    const int j = m->body_jntadr[body];
    sn_real *q = w->qpos + m->jnt_qposadr[j], *v = w->qvel + m->jnt_dofadr[j];
    memset(v, 0, 6 * sizeof *v);
    if (from->nposition == 3) put(q, from->position, 3);
    if (from->norientation == 4) put(q + 3, from->orientation, 4);
    if (from->nvelocity == 3) put(v, from->velocity, 3);
    if (from->nangular == 3) put(v + 3, from->angular, 3);
    for (int i = 0; seed != 0 && i < 3; ++i)
      v[i] += (sn_real)task->perturb_bodies * spread(seed, SN_RANDOM_POSE, m->njnt + 3 * k + i);
  }
}

// Steps the body under the controls of a reset until it has settled.
static SnCode settle(const SnTask *task, const SnModel *m, SnWorld *w, SnLane *lane, const SnClock *clock, double until,
                     SnError *err) {
  const long steps = lround(task->settle / (double)m->opt.timestep);
  for (long k = 0; k < steps; ++k) {
    if (clock && until < (double)INFINITY && clock->now(clock->context) >= until)
      return sn_fail(err, SN_ERR_TIMEOUT, "task %s: the body has not settled in time", task->name);
    sn_step(m, w, lane);
    if (*w->warn & SN_WARN_BAD_STATE)
      return sn_fail(err, SN_ERR_STATE, "task %s: the body diverges after %g s of settling", task->name,
                     (double)k * (double)m->opt.timestep);
  }
  return SN_OK;
}

SnCode sn_task_reset(const SnTask *task, const SnModel *m, SnWorld *w, SnLane *lane, uint64_t seed,
                     const SnClock *clock, double until, SnError *err) {
  const int key = keyframe_index(task, m);
  if (key >= 0)
    sn_world_reset_key(m, w, key);
  else
    sn_world_reset(m, w);
  for (int k = 0; k < task->njoint; ++k) {
    const int j = sn_model_find(m, SN_NAME_JNT, task->joint[k].name);
    if (j >= 0) w->qpos[m->jnt_qposadr[j]] = (sn_real)task->joint[k].value;
  }
  perturb_pose(task, m, w, seed);
  for (int i = 0; i < m->nactuator; ++i)
    if (m->actuator_dyntype[i] == SN_DYN_MUSCLE && task->activation > 0)
      for (int k = 0; k < m->actuator_actnum[i]; ++k) w->act[m->actuator_actadr[i] + k] = (sn_real)task->activation;
  sn_ctrl_reset(m, w->ctrl);
  const SnCode code = settle(task, m, w, lane, clock, until, err);
  if (code != SN_OK) return code;
  set_velocities(task, m, w);
  place_bodies(task, m, w, seed);
  sn_past_shift(m, w->past, -w->time[0]);
  w->time[0] = 0;
  return SN_OK;
}

void sn_task_initial_plan(const SnTask *task, const SnModel *m, uint64_t seed, sn_real *ctrl) {
  const int key = task->plan_keyframe ? keyframe_index(task, m) : -1;
  sn_ctrl_reset(m, ctrl);  // by a quaternion of zeros a plan has no slope
  for (int i = 0; i < m->nu; ++i) {
    if (key >= 0) ctrl[i] = m->key_ctrl[key * m->nu + i];
    if (key < 0 && task->plan_initial != 0) ctrl[i] = (sn_real)task->plan_initial;
  }
  for (int k = 0; k < task->nplan; ++k) {
    const int i = sn_model_find(m, SN_NAME_ACTUATOR, task->plan[k].name);
    for (int j = 0; i >= 0 && j < m->actuator_ctrlnum[i]; ++j)
      ctrl[m->actuator_ctrladr[i] + j] = (sn_real)task->plan[k].value;
  }
  for (int i = 0; seed != 0 && i < m->nu; ++i)
    ctrl[i] += (sn_real)task->perturb_plan * sn_ctrl_half_range(m, i) * spread(seed, SN_RANDOM_PLAN, i);
  sn_ctrl_clamp(m, ctrl, 1);
}
