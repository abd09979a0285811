// The backends by their names, and their operations. What holds where a backend lacks an operation stands here and
// nowhere else.
#include "planner/backend/backend.h"

#include <pthread.h>

#include "planner/backend/backend_private.h"
#include "planner/rollout/chosen_step.h"

// Those in libraries of their own. The first `LISTED` are for users, the others for checks.
enum { LISTED = 1 };
static const char *const library_names[] = {"cuda",         "cuda_double",        "emulator", "emulator_double",
                                            "emulator_fma", "emulator_fma_double"};
enum { LIBRARIES = sizeof library_names / sizeof library_names[0] };

// The name as it stands in the list, or NULL and err.
static const char *find_library(const char *name, SnError *err) {
  for (int i = 0; i < LIBRARIES; ++i)
    if (strcmp(name, library_names[i]) == 0) return library_names[i];
  sn_fail(err, SN_ERR_NOT_FOUND, "there is no backend '%s'; known are cpu, cuda and cuda_double", name);
  return NULL;
}

SnBackendOptions sn_default_backend_options(void) { return (SnBackendOptions){0}; }

SnBackend *sn_backend_open(const char *name, SnPool *pool, const SnBackendOptions *options, SnError *err) {
  const SnBackendOptions none = sn_default_backend_options();
  if (strcmp(name, "cpu") == 0) return sn_backend_cpu(pool, err);
  const char *library = find_library(name, err);
  return library ? sn_backend_plugin(library, options ? options : &none, err) : NULL;
}

static const char *found_names[LISTED + 2];
static pthread_once_t found_once = PTHREAD_ONCE_INIT;

static void find_names(void) {
  int n = 0;
  found_names[n++] = "cpu";
  for (int i = 0; i < LISTED; ++i)
    if (sn_backend_plugin_found(library_names[i], NULL)) found_names[n++] = library_names[i];
}

const char *const *sn_backend_names(void) {
  pthread_once(&found_once, find_names);
  return found_names;
}

bool sn_backend_found(const char *name, const char *folder) {
  return strcmp(name, "cpu") == 0 || (find_library(name, NULL) && sn_backend_plugin_found(name, folder));
}

SnCode sn_backend_check(const char *name, const char *folder, SnError *err) {
  if (strcmp(name, "cpu") == 0) return SN_OK;
  return find_library(name, err) ? sn_backend_plugin_check(name, folder, err) : SN_ERR_NOT_FOUND;
}

void sn_backend_free(SnBackend *b) {
  if (b) b->destroy(b);
}

// ---- about a backend ----

bool sn_backend_has(const SnBackend *b, SnBackendFeature feature) {
  switch (feature) {
    case SN_BACKEND_GRADIENTS:
      return b->reserve_gradients && b->gradients;
    case SN_BACKEND_MULTISTART:
      return b->reserve_multistart && b->multistart && b->multistart_end;
    case SN_BACKEND_BATCHES:
      return b->batches;
    case SN_BACKEND_MODELS:
      return b->models;
    case SN_BACKEND_PARAMETERS:
      return b->parameters;
    case SN_BACKEND_LINEARIZE:
      return b->linearize != NULL;
    case SN_BACKEND_CHOOSE:
      return b->choose != NULL;
    case SN_BACKEND_FEEDBACK:
      return b->feedback && b->linearize;
    case SN_BACKEND_MOMENTS:
      return b->moments && b->set_moments;
    case SN_BACKEND_ROLLOUTS_SUBMIT:
      return b->rollouts_submit != NULL;
    default:
      return b->multistart_submit != NULL;
  }
}

const char *sn_backend_name(const SnBackend *b) { return b->name; }
int sn_backend_job_iterations(const SnBackend *b) { return b->job_iterations; }
void sn_backend_describe(const SnBackend *b, char *text, int size) { b->describe(b, text, size); }

bool sn_backend_lost(const SnBackend *b, char *text, int size) {
  if (size > 0) text[0] = '\0';
  return b->lost && b->lost(b, text, size);
}

SnBackendMemory sn_backend_memory(const SnBackend *b) { return b->memory ? b->memory(b) : (SnBackendMemory){0}; }

// ---- models ----

SnBackendModel *sn_backend_load(SnBackend *b, const SnModel *m, const SnCost *cost, int max_step, SnError *err) {
  SnModelView model;
  SnCostView view;
  if (!cost) cost = sn_cost_none();
  if (b->load) return b->load(b, m, cost, max_step, err);
  if (sn_past_size(m) > 0) {
    sn_fail(
        err, SN_ERR_UNSUPPORTED,
        "the backend '%s' has no history buffers of actuators and sensors (delay, nsample) and no springs that yield "
        "(springyield), 'cpu' has",
        b->name);
    return NULL;
  }
  if (sn_has_metric(m)) {
    sn_fail(err, SN_ERR_UNSUPPORTED, "the backend '%s' has no integrator discrete, 'cpu' has", b->name);
    return NULL;
  }
  if (sn_model_view(m, &model, err) != SN_OK || sn_cost_view(cost, &view, err) != SN_OK) return NULL;
  return b->load_views(b, &model.parts, &view.parts, max_step, err);
}

