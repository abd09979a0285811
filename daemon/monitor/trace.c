#include "daemon/monitor/trace.h"

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
