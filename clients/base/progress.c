#include "clients/base/progress.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "physics/base/clock.h"

static void show(double pause, const char *format, va_list args) {
  static double shown;
  const double now = sn_clock_now();
  if (shown == 0) shown = now;  // nobody waits yet
  if (now - shown < pause) return;
  shown = now;
  const bool terminal = isatty(STDERR_FILENO);
  if (terminal) fputc('\r', stderr);
  vfprintf(stderr, format, args);
  fputs(terminal ? "\033[K" : "\n", stderr);
}

void sn_progress(const char *format, ...) {
  va_list args;
  va_start(args, format);
  show(isatty(STDERR_FILENO) ? 0.3 : 10, format, args);
  va_end(args);
}

void sn_progress_terminal(const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (isatty(STDERR_FILENO)) show(0.3, format, args);
  va_end(args);
}

void sn_progress_end(void) {
  if (isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
}
