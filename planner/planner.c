// Predictive sampling as an anytime planner. A plan is made of iterations; an iteration compares the best
// controls so far (candidate 0) with noisy copies of them, and the winner takes all.
//
// The best controls so far are dense rows on the model's time step, kept from plan to plan and shifted in time; the
// noise has knots on a grid that moves with them, so a sum of noises stays a spline with these knots.
#include "planner/planner.h"

#include <stdlib.h>

#include "planner/planner_private.h"
#include "planner/random.h"

SnPlannerDef sn_default_planner_def(void) {
  return (SnPlannerDef){.settings = sn_default_settings(), .clock = sn_clock_monotonic()};
}

SnPlanRequest sn_default_plan_request(void) { return (SnPlanRequest){.deadline = INFINITY}; }

static double now(const SnPlanner *p) { return p->def.clock.now(p->def.clock.context); }

static void copy(sn_real *to, const sn_real *from, size_t n) {
  if (n > 0) memcpy(to, from, sizeof *to * n);
}

// ---- creation ----

// calloc that never returns NULL for 0 bytes, and remembers a failure.
static void *room(size_t n, size_t size, bool *ok) {
  void *x = calloc(n + 1, size);
  *ok = *ok && x != NULL;
  return x;
}

static void make_state(const SnModel *m, SnStateBuffer *s, bool *ok) {
  s->qpos = room((size_t)m->nq, sizeof(sn_real), ok);
  s->qvel = room((size_t)m->nv, sizeof(sn_real), ok);
  s->act = room((size_t)m->na, sizeof(sn_real), ok);
  s->mocap_pos = room(3 * (size_t)m->nmocap, sizeof(sn_real), ok);
  s->mocap_quat = room(4 * (size_t)m->nmocap, sizeof(sn_real), ok);
  s->qacc_warmstart = room((size_t)m->nv, sizeof(sn_real), ok);
}

static void free_state(SnStateBuffer *s) {
  free(s->qpos);
  free(s->qvel);
  free(s->act);
  free(s->mocap_pos);
  free(s->mocap_quat);
  free(s->qacc_warmstart);
}

// Arrays whose length is the number of candidates.
static bool candidate_room(SnPlanner *p, int n) {
  if (n <= p->room) return true;
  bool ok = true;
  double *cost = room((size_t)n, sizeof *cost, &ok);
  double *term = room((size_t)n * (size_t)p->cost->nterm, sizeof *term, &ok);
  unsigned char *done = room((size_t)n, sizeof *done, &ok);
  if (!ok) {
    free(cost);
    free(term);
    free(done);
    return false;
  }
  free(p->candidate_cost);
  free(p->candidate_term);
  free(p->candidate_done);
  p->candidate_cost = cost;
  p->candidate_term = term;
  p->candidate_done = done;
  p->room = n;
  return true;
}

static bool make_buffers(SnPlanner *p) {
  const SnModel *m = p->m;
  const size_t horizon = (size_t)p->horizon, nu = (size_t)m->nu, rows = 2 * horizon;
  bool ok = true;
  make_state(m, &p->initial, &ok);
  make_state(m, &p->state, &ok);
  make_state(m, &p->start, &ok);
  make_state(m, &p->probe, &ok);
  p->initial_ctrl = room(nu, sizeof(sn_real), &ok);
  p->nominal = room(horizon * nu, sizeof(sn_real), &ok);
  p->trial = room(horizon * nu, sizeof(sn_real), &ok);
  p->force = room(rows * nu, sizeof(sn_real), &ok);
  p->target = room((horizon + 1) * (size_t)p->cost->ntarget, sizeof(sn_real), &ok);
  p->scratch = room(3 * (horizon + 2), sizeof(sn_real), &ok);
  p->best_term = room((size_t)p->cost->nterm, sizeof(double), &ok);
  p->plan_ctrl = room(rows * nu, sizeof(sn_real), &ok);
  p->plan_qpos = room((rows + 1) * (size_t)m->nq, sizeof(sn_real), &ok);
  p->plan_qvel = room((rows + 1) * (size_t)m->nv, sizeof(sn_real), &ok);
  p->plan_act = room((rows + 1) * (size_t)m->na, sizeof(sn_real), &ok);
  p->evaluate_term = room((size_t)p->cost->nterm, sizeof(double), &ok);
  p->evaluate_value = room((size_t)p->cost->nall, sizeof(double), &ok);
  p->evaluate_met = room((size_t)(p->cost->nall - p->cost->nterm), sizeof(bool), &ok);
  return ok && candidate_room(p, p->settings.candidates);
}

