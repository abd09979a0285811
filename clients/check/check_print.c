// What a check came to, as a table and as JSON.
#include "clients/check/check_print_private.h"

#include <stdio.h>
#include <string.h>

#include "clients/reference/mujoco_log.h"

const char *check_verdict_name(CheckVerdict verdict) {
  static const char *const name[] = {"agrees", "differs", "unsupported", "error", "undecided"};
  return name[verdict];
}

// The first field that differs, in the order of the stages; -1: none.
static int first_field(const SnCompare *c) {
  for (int i = 0; i < SN_CMP_COUNT; ++i)
    if (c->field[i].differs) return i;
  return -1;
}

// Of a model that differs.
static void next_of_difference(const CheckReport *r, char *text, size_t size) {
  const int i = first_field(&r->steps.compare);
  if (i < 0) {
    const bool gradient = r->with_gradient && !check_gradient_agrees(&r->gradient);
    snprintf(text, size, "%s, fields agree; --report FILE writes what to report",
             gradient ? "derivatives differ at the step, row and column above" : "the motion by chosen steps differs");
    return;
  }
  const SnFieldError *f = &r->steps.compare.field[i];
  const SnStage stage = sn_compared_stage((SnCompared)i);
  const char *name = r->steps.element[i];
  snprintf(text, size,
           "%s is the first field that differs, at step %d%s%s; --isolate shows whether its stage is off by itself%s; "
           "--report FILE writes what to report",
           sn_compared_name((SnCompared)i), f->step, name[0] ? ", " : "", name,
           stage == SN_STAGE_COLLISION ? ", a margin of its geoms moves an edge of contacts" : "");
}

static const char *why_undecided(const CheckStepsReport *r) {
  if (check_steps_left_out(r)) return "MuJoCo diverged in more than a quarter of the steps";
  if (check_steps_undecided(r)) return "more than a quarter of the steps are ties, or MuJoCo diverged in them";
  return "nothing differs, but too little could be compared";
}

