// Structures of a caller that was compiled with an older or a newer header, and errors.
#include "clients/base/api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// cmocka needs what stands above.
#include <cmocka.h>

// A structure as its first version had it, as this version has it, and as a later one will.
typedef struct First {
  size_t size;
  double rate;
} First;
typedef struct Present {
  size_t size;
  double rate;
  int count;
  bool fast;
} Present;
typedef struct Later {
  size_t size;
  double rate;
  int count;
  bool fast;
  const char *name;
} Later;
static const ApiStruct TYPE = {"SinewThing", "sinew_default_thing", sizeof(Present), API_END(Present, rate)};

static const Present DEFAULTS = {sizeof(Present), 0.5, 7, true};

static Present defaults(void) {
  Present p;
  memset(&p, 0, sizeof p);
  p.size = sizeof p;
  p.rate = DEFAULTS.rate;
  p.count = DEFAULTS.count;
  p.fast = DEFAULTS.fast;
  return p;
}

static void test_same(void **state) {
  (void)state;
  Present in = defaults(), out = defaults();
  in.rate = 2;
  in.count = 0;
  in.fast = false;
  SinewError err = {SINEW_ERR_IO, "of before"};
  assert_int_equal(api_take(&TYPE, &in, &out, &err), SINEW_OK);
  assert_int_equal(err.status, SINEW_OK);
  assert_string_equal(err.text, "");
  assert_memory_equal(&in, &out, sizeof in);
}

static void test_older_caller(void **state) {
  (void)state;
  const First in = {sizeof in, 3};
  Present out = defaults();
  assert_int_equal(api_take(&TYPE, &in, &out, NULL), SINEW_OK);
  assert_true(out.size == sizeof out && out.rate == 3 && out.count == 7 && out.fast);
  // The way back writes no byte past the caller's.
  struct {
    First first;
    double after;
  } caller = {{sizeof(First), 0}, 11};
  assert_int_equal(api_give(&TYPE, &out, &caller.first, NULL), SINEW_OK);
  assert_true(caller.first.size == sizeof(First) && caller.first.rate == 3 && caller.after == 11);
}

static void test_newer_caller(void **state) {
  (void)state;
  Later in;
  memset(&in, 0, sizeof in);
  in.size = sizeof in;
  in.rate = 4;
  Present out = defaults();
  assert_int_equal(api_take(&TYPE, &in, &out, NULL), SINEW_OK);
  assert_true(out.size == sizeof out && out.rate == 4 && out.count == 0 && !out.fast);
  assert_int_equal(api_give(&TYPE, &DEFAULTS, &in, NULL), SINEW_OK);
  assert_true(in.size == sizeof in && in.rate == 0.5 && in.count == 7 && in.fast && !in.name);
  // What only the newer library can do is not left out in silence.
  in.name = "new";
  SinewError err;
  assert_int_equal(api_take(&TYPE, &in, &out, &err), SINEW_ERR_ARGUMENT);
  assert_non_null(strstr(err.text, "SinewThing.size is 32 and byte 2"));
  assert_non_null(strstr(err.text, "knows the first 24"));
  assert_true(out.rate == 4);
}

static void refuse(const void *in, const char *text) {
  Present out = defaults();
  const Present before = out;
  SinewError err = {SINEW_OK, ""};
  assert_int_equal(api_take(&TYPE, in, &out, &err), SINEW_ERR_ARGUMENT);
  assert_int_equal(err.status, SINEW_ERR_ARGUMENT);
  assert_non_null(strstr(err.text, text));
  assert_non_null(strstr(err.text, "sinew_default_thing()"));
  assert_memory_equal(&out, &before, sizeof out);
  assert_int_equal(api_take(&TYPE, in, &out, NULL), SINEW_ERR_ARGUMENT);
  assert_int_equal(api_give(&TYPE, &before, (void *)(uintptr_t)in, &err), SINEW_ERR_ARGUMENT);
}

static void test_bad_size(void **state) {
  (void)state;
  Present in = defaults();
  refuse(NULL, "SinewThing is NULL");
  const size_t bad[] = {0, 8, 15, 4097, SIZE_MAX};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    in.size = bad[i];
    char text[80];
    snprintf(text, sizeof text, "SinewThing.size is %zu; allowed are 16 to 4096 bytes", bad[i]);
    refuse(&in, text);
  }
}

static void test_long_text(void **state) {
  (void)state;
  char text[5000];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = 0;
  SinewError err;
  assert_int_equal(api_fail(&err, SINEW_ERR_FORMAT, "%s", text), SINEW_ERR_FORMAT);
  assert_int_equal(strlen(err.text), sizeof err.text - 1);
  assert_int_equal(api_fail(NULL, SINEW_ERR_FORMAT, "%s", text), SINEW_ERR_FORMAT);
  assert_int_equal(api_ok(NULL), SINEW_OK);
}

// Success writes the status and one byte of the text: a loop of 1 kHz calls it.
static void test_success_is_cheap(void **state) {
  (void)state;
  SinewError err, before;
  memset(&err, 0x5a, sizeof err);
  before = err;
  assert_int_equal(api_ok(&err), SINEW_OK);
  assert_int_equal(err.status, SINEW_OK);
  assert_int_equal(err.text[0], 0);
  assert_memory_equal(err.text + 1, before.text + 1, sizeof err.text - 1);
}

static void test_status_names(void **state) {
  (void)state;
  assert_string_equal(sinew_status_name(SINEW_OK), "ok");
  assert_string_equal(sinew_status_name(SINEW_ERR_TIMEOUT), "timeout");
  assert_string_equal(sinew_status_name(SINEW_ERR_BAD_PLAN), "bad plan");
  assert_string_equal(sinew_status_name(SINEW_ERR_NO_SESSION), "no session");
  assert_string_equal(sinew_status_name((SinewStatus)31), "unknown status");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_same),         cmocka_unit_test(test_older_caller),
                                     cmocka_unit_test(test_newer_caller), cmocka_unit_test(test_bad_size),
                                     cmocka_unit_test(test_long_text),    cmocka_unit_test(test_success_is_cheap),
                                     cmocka_unit_test(test_status_names)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
