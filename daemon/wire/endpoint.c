#include "daemon/wire/endpoint_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/default_endpoint.h"

// Whoever can write the socket's folder can put a socket of his own in its place. In a folder as /tmp (sticky) that is
// the owner alone. A folder that is missing is the bind's to tell.
static SnCode check_folder(const char *address, const char *path, SnError *err) {
  char folder[SN_IPC_PATH_MAX + 1];
  struct stat st;
  snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
  if (stat(*folder ? folder : "/", &st) != 0) return SN_OK;
  const bool strange = st.st_uid != geteuid() && st.st_uid != 0;
  if (!strange && (!(st.st_mode & 022) || (st.st_mode & S_ISVTX))) return SN_OK;
  return sn_fail(err, SN_ERR_STATE,
                 "%s: other users can write its folder (owner %lu, mode %03o); allowed is one of this user or root "
                 "that nobody else can write",
                 address, (unsigned long)st.st_uid, (unsigned)(st.st_mode & 07777));
}

static SnCode check_ipc(const char *address, const char *path, SnError *err) {
  if (*path != '/')
    return sn_fail(err, SN_ERR_ARGUMENT, "%s: an ipc address needs an absolute path, as ipc:///run/x.sock", address);
  if (strlen(path) > SN_IPC_PATH_MAX)
    return sn_fail(err, SN_ERR_ARGUMENT, "%s: the path has %zu bytes; a socket's path may have %d", address,
                   strlen(path), SN_IPC_PATH_MAX);
  return check_folder(address, path, err);
}

// "127." and three more numbers up to 255.
static bool is_loopback4(const char *host, size_t n) {
  char text[16];
  unsigned a, b, c, d;
  char end;
  if (n >= sizeof text) return false;
  memcpy(text, host, n);
  text[n] = '\0';
  if (strspn(text, "0123456789.") != n) return false;
  if (sscanf(text, "%3u.%3u.%3u.%3u%c", &a, &b, &c, &d, &end) != 4) return false;
  return a == 127 && b < 256 && c < 256 && d < 256;
}

static SnCode check_tcp(const char *address, const char *rest, bool keys, SnError *err) {
  if (sn_endpoint_port(rest) == 0)
    return sn_fail(err, SN_ERR_ARGUMENT, "%s: a tcp address needs a port from 1 to 65535, as tcp://127.0.0.1:7440",
                   address);
  const size_t n = (size_t)(strrchr(rest, ':') - rest);
  if (keys && n > 0) return SN_OK;
  if (is_loopback4(rest, n) || (n == 5 && !memcmp(rest, "[::1]", 5))) return SN_OK;
  return sn_fail(
      err, SN_ERR_ARGUMENT,
      "%s is reachable from other machines, which needs keys: see curve_key and allow; without them allowed are "
      "ipc://PATH and tcp:// on 127.0.0.1 or [::1]",
      address);
}

SnCode sn_endpoint_check(const char *address, bool keys, SnError *err) {
  if (!strncmp(address, "ipc://", 6)) return check_ipc(address, address + 6, err);
  if (!strncmp(address, "tcp://", 6)) return check_tcp(address, address + 6, keys, err);
  return sn_fail(err, SN_ERR_ARGUMENT, "'%s' is no address; allowed are ipc://PATH and tcp:// on 127.0.0.1 or [::1]",
                 address);
}

static void lock_path(const char *address, char *path, size_t size) { snprintf(path, size, "%s.lock", address + 6); }

SnCode sn_endpoint_lock(const char *address, int *fd, SnError *err) {
  char path[SN_IPC_PATH_MAX + 8], holder[32] = "";
  *fd = -1;
  if (strncmp(address, "ipc://", 6)) return SN_OK;
  lock_path(address, path, sizeof path);
  for (;;) {
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0) return sn_fail(err, SN_ERR_IO, "cannot make %s: %s", path, strerror(errno));
    if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
      ssize_t n = pread(lock, holder, sizeof holder - 1, 0);
      if (n > 0) holder[strcspn(holder, "\n")] = '\0';
      close(lock);
      return sn_fail(err, SN_ERR_STATE, "another sinewd%s%s serves %s already", n > 0 ? ", process " : "", holder,
                     address);
    }
    // The last holder may have removed the file between our open and our lock: then we locked a nameless file.
    struct stat ours, named;
    if (fstat(lock, &ours) == 0 && stat(path, &named) == 0 && ours.st_ino == named.st_ino &&
        ours.st_dev == named.st_dev) {
      int n = snprintf(holder, sizeof holder, "%ld\n", (long)getpid());
      if (ftruncate(lock, 0) != 0 || pwrite(lock, holder, (size_t)n, 0) != n) {
        close(lock);
        return sn_fail(err, SN_ERR_IO, "cannot write %s: %s", path, strerror(errno));
      }
      *fd = lock;
      return SN_OK;
    }
    close(lock);
  }
}

void sn_endpoint_unlock(const char *address, int fd) {
  char path[SN_IPC_PATH_MAX + 8];
  if (fd < 0) return;
  unlink(address + 6);
  lock_path(address, path, sizeof path);
  unlink(path);
  close(fd);
}
