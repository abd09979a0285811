// The sockets of the daemon, and the requests that wait at them. No other room knows ZeroMQ. All of it is the event
// loop's alone; replies of other threads come by way of outbox.h.
#ifndef SINEW_DAEMON_WIRE_WIRE_H_
#define SINEW_DAEMON_WIRE_WIRE_H_

#include "daemon/base/log.h"
#include "daemon/config/config.h"
#include "daemon/wire/outbox.h"
#include "daemon/wire/records.h"

// Raises the limit of open files as far as is useful and lowers config->connections to what fits, with a line of the
// log. From then on connections are refused that would take the files that sinewd needs for itself, and those of users
// who may not come in. Returns an error where not even a few connections fit.
SnCode sn_files_prepare(SnConfig *config, const SnLog *log, SnError *err);
// Returns that error, and changes nothing.
SnCode sn_files_check(const SnConfig *config, SnError *err);

typedef struct SnWire SnWire;

// Holds a request whose turn it is. The memory stays until sn_wire_done.
typedef struct SnWireRequest {
  SnRoute route;  // without the id of the request
  bool several;   // the message had several frames, which a request must not have; they were dropped
  const void *bytes;
  size_t size;
  struct SnRequest *held;  // the room's own
} SnWireRequest;

// Checks the addresses of a configuration, without taking any.
SnCode sn_wire_check(const SnConfig *config, SnError *err);

// Checks the addresses, takes the locks and listens. Returns NULL and err, which says which address and why, on
// failure. config and log must stay; so must `access`, which says who may connect, and `subscribed`, which hears who
// subscribes to records. The caller closes the result.
SnWire *sn_wire_open(const SnConfig *config, const SnLog *log, SnAccess *access, SnRecords *subscribed, SnError *err);

// Drops those who may not listen any more, after a key has been taken off the list. Others connect again by themselves.
void sn_wire_revoke(SnWire *wire);

// Closes all sockets, removes those of ipc endpoints and their locks. Replies on their way get up to `linger` seconds.
// Accepts NULL.
void sn_wire_close(SnWire *wire, double linger);

// Waits until there is something to do, at most `max_ms` milliseconds, and takes note of new and ended connections.
// fd are files of the caller, -1 for none; ready says which of them can be read, *woke when the wait ended. Returns
// false on an error.
enum { SN_WIRE_FILES = 3 };
bool sn_wire_wait(SnWire *wire, const int fd[SN_WIRE_FILES], bool ready[SN_WIRE_FILES], int max_ms, double *woke);

// Reads requests that have arrived, as many as one burst may have, and puts them in line. Returns how many were refused
// since nobody could be answered.
int sn_wire_read(SnWire *wire);

// Takes the request whose turn it is: connections take turns. Returns false when none waits.
bool sn_wire_next(SnWire *wire, SnWireRequest *request);
// Returns whether a connection is still there.
bool sn_wire_connected(const SnWire *wire, SnLink link);
// Frees what sn_wire_next gave.
void sn_wire_done(SnWireRequest *request);

// Sends a reply and frees it, or keeps it until its client reads, in place of an older one.
void sn_wire_send(SnWire *wire, SnReply *reply);

// Tries again to send the replies that are kept.
void sn_wire_flush(SnWire *wire);

// Returns whether somebody is connected to telemetry.
bool sn_wire_is_watched(const SnWire *wire);

// Sends a message of telemetry to all subscribers.
void sn_wire_publish(SnWire *wire, const void *bytes, size_t size);

// Publishes a record and frees it.
void sn_wire_publish_record(SnWire *wire, SnRecordMessage *record);

// Counts what happened at the sockets since the start, but for the first three lines, which are of now.
typedef struct SnWireCounts {
  int connections[3];     // for requests, telemetry, records, and so below
  int waiting;            // requests that were read and not handled yet
  int unsent;             // replies that are kept for clients that do not read
  uint64_t refused[3];    // connections beyond `connections`
  uint64_t evicted[3];    // idle ones that gave way to such
  uint64_t dropped;       // replies that were lost: their client did not read, or was gone
  uint64_t denied;        // connections without a key that may come in
  uint64_t turned_away;   // connections over ipc of other users
  uint64_t published;     // messages of telemetry
  uint64_t memory_drops;  // times that connections were dropped for memory
  uint64_t memory_limit;  // bytes beyond which they are
} SnWireCounts;

// Returns the names of the listeners, as they stand in metrics.
const char *sn_wire_listener(int i);
SnWireCounts sn_wire_counts(const SnWire *wire);

// Looks after memory: beyond the limit all connections are dropped, those for telemetry and records first. Does nothing
// before it is time for the next look; now is on sn_clock_now(). Returns whether the caller is to have free memory
// given back to the system, which takes too long for the event loop.
bool sn_wire_guard(SnWire *wire, double now);

// Does what time brings: listens again after a drop, ends connections that nobody hears. Returns an error when requests
// cannot be listened to any more.
SnCode sn_wire_maintain(SnWire *wire, SnError *err);

#endif
