// The gate of the wire: what may pass, what may not, and that no bytes whatever do harm.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/validate.h"

enum { MESSAGE_BYTES = 1 << 20, ROUNDS = 20000 };

static const uint64_t SEED = 20260711;

// xorshift64*: seeded, the same everywhere.
static uint64_t next_random(uint64_t *s) {
  *s ^= *s >> 12;
  *s ^= *s << 25;
  *s ^= *s >> 27;
  return *s * 2685821657736338717ull;
}

static SnWireArena arena;

static int setup(void **state) {
  (void)state;
  return sn_wire_arena_init(&arena, sn_wire_arena_budget(MESSAGE_BYTES)) ? 0 : -1;
}

static int teardown(void **state) {
  (void)state;
  sn_wire_arena_free(&arena);
  return 0;
}

// A plan request with everything in it, packed; arrays of n numbers with one of them replaced.
static size_t pack_plan(unsigned char *out, size_t n, size_t at, double value) {
  double *x = calloc(n + 1, sizeof *x);
  if (n) x[at] = value;
  Sinew__V1__State s = SINEW__V1__STATE__INIT;
  s.qpos = s.qvel = x;
  s.n_qpos = s.n_qvel = n;
  Sinew__V1__PlanRequest p = SINEW__V1__PLAN_REQUEST__INIT;
  p.session = 123456789;
  p.state = &s;
  p.deadline = 0.02;
  Sinew__V1__Request r = SINEW__V1__REQUEST__INIT;
  r.id = 42;
  r.body_case = SINEW__V1__REQUEST__BODY_PLAN;
  r.plan = &p;
  size_t size = sinew__v1__request__pack(&r, out);
  free(x);
  return size;
}

static size_t pack_open(unsigned char *out, char *task) {
  Sinew__V1__OpenRequest o = SINEW__V1__OPEN_REQUEST__INIT;
  o.task = task;
  Sinew__V1__Request r = SINEW__V1__REQUEST__INIT;
  r.id = 42;
  r.body_case = SINEW__V1__REQUEST__BODY_OPEN;
  r.open = &o;
  return sinew__v1__request__pack(&r, out);
}

static const Sinew__V1__Request *read_it(const void *bytes, size_t n, SnWireError *err) {
  uint64_t id;
  *err = (SnWireError){0};
  return sn_request_read(&arena, bytes, n, &id, err);
}

static void expect_refused(const void *bytes, size_t n, const char *word) {
  SnWireError err;
  assert_null(read_it(bytes, n, &err));
  if (!strstr(err.text, word)) fail_msg("'%s' does not say '%s'", err.text, word);
}

static void test_every_field_has_bounds(void **state) {
  (void)state;
  SnWireError err = {0};
  if (sn_validate_table(&err)) fail_msg("%s", err.text);
}

static void test_good_request_passes(void **state) {
  (void)state;
  static unsigned char bytes[4096];
  SnWireError err;
  uint64_t id = 0;
  size_t n = pack_plan(bytes, 35, 0, 0.5);
  const Sinew__V1__Request *r = sn_request_read(&arena, bytes, n, &id, &err);
  assert_non_null(r);
  assert_int_equal(id, 42);
  assert_int_equal(r->body_case, SINEW__V1__REQUEST__BODY_PLAN);
  assert_int_equal(r->plan->state->n_qpos, 35);
  assert_true(r->plan->state->qpos[0] == 0.5);
}

static void test_bad_numbers(void **state) {
  (void)state;
  static unsigned char bytes[4096];
  static const double bad[] = {NAN, INFINITY, -INFINITY, 1e11, -1e300};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    expect_refused(bytes, pack_plan(bytes, 9, 3, bad[i]), "State.qpos[3]");
}

static void test_bad_deadline_and_missing_state(void **state) {
  (void)state;
  unsigned char bytes[256];
  Sinew__V1__PlanRequest p = SINEW__V1__PLAN_REQUEST__INIT;
  Sinew__V1__State s = SINEW__V1__STATE__INIT;
  Sinew__V1__Request r = SINEW__V1__REQUEST__INIT;
  r.body_case = SINEW__V1__REQUEST__BODY_PLAN;
  r.plan = &p;
  p.session = 1;
  p.deadline = 1;
  expect_refused(bytes, sinew__v1__request__pack(&r, bytes), "PlanRequest.state is missing");
  p.state = &s;
  p.deadline = -1;
  expect_refused(bytes, sinew__v1__request__pack(&r, bytes), "PlanRequest.deadline: -1 is out of bounds");
  p.deadline = NAN;
  expect_refused(bytes, sinew__v1__request__pack(&r, bytes), "PlanRequest.deadline");
  s.time = 1000000000.5;
  expect_refused(bytes, sinew__v1__request__pack(&r, bytes), "State.time: 1000000000.5 is out of bounds");
  s.time = NAN;
  p.deadline = 1;
  expect_refused(bytes, sinew__v1__request__pack(&r, bytes), "State.time");
}

