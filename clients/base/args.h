// Values of options that several programs read. A value that is not allowed ends the program with argp's message.
#ifndef SINEW_CLIENTS_BASE_ARGS_H_
#define SINEW_CLIENTS_BASE_ARGS_H_

#include <argp.h>
#include <stdbool.h>

enum { SN_ARG_LIST = 16 };  // most numbers of a list

// Reads a number from `least` to `most`, of the option --`name`.
double sn_arg_number(const struct argp_state *state, const char *name, const char *arg, double least, double most);
// Reads the value of option --name: a number from 1 to `most`.
int sn_arg_count(const struct argp_state *state, const char *name, const char *arg, int most);
// Reads the value of option --name: a number from 0 to `most`.
int sn_arg_index(const struct argp_state *state, const char *name, const char *arg, int most);
// Reads the value of option --seed: a number from 0.
long sn_arg_seed(const struct argp_state *state, const char *arg);
// Reads the value of option --name: seconds above 0, at most 10,000.
double sn_arg_seconds(const struct argp_state *state, const char *name, const char *arg);
// Reads the value of option --name: seconds from 0, at most 10,000.
double sn_arg_latency(const struct argp_state *state, const char *name, const char *arg);
// Reads the value of option --name into list[capacity]: numbers from 1 to `most`, apart by commas. Returns how many.
int sn_arg_list(const struct argp_state *state, const char *name, const char *arg, int most, int *list, int capacity);
// Reads the value of option --name: on (true) or off.
bool sn_arg_switch(const struct argp_state *state, const char *name, const char *arg);

#endif
