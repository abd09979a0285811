#include "tests/support/daemon_device.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

void sn_test_server_begin(SnTestServer *s, const char *const *args) {
  *s = (SnTestServer){0};
  sn_test_daemon_start(&s->daemon, args);
  sn_test_connect(&s->client, s->daemon.endpoint);
}

void sn_test_server_device(SnTestServer *s, const char *fault) {
  char text[64];
  snprintf(text, sizeof text, "--backend-fault=%s", fault);
  sn_test_server_begin(s, (const char *const[]){"--backend=" SN_TEST_DEVICE, SN_TEST_DEVICE_FOLDER, text, NULL});
}

void sn_test_server_end(SnTestServer *s) {
  sn_test_disconnect(&s->client);
  assert_int_equal(sn_test_daemon_stop(&s->daemon, SIGTERM), 0);
  sn_test_daemon_remove(&s->daemon);
}

uint64_t sn_test_open_with(SnTestClient *c, char *task, char *planner, uint64_t seed, Sinew__V1__Reply **opened) {
  Sinew__V1__PlannerSettings settings = SINEW__V1__PLANNER_SETTINGS__INIT;
  settings.has_planner_case = SINEW__V1__PLANNER_SETTINGS__HAS_PLANNER_PLANNER;
  settings.planner = planner;
  return sn_test_open_by(c, task, seed, &settings, opened);
}

void sn_test_send_iterations(SnTestClient *c, uint64_t session, Sinew__V1__State *x, uint32_t iterations) {
  Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  plan.session = session;
  plan.state = x;
  plan.want_states = true;
  plan.has_iterations_case = SINEW__V1__PLAN_REQUEST__HAS_ITERATIONS_ITERATIONS;
  plan.iterations = iterations;
  request.body_case = SINEW__V1__REQUEST__BODY_PLAN;
  request.plan = &plan;
  sn_test_send(c, &request);
}

Sinew__V1__Reply *sn_test_take_plan(SnTestClient *c) {
  Sinew__V1__Reply *r = sn_test_receive(c, 60);
  assert_non_null(r);
  if (r->body_case == SINEW__V1__REPLY__BODY_ERROR) fail_msg("%s", r->error->text);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
  assert_int_equal(r->plan->status, SINEW__V1__PLAN__STATUS__OK);
  assert_true(r->plan->cost_after <= r->plan->cost_before);
  return r;
}

Sinew__V1__Reply *sn_test_plan_iterations(SnTestClient *c, uint64_t session, Sinew__V1__State *x, uint32_t iterations) {
  sn_test_send_iterations(c, session, x, iterations);
  return sn_test_take_plan(c);
}

Sinew__V1__Reply *sn_test_health(SnTestClient *c) {
  Sinew__V1__HealthRequest in = SINEW__V1__HEALTH_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_HEALTH;
  request.health = &in;
  Sinew__V1__Reply *r = sn_test_request(c, &request);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_HEALTH);
  return r;
}

void sn_test_follow(Sinew__V1__State *x, const Sinew__V1__Plan *plan, size_t row) {
  const Sinew__V1__Trajectory *t = plan->states;
  assert_true(t && t->n_time > row);
  x->time = t->time[row];
  memcpy(x->qpos, t->qpos + row * x->n_qpos, x->n_qpos * sizeof *x->qpos);
  memcpy(x->qvel, t->qvel + row * x->n_qvel, x->n_qvel * sizeof *x->qvel);
  if (x->n_act) memcpy(x->act, t->act + row * x->n_act, x->n_act * sizeof *x->act);
}
