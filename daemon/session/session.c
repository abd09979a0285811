#include "daemon/session/session.h"

#include <stdlib.h>

SnSessionSettings sn_default_session_settings(void) {
  return (SnSessionSettings){.latency = 0, .lease = 30, .time_to_live = 1};
}

const char *sn_stream_remark(const SnSessionSettings *settings) {
  if (settings->latency > 0) return "";
  return "latency is 0 in continuous mode: plans are made as if they were in force at the time stamp of their state; "
         "where the body does not wait for them, set it to what passes until they are";
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
  sn_metrics_free(&session->metrics);
  free(session);
}

bool sn_sessions_init(SnSessions *sessions, int capacity) {
  *sessions = (SnSessions){.capacity = capacity, .item = calloc((size_t)capacity, sizeof(SnSession *))};
  return sessions->item && pthread_mutex_init(&sessions->mutex, NULL) == 0;
}

void sn_sessions_free(SnSessions *sessions) {
  if (!sessions->item) return;
  pthread_mutex_destroy(&sessions->mutex);
  free(sessions->item);
  *sessions = (SnSessions){0};
}

bool sn_sessions_reserve(SnSessions *sessions, SnPeer *peer) {
  pthread_mutex_lock(&sessions->mutex);
  bool ok = sessions->count + sessions->reserved < sessions->capacity && peer->sessions < peer->quota.sessions;
  sessions->reserved += ok;
  peer->sessions += ok;
  pthread_mutex_unlock(&sessions->mutex);
  return ok;
}

void sn_sessions_unreserve(SnSessions *sessions, SnPeer *peer) {
  pthread_mutex_lock(&sessions->mutex);
  sessions->reserved--;
  peer->sessions--;
  pthread_mutex_unlock(&sessions->mutex);
}

void sn_sessions_add(SnSessions *sessions, SnSession *session) {
  pthread_mutex_lock(&sessions->mutex);
  sessions->reserved--;
  sessions->item[sessions->count++] = session;
  pthread_mutex_unlock(&sessions->mutex);
}

SnSession *sn_sessions_find(SnSessions *sessions, uint64_t id) {
  SnSession *found = NULL;
  pthread_mutex_lock(&sessions->mutex);
  for (int i = 0; i < sessions->count && !found; i++)
    if (sessions->item[i]->id == id) found = sessions->item[i];
  pthread_mutex_unlock(&sessions->mutex);
  return found;
}

void sn_sessions_remove(SnSessions *sessions, SnSession *session) {
  pthread_mutex_lock(&sessions->mutex);
  for (int i = 0; i < sessions->count; i++)
    if (sessions->item[i] == session) {
      sessions->item[i] = sessions->item[--sessions->count];
      session->owner->sessions--;
      break;
    }
  pthread_mutex_unlock(&sessions->mutex);
}

int sn_sessions_count(SnSessions *sessions) {
  pthread_mutex_lock(&sessions->mutex);
  int n = sessions->count;
  pthread_mutex_unlock(&sessions->mutex);
  return n;
}

SnSession *sn_sessions_at(SnSessions *sessions, int i) {
  pthread_mutex_lock(&sessions->mutex);
  SnSession *session = i < sessions->count ? sessions->item[i] : NULL;
  pthread_mutex_unlock(&sessions->mutex);
  return session;
}
