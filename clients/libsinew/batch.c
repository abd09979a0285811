// Many rollouts of a model: checked, and computed in the caller's arrays. See batch_vjp.c for the way back.
#include "clients/libsinew/batch_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/libsinew/task_private.h"

static const ApiStruct batch_def = {"SinewBatchDef", "sinew_default_batch", sizeof(SinewBatchDef),
                                    API_END(SinewBatchDef, cfd)};
static const ApiStruct rollouts_type = {"SinewRollouts", "sinew_default_rollouts", sizeof(SinewRollouts),
                                        API_END(SinewRollouts, warnings)};

// Most rollouts and steps: sizes of arrays stay far from the end of size_t.
enum { MOST = 1 << 20 };

// ---- creation ----

static SinewStatus check_def(const SinewBatchDef *d, SinewError *err) {
  const char *missing = !d->model ? "model" : !d->backend ? "backend" : NULL;
  if (missing) return api_fail(err, SINEW_ERR_ARGUMENT, "SinewBatchDef: %s is NULL", missing);
  if (d->capacity < 1 || d->capacity > MOST)
    return api_fail(err, SINEW_ERR_ARGUMENT, "capacity: %d, allowed is 1 to %d", d->capacity, (int)MOST);
  if (d->steps < 1 || d->steps > MOST)
    return api_fail(err, SINEW_ERR_ARGUMENT, "steps: %d, allowed is 1 to %d", d->steps, (int)MOST);
  if (!(d->max_velocity >= 0 && d->max_velocity <= (double)SN_MAXVAL))
    return api_fail(err, SINEW_ERR_ARGUMENT, "max_velocity: %g, allowed is 0 to 1e10", d->max_velocity);
  return SINEW_OK;
}

void *api_batch_alloc(size_t n, size_t size, ApiRoom *room) {
  void *x = calloc(n > 0 ? n : 1, size);
  room->bytes += n * size;
  room->full = room->full || x == NULL;
  return x;
}

static double *append(double *to, const double *from, size_t n) {
  if (n > 0) memcpy(to, from, n * sizeof *to);
  return to + n;
}

// Keeps the state of a world as the initial one.
static void keep_initial(SinewBatch *b, const SnWorld *w) {
  const SnModel *m = b->m;
  double *to = append(b->initial, w->qpos, (size_t)m->nq);
  to = append(to, w->qvel, (size_t)m->nv);
  to = append(to, w->act, (size_t)m->na);
  for (size_t i = 0; i < (size_t)m->nmocap; ++i) {
    to = append(to, w->mocap_pos + 3 * i, 3);
    to = append(to, w->mocap_quat + 4 * i, 4);
  }
}

// Puts a body into the initial state, with the targets that the task fixes there.
static SnCode begin(SinewBatch *b, const SnTask *task, SnError *why) {
  const SnModel *m = b->m;
  SnRolloutRunner *r = sn_rollout_runner_create(m, b->cost, why);
  if (!r) return why->code;
  SnWorld *w = sn_rollout_runner_world(r);
  SnLane *lane = sn_rollout_runner_lane(r);
  SnCode code = SN_OK;
  b->initial = calloc((size_t)(m->nq + m->nv + m->na + 7 * m->nmocap) + 1, sizeof *b->initial);
  if (!b->initial) code = sn_fail(why, SN_ERR_MEMORY, "batch: out of memory");
  sn_world_reset(m, w);
  const SnClock clock = api_interrupt_clock(&b->interrupt, false);
  if (code == SN_OK && task) code = sn_task_reset(task, m, w, lane, 0, &clock, api_interrupt_until(&b->interrupt), why);
  if (code == SN_OK && task) sn_cost_capture(b->cost, m, w, lane);
  if (code == SN_OK) keep_initial(b, w);
  sn_rollout_runner_free(r);
  return code;
}

// Makes the cost, and the model with the task's options.
static SnCode take_task(SinewBatch *b, const SinewBatchDef *d, SnError *why) {
  const SnTask *task = d->task->task;
  if (!(b->own = sn_task_model(task, d->model->model, why))) return why->code;
  b->m = b->own;
  if (!(b->cost = sn_cost_create(task, b->m, why))) return why->code;
  return d->gradients ? sn_cost_check_gradient(b->cost, b->m, why) : SN_OK;
}

