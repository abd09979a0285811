// Values and gradients of a session's items (sn_backend_gradients). Each pending one is a gradient item; all of them go
// through the launches of gradient_launches.c in one launch each. What goes in and what comes out crosses in one copy
// each way.
//
// With a deadline the clock is read between the groups of launches, after the group before has ended. Called again, the
// batch goes on with its next group; a session's groups may lie between another's, for all that must last from group
// to group is in the session's own buffer.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda/host/gradient_memory_private.h"

typedef struct SnGradients {
  SnOwnMemory memory;
  int count;
  SnGradientMemory *item;      // (count)
  const SnGradientItem **out;  // (count) where they come back, on the host; NULL: not part of the launch
  SnGradientItem *gradient;    // (count) while they are made
  // the batch
  bool active;
  SnGradientLaunches launches;
  int next;        // group of launches
  int generation;  // of the pool that its plan is for
} SnGradients;

// ---- memory ----

static void gradients_free(SnDeviceHost *host, SnGradients *g) {
  if (!g) return;
  sn_own_memory_free(host, &g->memory);
  free(g->item);
  free(g->out);
  free(g->gradient);
  free(g);
}

void sn_gradients_free(SnBackendModel *x) {
  gradients_free(x->host, x->gradients);
  x->gradients = NULL;
}

static size_t cut_items(const SnBackendModel *x, SnGradients *g) {
  size_t used = 0;
  for (int i = 0; i < g->count; ++i)
    sn_gradient_memory_cut(x->model, x->max_step, g->memory.kept.p, &used, &g->item[i]);
  return used;
}

// ---- what goes in, and where things come back ----

// Puts the derivative of the caller's own cost.
static SnRolloutBar put_bar(const SnDeviceModel *d, SnStaging *staging, const SnGradient *item) {
  const SnTrajectoryBar *bar = item->bar;
  const size_t nstep = (size_t)item->nstep, rows = nstep + 1;
  SnRolloutBar x = {.on = 1, .cost = (sn_real)bar->cost};
  x.qpos = sn_staging_reals(staging, bar->qpos, rows * (size_t)d->m.nv);
  x.qvel = sn_staging_reals(staging, bar->qvel, rows * (size_t)d->m.nv);
  x.act = sn_staging_reals(staging, bar->act, rows * (size_t)d->m.na);
  x.sensordata = sn_staging_reals(staging, bar->sensordata, rows * (size_t)d->m.nsensordata);
  x.ctrl = sn_staging_reals(staging, bar->ctrl, nstep * (size_t)d->m.nu);
  return x;
}

// Puts an item's inputs; on the device it lacks weights.
static SnGradientItem put_inputs(const SnDeviceModel *d, SnStaging *staging, const SnGradientBatch *batch, int i,
                                 const SnGradientMemory *memory) {
  const SnGradient *item = &batch->item[i];
  SnGradientItem x = sn_gradient_item_put(d, staging, &item->state, item->target, item->nstep);
  sn_gradient_item_use(&x, memory);
  x.method = batch->settings.method;
  x.rollout.ctrl = sn_staging_reals(staging, item->ctrl, (size_t)item->nstep * (size_t)d->m.nu);
  x.rollout.max_velocity = (sn_real)item->max_velocity;
  x.continues = item->continues;
  if (!batch->forward && item->bar) x.vjp.bar = put_bar(d, staging, item);
  return x;
}

// Whether the caller wants the states. Of a rollout that is made again he has them.
static bool gives_states(const SnGradient *item) { return item->out && item->status == SN_GRADIENT_PENDING; }

// Space for an item's results. States that the caller wants are kept there and not in the session's own memory.
static void put_outputs(const SnDeviceModel *d, SnStaging *staging, const SnGradient *item, SnGradientItem *x) {
  const size_t nstep = (size_t)item->nstep, real = sizeof(sn_real);
  sn_staging_put(staging, (size_t)d->cost.nterm * real, (void *)&x->rollout.sum);
  sn_staging_put(staging, (size_t)sn_tangent_size(&d->m) * real, (void *)&x->vjp.state_bar);
  sn_staging_put(staging, nstep * (size_t)d->m.nu * real, (void *)&x->vjp.ctrl_bar);
  if (item->target_bar)
    sn_staging_put(staging, (nstep + 1) * (size_t)d->cost.ntarget * real, (void *)&x->vjp.target_bar);
  if (gives_states(item)) sn_staging_trajectory(staging, d, item->out, &x->rollout);
}

