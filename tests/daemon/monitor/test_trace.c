// The ring of a session's traces.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/monitor/trace.h"

static void add(SnTraces *t, double arrived) {
  const SnReply reply = {.route = {.id = (uint64_t)arrived + 100}, .stages = {.arrived = arrived}};
  sn_traces_add(t, &reply, arrived + 0.5);
}

static void test_ring(void **state) {
  (void)state;
  static SnTraces t;
  assert_int_equal(sn_traces_first(&t, 0), 1);
  assert_int_equal(sn_traces_first(&t, UINT64_MAX), 1);
  add(&t, 0);  // no plan
  assert_int_equal(t.newest, 0);
  for (int i = 1; i <= SN_TRACES; i++) add(&t, i);
  assert_int_equal(sn_traces_first(&t, 0), 1);
  add(&t, SN_TRACES + 1);
  assert_int_equal(t.newest, SN_TRACES + 1);
  assert_int_equal(sn_traces_first(&t, 0), 2);
  assert_int_equal(sn_traces_first(&t, 1), 2);
  assert_int_equal(sn_traces_first(&t, 20), 21);
  assert_int_equal(sn_traces_first(&t, t.newest), t.newest + 1);
  assert_int_equal(sn_traces_first(&t, t.newest + 7), t.newest + 1);
  for (uint64_t i = 2; i <= t.newest; i++) {
    const SnTrace *trace = sn_traces_at(&t, i);
    assert_true(trace->stages.arrived == (double)i && trace->sent == (double)i + 0.5);
    assert_int_equal(trace->request, i + 100);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_ring)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
