// What wakes the event loop: requests at any moment, those that come while it sends among them, and replies of other
// threads, however many at once.
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/wire/wire.h"
#include "physics/base/clock.h"
#include "tests/support/raw_peer.h"

static const int none[SN_WIRE_FILES] = {-1, -1, -1};
static double woke;  // when the latest wait ended

typedef struct Fixture {
  char folder[32], endpoint[64];
  SnConfig config;
  SnLog log;
  SnAccess access;
  SnRecords records;
  SnWire *wire;
  int peer;
} Fixture;

static int setup(void **state) {
  Fixture *f = calloc(1, sizeof *f);
  SnError err = {0};
  assert_non_null(f);
  strcpy(f->folder, "/tmp/sinew-test-XXXXXX");
  assert_non_null(mkdtemp(f->folder));
  snprintf(f->endpoint, sizeof f->endpoint, "ipc://%s/s", f->folder);
  sn_config_default(&f->config);
  strcpy(f->config.endpoint, f->endpoint);
  strcpy(f->config.telemetry, "");
  strcpy(f->config.records, "");
  f->log.fd = -1;
  assert_int_equal(sn_access_init(&f->access, "", &err), SN_OK);
  assert_true(sn_records_init(&f->records, NULL));
  f->wire = sn_wire_open(&f->config, &f->log, &f->access, &f->records, &err);
  assert_non_null(f->wire);
  f->peer = sn_raw_connect(f->endpoint, "DEALER", NULL, 0);
  assert_true(f->peer >= 0);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  Fixture *f = *state;
  close(f->peer);
  sn_wire_close(f->wire, 0);
  sn_records_free(&f->records);
  sn_access_free(&f->access);
  rmdir(f->folder);
  free(f);
  return 0;
}

static void send_requests(Fixture *f, int n) {
  unsigned char bytes[64];
  for (int i = 0; i < n; i++) assert_true(sn_raw_frame(f->peer, 0, bytes, sn_raw_health(1, bytes, sizeof bytes)));
}

// Takes the requests that have come; the route of the latest.
static int take(Fixture *f, SnRoute *route) {
  SnWireRequest request;
  int n = 0;
  assert_int_equal(sn_wire_read(f->wire), 0);
  for (; sn_wire_next(f->wire, &request); n++) {
    *route = request.route;
    sn_wire_done(&request);
  }
  return n;
}

// Waits until so many requests are there. Returns how long that took.
static double await(Fixture *f, int n, SnRoute *route) {
  bool ready[SN_WIRE_FILES];
  const double began = sn_clock_now();
  for (int got = 0; got < n; got += take(f, route)) {
    assert_true(sn_wire_wait(f->wire, none, ready, 10000, &woke));
    assert_true(sn_clock_now() - began < 20);
  }
  return sn_clock_now() - began;
}

static void reply_to(Fixture *f, const SnRoute *route) {
  SnReply *reply = calloc(1, sizeof *reply + 1);
  assert_non_null(reply);
  reply->route = *route;
  reply->size = 1;
  sn_wire_send(f->wire, reply);
}

// A request that comes before a reply is sent is taken in by the sending: no file tells of it any more. It is not left
// until the next look at memory, 50 ms later.
enum { ROUNDS = 20 };
static void test_a_request_meets_a_reply(void **state) {
  Fixture *f = *state;
  SnRoute route = {0};
  send_requests(f, 1);
  await(f, 1, &route);
  int late = 0;
  for (int i = 0; i < ROUNDS; i++) {
    assert_int_equal(take(f, &route), 0);
    send_requests(f, 1);
    usleep(20000);
    reply_to(f, &route);
    late += await(f, 1, &route) > 0.03;
  }
  assert_true(late < ROUNDS / 2);
}

// More than is read together, and more than one burst.
static void test_many_at_once(void **state) {
  Fixture *f = *state;
  SnRoute route = {0};
  send_requests(f, 9000);
  await(f, 9000, &route);
  send_requests(f, 1);
  await(f, 1, &route);
}

enum { PUSHERS = 4, EACH = 20000 };

static void *push(void *outbox) {
  SnRoute route = {0};
  for (int i = 0; i < EACH; i++) {
    Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
    sn_outbox_reply(outbox, &route, &reply);
  }
  return NULL;
}

static int pop(SnOutbox *outbox) {
  int n = 0;
  for (SnReply *p = sn_outbox_pop_all(outbox), *next; p; p = next, n++) {
    next = p->next;
    free(p);
  }
  return n;
}

static bool readable(const SnOutbox *outbox, int ms) {
  struct pollfd file = {outbox->wake, POLLIN, 0};
  return poll(&file, 1, ms) == 1;
}

// Several replies wake the event loop once, and those of threads that push all the time are all seen by who waits.
static void test_outbox(void **state) {
  (void)state;
  SnOutbox outbox;
  SnRoute route = {0};
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  uint64_t wakes;
  pthread_t thread[PUSHERS];
  assert_true(sn_outbox_init(&outbox));
  assert_false(readable(&outbox, 0));
  for (int i = 0; i < 3; i++) sn_outbox_reply(&outbox, &route, &reply);
  assert_int_equal(read(outbox.wake, &wakes, sizeof wakes), sizeof wakes);
  assert_int_equal(wakes, 1);
  assert_int_equal(pop(&outbox), 3);
  for (int i = 0; i < PUSHERS; i++) assert_int_equal(pthread_create(&thread[i], NULL, push, &outbox), 0);
  for (int n = 0; n < PUSHERS * EACH; n += pop(&outbox)) assert_true(readable(&outbox, 10000));
  for (int i = 0; i < PUSHERS; i++) pthread_join(thread[i], NULL);
  assert_int_equal(pop(&outbox), 0);
  sn_outbox_free(&outbox);
}

// What is held wakes nobody; whatever else comes does, and takes it along, oldest first.
static void test_held(void **state) {
  (void)state;
  enum { REPLIES = 4 };
  SnOutbox outbox;
  const SnStages stages = {.arrived = 1, .due = 2};
  Sinew__V1__Plan plan = SINEW__V1__PLAN__INIT;
  Sinew__V1__Reply other = SINEW__V1__REPLY__INIT;
  assert_true(sn_outbox_init(&outbox));
  for (int round = 0; round < 2; round++) {
    assert_false(sn_outbox_holds(&outbox));
    for (uint64_t id = 1; id < REPLIES; id++) sn_outbox_hold_plan(&outbox, &(SnRoute){.id = id}, &plan, &stages);
    assert_true(sn_outbox_holds(&outbox));
    assert_false(readable(&outbox, 0));
    sn_outbox_reply(&outbox, &(SnRoute){.id = REPLIES}, &other);
    assert_true(readable(&outbox, 0));
    uint64_t id = 0;
    for (SnReply *p = sn_outbox_pop_all(&outbox), *next; p; p = next) {
      next = p->next;
      assert_int_equal(p->route.id, ++id);
      assert_true(p->stages.due == (id < REPLIES ? stages.due : 0));
      free(p);
    }
    assert_int_equal(id, REPLIES);
    assert_false(readable(&outbox, 0));
  }
  sn_outbox_free(&outbox);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_a_request_meets_a_reply, setup, teardown),
                                     cmocka_unit_test_setup_teardown(test_many_at_once, setup, teardown),
                                     cmocka_unit_test(test_outbox), cmocka_unit_test(test_held)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
