// Traces of a session's latest plans: answered by the event loop at once.
#include "daemon/requests/handlers_private.h"

SnCode sn_handle_trace(SnDaemon *d, SnJob *job, SnError *err) {
  const Sinew__V1__TraceRequest *in = job->request->trace;
  const SnSession *session = sn_find_session(d, job, in->session, err);
  if (!session) return err->code;
  job->route.session = in->session;
  Sinew__V1__PlanTrace item[SN_TRACES], *list[SN_TRACES];
  Sinew__V1__TraceReply out = SINEW__V1__TRACE_REPLY__INIT;
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  for (uint64_t i = sn_traces_first(&session->traces, in->after); i <= session->traces.newest; i++) {
    sn_trace_pack(sn_traces_at(&session->traces, i), i, &item[out.n_traces]);
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
