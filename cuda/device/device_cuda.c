// An NVIDIA GPU, through the CUDA runtime.
//
// Every call is checked where it is made: the first that fails makes the device lost, with file, line, call and CUDA's
// own words. Errors of kernels show at the next call that looks: idle, wait, or any other.
#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>

#include "cuda/kernels/kernels.h"
#include "cuda/device/cublas_private.h"
#include "cuda/device/device.h"

enum {
  OLDEST = 75  // compute capability
};

struct SnDeviceStream {
  SnDeviceStream *next;
  cudaStream_t stream;
  void *workspace;  // of products; NULL: none yet
};

typedef struct SnCuda {
  SnDevice device;  // first
  int index;
  SnCublas *blas;  // NULL: no product has been asked for
  SnDeviceStream *stream;
  struct cudaFuncAttributes kernel[SN_NKERNEL], part;
} SnCuda;

// ---- errors ----

static void lose(SnCuda *c, const char *call, int line, const char *text) {
  if (c->device.lost) return;
  c->device.lost = true;
  snprintf(c->device.reason, sizeof c->device.reason, "cuda/device/device_cuda.c:%d: %.120s: %s", line, call, text);
}

static bool checked(SnCuda *c, cudaError_t e, const char *call, int line) {
  if (e != cudaSuccess) lose(c, call, line, cudaGetErrorString(e));
  return e == cudaSuccess;
}

// True when the call succeeded; else the device is lost.
#define CUDA(c, call) checked((c), (call), #call, __LINE__)

// The device of a call that may be made, current in this thread; NULL: it is lost.
static SnCuda *alive(SnDevice *d) {
  SnCuda *c = (SnCuda *)d;
  return !d->lost && CUDA(c, cudaSetDevice(c->index)) ? c : NULL;
}

// A call that may find no memory, which is no failure of the device.
static bool took(SnCuda *c, cudaError_t e, const char *call, int line) {
  if (e != cudaErrorMemoryAllocation) return checked(c, e, call, line);
  (void)cudaGetLastError();
  return false;
}
#define TOOK(c, call) took((c), (call), #call, __LINE__)

// ---- memory ----

static void *alloc(SnDevice *d, size_t bytes) {
  SnCuda *c = alive(d);
  void *p = NULL;
  if (!c || !TOOK(c, cudaMalloc(&p, bytes ? bytes : 1))) return NULL;
  // Streams do not wait for the default stream, which the zeros are written in.
  if (CUDA(c, cudaMemset(p, 0, bytes)) && CUDA(c, cudaStreamSynchronize(0))) return p;
  return NULL;
}

static void release(SnDevice *d, void *p) {
  SnCuda *c = alive(d);
  if (c && p) CUDA(c, cudaFree(p));
}

static void *alloc_host(SnDevice *d, size_t bytes) {
  SnCuda *c = alive(d);
  void *p = NULL;
  if (!c || !TOOK(c, cudaHostAlloc(&p, bytes ? bytes : 1, cudaHostAllocDefault))) return NULL;
  memset(p, 0, bytes);
  return p;
}

static void release_host(SnDevice *d, void *p) {
  SnCuda *c = alive(d);
  if (c && p) CUDA(c, cudaFreeHost(p));
}

static size_t memory_free(SnDevice *d) {
  SnCuda *c = alive(d);
  size_t left = 0, total = 0;
  return c && CUDA(c, cudaMemGetInfo(&left, &total)) ? left : 0;
}

// ---- streams ----

static SnDeviceStream *stream(SnDevice *d) {
  SnCuda *c = alive(d);
  SnDeviceStream *s = c ? calloc(1, sizeof *s) : NULL;
  if (!s) return NULL;
  if (!CUDA(c, cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking))) {
    free(s);
    return NULL;
  }
  s->next = c->stream;
  return c->stream = s;
}

static void free_stream(SnDevice *d, SnDeviceStream *s) {
  SnCuda *c = alive(d);
  if (!c || !s) return;
  SnDeviceStream **at = &c->stream;
  while (*at != s) at = &(*at)->next;
  *at = s->next;
  CUDA(c, cudaStreamDestroy(s->stream));
  if (s->workspace) CUDA(c, cudaFree(s->workspace));
  free(s);
}

static void copy_in(SnDevice *d, SnDeviceStream *s, void *device, const void *host, size_t bytes) {
  SnCuda *c = alive(d);
  if (c) CUDA(c, cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, s->stream));
}

static void copy_out(SnDevice *d, SnDeviceStream *s, void *host, const void *device, size_t bytes) {
  SnCuda *c = alive(d);
  if (c) CUDA(c, cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, s->stream));
}

