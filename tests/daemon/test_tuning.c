// Live tuning of sinewd, as a black box.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"
#include "tests/support/daemon_tuning.h"

static void test_tuning_storm(void **state) {
  (void)state;
  sn_test_tuning_storm(&client, "sampling", 1000);
}

static void choose_planner(SnTestStream *s, char *planner) {
  SnTestChange c;
  sn_test_change_begin(&c, s->session);
  c.planner.has_planner_case = SINEW__V1__PLANNER_SETTINGS__HAS_PLANNER_PLANNER;
  c.planner.planner = planner;
  Sinew__V1__Request request = sn_test_change_request(&c);
  Sinew__V1__Reply *r = sn_test_stream_ask(s, &request);
  if (r->body_case == SINEW__V1__REPLY__BODY_ERROR) fail_msg("%s", r->error->text);
  assert_string_equal(r->set_config->planner->planner, planner);
  sn_test_done(r);
}

static double latest_norm;
static void note_norm(const Sinew__V1__Plan *plan) { latest_norm = plan->gradient_norm; }

// The planner changes while the stream goes on: from sampling to gradients, and back.
static void test_planner_changes_live(void **state) {
  (void)state;
  static char *const planner[] = {"adam", "sampling", "adam"};
  Sinew__V1__Reply *opened;
  SnTestStream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened)};
  s = sn_test_stream_start(&client, s.session, 30, 0.2);
  s.check = note_norm;
  Sinew__V1__State x = *opened->open->initial;
  for (int i = 0; i < 3; i++) {
    choose_planner(&s, planner[i]);
    const bool gradients = !strcmp(planner[i], "adam");
    latest_norm = gradients ? NAN : 1;
    for (double until = sn_clock_now() + 30; isfinite(latest_norm) != gradients;) {
      assert_true(sn_clock_now() < until);
      x.time += 0.01;
      sn_test_stream_state(&s, &x, (int64_t)s.sequence);
      assert_null(sn_test_stream_read(&s, 0.02));
    }
  }
  assert_true(latest_norm > 0);
  sn_test_stream_request(&s, true, 0, 0);
  sn_test_stream_end(&s, SINEW__V1__STREAM_REPLY__END__STOPPED, 10);
  sn_test_done(opened);
}

static uint64_t latest_version;
static void note_version(const Sinew__V1__Plan *plan) {
  assert_true(isfinite(plan->cost_after) && plan->cost_after <= plan->cost_before);
  latest_version = plan->config_version;
}

// Every planner of the daemon follows every other one while the stream goes on.
static void test_all_planners_live(void **state) {
  (void)state;
  Sinew__V1__HelloRequest hello = SINEW__V1__HELLO_REQUEST__INIT;
  hello.protocol = 1;
  hello.client = "test";
  Sinew__V1__Reply *opened, *r = SN_TEST_REPLY(hello, HELLO, &hello);
  SnTestStream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened)};
  const size_t n = r->hello->n_planners;
  assert_true(n >= 6);
  s = sn_test_stream_start(&client, s.session, 60, 0.2);
  s.check = note_version;
  Sinew__V1__State x = *opened->open->initial;
  uint64_t version = 1;
  for (size_t by = 1; by < n; by++) {
    for (size_t i = 0; i < n; i++) {
      choose_planner(&s, r->hello->planners[i * by % n]);
      ++version;
      for (double until = sn_clock_now() + 30; latest_version < version;) {
        assert_true(sn_clock_now() < until);
        x.time += 0.01;
        sn_test_stream_state(&s, &x, (int64_t)s.sequence);
        assert_null(sn_test_stream_read(&s, 0.02));
      }
    }
  }
  sn_test_stream_request(&s, true, 0, 0);
  sn_test_stream_end(&s, SINEW__V1__STREAM_REPLY__END__STOPPED, 10);
  sn_test_done(opened);
  sn_test_done(r);
}

// Asks for another planner and grid; the reply is the caller's.
static Sinew__V1__Reply *choose_grid(SnTestStream *s, char *planner, char *grid) {
  SnTestChange c;
  sn_test_change_begin(&c, s->session);
  c.planner.has_planner_case = SINEW__V1__PLANNER_SETTINGS__HAS_PLANNER_PLANNER;
  c.planner.planner = planner;
  c.planner.has_grid_case = SINEW__V1__PLANNER_SETTINGS__HAS_GRID_GRID;
  c.planner.grid = grid;
  Sinew__V1__Request request = sn_test_change_request(&c);
  return sn_test_stream_ask(s, &request);
}

