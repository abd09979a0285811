// Settings of a planner: one table (settings.inc) makes the struct, its defaults, its validation and its documentation.
// They are plain values: copy them, change them, hand them to a planner.
#ifndef SINEW_PLANNER_TASK_SETTINGS_H_
#define SINEW_PLANNER_TASK_SETTINGS_H_

#include <stdbool.h>

#include "physics/base/known_names.h"
#include "physics/base/status.h"

// Numbers the values of the setting `planner`, in the order of its row.
typedef enum SnPlannerKind {
  SN_PLANNER_SAMPLING,
  SN_PLANNER_ADAM,
  SN_PLANNER_ILQG,
  SN_PLANNER_LBFGS,
  SN_PLANNER_MPPI,
  SN_PLANNER_CEM,
  SN_PLANNER_HYBRID,
  SN_PLANNER_KINDS
} SnPlannerKind;
typedef enum SnSplineKind { SN_SPLINE_ZERO, SN_SPLINE_LINEAR, SN_SPLINE_CUBIC } SnSplineKind;
typedef enum SnNoiseColour { SN_NOISE_WHITE, SN_NOISE_PINK, SN_NOISE_BROWN } SnNoiseColour;
// Says where contacts act from a distance: in nothing, in derivatives (straight-through), in rollouts and derivatives.
typedef enum SnCfdUse { SN_CFD_NONE, SN_CFD_BACKWARD, SN_CFD_FORWARD } SnCfdUse;
// Says what a gradient's norm is limited over: all of the plan, one time step (knot), or nothing.
typedef enum SnClip { SN_CLIP_GLOBAL, SN_CLIP_STEP, SN_CLIP_OFF } SnClip;
// Says which moments Adam begins a plan with: zero, or those of the plan before, moved in time with it.
typedef enum SnMoments { SN_MOMENTS_FRESH, SN_MOMENTS_KEPT } SnMoments;
// Says where Adam begins a plan: at the best controls of the plan before, or where the step from its last iterate led.
typedef enum SnWarmStartKind { SN_WARM_START_BEST, SN_WARM_START_LAST } SnWarmStartKind;
// Says where a plan begins: at the plan before, at the rollout of the task's policy, at the better of the two.
typedef enum SnBegin { SN_BEGIN_SHIFTED, SN_BEGIN_POLICY, SN_BEGIN_BETTER } SnBegin;
typedef enum SnTail { SN_TAIL_HOLD, SN_TAIL_INITIAL } SnTail;

// Counts the characters of a text with the 0 at its end.
enum { SN_SETTING_TEXT_SIZE = 64 };

// Holds one field a setting: int for SN_SETTING_INT and SN_SETTING_CHOICE, double for SN_SETTING_REAL, characters for
// SN_SETTING_TEXT.
typedef struct SnSettings {
#define SN_SETTING_INT(name, value, lo, hi, live, unit, doc) int name;
#define SN_SETTING_REAL(name, value, lo, hi, live, unit, doc) double name;
#define SN_SETTING_CHOICE(name, value, choices, live, doc) int name;
#define SN_SETTING_TEXT(name, value, live, doc) char name[SN_SETTING_TEXT_SIZE];
#include "planner/task/settings.inc"
#undef SN_SETTING_INT
#undef SN_SETTING_REAL
#undef SN_SETTING_CHOICE
#undef SN_SETTING_TEXT
} SnSettings;

typedef enum SnSettingType {
  SN_SETTING_TYPE_INT,
  SN_SETTING_TYPE_REAL,
  SN_SETTING_TYPE_CHOICE,
  SN_SETTING_TYPE_TEXT
} SnSettingType;

// Describes a setting: a row of the table.
typedef struct SnSettingInfo {
  const char *name;
  SnSettingType type;
  double value;         // default; 0 of a text
  double lo, hi;        // bounds, both allowed; 0 of a choice and of a text
  const char *choices;  // names joined by '|', NULL for numbers and texts
  const char *text;     // default of a text, NULL for others
  bool live;            // may change while a planner runs
  const char *unit;     // "" for none
  const char *doc;      // one line
} SnSettingInfo;

// Returns the defaults.
SnSettings sn_default_settings(void);

// Returns the number of settings.
int sn_settings_count(void);
// Returns row i of the table, 0 <= i < sn_settings_count(). It stays in static memory.
const SnSettingInfo *sn_settings_info(int i);

// Returns the row of the setting of this name, or -1.
int sn_settings_find(const char *name);
// Begins `known` with the names of all settings, of which `wanted` is none.
void sn_settings_known(const char *wanted, SnKnownNames *known);
// Returns SN_ERR_NOT_FOUND; err says that there is no such setting, and which one may be meant.
SnCode sn_settings_missing(const char *name, SnError *err);

// Returns the value of setting i as a number; a choice as its index; 0 of a text.
double sn_settings_get(const SnSettings *s, int i);

// Writes the name of value `value` of choice i to text[size], "" when it is out of range, and returns text.
const char *sn_settings_choice_name(int i, int value, char *text, int size);
// Returns the value of choice i that has this name, or -1.
int sn_settings_choice_index(int i, const char *name);

// Sets setting i from a number or (for a choice or a text) from a name. On error s is unchanged and err names the
// setting, the value and what is allowed.
SnCode sn_settings_set(SnSettings *s, int i, double value, SnError *err);
SnCode sn_settings_set_name(SnSettings *s, int i, const char *value, SnError *err);

// Sets a setting by an assignment "name=value"; the value of a choice is a name. Returns SN_ERR_NOT_FOUND when there is
// no such setting, SN_ERR_ARGUMENT for a value that is not allowed. On error s is unchanged.
SnCode sn_settings_assign(SnSettings *s, const char *assignment, SnError *err);

// Writes the value of setting i as an assignment has it into text[size], and returns text.
const char *sn_settings_text(const SnSettings *s, int i, char *text, int size);

// Returns the most iterations that the planner in force makes for a plan; 0: as many as the deadline allows.
int sn_settings_iterations(const SnSettings *s);

// Returns whether setting i has the same value in both.
bool sn_settings_same(const SnSettings *a, const SnSettings *b, int i);

// Checks all values against their bounds; err lists every bad one.
SnCode sn_settings_validate(const SnSettings *s, SnError *err);

// Checks that `next` is valid and differs from `now` in live settings only; err lists what does not.
SnCode sn_settings_may_change(const SnSettings *now, const SnSettings *next, SnError *err);

#endif
