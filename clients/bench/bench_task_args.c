#include "clients/bench/bench_task.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "physics/import/import_mjcf.h"
#include "proto/places.h"

BenchTaskArgs bench_default_task_args(void) { return (BenchTaskArgs){.seconds = 1, .execute = 16, .seed = 1}; }

static void add(struct argp_state *state, const char *name, const char **list, int most, int *n, const char *text) {
  if (*n == most) argp_error(state, "too many --%s: at most %d", name, most);
  list[(*n)++] = text;
}

static int parse(int key, char *arg, struct argp_state *state) {
  BenchTaskArgs *args = state->input;
  switch (key) {
    case 't':
      args->task = arg;
      return 0;
    case 'x':
      add(state, "set", args->settings, BENCH_SETTINGS, &args->nsettings, arg);
      return 0;
    case 'T':
      args->tasks = arg;
      return 0;
    case 'm':
      add(state, "models", args->places.models, PLANT_MODELS, &args->places.nmodels, arg);
      return 0;
    case ARGP_KEY_END:
      if (!args->task) argp_error(state, "--task is needed");
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

SnCode bench_set_all(const BenchTaskArgs *args, SnSettings *s, SnError *err) {
  SnCode code = SN_OK;
  for (int i = 0; code == SN_OK && i < args->nsettings; ++i) code = sn_settings_assign(s, args->settings[i], err);
  return code;
}

SnTask *bench_load_task(const BenchTaskArgs *args, SnError *err) {
  char folder[SN_PLACE_SIZE], path[2200];
  const size_t n = strlen(args->task);
  const bool ended = n > 5 && strcmp(args->task + n - 5, ".yaml") == 0;
  if (strchr(args->task, '/')) return sn_task_load(args->task, err);
  if (!args->tasks && !sn_place_of_tasks(folder, sizeof folder)) {
    sn_fail(err, SN_ERR_IO, "cannot tell where this program lies; name the folder of tasks");
    return NULL;
  }
  snprintf(path, sizeof path, "%s/%s%s", args->tasks ? args->tasks : folder, args->task, ended ? "" : ".yaml");
  return sn_task_load(ended && access(path, R_OK) != 0 && access(args->task, R_OK) == 0 ? args->task : path, err);
}

SnCode bench_load_model(const BenchTaskArgs *args, const SnTask *task, PlantBody *body, SnModel **model, SnError *err) {
  char text[4096];
  if (!plant_body_open(body, &args->places, NULL, task->model, text, sizeof text))
    return sn_fail(err, SN_ERR_NOT_FOUND, "%s", text);
  *model = sn_import_mjmodel(body->m, err);
  return *model ? SN_OK : err->code;
}
