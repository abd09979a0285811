// What the threads that plan ask of the heap, of locks and of the system while a plan is refined: one alone asks for
// nothing; several ask for the locks by which they share the work and wait for each other, and sleep there.
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/count_calls.h"
#include "tests/support/daemon_group.h"
#include "tests/support/raw_peer.h"

// A plan is given so much time, on a busy machine more; once it is under way it is looked at for LOOK, first
// by counters, then call by call [s].
static const double DEADLINE = 1, LOOK = 0.3;

// Steps of a plan, so that no planner is through before that.
enum { HORIZON = 512 };

static SnTestDaemon d;
static SnTestClient c, looker;
static SnTestCallsPage *page;

static void start(const char *threads) {
  const char *const args[] = {threads, "--telemetry=none", NULL};
  d = (SnTestDaemon){0};
  sn_test_daemon_prepare(&d);
  page = sn_test_daemon_share(&d, sizeof *page);
  sn_test_daemon_spawn_preloaded(&d, args, SN_TEST_COUNT_LIBRARY, "SN_TEST_COUNT");
  sn_test_connect(&c, d.endpoint);
  assert_true(sn_test_answers(&c, 20));
  sn_test_connect(&looker, d.endpoint);
}

static void stop(void) {
  sn_test_disconnect(&looker);
  sn_test_disconnect(&c);
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  munmap(page, sizeof *page);
  sn_test_daemon_remove(&d);
}

static void wait_for(double seconds) { usleep((useconds_t)(1e6 * seconds)); }

// Whether a thread plans: sinewd names them.
static bool plans(long thread) {
  char path[64], name[32] = "";
  snprintf(path, sizeof path, "/proc/%d/task/%ld/comm", (int)d.pid, thread);
  FILE *f = fopen(path, "r");
  if (f && !fgets(name, sizeof name, f)) name[0] = '\0';
  if (f) fclose(f);
  return !strcmp(name, "planner\n");
}

// The threads that plan; returns how many.
static int planner_threads(SnTestCalls *threads[SN_TEST_THREADS]) {
  int n = 0;
  for (int i = 0; i < SN_TEST_THREADS; i++)
    if (atomic_load(&page->calls[i].thread) && plans(atomic_load(&page->calls[i].thread)))
      threads[n++] = &page->calls[i];
  return n;
}

// Counts the system calls of a thread for some time, those alone that are no futex in *other; -1 where nobody may look.
static int count_system_calls(pid_t thread, double seconds, int *other) {
  int entries = 0, status;
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
      entries++;
      // A wait that tracing has interrupted goes on by a call of its own.
      *other += info.entry.nr != SYS_futex && info.entry.nr != SYS_restart_syscall;
    }
    ptrace(PTRACE_SYSCALL, thread, 0, 0);
  }
  ptrace(PTRACE_INTERRUPT, thread, 0, 0);
  while (waitpid(thread, &status, __WALL) != thread) continue;
  ptrace(PTRACE_DETACH, thread, 0, 0);
  return entries;
}

// What the threads that plan asked for while a plan was refined.
typedef struct Seen {
  int threads;
  long allocations, locks, pool, gradients;  // locks of the pool and of the list of gradients are all there are
  int system, other;  // calls of the system, those that wait and wake in a lock among them; all others
} Seen;

// Asks for a plan that is refined until its deadline.
static void ask(uint64_t session, Sinew__V1__State *state, double deadline) {
  Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  plan.session = session;
  plan.state = state;
  plan.deadline = deadline;
  plan.has_iterations_case = SINEW__V1__PLAN_REQUEST__HAS_ITERATIONS_ITERATIONS;
  plan.iterations = 1000000;
  request.body_case = SINEW__V1__REQUEST__BODY_PLAN;
  request.plan = &plan;
  sn_test_send(&c, &request);
}

// What a thread that plans has asked for so far, by the place in the program; as they are now, less those of before.
typedef struct Tally {
  long allocations, locks, at[SN_TEST_CALLERS], by[SN_TEST_CALLERS];
} Tally;

static Tally tally_of(const SnTestCalls *calls) {
  Tally t = {.allocations = atomic_load(&calls->allocations), .locks = atomic_load(&calls->locks)};
  for (int i = 0; i < SN_TEST_CALLERS; i++) {
    t.at[i] = atomic_load(&calls->caller[i].at);
    t.by[i] = atomic_load(&calls->caller[i].locks);
  }
  return t;
}

// The function of the program that an address is in, by what nm says of it.
static void name_of(long at, char *name, size_t size) {
  char command[512], line[512], kind, found[256];
  unsigned long from;
  snprintf(command, sizeof command, "nm -n '%s/sinewd'", sn_test_binary_folder());
  snprintf(name, size, "?");
  FILE *f = popen(command, "r");
  assert_non_null(f);
  while (fgets(line, sizeof line, f))
    if (sscanf(line, "%lx %c %255s", &from, &kind, found) == 3 && strchr("tT", kind) && from < (unsigned long)at)
      snprintf(name, size, "%s", found);
  pclose(f);
}

static bool is_one_of(const char *name, const char *const *names, int n) {
  for (int i = 0; i < n; i++)
    if (!strcmp(name, names[i])) return true;
  return false;
}

