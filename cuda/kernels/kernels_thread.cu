// ROLLOUT once more, for many worlds: the same text on one lane, so that a thread has a world alone. The world lies in
// the thread's own (local) memory, which a device keeps interleaved: what 32 threads of a warp have at the same place
// of it are neighbours, and they read and write it together. A unit of its own, with more registers than kernels.cu.
#define SN_DEVICE_LANES 1
#include "device_text.inc"

#include "cuda/kernels/kernel_shared_private.h"

template <int bytes>
static __global__ void __launch_bounds__(SN_THREAD_BLOCK)
    sn_kernel_thread_on_device(const __grid_constant__ SnWork work) {
  __align__(64) unsigned char memory[bytes];
  sn_kernel_shared(&work);
  SnLane lane = {0, 1, &((SnKernelHead *)memory)->lanes, nullptr, nullptr};
  const int block = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (work.model.nbody == 0 || block >= work.blocks) return;
  sn_kernel_rollout(&work, block, work.blocks, &lane, memory);
}

extern "C" const void *sn_thread_kernel_function(int i) {
  switch (i) {
#define SN_THREAD_KERNEL(kilobytes)  \
  case SN_THREAD_KERNEL_##kilobytes: \
    return (const void *)sn_kernel_thread_on_device<(kilobytes) << 10>;
    SN_THREAD_KERNELS(SN_THREAD_KERNEL)
#undef SN_THREAD_KERNEL
    default:
      return nullptr;
  }
}