static bool make_buffers(SinewBatch *b, bool gradients) {
  const SnModel *m = b->m;
  const size_t n = (size_t)b->capacity, rows = (size_t)b->steps + 1, nmocap = (size_t)m->nmocap;
  const size_t ntarget = b->cost ? (size_t)b->cost->ntarget : 0, ctrl = (size_t)b->steps * (size_t)m->nu;
  const size_t state = (size_t)(m->nv > m->na ? m->nv : m->na);
  ApiRoom room = {0};
  b->models = api_batch_alloc(n, sizeof *b->models, &room);
  b->state = api_batch_alloc(n, sizeof *b->state, &room);
  b->out = api_batch_alloc(n, sizeof *b->out, &room);
  b->done = api_batch_alloc(n, sizeof *b->done, &room);
  b->cost_of = api_batch_alloc(n, sizeof *b->cost_of, &room);
  b->made = api_batch_alloc(n, sizeof *b->made, &room);
  b->warn = api_batch_alloc(n, sizeof *b->warn, &room);
  b->target = api_batch_alloc(n * rows * ntarget, sizeof *b->target, &room);
  b->mocap_pos = api_batch_alloc(3 * n * nmocap, sizeof *b->mocap_pos, &room);
  b->mocap_quat = api_batch_alloc(4 * n * nmocap, sizeof *b->mocap_quat, &room);
  b->zero = api_batch_alloc(ctrl > state ? ctrl : state, sizeof *b->zero, &room);
  if (!room.full && gradients) b->kept = api_kept_create(m, b->capacity, b->steps, &room);
  b->bytes = room.bytes;
  return !room.full;
}

// Loads model and cost at the backend, with room for all that is asked of it.
static SnCode load(SinewBatch *b, bool gradients, SnError *why) {
  SnBackend *backend = b->backend->backend;
  if (!sn_backend_has(backend, SN_BACKEND_BATCHES))
    return sn_fail(why, SN_ERR_UNSUPPORTED, "the backend '%s' makes no batches", sn_backend_name(backend));
  b->loaded = sn_backend_load(backend, b->m, b->cost, b->steps, why);
  if (!b->loaded) return why->code;
  return gradients ? sn_backend_reserve_gradients(backend, b->loaded, b->capacity, why)
                   : sn_backend_reserve_batches(backend, b->loaded, b->capacity, why);
}

// Makes all of a batch whose backend is entered.
static SinewStatus build(SinewBatch *b, const SinewBatchDef *d, SinewError *err) {
  SnError why = {0};
  b->m = d->model->model;
  b->capacity = d->capacity;
  b->steps = d->steps;
  b->max_velocity = d->max_velocity > 0 ? d->max_velocity : (double)SN_MAXVAL;
  if (d->task && take_task(b, d, &why) != SN_OK) return api_hand_on(err, &why);
  if (begin(b, d->task ? d->task->task : NULL, &why) != SN_OK)
    return api_interrupt_look(&b->interrupt) ? api_interrupt_fail(err) : api_hand_on(err, &why);
  if (!(b->model = api_model_view(b->m, err))) return SINEW_ERR_MEMORY;
  if (d->cfd) {
    const SinewStatus status = api_cfd_read(b->model, d->cfd, &b->cfd, err);
    if (status != SINEW_OK) return status;
  }
  if (load(b, d->gradients, &why) != SN_OK) return api_hand_on(err, &why);
  if (!make_buffers(b, d->gradients)) return api_fail(err, SINEW_ERR_MEMORY, "batch: out of memory");
  return api_ok(err);
}

SinewBatch *sinew_batch_create(const SinewBatchDef *def, SinewError *err) {
  SinewBatchDef d = sinew_default_batch();
  if (api_take(&batch_def, def, &d, err) != SINEW_OK || check_def(&d, err) != SINEW_OK) return NULL;
  SinewBatch *b = calloc(1, sizeof *b);
  if (!b) {
    api_fail(err, SINEW_ERR_MEMORY, "batch: out of memory");
    return NULL;
  }
  b->backend = d.backend;
  b->interrupt = (ApiInterrupt){.ask = d.interrupt, .user = d.interrupt_user};
  SinewStatus status = api_enter_pair(&b->guard, "batch", b->backend, err);
  api_interrupt_begin(&b->interrupt);
  if (status == SINEW_OK) status = api_leave_pair(&b->guard, b->backend, build(b, &d, err));
  if (status == SINEW_OK) return b;
  sinew_batch_free(b);
  return NULL;
}

