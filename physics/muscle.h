// Muscle curves: active and passive force, activation dynamics. Pure functions of numbers.
#ifndef SINEW_PHYSICS_MUSCLE_H_
#define SINEW_PHYSICS_MUSCLE_H_

#include "physics/real.h"

// Normalised active force at normalised length: 0 at lmin and lmax, 1 at 1.
SN_FUNC sn_real sn_muscle_length_curve(sn_real length, sn_real lmin, sn_real lmax);

// Active force of a fully activated muscle (negative: it pulls), at actuator length and velocity.
// lengthrange[2]: the actuator's range of lengths; acc0: its acceleration at unit force;
// prm[9]: range[2], force, scale, lmin, lmax, vmax, fpmax, fvmax.
SN_FUNC sn_real sn_muscle_gain(sn_real length, sn_real velocity, const sn_real *lengthrange, sn_real acc0,
                               const sn_real *prm);

// Passive force (negative), whatever the activation; arguments as above.
SN_FUNC sn_real sn_muscle_bias(sn_real length, const sn_real *lengthrange, sn_real acc0, const sn_real *prm);

// Rate of the activation [1/s]; prm[3]: time constants of activation and deactivation [s], width of the
// switch between them (0: a step).
SN_FUNC sn_real sn_muscle_rate(sn_real ctrl, sn_real act, const sn_real *prm);

#endif
