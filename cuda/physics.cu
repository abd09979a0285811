// The engine as device code: one unit that includes the text of every stage.
// The kernel below is the whole step of a world by one block; it keeps the compiler from dropping
// the stages and is what a rollout kernel loops over.
#include "physics/actuation.c"
#include "physics/adjoint.c"
#include "physics/bias.c"
#include "physics/branched.c"
#include "physics/collide.c"
#include "physics/collide_box.c"
#include "physics/collide_capsule_box.c"
#include "physics/collide_convex.c"
#include "physics/collide_plane.c"
#include "physics/collide_primitive.c"
#include "physics/constraint.c"
#include "physics/constraint_contact.c"
#include "physics/constraint_equality.c"
#include "physics/constraint_limit.c"
#include "physics/epa.c"
#include "physics/frame.c"
#include "physics/gjk.c"
#include "physics/factor.c"
#include "physics/hessian.c"
#include "physics/impedance.c"
#include "physics/inertia.c"
#include "physics/integrate.c"
#include "physics/integrate_implicit.c"
#include "physics/integrate_rk4.c"
#include "physics/jacobian.c"
#include "physics/kinematics.c"
#include "physics/lane.c"
#include "physics/linesearch.c"
#include "physics/feature.c"
#include "physics/multicontact.c"
#include "physics/muscle.c"
#include "physics/passive.c"
#include "physics/polytope.c"
#include "physics/saturation.c"
#include "physics/sensor.c"
#include "physics/smooth.c"
#include "physics/sensor_frame.c"
#include "physics/solver.c"
#include "physics/support.c"
#include "physics/tendon.c"
#include "physics/touch.c"
#include "physics/transmission.c"
#include "physics/wrap.c"
#include "physics/step.c"

// Steps world blockIdx.x once. model and worlds lie in device memory, the lanes are the threads of the block.
extern "C" __global__ void sn_step_kernel(const SnModel *model, SnWorld *worlds) {
  __shared__ SnLaneShared shared;
  SnLane lane = {(int)threadIdx.x, (int)blockDim.x, &shared, nullptr};
  sn_step(model, worlds + blockIdx.x, &lane);
}
