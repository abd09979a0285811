// The ZeroMQ sockets of the daemon. The event loop's alone.
#ifndef SINEW_DAEMON_SOCKETS_H_
#define SINEW_DAEMON_SOCKETS_H_

#include "daemon/config.h"
#include "daemon/log.h"
#include "daemon/outbox.h"

typedef struct SnSockets {
  const SnConfig *config;
  const SnLog *log;
  void *context, *router, *telemetry, *monitor;
  int router_lock, telemetry_lock;
  int connections;  // to the router
  SnParcel **slot;  // (connections) a reply that a client's pipe had no room for; the newest one counts
  int slots;
} SnSockets;

// Checks the addresses, takes the locks, binds. err says which address and why.
SnCode sn_sockets_open(SnSockets *sockets, const SnConfig *config, const SnLog *log, SnError *err);

// Drops all connections and listens anew; clients connect again by themselves. For when memory runs out: a message of
// endless frames piles up inside the socket library, where nothing else can reach it.
SnCode sn_sockets_reopen(SnSockets *sockets, SnError *err);

// Closes, removes sockets and locks of ipc endpoints. Replies on their way get up to `linger` seconds.
void sn_sockets_close(SnSockets *sockets, double linger);

// Sends a reply and frees it, or keeps it until its client reads, in place of an older one.
void sn_sockets_send(SnSockets *sockets, SnParcel *parcel);

// Tries again what is kept. False when nothing is.
bool sn_sockets_retry(SnSockets *sockets);

// Counts connections; one beyond the limit is shut down.
void sn_sockets_watch(SnSockets *sockets);

// Takes in subscriptions; only the one to everything is granted, so that no client fills the memory with topics.
void sn_sockets_subscriptions(SnSockets *sockets);

void sn_sockets_publish(SnSockets *sockets, const void *bytes, size_t size);

#endif
