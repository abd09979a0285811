// The table of settings: defaults, bounds, names, what may change live.
#include <stdio.h>

#include "planner/task/settings.h"
#include "tests/support/oracle.h"

static void defaults_are_valid(void **state) {
  (void)state;
  SnError err = {0};
  const SnSettings s = sn_default_settings();
  assert_int_equal(sn_settings_validate(&s, &err), SN_OK);
  assert_int_equal(s.horizon, 256);
  for (int i = 0; i < sn_settings_count(); ++i) {
    const SnSettingInfo *info = sn_settings_info(i);
    assert_true(sn_settings_get(&s, i) == info->value);
    assert_true((info->type == SN_SETTING_TYPE_TEXT) == (info->text != NULL));
    assert_int_equal(sn_settings_find(info->name), i);
    assert_true(info->doc[0] != 0);
  }
  assert_int_equal(sn_settings_find("nothing"), -1);
}

static void bounds_and_names(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings s = sn_default_settings();
  const int candidates = sn_settings_find("candidates"), noise = sn_settings_find("noise"),
            scale = sn_settings_find("noise_scale");
  assert_int_equal(sn_settings_set(&s, candidates, 0, &err), SN_ERR_ARGUMENT);
  assert_string_equal(err.text, "candidates: 0 is out of bounds, allowed is a whole number from 1 to 65536");
  assert_int_equal(sn_settings_assign(&s, "adam_beta2=1", &err), SN_ERR_ARGUMENT);
  assert_string_equal(err.text, "adam_beta2: 1 is out of bounds, allowed is 0 to 0.9999999");
  assert_int_equal(sn_settings_set(&s, candidates, 1.5, &err), SN_ERR_ARGUMENT);
  assert_int_equal(sn_settings_set(&s, scale, (double)NAN, &err), SN_ERR_ARGUMENT);
  assert_int_equal(sn_settings_set(&s, candidates, 100, &err), SN_OK);
  assert_int_equal(s.candidates, 100);
  assert_int_equal(sn_settings_set_name(&s, noise, "brown", &err), SN_OK);
  assert_int_equal(s.noise, SN_NOISE_BROWN);
  assert_int_equal(sn_settings_set_name(&s, noise, "blue", &err), SN_ERR_ARGUMENT);
  assert_string_equal(err.text, "noise: 'blue' is unknown, allowed is white|pink|brown");
  assert_int_equal(sn_settings_set_name(&s, candidates, "many", &err), SN_ERR_ARGUMENT);
  const int grid = sn_settings_find("grid");
  char text[32], longest[SN_SETTING_TEXT_SIZE + 1];
  memset(longest, '1', sizeof longest);
  longest[SN_SETTING_TEXT_SIZE] = 0;
  assert_int_equal(sn_settings_set(&s, grid, 3, &err), SN_ERR_ARGUMENT);
  assert_string_equal(err.text, "grid: a text is wanted, not 3");
  assert_int_equal(sn_settings_set_name(&s, grid, longest, &err), SN_ERR_ARGUMENT);
  assert_string_equal(err.text, "grid: 64 characters, allowed are 63");
  assert_int_equal(sn_settings_set_name(&s, grid, longest + 1, &err), SN_OK);
  assert_int_equal(strlen(s.grid), SN_SETTING_TEXT_SIZE - 1);
  assert_string_equal(sn_settings_choice_name(noise, 1, text, sizeof text), "pink");
  assert_string_equal(sn_settings_choice_name(noise, 3, text, sizeof text), "");
  assert_int_equal(sn_settings_set(&s, noise, 3, &err), SN_ERR_ARGUMENT);
}

static SnCode assign(SnSettings *s, const char *assignment) { return sn_settings_assign(s, assignment, NULL); }

