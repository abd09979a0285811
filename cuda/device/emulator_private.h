// The parts of the emulator (device_emulator.c): memory in place of a device's, what can be told of the arguments of a
// launch, and what calls do.
#ifndef SINEW_CUDA_DEVICE_EMULATOR_PRIVATE_H_
#define SINEW_CUDA_DEVICE_EMULATOR_PRIVATE_H_

#include "cuda/device/device.h"

// One allocation. It lies on pages of its own: those of a device may be touched only while the device works, and the
// page behind each allocation never, so that an access by the wrong side, or beyond the end, ends the program there.
typedef struct SnRegion {
  unsigned char *at;
  size_t bytes;
  unsigned char *map;
  size_t mapped;
  bool device;  // of the device; else host memory for copies
} SnRegion;

typedef struct SnRegions {
  SnRegion *item;
  int count, capacity;
  size_t used;  // of the device [bytes]
  bool open;    // the device works
} SnRegions;

// Zeroed, 256-byte aligned; NULL when there is no memory.
void *sn_regions_alloc(SnRegions *r, size_t bytes, bool device);
// False when p is no such allocation.
bool sn_regions_release(SnRegions *r, void *p, bool device);
// Whether [p, p + bytes) lies in one allocation of that kind.
bool sn_regions_hold(const SnRegions *r, const void *p, size_t bytes, bool device);
// Makes the device's memory accessible, or not.
void sn_regions_open(SnRegions *r, bool open);
void sn_regions_free(SnRegions *r);
// What an allocation takes of the device.
size_t sn_region_size(size_t bytes);

// Every pointer that a kernel finds in its arguments is NULL or memory of the device, and there is room for every slot
// of a launch of `blocks` blocks. False, and why, into text[size]. While the device works.
bool sn_work_check(const SnRegions *r, SnKernel kernel, const SnWork *work, int blocks, char *text, size_t size);

// ---- calls ----

enum { SN_MAX_WORKERS = 16, SN_MAX_LANES = 16 };

typedef struct SnEmulator SnEmulator;

typedef enum SnCallKind { SN_CALL_IN, SN_CALL_OUT, SN_CALL_LAUNCH, SN_CALL_MULTIPLY, SN_CALL_RUN } SnCallKind;

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
  SnGraph *graph;
  uint64_t content;  // of what a copy to the device reads, when it was put into its stream; 0: it is part of a graph
} SnCall;

typedef struct SnCalls {
  SnCall *item;
  int first, count, capacity;
} SnCalls;

struct SnGraph {
  SnGraph *next;
  SnDeviceStream *stream;  // where it was recorded
  SnCalls calls;
};

struct SnDeviceStream {
  SnDeviceStream *next;
  SnCalls calls;
  SnGraph *recording;  // NULL: calls are done
};

// What sn_device_open's `fault` says; 0: as usual.
typedef struct SnFault {
  double alloc, launch, memory, shared, slow, blocks, lanes;
} SnFault;

struct SnEmulator {
  SnDevice device;  // first
  SnRegions regions;
  SnDeviceStream *stream;
  SnGraph *graph;
  SnFault fault;
  double allocs, launches;       // so far
  double counted;                // launches and runs put into streams
  void *shared[SN_MAX_WORKERS];  // a block's shared memory, of each thread that runs blocks
  int workers, lanes;
};

// The device is lost, unless it is already: reason, formatted like printf.
__attribute__((format(printf, 2, 3))) void sn_emulator_lose(SnEmulator *e, const char *format, ...);
// Both ends of a copy, all numbers of products lie in memory that is there; else the device is lost.
bool sn_copy_check(SnEmulator *e, const SnCall *c);
// A number that depends on all bytes of what is copied, not 0. A host that writes to it while the copy waits is one
// that a GPU may read half old and half new.
uint64_t sn_copy_content(const SnCall *c);
bool sn_products_check(SnEmulator *e, const SnProducts *p);
// Does a call. While the device works.
void sn_call_do(SnEmulator *e, const SnCall *c);
// Whether this program can run a block on so many lanes.
bool sn_lanes_possible(int lanes);

#endif
