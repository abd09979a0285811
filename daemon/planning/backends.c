#include "daemon/planning/backends_private.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/realtime.h"
#include "daemon/planning/device_proxy_private.h"
#include "physics/base/clock.h"

// Time between two questions for the device's memory [s].
#define LOOK 0.1

static SnCode open_cpu(SnBackends *b, const SnConfig *config, SnError *err) {
  const int threads = config->threads > 0 ? config->threads : sn_realtime_count();
  b->pool = sn_pool_create(threads < SN_MAX_THREADS ? threads : SN_MAX_THREADS, err);
  if (!b->pool) return err->code;
  b->cpu = sn_backend_cpu(b->pool, err);
  return b->cpu ? SN_OK : err->code;
}

static SnBackend *open_device(const SnBackends *b, const SnConfig *config, const char *name, SnError *err) {
  SnBackendOptions options = sn_default_backend_options();
  options.folder = config->backend_folder;
  options.device = config->device;
  options.memory = (double)config->device_megabytes * 1048576;
  options.fault = config->backend_fault;
  return sn_backend_open(name, b->pool, &options, err);
}

static void update_memory(SnBackends *b) {
  const SnBackendMemory memory = sn_backend_memory(b->device);
  b->looked = sn_clock_now();
  pthread_mutex_lock(&b->mutex);
  b->view.memory = memory;
  pthread_mutex_unlock(&b->mutex);
}

SnCode sn_backends_open(SnBackends *b, const SnConfig *config, const SnLog *log, void (*wake)(void *context),
                        void *context, SnError *err) {
  *b = (SnBackends){.log = log};
  pthread_mutex_init(&b->mutex, NULL);
  SnCode code = open_cpu(b, config, err);
  if (code != SN_OK) return code;
  const char *name = config->backend;
  const bool automatic = !strcmp(name, "auto");
  char text[256];
  sn_backend_describe(b->cpu, text, sizeof text);
  if (automatic || !strcmp(name, "cpu")) {
    sn_log_event(log, SN_LOG_INFO, "backend: %s, %s", text,
                 automatic ? "as auto chooses: no device has been measured to be faster; backend: cuda takes one"
                           : "as configured");
    return SN_OK;
  }
  SnBackend *device = open_device(b, config, name, err);
  if (!device) {
    const SnError why = *err;
    return sn_fail(err, why.code, "backend is '%s', which cannot be opened: %s; backend: auto or cpu plans on the CPU",
                   name, why.text);
  }
  if (!(b->device = sn_device_proxy_create(device, wake, context, err))) return err->code;
  b->view.present = true;
  snprintf(b->view.name, sizeof b->view.name, "%s", name);
  sn_backend_describe(b->device, b->view.text, sizeof b->view.text);
  update_memory(b);
  sn_log_event(log, SN_LOG_INFO, "backend: %s, as configured; if it is lost: %s", b->view.text, text);
  return SN_OK;
}

void sn_backends_close(SnBackends *b) {
  if (!b->log) return;
  sn_backend_free(b->device);
  sn_backend_free(b->cpu);
  sn_pool_free(b->pool);
  pthread_mutex_destroy(&b->mutex);
  *b = (SnBackends){0};
}

// What a device says when it fails. It does so once: an error of the device stays with the process.
static void check_loss(SnBackends *b) {
  char reason[sizeof b->view.reason] = "";
  if (b->view.lost || !sn_backend_lost(b->device, reason, sizeof reason)) return;
  pthread_mutex_lock(&b->mutex);
  b->view.lost = true;
  b->view.lost_at = sn_clock_now();
  memcpy(b->view.reason, reason, sizeof reason);
  pthread_mutex_unlock(&b->mutex);
  sn_log_event(b->log, SN_LOG_ERROR, "device-lost: %s: %s; sessions go on on the CPU until sinewd is started again",
               b->view.name, reason);
}

void sn_backends_update(SnBackends *b) {
  if (!b->device) return;
  const bool served = sn_device_proxy_serve(b->device);
  check_loss(b);
  if (served || sn_clock_now() - b->looked >= LOOK) update_memory(b);
}

bool sn_backends_device_works(const SnBackends *b) { return b->device && !b->view.lost; }

SnDeviceView sn_backends_view(SnBackends *b) {
  pthread_mutex_lock(&b->mutex);
  const SnDeviceView view = b->view;
  pthread_mutex_unlock(&b->mutex);
  return view;
}

void sn_backends_choose(const SnBackends *b, SnBackend **backend, SnBackend **fallback) {
  *backend = b->device ? b->device : b->cpu;
  *fallback = b->device ? b->cpu : NULL;
}
