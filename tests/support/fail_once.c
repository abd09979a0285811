// Preloaded into a program: of the calls that the program itself makes for memory, files, threads and sockets, a chosen
// one fails, once. Calls of libraries do not count, but those of protobuf-c and libyaml. The blocks of memory that
// sinewd has with its libraries are counted, without those of programs that it starts. The file that SN_TEST_FAIL names
// has the counters (fail_once.h), which the test sees and sets while the program runs.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/fail_once.h"

#pragma GCC visibility push(default)
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *p);

static SnTestFailures nowhere, *page = &nowhere;
static atomic_long *blocks = &nowhere.blocks;

enum { RANGES = 8 };
static struct { uintptr_t begin, end; } range[RANGES];
static int ranges;

// The executable parts of the program, which comes first, of protobuf-c and of libyaml.
static int note_object(struct dl_phdr_info *info, size_t size, void *count) {
  (void)size;
  const bool counts =
      (*(int *)count)++ == 0 || strstr(info->dlpi_name, "libprotobuf-c") || strstr(info->dlpi_name, "libyaml");
  for (int i = 0; counts && i < info->dlpi_phnum && ranges < RANGES; i++) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD || !(info->dlpi_phdr[i].p_flags & PF_X)) continue;
    range[ranges].begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    range[ranges].end = range[ranges].begin + info->dlpi_phdr[i].p_memsz;
    ranges++;
  }
  return 0;
}

__attribute__((constructor)) static void begin(void) {
  const char *file = getenv("SN_TEST_FAIL");
  int count = 0;
  const int fd = file ? open(file, O_RDWR | O_CLOEXEC) : -1;
  void *p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd >= 0) close(fd);
  if (p == MAP_FAILED) return;
  dl_iterate_phdr(note_object, &count);
  page = p;
  if (!strcmp(program_invocation_short_name, "sinewd")) blocks = &page->blocks;
}

static bool fails(void *caller) {
  const uintptr_t at = (uintptr_t)caller;
  bool counts = false;
  for (int i = 0; i < ranges && !counts; i++) counts = at >= range[i].begin && at < range[i].end;
  if (!counts) return false;
  atomic_fetch_add(&page->calls, 1);
  if (atomic_load(&page->left) <= 0 || atomic_fetch_sub(&page->left, 1) != 1) return false;
  atomic_store(&page->caller, (long)(at - range[0].begin));
  atomic_fetch_add(&page->failed, 1);
  return true;
}

#define FAILS fails(__builtin_return_address(0))
#define NEXT(declaration, name) \
  static declaration;           \
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, name)

static void *no_memory(void) {
  errno = ENOMEM;
  return NULL;
}

static int no_file(void) {
  errno = EMFILE;
  return -1;
}

static void *taken(void *p) {
  atomic_fetch_add(blocks, p != NULL);
  return p;
}

void *malloc(size_t size) { return FAILS ? no_memory() : taken(__libc_malloc(size)); }
void *calloc(size_t n, size_t size) { return FAILS ? no_memory() : taken(__libc_calloc(n, size)); }
void *aligned_alloc(size_t alignment, size_t size) {
  return FAILS ? no_memory() : taken(__libc_memalign(alignment, size));
}

void *realloc(void *p, size_t size) {
  if (FAILS) return no_memory();
  void *moved = __libc_realloc(p, size);
  if (moved || size == 0) atomic_fetch_add(blocks, (moved != NULL) - (p != NULL));
  return moved;
}

int posix_memalign(void **p, size_t alignment, size_t size) {
  if (FAILS) return ENOMEM;
  *p = taken(__libc_memalign(alignment, size));
  return *p ? 0 : ENOMEM;
}

void free(void *p) {
  atomic_fetch_sub(blocks, p != NULL);
  __libc_free(p);
}

char *strdup(const char *text) {
  if (FAILS) return no_memory();
  const size_t n = strlen(text) + 1;
  char *copy = taken(__libc_malloc(n));
  return copy ? memcpy(copy, text, n) : NULL;
}

int open(const char *path, int flags, ...) {
  NEXT(int (*real)(const char *, int, mode_t), "open");
  va_list args;
  va_start(args, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
  va_end(args);
  return FAILS ? no_file() : real(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
  NEXT(int (*real)(int, const char *, int, mode_t), "openat");
  va_list args;
  va_start(args, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
  va_end(args);
  return FAILS ? no_file() : real(folder, path, flags, mode);
}

FILE *fopen(const char *restrict path, const char *restrict mode) {
  NEXT(FILE * (*real)(const char *, const char *), "fopen");
  if (!FAILS) return real(path, mode);
  no_file();
  return NULL;
}

int pipe2(int fd[2], int flags) {
  NEXT(int (*real)(int[2], int), "pipe2");
  return FAILS ? no_file() : real(fd, flags);
}

ssize_t write(int fd, const void *bytes, size_t size) {
  NEXT(ssize_t(*real)(int, const void *, size_t), "write");
  if (fd == STDERR_FILENO || !FAILS) return real(fd, bytes, size);
  errno = ENOSPC;
  return -1;
}

int fsync(int fd) {
  NEXT(int (*real)(int), "fsync");
  if (!FAILS) return real(fd);
  errno = EIO;
  return -1;
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
  NEXT(int (*real)(int, const char *, int, const char *), "renameat");
  if (!FAILS) return real(from_folder, from, to_folder, to);
  errno = ENOSPC;
  return -1;
}

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes, void *(*run)(void *),
                   void *restrict argument) {
  NEXT(int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *), "pthread_create");
  return FAILS ? EAGAIN : real(thread, attributes, run, argument);
}

int socket(int domain, int type, int protocol) {
  NEXT(int (*real)(int, int, int), "socket");
  return FAILS ? no_file() : real(domain, type, protocol);
}
#pragma GCC visibility pop
