// Other users of this machine who may connect to ipc addresses. The system tells whose a connection is when it is made
// (SO_PEERCRED).
#ifndef SINEW_DAEMON_WIRE_USERS_PRIVATE_H_
#define SINEW_DAEMON_WIRE_USERS_PRIVATE_H_

#include <stdbool.h>
#include <stdint.h>

#include "physics/base/status.h"

// Takes the setting `users`: numbers with commas between, "" for none. To be called once, before there are connections.
SnCode sn_users_prepare(const char *list, SnError *err);

// Checks such a list as sn_users_prepare does, and changes nothing.
SnCode sn_users_check(const char *list, SnError *err);

// Returns whether there are some: then the sockets are open to all, and who may come in is decided here.
bool sn_users_given(void);

// Returns whether the peer of a connection that was accepted may come in. Over ipc these are this user, root, and those
// of the setting, over anything else everybody. Any thread may call it.
bool sn_users_admit(int fd);

// Returns how many were turned away so far, and in *user who was the latest. Any thread may call it.
uint64_t sn_users_turned_away(unsigned *user);

#endif
