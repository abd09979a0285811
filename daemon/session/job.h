// A request on its way to another thread: where its answer goes, and the request itself, owned.
#ifndef SINEW_DAEMON_SESSION_JOB_H_
#define SINEW_DAEMON_SESSION_JOB_H_

#include "daemon/wire/outbox.h"

typedef struct SnPlanner SnPlanner;
typedef struct SnSession SnSession;

typedef struct SnJob {
  SnRoute route;
  SnSession *session;           // that it is for, or NULL
  double due;                   // when its answer is wanted, on sn_clock_now(); INFINITY: any time
  Sinew__V1__Request *request;  // validated
  SnPlanner *planner;           // of a reset with a new seed: made by the loader, or NULL
  struct SnJob *next;
} SnJob;

// How a job stands at an instant of sn_clock_now(): what replies and statistics say of time.
typedef struct SnTiming {
  double age;    // [s] since its request arrived
  bool in_time;  // not after it was due
} SnTiming;
SnTiming sn_job_timing(const SnJob *job, double now);

// A job from the bytes of a request that has been validated. NULL when out of memory.
SnJob *sn_job_create(const SnRoute *route, const void *bytes, size_t size);
void sn_job_free(SnJob *job);

#endif
