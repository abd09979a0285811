// sinewctl watch: how a session fares, from the daemon's telemetry, for people or as JSON lines.
#ifndef SINEW_CLIENTS_SINEWCTL_WATCH_PRIVATE_H_
#define SINEW_CLIENTS_SINEWCTL_WATCH_PRIVATE_H_

#include "clients/libsinew_client/wire.h"

// Says what to look at, and for how long.
typedef struct WatchOptions {
  uint64_t session;
  double seconds;   // for so long; 0: until the session ends
  uint64_t count;   // so many looks; 0: any number
  double interval;  // between two looks [s], by requests; 0: what telemetry brings
  bool json;        // a line of JSON a look
} WatchOptions;

// Looks at the session until a bound is reached or it ends (SINEW_OK), or the daemon is gone.
SinewStatus watch_run(SinewClient *client, const WatchOptions *options, SinewError *err);

#endif
