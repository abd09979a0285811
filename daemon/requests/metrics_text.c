// The metrics in the text format of Prometheus, version 0.0.4.
//
// How many series there are is bounded: labels are kinds and codes of the schema, listeners, bounds of histograms, and
// places of sessions, of which there are as many as sessions may be open. Ids of sessions are not told: whoever knows
// one may steer it, and they would make series without end.
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/base/memory.h"
#include "daemon/base/threads.h"
#include "daemon/requests/handlers_private.h"
#include "physics/base/clock.h"

// A text is given again for so long [s].
#define KEPT 0.1

typedef enum Type { COUNTER, GAUGE, HISTOGRAM } Type;

static void family(FILE *f, const char *name, Type type, const char *help) {
  static const char *const types[] = {"counter", "gauge", "histogram"};
  fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, types[type]);
}

// Writes a number as it is read again; the format has names of its own for those that are none. Counts, which are most
// of a page, are written without what a fraction takes.
static void number(FILE *f, double x) {
  if (fabs(x) < 0x1p53 && x == trunc(x))
    fprintf(f, " %" PRId64 "\n", (int64_t)x);
  else if (isnan(x))
    fputs(" NaN\n", f);
  else if (isinf(x))
    fputs(x > 0 ? " +Inf\n" : " -Inf\n", f);
  else
    fprintf(f, " %.17g\n", x);
}

static void single(FILE *f, const char *name, Type type, const char *help, double x) {
  family(f, name, type, help);
  fputs(name, f);
  number(f, x);
}

// Writes the value of a label: backslashes, quotes and line breaks are escaped.
static void label(FILE *f, const char *name, const char *value) {
  fprintf(f, "%s=\"", name);
  for (const char *c = value; *c; c++)
    if (*c == '\n')
      fputs("\\n", f);
    else if (*c == '"' || *c == '\\')
      fprintf(f, "\\%c", *c);
    else
      putc_unlocked(*c, f);
  putc_unlocked('"', f);
}

static void labelled(FILE *f, const char *metric, const char *name, const char *value, double x) {
  fprintf(f, "%s{", metric);
  label(f, name, value);
  fputc('}', f);
  number(f, x);
}

static void histogram(FILE *f, const char *name, const char *help, const SnHistogram *h) {
  uint64_t below = 0;
  family(f, name, HISTOGRAM, help);
  for (int i = 0; i < SN_BUCKETS; i++) {
    below += h->bucket[i];
    fprintf(f, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name, sn_histogram_bound(i), below);
  }
  below += h->bucket[SN_BUCKETS];
  fprintf(f, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum %.17g\n%s_count %" PRIu64 "\n", name, below, name, h->sum,
          name, below);
}

// ---- requests and plans ----

static void write_requests(FILE *f, const SnCounters *c) {
  family(f, "sinew_requests_total", COUNTER, "Requests by kind; none: it could not be read.");
  for (int kind = 0; kind < SN_COUNT_KINDS; kind++)
    if (sn_count_kind(kind))
      labelled(f, "sinew_requests_total", "request", sn_count_kind(kind), (double)c->requests[kind]);
  family(f, "sinew_replies_total", COUNTER, "Replies by kind of the request and code; OK: no error.");
  for (int kind = 0; kind < SN_COUNT_KINDS; kind++)
    for (int code = 0; code < SN_COUNT_CODES; code++)
      if (c->replies[kind][code])
        fprintf(f, "sinew_replies_total{request=\"%s\",code=\"%s\"} %" PRIu64 "\n", sn_count_kind(kind),
                sn_count_code(code), c->replies[kind][code]);
  family(f, "sinew_invalid_messages_total", COUNTER, "Messages that were no request, by reason.");
  for (int i = 0; i < SN_INVALID_KINDS; i++)
    labelled(f, "sinew_invalid_messages_total", "reason", sn_count_invalid(i), (double)c->invalid[i]);
  family(f, "sinew_refused_requests_total", COUNTER, "Requests refused for their peer, by reason.");
  labelled(f, "sinew_refused_requests_total", "reason", "role", (double)c->permission);
  labelled(f, "sinew_refused_requests_total", "reason", "quota", (double)c->quota);
}