// The kernel for worlds of so many threads, and what is known of it. Parts of a warp are for ROLLOUT alone.
static const void *kernel_function(SnKernel kernel, int threads) {
  if (threads == SN_PART_OF_WARP) return sn_kernel_rollout_8();
  switch ((int)kernel) {
#define KERNEL_CASE(name, body, text) \
  case SN_KERNEL_##name:              \
    return body##_32();
    SN_KERNELS(KERNEL_CASE)
#undef KERNEL_CASE
  }
  return NULL;
}
static struct cudaFuncAttributes *kernel_about(SnCuda *c, SnKernel kernel, int threads) {
  return threads == SN_WARP ? &c->kernel[kernel] : &c->part;
}

// The most worlds that go into one thread block.
static int most_together(SnCuda *c, SnKernel kernel, int threads) {
  return sn_mini(SN_KERNEL_BLOCK, kernel_about(c, kernel, threads)->maxThreadsPerBlock) / threads;
}

// How many do: those of a multiprocessor.
static int worlds_together(SnCuda *c, SnKernel kernel, const SnLaunchShape *shape) {
  const int multiprocessors = c->device.multiprocessors;
  return sn_mini((shape->blocks + multiprocessors - 1) / multiprocessors, most_together(c, kernel, shape->threads));
}

// Launches threads with a world alone. Few worlds are spread over the multiprocessors, a warp of them each.
static void launch_threads(SnCuda *c, SnDeviceStream *s, const SnLaunchShape *shape, SnWork *work) {
  void *arguments[] = {work};
  int threads = SN_WARP;
  while (threads < SN_THREAD_BLOCK && shape->blocks > threads * c->device.multiprocessors) threads *= 2;
  CUDA(c, cudaLaunchKernel(sn_thread_kernel_function(sn_thread_kernel(sn_kernel_bytes(&work->block))),
                           (dim3){(unsigned)((shape->blocks + threads - 1) / threads), 1, 1},
                           (dim3){(unsigned)threads, 1, 1}, arguments, 0, s->stream));
}

static void launch_blocks(SnCuda *c, SnDeviceStream *s, SnKernel kernel, const SnLaunchShape *shape, SnWork *work) {
  const int worlds = worlds_together(c, kernel, shape);
  void *arguments[] = {work};
  CUDA(c, cudaLaunchKernel(kernel_function(kernel, shape->threads),
                           (dim3){(unsigned)((shape->blocks + worlds - 1) / worlds), 1, 1},
                           (dim3){(unsigned)shape->threads, (unsigned)worlds, 1}, arguments, 0, s->stream));
}

static void launch(SnDevice *d, SnDeviceStream *s, SnKernel kernel, const SnLaunchShape *shape, const SnWork *work) {
  SnCuda *c = alive(d);
  if (!c) return;
  SnWork copy = *work;
  copy.blocks = shape->blocks;
  if (shape->threads == 1)
    launch_threads(c, s, shape, &copy);
  else
    launch_blocks(c, s, kernel, shape, &copy);
}

static void multiply(SnDevice *d, SnDeviceStream *s, const SnProducts *p) {
  SnCuda *c = alive(d);
  char text[200] = "";
  if (!c || (!s->workspace && !CUDA(c, cudaMalloc(&s->workspace, SN_CUBLAS_WORKSPACE)))) return;
  if (!c->blas) c->blas = sn_cublas_open(text, sizeof text);
  if (!c->blas || !sn_cublas_multiply(c->blas, s->stream, s->workspace, p, text, sizeof text))
    lose(c, "multiply", __LINE__, text);
}

static bool idle(SnDevice *d, SnDeviceStream *s) {
  SnCuda *c = alive(d);
  if (!c) return false;
  const cudaError_t e = cudaStreamQuery(s->stream);
  if (e != cudaErrorNotReady) return checked(c, e, "cudaStreamQuery(s->stream)", __LINE__);
  (void)cudaGetLastError();
  return false;
}

static void wait(SnDevice *d, SnDeviceStream *s) {
  SnCuda *c = alive(d);
  if (c) CUDA(c, cudaStreamSynchronize(s->stream));
}

// ---- the device ----

static int attribute(SnCuda *c, enum cudaDeviceAttr which) {
  int value = 0;
  return CUDA(c, cudaDeviceGetAttribute(&value, which, c->index)) ? value : 0;
}

// Bytes of each thread that the driver keeps room for, on each device: they stay with the process.
static _Atomic size_t stacks[64];

static void note_stack(const SnCuda *c, size_t bytes) {
  if (bytes > stacks[c->index % 64]) stacks[c->index % 64] = bytes;
}

