// Requests: the event loop answers them at once, or checks them and hands them to the planner thread or to a loader
// thread.
#ifndef SINEW_DAEMON_REQUESTS_REQUESTS_H_
#define SINEW_DAEMON_REQUESTS_REQUESTS_H_

#include "daemon/base/systemd.h"
#include "daemon/monitor/counters.h"
#include "daemon/monitor/flight.h"
#include "daemon/monitor/http.h"
#include "daemon/planning/planning.h"
#include "daemon/session/pack.h"
#include "daemon/wire/records.h"
#include "daemon/wire/wire.h"
#include "planner/base/budget.h"
#include "proto/validate.h"

enum { SN_LOADER_THREADS = 16 };

// Holds the loader threads: all that may take long and is no planning. They list and describe models and tasks, load
// models, open sessions, and start them anew with another seed. A job that wants a model that another thread loads has
// no thread meanwhile. A client has all threads but one at most, so that others go on when what it asks for hangs.
typedef struct SnLoader {
  SnQueue jobs;        // SnJob
  atomic_int parked;   // jobs that wait for a model, or for others of their client
  atomic_bool ending;  // bodies that still settle are given up
  pthread_mutex_t mutex;
  SnRoute at_work[SN_LOADER_THREADS];  // client whose job each thread works on, size 0: none. Under the mutex
  SnJob *held;                         // jobs of clients that have their share of threads, oldest first
  SnJob *suspects;  // sessions to be restored one by one, since a daemon has ended while it did so. Under the mutex
  pthread_t thread[SN_LOADER_THREADS];
  int threads;
} SnLoader;

// Keeps the text of the metrics for a moment, so that who asks often costs little.
typedef struct SnMetricsText {
  char *text;  // NULL: none yet
  size_t size;
  double made;  // on sn_clock_now()
} SnMetricsText;

// Counts states whose plans were late, in a row that is short.
typedef struct SnMissBurst {
  int count;
  double began, wrote;  // the row; the latest file of that reason, 0: none. On sn_clock_now()
} SnMissBurst;

// Holds all of a running sinewd in one place, for whoever serves any part of it: there are no globals.
typedef struct SnDaemon {
  SnConfig config;
  SnLog log;
  SnSystemd systemd;
  double started;  // on sn_clock_now()

  SnAccess access;
  SnOutbox outbox;
  SnRecords records;
  SnModels models;
  SnSessions sessions;
  SnKeeper keeper;  // keeps those that outlast the daemon
  SnScheduler scheduler;
  SnLoader loader;
  SnMetrics metrics;
  SnBudget budget;  // memory of planners

  // The event loop's.
  SnWireArena arena;
  SnWire *wire;  // NULL before requests are listened to
  SnHttp *http;  // NULL: there is no endpoint of metrics
  uint64_t requests, errors, malformed;
  SnCounters counters;
  SnMetricsText metrics_text;
  SnFlight *flight;  // NULL: there is none
  SnMissBurst misses;
  bool reloads;  // there is a file, of settings or of keys, that SIGHUP has read again; without one it ends the daemon
  bool hangup;   // SIGHUP is heard
  SnCode (*configure)(void *command_line, SnConfig *config, SnError *err);  // reads the configuration from the start
  void *command_line;
  uint64_t version, reload_failures;  // counts configurations, the first one included; reloads that changed nothing
  bool stopping;
} SnDaemon;

// Starts the loader threads, as many as the configuration says.
SnCode sn_loader_start(SnDaemon *daemon, SnError *err);

// Lets the loader threads open again the sessions that the last daemon kept. To be called before requests are read.
// Fails when memory ends: then they stay where they are.
SnCode sn_restore_sessions(SnDaemon *daemon, SnError *failure);

// Returns how many jobs wait for a loader thread, a model, or others of their client. Any thread may call it.
int sn_loader_waiting(SnLoader *loader);

// Finishes what runs, but for imports and bodies that settle, which are given up. Refuses what waits, joins the
// threads. To be called before the scheduler stops; a second call does nothing.
void sn_loader_stop(SnDaemon *daemon);

// Answers one frame from a client, or hands it to a thread that will. The event loop calls it.
void sn_handle_frame(SnDaemon *daemon, const SnRoute *route, const void *bytes, size_t size);

// Packs statistics of the daemon (session NULL) or of one session, for a peer or (NULL) for the public. Ids of sessions
// that are none of theirs are 0. Returns NULL when out of memory. The event loop calls it.
Sinew__V1__Statistics *sn_pack_statistics(SnDaemon *daemon, SnScratch *scratch, SnSession *session, const SnPeer *peer);

// Returns all metrics in the text format of Prometheus, as they are now or were up to 0.1 s ago; NULL when out of
// memory. The text is the daemon's, and stays until the next call. The event loop calls it.
const char *sn_metrics_text(SnDaemon *daemon);

// Notes a state whose plan was late, and lets the flight recorder write after a burst of them. The event loop calls it.
void sn_flight_missed(SnDaemon *daemon, double now);

// Checks what a start needs of the machine and of this user's rights: folders, files, programs, the backend's library,
// processors, priority. Nothing of this keeps a daemon that runs from a reload. Changes nothing, opens no device and
// takes no lock that a daemon that runs may have.
SnCode sn_check_start(const SnConfig *config, SnError *err);

// Checks what a configuration must fulfil beyond the bounds of each setting: addresses, keys, the list of keys. Changes
// nothing.
SnCode sn_check_configuration(const SnConfig *config, SnError *err);

// Reads configuration and keys again: all of it is in force, or on failure nothing changes. *lowered says that a key
// has been taken off the list, or may do less. The log has a line of what changed. The event loop calls it.
SnCode sn_reload(SnDaemon *daemon, bool *lowered, SnError *err);

// Closes the sessions whose lease has run out, and those whose client's connection has ended for too long. The event
// loop calls it.
void sn_close_expired(SnDaemon *daemon, const SnWire *wire);

// Adds time [s] in which the daemon stood still to the leases of all sessions: their clients may have asked meanwhile.
// The event loop calls it.
void sn_forgive_pause(SnDaemon *daemon, double seconds);

// Closes the sessions of keys that may have none any more. The event loop calls it.
void sn_close_revoked(SnDaemon *daemon);

#endif
