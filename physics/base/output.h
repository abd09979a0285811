// Standard output that is lost, as on a full disk, fails the program that has written it. Each program has output.c
// among its own sources; no library has.
#ifndef SINEW_PHYSICS_BASE_OUTPUT_H_
#define SINEW_PHYSICS_BASE_OUTPUT_H_

#include <stdbool.h>

// Writes out all that is printed. Returns false when that failed, now or before.
bool sn_output_flush(void);

// Makes the program end with `status`, and say why, where its output cannot be written. Keeps `program`, its name. A
// program calls this once, before it prints or opens anything; help counts too, after which argp ends the program
// itself. Keeps the numbers of standard streams that the program was started without from its files, by /dev/null.
void sn_output_guard(const char *program, int status);
// Does so now, in place of at the end: for processes that end by _exit.
void sn_output_check(void);

#endif
