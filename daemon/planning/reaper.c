#include <malloc.h>
#include <stdlib.h>

#include "daemon/base/memory.h"
#include "daemon/planning/planning.h"
#include "physics/base/clock.h"

// Between two readings of the heap lie so many seconds: who wants memory of a thread that loads waits for one.
#define HEAP_TIME 1.0

typedef struct SnWaste {
  SnSession *session;
  SnPlanner *planner;
  struct SnWaste *next;
} SnWaste;

static void free_waste(const SnReaper *r, SnWaste *waste) {
  if (waste->session) sn_session_free(waste->session, r->models);
  sn_planner_free(waste->planner);
}

static void *reaper_main(void *argument) {
  SnReaper *r = argument;
  pthread_mutex_lock(&r->mutex);
  for (;;) {
    SnWaste *waste = r->first;
    if (r->trim) {
      r->trim = false;
      pthread_mutex_unlock(&r->mutex);
      malloc_trim(0);
      pthread_mutex_lock(&r->mutex);
    } else if (waste) {
      r->first = waste->next;
      pthread_mutex_unlock(&r->mutex);
      free_waste(r, waste);
      free(waste);
      pthread_mutex_lock(&r->mutex);
    } else if (r->read) {
      r->read = false;
      pthread_mutex_unlock(&r->mutex);
      atomic_store(&r->heap, sn_heap_memory());
      pthread_mutex_lock(&r->mutex);
    } else if (r->stop) {
      break;
    } else {
      pthread_cond_wait(&r->filled, &r->mutex);
    }
  }
  pthread_mutex_unlock(&r->mutex);
  return NULL;
}

SnCode sn_reaper_start(SnReaper *r, SnModels *models, SnError *err) {
  *r = (SnReaper){.models = models, .read = true};
  pthread_mutex_init(&r->mutex, NULL);
  pthread_cond_init(&r->filled, NULL);
  r->running = pthread_create(&r->thread, NULL, reaper_main, r) == 0;
  return r->running ? SN_OK : sn_fail(err, SN_ERR_LIMIT, "cannot start the thread that frees sessions");
}

// Without memory for a note the caller frees it himself.
static void hand_over(SnReaper *r, SnWaste waste) {
  SnWaste *copy = r->running ? malloc(sizeof *copy) : NULL;
  if (!copy) {
    free_waste(r, &waste);
    return;
  }
  pthread_mutex_lock(&r->mutex);
  *copy = waste;
  copy->next = r->first;
  r->first = copy;
  pthread_cond_signal(&r->filled);
  pthread_mutex_unlock(&r->mutex);
}

void sn_reaper_session(SnReaper *r, SnSession *session) { hand_over(r, (SnWaste){.session = session}); }

void sn_reaper_planner(SnReaper *r, SnPlanner *planner) {
  if (planner) hand_over(r, (SnWaste){.planner = planner});
}

// Wakes the thread for something that it is to do.
static void ask(SnReaper *r, bool *what) {
  pthread_mutex_lock(&r->mutex);
  *what = true;
  pthread_cond_signal(&r->filled);
  pthread_mutex_unlock(&r->mutex);
}

uint64_t sn_reaper_heap(SnReaper *r) {
  const double now = sn_clock_now();
  if (!r->running || now - r->asked < HEAP_TIME) return atomic_load(&r->heap);
  r->asked = now;
  ask(r, &r->read);
  return atomic_load(&r->heap);
}

void sn_reaper_trim(SnReaper *r) {
  if (r->running) ask(r, &r->trim);
}

void sn_reaper_stop(SnReaper *r) {
  if (!r->running) return;
  pthread_mutex_lock(&r->mutex);
  r->stop = true;
  pthread_cond_signal(&r->filled);
  pthread_mutex_unlock(&r->mutex);
  pthread_join(r->thread, NULL);
  pthread_cond_destroy(&r->filled);
  pthread_mutex_destroy(&r->mutex);
  r->running = false;
}
