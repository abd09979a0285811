// Live tuning from the client's side: changes whose values are functions of one number, so that a reader can tell
// whether all that it sees is of one version.
#ifndef SINEW_TESTS_SUPPORT_DAEMON_TUNING_H_
#define SINEW_TESTS_SUPPORT_DAEMON_TUNING_H_

#include "tests/support/daemon_stream.h"

// A change of the configuration, and its answer.
typedef struct SnTestChange {
  Sinew__V1__SetConfigRequest in;
  Sinew__V1__PlannerSettings planner;
  Sinew__V1__SessionSettings session;
  Sinew__V1__TermSettings term[2], *terms[2];
  double target[3];
} SnTestChange;

// An empty change, and its request.
void sn_test_change_begin(SnTestChange *c, uint64_t session);
Sinew__V1__Request sn_test_change_request(SnTestChange *c);

// Term i of the change.
void sn_test_change_weight(SnTestChange *c, int i, char *term, double x);
void sn_test_change_target(SnTestChange *c, int i, size_t n, double x);

// The number of a version, the change of arm_reach that has its values, and one of them.
int sn_test_number(uint64_t version);
void sn_test_change_fill(SnTestChange *c, uint64_t session, int number);
double sn_test_life(int number);
void sn_test_change_expect(const Sinew__V1__Config *config, uint64_t version, int number);

// The configuration of the stream's session, by a request.
Sinew__V1__Reply *sn_test_stream_config(SnTestStream *s, uint64_t version);

// So many valid and as many invalid changes of an arm_reach with that planner, while its plans are streamed: invalid
// ones change nothing, valid ones all or nothing, and every plan is of one version.
void sn_test_tuning_storm(SnTestClient *client, char *planner, int messages);

#endif
