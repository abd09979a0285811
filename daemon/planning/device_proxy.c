#include "daemon/planning/device_proxy_private.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

// A call of another thread: its arguments and what comes of it.
typedef struct Call {
  void (*run)(SnBackend *inner, struct Call *call);
  SnBackendModel *model;
  const SnModel *m;
  const SnCost *cost;
  int count;
  SnError *err;
  SnCode code;
  char *text;
  int size;
  bool answer;
  bool done;
  struct Call *next;
} Call;

typedef struct Owner {
  SnBackend table;  // first: a pointer to it is a pointer to the owner
  SnBackend *inner;
  pthread_t thread;
  void (*wake)(void *context);
  void *context;
  pthread_mutex_t mutex;  // of the calls
  pthread_cond_t carried_out;
  Call *first, **last;
} Owner;

static void call(SnBackend *b, Call *c) {
  Owner *o = (Owner *)b;
  if (pthread_equal(pthread_self(), o->thread)) {
    c->run(o->inner, c);
    return;
  }
  pthread_mutex_lock(&o->mutex);
  c->done = false;
  c->next = NULL;
  *o->last = c;
  o->last = &c->next;
  pthread_mutex_unlock(&o->mutex);
  o->wake(o->context);
  pthread_mutex_lock(&o->mutex);
  while (!c->done) pthread_cond_wait(&o->carried_out, &o->mutex);
  pthread_mutex_unlock(&o->mutex);
}

bool sn_owner_serve(SnBackend *b) {
  Owner *o = (Owner *)b;
  bool any = false;
  pthread_mutex_lock(&o->mutex);
  for (Call *c = o->first; c; c = o->first) {
    o->first = c->next;
    if (!o->first) o->last = &o->first;
    pthread_mutex_unlock(&o->mutex);
    c->run(o->inner, c);
    any = true;
    pthread_mutex_lock(&o->mutex);
    c->done = true;  // from here on it may be gone
    pthread_cond_broadcast(&o->carried_out);
  }
  pthread_mutex_unlock(&o->mutex);
  return any;
}

// ---- calls of any thread ----

static void run_load(SnBackend *b, Call *c) { c->model = b->load(b, c->m, c->cost, c->count, c->err); }
static SnBackendModel *owner_load(SnBackend *b, const SnModel *m, const SnCost *cost, int max_step, SnError *err) {
  Call c = {.run = run_load, .m = m, .cost = cost, .count = max_step, .err = err};
  call(b, &c);
  return c.model;
}

static void run_unload(SnBackend *b, Call *c) { b->unload(b, c->model); }
static void owner_unload(SnBackend *b, SnBackendModel *model) {
  Call c = {.run = run_unload, .model = model};
  call(b, &c);
}

static void run_update(SnBackend *b, Call *c) { b->update(b, c->model); }
static void owner_update(SnBackend *b, SnBackendModel *model) {
  Call c = {.run = run_update, .model = model};
  call(b, &c);
}

static void run_reserve_rollouts(SnBackend *b, Call *c) {
  c->code = b->reserve_rollouts(b, c->model, c->count, c->err);
}
static SnCode owner_reserve_rollouts(SnBackend *b, SnBackendModel *model, int count, SnError *err) {
  Call c = {.run = run_reserve_rollouts, .model = model, .count = count, .err = err};
  call(b, &c);
  return c.code;
}

static void run_reserve_gradients(SnBackend *b, Call *c) {
  c->code = b->reserve_gradients(b, c->model, c->count, c->err);
}
static SnCode owner_reserve_gradients(SnBackend *b, SnBackendModel *model, int count, SnError *err) {
  Call c = {.run = run_reserve_gradients, .model = model, .count = count, .err = err};
  call(b, &c);
  return c.code;
}

static void run_reserve_multistart(SnBackend *b, Call *c) {
  c->code = b->reserve_multistart(b, c->model, c->count, c->err);
}
static SnCode owner_reserve_multistart(SnBackend *b, SnBackendModel *model, int starts, SnError *err) {
  Call c = {.run = run_reserve_multistart, .model = model, .count = starts, .err = err};
  call(b, &c);
  return c.code;
}

