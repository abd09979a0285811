#include "daemon/wire/sockets_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <zmq.h>

#include "physics/base/clock.h"
#include "daemon/wire/endpoint_private.h"

// REPLIES_WAITING is more than a burst of requests makes; a client that has so many does not read. SUBSCRIBER_BYTES
// holds the handshake of a SUB socket and the subscription to everything; up to there libzmq copies frames, and keeps
// longer ones with the buffer that they came in.
enum { REPLIES_WAITING = 256, SUBSCRIBER_BYTES = 32, HANDSHAKE_MS = 5000 };

// Seconds for tries to listen again.
#define TRIES_TIME 5.0

static void set_int(void *socket, int option, int value) { zmq_setsockopt(socket, option, &value, sizeof value); }

static SnCode bind_address(void *socket, const char *address, SnError *err) {
  if (strchr(address, '[')) set_int(socket, ZMQ_IPV6, 1);
  // Sockets are for this user alone.
  mode_t mask = umask(0077);
  int rc = zmq_bind(socket, address);
  umask(mask);
  if (rc == 0) return SN_OK;
  return sn_fail(err, SN_ERR_IO, "cannot listen on %s: %s", address, zmq_strerror(errno));
}

// A socket and its monitor.
static SnCode open_door(SnSockets *s, SnDoor *door, int type, int message_bytes, SnError *err) {
  char name[32];
  door->socket = zmq_socket(s->context, type);
  door->monitor = zmq_socket(s->context, ZMQ_PAIR);
  if (!door->socket || !door->monitor)
    return sn_fail(err, SN_ERR_LIMIT, "cannot make sockets: %s", zmq_strerror(errno));
  int64_t most = message_bytes;
  zmq_setsockopt(door->socket, ZMQ_MAXMSGSIZE, &most, sizeof most);
  set_int(door->socket, ZMQ_LINGER, 0);
  set_int(door->socket, ZMQ_SNDHWM, REPLIES_WAITING);
  set_int(door->socket, ZMQ_RCVHWM, 0);  // the inbox counts what waits, and says why
  set_int(door->socket, ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS);
  set_int(door->monitor, ZMQ_RCVHWM, 0);
  set_int(door->monitor, ZMQ_LINGER, 0);
  snprintf(name, sizeof name, "inproc://monitor-%d", s->monitors++);
  const int events = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED;
  if (zmq_socket_monitor(door->socket, name, events) != 0 || zmq_connect(door->monitor, name) != 0)
    return sn_fail(err, SN_ERR_IO, "cannot watch connections: %s", zmq_strerror(errno));
  return SN_OK;
}

// libzmq numbers the clients that have not given themselves a name from rand() on, which nobody else seeds. A stranger
// who knows the next number can take it as his name, and libzmq ends the process when it finds it taken.
static SnCode make_numbers_random(SnError *err) {
  unsigned seed;
  if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
    return sn_fail(err, SN_ERR_IO, "the system gives no random numbers: %s", strerror(errno));
  srand(seed);
  return SN_OK;
}

// A stranger who takes the name of a client that is connected must not get its replies (ZMQ_ROUTER_HANDOVER): the
// socket does not listen to the newcomer (sn_connections_cut_unheard).
static SnCode open_router(SnSockets *s, SnError *err) {
  SnDoor *door = &s->router;
  SnCode code = make_numbers_random(err);
  if (code == SN_OK) code = open_door(s, door, ZMQ_ROUTER, s->config->message_bytes, err);
  if (code != SN_OK) return code;
  set_int(door->socket, ZMQ_ROUTER_MANDATORY, 1);  // a full pipe and a client that is gone are told
  code = bind_address(door->socket, s->config->endpoint, err);
  if (code == SN_OK && *s->config->tcp) code = bind_address(door->socket, s->config->tcp, err);
  return code;
}

