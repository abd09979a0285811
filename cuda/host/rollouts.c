// Rollouts of candidates on the device, in groups, in the order of their index. Without a deadline a group is what
// there is room for, and one launch. With one it is what the device runs at once, so that some candidates are complete
// when time is up, and a launch is a slice of steps: what a step takes is measured, each slice gets half of the time
// that is left, and the clock is read in between. A rollout that is interrupted stays on the device, so slices touch no
// result.
//
// A launch that one session waits for takes the groups of others of the model along that go the same way
// (SnRolloutWay), of batches that were submitted or are under way, as far as the device runs all of them at once. Its
// steps are those that the waiting batch has time for. A session whose group is complete by then has nothing left to do
// but to fetch its results.
//
// Where a world has a thread or a part of a warp, a warp computes those again that do not fit: which way a candidate is
// computed then depends on nothing but itself and the size of its batch.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda/host/rollout_staging_private.h"

// ---- buffers ----

static void rollouts_drop(SnBackendModel *x, SnRollouts *r) {
  if (!r) return;
  sn_own_memory_free(x->host, &r->memory);
  free(r);
}

void sn_rollouts_free(SnBackendModel *x) {
  rollouts_drop(x, x->rollouts);
  x->rollouts = NULL;
}

// Bytes of a session's staging buffer for a group, and for one of a wide batch.
static size_t staging_bytes(const SnBackendModel *x, int group, int wide) {
  SnRollouts shared = {.group = group, .count = group}, each = {.group = group, .count = wide};
  sn_rollouts_pack(&shared, x, NULL, false);
  if (wide > 0) sn_rollouts_pack(&each, x, NULL, true);
  const size_t a = shared.memory.staging.used, b = each.memory.staging.used;
  return a > b ? a : b;
}

// Candidates that may be in one launch: a group of the session and those of the model's others. A group of one is what
// every session has from the start, for evaluations: who plans by sampling has more.
static int launch_items(const SnBackendModel *x, int group) {
  int n = group;
  for (const SnBackendModel *y = x->model->session; y && group > 1; y = y->next)
    if (y != x && y->rollouts && y->rollouts->group > 1) n += y->rollouts->group;
  return n;
}

// New memory for groups of that size instead of what there is; for all sessions at once, if it can be.
static SnCode replace(SnBackendModel *x, int group, int wide, SnMemoryRequest *r, SnError *err) {
  const int knots = sn_multistart_knots(x->max_step);
  SnSample sample;
  SnRollouts *old = x->rollouts, *new = calloc(1, sizeof *new);
  if (!new) return sn_fail(err, SN_ERR_MEMORY, "%s: out of memory", x->host->device->name);
  *new = (SnRollouts){.group = group, .wide = wide, .step_seconds = -1};
  r->old = old ? &old->memory : NULL;
  r->kept = sn_rollouts_cut(x, NULL, group, &sample);
  r->staging = staging_bytes(x, group, wide);
  sn_need_launch(x->model, SN_KERNEL_ROLLOUT, launch_items(x, group), knots, &r->most);
  sn_need_launch(x->model, SN_KERNEL_ROLLOUT, group, knots, &r->least);
  if (sn_rollout_way(x->model, group, x->batches) == SN_ROLLOUT_PARTS) r->most.many = r->least.many = group;
  const SnCode code = sn_model_reserve(x, r, &new->memory, err);
  rollouts_drop(x, code == SN_OK ? old : new);
  if (code == SN_OK) x->rollouts = new;
  return code;
}

// The whole batch at once where the budget allows it, together with those of other sessions where it allows that, too;
// else groups of a half, a quarter ... of it, down to what keeps the device busy.
static SnCode reserve(SnBackendModel *x, int n, bool wide, SnError *err) {
  const SnRollouts *old = x->rollouts;
  const int least = sn_mini(n, x->model->shape[SN_KERNEL_ROLLOUT].resident);
  const int group = old ? old->group : 0, each = old ? old->wide : 0;
  for (int k = n;; k = sn_maxi((k + 1) / 2, least)) {
    if (k <= (wide ? each : group)) return SN_OK;  // no larger groups than there are
    SnMemoryRequest r = {.kept = 0};
    snprintf(r.what, sizeof r.what, wide ? "%d rollouts with all states at once" : "%d rollouts at once", k);
    const SnCode code = replace(x, sn_maxi(k, group), wide ? k : each, &r, err);
    if (code == SN_OK || k == least) return code;
  }
}

