// The checker itself: it finds what differs, whatever it is and however little, and reports as documented.
#include <stdio.h>
#include <stdlib.h>

#include "clients/check/check_steps_private.h"
#include "clients/reference/compare.h"
#include "physics/step/step.h"
#include "tests/support/oracle.h"
#include "tests/support/small_models.h"

// Both engines after the stages of one step, somewhere along a fall.
static void prepare(SnOracle *o, int model) {
  sn_oracle_load_string(o, sn_small_model(model));
  sn_model_need_all(o->m);
  sn_world_init(o->m, &o->w, o->memory);
  for (int k = 0; k < 40; ++k) mj_step(o->mj, o->d);
  sn_oracle_copy_state(o);
  mj_forward(o->mj, o->d);
  sn_forward(o->m, &o->w, &o->lane);
}

static void compare_all(SnCompare *c, const SnOracle *o) {
  sn_compare_init(c);
  sn_compare_begin(c, o);
  for (int stage = SN_STAGE_KINEMATICS; stage <= SN_STAGE_SOLVER; ++stage) sn_compare_stage(c, o, (SnStage)stage, 0);
}

// Fails unless `field` is flagged.
static void assert_flagged(const SnOracle *o, SnCompared field) {
  SnCompare c;
  compare_all(&c, o);
  if (!c.field[field].differs)
    fail_msg("%s: a difference was not noticed (rel %g)", sn_compared_name(field), c.field[field].rel);
  assert_false(sn_compare_agrees(&c));
  sn_compare_free(&c);
}

// On every small model a number of ours that is off by 1e-5 of the field's scale is noticed, and one that is NaN.
static void small_differences_are_noticed(void **state) {
  (void)state;
  for (int model = 0; model < SN_SMALL_MODELS; ++model) {
    SnOracle o;
    prepare(&o, model);
    const struct {
      sn_real *x;
      int n;
      SnCompared field;
    } cases[] = {
        {o.w.xpos, 3 * o.m->nbody, SN_CMP_xpos},
        {o.w.xquat, 4 * o.m->nbody, SN_CMP_xquat},
        {o.w.site_xpos, 3 * o.m->nsite, SN_CMP_site_xpos},
        {o.w.M, o.m->nC, SN_CMP_M},
        {o.w.qLD, o.m->nC, SN_CMP_qLD},
        {o.w.ten_length, o.m->ntendon, SN_CMP_ten_length},
        {o.w.ten_J, o.m->nJten, SN_CMP_ten_J},
        {o.w.actuator_length, o.m->nout, SN_CMP_actuator_length},
        {o.w.qfrc_bias, o.m->nv, SN_CMP_qfrc_bias},
        {o.w.qfrc_passive, o.m->nv, SN_CMP_qfrc_passive},
        {o.w.act_dot, o.m->na, SN_CMP_act_dot},
        {o.w.actuator_force, o.m->nout, SN_CMP_actuator_force},
        {o.w.qfrc_actuator, o.m->nv, SN_CMP_qfrc_actuator},
        {o.w.qacc, o.m->nv, SN_CMP_qacc},
        {o.w.efc_force, o.w.nefc[0], SN_CMP_efc_force},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
      double scale = 1e-6;
      for (int k = 0; k < cases[i].n; ++k) scale = sn_larger(scale, fabs((double)cases[i].x[k]));
      for (int k = 0; k < cases[i].n; k += 1 + cases[i].n / 3) {
        const sn_real before = cases[i].x[k];
        // qacc and what follows from it may be off by 1e-4 where edges touch
        cases[i].x[k] =
            before +
            (sn_real)(scale * (cases[i].field == SN_CMP_qacc || cases[i].field == SN_CMP_efc_force ? 1e-3 : 1e-5));
        assert_flagged(&o, cases[i].field);
        cases[i].x[k] = (sn_real)NAN;
        assert_flagged(&o, cases[i].field);
        cases[i].x[k] = before;
      }
    }
    sn_oracle_free(&o);
  }
}

