#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/keep/keeper_private.h"
#include "physics/base/clock.h"

// What could not be written is tried again after so many seconds.
#define AGAIN_TIME 1.0

// More answers than that do not wait for a disk that hangs.
enum { WAITING_MOST = 64 };

// ---- answers ----

// The configuration that an answer brings, NULL for none.
static Sinew__V1__Config *config_of(const Sinew__V1__Reply *reply) {
  switch (reply->body_case) {
    case SINEW__V1__REPLY__BODY_OPEN:
      return reply->open->config;
    case SINEW__V1__REPLY__BODY_SET_CONFIG:
      return reply->set_config;
    case SINEW__V1__REPLY__BODY_REVERT:
      return reply->revert;
    case SINEW__V1__REPLY__BODY_RESET:
      return reply->reset->config;
    default:
      return NULL;
  }
}

// Sends answers to changes that are in force and not kept: their configuration says so.
static void send_warned(const SnKeeper *k, SnReply *replies, const char *why) {
  for (SnReply *p = replies, *next; p; p = next) {
    next = p->next;
    p->next = NULL;
    Sinew__V1__Reply *reply = sinew__v1__reply__unpack(NULL, p->size, p->bytes);
    Sinew__V1__Config *config = reply ? config_of(reply) : NULL;
    char text[600];
    SnReply *warned = NULL;
    if (config) {
      char *before = config->warning;
      snprintf(text, sizeof text, "%.200s%sthis is in force, and a restart of the daemon loses it: %s", before,
               *before ? "; " : "", why);
      config->warning = text;
      warned = sn_outbox_pack(k->outbox, &p->route, reply);
      config->warning = before;
    }
    if (reply) sinew__v1__reply__free_unpacked(reply, NULL);
    sn_outbox_send(k->outbox, warned ? warned : p);
    if (warned) free(p);
  }
}

static void send_all(const SnKeeper *k, SnReply *replies) {
  for (SnReply *p = replies, *next; p; p = next) {
    next = p->next;
    p->next = NULL;
    sn_outbox_send(k->outbox, p);
  }
}

// Takes the answers of an entry. With the mutex.
static SnReply *take_replies(SnKept *kept) {
  SnReply *replies = kept->replies;
  kept->replies = NULL;
  kept->last_reply = &kept->replies;
  kept->waiting = 0;
  return replies;
}

// ---- entries ----

SnKept *sn_keeper_new(SnKeeper *k, const char *name, SnPeer *owner, SnKeptState state) {
  SnKept *kept = calloc(1, sizeof *kept);
  if (!kept) return NULL;
  kept->keeper = k;
  kept->owner = owner;
  kept->state = state;
  kept->last_reply = &kept->replies;
  snprintf(kept->name, sizeof kept->name, "%s", name);
  pthread_mutex_lock(&k->mutex);
  kept->next = k->first;
  k->first = kept;
  pthread_mutex_unlock(&k->mutex);
  return kept;
}

static void free_entry(SnKept *kept) {
  for (int part = 0; part < SN_KEPT_PARTS; part++) free(kept->pending[part].bytes);
  if (kept->from) protobuf_c_message_free_unpacked(&kept->from->base, NULL);
  free(kept);
}

SnKept *sn_keeper_find(SnKeeper *k, const char *name, const SnPeer *owner, SnKeptState *state, uint64_t *id) {
  if (!k->running) return NULL;
  pthread_mutex_lock(&k->mutex);
  SnKept *kept = k->first;
  while (kept && (kept->state == SN_KEPT_CLOSED || kept->owner != owner || strcmp(kept->name, name) != 0))
    kept = kept->next;
  if (kept) *state = kept->state, *id = kept->id;
  pthread_mutex_unlock(&k->mutex);
  return kept;
}

SnKept *sn_keeper_add(SnKeeper *k, const char *name, SnPeer *owner) {
  return sn_keeper_new(k, name, owner, SN_KEPT_OPENING);
}

void sn_keeper_mark(SnKept *kept) {
  SnKeeper *k = kept->keeper;
  char name[SN_KEPT_NAME], text[16];
  SnError err = {0};
  if (kept->marked) return;
  kept->marked = true;
  snprintf(text, sizeof text, "%d", ++kept->tries);
  // Where no mark can be written the session is restored all the same.
  sn_kept_file_write(&k->folder, sn_kept_file_name(kept->id, SN_KEPT_MARK, name), (SnKeptBytes){text, strlen(text)},
                     false, &err);
}

