// Whole steps of models with many kinds of actuators.
#ifndef SINEW_TESTS_SUPPORT_ACTUATOR_STEPS_H_
#define SINEW_TESTS_SUPPORT_ACTUATOR_STEPS_H_

#include "tests/support/oracle.h"

// Draws a random state whose activations are of size `act`.
void sn_actuator_draw(SnOracle *o, double speed, double act);
// Compares the next velocities and activations of `samples` random states with MuJoCo's; messages tell `what`. Frees
// the oracle.
void sn_check_actuator_steps(SnOracle *o, const char *what, double act, int samples);
// Compares the adjoint of the next velocities and activations with differences. Frees the oracle.
void sn_check_actuator_gradient(SnOracle *o, const char *what, double act, int samples);

#endif
