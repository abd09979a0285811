#include "daemon/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "physics/base/clock.h"
#include "physics/base/control_character.h"

// Seconds of its rate that an event may use at once.
#define BURST 5.0

void sn_log_init(SnLogState *state, double rate) {
  memset(state, 0, sizeof *state);
  state->rate = rate;
  pthread_mutex_init(&state->mutex, NULL);
}

void sn_log_limit(SnLog *log, SnLogLevel level, double rate) {
  atomic_store(&log->level, (int)level);
  if (!log->state) return;
  pthread_mutex_lock(&log->state->mutex);
  log->state->rate = rate;
  pthread_mutex_unlock(&log->state->mutex);
}

SnCode sn_log_open(SnLog *log, const char *file, SnError *err) {
  const int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640);
  if (fd < 0) return sn_fail(err, SN_ERR_IO, "log_file: %s: %s", file, strerror(errno));
  if (log->fd <= STDERR_FILENO) {
    log->fd = fd;
    return SN_OK;
  }
  // Others write meanwhile: the number stays, and they find the new file behind it.
  const bool replaced = dup3(fd, log->fd, O_CLOEXEC) >= 0;
  close(fd);
  return replaced ? SN_OK : sn_fail(err, SN_ERR_IO, "log_file: %s: %s", file, strerror(errno));
}

void sn_log_own(SnLog *log) {
  char path[32];
  struct stat st;
  if (fstat(log->fd, &st) != 0 || !(S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode))) return;
  snprintf(path, sizeof path, "/proc/self/fd/%d", log->fd);
  const int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd >= 0) log->fd = fd;
}

// ---- lines ----

typedef struct Line {
  char text[SN_LOG_LINE];
  size_t size;
} Line;

// Keeps room for a quote and the end of the line.
static void add(Line *line, const char *text) {
  const size_t n = strlen(text);
  if (line->size + n + 2 > sizeof line->text) return;
  memcpy(line->text + line->size, text, n);
  line->size += n;
}

static void add_number(Line *line, const char *name, uint64_t x) {
  char text[48];
  snprintf(text, sizeof text, " %s=%" PRIu64, name, x);
  if (x) add(line, text);
}

// Adds text between quotes; what would end it, or the line, or steer a terminal is escaped.
static void add_quoted(Line *line, const char *text) {
  add(line, "\"");
  int control = 0;  // bytes of a control character that begin here
  for (const unsigned char *c = (const unsigned char *)text; *c; c++, control -= control > 0) {
    char escaped[8] = {(char)*c};
    if (control == 0) control = sn_control_length(c);
    if (*c == '"' || *c == '\\')
      snprintf(escaped, sizeof escaped, "\\%c", *c);
    else if (*c == '\n')
      snprintf(escaped, sizeof escaped, "\\n");
    else if (control > 0)
      snprintf(escaped, sizeof escaped, "\\x%02x", *c);
    add(line, escaped);
  }
  line->text[line->size++] = '"';
}

static void begin_line(Line *line, SnLogLevel level, const char *event) {
  static const char *const names[] = {"error", "warning", "info", "debug"};
  struct timespec now;
  struct tm utc;
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &utc);
  line->size = strftime(line->text, 32, "time=%Y-%m-%dT%H:%M:%S", &utc);
  line->size += (size_t)snprintf(line->text + line->size, 100, ".%03ldZ level=%s event=%.24s", now.tv_nsec / 1000000,
                                 names[level], event);
}

// What is taken of a text at once. A pipe that says so takes a page, and a line is no longer; where others write to it
// meanwhile, and of a terminal, that is not sure: see sn_log_own().
static ssize_t write_now(int fd, const char *text, size_t size) {
  ssize_t n = send(fd, text, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0 && errno == ENOTSOCK) {
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    if (poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT)) n = write(fd, text, size);
  }
  return n;
}

// Ends a line and writes it. With the mutex, where there is a state.
static bool end_line(const SnLog *log, Line *line) {
  SnLogState *s = log->state;
  line->text[line->size++] = '\n';
  if (s && s->torn && write_now(log->fd, "\n", 1) == 1) s->torn = false;
  const ssize_t n = s && s->torn ? 0 : write_now(log->fd, line->text, line->size);
  const bool written = n == (ssize_t)line->size;
  if (!s) return written;
  if (n > 0) s->torn = !written;
  atomic_fetch_add(written ? &s->written : &s->lost, 1);
  s->untold += !written;
  return written;
}

