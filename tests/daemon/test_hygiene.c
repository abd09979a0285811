// What the planner thread asks of the heap, of locks and of the system while a plan is refined: nothing.
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/count_calls.h"
#include "tests/support/daemon_process.h"
#include "tests/support/raw_peer.h"

// A plan is given so much time; it is looked at from BEGIN on for LOOK, first by counters, then call by call [s].
static const double DEADLINE = 1, BEGIN = 0.15, LOOK = 0.3;

// Steps of a plan, so that no planner is through before that.
enum { HORIZON = 512 };

static SnTestDaemon d;
static SnTestClient c;
static SnTestCallsPage *page;

static void start(const char *threads) {
  const char *const args[] = {threads, "--telemetry=none", NULL};
  d = (SnTestDaemon){0};
  sn_test_daemon_prepare(&d);
  page = sn_test_daemon_share(&d, sizeof *page);
  sn_test_daemon_spawn_preloaded(&d, args, SN_TEST_COUNT_LIBRARY, "SN_TEST_COUNT");
  sn_test_connect(&c, d.endpoint);
  assert_true(sn_test_answers(&c, 20));
}

static void stop(void) {
  sn_test_disconnect(&c);
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  munmap(page, sizeof *page);
  sn_test_daemon_remove(&d);
}

static void wait_for(double seconds) { usleep((useconds_t)(1e6 * seconds)); }

// Processor time of a thread so far, in ticks; 0: there is none.
static long ticks_of(long thread) {
  char path[64], text[512];
  long user = 0, kernel = 0;
  snprintf(path, sizeof path, "/proc/%d/task/%ld/stat", (int)d.pid, thread);
  FILE *f = fopen(path, "r");
  const char *rest = f && fgets(text, sizeof text, f) ? strrchr(text, ')') : NULL;
  if (rest) sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &kernel);
  if (f) fclose(f);
  return user + kernel;
}

// The thread that has worked most while a plan was made plans.
static SnTestCalls *planner_thread(const long *before) {
  SnTestCalls *most = NULL;
  long worked = -1;
  for (int i = 0; i < SN_TEST_THREADS; i++) {
    const long thread = atomic_load(&page->calls[i].thread);
    if (thread == 0 || ticks_of(thread) - before[i] <= worked) continue;
    worked = ticks_of(thread) - before[i];
    most = &page->calls[i];
  }
  assert_non_null(most);
  return most;
}

// Counts the system calls of a thread for some time; -1 where nobody may look. The first few are named by number.
static int count_system_calls(pid_t thread, double seconds, char *names, size_t size) {
  int entries = 0, status;
  names[0] = '\0';
  if (ptrace(PTRACE_SEIZE, thread, 0, PTRACE_O_TRACESYSGOOD) != 0) return -1;
  ptrace(PTRACE_INTERRUPT, thread, 0, 0);
  for (const double until = sn_clock_now() + seconds; sn_clock_now() < until;) {
    if (waitpid(thread, &status, __WALL | WNOHANG) != thread) {
      usleep(100);
      continue;
    }
    struct __ptrace_syscall_info info;
    if (WSTOPSIG(status) == (SIGTRAP | 0x80) && ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) > 0 &&
        info.op == PTRACE_SYSCALL_INFO_ENTRY) {
      const size_t used = strlen(names);
      if (entries++ < 8) snprintf(names + used, size - used, " %d", (int)info.entry.nr);
    }
    ptrace(PTRACE_SYSCALL, thread, 0, 0);
  }
  ptrace(PTRACE_INTERRUPT, thread, 0, 0);
  while (waitpid(thread, &status, __WALL) != thread) continue;
  ptrace(PTRACE_DETACH, thread, 0, 0);
  return entries;
}

// What a planner's refinement came to, of the planner thread.
typedef struct Seen {
  long allocations, locks;
  int system;
} Seen;

// Asks for a plan that is refined until its deadline.
static void ask(uint64_t session, Sinew__V1__State *state) {
  Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  plan.session = session;
  plan.state = state;
  plan.deadline = DEADLINE;
  plan.has_iterations_case = SINEW__V1__PLAN_REQUEST__HAS_ITERATIONS_ITERATIONS;
  plan.iterations = 1000000;
  request.body_case = SINEW__V1__REQUEST__BODY_PLAN;
  request.plan = &plan;
  sn_test_send(&c, &request);
}

