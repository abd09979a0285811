// A rollout on the CPU: a path on one lane, in memory of its own, with a clock.
#include "planner/rollout/rollout_runner.h"

#include <stdlib.h>
#include <time.h>

struct SnRollout {
  const SnModel *m;
  const SnCost *cost;
  SnWorld world;
  SnLaneShared shared;
  SnLane lane;
  void *memory;  // of the world
  SnPathScratch scratch;
  SnPath path;
};

static double monotonic_now(void *context) {
  (void)context;
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

SnClock sn_clock_monotonic(void) { return (SnClock){monotonic_now, NULL}; }

SnRollout *sn_rollout_create(const SnModel *m, const SnCost *cost, SnError *err) {
  SnRollout *r = calloc(1, sizeof *r);
  const size_t bytes = (sn_world_size(m) + 63) / 64 * 64;
  if (r) {
    r->memory = aligned_alloc(64, bytes);
    r->scratch.res = calloc((size_t)cost->nres + 1, sizeof *r->scratch.res);
    r->scratch.value = calloc((size_t)cost->nall + 1, sizeof *r->scratch.value);
    r->path.sum = calloc((size_t)cost->nterm + 1, sizeof *r->path.sum);
  }
  if (!r || !r->memory || !r->scratch.res || !r->scratch.value || !r->path.sum) {
    sn_rollout_free(r);
    sn_fail(err, SN_ERR_MEMORY, "rollout: out of memory");
    return NULL;
  }
  r->m = m;
  r->cost = cost;
  r->lane = (SnLane){.n = 1, .shared = &r->shared};
  r->path.status = SN_PATH_DONE;
  sn_world_init(m, &r->world, r->memory);
  return r;
}

void sn_rollout_free(SnRollout *r) {
  if (!r) return;
  free(r->memory);
  free(r->scratch.res);
  free(r->scratch.value);
  free(r->path.sum);
  free(r);
}

// The path from a start, without what it writes.
static SnPath path_from(const SnStart *start) {
  return (SnPath){.time = (sn_real)start->time,
                  .qpos = start->qpos,
                  .qvel = start->qvel,
                  .act = start->act,
                  .mocap_pos = start->mocap_pos,
                  .mocap_quat = start->mocap_quat,
                  .qacc_warmstart = start->qacc_warmstart,
                  .cfd = start->cfd ? *start->cfd : (SnCfd){0}};
}

void sn_world_set_start(const SnModel *m, SnWorld *w, const SnStart *start) {
  SnLaneShared shared;
  SnLane lane = {.n = 1, .shared = &shared};
  const SnPath path = path_from(start);
  sn_path_put_start(m, w, &lane, &path);
}

void sn_rollout_begin(SnRollout *r, const SnStart *start, const sn_real *ctrl, const sn_real *target, int nstep,
                      double max_velocity, const SnTrajectory *out) {
  sn_real *sum = r->path.sum;
  r->path = path_from(start);
  r->path.ctrl = ctrl;
  r->path.target = target;
  r->path.running = r->cost->weight;
  r->path.terminal = r->cost->terminal;
  r->path.nstep = nstep;
  r->path.max_velocity = (sn_real)max_velocity;
  r->path.sum = sum;
  if (out) {
    r->path.out_time = out->time;
    r->path.out_qpos = out->qpos;
    r->path.out_qvel = out->qvel;
    r->path.out_act = out->act;
    r->path.out_qacc = out->qacc;
    r->path.out_cost = out->cost;
  }
  sn_path_begin(r->m, r->cost, &r->world, &r->lane, &r->path);
}

double sn_rollout_judge(SnRollout *r, const sn_real *target, double *term, double *value) {
  const SnCost *c = r->cost;
  double sum = 0;
  sn_path_measure(r->m, c, &r->world, &r->lane, target, c->nall, &r->scratch);
  for (int i = 0; i < c->nterm; ++i) {
    const double x = (double)sn_weighted(c->weight[i], r->scratch.value[i]);
    if (term) term[i] = x;
    sum += x;
  }
  for (int i = 0; value && i < c->nall; ++i) value[i] = (double)r->scratch.value[i];
  return sum;
}

SnRolloutStatus sn_rollout_run(SnRollout *r, const SnClock *clock, double until) {
  const bool timed = until < INFINITY;
  while (r->path.status == SN_PATH_UNDER_WAY) {
    if (timed && clock->now(clock->context) >= until) return SN_ROLLOUT_PAUSED;
    sn_path_step(r->m, r->cost, &r->world, &r->lane, &r->path, &r->scratch);
  }
  return sn_rollout_status(r);
}

SnRolloutStatus sn_rollout_status(const SnRollout *r) { return (SnRolloutStatus)r->path.status; }

double sn_rollout_cost(const SnRollout *r, double *term) {
  const bool diverged = r->path.status == SN_PATH_DIVERGED;
  for (int i = 0; term && i < r->cost->nterm; ++i) term[i] = diverged ? INFINITY : (double)r->path.sum[i];
  return (double)r->path.total;
}

const SnPath *sn_rollout_path(const SnRollout *r) { return &r->path; }
SnWorld *sn_rollout_world(SnRollout *r) { return &r->world; }
SnLane *sn_rollout_lane(SnRollout *r) { return &r->lane; }
