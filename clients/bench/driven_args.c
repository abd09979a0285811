#include "clients/bench/driven_args_private.h"

#include "clients/base/args.h"
#include "clients/bench/bench_report.h"

static int parse(int key, char *arg, struct argp_state *state) {
  DrivenArgs *s = state->input;
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
    {"steps", 'n', "N", 0, "steps of the rollout (default 256; device: 64)", 0},
    {"rounds", 'r', "N", 0, "passes of all measurements (default 9; of many worlds 3; device: by --seconds)", 0},
    {"seed", 's', "N", 0, "seed of the controls (default 0)", 0},
    {"json", 'j', NULL, 0, "print JSON", 0},
    {0}};

const struct argp driven_argp = {.options = options, .parser = parse};