// The driver keeps room for the memory of all threads that the device could run at once. It takes it when such a kernel
// is launched: here, on nothing.
static int resident_threads(SnDevice *d, size_t bytes) {
  SnCuda *c = alive(d);
  if (!c) return 0;
  const int i = sn_thread_kernel(bytes);
  const void *f = i < SN_NTHREADKERNEL ? sn_thread_kernel_function(i) : NULL;
  const size_t most = (size_t)attribute(c, cudaDevAttrMaxThreadsPerMultiProcessor) * (size_t)d->multiprocessors;
  struct cudaFuncAttributes about;
  int blocks = 0;
  if (!f || !CUDA(c, cudaFuncGetAttributes(&about, f)) ||
      !CUDA(c, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, SN_THREAD_BLOCK, 0)))
    return 0;
  const size_t there = stacks[c->index % 64], stack = about.localSizeBytes;
  const size_t more = stack > there ? (stack - there) * most : 0;
  if (more > memory_free(d) || more > d->thread_room) return 0;
  SnWork *nothing = calloc(1, sizeof *nothing);
  void *arguments[] = {nothing};
  const bool ok = nothing && TOOK(c, cudaLaunchKernel(f, (dim3){1, 1, 1}, (dim3){SN_WARP, 1, 1}, arguments, 0, NULL)) &&
                  CUDA(c, cudaStreamSynchronize(NULL));
  free(nothing);
  if (!ok) return 0;
  note_stack(c, stack);
  d->thread_taken += more;
  return blocks * SN_THREAD_BLOCK;
}

static int resident(SnDevice *d, SnKernel kernel, int threads) {
  SnCuda *c = alive(d);
  int blocks = 0;
  if (!c || (threads != SN_WARP && (threads != SN_PART_OF_WARP || kernel != SN_KERNEL_ROLLOUT))) return 0;
  const int worlds = most_together(c, kernel, threads);
  const void *f = kernel_function(kernel, threads);
  return CUDA(c, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, worlds * threads, 0)) ? blocks * worlds : 0;
}

// Frees what it can; a lost device gives nothing back before the process ends.
static void close_device(SnDevice *d) {
  SnCuda *c = (SnCuda *)d;
  (void)cudaSetDevice(c->index);
  while (c->stream) {
    SnDeviceStream *s = c->stream;
    c->stream = s->next;
    (void)cudaStreamSynchronize(s->stream);
    (void)cudaStreamDestroy(s->stream);
    if (s->workspace) (void)cudaFree(s->workspace);
    free(s);
  }
  sn_cublas_close(c->blas);
  free(c);
}

