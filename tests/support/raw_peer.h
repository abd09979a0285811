// A peer that speaks ZMTP 3 by hand over an ipc socket, and so can send bytes that no socket of libzmq would send.
//
// Also reads the files and memory of a sinewd that a test attacks.
#ifndef SINEW_TESTS_SUPPORT_RAW_PEER_H_
#define SINEW_TESTS_SUPPORT_RAW_PEER_H_

#include "tests/support/daemon_process.h"

enum { SN_RAW_MORE = 1, SN_RAW_COMMAND = 4 };

// Connects and shakes hands as a socket of that type ("DEALER") under a name of `size` bytes; without one (NULL) the
// property is left out. Returns the file descriptor, or -1 when the connection was refused or ended.
int sn_raw_connect(const char *endpoint, const char *type, const void *name, size_t size);

// Connects likewise to a port of 127.0.0.1, with more properties in the handshake: names and values in turn, NULL at
// the end.
int sn_raw_connect_tcp(int port, const char *type, const char *const *properties);

// Send one frame, or bytes as they are. Return false when the connection has ended.
bool sn_raw_frame(int fd, int flags, const void *bytes, size_t size);
bool sn_raw_bytes(int fd, const void *bytes, size_t size);

// Receives bytes (size) that arrive within so many seconds. Returns how many: 0 at the end of the stream, -1 for none.
int sn_raw_receive(int fd, double seconds, void *bytes, size_t size);

// Returns whether the other side ends the connection within so many seconds. Drops all else that arrives.
bool sn_raw_ended(int fd, double seconds);

// Packs a HealthRequest into bytes (capacity) and returns its size.
size_t sn_raw_health(uint64_t id, unsigned char *bytes, size_t capacity);

// Returns whether a client gets an answer within so many seconds. Asks again when there is none.
bool sn_test_answers(SnTestClient *client, double seconds);

// Connects a client under a name.
void sn_test_connect_as(SnTestClient *client, const char *endpoint, const char *name);

// Return the open files of a daemon, its memory [MB], and whether it still runs.
int sn_test_daemon_files(const SnTestDaemon *daemon);
double sn_test_daemon_megabytes(const SnTestDaemon *daemon);
bool sn_test_daemon_runs(const SnTestDaemon *daemon);
// Waits until all threads of a daemon sleep and so all that was asked of it is done, ten seconds at most.
void sn_test_daemon_rest(const SnTestDaemon *daemon);

#endif
