#include "daemon/wire/users_private.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { USERS_MAX = 64 };

typedef struct Users {
  uid_t id[USERS_MAX];
  int count;
} Users;

static Users users;  // written before there are other threads

static atomic_uint_least64_t turned_away;
static atomic_uint latest;

static SnCode read_list(const char *list, Users *into, SnError *err) {
  into->count = 0;
  for (const char *p = list; *p;) {
    char *end;
    errno = 0;
    const unsigned long id = strtoul(p, &end, 10);
    const bool number = *p >= '0' && *p <= '9' && errno == 0 && id < UINT_MAX;
    if (!number || (*end && *end != ',') || (*end == ',' && !end[1]) || into->count == USERS_MAX)
      return sn_fail(err, SN_ERR_ARGUMENT, "users is '%s'; allowed are at most %d numbers of users with commas between",
                     list, USERS_MAX);
    into->id[into->count++] = (uid_t)id;
    p = *end ? end + 1 : end;
  }
  return SN_OK;
}

SnCode sn_users_prepare(const char *list, SnError *err) { return read_list(list, &users, err); }

SnCode sn_users_check(const char *list, SnError *err) {
  Users checked;
  return read_list(list, &checked, err);
}

bool sn_users_given(void) { return users.count > 0; }

bool sn_users_admit(int fd) {
  if (users.count == 0) return true;  // the rights of the sockets let nobody else in
  int domain = 0;
  struct ucred peer = {.uid = (uid_t)-1};
  socklen_t size = sizeof domain;
  if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain != AF_UNIX) return true;
  size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0) {
    if (peer.uid == geteuid() || peer.uid == 0) return true;
    for (int i = 0; i < users.count; i++)
      if (peer.uid == users.id[i]) return true;
  }
  atomic_store(&latest, (unsigned)peer.uid);
  atomic_fetch_add(&turned_away, 1);
  return false;
}

uint64_t sn_users_turned_away(unsigned *user) {
  *user = atomic_load(&latest);
  return atomic_load(&turned_away);
}
