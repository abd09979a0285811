// Models for the tests of the smooth dynamics: every kind of joint, spring, tendon and weld in small MJCF texts, and
// models of MyoSuite.
#ifndef SINEW_TESTS_SUPPORT_DYNAMICS_MODELS_H_
#define SINEW_TESTS_SUPPORT_DYNAMICS_MODELS_H_

#include "tests/support/oracle.h"
#include "tests/support/tolerance.h"

// Calls check(o, name) in `nstate` random states of every model, inline ones and MyoSuite's (left out, with a message,
// when they are not in the cache). MuJoCo has run mj_forward, our world has the state and nothing else but NaN.
void sn_dynamics_for_models(int nstate, double speed, void (*check)(SnOracle *o, const char *name));

// The inline models alone, loaded with an option element of the caller, like "<option integrator='RK4'/>".
void sn_dynamics_for_inline(const char *option, int nstate, double speed, void (*check)(SnOracle *o, const char *name));

// Loads the i-th of them; false at the end of the list.
bool sn_dynamics_load_inline(SnOracle *o, const char *option, int i, const char **name);

// Random state (mocap poses too), mj_forward, a world with that state and otherwise NaN.
void sn_dynamics_sample(SnOracle *o, double speed);

#endif
