// The folder as the last daemon left it.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/keep/keeper_private.h"

enum { VERSION = 1 };  // of KeptSession

const char *sn_keeper_owner(const SnKeeper *k, const SnPeer *owner) {
  return owner == &k->access->local ? "local" : owner == &k->access->anyone ? "anyone" : owner->key;
}

// The owner of that name, NULL where he may have no session any more.
static SnPeer *find_owner(const SnKeeper *k, const char *name) {
  if (!strcmp(name, "local")) return &k->access->local;
  if (!strcmp(name, "anyone")) return &k->access->anyone;
  char key[SN_KEY_TEXT] = "";
  snprintf(key, sizeof key, "%s", name);
  const int i = sn_access_find(k->access, key);
  return i >= 0 && k->access->peer[i]->role >= SN_ROLE_PLAN ? k->access->peer[i] : NULL;
}

// A message of a file, checked; NULL and err.
static ProtobufCMessage *read_message(const SnKeeper *k, const char *name, const ProtobufCMessageDescriptor *kind,
                                      size_t *size, SnError *err) {
  SnKeptBytes bytes;
  SnWireError wire = {0};
  if (sn_kept_file_read(&k->folder, name, &bytes, err) != SN_OK) return NULL;
  ProtobufCMessage *message = sn_message_read(kind, bytes.bytes, bytes.size, &wire);
  const bool lacks = wire.code == SINEW__V1__ERROR__CODE__LIMIT;
  if (!message) sn_fail(err, lacks ? SN_ERR_MEMORY : SN_ERR_FORMAT, "%s", wire.text);
  *size = bytes.size;
  free(bytes.bytes);
  return message;
}

static SnCode check_session(const SnKeeper *k, const Sinew__V1__KeptSession *from, uint64_t id, SnError *err) {
  if (from->version != VERSION)
    return sn_fail(err, SN_ERR_UNSUPPORTED, "it is of version %u; this daemon reads version %d", from->version,
                   VERSION);
  if (from->session != id)
    return sn_fail(err, SN_ERR_FORMAT, "it is of session %llu", (unsigned long long)from->session);
  for (const SnKept *kept = k->first; kept; kept = kept->next)
    if (!strcmp(kept->name, from->name) && !strcmp(sn_keeper_owner(k, kept->owner), from->owner))
      return sn_fail(err, SN_ERR_STATE, "session %llu has its name, '%s', too", (unsigned long long)kept->id,
                     from->name);
  if (find_owner(k, from->owner)) return SN_OK;
  return sn_fail(err, SN_ERR_STATE, "its key, %s, may have no session", from->owner);
}

// SN_ERR_MEMORY: it could not be read now, which is not the file's fault.
static SnCode read_session(SnKeeper *k, const char *name, uint64_t id) {
  SnError err = {0};
  size_t size = 0;
  Sinew__V1__KeptSession *from =
      (Sinew__V1__KeptSession *)read_message(k, name, &sinew__v1__kept_session__descriptor, &size, &err);
  SnKept *kept = from && check_session(k, from, id, &err) == SN_OK
                     ? sn_keeper_new(k, from->name, find_owner(k, from->owner), SN_KEPT_RESTORING)
                     : NULL;
  if (!kept) {
    if (from) protobuf_c_message_free_unpacked(&from->base, NULL);
    if (from && err.code == SN_OK) sn_fail(&err, SN_ERR_MEMORY, "out of memory");
    if (err.code != SN_ERR_MEMORY) sn_kept_file_refuse(&k->folder, name, k->log, err.text);
    return err.code;
  }
  kept->id = id;
  kept->from = from;
  kept->restarts = from->restarts + 1;
  kept->epoch = from->epoch;
  kept->written[SN_KEPT_SETTINGS] = size;
  k->bytes += size;
  return SN_OK;
}

