#include "physics/model/model_view.h"

SnCode sn_model_view(const SnModel *m, SnModelView *view, SnError *err) {
  if (sizeof(sn_real) != sizeof(double))
    return sn_fail(err, SN_ERR_UNSUPPORTED, "a program whose numbers are floats hands no model to a backend's library");
  int n = 0;
#define SN_SIZE(name) view->size[n++] = m->name;
#include "physics/model/model_sizes.inc"
#include "physics/model/setup_sizes.inc"
#undef SN_SIZE
  n = 0;
  // &m->opt.name as an array of its type: one entry or several.
#define SN_OPTION(type, name, count) \
  for (int k = 0; k < (count); ++k) view->option[n++] = (double)((const type *)(const void *)&m->opt.name)[k];
#include "physics/model/option_fields.inc"
#undef SN_OPTION
  n = 0;
#define SN_MODEL_FIELD(type, name, rows, cols) view->field[n++] = m->name;
#include "physics/model/model_fields.inc"
#include "physics/model/setup_fields.inc"
#undef SN_MODEL_FIELD
  view->parts = (SnParts){SN_MODEL_NSIZE, SN_MODEL_NOPTION, SN_MODEL_NFIELD, view->size, view->option, view->field};
  return SN_OK;
}