SnCode sn_rollouts_reserve(SnBackendModel *x, int n, SnError *err) { return reserve(x, n, false, err); }
SnCode sn_batches_reserve(SnBackendModel *x, int n, SnError *err) { return reserve(x, n, true, err); }

// ---- work ----

void sn_rollouts_abandon(SnBackendModel *x) {
  SnDevice *device = x->host->device;
  if (!x->rollouts || !x->rollouts->active) return;
  device->wait(device, x->model->stream);  // the staging buffer may still be on its way
  x->rollouts->active = false;
}

static bool has_room(const SnRollouts *r, const SnBatch *batch) { return !sn_batch_wide(batch) || r->wide > 0; }

// slices: a group is what the device runs at once.
static void begin_group(SnBackendModel *x, const SnBatch *batch, int first, bool slices) {
  SnRollouts *r = x->rollouts;
  r->first = first;
  r->count = sn_mini(batch->count - first, sn_batch_wide(batch) ? r->wide : r->group);
  r->way = sn_rollout_way(x->model, batch->count, x->batches);
  if (slices) r->count = sn_mini(r->count, sn_rollout_resident(x->model, r->way));
  r->done = 0;
  r->all = batch->nstep + 1;
  sn_rollouts_pack(r, x, batch, false);
  sn_staging_send(x->model, &r->memory.staging, false);
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

// The session that waits, and others that go the same way, as long as a block of its own is there for each of their
// candidates. Worlds that have a thread each are in a launch of their own.
static Together together(const SnBackendModel *x) {
  const SnRolloutWay way = x->rollouts->way;
  const int most = sn_mini(x->model->need.items[SN_KERNEL_ROLLOUT], sn_rollout_resident(x->model, way));
  Together t = {.count = 0};
  join(&t, x->rollouts);
  for (SnBackendModel *y = x->model->session; y && t.count < SN_SAMPLES && way != SN_ROLLOUT_THREADS; y = y->next) {
    SnRollouts *r = y->rollouts;
    if (y != x && r && r->active && r->way == way && r->done < r->all && t.candidates + r->count <= most) join(&t, r);
  }
  return t;
}

// The next `steps` of all of them. False: the device is lost.
static bool launch(SnDeviceModel *d, const Together *t, int steps) {
  SnDevice *device = d->host->device;
  SnWork work;
  const SnLaunchShape shape = sn_rollout_launch(d, t->r[0]->way, t->candidates, &work);
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
  sn_staging_fetch(d, &r->memory.staging);
  device->wait(device, d->stream);
  return !device->lost;
}

// Whether a world of the group, which is done, had more contacts or rows than one of a thread or of a part of a warp
// has room for.
static bool is_too_small(const SnRollouts *r) {
  bool full = false;
  for (int c = 0; r->way != SN_ROLLOUT_WARPS && c < r->count; ++c) full |= r->warn[c] & SN_WARN_FULL;
  return full;
}

// Those of the group begin once more, by warps, which have room for all that the model can make.
static void begin_again(SnBackendModel *x) {
  SnRollouts *r = x->rollouts;
  r->way = SN_ROLLOUT_WARPS;
  r->done = 0;
  r->sample->again = 1;
  sn_staging_send(x->model, &r->memory.staging, false);
}

// Its first group is what runs at once, for nobody knows yet whether there is a deadline.
void sn_rollouts_submit(SnBackendModel *x, const SnBatch *batch) {
  SnRollouts *r = x->rollouts;
  if (!r || r->active || !has_room(r, batch)) return;
  r->active = true;
  begin_group(x, batch, 0, true);
}

bool sn_rollouts_run(SnBackendModel *x, const SnBatch *batch, const SnClock *clock, double until) {
  SnRollouts *r = x->rollouts;
  const bool slices = until < (double)INFINITY;
  if (!r || !has_room(r, batch)) return false;
  if (!r->active) {
    r->active = true;
    begin_group(x, batch, 0, slices);
  }
  while (run_group(x, clock, until)) {
    if (is_too_small(r)) {
      begin_again(x);
      continue;
    }
    sn_rollouts_give(r, x->model, batch);
    if (r->first + r->count == batch->count) {
      r->active = false;
      return true;
    }
    begin_group(x, batch, r->first + r->count, slices);
  }
  return false;
}
