#include "daemon/monitor/trace.h"

#include <math.h>

void sn_traces_add(SnTraces *t, const SnReply *reply, double sent) {
  if (reply->stages.arrived == 0) return;
  t->newest++;
  t->trace[t->newest % SN_TRACES] = (SnTrace){.stages = reply->stages, .request = reply->route.id, .sent = sent};
}

uint64_t sn_traces_first(const SnTraces *t, uint64_t after) {
  const uint64_t oldest = t->newest > SN_TRACES ? t->newest - SN_TRACES + 1 : 1;
  const uint64_t next = after < t->newest ? after + 1 : t->newest + 1;
  return next > oldest ? next : oldest;
}

const SnTrace *sn_traces_at(const SnTraces *t, uint64_t number) { return &t->trace[number % SN_TRACES]; }

// Seconds from the arrival to an instant; NaN for a stage that it never came to.
static double since(const SnStages *s, double instant) { return instant > 0 ? instant - s->arrived : (double)NAN; }

void sn_trace_pack(const SnTrace *trace, uint64_t number, Sinew__V1__PlanTrace *out) {
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