static SnCode build(SnPlanner *p, SnError *err) {
  const SnPlannerDef *def = &p->def;
  SnCode code = sn_settings_validate(&def->settings, err);
  if (code != SN_OK) return code;
  p->settings = p->pending = def->settings;
  p->horizon = def->settings.horizon;
  if (!(p->m = sn_task_model(def->task, def->model, err))) return err ? err->code : SN_ERR_MEMORY;
  p->h = (double)p->m->opt.timestep;
  p->cost = sn_cost_create(def->task, p->m, err);
  p->wanted = p->cost ? sn_cost_create(def->task, p->m, err) : NULL;
  if (!p->wanted) return err ? err->code : SN_ERR_NOT_FOUND;
  if (!(p->judge = sn_rollout_create(p->m, p->wanted, err))) return SN_ERR_MEMORY;
  if (!(p->tracer = sn_rollout_create(p->m, p->cost, err))) return SN_ERR_MEMORY;
  if (!(p->evaluator = sn_rollout_create(p->m, p->wanted, err))) return SN_ERR_MEMORY;
  if (!(p->device = def->backend->load(def->backend, p->m, p->cost, p->horizon, err)))
    return err ? err->code : SN_ERR_MEMORY;
  if (!make_buffers(p)) return sn_fail(err, SN_ERR_MEMORY, "planner: out of memory");
  return sn_planner_reset(p, def->seed, err);
}

SnPlanner *sn_planner_create(const SnPlannerDef *def, SnError *err) {
  SnError local;
  SnPlanner *p = calloc(1, sizeof *p);
  if (!p) {
    sn_fail(err, SN_ERR_MEMORY, "planner: out of memory");
    return NULL;
  }
  p->def = *def;
  if (build(p, err ? err : &local) == SN_OK) return p;
  sn_planner_free(p);
  return NULL;
}

void sn_planner_free(SnPlanner *p) {
  if (!p) return;
  if (p->device) p->def.backend->unload(p->def.backend, p->device);
  sn_rollout_free(p->judge);
  sn_rollout_free(p->tracer);
  sn_rollout_free(p->evaluator);
  sn_cost_free(p->wanted);
  sn_cost_free(p->cost);
  free_state(&p->initial);
  free_state(&p->state);
  free_state(&p->start);
  free_state(&p->probe);
  void *const buffers[] = {p->initial_ctrl,   p->nominal,        p->trial,          p->force,        p->target,
                           p->scratch,        p->best_term,      p->plan_ctrl,      p->plan_qpos,    p->plan_qvel,
                           p->plan_act,       p->evaluate_term,  p->evaluate_value, p->evaluate_met, p->evaluate_target,
                           p->candidate_cost, p->candidate_term, p->candidate_done};
  for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; ++i) free(buffers[i]);
  sn_model_free(p->m);
  free(p);
}

// Every row of the warm start becomes the initial plan.
static void reset_nominal(SnPlanner *p) {
  const size_t nu = (size_t)p->m->nu;
  for (int t = 0; t < p->horizon; ++t) copy(p->nominal + (size_t)t * nu, p->initial_ctrl, nu);
  p->phase = 0;
}

static void drop_batch(SnPlanner *p) {
  if (p->batch_active) p->def.backend->abandon(p->def.backend, p->device);
  p->batch_active = false;
}

