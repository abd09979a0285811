// Requests that wait: connections take turns, and each may have so many waiting and no more.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/wire/inbox_private.h"

enum { MOST = 5, MOST_BYTES = 100 };

// Puts a request of so many bytes that begins with a number.
static bool put(SnInbox *inbox, int fd, unsigned char number, size_t size, bool several) {
  SnRoute route = {.arrived = number, .size = 2, .identity = {(uint8_t)fd, number}};
  zmq_msg_t frame;
  assert_int_equal(zmq_msg_init_size(&frame, size), 0);
  memset(zmq_msg_data(&frame), number, size);
  const bool taken = sn_inbox_push(inbox, fd, &route, &frame, several);
  zmq_msg_close(&frame);
  return taken;
}

// The next request is that one.
static void expect(SnInbox *inbox, int fd, unsigned char number, size_t size, bool several) {
  SnRequest *r = sn_inbox_pop(inbox);
  assert_non_null(r);
  assert_int_equal(r->size, 2);
  assert_int_equal(r->identity[0], fd);
  assert_int_equal(r->identity[1], number);
  assert_true(r->arrived == number && r->several == several);
  assert_int_equal(zmq_msg_size(&r->frame), several ? 0 : size);
  if (!several) assert_int_equal(*(const unsigned char *)zmq_msg_data(&r->frame), number);
  sn_inbox_request_free(r);
}

static void test_turns(void **state) {
  (void)state;
  SnInbox inbox;
  sn_inbox_init(&inbox, MOST, MOST_BYTES);
  assert_null(sn_inbox_pop(&inbox));
  for (unsigned char i = 0; i < 4; i++) assert_true(put(&inbox, 7, i, 3, false));
  assert_true(put(&inbox, 300, 10, 3, true));
  assert_true(put(&inbox, 9, 20, 3, false));
  assert_true(put(&inbox, 9, 21, 3, false));
  assert_int_equal(inbox.count, 7);
  expect(&inbox, 7, 0, 3, false);
  expect(&inbox, 300 % 256, 10, 3, true);
  expect(&inbox, 9, 20, 3, false);
  expect(&inbox, 7, 1, 3, false);
  assert_true(put(&inbox, 300, 11, 3, false));
  expect(&inbox, 9, 21, 3, false);
  expect(&inbox, 7, 2, 3, false);
  expect(&inbox, 300 % 256, 11, 3, false);
  expect(&inbox, 7, 3, 3, false);
  assert_null(sn_inbox_pop(&inbox));
  assert_int_equal(inbox.count, 0);
  assert_true(put(&inbox, 7, 4, 3, false));  // freed with the inbox
  sn_inbox_free(&inbox);
}

static void test_limits(void **state) {
  (void)state;
  SnInbox inbox;
  sn_inbox_init(&inbox, MOST, MOST_BYTES);
  assert_true(put(&inbox, 3, 50, 1, false));
  for (unsigned char i = 0; i < MOST; i++) assert_true(put(&inbox, 4, i, 1, false));
  assert_false(put(&inbox, 4, MOST, 1, false));
  assert_int_equal(inbox.count, 1);  // what the connection had waiting is gone, the others' is not
  assert_true(put(&inbox, 5, 60, MOST_BYTES, false));
  assert_false(put(&inbox, 5, 61, 1, false));
  assert_true(put(&inbox, 6, 70, MOST_BYTES - 1, false));
  assert_true(put(&inbox, 6, 71, 1, false));
  assert_false(put(&inbox, -1, 0, 1, false));
  assert_true(put(&inbox, 4, 80, 1, false));
  expect(&inbox, 3, 50, 1, false);
  expect(&inbox, 4, 80, 1, false);
  expect(&inbox, 6, 70, MOST_BYTES - 1, false);
  expect(&inbox, 6, 71, 1, false);
  assert_null(sn_inbox_pop(&inbox));
  for (int i = 0; i < 3 * MOST; i++) {  // what was taken out does not count
    assert_true(put(&inbox, 4, (unsigned char)i, MOST_BYTES, false));
    expect(&inbox, 4, (unsigned char)i, MOST_BYTES, false);
  }
  sn_inbox_free(&inbox);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_turns),
      cmocka_unit_test(test_limits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
