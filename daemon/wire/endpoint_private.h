// Addresses that the daemon may bind, and the lock that keeps a second daemon off.
#ifndef SINEW_DAEMON_WIRE_ENDPOINT_PRIVATE_H_
#define SINEW_DAEMON_WIRE_ENDPOINT_PRIVATE_H_

#include <stdbool.h>
#include <stddef.h>

#include "physics/base/status.h"

enum { SN_IPC_PATH_MAX = 107 };  // sockaddr_un holds no more

// Allows ipc://PATH (absolute, short enough, in a folder that only this user and root can write), tcp://127.x.x.x:PORT
// and tcp://[::1]:PORT, and, where `keys` says that tcp needs a key, any tcp address.
// Everything else is refused: who can reach the daemon can move the robot.
SnCode sn_endpoint_check(const char *address, bool keys, SnError *err);

// Takes the lock of an endpoint, which is held until the process ends or sn_endpoint_unlock. For ipc it is a file next
// to the socket (PATH.lock): zmq would silently take the path away from a daemon that serves it. tcp needs none, and
// *fd is then -1. SN_ERR_STATE names the process that holds the lock.
SnCode sn_endpoint_lock(const char *address, int *fd, SnError *err);

// Removes the socket of an ipc endpoint and its lock. fd of sn_endpoint_lock; -1 does nothing.
void sn_endpoint_unlock(const char *address, int fd);

#endif
