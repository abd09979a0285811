// The flight recorder on request, and after a burst of missed deadlines.
#include "daemon/requests/handlers_private.h"
#include "physics/base/clock.h"

// Seconds in which misses make a burst, and between two files for that reason.
#define BURST 1.0
#define REST 60.0

// Answers who asked; the thread that has written the file calls it.
static void written(void *context, void *item, const char *path, const SnError *err) {
  SnDaemon *d = context;
  SnJob *job = item;
  if (err) {
    sn_outbox_error(&d->outbox, &job->route, sn_wire_code(err->code), "%s", err->text);
  } else {
    Sinew__V1__FlightReply out = SINEW__V1__FLIGHT_REPLY__INIT;
    Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
    out.path = (char *)(uintptr_t)path;
    reply.body_case = SINEW__V1__REPLY__BODY_FLIGHT;
    reply.flight = &out;
    sn_outbox_reply(&d->outbox, &job->route, &reply);
  }
  sn_job_free(job);
}

SnCode sn_handle_flight(SnDaemon *d, SnJob *job, SnError *err) {
  if (!d->flight) return sn_fail(err, SN_ERR_STATE, "there is no flight recorder: the setting flight_folder is empty");
  return sn_flight_write(d->flight, "request", written, d, job, err);
}

void sn_flight_missed(SnDaemon *d, double now) {
  SnMissBurst *b = &d->misses;
  SnError err = {0};
  if (!d->flight || d->config.flight_misses == 0) return;
  if (now - b->began > BURST) *b = (SnMissBurst){.began = now, .wrote = b->wrote};
  if (++b->count < d->config.flight_misses || (b->wrote > 0 && now - b->wrote < REST)) return;
  b->wrote = now;
  sn_log_event(&d->log, SN_LOG_WARNING, "misses: %d plans came late within %.3f s", b->count, now - b->began);
  if (sn_flight_write(d->flight, "misses", NULL, NULL, NULL, &err) != SN_OK)
    sn_log_event(&d->log, SN_LOG_WARNING, "flight-failed: %s", err.text);
}
