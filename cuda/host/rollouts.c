// Rollouts of candidates on the device, in groups, in the order of their index. Without a deadline a group is what
// there is room for, and one launch. With one it is what the device runs at once, so that some candidates are complete
// when time is up, and a launch is a slice of steps: what a step takes is measured, each slice gets half of the time
// that is left, and the clock is read in between. A rollout that is interrupted stays on the device, so slices touch no
// result.
//
// A launch that one session waits for takes the groups of others of the model along, of batches that were submitted or
// are under way, as far as the device runs all of them at once. Its steps are those that the waiting batch has time
// for. A session whose group is complete by then has nothing left to do but to fetch its results.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda/host/host.h"

typedef struct SnRollouts {
  int group;            // candidates at once
  SnStaging staging;    // inputs, then results
  SnDeviceBuffer kept;  // controls and states between launches
  // A group of the batch.
  SnSample *sample;              // in the staging buffer
  const SnSample *sample_there;  // on the device
  sn_real *total, *sum;          // in the staging buffer
  int *status, *warn;
  // The batch under way.
  bool active;
  int first, count;  // its group: candidates [first, first + count) of the batch
  int done, all;     // calls of sn_rollout_step that every rollout of the group has had, of all: the last one ends it
  double step_seconds;  // that one takes, measured; < 0: not yet
} SnRollouts;

// ---- buffers ----

// Candidates' controls and states for a group, cut from `buffer` or counted. Returns the bytes.
static size_t cut_kept(const SnBackendModel *x, char *buffer, int group, SnSample *sample) {
  const SnModel *m = &x->model->m;
  const size_t n = (size_t)group, steps = (size_t)x->max_step;
  size_t used = 0;
  sample->ctrl = sn_cut(buffer, &used, n * steps * (size_t)m->nu * sizeof(sn_real));
  sample->saved = sn_cut(buffer, &used, n * (size_t)sn_rollout_saved_size(m) * sizeof(sn_real));
  return used;
}

// A group of a batch into the staging buffer; with batch NULL it only counts, for as many steps as there may be.
static void pack(SnRollouts *r, const SnBackendModel *x, const SnBatch *batch) {
  // What is counted has all arrays; an address stands for each.
  static const double there[1];
  static const unsigned char pairs[1];
  static const SnCfdSettings cfd = {.pair = pairs};
  static const SnState state = {0, there, there, there, there, there, there, &cfd};
  const SnBatch full = {
      .state = &state, .nstate = 1, .ctrl = there, .nctrl = 1, .target = there, .ntable = 1, .nstep = x->max_step};
  const SnBatch *b = batch ? batch : &full;
  const SnDeviceModel *d = x->model;
  const SnWeights weights = sn_session_weights(x);
  const size_t nterm = (size_t)d->cost.nterm, nstep = (size_t)b->nstep, n = (size_t)r->group;
  SnSample s = {.first = b->first + r->first, .count = r->count, .noisy = b->noise != NULL};
  SnStaging *p = &r->staging;
  sn_staging_begin(p);
  r->sample = sn_staging_put(p, sizeof s, (void *)&r->sample_there);
  sn_staging_state(p, d, b->state, &s.rollout);
  s.rollout.running = sn_staging_reals(p, weights.running, nterm);
  s.rollout.terminal = sn_staging_reals(p, weights.terminal, nterm);
  s.rollout.target = sn_staging_reals(p, b->target, (nstep + 1) * (size_t)d->cost.ntarget);
  s.rollout.nstep = b->nstep;
  s.rollout.max_velocity = (sn_real)b->max_velocity;
  s.base = sn_staging_reals(p, b->ctrl, nstep * (size_t)d->m.nu);
  if (b->noise) s.noise = sn_noise(b->noise);
  sn_staging_results(p);
  r->total = sn_staging_put(p, n * sizeof(sn_real), (void *)&s.total);
  r->sum = sn_staging_put(p, n * nterm * sizeof(sn_real), (void *)&s.sum);
  r->status = sn_staging_put(p, n * sizeof(int), (void *)&s.status);
  r->warn = sn_staging_put(p, n * sizeof(int), (void *)&s.warn);
  sn_staging_put(p, n * sizeof(int), (void *)&s.t);
  cut_kept(x, r->kept.p, r->group, &s);
  if (r->sample) *r->sample = s;
}

static void rollouts_drop(SnBackendModel *x, SnRollouts *r) {
  if (!r) return;
  sn_staging_free(x->host, &r->staging);
  sn_device_buffer_free(x->host, &r->kept);
  free(r);
}

void sn_rollouts_free(SnBackendModel *x) {
  rollouts_drop(x, x->rollouts);
  x->rollouts = NULL;
}