void sn_keeper_first_plan(SnKeeper *k, const SnKept *kept) { atomic_store(&k->first_plan, kept); }

static void unmark(SnKept *kept) {
  char name[SN_KEPT_NAME];
  if (kept->marked || kept->tries > 0)
    sn_kept_file_remove(&kept->keeper->folder, sn_kept_file_name(kept->id, SN_KEPT_MARK, name));
  kept->marked = false;
  kept->tries = 0;
}

void sn_keeper_opened(SnKept *kept, uint64_t id) {
  unmark(kept);
  pthread_mutex_lock(&kept->keeper->mutex);
  kept->id = id;
  if (kept->state != SN_KEPT_CLOSED) kept->state = SN_KEPT_OPEN;
  pthread_mutex_unlock(&kept->keeper->mutex);
}

bool sn_keeper_restoring(SnKeeper *k, uint64_t id, const SnPeer **owner) {
  bool found = false;
  if (!k->running) return false;
  pthread_mutex_lock(&k->mutex);
  for (const SnKept *kept = k->first; kept && !found; kept = kept->next) {
    found = kept->state == SN_KEPT_RESTORING && kept->id == id;
    if (found) *owner = kept->owner;
  }
  pthread_mutex_unlock(&k->mutex);
  return found;
}

bool sn_keeper_refused(SnKeeper *k, uint64_t id, const SnPeer **owner) {
  bool found = false;
  if (!k->running) return false;
  pthread_mutex_lock(&k->mutex);
  for (int i = 0; i < SN_KEPT_REFUSALS && !found; i++) {
    found = k->refused[i].owner && k->refused[i].id == id;
    if (found) *owner = k->refused[i].owner;
  }
  pthread_mutex_unlock(&k->mutex);
  return found;
}

// Lines up an answer. With the mutex.
static void add_reply(SnKept *kept, SnReply *reply) {
  if (!reply) return;
  *kept->last_reply = reply;
  kept->last_reply = &reply->next;
  kept->waiting++;
}

void sn_keeper_close(SnKept *kept, SnReply *reply) {
  pthread_mutex_lock(&kept->keeper->mutex);
  kept->state = SN_KEPT_CLOSED;
  add_reply(kept, reply);
  pthread_cond_signal(&kept->keeper->filled);
  pthread_mutex_unlock(&kept->keeper->mutex);
}

// With the mutex.
static void forget_files(SnKeeper *k, SnKept *kept) {
  for (int part = 0; part < SN_KEPT_PARTS; part++) {
    k->bytes -= kept->written[part];
    kept->written[part] = 0;
  }
}

void sn_keeper_refuse(SnKept *kept, const char *why) {
  SnKeeper *k = kept->keeper;
  char name[SN_KEPT_NAME];
  for (int part = SN_KEPT_PARTS - 1; part >= 0; part--)
    if (kept->written[part] > 0)
      sn_kept_file_refuse(&k->folder, sn_kept_file_name(kept->id, (SnKeptPart)part, name), k->log, why);
  unmark(kept);
  pthread_mutex_lock(&k->mutex);
  forget_files(k, kept);
  k->refused[k->refusals++ % SN_KEPT_REFUSALS] = (SnKeptRefusal){kept->id, kept->owner};
  pthread_mutex_unlock(&k->mutex);
  sn_keeper_close(kept, NULL);
}

void sn_keeper_release(SnKept *kept) {
  if (!kept) return;
  SnKeeper *k = kept->keeper;
  pthread_mutex_lock(&k->mutex);
  kept->released = true;
  pthread_cond_signal(&k->filled);
  pthread_mutex_unlock(&k->mutex);
}

void sn_keeper_post(SnKept *kept, SnKeptPart part, SnKeptBytes bytes, SnReply *reply) {
  SnKeeper *k = kept->keeper;
  SnReply *unkept = NULL;
  pthread_mutex_lock(&k->mutex);
  if (bytes.bytes) {
    free(kept->pending[part].bytes);
    kept->pending[part] = bytes;
  }
  add_reply(kept, reply);
  if (!bytes.bytes || kept->waiting > WAITING_MOST) unkept = take_replies(kept);
  pthread_cond_signal(&k->filled);
  pthread_mutex_unlock(&k->mutex);
  if (unkept) send_warned(k, unkept, bytes.bytes ? "the disk is slow" : "out of memory");
}

// ---- the thread ----

