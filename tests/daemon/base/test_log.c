// Lines of the log: what they look like, how many there are, and that a reader who is slow or gone holds nobody up.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/base/log.h"
#include "physics/base/clock.h"

typedef struct Fixture {
  int pipe[2];
  SnLogState state;
  SnLog log;
  char got[1 << 16];
} Fixture;

static int setup(void **state) {
  static Fixture f;
  assert_int_equal(pipe2(f.pipe, O_CLOEXEC), 0);
  fcntl(f.pipe[0], F_SETFL, O_NONBLOCK);
  sn_log_init(&f.state, 1e6);
  f.log = (SnLog){f.pipe[1], SN_LOG_INFO, &f.state};
  *state = &f;
  return 0;
}

static int teardown(void **state) {
  Fixture *f = *state;
  close(f->pipe[0]);
  close(f->pipe[1]);
  return 0;
}

// All that was written so far.
static const char *read_all(Fixture *f) {
  const ssize_t n = read(f->pipe[0], f->got, sizeof f->got - 1);
  f->got[n > 0 ? n : 0] = '\0';
  return f->got;
}

// The line behind its time, whose form is checked.
static const char *behind_time(const char *line) {
  static const char form[] = "time=0000-00-00T00:00:00.000Z ";
  for (size_t i = 0; i + 1 < sizeof form; i++)
    if (form[i] == '0')
      assert_true(line[i] >= '0' && line[i] <= '9');
    else
      assert_int_equal(line[i], form[i]);
  return line + sizeof form - 1;
}

static void test_lines(void **state) {
  Fixture *f = *state;
  sn_log_event(&f->log, SN_LOG_WARNING, "lease-expired: no request for %.1f s", 2.5);
  assert_string_equal(behind_time(read_all(f)), "level=warning event=lease-expired text=\"no request for 2.5 s\"\n");
  sn_log_event(&f->log, SN_LOG_ERROR, "stopped");
  assert_string_equal(behind_time(read_all(f)), "level=error event=stopped\n");
  sn_log_event(&f->log, SN_LOG_INFO, "Not an event: at all");
  assert_string_equal(behind_time(read_all(f)), "level=info event=note text=\"Not an event: at all\"\n");
  sn_log_event(&f->log, SN_LOG_INFO, "odd: a \"b\\c\nd\te\x1b[2J\x7f \xc3\xa4 \xc2\x9b[2J \xc2\xa0");
  assert_string_equal(
      behind_time(read_all(f)),
      "level=info event=odd text=\"a \\\"b\\\\c\\nd\\x09e\\x1b[2J\\x7f \xc3\xa4 \\xc2\\x9b[2J \xc2\xa0\"\n");
  sn_log_event(&f->log, SN_LOG_DEBUG, "hello: not wanted");
  assert_string_equal(read_all(f), "");
  const SnLog silent = {.fd = -1, .level = SN_LOG_DEBUG};
  sn_log_event(&silent, SN_LOG_ERROR, "nobody: hears it");
  assert_int_equal(atomic_load(&f->state.written), 4);
}

static void test_ids(void **state) {
  Fixture *f = *state;
  sn_log_about(&f->log, SN_LOG_INFO, (SnLogIds){.session = 5, .plan = 6, .request = UINT64_MAX}, "x: y");
  assert_string_equal(behind_time(read_all(f)),
                      "level=info event=x session=5 plan=6 request=18446744073709551615 text=\"y\"\n");
  sn_log_about(&f->log, SN_LOG_INFO, (SnLogIds){.request = 7}, "x: y");
  assert_string_equal(behind_time(read_all(f)), "level=info event=x request=7 text=\"y\"\n");
}

// A text without end is cut, and the line ends as it must.
static void test_long(void **state) {
  Fixture *f = *state;
  for (int filled = 0; filled < 2; filled++) {
    char *text = malloc(10000);
    assert_non_null(text);
    memset(text, filled ? '"' : 'a', 9999);
    text[9999] = '\0';
    sn_log_event(&f->log, SN_LOG_INFO, "long: %s", text);
    free(text);
    const char *line = read_all(f);
    const size_t n = strlen(line);
    assert_in_range(n, SN_LOG_LINE - 8, SN_LOG_LINE);
    assert_string_equal(line + n - 2, "\"\n");
  }
}

