// The event loop: one thread that owns the sockets, reads requests, sends replies and keeps time. It never plans, never
// loads and never waits for those who do.
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <zmq.h>

#include "daemon/clock.h"
#include "daemon/daemon.h"
#include "daemon/pack.h"
#include "daemon/sockets.h"

// Requests read in a row before replies get their turn, and the time between looks at leases, watchdog and full
// pipes, in milliseconds.
enum { READ_BURST = 64, TICK_MS = 50, RETRY_MS = 2 };

// [s]
#define MEMORY_TIME 5.0

typedef struct Loop {
  SnDaemon *d;
  SnSockets sockets;
  int signals;  // signalfd
  double published, notified, reopened;
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

// Reads one request: the routing id of the client, then exactly one frame. False when there is none.
static bool read_request(Loop *loop) {
  SnDaemon *d = loop->d;
  SnRoute route = {0};
  void *router = loop->sockets.router;
  int n = zmq_recv(router, route.identity, sizeof route.identity, ZMQ_DONTWAIT);
  if (n < 0) return false;
  route.size = (uint8_t)n;
  route.arrived = sn_clock_now();

  zmq_msg_t frame;
  zmq_msg_init(&frame);
  if (zmq_msg_recv(&frame, router, ZMQ_DONTWAIT) >= 0) {
    if (!zmq_msg_more(&frame)) {
      sn_handle_frame(d, &route, zmq_msg_data(&frame), zmq_msg_size(&frame));
    } else {
      drop_rest(router, &frame);
      d->requests++;
      d->malformed++;
      sn_outbox_error(&d->outbox, &route, SINEW__V1__ERROR__CODE__MALFORMED,
                      "a message of several frames; a request is one frame, from a DEALER socket");
    }
  }
  zmq_msg_close(&frame);
  return true;
}

static void send_replies(Loop *loop) {
  for (SnParcel *p = sn_outbox_take(&loop->d->outbox), *next; p; p = next) {
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
  unsigned char *bytes = sn_scratch(&scratch, size);
  if (bytes) sn_sockets_publish(&loop->sockets, bytes, sinew__v1__telemetry__pack(&out, bytes));
  sn_scratch_free(&scratch);
}

// The memory that the daemon may use.
static uint64_t memory_limit(const SnConfig *config) {
  if (config->memory_megabytes > 0) return (uint64_t)config->memory_megabytes << 20;
  return (uint64_t)sysconf(_SC_PHYS_PAGES) / 2 * (uint64_t)sysconf(_SC_PAGESIZE);
}

// Frees what clients have piled up in the socket library, at most every MEMORY_TIME: where the memory is held by
// sessions, dropping connections does not help.
static SnCode guard_memory(Loop *loop, double now, SnError *err) {
  uint64_t used = sn_resident_memory(), most = memory_limit(&loop->d->config);
  if (used <= most || now - loop->reopened < MEMORY_TIME) return SN_OK;
  sn_log_event(&loop->d->log, SN_LOG_ERROR, "memory: %llu MB in use, %llu MB are allowed; all connections are dropped",
               (unsigned long long)(used >> 20), (unsigned long long)(most >> 20));
  SnCode code = sn_sockets_reopen(&loop->sockets, err);
  loop->reopened = sn_clock_now();
  return code;
}

// A lost device comes back only with a new process: the supervisor is told, and asked for one where that is wanted.
static void look_at_device(Loop *loop) {
  SnDaemon *d = loop->d;
  if (loop->lost || !sn_backends_view(&d->scheduler.backends).lost) return;
  loop->lost = true;
  sn_notify_send(&d->notify, "STATUS=the device is lost, plans are made on the CPU");
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
  if (d->notify.interval > 0 && now - loop->notified >= d->notify.interval &&
      now - atomic_load(&d->scheduler.alive) < d->config.stall) {
    sn_notify_send(&d->notify, "WATCHDOG=1");
    loop->notified = now;
  }
}

static SnCode serve(Loop *loop, SnError *err) {
  SnDaemon *d = loop->d;
  SnSockets *s = &loop->sockets;
  double ticked = 0;
  bool full = false;
  while (!d->stopping) {
    zmq_pollitem_t items[] = {{s->router, 0, ZMQ_POLLIN, 0},
                              {NULL, d->outbox.wake, ZMQ_POLLIN, 0},
                              {NULL, loop->signals, ZMQ_POLLIN, 0},
                              {s->monitor, 0, ZMQ_POLLIN, 0},
                              {s->telemetry, 0, ZMQ_POLLIN, 0}};
    if (zmq_poll(items, s->telemetry ? 5 : 4, full ? RETRY_MS : TICK_MS) < 0 && errno != EINTR) break;
    if (items[2].revents) d->stopping = true;
    if (items[3].revents) sn_sockets_watch(s);
    if (items[4].revents) sn_sockets_subscriptions(s);
    for (int i = 0; i < READ_BURST && read_request(loop); i++) continue;
    send_replies(loop);
    full = sn_sockets_retry(s);
    if (sn_clock_now() - ticked >= 1e-3 * TICK_MS) {
      tick(loop);
      ticked = sn_clock_now();
      SnCode code = guard_memory(loop, ticked, err);
      if (code != SN_OK) return code;
    }
  }
  return SN_OK;
}

// Ends the running slice, answers all that waits, then closes.
static void drain(Loop *loop) {
  SnDaemon *d = loop->d;
  sn_log_event(&d->log, SN_LOG_INFO, "stopping");
  sn_notify_send(&d->notify, "STOPPING=1");
  sn_models_cancel(&d->models);
  sn_loader_stop(&d->loader);
  sn_scheduler_stop(&d->scheduler);
  if (!loop->sockets.router) return;
  for (int i = 0; i < READ_BURST && read_request(loop); i++) continue;
  send_replies(loop);
  sn_sockets_retry(&loop->sockets);
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
  SnCode code = loop.signals < 0 ? sn_fail(err, SN_ERR_LIMIT, "cannot wait for signals")
                                 : sn_sockets_open(&loop.sockets, &d->config, &d->log, err);
  if (code == SN_OK) {
    sn_log_event(&d->log, SN_LOG_INFO, "ready: sinewd %s at %s%s%s", SN_VERSION, d->config.endpoint,
                 *d->config.tcp ? " and " : "", d->config.tcp);
    sn_notify_send(&d->notify, "READY=1");
    code = serve(&loop, err);
    drain(&loop);
    sn_log_event(&d->log, SN_LOG_INFO, "stopped");
    if (code == SN_OK && loop.lost && d->config.device_loss == LOSS_EXIT)
      code = sn_fail(err, SN_ERR_STATE, "the device is lost, and device_loss is 'exit': start sinewd again");
  }
  sn_sockets_close(&loop.sockets, 0.5);
  if (loop.signals >= 0) close(loop.signals);
  return code;
}
