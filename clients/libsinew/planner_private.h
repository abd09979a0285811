// A planner as libsinew holds it.
#ifndef SINEW_CLIENTS_LIBSINEW_PLANNER_PRIVATE_H_
#define SINEW_CLIENTS_LIBSINEW_PLANNER_PRIVATE_H_

#include "clients/libsinew/backend_private.h"
#include "clients/libsinew/interrupt_private.h"
#include "clients/libsinew/model_private.h"
#include "planner/planner.h"

struct SinewPlanner {
  ApiGuard guard;
  ApiInterrupt interrupt;
  SinewBackend *backend, *fallback;  // the latter may be NULL
  SnPlanner *planner;
  SinewModel *model;   // shows the planner's own
  double *rest;        // (nq) qpos0, then (nv) zeros: the state where the caller gives none
  double *mocap;       // (nmocap, 3), then (nmocap, 4): poses of a request, apart
  double *mocap_init;  // (nmocap, 7) of the initial state
  double *difference;  // (2 nv + na) between a measured state and the predicted one
  SinewPlan plan;      // the latest one
};

// Begins a call on a planner and its backends: each has one thread at a time. Returns SINEW_ERR_ARGUMENT for NULL, with
// `call` in the text.
SinewStatus api_planner_enter(SinewPlanner *planner, const char *call, SinewError *err);
// Ends a call on a planner. Returns `status`.
SinewStatus api_planner_leave(SinewPlanner *planner, SinewStatus status);
// Ends a call on a planner with what the engine says of it.
SinewStatus api_planner_end(SinewPlanner *planner, SnCode code, const SnError *why, SinewError *err);

#endif
