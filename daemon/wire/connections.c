#include "daemon/wire/connections_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

// So many seconds after a connection has ended its name is free at the latest, and so long a connection has for its
// first request before it is taken to be unheard.
#define NAME_TIME 0.5
#define SETTLE_TIME 0.1

void sn_connections_free(SnConnections *c) {
  free(c->at);
  *c = (SnConnections){0};
}

static SnConnection *find(SnConnections *c, int fd) { return sn_connections_knows(c, fd) ? &c->at[fd] : NULL; }

void sn_connections_open(SnConnections *c, const void *listener, int fd, double now, bool silent) {
  if (fd < 0) return;
  if (fd >= c->size) {
    const int size = 2 * fd + 64;
    SnConnection *at = realloc(c->at, (size_t)size * sizeof *at);
    if (!at) return;
    memset(at + c->size, 0, (size_t)(size - c->size) * sizeof *at);
    c->at = at;
    c->size = size;
  }
  if (sn_connections_knows(c, fd)) sn_connections_close(c, c->at[fd].listener, fd, now);
  c->at[fd] = (SnConnection){.listener = listener, .number = ++c->latest, .since = now, .heard = now, .spoke = silent};
}

void sn_connections_close(SnConnections *c, const void *listener, int fd, double now) {
  SnConnection *one = find(c, fd);
  if (!one || one->listener != listener) return;
  // One that was cut unheard tells of no name that others wait for: those were cut with it.
  if (one->named || (!one->spoke && !one->cut)) c->left = now;
  *one = (SnConnection){0};
}

void sn_connections_forget(SnConnections *c, const void *listener) {
  for (int fd = 0; fd < c->size; fd++)
    if (c->at[fd].listener == listener) c->at[fd] = (SnConnection){0};
}

bool sn_connections_knows(const SnConnections *c, int fd) { return fd >= 0 && fd < c->size && c->at[fd].listener; }

bool sn_connections_spoke(SnConnections *c, int fd, bool named, double now) {
  SnConnection *one = find(c, fd);
  if (!one) return true;
  one->heard = now;
  one->spoke = true;
  one->named = named;
  return !one->cut;
}

bool sn_connections_cut(SnConnections *c, int fd) {
  SnConnection *one = find(c, fd);
  if (!one || one->cut) return false;
  one->cut = true;
  shutdown(fd, SHUT_RDWR);
  return true;
}

uint64_t sn_connections_number(const SnConnections *c, int fd) {
  return sn_connections_knows(c, fd) ? c->at[fd].number : 0;
}

bool sn_connections_cut_idlest(SnConnections *c, const void *listener, double before) {
  int idlest = -1;
  for (int fd = 0; fd < c->size; fd++) {
    const SnConnection *one = &c->at[fd];
    if (one->listener != listener || one->cut || one->heard > before) continue;
    if (idlest < 0 || one->heard < c->at[idlest].heard) idlest = fd;
  }
  return idlest >= 0 && sn_connections_cut(c, idlest);
}

int sn_connections_cut_unheard(SnConnections *c, double now) {
  int n = 0;
  for (int fd = 0; fd < c->size; fd++) {
    const SnConnection *one = find(c, fd);
    if (!one || one->spoke || one->since > c->left + NAME_TIME) continue;
    if (now > c->left + SETTLE_TIME && now > one->since + SETTLE_TIME) n += sn_connections_cut(c, fd);
  }
  return n;
}
