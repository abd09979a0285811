// The host in place of a GPU, for tests. What a GPU would do, or not notice, it checks: copies within what was
// allocated, who touches what memory (emulator_private.h), blocks that write to the same, memory that is freed while
// work waits that needs it, host memory that is written to while a copy of it waits.
//
// Work that is put into a stream waits there: `wait` does all of it, `idle` the oldest call. So a host that
// reads results too early reads old ones, always. The blocks of every second launch run from the last to the first.
#include "cuda/device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cuda/device/emulator_private.h"
#include "cuda/kernels/kernels.h"

enum { MULTIPROCESSORS = 4, RESIDENT_THREADS = 2048, RESIDENT_BLOCKS = 32 };  // of a warp, where no fault says less

// The emulator of a call that may be done; NULL: it is lost. As a device does under tests/cuda/lose_device.cu, it fails
// once the file that SINEW_LOSE_DEVICE names is there.
static SnEmulator *alive(SnDevice *d) {
  SnEmulator *e = (SnEmulator *)d;
  const char *file = getenv("SINEW_LOSE_DEVICE");
  if (file && access(file, F_OK) == 0) sn_emulator_lose(e, "file %s is there", file);
  return d->lost ? NULL : e;
}

// ---- memory ----

static size_t memory_free(SnDevice *d) {
  SnEmulator *e = alive(d);
  return e ? d->memory - e->regions.used - d->thread_taken : 0;
}

static void *alloc(SnDevice *d, size_t bytes) {
  SnEmulator *e = alive(d);
  if (!e) return NULL;
  if (++e->allocs == e->fault.alloc) return NULL;
  if (bytes > d->memory || sn_region_size(bytes) > memory_free(d)) return NULL;
  return sn_regions_alloc(&e->regions, bytes, SN_REGION_DEVICE);
}

static void *alloc_host(SnDevice *d, size_t bytes) {
  SnEmulator *e = alive(d);
  if (!e) return NULL;
  return sn_regions_alloc(&e->regions, bytes, SN_REGION_HOST);
}

static void release_any(SnDevice *d, void *p, SnRegionKind kind) {
  SnEmulator *e = alive(d);
  const char *call = kind == SN_REGION_DEVICE ? "release" : "release_host";
  if (!e || !p) return;
  if (!sn_regions_release(&e->regions, p, kind)) sn_emulator_lose(e, "%s of %p, which was not allocated so", call, p);
}

static void release(SnDevice *d, void *p) { release_any(d, p, SN_REGION_DEVICE); }
static void release_host(SnDevice *d, void *p) { release_any(d, p, SN_REGION_HOST); }

// ---- streams ----

// Puts a call into the stream.
static void put(SnEmulator *e, SnDeviceStream *s, const SnCall *call) {
  SnCalls *calls = &s->calls;
  if (calls->first == calls->count) calls->first = calls->count = 0;
  if (calls->count == calls->capacity) {
    const int capacity = calls->capacity ? 2 * calls->capacity : 8;
    SnCall *item = realloc(calls->item, sizeof *item * (size_t)capacity);
    if (!item) {
      sn_emulator_lose(e, "out of memory");
      return;
    }
    calls->item = item;
    calls->capacity = capacity;
  }
  calls->item[calls->count++] = *call;
}

// Does the oldest calls of a stream, at most n.
static void work_off(SnEmulator *e, SnDeviceStream *s, int n) {
  for (; n > 0 && s->calls.first < s->calls.count; --n) sn_call_do(e, &s->calls.item[s->calls.first++]);
  sn_regions_open(&e->regions, SN_USER_HOST);
}

static bool waits(const SnDeviceStream *s) { return s->calls.first < s->calls.count; }

static SnDeviceStream *stream(SnDevice *d) {
  SnEmulator *e = alive(d);
  if (!e) return NULL;
  SnDeviceStream *s = calloc(1, sizeof *s);
  if (!s) {
    sn_emulator_lose(e, "out of memory");
    return NULL;
  }
  s->next = e->stream;
  return e->stream = s;
}