static void write_plans(FILE *f, const SnCounters *c, const SnMetrics *metrics, const SnHistogram *wakes) {
  const SnMetricsView view = sn_metrics_view(metrics);
  family(f, "sinew_plans_total", COUNTER, "Plans sent, by status.");
  for (int i = 1; i < SN_COUNT_STATUSES; i++)
    if (sn_count_status(i)) labelled(f, "sinew_plans_total", "status", sn_count_status(i), (double)c->all.plans[i]);
  single(f, "sinew_deadline_misses_total", COUNTER, "States whose first plan came after its deadline.",
         (double)view.misses);
  single(f, "sinew_states_answered_total", COUNTER, "States that were planned for and answered.", (double)view.plans);
  single(f, "sinew_states_replaced_total", COUNTER, "States that a newer one took the place of before their turn.",
         (double)view.replaced);
  histogram(f, "sinew_plan_waiting_seconds", "From the arrival of a state until its turn.", &c->waiting);
  histogram(f, "sinew_plan_computing_seconds",
            "From the turn of a state until its plan was there, slices of others included.", &c->computing);
  histogram(f, "sinew_plan_sending_seconds", "From there until the plan was given to the socket.", &c->sending);
  histogram(f, "sinew_plan_seconds", "From the arrival of a state until its first plan was given to the socket.",
            &c->whole);
  histogram(f, "sinew_event_loop_turn_seconds",
            "From when the event loop woke up until it waited again: whoever asks meanwhile is heard after that.",
            &c->turns);
  histogram(f, "sinew_planner_wake_seconds",
            "From when the planner thread should have woken up, for a state or by time, until it did.", wakes);
}

// ---- sessions ----

// What a page tells of a session, read once for all of its lines: sessions lie far apart.
typedef struct Row {
  const SnSession *session;
  int place;
  SnMetricsView view;
  uint64_t version;
  bool streaming;
  SnOutcomes outcomes;
} Row;

// Tells a counter or a gauge of a session.
typedef double SessionValue(const Row *row);

static double get_misses(const Row *row) { return (double)row->view.misses; }
static double get_replaced(const Row *row) { return (double)row->view.replaced; }
static double get_iterations(const Row *row) { return (double)row->view.iterations; }
static double get_overflows(const Row *row) { return (double)row->view.overflows; }
static double get_served(const Row *row) { return row->view.served; }
static double get_cost(const Row *row) { return row->view.cost; }
static double get_version(const Row *row) { return (double)row->version; }
static double get_streaming(const Row *row) { return row->streaming; }

static const struct {
  const char *name;
  Type type;
  const char *help;
  SessionValue *value;
} session_values[] = {
    {"sinew_session_deadline_misses_total", COUNTER, "As sinew_deadline_misses_total.", get_misses},
    {"sinew_session_states_replaced_total", COUNTER, "As sinew_states_replaced_total.", get_replaced},
    {"sinew_session_iterations_total", COUNTER, "Iterations of all plans.", get_iterations},
    {"sinew_session_overflows_total", COUNTER, "Plans with contacts or rows dropped.", get_overflows},
    {"sinew_session_served_seconds_total", COUNTER, "Time of the planner.", get_served},
    {"sinew_session_cost", GAUGE, "Cost of the latest plan.", get_cost},
    {"sinew_session_configuration_version", GAUGE, "Version of its settings.", get_version},
    {"sinew_session_streaming", GAUGE, "1: in continuous mode.", get_streaming},
};

static void write_session_values(FILE *f, const Row *rows, int n) {
  for (size_t k = 0; k < sizeof session_values / sizeof *session_values; k++) {
    family(f, session_values[k].name, session_values[k].type, session_values[k].help);
    for (int i = 0; i < n; i++) {
      fprintf(f, "%s{session=\"%d\"}", session_values[k].name, rows[i].place);
      number(f, session_values[k].value(&rows[i]));
    }
  }
}