// Beyond its rate an event is counted, others are not touched, and the log says how many are missing.
static void test_rate(void **state) {
  Fixture *f = *state;
  sn_log_init(&f->state, 0.4);
  for (int i = 0; i < 30; i++) sn_log_event(&f->log, SN_LOG_INFO, "often: %d", i);
  sn_log_event(&f->log, SN_LOG_INFO, "seldom: 1");
  const char *got = read_all(f);
  assert_non_null(strstr(got, "event=often text=\"1\""));
  assert_null(strstr(got, "event=often text=\"2\""));
  assert_non_null(strstr(got, "event=seldom text=\"1\""));
  assert_int_equal(atomic_load(&f->state.suppressed), 28);
  sn_log_tick(&f->log);
  assert_string_equal(read_all(f), "");
  for (int i = 0; i < 1000 && !*(got = read_all(f)); i++) {  // a line comes after two seconds and a half
    usleep(20000);
    sn_log_tick(&f->log);
  }
  assert_string_equal(behind_time(got), "level=warning event=log-suppressed lines=28 of=often\n");
  sn_log_tick(&f->log);
  assert_string_equal(read_all(f), "");
}

// More events than there are places for share one account; none is lost for it.
static void test_many_events(void **state) {
  Fixture *f = *state;
  for (int i = 0; i < 2 * SN_LOG_EVENTS; i++) sn_log_event(&f->log, SN_LOG_INFO, "%c%c: x", 'a' + i / 26, 'a' + i % 26);
  assert_int_equal(atomic_load(&f->state.written), 2 * SN_LOG_EVENTS);
  assert_int_equal(f->state.events, SN_LOG_EVENTS);
}

// A pipe that nobody reads: no call waits, what is lost is counted, and told when there is room again.
static void fill(Fixture *f) {
  const double began = sn_clock_now();
  for (int i = 0; i < 3000; i++) sn_log_event(&f->log, SN_LOG_INFO, "fill: %0200d", i);
  assert_true(sn_clock_now() - began < 5);
  const uint64_t lost = atomic_load(&f->state.lost);
  assert_true(lost > 0 && lost + atomic_load(&f->state.written) == 3000);
}

static void test_full_pipe(void **state) {
  Fixture *f = *state;
  fill(f);
  const uint64_t lost = atomic_load(&f->state.lost);
  sn_log_tick(&f->log);  // there is no room yet
  const uint64_t then = atomic_load(&f->state.lost);
  assert_int_equal(then, lost + 1);
  size_t lines = 0;
  for (const char *got; *(got = read_all(f));)
    for (const char *c = got; *c; c++) lines += *c == '\n';
  assert_int_equal(lines, atomic_load(&f->state.written));
  sn_log_tick(&f->log);
  char expected[100];
  snprintf(expected, sizeof expected, "level=warning event=log-lost lines=%d\n", (int)lost);
  assert_string_equal(behind_time(read_all(f)), expected);
  sn_log_tick(&f->log);
  assert_string_equal(read_all(f), "");
}

