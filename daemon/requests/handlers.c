#include <stdio.h>

#include "daemon/requests/handlers_private.h"
#include "daemon/requests/loader_private.h"
#include "daemon/requests/roles_private.h"
#include "physics/base/clock.h"

// Seconds between two lines of the log on what one peer was refused.
#define REPORT_TIME 60.0

// Work for the loader threads.
static SnCode handle_load(SnDaemon *d, SnJob *job, SnError *err) {
  if (sn_loader_push(d, job)) return SN_OK;
  return sn_fail(err, SN_ERR_LIMIT, "%d requests are waiting to be loaded already; try again later", d->config.queue);
}

static SnHandler *handler_of(Sinew__V1__Request__BodyCase body) {
  switch (body) {
    case SINEW__V1__REQUEST__BODY_HELLO:
      return sn_handle_hello;
    case SINEW__V1__REQUEST__BODY_HEALTH:
      return sn_handle_health;
    case SINEW__V1__REQUEST__BODY_STATISTICS:
      return sn_handle_statistics;
    case SINEW__V1__REQUEST__BODY_FLIGHT:
      return sn_handle_flight;
    case SINEW__V1__REQUEST__BODY_TRACE:
      return sn_handle_trace;
    case SINEW__V1__REQUEST__BODY_METRICS:
      return sn_handle_metrics;
    case SINEW__V1__REQUEST__BODY_LIST_MODELS:
    case SINEW__V1__REQUEST__BODY_DESCRIBE_MODEL:
    case SINEW__V1__REQUEST__BODY_LOAD_MODEL:
    case SINEW__V1__REQUEST__BODY_UNLOAD_MODEL:
    case SINEW__V1__REQUEST__BODY_LIST_TASKS:
    case SINEW__V1__REQUEST__BODY_DESCRIBE_TASK:
      return handle_load;
    case SINEW__V1__REQUEST__BODY_OPEN:
      return sn_handle_open;
    case SINEW__V1__REQUEST__BODY_CLOSE:
      return sn_handle_close;
    case SINEW__V1__REQUEST__BODY_PLAN:
      return sn_handle_plan;
    case SINEW__V1__REQUEST__BODY_EVALUATE:
      return sn_handle_evaluate;
    case SINEW__V1__REQUEST__BODY_GET_CONFIG:
    case SINEW__V1__REQUEST__BODY_SET_CONFIG:
    case SINEW__V1__REQUEST__BODY_RESET:
    case SINEW__V1__REQUEST__BODY_REVERT:
    case SINEW__V1__REQUEST__BODY_STREAM:
    case SINEW__V1__REQUEST__BODY_SNAPSHOT:
      return sn_handle_command;
    case SINEW__V1__REQUEST__BODY_STREAM_STATE:
      return sn_handle_state;
    default:
      return NULL;
  }
}

void sn_answer(SnDaemon *d, SnJob *job, Sinew__V1__Reply *reply) {
  sn_outbox_reply(&d->outbox, &job->route, reply);
  sn_job_free(job);
}

SnCode sn_fail_coming(SnJob *job, const char *what, SnError *err) {
  job->coming = true;
  return sn_fail(err, SN_ERR_STATE, "the session %s: ask again in a moment", what);
}

SnCode sn_fail_no_session(SnJob *job, uint64_t id, const char *why, SnError *err) {
  job->route.no_session = true;
  return sn_fail(err, SN_ERR_NOT_FOUND, "no session %llu; %s", (unsigned long long)id,
                 why ? why : "it was closed, its lease ran out, or its client is gone");
}

// Answers what a peer may not ask for, or not so often. The log has a line a minute of each peer.
static void deny(SnDaemon *d, const SnRoute *route, Sinew__V1__Error__Code code, const char *why) {
  SnPeer *peer = route->peer;
  peer->refused++;
  if (peer->reported == 0 || route->arrived - peer->reported >= REPORT_TIME) {
    sn_log_event(&d->log, SN_LOG_WARNING, "refused: %llu requests of %s (%.40s), the latest: %s",
                 (unsigned long long)peer->refused, peer->name, peer->key, why);
    peer->refused = 0;
    peer->reported = route->arrived;
  }
  sn_outbox_error(&d->outbox, route, code, "%s", why);
}

