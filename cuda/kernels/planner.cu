// The planner's shared code as device code: costs, noise, paths, the way back, refinement. Part of kernels.cu.
#include "planner/optimize/adam.c"
#include "planner/rollout/rollout_vjp.c"
#include "planner/cost/cost.c"
#include "planner/optimize/noise.c"
#include "planner/rollout/rollout.c"
#include "planner/optimize/multistart.c"
#include "planner/optimize/spline.c"
