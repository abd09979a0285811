// Muscle curves: active and passive force, activation dynamics. Pure functions of numbers.
#ifndef SINEW_PHYSICS_BASE_MUSCLE_CURVES_H_
#define SINEW_PHYSICS_BASE_MUSCLE_CURVES_H_

#include "physics/base/real.h"

// A muscle's curves with all divisions done: a table of SN_NMUSCLE numbers.
enum {
  SN_MUSCLE_OFFSET,        // normalised length at length 0
  SN_MUSCLE_PER_LENGTH,    // normalised length per length [1/m]
  SN_MUSCLE_PER_VELOCITY,  // normalised velocity per velocity [s/m]
  SN_MUSCLE_PEAK,          // peak force [N]
  SN_MUSCLE_LMIN,          // normalised lengths: active force begins,
  SN_MUSCLE_LOW,           //   half way to 1,
  SN_MUSCLE_PER_LOW,       //   1 / (that way)
  SN_MUSCLE_HIGH,          //   half way from 1,
  SN_MUSCLE_PER_HIGH,      //   1 / (that way)
  SN_MUSCLE_LMAX,          //   active force ends
  SN_MUSCLE_FVMAX,         // active force at large velocity, of the peak
  SN_MUSCLE_FVSTEP,        // the same less 1
  SN_MUSCLE_PER_FVSTEP,    // 1 / that
  SN_MUSCLE_PASSIVE,       // passive force scale [N]
  SN_NMUSCLE
};

// Fills the table of an actuator. prm[9]: range[2], force, scale, lmin, lmax, vmax, fpmax, fvmax; lengthrange[2]: its
// range of lengths [m]; acc0: its acceleration at unit force.
SN_FUNC void sn_muscle_table(sn_real *table, const sn_real *prm, const sn_real *lengthrange, sn_real acc0);

// Active force [N] of a fully activated muscle (negative: it pulls) at length [m] and velocity [m/s].
SN_FUNC sn_real sn_muscle_gain(const sn_real *table, sn_real length, sn_real velocity);

// Derivative of that with respect to velocity [N s/m].
SN_FUNC sn_real sn_muscle_gain_slope(const sn_real *table, sn_real length, sn_real velocity);

// Adjoint of sn_muscle_gain: adds bar times its derivatives to those of length and velocity. The curves have continuous
// slopes, so nothing has to be chosen at their joints.
SN_FUNC void sn_muscle_gain_vjp(const sn_real *table, sn_real length, sn_real velocity, sn_real bar,
                                sn_real *length_bar, sn_real *velocity_bar);

// The same of sn_muscle_gain_slope, whose derivative by velocity jumps at V = -1, 0 and fvmax - 1: there it is that of
// the piece that the forward function takes, which at -1 is 0 and at the others the one below.
SN_FUNC void sn_muscle_gain_slope_vjp(const sn_real *table, sn_real length, sn_real velocity, sn_real bar,
                                      sn_real *length_bar, sn_real *velocity_bar);

// Passive force [N] (negative), whatever the activation.
SN_FUNC sn_real sn_muscle_bias(const sn_real *table, sn_real length);
SN_FUNC void sn_muscle_bias_vjp(const sn_real *table, sn_real length, sn_real bar, sn_real *length_bar);

// Rate of the activation [1/s]; prm[3]: time constants of activation and deactivation [s], width of the
// switch between them (0: a step).
SN_FUNC sn_real sn_muscle_rate(sn_real ctrl, sn_real act, const sn_real *prm);

// Its adjoint. Choices: controls and activations at 0 or 1 have the derivative of the inside, those beyond have none
// through the clamp. At ctrl = act, where the time constant jumps, it is that of activation, but at ctrl = 1, from
// where the control can only fall, that of deactivation.
SN_FUNC void sn_muscle_rate_vjp(sn_real ctrl, sn_real act, const sn_real *prm, sn_real bar, sn_real *ctrl_bar,
                                sn_real *act_bar);

#endif