// Is there a driver, is it new enough, is there such a device?
static SnCode find(int index, SnError *err) {
  int driver = 0, count = 0;
  const cudaError_t e = cudaGetDeviceCount(&count);
  (void)cudaGetLastError();
  (void)cudaDriverGetVersion(&driver);
  if (driver == 0) return sn_fail(err, SN_ERR_NOT_FOUND, "cuda: no NVIDIA driver is installed (no libcuda.so.1)");
  if (e == cudaErrorInsufficientDriver)
    return sn_fail(err, SN_ERR_NOT_FOUND, "cuda: the driver is too old: it is for CUDA %d.%d, this library for %d.%d",
                   driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  if (e != cudaSuccess) return sn_fail(err, SN_ERR_NOT_FOUND, "cuda: no device: %s", cudaGetErrorString(e));
  if (index < 0 || index >= count)
    return sn_fail(err, SN_ERR_NOT_FOUND, "cuda: device %d: there are %d, counted from 0", index, count);
  return SN_OK;
}

static SnCode describe(SnCuda *c, SnError *err) {
  SnDevice *d = &c->device;
  struct cudaDeviceProp about;
  int driver = 0, runtime = 0;
  size_t left = 0;
  const int major = attribute(c, cudaDevAttrComputeCapabilityMajor);
  const int minor = attribute(c, cudaDevAttrComputeCapabilityMinor);
  if (!CUDA(c, cudaGetDeviceProperties(&about, c->index)) || !CUDA(c, cudaDriverGetVersion(&driver)) ||
      !CUDA(c, cudaRuntimeGetVersion(&runtime)) || !CUDA(c, cudaMemGetInfo(&left, &d->memory)) || d->lost)
    return sn_fail(err, SN_ERR_NOT_FOUND, "cuda: device %d does not answer: %s", c->index, d->reason);
  snprintf(d->text, sizeof d->text, "%.80s, compute capability %d.%d, %.1f GiB, CUDA %d.%d (driver's %d.%d)",
           about.name, major, minor, (double)d->memory / (1 << 30), runtime / 1000, runtime % 1000 / 10, driver / 1000,
           driver % 1000 / 10);
  if (10 * major + minor < OLDEST)
    return sn_fail(err, SN_ERR_NOT_FOUND, "cuda: device %d, %s: compute capability %d.%d or more is needed", c->index,
                   d->text, OLDEST / 10, OLDEST % 10);
  d->multiprocessors = attribute(c, cudaDevAttrMultiProcessorCount);
  return SN_OK;
}

// The driver keeps room for the stacks of all threads that can be resident at once. A larger stack takes what it is
// larger by.
static SnCode check_stack(SnCuda *c, SnKernel kernel, int threads_of_world, size_t stack, SnError *err) {
  SnDevice *d = &c->device;
  const size_t there = stacks[c->index % 64], more = stack > there ? stack - there : 0;
  const size_t threads = (size_t)attribute(c, cudaDevAttrMaxThreadsPerMultiProcessor) * (size_t)d->multiprocessors;
  const size_t left = memory_free(d);
  if (d->lost) return sn_fail(err, SN_ERR_NOT_FOUND, "cuda: device %d, %s: %s", c->index, d->text, d->reason);
  if (more * threads <= left) return SN_OK;
  return sn_fail(
      err, SN_ERR_LIMIT,
      "cuda: device %d, %s: kernel %s with %d threads a world has a stack of %zu bytes, %.2f GiB more for %zu "
      "threads; %.2f GiB are free",
      c->index, d->text, sn_kernel_name(kernel), threads_of_world, stack, (double)more * (double)threads / (1 << 30),
      threads, (double)left / (1 << 30));
}

// Asks a kernel for what it takes, and puts a launch of it on nothing into the stream, so that it is on the device,
// with its stack, before memory is counted and plans are made.
static SnCode load_kernel(SnCuda *c, SnDeviceStream *s, SnKernel kernel, int threads, SnError *err) {
  SnDevice *d = &c->device;
  struct cudaFuncAttributes *about = kernel_about(c, kernel, threads);
  if (!CUDA(c, cudaFuncGetAttributes(about, kernel_function(kernel, threads))))
    return sn_fail(err, SN_ERR_NOT_FOUND,
                   "cuda: device %d, %s: %s. Was the library built for it (SINEW_CUDA_ARCHITECTURES)?", c->index,
                   d->text, d->reason);
  const SnCode code = check_stack(c, kernel, threads, about->localSizeBytes, err);
  if (code != SN_OK) return code;
  SnWork *nothing = calloc(1, sizeof *nothing);
  if (!nothing) return sn_fail(err, SN_ERR_MEMORY, "cuda: device %d, %s: out of memory", c->index, d->text);
  launch(d, s, kernel, &(SnLaunchShape){1, threads}, nothing);
  wait(d, s);
  free(nothing);
  if (d->lost) return sn_fail(err, SN_ERR_NOT_FOUND, "cuda: device %d, %s: %s", c->index, d->text, d->reason);
  note_stack(c, about->localSizeBytes);
  return SN_OK;
}

static SnCode load_kernels(SnCuda *c, SnError *err) {
  SnDeviceStream *s = stream(&c->device);
  if (!s)
    return sn_fail(err, SN_ERR_NOT_FOUND, "cuda: device %d, %s: %s", c->index, c->device.text,
                   c->device.lost ? c->device.reason : "out of memory");
  SnCode code = load_kernel(c, s, SN_KERNEL_ROLLOUT, SN_PART_OF_WARP, err);
  for (int k = 0; code == SN_OK && k < SN_NKERNEL; ++k) code = load_kernel(c, s, (SnKernel)k, SN_WARP, err);
  free_stream(&c->device, s);
  return code;
}

static SnCode prepare(SnCuda *c, SnError *err) {
  SnDevice *d = &c->device;
  if (!alive(d)) return sn_fail(err, SN_ERR_NOT_FOUND, "cuda: device %d: %s", c->index, d->reason);
  if (describe(c, err) != SN_OK || load_kernels(c, err) != SN_OK) return SN_ERR_NOT_FOUND;
  return SN_OK;
}

SnDevice *sn_device_open(int index, const char *fault, SnError *err) {
  if (fault && *fault) {
    sn_fail(err, SN_ERR_ARGUMENT, "cuda: fault \"%s\": a device has none to order", fault);
    return NULL;
  }
  if (find(index, err) != SN_OK) return NULL;
  SnCuda *c = calloc(1, sizeof *c);
  if (!c) {
    sn_fail(err, SN_ERR_MEMORY, "cuda: out of memory");
    return NULL;
  }
  c->index = index;
  c->device = (SnDevice){.name = "cuda",
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
  if (prepare(c, err) == SN_OK) return &c->device;
  close_device(&c->device);
  return NULL;
}
