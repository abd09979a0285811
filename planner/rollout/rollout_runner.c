// A rollout on the CPU: on one lane, in memory of its own, with a clock.
#include "planner/rollout/rollout_runner.h"

#include <stdlib.h>

#include "physics/base/clock.h"

struct SnRolloutRunner {
  const SnModel *m;
  const SnCost *cost;
  SnWorld world;
  SnLaneShared shared;
  SnLane lane;
  void *memory;  // of the world
  SnRolloutScratch scratch;
  SnRollout rollout;
};

static double monotonic_now(void *context) {
  (void)context;
  return sn_clock_now();
}

SnClock sn_clock_monotonic(void) { return (SnClock){monotonic_now, NULL}; }

// Rows [from, nstep] of n numbers each.
static void clear_rows(sn_number *x, int n, int from, int nstep) {
  const size_t first = (size_t)from * (size_t)n, end = ((size_t)nstep + 1) * (size_t)n;
  for (size_t i = first; x && i < end; ++i) x[i] = (sn_number)NAN;
}

void sn_trajectory_clear(const SnModel *m, const SnTrajectory *out, int from, int nstep) {
  clear_rows(out->qpos, m->nq, from, nstep);
  clear_rows(out->qvel, m->nv, from, nstep);
  clear_rows(out->act, m->na, from, nstep);
  clear_rows(out->qacc, m->nv, from, nstep);
  clear_rows(out->sensordata, m->nsensordata, from, nstep);
  clear_rows(out->cost, 1, from, nstep);
  clear_rows(out->time, 1, from, nstep);
}

SnRolloutRunner *sn_rollout_runner_create(const SnModel *m, const SnCost *cost, SnError *err) {
  SnRolloutRunner *r = calloc(1, sizeof *r);
  if (!cost) cost = sn_cost_none();
  const size_t bytes = (sn_world_size(m) + 63) / 64 * 64;
  if (r) {
    r->memory = aligned_alloc(64, bytes);
    r->scratch.res = calloc((size_t)cost->nres + 1, sizeof *r->scratch.res);
    r->scratch.value = calloc((size_t)cost->nall + 1, sizeof *r->scratch.value);
    r->rollout.sum = calloc((size_t)cost->nterm + 1, sizeof *r->rollout.sum);
  }
  if (!r || !r->memory || !r->scratch.res || !r->scratch.value || !r->rollout.sum) {
    sn_rollout_runner_free(r);
    sn_fail(err, SN_ERR_MEMORY, "rollout: out of memory");
    return NULL;
  }
  r->m = m;
  r->cost = cost;
  r->lane = (SnLane){.n = 1, .shared = &r->shared};
  r->rollout.status = SN_ROLLOUT_DONE;
  sn_world_init(m, &r->world, r->memory);
  return r;
}

void sn_rollout_runner_free(SnRolloutRunner *r) {
  if (!r) return;
  free(r->memory);
  free(r->scratch.res);
  free(r->scratch.value);
  free(r->rollout.sum);
  free(r);
}

// The rollout from a state, without what it writes.
static SnRollout rollout_from(const SnState *state) {
  return (SnRollout){.time = (sn_real)state->time,
                     .qpos = state->qpos,
                     .qvel = state->qvel,
                     .act = state->act,
                     .mocap_pos = state->mocap_pos,
                     .mocap_quat = state->mocap_quat,
                     .qacc_warmstart = state->qacc_warmstart,
                     .cfd = sn_cfd(state->cfd)};
}

void sn_world_set_state(const SnModel *m, SnWorld *w, const SnState *state) {
  SnLaneShared shared;
  SnLane lane = {.n = 1, .shared = &shared};
  const SnRollout rollout = rollout_from(state);
  sn_rollout_set_initial(m, w, &lane, &rollout);
}

void sn_rollout_runner_begin(SnRolloutRunner *r, const SnState *state, const sn_real *ctrl, const sn_real *target,
                             int nstep, double max_velocity, const SnTrajectory *out) {
  sn_real *sum = r->rollout.sum;
  r->rollout = rollout_from(state);
  r->rollout.ctrl = ctrl;
  r->rollout.target = target;
  r->rollout.running = r->cost->weight;
  r->rollout.terminal = r->cost->terminal;
  r->rollout.nstep = nstep;
  r->rollout.max_velocity = (sn_real)max_velocity;
  r->rollout.sum = sum;
  if (out) {
    r->rollout.out_time = out->time;
    r->rollout.out_qpos = out->qpos;
    r->rollout.out_qvel = out->qvel;
    r->rollout.out_act = out->act;
    r->rollout.out_qacc = out->qacc;
    r->rollout.out_cost = out->cost;
    r->rollout.out_sensordata = out->sensordata;
  }
  sn_rollout_begin(r->m, r->cost, &r->world, &r->lane, &r->rollout);
}

double sn_rollout_runner_evaluate(SnRolloutRunner *r, const sn_real *target, double *term, double *value) {
  const SnCost *c = r->cost;
  double sum = 0;
  sn_rollout_measure(r->m, c, &r->world, &r->lane, target, c->nall, &r->scratch);
  for (int i = 0; i < c->nterm; ++i) {
    const double x = (double)sn_weighted(c->weight[i], r->scratch.value[i]);
    if (term) term[i] = x;
    sum += x;
  }
  for (int i = 0; value && i < c->nall; ++i) value[i] = (double)r->scratch.value[i];
  return sum;
}

SnRolloutStatus sn_rollout_runner_run(SnRolloutRunner *r, const SnClock *clock, double until) {
  const bool timed = until < INFINITY;
  while (r->rollout.status == SN_ROLLOUT_UNDER_WAY) {
    if (timed && clock->now(clock->context) >= until) return SN_ROLLOUT_UNDER_WAY;
    sn_rollout_step(r->m, r->cost, &r->world, &r->lane, &r->rollout, &r->scratch);
  }
  return sn_rollout_runner_status(r);
}

SnRolloutStatus sn_rollout_runner_status(const SnRolloutRunner *r) { return (SnRolloutStatus)r->rollout.status; }

double sn_rollout_runner_cost(const SnRolloutRunner *r, double *term) {
  const bool diverged = r->rollout.status == SN_ROLLOUT_DIVERGED;
  for (int i = 0; term && i < r->cost->nterm; ++i) term[i] = diverged ? INFINITY : (double)r->rollout.sum[i];
  return (double)r->rollout.total;
}

const SnRollout *sn_rollout_runner_rollout(const SnRolloutRunner *r) { return &r->rollout; }
SnWorld *sn_rollout_runner_world(SnRolloutRunner *r) { return &r->world; }
SnLane *sn_rollout_runner_lane(SnRolloutRunner *r) { return &r->lane; }
