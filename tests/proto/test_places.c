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

#include "physics/base/folders.h"

static void test_models_and_tasks(void **state) {
  (void)state;
  char program[SN_PLACE_SIZE], wanted[2 * SN_PLACE_SIZE], path[SN_PLACE_SIZE];
  char place[SN_PLACES_OF_MODELS][SN_PLACE_SIZE];
  assert_true(sn_program_folder(program, sizeof program));
  setenv("XDG_CACHE_HOME", "/a", 1);
  assert_int_equal(sn_places_of_models(place), 4);
  snprintf(wanted, sizeof wanted, "%s/../share/sinew/models", program);
  assert_string_equal(place[0], wanted);
  assert_string_equal(place[1], "myosuite=/a/sinew/myosuite-2.12.2/myosuite");
  assert_string_equal(place[2], "dm_control=/a/sinew/dm_control-1.0.50/dm_control");
  assert_string_equal(place[3], "gymnasium=/a/sinew/gymnasium-1.4.0/gymnasium");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  assert_int_equal(sn_places_of_models(place), 1);
  assert_string_equal(place[0], wanted);
  assert_true(sn_place_of_tasks(path, sizeof path));
  snprintf(wanted, sizeof wanted, "%s/../share/sinew/tasks", program);
  assert_string_equal(path, wanted);
  assert_true(sn_place_of_schema(path, sizeof path));
  snprintf(wanted, sizeof wanted, "%s/../share/sinew/sinew.desc", program);
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
      cmocka_unit_test(test_models_and_tasks),
      cmocka_unit_test(test_entries),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
