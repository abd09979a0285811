// sinew-check: one step of ours against one of MuJoCo's, from the same state, at every state that MuJoCo passes
// through when it runs the model under seeded smooth controls. With --gradient also its derivatives, and a rollout's;
// with --integrate a motion by chosen steps.
#include <argp.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clients/base/args.h"
#include "clients/check/check.h"
#include "clients/reference/compare.h"
#include "clients/reference/mirror.h"
#include "clients/reference/mujoco_log.h"
#include "physics/actuator/actuator.h"
#include "physics/collision/collision.h"
#include "physics/constraint/constraint.h"
#include "physics/dynamics/dynamics.h"
#include "physics/import/import_mjcf.h"
#include "physics/step/step.h"

enum { EXIT_AGREES = 0, EXIT_DIFFERS = 1, EXIT_UNSUPPORTED = 2, EXIT_ERROR = 3 };

typedef struct Settings {
  const char *model;
  int steps;
  long seed;
  bool json, isolate, strict, gradient, integrate;
} Settings;

typedef struct Report {
  const char *verdict;  // agrees, differs, unsupported, error
  int exit_code;
  const char *solver;  // that the model asks MuJoCo for; NULL: not loaded
  int noisy_steps;     // steps that agree only because MuJoCo's own values are no more certain
  int restarts;        // times MuJoCo diverged and was put back
  char *unsupported;   // lines, all of them; NULL: none
  char sensors[300];   // that are not computed
  SnError err;
  SnCompare compare;
  CheckGradientReport gradient;
  CheckIntegrationReport integration;
} Report;

