#include "daemon/session/session.h"

#include <math.h>
#include <stdlib.h>

SnTiming sn_job_timing(const SnJob *job, double now) {
  return (SnTiming){.age = now - job->route.arrived, .in_time = now <= job->due};
}

SnJob *sn_job_create(const SnRoute *route, const void *bytes, size_t size) {
  SnJob *job = calloc(1, sizeof *job);
  if (!job) return NULL;
  job->route = *route;
  job->due = INFINITY;
  job->request = sinew__v1__request__unpack(NULL, size, bytes);
  if (!job->request) {
    free(job);
    return NULL;
  }
  return job;
}

void sn_job_free(SnJob *job) {
  if (!job) return;
  sinew__v1__request__free_unpacked(job->request, NULL);
  free(job);
}
