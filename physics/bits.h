// Bits of a 64-bit word, on host and device.
#ifndef SINEW_PHYSICS_BITS_H_
#define SINEW_PHYSICS_BITS_H_

#include "physics/real.h"

// Index of the lowest and highest set bit (x is not 0), and the number of set bits.
#if defined(__CUDACC__)
SN_INLINE int sn_bit_lowest(uint64_t x) { return __ffsll((long long)x) - 1; }
SN_INLINE int sn_bit_highest(uint64_t x) { return 63 - __clzll((long long)x); }
SN_INLINE int sn_bit_count(uint64_t x) { return __popcll(x); }
#else
SN_INLINE int sn_bit_lowest(uint64_t x) { return __builtin_ctzll(x); }
SN_INLINE int sn_bit_highest(uint64_t x) { return 63 - __builtin_clzll(x); }
SN_INLINE int sn_bit_count(uint64_t x) { return __builtin_popcountll(x); }
#endif
// Sets bit i of an array of words; tests it.
SN_INLINE void sn_bit_set(uint64_t *words, int i) { words[i / 64] |= (uint64_t)1 << (i % 64); }
SN_INLINE bool sn_bit_test(const uint64_t *words, int i) { return (words[i / 64] >> (i % 64) & 1) != 0; }

#endif
