// The command line of sinewctl.
#ifndef SINEW_CLIENTS_SINEWCTL_OPTIONS_PRIVATE_H_
#define SINEW_CLIENTS_SINEWCTL_OPTIONS_PRIVATE_H_

#include "clients/include/sinew_client.h"
#include "clients/sinewctl/watch_private.h"

// Holds what the command line says.
typedef struct Options {
  SinewClientDef daemon;
  const char *name;
  double timeout, deadline;
  uint64_t seed;
  bool json, states, gradient, has_seed;
  uint64_t version;  // shown by config; 0: the one in force
  WatchOptions watch;
  const char *word[64];  // command and its arguments
  int nword;
} Options;

// Reads the command line over the defaults that options has; ends the program for help, and where it is wrong.
void options_read(int argc, char **argv, Options *options);

// Reads a whole number: digits alone, of up to 64 bits. Returns false for anything else.
bool options_whole_number(const char *text, uint64_t *value);

#endif
