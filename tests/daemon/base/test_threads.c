// Time of threads by their name.
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/base/threads.h"
#include "physics/base/clock.h"
#include "tests/support/slow.h"

static atomic_bool stop;

static void *work(void *unused) {
  while (!atomic_load(&stop)) continue;
  return unused;
}

// A thread with a name that others could take for the end of it, and one that it starts.
static void *begin(void *unused) {
  pthread_t other;
  sn_thread_name("odd) S (name");
  if (pthread_create(&other, NULL, work, NULL) != 0) return NULL;
  work(unused);
  pthread_join(other, NULL);
  return unused;
}

static void test_named(void **state) {
  (void)state;
  pthread_t thread;
  assert_true(sn_threads_seconds("odd)") == 0);
  const double began = sn_clock_now();  // before the first of them runs, however late this thread goes on
  assert_int_equal(pthread_create(&thread, NULL, begin, NULL), 0);
  while (sn_threads_seconds("odd) S") < 0.2) assert_true(sn_clock_now() - began < 60);
  const double two = sn_threads_seconds("odd) S (name");
  assert_true(two <= 2 * (sn_clock_now() - began) + 0.05);
  assert_true(sn_threads_seconds("S (name") == 0 && sn_threads_seconds("even") == 0);
  assert_true(sn_threads_seconds("") >= two - 0.05);
  atomic_store(&stop, true);
  pthread_join(thread, NULL);
}

// A process that may have no more memory for stacks is told, and ends nothing.
static void test_no_more(void **state) {
  (void)state;
  assert_int_equal(sn_threads_try(2), 0);
  if (SN_SLOW) return;  // sanitizers end a process that gets no memory
  const pid_t child = fork();
  if (child == 0) {
    setrlimit(RLIMIT_AS, &(struct rlimit){1 << 20, 1 << 20});
    _exit(sn_threads_try(8) == EAGAIN ? 0 : 1);  // more than have left their stacks
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_named), cmocka_unit_test(test_no_more)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