// A rollout that was made before is made again: the same bits, and nothing has to be kept from call to call.
static bool takes_part(const SnGradientBatch *batch, int i) {
  const SnGradientStatus status = batch->item[i].status;
  return status == SN_GRADIENT_PENDING || (status == SN_GRADIENT_ROLLED && !batch->forward);
}

// The launch of a batch, without its plan.
static SnGradientLaunches launches_of(const SnGradientBatch *batch) {
  SnGradientLaunches p = {.forward = batch->forward,
                          .sweep = batch->settings.method == SN_GRADIENT_SWEEP,
                          .products = batch->settings.method == SN_GRADIENT_PRODUCTS};
  for (int i = 0; i < batch->count; ++i) {
    if (!takes_part(batch, i)) continue;
    ++p.ngradient;
    p.states = sn_maxi(p.states, batch->item[i].nstep + 1);
  }
  return p;
}

// Puts the batch into the staging buffer: inputs of all items, then space for the results of all.
static void pack(const SnBackendModel *session, SnGradients *g, const SnGradientBatch *batch, SnGradientLaunches *p) {
  const SnDeviceModel *d = session->model;
  SnStaging *staging = &g->memory.staging;
  SnGradientItem *gradient = g->gradient;
  SnRollout weights = {0};
  sn_staging_begin(staging);
  sn_staging_weights(staging, session, &weights);
  const SnCfd cfd = sn_staging_cfd(staging, d, &batch->settings.cfd);
  for (int i = 0, r = 0; i < batch->count; ++i) {
    if (!takes_part(batch, i)) continue;
    SnGradientItem x = put_inputs(d, staging, batch, i, &g->item[i]);
    x.rollout.running = weights.running;
    x.rollout.terminal = weights.terminal;
    if (!batch->forward) x.vjp.cfd = cfd;  // else what is kept of an earlier way back stays
    x.state = sn_gradient_launches_states(d, p, r, &g->item[i], batch->settings.method, staging);
    gradient[r++] = x;
  }
  sn_staging_results(staging);
  SnGradientItem *host = sn_staging_put(staging, (size_t)p->ngradient * sizeof *host, (void *)&p->gradient);
  for (int i = 0, r = 0; i < batch->count; ++i) {
    g->out[i] = NULL;
    if (!takes_part(batch, i)) continue;
    put_outputs(d, staging, &batch->item[i], &gradient[r]);
    g->out[i] = host ? host + r : NULL;
    ++r;
  }
  for (int r = 0; host && r < p->ngradient; ++r) host[r] = gradient[r];
}

// Bytes of the largest staging buffer: one with everything that may be left out. Nothing is read. 0: out of memory.
static size_t staging_bytes(const SnBackendModel *x, SnGradients *g) {
  static double some[1];
  static const SnTrajectoryBar bar = {0, some, some, some, some, some, NULL};
  static const SnTrajectory out = {some, some, some, some, some, some, some, some, NULL};
  SnGradientBatch batch = {.settings = {.method = SN_GRADIENT_PRODUCTS, .cfd = *sn_full_state.cfd}, .count = g->count};
  SnGradient *item = batch.item = g->count > 0 ? calloc((size_t)g->count, sizeof *item) : NULL;
  if (!item) return 0;
  for (int i = 0; i < g->count; ++i)
    item[i] = (SnGradient){.state = sn_full_state,
                           .ctrl = some,
                           .target = some,
                           .nstep = x->max_step,
                           .status = SN_GRADIENT_PENDING,
                           .bar = &bar,
                           .out = &out,
                           .target_bar = some};
  SnGradientLaunches p = launches_of(&batch);
  p.product_items = g->count;
  pack(x, g, &batch, &p);
  free(item);
  return g->memory.staging.used;
}

static SnCode gradients_create(SnBackendModel *x, SnGradients *g, SnError *err) {
  const size_t n = (size_t)g->count;
  SnMemoryRequest r = {.old = x->gradients ? &x->gradients->memory : NULL};
  snprintf(r.what, sizeof r.what, "%d gradient%s", g->count, n == 1 ? "" : "s");
  g->item = calloc(n, sizeof *g->item);
  g->out = calloc(n, sizeof *g->out);
  g->gradient = calloc(n, sizeof *g->gradient);
  if (g->item && g->out && g->gradient) {
    r.kept = cut_items(x, g);
    r.staging = staging_bytes(x, g);
  }
  if (!r.staging) return sn_fail(err, SN_ERR_MEMORY, "%s: out of memory for %s", x->host->device->name, r.what);
  sn_gradient_need(x->model, g->count, x->max_step, &r);
  const SnCode code = sn_model_reserve(x, &r, &g->memory, err);
  if (code == SN_OK) cut_items(x, g);
  return code;
}

