// Addresses of a user's daemon, unless its settings say otherwise: one rule for the daemon and for its clients.
#ifndef SINEW_PROTO_DEFAULT_ENDPOINT_H_
#define SINEW_PROTO_DEFAULT_ENDPOINT_H_

#include <stdbool.h>
#include <stddef.h>

// Writes the folder of the user's sockets: $XDG_RUNTIME_DIR/sinew where that is an absolute path, else /tmp/sinew-UID.
// Returns false when it does not fit.
bool sn_runtime_folder(char *path, size_t size);

// Writes the address of the daemon's requests, ipc://FOLDER/sinewd.sock in the folder above. Returns false when it does
// not fit.
bool sn_default_endpoint(char *address, size_t size);

// Returns the port at the end of what follows tcp:// in an address; 0 where there is none from 1 to 65535.
int sn_endpoint_port(const char *rest);

// Returns what keeps an address from being one that a client may connect to, ipc://PATH or tcp://HOST:PORT, or NULL.
// Whether anybody listens there is another question.
const char *sn_endpoint_fault(const char *address);

#endif
