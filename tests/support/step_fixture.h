// Tests of whole steps: integrators, models, the adjoint of a step in a world of the test.
#ifndef SINEW_TESTS_SUPPORT_STEP_FIXTURE_H_
#define SINEW_TESTS_SUPPORT_STEP_FIXTURE_H_

#include "tests/support/gradcheck.h"

enum { SN_STEP_INTEGRATORS = 4 };                      // the last is `discrete`, without noslip
extern const int sn_integrators[SN_STEP_INTEGRATORS];  // SnIntegrator
extern const char *const sn_integrator_name[SN_STEP_INTEGRATORS];

// Skips the test in a float build: floats take other branches than MuJoCo, and their differences are rounding.
void sn_needs_doubles(void);
// Selects integrator i of the list, for both engines. Begins the oracle's world anew where that is, or was, `discrete`:
// its worlds have fields of their own. Other worlds of the model are to be made behind it.
void sn_step_integrator(SnOracle *o, int i);
// Loads small model i. Moves a site that lies exactly on a sphere that its tendon wraps around off it: there the
// touching point is rounding.
void sn_step_model(SnOracle *o, int i);
// Makes a step from the state of g, whose solver leaves nothing undone: the adjoint is that of the solution. (Stages of
// Runge-Kutta: as they are.)
void sn_step_full(SnGradWorld *g);
// Runs sn_step_vjp and sn_position_vjp at the base state, on which sn_forward has run. Takes ybar, the bar of the next
// state (2 nv + na).
void sn_step_full_vjp(SnGradWorld *g, const double *ybar);

#endif