// A PUB socket with ZMQ_CONFLATE holds one message a subscriber and direction, the newest, whatever is sent to it.
static SnCode open_telemetry(SnSockets *s, SnError *err) {
  if (!*s->config->telemetry) return SN_OK;
  SnDoor *door = &s->telemetry;
  SnCode code = open_door(s, door, ZMQ_PUB, SUBSCRIBER_BYTES, err);
  if (code != SN_OK) return code;
  set_int(door->socket, ZMQ_CONFLATE, 1);
  return bind_address(door->socket, s->config->telemetry, err);
}

static SnCode check_and_lock(SnSockets *s, SnError *err) {
  const SnConfig *c = s->config;
  SnCode code = sn_endpoint_check(c->endpoint, err);
  if (code == SN_OK && *c->tcp) code = sn_endpoint_check(c->tcp, err);
  if (code == SN_OK && *c->tcp && strncmp(c->tcp, "tcp://", 6))
    code = sn_fail(err, SN_ERR_ARGUMENT, "tcp is %s; it must begin with tcp://", c->tcp);
  if (code == SN_OK && *c->telemetry) code = sn_endpoint_check(c->telemetry, err);
  if (code == SN_OK && *c->telemetry && (!strcmp(c->telemetry, c->endpoint) || !strcmp(c->telemetry, c->tcp)))
    code = sn_fail(err, SN_ERR_ARGUMENT, "telemetry and requests need different addresses; both are %s", c->telemetry);
  if (code == SN_OK) code = sn_endpoint_lock(c->endpoint, &s->router_lock, err);
  if (code == SN_OK && *c->telemetry) code = sn_endpoint_lock(c->telemetry, &s->telemetry_lock, err);
  return code;
}

SnCode sn_sockets_open(SnSockets *s, const SnConfig *config, const SnLog *log, SnError *err) {
  *s = (SnSockets){.config = config, .log = log, .router_lock = -1, .telemetry_lock = -1};
  s->router.name = "requests";
  s->telemetry.name = "telemetry";
  SnCode code = check_and_lock(s, err);
  if (code != SN_OK) return code;
  s->context = zmq_ctx_new();
  s->slot = calloc((size_t)config->connections, sizeof(SnParcel *));
  if (!s->context || !s->slot) return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  code = open_router(s, err);
  return code == SN_OK ? open_telemetry(s, err) : code;
}

static void close_door(SnSockets *s, SnDoor *door, double linger) {
  if (door->socket) {
    zmq_socket_monitor(door->socket, NULL, 0);
    set_int(door->socket, ZMQ_LINGER, (int)(1000 * linger));
    zmq_close(door->socket);
  }
  if (door->monitor) zmq_close(door->monitor);
  door->socket = door->monitor = NULL;
  door->connections = 0;
  sn_connections_forget(&s->connections, door);
}

static void drop_slots(SnSockets *s) {
  for (int i = 0; i < s->slots; i++) free(s->slot[i]);
  s->slots = 0;
}

void sn_sockets_drop(SnSockets *s, SnDoor *door, double pause) {
  if (!door->socket) return;
  close_door(s, door, 0);
  if (door == &s->router) drop_slots(s);
  door->opens = sn_clock_now() + pause;
}

// Opens a door again when it is time. An address is free a moment after the close only, so it may take some tries.
static SnCode open_again(SnSockets *s, SnDoor *door, double now, SnError *err) {
  if (door->opens == 0 || now < door->opens) return SN_OK;
  SnCode code = door == &s->router ? open_router(s, err) : open_telemetry(s, err);
  if (code == SN_OK) {
    sn_log_event(s->log, SN_LOG_INFO, "listening: to %s again", door->name);
    door->opens = 0;
  } else {
    close_door(s, door, 0);
  }
  return code;
}

// One line, however many they were.
static void report_refused(SnSockets *s, SnDoor *door) {
  if (door->refused)
    sn_log_event(s->log, SN_LOG_WARNING, "refused: %d connections for %s; at most %d are allowed", door->refused,
                 door->name, s->config->connections);
  door->refused = 0;
}

