// sinewd whose device is lost: the emulator's library fails when it is told to.
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/support/daemon_device.h"
#include "tests/support/daemon_group.h"

static int count_in_log(const SnTestDaemon *d, const char *word) {
  char line[5000];
  int n = 0;
  FILE *f = fopen(d->log, "r");
  assert_non_null(f);
  while (fgets(line, sizeof line, f)) n += strstr(line, word) != NULL;
  fclose(f);
  return n;
}

static void expect_degraded(SnTestServer *s, unsigned sessions) {
  Sinew__V1__Reply *r = sn_test_health(&s->client);
  assert_int_equal(r->health->state, SINEW__V1__HEALTH__STATE__DEGRADED);
  assert_non_null(strstr(r->health->text, "on the CPU"));
  assert_true(r->health->device->lost && strlen(r->health->device->reason) > 0 && r->health->device->lost_for >= 0);
  assert_non_null(strstr(r->health->text, r->health->device->reason));
  sn_test_done(r);
  r = sn_test_statistics(&s->client, 0);
  assert_true(r->statistics->device->lost && r->statistics->device->lost_for > 0);
  assert_true(r->statistics->sessions_on_device == 0 && r->statistics->sessions_on_cpu == sessions);
  for (unsigned i = 0; i < sessions; i++) assert_string_equal(r->statistics->sessions[i]->backend, "cpu");
  sn_test_done(r);
}

// Exit status of `sinewctl health`.
static int check_health(const SnTestServer *s) {
  char command[400];
  snprintf(command, sizeof command, "%s/sinewctl --endpoint %s health >/dev/null", sn_test_binary_folder(),
           s->daemon.endpoint);
  const int status = system(command);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Sessions go on on the CPU, new ones are opened there, and everybody is told. at_once: the device never made a plan.
static void lose_device(char *planner, const char *fault, bool at_once) {
  enum { PLANS = 400, AFTER = 4, SESSIONS = 2 };
  SnTestServer s;
  uint64_t id[SESSIONS];
  Sinew__V1__Reply *opened[SESSIONS], *r;
  sn_test_server_device(&s, fault);
  for (int i = 0; i < SESSIONS; i++)
    id[i] = sn_test_open_with(&s.client, "arm_reach", planner, 1 + (uint64_t)i, &opened[i]);
  assert_int_equal(check_health(&s), 0);
  int before = 0, after = 0;
  for (int k = 0; k < PLANS && after < AFTER; k++) {
    for (int i = 0; i < SESSIONS; i++) {
      r = sn_test_plan_iterations(&s.client, id[i], opened[i]->open->initial, 3);
      if (!r->plan->device_lost) {
        assert_string_equal(r->plan->backend, SN_TEST_DEVICE);
        assert_int_equal(after, 0);
        before++;
      } else {
        assert_string_equal(r->plan->backend, "cpu");
        assert_int_equal(r->plan->iterations, 3);
        after++;
      }
      sn_test_follow(opened[i]->open->initial, r->plan, 4);
      sn_test_done(r);
    }
  }
  print_message("%s, %s: %d plans on the device, then %d on the cpu\n", planner, fault, before, after);
  assert_true((before == 0) == at_once && after >= AFTER);
  expect_degraded(&s, SESSIONS);
  assert_int_equal(check_health(&s), 2);
  assert_int_equal(count_in_log(&s.daemon, "device-lost"), 1);

  // Opened, and reset to another seed, after the loss.
  Sinew__V1__Reply *late;
  const uint64_t other = sn_test_open_with(&s.client, "arm_reach", planner, 9, &late);
  r = sn_test_plan_iterations(&s.client, other, late->open->initial, 2);
  assert_string_equal(r->plan->backend, "cpu");
  assert_true(r->plan->device_lost);
  sn_test_done(r);
  Sinew__V1__ResetRequest reset = SINEW__V1__RESET_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  reset.session = id[0];
  reset.has_seed_case = SINEW__V1__RESET_REQUEST__HAS_SEED_SEED;
  reset.seed = 12;
  request.body_case = SINEW__V1__REQUEST__BODY_RESET;
  request.reset = &reset;
  r = sn_test_request(&s.client, &request);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_RESET);
  sn_test_done(sn_test_plan_iterations(&s.client, id[0], r->reset->initial, 2));
  sn_test_done(r);
  expect_degraded(&s, SESSIONS + 1);
  assert_int_equal(count_in_log(&s.daemon, "device-lost"), 1);
  sn_test_done(late);
  for (int i = 0; i < SESSIONS; i++) sn_test_done(opened[i]);
  sn_test_server_end(&s);
}

