#include "daemon/wire/records.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/wire_text.h"

bool sn_records_init(SnRecords *r, SnOutbox *outbox) {
  *r = (SnRecords){.outbox = outbox, .count = 1};
  r->last = &r->first;
  return pthread_mutex_init(&r->mutex, NULL) == 0;
}

void sn_records_free(SnRecords *r) {
  if (!r->last) return;
  for (SnRecordMessage *p = r->first, *next; p; p = next) {
    next = p->next;
    free(p);
  }
  pthread_mutex_destroy(&r->mutex);
  *r = (SnRecords){0};
}

// ---- who listens ----

// Topics begin with what is subscribed to: so either text may be the longer one.
static bool concerns(const char *topic, const char *session) {
  const size_t a = strlen(topic), b = strlen(session);
  return memcmp(topic, session, a < b ? a : b) == 0;
}

bool sn_records_wanted(SnRecords *r, SnAudience *audience, uint64_t session) {
  if (atomic_load_explicit(&r->subscribers, memory_order_relaxed) == 0) {
    audience->listens = false;
    audience->looked = 0;
    return false;
  }
  const uint64_t changes = atomic_load(&r->changes);
  if (audience->looked == changes) return audience->listens;
  char text[SN_TOPIC];
  uint64_t latest = 0;
  snprintf(text, sizeof text, "%" PRIu64 " ", session);
  pthread_mutex_lock(&r->mutex);
  audience->listens = false;
  for (int i = 0; i < r->count; i++) {
    const SnSubscription *s = &r->subscription[i];
    if (!s->open || !concerns(s->topic, text)) continue;
    audience->listens = true;
    if (s->latest > latest) latest = s->latest;
  }
  audience->looked = r->changes;
  pthread_mutex_unlock(&r->mutex);
  if (latest > audience->greeted) audience->joined = true;
  if (latest > audience->greeted) audience->greeted = latest;
  return audience->listens;
}

// The entry of a topic; NULL where there is none, and no place left for one.
static SnSubscription *find(SnRecords *r, const char *topic, bool add) {
  int unused = 0;
  for (int i = 0; i < r->count; i++) {
    if (!strcmp(r->subscription[i].topic, topic)) return &r->subscription[i];
    if (i > 0 && !r->subscription[i].open) unused = i;
  }
  if (!add) return NULL;
  if (unused == 0 && r->count < SN_SUBSCRIPTIONS) unused = r->count++;
  if (unused == 0) return NULL;
  r->subscription[unused] = (SnSubscription){0};
  strcpy(r->subscription[unused].topic, topic);
  return &r->subscription[unused];
}

void sn_records_subscribe(SnRecords *r, const void *frame, size_t size) {
  const char *bytes = frame;
  char topic[SN_TOPIC] = "";
  if (size == 0 || size > sizeof topic || (bytes[0] != 0 && bytes[0] != 1)) return;
  memcpy(topic, bytes + 1, size - 1);
  if (strlen(topic) != size - 1) return;  // no topic of ours has a zero
  pthread_mutex_lock(&r->mutex);
  SnSubscription *s = find(r, topic, bytes[0] == 1), *all = &r->subscription[0];
  if (bytes[0] == 1) {
    r->crowded = r->crowded || !s;
    if (!s) s = all;
    s->latest = ++r->came;
    if (!s->open) atomic_fetch_add(&r->subscribers, 1);
    s->open = true;
  } else if (s && s->open && !(s == all && r->crowded)) {
    s->open = false;
    atomic_fetch_sub(&r->subscribers, 1);
  }
  atomic_fetch_add(&r->changes, 1);
  pthread_mutex_unlock(&r->mutex);
}

void sn_records_forget(SnRecords *r) {
  pthread_mutex_lock(&r->mutex);
  memset(r->subscription, 0, sizeof r->subscription);
  r->count = 1;
  r->crowded = false;
  atomic_store(&r->subscribers, 0);
  atomic_fetch_add(&r->changes, 1);
  pthread_mutex_unlock(&r->mutex);
}

// ---- what they get ----

static double unix_time(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void sn_records_send(SnRecords *r, SnAudience *audience, const char *kind, Sinew__V1__Record *record) {
  record->number = ++audience->number;
  record->time = unix_time();
  const size_t size = sinew__v1__record__get_packed_size(record);
  SnRecordMessage *p = malloc(sizeof *p + size);
  if (!p) return;
  p->next = NULL;
  snprintf(p->topic, sizeof p->topic, "%" PRIu64 " %s ", record->session, kind);
  p->size = sinew__v1__record__pack(record, p->bytes);
  sn_wire_mend_texts(&sinew__v1__record__descriptor, p->bytes, p->size);
  pthread_mutex_lock(&r->mutex);
  *r->last = p;
  r->last = &p->next;
  pthread_mutex_unlock(&r->mutex);
  sn_outbox_wake(r->outbox);
}

SnRecordMessage *sn_records_pop_all(SnRecords *r) {
  pthread_mutex_lock(&r->mutex);
  SnRecordMessage *all = r->first;
  r->first = NULL;
  r->last = &r->first;
  pthread_mutex_unlock(&r->mutex);
  return all;
}
