// An arena: memory that is freed all at once, for things that are read once and then stay.
#ifndef SINEW_PLANNER_BASE_ARENA_H_
#define SINEW_PLANNER_BASE_ARENA_H_

#include <stdbool.h>
#include <stddef.h>

#include "physics/base/status.h"

typedef struct SnArenaBlock SnArenaBlock;
typedef struct SnArena {
  SnArenaBlock *first;  // newest block
  bool failed;          // something was asked for and there was no memory
} SnArena;

// Returns zeroed memory, aligned for any type; NULL when out of memory.
void *sn_arena_alloc(SnArena *arena, size_t bytes);
// Returns a copy of text[0..size) with a 0 at its end; NULL when out of memory.
char *sn_arena_text(SnArena *arena, const char *text, size_t size);
// Reads a whole file of at most max_bytes, of text or not; *size becomes its length. Returns NULL and err on failure.
char *sn_arena_file(SnArena *arena, const char *path, size_t max_bytes, size_t *size, SnError *err);
// Frees everything; the arena is empty again.
void sn_arena_free(SnArena *arena);

#endif
