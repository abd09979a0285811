// Muscle curves: active and passive force, activation dynamics. Pure functions of numbers.
#ifndef SINEW_PHYSICS_BASE_MUSCLE_CURVES_H_
#define SINEW_PHYSICS_BASE_MUSCLE_CURVES_H_

#include "physics/base/bar.h"

// Indexes a muscle's curves with all divisions done: a table of SN_NMUSCLE numbers.
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
  SN_MUSCLE_FVSTEP,        // SN_MUSCLE_FVMAX less 1
  SN_MUSCLE_PER_FVSTEP,    // 1 / that
  SN_MUSCLE_PASSIVE,       // passive force scale [N]
  SN_NMUSCLE
};

// Fills the table of an actuator. prm[9]: range[2], force, scale, lmin, lmax, vmax, fpmax, fvmax; lengthrange[2]: its
// range of lengths [m]; acc0: its acceleration at unit force.
SN_FUNC void sn_muscle_table(sn_real *table, const sn_real *prm, const sn_real *lengthrange, sn_real acc0);

// Returns the active force [N] of a fully activated muscle (negative: it pulls) at length [m] and velocity [m/s].
SN_FUNC sn_real sn_muscle_gain(const sn_real *table, sn_real length, sn_real velocity);

// Returns the derivative of sn_muscle_gain with respect to velocity [N s/m].
SN_FUNC sn_real sn_muscle_gain_slope(const sn_real *table, sn_real length, sn_real velocity);

// Adds bar times the derivatives of sn_muscle_gain to length_bar and velocity_bar. The curves have continuous slopes,
// so nothing has to be chosen at their joints.
SN_FUNC void sn_muscle_gain_vjp(const sn_real *table, sn_real length, sn_real velocity, sn_bar bar, sn_bar *length_bar,
                                sn_bar *velocity_bar);

// Adds bar times the derivatives of sn_muscle_gain_slope to length_bar and velocity_bar. The derivative by velocity
// jumps at V = -1, 0 and fvmax - 1. There it is that of the piece that the forward function takes: 0 at -1, the one
// below at the others.
SN_FUNC void sn_muscle_gain_slope_vjp(const sn_real *table, sn_real length, sn_real velocity, sn_bar bar,
                                      sn_bar *length_bar, sn_bar *velocity_bar);

// Returns the derivative of sn_muscle_gain with respect to length [N/m].
SN_FUNC sn_real sn_muscle_gain_stretch(const sn_real *table, sn_real length, sn_real velocity);
// Adds bar times the derivatives of that to length_bar and velocity_bar. The derivative by length jumps where the curve
// of lengths has its joints, and there is that of the piece that the forward function takes.
SN_FUNC void sn_muscle_gain_stretch_vjp(const sn_real *table, sn_real length, sn_real velocity, sn_bar bar,
                                        sn_bar *length_bar, sn_bar *velocity_bar);

// Returns the passive force [N] (negative), whatever the activation.
SN_FUNC sn_real sn_muscle_bias(const sn_real *table, sn_real length);
// Adds bar times the derivative of sn_muscle_bias to length_bar.
SN_FUNC void sn_muscle_bias_vjp(const sn_real *table, sn_real length, sn_bar bar, sn_bar *length_bar);

// Returns the derivative of sn_muscle_bias with respect to length [N/m].
SN_FUNC sn_real sn_muscle_bias_stretch(const sn_real *table, sn_real length);
// Adds bar times the derivative of that to length_bar.
SN_FUNC void sn_muscle_bias_stretch_vjp(const sn_real *table, sn_real length, sn_bar bar, sn_bar *length_bar);

// Returns the rate of the activation [1/s]. prm[3] holds the time constants of activation and deactivation [s] and the
// width of the switch between them (0: a step).
SN_FUNC sn_real sn_muscle_rate(sn_real ctrl, sn_real act, const sn_real *prm);

// Adds bar times the derivatives of sn_muscle_rate to ctrl_bar and act_bar. Chooses where there are several: controls
// and activations at 0 or 1 have the derivative of the inside, those beyond have none through the clamp. At ctrl = act,
// where the time constant jumps, it is that of activation. At ctrl = act = 1 it is that of deactivation, since the
// control can only fall.
SN_FUNC void sn_muscle_rate_vjp(sn_real ctrl, sn_real act, const sn_real *prm, sn_bar bar, sn_bar *ctrl_bar,
                                sn_bar *act_bar);

#endif
