// sinewd on a backend of the test's choice, and an arm that it plans for by a number of iterations.
#ifndef SINEW_TESTS_SUPPORT_DAEMON_DEVICE_H_
#define SINEW_TESTS_SUPPORT_DAEMON_DEVICE_H_

#include "tests/support/daemon_process.h"

// Names the emulator's library, which takes the place of a GPU's, in doubles as the program itself.
#define SN_TEST_DEVICE "emulator_double"
#define SN_TEST_DEVICE_FOLDER "--backend-folder=" SN_TEST_LIBRARY_DIR

// Holds a daemon and a client of it.
typedef struct SnTestServer {
  SnTestDaemon daemon;
  SnTestClient client;
} SnTestServer;

// Start a daemon with these options (NULL at the end), or on the device with that fault ("": none), and a client.
void sn_test_server_begin(SnTestServer *s, const char *const *args);
void sn_test_server_device(SnTestServer *s, const char *fault);
// Ends both. Fails the test unless the daemon's exit status is 0.
void sn_test_server_end(SnTestServer *s);

// Opens a session with that planner and returns its id. *opened, if not NULL, gets the whole reply, to be freed.
uint64_t sn_test_open_with(SnTestClient *c, char *task, char *planner, uint64_t seed, Sinew__V1__Reply **opened);

// Ask for a plan of so many iterations with its states; take it; do both. Taking it fails the test unless the plan is
// refined. Replies are freed by the caller.
void sn_test_send_iterations(SnTestClient *c, uint64_t session, Sinew__V1__State *x, uint32_t iterations);
Sinew__V1__Reply *sn_test_take_plan(SnTestClient *c);
Sinew__V1__Reply *sn_test_plan_iterations(SnTestClient *c, uint64_t session, Sinew__V1__State *x, uint32_t iterations);

// Asks how the daemon is. The caller frees the reply.
Sinew__V1__Reply *sn_test_health(SnTestClient *c);

// Moves the body to its plan's state after `row` steps.
void sn_test_follow(Sinew__V1__State *x, const Sinew__V1__Plan *plan, size_t row);

#endif
