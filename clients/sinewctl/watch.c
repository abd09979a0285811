#include "clients/sinewctl/watch_private.h"

#include <cjson/cJSON.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clients/base/text.h"
#include "physics/base/clock.h"

enum { HISTORY = 60, VIEW_LINES = 7, HEADER_EVERY = 20 };

// Without telemetry for so long the daemon is taken for gone; and the time between two looks by requests [s].
#define GONE 5.0
#define POLL 0.25

// One look at the session. Plans: those sent in continuous mode, else answers.
typedef struct Look {
  double time;  // of the daemon [s]
  Sinew__V1__SessionStatistics now;
  double iterations, plans;  // a second, since the look before; NaN in the first
} Look;

typedef struct Watch {
  SinewClient *client;
  const WatchOptions *options;
  bool telemetry, terminal, wide;  // wide: UTF-8
  char task[100], backend[32];     // and where its plans are made
  bool device_lost;
  uint32_t patience;     // of the session's settings: plans in a row whose cost does not fall; 0: that is not said
  uint64_t version;      // of the configuration that it is from
  double cost[HISTORY];  // of the latest looks
  int looks;
  Look last;
} Watch;

// The session's row of a set of statistics. False when it is not among them.
static bool take(Watch *w, double time, const Sinew__V1__Statistics *all, Look *look) {
  for (size_t i = 0; i < all->n_sessions; ++i) {
    const Sinew__V1__SessionStatistics *s = all->sessions[i];
    if (s->session != w->options->session) continue;
    sn_printable(w->task, sizeof w->task, s->task, false);
    *look = (Look){.time = time, .now = *s, .iterations = NAN, .plans = NAN};
    sn_printable(w->backend, sizeof w->backend, s->backend, false);
    w->device_lost = all->device && all->device->lost;
    look->now.task = look->now.backend = NULL;  // belong to the message
    const double dt = time - w->last.time;
    if (w->looks > 0 && dt > 0) {
      look->iterations = (double)(s->iterations - w->last.now.iterations) / dt;
      look->plans = (double)(s->streaming ? s->sent - w->last.now.sent : s->plans - w->last.now.plans) / dt;
    }
    return true;
  }
  return false;
}

static SinewStatus ask(Watch *w, Look *look, SinewError *err) {
  Sinew__V1__StatisticsRequest in = SINEW__V1__STATISTICS_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  in.session = w->options->session;
  request.body_case = SINEW__V1__REQUEST__BODY_STATISTICS;
  request.statistics = &in;
  Sinew__V1__Reply *reply;
  const SinewStatus status = sn_request(w->client, &request, &reply, err);
  if (status != SINEW_OK) return status;
  const bool found = take(w, reply->statistics->uptime, reply->statistics, look);
  sn_free_reply(reply);
  return found ? SINEW_OK
               : sn_wire_fail(err, SINEW_ERR_PROTOCOL, "the statistics are not those of session %llu",
                              (unsigned long long)w->options->session);
}

// Reads `patience` where it matters to people and the session's configuration is not the one that it is from.
static SinewStatus read_patience(Watch *w, const Look *look, SinewError *err) {
  if (w->options->json || look->now.unimproved == 0 || look->now.config_version == w->version) return SINEW_OK;
  Sinew__V1__GetConfigRequest in = SINEW__V1__GET_CONFIG_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  in.session = w->options->session;
  request.body_case = SINEW__V1__REQUEST__BODY_GET_CONFIG;
  request.get_config = &in;
  Sinew__V1__Reply *reply;
  const SinewStatus status = sn_request(w->client, &request, &reply, err);
  if (status != SINEW_OK) return status == SINEW_ERR_NO_SESSION ? SINEW_ERR_ENDED : status;
  const Sinew__V1__PlannerSettings *s = reply->get_config->planner;
  w->patience = s && s->has_patience_case ? s->patience : 0;
  w->version = reply->get_config->version;
  sn_free_reply(reply);
  return SINEW_OK;
}