SnCode sn_sockets_tend(SnSockets *s, SnError *err) {
  SnError telemetry_err = {0};
  report_refused(s, &s->router);
  report_refused(s, &s->telemetry);
  const double now = sn_clock_now();
  const int unheard = sn_connections_cut_unheard(&s->connections, now);
  if (unheard) sn_log_event(s->log, SN_LOG_DEBUG, "unheard: %d connections are to try again", unheard);
  if (open_again(s, &s->telemetry, now, &telemetry_err) != SN_OK && now > s->telemetry.opens + TRIES_TIME) {
    sn_log_event(s->log, SN_LOG_WARNING, "telemetry: %s", telemetry_err.text);
    s->telemetry.opens = now + TRIES_TIME;
  }
  SnCode code = open_again(s, &s->router, now, err);
  return now > s->router.opens + TRIES_TIME ? code : SN_OK;
}

void sn_sockets_close(SnSockets *s, double linger) {
  if (!s->config) return;
  close_door(s, &s->router, linger);
  close_door(s, &s->telemetry, 0);
  if (s->context) zmq_ctx_term(s->context);
  drop_slots(s);
  free(s->slot);
  sn_connections_free(&s->connections);
  sn_endpoint_unlock(s->config->endpoint, s->router_lock);
  sn_endpoint_unlock(s->config->telemetry, s->telemetry_lock);
}

// True when the parcel needs no further care: sent, or its client is gone.
static bool try_send(SnSockets *s, const SnParcel *p) {
  if (!s->router.socket) return true;
  if (zmq_send(s->router.socket, p->route.identity, p->route.size, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
    return errno != EAGAIN;
  if (zmq_send(s->router.socket, p->bytes, p->size, ZMQ_DONTWAIT) < 0)
    sn_log_event(s->log, SN_LOG_WARNING, "send-failed: %s", zmq_strerror(errno));
  return true;
}

void sn_sockets_send(SnSockets *s, SnParcel *parcel) {
  int i = 0;
  while (i < s->slots && (s->slot[i]->route.size != parcel->route.size ||
                          memcmp(s->slot[i]->route.identity, parcel->route.identity, parcel->route.size)))
    i++;
  bool has_slot = i < s->slots;
  if (!has_slot && try_send(s, parcel)) {
    free(parcel);
  } else if (has_slot) {
    free(s->slot[i]);
    s->slot[i] = parcel;
  } else if (s->slots < s->config->connections) {
    s->slot[s->slots++] = parcel;
  } else {
    free(parcel);
  }
}

bool sn_sockets_retry(SnSockets *s) {
  for (int i = s->slots - 1; i >= 0; i--) {
    if (!try_send(s, s->slot[i])) continue;
    free(s->slot[i]);
    s->slot[i] = s->slot[--s->slots];
  }
  return s->slots > 0;
}

// A monitor's event: a frame with the number of the event (2 bytes) and its value (4 bytes), then one with the address.
// False when there is none.
static bool next_event(void *monitor, uint16_t *event, int *value) {
  unsigned char head[6], address[256];
  uint32_t number;
  if (zmq_recv(monitor, head, sizeof head, ZMQ_DONTWAIT) != (int)sizeof head) return false;
  zmq_recv(monitor, address, sizeof address, ZMQ_DONTWAIT);
  memcpy(event, head, 2);
  memcpy(&number, head + 2, 4);
  *value = (int)number;
  return true;
}

void sn_sockets_watch(SnSockets *s, SnDoor *door) {
  uint16_t event;
  int fd;
  while (door->monitor && next_event(door->monitor, &event, &fd)) {
    if (event == ZMQ_EVENT_DISCONNECTED) {
      door->connections--;
      sn_connections_close(&s->connections, fd, sn_clock_now());
    }
    if (event != ZMQ_EVENT_ACCEPTED) continue;
    sn_connections_open(&s->connections, door, fd, sn_clock_now(), door == &s->telemetry);
    if (++door->connections <= s->config->connections) continue;
    // The socket library has no way to refuse a connection; one that ends at once comes to the same.
    door->refused++;
    sn_connections_cut(&s->connections, fd);
  }
}

void sn_sockets_publish(SnSockets *s, const void *bytes, size_t size) {
  if (s->telemetry.socket) zmq_send(s->telemetry.socket, bytes, size, ZMQ_DONTWAIT);
}
