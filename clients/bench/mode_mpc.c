// A closed loop, planner and body in one process: how well and how fast a planner solves a task.
#include <argp.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/args.h"
#include "clients/base/progress.h"
#include "clients/bench/bench.h"
#include "clients/bench/bench_report.h"
#include "clients/bench/closed_loop_private.h"

enum { EXIT_MEASURED = 0, EXIT_UNSUPPORTED = 2, EXIT_ERROR = 3 };
enum {
  KEY_EXECUTE = 256,
  KEY_PLAN_SECONDS,
  KEY_CFD,
  KEY_SAMPLES,
  KEY_CONTACTS,
  KEY_PLANT_TIMESTEP,
  KEY_LATENCY,
  KEY_LATENCY_TOLD,
  KEY_LATER,
  KEY_DATA
};

typedef struct Settings {
  BenchTaskArgs c;
  char text[3][64];  // settings that options stand for
  const char *data;
  bool json, quiet;
} Settings;

static const char *setting(Settings *s, int slot, const char *name, const char *value) {
  snprintf(s->text[slot], sizeof s->text[slot], "%s=%s", name, value);
  return s->text[slot];
}

static void add(struct argp_state *state, Settings *s, const char *text) {
  if (s->c.nsettings == BENCH_SETTINGS) argp_error(state, "too many settings");
  s->c.settings[s->c.nsettings++] = text;
}

