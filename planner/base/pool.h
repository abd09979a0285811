// A pool of threads that is started once. One job at a time: every thread runs the same function.
#ifndef SINEW_PLANNER_BASE_POOL_H_
#define SINEW_PLANNER_BASE_POOL_H_

#include <pthread.h>

#include "physics/base/status.h"

typedef struct SnPool SnPool;

enum { SN_MAX_THREADS = 256 };

// Starts n threads of work, 1 <= n <= SN_MAX_THREADS; the thread that calls sn_pool_run is one of them, so n - 1
// are created. Signals stay with the caller's thread. Returns NULL and err on failure.
SnPool *sn_pool_create(int n, SnError *err);
// Stops and joins the threads. No job may be running.
void sn_pool_free(SnPool *pool);
int sn_pool_size(const SnPool *pool);

// Runs work(argument, thread) for thread = 0 ... n - 1 in parallel and returns when all have ended. Allows one caller
// at a time.
void sn_pool_run(SnPool *pool, void (*work)(void *argument, int thread), void *argument);
// Runs work as sn_pool_run does. The caller is thread 0; once its part has ended it waits for the others, and calls
// watch(argument) every sn_clock_patience meanwhile. NULL: it does not.
void sn_pool_run_watched(SnPool *pool, void (*work)(void *argument, int thread), void (*watch)(void *argument),
                         void *argument);
// Makes a condition variable whose timed waits are by the monotonic clock.
void sn_pool_condition(pthread_cond_t *condition);
// Waits for a condition, at most sn_clock_patience.
void sn_pool_wait_patiently(pthread_cond_t *condition, pthread_mutex_t *lock);

#endif
