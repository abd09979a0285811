// A session's multistart (sn_backend_multistart): its buffer and its job. What Adam remembers lies in the buffer, on
// the device, from job to job, and goes with it. What a job has come to is taken over after every launch and given to
// the job when it ends, so that a device that is lost meanwhile leaves the job as it was given.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda/host/gradient_memory_private.h"

// ---- memory ----

static void multistarts_free(SnDeviceHost *host, SnMultistarts *r) {
  if (!r) return;
  sn_device_buffer_free(host, &r->buffer);
  free(r->memory);
  free(r->view);
  free(r->ctrl);
  free(r->next);
  free(r->best_term);
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

static sn_real *reals(char *p, size_t *used, size_t n) { return (sn_real *)sn_cut(p, used, n * sizeof(sn_real)); }

static void cut_start(const SnDeviceModel *d, int max_step, char *p, size_t *used, SnGradientMemory *memory,
                      SnMultistartStart *s) {
  const size_t nu = (size_t)d->m.nu, rows = (size_t)max_step * nu, knots = (size_t)sn_multistart_knots(max_step) * nu;
  sn_gradient_memory_cut(d, max_step, p, used, memory);
  s->base = reals(p, used, rows);
  s->offset = reals(p, used, knots);
  s->best = reals(p, used, knots);
  s->gradient = reals(p, used, knots);
  s->moments.first = reals(p, used, knots);
  s->moments.second = reals(p, used, knots);
  s->moments.power1 = s->moments.power2 = 1;  // nothing is remembered yet
  s->ctrl = reals(p, used, rows);
  s->ctrl_bar = reals(p, used, rows);
  s->moments.power1 = s->moments.power2 = 1;
  s->term = memory->sum;
}

static size_t cut_buffer(const SnDeviceModel *d, int max_step, char *p, SnMultistarts *r) {
  size_t used = 0;
  r->start = sn_cut(p, &used, (size_t)r->starts * sizeof *r->start);
  for (int i = 0; i < r->starts; ++i) cut_start(d, max_step, p, &used, &r->memory[i], &r->view[i]);
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

// What a launch of all sessions of the model takes, this one with another buffer.
typedef struct Together {
  int starts;
  size_t staging;
} Together;

// A launch goes over as many states as the longest of its plans has, and so do the lists of states of all its items.
static Together together(SnBackendModel *x, SnMultistarts *r) {
  SnBackendModel *const all = x->model->session;
  Together t = {.starts = r->starts};
  int longest = x->max_step;
  for (SnBackendModel *y = all; y; y = y->next)
    if (y->multistarts) longest = sn_maxi(longest, y->max_step);
  t.staging = sn_multistart_iterations_staging(x, r, longest);
  for (SnBackendModel *y = all; y; y = y->next) {
    if (y == x || !y->multistarts) continue;
    t.starts += y->multistarts->starts;
    t.staging += sn_multistart_iterations_staging(y, y->multistarts, longest);
  }
  return t;
}

static SnCode multistarts_create(SnBackendModel *x, SnMultistarts *r, SnError *err) {
  SnDeviceHost *host = x->host;
  SnDeviceModel *d = x->model;
  const size_t n = (size_t)r->starts, old = x->multistarts ? x->multistarts->buffer.bytes : 0;
  char what[64];
  snprintf(what, sizeof what, "adam from %d start%s", r->starts, n == 1 ? "" : "s");
  r->memory = calloc(n, sizeof *r->memory);
  r->view = calloc(n, sizeof *r->view);
  r->ctrl = calloc((size_t)x->max_step * (size_t)d->m.nu + 1, sizeof *r->ctrl);
  r->next = calloc((size_t)x->max_step * (size_t)d->m.nu + 1, sizeof *r->next);
  r->best_term = calloc((size_t)d->cost.nterm + 1, sizeof *r->best_term);
  if (!r->memory || !r->view || !r->ctrl || !r->next || !r->best_term)
    return sn_fail(err, SN_ERR_MEMORY, "%s: out of memory for %s", host->device->name, what);
  const Together t = together(x, r);
  const size_t buffer = cut_buffer(d, x->max_step, NULL, r);
  const SnCode code = sn_model_gradients_reserve(x, t.starts, t.staging, buffer, old, what, err);
  if (code != SN_OK) return code;
  if (!sn_multistart_iterations_create(d))
    return sn_fail(err, SN_ERR_MEMORY, "%s: out of memory for %s", host->device->name, what);
  r->buffer = sn_device_buffer_alloc(host, buffer);
  if (!r->buffer.p) return sn_host_refuse(x, buffer, what, err);
  cut_buffer(d, x->max_step, r->buffer.p, r);
  return send_starts(d, r) ? SN_OK : sn_host_refuse(x, buffer, what, err);
}

SnCode sn_multistarts_reserve(SnBackendModel *x, int n, SnError *err) {
  SnMultistarts *r = calloc(1, sizeof *r);
  if (!r) return sn_fail(err, SN_ERR_MEMORY, "%s: out of memory", x->host->device->name);
  r->starts = n;
  r->place = -1;
  sn_multistart_iterations_change(x->model);
  const SnCode code = multistarts_create(x, r, err);
  if (code != SN_OK) {
    multistarts_free(x->host, r);
    return code;
  }
  sn_multistarts_free(x);
  x->multistarts = r;
  return SN_OK;
}

// ---- jobs ----

static void copy(double *to, const double *from, size_t n) {
  if (n > 0) memcpy(to, from, n * sizeof *to);
}

void sn_multistarts_submit(SnBackendModel *x, SnMultistartJob *job) {
  SnMultistarts *r = x->multistarts;
  if (!r || r->job == job || job->starts > r->starts || job->nstep > x->max_step) return;
  if (r->job) sn_multistarts_abandon(x);
  sn_multistart_iterations_add(x->model);
  r->job = job;
  r->place = -1;
  r->done = r->warn = 0;
  r->measured = job->measured;
  r->cost_before = (double)NAN;
  r->best_cost = job->best_cost;
  r->gradient_norm = job->gradient_norm;
  r->best_start = job->best_start;
  copy(r->ctrl, job->ctrl, (size_t)job->nstep * (size_t)x->model->m.nu);
  copy(r->best_term, job->best_term, (size_t)x->model->cost.nterm);
}

bool sn_multistarts_run(SnBackendModel *x, SnMultistartJob *job, const SnClock *clock, double until) {
  sn_multistarts_submit(x, job);
  return x->multistarts && x->multistarts->job == job && sn_multistart_iterations_run(x, clock, until);
}

void sn_multistarts_end(SnBackendModel *x, SnMultistartJob *job) {
  SnMultistarts *r = x->multistarts;
  job->done = job->used = 0;
  if (!r || r->job != job) return;
  sn_multistart_iterations_change(x->model);
  r->job = NULL;
  if (r->done == 0 || x->host->device->lost) return;
  job->done = r->done;
  job->used = job->count;
  if (!job->measured) job->cost_before = r->cost_before;
  job->best_cost = r->best_cost;
  job->gradient_norm = r->gradient_norm;
  job->best_start = r->best_start;
  job->warn |= r->warn;
  copy(job->ctrl, r->ctrl, (size_t)job->nstep * (size_t)x->model->m.nu);
  copy(job->best_term, r->best_term, (size_t)x->model->cost.nterm);
  if (job->next) copy(job->next, r->next, (size_t)job->nstep * (size_t)x->model->m.nu);
}

void sn_multistarts_abandon(SnBackendModel *x) {
  SnMultistarts *r = x->multistarts;
  if (!r || !r->job) return;
  sn_multistart_iterations_change(x->model);
  r->job = NULL;
}
