#include "daemon/planning/backends_private.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/realtime.h"
#include "daemon/planning/device_proxy_private.h"
#include "physics/base/clock.h"

// Time between two questions for the device's memory [s].
#define LOOK 0.1

SnBackend *sn_backends_open_cpu(const SnConfig *config, SnPool **pool, int *threads, SnError *err) {
  const int wanted = config->threads > 0 ? config->threads : sn_realtime_count();
  *threads = wanted < SN_MAX_THREADS ? wanted : SN_MAX_THREADS;
  *pool = sn_pool_create(*threads, err);
  return *pool ? sn_backend_cpu(*pool, err) : NULL;
}

SnBackend *sn_backends_open_device(const SnBackends *b, const char *name, SnError *err) {
  SnBackendOptions options = sn_default_backend_options();
  options.folder = b->config->backend_folder;
  options.device = b->config->device;
  options.memory = (double)b->config->device_megabytes * 1048576;
  options.fault = b->config->backend_fault;
  return sn_backend_open(name, b->pool, &options, err);
}

SnCode sn_backends_refuse(const char *name, const SnError *why, SnError *err) {
  return sn_fail(err, why->code,
                 "backend is '%s', which cannot be opened: %.3800s; backend: auto or cpu plans on the CPU", name,
                 why->text);
}

static void update_memory(SnBackends *b) {
  const SnBackendMemory memory = sn_backend_memory(b->device);
  b->looked = sn_clock_now();
  pthread_mutex_lock(&b->mutex);
  b->view.memory = memory;
  pthread_mutex_unlock(&b->mutex);
}

// Takes the device over.
static SnCode take_device(SnBackends *b, SnBackend *device, const char *name, void (*wake)(void *context),
                          void *context, SnError *err) {
  if (!(b->device = sn_device_proxy_create(device, wake, context, err))) return err->code;
  b->view.present = true;
  snprintf(b->view.name, sizeof b->view.name, "%s", name);
  sn_backend_describe(b->device, b->view.text, sizeof b->view.text);
  update_memory(b);
  return SN_OK;
}

// A device that answers stands by for what it is measured to be faster at.
static SnCode open_automatic(SnBackends *b, const char *cpu, int threads, void (*wake)(void *context), void *context,
                             SnError *err) {
  static const char name[] = "cuda";
  SnError why = {0};
  SnBackend *device = sn_backends_open_device(b, name, &why);
  if (!device) {
    sn_log_event(b->log, SN_LOG_INFO, "backend: %s, as auto chooses: %s", cpu, why.text);
    return SN_OK;
  }
  sn_contest_key(device, threads, &b->key);
  const SnCode code = take_device(b, device, name, wake, context, err);
  b->view.automatic = code == SN_OK;
  sn_log_event(b->log, SN_LOG_INFO, "backend: auto: %s, and %s for what is measured to be faster there", cpu,
               b->view.text);
  return code;
}

SnCode sn_backends_open(SnBackends *b, const SnConfig *config, const SnLog *log, void (*wake)(void *context),
                        void *context, SnError *err) {
  int threads = 0;
  *b = (SnBackends){.log = log, .config = config};
  pthread_mutex_init(&b->mutex, NULL);
  pthread_mutex_init(&b->measuring, NULL);
  if (!(b->cpu = sn_backends_open_cpu(config, &b->pool, &threads, err))) return err->code;
  const char *name = config->backend;
  char text[256];
  sn_backend_describe(b->cpu, text, sizeof text);
  if (!strcmp(name, "auto")) return open_automatic(b, text, threads, wake, context, err);
  if (!strcmp(name, "cpu")) {
    sn_log_event(log, SN_LOG_INFO, "backend: %s, as configured", text);
    return SN_OK;
  }
  SnBackend *device = sn_backends_open_device(b, name, err);
  if (!device) {
    const SnError why = *err;
    return sn_backends_refuse(name, &why, err);
  }
  const SnCode code = take_device(b, device, name, wake, context, err);
  if (code == SN_OK)
    sn_log_event(log, SN_LOG_INFO, "backend: %s, as configured; if it is lost: %s", b->view.text, text);
  return code;
}

void sn_backends_close(SnBackends *b) {
  if (!b->log) return;
  sn_backend_free(b->device);
  sn_backend_free(b->cpu);
  sn_pool_free(b->pool);
  pthread_mutex_destroy(&b->mutex);
  pthread_mutex_destroy(&b->measuring);
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

bool sn_backends_serves(const SnDeviceView *view, const SnSession *session) {
  return session->on_device && !view->lost;
}

const char *sn_backends_name(const SnDeviceView *view, const SnSession *session) {
  return sn_backends_serves(view, session) ? view->name : "cpu";
}

void sn_backends_take(const SnBackends *b, bool device, SnBackend **backend, SnBackend **fallback) {
  *backend = device ? b->device : b->cpu;
  *fallback = device ? b->cpu : NULL;
}

bool sn_backends_prefer_device(const SnBackends *b) { return b->device && !b->view.automatic; }
