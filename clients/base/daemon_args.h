// Options that say where the daemon is and who asks, of every program that connects to one.
#ifndef SINEW_CLIENTS_BASE_DAEMON_ARGS_H_
#define SINEW_CLIENTS_BASE_DAEMON_ARGS_H_

#include <argp.h>

#include "clients/include/sinew_client.h"

// Parses --endpoint, --server-key and --key into a SinewClientDef. It is the list of children of a program's argp,
// whose parser gives it in ARGP_KEY_INIT: state->child_inputs[0] = &def.
extern const struct argp_child sn_daemon_args[];

#endif