// Contacts of each class, a tendon that wraps, an active muscle, a joint beyond its limit.
static const char kEverything[] =
    "<mujoco><compiler autolimits='true'/><worldbody><geom type='plane' size='9 9 1'/>"
    "<body pos='0 0 .099'><freejoint/><geom size='.1'/></body>"
    "<body pos='1 0 .149'><freejoint/><geom type='ellipsoid' size='.1 .2 .15'/></body>"
    "<geom type='cylinder' size='.1 .1' pos='2 0 1'/>"
    "<body pos='2 0 1.149'><freejoint/><geom type='box' size='.06 .05 .05'/></body><site name='a' pos='3 -.3 1.3'/>"
    "<geom name='round' size='.05' pos='3 0 1.3' contype='0' conaffinity='0'/>"
    "<body pos='3 0 1.3'><joint name='j' axis='1 0 0' range='-30 30' damping='.1' springyield='.2'/>"
    "<geom type='capsule' size='.03' fromto='0 .1 0 0 .4 0'/><site name='b' pos='0 .3 .02'/></body></worldbody>"
    "<tendon><spatial name='t' springlength='.1' stiffness='10' damping='1'><site site='a'/><geom geom='round'/>"
    "<site site='b'/></spatial></tendon>"
    "<actuator><muscle tendon='t' lengthrange='.4 .8' force='20' nsample='2'/></actuator></mujoco>";

static void prepare_everything(SnOracle *o) {
  sn_oracle_load_string(o, kEverything);
  sn_model_need_all(o->m);
  sn_world_init(o->m, &o->w, o->memory);
  for (int i = 0; i < o->mj->nv; ++i) o->d->qvel[i] = 0.1 * sn_oracle_uniform(o);
  o->d->qpos[o->mj->nq - 1] = 0.6;
  o->d->act[0] = 0.5;
  o->d->ctrl[0] = 0.7;
  sn_oracle_copy_state(o);
  mj_forward(o->mj, o->d);
  sn_forward(o->m, &o->w, &o->lane);
}

typedef struct Probe {
  SnOracle *o;
  bool seen[SN_CMP_COUNT];
} Probe;

// A number of a field that is off by ten tolerances is noticed; of a solution by what steps with edges are allowed,
// too.
static void probe(Probe *p, SnCompared field, sn_real *x, double scale) {
  SnCompare c;
  sn_compare_init(&c);
  const double off = (sn_compared_stage(field) == SN_STAGE_SOLVER ? 1000 : 10) * c.field[field].tol;
  const sn_real before = *x;
  *x = before + (sn_real)(off * (scale + 1e-6));
  assert_flagged(p->o, field);
  *x = before;
  p->seen[field] = true;
}

// The last number of a field and its largest one.
static void probe_field(Probe *p, SnCompared field, sn_real *x, int n) {
  int most = 0;
  assert_true(n > 0);
  for (int i = 0; i < n; ++i)
    if (fabs((double)x[i]) > fabs((double)x[most])) most = i;
  const double scale = fabs((double)x[most]);
  probe(p, field, x + n - 1, scale);
  probe(p, field, x + most, scale);
}

static void probe_contacts(Probe *p) {
  static const SnCompared first[] = {SN_CMP_contact_dist_closed, SN_CMP_contact_dist_smooth, SN_CMP_contact_dist_edged};
  for (int i = 0; i < p->o->w.ncon[0]; ++i) {
    SnContact *con = p->o->w.contact + i;
    const int *type = p->o->m->geom_type;
    const SnCompared dist = first[sn_contact_class(type[con->geom[0]], type[con->geom[1]])];
    probe(p, dist, &con->dist, 0.01);
    probe(p, (SnCompared)(dist + 1), con->pos + 2, 3);
    probe(p, (SnCompared)(dist + 2), con->frame + 5, 1);
    probe(p, SN_CMP_contact_param, con->solimp + 4, 3);
  }
}

