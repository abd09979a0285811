// What is counted of replies and plans: numbers in, numbers out, no clock.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/monitor/counters.h"

// A duration that is a bound belongs to its bucket, the next longer one to the next bucket.
static void test_histogram(void **state) {
  (void)state;
  SnHistogram h = {.sum = 0};
  double sum = 0;
  for (int i = 0; i < SN_BUCKETS; i++) {
    const double bound = sn_histogram_bound(i);
    assert_true(bound > (i > 0 ? sn_histogram_bound(i - 1) : 0));
    sn_histogram_add(&h, bound);
    assert_int_equal(h.bucket[i], 1 + (i > 0));
    sn_histogram_add(&h, nextafter(bound, 100));
    assert_int_equal(h.bucket[i + 1], 1);
    sum += bound;
    sum += nextafter(bound, 100);
  }
  assert_true(isinf(sn_histogram_bound(SN_BUCKETS)));
  assert_int_equal(sn_histogram_count(&h), 2 * SN_BUCKETS);
  assert_true(h.sum == sum);
  sn_histogram_add(&h, -1);
  sn_histogram_add(&h, (double)NAN);
  assert_int_equal(h.bucket[0], 3);
  assert_true(h.sum == sum);
}

static SnReply plan(double turn, bool first, bool in_time) {
  return (SnReply){.route = {.kind = SINEW__V1__REQUEST__BODY_PLAN},
                   .stages = {.arrived = 10,
                              .turn = turn,
                              .ended = 10.5,
                              .status = turn > 0 ? SINEW__V1__PLAN__STATUS__OK : SINEW__V1__PLAN__STATUS__REPLACED,
                              .first = first,
                              .in_time = in_time}};
}

// Parts of a plan add up; what is no first plan of its state did not wait, and misses nothing.
static void test_plans(void **state) {
  (void)state;
  SnCounters c = {0};
  SnOutcomes session = {0};
  SnReply p = plan(10.125, true, true);
  sn_counters_reply(&c, &session, &p, 11);
  assert_true(c.waiting.sum == 0.125 && c.computing.sum == 0.375 && c.sending.sum == 0.5 && c.whole.sum == 1);
  p = plan(10.125, true, false);
  sn_counters_reply(&c, NULL, &p, 11);
  assert_int_equal(c.all.misses, 1);
  assert_int_equal(session.misses, 0);
  p = plan(10.125, false, false);
  sn_counters_reply(&c, &session, &p, 11);
  assert_int_equal(c.all.misses, 1);
  assert_int_equal(sn_histogram_count(&c.waiting), 2);
  assert_int_equal(sn_histogram_count(&c.computing), 3);
  assert_int_equal(sn_histogram_count(&c.whole), 2);
  p = plan(0, false, false);  // replaced before its turn
  sn_counters_reply(&c, &session, &p, 11);
  assert_int_equal(sn_histogram_count(&c.computing), 3);
  assert_int_equal(c.all.plans[SINEW__V1__PLAN__STATUS__OK], 3);
  assert_int_equal(c.all.plans[SINEW__V1__PLAN__STATUS__REPLACED], 1);
  assert_int_equal(session.plans[SINEW__V1__PLAN__STATUS__OK], 2);
  assert_int_equal(c.replies[SINEW__V1__REQUEST__BODY_PLAN][0], 4);
  assert_int_equal(session.replies[0], 3);
}

// Errors count by code, for the daemon and the session; what a table has no place for counts as 0.
static void test_errors(void **state) {
  (void)state;
  SnCounters c = {0};
  SnOutcomes session = {0};
  SnReply e = {.route = {.kind = SINEW__V1__REQUEST__BODY_OPEN}, .error = SINEW__V1__ERROR__CODE__LIMIT};
  sn_counters_reply(&c, &session, &e, 1);
  assert_int_equal(c.replies[SINEW__V1__REQUEST__BODY_OPEN][SINEW__V1__ERROR__CODE__LIMIT], 1);
  assert_int_equal(session.replies[SINEW__V1__ERROR__CODE__LIMIT], 1);
  assert_int_equal(session.plans[0], 0);
  e.route.kind = 200;
  e.error = (Sinew__V1__Error__Code)100;
  sn_counters_reply(&c, &session, &e, 1);
  assert_int_equal(c.replies[0][0], 1);
  assert_int_equal(c.all.replies[SINEW__V1__ERROR__CODE__LIMIT], 1);
}

// Everything that the schema has fits into the tables, under its own name.
static void test_names(void **state) {
  (void)state;
  const ProtobufCMessageDescriptor *request = &sinew__v1__request__descriptor;
  for (unsigned i = 0; i < request->n_fields; i++) assert_true(request->fields[i].id < SN_COUNT_KINDS);
  const ProtobufCEnumDescriptor *codes = &sinew__v1__error__code__descriptor;
  for (unsigned i = 0; i < codes->n_values; i++) assert_true(codes->values[i].value < SN_COUNT_CODES);
  const ProtobufCEnumDescriptor *statuses = &sinew__v1__plan__status__descriptor;
  for (unsigned i = 0; i < statuses->n_values; i++) assert_true(statuses->values[i].value < SN_COUNT_STATUSES);
  assert_string_equal(sn_count_kind(0), "none");
  assert_string_equal(sn_count_kind(SINEW__V1__REQUEST__BODY_STREAM_STATE), "stream_state");
  assert_null(sn_count_kind(1));  // the id is no body
  assert_null(sn_count_kind(SN_COUNT_KINDS));
  assert_string_equal(sn_count_code(0), "OK");
  assert_string_equal(sn_count_code(SINEW__V1__ERROR__CODE__NOT_FOUND), "NOT_FOUND");
  assert_null(sn_count_code(SN_COUNT_CODES));
  assert_string_equal(sn_count_status(SINEW__V1__PLAN__STATUS__WARM_START), "WARM_START");
  for (int i = 0; i < SN_INVALID_KINDS; i++) assert_non_null(sn_count_invalid(i));
  assert_null(sn_count_invalid(SN_INVALID_KINDS));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_histogram),
      cmocka_unit_test(test_plans),
      cmocka_unit_test(test_errors),
      cmocka_unit_test(test_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
