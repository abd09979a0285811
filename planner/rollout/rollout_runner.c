// A rollout on the CPU: on one lane, in memory of its own, with a clock.
#include "planner/rollout/rollout_runner.h"

#include <stdlib.h>

#include "physics/step/step.h"
#include "planner/rollout/chosen_step.h"

struct SnRolloutRunner {
  const SnModel *m;
  const SnCost *cost;
  SnWorld world;
  SnLaneShared shared;
  SnLane lane;
  void *memory;  // of the world
  SnRolloutScratch scratch;
  SnRollout rollout;
  SnHorizon *chosen;       // makes chosen steps; NULL: steps are the model's
  int max_steps;           // of them in a rollout
  const SnPolicy *policy;  // chooses the controls of its own rollout; NULL: they are known
  float *policy_scratch;
  sn_real *policy_ctrl;  // (nstep, nu)
};

// Rows [from, nstep] of n numbers each.
static void clear_rows(sn_number *x, int n, int from, int nstep) {
  const size_t first = (size_t)from * (size_t)n, end = ((size_t)nstep + 1) * (size_t)n;
  for (size_t i = first; x && i < end; ++i) x[i] = (sn_number)NAN;
}

// Rows [0, rows) of n numbers each.
static void copy_rows(sn_number *to, const sn_number *from, int n, int rows) {
  if (to && from) memcpy(to, from, sizeof *to * (size_t)rows * (size_t)n);
}

void sn_trajectory_copy(const SnModel *m, const SnTrajectory *to, const SnTrajectory *from, int rows) {
  copy_rows(to->qpos, from->qpos, m->nq, rows);
  copy_rows(to->qvel, from->qvel, m->nv, rows);
  copy_rows(to->act, from->act, m->na, rows);
  copy_rows(to->qacc, from->qacc, m->nv, rows);
  copy_rows(to->past, from->past, sn_past_size(m), rows);
  copy_rows(to->sensordata, from->sensordata, m->nsensordata, rows);
  copy_rows(to->cost, from->cost, 1, rows);
  copy_rows(to->time, from->time, 1, rows);
}

void sn_trajectory_clear(const SnModel *m, const SnTrajectory *out, int from, int nstep) {
  clear_rows(out->qpos, m->nq, from, nstep);
  clear_rows(out->qvel, m->nv, from, nstep);
  clear_rows(out->act, m->na, from, nstep);
  clear_rows(out->qacc, m->nv, from, nstep);
  clear_rows(out->past, sn_past_size(m), from, nstep);
  clear_rows(out->sensordata, m->nsensordata, from, nstep);
  clear_rows(out->cost, 1, from, nstep);
  clear_rows(out->time, 1, from, nstep);
  clear_rows(out->qacc_warmstart, m->nv, 0, 0);
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
  sn_horizon_free(r->chosen);
  free(r->memory);
  free(r->scratch.res);
  free(r->scratch.value);
  free(r->rollout.sum);
  free(r);
}

void sn_rollout_runner_use(SnRolloutRunner *r, const SnModel *m) {
  if (r->m == m) return;
  r->m = m;
  r->rollout.status = SN_ROLLOUT_DONE;
  sn_world_begin(m, &r->world, &r->lane);
}

SnCode sn_rollout_runner_choose(SnRolloutRunner *r, const SnHorizonSettings *settings, bool back, SnError *err) {
  SnError local;
  SnHorizon *chosen = sn_chosen_create(r->m, settings, back, err ? err : &local);
  if (!chosen) return err ? err->code : local.code;
  sn_horizon_free(r->chosen);
  r->chosen = chosen;
  r->max_steps = settings->max_steps;
  return SN_OK;
}

SnHorizon *sn_rollout_runner_chosen(const SnRolloutRunner *r) { return r->chosen; }