// The plan that came last: its version, and whether its rows behind the lead come in equal pairs from row 16 on.
static bool latest_pairs;
static void note_plan(const Sinew__V1__Plan *plan) {
  enum { NU = 6, FIRST = 16 };
  latest_version = plan->config_version;
  latest_pairs = true;
  assert_int_equal(plan->n_ctrl, (plan->lead + 48) * NU);
  const double *ctrl = plan->ctrl + plan->lead * NU;
  for (int t = FIRST; t < 48; t += 2)
    latest_pairs = latest_pairs && memcmp(ctrl + t * NU, ctrl + (t + 1) * NU, sizeof *ctrl * NU) == 0;
}

// Time grids and planners change while the stream goes on; each shows in the plans of its version. One that does not
// fit is refused, and the plans go on as before.
static void test_grid_changes_live(void **state) {
  (void)state;
  static const struct {
    char *planner, *grid;
  } change[] = {{"adam", "16x1,16x2"}, {"sampling", "16x1,16x2"}, {"adam", ""}, {"adam", "24x2"}, {"sampling", ""}};
  Sinew__V1__Reply *opened;
  SnTestStream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened)};
  s = sn_test_stream_start(&client, s.session, 30, 0.2);
  s.check = note_plan;
  latest_version = 0;
  Sinew__V1__State x = *opened->open->initial;
  for (int i = 0; i < 10; i++) {
    char *const grid = change[i % 5].grid;
    Sinew__V1__Reply *r = choose_grid(&s, change[i % 5].planner, grid);
    if (r->body_case == SINEW__V1__REPLY__BODY_ERROR) fail_msg("%s", r->error->text);
    assert_string_equal(r->set_config->planner->grid, grid);
    const uint64_t version = r->set_config->version;
    sn_test_done(r);
    sn_test_expect_error(choose_grid(&s, "adam", "16x1,12x2"), SINEW__V1__ERROR__CODE__INVALID,
                         "'16x1,12x2' lasts 40 base steps, allowed is the horizon, 48");
    sn_test_expect_error(choose_grid(&s, "adam", "12x1,12x3"), SINEW__V1__ERROR__CODE__INVALID,
                         "0.02 s of limit of joint");
    for (double until = sn_clock_now() + 30; latest_version < version;) {
      assert_true(sn_clock_now() < until);
      x.time += 0.01;
      sn_test_stream_state(&s, &x, (int64_t)s.sequence);
      assert_null(sn_test_stream_read(&s, 0.02));
    }
    assert_true(latest_version == version);
    assert_true(latest_pairs || grid[0] == 0);  // without a grid they may be what is left of one
  }
  sn_test_stream_request(&s, true, 0, 0);
  sn_test_stream_end(&s, SINEW__V1__STREAM_REPLY__END__STOPPED, 10);
  sn_test_done(opened);
}

// The plan that came last has gains of so many rows, with states, or none.
static uint32_t latest_rows;
static void note_gains(const Sinew__V1__Plan *plan) {
  note_version(plan);
  latest_rows = plan->gain_rows;
  assert_true(plan->n_gain == plan->gain_rows * (size_t)(6 * (2 * 2 + 6)));
  if (plan->gain_rows > 0) assert_int_equal(plan->states->n_time, plan->steps + 1);
}

// Sends states until a plan of that version has gains of so many rows.
static void await_gains(SnTestStream *s, Sinew__V1__State *x, uint64_t version, uint32_t rows) {
  for (double until = sn_clock_now() + 30; latest_version < version || latest_rows != rows;) {
    assert_true(sn_clock_now() < until);
    x->time += 0.01;
    sn_test_stream_state(s, x, (int64_t)s->sequence);
    assert_null(sn_test_stream_read(s, 0.02));
  }
}

// Gains come with a stream's plans where the planner makes some: it is refused where it does not, and where the session
// changes to such a one the plans go on without.
static void test_gains_of_a_stream(void **state) {
  (void)state;
  Sinew__V1__Reply *opened;
  SnTestStream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened), .stamp = -1};
  Sinew__V1__State x = *opened->open->initial;
  s.gain_rows = 4;
  s.check = note_gains;
  sn_test_stream_request(&s, false, 30, 0.2);
  sn_test_expect_error(sn_test_stream_read(&s, 10), SINEW__V1__ERROR__CODE__UNSUPPORTED,
                       "gains: planner 'sampling' makes none, 'ilqg' does");
  choose_planner(&s, "ilqg");
  sn_test_stream_request(&s, false, 30, 0.2);
  Sinew__V1__Reply *r = sn_test_stream_read(&s, 10);
  assert_true(r && r->body_case == SINEW__V1__REPLY__BODY_STREAM);
  sn_test_done(r);
  latest_version = latest_rows = 0;
  await_gains(&s, &x, 2, 4);
  choose_planner(&s, "adam");
  await_gains(&s, &x, 3, 0);
  choose_planner(&s, "ilqg");
  await_gains(&s, &x, 4, 4);
  sn_test_stream_request(&s, true, 0, 0);
  sn_test_stream_end(&s, SINEW__V1__STREAM_REPLY__END__STOPPED, 10);
  sn_test_done(opened);
}

