// Addresses that the daemon may bind, the user's runtime folder, and the lock that keeps a second daemon off.
#ifndef SINEW_DAEMON_WIRE_ENDPOINT_PRIVATE_H_
#define SINEW_DAEMON_WIRE_ENDPOINT_PRIVATE_H_

#include <stddef.h>

#include "physics/base/status.h"

enum { SN_IPC_PATH_MAX = 107 };  // sockaddr_un holds no more

// The folder of the user's sockets: $XDG_RUNTIME_DIR/sinew, or /tmp/sinew-UID; made with mode 0700 if missing. Refused
// when it is not a folder of this user, or open to others.
SnCode sn_runtime_folder(char *path, size_t size, SnError *err);

// Allows ipc://PATH (absolute, short enough), tcp://127.x.x.x:PORT and tcp://[::1]:PORT.
// Everything else is refused: who can reach the daemon can move the robot.
SnCode sn_endpoint_check(const char *address, SnError *err);

// The lock of an endpoint, held until the process ends or sn_endpoint_unlock. For ipc a file next to the socket
// (PATH.lock): zmq would silently take the path away from a daemon that serves it. tcp needs none. *fd is -1 where
// there is none. SN_ERR_STATE names the process that holds it.
SnCode sn_endpoint_lock(const char *address, int *fd, SnError *err);

// Removes the socket of an ipc endpoint and its lock. fd of sn_endpoint_lock; -1 does nothing.
void sn_endpoint_unlock(const char *address, int fd);

#endif
