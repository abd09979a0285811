#include "daemon/models/models.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/models/repository.h"
#include "proto/validate.h"

enum { SANDBOX_WANTED, SANDBOX_REQUIRED };  // as config.import_sandbox

SnCode sn_models_init(SnModels *models, const SnConfig *config, SnError *err) {
  *models = (SnModels){.config = config};
  pthread_mutex_init(&models->mutex, NULL);
  pthread_cond_init(&models->changed, NULL);
  SnModelCacheDef def = sn_default_model_cache_def();
  def.folder = config->cache;
  def.importer = config->importer;
  def.seconds = config->import_seconds;
  def.bytes = (size_t)config->import_megabytes << 20;
  def.sandbox = config->import_sandbox == SANDBOX_REQUIRED;
  models->cache = sn_model_cache_open(&def, err);
  return models->cache ? SN_OK : err->code;
}

void sn_models_cancel(SnModels *models) { sn_model_cache_cancel(models->cache); }

static void free_entry(SnLoadedModel *entry) {
  sn_model_free(entry->model);
  sn_model_inputs_free(entry->inputs);
  free(entry->name);
  free(entry->file);
  free(entry);
}

void sn_models_free(SnModels *models) {
  if (!models->config) return;
  for (SnLoadedModel *entry = models->first, *next; entry; entry = next) {
    next = entry->next;
    free_entry(entry);
  }
  sn_model_cache_close(models->cache);
  pthread_cond_destroy(&models->changed);
  pthread_mutex_destroy(&models->mutex);
}

// The entry of that name that is not old, or NULL. With the mutex.
static SnLoadedModel *find(const SnModels *models, const char *name) {
  char stem[SN_WIRE_NAME + 1];
  sn_repository_stem(name, SN_KIND_MODEL, stem, sizeof stem);
  SnLoadedModel *entry = models->first;
  while (entry && (entry->old || strcmp(entry->name, stem))) entry = entry->next;
  return entry;
}

// Takes an entry out of the list; unlock() frees it. With the mutex.
static void drop(SnModels *models, SnLoadedModel *entry) {
  SnLoadedModel **link = &models->first;
  while (*link != entry) link = &(*link)->next;
  *link = entry->next;
  models->count--;
  entry->next = models->dropped;
  models->dropped = entry;
}

// Gives the mutex away, then frees what was dropped: the event loop, which counts models, does not wait while the
// memory of a large one goes back to the system.
static void unlock(SnModels *models) {
  SnLoadedModel *entry = models->dropped;
  models->dropped = NULL;
  pthread_mutex_unlock(&models->mutex);
  for (SnLoadedModel *next; entry; entry = next) {
    next = entry->next;
    free_entry(entry);
  }
}

// One user less; what is old goes with its last one. With the mutex.
static void release(SnModels *models, SnLoadedModel *entry) {
  if (--entry->users == 0 && entry->old) drop(models, entry);
}

// A place for one more: evicts the oldest that nobody uses where none is free. With the mutex.
static bool evict_one(SnModels *models) {
  if (models->count < models->config->loaded) return true;
  SnLoadedModel *oldest = NULL;
  for (SnLoadedModel *entry = models->first; entry; entry = entry->next)
    if (entry->users == 0) oldest = entry;
  if (oldest) drop(models, oldest);
  return oldest != NULL;
}

// A new entry at the head of the list, to be loaded by the caller. With the mutex.
static SnLoadedModel *add_entry(SnModels *models, const char *name, const char *file, SnError *err) {
  if (!evict_one(models)) {
    sn_fail(err, SN_ERR_LIMIT, "%d models are loaded and in use; more are not allowed", models->config->loaded);
    return NULL;
  }
  char stem[SN_WIRE_NAME + 1];
  sn_repository_stem(name, SN_KIND_MODEL, stem, sizeof stem);
  SnLoadedModel *entry = calloc(1, sizeof *entry);
  char *copy = strdup(stem), *place = strdup(file);
  if (!entry || !copy || !place) {
    free(entry);
    free(copy);
    free(place);
    sn_fail(err, SN_ERR_MEMORY, "out of memory");
    return NULL;
  }
  *entry = (SnLoadedModel){.name = copy, .file = place, .loading = true, .users = 1, .next = models->first};
  models->first = entry;
  models->count++;
  return entry;
}

// Somebody who wants a model that another thread loads, and does not wait for it.
typedef struct SnModelWaiter {
  void *item;
  struct SnModelWaiter *next;
} SnModelWaiter;

// Keeps an item until the entry was loaded. False: no memory. With the mutex.
static bool keep_item(SnLoadedModel *entry, void *item) {
  SnModelWaiter *waiter = malloc(sizeof *waiter);
  if (!waiter) return false;
  *waiter = (SnModelWaiter){item, entry->waiters};
  entry->waiters = waiter;
  return true;
}

// Who asks, and for what: `item` NULL waits.
typedef struct SnAsker {
  const char *name, *path;
  void *item;
  bool *kept;
} SnAsker;

// Looks for an entry that holds and acquires it. NULL: one must be loaded, in the place of *edited where that is not
// NULL, which is acquired too: others use it; or *kept. With the mutex, which is given away meanwhile.
static SnLoadedModel *find_current(SnModels *models, const SnAsker *by, SnLoadedModel **edited) {
  *edited = NULL;
  for (;;) {
    SnLoadedModel *entry = find(models, by->name);
    if (!entry) return NULL;
    if (entry->loading && by->item && keep_item(entry, by->item)) {
      *by->kept = true;
      return NULL;
    }
    if (entry->loading) {
      // One who waits for another's load that fails finds no entry afterwards, and tries himself: he needs the error.
      pthread_cond_wait(&models->changed, &models->mutex);
      continue;
    }
    entry->users++;
    SnModelInputs *inputs = sn_model_inputs_share(entry->inputs);
    unlock(models);
    const bool holds = strcmp(entry->file, by->path) == 0 && sn_model_inputs_hold(inputs);
    pthread_mutex_lock(&models->mutex);
    const bool noticed = entry->old || inputs != entry->inputs;  // by somebody else meanwhile
    sn_model_inputs_free(inputs);
    if (holds && !noticed) return entry;
    if (noticed) {
      release(models, entry);
      continue;
    }
    entry->old = true;
    if (entry->users > 1)
      *edited = entry;
    else
      release(models, entry);
    return NULL;
  }
}

