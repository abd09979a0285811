#include "daemon/wire/users_private.h"
#include "daemon/wire/wire.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

// What sinewd opens for itself at most: threads, sockets, a device, and what each loader needs for a model. Of these
// SPARE are out of reach for connections that have been accepted and not yet been counted.
enum { WANTED = 65536, RESERVED = 128, RESERVED_A_LOADER = 8, SPARE = 64, CONNECTIONS_LEAST = 4 };

static atomic_int ceiling = INT_MAX;

// Takes the place of the C library's accept4() (without <sys/socket.h>, whose declaration has a type of its own for the
// address), as it is called by libzmq: that ends the process when there is no file for a connection to an ipc address
// (EMFILE), and tells of a connection only after it has accepted it, so that a burst would be faster than the event
// loop. One too many is closed here, and libzmq told that the peer has gone away. So is one of a user who may not come
// in, before a byte of it is read.
int accept4(int fd, void *address, void *size, int flags);

int accept4(int fd, void *address, void *size, int flags) {
  int client = (int)syscall(SYS_accept4, fd, address, size, flags);
  if (client >= atomic_load(&ceiling)) {
    close(client);
    client = -1;
    errno = EMFILE;
  }
  if (client >= 0 && !sn_users_admit(client)) {
    close(client);
    client = -1;
    errno = ECONNABORTED;
  }
  if (client < 0 && errno == EMFILE) errno = ECONNABORTED;
  return client;
}

// The limit that this process may have, as far as that is useful; INT_MAX where the system does not say.
static int limit_of_files(struct rlimit *limit) {
  if (getrlimit(RLIMIT_NOFILE, limit) != 0) *limit = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
  const rlim_t wanted = limit->rlim_max < WANTED ? limit->rlim_max : WANTED;
  const rlim_t most = limit->rlim_cur < wanted ? wanted : limit->rlim_cur;
  return most > INT_MAX ? INT_MAX : (int)most;
}

// The limit of files, after it has been raised.
static int raise_limit(void) {
  struct rlimit limit;
  const int most = limit_of_files(&limit);
  if (limit.rlim_cur >= (rlim_t)most) return most;
  limit.rlim_cur = (rlim_t)most;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) getrlimit(RLIMIT_NOFILE, &limit);
  return (int)limit.rlim_cur;
}

// How many connections fit into a limit; fails where these are not even a few.
static SnCode count_connections(const SnConfig *config, int limit, int *capacity, SnError *err) {
  const int listeners = 1 + (*config->telemetry != '\0') + (*config->records != '\0');
  const int own = RESERVED + RESERVED_A_LOADER * config->loaders;
  *capacity = (limit - own) / listeners;
  if (*capacity >= CONNECTIONS_LEAST) return SN_OK;
  return sn_fail(err, SN_ERR_LIMIT, "only %d files may be open (ulimit -n); sinewd needs %d, and more for connections",
                 limit, own + CONNECTIONS_LEAST * listeners);
}

SnCode sn_files_check(const SnConfig *config, SnError *err) {
  struct rlimit limit;
  int capacity;
  return count_connections(config, limit_of_files(&limit), &capacity, err);
}

SnCode sn_files_prepare(SnConfig *config, const SnLog *log, SnError *err) {
  if (sn_users_prepare(config->users, err) != SN_OK) return err->code;
  const int limit = raise_limit();
  int capacity;
  if (count_connections(config, limit, &capacity, err) != SN_OK) return err->code;
  if (capacity < config->connections) {
    sn_log_event(log, SN_LOG_WARNING, "connections: %d instead of %d, since only %d files may be open (ulimit -n)",
                 capacity, config->connections, limit);
    config->connections = capacity;
  }
  atomic_store(&ceiling, limit - SPARE);
  return SN_OK;
}
