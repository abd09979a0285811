// The planner's shared code as device code: costs, noise, paths, the way back, refinement. Part of kernels.cu.
#include "planner/adam.c"
#include "planner/backward.c"
#include "planner/cost.c"
#include "planner/noise.c"
#include "planner/path.c"
#include "planner/refine.c"
#include "planner/spline.c"
