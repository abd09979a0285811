// Arrays of a body under MuJoCo's names.
//
// A step computes what something reads (sn_model_need_all). Who asks for more gets it from the next step or forward on:
// the body goes over to a view of the model that leaves nothing out. What was not computed until then is NaN.
#include <math.h>
#include <string.h>

#include "clients/libsinew/data_private.h"

// The fields of a world by name.
typedef enum WorldField {
#define SN_WORLD_FIELD(stage, type, name, rows, cols) WORLD_##name,
#include "physics/world/world_fields.inc"
#undef SN_WORLD_FIELD
} WorldField;

// Tells type and shape of a field of a world, and where it lies.
static void *world_field(const SnModel *m, const SnWorld *w, WorldField i, SinewField *field) {
  switch (i) {
#define SN_WORLD_FIELD(stage, type, name, rowcount, colcount)          \
  case WORLD_##name:                                                   \
    field->integer = _Generic(w->name, int * : true, default : false); \
    field->rows = (int)(rowcount);                                     \
    field->cols = (int)(colcount);                                     \
    return w->name;
#include "physics/world/world_fields.inc"
#undef SN_WORLD_FIELD
  }
  return NULL;
}

typedef enum Role { INPUT, OUTPUT, LEAN } Role;
typedef enum Count { FIXED, ROWS, ENTRIES } Count;

// The list of data_fields.inc.
typedef enum DataField {
#define DATA_WORLD(name, role, count) DATA_##name,
#define DATA_OWN(name, role, rows, cols) DATA_##name,
#define DATA_PAST(name, first, rows) DATA_##name,
#include "clients/libsinew/data_fields.inc"
#undef DATA_WORLD
#undef DATA_OWN
#undef DATA_PAST
  DATA_FIELDS
} DataField;

static const struct {
  const char *name;
  Role role;
} list[DATA_FIELDS] = {
#define DATA_WORLD(name, role, count) {#name, role},
#define DATA_OWN(name, role, rows, cols) {#name, role},
#define DATA_PAST(name, first, rows) {#name, INPUT},
#include "clients/libsinew/data_fields.inc"
#undef DATA_WORLD
#undef DATA_OWN
#undef DATA_PAST
};

// Rows that there are of what has room for `rows`.
static int present_rows(const SnWorld *w, Count count, int rows) {
  if (count == FIXED) return rows;
  if (count == ROWS) return *w->nefc;
  int entries = 0;
  for (int i = 0; i < *w->nefc; ++i) entries += w->efc_J_rownnz[i];
  return entries;
}

// Describes field i, and returns where it lies.
static void *data_field(const SinewData *data, DataField i, SinewField *field) {
  const SnModel *m = &data->body->model;
  const SnWorld *w = &data->body->world;
  void *at = NULL;
  switch (i) {
#define DATA_WORLD(name, role, count)                    \
  case DATA_##name:                                      \
    at = world_field(m, w, WORLD_##name, field);         \
    field->rows = present_rows(w, (count), field->rows); \
    break;
#define DATA_OWN(name, role, rowcount, colcount)                          \
  case DATA_##name:                                                       \
    at = data->name;                                                      \
    field->integer = _Generic(data->name, int * : true, default : false); \
    field->rows = (rowcount);                                             \
    field->cols = (colcount);                                             \
    break;
#define DATA_PAST(name, first, rowcount)     \
  case DATA_##name:                          \
    at = w->past ? w->past + (first) : NULL; \
    field->integer = false;                  \
    field->rows = (rowcount);                \
    field->cols = 1;                         \
    break;
#include "clients/libsinew/data_fields.inc"
#undef DATA_WORLD
#undef DATA_OWN
#undef DATA_PAST
    case DATA_FIELDS:
      break;
  }
  field->name = list[i].name;
  field->input = list[i].role == INPUT;
  return at;
}

// Whether steps of model m compute subtree_com of body i.
static bool has_com(const SnModel *m, int i) {
  for (int r = 0; r < m->nroot; ++r)
    if (m->root_body[r] == i) return true;
  for (int k = 0; k < m->ncom; ++k)
    if (m->com_list[k] == i) return true;
  return false;
}

// NaN, and no path points, where steps of model m have left something out.
static void mark_left_out(const SnModel *m, SnWorld *w) {
  for (int i = 0; i < m->nbody; ++i) {
    if (!has_com(m, i)) api_fill_nan(w->subtree_com + 3 * i, 3);
    if (m->link_of_body[i] == 0) continue;
    api_fill_nan(w->xipos + 3 * i, 3);
    api_fill_nan(w->ximat + 9 * i, 9);
  }
  for (int i = 0; i < m->ngeom; ++i) {
    if (m->link_of_geom[i] == 0 || m->need_geom[i]) continue;
    api_fill_nan(w->geom_xpos + 3 * i, 3);
    api_fill_nan(w->geom_xmat + 9 * i, 9);
  }
  for (int i = 0; i < m->nsite; ++i) {
    if (m->link_of_site[i] == 0) continue;
    if (m->need_site[i] < 1) api_fill_nan(w->site_xpos + 3 * i, 3);
    if (m->need_site[i] < 2) api_fill_nan(w->site_xmat + 9 * i, 9);
  }
  api_fill_nan(w->wrap_xpos, 6 * (size_t)m->nwrap);
  for (int i = 0; i < m->ntendon; ++i) w->ten_wrapadr[i] = w->ten_wrapnum[i] = 0;
  for (int i = 0; i < 2 * m->nwrap; ++i) w->wrap_obj[i] = 0;
}

// From now on steps leave nothing out. Returns false when out of memory.
static bool leave_nothing_out(SinewData *data) {
  SnGrowingWorld *g = data->body;
  if (g->model.need_all) return true;
  data->all = sn_model_view_all(data->model->model, NULL);
  if (!data->all) return false;
  mark_left_out(&g->model, &g->world);
  sn_growing_world_set_model(g, data->all);
  return true;
}

// The array of a name and type, NULL when there is none.
static void *find_array(SinewData *data, const char *name, bool integer, int *rows, int *cols) {
  SinewField field = {.rows = 0};
  void *at = NULL;
  int i = 0;
  while (data && name && i < DATA_FIELDS && strcmp(list[i].name, name) != 0) ++i;
  if (data && name && i < DATA_FIELDS) at = data_field(data, (DataField)i, &field);
  const bool found = field.name && field.integer == integer;
  if (found && list[i].role == LEAN && !leave_nothing_out(data)) return NULL;
  if (rows) *rows = found ? field.rows : 0;
  if (cols) *cols = found ? field.cols : 0;
  return !found ? NULL : at ? at : data->sensordata;  // an empty array has no place of its own
}

double *sinew_data_array(SinewData *data, const char *name, int *rows, int *cols) {
  return find_array(data, name, false, rows, cols);
}

int *sinew_data_int_array(SinewData *data, const char *name, int *rows, int *cols) {
  return find_array(data, name, true, rows, cols);
}

bool sinew_data_field(const SinewData *data, int i, SinewField *field) {
  if (!data || !field || i < 0 || i >= DATA_FIELDS) return false;
  data_field(data, (DataField)i, field);
  return true;
}
