// An iteration of a multistart: of one session, of many sessions of one model at once, and of many starts of one; and
// a whole plan of a planner, so that what the host adds shows.
#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "clients/base/args.h"
#include "clients/base/progress.h"
#include "clients/base/statistics.h"
#include "clients/bench/bench.h"
#include "clients/bench/bench_multistart.h"
#include "clients/bench/bench_plan_private.h"
#include "clients/bench/bench_report.h"

enum { EXIT_MEASURED = 0, EXIT_UNSUPPORTED = 2, EXIT_ERROR = 3 };
enum { MOST = 4096 };

typedef struct Settings {
  BenchTaskArgs c;
  int sessions[SN_ARG_LIST], nsessions, starts[SN_ARG_LIST], nstarts;
  int iterations, rounds, steps;
  bool json;
} Settings;

typedef struct Bench {
  const Settings *s;
  BenchTask task;
  BenchBackend on;
  double one;        // an iteration of one session with one start [ms]; NaN until it is measured
  double plan;       // one plan of a planner [ms]
  double cost[2];    // of one session with one start: of its first controls, and of the best
  double plan_cost;  // of the plan
  cJSON *rows;
} Bench;

static int parse(int key, char *arg, struct argp_state *state) {
  Settings *s = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &s->c;
      state->child_inputs[1] = &s->c.backend;
      return 0;
    case 'S':
      s->nsessions = sn_arg_list(state, "sessions", arg, MOST, s->sessions, SN_ARG_LIST);
      return 0;
    case 'P':
      s->nstarts = sn_arg_list(state, "starts", arg, MOST, s->starts, SN_ARG_LIST);
      return 0;
    case 'i':
      s->iterations = sn_arg_count(state, "iterations", arg, 10000);
      return 0;
    case 'n':
      s->steps = sn_arg_count(state, "steps", arg, 4096);
      return 0;
    case 'r':
      s->rounds = sn_arg_count(state, "rounds", arg, BENCH_ROUNDS);
      return 0;
    case 'j':
      s->json = true;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

// Figures of one number of sessions and starts.
static void add_row(Bench *b, int sessions, int starts, double *ms) {
  const double median = sn_median(ms, b->s->rounds);
  if (sessions == 1 && starts == 1) b->one = median;
  cJSON *row = cJSON_CreateObject();
  cJSON_AddNumberToObject(row, "sessions", sessions);
  cJSON_AddNumberToObject(row, "starts", starts);
  cJSON_AddNumberToObject(row, "ms_an_iteration", median);
  cJSON_AddNumberToObject(row, "ms_low", ms[0]);
  cJSON_AddNumberToObject(row, "ms_high", ms[b->s->rounds - 1]);
  cJSON_AddNumberToObject(row, "ms_a_gradient", median / sessions / starts);
  cJSON_AddNumberToObject(row, "over_one", median / b->one);  // null where one was not asked for
  cJSON_AddItemToArray(b->rows, row);
}

static SnCode measure(Bench *b, int sessions, int starts, SnError *err) {
  const Settings *s = b->s;
  double ms[BENCH_ROUNDS];
  BenchMultistart *session = calloc((size_t)sessions, sizeof *session);
  SnCode code = session ? SN_OK : sn_fail(err, SN_ERR_MEMORY, "out of memory");
  for (int i = 0; i < sessions && code == SN_OK; ++i)
    code = bench_multistart_open(session + i, &b->task, b->on.backend, i, starts, err);
  if (code == SN_OK && (code = bench_multistarts_run(session, sessions, 1, err)) != SN_OK)
    bench_backend_stopped(&b->on, err);
  for (int r = 0; r < s->rounds && code == SN_OK; ++r) {
    sn_progress("%d sessions, %d starts, round %d of %d", sessions, starts, r + 1, s->rounds);
    const double t = sn_now_us();
    code = bench_multistarts_run(session, sessions, s->iterations, err);
    ms[r] = 1e-3 * (sn_now_us() - t) / s->iterations;
    if (code != SN_OK) bench_backend_stopped(&b->on, err);
  }
  if (code == SN_OK) {
    if (sessions == 1 && starts == 1) {
      b->cost[0] = session->job.cost_before;
      b->cost[1] = session->job.best_cost;
    }
    add_row(b, sessions, starts, ms);
  }
  for (int i = 0; i < sessions && session; ++i) bench_multistart_close(session + i);
  free(session);
  return code;
}

// Measures that multistart as a plan of a user's planner: with the planner's own work, its states and its copies.
static SnCode measure_plan(Bench *b, SnError *err) {
  const Settings *s = b->s;
  double ms[BENCH_ROUNDS];
  SinewError why;
  const BenchPlan plan = {
      .args = &s->c, .body = b->task.body.m, .steps = b->task.steps, .iterations = s->iterations, .rounds = s->rounds};
  if (bench_plan_measure(&plan, ms, &b->plan_cost, &why) != SINEW_OK)
    return sn_fail(err, why.status == SINEW_ERR_UNSUPPORTED ? SN_ERR_UNSUPPORTED : SN_ERR_STATE, "%s", why.text);
  b->plan = sn_median(ms, s->rounds);
  return SN_OK;
}

static SnCode measure_all(Bench *b, SnError *err) {
  const Settings *s = b->s;
  SnCode code = bench_task_open(&b->task, &s->c, s->steps, err);
  if (code == SN_OK) code = bench_backend_open(&b->on, &s->c.backend, err);
  for (int i = 0; i < s->nsessions && code == SN_OK; ++i) code = measure(b, s->sessions[i], 1, err);
  for (int i = 0; i < s->nstarts && code == SN_OK; ++i)
    if (s->starts[i] > 1) code = measure(b, 1, s->starts[i], err);
  if (code == SN_OK) code = measure_plan(b, err);
  sn_progress_end();
  return code;
}

static double number(const cJSON *o, const char *name) {
  const cJSON *x = cJSON_GetObjectItem(o, name);
  return cJSON_IsNumber(x) ? x->valuedouble : NAN;
}

static void print_text(const Bench *b) {
  const Settings *s = b->s;
  printf("%s: %d steps, %d iterations, %d rounds\n%s\n\n%9s %7s %16s %14s %14s\n", s->c.task, b->task.steps,
         s->iterations, s->rounds, b->on.text, "sessions", "starts", "ms an iteration", "ms a gradient",
         "times that of 1");
  const cJSON *row;
  char over[24];
  cJSON_ArrayForEach(row, b->rows) {
    printf("%9.0f %7.0f %16.3f %14.3f %14s\n", number(row, "sessions"), number(row, "starts"),
           number(row, "ms_an_iteration"), number(row, "ms_a_gradient"),
           bench_number(number(row, "over_one"), 2, over));
  }
  printf("\na planner's plan: %.2f ms, %.3f ms an iteration; cost ", b->plan, b->plan / s->iterations);
  if (!isnan(b->cost[0])) printf("%.6g, then ", b->cost[0]);  // of one session with one start, where asked for
  printf("%.6g\n", b->plan_cost);
}

// Takes the rows over.
static void print_json(Bench *b) {
  const Settings *s = b->s;
  cJSON *root = cJSON_CreateObject();
  cJSON_AddStringToObject(root, "task", s->c.task);
  cJSON_AddStringToObject(root, "backend", bench_backend_name(&s->c.backend));
  cJSON_AddStringToObject(root, "device", b->on.text);
  cJSON_AddNumberToObject(root, "steps", b->task.steps);
  cJSON_AddNumberToObject(root, "iterations", s->iterations);
  cJSON_AddNumberToObject(root, "rounds", s->rounds);
  cJSON_AddItemToObject(root, "rows", b->rows);
  cJSON_AddNumberToObject(root, "plan_ms", b->plan);
  cJSON_AddNumberToObject(root, "plan_ms_an_iteration", b->plan / s->iterations);
  cJSON_AddNumberToObject(root, "plan_over_refinement", b->plan / s->iterations / b->one);
  cJSON_AddNumberToObject(root, "cost_before", b->cost[0]);
  cJSON_AddNumberToObject(root, "cost", b->cost[1]);
  cJSON_AddNumberToObject(root, "plan_cost", b->plan_cost);
  b->rows = NULL;
  bench_print_json(root, false);
}

int mode_refine(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"sessions", 'S', "LIST", 0, "sessions of one model at once (default 1,4,16,64)", 0},
      {"worlds", 0, NULL, OPTION_ALIAS, NULL, 0},
      {"starts", 'P', "LIST", 0, "starts of one session (default 4,16,64)", 0},
      {"iterations", 'i', "N", 0, "of each refinement (default 8)", 0},
      {"steps", 'n', "N", 0, "of a plan (default: the task's horizon)", 0},
      {"rounds", 'r', "N", 0, "passes of each measurement (default 5)", 0},
      {"json", 'j', NULL, 0, "print JSON", 0},
      {0}};
  static const struct argp_child children[] = {{.argp = &bench_task_argp}, {.argp = &bench_backend_argp}, {0}};
  static const char doc[] =
      "Times iterations of Adam on plans of a task: value and gradient of every start, and the move; of many sessions, "
      "of many starts, and within a planner.\vExample: sinew-bench refine --task hand_pose --backend cuda --json\n\n"
      "Exit status: 0 measured, 2 the model uses what is not supported, 3 it cannot be loaded, or there is no such "
      "backend.";
  const struct argp argp = {.options = options, .parser = parse, .doc = doc, .children = children};
  argp_err_exit_status = EXIT_ERROR;
  Settings s = {.c = bench_default_task_args(),
                .sessions = {1, 4, 16, 64},
                .nsessions = 4,
                .starts = {4, 16, 64},
                .nstarts = 3,
                .iterations = 8,
                .rounds = 5};
  argp_parse(&argp, argc, argv, 0, NULL, &s);
  SnError err = {0};
  Bench b = {.s = &s, .one = NAN, .cost = {NAN, NAN}, .rows = cJSON_CreateArray()};
  const SnCode code = measure_all(&b, &err);
  if (code != SN_OK)
    fprintf(stderr, "sinew-bench: %s\n", err.text);
  else if (s.json)
    print_json(&b);
  else
    print_text(&b);
  cJSON_Delete(b.rows);
  bench_task_close(&b.task);
  bench_backend_close(&b.on);
  return code == SN_OK ? EXIT_MEASURED : code == SN_ERR_UNSUPPORTED ? EXIT_UNSUPPORTED : EXIT_ERROR;
}