// Requests and plans of the sessions, by code and status.
static void write_session_outcomes(FILE *f, const Row *rows, int n) {
  family(f, "sinew_session_replies_total", COUNTER, "Replies by code, as sinew_replies_total.");
  for (int i = 0; i < n; i++)
    for (int code = 0; code < SN_COUNT_CODES; code++)
      if (rows[i].outcomes.replies[code])
        fprintf(f, "sinew_session_replies_total{session=\"%d\",code=\"%s\"} %" PRIu64 "\n", rows[i].place,
                sn_count_code(code), rows[i].outcomes.replies[code]);
  family(f, "sinew_session_plans_total", COUNTER, "Plans sent, as sinew_plans_total.");
  for (int i = 0; i < n; i++)
    for (int status = 1; status < SN_COUNT_STATUSES; status++)
      if (rows[i].outcomes.plans[status])
        fprintf(f, "sinew_session_plans_total{session=\"%d\",status=\"%s\"} %" PRIu64 "\n", rows[i].place,
                sn_count_status(status), rows[i].outcomes.plans[status]);
}

static void write_session_info(FILE *f, const Row *rows, int n, const SnDeviceView *device) {
  family(f, "sinew_session_info", GAUGE, "Of each place its task, model, and where its plans are made; always 1.");
  for (int i = 0; i < n; i++) {
    const SnSession *session = rows[i].session;
    fprintf(f, "sinew_session_info{session=\"%d\",", rows[i].place);
    label(f, "task", session->task->name);
    fputc(',', f);
    label(f, "model", session->loaded->name);
    fputc(',', f);
    label(f, "backend", sn_backends_name(device, session));
    fputs("} 1\n", f);
  }
}

// The event loop alone removes sessions: those that it counts stay until it has written them.
static bool write_sessions(FILE *f, SnDaemon *d, const SnDeviceView *device) {
  int n;
  SnSession *const *all = sn_sessions_all(&d->sessions, &n);
  Row *rows = calloc((size_t)n + 1, sizeof *rows);
  if (!rows) return false;
  for (int i = 0; i < n; i++)
    rows[i] = (Row){.session = all[i],
                    .place = all[i]->place,
                    .view = sn_metrics_view(&all[i]->metrics),
                    .version = atomic_load(&all[i]->config_version),
                    .streaming = atomic_load(&all[i]->streaming),
                    .outcomes = all[i]->outcomes};
  single(f, "sinew_sessions", GAUGE, "Sessions that are open.", n);
  single(f, "sinew_sessions_limit", GAUGE, "Sessions that may be.", d->config.sessions);
  write_session_info(f, rows, n, device);
  write_session_outcomes(f, rows, n);
  write_session_values(f, rows, n);
  free(rows);
  return true;
}

// ---- the daemon ----

static void write_wire(FILE *f, const SnWireCounts *w) {
  static const char *const names[] = {"sinew_connections", "sinew_connections_refused_total",
                                      "sinew_connections_evicted_total"};
  static const char *const helps[] = {"Clients that are connected.", "Connections beyond the limit.",
                                      "Idle connections that gave way to new ones."};
  for (int k = 0; k < 3; k++) {
    family(f, names[k], k == 0 ? GAUGE : COUNTER, helps[k]);
    for (int i = 0; i < 3; i++)
      labelled(f, names[k], "listener", sn_wire_listener(i),
               k == 0 ? w->connections[i] : (double)(k == 1 ? w->refused[i] : w->evicted[i]));
  }
  family(f, "sinew_denied_peers_total", COUNTER, "Connections that were turned away, for their key or their user.");
  labelled(f, "sinew_denied_peers_total", "by", "key", (double)w->denied);
  labelled(f, "sinew_denied_peers_total", "by", "user", (double)w->turned_away);
  single(f, "sinew_replies_dropped_total", COUNTER, "Replies whose client did not read, or was gone.",
         (double)w->dropped);
  single(f, "sinew_replies_unsent", GAUGE, "Replies that are kept for clients that do not read.", w->unsent);
  single(f, "sinew_telemetry_messages_total", COUNTER, "Messages of telemetry, made where somebody is connected to it.",
         (double)w->published);
  single(f, "sinew_memory_drops_total", COUNTER, "Times that connections were dropped for memory.",
         (double)w->memory_drops);
}

