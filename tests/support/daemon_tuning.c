#include "tests/support/daemon_tuning.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

void sn_test_change_begin(SnTestChange *c, uint64_t session) {
  *c = (SnTestChange){.in = SINEW__V1__SET_CONFIG_REQUEST__INIT,
                      .planner = SINEW__V1__PLANNER_SETTINGS__INIT,
                      .session = SINEW__V1__SESSION_SETTINGS__INIT,
                      .term = {SINEW__V1__TERM_SETTINGS__INIT, SINEW__V1__TERM_SETTINGS__INIT}};
  c->in.session = session;
  c->in.planner = &c->planner;
  c->in.settings = &c->session;
  c->in.terms = c->terms;
  for (int i = 0; i < 2; i++) c->terms[i] = &c->term[i];
}

static void set_candidates(SnTestChange *c, unsigned n) {
  c->planner.has_candidates_case = SINEW__V1__PLANNER_SETTINGS__HAS_CANDIDATES_CANDIDATES;
  c->planner.candidates = n;
}
static void set_noise_scale(SnTestChange *c, double x) {
  c->planner.has_noise_scale_case = SINEW__V1__PLANNER_SETTINGS__HAS_NOISE_SCALE_NOISE_SCALE;
  c->planner.noise_scale = x;
}
static void set_time_to_live(SnTestChange *c, double x) {
  c->session.has_time_to_live_case = SINEW__V1__SESSION_SETTINGS__HAS_TIME_TO_LIVE_TIME_TO_LIVE;
  c->session.time_to_live = x;
}
void sn_test_change_weight(SnTestChange *c, int i, char *term, double x) {
  c->term[i].name = term;
  c->term[i].has_weight_case = SINEW__V1__TERM_SETTINGS__HAS_WEIGHT_WEIGHT;
  c->term[i].weight = x;
  c->term[i].has_terminal_weight_case = SINEW__V1__TERM_SETTINGS__HAS_TERMINAL_WEIGHT_TERMINAL_WEIGHT;
  c->term[i].terminal_weight = x;
  if (c->in.n_terms < (size_t)i + 1) c->in.n_terms = (size_t)i + 1;
}
void sn_test_change_target(SnTestChange *c, int i, size_t n, double x) {
  for (size_t k = 0; k < 3; k++) c->target[k] = x;
  c->term[i].target = c->target;
  c->term[i].n_target = n;
}

// Version v has these values, all of them functions of one number.
enum { NUMBERS = 40 };
int sn_test_number(uint64_t version) { return (int)(version * 7 % NUMBERS); }
static unsigned candidates_of(int number) { return 4 + (unsigned)number; }
static double noise_of(int number) { return 0.05 + 0.001 * number; }
static double weight_of(int number) { return ldexp(1, number % 8); }
double sn_test_life(int number) { return 1 + 0.01 * number; }

void sn_test_change_fill(SnTestChange *c, uint64_t session, int number) {
  sn_test_change_begin(c, session);
  set_candidates(c, candidates_of(number));
  set_noise_scale(c, noise_of(number));
  set_time_to_live(c, sn_test_life(number));
  sn_test_change_weight(c, 0, "reach", weight_of(number));
}

Sinew__V1__Request sn_test_change_request(SnTestChange *c) {
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_SET_CONFIG;
  request.set_config = &c->in;
  return request;
}

void sn_test_change_expect(const Sinew__V1__Config *config, uint64_t version, int number) {
  assert_int_equal(config->version, version);
  assert_int_equal(config->planner->candidates, candidates_of(number));
  assert_true(config->planner->noise_scale == noise_of(number));
  assert_true(config->session->time_to_live == sn_test_life(number));
  assert_true(config->terms[0]->weight == weight_of(number) && config->terms[0]->terminal_weight == weight_of(number));
}

// A valid change of something else, spoilt by one thing: nothing of it may take effect.
enum { SPOILT = 12 };
static const char *spoil(SnTestChange *c, int kind) {
  set_candidates(c, 3);
  set_noise_scale(c, 9);
  sn_test_change_weight(c, 0, "reach", 1000);
  switch (kind % SPOILT) {
    case 0:
      set_candidates(c, 1u << 14);
      return "candidates";
    case 1:
      set_candidates(c, 0);
      return "candidates";
    case 2:
      set_noise_scale(c, 500);
      return "noise_scale";
    case 3:
      set_noise_scale(c, NAN);
      return "noise_scale";
    case 4:
      sn_test_change_weight(c, 1, "nosuch", 1);
      return "no term 'nosuch'";
    case 5:
      sn_test_change_weight(c, 0, "reach", -1);
      return "weight";
    case 6:
      sn_test_change_target(c, 0, 2, 0);
      return "2 numbers";
    case 7:
      sn_test_change_target(c, 0, 3, INFINITY);
      return "target[0]";
    case 8:
      sn_test_change_target(c, 0, 3, 1);
      c->term[0].has_own_target_case = SINEW__V1__TERM_SETTINGS__HAS_OWN_TARGET_OWN_TARGET;
      c->term[0].own_target = true;
      return "exclude each other";
    case 9:
      c->planner.has_horizon_case = SINEW__V1__PLANNER_SETTINGS__HAS_HORIZON_HORIZON;
      c->planner.horizon = 20;
      return "horizon";
    case 10:
      c->planner.has_noise_case = SINEW__V1__PLANNER_SETTINGS__HAS_NOISE_NOISE;
      c->planner.noise = "mauve";
      return "mauve";
    default:
      c->session.has_latency_case = SINEW__V1__SESSION_SETTINGS__HAS_LATENCY_LATENCY;
      c->session.latency = 5;
      return "latency";
  }
}

