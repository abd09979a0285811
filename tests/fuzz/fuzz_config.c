// Fuzz target: configuration files of sinewd.
#include "daemon/config/config.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

static bool accepted, refused;

void fuzz_one(const uint8_t *data, size_t size) {
  static SnConfig config;
  SnError err = {0};
  sn_config_default(&config);
  const SnCode code = sn_config_load(&config, fuzz_file(data, size), &err);
  if ((code != SN_OK) != (err.text[0] != '\0')) fuzz_fail("code %d with the text '%s'", code, err.text);
  *(code == SN_OK ? &accepted : &refused) = true;
  for (int i = 0; i < sn_config_count(); ++i) {
    const SnConfigInfo *row = sn_config_info(i);
    const char *at = (const char *)&config + row->offset;
    if (row->type != SN_CONFIG_IS_INT && row->type != SN_CONFIG_IS_REAL) continue;
    const double value = row->type == SN_CONFIG_IS_REAL ? *(const double *)at : *(const int *)at;
    if (!(value >= row->lo && value <= row->hi)) fuzz_fail("%s is %g", row->name, value);
  }
}

const char *fuzz_missing(void) { return !accepted ? "a file that is accepted" : !refused ? "one that is not" : NULL; }

// Every setting with its default; then some that are wrong.
size_t fuzz_seed(int i, uint8_t *bytes) {
  static const char *const more[] = {"models: [a, b=c]\nhorizon: 100000\n", "- a\n- b\n", "slice: {a: b}\n",
                                     "log: [debug]\nendpoint: !!str x\n", "&a tcp: *a\n"};
  const int count = sn_config_count();
  char line[700];
  if (i < count) {
    const SnConfigInfo *row = sn_config_info(i);
    if (row->type == SN_CONFIG_IS_INT || row->type == SN_CONFIG_IS_REAL)
      snprintf(line, sizeof line, "%s: %g\n", row->name, row->value);
    else
      snprintf(line, sizeof line, "%s: [%s]\n", row->name, row->text ? row->text : "x");
    return fuzz_text(line, bytes);
  }
  return i - count < (int)(sizeof more / sizeof *more) ? fuzz_text(more[i - count], bytes) : 0;
}