SnCode sn_backend_choose(SnBackend *b, SnBackendModel *x, const SnHorizonSettings *settings, SnError *err) {
  if (b->choose) return b->choose(b, x, settings, err);
  return sn_fail(err, SN_ERR_UNSUPPORTED, "the backend '%s' makes no chosen steps", b->name);
}

SnBackendModel *sn_backend_load_as(SnBackend *b, const SnModel *m, const SnCost *cost, int max_step,
                                   const SnSettings *settings, SnError *err) {
  SnHorizonSettings chosen;
  const bool choose = sn_chosen_settings(settings, &chosen);
  if (choose && !b->choose) {
    sn_fail(err, SN_ERR_UNSUPPORTED, "integrator: the backend '%s' makes no steps of chosen sizes, 'cpu' does",
            b->name);
    return NULL;
  }
  SnBackendModel *x = sn_backend_load(b, m, cost, max_step, err);
  if (!x || !choose || sn_backend_choose(b, x, &chosen, err) == SN_OK) return x;
  b->unload(b, x);
  return NULL;
}

void sn_backend_unload(SnBackend *b, SnBackendModel *x) { b->unload(b, x); }
void sn_backend_update(SnBackend *b, SnBackendModel *x) { b->update(b, x); }
void sn_backend_abandon(SnBackend *b, SnBackendModel *x) { b->abandon(b, x); }

int sn_backend_profile(SnBackend *b, SnBackendModel *x, SnBackendStage *stage, int capacity) {
  return b->profile ? b->profile(b, x, stage, capacity) : 0;
}

// ---- rollouts ----

SnCode sn_backend_reserve_rollouts(SnBackend *b, SnBackendModel *x, int count, SnError *err) {
  return b->reserve_rollouts ? b->reserve_rollouts(b, x, count, err) : SN_OK;
}

SnCode sn_backend_reserve_batches(SnBackend *b, SnBackendModel *x, int count, SnError *err) {
  return b->reserve_batches ? b->reserve_batches(b, x, count, err) : SN_OK;
}

bool sn_backend_rollouts(SnBackend *b, SnBackendModel *x, const SnBatch *batch, const SnClock *clock, double until) {
  return b->rollouts(b, x, batch, clock, until);
}

void sn_backend_rollouts_submit(SnBackend *b, SnBackendModel *x, const SnBatch *batch) {
  if (b->rollouts_submit) b->rollouts_submit(b, x, batch);
}

// ---- gradients ----

SnCode sn_backend_reserve_gradients(SnBackend *b, SnBackendModel *x, int count, SnError *err) {
  if (sn_backend_has(b, SN_BACKEND_GRADIENTS)) return b->reserve_gradients(b, x, count, err);
  return sn_fail(err, SN_ERR_UNSUPPORTED, "the backend '%s' makes no gradients", b->name);
}

bool sn_backend_gradients(SnBackend *b, SnBackendModel *x, SnGradientBatch *batch, const SnClock *clock, double until) {
  return b->gradients(b, x, batch, clock, until);
}

bool sn_backend_linearize(SnBackend *b, SnBackendModel *x, const SnLinearization *linearization, const SnClock *clock,
                          double until) {
  return b->linearize && b->linearize(b, x, linearization, clock, until);
}

double sn_backend_bytes(const SnBackend *b, const SnModel *m, const SnCost *cost, const SnBackendRoom *room) {
  return b->bytes ? b->bytes(b, m, cost, room) : 0;
}

// ---- multistarts ----

SnCode sn_backend_reserve_multistart(SnBackend *b, SnBackendModel *x, int starts, SnError *err) {
  if (sn_backend_has(b, SN_BACKEND_MULTISTART)) return b->reserve_multistart(b, x, starts, err);
  return sn_fail(err, SN_ERR_UNSUPPORTED, "the backend '%s' makes no gradients", b->name);
}

bool sn_backend_multistart(SnBackend *b, SnBackendModel *x, SnMultistartJob *job, const SnClock *clock, double until) {
  return b->multistart(b, x, job, clock, until);
}

void sn_backend_multistart_end(SnBackend *b, SnBackendModel *x, SnMultistartJob *job) { b->multistart_end(b, x, job); }

void sn_backend_multistart_submit(SnBackend *b, SnBackendModel *x, SnMultistartJob *job) {
  if (b->multistart_submit) b->multistart_submit(b, x, job);
}

bool sn_backend_moments(SnBackend *b, SnBackendModel *x, SnMomentsView *moments) {
  return sn_backend_has(b, SN_BACKEND_MOMENTS) && b->moments(b, x, moments);
}

bool sn_backend_set_moments(SnBackend *b, SnBackendModel *x, const SnMomentsView *moments) {
  return sn_backend_has(b, SN_BACKEND_MOMENTS) && b->set_moments(b, x, moments);
}
