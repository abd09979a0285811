// The library's one export: the host side of a device, as the table that planner/backend/backend_impl.h describes.
#include <stdio.h>
#include <stdlib.h>

#include "cuda/host/rollout_staging_private.h"
#include "cuda/kernels/kernels.h"

// Of a budget that nobody set: what is left to others of the device's free memory.
static const double kept_free = 0.1;

static SnDeviceHost *device_host_of(const SnBackend *b) { return (SnDeviceHost *)(uintptr_t)b; }

// ---- about it ----

static void plugin_describe(const SnBackend *b, char *text, int size) {
  const SnDevice *device = device_host_of(b)->device;
  snprintf(text, (size_t)size, "%s, %s, %s", device->name, sizeof(sn_real) == sizeof(double) ? "double" : "float",
           device->text);
}

static bool plugin_lost(const SnBackend *b, char *text, int size) {
  const SnDevice *device = device_host_of(b)->device;
  if (device->lost) snprintf(text, (size_t)size, "%s", device->reason);
  return device->lost;
}

static SnBackendMemory plugin_memory(const SnBackend *b) {
  const SnDeviceHost *host = device_host_of(b);
  return (SnBackendMemory){host->used, host->budget, host->device->memory};
}

// ---- models ----

static void plugin_unload(SnBackend *b, SnBackendModel *x) {
  (void)b;
  sn_session_free(x);
}

static SnBackendModel *plugin_load(SnBackend *b, const SnParts *model, const SnParts *cost, int max_step,
                                   SnError *err) {
  SnBackendModel *x = sn_session_create(device_host_of(b), model, cost, max_step, err);
  if (!x || sn_session_reserve(x, SN_CAPACITY_ROLLOUTS, 1, err) == SN_OK) return x;
  sn_session_free(x);
  return NULL;
}

static void plugin_update(SnBackend *b, SnBackendModel *x) {
  (void)b;
  sn_session_update(x);
}

static void plugin_abandon(SnBackend *b, SnBackendModel *x) {
  (void)b;
  sn_rollouts_abandon(x);
  sn_gradients_abandon(x);
  sn_multistarts_abandon(x);
  x->rolling = x->computing = false;
  x->job = NULL;
}

static bool usable(const SnBackendModel *x) { return x->model && !x->host->device->lost; }

static int plugin_profile(SnBackend *b, SnBackendModel *x, SnBackendStage *stage, int capacity) {
  (void)b;
  return usable(x) ? sn_device_profile(x->model, stage, capacity) : 0;
}

// ---- rollouts ----

static SnCode plugin_reserve_rollouts(SnBackend *b, SnBackendModel *x, int count, SnError *err) {
  (void)b;
  return count <= x->capacity[SN_CAPACITY_ROLLOUTS] ? SN_OK : sn_session_reserve(x, SN_CAPACITY_ROLLOUTS, count, err);
}

static SnCode plugin_reserve_batches(SnBackend *b, SnBackendModel *x, int count, SnError *err) {
  (void)b;
  const bool before = x->batches, there = count <= x->capacity[SN_CAPACITY_BATCHES];
  x->batches = true;  // what is reserved depends on it
  const SnCode code = there ? SN_OK : sn_session_reserve(x, SN_CAPACITY_BATCHES, count, err);
  if (code != SN_OK) x->batches = before;
  return code;
}

static void begin_batch(SnBackendModel *x, const SnBatch *batch) {
  if (x->rolling) return;
  sn_session_update(x);
  // Where nobody has reserved capacity, the first batch of its size does; without memory there are more groups.
  sn_session_reserve(x, sn_batch_wide(batch) ? SN_CAPACITY_BATCHES : SN_CAPACITY_ROLLOUTS, batch->count, NULL);
  x->rolling = true;
}

static void plugin_rollouts_submit(SnBackend *b, SnBackendModel *x, const SnBatch *batch) {
  (void)b;
  if (batch->count == 0) return;
  begin_batch(x, batch);
  if (usable(x)) sn_rollouts_submit(x, batch);
}

static bool plugin_rollouts(SnBackend *b, SnBackendModel *x, const SnBatch *batch, const SnClock *clock, double until) {
  (void)b;
  if (batch->count == 0) return true;
  begin_batch(x, batch);
  const bool all = usable(x) && sn_rollouts_run(x, batch, clock, until) && usable(x);
  x->rolling = !all;
  return all;
}

// ---- gradients ----

