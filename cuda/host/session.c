// A session: what one planner has loaded. The program's model and cost are looked at through views whose arrays stay
// where they are, so that what changes live, weights and what a term follows, is read there when work begins.
#include <stdlib.h>

#include "cuda/host/host.h"

// Places of a cost's arrays in its view.
enum {
#define SN_COST_FIELD(type, name, rows, cols) FIELD_##name,
#include "planner/cost/cost_fields.inc"
};

// Copies views; their arrays stay those of the program.
static void take_views(SnBackendModel *x, const SnParts *model, const SnParts *cost) {
  SnModelView *m = &x->model_view;
  SnCostView *c = &x->cost_view;
  memcpy(m->size, model->size, sizeof m->size);
  memcpy(m->option, model->option, sizeof m->option);
  memcpy(m->field, model->field, sizeof m->field);
  m->parts = (SnParts){model->nsize, model->noption, model->nfield, m->size, m->option, m->field};
  memcpy(c->size, cost->size, sizeof c->size);
  memcpy(c->field, cost->field, sizeof c->field);
  c->parts = (SnParts){cost->nsize, 0, cost->nfield, c->size, NULL, c->field};
}

// Places of its sizes.
enum {
#define SN_COST_SIZE(name) SIZE_##name,
#include "planner/cost/cost_fields.inc"
};

static size_t follows_bytes(const SnBackendModel *x) {
  return sizeof *x->follows * (size_t)x->cost_view.size[SIZE_nall];
}

SnBackendModel *sn_session_create(SnDeviceHost *host, const SnParts *model, const SnParts *cost, int max_step,
                                  SnError *err) {
  SnBackendModel *x = calloc(1, sizeof *x);
  if (!x) {
    sn_fail(err, SN_ERR_MEMORY, "%s: out of memory", host->device->name);
    return NULL;
  }
  x->host = host;
  x->max_step = max_step;
  SnDeviceModel *d = sn_device_model_get(host, model, cost, err);
  if (!d) {
    free(x);
    return NULL;
  }
  sn_device_model_enter(d, x);
  take_views(x, model, cost);
  x->follows = malloc(follows_bytes(x) + 1);
  if (!x->follows) {
    sn_session_free(x);
    sn_fail(err, SN_ERR_MEMORY, "%s: out of memory", host->device->name);
    return NULL;
  }
  memcpy(x->follows, x->cost_view.field[FIELD_term_follows], follows_bytes(x));
  return x;
}

void sn_session_free(SnBackendModel *x) {
  if (!x) return;
  sn_device_model_leave(x);
  free(x->follows);
  free(x);
}

void sn_session_update(SnBackendModel *x) {
  const void *now = x->cost_view.field[FIELD_term_follows];
  if (memcmp(x->follows, now, follows_bytes(x)) == 0) return;
  if (sn_device_model_change(x, NULL) == SN_OK) memcpy(x->follows, now, follows_bytes(x));
}

void sn_staging_weights(SnStaging *s, const SnBackendModel *x, SnRollout *rollout) {
  const size_t nterm = (size_t)x->model->cost.nterm;
  rollout->running = sn_staging_reals(s, x->cost_view.field[FIELD_weight], nterm);
  rollout->terminal = sn_staging_reals(s, x->cost_view.field[FIELD_terminal], nterm);
}
