// A comparison between the stages (compare.c) and the sensors (compare_sensors.c).
#ifndef SINEW_CLIENTS_REFERENCE_COMPARE_PRIVATE_H_
#define SINEW_CLIENTS_REFERENCE_COMPARE_PRIVATE_H_

#include "clients/reference/compare.h"

// Returns the tolerance that a field has in a step without edged contacts.
double sn_compare_tolerance(SnCompared field);
// Notes a relative error of a field, of an element, in a step.
void sn_compare_record(SnCompare *c, SnCompared field, double rel, double tol, int step, int element);
// Compares n numbers of a field and notes the largest error.
void sn_compare_numbers(SnCompare *c, SnCompared field, const sn_real *ours, const double *ref, int n, double tol,
                        int step);
// Zeroes scratch for n numbers of each engine, ours and ref. Returns false when out of memory.
bool sn_compare_reserve(SnCompare *c, size_t n);

// Compare the values of sensors, and the buffers of controls and sensors after a step.
void sn_compare_sensors(SnCompare *c, const SnOracle *o, int step);
void sn_compare_history(SnCompare *c, const SnOracle *o, int step);

#endif
