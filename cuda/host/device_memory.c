// Memory of the device host: buffers on the device, within a budget, and staging buffers that go there and back.
#include "cuda/host/host.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// ---- buffers ----

SnDeviceBuffer sn_device_buffer_alloc(SnDeviceHost *host, size_t bytes) {
  SnDeviceBuffer buffer = {host->device->alloc(host->device, sn_aligned(bytes + 1)), sn_aligned(bytes + 1)};
  if (!buffer.p) return (SnDeviceBuffer){0};
  host->used += buffer.bytes;
  return buffer;
}

void sn_device_buffer_free(SnDeviceHost *host, SnDeviceBuffer *buffer) {
  if (!buffer->p) return;
  host->device->release(host->device, buffer->p);
  host->used -= buffer->bytes;
  *buffer = (SnDeviceBuffer){0};
}

// "9.3 GB" into text.
static const char *bytes_text(size_t bytes, char text[32]) {
  static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
  double x = (double)bytes;
  int k = 0;
  while (x >= 999.95 && k < 4) {
    x /= 1000;
    ++k;
  }
  snprintf(text, 32, k ? "%.1f %s" : "%.0f %s", x, units[k]);
  return text;
}

SnCode sn_host_admit(const SnBackendModel *x, size_t more, size_t freed, const char *what, SnError *err) {
  const SnDeviceHost *host = x->host;
  const size_t others = host->used - freed;
  if (more <= host->budget && others <= host->budget - more) return SN_OK;
  char a[32], b[32], c[32];
  if (x->max_step == 0)
    return sn_fail(err, SN_ERR_LIMIT, "%s: model '%s' takes %s, the budget is %s of which %s are taken",
                   host->device->name, x->model->name, bytes_text(more, a), bytes_text(host->budget, b),
                   bytes_text(others, c));
  return sn_fail(
      err, SN_ERR_LIMIT,
      "%s: model '%s' with horizon %d needs %s for %s, the budget is %s of which %s are taken; fewer of them "
      "or a shorter horizon need less",
      host->device->name, x->model->name, x->max_step, bytes_text(more, a), what, bytes_text(host->budget, b),
      bytes_text(others, c));
}

SnCode sn_host_refuse(const SnBackendModel *x, size_t bytes, const char *what, SnError *err) {
  const SnDeviceHost *host = x->host;
  if (host->device->lost)
    return sn_fail(err, SN_ERR_STATE, "%s: the device is lost: %s", host->device->name, host->device->reason);
  char a[32], b[32];
  if (x->max_step == 0)
    return sn_fail(err, SN_ERR_LIMIT, "%s: model '%s' takes %s, and the device has no memory for it (%s free)",
                   host->device->name, x->model->name, bytes_text(bytes, a),
                   bytes_text(host->device->memory_free(host->device), b));
  return sn_fail(err, SN_ERR_LIMIT,
                 "%s: model '%s' with horizon %d needs %s for %s, and the device has no memory for it (%s free); fewer "
                 "of them or a shorter horizon need less",
                 host->device->name, x->model->name, x->max_step, bytes_text(bytes, a), what,
                 bytes_text(host->device->memory_free(host->device), b));
}

void *sn_cut(char *p, size_t *used, size_t bytes) {
  void *at = p ? p + *used : NULL;
  *used += sn_aligned(bytes);
  return at;
}

// ---- staging buffers ----

bool sn_staging_create(SnDeviceHost *host, SnStaging *s, size_t bytes) {
  *s = (SnStaging){.capacity = bytes};
  s->host = host->device->alloc_host(host->device, sn_aligned(bytes + 1));
  if (s->host) s->device = sn_device_buffer_alloc(host, bytes);
  if (s->host && s->device.p) return true;
  sn_staging_free(host, s);
  return false;
}

void sn_staging_free(SnDeviceHost *host, SnStaging *s) {
  if (s->host) host->device->release_host(host->device, s->host);
  sn_device_buffer_free(host, &s->device);
  *s = (SnStaging){0};
}

void sn_staging_begin(SnStaging *s) { s->used = s->results = 0; }

void *sn_staging_put(SnStaging *s, size_t bytes, void *device) {
  void *at = s->host ? s->host + s->used : NULL;
  void *there = s->device.p ? s->device.p + s->used : NULL;
  if (device) memcpy(device, &there, sizeof there);
  s->used += sn_aligned(bytes);
  assert(!s->host || s->used <= sn_aligned(s->capacity));
  return at;
}

sn_real *sn_staging_reals(SnStaging *s, const double *x, size_t n) {
  sn_real *there = NULL;
  if (!x) return NULL;
  sn_real *at = sn_staging_put(s, n * sizeof(sn_real), (void *)&there);
  for (size_t i = 0; at && i < n; ++i) at[i] = (sn_real)x[i];
  return there;
}

