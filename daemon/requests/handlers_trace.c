// Traces of a session's latest plans: answered by the event loop at once.
#include <math.h>

#include "daemon/requests/handlers_private.h"
#include "daemon/requests/roles_private.h"

// Seconds from the arrival to an instant; NaN for a stage that it never came to.
static double since(const SnStages *s, double instant) { return instant > 0 ? instant - s->arrived : (double)NAN; }

static void pack_trace(const SnTrace *trace, uint64_t number, Sinew__V1__PlanTrace *out) {
  const SnStages *s = &trace->stages;
  sinew__v1__plan_trace__init(out);
  out->number = number;
  out->request = trace->request;
  out->sequence = s->plan;
  out->state_time = s->state_time;
  out->status = (Sinew__V1__Plan__Status)s->status;
  out->taken = since(s, s->taken);
  out->turn = since(s, s->turn);
  out->began = since(s, s->began);
  out->ended = since(s, s->ended);
  out->packed = since(s, s->packed);
  out->sent = since(s, trace->sent);
  out->due = isfinite(s->due) ? since(s, s->due) : (double)NAN;
  out->served = s->served;
  out->slices = (uint32_t)s->slices;
  out->iterations = (uint32_t)s->iterations;
  out->deadline_met = s->in_time;
  out->first = s->first;
  out->streamed = s->streamed;
}

SnCode sn_handle_trace(SnDaemon *d, SnJob *job, SnError *err) {
  const Sinew__V1__TraceRequest *in = job->request->trace;
  const SnSession *session = sn_sessions_find(&d->sessions, in->session);
  if (!session || !sn_may_use(job->route.peer, session))
    return sn_fail(err, SN_ERR_NOT_FOUND, "no session %llu", (unsigned long long)in->session);
  job->route.session = in->session;
  Sinew__V1__PlanTrace item[SN_TRACES], *list[SN_TRACES];
  Sinew__V1__TraceReply out = SINEW__V1__TRACE_REPLY__INIT;
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  for (uint64_t i = sn_traces_first(&session->traces, in->after); i <= session->traces.newest; i++) {
    pack_trace(sn_traces_at(&session->traces, i), i, &item[out.n_traces]);
    list[out.n_traces] = &item[out.n_traces];
    out.n_traces++;
  }
  out.traces = list;
  out.newest = session->traces.newest;
  reply.body_case = SINEW__V1__REPLY__BODY_TRACE;
  reply.trace = &out;
  sn_answer(d, job, &reply);
  return SN_OK;
}
