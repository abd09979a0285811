// Models: sizes, names, ranges, and the handle itself.
#include <math.h>
#include <stdlib.h>

#include "clients/libsinew/model_private.h"
#include "physics/world/history.h"

static SinewSizes sizes_of(const SnModel *m) {
  return (SinewSizes){.nq = m->nq,
                      .nv = m->nv,
                      .na = m->na,
                      .nu = m->nu,
                      .nbody = m->nbody,
                      .njnt = m->njnt,
                      .ngeom = m->ngeom,
                      .nsite = m->nsite,
                      .ntendon = m->ntendon,
                      .nactuator = m->nactuator,
                      .neq = m->neq,
                      .nmocap = m->nmocap,
                      .nkey = m->nkey,
                      .nsensor = m->nsensor,
                      .nsensordata = m->nsensordata,
                      .nstate = 2 * m->nv + m->na,
                      .nhistory = sn_past_size(m),
                      .nplastic = m->nplastic};
}

static void fill_ctrl_range(const SnModel *m, double *range) {
  for (int i = 0; i < m->nu; ++i) {
    range[2 * i] = m->ctrl_limited[i] ? m->ctrl_range[2 * i] : -INFINITY;
    range[2 * i + 1] = m->ctrl_limited[i] ? m->ctrl_range[2 * i + 1] : INFINITY;
  }
}

// Shows a model of the engine. NULL and err when out of memory.
static SinewModel *show(SnModel *m, bool borrowed, SinewError *err) {
  SinewModel *model = calloc(1, sizeof *model);
  if (model) model->ctrl_range = calloc(2 * (size_t)m->nu + 1, sizeof *model->ctrl_range);
  if (!model || !model->ctrl_range) {
    free(model);
    api_fail(err, SINEW_ERR_MEMORY, "model: out of memory");
    return NULL;
  }
  model->model = m;
  model->borrowed = borrowed;
  model->sizes = sizes_of(m);
  fill_ctrl_range(m, model->ctrl_range);
  api_ok(err);
  return model;
}

SinewModel *api_model_wrap(SnModel *m, SinewError *err) {
  SinewModel *model = show(m, false, err);
  if (!model) sn_model_free(m);
  return model;
}

SinewModel *api_model_view(const SnModel *m, SinewError *err) { return show((SnModel *)(uintptr_t)m, true, err); }

void sinew_model_free(SinewModel *model) {
  if (!model) return;
  if (!model->borrowed) sn_model_free(model->model);
  free(model->ctrl_range);
  free(model);
}

const SinewSizes *sinew_model_sizes(const SinewModel *model) { return model ? &model->sizes : NULL; }

const double *sinew_model_ctrl_range(const SinewModel *model) { return model ? model->ctrl_range : NULL; }

_Static_assert((int)SINEW_BODY == (int)SN_NAME_BODY && (int)SINEW_JOINT == (int)SN_NAME_JNT &&
                   (int)SINEW_GEOM == (int)SN_NAME_GEOM && (int)SINEW_SITE == (int)SN_NAME_SITE &&
                   (int)SINEW_TENDON == (int)SN_NAME_TENDON && (int)SINEW_ACTUATOR == (int)SN_NAME_ACTUATOR &&
                   (int)SINEW_SENSOR == (int)SN_NAME_SENSOR && (int)SINEW_KEYFRAME == (int)SN_NAME_KEY &&
                   (int)SINEW_EQUALITY == (int)SN_NAME_EQ,
               "kinds of names of the engine and of the library differ");

// Whether `kind` is one of the list: callers may hand in any number.
static bool is_kind(SinewObject kind) { return (int)kind >= (int)SINEW_BODY && kind <= SINEW_EQUALITY; }

int sinew_model_find(const SinewModel *model, SinewObject kind, const char *name) {
  return model && name && is_kind(kind) ? sn_model_find(model->model, (SnNameKind)kind, name) : -1;
}

const char *sinew_model_name(const SinewModel *model, SinewObject kind, int id) {
  return model && is_kind(kind) ? sn_model_name(model->model, (SnNameKind)kind, id) : "";
}

int sinew_model_count(const SinewModel *model, SinewObject kind) {
  return model && is_kind(kind) ? sn_model_count(model->model, (SnNameKind)kind) : 0;
}
