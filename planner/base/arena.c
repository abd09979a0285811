#include "planner/base/arena.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ARENA_ALIGN = 16, ARENA_BLOCK = 1 << 14 };

struct SnArenaBlock {
  SnArenaBlock *next;
  size_t used, size;
};

// Bytes of the header, rounded so that what follows it is aligned.
static size_t arena_header(void) { return (sizeof(SnArenaBlock) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN; }

void *sn_arena_alloc(SnArena *arena, size_t bytes) {
  const size_t size = (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
  SnArenaBlock *block = arena->first;
  if (!block || block->size - block->used < size) {
    const size_t capacity = size > ARENA_BLOCK ? size : (size_t)ARENA_BLOCK;
    block = calloc(1, arena_header() + capacity);
    if (!block) {
      arena->failed = true;
      return NULL;
    }
    block->size = capacity;
    block->next = arena->first;
    arena->first = block;
  }
  char *p = (char *)block + arena_header() + block->used;
  block->used += size;
  return p;
}

char *sn_arena_text(SnArena *arena, const char *text, size_t size) {
  char *copy = sn_arena_alloc(arena, size + 1);
  if (copy) memcpy(copy, text, size);
  return copy;
}

// Bytes to reserve for a file: as many as it has, where it says so, else as many as it may have. Tasks are loaded
// often, and to clear a megabyte took longer than to read one.
static size_t bytes_of(FILE *f, size_t max_bytes) {
  struct stat st;
  const bool known = fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
  return known && (size_t)st.st_size < max_bytes ? (size_t)st.st_size : max_bytes;
}

char *sn_arena_file(SnArena *arena, const char *path, size_t max_bytes, size_t *size, SnError *err) {
  FILE *f = fopen(path, "rb");
  if (!f) {
    sn_fail(err, errno == ENOENT ? SN_ERR_NOT_FOUND : SN_ERR_IO, "%s: %s", path, strerror(errno));
    return NULL;
  }
  size_t most = bytes_of(f, max_bytes);
  char *text = sn_arena_alloc(arena, most + 2);
  *size = text ? fread(text, 1, most + 1, f) : 0;
  if (*size > most && most < max_bytes) {  // it has grown
    most = max_bytes;
    rewind(f);
    text = sn_arena_alloc(arena, most + 2);
    *size = text ? fread(text, 1, most + 1, f) : 0;
  }
  const bool failed = ferror(f) != 0;
  fclose(f);
  if (!text) {
    sn_fail(err, SN_ERR_MEMORY, "%s: out of memory", path);
    return NULL;
  }
  if (failed || *size > max_bytes) {
    if (failed)
      sn_fail(err, SN_ERR_IO, "%s: cannot be read", path);
    else
      sn_fail(err, SN_ERR_LIMIT, "%s: larger than %zu bytes", path, max_bytes);
    return NULL;
  }
  return text;
}

void sn_arena_free(SnArena *arena) {
  while (arena->first) {
    SnArenaBlock *block = arena->first;
    arena->first = block->next;
    free(block);
  }
  arena->failed = false;
}
