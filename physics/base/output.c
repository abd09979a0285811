#include "physics/base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *guarded;  // name of the program
static int lost;             // its status where its output is lost

bool sn_output_flush(void) { return fflush(stdout) == 0 && !ferror(stdout); }

void sn_output_check(void) {
  errno = 0;
  if (sn_output_flush()) return;
  int reason = errno;
  // That of a write that failed before is not known any more: one more byte of what is broken anyway asks for it.
  if (reason == 0 && write(STDOUT_FILENO, "\n", 1) < 0) reason = errno;
  fprintf(stderr, "%s: the output could not be written%s%s\n", guarded, reason ? ": " : "",
          reason ? strerror(reason) : "");
  _exit(lost);
}

// A program that was started without standard input, output or error would get their numbers for files and sockets of
// its own, and what it prints would go there. What is opened in their place can be used for neither, as if they were
// closed.
static void reserve_standard_streams(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
}

void sn_output_guard(const char *program, int status) {
  reserve_standard_streams();
  guarded = program;
  lost = status;
  if (atexit(sn_output_check) != 0) abort();  // out of memory before anything has begun
}
