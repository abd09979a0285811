#include "daemon/wire/sockets_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <zmq.h>

#include "daemon/base/threads.h"
#include "daemon/wire/endpoint_private.h"
#include "daemon/wire/users_private.h"
#include "physics/base/clock.h"

// REPLIES_WAITING is more than a burst of requests makes; a client that has so many does not read. RECORDS_WAITING are
// those of a second at 1 kHz, two a plan. SUBSCRIBER_BYTES holds the handshake of a SUB socket and a subscription to
// everything or to a session; up to there libzmq copies frames, and keeps longer ones with the buffer that they came
// in. KEYED_SUBSCRIBER_BYTES holds the longest message of a handshake with keys. SUBSCRIPTIONS_BURST is how many are
// read before others get their turn. LIBRARY_THREADS are those that libzmq starts, or ends the process.
enum {
  REPLIES_WAITING = 256,
  RECORDS_WAITING = 2048,
  SUBSCRIBER_BYTES = 32,
  KEYED_SUBSCRIBER_BYTES = 512,
  SUBSCRIPTIONS_BURST = 4096,
  LIBRARY_THREADS = 2,
  HANDSHAKE_MS = 5000
};

// Seconds for tries to listen again.
#define TRIES_TIME 5.0

static void set_int(void *socket, int option, int value) { zmq_setsockopt(socket, option, &value, sizeof value); }

static SnCode bind_address(const SnSockets *s, const SnListener *listener, SnSocketFile *file, const char *address,
                           SnError *err) {
  const SnCode code = sn_zap_secure(&s->zap, listener->socket, address, listener->name, err);
  return code == SN_OK ? sn_socket_bind(file, listener->socket, address, err) : code;
}

// A socket and its monitor.
static SnCode open_listener(SnSockets *s, SnListener *listener, int type, int message_bytes, SnError *err) {
  char name[32];
  listener->socket = zmq_socket(s->context, type);
  listener->monitor = zmq_socket(s->context, ZMQ_PAIR);
  if (!listener->socket || !listener->monitor)
    return sn_fail(err, SN_ERR_LIMIT, "cannot make sockets: %s", zmq_strerror(errno));
  int64_t max = message_bytes;
  zmq_setsockopt(listener->socket, ZMQ_MAXMSGSIZE, &max, sizeof max);
  set_int(listener->socket, ZMQ_LINGER, 0);
  set_int(listener->socket, ZMQ_SNDHWM, REPLIES_WAITING);
  set_int(listener->socket, ZMQ_RCVHWM, 0);  // the inbox counts what waits, and says why
  set_int(listener->socket, ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS);
  set_int(listener->monitor, ZMQ_RCVHWM, 0);
  set_int(listener->monitor, ZMQ_LINGER, 0);
  snprintf(name, sizeof name, "inproc://monitor-%d", s->monitors++);
  const int events = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED;
  if (zmq_socket_monitor(listener->socket, name, events) != 0 || zmq_connect(listener->monitor, name) != 0)
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
  SnListener *listener = &s->router;
  SnCode code = make_numbers_random(err);
  if (code == SN_OK) code = open_listener(s, listener, ZMQ_ROUTER, s->config->message_bytes, err);
  if (code != SN_OK) return code;
  set_int(listener->socket, ZMQ_ROUTER_MANDATORY, 1);  // a full pipe and a client that is gone are told
  code = bind_address(s, listener, &listener->file, s->config->endpoint, err);
  if (code == SN_OK && *s->config->tcp) code = bind_address(s, listener, &(SnSocketFile){0}, s->config->tcp, err);
  return code;
}

static int subscriber_bytes(const SnSockets *s, const char *address) {
  return s->zap.socket && !strncmp(address, "tcp://", 6) ? KEYED_SUBSCRIBER_BYTES : SUBSCRIBER_BYTES;
}

// A PUB socket with ZMQ_CONFLATE holds one message a subscriber and direction, the newest, whatever is sent to it.
static SnCode open_telemetry(SnSockets *s, SnError *err) {
  if (!*s->config->telemetry) return SN_OK;
  SnListener *listener = &s->telemetry;
  SnCode code = open_listener(s, listener, ZMQ_PUB, subscriber_bytes(s, s->config->telemetry), err);
  if (code != SN_OK) return code;
  set_int(listener->socket, ZMQ_CONFLATE, 1);
  return bind_address(s, listener, &listener->file, s->config->telemetry, err);
}

