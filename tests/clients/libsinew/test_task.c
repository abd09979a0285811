// Tasks of libsinew.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "clients/libsinew/task_private.h"
#include "tests/clients/libsinew/body_fixture.h"

static void test_names(void **state) {
  (void)state;
  SinewError err;
  SinewTask *task = sinew_task_load(SN_TEST_SOURCE_DIR "/../planner/tasks/arm_reach.yaml", &err);
  assert_non_null(task);
  assert_int_equal(err.status, SINEW_OK);
  assert_string_equal(sinew_task_name(task), "arm_reach");
  assert_string_equal(sinew_task_model(task), "arm_reach.xml");
  sinew_task_free(task);
  task = test_task(body_task);
  assert_string_equal(sinew_task_name(task), "body");
  sinew_task_free(task);
}

// Measures in their order; the simulated robot's contacts, NaN where the task says nothing.
static void test_measures_and_plant(void **state) {
  (void)state;
  static const char text[] =
      "model: a.xml\n"
      "plant: {solimp: [0, 0.95, 0.001, 0.5, 2]}\n"
      "terms:\n  - {name: still, residual: {joint_velocity: all}, weight: 1}\n"
      "success:\n  - {name: slow, term: still, below: 0.5, during: 0.2}\n  - {name: end, term: still, below: 3}\n";
  SinewTask *task = test_task(text);
  const SinewMeasure *slow = sinew_task_measure(task, 0), *end = sinew_task_measure(task, 1);
  assert_string_equal(slow->name, "slow");
  assert_true(slow->below == 0.5 && slow->during == 0.2);
  assert_string_equal(end->name, "end");
  assert_true(end->below == 3 && end->during == 0);
  assert_null(sinew_task_measure(task, 2));
  assert_null(sinew_task_measure(task, -1));
  const SinewTaskPlant *plant = sinew_task_plant(task);
  assert_true(isnan(plant->solref[0]) && isnan(plant->solref[1]));
  assert_true(plant->solimp[0] == 0 && plant->solimp[1] == 0.95 && plant->solimp[4] == 2);
  sinew_task_free(task);
}

// The text of a task is all of it, also where it begins from another one beside it.
static void test_text(void **state) {
  (void)state;
  static const char text[] = "base: arm_reach\nplan: 0.25\n";
  SinewError err;
  SinewTask *task = test_task(body_task);
  assert_string_equal(sinew_task_text(task), body_task);
  sinew_task_free(task);
  task = sinew_task_parse(text, sizeof text - 1, SN_TEST_SOURCE_DIR "/../planner/tasks/mine.yaml", &err);
  test_accepted(err.status, &err);
  assert_string_equal(sinew_task_name(task), "mine");
  assert_string_equal(sinew_task_model(task), "arm_reach.xml");
  SinewTask *same = sinew_task_parse(sinew_task_text(task), strlen(sinew_task_text(task)), "nowhere/same.yaml", &err);
  test_accepted(err.status, &err);
  assert_true(same->task->plan_initial == 0.25 && same->task->nterm == task->task->nterm);
  assert_string_equal(sinew_task_text(same), sinew_task_text(task));
  assert_null(strstr(sinew_task_text(task), "base:"));
  assert_string_equal(sinew_task_text(NULL), "");
  sinew_task_free(same);
  sinew_task_free(task);
  assert_null(sinew_task_parse(text, sizeof text - 1, "mine.yaml", &err));
  test_refused(err.status, &err, SINEW_ERR_FORMAT, "mine.yaml:1:7: base: arm_reach.yaml: No such file");
}

static void test_mistakes_have_places(void **state) {
  (void)state;
  static const char text[] = "model: a.xml\nnothing: 1\nterms: []\n";
  SinewError err;
  assert_null(sinew_task_parse(text, sizeof text - 1, "some.yaml", &err));
  test_refused(err.status, &err, SINEW_ERR_FORMAT, "some.yaml:2:1");
  assert_null(sinew_task_load("/nowhere/at/all.yaml", &err));
  test_refused(err.status, &err, SINEW_ERR_NOT_FOUND, "/nowhere/at/all.yaml");
}

static void test_misuse(void **state) {
  (void)state;
  SinewError err;
  assert_null(sinew_task_load(NULL, &err));
  test_refused(err.status, &err, SINEW_ERR_ARGUMENT, "path is NULL");
  assert_null(sinew_task_parse(NULL, 3, "a", &err));
  test_refused(err.status, &err, SINEW_ERR_ARGUMENT, "text is NULL");
  assert_null(sinew_task_parse("a", 1, NULL, &err));
  test_refused(err.status, &err, SINEW_ERR_ARGUMENT, "name is NULL");
  assert_null(sinew_task_parse("a", 1, "a", NULL));
  assert_null(sinew_task_parse("", 0, "empty", NULL));
  assert_string_equal(sinew_task_name(NULL), "");
  assert_string_equal(sinew_task_model(NULL), "");
  assert_null(sinew_task_measure(NULL, 0));
  assert_null(sinew_task_plant(NULL));
  sinew_task_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_text),
                                     cmocka_unit_test(test_measures_and_plant),
                                     cmocka_unit_test(test_mistakes_have_places), cmocka_unit_test(test_misuse)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