static void store_world(SnPlanner *p, const SnWorld *w, SnStateBuffer *s) {
  const SnModel *m = p->m;
  copy(s->qpos, w->qpos, (size_t)m->nq);
  copy(s->qvel, w->qvel, (size_t)m->nv);
  copy(s->act, w->act, (size_t)m->na);
  copy(s->mocap_pos, w->mocap_pos, 3 * (size_t)m->nmocap);
  copy(s->mocap_quat, w->mocap_quat, 4 * (size_t)m->nmocap);
}

// The task's initial state and plan with a seed.
static SnCode settle(SnPlanner *p, uint64_t seed, SnError *err) {
  SnWorld *w = sn_rollout_world(p->judge);
  SnLane *lane = sn_rollout_lane(p->judge);
  const SnCode code = sn_task_reset(p->def.task, p->m, w, lane, seed, err);
  if (code != SN_OK) return code;
  p->def.seed = seed;
  p->initial.time = 0;
  store_world(p, w, &p->initial);
  sn_cost_capture(p->cost, p->m, w, lane);
  sn_cost_capture(p->wanted, p->m, w, lane);
  p->def.backend->update(p->def.backend, p->device);
  sn_task_initial_plan(p->def.task, p->m, seed, p->initial_ctrl);
  p->initial_view = sn_planner_prepare(p, &p->initial);
  p->settled = true;
  return SN_OK;
}

// Takes the initial state for the latest one.
static void forget_state(SnPlanner *p) {
  const SnModel *m = p->m;
  p->state.time = 0;
  copy(p->state.qpos, p->initial.qpos, (size_t)m->nq);
  copy(p->state.qvel, p->initial.qvel, (size_t)m->nv);
  copy(p->state.act, p->initial.act, (size_t)m->na);
  copy(p->state.mocap_pos, p->initial.mocap_pos, 3 * (size_t)m->nmocap);
  copy(p->state.mocap_quat, p->initial.mocap_quat, 4 * (size_t)m->nmocap);
}

SnCode sn_planner_reset(SnPlanner *p, uint64_t seed, SnError *err) {
  drop_batch(p);
  const SnCode code = p->settled && seed == p->def.seed ? SN_OK : settle(p, seed, err);
  if (code != SN_OK) return code;
  forget_state(p);
  reset_nominal(p);
  p->has_nominal = p->has_act = p->active = p->finished = false;
  p->force_rows = 0;
  p->number = 0;
  p->rollout_seconds = 0;
  return SN_OK;
}

void sn_planner_take_over(SnPlanner *p, const SnPlanner *from) {
  p->pending = from->pending;
  p->label = from->label;
  sn_cost_copy_live(p->wanted, from->wanted);
}

const SnModel *sn_planner_model(const SnPlanner *p) { return p->m; }
const SnCost *sn_planner_cost(const SnPlanner *p) { return p->wanted; }
const SnTask *sn_planner_task(const SnPlanner *p) { return p->def.task; }
double sn_planner_length(const SnPlanner *p) { return p->horizon * p->h; }
const SnStart *sn_planner_initial(const SnPlanner *p) { return &p->initial_view; }
const SnSettings *sn_planner_settings(const SnPlanner *p) { return &p->pending; }

// ---- live tuning ----

SnCode sn_planner_configure(SnPlanner *p, const SnSettings *settings, SnError *err) {
  const SnCode code = sn_settings_may_change(&p->settings, settings, err);
  if (code != SN_OK) return code;
  p->pending = *settings;
  return SN_OK;
}

SnCode sn_planner_set_target(SnPlanner *p, const char *term, const double *value, int n, SnError *err) {
  const int i = sn_cost_find(p->wanted, term);
  if (i < 0) return sn_fail(err, SN_ERR_NOT_FOUND, "the task has no term '%s'", term);
  const SnCode code = sn_cost_set_target(p->wanted, i, value, n, err);
  p->retuned = p->retuned || code == SN_OK;
  return code;
}

