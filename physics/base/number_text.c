#include "physics/base/number_text.h"

#include <stdio.h>
#include <stdlib.h>

SnNumberText sn_number_text(double x) {
  enum { DIGITS = 6, ENOUGH = 17 };  // of %g, and those that tell any two numbers apart
  SnNumberText out;
  for (int digits = DIGITS; digits <= ENOUGH; ++digits) {
    snprintf(out.text, sizeof out.text, "%.*g", digits, x);
    if (strtod(out.text, NULL) == x) break;
  }
  return out;
}