void sn_rollout_runner_move(SnRolloutRunner *r) {
  if (r->chosen) {
    sn_forward(sn_chosen_model(r->chosen, r->m), &r->world, &r->lane);
    if (sn_chosen_step(r->chosen, &r->world, r->m->opt.timestep, r->max_steps, NULL)) return;
  }
  sn_step(r->m, &r->world, &r->lane);
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
                     .past = state->past,
                     .before = state->before,
                     .cfd = sn_cfd(state->cfd),
                     .grid = sn_state_grid(state)};
}

void sn_world_set_state(const SnModel *m, SnWorld *w, const SnState *state) {
  SnLaneShared shared;
  SnLane lane = {.n = 1, .shared = &shared};
  const SnRollout rollout = rollout_from(state);
  sn_rollout_set_initial(m, w, &lane, &rollout);
}

SnRollout sn_rollout_make(const SnCost *cost, const SnState *state, const sn_real *ctrl, const sn_real *target,
                          int nstep, double max_velocity, const SnTrajectory *out) {
  SnRollout r = rollout_from(state);
  r.ctrl = ctrl;
  r.target = target;
  r.running = cost->weight;
  r.terminal = cost->terminal;
  r.nstep = nstep;
  r.max_velocity = (sn_real)max_velocity;
  if (!out) return r;
  r.out_time = out->time;
  r.out_qpos = out->qpos;
  r.out_qvel = out->qvel;
  r.out_act = out->act;
  r.out_past = out->past;
  r.out_qacc = out->qacc;
  r.out_cost = out->cost;
  r.out_sensordata = out->sensordata;
  r.out_qacc_warmstart = out->qacc_warmstart;
  return r;
}

static void begin(SnRolloutRunner *r, SnRollout *rollout) {
  rollout->chosen = r->chosen ? 1 : 0;
  sn_rollout_begin(r->m, r->cost, &r->world, &r->lane, rollout);
}

void sn_rollout_runner_begin(SnRolloutRunner *r, const SnState *state, const sn_real *ctrl, const sn_real *target,
                             int nstep, double max_velocity, const SnTrajectory *out) {
  sn_real *sum = r->rollout.sum;
  r->rollout = sn_rollout_make(r->cost, state, ctrl, target, nstep, max_velocity, out);
  r->rollout.sum = sum;
  r->policy = NULL;
  begin(r, &r->rollout);
}

void sn_rollout_runner_feed_back(SnRolloutRunner *r, const SnFeedback *feedback) { r->rollout.feedback = feedback; }

void sn_rollout_runner_follow(SnRolloutRunner *r, const SnPolicy *policy, float *scratch, sn_real *ctrl) {
  r->policy = policy;
  r->policy_scratch = scratch;
  r->policy_ctrl = ctrl;
}

// The policy's controls in the state that the rollout has reached. False: they are not finite.
static bool choose_controls(SnRolloutRunner *r, int t) {
  if (!r->policy || t >= r->rollout.nstep) return true;
  return sn_policy_act(r->policy, r->m, &r->world, r->rollout.target + (size_t)t * (size_t)r->cost->ntarget,
                       r->policy_scratch, r->policy_ctrl + (size_t)t * (size_t)r->m->nu);
}

double sn_rollout_runner_evaluate(SnRolloutRunner *r, const sn_real *target, double *term, double *value) {
  const SnCost *c = r->cost;
  double sum = 0;
  const SnCostInput in = {.target = target};
  sn_rollout_measure(r->m, c, &r->world, &r->lane, in, c->nall, &r->scratch);
  for (int i = 0; i < c->nterm; ++i) {
    const double x = (double)sn_weighted(c->weight[i], r->scratch.value[i]);
    if (term) term[i] = x;
    sum += x;
  }
  for (int i = 0; value && i < c->nall; ++i) value[i] = (double)r->scratch.value[i];
  return sum;
}

void sn_rollout_runner_gates(const SnRolloutRunner *r, double *number, double *factor) {
  const SnCost *c = r->cost;
  for (int i = 0; i < c->nterm; ++i) {
    const int gate = c->term_gate[i], k = gate - c->nall;
    if (gate < 0) continue;
    const int at = c->term_res[gate];
    number[k] = (double)sn_norm_value(sn_cost_penalty(c, gate), r->scratch.res + at, c->term_res[gate + 1] - at);
    factor[k] = (double)sn_cost_gate(c, i, r->scratch.res);
  }
}