static void run_abandon(SnBackend *b, Call *c) { b->abandon(b, c->model); }
static void owner_abandon(SnBackend *b, SnBackendModel *model) {
  Call c = {.run = run_abandon, .model = model};
  call(b, &c);
}

static void run_lost(SnBackend *b, Call *c) { c->answer = b->lost(b, c->text, c->size); }
static bool owner_lost(const SnBackend *b, char *text, int size) {
  Call c = {.run = run_lost, .text = text, .size = size};
  call((SnBackend *)(uintptr_t)b, &c);
  return c.answer;
}

// ---- the owner's ----

static SnBackend *inner_of(const SnBackend *b) { return ((const Owner *)b)->inner; }

static void owner_describe(const SnBackend *b, char *text, int size) { inner_of(b)->describe(inner_of(b), text, size); }

static bool owner_rollouts(SnBackend *b, SnBackendModel *model, const SnBatch *batch, const SnClock *clock,
                           double until) {
  return inner_of(b)->rollouts(inner_of(b), model, batch, clock, until);
}

static void owner_rollouts_submit(SnBackend *b, SnBackendModel *model, const SnBatch *batch) {
  inner_of(b)->rollouts_submit(inner_of(b), model, batch);
}

static bool owner_gradients(SnBackend *b, SnBackendModel *model, SnGradientBatch *batch, const SnClock *clock,
                            double until) {
  return inner_of(b)->gradients(inner_of(b), model, batch, clock, until);
}

static bool owner_multistart(SnBackend *b, SnBackendModel *model, SnMultistartJob *job, const SnClock *clock,
                             double until) {
  return inner_of(b)->multistart(inner_of(b), model, job, clock, until);
}

static void owner_multistart_end(SnBackend *b, SnBackendModel *model, SnMultistartJob *job) {
  inner_of(b)->multistart_end(inner_of(b), model, job);
}

static void owner_multistart_submit(SnBackend *b, SnBackendModel *model, SnMultistartJob *job) {
  inner_of(b)->multistart_submit(inner_of(b), model, job);
}

static void owner_memory(const SnBackend *b, SnBackendMemory *memory) { inner_of(b)->memory(inner_of(b), memory); }

static void owner_destroy(SnBackend *b) {
  Owner *o = (Owner *)b;
  sn_backend_free(o->inner);
  pthread_cond_destroy(&o->carried_out);
  pthread_mutex_destroy(&o->mutex);
  free(o);
}

SnBackend *sn_owner_create(SnBackend *inner, void (*wake)(void *context), void *context, SnError *err) {
  Owner *o = calloc(1, sizeof *o);
  if (!o) {
    sn_backend_free(inner);
    sn_fail(err, SN_ERR_MEMORY, "out of memory");
    return NULL;
  }
  o->table = (SnBackend){.name = inner->name,
                         .job_iterations = inner->job_iterations,
                         .describe = owner_describe,
                         .load = owner_load,
                         .unload = owner_unload,
                         .update = owner_update,
                         .reserve_rollouts = inner->reserve_rollouts ? owner_reserve_rollouts : NULL,
                         .rollouts = owner_rollouts,
                         .rollouts_submit = inner->rollouts_submit ? owner_rollouts_submit : NULL,
                         .reserve_gradients = owner_reserve_gradients,
                         .gradients = owner_gradients,
                         .reserve_multistart = owner_reserve_multistart,
                         .multistart = owner_multistart,
                         .multistart_end = owner_multistart_end,
                         .multistart_submit = inner->multistart_submit ? owner_multistart_submit : NULL,
                         .lost = inner->lost ? owner_lost : NULL,
                         .memory = inner->memory ? owner_memory : NULL,
                         .abandon = owner_abandon,
                         .destroy = owner_destroy};
  o->inner = inner;
  o->thread = pthread_self();
  o->wake = wake;
  o->context = context;
  o->last = &o->first;
  pthread_mutex_init(&o->mutex, NULL);
  pthread_cond_init(&o->carried_out, NULL);
  return &o->table;
}
