// What a daemon says is checked here before a robot moves by it: whose it is, sizes, numbers that are finite and make
// sense. Not installed.
#ifndef SINEW_CLIENTS_LIBSINEW_CLIENT_ACCEPT_PRIVATE_H_
#define SINEW_CLIENTS_LIBSINEW_CLIENT_ACCEPT_PRIVATE_H_

#include "clients/include/sinew_client.h"
#include "proto/sinew.pb-c.h"

// Checks the answers that open a session: sizes of model and initial state, limits of controls, finite numbers.
// False and a text that names what is wrong in why.
bool sn_accept_session(const Sinew__V1__OpenReply *open, const Sinew__V1__ModelDescription *model, char *why,
                       size_t size);

// Checks a plan that brings controls, for a session whose latest state sent has this time stamp [s].
bool sn_accept_plan(const Sinew__V1__Plan *plan, const SinewSessionInfo *info, double latest, char *why, size_t size);

// Finds the first of n numbers that is not finite; n when all are.
size_t sn_first_not_finite(const double *x, size_t n);

#endif
