#include "clients/check/check_steps_private.h"

#include <stdio.h>
#include <stdlib.h>

#include "clients/base/progress.h"
#include "clients/reference/mirror.h"
#include "physics/actuator/actuator.h"
#include "physics/collision/collision.h"
#include "physics/constraint/constraint.h"
#include "physics/dynamics/dynamics.h"
#include "physics/step/step.h"

// Runs all of our stages and compares what each wrote.
static void check_chained(SnCompare *c, SnOracle *o, int step) {
  sn_forward(o->m, &o->w, &o->lane);
  for (int stage = SN_STAGE_KINEMATICS; stage <= SN_STAGE_SOLVER; ++stage) sn_compare_stage(c, o, (SnStage)stage, step);
}

typedef void Stage(const SnModel *m, SnWorld *w, SnLane *lane);

// Whether a tie reaches a stage: it works on contacts.
static bool is_behind_contacts(SnStage stage) {
  return stage == SN_STAGE_COLLISION || stage == SN_STAGE_CONSTRAINT || stage == SN_STAGE_SOLVER;
}

// What actuators make of the rows, under the integrator discrete.
static void weigh_rows(const SnModel *m, SnWorld *w, SnLane *lane) {
  if (sn_has_metric(m)) sn_metric_rows(m, w, lane);
}

// Runs single stages, or those on contacts alone, each on MuJoCo's values of all others, and compares what they wrote.
static void check_isolated(SnCompare *c, SnOracle *o, bool contacts_alone, int step) {
  static const struct {
    SnStage stage;
    Stage *run[3];
  } list[] = {
      {SN_STAGE_KINEMATICS, {sn_kinematics}},
      {SN_STAGE_INERTIA, {sn_com_pos, sn_make_M, sn_factor_M}},
      {SN_STAGE_TENDON, {sn_tendon}},
      {SN_STAGE_TRANSMISSION, {sn_transmission}},
      {SN_STAGE_COLLISION, {sn_collision}},
      {SN_STAGE_VELOCITY, {sn_velocity, sn_bias}},
      {SN_STAGE_PASSIVE, {sn_passive}},
      {SN_STAGE_ACTUATION, {sn_actuation}},
      {SN_STAGE_CONSTRAINT, {sn_make_constraint, sn_reference_constraint, weigh_rows}},
      {SN_STAGE_SOLVER, {sn_solve}},
  };
  sn_forward(o->m, &o->w, &o->lane);  // fills the scratch that MuJoCo has no counterpart of
  for (size_t i = 0; i < sizeof list / sizeof *list; ++i) {
    if (contacts_alone && !is_behind_contacts(list[i].stage)) continue;
    sn_oracle_fill(o);
    for (int k = 0; k < 3 && list[i].run[k]; ++k) list[i].run[k](o->m, &o->w, &o->lane);
    sn_compare_stage(c, o, list[i].stage, step);
  }
}

// Whether number i of (qpos, qvel) belongs to a tree that sleeps, which a change would wake.
static bool is_asleep(const CheckRun *k, int i) {
  const SnModel *m = k->o.m;
  if (!sn_has_sleep(m)) return false;
  int j = m->njnt - 1;
  while (i < m->nq && m->jnt_qposadr[j] > i) --j;
  const int tree = i < m->nq ? m->body_treeid[m->jnt_bodyid[j]] : m->dof_treeid[i - m->nq];
  return k->o.d->tree_asleep[tree] >= 0;
}

// Puts k->shaken at the start of the step.
static void put_at_start(CheckRun *k) {
  if (sn_has_sleep(k->o.m)) mj_copyData(k->shaken, k->o.mj, k->o.d);  // sleepers have more than a state
  mj_setState(k->o.mj, k->shaken, k->state, mjSTATE_INTEGRATION);
}

