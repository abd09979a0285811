#include "proto/wire_arena.h"

#include <sys/mman.h>

enum { ARENA_ALIGN = 16, ARENA_KEEP = 1 << 20 };

static void *arena_alloc(void *data, size_t size) {
  SnWireArena *arena = data;
  size_t need = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
  if (need < size || need > arena->budget - arena->used) {
    arena->exhausted = true;
    return NULL;
  }
  void *p = arena->base + arena->used;
  arena->used += need;
  return p;
}

static void arena_free(void *data, void *pointer) {
  (void)data;
  (void)pointer;
}

bool sn_wire_arena_init(SnWireArena *arena, size_t budget) {
  budget &= ~(size_t)(ARENA_ALIGN - 1);
  void *base = mmap(NULL, budget, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  *arena = (SnWireArena){0};
  if (base == MAP_FAILED) return false;
  arena->base = base;
  arena->budget = budget;
  arena->allocator = (ProtobufCAllocator){arena_alloc, arena_free, arena};
  return true;
}

void sn_wire_arena_reset(SnWireArena *arena) {
  if (arena->used > ARENA_KEEP) madvise(arena->base + ARENA_KEEP, arena->budget - ARENA_KEEP, MADV_DONTNEED);
  arena->used = 0;
  arena->exhausted = false;
}

void sn_wire_arena_free(SnWireArena *arena) {
  if (arena->base) munmap(arena->base, arena->budget);
  *arena = (SnWireArena){0};
}
