// The event loop of sinewd.
#ifndef SINEW_DAEMON_DAEMON_H_
#define SINEW_DAEMON_DAEMON_H_

#include "daemon/requests/requests.h"

// Serves until SIGTERM or SIGINT, which the caller has blocked in all threads. Returns an error when the sockets cannot
// be opened, or requests cannot be listened to any more.
SnCode sn_event_loop(SnDaemon *daemon, SnError *err);

#endif
