// Bounds of what the wire leaves to who reads it: settings of planner and session, weights, leases of streams.
#ifndef SINEW_TESTS_FUZZ_DAEMON_BOUNDS_H_
#define SINEW_TESTS_FUZZ_DAEMON_BOUNDS_H_

#include "tests/fuzz/message_maker.h"

// Makes bounds those that sinewd has for a field; others stay.
void fuzz_daemon_bounds(const ProtobufCMessageDescriptor *message, const char *field, SnFieldBounds *bounds);

// Returns the name of a number in a request that has no bounds but those of all numbers; NULL: there is none.
const char *fuzz_daemon_unbounded(void);

#endif