static SnKept *find_id(const SnKeeper *k, uint64_t id) {
  SnKept *kept = k->first;
  while (kept && kept->id != id) kept = kept->next;
  return kept;
}

// Goes through the files of one part; the folder is not changed meanwhile but by this. False: memory ended.
static bool read_part(SnKeeper *k, DIR *dir, SnKeptPart wanted) {
  rewinddir(dir);
  for (const struct dirent *entry; (entry = readdir(dir));) {
    uint64_t id;
    SnKeptPart part;
    struct stat st;
    if (!sn_kept_file_parse(entry->d_name, &id, &part) || part != wanted) continue;
    if (part == SN_KEPT_SETTINGS) {
      if (read_session(k, entry->d_name, id) == SN_ERR_MEMORY) return false;
      continue;
    }
    SnKept *kept = find_id(k, id);
    if (!kept)
      sn_kept_file_remove(&k->folder, entry->d_name);  // where it belonged is gone
    else if (fstatat(k->folder.fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
      k->bytes += kept->written[part] = (size_t)st.st_size;
  }
  return true;
}

// How many daemons have begun to restore a session and have not come to the end of it; a mark that cannot be read is
// one's.
static int read_mark(const SnKeeper *k, const char *name) {
  SnKeptBytes bytes;
  SnError err = {0};
  if (sn_kept_file_read(&k->folder, name, &bytes, &err) != SN_OK) return 1;
  char text[16] = "";
  if (bytes.size < sizeof text) memcpy(text, bytes.bytes, bytes.size);
  free(bytes.bytes);
  const long tries = strtol(text, NULL, 10);
  return tries >= 1 && tries < 1000 ? (int)tries : 1;
}

static void read_marks(SnKeeper *k, DIR *dir) {
  rewinddir(dir);
  for (const struct dirent *entry; (entry = readdir(dir));) {
    uint64_t id;
    SnKeptPart part;
    if (!sn_kept_file_parse(entry->d_name, &id, &part) || part != SN_KEPT_MARK) continue;
    SnKept *kept = find_id(k, id);
    if (!kept) {
      sn_kept_file_remove(&k->folder, entry->d_name);
      continue;
    }
    kept->tries = read_mark(k, entry->d_name);
  }
}

SnCode sn_keeper_read(SnKeeper *k, SnError *err) {
  DIR *dir = fdopendir(fcntl(k->folder.fd, F_DUPFD_CLOEXEC, 0));
  if (!dir) return sn_fail(err, SN_ERR_IO, "state: cannot read %s: %s", k->folder.path, strerror(errno));
  bool ok = true;
  for (int part = 0; ok && part < SN_KEPT_PARTS; part++) ok = read_part(k, dir, (SnKeptPart)part);
  if (ok) read_marks(k, dir);
  if (ok) sn_crash_note_read(k);
  closedir(dir);
  return ok ? SN_OK
            : sn_fail(err, SN_ERR_MEMORY, "state: %s cannot be read: memory or files are lacking", k->folder.path);
}

Sinew__V1__KeptWarmStart *sn_keeper_warm_start(SnKept *kept) {
  SnKeeper *k = kept->keeper;
  char name[SN_KEPT_NAME];
  SnError err = {0};
  size_t size;
  sn_kept_file_name(kept->id, SN_KEPT_WARM, name);
  Sinew__V1__KeptWarmStart *warm =
      (Sinew__V1__KeptWarmStart *)read_message(k, name, &sinew__v1__kept_warm_start__descriptor, &size, &err);
  if (!warm && err.code != SN_ERR_NOT_FOUND && err.code != SN_ERR_MEMORY)
    sn_kept_file_refuse(&k->folder, name, k->log, err.text);
  // One of before a reset is no fault: it was not written anew before the daemon ended.
  if (warm && warm->session == kept->id && warm->epoch == kept->epoch && warm->snapshot) return warm;
  if (warm) protobuf_c_message_free_unpacked(&warm->base, NULL);
  return NULL;
}
