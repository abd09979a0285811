// From how many at once a device is faster than the CPU, on one thread and on all: steps of worlds, gradients,
// iterations of Adam from several starts (planner/backend/contest.h, by which the daemon's `backend: auto` decides,
// too).
#include <argp.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "clients/base/args.h"
#include "clients/bench/bench.h"
#include "clients/bench/bench_backend.h"
#include "clients/bench/bench_report.h"
#include "clients/bench/driven_model_private.h"
#include "planner/backend/contest.h"

enum { EXIT_MEASURED = 0, EXIT_UNSUPPORTED = 2, EXIT_ERROR = 3, MOST = 16384 };

typedef struct Settings {
  DrivenArgs driven;
  BenchBackendArgs backend;
  int most, seconds;
} Settings;

static int parse(int key, char *arg, struct argp_state *state) {
  Settings *s = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &s->driven;
      state->child_inputs[1] = &s->backend;
      return 0;
    case 'M':
      s->most = sn_arg_count(state, "most", arg, 1000000);
      return 0;
    case 't':
      s->seconds = sn_arg_count(state, "seconds", arg, 3600);
      return 0;
    case ARGP_KEY_END:
      if (!s->backend.name) s->backend.name = "cuda";
      if (s->driven.rounds > 0) argp_error(state, "--rounds: there are as many as --seconds allow");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

// The device, and the CPU on one thread and on all.
typedef struct Sides {
  DrivenModel driven;
  BenchBackend device, cpu[SN_CONTEST_CPUS];
  int threads[SN_CONTEST_CPUS], ncpu;
} Sides;

static SnCode open_sides(Sides *x, const Settings *s, SnError *err) {
  const int all = bench_backend_threads(&s->backend);
  SnCode code = bench_backend_open(&x->device, &s->backend, err);
  if (code == SN_OK) code = driven_model_open(&x->driven, &s->driven, err);
  x->ncpu = all > 1 ? 2 : 1;
  for (int k = 0; code == SN_OK && k < x->ncpu; ++k) {
    x->threads[k] = k ? all : 1;
    const BenchBackendArgs cpu = {.name = "cpu", .threads = x->threads[k]};
    code = bench_backend_open(&x->cpu[k], &cpu, err);
  }
  return code;
}

static void close_sides(Sides *x) {
  bench_backend_close(&x->device);
  for (int k = 0; k < SN_CONTEST_CPUS; ++k) bench_backend_close(&x->cpu[k]);
  driven_model_close(&x->driven);
}

static SnCode measure(const Sides *x, const Settings *s, SnContest *contest, SnError *err) {
  SnContestDef def = {.device = x->device.backend,
                      .ncpu = x->ncpu,
                      .model = x->driven.o.m,
                      .cost = x->driven.cost,
                      .state = x->driven.initial,
                      .ctrl = x->driven.ctrl,
                      .target = x->driven.target,
                      .steps = x->driven.steps,
                      .most = s->most,
                      .seconds = s->seconds,
                      .clock = sn_clock_monotonic()};
  for (int k = 0; k < x->ncpu; ++k) def.cpu[k] = x->cpu[k].backend;
  return sn_contest_run(&def, contest, err);
}

// ---- report ----

// Whether the device is the host in its place: then nothing here is about a device.
static bool is_host(const Sides *x) { return strstr(x->device.text, "the host in place of a device") != NULL; }

static cJSON *kind_json(const Sides *x, const SnContest *c, SnContestKind kind) {
  cJSON *o = cJSON_CreateObject(), *rows = cJSON_CreateArray(), *from = cJSON_CreateArray();
  for (int k = 0; k < x->ncpu; ++k) cJSON_AddItemToArray(from, cJSON_CreateNumber(sn_contest_from(c, kind, k)));
  for (int i = 0; i < c->rows[kind]; ++i) {
    const SnContestRow *r = &c->row[kind][i];
    cJSON *row = cJSON_CreateObject(), *cpu = cJSON_AddArrayToObject(row, "cpu_seconds"),
          *scaled = cJSON_AddArrayToObject(row, "cpu_in_proportion");
    cJSON_AddNumberToObject(row, "count", r->count);
    cJSON_AddNumberToObject(row, "device_seconds", r->device);
    for (int k = 0; k < x->ncpu; ++k) {
      cJSON_AddItemToArray(cpu, cJSON_CreateNumber(r->cpu[k]));
      cJSON_AddItemToArray(scaled, cJSON_CreateBool(r->scaled[k]));
    }
    cJSON_AddItemToArray(rows, row);
  }
  cJSON_AddStringToObject(o, "what", sn_contest_name(kind));
  cJSON_AddItemToObject(o, "device_wins_from", from);
  cJSON_AddItemToObject(o, "rows", rows);
  return o;
}

static void print_json(const Sides *x, const Settings *s, const SnContest *c) {
  cJSON *root = cJSON_CreateObject();
  cJSON_AddStringToObject(root, "model", s->driven.model);
  cJSON_AddStringToObject(root, "backend", s->backend.name);
  cJSON_AddStringToObject(root, "device", x->device.text);
  cJSON_AddBoolToObject(root, "is_host", is_host(x));
  cJSON_AddNumberToObject(root, "steps", c->steps);
  cJSON *threads = cJSON_AddArrayToObject(root, "cpu_threads"), *kinds = cJSON_AddArrayToObject(root, "measured");
  for (int k = 0; k < x->ncpu; ++k) cJSON_AddItemToArray(threads, cJSON_CreateNumber(x->threads[k]));
  for (int kind = 0; kind < SN_NCONTEST; ++kind) cJSON_AddItemToArray(kinds, kind_json(x, c, (SnContestKind)kind));
  bench_print_json(root, false);
}

static void print_kind(const Sides *x, const SnContest *c, SnContestKind kind) {
  printf("\n%-12s %14s", sn_contest_name(kind), "device [ms]");
  for (int k = 0; k < x->ncpu; ++k) printf("   cpu, %3d threads [ms]", x->threads[k]);
  printf("\n");
  for (int i = 0; i < c->rows[kind]; ++i) {
    const SnContestRow *r = &c->row[kind][i];
    printf("%12d %14.3f", r->count, 1e3 * r->device);
    for (int k = 0; k < x->ncpu; ++k)
      printf("   %s%13.3f %6.2fx", r->scaled[k] ? "~" : " ", 1e3 * r->cpu[k], r->cpu[k] / r->device);
    printf("\n");
  }
  for (int k = 0; k < x->ncpu; ++k) {
    const int from = sn_contest_from(c, kind, k);
    if (from)
      printf("the device wins against %d thread%s from %d on\n", x->threads[k], x->threads[k] > 1 ? "s" : "", from);
    else
      printf("the device wins against %d thread%s nowhere\n", x->threads[k], x->threads[k] > 1 ? "s" : "");
  }
}

static void print_text(const Sides *x, const Settings *s, const SnContest *c) {
  printf("%s: rollouts of %d steps, many at once\n%s\n", s->driven.model, c->steps, x->device.text);
  if (is_host(x)) printf("This is the host itself: none of the figures below is about a device.\n");
  for (int kind = 0; kind < SN_NCONTEST; ++kind) print_kind(x, c, (SnContestKind)kind);
  printf("\n~ in proportion to the largest count that there was time for\n");
}

int mode_device(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"most", 'M', "N", 0, "largest number at once that is tried (default 16384)", 0},
      {"seconds", 't', "S", 0, "about the time that all of it takes (default 30)", 0},
      {0}};
  static const struct argp_child children[] = {{.argp = &driven_argp}, {.argp = &bench_backend_argp}, {0}};
  static const char doc[] =
      "From how many at once a device is faster than the CPU, on one thread and on all: steps of worlds, gradients, "
      "iterations of Adam from several starts. 1, 4, 16, ... are tried.\vExample:\n"
      "  sinew-bench device --model hand.xml --backend cuda --steps 64\n\n"
      "Exit status: 0 measured, 2 the model uses what is not supported, 3 it cannot be loaded, or there is no such "
      "backend.";
  const struct argp argp = {.options = options, .parser = parse, .doc = doc, .children = children};
  argp_err_exit_status = EXIT_ERROR;
  Settings s = {.driven = {.steps = 64}, .most = MOST, .seconds = 30};
  argp_parse(&argp, argc, argv, 0, NULL, &s);
  SnError err = {0};
  SnContest contest;
  Sides x = {.ncpu = 0};
  SnCode code = open_sides(&x, &s, &err);
  if (code == SN_OK) code = measure(&x, &s, &contest, &err);
  if (code != SN_OK)
    bench_report_failure(s.driven.model, err.text);
  else if (s.driven.json)
    print_json(&x, &s, &contest);
  else
    print_text(&x, &s, &contest);
  close_sides(&x);
  return code == SN_OK ? EXIT_MEASURED : code == SN_ERR_UNSUPPORTED ? EXIT_UNSUPPORTED : EXIT_ERROR;
}
