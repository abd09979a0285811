// Contacts from distance as a caller asks for them, for bodies and for batches.
#ifndef SINEW_CLIENTS_LIBSINEW_CFD_PRIVATE_H_
#define SINEW_CLIENTS_LIBSINEW_CFD_PRIVATE_H_

#include "clients/libsinew/model_private.h"
#include "planner/rollout/cfd.h"

// Holds a SinewCfd as the engine has it; zeroed, there are no such contacts.
typedef struct ApiCfd {
  SinewCfdUse use;
  SnCfdSettings settings;  // `on` as if CFD acted wherever `use` is not SINEW_CFD_NONE
  unsigned char *pair;     // (ncpair) of settings.pair; NULL: all take part
} ApiCfd;

// Reads the settings of a caller, with the defaults and bounds of a planner's. Returns SINEW_ERR_ARGUMENT,
// SINEW_ERR_NOT_FOUND (a body) or SINEW_ERR_MEMORY, and leaves *out as it was, on failure. Free it with api_cfd_clear.
SinewStatus api_cfd_read(const SinewModel *model, const SinewCfd *cfd, ApiCfd *out, SinewError *err);
// Frees what it holds, which is then none.
void api_cfd_clear(ApiCfd *cfd);

#endif
