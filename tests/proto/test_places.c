// The default places: beside this program and in the cache folder, and entries of a list of folders.
#include "proto/places.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs what stands above.
#include <cmocka.h>

static void test_cache_folder(void **state) {
  (void)state;
  char path[SN_PLACE_SIZE];
  setenv("XDG_CACHE_HOME", "/a", 1);
  setenv("HOME", "/b", 1);
  assert_true(sn_cache_folder(path, sizeof path));
  assert_string_equal(path, "/a/sinew");
  setenv("XDG_CACHE_HOME", "", 1);
  assert_true(sn_cache_folder(path, sizeof path));
  assert_string_equal(path, "/b/.cache/sinew");
  assert_false(sn_cache_folder(path, 8));
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  assert_false(sn_cache_folder(path, sizeof path));
}

static void test_models_and_tasks(void **state) {
  (void)state;
  char program[SN_PLACE_SIZE], wanted[2 * SN_PLACE_SIZE], path[SN_PLACE_SIZE];
  char place[SN_PLACES_OF_MODELS][SN_PLACE_SIZE];
  assert_true(sn_program_folder(program, sizeof program));
  assert_int_equal(program[0], '/');
  assert_false(sn_program_folder(path, 4));
  setenv("XDG_CACHE_HOME", "/a", 1);
  assert_int_equal(sn_places_of_models(place), 2);
  snprintf(wanted, sizeof wanted, "%s/../share/sinew/models", program);
  assert_string_equal(place[0], wanted);
  assert_string_equal(place[1], "myosuite=/a/sinew/myosuite-2.12.2/myosuite");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  assert_int_equal(sn_places_of_models(place), 1);
  assert_string_equal(place[0], wanted);
  assert_true(sn_place_of_tasks(path, sizeof path));
  snprintf(wanted, sizeof wanted, "%s/../share/sinew/tasks", program);
  assert_string_equal(path, wanted);
}

static void test_entries(void **state) {
  (void)state;
  const struct {
    const char *entry, *folder;
    size_t name;
  } entries[] = {{"/a/b", "/a/b", 0}, {"own=/a", "/a", 3}, {"/a=b", "/a=b", 0}, {"=/a", "=/a", 0}, {"a", "a", 0}};
  for (size_t i = 0; i < sizeof entries / sizeof *entries; ++i) {
    size_t name = 99;
    assert_string_equal(sn_place_folder(entries[i].entry, &name), entries[i].folder);
    assert_int_equal(name, entries[i].name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cache_folder),
      cmocka_unit_test(test_models_and_tasks),
      cmocka_unit_test(test_entries),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
