// Configuration and keys, read again while the daemon runs: all of it is checked first, then put in force, or nothing
// is.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/requests/requests.h"

// Settings that the event loop alone reads, each time anew. All others are what threads, sockets and memory were made
// by: they count from the next start on.
static const char *const live[] = {"telemetry_period", "orphan_seconds", "client_sessions", "idle_seconds", "log",
                                   "log_rate",         "flight_misses"};

static bool is_live(const char *name) {
  for (size_t i = 0; i < sizeof live / sizeof *live; i++)
    if (!strcmp(live[i], name)) return true;
  return false;
}

static size_t size_of(const SnConfigInfo *row) {
  switch (row->type) {
    case SN_CONFIG_IS_TEXT:
      return SN_CONFIG_TEXT_SIZE;
    case SN_CONFIG_IS_LIST:
      return sizeof(SnConfigList);
    case SN_CONFIG_IS_REAL:
      return sizeof(double);
    default:
      return sizeof(int);
  }
}

// Whether two configurations differ in a setting. Texts end with a zero, and what lies behind it means nothing.
static bool differs(const SnConfigInfo *row, const char *a, const char *b) {
  if (row->type == SN_CONFIG_IS_TEXT) return strcmp(a, b) != 0;
  if (row->type != SN_CONFIG_IS_LIST) return memcmp(a, b, size_of(row)) != 0;
  const SnConfigList *x = (const void *)a, *y = (const void *)b;
  bool other = x->n != y->n;
  for (int i = 0; i < x->n && !other; i++) other = strcmp(x->item[i], y->item[i]) != 0;
  return other;
}

// Puts what may change in force. `later` gets the names of what has to wait for a new start; both are lists with
// commas.
static void apply(SnDaemon *d, const SnConfig *fresh, char *now, char *later, size_t size) {
  for (int i = 0; i < sn_config_count(); i++) {
    const SnConfigInfo *row = sn_config_info(i);
    char *mine = (char *)&d->config + row->offset;
    const char *theirs = (const char *)fresh + row->offset;
    if (!differs(row, mine, theirs)) continue;
    char *list = is_live(row->name) ? now : later;
    const size_t n = strlen(list);
    snprintf(list + n, size - n, "%s%s", n ? ", " : "", row->name);
    if (is_live(row->name)) memcpy(mine, theirs, size_of(row));
  }
  sn_log_limit(&d->log, (SnLogLevel)d->config.log, d->config.log_rate);
}

SnCode sn_check_configuration(const SnConfig *config, SnError *err) {
  SnAccess access = {0};
  char secret[SN_KEY_TEXT], why[1024];
  SnCode code = sn_wire_check(config, err);
  if (code == SN_OK && *config->metrics) code = sn_http_check(config->metrics, err);
  if (code == SN_OK && !*config->curve_key != !*config->allow)
    code = sn_fail(err, SN_ERR_ARGUMENT, "curve_key and allow go together; %s is not set",
                   *config->allow ? "curve_key" : "allow");
  if (code == SN_OK && *config->curve_key && !sn_key_read_secret(config->curve_key, secret, why, sizeof why))
    code = sn_fail(err, SN_ERR_ARGUMENT, "curve_key: %s", why);
  explicit_bzero(secret, sizeof secret);
  if (code == SN_OK) code = sn_access_init(&access, config->allow, err);
  sn_access_free(&access);
  return code;
}

SnCode sn_reload(SnDaemon *d, bool *lowered, SnError *err) {
  char now[1024] = "", later[1024] = "";
  SnConfig *fresh = malloc(sizeof *fresh);
  *lowered = false;
  SnCode code = fresh ? d->configure(d->command_line, fresh, err) : sn_fail(err, SN_ERR_MEMORY, "out of memory");
  if (code == SN_OK) code = sn_check_configuration(fresh, err);
  if (code == SN_OK && d->access.keys) code = sn_access_reload(&d->access, d->config.allow, lowered, err);
  if (code == SN_OK) {
    apply(d, fresh, now, later, sizeof now);
    d->version++;
    sn_log_event(&d->log, SN_LOG_INFO, "reloaded: version %llu%s%s%s%s", (unsigned long long)d->version,
                 d->access.keys ? ", the keys of " : "", d->access.keys ? d->config.allow : "",
                 *now ? ", settings " : "", now);
    if (*later) sn_log_event(&d->log, SN_LOG_WARNING, "restart-needed: changed, but not in force: %s", later);
  } else {
    d->reload_failures++;
    sn_log_event(&d->log, SN_LOG_ERROR, "reload-failed: configuration and keys stay as they were: %s", err->text);
  }
  free(fresh);
  return code;
}
