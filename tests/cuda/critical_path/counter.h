// Counts the loads and stores of the lanes of one world, phase by phase. The lanes are coroutines of one thread. The
// compiler calls the counter at each access of what is built with -fsanitize=thread, whose library is not linked.
// Nobody sees what a compiler keeps in registers, or what the C library does.
#ifndef SINEW_TESTS_CUDA_CRITICAL_PATH_COUNTER_H_
#define SINEW_TESTS_CUDA_CRITICAL_PATH_COUNTER_H_

#include <stdbool.h>
#include <stddef.h>

#include "physics/base/lane.h"

enum { COUNTER_LANES = 256 };

// Says where an access goes.
typedef enum CounterPlace {
  COUNTER_WORLD,   // arrays of the world
  COUNTER_BARS,    // arrays of the adjoint
  COUNTER_MODEL,   // arrays of the model
  COUNTER_FIELDS,  // the structs that hold pointers to these, sizes, options; the lane and what lanes share
  COUNTER_STACK,   // arrays of a lane's own
  COUNTER_PLACES
} CounterPlace;

// Tells what lies between two barriers, or after the last one.
typedef struct CounterPhase {
  long most;         // accesses of the lane that has the most: those on the critical path. Lanes that pass numbers
                     // (sn_shuffle) wait for each other: from one shuffle to the next it may be another lane
  long issued;       // accesses that a warp issues: one where several lanes have the same one of the text
  long all;          // accesses of all lanes
  int shuffles;      // numbers passed one after the other
  int active;        // lanes that do more than what every lane does
  int mark;          // SnMark of the stage that it belongs to
  const char *file;  // holds the barrier that ends it; "end" after the last one
  int line;
} CounterPhase;

typedef void CounterBody(SnLane *lane, void *arg);

// Names memory: accesses to it are counted for a place. The stack has what is in no range.
void counter_range(CounterPlace place, const void *memory, size_t bytes);
// Names the memory that lanes share.
void counter_lanes(void);
// Runs body(lane, arg) on n lanes and counts. Keeps phases until the next run. Returns false, with a message on
// stderr, where lanes came to different barriers.
bool counter_run(int n, CounterBody *body, void *arg);
// Returns the phases of the latest run.
const CounterPhase *counter_phases(int *n);
// Returns the bytes of a place that the latest run touched, in sectors of 32 bytes.
long counter_touched(CounterPlace place);

#endif