// Rows by class: the joint's limit, the first, is judged as narrowly as a formula.
static void probe_rows(Probe *p) {
  const SnWorld *w = &p->o->w;
  for (int r = 0; r < w->nefc[0]; ++r) {
    const bool contact = w->efc_type[r] >= SN_CNSTR_CONTACT_FRICTIONLESS;
    const int *g = w->contact[contact ? w->efc_id[r] : 0].geom, *type = p->o->m->geom_type;
    const bool edged = contact && sn_contact_class(type[g[0]], type[g[1]]) == SN_CONTACT_EDGED;
    const struct {
      SnCompared field, edged;
      sn_real *x;
      int n, at;
    } rows[] = {
        {SN_CMP_efc_J, SN_CMP_efc_J_edged, w->efc_J, w->efc_J_rowadr[0] + w->efc_J_rownnz[0], w->efc_J_rowadr[r]},
        {SN_CMP_efc_pos, SN_CMP_efc_pos_edged, w->efc_pos, w->nefc[0], r},
        {SN_CMP_efc_D, SN_CMP_efc_D_edged, w->efc_D, w->nefc[0], r},
        {SN_CMP_efc_aref, SN_CMP_efc_aref_edged, w->efc_aref, w->nefc[0], r}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
      double scale = i == 0;
      for (int k = 0; k < rows[i].n && i > 0; ++k) scale = sn_larger(scale, fabs((double)rows[i].x[k]));
      probe(p, edged ? rows[i].edged : rows[i].field, rows[i].x + rows[i].at, scale);
    }
  }
}

// The states after a step of each.
static void probe_next(Probe *p) {
  SnOracle *o = p->o;
  sn_integrate(o->m, &o->w, &o->lane);
  mj_step(o->mj, o->d);
  const struct {
    SnCompared field;
    sn_real *x;
  } next[] = {{SN_CMP_next_time, o->w.time},
              {SN_CMP_next_qpos, o->w.qpos + o->m->nq - 1},
              {SN_CMP_next_qvel, o->w.qvel + o->m->nv - 1},
              {SN_CMP_next_act, o->w.act},
              {SN_CMP_next_history, o->w.past + o->m->nhistory - 1},
              {SN_CMP_next_plastic, sn_plastic(o->m, o->w.past)}};
  for (int i = -1; i < (int)(sizeof next / sizeof *next); ++i) {
    SnCompare c;
    sn_compare_init(&c);
    sn_compare_begin(&c, o);
    const sn_real before = i < 0 ? 0 : *next[i].x;
    if (i >= 0) *next[i].x += SN_R(1e-3);
    sn_compare_next(&c, o, 0);
    for (int k = 0; k < SN_CMP_COUNT; ++k) assert_int_equal(c.field[k].differs, i >= 0 && k == (int)next[i].field);
    if (i >= 0) *next[i].x = before;
    if (i >= 0) p->seen[next[i].field] = true;
    sn_compare_free(&c);
  }
  p->seen[SN_CMP_next_tree_asleep] = true;  // the scene has no tree that sleeps: see sleepers_are_compared
}

// Who sleeps after a step.
static void sleepers_are_compared(void **state) {
  (void)state;
  SnOracle o;
  SnCompare c;
  sn_oracle_load_string(&o,
                        "<mujoco><option><flag sleep='enable'/></option><worldbody><geom type='plane' size='5 5 1'/>"
                        "<body pos='0 0 .1' sleep='init'><freejoint/><geom size='.1'/></body>"
                        "<body pos='1 0 .5'><freejoint/><geom size='.1'/></body></worldbody></mujoco>");
  sn_oracle_copy_state(&o);
  sn_forward(o.m, &o.w, &o.lane);
  sn_integrate(o.m, &o.w, &o.lane);
  mj_step(o.mj, o.d);
  for (int wrong = 0; wrong < 2; ++wrong) {
    if (wrong) o.w.tree_asleep[1] = 0;
    sn_compare_init(&c);
    sn_compare_begin(&c, &o);
    sn_compare_next(&c, &o, 0);
    assert_int_equal(c.field[SN_CMP_next_tree_asleep].differs, wrong);
    sn_compare_free(&c);
  }
  sn_oracle_free(&o);
}

