// Answers of a daemon are checked here before a robot moves by them: whose they are, sizes, numbers that are finite and
// make sense. Not installed.
#ifndef SINEW_CLIENTS_LIBSINEW_CLIENT_ACCEPT_PRIVATE_H_
#define SINEW_CLIENTS_LIBSINEW_CLIENT_ACCEPT_PRIVATE_H_

#include "clients/include/sinew_client.h"
#include "proto/sinew.pb-c.h"

// Checks the answers that open a session: sizes of model and initial state, limits of controls, finite numbers.
// Returns false, and a text in why[size] that names what is wrong, if they must not be used.
bool sn_accept_session(const Sinew__V1__OpenReply *open, const Sinew__V1__ModelDescription *model, char *why,
                       size_t size);

// Checks a plan that brings controls, for a session whose latest state sent has the time stamp `latest` [s]. Returns
// false, and a text in why[size], if it must not be used.
bool sn_accept_plan(const Sinew__V1__Plan *plan, const SinewSessionInfo *info, double latest, char *why, size_t size);

// Returns how many of n controls, from the first on, are numbers that a plan may have.
size_t sn_accept_controls(const double *ctrl, size_t n);

// Finds the first of n numbers that is not finite; n when all are.
size_t sn_first_not_finite(const double *x, size_t n);

#endif