static Seen look_at(char *planner) {
  Sinew__V1__PlannerSettings settings = SINEW__V1__PLANNER_SETTINGS__INIT;
  char names[100];
  Sinew__V1__Reply *opened;
  long before[SN_TEST_THREADS];
  settings.has_planner_case = SINEW__V1__PLANNER_SETTINGS__HAS_PLANNER_PLANNER;
  settings.planner = planner;
  settings.has_horizon_case = SINEW__V1__PLANNER_SETTINGS__HAS_HORIZON_HORIZON;
  settings.horizon = HORIZON;
  const uint64_t id = sn_test_open_by(&c, "arm_reach", 1, &settings, &opened);
  for (int i = 0; i < 3; i++) sn_test_done(sn_test_plan(&c, id, opened->open->initial, 0.1));
  for (int i = 0; i < SN_TEST_THREADS; i++) before[i] = ticks_of(atomic_load(&page->calls[i].thread));
  ask(id, opened->open->initial);
  wait_for(BEGIN);
  SnTestCalls *thread = planner_thread(before);
  Seen seen = {-atomic_load(&thread->allocations), -atomic_load(&thread->locks), 0};
  wait_for(LOOK);
  seen.allocations += atomic_load(&thread->allocations);
  seen.locks += atomic_load(&thread->locks);
  seen.system = count_system_calls((pid_t)atomic_load(&thread->thread), LOOK, names, sizeof names);
  Sinew__V1__Reply *r = sn_test_receive(&c, 20);
  assert_non_null(r);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
  print_message("| %s | %u in %.2f s | %ld | %ld | %d%s%s |\n", planner, r->plan->iterations, r->plan->computing,
                seen.allocations, seen.locks, seen.system, *names ? ":" : "", names);
  assert_true(r->plan->computing > BEGIN + 2 * LOOK);  // it was under way while it was looked at
  sn_test_done(r);
  sn_test_done(opened);
  return seen;
}

static char *const PLANNERS[] = {"adam", "lbfgs", "ilqg", "sampling", "mppi", "cem", "hybrid"};

// One thread plans: it asks for nothing at all.
static void test_one_thread(void **state) {
  (void)state;
  start("--threads=1");
  print_message("| planner | iterations | calls of the heap | of locks | of the system |\n");
  for (size_t i = 0; i < sizeof PLANNERS / sizeof PLANNERS[0]; i++) {
    const Seen seen = look_at(PLANNERS[i]);
    assert_int_equal(seen.allocations, 0);
    assert_int_equal(seen.locks, 0);
    assert_true(seen.system <= 0);
  }
  stop();
}

// Several threads plan: they hand work over by locks, and allocate nothing.
static void test_two_threads(void **state) {
  (void)state;
  start("--threads=2");
  for (size_t i = 0; i < sizeof PLANNERS / sizeof PLANNERS[0]; i++) {
    const Seen seen = look_at(PLANNERS[i]);
    assert_int_equal(seen.allocations, 0);
    assert_true(seen.locks > 0);  // so they are counted
  }
  stop();
}

// What it takes to begin a plan and to answer it, each one new.
static void test_begin_and_end(void **state) {
  (void)state;
  enum { PLANS = 50 };
  Sinew__V1__Reply *opened;
  long before[SN_TEST_THREADS];
  start("--threads=1");
  const uint64_t id = sn_test_open(&c, "arm_reach", 1, &opened);
  for (int i = 0; i < SN_TEST_THREADS; i++) before[i] = ticks_of(atomic_load(&page->calls[i].thread));
  sn_test_done(sn_test_plan(&c, id, opened->open->initial, DEADLINE));
  const SnTestCalls *thread = planner_thread(before);
  const long allocations = atomic_load(&thread->allocations), locks = atomic_load(&thread->locks);
  for (int i = 0; i < PLANS; i++) sn_test_done(sn_test_plan(&c, id, opened->open->initial, 0.01));
  const double per[] = {(double)(atomic_load(&thread->allocations) - allocations) / PLANS,
                        (double)(atomic_load(&thread->locks) - locks) / PLANS};
  print_message("a plan is begun and answered with %.1f calls of the heap and %.1f of locks\n", per[0], per[1]);
  assert_true(per[0] > 0 && per[0] < 40 && per[1] > 0 && per[1] < 40);
  sn_test_done(opened);
  stop();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_thread),
      cmocka_unit_test(test_two_threads),
      cmocka_unit_test(test_begin_and_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
