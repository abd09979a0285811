// Makes a backend of a library (planner/backend/plugin.h). The program's numbers are doubles, as all that cross the
// interface, so arrays are handed over where they are; structures are copied field by field. A program whose numbers
// are floats has no such backends.
#include "planner/backend/backend_plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "planner/backend/plugin.h"

typedef struct PluginBackend {
  SnBackend table;  // first: a pointer to it is a pointer to the backend
  SnPlugin *plugin;
} PluginBackend;

struct SnBackendModel {
  SnPluginSession *session;
  const SnModel *m;
  const SnCost *cost;
  int *follows;  // term_follows as the library has it (nall)
  int rollouts;  // that there is room for
  // A batch of rollouts or gradients that is under way, and a job.
  bool rolling, deriving;
  SnPluginGradientBatch gradients;
  int capacity;  // of gradients.item
  const SnMultistartJob *job;
  SnPluginMultistart multistart;
};

static SnPlugin *plugin_of(const SnBackend *b) { return ((const PluginBackend *)b)->plugin; }

// ---- structures ----

// An array of the program as one of doubles: the same, see the head of this file.
static double *doubles(const sn_real *x) { return (double *)(uintptr_t)x; }

static SnPluginCfd plugin_cfd(const SnCfd *cfd) {
  SnPluginCfd to = {0};
  if (!cfd) return to;
  to = (SnPluginCfd){.on = cfd->on,
                     .surrogate = cfd->surrogate,
                     .friction = cfd->friction,
                     .width = (double)cfd->width,
                     .pair = cfd->pair};
  for (int k = 0; k < SN_NIMP; ++k) to.solimp[k] = (double)cfd->solimp[k];
  return to;
}

static SnPluginState plugin_state(const SnState *s) {
  return (SnPluginState){.time = s->time,
                         .qpos = doubles(s->qpos),
                         .qvel = doubles(s->qvel),
                         .act = doubles(s->act),
                         .mocap_pos = doubles(s->mocap_pos),
                         .mocap_quat = doubles(s->mocap_quat),
                         .qacc_warmstart = doubles(s->qacc_warmstart),
                         .cfd = plugin_cfd(s->cfd)};
}

static SnPluginNoise plugin_noise(const SnNoise *n) {
  return (SnPluginNoise){.seed = n->seed,
                         .plan = n->plan,
                         .iteration = n->iteration,
                         .spacing = n->spacing,
                         .phase = n->phase,
                         .knots = n->knots,
                         .interpolation = n->interpolation,
                         .colour = n->colour,
                         .scale = (double)n->scale};
}

static SnPluginWeights plugin_weights(const SnBackendModel *x) {
  return (SnPluginWeights){doubles(x->cost->weight), doubles(x->cost->terminal)};
}

static SnPluginClock plugin_clock(const SnClock *clock) { return (SnPluginClock){clock->now, clock->context}; }

// ---- models ----

static void plugin_describe(const SnBackend *b, char *text, int size) {
  const SnPlugin *p = plugin_of(b);
  p->describe(p, text, size);
}

static void plugin_unload(SnBackend *b, SnBackendModel *x) {
  if (!x) return;
  if (x->session) plugin_of(b)->unload(plugin_of(b), x->session);
  free(x->gradients.item);
  free(x->follows);
  free(x);
}

static void remember_follows(SnBackendModel *x) {
  memcpy(x->follows, x->cost->term_follows, sizeof *x->follows * (size_t)x->cost->nall);
}

static SnBackendModel *plugin_load(SnBackend *b, const SnModel *m, const SnCost *cost, int max_step, SnError *err) {
  SnPlugin *p = plugin_of(b);
  SnModelView model;
  SnCostView view;
  if (sn_model_view(m, &model, err) != SN_OK || sn_cost_view(cost, &view, err) != SN_OK) return NULL;
  SnBackendModel *x = calloc(1, sizeof *x);
  if (x) x->follows = calloc((size_t)cost->nall + 1, sizeof *x->follows);
  if (!x || !x->follows) {
    free(x);
    sn_fail(err, SN_ERR_MEMORY, "%s backend: out of memory", b->name);
    return NULL;
  }
  x->m = m;
  x->cost = cost;
  remember_follows(x);
  x->session = p->load(p, &model.parts, &view.parts, max_step, err);
  if (x->session && p->reserve(p, x->session, 1, 0, 0, err) == SN_OK) {
    x->rollouts = 1;
    return x;
  }
  plugin_unload(b, x);
  return NULL;
}