SnCode sn_gradients_reserve(SnBackendModel *x, int n, SnError *err) {
  SnGradients *g = calloc(1, sizeof *g);
  if (!g) return sn_fail(err, SN_ERR_MEMORY, "%s: out of memory", x->host->device->name);
  g->count = n;
  const SnCode code = gradients_create(x, g, err);
  gradients_free(x->host, code == SN_OK ? x->gradients : g);
  if (code == SN_OK) x->gradients = g;
  return code;
}

// ---- running ----

static void begin(SnBackendModel *x, const SnGradientBatch *batch) {
  SnDeviceModel *d = x->model;
  SnGradients *g = x->gradients;
  g->launches = launches_of(batch);
  g->next = 0;
  g->generation = d->generation;
  g->active = true;
  if (g->launches.ngradient == 0) return;
  sn_gradient_launches_plan(d, &g->launches);
  pack(x, g, batch, &g->launches);
  sn_staging_send(d, &g->memory.staging, true);
}

// The derivatives of an item that has come back. Where there are none a kernel has left zeros.
static void give_bars(const SnStaging *staging, const SnDeviceModel *d, const SnGradientItem *x, SnGradient *item) {
  const size_t nv = (size_t)d->m.nv, nstep = (size_t)item->nstep;
  const sn_real *state_bar = x->vjp.state_bar;
  sn_staging_take(staging, item->ctrl_bar, x->vjp.ctrl_bar, nstep * (size_t)d->m.nu);
  sn_staging_take(staging, item->qpos_bar, state_bar, nv);
  sn_staging_take(staging, item->qvel_bar, state_bar + nv, nv);
  sn_staging_take(staging, item->act_bar, state_bar + 2 * nv, (size_t)d->m.na);
  sn_staging_take(staging, item->target_bar, x->vjp.target_bar, (nstep + 1) * (size_t)d->cost.ntarget);
  item->norm = (double)x->norm;
}

// The results of an item, as sn_gradient_run gives them.
static void give_item(const SnGradients *g, const SnDeviceModel *d, SnGradientBatch *batch, int i) {
  const SnStaging *staging = &g->memory.staging;
  const SnGradientItem *x = g->out[i];
  SnGradient *item = &batch->item[i];
  const bool diverged = x->status == SN_GRADIENT_DIVERGED;
  if (gives_states(item))
    sn_staging_give(staging, d, &x->rollout, diverged ? x->rollout.t : item->nstep + 1, item->out);
  item->cost = diverged ? (double)INFINITY : (double)x->rollout.total;
  sn_staging_take(staging, item->term, x->rollout.sum, (size_t)d->cost.nterm);  // infinite where it diverged
  item->warn = x->rollout.warn;
  item->steps = x->rollout.t;
  item->status = x->status == SN_GRADIENT_PENDING ? SN_GRADIENT_ROLLED : (SnGradientStatus)x->status;
  if (item->status != SN_GRADIENT_ROLLED) give_bars(staging, d, x, item);
}

void sn_gradients_abandon(SnBackendModel *x) {
  SnDevice *device = x->host->device;
  if (!x->gradients || !x->gradients->active) return;
  device->wait(device, x->model->stream);  // the staging buffer may still be on its way
  x->gradients->active = false;
}

bool sn_gradients_run(SnBackendModel *x, SnGradientBatch *batch, const SnClock *clock, double until) {
  SnGradients *g = x->gradients;
  SnDeviceModel *d = x->model;
  SnDevice *device = x->host->device;
  const bool timed = until < (double)INFINITY;
  if (!g || batch->count > g->count) return false;
  for (int i = 0; i < batch->count; ++i)
    if (batch->item[i].nstep > x->max_step) return false;
  // A pool that has moved took what was half done with it.
  if (g->active && g->generation != d->generation) sn_gradients_abandon(x);
  if (!g->active) begin(x, batch);
  const int groups = g->launches.ngradient > 0 ? sn_gradient_launches_count(&g->launches) : 0;
  while (g->next < groups) {
    if (timed && clock->now(clock->context) >= until) return false;
    sn_gradient_launches_put(d, &g->launches, g->next++);
    if (timed) device->wait(device, d->stream);
    if (device->lost) return false;
  }
  if (groups > 0) sn_staging_fetch(d, &g->memory.staging);
  device->wait(device, d->stream);
  if (device->lost) return false;
  for (int i = 0; i < batch->count; ++i)
    if (g->out[i] && takes_part(batch, i)) give_item(g, d, batch, i);
  g->active = false;
  return true;
}
