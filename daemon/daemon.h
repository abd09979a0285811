// All of a running sinewd in one place, handed to whoever needs it: no globals.
#ifndef SINEW_DAEMON_DAEMON_H_
#define SINEW_DAEMON_DAEMON_H_

#include "daemon/requests/loader.h"
#include "daemon/base/systemd.h"
#include "proto/validate.h"

typedef struct SnDaemon {
  SnConfig config;
  SnLog log;
  SnSystemd systemd;
  double started;  // on sn_clock_now()

  SnOutbox outbox;
  SnModels models;
  SnSessions sessions;
  SnScheduler scheduler;
  SnLoader loader;
  SnMetrics metrics;

  // The event loop's.
  SnWireArena arena;
  uint64_t requests, errors, malformed;
  bool stopping;
} SnDaemon;

// Answers one frame from a client, or hands it to a thread that will. The event loop's.
void sn_handle_frame(SnDaemon *daemon, const SnRoute *route, const void *bytes, size_t size);

// Statistics of the daemon (session NULL) or of one session, packed into the scratch of the reply.
struct SnScratch;
Sinew__V1__Statistics *sn_pack_statistics(SnDaemon *daemon, struct SnScratch *scratch, SnSession *session);

// Memory of this process in bytes; 0 when the system does not say.
uint64_t sn_resident_memory(void);

// Closes the sessions whose lease has run out.
void sn_close_expired(SnDaemon *daemon);

// Serves until SIGTERM or SIGINT, which the caller has blocked in all threads. err when the sockets cannot be opened.
SnCode sn_event_loop(SnDaemon *daemon, SnError *err);

#endif