static SnRolloutStatus step(SnRolloutRunner *r, SnRollout *rollout) {
  const int t = rollout->t;
  int tried;
  if (rollout == &r->rollout && !choose_controls(r, t))
    return sn_rollout_arrive(&r->world, &r->lane, rollout, t + 1, false);
  if (!r->chosen) return sn_rollout_step(r->m, r->cost, &r->world, &r->lane, rollout, &r->scratch);
  const SnModel *m = sn_chosen_model(r->chosen, r->m);
  const SnRolloutStatus status = sn_rollout_visit(m, r->cost, &r->world, &r->lane, rollout, &r->scratch);
  if (status != SN_ROLLOUT_UNDER_WAY) return status;
  const bool good = sn_chosen_step(r->chosen, &r->world, sn_rollout_seconds(r->m, rollout, t),
                                   r->max_steps + 1 - rollout->chosen, &tried);
  rollout->chosen += tried;
  return sn_rollout_arrive(&r->world, &r->lane, rollout, t + 1, good);
}

// Steps of a rollout that is in the runner's world; `worlds` may be NULL.
static SnRolloutStatus run_steps(SnRolloutRunner *r, SnRollout *rollout, SnWorldStore *worlds, const SnClock *clock,
                                 double until) {
  const bool timed = until < INFINITY;
  while (rollout->status == SN_ROLLOUT_UNDER_WAY) {
    if (timed && clock->now(clock->context) >= until) return SN_ROLLOUT_UNDER_WAY;
    const int t = rollout->t;
    const SnRolloutStatus status = step(r, rollout);
    if (!worlds || status == SN_ROLLOUT_DIVERGED) continue;
    sn_world_store_keep(worlds, sn_chosen_model(r->chosen, r->m), &r->lane, &r->world, t);
    if (r->chosen && t < rollout->nstep) sn_world_store_keep_run(worlds, r->chosen, t);
  }
  return (SnRolloutStatus)rollout->status;
}

SnRolloutStatus sn_rollout_runner_run(SnRolloutRunner *r, const SnClock *clock, double until) {
  return run_steps(r, &r->rollout, NULL, clock, until);
}

SnRolloutStatus sn_rollout_runner_advance(SnRolloutRunner *r, SnRollout *rollout, SnWorldStore *worlds,
                                          const SnClock *clock, double until) {
  r->rollout.status = SN_ROLLOUT_DONE;
  if (rollout->t == 0)
    begin(r, rollout);
  else
    sn_rollout_restore(r->m, &r->world, &r->lane, rollout);
  const SnRolloutStatus status = run_steps(r, rollout, worlds, clock, until);
  if (status == SN_ROLLOUT_UNDER_WAY) sn_rollout_save(r->m, &r->world, &r->lane, rollout);
  return status;
}

SnRolloutStatus sn_rollout_runner_status(const SnRolloutRunner *r) { return (SnRolloutStatus)r->rollout.status; }

double sn_rollout_cost(const SnCost *cost, const SnRollout *rollout, double *term) {
  const bool diverged = rollout->status == SN_ROLLOUT_DIVERGED;
  for (int i = 0; term && i < cost->nterm; ++i) term[i] = diverged ? INFINITY : (double)rollout->sum[i];
  return (double)rollout->total;
}

double sn_rollout_runner_cost(const SnRolloutRunner *r, double *term) {
  return sn_rollout_cost(r->cost, &r->rollout, term);
}

const SnRollout *sn_rollout_runner_rollout(const SnRolloutRunner *r) { return &r->rollout; }
SnWorld *sn_rollout_runner_world(SnRolloutRunner *r) { return &r->world; }
SnLane *sn_rollout_runner_lane(SnRolloutRunner *r) { return &r->lane; }
