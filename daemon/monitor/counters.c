#include "daemon/monitor/counters.h"

#include <math.h>

static const double bounds[SN_BUCKETS] = {1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2,
                                          2e-2, 3e-2,   5e-2, 0.1,  0.2,    0.5,  1,    2,      5};

double sn_histogram_bound(int bucket) { return bucket < SN_BUCKETS ? bounds[bucket] : INFINITY; }

void sn_histogram_add(SnHistogram *h, double seconds) {
  const double x = seconds > 0 ? seconds : 0;
  int i = 0;
  while (i < SN_BUCKETS && x > bounds[i]) i++;
  h->sum = h->sum + x;
  h->bucket[i]++;
}

uint64_t sn_histogram_count(const SnHistogram *h) {
  uint64_t n = 0;
  for (int i = 0; i <= SN_BUCKETS; i++) n += h->bucket[i];
  return n;
}

static int place(int number, int size) { return number > 0 && number < size ? number : 0; }

static void count_outcome(SnOutcomes *out, const SnReply *reply) {
  out->replies[place((int)reply->error, SN_COUNT_CODES)]++;
  if (reply->stages.arrived == 0) return;
  out->plans[place(reply->stages.status, SN_COUNT_STATUSES)]++;
  out->misses += reply->stages.first && !reply->stages.in_time;
}

void sn_counters_reply(SnCounters *c, SnOutcomes *session, const SnReply *reply, double now) {
  const SnStages *s = &reply->stages;
  c->replies[place(reply->route.kind, SN_COUNT_KINDS)][place((int)reply->error, SN_COUNT_CODES)]++;
  count_outcome(&c->all, reply);
  if (session) count_outcome(session, reply);
  if (s->arrived == 0 || s->turn == 0) return;
  if (s->first) sn_histogram_add(&c->waiting, s->turn - s->arrived);
  sn_histogram_add(&c->computing, s->ended - s->turn);
  sn_histogram_add(&c->sending, now - s->ended);
  if (s->first) sn_histogram_add(&c->whole, now - s->arrived);
}

const char *sn_count_kind(int kind) {
  if (kind == 0) return "none";
  const ProtobufCFieldDescriptor *field =
      protobuf_c_message_descriptor_get_field(&sinew__v1__request__descriptor, (unsigned)kind);
  return field && field->type == PROTOBUF_C_TYPE_MESSAGE ? field->name : NULL;
}

// The name of a value in the schema.
static const char *name_of(const ProtobufCEnumDescriptor *type, int value) {
  const ProtobufCEnumValue *found = protobuf_c_enum_descriptor_get_value(type, value);
  return found ? found->name : NULL;
}

const char *sn_count_code(int code) { return code == 0 ? "OK" : name_of(&sinew__v1__error__code__descriptor, code); }

const char *sn_count_status(int status) { return name_of(&sinew__v1__plan__status__descriptor, status); }

const char *sn_count_invalid(int reason) {
  static const char *const names[SN_INVALID_KINDS] = {"unanswerable", "several_frames", "not_a_request", "field"};
  return reason >= 0 && reason < SN_INVALID_KINDS ? names[reason] : NULL;
}
