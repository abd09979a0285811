// The endpoint of telemetry: subscribers get it, whatever else one of them sends, and what is sent takes no memory.
#include <setjmp.h>
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

// Of blocks that are sent at once, and how many of them: held by libzmq they would take far more than MEGABYTES.
enum { BLOCK = 1 << 16, BLOCKS = 250, MEGABYTES = 60 };

static void *subscribe(void *context) {
  const int zero = 0;
  void *s = zmq_socket(context, ZMQ_SUB);
  assert_non_null(s);
  zmq_setsockopt(s, ZMQ_LINGER, &zero, sizeof zero);
  zmq_setsockopt(s, ZMQ_SUBSCRIBE, "", 0);
  assert_int_equal(zmq_connect(s, sinewd.telemetry), 0);
  return s;
}

// The next message within so many seconds, unpacked; its time.
static double next_time(void *s, int seconds) {
  zmq_pollitem_t item = {s, 0, ZMQ_POLLIN, 0};
  assert_int_equal(zmq_poll(&item, 1, 1000 * seconds), 1);
  zmq_msg_t frame;
  zmq_msg_init(&frame);
  assert_true(zmq_msg_recv(&frame, s, 0) >= 0);
  Sinew__V1__Telemetry *t = sinew__v1__telemetry__unpack(NULL, zmq_msg_size(&frame), zmq_msg_data(&frame));
  zmq_msg_close(&frame);
  assert_non_null(t);
  const double time = t->time;
  sinew__v1__telemetry__free_unpacked(t, NULL);
  return time;
}

static void test_subscribers(void **state) {
  (void)state;
  void *context = zmq_ctx_new(), *a = subscribe(context), *b = subscribe(context);
  const double first = next_time(a, 20);
  assert_true(next_time(a, 20) > first);
  assert_true(next_time(b, 20) > 0);
  zmq_close(a);
  const double later = next_time(b, 20);
  assert_true(next_time(b, 20) > later);
  zmq_close(b);
  zmq_ctx_term(context);
}

// Messages of telemetry that the daemon has made, by a page of metrics that is not an earlier one.
static long made(void) {
  Sinew__V1__MetricsRequest metrics = SINEW__V1__METRICS_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_METRICS;
  request.metrics = &metrics;
  usleep(150000);
  sn_test_send(&client, &request);
  Sinew__V1__Reply *r = sn_test_receive(&client, 20);
  assert_non_null(r);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_METRICS);
  const char *line = strstr(r->metrics->text, "\nsinew_telemetry_messages_total ");
  assert_non_null(line);
  const long n = strtol(strchr(line, ' '), NULL, 10);
  sn_test_done(r);
  return n;
}

// Telemetry is made for those who are there: a thousand sessions of it take the event loop a millisecond.
static void test_nobody_listens(void **state) {
  (void)state;
  enum { PERIODS = 5 };
  usleep(PERIODS * 250000);
  assert_int_equal(made(), 0);
  void *context = zmq_ctx_new(), *s = subscribe(context);
  next_time(s, 20);
  next_time(s, 20);
  assert_true(made() >= 2);
  zmq_close(s);
  zmq_ctx_term(context);
  // Its end takes a moment to be seen.
  long before = made(), now = made();
  for (int i = 0; i < 50 && now != before; i++) before = now, now = made();
  assert_int_equal(now, before);
  usleep(PERIODS * 250000);
  assert_int_equal(made(), before);
}

// Sends blocks that fill() has written; a client and a subscriber beside it get what is theirs.
static void flood(void (*fill)(unsigned char *block, unsigned *seed), const char *what) {
  static unsigned char block[BLOCK];
  void *context = zmq_ctx_new(), *s = subscribe(context);
  next_time(s, 20);
  const double before = sn_test_daemon_megabytes(&sinewd);
  double most = before;
  unsigned seed = 1;
  const int fd = sn_raw_connect(sinewd.telemetry, "SUB", NULL, 0);
  assert_true(fd >= 0);
  for (int i = 0; i < BLOCKS; i++) {
    fill(block, &seed);
    if (!sn_raw_bytes(fd, block, sizeof block)) break;
    const double now = sn_test_daemon_megabytes(&sinewd);
    if (now > most) most = now;
    if (i % 50 == 0) assert_true(sn_test_answers(&client, 20));
  }
  next_time(s, 20);
  close(fd);
  zmq_close(s);
  zmq_ctx_term(context);
  print_message("%d MB of %s: memory %.0f MB before, at most %.0f\n", BLOCK * BLOCKS >> 20, what, before, most);
  assert_true(sn_test_daemon_runs(&sinewd));
  if (JUDGE_TIME) assert_true(most < before + MEGABYTES);
}

// Frames of no bytes, and always more to follow.
static void fill_with_frames(unsigned char *block, unsigned *seed) {
  (void)seed;
  for (int i = 0; i < BLOCK; i += 2) {
    block[i] = SN_RAW_MORE;
    block[i + 1] = 0;
  }
}

// Subscriptions to something else each: a byte that says so and 29 of a topic.
static void fill_with_topics(unsigned char *block, unsigned *seed) {
  enum { FRAME = 2 + 1 + 29 };
  for (int i = 0; i < BLOCK; i += FRAME) {
    block[i] = 0;
    block[i + 1] = FRAME - 2;
    block[i + 2] = 1;
    for (int k = 3; k < FRAME; k++) block[i + k] = (unsigned char)((*seed = *seed * 1664525u + 1013904223u) >> 24);
  }
}

static void test_endless_message(void **state) {
  (void)state;
  flood(fill_with_frames, "frames of one message");
}

static void test_subscriptions_without_end(void **state) {
  (void)state;
  flood(fill_with_topics, "subscriptions");
}

// A frame longer than a subscription to everything ends the connection.
static void test_long_topic(void **state) {
  (void)state;
  static const unsigned char topic[40] = {1};
  const int fd = sn_raw_connect(sinewd.telemetry, "SUB", NULL, 0);
  assert_true(fd >= 0);
  sn_raw_frame(fd, 0, topic, sizeof topic);  // may be ended before its last byte
  assert_true(sn_raw_ended(fd, 20));
  close(fd);
}

int main(void) {
  // A sinewd each: memory that one flood has taken would hide that of the next.
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_subscribers, sn_test_group_setup, sn_test_group_teardown),
      cmocka_unit_test_setup_teardown(test_nobody_listens, sn_test_group_setup, sn_test_group_teardown),
      cmocka_unit_test_setup_teardown(test_endless_message, sn_test_group_setup, sn_test_group_teardown),
      cmocka_unit_test_setup_teardown(test_subscriptions_without_end, sn_test_group_setup, sn_test_group_teardown),
      cmocka_unit_test_setup_teardown(test_long_topic, sn_test_group_setup, sn_test_group_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
