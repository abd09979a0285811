// Live tuning from the client's side. All values of a change are functions of one number, so that a reader can tell
// whether all that it sees is of one version.
#ifndef SINEW_TESTS_SUPPORT_DAEMON_TUNING_H_
#define SINEW_TESTS_SUPPORT_DAEMON_TUNING_H_

#include "tests/support/daemon_stream.h"

// Holds a change of the configuration with the memory of its parts.
typedef struct SnTestChange {
  Sinew__V1__SetConfigRequest in;
  Sinew__V1__PlannerSettings planner;
  Sinew__V1__SessionSettings session;
  Sinew__V1__TermSettings term[2], *terms[2];
  double target[3];
} SnTestChange;

// Begins an empty change; returns its request.
void sn_test_change_begin(SnTestChange *c, uint64_t session);
Sinew__V1__Request sn_test_change_request(SnTestChange *c);

// Sets the weight of term i of the change, or its target of n numbers, to x.
void sn_test_change_weight(SnTestChange *c, int i, char *term, double x);
void sn_test_change_target(SnTestChange *c, int i, size_t n, double x);

// Returns the number of a version.
int sn_test_number(uint64_t version);
// Fills the change of arm_reach that has the values of a number. Returns one of them, the life of a plan [s].
void sn_test_change_fill(SnTestChange *c, uint64_t session, int number);
double sn_test_life(int number);
// Fails the test unless a configuration has the version and the values of the number.
void sn_test_change_expect(const Sinew__V1__Config *config, uint64_t version, int number);

// Asks for the configuration of the stream's session, and checks its version. The caller frees the reply.
Sinew__V1__Reply *sn_test_stream_config(SnTestStream *s, uint64_t version);

// Sends so many valid and as many invalid changes of an arm_reach with that planner, while its plans are streamed.
// Checks that invalid ones change nothing, valid ones all or nothing, and that every plan is of one version.
void sn_test_tuning_storm(SnTestClient *client, char *planner, int messages);

#endif
