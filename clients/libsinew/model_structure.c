// Whether two models have one structure, so that a world of the one can become a world of the other.
#include <string.h>

#include "clients/libsinew/model_private.h"
#include "physics/model/model_arrays.h"
#include "physics/world/layout.h"

// Whether an array says what there is and what belongs to what.
static bool is_structure(const SnModelArray *a) {
  return a->integer && (a->kind == SN_ARRAY_STRUCTURE || a->kind == SN_ARRAY_ASSET);
}

static uint64_t mix(uint64_t digest, uint64_t x) {
  digest = (digest ^ x) * 0x9e3779b97f4a7c15u;
  return digest ^ digest >> 32;
}

static uint64_t mix_ints(uint64_t digest, const int *x, size_t n) {
  for (size_t i = 0; i < n; ++i) digest = mix(digest, (uint64_t)(uint32_t)x[i]);
  return digest;
}

static uint64_t digest_of(const SnModel *m) {
  SnModelArray a;
  SnLayoutField f;
  uint64_t digest = 1;
  for (int i = 0; sn_model_array(m, i, &a); ++i) {
    digest = mix(mix(digest, (uint64_t)a.rows), (uint64_t)a.cols);
    if (is_structure(&a)) digest = mix_ints(digest, a.data, (size_t)a.rows * (size_t)a.cols);
  }
  for (int i = 0; sn_world_field(m, i, &f); ++i) digest = mix(digest, f.bytes);
  for (int i = 0; sn_adjoint_field(m, i, &f); ++i) digest = mix(digest, f.bytes);
  return digest ? digest : 1;
}

// Any number of threads may come here at once: they find the same.
uint64_t api_model_structure(const SinewModel *model) {
  SinewModel *m = (SinewModel *)(uintptr_t)model;
  uint64_t digest = atomic_load(&m->structure);
  if (digest == 0) atomic_store(&m->structure, digest = digest_of(model->model));
  return digest;
}

// Tells where the structures of two arrays of one name differ. Returns false where they do not.
static bool arrays_differ(const SnModelArray *of, const SnModelArray *a, const char *name, SinewError *err) {
  if (of->rows != a->rows || of->cols != a->cols) {
    api_fail(err, SINEW_ERR_ARGUMENT, "%s: %s has the shape (%d, %d), that of the batch's model (%d, %d)", name,
             a->name, a->rows, a->cols, of->rows, of->cols);
    return true;
  }
  const int *x = of->data, *y = a->data;
  for (int i = 0; is_structure(a) && i < a->rows * a->cols; ++i) {
    if (x[i] == y[i]) continue;
    api_fail(err, SINEW_ERR_ARGUMENT, "%s: %s[%d] is %d, that of the batch's model %d", name, a->name, i, y[i], x[i]);
    return true;
  }
  return false;
}

SinewStatus api_model_same_structure(const SinewModel *of, const SinewModel *model, const char *name, SinewError *err) {
  SnModelArray x, y;
  SnLayoutField f, g;
  if (api_model_structure(of) == api_model_structure(model)) return SINEW_OK;
  for (int i = 0; sn_model_array(of->model, i, &x) && sn_model_array(model->model, i, &y); ++i)
    if (arrays_differ(&x, &y, name, err)) return SINEW_ERR_ARGUMENT;
  for (int i = 0; sn_world_field(of->model, i, &f) && sn_world_field(model->model, i, &g); ++i)
    if (f.bytes != g.bytes)
      return api_fail(
          err, SINEW_ERR_ARGUMENT,
          "%s: its bodies have other arrays than the batch's model: %s takes %zu bytes, there %zu. Contacts, "
          "limits, friction losses or equalities have come or gone",
          name, g.name, g.bytes, f.bytes);
  return api_fail(err, SINEW_ERR_ARGUMENT, "%s: its derivatives have other arrays than the batch's model", name);
}
