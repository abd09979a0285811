#include "clients/bench/bench_task_args.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/places.h"

BenchTaskArgs bench_default_task_args(void) {
  return (BenchTaskArgs){.seconds = 1, .execute = 16, .latency_told = -1, .seed = 1};
}

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

bool bench_task_path(const BenchTaskArgs *args, char path[BENCH_PATH]) {
  char folder[SN_PLACE_SIZE];
  const size_t n = strlen(args->task);
  const bool ended = n > 5 && strcmp(args->task + n - 5, ".yaml") == 0;
  if (strchr(args->task, '/')) return snprintf(path, BENCH_PATH, "%s", args->task) < BENCH_PATH;
  if (!args->tasks && !sn_place_of_tasks(folder, sizeof folder)) return false;
  const int size =
      snprintf(path, BENCH_PATH, "%s/%s%s", args->tasks ? args->tasks : folder, args->task, ended ? "" : ".yaml");
  if (ended && access(path, R_OK) != 0 && access(args->task, R_OK) == 0)
    return snprintf(path, BENCH_PATH, "%s", args->task) < BENCH_PATH;
  return size < BENCH_PATH;
}
