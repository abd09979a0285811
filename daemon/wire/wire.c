#include "daemon/wire/wire.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "daemon/wire/inbox_private.h"
#include "daemon/wire/memory_guard_private.h"
#include "daemon/wire/sockets_private.h"
#include "daemon/wire/users_private.h"
#include "physics/base/clock.h"

// Requests read in a row before others get their turn, and how many of these before it is looked whose they are; the
// time between tries at full pipes, in milliseconds; requests that a connection may have waiting, and how many of the
// longest.
enum { READ_BURST = 4096, READ_TOGETHER = 64, RETRY_MS = 2, MAX_WAITING = 65536, LONGEST_WAITING = 16 };

// Sockets are looked at so often even where libzmq has not said that there is something [s].
#define LOOK_TIME 0.05

// A request as it came.
typedef struct Arrival {
  SnRoute route;  // with the file of the connection alone
  int name;       // bytes of its routing id
  bool several;   // it had several frames
  zmq_msg_t frame;
} Arrival;

struct SnWire {
  SnSockets sockets;
  Arrival arrival[READ_TOGETHER];
  double looked;  // when all sockets were looked at
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

SnCode sn_wire_check(const SnConfig *config, SnError *err) {
  const SnCode code = sn_users_check(config->users, err);
  return code == SN_OK ? sn_sockets_check(config, err) : code;
}

void sn_wire_revoke(SnWire *wire) { sn_sockets_revoke(&wire->sockets); }

void sn_wire_close(SnWire *wire, double linger) {
  if (!wire) return;
  sn_sockets_close(&wire->sockets, linger);
  sn_inbox_free(&wire->inbox);
  free(wire);
}

// The file that libzmq makes readable when something has happened to a socket that was read to its end.
static int file_of(void *socket) {
  int fd = -1;
  size_t size = sizeof fd;
  return socket && zmq_getsockopt(socket, ZMQ_FD, &fd, &size) == 0 ? fd : -1;
}

// Lets a socket do what it was told by other threads. Returns whether it can be read.
static bool can_be_read(void *socket) {
  int events = 0;
  size_t size = sizeof events;
  return socket && zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size) == 0 && (events & ZMQ_POLLIN);
}

// One call of poll() for all: zmq_poll() asks the system about each socket, before and after. What a socket takes in
// while it sends makes its file readable no more, so one that has sent is asked. Returns the time to wait [ms].
static int time_to_wait(SnWire *wire, int max_ms) {
  SnListener *router = &wire->sockets.router;
  const bool unread = wire->inbox.count > 0 || (router->behind && can_be_read(router->socket));
  if (unread || wire->sockets.records.behind || wire->sockets.zap.more) return 0;
  const int interval = sn_memory_guard_interval(&wire->guard);
  return wire->full ? RETRY_MS : interval < max_ms ? interval : max_ms;
}