static void test_loss_while_adam_refines(void **state) {
  (void)state;
  static const char *const fault[] = {"launch:30", "launch:31", "launch:40"};
  lose_device("adam", "launch:1", true);
  for (int i = 0; i < 3; i++) lose_device("adam", fault[i], false);
}

static void test_loss_while_sampling(void **state) {
  (void)state;
  lose_device("sampling", "launch:1", true);
  lose_device("sampling", "launch:1000", false);
}

// A daemon that shall end with its device does so after the plans under way are answered, and its successor has it
// back.
static void test_loss_ends_the_daemon(void **state) {
  (void)state;
  SnTestServer s;
  Sinew__V1__Reply *opened, *r;
  sn_test_server_begin(&s, (const char *const[]){"--backend=" SN_TEST_DEVICE, SN_TEST_DEVICE_FOLDER,
                                                 "--backend-fault=launch:100", "--device-loss=exit", NULL});
  const uint64_t id = sn_test_open_with(&s.client, "arm_reach", "sampling", 1, &opened);
  bool lost = false;
  for (int k = 0; k < 100 && !lost; k++) {
    sn_test_send_iterations(&s.client, id, opened->open->initial, 3);
    r = sn_test_receive(&s.client, 60);
    assert_non_null(r);
    lost = r->body_case == SINEW__V1__REPLY__BODY_ERROR || r->plan->device_lost;
    if (r->body_case == SINEW__V1__REPLY__BODY_ERROR)
      assert_int_equal(r->error->code, SINEW__V1__ERROR__CODE__SHUTTING_DOWN);
    sn_test_done(r);
  }
  assert_true(lost);
  assert_int_equal(sn_test_daemon_wait(&s.daemon), 1);
  assert_true(sn_test_daemon_logged(&s.daemon, "device_loss is 'exit'"));
  sn_test_disconnect(&s.client);
  sn_test_daemon_remove(&s.daemon);
  sn_test_server_begin(
      &s, (const char *const[]){"--backend=" SN_TEST_DEVICE, SN_TEST_DEVICE_FOLDER, "--device-loss=exit", NULL});
  r = sn_test_health(&s.client);
  assert_int_equal(r->health->state, SINEW__V1__HEALTH__STATE__READY);
  assert_false(r->health->device->lost);
  sn_test_done(r);
  sn_test_done(opened);
  sn_test_server_end(&s);
}

// Memory that is not there when a session is opened, whichever piece it is: the session is refused, the next one is
// not.
static void test_every_allocation_fails_once(void **state) {
  (void)state;
  enum { MOST = 100 };
  int failed = 0;
  for (bool refused = true; refused && failed < MOST;) {
    SnTestServer s;
    char fault[32];
    snprintf(fault, sizeof fault, "alloc:%d", failed + 1);
    sn_test_server_device(&s, fault);
    Sinew__V1__OpenRequest open = SINEW__V1__OPEN_REQUEST__INIT;
    Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
    open.task = "arm_reach";
    open.planner = sn_test_sampling();
    request.body_case = SINEW__V1__REQUEST__BODY_OPEN;
    request.open = &open;
    Sinew__V1__Reply *r = sn_test_request(&s.client, &request);
    refused = r->body_case == SINEW__V1__REPLY__BODY_ERROR;
    if (failed == 0) print_message("%s\n", refused ? r->error->text : "not refused");
    Sinew__V1__Reply *opened = r;
    if (refused) {
      failed++;
      sn_test_expect_error(r, SINEW__V1__ERROR__CODE__LIMIT, "model 'arm_reach'");
      sn_test_open_with(&s.client, "arm_reach", "sampling", 1, &opened);
    }
    const uint64_t id = opened->open->session;
    r = sn_test_plan_iterations(&s.client, id, opened->open->initial, 2);
    assert_string_equal(r->plan->backend, SN_TEST_DEVICE);
    sn_test_done(r);
    sn_test_done(opened);
    sn_test_server_end(&s);
  }
  print_message("%d allocations failed once each\n", failed);
  assert_true(failed > 2 && failed < MOST);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_loss_while_adam_refines),
      cmocka_unit_test(test_loss_while_sampling),
      cmocka_unit_test(test_loss_ends_the_daemon),
      cmocka_unit_test(test_every_allocation_fails_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
