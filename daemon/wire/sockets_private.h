// The ZeroMQ sockets of the daemon. The event loop's alone.
#ifndef SINEW_DAEMON_WIRE_SOCKETS_PRIVATE_H_
#define SINEW_DAEMON_WIRE_SOCKETS_PRIVATE_H_

#include <sys/types.h>

#include "daemon/base/log.h"
#include "daemon/config/config.h"
#include "daemon/wire/connections_private.h"
#include "daemon/wire/outbox.h"
#include "daemon/wire/records.h"
#include "daemon/wire/zap_private.h"

// Knows the file of an ipc address that a socket listens at.
typedef struct SnSocketFile {
  const char *address;  // "" or of another kind: there is no file to look after
  dev_t device;
  ino_t inode;
  bool ours;    // it was there, and was this one
  bool lost;    // it was deleted: the socket listens nowhere
  bool told;    // the log says that it cannot be made again
  double next;  // when it is looked at, or made, again, on sn_clock_now()
} SnSocketFile;

// Listens at an address, and notes its file. The address must stay. err says which one and why not.
SnCode sn_socket_bind(SnSocketFile *file, void *socket, const char *address, SnError *err);
// Looks after the file, when it is time: it is made again when it was deleted. One that is another one's now is told in
// the log and left alone. `socket` may be NULL.
void sn_socket_watch(SnSocketFile *file, void *socket, const SnLog *log, double now);

// Holds a socket that clients connect to, and the one that tells of its connections.
typedef struct SnListener {
  const char *name;
  void *socket, *monitor;  // NULL while it is closed
  int connections;
  uint64_t refused, refused_told;  // connections beyond the limit; of these, those that the log knows of
  uint64_t evicted, evicted_told;  // idle ones that gave way to such
  SnSocketFile file;
  bool behind;   // it has sent, or was not read to its end: its file does not tell of all that came
  double opens;  // when it listens again, on sn_clock_now(); 0: it does, or there is none
} SnListener;

typedef struct SnSockets {
  const SnConfig *config;
  const SnLog *log;
  void *context;
  SnRecords *subscribed;  // hears who subscribes to records
  SnListener router, telemetry, records;
  SnZap zap;
  SnConnections connections;
  int router_lock, telemetry_lock, records_lock;
  int monitors;      // made so far; each has a name of its own
  SnReply **unsent;  // (connections) replies that did not fit into a client's pipe, the newest of each
  int nunsent;
  uint64_t dropped;           // replies that were lost
  uint64_t published;         // messages of telemetry
  double turned_away_told;    // when the log had a line of users who were turned away; 0: never
  uint64_t turned_away_seen;  // how many it told of
} SnSockets;

// Checks the addresses.
SnCode sn_sockets_check(const SnConfig *config, SnError *err);

// Checks the addresses, takes the locks, binds. err says which address and why. `access` says who may connect, and
// `subscribed` hears who subscribes to records.
SnCode sn_sockets_open(SnSockets *sockets, const SnConfig *config, const SnLog *log, SnAccess *access,
                       SnRecords *subscribed, SnError *err);

// Drops those who listen to telemetry and records by keys; who may still do so connects again by himself.
void sn_sockets_revoke(SnSockets *sockets);

// Drops all connections of a listener. It listens again after `pause` seconds, and clients connect again by themselves.
// This is for when memory runs out: a message of endless frames piles up inside the socket library, where nothing else
// can reach it.
void sn_sockets_drop(SnSockets *sockets, SnListener *listener, double pause);

// Does what time brings: opens listeners again, ends connections that nobody hears. Returns an error when requests
// cannot be listened to any more.
SnCode sn_sockets_maintain(SnSockets *sockets, SnError *err);

// Closes, removes sockets and locks of ipc endpoints. Replies on their way get up to `linger` seconds.
void sn_sockets_close(SnSockets *sockets, double linger);

// Sends a reply and frees it, or keeps it until its client reads, in place of an older one.
void sn_sockets_send(SnSockets *sockets, SnReply *reply);

// Tries again to send replies that are kept. Returns false when none is left.
bool sn_sockets_flush(SnSockets *sockets);

// Reads the monitor of a listener: counts connections, ends one beyond the limit.
void sn_sockets_read_monitor(SnSockets *sockets, SnListener *listener);

void sn_sockets_publish(SnSockets *sockets, const void *bytes, size_t size);

// Publishes a record. Subscribers that have too many waiting do not get it.
void sn_sockets_publish_record(SnSockets *sockets, const SnRecordMessage *record);
// Reads who has subscribed to records, and who does not any more. Returns whether there may be more.
bool sn_sockets_read_subscriptions(SnSockets *sockets);

#endif
