// Memory of the running process.
#ifndef SINEW_DAEMON_BASE_MEMORY_H_
#define SINEW_DAEMON_BASE_MEMORY_H_

#include <stdint.h>

// Returns the resident memory of this process in bytes; 0 when the system does not say.
uint64_t sn_resident_memory(void);

// Returns the limit that a setting of so many megabytes means in bytes; 0 is half of the machine's memory.
uint64_t sn_memory_limit(int megabytes);

#endif
