// What sinew-plant reports of a run: latencies, misses, how good it was, columns.
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clients/plant/plant.h"
#include "tests/clients/body/record_fixture.h"

static double number_of(const cJSON *o, const char *name) {
  const cJSON *x = cJSON_GetObjectItem(o, name);
  if (!cJSON_IsNumber(x)) fail_msg("%s is no number", name);
  return x->valuedouble;
}

static cJSON *report_with(const PlantRecord *r, const PlantOptions *opt) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  plant_report_print_json(r, opt, out);
  fclose(out);
  cJSON *o = cJSON_Parse(text);
  assert_non_null(o);
  free(text);
  return o;
}

static cJSON *report_of(const PlantRecord *r) {
  const PlantOptions opt = {.task = "arm", .seed = 7, .mode = PLANT_REALTIME};
  return report_with(r, &opt);
}

// Latencies of 1 to 200 ms in no order, every tenth deadline missed.
static void latencies(void **state) {
  (void)state;
  PlantRecord r = record_of(1, 0.01, 0.3);
  for (int i = 0; i < 200; ++i) plant_record_plan(&r, 1e-3 * (1 + 77 * i % 200), i % 10 != 3);
  r.expired = 4;
  r.task_contacts = true;
  cJSON *o = report_of(&r);
  assert_true(number_of(o, "plans") == 200 && number_of(o, "deadline_misses") == 20);
  assert_true(number_of(o, "deadline_miss_share") == 0.1 && cJSON_IsNull(cJSON_GetObjectItem(o, "jump_p50")));
  assert_string_equal(cJSON_GetObjectItem(o, "contacts")->valuestring, "task");
  assert_true(fabs(number_of(o, "latency_p50") - 0.1) < 1e-12 && fabs(number_of(o, "latency_p99") - 0.198) < 1e-12);
  assert_true(number_of(o, "steps") == SAMPLES - 1 && number_of(o, "steps_without_plan") == 4);
  assert_true(number_of(o, "real_time_factor") == 0.5 && number_of(o, "simulated") == 1 && number_of(o, "seed") == 7);
  assert_true(number_of(o, "cost_start") == 1 && fabs(number_of(o, "cost_end") - 1.0 / SAMPLES) < 1e-12);
  const cJSON *hand = cJSON_GetObjectItem(cJSON_GetObjectItem(o, "measures"), "hand");
  assert_true(number_of(hand, "end") == 0.01 && number_of(hand, "worst") == 0.01);
  assert_true(number_of(hand, "below") == 0.02 && number_of(hand, "during") == 0.3);
  assert_true(cJSON_IsTrue(cJSON_GetObjectItem(o, "success")) && cJSON_IsFalse(cJSON_GetObjectItem(o, "diverged")));
  assert_string_equal(cJSON_GetObjectItem(o, "mode")->valuestring, "realtime");
  cJSON_Delete(o);
  plant_record_free(&r);
}

// Plans that come into force after the step at which they were wanted; those of other modes are not counted.
static void late_at_the_body(void **state) {
  (void)state;
  PlantRecord r = record_of(1, 0.01, 0.3);
  double ctrl[8] = {0};
  const PlantPlan from = {.start = 0, .step = 0.005, .steps = 8, .lead = 0, .ctrl = ctrl};
  static const double ages[] = {0.0375, 0.04, 0.0425, 0.05, 0.0025};
  for (int i = 0; i < 5; ++i) plant_record_handover(&r, &from, &from, ages[i], 1, 1);
  PlantOptions opt = {.task = "arm", .mode = PLANT_REALTIME, .deadline = 0.039, .step = 0.0025};
  cJSON *o = report_with(&r, &opt);
  assert_true(number_of(o, "body_late") == 2 && number_of(o, "body_late_share") == 0.4);
  cJSON_Delete(o);
  opt.deadline = 0.0375;
  o = report_with(&r, &opt);
  assert_true(number_of(o, "body_late") == 3 && number_of(o, "deadline_misses") == 0);
  cJSON_Delete(o);
  opt.mode = PLANT_CONTINUOUS;
  o = report_with(&r, &opt);
  assert_true(number_of(o, "body_late") == 0 && cJSON_IsNull(cJSON_GetObjectItem(o, "body_late_share")));
  cJSON_Delete(o);
  plant_record_free(&r);
}

// No plan has no latency.
static void no_plans(void **state) {
  (void)state;
  PlantRecord r = record_of(1, 1, 0.3);
  cJSON *o = report_of(&r);
  assert_true(cJSON_IsNull(cJSON_GetObjectItem(o, "latency_p50")) && number_of(o, "deadline_misses") == 0);
  assert_true(cJSON_IsFalse(cJSON_GetObjectItem(o, "success")));
  cJSON_Delete(o);
  plant_record_free(&r);
}

static void columns(void **state) {
  (void)state;
  char path[] = "/tmp/sinew-record-XXXXXX", line[200];
  const int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  PlantRecord r = record_of(1, 0.5, 0.3);
  double rows[8] = {0}, others[8] = {0, 0, 0, 0, 0, 0, 0, -0.25};
  const PlantPlan from = {.step = 0.1, .steps = 4, .ctrl = rows};
  const PlantPlan to = {.start = 0.2, .step = 0.1, .steps = 4, .lead = 3, .ctrl = others};
  plant_record_handover(&r, &from, &to, 0.4, 1, 2);
  assert_true(plant_record_write(&r, 1, 2, path));
  FILE *in = fopen(path, "r");
  assert_non_null(fgets(line, sizeof line, in));
  assert_string_equal(line, "time cost \"hand\" ctrl0 ctrl1 age jump qpos0\n");
  for (int i = 0; i < SAMPLES; ++i) {
    double x[8];
    assert_non_null(fgets(line, sizeof line, in));
    assert_int_equal(
        sscanf(line, "%lf %lf %lf %lf %lf %lf %lf %lf", x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7), 8);
    assert_true(fabs(x[0] - 0.1 * i) < 1e-9 && fabs(x[1] - 1.0 / (i + 1)) < 1e-8);
    assert_true(x[2] == (i < 7 ? 1 : 0.5) && x[3] == i && x[4] == -i);
    assert_true(fabs(x[5] - 0.1 * (i < 4 ? i : i - 2)) < 1e-9 && x[6] == (i == 4 ? 0.25 : 0) && x[7] == 10 + i);
  }
  assert_null(fgets(line, sizeof line, in));
  fclose(in);
  unlink(path);
  assert_false(plant_record_write(&r, 1, 2, "/tmp/sinew-nowhere/at/all"));
  plant_record_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(latencies), cmocka_unit_test(late_at_the_body),
                                     cmocka_unit_test(no_plans), cmocka_unit_test(columns)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
