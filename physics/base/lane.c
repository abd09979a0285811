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

// The counter of tests/cuda/critical_path has one of its own, too, which is no phase.
__attribute__((weak)) SnPassed sn_lane_pass(SnLane *lane, SnPassed mine, int from) {
  lane->shared->passed[sn_lane_id(lane)] = mine;
  SN_SYNC(lane);
  const SnPassed theirs = lane->shared->passed[from];
  SN_SYNC(lane);
  return theirs;
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
  const int n = sn_lane_count(lane), id = sn_lane_id(lane);
  int width = SN_VLANES / 2;
  // As long as both parts are this lane's, it needs no other.
  for (; sn_can_shuffle(lane) && width >= n; width /= 2) SN_FOR(k, width) part[k] += part[k + width];
  if (sn_can_shuffle(lane)) {
    sn_real mine = part[id];
    for (; width > 0; width /= 2) mine += sn_shuffle(lane, mine, (id + width) % n);
    return sn_shuffle(lane, mine, 0);
  }
  for (; width > 0; width /= 2) {
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
// The sum of `mine` over lanes that can shuffle up to this one, and in *total over all.
SN_LOCAL int lane_scan(SnLane *lane, int mine, int *total) {
  const int n = sn_lane_count(lane), id = sn_lane_id(lane);
  for (int width = 1; width < n; width *= 2) {
    const int before = sn_shuffle_int(lane, mine, (id - width + n) % n);
    if (id >= width) mine += before;
  }
  *total = sn_shuffle_int(lane, mine, n - 1);
  return mine;
}

SN_FUNC int sn_count(SnLane *lane, int mine) {
  int *part = lane->shared->ipart, total = 0;
  if (sn_can_shuffle(lane)) {
    lane_scan(lane, mine, &total);
    SN_SYNC(lane);
    return total;
  }
  SN_FOR(k, SN_VLANES) part[k] = 0;
  for (int first = 0; first < sn_lane_count(lane); first += SN_VLANES) {
    SN_SYNC(lane);
    if (sn_lane_id(lane) >= first && sn_lane_id(lane) < first + SN_VLANES) part[sn_lane_id(lane) - first] += mine;
  }
  SN_SYNC(lane);
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
// The sum of a piece of count.
SN_LOCAL int compact_sum(const int *count, int from, int end) {
  int sum = 0;
  for (int i = from; i < end; ++i) sum += count[i];
  return sum;
}

// Replaces a piece of count by its exclusive prefix sum, which begins at `sum`.
SN_LOCAL void compact_piece(int *count, int from, int end, int sum) {
  for (int i = from; i < end; ++i) {
    const int c = count[i];
    count[i] = sum;
    sum += c;
  }
}

SN_FUNC int sn_compact(SnLane *lane, int *count, int n) {
  int *part = lane->shared->ipart, total = 0;
  if (sn_can_shuffle(lane)) {
    const int piece = (n + sn_lane_count(lane) - 1) / sn_lane_count(lane);
    const int from = sn_mini(n, sn_lane_id(lane) * piece), end = sn_mini(n, from + piece);
    const int mine = compact_sum(count, from, end);
    compact_piece(count, from, end, lane_scan(lane, mine, &total) - mine);
    SN_SYNC(lane);
    return total;
  }
  const int chunk = (n + SN_VLANES - 1) / SN_VLANES;
  SN_FOR(k, SN_VLANES) part[k] = compact_sum(count, k * chunk, sn_mini(n, (k + 1) * chunk));
  SN_SYNC(lane);
  SN_ONE(lane) {
    part[SN_VLANES] = 0;
    compact_piece(part, 0, SN_VLANES + 1, 0);
  }
  SN_SYNC(lane);
  SN_FOR(k, SN_VLANES) compact_piece(count, k * chunk, sn_mini(n, (k + 1) * chunk), part[k]);
  total = part[SN_VLANES];
  SN_SYNC(lane);
  return total;
}
#endif
