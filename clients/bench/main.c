// sinew-bench MODE: figures of speed, always as ratios taken in one run, because machines differ and drift.
#include "clients/bench/bench.h"

#include <stdio.h>
#include <string.h>

#include "clients/reference/mujoco_log.h"
#include "physics/base/output.h"

static const struct {
  const char *name, *text;
  int (*run)(int argc, char **argv);
} modes[] = {
    {"step", "one step of the world, ours and MuJoCo's in turn, one thread", mode_step},
    {"batch", "many rollouts through the public header, against MuJoCo's own", mode_batch},
    {"mpc", "a closed loop with MuJoCo as the body: success, cost over time, time of a plan", mode_mpc},
    {"compare", "adam and sampling side by side, at equal plan steps and equal planning time", mode_compare},
    {"gradient", "value and gradient of a rollout, against the rollout and MuJoCo's differences", mode_gradient},
    {"device", "from how many at once a device is faster than the CPU", mode_device},
    {"refine", "an iteration of refinements: one session, many, many starts; a planner's plan", mode_refine},
    {"memory", "resident memory of many worlds, ours and MuJoCo's", mode_memory},
    {"sweep", "a cost and its slopes over an initial velocity, with contacts from distance and without", mode_sweep},
    {"integrate", "a tossed body by chosen steps: time and error of value and gradient over tolerances",
     mode_integrate},
};
enum { MODES = sizeof modes / sizeof *modes };

static void print_help(FILE *out) {
  fprintf(out, "Usage: sinew-bench MODE [OPTION...]\n\nModes (sinew-bench MODE --help says more):\n");
  for (int i = 0; i < MODES; ++i) fprintf(out, "  %-10s %s\n", modes[i].name, modes[i].text);
  fprintf(out, "\nExample: sinew-bench step --model arm.xml --json\n");
}

int main(int argc, char **argv) {
  sn_output_guard("sinew-bench", 3);
  sn_mujoco_messages("sinew-bench", 3);
  const char *mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "--help") == 0 || strcmp(mode, "-h") == 0) {
    print_help(stdout);
    return 0;
  }
  for (int i = 0; i < MODES; ++i) {
    if (strcmp(mode, modes[i].name) != 0) continue;
    char program[100];
    snprintf(program, sizeof program, "sinew-bench %s", mode);
    argv[1] = program;
    return modes[i].run(argc - 1, argv + 1);
  }
  if (mode[0]) fprintf(stderr, "sinew-bench: no mode '%s'\n", mode);
  print_help(stderr);
  return 3;
}
