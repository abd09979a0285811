// The latency that the planner is told of follows the ages that plans have when they come into force.
#include "clients/plant/plant.h"
#include "tests/support/oracle.h"

static void follows_ages(void **state) {
  (void)state;
  PlantLatency l = {.told = 0.045, .step = 0.005, .longest = 0.1};
  for (int i = 0; i < PLANT_AGES - 1; ++i) assert_false(plant_latency_note(&l, 0.0101));
  assert_true(l.told == 0.045);  // not before there are enough of them
  assert_true(plant_latency_note(&l, 0.0101));
  assert_true(fabs(l.told - 0.015) < 1e-12);   // whole rows
  assert_false(plant_latency_note(&l, 0.02));  // a late one alone does not count
  assert_true(plant_latency_note(&l, 0.03));
  assert_true(fabs(l.told - 0.02) < 1e-12);
  for (int i = 0; i < PLANT_AGES - 2; ++i) assert_false(plant_latency_note(&l, 0.0025));
  assert_true(plant_latency_note(&l, 0.0025));  // until two of the latest are late no more
  assert_true(fabs(l.told - 0.005) < 1e-12);
  for (int i = 0; i < PLANT_AGES; ++i) assert_false(plant_latency_note(&l, 0));  // a row at least
  assert_true(!plant_latency_note(&l, 7) && plant_latency_note(&l, 7) && l.told == 0.1);
}

static void rises_at_once(void **state) {
  (void)state;
  PlantLatency l = {.told = 0.005, .step = 0.005, .longest = 0.1};
  assert_false(plant_latency_note(&l, 0.005));
  assert_true(plant_latency_note(&l, 0.0075) && fabs(l.told - 0.01) < 1e-12);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(follows_ages), cmocka_unit_test(rises_at_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
