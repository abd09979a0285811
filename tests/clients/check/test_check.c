// The checker itself: it finds what differs, whatever it is and however little, and reports as documented.
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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

// Runs a command, keeps its standard output, returns its exit status.
static int run(const char *command, char *out, size_t size) {
  FILE *f = popen(command, "r");
  assert_non_null(f);
  const size_t n = fread(out, 1, size - 1, f);
  out[n] = 0;
  return WEXITSTATUS(pclose(f));
}

static void write_file(const char *path, const char *text) {
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
}

// Into a new folder, for files and for MUJOCO_LOG.TXT, which must not appear.
static void enter_folder(char *folder) {
  assert_non_null(mkdtemp(folder));
  assert_int_equal(chdir(folder), 0);
}

static void leave_folder(const char *folder) {
  assert_int_equal(chdir("/"), 0);
  assert_int_equal(rmdir(folder), 0);
}

static int count_of(const char *text, const char *word) {
  int n = 0;
  for (const char *p = text; (p = strstr(p, word)); ++p) ++n;
  return n;
}

// A body that flies apart within a few steps, again and again, in a model that asks for another solver than Newton:
// nothing but the report is printed, standard error included; it says the verdict once, counts the warnings, names both
// solvers; and what MuJoCo makes of a state that diverged is not taken for its derivative.
static void a_run_that_diverges_is_reported(void **state) {
  (void)state;
  static char out[200000];
  char folder[] = "/tmp/sinew-check-XXXXXX";
  enter_folder(folder);
  write_file("wild.xml",
             "<mujoco><option solver='CG' integrator='RK4' timestep='.01'/><worldbody><body><joint type='slide' "
             "axis='1 0 0' stiffness='-1e6'/><geom size='.1' mass='1'/><site name='s'/></body></worldbody><actuator>"
             "<motor site='s' gear='1 0 0 0 0 0'/></actuator></mujoco>");
  // half of the steps cannot be differentiated: too many to say that the gradient agrees
  assert_int_equal(run(SN_CHECK " wild.xml --gradient --steps 64 --json 2>&1", out, sizeof out), 4);
  cJSON *root = cJSON_Parse(out);
  assert_non_null(root);
  assert_string_equal(cJSON_GetObjectItem(root, "verdict")->valuestring, "undecided");
  assert_string_equal(cJSON_GetObjectItem(root, "solver_of_model")->valuestring, "CG");
  assert_string_equal(cJSON_GetObjectItem(root, "solver")->valuestring, "Newton");
  assert_true(cJSON_GetObjectItem(root, "restarts")->valueint > 4);
  const cJSON *warnings = cJSON_GetObjectItem(root, "warnings");
  assert_in_range(cJSON_GetArraySize(warnings), 1, 3);  // of acceleration, velocity, position
  const cJSON *first = cJSON_GetArrayItem(warnings, 0);
  assert_true(cJSON_GetObjectItem(first, "count")->valueint >= cJSON_GetObjectItem(root, "restarts")->valueint);
  assert_non_null(strstr(cJSON_GetObjectItem(first, "first")->valuestring, "QACC"));
  const cJSON *gradient = cJSON_GetObjectItem(root, "gradient");
  assert_true(cJSON_IsFalse(cJSON_GetObjectItem(gradient, "agrees")));
  assert_true(cJSON_GetObjectItem(gradient, "steps_compared")->valueint >= 16);
  assert_true(cJSON_GetObjectItem(cJSON_GetObjectItem(gradient, "A"), "max")->valuedouble < 1e-6);
  assert_true(cJSON_GetObjectItem(cJSON_GetObjectItem(gradient, "B"), "max")->valuedouble < 1e-4);
  cJSON_Delete(root);

  assert_int_equal(run(SN_CHECK " wild.xml --gradient --steps 64 2>&1", out, sizeof out), 4);
  assert_memory_equal(out, "wild.xml: undecided\n", 20);
  assert_int_equal(count_of(out, "undecided"), 1);
  assert_int_equal(count_of(out, "\nnext: nothing differs, but too little could be compared"), 1);
  assert_int_equal(count_of(out, "agrees"), 0);
  assert_int_equal(count_of(out, "solver: Newton in MuJoCo too; the model asks for CG\n"), 1);
  assert_in_range(count_of(out, "warnings of MuJoCo: "), 1, 3);
  assert_in_range(count_of(out, "unstable"), 1, 3);
  unlink("wild.xml");
  leave_folder(folder);
}

