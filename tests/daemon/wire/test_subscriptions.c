// Who subscribes to records: with the socket library's own subscribers, and with more topics than are told apart.
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

#include "daemon/wire/sockets_private.h"

enum { SESSION = 123456789 };

typedef struct Setup {
  char folder[64];
  SnConfig config;
  SnLog log;
  SnAccess access;
  SnRecords records;
  SnSockets sockets;
  SnAudience audience;
} Setup;

static void begin(Setup *s) {
  SnError err = {0};
  memset(s, 0, sizeof *s);
  strcpy(s->folder, "/tmp/sinew-test-XXXXXX");
  assert_non_null(mkdtemp(s->folder));
  sn_config_default(&s->config);
  snprintf(s->config.endpoint, sizeof s->config.endpoint, "ipc://%s/requests", s->folder);
  snprintf(s->config.records, sizeof s->config.records, "ipc://%s/records", s->folder);
  s->log = (SnLog){.fd = -1};
  assert_true(sn_records_init(&s->records, NULL));
  assert_int_equal(sn_sockets_open(&s->sockets, &s->config, &s->log, &s->access, &s->records, &err), SN_OK);
}

static void end(Setup *s) {
  sn_sockets_close(&s->sockets, 0);
  sn_records_free(&s->records);
  assert_int_equal(rmdir(s->folder), 0);
}

static bool is_wanted(Setup *s) { return sn_records_wanted(&s->records, &s->audience, SESSION); }

// Waits until records are wanted, or not any more.
static void expect_wanted(Setup *s, bool wanted) {
  for (int i = 0; i < 20000 && is_wanted(s) != wanted; i++) {
    sn_sockets_read_subscriptions(&s->sockets);
    usleep(1000);
  }
  assert_true(is_wanted(s) == wanted);
}

static void *subscriber(Setup *s, void *context, int times) {
  const int zero = 0;
  void *socket = zmq_socket(context, ZMQ_SUB);
  assert_non_null(socket);
  zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof zero);
  assert_int_equal(zmq_connect(socket, s->config.records), 0);
  for (int i = 0; i < times; i++) zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0);
  return socket;
}

// A SUB socket that has subscribed twice tells of both, and ends that once.
static void test_subscribed_twice(void **state) {
  (void)state;
  Setup s;
  begin(&s);
  void *context = zmq_ctx_new(), *twice = subscriber(&s, context, 2), *once = subscriber(&s, context, 1);
  expect_wanted(&s, true);
  for (int i = 0; i < 20000 && s.records.came < 3; i++) {
    sn_sockets_read_subscriptions(&s.sockets);
    usleep(1000);
  }
  assert_int_equal(s.records.came, 3);
  zmq_close(once);
  usleep(50000);
  sn_sockets_read_subscriptions(&s.sockets);
  assert_true(is_wanted(&s));
  zmq_close(twice);
  expect_wanted(&s, false);
  zmq_ctx_term(context);
  end(&s);
}

static void tell(Setup *s, char what, const char *topic) {
  char frame[SN_TOPIC];
  const int n = snprintf(frame, sizeof frame, "%c%s", '0', topic);
  frame[0] = what;
  sn_records_subscribe(&s->records, frame, (size_t)n);
}

// Topics that have no place count as one to everything, until the socket is opened again.
static void test_many_topics(void **state) {
  (void)state;
  Setup s;
  char topic[SN_TOPIC];
  begin(&s);
  for (int i = 0; i < SN_SUBSCRIPTIONS - 1; i++) {
    snprintf(topic, sizeof topic, "x%d ", i);
    tell(&s, 1, topic);
  }
  assert_false(is_wanted(&s));
  tell(&s, 1, "123456789 ");
  assert_true(is_wanted(&s));
  tell(&s, 1, "");
  tell(&s, 0, "");
  assert_true(is_wanted(&s));
  tell(&s, 0, "no such topic");
  assert_true(is_wanted(&s));
  sn_records_forget(&s.records);
  assert_false(is_wanted(&s));
  tell(&s, 1, "");
  assert_true(is_wanted(&s));
  tell(&s, 0, "");
  assert_false(is_wanted(&s));
  end(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_subscribed_twice), cmocka_unit_test(test_many_topics)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
