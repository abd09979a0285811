#include "daemon/wire/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "daemon/wire/inbox_private.h"
#include "daemon/wire/memory_guard_private.h"
#include "daemon/wire/sockets_private.h"
#include "daemon/wire/users_private.h"
#include "physics/base/clock.h"

// Requests read in a row before others get their turn; the time between tries at full pipes, in milliseconds; requests
// that a connection may have waiting, and how many of the longest.
enum { READ_BURST = 4096, RETRY_MS = 2, MAX_WAITING = 65536, LONGEST_WAITING = 16 };

struct SnWire {
  SnSockets sockets;
  SnInbox inbox;
  SnMemoryGuard guard;
  const SnLog *log;
  double guarded;  // when memory was last looked at
  bool full;       // replies are kept for clients that do not read
};

SnWire *sn_wire_open(const SnConfig *config, const SnLog *log, SnAccess *access, SnRecords *subscribed, SnError *err) {
  SnWire *wire = calloc(1, sizeof *wire);
  if (!wire) {
    sn_fail(err, SN_ERR_MEMORY, "out of memory");
    return NULL;
  }
  wire->log = log;
  sn_inbox_init(&wire->inbox, MAX_WAITING, LONGEST_WAITING * (size_t)config->message_bytes);
  sn_memory_guard_init(&wire->guard, config);
  if (sn_sockets_open(&wire->sockets, config, log, access, subscribed, err) == SN_OK) return wire;
  sn_wire_close(wire, 0);
  return NULL;
}

SnCode sn_wire_check(const SnConfig *config, SnError *err) { return sn_sockets_check(config, err); }

void sn_wire_revoke(SnWire *wire) { sn_sockets_revoke(&wire->sockets); }

void sn_wire_close(SnWire *wire, double linger) {
  if (!wire) return;
  sn_sockets_close(&wire->sockets, linger);
  sn_inbox_free(&wire->inbox);
  free(wire);
}

// The poll items of all sockets. Returns how many.
static int fill_items(const SnWire *wire, zmq_pollitem_t *items) {
  const SnSockets *s = &wire->sockets;
  const SnListener *listener[3] = {&s->router, &s->telemetry, &s->records};
  int n = 0;
  for (int i = 0; i < 3; i++) {
    if (!listener[i]->socket) continue;
    items[n++] = (zmq_pollitem_t){listener[i]->socket, 0, ZMQ_POLLIN, 0};
    items[n++] = (zmq_pollitem_t){listener[i]->monitor, 0, ZMQ_POLLIN, 0};
  }
  if (s->zap.socket) items[n++] = (zmq_pollitem_t){s->zap.socket, 0, ZMQ_POLLIN, 0};
  return n;
}

bool sn_wire_wait(SnWire *wire, const int fd[SN_WIRE_FILES], bool ready[SN_WIRE_FILES], int max_ms) {
  SnSockets *s = &wire->sockets;
  SnListener *listener[3] = {&s->router, &s->telemetry, &s->records};
  zmq_pollitem_t items[7 + SN_WIRE_FILES];
  int n = fill_items(wire, items), item[SN_WIRE_FILES];
  for (int i = 0; i < SN_WIRE_FILES; i++) {
    item[i] = fd[i] >= 0 ? n : -1;
    if (fd[i] >= 0) items[n++] = (zmq_pollitem_t){NULL, fd[i], ZMQ_POLLIN, 0};
  }
  const int interval = sn_memory_guard_interval(&wire->guard);
  const int wait = wire->inbox.count > 0 ? 0 : wire->full ? RETRY_MS : interval < max_ms ? interval : max_ms;
  if (zmq_poll(items, n, wait) < 0 && errno != EINTR) return false;
  for (int i = 0; i < SN_WIRE_FILES; i++) ready[i] = item[i] >= 0 && items[item[i]].revents != 0;
  for (int i = 0; i < 3; i++) sn_sockets_read_monitor(s, listener[i]);
  sn_sockets_read_subscriptions(s);
  sn_zap_answer(&s->zap);
  return true;
}

// Reads and drops the rest of a message of several frames.
static bool drop_rest(void *socket, zmq_msg_t *frame) {
  bool more = zmq_msg_more(frame);
  for (bool next = more; next;) {
    if (zmq_msg_recv(frame, socket, ZMQ_DONTWAIT) < 0) break;
    next = zmq_msg_more(frame);
  }
  return more;
}

// libzmq numbers clients without a name: a zero and four bytes.
static bool is_name(const SnRoute *route) { return route->size != 5 || route->identity[0] != 0; }

