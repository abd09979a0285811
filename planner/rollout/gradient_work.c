// Gradients on the CPU: what they need in memory.
#include <stdlib.h>

#include "planner/rollout/gradient_private.h"

enum { STRETCH = 8 };  // chosen steps between two states that there is memory for, on average

static void *aligned(size_t bytes) { return aligned_alloc(64, (bytes + 63) / 64 * 64); }

// A zeroed array of n numbers; never NULL for want of length.
static sn_real *numbers(size_t n) { return calloc(n + 1, sizeof(sn_real)); }

static bool create_slot(SnGradientSlot *s, const SnModel *m, const SnCost *cost) {
  const size_t n = (size_t)sn_tangent_size(m), nu = (size_t)m->nu;
  s->memory = aligned(sn_world_size(m));
  s->state = (SnRolloutVjpState){.A = numbers(n * n),
                                 .B = numbers(n * nu),
                                 .state_bar = numbers(n),
                                 .ctrl_bar = numbers(nu),
                                 .before_bar = numbers(nu),
                                 .target_bar = numbers((size_t)cost->ntarget)};
  if (!s->memory || !s->state.A || !s->state.B || !s->state.state_bar || !s->state.ctrl_bar || !s->state.before_bar ||
      !s->state.target_bar)
    return false;
  sn_world_init(m, &s->own, s->memory);
  s->world = s->own;
  s->m = m;
  return true;
}

static bool create_thread(SnGradientThread *t, const SnModel *m, const SnCost *cost, SnError *err) {
  t->runner = sn_rollout_runner_create(m, cost, err);
  t->memory = aligned(sn_adjoint_size(m));
  t->res = numbers((size_t)cost->nres);
  t->bar = numbers((size_t)m->nsensordata);
  t->expand = (SnExpandInput){.res = t->res,
                              .bar = numbers((size_t)cost->nres),
                              .row = numbers((size_t)sn_tangent_size(m) + (size_t)m->nu),
                              .before = numbers((size_t)m->nu),
                              .at = calloc((size_t)sn_tangent_size(m) + (size_t)m->nu + 1, sizeof *t->expand.at)};
  t->lane = (SnLane){.n = 1, .shared = &t->shared};
  if (!t->runner || !t->memory || !t->res || !t->bar || !t->expand.bar || !t->expand.row || !t->expand.before ||
      !t->expand.at)
    return false;
  sn_adjoint_init(m, &t->adjoint, t->memory);
  return true;
}

static bool create_item(SnGradientProgress *x, const SnModel *m, const SnCost *cost, int max_step) {
  const size_t rows = (size_t)max_step + 1, nv = (size_t)m->nv, n = (size_t)sn_tangent_size(m);
  SnRolloutVjp *b = &x->vjp;
  x->sum = numbers((size_t)cost->nterm);
  x->saved = numbers((size_t)sn_rollout_saved_size(m));
  x->states = (SnTrajectory){.time = numbers(rows),
                             .qpos = numbers(rows * (size_t)m->nq),
                             .qvel = numbers(rows * nv),
                             .act = numbers(rows * (size_t)m->na),
                             .qacc = numbers(rows * nv),
                             .past = numbers(rows * (size_t)sn_past_size(m))};
  b->cfd_qacc = numbers(rows * nv);
  b->running = numbers((size_t)cost->nterm);
  b->terminal = numbers((size_t)cost->nterm);
  b->state_bar = numbers((size_t)sn_state_bar_size(m));
  b->scratch = numbers(n);
  x->slot = calloc(rows, sizeof *x->slot);
  return x->sum && x->saved && x->states.time && x->states.qpos && x->states.qvel && x->states.act && x->states.qacc &&
         x->states.past && b->cfd_qacc && b->running && b->terminal && b->state_bar && b->scratch && x->slot;
}

// How many rollouts have kept worlds within `bytes`: all items if there is room, else the threads, which need one at a
// time each. `size` is what a whole one takes.
static size_t count_stores(size_t size, size_t bytes, int items, int threads) {
  if (size == 0 || bytes == 0) return 0;
  const size_t most = (size_t)items, least = (size_t)(threads < items ? threads : items);
  const size_t n = bytes / size;
  return n < least ? least : n > most ? most : n;
}

// World slots of so many threads.
static int count_slots(int threads) { return threads == 1 ? 1 : 2 * threads; }

double sn_gradient_bytes(const SnModel *m, const SnCost *cost, int max_step, int count, size_t keep, int threads) {
  const double n = sn_tangent_size(m), nu = m->nu, rows = max_step + 1.0, real = (double)sizeof(sn_real);
  const double world = (double)sn_world_size(m), size = (double)sn_world_store_size(m, max_step);
  const double thread = world + (double)sn_adjoint_size(m) + (2 * cost->nres + m->nsensordata + 2 * n + 3 * nu) * real;
  const double slot = world + (n * n + n * nu + n + 2 * nu + cost->ntarget) * real;
  const double item =
      rows * ((1.0 + m->nq + 3.0 * m->nv + m->na + sn_past_size(m)) * real + (double)sizeof(int)) + 2 * n * real;
  const double stores = (double)count_stores((size_t)size, keep, count, threads);
  return threads * thread + count_slots(threads) * slot + count * item +
         (stores * size < (double)keep ? stores * size : (double)keep);
}

