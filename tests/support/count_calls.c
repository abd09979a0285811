// Preloaded into a program: counts what each of its threads, libraries included, asks of the heap and of locks. The
// file that SN_TEST_COUNT names has the counters (count_calls.h), which the test reads while the program runs.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/count_calls.h"

#pragma GCC visibility push(default)
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *p);

static SnTestCallsPage *page;
static uintptr_t program;  // its first address
static _Thread_local SnTestCalls *mine __attribute__((tls_model("initial-exec")));

static SnTestCalls *calls(void) {
  static SnTestCalls nobody;
  if (!page) return &nobody;
  if (mine) return mine;
  const int i = atomic_fetch_add(&page->threads, 1);
  mine = i < SN_TEST_THREADS ? &page->calls[i] : &nobody;
  atomic_store(&mine->thread, (long)gettid());
  return mine;
}

// The program itself comes first.
static int note_program(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  program = info->dlpi_addr;
  return 1;
}

__attribute__((constructor)) static void begin(void) {
  const char *file = getenv("SN_TEST_COUNT");
  const int fd = file ? open(file, O_RDWR | O_CLOEXEC) : -1;
  void *p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd >= 0) close(fd);
  dl_iterate_phdr(note_program, NULL);
  if (p != MAP_FAILED) page = p;
}

#define COUNT(what) atomic_fetch_add(&calls()->what, 1)

void *malloc(size_t size) {
  COUNT(allocations);
  return __libc_malloc(size);
}

void *calloc(size_t n, size_t size) {
  COUNT(allocations);
  return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size) {
  COUNT(allocations);
  return __libc_realloc(p, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  COUNT(allocations);
  return __libc_memalign(alignment, size);
}

int posix_memalign(void **p, size_t alignment, size_t size) {
  COUNT(allocations);
  *p = __libc_memalign(alignment, size);
  return *p ? 0 : ENOMEM;
}

void free(void *p) {
  if (p) COUNT(allocations);
  __libc_free(p);
}

// Counts a lock, and whose it is: a thread has its counters for itself.
static void count_lock(const void *behind) {
  SnTestCalls *c = calls();
  const long at = (long)((uintptr_t)behind - program);
  int i = 0;
  while (i < SN_TEST_CALLERS - 1 && atomic_load(&c->caller[i].at) != 0 && atomic_load(&c->caller[i].at) != at) i++;
  atomic_store(&c->caller[i].at, at);
  atomic_fetch_add(&c->caller[i].locks, 1);
  atomic_fetch_add(&c->locks, 1);
}

// The C library's function. Conditions had another form once, which dlsym finds.
static void *next(const char *name) {
  void *form = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
  return form ? form : dlsym(RTLD_NEXT, name);
}

// Defines a call that is counted and handed on.
#define LOCK(name, declaration, arguments)    \
  int name declaration {                      \
    static int(*real) declaration;            \
    if (!real) *(void **)&real = next(#name); \
    count_lock(__builtin_return_address(0));  \
    return real arguments;                    \
  }

LOCK(pthread_mutex_lock, (pthread_mutex_t * m), (m))
LOCK(pthread_mutex_trylock, (pthread_mutex_t * m), (m))
LOCK(pthread_cond_signal, (pthread_cond_t * c), (c))
LOCK(pthread_cond_broadcast, (pthread_cond_t * c), (c))
LOCK(pthread_cond_wait, (pthread_cond_t * c, pthread_mutex_t *m), (c, m))
LOCK(pthread_cond_timedwait, (pthread_cond_t * c, pthread_mutex_t *m, const struct timespec *t), (c, m, t))
