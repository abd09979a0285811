#include "daemon/wire/outbox.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "proto/wire_text.h"

enum { SPARE_BYTES = 64 };  // of the error that says that there is no memory

// Makes the spare replies as many as they shall be, as far as there is memory. With the mutex.
static void fill_spares(SnOutbox *outbox) {
  while (outbox->spares < SN_SPARE_REPLIES) {
    SnReply *p = malloc(sizeof *p + SPARE_BYTES);
    if (!p) return;
    p->next = outbox->spare;
    outbox->spare = p;
    outbox->spares++;
  }
}

bool sn_outbox_init(SnOutbox *outbox) {
  *outbox = (SnOutbox){.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  outbox->last = &outbox->first;
  fill_spares(outbox);
  return pthread_mutex_init(&outbox->mutex, NULL) == 0 && outbox->wake >= 0 && outbox->spares == SN_SPARE_REPLIES;
}

static void free_list(SnReply *first) {
  for (SnReply *p = first, *next; p; p = next) {
    next = p->next;
    free(p);
  }
}

void sn_outbox_free(SnOutbox *outbox) {
  if (!outbox->last) return;
  free_list(outbox->first);
  free_list(outbox->spare);
  pthread_mutex_destroy(&outbox->mutex);
  if (outbox->wake >= 0) close(outbox->wake);
  *outbox = (SnOutbox){.wake = -1};
}

void sn_outbox_wake(SnOutbox *outbox) {
  uint64_t one = 1;
  ssize_t n = write(outbox->wake, &one, sizeof one);
  (void)n;  // full means that it is readable already
}

static SnReply *take_spare(SnOutbox *outbox) {
  pthread_mutex_lock(&outbox->mutex);
  SnReply *p = outbox->spare;
  if (p) {
    outbox->spare = p->next;
    outbox->spares--;
  }
  pthread_mutex_unlock(&outbox->mutex);
  return p;
}

SnReply *sn_outbox_pack(SnOutbox *outbox, const SnRoute *route, Sinew__V1__Reply *reply) {
  Sinew__V1__Error error = SINEW__V1__ERROR__INIT;
  Sinew__V1__Reply refusal = SINEW__V1__REPLY__INIT;
  if (reply) reply->id = route->id;  // before it is measured: the largest number takes 11 bytes
  SnReply *p = reply ? malloc(sizeof *p + sinew__v1__reply__get_packed_size(reply)) : NULL;
  if (!p) {
    error.code = SINEW__V1__ERROR__CODE__LIMIT;
    error.text = "out of memory";
    refusal.id = route->id;
    refusal.body_case = SINEW__V1__REPLY__BODY_ERROR;
    refusal.error = &error;
    reply = &refusal;
    p = take_spare(outbox);
  }
  if (!p) return NULL;
  p->next = NULL;
  p->route = *route;
  p->size = sinew__v1__reply__pack(reply, p->bytes);
  sn_wire_mend_texts(&sinew__v1__reply__descriptor, p->bytes, p->size);
  p->error = reply->body_case == SINEW__V1__REPLY__BODY_ERROR ? reply->error->code : 0;
  p->stages = (SnStages){0};
  return p;
}

// Puts a reply behind those that lie here. Returns whether it is the first that the event loop is to be told of.
static bool append(SnOutbox *outbox, SnReply *reply, bool tells) {
  pthread_mutex_lock(&outbox->mutex);
  const bool first = tells && !outbox->told;
  outbox->told = outbox->told || tells;
  *outbox->last = reply;
  outbox->last = &reply->next;
  pthread_mutex_unlock(&outbox->mutex);
  return first;
}

void sn_outbox_send(SnOutbox *outbox, SnReply *reply) {
  if (!reply) return;
  const bool first = append(outbox, reply, true);  // others are taken together with those before them
  if (first) sn_outbox_wake(outbox);
}

void sn_outbox_reply(SnOutbox *outbox, const SnRoute *route, Sinew__V1__Reply *reply) {
  sn_outbox_send(outbox, sn_outbox_pack(outbox, route, reply));
}

static SnReply *pack_plan(SnOutbox *outbox, const SnRoute *route, Sinew__V1__Plan *plan, const SnStages *stages) {
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  reply.body_case = SINEW__V1__REPLY__BODY_PLAN;
  reply.plan = plan;
  SnReply *packed = sn_outbox_pack(outbox, route, &reply);
  if (packed) packed->stages = *stages;
  return packed;
}

void sn_outbox_plan(SnOutbox *outbox, const SnRoute *route, Sinew__V1__Plan *plan, const SnStages *stages) {
  sn_outbox_send(outbox, pack_plan(outbox, route, plan, stages));
}

void sn_outbox_hold_plan(SnOutbox *outbox, const SnRoute *route, Sinew__V1__Plan *plan, const SnStages *stages) {
  SnReply *packed = pack_plan(outbox, route, plan, stages);
  if (!packed) return;
  append(outbox, packed, false);
  outbox->held = true;
}

bool sn_outbox_holds(const SnOutbox *outbox) { return outbox->held; }

void sn_outbox_error(SnOutbox *outbox, const SnRoute *route, Sinew__V1__Error__Code code, const char *format, ...) {
  char text[4100];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  Sinew__V1__Error error = SINEW__V1__ERROR__INIT;
  error.code = code;
  error.text = text;
  error.no_session = route->no_session;
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  reply.body_case = SINEW__V1__REPLY__BODY_ERROR;
  reply.error = &error;
  sn_outbox_reply(outbox, route, &reply);
}

SnReply *sn_outbox_pop_all(SnOutbox *outbox) {
  uint64_t count;
  ssize_t n = read(outbox->wake, &count, sizeof count);
  (void)n;
  pthread_mutex_lock(&outbox->mutex);
  SnReply *all = outbox->first;
  outbox->first = NULL;
  outbox->last = &outbox->first;
  outbox->told = false;
  fill_spares(outbox);
  pthread_mutex_unlock(&outbox->mutex);
  outbox->held = false;
  return all;
}
