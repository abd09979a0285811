// The way back through the rollouts of a batch: what is kept of them, and derivatives of the task's cost and of the
// caller's own.
#include "clients/libsinew/batch_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/libsinew/backend_private.h"
#include "clients/libsinew/coordinates_private.h"
#include "clients/libsinew/parameters_private.h"

static const ApiStruct bars_type = {"SinewTrajectoryBars", "sinew_default_bars", sizeof(SinewTrajectoryBars),
                                    API_END(SinewTrajectoryBars, cost)};
static const ApiStruct gradients_type = {"SinewGradients", "sinew_default_gradients", sizeof(SinewGradients),
                                         API_END(SinewGradients, status)};

// ---- what is kept ----

ApiKept *api_kept_create(const SnModel *m, int capacity, int steps, ApiRoom *room) {
  const size_t n = (size_t)capacity, rows = (size_t)steps + 1;
  const size_t nq = (size_t)m->nq, nv = (size_t)m->nv, na = (size_t)m->na, ctrl = n * (size_t)steps * (size_t)m->nu;
  ApiKept *k = api_batch_alloc(1, sizeof *k, room);
  if (!k) return NULL;
  k->item = api_batch_alloc(n, sizeof *k->item, room);
  k->rolled = api_batch_alloc(n, sizeof *k->rolled, room);
  k->bar = api_batch_alloc(n, sizeof *k->bar, room);
  k->linearized = api_batch_alloc(n, sizeof *k->linearized, room);
  k->qpos = api_batch_alloc(n * nq, sizeof *k->qpos, room);
  k->qvel = api_batch_alloc(n * nv, sizeof *k->qvel, room);
  k->act = api_batch_alloc(n * na, sizeof *k->act, room);
  k->warmstart = api_batch_alloc(n * nv, sizeof *k->warmstart, room);
  k->history = api_batch_alloc(n * (size_t)sn_past_size(m), sizeof *k->history, room);
  k->ctrl = api_batch_alloc(ctrl, sizeof *k->ctrl, room);
  k->ctrl_bar = api_batch_alloc(ctrl, sizeof *k->ctrl_bar, room);
  k->qpos_bar = api_batch_alloc(n * nv, sizeof *k->qpos_bar, room);
  if (m->nq != m->nv) {
    k->states = api_batch_alloc(n * rows * nq, sizeof *k->states, room);
    k->tangent = api_batch_alloc(n * rows * nv, sizeof *k->tangent, room);
  }
  if (!room->full) return k;
  api_kept_free(k);
  return NULL;
}

void api_kept_free(ApiKept *k) {
  if (!k) return;
  void *const buffers[] = {k->linearized, k->item,    k->rolled, k->bar,      k->qpos,     k->qvel,   k->act,
                           k->warmstart,  k->history, k->ctrl,   k->ctrl_bar, k->qpos_bar, k->states, k->tangent};
  for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; ++i) free(buffers[i]);
  free(k);
}

// A copy of n numbers in row i of `to`.
static const double *keep(double *to, size_t i, const double *from, size_t n) {
  if (n > 0) memcpy(to + i * n, from, n * sizeof *to);
  return to + i * n;
}

// Copies the initial states, to which items then point.
static void keep_states(SinewBatch *b, int states) {
  ApiKept *k = b->kept;
  for (size_t i = 0; i < (size_t)states; ++i) {
    SnState *s = &b->state[i];
    s->qpos = keep(k->qpos, i, s->qpos, (size_t)b->m->nq);
    s->qvel = keep(k->qvel, i, s->qvel, (size_t)b->m->nv);
    s->act = keep(k->act, i, s->act, (size_t)b->m->na);
    if (s->past) s->past = keep(k->history, i, s->past, (size_t)sn_past_size(b->m));
    if (s->qacc_warmstart) s->qacc_warmstart = keep(k->warmstart, i, s->qacc_warmstart, (size_t)b->m->nv);
  }
}

