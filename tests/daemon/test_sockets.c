// The sockets of sinewd under peers that say what no socket of libzmq would: names that are too long, taken or guessed,
// floods, connections that break off. Nobody gets what belongs to others, sinewd goes on, and so do its clients.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"
#include "tests/support/raw_peer.h"

// Frames of many requests, one after the other.
enum { MANY = 200, CAPACITY = 64 };

static unsigned char request[CAPACITY];
static size_t request_size;

static int setup(void **state) {
  request_size = sn_raw_health(1, request, sizeof request);
  assert_in_range(request_size, 1, CAPACITY);
  return sn_test_group_setup(state);
}

// Connects and asks until there is an answer: a connection that is not heard soon after others have ended may be ended
// with them. Returns the connection.
static int connect_heard(const char *name) {
  char bytes[256];
  for (double until = sn_clock_now() + 60; sn_clock_now() < until;) {
    const int fd = sn_raw_connect(sinewd.endpoint, "DEALER", name, strlen(name));
    if (fd >= 0 && sn_raw_frame(fd, 0, request, request_size) && sn_raw_receive(fd, 10, bytes, sizeof bytes) > 0)
      return fd;
    if (fd >= 0) close(fd);
  }
  fail_msg("nobody answers %s", name);
  return -1;
}

static uint64_t count_malformed(void) {
  Sinew__V1__Reply *r = sn_test_statistics(&client, 0);
  const uint64_t n = r->statistics->malformed;
  sn_test_done(r);
  return n;
}

// A name of 256 bytes and more begins with that of a client: cut to a byte's count, the answers would go to him.
static void test_name_that_is_too_long(void **state) {
  (void)state;
  static const char victim[] = "left-arm";
  enum { LENGTHS = 4 };
  static const size_t lengths[LENGTHS] = {256, 256 + sizeof victim - 1, 512 + sizeof victim - 1, 3000};
  SnTestClient c;
  sn_test_connect_as(&c, sinewd.endpoint, victim);
  assert_true(sn_test_answers(&c, 10));
  const uint64_t before = count_malformed();
  int fd[LENGTHS];
  for (int i = 0; i < LENGTHS; i++) {
    char name[3000];
    memset(name, 'x', sizeof name);
    memcpy(name, victim, sizeof victim - 1);
    fd[i] = sn_raw_connect(sinewd.endpoint, "DEALER", name, lengths[i]);
    assert_true(fd[i] >= 0);
    assert_true(sn_raw_frame(fd[i], 0, request, request_size));
  }
  assert_null(sn_test_receive(&c, 0.3));
  for (int i = 0; i < LENGTHS; i++) {
    assert_true(sn_raw_ended(fd[i], 10));
    close(fd[i]);
  }
  assert_true(sn_test_answers(&c, 10));
  assert_int_equal(count_malformed() - before, LENGTHS);
  sn_test_disconnect(&c);
}

// The longest name that libzmq allows is a name like any other.
static void test_longest_name(void **state) {
  (void)state;
  char name[256];
  memset(name, 'y', 255);
  name[255] = '\0';
  SnTestClient c;
  sn_test_connect_as(&c, sinewd.endpoint, name);
  assert_true(sn_test_answers(&c, 10));
  sn_test_disconnect(&c);
}

// libzmq numbers clients without a name from rand() on; numbers that have been taken in advance end the process.
// Without a seed the first one is 0x6b8b4567.
static void test_numbers_taken_in_advance(void **state) {
  (void)state;
  enum { TAKEN = 60, CLIENTS = 40 };
  SnTestDaemon d = {0};
  int fd[TAKEN];
  sn_test_daemon_start(&d, NULL);
  for (unsigned i = 0; i < TAKEN; i++) {
    const unsigned number = 0x6b8b4567u + 8 + i;
    const unsigned char name[5] = {0, (unsigned char)(number >> 24), (unsigned char)(number >> 16),
                                   (unsigned char)(number >> 8), (unsigned char)number};
    fd[i] = sn_raw_connect(d.endpoint, "DEALER", name, sizeof name);
  }
  for (int i = 0; i < CLIENTS; i++) {
    SnTestClient c;
    sn_test_connect(&c, d.endpoint);
    const bool answered = sn_test_answers(&c, 30);
    sn_test_disconnect(&c);
    assert_true(answered);
  }
  for (int i = 0; i < TAKEN; i++) close(fd[i]);
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  sn_test_daemon_remove(&d);
}

