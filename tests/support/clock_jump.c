// Preloaded into a program: its wall clock, and no other, is ahead by the number of seconds in the file that
// SN_TEST_CLOCK names, which may change while the program runs.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(default)
int clock_gettime(clockid_t clock, struct timespec *now);
time_t time(time_t *out);
int gettimeofday(struct timeval *restrict now, void *restrict zone);

static long ahead(void) {
  static const volatile long *seconds;
  const char *file = getenv("SN_TEST_CLOCK");
  if (!seconds && file) {
    const int fd = open(file, O_RDONLY | O_CLOEXEC);
    void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *seconds, PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (page != MAP_FAILED) seconds = page;
  }
  return seconds ? *seconds : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
  const int rc = real(clock, now);
  if (rc == 0 && clock == CLOCK_REALTIME) now->tv_sec += ahead();
  return rc;
}

time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec t;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &t);
  now->tv_sec = t.tv_sec;
  now->tv_usec = t.tv_nsec / 1000;
  return 0;
}
#pragma GCC visibility pop
