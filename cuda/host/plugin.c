// The library's one export: the host side of a device, as the table that planner/backend/plugin.h describes.
#include <stdio.h>
#include <stdlib.h>

#include "cuda/host/host.h"
#include "cuda/kernels/kernels.h"

// Of a budget that nobody set: what is left to others of the device's free memory.
static const double kept_free = 0.1;

static void plugin_describe(const SnPlugin *p, char *text, int size) {
  const SnDeviceHost *e = (const SnDeviceHost *)p;
  snprintf(text, (size_t)size, "%s, %s, %s", p->name, sizeof(sn_real) == sizeof(double) ? "double" : "float",
           e->device->text);
}

static void plugin_unload(SnPlugin *p, SnPluginSession *x) {
  (void)p;
  if (!x) return;
  sn_device_model_leave(x);
  free(x);
}

static SnPluginSession *plugin_load(SnPlugin *p, const SnParts *model, const SnParts *cost, int max_step,
                                    SnError *err) {
  SnDeviceHost *e = (SnDeviceHost *)p;
  SnPluginSession *x = calloc(1, sizeof *x);
  if (!x) {
    sn_fail(err, SN_ERR_MEMORY, "%s: out of memory", p->name);
    return NULL;
  }
  x->host = e;
  x->max_step = max_step;
  SnDeviceModel *d = sn_device_model_get(e, model, cost, err);
  if (!d) {
    free(x);
    return NULL;
  }
  sn_device_model_enter(d, x);
  return x;
}

static SnCode plugin_reserve(SnPlugin *p, SnPluginSession *x, int rollouts, int gradients, int starts, SnError *err) {
  (void)p;
  return sn_session_reserve(x, rollouts, gradients, starts, err);
}

static void plugin_abandon(SnPlugin *p, SnPluginSession *x) {
  (void)p;
  sn_rollouts_abandon(x);
  sn_gradients_abandon(x);
  sn_multistarts_abandon(x);
}

static SnCode plugin_update(SnPlugin *p, SnPluginSession *x, const SnParts *model, const SnParts *cost, SnError *err) {
  (void)p;
  return sn_device_model_change(x, model, cost, err);
}

static bool usable(const SnPluginSession *x) { return x->model && !x->host->device->lost; }

static void plugin_rollouts_submit(SnPlugin *p, SnPluginSession *x, const SnPluginBatch *batch) {
  (void)p;
  if (usable(x)) sn_rollouts_submit(x, batch);
}

static bool plugin_rollouts(SnPlugin *p, SnPluginSession *x, const SnPluginBatch *batch, const SnPluginClock *clock,
                            double until) {
  (void)p;
  return usable(x) && sn_rollouts_run(x, batch, clock, until) && usable(x);
}

static bool plugin_gradients(SnPlugin *p, SnPluginSession *x, SnPluginGradientBatch *batch, const SnPluginClock *clock,
                             double until) {
  (void)p;
  return usable(x) && sn_gradients_run(x, batch, clock, until) && usable(x);
}

static void plugin_multistart_submit(SnPlugin *p, SnPluginSession *x, SnPluginMultistart *job) {
  (void)p;
  if (usable(x)) sn_multistarts_submit(x, job);
}

static bool plugin_multistart(SnPlugin *p, SnPluginSession *x, SnPluginMultistart *job, const SnPluginClock *clock,
                              double until) {
  (void)p;
  return usable(x) && sn_multistarts_run(x, job, clock, until) && usable(x);
}

static void plugin_multistart_end(SnPlugin *p, SnPluginSession *x, SnPluginMultistart *job) {
  (void)p;
  if (x->model) sn_multistarts_end(x, job);
}

static bool plugin_lost(const SnPlugin *p, char *text, int size) {
  const SnDeviceHost *e = (const SnDeviceHost *)p;
  if (e->device->lost) snprintf(text, (size_t)size, "%s", e->device->reason);
  return e->device->lost;
}

static void plugin_memory(const SnPlugin *p, SnPluginMemory *memory) {
  const SnDeviceHost *e = (const SnDeviceHost *)p;
  *memory = (SnPluginMemory){e->used, e->budget, e->device->memory};
}

static int plugin_profile(SnPlugin *p, SnPluginSession *x, SnPluginStage *stage, int capacity) {
  (void)p;
  return usable(x) ? sn_device_profile(x->model, stage, capacity) : 0;
}

static void plugin_close(SnPlugin *p) {
  SnDeviceHost *e = (SnDeviceHost *)p;
  if (!e) return;
  // Sessions that the program has not unloaded go with their models.
  while (e->models) plugin_unload(p, e->models->session);
  e->device->close(e->device);
  free(e);
}

static const SnPlugin plugin_table = {.version = SN_PLUGIN_VERSION,
                                      .job_iterations = SN_JOB_ITERATIONS,
                                      .real_bytes = (int)sizeof(sn_real),
                                      .describe = plugin_describe,
                                      .load = plugin_load,
                                      .unload = plugin_unload,
                                      .update = plugin_update,
                                      .reserve = plugin_reserve,
                                      .rollouts_submit = plugin_rollouts_submit,
                                      .rollouts = plugin_rollouts,
                                      .gradients = plugin_gradients,
                                      .multistart_submit = plugin_multistart_submit,
                                      .multistart = plugin_multistart,
                                      .multistart_end = plugin_multistart_end,
                                      .abandon = plugin_abandon,
                                      .lost = plugin_lost,
                                      .memory = plugin_memory,
                                      .profile = plugin_profile,
                                      .close = plugin_close};

__attribute__((visibility("default"))) SnPluginOpen sn_plugin_open;

SnPlugin *sn_plugin_open(const SnPluginOptions *options, SnError *err) {
  if (options->version != SN_PLUGIN_VERSION) {
    sn_fail(err, SN_ERR_UNSUPPORTED, "the library is of version %d of the interface, the program of %d",
            SN_PLUGIN_VERSION, options->version);
    return NULL;
  }
  const char *chain = options->chain && options->chain[0] ? options->chain : "kernel";
  if (strcmp(chain, "kernel") && strcmp(chain, "scan")) {
    sn_fail(err, SN_ERR_ARGUMENT, "chain: '%s', allowed are kernel and scan", chain);
    return NULL;
  }
  if (options->block_threads % 32 || options->block_threads < 0 || options->block_threads > SN_KERNEL_THREADS) {
    sn_fail(err, SN_ERR_ARGUMENT, "block threads: %d, allowed are multiples of 32 up to %d", options->block_threads,
            SN_KERNEL_THREADS);
    return NULL;
  }
  if (!(options->block_shared >= 0 && options->block_shared <= 1e9)) {
    sn_fail(err, SN_ERR_ARGUMENT, "shared memory of a block: %g bytes, allowed are 0 to 1e9", options->block_shared);
    return NULL;
  }
  SnDevice *device = sn_device_open(options->device, options->fault, err);
  if (!device) return NULL;
  SnDeviceHost *e = calloc(1, sizeof *e);
  if (!e) {
    device->close(device);
    sn_fail(err, SN_ERR_MEMORY, "%s: out of memory", device->name);
    return NULL;
  }
  e->table = plugin_table;
  e->table.name = device->name;
  e->device = device;
  e->scan = !strcmp(chain, "scan");
  e->rule = (SnShapeRule){options->block_threads, (size_t)options->block_shared};
  const double free_bytes = (double)device->memory_free(device);
  e->budget = (size_t)(options->memory > 0 ? options->memory : (1 - kept_free) * free_bytes);
  return &e->table;
}
