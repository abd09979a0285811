// A budgeted arena for messages that arrive. protobuf-c has no limit on what it allocates while it unpacks. So it gets
// an allocator that only moves a mark in one block and says no at its end. Freeing is resetting the mark.
#ifndef SINEW_PROTO_WIRE_ARENA_H_
#define SINEW_PROTO_WIRE_ARENA_H_

#include <stdbool.h>
#include <stddef.h>
#include <protobuf-c/protobuf-c.h>

typedef struct SnWireArena {
  ProtobufCAllocator allocator;  // hand this to ..._unpack
  unsigned char *base;           // page-aligned block of `budget` bytes; pages cost memory only once they are touched
  size_t budget;
  size_t used;
  bool exhausted;  // an allocation was refused since the last reset
} SnWireArena;

// Reserves an arena. Returns false when the address space is exhausted. One thread alone may use it.
bool sn_wire_arena_init(SnWireArena *arena, size_t budget);

// Forgets all allocations; memory beyond a small part goes back to the system.
void sn_wire_arena_reset(SnWireArena *arena);

void sn_wire_arena_free(SnWireArena *arena);

#endif