// An XPUB socket tells of each subscription, also of one to a topic that others have, and of the end of the last one to
// a topic. To count them is no use: a SUB socket that has subscribed twice ends that once.
static SnCode open_records(SnSockets *s, SnError *err) {
  if (!*s->config->records) return SN_OK;
  SnListener *listener = &s->records;
  SnCode code = open_listener(s, listener, ZMQ_XPUB, subscriber_bytes(s, s->config->records), err);
  if (code != SN_OK) return code;
  set_int(listener->socket, ZMQ_XPUB_VERBOSE, 1);
  set_int(listener->socket, ZMQ_SNDHWM, RECORDS_WAITING);
  return bind_address(s, listener, &listener->file, s->config->records, err);
}

// An address that a setting has, whose name stands before what is wrong with it.
static SnCode check_address(const char *setting, const char *address, bool keys, SnError *err) {
  SnError why;
  const SnCode code = sn_endpoint_check(address, keys, &why);
  return code == SN_OK ? SN_OK : sn_fail(err, code, "%s: %s", setting, why.text);
}

// The address of what is published, called `name`; "" is none. It must be another than those that are `taken`.
static SnCode check_published(const char *name, const char *address, const char *const taken[3], bool keys,
                              SnError *err) {
  if (!*address) return SN_OK;
  for (int i = 0; i < 3; i++)
    if (!strcmp(address, taken[i]))
      return sn_fail(err, SN_ERR_ARGUMENT, "%s and %s need different addresses; both are %s", name,
                     i < 2 ? "requests" : "records", address);
  return check_address(name, address, keys, err);
}

SnCode sn_sockets_check(const SnConfig *c, SnError *err) {
  const bool keys = *c->curve_key != '\0';
  SnCode code = check_address("endpoint", c->endpoint, keys, err);
  if (code == SN_OK && *c->tcp) code = check_address("tcp", c->tcp, keys, err);
  if (code == SN_OK && *c->tcp && strncmp(c->tcp, "tcp://", 6))
    code = sn_fail(err, SN_ERR_ARGUMENT, "tcp is %s; it must begin with tcp://", c->tcp);
  if (code == SN_OK)
    code =
        check_published("telemetry", c->telemetry, (const char *const[]){c->endpoint, c->tcp, c->records}, keys, err);
  if (code == SN_OK)
    code = check_published("records", c->records, (const char *const[]){c->endpoint, c->tcp, ""}, keys, err);
  return code;
}

static SnCode check_and_lock(SnSockets *s, SnError *err) {
  const SnConfig *c = s->config;
  SnCode code = sn_sockets_check(c, err);
  if (code == SN_OK) code = sn_endpoint_lock(c->endpoint, &s->router_lock, err);
  if (code == SN_OK && *c->telemetry) code = sn_endpoint_lock(c->telemetry, &s->telemetry_lock, err);
  if (code == SN_OK && *c->records) code = sn_endpoint_lock(c->records, &s->records_lock, err);
  return code;
}

SnCode sn_sockets_open(SnSockets *s, const SnConfig *config, const SnLog *log, SnAccess *access, SnRecords *subscribed,
                       SnError *err) {
  *s = (SnSockets){.config = config,
                   .log = log,
                   .subscribed = subscribed,
                   .router_lock = -1,
                   .telemetry_lock = -1,
                   .records_lock = -1};
  s->router.name = "requests";
  s->telemetry.name = "telemetry";
  s->records.name = "records";
  SnCode code = check_and_lock(s, err);
  if (code != SN_OK) return code;
  const int error = sn_threads_try(LIBRARY_THREADS);
  if (error)
    return sn_fail(err, SN_ERR_LIMIT,
                   "cannot start the threads of libzmq: %s; see ulimit -u and -v, TasksMax= of a unit",
                   strerror(error));
  s->context = zmq_ctx_new();
  s->unsent = calloc((size_t)config->connections, sizeof(SnReply *));
  if (!s->context || !s->unsent) return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  code = sn_zap_open(&s->zap, s->context, config, access, log, err);
  if (code == SN_OK) code = open_router(s, err);
  if (code == SN_OK) code = open_telemetry(s, err);
  return code == SN_OK ? open_records(s, err) : code;
}

