// Finds fields of a world or an adjoint on a device. There neither has a table of pointers. The struct lies where its
// memory begins, and a field at an offset that all worlds of a launch share. Offsets stand in the shared memory of a
// thread block, once for all of its worlds. So no load from a world's own memory is needed to find a field
// (cuda/MEASURED.md). The header of the model stands there, too.
#ifndef SINEW_PHYSICS_WORLD_DEVICE_FIELD_PRIVATE_H_
#define SINEW_PHYSICS_WORLD_DEVICE_FIELD_PRIVATE_H_

#include "physics/model/model.h"

// Hold what the worlds of a thread block share. A kernel fills them before anything else
// (cuda/kernels/kernel_shared_private.h).
static __shared__ SnModel sn_shared_model;
static __shared__ uint32_t sn_shared_world[SN_LAYOUT_FIELDS];    // offsets of a world's fields
static __shared__ uint32_t sn_shared_adjoint[SN_LAYOUT_FIELDS];  // offsets of an adjoint's fields

// Says whose field it is.
enum SnFieldOwner { SN_FIELD_OF_WORLD, SN_FIELD_OF_ADJOINT };

// Takes the place of a pointer to field `index` of the owner. Members of this kind take a byte each and hold nothing.
// Tells the compiler which memory a field is in. A thread with a world alone has it in its own (local) one.
template <typename T, int owner, int index>
struct SnField {
  __device__ __forceinline__ operator T *() const {
    const char *base = (const char *)this - index;
    const uint32_t place = owner == SN_FIELD_OF_WORLD ? sn_shared_world[index] : sn_shared_adjoint[index];
    size_t memory;
#if SN_DEVICE_LANES == 1
    asm("cvta.to.local.u64 %0, %1;" : "=l"(memory) : "l"(base));
    return (T *)__cvta_local_to_generic(memory + place);
#else
    asm("cvta.to.global.u64 %0, %1;" : "=l"(memory) : "l"(base));
    return (T *)__cvta_global_to_generic(memory + place);
#endif
  }
  __device__ __forceinline__ T *operator->() const { return *this; }
};

#endif
