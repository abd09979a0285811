// The memory guard: beyond the limit it drops what clients may have piled up inside the socket library. Telemetry and
// records go first, since controllers do not need them. The event loop's alone.
#ifndef SINEW_DAEMON_WIRE_MEMORY_GUARD_PRIVATE_H_
#define SINEW_DAEMON_WIRE_MEMORY_GUARD_PRIVATE_H_

#include <stdint.h>

#include "daemon/wire/sockets_private.h"

typedef struct SnMemoryGuard {
  uint64_t limit;  // memory that the daemon may use, in bytes
  uint64_t held;   // in use after all connections had been dropped, more than `limit`; 0: nothing such
  uint64_t used;   // at the latest look
  uint64_t seen;   // in use when connections were last dropped
  double dropped;  // when that was, on sn_clock_now(); 0: never
  uint64_t drops;  // how often
  double trimmed;  // when free memory was last given back to the system
  enum { SN_GUARD_CALM, SN_GUARD_PUBLISHED_DROPPED, SN_GUARD_ALL_DROPPED } state;
} SnMemoryGuard;

void sn_memory_guard_init(SnMemoryGuard *guard, const SnConfig *config);

// Looks at the memory in use, and acts if it must. Returns whether free memory is to be given back to the system now.
bool sn_memory_guard_check(SnMemoryGuard *guard, SnSockets *sockets, double now);

// Returns how many milliseconds may pass until the next look, fewer as memory gets short.
int sn_memory_guard_interval(const SnMemoryGuard *guard);

#endif
