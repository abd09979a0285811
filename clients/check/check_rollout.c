// Derivatives of a rollout against its differences.
#include <stdlib.h>

#include "clients/base/statistics.h"
#include "clients/check/check.h"
#include "clients/reference/probe_task.h"
#include "physics/step/step.h"
#include "planner/rollout/gradient.h"

enum { DIRECTIONS = 8 };

static sn_real *reals(const sn_real *from, size_t n) {
  sn_real *x = calloc(n + 1, sizeof *x);
  if (x && from) memcpy(x, from, sizeof *x * n);
  return x;
}

bool check_stretch_init(CheckStretch *s, const SnModel *m, int steps) {
  s->qpos = reals(NULL, (size_t)m->nq);
  s->qvel = reals(NULL, (size_t)m->nv);
  s->act = reals(NULL, (size_t)m->na);
  s->mocap_pos = reals(NULL, 3 * (size_t)m->nmocap);
  s->mocap_quat = reals(NULL, 4 * (size_t)m->nmocap);
  s->warm = reals(NULL, (size_t)m->nv);
  s->ctrl = reals(NULL, (size_t)steps * (size_t)m->nu);
  return s->qpos && s->qvel && s->act && s->mocap_pos && s->mocap_quat && s->warm && s->ctrl;
}

void check_stretch_free(CheckStretch *s) {
  free(s->qpos);
  free(s->qvel);
  free(s->act);
  free(s->mocap_pos);
  free(s->mocap_quat);
  free(s->warm);
  free(s->ctrl);
}

void check_stretch_add(CheckStretch *s, SnOracle *o) {
  const SnModel *m = o->m;
  const SnWorld *w = &o->w;
  sn_oracle_copy_state(o);
  memcpy(s->ctrl + s->steps * m->nu, w->ctrl, sizeof(sn_real) * (size_t)m->nu);
  if (s->steps++ > 0) return;
  s->time = (double)w->time[0];
  memcpy(s->qpos, w->qpos, sizeof(sn_real) * (size_t)m->nq);
  memcpy(s->qvel, w->qvel, sizeof(sn_real) * (size_t)m->nv);
  memcpy(s->act, w->act, sizeof(sn_real) * (size_t)m->na);
  memcpy(s->mocap_pos, w->mocap_pos, 3 * sizeof(sn_real) * (size_t)m->nmocap);
  memcpy(s->mocap_quat, w->mocap_quat, 4 * sizeof(sn_real) * (size_t)m->nmocap);
  memcpy(s->warm, w->qacc_warmstart, sizeof(sn_real) * (size_t)m->nv);
}

// A check of rollouts. Directions are in (ctrl, qpos, qvel, act).
typedef struct RolloutCheck {
  const SnModel *m;
  SnTask *task;
  SnCost *cost;
  SnPool *pool;
  SnGradientWork *work;
  SnRolloutRunner *runner;
  SnGradient g;
  CheckStretch moved;  // the start, moved
  sn_real *direction;
  size_t size;  // of a direction
  SnLaneShared shared;
  SnLane lane;
} RolloutCheck;

static SnCode open_rollout(RolloutCheck *c, const SnModel *m, const CheckStretch *stretch, const char *text,
                           SnError *err) {
  const int steps = stretch->steps;
  const size_t nu = (size_t)steps * (size_t)m->nu, nv = (size_t)m->nv, na = (size_t)m->na;
  c->m = m;
  c->lane = (SnLane){.n = 1, .shared = &c->shared};
  c->size = nu + 2 * nv + na;
  if (!(c->task = sn_task_parse(text, strlen(text), "check.yaml", err))) return err->code;
  if (!(c->cost = sn_cost_create(c->task, m, err))) return err->code;
  if (!(c->pool = sn_pool_create(1, err))) return err->code;
  if (!(c->work = sn_gradient_create(m, c->cost, steps, 1, c->pool, err))) return err->code;
  if (!(c->runner = sn_rollout_runner_create(m, c->cost, err))) return err->code;
  sn_real *target = reals(NULL, (size_t)(steps + 1) * (size_t)c->cost->ntarget);
  c->direction = reals(NULL, c->size);
  c->moved = (CheckStretch){.qpos = reals(stretch->qpos, (size_t)m->nq),
                            .qvel = reals(stretch->qvel, nv),
                            .act = reals(stretch->act, na),
                            .ctrl = reals(stretch->ctrl, nu)};
  c->g = (SnGradient){.state = {.time = stretch->time,
                                .qpos = stretch->qpos,
                                .qvel = stretch->qvel,
                                .act = stretch->act,
                                .mocap_pos = stretch->mocap_pos,
                                .mocap_quat = stretch->mocap_quat,
                                .qacc_warmstart = stretch->warm},
                      .ctrl = stretch->ctrl,
                      .target = target,
                      .nstep = steps,
                      .max_velocity = 1e6,
                      .ctrl_bar = reals(NULL, nu),
                      .qpos_bar = reals(NULL, nv),
                      .qvel_bar = reals(NULL, nv),
                      .act_bar = reals(NULL, na)};
  if (!target || !c->direction || !c->moved.qpos || !c->moved.qvel || !c->moved.act || !c->moved.ctrl ||
      !c->g.ctrl_bar || !c->g.qpos_bar || !c->g.qvel_bar || !c->g.act_bar)
    return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  sn_cost_schedule(c->cost, stretch->time, (double)m->opt.timestep, steps + 1, target);
  return SN_OK;
}

