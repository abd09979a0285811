// Names builds that run ten times slower, with sanitizers. They look for other mistakes than wrong numbers, so that
// some tests draw fewer states there.
#ifndef SINEW_TESTS_SUPPORT_SLOW_H_
#define SINEW_TESTS_SUPPORT_SLOW_H_

#ifdef SN_TEST_SLOW  // set by tests/CMakeLists.txt
enum { SN_SLOW = 1 };
#else
enum { SN_SLOW = 0 };
#endif

// Returns how many of n random states are looked at: all, in a slow build a quarter, but at least three.
static inline int sn_draws(int n) {
  const int few = n / 4 > 3 ? n / 4 : 3;
  return SN_SLOW && few < n ? few : n;
}

#endif