// No field is left out, none is judged by the tolerance of another.
static void every_field_is_compared(void **state) {
  (void)state;
  SnOracle o;
  SnCompare c;
  prepare_everything(&o);
  const SnModel *m = o.m;
  Probe p = {.o = &o};
  compare_all(&c, &o);
  if (!sn_compare_agrees(&c)) fail_msg("the scene differs as it is: %s", c.note);
  sn_compare_free(&c);
#define FIELD(name, n) probe_field(&p, SN_CMP_##name, o.w.name, (n))
  FIELD(xpos, 3 * m->nbody);
  FIELD(xquat, 4 * m->nbody);
  FIELD(xipos, 3 * m->nbody);
  FIELD(xanchor, 3 * m->njnt);
  FIELD(xaxis, 3 * m->njnt);
  FIELD(geom_xpos, 3 * m->ngeom);
  FIELD(geom_xmat, 9 * m->ngeom);
  FIELD(site_xpos, 3 * m->nsite);
  FIELD(site_xmat, 9 * m->nsite);
  FIELD(subtree_com, 3 * m->nbody);
  FIELD(cdof, 6 * m->nv);
  FIELD(M, m->nC);
  FIELD(qLD, m->nC);
  FIELD(wrap_xpos, 3 * o.w.ten_wrapnum[0]);
  FIELD(ten_length, m->ntendon);
  FIELD(ten_J, m->nJten);
  FIELD(actuator_length, m->nout);
  FIELD(actuator_moment, m->mom_rownnz[0]);
  FIELD(ten_velocity, m->ntendon);
  FIELD(actuator_velocity, m->nout);
  FIELD(qfrc_bias, m->nv);
  FIELD(qfrc_passive, m->nv);
  FIELD(act_dot, m->na);
  FIELD(actuator_force, m->nout);
  FIELD(qfrc_actuator, m->nv);
  FIELD(qacc_smooth, m->nv);
  FIELD(qacc, m->nv);
  FIELD(efc_force, o.w.nefc[0]);
  FIELD(qfrc_constraint, m->nv);
#undef FIELD
  ++o.w.wrap_obj[0];
  assert_flagged(&o, SN_CMP_ten_path);
  --o.w.wrap_obj[0];
  p.seen[SN_CMP_ten_path] = true;
  probe_contacts(&p);
  probe_rows(&p);
  probe_next(&p);
  for (int i = 0; i < SN_CMP_COUNT; ++i)
    if (!p.seen[i] && i != SN_CMP_contact && i != SN_CMP_efc && i != SN_CMP_sensordata &&
        i != SN_CMP_sensordata_forces)  // the tests below
      fail_msg("%s: nothing was tried", sn_compared_name((SnCompared)i));
  sn_oracle_free(&o);
}

// Each number of a sensor is compared, in the field of what it depends on; what is not computed is listed instead.
static void sensors_are_compared(void **state) {
  (void)state;
  SnOracle o;
  SnCompare c;
  char left[100];
  sn_oracle_load_string(
      &o,
      "<mujoco><worldbody><camera name='c' mode='track' resolution='2 1'/><geom name='floor' type='plane' size='1 1 "
      "1'/>"
      "<body pos='0 0 .09'><freejoint/><geom name='ball' "
      "size='.1'/><site name='s'/></body></worldbody><sensor><framepos objtype='site' objname='s'/><accelerometer "
      "site='s'/><contact geom1='floor' data='found dist'/><rangefinder name='own' camera='c'/><distance geom1='floor' "
      "geom2='ball'/><insidesite objtype='geom' objname='ball' site='s' enclosed='true'/></sensor></mujoco>");
  sn_model_need_all(o.m);
  sn_world_init(o.m, &o.w, o.memory);
  mj_forward(o.mj, o.d);
  sn_oracle_copy_state(&o);
  sn_forward(o.m, &o.w, &o.lane);
  compare_all(&c, &o);
  if (!sn_compare_agrees(&c)) fail_msg("the scene differs as it is: %s", c.note);
  sn_compare_free(&c);
  for (int k = 0; k < o.m->nsensordata; ++k) {
    const double before = o.d->sensordata[k];
    o.d->sensordata[k] += 1;
    compare_all(&c, &o);
    assert_int_equal(c.field[SN_CMP_sensordata].differs, k < 3);
    assert_int_equal(c.field[SN_CMP_sensordata_forces].differs, k >= 3 && k < 8);
    sn_compare_free(&c);
    o.d->sensordata[k] = before;
  }
  assert_int_equal(sn_compare_sensors_left(o.m, left, sizeof left), 2);
  assert_string_equal(left, "3 'own', 5 ''");
  assert_int_equal(sn_compare_sensors_left(o.m, left, 3), 2);
  sn_oracle_free(&o);
}