// Whether a peer may ask for that, and charges it for the time of a plan; if not, it has been told why.
static bool admit(SnDaemon *d, SnRoute *route, const Sinew__V1__Request *request) {
  char why[200];
  SnPeer *peer = route->peer;
  const SnRole least = sn_role_needed(request->body_case);
  if (peer->role < least) {
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(request->base.descriptor, (unsigned)request->body_case);
    snprintf(why, sizeof why, "%s needs the role %s; this key has %s", field->name, sn_role_name(least),
             sn_role_name(peer->role));
    d->counters.permission++;
    deny(d, route, SINEW__V1__ERROR__CODE__PERMISSION, why);
    return false;
  }
  const double allowed = request->body_case == SINEW__V1__REQUEST__BODY_PLAN ? request->plan->deadline : 0;
  if (!sn_needs_planning(request->body_case) ||
      sn_quota_planning(peer, allowed, sn_clock_now(), &route->charged, why, sizeof why))
    return true;
  d->counters.quota++;
  deny(d, route, SINEW__V1__ERROR__CODE__LIMIT, why);
  return false;
}

void sn_handle_frame(SnDaemon *d, const SnRoute *from, const void *bytes, size_t size) {
  SnRoute route = *from;
  SnWireError wire;
  char why[200];
  d->requests++;
  if (!sn_quota_request(route.peer, size, sn_clock_now(), why, sizeof why)) {
    route.id = sn_request_id(bytes, size);
    d->counters.requests[0]++;
    d->counters.quota++;
    deny(d, &route, SINEW__V1__ERROR__CODE__LIMIT, why);
    return;
  }
  const Sinew__V1__Request *request = sn_request_read(&d->arena, bytes, size, &route.id, &wire);
  if (!request) {
    const bool malformed = wire.code == SINEW__V1__ERROR__CODE__MALFORMED;
    d->malformed += malformed;
    d->counters.requests[0]++;
    d->counters.invalid[malformed ? SN_INVALID_MALFORMED : SN_INVALID_FIELD]++;
    sn_log_about(&d->log, SN_LOG_INFO, (SnLogIds){.request = route.id}, "refused: %s", wire.text);
    sn_outbox_error(&d->outbox, &route, wire.code, "%s", wire.text);
    return;
  }
  route.kind = (uint8_t)request->body_case;
  d->counters.requests[route.kind < SN_COUNT_KINDS ? route.kind : 0]++;
  if (d->stopping) {
    sn_outbox_error(&d->outbox, &route, SINEW__V1__ERROR__CODE__SHUTTING_DOWN, "the daemon stops");
    return;
  }
  if (!admit(d, &route, request)) return;
  sn_flight_request(d->flight, bytes, size, route.arrived);

  SnError err = {0};
  SnJob *job = sn_job_create(&route, bytes, size);
  SnHandler *handle = handler_of(request->body_case);
  SnCode code = !job      ? sn_fail(&err, SN_ERR_MEMORY, "out of memory")
                : !handle ? sn_fail(&err, SN_ERR_UNSUPPORTED, "this version does not serve this request")
                          : handle(d, job, &err);
  if (code == SN_OK) return;
  const SnRoute *back = job ? &job->route : &route;
  sn_log_about(&d->log, SN_LOG_INFO, (SnLogIds){.session = back->session, .request = back->id}, "refused: %s",
               err.text);
  const bool coming = job && job->coming;
  sn_outbox_error(&d->outbox, back, coming ? SINEW__V1__ERROR__CODE__RESTORING : sn_wire_code(code), "%s", err.text);
  sn_job_free(job);
}