static int scratch_size(const SnBackendModel *x) {
  return sn_device_scratch_size(x->model, SN_KERNEL_ROLLOUT, sn_multistart_knots(x->max_step));
}

// Bytes of a session's buffers for a group: staging buffer, and what is kept.
static size_t buffer_bytes(const SnBackendModel *x, int group, size_t *staging) {
  SnRollouts r = {.group = group, .count = group};
  SnSample sample;
  pack(&r, x, NULL);
  *staging = r.staging.used;
  return cut_kept(x, NULL, group, &sample);
}

// Candidates that may be in one launch: a group of the session and those of the model's others. A group of one is what
// every session has from the start, for evaluations: who plans by sampling has more.
static int launch_items(const SnBackendModel *x, int group) {
  int n = group;
  for (const SnBackendModel *y = x->model->session; y && group > 1; y = y->next)
    if (y != x && y->rollouts && y->rollouts->group > 1) n += y->rollouts->group;
  return n;
}

static size_t block_growth(const SnBackendModel *x, int items) {
  return sn_device_block_growth(x->model, SN_KERNEL_ROLLOUT, items, scratch_size(x));
}

static bool take_blocks(SnBackendModel *x, int items) {
  SnDeviceModel *d = x->model;
  if (!sn_device_block_reserve(d, SN_KERNEL_ROLLOUT, items, scratch_size(x))) return false;
  d->rollouts = sn_maxi(d->rollouts, items);
  return true;
}

// Buffers for a group in *out, and for `items` in one launch if it can be; or the reason why the device has none.
static SnCode take_buffers(SnBackendModel *x, int group, int items, const char *what, SnRollouts **out, SnError *err) {
  size_t staging = 0;
  const size_t kept = buffer_bytes(x, group, &staging);
  SnRollouts *r = *out = calloc(1, sizeof *r);
  if (!r) return sn_fail(err, SN_ERR_MEMORY, "%s: out of memory", x->host->device->name);
  *r = (SnRollouts){.group = group, .step_seconds = -1};
  r->kept = sn_device_buffer_alloc(x->host, kept);
  if (r->kept.p && sn_staging_create(x->host, &r->staging, staging) && (take_blocks(x, items) || take_blocks(x, group)))
    return SN_OK;
  rollouts_drop(x, r);
  return sn_host_refuse(x, kept + staging, what, err);
}

// The whole batch at once where the budget allows it, together with those of other sessions where it allows that, too;
// else groups of a half, a quarter ... of it, down to what keeps the device busy.
SnCode sn_rollouts_reserve(SnBackendModel *x, int n, SnError *err) {
  SnRollouts *old = x->rollouts;
  const size_t freed = old ? old->kept.bytes + old->staging.device.bytes : 0;
  const int least = sn_mini(n, x->model->shape[SN_KERNEL_ROLLOUT].shape[0].resident);
  for (int group = n;; group = sn_maxi((group + 1) / 2, least)) {
    if (old && group <= old->group) return SN_OK;  // no larger groups than there are
    char what[40];
    snprintf(what, sizeof what, "%d rollouts at once", group);
    size_t staging = 0;
    const size_t kept = buffer_bytes(x, group, &staging);
    const size_t own = kept + staging + 4 * 64;
    int items = launch_items(x, group);
    if (sn_host_admit(x, own + block_growth(x, items), freed, what, NULL) != SN_OK) items = group;
    SnCode code = sn_host_admit(x, own + block_growth(x, items), freed, what, err);
    SnRollouts *r = NULL;
    if (code == SN_OK) code = take_buffers(x, group, items, what, &r, err);
    if (code == SN_OK) {
      rollouts_drop(x, old);
      x->rollouts = r;
    }
    if (code == SN_OK || group == least) return code;
  }
}

// ---- work ----

void sn_rollouts_abandon(SnBackendModel *x) {
  SnDevice *device = x->host->device;
  if (!x->rollouts || !x->rollouts->active) return;
  device->wait(device, x->model->stream);  // the staging buffer may still be on its way
  x->rollouts->active = false;
}

// slices: a group is what the device runs at once.
static void begin_group(SnBackendModel *x, const SnBatch *batch, int first, bool slices) {
  SnRollouts *r = x->rollouts;
  r->first = first;
  r->count = sn_mini(batch->count - first, r->group);
  if (slices) r->count = sn_device_shape(x->model, SN_KERNEL_ROLLOUT, r->count).blocks;
  r->done = 0;
  r->all = batch->nstep + 1;
  pack(r, x, batch);
  sn_staging_send(x->host, &r->staging, x->model->stream);
}

