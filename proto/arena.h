// A budgeted arena for messages that arrive: protobuf-c has no limit on what it allocates while it unpacks, so it gets
// an allocator that only moves a mark in one block and says no at its end. Freeing is resetting the mark.
#ifndef SINEW_PROTO_ARENA_H_
#define SINEW_PROTO_ARENA_H_

#include <stdbool.h>
#include <stddef.h>
#include <protobuf-c/protobuf-c.h>

typedef struct SnArena {
  ProtobufCAllocator allocator;  // hand this to ..._unpack
  unsigned char *base;           // page-aligned block of `budget` bytes; pages cost memory only once they are touched
  size_t budget;
  size_t used;
  bool exhausted;  // an allocation was refused since the last reset
} SnArena;

// Reserves an arena. False when the address space is exhausted. Not shared between threads.
bool sn_arena_init(SnArena *arena, size_t budget);

// Forgets all allocations; memory beyond a small part goes back to the system.
void sn_arena_reset(SnArena *arena);

void sn_arena_free(SnArena *arena);

#endif
