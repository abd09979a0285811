// Files of sockets of ipc addresses. Somebody may delete one: clients that are connected go on, and nobody else finds
// the daemon. So they are looked at, and made again.
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <zmq.h>

#include "daemon/wire/sockets_private.h"
#include "daemon/wire/users_private.h"

// Seconds between looks, and from the end of the old listener, which removes the file's name itself, to the new one.
#define LOOK_TIME 1.0
#define AGAIN_TIME 0.25

static const char *path_of(const char *address) { return strncmp(address, "ipc://", 6) == 0 ? address + 6 : NULL; }

SnCode sn_socket_bind(SnSocketFile *file, void *socket, const char *address, SnError *err) {
  const int on = 1;
  struct stat st;
  if (strchr(address, '[')) zmq_setsockopt(socket, ZMQ_IPV6, &on, sizeof on);
  const char *path = path_of(address);
  // Sockets are for this user alone, unless others are given; those are told apart when they connect.
  const mode_t mask = umask(0077);
  int rc = zmq_bind(socket, address);
  umask(mask);
  if (rc == 0 && path && sn_users_given()) rc = chmod(path, 0666);
  if (rc != 0) return sn_fail(err, SN_ERR_IO, "cannot listen on %s: %s", address, zmq_strerror(errno));
  *file = (SnSocketFile){.address = address, .ours = path && stat(path, &st) == 0};
  if (file->ours) {
    file->device = st.st_dev;
    file->inode = st.st_ino;
  }
  return SN_OK;
}

// Looks whether the file is still there.
static void look(SnSocketFile *file, void *socket, const SnLog *log, double now) {
  struct stat st;
  file->next = now + LOOK_TIME;
  const bool gone = stat(path_of(file->address), &st) != 0;
  if (gone && errno == ENOENT) {
    sn_log_event(log, SN_LOG_WARNING, "socket-lost: %s was deleted; it is made again", path_of(file->address));
    zmq_unbind(socket, file->address);
    file->ours = false;
    file->lost = true;
    file->next = now + AGAIN_TIME;
  } else if (!gone && (st.st_dev != file->device || st.st_ino != file->inode)) {
    sn_log_event(log, SN_LOG_ERROR, "socket-taken: %s is another one's now; new clients do not find this daemon",
                 path_of(file->address));
    file->ours = false;
  }
}

static void make_again(SnSocketFile *file, void *socket, const SnLog *log, double now) {
  SnError err = {0};
  if (sn_socket_bind(file, socket, file->address, &err) == SN_OK) {
    sn_log_event(log, SN_LOG_INFO, "listening: at %s again", file->address);
    file->next = now + LOOK_TIME;
    return;
  }
  if (!file->told) sn_log_event(log, SN_LOG_ERROR, "socket-lost: %s", err.text);
  file->told = true;
  file->next = now + LOOK_TIME;
}

void sn_socket_watch(SnSocketFile *file, void *socket, const SnLog *log, double now) {
  if (!socket || now < file->next) return;
  if (file->ours)
    look(file, socket, log, now);
  else if (file->lost)
    make_again(file, socket, log, now);
}