SnCode sn_planner_set_weight(SnPlanner *p, const char *term, double weight, double terminal, SnError *err) {
  const int i = sn_cost_find(p->wanted, term);
  if (i < 0 || i >= p->wanted->nterm) return sn_fail(err, SN_ERR_NOT_FOUND, "the task has no term '%s'", term);
  const SnCode code = sn_cost_set_weight(p->wanted, i, weight, terminal, err);
  p->retuned = p->retuned || code == SN_OK;
  return code;
}

void sn_planner_label(SnPlanner *p, uint64_t label) { p->label = label; }

// ---- beginning a plan ----

// Steps that the latency takes.
static int lead_steps(const SnPlanner *p, double latency) { return (int)ceil(latency / p->h - 1e-6); }

static SnCode check_request(const SnPlanner *p, const SnPlanRequest *r, SnError *err) {
  const double longest = sn_planner_length(p);
  if (!(r->latency >= 0 && r->latency <= longest))
    return sn_fail(err, SN_ERR_ARGUMENT, "latency: %g s, allowed is 0 to the length of a plan, %g s", r->latency,
                   longest);
  if (r->max_iterations < 0 || r->max_candidates < 0)
    return sn_fail(err, SN_ERR_ARGUMENT, "iterations and candidates must not be negative");
  if (isnan(r->deadline)) return sn_fail(err, SN_ERR_ARGUMENT, "deadline: not a number");
  if (p->pending.iterations == 0 && r->max_iterations == 0 && r->deadline == INFINITY)
    return sn_fail(err, SN_ERR_ARGUMENT, "iterations: as many as the deadline allows, but there is no deadline");
  return SN_OK;
}

// The first rows of the result: those of the plan in force while this one is made.
static void take_lead(SnPlanner *p) {
  const size_t nu = (size_t)p->m->nu;
  for (int k = 0; k < p->lead; ++k)
    copy(p->plan_ctrl + (size_t)k * nu, sn_planner_force_row(p, p->state.time + k * p->h), nu);
  p->start.time = p->state.time + p->lead * p->h;
}

// Moves the warm start to the new plan's start.
static void shift_nominal(SnPlanner *p) {
  const double since = (p->start.time - p->nominal_time) / p->h;
  int k = p->settings.shift;
  if (k == 0) k = since > p->horizon ? p->horizon : (since > 0 ? (int)lround(since) : 0);
  if (!p->has_nominal) k = 0;
  sn_plan_shift(p->nominal, p->horizon, p->m->nu, k, (SnTail)p->settings.tail, p->initial_ctrl);
  p->phase += k;
  p->nominal_time = p->start.time;
  p->has_nominal = true;
}

// Steps between knots of the noise: `knots` of them span the horizon.
static int knot_spacing(const SnPlanner *p) {
  return (p->horizon - 1 + p->settings.knots - 2) / (p->settings.knots - 1);
}

// Cost of the state that is answered, whose stages are run anew.
static void judge_state(SnPlanner *p) {
  sn_planner_prepare(p, &p->state);
  sn_cost_schedule(p->cost, p->state.time, p->h, 1, p->target);
  p->judged = sn_rollout_judge(p->judge, p->target, NULL, NULL);
}

// Weights and targets that were set live.
static void take_cost(SnPlanner *p) {
  sn_cost_copy_live(p->cost, p->wanted);
  p->def.backend->update(p->def.backend, p->device);
  p->retuned = false;
}

// What was tuned since the iteration before, all of it at once.
static void take_changes(SnPlanner *p) {
  if (candidate_room(p, p->pending.candidates)) p->settings = p->pending;
  p->trying = p->label;
  if (!p->retuned) return;
  take_cost(p);
  judge_state(p);
  sn_cost_schedule(p->cost, p->start.time, p->h, p->horizon + 1, p->target);
  p->measured = false;
}

