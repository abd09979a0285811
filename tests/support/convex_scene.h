// Convex geoms that move freely, placed at random: the scene of the tests of distance and of penetration.
#ifndef SINEW_TESTS_SUPPORT_CONVEX_SCENE_H_
#define SINEW_TESTS_SUPPORT_CONVEX_SCENE_H_

#include "physics/collision/collision.h"
#include "physics/collision/convex_private.h"
#include "tests/support/oracle.h"

// Defines the asset of an irregular hull, for geoms of mesh 'hull'.
#define SN_CONVEX_HULL                                                                         \
  "<mesh name='hull' vertex='.1 0 0 -.1 .02 0 0 .2 .01 .03 -.15 .02 .01 .02 .15 .02 -.01 -.2 " \
  ".07 .07 .07 -.07 .07 .1 .07 -.08 .09 -.06 -.07 .08 .05 .08 -.09 -.05 .06 -.1 .06 -.07 -.11 -.08 -.06 -.07'/>"

// Loads the free bodies of the caller (MJCF text, one geom each), then a cylinder, a box and a mesh.
void sn_convex_scene(SnOracle *o, const char *bodies);

// Places all geoms at random in random orientations, each coordinate at most `far` [m] from the origin.
void sn_convex_scatter(SnOracle *o, double far);

// Makes *c a search between geoms g1 and g2 to the precision of sn_real. Takes cutoff [m] as SnCcd does.
void sn_convex_pair(const SnOracle *o, SnCcd *c, int g1, int g2, sn_real cutoff);

// Makes *g that geom in a random orientation, each coordinate at most `far` [m] from the origin.
void sn_random_geom(SnOracle *o, int geom, double far, SnPlacedGeom *g);
// Makes *g the base turned about its centre by dx[0..2] [rad], along the world's axes, and displaced by dx[3..5] [m].
void sn_moved_geom(const SnPlacedGeom *base, const double *dx, SnPlacedGeom *g);

#endif
