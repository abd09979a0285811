// Models with surfaces that move, and with surfaces that stick.
#ifndef SINEW_TESTS_SUPPORT_SURFACE_MODEL_H_
#define SINEW_TESTS_SUPPORT_SURFACE_MODEL_H_

#include "tests/support/oracle.h"

// Loads a floor and a tilting box whose surfaces move and turn, and a box on the latter. A sphere with a surface that
// spins lies beside another one. All dimensions of friction are there, in pyramids or elliptic cones.
void sn_surface_load(SnOracle *o, bool elliptic);

// Loads boxes and spheres whose contacts pull, in touch and in the gap, of all dimensions, one by a pair of its own.
void sn_adhesion_load(SnOracle *o, bool elliptic);

#endif