// Settings and request of the iteration that comes next.
static void begin_iteration(SnPlanner *p) {
  take_changes(p);
  const SnSettings *s = &p->settings;
  const int spacing = knot_spacing(p);
  p->phase %= spacing;
  p->noise = (SnNoise){.seed = p->def.seed,
                       .plan = (uint32_t)p->number,
                       .iteration = (uint32_t)p->iteration,
                       .spacing = spacing,
                       .phase = p->phase,
                       .knots = sn_noise_knots(p->horizon, spacing, p->phase),
                       .interpolation = s->interpolation,
                       .colour = s->noise,
                       .scale = (sn_real)s->noise_scale};
  p->count = s->candidates < p->room ? s->candidates : p->room;
  const bool last = p->request.max_iterations > 0 && p->iteration + 1 == p->request.max_iterations;
  if (last && p->request.max_candidates > 0 && p->request.max_candidates < p->count)
    p->count = p->request.max_candidates;
  memset(p->candidate_done, 0, (size_t)p->count);
  // Candidate 0 is the winner of the iteration before: its cost is known, unless the weights have changed since.
  const int first = p->measured ? 1 : 0;
  const size_t nterm = (size_t)p->cost->nterm;
  if (first) {
    p->candidate_cost[0] = p->best_cost;
    memcpy(p->candidate_term, p->best_term, sizeof(double) * nterm);
    p->candidate_done[0] = 1;
  }
  p->batch = (SnBatch){.start = sn_state_view(&p->start),
                       .ctrl = p->nominal,
                       .target = p->target,
                       .noise = &p->noise,
                       .nstep = p->horizon,
                       .first = first,
                       .count = p->count - first,
                       .max_velocity = s->max_velocity,
                       .cost = p->candidate_cost + first,
                       .term = p->candidate_term + (size_t)first * nterm,
                       .done = p->candidate_done + first};
  p->batch_active = true;
}

// The state is rolled forward in the tracer's world, which is free until the sampling is done.
static void begin_rolling(SnPlanner *p) {
  const SnStart view = sn_state_view(&p->state);
  sn_world_set_start(p->m, sn_rollout_world(p->tracer), &view);
  p->rolled = 0;
  p->rolling = true;
}

// The state rolled forward is where the optimised part starts.
static void end_rolling(SnPlanner *p) {
  store_world(p, sn_rollout_world(p->tracer), &p->start);
  if (p->lead > 0)
    sn_planner_prepare(p, &p->start);
  else
    copy(p->start.qacc_warmstart, p->state.qacc_warmstart, (size_t)p->m->nv);
  p->rolling = false;
  begin_iteration(p);
}

SnCode sn_planner_begin(SnPlanner *p, const SnPlanRequest *request, SnError *err) {
  bool act_estimated = false;
  SnCode code = check_request(p, request, err);
  if (code == SN_OK) code = sn_planner_take_state(p, request, &p->state, &act_estimated, err);
  if (code != SN_OK) return code;
  drop_batch(p);
  p->has_act = true;
  p->act_estimated = act_estimated;
  p->request = *request;
  p->began = now(p);
  p->settings = candidate_room(p, p->pending.candidates) ? p->pending : p->settings;
  take_cost(p);
  ++p->number;

  judge_state(p);
  p->cost_now = p->judged;
  p->lead = lead_steps(p, request->latency);
  take_lead(p);
  shift_nominal(p);
  sn_cost_schedule(p->cost, p->start.time, p->h, p->horizon + 1, p->target);

  p->iteration = p->iterations = p->candidates = 0;
  p->measured = false;
  p->trying = p->used = p->label;
  p->cost_before = p->best_cost = NAN;
  for (int i = 0; i < p->cost->nterm; ++i) p->best_term[i] = NAN;
  p->active = true;
  p->finished = p->sampled = p->tracing = p->traced = false;
  begin_rolling(p);
  if (p->lead == 0) end_rolling(p);
  return SN_OK;
}

// ---- working on it ----

