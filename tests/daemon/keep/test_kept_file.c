// Files of kept sessions: what is read again, and what is not, however well it is made.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/keep/kept_file_private.h"

enum { SOMEBODY = 54321, REFUSED = 64 };

static char root[64];
static SnKeptFolder folder;
static const SnLog quiet = {.fd = -1};

static int setup(void **state) {
  (void)state;
  SnError err = {0};
  static char path[80];
  strcpy(root, "/tmp/sinew-kept-XXXXXX");
  if (!mkdtemp(root)) return -1;
  snprintf(path, sizeof path, "%s/state", root);
  return sn_kept_folder_open(&folder, path, &quiet, &err) == SN_OK ? 0 : -1;
}

static int teardown(void **state) {
  (void)state;
  char command[100];
  sn_kept_folder_close(&folder);
  snprintf(command, sizeof command, "rm -rf %s", root);
  return system(command);
}

static void path_of(char path[128], const char *name) { snprintf(path, 128, "%s/state/%s", root, name); }

static void write_good(const char *name, const char *text) {
  SnError err = {0};
  const SnKeptBytes bytes = {(unsigned char *)(uintptr_t)text, strlen(text)};
  if (sn_kept_file_write(&folder, name, bytes, true, &err) != SN_OK) fail_msg("%s", err.text);
}

// Reads a file; what is wrong with it must be said with that word, "" for nothing.
static void expect(const char *name, SnCode code, const char *word) {
  SnError err = {0};
  SnKeptBytes bytes;
  assert_int_equal(sn_kept_file_read(&folder, name, &bytes, &err), code);
  if (code != SN_OK && !strstr(err.text, word)) fail_msg("'%s' does not say '%s'", err.text, word);
  if (code == SN_OK) assert_true(bytes.size == strlen(word) && !memcmp(bytes.bytes, word, bytes.size));
  free(bytes.bytes);
}

static void test_written_and_read(void **state) {
  (void)state;
  char path[128];
  struct stat st;
  write_good("1.session", "the first");
  expect("1.session", SN_OK, "the first");
  write_good("1.session", "the second, which is longer");
  expect("1.session", SN_OK, "the second, which is longer");
  path_of(path, "1.session");
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_mode & 07777, 0600);
  path_of(path, "1.session.new");
  assert_int_not_equal(stat(path, &st), 0);
  expect("2.session", SN_ERR_NOT_FOUND, "there is none");
  sn_kept_file_remove(&folder, "1.session");
  expect("1.session", SN_ERR_NOT_FOUND, "there is none");
}

// What cannot be written leaves what was there, and nothing else.
static void test_failed_write(void **state) {
  (void)state;
  SnError err = {0};
  struct rlimit before, little = {8, 8};
  struct stat st;
  char path[128];
  write_good("9.session", "as it was");
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, SIG_IGN);
  little.rlim_max = before.rlim_max;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
  const SnKeptBytes bytes = {(unsigned char *)(uintptr_t) "anew", 4};
  const SnCode code = sn_kept_file_write(&folder, "9.session", bytes, true, &err);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_int_equal(code, SN_ERR_IO);
  assert_non_null(strstr(err.text, "cannot write 9.session"));
  expect("9.session", SN_OK, "as it was");
  path_of(path, "9.session.new");
  assert_int_not_equal(stat(path, &st), 0);
}

