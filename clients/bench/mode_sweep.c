// The cost of a task as a function of one initial velocity, and its slope: plain, and with contacts from distance. No
// planner: the initial plan's controls act throughout. For those who want to see what a gradient knows.
#include <argp.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/args.h"
#include "clients/bench/bench.h"
#include "clients/bench/bench_report.h"
#include "clients/bench/bench_task.h"
#include "physics/step/step.h"
#include "planner/rollout/cfd.h"
#include "planner/rollout/chosen_step.h"
#include "planner/rollout/gradient.h"

enum { EXIT_MEASURED = 0, EXIT_UNSUPPORTED = 2, EXIT_ERROR = 3 };
enum { KEY_FROM = 256, KEY_TO };

typedef struct Sweep {
  BenchTaskArgs c;
  const char *joint;
  int component;  // dof of the joint
  double from, to;
  int points, steps;  // steps 0: the task's horizon
  bool json;

  BenchTask t;
  unsigned char *pair;
  SnPool *pool;
  SnGradientWork *work;
  SnWorld world;
  void *memory;
  sn_real *ctrl_bar, *qvel_bar;
} Sweep;

// One point of the sweep.
typedef struct Point {
  double velocity, cost, slope, slope_cfd;
  bool touched;  // some contact made rows
} Point;

static void close_sweep(Sweep *s) {
  sn_gradient_free(s->work);
  sn_pool_free(s->pool);
  free(s->memory);
  free(s->ctrl_bar);
  free(s->qvel_bar);
  free(s->pair);
  bench_task_close(&s->t);
}

static SnCode open_sweep(Sweep *s, SnError *err) {
  SnCode code = bench_task_open(&s->t, &s->c, s->steps, err);
  if (code != SN_OK) return code;
  const SnModel *m = s->t.m;
  if (!(s->pair = sn_cfd_pairs(s->t.task, m, err))) return err->code;
  if (!(s->pool = sn_pool_create(1, err))) return err->code;
  if (!(s->work = sn_gradient_create(m, s->t.cost, s->t.steps, 1, SN_GRADIENT_KEEP, s->pool, err))) return err->code;
  SnHorizonSettings chosen;
  if (sn_chosen_settings(&s->t.task->settings, &chosen)) code = sn_gradient_choose(s->work, &chosen, err);
  if (code != SN_OK) return code;
  s->memory = aligned_alloc(64, (sn_world_size(m) + 63) / 64 * 64);
  s->ctrl_bar = calloc((size_t)s->t.steps * (size_t)m->nu + 1, sizeof *s->ctrl_bar);
  s->qvel_bar = calloc((size_t)m->nv + 1, sizeof *s->qvel_bar);
  if (!s->memory || !s->ctrl_bar || !s->qvel_bar) return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  sn_world_init(m, &s->world, s->memory);
  const int j = sn_model_find(m, SN_NAME_JNT, s->joint);
  char why[SN_KNOWN_LIST];
  if (j < 0) return sn_fail(err, SN_ERR_NOT_FOUND, "%s", sn_model_no_name(m, SN_NAME_JNT, s->joint, why, sizeof why));
  const int ndof = (j + 1 < m->njnt ? m->jnt_dofadr[j + 1] : m->nv) - m->jnt_dofadr[j];
  if (s->component >= ndof)
    return sn_fail(err, SN_ERR_ARGUMENT, "joint '%s' has dofs 0 to %d, not %d", s->joint, ndof - 1, s->component);
  s->component += m->jnt_dofadr[j];
  return SN_OK;
}

// Slope of the cost with contacts from distance or without; *cost: the cost, which does not depend on that.
static double slope(Sweep *s, bool cfd, double *cost) {
  const SnClock clock = sn_clock_monotonic();
  SnGradient item = {.state = bench_task_state(&s->t),
                     .ctrl = s->t.ctrl,
                     .target = s->t.target,
                     .nstep = s->t.steps,
                     .max_velocity = s->t.task->settings.max_velocity,
                     .ctrl_bar = s->ctrl_bar,
                     .qvel_bar = s->qvel_bar};
  SnGradientBatch batch = {.settings = sn_default_gradient_settings(), .item = &item, .count = 1};
  batch.settings.cfd = sn_cfd_settings(&s->t.task->settings, s->pair, cfd);
  sn_gradient_run(s->work, &batch, &clock, INFINITY);
  *cost = item.cost;
  return item.status == SN_GRADIENT_DONE ? (double)s->qvel_bar[s->component] : NAN;
}

// Whether a contact makes rows on the way.
static bool touches(Sweep *s) {
  SnLaneShared shared;
  SnLane lane = {.n = 1, .shared = &shared};
  const SnState state = bench_task_state(&s->t);
  const int nu = s->t.m->nu;
  SnWorld *w = &s->world;
  bool touched = false;
  sn_world_set_state(s->t.m, w, &state);
  for (int t = 0; t < s->t.steps && !touched; ++t) {
    memcpy(w->ctrl, s->t.ctrl + t * nu, sizeof *w->ctrl * (size_t)nu);
    sn_step(s->t.m, w, &lane);
    for (int i = 0; i < *w->ncon; ++i) touched = touched || w->contact[i].efc_address >= 0;
  }
  return touched;
}

