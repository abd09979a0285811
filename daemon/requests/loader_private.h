// Work for the loader threads.
#ifndef SINEW_DAEMON_REQUESTS_LOADER_PRIVATE_H_
#define SINEW_DAEMON_REQUESTS_LOADER_PRIVATE_H_

#include "daemon/requests/requests.h"

// Hands a job over; false when the queue is full, and the caller keeps it. An open request needs a place reserved in
// the sessions.
bool sn_loader_push(SnDaemon *daemon, SnJob *job);

#endif
