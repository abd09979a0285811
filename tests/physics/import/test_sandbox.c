// The sandbox of sinew-import, from inside: a child enters it and tries what a loader that was taken over would.
#include "physics/import/sandbox_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
// cmocka needs what stands above.
#include <cmocka.h>

enum { NO_SANDBOX = 99, OUTPUT = 200 };  // exit status; a descriptor that is open to be written

static char folder[] = "/tmp/test_sandbox.XXXXXX";
static char there[64], fresh[64];  // a file that is there, and one that is not

// Whether a call was refused by the sandbox. What came back is no error: it went through.
static bool refused(long result) { return result == -1 && errno == EPERM; }

// Each returns 0 when all is as it should be, or the number of what is not.
typedef int Attempt(void);

static int network(void) {
  int pair[2];
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9)};
  if (!refused(socket(AF_INET, SOCK_STREAM, 0))) return 1;
  if (!refused(socket(AF_INET6, SOCK_DGRAM, 0))) return 2;
  if (!refused(socket(AF_UNIX, SOCK_STREAM, 0))) return 3;
  if (!refused(socketpair(AF_UNIX, SOCK_STREAM, 0, pair))) return 4;
  if (!refused(connect(OUTPUT, (struct sockaddr *)&address, sizeof address))) return 5;
  return refused(syscall(SYS_io_uring_setup, 8, NULL)) ? 0 : 6;
}

static int files(void) {
  if (!refused(open(there, O_WRONLY))) return 1;
  if (!refused(open(there, O_RDWR))) return 2;
  if (!refused(open(there, O_RDONLY | O_TRUNC))) return 3;
  if (!refused(open(fresh, O_RDONLY | O_CREAT, 0600))) return 4;
  if (!refused(open(folder, O_TMPFILE | O_WRONLY, 0600))) return 5;
  if (!refused(syscall(SYS_openat, AT_FDCWD, fresh, O_CREAT | O_WRONLY, 0600))) return 6;
  if (!refused(syscall(SYS_openat2, AT_FDCWD, there, (uint64_t[]){O_RDONLY, 0, 0}, 24))) return 7;
  if (!refused(rename(there, fresh)) || !refused(unlink(there)) || !refused(truncate(there, 0))) return 8;
  if (!refused(link(there, fresh)) || !refused(symlink(there, fresh)) || !refused(mkdir(fresh, 0700))) return 9;
  if (!refused(chmod(there, 0777)) || !refused(chown(there, 1, 1)) || !refused(mknod(fresh, S_IFIFO, 0))) return 10;
#ifdef SYS_creat
  if (!refused(syscall(SYS_creat, fresh, 0600))) return 11;
#endif
  return refused(open("/proc/self/mem", O_RDWR)) ? 0 : 12;
}

static int programs(void) {
  char *const argv[] = {(char *)"/bin/true", NULL};
  if (!refused(execv(argv[0], argv))) return 1;
  if (!refused(syscall(SYS_execveat, AT_FDCWD, argv[0], argv, NULL, 0))) return 2;
#ifndef SN_SANITIZED  // what looks for leaks is a process of its own
  if (!refused(fork())) return 3;
  if (!refused(kill(getppid(), 0))) return 4;
  if (!refused(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL))) return 5;
#endif
  struct rlimit limit = {0, 0};
  if (!refused(prlimit(getppid(), RLIMIT_CPU, &limit, NULL))) return 7;
  if (!refused(fcntl(OUTPUT, F_SETOWN, getppid())) || !refused(fcntl(OUTPUT, F_SETSIG, SIGKILL))) return 8;
  struct iovec here = {.iov_base = there, .iov_len = 1};
  return refused(process_vm_writev(getppid(), &here, 1, &here, 1, 0)) ? 0 : 6;
}

static void *add_one(void *x) {
  ++*(int *)x;
  return NULL;
}

// What MuJoCo does is allowed.
static int usual(void) {
  char text[16] = "";
  int x = 1;
  pthread_t thread;
  FILE *f = fopen(there, "r");
  if (!f || !fgets(text, sizeof text, f) || strcmp(text, "hello") != 0) return 1;
  fclose(f);
  if (write(OUTPUT, "done", 4) != 4) return 2;
  if (pthread_create(&thread, NULL, add_one, &x) != 0 || pthread_join(thread, NULL) != 0 || x != 2) return 3;
  void *memory = malloc(64 << 20);
  if (!memory) return 4;
  memset(memory, 1, 64 << 20);
  free(memory);
  return 0;
}

