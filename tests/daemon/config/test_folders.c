// The folder of the user's sockets, and the check of lists of folders.
#include "daemon/config/folders_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void test_runtime_folder(void **state) {
  (void)state;
  char folder[] = "/tmp/sinew-test-XXXXXX", path[128], expected[64];
  SnError err = {0};
  struct stat st;
  assert_non_null(mkdtemp(folder));
  setenv("XDG_RUNTIME_DIR", folder, 1);
  assert_int_equal(sn_make_runtime_folder(path, sizeof path, &err), SN_OK);
  snprintf(expected, sizeof expected, "%s/sinew", folder);
  assert_string_equal(path, expected);
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0700);

  chmod(path, 0755);
  assert_int_equal(sn_make_runtime_folder(path, sizeof path, &err), SN_ERR_STATE);
  assert_non_null(strstr(err.text, "open to other users"));
  rmdir(path);
  assert_int_equal(symlink("/tmp", path), 0);
  assert_int_equal(sn_make_runtime_folder(path, sizeof path, &err), SN_ERR_STATE);
  unlink(path);
  rmdir(folder);

  unsetenv("XDG_RUNTIME_DIR");
  snprintf(expected, sizeof expected, "/tmp/sinew-%lu", (unsigned long)getuid());
  assert_int_equal(sn_make_runtime_folder(path, sizeof path, &err), SN_OK);
  assert_string_equal(path, expected);
}

// What is configured must be there, and be a folder.
static void test_check(void **state) {
  (void)state;
  static SnConfigList list = {.n = 2, .item = {"/", "far=/tmp"}};
  SnError err = {0};
  char file[] = "/tmp/sinew-test-XXXXXX";
  assert_int_equal(sn_folders_check(&list, "models", &err), SN_OK);
  strcpy(list.item[1], "far=/proc/nowhere");
  assert_int_equal(sn_folders_check(&list, "models", &err), SN_ERR_NOT_FOUND);
  assert_string_equal(err.text,
                      "models is 'far=/proc/nowhere'; allowed is a folder that can be read: /proc/nowhere: No such "
                      "file or directory");
  close(mkstemp(file));
  strcpy(list.item[1], file);
  assert_int_equal(sn_folders_check(&list, "tasks", &err), SN_ERR_NOT_FOUND);
  assert_non_null(strstr(err.text, "tasks is '/tmp/sinew-test-"));
  assert_non_null(strstr(err.text, "Not a directory"));
  unlink(file);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_runtime_folder), cmocka_unit_test(test_check)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