// Whoever connects under the name of a client gets nothing of his, and the client keeps his connection.
static void test_name_that_is_taken(void **state) {
  (void)state;
  SnTestClient c;
  Sinew__V1__Reply *opened;
  char bytes[4096];
  sn_test_connect_as(&c, sinewd.endpoint, "right-arm");
  assert_true(sn_test_answers(&c, 30));
  const uint64_t id = sn_test_open(&c, "arm_reach", 1, &opened);
  sn_test_send_plan(&c, id, opened->open->initial, 0.5);
  const int thief = sn_raw_connect(sinewd.endpoint, "DEALER", "right-arm", 9);
  assert_true(thief >= 0);
  assert_true(sn_raw_frame(thief, 0, request, request_size));
  Sinew__V1__Reply *r = sn_test_receive(&c, 30);
  assert_non_null(r);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
  sn_test_done(r);
  assert_true(sn_raw_receive(thief, 0.2, bytes, sizeof bytes) <= 0);
  assert_true(sn_test_answers(&c, 10));
  close(thief);
  sn_test_done(opened);
  sn_test_disconnect(&c);
}

// A controller that dies without a word, while its successor waits under the same name: the successor is served.
static void test_successor_under_the_same_name(void **state) {
  (void)state;
  const int holder = connect_heard("torso");
  SnTestClient successor;
  sn_test_connect_as(&successor, sinewd.endpoint, "torso");
  assert_false(sn_test_answers(&successor, 0.5));
  close(holder);
  const double begin = sn_clock_now();
  assert_true(sn_test_answers(&successor, 30));
  print_message("served %.2f s after the connection of its predecessor had ended\n", sn_clock_now() - begin);
  sn_test_disconnect(&successor);
}

// The name may still be taken when a client comes back at once: it is served when it asks again.
static void test_reconnect_at_once(void **state) {
  (void)state;
  enum { TIMES = 20 };
  double longest = 0;
  for (int i = 0; i < TIMES; i++) {
    SnTestClient c;
    const double begin = sn_clock_now();
    sn_test_connect_as(&c, sinewd.endpoint, "head");
    assert_true(sn_test_answers(&c, 30));
    if (sn_clock_now() - begin > longest) longest = sn_clock_now() - begin;
    sn_test_disconnect(&c);
  }
  print_message("%d times under one name; the longest took %.2f s\n", TIMES, longest);
}

// A name that is free again is looked for by those who were not listened to. A client that has nothing to say yet is
// taken for one of them, and ended, but not for ever: connections that come half a second later stay.
static void test_clients_with_nothing_to_say(void **state) {
  (void)state;
  enum { TIMES = 30 };
  const int holder = connect_heard("spine");
  char bytes[256];
  int silent = sn_raw_connect(sinewd.endpoint, "DEALER", NULL, 0), times = 0;
  close(holder);
  while (times < TIMES && (silent < 0 || sn_raw_ended(silent, 3))) {  // < 0: it was ended in its handshake
    if (silent >= 0) close(silent);
    silent = sn_raw_connect(sinewd.endpoint, "DEALER", NULL, 0);
    times++;
  }
  print_message("a silent client was ended %d times\n", times);
  assert_true(silent >= 0);
  assert_in_range(times, 0, TIMES - 1);
  assert_true(sn_raw_frame(silent, 0, request, request_size));
  assert_true(sn_raw_receive(silent, 10, bytes, sizeof bytes) > 0);
  close(silent);
}