static int parse(int key, char *arg, struct argp_state *state) {
  Settings *s = state->input;
  switch (key) {
    case 'n':
      s->steps = sn_arg_count(state, "steps", arg, 1000000);
      return 0;
    case 's':
      s->seed = sn_arg_seed(state, arg);
      return 0;
    case 'j':
      s->json = true;
      return 0;
    case 'i':
      s->isolate = true;
      return 0;
    case 'x':
      s->strict = true;
      return 0;
    case 'g':
      s->gradient = true;
      return 0;
    case 'm':
      s->integrate = true;
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
  sn_forward(o->m, &o->w, &o->lane);  // fills the scratch that MuJoCo has no counterpart of
  for (size_t i = 0; i < sizeof list / sizeof *list; ++i) {
    sn_oracle_fill(o);
    for (int k = 0; k < 3 && list[i].run[k]; ++k) list[i].run[k](o->m, &o->w, &o->lane);
    sn_compare_stage(c, o, list[i].stage, step);
  }
}

// A check under way.
typedef struct Check {
  SnOracle o;         // its model computes every frame and path point, for the comparison
  SinewModel *model;  // a user's, which computes only what something reads
  SinewData *data;
  mjData *shaken;   // MuJoCo's data for a state that is off by rounding
  mjtNum *state;    // before the step
  SnCompare step;   // the present step
  SnCompare noise;  // MuJoCo against itself at that step
  int allowed;      // fields of that step that agree only because of it
} Check;

// A state next to the present one: one number in four of positions and velocities off by up to 1e-14 of its size, at
// least of 1, which is what two correct orders of additions differ by. (Not all: a joint that rests exactly on its
// limit would gain or lose its row every time.)
static void shake(Check *k) {
  mjData *d = k->shaken;
  mj_setState(k->o.mj, d, k->state, mjSTATE_INTEGRATION);
  for (int i = 0; i < k->o.m->nq + k->o.m->nv; ++i) {
    mjtNum *x = i < k->o.m->nq ? d->qpos + i : d->qvel + (i - k->o.m->nq);
    const double amount = sn_oracle_uniform(&k->o);
    if (sn_oracle_uniform(&k->o) > 0.5) *x += 1e-14 * fmax(1, fabs(*x)) * amount;
  }
}

// MuJoCo against itself: its shaken values in the place of ours. Where MuJoCo's algorithm amplifies rounding, as its
// search for the deepest point of two smooth shapes does, or picks one of several equal points, nobody can agree with
// it better than it does itself. Samples until all that differs is explained, or for long enough to say that it is not.
static void measure_noise(Check *k, bool next, int step) {
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
static void step_ours(Check *k) {
  SnOracle *o = &k->o;
  const SnModel *m = o->m;
  sn_mirror_state(k->data, o->mj, o->d);
  const bool good = sinew_step(k->data, 1, NULL) == SINEW_OK;
  const SinewState s = sinew_data_state(k->data);
  o->w.time[0] = s.time;
  memcpy(o->w.qpos, s.qpos, sizeof *o->w.qpos * (size_t)m->nq);
  memcpy(o->w.qvel, s.qvel, sizeof *o->w.qvel * (size_t)m->nv);
  memcpy(o->w.act, s.act, sizeof *o->w.act * (size_t)m->na);
  if (!good) o->w.time[0] = NAN;
}

// Both engines step from k->state; in isolation ours only integrates what MuJoCo computed. False when MuJoCo diverged.
static bool step_both(Check *k, bool isolate) {
  SnOracle *o = &k->o;
  if (isolate) {
    sn_oracle_fill(o);
    memcpy(o->w.qacc_warmstart, o->w.qacc, sizeof(sn_real) * (size_t)o->m->nv);
    sn_integrate(o->m, &o->w, &o->lane);
  }
  mj_setState(o->mj, o->d, k->state, mjSTATE_INTEGRATION);
  if (!isolate) step_ours(k);
  mj_step(o->mj, o->d);
  const mjWarningStat *warn = o->d->warning;
  return !warn[mjWARN_BADQPOS].number && !warn[mjWARN_BADQVEL].number && !warn[mjWARN_BADQACC].number;
}

// One step of each engine from the state that MuJoCo is in, MuJoCo's last. False when MuJoCo diverged.
static bool check_step(Check *k, const Settings *s, int step) {
  SnOracle *o = &k->o;
  mj_getState(o->mj, o->d, k->state, mjSTATE_INTEGRATION);
  sn_oracle_copy_state(o);  // before MuJoCo's forward, which replaces the warm start
  mj_forward(o->mj, o->d);
  sn_compare_begin(&k->step, o);
  k->noise.loose = k->step.loose;
  if (s->isolate)
    check_isolated(&k->step, o, step);
  else
    check_chained(&k->step, o, step);
  if (!s->strict && !sn_compare_agrees(&k->step)) {
    measure_noise(k, false, step);
    k->allowed += sn_compare_allow_noise(&k->step, &k->noise);
  }
  if (!step_both(k, s->isolate)) return false;
  sn_compare_next(&k->step, o, step);
  if (!s->strict && !sn_compare_agrees(&k->step)) {
    measure_noise(k, true, step);
    k->allowed += sn_compare_allow_noise(&k->step, &k->noise);
  }
  return true;
}

static void compare_steps(Check *k, const Settings *s, Report *r) {
  sn_drive_start(&k->o);
  for (int step = 0; step < s->steps; ++step) {
    sn_compare_init(&k->step);
    sn_compare_init(&k->noise);
    k->allowed = 0;
    sn_drive_controls(&k->o, (uint64_t)s->seed, step * k->o.mj->opt.timestep);
    if (!check_step(k, s, step)) {
      ++r->restarts;
      sn_drive_start(&k->o);
    }
    r->noisy_steps += k->allowed > 0;
    sn_compare_add(&r->compare, &k->step);
    sn_compare_free(&k->step);
    sn_compare_free(&k->noise);
  }
}

// Takes over mj. Models and worlds of ours, MuJoCo's second data.
static SnCode open_check(Check *k, mjModel *mj, SnError *err) {
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

static void close_check(Check *k) {
  sinew_data_free(k->data);
  sinew_model_free(k->model);
  free(k->state);
  if (k->shaken) mj_deleteData(k->shaken);
  sn_oracle_free(&k->o);
}

// What the settings ask for beside the steps.
static void compare_more(const Check *k, const Settings *s, Report *r) {
  CheckBodies bodies = {.mj = k->o.mj, .d = k->o.d, .model = k->model, .data = k->data};
  SinewError why;
  SinewStatus status = SINEW_OK;
  if (s->gradient) status = check_gradient(&bodies, s->steps, (uint64_t)s->seed, &r->gradient, &why);
  if (s->integrate && status == SINEW_OK)
    status = check_integration(&bodies, s->steps, (uint64_t)s->seed, &r->integration, &why);
  if (status != SINEW_OK) sn_fail(&r->err, SN_ERR_STATE, "%s", why.text);
}

static const char *solver_name(int solver) {
  return solver == mjSOL_PGS ? "PGS" : solver == mjSOL_CG ? "CG" : "Newton";
}

static int run(const Settings *s, Report *r) {
  mjModel *mj = sn_oracle_read_file(s->model, &r->err);
  if (!mj) return EXIT_ERROR;
  r->solver = solver_name(mj->opt.solver);
  int count = 0;
  char *unsupported = sn_import_unsupported(mj, &count);
  if (count) {
    r->unsupported = unsupported;
    mj_deleteModel(mj);
    return EXIT_UNSUPPORTED;
  }
  free(unsupported);
  sn_oracle_tighten(mj);
  Check k = {.model = NULL};
  SnCode code = open_check(&k, mj, &r->err);
  if (code == SN_OK) sn_compare_sensors_left(k.o.m, r->sensors, sizeof r->sensors);
  if (code == SN_OK) compare_steps(&k, s, r);
  if (code == SN_OK) compare_more(&k, s, r);
  close_check(&k);
  if (r->err.code != SN_OK) return EXIT_ERROR;
  const bool agrees = sn_compare_agrees(&r->compare) && (!s->gradient || check_gradient_agrees(&r->gradient)) &&
                      (!s->integrate || check_integration_agrees(&r->integration));
  return agrees ? EXIT_AGREES : EXIT_DIFFERS;
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

static void add_figures(cJSON *to, const char *name, const CheckJacobian *f) {
  cJSON *figures = cJSON_AddObjectToObject(to, name);
  cJSON_AddNumberToObject(figures, "median", f->median);
  cJSON_AddNumberToObject(figures, "max", f->max);
  if (f->step < 0) return;
  cJSON_AddNumberToObject(figures, "step", f->step);
  cJSON_AddNumberToObject(figures, "row", f->row);
  cJSON_AddNumberToObject(figures, "column", f->column);
}

static void add_gradient(cJSON *root, const CheckGradientReport *g) {
  cJSON *gradient = cJSON_AddObjectToObject(root, "gradient");
  cJSON_AddBoolToObject(gradient, "agrees", check_gradient_agrees(g));
  add_figures(gradient, "A", &g->A);
  add_figures(gradient, "B", &g->B);
  cJSON_AddNumberToObject(gradient, "steps_compared", g->steps_compared);
  cJSON_AddNumberToObject(gradient, "steps_skipped", g->steps_skipped);
  cJSON_AddNumberToObject(gradient, "steps_curved", g->steps_curved);
  cJSON *rollout = cJSON_AddObjectToObject(gradient, "rollout");
  cJSON_AddNumberToObject(rollout, "max", g->rollout_max);
  cJSON_AddNumberToObject(rollout, "compared", g->rollout_compared);
  cJSON_AddNumberToObject(rollout, "skipped", g->rollout_skipped);
  cJSON_AddNumberToObject(rollout, "curved", g->rollout_curved);
  cJSON_AddNumberToObject(rollout, "steps", g->rollout_steps);
}

static void add_integration(cJSON *root, const CheckIntegrationReport *i) {
  cJSON *integration = cJSON_AddObjectToObject(root, "integration");
  cJSON_AddBoolToObject(integration, "agrees", check_integration_agrees(i));
  cJSON_AddNumberToObject(integration, "seconds", i->seconds);
  cJSON_AddNumberToObject(integration, "uncertainty", i->uncertainty);
  cJSON *rows = cJSON_AddArrayToObject(integration, "rows");
  for (int k = 0; k < CHECK_TOLERANCES; ++k) {
    cJSON *row = cJSON_CreateObject();
    cJSON_AddNumberToObject(row, "tolerance", i->row[k].tolerance);
    cJSON_AddNumberToObject(row, "error", i->row[k].error);
    cJSON_AddNumberToObject(row, "accepted", i->row[k].accepted);
    cJSON_AddNumberToObject(row, "rejected", i->row[k].rejected);
    cJSON_AddNumberToObject(row, "evaluations", i->row[k].evaluations);
    cJSON_AddItemToArray(rows, row);
  }
  cJSON *slopes = cJSON_AddObjectToObject(integration, "slopes");
  cJSON_AddNumberToObject(slopes, "max", i->slope_error);
  cJSON_AddNumberToObject(slopes, "compared", i->slopes_compared);
  cJSON_AddNumberToObject(slopes, "skipped", i->slopes_skipped);
}

static void add_warnings(cJSON *root) {
  cJSON *list = cJSON_AddArrayToObject(root, "warnings");
  const SnMujocoWarning *warning;
  for (int i = 0; (warning = sn_mujoco_warning(i)); ++i) {
    cJSON *item = cJSON_CreateObject();
    cJSON_AddNumberToObject(item, "count", (double)warning->count);
    cJSON_AddStringToObject(item, "first", warning->first);
    cJSON_AddItemToArray(list, item);
  }
}

static void print_json(const Settings *s, const Report *r) {
  cJSON *root = cJSON_CreateObject(), *fields = cJSON_CreateObject();
  cJSON_AddStringToObject(root, "model", s->model);
  cJSON_AddStringToObject(root, "verdict", r->verdict);
  cJSON_AddNumberToObject(root, "steps", r->compare.steps);
  cJSON_AddNumberToObject(root, "loose_steps", r->compare.loose_steps);
  cJSON_AddNumberToObject(root, "noisy_steps", r->noisy_steps);
  cJSON_AddNumberToObject(root, "restarts", r->restarts);
  cJSON_AddItemToObject(root, "unsupported", lines(r->unsupported ? r->unsupported : ""));
  if (r->exit_code == EXIT_ERROR) cJSON_AddStringToObject(root, "error", r->err.text);
  if (r->solver) cJSON_AddStringToObject(root, "solver_of_model", r->solver);
  if (r->compare.steps) cJSON_AddStringToObject(root, "solver", solver_name(mjSOL_NEWTON));
  add_warnings(root);
  if (r->compare.note[0]) cJSON_AddStringToObject(root, "note", r->compare.note);
  if (r->sensors[0]) cJSON_AddStringToObject(root, "sensors_not_computed", r->sensors);
  for (int i = 0; i < SN_CMP_COUNT; ++i) {
    const SnFieldError *f = &r->compare.field[i];
    if (f->step < 0) continue;
    cJSON *field = cJSON_AddObjectToObject(fields, sn_compared_name((SnCompared)i));
    cJSON_AddNumberToObject(field, "rel", f->rel);
    cJSON_AddNumberToObject(field, "step", f->step);
    cJSON_AddNumberToObject(field, "element", f->element);
    cJSON_AddNumberToObject(field, "tolerance", f->tol);
    if (f->noise >= 0) cJSON_AddNumberToObject(field, "noise", f->noise);
    cJSON_AddBoolToObject(field, "agrees", !f->differs);
  }
  cJSON_AddItemToObject(root, "fields", fields);
  if (s->gradient) add_gradient(root, &r->gradient);
  if (s->integrate) add_integration(root, &r->integration);
  char *text = cJSON_Print(root);
  puts(text ? text : "{}");
  cJSON_free(text);
  cJSON_Delete(root);
}

static void print_gradient(const CheckGradientReport *g) {
  printf("\n%-22s %12s %12s %10s %8s\n", "gradient", "median", "largest", "compared", "skipped");
  printf("%-22s %12.3e %12.3e %10d %8d\n", "A", g->A.median, g->A.max, g->steps_compared, g->steps_skipped);
  printf("%-22s %12.3e %12.3e\n", "B", g->B.median, g->B.max);
  printf("%-22s %12s %12.3e %10d %8d\n", "rollout", "", g->rollout_max, g->rollout_compared, g->rollout_skipped);
  if (g->A.step >= 0) printf("largest of A: step %d, row %d, column %d", g->A.step, g->A.row, g->A.column);
  if (g->B.step >= 0) printf("; of B: step %d, row %d, column %d", g->B.step, g->B.row, g->B.column);
  if (g->A.step >= 0) printf("\n");
}

static void print_integration(const CheckIntegrationReport *i) {
  printf("\n%-22s %12s %10s %10s %12s\n", "motion by tolerance", "rel. error", "steps", "rejected", "evaluations");
  for (int k = 0; k < CHECK_TOLERANCES; ++k)
    printf("%-22.0e %12.3e %10d %10d %12d\n", i->row[k].tolerance, i->row[k].error, i->row[k].accepted,
           i->row[k].rejected, i->row[k].evaluations);
  printf("of %.3g s; MuJoCo's steps themselves are certain to %.1e\n", i->seconds, i->uncertainty);
  printf("slopes: largest error %.3e, %d compared, %d skipped\n", i->slope_error, i->slopes_compared,
         i->slopes_skipped);
}

// The one verdict, and where the model differs.
static void print_verdict(const Settings *s, const Report *r) {
  const char *where[3];
  int n = 0;
  if (!sn_compare_agrees(&r->compare)) where[n++] = "fields";
  if (s->gradient && !check_gradient_agrees(&r->gradient)) where[n++] = "the gradient";
  if (s->integrate && !check_integration_agrees(&r->integration)) where[n++] = "the motion by chosen steps";
  printf("%s: %s", s->model, r->verdict);
  for (int i = 0; i < n && r->exit_code == EXIT_DIFFERS; ++i)
    printf("%s %s", i == 0 ? " in" : i + 1 < n ? "," : " and", where[i]);
  printf("\n");
}

// Says where MuJoCo did otherwise than the model asks, and its warnings.
static void print_mujoco(const Report *r) {
  const char *newton = solver_name(mjSOL_NEWTON);
  if (r->compare.steps && strcmp(r->solver, newton) != 0)
    printf("solver: %s in MuJoCo too; the model asks for %s\n", newton, r->solver);
  const SnMujocoWarning *warning;
  for (int i = 0; (warning = sn_mujoco_warning(i)); ++i)
    printf("warnings of MuJoCo: %ld, first: %s\n", warning->count, warning->first);
}

static void print_table(const Settings *s, const Report *r) {
  print_verdict(s, r);
  if (r->unsupported) printf("%s", r->unsupported);
  if (r->err.text[0]) printf("%s\n", r->err.text);
  print_mujoco(r);
  if (!r->compare.steps) return;
  printf("%d steps, %d of them with contacts of polyhedra or cylinder edges", r->compare.steps, r->compare.loose_steps);
  if (r->noisy_steps) printf(", %d where MuJoCo's own values are as uncertain", r->noisy_steps);
  if (r->restarts) printf(", %d restarts after MuJoCo diverged", r->restarts);
  printf("\n\n%-22s %12s %10s %10s %6s %8s\n", "field", "rel. error", "tolerance", "noise", "step", "element");
  for (int i = 0; i < SN_CMP_COUNT; ++i) {
    const SnFieldError *f = &r->compare.field[i];
    if (f->step < 0) continue;
    char noise[20] = "";
    if (f->noise >= 0) snprintf(noise, sizeof noise, "%.1e", f->noise);
    printf("%-22s %12.3e %10.1e %10s %6d %8d%s\n", sn_compared_name((SnCompared)i), f->rel, f->tol, noise, f->step,
           f->element, f->differs ? "  differs" : "");
  }
  if (r->compare.note[0]) printf("\n%s\n", r->compare.note);
  if (r->sensors[0]) printf("\nsensors that are not computed: %s\n", r->sensors);
  if (s->gradient) print_gradient(&r->gradient);
  if (s->integrate) print_integration(&r->integration);
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
      {"strict", 'x', NULL, 0, "no allowance for what is uncertain in MuJoCo's own values", 0},
      {0}};
  static const char doc[] =
      "Compares every stage of a step with MuJoCo's, at every step of a run that MuJoCo drives with seeded smooth "
      "controls.\vExample: sinew-check --steps 64 arm.xml\n\n"
      "A field that exceeds its tolerance is also compared with MuJoCo's own change when its state moves by rounding "
      "(1e-14); within ten times that it agrees, and the step counts as noisy. MuJoCo solves by Newton, whatever "
      "solver the model asks for, and resets no state that diverges: the run starts again then.\n\n"
      "--gradient: the Jacobians A, B of each step against MuJoCo's central differences, and the derivative of a cost "
      "of "
      "a whole rollout along 8 random directions against central differences of our rollout. What differs between "
      "differences with 1e-6 and 1e-5 by more than 1e-6 is skipped. Agrees with A and B within 1e-5 (median) and 1e-4 "
      "(largest), rollouts within 1e-4, and at most a quarter skipped.\n\n"
      "--integrate: a motion of --steps steps of the model under held controls, by Tsit5 at tolerances 1e-4, 1e-6 and "
      "1e-8, beside MuJoCo's RK4 with steps 32 times as fine; refsafe is off in both. Agrees with the last motion "
      "within "
      "1e-6 and four times what MuJoCo's steps of twice that size are off, and with slopes within 1e-3; the motion is "
      "halved where these are off by more than 1e-3.\n\nExit "
      "status: 0 agrees, 1 differs, 2 "
      "the model uses what is not supported (all of it is listed), 3 it cannot be "
      "loaded.";
  const struct argp argp = {.options = options, .parser = parse, .args_doc = "MODEL", .doc = doc};
  argp_err_exit_status = EXIT_ERROR;
  sn_mujoco_messages("sinew-check", EXIT_ERROR);
  sn_mujoco_count_warnings();
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
