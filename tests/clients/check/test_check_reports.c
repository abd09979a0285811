// What sinew-check says of models, as a program: verdicts, exit statuses, reports, ties.
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clients/check/check.h"
#include "tests/support/oracle.h"
#include "tests/support/small_models.h"
#include "tests/support/tolerance.h"

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

// Expects so many steps of a run to be left out because MuJoCo diverges, and the verdict that too few are compared.
static void assert_undecided(const char *xml, int steps, int diverged) {
  static char out[200000];
  char folder[] = "/tmp/sinew-check-XXXXXX", command[200], text[100];
  enter_folder(folder);
  write_file("wild.xml", xml);
  snprintf(command, sizeof command, SN_CHECK " wild.xml --steps %d 2>&1", steps);
  snprintf(text, sizeof text, "\nnot compared: %d steps in which MuJoCo diverged", diverged);
  assert_int_equal(run(command, out, sizeof out), 4);
  assert_memory_equal(out, "wild.xml: undecided\n", 20);
  assert_non_null(strstr(out, text));
  assert_non_null(strstr(out, "\nnext: MuJoCo diverged in more than a quarter of the steps"));
  unlink("wild.xml");
  leave_folder(folder);
}

// A model of which MuJoCo comes to the end of no step: nothing was compared, so that nothing agrees.
static void what_diverges_at_once_is_undecided(void **state) {
  (void)state;
  assert_undecided(
      "<mujoco><worldbody><body><joint name='j' type='slide'/><geom size='.1' mass='1'/></body></worldbody>"
      "<actuator><general joint='j' gainprm='1e16' biastype='affine' biasprm='1e16 0 0'/></actuator></mujoco>",
      8, 8);
}

// A step whose end is out of range is left out, though MuJoCo says so as it begins the next one: here the second of
// two.
static void a_last_step_that_diverges_is_left_out(void **state) {
  (void)state;
  assert_undecided(
      "<mujoco><option timestep='1' gravity='0 0 -9e9'/><worldbody><body><joint type='slide'/>"
      "<geom size='.1' mass='1'/></body></worldbody></mujoco>",
      2, 1);
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
// A Jacobian without entries has no largest one.
static void report_without_controls(void) {
  static char out[200000];
  write_file("check_passive.xml",
             "<mujoco><worldbody><body><joint/><geom size='.1' pos='.1 0 0'/></body></worldbody></mujoco>");
  assert_int_equal(run(SN_CHECK " check_passive.xml --gradient --steps 4 2>&1", out, sizeof out), 0);
  assert_int_equal(count_of(out, "largest of A: step "), 1);
  assert_int_equal(count_of(out, "of B: step"), 0);
  cJSON *root = report_of("check_passive.xml --gradient --steps 4", 0, "agrees");
  const cJSON *gradient = cJSON_GetObjectItem(root, "gradient");
  assert_true(cJSON_HasObjectItem(cJSON_GetObjectItem(gradient, "A"), "row"));
  assert_false(cJSON_HasObjectItem(cJSON_GetObjectItem(gradient, "B"), "row"));
  cJSON_Delete(root);
  unlink("check_passive.xml");
}

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

// A servo whose force is scaled to its limit now and then: rounding says whether MuJoCo counts its slope.
static void servos_at_their_limit_are_ties(void **state) {
  (void)state;
  static const char *const integrator[] = {"implicitfast", "implicit", "Euler"};
  char folder[] = "/tmp/sinew-check-XXXXXX", text[1000];
  enter_folder(folder);
  for (int k = 0; k < 3; ++k) {
    snprintf(text, sizeof text,
             "<mujoco><option integrator='%s'/><worldbody><body><joint name='b' type='ball'/><geom type='box' "
             "size='.1 .2 .3'/></body></worldbody><actuator><orientation name='o' joint='b' kp='200' kv='5' "
             "forcerange='0 30'/></actuator></mujoco>",
             integrator[k]);
    write_file("servo.xml", text);
    cJSON *root = report_of("servo.xml --steps 200", 0, "agrees");
    const int ties = cJSON_GetObjectItem(root, "ties")->valueint;
    assert_true(SN_ALIKE(cJSON_GetObjectItem(root, "noisy_steps")->valueint, 0) == 0);
    const cJSON *next = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "fields"), "next_qvel");
    assert_true(cJSON_GetObjectItem(next, "rel")->valuedouble < SN_ALIKE(1e-10, 0.1));
    assert_true(k == 2 ? ties == 0 : ties > 0);
    if (ties > 0)
      assert_non_null(
          strstr(cJSON_GetObjectItem(root, "tie")->valuestring, "the force of actuator 'o' is at its limit"));
    cJSON_Delete(root);
  }
  unlink("servo.xml");
  leave_folder(folder);
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
  report_without_controls();
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

