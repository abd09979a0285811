#include "daemon/base/systemd.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

// Watchdog time in seconds, 0 when there is none or it is meant for another process.
static double watchdog_seconds(void) {
  const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
  if (!usec || (pid && strtol(pid, NULL, 10) != (long)getpid())) return 0;
  return 1e-6 * strtod(usec, NULL);
}

void sn_systemd_open(SnSystemd *systemd) {
  *systemd = (SnSystemd){.fd = -1};
  const char *path = getenv("NOTIFY_SOCKET");
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  size_t n = path ? strlen(path) : 0;
  if (n < 2 || n >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@')) return;
  memcpy(address.sun_path, path, n);
  if (path[0] == '@') address.sun_path[0] = '\0';  // abstract socket

  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
  if (connect(fd, (const struct sockaddr *)&address, size) != 0) {
    close(fd);
    return;
  }
  systemd->fd = fd;
  systemd->interval = 0.5 * watchdog_seconds();
}

void sn_systemd_notify(const SnSystemd *systemd, const char *text) {
  if (systemd->fd < 0) return;
  ssize_t sent = send(systemd->fd, text, strlen(text), MSG_NOSIGNAL);
  (void)sent;  // a manager that does not read is no reason to stop
}

void sn_systemd_close(SnSystemd *systemd) {
  if (systemd->fd >= 0) close(systemd->fd);
  systemd->fd = -1;
}