// Steps of the next slice, or 0 when there is no time for one.
static int slice_steps(const SnRollouts *r, int left, const SnClock *clock, double until) {
  if (!(until < (double)INFINITY)) return left;
  const double time = until - clock->now(clock->context);
  if (!(time > 0)) return 0;
  if (r->step_seconds < 0) return 1;
  const double steps = 0.5 * time / r->step_seconds;
  return steps >= left ? left : sn_maxi((int)steps, 1);
}

// Sessions whose groups go on in one launch.
typedef struct Together {
  SnRollouts *r[SN_SAMPLES];
  int count, candidates;
} Together;

static void join(Together *t, SnRollouts *r) {
  t->r[t->count++] = r;
  t->candidates += r->count;
}

// The session that waits, and others as long as a block of its own is there for each of their candidates.
static Together together(const SnBackendModel *x) {
  const SnKernelShapes *shapes = &x->model->shape[SN_KERNEL_ROLLOUT];
  const int most = sn_mini(x->model->rollouts, shapes->shape[shapes->count - 1].resident);
  Together t = {.count = 0};
  join(&t, x->rollouts);
  for (SnBackendModel *y = x->model->session; y && t.count < SN_SAMPLES; y = y->next) {
    SnRollouts *r = y->rollouts;
    if (y != x && r && r->active && r->done < r->all && t.candidates + r->count <= most) join(&t, r);
  }
  return t;
}

// The next `steps` of all of them. False: the device is lost.
static bool launch(SnDeviceModel *d, const Together *t, int steps) {
  SnDevice *device = d->host->device;
  const SnLaunchShape shape = sn_device_shape(d, SN_KERNEL_ROLLOUT, t->candidates);
  SnWork work = sn_device_work(d, SN_KERNEL_ROLLOUT, t->candidates);
  for (int k = 0; k < t->count; ++k) {
    const SnRollouts *r = t->r[k];
    work.turn[work.nturn++] = (SnSampleTurn){(SnSample *)(uintptr_t)r->sample_there, r->done, r->done + steps};
  }
  device->launch(device, d->stream, SN_KERNEL_ROLLOUT, &shape, &work);
  device->wait(device, d->stream);
  if (device->lost) return false;
  for (int k = 0; k < t->count; ++k) t->r[k]->done = sn_mini(t->r[k]->done + steps, t->r[k]->all);
  return true;
}

// All steps of the group, or as many as there is time for (false).
static bool run_group(SnBackendModel *x, const SnClock *clock, double until) {
  SnRollouts *r = x->rollouts;
  SnDevice *device = x->host->device;
  SnDeviceModel *d = x->model;
  while (r->done < r->all) {
    const int steps = slice_steps(r, r->all - r->done, clock, until);
    if (steps == 0) return false;
    const Together t = together(x);
    const double began = clock->now(clock->context);
    if (!launch(d, &t, steps)) return false;
    r->step_seconds = (clock->now(clock->context) - began) / steps;
  }
  sn_staging_fetch(x->host, &r->staging, d->stream);
  device->wait(device, d->stream);
  return !device->lost;
}

static void give_results(const SnBackendModel *x, const SnBatch *batch) {
  const SnRollouts *r = x->rollouts;
  const int nterm = x->model->cost.nterm;
  for (int c = 0; c < r->count; ++c) {
    const size_t i = (size_t)r->first + (size_t)c;
    const bool diverged = r->status[c] != SN_ROLLOUT_DONE;
    const sn_real *sum = r->sum + (size_t)c * (size_t)nterm;
    double *term = batch->term ? batch->term + i * (size_t)nterm : NULL;
    for (int k = 0; term && k < nterm; ++k) term[k] = diverged ? (double)INFINITY : (double)sum[k];
    batch->cost[i] = diverged ? (double)INFINITY : (double)r->total[c];
    if (batch->warn) batch->warn[i] = r->warn[c];
    batch->done[i] = 1;
  }
}

// Its first group is what runs at once, for nobody knows yet whether there is a deadline.
void sn_rollouts_submit(SnBackendModel *x, const SnBatch *batch) {
  SnRollouts *r = x->rollouts;
  if (!r || r->active) return;
  r->active = true;
  begin_group(x, batch, 0, true);
}

bool sn_rollouts_run(SnBackendModel *x, const SnBatch *batch, const SnClock *clock, double until) {
  SnRollouts *r = x->rollouts;
  const bool slices = until < (double)INFINITY;
  if (!r) return false;
  if (!r->active) {
    r->active = true;
    begin_group(x, batch, 0, slices);
  }
  while (run_group(x, clock, until)) {
    give_results(x, batch);
    if (r->first + r->count == batch->count) {
      r->active = false;
      return true;
    }
    begin_group(x, batch, r->first + r->count, slices);
  }
  return false;
}
