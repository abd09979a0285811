// An arena: memory that is freed all at once, for things that are read once and then stay.
#ifndef SINEW_PLANNER_BASE_ARENA_H_
#define SINEW_PLANNER_BASE_ARENA_H_

#include <stddef.h>

typedef struct SnArenaBlock SnArenaBlock;
typedef struct SnArena {
  SnArenaBlock *first;  // newest block
} SnArena;

// Returns zeroed memory, aligned for any type; NULL when out of memory.
void *sn_arena_alloc(SnArena *arena, size_t bytes);
// Returns a copy of text[0..size) with a 0 at its end; NULL when out of memory.
char *sn_arena_text(SnArena *arena, const char *text, size_t size);
// Frees everything; the arena is empty again.
void sn_arena_free(SnArena *arena);

#endif