// A state next to the present one: one number in four of positions and velocities off by up to 1e-14 of its size, at
// least of 1, which is what two correct orders of additions differ by. (Not all: a joint that rests exactly on its
// limit would gain or lose its row every time.)
static void shake(CheckRun *k) {
  mjData *d = k->shaken;
  put_at_start(k);
  for (int i = 0; i < k->o.m->nq + k->o.m->nv; ++i) {
    mjtNum *x = i < k->o.m->nq ? d->qpos + i : d->qvel + (i - k->o.m->nq);
    const double amount = sn_oracle_uniform(&k->o);
    if (sn_oracle_uniform(&k->o) > 0.5 && !is_asleep(k, i)) *x += 1e-14 * fmax(1, fabs(*x)) * amount;
  }
}

// MuJoCo against itself: its shaken values in the place of ours. Where MuJoCo's algorithm amplifies rounding, as its
// search for the deepest point of two smooth shapes does, or picks one of several equal points, nobody can agree with
// it better than it does itself. Samples until all that differs is explained, or for long enough to say that it is not.
static void measure_noise(CheckRun *k, bool next, int step) {
  enum { SAMPLES = 64 };
  SnOracle shaken = k->o;
  shaken.d = k->shaken;
  for (int i = 0; i < SAMPLES && !sn_compare_explained(&k->step, &k->noise); ++i) {
    shake(k);
    if (next) {
      mj_step(k->o.mj, k->shaken);
      sn_oracle_copy_state(&shaken);
      sn_compare_next(&k->noise, &k->o, step);
      continue;
    }
    mj_forward(k->o.mj, k->shaken);
    sn_oracle_fill(&shaken);
    for (int stage = SN_STAGE_KINEMATICS; stage <= SN_STAGE_SOLVER; ++stage)
      sn_compare_stage(&k->noise, &k->o, (SnStage)stage, step);
  }
}

// Our step from MuJoCo's state, as a user makes it, into the oracle's world; NaN where it diverges.
static void step_ours(CheckRun *k) {
  SnOracle *o = &k->o;
  const SnModel *m = o->m;
  sn_mirror_state(k->data, o->mj, o->d);
  const bool good = sinew_step(k->data, 1, NULL) == SINEW_OK;
  const SinewState s = sinew_data_state(k->data);
  o->w.time[0] = s.time;
  memcpy(o->w.qpos, s.qpos, sizeof *o->w.qpos * (size_t)m->nq);
  memcpy(o->w.qvel, s.qvel, sizeof *o->w.qvel * (size_t)m->nv);
  memcpy(o->w.act, s.act, sizeof *o->w.act * (size_t)m->na);
  memcpy(o->w.past, sinew_data_array(k->data, "history", NULL, NULL), sizeof *o->w.past * (size_t)sn_past_size(m));
  if (sn_has_sleep(m))
    memcpy(o->w.tree_asleep, sinew_data_int_array(k->data, "tree_asleep", NULL, NULL), sizeof(int) * (size_t)m->ntree);
  if (!good) o->w.time[0] = NAN;
}

// Integrates what MuJoCo has computed for the start of a step.
static void integrate_theirs(SnOracle *o) {
  sn_oracle_fill(o);
  memcpy(o->w.qacc_warmstart, o->w.qacc, sizeof(sn_real) * (size_t)o->m->nv);
  sn_integrate(o->m, &o->w, &o->lane);
}

// Whether MuJoCo has stepped to a state that it gives up as it begins the next step, and the engine as it ends this
// one.
static bool has_left(const mjModel *m, const mjData *d) {
  for (int i = 0; i < m->nq; ++i)
    if (!(fabs(d->qpos[i]) <= mjMAXVAL)) return true;
  for (int i = 0; i < m->nv; ++i)
    if (!(fabs(d->qvel[i]) <= mjMAXVAL)) return true;
  return false;
}

// Both engines step from k->state; in isolation ours only integrates what MuJoCo computed. False when MuJoCo diverged.
static bool step_both(CheckRun *k, bool isolate) {
  SnOracle *o = &k->o;
  if (isolate) integrate_theirs(o);
  mj_setState(o->mj, o->d, k->state, mjSTATE_INTEGRATION);
  if (!isolate) step_ours(k);
  mj_step(o->mj, o->d);
  const mjWarningStat *warn = o->d->warning;
  return !warn[mjWARN_BADQPOS].number && !warn[mjWARN_BADQVEL].number && !warn[mjWARN_BADQACC].number &&
         !has_left(o->mj, o->d);
}

