#include "tests/support/daemon_kept.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"
#include "tests/support/daemon_tuning.h"

enum { ARGS_MAX = 20 };

static void start(SnTestDaemon *d, const char *const *args) {
  char folder[100];
  const char *all[ARGS_MAX + 2] = {folder};
  snprintf(folder, sizeof folder, "--state=%s/state", d->folder);
  for (int i = 0; args && args[i] && i < ARGS_MAX; i++) all[i + 1] = args[i];
  sn_test_daemon_start(d, all);
}

void sn_test_kept_start(SnTestDaemon *d, SnTestClient *c, const char *const *args) {
  if (!*d->folder) sn_test_daemon_prepare(d);
  start(d, args);
  if (c) sn_test_connect(c, d->endpoint);
}

void sn_test_kept_restart(SnTestDaemon *d, int signal, const char *const *args) {
  assert_int_equal(sn_test_daemon_stop(d, signal), signal == SIGKILL ? -1 : 0);
  start(d, args);
}

Sinew__V1__Reply *sn_test_ask_kept(SnTestClient *c, Sinew__V1__Request *request) {
  for (double until = sn_clock_now() + 60;; usleep(5000)) {
    Sinew__V1__Reply *reply = sn_test_request(c, request);
    if (reply->body_case != SINEW__V1__REPLY__BODY_ERROR || reply->error->code != SINEW__V1__ERROR__CODE__RESTORING ||
        sn_clock_now() > until)
      return reply;
    sn_test_done(reply);
  }
}

Sinew__V1__Reply *sn_test_expect_kept(SnTestClient *c, Sinew__V1__Request *request, Sinew__V1__Reply__BodyCase body) {
  Sinew__V1__Reply *reply = sn_test_ask_kept(c, request);
  if (reply->body_case == SINEW__V1__REPLY__BODY_ERROR) fail_msg("error: %s", reply->error->text);
  assert_int_equal(reply->body_case, body);
  return reply;
}

Sinew__V1__Reply *sn_test_open_named(SnTestClient *c, char *name, uint64_t seed, Sinew__V1__PlannerSettings *planner) {
  Sinew__V1__OpenRequest in = SINEW__V1__OPEN_REQUEST__INIT;
  in.task = "arm_reach";
  in.name = name;
  in.seed = seed;
  in.planner = planner;
  return sn_test_expect_kept(c, SN_TEST_MESSAGE(open, OPEN, &in), SINEW__V1__REPLY__BODY_OPEN);
}

uint64_t sn_test_kept_tune(SnTestClient *c, uint64_t session, double x) {
  SnTestChange change;
  sn_test_change_begin(&change, session);
  sn_test_change_weight(&change, 0, "reach", x);
  Sinew__V1__Request request = sn_test_change_request(&change);
  Sinew__V1__Reply *reply = sn_test_expect_kept(c, &request, SINEW__V1__REPLY__BODY_SET_CONFIG);
  const uint64_t version = reply->set_config->version;
  sn_test_done(reply);
  return version;
}

double sn_test_kept_weight(SnTestClient *c, uint64_t session, uint64_t *version) {
  Sinew__V1__GetConfigRequest in = SINEW__V1__GET_CONFIG_REQUEST__INIT;
  in.session = session;
  Sinew__V1__Reply *reply =
      sn_test_expect_kept(c, SN_TEST_MESSAGE(get_config, GET_CONFIG, &in), SINEW__V1__REPLY__BODY_GET_CONFIG);
  double x = -1;
  for (size_t i = 0; i < reply->get_config->n_terms; i++)
    if (!strcmp(reply->get_config->terms[i]->name, "reach")) x = reply->get_config->terms[i]->weight;
  *version = reply->get_config->version;
  sn_test_done(reply);
  return x;
}
