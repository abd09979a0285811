// Lanes: one world is stepped by one group of lanes. On the CPU that is one thread,
// on the GPU one block, and in the `lanes` test build several host threads.
//
// A stage loops over independent items with SN_FOR, separates phases with SN_SYNC,
// reduces with SN_FOR_PARTS / sn_norm / sn_count / sn_compact, and lets one lane act with SN_ONE. SN_SYNC and
// the reductions must be reached by all lanes (lane-uniform control flow). The order of
// additions in a reduction depends on n alone, so any number of lanes is bit-equal to one.
//
// By convention the parameter that carries the lane is named `lane`.
#ifndef SINEW_PHYSICS_BASE_LANE_H_
#define SINEW_PHYSICS_BASE_LANE_H_

#include "physics/base/real.h"

#define SN_VLANES 32  // width of the reduction tree, whatever the number of real lanes

enum { SN_WARP = 32 };  // lanes that pass numbers to each other without memory

// Holds a number on its way from one lane to another.
typedef union SnPassed {
  sn_real real;
  int whole;
} SnPassed;

// Holds the memory that the lanes of one world share for reductions.
typedef struct SnLaneShared {
  sn_real part[SN_VLANES];
  int ipart[SN_VLANES + 1];
#if defined(SN_LANES) && !defined(__CUDACC__)
  SnPassed passed[SN_WARP];
#endif
} SnLaneShared;

// Lists where the time of a step goes. A mark is set when what it names has been done (step.c,
// planner/rollout/rollout.c, rollout_vjp.c). The list is formatted by hand, because clang-format 14 changes it each
// time.
// clang-format off
#define SN_MARKS(X)                                                                                        \
  X(KINEMATICS) X(INERTIA) X(TENDON) X(COLLISION) X(CONSTRAINT) X(TRANSMISSION) X(VELOCITY) X(PASSIVE)     \
  X(ACTUATION) X(SMOOTH) X(SOLVER) X(INTEGRATE) X(COST)                                                    \
  X(SOLVER_VJP) X(CONSTRAINT_VJP) X(ACTUATION_VJP) X(BIAS_VJP) X(PASSIVE_VJP) X(INTEGRATE_VJP) X(COST_VJP) \
  X(TRANSMISSION_VJP) X(COLLISION_VJP) X(TENDON_VJP) X(KINEMATICS_VJP) X(OTHER)
// clang-format on
typedef enum SnMark {
#define SN_MARK_ENUM(name) SN_MARK_##name,
  SN_MARKS(SN_MARK_ENUM)
#undef SN_MARK_ENUM
      SN_NMARK
} SnMark;

// Keeps the clock of a world whose stages are measured. Lane 0 alone uses it.
typedef struct SnMarks {
  unsigned long long last;             // when the last mark was set [ticks]
  unsigned long long ticks[SN_NMARK];  // between each mark and the one before it
} SnMarks;

typedef struct SnLane {
  int id;                // index of this lane, 0 <= id < n
  int n;                 // number of lanes of this world
  SnLaneShared *shared;  // one per world
  void *team;            // barrier of the lanes build, else NULL
  SnMarks *marks;        // NULL: stages are not measured
} SnLane;