// Steps of the lead until `until`; false when there are more.
static bool roll_forward(SnPlanner *p, double until) {
  const SnModel *m = p->m;
  const size_t nq = (size_t)m->nq, nv = (size_t)m->nv, na = (size_t)m->na, nu = (size_t)m->nu;
  SnWorld *w = sn_rollout_world(p->tracer);
  const double stop = until < p->request.deadline ? until : p->request.deadline;
  for (; p->rolled < p->lead; ++p->rolled) {
    const size_t t = (size_t)p->rolled;
    if (stop < INFINITY && now(p) >= stop) return false;
    copy(p->plan_qpos + t * nq, w->qpos, nq);
    copy(p->plan_qvel + t * nv, w->qvel, nv);
    copy(p->plan_act + t * na, w->act, na);
    copy(w->ctrl, p->plan_ctrl + t * nu, nu);
    sn_step(m, w, sn_rollout_lane(p->tracer));
  }
  end_rolling(p);
  return true;
}

// Takes the best of the iteration's candidates that count.
static void end_iteration(SnPlanner *p) {
  int used = 0;
  const int best = sn_best_candidate(p->candidate_cost, p->candidate_done, p->count, &used);
  drop_batch(p);
  if (used == 0 || (p->measured && used == 1 && p->count > 1)) return;
  if (!p->measured) {
    p->cost_before = p->candidate_cost[0];
    p->cost_now = p->judged;
  }
  p->measured = true;
  p->used = p->trying;
  if (best > 0) {
    sn_noise_candidate(p->m, &p->noise, best, p->nominal, p->horizon, p->scratch, p->trial);
    sn_real *old = p->nominal;
    p->nominal = p->trial;
    p->trial = old;
  }
  p->best_cost = p->candidate_cost[best];
  memcpy(p->best_term, p->candidate_term + (size_t)best * (size_t)p->cost->nterm,
         sizeof(double) * (size_t)p->cost->nterm);
  p->iterations = p->iteration + 1;
  p->candidates = used;
}

// When sampling must stop so that the predicted states are still computed before the deadline.
static double sampling_deadline(const SnPlanner *p) {
  return p->request.want_states ? p->request.deadline - 1.5 * p->rollout_seconds : p->request.deadline;
}

// Candidates until `until`; p->sampled when there is no more to be done.
static void sample(SnPlanner *p, double until) {
  const double deadline = sampling_deadline(p), stop = until < deadline ? until : deadline;
  const bool complete = p->def.backend->rollouts(p->def.backend, p->device, &p->batch, &p->def.clock, stop);
  if (!complete) {
    p->sampled = now(p) >= deadline;
    if (p->sampled) end_iteration(p);
    return;
  }
  p->batch_active = false;
  end_iteration(p);
  ++p->iteration;
  const int limit = p->request.max_iterations > 0 ? p->request.max_iterations : p->pending.iterations;
  p->sampled = (limit > 0 && p->iteration >= limit) || now(p) >= deadline;
  if (!p->sampled) begin_iteration(p);
}

static SnPlanStatus plan_status(const SnPlanner *p) {
  if (p->iterations == 0) return SN_PLAN_WARM_START;
  return isfinite(p->best_cost) ? SN_PLAN_OK : SN_PLAN_DIVERGED;
}

// States along the optimised rows, behind those of the lead. True when there is no more to be done.
static bool trace(SnPlanner *p, double until) {
  const SnModel *m = p->m;
  const size_t lead = (size_t)p->lead;
  if (!p->tracing) {
    const SnTrajectory out = {.qpos = p->plan_qpos + lead * (size_t)m->nq,
                              .qvel = p->plan_qvel + lead * (size_t)m->nv,
                              .act = p->plan_act + lead * (size_t)m->na};
    const SnStart start = sn_state_view(&p->start);
    sn_rollout_begin(p->tracer, &start, p->nominal, p->target, p->horizon, p->settings.max_velocity, &out);
    p->tracing = true;
    p->trace_seconds = 0;
  }
  const double from = now(p), stop = until < p->request.deadline ? until : p->request.deadline;
  const SnRolloutStatus status = sn_rollout_run(p->tracer, &p->def.clock, stop);
  p->trace_seconds += now(p) - from;
  p->traced = status == SN_ROLLOUT_DONE;
  if (p->traced) p->rollout_seconds = p->trace_seconds;
  return status != SN_ROLLOUT_PAUSED || now(p) >= p->request.deadline;
}

