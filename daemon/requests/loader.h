// Loader threads: all that may take long and is no planning. Listing and describing models and tasks, loading,
// opening sessions, and starting them anew with another seed.
#ifndef SINEW_DAEMON_REQUESTS_LOADER_H_
#define SINEW_DAEMON_REQUESTS_LOADER_H_

#include "daemon/planning/planning.h"

enum { SN_LOADER_THREADS = 16 };

typedef struct SnLoader {
  const SnConfig *config;
  const SnLog *log;
  SnOutbox *outbox;
  SnModels *models;
  SnSessions *sessions;
  SnScheduler *scheduler;
  SnQueue jobs;
  pthread_t thread[SN_LOADER_THREADS];
  int threads;
} SnLoader;

SnCode sn_loader_start(SnLoader *loader, const SnConfig *config, const SnLog *log, SnOutbox *outbox, SnModels *models,
                       SnSessions *sessions, SnScheduler *scheduler, SnError *err);

// Hands a job over; false when the queue is full, and the caller keeps it. An open request needs a place reserved in
// the sessions.
bool sn_loader_push(SnLoader *loader, SnJob *job);

// Finishes what runs (see sn_models_cancel), refuses what waits, joins the threads. Before the scheduler stops.
void sn_loader_stop(SnLoader *loader);

#endif
