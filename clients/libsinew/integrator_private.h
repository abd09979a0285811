// Between an integrator of one body and lists of them.
#ifndef SINEW_CLIENTS_LIBSINEW_INTEGRATOR_PRIVATE_H_
#define SINEW_CLIENTS_LIBSINEW_INTEGRATOR_PRIVATE_H_

#include "clients/libsinew/interrupt_private.h"
#include "clients/libsinew/model_private.h"

// Shows what a list looks at.
typedef struct ApiIntegratorView {
  const SnModel *model;
  uint64_t structure;    // api_model_structure
  int nknot, nout;       // sizes of the last run
  bool *listed;          // set while a list with it is checked
  ApiInterrupt *own;     // ends calls of this integrator alone
  ApiInterrupt **asked;  // the one that calls look at: own, or that of a list
} ApiIntegratorView;

// Returns what a list looks at of an integrator.
ApiIntegratorView api_integrator_view(SinewIntegrator *integrator);
// Copies structures of a caller as api_take does, over the defaults.
SinewStatus api_integration_take(const SinewIntegration *given, SinewIntegration *run, SinewError *err);
SinewStatus api_integration_bars_take(const SinewIntegrationBars *given, SinewIntegrationBars *bars, SinewError *err);

#endif