// ---- ties ----

// The first contact that differs: its place in the lists, or -1.
static int first_difference(const SnOracle *o) {
  const int n = o->d->ncon, k = o->w.ncon[0];
  for (int i = 0; i < sn_mini(n, k); ++i) {
    const mjContact *a = o->d->contact + i;
    const SnContact *b = o->w.contact + i;
    bool same = a->geom[0] == b->geom[0] && a->geom[1] == b->geom[1] && fabs(a->dist - (double)b->dist) < 1e-9;
    for (int e = 0; same && e < 3; ++e) same = fabs(a->pos[e] - (double)b->pos[e]) < 1e-9;
    for (int e = 0; same && e < 9; ++e) same = fabs(a->frame[e] - (double)b->frame[e]) < 1e-9;
    if (!same) return i;
  }
  return n == k ? -1 : sn_mini(n, k);
}

static void name_geom(const SnModel *m, int geom, char *name) {
  const char *given = sn_model_name(m, SN_NAME_GEOM, geom);
  if (given[0])
    snprintf(name, CHECK_NAME, "'%.100s'", given);
  else
    snprintf(name, CHECK_NAME, "%d", geom);
}

// Turns a step whose contacts differ into a tie, if it is one: then it has the errors of the stages on contacts given
// MuJoCo's values. Writes its text.
static bool find_tie(CheckRun *k, int step, char *text, size_t size) {
  SnOracle *o = &k->o;
  double frames = 0;
  for (int i = 0; i < SN_CMP_COUNT; ++i) {
    const SnStage stage = sn_compared_stage((SnCompared)i);
    if (k->step.field[i].differs && !is_behind_contacts(stage)) return false;
    if (stage == SN_STAGE_KINEMATICS) frames = fmax(frames, k->step.field[i].rel);
  }
  sn_oracle_copy_state(o);  // samples of the noise have had the world
  sn_forward(o->m, &o->w, &o->lane);
  const int first = first_difference(o);
  if (first < 0 || !(frames <= CHECK_ROUNDING)) return false;
  const int n = o->d->ncon, ours = o->w.ncon[0];
  const int *geom = first < n ? o->d->contact[first].geom : o->w.contact[first].geom;
  char a[CHECK_NAME], b[CHECK_NAME], what[100] = "another of several equal choices";
  name_geom(o->m, geom[0], a);
  name_geom(o->m, geom[1], b);
  if (n != ours) snprintf(what, sizeof what, "%d contacts in MuJoCo, %d in ours", n, ours);
  SnCompare alone;
  sn_compare_init(&alone);
  alone.loose = k->step.loose;
  check_isolated(&alone, o, true, step);
  const bool tie = sn_compare_agrees(&alone);
  for (int i = 0; tie && i < SN_CMP_COUNT; ++i)
    if (is_behind_contacts(sn_compared_stage((SnCompared)i))) k->step.field[i] = alone.field[i];
  sn_compare_free(&alone);
  if (!tie) return false;
  k->step.note[0] = 0;
  snprintf(text, size, "step %d: geoms %s and %s: %s; frames differ by %.1e, and given the same ones nothing does",
           step, a, b, what, frames);
  return true;
}

// Finds a pair of geoms at the very distance at which it begins to touch, at the start of the step; writes the text of
// the tie.
static bool find_touch(CheckRun *k, int step, char *text, size_t size) {
  const SnModel *m = k->o.m;
  mj_setState(k->o.mj, k->shaken, k->state, mjSTATE_INTEGRATION);
  mj_kinematics(k->o.mj, k->shaken);
  for (int i = 0; i < m->ncpair; ++i) {
    SnPlacedGeom g[2];
    SnDistance found;
    SnError err;
    for (int side = 0; side < 2; ++side) {
      g[side].geom = m->cpair_geom[2 * i + side];
      for (int e = 0; e < 3; ++e) g[side].pos[e] = (sn_real)k->shaken->geom_xpos[3 * g[side].geom + e];
      for (int e = 0; e < 9; ++e) g[side].mat[e] = (sn_real)k->shaken->geom_xmat[9 * g[side].geom + e];
    }
    if (sn_geom_distance(m, &g[0], &g[1], m->cpair_reach[i] + 1, &found, &err) != SN_OK) continue;
    const double gap = fabs((double)(found.dist - m->cpair_reach[i]));
    if (!(gap <= CHECK_ROUNDING)) continue;
    char a[CHECK_NAME], b[CHECK_NAME];
    name_geom(m, g[0].geom, a);
    name_geom(m, g[1].geom, b);
    snprintf(text, size, "step %d: geoms %s and %s are %.1e m from where they touch, in a step of several stages", step,
             a, b, gap);
    return true;
  }
  return false;
}

