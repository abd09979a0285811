// A device: memory, streams, launches. The host side (host.h) is written against this table. device_cuda.c
// puts an NVIDIA GPU behind it, device_emulator.c the host. The emulator checks what a GPU would not: copies within
// allocations, frees, the order of calls. It also finds pointers of the host that a kernel would follow.
//
// Nothing here returns an error. The first failure makes the device lost: `lost` is set, and `reason` says what and
// where. From then on every call does nothing and returns NULL, false or 0. On a GPU such errors stick to the process.
// Memory that does not fit is not a failure: alloc returns NULL. After a loss, close alone remains; it frees
// everything.
//
// Memory and streams are freed only after the work that needs them was waited for. The host never touches the device's
// memory; copies have host memory of alloc_host at their other end.
#ifndef SINEW_CUDA_DEVICE_DEVICE_H_
#define SINEW_CUDA_DEVICE_DEVICE_H_

#include "cuda/kernels/work.h"

typedef struct SnDeviceStream SnDeviceStream;  // launches and copies in order

// Says with how many blocks and threads a kernel is launched. With one thread, which ROLLOUT alone can have, a thread
// has a world alone (kernels_thread.cu), in its own memory. Else each block has a slot.
typedef struct SnLaunchShape {
  int blocks, threads;
} SnLaunchShape;

// Describes y_i += A_i' x_i for i = 0 ... count - 1. A_i is (n, n), row-major, at a + i stride_a; x_i and y_i are (n)
// at x + i stride and y + i stride, in the device's memory. Strides count numbers.
typedef struct SnProducts {
  int n, count;
  const sn_real *a, *x;
  sn_real *y;
  size_t stride_a, stride;
} SnProducts;

typedef struct SnDevice SnDevice;

// Holds what is known of an open device, and its calls. One thread at a time calls them.
struct SnDevice {
  const char *name;  // "cuda", "emulator"
  char text[200];    // for people: what it is
  int multiprocessors;
  size_t memory;        // all memory of the device [bytes]
  size_t thread_room;   // limits what is taken for threads with a world alone [bytes]: the host sets it
  size_t thread_taken;  // counts what was taken for them [bytes]
  bool lost;
  char reason[300];

  void *(*alloc)(SnDevice *d, size_t bytes);  // zeroed, 256-byte aligned; NULL when it does not fit
  void (*release)(SnDevice *d, void *p);
  void *(*alloc_host)(SnDevice *d, size_t bytes);  // zeroed; what copies read and write
  void (*release_host)(SnDevice *d, void *p);
  size_t (*memory_free)(SnDevice *d);  // [bytes]

  SnDeviceStream *(*stream)(SnDevice *d);
  void (*free_stream)(SnDevice *d, SnDeviceStream *s);
  // These are done in order on a stream.
  void (*copy_in)(SnDevice *d, SnDeviceStream *s, void *device, const void *host, size_t bytes);
  void (*copy_out)(SnDevice *d, SnDeviceStream *s, void *host, const void *device, size_t bytes);
  void (*launch)(SnDevice *d, SnDeviceStream *s, SnKernel kernel, const SnLaunchShape *shape, const SnWork *work);
  void (*multiply)(SnDevice *d, SnDeviceStream *s, const SnProducts *products);
  // Returns true when all that was put into the stream is done. (The emulator does the oldest call now.)
  bool (*idle)(SnDevice *d, SnDeviceStream *s);
  void (*wait)(SnDevice *d, SnDeviceStream *s);
  // Returns how many blocks of a kernel a multiprocessor runs at once, each of `threads` threads; 0: it cannot.
  int (*resident)(SnDevice *d, SnKernel kernel, int threads);
  // Returns how many threads of ROLLOUT it runs at once where each has a world alone, in `bytes` of its own memory. The
  // device then makes room for all threads that it could run at once. It counts what that takes in thread_taken; the
  // room stays until the process ends. Without room it returns 0.
  int (*resident_threads)(SnDevice *d, size_t bytes);
  void (*close)(SnDevice *d);
};

// Opens device `index` of its kind, which `close` frees. Returns NULL and err (SN_ERR_NOT_FOUND) when there is none.
// `fault` is for the emulator: NULL, "" (none), or several of these joined by commas:
//
//   alloc:N       makes the N-th allocation fail
//   launch:N      loses the device at the N-th launch, counted as they are put into streams
//   memory:BYTES  is how much memory it has
//   multiprocessors:N  are there
//   resident:N    blocks of a warp are the most that a multiprocessor runs at once
//   slow:SECONDS  is added to every launch
//   blocks:N      host threads run blocks at once
//   lanes:N       are the lanes of each (lanes build)
SnDevice *sn_device_open(int index, const char *fault, SnError *err);

#endif
