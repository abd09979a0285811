// Numbers as text, in a locale that has a comma where we have a point.
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "planner/base/decimal.h"

static void check_numbers(void) {
  static const double numbers[] = {0, 1, -1.5, 0.1, 1.0 / 3, 1e300, 5e-324, 2e-7, 1000};
  char text[64], *end;
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) {
    assert_null(strchr(sn_decimal_write(numbers[i], text, sizeof text), ','));
    assert_true(sn_decimal_read(text, &end) == numbers[i]);
    assert_true(*end == 0);
  }
  assert_string_equal(sn_decimal_write(0.1, text, sizeof text), "0.1");
  assert_string_equal(sn_decimal_write(1000, text, sizeof text), "1000");
  assert_true(sn_decimal_read("0.25,", &end) == 0.25 && *end == ',');
  static const char none[] = "none";
  sn_decimal_read(none, &end);
  assert_ptr_equal(end, none);
}

static void test_numbers(void **state) {
  (void)state;
  check_numbers();
}

// Makes a locale with a comma in a temporary folder, where the system has the source of one.
static void test_locale_with_comma(void **state) {
  (void)state;
  char folder[] = "/tmp/sinew-locale-XXXXXX", command[200], text[16];
  assert_non_null(mkdtemp(folder));
  snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/comma >/dev/null 2>&1", folder);
  if (system(command) < 0) skip();
  setenv("LOCPATH", folder, 1);
  const bool made = setlocale(LC_ALL, "comma") != NULL;
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
  if (!made) skip();
  snprintf(text, sizeof text, "%g", 0.5);
  assert_string_equal(text, "0,5");
  check_numbers();
  snprintf(text, sizeof text, "%g", 0.5);
  assert_string_equal(text, "0,5");
  setlocale(LC_ALL, "C");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_locale_with_comma)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
