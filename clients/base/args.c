#include "clients/base/args.h"

#include <stdlib.h>
#include <string.h>

int sn_arg_count(const struct argp_state *state, const char *name, const char *arg, int most) {
  char *end = NULL;
  const int count = (int)strtol(arg, &end, 10);
  if (*end || count < 1 || count > most) argp_error(state, "--%s %s: a number from 1 to %d", name, arg, most);
  return count;
}

long sn_arg_seed(const struct argp_state *state, const char *arg) {
  char *end = NULL;
  const long seed = strtol(arg, &end, 10);
  if (*end || seed < 0) argp_error(state, "--seed %s: a number from 0", arg);
  return seed;
}

double sn_arg_seconds(const struct argp_state *state, const char *name, const char *arg) {
  char *end;
  const double x = strtod(arg, &end);
  if (end == arg || *end || !(x > 0 && x <= 1e4)) argp_error(state, "--%s %s: seconds, above 0", name, arg);
  return x;
}

int sn_arg_list(const struct argp_state *state, const char *name, const char *arg, int most, int *list, int room) {
  int n = 0;
  for (const char *at = arg; n < room; ++at) {
    char *end;
    const long x = strtol(at, &end, 10);
    if (end == at || (*end && *end != ',') || x < 1 || x > most) break;
    list[n++] = (int)x;
    if (!*end) return n;
    at = end;
  }
  argp_error(state, "--%s %s: at most %d numbers from 1 to %d, apart by commas", name, arg, room, most);
  return 0;
}

bool sn_arg_switch(const struct argp_state *state, const char *name, const char *arg) {
  if (strcmp(arg, "on") != 0 && strcmp(arg, "off") != 0) argp_error(state, "--%s %s: on or off", name, arg);
  return strcmp(arg, "on") == 0;
}

static int parse(int key, char *arg, struct argp_state *state) {
  DrivenModelArgs *s = state->input;
  switch (key) {
    case 'm':
      s->model = arg;
      return 0;
    case 'n':
      s->steps = sn_arg_count(state, "steps", arg, 100000);
      return 0;
    case 'r':
      s->rounds = sn_arg_count(state, "rounds", arg, BENCH_ROUNDS);
      return 0;
    case 's':
      s->seed = sn_arg_seed(state, arg);
      return 0;
    case 'j':
      s->json = true;
      return 0;
    case ARGP_KEY_END:
      if (!s->model) argp_error(state, "--model is needed");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
    {"model", 'm', "MODEL.xml", 0, "the model", 0},
    {"steps", 'n', "N", 0, "steps of the rollout (default 256)", 0},
    {"rounds", 'r', "N", 0, "passes of all measurements (default 9; of many worlds 3)", 0},
    {"seed", 's', "N", 0, "seed of the controls (default 0)", 0},
    {"json", 'j', NULL, 0, "print JSON", 0},
    {0}};

const struct argp driven_model_argp = {.options = options, .parser = parse};
