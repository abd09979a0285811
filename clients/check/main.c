// sinew-check: one step of ours against one of MuJoCo's, from the same state, at every state that MuJoCo passes
// through when it runs the model under seeded smooth controls. With --gradient also its derivatives, and a rollout's;
// with --integrate a motion by chosen steps. Several models are checked by a process each.
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clients/base/args.h"
#include "clients/base/progress.h"
#include "clients/check/check_files_private.h"
#include "clients/base/api.h"
#include "clients/check/check_print_private.h"
#include "clients/reference/mujoco_log.h"
#include "clients/reference/mirror.h"
#include "physics/base/output.h"
#include "physics/import/import_mjcf.h"

typedef struct Settings {
  CheckFiles files;
  const char *report;  // where the report is written, too; NULL: nowhere
  CheckStepsSettings steps;
  bool json, gradient, integrate;
} Settings;

static int parse(int key, char *arg, struct argp_state *state) {
  Settings *s = state->input;
  switch (key) {
    case 'n':
      s->steps.steps = sn_arg_count(state, "steps", arg, 1000000);
      return 0;
    case 's':
      s->steps.seed = (uint64_t)sn_arg_seed(state, arg);
      return 0;
    case 'j':
      s->json = true;
      return 0;
    case 'i':
      s->steps.isolate = true;
      return 0;
    case 'x':
      s->steps.strict = true;
      return 0;
    case 'g':
      s->gradient = true;
      return 0;
    case 'm':
      s->integrate = true;
      return 0;
    case 'r':
      s->report = arg;
      return 0;
    case ARGP_KEY_ARG:
      if (!check_files_add(&s->files, arg))
        argp_failure(state, CHECK_ERROR, 0, "%s: out of memory, or a folder that cannot be read", arg);
      return 0;
    case ARGP_KEY_END:
      if (s->files.given == 0) argp_error(state, "a MODEL is needed");
      if (s->files.n == 0) argp_failure(state, CHECK_ERROR, 0, "no .xml, .urdf or .mjb in these folders");
      if (s->report && s->files.n > 1) argp_error(state, "--report is for one MODEL, there are %d", s->files.n);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

// What the settings ask for beside the steps, of two bodies. Where chosen steps do not support the model, that is
// listed.
static SinewStatus compare_bodies(CheckBodies *bodies, const Settings *s, CheckReport *r, SinewError *why) {
  SinewStatus status = SINEW_OK;
  if (s->gradient) status = check_gradient(bodies, s->steps.steps, s->steps.seed, &r->gradient, why);
  if (s->integrate && status == SINEW_OK)
    status = check_integration(bodies, s->steps.steps, s->steps.seed, &r->integration, why);
  if (status != SINEW_ERR_UNSUPPORTED) return status;
  r->with_integration = false;
  if (!(r->unsupported = strdup(why->text))) return api_fail(why, SINEW_ERR_MEMORY, "out of memory");
  return SINEW_OK;
}

// The same of bodies all of whose trees are awake: MuJoCo has no differences of others.
static SinewStatus compare_awake(const CheckRun *k, const Settings *s, CheckReport *r, SinewError *why) {
  api_fail(why, SINEW_ERR_MEMORY, "out of memory");
  mjModel *mj = mj_copyModel(NULL, k->o.mj);
  if (mj) mj->opt.enableflags &= ~mjENBL_SLEEP;
  mjData *d = mj ? mj_makeData(mj) : NULL;
  SinewModel *model = d ? sn_mirror_model(mj, why) : NULL;
  SinewData *data = model ? sinew_data_create(model, why) : NULL;
  CheckBodies awake = {.mj = mj, .d = d, .model = model, .data = data};
  const SinewStatus status = data ? compare_bodies(&awake, s, r, why) : why->status;
  sinew_data_free(data);
  sinew_model_free(model);
  if (d) mj_deleteData(d);
  if (mj) mj_deleteModel(mj);
  return status;
}

static void compare_more(const CheckRun *k, const Settings *s, CheckReport *r) {
  CheckBodies bodies = {.mj = k->o.mj, .d = k->o.d, .model = k->model, .data = k->data};
  SinewError why;
  if (!s->gradient && !s->integrate) return;
  const bool sleep = sn_has_sleep(k->o.m);
  const SinewStatus status = sleep ? compare_awake(k, s, r, &why) : compare_bodies(&bodies, s, r, &why);
  if (status != SINEW_OK) sn_fail(&r->err, SN_ERR_STATE, "%s", why.text);
}

static CheckVerdict verdict_of(const CheckReport *r) {
  const bool gradient = r->with_gradient && !check_gradient_agrees(&r->gradient);
  const bool integration = r->with_integration && !check_integration_agrees(&r->integration);
  if (!sn_compare_agrees(&r->steps.compare) || (gradient && !check_gradient_undecided(&r->gradient)) ||
      (integration && !check_integration_undecided(&r->integration)))
    return CHECK_DIFFERS;
  if (r->unsupported) return CHECK_UNSUPPORTED;
  return check_steps_undecided(&r->steps) || gradient || integration ? CHECK_UNDECIDED : CHECK_AGREES;
}

static CheckVerdict run(const Settings *s, CheckReport *r) {
  mjModel *mj = sn_oracle_read_file(r->model, &r->err);
  if (!mj) return CHECK_ERROR;
  r->solver = sn_mujoco_solver(mj);
  int count = 0;
  char *unsupported = sn_import_unsupported(mj, &count);
  if (count) {
    r->unsupported = unsupported;
    mj_deleteModel(mj);
    return CHECK_UNSUPPORTED;
  }
  free(unsupported);
  sn_oracle_tighten(mj);
  // what 1e-14 leaves shows in the eighth digit of accelerations, and where it ends has a slope that differences see
  mj->opt.tolerance = 1e-22;
  CheckRun k = {.model = NULL};
  SnCode code = check_open(&k, mj, &r->err);
  if (code == SN_OK) sn_compare_sensors_left(k.o.m, r->sensors, sizeof r->sensors);
  if (code == SN_OK) check_steps(&k, &s->steps, &r->steps);
  if (code == SN_OK) compare_more(&k, s, r);
  check_close(&k);
  return r->err.code != SN_OK ? CHECK_ERROR : verdict_of(r);
}

// Writes what a report of a difference needs. Returns false when it cannot.
static bool write_report(const char *path, const CheckReport *r, const Settings *s) {
  cJSON *root = check_json(r);
  cJSON_AddStringToObject(root, "sinew", sinew_version());
  cJSON_AddStringToObject(root, "mujoco", mj_versionString());
  cJSON_AddNumberToObject(root, "seed", (double)s->steps.seed);
  cJSON_AddBoolToObject(root, "isolate", s->steps.isolate);
  cJSON_AddBoolToObject(root, "strict", s->steps.strict);
  char *text = cJSON_Print(root);
  FILE *file = fopen(path, "w");
  bool good = text && file && fprintf(file, "%s\n", text) > 0;
  if (file && fclose(file) != 0) good = false;
  cJSON_free(text);
  cJSON_Delete(root);
  return good;
}

static CheckVerdict check_model(const Settings *s, const char *model) {
  CheckReport r = {.model = model, .with_gradient = s->gradient, .with_integration = s->integrate};
  sn_compare_init(&r.steps.compare);
  r.verdict = run(s, &r);
  sn_progress_end();
  if (s->json) {
    cJSON *root = check_json(&r);
    char *text = cJSON_Print(root);
    puts(text ? text : "{}");
    cJSON_free(text);
    cJSON_Delete(root);
  } else {
    check_print(&r, s->files.n > 1);
  }
  if (s->report && !write_report(s->report, &r, s)) {
    fprintf(stderr, "sinew-check: %s: cannot be written\n", s->report);
    r.verdict = CHECK_ERROR;
  }
  sn_compare_free(&r.steps.compare);
  free(r.unsupported);
  return r.verdict;
}

// One model in a process of its own, which MuJoCo may end.
static CheckVerdict check_apart(const Settings *s, const char *model) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const CheckVerdict verdict = check_model(s, model);
    _exit(sn_output_flush() ? (int)verdict : CHECK_ERROR);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return CHECK_ERROR;
  return WEXITSTATUS(status) > CHECK_UNDECIDED ? CHECK_ERROR : (CheckVerdict)WEXITSTATUS(status);
}

// All models, and how many came to which verdict. A file of a folder that MuJoCo does not load is a part of another
// one.
static CheckVerdict check_all(const Settings *s) {
  static const CheckVerdict order[] = {CHECK_DIFFERS, CHECK_ERROR, CHECK_UNDECIDED, CHECK_UNSUPPORTED};
  int count[CHECK_UNDECIDED + 1] = {0}, parts = 0;
  if (s->json) printf("[\n");
  for (int i = 0; i < s->files.n; ++i) {
    if (s->json && i > 0) printf(",\n");
    const CheckVerdict verdict = check_apart(s, s->files.path[i]);
    const bool part = verdict == CHECK_ERROR && s->files.found[i];
    parts += part;
    count[verdict] += !part;
  }
  if (s->json)
    printf("]\n");
  else
    printf("%d files: %d agree, %d differ, %d undecided, %d unsupported, %d that MuJoCo does not load\n", s->files.n,
           count[CHECK_AGREES], count[CHECK_DIFFERS], count[CHECK_UNDECIDED], count[CHECK_UNSUPPORTED],
           count[CHECK_ERROR] + parts);
  for (size_t i = 0; i < sizeof order / sizeof *order; ++i)
    if (count[order[i]] > 0) return order[i];
  return CHECK_AGREES;
}

const char *argp_program_bug_address = NULL;

int main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"steps", 'n', "N", 0, "steps to compare (default 256)", 0},
      {"seed", 's', "N", 0, "seed of the controls (default 0)", 0},
      {"json", 'j', NULL, 0, "print JSON instead of a table", 0},
      {"isolate", 'i', NULL, 0, "give every stage MuJoCo's values of the stages before it, so that its own error shows",
       0},
      {"gradient", 'g', NULL, 0, "compare derivatives too: of steps with MuJoCo's differences, of a rollout with ours",
       0},
      {"integrate", 'm', NULL, 0,
       "compare a motion by chosen steps, too: with fine steps of MuJoCo's RK4, its slopes with differences of ours",
       0},
      {"strict", 'x', NULL, 0, "no allowance for what is uncertain in MuJoCo's own values, nor for ties", 0},
      {"report", 'r', "FILE", 0, "write what a report of a difference needs into FILE, too", 0},
      {0}};
  static const char doc[] =
      "Compares every stage of a step with MuJoCo's, at every step of a run that MuJoCo drives with seeded smooth "
      "controls.\vExample: sinew-check --steps 64 arm.xml\n\n"
      "A field that exceeds its tolerance is also compared with MuJoCo's own change when its state moves by rounding "
      "(1e-14); within ten times that it agrees, and the step counts as noisy. Where contacts differ by frames that "
      "are "
      "equal to 1e-12, and given the same frames do not, the step is a tie: it is counted and named, and may be at "
      "most "
      "every fourth one. MuJoCo solves by Newton, whatever "
      "solver the model asks for, and resets no state that diverges: that step is left out, and the run starts again; "
      "with ties these may be a quarter of the steps.\n\n"
      "--gradient: the Jacobians A, B of each step against MuJoCo's central differences, and the derivative of a cost "
      "of "
      "a whole rollout along 8 random directions against central differences of our rollout. What differs between "
      "differences with 1e-6 and 1e-5 by more than 1e-6 is skipped. Agrees with A and B within 1e-5 (median) and 1e-4 "
      "(largest), rollouts within 1e-4, and at most a quarter skipped.\n\n"
      "--integrate: a motion of --steps steps of the model under held controls, by Tsit5 at tolerances 1e-4, 1e-6 and "
      "1e-8, beside MuJoCo's RK4 with steps 32 times as fine; refsafe is off in both. Agrees with the last motion "
      "within "
      "1e-6 and four times what MuJoCo's steps of twice that size are off, and with slopes within 1e-3; the motion is "
      "halved where these are off by more than 1e-3. What chosen steps do not support is listed.\n\n"
      "Under flag sleep both engines fall asleep and wake; derivatives and motions are compared with all trees "
      "awake.\n\n"
      "A MODEL is MJCF, URDF (.urdf), a compiled model (.mjb), or a folder, all of whose files are checked. Exit "
      "status: "
      "0 agrees, 1 differs, 2 the model uses what is not supported (all of it is listed), 3 it cannot be loaded, 4 "
      "undecided: nothing differs, but too little could be compared. Of several models: the first of 1, 3, 4, 2 that "
      "one "
      "of them has.";
  const struct argp argp = {.options = options, .parser = parse, .args_doc = "MODEL...", .doc = doc};
  argp_err_exit_status = CHECK_ERROR;
  sn_output_guard("sinew-check", CHECK_ERROR);
  sn_mujoco_messages("sinew-check", CHECK_ERROR);
  sn_mujoco_count_warnings();
  Settings s = {.steps = {.steps = 256}};
  argp_parse(&argp, argc, argv, 0, NULL, &s);
  const CheckVerdict verdict = s.files.n == 1 ? check_model(&s, s.files.path[0]) : check_all(&s);
  check_files_free(&s.files);
  return (int)verdict;
}
