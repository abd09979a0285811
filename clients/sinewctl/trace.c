#include "clients/sinewctl/trace_private.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "clients/base/text.h"
#include "clients/libsinew_client/reflect.h"
#include "physics/base/clock.h"

// Time between two questions [s].
#define POLL 0.02

static SinewStatus ask(SinewClient *client, uint64_t session, uint64_t after, Sinew__V1__Reply **reply,
                       SinewError *err) {
  Sinew__V1__TraceRequest in = SINEW__V1__TRACE_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  in.session = session;
  in.after = after;
  request.body_case = SINEW__V1__REQUEST__BODY_TRACE;
  request.trace = &in;
  return sn_request(client, &request, reply, err);
}

static void print_json(const Sinew__V1__PlanTrace *t) {
  cJSON *object = sn_message_to_json(&t->base);
  char *text = cJSON_PrintUnformatted(object);
  sn_print_json(stdout, text);
  cJSON_free(text);
  cJSON_Delete(object);
}

static const char *status_of(const Sinew__V1__PlanTrace *t) {
  const ProtobufCEnumValue *value =
      protobuf_c_enum_descriptor_get_value(&sinew__v1__plan__status__descriptor, (int)t->status);
  return value ? value->name : "of a status that is not known here";
}

// A stage that the plan came to, and how long it took since the one before.
static void print_stage(const char *name, double at, double *before, const char *what) {
  if (!isfinite(at)) return;
  printf("  %-9s %9.3f %9.3f   %s\n", name, 1e3 * at, 1e3 * (at - *before), what);
  *before = at;
}

static void print_trace(uint64_t session, const Sinew__V1__PlanTrace *t) {
  char computed[100];
  double before = 0;
  const bool judged = t->first && isfinite(t->due);
  printf("session %llu, plan %llu, request %llu, state at %g s: %s%s%s, %u iterations in %u slices\n",
         (unsigned long long)session, (unsigned long long)t->sequence, (unsigned long long)t->request, t->state_time,
         status_of(t), t->streamed ? ", streamed" : "",
         !judged           ? ""
         : t->deadline_met ? ", in time"
                           : ", late",
         (unsigned)t->iterations, (unsigned)t->slices);
  snprintf(computed, sizeof computed, "planned, %.3f ms of it in its own slices", 1e3 * t->served);
  printf("  %-9s %9s %9s\n", "stage", "at ms", "took ms");
  print_stage("taken", t->taken, &before, "read, checked, taken by the planner thread");
  print_stage("turn", t->turn, &before, "waited for its turn");
  print_stage("began", t->began, &before, "state rolled forward");
  print_stage("ended", t->ended, &before, computed);
  print_stage("packed", t->packed, &before, "packed into a reply");
  print_stage("sent", t->sent, &before, "handed to its socket");
  if (isfinite(t->due)) printf("  %-9s %9.3f\n", "due", 1e3 * t->due);
}

SinewStatus trace_run(SinewClient *client, const TraceOptions *options, SinewError *err) {
  Sinew__V1__Reply *reply;
  SinewStatus status = ask(client, options->session, UINT64_MAX, &reply, err);
  if (status != SINEW_OK) return status;
  uint64_t newest = reply->trace->newest, left = options->count ? options->count : 1;
  sn_free_reply(reply);
  const double until = sn_clock_now() + (options->seconds > 0 ? options->seconds : INFINITY);
  while (left > 0) {
    status = ask(client, options->session, newest, &reply, err);
    if (status != SINEW_OK) return status;
    const Sinew__V1__TraceReply *got = reply->trace;
    for (size_t i = 0; i < got->n_traces && left > 0; i++, left--) {
      if (options->json)
        print_json(got->traces[i]);
      else
        print_trace(options->session, got->traces[i]);
    }
    newest = got->newest;
    sn_free_reply(reply);
    fflush(stdout);
    if (left > 0 && sn_clock_now() >= until)
      return sn_wire_fail(err, SINEW_ERR_TIMEOUT, "%llu plans did not come within %g s", (unsigned long long)left,
                          options->seconds);
    const struct timespec pause = sn_clock_timespec(POLL);
    if (left > 0) nanosleep(&pause, NULL);
  }
  return SINEW_OK;
}
