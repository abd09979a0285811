// The parts of the emulator (device_emulator.c). They are memory in place of a device's, what can be told of the
// arguments of a launch, and what calls do.
#ifndef SINEW_CUDA_DEVICE_EMULATOR_PRIVATE_H_
#define SINEW_CUDA_DEVICE_EMULATOR_PRIVATE_H_

#include "cuda/device/device.h"

// Names what an allocation is: memory of the device, host memory for copies, memory that a block has to itself.
typedef enum SnRegionKind { SN_REGION_DEVICE, SN_REGION_HOST, SN_REGION_BLOCK } SnRegionKind;
// Names who is at work, and so may touch: the host its memory, a kernel the device's, a copy both.
typedef enum SnRegionUser { SN_USER_HOST, SN_USER_KERNEL, SN_USER_COPY } SnRegionUser;

// Describes one allocation. It lies on pages of its own, which none but its users may touch. The page behind each never
// may be. So an access by the wrong side, or beyond the end, ends the program there.
typedef struct SnRegion {
  unsigned char *at;
  size_t bytes;
  unsigned char *map;
  size_t mapped;
  SnRegionKind kind;
} SnRegion;

// Holds all allocations of a device.
typedef struct SnRegions {
  SnRegion *item;
  int count, capacity;
  size_t used;  // device memory taken [bytes]
  SnRegionUser user;
} SnRegions;

// Allocates `bytes`, zeroed and 256-byte aligned. Returns NULL when there is no memory.
void *sn_regions_alloc(SnRegions *r, size_t bytes, SnRegionKind kind);
// Frees the allocation at p. Returns false when p is no allocation of that kind.
bool sn_regions_release(SnRegions *r, void *p, SnRegionKind kind);
// Returns whether [p, p + bytes) lies in one allocation of that kind.
bool sn_regions_hold(const SnRegions *r, const void *p, size_t bytes, SnRegionKind kind);
// Makes memory accessible to `user`, and to nobody else.
void sn_regions_open(SnRegions *r, SnRegionUser user);
// Frees all allocations.
void sn_regions_free(SnRegions *r);
// Returns how many bytes of the device an allocation of `bytes` takes.
size_t sn_region_size(size_t bytes);

// Checks that what blocks of a launch write to lies apart. Returns false otherwise, and says what in text[size]. Call
// it while a kernel may read.
bool sn_work_check(SnKernel kernel, const SnWork *work, char *text, size_t size);

// ---- calls ----

enum { SN_MAX_WORKERS = 16 };
#ifdef SN_LANES
enum { SN_MAX_LANES = 64 };
#else
enum { SN_MAX_LANES = 1 };
#endif

typedef struct SnEmulator SnEmulator;

// Names what a call does: a copy in, a copy out, a launch, products.
typedef enum SnCallKind { SN_CALL_IN, SN_CALL_OUT, SN_CALL_LAUNCH, SN_CALL_MULTIPLY } SnCallKind;

// Holds a call with its arguments, until its turn comes. The fields that count depend on `kind`.
typedef struct SnCall {
  SnCallKind kind;
  bool fails;  // the device is lost here
  void *to;
  const void *from;
  size_t bytes;
  SnKernel kernel;
  SnLaunchShape shape;
  SnWork work;
  SnProducts products;
  uint64_t content;  // sn_copy_content of a copy in, when it was put into its stream
} SnCall;

// Lists calls; those before `first` are done.
typedef struct SnCalls {
  SnCall *item;
  int first, count, capacity;
} SnCalls;

// Holds a stream, with the calls that still wait in it.
struct SnDeviceStream {
  SnDeviceStream *next;
  SnCalls calls;
};

// Holds the numbers of sn_device_open's `fault`; 0: as usual.
typedef struct SnFault {
  double alloc, launch, memory, multiprocessors, resident, slow, blocks, lanes;
} SnFault;

// Holds an emulated device.
struct SnEmulator {
  SnDevice device;  // first
  SnRegions regions;
  SnDeviceStream *stream;
  SnFault fault;
  double allocs, launches;    // so far
  double counted;             // launches put into streams
  void *own[SN_MAX_WORKERS];  // memory that a block has to itself, for each thread that runs blocks
  size_t own_bytes;           // size of each
  int workers, lanes;
};

// Makes the device lost, unless it is already. `format` and what follows give the reason, as for printf.
__attribute__((format(printf, 2, 3))) void sn_emulator_lose(SnEmulator *e, const char *format, ...);
// Checks that both ends of a copy lie in memory that is there. If not the device is lost. Returns whether it is well.
bool sn_copy_check(SnEmulator *e, const SnCall *c);
// Returns a number that depends on all bytes of what is copied. If the host writes there while the copy
// waits, a GPU may read half old and half new.
uint64_t sn_copy_content(const SnCall *c);
// Checks that the blocks of a launch have memory. If not the device is lost.
void sn_launch_check(SnEmulator *e, SnKernel kernel, const SnLaunchShape *shape, const SnWork *work);
// Does a call.
void sn_call_do(SnEmulator *e, const SnCall *c);

#endif
