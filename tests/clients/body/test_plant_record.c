// When a run is a success, how bad it was, which plans it counts.
#include <stddef.h>
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

// The score is the part of all samples in which all was well, whatever is wanted at the end.
static void score(void **state) {
  (void)state;
  PlantRecord r = record_of(1, 0.01, 0.3);
  int good = 0;
  for (int i = 0; i < r.nsample; ++i) good += r.sample[i].measure[0] <= r.measure_below[0];
  assert_true(good > 0 && good < r.nsample);
  assert_true(plant_record_score(&r) == (double)good / r.nsample);
  r.sample[r.nsample - 1].measure[0] = (double)NAN;
  assert_true(plant_record_score(&r) == (double)(good - 1) / r.nsample);
  r.nmeasure = 0;
  assert_true(isnan(plant_record_score(&r)));
  r.nmeasure = 1;
  plant_record_free(&r);
}

// One control goes up and down by 2 at every sample, which are 0.1 s apart; the other stays.
static void variation(void **state) {
  (void)state;
  PlantRecord r = record_of(1, 1, 0.3);
  const int n = r.nsample;
  for (int i = 0; i < n; ++i) {
    free(r.sample[i].ctrl);
    r.sample[i].ctrl = calloc(2, sizeof *r.sample[i].ctrl);
    if (!r.sample[i].ctrl) fail();
    r.sample[i].ctrl[0] = i % 2 ? 1 : -1;
    r.sample[i].ctrl[1] = 7;
  }
  assert_true(n > 3 && fabs(plant_record_variation(&r, 2) - 10) < 1e-9 && plant_record_variation(&r, 0) == 0);
  r.nsample = 1;
  assert_true(plant_record_variation(&r, 2) == 0);
  r.nsample = n;
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

// Rows of a plan of two controls, 0.1 s each: row k is (first + k, -k).
static PlantPlan plan_of(double *ctrl, double start, int steps, int lead, double first) {
  for (int k = 0; k < steps; ++k) {
    ctrl[2 * k] = first + k;
    ctrl[2 * k + 1] = -k;
  }
  return (PlantPlan){.start = start, .step = 0.1, .steps = steps, .lead = lead, .ctrl = ctrl};
}

static void rows_of_a_plan(void **state) {
  (void)state;
  double a[8], b[12];
  const PlantPlan first = plan_of(a, 0.5, 4, 0, 0), second = plan_of(b, 1, 6, 2, 7);
  PlantPlan copy = {0};
  plant_plan_copy(&copy, &first, 2);
  const double time[] = {0, 0.5, 0.6 - 1e-9, 0.65, 0.9, 5};
  const int row[] = {0, 0, 1, 1, 3, 3};
  for (int i = 0; i < 6; ++i) assert_ptr_equal(plant_plan_row(&copy, time[i], 2), copy.ctrl + 2 * row[i]);
  plant_plan_copy(&copy, &second, 2);
  assert_memory_equal(copy.ctrl, b, sizeof b);
  assert_true(copy.steps == 6 && copy.lead == 2 && plant_plan_lead_end(&copy) == 1.2);
  plant_plan_copy(&copy, &first, 2);
  assert_memory_equal(copy.ctrl, a, sizeof a);
  plant_plan_free(&copy);
}

// What both plans give where they part: at the end of the lead, or where the later one was taken.
static void handovers(void **state) {
  (void)state;
  double a[40], b[40];
  const PlantPlan from = plan_of(a, 0, 20, 0, 0), to = plan_of(b, 0.3, 10, 2, 3.25);
  PlantRecord r = record_of(1, 1, 0.3);
  plant_record_handover(&r, &from, &to, 0.4, 5, 2);  // from: row 5 at 0.5 s; to: row 2
  plant_record_handover(&r, &from, &to, 0.8, 5, 2);  // row 8, row 5
  const PlantPlan free_of_lead = plan_of(b, 0.3, 10, 0, 4);
  plant_record_handover(&r, &from, &free_of_lead, 0.3, 50, 2);
  assert_int_equal(r.nhandover, 3);
  const PlantHandover *h = r.handover;
  assert_true(h[0].stamp == 0.3 && fabs(h[0].age - 0.1) < 1e-12 && h[0].late == 0 && h[0].rows == 2 && h[0].jump == 3);
  assert_true(fabs(h[1].late - 0.3) < 1e-12 && h[1].jump == 3 && h[1].ctrl[0] == 3.25 && h[1].ctrl[2] == 4.25);
  assert_true(h[2].rows == 10 && h[2].jump == 3 && h[2].late == 0);
  r.handover[0].jump = 1;
  r.handover[2].jump = 2;
  assert_true(plant_record_quantile(&r, offsetof(PlantHandover, jump), 0) == 1);
  assert_true(plant_record_quantile(&r, offsetof(PlantHandover, jump), 0.5) == 2);
  assert_true(plant_record_quantile(&r, offsetof(PlantHandover, jump), 1) == 3);
  for (int i = 3; i < 100; ++i) plant_record_handover(&r, &from, &to, 0.4, 5, 2);
  r.handover[40].jump = 50;
  assert_true(plant_record_quantile(&r, offsetof(PlantHandover, jump), 0.99) == 3);  // one of a hundred is beyond
  assert_true(isnan(plant_record_quantile(&r, offsetof(PlantHandover, position), 0.5)));
  assert_ptr_equal(plant_record_sample_at(&r, 0.3), r.sample + 3);
  assert_true(!plant_record_sample_at(&r, 0.35) && !plant_record_sample_at(&r, -0.1) && !plant_record_sample_at(&r, 9));
  plant_record_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(success),        cmocka_unit_test(score),
                                     cmocka_unit_test(variation),      cmocka_unit_test(plans_are_counted),
                                     cmocka_unit_test(rows_of_a_plan), cmocka_unit_test(handovers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
