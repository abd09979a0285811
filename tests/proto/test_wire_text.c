// Texts of packed messages: whatever stands there, clients that take UTF-8 alone can read the message.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/sinew.pb-c.h"
#include "proto/wire_text.h"

static void test_characters(void **state) {
  (void)state;
  static const struct {
    const char *text;
    size_t length;
  } x[] = {{"a", 1},
           {"\n", 1},
           {"\xc3\xa4", 2},
           {"\xe2\x82\xac", 3},
           {"\xed\x9f\xbf", 3},
           {"\xf0\x9f\xa6\xbe", 4},
           {"\xf4\x8f\xbf\xbf", 4},
           {"\xff", 0},
           {"\xa4", 0},
           {"\xc3", 0},
           {"\xc3z", 0},
           {"\xe2\x82", 0},
           {"\xc0\xaf", 0},
           {"\xe0\x9f\xbf", 0},
           {"\xed\xa0\x80", 0},
           {"\xf0\x8f\xbf\xbf", 0},
           {"\xf4\x90\x80\x80", 0},
           {"\xf5\x80\x80\x80", 0}};
  for (size_t i = 0; i < sizeof x / sizeof *x; i++)
    if (sn_utf8_length((const unsigned char *)x[i].text, strlen(x[i].text)) != x[i].length) fail_msg("text %zu", i);
  assert_int_equal(sn_utf8_length((const unsigned char *)"\xe2\x82\xac", 2), 0);
  assert_int_equal(sn_utf8_length((const unsigned char *)"a", 0), 0);
}

// Names of a model, within messages within the reply. Numbers and what was right stay as they are, byte for byte.
static void test_names(void **state) {
  (void)state;
  static unsigned char bytes[1024], before[1024];
  Sinew__V1__Quantity slider = SINEW__V1__QUANTITY__INIT, pole = SINEW__V1__QUANTITY__INIT;
  Sinew__V1__Quantity *qpos[] = {&slider, &pole};
  Sinew__V1__ModelDescription model = SINEW__V1__MODEL_DESCRIPTION__INIT;
  Sinew__V1__TaskDescription task = SINEW__V1__TASK_DESCRIPTION__INIT;
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  double weights[] = {-1.7e308, 4e-320};  // with bytes that are no characters
  Sinew__V1__TermDescription term = SINEW__V1__TERM_DESCRIPTION__INIT, *terms[] = {&term};
  reply.id = UINT64_MAX;
  slider.name = "sl\xeflider";
  slider.min = -1e300;
  slider.address = 300;
  pole.name = "p\xc3\xb6le";
  model.file = "/tmp/m\xe4/\xc3\xa4\xf0\x9f.xml";
  model.n_qpos = 2;
  model.qpos = qpos;
  term.n_weights = 2;
  term.weights = weights;
  term.frame = "\xff";
  term.name = "a_long_name_with_one_at_its_end\xff";
  task.model = &model;
  task.text = "two\nlines\t\xe2\x82\xac";
  task.n_terms = 1;
  task.terms = terms;
  reply.body_case = SINEW__V1__REPLY__BODY_DESCRIBE_TASK;
  reply.describe_task = &task;
  const size_t size = sinew__v1__reply__pack(&reply, bytes);
  memcpy(before, bytes, size);
  sn_wire_mend_texts(&sinew__v1__reply__descriptor, bytes, size);
  size_t changed = 0;
  for (size_t i = 0; i < size; i++) changed += bytes[i] != before[i];
  assert_int_equal(changed, 1 + 1 + 2 + 1 + 1);
  Sinew__V1__Reply *got = sinew__v1__reply__unpack(NULL, size, bytes);
  assert_non_null(got);
  const Sinew__V1__TaskDescription *t = got->describe_task;
  assert_string_equal(t->model->qpos[0]->name, "sl?lider");
  assert_string_equal(t->model->qpos[1]->name, pole.name);
  assert_string_equal(t->model->file, "/tmp/m?/\xc3\xa4??.xml");
  assert_string_equal(t->terms[0]->frame, "?");
  assert_string_equal(t->terms[0]->name, "a_long_name_with_one_at_its_end?");
  assert_string_equal(t->text, task.text);
  assert_true(got->id == UINT64_MAX && t->model->qpos[0]->min == slider.min);
  assert_memory_equal(t->terms[0]->weights, weights, sizeof weights);
  sinew__v1__reply__free_unpacked(got, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_characters), cmocka_unit_test(test_names)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
