// Memory that is freed all at once, and files that are read into it.
#include <stdio.h>
#include <unistd.h>

#include "planner/base/arena.h"
#include "tests/support/oracle.h"

static void memory(void **state) {
  (void)state;
  SnArena a = {0};
  for (size_t bytes = 1; bytes < 100000; bytes *= 3) {  // within a block, and beyond one
    unsigned char *x = sn_arena_alloc(&a, bytes);
    assert_int_equal((uintptr_t)x % 16, 0);
    for (size_t i = 0; i < bytes; ++i) assert_int_equal(x[i], 0);
    memset(x, 0xff, bytes);
  }
  assert_string_equal(sn_arena_text(&a, "words", 4), "word");
  sn_arena_free(&a);
  assert_null(a.first);
}

// A file of text or not, up to its limit; longer ones, and none, are refused by name.
static void files(void **state) {
  (void)state;
  static const char content[] = "bytes\0of any kind";
  char path[] = "/tmp/sinew-test-XXXXXX";
  SnArena a = {0};
  SnError err = {0};
  size_t size = 0;
  const int fd = mkstemp(path);
  assert_int_equal(write(fd, content, sizeof content), sizeof content);
  close(fd);
  const char *read = sn_arena_file(&a, path, sizeof content, &size, &err);
  if (!read) fail_msg("%s", err.text);
  assert_int_equal(size, sizeof content);
  assert_memory_equal(read, content, sizeof content);
  assert_null(sn_arena_file(&a, path, sizeof content - 1, &size, &err));
  assert_int_equal(err.code, SN_ERR_LIMIT);
  assert_non_null(strstr(err.text, "larger than 17 bytes"));
  unlink(path);
  assert_null(sn_arena_file(&a, path, 100, &size, &err));
  assert_int_equal(err.code, SN_ERR_NOT_FOUND);
  assert_non_null(strstr(err.text, path));
  assert_null(sn_arena_file(&a, "/tmp", 100, &size, &err));
  assert_int_equal(err.code, SN_ERR_IO);
  sn_arena_free(&a);
}

// Reads a file of n bytes where `most` are allowed.
static void read_bytes(const char *path, size_t n, size_t most) {
  SnArena a = {0};
  SnError err = {0};
  size_t size = SIZE_MAX;
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  for (size_t k = 0; k < n; ++k) fputc('a' + (int)(k % 26), f);
  assert_int_equal(fclose(f), 0);
  const char *text = sn_arena_file(&a, path, most, &size, &err);
  if (!text) fail_msg("%s", err.text);
  assert_true(size == n && strlen(text) == n);
  for (size_t k = 0; k < n; ++k) assert_int_equal(text[k], 'a' + (int)(k % 26));
  sn_arena_free(&a);
}

// The memory is by a file's size: as much as is allowed here there is nowhere.
static void by_size(void **state) {
  (void)state;
  char path[] = "/tmp/sinew-test-XXXXXX";
  assert_true(close(mkstemp(path)) == 0);
  for (size_t n = 0; n < 40; n += 13) read_bytes(path, n, 39);
  for (size_t n = 41; n < 70000; n *= 41) read_bytes(path, n, (size_t)1 << 60);
  unlink(path);
}

// What does not say how long it is, is read to its end.
static void pipes(void **state) {
  (void)state;
  int end[2];
  char path[40];
  size_t size;
  SnArena a = {0};
  SnError err = {0};
  assert_int_equal(pipe(end), 0);
  assert_int_equal(write(end[1], "a: 1\nb: 2\n", 10), 10);
  close(end[1]);
  snprintf(path, sizeof path, "/proc/self/fd/%d", end[0]);
  const char *text = sn_arena_file(&a, path, 10, &size, &err);
  if (!text) fail_msg("%s", err.text);
  assert_string_equal(text, "a: 1\nb: 2\n");
  assert_int_equal(size, 10);
  close(end[0]);
  sn_arena_free(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(memory), cmocka_unit_test(files), cmocka_unit_test(by_size),
                                     cmocka_unit_test(pipes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
