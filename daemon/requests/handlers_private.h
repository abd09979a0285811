// What the event loop does with a request: answer it at once, or check it and hand it to a thread. One row a request in
// handlers.c; a handler returns SN_OK when it has answered, or keeps, the job.
#ifndef SINEW_DAEMON_REQUESTS_HANDLERS_PRIVATE_H_
#define SINEW_DAEMON_REQUESTS_HANDLERS_PRIVATE_H_

#include "daemon/daemon.h"

// On failure err becomes the reply, and the job is freed by the caller.
typedef SnCode SnHandler(SnDaemon *daemon, SnJob *job, SnError *err);

SnHandler sn_handle_hello, sn_handle_health, sn_handle_statistics;  // handlers_service.c
SnHandler sn_handle_open, sn_handle_close, sn_handle_plan, sn_handle_evaluate, sn_handle_command,
    sn_handle_state;  // handlers_session.c

// Sends a reply and frees the job.
void sn_answer(SnDaemon *daemon, SnJob *job, Sinew__V1__Reply *reply);

#endif