// Weights and rows of targets go with every call; whether a term follows an element is part of the cost's structure.
static void plugin_update(SnBackend *b, SnBackendModel *x) {
  SnPlugin *p = plugin_of(b);
  SnModelView model;
  SnCostView view;
  if (memcmp(x->follows, x->cost->term_follows, sizeof *x->follows * (size_t)x->cost->nall) == 0) return;
  if (sn_model_view(x->m, &model, NULL) != SN_OK || sn_cost_view(x->cost, &view, NULL) != SN_OK) return;
  // Where it fails nothing is computed until it succeeds: what begins tries again, and what asks for room gets a text.
  if (p->update(p, x->session, &model.parts, &view.parts, NULL) == SN_OK) remember_follows(x);
}

// ---- rollouts ----

static SnCode plugin_reserve_rollouts(SnBackend *b, SnBackendModel *x, int count, SnError *err) {
  SnPlugin *p = plugin_of(b);
  if (count <= x->rollouts) return SN_OK;
  const SnCode code = p->reserve(p, x->session, count, 0, 0, err);
  if (code == SN_OK) x->rollouts = count;
  return code;
}

// noise: room for that of the batch.
static SnPluginBatch plugin_batch(const SnBackendModel *x, const SnBatch *batch, SnPluginNoise *noise) {
  if (batch->noise) *noise = plugin_noise(batch->noise);
  return (SnPluginBatch){.state = plugin_state(&batch->state),
                         .weights = plugin_weights(x),
                         .ctrl = doubles(batch->ctrl),
                         .target = doubles(batch->target),
                         .noise = batch->noise ? noise : NULL,
                         .nstep = batch->nstep,
                         .first = batch->first,
                         .count = batch->count,
                         .max_velocity = batch->max_velocity,
                         .cost = batch->cost,
                         .term = batch->term,
                         .done = batch->done,
                         .warn = batch->warn};
}

// A new batch.
static void begin_batch(SnBackend *b, SnBackendModel *x, const SnBatch *batch) {
  if (x->rolling) return;
  plugin_update(b, x);
  // Where nobody has asked for room, the first batch of its size makes it; without memory there are more groups.
  plugin_reserve_rollouts(b, x, batch->count, NULL);
  x->rolling = true;
}

static void plugin_rollouts_submit(SnBackend *b, SnBackendModel *x, const SnBatch *batch) {
  SnPlugin *p = plugin_of(b);
  if (batch->count == 0) return;
  begin_batch(b, x, batch);
  SnPluginNoise noise;
  const SnPluginBatch to = plugin_batch(x, batch, &noise);
  p->rollouts_submit(p, x->session, &to);
}

static bool plugin_rollouts(SnBackend *b, SnBackendModel *x, const SnBatch *batch, const SnClock *clock, double until) {
  SnPlugin *p = plugin_of(b);
  if (batch->count == 0) return true;
  const SnPluginClock time = plugin_clock(clock);
  begin_batch(b, x, batch);
  SnPluginNoise noise;
  const SnPluginBatch to = plugin_batch(x, batch, &noise);
  const bool all = p->rollouts(p, x->session, &to, &time, until);
  x->rolling = !all;
  return all;
}

// ---- gradients ----

static SnCode plugin_reserve_gradients(SnBackend *b, SnBackendModel *x, int count, SnError *err) {
  SnPlugin *p = plugin_of(b);
  if (count <= x->capacity) return SN_OK;
  SnPluginGradient *item = calloc((size_t)count, sizeof *item);
  if (!item) return sn_fail(err, SN_ERR_MEMORY, "%s backend: out of memory", b->name);
  const SnCode code = p->reserve(p, x->session, 0, count, 0, err);
  if (code != SN_OK) {
    free(item);
    return code;
  }
  free(x->gradients.item);
  x->gradients.item = item;
  x->capacity = count;
  return SN_OK;
}

static SnPluginGradient plugin_gradient(const SnGradient *g) {
  return (SnPluginGradient){.state = plugin_state(&g->state),
                            .ctrl = doubles(g->ctrl),
                            .target = doubles(g->target),
                            .nstep = g->nstep,
                            .max_velocity = g->max_velocity,
                            .continues = g->continues,
                            .status = (int)g->status,
                            .cost = g->cost,
                            .term = g->term,
                            .ctrl_bar = doubles(g->ctrl_bar),
                            .qpos_bar = doubles(g->qpos_bar),
                            .qvel_bar = doubles(g->qvel_bar),
                            .act_bar = doubles(g->act_bar),
                            .target_bar = doubles(g->target_bar),
                            .norm = g->norm,
                            .warn = g->warn};
}

