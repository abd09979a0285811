// Reductions over the lanes of a world. Item i always belongs to virtual lane i % SN_VLANES, and
// the SN_VLANES partial results are combined by one fixed binary tree.
#include "physics/base/lane.h"

#if !defined(__CUDACC__)
#include "physics/base/clock.h"
#endif

#if defined(SN_LANES) && !defined(__CUDACC__)
// Programs of the lanes build that step with one lane need no barrier; tests/support/lanes.c, which starts
// several, has the real one, which takes the place of this.
__attribute__((weak)) void sn_lane_barrier(SnLane *lane, const char *file, int line) {
  (void)file;
  (void)line;
  (void)lane;
}
#endif

#if defined(__CUDACC__)
SN_LOCAL unsigned long long lane_clock(void) { return (unsigned long long)clock64(); }
#else
static unsigned long long lane_clock(void) { return sn_clock_nanoseconds(); }

const char *sn_mark_name(SnMark mark) {
  switch (mark) {
#define SN_MARK_TEXT(name) \
  case SN_MARK_##name:     \
    return #name;
    SN_MARKS(SN_MARK_TEXT)
#undef SN_MARK_TEXT
    default:
      return "";
  }
}
#endif

SN_FUNC void sn_marks_begin(SnLane *lane, SnMarks *marks) {
  lane->marks = marks;
  SN_ONE(lane) {
    for (int k = 0; k < SN_NMARK; ++k) marks->ticks[k] = 0;
    marks->last = lane_clock();
  }
}

SN_FUNC void sn_mark_set(SnLane *lane, SnMark mark) {
  SN_ONE(lane) {
    const unsigned long long now = lane_clock();
    lane->marks->ticks[mark] += now - lane->marks->last;
    lane->marks->last = now;
  }
}

SN_FUNC sn_real sn_sum_parts(SnLane *lane, sn_real *part) {
  for (int width = SN_VLANES / 2; width > 0; width /= 2) {
    SN_FOR(k, width) part[k] += part[k + width];
    SN_SYNC(lane);
  }
  const sn_real total = part[0];
  SN_SYNC(lane);
  return total;
}

// Largest magnitude of n numbers, the same on all lanes; infinity where a number is not finite.
SN_LOCAL sn_real lane_largest(SnLane *lane, const sn_real *x, int n) {
  sn_real *part = lane->shared->part, largest = 0;
  SN_FOR(k, SN_VLANES) part[k] = 0;
  SN_FOR_PARTS(k, i, n) part[k] = x[i] - x[i] == 0 ? sn_max(part[k], sn_abs(x[i])) : (sn_real)INFINITY;
  SN_SYNC(lane);
  for (int k = 0; k < SN_VLANES; ++k) largest = sn_max(largest, part[k]);
  SN_SYNC(lane);
  return largest;
}

SN_FUNC sn_real sn_norm(SnLane *lane, const sn_real *x, int n) {
  sn_real *part = lane->shared->part;
  const sn_real largest = lane_largest(lane, x, n);
  if (largest == 0 || largest == (sn_real)INFINITY) return largest;
  SN_FOR(k, SN_VLANES) part[k] = 0;
  SN_FOR_PARTS(k, i, n) part[k] += (x[i] / largest) * (x[i] / largest);
  SN_SYNC(lane);
  return largest * sn_sqrt(sn_sum_parts(lane, part));
}

#if defined(SN_SERIAL)
SN_FUNC int sn_count(SnLane *lane, int mine) {
  (void)lane;
  return mine;
}
#else
SN_FUNC int sn_count(SnLane *lane, int mine) {
  int *part = lane->shared->ipart;
  SN_FOR(k, SN_VLANES) part[k] = 0;
  for (int first = 0; first < lane->n; first += SN_VLANES) {
    SN_SYNC(lane);
    if (lane->id >= first && lane->id < first + SN_VLANES) part[lane->id - first] += mine;
  }
  SN_SYNC(lane);
  int total = 0;
  for (int k = 0; k < SN_VLANES; ++k) total += part[k];
  SN_SYNC(lane);
  return total;
}
#endif

#if defined(SN_SERIAL)
SN_FUNC int sn_compact(SnLane *lane, int *count, int n) {
  (void)lane;
  int s = 0;
  for (int i = 0; i < n; ++i) {
    const int c = count[i];
    count[i] = s;
    s += c;
  }
  return s;
}
#else
SN_FUNC int sn_compact(SnLane *lane, int *count, int n) {
  int *part = lane->shared->ipart;
  const int chunk = (n + SN_VLANES - 1) / SN_VLANES;
  SN_FOR(k, SN_VLANES) {
    int s = 0;
    for (int i = k * chunk; i < sn_mini(n, (k + 1) * chunk); ++i) s += count[i];
    part[k] = s;
  }
  SN_SYNC(lane);
  SN_ONE(lane) {
    int s = 0;
    for (int k = 0; k < SN_VLANES; ++k) {
      const int c = part[k];
      part[k] = s;
      s += c;
    }
    part[SN_VLANES] = s;
  }
  SN_SYNC(lane);
  SN_FOR(k, SN_VLANES) {
    int s = part[k];
    for (int i = k * chunk; i < sn_mini(n, (k + 1) * chunk); ++i) {
      const int c = count[i];
      count[i] = s;
      s += c;
    }
  }
  const int total = part[SN_VLANES];
  SN_SYNC(lane);
  return total;
}
#endif
