// Parameters of a model, and the memory of derivatives by them.
#include <stdio.h>
#include <stdlib.h>

#include "clients/libsinew/parameters_private.h"

SinewParameters *sinew_parameters_create(const SinewModel *model, const SinewModel *const *plus,
                                         const SinewModel *const *minus, const double *step, int count,
                                         SinewError *err) {
  const char *const who = "sinew_parameters_create";
  if (!model || count < 0 || (count > 0 && (!plus || !minus || !step))) {
    api_fail(err, SINEW_ERR_ARGUMENT, "%s: model, plus, minus or step is NULL, or count is %d", who, count);
    return NULL;
  }
  const size_t n = (size_t)count;
  SinewParameters *p = calloc(1, sizeof *p);
  const SnModel **moved = calloc(2 * n + 1, sizeof *moved);
  SnError why = {0};
  bool ok = p && moved;
  if (!ok) api_fail(err, SINEW_ERR_MEMORY, "%s: out of memory", who);
  for (size_t i = 0; ok && i < 2 * n; ++i) {
    const SinewModel *m = i < n ? plus[i] : minus[i - n];
    char name[64];
    snprintf(name, sizeof name, "%s[%zu]", i < n ? "plus" : "minus", i % n);
    ok = m != NULL;
    if (!ok) api_fail(err, SINEW_ERR_ARGUMENT, "%s: %s is NULL", who, name);
    ok = ok && api_model_same_structure(model, m, name, err) == SINEW_OK;
    if (ok) moved[i] = m->model;
  }
  if (ok) {
    p->tangents = sn_model_tangents_create(model->model, moved, moved + n, step, count, &why);
    ok = p->tangents != NULL;
    if (!ok) api_fail(err, (SinewStatus)why.code, "%s", why.text);
  }
  free(moved);
  if (ok) {
    p->structure = api_model_structure(model);
    api_ok(err);
    return p;
  }
  sinew_parameters_free(p);
  return NULL;
}

void sinew_parameters_free(SinewParameters *p) {
  if (!p) return;
  sn_model_tangents_free(p->tangents);
  free(p);
}

int sinew_parameters_count(const SinewParameters *p) { return p ? sn_model_tangents_count(p->tangents) : 0; }

SinewStatus api_parameters_fit(const SinewParameters *p, uint64_t structure, SinewError *err) {
  if (p->structure == structure) return SINEW_OK;
  return api_fail(err, SINEW_ERR_ARGUMENT, "parameters: they are those of a model of another structure");
}

SinewStatus api_bars_make(ApiBars *bars, const SinewParameters *p, size_t count, SinewError *err) {
  const size_t size = sn_model_bar_size(p->tangents);
  *bars = (ApiBars){.bar = calloc(count + 1, sizeof *bars->bar),
                    .memory = count < SIZE_MAX / size ? aligned_alloc(64, size * (count + 1)) : NULL};
  if (!bars->bar || !bars->memory) {
    api_bars_free(bars);
    return api_fail(err, SINEW_ERR_MEMORY, "derivatives by %d parameters take %zu bytes a rollout: out of memory",
                    sinew_parameters_count(p), size);
  }
  for (size_t i = 0; i < count; ++i) sn_model_bar_init(p->tangents, &bars->bar[i], (char *)bars->memory + i * size);
  return SINEW_OK;
}

void api_bars_free(ApiBars *bars) {
  free(bars->bar);
  free(bars->memory);
  *bars = (ApiBars){0};
}
