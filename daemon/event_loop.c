// The event loop: one thread that owns the sockets, reads requests, sends replies and keeps time. It never plans, never
// loads and never waits for those who do.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "daemon/wire/wire.h"
#include "physics/base/clock.h"

// Requests handled in a row before replies get their turn, or, in milliseconds, those of so long; the time between
// looks at leases and watchdog, and for which refusals are gathered.
enum { HANDLE_BURST = 64, HANDLE_MS = 1, TICK_MS = 50, GATHER_MS = 1 };

// Seconds between two words to the supervisor on how it goes.
#define STATUS_TIME 5.0

// Between two looks at the time it stood still if they are so many seconds apart: the process was stopped.
#define PAUSE_TIME 0.5

typedef struct Loop {
  SnDaemon *d;
  SnWire *wire;
  int signals;                       // signalfd
  double published, notified, told;  // telemetry, the watchdog, the status
  double sent;                       // replies
  uint64_t progress;                 // of the planner, when the watchdog was last fed
  char status[160];                  // that the supervisor knows
  const SnPeer *audience;            // who can subscribe to telemetry: this user's processes; NULL: others too
  bool lost;                         // the device is lost, and that has been dealt with
} Loop;

enum { LOSS_STAY, LOSS_EXIT };  // as config.device_loss

static void read_requests(Loop *loop) {
  const uint64_t refused = (uint64_t)sn_wire_read(loop->wire);
  loop->d->counters.requests[0] += refused;
  loop->d->counters.invalid[SN_INVALID_NOBODY] += refused;
  loop->d->requests += refused;
  loop->d->malformed += refused;
}

// Handles the request whose turn it is. False when there is none.
static bool handle_request(Loop *loop) {
  SnDaemon *d = loop->d;
  SnWireRequest r;
  if (!sn_wire_next(loop->wire, &r)) return false;
  if (!r.several) {
    sn_handle_frame(d, &r.route, r.bytes, r.size);
  } else {
    d->requests++;
    d->malformed++;
    d->counters.requests[0]++;
    d->counters.invalid[SN_INVALID_FRAMES]++;
    sn_outbox_error(&d->outbox, &r.route, SINEW__V1__ERROR__CODE__MALFORMED,
                    "a message of several frames; a request is one frame, from a DEALER socket");
  }
  sn_wire_done(&r);
  return true;
}

static void send_replies(Loop *loop) {
  SnDaemon *d = loop->d;
  loop->sent = sn_clock_now();
  for (SnReply *p = sn_outbox_pop_all(&d->outbox), *next; p; p = next) {
    next = p->next;
    d->errors += p->error != 0;
    const SnReply sent = *p;  // without its bytes; it is the socket's now
    sn_wire_send(loop->wire, p);
    const double now = sn_clock_now();
    if (sent.route.charged) sn_quota_answered(sent.route.peer, now);
    if (sent.stages.turn > 0 && !sent.stages.streamed) sn_scheduler_sent(&d->scheduler, now - sent.stages.ended);
    SnSession *session = sent.route.session ? sn_sessions_find(&d->sessions, sent.route.session) : NULL;
    sn_counters_reply(&d->counters, session ? &session->outcomes : NULL, &sent, now);
    if (!session || sent.stages.arrived == 0) continue;
    sn_traces_add(&session->traces, &sent, now);
    const uint64_t number = session->traces.newest;
    sn_flight_plan(d->flight, session->id, number, sn_traces_at(&session->traces, number));
    if (sent.stages.first && !sent.stages.in_time) sn_flight_missed(d, now);
  }
}

// Handles requests that are there. Statistics of a thousand sessions take milliseconds each: who asks for many of them
// does not keep others waiting for all.
static void handle_requests(Loop *loop) {
  const double until = sn_clock_now() + 1e-3 * HANDLE_MS;
  for (int i = 0; i < HANDLE_BURST && handle_request(loop) && sn_clock_now() < until; i++) continue;
}

// Sends what lies in the outbox, at once where somebody waits for more than a refusal. Of those there are tens of
// thousands a second where states come faster than plans: each for itself would wake the threads that carry it, here
// and at the client, and leave less time to plan.
static void send_due(Loop *loop, bool told) {
  const SnOutbox *outbox = &loop->d->outbox;
  if (told || !sn_outbox_holds(outbox) || sn_clock_now() - loop->sent >= 1e-3 * GATHER_MS) send_replies(loop);
}

static void publish_records(Loop *loop) {
  for (SnRecordMessage *p = sn_records_pop_all(&loop->d->records), *next; p; p = next) {
    next = p->next;
    sn_wire_publish_record(loop->wire, p);
  }
}

