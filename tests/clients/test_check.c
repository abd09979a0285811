// The checker itself: it finds what differs, whatever it is and however little, and reports as documented.
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clients/check_compare.h"
#include "clients/check_gradient.h"
#include "tests/harness/model_zoo.h"
#include "tests/harness/oracle.h"

// Both engines after the stages of one step, somewhere along a fall.
static void prepare(SnOracle *o, int zoo) {
  sn_oracle_load_string(o, sn_zoo_model(zoo));
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

// Every number of ours that is off by 1e-5 of the field's scale, and every one that is NaN, is noticed.
static void small_differences_are_noticed(void **state) {
  (void)state;
  for (int zoo = 0; zoo < SN_ZOO_MODELS; ++zoo) {
    SnOracle o;
    prepare(&o, zoo);
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

static void the_report_is_as_documented(void **state) {
  (void)state;
  static char out[200000];
  char folder[] = "/tmp/sinew-check-XXXXXX";
  assert_non_null(mkdtemp(folder));
  assert_int_equal(chdir(folder), 0);
  write_file("check_zoo.xml", sn_zoo_model(2));
  write_file("check_fluid.xml", "<mujoco><option density='1' viscosity='1'/></mujoco>");
  assert_int_equal(run(SN_CHECK " check_zoo.xml --steps 5 --json", out, sizeof out), 0);
  cJSON *root = cJSON_Parse(out);
  assert_non_null(root);
  assert_string_equal(cJSON_GetObjectItem(root, "model")->valuestring, "check_zoo.xml");
  assert_string_equal(cJSON_GetObjectItem(root, "verdict")->valuestring, "agrees");
  assert_int_equal(cJSON_GetObjectItem(root, "steps")->valueint, 5);
  assert_non_null(cJSON_GetObjectItem(root, "loose_steps"));
  assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "unsupported")), 0);
  const cJSON *field = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "fields"), "qacc");
  assert_non_null(cJSON_GetObjectItem(field, "rel"));
  assert_non_null(cJSON_GetObjectItem(field, "step"));
  cJSON_Delete(root);

  assert_int_equal(run(SN_CHECK " check_zoo.xml --gradient --steps 8 --json", out, sizeof out), 0);
  root = cJSON_Parse(out);
  assert_non_null(root);
  assert_string_equal(cJSON_GetObjectItem(root, "verdict")->valuestring, "agrees");
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

  assert_int_equal(run(SN_CHECK " check_fluid.xml --json", out, sizeof out), 2);
  root = cJSON_Parse(out);
  assert_string_equal(cJSON_GetObjectItem(root, "verdict")->valuestring, "unsupported");
  assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "unsupported")), 2);
  cJSON_Delete(root);

  assert_int_equal(run(SN_CHECK " nothere.xml --json", out, sizeof out), 3);
  root = cJSON_Parse(out);
  assert_string_equal(cJSON_GetObjectItem(root, "verdict")->valuestring, "error");
  assert_non_null(strstr(cJSON_GetObjectItem(root, "error")->valuestring, "nothere.xml"));
  cJSON_Delete(root);

  assert_int_equal(run(SN_CHECK " --steps nine check_zoo.xml 2>&1", out, sizeof out), 3);
  assert_int_equal(run(SN_CHECK " 2>&1", out, sizeof out), 3);
  assert_int_equal(run(SN_CHECK " --help", out, sizeof out), 0);
  assert_non_null(strstr(out, "Example:"));
  unlink("check_zoo.xml");
  unlink("check_fluid.xml");
  assert_int_equal(chdir("/"), 0);
  assert_int_equal(rmdir(folder), 0);  // no MUJOCO_LOG.TXT is left
}

// The limits of a verdict on derivatives, one at a time; NaN is beyond every limit.
static void gradients_have_limits(void **state) {
  (void)state;
  const SnGradientReport good = {.A = {1e-5, 1e-4, 0, 0, 0},
                                 .B = {1e-5, 1e-4, 0, 0, 0},
                                 .steps_compared = 48,
                                 .steps_skipped = 16,
                                 .rollout_max = 1e-4,
                                 .rollout_compared = 6,
                                 .rollout_skipped = 2};
  assert_true(sn_gradient_agrees(&good));
  SnGradientReport bad[9];
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
  for (int i = 0; i < 9; ++i) assert_false(sn_gradient_agrees(&bad[i]));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gradients_have_limits),
      cmocka_unit_test(small_differences_are_noticed),
      cmocka_unit_test(other_contacts_and_rows_are_noticed),
      cmocka_unit_test(contacts_have_their_class),
      cmocka_unit_test(the_report_is_as_documented),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