// The first servo whose force is at the limit of its norm, where an implicit step leaves out its slope, or -1; off: how
// much of the limit its norm is off.
static int servo_at_limit(const CheckRun *k, double *off) {
  const SnModel *m = k->o.m;
  if (m->opt.integrator != SN_INT_IMPLICIT && m->opt.integrator != SN_INT_IMPLICITFAST && !sn_has_metric(m)) return -1;
  for (int i = 0; i < m->nactuator; ++i) {
    const double most = (double)m->actuator_forcerange[2 * i + 1];
    if (m->actuator_gaintype[i] != SN_GAIN_SO3 || !m->actuator_forcelimited[i] || !(most > 0)) continue;
    *off = fabs(mju_norm3(k->o.d->actuator_force + m->actuator_outadr[i]) / most - 1);
    if (*off <= CHECK_ROUNDING) return i;
  }
  return -1;
}

// Turns a step whose next state alone differs into a tie, if MuJoCo's own forces leave no difference and one is at its
// limit. Writes its text.
static bool find_servo(CheckRun *k, int step, char *text, size_t size) {
  double off = 0;
  const int i = servo_at_limit(k, &off);
  if (i < 0) return false;
  SnOracle start = k->o;
  start.d = k->shaken;
  put_at_start(k);
  mj_forward(k->o.mj, k->shaken);
  integrate_theirs(&start);
  SnCompare alone;
  sn_compare_init(&alone);
  alone.loose = k->step.loose;
  sn_compare_next(&alone, &k->o, step);
  const bool tie = sn_compare_agrees(&alone);
  for (int f = 0; tie && f < SN_CMP_COUNT; ++f)
    if (sn_compared_stage((SnCompared)f) == SN_STAGE_INTEGRATE) k->step.field[f] = alone.field[f];
  sn_compare_free(&alone);
  char name[CHECK_NAME];
  check_element_name(k->o.m, SN_CMP_actuator_force, k->o.m->actuator_outadr[i], name);
  if (tie)
    snprintf(text, size,
             "step %d: the force of %s is at its limit to %.1e, so that rounding says whether an implicit step has its "
             "slope; given the same one nothing differs",
             step, name, off);
  return tie;
}

// True where nothing but the next state differs.
static bool is_next_alone(const SnCompare *c) {
  for (int i = 0; i < SN_CMP_COUNT; ++i)
    if (c->field[i].differs && sn_compared_stage((SnCompared)i) != SN_STAGE_INTEGRATE) return false;
  return true;
}

// Compares the next states where a tie leaves something to compare.
static void check_next(CheckRun *k, const CheckStepsSettings *s, int step, char *text, size_t size) {
  const bool stages = k->o.m->opt.integrator == SN_INT_RK4;
  if (k->tie && stages) return;  // its later stages are ours
  sn_compare_next(&k->step, &k->o, step);
  if (s->strict || sn_compare_agrees(&k->step)) return;
  if (!k->tie && is_next_alone(&k->step)) k->tie = k->servo = find_servo(k, step, text, size);
  if (k->servo) return;
  measure_noise(k, true, step);
  k->allowed += sn_compare_allow_noise(&k->step, &k->noise);
  if (sn_compare_agrees(&k->step) || k->tie || !stages || !is_next_alone(&k->step)) return;
  k->tie = find_touch(k, step, text, size);
  for (int i = 0; k->tie && i < SN_CMP_COUNT; ++i)
    if (sn_compared_stage((SnCompared)i) == SN_STAGE_INTEGRATE)
      k->step.field[i].rel = -1, k->step.field[i].differs = false;
}