static void free_stream(SnDevice *d, SnDeviceStream *s) {
  SnEmulator *e = alive(d);
  if (!e || !s) return;
  if (waits(s)) {
    sn_emulator_lose(e, "free_stream: %d calls of it were not waited for", s->calls.count - s->calls.first);
    return;
  }
  SnDeviceStream **at = &e->stream;
  while (*at && *at != s) at = &(*at)->next;
  if (!*at) {
    sn_emulator_lose(e, "free_stream of %p, which is none", (void *)s);
    return;
  }
  *at = s->next;
  free(s->calls.item);
  free(s);
}

static void copy_in(SnDevice *d, SnDeviceStream *s, void *device, const void *host, size_t bytes) {
  SnEmulator *e = alive(d);
  SnCall call = {.kind = SN_CALL_IN, .to = device, .from = host, .bytes = bytes};
  if (!e || !sn_copy_check(e, &call)) return;
  call.content = sn_copy_content(&call);
  put(e, s, &call);
}

static void copy_out(SnDevice *d, SnDeviceStream *s, void *host, const void *device, size_t bytes) {
  SnEmulator *e = alive(d);
  const SnCall call = {.kind = SN_CALL_OUT, .to = host, .from = device, .bytes = bytes};
  if (e && sn_copy_check(e, &call)) put(e, s, &call);
}

// Whether there is such a kernel: a world has a warp, one of a rollout also a part of it, or a thread.
static bool can_have(SnKernel kernel, int threads) {
  return threads == SN_WARP || (kernel == SN_KERNEL_ROLLOUT && (threads == SN_PART_OF_WARP || threads == 1));
}

static void launch(SnDevice *d, SnDeviceStream *s, SnKernel kernel, const SnLaunchShape *shape, const SnWork *work) {
  SnEmulator *e = alive(d);
  if (!e) return;
  if ((int)kernel < 0 || kernel >= SN_NKERNEL) sn_emulator_lose(e, "launch: there is no kernel %d", (int)kernel);
  if (shape->blocks < 1) sn_emulator_lose(e, "launch of kernel %s: %d blocks", sn_kernel_name(kernel), shape->blocks);
  if (!can_have(kernel, shape->threads))
    sn_emulator_lose(e, "launch of kernel %s: %d threads a world, which it does not have", sn_kernel_name(kernel),
                     shape->threads);
  sn_launch_check(e, kernel, shape, work);
  if (d->lost) return;
  put(e, s,
      &(SnCall){.kind = SN_CALL_LAUNCH,
                .kernel = kernel,
                .shape = *shape,
                .work = *work,
                .fails = ++e->counted == e->fault.launch});
}

static void multiply(SnDevice *d, SnDeviceStream *s, const SnProducts *products) {
  SnEmulator *e = alive(d);
  if (e) put(e, s, &(SnCall){.kind = SN_CALL_MULTIPLY, .products = *products});
}

static bool idle(SnDevice *d, SnDeviceStream *s) {
  SnEmulator *e = alive(d);
  if (!e) return false;
  work_off(e, s, 1);
  return !d->lost && !waits(s);
}

static void wait(SnDevice *d, SnDeviceStream *s) {
  SnEmulator *e = alive(d);
  if (e) work_off(e, s, s->calls.count);
}

// ---- the device ----

// A device takes memory of as many threads as it could run.
static int resident_threads(SnDevice *d, size_t bytes) {
  const int i = sn_thread_kernel(bytes);
  const size_t whole =
      i < SN_NTHREADKERNEL ? sn_thread_kernel_bytes(i) * RESIDENT_THREADS * (size_t)d->multiprocessors : SIZE_MAX;
  const size_t more = whole > d->thread_taken ? whole - d->thread_taken : 0;
  if (d->lost || more > d->thread_room || more > memory_free(d)) return 0;
  d->thread_taken += more;
  return 2 * SN_WARP;
}

