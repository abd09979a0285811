// The handlers of requests, one a request; handlers.c knows which. The event loop calls them.
//
// A handler returns SN_OK when it has answered the job, or keeps it. On failure err becomes the reply, and the caller
// frees the job.
#ifndef SINEW_DAEMON_REQUESTS_HANDLERS_PRIVATE_H_
#define SINEW_DAEMON_REQUESTS_HANDLERS_PRIVATE_H_

#include "daemon/requests/requests.h"

typedef SnCode SnHandler(SnDaemon *daemon, SnJob *job, SnError *err);

// ---- answered at once (handlers_service.c) ----

SnCode sn_handle_hello(SnDaemon *daemon, SnJob *job, SnError *err);
SnCode sn_handle_health(SnDaemon *daemon, SnJob *job, SnError *err);
SnCode sn_handle_statistics(SnDaemon *daemon, SnJob *job, SnError *err);

// Answers with all metrics (metrics_text.c).
SnCode sn_handle_metrics(SnDaemon *daemon, SnJob *job, SnError *err);
// Answers with traces of a session's plans (handlers_trace.c).
SnCode sn_handle_trace(SnDaemon *daemon, SnJob *job, SnError *err);

// Answers with a file of the flight recorder, when it has been written (handlers_flight.c).
SnCode sn_handle_flight(SnDaemon *daemon, SnJob *job, SnError *err);

// ---- requests to a session (handlers_session.c) ----

SnCode sn_handle_open(SnDaemon *daemon, SnJob *job, SnError *err);
SnCode sn_handle_close(SnDaemon *daemon, SnJob *job, SnError *err);
SnCode sn_handle_plan(SnDaemon *daemon, SnJob *job, SnError *err);
SnCode sn_handle_state(SnDaemon *daemon, SnJob *job, SnError *err);
SnCode sn_handle_evaluate(SnDaemon *daemon, SnJob *job, SnError *err);
// Handles reset; reading, setting and reverting the configuration; begin and end of continuous mode; snapshots.
SnCode sn_handle_command(SnDaemon *daemon, SnJob *job, SnError *err);

// Sends a reply and frees the job.
void sn_answer(SnDaemon *daemon, SnJob *job, Sinew__V1__Reply *reply);

// Returns the session of a request, or NULL and err when there is none, or not yet. Renews no lease.
SnSession *sn_find_session(SnDaemon *daemon, SnJob *job, uint64_t id, SnError *err);

// Refuses a job since its session "is being" opened or restored; whoever asked shall ask again.
SnCode sn_fail_coming(SnJob *job, const char *what, SnError *err);

// Refuses a job since there is no session of that id, for a reason (NULL: the usual one).
SnCode sn_fail_no_session(SnJob *job, uint64_t id, const char *why, SnError *err);

#endif
