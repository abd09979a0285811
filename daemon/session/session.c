#include "daemon/session/session.h"

#include <stdlib.h>
#include <string.h>

SnSessionSettings sn_default_session_settings(void) {
  return (SnSessionSettings){.latency = 0, .lease = 30, .time_to_live = 1};
}

const char *sn_stream_remark(const SnSessionSettings *settings) {
  if (settings->latency > 0) return "";
  return "latency is 0 in continuous mode: plans are made as if they were in force at the time stamp of their state; "
         "where the body does not wait for them, set it to what passes until they are";
}

bool sn_session_claim(SnSession *session, uint64_t number) {
  uint64_t before = atomic_load(&session->decided);
  while (before < number)
    if (atomic_compare_exchange_weak(&session->decided, &before, number)) return true;
  return false;
}

void sn_session_free(SnSession *session, SnModels *models) {
  if (!session) return;
  sn_planner_free(session->planner);
  sn_task_free(session->task);
  sn_models_release(models, session->loaded);
  sn_job_free(sn_mailbox_pop(&session->states));
  sn_job_free(session->waiting);
  sn_job_free(session->active);
  for (SnJob *job = session->evaluations, *next; job; job = next) {
    next = job->next;
    sn_job_free(job);
  }
  sn_history_free(&session->history);
  sn_keeper_release(session->kept);
  free(session);
}

static bool is_complete(const SnSessions *sessions) {
  return sessions->item && sessions->by_id && sessions->seen && sessions->opener && sessions->taken;
}

bool sn_sessions_init(SnSessions *sessions, int capacity) {
  *sessions = (SnSessions){.capacity = capacity,
                           .item = calloc((size_t)capacity, sizeof(SnSession *)),
                           .by_id = calloc((size_t)capacity, sizeof(SnSession *)),
                           .seen = calloc((size_t)capacity, sizeof(SnSession *)),
                           .opener = calloc((size_t)capacity, sizeof *sessions->opener),
                           .taken = calloc((size_t)capacity, sizeof *sessions->taken)};
  return is_complete(sessions) && pthread_mutex_init(&sessions->mutex, NULL) == 0;
}

void sn_sessions_free(SnSessions *sessions) {
  if (is_complete(sessions)) pthread_mutex_destroy(&sessions->mutex);
  free(sessions->item);
  free(sessions->by_id);
  free(sessions->seen);
  free(sessions->opener);
  free(sessions->taken);
  *sessions = (SnSessions){0};
}

// Places that a connection has, open or reserved. With the mutex.
static int count_of(const SnSessions *sessions, uint64_t client) {
  int n = 0;
  for (int i = 0; i < sessions->count; i++) n += sessions->item[i]->client.number == client;
  for (int i = 0; i < sessions->reserved; i++) n += sessions->opener[i] == client;
  return n;
}

SnCode sn_sessions_reserve(SnSessions *sessions, const SnRoute *route, int most, SnError *err) {
  SnPeer *peer = route->peer;
  pthread_mutex_lock(&sessions->mutex);
  const bool free = sessions->count + sessions->reserved < sessions->capacity;
  const int of_key = peer->sessions;
  const bool allowed = of_key < peer->quota.sessions;
  const bool fits = count_of(sessions, route->link.number) < most;
  if (free && allowed && fits) {
    sessions->opener[sessions->reserved++] = route->link.number;
    ++peer->sessions;
  }
  pthread_mutex_unlock(&sessions->mutex);
  if (!free) return sn_fail(err, SN_ERR_LIMIT, "%d sessions are open; more are not allowed", sessions->capacity);
  if (!allowed) return sn_fail(err, SN_ERR_LIMIT, "this key has %d sessions; more are not allowed", of_key);
  if (fits) return SN_OK;
  return sn_fail(err, SN_ERR_LIMIT, "%d sessions of this connection are open; more are not allowed for one", most);
}

// With the mutex.
static void drop_reservation(SnSessions *sessions, uint64_t client) {
  int i = 0;
  while (i < sessions->reserved - 1 && sessions->opener[i] != client) i++;
  sessions->opener[i] = sessions->opener[--sessions->reserved];
}

void sn_sessions_unreserve(SnSessions *sessions, const SnRoute *route) {
  pthread_mutex_lock(&sessions->mutex);
  drop_reservation(sessions, route->link.number);
  route->peer->sessions--;
  pthread_mutex_unlock(&sessions->mutex);
}

// Counts sessions with a lower id: where it stands in `by_id`, or would. With the mutex.
static int rank_of(const SnSessions *sessions, uint64_t id) {
  int low = 0, high = sessions->count;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (sessions->by_id[middle]->id < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void sn_sessions_add(SnSessions *sessions, SnSession *session) {
  pthread_mutex_lock(&sessions->mutex);
  drop_reservation(sessions, session->client.number);
  session->place = 0;
  while (sessions->taken[session->place]) session->place++;
  sessions->taken[session->place] = true;
  SnSession **at = sessions->by_id + rank_of(sessions, session->id), **end = sessions->by_id + sessions->count;
  memmove(at + 1, at, (size_t)(end - at) * sizeof *at);
  *at = session;
  sessions->item[sessions->count++] = session;
  pthread_mutex_unlock(&sessions->mutex);
}

SnSession *sn_sessions_find(SnSessions *sessions, uint64_t id) {
  pthread_mutex_lock(&sessions->mutex);
  const int rank = rank_of(sessions, id);
  const bool found = rank < sessions->count && sessions->by_id[rank]->id == id;
  SnSession *session = found ? sessions->by_id[rank] : NULL;
  pthread_mutex_unlock(&sessions->mutex);
  return session;
}

void sn_sessions_forget(SnSessions *sessions) {
  pthread_mutex_lock(&sessions->mutex);
  sessions->count = 0;
  pthread_mutex_unlock(&sessions->mutex);
}

void sn_sessions_remove(SnSessions *sessions, SnSession *session) {
  pthread_mutex_lock(&sessions->mutex);
  int i = 0;
  while (i < sessions->count && sessions->item[i] != session) i++;
  if (i < sessions->count) {
    SnSession **at = sessions->by_id + rank_of(sessions, session->id), **end = sessions->by_id + sessions->count;
    while (*at != session) at++;  // two may have drawn one id
    memmove(at, at + 1, (size_t)(end - at - 1) * sizeof *at);
    sessions->item[i] = sessions->item[--sessions->count];
    sessions->taken[session->place] = false;
    session->owner->sessions--;
  }
  pthread_mutex_unlock(&sessions->mutex);
}

int sn_sessions_count(SnSessions *sessions) {
  pthread_mutex_lock(&sessions->mutex);
  int n = sessions->count;
  pthread_mutex_unlock(&sessions->mutex);
  return n;
}

SnSession *const *sn_sessions_all(SnSessions *sessions, int *count) {
  pthread_mutex_lock(&sessions->mutex);
  *count = sessions->count;
  memcpy(sessions->seen, sessions->item, (size_t)*count * sizeof(SnSession *));
  pthread_mutex_unlock(&sessions->mutex);
  return sessions->seen;
}
