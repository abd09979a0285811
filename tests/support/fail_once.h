// Counters of a program under tests/support/fail_once.c, in a file that the test shares with it.
#ifndef SINEW_TESTS_SUPPORT_FAIL_ONCE_H_
#define SINEW_TESTS_SUPPORT_FAIL_ONCE_H_

#include <stdatomic.h>
#include <stdbool.h>

typedef struct SnTestFailures {
  atomic_long left;    // calls until one fails: 1 is the next; 0: none does
  atomic_long calls;   // so far
  atomic_long failed;  // how many did
  atomic_long caller;  // address behind the latest one that failed, from the program's first on
  atomic_long blocks;  // number of blocks of memory that sinewd and its libraries have
} SnTestFailures;

#endif
