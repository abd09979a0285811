// Attack: one legal session whose plans are as dear as settings allow, asked for again and again. A neighbour whose
// plans have 20 ms must not notice.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/places.h"
#include "tests/support/daemon_group.h"

enum { PLANS = 60, STARTS = JUDGE_TIME ? 64 : 8, HORIZON = JUDGE_TIME ? 2048 : 256 };

static char task[16] = "arm_reach";  // hand_balls, where its model was fetched

typedef struct Greedy {
  SnTestClient client, probe;
  uint64_t session;
  Sinew__V1__Reply *opened;
  double blocked;  // longest time that the planner was silent, as far as health has seen it [s]
  bool asked;      // health was asked and has not answered yet
} Greedy;

static Sinew__V1__PlannerSettings adam_settings(void) {
  Sinew__V1__PlannerSettings s = SINEW__V1__PLANNER_SETTINGS__INIT;
  s.has_planner_case = SINEW__V1__PLANNER_SETTINGS__HAS_PLANNER_PLANNER;
  s.planner = "adam";
  s.has_horizon_case = SINEW__V1__PLANNER_SETTINGS__HAS_HORIZON_HORIZON;
  s.horizon = HORIZON;
  s.has_adam_starts_case = SINEW__V1__PLANNER_SETTINGS__HAS_ADAM_STARTS_ADAM_STARTS;
  s.adam_starts = STARTS;
  return s;
}

static Sinew__V1__PlannerSettings sampling_settings(void) {
  Sinew__V1__PlannerSettings s = *sn_test_sampling();
  s.has_horizon_case = SINEW__V1__PLANNER_SETTINGS__HAS_HORIZON_HORIZON;
  s.horizon = HORIZON;
  s.has_candidates_case = SINEW__V1__PLANNER_SETTINGS__HAS_CANDIDATES_CANDIDATES;
  s.candidates = 8192;
  s.has_knots_case = SINEW__V1__PLANNER_SETTINGS__HAS_KNOTS_KNOTS;
  s.knots = HORIZON / 4;
  s.has_noise_case = SINEW__V1__PLANNER_SETTINGS__HAS_NOISE_NOISE;
  s.noise = "pink";
  return s;
}

static void begin(Greedy *g, Sinew__V1__PlannerSettings *settings) {
  *g = (Greedy){0};
  sn_test_connect(&g->client, sinewd.endpoint);
  sn_test_connect(&g->probe, sinewd.endpoint);
  g->session = sn_test_open_by(&g->client, task, 1, settings, &g->opened);
}

static void end(Greedy *g) {
  Sinew__V1__CloseRequest close = SINEW__V1__CLOSE_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  close.session = g->session;
  request.body_case = SINEW__V1__REQUEST__BODY_CLOSE;
  request.close = &close;
  sn_test_send(&g->client, &request);
  for (bool closed = false; !closed;) {
    Sinew__V1__Reply *r = sn_test_receive(&g->client, 30);
    assert_non_null(r);
    closed = r->body_case == SINEW__V1__REPLY__BODY_CLOSE;
    sn_test_done(r);
  }
  sn_test_done(g->opened);
  sn_test_disconnect(&g->client);
  sn_test_disconnect(&g->probe);
}

// Keeps a plan of 50 ms under way, and looks how long the planner has been silent.
static void press(Greedy *g) {
  Sinew__V1__HealthRequest health = SINEW__V1__HEALTH_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  Sinew__V1__Reply *r;
  while ((r = sn_test_receive(&g->client, 0))) {
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
    sn_test_done(r);
    sn_test_send_plan(&g->client, g->session, g->opened->open->initial, 0.05);
  }
  while ((r = sn_test_receive(&g->probe, 0))) {
    if (!(r->health->planner_age <= g->blocked)) g->blocked = r->health->planner_age;
    g->asked = false;
    sn_test_done(r);
  }
  request.body_case = SINEW__V1__REQUEST__BODY_HEALTH;
  request.health = &health;
  if (!g->asked) sn_test_send(&g->probe, &request);
  g->asked = true;
}

// Ages of the neighbour's plans, sorted. `greedy` NULL: alone.
static void plan_beside(Greedy *greedy, uint64_t id, Sinew__V1__State *initial, double age[PLANS]) {
  if (greedy) sn_test_send_plan(&greedy->client, greedy->session, greedy->opened->open->initial, 0.05);
  for (int i = 0; i < PLANS; i++) {
    Sinew__V1__Reply *r = NULL;
    const double sent = sn_clock_now();
    sn_test_send_plan(&client, id, initial, 0.02);
    while (!(r = sn_test_receive(&client, 0.001)))
      if (greedy) press(greedy);
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
    age[i] = sn_clock_now() - sent;
    sn_test_done(r);
  }
  qsort(age, PLANS, sizeof *age, sn_test_compare_doubles);
}

static void compare(const char *name, Sinew__V1__PlannerSettings settings) {
  static double alone[PLANS], beside[PLANS];
  Sinew__V1__Reply *opened;
  Greedy greedy;
  const uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  begin(&greedy, &settings);
  plan_beside(NULL, id, opened->open->initial, alone);
  plan_beside(&greedy, id, opened->open->initial, beside);
  print_message(
      "%-8s 20 ms alone p50 %.1f p90 %.1f worst %.1f ms; beside it %.1f, %.1f, %.1f: ratios %.2f %.2f %.2f; "
      "planner silent for %.1f ms at most\n",
      name, 1e3 * alone[PLANS / 2], 1e3 * alone[PLANS * 9 / 10], 1e3 * alone[PLANS - 1], 1e3 * beside[PLANS / 2],
      1e3 * beside[PLANS * 9 / 10], 1e3 * beside[PLANS - 1], beside[PLANS / 2] / alone[PLANS / 2],
      beside[PLANS * 9 / 10] / alone[PLANS * 9 / 10], beside[PLANS - 1] / alone[PLANS - 1], 1e3 * greedy.blocked);
  end(&greedy);
  sn_test_done(opened);
  if (!JUDGE_TIME) return;
  assert_true(beside[PLANS / 2] < 1.5 * fmax(alone[PLANS / 2], 0.02));
  assert_true(beside[PLANS * 9 / 10] < 2 * fmax(alone[PLANS * 9 / 10], 0.02));
}

static void test_many_starts(void **state) {
  (void)state;
  compare("adam", adam_settings());
}

static void test_many_candidates(void **state) {
  (void)state;
  compare("sampling", sampling_settings());
}

// The daemon knows the models that were fetched, too.
static int setup(void **state) {
  (void)state;
  char place[SN_PLACES_OF_MODELS][SN_PLACE_SIZE], text[SN_PLACES_OF_MODELS][SN_PLACE_SIZE + 16];
  const char *args[SN_PLACES_OF_MODELS + 1] = {0};
  int known = 0;
  for (int i = 0, n = sn_places_of_models(place); i < n; i++) {
    size_t name;
    if (access(sn_place_folder(place[i], &name), R_OK | X_OK) != 0) continue;
    snprintf(text[i], sizeof text[i], "--models=%s", place[i]);
    args[known++] = text[i];
    if (!strncmp(place[i], "myosuite=", 9)) strcpy(task, "hand_balls");
  }
  sn_test_daemon_start(&sinewd, args);
  sn_test_connect(&client, sinewd.endpoint);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_many_starts), cmocka_unit_test(test_many_candidates)};
  return cmocka_run_group_tests(tests, setup, sn_test_group_teardown);
}
