#include "daemon/access/access.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// A line has no more; a daemon knows no more keys, those included that were taken off the list.
enum { LINE_MAX_BYTES = 512, KNOWN_MAX = 65536 };

static const SnQuotas unlimited = {INFINITY, INFINITY, INFINITY, INFINITY};

static const char *const role_names[] = {"none", "watch", "plan", "tune", "admin"};

const char *sn_role_name(SnRole role) { return role_names[role]; }

SnRole sn_role_of(const char *name) {
  for (int i = SN_ROLE_WATCH; i <= SN_ROLE_ADMIN; i++)
    if (!strcmp(role_names[i], name)) return (SnRole)i;
  return SN_ROLE_NONE;
}

// ---- the file ----

// What a file says, before it is in force.
typedef struct List {
  const char *file;
  int line, count;
  SnPeer *peer;  // (SN_PEERS)
  SnError *err;
  bool failed;
} List;

// Adds "file:line: text" to the error.
static void complain(List *list, const char *text) {
  SnError *err = list->err;
  const size_t n = list->failed ? strlen(err->text) : 0;
  if (!list->failed) err->code = SN_ERR_FORMAT;
  snprintf(err->text + n, sizeof err->text - n, "%s%s:%d: %s", n ? "\n" : "", list->file, list->line, text);
  list->failed = true;
}

static bool read_quota(const char *value, bool whole, double *out) {
  char *end;
  const double x = strtod(value, &end);
  if (end == value || *end || !(x > 0 && x <= 1e12) || (whole && floor(x) != x)) return false;
  *out = x;
  return true;
}

// A word "name=value" behind the role.
static void read_word(List *list, SnPeer *peer, char *word) {
  char text[256];
  char *value = strchr(word, '=');
  if (value) *value++ = '\0';
  bool ok = value != NULL;
  if (ok && !strcmp(word, "name"))
    ok = (size_t)snprintf(peer->name, sizeof peer->name, "%s", value) < sizeof peer->name;
  else if (ok && !strcmp(word, "sessions"))
    ok = read_quota(value, true, &peer->quota.sessions);
  else if (ok && !strcmp(word, "requests"))
    ok = read_quota(value, false, &peer->quota.requests);
  else if (ok && !strcmp(word, "bytes"))
    ok = read_quota(value, false, &peer->quota.bytes);
  else if (ok && !strcmp(word, "planning"))
    ok = read_quota(value, false, &peer->quota.planning);
  else
    ok = false;
  if (ok) return;
  snprintf(text, sizeof text,
           "'%.60s%s%.60s'; allowed are name=TEXT of less than %d bytes, and sessions=N, requests=N, bytes=N, "
           "planning=X with numbers above 0",
           word, value ? "=" : "", value ? value : "", SN_PEER_NAME);
  complain(list, text);
}

static void read_line(List *list, char *line) {
  char *rest = NULL, *key = strtok_r(line, " \t\r", &rest);
  if (!key || !strcmp(key, "#")) return;
  const char *role = strtok_r(NULL, " \t\r", &rest);
  if (!sn_key_is_valid(key)) {
    complain(list, "a line begins with a public key, 40 characters in Z85; a comment begins with '# '");
    return;
  }
  if (list->count == SN_PEERS) {
    complain(list, "there are too many keys; 4096 are allowed");
    return;
  }
  SnPeer *peer = &list->peer[list->count];
  *peer = (SnPeer){.quota = unlimited, .role = role ? sn_role_of(role) : SN_ROLE_NONE};
  memcpy(peer->key, key, sizeof peer->key);
  if (peer->role == SN_ROLE_NONE) complain(list, "behind the key stands its role: watch, plan, tune or admin");
  for (int i = 0; i < list->count; i++)
    if (!strcmp(list->peer[i].key, peer->key)) complain(list, "this key is on the list twice");
  for (char *word = strtok_r(NULL, " \t\r", &rest); word; word = strtok_r(NULL, " \t\r", &rest))
    read_word(list, peer, word);
  list->count++;
}

// Who can write the file decides who may come in.
static SnCode open_list(const char *file, FILE **f, SnError *err) {
  struct stat st;
  const int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  *f = NULL;
  SnCode code = SN_OK;
  if (fd < 0 || fstat(fd, &st) != 0)
    code = sn_fail(err, SN_ERR_IO, "allow: %s: %s", file, strerror(errno));
  else if (!S_ISREG(st.st_mode))
    code = sn_fail(err, SN_ERR_IO, "allow: %s is no file", file);
  else if ((st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & 022))
    code = sn_fail(err, SN_ERR_STATE, "allow: %s can be written by other users (owner %lu, mode %03o)", file,
                   (unsigned long)st.st_uid, (unsigned)(st.st_mode & 0777));
  if (code == SN_OK && !(*f = fdopen(fd, "r"))) code = sn_fail(err, SN_ERR_MEMORY, "out of memory");
  if (!*f && fd >= 0) close(fd);
  return code;
}

