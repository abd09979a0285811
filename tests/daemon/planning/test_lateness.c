// What is kept back from deadlines: how late pieces of work are expected to be, from those before. Times are made here.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "daemon/planning/planning.h"

// A number in (0, 1), of xorshift.
static double uniform(uint64_t *x) {
  *x ^= *x << 13;
  *x ^= *x >> 7;
  *x ^= *x << 17;
  return ((double)(*x >> 11) + 0.5) * 0x1p-53;
}

static void test_values(void **state) {
  (void)state;
  SnLateness l = {.n = 0};
  assert_true(l.expected == 0);
  sn_lateness_note(&l, 3);
  assert_true(l.expected == 3);
  for (int i = 0; i < SN_LATENESS_WINDOW - 2; i++) sn_lateness_note(&l, 1);
  assert_true(l.expected == 3);  // the largest until there are enough
  sn_lateness_note(&l, 2);
  assert_true(l.expected == 2);  // one alone does not count
  for (int i = 0; i < SN_LATENESS_WINDOW - 1; i++) sn_lateness_note(&l, 1);
  assert_true(l.expected == 1);
  sn_lateness_note(&l, 5);
  sn_lateness_note(&l, 5);
  assert_true(l.expected == 5);
  for (int i = 0; i < SN_LATENESS_WINDOW; i++) sn_lateness_note(&l, 0);
  assert_true(l.expected == 0);  // what was is forgotten
}

// Whatever the distribution, less than 2 of 100 are later than expected; and not much fewer, which would cost time.
static void test_share(void **state) {
  (void)state;
  enum { DRAWS = 200000 };
  static const char *const names[] = {"uniform", "exponential", "heavy tail", "mostly none"};
  for (int kind = 0; kind < 4; kind++) {
    SnLateness l = {.n = 0};
    uint64_t seed = 88172645463325252u;
    int later = 0;
    for (int i = 0; i < DRAWS; i++) {
      const double u = uniform(&seed), v = uniform(&seed);
      const double late = kind == 0 ? u : kind == 1 ? -log(u) : kind == 2 ? 1 / (u * u) : v < 0.03 ? 1 + u : 1e-3 * u;
      if (i >= SN_LATENESS_WINDOW) later += late > l.expected;
      sn_lateness_note(&l, late);
    }
    const double share = later / (double)(DRAWS - SN_LATENESS_WINDOW);
    print_message("%s: %.2f %% are later than expected\n", names[kind], 100 * share);
    assert_true(share < 0.02 && share > 0.01);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_share)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