static int resident(SnDevice *d, SnKernel kernel, int threads) {
  const SnEmulator *e = (const SnEmulator *)d;
  if (d->lost || threads == 1 || !can_have(kernel, threads)) return 0;
  return sn_maxi(1, (e->fault.resident > 0 ? (int)e->fault.resident : RESIDENT_BLOCKS) * SN_WARP / threads);
}

static void close_device(SnDevice *d) {
  SnEmulator *e = (SnEmulator *)d;
  while (e->stream) {
    SnDeviceStream *s = e->stream;
    e->stream = s->next;
    free(s->calls.item);
    free(s);
  }
  sn_regions_free(&e->regions);
  free(e);
}

// "name:number,name:number".
static SnCode parse_fault(const char *text, SnFault *fault, SnError *err) {
  const struct {
    const char *name;
    double *value;
    double most;
  } known[] = {{"alloc", &fault->alloc, 1e9},
               {"launch", &fault->launch, 1e9},
               {"memory", &fault->memory, 1e12},
               {"multiprocessors", &fault->multiprocessors, MULTIPROCESSORS},
               {"resident", &fault->resident, 1e6},
               {"slow", &fault->slow, 1e3},
               {"blocks", &fault->blocks, SN_MAX_WORKERS},
               {"lanes", &fault->lanes, SN_MAX_LANES}};
  while (text && *text) {
    const size_t n = strcspn(text, ":");
    char *end = NULL;
    size_t i = 0;
    while (i < sizeof known / sizeof *known && (strlen(known[i].name) != n || strncmp(known[i].name, text, n) != 0))
      ++i;
    if (i == sizeof known / sizeof *known || text[n] != ':')
      return sn_fail(
          err, SN_ERR_ARGUMENT,
          "emulator: fault \"%s\": alloc, launch, memory, multiprocessors, resident, slow, blocks, lanes are known, "
          "each with a colon and a number",
          text);
    const double x = strtod(text + n + 1, &end);
    if (end == text + n + 1 || (*end && *end != ',') || !(x >= 0 && x <= known[i].most))
      return sn_fail(err, SN_ERR_ARGUMENT, "emulator: fault \"%s\": a number from 0 to %g is wanted", text,
                     known[i].most);
    *known[i].value = x;
    text = *end ? end + 1 : end;
  }
  return SN_OK;
}

static void prepare(SnEmulator *e) {
  SnDevice *d = &e->device;
  e->workers = sn_maxi(1, (int)e->fault.blocks);
  e->lanes = sn_maxi(1, (int)e->fault.lanes);
  d->multiprocessors = e->fault.multiprocessors >= 1 ? (int)e->fault.multiprocessors : MULTIPROCESSORS;
  d->memory = e->fault.memory > 0 ? (size_t)e->fault.memory : (size_t)8 << 30;
  snprintf(d->text, sizeof d->text, "the host in place of a device, blocks at once: %d, lanes: %d", e->workers,
           e->lanes);
}

SnDevice *sn_device_open(int index, const char *fault, SnError *err) {
  if (index != 0) {
    sn_fail(err, SN_ERR_NOT_FOUND, "emulator: device %d: there is one, number 0", index);
    return NULL;
  }
  SnEmulator *e = calloc(1, sizeof *e);
  if (!e) {
    sn_fail(err, SN_ERR_MEMORY, "emulator: out of memory");
    return NULL;
  }
  e->regions.user = SN_USER_HOST;
  e->device = (SnDevice){.name = "emulator",
                         .alloc = alloc,
                         .release = release,
                         .alloc_host = alloc_host,
                         .release_host = release_host,
                         .memory_free = memory_free,
                         .stream = stream,
                         .free_stream = free_stream,
                         .copy_in = copy_in,
                         .copy_out = copy_out,
                         .launch = launch,
                         .multiply = multiply,
                         .idle = idle,
                         .wait = wait,
                         .resident = resident,
                         .resident_threads = resident_threads,
                         .close = close_device};
  if (parse_fault(fault, &e->fault, err) != SN_OK) {
    close_device(&e->device);
    return NULL;
  }
  prepare(e);
  return &e->device;
}
