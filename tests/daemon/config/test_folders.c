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
  static SnConfig config = {.runtime_folder = true};
  char folder[] = "/tmp/sinew-test-XXXXXX", path[64];
  SnError err = {0};
  struct stat st;
  bool missing = false;
  assert_non_null(mkdtemp(folder));
  setenv("XDG_RUNTIME_DIR", folder, 1);
  snprintf(path, sizeof path, "%s/sinew", folder);
  assert_int_equal(sn_runtime_folder_check(&config, &missing, &err), SN_OK);
  assert_true(missing);
  assert_int_equal(stat(path, &st), -1);
  assert_int_equal(sn_runtime_folder_make(&config, &err), SN_OK);
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0700);
  assert_int_equal(sn_runtime_folder_make(&config, &err), SN_OK);

  chmod(path, 0755);
  assert_int_equal(sn_runtime_folder_make(&config, &err), SN_ERR_STATE);
  assert_non_null(strstr(err.text, "open to other users"));
  config.runtime_folder = false;
  assert_int_equal(sn_runtime_folder_make(&config, &err), SN_OK);
  config.runtime_folder = true;
  rmdir(path);
  assert_int_equal(symlink("/tmp", path), 0);
  assert_int_equal(sn_runtime_folder_make(&config, &err), SN_ERR_STATE);
  unlink(path);
  rmdir(folder);
  assert_int_equal(sn_runtime_folder_make(&config, &err), SN_ERR_IO);
  assert_non_null(strstr(err.text, "No such file"));

  unsetenv("XDG_RUNTIME_DIR");
  snprintf(path, sizeof path, "/tmp/sinew-%lu", (unsigned long)getuid());
  assert_int_equal(sn_runtime_folder_make(&config, &err), SN_OK);
  assert_int_equal(access(path, W_OK), 0);
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
