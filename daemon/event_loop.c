// The event loop: one thread that owns the sockets, reads requests, sends replies and keeps time. It never plans, never
// loads and never waits for those who do.
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <zmq.h>

#include "physics/base/clock.h"
#include "daemon/daemon.h"
#include "daemon/wire/inbox_private.h"
#include "daemon/wire/memory_guard_private.h"
#include "daemon/session/pack.h"
#include "daemon/wire/sockets_private.h"

// Requests read, and handled, in a row before replies get their turn; the time between looks at leases, watchdog and
// memory, and at full pipes, in milliseconds; requests that a connection may have waiting, and how many of the longest.
enum { READ_BURST = 4096, HANDLE_BURST = 64, TICK_MS = 50, RETRY_MS = 2, MAX_WAITING = 65536, LONGEST_WAITING = 16 };

typedef struct Loop {
  SnDaemon *d;
  SnSockets sockets;
  SnInbox inbox;
  SnMemoryGuard guard;
  int signals;  // signalfd
  double published, notified;
  bool lost;  // the device is lost, and that has been dealt with
} Loop;

enum { LOSS_STAY, LOSS_EXIT };  // as config.device_loss

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
// answered: cut to our size it would be somebody else.
static bool read_request(Loop *loop) {
  SnDaemon *d = loop->d;
  SnConnections *connections = &loop->sockets.connections;
  SnRoute route = {.arrived = sn_clock_now()};
  void *router = loop->sockets.router.socket;
  const int n = router ? zmq_recv(router, route.identity, sizeof route.identity, ZMQ_DONTWAIT) : -1;
  if (n < 0) return false;
  const bool nobody = n > (int)sizeof route.identity;
  route.size = nobody ? 0 : (uint8_t)n;

  zmq_msg_t frame;
  zmq_msg_init(&frame);
  if (zmq_msg_recv(&frame, router, ZMQ_DONTWAIT) >= 0) {
    const int fd = zmq_msg_get(&frame, ZMQ_SRCFD);
    const bool several = drop_rest(router, &frame);
    // It may have been accepted since the monitor was last read.
    if (!sn_connections_knows(connections, fd)) sn_sockets_read_monitor(&loop->sockets, &loop->sockets.router);
    if (nobody) {
      d->requests++;
      d->malformed++;
      if (sn_connections_cut(connections, fd))
        sn_log_event(&d->log, SN_LOG_WARNING,
                     "refused: a connection with a routing id of %d bytes; at most %zu are allowed", n,
                     sizeof route.identity);
    } else if (sn_connections_spoke(connections, fd, is_name(&route)) &&
               !sn_inbox_push(&loop->inbox, fd, &route, &frame, several)) {
      if (sn_connections_cut(connections, fd))
        sn_log_event(&d->log, SN_LOG_WARNING, "refused: a connection with more than %d requests or %zu bytes waiting",
                     loop->inbox.max, loop->inbox.max_bytes);
    }
  }
  zmq_msg_close(&frame);
  return true;
}

// Handles the request whose turn it is. False when there is none.
static bool handle_request(Loop *loop) {
  SnDaemon *d = loop->d;
  SnRequest *r = sn_inbox_pop(&loop->inbox);
  if (!r) return false;
  SnRoute route = {.arrived = r->arrived, .size = r->size};
  memcpy(route.identity, r->identity, r->size);
  if (!r->several) {
    sn_handle_frame(d, &route, zmq_msg_data(&r->frame), zmq_msg_size(&r->frame));
  } else {
    d->requests++;
    d->malformed++;
    sn_outbox_error(&d->outbox, &route, SINEW__V1__ERROR__CODE__MALFORMED,
                    "a message of several frames; a request is one frame, from a DEALER socket");
  }
  sn_inbox_request_free(r);
  return true;
}

static void send_replies(Loop *loop) {
  for (SnReply *p = sn_outbox_pop_all(&loop->d->outbox), *next; p; p = next) {
    next = p->next;
    loop->d->errors += p->is_error;
    sn_sockets_send(&loop->sockets, p);
  }
}

static void publish(Loop *loop) {
  SnDaemon *d = loop->d;
  SnScratch scratch = {0};
  Sinew__V1__Telemetry out = SINEW__V1__TELEMETRY__INIT;
  out.time = sn_clock_now() - d->started;
  out.statistics = sn_pack_statistics(d, &scratch, NULL);
  size_t size = sinew__v1__telemetry__get_packed_size(&out);
  unsigned char *bytes = sn_scratch_alloc(&scratch, size);
  if (bytes) sn_sockets_publish(&loop->sockets, bytes, sinew__v1__telemetry__pack(&out, bytes));
  sn_scratch_free(&scratch);
}

// A lost device comes back only with a new process: the supervisor is told, and asked for one where that is wanted.
static void look_at_device(Loop *loop) {
  SnDaemon *d = loop->d;
  if (loop->lost || !sn_backends_view(&d->scheduler.backends).lost) return;
  loop->lost = true;
  sn_systemd_notify(&d->systemd, "STATUS=the device is lost, plans are made on the CPU");
  if (d->config.device_loss == LOSS_EXIT) d->stopping = true;
}

