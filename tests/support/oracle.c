#include "tests/support/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "clients/reference/mujoco_log.h"

static void start(SnOracle *o, mjModel *mj, SnError *err) {
  sn_mujoco_messages("test", 1);
  if (!mj) fail_msg("%s", err->text);
  sn_oracle_tighten(mj);
  if (sn_oracle_open(o, mj, err) != SN_OK) fail_msg("import: %s", err->text);
}

void sn_oracle_load_string(SnOracle *o, const char *xml) {
  SnError err = {0};
  start(o, sn_oracle_read_string(xml, &err), &err);
}

void sn_oracle_load_file(SnOracle *o, const char *path) {
  SnError err = {0};
  start(o, sn_oracle_read_file(path, &err), &err);
}

// Writes the path of what was unpacked into the cache folder. Returns whether it is there.
static bool fetched(const char *below, char path[4096]) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  snprintf(path, 4096, "%s%s/sinew/%s", cache ? cache : home ? home : "", cache ? "" : "/.cache", below);
  struct stat st;
  return stat(path, &st) == 0;
}

const char *sn_oracle_myosuite(void) {
  static char path[4096];
  const char *dir = getenv("SINEW_MYOSUITE_DIR");
  if (!dir) return fetched("myosuite-2.12.2/myosuite", path) ? path : NULL;
  struct stat st;
  snprintf(path, sizeof path, "%s", dir);
  return stat(path, &st) == 0 ? path : NULL;
}

bool sn_oracle_find_model(const char *model, char path[4096]) {
  static const char *const packages[] = {"dm_control/", "dm_control-1.0.50", "gymnasium/", "gymnasium-1.4.0"};
  char folder[4096];
  bool there = true;
  snprintf(path, 4096, "%s/../physics/models/%s", SN_TEST_SOURCE_DIR, model);
  if (strncmp(model, "myosuite/", 9) == 0) {
    there = sn_oracle_myosuite() != NULL;
    snprintf(path, 4096, "%s%s", there ? sn_oracle_myosuite() : "", strchr(model, '/'));
    // Ours are put there by clients/setup.sh: no other folder of MyoSuite has them.
    snprintf(folder, sizeof folder, "%.3000s/envs/myo/assets/sinew", there ? sn_oracle_myosuite() : "");
    struct stat st;
    if (there && strstr(model, "/assets/sinew/")) there = stat(folder, &st) == 0;
  }
  for (int i = 0; i < 4; i += 2) {
    if (strncmp(model, packages[i], strlen(packages[i])) != 0) continue;
    there = fetched(packages[i + 1], folder);
    snprintf(path, 4096, "%.3000s/%.1000s", folder, model);
  }
  struct stat st;
  if (!there) printf("skipped: no model %s here\n", model);
  if (there && stat(path, &st) != 0) fail_msg("there is no model %s", path);
  return there;
}

void sn_oracle_needs_myosuite(void) {
  if (sn_oracle_myosuite()) return;
  print_message("skipped: the MyoSuite models are not in the cache folder\n");
  skip();
}

void sn_oracle_load_myosuite(SnOracle *o, const char *file) {
  char path[4200];
  sn_oracle_needs_myosuite();
  snprintf(path, sizeof path, "%s/%s", sn_oracle_myosuite(), file);
  sn_oracle_load_file(o, path);
}

int sn_oracle_pick(SnOracle *o, int n) { return (int)((sn_oracle_uniform(o) + 1) * 0.5 * n) % n; }

void sn_oracle_check(const char *field, const sn_real *ours, const double *ref, int n, double tol) {
  const double e = sn_oracle_error(ours, ref, n);
  if (!(e <= tol)) fail_msg("%s: relative error %g, allowed %g", field, e, tol);
}