// Telemetry of a thousand sessions takes a millisecond: it is made where somebody is connected to it.
static void publish(Loop *loop) {
  SnDaemon *d = loop->d;
  if (!sn_wire_is_watched(loop->wire)) return;
  SnScratch scratch = {0};
  Sinew__V1__Telemetry out = SINEW__V1__TELEMETRY__INIT;
  out.time = sn_clock_now() - d->started;
  out.statistics = sn_pack_statistics(d, &scratch, NULL, loop->audience);
  size_t size = sinew__v1__telemetry__get_packed_size(&out);
  unsigned char *bytes = sn_scratch_alloc(&scratch, size);
  if (bytes) sn_wire_publish(loop->wire, bytes, sinew__v1__telemetry__pack(&out, bytes));
  sn_scratch_free(&scratch);
}

// A lost device comes back only with a new process: the supervisor is told, and asked for one where that is wanted.
static void look_at_device(Loop *loop) {
  SnDaemon *d = loop->d;
  if (loop->lost || !sn_backends_view(&d->scheduler.backends).lost) return;
  loop->lost = true;
  loop->told = 0;  // at once
  if (d->config.device_loss == LOSS_EXIT) d->stopping = true;
}

// Stops a daemon that serves one process alone when that process is gone: the system gives it another parent then.
static void look_at_parent(Loop *loop) {
  SnDaemon *d = loop->d;
  if (d->config.parent == 0 || getppid() == d->config.parent) return;
  sn_log_event(&d->log, SN_LOG_INFO, "orphaned: process %d, which has started sinewd, is gone", d->config.parent);
  d->stopping = true;
}

// The watchdog is fed when plans have come forward since it was last fed, or there is none to make.
static void feed_watchdog(Loop *loop, double now) {
  SnDaemon *d = loop->d;
  const uint64_t progress = atomic_load(&d->scheduler.progress);
  if (d->systemd.interval <= 0 || now - loop->notified < d->systemd.interval || progress == loop->progress) return;
  sn_systemd_notify(&d->systemd, "WATCHDOG=1");
  loop->notified = now;
  loop->progress = progress;
}

// What `systemctl status` shows, when it has changed.
static void tell_status(Loop *loop, double now) {
  SnDaemon *d = loop->d;
  char text[sizeof loop->status];
  if (now - loop->told < STATUS_TIME) return;
  loop->told = now;
  const SnMetricsView view = sn_metrics_view(&d->metrics);
  const double age = now - atomic_load(&d->scheduler.alive);
  snprintf(text, sizeof text, "STATUS=%s%s%d sessions, %llu states answered, %llu of them late",
           loop->lost ? "the device is lost, plans are made on the CPU; " : "",
           age > d->config.stall ? "the planner is busy with one slice; " : "", sn_sessions_count(&d->sessions),
           (unsigned long long)view.plans, (unsigned long long)view.misses);
  if (!strcmp(text, loop->status)) return;
  strcpy(loop->status, text);
  sn_systemd_notify(&d->systemd, text);
}

// What time brings: leases, telemetry, what the supervisor is told.
static void tick(Loop *loop) {
  SnDaemon *d = loop->d;
  double now = sn_clock_now();
  sn_close_expired(d, loop->wire);
  sn_close_revoked(d);  // also one that was being opened when its key was taken off the list
  look_at_device(loop);
  look_at_parent(loop);
  sn_log_tick(&d->log);
  if (now - loop->published >= d->config.telemetry_period) {
    publish(loop);
    loop->published = now;
  }
  feed_watchdog(loop, now);
  tell_status(loop, now);
}

// Reads configuration and keys again.
static void reload(Loop *loop) {
  SnDaemon *d = loop->d;
  SnError err = {0};
  bool lowered = false;
  char text[80];
  snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%llu", sn_clock_nanoseconds() / 1000);
  sn_systemd_notify(&d->systemd, text);
  const SnCode code = sn_reload(d, &lowered, &err);
  if (code == SN_OK && lowered) sn_wire_revoke(loop->wire);
  loop->status[0] = '\0';  // what stands there now is told again
  sn_systemd_notify(&d->systemd,
                    code == SN_OK ? "READY=1\nSTATUS=reloaded" : "READY=1\nSTATUS=reload failed, nothing has changed");
}

// After the file of the log was moved away.
static void reopen_log(SnDaemon *d) {
  SnError err = {0};
  if (!*d->config.log_file) return;
  if (sn_log_open(&d->log, d->config.log_file, &err) != SN_OK)
    sn_log_event(&d->log, SN_LOG_ERROR, "log-failed: it goes on where it went: %s", err.text);
  else
    sn_log_event(&d->log, SN_LOG_INFO, "log-opened: %s", d->config.log_file);
}

