// Counts of requests, replies and plans. The event loop counts, from what replies carry: the threads that plan
// and load take no lock for it, and allocate nothing.
#ifndef SINEW_DAEMON_MONITOR_COUNTERS_H_
#define SINEW_DAEMON_MONITOR_COUNTERS_H_

#include <stdatomic.h>

#include "daemon/wire/outbox.h"

// Sizes the tables: by the number of a request's body in the schema, of an error's code (0: none), of a plan's status.
// Numbers beyond them, of a later schema, count as 0.
enum { SN_COUNT_KINDS = 32, SN_COUNT_CODES = 16, SN_COUNT_STATUSES = 8, SN_BUCKETS = 19 };

// Counts durations by length; the last bucket has those beyond all bounds. One thread adds, any may read: who reads the
// buckets first finds a sum of at least these.
typedef struct SnHistogram {
  atomic_uint_least64_t bucket[SN_BUCKETS + 1];
  _Atomic double sum;  // [s]
} SnHistogram;

// Returns the upper bound of a bucket [s], which belongs to it; INFINITY of the last one.
double sn_histogram_bound(int bucket);
// Counts a duration [s]. One that is negative, of clocks read in two threads, counts as 0.
void sn_histogram_add(SnHistogram *histogram, double seconds);
uint64_t sn_histogram_count(const SnHistogram *histogram);

// Counts what was answered, of the daemon or of a session.
typedef struct SnOutcomes {
  uint64_t replies[SN_COUNT_CODES];
  uint64_t plans[SN_COUNT_STATUSES];
  uint64_t misses;  // states whose first plan came after its deadline
} SnOutcomes;

// Names why a message was no request.
typedef enum SnInvalid {
  SN_INVALID_NOBODY,     // the sender cannot be answered: a name that is too long, a key that is off the list
  SN_INVALID_FRAMES,     // several frames
  SN_INVALID_MALFORMED,  // no Request of this schema
  SN_INVALID_FIELD,      // a field out of its bounds
  SN_INVALID_KINDS
} SnInvalid;

typedef struct SnCounters {
  uint64_t requests[SN_COUNT_KINDS];  // by kind; [0]: messages that are none
  uint64_t replies[SN_COUNT_KINDS][SN_COUNT_CODES];
  uint64_t invalid[SN_INVALID_KINDS];
  uint64_t permission, quota;  // requests refused for their peer's role, or for its quotas
  SnOutcomes all;
  SnHistogram waiting, computing, sending, whole;  // parts of plans' time
  SnHistogram turns;                               // how long the event loop was busy between two waits
} SnCounters;

// Counts a reply that was given to its socket at `now`, for the daemon and, unless NULL, for its session.
void sn_counters_reply(SnCounters *counters, SnOutcomes *session, const SnReply *reply, double now);

// Returns names as they stand in the schema, static; NULL where the number means nothing. Kind 0 is "none", code 0
// "OK".
const char *sn_count_kind(int kind);
const char *sn_count_code(int code);
const char *sn_count_status(int status);
// Returns the name of an SnInvalid.
const char *sn_count_invalid(int reason);

#endif
