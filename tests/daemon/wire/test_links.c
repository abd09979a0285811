// Which connection a request came by: file descriptors are used again, and the news of an end may come later than the
// next one's first request.
#include <fcntl.h>
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
#include "tests/support/raw_peer.h"

enum { HIGH = 200 };  // peers' own files are there and above, so that sinewd's are the lowest that are free

static const int none[SN_WIRE_FILES] = {-1, -1, -1};
static double woke;  // when the latest wait ended

static int connect_high(const char *endpoint) {
  const int low = sn_raw_connect(endpoint, "DEALER", NULL, 0);
  assert_true(low >= 0);
  const int high = fcntl(low, F_DUPFD_CLOEXEC, HIGH);
  close(low);
  assert_true(high >= HIGH);
  return high;
}

static void send_request(int fd) {
  unsigned char bytes[64];
  assert_true(sn_raw_frame(fd, 0, bytes, sn_raw_health(1, bytes, sizeof bytes)));
}

// Reads the next request; `look`: takes note of connections first, as the event loop does.
static SnLink link_of_next(SnWire *wire, bool look) {
  SnWireRequest request;
  bool ready[SN_WIRE_FILES];
  for (int i = 0; i < 1000; i++) {
    if (look) assert_true(sn_wire_wait(wire, none, ready, 10, &woke));
    assert_int_equal(sn_wire_read(wire), 0);
    if (sn_wire_next(wire, &request)) {
      const SnLink link = request.route.link;
      sn_wire_done(&request);
      return link;
    }
    usleep(10000);
  }
  fail_msg("no request came");
  return (SnLink){0};
}

static void test_a_file_used_again(void **state) {
  (void)state;
  char folder[] = "/tmp/sinew-test-XXXXXX", endpoint[64];
  SnConfig config;
  SnLog log = {.fd = -1};
  SnAccess access;
  SnRecords records;
  SnError err = {0};
  bool ready[SN_WIRE_FILES];
  assert_non_null(mkdtemp(folder));
  sn_config_default(&config);
  snprintf(endpoint, sizeof endpoint, "ipc://%s/s", folder);
  strcpy(config.endpoint, endpoint);
  strcpy(config.telemetry, "");
  strcpy(config.records, "");
  assert_int_equal(sn_access_init(&access, "", &err), SN_OK);
  assert_true(sn_records_init(&records, NULL));
  SnWire *wire = sn_wire_open(&config, &log, &access, &records, &err);
  assert_non_null(wire);

  const int first = connect_high(endpoint);
  send_request(first);
  const SnLink before = link_of_next(wire, true);
  assert_true(sn_wire_connected(wire, before));
  // The first one ends, the second one gets its file and asks; nobody has looked at what became of connections.
  close(first);
  for (int i = 0; i < 20000 && fcntl(before.fd, F_GETFD) >= 0; i++) usleep(1000);
  const int second = connect_high(endpoint);
  send_request(second);
  const SnLink after = link_of_next(wire, false);
  assert_int_equal(after.fd, before.fd);
  assert_true(after.number > before.number);
  assert_true(sn_wire_wait(wire, none, ready, 10, &woke));
  assert_true(sn_wire_connected(wire, after));
  assert_false(sn_wire_connected(wire, before));
  // It has been heard, so it is not ended with those that say nothing.
  for (int i = 0; i < 30; i++) {
    assert_int_equal(sn_wire_maintain(wire, &err), SN_OK);
    assert_true(sn_wire_wait(wire, none, ready, 20, &woke));
  }
  assert_true(sn_wire_connected(wire, after));
  close(second);
  sn_wire_close(wire, 0);
  sn_records_free(&records);
  sn_access_free(&access);
  assert_int_equal(rmdir(folder), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_file_used_again)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