// Contacts before impact, which MuJoCo's own transition matrices do not make anew for another velocity, and sleepers of
// which MuJoCo leaves axes, passive forces and lengths of tendons as they were.
static void what_mujoco_leaves_is_no_difference(void **state) {
  (void)state;
  static char out[200000];
  char folder[] = "/tmp/sinew-check-XXXXXX";
  enter_folder(folder);
  write_file("foreseen.xml",
             "<mujoco><option timestep='.01' gravity='0 0 -40'><flag speculative='enable'/></option><worldbody>"
             "<geom type='plane' size='2 2 .1'/><body pos='-.064 -.011 .386'><freejoint/><geom type='capsule' "
             "size='.03 .06'/></body></worldbody></mujoco>");
  write_file(
      "sleepers.xml",
      "<mujoco><option timestep='.005'><flag sleep='enable'/></option><worldbody><geom type='box' size='1 1 .1'/>"
      "<body pos='3 0 0'><body pos='0 .2 0'><joint axis='0 1 0'/><geom size='.05'/></body><body pos='0 -.2 0'>"
      "<joint type='slide'/><geom size='.05'/></body></body>"
      "<body pos='0 0 .16'><freejoint/><geom size='.05' adhesion='5'/></body></worldbody></mujoco>");
  write_file(
      "tendon.xml",
      "<mujoco><option sleep_tolerance='.1'><flag sleep='enable'/></option><worldbody><body sleep='allowed'><joint "
      "name='j'/><geom type='box' size='.05 .08 .03'/></body></worldbody><tendon><fixed><joint joint='j' coef='1'/>"
      "</fixed></tendon><actuator><velocity joint='j'/></actuator></mujoco>");
  assert_int_equal(run(SN_CHECK " tendon.xml --steps 96 --seed 3 2>&1", out, sizeof out), 0);
  assert_int_equal(run(SN_CHECK " foreseen.xml --gradient --steps 24 2>&1", out, sizeof out), 0);
  assert_int_equal(run(SN_CHECK " sleepers.xml --steps 200 2>&1", out, sizeof out), 0);
  assert_int_equal(remove("foreseen.xml") + remove("sleepers.xml") + remove("tendon.xml"), 0);
  leave_folder(folder);
}

// A run that takes its time says on a terminal where it is, and takes that away again; on a pipe it says nothing.
static void progress_is_for_terminals(void **state) {
  (void)state;
  static char out[200000];
  char folder[] = "/tmp/sinew-check-XXXXXX", command[1000];
  const char *said = NULL;
  int steps = 512;
  enter_folder(folder);
  write_file("arm.xml",
             "<mujoco><option integrator='RK4'/><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='.3 0 0'/>"
             "<site name='s'/></body></worldbody><actuator><motor site='s' gear='0 0 0 0 1 0'/></actuator></mujoco>");
  for (; !said && steps < 1 << 15; steps *= 2) {
    snprintf(command, sizeof command, "script -qec '" SN_CHECK " arm.xml --gradient --steps %d' /dev/null", steps);
    assert_int_equal(run(command, out, sizeof out), 0);
    said = strstr(out, "\rderivatives of step ");
  }
  assert_non_null(said);
  assert_non_null(strstr(said, "\r\033[Karm.xml: agrees"));
  snprintf(command, sizeof command, SN_CHECK " arm.xml --gradient --steps %d 2>&1", steps);
  assert_int_equal(run(command, out, sizeof out), 0);
  assert_memory_equal(out, "arm.xml: agrees", 15);
  assert_null(strstr(out, "derivatives of step"));
  assert_int_equal(unlink("arm.xml"), 0);
  leave_folder(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_mujoco_leaves_is_no_difference),
      cmocka_unit_test(the_report_is_as_documented),
      cmocka_unit_test(a_run_that_diverges_is_reported),
      cmocka_unit_test(ties_are_named),
      cmocka_unit_test(late_controls_start_inside),
      cmocka_unit_test(servos_at_their_limit_are_ties),
      cmocka_unit_test(islands_are_solved_to_rounding),
      cmocka_unit_test(files_and_folders),
      cmocka_unit_test(what_diverges_at_once_is_undecided),
      cmocka_unit_test(progress_is_for_terminals),
      cmocka_unit_test(a_last_step_that_diverges_is_left_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
