// Preloaded into a program: it is killed a tenth of a second after it has begun to open a file whose path has the word
// that SN_TEST_CRASH names. Files with the word of SN_TEST_SLOW take twice as long to open. Where SN_TEST_SLOW_DISK
// is set, what is to be on the disk takes a tenth of a second. A thread with the name that SN_TEST_CRASH_THREAD has
// crashes when it asks for an arc tangent.
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { MOMENT_US = 100000 };

static bool has_word(const char *path, const char *variable) {
  const char *word = getenv(variable);
  return word && strstr(path, word);
}

#pragma GCC visibility push(default)
FILE *fopen(const char *restrict path, const char *restrict mode) {
  static FILE *(*real)(const char *, const char *);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "fopen");
  if (has_word(path, "SN_TEST_SLOW")) usleep(2 * MOMENT_US);
  if (has_word(path, "SN_TEST_CRASH")) {
    usleep(MOMENT_US);
    raise(SIGKILL);  // as a crash, without a file of the memory
  }
  return real(path, mode);
}

int fsync(int fd) {
  static int (*real)(int);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "fsync");
  if (getenv("SN_TEST_SLOW_DISK")) usleep(MOMENT_US);
  return real(fd);
}

// Crashes the thread with that name.
static void crash_thread(void) {
  char name[16] = "";
  const char *crashes = getenv("SN_TEST_CRASH_THREAD");
  if (crashes) prctl(PR_GET_NAME, name, 0, 0, 0);
  if (crashes && !strcmp(name, crashes)) raise(SIGSEGV);
}

#define ARC_TANGENT(type, name)                           \
  type name(type y, type x);                              \
  type name(type y, type x) {                             \
    static type (*real)(type, type);                      \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name); \
    crash_thread();                                       \
    return real(y, x);                                    \
  }
ARC_TANGENT(double, atan2)
ARC_TANGENT(float, atan2f)
#pragma GCC visibility pop
