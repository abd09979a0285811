// sinew-check: one step of ours against one of MuJoCo's, from the same state, at every state that MuJoCo passes
// through when it runs the model under seeded smooth controls.
#include <argp.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clients/check_compare.h"
#include "clients/mujoco_drive.h"
#include "clients/mujoco_log.h"
#include "physics/import_mjcf.h"

enum { EXIT_AGREES = 0, EXIT_DIFFERS = 1, EXIT_UNSUPPORTED = 2, EXIT_ERROR = 3 };

typedef struct Settings {
  const char *model;
  int steps;
  long seed;
  bool json, isolate;
} Settings;

typedef struct Report {
  const char *verdict;  // agrees, differs, unsupported, error
  int exit_code;
  int restarts;       // times MuJoCo diverged and was put back
  char *unsupported;  // lines, all of them; NULL: none
  SnError err;
  SnCompare compare;
} Report;

static int parse(int key, char *arg, struct argp_state *state) {
  Settings *s = state->input;
  char *end = NULL;
  switch (key) {
    case 'n':
      s->steps = (int)strtol(arg, &end, 10);
      if (*end || s->steps < 1 || s->steps > 1000000) argp_error(state, "--steps %s: a number from 1 to 1000000", arg);
      return 0;
    case 's':
      s->seed = strtol(arg, &end, 10);
      if (*end || s->seed < 0) argp_error(state, "--seed %s: a number from 0", arg);
      return 0;
    case 'j':
      s->json = true;
      return 0;
    case 'i':
      s->isolate = true;
      return 0;
    case ARGP_KEY_ARG:
      if (s->model) argp_error(state, "more than one MODEL: %s", arg);
      s->model = arg;
      return 0;
    case ARGP_KEY_END:
      if (!s->model) argp_error(state, "a MODEL is needed");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

// Runs all of our stages and compares what each wrote.
static void check_chained(SnCompare *c, SnOracle *o, int step) {
  sn_oracle_copy_state(o);
  sn_forward(o->m, &o->w, &o->lane);
  for (int stage = SN_STAGE_KINEMATICS; stage <= SN_STAGE_SOLVER; ++stage) sn_compare_stage(c, o, (SnStage)stage, step);
}

typedef void Stage(const SnModel *m, SnWorld *w, SnLane *lane);

// Runs single stages, each on MuJoCo's values of all others, and compares what they wrote.
static void check_isolated(SnCompare *c, SnOracle *o, int step) {
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
      {SN_STAGE_CONSTRAINT, {sn_make_constraint, sn_reference_constraint}},
      {SN_STAGE_SOLVER, {sn_solve}},
  };
  sn_oracle_copy_state(o);
  sn_forward(o->m, &o->w, &o->lane);  // fills the scratch that MuJoCo has no counterpart of
  for (size_t i = 0; i < sizeof list / sizeof *list; ++i) {
    sn_oracle_fill(o);
    for (int k = 0; k < 3 && list[i].run[k]; ++k) list[i].run[k](o->m, &o->w, &o->lane);
    sn_compare_stage(c, o, list[i].stage, step);
  }
}

// One step of each engine from the state that MuJoCo is in, MuJoCo's last. False when MuJoCo diverged.
static bool check_step(SnCompare *c, SnOracle *o, bool isolate, mjtNum *state, int step) {
  mj_getState(o->mj, o->d, state, mjSTATE_INTEGRATION);
  mj_forward(o->mj, o->d);
  sn_compare_begin(c, o);
  if (isolate)
    check_isolated(c, o, step);
  else
    check_chained(c, o, step);

  mj_setState(o->mj, o->d, state, mjSTATE_INTEGRATION);
  if (isolate) {
    mj_forward(o->mj, o->d);
    sn_oracle_fill(o);
    memcpy(o->w.qacc_warmstart, o->w.qacc, sizeof(sn_real) * (size_t)o->m->nv);
    mj_setState(o->mj, o->d, state, mjSTATE_INTEGRATION);
    sn_integrate(o->m, &o->w, &o->lane);
  } else {
    sn_oracle_copy_state(o);
    sn_step(o->m, &o->w, &o->lane);
  }
  mj_step(o->mj, o->d);
  const mjWarningStat *warn = o->d->warning;
  if (warn[mjWARN_BADQPOS].number || warn[mjWARN_BADQVEL].number || warn[mjWARN_BADQACC].number) return false;
  sn_compare_next(c, o, step);
  return true;
}

static int run(const Settings *s, Report *r) {
  SnOracle o = {0};
  mjModel *mj = sn_oracle_read_file(s->model, &r->err);
  if (!mj) return EXIT_ERROR;
  int count = 0;
  char *unsupported = sn_import_unsupported(mj, &count);
  if (count) {
    r->unsupported = unsupported;
    mj_deleteModel(mj);
    return EXIT_UNSUPPORTED;
  }
  free(unsupported);
  sn_oracle_tighten(mj);
  const SnCode code = sn_oracle_open(&o, mj, &r->err);
  if (code != SN_OK) return EXIT_ERROR;
  sn_model_need_all(o.m);
  mjtNum *state = malloc(sizeof(mjtNum) * (size_t)mj_stateSize(o.mj, mjSTATE_INTEGRATION));
  if (!state) {
    sn_fail(&r->err, SN_ERR_MEMORY, "out of memory");
    sn_oracle_free(&o);
    return EXIT_ERROR;
  }
  sn_drive_start(&o);
  for (int step = 0; step < s->steps; ++step) {
    sn_drive_controls(&o, (uint64_t)s->seed, step * o.mj->opt.timestep);
    if (check_step(&r->compare, &o, s->isolate, state, step)) continue;
    ++r->restarts;
    sn_drive_start(&o);
  }
  free(state);
  sn_oracle_free(&o);
  return sn_compare_agrees(&r->compare) ? EXIT_AGREES : EXIT_DIFFERS;
}

// The lines of the error text, as a list.
static cJSON *lines(const char *text) {
  cJSON *list = cJSON_CreateArray();
  for (const char *p = text; *p;) {
    const size_t n = strcspn(p, "\n");
    char line[1000];
    snprintf(line, sizeof line, "%.*s", (int)n, p);
    if (n) cJSON_AddItemToArray(list, cJSON_CreateString(line));
    p += n + (p[n] == '\n');
  }
  return list;
}

static void print_json(const Settings *s, const Report *r) {
  cJSON *root = cJSON_CreateObject(), *fields = cJSON_CreateObject();
  cJSON_AddStringToObject(root, "model", s->model);
  cJSON_AddStringToObject(root, "verdict", r->verdict);
  cJSON_AddNumberToObject(root, "steps", r->compare.steps);
  cJSON_AddNumberToObject(root, "loose_steps", r->compare.loose_steps);
  cJSON_AddNumberToObject(root, "restarts", r->restarts);
  cJSON_AddItemToObject(root, "unsupported", lines(r->unsupported ? r->unsupported : ""));
  if (r->exit_code == EXIT_ERROR) cJSON_AddStringToObject(root, "error", r->err.text);
  if (r->compare.note[0]) cJSON_AddStringToObject(root, "note", r->compare.note);
  for (int i = 0; i < SN_CMP_COUNT; ++i) {
    const SnFieldError *f = &r->compare.field[i];
    if (f->step < 0) continue;
    cJSON *field = cJSON_AddObjectToObject(fields, sn_compared_name((SnCompared)i));
    cJSON_AddNumberToObject(field, "rel", f->rel);
    cJSON_AddNumberToObject(field, "step", f->step);
    cJSON_AddNumberToObject(field, "element", f->element);
    cJSON_AddNumberToObject(field, "tolerance", f->tol);
    cJSON_AddBoolToObject(field, "agrees", !f->differs);
  }
  cJSON_AddItemToObject(root, "fields", fields);
  char *text = cJSON_Print(root);
  puts(text ? text : "{}");
  cJSON_free(text);
  cJSON_Delete(root);
}

static void print_table(const Settings *s, const Report *r) {
  printf("%s: %s\n", s->model, r->verdict);
  if (r->unsupported) printf("%s", r->unsupported);
  if (r->err.text[0]) printf("%s\n", r->err.text);
  if (!r->compare.steps) return;
  printf("%d steps, %d of them with contacts of polyhedra or cylinder edges", r->compare.steps, r->compare.loose_steps);
  if (r->restarts) printf(", %d restarts after MuJoCo diverged", r->restarts);
  printf("\n\n%-22s %12s %10s %6s %8s\n", "field", "rel. error", "tolerance", "step", "element");
  for (int i = 0; i < SN_CMP_COUNT; ++i) {
    const SnFieldError *f = &r->compare.field[i];
    if (f->step < 0) continue;
    printf("%-22s %12.3e %10.1e %6d %8d%s\n", sn_compared_name((SnCompared)i), f->rel, f->tol, f->step, f->element,
           f->differs ? "  differs" : "");
  }
  if (r->compare.note[0]) printf("\n%s\n", r->compare.note);
}

const char *argp_program_bug_address = NULL;

int main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"steps", 'n', "N", 0, "steps to compare (default 256)", 0},
      {"seed", 's', "N", 0, "seed of the controls (default 0)", 0},
      {"json", 'j', NULL, 0, "print JSON instead of a table", 0},
      {"isolate", 'i', NULL, 0, "give every stage MuJoCo's values of the stages before it, so that its own error shows",
       0},
      {0}};
  static const char doc[] =
      "Compares every stage of a step with MuJoCo's, at every step of a run that MuJoCo drives with seeded smooth "
      "controls.\vExample: sinew-check --steps 64 arm.xml\n\n"
      "Exit status: 0 agrees, 1 differs, 2 the model uses what is not supported (all of it is listed), 3 it cannot be "
      "loaded.";
  const struct argp argp = {.options = options, .parser = parse, .args_doc = "MODEL.xml", .doc = doc};
  argp_err_exit_status = EXIT_ERROR;
  sn_mujoco_messages("sinew-check", EXIT_ERROR);
  Settings s = {.steps = 256};
  argp_parse(&argp, argc, argv, 0, NULL, &s);

  Report r = {0};
  sn_compare_init(&r.compare);
  r.exit_code = run(&s, &r);
  static const char *const verdict[] = {"agrees", "differs", "unsupported", "error"};
  r.verdict = verdict[r.exit_code];
  if (s.json)
    print_json(&s, &r);
  else
    print_table(&s, &r);
  sn_compare_free(&r.compare);
  free(r.unsupported);
  return r.exit_code;
}