static void other_contacts_and_rows_are_noticed(void **state) {
  (void)state;
  SnOracle o;
  prepare(&o, 1);
  SnWorld *w = &o.w;
  assert_true(w->ncon[0] > 2 && w->nefc[0] > 2);
  --w->ncon[0];
  assert_flagged(&o, SN_CMP_contact);
  ++w->ncon[0];
  const SnContact first = w->contact[0], second = w->contact[w->ncon[0] - 1];
  w->contact[0] = second;
  w->contact[w->ncon[0] - 1] = first;
  assert_flagged(&o, SN_CMP_contact);
  w->contact[0] = first;
  w->contact[w->ncon[0] - 1] = second;
  w->contact[0].friction[2] *= SN_R(1.001);
  assert_flagged(&o, SN_CMP_contact_param);
  w->contact[0] = first;
  --w->nefc[0];
  assert_flagged(&o, SN_CMP_efc);
  ++w->nefc[0];
  ++w->efc_id[1];
  assert_flagged(&o, SN_CMP_efc);
  sn_oracle_free(&o);
}

// What MuJoCo's own noise excuses: at most ten times that, of the same field, when it is known. Nothing else changes.
static void noise_excuses_ten_times_itself(void **state) {
  (void)state;
  static const struct {
    double rel, noise;
    bool differs, allowed;
  } cases[] = {
      {9.9e-8, 1e-8, true, true},
      {1.01e-7, 1e-8, true, false},
      {1e-3, 1e-8, true, false},
      {9.9e-1, 1e-1, true, true},
      {1, 0, true, false},
      {1, 1, true, true},  // a contact more, as in MuJoCo beside itself
      {1e-7, -1, true, false},
      {(double)NAN, 1e-8, true, false},
      {1e-7, (double)NAN, true, false},
      {1e-7, (double)INFINITY, true, false},
      {(double)INFINITY, 1, true, false},
      {1e-10, 1, false, false},
      {1e-10, (double)NAN, false, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    const SnCompared field = (SnCompared)(i % SN_CMP_COUNT);
    SnCompare step, noise;
    sn_compare_init(&step);
    sn_compare_init(&noise);
    const double tol = step.field[field].tol;
    step.field[field].rel = cases[i].rel;
    step.field[field].differs = cases[i].differs;
    noise.field[field].rel = cases[i].noise;
    noise.field[(field + 1) % SN_CMP_COUNT].rel = 1e9;  // excuses another field only
    const bool explained = cases[i].allowed || !cases[i].differs;
    assert_int_equal(sn_compare_explained(&step, &noise), explained);
    assert_int_equal(sn_compare_allow_noise(&step, &noise), cases[i].allowed);
    assert_int_equal(sn_compare_agrees(&step), explained);
    assert_true(step.field[field].tol == (cases[i].allowed ? 10 * cases[i].noise : tol));
    if (!cases[i].differs) assert_true(step.field[field].noise == -1);
    sn_compare_free(&step);
    sn_compare_free(&noise);
  }
}

// Of several fields that differ each is judged by its own noise.
static void noise_is_judged_field_by_field(void **state) {
  (void)state;
  SnCompare step, noise;
  sn_compare_init(&step);
  sn_compare_init(&noise);
  for (int i = 0; i < SN_CMP_COUNT; ++i) {
    step.field[i].rel = 1;
    step.field[i].differs = true;
    noise.field[i].rel = i % 3 ? 0.2 : 0.05;
  }
  assert_false(sn_compare_explained(&step, &noise));
  assert_int_equal(sn_compare_allow_noise(&step, &noise), SN_CMP_COUNT - (SN_CMP_COUNT + 2) / 3);
  for (int i = 0; i < SN_CMP_COUNT; ++i) assert_int_equal(step.field[i].differs, i % 3 == 0);
  assert_false(sn_compare_agrees(&step));
  for (int i = 0; i < SN_CMP_COUNT; ++i) noise.field[i].rel = 0.2;
  assert_true(sn_compare_explained(&step, &noise));
  sn_compare_free(&step);
  sn_compare_free(&noise);
}

static void contacts_have_their_class(void **state) {
  (void)state;
  assert_int_equal(sn_contact_class(SN_GEOM_PLANE, SN_GEOM_MESH), SN_CONTACT_CLOSED);
  assert_int_equal(sn_contact_class(SN_GEOM_CAPSULE, SN_GEOM_SPHERE), SN_CONTACT_CLOSED);
  assert_int_equal(sn_contact_class(SN_GEOM_BOX, SN_GEOM_BOX), SN_CONTACT_CLOSED);
  assert_int_equal(sn_contact_class(SN_GEOM_CYLINDER, SN_GEOM_SPHERE), SN_CONTACT_CLOSED);
  assert_int_equal(sn_contact_class(SN_GEOM_PLANE, SN_GEOM_ELLIPSOID), SN_CONTACT_SMOOTH);
  assert_int_equal(sn_contact_class(SN_GEOM_ELLIPSOID, SN_GEOM_CAPSULE), SN_CONTACT_SMOOTH);
  assert_int_equal(sn_contact_class(SN_GEOM_ELLIPSOID, SN_GEOM_ELLIPSOID), SN_CONTACT_SMOOTH);
  assert_int_equal(sn_contact_class(SN_GEOM_ELLIPSOID, SN_GEOM_BOX), SN_CONTACT_EDGED);
  assert_int_equal(sn_contact_class(SN_GEOM_CYLINDER, SN_GEOM_CAPSULE), SN_CONTACT_EDGED);
  assert_int_equal(sn_contact_class(SN_GEOM_MESH, SN_GEOM_SPHERE), SN_CONTACT_EDGED);
}

// Too many ties, or one field that differs beside them.
static void ties_have_limits(void **state) {
  (void)state;
  CheckStepsReport r = {.ties = 16};
  sn_compare_init(&r.compare);
  r.compare.steps = 64;
  assert_true(check_steps_agree(&r) && !check_steps_undecided(&r));
  r.ties = 17;
  assert_true(!check_steps_agree(&r) && check_steps_undecided(&r));
  r.servo_ties = 1;
  assert_true(check_steps_agree(&r) && !check_steps_undecided(&r));
  r.restarts = 2;  // 16 and 2 of 66
  assert_true(!check_steps_agree(&r) && check_steps_undecided(&r) && !check_steps_left_out(&r));
  r.restarts = 22;
  assert_true(check_steps_undecided(&r) && check_steps_left_out(&r));
  r.restarts = 0;
  r.compare.field[SN_CMP_qacc].differs = true;
  assert_true(!check_steps_agree(&r) && !check_steps_undecided(&r));
  sn_compare_free(&r.compare);
}

static void elements_have_names(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, sn_small_model(0));
  static const struct {
    SnCompared field;
    int element;
    const char *name;
  } cases[] = {{SN_CMP_xpos, 5, "body 'upper'"},       {SN_CMP_geom_xmat, 10, "geom 'humerus'"},
               {SN_CMP_qacc, 4, "joint 'wrist'"},      {SN_CMP_next_qpos, 6, "joint 'slider'"},
               {SN_CMP_ten_length, 2, "tendon 'sum'"}, {SN_CMP_actuator_force, 2, "actuator 'servo'"},
               {SN_CMP_next_act, 1, "actuator 'lag'"}, {SN_CMP_efc_force, 3, "row 3"},
               {SN_CMP_M, 0, "joint 'shoulder'"},      {SN_CMP_contact, 0, ""},
               {SN_CMP_site_xpos, 0, "site 'a0'"},     {SN_CMP_qacc, -1, ""}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char name[CHECK_NAME];
    check_element_name(o.m, cases[i].field, cases[i].element, name);
    assert_string_equal(name, cases[i].name);
  }
  sn_oracle_free(&o);
}

