// Fills the shared memory of a thread block, which is what a kernel does first.
#ifndef SINEW_CUDA_KERNELS_KERNEL_SHARED_PRIVATE_H_
#define SINEW_CUDA_KERNELS_KERNEL_SHARED_PRIVATE_H_

#include "cuda/kernels/work.h"

// Finds a field by its place in the struct, a byte each; copies the model by words.
static_assert(sizeof(SnWorld) == SN_NWORLD && sizeof(SnAdjoint) == SN_NADJOINT, "a field is not a byte");
static_assert(sizeof(SnModel) % sizeof(uint32_t) == 0, "the model is no whole number of words");

// Fills the shared memory of this thread block (physics/world/device_field_private.h). All of its threads call it.
// Worlds of a launch have one layout, in slots of blocks or in those of states.
static __device__ __forceinline__ void sn_kernel_shared(const SnWork *work) {
  const SnLayout *world = work->block.world.bytes ? &work->block.world : &work->state.world;
  const int first = (int)(threadIdx.y * blockDim.x + threadIdx.x), threads = (int)(blockDim.x * blockDim.y);
  const int words = (int)(sizeof(SnModel) / sizeof(uint32_t));
  for (int i = first; i < words; i += threads) ((uint32_t *)&sn_shared_model)[i] = ((const uint32_t *)&work->model)[i];
  for (int i = first; i < SN_NWORLD; i += threads) sn_shared_world[i] = world->place[i];
  for (int i = first; i < SN_NADJOINT; i += threads) sn_shared_adjoint[i] = work->block.adjoint.place[i];
  __syncthreads();
}

#endif
