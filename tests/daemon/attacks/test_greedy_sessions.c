// Attack: sessions without deadlines that ask again and again, cheap plans beside dear ones. All share the planner's
// time alike, whatever a plan takes.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"

enum { SESSIONS = 8 };

// [s]
static const double duration = 4;

static void ask(uint64_t session, Sinew__V1__State *initial) {
  Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
  plan.session = session;
  plan.state = initial;
  plan.has_iterations_case = SINEW__V1__PLAN_REQUEST__HAS_ITERATIONS_ITERATIONS;
  plan.iterations = 1;
  sn_test_send(&client, SN_TEST_MESSAGE(plan, PLAN, &plan));
}

// Plans of 8 and of 512 candidates by turns, each asked for again when it has been answered.
static bool is_shared_alike(void *unused) {
  (void)unused;
  uint64_t id[SESSIONS];
  double served[SESSIONS], least = INFINITY, most = 0;
  int plans[SESSIONS] = {0};
  Sinew__V1__Reply *opened = NULL, *r;
  Sinew__V1__PlannerSettings settings = *sn_test_sampling();
  settings.has_candidates_case = SINEW__V1__PLANNER_SETTINGS__HAS_CANDIDATES_CANDIDATES;
  for (int i = 0; i < SESSIONS; i++) {
    settings.candidates = i % 2 ? 512 : 8;
    sn_test_done(opened);
    id[i] = sn_test_open_by(&client, "arm_reach", 1, &settings, &opened);
  }
  for (int i = 0; i < SESSIONS; i++) ask(id[i], opened->open->initial);
  for (double until = sn_clock_now() + duration; sn_clock_now() < until;) {
    if (!(r = sn_test_receive(&client, 0.01))) continue;
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
    for (int i = 0; i < SESSIONS; i++)
      if (r->plan->session == id[i]) {
        plans[i]++;
        ask(id[i], opened->open->initial);
      }
    sn_test_done(r);
  }
  SnTestClient watcher;
  sn_test_connect(&watcher, sinewd.endpoint);
  for (int i = 0; i < SESSIONS; i++) {
    r = sn_test_statistics(&watcher, id[i]);
    served[i] = r->statistics->sessions[0]->served;
    least = fmin(least, served[i]);
    if (!(served[i] <= most)) most = served[i];
    sn_test_done(r);
    print_message("%d candidates: %d plans, served for %.3f s\n", i % 2 ? 512 : 8, plans[i], served[i]);
  }
  print_message("most served over least served: %.2f\n", most / least);
  sn_test_disconnect(&watcher);
  sn_test_done(opened);
  return most < 1.5 * least;
}

// Each try has a sinewd of its own, where nothing of the last one is under way.
static bool is_shared_alike_anew(void *unused) {
  sn_test_group_setup(NULL);
  const bool alike = is_shared_alike(unused);
  assert_int_equal(sn_test_group_teardown(NULL), 0);
  return alike;
}

static void test_cheap_beside_dear(void **state) {
  (void)state;
  sn_test_judge(is_shared_alike_anew, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_cheap_beside_dear)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
