// Who is connected, by file descriptor: a connection is not taken for an earlier one under its descriptor, the one that
// has been silent for longest gives way, and those that wait for a name are ended once it is free.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/wire/connections_private.h"

enum { PAIRS = 4 };

static const int requests, telemetry;  // two listeners

// Ours and the client's end of connections.
static int ours[PAIRS], theirs[PAIRS];

static int setup(void **state) {
  (void)state;
  for (int i = 0; i < PAIRS; i++) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0) return -1;
    ours[i] = pair[0];
    theirs[i] = pair[1];
  }
  return 0;
}

static int teardown(void **state) {
  (void)state;
  for (int i = 0; i < PAIRS; i++) {
    close(ours[i]);
    close(theirs[i]);
  }
  return 0;
}

// Whether the client sees the end of the stream.
static bool ended(int i) {
  char byte;
  return recv(theirs[i], &byte, 1, 0) == 0;
}

static void test_numbers(void **state) {
  (void)state;
  SnConnections c = {0};
  assert_false(sn_connections_knows(&c, ours[0]));
  assert_int_equal(sn_connections_number(&c, ours[0]), 0);
  sn_connections_open(&c, &requests, ours[0], 1, false);
  const uint64_t first = sn_connections_number(&c, ours[0]);
  assert_true(first > 0 && sn_connections_knows(&c, ours[0]));
  sn_connections_open(&c, &requests, ours[1], 1, false);
  assert_true(sn_connections_number(&c, ours[1]) != first);
  sn_connections_close(&c, &requests, ours[0], 2);
  assert_false(sn_connections_knows(&c, ours[0]));
  assert_int_equal(sn_connections_number(&c, ours[0]), 0);
  sn_connections_open(&c, &requests, ours[0], 3, false);
  assert_true(sn_connections_number(&c, ours[0]) > first);
  assert_false(sn_connections_knows(&c, -1));
  assert_false(sn_connections_knows(&c, 1 << 20));
  sn_connections_forget(&c, &requests);
  assert_false(sn_connections_knows(&c, ours[0]) || sn_connections_knows(&c, ours[1]));
  sn_connections_free(&c);
}

// Of those that have been silent since before an instant the one that was heard least recently goes, once.
static void test_idlest(void **state) {
  (void)state;
  SnConnections c = {0};
  for (int i = 0; i < 3; i++) sn_connections_open(&c, &requests, ours[i], 1 + i, false);
  sn_connections_open(&c, &telemetry, ours[3], 0, true);
  assert_false(sn_connections_cut_idlest(&c, &requests, 0.5));
  assert_true(sn_connections_spoke(&c, ours[0], false, 10));
  assert_true(sn_connections_cut_idlest(&c, &requests, 5));
  assert_true(ended(1));
  assert_false(ended(0) || ended(2) || ended(3));
  assert_false(sn_connections_spoke(&c, ours[1], false, 6));  // what it still says is dropped
  assert_false(sn_connections_cut(&c, ours[1]));
  assert_false(sn_connections_cut_idlest(&c, &requests, 2.9));
  assert_true(sn_connections_cut_idlest(&c, &requests, 5));
  assert_true(ended(2));
  assert_false(sn_connections_cut_idlest(&c, &requests, 5));
  assert_true(sn_connections_cut_idlest(&c, &telemetry, 5));
  assert_true(ended(3));
  sn_connections_free(&c);
}

// Whoever has said nothing since a name became free may have waited for it; those that were heard have not.
static void test_unheard(void **state) {
  (void)state;
  SnConnections c = {0};
  sn_connections_open(&c, &requests, ours[0], 1, false);
  sn_connections_open(&c, &requests, ours[1], 1, false);
  sn_connections_open(&c, &requests, ours[2], 1, false);
  sn_connections_open(&c, &telemetry, ours[3], 1, true);
  assert_int_equal(sn_connections_cut_unheard(&c, 2), 0);  // no name has become free
  assert_true(sn_connections_spoke(&c, ours[0], true, 2));
  assert_true(sn_connections_spoke(&c, ours[1], false, 2));
  sn_connections_close(&c, &requests, ours[0], 3);
  assert_int_equal(sn_connections_cut_unheard(&c, 3.05), 0);  // the socket may still learn of it
  assert_int_equal(sn_connections_cut_unheard(&c, 3.2), 1);
  assert_true(ended(2));
  assert_false(ended(1) || ended(3));
  assert_int_equal(sn_connections_cut_unheard(&c, 3.3), 0);
  sn_connections_close(&c, &requests, ours[2], 3.4);
  sn_connections_open(&c, &requests, ours[2], 3.55, false);  // when it connected the name was free
  assert_int_equal(sn_connections_cut_unheard(&c, 4), 0);
  sn_connections_free(&c);
}

// Each listener tells of its own ends: news of one that had a file before says nothing of whoever has it now.
static void test_late_news(void **state) {
  (void)state;
  const int file = 7;
  SnConnections c = {0};
  sn_connections_open(&c, &telemetry, file, 1, true);
  sn_connections_open(&c, &requests, file, 2, false);
  const uint64_t number = sn_connections_number(&c, file);
  sn_connections_close(&c, &telemetry, file, 3);
  assert_true(number > 0 && sn_connections_number(&c, file) == number);
  sn_connections_close(&c, &requests, file, 4);
  assert_false(sn_connections_knows(&c, file));
  // One that had a name, and whose end nobody has told of yet, has ended all the same: its name is free.
  sn_connections_open(&c, &requests, file, 5, false);
  assert_true(sn_connections_spoke(&c, file, true, 5));
  sn_connections_open(&c, &telemetry, file, 6, true);
  assert_true(c.left == 6);
  sn_connections_free(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_numbers, setup, teardown),
      cmocka_unit_test_setup_teardown(test_idlest, setup, teardown),
      cmocka_unit_test_setup_teardown(test_unheard, setup, teardown),
      cmocka_unit_test(test_late_news),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
