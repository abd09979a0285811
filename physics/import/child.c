#include "physics/import/child_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "physics/base/clock.h"

// Starts the program with its standard error on `err_fd`.
static int spawn(char *const argv[], int err_fd, pid_t *pid) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attr;
  sigset_t none, usual;
  sigemptyset(&none);
  sigfillset(&usual);
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attr);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, err_fd, STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setsigmask(&attr, &none);
  posix_spawnattr_setsigdefault(&attr, &usual);
  const int code = posix_spawn(pid, argv[0], &files, &attr, argv, environ);
  posix_spawnattr_destroy(&attr);
  posix_spawn_file_actions_destroy(&files);
  return code;
}

// Keeps the end of what arrives.
static void append(SnChildResult *r, const char *data, size_t n) {
  const size_t capacity = sizeof r->text - 1;
  size_t used = strlen(r->text);
  for (size_t i = 0; i < n; ++i) {
    if (used == capacity) {
      memmove(r->text, r->text + capacity / 2, used - capacity / 2);
      used -= capacity / 2;
    }
    r->text[used++] = data[i] ? data[i] : ' ';
    r->text[used] = 0;
  }
}

// Time between looks at the flag that cancels, in milliseconds.
enum { LOOK_MS = 50 };

static bool is_cancelled(const atomic_bool *cancel) { return cancel && atomic_load(cancel); }

// Reads until the other end closes; false when the deadline passes or the flag is set first.
static bool read_until(int fd, double deadline, const atomic_bool *cancel, SnChildResult *r) {
  for (;;) {
    const double left = 1000 * (deadline - sn_clock_now());
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (left <= 0 || is_cancelled(cancel)) return false;
    const int ready = poll(&p, 1, left < LOOK_MS ? (int)left + 1 : LOOK_MS);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    if (ready < 0) return false;
    char data[1024];
    const ssize_t n = read(fd, data, sizeof data);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    append(r, data, (size_t)n);
  }
}

// True when the child ended before the deadline, with its status, unless somebody else has taken that.
static bool wait_until(pid_t pid, double deadline, const atomic_bool *cancel, int *status, bool *unknown) {
  for (;;) {
    const pid_t got = waitpid(pid, status, WNOHANG);
    if (got == pid) return true;
    *unknown = got < 0 && errno == ECHILD;
    if (*unknown) return true;
    if (got < 0 && errno != EINTR) return false;
    if (sn_clock_now() > deadline || is_cancelled(cancel)) return false;
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  }
}

// A lack of files, memory or processes passes.
static SnCode not_started(const char *program, int error, SnError *err) {
  const bool lacks = error == EMFILE || error == ENFILE || error == ENOMEM || error == EAGAIN;
  return sn_fail(err, lacks ? SN_ERR_LIMIT : SN_ERR_IO, "%s: could not be started: %s", program, strerror(error));
}

SnCode sn_child_run(char *const argv[], double seconds, const atomic_bool *cancel, SnChildResult *r, SnError *err) {
  memset(r, 0, sizeof *r);
  int fd[2];
  if (pipe2(fd, O_CLOEXEC) != 0) return not_started(argv[0], errno, err);
  pid_t pid = 0;
  const double deadline = sn_clock_now() + seconds;
  const int code = spawn(argv, fd[1], &pid);
  close(fd[1]);
  if (code != 0) {
    close(fd[0]);
    return not_started(argv[0], code, err);
  }
  int status = 0;
  if (!read_until(fd[0], deadline, cancel, r) || !wait_until(pid, deadline, cancel, &status, &r->unknown)) {
    r->cancelled = is_cancelled(cancel);
    r->timed_out = !r->cancelled;
    kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  }
  close(fd[0]);
  r->signal = WIFSIGNALED(status) && !r->timed_out && !r->cancelled ? WTERMSIG(status) : 0;
  r->status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  size_t n = strlen(r->text);
  while (n && r->text[n - 1] == '\n') r->text[--n] = 0;
  return SN_OK;
}