// Sets the inputs of the items, which the way back needs, too.
static void set_items(SinewBatch *b, const SinewRollouts *r, int tables) {
  ApiKept *k = b->kept;
  const size_t nu = (size_t)b->m->nu, ctrl = (size_t)r->steps * nu, nq = (size_t)b->m->nq;
  const size_t target = b->cost ? ((size_t)r->steps + 1) * (size_t)b->cost->ntarget : 0;
  const bool own = r->ctrl && !r->one_ctrl;
  const int states = api_batch_states(r);
  keep_states(b, states);
  keep(k->ctrl, 0, r->ctrl ? r->ctrl : b->zero, (own ? (size_t)r->count : 1) * ctrl);
  for (size_t i = 0; i < (size_t)r->count; ++i) {
    if (k->states) b->out[i].qpos = k->states + i * ((size_t)r->steps + 1) * nq;
    k->item[i] = (SnGradient){.model = r->models ? b->models[i] : NULL,
                              .state = b->state[states > 1 ? i : 0],
                              .ctrl = k->ctrl + (own ? i * ctrl : 0),
                              .target = b->cost ? b->target + (tables > 1 ? i * target : 0) : NULL,
                              .nstep = r->steps,
                              .max_velocity = b->max_velocity,
                              .status = SN_GRADIENT_PENDING,
                              .term = r->term ? r->term + i * (size_t)sinew_batch_terms(b) : NULL,
                              .out = &b->out[i]};
  }
}

// Works on all items. Returns false where the device is lost, or the caller has interrupted it.
static bool work(SinewBatch *b, int count, bool forward) {
  const SnClock clock = api_interrupt_clock(&b->interrupt, false);
  SnGradientBatch batch = {
      .settings = sn_default_gradient_settings(), .item = b->kept->item, .count = count, .forward = forward};
  if (b->cfd.use != SINEW_CFD_NONE) batch.settings.cfd = b->cfd.settings;
  const double until = api_interrupt_until(&b->interrupt);
  return sn_backend_gradients(b->backend->backend, b->loaded, &batch, &clock, until) &&
         !api_interrupt_look(&b->interrupt);
}

bool api_kept_rollout(SinewBatch *b, const SinewRollouts *r, int tables) {
  ApiKept *k = b->kept;
  const size_t row = ((size_t)r->steps + 1) * (size_t)b->m->nq;
  set_items(b, r, tables);
  if (!work(b, r->count, true)) return false;
  for (int i = 0; i < r->count; ++i) {
    SnGradient *item = &k->item[i];
    k->rolled[i] = isfinite(item->cost);
    b->cost_of[i] = item->cost;
    b->made[i] = item->steps;
    b->warn[i] = item->warn;
    item->out = NULL;
    item->term = NULL;
  }
  if (k->states && r->out_qpos) memcpy(r->out_qpos, k->states, (size_t)r->count * row * sizeof *r->out_qpos);
  k->count = r->count;
  k->steps = r->steps;
  return true;
}

// ---- the way back ----

static const double *row(const double *x, int i, int rows, int n) {
  return x && n > 0 ? x + (size_t)i * (size_t)rows * (size_t)n : NULL;
}

// Bars by the positions of rollout i as tangents, at each of its states.
static const double *tangent_of(const SinewBatch *b, const SinewTrajectoryBars *bars, bool array, int i) {
  const ApiKept *k = b->kept;
  const int rows = k->steps + 1, nq = b->m->nq, nv = b->m->nv;
  if (!bars->qpos || !array) return row(bars->qpos, i, rows, nv);
  double *tangent = k->tangent + (size_t)i * (size_t)rows * (size_t)nv;
  const double *qpos = row(k->states, i, rows, nq), *bar = row(bars->qpos, i, rows, nq);
  for (int t = 0; t < rows; ++t)
    api_bar_of_tangent(b->m, qpos + (size_t)t * (size_t)nq, bar + (size_t)t * (size_t)nq,
                       tangent + (size_t)t * (size_t)nv);
  return tangent;
}