static void test_strings(void **state) {
  (void)state;
  static unsigned char bytes[8192];
  static char longest[SN_WIRE_NAME + 2];
  SnWireError err;
  static char *const bad[] = {"\xff", "a\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80",
                              "a\nb", "\x7f",  "\xe2\x82", "\xc2\x80",     "a\xc2\x9b\x32J"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) expect_refused(bytes, pack_open(bytes, bad[i]), "UTF-8");
  expect_refused(bytes, pack_open(bytes, ""), "OpenRequest.task has 0 bytes");
  memset(longest, 'a', SN_WIRE_NAME + 1);
  expect_refused(bytes, pack_open(bytes, longest), "201 bytes");
  longest[SN_WIRE_NAME] = '\0';
  assert_non_null(read_it(bytes, pack_open(bytes, longest), &err));
  assert_non_null(read_it(bytes, pack_open(bytes, "h\xc3\xa4nd_\xf0\x9f\xa6\xbe"), &err));
  assert_non_null(read_it(bytes, pack_open(bytes, "\xc2\xa0"), &err));
}

// A text that holds a zero byte is refused, in the request itself and in messages within; a zero at its end, too.
static void test_zero_bytes(void **state) {
  (void)state;
  SnWireError err;
  unsigned char bytes[256];
  Sinew__V1__PlannerSettings settings = SINEW__V1__PLANNER_SETTINGS__INIT;
  Sinew__V1__OpenRequest open = SINEW__V1__OPEN_REQUEST__INIT;
  Sinew__V1__Request r = SINEW__V1__REQUEST__INIT;
  settings.has_interpolation_case = SINEW__V1__PLANNER_SETTINGS__HAS_INTERPOLATION_INTERPOLATION;
  settings.interpolation = "cubic_";
  open.task = "arm_reach_x";
  open.planner = &settings;
  r.body_case = SINEW__V1__REQUEST__BODY_OPEN;
  r.open = &open;
  static const struct {
    const char *text;
    char at;
    const char *message;
  } cases[] = {{"arm_reach_x", '_', "OpenRequest.task: byte 3 of 11 is 0"},
               {"arm_reach_x", 'x', "OpenRequest.task: byte 10 of 11 is 0"},
               {"cubic_", '_', "PlannerSettings.interpolation: byte 5 of 6 is 0"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const size_t n = sinew__v1__request__pack(&r, bytes);
    assert_non_null(read_it(bytes, n, &err));
    unsigned char *text = memmem(bytes, n, cases[i].text, strlen(cases[i].text));
    assert_non_null(text);
    *(unsigned char *)memchr(text, cases[i].at, n) = 0;
    assert_null(read_it(bytes, n, &err));
    assert_int_equal(err.code, SINEW__V1__ERROR__CODE__INVALID);
    assert_non_null(strstr(err.text, cases[i].message));
  }
}

static void test_absent_settings_are_not_checked(void **state) {
  (void)state;
  unsigned char bytes[256];
  SnWireError err;
  Sinew__V1__PlannerSettings settings = SINEW__V1__PLANNER_SETTINGS__INIT;
  Sinew__V1__OpenRequest o = SINEW__V1__OPEN_REQUEST__INIT;
  Sinew__V1__Request r = SINEW__V1__REQUEST__INIT;
  o.task = "arm";
  o.planner = &settings;
  r.body_case = SINEW__V1__REQUEST__BODY_OPEN;
  r.open = &o;
  assert_non_null(read_it(bytes, sinew__v1__request__pack(&r, bytes), &err));
  settings.has_rtol_case = SINEW__V1__PLANNER_SETTINGS__HAS_RTOL_RTOL;
  settings.rtol = NAN;
  expect_refused(bytes, sinew__v1__request__pack(&r, bytes), "PlannerSettings.rtol: nan is no finite number");
}

static void test_terms_are_checked_each(void **state) {
  (void)state;
  unsigned char bytes[256];
  Sinew__V1__TermSettings good = SINEW__V1__TERM_SETTINGS__INIT, bad = SINEW__V1__TERM_SETTINGS__INIT;
  Sinew__V1__TermSettings *terms[] = {&good, &bad};
  Sinew__V1__SetConfigRequest set = SINEW__V1__SET_CONFIG_REQUEST__INIT;
  Sinew__V1__Request r = SINEW__V1__REQUEST__INIT;
  good.name = "reach";
  bad.name = "effort";
  bad.has_weight_case = SINEW__V1__TERM_SETTINGS__HAS_WEIGHT_WEIGHT;
  bad.weight = INFINITY;
  set.session = 1;
  set.terms = terms;
  set.n_terms = 2;
  r.body_case = SINEW__V1__REQUEST__BODY_SET_CONFIG;
  r.set_config = &set;
  expect_refused(bytes, sinew__v1__request__pack(&r, bytes), "TermSettings.weight: inf is no finite number");
}

static void test_no_request_at_all(void **state) {
  (void)state;
  SnWireError err;
  assert_null(read_it("", 0, &err));
  assert_int_equal(err.code, SINEW__V1__ERROR__CODE__MALFORMED);
  expect_refused("\x08\x05", 2, "no body");
  expect_refused("\xff\xff\xff", 3, "no sinew.v1.Request");
  // A body with an unknown number: a request of a later version.
  expect_refused("\x08\x05\xfa\x3f\x00", 5, "no body");
  uint64_t id = 0;
  assert_null(sn_request_read(&arena, "\x08\x96\x01\x12\x7f", 5, &id, &err));
  assert_int_equal(id, 150);
}

// Many tiny unknown fields: protobuf-c would spend fifty times their size.
static void test_amplification_is_bounded(void **state) {
  (void)state;
  unsigned char *bytes = malloc(MESSAGE_BYTES);
  for (size_t i = 0; i + 3 <= MESSAGE_BYTES - 3; i += 3) bytes[i] = 0xf8, bytes[i + 1] = 0x07, bytes[i + 2] = 0;
  expect_refused(bytes, MESSAGE_BYTES - MESSAGE_BYTES % 3, "needs more memory");
  assert_true(arena.used <= arena.budget);
  free(bytes);
}

static void test_largest_message_fits(void **state) {
  (void)state;
  SnWireError err;
  size_t n = MESSAGE_BYTES / 16 - 64;
  unsigned char *bytes = malloc(MESSAGE_BYTES);
  size_t size = pack_plan(bytes, n, 0, 1);
  assert_true(size <= MESSAGE_BYTES);
  assert_non_null(read_it(bytes, size, &err));
  free(bytes);
}

// Every truncation of a good message, and seeded changes of it.
static void test_damaged_messages(void **state) {
  (void)state;
  unsigned char good[4096], bytes[4096];
  SnWireError err;
  uint64_t s = SEED;
  size_t n = pack_plan(good, 20, 0, 1);
  print_message("seed %llu\n", (unsigned long long)SEED);
  for (size_t k = 0; k < n; k++) read_it(good, k, &err);
  for (int i = 0; i < ROUNDS; i++) {
    memcpy(bytes, good, n);
    for (uint64_t k = next_random(&s) % 6; k-- > 0;) bytes[next_random(&s) % n] = (unsigned char)next_random(&s);
    read_it(bytes, n, &err);
  }
  for (int i = 0; i < ROUNDS; i++) {
    size_t m = next_random(&s) % 200;
    for (size_t k = 0; k < m; k++) bytes[k] = (unsigned char)next_random(&s);
    read_it(bytes, m, &err);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_field_has_bounds),
      cmocka_unit_test(test_good_request_passes),
      cmocka_unit_test(test_bad_numbers),
      cmocka_unit_test(test_bad_deadline_and_missing_state),
      cmocka_unit_test(test_strings),
      cmocka_unit_test(test_zero_bytes),
      cmocka_unit_test(test_absent_settings_are_not_checked),
      cmocka_unit_test(test_terms_are_checked_each),
      cmocka_unit_test(test_no_request_at_all),
      cmocka_unit_test(test_amplification_is_bounded),
      cmocka_unit_test(test_largest_message_fits),
      cmocka_unit_test(test_damaged_messages),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
