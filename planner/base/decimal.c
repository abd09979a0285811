#include "planner/base/decimal.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void make_c_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

double sn_decimal_read(const char *text, char **end) {
  pthread_once(&c_locale_once, make_c_locale);
  return c_locale ? strtod_l(text, end, c_locale) : strtod(text, end);
}

char *sn_decimal_write(double x, char *text, size_t size) {
  enum { ALWAYS_EXACT = 15, ENOUGH = 17 };  // digits that text keeps through a number, and a number through text
  pthread_once(&c_locale_once, make_c_locale);
  const locale_t before = c_locale ? uselocale(c_locale) : (locale_t)0;
  for (int digits = ALWAYS_EXACT; digits <= ENOUGH; ++digits) {
    snprintf(text, size, "%.*g", digits, x);
    if (strtod(text, NULL) == x) break;
  }
  if (c_locale) uselocale(before);
  return text;
}
