// Loaded models, shared by sessions. Each is loaded once, whoever asks, and stays until it is unloaded, evicted, or one
// of its files is edited. Who asks after an edit gets the model anew; who has the old one keeps it.
#ifndef SINEW_DAEMON_MODELS_MODELS_H_
#define SINEW_DAEMON_MODELS_MODELS_H_

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/config/config.h"
#include "physics/import/model_cache.h"
#include "physics/model/model.h"

typedef struct SnLoadedModel {
  char *name;             // in the repository
  char *file;             // the file that it was loaded from, absolute
  SnModel *model;         // read-only; NULL while it is being loaded
  SnModelInputs *inputs;  // files that it was made of, or NULL
  bool loading;
  bool old;   // replaced, or about to be, by one that was loaded after an edit: nobody acquires it any more
  int users;  // who acquired it and has not released it
  struct SnModelWaiter *waiters;  // who wants it while it is being loaded, the latest first
  struct SnLoadedModel *next;
} SnLoadedModel;

// Counts the codes of errors, SN_OK among them.
#define SN_MODELS_COUNT(code, text) +1
enum { SN_CODES = 0 SN_ERRORS(SN_MODELS_COUNT) };
#undef SN_MODELS_COUNT

typedef struct SnModels {
  const SnConfig *config;
  SnModelCache *cache;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  SnLoadedModel *first;
  SnLoadedModel *dropped;  // out of the list, to be freed without the mutex
  int count;
  atomic_uint_least64_t loads[SN_CODES];  // how often files were loaded, from the cache or not, by how that went
  // Gets what sn_models_acquire_later has kept, once the model was loaded (NULL) or not: then why. The thread that
  // loaded it calls this. Set before the first such call.
  void (*resume)(void *context, void *item, const SnError *failure);
  void *context;
} SnModels;

SnCode sn_models_init(SnModels *models, const SnConfig *config, SnError *err);

// Frees all models; none may be in use.
void sn_models_free(SnModels *models);

// Ends loading: it fails from now on. Any thread may call it.
void sn_models_cancel(SnModels *models);

// Acquires the model of that name as its files are now. It is loaded if need be; the call waits while another thread
// loads it. When the limit of loaded models is reached, one that nobody uses is evicted. If nothing was edited the cost
// is a look at each of its files. Returns NULL and err on failure: models in use stay as they are, also where the new
// files are broken. Any thread may call it that may wait; it releases the model after use.
SnLoadedModel *sn_models_acquire(SnModels *models, const char *name, SnError *err);
// Does the same, but does not wait while another thread loads the model. It then returns NULL with *kept, and `item`
// goes to models->resume when that is done, perhaps before this call has returned. Who keeps it has no thread.
SnLoadedModel *sn_models_acquire_later(SnModels *models, const char *name, void *item, bool *kept, SnError *err);
// Releases a model. Accepts NULL.
void sn_models_release(SnModels *models, SnLoadedModel *model);

// Forgets a model that nobody uses. SN_ERR_NOT_FOUND when it is not loaded, SN_ERR_STATE when it is in use, as it is or
// as it was before an edit.
SnCode sn_models_unload(SnModels *models, const char *name, SnError *err);

// Returns how many models are loaded; those from before an edit count too.
int sn_models_count(SnModels *models);
// Returns how many users a model has, -1 when it is not loaded; those from before an edit count too.
int sn_models_users(SnModels *models, const char *name);

#endif
