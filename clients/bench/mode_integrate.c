// A tossed body by chosen steps: its place after the horizon as a function of the fall that it starts with, value and
// slope, at tolerances from 1e-3 to 1e-10. The scene is that of figure 5 of A. Paulus et al., 2025 (arXiv 2506.14186):
// a free body at qpos[2] = 0.2 with qvel[1] = -0.1 and the fall as qvel[2]; its value is qpos[1] at the end. The
// reference is a run at tolerance 1e-12, and its central difference. One thread.
#include <argp.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/api.h"
#include "clients/base/args.h"
#include "clients/base/progress.h"
#include "clients/base/statistics.h"
#include "clients/bench/bench.h"
#include "clients/bench/bench_report.h"
#include "clients/include/sinew.h"

enum { EXIT_MEASURED = 0, EXIT_UNSUPPORTED = 2, EXIT_ERROR = 3 };
enum { FIRST = 3, LAST = 10 };  // tolerances 1e-FIRST to 1e-LAST

typedef struct Settings {
  const char *model, *method;
  int rounds;
  double fall, seconds;
  bool json;
} Settings;

// What a tolerance costs and gives.
typedef struct Row {
  double tolerance, value_ms, both_ms, value, slope, value_error, slope_error;
  int accepted, rejected, evaluations;
} Row;

// A toss at a tolerance: its integrator, its state, bars.
typedef struct Toss {
  const Settings *s;
  const SinewSizes *sizes;
  SinewIntegrator *integrator;
  SinewIntegrationReport report;  // of the last run
  double *qpos, *end;             // (nq)
  double *qvel, *bar, *slope;     // (nv)
} Toss;

static double number(const struct argp_state *state, const char *name, const char *arg) {
  char *end;
  const double x = strtod(arg, &end);
  if (end == arg || *end || !isfinite(x)) argp_error(state, "--%s %s: a number is wanted", name, arg);
  return x;
}

// Whether a method estimates its error.
static bool has_error(const char *method) {
  static const char *const known[] = {"heun", "midpoint", "ralston", "bosh3", "tsit5", "dopri5", "dopri8"};
  for (size_t k = 0; k < sizeof known / sizeof *known; ++k)
    if (strcmp(method, known[k]) == 0) return true;
  return false;
}

