#include "daemon/planning/device_proxy_private.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "planner/backend/backend_impl.h"

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

typedef struct Proxy {
  SnBackend table;  // first: a pointer to it is a pointer to the proxy
  SnBackend *inner;
  pthread_t thread;
  void (*wake)(void *context);
  void *context;
  pthread_mutex_t mutex;  // of the calls
  pthread_cond_t carried_out;
  Call *first, **last;
} Proxy;

static void call(SnBackend *b, Call *c) {
  Proxy *p = (Proxy *)b;
  if (pthread_equal(pthread_self(), p->thread)) {
    c->run(p->inner, c);
    return;
  }
  pthread_mutex_lock(&p->mutex);
  c->done = false;
  c->next = NULL;
  *p->last = c;
  p->last = &c->next;
  pthread_mutex_unlock(&p->mutex);
  p->wake(p->context);
  pthread_mutex_lock(&p->mutex);
  while (!c->done) pthread_cond_wait(&p->carried_out, &p->mutex);
  pthread_mutex_unlock(&p->mutex);
}

bool sn_device_proxy_serve(SnBackend *b) {
  Proxy *p = (Proxy *)b;
  bool any = false;
  pthread_mutex_lock(&p->mutex);
  for (Call *c = p->first; c; c = p->first) {
    p->first = c->next;
    if (!p->first) p->last = &p->first;
    pthread_mutex_unlock(&p->mutex);
    c->run(p->inner, c);
    any = true;
    pthread_mutex_lock(&p->mutex);
    c->done = true;  // from here on it may be gone
    pthread_cond_broadcast(&p->carried_out);
  }
  pthread_mutex_unlock(&p->mutex);
  return any;
}

// ---- calls of any thread ----

static void run_load(SnBackend *b, Call *c) { c->model = sn_backend_load(b, c->m, c->cost, c->count, c->err); }
static SnBackendModel *proxy_load(SnBackend *b, const SnModel *m, const SnCost *cost, int max_step, SnError *err) {
  Call c = {.run = run_load, .m = m, .cost = cost, .count = max_step, .err = err};
  call(b, &c);
  return c.model;
}

static void run_unload(SnBackend *b, Call *c) { sn_backend_unload(b, c->model); }
static void proxy_unload(SnBackend *b, SnBackendModel *model) {
  Call c = {.run = run_unload, .model = model};
  call(b, &c);
}

static void run_update(SnBackend *b, Call *c) { sn_backend_update(b, c->model); }
static void proxy_update(SnBackend *b, SnBackendModel *model) {
  Call c = {.run = run_update, .model = model};
  call(b, &c);
}

static void run_reserve_rollouts(SnBackend *b, Call *c) {
  c->code = sn_backend_reserve_rollouts(b, c->model, c->count, c->err);
}
static SnCode proxy_reserve_rollouts(SnBackend *b, SnBackendModel *model, int count, SnError *err) {
  Call c = {.run = run_reserve_rollouts, .model = model, .count = count, .err = err};
  call(b, &c);
  return c.code;
}

static void run_reserve_batches(SnBackend *b, Call *c) {
  c->code = sn_backend_reserve_batches(b, c->model, c->count, c->err);
}
static SnCode proxy_reserve_batches(SnBackend *b, SnBackendModel *model, int count, SnError *err) {
  Call c = {.run = run_reserve_batches, .model = model, .count = count, .err = err};
  call(b, &c);
  return c.code;
}

static void run_reserve_gradients(SnBackend *b, Call *c) {
  c->code = sn_backend_reserve_gradients(b, c->model, c->count, c->err);
}
static SnCode proxy_reserve_gradients(SnBackend *b, SnBackendModel *model, int count, SnError *err) {
  Call c = {.run = run_reserve_gradients, .model = model, .count = count, .err = err};
  call(b, &c);
  return c.code;
}

static void run_reserve_multistart(SnBackend *b, Call *c) {
  c->code = sn_backend_reserve_multistart(b, c->model, c->count, c->err);
}
static SnCode proxy_reserve_multistart(SnBackend *b, SnBackendModel *model, int starts, SnError *err) {
  Call c = {.run = run_reserve_multistart, .model = model, .count = starts, .err = err};
  call(b, &c);
  return c.code;
}

