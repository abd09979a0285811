// The arguments of modes that drive a model by seeded smooth controls.
#ifndef SINEW_CLIENTS_BENCH_DRIVEN_ARGS_PRIVATE_H_
#define SINEW_CLIENTS_BENCH_DRIVEN_ARGS_PRIVATE_H_

#include <argp.h>
#include <stdbool.h>

enum { DRIVEN_LEAD = 50 };  // steps that MuJoCo makes before a rollout begins

// Holds the arguments that modes on a driven model have in common.
typedef struct DrivenArgs {
  const char *model;  // path of the MJCF
  int steps, rounds;  // rounds at most BENCH_ROUNDS
  long seed;
  bool json;
} DrivenArgs;

// Parses --model, --steps, --rounds, --seed and --json. It is a child of a mode's own argp, and its input is the
// DrivenArgs.
extern const struct argp driven_argp;

#endif