static void close_rollout(RolloutCheck *c) {
  sn_rollout_runner_free(c->runner);
  sn_gradient_free(c->work);
  sn_pool_free(c->pool);
  sn_cost_free(c->cost);
  sn_task_free(c->task);
  check_stretch_free(&c->moved);
  free(c->direction);
  free((void *)c->g.target);
  free(c->g.ctrl_bar);
  free(c->g.qpos_bar);
  free(c->g.qvel_bar);
  free(c->g.act_bar);
}

// A random direction: every coordinate in [-1, 1).
static void pick_direction(RolloutCheck *c, SnOracle *o) {
  for (size_t i = 0; i < c->size; ++i) c->direction[i] = (sn_real)sn_oracle_uniform(o);
}

// The cost of the rollout with controls and start moved by eps along the direction; infinity when it diverges.
static double moved_cost(RolloutCheck *c, const CheckStretch *from, double eps) {
  const SnModel *m = c->m;
  const sn_real e = (sn_real)eps, *d = c->direction;
  const int nu = c->g.nstep * m->nu;
  for (int i = 0; i < nu; ++i) c->moved.ctrl[i] = from->ctrl[i] + e * d[i];
  d += nu;
  memcpy(c->moved.qpos, from->qpos, sizeof *d * (size_t)m->nq);
  sn_integrate_pos(m, &c->lane, c->moved.qpos, d, e);
  d += m->nv;
  for (int i = 0; i < m->nv; ++i) c->moved.qvel[i] = from->qvel[i] + e * d[i];
  d += m->nv;
  for (int i = 0; i < m->na; ++i) c->moved.act[i] = from->act[i] + e * d[i];
  SnState state = c->g.state;
  state.qpos = c->moved.qpos;
  state.qvel = c->moved.qvel;
  state.act = c->moved.act;
  const SnClock clock = sn_clock_monotonic();
  sn_rollout_runner_begin(c->runner, &state, c->moved.ctrl, c->g.target, c->g.nstep, c->g.max_velocity, NULL);
  sn_rollout_runner_run(c->runner, &clock, INFINITY);
  return sn_rollout_runner_cost(c->runner, NULL);
}

// The derivative along the direction that the gradient gives.
static double along_direction(const RolloutCheck *c) {
  const SnModel *m = c->m;
  const sn_real *d = c->direction;
  const struct {
    const sn_real *bar;
    int n;
  } part[] = {
      {c->g.ctrl_bar, c->g.nstep * m->nu}, {c->g.qpos_bar, m->nv}, {c->g.qvel_bar, m->nv}, {c->g.act_bar, m->na}};
  double sum = 0;
  for (int k = 0; k < 4; ++k)
    for (int i = 0; i < part[k].n; ++i) sum += (double)part[k].bar[i] * (double)*d++;
  return sum;
}

static void compare_rollouts(RolloutCheck *c, SnOracle *o, const CheckStretch *stretch, CheckGradientReport *r) {
  const double eps[3] = {CHECK_FINE, CHECK_COARSE, CHECK_BETWEEN};
  double ours[DIRECTIONS], ref[3][DIRECTIONS], scale = 1e-6;
  SnGradientBatch batch = {.settings = sn_default_gradient_settings(), .item = &c->g, .count = 1};
  const SnClock clock = sn_clock_monotonic();
  sn_gradient_run(c->work, &batch, &clock, INFINITY);
  for (int k = 0; k < DIRECTIONS; ++k) {
    pick_direction(c, o);
    ours[k] = c->g.status == SN_GRADIENT_DONE ? along_direction(c) : (double)NAN;
    for (int i = 0; i < 3; ++i)
      ref[i][k] = (moved_cost(c, stretch, eps[i]) - moved_cost(c, stretch, -eps[i])) / (2 * eps[i]);
    if (isfinite(ref[0][k])) scale = fmax(scale, 1e-6 + fabs(ref[0][k]));
  }
  for (int k = 0; k < DIRECTIONS; ++k) {
    if (!(fabs(ref[0][k] - ref[1][k]) <= CHECK_CERTAIN * scale)) {
      if (!check_extrapolate(&ref[0][k], &ref[1][k], &ref[2][k], 1)) {
        ++r->rollout_skipped;
        continue;
      }
      ++r->rollout_curved;
    }
    ++r->rollout_compared;
    const double error = fabs(ours[k] - ref[0][k]) / scale;
    r->rollout_max = sn_larger(r->rollout_max, error);
  }
}

SnCode check_rollout(SnOracle *o, const SnModel *m, CheckStretch *stretch, CheckGradientReport *r, SnError *err) {
  enum { SHORTEST = 4 };
  char text[1000];
  if (stretch->steps == 0 || !sn_probe_task(m, text, sizeof text)) return SN_OK;
  for (;; stretch->steps /= 2) {
    RolloutCheck c = {0};
    r->rollout_steps = stretch->steps;
    r->rollout_compared = r->rollout_skipped = r->rollout_curved = 0;
    const SnCode code = open_rollout(&c, m, stretch, text, err);
    if (code == SN_OK) compare_rollouts(&c, o, stretch, r);
    close_rollout(&c);
    if (code != SN_OK || 4 * r->rollout_skipped <= DIRECTIONS || stretch->steps < 2 * SHORTEST) return code;
  }
}
