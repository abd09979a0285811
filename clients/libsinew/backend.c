// Backends: the CPU on a pool of threads of its own, devices from libraries beside this one.
#include "clients/libsinew/backend_private.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const ApiStruct backend_options = {"SinewBackendOptions", "sinew_default_backend", sizeof(SinewBackendOptions),
                                          API_END(SinewBackendOptions, folder)};

// ---- one thread at a time ----

SinewStatus api_enter_backend(SinewBackend *backend, const char *user, SinewError *err) {
  if (backend->process != getpid())
    return api_fail(err, SINEW_ERR_STATE, "the backend of the %s was opened before a fork(); open one in this process",
                    user);
  return api_enter(&backend->guard, "backend", err);
}

SinewStatus api_enter_pair(ApiGuard *guard, const char *handle, SinewBackend *backend, SinewError *err) {
  const SinewStatus status = api_enter(guard, handle, err);
  if (status != SINEW_OK || !backend) return status;
  return api_enter_backend(backend, handle, err) == SINEW_OK ? SINEW_OK : api_leave(guard, SINEW_ERR_STATE);
}

SinewStatus api_leave_pair(ApiGuard *guard, SinewBackend *backend, SinewStatus status) {
  if (backend) api_leave(&backend->guard, SINEW_OK);
  return api_leave(guard, status);
}

SinewStatus api_device_lost(const SinewBackend *backend, SinewError *err) {
  char text[256];
  sn_backend_lost(backend->backend, text, sizeof text);
  return api_fail(err, SINEW_ERR_DEVICE, "the device is lost: %s", text);
}

// ---- where libraries of backends lie ----

static char place[4096];  // folder "sinew" beside this library; "" where that is not known
static pthread_once_t place_once = PTHREAD_ONCE_INIT;

static void find_place(void) {
  Dl_info info;
  if (!dladdr((void *)&place_once, &info) || !info.dli_fname) return;
  const char *slash = strrchr(info.dli_fname, '/');
  if (slash) snprintf(place, sizeof place, "%.*s/sinew", (int)(slash - info.dli_fname), info.dli_fname);
}

// Returns the folder that has the library of a backend: that of the caller, or the one beside this library where it
// lies there; NULL: where the dynamic linker looks.
static const char *folder_of(const char *name, const char *folder) {
  if (folder && folder[0]) return folder;
  pthread_once(&place_once, find_place);
  return place[0] && sn_backend_found(name, place) ? place : NULL;
}

static const char *found_names[4];
static pthread_once_t found_once = PTHREAD_ONCE_INIT;

static void find_names(void) {
  static const char *const names[] = {"cpu", "cuda", "cuda_double"};
  int n = 0;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i)
    if (sn_backend_found(names[i], folder_of(names[i], NULL))) found_names[n++] = names[i];
}

const char *const *sinew_backend_names(void) {
  pthread_once(&found_once, find_names);
  return found_names;
}

// ---- opening ----

// Returns how many processors this process may use.
static int usable_processors(void) {
  cpu_set_t set;
  const int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return n < SN_MAX_THREADS ? n : SN_MAX_THREADS;
}

static SinewStatus check_options(const char *name, const SinewBackendOptions *o, SinewError *err) {
  if (!name) return api_fail(err, SINEW_ERR_ARGUMENT, "sinew_backend_open: name is NULL");
  if (o->threads < 0 || o->threads > SN_MAX_THREADS)
    return api_fail(err, SINEW_ERR_ARGUMENT, "threads: %d, allowed is 0 to %d", o->threads, SN_MAX_THREADS);
  if (o->device < 0) return api_fail(err, SINEW_ERR_ARGUMENT, "device: %d, allowed is at least 0", o->device);
  if (!(o->memory >= 0 && isfinite(o->memory)))
    return api_fail(err, SINEW_ERR_ARGUMENT, "memory: %g bytes, allowed is at least 0", o->memory);
  if (o->block_threads < 0)
    return api_fail(err, SINEW_ERR_ARGUMENT, "block_threads: %d, allowed is at least 0", o->block_threads);
  return SINEW_OK;
}

static SnCode open_backend(SinewBackend *b, const char *name, const SinewBackendOptions *o, SnError *why) {
  if (strcmp(name, "cpu") == 0) {
    b->pool = sn_pool_create(o->threads > 0 ? o->threads : usable_processors(), why);
    if (!b->pool) return why->code;
  }
  SnBackendOptions options = sn_default_backend_options();
  options.folder = folder_of(name, o->folder);
  options.device = o->device;
  options.memory = o->memory;
  options.block_threads = o->block_threads;
  b->backend = sn_backend_open(name, b->pool, &options, why);
  if (!b->backend) return why->code;
  sn_backend_describe(b->backend, b->description, sizeof b->description);
  return SN_OK;
}

SinewBackend *sinew_backend_open(const char *name, const SinewBackendOptions *options, SinewError *err) {
  SinewBackendOptions o = sinew_default_backend();
  SnError why = {0};
  if (options && api_take(&backend_options, options, &o, err) != SINEW_OK) return NULL;
  if (check_options(name, &o, err) != SINEW_OK) return NULL;
  SinewBackend *b = calloc(1, sizeof *b);
  if (!b) {
    api_fail(err, SINEW_ERR_MEMORY, "backend: out of memory");
    return NULL;
  }
  b->process = getpid();
  if (open_backend(b, name, &o, &why) != SN_OK) {
    api_hand_on(err, &why);
    sinew_backend_close(b);
    return NULL;
  }
  api_ok(err);
  return b;
}

void sinew_backend_close(SinewBackend *backend) {
  if (!backend) return;
  if (backend->process == getpid()) {  // else its threads are not here to be waited for
    sn_backend_free(backend->backend);
    sn_pool_free(backend->pool);
  }
  free(backend);
}

const char *sinew_backend_description(const SinewBackend *backend) { return backend ? backend->description : ""; }
