#include "daemon/base/memory.h"

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
