// The address of a user's daemon: a variable without an absolute path does not count.
#include "proto/default_endpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
// cmocka needs what stands above.
#include <cmocka.h>

static void expect(const char *runtime, const char *wanted) {
  char text[200];
  if (runtime)
    setenv("XDG_RUNTIME_DIR", runtime, 1);
  else
    unsetenv("XDG_RUNTIME_DIR");
  assert_true(sn_default_endpoint(text, sizeof text));
  assert_string_equal(text, wanted);
}

static void test_rule(void **state) {
  (void)state;
  char tmp[200];
  snprintf(tmp, sizeof tmp, "ipc:///tmp/sinew-%u/sinewd.sock", (unsigned)getuid());
  expect("/run/user/7", "ipc:///run/user/7/sinew/sinewd.sock");
  expect("run/user/7", tmp);
  expect("", tmp);
  expect(NULL, tmp);
}

static void test_too_long(void **state) {
  (void)state;
  char text[24];
  setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
  assert_true(sn_runtime_folder(text, sizeof "/run/user/7/sinew"));
  assert_string_equal(text, "/run/user/7/sinew");
  assert_false(sn_runtime_folder(text, sizeof "/run/user/7/sinew" - 1));
  assert_false(sn_default_endpoint(text, sizeof text));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rule),
      cmocka_unit_test(test_too_long),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