void sinew_batch_free(SinewBatch *b) {
  if (!b) return;
  if (b->loaded) sn_backend_unload(b->backend->backend, b->loaded);
  api_kept_free(b->kept);
  api_cfd_clear(&b->cfd);
  sinew_model_free(b->model);
  sn_cost_free(b->cost);
  sn_model_free(b->own);
  void *const buffers[] = {b->models, b->initial, b->state,  b->out,       b->done,       b->cost_of,
                           b->made,   b->warn,    b->target, b->mocap_pos, b->mocap_quat, b->zero};
  for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; ++i) free(buffers[i]);
  free(b);
}

const SinewModel *sinew_batch_model(const SinewBatch *batch) { return batch ? batch->model : NULL; }

size_t sinew_batch_memory(const SinewBatch *b) {
  if (!b) return 0;
  const SnCost none = {0};
  const SnBackendRoom room = {.max_step = b->steps, .gradients = b->kept ? b->capacity : 0};
  return b->bytes + (size_t)sn_backend_bytes(b->backend->backend, b->m, b->cost ? b->cost : &none, &room);
}

SinewState sinew_batch_initial(const SinewBatch *batch) {
  if (!batch) return (SinewState){0};
  const SnModel *m = batch->m;
  const double *qvel = batch->initial + m->nq, *act = qvel + m->nv;
  return (SinewState){0, batch->initial, qvel, act, act + m->na};
}

int sinew_batch_terms(const SinewBatch *batch) { return batch && batch->cost ? batch->cost->nterm : 0; }

// ---- what is asked ----

// Refuses a number that is NaN or beyond 1e10 among `rows` times n. They are named by rows of `width`, or by their
// index where that is 0.
static SinewStatus check_numbers(const char *name, const double *x, int rows, size_t n, int width, SinewError *err) {
  for (int row = 0; x && row < rows; ++row, x += n)
    for (size_t i = 0; i < n; ++i) {
      if (!sn_is_bad(x[i])) continue;
      char place[48];
      if (width)
        snprintf(place, sizeof place, "[%zu][%zu]", i / (size_t)width, i % (size_t)width);
      else
        snprintf(place, sizeof place, "[%zu]", i);
      return api_fail(err, SINEW_ERR_ARGUMENT, "%s%s of rollout %d: %g, allowed is a number within +-1e10", name, place,
                      row, x[i]);
    }
  return SINEW_OK;
}

// Bodies whose contacts act from a distance were chosen as pairs in the list of the batch's model.
static SinewStatus check_pairs(const SinewBatch *b, const SnModel *m, const char *name, SinewError *err) {
  const size_t n = 2 * (size_t)m->ncpair;  // world_fields.inc: as many as in a model of the same structure
  if (!b->cfd.pair || n == 0 || memcmp(m->cpair_geom, b->m->cpair_geom, n * sizeof *m->cpair_geom) == 0)
    return SINEW_OK;
  return api_fail(err, SINEW_ERR_ARGUMENT,
                  "%s: other geoms can touch than in the batch's model; with SinewCfd.bodies they must be the same",
                  name);
}

static SinewStatus check_models(const SinewBatch *b, const SinewRollouts *r, SinewError *err) {
  const SnBackend *backend = b->backend->backend;
  SinewStatus status = SINEW_OK;
  if (r->models && !sn_backend_has(backend, SN_BACKEND_MODELS))
    return api_fail(err, SINEW_ERR_UNSUPPORTED, "models: the backend '%s' has one model for all rollouts",
                    sn_backend_name(backend));
  for (int i = 0; r->models && status == SINEW_OK && i < r->count; ++i) {
    char name[32];
    snprintf(name, sizeof name, "models[%d]", i);
    status = r->models[i] ? api_model_same_structure(b->model, r->models[i], name, err)
                          : api_fail(err, SINEW_ERR_ARGUMENT, "%s is NULL", name);
    if (status == SINEW_OK) status = check_pairs(b, r->models[i]->model, name, err);
  }
  return status;
}

static SinewStatus check_history(const SnModel *m, const double *history, int states, SinewError *err) {
  const size_t n = (size_t)sn_past_size(m);
  for (size_t i = 0; history && i < (size_t)states; ++i) {
    int k;
    if (!sn_past_good(m, history + i * n, &k))
      return api_fail(err, SINEW_ERR_ARGUMENT, "history[%d] of rollout %zu: %g, " API_HISTORY_RULE, k, i,
                      history[i * n + (size_t)k]);
  }
  return SINEW_OK;
}

