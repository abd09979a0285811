// The latest plans of a session with the times of their stages, from the arrival of a state until its plan was sent.
// The event loop's.
#ifndef SINEW_DAEMON_MONITOR_TRACE_H_
#define SINEW_DAEMON_MONITOR_TRACE_H_

#include "daemon/wire/outbox.h"

enum { SN_TRACES = 32 };

// Holds what is known of one plan.
typedef struct SnTrace {
  SnStages stages;
  uint64_t request;  // id of the request that it answers
  double sent;       // when its socket had it, on sn_clock_now()
} SnTrace;

// Keeps the latest ones: number n, counted from 1, is at n % SN_TRACES.
typedef struct SnTraces {
  SnTrace trace[SN_TRACES];
  uint64_t newest;  // 0: there is none yet
} SnTraces;

// Notes a plan that was given to its socket at `sent`. Replies without a plan are passed over.
void sn_traces_add(SnTraces *traces, const SnReply *reply, double sent);

// Returns the number of the oldest one that is kept and comes after number `after`; newest + 1: there is none.
uint64_t sn_traces_first(const SnTraces *traces, uint64_t after);
// Returns one that is kept.
const SnTrace *sn_traces_at(const SnTraces *traces, uint64_t number);

// Packs a trace into a message, which refers to nothing else.
void sn_trace_pack(const SnTrace *trace, uint64_t number, Sinew__V1__PlanTrace *out);

#endif
