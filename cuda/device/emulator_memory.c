#include "cuda/device/emulator_private.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGNMENT = 256 };

static size_t rounded(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

size_t sn_region_size(size_t bytes) { return rounded(bytes ? bytes : 1, ALIGNMENT); }

static bool may_touch(SnRegionUser user, SnRegionKind kind) {
  return kind == SN_REGION_BLOCK || user == SN_USER_COPY || (user == SN_USER_KERNEL) == (kind == SN_REGION_DEVICE);
}

void *sn_regions_alloc(SnRegions *r, size_t bytes, SnRegionKind kind) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  if (bytes > SIZE_MAX / 2) return NULL;
  if (r->count == r->capacity) {
    const int capacity = r->capacity ? 2 * r->capacity : 16;
    SnRegion *item = realloc(r->item, sizeof *item * (size_t)capacity);
    if (!item) return NULL;
    r->item = item;
    r->capacity = capacity;
  }
  const size_t size = sn_region_size(bytes), pages = rounded(size, page);
  SnRegion region = {.bytes = bytes, .mapped = pages + page, .kind = kind};
  void *map = mmap(NULL, region.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return NULL;
  if (may_touch(r->user, kind) && mprotect(map, pages, PROT_READ | PROT_WRITE) != 0) {
    munmap(map, region.mapped);
    return NULL;
  }
  region.map = map;
  region.at = region.map + pages - size;  // its end, as nearly as its alignment allows, is that of the page
  if (kind == SN_REGION_DEVICE) r->used += size;
  r->item[r->count++] = region;
  return region.at;
}

bool sn_regions_release(SnRegions *r, void *p, SnRegionKind kind) {
  for (int i = 0; i < r->count; ++i) {
    const SnRegion region = r->item[i];
    if (region.at != p || region.kind != kind) continue;
    munmap(region.map, region.mapped);
    if (kind == SN_REGION_DEVICE) r->used -= sn_region_size(region.bytes);
    r->item[i] = r->item[--r->count];
    return true;
  }
  return false;
}

bool sn_regions_hold(const SnRegions *r, const void *p, size_t bytes, SnRegionKind kind) {
  const uintptr_t at = (uintptr_t)p;
  for (int i = 0; i < r->count; ++i) {
    const SnRegion *region = &r->item[i];
    const uintptr_t start = (uintptr_t)region->at;
    if (region->kind == kind && at >= start && at - start <= region->bytes)
      return bytes <= region->bytes - (at - start);
  }
  return false;
}

void sn_regions_open(SnRegions *r, SnRegionUser user) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (int i = 0; i < r->count; ++i) {
    const bool may = may_touch(user, r->item[i].kind);
    if (may != may_touch(r->user, r->item[i].kind))
      (void)mprotect(r->item[i].map, r->item[i].mapped - page, may ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
  r->user = user;
}

void sn_regions_free(SnRegions *r) {
  for (int i = 0; i < r->count; ++i) munmap(r->item[i].map, r->item[i].mapped);
  free(r->item);
  *r = (SnRegions){0};
}