static bool plugin_gradients(SnBackend *b, SnBackendModel *x, SnGradientBatch *batch, const SnClock *clock,
                             double until) {
  SnPlugin *p = plugin_of(b);
  SnPluginGradientBatch *to = &x->gradients;
  const SnPluginClock time = plugin_clock(clock);
  if (!x->deriving) {
    plugin_update(b, x);
    to->weights = plugin_weights(x);
    to->method = (int)batch->settings.method;
    to->cfd = plugin_cfd(&batch->settings.cfd);
    to->count = batch->count;
    for (int i = 0; i < batch->count; ++i) to->item[i] = plugin_gradient(&batch->item[i]);
  }
  const bool all = p->gradients(p, x->session, to, &time, until);
  x->deriving = !all;
  for (int i = 0; i < batch->count; ++i) {
    SnGradient *g = &batch->item[i];
    if (to->item[i].status == SN_GRADIENT_PENDING) continue;
    g->status = (SnGradientStatus)to->item[i].status;
    g->cost = to->item[i].cost;
    g->norm = to->item[i].norm;
    g->warn = to->item[i].warn;
  }
  return all;
}

// ---- multistarts ----

static SnCode plugin_reserve_multistart(SnBackend *b, SnBackendModel *x, int starts, SnError *err) {
  SnPlugin *p = plugin_of(b);
  return p->reserve(p, x->session, 0, 0, starts, err);
}

static void fill_rule(SnPluginMultistart *to, const SnMultistartJob *job) {
  to->knots = job->grid.knots;
  to->spacing = job->grid.spacing;
  to->phase = job->grid.phase;
  to->interpolation = job->grid.interpolation;
  to->rule = (SnPluginRule){.rate = (double)job->rule.rate,
                            .beta1 = (double)job->rule.beta1,
                            .beta2 = (double)job->rule.beta2,
                            .epsilon = (double)job->rule.epsilon,
                            .clip_norm = (double)job->rule.clip_norm,
                            .clip = job->rule.clip};
}

// A new job.
static void begin_job(SnBackend *b, SnBackendModel *x, const SnMultistartJob *job) {
  if (x->job == job) return;
  plugin_update(b, x);
  x->job = job;
  x->multistart = (SnPluginMultistart){.state = plugin_state(&job->state),
                                       .weights = plugin_weights(x),
                                       .target = doubles(job->target),
                                       .nstep = job->nstep,
                                       .max_velocity = job->max_velocity,
                                       .method = (int)job->settings.method,
                                       .cfd = plugin_cfd(&job->settings.cfd),
                                       .noise = plugin_noise(&job->noise),
                                       .initial_ctrl = doubles(job->initial_ctrl),
                                       .starts = job->starts,
                                       .count = job->count,
                                       .init = job->init,
                                       .keep = job->keep,
                                       .measured = job->measured,
                                       .left = job->left,
                                       .iterations = job->iterations,
                                       .deadline = job->deadline,
                                       .ctrl = doubles(job->ctrl),
                                       .cost_before = job->cost_before,
                                       .best_cost = job->best_cost,
                                       .gradient_norm = job->gradient_norm,
                                       .best_term = job->best_term,
                                       .warn = job->warn};
  fill_rule(&x->multistart, job);
}

static void plugin_multistart_submit(SnBackend *b, SnBackendModel *x, SnMultistartJob *job) {
  SnPlugin *p = plugin_of(b);
  begin_job(b, x, job);
  p->multistart_submit(p, x->session, &x->multistart);
}

static bool plugin_multistart(SnBackend *b, SnBackendModel *x, SnMultistartJob *job, const SnClock *clock,
                              double until) {
  SnPlugin *p = plugin_of(b);
  const SnPluginClock time = plugin_clock(clock);
  begin_job(b, x, job);
  return p->multistart(p, x->session, &x->multistart, &time, until);
}

static void plugin_multistart_end(SnBackend *b, SnBackendModel *x, SnMultistartJob *job) {
  SnPlugin *p = plugin_of(b);
  begin_job(b, x, job);
  p->multistart_end(p, x->session, &x->multistart);
  const SnPluginMultistart *from = &x->multistart;
  job->done = from->done;
  job->used = from->used;
  job->measured = from->measured;
  job->cost_before = from->cost_before;
  job->best_cost = from->best_cost;
  job->gradient_norm = from->gradient_norm;
  job->warn = from->warn;
  x->job = NULL;
}

// ---- the rest ----

static bool plugin_lost(const SnBackend *b, char *text, int size) {
  const SnPlugin *p = plugin_of(b);
  return p->lost(p, text, size);
}

static void plugin_memory(const SnBackend *b, SnBackendMemory *memory) {
  const SnPlugin *p = plugin_of(b);
  SnPluginMemory m;
  p->memory(p, &m);
  *memory = (SnBackendMemory){m.used, m.budget, m.total};
}

