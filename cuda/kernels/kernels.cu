// All device code of a library in one unit: the engine's text, the planner's and the bodies of kernels, which
// cuda/CMakeLists.txt lists in device_text.inc of the build folder, and kernels around them. What one call of a body
// does, one row of a thread block does: its threads are the lanes. Rows of a warp or less meet at the end of each stage
// (SN_MEET), and so fetch the same instructions.
#include "device_text.inc"

// A kernel around a body. The arguments lie in constant memory. Without a model there is nothing to do (kernels.h).
#define SN_KERNEL_AROUND(body)                                                                                      \
  static __global__ void __launch_bounds__(SN_KERNEL_BLOCK) body##_on_device(const __grid_constant__ SnWork work) { \
    const int block = (int)(blockIdx.x * blockDim.y + threadIdx.y);                                                 \
    if (work.model.nbody == 0 || block >= work.blocks) return;                                                      \
    SnKernelHead *head = (SnKernelHead *)sn_kernel_slot(&work, block);                                              \
    SnLane lane = {(int)threadIdx.x, (int)blockDim.x, &head->lanes, nullptr, nullptr};                              \
    body(&work, block, work.blocks, &lane, head);                                                                   \
  }

SN_KERNEL_AROUND(sn_kernel_rollout)
SN_KERNEL_AROUND(sn_kernel_iterate)
SN_KERNEL_AROUND(sn_kernel_forward)
SN_KERNEL_AROUND(sn_kernel_make)
SN_KERNEL_AROUND(sn_kernel_jacobian)
SN_KERNEL_AROUND(sn_kernel_sweep)
SN_KERNEL_AROUND(sn_kernel_collect)
SN_KERNEL_AROUND(sn_kernel_evaluate)
SN_KERNEL_AROUND(sn_kernel_select)

extern "C" const void *sn_kernel_function(SnKernel kernel) {
  switch (kernel) {
    case SN_KERNEL_ROLLOUT:
      return (const void *)sn_kernel_rollout_on_device;
    case SN_KERNEL_ITERATE:
      return (const void *)sn_kernel_iterate_on_device;
    case SN_KERNEL_FORWARD:
      return (const void *)sn_kernel_forward_on_device;
    case SN_KERNEL_MAKE:
      return (const void *)sn_kernel_make_on_device;
    case SN_KERNEL_JACOBIAN:
      return (const void *)sn_kernel_jacobian_on_device;
    case SN_KERNEL_SWEEP:
      return (const void *)sn_kernel_sweep_on_device;
    case SN_KERNEL_COLLECT:
      return (const void *)sn_kernel_collect_on_device;
    case SN_KERNEL_EVALUATE:
      return (const void *)sn_kernel_evaluate_on_device;
    case SN_KERNEL_SELECT:
      return (const void *)sn_kernel_select_on_device;
    default:
      return nullptr;
  }
}
