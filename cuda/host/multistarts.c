// A session's multistart (sn_backend_multistart): its memory and its job. What Adam remembers lies in that memory, on
// the device, from job to job, and goes with it. What a job has come to is taken over after every launch and given to
// the job when it ends, so that a device that is lost meanwhile leaves the job as it was given.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda/host/gradient_memory_private.h"

// ---- memory ----

static void multistarts_free(SnDeviceHost *host, SnMultistarts *r) {
  if (!r) return;
  sn_own_memory_free(host, &r->memory);
  free(r->item);
  free(r->view);
  free(r->so_far.ctrl);
  free(r->so_far.next);
  free(r->so_far.best_term);
  free(r);
}

void sn_multistarts_free(SnBackendModel *x) {
  SnMultistarts *r = x->multistarts;
  if (!r) return;
  r->job = NULL;
  sn_multistart_iterations_change(x->model);
  x->multistarts = NULL;
  multistarts_free(x->host, r);
}

// What is kept of a start beside its item: X(place, numbers).
#define START_MEMORY(X)    \
  X(base, rows)            \
  X(offset, knots)         \
  X(best, knots)           \
  X(gradient, knots)       \
  X(moments.first, knots)  \
  X(moments.second, knots) \
  X(ctrl, rows)            \
  X(ctrl_bar, rows)

// Cuts the memory of all starts, or counts it where there is none yet. Nothing is remembered in it.
static size_t cut_starts(const SnBackendModel *x, SnMultistarts *r) {
  const size_t nu = (size_t)x->model->m.nu, rows = (size_t)x->max_step * nu;
  const size_t knots = (size_t)sn_multistart_knots(x->max_step) * nu;
  char *const p = r->memory.kept.p;
  size_t used = 0;
  r->start = sn_cut(p, &used, (size_t)r->starts * sizeof *r->start);
  for (int i = 0; i < r->starts; ++i) {
    SnMultistartStart *s = &r->view[i];
    sn_gradient_memory_cut(x->model, x->max_step, p, &used, &r->item[i]);
#define CUT(place, count) s->place = sn_cut(p, &used, (count) * sizeof(sn_real));
    START_MEMORY(CUT)
#undef CUT
    s->moments.power1 = s->moments.power2 = 1;
    s->term = r->item[i].item.rollout.sum;
  }
  return used;
}

// The starts' structures, with moments that remember nothing, go to the device once; from then on only the device
// writes them.
static bool send_starts(SnDeviceModel *d, SnMultistarts *r) {
  SnDevice *device = d->host->device;
  const size_t bytes = (size_t)r->starts * sizeof *r->start;
  SnMultistartStart *host = device->alloc_host(device, bytes);
  if (!host) return false;
  memcpy(host, r->view, bytes);
  device->copy_in(device, d->stream, r->start, host, bytes);
  device->wait(device, d->stream);
  device->release_host(device, host);
  return !device->lost;
}

// What a launch of all sessions of the model takes, this one with other starts. It goes over as many states as the
// longest of its plans has, and so do the lists of states of all its items.
static void need_together(SnBackendModel *x, SnMultistarts *r, SnMemoryRequest *request) {
  int longest = x->max_step, starts = 0;
  size_t staging = 0;
  for (SnBackendModel *y = x->model->session; y; y = y->next)
    if (y->multistarts) longest = sn_maxi(longest, y->max_step);
  for (SnBackendModel *y = x->model->session; y; y = y->next) {
    SnMultistarts *of = y == x ? r : y->multistarts;
    if (!of) continue;
    starts += of->starts;
    staging += sn_multistart_iterations_staging(y, of, longest);
  }
  sn_gradient_need(x->model, starts, longest, request);
  request->most.staging = request->least.staging = staging;
}

