// sinewd on a backend of the test's choice, and an arm that it plans for by a number of iterations.
#ifndef SINEW_TESTS_SUPPORT_DAEMON_DEVICE_H_
#define SINEW_TESTS_SUPPORT_DAEMON_DEVICE_H_

#include "tests/support/daemon_process.h"

// The emulator's library in place of a GPU's, in the numbers of the program.
#define SN_TEST_DEVICE "emulator_double"
#define SN_TEST_DEVICE_FOLDER "--backend-folder=" SN_TEST_LIBRARY_DIR

// A daemon and a client of it.
typedef struct SnTestServer {
  SnTestDaemon daemon;
  SnTestClient client;
} SnTestServer;

// With these options, or on the device with that fault ("": none). The end fails the test unless its status is 0.
void sn_test_server_begin(SnTestServer *s, const char *const *args);
void sn_test_server_device(SnTestServer *s, const char *fault);
void sn_test_server_end(SnTestServer *s);

// A session with that planner; *opened, if not NULL, gets the whole reply, to be freed.
uint64_t sn_test_open_with(SnTestClient *c, char *task, char *planner, uint64_t seed, Sinew__V1__Reply **opened);

// A plan of so many iterations, with its states; taking it fails the test unless it is refined.
void sn_test_send_iterations(SnTestClient *c, uint64_t session, Sinew__V1__State *x, uint32_t iterations);
Sinew__V1__Reply *sn_test_take_plan(SnTestClient *c);
Sinew__V1__Reply *sn_test_plan_iterations(SnTestClient *c, uint64_t session, Sinew__V1__State *x, uint32_t iterations);

Sinew__V1__Reply *sn_test_health(SnTestClient *c);

// A body that moves as its plans say: the state after `row` steps.
void sn_test_follow(Sinew__V1__State *x, const Sinew__V1__Plan *plan, size_t row);

#endif