// The next look; SINEW_ERR_ENDED when the session is no more.
static SinewStatus next_look(Watch *w, Look *look, SinewError *err) {
  if (!w->telemetry) {
    const double pause = w->options->interval > 0 ? w->options->interval : POLL;
    const struct timespec t = sn_clock_timespec(pause);
    nanosleep(&t, NULL);
    const SinewStatus status = ask(w, look, err);
    return status == SINEW_ERR_NO_SESSION ? SINEW_ERR_ENDED : status;
  }
  Sinew__V1__Telemetry *message;
  const SinewStatus status = sn_wire_telemetry(w->client, GONE, &message, err);
  if (status != SINEW_OK) return status;
  const bool found = message->statistics && take(w, message->time, message->statistics, look);
  sinew__v1__telemetry__free_unpacked(message, NULL);
  return found ? SINEW_OK : SINEW_ERR_ENDED;
}

//------------------------------------------------------------------------------------ views

static void print_json(const Watch *w, const Look *look) {
  const Sinew__V1__SessionStatistics *s = &look->now;
  cJSON *o = cJSON_CreateObject();
  cJSON_AddNumberToObject(o, "time", look->time);
  cJSON_AddNumberToObject(o, "session", (double)s->session);
  cJSON_AddStringToObject(o, "task", w->task);
  cJSON_AddNumberToObject(o, "cost", s->cost);
  cJSON_AddNumberToObject(o, "best_cost", s->best_cost);
  cJSON_AddNumberToObject(o, "gradient_norm", s->gradient_norm);
  cJSON_AddNumberToObject(o, "unimproved", s->unimproved);
  cJSON_AddBoolToObject(o, "stuck", s->stuck);
  cJSON_AddNumberToObject(o, "iterations_per_second", look->iterations);
  cJSON_AddNumberToObject(o, "plans_per_second", look->plans);
  cJSON_AddNumberToObject(o, "plan_age", s->plan_age);
  cJSON_AddNumberToObject(o, "misses", (double)s->misses);
  cJSON_AddNumberToObject(o, "replaced", (double)s->replaced);
  cJSON_AddNumberToObject(o, "latency_p50", s->latency_p50);
  cJSON_AddNumberToObject(o, "latency_p99", s->latency_p99);
  cJSON_AddNumberToObject(o, "config_version", (double)s->config_version);
  cJSON_AddBoolToObject(o, "streaming", s->streaming);
  cJSON_AddStringToObject(o, "backend", w->backend);
  cJSON_AddBoolToObject(o, "device_lost", w->device_lost);
  char *text = cJSON_PrintUnformatted(o);
  puts(text);
  cJSON_free(text);
  cJSON_Delete(o);
}

// A number, or a dash for none; the text is good until the eighth call after.
static const char *text_of(double x, const char *format) {
  static char text[8][32];
  static int turn;
  char *out = text[turn = (turn + 1) % 8];
  if (!isfinite(x)) return "-";
    // The formats are those of this file.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  snprintf(out, sizeof text[0], format, x);
#pragma GCC diagnostic pop
  return out;
}

// What is said of a cost that does not fall; "" of fewer plans than the session's patience.
static const char *progress_of(const Watch *w, const Sinew__V1__SessionStatistics *s) {
  static char text[64];
  text[0] = '\0';
  if (s->stuck)
    snprintf(text, sizeof text, ", no progress: its gradient vanishes");
  else if (w->patience > 0 && s->unimproved >= w->patience)
    snprintf(text, sizeof text, ", no improvement for %u plans", (unsigned)s->unimproved);
  return text;
}

static void print_line(const Watch *w, const Look *look) {
  const Sinew__V1__SessionStatistics *s = &look->now;
  if (w->looks % HEADER_EVERY == 0)
    printf("%9s %11s %11s %11s %8s %8s %9s %7s %7s  %s\n", "time s", "cost", "best", "gradient", "iter/s", "plans/s",
           "age ms", "misses", "config", "backend");
  printf("%9.2f %11s %11s %11s %8s %8s %9s %7llu %7llu  %s%s%s\n", look->time, text_of(s->cost, "%.5g"),
         text_of(s->best_cost, "%.5g"), text_of(s->gradient_norm, "%.4g"), text_of(look->iterations, "%.0f"),
         text_of(look->plans, "%.1f"), text_of(1e3 * s->plan_age, "%.1f"), (unsigned long long)s->misses,
         (unsigned long long)s->config_version, w->backend, w->device_lost ? " (device lost)" : "", progress_of(w, s));
}