// Reads one request: the routing id of the client, then exactly one frame. False when there is none. A routing id
// longer than libzmq allows its users, which a connection can give itself all the same, is nobody that could be
// answered: cut to our size it would be somebody else. *refused counts such ones.
static bool read_request(SnWire *wire, int *refused) {
  SnConnections *connections = &wire->sockets.connections;
  SnRoute route = {.arrived = sn_clock_now()};
  void *router = wire->sockets.router.socket;
  const int n = router ? zmq_recv(router, route.identity, sizeof route.identity, ZMQ_DONTWAIT) : -1;
  if (n < 0) return false;
  const bool nobody = n > (int)sizeof route.identity;
  route.size = nobody ? 0 : (uint8_t)n;

  zmq_msg_t frame;
  zmq_msg_init(&frame);
  if (zmq_msg_recv(&frame, router, ZMQ_DONTWAIT) >= 0) {
    const int fd = zmq_msg_get(&frame, ZMQ_SRCFD);
    route.peer = sn_zap_peer(&wire->sockets.zap, &frame);
    const bool several = drop_rest(router, &frame);
    // It may have been accepted since the monitor was last read, on the file of one that has ended since.
    sn_sockets_read_monitor(&wire->sockets, &wire->sockets.router);
    route.link = (SnLink){fd, sn_connections_number(connections, fd)};
    if (nobody) {
      ++*refused;
      if (sn_connections_cut(connections, fd))
        sn_log_event(wire->log, SN_LOG_WARNING,
                     "refused: a connection with a routing id of %d bytes; at most %zu are allowed", n,
                     sizeof route.identity);
    } else if (!route.peer) {
      // The key has been taken off the list since it was let in.
      ++*refused;
      sn_connections_cut(connections, fd);
    } else if (sn_connections_spoke(connections, fd, is_name(&route), route.arrived) &&
               !sn_inbox_push(&wire->inbox, fd, &route, &frame, several)) {
      if (sn_connections_cut(connections, fd))
        sn_log_event(wire->log, SN_LOG_WARNING, "refused: a connection with more than %d requests or %zu bytes waiting",
                     wire->inbox.max, wire->inbox.max_bytes);
    }
  }
  zmq_msg_close(&frame);
  return true;
}

int sn_wire_read(SnWire *wire) {
  int refused = 0;
  for (int i = 0; i < READ_BURST && read_request(wire, &refused); i++) continue;
  return refused;
}

bool sn_wire_next(SnWire *wire, SnWireRequest *request) {
  SnRequest *r = sn_inbox_pop(&wire->inbox);
  if (!r) return false;
  *request = (SnWireRequest){.route = {.arrived = r->arrived, .peer = r->peer, .link = r->link, .size = r->size},
                             .several = r->several,
                             .bytes = zmq_msg_data(&r->frame),
                             .size = zmq_msg_size(&r->frame),
                             .held = r};
  memcpy(request->route.identity, r->identity, r->size);
  return true;
}

bool sn_wire_connected(const SnWire *wire, SnLink link) {
  return link.number > 0 && sn_connections_number(&wire->sockets.connections, link.fd) == link.number;
}

void sn_wire_done(SnWireRequest *request) {
  sn_inbox_request_free(request->held);
  *request = (SnWireRequest){0};
}

void sn_wire_send(SnWire *wire, SnReply *reply) { sn_sockets_send(&wire->sockets, reply); }

void sn_wire_flush(SnWire *wire) { wire->full = sn_sockets_flush(&wire->sockets); }

void sn_wire_publish(SnWire *wire, const void *bytes, size_t size) { sn_sockets_publish(&wire->sockets, bytes, size); }

void sn_wire_publish_record(SnWire *wire, SnRecordMessage *record) {
  sn_sockets_publish_record(&wire->sockets, record);
  free(record);
}

const char *sn_wire_listener(int i) {
  static const char *const names[] = {"requests", "telemetry", "records"};
  return names[i];
}

SnWireCounts sn_wire_counts(const SnWire *wire) {
  const SnSockets *s = &wire->sockets;
  const SnListener *listener[3] = {&s->router, &s->telemetry, &s->records};
  SnWireCounts out = {.waiting = wire->inbox.count,
                      .unsent = s->nunsent,
                      .dropped = s->dropped,
                      .denied = s->zap.denied,
                      .turned_away = sn_users_turned_away(&(unsigned){0}),
                      .memory_drops = wire->guard.drops,
                      .memory_limit = wire->guard.limit};
  for (int i = 0; i < 3; i++) {
    out.connections[i] = listener[i]->connections;
    out.refused[i] = listener[i]->refused;
    out.evicted[i] = listener[i]->evicted;
  }
  return out;
}

void sn_wire_guard(SnWire *wire, double now) {
  if (now - wire->guarded < 1e-3 * sn_memory_guard_interval(&wire->guard)) return;
  sn_memory_guard_check(&wire->guard, &wire->sockets, now);
  wire->guarded = now;
}

SnCode sn_wire_maintain(SnWire *wire, SnError *err) { return sn_sockets_maintain(&wire->sockets, err); }
