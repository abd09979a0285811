#include "clients/bench/bench_task_args.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "physics/import/import_mjcf.h"
#include "proto/places.h"

BenchTaskArgs bench_default_task_args(void) { return (BenchTaskArgs){.seconds = 1, .execute = 16, .seed = 1}; }

static void add(struct argp_state *state, const char *name, const char **list, int capacity, int *n, const char *text) {
  if (*n == capacity) argp_error(state, "too many --%s: at most %d", name, capacity);
  list[(*n)++] = text;
}

static int parse(int key, char *arg, struct argp_state *state) {
  BenchTaskArgs *c = state->input;
  switch (key) {
    case 't':
      c->task = arg;
      return 0;
    case 'x':
      add(state, "set", c->settings, BENCH_SETTINGS, &c->nsettings, arg);
      return 0;
    case 'T':
      c->tasks = arg;
      return 0;
    case 'm':
      add(state, "models", c->models, BENCH_MODELS, &c->nmodels, arg);
      return 0;
    case ARGP_KEY_END:
      if (!c->task) argp_error(state, "--task is needed");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
    {"task", 't', "TASK", 0, "name of a task, with or without .yaml, or path of a task file", 0},
    {"set", 'x', "NAME=VALUE", 0, "a setting of the planner; may be repeated", 0},
    {"tasks", 'T', "FOLDER", 0, "of task files (default: the installed ones)", 0},
    {"models", 'm', "[NAME=]FOLDER", 0, "where MJCF is found by its name; may be repeated (default: as sinewd)", 0},
    {0}};

const struct argp bench_task_argp = {.options = options, .parser = parse};

SnCode bench_set(SnSettings *s, const char *assignment, SnError *err) {
  char name[64];
  const size_t n = strcspn(assignment, "=");
  if (assignment[n] != '=' || n >= sizeof name)
    return sn_fail(err, SN_ERR_ARGUMENT, "setting '%s': expected name=value", assignment);
  snprintf(name, sizeof name, "%.*s", (int)n, assignment);
  const int i = sn_settings_find(name);
  if (i < 0) return sn_fail(err, SN_ERR_ARGUMENT, "there is no setting '%s'", name);
  const char *text = assignment + n + 1;
  if (sn_settings_info(i)->type == SN_SETTING_TYPE_CHOICE) return sn_settings_set_name(s, i, text, err);
  char *end;
  const double value = strtod(text, &end);
  if (end == text || *end) return sn_fail(err, SN_ERR_ARGUMENT, "%s: '%s' is not a number", name, text);
  return sn_settings_set(s, i, value, err);
}

SnCode bench_set_all(const BenchTaskArgs *c, SnSettings *s, SnError *err) {
  SnCode code = SN_OK;
  for (int i = 0; code == SN_OK && i < c->nsettings; ++i) code = bench_set(s, c->settings[i], err);
  return code;
}

// A task by its name, with or without the ending, in the folder of tasks; else by its path.
SnTask *bench_load_task(const BenchTaskArgs *c, SnError *err) {
  char folder[SN_PLACE_SIZE], path[2200];
  const size_t n = strlen(c->task);
  const bool ended = n > 5 && strcmp(c->task + n - 5, ".yaml") == 0;
  if (strchr(c->task, '/')) return sn_task_load(c->task, err);
  if (!c->tasks && !sn_place_of_tasks(folder, sizeof folder)) {
    sn_fail(err, SN_ERR_IO, "cannot tell where this program lies; name the folder of tasks");
    return NULL;
  }
  snprintf(path, sizeof path, "%s/%s%s", c->tasks ? c->tasks : folder, c->task, ended ? "" : ".yaml");
  return sn_task_load(ended && access(path, R_OK) != 0 && access(c->task, R_OK) == 0 ? c->task : path, err);
}

// The model's file is found before MuJoCo knows its sizes: sizes of 0 are taken as they come.
SnCode bench_load_model(const BenchTaskArgs *c, const SnTask *task, PlantBody *body, SnModel **model, SnError *err) {
  char text[4096];
  PlantOptions opt = {.nmodels = c->nmodels};
  memcpy(opt.models, c->models, sizeof opt.models);
  if (!plant_body_open(body, &opt, NULL, task->model, text, sizeof text))
    return sn_fail(err, SN_ERR_NOT_FOUND, "%s", text);
  *model = sn_import_mjmodel(body->m, err);
  return *model ? SN_OK : err->code;
}
