// The list of open sessions: how many there may be in all, of a key and of a connection, counted from the moment that
// one is asked for.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/session/session.h"

enum { CAPACITY = 6, MOST = 3 };

static SnPeer unbounded(void) { return (SnPeer){.quota = {INFINITY, INFINITY, INFINITY, INFINITY}}; }

static SnRoute route_of(SnPeer *peer, uint64_t connection) {
  return (SnRoute){.peer = peer, .link = {.fd = 5, .number = connection}};
}

// Whether a place is free; why not, if not.
static bool reserve(SnSessions *s, SnPeer *peer, uint64_t connection, const char *why) {
  SnError err = {0};
  const SnRoute route = route_of(peer, connection);
  const SnCode code = sn_sessions_reserve(s, &route, MOST, &err);
  if (code == SN_OK) return true;
  assert_int_equal(code, SN_ERR_LIMIT);
  if (!strstr(err.text, why)) fail_msg("'%s' does not say '%s'", err.text, why);
  return false;
}

static SnSession *add(SnSessions *s, SnPeer *peer, uint64_t connection, uint64_t id) {
  SnSession *session = calloc(1, sizeof *session);
  assert_non_null(session);
  session->id = id;
  session->owner = peer;
  session->client.number = connection;
  sn_sessions_add(s, session);
  return session;
}

static void take_away(SnSessions *s, SnSession *session) {
  sn_sessions_remove(s, session);
  free(session);
}

// Places that are only asked for count as those that are taken.
static void test_capacity(void **state) {
  (void)state;
  SnSessions s;
  SnPeer peer = unbounded();
  assert_true(sn_sessions_init(&s, CAPACITY));
  SnSession *open[2] = {NULL};
  for (uint64_t i = 0; i < CAPACITY; i++) assert_true(reserve(&s, &peer, 10 + i, ""));
  assert_false(reserve(&s, &peer, 99, "6 sessions are open"));
  for (uint64_t i = 0; i < 2; i++) open[i] = add(&s, &peer, 10 + i, 100 + i);
  assert_false(reserve(&s, &peer, 99, "6 sessions are open"));
  assert_int_equal(sn_sessions_count(&s), 2);
  const SnRoute given_back = route_of(&peer, 12);
  sn_sessions_unreserve(&s, &given_back);
  assert_true(reserve(&s, &peer, 99, ""));
  assert_false(reserve(&s, &peer, 99, "6 sessions are open"));
  take_away(&s, open[0]);
  assert_true(reserve(&s, &peer, 98, ""));
  assert_false(reserve(&s, &peer, 97, "6 sessions are open"));
  take_away(&s, open[1]);
  sn_sessions_free(&s);
}

// A connection has its own share, whatever others ask for and give back meanwhile.
static void test_connections(void **state) {
  (void)state;
  SnSessions s;
  SnPeer peer = unbounded();
  assert_true(sn_sessions_init(&s, 4 * CAPACITY));
  assert_true(reserve(&s, &peer, 1, ""));
  for (int i = 0; i < MOST; i++) assert_true(reserve(&s, &peer, 2, ""));
  assert_false(reserve(&s, &peer, 2, "3 sessions of this connection are open"));
  SnSession *first = add(&s, &peer, 1, 100);
  assert_false(reserve(&s, &peer, 2, "3 sessions of this connection are open"));
  SnSession *second = add(&s, &peer, 2, 101);
  assert_false(reserve(&s, &peer, 2, "3 sessions of this connection are open"));
  // The other connection's place is not the one that is given back.
  const SnRoute given_back = route_of(&peer, 2);
  sn_sessions_unreserve(&s, &given_back);
  assert_true(reserve(&s, &peer, 2, ""));
  assert_false(reserve(&s, &peer, 2, "3 sessions of this connection are open"));
  for (int i = 0; i < MOST - 1; i++) assert_true(reserve(&s, &peer, 1, ""));
  assert_false(reserve(&s, &peer, 1, "3 sessions of this connection are open"));
  take_away(&s, second);
  assert_true(reserve(&s, &peer, 2, ""));
  take_away(&s, first);
  sn_sessions_free(&s);
}

