// Keeps other programs and the paging of memory out of the way of a thread (sched(7), mlockall(2)).
#ifndef SINEW_DAEMON_BASE_REALTIME_H_
#define SINEW_DAEMON_BASE_REALTIME_H_

#include <stdbool.h>

#include "physics/base/status.h"

// Keeps all memory of the process, now and in future, from being paged out. Returns SN_ERR_LIMIT, and says what would
// allow it, where this user may not.
SnCode sn_realtime_lock_memory(SnError *err);

// Binds the calling thread, and those that it starts from now on, to processors, as "2,3" or "1-3"; empty: all. Returns
// SN_ERR_ARGUMENT for what is no such list, SN_ERR_LIMIT where none of these can be had.
SnCode sn_realtime_processors(const char *list, SnError *err);

// Gives the calling thread, and those that it starts from now on, a priority from 1 to 99 before all that have none
// (SCHED_FIFO); 0: none. Returns SN_ERR_LIMIT, and says what would allow it, where this user may not.
SnCode sn_realtime_priority(int priority, SnError *err);

// Checks that threads may be bound to such a list and have such a priority, and memory be locked where that is wanted.
// Returns what the functions above would, and changes nothing: a thread of its own tries.
SnCode sn_realtime_check(const char *processors, int priority, bool lock_memory, SnError *err);

// Returns how many processors the calling thread may run on.
int sn_realtime_count(void);

#endif
