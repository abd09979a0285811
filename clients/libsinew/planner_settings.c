// Settings of planners by their names; weights and targets of terms.
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "clients/libsinew/planner_private.h"

enum {
  SETTINGS = 0
#define SN_SETTING_INT(name, value, lo, hi, live, unit, doc) +1
#define SN_SETTING_REAL(name, value, lo, hi, live, unit, doc) +1
#define SN_SETTING_CHOICE(name, value, choices, live, doc) +1
#define SN_SETTING_TEXT(name, value, live, doc) +1
#include "planner/task/settings.inc"
#undef SN_SETTING_INT
#undef SN_SETTING_REAL
#undef SN_SETTING_CHOICE
#undef SN_SETTING_TEXT
};

static SinewSetting table[SETTINGS];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static int last_choice(const char *choices) {
  int n = 0;
  for (const char *c = choices; *c; ++c) n += *c == '|';
  return n;
}

static void fill_table(void) {
  for (int i = 0; i < SETTINGS; ++i) {
    const SnSettingInfo *info = sn_settings_info(i);
    const bool choice = info->type == SN_SETTING_TYPE_CHOICE;
    table[i] = (SinewSetting){.name = info->name,
                              .unit = info->unit,
                              .doc = info->doc,
                              .choices = info->choices,
                              .integer = info->type == SN_SETTING_TYPE_INT,
                              .live = info->live,
                              .value = info->value,
                              .lowest = choice ? 0 : info->lo,
                              .highest = choice ? last_choice(info->choices) : info->hi,
                              .text = info->text};
  }
}

const SinewSetting *sinew_setting(int i) {
  pthread_once(&table_once, fill_table);
  return i >= 0 && i < SETTINGS ? &table[i] : NULL;
}

SinewStatus sinew_planner_set(SinewPlanner *planner, const char *assignment, SinewError *err) {
  SnError why = {0};
  const SinewStatus status = api_planner_enter(planner, "sinew_planner_set", err);
  if (status != SINEW_OK) return status;
  if (!assignment)
    return api_planner_leave(planner, api_fail(err, SINEW_ERR_ARGUMENT, "sinew_planner_set: assignment is NULL"));
  SnSettings next = *sn_planner_settings(planner->planner);
  SnCode code = sn_settings_assign(&next, assignment, &why);
  if (code == SN_OK) code = sn_planner_configure(planner->planner, &next, &why);
  return api_planner_end(planner, code, &why, err);
}

static SinewStatus write_setting(const SnPlanner *planner, const char *name, char *text, size_t size, SinewError *err) {
  char value[SN_SETTING_TEXT_SIZE];
  SnError why;
  if (!name || !text) return api_fail(err, SINEW_ERR_ARGUMENT, "sinew_planner_get: %s is NULL", name ? "text" : "name");
  const int i = sn_settings_find(name);
  if (i < 0) {
    sn_settings_missing(name, &why);
    return api_hand_on(err, &why);
  }
  const size_t n = strlen(sn_settings_text(sn_planner_settings(planner), i, value, sizeof value)) + 1;
  if (size < n) return api_fail(err, SINEW_ERR_ARGUMENT, "size: %zu, the value of %s takes %zu", size, name, n);
  memcpy(text, value, n);
  return api_ok(err);
}

SinewStatus sinew_planner_get(SinewPlanner *planner, const char *name, char *text, size_t size, SinewError *err) {
  const SinewStatus status = api_planner_enter(planner, "sinew_planner_get", err);
  if (status != SINEW_OK) return status;
  return api_planner_leave(planner, write_setting(planner->planner, name, text, size, err));
}

SinewStatus sinew_planner_set_weight(SinewPlanner *planner, const char *term, double weight, double terminal,
                                     SinewError *err) {
  SnError why = {0};
  const SinewStatus status = api_planner_enter(planner, "sinew_planner_set_weight", err);
  if (status != SINEW_OK) return status;
  if (!term)
    return api_planner_leave(planner, api_fail(err, SINEW_ERR_ARGUMENT, "sinew_planner_set_weight: term is NULL"));
  return api_planner_end(planner, sn_planner_set_weight(planner->planner, term, weight, terminal, &why), &why, err);
}

SinewStatus sinew_planner_set_target(SinewPlanner *planner, const char *term, const double *value, int n,
                                     SinewError *err) {
  SnError why = {0};
  const SinewStatus status = api_planner_enter(planner, "sinew_planner_set_target", err);
  if (status != SINEW_OK) return status;
  if (!term || n < 0 || (n > 0 && !value))
    return api_planner_leave(planner, api_fail(err, SINEW_ERR_ARGUMENT, "sinew_planner_set_target: %s",
                                               !term   ? "term is NULL"
                                               : n < 0 ? "n is negative"
                                                       : "value is NULL"));
  return api_planner_end(planner, sn_planner_set_target(planner->planner, term, value, n, &why), &why, err);
}

// Rows of targets as sn_cost_schedule has them; of each, the entries that are given as numbers.
static void write_targets(const SnCost *cost, const double *time, int rows, const int *entry, int n, sn_real *row,
                          double *targets) {
  for (int t = 0; t < rows; ++t) {
    sn_cost_schedule(cost, time[t], 0, 1, row);
    for (int i = 0; i < n; ++i) targets[(size_t)t * (size_t)n + (size_t)i] = (double)row[entry[i]];
  }
}

static SinewStatus find_targets(const SnCost *cost, const double *time, int rows, double *targets, int *count,
                                SinewError *err) {
  if (!count || rows < 0 || (targets && rows > 0 && !time))
    return api_fail(err, SINEW_ERR_ARGUMENT, "sinew_planner_targets: %s",
                    !count     ? "count is NULL"
                    : rows < 0 ? "rows is negative"
                               : "time is NULL");
  for (int t = 0; targets && t < rows; ++t)
    if (!isfinite(time[t])) return api_fail(err, SINEW_ERR_ARGUMENT, "time[%d]: not finite", t);
  const size_t n = (size_t)cost->ntarget + 1;
  int *entry = malloc(n * sizeof *entry);
  sn_real *row = malloc(n * sizeof *row);
  if (entry && row) {
    *count = sn_cost_given_targets(cost, entry);
    if (targets) write_targets(cost, time, rows, entry, *count, row, targets);
  }
  const bool ok = entry && row;
  free(entry);
  free(row);
  return ok ? api_ok(err) : api_fail(err, SINEW_ERR_MEMORY, "out of memory");
}

SinewStatus sinew_planner_targets(SinewPlanner *planner, const double *time, int rows, double *targets, int *count,
                                  SinewError *err) {
  const SinewStatus status = api_planner_enter(planner, "sinew_planner_targets", err);
  if (status != SINEW_OK) return status;
  return api_planner_leave(planner, find_targets(sn_planner_cost(planner->planner), time, rows, targets, count, err));
}