// Runs sinew-check with these arguments, expects its exit status and verdict, and returns its report.
static cJSON *report_of(const char *arguments, int status, const char *verdict) {
  static char out[200000];
  char command[1000];
  snprintf(command, sizeof command, "%s %s --json", SN_CHECK, arguments);
  assert_int_equal(run(command, out, sizeof out), status);
  cJSON *root = cJSON_Parse(out);
  assert_non_null(root);
  assert_string_equal(cJSON_GetObjectItem(root, "verdict")->valuestring, verdict);
  return root;
}

static void report_of_fields(void) {
  cJSON *root = report_of("check_small.xml --steps 5", 0, "agrees");
  assert_string_equal(cJSON_GetObjectItem(root, "model")->valuestring, "check_small.xml");
  assert_int_equal(cJSON_GetObjectItem(root, "steps")->valueint, 5);
  assert_non_null(cJSON_GetObjectItem(root, "loose_steps"));
  assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "unsupported")), 0);
  assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "warnings")), 0);
  assert_string_equal(cJSON_GetObjectItem(root, "solver_of_model")->valuestring, "Newton");
  const cJSON *field = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "fields"), "qacc");
  assert_non_null(cJSON_GetObjectItem(field, "rel"));
  assert_non_null(cJSON_GetObjectItem(field, "step"));
  cJSON_Delete(root);
}

// Cylinders that lie on each other: which of equally deep points counts is rounding's choice.
static void report_of_a_difference(void) {
  cJSON *root = report_of("check_flat.xml --steps 200 --strict", 1, "differs");
  const cJSON *field = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "fields"), "contact_pos_edged");
  assert_true(cJSON_IsFalse(cJSON_GetObjectItem(field, "agrees")));
  cJSON_Delete(root);
}

static void report_of_gradients(void) {
  cJSON *root = report_of("check_small.xml --gradient --steps 8", 0, "agrees");
  const cJSON *gradient = cJSON_GetObjectItem(root, "gradient");
  for (int i = 0; i < 2; ++i) {
    const cJSON *J = cJSON_GetObjectItem(gradient, i ? "B" : "A");
    const double middle = cJSON_GetObjectItem(J, "median")->valuedouble,
                 most = cJSON_GetObjectItem(J, "max")->valuedouble;
    assert_true(middle > 0 && middle <= most && most < 1e-4);
  }
  const int compared = cJSON_GetObjectItem(gradient, "steps_compared")->valueint;
  assert_int_equal(compared + cJSON_GetObjectItem(gradient, "steps_skipped")->valueint, 8);
  const cJSON *rollout = cJSON_GetObjectItem(gradient, "rollout");
  assert_true(cJSON_GetObjectItem(rollout, "max")->valuedouble < 1e-4);
  assert_true(cJSON_GetObjectItem(rollout, "compared")->valueint >= 6);
  assert_int_equal(
      cJSON_GetObjectItem(rollout, "compared")->valueint + cJSON_GetObjectItem(rollout, "skipped")->valueint, 8);
  cJSON_Delete(root);
}

// A smooth motion, whose error falls with the tolerance; and one that flies apart, which is said.
static void report_of_motions(void) {
  cJSON *root = report_of("check_arm.xml --integrate --steps 40", 0, "agrees");
  const cJSON *motion = cJSON_GetObjectItem(root, "integration"), *slopes = cJSON_GetObjectItem(motion, "slopes");
  const cJSON *rows = cJSON_GetObjectItem(motion, "rows");
  assert_true(cJSON_IsTrue(cJSON_GetObjectItem(motion, "agrees")));
  assert_int_equal(cJSON_GetArraySize(rows), CHECK_TOLERANCES);
  double before = 1;
  for (int k = 0; k < CHECK_TOLERANCES; ++k) {
    const double error = cJSON_GetObjectItem(cJSON_GetArrayItem(rows, k), "error")->valuedouble;
    assert_true(error > 0 && error < before);
    before = error;
  }
  assert_true(before < 1e-6);
  assert_int_equal(cJSON_GetObjectItem(slopes, "compared")->valueint + cJSON_GetObjectItem(slopes, "skipped")->valueint,
                   4);
  assert_true(cJSON_GetObjectItem(slopes, "max")->valuedouble > 0);
  cJSON_Delete(root);
  root = report_of("check_wild.xml --integrate --steps 64", 3, "error");
  assert_non_null(strstr(cJSON_GetObjectItem(root, "error")->valuestring, "integration ends at"));
  cJSON_Delete(root);
}