static void attempt(Attempt *what) {
  int status = 0;
  char done[8] = "";
  char output[64];
  snprintf(output, sizeof output, "%s/output", folder);
  const int fd = open(output, O_CREAT | O_RDWR | O_TRUNC, 0600);
  assert_int_equal(dup2(fd, OUTPUT), OUTPUT);
  close(fd);
  const pid_t child = fork();
  if (child == 0) {
    SnError err = {0};
    const SnCode code = sn_sandbox_enter(&err);
    if (code != SN_OK) fprintf(stderr, "%s\n", err.text);
    _exit(code == SN_ERR_UNSUPPORTED ? NO_SANDBOX : code == SN_OK ? what() : 98);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  const ssize_t n = pread(OUTPUT, done, sizeof done - 1, 0);
  close(OUTPUT);
  assert_true(WIFEXITED(status));
  if (WEXITSTATUS(status) == NO_SANDBOX) skip();
  assert_int_equal(WEXITSTATUS(status), 0);
  if (what == usual) assert_int_equal(n, 4);
  assert_int_equal(access(there, R_OK), 0);
  assert_int_equal(access(fresh, F_OK), -1);
}

static void no_network(void **state) {
  (void)state;
  attempt(network);
}
static void no_file_is_written(void **state) {
  (void)state;
  attempt(files);
}
static void no_other_program(void **state) {
  (void)state;
  attempt(programs);
}
static void what_a_loader_needs(void **state) {
  (void)state;
  attempt(usual);
}

// A system whose seccomp(2) does not answer.
static void hide_filters(void) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {4, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(NO_SANDBOX);
}

// Runs sinew-import on such a system; returns its status, and what it says on standard error.
static int import_without(const char *how, char *said, size_t size) {
  int status = 0, fd[2];
  char model[64], option[64];
  snprintf(model, sizeof model, "%s/model.xml", folder);
  snprintf(option, sizeof option, "--sandbox=%s", how);
  FILE *f = fopen(model, "w");
  assert_non_null(f);
  fputs("<mujoco/>", f);
  fclose(f);
  assert_int_equal(pipe(fd), 0);
  const pid_t child = fork();
  if (child == 0) {
    SnError err = {0};
    dup2(fd[1], STDERR_FILENO);
    hide_filters();
    if (sn_sandbox_exists() || sn_sandbox_enter(&err) != SN_ERR_UNSUPPORTED) _exit(98);
    execl(SN_TEST_BINARY_DIR "/sinew-import", "sinew-import", option, model, NULL);
    _exit(97);
  }
  close(fd[1]);
  size_t used = 0;
  for (ssize_t n; used + 1 < size && (n = read(fd[0], said + used, size - 1 - used)) > 0;) used += (size_t)n;
  said[used] = '\0';
  close(fd[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static void a_system_without_filters(void **state) {
  (void)state;
  char said[2000];
  const int status = import_without("wanted", said, sizeof said);
  if (status == NO_SANDBOX) skip();
  assert_int_equal(status, 0);
  assert_non_null(strstr(said, "no sandbox: this system has no filters of calls"));
  assert_int_equal(import_without("required", said, sizeof said), 4);
  assert_non_null(strstr(said, "no sandbox: this system has no filters of calls"));
}

static int make_files(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return -1;
  snprintf(there, sizeof there, "%s/there", folder);
  snprintf(fresh, sizeof fresh, "%s/fresh", folder);
  FILE *f = fopen(there, "w");
  return f && fputs("hello", f) >= 0 && fclose(f) == 0 ? 0 : -1;
}

static int remove_files(void **state) {
  (void)state;
  char clean[64];
  snprintf(clean, sizeof clean, "rm -r %s", folder);
  return system(clean);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_network),
      cmocka_unit_test(no_file_is_written),
      cmocka_unit_test(no_other_program),
      cmocka_unit_test(what_a_loader_needs),
      cmocka_unit_test(a_system_without_filters),
  };
  return cmocka_run_group_tests(tests, make_files, remove_files);
}