// So has a key, over all its connections; what is given back or closed does not count any more.
static void test_keys(void **state) {
  (void)state;
  SnSessions s;
  SnPeer greedy = unbounded(), other = unbounded();
  greedy.quota.sessions = 2;
  assert_true(sn_sessions_init(&s, CAPACITY));
  assert_true(reserve(&s, &greedy, 1, "") && reserve(&s, &greedy, 2, ""));
  assert_false(reserve(&s, &greedy, 3, "this key has 2 sessions"));
  assert_true(reserve(&s, &other, 4, ""));
  assert_int_equal(greedy.sessions, 2);
  SnSession *open = add(&s, &greedy, 1, 100);
  assert_false(reserve(&s, &greedy, 3, "this key has 2 sessions"));
  const SnRoute given_back = route_of(&greedy, 2);
  sn_sessions_unreserve(&s, &given_back);
  assert_int_equal(greedy.sessions, 1);
  assert_true(reserve(&s, &greedy, 3, ""));
  take_away(&s, open);
  assert_int_equal(greedy.sessions, 1);
  assert_int_equal(other.sessions, 1);
  sn_sessions_free(&s);
}

// A session is found by its id as long as it is open, and its place goes to the next one.
static void test_found(void **state) {
  (void)state;
  SnSessions s;
  SnPeer peer = unbounded();
  SnSession *open[3];
  assert_true(sn_sessions_init(&s, CAPACITY));
  for (uint64_t i = 0; i < 3; i++) {
    assert_true(reserve(&s, &peer, i + 1, ""));
    open[i] = add(&s, &peer, i + 1, 100 + i);
    assert_int_equal(open[i]->place, i);
  }
  assert_ptr_equal(sn_sessions_find(&s, 101), open[1]);
  assert_null(sn_sessions_find(&s, 103));
  take_away(&s, open[1]);
  assert_null(sn_sessions_find(&s, 101));
  assert_ptr_equal(sn_sessions_find(&s, 102), open[2]);
  assert_true(reserve(&s, &peer, 9, ""));
  SnSession *again = add(&s, &peer, 9, 104);
  assert_int_equal(again->place, 1);
  int n;
  SnSession *const *all = sn_sessions_all(&s, &n);
  assert_int_equal(n, 3);
  for (int i = 0; i < n; i++) assert_true(all[i] == open[0] || all[i] == open[2] || all[i] == again);
  assert_true(all[0] != all[1] && all[1] != all[2] && all[2] != all[0]);
  take_away(&s, open[0]);
  take_away(&s, open[2]);
  take_away(&s, again);
  assert_int_equal(peer.sessions, 0);
  sn_sessions_free(&s);
}

// Whatever the order in which ids come and go: those that are open are found, no other is.
static void test_ids(void **state) {
  (void)state;
  static const uint64_t id[CAPACITY] = {500, 100, 400, 200, 600, 300};
  static const int end[CAPACITY] = {3, 0, 5, 4, 2, 1};
  SnSessions s;
  SnPeer peer = unbounded();
  SnSession *open[CAPACITY];
  assert_true(sn_sessions_init(&s, CAPACITY));
  for (int i = 0; i < CAPACITY; i++) {
    assert_true(reserve(&s, &peer, (uint64_t)i, ""));
    open[i] = add(&s, &peer, (uint64_t)i, id[i]);
    for (int k = 0; k < CAPACITY; k++) assert_ptr_equal(sn_sessions_find(&s, id[k]), k <= i ? open[k] : NULL);
    assert_null(sn_sessions_find(&s, 350));
  }
  for (int i = 0; i < CAPACITY; i++) {
    take_away(&s, open[end[i]]);
    open[end[i]] = NULL;
    for (int k = 0; k < CAPACITY; k++) assert_ptr_equal(sn_sessions_find(&s, id[k]), open[k]);
  }
  sn_sessions_free(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_capacity), cmocka_unit_test(test_connections), cmocka_unit_test(test_keys),
      cmocka_unit_test(test_found),    cmocka_unit_test(test_ids),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
