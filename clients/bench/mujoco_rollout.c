#include "clients/bench/mujoco_rollout_private.h"

#include <stdatomic.h>

// The work of one call, taken chunk by chunk.
typedef struct Work {
  const MujocoRollout *r;
  int chunk;
  atomic_int next;
} Work;

static bool warned(const mjData *d) {
  for (int i = 0; i < mjNWARNING; ++i)
    if (d->warning[i].number) return true;
  return false;
}

// Rollout k. Behind a warning the last state is kept.
static void roll(const MujocoRollout *r, mjData *d, size_t k) {
  const mjModel *m = r->m;
  const size_t steps = (size_t)r->steps, size = (size_t)r->size, ns = (size_t)m->nsensordata, nu = (size_t)m->nu;
  mj_setState(m, d, r->state0 + k * size, mjSTATE_FULLPHYSICS);
  mju_zero(d->qacc_warmstart, m->nv);
  for (int i = 0; i < mjNWARNING; ++i) d->warning[i].number = 0;
  for (size_t t = 0; t < steps; ++t) {
    const size_t row = k * steps + t;
    if (!warned(d)) {
      mj_setState(m, d, r->ctrl + row * nu, mjSTATE_CTRL);
      mj_step(m, d);
    }
    mj_getState(m, d, r->state + row * size, mjSTATE_FULLPHYSICS);
    mju_copy(r->sensordata + row * ns, d->sensordata, m->nsensordata);
  }
}

static void work_on(void *argument, int thread) {
  Work *w = argument;
  for (;;) {
    const int first = atomic_fetch_add(&w->next, w->chunk);
    if (first >= w->r->count) return;
    const int end = first + w->chunk < w->r->count ? first + w->chunk : w->r->count;
    for (int k = first; k < end; ++k) roll(w->r, w->r->d[thread], (size_t)k);
  }
}

void mujoco_rollout_run(const MujocoRollout *r, SnPool *pool) {
  const int share = r->count / (10 * sn_pool_size(pool));
  Work w = {.r = r, .chunk = share > 1 ? share : 1};
  atomic_init(&w.next, 0);
  sn_pool_run(pool, work_on, &w);
}