static Point point_at(Sweep *s, double velocity) {
  Point p = {.velocity = velocity};
  s->t.qvel[s->component] = (sn_real)velocity;
  p.slope = slope(s, false, &p.cost);
  p.slope_cfd = slope(s, true, &p.cost);
  p.touched = touches(s);
  return p;
}

static void print_point(const Sweep *s, const Point *p) {
  if (!s->json) {
    printf("%12.6g %14.6g %14.6g %14.6g %9s\n", p->velocity, p->cost, p->slope, p->slope_cfd,
           p->touched ? "yes" : "no");
    return;
  }
  cJSON *o = cJSON_CreateObject();
  cJSON_AddNumberToObject(o, "velocity", p->velocity);
  cJSON_AddNumberToObject(o, "cost", p->cost);
  cJSON_AddNumberToObject(o, "slope", p->slope);
  cJSON_AddNumberToObject(o, "slope_cfd", p->slope_cfd);
  cJSON_AddBoolToObject(o, "touched", p->touched);
  bench_print_json(o, true);
}

static double number(const struct argp_state *state, const char *name, const char *arg) {
  char *end;
  const double x = strtod(arg, &end);
  if (end == arg || *end || !isfinite(x)) argp_error(state, "--%s %s: a number is wanted", name, arg);
  return x;
}

// JOINT or JOINT:DOF.
static void parse_velocity(Sweep *s, struct argp_state *state, char *arg) {
  char *colon = strrchr(arg, ':'), *end = NULL;
  s->joint = arg;
  if (!colon) return;
  *colon = '\0';
  const long component = strtol(colon + 1, &end, 10);
  if (end == colon + 1 || *end || component < 0 || component > 5)
    argp_error(state, "--velocity %s:%s: a dof from 0 to 5 is wanted behind the colon", arg, colon + 1);
  s->component = (int)component;
}

static int parse(int key, char *arg, struct argp_state *state) {
  Sweep *s = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &s->c;
      return 0;
    case 'v':
      parse_velocity(s, state, arg);
      return 0;
    case KEY_FROM:
      s->from = number(state, "from", arg);
      return 0;
    case KEY_TO:
      s->to = number(state, "to", arg);
      return 0;
    case 'p':
      s->points = sn_arg_count(state, "points", arg, 1000000);
      return 0;
    case 'n':
      s->steps = sn_arg_count(state, "steps", arg, 100000);
      return 0;
    case 'k':
      s->c.seed = (uint64_t)sn_arg_seed(state, arg);
      return 0;
    case 'j':
      s->json = true;
      return 0;
    case ARGP_KEY_END:
      if (!s->joint) argp_error(state, "--velocity is needed");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

int mode_sweep(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"velocity", 'v', "JOINT[:DOF]", 0, "what is varied: the initial velocity of a joint's dof (default dof 0)", 0},
      {"from", KEY_FROM, "V", 0, "first value (default -1)", 0},
      {"to", KEY_TO, "V", 0, "last value (default 1)", 0},
      {"points", 'p', "N", 0, "how many (default 41)", 0},
      {"steps", 'n', "N", 0, "time steps (default: the task's horizon)", 0},
      {"seed", 'k', "K", 0, "of the task's start (default 0)", 0},
      {"json", 'j', NULL, 0, "one line of JSON a point", 0},
      {0}};
  static const struct argp_child children[] = {{.argp = &bench_task_argp}, {0}};
  const struct argp argp = {
      options,
      parse,
      NULL,
      "The cost of a task over one initial velocity, its slope, and its slope with contacts from "
      "distance.\vExample: sinew-bench sweep --task billiard --velocity cue_ball:1 --from -1.5 --to 1.5\n\n"
      "Exit status: 0 measured, 2 the model uses what is not supported, 3 anything else.",
      children,
      NULL,
      NULL};
  argp_err_exit_status = EXIT_ERROR;
  Sweep s = {.c = bench_default_task_args(), .from = -1, .to = 1, .points = 41};
  s.c.seed = 0;
  argp_parse(&argp, argc, argv, 0, NULL, &s);
  SnError err = {0};
  const SnCode code = open_sweep(&s, &err);
  const bool ok = code == SN_OK;
  if (!ok) fprintf(stderr, "sinew-bench sweep: %s\n", err.text);
  if (ok && !s.json) printf("%12s %14s %14s %14s %9s\n", "velocity", "cost", "slope", "slope_cfd", "touched");
  for (int i = 0; ok && i < s.points; ++i) {
    const Point p = point_at(&s, s.points > 1 ? s.from + (s.to - s.from) * i / (s.points - 1) : s.from);
    print_point(&s, &p);
  }
  close_sweep(&s);
  return ok ? EXIT_MEASURED : code == SN_ERR_UNSUPPORTED ? EXIT_UNSUPPORTED : EXIT_ERROR;
}
