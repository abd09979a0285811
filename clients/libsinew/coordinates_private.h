// The two coordinates of positions (SinewCoordinates), and derivatives by either.
#ifndef SINEW_CLIENTS_LIBSINEW_COORDINATES_PRIVATE_H_
#define SINEW_CLIENTS_LIBSINEW_COORDINATES_PRIVATE_H_

#include "physics/model/model.h"

// Returns how many numbers of joint j come before its quaternion, or are all that it has.
int api_plain_numbers(const SnModel *m, int j, bool *quaternion);

// Turns the derivative of a number by the tangent of positions, (nv), into that by the entries of qpos, (nq). It is
// taken at qpos (nq), whose quaternions may have any length.
void api_bar_of_array(const SnModel *m, const double *qpos, const double *tangent_bar, double *array_bar);

// Turns the derivative of a number by the entries of qpos, (nq), into that by the tangent, (nv), at qpos. The part
// along a quaternion is lost.
void api_bar_of_tangent(const SnModel *m, const double *qpos, const double *array_bar, double *tangent_bar);

// Turns derivatives by mocap bodies, (nmocap, 6), from the engine's torques and forces into those of the public header.
// These are by displacements, then by turns about the world's axes. `bar` may be `wrench`.
void api_bar_of_mocap(const SnModel *m, const double *wrench, double *bar);

#endif
