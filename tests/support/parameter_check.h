// Derivatives of a step by numbers of the model against differences of steps of moved models.
#ifndef SINEW_TESTS_SUPPORT_PARAMETER_CHECK_H_
#define SINEW_TESTS_SUPPORT_PARAMETER_CHECK_H_

#include "tests/support/oracle.h"

// Makes a copy of a model in which parameter p is moved by step; fails the test where there is none.
typedef SnModel *(*SnMovedModel)(const SnModel *m, int p, double step);

// Compares how the next velocity and activations depend on n parameters, at the state of MuJoCo's data, with
// differences; each must move them. Messages tell `what`, and the names of the parameters.
void sn_check_step_parameters(SnOracle *o, const char *what, const char *const *names, int n, SnMovedModel moved);

#endif
