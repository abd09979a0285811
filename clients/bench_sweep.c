// The cost of a task as a function of one initial velocity, and its slope: plain, and with contacts from distance. No
// planner: the initial plan's controls act throughout. For those who want to see what a gradient knows.
#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/bench.h"
#include "clients/bench_loop.h"
#include "clients/drive_args.h"
#include "physics/import_mjcf.h"
#include "planner/gradient.h"
#include "planner/soft.h"

enum { EXIT_MEASURED = 0, EXIT_ERROR = 3 };
enum { KEY_FROM = 256, KEY_TO, KEY_TASKS };

typedef struct Sweep {
  MpcCase c;
  const char *joint;
  int component;  // dof of the joint
  double from, to;
  int points, steps;  // steps 0: the task's horizon
  bool json;

  SnTask *task;
  SnModel *loaded, *m;
  PlantBody body;
  SnCost *cost;
  unsigned char *pair;
  SnPool *pool;
  SnGradientWork *work;
  SnWorld world;
  void *memory;
  sn_real *qpos, *qvel, *act, *ctrl, *ctrl_bar, *qvel_bar, *target;
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
  sn_real *all[] = {s->qpos, s->qvel, s->act, s->ctrl, s->ctrl_bar, s->qvel_bar, s->target};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) free(all[i]);
  free(s->pair);
  sn_cost_free(s->cost);
  sn_model_free(s->m);
  sn_model_free(s->loaded);
  sn_task_free(s->task);
  plant_body_free(&s->body);
}

static sn_real *reals(int n) { return calloc((size_t)n + 1, sizeof(sn_real)); }

static void copy(sn_real *to, const sn_real *from, int n) { memcpy(to, from, sizeof *to * (size_t)n); }

// The task's initial state and controls, and the targets over the horizon.
static SnCode prepare(Sweep *s, SnError *err) {
  const SnModel *m = s->m;
  SnLaneShared shared;
  SnLane lane = {0, 1, &shared, NULL};
  s->memory = aligned_alloc(64, (sn_world_size(m) + 63) / 64 * 64);
  s->qpos = reals(m->nq);
  s->qvel = reals(m->nv);
  s->act = reals(m->na);
  s->ctrl = reals(s->steps * m->nu);
  s->ctrl_bar = reals(s->steps * m->nu);
  s->qvel_bar = reals(m->nv);
  s->target = reals((s->steps + 1) * s->cost->ntarget);
  if (!s->memory || !s->qpos || !s->qvel || !s->act || !s->ctrl || !s->ctrl_bar || !s->qvel_bar || !s->target)
    return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  sn_world_init(m, &s->world, s->memory);
  const SnCode code = sn_task_reset(s->task, m, &s->world, &lane, s->c.seed, err);
  if (code != SN_OK) return code;
  sn_cost_capture(s->cost, m, &s->world, &lane);
  copy(s->qpos, s->world.qpos, m->nq);
  copy(s->qvel, s->world.qvel, m->nv);
  copy(s->act, s->world.act, m->na);
  for (int t = 0; t < s->steps; ++t) sn_task_initial_plan(s->task, m, s->c.seed, s->ctrl + t * m->nu);
  sn_cost_schedule(s->cost, 0, (double)m->opt.timestep, s->steps + 1, s->target);
  return SN_OK;
}

static SnCode open_sweep(Sweep *s, SnError *err) {
  if (!(s->task = mpc_load_task(&s->c, err))) return err->code;
  for (int i = 0; i < s->c.nsettings; ++i)
    if (mpc_set(&s->task->settings, s->c.settings[i], err) != SN_OK) return err->code;
  if (sn_settings_validate(&s->task->settings, err) != SN_OK) return err->code;
  if (mpc_load_model(&s->c, s->task, &s->body, &s->loaded, err) != SN_OK) return err->code;
  if (!(s->m = sn_task_model(s->task, s->loaded, err))) return err->code;
  if (!(s->cost = sn_cost_create(s->task, s->m, err))) return err->code;
  if (!(s->pair = sn_soft_pairs(s->task, s->m, err))) return err->code;
  if (s->steps == 0) s->steps = s->task->settings.horizon;
  if (!(s->pool = sn_pool_create(1, err))) return err->code;
  if (!(s->work = sn_gradient_create(s->m, s->cost, s->steps, 1, s->pool, err))) return err->code;
  const int j = sn_model_find(s->m, SN_NAME_JNT, s->joint);
  if (j < 0) return sn_fail(err, SN_ERR_NOT_FOUND, "the model has no joint '%s'", s->joint);
  const int ndof = (j + 1 < s->m->njnt ? s->m->jnt_dofadr[j + 1] : s->m->nv) - s->m->jnt_dofadr[j];
  if (s->component >= ndof)
    return sn_fail(err, SN_ERR_ARGUMENT, "joint '%s' has dofs 0 to %d, not %d", s->joint, ndof - 1, s->component);
  s->component += s->m->jnt_dofadr[j];
  return prepare(s, err);
}

static SnStart start_of(const Sweep *s) {
  return (SnStart){.qpos = s->qpos,
                   .qvel = s->qvel,
                   .act = s->act,
                   .mocap_pos = s->world.mocap_pos,
                   .mocap_quat = s->world.mocap_quat};
}

