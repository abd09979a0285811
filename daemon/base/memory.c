#include "daemon/base/memory.h"

#include <limits.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

uint64_t sn_resident_memory(void) {
  unsigned long long total, resident = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f) return 0;
  if (fscanf(f, "%llu %llu", &total, &resident) != 2) resident = 0;
  fclose(f);
  return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t sn_heap_memory(void) {
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

// The number in a file of a group; UINT64_MAX where there is none: "max".
static uint64_t read_limit(const char *root, const char *hierarchy, const char *group, const char *name) {
  char path[PATH_MAX];
  unsigned long long bytes;
  snprintf(path, sizeof path, "%s%s%s/%s", root, hierarchy, group, name);
  FILE *f = fopen(path, "r");
  if (!f) return UINT64_MAX;
  const bool read = fscanf(f, "%llu", &bytes) == 1;
  fclose(f);
  return read ? bytes : UINT64_MAX;
}

// The least limit of a group and of those above it. Cuts the path of the group down.
static uint64_t least_limit(const char *root, const char *hierarchy, char *group, const char *name) {
  uint64_t least = UINT64_MAX;
  for (;;) {
    const uint64_t limit = read_limit(root, hierarchy, group, name);
    least = limit < least ? limit : least;
    char *end = strrchr(group, '/');
    if (!end) return least;
    *end = '\0';
  }
}

// Lines are NUMBER:CONTROLLERS:PATH; of the unified hierarchy, which has all controllers, 0::PATH.
uint64_t sn_memory_of_groups(const char *list, const char *root) {
  char line[PATH_MAX];
  uint64_t least = UINT64_MAX;
  FILE *f = fopen(list, "r");
  while (f && fgets(line, sizeof line, f)) {
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) continue;
    *group++ = '\0';
    uint64_t limit = UINT64_MAX;
    if (!strcmp(controllers, ":"))
      limit = least_limit(root, "", group, "memory.max");
    else if (!strcmp(controllers, ":memory"))
      limit = least_limit(root, "/memory", group, "memory.limit_in_bytes");
    least = limit < least ? limit : least;
  }
  if (f) fclose(f);
  return least;
}

uint64_t sn_memory_limit(int megabytes) {
  if (megabytes > 0) return (uint64_t)megabytes << 20;
  const uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  const uint64_t groups = sn_memory_of_groups("/proc/self/cgroup", "/sys/fs/cgroup");
  return (groups < machine ? groups : machine) / 2;
}
