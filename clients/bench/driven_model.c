#include "clients/bench/driven_model_private.h"

#include <stdlib.h>
#include <string.h>

#include "clients/base/statistics.h"
#include "clients/reference/probe_task.h"

enum { STATE = mjSTATE_INTEGRATION };

// Drives MuJoCo to the start and lists the controls from there on.
static SnCode drive(DrivenModel *b, const DrivenArgs *args, SnError *err) {
  SnOracle *o = &b->o;
  const int nu = o->m->nu;
  const double h = o->mj->opt.timestep;
  b->ctrl = calloc((size_t)b->steps * (size_t)nu + 1, sizeof *b->ctrl);
  b->state = calloc((size_t)mj_stateSize(o->mj, STATE), sizeof *b->state);
  if (!b->ctrl || !b->state) return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  sn_drive_start(o);
  for (int k = 0; k < DRIVEN_LEAD; ++k) {
    sn_drive_controls(o, (uint64_t)args->seed, k * h);
    mj_step(o->mj, o->d);
  }
  mj_getState(o->mj, o->d, b->state, STATE);
  sn_oracle_copy_state(o);
  for (int k = 0; k < b->steps; ++k) {
    sn_drive_controls(o, (uint64_t)args->seed, (DRIVEN_LEAD + k) * h);
    for (int i = 0; i < nu; ++i) b->ctrl[k * nu + i] = (sn_real)o->d->ctrl[i];
  }
  return SN_OK;
}

SnCode driven_model_open(DrivenModel *b, const DrivenArgs *args, SnError *err) {
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

double driven_model_mujoco(DrivenModel *b) {
  const int nu = b->o.m->nu;
  mj_setState(b->o.mj, b->o.d, b->state, STATE);
  const double t = sn_now_us();
  for (int k = 0; k < b->steps; ++k) {
    for (int i = 0; i < nu; ++i) b->o.d->ctrl[i] = (double)b->ctrl[k * nu + i];
    mj_step(b->o.mj, b->o.d);
  }
  return 1e-3 * (sn_now_us() - t);
}
