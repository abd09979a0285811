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

enum { ROUND = 20, PLANS = 4 * ROUND, STARTS = JUDGE_TIME ? 64 : 8, HORIZON = JUDGE_TIME ? 2048 : 256 };

// Where its model was fetched, this is hand_balls.
static char task[16] = "arm_reach";
static size_t controls = 6;

typedef struct Greedy {
  SnTestClient client, probe;
  uint64_t session;
  Sinew__V1__Reply *opened;
  size_t rows;     // of the next evaluation; 0: it plans
  double blocked;  // longest time that the planner was silent, as far as health has seen it [s]
  bool asked;      // health was asked and has not answered yet
} Greedy;

// The dearest settings of a planner.
static Sinew__V1__PlannerSettings settings_of(char *planner) {
  Sinew__V1__PlannerSettings s = SINEW__V1__PLANNER_SETTINGS__INIT;
  s.has_planner_case = SINEW__V1__PLANNER_SETTINGS__HAS_PLANNER_PLANNER;
  s.planner = planner;
  s.has_horizon_case = SINEW__V1__PLANNER_SETTINGS__HAS_HORIZON_HORIZON;
  s.horizon = strcmp(planner, "ilqg") ? HORIZON : HORIZON / 4;
  s.has_adam_starts_case = SINEW__V1__PLANNER_SETTINGS__HAS_ADAM_STARTS_ADAM_STARTS;
  s.adam_starts = STARTS;
  s.has_candidates_case = SINEW__V1__PLANNER_SETTINGS__HAS_CANDIDATES_CANDIDATES;
  s.candidates = 8192;
  s.has_knots_case = SINEW__V1__PLANNER_SETTINGS__HAS_KNOTS_KNOTS;
  s.knots = HORIZON / 8;
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

// Asks for a plan of 50 ms, or for an evaluation with its gradient that is a row longer than the one before.
static void ask(Greedy *g) {
  static double ctrl[64 * HORIZON];
  Sinew__V1__EvaluateRequest evaluate = SINEW__V1__EVALUATE_REQUEST__INIT;
  if (g->rows == 0) {
    sn_test_send_plan(&g->client, g->session, g->opened->open->initial, 0.05);
    return;
  }
  evaluate.session = g->session;
  evaluate.state = g->opened->open->initial;
  evaluate.ctrl = ctrl;
  evaluate.n_ctrl = g->rows++ * controls;
  evaluate.want_gradient = true;
  sn_test_send(&g->client, SN_TEST_MESSAGE(evaluate, EVALUATE, &evaluate));
}

// Keeps what it asks for under way, and looks how long the planner has been silent.
static void press(Greedy *g) {
  Sinew__V1__HealthRequest health = SINEW__V1__HEALTH_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  Sinew__V1__Reply *r;
  while ((r = sn_test_receive(&g->client, 0))) {
    if (r->body_case == SINEW__V1__REPLY__BODY_ERROR) fail_msg("%s", r->error->text);
    sn_test_done(r);
    ask(g);
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

// Reads the answer that is still to come.
static void rest(Greedy *g) {
  Sinew__V1__Reply *r = sn_test_receive(&g->client, 60);
  assert_non_null(r);
  sn_test_done(r);
}

// Ages of the neighbour's plans in a round; `greedy` NULL: alone.
static void plan_beside(Greedy *greedy, uint64_t id, Sinew__V1__State *initial, double age[ROUND]) {
  if (greedy) ask(greedy);
  for (int i = 0; i < ROUND; i++) {
    Sinew__V1__Reply *r = NULL;
    const double sent = sn_clock_now();
    sn_test_send_plan(&client, id, initial, 0.02);
    while (!(r = sn_test_receive(&client, 0.001)))
      if (greedy) press(greedy);
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
    age[i] = sn_clock_now() - sent;
    sn_test_done(r);
  }
  if (greedy) rest(greedy);
}

// Parts of the plans that take at most so long, of sorted ages.
typedef struct Parts {
  double p50, p90, p99;  // [ms]
} Parts;

static Parts parts_of(double age[PLANS]) {
  qsort(age, PLANS, sizeof *age, sn_test_compare_doubles);
  return (Parts){1e3 * age[PLANS / 2], 1e3 * age[PLANS * 9 / 10], 1e3 * age[PLANS * 99 / 100]};
}

// Who presses, and how.
typedef struct Pressure {
  char *planner;
  size_t rows;  // of its first evaluation; 0: it plans
} Pressure;

// By turns, since what else runs on the machine is in both figures.
static bool is_not_noticed(void *pressure) {
  const Pressure *p = pressure;
  char *const name = p->planner;
  const size_t rows = p->rows;
  Sinew__V1__PlannerSettings settings = settings_of(name);
  static double alone[PLANS], beside[PLANS];
  Sinew__V1__Reply *opened;
  Greedy greedy;
  const uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  begin(&greedy, &settings);
  greedy.rows = rows;
  for (int i = 0; i < PLANS; i += ROUND) {
    plan_beside(NULL, id, opened->open->initial, alone + i);
    plan_beside(&greedy, id, opened->open->initial, beside + i);
  }
  const Parts a = parts_of(alone), b = parts_of(beside);
  print_message(
      "%s%s: 20 ms alone p50 %.1f p90 %.1f p99 %.1f ms; beside it %.1f, %.1f, %.1f: ratios %.2f %.2f %.2f; "
      "planner silent for %.1f ms at most\n",
      name, rows > 0 ? ", evaluations" : "", a.p50, a.p90, a.p99, b.p50, b.p90, b.p99, b.p50 / a.p50, b.p90 / a.p90,
      b.p99 / a.p99, 1e3 * greedy.blocked);
  end(&greedy);
  sn_test_done(opened);
  return b.p50 < 1.5 * fmax(a.p50, 20) && b.p90 < 3 * fmax(a.p90, 20);
}

static void compare(char *name, size_t rows) { sn_test_judge(is_not_noticed, &(Pressure){name, rows}); }

static void test_adam(void **state) {
  (void)state;
  compare("adam", 0);
}

static void test_sampling(void **state) {
  (void)state;
  compare("sampling", 0);
}

static void test_others(void **state) {
  (void)state;
  static char *const planner[] = {"ilqg", "lbfgs", "mppi", "cem", "hybrid"};
  for (size_t i = 0; i < sizeof planner / sizeof *planner; i++) compare(planner[i], 0);
}

// Each evaluation needs more memory for its gradient than the one before.
static void test_growing_evaluations(void **state) {
  (void)state;
  compare("sampling", HORIZON / 4);
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
    if (!strncmp(place[i], "myosuite=", 9)) strcpy(task, "hand_balls"), controls = 39;
  }
  sn_test_daemon_start(&sinewd, args);
  sn_test_connect(&client, sinewd.endpoint);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_adam), cmocka_unit_test(test_sampling),
                                     cmocka_unit_test(test_others), cmocka_unit_test(test_growing_evaluations)};
  return cmocka_run_group_tests(tests, setup, sn_test_group_teardown);
}