static void free_stores(SnGradientWork *g) {
  for (int i = 0; i < g->nstore; ++i) sn_world_store_free(g->store[i].worlds);
  free(g->store);
  g->store = NULL;
  g->nstore = 0;
}

// Kept worlds, each with `more` bytes for its step.
static bool create_stores(SnGradientWork *g, size_t more) {
  const int max_step = g->max_step;
  const size_t bytes = g->keep, size = sn_world_store_size(g->m, max_step) + more * (size_t)max_step;
  const size_t n = count_stores(size, bytes, g->capacity, g->nthread);
  if (n == 0) return true;
  g->store = calloc(n + 1, sizeof *g->store);
  for (size_t i = 0; g->store && i < n; ++i) {
    g->store[i].worlds = sn_world_store_create(max_step, size < bytes / n ? size : bytes / n);
    if (!g->store[i].worlds) return false;
    ++g->nstore;
  }
  return g->store != NULL;
}

SnGradientWork *sn_gradient_create(const SnModel *m, const SnCost *cost, int max_step, int count, size_t keep,
                                   SnPool *pool, SnError *err) {
  SnGradientWork *g = calloc(1, sizeof *g);
  if (!cost) cost = sn_cost_none();
  if (g) {
    pthread_mutex_init(&g->lock, NULL);
    sn_pool_condition(&g->changed);
    g->m = m;
    g->cost = cost;
    g->pool = pool;
    g->nthread = sn_pool_size(pool);
    g->alone = g->nthread == 1;
    g->nslot = count_slots(g->nthread);
    g->capacity = count;
    g->keep = keep;
    g->max_step = max_step;
    g->thread = calloc((size_t)g->nthread, sizeof *g->thread);
    g->slot = calloc((size_t)g->nslot, sizeof *g->slot);
    g->item = calloc((size_t)count + 1, sizeof *g->item);
    g->idle = calloc((size_t)g->nslot, sizeof *g->idle);
  }
  bool ok = g && g->thread && g->slot && g->item && g->idle;
  for (int i = 0; ok && i < g->nthread; ++i) ok = create_thread(&g->thread[i], m, cost, err);
  for (int i = 0; ok && i < g->nslot; ++i) ok = create_slot(&g->slot[i], m, cost);
  for (int i = 0; ok && i < count; ++i) ok = create_item(&g->item[i], m, cost, max_step);
  if (ok) ok = create_stores(g, 0);
  if (ok) return g;
  sn_gradient_free(g);
  sn_fail(err, SN_ERR_MEMORY, "gradient: out of memory");
  return NULL;
}

SnCode sn_gradient_choose(SnGradientWork *g, const SnHorizonSettings *settings, SnError *err) {
  SnCode code = SN_OK;
  for (int i = 0; i < g->nthread && code == SN_OK; ++i)
    code = sn_rollout_runner_choose(g->thread[i].runner, settings, true, err);
  free_stores(g);
  if (code != SN_OK || create_stores(g, STRETCH * sn_horizon_step_bytes(g->m, settings->method))) return code;
  return sn_fail(err, SN_ERR_MEMORY, "gradient: out of memory");
}

static void free_item(SnGradientProgress *x) {
  free(x->sum);
  free(x->saved);
  free(x->states.time);
  free(x->states.qpos);
  free(x->states.qvel);
  free(x->states.act);
  free(x->states.qacc);
  free(x->states.past);
  free(x->vjp.cfd_qacc);
  free(x->vjp.running);
  free(x->vjp.terminal);
  free(x->vjp.state_bar);
  free(x->vjp.scratch);
  free(x->slot);
}

void sn_gradient_free(SnGradientWork *g) {
  if (!g) return;
  for (int i = 0; g->thread && i < g->nthread; ++i) {
    sn_rollout_runner_free(g->thread[i].runner);
    free(g->thread[i].memory);
    free(g->thread[i].res);
    free(g->thread[i].bar);
    free(g->thread[i].expand.bar);
    free(g->thread[i].expand.row);
    free(g->thread[i].expand.before);
    free(g->thread[i].expand.at);
  }
  for (int i = 0; g->slot && i < g->nslot; ++i) {
    free(g->slot[i].memory);
    free(g->slot[i].state.A);
    free(g->slot[i].state.B);
    free(g->slot[i].state.state_bar);
    free(g->slot[i].state.ctrl_bar);
    free(g->slot[i].state.before_bar);
    free(g->slot[i].state.target_bar);
  }
  for (int i = 0; g->item && i < g->capacity; ++i) free_item(&g->item[i]);
  free_stores(g);
  free(g->thread);
  free(g->slot);
  free(g->item);
  free(g->idle);
  pthread_cond_destroy(&g->changed);
  pthread_mutex_destroy(&g->lock);
  free(g);
}
