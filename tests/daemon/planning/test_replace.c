// A newer state takes the place of an older one: who answers that, and that it is one alone.
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/planning/serve_private.h"

enum { SESSION = 123456789, STATES = 20000 };

// A session whose planner thread is the test.
typedef struct Place {
  SnScheduler s;
  SnOutbox outbox;
  SnMetrics metrics;
  SnSession session;
} Place;

static Place *make_place(void) {
  Place *p = calloc(1, sizeof *p);
  assert_true(p && sn_outbox_init(&p->outbox) && sn_queue_init(&p->s.commands, 4));
  sn_metrics_init(&p->metrics);
  p->s.outbox = &p->outbox;
  p->s.metrics = &p->metrics;
  p->session.id = SESSION;
  sn_metrics_init(&p->session.metrics);
  return p;
}

static void free_place(Place *p) {
  sn_job_free(sn_mailbox_pop(&p->session.states));
  sn_queue_free(&p->s.commands);
  sn_outbox_free(&p->outbox);
  free(p);
}

// Sends a state as the event loop does: its stamp is the number of its request.
static void send_state(Place *p, unsigned id, bool streams) {
  Sinew__V1__State state = SINEW__V1__STATE__INIT;
  Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
  Sinew__V1__StreamState stream = SINEW__V1__STREAM_STATE__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  unsigned char bytes[64];
  state.time = id;
  plan.state = stream.state = &state;
  request.id = id;
  request.body_case = streams ? SINEW__V1__REQUEST__BODY_STREAM_STATE : SINEW__V1__REQUEST__BODY_PLAN;
  if (streams)
    request.stream_state = &stream;
  else
    request.plan = &plan;
  const SnRoute route = {.id = id, .session = SESSION, .size = 5};
  SnJob *job = sn_job_create(&route, bytes, sinew__v1__request__pack(&request, bytes));
  assert_non_null(job);
  job->session = &p->session;
  sn_scheduler_state(&p->s, job);
}

// Takes the replies that are there, which refuse states; returns how many, and the request of the last one.
static int take_refusals(Place *p, uint64_t *id) {
  int n = 0;
  for (SnReply *r = sn_outbox_pop_all(&p->outbox), *next; r; r = next, ++n) {
    next = r->next;
    Sinew__V1__Reply *reply = sinew__v1__reply__unpack(NULL, r->size, r->bytes);
    assert_non_null(reply);
    assert_int_equal(reply->body_case, SINEW__V1__REPLY__BODY_PLAN);
    assert_int_equal(reply->plan->status, SINEW__V1__PLAN__STATUS__REPLACED);
    assert_int_equal(reply->plan->session, SESSION);
    assert_true(reply->plan->state_time == (double)reply->id && reply->id == r->route.id);
    *id = reply->id;
    sinew__v1__reply__free_unpacked(reply, NULL);
    free(r);
  }
  return n;
}

static void fetch(Place *p) { p->session.waiting = sn_mailbox_pop(&p->session.states); }

// Refusals do not wait for the planner thread, wherever the older state is: in the mailbox, or fetched from there. What
// was refused is not begun.
static void test_refused_at_once(void **state) {
  (void)state;
  Place *p = make_place();
  uint64_t id = 0;
  send_state(p, 1, false);
  assert_int_equal(take_refusals(p, &id), 0);
  send_state(p, 2, false);
  assert_int_equal(take_refusals(p, &id), 1);
  assert_int_equal(id, 1);
  fetch(p);
  send_state(p, 3, false);
  assert_int_equal(take_refusals(p, &id), 1);
  assert_int_equal(id, 2);
  assert_false(sn_serve_begin(&p->s, &p->session));
  assert_null(p->session.waiting);
  assert_int_equal(take_refusals(p, &id), 0);
  assert_int_equal(sn_metrics_view(&p->metrics).replaced, 2);
  assert_int_equal(sn_metrics_view(&p->session.metrics).replaced, 2);
  free_place(p);
}

// What was begun is answered by a plan: a newer state does not refuse it.
static void test_begun(void **state) {
  (void)state;
  Place *p = make_place();
  uint64_t id;
  send_state(p, 1, false);
  fetch(p);
  assert_true(sn_session_claim(&p->session, p->session.waiting->number));
  sn_job_free(p->session.waiting);
  send_state(p, 2, false);
  assert_int_equal(take_refusals(p, &id), 0);
  assert_int_equal(sn_metrics_view(&p->metrics).replaced, 0);
  free_place(p);
}

// A state of a stream is replaced without a word, by any state; a plan request beside the stream is told.
static void test_streams(void **state) {
  (void)state;
  Place *p = make_place();
  uint64_t id;
  send_state(p, 1, true);
  send_state(p, 2, true);
  send_state(p, 3, false);
  assert_int_equal(take_refusals(p, &id), 0);
  send_state(p, 4, true);
  assert_int_equal(take_refusals(p, &id), 1);
  assert_int_equal(id, 3);
  assert_int_equal(sn_metrics_view(&p->session.metrics).replaced, 3);
  free_place(p);
}

// Begins what it can until the last state, as a planner thread does. Returns how many.
static void *begin_states(void *argument) {
  Place *p = argument;
  uintptr_t begun = 0;
  for (uint64_t latest = 0; latest < STATES;) {
    SnJob *job = sn_mailbox_pop(&p->session.states);
    if (!job) continue;
    latest = job->number;
    if (latest % 2) sched_yield();  // a newer one may come before it is begun
    begun += sn_session_claim(&p->session, latest);
    sn_job_free(job);
  }
  return (void *)begun;
}

static void test_each_state_is_begun_or_refused(void **state) {
  (void)state;
  Place *p = make_place();
  pthread_t planner;
  void *begun;
  uint64_t id = 0;
  int refused = 0;
  assert_int_equal(pthread_create(&planner, NULL, begin_states, p), 0);
  for (unsigned i = 1; i <= STATES; ++i) {
    send_state(p, i, false);
    const uint64_t before = id;
    const int n = take_refusals(p, &id);
    assert_true(n == 0 || (n == 1 && id == i - 1 && id > before));
    refused += n;
  }
  pthread_join(planner, &begun);
  assert_int_equal((uintptr_t)begun + (uintptr_t)refused, STATES);
  free_place(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_refused_at_once),
      cmocka_unit_test(test_begun),
      cmocka_unit_test(test_streams),
      cmocka_unit_test(test_each_state_is_begun_or_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
