#include "physics/base/known_names.h"
#include "physics/model/model.h"
#include "physics/model/model_private.h"

#include <stdio.h>
#include <stdlib.h>

enum { MODEL_NAMES = 200 };  // bytes of the names that a message lists

void *sn_model_alloc(SnModel *m, size_t bytes) {
  const size_t rounded = (bytes + 63) / 64 * 64;
  void **block = realloc(m->block, (size_t)(m->nblock + 1) * sizeof *block);
  if (!block) return NULL;
  m->block = block;
  void *p = aligned_alloc(64, rounded ? rounded : 64);
  if (!p) return NULL;
  memset(p, 0, rounded ? rounded : 64);
  m->block[m->nblock++] = p;
  return p;
}

SnModel *sn_model_create(const SnModel *sizes, SnError *err) {
  SnModel *m = calloc(1, sizeof *m);
  if (!m) {
    sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
    return NULL;
  }
#define SN_SIZE(name)                     \
  const int name = m->name = sizes->name; \
  (void)name;
#include "physics/model/model_sizes.inc"
#undef SN_SIZE
  bool ok = true;
#define SN_MODEL_FIELD(type, name, rows, cols) \
  ok = ok && (m->name = sn_model_alloc(m, sizeof(type) * (size_t)(rows) * (size_t)(cols))) != NULL;
#include "physics/model/model_fields.inc"
#undef SN_MODEL_FIELD
  if (!ok) {
    sn_model_free(m);
    sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
    return NULL;
  }
  return m;
}

void sn_model_free(SnModel *m) {
  if (!m) return;
  for (int i = 0; i < m->nblock; ++i) free(m->block[i]);
  free(m->block);
  free(m);
}

SnCode sn_model_setup(SnModel *m, SnError *err) {
  SnCode code = sn_setup_tree(m, err);
  if (code == SN_OK) code = sn_setup_collision(m, err);
  if (code == SN_OK) code = sn_setup_ray(m, err);
  if (code == SN_OK) code = sn_setup_tendon(m, err);
  if (code == SN_OK) code = sn_setup_pose(m, err);
  if (code == SN_OK) code = sn_setup_passive(m, err);
  if (code == SN_OK) code = sn_setup_fluid(m, err);
  if (code == SN_OK) code = sn_setup_actuator(m, err);
  if (code == SN_OK) code = sn_setup_needs(m, err);
  if (code == SN_OK) code = sn_setup_sensor(m, err);
  if (code == SN_OK) code = sn_setup_constraint(m, err);
  return code;
}

SnModel *sn_model_copy_arrays(const SnModel *m, SnError *err) {
  SnModel *copy = sn_model_create(m, err);
  if (!copy) return NULL;
  copy->opt = m->opt;
  copy->need_all = m->need_all;
#define SN_SIZE(name)       \
  const int name = m->name; \
  (void)name;
#include "physics/model/model_sizes.inc"
#undef SN_SIZE
#define SN_MODEL_FIELD(type, name, rows, cols) \
  memcpy(copy->name, m->name, sizeof(type) * (size_t)(rows) * (size_t)(cols));
#include "physics/model/model_fields.inc"
#undef SN_MODEL_FIELD
  return copy;
}

// Sets a model up, or frees it.
static SnModel *set_up(SnModel *m, SnError *err) {
  if (!m || sn_model_setup(m, err) == SN_OK) return m;
  sn_model_free(m);
  return NULL;
}

SnModel *sn_model_copy(const SnModel *m, SnError *err) { return set_up(sn_model_copy_arrays(m, err), err); }

// Column k of rows of `width`, in every geom, pair and the override.
static void set_contacts(sn_real *geom, int ngeom, sn_real *pair, int npair, sn_real *override, int width,
                         const sn_real *value) {
  for (int k = 0; k < width; ++k) {
    if (isnan(value[k])) continue;
    for (int i = 0; i < ngeom; ++i) geom[width * i + k] = value[k];
    for (int i = 0; i < npair; ++i) pair[width * i + k] = value[k];
    override[k] = value[k];
  }
}

SnModel *sn_model_with_options(const SnModel *m, const SnOption *opt, const sn_real *solref, const sn_real *solimp,
                               SnError *err) {
  SnModel *copy = sn_model_copy_arrays(m, err);
  if (!copy) return NULL;
  copy->opt = *opt;
  set_contacts(copy->geom_solref, m->ngeom, copy->pair_solref, m->npair, copy->opt.o_solref, SN_NREF, solref);
  set_contacts(copy->geom_solimp, m->ngeom, copy->pair_solimp, m->npair, copy->opt.o_solimp, SN_NIMP, solimp);
  return set_up(copy, err);
}

// The address list and count of one kind of name.
static const int *name_list(const SnModel *m, SnNameKind kind, int *count) {
  switch (kind) {
    case SN_NAME_BODY:
      *count = m->nbody;
      return m->name_bodyadr;
    case SN_NAME_JNT:
      *count = m->njnt;
      return m->name_jntadr;
    case SN_NAME_GEOM:
      *count = m->ngeom;
      return m->name_geomadr;
    case SN_NAME_SITE:
      *count = m->nsite;
      return m->name_siteadr;
    case SN_NAME_TENDON:
      *count = m->ntendon;
      return m->name_tendonadr;
    case SN_NAME_ACTUATOR:
      *count = m->nactuator;
      return m->name_actuatoradr;
    case SN_NAME_SENSOR:
      *count = m->nsensor;
      return m->name_sensoradr;
    case SN_NAME_KEY:
      *count = m->nkey;
      return m->name_keyadr;
    case SN_NAME_EQ:
      *count = m->neq;
      return m->name_eqadr;
  }
  *count = 0;
  return NULL;
}

int sn_model_count(const SnModel *m, SnNameKind kind) {
  int count = 0;
  name_list(m, kind, &count);
  return count;
}

const char *sn_model_name(const SnModel *m, SnNameKind kind, int i) {
  int count = 0;
  const int *adr = name_list(m, kind, &count);
  return i >= 0 && i < count ? m->names + adr[i] : "";
}

int sn_model_find(const SnModel *m, SnNameKind kind, const char *name) {
  const int count = sn_model_count(m, kind);
  for (int i = 0; i < count; ++i)
    if (name[0] && strcmp(sn_model_name(m, kind, i), name) == 0) return i;
  return -1;
}

const char *sn_model_no_name(const SnModel *m, SnNameKind kind, const char *name, char *text, size_t size) {
  static const char *const kinds[] = {"body",     "joint",  "geom",     "site",    "tendon",
                                      "actuator", "sensor", "keyframe", "equality"};
  SnKnownNames known;
  sn_known_begin(&known, name, MODEL_NAMES);
  for (int i = 0; i < sn_model_count(m, kind); ++i) sn_known_add(&known, sn_model_name(m, kind, i));
  snprintf(text, size, "the model has no %s '%.200s', it has %s%s", kinds[kind], name, sn_known_list(&known),
           sn_known_near(&known));
  return text;
}
