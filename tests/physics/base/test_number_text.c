// Numbers in messages: as short as %g writes them, and as long as it takes to tell them from their neighbours.
#include "physics/base/number_text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs what stands above.
#include <cmocka.h>

static const struct {
  double x;
  const char *text;
} cases[] = {{0, "0"},
             {-0.05, "-0.05"},
             {1e9, "1e+09"},
             {1e-300, "1e-300"},
             {0.9999999, "0.9999999"},
             {16777216, "16777216"},
             {16777217, "16777217"},
             {1000000001, "1000000001"},
             {3600.0001, "3600.0001"},
             {INFINITY, "inf"},
             {-INFINITY, "-inf"}};

static void texts(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
    assert_string_equal(sn_number_text(cases[i].x).text, cases[i].text);
  assert_non_null(strstr(sn_number_text((double)NAN).text, "nan"));
}

// The number beside one is another text, which is read as that number.
static void neighbours(void **state) {
  (void)state;
  static const double x[] = {1, 0.1, 0.24, 1e10, 1e-9, 1.7e308, 5e-324};
  for (size_t i = 0; i < sizeof x / sizeof *x; ++i) {
    const double next = nextafter(x[i], INFINITY);
    assert_true(strtod(sn_number_text(x[i]).text, NULL) == x[i]);
    assert_true(strtod(sn_number_text(next).text, NULL) == next);
    assert_string_not_equal(sn_number_text(x[i]).text, sn_number_text(next).text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(texts), cmocka_unit_test(neighbours)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
