// The configurations that a session has had: settings of planner and session, weights and targets. Each change is a
// version; the latest ones are kept, can be read, and be put in force again as a new version.
#ifndef SINEW_DAEMON_SESSION_HISTORY_H_
#define SINEW_DAEMON_SESSION_HISTORY_H_

#include "planner/planner.h"

// Versions kept of a session: the one in force and those before it.
enum { SN_HISTORY = 1024 };

// The daemon's own settings of a session.
typedef struct SnSessionSettings {
  double latency, lease, time_to_live;  // [s], see sinew.proto
} SnSessionSettings;

// What a version holds for a term of the cost.
typedef struct SnVersionTerm {
  double weight, terminal;
  int target;  // first entry in SnVersion.target, -1: the task's own target
  int size;    // entries of a target
} SnVersionTerm;

// One configuration. Read-only once it is in the history.
typedef struct SnVersion {
  uint64_t number, reverted_to;  // see Config of the wire
  SnSettings planner;
  SnSessionSettings session;
  int nterm;
  SnVersionTerm *term;  // (nterm)
  double *target;       // of all terms that have one
} SnVersion;

typedef struct SnHistory {
  SnVersion *version[SN_HISTORY];  // a ring: number n is at n % SN_HISTORY
  uint64_t newest;                 // 0: none yet
} SnHistory;

// A copy of what is in force at the planner, as a version of its own; not in the history yet. NULL when out of memory.
SnVersion *sn_version_capture(const SnPlanner *planner, const SnSessionSettings *session);
void sn_version_free(SnVersion *version);

// Puts what a version holds in force at the planner of its session.
SnCode sn_version_restore(const SnVersion *version, SnPlanner *planner, SnError *err);

// Adds a version, which the history owns from then on, under the next number, and labels the planner's settings with
// it. The oldest one goes where there is no room.
void sn_history_add(SnHistory *history, SnVersion *version, SnPlanner *planner);

// Version `number`, 0 for the newest; NULL when it is not kept.
const SnVersion *sn_history_find(const SnHistory *history, uint64_t number);
uint64_t sn_history_oldest(const SnHistory *history);
void sn_history_free(SnHistory *history);

#endif
