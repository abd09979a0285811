// The service tells systemd how it fares (sd_notify(3)): plain datagrams to $NOTIFY_SOCKET, no library needed.
#ifndef SINEW_DAEMON_BASE_SYSTEMD_H_
#define SINEW_DAEMON_BASE_SYSTEMD_H_

typedef struct SnSystemd {
  int fd;           // -1: nobody listens
  double interval;  // [s] between signs of life, half of what the watchdog allows; 0: no watchdog
} SnSystemd;

// Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. Without a socket all that follows does nothing.
void sn_systemd_open(SnSystemd *systemd);

// Sends "READY=1", "STOPPING=1", "WATCHDOG=1" or "STATUS=...".
void sn_systemd_notify(const SnSystemd *systemd, const char *text);

void sn_systemd_close(SnSystemd *systemd);

#endif