const unsigned char *sn_staging_bytes(SnStaging *s, const unsigned char *x, size_t n) {
  const unsigned char *there = NULL;
  if (!x) return NULL;
  unsigned char *at = sn_staging_put(s, n, (void *)&there);
  if (at && n) memcpy(at, x, n);
  return there;
}

void sn_staging_take(const SnStaging *s, double *to, const sn_real *there, size_t n) {
  if (!to) return;
  const sn_real *from = (const void *)(s->host + ((const char *)there - s->device.p));
  for (size_t i = 0; i < n; ++i) to[i] = (double)from[i];
}

void sn_staging_results(SnStaging *s) { s->results = s->used; }

void sn_staging_send(SnDeviceModel *d, SnStaging *s, bool all) {
  SnDevice *device = d->host->device;
  const size_t bytes = s->results && !all ? s->results : s->used;
  if (bytes) device->copy_in(device, d->stream, s->device.p, s->host, bytes);
}

void sn_staging_fetch(SnDeviceModel *d, SnStaging *s) {
  SnDevice *device = d->host->device;
  const size_t bytes = s->used - s->results;
  if (bytes) device->copy_out(device, d->stream, s->host + s->results, s->device.p + s->results, bytes);
}

static double some[1];
static const unsigned char some_pairs[1];
static const SnCfdSettings full_cfd = {.pair = some_pairs};
const SnState sn_full_state = {0, some, some, some, some, some, some, &full_cfd, some, NULL, NULL};

SnCfd sn_staging_cfd(SnStaging *s, const SnDeviceModel *d, const SnCfdSettings *cfd) {
  SnCfd to = sn_cfd(cfd);
  to.pair = sn_staging_bytes(s, to.pair, (size_t)d->m.ncpair);
  return to;
}

void sn_staging_state(SnStaging *s, const SnDeviceModel *d, const SnState *state, SnRollout *rollout) {
  const SnModel *m = &d->m;
  rollout->time = (sn_real)state->time;
  rollout->qpos = sn_staging_reals(s, state->qpos, (size_t)m->nq);
  rollout->qvel = sn_staging_reals(s, state->qvel, (size_t)m->nv);
  rollout->act = sn_staging_reals(s, state->act, (size_t)m->na);
  rollout->mocap_pos = sn_staging_reals(s, state->mocap_pos, 3 * (size_t)m->nmocap);
  rollout->mocap_quat = sn_staging_reals(s, state->mocap_quat, 4 * (size_t)m->nmocap);
  rollout->qacc_warmstart = sn_staging_reals(s, state->qacc_warmstart, (size_t)m->nv);
  rollout->before = sn_staging_reals(s, state->before, (size_t)m->nu);
  rollout->cfd = sn_staging_cfd(s, d, state->cfd);
  rollout->grid = sn_state_grid(state);
}

// ---- states of rollouts ----

// The arrays of a trajectory that a rollout may write: X(the program's, the rollout's, numbers of a row, rows), those
// of all states or of the last one.
#define TRAJECTORY(X)                               \
  X(time, out_time, 1, rollout->nstep + 1)          \
  X(qpos, out_qpos, d->m.nq, rollout->nstep + 1)    \
  X(qvel, out_qvel, d->m.nv, rollout->nstep + 1)    \
  X(act, out_act, d->m.na, rollout->nstep + 1)      \
  X(qacc, out_qacc, d->m.nv, rollout->nstep + 1)    \
  X(cost, out_cost, 1, rollout->nstep + 1)          \
  X(qacc_warmstart, out_qacc_warmstart, d->m.nv, 1) \
  X(sensordata, out_sensordata, d->m.nsensordata, rollout->nstep + 1)

void sn_staging_trajectory(SnStaging *s, const SnDeviceModel *d, const SnTrajectory *out, SnRollout *rollout) {
#define PUT(name, place, n, all) \
  if (out->name) sn_staging_put(s, (size_t)(all) * (size_t)(n) * sizeof(sn_real), (void *)&rollout->place);
  TRAJECTORY(PUT)
#undef PUT
}

// Rows of n numbers that have come back: `rows` of them, NaN up to row `all`.
static void give_rows(const SnStaging *s, double *to, const sn_real *there, int n, int rows, int all) {
  const size_t end = (size_t)rows * (size_t)n;
  sn_staging_take(s, to, there, end);
  for (size_t i = end; i < (size_t)all * (size_t)n; ++i) to[i] = (double)NAN;
}

void sn_staging_give(const SnStaging *s, const SnDeviceModel *d, const SnRollout *rollout, int rows,
                     const SnTrajectory *out) {
  const int missing = rollout->nstep + 1 - rows;
#define GIVE(name, place, n, all) \
  if (out->name) give_rows(s, out->name, rollout->place, n, sn_maxi((all)-missing, 0), all);
  TRAJECTORY(GIVE)
#undef GIVE
}
#undef TRAJECTORY