// Plans while tuning goes on: all that a plan says must be of one version. The state is always the same and `reach` the
// only term, so its cost is a constant times a power of two: exact.
static double reach_now;
static uint64_t tuned_from;  // versions from here on have the values above
static void check_untorn(const Sinew__V1__Plan *plan) {
  if (plan->config_version < tuned_from) return;
  const int number = sn_test_number(plan->config_version);
  assert_true(plan->candidates <= candidates_of(number));
  assert_true(plan->time_to_live == sn_test_life(number));
  if (reach_now == 0) reach_now = plan->cost_now / weight_of(number);
  if (plan->cost_now != reach_now * weight_of(number))
    fail_msg("version %d: cost %g, wanted %g", (int)plan->config_version, plan->cost_now,
             reach_now * weight_of(number));
}

Sinew__V1__Reply *sn_test_stream_config(SnTestStream *s, uint64_t version) {
  Sinew__V1__GetConfigRequest in = SINEW__V1__GET_CONFIG_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  in.session = s->session;
  in.version = version;
  request.body_case = SINEW__V1__REQUEST__BODY_GET_CONFIG;
  request.get_config = &in;
  return sn_test_stream_ask(s, &request);
}

// Waits for a plan that was made with at least that version. Now and then the daemon is told what has been read: it
// holds back what a client with many unread plans does not need.
static void await_version(SnTestStream *s, Sinew__V1__State *x, uint64_t version) {
  double told = sn_clock_now();
  for (double until = told + 60; s->version < version;) {
    assert_true(sn_clock_now() < until);
    assert_null(sn_test_stream_read(s, 0.001));
    if (sn_clock_now() - told < 0.5) continue;
    told = sn_clock_now();
    sn_test_stream_state(s, x, (int64_t)s->sequence);
  }
}

void sn_test_tuning_storm(SnTestClient *client, char *planner, int messages) {
  enum { EACH = 20 };  // so many changes until a plan that was made with one of them is waited for
  SnTestChange c;
  Sinew__V1__Reply *opened, *r;
  SnTestStream s = {.c = client, .session = sn_test_open(client, "arm_reach", 1, &opened)};
  // Version 2: one term alone has weight.
  sn_test_change_begin(&c, s.session);
  c.planner.has_planner_case = SINEW__V1__PLANNER_SETTINGS__HAS_PLANNER_PLANNER;
  c.planner.planner = planner;
  sn_test_change_weight(&c, 0, "speed", 0);
  sn_test_change_weight(&c, 1, "effort", 0);
  c.term[1].has_terminal_weight_case = c.term[0].has_terminal_weight_case = 0;
  Sinew__V1__Request request = sn_test_change_request(&c);
  r = sn_test_stream_ask(&s, &request);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_SET_CONFIG);
  sn_test_done(r);
  uint64_t version = 2;
  tuned_from = 3;
  reach_now = 0;
  s = sn_test_stream_start(client, s.session, 30, 0.2);
  s.check = check_untorn;
  sn_test_stream_state(&s, opened->open->initial, -1);
  for (int i = 0; i < messages; i++) {
    if (i % EACH == 0) {
      sn_test_stream_state(&s, opened->open->initial, (int64_t)s.sequence);
      if (i > 0) await_version(&s, opened->open->initial, version - EACH);
    }
    // Invalid, on the values in force.
    sn_test_change_begin(&c, s.session);
    const char *word = spoil(&c, i);
    request = sn_test_change_request(&c);
    sn_test_expect_error(sn_test_stream_ask(&s, &request),
                         word[0] == 'n' && word[1] == 'o' && word[2] == ' ' ? SINEW__V1__ERROR__CODE__NOT_FOUND
                         : i % SPOILT == 0                                  ? SINEW__V1__ERROR__CODE__LIMIT
                         : i % SPOILT == 9                                  ? SINEW__V1__ERROR__CODE__STATE
                                                                            : SINEW__V1__ERROR__CODE__INVALID,
                         word);
    // Valid.
    version++;
    sn_test_change_fill(&c, s.session, sn_test_number(version));
    request = sn_test_change_request(&c);
    r = sn_test_stream_ask(&s, &request);
    if (r->body_case == SINEW__V1__REPLY__BODY_ERROR) fail_msg("%s", r->error->text);
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_SET_CONFIG);
    sn_test_change_expect(r->set_config, version, sn_test_number(version));
    sn_test_done(r);
    if (i % 10) continue;
    r = sn_test_stream_config(&s, 0);
    sn_test_change_expect(r->get_config, version, sn_test_number(version));
    sn_test_done(r);
  }
  await_version(&s, opened->open->initial, version);
  print_message("%d valid and %d invalid changes, %d plans streamed meanwhile\n", messages, messages, s.plans);
  assert_true(s.version == version && s.plans > messages / EACH / 2 && reach_now > 0);
  sn_test_stream_request(&s, true, 0, 0);
  sn_test_stream_end(&s, SINEW__V1__STREAM_REPLY__END__STOPPED, 10);
  sn_test_done(opened);
}