// ---- how many ----

// The account of an event; of those that have no place, one for all. With the mutex.
static SnLogEvent *find_event(SnLogState *s, const char *name) {
  int i = 0;
  while (i < s->events && strncmp(s->event[i].name, name, sizeof s->event[i].name - 1)) i++;
  if (i == s->events && s->events < SN_LOG_EVENTS) {
    snprintf(s->event[i].name, sizeof s->event[i].name, "%s", name);
    s->events++;
  }
  return &s->event[i < SN_LOG_EVENTS ? i : SN_LOG_EVENTS - 1];
}

// Takes a line off the account of an event, if it has one. With the mutex.
static bool take_line(const SnLogState *s, SnLogEvent *event) {
  const double now = sn_clock_now();
  event->used = fmax(0, event->used - s->rate * (now - event->at));
  event->at = now;
  if (event->used + 1 > fmax(1, s->rate * BURST)) return false;
  event->used += 1;
  return true;
}

// Parts "event: text", in place. What has no event is a note.
static const char *part(char *text, const char **event) {
  const size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz-");
  *event = "note";
  if (n == 0 || (text[n] && strncmp(text + n, ": ", 2) != 0)) return text;
  *event = text;
  const bool more = text[n] != '\0';
  text[n] = '\0';
  return text + n + 2 * more;
}

static void write_event(const SnLog *log, SnLogLevel level, SnLogIds ids, const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));

static void write_event(const SnLog *log, SnLogLevel level, SnLogIds ids, const char *format, va_list args) {
  if (log->fd < 0 || (int)level > atomic_load(&log->level)) return;
  char text[4200];
  const char *event;
  Line line;
  vsnprintf(text, sizeof text, format, args);
  const char *rest = part(text, &event);
  begin_line(&line, level, event);
  add_number(&line, "session", ids.session);
  add_number(&line, "plan", ids.plan);
  add_number(&line, "request", ids.request);
  if (*rest) {
    add(&line, " text=");
    add_quoted(&line, rest);
  }
  SnLogState *s = log->state;
  if (!s) {
    end_line(log, &line);
    return;
  }
  pthread_mutex_lock(&s->mutex);
  SnLogEvent *account = find_event(s, event);
  if (take_line(s, account)) {
    end_line(log, &line);
  } else {
    account->suppressed++;
    atomic_fetch_add(&s->suppressed, 1);
  }
  pthread_mutex_unlock(&s->mutex);
}

void sn_log_event(const SnLog *log, SnLogLevel level, const char *format, ...) {
  va_list args;
  va_start(args, format);
  write_event(log, level, (SnLogIds){0}, format, args);
  va_end(args);
}

void sn_log_about(const SnLog *log, SnLogLevel level, SnLogIds ids, const char *format, ...) {
  va_list args;
  va_start(args, format);
  write_event(log, level, ids, format, args);
  va_end(args);
}

// Says how many lines are missing, and why. With the mutex.
static bool tell(const SnLog *log, const char *event, uint64_t lines, const char *of) {
  Line line;
  begin_line(&line, SN_LOG_WARNING, event);
  add_number(&line, "lines", lines);
  if (*of) add(&line, " of=");
  add(&line, of);
  return end_line(log, &line);
}

void sn_log_tick(const SnLog *log) {
  SnLogState *s = log->state;
  if (!s || log->fd < 0) return;
  pthread_mutex_lock(&s->mutex);
  const uint64_t untold = s->untold;
  if (untold > 0 && tell(log, "log-lost", untold, "")) s->untold -= untold;
  if (untold > 0 && s->untold > 0) s->untold = untold;  // this line is one of those that are told of later
  for (int i = 0; i < s->events; i++)
    if (s->event[i].suppressed > 0 && take_line(s, &s->event[i]) &&
        tell(log, "log-suppressed", s->event[i].suppressed, s->event[i].name))
      s->event[i].suppressed = 0;
  pthread_mutex_unlock(&s->mutex);
}
