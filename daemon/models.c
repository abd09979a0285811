#include "daemon/models.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/repository.h"
#include "proto/validate.h"

SnCode sn_models_init(SnModels *models, const SnConfig *config, SnError *err) {
  *models = (SnModels){.config = config};
  pthread_mutex_init(&models->mutex, NULL);
  pthread_cond_init(&models->changed, NULL);
  SnModelCacheDef def = sn_default_model_cache_def();
  def.folder = config->cache;
  def.importer = config->importer;
  def.seconds = config->import_seconds;
  def.bytes = (size_t)config->import_megabytes << 20;
  models->cache = sn_model_cache_open(&def, err);
  return models->cache ? SN_OK : err->code;
}

void sn_models_cancel(SnModels *models) { sn_model_cache_cancel(models->cache); }

static void free_entry(SnLoadedModel *entry) {
  sn_model_free(entry->model);
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

// The link that points to the entry of that name, or to the end of the list. With the mutex.
static SnLoadedModel **find(SnModels *models, const char *name) {
  char stem[SN_WIRE_NAME + 1];
  sn_repository_stem(name, SN_KIND_MODEL, stem, sizeof stem);
  SnLoadedModel **link = &models->first;
  while (*link && strcmp((*link)->name, stem)) link = &(*link)->next;
  return link;
}

// Takes an entry out of the list. With the mutex.
static void drop(SnModels *models, SnLoadedModel **link) {
  SnLoadedModel *entry = *link;
  *link = entry->next;
  models->count--;
  free_entry(entry);
}

// Room for one more: pushes out the oldest that nobody uses. With the mutex.
static bool make_room(SnModels *models) {
  if (models->count < models->config->loaded) return true;
  SnLoadedModel **oldest = NULL;
  for (SnLoadedModel **link = &models->first; *link; link = &(*link)->next)
    if ((*link)->users == 0) oldest = link;
  if (oldest) drop(models, oldest);
  return oldest != NULL;
}

// A new entry at the head of the list, to be loaded by the caller. With the mutex.
static SnLoadedModel *add_entry(SnModels *models, const char *name, const char *file, SnError *err) {
  if (!make_room(models)) {
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

SnLoadedModel *sn_models_acquire(SnModels *models, const char *name, SnError *err) {
  char path[PATH_MAX];
  if (sn_repository_find(&models->config->models, name, SN_KIND_MODEL, path, sizeof path, err) != SN_OK) return NULL;

  // One who waits for another's load that fails finds no entry afterwards, and tries himself: he needs the error.
  pthread_mutex_lock(&models->mutex);
  SnLoadedModel *entry = *find(models, name);
  while (entry && entry->loading) {
    pthread_cond_wait(&models->changed, &models->mutex);
    entry = *find(models, name);
  }
  bool mine = !entry;
  if (entry)
    entry->users++;
  else
    entry = add_entry(models, name, path, err);
  pthread_mutex_unlock(&models->mutex);
  if (!entry || !mine) return entry;

  SnModel *model = sn_model_cache_load(models->cache, path, err);
  pthread_mutex_lock(&models->mutex);
  entry->model = model;
  entry->loading = false;
  if (!model) {
    drop(models, find(models, name));
    entry = NULL;
  }
  pthread_cond_broadcast(&models->changed);
  pthread_mutex_unlock(&models->mutex);
  return entry;
}

void sn_models_release(SnModels *models, SnLoadedModel *model) {
  if (!model) return;
  pthread_mutex_lock(&models->mutex);
  model->users--;
  pthread_mutex_unlock(&models->mutex);
}

SnCode sn_models_unload(SnModels *models, const char *name, SnError *err) {
  SnCode code = SN_OK;
  pthread_mutex_lock(&models->mutex);
  SnLoadedModel **link = find(models, name);
  if (!*link)
    code = sn_fail(err, SN_ERR_NOT_FOUND, "model '%.80s' is not loaded", name);
  else if ((*link)->users > 0)
    code = sn_fail(err, SN_ERR_STATE, "model '%.80s' is in use by %d session%s", name, (*link)->users,
                   (*link)->users == 1 ? "" : "s");
  else
    drop(models, link);
  pthread_mutex_unlock(&models->mutex);
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
  const SnLoadedModel *entry = *find(models, name);
  int n = entry ? entry->users : -1;
  pthread_mutex_unlock(&models->mutex);
  return n;
}