static Sinew__V1__Reply *revert(SnTestStream *s, uint64_t version) {
  Sinew__V1__RevertRequest in = SINEW__V1__REVERT_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  in.session = s->session;
  in.version = version;
  request.body_case = SINEW__V1__REQUEST__BODY_REVERT;
  request.revert = &in;
  return sn_test_stream_ask(s, &request);
}

static void test_revert(void **state) {
  (void)state;
  enum { KEPT = 1024 };
  SnTestChange c;
  Sinew__V1__Reply *opened, *r;
  SnTestStream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened)};
  for (uint64_t v = 2; v <= 5; v++) {
    sn_test_change_fill(&c, s.session, sn_test_number(v));
    if (v == 3) sn_test_change_target(&c, 0, 3, 0.25);
    if (v == 5) {
      c.term[0].has_own_target_case = SINEW__V1__TERM_SETTINGS__HAS_OWN_TARGET_OWN_TARGET;
      c.term[0].own_target = true;
    }
    Sinew__V1__Request request = sn_test_change_request(&c);
    sn_test_done(sn_test_stream_ask(&s, &request));
  }
  r = sn_test_stream_config(&s, 3);
  sn_test_change_expect(r->get_config, 3, sn_test_number(3));
  assert_true(r->get_config->terms[0]->n_target == 3 && r->get_config->terms[0]->target[1] == 0.25);
  sn_test_done(r);
  r = sn_test_stream_config(&s, 5);
  assert_true(r->get_config->terms[0]->own_target && r->get_config->terms[0]->n_target == 0);
  sn_test_done(r);

  // Back to version 3: a new version, with its target too; and from there to the very first one.
  r = revert(&s, 3);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_REVERT);
  sn_test_change_expect(r->revert, 6, sn_test_number(3));
  assert_int_equal(r->revert->reverted_to, 3);
  assert_true(r->revert->terms[0]->n_target == 3 && r->revert->terms[0]->target[2] == 0.25);
  sn_test_done(r);
  r = sn_test_plan(&client, s.session, opened->open->initial, 0.05);
  assert_true(r->plan->config_version == 6 && r->plan->time_to_live == sn_test_life(sn_test_number(3)));
  sn_test_done(r);
  r = revert(&s, 1);
  const Sinew__V1__Config *first = opened->open->config;
  assert_true(r->revert->version == 7 && r->revert->reverted_to == 1 && r->revert->terms[0]->own_target);
  assert_int_equal(r->revert->planner->candidates, first->planner->candidates);
  assert_true(r->revert->terms[0]->weight == first->terms[0]->weight);
  assert_true(r->revert->session->time_to_live == first->session->time_to_live);
  sn_test_done(r);
  sn_test_expect_error(revert(&s, 8), SINEW__V1__ERROR__CODE__NOT_FOUND, "versions 1 to 7 are kept");
  sn_test_expect_error(sn_test_stream_config(&s, 999), SINEW__V1__ERROR__CODE__NOT_FOUND, "no version 999");
  sn_test_expect_error(revert(&s, 0), SINEW__V1__ERROR__CODE__INVALID, "version");

  // The history is bounded.
  for (uint64_t v = 8; v <= KEPT + 3; v++) {
    sn_test_change_fill(&c, s.session, sn_test_number(v));
    Sinew__V1__Request request = sn_test_change_request(&c);
    sn_test_done(sn_test_stream_ask(&s, &request));
  }
  sn_test_expect_error(revert(&s, 3), SINEW__V1__ERROR__CODE__NOT_FOUND, "versions 4 to 1027 are kept");
  r = revert(&s, 5);
  sn_test_change_expect(r->revert, KEPT + 4, sn_test_number(5));
  assert_int_equal(r->revert->oldest, 5);
  sn_test_done(r);
  sn_test_done(opened);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tuning_storm),      cmocka_unit_test(test_planner_changes_live),
      cmocka_unit_test(test_all_planners_live), cmocka_unit_test(test_grid_changes_live),
      cmocka_unit_test(test_gains_of_a_stream), cmocka_unit_test(test_revert),
  };
  return cmocka_run_group_tests(tests, sn_test_group_setup, sn_test_group_teardown);
}
