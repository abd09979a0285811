// The engine and the planner's shared code as device code: residuals and norms of costs, splines, noise.
// The kernels keep the compiler from dropping them; rollouts on the device are made of these parts.
#include "cuda/physics.cu"

#include "planner/adam.c"
#include "planner/backward.c"
#include "planner/cost.c"
#include "planner/noise.c"
#include "planner/path.c"
#include "planner/refine.c"
#include "planner/spline.c"

// Norms of all terms in world blockIdx.x, into value (worlds, nall); res is scratch (worlds, nres).
extern "C" __global__ void sn_cost_kernel(const SnCost *cost, const SnModel *model, const SnWorld *worlds,
                                          const sn_real *target, sn_real *res, sn_real *value) {
  __shared__ SnLaneShared shared;
  SnLane lane = {(int)threadIdx.x, (int)blockDim.x, &shared, nullptr, nullptr};
  sn_real *r = res + (size_t)blockIdx.x * cost->nres;
  sn_cost_residual(cost, model, worlds + blockIdx.x, &lane, target, 0, cost->nall, r);
  sn_cost_norm(cost, &lane, r, 0, cost->nall, value + (size_t)blockIdx.x * cost->nall);
}

// Noise of candidate blockIdx.x for control threadIdx.x at one time x [knots], into out (candidates, controls).
// scratch: (candidates, controls, 3 * knots).
extern "C" __global__ void sn_noise_kernel(const SnNoise *noise, sn_real x, sn_real *scratch, sn_real *out) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  sn_real *h = scratch + 3 * i * noise->knots, *white = h + noise->knots, *knot = white + noise->knots;
  sn_noise_filter(noise->colour, noise->knots, h);
  sn_noise_column(noise, (int)blockIdx.x, (int)threadIdx.x, h, white, knot);
  out[i] = sn_spline(noise->interpolation, knot, noise->knots, 1, x);
}
