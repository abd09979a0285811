// Random numbers from counters: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
// A counter gives its number on any thread, and the integers also on any machine.
#ifndef SINEW_PLANNER_BASE_RANDOM_H_
#define SINEW_PLANNER_BASE_RANDOM_H_

#include <Random123/philox.h>

#include "physics/base/real.h"

// Tells what a number is for, which keeps the streams of one seed apart.
enum { SN_RANDOM_NOISE = 0, SN_RANDOM_POSE = 1, SN_RANDOM_PLAN = 2 };

typedef struct SnRandom4 {
  uint32_t word[4];
} SnRandom4;

SN_INLINE SnRandom4 sn_random(uint64_t seed, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3) {
  const philox4x32_ctr_t counter = {{c0, c1, c2, c3}};
  const philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
  const philox4x32_ctr_t r = philox4x32(counter, key);
  const SnRandom4 out = {{r.v[0], r.v[1], r.v[2], r.v[3]}};
  return out;
}

// Returns a number uniform in (0, 1), from the upper 24 bits: exact in either precision.
SN_INLINE sn_real sn_random_unit(uint32_t word) {
  return ((sn_real)(word >> 8) + SN_R(0.5)) * SN_R(5.9604644775390625e-8);
}

// Returns a standard normal number from two words (Box and Muller).
SN_INLINE sn_real sn_random_normal(uint32_t a, uint32_t b) {
  return sn_sqrt(SN_R(-2.0) * sn_log(sn_random_unit(a))) * sn_cos(SN_R(2.0) * SN_PI * sn_random_unit(b));
}

#endif
