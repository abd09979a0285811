// Messages as JSON and as name=value text: what goes in comes out, what does not fit is named, nothing leaks (the
// address sanitizer's build watches that).
#include "clients/libsinew_client/reflect.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs what stands above.
#include <cmocka.h>

#include "proto/sinew.pb-c.h"

static char error[400];

static bool fill(ProtobufCMessage *message, const char *text) {
  cJSON *json = cJSON_Parse(text);
  assert_non_null(json);
  const bool ok = sn_message_from_json(message, json, error, sizeof error);
  cJSON_Delete(json);
  return ok;
}

static void expect_json(const ProtobufCMessage *message, const char *wanted) {
  cJSON *json = sn_message_to_json(message);
  char *text = cJSON_PrintUnformatted(json);
  assert_string_equal(text, wanted);
  cJSON_free(text);
  cJSON_Delete(json);
}

static void test_round_trip(void **state) {
  (void)state;
  Sinew__V1__PlanRequest r = SINEW__V1__PLAN_REQUEST__INIT;
  const char *text =
      "{\"session\":7,\"state\":{\"time\":0.5,\"qpos\":[1,2.5],\"qvel\":[],\"act\":[\"nan\"],\"mocap\":[]},"
      "\"deadline\":\"inf\",\"want_states\":true,\"iterations\":3}";
  assert_true(fill(&r.base, text));
  assert_int_equal(r.state->n_qpos, 2);
  assert_int_equal(r.has_iterations_case, SINEW__V1__PLAN_REQUEST__HAS_ITERATIONS_ITERATIONS);
  assert_int_equal(r.has_candidates_case, 0);
  assert_true(isnan(r.state->act[0]) && isinf(r.deadline));
  r.state->act[0] = 0.25;
  r.deadline = 0.1;
  expect_json(&r.base,
              "{\"session\":7,\"state\":{\"time\":0.5,\"qpos\":[1,2.5],\"qvel\":[],\"act\":[0.25],\"mocap\":[],"
              "\"history\":[]},\"deadline\":0.1,\"want_states\":true,\"iterations\":3}");
  sn_message_clear(&r.base);
}

// What JSON has no number for is read from the words that a person would write.
static void test_infinities_are_read(void **state) {
  (void)state;
  Sinew__V1__EvaluateRequest r = SINEW__V1__EVALUATE_REQUEST__INIT;
  assert_true(fill(&r.base, "{\"ctrl\":[\"inf\",\"-inf\",\"nan\",-0.5]}"));
  assert_int_equal(r.n_ctrl, 4);
  assert_true(r.ctrl[0] == INFINITY && r.ctrl[1] == -INFINITY && isnan(r.ctrl[2]) && r.ctrl[3] == -0.5);
  sn_message_clear(&r.base);
}

// JSON has no infinities and no NaN: null, everywhere.
static void test_null_for_no_number(void **state) {
  (void)state;
  double x[] = {NAN, 1, -INFINITY};
  Sinew__V1__EvaluateRequest r = SINEW__V1__EVALUATE_REQUEST__INIT;
  r.n_ctrl = 3;
  r.ctrl = x;
  expect_json(&r.base, "{\"session\":0,\"ctrl\":[null,1,null],\"want_states\":false,\"want_gradient\":false}");
  Sinew__V1__MeasureValue m = SINEW__V1__MEASURE_VALUE__INIT;
  m.name = (char *)"far";
  m.value = INFINITY;
  expect_json(&m.base, "{\"name\":\"far\",\"value\":null,\"met\":false}");
}

static void test_null_is_absent(void **state) {
  (void)state;
  Sinew__V1__PlanRequest r = SINEW__V1__PLAN_REQUEST__INIT;
  assert_true(fill(&r.base, "{\"state\":{\"time\":1,\"qpos\":[1],\"act\":null},\"applied\":null,\"iterations\":null}"));
  assert_int_equal(r.state->n_act, 0);
  assert_null(r.applied);
  assert_int_equal(r.has_iterations_case, 0);
  sn_message_clear(&r.base);
}

// A name that comes twice replaces what it held before; clearing twice is harmless.
static void test_twice(void **state) {
  (void)state;
  Sinew__V1__PlanRequest r = SINEW__V1__PLAN_REQUEST__INIT;
  assert_true(fill(&r.base, "{\"state\":{\"qpos\":[1,2],\"qpos\":[3]},\"state\":{\"qpos\":[4]}}"));
  assert_int_equal(r.state->n_qpos, 1);
  assert_true(r.state->qpos[0] == 4);
  sn_message_clear(&r.base);
  assert_null(r.state);
  sn_message_clear(&r.base);
  Sinew__V1__PlannerSettings s = SINEW__V1__PLANNER_SETTINGS__INIT;
  assert_true(sn_message_set(&s.base, "noise=white", error, sizeof error));
  assert_true(sn_message_set(&s.base, "noise=pink", error, sizeof error));
  assert_string_equal(s.noise, "pink");
  sn_message_clear(&s.base);
}

