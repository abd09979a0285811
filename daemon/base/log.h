// One line per event to a file descriptor: time, level, event, details. Any thread; a line is one write.
#ifndef SINEW_DAEMON_BASE_LOG_H_
#define SINEW_DAEMON_BASE_LOG_H_

typedef enum SnLogLevel { SN_LOG_ERROR, SN_LOG_WARNING, SN_LOG_INFO, SN_LOG_DEBUG } SnLogLevel;

typedef struct SnLog {
  int fd;            // -1: silent
  SnLogLevel level;  // lines above it are dropped
} SnLog;

// Writes a line. `format` reads "event: what happened", without a newline; line breaks in what is printed become ";".
void sn_log_event(const SnLog *log, SnLogLevel level, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
