#include "planner/task/settings.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "physics/base/number_text.h"
#include "planner/base/decimal.h"
#include "planner/base/grid.h"

_Static_assert((int)SN_SETTING_TEXT_SIZE >= (int)SN_GRID_TEXT, "a setting has room for a grid");

// The rows of settings.inc, and where each value lives in SnSettings.
typedef struct SettingRow {
  SnSettingInfo info;
  size_t offset;
} SettingRow;

static const SettingRow setting_rows[] = {
#define SN_SETTING_INT(name, value, lo, hi, live, unit, doc) \
  {{#name, SN_SETTING_TYPE_INT, value, lo, hi, NULL, NULL, live, unit, doc}, offsetof(SnSettings, name)},
#define SN_SETTING_REAL(name, value, lo, hi, live, unit, doc) \
  {{#name, SN_SETTING_TYPE_REAL, value, lo, hi, NULL, NULL, live, unit, doc}, offsetof(SnSettings, name)},
#define SN_SETTING_CHOICE(name, value, choices, live, doc) \
  {{#name, SN_SETTING_TYPE_CHOICE, value, 0, 0, choices, NULL, live, "", doc}, offsetof(SnSettings, name)},
#define SN_SETTING_TEXT(name, value, live, doc) \
  {{#name, SN_SETTING_TYPE_TEXT, 0, 0, 0, NULL, value, live, "", doc}, offsetof(SnSettings, name)},
#include "planner/task/settings.inc"
#undef SN_SETTING_INT
#undef SN_SETTING_REAL
#undef SN_SETTING_CHOICE
#undef SN_SETTING_TEXT
};

enum { SETTING_COUNT = (int)(sizeof setting_rows / sizeof setting_rows[0]) };

int sn_settings_count(void) { return SETTING_COUNT; }

const SnSettingInfo *sn_settings_info(int i) { return &setting_rows[i].info; }

int sn_settings_find(const char *name) {
  for (int i = 0; i < SETTING_COUNT; ++i)
    if (strcmp(setting_rows[i].info.name, name) == 0) return i;
  return -1;
}

void sn_settings_known(const char *wanted, SnKnownNames *known) {
  sn_known_begin(known, wanted, 0);
  for (int i = 0; i < SETTING_COUNT; ++i) sn_known_add(known, setting_rows[i].info.name);
}

SnCode sn_settings_missing(const char *name, SnError *err) {
  SnKnownNames known;
  sn_settings_known(name, &known);
  return sn_fail(err, SN_ERR_NOT_FOUND, "there is no setting '%.64s'%s", name, sn_known_near(&known));
}

// The value of a text.
static char *text_of(SnSettings *s, int i) { return (char *)s + setting_rows[i].offset; }
static const char *read_text(const SnSettings *s, int i) { return (const char *)s + setting_rows[i].offset; }

static bool is_text(int i) { return setting_rows[i].info.type == SN_SETTING_TYPE_TEXT; }

static void store(SnSettings *s, int i, double value) {
  char *p = (char *)s + setting_rows[i].offset;
  if (setting_rows[i].info.type == SN_SETTING_TYPE_REAL) {
    memcpy(p, &value, sizeof value);
  } else {
    const int whole = (int)value;
    memcpy(p, &whole, sizeof whole);
  }
}

double sn_settings_get(const SnSettings *s, int i) {
  const char *p = (const char *)s + setting_rows[i].offset;
  if (is_text(i)) return 0;
  if (setting_rows[i].info.type == SN_SETTING_TYPE_REAL) {
    double value;
    memcpy(&value, p, sizeof value);
    return value;
  }
  int whole;
  memcpy(&whole, p, sizeof whole);
  return whole;
}

SnSettings sn_default_settings(void) {
  SnSettings s;
  memset(&s, 0, sizeof s);
  for (int i = 0; i < SETTING_COUNT; ++i) {
    const SnSettingInfo *info = &setting_rows[i].info;
    if (info->text)
      snprintf(text_of(&s, i), SN_SETTING_TEXT_SIZE, "%s", info->text);
    else
      store(&s, i, info->value);
  }
  return s;
}

const char *sn_settings_choice_name(int i, int value, char *text, int size) {
  const char *c = setting_rows[i].info.choices;
  text[0] = 0;
  if (!c || value < 0) return text;
  for (; value > 0 && *c; --value) {
    c += strcspn(c, "|");
    c += *c == '|';
  }
  snprintf(text, (size_t)size, "%.*s", (int)strcspn(c, "|"), c);
  return text;
}

int sn_settings_choice_index(int i, const char *name) {
  char text[64];
  for (int k = 0; sn_settings_choice_name(i, k, text, sizeof text)[0]; ++k)
    if (strcmp(text, name) == 0) return k;
  return -1;
}

// Appends why value is not allowed for setting i to text, as a line; false when it is allowed.
static bool complain(int i, double value, char *text, size_t size) {
  const SnSettingInfo *info = &setting_rows[i].info;
  const size_t used = strlen(text);
  const char *gap = used ? "\n" : "";
  char name[64];
  if (info->type == SN_SETTING_TYPE_CHOICE) {
    if (value == floor(value) && value >= 0 && value < 64 &&
        sn_settings_choice_name(i, (int)value, name, sizeof name)[0])
      return false;
    snprintf(text + used, size - used, "%s%s: value %g is unknown, allowed is %s", gap, info->name, value,
             info->choices);
    return true;
  }
  const bool whole = info->type == SN_SETTING_TYPE_REAL || value == floor(value);
  if (whole && value >= info->lo && value <= info->hi) return false;  // false for NaN
  snprintf(text + used, size - used, "%s%s: %s is out of bounds, allowed is %s%s to %s", gap, info->name,
           sn_number_text(value).text, info->type == SN_SETTING_TYPE_INT ? "a whole number from " : "",
           sn_number_text(info->lo).text, sn_number_text(info->hi).text);
  return true;
}

SnCode sn_settings_set(SnSettings *s, int i, double value, SnError *err) {
  char text[512] = "";
  if (is_text(i))
    return sn_fail(err, SN_ERR_ARGUMENT, "%s: a text is wanted, not %g", setting_rows[i].info.name, value);
  if (complain(i, value, text, sizeof text)) return sn_fail(err, SN_ERR_ARGUMENT, "%s", text);
  store(s, i, value);
  return SN_OK;
}

static SnCode set_text(SnSettings *s, int i, const char *value, SnError *err) {
  if (strlen(value) >= SN_SETTING_TEXT_SIZE)
    return sn_fail(err, SN_ERR_ARGUMENT, "%s: %zu characters, allowed are %d", setting_rows[i].info.name, strlen(value),
                   SN_SETTING_TEXT_SIZE - 1);
  strcpy(text_of(s, i), value);
  return SN_OK;
}

SnCode sn_settings_set_name(SnSettings *s, int i, const char *value, SnError *err) {
  const SnSettingInfo *info = &setting_rows[i].info;
  if (is_text(i)) return set_text(s, i, value, err);
  if (info->type != SN_SETTING_TYPE_CHOICE)
    return sn_fail(err, SN_ERR_ARGUMENT, "%s: a number is wanted, not '%s'", info->name, value);
  const int k = sn_settings_choice_index(i, value);
  if (k >= 0) {
    store(s, i, k);
    return SN_OK;
  }
  SnKnownNames known;
  sn_known_begin(&known, value, 0);
  sn_known_add_choices(&known, info->choices);
  return sn_fail(err, SN_ERR_ARGUMENT, "%s: '%s' is unknown, allowed is %s%s", info->name, value, info->choices,
                 sn_known_near(&known));
}

SnCode sn_settings_assign(SnSettings *s, const char *assignment, SnError *err) {
  char name[64];
  const size_t n = strcspn(assignment, "=");
  if (assignment[n] != '=') return sn_fail(err, SN_ERR_ARGUMENT, "setting '%.64s': expected name=value", assignment);
  snprintf(name, sizeof name, "%.*s", n < sizeof name ? (int)n : (int)sizeof name, assignment);
  const int i = n < sizeof name ? sn_settings_find(name) : -1;
  if (i < 0) return sn_settings_missing(name, err);
  const char *text = assignment + n + 1;
  if (is_text(i) || setting_rows[i].info.choices) return sn_settings_set_name(s, i, text, err);
  char *end;
  const double value = sn_decimal_read(text, &end);
  if (end == text || *end) return sn_fail(err, SN_ERR_ARGUMENT, "%s: '%.64s' is not a number", name, text);
  return sn_settings_set(s, i, value, err);
}

const char *sn_settings_text(const SnSettings *s, int i, char *text, int size) {
  const double value = sn_settings_get(s, i);
  if (setting_rows[i].info.type == SN_SETTING_TYPE_CHOICE) return sn_settings_choice_name(i, (int)value, text, size);
  if (setting_rows[i].info.type == SN_SETTING_TYPE_REAL) return sn_decimal_write(value, text, (size_t)size);
  if (is_text(i))
    snprintf(text, (size_t)size, "%s", read_text(s, i));
  else
    snprintf(text, (size_t)size, "%d", (int)value);
  return text;
}

int sn_settings_iterations(const SnSettings *s) {
  switch (s->planner) {
    case SN_PLANNER_ADAM:
      return s->adam_iterations;
    case SN_PLANNER_ILQG:
      return s->ilqg_iterations;
    case SN_PLANNER_LBFGS:
      return s->lbfgs_iterations;
    case SN_PLANNER_HYBRID:  // a round is one of candidates, then those of Adam
      return s->iterations * (1 + s->hybrid_gradients);
    default:
      return s->iterations;
  }
}

bool sn_settings_same(const SnSettings *a, const SnSettings *b, int i) {
  return is_text(i) ? strcmp(read_text(a, i), read_text(b, i)) == 0 : sn_settings_get(a, i) == sn_settings_get(b, i);
}

SnCode sn_settings_validate(const SnSettings *s, SnError *err) {
  char text[6000] = "";
  for (int i = 0; i < SETTING_COUNT; ++i)
    if (!is_text(i)) complain(i, sn_settings_get(s, i), text, sizeof text);
  if (s->knots > s->horizon && s->horizon >= 2) {
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%sknots: %d is more than the %d steps of the horizon", used ? "\n" : "",
             s->knots, s->horizon);
  }
  if (s->adam_knots == 1 || (s->adam_knots > s->horizon && s->horizon >= 2)) {
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%sadam_knots: %d, allowed is 0, or 2 to the %d steps of the horizon",
             used ? "\n" : "", s->adam_knots, s->horizon);
  }
  SnGrid grid;
  SnError why = {0};
  if (sn_grid_parse(s->grid, s->horizon, &grid, &why) != SN_OK) {
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%s", used ? "\n" : "", why.text);
  }
  return text[0] ? sn_fail(err, SN_ERR_ARGUMENT, "%s", text) : SN_OK;
}

SnCode sn_settings_may_change(const SnSettings *now, const SnSettings *next, SnError *err) {
  const SnCode code = sn_settings_validate(next, err);
  if (code != SN_OK) return code;
  char text[3000] = "";
  for (int i = 0; i < SETTING_COUNT; ++i) {
    const size_t used = strlen(text);
    if (!setting_rows[i].info.live && !sn_settings_same(now, next, i))
      snprintf(text + used, sizeof text - used, "%s%s: cannot change while the planner runs", used ? "\n" : "",
               setting_rows[i].info.name);
  }
  return text[0] ? sn_fail(err, SN_ERR_STATE, "%s", text) : SN_OK;
}
