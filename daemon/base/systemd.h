// What systemd wants to hear of a service (sd_notify(3)): plain datagrams to $NOTIFY_SOCKET, no library needed.
#ifndef SINEW_DAEMON_BASE_SYSTEMD_H_
#define SINEW_DAEMON_BASE_SYSTEMD_H_

typedef struct SnNotify {
  int fd;           // -1: nobody listens
  double interval;  // [s] between signs of life, half of what the watchdog allows; 0: no watchdog
} SnNotify;

// Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. Without a socket all that follows does nothing.
void sn_notify_open(SnNotify *notify);

// Sends "READY=1", "STOPPING=1", "WATCHDOG=1" or "STATUS=...".
void sn_notify_send(const SnNotify *notify, const char *text);

void sn_notify_close(SnNotify *notify);

#endif