// Steps agree, chosen steps are refused: that is listed, as what a model has under options that refuse it.
static void reports_of_the_past(void) {
  cJSON *root = report_of("check_past.xml --steps 8", 0, "agrees");
  cJSON_Delete(root);
  root = report_of("check_past.xml --integrate --steps 8", 2, "unsupported");
  const cJSON *list = cJSON_GetObjectItem(root, "unsupported");
  assert_int_equal(cJSON_GetArraySize(list), 1);
  assert_non_null(strstr(cJSON_GetArrayItem(list, 0)->valuestring, "history buffer (nsample)"));
  assert_null(cJSON_GetObjectItem(root, "integration"));
  assert_int_equal(cJSON_GetObjectItem(root, "steps")->valueint, 8);
  cJSON_Delete(root);
  root = report_of("check_past_rk4.xml", 2, "unsupported");
  list = cJSON_GetObjectItem(root, "unsupported");
  assert_int_equal(cJSON_GetArraySize(list), 2);
  assert_string_equal(cJSON_GetArrayItem(list, 1)->valuestring,
                      "sensor 0: a history buffer (nsample) with integrator RK4 is not supported");
  cJSON_Delete(root);
}

static void reports_of_failures(void) {
  static char out[200000];
  cJSON *root = report_of("check_refused.xml", 2, "unsupported");
  assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "unsupported")), 2);
  cJSON_Delete(root);
  root = report_of("nothere.xml", 3, "error");
  assert_non_null(strstr(cJSON_GetObjectItem(root, "error")->valuestring, "nothere.xml"));
  cJSON_Delete(root);
  assert_int_equal(run(SN_CHECK " --steps nine check_small.xml 2>&1", out, sizeof out), 3);
  assert_int_equal(run(SN_CHECK " 2>&1", out, sizeof out), 3);
  assert_int_equal(run(SN_CHECK " --help", out, sizeof out), 0);
  assert_non_null(strstr(out, "Example:"));
}

// A ball that turns on the floor with a gap of exactly 0: the last bit of a rotation says whether it touches.
static const char touch[] =
    "<mujoco><option timestep='.02'/><worldbody><geom name='floor' type='plane' size='4 4 4'/><body>"
    "<geom name='ball' pos='0 0 .5' size='.5' contype='0'/><joint axis='1 0 0' type='slide'/><joint axis='0 0 "
    "1'/></body>"
    "</worldbody><actuator><motor joint='turn' ctrlrange='-1 1'/></actuator></mujoco>";

// What rounding decides is counted and named, and differs where nothing is allowed.
static void ties_are_named(void **state) {
  (void)state;
  char folder[] = "/tmp/sinew-check-XXXXXX", text[sizeof touch + 20];
  enter_folder(folder);
  const char *joint = strstr(touch, "<joint axis='0 0 1'/>");
  snprintf(text, sizeof text, "%.*s<joint name='turn' axis='0 0 1'/>%s", (int)(joint - touch), touch,
           joint + strlen("<joint axis='0 0 1'/>"));
  write_file("touch.xml", text);
  cJSON *root = report_of("touch.xml --steps 256", 0, "agrees");
  const int ties = cJSON_GetObjectItem(root, "ties")->valueint;
  assert_in_range(ties, 1, 64);
  assert_non_null(strstr(cJSON_GetObjectItem(root, "tie")->valuestring, "geoms 'floor' and 'ball'"));
  cJSON_Delete(root);
  root = report_of("touch.xml --steps 256 --strict", 1, "differs");
  assert_int_equal(cJSON_GetObjectItem(root, "ties")->valueint, 0);
  assert_non_null(strstr(cJSON_GetObjectItem(root, "next")->valuestring, "contact is the first field that differs"));
  cJSON_Delete(root);
  unlink("touch.xml");
  leave_folder(folder);
}

