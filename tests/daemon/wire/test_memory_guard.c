// The memory guard with sockets of its own: telemetry goes first, then requests, and what is held elsewhere is left.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/wire/memory_guard_private.h"
#include "physics/base/clock.h"

enum { MORE = 64 << 20 };

typedef struct Setup {
  char folder[64];
  SnConfig config;
  SnLog log;
  SnAccess access;
  SnRecords records;
  SnSockets sockets;
  SnMemoryGuard guard;
} Setup;

static void begin(Setup *s, bool telemetry) {
  SnError err = {0};
  memset(s, 0, sizeof *s);
  strcpy(s->folder, "/tmp/sinew-test-XXXXXX");
  assert_non_null(mkdtemp(s->folder));
  sn_config_default(&s->config);
  snprintf(s->config.endpoint, sizeof s->config.endpoint, "ipc://%s/requests", s->folder);
  if (telemetry) snprintf(s->config.telemetry, sizeof s->config.telemetry, "ipc://%s/telemetry", s->folder);
  if (telemetry) snprintf(s->config.records, sizeof s->config.records, "ipc://%s/records", s->folder);
  s->log = (SnLog){.fd = -1};
  assert_true(sn_records_init(&s->records, NULL));
  assert_int_equal(sn_sockets_open(&s->sockets, &s->config, &s->log, &s->access, &s->records, &err), SN_OK);
  sn_memory_guard_init(&s->guard, &s->config);
}

static void end(Setup *s) {
  sn_sockets_close(&s->sockets, 0);
  sn_records_free(&s->records);
  assert_int_equal(rmdir(s->folder), 0);
}

// Returns whether what is free shall be given back now.
static bool look(Setup *s, double now) { return sn_memory_guard_check(&s->guard, &s->sockets, now); }

static bool listens(const SnListener *listener) { return listener->socket != NULL; }

// Waits until a listener is open again.
static void wait_for(Setup *s, const SnListener *listener) {
  SnError err = {0};
  for (int i = 0; i < 2000 && !listens(listener); i++) {
    assert_int_equal(sn_sockets_maintain(&s->sockets, &err), SN_OK);
    usleep(10000);
  }
  assert_true(listens(listener));
}

static void test_telemetry_goes_first(void **state) {
  (void)state;
  Setup s;
  begin(&s, true);
  double now = 100;
  look(&s, now);
  assert_true(listens(&s.sockets.telemetry) && listens(&s.sockets.router));
  assert_int_equal(sn_memory_guard_interval(&s.guard), 50);

  s.guard.limit = 1;  // byte
  look(&s, now);
  assert_false(listens(&s.sockets.telemetry) || listens(&s.sockets.records));
  assert_true(listens(&s.sockets.router));
  assert_int_equal(sn_memory_guard_interval(&s.guard), 10);
  look(&s, now += 0.5);
  assert_true(listens(&s.sockets.router));

  s.guard.limit = UINT64_MAX;  // that has helped
  look(&s, now += 0.1);
  look(&s, now += 10);
  assert_true(listens(&s.sockets.router));
  wait_for(&s, &s.sockets.telemetry);
  wait_for(&s, &s.sockets.records);
  end(&s);
}

// For two seconds after a drop free memory is given back, ten times a second, and not before or later.
static void test_free_memory_goes_back(void **state) {
  (void)state;
  Setup s;
  begin(&s, true);
  assert_false(look(&s, 100));
  s.guard.limit = 1;
  assert_false(look(&s, 100.01));
  s.guard.limit = UINT64_MAX;
  int times = 0;
  for (int i = 2; i < 500; i++) times += look(&s, 100 + 0.01 * i);
  assert_in_range(times, 15, 21);
  assert_false(look(&s, 110));
  end(&s);
}

static void test_requests_go_next(void **state) {
  (void)state;
  Setup s;
  begin(&s, true);
  double now = 100;
  s.guard.limit = 1;
  look(&s, now);
  look(&s, now += 1.1);
  assert_false(listens(&s.sockets.telemetry) || listens(&s.sockets.router));
  wait_for(&s, &s.sockets.router);

  // What is in use all the same is held by sessions: connections are not dropped again for it.
  look(&s, now += 1.1);
  assert_true(s.guard.held > 0);
  look(&s, now += 1.1);
  look(&s, now += 10);
  assert_true(listens(&s.sockets.router));
  s.guard.held /= 2;  // more has been added
  look(&s, now += 0.1);
  assert_false(listens(&s.sockets.router));
  end(&s);
}

// Memory that goes on growing without telemetry grows in requests: that does not wait.
static void test_growth_elsewhere(void **state) {
  (void)state;
  Setup s;
  begin(&s, true);
  s.guard.limit = 1;
  look(&s, 100);
  look(&s, 100.01);
  assert_true(listens(&s.sockets.router));
  char *more = malloc(MORE);
  assert_non_null(more);
  memset(more, 1, MORE);
  look(&s, 100.02);
  assert_false(listens(&s.sockets.router));
  free(more);
  end(&s);
}

static void test_without_telemetry(void **state) {
  (void)state;
  Setup s;
  begin(&s, false);
  s.guard.limit = 1;
  look(&s, 100);
  assert_false(listens(&s.sockets.router));
  wait_for(&s, &s.sockets.router);
  assert_false(listens(&s.sockets.telemetry));
  end(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_telemetry_goes_first), cmocka_unit_test(test_free_memory_goes_back),
      cmocka_unit_test(test_requests_go_next),     cmocka_unit_test(test_growth_elsewhere),
      cmocka_unit_test(test_without_telemetry),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
