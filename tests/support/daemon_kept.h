// A sinewd that keeps sessions, ended and started again on the same folder; and requests to sessions that have a name.
#ifndef SINEW_TESTS_SUPPORT_DAEMON_KEPT_H_
#define SINEW_TESTS_SUPPORT_DAEMON_KEPT_H_

#include "tests/support/daemon_process.h"

// Starts a daemon that keeps sessions in its folder/state, with more options (NULL: none), and connects the client; a
// client that is connected stays so.
void sn_test_kept_start(SnTestDaemon *daemon, SnTestClient *client, const char *const *args);
// Ends it by a signal, starts it again and waits until it is there.
void sn_test_kept_restart(SnTestDaemon *daemon, int signal, const char *const *args);

// Sends a request; asks again while the session is on its way, for a minute at most.
Sinew__V1__Reply *sn_test_ask_kept(SnTestClient *client, Sinew__V1__Request *request);
// Does so and fails the test unless the reply has that body.
Sinew__V1__Reply *sn_test_expect_kept(SnTestClient *client, Sinew__V1__Request *request,
                                      Sinew__V1__Reply__BodyCase body);

// Opens arm_reach under a name with settings (NULL: the task's), and returns the reply.
Sinew__V1__Reply *sn_test_open_named(SnTestClient *client, char *name, uint64_t seed,
                                     Sinew__V1__PlannerSettings *planner);

// Sets the weights of arm_reach's term "reach" to x, and returns the version; reads it back.
uint64_t sn_test_kept_tune(SnTestClient *client, uint64_t session, double x);
double sn_test_kept_weight(SnTestClient *client, uint64_t session, uint64_t *version);

#endif