// What time brings: leases, telemetry, the watchdog, which is fed only while the planner lives.
static void tick(Loop *loop) {
  SnDaemon *d = loop->d;
  double now = sn_clock_now();
  sn_close_expired(d);
  look_at_device(loop);
  if (now - loop->published >= d->config.telemetry_period) {
    publish(loop);
    loop->published = now;
  }
  if (d->systemd.interval > 0 && now - loop->notified >= d->systemd.interval &&
      now - atomic_load(&d->scheduler.alive) < d->config.stall) {
    sn_systemd_notify(&d->systemd, "WATCHDOG=1");
    loop->notified = now;
  }
}

// Waits until there is something to do. False on an error.
static bool wait_for_work(Loop *loop, bool full) {
  SnDaemon *d = loop->d;
  SnSockets *s = &loop->sockets;
  SnListener *listener[2] = {&s->router, &s->telemetry};
  zmq_pollitem_t items[6] = {{NULL, d->outbox.wake, ZMQ_POLLIN, 0}, {NULL, loop->signals, ZMQ_POLLIN, 0}};
  int n = 2;
  for (int i = 0; i < 2; i++) {
    if (!listener[i]->socket) continue;
    items[n++] = (zmq_pollitem_t){listener[i]->socket, 0, ZMQ_POLLIN, 0};
    items[n++] = (zmq_pollitem_t){listener[i]->monitor, 0, ZMQ_POLLIN, 0};
  }
  const int patience = sn_memory_guard_interval(&loop->guard);
  const int wait = loop->inbox.count > 0 ? 0 : full ? RETRY_MS : patience < TICK_MS ? patience : TICK_MS;
  if (zmq_poll(items, n, wait) < 0 && errno != EINTR) return false;
  if (items[1].revents) d->stopping = true;
  return true;
}

static SnCode serve(Loop *loop, SnError *err) {
  SnDaemon *d = loop->d;
  SnSockets *s = &loop->sockets;
  double ticked = 0, looked = 0;
  bool full = false;
  while (!d->stopping) {
    if (!wait_for_work(loop, full)) break;
    sn_sockets_read_monitor(s, &s->router);
    sn_sockets_read_monitor(s, &s->telemetry);
    for (int i = 0; i < READ_BURST && read_request(loop); i++) continue;
    for (int i = 0; i < HANDLE_BURST && handle_request(loop); i++) continue;
    send_replies(loop);
    full = sn_sockets_flush(s);
    const double now = sn_clock_now();
    if (now - looked >= 1e-3 * sn_memory_guard_interval(&loop->guard)) {
      sn_memory_guard_check(&loop->guard, s, now);
      looked = now;
    }
    if (now - ticked >= 1e-3 * TICK_MS) {
      tick(loop);
      ticked = now;
      SnCode code = sn_sockets_maintain(s, err);
      if (code != SN_OK) return code;
    }
  }
  return SN_OK;
}

// Ends the running slice, answers all that waits, then closes.
static void drain(Loop *loop) {
  SnDaemon *d = loop->d;
  sn_log_event(&d->log, SN_LOG_INFO, "stopping");
  sn_systemd_notify(&d->systemd, "STOPPING=1");
  sn_models_cancel(&d->models);
  sn_loader_stop(&d->loader);
  sn_scheduler_stop(&d->scheduler);
  for (int i = 0; i < READ_BURST && read_request(loop); i++) continue;
  while (handle_request(loop)) continue;
  send_replies(loop);
  sn_sockets_flush(&loop->sockets);
}

static int open_signals(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

SnCode sn_event_loop(SnDaemon *d, SnError *err) {
  Loop loop = {.d = d, .signals = open_signals()};
  sn_inbox_init(&loop.inbox, MAX_WAITING, LONGEST_WAITING * (size_t)d->config.message_bytes);
  sn_memory_guard_init(&loop.guard, &d->config);
  SnCode code = loop.signals < 0 ? sn_fail(err, SN_ERR_LIMIT, "cannot wait for signals")
                                 : sn_sockets_open(&loop.sockets, &d->config, &d->log, err);
  if (code == SN_OK) {
    sn_log_event(&d->log, SN_LOG_INFO, "ready: sinewd %s at %s%s%s", SN_VERSION, d->config.endpoint,
                 *d->config.tcp ? " and " : "", d->config.tcp);
    sn_systemd_notify(&d->systemd, "READY=1");
    code = serve(&loop, err);
    drain(&loop);
    sn_log_event(&d->log, SN_LOG_INFO, "stopped");
    if (code == SN_OK && loop.lost && d->config.device_loss == LOSS_EXIT)
      code = sn_fail(err, SN_ERR_STATE, "the device is lost, and device_loss is 'exit': start sinewd again");
  }
  sn_sockets_close(&loop.sockets, 0.5);
  sn_inbox_free(&loop.inbox);
  if (loop.signals >= 0) close(loop.signals);
  return code;
}
