// Counters of each thread of a program under tests/support/count_calls.c, in a file that the test shares with it.
#ifndef SINEW_TESTS_SUPPORT_COUNT_CALLS_H_
#define SINEW_TESTS_SUPPORT_COUNT_CALLS_H_

#include <stdatomic.h>

enum { SN_TEST_THREADS = 64, SN_TEST_CALLERS = 16 };

// Counts the locks that one place of the program asked for.
typedef struct SnTestCaller {
  atomic_long at;  // address behind the call, from the program's first on; 0: none yet
  atomic_long locks;
} SnTestCaller;

typedef struct SnTestCalls {
  atomic_long thread;                    // id that the system has for it; 0: there is none
  atomic_long allocations;               // calls for memory, and to give it back
  atomic_long locks;                     // mutexes taken, conditions waited for and signalled
  SnTestCaller caller[SN_TEST_CALLERS];  // by place; the last one stands for all that have none
} SnTestCalls;

typedef struct SnTestCallsPage {
  atomic_int threads;
  SnTestCalls calls[SN_TEST_THREADS];
} SnTestCallsPage;

#endif
