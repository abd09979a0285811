#include "physics/import/sandbox_private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE 0
#endif

// Calls that are allowed whatever their arguments: memory, time, threads, signals of its own, files that are read.
static const int allowed[] = {
    SYS_brk,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_membarrier,
    SYS_read,
    SYS_readv,
    SYS_pread64,
    SYS_write,
    SYS_writev,
    SYS_lseek,
    SYS_close,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_readlinkat,
    SYS_getdents64,
    SYS_getcwd,
    SYS_fsync,
    SYS_futex,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_set_tid_address,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_getpid,
    SYS_gettid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getrusage,
    SYS_sysinfo,
    SYS_uname,
    SYS_getrandom,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_exit,
    SYS_exit_group,
#ifdef __x86_64__
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_time,
    SYS_arch_prctl,
#endif
#ifdef SN_SANITIZED  // what looks for leaks at the end is a process of its own
    SYS_clone,
    SYS_ptrace,
    SYS_wait4,
    SYS_getppid,
    SYS_prctl,
    SYS_kill,
    SYS_tgkill,
    SYS_pipe2,
    SYS_dup,
    SYS_dup2,
    SYS_getdents,
#endif
};

enum { WRITING = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND, MOST = 4 * sizeof allowed / sizeof *allowed + 64 };

typedef struct Filter {
  struct sock_filter code[MOST];
  unsigned short n;
} Filter;

static void add(Filter *f, unsigned short code, unsigned k, unsigned char yes, unsigned char no) {
  f->code[f->n++] = (struct sock_filter)BPF_JUMP(code, k, yes, no);
}

static void load(Filter *f, size_t at) { add(f, BPF_LD | BPF_W | BPF_ABS, (unsigned)at, 0, 0); }
static void end(Filter *f, unsigned verdict) { add(f, BPF_RET | BPF_K, verdict, 0, 0); }

// Answers a call: allowed where the lower half of an argument has none of some bits (or, `want`, all of them), or is
// equal.
typedef enum Test { HAS_NONE, HAS_ALL, IS } Test;
static void add_call(Filter *f, int number, int argument, Test test, unsigned value) {
  // Numbers are small and the machines little-endian: the lower half of an argument comes first.
  add(f, BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 4);
  load(f, offsetof(struct seccomp_data, args) + 8 * (size_t)argument);
  if (test == IS)
    add(f, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
  else
    add(f, BPF_JMP | BPF_JSET | BPF_K, value, test == HAS_NONE, test == HAS_ALL);
  end(f, SECCOMP_RET_ALLOW);
  end(f, SECCOMP_RET_ERRNO | EPERM);
}

static void build(Filter *f) {
  load(f, offsetof(struct seccomp_data, arch));
  add(f, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
  end(f, SECCOMP_RET_KILL_PROCESS);
  load(f, offsetof(struct seccomp_data, nr));
  for (size_t i = 0; i < sizeof allowed / sizeof *allowed; ++i) {
    add(f, BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
    end(f, SECCOMP_RET_ALLOW);
  }
  // The C library tries clone3 first, whose flags a filter cannot see, and goes on without it.
  add(f, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1);
  end(f, SECCOMP_RET_ERRNO | ENOSYS);
  add_call(f, SYS_clone, 0, HAS_ALL, CLONE_THREAD);
  add_call(f, SYS_openat, 2, HAS_NONE, WRITING);
#ifdef SYS_open
  add_call(f, SYS_open, 1, HAS_NONE, WRITING);
#endif
  add_call(f, SYS_tgkill, 0, IS, (unsigned)getpid());  // abort()
  // Limits of itself alone; and nothing that makes a descriptor send signals to others.
  add_call(f, SYS_prlimit64, 0, IS, 0);
  add_call(f, SYS_fcntl, 1, IS, F_GETFL);
  end(f, SECCOMP_RET_ERRNO | EPERM);
}

SnCode sn_sandbox_enter(SnError *err) {
  Filter f = {.n = 0};
  if (ARCHITECTURE == 0) return sn_fail(err, SN_ERR_UNSUPPORTED, "no filter of calls for this kind of processor");
  build(&f);
  const struct sock_fprog program = {f.n, f.code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0)
    return SN_OK;
  return sn_fail(err, SN_ERR_UNSUPPORTED, "this system has no filters of calls (seccomp): %s", strerror(errno));
}

bool sn_sandbox_exists(void) {
  const unsigned action = SECCOMP_RET_ERRNO;
  return ARCHITECTURE != 0 && syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}
