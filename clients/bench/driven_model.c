#include "clients/bench/driven_model_private.h"

#include <stdlib.h>
#include <string.h>

#include "clients/base/args.h"
#include "clients/base/statistics.h"
#include "clients/bench/bench_report.h"
#include "clients/reference/probe_task.h"

static int parse(int key, char *arg, struct argp_state *state) {
  DrivenModelArgs *s = state->input;
  switch (key) {
    case 'm':
      s->model = arg;
      return 0;
    case 'n':
      s->steps = sn_arg_count(state, "steps", arg, 100000);
      return 0;
    case 'r':
      s->rounds = sn_arg_count(state, "rounds", arg, BENCH_ROUNDS);
      return 0;
    case 's':
      s->seed = sn_arg_seed(state, arg);
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

static const struct argp_option options[] = {
    {"model", 'm', "MODEL.xml", 0, "the model", 0},
    {"steps", 'n', "N", 0, "steps of the rollout (default 256)", 0},
    {"rounds", 'r', "N", 0, "passes of all measurements (default 9; of many worlds 3)", 0},
    {"seed", 's', "N", 0, "seed of the controls (default 0)", 0},
    {"json", 'j', NULL, 0, "print JSON", 0},
    {0}};

const struct argp driven_model_argp = {.options = options, .parser = parse};

// Drives MuJoCo to the start and lists the controls from there on.
static SnCode drive(DrivenModel *b, const DrivenModelArgs *args, SnError *err) {
  SnOracle *o = &b->o;
  const int nu = o->m->nu;
  const double h = o->mj->opt.timestep;
  b->ctrl = calloc((size_t)b->steps * (size_t)nu + 1, sizeof *b->ctrl);
  b->state = calloc((size_t)mj_stateSize(o->mj, DRIVEN_MODEL_STATE), sizeof *b->state);
  if (!b->ctrl || !b->state) return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  sn_drive_start(o);
  for (int k = 0; k < DRIVEN_MODEL_LEAD; ++k) {
    sn_drive_controls(o, (uint64_t)args->seed, k * h);
    mj_step(o->mj, o->d);
  }
  mj_getState(o->mj, o->d, b->state, DRIVEN_MODEL_STATE);
  sn_oracle_copy_state(o);
  for (int k = 0; k < b->steps; ++k) {
    sn_drive_controls(o, (uint64_t)args->seed, (DRIVEN_MODEL_LEAD + k) * h);
    for (int i = 0; i < nu; ++i) b->ctrl[k * nu + i] = (sn_real)o->d->ctrl[i];
  }
  return SN_OK;
}

SnCode driven_model_open(DrivenModel *b, const DrivenModelArgs *args, SnError *err) {
  memset(b, 0, sizeof *b);
  b->steps = args->steps;
  mjModel *mj = sn_oracle_read_file(args->model, err);
  SnCode code = mj ? sn_oracle_open(&b->o, mj, err) : SN_ERR_FORMAT;
  if (code != SN_OK) return code;
  const SnModel *m = b->o.m;
  char text[1000];
  if (!sn_probe_task(m, text, sizeof text)) return sn_fail(err, SN_ERR_ARGUMENT, "nothing in the model moves");
  if ((code = drive(b, args, err)) != SN_OK) return code;
  if (!(b->task = sn_task_parse(text, strlen(text), "bench.yaml", err))) return err->code;
  if (!(b->cost = sn_cost_create(b->task, m, err))) return err->code;
  b->target = calloc((size_t)(b->steps + 1) * (size_t)b->cost->ntarget + 1, sizeof *b->target);
  if (!b->target) return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  const SnWorld *w = &b->o.w;
  b->initial = (SnState){.time = (double)w->time[0],
                         .qpos = w->qpos,
                         .qvel = w->qvel,
                         .act = w->act,
                         .mocap_pos = w->mocap_pos,
                         .mocap_quat = w->mocap_quat,
                         .qacc_warmstart = w->qacc_warmstart};
  sn_cost_schedule(b->cost, b->initial.time, (double)m->opt.timestep, b->steps + 1, b->target);
  return SN_OK;
}

void driven_model_close(DrivenModel *b) {
  sn_cost_free(b->cost);
  sn_task_free(b->task);
  free(b->ctrl);
  free(b->target);
  free(b->state);
  sn_oracle_free(&b->o);
}

void driven_model_restart(DrivenModel *b) { mj_setState(b->o.mj, b->o.d, b->state, DRIVEN_MODEL_STATE); }

void driven_model_controls(DrivenModel *b, int k) {
  const int nu = b->o.m->nu;
  for (int i = 0; i < nu; ++i) b->o.d->ctrl[i] = (double)b->ctrl[k * nu + i];
}

double driven_model_mujoco(DrivenModel *b) {
  driven_model_restart(b);
  const double t = sn_now_us();
  for (int k = 0; k < b->steps; ++k) {
    driven_model_controls(b, k);
    mj_step(b->o.mj, b->o.d);
  }
  return 1e-3 * (sn_now_us() - t);
}
