// One sinewd and one client for all tests of a program: cmocka's set-up and teardown of a group, and what such tests
// share.
#ifndef SINEW_TESTS_SUPPORT_DAEMON_GROUP_H_
#define SINEW_TESTS_SUPPORT_DAEMON_GROUP_H_

#include "tests/support/daemon_process.h"

// Set by the build where sanitizers slow everything down; then deadlines are not judged.
#ifdef SN_TEST_SLOW
enum { JUDGE_TIME = 0 };
#else
enum { JUDGE_TIME = 1 };
#endif

extern SnTestDaemon sinewd;
extern SnTestClient client;
int sn_test_group_setup(void **state);
int sn_test_group_teardown(void **state);

// Statistics of a session, or of the daemon (0).
Sinew__V1__Reply *sn_test_statistics(SnTestClient *c, uint64_t session);

// For qsort.
int sn_test_compare_doubles(const void *a, const void *b);

#endif
