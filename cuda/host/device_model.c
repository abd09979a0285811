// Models on the device: found by content or uploaded, in one allocation by one copy. The arrays come as the program
// set them up, in double, and are converted here: nothing is set up in another number type.
#include <stdio.h>
#include <stdlib.h>

#include "cuda/host/host.h"

// ---- the image: everything of a model and a cost, as the device will have it ----

typedef struct ModelImage {
  char *host;    // NULL: only counted
  char *device;  // where it will be; NULL: not known yet
  size_t used;
} ModelImage;

// Adds an array of n entries of `bytes`, converted where it holds real numbers. Returns its place on the device.
static void *image_array(ModelImage *image, const void *from, size_t n, size_t bytes, bool real) {
  char *to = sn_cut(image->host, &image->used, n * bytes);
  if (to && from && real) {
    for (size_t i = 0; i < n; ++i) ((sn_real *)(void *)to)[i] = (sn_real)((const double *)from)[i];
  } else if (to && from && n) {
    memcpy(to, from, n * bytes);
  }
  return image->device ? image->device + (image->used - sn_aligned(n * bytes)) : NULL;
}

// Names stay on the host.
static bool is_name(const char *field) { return strncmp(field, "name", 4) == 0; }

static void image_model(ModelImage *image, const SnParts *parts, SnModel *m) {
  int k = 0;
  *m = (SnModel){0};
#define SN_SIZE(name)                          \
  const int name = m->name = parts->size[k++]; \
  (void)name;
#include "physics/model/model_sizes.inc"
#include "physics/model/setup_sizes.inc"
#undef SN_SIZE
  k = 0;
#define SN_OPTION(type, name, count) \
  for (int i = 0; i < (count); ++i) ((type *)(void *)&m->opt.name)[i] = (type)parts->option[k++];
#include "physics/model/option_fields.inc"
#undef SN_OPTION
  // Part of what models are found by.
  image_array(image, parts->size, (size_t)parts->nsize, sizeof(int), false);
  image_array(image, parts->option, (size_t)parts->noption, sizeof(double), false);
  k = 0;
#define SN_MODEL_FIELD(type, name, rows, cols)                                                                         \
  if (!is_name(#name))                                                                                                 \
    m->name =                                                                                                          \
        (type *)image_array(image, parts->field[k], (size_t)(rows) * (size_t)(cols), sizeof(type), SN_IS_REAL_##type); \
  ++k;
#include "physics/model/model_fields.inc"
#include "physics/model/setup_fields.inc"
#undef SN_MODEL_FIELD
}

// Weights are not part of it: they come with every rollout.
static bool is_weight(const char *field) { return strcmp(field, "weight") == 0 || strcmp(field, "terminal") == 0; }

static void image_cost(ModelImage *image, const SnParts *parts, SnCost *c) {
  int k = 0;
  *c = (SnCost){0};
#define SN_COST_SIZE(name) c->name = parts->size[k++];
#include "planner/cost/cost_fields.inc"
  image_array(image, parts->size, (size_t)parts->nsize, sizeof(int), false);
  k = 0;
#define SN_COST_FIELD(type, name, rows, cols)                                                                          \
  if (!is_weight(#name))                                                                                               \
    c->name =                                                                                                          \
        (type *)image_array(image, parts->field[k], (size_t)(rows) * (size_t)(cols), sizeof(type), SN_IS_REAL_##type); \
  ++k;
#include "planner/cost/cost_fields.inc"
}

// An array of a model, as the program has it; NULL: there is none.
static const void *model_array(const SnParts *parts, const char *array) {
  int k = 0;
  const void *found = NULL;
#define SN_MODEL_FIELD(type, name, rows, cols)            \
  if (strcmp(#name, array) == 0) found = parts->field[k]; \
  ++k;
#include "physics/model/model_fields.inc"
#include "physics/model/setup_fields.inc"
#undef SN_MODEL_FIELD
  return found;
}

// Name of a model: the first of its names.
static const char *model_name(const SnParts *parts) {
  const char *names = model_array(parts, "names");
  return names ? names : "";
}

static SnCode check_lists(const SnDeviceHost *host, const SnParts *model, const SnParts *cost, SnError *err) {
  const bool same = model->nsize == SN_MODEL_NSIZE && model->noption == SN_MODEL_NOPTION &&
                    model->nfield == SN_MODEL_NFIELD && cost->nsize == SN_COST_NSIZE && cost->nfield == SN_COST_NFIELD;
  if (same) return SN_OK;
  return sn_fail(err, SN_ERR_UNSUPPORTED,
                 "%s: the program's models have %d sizes, %d options and %d arrays, its costs %d and %d; the library's "
                 "have %d, %d and %d, %d and %d: they are of different versions",
                 host->device->name, model->nsize, model->noption, model->nfield, cost->nsize, cost->nfield,
                 SN_MODEL_NSIZE, SN_MODEL_NOPTION, SN_MODEL_NFIELD, SN_COST_NSIZE, SN_COST_NFIELD);
}

// ---- upload ----

// Rollouts whose worlds have a thread each. The memory of threads is part of the budget, and stays taken.
static SnCode choose_thread(SnDeviceModel *d, const SnParts *model, SnError *err) {
  SnDeviceHost *host = d->host;
  SnDevice *device = host->device;
  const size_t before = device->thread_taken;
  device->thread_room = host->budget > host->used ? host->budget - host->used : 0;
  const SnCode code = sn_thread_shape_choose(device, &d->m, model_array(model, "src_size"),
                                             model_array(model, "src_nnz"), &d->thread, err);
  host->used += device->thread_taken - before;
  return code;
}

// A world has a warp, and one of a rollout what was asked for: more lanes than a warp hardly shorten its path
// (cuda/MEASURED.md), and take the room of other worlds.
static SnCode choose_shapes(SnDeviceModel *d, const SnParts *model, SnError *err) {
  SnDevice *device = d->host->device;
  const int asked = d->host->block_threads;
  SnCode code = sn_world_place(&d->m, SN_LAYOUT_LINE, &d->state, err);
  for (int k = 0; code == SN_OK && k < SN_NKERNEL; ++k) {
    const int threads = k == SN_KERNEL_ROLLOUT && asked == SN_PART_OF_WARP ? asked : SN_WARP;
    code = sn_shape_choose(device, &d->m, (SnKernel)k, threads, &d->shape[k], err);
  }
  if (code == SN_OK && asked == 0)
    code = sn_part_shape_choose(device, &d->m, model_array(model, "src_size"), model_array(model, "src_nnz"), &d->many,
                                &d->limits, err);
  return code == SN_OK && asked == 1 ? choose_thread(d, model, err) : code;
}

// The arrays of a new model go to the device; image holds them.
static SnCode upload(SnDeviceModel *d, const SnParts *model, const SnParts *cost, SnError *err) {
  SnDeviceHost *host = d->host;
  SnDevice *device = host->device;
  const SnBackendModel session = {.host = host, .model = d};  // no horizon: it is about the model itself
  SnCode code = sn_host_admit(&session, d->image_bytes, 0, "", err);
  if (code != SN_OK) return code;
  d->memory = sn_device_buffer_alloc(host, d->image_bytes);
  char *copy = device->alloc_host(device, d->image_bytes);
  d->stream = device->stream(device);
  const bool ok = d->memory.p && copy && d->stream;
  if (ok) {
    ModelImage image = {copy, d->memory.p, 0};
    image_model(&image, model, &d->m);
    image_cost(&image, cost, &d->cost);
    device->copy_in(device, d->stream, d->memory.p, copy, d->image_bytes);
    device->wait(device, d->stream);
  }
  if (copy) device->release_host(device, copy);
  code = ok && !device->lost ? choose_shapes(d, model, err) : SN_ERR_LIMIT;
  return ok && !device->lost ? code : sn_host_refuse(&session, d->image_bytes, "", err);
}

static void model_free(SnDeviceModel *d) {
  SnDeviceHost *host = d->host;
  if (d->stream) {
    host->device->wait(host->device, d->stream);
    host->device->free_stream(host->device, d->stream);
  }
  sn_model_memory_free(d);
  sn_device_buffer_free(host, &d->memory);
  sn_staging_free(host, &d->marks);
  free(d->image);
  free(d);
}

static SnDeviceModel *find(SnDeviceHost *host, const SnDeviceModel *like) {
  for (SnDeviceModel *d = host->models; d; d = d->next)
    if (d->image_bytes == like->image_bytes && memcmp(d->image, like->image, like->image_bytes) == 0) return d;
  return NULL;
}

SnDeviceModel *sn_device_model_get(SnDeviceHost *host, const SnParts *model, const SnParts *cost, SnError *err) {
  if (check_lists(host, model, cost, err) != SN_OK) return NULL;
  SnDeviceModel *d = calloc(1, sizeof *d);
  ModelImage image = {0};
  if (d) {
    d->host = host;
    snprintf(d->name, sizeof d->name, "%s", model_name(model));
    image_model(&image, model, &d->m);
    image_cost(&image, cost, &d->cost);
    d->image_bytes = image.used;
    d->image = image.host = calloc(1, image.used);
  }
  if (!d || !d->image) {
    free(d);
    sn_fail(err, SN_ERR_MEMORY, "%s: out of memory", host->device->name);
    return NULL;
  }
  image.used = 0;
  image_model(&image, model, &d->m);
  image_cost(&image, cost, &d->cost);
  SnDeviceModel *there = find(host, d);
  if (there || upload(d, model, cost, err) != SN_OK) {
    model_free(d);
    return there;
  }
  d->next = host->models;
  host->models = d;
  return d;
}

// ---- sessions of a model ----

void sn_device_model_enter(SnDeviceModel *d, SnBackendModel *x) {
  x->model = d;
  x->next = d->session;
  d->session = x;
}

void sn_device_model_leave(SnBackendModel *x) {
  SnDeviceModel *d = x->model;
  if (!d) return;
  SnDeviceHost *host = d->host;
  host->device->wait(host->device, d->stream);
  sn_rollouts_free(x);
  sn_gradients_free(x);
  sn_multistarts_free(x);
  SnBackendModel **at = &d->session;
  while (*at != x) at = &(*at)->next;
  *at = x->next;
  x->next = NULL;
  x->model = NULL;
  if (d->session) return;
  SnDeviceModel **link = &host->models;
  while (*link != d) link = &(*link)->next;
  *link = d->next;
  model_free(d);
}

SnCode sn_device_model_change(SnBackendModel *x, SnError *err) {
  SnError local = {.code = SN_OK};
  SnError *e = err ? err : &local;
  SnDeviceModel *to = sn_device_model_get(x->host, &x->model_view.parts, &x->cost_view.parts, e);
  if (to && to == x->model) return SN_OK;
  sn_device_model_leave(x);
  if (!to) return e->code;
  int capacity[SN_NCAPACITY];
  memcpy(capacity, x->capacity, sizeof capacity);
  memset(x->capacity, 0, sizeof x->capacity);
  sn_device_model_enter(to, x);
  SnCode code = SN_OK;
  for (int k = 0; code == SN_OK && k < SN_NCAPACITY; ++k) code = sn_session_reserve(x, (SnCapacity)k, capacity[k], e);
  if (code == SN_OK) return code;
  sn_device_model_leave(x);
  memcpy(x->capacity, capacity, sizeof capacity);  // for the next try
  return code;
}

SnCode sn_session_reserve(SnBackendModel *x, SnCapacity kind, int n, SnError *err) {
  SnCode (*const reserve[SN_NCAPACITY])(SnBackendModel *, int, SnError *) = {
      sn_rollouts_reserve, sn_batches_reserve, sn_gradients_reserve, sn_multistarts_reserve};
  if (!x->model)
    return sn_fail(err, SN_ERR_STATE, "%s: the session has no model since its cost was changed", x->host->device->name);
  if (x->host->device->lost) return sn_host_refuse(x, 0, "", err);
  if (n <= x->capacity[kind]) return SN_OK;
  x->host->device->wait(x->host->device, x->model->stream);  // memory of blocks may move
  const SnCode code = reserve[kind](x, n, err);
  if (code == SN_OK) x->capacity[kind] = n;
  return code;
}

// ---- profiles ----

// Blocks that any launch of the model has at most.
static size_t most_blocks(const SnDeviceModel *d) {
  int most = d->many.resident;
  for (int k = 0; k < SN_NKERNEL; ++k) most = sn_maxi(most, d->shape[k].resident);
  return (size_t)most;
}

int sn_device_profile(SnDeviceModel *d, SnBackendStage *stage, int capacity) {
  SnDeviceHost *host = d->host;
  SnStaging *p = &d->marks;
  const size_t blocks = most_blocks(d), bytes = blocks * SN_NMARK * sizeof(unsigned long long);
  host->device->wait(host->device, d->stream);
  if (!p->host && !sn_staging_create(host, p, bytes)) return 0;
  sn_staging_begin(p);
  unsigned long long *ticks = sn_staging_put(p, bytes, NULL);
  sn_staging_fetch(d, p);
  host->device->wait(host->device, d->stream);
  for (int k = 0; k < SN_NMARK && k < capacity; ++k) {
    stage[k] = (SnBackendStage){.name = sn_mark_name((SnMark)k)};
    for (size_t b = 0; b < blocks; ++b) stage[k].time += (double)ticks[b * SN_NMARK + (size_t)k];
  }
  memset(ticks, 0, bytes);
  sn_staging_send(d, p, false);
  host->device->wait(host->device, d->stream);
  return host->device->lost ? 0 : SN_NMARK;
}
