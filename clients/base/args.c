#include "clients/base/args.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

double sn_arg_number(const struct argp_state *state, const char *name, const char *arg, double least, double most) {
  char *end;
  const double x = strtod(arg, &end);
  if (end == arg || *end || !(x >= least && x <= most))
    argp_error(state, "--%s '%s': expected a number from %g to %g", name, arg, least, most);
  return x;
}

// Reads all of `arg` as a whole number from `least` to `most`. Returns false where it is none.
static bool whole(const char *arg, long least, long most, long *x) {
  char *end;
  errno = 0;
  *x = strtol(arg, &end, 10);
  return end != arg && !*end && errno == 0 && *x >= least && *x <= most;
}

int sn_arg_count(const struct argp_state *state, const char *name, const char *arg, int most) {
  long count;
  if (!whole(arg, 1, most, &count)) argp_error(state, "--%s '%s': expected a number from 1 to %d", name, arg, most);
  return (int)count;
}

int sn_arg_index(const struct argp_state *state, const char *name, const char *arg, int most) {
  long index;
  if (!whole(arg, 0, most, &index)) argp_error(state, "--%s '%s': expected a number from 0 to %d", name, arg, most);
  return (int)index;
}

long sn_arg_seed(const struct argp_state *state, const char *arg) {
  long seed;
  if (!whole(arg, 0, LONG_MAX, &seed)) argp_error(state, "--seed '%s': expected a number from 0 to %ld", arg, LONG_MAX);
  return seed;
}

double sn_arg_seconds(const struct argp_state *state, const char *name, const char *arg) {
  char *end;
  const double x = strtod(arg, &end);
  if (end == arg || *end || !(x > 0 && x <= 1e4))
    argp_error(state, "--%s '%s': expected seconds above 0, at most 10000", name, arg);
  return x;
}

double sn_arg_latency(const struct argp_state *state, const char *name, const char *arg) {
  char *end;
  const double x = strtod(arg, &end);
  if (end == arg || *end || !(x >= 0 && x <= 1e4))
    argp_error(state, "--%s '%s': expected seconds from 0 to 10000", name, arg);
  return x;
}

int sn_arg_list(const struct argp_state *state, const char *name, const char *arg, int most, int *list, int capacity) {
  int n = 0;
  for (const char *at = arg; n < capacity; ++at) {
    char *end;
    const long x = strtol(at, &end, 10);
    if (end == at || (*end && *end != ',') || x < 1 || x > most) break;
    list[n++] = (int)x;
    if (!*end) return n;
    at = end;
  }
  argp_error(state, "--%s %s: at most %d numbers from 1 to %d, apart by commas", name, arg, capacity, most);
  return 0;
}

bool sn_arg_switch(const struct argp_state *state, const char *name, const char *arg) {
  if (strcmp(arg, "on") != 0 && strcmp(arg, "off") != 0) argp_error(state, "--%s %s: on or off", name, arg);
  return strcmp(arg, "on") == 0;
}
