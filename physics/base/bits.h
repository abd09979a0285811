// Bits of a 64-bit word, on host and device.
#ifndef SINEW_PHYSICS_BASE_BITS_H_
#define SINEW_PHYSICS_BASE_BITS_H_

#include "physics/base/real.h"

// Return the index of the lowest and of the highest set bit of x, which is not 0.
// sn_bit_count returns how many are set.
#if defined(__CUDACC__)
SN_INLINE int sn_bit_count(uint64_t x) { return __popcll(x); }
SN_INLINE int sn_bit_lowest(uint64_t x) { return __ffsll((long long)x) - 1; }
SN_INLINE int sn_bit_highest(uint64_t x) { return 63 - __clzll((long long)x); }
#else
SN_INLINE int sn_bit_count(uint64_t x) { return __builtin_popcountll(x); }
SN_INLINE int sn_bit_lowest(uint64_t x) { return __builtin_ctzll(x); }
SN_INLINE int sn_bit_highest(uint64_t x) { return 63 - __builtin_clzll(x); }
#endif
// Sets bit i of an array of words.
SN_INLINE void sn_bit_set(uint64_t *words, int i) { words[i / 64] |= (uint64_t)1 << (i % 64); }

#endif
