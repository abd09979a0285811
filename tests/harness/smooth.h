// Exact signed distance of smooth shapes: a second opinion on convex collision, independent of it.
#ifndef SINEW_TESTS_HARNESS_SMOOTH_H_
#define SINEW_TESTS_HARNESS_SMOOTH_H_

#include "physics/ccd.h"

// Nearest points of two surfaces, and the unit normal from the first to the second; dist < 0: depth.
typedef struct SmoothNearest {
  double dist;
  double normal[3];
  double x1[3], x2[3];
} SmoothNearest;

// a: sphere, capsule or ellipsoid; b: ellipsoid. False: too deep to be certain that the point found is the nearest.
bool smooth_nearest(const SnConvex *a, const SnConvex *b, SmoothNearest *r);

#endif