static SnCode plugin_reserve_gradients(SnBackend *b, SnBackendModel *x, int count, SnError *err) {
  (void)b;
  return count <= x->capacity[SN_CAPACITY_GRADIENTS] ? SN_OK : sn_session_reserve(x, SN_CAPACITY_GRADIENTS, count, err);
}

static bool plugin_gradients(SnBackend *b, SnBackendModel *x, SnGradientBatch *batch, const SnClock *clock,
                             double until) {
  (void)b;
  if (!x->computing) sn_session_update(x);
  const bool all = usable(x) && sn_gradients_run(x, batch, clock, until) && usable(x);
  x->computing = !all;
  return all;
}

// ---- multistarts ----

static SnCode plugin_reserve_multistart(SnBackend *b, SnBackendModel *x, int starts, SnError *err) {
  (void)b;
  return sn_session_reserve(x, SN_CAPACITY_STARTS, starts, err);
}

static void begin_job(SnBackendModel *x, const SnMultistartJob *job) {
  if (x->job == job) return;
  sn_session_update(x);
  x->job = job;
}

static void plugin_multistart_submit(SnBackend *b, SnBackendModel *x, SnMultistartJob *job) {
  (void)b;
  begin_job(x, job);
  if (usable(x)) sn_multistarts_submit(x, job);
}

static bool plugin_multistart(SnBackend *b, SnBackendModel *x, SnMultistartJob *job, const SnClock *clock,
                              double until) {
  (void)b;
  begin_job(x, job);
  return usable(x) && sn_multistarts_run(x, job, clock, until) && usable(x);
}

static void plugin_multistart_end(SnBackend *b, SnBackendModel *x, SnMultistartJob *job) {
  (void)b;
  if (x->model)
    sn_multistarts_end(x, job);
  else
    job->done = job->used = 0;
  x->job = NULL;
}

// ---- opening and closing ----

static void plugin_destroy(SnBackend *b) {
  SnDeviceHost *host = device_host_of(b);
  // Sessions that the program has not unloaded go with their models.
  while (host->models) sn_session_free(host->models->session);
  host->device->close(host->device);
  free(host);
}

static const SnBackend plugin_table = {.job_iterations = SN_JOB_ITERATIONS,
                                       .batches = true,
                                       .describe = plugin_describe,
                                       .lost = plugin_lost,
                                       .memory = plugin_memory,
                                       .load_views = plugin_load,
                                       .unload = plugin_unload,
                                       .update = plugin_update,
                                       .abandon = plugin_abandon,
                                       .profile = plugin_profile,
                                       .reserve_rollouts = plugin_reserve_rollouts,
                                       .reserve_batches = plugin_reserve_batches,
                                       .rollouts = plugin_rollouts,
                                       .rollouts_submit = plugin_rollouts_submit,
                                       .reserve_gradients = plugin_reserve_gradients,
                                       .gradients = plugin_gradients,
                                       .reserve_multistart = plugin_reserve_multistart,
                                       .multistart = plugin_multistart,
                                       .multistart_end = plugin_multistart_end,
                                       .multistart_submit = plugin_multistart_submit,
                                       .destroy = plugin_destroy};

static SnBackend *plugin_open(const SnBackendOptions *options, SnError *err) {
  const int threads = options->block_threads;
  if (threads != 0 && threads != 1 && threads != SN_PART_OF_WARP && threads != SN_WARP) {
    sn_fail(err, SN_ERR_ARGUMENT, "block threads: %d, allowed are 1, %d and %d, and 0 for what is best", threads,
            SN_PART_OF_WARP, SN_WARP);
    return NULL;
  }
  SnDevice *device = sn_device_open(options->device, options->fault ? options->fault : "", err);
  if (!device) return NULL;
  SnDeviceHost *host = calloc(1, sizeof *host);
  if (!host) {
    device->close(device);
    sn_fail(err, SN_ERR_MEMORY, "%s: out of memory", device->name);
    return NULL;
  }
  host->table = plugin_table;
  host->table.name = device->name;
  host->device = device;
  host->block_threads = options->block_threads;
  const double free_bytes = (double)device->memory_free(device);
  host->budget = (size_t)(options->memory > 0 ? options->memory : (1 - kept_free) * free_bytes);
  return &host->table;
}

__attribute__((visibility("default"))) const SnPlugin sn_plugin = {.version = SN_PLUGIN_VERSION, .open = plugin_open};