static void test_names(void **state) {
  (void)state;
  char name[SN_KEPT_NAME];
  uint64_t id;
  SnKeptPart part;
  assert_string_equal(sn_kept_file_name(123456789, SN_KEPT_WARM, name), "123456789.warm");
  assert_true(sn_kept_file_parse(name, &id, &part) && id == 123456789 && part == SN_KEPT_WARM);
  assert_true(sn_kept_file_parse("7.session", &id, &part) && id == 7 && part == SN_KEPT_SETTINGS);
  static const char *const others[] = {"0.session", "007.session", "7.sessions", "7.session.new", "session",
                                       "-7.warm",   "7",           " 7.session", "+7.session",    "lock"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (sn_kept_file_parse(others[i], &id, &part)) fail_msg("%s is taken for a file of ours", others[i]);
}

// A good file that somebody else may have made is none of ours.
static void test_rights(void **state) {
  (void)state;
  char path[128], link[128];
  write_good("3.session", "good");
  path_of(path, "3.session");
  static const mode_t open_to_others[] = {0640, 0604, 0660, 0602, 0610, 0601};
  for (size_t i = 0; i < sizeof open_to_others / sizeof *open_to_others; i++) {
    assert_int_equal(chmod(path, open_to_others[i]), 0);
    expect("3.session", SN_ERR_STATE, "it is not this user's alone");
  }
  assert_int_equal(chmod(path, 0600), 0);
  expect("3.session", SN_OK, "good");
  path_of(link, "4.session");
  assert_int_equal(symlink(path, link), 0);
  expect("4.session", SN_ERR_IO, "symbolic");
  if (geteuid() == 0) {  // only root can give a file away
    assert_int_equal(chown(path, SOMEBODY, SOMEBODY), 0);
    expect("3.session", SN_ERR_STATE, "owner 54321");
  }
}

// Each byte of a file counts, and so does its length.
static void test_damaged(void **state) {
  (void)state;
  char path[128];
  unsigned char bytes[64];
  write_good("5.session", "what is kept");
  path_of(path, "5.session");
  int fd = open(path, O_RDWR);
  const ssize_t size = read(fd, bytes, sizeof bytes);
  assert_int_equal(size, 24 + 12);
  for (off_t i = 0; i < size; i++) {
    const unsigned char wrong = bytes[i] ^ 4;
    assert_int_equal(pwrite(fd, &wrong, 1, i), 1);
    expect("5.session", SN_ERR_FORMAT, "");
    assert_int_equal(pwrite(fd, &bytes[i], 1, i), 1);
  }
  expect("5.session", SN_OK, "what is kept");
  for (off_t n = 0; n < size; n++) {
    assert_int_equal(ftruncate(fd, n), 0);
    expect("5.session", SN_ERR_FORMAT, "");
  }
  assert_int_equal(pwrite(fd, bytes, (size_t)size, 0), size);
  assert_int_equal(pwrite(fd, "x", 1, size), 1);
  expect("5.session", SN_ERR_FORMAT, "it has 37 bytes, and says that there are 12 behind its header");
  close(fd);
}

// Others may not write into the folder, and one daemon has it.
static void test_folder(void **state) {
  (void)state;
  SnKeptFolder other;
  SnError err = {0};
  char path[128];
  assert_int_equal(sn_kept_folder_open(&other, folder.path, &quiet, &err), SN_ERR_STATE);
  assert_non_null(strstr(err.text, "another sinewd keeps its sessions in"));
  snprintf(path, sizeof path, "%s/others", root);
  assert_int_equal(mkdir(path, 0700), 0);
  static const mode_t writable[] = {0720, 0702, 0770, 01777};
  for (size_t i = 0; i < sizeof writable / sizeof *writable; i++) {
    assert_int_equal(chmod(path, writable[i]), 0);
    assert_int_equal(sn_kept_folder_open(&other, path, &quiet, &err), SN_ERR_STATE);
    assert_non_null(strstr(err.text, "others may write into"));
  }
  assert_int_equal(chmod(path, 0755), 0);
  assert_int_equal(sn_kept_folder_open(&other, path, &quiet, &err), SN_OK);
  sn_kept_folder_close(&other);
  if (geteuid() != 0) return;
  assert_int_equal(chown(path, SOMEBODY, SOMEBODY), 0);
  assert_int_equal(sn_kept_folder_open(&other, path, &quiet, &err), SN_ERR_STATE);
}

// What is refused lies aside, up to so many files; more stay where they are.
static void test_refused(void **state) {
  (void)state;
  char name[SN_KEPT_NAME], path[128];
  struct stat st;
  SnLog log = {.fd = -1};
  for (uint64_t id = 100; id < 100 + REFUSED + 2; id++) {
    write_good(sn_kept_file_name(id, SN_KEPT_SETTINGS, name), "bad");
    sn_kept_file_refuse(&folder, name, &log, "for the test");
    char aside[60];
    snprintf(aside, sizeof aside, "refused/%s", name);
    const bool moved = id < 100 + REFUSED;
    path_of(path, aside);
    assert_int_equal(stat(path, &st) == 0, moved);
    path_of(path, name);
    assert_int_equal(stat(path, &st) == 0, !moved);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_written_and_read), cmocka_unit_test(test_failed_write), cmocka_unit_test(test_names),
      cmocka_unit_test(test_rights),           cmocka_unit_test(test_damaged),      cmocka_unit_test(test_folder),
      cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