// A model was loaded into the entry, or not, in the place of `edited`. Returns the one that counts from now on,
// acquired, or NULL. Where the files say what they said before, that is the old one, and so it is where they cannot be
// loaded: the next one who asks tries again. With the mutex.
static SnLoadedModel *settle(SnModels *models, SnLoadedModel *entry, SnLoadedModel *edited) {
  entry->loading = false;
  pthread_cond_broadcast(&models->changed);
  const bool same = edited && entry->model && sn_model_inputs_equal(edited->inputs, entry->inputs);
  if (same) {
    SnModelInputs *inputs = edited->inputs;
    edited->inputs = entry->inputs;
    entry->inputs = inputs;
  }
  SnLoadedModel *now = same ? edited : entry->model ? entry : NULL;
  if (edited) edited->old = now == entry;
  if (edited && !same) release(models, edited);
  if (now != entry) drop(models, entry);
  return now;
}

// Hands on what was kept, oldest first.
static void resume(const SnModels *models, SnModelWaiter *waiters, const SnError *failure) {
  SnModelWaiter *oldest = NULL;
  for (SnModelWaiter *x = waiters, *next; x; x = next) {
    next = x->next;
    x->next = oldest;
    oldest = x;
  }
  for (SnModelWaiter *x = oldest, *next; x; x = next) {
    next = x->next;
    models->resume(models->context, x->item, failure);
    free(x);
  }
}

// Loads the model of a fresh entry, in the place of `edited`. Returns the one that counts, acquired, or NULL and err.
static SnLoadedModel *load(SnModels *models, const char *path, SnLoadedModel *fresh, SnLoadedModel *edited,
                           SnError *err) {
  SnModelInputs *inputs;
  SnModel *model = sn_model_cache_load(models->cache, path, &inputs, err);
  atomic_fetch_add(&models->loads[model ? SN_OK : err->code], 1);
  pthread_mutex_lock(&models->mutex);
  fresh->model = model;
  fresh->inputs = inputs;
  SnModelWaiter *waiters = fresh->waiters;
  fresh->waiters = NULL;
  SnLoadedModel *entry = settle(models, fresh, edited);
  unlock(models);
  resume(models, waiters, entry ? NULL : err);
  return entry;
}

static SnLoadedModel *acquire(SnModels *models, const char *name, void *item, bool *kept, SnError *err) {
  char path[PATH_MAX];
  *kept = false;
  if (sn_repository_find(&models->config->models, name, SN_KIND_MODEL, path, sizeof path, err) != SN_OK) return NULL;
  SnLoadedModel *edited;
  const SnAsker by = {name, path, item, kept};
  pthread_mutex_lock(&models->mutex);
  SnLoadedModel *entry = find_current(models, &by, &edited), *fresh = NULL;
  if (!entry && !*kept) fresh = add_entry(models, name, path, err);
  if (!fresh && edited) {
    edited->old = false;
    release(models, edited);
  }
  unlock(models);
  return fresh ? load(models, path, fresh, edited, err) : entry;
}

SnLoadedModel *sn_models_acquire(SnModels *models, const char *name, SnError *err) {
  bool kept;
  return acquire(models, name, NULL, &kept, err);
}

SnLoadedModel *sn_models_acquire_later(SnModels *models, const char *name, void *item, bool *kept, SnError *err) {
  return acquire(models, name, item, kept, err);
}

void sn_models_release(SnModels *models, SnLoadedModel *model) {
  if (!model) return;
  pthread_mutex_lock(&models->mutex);
  release(models, model);
  unlock(models);
}

// Users of all entries of that name, old ones too; -1: there is none. With the mutex.
static int count_users(const SnModels *models, const char *name) {
  char stem[SN_WIRE_NAME + 1];
  sn_repository_stem(name, SN_KIND_MODEL, stem, sizeof stem);
  int n = -1;
  for (const SnLoadedModel *entry = models->first; entry; entry = entry->next)
    if (!strcmp(entry->name, stem)) n = (n < 0 ? 0 : n) + entry->users;
  return n;
}

SnCode sn_models_unload(SnModels *models, const char *name, SnError *err) {
  SnCode code = SN_OK;
  pthread_mutex_lock(&models->mutex);
  const int users = count_users(models, name);
  if (users < 0)
    code = sn_fail(err, SN_ERR_NOT_FOUND, "model '%.80s' is not loaded", name);
  else if (users > 0)
    code = sn_fail(err, SN_ERR_STATE, "model '%.80s' is in use by %d session%s", name, users, users == 1 ? "" : "s");
  else
    drop(models, find(models, name));
  unlock(models);
  return code;
}

int sn_models_count(SnModels *models) {
  pthread_mutex_lock(&models->mutex);
  int n = models->count;
  pthread_mutex_unlock(&models->mutex);
  return n;
}

int sn_models_users(SnModels *models, const char *name) {
  pthread_mutex_lock(&models->mutex);
  int n = count_users(models, name);
  pthread_mutex_unlock(&models->mutex);
  return n;
}
