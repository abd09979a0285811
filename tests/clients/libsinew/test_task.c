// Tasks of libsinew.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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
  sinew_task_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_mistakes_have_places),
                                     cmocka_unit_test(test_misuse)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