static void close_listener(SnSockets *s, SnListener *listener, double linger) {
  if (listener->socket) {
    zmq_socket_monitor(listener->socket, NULL, 0);
    set_int(listener->socket, ZMQ_LINGER, (int)(1000 * linger));
    zmq_close(listener->socket);
  }
  if (listener->monitor) zmq_close(listener->monitor);
  listener->socket = listener->monitor = NULL;
  listener->connections = 0;
  sn_connections_forget(&s->connections, listener);
  if (listener == &s->records) sn_records_forget(s->subscribed);
}

static void drop_unsent(SnSockets *s) {
  for (int i = 0; i < s->nunsent; i++) free(s->unsent[i]);
  s->nunsent = 0;
}

void sn_sockets_drop(SnSockets *s, SnListener *listener, double pause) {
  if (!listener->socket) return;
  close_listener(s, listener, 0);
  if (listener == &s->router) {
    s->dropped += (uint64_t)s->nunsent;
    drop_unsent(s);
  }
  listener->opens = sn_clock_now() + pause;
}

void sn_sockets_revoke(SnSockets *s) {
  if (!strncmp(s->config->telemetry, "tcp://", 6)) sn_sockets_drop(s, &s->telemetry, 0);
  if (!strncmp(s->config->records, "tcp://", 6)) sn_sockets_drop(s, &s->records, 0);
}

// Opens a listener again when it is time. An address is free a moment after the close only, so it may take some tries.
static SnCode open_again(SnSockets *s, SnListener *listener, double now, SnError *err) {
  if (listener->opens == 0 || now < listener->opens) return SN_OK;
  SnCode code = listener == &s->router      ? open_router(s, err)
                : listener == &s->telemetry ? open_telemetry(s, err)
                                            : open_records(s, err);
  if (code == SN_OK) {
    sn_log_event(s->log, SN_LOG_INFO, "listening: to %s again", listener->name);
    listener->opens = 0;
  } else {
    close_listener(s, listener, 0);
  }
  return code;
}

// One line, however many they were.
static void report_refused(SnSockets *s, SnListener *listener) {
  if (listener->refused > listener->refused_told)
    sn_log_event(s->log, SN_LOG_WARNING, "refused: %d connections for %s; at most %d are allowed",
                 (int)(listener->refused - listener->refused_told), listener->name, s->config->connections);
  if (listener->evicted > listener->evicted_told)
    sn_log_event(s->log, SN_LOG_WARNING,
                 "evicted: %d connections for %s that were idle for %g s; at most %d are allowed",
                 (int)(listener->evicted - listener->evicted_told), listener->name, s->config->idle_seconds,
                 s->config->connections);
  listener->refused_told = listener->refused;
  listener->evicted_told = listener->evicted;
}

// One line a minute, however many they were.
static void report_turned_away(SnSockets *s, double now) {
  unsigned user;
  if (s->turned_away_told > 0 && now - s->turned_away_told < 60) return;
  const uint64_t n = sn_users_turned_away(&user);
  if (n == s->turned_away_seen) return;
  sn_log_event(s->log, SN_LOG_WARNING, "denied: %d connections over ipc, the latest of user %u",
               (int)(n - s->turned_away_seen), user);
  s->turned_away_seen = n;
  s->turned_away_told = now;
}

// Opens again what is published; where that goes on to fail the daemon serves without.
static void publish_again(SnSockets *s, SnListener *listener, double now) {
  SnError err = {0};
  if (open_again(s, listener, now, &err) == SN_OK || now <= listener->opens + TRIES_TIME) return;
  sn_log_event(s->log, SN_LOG_WARNING, "listen-failed: %s: %s", listener->name, err.text);
  listener->opens = now + TRIES_TIME;
}

SnCode sn_sockets_maintain(SnSockets *s, SnError *err) {
  report_refused(s, &s->router);
  report_refused(s, &s->telemetry);
  report_refused(s, &s->records);
  const double now = sn_clock_now();
  sn_zap_report(&s->zap, now);
  report_turned_away(s, now);
  const int unheard = sn_connections_cut_unheard(&s->connections, now);
  if (unheard) sn_log_event(s->log, SN_LOG_DEBUG, "unheard: %d connections are to try again", unheard);
  SnListener *const listener[] = {&s->router, &s->telemetry, &s->records};
  for (int i = 0; i < 3; i++) sn_socket_watch(&listener[i]->file, listener[i]->socket, s->log, now);
  publish_again(s, &s->telemetry, now);
  publish_again(s, &s->records, now);
  SnCode code = open_again(s, &s->router, now, err);
  return now > s->router.opens + TRIES_TIME ? code : SN_OK;
}