bool sn_planner_slice(SnPlanner *p, double until) {
  if (!p->active || p->finished) return true;
  if (p->rolling && !roll_forward(p, until)) {
    p->finished = now(p) >= p->request.deadline;
    return p->finished;
  }
  if (!p->sampled) {
    sample(p, until);
    if (!p->sampled) return false;
  }
  const bool wanted = p->request.want_states && plan_status(p) != SN_PLAN_DIVERGED;
  p->finished = !wanted || trace(p, until);
  return p->finished;
}

// ---- ending it ----

// The plan that was made is in force from now on.
static void put_in_force(SnPlanner *p, int rows) {
  copy(p->force, p->plan_ctrl, (size_t)rows * (size_t)p->m->nu);
  p->force_time = p->state.time;
  p->force_rows = rows;
}

// The plan as it stands, the lead first. traced: with the predicted states. Between two slices the nominal is the best
// so far.
static void describe_plan(SnPlanner *p, bool traced, SnPlan *plan) {
  const SnModel *m = p->m;
  const SnPlanStatus status = plan_status(p);
  const int rows = status == SN_PLAN_DIVERGED ? 0 : p->lead + p->horizon;
  if (rows > 0) copy(p->plan_ctrl + (size_t)p->lead * (size_t)m->nu, p->nominal, (size_t)p->horizon * (size_t)m->nu);
  const bool states = rows > 0 && traced;
  const double end = now(p);
  *plan = (SnPlan){.status = status,
                   .number = p->number,
                   .stamp = p->state.time,
                   .start = p->state.time,
                   .step = p->h,
                   .lead = rows > 0 ? p->lead : 0,
                   .nstep = rows,
                   .nu = m->nu,
                   .nq = m->nq,
                   .nv = m->nv,
                   .na = m->na,
                   .nterm = p->cost->nterm,
                   .ctrl = rows > 0 ? p->plan_ctrl : NULL,
                   .qpos = states ? p->plan_qpos : NULL,
                   .qvel = states ? p->plan_qvel : NULL,
                   .act = states ? p->plan_act : NULL,
                   .label = p->used,
                   .cost_before = p->cost_before,
                   .cost_after = p->best_cost,
                   .term = p->best_term,
                   .cost_now = p->cost_now,
                   .iterations = p->iterations,
                   .candidates = p->candidates,
                   .gradient_norm = NAN,
                   .deadline_met = end <= p->request.deadline,
                   .act_estimated = p->act_estimated,
                   .seconds = end - p->began};
}

void sn_planner_finish(SnPlanner *p, SnPlan *plan) {
  memset(plan, 0, sizeof *plan);
  if (!p->active) {
    plan->status = SN_PLAN_DIVERGED;
    return;
  }
  if (!p->sampled && !p->rolling) end_iteration(p);
  drop_batch(p);
  p->active = false;
  describe_plan(p, p->traced, plan);
  if (plan->nstep > 0)
    put_in_force(p, plan->nstep);
  else
    reset_nominal(p);
}

int sn_planner_iterations(const SnPlanner *p) { return p->active ? p->iterations : 0; }

bool sn_planner_peek(SnPlanner *p, SnPlan *plan) {
  if (!p->active || p->iterations == 0) return false;
  describe_plan(p, false, plan);
  return true;
}

SnCode sn_planner_plan(SnPlanner *p, const SnPlanRequest *request, SnPlan *plan, SnError *err) {
  const SnCode code = sn_planner_begin(p, request, err);
  if (code != SN_OK) return code;
  while (!sn_planner_slice(p, INFINITY)) continue;
  sn_planner_finish(p, plan);
  return SN_OK;
}
