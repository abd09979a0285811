#include "physics/import_mjcf.h"

#include <mujoco/mujoco.h>

static_assert((int)SN_GEOM_SDF == (int)mjGEOM_SDF && (int)SN_INT_DISCRETE == (int)mjINT_DISCRETE, "enums are MuJoCo's");

// Scalars and vectors of mjOption; sizeof tells how many numbers a field has.
static void copy_option(SnModel *m, const mjModel *mj) {
#define SN_OPTION(type, name, count) \
  for (int i = 0; i < (count); ++i) SN_AT(m->opt.name, count, i) = (type)SN_AT(mj->opt.name, count, i);
#define SN_AT(x, count, i) SN_AT_##count(x, i)
#define SN_AT_1(x, i) x
#define SN_AT_3(x, i) x[i]
#define SN_AT_5(x, i) x[i]
#define SN_AT_SN_NREF(x, i) x[i]
#define SN_AT_SN_NIMP(x, i) x[i]
#include "physics/option_fields.inc"
#undef SN_OPTION
}

SnModel *sn_import_mjmodel(const mjModel *mj, SnError *err) {
  SnModel sizes = {0};
#define SN_SIZE(name) sizes.name = (int)mj->name;
#include "physics/model_sizes.inc"
#undef SN_SIZE
  SnModel *m = sn_model_create(&sizes, err);
  if (!m) return NULL;
#define SN_SIZE(name) const int name = m->name; (void)name;
#include "physics/model_sizes.inc"
#undef SN_SIZE
#define SN_FIELD(type, name, rows, cols) \
  for (int i = 0; i < (rows) * (cols); ++i) m->name[i] = (type)mj->name[i];
#include "physics/model_fields.inc"
#undef SN_FIELD
  copy_option(m, mj);
  m->meaninertia = (sn_real)mj->stat.meaninertia;
  if (sn_model_derive(m, err) != SN_OK) {
    sn_model_free(m);
    return NULL;
  }
  return m;
}