static bool has_bytes(const SnKept *kept) {
  return kept->pending[SN_KEPT_SETTINGS].bytes || kept->pending[SN_KEPT_WARM].bytes;
}

// Whether there is something to do for it, at once or at *until. With the mutex.
static bool has_work(const SnKeeper *k, const SnKept *kept, double now, double *until) {
  if (kept->state == SN_KEPT_CLOSED)
    return kept->released || kept->replies || kept->written[SN_KEPT_SETTINGS] || kept->written[SN_KEPT_WARM];
  if (!has_bytes(kept)) return kept->replies != NULL;
  if (k->stop || now >= kept->again) return true;
  *until = fmin(*until, kept->again);
  return false;
}

// Files are removed first: a session that has the name of one that was closed must not be there beside it.
static SnKept *find_work(const SnKeeper *k, double *until) {
  const double now = sn_clock_now();
  SnKept *found = NULL;
  *until = now + 3600;
  for (SnKept *kept = k->first; kept; kept = kept->next) {
    if (!has_work(k, kept, now, until)) continue;
    if (kept->state == SN_KEPT_CLOSED) return kept;
    if (!found) found = kept;
  }
  return found;
}

// Removes the files of a session that is closed; its entry goes with whoever knows it last. Without the mutex.
static void remove_files(SnKeeper *k, SnKept *kept) {
  char name[SN_KEPT_NAME];
  // The settings first: without them the warm start says nothing.
  for (int part = 0; part < SN_KEPT_PARTS; part++)
    if (kept->written[part] > 0) sn_kept_file_remove(&k->folder, sn_kept_file_name(kept->id, (SnKeptPart)part, name));
  if (kept->written[SN_KEPT_SETTINGS] > 0) fsync(k->folder.fd);
}

// With the mutex, which is given away meanwhile.
static void close_entry(SnKeeper *k, SnKept *kept) {
  SnReply *replies = take_replies(kept);
  pthread_mutex_unlock(&k->mutex);
  remove_files(k, kept);
  send_all(k, replies);
  pthread_mutex_lock(&k->mutex);
  forget_files(k, kept);
  if (!kept->released || kept->replies) return;
  SnKept **link = &k->first;
  while (*link != kept) link = &(*link)->next;
  *link = kept->next;
  free_entry(kept);
}

// Writes one part. Without the mutex; `total` is what all other files have.
static SnCode write_part(const SnKeeper *k, const SnKept *kept, SnKeptPart part, SnKeptBytes bytes, size_t total,
                         SnError *err) {
  char name[SN_KEPT_NAME];
  const size_t most = (size_t)k->config->state_megabytes << 20;
  if (bytes.size > SN_WIRE_MESSAGE || total + bytes.size > most)
    return sn_fail(err, SN_ERR_LIMIT, "%zu bytes beside %zu of other files; state_megabytes allows %zu", bytes.size,
                   total, most);
  return sn_kept_file_write(&k->folder, sn_kept_file_name(kept->id, part, name), bytes, part == SN_KEPT_SETTINGS, err);
}

void sn_keeper_write(SnKept *kept, SnKeptBytes bytes) {
  SnKeeper *k = kept->keeper;
  SnError err = {0};
  pthread_mutex_lock(&k->mutex);
  const size_t others = k->bytes - kept->written[SN_KEPT_SETTINGS];
  pthread_mutex_unlock(&k->mutex);
  if (!bytes.bytes || write_part(k, kept, SN_KEPT_SETTINGS, bytes, others, &err) != SN_OK) {
    sn_keeper_post(kept, SN_KEPT_SETTINGS, bytes, NULL);
    return;
  }
  pthread_mutex_lock(&k->mutex);
  k->bytes += bytes.size - kept->written[SN_KEPT_SETTINGS];
  kept->written[SN_KEPT_SETTINGS] = bytes.size;
  pthread_mutex_unlock(&k->mutex);
  free(bytes.bytes);
}

// Says what became of an attempt, once for each change of that.
static void tell(const SnKeeper *k, SnKept *kept, const SnError *err) {
  const bool fails = err != NULL;
  if (fails == kept->failing) return;
  kept->failing = fails;
  if (fails)
    sn_log_about(k->log, SN_LOG_ERROR, (SnLogIds){.session = kept->id},
                 "keep-failed: '%s', is not kept as it is now: %s", kept->name, err->text);
  else
    sn_log_about(k->log, SN_LOG_INFO, (SnLogIds){.session = kept->id}, "kept: '%s', is kept again", kept->name);
}