bool check_next_line(const CheckReport *r, char *text, size_t size) {
  text[0] = 0;
  switch (r->verdict) {
    case CHECK_AGREES:
      return false;
    case CHECK_DIFFERS:
      next_of_difference(r, text, size);
      return true;
    case CHECK_UNSUPPORTED:
      snprintf(text, size,
               "take out what is listed, or set it to MuJoCo's default; the rest of the model is supported");
      return true;
    case CHECK_ERROR:
      snprintf(text, size, "see that MuJoCo loads the file by itself: it may be a part of another one");
      return true;
    default:
      snprintf(text, size, "%s; try other states (--seed) or more of them (--steps)", why_undecided(&r->steps));
      return true;
  }
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
  if (f->row < 0) return;  // it has no entries
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

cJSON *check_json(const CheckReport *r) {
  cJSON *root = cJSON_CreateObject(), *fields = cJSON_CreateObject();
  const SnCompare *c = &r->steps.compare;
  cJSON_AddStringToObject(root, "model", r->model);
  cJSON_AddStringToObject(root, "verdict", check_verdict_name(r->verdict));
  cJSON_AddNumberToObject(root, "steps", c->steps);
  cJSON_AddNumberToObject(root, "loose_steps", c->loose_steps);
  cJSON_AddNumberToObject(root, "noisy_steps", r->steps.noisy_steps);
  cJSON_AddNumberToObject(root, "restarts", r->steps.restarts);
  cJSON_AddNumberToObject(root, "stiff_rows", r->steps.compare.stiff_rows);
  cJSON_AddNumberToObject(root, "singular_steps", r->steps.compare.singular_steps);
  cJSON_AddNumberToObject(root, "ties", r->steps.ties);
  if (r->steps.tie[0]) cJSON_AddStringToObject(root, "tie", r->steps.tie);
  cJSON_AddItemToObject(root, "unsupported", lines(r->unsupported ? r->unsupported : ""));
  if (r->verdict == CHECK_ERROR) cJSON_AddStringToObject(root, "error", r->err.text);
  if (r->solver) cJSON_AddStringToObject(root, "solver_of_model", r->solver);
  if (c->steps) cJSON_AddStringToObject(root, "solver", "Newton");
  add_warnings(root);
  if (c->note[0]) cJSON_AddStringToObject(root, "note", c->note);
  if (r->sensors[0]) cJSON_AddStringToObject(root, "sensors_not_computed", r->sensors);
  for (int i = 0; i < SN_CMP_COUNT; ++i) {
    const SnFieldError *f = &c->field[i];
    if (f->step < 0) continue;
    cJSON *field = cJSON_AddObjectToObject(fields, sn_compared_name((SnCompared)i));
    cJSON_AddNumberToObject(field, "rel", f->rel);
    cJSON_AddNumberToObject(field, "step", f->step);
    cJSON_AddNumberToObject(field, "element", f->element);
    if (r->steps.element[i][0]) cJSON_AddStringToObject(field, "name", r->steps.element[i]);
    cJSON_AddNumberToObject(field, "tolerance", f->tol);
    if (f->noise >= 0) cJSON_AddNumberToObject(field, "noise", f->noise);
    cJSON_AddBoolToObject(field, "agrees", !f->differs);
  }
  cJSON_AddItemToObject(root, "fields", fields);
  if (r->with_gradient) add_gradient(root, &r->gradient);
  if (r->with_integration) add_integration(root, &r->integration);
  char next[500];
  if (check_next_line(r, next, sizeof next)) cJSON_AddStringToObject(root, "next", next);
  return root;
}

static void print_gradient(const CheckGradientReport *g) {
  printf("\n%-22s %12s %12s %10s %8s\n", "gradient", "median", "largest", "compared", "skipped");
  printf("%-22s %12.3e %12.3e %10d %8d\n", "A", g->A.median, g->A.max, g->steps_compared, g->steps_skipped);
  printf("%-22s %12.3e %12.3e\n", "B", g->B.median, g->B.max);
  printf("%-22s %12s %12.3e %10d %8d\n", "rollout", "", g->rollout_max, g->rollout_compared, g->rollout_skipped);
  if (g->A.row >= 0) printf("largest of A: step %d, row %d, column %d", g->A.step, g->A.row, g->A.column);
  if (g->B.row >= 0) printf("; of B: step %d, row %d, column %d", g->B.step, g->B.row, g->B.column);
  if (g->A.row >= 0) printf("\n");
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

// The table of all fields.
static void print_fields(const CheckReport *r) {
  printf("%d steps, %d of them with contacts of polyhedra or cylinder edges", r->steps.compare.steps,
         r->steps.compare.loose_steps);
  if (r->steps.noisy_steps) printf(", %d where MuJoCo's own values are as uncertain", r->steps.noisy_steps);
  if (r->steps.compare.stiff_rows)
    printf("\nnot compared: efc_force of %d rows of %g and more in efc_D, which is rounding times that",
           r->steps.compare.stiff_rows, SN_STIFF);
  if (r->steps.compare.singular_steps)
    printf(
        "\nof %d steps the inertia is singular but for rounding: joints turn or slide along one line without armature",
        r->steps.compare.singular_steps);
  printf("\n\n%-22s %12s %10s %10s %6s %8s\n", "field", "rel. error", "tolerance", "noise", "step", "element");
  for (int i = 0; i < SN_CMP_COUNT; ++i) {
    const SnFieldError *f = &r->steps.compare.field[i];
    if (f->step < 0) continue;
    char noise[20] = "";
    if (f->noise >= 0) snprintf(noise, sizeof noise, "%.1e", f->noise);
    printf("%-22s %12.3e %10.1e %10s %6d %8d%s%s\n", sn_compared_name((SnCompared)i), f->rel, f->tol, noise, f->step,
           f->element, f->differs ? "  differs  " : "", f->differs ? r->steps.element[i] : "");
  }
  if (r->steps.compare.note[0]) printf("\n%s\n", r->steps.compare.note);
  if (r->sensors[0]) printf("\nnot compared: sensors that are not computed, and their buffers: %s\n", r->sensors);
  if (r->with_gradient) print_gradient(&r->gradient);
  if (r->with_integration) print_integration(&r->integration);
}

// The one verdict, and where the model differs.
static void print_verdict(const CheckReport *r) {
  const char *where[3];
  int n = 0;
  if (!sn_compare_agrees(&r->steps.compare)) where[n++] = "fields";
  if (r->with_gradient && !check_gradient_agrees(&r->gradient)) where[n++] = "the gradient";
  if (r->with_integration && !check_integration_agrees(&r->integration)) where[n++] = "the motion by chosen steps";
  printf("%s: %s", r->model, check_verdict_name(r->verdict));
  for (int i = 0; i < n && r->verdict == CHECK_DIFFERS; ++i)
    printf("%s %s", i == 0 ? " in" : i + 1 < n ? "," : " and", where[i]);
  printf("\n");
}

// Says where MuJoCo did otherwise than the model asks, and its warnings.
static void print_mujoco(const CheckReport *r) {
  const char *newton = "Newton";
  if (r->steps.compare.steps && strcmp(r->solver, newton) != 0)
    printf("solver: %s in MuJoCo too; the model asks for %s\n", newton, r->solver);
  const SnMujocoWarning *warning;
  for (int i = 0; (warning = sn_mujoco_warning(i)); ++i)
    printf("warnings of MuJoCo: %ld, first: %s\n", warning->count, warning->first);
}

void check_print(const CheckReport *r, bool brief) {
  char next[500];
  print_verdict(r);
  if (r->unsupported) printf("%s%s", r->unsupported, r->steps.compare.steps ? "\n" : "");
  if (r->err.text[0]) printf("%s\n", r->err.text);
  print_mujoco(r);
  if (r->steps.restarts)
    printf("not compared: %d steps in which MuJoCo diverged and was put back\n", r->steps.restarts);
  if (r->steps.ties > 0) printf("%d ties, first: %s\n", r->steps.ties, r->steps.tie);
  if (r->steps.compare.steps && !(brief && r->verdict == CHECK_AGREES)) print_fields(r);
  if (check_next_line(r, next, sizeof next)) printf("next: %s\n", next);
}