static SinewStatus check_rollouts(const SinewBatch *b, const SinewRollouts *r, SinewError *err) {
  const SnModel *m = b->m;
  if (r->count < 1 || r->count > b->capacity)
    return api_fail(err, SINEW_ERR_ARGUMENT, "count: %d, allowed is 1 to the capacity of the batch, %d", r->count,
                    b->capacity);
  if (r->steps < 1 || r->steps > b->steps)
    return api_fail(err, SINEW_ERR_ARGUMENT, "steps: %d, allowed is 1 to the steps of the batch, %d", r->steps,
                    b->steps);
  const int states = r->one_state ? 1 : r->count;
  SinewStatus status = check_models(b, r, err);
  if (status == SINEW_OK) status = check_numbers("time", r->time, states, 1, 0, err);
  if (status == SINEW_OK) status = check_numbers("qpos", r->qpos, states, (size_t)m->nq, 0, err);
  if (status == SINEW_OK) status = check_numbers("qvel", r->qvel, states, (size_t)m->nv, 0, err);
  if (status == SINEW_OK) status = check_numbers("act", r->act, states, (size_t)m->na, 0, err);
  if (status == SINEW_OK) status = check_numbers("mocap", r->mocap, states, 7 * (size_t)m->nmocap, 7, err);
  if (status == SINEW_OK) status = check_history(m, r->history, states, err);
  if (status == SINEW_OK) status = check_numbers("qacc_warmstart", r->qacc_warmstart, states, (size_t)m->nv, 0, err);
  if (status != SINEW_OK) return status;
  return check_numbers("ctrl", r->ctrl, r->one_ctrl ? 1 : r->count, (size_t)r->steps * (size_t)m->nu, m->nu, err);
}

// Poses of the mocap bodies of state i, apart; NULL: where the model has them.
static void take_mocap(SinewBatch *b, const double *mocap, size_t i, SnState *state) {
  const size_t n = (size_t)b->m->nmocap;
  if (!mocap || n == 0) return;
  double *pos = b->mocap_pos + 3 * n * i, *quat = b->mocap_quat + 4 * n * i;
  for (size_t k = 0; k < n; ++k) {
    memcpy(pos + 3 * k, mocap + 7 * (n * i + k), 3 * sizeof *pos);
    memcpy(quat + 4 * k, mocap + 7 * (n * i + k) + 3, 4 * sizeof *quat);
  }
  state->mocap_pos = pos;
  state->mocap_quat = quat;
}

static const double *row(const double *x, size_t i, int n, const double *fallback) {
  return x ? x + i * (size_t)n : fallback;
}

int api_batch_states(const SinewRollouts *r) { return r->one_state && !r->models ? 1 : r->count; }

// Points into the caller's states.
static void take_states(SinewBatch *b, const SinewRollouts *r) {
  for (size_t k = 0; k < (size_t)api_batch_states(r); ++k) {
    const size_t i = r->one_state ? 0 : k;
    const SnModel *m = b->models[k] = r->models ? r->models[k]->model : b->m;
    b->state[k] = (SnState){.time = r->time ? r->time[i] : 0,
                            .qpos = row(r->qpos, i, m->nq, m->qpos0),
                            .qvel = row(r->qvel, i, m->nv, b->zero),
                            .act = row(r->act, i, m->na, b->zero),
                            .qacc_warmstart = row(r->qacc_warmstart, i, m->nv, NULL),
                            .past = row(r->history, i, sn_past_size(m), NULL),
                            .cfd = b->cfd.use == SINEW_CFD_FORWARD ? &b->cfd.settings : NULL};
    take_mocap(b, r->mocap, i, &b->state[k]);
  }
}

static double *part(double *x, int i, int steps, int n) {
  return x && n > 0 ? x + (size_t)i * ((size_t)steps + 1) * (size_t)n : NULL;
}

// Points into the caller's trajectories.
static void take_outputs(SinewBatch *b, const SinewRollouts *r) {
  for (int i = 0; i < r->count; ++i) {
    double *warmstart = r->out_qacc_warmstart;
    b->out[i] = (SnTrajectory){.time = part(r->out_time, i, r->steps, 1),
                               .qpos = part(r->out_qpos, i, r->steps, b->m->nq),
                               .qvel = part(r->out_qvel, i, r->steps, b->m->nv),
                               .act = part(r->out_act, i, r->steps, b->m->na),
                               .sensordata = part(r->out_sensordata, i, r->steps, b->m->nsensordata),
                               .qacc_warmstart = warmstart ? warmstart + (size_t)i * (size_t)b->m->nv : NULL,
                               .past = part(r->out_history, i, r->steps, sn_past_size(b->m))};
  }
}

