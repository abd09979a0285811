#include "daemon/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

void sn_log_event(const SnLog *log, SnLogLevel level, const char *format, ...) {
  static const char *const names[] = {"error", "warning", "info", "debug"};
  if (log->fd < 0 || level > log->level) return;

  char line[4600];
  struct timespec now;
  struct tm utc;
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &utc);
  size_t n = strftime(line, 32, "%Y-%m-%dT%H:%M:%S", &utc);
  n += (size_t)snprintf(line + n, 32, ".%03ldZ %s ", now.tv_nsec / 1000000, names[level]);

  va_list args;
  va_start(args, format);
  int m = vsnprintf(line + n, sizeof line - n - 1, format, args);
  va_end(args);
  size_t end = m < 0 ? n : n + (size_t)m;
  if (end > sizeof line - 2) end = sizeof line - 2;
  for (size_t i = n; i < end; i++)
    if (line[i] == '\n') line[i] = ';';
  line[end++] = '\n';

  // A log that cannot be written must not stop the daemon.
  ssize_t written = write(log->fd, line, end);
  (void)written;
}
