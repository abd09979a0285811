// If n + 1 numbers are in random order, the last one is among the k largest with probability k / (n + 1): for whatever
// distribution 2 of 129 pieces of work are later than the second largest of the 128 before them.
#include <math.h>

#include "daemon/planning/planning.h"

static double expect(const SnLateness *lateness) {
  const unsigned long n = lateness->n < SN_LATENESS_WINDOW ? lateness->n : SN_LATENESS_WINDOW;
  double first = 0, second = 0;
  for (unsigned long i = 0; i < n; ++i) {
    const double x = lateness->late[i];
    second = fmax(second, fmin(first, x));
    first = fmax(first, x);
  }
  return n < SN_LATENESS_WINDOW ? first : second;
}

void sn_lateness_note(SnLateness *lateness, double seconds) {
  lateness->late[lateness->n++ % SN_LATENESS_WINDOW] = seconds;
  lateness->expected = expect(lateness);
}