static void read_signal(Loop *loop) {
  struct signalfd_siginfo got;
  while (read(loop->signals, &got, sizeof got) == (ssize_t)sizeof got) {
    if (got.ssi_signo == SIGHUP && loop->d->reloads)
      reload(loop);
    else if (got.ssi_signo == SIGUSR1)
      reopen_log(loop->d);
    else
      loop->d->stopping = true;
  }
}

static SnCode serve(Loop *loop, SnError *err) {
  SnDaemon *d = loop->d;
  const int fd[SN_WIRE_FILES] = {d->outbox.wake, loop->signals, sn_http_file(d->http)};
  bool ready[SN_WIRE_FILES];
  double ticked = 0;
  double woke;
  int wait = TICK_MS;
  while (!d->stopping && sn_wire_wait(loop->wire, fd, ready, wait, &woke)) {
    if (ready[1]) read_signal(loop);
    wait = sn_http_run(d->http, TICK_MS);
    read_requests(loop);
    handle_requests(loop);
    send_due(loop, ready[0]);
    if (sn_outbox_holds(&d->outbox) && wait > GATHER_MS) wait = GATHER_MS;
    publish_records(loop);
    sn_wire_flush(loop->wire);
    const double now = sn_clock_now();
    if (sn_wire_guard(loop->wire, now)) sn_reaper_trim(&d->scheduler.reaper);
    if (now - ticked >= 1e-3 * TICK_MS) {
      if (ticked > 0 && now - ticked > PAUSE_TIME) sn_forgive_pause(d, now - ticked);
      tick(loop);
      ticked = now;
      SnCode code = sn_wire_maintain(loop->wire, err);
      if (code != SN_OK) return code;
    }
    sn_histogram_add(&d->counters.turns, sn_clock_now() - woke);
  }
  return SN_OK;
}

// Ends the running slice, answers all that waits, then closes.
static void drain(Loop *loop) {
  SnDaemon *d = loop->d;
  sn_log_event(&d->log, SN_LOG_INFO, "stopping");
  sn_systemd_notify(&d->systemd, "STOPPING=1");
  sn_loader_stop(d);
  sn_sessions_forget(&d->sessions);  // the planner thread frees them now
  sn_scheduler_stop(&d->scheduler);
  sn_keeper_stop(&d->keeper);
  read_requests(loop);
  while (handle_request(loop)) continue;
  sn_flight_close(d->flight);  // who asked for a file gets his answer
  d->flight = NULL;
  send_replies(loop);
  publish_records(loop);
  sn_wire_flush(loop->wire);
}

static int open_signals(const SnDaemon *d) {
  sigset_t set;
  sigemptyset(&set);
  if (d->hangup) sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static const char *metrics_page(void *context) { return sn_metrics_text(context); }

// Listens to requests, and for metrics.
static SnCode listen_all(Loop *loop, SnError *err) {
  SnDaemon *d = loop->d;
  SnCode code = *d->config.metrics ? sn_http_check(d->config.metrics, err) : SN_OK;
  if (code != SN_OK) return code;
  d->wire = loop->wire = sn_wire_open(&d->config, &d->log, &d->access, &d->records, err);
  if (!loop->wire) return err->code;
  if (*d->config.metrics) d->http = sn_http_open(d->config.metrics, metrics_page, d, err);
  return *d->config.metrics && !d->http ? err->code : SN_OK;
}

SnCode sn_event_loop(SnDaemon *d, SnError *err) {
  Loop loop = {.d = d, .signals = open_signals(d)};
  if (!strncmp(d->config.telemetry, "ipc://", 6)) loop.audience = &d->access.local;
  if (loop.signals < 0) return sn_fail(err, SN_ERR_LIMIT, "cannot wait for signals");
  SnCode code = listen_all(&loop, err);
  if (code == SN_OK) {
    sn_log_event(&d->log, SN_LOG_INFO, "ready: sinewd %s at %s%s%s", SN_VERSION, d->config.endpoint,
                 *d->config.tcp ? " and " : "", d->config.tcp);
    loop.told = sn_clock_now();
    sn_systemd_notify(&d->systemd, "READY=1\nSTATUS=ready");
    code = serve(&loop, err);
    drain(&loop);
    sn_log_event(&d->log, SN_LOG_INFO, "stopped");
    if (code == SN_OK && loop.lost && d->config.device_loss == LOSS_EXIT)
      code = sn_fail(err, SN_ERR_STATE, "the device is lost, and device_loss is 'exit': start sinewd again");
  }
  sn_http_close(d->http);
  sn_wire_close(loop.wire, 0.5);
  d->wire = NULL;
  free(d->metrics_text.text);
  close(loop.signals);
  return code;
}
