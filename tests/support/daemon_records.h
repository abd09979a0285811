// A subscriber to records of sessions.
#ifndef SINEW_TESTS_SUPPORT_DAEMON_RECORDS_H_
#define SINEW_TESTS_SUPPORT_DAEMON_RECORDS_H_

#include "tests/support/daemon_process.h"

typedef struct SnTestSubscriber {
  void *context, *socket;
} SnTestSubscriber;

// Subscribes to a session, 0: to all. `most` messages may wait at this side, 0: any number.
void sn_test_subscribe(SnTestSubscriber *subscriber, const char *endpoint, uint64_t session, int most);
void sn_test_unsubscribe(SnTestSubscriber *subscriber);

// Waits until the daemon has heard of the subscription to a session. Asks for plans of it from a state until an
// OpenRecord comes, and reads all records of these plans.
void sn_test_await_records(SnTestSubscriber *subscriber, SnTestClient *client, uint64_t session,
                           Sinew__V1__State *state);

// Returns the next record within so many seconds, or NULL; checks its topic. Free it with sn_test_record_done.
Sinew__V1__Record *sn_test_record(SnTestSubscriber *subscriber, double seconds);
void sn_test_record_done(Sinew__V1__Record *record);

// Returns the next record, which must be of that kind.
Sinew__V1__Record *sn_test_expect_record(SnTestSubscriber *subscriber, Sinew__V1__Record__BodyCase kind);

#endif
