// Checks an adjoint against central differences of its forward function, by one table for every stage.
//
// A case is a function y(x) of nx numbers near a base point, and its adjoint, which ADDS (dy/dx)' ybar to xbar. Every
// sample is checked for this:
//   (1) for random weights, the adjoint equals the central differences along every coordinate
//   (2) <w, J v> = <J' w, v> along random directions v
//   (3) it adds: a second call doubles
//   (4) it repeats bit for bit
//   (5) everything is finite
// Over all samples the adjoint is not zero, and not bit-equal to the differences. A float build does not compare with
// differences, which would show its forward function's rounding: (3) to (5) alone. A slow build (slow.h) has (2) in
// place of (1), wherever the direction stays on the branch.
#ifndef SINEW_TESTS_SUPPORT_GRADCHECK_H_
#define SINEW_TESTS_SUPPORT_GRADCHECK_H_

#include <stdbool.h>
#include <stdint.h>

#include "physics/world/adjoint.h"
#include "tests/support/oracle.h"

typedef struct SnGradCase {
  const char *name;
  int nx, ny;
  void *context;
  // Moves the base point; false: try another one (the function is not smooth there). May be NULL.
  bool (*sample)(void *context);
  // y at base (+) dx. False: another branch of the function than at the base: the sample is left out.
  bool (*forward)(void *context, const double *dx, double *y);
  // At the base: xbar += J' ybar.
  void (*adjoint)(void *context, const double *ybar, double *xbar);
  double step;       // step of the differences; 0: 1e-6
  double tolerance;  // relative to the largest entry of the gradient and to 1e-3; 0: 1e-6
  int samples;       // 0: 20
} SnGradCase;

// Runs a case with weights and directions from `seed` (printed); fails the running cmocka test and names case, sample,
// coordinate and both numbers. Fails, too, when less than half of the samples could be compared; less than two fifths
// where MuJoCo rounds otherwise, and gives other samples.
void sn_gradcheck(const SnGradCase *c, uint64_t seed);

// Holds a world and an adjoint of the oracle's model at a base state, for the cases of stages. x of a case holds the
// tangent coordinates of a state: dq (nv), dv (nv), dact (na), dctrl (nu).
typedef struct SnGradWorld {
  SnOracle *o;
  const SnModel *m;
  SnWorld w;  // at the base state (sn_grad_world_sample), or moved by dx (sn_grad_world_move)
  SnAdjoint a;
  SnLaneShared shared;
  SnLane lane;
  sn_real *qpos, *qvel, *act, *ctrl, *past, *mocap_pos, *mocap_quat, *warm;  // the base state
  double time;
  double *motion;  // (SN_NMOTION, nv) fixed random motions; that of SN_VEL is not used: it is qvel
  void *memory, *adjoint_memory;
} SnGradWorld;

// Takes the model of the oracle; free it before the oracle.
void sn_grad_world_init(SnGradWorld *g, SnOracle *o);
void sn_grad_world_free(SnGradWorld *g);
// Returns the number of tangent coordinates: 2 nv + na + nu.
int sn_grad_world_nx(const SnGradWorld *g);
// Makes the base state that of MuJoCo's data o->d (after sn_oracle_randomize), and draws new motions.
void sn_grad_world_sample(SnGradWorld *g);
// Sets w's STATE to base (+) dx; NULL: to the base.
void sn_grad_world_move(SnGradWorld *g, const double *dx);
// Runs the stages up to velocities: kinematics, tendons, collision, transmissions, velocities.
void sn_grad_world_velocities(SnGradWorld *g);
// Sets the motions of the adjoint: qvel of w for SN_VEL, the random ones for the others. Calls sn_motion_propagate.
void sn_grad_world_motions(SnGradWorld *g);
// Integrates w, whose stages have run (sn_forward). Writes its velocities and activations into y (nv + na).
void sn_grad_world_integrate(SnGradWorld *g, double *y);
// Goes back through all of a step of w, whose stages have run, from the bars of that y. Adds to xbar (nx).
void sn_grad_world_step_vjp(SnGradWorld *g, const double *ybar, double *xbar);
// Adds RESULT of the adjoint to xbar (nx), in the order of x.
void sn_grad_world_result(const SnGradWorld *g, double *xbar);

#endif