// Many requests and a PING at once, then the end of the stream: where libzmq held the connection back because of the
// requests, the PING ends the process.
static void test_connection_that_breaks_off(void **state) {
  (void)state;
  enum { TIMES = 60, PINGS = 20 };
  static unsigned char bytes[MANY * (CAPACITY + 2) + 9 * PINGS];
  size_t n = 0;
  for (int i = 0; i < MANY; i++) {
    bytes[n++] = 0;
    bytes[n++] = (unsigned char)request_size;
    memcpy(bytes + n, request, request_size);
    n += request_size;
  }
  for (int i = 0; i < PINGS; i++, n += 9) memcpy(bytes + n, "\4\7\4PING\0", 9);
  for (int i = 0; i < TIMES; i++) {
    const int fd = sn_raw_connect(sinewd.endpoint, "DEALER", NULL, 0);
    assert_true(fd >= 0);
    sn_raw_bytes(fd, bytes, n);
    close(fd);
  }
  usleep(300000);
  assert_true(sn_test_answers(&client, 20));
  assert_true(sn_test_daemon_runs(&sinewd));
}

// Connections under one name that say more than is read and break off: none of them stays.
static void test_storm_under_one_name(void **state) {
  (void)state;
  enum { TIMES = 300, FRAMES = 40 };
  const int before = sn_test_daemon_files(&sinewd);
  for (int i = 0; i < TIMES; i++) {
    const int fd = sn_raw_connect(sinewd.endpoint, "DEALER", "legs", 4);
    for (int k = 0; fd >= 0 && k < FRAMES; k++) sn_raw_frame(fd, 0, request, request_size);
    if (fd >= 0) close(fd);
  }
  SnTestClient fresh;
  sn_test_connect(&fresh, sinewd.endpoint);
  assert_true(sn_test_answers(&fresh, 20));
  sn_test_disconnect(&fresh);
  int files = sn_test_daemon_files(&sinewd);
  for (double until = sn_clock_now() + 20; files > before + 2 && sn_clock_now() < until;) {
    usleep(50000);
    files = sn_test_daemon_files(&sinewd);
  }
  print_message("%d connections; open files %d before, %d after\n", TIMES, before, files);
  assert_in_range(files, 1, before + 2);
}

// Requests faster than they can be handled: what one connection has waiting is bounded, another client is answered.
// Where sinewd does not keep up, and memory tells that it did not, it must have ended that connection.
static void test_flood_of_requests(void **state) {
  (void)state;
  enum { BLOCK = 100000, BLOCKS = 100 };
  static const unsigned char empty_frames[BLOCK];  // a frame of no bytes is two zeros
  const double before = sn_test_daemon_megabytes(&sinewd);
  const int fd = sn_raw_connect(sinewd.endpoint, "DEALER", NULL, 0);
  assert_true(fd >= 0);
  int sent = 0;
  double most = before;
  while (sent < BLOCKS && sn_raw_bytes(fd, empty_frames, BLOCK)) {
    const double now = sn_test_daemon_megabytes(&sinewd);
    if (now > most) most = now;
    if (++sent % 20 == 0) assert_true(sn_test_answers(&client, 20));
  }
  const bool ended = sent < BLOCKS || (most >= before + 60 && sn_raw_ended(fd, 20));
  close(fd);
  print_message("%d requests at once: memory %.0f MB before, at most %.0f; %s\n", sent * BLOCK / 2, before, most,
                ended ? "ended" : "all were read");
  assert_true(sn_test_answers(&client, 20));
  if (JUDGE_TIME) assert_true(ended || most < before + 60);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_name_that_is_too_long),         cmocka_unit_test(test_longest_name),
      cmocka_unit_test(test_numbers_taken_in_advance),      cmocka_unit_test(test_name_that_is_taken),
      cmocka_unit_test(test_successor_under_the_same_name), cmocka_unit_test(test_reconnect_at_once),
      cmocka_unit_test(test_clients_with_nothing_to_say),   cmocka_unit_test(test_connection_that_breaks_off),
      cmocka_unit_test(test_storm_under_one_name),          cmocka_unit_test(test_flood_of_requests),
  };
  return cmocka_run_group_tests(tests, setup, sn_test_group_teardown);
}
