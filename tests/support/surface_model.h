// A model with moving surfaces, for the tests of constraint_surface.c.
#ifndef SINEW_TESTS_SUPPORT_SURFACE_MODEL_H_
#define SINEW_TESTS_SUPPORT_SURFACE_MODEL_H_

#include "tests/support/oracle.h"

// Loads a floor and a tilting box whose surfaces move and turn, and a box on the latter. A sphere with a surface that
// spins lies beside another one. All dimensions of friction are there, in pyramids or elliptic cones.
void sn_surface_load(SnOracle *o, bool elliptic);

#endif
