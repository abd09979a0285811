// One sinewd and one client for all tests of a program: cmocka's set-up and teardown of a group, and helpers of such
// tests.
#ifndef SINEW_TESTS_SUPPORT_DAEMON_GROUP_H_
#define SINEW_TESTS_SUPPORT_DAEMON_GROUP_H_

#include "tests/support/daemon_process.h"
#include "tests/support/slow.h"

// Says whether deadlines are judged: not where sanitizers slow everything down.
enum { JUDGE_TIME = !SN_SLOW };
// Fails the test unless `holds` does in one of some tries: a busy machine spoils a bar now and then, a defect each
// time. Tries once, and takes any result, where deadlines are not judged.
void sn_test_judge(bool (*holds)(void *context), void *context);

extern SnTestDaemon sinewd;
extern SnTestClient client;
int sn_test_group_setup(void **state);
int sn_test_group_teardown(void **state);

// Makes a request of a body: SN_TEST_MESSAGE(plan, PLAN, &plan).
#define SN_TEST_MESSAGE(kind, KIND, message)                                               \
  (&(Sinew__V1__Request){.base = PROTOBUF_C_MESSAGE_INIT(&sinew__v1__request__descriptor), \
                         .body_case = SINEW__V1__REQUEST__BODY_##KIND,                     \
                         .kind = (message)})
// Sends the group's client's request of a body. Returns the reply, which must have the body expected.
#define SN_TEST_REPLY(kind, KIND, message) \
  sn_test_reply(SN_TEST_MESSAGE(kind, KIND, message), SINEW__V1__REPLY__BODY_##KIND)

// Sends a request of the group's client and returns its reply. Fails the test unless it has that body.
Sinew__V1__Reply *sn_test_reply(Sinew__V1__Request *request, Sinew__V1__Reply__BodyCase body);

// Asks for the statistics of a session, or of the daemon (0). The caller frees the reply.
Sinew__V1__Reply *sn_test_statistics(SnTestClient *c, uint64_t session);

// Waits until a plan of a session, which was asked for, is under way. Returns false after so many seconds.
bool sn_test_await_planning(SnTestClient *c, uint64_t session, double seconds);

// Compares two doubles for qsort.
int sn_test_compare_doubles(const void *a, const void *b);

#endif
