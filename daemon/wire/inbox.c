#include "daemon/wire/inbox_private.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = -1 };

void sn_inbox_init(SnInbox *inbox, int max, size_t max_bytes) {
  *inbox = (SnInbox){.first = NONE, .last = NONE, .max = max, .max_bytes = max_bytes};
  inbox->spare = malloc(sizeof(SnRequest) + sizeof((SnRoute *)NULL)->identity);  // NULL: there is none yet
}

void sn_inbox_request_free(SnRequest *request) {
  if (request) zmq_msg_close(&request->frame);
  free(request);
}

// Takes the first request out of a queue, or NULL.
static SnRequest *pop(SnInbox *inbox, SnInboxQueue *q) {
  SnRequest *r = q->first;
  if (!r) return NULL;
  q->first = r->next;
  q->count--;
  q->bytes -= zmq_msg_size(&r->frame);
  inbox->count--;
  return r;
}

static void drop_all(SnInbox *inbox, SnInboxQueue *q) {
  for (SnRequest *r = pop(inbox, q); r; r = pop(inbox, q)) sn_inbox_request_free(r);
}

void sn_inbox_free(SnInbox *inbox) {
  for (int fd = 0; fd < inbox->size; fd++) drop_all(inbox, &inbox->queue[fd]);
  free(inbox->spare);
  free(inbox->queue);
  *inbox = (SnInbox){.first = NONE, .last = NONE};
}

// The queue of a connection, or NULL.
static SnInboxQueue *queue_of(SnInbox *inbox, int fd) {
  if (fd < 0) return NULL;
  if (fd >= inbox->size) {
    const int size = 2 * fd + 64;
    SnInboxQueue *queue = realloc(inbox->queue, (size_t)size * sizeof *queue);
    if (!queue) return NULL;
    memset(queue + inbox->size, 0, (size_t)(size - inbox->size) * sizeof *queue);
    inbox->queue = queue;
    inbox->size = size;
  }
  return &inbox->queue[fd];
}

// Gives a queue its turn after all others.
static void line_up(SnInbox *inbox, int fd) {
  SnInboxQueue *q = &inbox->queue[fd];
  if (q->in_turn) return;
  q->in_turn = true;
  q->next = NONE;
  if (inbox->last == NONE)
    inbox->first = fd;
  else
    inbox->queue[inbox->last].next = fd;
  inbox->last = fd;
}

bool sn_inbox_push(SnInbox *inbox, int fd, const SnRoute *route, zmq_msg_t *frame, bool several) {
  SnInboxQueue *q = queue_of(inbox, fd);
  if (!q) return false;
  const size_t bytes = several ? 0 : zmq_msg_size(frame);
  const bool fits = q->count < inbox->max && q->bytes + bytes <= inbox->max_bytes;
  SnRequest *r = fits ? malloc(sizeof *r + route->size) : NULL;
  if (fits && !r) {
    r = inbox->spare;
    inbox->spare = NULL;
  }
  if (!inbox->spare) inbox->spare = malloc(sizeof *r + sizeof route->identity);
  if (!r) {
    drop_all(inbox, q);
    return false;
  }
  r->next = NULL;
  r->arrived = route->arrived;
  r->peer = route->peer;
  r->link = route->link;
  r->several = several;
  r->size = route->size;
  memcpy(r->identity, route->identity, route->size);
  zmq_msg_init(&r->frame);
  if (!several) zmq_msg_move(&r->frame, frame);
  if (q->first)
    q->last->next = r;
  else
    q->first = r;
  q->last = r;
  q->count++;
  q->bytes += bytes;
  inbox->count++;
  line_up(inbox, fd);
  return true;
}

SnRequest *sn_inbox_pop(SnInbox *inbox) {
  while (inbox->first != NONE) {
    const int fd = inbox->first;
    SnInboxQueue *q = &inbox->queue[fd];
    inbox->first = q->next;
    if (inbox->first == NONE) inbox->last = NONE;
    q->in_turn = false;
    SnRequest *r = pop(inbox, q);
    if (q->first) line_up(inbox, fd);
    if (r) return r;
  }
  return NULL;
}
