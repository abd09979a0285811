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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(memory), cmocka_unit_test(files)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