static SnCode multistarts_create(SnBackendModel *x, SnMultistarts *r, SnError *err) {
  SnDeviceModel *d = x->model;
  const size_t n = (size_t)r->starts, rows = (size_t)x->max_step * (size_t)d->m.nu;
  SnMemoryRequest request = {.old = x->multistarts ? &x->multistarts->memory : NULL};
  snprintf(request.what, sizeof request.what, "adam from %d start%s", r->starts, n == 1 ? "" : "s");
  r->item = calloc(n, sizeof *r->item);
  r->view = calloc(n, sizeof *r->view);
  r->so_far.ctrl = calloc(rows + 1, sizeof(double));
  r->so_far.next = calloc(rows + 1, sizeof(double));
  r->so_far.best_term = calloc((size_t)d->cost.nterm + 1, sizeof(double));
  if (!r->item || !r->view || !r->so_far.ctrl || !r->so_far.next || !r->so_far.best_term)
    return sn_fail(err, SN_ERR_MEMORY, "%s: out of memory for %s", x->host->device->name, request.what);
  need_together(x, r, &request);
  request.kept = cut_starts(x, r);
  const SnCode code = sn_model_reserve(x, &request, &r->memory, err);
  if (code != SN_OK) return code;
  cut_starts(x, r);
  return send_starts(d, r) ? SN_OK : sn_host_refuse(x, request.kept, request.what, err);
}

SnCode sn_multistarts_reserve(SnBackendModel *x, int n, SnError *err) {
  SnMultistarts *r = calloc(1, sizeof *r);
  if (!r) return sn_fail(err, SN_ERR_MEMORY, "%s: out of memory", x->host->device->name);
  r->starts = n;
  r->place = -1;
  sn_multistart_iterations_change(x->model);
  const SnCode code = multistarts_create(x, r, err);
  if (code == SN_OK) sn_multistarts_free(x);
  if (code == SN_OK)
    x->multistarts = r;
  else
    multistarts_free(x->host, r);
  return code;
}

// ---- jobs ----

static void copy(double *to, const double *from, size_t n) {
  if (to && n > 0) memcpy(to, from, n * sizeof *to);
}

// What is in and out of a job, from one to another. The latter's warnings and first cost are what came of it alone.
static void copy_results(const SnBackendModel *x, const SnMultistartJob *from, SnMultistartJob *to, int nstep) {
  const size_t rows = (size_t)nstep * (size_t)x->model->m.nu;
  to->best_cost = from->best_cost;
  to->gradient_norm = from->gradient_norm;
  to->best_start = from->best_start;
  copy(to->ctrl, from->ctrl, rows);
  copy(to->best_term, from->best_term, (size_t)x->model->cost.nterm);
}

void sn_multistarts_submit(SnBackendModel *x, SnMultistartJob *job) {
  SnMultistarts *r = x->multistarts;
  if (!r || r->job == job || job->starts > r->starts || job->nstep > x->max_step) return;
  if (r->job) sn_multistarts_abandon(x);
  x->model->iterations.stale = true;  // the next one takes it along
  r->job = job;
  r->place = -1;
  r->so_far.done = r->so_far.warn = 0;
  r->so_far.measured = job->measured;
  r->so_far.cost_before = (double)NAN;
  copy_results(x, job, &r->so_far, job->nstep);
}

bool sn_multistarts_run(SnBackendModel *x, SnMultistartJob *job, const SnClock *clock, double until) {
  sn_multistarts_submit(x, job);
  return x->multistarts && x->multistarts->job == job && sn_multistart_iterations_run(x, clock, until);
}

void sn_multistarts_end(SnBackendModel *x, SnMultistartJob *job) {
  SnMultistarts *r = x->multistarts;
  job->done = job->used = 0;
  if (!r || r->job != job) return;
  sn_multistarts_abandon(x);
  if (r->so_far.done == 0 || x->host->device->lost) return;
  job->done = r->so_far.done;
  job->used = job->count;
  job->warn |= r->so_far.warn;
  if (!job->measured) job->cost_before = r->so_far.cost_before;
  job->measured = r->so_far.measured;
  copy_results(x, &r->so_far, job, job->nstep);
  copy(job->next, r->so_far.next, (size_t)job->nstep * (size_t)x->model->m.nu);
}

void sn_multistarts_abandon(SnBackendModel *x) {
  SnMultistarts *r = x->multistarts;
  if (!r || !r->job) return;
  sn_multistart_iterations_change(x->model);
  r->job = NULL;
}