static int parse(int key, char *arg, struct argp_state *state) {
  Settings *s = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &s->c;
      state->child_inputs[1] = &s->c.backend;
      return 0;
    case 'p':
      add(state, s, setting(s, 0, "planner", arg));
      return 0;
    case KEY_SAMPLES:
      add(state, s, setting(s, 1, "candidates", arg));
      return 0;
    case KEY_CFD:
      add(state, s, setting(s, 2, "cfd", sn_arg_switch(state, "cfd", arg) ? "cfd" : "none"));
      return 0;
    case 's':
      s->c.seconds = sn_arg_seconds(state, "seconds", arg);
      return 0;
    case KEY_PLAN_SECONDS:
      s->c.plan_seconds = sn_arg_seconds(state, "plan-seconds", arg);
      return 0;
    case KEY_EXECUTE:
      s->c.execute = sn_arg_count(state, "execute", arg, 100000);
      return 0;
    case KEY_CONTACTS:
      s->c.model_contacts = strcmp(arg, "model") == 0;
      if (!s->c.model_contacts && strcmp(arg, "task") != 0) argp_error(state, "--contacts %s: task or model", arg);
      return 0;
    case KEY_PLANT_TIMESTEP:
      s->c.plant_step = sn_arg_seconds(state, "plant-timestep", arg);
      return 0;
    case KEY_LATENCY:
      s->c.latency = sn_arg_latency(state, "latency", arg);
      return 0;
    case KEY_LATENCY_TOLD:
      s->c.latency_told = sn_arg_latency(state, "plan-latency-told", arg);
      return 0;
    case KEY_LATER:
      if (s->c.nlater == BENCH_SETTINGS) argp_error(state, "too many settings of later plans");
      s->c.later[s->c.nlater++] = arg;
      return 0;
    case KEY_DATA:
      s->data = arg;
      return 0;
    case 'k':
      s->c.seed = (uint64_t)sn_arg_seed(state, arg);
      return 0;
    case 'j':
      s->json = true;
      return 0;
    case 'q':
      s->quiet = true;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static void print_text(const BenchTaskArgs *c, const ClosedLoopResult *result) {
  const PlantRecord *r = &result->record;
  cJSON *o = closed_loop_report(c, result);
  printf("%s, seed %llu, %g s, %d plans: %s%s\n", c->task, (unsigned long long)c->seed, c->seconds, r->nplan,
         plant_record_success(r) ? "solved" : "not solved", r->diverged ? ", the body diverged" : "");
  printf("cost %.5g at the start, %.5g at the end, %.5g in the mean\n", r->sample[0].cost,
         r->sample[r->nsample - 1].cost, cJSON_GetObjectItem(o, "cost_mean")->valuedouble);
  for (int k = 0; k < r->nmeasure; ++k)
    printf("%s %.4g at the end, %.4g at most over the last %g s (wanted %g)\n", r->measure_name[k],
           r->sample[r->nsample - 1].measure[k], plant_record_worst(r, k), r->measure_during[k], r->measure_below[k]);
  if (r->nmeasure > 0) printf("all of that was so in %.1f %% of the time\n", 100 * plant_record_score(r));
  printf("contacts of the %s, %g ms a step of the body, latency %g ms\n", r->task_contacts ? "task" : "model",
         1e3 * result->plant_step, 1e3 * c->latency);
  printf("controls change by %.3g per second", result->variation);
  if (r->nhandover > 0)
    printf(", and jump by %.3g (p50), %.3g (p99) from plan to plan",
           plant_record_quantile(r, offsetof(PlantHandover, jump), 0.5),
           plant_record_quantile(r, offsetof(PlantHandover, jump), 0.99));
  printf("\n");
  if (result->stuck > 0) printf("%s, in %d of %d plans\n", result->last_stuck, result->stuck, r->nplan);
  const int patience = cJSON_GetObjectItem(result->settings, "patience")->valueint;
  if (patience > 0 && result->unimproved >= patience)
    printf("no improvement for %d of %d plans, one after the other\n", result->unimproved, r->nplan);
  if (r->nplan > 0)
    printf("%.2f ms a plan, %.1f iterations, %d threads\n", cJSON_GetObjectItem(o, "ms_per_plan")->valuedouble,
           result->iterations, result->threads);
  cJSON_Delete(o);
}

static void show_progress(void *user, double part) {
  (void)user;
  sn_progress("%3.0f %%", 100 * part);
}

int mode_mpc(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"planner", 'p', "PLANNER", 0, "sampling, adam, ilqg, lbfgs, mppi, cem or hybrid (default: the task's)", 0},
      {"samples", KEY_SAMPLES, "N", 0, "candidates of an iteration of sampling (default: the task's)", 0},
      {"cfd", KEY_CFD, "on|off", 0, "contacts from distance in the gradient (default: the task's)", 0},
      {"seconds", 's', "S", 0, "of motion (default 1)", 0},
      {"plan-seconds", KEY_PLAN_SECONDS, "S", 0,
       "time for each plan (default: as many iterations as the settings say, at least one)", 0},
      {"execute", KEY_EXECUTE, "STEPS", 0, "time steps between two plans (default 16)", 0},
      {"contacts", KEY_CONTACTS, "task|model", 0,
       "of the body: the task's where it names some (default), or those of the model's file", 0},
      {"plant-timestep", KEY_PLANT_TIMESTEP, "S", 0, "time step of the body (default: the planner's)", 0},
      {"latency", KEY_LATENCY, "S", 0,
       "simulated: a plan comes into force so long after its state, and the planner is told so (default 0)", 0},
      {"plan-latency-told", KEY_LATENCY_TOLD, "S", 0, "what the planner is told instead", 0},
      {"later", KEY_LATER, "NAME=VALUE", 0,
       "a setting of the planner from the second plan on, as a body that moves by the clock waits for its first plan "
       "alone; may be repeated",
       0},
      {"data", KEY_DATA, "FILE", 0, "write time, cost, measures, controls and positions as columns", 0},
      {"seed", 'k', "N", 0, "of initial pose, initial plan and planner (default 1)", 0},
      {"json", 'j', NULL, 0, "print one line of JSON", 0},
      {"quiet", 'q', NULL, 0, "no progress", 0},
      {0}};
  static const struct argp_child children[] = {{.argp = &bench_task_argp}, {.argp = &bench_backend_argp}, {0}};
  static const char doc[] =
      "Lets MuJoCo move a body under our plans, in one process, and reports cost over time, success and the time of a "
      "plan.\vExample: sinew-bench mpc --task arm_reach --planner sampling --samples 64 --seconds 2 "
      "--seed "
      "1 --json\n\nWith iterations as the bound a run depends on its seed alone, not on the speed of the machine.\n\n"
      "Exit status: 0 measured, solved or not; 2 the model uses what is not supported; 3 anything else.";
  const struct argp argp = {.options = options, .parser = parse, .doc = doc, .children = children};
  argp_err_exit_status = EXIT_ERROR;
  Settings s = {.c = bench_default_task_args()};
  argp_parse(&argp, argc, argv, 0, NULL, &s);

  SinewError err;
  ClosedLoopResult result;
  const SinewStatus status = closed_loop_run(&s.c, &result, s.quiet ? NULL : show_progress, NULL, &err);
  if (!s.quiet) sn_progress_end();
  if (status != SINEW_OK) {
    fprintf(stderr, "sinew-bench: %s\n", err.text);
    return status == SINEW_ERR_UNSUPPORTED ? EXIT_UNSUPPORTED : EXIT_ERROR;
  }
  if (s.json) {
    bench_print_json(closed_loop_report(&s.c, &result), true);
  } else {
    print_text(&s.c, &result);
  }
  const bool written = !s.data || plant_record_write(&result.record, result.nq, result.nu, s.data);
  if (!written) fprintf(stderr, "sinew-bench: %s cannot be written\n", s.data);
  closed_loop_free(&result);
  return written ? EXIT_MEASURED : EXIT_ERROR;
}
