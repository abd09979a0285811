// Files that are there whole or as they were before.
#include "physics/base/files.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
// cmocka needs what stands above.
#include <cmocka.h>

static char folder[] = "/tmp/sinew-files.XXXXXX", path[64];

static int make_folder(void **state) {
  (void)state;
  strcpy(strrchr(folder, '.') + 1, "XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/f", folder);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  unlink(path);
  return rmdir(folder);  // no draft is left there
}

static int count_files(void) {
  DIR *dir = opendir(folder);
  int n = -2;
  while (readdir(dir)) ++n;
  closedir(dir);
  return n;
}

static void write_text(const char *text, unsigned mode) {
  SnDraft draft;
  assert_true(sn_draft_begin(&draft, path, false));
  assert_true(sn_draft_end(&draft, path, mode, fputs(text, draft.to) >= 0));
}

static void assert_text(const char *text) {
  char read[32] = "";
  FILE *f = sn_file_open(path);
  assert_non_null(f);
  assert_true(fread(read, 1, sizeof read - 1, f) > 0);
  fclose(f);
  assert_string_equal(read, text);
}

static void test_written_whole(void **state) {
  (void)state;
  struct stat st;
  SnDraft draft;
  write_text("first", 0600);
  assert_text("first");
  assert_true(sn_draft_begin(&draft, path, false));
  fputs("second", draft.to);
  fflush(draft.to);
  assert_text("first");  // until it is whole
  assert_true(sn_draft_end(&draft, path, 0644, true));
  assert_text("second");
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0644);
  assert_int_equal(count_files(), 1);
}

static void test_nothing_half(void **state) {
  (void)state;
  SnDraft draft;
  write_text("first", 0600);
  assert_true(sn_draft_begin(&draft, path, false));
  fputs("sec", draft.to);
  errno = ENOSPC;
  assert_false(sn_draft_end(&draft, path, 0600, false));
  assert_int_equal(errno, ENOSPC);
  assert_text("first");
  assert_int_equal(count_files(), 1);
}

// What does not fit on the device is known when it is flushed.
static void test_full_device(void **state) {
  (void)state;
  SnDraft draft;
  write_text("first", 0600);
  assert_true(sn_draft_begin(&draft, path, false));
  draft.to = freopen("/dev/full", "wb", draft.to);
  assert_non_null(draft.to);
  fputs("second", draft.to);
  assert_false(sn_draft_end(&draft, path, 0600, true));
  assert_int_equal(errno, ENOSPC);
  assert_text("first");
  assert_int_equal(count_files(), 1);
}

static void test_no_file(void **state) {
  (void)state;
  SnDraft draft;
  char longer[PATH_MAX + 16], nowhere[64];
  assert_null(sn_file_open(path));
  assert_null(sn_file_open(folder));
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_null(sn_file_open(path));
  assert_false(sn_draft_begin(&draft, path, false));
  assert_int_equal(errno, EEXIST);
  assert_int_equal(count_files(), 1);
  assert_true(sn_draft_begin(&draft, path, true));
  assert_true(sn_draft_end(&draft, path, 0600, fputs("x", draft.to) >= 0));
  assert_text("x");
  memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = '\0';
  assert_false(sn_draft_begin(&draft, longer, true));
  assert_int_equal(errno, ENAMETOOLONG);
  snprintf(nowhere, sizeof nowhere, "%s/none/f", folder);
  assert_false(sn_draft_begin(&draft, nowhere, true));
  assert_int_equal(errno, ENOENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_written_whole, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_nothing_half, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_full_device, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_no_file, make_folder, remove_folder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
