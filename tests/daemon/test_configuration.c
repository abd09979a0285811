// sinewd as a black box: the configuration of a session, read, changed, refused and sent back.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"

// A change of an open session's configuration: 17 candidates, a lease of 60 s, a weight of 2.5.
typedef struct Change {
  Sinew__V1__SetConfigRequest set;
  Sinew__V1__PlannerSettings planner;
  Sinew__V1__SessionSettings session;
  Sinew__V1__TermSettings term, *terms[1];
} Change;

static void change_init(Change *c, uint64_t session) {
  *c = (Change){.set = SINEW__V1__SET_CONFIG_REQUEST__INIT,
                .planner = SINEW__V1__PLANNER_SETTINGS__INIT,
                .session = SINEW__V1__SESSION_SETTINGS__INIT,
                .term = SINEW__V1__TERM_SETTINGS__INIT};
  c->planner.has_candidates_case = SINEW__V1__PLANNER_SETTINGS__HAS_CANDIDATES_CANDIDATES;
  c->planner.candidates = 17;
  c->session.has_lease_case = SINEW__V1__SESSION_SETTINGS__HAS_LEASE_LEASE;
  c->session.lease = 60;
  c->term.name = "reach";
  c->term.has_weight_case = SINEW__V1__TERM_SETTINGS__HAS_WEIGHT_WEIGHT;
  c->term.weight = 2.5;
  c->terms[0] = &c->term;
  c->set.session = session;
  c->set.planner = &c->planner;
  c->set.settings = &c->session;
  c->set.terms = c->terms;
  c->set.n_terms = 1;
}

static Sinew__V1__Reply *get_config(uint64_t session) {
  Sinew__V1__GetConfigRequest get = SINEW__V1__GET_CONFIG_REQUEST__INIT;
  get.session = session;
  return SN_TEST_REPLY(get_config, GET_CONFIG, &get);
}

static void expect_refusal(Change *c, Sinew__V1__Error__Code code, const char *text) {
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_SET_CONFIG;
  request.set_config = &c->set;
  sn_test_expect_error(sn_test_request(&client, &request), code, text);
}

static void test_config(void **state) {
  (void)state;
  Change c;
  change_init(&c, sn_test_open(&client, "arm_reach", 0, NULL));
  Sinew__V1__Reply *r = get_config(c.set.session);
  assert_int_equal(r->get_config->version, 1);
  assert_true(r->get_config->n_table >= 9);
  const uint32_t horizon = r->get_config->planner->horizon;
  sn_test_done(r);

  r = SN_TEST_REPLY(set_config, SET_CONFIG, &c.set);
  assert_int_equal(r->set_config->version, 2);
  assert_int_equal(r->set_config->planner->candidates, 17);
  assert_int_equal(r->set_config->planner->horizon, horizon);
  assert_true(r->set_config->session->lease == 60);
  assert_true(r->set_config->terms[0]->weight == 2.5);
  sn_test_done(r);
}

// A change is taken as a whole or not at all.
static void test_config_refused(void **state) {
  (void)state;
  Change c;
  change_init(&c, sn_test_open(&client, "arm_reach", 0, NULL));
  sn_test_done(SN_TEST_REPLY(set_config, SET_CONFIG, &c.set));

  c.planner.candidates = 18;
  c.term.name = "nose";
  expect_refusal(&c, SINEW__V1__ERROR__CODE__NOT_FOUND, "no term 'nose'");
  c.term.name = "reach";
  double target[2] = {0, 0};
  c.term.target = target;
  c.term.n_target = 2;
  expect_refusal(&c, SINEW__V1__ERROR__CODE__INVALID, "allowed is 3");
  c.term.n_target = 0;
  c.term.weight = 5e9;
  expect_refusal(&c, SINEW__V1__ERROR__CODE__INVALID,
                 "weight of 'reach': 5e+09 is out of bounds, allowed is 0 to 1e+09");
  c.term.weight = 2.5;
  c.session.has_latency_case = SINEW__V1__SESSION_SETTINGS__HAS_LATENCY_LATENCY;
  c.session.latency = 9;
  expect_refusal(&c, SINEW__V1__ERROR__CODE__INVALID, "latency: 9 is out of bounds, allowed is 0 to ");
  c.session.latency = 0;
  c.session.lease = 0;
  expect_refusal(&c, SINEW__V1__ERROR__CODE__INVALID,
                 "lease: 0 is out of bounds, allowed is 0.1 to 3600 s, lease_seconds of sinewd");
  c.session.lease = 60;
  c.planner.has_adam_rate_case = SINEW__V1__PLANNER_SETTINGS__HAS_ADAM_RATE_ADAM_RATE;
  c.planner.adam_rate = 1e11;
  expect_refusal(&c, SINEW__V1__ERROR__CODE__INVALID, "adam_rate: 1e+11 is out of bounds, allowed is 1e-09 to 10");
  c.planner.adam_rate = 0.01;

  Sinew__V1__Reply *r = get_config(c.set.session);
  c.planner.has_horizon_case = SINEW__V1__PLANNER_SETTINGS__HAS_HORIZON_HORIZON;
  c.planner.horizon = r->get_config->planner->horizon + 1;
  expect_refusal(&c, SINEW__V1__ERROR__CODE__STATE, "horizon");
  c.planner.horizon = r->get_config->planner->horizon;
  sn_test_done(r);
  c.planner.candidates = 70000;
  expect_refusal(&c, SINEW__V1__ERROR__CODE__INVALID, "candidates");
  r = get_config(c.set.session);
  assert_int_equal(r->get_config->version, 2);
  assert_int_equal(r->get_config->planner->candidates, 17);
  sn_test_done(r);
}

// What is in force can be sent back as it came, and takes back what was changed in between.
static void test_config_sent_back(void **state) {
  (void)state;
  Change c;
  change_init(&c, sn_test_open(&client, "arm_reach", 0, NULL));
  sn_test_done(SN_TEST_REPLY(set_config, SET_CONFIG, &c.set));
  Sinew__V1__Reply *r = get_config(c.set.session);
  assert_true(r->get_config->terms[0]->own_target && r->get_config->terms[0]->n_target == 0);

  double goal[3] = {0.4, 0, 1.3};
  c.set.planner = NULL;
  c.set.settings = NULL;
  c.term.weight = 7;
  c.term.target = goal;
  c.term.n_target = 3;
  Sinew__V1__Reply *changed = SN_TEST_REPLY(set_config, SET_CONFIG, &c.set);
  Sinew__V1__TermSettings *reach = changed->set_config->terms[0];
  assert_true(reach->weight == 7 && !reach->own_target && reach->n_target == 3);
  assert_memory_equal(reach->target, goal, sizeof goal);
  sn_test_done(changed);

  c.set.planner = r->get_config->planner;
  c.set.settings = r->get_config->session;
  c.set.terms = r->get_config->terms;
  c.set.n_terms = r->get_config->n_terms;
  changed = SN_TEST_REPLY(set_config, SET_CONFIG, &c.set);
  reach = changed->set_config->terms[0];
  assert_true(reach->weight == 2.5 && reach->own_target && reach->n_target == 0);
  assert_int_equal(changed->set_config->version, 4);
  sn_test_done(changed);
  sn_test_done(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_config),
      cmocka_unit_test(test_config_refused),
      cmocka_unit_test(test_config_sent_back),
  };
  return cmocka_run_group_tests(tests, sn_test_group_setup, sn_test_group_teardown);
}