static void write_queues(FILE *f, SnDaemon *d, const SnWireCounts *w) {
  family(f, "sinew_queue_depth", GAUGE, "What waits: requests read, commands of the planner, evaluations, loads.");
  labelled(f, "sinew_queue_depth", "queue", "requests", w->waiting);
  labelled(f, "sinew_queue_depth", "queue", "commands", sn_queue_count(&d->scheduler.commands));
  labelled(f, "sinew_queue_depth", "queue", "evaluations", atomic_load(&d->scheduler.evaluations));
  labelled(f, "sinew_queue_depth", "queue", "loads", sn_loader_waiting(&d->loader));
}

static void write_memory(FILE *f, SnDaemon *d, const SnWireCounts *w, const SnDeviceView *device) {
  single(f, "sinew_memory_resident_bytes", GAUGE, "Resident memory.", (double)sn_resident_memory());
  single(f, "sinew_memory_heap_bytes", GAUGE,
         "Memory that was allocated at the page before: what does not shrink at rest is kept.",
         (double)sn_reaper_heap(&d->scheduler.reaper));
  single(f, "sinew_memory_limit_bytes", GAUGE, "Resident memory beyond which connections are dropped.",
         (double)w->memory_limit);
  single(f, "sinew_memory_planners_bytes", GAUGE, "Memory that the planners of all sessions have.",
         sn_budget_taken(&d->budget));
  single(f, "sinew_memory_planners_limit_bytes", GAUGE, "Memory that they may have.", d->budget.all);
  single(f, "sinew_memory_device_bytes", GAUGE, "Memory of the device in use.", (double)device->memory.used);
  single(f, "sinew_models", GAUGE, "Models in memory.", sn_models_count(&d->models));
  family(f, "sinew_model_loads_total", COUNTER, "Files of models read, from the cache or by an import, by outcome.");
#define WRITE_LOADS(code, text)                                                    \
  labelled(f, "sinew_model_loads_total", "code", code == SN_OK ? "OK" : &#code[7], \
           (double)atomic_load(&d->models.loads[code]));
  SN_ERRORS(WRITE_LOADS)
#undef WRITE_LOADS
}

