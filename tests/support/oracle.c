#include "tests/support/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "clients/reference/mujoco_log.h"

static void start(SnOracle *o, mjModel *mj, SnError *err) {
  sn_mujoco_messages("test", 1);
  if (!mj) fail_msg("%s", err->text);
  for (int i = 0; i < mj->ngeom; ++i)
    if (mj->geom_type[i] == mjGEOM_HFIELD) mj->geom_contype[i] = mj->geom_conaffinity[i] = 0;
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

const char *sn_oracle_myosuite(void) {
  static char path[4096];
  const char *dir = getenv("SINEW_MYOSUITE_DIR"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (dir)
    snprintf(path, sizeof path, "%s", dir);
  else if (cache)
    snprintf(path, sizeof path, "%s/sinew/myosuite-2.12.2/myosuite", cache);
  else
    snprintf(path, sizeof path, "%s/.cache/sinew/myosuite-2.12.2/myosuite", home ? home : "");
  struct stat st;
  return stat(path, &st) == 0 ? path : NULL;
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
