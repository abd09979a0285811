// A sinewd of the test's own, in a temporary folder, and a client that speaks raw ZeroMQ and protobuf to it.
#ifndef SINEW_TESTS_SUPPORT_DAEMON_PROCESS_H_
#define SINEW_TESTS_SUPPORT_DAEMON_PROCESS_H_

#include <stdbool.h>
#include <sys/types.h>

#include "physics/base/clock.h"
#include "proto/sinew.pb-c.h"

typedef struct SnTestDaemon {
  pid_t pid;
  char folder[64];  // temporary; holds socket, log, cache, models/ and tasks/ of the test
  char endpoint[128], telemetry[128], records[128];
  char log[128];
  int files;  // number that it may open, to be set before the start; 0: as many as the test
} SnTestDaemon;

// Starts sinewd and waits until it answers. Takes more options in args, NULL at the end; or NULL. The daemon serves the
// models and tasks of the source tree and of folder/models, folder/tasks. It plans on the CPU unless args say
// otherwise. Fails the test when it does not come up.
void sn_test_daemon_start(SnTestDaemon *daemon, const char *const *args);

// Starts it without waiting.
void sn_test_daemon_spawn(SnTestDaemon *daemon, const char *const *args);

// Sends the signal, waits at most half a minute and returns the exit status, or -1 when it had to be killed or crashed.
int sn_test_daemon_stop(SnTestDaemon *daemon, int signal);

// Waits for a daemon that ends by itself.
int sn_test_daemon_wait(SnTestDaemon *daemon);

// Removes the folder.
void sn_test_daemon_remove(SnTestDaemon *daemon);

// Makes the temporary folder only, for tests that write files before the start. Otherwise start does it.
void sn_test_daemon_prepare(SnTestDaemon *daemon);

// Writes a text file into the folder: "models/NAME.xml", "tasks/NAME.yaml".
void sn_test_daemon_write(const SnTestDaemon *daemon, const char *name, const char *text);

// Makes a file of zeros in the folder and returns it, mapped.
void *sn_test_daemon_share(const SnTestDaemon *daemon, size_t size);
// Starts sinewd without waiting, with a library that is preloaded and finds that file by an environment variable.
void sn_test_daemon_spawn_preloaded(SnTestDaemon *daemon, const char *const *args, const char *library,
                                    const char *variable);

// Returns whether the log has that word.
bool sn_test_daemon_logged(const SnTestDaemon *daemon, const char *word);
// Returns how many lines of the log have it.
int sn_test_daemon_logged_times(const SnTestDaemon *daemon, const char *word);

typedef struct SnTestClient {
  void *context, *socket;
  uint64_t id;  // latest request's
} SnTestClient;

// Connect a client to a daemon's endpoint, and take it off again.
void sn_test_connect(SnTestClient *client, const char *endpoint);
void sn_test_disconnect(SnTestClient *client);

// Starts a daemon with the models and tasks of the source tree, and a client of it: the set-up of a group of tests.
void sn_test_begin(SnTestDaemon *daemon, SnTestClient *client);
// Ends both. Returns the daemon's exit status.
int sn_test_end(SnTestDaemon *daemon, SnTestClient *client);

// Send a request under the next id, or raw bytes.
void sn_test_send(SnTestClient *client, Sinew__V1__Request *request);
void sn_test_send_bytes(SnTestClient *client, const void *bytes, size_t size);

// Returns the next reply within so many seconds, or NULL. Free it with sn_test_done.
Sinew__V1__Reply *sn_test_receive(SnTestClient *client, double seconds);
void sn_test_done(Sinew__V1__Reply *reply);

// Sends a request and returns its reply, whose id is checked. Fails the test when none comes.
Sinew__V1__Reply *sn_test_request(SnTestClient *client, Sinew__V1__Request *request);

// Fails the test unless the reply is an error of that code whose text has that word. Frees it.
void sn_test_expect_error(Sinew__V1__Reply *reply, Sinew__V1__Error__Code code, const char *word);

// Returns settings that ask for sampling and for nothing else, whatever a task says.
Sinew__V1__PlannerSettings *sn_test_sampling(void);
// Opens a session that plans by sampling, whatever its task says, and returns its id. *initial, if not NULL, gets the
// whole reply, to be freed.
uint64_t sn_test_open(SnTestClient *client, const char *task, uint64_t seed, Sinew__V1__Reply **initial);
// Opens a session with settings of the planner; NULL: the task's.
uint64_t sn_test_open_by(SnTestClient *client, const char *task, uint64_t seed, Sinew__V1__PlannerSettings *planner,
                         Sinew__V1__Reply **initial);

// Asks for a plan from that state by that deadline [s] and returns the reply, which the caller frees; or only asks. The
// state may be NULL for a plan that is REPLACED.
Sinew__V1__Reply *sn_test_plan(SnTestClient *client, uint64_t session, Sinew__V1__State *state, double deadline);
void sn_test_send_plan(SnTestClient *client, uint64_t session, Sinew__V1__State *state, double deadline);

// Returns the folder with the programs of the build.
const char *sn_test_binary_folder(void);

#endif