static int plugin_profile(SnBackend *b, SnBackendModel *x, SnBackendStage *stage, int capacity) {
  SnPlugin *p = plugin_of(b);
  enum { MOST = 64 };
  SnPluginStage from[MOST];
  const int n = p->profile(p, x->session, from, MOST);
  for (int k = 0; k < n && k < capacity && k < MOST; ++k) stage[k] = (SnBackendStage){from[k].name, from[k].time};
  return n;
}

static void plugin_abandon(SnBackend *b, SnBackendModel *x) {
  SnPlugin *p = plugin_of(b);
  p->abandon(p, x->session);
  x->rolling = x->deriving = false;
  x->job = NULL;
}

static void plugin_destroy(SnBackend *b) {
  plugin_of(b)->close(plugin_of(b));
  free(b);
}

static const SnBackend plugin_table = {.describe = plugin_describe,
                                       .load = plugin_load,
                                       .unload = plugin_unload,
                                       .update = plugin_update,
                                       .reserve_rollouts = plugin_reserve_rollouts,
                                       .rollouts_submit = plugin_rollouts_submit,
                                       .rollouts = plugin_rollouts,
                                       .reserve_gradients = plugin_reserve_gradients,
                                       .gradients = plugin_gradients,
                                       .reserve_multistart = plugin_reserve_multistart,
                                       .multistart = plugin_multistart,
                                       .multistart_end = plugin_multistart_end,
                                       .multistart_submit = plugin_multistart_submit,
                                       .lost = plugin_lost,
                                       .memory = plugin_memory,
                                       .profile = plugin_profile,
                                       .abandon = plugin_abandon,
                                       .destroy = plugin_destroy};

// ---- the library ----

// The function of the library, NULL and err where there is none. What was opened stays open: a GPU's runtime does not
// like to go, and static names of the library are in use.
static SnPluginOpen *find_library(const char *name, const char *folder, SnError *err) {
  char file[4096];
  const bool somewhere = folder && folder[0];
  snprintf(file, sizeof file, "%s%slibsinew_%s.so", somewhere ? folder : "", somewhere ? "/" : "", name);
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    sn_fail(err, SN_ERR_NOT_FOUND, "backend '%s': its library cannot be opened: %s", name, dlerror());
    return NULL;
  }
  SnPluginOpen *open = NULL;
  void *symbol = dlsym(library, SN_PLUGIN_SYMBOL);
  memcpy(&open, &symbol, sizeof open);
  if (!open) {
    sn_fail(err, SN_ERR_FORMAT, "backend '%s': %s is no library of a backend: it has no %s", name, file,
            SN_PLUGIN_SYMBOL);
    dlclose(library);
  }
  return open;
}

bool sn_backend_plugin_found(const char *name) {
  return sizeof(sn_real) == sizeof(double) && find_library(name, NULL, NULL) != NULL;
}

// The library's own words, with the backend's name before them.
static void blame(const char *name, SnError *err, const SnError *from) {
  sn_fail(err, from->code, "backend '%s': %.3800s", name, from->text);
}

SnBackend *sn_backend_plugin(const char *name, const SnBackendOptions *options, SnError *err) {
  if (sizeof(sn_real) != sizeof(double)) {
    sn_fail(err, SN_ERR_UNSUPPORTED, "backend '%s': a program whose numbers are floats has the backend 'cpu' alone",
            name);
    return NULL;
  }
  SnPluginOpen *open = find_library(name, options->folder, err);
  PluginBackend *b = open ? calloc(1, sizeof *b) : NULL;
  if (!b) {
    if (open) sn_fail(err, SN_ERR_MEMORY, "backend '%s': out of memory", name);
    return NULL;
  }
  SnError said = {.code = SN_OK};
  const SnPluginOptions asked = {.version = SN_PLUGIN_VERSION,
                                 .device = options->device,
                                 .memory = options->memory,
                                 .fault = options->fault ? options->fault : "",
                                 .chain = options->chain ? options->chain : "",
                                 .block_threads = options->block_threads,
                                 .block_shared = options->block_shared};
  b->plugin = open(&asked, &said);
  if (!b->plugin) {
    blame(name, err, &said);
    free(b);
    return NULL;
  }
  if (b->plugin->version != SN_PLUGIN_VERSION) {
    sn_fail(err, SN_ERR_UNSUPPORTED, "backend '%s': the library is of version %d of the interface, the program of %d",
            name, b->plugin->version, SN_PLUGIN_VERSION);
    free(b);  // its table is not ours to call
    return NULL;
  }
  b->table = plugin_table;
  b->table.name = name;
  b->table.job_iterations = b->plugin->job_iterations;
  return &b->table;
}