static int parse(int key, char *arg, struct argp_state *state) {
  Settings *s = state->input;
  switch (key) {
    case 'm':
      s->model = arg;
      return 0;
    case 'i':
      if (!has_error(arg))
        argp_error(state, "--method %s: heun, midpoint, ralston, bosh3, tsit5, dopri5 or dopri8 is wanted", arg);
      s->method = arg;
      return 0;
    case 'f':
      s->fall = number(state, "fall", arg);
      return 0;
    case 's':
      s->seconds = number(state, "seconds", arg);
      if (!(s->seconds > 0 && s->seconds <= 100)) argp_error(state, "--seconds %s: above 0, at most 100", arg);
      return 0;
    case 'r':
      s->rounds = sn_arg_count(state, "rounds", arg, BENCH_ROUNDS);
      return 0;
    case 'j':
      s->json = true;
      return 0;
    case ARGP_KEY_END:
      if (!s->model) argp_error(state, "--model is needed");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

// Runs the toss with this fall; returns the value, NaN and err where it does not come to its end.
static double toss(Toss *t, double fall, SinewError *err) {
  const Settings *s = t->s;
  SinewIntegration run = sinew_default_integration();
  memset(t->qvel, 0, sizeof *t->qvel * (size_t)t->sizes->nv);
  t->qpos[2] = 0.2;
  t->qvel[1] = -0.1;
  t->qvel[2] = fall;
  const SinewState from = {.qpos = t->qpos, .qvel = t->qvel};
  run.duration = s->seconds;
  run.nout = 1;
  run.out_time = &s->seconds;
  run.out_qpos = t->end;
  if (sinew_integrator_run(t->integrator, &from, &run, &t->report, err) != SINEW_OK) return (double)NAN;
  if (t->report.end == SINEW_END_DONE) return t->end[1];
  api_fail(err, SINEW_ERR_LIMIT, "at %.3g s: %s", t->report.reached, sinew_integration_end_text(t->report.end));
  return (double)NAN;
}

// Value and slope: the run and the way back.
static double toss_slope(Toss *t, double *slope, SinewError *err) {
  SinewIntegrationBars bars = sinew_default_integration_bars();
  const double value = toss(t, t->s->fall, err);
  memset(t->bar, 0, sizeof *t->bar * (size_t)t->sizes->nv);
  t->bar[1] = 1;
  bars.out_qpos = t->bar;
  bars.qvel = t->slope;
  if (isnan(value) || sinew_integrator_vjp(t->integrator, &bars, err) != SINEW_OK) return (double)NAN;
  *slope = t->slope[2];
  return value;
}

static void close_toss(Toss *t) {
  sinew_integrator_free(t->integrator);
  free(t->qpos);
  t->integrator = NULL;
  t->qpos = NULL;
}

// Makes the toss at a tolerance. Returns false and sets err on failure.
static bool open_toss(Toss *t, const SinewModel *model, const Settings *s, double tolerance, SinewError *err) {
  SinewIntegratorDef def = sinew_default_integrator();
  def.model = model;
  def.method = s->method;
  def.rtol = def.atol = tolerance;
  def.gradients = true;
  *t = (Toss){.s = s, .sizes = sinew_model_sizes(model), .report = sinew_default_integration_report()};
  const size_t nq = (size_t)t->sizes->nq, nv = (size_t)t->sizes->nv;
  t->qpos = calloc(2 * nq + 3 * nv, sizeof *t->qpos);
  if (!t->qpos) api_fail(err, SINEW_ERR_MEMORY, "no memory for states of %zu numbers", nq + nv);
  if (t->qpos) t->integrator = sinew_integrator_create(&def, err);
  if (!t->integrator) {
    close_toss(t);
    return false;
  }
  t->end = t->qpos + nq;
  t->qvel = t->end + nq;
  t->bar = t->qvel + nv;
  t->slope = t->bar + nv;
  memcpy(t->qpos, sinew_model_array(model, "qpos0", NULL, NULL), sizeof *t->qpos * nq);
  return true;
}

// The value at tolerance 1e-12 and its difference over the fall.
static bool measure_reference(const SinewModel *model, const Settings *s, Row *r, SinewError *err) {
  const double eps = 1e-4;
  Toss t;
  if (!open_toss(&t, model, s, 1e-12, err)) return false;
  const double value = toss(&t, s->fall, err), up = toss(&t, s->fall + eps, err), down = toss(&t, s->fall - eps, err);
  *r = (Row){.tolerance = 1e-12, .value = value, .slope = (up - down) / (2 * eps), .accepted = t.report.accepted};
  close_toss(&t);
  return isfinite(value + up + down);
}

static bool measure_row(const SinewModel *model, const Settings *s, const Row *reference, Row *r, SinewError *err) {
  double value_ms[BENCH_ROUNDS], both_ms[BENCH_ROUNDS];
  Toss t;
  if (!open_toss(&t, model, s, r->tolerance, err)) return false;
  bool good = isfinite(toss_slope(&t, &r->slope, err));  // does not count: memory is touched for the first time
  for (int k = 0; k < s->rounds && good; ++k) {
    const double begin = sn_now_us();
    r->value = toss(&t, s->fall, err);
    const double middle = sn_now_us();
    good = isfinite(r->value) && isfinite(toss_slope(&t, &r->slope, err));
    value_ms[k] = (middle - begin) * 1e-3;
    both_ms[k] = (sn_now_us() - middle) * 1e-3;
  }
  if (good) {
    r->value_ms = sn_median(value_ms, s->rounds);
    r->both_ms = sn_median(both_ms, s->rounds);
    r->accepted = t.report.accepted;
    r->rejected = t.report.rejected;
    r->evaluations = t.report.evaluations;
    r->value_error = fabs(r->value - reference->value);
    r->slope_error = fabs(r->slope - reference->slope);
  }
  close_toss(&t);
  return good;
}

static void print_json(const Settings *s, const Row *reference, const Row *row, int n) {
  cJSON *root = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(root, "rows");
  cJSON_AddStringToObject(root, "model", s->model);
  cJSON_AddStringToObject(root, "method", s->method);
  cJSON_AddNumberToObject(root, "seconds", s->seconds);
  cJSON_AddNumberToObject(root, "fall", s->fall);
  cJSON_AddNumberToObject(root, "rounds", s->rounds);
  cJSON_AddNumberToObject(root, "reference_value", reference->value);
  cJSON_AddNumberToObject(root, "reference_slope", reference->slope);
  for (int k = 0; k < n; ++k) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToArray(rows, o);
    cJSON_AddNumberToObject(o, "tolerance", row[k].tolerance);
    cJSON_AddNumberToObject(o, "accepted", row[k].accepted);
    cJSON_AddNumberToObject(o, "rejected", row[k].rejected);
    cJSON_AddNumberToObject(o, "evaluations", row[k].evaluations);
    cJSON_AddNumberToObject(o, "value_ms", row[k].value_ms);
    cJSON_AddNumberToObject(o, "value_and_gradient_ms", row[k].both_ms);
    cJSON_AddNumberToObject(o, "value", row[k].value);
    cJSON_AddNumberToObject(o, "slope", row[k].slope);
    cJSON_AddNumberToObject(o, "value_error", row[k].value_error);
    cJSON_AddNumberToObject(o, "slope_error", row[k].slope_error);
  }
  bench_print_json(root, false);
}

static void print_text(const Settings *s, const Row *reference, const Row *row, int n) {
  printf("%s, %s, %.3g s, one thread; at 1e-12 the value is %.9g, its slope by differences %.6g\n", s->model, s->method,
         s->seconds, reference->value, reference->slope);
  printf("%9s %9s %9s %10s %16s %12s %12s\n", "tolerance", "accepted", "rejected", "value [ms]", "and gradient [ms]",
         "value error", "slope error");
  for (int k = 0; k < n; ++k)
    printf("%9.0e %9d %9d %10.3f %16.3f %12.2e %12.2e\n", row[k].tolerance, row[k].accepted, row[k].rejected,
           row[k].value_ms, row[k].both_ms, row[k].value_error, row[k].slope_error);
}

static bool measure(const SinewModel *model, const Settings *s, SinewError *err) {
  Row reference, row[LAST - FIRST + 1];
  const int *type = sinew_model_int_array(model, "jnt_type", NULL, NULL);
  if (sinew_model_count(model, SINEW_JOINT) < 1 || type[0] != 0) {
    api_fail(err, SINEW_ERR_ARGUMENT, "the first joint is not free: there is nothing to toss");
    return false;
  }
  if (!measure_reference(model, s, &reference, err)) return false;
  for (int k = FIRST; k <= LAST; ++k) {
    row[k - FIRST] = (Row){.tolerance = pow(10, -k)};
    sn_progress("tolerance 1e-%d", k);
    if (!measure_row(model, s, &reference, row + k - FIRST, err)) return false;
  }
  sn_progress_end();
  if (s->json)
    print_json(s, &reference, row, LAST - FIRST + 1);
  else
    print_text(s, &reference, row, LAST - FIRST + 1);
  return true;
}

int mode_integrate(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"model", 'm', "FILE", 0, "MJCF file whose first joint is free", 0},
      {"method", 'i', "NAME", 0, "heun, midpoint, ralston, bosh3, tsit5 (default), dopri5 or dopri8", 0},
      {"fall", 'f', "V", 0, "velocity qvel[2] of the start, by which the slope is taken [m/s] (default -2)", 0},
      {"seconds", 's', "T", 0, "horizon (default 1)", 0},
      {"rounds", 'r', "N", 0, "rounds, of which the median counts (default 9)", 0},
      {"json", 'j', NULL, 0, "print JSON", 0},
      {0}};
  static const char doc[] =
      "Integrates a tossed body with chosen steps: time, steps and errors of value and gradient at tolerances 1e-3 to "
      "1e-10, against tolerance 1e-12.\vExample:\n"
      "  sinew-bench integrate --model physics/models/cube_toss.xml --json\n\n"
      "Exit status: 0 measured, 2 the model uses what is not supported, 3 it cannot be loaded or does not come to the "
      "end.";
  const struct argp argp = {.options = options, .parser = parse, .doc = doc};
  argp_err_exit_status = EXIT_ERROR;
  Settings s = {.method = "tsit5", .rounds = 9, .fall = -2, .seconds = 1};
  argp_parse(&argp, argc, argv, 0, NULL, &s);
  SinewError err = {.status = SINEW_OK};
  SinewModel *model = sinew_model_load(s.model, &err);
  const bool good = model && measure(model, &s, &err);
  if (!good) bench_report_failure(s.model, err.text);
  sinew_model_free(model);
  return good ? EXIT_MEASURED : err.status == SINEW_ERR_UNSUPPORTED ? EXIT_UNSUPPORTED : EXIT_ERROR;
}
