#include "daemon/base/queue.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "physics/base/clock.h"

bool sn_queue_init(SnQueue *queue, int capacity) {
  *queue = (SnQueue){.capacity = capacity, .ring = calloc((size_t)capacity, sizeof(void *))};
  if (!queue->ring) return false;
  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&queue->filled, &attr);
  pthread_condattr_destroy(&attr);
  pthread_mutex_init(&queue->mutex, NULL);
  return true;
}

void sn_queue_free(SnQueue *queue) {
  if (!queue->ring) return;
  pthread_cond_destroy(&queue->filled);
  pthread_mutex_destroy(&queue->mutex);
  free(queue->ring);
  *queue = (SnQueue){0};
}

// Tells takers, under the mutex.
static void tell(SnQueue *queue) {
  if (queue->waiting > 0 && queue->told == 0) queue->told = sn_clock_now();
  pthread_cond_signal(&queue->filled);
}

bool sn_queue_push(SnQueue *queue, void *item) {
  pthread_mutex_lock(&queue->mutex);
  bool ok = !queue->closed && queue->count < queue->capacity;
  if (ok) {
    queue->ring[(queue->head + queue->count++) % queue->capacity] = item;
    tell(queue);
  }
  pthread_mutex_unlock(&queue->mutex);
  return ok;
}

// Waits under the mutex until there is something to do, or `until`. Returns how late the thread woke up.
static double wait(SnQueue *queue, double until) {
  const struct timespec limit = sn_clock_timespec(until);
  double late = (double)NAN;
  while (queue->count == 0 && !queue->closed && !queue->woken) {
    queue->waiting++;
    const bool over = pthread_cond_timedwait(&queue->filled, &queue->mutex, &limit) == ETIMEDOUT;
    queue->waiting--;
    late = sn_clock_now() - (queue->told > 0 ? queue->told : until);
    queue->told = 0;
    if (over) break;
  }
  return late;
}

void *sn_queue_pop_late(SnQueue *queue, double until, double *late) {
  void *item = NULL;
  *late = (double)NAN;
  if (until <= 0 && atomic_load(&queue->count) == 0) return NULL;
  pthread_mutex_lock(&queue->mutex);
  if (until > 0) *late = wait(queue, until);
  if (until > 0) queue->woken = false;
  if (queue->count > 0) {
    item = queue->ring[queue->head];
    queue->head = (queue->head + 1) % queue->capacity;
    queue->count--;
  }
  pthread_mutex_unlock(&queue->mutex);
  return item;
}

void *sn_queue_pop(SnQueue *queue, double until) {
  double late;
  return sn_queue_pop_late(queue, until, &late);
}

void sn_queue_wake(SnQueue *queue) {
  pthread_mutex_lock(&queue->mutex);
  queue->woken = true;
  tell(queue);
  pthread_mutex_unlock(&queue->mutex);
}

void sn_queue_close(SnQueue *queue) {
  pthread_mutex_lock(&queue->mutex);
  queue->closed = true;
  pthread_cond_broadcast(&queue->filled);
  pthread_mutex_unlock(&queue->mutex);
}

int sn_queue_count(SnQueue *queue) {
  pthread_mutex_lock(&queue->mutex);
  int n = queue->count;
  pthread_mutex_unlock(&queue->mutex);
  return n;
}

bool sn_queue_closed(SnQueue *queue) {
  pthread_mutex_lock(&queue->mutex);
  bool closed = queue->closed;
  pthread_mutex_unlock(&queue->mutex);
  return closed;
}