// Evaluates the schedules of the targets. Returns how many tables there are: one where all begin at one time.
static int take_targets(SinewBatch *b, const SinewRollouts *r) {
  const int states = api_batch_states(r);
  int tables = 1;
  if (!b->cost) return tables;
  for (int i = 1; i < states; ++i)
    if (b->state[i].time != b->state[0].time || b->models[i]->opt.timestep != b->models[0]->opt.timestep)
      tables = r->count;
  const size_t size = ((size_t)r->steps + 1) * (size_t)b->cost->ntarget;
  for (int i = 0; i < tables; ++i)
    sn_cost_schedule(b->cost, b->state[i].time, (double)b->models[i]->opt.timestep, r->steps + 1,
                     b->target + (size_t)i * size);
  return tables;
}

// ---- rollouts ----

SinewStatus api_batch_unfinished(SinewBatch *b, SinewError *err) {
  if (!api_interrupt_look(&b->interrupt)) return api_device_lost(b->backend, err);
  sn_backend_abandon(b->backend->backend, b->loaded);
  return api_interrupt_fail(err);
}

// Computes rollouts that nothing is kept of. Returns false where the device is lost, or the caller has interrupted it.
static bool run(SinewBatch *b, const SinewRollouts *r, int tables) {
  const SnClock clock = api_interrupt_clock(&b->interrupt, false);
  const SnBatch batch = {.model = r->models ? b->models : NULL,
                         .state = b->state,
                         .nstate = api_batch_states(r),
                         .ctrl = r->ctrl ? r->ctrl : b->zero,
                         .nctrl = r->ctrl && !r->one_ctrl ? r->count : 1,
                         .target = b->target,
                         .ntable = tables,
                         .nstep = r->steps,
                         .count = r->count,
                         .max_velocity = b->max_velocity,
                         .cost = b->cost_of,
                         .term = r->term,
                         .done = b->done,
                         .warn = b->warn,
                         .steps = b->made,
                         .out = b->out};
  memset(b->done, 0, (size_t)r->count);
  const double until = api_interrupt_until(&b->interrupt);
  return sn_backend_rollouts(b->backend->backend, b->loaded, &batch, &clock, until) &&
         !api_interrupt_look(&b->interrupt);
}

// Hands on what is told of each rollout.
static void give(const SinewBatch *b, const SinewRollouts *r) {
  for (int i = 0; i < r->count; ++i) {
    const bool diverged = !isfinite(b->cost_of[i]);
    if (r->cost) r->cost[i] = b->cost_of[i];
    if (r->status) r->status[i] = diverged ? SINEW_ERR_DIVERGED : SINEW_OK;
    if (r->good_states) r->good_states[i] = diverged ? b->made[i] : r->steps + 1;
    if (r->warnings) r->warnings[i] = (unsigned)b->warn[i] | (diverged ? SINEW_WARN_BAD_STATE : 0u);
  }
}

static SinewStatus rollout(SinewBatch *b, const SinewRollouts *in, SinewError *err) {
  SinewRollouts r = sinew_default_rollouts();
  SinewStatus status = api_take(&rollouts_type, in, &r, err);
  if (status == SINEW_OK) status = check_rollouts(b, &r, err);
  if (status != SINEW_OK) return status;
  if (b->kept) b->kept->count = 0;
  take_states(b, &r);
  take_outputs(b, &r);
  const int tables = take_targets(b, &r);
  api_interrupt_begin(&b->interrupt);
  if (!(b->kept ? api_kept_rollout(b, &r, tables) : run(b, &r, tables))) return api_batch_unfinished(b, err);
  give(b, &r);
  return api_ok(err);
}

SinewStatus sinew_batch_rollout(SinewBatch *batch, const SinewRollouts *rollouts, SinewError *err) {
  if (!batch) return api_fail(err, SINEW_ERR_ARGUMENT, "sinew_batch_rollout: batch is NULL");
  const SinewStatus status = api_enter_pair(&batch->guard, "batch", batch->backend, err);
  if (status != SINEW_OK) return status;
  return api_leave_pair(&batch->guard, batch->backend, rollout(batch, rollouts, err));
}
