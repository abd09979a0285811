#include "daemon/base/queue.h"

#include <errno.h>
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

bool sn_queue_push(SnQueue *queue, void *item) {
  pthread_mutex_lock(&queue->mutex);
  bool ok = !queue->closed && queue->count < queue->capacity;
  if (ok) {
    queue->ring[(queue->head + queue->count++) % queue->capacity] = item;
    pthread_cond_signal(&queue->filled);
  }
  pthread_mutex_unlock(&queue->mutex);
  return ok;
}

void *sn_queue_pop(SnQueue *queue, double until) {
  if (until <= 0 && atomic_load(&queue->count) == 0) return NULL;
  void *item = NULL;
  struct timespec limit = sn_clock_timespec(until);
  pthread_mutex_lock(&queue->mutex);
  while (queue->count == 0 && !queue->closed && !queue->woken && until > 0)
    if (pthread_cond_timedwait(&queue->filled, &queue->mutex, &limit) == ETIMEDOUT) break;
  if (until > 0) queue->woken = false;
  if (queue->count > 0) {
    item = queue->ring[queue->head];
    queue->head = (queue->head + 1) % queue->capacity;
    queue->count--;
  }
  pthread_mutex_unlock(&queue->mutex);
  return item;
}

void sn_queue_wake(SnQueue *queue) {
  pthread_mutex_lock(&queue->mutex);
  queue->woken = true;
  pthread_cond_signal(&queue->filled);
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
