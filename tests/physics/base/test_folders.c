// The folder of the running program and the user's cache folder.
#include "physics/base/folders.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
// cmocka needs what stands above.
#include <cmocka.h>

enum { SIZE = 512 };

static void test_cache_folder(void **state) {
  (void)state;
  char path[SIZE];
  setenv("XDG_CACHE_HOME", "/a", 1);
  setenv("HOME", "/b", 1);
  assert_true(sn_cache_folder(path, sizeof path));
  assert_string_equal(path, "/a/sinew");
  setenv("XDG_CACHE_HOME", "", 1);
  assert_true(sn_cache_folder(path, sizeof path));
  assert_string_equal(path, "/b/.cache/sinew");
  assert_false(sn_cache_folder(path, 8));
  assert_true(sn_default_model_cache(path, sizeof path));
  assert_string_equal(path, "/b/.cache/sinew/models");
  assert_false(sn_default_model_cache(path, sizeof "/b/.cache/sinew/models" - 1));
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  assert_false(sn_cache_folder(path, sizeof path));
}

static void test_program_folder(void **state) {
  (void)state;
  char path[SIZE];
  assert_true(sn_program_folder(path, sizeof path));
  assert_int_equal(path[0], '/');
  assert_int_equal(access(path, X_OK), 0);
  assert_int_not_equal(path[strlen(path) - 1], '/');
  assert_false(sn_program_folder(path, 4));
  assert_true(sn_default_importer(path, sizeof path));
  assert_string_equal(strrchr(path, '/'), "/sinew-import");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_cache_folder), cmocka_unit_test(test_program_folder)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
