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

#include "clients/base/args.h"
#include "clients/base/statistics.h"
#include "clients/bench/bench.h"
#include "clients/bench/bench_report.h"
#include "clients/reference/mujoco_reference.h"
#include "physics/step/horizon.h"

enum { EXIT_MEASURED = 0, EXIT_UNSUPPORTED = 2, EXIT_ERROR = 3 };
enum { KEEP = 100000, FIRST = 3, LAST = 10 };  // tolerances 1e-FIRST to 1e-LAST

typedef struct Settings {
  const char *model;
  int method, rounds;
  double fall, seconds;
  bool json;
} Settings;

// What a tolerance costs and gives.
typedef struct Row {
  double tolerance, value_ms, both_ms, value, slope, value_error, slope_error;
  int accepted, rejected, evaluations;
} Row;

static double number(const struct argp_state *state, const char *name, const char *arg) {
  char *end;
  const double x = strtod(arg, &end);
  if (end == arg || *end || !isfinite(x)) argp_error(state, "--%s %s: a number is wanted", name, arg);
  return x;
}

static int parse(int key, char *arg, struct argp_state *state) {
  Settings *s = state->input;
  switch (key) {
    case 'm':
      s->model = arg;
      return 0;
    case 'i':
      s->method = sn_tableau_find(arg);
      if (s->method < 0 || !sn_tableau(s->method)->error)
        argp_error(state, "--method %s: heun, midpoint, ralston, bosh3, tsit5, dopri5 or dopri8 is wanted", arg);
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

// The toss, whose only output is its end. Points at `end`.
static SnHorizonInput input_of(const sn_real *end) {
  return (SnHorizonInput){.duration = *end, .nout = 1, .out_time = end};
}

// Runs the toss with this fall; returns the value, NaN and err where it does not come to its end.
static double toss(SnHorizon *h, const Settings *s, double fall, SnError *err) {
  const sn_real end = (sn_real)s->seconds;
  const SnHorizonInput in = input_of(&end);
  SnHorizonStatus status;
  sn_world_reset(&h->model, &h->world);
  h->world.qpos[2] = SN_R(0.2);
  h->world.qvel[1] = SN_R(-0.1);
  h->world.qvel[2] = (sn_real)fall;
  if (sn_horizon_run(h, &in, NULL, &status, err) != SN_OK) return NAN;
  if (status == SN_HORIZON_DONE) return (double)h->world.qpos[1];
  sn_fail(err, SN_ERR_LIMIT, "at %.3g s: %s", (double)h->reached, sn_horizon_status_text(status));
  return NAN;
}

// Value and slope: the run and the way back.
static double toss_slope(SnHorizon *h, const Settings *s, sn_real *bars, double *slope, SnError *err) {
  const int nv = h->model.nv;
  const sn_real end = (sn_real)s->seconds;
  const SnHorizonInput in = input_of(&end);
  const SnHorizonBars both = {.out_qpos = bars, .qvel = bars + nv};
  const double value = toss(h, s, s->fall, err);
  memset(bars, 0, sizeof *bars * 2 * (size_t)nv);
  bars[1] = 1;
  if (isnan(value) || sn_horizon_vjp(h, &in, NULL, &both, err) != SN_OK) return NAN;
  *slope = (double)bars[nv + 2];
  return value;
}

static SnHorizon *open_run(const SnModel *m, const Settings *s, double tolerance, SnError *err) {
  SnHorizonSettings set = sn_horizon_defaults();
  set.method = s->method;
  set.rtol = set.atol = (sn_real)tolerance;
  set.keep = KEEP;
  return sn_horizon_create(m, &set, err);
}

// The value at tolerance 1e-12 and its difference over the fall.
static bool measure_reference(const SnModel *m, const Settings *s, Row *r, SnError *err) {
  const double eps = 1e-4;
  SnHorizon *h = open_run(m, s, 1e-12, err);
  if (!h) return false;
  const double value = toss(h, s, s->fall, err), up = toss(h, s, s->fall + eps, err);
  const double down = toss(h, s, s->fall - eps, err);
  *r = (Row){.tolerance = 1e-12, .value = value, .slope = (up - down) / (2 * eps), .accepted = h->accepted};
  sn_horizon_free(h);
  return isfinite(value + up + down);
}

static bool measure_row(const SnModel *m, const Settings *s, const Row *reference, Row *r, SnError *err) {
  double value_ms[BENCH_ROUNDS], both_ms[BENCH_ROUNDS];
  SnHorizon *h = open_run(m, s, r->tolerance, err);
  sn_real *bars = calloc(2 * (size_t)m->nv, sizeof *bars);
  bool good = h && bars;
  if (h && !bars) sn_fail(err, SN_ERR_MEMORY, "no memory for %d bars", 2 * m->nv);
  for (int k = 0; k < s->rounds && good; ++k) {
    const double t = sn_now_us();
    r->value = toss(h, s, s->fall, err);
    const double middle = sn_now_us();
    r->evaluations = h->evaluations;
    good = isfinite(r->value) && isfinite(toss_slope(h, s, bars, &r->slope, err));
    value_ms[k] = (middle - t) * 1e-3;
    both_ms[k] = (sn_now_us() - middle) * 1e-3;
  }
  if (good) {
    r->value_ms = sn_median(value_ms, s->rounds);
    r->both_ms = sn_median(both_ms, s->rounds);
    r->accepted = h->accepted;
    r->rejected = h->rejected;
    r->value_error = fabs(r->value - reference->value);
    r->slope_error = fabs(r->slope - reference->slope);
  }
  free(bars);
  sn_horizon_free(h);
  return good;
}

static void print_json(const Settings *s, const Row *reference, const Row *row, int n) {
  cJSON *root = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(root, "rows");
  cJSON_AddStringToObject(root, "model", s->model);
  cJSON_AddStringToObject(root, "method", sn_tableau(s->method)->name);
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
  printf("%s, %s, %.3g s, one thread; at 1e-12 the value is %.9g, its slope by differences %.6g\n", s->model,
         sn_tableau(s->method)->name, s->seconds, reference->value, reference->slope);
  printf("%9s %9s %9s %10s %16s %12s %12s\n", "tolerance", "accepted", "rejected", "value [ms]", "and gradient [ms]",
         "value error", "slope error");
  for (int k = 0; k < n; ++k)
    printf("%9.0e %9d %9d %10.3f %16.3f %12.2e %12.2e\n", row[k].tolerance, row[k].accepted, row[k].rejected,
           row[k].value_ms, row[k].both_ms, row[k].value_error, row[k].slope_error);
}

static SnCode measure(const SnModel *m, const Settings *s, SnError *err) {
  Row reference, row[LAST - FIRST + 1];
  if (m->njnt < 1 || m->jnt_type[0] != SN_JNT_FREE)
    return sn_fail(err, SN_ERR_ARGUMENT, "the first joint is not free: there is nothing to toss");
  if (!measure_reference(m, s, &reference, err)) return err->code;
  for (int k = FIRST; k <= LAST; ++k) {
    row[k - FIRST] = (Row){.tolerance = pow(10, -k)};
    bench_progress("tolerance 1e-%d", k);
    if (!measure_row(m, s, &reference, row + k - FIRST, err)) return err->code;
  }
  bench_progress_end();
  if (s->json)
    print_json(s, &reference, row, LAST - FIRST + 1);
  else
    print_text(s, &reference, row, LAST - FIRST + 1);
  return SN_OK;
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
  Settings s = {.method = SN_RK_TSIT5, .rounds = 9, .fall = -2, .seconds = 1};
  argp_parse(&argp, argc, argv, 0, NULL, &s);
  SnError err = {0};
  SnOracle o = {0};
  mjModel *mj = sn_oracle_read_file(s.model, &err);
  SnCode code = mj ? sn_oracle_open(&o, mj, &err) : SN_ERR_FORMAT;
  if (code == SN_OK) code = measure(o.m, &s, &err);
  if (code != SN_OK) fprintf(stderr, "sinew-bench: %s: %s\n", s.model, err.text);
  sn_oracle_free(&o);
  return code == SN_OK ? EXIT_MEASURED : code == SN_ERR_UNSUPPORTED ? EXIT_UNSUPPORTED : EXIT_ERROR;
}
