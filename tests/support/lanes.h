// Lane emulation: several host threads are the lanes of one world, with a real barrier.
// ThreadSanitizer reports a missing barrier as a data race. A barrier that not all lanes reach times out and names the
// file and line where the lanes wait.
#ifndef SINEW_TESTS_SUPPORT_LANES_H_
#define SINEW_TESTS_SUPPORT_LANES_H_

#include "physics/base/lane.h"

// Runs as one lane; arg is shared by all lanes.
typedef void SnLaneBody(SnLane *lane, void *arg);

// Runs body(lane, arg) once on each of n lanes of one world and returns when all are done. In a build without SN_LANES
// only n = 1 is allowed. A stuck barrier prints where and ends the process.
void sn_lanes_run(int n, SnLaneBody *body, void *arg);

#endif