// Adds what a thread has asked for. Every lock must be one by which work is shared: a job is handed to the threads of a
// pool and waited for (planner/base/pool.c), threads that make gradients take their jobs out of one list
// (planner/rollout/gradient.c). Small functions may be part of those that call them.
static void add_thread(Seen *seen, const Tally *before, const Tally *after) {
  static const char *const pool[] = {"pool_main", "pool_wait", "sn_pool_run", "sn_pool_run_watched"};
  static const char *const gradient[] = {"gradient_work", "work_once",       "lock",
                                         "tell_others",   "wait_for_others", "sn_pool_wait_patiently"};
  seen->allocations += after->allocations - before->allocations;
  seen->locks += after->locks - before->locks;
  for (int i = 0; i < SN_TEST_CALLERS; i++) {
    char name[256];
    const long locks = after->by[i] - before->by[i];
    if (locks == 0) continue;
    name_of(after->at[i], name, sizeof name);
    if (is_one_of(name, pool, sizeof pool / sizeof *pool))
      seen->pool += locks;
    else if (is_one_of(name, gradient, sizeof gradient / sizeof *gradient))
      seen->gradients += locks;
    else
      fail_msg("a thread that plans takes %ld locks in %s", locks, name);
  }
}

// Looks at the threads while a plan is under way. False where that ended too early to tell.
static bool look_once(uint64_t id, Sinew__V1__State *state, double deadline, Seen *seen, Sinew__V1__Reply **reply) {
  SnTestCalls *thread[SN_TEST_THREADS];
  Tally before[SN_TEST_THREADS], after[SN_TEST_THREADS];
  *seen = (Seen){.threads = planner_threads(thread)};
  assert_true(seen->threads > 0);
  const double began = sn_clock_now();
  ask(id, state, deadline);
  const bool begun = sn_test_await_planning(&looker, id, deadline);
  for (int i = 0; i < seen->threads; i++) before[i] = tally_of(thread[i]);
  wait_for(LOOK);
  for (int i = 0; i < seen->threads; i++) after[i] = tally_of(thread[i]);
  for (int i = 0; i < seen->threads; i++) {
    const int calls = count_system_calls((pid_t)atomic_load(&thread[i]->thread), LOOK / seen->threads, &seen->other);
    seen->system = calls < 0 || seen->system < 0 ? -1 : seen->system + calls;
  }
  const double looked = sn_clock_now() - began;
  *reply = sn_test_receive(&c, 60);
  assert_non_null(*reply);
  assert_int_equal((*reply)->body_case, SINEW__V1__REPLY__BODY_PLAN);
  if (!begun || looked > (*reply)->plan->computing) return false;
  for (int i = 0; i < seen->threads; i++) add_thread(seen, &before[i], &after[i]);
  return true;
}

static Seen look_at(char *planner) {
  Sinew__V1__PlannerSettings settings = SINEW__V1__PLANNER_SETTINGS__INIT;
  Sinew__V1__Reply *opened, *r;
  Seen seen;
  settings.has_planner_case = SINEW__V1__PLANNER_SETTINGS__HAS_PLANNER_PLANNER;
  settings.planner = planner;
  settings.has_horizon_case = SINEW__V1__PLANNER_SETTINGS__HAS_HORIZON_HORIZON;
  settings.horizon = HORIZON;
  const uint64_t id = sn_test_open_by(&c, "arm_reach", 1, &settings, &opened);
  for (int i = 0; i < 3; i++) sn_test_done(sn_test_plan(&c, id, opened->open->initial, 0.1));
  for (int i = 0; !look_once(id, opened->open->initial, DEADLINE * (1 + i), &seen, &r); i++) {
    sn_test_done(r);
    if (i == 10) fail_msg("%s: no plan was under way for so long as it was to be looked at", planner);
  }
  print_message("| %s | %u in %.2f s by %d | %ld | %ld: pool %ld, gradients %ld | %d, but for futex %d |\n", planner,
                r->plan->iterations, r->plan->computing, seen.threads, seen.allocations, seen.locks, seen.pool,
                seen.gradients, seen.system, seen.other);
  sn_test_done(r);
  sn_test_done(opened);
  return seen;
}

static char *const PLANNERS[] = {"adam", "lbfgs", "ilqg", "sampling", "mppi", "cem", "hybrid"};
enum { ALONE = 2 };  // the first ones refine one start

// One thread plans: it asks for nothing at all.
static void test_one_thread(void **state) {
  (void)state;
  start("--threads=1");
  print_message("| planner | iterations | calls of the heap | of locks | of the system |\n");
  for (size_t i = 0; i < sizeof PLANNERS / sizeof PLANNERS[0]; i++) {
    const Seen seen = look_at(PLANNERS[i]);
    assert_int_equal(seen.threads, 1);
    assert_int_equal(seen.allocations, 0);
    assert_int_equal(seen.locks, 0);
    assert_true(seen.system <= 0);
  }
  stop();
}

// Several threads plan: they share their work by locks, and sleep there, and ask for nothing else. Gradients of one
// start are one thread's work, which asks nobody.
static void test_several_threads(void **state) {
  (void)state;
  start("--threads=3");
  for (size_t i = 0; i < sizeof PLANNERS / sizeof PLANNERS[0]; i++) {
    const Seen seen = look_at(PLANNERS[i]);
    assert_int_equal(seen.threads, 3);
    assert_int_equal(seen.allocations, 0);
    assert_int_equal(seen.other, 0);
    assert_true(i < ALONE ? seen.locks == 0 : seen.locks > 0);
  }
  stop();
}

// What it takes to begin a plan and to answer it, each one new.
static void test_begin_and_end(void **state) {
  (void)state;
  enum { PLANS = 50 };
  Sinew__V1__Reply *opened;
  SnTestCalls *threads[SN_TEST_THREADS];
  start("--threads=1");
  const uint64_t id = sn_test_open(&c, "arm_reach", 1, &opened);
  sn_test_done(sn_test_plan(&c, id, opened->open->initial, 0.1));
  assert_int_equal(planner_threads(threads), 1);
  const SnTestCalls *thread = threads[0];
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
      cmocka_unit_test(test_several_threads),
      cmocka_unit_test(test_begin_and_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
