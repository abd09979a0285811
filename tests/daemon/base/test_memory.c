// What control groups allow, from files like those of the system.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/memory.h"

static char folder[] = "/tmp/sinew-test-XXXXXX";

static void write_file(const char *name, const char *text) {
  char command[300];
  snprintf(command, sizeof command, "mkdir -p \"$(dirname %s/%s)\"", folder, name);
  assert_int_equal(system(command), 0);
  snprintf(command, sizeof command, "%s/%s", folder, name);
  FILE *f = fopen(command, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
}

static uint64_t limit_of(const char *list) {
  char path[64];
  write_file("list", list);
  snprintf(path, sizeof path, "%s/list", folder);
  return sn_memory_of_groups(path, folder);
}

static void test_groups(void **state) {
  (void)state;
  assert_non_null(mkdtemp(folder));
  assert_true(limit_of("") == UINT64_MAX);
  assert_true(sn_memory_of_groups("/nowhere/at all", folder) == UINT64_MAX);
  assert_true(limit_of("0::/a/b\n") == UINT64_MAX);
  write_file("a/b/memory.max", "max\n");
  assert_true(limit_of("0::/a/b\n") == UINT64_MAX);
  write_file("a/memory.max", "3000000\n");
  assert_int_equal(limit_of("0::/a/b\n"), 3000000);
  write_file("a/b/memory.max", "2000000\n");
  assert_int_equal(limit_of("0::/a/b\n"), 2000000);
  write_file("memory.max", "1000000\n");
  assert_int_equal(limit_of("0::/a/b\n"), 1000000);
  assert_int_equal(limit_of("0::/\n"), 1000000);
  // Hierarchies of one controller each, where the root has no limit: all bits but the lowest.
  write_file("memory/memory.limit_in_bytes", "9223372036854771712\n");
  write_file("memory/c/memory.limit_in_bytes", "500000\n");
  assert_int_equal(limit_of("5:cpu:/x\n4:memory:/c\n0::/a\n"), 500000);
  assert_true(limit_of("4:memory:/\nno line\n") == 9223372036854771712ull);
  assert_true(sn_memory_limit(3) == 3u << 20);
  assert_true(sn_memory_limit(0) > 0);
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  assert_int_equal(system(command), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_groups)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