// The limits of a verdict on derivatives, one at a time; NaN is beyond every limit.
static void gradients_have_limits(void **state) {
  (void)state;
  const CheckGradientReport good = {.A = {1e-5, 1e-4, 0, 0, 0},
                                    .B = {1e-5, 1e-4, 0, 0, 0},
                                    .steps_compared = 48,
                                    .steps_skipped = 16,
                                    .rollout_max = 1e-4,
                                    .rollout_compared = 6,
                                    .rollout_skipped = 2};
  assert_true(check_gradient_agrees(&good));
  CheckGradientReport bad[9];
  for (int i = 0; i < 9; ++i) bad[i] = good;
  bad[0].A.median = 1.1e-5;
  bad[1].A.max = 1.1e-4;
  bad[2].B.median = (double)NAN;
  bad[3].B.max = 1.1e-4;
  bad[4].rollout_max = 1.1e-4;
  bad[5].rollout_max = (double)NAN;
  bad[6].steps_compared = 47;
  bad[7].rollout_skipped = 3;
  bad[8].A.max = (double)NAN;
  for (int i = 0; i < 9; ++i) assert_false(check_gradient_agrees(&bad[i]));
}

// The limits of a verdict on motions likewise.
static void motions_have_limits(void **state) {
  (void)state;
  const CheckIntegrationReport good = {
      .uncertainty = 1e-6, .row[2].error = 4.9e-6, .slope_error = 1e-3, .slopes_compared = 2, .slopes_skipped = 2};
  assert_true(check_integration_agrees(&good));
  CheckIntegrationReport bad[7];
  for (int i = 0; i < 7; ++i) bad[i] = good;
  bad[0].row[2].error = 5.1e-6;
  bad[1].row[2].error = (double)NAN;
  bad[2].slope_error = 1.1e-3;
  bad[3].slope_error = (double)NAN;
  bad[4].slopes_skipped = 3;
  bad[5].uncertainty = 1.1e-3;
  bad[6].uncertainty = (double)NAN;
  for (int i = 0; i < 7; ++i) assert_false(check_integration_agrees(&bad[i]));
}

