// sinewctl trace: one plan of a session through its stages, with times, for people or as JSON.
#ifndef SINEW_CLIENTS_SINEWCTL_TRACE_PRIVATE_H_
#define SINEW_CLIENTS_SINEWCTL_TRACE_PRIVATE_H_

#include "clients/libsinew_client/wire.h"

// Says which plans are followed.
typedef struct TraceOptions {
  uint64_t session;
  double seconds;  // waits so long for them; 0: until they come
  uint64_t count;  // so many plans; 0: one
  bool json;       // a line of JSON each
} TraceOptions;

// Follows the next plans of the session. Returns SINEW_ERR_TIMEOUT when they did not come in time.
SinewStatus trace_run(SinewClient *client, const TraceOptions *options, SinewError *err);

#endif
