// Who is connected to the daemon's sockets, by file descriptor, as the sockets' monitors tell. The event loop's alone.
#ifndef SINEW_DAEMON_WIRE_CONNECTIONS_PRIVATE_H_
#define SINEW_DAEMON_WIRE_CONNECTIONS_PRIVATE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct SnConnection {
  const void *listener;  // the monitor that told of it; NULL: none is open under this number
  uint64_t number;       // counts connections, from 1
  double since;          // when it was accepted, on sn_clock_now()
  double heard;          // when a request of it was last read, or it was accepted
  bool spoke;            // a request of it has been read, or none is expected
  bool named;            // the client has given itself a name
  bool cut;              // it is being ended
} SnConnection;

typedef struct SnConnections {
  SnConnection *at;  // (size), by file descriptor
  int size;
  uint64_t latest;  // number of the latest one
  double left;      // when the latest one ended that had, or may have had, given itself a name
} SnConnections;

void sn_connections_free(SnConnections *connections);

// Notes a connection that a listener has accepted; one that had the file before has ended, whatever its listener says
// later. `silent` says that it need not speak. Out of memory it stays unknown.
void sn_connections_open(SnConnections *connections, const void *listener, int fd, double now, bool silent);

// Forgets a connection of a listener that has ended at `now`. Listeners tell of ends each for itself: where the file is
// another one's by now nothing is forgotten.
void sn_connections_close(SnConnections *connections, const void *listener, int fd, double now);
// Forgets all connections of a listener.
void sn_connections_forget(SnConnections *connections, const void *listener);

// Returns whether a connection is open, as far as the monitors have told.
bool sn_connections_knows(const SnConnections *connections, int fd);

// Notes that a request of a connection has been read at `now`. Returns false if it has been cut: what it still says is
// to be dropped. One that is not known has ended since it spoke, provided that the monitors have been heard.
bool sn_connections_spoke(SnConnections *connections, int fd, bool named, double now);

// Returns the number of the connection that is open under a file descriptor; 0: none is.
uint64_t sn_connections_number(const SnConnections *connections, int fd);

// Ends the connection of a listener that has been silent for longest, if that is since `before` or longer. Returns
// whether there was one.
bool sn_connections_cut_idlest(SnConnections *connections, const void *listener, double before);

// Ends a connection; the other side sees the end of the stream. Returns false if it has ended already.
bool sn_connections_cut(SnConnections *connections, int fd);

// Ends connections that may be waiting for a name that was taken and is free again. The router does not listen to a
// connection under a name that another one has, and still does not when that one has ended. Such a connection has been
// silent since; its client will try again. Returns how many were ended.
int sn_connections_cut_unheard(SnConnections *connections, double now);

#endif
