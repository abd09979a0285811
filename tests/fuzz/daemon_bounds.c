#include "tests/fuzz/daemon_bounds.h"

#include <float.h>
#include <string.h>

#include "daemon/config/config.h"
#include "planner/task/settings.h"
#include "planner/task/task.h"

static void narrow_setting(const char *field, SnFieldBounds *bounds) {
  for (int i = 0; i < sn_settings_count(); ++i) {
    const SnSettingInfo *row = sn_settings_info(i);
    const bool number = row->type == SN_SETTING_TYPE_INT || row->type == SN_SETTING_TYPE_REAL;
    if (number && !strcmp(row->name, field)) bounds->min = row->lo, bounds->max = row->hi;
  }
}

void fuzz_daemon_bounds(const ProtobufCMessageDescriptor *message, const char *field, SnFieldBounds *bounds) {
  static const struct {
    const char *message, *field;
    double min, max;
  } rows[] = {
      {"SessionSettings", "latency", 0, 1},  // of a plan's length, which the session knows
      {"SessionSettings", "lease", SN_LEASE_LEAST, SN_LEASE_MOST},
      {"SessionSettings", "time_to_live", SN_LIVE_LEAST, SN_LEASE_MOST},
      {"TermSettings", "weight", 0, SN_TASK_MOST_WEIGHT},
      {"TermSettings", "terminal_weight", 0, SN_TASK_MOST_WEIGHT},
      {"StreamRequest", "lease", SN_WIRE_LEASE, SN_WIRE_WAIT},
  };
  if (!strcmp(message->short_name, "PlannerSettings")) narrow_setting(field, bounds);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
    if (!strcmp(rows[i].message, message->short_name) && !strcmp(rows[i].field, field))
      bounds->min = rows[i].min, bounds->max = rows[i].max;
}

const char *fuzz_daemon_unbounded(void) {
  const ProtobufCMessageDescriptor *const list[] = {
      &sinew__v1__planner_settings__descriptor, &sinew__v1__session_settings__descriptor,
      &sinew__v1__term_settings__descriptor, &sinew__v1__stream_request__descriptor};
  for (size_t k = 0; k < sizeof list / sizeof *list; ++k) {
    for (unsigned i = 0; i < list[k]->n_fields; ++i) {
      SnFieldBounds bounds;
      const char *field = list[k]->fields[i].name;
      if (!sn_validate_bounds(list[k]->short_name, field, &bounds)) continue;
      fuzz_daemon_bounds(list[k], field, &bounds);
      if (bounds.max == DBL_MAX) return field;
    }
  }
  return NULL;
}