// One step of each engine from the state that MuJoCo is in, MuJoCo's last. False when MuJoCo diverged. text: of a tie.
static bool check_step(CheckRun *k, const CheckStepsSettings *s, int step, char *text, size_t size) {
  SnOracle *o = &k->o;
  mj_getState(o->mj, o->d, k->state, mjSTATE_INTEGRATION);
  sn_oracle_copy_state(o);  // before MuJoCo's forward, which replaces the warm start
  mj_forward(o->mj, o->d);
  sn_compare_begin(&k->step, o);
  k->noise.loose = k->step.loose;
  if (s->isolate)
    check_isolated(&k->step, o, false, step);
  else
    check_chained(&k->step, o, step);
  if (!s->strict && !sn_compare_agrees(&k->step)) {
    measure_noise(k, false, step);
    k->allowed += sn_compare_allow_noise(&k->step, &k->noise);
  }
  if (!s->strict && !s->isolate && !sn_compare_agrees(&k->step)) k->tie = find_tie(k, step, text, size);
  if (!step_both(k, s->isolate || k->tie)) return false;
  check_next(k, s, step, text, size);
  return true;
}

void check_steps(CheckRun *k, const CheckStepsSettings *s, CheckStepsReport *r) {
  sn_drive_start(&k->o);
  for (int step = 0; step < s->steps; ++step) {
    sn_progress_terminal("step %d of %d", step + 1, s->steps);
    char text[sizeof r->tie] = "";
    sn_compare_init(&k->step);
    sn_compare_init(&k->noise);
    k->allowed = 0;
    k->tie = k->servo = false;
    sn_drive_controls(&k->o, s->seed, step * k->o.mj->opt.timestep);
    if (!check_step(k, s, step, text, sizeof text)) {
      ++r->restarts;
      sn_drive_start(&k->o);
      sn_compare_free(&k->step);  // what MuJoCo itself gives up is no reference
      sn_compare_init(&k->step);
      k->allowed = 0;
      k->tie = k->servo = false;
    }
    r->noisy_steps += k->allowed > 0;
    r->servo_ties += k->servo;
    if (k->tie && r->ties++ == 0) memcpy(r->tie, text, sizeof text);
    sn_compare_add(&r->compare, &k->step);
    sn_compare_free(&k->step);
    sn_compare_free(&k->noise);
  }
  for (int i = 0; i < SN_CMP_COUNT; ++i)
    check_element_name(k->o.m, (SnCompared)i, r->compare.field[i].element, r->element[i]);
}

// More than a quarter of all steps, or all of them.
static bool is_too_many(int steps, const CheckStepsReport *r) {
  return r->compare.steps == 0 || 4 * steps > r->compare.steps + r->restarts;
}

bool check_steps_left_out(const CheckStepsReport *r) { return is_too_many(r->restarts, r); }

bool check_steps_undecided(const CheckStepsReport *r) {
  return sn_compare_agrees(&r->compare) && is_too_many(r->ties - r->servo_ties + r->restarts, r);
}

bool check_steps_agree(const CheckStepsReport *r) {
  return sn_compare_agrees(&r->compare) && !check_steps_undecided(r);
}

SnCode check_open(CheckRun *k, mjModel *mj, SnError *err) {
  const SnCode code = sn_oracle_open(&k->o, mj, err);
  if (code != SN_OK) return code;
  SinewError why;
  if (!(k->model = sn_mirror_model(k->o.mj, &why)) || !(k->data = sinew_data_create(k->model, &why)))
    return sn_fail(err, SN_ERR_STATE, "%s", why.text);
  sn_model_need_all(k->o.m);
  sn_world_init(k->o.m, &k->o.w, k->o.memory);
  k->state = malloc(sizeof(mjtNum) * (size_t)mj_stateSize(mj, mjSTATE_INTEGRATION));
  k->shaken = mj_makeData(mj);
  if (!k->state || !k->shaken) return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  return SN_OK;
}

void check_close(CheckRun *k) {
  sinew_data_free(k->data);
  sinew_model_free(k->model);
  free(k->state);
  if (k->shaken) mj_deleteData(k->shaken);
  sn_oracle_free(&k->o);
}
