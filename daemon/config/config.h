// Configuration of sinewd: defaults, a YAML file, the command line, in this order. One table has it all: config.inc.
#ifndef SINEW_DAEMON_CONFIG_CONFIG_H_
#define SINEW_DAEMON_CONFIG_CONFIG_H_

#include <stdbool.h>
#include <stddef.h>

#include "physics/base/status.h"

// Bound a session's lease [s], and the settings that bound it further.
#define SN_LEASE_LEAST 0.1
#define SN_LEASE_MOST 86400.0
#define SN_LIVE_LEAST 0.001  // [s], of a session's time_to_live, whose most is that of a lease

enum { SN_CONFIG_TEXT_SIZE = 512, SN_CONFIG_LIST_SIZE = 16 };

typedef struct SnConfigList {
  int n;
  char item[SN_CONFIG_LIST_SIZE][SN_CONFIG_TEXT_SIZE];
} SnConfigList;

typedef struct SnConfig {
#define SN_CONFIG_TEXT(name, value, doc) char name[SN_CONFIG_TEXT_SIZE];
#define SN_CONFIG_LIST(name, doc) SnConfigList name;
#define SN_CONFIG_INT(name, value, lo, hi, unit, doc) int name;
#define SN_CONFIG_REAL(name, value, lo, hi, unit, doc) double name;
#define SN_CONFIG_CHOICE(name, value, choices, doc) int name;
#include "daemon/config/config.inc"
#undef SN_CONFIG_TEXT
#undef SN_CONFIG_LIST
#undef SN_CONFIG_INT
#undef SN_CONFIG_REAL
#undef SN_CONFIG_CHOICE
  bool runtime_folder;                 // an address was left empty: its socket lies in the folder of the user's sockets
  bool default_models, default_tasks;  // folders are not configured, but those that may be missing
} SnConfig;

// Counts the settings.
enum {
#define SN_CONFIG_TEXT(name, value, doc) SN_CONFIG_ROW_##name,
#define SN_CONFIG_LIST(name, doc) SN_CONFIG_ROW_##name,
#define SN_CONFIG_INT(name, value, lo, hi, unit, doc) SN_CONFIG_ROW_##name,
#define SN_CONFIG_REAL(name, value, lo, hi, unit, doc) SN_CONFIG_ROW_##name,
#define SN_CONFIG_CHOICE(name, value, choices, doc) SN_CONFIG_ROW_##name,
#include "daemon/config/config.inc"
#undef SN_CONFIG_TEXT
#undef SN_CONFIG_LIST
#undef SN_CONFIG_INT
#undef SN_CONFIG_REAL
#undef SN_CONFIG_CHOICE
  SN_CONFIG_SETTINGS
};

typedef enum SnConfigType {
  SN_CONFIG_IS_TEXT,
  SN_CONFIG_IS_LIST,
  SN_CONFIG_IS_INT,
  SN_CONFIG_IS_REAL,
  SN_CONFIG_IS_CHOICE
} SnConfigType;

// Describes a setting: a row of the table.
typedef struct SnConfigInfo {
  const char *name;
  SnConfigType type;
  double value, lo, hi;  // default and bounds of numbers and choices
  const char *text;      // default of a text; names of a choice, joined by '|'
  const char *unit;
  const char *doc;
  size_t offset;  // in SnConfig
} SnConfigInfo;

int sn_config_count(void);
const SnConfigInfo *sn_config_info(int i);

// Sets all settings to their defaults.
void sn_config_default(SnConfig *config);

// Sets one setting from text (a list: appends). SN_ERR_ARGUMENT names the setting, the value and what is allowed.
SnCode sn_config_set(SnConfig *config, const char *name, const char *value, SnError *err);

// Reads a YAML file: a mapping from names of settings to a value, or to a sequence of values for a list. err lists
// every mistake as file:line:column, and config is then of no use.
SnCode sn_config_load(SnConfig *config, const char *file, SnError *err);

// Fills what is left empty: endpoints in the runtime folder, folders of models and tasks, the importer and its cache.
// Absolute folders come from the environment and from where this program lies.
// Changes nothing on the disk.
SnCode sn_config_complete(SnConfig *config, SnError *err);

// Checks that the folders of models and tasks that are configured can be read, which a start needs. A reload does not.
SnCode sn_config_check_folders(const SnConfig *config, SnError *err);

// Makes the folder of the user's sockets (proto/default_endpoint.h) with mode 0700, where a completed configuration
// needs it and it is missing. Returns an error when it is not a folder of this user, or open to others.
SnCode sn_runtime_folder_make(const SnConfig *config, SnError *err);

// Returns what sn_runtime_folder_make would, and makes nothing. *missing says that it would be made.
SnCode sn_runtime_folder_check(const SnConfig *config, bool *missing, SnError *err);

#endif