static void test_misfits(void **state) {
  (void)state;
  const struct {
    const char *json, *said;
  } misfit[] = {
      {"{\"sesion\":1}", "unknown field 'sesion'; there are session, state"},
      {"{\"session\":-1}", "session: expected a whole number"},
      {"{\"session\":1.5}", "session: expected a whole number"},
      {"{\"session\":1e30}", "session: expected a whole number from 0 to 2^53"},
      {"{\"state\":[]}", "state: expected an object"},
      {"{\"state\":{\"qpos\":1}}", "qpos: expected an array"},
      {"{\"state\":{\"qpos\":[1,null]}}", "qpos: expected a number"},
      {"{\"state\":{\"qpos\":[1,\"x\"]}}", "qpos: expected a number"},
      {"{\"want_states\":1}", "want_states: expected true or false"},
      {"{\"iterations\":4294967296}", "iterations: expected a whole number"},
  };
  for (size_t i = 0; i < sizeof misfit / sizeof *misfit; ++i) {
    Sinew__V1__PlanRequest r = SINEW__V1__PLAN_REQUEST__INIT;
    assert_false(fill(&r.base, misfit[i].json));
    assert_non_null(strstr(error, misfit[i].said));
    sn_message_clear(&r.base);
  }
}

// What a failure leaves inside a oneof and in an array of messages is freed too.
static void test_failure_leaves_nothing(void **state) {
  (void)state;
  Sinew__V1__Request r = SINEW__V1__REQUEST__INIT;
  assert_false(fill(&r.base, "{\"plan\":{\"state\":{\"qpos\":[1,2],\"time\":\"x\"}}}"));
  sn_message_clear(&r.base);
  assert_false(fill(&r.base, "{\"set_config\":{\"terms\":[{\"name\":\"a\",\"target\":[1]},{\"name\":2}]}}"));
  sn_message_clear(&r.base);
  assert_null(r.set_config);
}

static void test_set(void **state) {
  (void)state;
  Sinew__V1__TermSettings t = SINEW__V1__TERM_SETTINGS__INIT;
  assert_true(sn_message_set(&t.base, "weight=0.5", error, sizeof error));
  assert_true(sn_message_set(&t.base, "target=[1, -2]", error, sizeof error));
  assert_true(sn_message_set(&t.base, "own_target=false", error, sizeof error));
  assert_true(t.weight == 0.5 && t.n_target == 2 && t.target[1] == -2 && !t.own_target);
  sn_message_clear(&t.base);
  const char *const misfit[] = {"weight", "=1", "weight=", "weight=1x", "weight=1 2", "weight=heavy", "size=1"};
  for (size_t i = 0; i < sizeof misfit / sizeof *misfit; ++i) {
    assert_false(sn_message_set(&t.base, misfit[i], error, sizeof error));
    assert_true(error[0]);
  }
  sn_message_clear(&t.base);
}

// For people: large numbers keep their digits, long arrays are shortened.
static void test_print(void **state) {
  (void)state;
  double ctrl[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  Sinew__V1__Plan plan = SINEW__V1__PLAN__INIT;
  plan.session = 12345678901234567u;
  plan.steps = 4000000000u;
  plan.status = SINEW__V1__PLAN__STATUS__WARM_START;
  plan.n_ctrl = 9;
  plan.ctrl = ctrl;
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  sn_message_print(out, &plan.base, 2);
  fclose(out);
  assert_non_null(strstr(text, "  session: 12345678901234567\n"));
  assert_non_null(strstr(text, "  steps: 4000000000\n"));
  assert_non_null(strstr(text, "  status: WARM_START\n"));
  assert_non_null(strstr(text, "  ctrl: 1 2 3 4 5 6 7 8 ... (9)\n"));
  assert_null(strstr(text, "states"));
  free(text);
}

// For people too: names that are commands to a terminal are not, and a field is a line.
static void test_print_escapes(void **state) {
  (void)state;
  Sinew__V1__ModelSummary model = SINEW__V1__MODEL_SUMMARY__INIT;
  model.name = (char *)"\x1b[2J%n\nloaded: true";
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  sn_message_print(out, &model.base, 0);
  fclose(out);
  assert_string_equal(text, "name: \\x1b[2J%n\\x0aloaded: true\nloaded: false\nsessions: 0\n");
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_infinities_are_read),
      cmocka_unit_test(test_null_is_absent),
      cmocka_unit_test(test_twice),
      cmocka_unit_test(test_misfits),
      cmocka_unit_test(test_failure_leaves_nothing),
      cmocka_unit_test(test_set),
      cmocka_unit_test(test_print),
      cmocka_unit_test(test_null_for_no_number),
      cmocka_unit_test(test_print_escapes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
