#include "daemon/base/memory.h"

#include <malloc.h>
#include <stdio.h>
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

uint64_t sn_memory_limit(int megabytes) {
  if (megabytes > 0) return (uint64_t)megabytes << 20;
  return (uint64_t)sysconf(_SC_PHYS_PAGES) / 2 * (uint64_t)sysconf(_SC_PAGESIZE);
}
