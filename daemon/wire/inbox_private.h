// Requests that have been read and wait for their turn: one queue a connection, served in turn. The router is emptied
// at once, and requests that a connection has waiting are counted here. If the socket library had to hold a connection
// back, it might never notice that it breaks off, or end the process (daemon/RUNNING.md). The event loop's alone.
#ifndef SINEW_DAEMON_WIRE_INBOX_PRIVATE_H_
#define SINEW_DAEMON_WIRE_INBOX_PRIVATE_H_

#include <stdbool.h>
#include <stddef.h>
#include <zmq.h>

#include "daemon/wire/outbox.h"

typedef struct SnRequest {
  struct SnRequest *next;
  double arrived;   // on sn_clock_now()
  SnPeer *peer;     // who sent it
  SnLink link;      // connection that it came by
  bool several;     // it came with more frames, which were dropped
  zmq_msg_t frame;  // empty where there were several
  uint8_t size;
  uint8_t identity[];  // (size) the client's routing id
} SnRequest;

typedef struct SnInboxQueue {
  SnRequest *first, *last;
  int count;
  size_t bytes;
  bool in_turn;
  int next;  // the queue whose turn comes after this one's; -1: none
} SnInboxQueue;

typedef struct SnInbox {
  SnInboxQueue *queue;  // (size), by the connection's file descriptor
  int size;
  int count;        // requests in all queues
  int first, last;  // queues that have requests, in turn; -1: none
  int max;          // requests, and bytes, that one connection may have waiting
  size_t max_bytes;
  SnRequest *spare;  // room for one, for when memory ends
} SnInbox;

void sn_inbox_init(SnInbox *inbox, int max, size_t max_bytes);
void sn_inbox_free(SnInbox *inbox);

// Takes in a request that arrived under the route; the frame is moved. Returns false when the connection has too much
// waiting or memory is out; then all that it has waiting is dropped.
bool sn_inbox_push(SnInbox *inbox, int fd, const SnRoute *route, zmq_msg_t *frame, bool several);

// Takes the oldest request of the connection whose turn it is; NULL when there is none. The caller frees it.
SnRequest *sn_inbox_pop(SnInbox *inbox);
void sn_inbox_request_free(SnRequest *request);

#endif
