// Roles: which requests a peer may send, and which sessions it may use and know of.
#ifndef SINEW_DAEMON_REQUESTS_ROLES_PRIVATE_H_
#define SINEW_DAEMON_REQUESTS_ROLES_PRIVATE_H_

#include "daemon/session/session.h"

// Returns the least role for a request.
SnRole sn_role_needed(Sinew__V1__Request__BodyCase body);

// Returns whether a peer may use a session: its own, and an admin all of them.
bool sn_may_use(const SnPeer *peer, const SnSession *session);

// Returns whether a peer is told the id of a session. A peer without a key at a tcp address may be anybody on this
// machine, so it is told none, and uses what it knows. NULL is the public.
bool sn_may_know(const SnPeer *peer, const SnSession *session);

// Returns whether a request makes the planner work for its session.
bool sn_needs_planning(Sinew__V1__Request__BodyCase body);

#endif
