#include "planner/base/pool.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "planner/base/clock.h"

typedef struct PoolThread {
  SnPool *pool;
  int index;
  pthread_t id;
} PoolThread;

struct SnPool {
  int n;
  int started;         // threads that exist, besides the caller's
  PoolThread *thread;  // (n - 1)
  pthread_mutex_t lock;
  pthread_cond_t wake, idle;
  // under lock:
  unsigned long job;  // number of the current job
  int busy;           // threads that have not ended it
  bool stop;
  void (*work)(void *argument, int thread);
  void *argument;
};

static void *pool_main(void *context) {
  PoolThread *self = context;
  SnPool *pool = self->pool;
  unsigned long done = 0;
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    while (!pool->stop && pool->job == done) pthread_cond_wait(&pool->wake, &pool->lock);
    if (pool->stop) break;
    done = pool->job;
    pthread_mutex_unlock(&pool->lock);
    pool->work(pool->argument, self->index);
    pthread_mutex_lock(&pool->lock);
    if (--pool->busy == 0) pthread_cond_signal(&pool->idle);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

// Starts the threads with all signals blocked, so that the program's own thread gets them.
static int pool_start(SnPool *pool) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int failed = 0;
  for (int i = 1; i < pool->n && !failed; ++i) {
    PoolThread *t = &pool->thread[i - 1];
    t->pool = pool;
    t->index = i;
    failed = pthread_create(&t->id, NULL, pool_main, t);
    pool->started += !failed;
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return failed;
}

SnPool *sn_pool_create(int n, SnError *err) {
  if (n < 1 || n > SN_MAX_THREADS) {
    sn_fail(err, SN_ERR_ARGUMENT, "threads: %d is out of bounds, allowed is 1 to %d", n, SN_MAX_THREADS);
    return NULL;
  }
  SnPool *pool = calloc(1, sizeof *pool);
  PoolThread *thread = calloc((size_t)n, sizeof *thread);
  if (!pool || !thread) {
    free(pool);
    free(thread);
    sn_fail(err, SN_ERR_MEMORY, "threads: out of memory");
    return NULL;
  }
  pool->n = n;
  pool->thread = thread;
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->wake, NULL);
  sn_pool_condition(&pool->idle);
  const int failed = pool_start(pool);
  if (failed) {
    sn_fail(err, SN_ERR_LIMIT, "threads: cannot start %d: %s", n, strerror(failed));
    sn_pool_free(pool);
    return NULL;
  }
  return pool;
}

void sn_pool_free(SnPool *pool) {
  if (!pool) return;
  pthread_mutex_lock(&pool->lock);
  pool->stop = true;
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->lock);
  for (int i = 0; i < pool->started; ++i) pthread_join(pool->thread[i].id, NULL);
  pthread_cond_destroy(&pool->wake);
  pthread_cond_destroy(&pool->idle);
  pthread_mutex_destroy(&pool->lock);
  free(pool->thread);
  free(pool);
}

int sn_pool_size(const SnPool *pool) { return pool->n; }

void sn_pool_condition(pthread_cond_t *condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
}

void sn_pool_wait_patiently(pthread_cond_t *condition, pthread_mutex_t *lock) {
  const struct timespec end = sn_clock_timespec(sn_clock_now() + sn_clock_patience);
  pthread_cond_timedwait(condition, lock, &end);
}

// Waits for the other threads, under lock.
static void pool_wait(SnPool *pool, void (*watch)(void *argument), void *argument) {
  while (pool->busy > 0 && !watch) pthread_cond_wait(&pool->idle, &pool->lock);
  while (pool->busy > 0) {
    sn_pool_wait_patiently(&pool->idle, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    watch(argument);
    pthread_mutex_lock(&pool->lock);
  }
}

void sn_pool_run(SnPool *pool, void (*work)(void *argument, int thread), void *argument) {
  sn_pool_run_watched(pool, work, NULL, argument);
}

void sn_pool_run_watched(SnPool *pool, void (*work)(void *argument, int thread), void (*watch)(void *argument),
                         void *argument) {
  if (pool->n == 1) {
    work(argument, 0);
    return;
  }
  pthread_mutex_lock(&pool->lock);
  pool->work = work;
  pool->argument = argument;
  pool->busy = pool->n - 1;
  ++pool->job;
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->lock);
  work(argument, 0);
  pthread_mutex_lock(&pool->lock);
  pool_wait(pool, watch, argument);
  pthread_mutex_unlock(&pool->lock);
}
