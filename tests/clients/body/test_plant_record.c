// When a run is a success, how bad it was, which plans it counts.
#include <stdio.h>
#include <stdlib.h>

#include "tests/clients/body/record_fixture.h"

static void expect(double early, double late, double during, bool success, double worst) {
  PlantRecord r = record_of(early, late, during);
  assert_int_equal(plant_record_success(&r), success);
  const double got = plant_record_worst(&r, 0);
  assert_true(isnan(worst) ? isnan(got) : got == worst);
  r.diverged = true;
  assert_false(plant_record_success(&r));
  plant_record_free(&r);
}

// What counts is the time that the task wants, at the end, both ends of it included.
static void success(void **state) {
  (void)state;
  expect(1, 0.02, 0.3, true, 0.02);
  expect(1, 0.01, 0.35, true, 0.01);
  expect(1, 0.01, 0.4, false, 1);  // from 0.6 s on
  expect(0.01, 0.021, 0.3, false, 0.021);
  expect(0.01, 0.01, 1, true, 0.01);
  expect(0.01, 0.01, 1.1, false, 0.01);  // longer than the run
  expect((double)NAN, 0.01, 0.3, true, 0.01);
  expect(0.01, (double)NAN, 0.3, false, (double)NAN);
  PlantRecord r = record_of(0.01, 0.01, 0.3);
  r.sample[8].measure[0] = (double)NAN;
  assert_true(!plant_record_success(&r) && isnan(plant_record_worst(&r, 0)));
  r.sample[8].measure[0] = 0.01;
  assert_true(plant_record_success(&r));
  r.nmeasure = 0;  // nothing to succeed in
  assert_false(plant_record_success(&r));
  r.nmeasure = 1;
  plant_record_free(&r);
}

static void plans_are_counted(void **state) {
  (void)state;
  PlantRecord r = record_of(1, 1, 0.3);
  for (int i = 0; i < 3000; ++i) plant_record_plan(&r, 1e-3 * i, i % 3 != 0);
  assert_true(r.nplan == 3000 && r.misses == 1000);
  for (int i = 0; i < 3000; ++i) assert_true(r.latency[i] == 1e-3 * i);
  plant_record_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(success), cmocka_unit_test(plans_are_counted)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
