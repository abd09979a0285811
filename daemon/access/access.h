// Who may ask for what: peers with their keys, roles and quotas, from a file that can be read anew while sinewd runs.
// Whoever has no key is one of two peers that are always there. All of it is the event loop's but where a line says so.
//
// The file has a line for each key: the public key in Z85, its role, then any of
//   name=TEXT        for the log
//   sessions=N       at a time
//   requests=N       a second
//   bytes=N          of requests a second
//   planning=X       seconds a second in which the planner works for the key's sessions and for no others
// Empty lines, and those that begin with "# ", say nothing.
#ifndef SINEW_DAEMON_ACCESS_ACCESS_H_
#define SINEW_DAEMON_ACCESS_ACCESS_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "physics/base/status.h"
#include "proto/key_file.h"

// Orders what peers may do: each role may do what those before it may.
typedef enum SnRole {
  SN_ROLE_NONE,   // not on the list, or not any more
  SN_ROLE_WATCH,  // health, counters of the whole daemon, names of models and tasks
  SN_ROLE_PLAN,   // own sessions
  SN_ROLE_TUNE,   // settings of own sessions while they run
  SN_ROLE_ADMIN,  // everything, at all sessions
} SnRole;

enum { SN_PEER_NAME = 64, SN_PEERS = 4096 };

// Bounds what a peer may have at a time or in a second; INFINITY is no bound.
typedef struct SnQuotas {
  double sessions, requests, bytes, planning;
} SnQuotas;

// Measures a use that may grow by `rate` a second: what was used and has not been forgiven yet, at an instant.
typedef struct SnMeter {
  double used, at;
} SnMeter;

typedef struct SnPeer {
  char key[SN_KEY_TEXT];  // public key; "" of those without one
  char name[SN_PEER_NAME];
  SnRole role;
  bool trusted;  // is told the ids of all sessions
  SnQuotas quota;
  SnMeter requests, bytes, planning;
  double planned;         // seconds of planning that the meter knows of
  int under_way;          // plans that were charged beforehand and are not answered yet
  double due;             // when the last of them is, on sn_clock_now()
  _Atomic int64_t spent;  // nanoseconds of planning for its sessions; the planner thread adds
  int sessions;           // open or being opened; under the lock of the list of sessions
  uint64_t refused;       // requests since the latest line of the log
  double reported;        // when that was, on sn_clock_now(); 0: never
} SnPeer;

typedef struct SnAccess {
  // Peers without a key: processes of this user over ipc; any process of this machine over loopback tcp.
  SnPeer local, anyone;
  SnPeer **peer;  // (count) all keys that there have been since the start: sessions refer to them
  int count, capacity;
  bool keys;  // tcp needs a key
} SnAccess;

// Reads the list of keys; `file` "" is none. err lists each mistake as file:line.
SnCode sn_access_init(SnAccess *access, const char *file, SnError *err);
void sn_access_free(SnAccess *access);

// Reads the list anew: all of it is in force, or on failure nothing changes. *lowered says that a key has been taken
// off the list, or has a lower role.
SnCode sn_access_reload(SnAccess *access, const char *file, bool *lowered, SnError *err);

// Returns the number of a key that is on the list, or -1.
int sn_access_find(const SnAccess *access, const char key[SN_KEY_TEXT]);

// Returns a role's name, or the role of a name: SN_ROLE_NONE for none.
const char *sn_role_name(SnRole role);
SnRole sn_role_of(const char *name);

// Gives a peer other quotas, which do not count what it has used without a bound.
void sn_quota_set(SnPeer *peer, const SnQuotas *quota);

// Takes a request of so many bytes into account. Returns false, and says why, when it is beyond the peer's quota; then
// it does not count.
bool sn_quota_request(SnPeer *peer, size_t bytes, double now, char *why, size_t size);

// Returns whether the peer may be planned for now, and says why not. `allowed` is the time until the plan's deadline
// [s], which must be left beside what is under way. A plan that is longer than a second's worth comes when nothing is
// used, and is paid for by waiting. 0: what has no deadline is paid for afterwards. Sets *charged where
// sn_quota_answered is to be called once the plan is answered; else it stays as it is.
bool sn_quota_planning(SnPeer *peer, double allowed, double now, bool *charged, char *why, size_t size);
// Ends the charge for a plan: what it took counts from now on.
void sn_quota_answered(SnPeer *peer, double now);

// Adds seconds of planning for a peer's session. The planner thread calls it.
void sn_quota_spend(SnPeer *peer, double seconds);

#endif