// Points into the caller's bars, and checks them. Those of a rollout that diverged are not looked at.
static SinewStatus take_bars(SinewBatch *b, const SinewTrajectoryBars *bars, bool array, SinewError *err) {
  const SnModel *m = b->m;
  ApiKept *k = b->kept;
  for (int i = 0; i < k->count; ++i) {
    SnError why = {0};
    if (!k->rolled[i]) continue;
    const double factor = bars->cost ? bars->cost[i] : 1;
    k->bar[i] = (SnTrajectoryBar){.cost = b->cost ? factor : 0,
                                  .qpos = tangent_of(b, bars, array, i),
                                  .qvel = row(bars->qvel, i, k->steps + 1, m->nv),
                                  .act = row(bars->act, i, k->steps + 1, m->na),
                                  .sensordata = row(bars->sensordata, i, k->steps + 1, m->nsensordata),
                                  .ctrl = row(bars->ctrl, i, k->steps, m->nu),
                                  .past = row(bars->history, i, k->steps + 1, sn_past_size(m))};
    const SnCode code = sn_trajectory_bar_check(m, &k->bar[i], k->steps, &why);
    if (code != SN_OK) return api_fail(err, (SinewStatus)code, "bars of rollout %d: %.3900s", i, why.text);
  }
  return SINEW_OK;
}

// Where derivatives go. Those by positions as arrays are made of their tangents afterwards.
static void set_outputs(SinewBatch *b, const SinewGradients *out, bool array) {
  const SnModel *m = b->m;
  ApiKept *k = b->kept;
  double *ctrl = out->ctrl ? out->ctrl : k->ctrl_bar, *qpos = out->qpos && !array ? out->qpos : k->qpos_bar;
  for (size_t i = 0; i < (size_t)k->count; ++i) {
    SnGradient *item = &k->item[i];
    item->status = k->rolled[i] ? SN_GRADIENT_ROLLED : SN_GRADIENT_DIVERGED;
    item->bar = &k->bar[i];
    item->ctrl_bar = ctrl + i * (size_t)k->steps * (size_t)m->nu;
    item->qpos_bar = qpos + i * (size_t)m->nv;
    item->qvel_bar = out->qvel ? out->qvel + i * (size_t)m->nv : NULL;
    item->act_bar = out->act ? out->act + i * (size_t)m->na : NULL;
    item->past_bar = out->history ? out->history + i * (size_t)sn_past_size(m) : NULL;
  }
}

static void clear(double *x, size_t i, size_t n) {
  if (x) memset(x + i * n, 0, n * sizeof *x);
}

// Without a derivative all is 0.
static void give(const SinewBatch *b, const SinewGradients *out, bool array) {
  const SnModel *m = b->m;
  const ApiKept *k = b->kept;
  const size_t nq = (size_t)m->nq, nv = (size_t)m->nv;
  for (size_t i = 0; i < (size_t)k->count; ++i) {
    const SnGradient *item = &k->item[i];
    const bool done = item->status == SN_GRADIENT_DONE;
    if (out->status) out->status[i] = done ? SINEW_OK : SINEW_ERR_DIVERGED;
    if (done && array && out->qpos) api_bar_of_array(m, item->state.qpos, item->qpos_bar, out->qpos + i * nq);
    if (done) continue;
    clear(out->ctrl, i, (size_t)k->steps * (size_t)m->nu);
    clear(out->qpos, i, array ? nq : nv);
    clear(out->qvel, i, nv);
    clear(out->act, i, (size_t)m->na);
    clear(out->history, i, (size_t)sn_past_size(m));
  }
}

SinewStatus api_check_kept(const SinewBatch *b, SinewError *err) {
  if (!b->kept)
    return api_fail(err, SINEW_ERR_STATE, "the batch keeps nothing: it was made without SinewBatchDef.gradients");
  if (b->kept->count == 0) return api_fail(err, SINEW_ERR_STATE, "there are no rollouts yet to go back through");
  return SINEW_OK;
}