// Controls that are late start at 0, a bound of their range, where differences on both sides are no derivative.
static void late_controls_start_inside(void **state) {
  (void)state;
  char folder[] = "/tmp/sinew-check-XXXXXX";
  enter_folder(folder);
  write_file(
      "late.xml",
      "<mujoco><worldbody><body><joint name='j' axis='0 1 0' damping='.1'/><geom type='capsule' fromto='0 0 0 .3 "
      "0 0' size='.02'/></body></worldbody><actuator><motor joint='j' delay='.02' nsample='12' interp='linear' "
      "ctrlrange='0 1'/><pid joint='j' kp='2' kv='.1' input='pos vel' delay='.02' nsample='12' posrange='-1 0' "
      "velrange='0 1'/></actuator></mujoco>");
  cJSON *root = report_of("late.xml --gradient --steps 32", 0, "agrees");
  const cJSON *rollout = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "gradient"), "rollout");
  assert_int_equal(cJSON_GetObjectItem(rollout, "compared")->valueint, 8);
  assert_true(cJSON_GetObjectItem(rollout, "max")->valuedouble < 1e-6);
  cJSON_Delete(root);
  unlink("late.xml");
  leave_folder(folder);
}

// A grain and a ball that touch lightly, on a heavy block: MuJoCo ends the iterations of each island by itself.
static void islands_are_solved_to_rounding(void **state) {
  (void)state;
  char folder[] = "/tmp/sinew-check-XXXXXX";
  enter_folder(folder);
  write_file("grain.xml",
             "<mujoco><option integrator='implicit' cone='elliptic'><flag sleep='enable'/></option><worldbody><geom "
             "type='plane' size='5 5 1'/><body pos='0 0 .35'><freejoint/><geom type='box' size='1 1 .3'/></body>"
             "<body pos='.035 .491 .69' euler='5.2 5 9'><freejoint/><geom type='box' size='.02 .024 .014'/></body>"
             "<body pos='.053 .483 .75' euler='9.9 5 9'><freejoint/><geom size='.05'/></body></worldbody></mujoco>");
  cJSON *root = report_of("grain.xml --steps 40 --strict", 0, "agrees");
  const cJSON *fields = cJSON_GetObjectItem(root, "fields");
  assert_true(cJSON_GetObjectItem(cJSON_GetObjectItem(fields, "efc_force"), "rel")->valuedouble < 1e-8);
  assert_true(cJSON_GetObjectItem(cJSON_GetObjectItem(fields, "next_qvel"), "tolerance")->valuedouble == 1e-9);
  cJSON_Delete(root);
  unlink("grain.xml");
  leave_folder(folder);
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

// Several files, a folder, every kind of file that MuJoCo loads; a report for others.
static void files_and_folders(void **state) {
  (void)state;
  static char out[200000];
  char folder[] = "/tmp/sinew-check-XXXXXX", text[1000] = "";
  enter_folder(folder);
  assert_int_equal(mkdir("models", 0700), 0);
  write_file("models/small.xml", sn_small_model(2));
  write_file("models/part.xml", "<mujocoinclude><geom size='1'/></mujocoinclude>");
  write_file("models/notes.txt", "no model");
  write_file("models/arm.urdf",
             "<robot name='arm'><link name='a'><inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' "
             "ixz='0' iyz='0'/></inertial></link><link name='b'><inertial><mass value='1'/><inertia ixx='1' iyy='1' "
             "izz='1' ixy='0' ixz='0' iyz='0'/></inertial></link><joint name='j' type='continuous'><parent link='a'/>"
             "<child link='b'/><axis xyz='0 1 0'/><origin xyz='0 0 1'/></joint></robot>");
  mjModel *mj = mj_loadXML("models/small.xml", NULL, text, sizeof text);
  if (!mj) fail_msg("%s", text);
  mj_saveModel(mj, "models/small.mjb", NULL, 0);
  mj_deleteModel(mj);
  assert_int_equal(run(SN_CHECK " --steps 5 models 2>&1", out, sizeof out), 0);
  assert_int_equal(count_of(out, ": agrees\n"), 3);
  assert_int_equal(count_of(out, "notes"), 0);
  assert_non_null(strstr(out, "4 files: 3 agree, 0 differ, 0 undecided, 0 unsupported, 1 that MuJoCo does not load\n"));
  assert_int_equal(run(SN_CHECK " --steps 5 models/arm.urdf models/part.xml 2>&1", out, sizeof out), 3);
  assert_int_equal(run(SN_CHECK " --steps 5 --json models/arm.urdf models/small.mjb", out, sizeof out), 0);
  cJSON *list = cJSON_Parse(out);
  assert_int_equal(cJSON_GetArraySize(list), 2);
  cJSON_Delete(list);
  assert_int_equal(run(SN_CHECK " --steps 5 models/small.xml --report report.json", out, sizeof out), 0);
  assert_int_equal(run("cat report.json", out, sizeof out), 0);
  cJSON *report = cJSON_Parse(out);
  assert_string_equal(cJSON_GetObjectItem(report, "mujoco")->valuestring, mj_versionString());
  assert_non_null(cJSON_GetObjectItem(report, "fields"));
  cJSON_Delete(report);
  assert_int_equal(run(SN_CHECK " models/small.xml --report no/report.json 2>&1", out, sizeof out), 3);
  assert_non_null(strstr(out, "no/report.json: cannot be written"));
  assert_int_equal(run(SN_CHECK " models --report report.json 2>&1", out, sizeof out), 3);
  assert_int_equal(run("rm -r models report.json", out, sizeof out), 0);
  leave_folder(folder);
}

static void the_report_is_as_documented(void **state) {
  (void)state;
  char folder[] = "/tmp/sinew-check-XXXXXX";
  enter_folder(folder);
  write_file("check_small.xml", sn_small_model(2));
  write_file("check_flat.xml",
             "<mujoco><worldbody><geom type='cylinder' size='.3 .2' pos='0 0 .1'/><body pos='.02 .01 .42'><freejoint/>"
             "<geom type='cylinder' size='.1 .1'/></body></worldbody></mujoco>");
  write_file("check_arm.xml",
             "<mujoco><worldbody><body><joint axis='0 1 0' damping='.1'/><geom type='capsule' fromto='0 0 0 .3 0 0' "
             "size='.02'/><body pos='.3 0 0'><joint type='ball' stiffness='1'/><geom type='box' size='.1 .02 .03' "
             "pos='.1 0 0'/></body></body></worldbody></mujoco>");
  write_file("check_wild.xml",
             "<mujoco><worldbody><body><joint type='slide' axis='1 0 0' stiffness='-1e6'/><geom size='.1' mass='1'/>"
             "</body></worldbody></mujoco>");
  write_file("check_refused.xml", "<mujoco><option density='-1' viscosity='-1'/></mujoco>");
#define YIELDING                                                                                                  \
  "<worldbody><body><joint name='j' springyield='.1' stiffness='1'/><geom size='.1'/></body></worldbody><sensor>" \
  "<jointpos joint='j' delay='.01' nsample='5'/></sensor></mujoco>"
  write_file("check_past.xml", "<mujoco>" YIELDING);
  write_file("check_past_rk4.xml", "<mujoco><option integrator='RK4'/>" YIELDING);
#undef YIELDING
  report_of_fields();
  report_of_a_difference();
  report_of_gradients();
  report_of_motions();
  reports_of_failures();
  reports_of_the_past();
  unlink("check_small.xml");
  unlink("check_arm.xml");
  unlink("check_wild.xml");
  unlink("check_refused.xml");
  unlink("check_past.xml");
  unlink("check_past_rk4.xml");
  unlink("check_flat.xml");
  leave_folder(folder);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gradients_have_limits),
      cmocka_unit_test(small_differences_are_noticed),
      cmocka_unit_test(sleepers_are_compared),
      cmocka_unit_test(every_field_is_compared),
      cmocka_unit_test(other_contacts_and_rows_are_noticed),
      cmocka_unit_test(sensors_are_compared),
      cmocka_unit_test(noise_excuses_ten_times_itself),
      cmocka_unit_test(noise_is_judged_field_by_field),
      cmocka_unit_test(contacts_have_their_class),
      cmocka_unit_test(the_report_is_as_documented),
      cmocka_unit_test(a_run_that_diverges_is_reported),
      cmocka_unit_test(motions_have_limits),
      cmocka_unit_test(ties_are_named),
      cmocka_unit_test(late_controls_start_inside),
      cmocka_unit_test(islands_are_solved_to_rounding),
      cmocka_unit_test(ties_have_limits),
      cmocka_unit_test(elements_have_names),
      cmocka_unit_test(files_and_folders),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
