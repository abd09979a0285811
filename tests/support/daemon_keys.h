// A sinewd with keys: its own, some of clients, and the list of those who may come in.
#ifndef SINEW_TESTS_SUPPORT_DAEMON_KEYS_H_
#define SINEW_TESTS_SUPPORT_DAEMON_KEYS_H_

#include "proto/key_file.h"
#include "tests/support/daemon_process.h"

typedef struct SnTestKey {
  char public[SN_KEY_TEXT], secret[SN_KEY_TEXT];
} SnTestKey;

// Makes a pair of keys.
void sn_test_key(SnTestKey *key);

typedef struct SnTestKeyed {
  SnTestDaemon daemon;
  SnTestKey server;
  char tcp[64], telemetry[64], records[64];  // loopback addresses, which need keys
  char key_file[128], allow[128];
  bool keeps;  // sessions outlast it, in its folder/state; to be set before the start
} SnTestKeyed;

// Writes a file into the daemon's folder with a mode.
void sn_test_write_mode(const char *path, const char *text, unsigned mode);

// Makes the folder, the daemon's key and an empty list; chooses addresses. The caller writes the list and starts.
void sn_test_keyed_prepare(SnTestKeyed *keyed);
// Starts the daemon at these addresses, its ipc endpoint too.
void sn_test_keyed_start(SnTestKeyed *keyed);
void sn_test_keyed_stop(SnTestKeyed *keyed);
// Ends it by a signal and starts it again, with its list as it is then.
void sn_test_keyed_restart(SnTestKeyed *keyed, int signal);

// Tells the daemon to read the list again, and waits for its line of the log, which has that word.
void sn_test_keyed_reload(SnTestKeyed *keyed, const char *allow, const char *word);

// Gives a socket a client's key and the daemon's public one.
void sn_test_use_key(void *socket, const SnTestKey *key, const char *server);
// Connects a client by a key.
void sn_test_connect_key(SnTestClient *client, const SnTestKeyed *keyed, const SnTestKey *key);

// Returns lines of the log that have a word.
int sn_test_count_logged(const SnTestDaemon *daemon, const char *word);

// Returns a port of 127.0.0.1 that was free a moment ago.
int sn_test_free_port(void);

#endif