SinewStatus api_check_jacobians(const SinewBatch *b, const char *who, SinewError *err) {
  if (sn_past_size(b->m) == 0) return SINEW_OK;
  return api_fail(err, SINEW_ERR_UNSUPPORTED,
                  "%s: actuators or sensors of the model have history buffers (delay, nsample), or springs that yield "
                  "(springyield), of which Jacobians of steps know nothing; sinew_batch_vjp goes through them",
                  who);
}

// ---- parameters ----

static SinewStatus check_parameters(const SinewBatch *b, const SinewGradients *out, SinewError *err) {
  if (!out->parameter) return SINEW_OK;
  if (!out->parameters) return api_fail(err, SINEW_ERR_ARGUMENT, "SinewGradients.parameters is NULL, parameter is not");
  if (!sn_backend_has(b->backend->backend, SN_BACKEND_PARAMETERS))
    return api_fail(err, SINEW_ERR_UNSUPPORTED, "parameters: the backend '%s' makes no derivatives by the model",
                    sn_backend_name(b->backend->backend));
  return api_parameters_fit(out->parameters, api_model_structure(b->model), err);
}

// Derivatives by parameters from those by the models, 0 where there is none.
static void give_parameters(const SinewBatch *b, const SinewGradients *out, const ApiBars *bars) {
  const size_t n = (size_t)sinew_parameters_count(out->parameters);
  for (size_t i = 0; i < (size_t)b->kept->count; ++i) {
    if (b->kept->item[i].status == SN_GRADIENT_DONE)
      sn_model_bar_apply(out->parameters->tangents, &bars->bar[i], 0, out->parameter + i * n);
    else
      clear(out->parameter, i, n);
  }
}

static SinewStatus vjp(SinewBatch *b, const SinewTrajectoryBars *bars_in, const SinewGradients *out_in,
                       SinewError *err) {
  SinewTrajectoryBars bars = sinew_default_bars();
  SinewGradients out = sinew_default_gradients();
  SinewStatus status = bars_in ? api_take(&bars_type, bars_in, &bars, err) : SINEW_OK;
  if (status == SINEW_OK) status = api_take(&gradients_type, out_in, &out, err);
  if (status != SINEW_OK) return status;
  if ((status = api_check_kept(b, err)) != SINEW_OK) return status;
  if (bars.coordinates != SINEW_TANGENT && bars.coordinates != SINEW_ARRAY)
    return api_fail(err, SINEW_ERR_ARGUMENT, "coordinates: %d, allowed is SINEW_TANGENT or SINEW_ARRAY",
                    (int)bars.coordinates);
  const bool array = bars.coordinates == SINEW_ARRAY && b->kept->states;
  status = take_bars(b, &bars, array, err);
  if (status != SINEW_OK) return status;
  ApiBars models = {0};
  if ((status = check_parameters(b, &out, err)) != SINEW_OK) return status;
  if (out.parameter && (status = api_bars_make(&models, out.parameters, (size_t)b->kept->count, err)) != SINEW_OK)
    return status;
  set_outputs(b, &out, array);
  for (int i = 0; i < b->kept->count; ++i) b->kept->item[i].model_bar = models.bar ? &models.bar[i] : NULL;
  api_interrupt_begin(&b->interrupt);
  const bool done = work(b, b->kept->count, false);
  if (done) give(b, &out, array);
  if (done && models.bar) give_parameters(b, &out, &models);
  for (int i = 0; i < b->kept->count; ++i) b->kept->item[i].model_bar = NULL;
  api_bars_free(&models);
  return done ? api_ok(err) : api_batch_unfinished(b, err);
}

SinewStatus sinew_batch_vjp(SinewBatch *batch, const SinewTrajectoryBars *bars, const SinewGradients *out,
                            SinewError *err) {
  if (!batch) return api_fail(err, SINEW_ERR_ARGUMENT, "sinew_batch_vjp: batch is NULL");
  const SinewStatus status = api_enter_pair(&batch->guard, "batch", batch->backend, err);
  if (status != SINEW_OK) return status;
  return api_leave_pair(&batch->guard, batch->backend, vjp(batch, bars, out, err));
}