// Slope of the cost with contacts from distance or without; *cost: the cost, which does not depend on that.
static double slope(Sweep *s, bool cfd, double *cost) {
  const SnClock clock = sn_clock_monotonic();
  SnGradient item = {.start = start_of(s),
                     .ctrl = s->ctrl,
                     .target = s->target,
                     .nstep = s->steps,
                     .max_velocity = s->task->settings.max_velocity,
                     .ctrl_bar = s->ctrl_bar,
                     .qvel_bar = s->qvel_bar};
  SnGradientBatch batch = {.settings = sn_default_gradient_settings(), .item = &item, .count = 1};
  batch.settings.soft = sn_soft_settings(&s->task->settings, s->pair, cfd);
  sn_gradient_run(s->work, &batch, &clock, INFINITY);
  *cost = item.cost;
  return item.status == SN_GRADIENT_DONE ? (double)s->qvel_bar[s->component] : NAN;
}

// Whether a contact makes rows on the way.
static bool touches(Sweep *s) {
  SnLaneShared shared;
  SnLane lane = {0, 1, &shared, NULL};
  const SnStart start = start_of(s);
  SnWorld *w = &s->world;
  sn_real *mocap_pos = reals(3 * s->m->nmocap), *mocap_quat = reals(4 * s->m->nmocap);
  bool touched = false;
  if (mocap_pos && mocap_quat) {
    SnStart own = start;
    copy(mocap_pos, start.mocap_pos, 3 * s->m->nmocap);
    copy(mocap_quat, start.mocap_quat, 4 * s->m->nmocap);
    own.mocap_pos = mocap_pos;
    own.mocap_quat = mocap_quat;
    sn_world_set_start(s->m, w, &own);
  }
  for (int t = 0; t < s->steps && !touched; ++t) {
    copy(w->ctrl, s->ctrl + t * s->m->nu, s->m->nu);
    sn_step(s->m, w, &lane);
    for (int i = 0; i < *w->ncon; ++i) touched = touched || w->contact[i].efc_address >= 0;
  }
  free(mocap_pos);
  free(mocap_quat);
  return touched;
}

static Point point_at(Sweep *s, double velocity) {
  Point p = {.velocity = velocity};
  s->qvel[s->component] = (sn_real)velocity;
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
  char *text = cJSON_PrintUnformatted(o);
  puts(text ? text : "{}");
  free(text);
  cJSON_Delete(o);
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
  s->component = (int)strtol(colon + 1, &end, 10);
  if (end == colon + 1 || *end || s->component < 0 || s->component > 5)
    argp_error(state, "--velocity %s:%s: a dof from 0 to 5 is wanted behind the colon", arg, colon + 1);
}

static int parse(int key, char *arg, struct argp_state *state) {
  Sweep *s = state->input;
  switch (key) {
    case 't':
      s->c.task = arg;
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
    case 'x':
      if (s->c.nsettings == (int)(sizeof s->c.settings / sizeof *s->c.settings)) argp_error(state, "too many --set");
      s->c.settings[s->c.nsettings++] = arg;
      return 0;
    case KEY_TASKS:
      s->c.tasks = arg;
      return 0;
    case 'm':
      if (s->c.nmodels == (int)(sizeof s->c.models / sizeof *s->c.models)) argp_error(state, "too many --models");
      s->c.models[s->c.nmodels++] = arg;
      return 0;
    case 'j':
      s->json = true;
      return 0;
    case ARGP_KEY_END:
      if (!s->c.task || !s->joint) argp_error(state, "--task and --velocity are needed");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

int sn_bench_sweep(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"task", 't', "TASK", 0, "name of a task, or path of a task file", 0},
      {"velocity", 'v', "JOINT[:DOF]", 0, "what is varied: the initial velocity of a joint's dof (default dof 0)", 0},
      {"from", KEY_FROM, "V", 0, "first value (default -1)", 0},
      {"to", KEY_TO, "V", 0, "last value (default 1)", 0},
      {"points", 'p', "N", 0, "how many (default 41)", 0},
      {"steps", 'n', "N", 0, "time steps (default: the task's horizon)", 0},
      {"seed", 'k', "K", 0, "of the task's start (default 0)", 0},
      {"set", 'x', "NAME=VALUE", 0, "a setting, e.g. cfd_reach=0.2; may be repeated", 0},
      {"tasks", KEY_TASKS, "FOLDER", 0, "folder of task files", 0},
      {"models", 'm', "[NAME=]FOLDER", 0, "folder of models; may be repeated", 0},
      {"json", 'j', NULL, 0, "one line of JSON a point", 0},
      {0}};
  const struct argp argp = {
      options,
      parse,
      NULL,
      "The cost of a task over one initial velocity, its slope, and its slope with contacts from "
      "distance.\vExample: sinew-bench sweep --task billiard --velocity cue_ball:1 --from -1.5 --to 1.5",
      NULL,
      NULL,
      NULL};
  Sweep s = {.c = mpc_default_case(), .from = -1, .to = 1, .points = 41};
  s.c.seed = 0;
  argp_parse(&argp, argc, argv, 0, NULL, &s);
  SnError err = {0};
  const bool ok = open_sweep(&s, &err) == SN_OK;
  if (!ok) fprintf(stderr, "sinew-bench sweep: %s\n", err.text);
  if (ok && !s.json) printf("%12s %14s %14s %14s %9s\n", "velocity", "cost", "slope", "slope_cfd", "touched");
  for (int i = 0; ok && i < s.points; ++i) {
    const Point p = point_at(&s, s.points > 1 ? s.from + (s.to - s.from) * i / (s.points - 1) : s.from);
    print_point(&s, &p);
  }
  close_sweep(&s);
  return ok ? EXIT_MEASURED : EXIT_ERROR;
}
