#include "tests/support/daemon_stream.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void take_plan(SnTestStream *s, const Sinew__V1__Reply *r) {
  const Sinew__V1__Plan *p = r->plan;
  assert_int_equal(p->session, s->session);
  assert_int_equal(p->status, SINEW__V1__PLAN__STATUS__OK);
  assert_int_equal(p->stream_sequence, s->sequence + 1);
  assert_true(p->n_ctrl == (size_t)p->steps * 6 && p->steps > 0 && p->iterations > 0 && p->age >= 0);
  assert_true(p->state_time >= s->stamp && p->sequence >= s->number);
  assert_true(p->cost_after <= p->cost_before);
  if (p->sequence == s->number && p->config_version == s->version) {
    assert_true(p->cost_after < s->cost && p->state_time == s->stamp);
    s->improved++;
  }
  s->sequence = p->stream_sequence;
  s->stamp = p->state_time;
  s->cost = p->cost_after;
  s->version = p->config_version;
  s->number = p->sequence;
  s->plans++;
  if (s->check) s->check(p);
}

Sinew__V1__Reply *sn_test_stream_read(SnTestStream *s, double seconds) {
  for (double until = sn_clock_now() + seconds; sn_clock_now() < until;) {
    Sinew__V1__Reply *r = sn_test_receive(s->c, fmax(0, until - sn_clock_now()));
    if (!r) continue;
    if (r->body_case != SINEW__V1__REPLY__BODY_PLAN || r->plan->stream_sequence == 0) return r;
    assert_true(r->id == s->id || r->id == s->before);
    take_plan(s, r);
    sn_test_done(r);
  }
  return NULL;
}

void sn_test_stream_await(SnTestStream *s, double stamp) {
  for (double until = sn_clock_now() + 60; s->stamp != stamp;) {
    assert_true(sn_clock_now() < until);
    assert_null(sn_test_stream_read(s, 0.01));
  }
}

Sinew__V1__Reply *sn_test_stream_ask(SnTestStream *s, Sinew__V1__Request *request) {
  sn_test_send(s->c, request);
  Sinew__V1__Reply *r = sn_test_stream_read(s, 30);
  assert_non_null(r);
  assert_int_equal(r->id, s->c->id);
  return r;
}

void sn_test_stream_request(SnTestStream *s, bool stop, double lease, double deadline) {
  Sinew__V1__StreamRequest in = SINEW__V1__STREAM_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  in.session = s->session;
  in.stop = stop;
  in.lease = lease;
  in.deadline = deadline;
  in.period = s->period;
  in.gain_rows = s->gain_rows;
  request.body_case = SINEW__V1__REQUEST__BODY_STREAM;
  request.stream = &in;
  sn_test_send(s->c, &request);
  s->before = s->id;
  s->id = s->c->id;
}

SnTestStream sn_test_stream_start(SnTestClient *c, uint64_t session, double lease, double deadline) {
  SnTestStream s = {.c = c, .session = session, .stamp = -1};
  sn_test_stream_request(&s, false, lease, deadline);
  Sinew__V1__Reply *r = sn_test_stream_read(&s, 10);
  assert_non_null(r);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_STREAM);
  assert_int_equal(r->stream->end, SINEW__V1__STREAM_REPLY__END__RUNNING);
  assert_true(r->id == s.id && r->stream->lease == lease);
  sn_test_done(r);
  return s;
}

void sn_test_stream_end(SnTestStream *s, Sinew__V1__StreamReply__End end, double seconds) {
  Sinew__V1__Reply *r = sn_test_stream_read(s, seconds);
  assert_non_null(r);
  if (r->body_case == SINEW__V1__REPLY__BODY_ERROR) fail_msg("%s", r->error->text);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_STREAM);
  assert_int_equal(r->id, s->id);
  assert_int_equal(r->stream->end, end);
  assert_int_equal(r->stream->plans, s->plans);
  sn_test_done(r);
}

void sn_test_stream_state(SnTestStream *s, Sinew__V1__State *x, int64_t seen) {
  Sinew__V1__StreamState in = SINEW__V1__STREAM_STATE__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  in.session = s->session;
  in.state = x;
  if (seen >= 0) {
    in.has_seen_case = SINEW__V1__STREAM_STATE__HAS_SEEN_SEEN;
    in.seen = (uint64_t)seen;
  }
  request.body_case = SINEW__V1__REQUEST__BODY_STREAM_STATE;
  request.stream_state = &in;
  sn_test_send(s->c, &request);
}