// Begins to measure. Ticks are those of the device's clock, or ns.
SN_FUNC void sn_marks_begin(SnLane *lane, SnMarks *marks);
// Sets a mark: the time since the last one counts for it.
SN_FUNC void sn_mark_set(SnLane *lane, SnMark mark);
// Waits for the other worlds of a thread block, so that all of them run the same stage and fetch its instructions
// together. Any stage will do, and who has left the block is not waited for. So a world that ends, or has more steps
// than another, holds nobody up. Threads that have a world each also come together again in their warps.
#if !defined(__CUDA_ARCH__)
#define SN_MEET() ((void)0)
#else
#define SN_MEET() asm volatile("barrier.sync 0;" ::: "memory")
#endif
// Sets a mark where stages are measured.
#define SN_MARK(lane, name)                                       \
  do {                                                            \
    SN_MEET();                                                    \
    if ((lane)->marks != NULL) sn_mark_set(lane, SN_MARK_##name); \
  } while (0)
// Returns the name of a mark, for people. Runs on the host alone.
const char *sn_mark_name(SnMark mark);

// Says how the lanes share out a loop and wait for each other. A unit of device code has SN_DEVICE_LANES of them: a
// warp, a part of one, or one.
#if defined(__CUDACC__) && SN_DEVICE_LANES > 1
#define SN_SYNC(lane) sn_lane_sync()
#elif defined(SN_LANES) && !defined(__CUDACC__)
// Waits for all lanes of the team; on time-out reports file and line and stops the test.
void sn_lane_barrier(SnLane *lane, const char *file, int line);
#define SN_SYNC(lane) sn_lane_barrier((lane), __FILE__, __LINE__)
#else
#define SN_SERIAL  // one lane, known to the compiler
#define SN_SYNC(lane) ((void)(lane))
#endif

// Return the index of this lane of the world, and how many there are.
#if defined(SN_SERIAL)
SN_INLINE int sn_lane_id(const SnLane *lane) {
  (void)lane;
  return 0;
}
SN_INLINE int sn_lane_count(const SnLane *lane) {
  (void)lane;
  return 1;
}
#define SN_FOR(i, count) for (int i = 0; i < (count); ++i)
#elif defined(__CUDACC__)
SN_INLINE int sn_lane_id(const SnLane *lane) {
  (void)lane;
  return (int)threadIdx.x;
}
SN_INLINE int sn_lane_count(const SnLane *lane) {
  (void)lane;
  return SN_DEVICE_LANES;
}
// Returns a mask of the threads of this one's warp that have the same world.
SN_INLINE unsigned sn_lane_mask(void) {
  if (SN_DEVICE_LANES == SN_WARP) return 0xffffffffu;
  return (0xffffffffu >> (SN_WARP - SN_DEVICE_LANES)) << (threadIdx.y * SN_DEVICE_LANES % SN_WARP);
}
// Waits for the lanes of the world.
SN_INLINE void sn_lane_sync(void) { __syncwarp(sn_lane_mask()); }
#else
SN_INLINE int sn_lane_id(const SnLane *lane) { return lane->id; }
SN_INLINE int sn_lane_count(const SnLane *lane) { return lane->n; }
#endif
#if !defined(SN_SERIAL)
#define SN_FOR(i, count) for (int i = sn_lane_id(lane); i < (count); i += sn_lane_count(lane))
#endif

// Writes out the loop that follows, of at most SN_WARP turns, a constant number: arrays that it indexes stay in
// registers. On one lane the compiler decides, which vectorizes some.
#if defined(SN_SERIAL)
#define SN_UNROLL
#elif defined(__clang__) || defined(__CUDACC__)
#define SN_UNROLL _Pragma("unroll")
#else
#define SN_UNROLL _Pragma("GCC unroll 32")
#endif

// Returns true where the lanes are one warp. Never so on one lane: there the compiler leaves out what is for a warp. A
// stage has another way for other numbers of lanes, to the same bits.
SN_INLINE bool sn_is_warp(const SnLane *lane) {
#if defined(SN_SERIAL)
  (void)lane;
  return false;
#else
  return sn_lane_count(lane) == SN_WARP;
#endif
}

// Returns true where lanes pass numbers by sn_shuffle, as those of a warp and of half, a quarter ... of one do.
SN_INLINE bool sn_can_shuffle(const SnLane *lane) {
  const int n = sn_lane_count(lane);
  return n > 1 && n <= SN_WARP && SN_WARP % n == 0;
}

// Returns the x of lane `from` of such lanes, or its int k. All lanes of the world must come there. No sync: what lanes
// have written to memory is not seen for it.
#if defined(__CUDACC__) && !defined(SN_SERIAL)
SN_INLINE sn_real sn_shuffle(SnLane *lane, sn_real x, int from) {
  (void)lane;
  return __shfl_sync(sn_lane_mask(), x, from, SN_DEVICE_LANES);
}
SN_INLINE int sn_shuffle_int(SnLane *lane, int k, int from) {
  (void)lane;
  return __shfl_sync(sn_lane_mask(), k, from, SN_DEVICE_LANES);
}
#else
#if defined(SN_LANES) && !defined(__CUDACC__)
// Passes a number in the lanes build, by shared memory and two barriers.
SnPassed sn_lane_pass(SnLane *lane, SnPassed mine, int from);
#else
SN_INLINE SnPassed sn_lane_pass(SnLane *lane, SnPassed mine, int from) {
  (void)lane, (void)from;
  return mine;
}
#endif
SN_INLINE sn_real sn_shuffle(SnLane *lane, sn_real x, int from) {
  const SnPassed mine = {.real = x};
  return sn_lane_pass(lane, mine, from).real;
}
SN_INLINE int sn_shuffle_int(SnLane *lane, int k, int from) {
  const SnPassed mine = {.whole = k};
  return sn_lane_pass(lane, mine, from).whole;
}
#endif

// Returns the word of lane `from` likewise, in two halves.
SN_INLINE uint64_t sn_shuffle_word(SnLane *lane, uint64_t word, int from) {
  const uint32_t low = (uint32_t)sn_shuffle_int(lane, (int)(uint32_t)word, from);
  const uint32_t high = (uint32_t)sn_shuffle_int(lane, (int)(uint32_t)(word >> 32), from);
  return (uint64_t)high << 32 | low;
}

// Loops over a sum whose terms are computed on the way: for every i in [from, end). k = i % SN_VLANES is the partial
// sum that i adds to. Each partial sum gets its terms in the order of i. sn_sum_parts adds them up. On one lane the
// inner loop runs over partial sums that lie side by side, as vector units take them.
// A thread of a device adds up one partial sum after the other, in a register.
#if defined(SN_SERIAL) && !defined(__CUDACC__)
#define SN_FOR_PARTS_FROM(k, i, from, end)                                                     \
  for (int i##_of_0 = (from) / SN_VLANES * SN_VLANES; i##_of_0 < (end); i##_of_0 += SN_VLANES) \
    for (int k = i##_of_0 < (from) ? (from)-i##_of_0 : 0, i = i##_of_0 + k,                    \
             k##_end = (end)-i##_of_0 < SN_VLANES ? (end)-i##_of_0 : SN_VLANES;                \
         k < k##_end; ++k, ++i)
#else
#define SN_FOR_PARTS_FROM(k, i, from, end) \
  SN_FOR(k, SN_VLANES)                     \
  for (int i = (from) + (k - (from) % SN_VLANES + SN_VLANES) % SN_VLANES; i < (end); i += SN_VLANES)
#endif
#define SN_FOR_PARTS(k, i, count) SN_FOR_PARTS_FROM(k, i, 0, count)

// Loops over `count` items of `size` numbers each, a constant: a lane has the numbers [from, end) of item i. One lane
// has all of an item, of several each has one.
#if defined(SN_SERIAL)
#define SN_FOR_ENTRIES(i, from, end, size, count) for (int i = 0, from = 0, end = (size); i < (count); ++i)
#else
#define SN_FOR_ENTRIES(i, from, end, size, count)                                                  \
  for (int i##_at = sn_lane_id(lane), i = i##_at / (size), from = i##_at % (size), end = from + 1; \
       i##_at < (size) * (count);                                                                  \
       i##_at += sn_lane_count(lane), i = i##_at / (size), from = i##_at % (size), end = from + 1)
#endif

// Returns true on the lane that has item k of those that SN_FOR shares out, and always on one lane.
SN_INLINE bool sn_is_mine(const SnLane *lane, int k) {
#if defined(SN_SERIAL)
  (void)lane, (void)k;
  return true;
#else
  return k % sn_lane_count(lane) == sn_lane_id(lane);
#endif
}

// Runs the statement that follows on one lane only. Implies no sync.
#define SN_ONE(lane) if (sn_lane_id(lane) == 0)

// Zeroes, or copies, n numbers. Ends with no sync.
SN_INLINE void sn_lane_zero(const SnLane *lane, sn_real *x, int n) {
  (void)lane;
  SN_FOR(i, n) x[i] = 0;
}
SN_INLINE void sn_lane_copy(const SnLane *lane, sn_real *SN_RESTRICT to, const sn_real *SN_RESTRICT from, int n) {
  (void)lane;
  SN_FOR(i, n) to[i] = from[i];
}

// Returns the sum of part[0..SN_VLANES), the same on all lanes. May overwrite part. Needs a sync before, is none
// itself.
SN_FUNC sn_real sn_sum_parts(SnLane *lane, sn_real *part);
// Returns the Euclidean norm of x[0..n), the same on all lanes. It does not overflow: it is infinite only where a
// number is not finite or the norm itself is beyond the largest one. It is never NaN. Needs a sync before.
SN_FUNC sn_real sn_norm(SnLane *lane, const sn_real *x, int n);
// Returns the sum over the lanes of `mine`, an int that each lane has; the same on all lanes. Ends with a sync.
SN_FUNC int sn_count(SnLane *lane, int mine);
// Replaces count[0..n) by its exclusive prefix sum, in index order; returns the total. Needs a sync before, ends with
// one.
SN_FUNC int sn_compact(SnLane *lane, int *count, int n);

#endif