static void test_full_socket(void **state) {
  Fixture *f = *state;
  int pair[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  f->log.fd = pair[0];
  fill(f);
  close(pair[1]);
  sn_log_event(&f->log, SN_LOG_INFO, "gone: nobody reads");
  close(pair[0]);
}

// Reads what a terminal has got, until it ends with `last` or nothing comes for a while: the system hands it on later.
static const char *read_terminal(Fixture *f, int reader, const char *last) {
  size_t n = 0, size = strlen(last);
  for (struct pollfd more = {.fd = reader, .events = POLLIN}; poll(&more, 1, 300) == 1;) {
    if (n > sizeof f->got / 2) n = 0;
    const ssize_t got = read(reader, f->got + n, sizeof f->got - 1 - n);
    n += got > 0 ? (size_t)got : 0;
    if (n >= size && !memcmp(f->got + n - size, last, size)) break;
  }
  f->got[n] = '\0';
  return f->got;
}

// A terminal that says that it takes something takes less than a line; who waits for the rest waits for its reader.
static void test_full_terminal(void **state) {
  Fixture *f = *state;
  int reader, terminal;
  assert_int_equal(openpty(&reader, &terminal, NULL, NULL, NULL), 0);
  f->log.fd = terminal;
  sn_log_own(&f->log);
  assert_int_not_equal(f->log.fd, terminal);
  alarm(20);  // ends the test where a line waits
  fill(f);
  alarm(0);
  assert_false(fcntl(terminal, F_GETFL) & O_NONBLOCK);
  // What was cut ends where the next line begins.
  fcntl(reader, F_SETFL, O_NONBLOCK);
  const char *got = read_terminal(f, reader, "\x01");
  assert_true(*got);
  const bool cut = got[strlen(got) - 1] != '\n';
  sn_log_event(&f->log, SN_LOG_INFO, "after: x");
  got = read_terminal(f, reader, "after text=\"x\"\r\n");
  assert_int_equal(!strncmp(got, "\r\n", 2), cut);
  assert_string_equal(behind_time(got + (cut ? 2 : 0)), "level=info event=after text=\"x\"\r\n");
  close(f->log.fd);
  close(terminal);
  close(reader);
}

// A pipe that is shared stays as it is for the others. What cannot be opened again, or does not wait anyway, is left.
static void test_own(void **state) {
  Fixture *f = *state;
  int pair[2];
  sn_log_own(&f->log);
  assert_int_not_equal(f->log.fd, f->pipe[1]);
  assert_true(fcntl(f->log.fd, F_GETFL) & O_NONBLOCK);
  assert_true(fcntl(f->log.fd, F_GETFD) & FD_CLOEXEC);
  assert_false(fcntl(f->pipe[1], F_GETFL) & O_NONBLOCK);
  sn_log_event(&f->log, SN_LOG_INFO, "own: x");
  assert_string_equal(behind_time(read_all(f)), "level=info event=own text=\"x\"\n");
  close(f->log.fd);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  f->log.fd = pair[0];
  sn_log_own(&f->log);
  assert_int_equal(f->log.fd, pair[0]);
  close(pair[0]);
  close(pair[1]);
  f->log.fd = -1;
  sn_log_own(&f->log);
  assert_int_equal(f->log.fd, -1);
}

static void test_broken_pipe(void **state) {
  Fixture *f = *state;
  signal(SIGPIPE, SIG_IGN);
  close(f->pipe[0]);
  sn_log_event(&f->log, SN_LOG_INFO, "x: y");
  assert_int_equal(atomic_load(&f->state.lost), 1);
  f->pipe[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static char *read_file(const char *path, char *text, size_t size) {
  FILE *in = fopen(path, "r");
  assert_non_null(in);
  text[fread(text, 1, size - 1, in)] = '\0';
  fclose(in);
  return text;
}

// A file that was moved away has the lines before, the new one those after; a folder that is gone changes nothing.
static void test_file(void **state) {
  Fixture *f = *state;
  char folder[] = "/tmp/sinew-log-XXXXXX", file[64], moved[64], text[4096];
  assert_non_null(mkdtemp(folder));
  snprintf(file, sizeof file, "%s/log", folder);
  snprintf(moved, sizeof moved, "%s/old", folder);
  SnError err = {0};
  SnLog log = {STDERR_FILENO, SN_LOG_INFO, &f->state};
  assert_int_equal(sn_log_open(&log, "/nowhere/at/all", &err), SN_ERR_IO);
  assert_non_null(strstr(err.text, "log_file: /nowhere/at/all: "));
  assert_int_equal(log.fd, STDERR_FILENO);
  assert_int_equal(sn_log_open(&log, file, &err), SN_OK);
  const int fd = log.fd;
  sn_log_event(&log, SN_LOG_INFO, "first");
  assert_int_equal(rename(file, moved), 0);
  sn_log_event(&log, SN_LOG_INFO, "second");
  assert_int_equal(sn_log_open(&log, file, &err), SN_OK);
  assert_int_equal(log.fd, fd);
  sn_log_event(&log, SN_LOG_INFO, "third");
  assert_int_equal(sn_log_open(&log, "/nowhere/at/all", &err), SN_ERR_IO);
  sn_log_event(&log, SN_LOG_INFO, "fourth");
  read_file(moved, text, sizeof text);
  assert_true(strstr(text, "event=first\n") && strstr(text, "event=second\n") && !strstr(text, "third"));
  read_file(file, text, sizeof text);
  assert_true(strstr(text, "event=third\n") && strstr(text, "event=fourth\n") && !strstr(text, "second"));
  close(log.fd);
  unlink(file);
  unlink(moved);
  rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_lines, setup, teardown),
      cmocka_unit_test_setup_teardown(test_ids, setup, teardown),
      cmocka_unit_test_setup_teardown(test_long, setup, teardown),
      cmocka_unit_test_setup_teardown(test_rate, setup, teardown),
      cmocka_unit_test_setup_teardown(test_many_events, setup, teardown),
      cmocka_unit_test_setup_teardown(test_full_pipe, setup, teardown),
      cmocka_unit_test_setup_teardown(test_full_socket, setup, teardown),
      cmocka_unit_test_setup_teardown(test_full_terminal, setup, teardown),
      cmocka_unit_test_setup_teardown(test_own, setup, teardown),
      cmocka_unit_test_setup_teardown(test_broken_pipe, setup, teardown),
      cmocka_unit_test_setup_teardown(test_file, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