static void run_abandon(SnBackend *b, Call *c) { sn_backend_abandon(b, c->model); }
static void proxy_abandon(SnBackend *b, SnBackendModel *model) {
  Call c = {.run = run_abandon, .model = model};
  call(b, &c);
}

static void run_lost(SnBackend *b, Call *c) { c->answer = sn_backend_lost(b, c->text, c->size); }
static bool proxy_lost(const SnBackend *b, char *text, int size) {
  Call c = {.run = run_lost, .text = text, .size = size};
  call((SnBackend *)(uintptr_t)b, &c);
  return c.answer;
}

// ---- calls of the owning thread ----

static SnBackend *inner_of(const SnBackend *b) { return ((const Proxy *)b)->inner; }

static void proxy_describe(const SnBackend *b, char *text, int size) { sn_backend_describe(inner_of(b), text, size); }

static bool proxy_rollouts(SnBackend *b, SnBackendModel *model, const SnBatch *batch, const SnClock *clock,
                           double until) {
  return sn_backend_rollouts(inner_of(b), model, batch, clock, until);
}

static void proxy_rollouts_submit(SnBackend *b, SnBackendModel *model, const SnBatch *batch) {
  sn_backend_rollouts_submit(inner_of(b), model, batch);
}

static bool proxy_gradients(SnBackend *b, SnBackendModel *model, SnGradientBatch *batch, const SnClock *clock,
                            double until) {
  return sn_backend_gradients(inner_of(b), model, batch, clock, until);
}

static bool proxy_multistart(SnBackend *b, SnBackendModel *model, SnMultistartJob *job, const SnClock *clock,
                             double until) {
  return sn_backend_multistart(inner_of(b), model, job, clock, until);
}

static void proxy_multistart_end(SnBackend *b, SnBackendModel *model, SnMultistartJob *job) {
  sn_backend_multistart_end(inner_of(b), model, job);
}

static void proxy_multistart_submit(SnBackend *b, SnBackendModel *model, SnMultistartJob *job) {
  sn_backend_multistart_submit(inner_of(b), model, job);
}

static SnBackendMemory proxy_memory(const SnBackend *b) { return sn_backend_memory(inner_of(b)); }

static void proxy_destroy(SnBackend *b) {
  Proxy *p = (Proxy *)b;
  sn_backend_free(p->inner);
  pthread_cond_destroy(&p->carried_out);
  pthread_mutex_destroy(&p->mutex);
  free(p);
}

SnBackend *sn_device_proxy_create(SnBackend *inner, void (*wake)(void *context), void *context, SnError *err) {
  Proxy *p = calloc(1, sizeof *p);
  if (!p) {
    sn_backend_free(inner);
    sn_fail(err, SN_ERR_MEMORY, "out of memory");
    return NULL;
  }
  p->table = (SnBackend){.name = inner->name,
                         .job_iterations = inner->job_iterations,
                         .batches = inner->batches,
                         .describe = proxy_describe,
                         .load = proxy_load,
                         .unload = proxy_unload,
                         .update = proxy_update,
                         .reserve_rollouts = inner->reserve_rollouts ? proxy_reserve_rollouts : NULL,
                         .reserve_batches = inner->reserve_batches ? proxy_reserve_batches : NULL,
                         .rollouts = proxy_rollouts,
                         .rollouts_submit = inner->rollouts_submit ? proxy_rollouts_submit : NULL,
                         .reserve_gradients = proxy_reserve_gradients,
                         .gradients = proxy_gradients,
                         .reserve_multistart = proxy_reserve_multistart,
                         .multistart = proxy_multistart,
                         .multistart_end = proxy_multistart_end,
                         .multistart_submit = inner->multistart_submit ? proxy_multistart_submit : NULL,
                         .lost = inner->lost ? proxy_lost : NULL,
                         .memory = inner->memory ? proxy_memory : NULL,
                         .abandon = proxy_abandon,
                         .destroy = proxy_destroy};
  p->inner = inner;
  p->thread = pthread_self();
  p->wake = wake;
  p->context = context;
  p->last = &p->first;
  pthread_mutex_init(&p->mutex, NULL);
  pthread_cond_init(&p->carried_out, NULL);
  return &p->table;
}
