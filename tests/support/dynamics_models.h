// Models for the tests of the smooth dynamics: every kind of joint, spring, tendon and weld in small MJCF texts, and
// models of MyoSuite.
#ifndef SINEW_TESTS_SUPPORT_DYNAMICS_MODELS_H_
#define SINEW_TESTS_SUPPORT_DYNAMICS_MODELS_H_

#include "tests/support/oracle.h"
#include "tests/support/tolerance.h"

// Calls check(o, name) in `nstate` random states of every model, inline ones and MyoSuite's (left out, with a message,
// when they are not in the cache). MuJoCo has run mj_forward, our world has the state and nothing else but NaN.
void sn_dynamics_for_models(int nstate, double speed, void (*check)(SnOracle *o, const char *name));

// Calls check for the inline models alone, loaded with an option element of the caller, such as
// "<option integrator='RK4'/>".
void sn_dynamics_for_inline(const char *option, int nstate, double speed, void (*check)(SnOracle *o, const char *name));

// Loads inline model i and its name. Returns false at the end of the list.
bool sn_dynamics_load_inline(SnOracle *o, const char *option, int i, const char **name);

// Draws a random state, mocap poses too, runs mj_forward on it, and makes our world that state and otherwise NaN.
void sn_dynamics_sample(SnOracle *o, double speed);

#endif
