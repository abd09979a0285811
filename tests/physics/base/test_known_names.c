// Names that there are, and which of them is meant by one that was misspelt.
#include "physics/base/known_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka needs what stands above.
#include <cmocka.h>

// What is said of a name where there are these, joined by '|'.
static const struct {
  const char *wanted, *names, *text;
} cases[] = {
    // a letter is missing, is one too many, two are swapped
    {"fingertp", "palm|fingertip|wrist", "; did you mean 'fingertip'?"},
    {"fingerrtip", "palm|fingertip|wrist", "; did you mean 'fingertip'?"},
    {"weigth", "name|width|weight", "; did you mean 'weight' or 'width'?"},
    {"ihnge", "hinge|slide", "; did you mean 'hinge'?"},
    // one stands in the other; capitals do not count
    {"adams", "sampling|adam|ilqg", "; did you mean 'adam'?"},
    {"Velocity", "angular_velocity|position|joint_velocity", "; did you mean 'joint_velocity' or 'angular_velocity'?"},
    {"Palm", "palm|plum", "; did you mean 'palm'?"},
    // the part behind the last '/' counts, then the whole
    {"leff", "hand/left|arm", "; did you mean 'hand/left'?"},
    {"left/fingr", "right/finger|left/finger", "; did you mean 'left/finger' or 'right/finger'?"},
    // three at most, the nearest first, else in their order
    {"abc1", "abc5|abc4|abc3|abc2", "; did you mean 'abc5' or 'abc4' or 'abc3'?"},
    {"abcdef", "xbydef|abcxef|abcdefg|abcde", "; did you mean 'abcxef' or 'abcdefg' or 'abcde'?"},
    // too much is wrong, or too little is there
    {"xyzxyz", "xyabca|abcxab", ""},
    {"abcdef", "abcxyz|xbxdxf", ""},
    {"ab", "abc|ax|b|ba", ""},
    {"", "a|b", ""},
    {"left/", "left|left/a", ""},
    {"palm", "", ""},
};

static void meant(void **state) {
  (void)state;
  SnKnownNames known;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    sn_known_begin(&known, cases[i].wanted, 0);
    sn_known_add_choices(&known, cases[i].names);
    assert_string_equal(sn_known_near(&known), cases[i].text);
    assert_string_equal(sn_known_near(&known), cases[i].text);  // it may be asked for again
  }
}

// Names of any length do no harm: those that are too long are never meant.
static void lengths(void **state) {
  (void)state;
  static char longest[SN_KNOWN_LENGTH], longer[SN_KNOWN_LENGTH + 1];
  SnKnownNames known;
  memset(longest, 'a', sizeof longest - 1);
  memset(longer, 'a', sizeof longer - 1);
  sn_known_begin(&known, longest, 0);
  sn_known_add(&known, longer);
  assert_string_equal(sn_known_near(&known), "");
  for (int k = 0; k < 4; ++k) sn_known_add(&known, longest);
  assert_int_equal(strlen(sn_known_near(&known)), 3 * strlen(longest) + strlen("; did you mean '' or '' or ''?"));
  sn_known_begin(&known, longer, 0);
  sn_known_add(&known, longest);
  assert_string_equal(sn_known_near(&known), "");
  sn_known_begin(&known, NULL, 0);
  sn_known_add(&known, "palm");
  assert_string_equal(sn_known_near(&known), "");
}

// The list has all names that fit, as a whole.
static void lists(void **state) {
  (void)state;
  SnKnownNames known;
  sn_known_begin(&known, NULL, 0);
  assert_string_equal(sn_known_list(&known), "none");
  sn_known_add(&known, "");
  assert_string_equal(sn_known_list(&known), "none");
  sn_known_add_choices(&known, "one|two");
  sn_known_add(&known, "three");
  assert_string_equal(sn_known_list(&known), "one, two, three");
  for (size_t most = 6; most < 22; ++most) {
    sn_known_begin(&known, NULL, most);
    sn_known_add_choices(&known, "one|two|three|four");
    const char *text = most < 9 ? "..." : most < 14 ? "one, ..." : most < 21 ? "one, two, ..." : "one, two, three, ...";
    assert_string_equal(sn_known_list(&known), text);
    assert_true(strlen(sn_known_list(&known)) < most);
  }
  sn_known_begin(&known, NULL, 0);
  for (int k = 0; k < 1000; ++k) sn_known_add(&known, "name");
  const size_t n = strlen(sn_known_list(&known));
  assert_in_range(n, SN_KNOWN_LIST - 12, SN_KNOWN_LIST - 1);
  assert_string_equal(sn_known_list(&known) + n - 9, "name, ...");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(meant), cmocka_unit_test(lengths), cmocka_unit_test(lists)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
