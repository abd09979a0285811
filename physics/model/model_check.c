#include "physics/model/model_private.h"

// One enumerator a field, so that a rule without a field, or two for one, do not compile.
enum {
#define SN_RANGE(field, least, most) RANGE_##field,
#define SN_ANY(field) RANGE_##field,
#include "physics/model/model_ranges.inc"
#undef SN_RANGE
#undef SN_ANY
  RANGE_COUNT
};

// Every int field has a rule: FIND(int, x) needs RANGE_x, other types need nothing.
#define SN_MODEL_FIELD(type, name, rows, cols) FIND_##type(name)
#define FIND_int(name) HAS_RANGE_##name = RANGE_##name,
#define FIND_sn_real(name)
#define FIND_char(name)
enum {
#include "physics/model/model_fields.inc"
};
#undef SN_MODEL_FIELD
#undef FIND_int

// Every size has a cap.
#define SN_SIZE(name) HAS_CAP_##name = SN_CAP_##name,
enum {
#include "physics/model/model_sizes.inc"
};
#undef SN_SIZE

SnCode sn_model_complain(SnError *err, const char *field, int i, double value, const char *rule) {
  return sn_fail(err, SN_ERR_FORMAT, "model: %s[%d] is %.9g: %s", field, i, value, rule);
}

SnCode sn_model_check_sizes(const SnModel *m, SnError *err) {
#define SN_SIZE(name)                         \
  if (m->name < 0 || m->name > SN_CAP_##name) \
    return sn_fail(err, SN_ERR_LIMIT, "model: " #name " is %d; allowed: 0 to %d", m->name, (int)SN_CAP_##name);
#include "physics/model/model_sizes.inc"
#undef SN_SIZE
  if (m->nbody < 1) return sn_fail(err, SN_ERR_FORMAT, "model: nbody is %d; there is at least the world", m->nbody);
  if (m->nnames < 1)
    return sn_fail(err, SN_ERR_FORMAT, "model: nnames is %d; there is at least the model's name", m->nnames);
  return SN_OK;
}

static SnCode check_ints(const char *name, const int *x, size_t n, int least, int most, SnError *err) {
  for (size_t i = 0; i < n; ++i)
    if (x[i] < least || x[i] > most)
      return sn_fail(err, SN_ERR_FORMAT, "model: %s[%d] is %d; allowed: %d to %d", name, (int)i, x[i], least, most);
  return SN_OK;
}

static SnCode check_reals(const char *name, const sn_real *x, size_t n, SnError *err) {
  for (size_t i = 0; i < n; ++i)
    if (!isfinite(x[i])) return sn_model_complain(err, name, (int)i, (double)x[i], "must be finite");
  return SN_OK;
}

// All ints within their ranges, all numbers finite.
static SnCode check_values(const SnModel *m, SnError *err) {
#define SN_SIZE(name)       \
  const int name = m->name; \
  (void)name;
#include "physics/model/model_sizes.inc"
#undef SN_SIZE
  size_t count[RANGE_COUNT];
#define SN_MODEL_FIELD(type, name, rows, cols) COUNT_##type(name, (size_t)(rows) * (size_t)(cols))
#define COUNT_int(name, n) count[RANGE_##name] = n;
#define COUNT_sn_real(name, n) \
  if (check_reals(#name, m->name, n, err) != SN_OK) return SN_ERR_FORMAT;
#define COUNT_char(name, n)
#include "physics/model/model_fields.inc"
#undef SN_MODEL_FIELD
#define SN_RANGE(field, least, most) \
  if (check_ints(#field, m->field, count[RANGE_##field], (least), (most), err) != SN_OK) return SN_ERR_FORMAT;
#define SN_ANY(field) (void)count[RANGE_##field];
#include "physics/model/model_ranges.inc"
#undef SN_RANGE
#undef SN_ANY
  return SN_OK;
}

SnCode sn_model_check(const SnModel *m, SnError *err) {
  SnCode code = sn_model_check_sizes(m, err);
  if (code == SN_OK) code = sn_option_check(&m->opt, err);
  if (code == SN_OK) code = check_values(m, err);
  if (code == SN_OK) code = sn_model_check_tree(m, err);
  if (code == SN_OK) code = sn_model_check_parts(m, err);
  return code;
}