static double seconds_of(clockid_t clock) {
  struct timespec t = {0};
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// The event loop writes this, so its time is that of the calling thread.
static void write_processors(FILE *f) {
  const double loop = seconds_of(CLOCK_THREAD_CPUTIME_ID), planner = sn_threads_seconds("planner"),
               sockets = sn_threads_seconds("ZMQbg/IO"), all = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  family(f, "sinew_cpu_seconds_total", COUNTER,
         "Time of processors: the event loop, the threads that plan, libzmq's, and all others.");
  labelled(f, "sinew_cpu_seconds_total", "threads", "event_loop", loop);
  labelled(f, "sinew_cpu_seconds_total", "threads", "planner", planner);
  labelled(f, "sinew_cpu_seconds_total", "threads", "sockets", sockets);
  labelled(f, "sinew_cpu_seconds_total", "threads", "others", fmax(0, all - loop - planner - sockets));
}

static void write_log(FILE *f, SnLogState *log) {
  family(f, "sinew_log_lines_total", COUNTER, "Lines of the log, by what became of them.");
  labelled(f, "sinew_log_lines_total", "outcome", "written", (double)atomic_load(&log->written));
  labelled(f, "sinew_log_lines_total", "outcome", "suppressed", (double)atomic_load(&log->suppressed));
  labelled(f, "sinew_log_lines_total", "outcome", "lost", (double)atomic_load(&log->lost));
}

static void write_flight(FILE *f, const SnFlight *flight) {
  const SnFlightCounts c = flight ? sn_flight_counts(flight) : (SnFlightCounts){0};
  single(f, "sinew_flight_bytes", GAUGE, "Memory of the flight recorder in use.", (double)c.bytes);
  single(f, "sinew_flight_messages", GAUGE, "Requests and plans that it holds.", (double)c.messages);
  single(f, "sinew_flight_forgotten_total", COUNTER, "Of these, those that had no room or lost it too early.",
         (double)c.forgotten);
  family(f, "sinew_flight_files_total", COUNTER, "Files that it wrote, or could not.");
  labelled(f, "sinew_flight_files_total", "outcome", "written", (double)c.files);
  labelled(f, "sinew_flight_files_total", "outcome", "failed", (double)c.failures);
}

static void write_daemon(FILE *f, SnDaemon *d, const SnDeviceView *device) {
  const double now = sn_clock_now();
  family(f, "sinew_build_info", GAUGE, "Version and type of numbers; always 1.");
  fprintf(f, "sinew_build_info{version=\"%s\",number=\"%s\"} 1\n", SN_VERSION, sn_pack_number_type());
  family(f, "sinew_backend_info", GAUGE, "Where new sessions plan; always 1.");
  labelled(f, "sinew_backend_info", "backend",
           !device->present || device->lost ? "cpu"
           : device->automatic              ? "auto"
                                            : device->name,
           1);
  single(f, "sinew_failovers_total", COUNTER, "Devices lost, whose sessions go on on the CPU.", device->lost);
  single(f, "sinew_uptime_seconds", GAUGE, "Since the start.", now - d->started);
  single(f, "sinew_planner_age_seconds", GAUGE, "Since the planner thread last came round.",
         fmax(0, now - atomic_load(&d->scheduler.alive)));
  single(f, "sinew_configuration_version", GAUGE, "1 at the start, one more with each reload.", (double)d->version);
  single(f, "sinew_reload_failures_total", COUNTER, "Reloads that changed nothing, for a mistake in a file.",
         (double)d->reload_failures);
}

// What `backend: auto` decides by.
static void write_measured(FILE *f, SnDaemon *d) {
  SnMeasured measured[SN_MEASURED];
  const int n = sn_backends_measured(&d->scheduler.backends, measured);
  family(f, "sinew_device_wins_from", GAUGE,
         "Of a model, how many at once the device is faster than the CPU from; 0: at no number.");
  for (int i = 0; i < n; i++)
    for (int k = 0; k < SN_NCONTEST; k++) {
      fputs("sinew_device_wins_from{", f);
      label(f, "model", measured[i].model);
      fprintf(f, ",what=\"%s\"} %d\n", sn_contest_name((SnContestKind)k), measured[i].from[k]);
    }
}

static bool write_all(FILE *f, SnDaemon *d) {
  const SnDeviceView device = sn_backends_view(&d->scheduler.backends);
  const SnWireCounts wire = d->wire ? sn_wire_counts(d->wire) : (SnWireCounts){0};
  write_daemon(f, d, &device);
  write_measured(f, d);
  if (d->log.state) write_log(f, d->log.state);
  write_flight(f, d->flight);
  write_requests(f, &d->counters);
  write_plans(f, &d->counters, &d->metrics, &d->scheduler.wakes);
  write_wire(f, &wire);
  write_queues(f, d, &wire);
  write_memory(f, d, &wire, &device);
  write_processors(f);
  return write_sessions(f, d, &device);
}

const char *sn_metrics_text(SnDaemon *d) {
  SnMetricsText *kept = &d->metrics_text;
  const double now = sn_clock_now();
  if (kept->text && now - kept->made < KEPT) return kept->text;
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  if (f) __fsetlocking(f, FSETLOCKING_BYCALLER);  // nobody else has it
  bool ok = f && write_all(f, d);
  if (f) ok = fclose(f) == 0 && ok;
  if (!ok) {
    free(text);
    return NULL;
  }
  free(kept->text);
  *kept = (SnMetricsText){.text = text, .size = size, .made = now};
  return text;
}

SnCode sn_handle_metrics(SnDaemon *d, SnJob *job, SnError *err) {
  Sinew__V1__MetricsReply out = SINEW__V1__METRICS_REPLY__INIT;
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  out.text = (char *)(uintptr_t)sn_metrics_text(d);
  if (!out.text) return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  reply.body_case = SINEW__V1__REPLY__BODY_METRICS;
  reply.metrics = &out;
  sn_answer(d, job, &reply);
  return SN_OK;
}