static SnCode read_list(const char *file, List *list, SnError *err) {
  FILE *f;
  SnCode code = open_list(file, &f, err);
  if (code != SN_OK) return code;
  char line[LINE_MAX_BYTES];
  memset(line, '\n', sizeof line);
  while (fgets(line, sizeof line, f)) {
    const size_t n = strlen(line);
    list->line++;
    // What is left of the line before is no zero byte: the last one is the end.
    if ((const char *)memrchr(line, '\0', sizeof line) != line + n) {
      complain(list, "the line holds a zero byte");
      break;
    }
    if (n + 1 == sizeof line && line[n - 1] != '\n') {
      complain(list, "the line is too long");
      break;
    }
    if (n > 0 && line[n - 1] == '\n') line[n - 1] = '\0';
    read_line(list, line);
    memset(line, '\n', sizeof line);
  }
  const bool torn = ferror(f);  // the keys that were not read would lose their sessions
  const int why = errno;
  fclose(f);
  if (torn) return sn_fail(err, SN_ERR_IO, "allow: %s: %s", file, strerror(why));
  return list->failed ? SN_ERR_FORMAT : SN_OK;
}

// ---- in force ----

static int find(const SnAccess *a, const char *key) {
  for (int i = 0; i < a->count; i++)
    if (!strcmp(a->peer[i]->key, key)) return i;
  return -1;
}

int sn_access_find(const SnAccess *a, const char key[SN_KEY_TEXT]) {
  const int i = find(a, key);
  return i >= 0 && a->peer[i]->role != SN_ROLE_NONE ? i : -1;
}

// Makes places for the keys of a list that are new. After that nothing can fail.
static SnCode make_places(SnAccess *a, const List *list, SnError *err) {
  for (int i = 0; i < list->count; i++) {
    if (find(a, list->peer[i].key) >= 0) continue;
    if (a->count == KNOWN_MAX)
      return sn_fail(err, SN_ERR_LIMIT, "allow: %d keys have been on the list; start sinewd again", KNOWN_MAX);
    if (a->count == a->capacity) {
      const int capacity = 2 * a->capacity + 16;
      SnPeer **grown = realloc(a->peer, (size_t)capacity * sizeof *grown);
      if (!grown) return sn_fail(err, SN_ERR_MEMORY, "out of memory");
      a->peer = grown;
      a->capacity = capacity;
    }
    SnPeer *peer = calloc(1, sizeof *peer);
    if (!peer) return sn_fail(err, SN_ERR_MEMORY, "out of memory");
    memcpy(peer->key, list->peer[i].key, sizeof peer->key);
    a->peer[a->count++] = peer;
  }
  return SN_OK;
}

// Puts the list in force. Returns whether somebody may do less than before.
static bool put_in_force(SnAccess *a, const List *list) {
  bool lowered = false;
  for (int i = 0; i < a->count; i++) {
    SnPeer *peer = a->peer[i];
    const SnPeer *now = NULL;
    for (int k = 0; k < list->count && !now; k++)
      if (!strcmp(list->peer[k].key, peer->key)) now = &list->peer[k];
    const SnRole role = now ? now->role : SN_ROLE_NONE;
    lowered = lowered || role < peer->role;
    peer->role = role;
    peer->trusted = role == SN_ROLE_ADMIN;
    if (now) sn_quota_set(peer, &now->quota);
    if (now) memcpy(peer->name, now->name, sizeof peer->name);
  }
  return lowered;
}

SnCode sn_access_reload(SnAccess *a, const char *file, bool *lowered, SnError *err) {
  List list = {.file = file, .peer = calloc(SN_PEERS, sizeof(SnPeer)), .err = err};
  *lowered = false;
  if (!list.peer) return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  SnCode code = read_list(file, &list, err);
  if (code == SN_OK) code = make_places(a, &list, err);
  if (code == SN_OK) *lowered = put_in_force(a, &list);
  free(list.peer);
  return code;
}

SnCode sn_access_init(SnAccess *a, const char *file, SnError *err) {
  *a = (SnAccess){.local = {.name = "this user", .role = SN_ROLE_ADMIN, .trusted = true, .quota = unlimited},
                  .anyone = {.name = "this machine", .role = SN_ROLE_ADMIN, .quota = unlimited},
                  .keys = *file != '\0'};
  bool lowered;
  return a->keys ? sn_access_reload(a, file, &lowered, err) : SN_OK;
}

void sn_access_free(SnAccess *a) {
  for (int i = 0; i < a->count; i++) free(a->peer[i]);
  free(a->peer);
  *a = (SnAccess){0};
}