void sn_sockets_close(SnSockets *s, double linger) {
  if (!s->config) return;
  close_listener(s, &s->router, linger);
  close_listener(s, &s->telemetry, 0);
  close_listener(s, &s->records, linger);
  sn_zap_close(&s->zap);
  if (s->context) zmq_ctx_term(s->context);
  drop_unsent(s);
  free(s->unsent);
  sn_connections_free(&s->connections);
  sn_endpoint_unlock(s->config->endpoint, s->router_lock);
  sn_endpoint_unlock(s->config->telemetry, s->telemetry_lock);
  sn_endpoint_unlock(s->config->records, s->records_lock);
}

// True when the reply needs no further care: sent, or its client is gone.
static bool try_send(SnSockets *s, const SnReply *p) {
  s->router.behind = true;
  if (!s->router.socket ||
      zmq_send(s->router.socket, p->route.identity, p->route.size, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) {
    const bool gone = !s->router.socket || errno != EAGAIN;
    s->dropped += gone;
    return gone;
  }
  if (zmq_send(s->router.socket, p->bytes, p->size, ZMQ_DONTWAIT) < 0)
    sn_log_event(s->log, SN_LOG_WARNING, "send-failed: %s", zmq_strerror(errno));
  return true;
}

void sn_sockets_send(SnSockets *s, SnReply *reply) {
  int i = 0;
  while (i < s->nunsent && (s->unsent[i]->route.size != reply->route.size ||
                            memcmp(s->unsent[i]->route.identity, reply->route.identity, reply->route.size)))
    i++;
  bool waits = i < s->nunsent;
  if (!waits && try_send(s, reply)) {
    free(reply);
  } else if (waits) {
    free(s->unsent[i]);
    s->dropped++;
    s->unsent[i] = reply;
  } else if (s->nunsent < s->config->connections) {
    s->unsent[s->nunsent++] = reply;
  } else {
    s->dropped++;
    free(reply);
  }
}

bool sn_sockets_flush(SnSockets *s) {
  for (int i = s->nunsent - 1; i >= 0; i--) {
    if (!try_send(s, s->unsent[i])) continue;
    free(s->unsent[i]);
    s->unsent[i] = s->unsent[--s->nunsent];
  }
  return s->nunsent > 0;
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

void sn_sockets_read_monitor(SnSockets *s, SnListener *listener) {
  uint16_t event;
  int fd;
  while (listener->monitor && next_event(listener->monitor, &event, &fd)) {
    if (event == ZMQ_EVENT_DISCONNECTED) {
      listener->connections--;
      sn_connections_close(&s->connections, listener, fd, sn_clock_now());
    }
    if (event != ZMQ_EVENT_ACCEPTED) continue;
    sn_connections_open(&s->connections, listener, fd, sn_clock_now(), listener != &s->router);
    if (++listener->connections <= s->config->connections) continue;
    if (sn_connections_cut_idlest(&s->connections, listener, sn_clock_now() - s->config->idle_seconds)) {
      listener->evicted++;
      continue;
    }
    // The socket library has no way to refuse a connection; one that ends at once comes to the same.
    listener->refused++;
    sn_connections_cut(&s->connections, fd);
  }
}

void sn_sockets_publish(SnSockets *s, const void *bytes, size_t size) {
  if (s->telemetry.socket && zmq_send(s->telemetry.socket, bytes, size, ZMQ_DONTWAIT) >= 0) s->published++;
}

void sn_sockets_publish_record(SnSockets *s, const SnRecordMessage *record) {
  void *socket = s->records.socket;
  s->records.behind = true;
  if (socket && zmq_send(socket, record->topic, strlen(record->topic), ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0)
    zmq_send(socket, record->bytes, record->size, ZMQ_DONTWAIT);
}

bool sn_sockets_read_subscriptions(SnSockets *s) {
  for (int i = 0; s->records.socket && i < SUBSCRIPTIONS_BURST; i++) {
    unsigned char frame[SUBSCRIBER_BYTES + 1];
    const int n = zmq_recv(s->records.socket, frame, sizeof frame, ZMQ_DONTWAIT);
    if (n < 0) return false;
    if (n <= (int)sizeof frame) sn_records_subscribe(s->subscribed, frame, (size_t)n);
  }
  return s->records.socket != NULL;
}
