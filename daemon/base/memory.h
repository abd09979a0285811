// Memory of the running process.
#ifndef SINEW_DAEMON_BASE_MEMORY_H_
#define SINEW_DAEMON_BASE_MEMORY_H_

#include <stdint.h>

// Returns the resident memory of this process in bytes; 0 when the system does not say.
uint64_t sn_resident_memory(void);

// Returns the bytes that are allocated, which do not count what was freed and not given back to the system; 0 under an
// address sanitizer.
uint64_t sn_heap_memory(void);

// Returns the limit that a setting of so many megabytes means in bytes. 0 means half of the machine's memory, or of
// what control groups allow where that is less.
uint64_t sn_memory_limit(int megabytes);

// Returns the memory [bytes] that the control groups of a process allow, those above them too; UINT64_MAX where none
// says so. `list` is its file of groups (/proc/self/cgroup), `root` where they are mounted (/sys/fs/cgroup).
uint64_t sn_memory_of_groups(const char *list, const char *root);

#endif
