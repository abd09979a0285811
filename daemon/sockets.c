#include "daemon/sockets.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <zmq.h>

#include "daemon/endpoint.h"

// REPLIES_WAITING is more than a burst of requests makes; a client that has so many does not read.
enum { REQUESTS_WAITING = 16, REPLIES_WAITING = 256, TOPIC_BYTES = 256, HANDSHAKE_MS = 5000, REOPEN_TRIES = 100 };

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

static void *new_socket(SnSockets *s, int type, int message_bytes) {
  void *socket = zmq_socket(s->context, type);
  if (!socket) return NULL;
  int64_t most = message_bytes;
  zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &most, sizeof most);
  set_int(socket, ZMQ_LINGER, 0);
  set_int(socket, ZMQ_SNDHWM, REPLIES_WAITING);
  set_int(socket, ZMQ_RCVHWM, REQUESTS_WAITING);
  set_int(socket, ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS);
  return socket;
}

static SnCode open_router(SnSockets *s, SnError *err) {
  s->router = new_socket(s, ZMQ_ROUTER, s->config->message_bytes);
  s->monitor = zmq_socket(s->context, ZMQ_PAIR);
  if (!s->router || !s->monitor) return sn_fail(err, SN_ERR_LIMIT, "cannot make sockets: %s", zmq_strerror(errno));
  set_int(s->router, ZMQ_ROUTER_MANDATORY, 1);  // a full pipe and a client that is gone are told
  set_int(s->router, ZMQ_ROUTER_HANDOVER, 1);   // a client that reconnects under its name gets its replies
  set_int(s->monitor, ZMQ_RCVHWM, 0);
  set_int(s->monitor, ZMQ_LINGER, 0);
  int events = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED;
  if (zmq_socket_monitor(s->router, "inproc://monitor", events) != 0 ||
      zmq_connect(s->monitor, "inproc://monitor") != 0)
    return sn_fail(err, SN_ERR_IO, "cannot watch connections: %s", zmq_strerror(errno));
  SnCode code = bind_address(s->router, s->config->endpoint, err);
  if (code == SN_OK && *s->config->tcp) code = bind_address(s->router, s->config->tcp, err);
  return code;
}

static SnCode open_telemetry(SnSockets *s, SnError *err) {
  if (!*s->config->telemetry) return SN_OK;
  s->telemetry = new_socket(s, ZMQ_XPUB, TOPIC_BYTES);
  if (!s->telemetry) return sn_fail(err, SN_ERR_LIMIT, "cannot make sockets: %s", zmq_strerror(errno));
  set_int(s->telemetry, ZMQ_XPUB_MANUAL, 1);
  return bind_address(s->telemetry, s->config->telemetry, err);
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
  SnCode code = check_and_lock(s, err);
  if (code != SN_OK) return code;
  s->context = zmq_ctx_new();
  s->slot = calloc((size_t)config->connections, sizeof(SnParcel *));
  if (!s->context || !s->slot) return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  code = open_router(s, err);
  return code == SN_OK ? open_telemetry(s, err) : code;
}

static void close_router(SnSockets *s, double linger) {
  if (s->router) {
    zmq_socket_monitor(s->router, NULL, 0);
    set_int(s->router, ZMQ_LINGER, (int)(1000 * linger));
    zmq_close(s->router);
  }
  if (s->monitor) zmq_close(s->monitor);
  s->router = s->monitor = NULL;
}

SnCode sn_sockets_reopen(SnSockets *s, SnError *err) {
  close_router(s, 0);
  for (int i = 0; i < s->slots; i++) free(s->slot[i]);
  s->slots = s->connections = 0;
  SnCode code = SN_OK;
  // The name of the monitor, and a tcp port, are free a moment after the close.
  for (int i = 0; i < REOPEN_TRIES; i++) {
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    code = open_router(s, err);
    if (code == SN_OK) break;
    close_router(s, 0);
  }
  malloc_trim(0);
  return code;
}

void sn_sockets_close(SnSockets *s, double linger) {
  if (!s->config) return;
  close_router(s, linger);
  if (s->telemetry) zmq_close(s->telemetry);
  if (s->context) zmq_ctx_term(s->context);
  for (int i = 0; i < s->slots; i++) free(s->slot[i]);
  free(s->slot);
  sn_endpoint_unlock(s->config->endpoint, s->router_lock);
  sn_endpoint_unlock(s->config->telemetry, s->telemetry_lock);
}

// True when the parcel needs no further care: sent, or its client is gone.
static bool try_send(SnSockets *s, const SnParcel *p) {
  if (zmq_send(s->router, p->route.identity, p->route.size, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) return errno != EAGAIN;
  if (zmq_send(s->router, p->bytes, p->size, ZMQ_DONTWAIT) < 0)
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

void sn_sockets_watch(SnSockets *s) {
  uint16_t event;
  int fd;
  while (next_event(s->monitor, &event, &fd)) {
    if (event == ZMQ_EVENT_DISCONNECTED) s->connections--;
    if (event != ZMQ_EVENT_ACCEPTED) continue;
    if (++s->connections <= s->config->connections) continue;
    // The socket library has no way to refuse a connection; one that ends at once comes to the same.
    sn_log_event(s->log, SN_LOG_WARNING, "refused: connection %d; at most %d are allowed", s->connections,
                 s->config->connections);
    shutdown(fd, SHUT_RDWR);
  }
}

void sn_sockets_subscriptions(SnSockets *s) {
  unsigned char topic[TOPIC_BYTES + 1];
  int n;
  while (s->telemetry && (n = zmq_recv(s->telemetry, topic, sizeof topic, ZMQ_DONTWAIT)) >= 0)
    if (n == 1) zmq_setsockopt(s->telemetry, topic[0] == 1 ? ZMQ_SUBSCRIBE : ZMQ_UNSUBSCRIBE, "", 0);
}

void sn_sockets_publish(SnSockets *s, const void *bytes, size_t size) {
  if (s->telemetry) zmq_send(s->telemetry, bytes, size, ZMQ_DONTWAIT);
}
