#include "daemon/config/config.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "daemon/config/folders_private.h"
#include "physics/base/folders.h"
#include "physics/base/known_names.h"
#include "physics/base/number_text.h"
#include "proto/default_endpoint.h"
#include "proto/places.h"

static const SnConfigInfo table[] = {
#define SN_CONFIG_TEXT(name, value, doc) \
  {#name, SN_CONFIG_IS_TEXT, 0, 0, SN_CONFIG_TEXT_SIZE - 1, value, "", doc, offsetof(SnConfig, name)},
#define SN_CONFIG_LIST(name, doc) \
  {#name, SN_CONFIG_IS_LIST, 0, 0, SN_CONFIG_LIST_SIZE, "", "", doc, offsetof(SnConfig, name)},
#define SN_CONFIG_INT(name, value, lo, hi, unit, doc) \
  {#name, SN_CONFIG_IS_INT, value, lo, hi, NULL, unit, doc, offsetof(SnConfig, name)},
#define SN_CONFIG_REAL(name, value, lo, hi, unit, doc) \
  {#name, SN_CONFIG_IS_REAL, value, lo, hi, NULL, unit, doc, offsetof(SnConfig, name)},
#define SN_CONFIG_CHOICE(name, value, choices, doc) \
  {#name, SN_CONFIG_IS_CHOICE, value, 0, 0, choices, "", doc, offsetof(SnConfig, name)},
#include "daemon/config/config.inc"
#undef SN_CONFIG_TEXT
#undef SN_CONFIG_LIST
#undef SN_CONFIG_INT
#undef SN_CONFIG_REAL
#undef SN_CONFIG_CHOICE
};

int sn_config_count(void) { return (int)(sizeof table / sizeof *table); }

const SnConfigInfo *sn_config_info(int i) { return &table[i]; }

void sn_config_default(SnConfig *config) {
  memset(config, 0, sizeof *config);
  for (int i = 0; i < sn_config_count(); i++) {
    const SnConfigInfo *row = &table[i];
    char *p = (char *)config + row->offset;
    if (row->type == SN_CONFIG_IS_TEXT) snprintf(p, SN_CONFIG_TEXT_SIZE, "%s", row->text);
    if (row->type == SN_CONFIG_IS_INT || row->type == SN_CONFIG_IS_CHOICE) *(int *)(void *)p = (int)row->value;
    if (row->type == SN_CONFIG_IS_REAL) *(double *)(void *)p = row->value;
  }
}

static SnCode set_number(const SnConfigInfo *row, void *p, const char *value, SnError *err) {
  char *end;
  errno = 0;
  double x = strtod(value, &end);
  bool whole = row->type == SN_CONFIG_IS_REAL || floor(x) == x;  // of no type yet: it may be larger than any whole one
  if (end == value || *end || errno || !(x >= row->lo && x <= row->hi) || !whole)
    return sn_fail(err, SN_ERR_ARGUMENT, "%s is '%s'; allowed is a%s number from %s to %s%s%s", row->name, value,
                   row->type == SN_CONFIG_IS_INT ? " whole" : "", sn_number_text(row->lo).text,
                   sn_number_text(row->hi).text, *row->unit ? " " : "", row->unit);
  if (row->type == SN_CONFIG_IS_REAL)
    *(double *)p = x;
  else
    *(int *)p = (int)x;
  return SN_OK;
}

static SnCode set_choice(const SnConfigInfo *row, int *p, const char *value, SnError *err) {
  size_t n = strlen(value);
  const char *name = row->text;
  for (int i = 0; *name; i++) {
    size_t len = strcspn(name, "|");
    if (len == n && !memcmp(name, value, n)) {
      *p = i;
      return SN_OK;
    }
    name += len + (name[len] == '|');
  }
  return sn_fail(err, SN_ERR_ARGUMENT, "%s is '%s'; allowed is one of %s", row->name, value, row->text);
}

// "~/" at the start, or after "NAME=", is the home folder.
static SnCode set_text(const SnConfigInfo *row, char *p, const char *value, SnError *err) {
  const char *home = getenv("HOME");
  size_t n = strcspn(value, "=/~");
  size_t tilde = value[n] == '=' ? n + 1 : 0;
  bool expand = home && value[tilde] == '~' && value[tilde + 1] == '/';
  int length = expand ? snprintf(p, SN_CONFIG_TEXT_SIZE, "%.*s%s%s", (int)tilde, value, home, value + tilde + 1)
                      : snprintf(p, SN_CONFIG_TEXT_SIZE, "%s", value);
  if (length < SN_CONFIG_TEXT_SIZE) return SN_OK;
  return sn_fail(err, SN_ERR_ARGUMENT, "%s has %d bytes; at most %d are allowed", row->name, length,
                 SN_CONFIG_TEXT_SIZE - 1);
}

SnCode sn_config_set(SnConfig *config, const char *name, const char *value, SnError *err) {
  for (int i = 0; i < sn_config_count(); i++) {
    const SnConfigInfo *row = &table[i];
    if (strcmp(row->name, name)) continue;
    void *p = (char *)config + row->offset;
    if (row->type == SN_CONFIG_IS_CHOICE) return set_choice(row, p, value, err);
    if (row->type == SN_CONFIG_IS_TEXT) return set_text(row, p, value, err);
    if (row->type != SN_CONFIG_IS_LIST) return set_number(row, p, value, err);
    SnConfigList *list = p;
    if (list->n == SN_CONFIG_LIST_SIZE)
      return sn_fail(err, SN_ERR_ARGUMENT, "%s has more than %d entries", name, SN_CONFIG_LIST_SIZE);
    SnCode code = set_text(row, list->item[list->n], value, err);
    list->n += code == SN_OK;
    return code;
  }
  SnKnownNames known;
  sn_known_begin(&known, name, 0);
  for (int i = 0; i < sn_config_count(); i++) sn_known_add(&known, table[i].name);
  return sn_fail(err, SN_ERR_ARGUMENT, "unknown setting '%.200s'; known are %s%s", name, sn_known_list(&known),
                 sn_known_near(&known));
}

// Appends an entry "FOLDER" or "NAME=FOLDER" to a list.
static void add_folder(SnConfigList *list, const char *entry) {
  snprintf(list->item[list->n++], SN_CONFIG_TEXT_SIZE, "%s", entry);
}

// The program that compiles models, and the folder that they are kept in.
static SnCode complete_import(SnConfig *config, SnError *err) {
  if (!*config->importer && !sn_default_importer(config->importer, sizeof config->importer))
    return sn_fail(err, SN_ERR_IO, "cannot tell where this program lies");
  if (!*config->cache && !sn_default_model_cache(config->cache, sizeof config->cache))
    return sn_fail(err, SN_ERR_ARGUMENT, "cache is not set, and neither is XDG_CACHE_HOME nor HOME in the environment");
  return SN_OK;
}

// An address beside that of requests: what stands there, none, or by default the endpoint with ".name" behind it.
static void complete_address(const SnConfig *config, const char *folder, const char *name, char *address) {
  if (!*address && strncmp(config->endpoint, "ipc://", 6) == 0)
    snprintf(address, SN_CONFIG_TEXT_SIZE, "%.490s.%s", config->endpoint, name);
  else if (!*address)
    snprintf(address, SN_CONFIG_TEXT_SIZE, "ipc://%s/%s.sock", folder, name);
  if (!strcmp(address, "none")) *address = '\0';
}

SnCode sn_config_complete(SnConfig *config, SnError *err) {
  char folder[SN_CONFIG_TEXT_SIZE - 64];
  SnCode code = complete_import(config, err);
  if (code != SN_OK) return code;
  config->default_models = config->models.n == 0;
  config->default_tasks = config->tasks.n == 0;
  char place[SN_PLACES_OF_MODELS][SN_PLACE_SIZE];
  for (int i = 0, n = config->default_models ? sn_places_of_models(place) : 0; i < n; i++)
    add_folder(&config->models, place[i]);
  if (config->default_tasks && sn_place_of_tasks(place[0], sizeof place[0])) add_folder(&config->tasks, place[0]);

  const bool beside = strncmp(config->endpoint, "ipc://", 6) == 0 || (*config->telemetry && *config->records);
  config->runtime_folder = !*config->endpoint || !beside;
  if (!sn_runtime_folder(folder, sizeof folder) && config->runtime_folder)
    return sn_fail(err, SN_ERR_LIMIT, "the runtime folder's path is too long");
  if (!*config->endpoint && !sn_default_endpoint(config->endpoint, sizeof config->endpoint))
    return sn_fail(err, SN_ERR_LIMIT, "the path of the socket in %s is too long", folder);
  complete_address(config, folder, "telemetry", config->telemetry);
  complete_address(config, folder, "records", config->records);
  return SN_OK;
}
