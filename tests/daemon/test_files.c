// Connections are files, and files are limited: sinewd takes as many connections as fit, or says that too few do; more
// of them than there are files do not end it.
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/wire/wire.h"
#include "tests/support/raw_peer.h"

enum { FILES = 200 };

static void test_too_few_files(void **state) {
  (void)state;
  static const int files[] = {24, 32, 64, 128};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    SnTestDaemon d = {.files = files[i]};
    char text[64];
    sn_test_daemon_spawn(&d, NULL);
    assert_int_equal(sn_test_daemon_wait(&d), 1);
    snprintf(text, sizeof text, "only %d files may be open", files[i]);
    assert_true(sn_test_daemon_logged(&d, text));
    sn_test_daemon_remove(&d);
  }
}

// A listening socket, and one that connects to it.
static bool make_pair(int *listener, int *client) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};  // without a path: the system gives it a name
  socklen_t size = sizeof address;
  *listener = socket(AF_UNIX, SOCK_STREAM, 0);
  *client = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
  return bind(*listener, (const struct sockaddr *)&address, sizeof(sa_family_t)) == 0 && listen(*listener, 4) == 0 &&
         getsockname(*listener, (struct sockaddr *)&address, &size) == 0 &&
         connect(*client, (const struct sockaddr *)&address, size) == 0;
}

// Connects a client and accepts it, when all files below `used` are in use: what libzmq gets to see.
static bool is_refused(int used) {
  int listener, client;
  if (!make_pair(&listener, &client)) return false;
  int last = client;
  while (last >= 0 && last < used) last = dup(client);
  errno = 0;
  const bool refused = accept4(listener, NULL, NULL, SOCK_CLOEXEC) < 0 && errno == ECONNABORTED;
  for (int fd = listener; fd <= last; fd++) close(fd);
  return refused;
}

// In a process of its own, which cannot raise its limit again.
static int refuse_connections(void) {
  const struct rlimit limit = {FILES, FILES};
  const SnLog log = {.fd = -1};
  SnConfig config;
  SnError err = {0};
  sn_config_default(&config);
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || sn_files_prepare(&config, &log, &err) != SN_OK) return 1;
  if (config.connections >= FILES || is_refused(config.connections)) return 2;
  if (!is_refused(FILES - 10)) return 3;  // the last files are out of reach
  if (!is_refused(FILES - 1)) return 4;   // no file at all
  return is_refused(config.connections) ? 5 : 0;
}

static void test_last_files_are_no_connections(void **state) {
  (void)state;
  int status;
  const pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) _exit(refuse_connections());
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

// Connects without a word, as fast as it goes.
static void connect_many(const char *endpoint, int *fd, int n) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", endpoint + strlen("ipc://"));
  for (int i = 0; i < n; i++) {
    fd[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd[i] >= 0);
    if (connect(fd[i], (const struct sockaddr *)&address, sizeof address) != 0) usleep(100);
  }
}

static void test_more_connections_than_files(void **state) {
  (void)state;
  enum { MANY = 400 };
  SnTestDaemon d = {.files = FILES};
  SnTestClient c, fresh;
  int fd[MANY];
  sn_test_daemon_start(&d, NULL);
  assert_true(sn_test_daemon_logged(&d, "instead of 256, since only 200 files may be open"));
  sn_test_connect(&c, d.endpoint);
  assert_true(sn_test_answers(&c, 20));
  const char *const endpoints[] = {d.telemetry, d.records, d.endpoint};
  for (int i = 0; i < 3; i++) {
    connect_many(endpoints[i], fd, MANY);
    assert_true(sn_test_answers(&c, 20));
    assert_in_range(sn_test_daemon_files(&d), 1, FILES);
    for (int k = 0; k < MANY; k++) close(fd[k]);
  }
  sn_test_connect(&fresh, d.endpoint);
  assert_true(sn_test_answers(&fresh, 20));
  sn_test_disconnect(&fresh);
  sn_test_disconnect(&c);
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  sn_test_daemon_remove(&d);
}

// `connections` is a limit of telemetry as it is one of requests.
static void test_limit_of_connections(void **state) {
  (void)state;
  enum { MOST = 8, MANY = 40 };
  SnTestDaemon d = {0};
  int fd[MANY];
  sn_test_daemon_start(&d, (const char *const[]){"--connections=8", NULL});
  const int before = sn_test_daemon_files(&d);
  connect_many(d.telemetry, fd, MANY);
  int files = MANY + before;
  for (double until = sn_clock_now() + 20; files > before + MOST && sn_clock_now() < until; usleep(10000))
    files = sn_test_daemon_files(&d);
  assert_in_range(files, before, before + MOST);
  bool logged = false;
  for (double until = sn_clock_now() + 20; !logged && sn_clock_now() < until; usleep(10000))
    logged = sn_test_daemon_logged(&d, "connections for telemetry; at most 8 are allowed");
  assert_true(logged);
  for (int k = 0; k < MANY; k++) close(fd[k]);
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  sn_test_daemon_remove(&d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_too_few_files),
      cmocka_unit_test(test_last_files_are_no_connections),
      cmocka_unit_test(test_more_connections_than_files),
      cmocka_unit_test(test_limit_of_connections),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
