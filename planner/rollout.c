// A rollout on the CPU, one lane. Per step: the stages up to the acceleration at x[t] under u[t], the cost there,
// then the integration, so that every term sees one consistent state. At x[H] the stages run once more for the
// terminal cost.
#include "planner/rollout.h"

#include <stdlib.h>
#include <time.h>

struct SnRollout {
  const SnModel *m;
  const SnCost *cost;
  SnWorld world;
  SnLaneShared shared;
  SnLane lane;
  void *memory;    // of the world
  sn_real *res;    // residuals (nres)
  sn_real *value;  // norms (nall)
  double *sum;     // weighted parts of the cost so far (nterm)

  const sn_real *ctrl, *target;
  SnTrajectory out;
  sn_real max_velocity;
  int nstep, t;  // steps in all, steps done
  SnRolloutStatus status;
  double total;
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
    r->res = calloc((size_t)cost->nres + 1, sizeof *r->res);
    r->value = calloc((size_t)cost->nall + 1, sizeof *r->value);
    r->sum = calloc((size_t)cost->nterm + 1, sizeof *r->sum);
  }
  if (!r || !r->memory || !r->res || !r->value || !r->sum) {
    sn_rollout_free(r);
    sn_fail(err, SN_ERR_MEMORY, "rollout: out of memory");
    return NULL;
  }
  r->m = m;
  r->cost = cost;
  r->lane = (SnLane){.n = 1, .shared = &r->shared};
  r->status = SN_ROLLOUT_DONE;
  sn_world_init(m, &r->world, r->memory);
  return r;
}

void sn_rollout_free(SnRollout *r) {
  if (!r) return;
  free(r->memory);
  free(r->res);
  free(r->value);
  free(r->sum);
  free(r);
}

static void copy(sn_real *to, const sn_real *from, int n) { memcpy(to, from, sizeof *to * (size_t)n); }

void sn_world_set_start(const SnModel *m, SnWorld *w, const SnStart *start) {
  sn_world_reset(m, w);
  w->time[0] = (sn_real)start->time;
  copy(w->qpos, start->qpos, m->nq);
  copy(w->qvel, start->qvel, m->nv);
  if (m->na) copy(w->act, start->act, m->na);
  if (start->mocap_pos && m->nmocap) copy(w->mocap_pos, start->mocap_pos, 3 * m->nmocap);
  if (start->mocap_quat && m->nmocap) copy(w->mocap_quat, start->mocap_quat, 4 * m->nmocap);
  if (start->qacc_warmstart) copy(w->qacc_warmstart, start->qacc_warmstart, m->nv);
  w->soft[0] = start->soft ? *start->soft : (SnSoft){0};
}

void sn_rollout_begin(SnRollout *r, const SnStart *start, const sn_real *ctrl, const sn_real *target, int nstep,
                      double max_velocity, const SnTrajectory *out) {
  sn_world_set_start(r->m, &r->world, start);
  r->ctrl = ctrl;
  r->target = target;
  r->out = out ? *out : (SnTrajectory){0};
  r->max_velocity = (sn_real)max_velocity;
  r->nstep = nstep;
  r->t = 0;
  r->total = 0;
  r->status = SN_ROLLOUT_PAUSED;
  memset(r->sum, 0, sizeof *r->sum * (size_t)r->cost->nterm);
}

// True when the state has left all bounds.
static bool diverged(const SnRollout *r) {
  const SnWorld *w = &r->world;
  bool bad = (*w->warn & SN_WARN_BAD_STATE) != 0;
  for (int i = 0; i < r->m->nq; ++i) bad |= sn_is_bad(w->qpos[i]);
  for (int i = 0; i < r->m->nv; ++i) bad |= !(sn_abs(w->qvel[i]) <= r->max_velocity);
  for (int i = 0; i < r->m->na; ++i) bad |= sn_is_bad(w->act[i]);
  return bad;
}

