// Files of keys: what is a key, whose file may hold a secret one, and with which words others are refused.
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

#include "proto/key_file.h"

#define KEY "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"

static char path[64];

static int setup(void **state) {
  (void)state;
  strcpy(path, "/tmp/sinew-key-XXXXXX");
  const int fd = mkstemp(path);
  return fd < 0 || close(fd);
}

static int teardown(void **state) {
  (void)state;
  return unlink(path);
}

static void write_key(const char *text, mode_t mode) {
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  assert_int_equal(fclose(f), 0);
  assert_int_equal(chmod(path, mode), 0);
}

static void expect(bool secret, const char *word) {
  char key[SN_KEY_TEXT], why[1024] = "";
  const bool ok =
      secret ? sn_key_read_secret(path, key, why, sizeof why) : sn_key_read_public(path, key, why, sizeof why);
  if (!word) {
    if (!ok) fail_msg("%s", why);
    assert_string_equal(key, KEY);
  } else if (ok || !strstr(why, word)) {
    fail_msg("'%s' does not say '%s'", why, word);
  }
}

static void test_valid(void **state) {
  (void)state;
  assert_true(sn_key_is_valid(KEY));
  static const char *const bad[] = {"",
                                    "rq:rM",
                                    KEY "a",
                                    KEY "~",
                                    KEY " ",
                                    KEY "\n",
                                    "~q:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7",
                                    "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf",
                                    "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf,"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (sn_key_is_valid(bad[i])) fail_msg("'%s' passes", bad[i]);
}

static void test_texts(void **state) {
  (void)state;
  char longest[5000];
  memset(longest, '#', sizeof longest);
  longest[1] = ' ';
  strcpy(longest + 4000, "\n" KEY "\n");
  static const char *const good[] = {KEY, KEY "\n", "# a comment\n#\n\n" KEY "\r\nand what else stands there\n"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    write_key(good[i], 0600);
    expect(true, NULL);
    expect(false, NULL);
  }
  write_key(longest, 0600);
  expect(true, NULL);
  memset(longest + 4000, '#', 96);
  strcpy(longest + 4096, "\n" KEY "\n");
  write_key(longest, 0600);
  expect(true, "is no file of a key");
  static const char *const bad[] = {"", "\n", "# " KEY "\n", " " KEY "\n", KEY " \n", KEY "x\n"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    write_key(bad[i], 0600);
    expect(true, "has no key: 40 characters");
    expect(false, "has no key: 40 characters");
  }
}

// A secret key is its user's alone; a public one may be read by anybody.
static void test_rights(void **state) {
  (void)state;
  static const mode_t open_to_others[] = {0640, 0604, 0620, 0602, 0610, 0601, 0644};
  for (size_t i = 0; i < sizeof open_to_others / sizeof *open_to_others; i++) {
    write_key(KEY, open_to_others[i]);
    expect(true, "a secret key must have mode 600");
    expect(false, NULL);
  }
  write_key(KEY, 0400);
  expect(true, NULL);
  if (geteuid() != 0) return;  // only root can give a file away
  assert_int_equal(chown(path, 54321, 54321), 0);
  expect(true, "belongs to user 54321");
  expect(false, NULL);
  assert_int_equal(chown(path, 0, 0), 0);
}

// A public key may stand for itself. What is no regular file is not waited for.
static void test_not_a_file(void **state) {
  (void)state;
  char key[SN_KEY_TEXT], why[1024], folder[80];
  assert_true(sn_key_read_public(KEY, key, why, sizeof why));
  assert_string_equal(key, KEY);
  assert_false(sn_key_read_secret(KEY, key, why, sizeof why));
  snprintf(folder, sizeof folder, "%s.pipe", path);
  assert_int_equal(mkfifo(folder, 0600), 0);
  assert_false(sn_key_read_secret(folder, key, why, sizeof why));
  assert_non_null(strstr(why, "is no file of a key"));
  unlink(folder);
  assert_false(sn_key_read_secret("/nonexistent/key", key, why, sizeof why));
  assert_non_null(strstr(why, "/nonexistent/key: No such file"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_valid),
      cmocka_unit_test(test_texts),
      cmocka_unit_test(test_rights),
      cmocka_unit_test(test_not_a_file),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
