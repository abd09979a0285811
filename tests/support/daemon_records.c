#include "tests/support/daemon_records.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

#include <cmocka.h>

void sn_test_subscribe(SnTestSubscriber *s, const char *endpoint, uint64_t session, int most) {
  const int zero = 0;
  char topic[32] = "";
  s->context = zmq_ctx_new();
  s->socket = zmq_socket(s->context, ZMQ_SUB);
  assert_non_null(s->socket);
  zmq_setsockopt(s->socket, ZMQ_LINGER, &zero, sizeof zero);
  zmq_setsockopt(s->socket, ZMQ_RCVHWM, &most, sizeof most);
  if (session) snprintf(topic, sizeof topic, "%" PRIu64 " ", session);
  zmq_setsockopt(s->socket, ZMQ_SUBSCRIBE, topic, strlen(topic));
  assert_int_equal(zmq_connect(s->socket, endpoint), 0);
}

void sn_test_unsubscribe(SnTestSubscriber *s) {
  zmq_close(s->socket);
  zmq_ctx_term(s->context);
}

// The name of what is in a record's body.
static const char *kind_of(const Sinew__V1__Record *record) {
  return protobuf_c_message_descriptor_get_field(&sinew__v1__record__descriptor, record->body_case)->name;
}

Sinew__V1__Record *sn_test_record(SnTestSubscriber *s, double seconds) {
  zmq_pollitem_t item = {s->socket, 0, ZMQ_POLLIN, 0};
  char topic[64] = "", expected[64];
  zmq_msg_t frame;
  if (zmq_poll(&item, 1, (long)(1000 * seconds)) <= 0) return NULL;
  assert_in_range(zmq_recv(s->socket, topic, sizeof topic - 1, 0), 1, sizeof topic - 1);
  zmq_msg_init(&frame);
  assert_true(zmq_msg_recv(&frame, s->socket, 0) >= 0);
  assert_false(zmq_msg_more(&frame));
  Sinew__V1__Record *record = sinew__v1__record__unpack(NULL, zmq_msg_size(&frame), zmq_msg_data(&frame));
  zmq_msg_close(&frame);
  assert_non_null(record);
  assert_int_not_equal(record->body_case, SINEW__V1__RECORD__BODY__NOT_SET);
  snprintf(expected, sizeof expected, "%" PRIu64 " %s ", record->session, kind_of(record));
  assert_string_equal(topic, expected);
  return record;
}

void sn_test_record_done(Sinew__V1__Record *record) { sinew__v1__record__free_unpacked(record, NULL); }

Sinew__V1__Record *sn_test_expect_record(SnTestSubscriber *s, Sinew__V1__Record__BodyCase kind) {
  Sinew__V1__Record *record = sn_test_record(s, 60);
  if (!record) fail_msg("no record came");
  if (record->body_case != kind) fail_msg("a record '%s', wanted is number %d", kind_of(record), (int)kind);
  return record;
}

void sn_test_await_records(SnTestSubscriber *s, SnTestClient *c, uint64_t session, Sinew__V1__State *state) {
  bool greeted = false, heard = false;
  for (int i = 0; i < 1000 && !(greeted && heard); i++) {
    Sinew__V1__Reply *reply = sn_test_plan(c, session, state, 0.01);
    assert_int_equal(reply->body_case, SINEW__V1__REPLY__BODY_PLAN);
    const uint64_t sequence = reply->plan->sequence;
    sn_test_done(reply);
    heard = false;
    for (Sinew__V1__Record *r = sn_test_record(s, 0.1); r; r = heard ? NULL : sn_test_record(s, 10)) {
      greeted = greeted || r->body_case == SINEW__V1__RECORD__BODY_OPEN;
      heard = r->body_case == SINEW__V1__RECORD__BODY_PLAN && r->plan->sequence == sequence;
      sn_test_record_done(r);
    }
  }
  assert_true(greeted && heard);
}