// Norms of terms [0, n) in the world's state.
static void measure(SnRollout *r, const sn_real *target, int n) {
  sn_cost_residual(r->cost, r->m, &r->world, &r->lane, target, 0, n, r->res);
  sn_cost_norm(r->cost, &r->lane, r->res, 0, n, r->value);
}

// Weighted norm of term i. A weight of 0 takes a term out, also where its norm is not finite.
static double weighted(const SnRollout *r, const sn_real *weight, int i) {
  return weight[i] > 0 ? (double)(weight[i] * r->value[i]) : 0;
}

// Adds the cost at the state reached, whose stages have run. Returns the state's own cost: sum of weight * norm.
static double add_cost(SnRollout *r, bool end) {
  const SnCost *c = r->cost;
  const sn_real *weight = end ? c->terminal : c->weight;
  const double share = end ? 1.0 : 1.0 / r->nstep;
  double sum = 0;
  measure(r, r->target + (size_t)r->t * (size_t)c->ntarget, c->nterm);
  for (int i = 0; i < c->nterm; ++i) {
    const double x = weighted(r, weight, i);
    r->sum[i] += share * x;
    sum += x;
  }
  return sum;
}

double sn_rollout_judge(SnRollout *r, const sn_real *target, double *term, double *value) {
  const SnCost *c = r->cost;
  double sum = 0;
  measure(r, target, c->nall);
  for (int i = 0; i < c->nterm; ++i) {
    const double x = weighted(r, c->weight, i);
    if (term) term[i] = x;
    sum += x;
  }
  for (int i = 0; value && i < c->nall; ++i) value[i] = (double)r->value[i];
  return sum;
}

static void record(SnRollout *r, double cost) {
  const SnModel *m = r->m;
  const SnWorld *w = &r->world;
  const size_t t = (size_t)r->t;
  if (r->out.qpos) copy(r->out.qpos + t * (size_t)m->nq, w->qpos, m->nq);
  if (r->out.qvel) copy(r->out.qvel + t * (size_t)m->nv, w->qvel, m->nv);
  if (r->out.act && m->na) copy(r->out.act + t * (size_t)m->na, w->act, m->na);
  if (r->out.cost) r->out.cost[t] = cost;
  if (r->out.qacc) copy(r->out.qacc + t * (size_t)m->nv, w->qacc, m->nv);
}

static SnRolloutStatus fail(SnRollout *r) {
  r->total = INFINITY;
  return r->status = SN_ROLLOUT_DIVERGED;
}

static SnRolloutStatus finish(SnRollout *r) {
  for (int i = 0; i < r->cost->nterm; ++i) r->total += r->sum[i];
  return isfinite(r->total) ? (r->status = SN_ROLLOUT_DONE) : fail(r);
}

SnRolloutStatus sn_rollout_run(SnRollout *r, const SnClock *clock, double until) {
  const SnModel *m = r->m;
  SnWorld *w = &r->world;
  const bool timed = until < INFINITY;
  while (r->status == SN_ROLLOUT_PAUSED) {
    if (timed && clock->now(clock->context) >= until) return SN_ROLLOUT_PAUSED;
    if (diverged(r)) return fail(r);
    const bool end = r->t == r->nstep;
    if (!end) copy(w->ctrl, r->ctrl + (size_t)r->t * (size_t)m->nu, m->nu);
    sn_forward(m, w, &r->lane);
    record(r, add_cost(r, end));
    if (end) return finish(r);
    for (int i = 0; i < m->nv; ++i)
      if (sn_is_bad(w->qacc[i])) return fail(r);
    sn_integrate(m, w, &r->lane);
    ++r->t;
  }
  return r->status;
}

SnRolloutStatus sn_rollout_status(const SnRollout *r) { return r->status; }

double sn_rollout_cost(const SnRollout *r, double *term) {
  for (int i = 0; term && i < r->cost->nterm; ++i) term[i] = r->status == SN_ROLLOUT_DIVERGED ? INFINITY : r->sum[i];
  return r->total;
}

SnWorld *sn_rollout_world(SnRollout *r) { return &r->world; }
SnLane *sn_rollout_lane(SnRollout *r) { return &r->lane; }
