// All device code of a library in one unit: the engine's text, the planner's and the bodies of kernels, which
// cuda/CMakeLists.txt lists in device_text.inc of the build folder, and kernels around them. What one call of a body
// does, one row of a thread block does: its threads are the lanes. Rows of a warp or less meet at the end of each stage
// (SN_MEET), and so fetch the same instructions.
#include "device_text.inc"

// A kernel around a body. The arguments lie in constant memory. Without a model there is nothing to do (kernels.h).
#define SN_KERNEL_AROUND(name, body, text)                                                                          \
  static __global__ void __launch_bounds__(SN_KERNEL_BLOCK) body##_on_device(const __grid_constant__ SnWork work) { \
    const int block = (int)(blockIdx.x * blockDim.y + threadIdx.y);                                                 \
    if (work.model.nbody == 0 || block >= work.blocks) return;                                                      \
    SnKernelHead *head = (SnKernelHead *)sn_kernel_slot(&work, block);                                              \
    SnLane lane = {(int)threadIdx.x, (int)blockDim.x, &head->lanes, nullptr, nullptr};                              \
    body(&work, block, work.blocks, &lane, head);                                                                   \
  }

SN_KERNELS(SN_KERNEL_AROUND)

extern "C" const void *sn_kernel_function(SnKernel kernel) {
  switch (kernel) {
#define SN_KERNEL_CASE(name, body, text) \
  case SN_KERNEL_##name:                 \
    return (const void *)body##_on_device;
    SN_KERNELS(SN_KERNEL_CASE)
#undef SN_KERNEL_CASE
    default:
      return nullptr;
  }
}
