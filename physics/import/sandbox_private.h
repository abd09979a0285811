// The sandbox of sinew-import. A process in it reads files, writes to what is open, has memory and threads of its own.
// MuJoCo's loader was not made for files from strangers. If one takes it over, it reaches no network, no file to write
// to, no other program.
#ifndef SINEW_PHYSICS_IMPORT_SANDBOX_PRIVATE_H_
#define SINEW_PHYSICS_IMPORT_SANDBOX_PRIVATE_H_

#include <stdbool.h>

#include "physics/base/status.h"

// Takes from this process, for good, all calls to the system that are not listed in sandbox.c, by a seccomp filter.
// They fail with EPERM: sockets, files opened to be written, moved or removed, programs, other processes. Descriptors
// that are open stay. Returns SN_ERR_UNSUPPORTED where this system has no such filters.
SnCode sn_sandbox_enter(SnError *err);

// Returns whether this system has such filters.
bool sn_sandbox_exists(void);

#endif