// The costs of the latest looks as a row of bars, on a logarithmic scale.
static void print_bars(const Watch *w) {
  static const char *const tall[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static const char *const plain[] = {".", ":", "-", "=", "+", "*", "%", "#"};
  const int n = w->looks < HISTORY ? w->looks : HISTORY;
  double low = INFINITY, high = -INFINITY;
  for (int i = 0; i < n; ++i) {
    const double x = log(w->cost[i]);
    if (!isfinite(x)) continue;
    low = fmin(low, x);
    high = fmax(high, x);
  }
  for (int k = 0; k < n; ++k) {
    const double x = log(w->cost[(w->looks - n + k) % HISTORY]);
    const int height = high > low && isfinite(x) ? (int)fmin(7, 8 * (x - low) / (high - low)) : 0;
    fputs(!isfinite(x) ? " " : (w->wide ? tall : plain)[height], stdout);
  }
}

static void print_view(const Watch *w, const Look *look) {
  const Sinew__V1__SessionStatistics *s = &look->now;
  if (w->looks > 1) printf("\033[%dA", VIEW_LINES);
  printf("session        %llu, %s, %s, configuration %llu, on %s%s\033[K\n", (unsigned long long)s->session, w->task,
         s->streaming ? "continuous" : "answers requests", (unsigned long long)s->config_version, w->backend,
         w->device_lost ? ": the device is lost" : "");
  printf("cost           %s, best %s%s\033[K\n", text_of(s->cost, "%.6g"), text_of(s->best_cost, "%.6g"),
         progress_of(w, s));
  printf("               ");
  print_bars(w);
  printf("\033[K\n");
  printf("gradient norm  %s\033[K\n", text_of(s->gradient_norm, "%.4g"));
  printf("iterations/s   %s, plans/s %s\033[K\n", text_of(look->iterations, "%.0f"), text_of(look->plans, "%.1f"));
  printf("plan age       %s ms; latency p50 %s ms, p99 %s ms\033[K\n", text_of(1e3 * s->plan_age, "%.1f"),
         text_of(1e3 * s->latency_p50, "%.1f"), text_of(1e3 * s->latency_p99, "%.1f"));
  printf("misses         %llu of %llu states, %llu replaced\033[K\n", (unsigned long long)s->misses,
         (unsigned long long)s->plans, (unsigned long long)s->replaced);
}

static void show(Watch *w, const Look *look) {
  w->cost[w->looks % HISTORY] = look->now.cost > 0 ? look->now.cost : NAN;
  if (!w->terminal && !w->options->json) print_line(w, look);
  ++w->looks;
  if (w->options->json) print_json(w, look);
  if (w->terminal) print_view(w, look);
  fflush(stdout);
  w->last = *look;
}

//------------------------------------------------------------------------------------ the loop

// The endpoint of telemetry, if the daemon has one.
static SinewStatus subscribe(Watch *w, SinewError *err) {
  Sinew__V1__HelloRequest in = SINEW__V1__HELLO_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  in.protocol = 1;
  in.client = (char *)"watch";
  request.body_case = SINEW__V1__REQUEST__BODY_HELLO;
  request.hello = &in;
  Sinew__V1__Reply *reply;
  SinewStatus status = sn_request(w->client, &request, &reply, err);
  if (status != SINEW_OK) return status;
  // Telemetry at a tcp address tells no ids of sessions: there it is asked.
  w->telemetry = w->options->interval <= 0 && strncmp(reply->hello->telemetry, "ipc://", 6) == 0;
  if (w->telemetry) status = sn_wire_subscribe(w->client, reply->hello->telemetry, err);
  sn_free_reply(reply);
  return status;
}

SinewStatus watch_run(SinewClient *client, const WatchOptions *options, SinewError *err) {
  const char *term = getenv("TERM");
  Watch w = {.client = client, .options = options};
  setlocale(LC_CTYPE, "");
  w.wide = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  w.terminal = !options->json && isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
  Look look;
  SinewStatus status = ask(&w, &look, err);  // says so when there is no such session
  if (status == SINEW_OK) status = subscribe(&w, err);
  const double until = sn_clock_now() + (options->seconds > 0 ? options->seconds : INFINITY);
  while (status == SINEW_OK && (status = read_patience(&w, &look, err)) == SINEW_OK) {
    show(&w, &look);
    if ((options->count && (uint64_t)w.looks >= options->count) || sn_clock_now() >= until) return SINEW_OK;
    status = next_look(&w, &look, err);
  }
  if (status != SINEW_ERR_ENDED) return status;
  if (!options->json) printf("session %llu has ended\n", (unsigned long long)options->session);
  return SINEW_OK;
}
