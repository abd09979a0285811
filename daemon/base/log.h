// One line an event, in logfmt: time, level, event, what it is about, text. Any thread; a line is one write, which
// waits for nobody: what cannot be written at once is lost, and counted.
//
//   time=2026-11-25T20:44:05.123Z level=info event=refused session=844158100 request=7 text="state.qpos has 1 numbers"
#ifndef SINEW_DAEMON_BASE_LOG_H_
#define SINEW_DAEMON_BASE_LOG_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "physics/base/status.h"

typedef enum SnLogLevel { SN_LOG_ERROR, SN_LOG_WARNING, SN_LOG_INFO, SN_LOG_DEBUG } SnLogLevel;

// Limits events that are told apart, and the bytes of a line, which a pipe takes whole or not at all.
enum { SN_LOG_EVENTS = 64, SN_LOG_LINE = 4096 };

// Counts the lines of one event.
typedef struct SnLogEvent {
  char name[24];
  double used, at;      // lines that the rate has not forgiven yet, at an instant on sn_clock_now()
  uint64_t suppressed;  // beyond the rate, since the log last said so
} SnLogEvent;

// Holds what all who write to a log share.
typedef struct SnLogState {
  double rate;  // lines a second that each event may have, after a pause five seconds' worth at once
  pthread_mutex_t mutex;
  SnLogEvent event[SN_LOG_EVENTS];  // under the mutex, as `events`
  int events;
  uint64_t untold;  // lines lost, since the log last said so; under the mutex, as `torn`
  bool torn;        // a part of a line was taken: the next one begins anew
  atomic_uint_least64_t written, suppressed, lost;
} SnLogState;

typedef struct SnLog {
  int fd;             // -1: silent
  atomic_int level;   // an SnLogLevel: lines above it are dropped
  SnLogState *state;  // NULL: there is no limit, and nothing is counted
} SnLog;

// Names what a line is about: an open session, a plan of it, the id of a request; 0: none.
typedef struct SnLogIds {
  uint64_t session, plan, request;
} SnLogIds;

void sn_log_init(SnLogState *state, double rate);
// Sets other limits. Any thread may write meanwhile.
void sn_log_limit(SnLog *log, SnLogLevel level, double rate);

// Lets the log go to a file from now on, which is made, with mode 0640, or appended to. Returns SN_ERR_IO, and the log
// goes where it went, when that fails. To be called again after the file was moved away.
SnCode sn_log_open(SnLog *log, const char *file, SnError *err);

// Opens the terminal or pipe that the log goes to once more, for the log alone, where the system allows that. A write
// then waits neither for a terminal that stands still or is slow, nor for a pipe that others fill.
// Whoever shares the descriptor keeps it as it was.
void sn_log_own(SnLog *log);

// Writes a line. `format` reads "event: what happened", without a newline; the event is of small letters and hyphens.
void sn_log_event(const SnLog *log, SnLogLevel level, const char *format, ...) __attribute__((format(printf, 3, 4)));
// Does the same for what has ids.
void sn_log_about(const SnLog *log, SnLogLevel level, SnLogIds ids, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// Says how many lines were suppressed or lost, once there may be lines again. To be called now and then.
void sn_log_tick(const SnLog *log);

#endif
