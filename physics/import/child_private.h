// A program run as a child process, with a time limit, and what it wrote to standard error.
#ifndef SINEW_PHYSICS_IMPORT_CHILD_PRIVATE_H_
#define SINEW_PHYSICS_IMPORT_CHILD_PRIVATE_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "physics/base/status.h"

typedef struct SnChildResult {
  bool timed_out;   // it was killed after `seconds`
  bool cancelled;   // it was killed because *cancel was set
  bool unknown;     // it ended, but its status is lost: the program ignores SIGCHLD, or waits for all of its children
  int signal;       // the one that ended it; 0: none
  int status;       // exit status, when none of the above
  char text[4000];  // the end of its standard error, without trailing line breaks
} SnChildResult;

// Runs argv[0] with the arguments argv (NULL at the end) and waits for it. Standard input and output are /dev/null. The
// program runs in a process group of its own, which is killed after `seconds`, or soon after *cancel (may be NULL)
// becomes true. Returns SN_OK also when the program failed; SN_ERR_IO when it could not be started. Any number of
// threads may call it.
SnCode sn_child_run(char *const argv[], double seconds, const atomic_bool *cancel, SnChildResult *result, SnError *err);

#endif
