// Arguments that sinew-check and sinew-bench share. What is not allowed ends the program with argp's message.
#ifndef SINEW_CLIENTS_BASE_ARGS_H_
#define SINEW_CLIENTS_BASE_ARGS_H_

#include <argp.h>
#include <stdbool.h>

// The value of option --name: a number from 1 to `most`.
int sn_arg_count(const struct argp_state *state, const char *name, const char *arg, int most);
// The value of option --seed: a number from 0.
long sn_arg_seed(const struct argp_state *state, const char *arg);
// The value of option --name: seconds above 0, at most 10,000.
double sn_arg_seconds(const struct argp_state *state, const char *name, const char *arg);
// The value of option --name: numbers from 1 to `most`, apart by commas, into list[room]. Returns how many.
int sn_arg_list(const struct argp_state *state, const char *name, const char *arg, int most, int *list, int room);
enum { SN_ARG_LIST = 16 };  // room that is enough
// The value of option --name: on or off.
bool sn_arg_switch(const struct argp_state *state, const char *name, const char *arg);

// What the benchmarks on a driven model have in common: input of the argp driven_model_argp, a child of theirs.
typedef struct DrivenModelArgs {
  const char *model;
  int steps, rounds;  // rounds at most BENCH_ROUNDS
  long seed;
  bool json;
} DrivenModelArgs;
enum { BENCH_ROUNDS = 1000 };
extern const struct argp driven_model_argp;

#endif
