// A peer that speaks ZMTP 3 by hand over an ipc socket and so can say what no socket of libzmq would; and what a test
// sees of a sinewd that it attacks.
#ifndef SINEW_TESTS_SUPPORT_RAW_PEER_H_
#define SINEW_TESTS_SUPPORT_RAW_PEER_H_

#include "tests/support/daemon_process.h"

enum { SN_RAW_MORE = 1, SN_RAW_COMMAND = 4 };

// Connects and shakes hands as a socket of that type ("DEALER") under a name of `size` bytes; without one (NULL) the
// property is left out. Returns the file descriptor, or -1 when the connection was refused or ended.
int sn_raw_connect(const char *endpoint, const char *type, const void *name, size_t size);

// Sends one frame, or bytes as they are. False when the connection has ended.
bool sn_raw_frame(int fd, int flags, const void *bytes, size_t size);
bool sn_raw_bytes(int fd, const void *bytes, size_t size);

// Bytes that arrive within so many seconds: how many, 0 at the end of the stream, -1 for none.
int sn_raw_receive(int fd, double seconds, void *bytes, size_t size);

// True when the other side ends the connection within so many seconds. What else arrives is dropped.
bool sn_raw_ended(int fd, double seconds);

// A packed HealthRequest.
size_t sn_raw_health(uint64_t id, unsigned char *bytes, size_t room);

// Whether a client gets an answer within so many seconds; it asks again when there is none.
bool sn_test_answers(SnTestClient *client, double seconds);

// A client under a name.
void sn_test_connect_as(SnTestClient *client, const char *endpoint, const char *name);

// Open files and memory in MB of a daemon, and whether it still runs.
int sn_test_daemon_files(const SnTestDaemon *daemon);
double sn_test_daemon_megabytes(const SnTestDaemon *daemon);
bool sn_test_daemon_runs(const SnTestDaemon *daemon);

#endif
