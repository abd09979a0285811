// Forces of a fluid between their stage and its adjoint: a part of a link, its force and the slopes of that.
#ifndef SINEW_PHYSICS_DYNAMICS_FLUID_PRIVATE_H_
#define SINEW_PHYSICS_DYNAMICS_FLUID_PRIVATE_H_

#include "physics/dynamics/dynamics.h"

// Describes a part of a link at this moment: axes, place from the tree's centre, velocity through the fluid (w, v) in
// its axes, and the fluid. The coefficients are those of the model, or moved ones.
typedef struct SnFluidPart {
  int link, index;
  SnFluidMatrix way;
  SnFluid kind;
  const sn_real *coef;
  bool drag;  // drag alone, of an ellipsoid
  sn_real density, viscosity;
  sn_real R[9], p[3], x[6];
} SnFluidPart;

// Holds what the force along v depends on, see the head of fluid.c: c (8), and their derivatives by s1, s2, s3.
typedef struct SnFluidSlope {
  sn_real a[3], s[3], per[3];    // scaled areas; the three forms; 1 / s, or 0
  sn_real most, speed, root[2];  // largest area; square roots of s1, s2, s3
  sn_real c[8], by[8][3];
  sn_real turn[2], turn_by[2];  // factors of 1 and of w (m^2 w)' in the drag of turning, their derivatives by m^2 w
} SnFluidSlope;

// Returns what the force of fluid.c's head is multiplied by. MuJoCo leaves it out of the matrix of implicit
// integrators.
SN_INLINE sn_real sn_fluid_scale(const SnFluidPart *part) {
  return part->kind == SN_FLUID_BOX ? SN_R(1.0) : part->coef[SN_ELL_SCALE];
}

// Return the coefficient of a box along axis e of (w, v): of viscosity, and of density.
SN_INLINE sn_real sn_fluid_box_linear(const SnFluidPart *part, int e) {
  return part->viscosity * part->coef[e < 3 ? SN_BOX_TURN : SN_BOX_MOVE];
}
SN_INLINE sn_real sn_fluid_box_square(const SnFluidPart *part, int e) {
  return part->density * part->coef[e < 3 ? SN_BOX_TORQUE + e : SN_BOX_FORCE + e - 3];
}

// Sees part k of entry `entry` of fluidlink_list.
SN_FUNC void sn_fluid_part(const SnModel *m, const SnWorld *w, int entry, int k, SnFluidPart *part);
// Computes the force (6) on a part, in its axes.
SN_FUNC void sn_fluid_force(const SnFluidPart *part, sn_real *out);
// Computes B (6, 6), and of an ellipsoid the slopes that it is made of.
SN_FUNC void sn_fluid_matrix(const SnFluidPart *part, SnFluidSlope *s, sn_real *B);
// Symmetrises B where the matrix of an integrator has it so.
SN_FUNC void sn_fluid_symmetrise(SnFluidMatrix way, sn_real *B);

#endif