// Assignments as a shell has them; every setting is read back from the text that is written of it.
static void assignments(void **state) {
  (void)state;
  char text[SN_SETTING_TEXT_SIZE], line[160];
  SnError err = {0};
  SnSettings s = sn_default_settings(), again = s;
  assert_int_equal(assign(&s, "grid=64x1,96x2"), SN_OK);
  assert_int_equal(assign(&s, "adam_rate=0.02"), SN_OK);
  assert_true(s.adam_rate == 0.02);
  assert_int_equal(assign(&s, "noise=brown"), SN_OK);
  assert_int_equal(s.noise, SN_NOISE_BROWN);
  assert_int_equal(assign(&s, "candidates=1000"), SN_OK);
  assert_int_equal(s.candidates, 1000);
  s.noise_scale = 1.0 / 3;
  static const char *const wrong[] = {"adam_rate",  "adam_rate=", "adam_rate=1 ", "candidates=1.5",
                                      "noise=blue", "noise=1",    "=1",           "adam_rate=nan"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    SnSettings t = s;
    assert_int_not_equal(assign(&t, wrong[i]), SN_OK);
    assert_memory_equal(&t, &s, sizeof s);
  }
  assert_int_equal(sn_settings_assign(&s, "nothing=1", &err), SN_ERR_NOT_FOUND);
  assert_string_equal(err.text, "there is no setting 'nothing'");
  assert_int_equal(sn_settings_assign(&s, "horizn=1", &err), SN_ERR_NOT_FOUND);
  assert_string_equal(err.text, "there is no setting 'horizn'; did you mean 'horizon'?");
  assert_int_equal(sn_settings_assign(&s, "noise=pinks", &err), SN_ERR_ARGUMENT);
  assert_string_equal(err.text, "noise: 'pinks' is unknown, allowed is white|pink|brown; did you mean 'pink'?");
  for (int i = 0; i < sn_settings_count(); ++i) {
    snprintf(line, sizeof line, "%s=%s", sn_settings_info(i)->name, sn_settings_text(&s, i, text, sizeof text));
    assert_int_equal(assign(&again, line), SN_OK);
    assert_true(sn_settings_same(&again, &s, i));
  }
  assert_string_equal(again.grid, "64x1,96x2");
  assert_string_equal(sn_settings_text(&s, sn_settings_find("candidates"), text, sizeof text), "1000");
}

// All that is wrong is listed.
static void whole_is_validated(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings s = sn_default_settings();
  s.candidates = 0;
  s.noise = 17;
  s.noise_scale = -1;
  s.knots = 300;
  strcpy(s.grid, "64x1");
  assert_int_equal(sn_settings_validate(&s, &err), SN_ERR_ARGUMENT);
  assert_non_null(strstr(err.text, "candidates: 0"));
  assert_non_null(strstr(err.text, "noise: value 17"));
  assert_non_null(strstr(err.text, "grid: '64x1' lasts 64 base steps, allowed is the horizon, 256"));
  assert_non_null(strstr(err.text, "noise_scale: -1"));
  assert_non_null(strstr(err.text, "knots: 300 is more than the 256 steps"));
  s = sn_default_settings();
  s.horizon = 2048;
  s.knots = 513;  // noise is made without a pause: its time is bounded
  assert_int_equal(sn_settings_validate(&s, &err), SN_ERR_ARGUMENT);
  assert_non_null(strstr(err.text, "knots: 513 is out of bounds, allowed is a whole number from 2 to 512"));
}

static void live(void **state) {
  (void)state;
  SnError err = {0};
  const SnSettings now = sn_default_settings();
  SnSettings next = now;
  next.candidates = 10;
  next.noise = SN_NOISE_WHITE;
  assert_int_equal(sn_settings_may_change(&now, &next, &err), SN_OK);
  next.horizon = 100;
  assert_int_equal(sn_settings_may_change(&now, &next, &err), SN_ERR_STATE);
  assert_string_equal(err.text, "horizon: cannot change while the planner runs");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(defaults_are_valid), cmocka_unit_test(bounds_and_names),
                                     cmocka_unit_test(assignments), cmocka_unit_test(whole_is_validated),
                                     cmocka_unit_test(live)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
