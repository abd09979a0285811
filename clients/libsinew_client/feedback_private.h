// Feedback gains of a plan. Not installed.
#ifndef SINEW_CLIENTS_LIBSINEW_CLIENT_FEEDBACK_PRIVATE_H_
#define SINEW_CLIENTS_LIBSINEW_CLIENT_FEEDBACK_PRIVATE_H_

#include "clients/include/sinew_client.h"
#include "proto/sinew.pb-c.h"

// Returns what is wrong with the gains of a plan for this model, in static memory; NULL: nothing. They must have the
// right size, come with the states that they refer to, and be finite.
const char *sn_gain_fault(const Sinew__V1__ModelDescription *model, const Sinew__V1__Plan *plan);

// Adds the gain of a row times the difference of a state to the predicted one to ctrl (nu). Returns false, with nothing
// done, for a row without gains. The plan is one without fault.
bool sn_feedback(const Sinew__V1__ModelDescription *model, const Sinew__V1__Plan *plan, size_t row,
                 const SinewState *state, double *ctrl);

#endif
