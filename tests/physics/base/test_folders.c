// The folder of the running program and the user's cache folder.
#include "physics/base/folders.h"

#include <errno.h>
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

// What would be made is what can be made, and the reasons are the same.
static void test_folder_make(void **state) {
  (void)state;
  char root[] = "/tmp/sinew-folders-XXXXXX", path[SIZE];
  assert_non_null(mkdtemp(root));
  const struct {
    const char *below;
    int error;  // 0: none
  } cases[] = {{"a/b/c", 0},        {"a/b/c/", 0},         {"file", ENOTDIR}, {"file/below", ENOTDIR},
               {"nowhere", ENOENT}, {"nowhere/b", ENOENT}, {"link", 0},       {"link/d", 0}};
  snprintf(path, sizeof path, "%s/file", root);
  fclose(fopen(path, "w"));
  snprintf(path, sizeof path, "%s/nowhere", root);
  assert_int_equal(symlink("/tmp/sinew/not/there", path), 0);
  snprintf(path, sizeof path, "%s/link", root);
  assert_int_equal(symlink(".", path), 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    snprintf(path, sizeof path, "%s/%s", root, cases[i].below);
    errno = 0;
    assert_int_equal(sn_folder_can_be_made(path), cases[i].error == 0);
    if (cases[i].error) assert_int_equal(errno, cases[i].error);
    errno = 0;
    assert_int_equal(sn_folder_make(path), cases[i].error == 0);
    if (cases[i].error) assert_int_equal(errno, cases[i].error);
  }
  assert_false(sn_folder_can_be_made(""));
  assert_false(sn_folder_make(""));
  snprintf(path, sizeof path, "rm -r %s", root);
  assert_int_equal(system(path), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_cache_folder), cmocka_unit_test(test_program_folder),
                                     cmocka_unit_test(test_folder_make)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