bool sn_wire_wait(SnWire *wire, const int fd[SN_WIRE_FILES], bool ready[SN_WIRE_FILES], int max_ms, double *woke) {
  SnSockets *s = &wire->sockets;
  SnListener *const listener[3] = {&s->router, &s->telemetry, &s->records};
  enum { ZAP = SN_WIRE_FILES, SOCKET, MONITOR = SOCKET + 3, FILES = MONITOR + 3 };
  struct pollfd file[FILES] = {0};
  for (int i = 0; i < SN_WIRE_FILES; i++) file[i].fd = fd[i];
  file[ZAP].fd = file_of(s->zap.socket);
  for (int i = 0; i < 3; i++) {
    file[SOCKET + i].fd = file_of(listener[i]->socket);
    file[MONITOR + i].fd = file_of(listener[i]->monitor);
  }
  for (int i = 0; i < FILES; i++) file[i].events = POLLIN;
  if (poll(file, FILES, time_to_wait(wire, max_ms)) < 0) {
    if (errno != EINTR) return false;
    for (int i = 0; i < FILES; i++) file[i].revents = 0;
  }
  *woke = sn_clock_now();
  const bool all = *woke - wire->looked >= LOOK_TIME;
  if (all) wire->looked = *woke;
  for (int i = 0; i < SN_WIRE_FILES; i++) ready[i] = file[i].revents != 0;
  for (int i = 0; i < 3; i++)
    if (all || file[MONITOR + i].revents) sn_sockets_read_monitor(s, listener[i]);
  if (all || file[SOCKET + 1].revents) can_be_read(s->telemetry.socket);
  if (all || file[SOCKET + 2].revents || s->records.behind) s->records.behind = sn_sockets_read_subscriptions(s);
  if (all || file[ZAP].revents || s->zap.more) sn_zap_answer(&s->zap);
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

// Receives one request: the routing id of the client, then exactly one frame. False when there is none.
static bool receive(SnWire *wire, Arrival *a) {
  void *router = wire->sockets.router.socket;
  a->route = (SnRoute){.arrived = sn_clock_now()};
  a->name = router ? zmq_recv(router, a->route.identity, sizeof a->route.identity, ZMQ_DONTWAIT) : -1;
  if (a->name < 0) return false;
  a->route.link.fd = -1;
  a->several = false;
  zmq_msg_init(&a->frame);
  if (zmq_msg_recv(&a->frame, router, ZMQ_DONTWAIT) < 0) return true;
  a->route.link.fd = zmq_msg_get(&a->frame, ZMQ_SRCFD);
  a->route.peer = sn_zap_peer(&wire->sockets.zap, &a->frame);
  a->several = drop_rest(router, &a->frame);
  return true;
}

// Puts a request in line, or ends the connection that it came by. A routing id longer than libzmq allows its users,
// which a connection can give itself all the same, is nobody that could be answered: cut to our size it would be
// somebody else. Returns false then.
static bool put_in_line(SnWire *wire, Arrival *a) {
  SnConnections *connections = &wire->sockets.connections;
  SnRoute *route = &a->route;
  const int fd = route->link.fd;
  const bool nobody = a->name > (int)sizeof route->identity;
  route->size = nobody ? 0 : (uint8_t)a->name;
  route->link.number = sn_connections_number(connections, fd);
  if (nobody) {
    if (sn_connections_cut(connections, fd))
      sn_log_event(wire->log, SN_LOG_WARNING,
                   "refused: a connection with a routing id of %d bytes; at most %zu are allowed", a->name,
                   sizeof route->identity);
    return false;
  }
  if (!route->peer) {
    // The key has been taken off the list since it was let in.
    sn_connections_cut(connections, fd);
    return false;
  }
  if (sn_connections_spoke(connections, fd, is_name(route), route->arrived) &&
      !sn_inbox_push(&wire->inbox, fd, route, &a->frame, a->several) && sn_connections_cut(connections, fd))
    sn_log_event(wire->log, SN_LOG_WARNING, "refused: a connection with more than %d requests or %zu bytes waiting",
                 wire->inbox.max, wire->inbox.max_bytes);
  return true;
}

int sn_wire_read(SnWire *wire) {
  int refused = 0, n = READ_TOGETHER;
  for (int all = 0; n == READ_TOGETHER && all < READ_BURST; all += n) {
    for (n = 0; n < READ_TOGETHER && receive(wire, &wire->arrival[n]);) n++;
    // One may have been accepted since the monitor was last read, on the file of one that has ended since.
    if (n > 0) sn_sockets_read_monitor(&wire->sockets, &wire->sockets.router);
    for (int i = 0; i < n; i++) {
      refused += !put_in_line(wire, &wire->arrival[i]);
      zmq_msg_close(&wire->arrival[i].frame);
    }
  }
  wire->sockets.router.behind = n == READ_TOGETHER;
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

bool sn_wire_is_watched(const SnWire *wire) { return wire->sockets.telemetry.connections > 0; }

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
                      .published = s->published,
                      .memory_drops = wire->guard.drops,
                      .memory_limit = wire->guard.limit};
  for (int i = 0; i < 3; i++) {
    out.connections[i] = listener[i]->connections;
    out.refused[i] = listener[i]->refused;
    out.evicted[i] = listener[i]->evicted;
  }
  return out;
}

bool sn_wire_guard(SnWire *wire, double now) {
  if (now - wire->guarded < 1e-3 * sn_memory_guard_interval(&wire->guard)) return false;
  wire->guarded = now;
  return sn_memory_guard_check(&wire->guard, &wire->sockets, now);
}

SnCode sn_wire_maintain(SnWire *wire, SnError *err) { return sn_sockets_maintain(&wire->sockets, err); }