// What rounding alone makes is no difference: the force of a row that nothing softens. With a D that means something it
// is one.
static void forces_of_stiff_rows_are_left_out(void **state) {
  (void)state;
  SnOracle o;
  SnCompare c;
  prepare_everything(&o);
  assert_true(o.w.nefc[0] > 1);
  o.w.efc_force[0] *= 2;
  assert_flagged(&o, SN_CMP_efc_force);
  o.d->efc_D[0] = 1e15;
  compare_all(&c, &o);
  assert_false(c.field[SN_CMP_efc_force].differs);
  assert_int_equal(c.stiff_rows, 1);
  sn_compare_free(&c);
  sn_oracle_free(&o);
}

// Buffers of sensors that are not compared are not either; others are.
static void buffers_of_sensors_are_compared_as_the_sensors_are(void **state) {
  (void)state;
  SnOracle o;
  SnCompare c;
  sn_oracle_load_string(&o,
                        "<mujoco><worldbody><geom name='a' size='.1'/><body pos='0 0 1'><freejoint/>"
                        "<geom name='b' size='.1'/><site name='s'/></body></worldbody><sensor>"
                        "<distance geom1='a' geom2='b' cutoff='9' nsample='2' delay='.004'/>"
                        "<framepos objtype='site' objname='s' nsample='2' delay='.004'/></sensor></mujoco>");
  for (int sensor = 0; sensor < 2; ++sensor) {
    sn_world_init(o.m, &o.w, o.memory);
    sn_oracle_copy_state(&o);
    o.w.past[o.m->sensor_historyadr[sensor] + 5] += (sn_real)0.1;
    sn_compare_init(&c);
    sn_compare_begin(&c, &o);
    sn_compare_next(&c, &o, 0);
    assert_int_equal(c.field[SN_CMP_next_history].differs, sensor == 1);
    sn_compare_free(&c);
  }
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(forces_of_stiff_rows_are_left_out),
      cmocka_unit_test(buffers_of_sensors_are_compared_as_the_sensors_are),
      cmocka_unit_test(gradients_have_limits),
      cmocka_unit_test(small_differences_are_noticed),
      cmocka_unit_test(sleepers_are_compared),
      cmocka_unit_test(every_field_is_compared),
      cmocka_unit_test(other_contacts_and_rows_are_noticed),
      cmocka_unit_test(sensors_are_compared),
      cmocka_unit_test(noise_excuses_ten_times_itself),
      cmocka_unit_test(noise_is_judged_field_by_field),
      cmocka_unit_test(contacts_have_their_class),
      cmocka_unit_test(motions_have_limits),
      cmocka_unit_test(ties_have_limits),
      cmocka_unit_test(elements_have_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
