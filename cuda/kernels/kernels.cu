// Kernels of a device: the engine's text, the planner's and the bodies of kernels, which
// cuda/CMakeLists.txt lists in device_text.inc of the build folder, and kernels around bodies. What one call of a body
// does, one row of a thread block does: its threads are the lanes. Rows meet at the end of each stage (SN_MEET), and so
// fetch the same instructions.
//
// SN_DEVICE_LANES is how many lanes a world has (cuda/cuda.cmake). Parts of a warp are for ROLLOUT alone.
#include "device_text.inc"

#include "cuda/kernels/kernel_shared_private.h"

// A kernel around a body. The arguments lie in constant memory. Without a model there is nothing to do (kernels.h).
#define SN_KERNEL_AROUND(name, body, text)                                                                          \
  static __global__ void __launch_bounds__(SN_KERNEL_BLOCK) body##_on_device(const __grid_constant__ SnWork work) { \
    sn_kernel_shared(&work);                                                                                        \
    const int block = (int)(blockIdx.x * blockDim.y + threadIdx.y);                                                 \
    if (work.model.nbody == 0 || block >= work.blocks) return;                                                      \
    SnKernelHead *head = (SnKernelHead *)sn_kernel_slot(&work, block);                                              \
    SnLane lane = {(int)threadIdx.x, SN_DEVICE_LANES, &head->lanes, nullptr, nullptr};                              \
    body(&work, block, work.blocks, &lane, head);                                                                   \
  }                                                                                                                 \
  extern "C" const void *SN_KERNEL_GETTER(body)(void) { return (const void *)body##_on_device; }

#define SN_KERNEL_JOIN(a, b) a##b
#define SN_KERNEL_GETTER_OF(body, lanes) SN_KERNEL_JOIN(body##_, lanes)
#define SN_KERNEL_GETTER(body) SN_KERNEL_GETTER_OF(body, SN_DEVICE_LANES)

#if SN_DEVICE_LANES == 32
SN_KERNELS(SN_KERNEL_AROUND)
#else
SN_KERNEL_AROUND(ROLLOUT, sn_kernel_rollout, "")
#endif