// Writes what waits and sends the answers. With the mutex, which is given away meanwhile.
static void write_entry(SnKeeper *k, SnKept *kept) {
  SnKeptBytes take[SN_KEPT_PARTS];
  SnError err[SN_KEPT_PARTS] = {{0}};
  memcpy(take, kept->pending, sizeof take);
  memset(kept->pending, 0, sizeof kept->pending);
  SnReply *replies = take_replies(kept);
  const size_t before = k->bytes;
  size_t written[SN_KEPT_PARTS], total = before;
  memcpy(written, kept->written, sizeof written);
  pthread_mutex_unlock(&k->mutex);

  int failed = -1;
  for (int part = 0; part < SN_KEPT_PARTS; part++) {
    if (!take[part].bytes) continue;
    const SnCode code = write_part(k, kept, (SnKeptPart)part, take[part], total - written[part], &err[part]);
    // After a failure it may be there all the same: the rename was done, and the folder could not be brought to the
    // disk.
    if (code != SN_ERR_LIMIT) total += take[part].size - written[part], written[part] = take[part].size;
    if (code != SN_OK) failed = part;
  }
  tell(k, kept, failed >= 0 ? &err[failed] : NULL);
  if (err[SN_KEPT_SETTINGS].code == SN_OK)
    send_all(k, replies);
  else
    send_warned(k, replies, err[SN_KEPT_SETTINGS].text);

  pthread_mutex_lock(&k->mutex);
  k->bytes += total - before;
  memcpy(kept->written, written, sizeof written);
  kept->again = failed >= 0 ? sn_clock_now() + AGAIN_TIME : 0;
  for (int part = 0; part < SN_KEPT_PARTS; part++) {
    // Settings are tried again; a warm start comes anew by itself.
    const bool again = part == SN_KEPT_SETTINGS && err[part].code != SN_OK && !kept->pending[part].bytes && !k->stop;
    if (again)
      kept->pending[part] = take[part];
    else
      free(take[part].bytes);
  }
}

static void *keeper_main(void *argument) {
  SnKeeper *k = argument;
  pthread_mutex_lock(&k->mutex);
  for (;;) {
    double until;
    SnKept *kept = find_work(k, &until);
    if (kept && kept->state == SN_KEPT_CLOSED) {
      close_entry(k, kept);
    } else if (kept) {
      write_entry(k, kept);
    } else if (k->stop) {
      break;
    } else {
      const struct timespec limit = sn_clock_timespec(until);
      pthread_cond_timedwait(&k->filled, &k->mutex, &limit);
    }
  }
  pthread_mutex_unlock(&k->mutex);
  return NULL;
}

static void free_keeper(SnKeeper *k) {
  for (SnKept *kept = k->first, *next; kept; kept = next) {
    next = kept->next;
    free_entry(kept);
  }
  k->first = NULL;
  sn_kept_folder_close(&k->folder);
  pthread_cond_destroy(&k->filled);
  pthread_mutex_destroy(&k->mutex);
}

SnCode sn_keeper_start(SnKeeper *k, const SnConfig *config, const SnLog *log, SnOutbox *outbox, SnAccess *access,
                       SnError *err) {
  *k = (SnKeeper){.config = config, .log = log, .outbox = outbox, .access = access};
  if (!*config->state) return SN_OK;
  SnCode code = sn_kept_folder_open(&k->folder, config->state, log, err);
  if (code != SN_OK) return code;
  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&k->filled, &attr);
  pthread_condattr_destroy(&attr);
  pthread_mutex_init(&k->mutex, NULL);
  code = sn_keeper_read(k, err);
  if (code == SN_OK && pthread_create(&k->thread, NULL, keeper_main, k) != 0)
    code = sn_fail(err, SN_ERR_LIMIT, "cannot start the thread that keeps sessions");
  k->running = code == SN_OK;
  if (k->running) sn_crash_note_watch(k);
  if (!k->running) free_keeper(k);
  return code;
}

void sn_keeper_stop(SnKeeper *k) {
  if (!k->running) return;
  pthread_mutex_lock(&k->mutex);
  k->stop = true;
  pthread_cond_signal(&k->filled);
  pthread_mutex_unlock(&k->mutex);
  pthread_join(k->thread, NULL);
  sn_crash_note_end(k);
  for (SnKept *kept = k->first; kept; kept = kept->next) unmark(kept);
  k->running = false;
  free_keeper(k);
}
