// Sessions of keys over a restart: they belong to the key that opened them, count in its quota, and follow the list as
// it is when sinewd starts again.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"
#include "tests/support/daemon_keys.h"
#include "tests/support/daemon_kept.h"
#include "tests/support/daemon_tuning.h"

enum { LEFT, RIGHT, ADMIN, NKEYS };

static SnTestKeyed keyed;
static SnTestKey key[NKEYS];
static SnTestClient c[NKEYS];

// Writes the list: what stands behind each key, "" to leave it out.
static void allow(const char *left, const char *right) {
  char text[1000];
  int n = snprintf(text, sizeof text, "%s admin name=admin\n", key[ADMIN].public);
  if (*left) n += snprintf(text + n, sizeof text - (size_t)n, "%s %s name=left\n", key[LEFT].public, left);
  if (*right) snprintf(text + n, sizeof text - (size_t)n, "%s %s name=right\n", key[RIGHT].public, right);
  sn_test_write_mode(keyed.allow, text, 0600);
}

static int setup(void **state) {
  (void)state;
  keyed = (SnTestKeyed){.keeps = true};
  sn_test_keyed_prepare(&keyed);
  for (int i = 0; i < NKEYS; i++) sn_test_key(&key[i]);
  allow("tune sessions=2", "tune sessions=3");
  sn_test_keyed_start(&keyed);
  for (int i = 0; i < NKEYS; i++) sn_test_connect_key(&c[i], &keyed, &key[i]);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  for (int i = 0; i < NKEYS; i++) sn_test_disconnect(&c[i]);
  sn_test_keyed_stop(&keyed);
  return 0;
}

static uint64_t open_named(int who, char *name) {
  Sinew__V1__Reply *reply = sn_test_open_named(&c[who], name, 1, sn_test_sampling());
  const uint64_t session = reply->open->session;
  sn_test_done(reply);
  return session;
}

static void expect_refused(int who, char *name, Sinew__V1__Error__Code code, const char *word) {
  Sinew__V1__OpenRequest in = SINEW__V1__OPEN_REQUEST__INIT;
  in.task = "arm_reach";
  in.name = name;
  sn_test_expect_error(sn_test_ask_kept(&c[who], SN_TEST_MESSAGE(open, OPEN, &in)), code, word);
}

static void expect_gone(int who, uint64_t session) {
  Sinew__V1__GetConfigRequest in = SINEW__V1__GET_CONFIG_REQUEST__INIT;
  in.session = session;
  sn_test_expect_error(sn_test_ask_kept(&c[who], SN_TEST_MESSAGE(get_config, GET_CONFIG, &in)),
                       SINEW__V1__ERROR__CODE__NOT_FOUND, "no session");
}

static void close_session(int who, uint64_t session) {
  Sinew__V1__CloseRequest in = SINEW__V1__CLOSE_REQUEST__INIT;
  in.session = session;
  sn_test_done(sn_test_expect_kept(&c[who], SN_TEST_MESSAGE(close, CLOSE, &in), SINEW__V1__REPLY__BODY_CLOSE));
}

static bool is_refused(uint64_t session) {
  char path[256];
  struct stat st;
  snprintf(path, sizeof path, "%s/state/refused/%llu.session", keyed.daemon.folder, (unsigned long long)session);
  return stat(path, &st) == 0;
}

// After either end each key has its own sessions, also under the same name, and nobody else's; its quota is as full as
// it was.
static void test_owners_and_quotas(void **state) {
  (void)state;
  uint64_t version;
  const uint64_t a = open_named(LEFT, "arm"), b = open_named(LEFT, "hand"), other = open_named(RIGHT, "arm");
  assert_true(a != other);
  sn_test_kept_tune(&c[LEFT], a, 5);
  sn_test_kept_tune(&c[RIGHT], other, 6);
  for (int round = 0; round < 2; round++) {
    sn_test_keyed_restart(&keyed, round ? SIGKILL : SIGTERM);
    assert_true(sn_test_kept_weight(&c[LEFT], a, &version) == 5);
    assert_true(sn_test_kept_weight(&c[RIGHT], other, &version) == 6);
    assert_true(sn_test_kept_weight(&c[ADMIN], a, &version) == 5);
    expect_gone(RIGHT, a);
    expect_gone(LEFT, other);
    assert_true(open_named(LEFT, "arm") == a && open_named(RIGHT, "arm") == other);
    // None was counted twice, by the restart or by being asked for by its name.
    expect_refused(LEFT, "third", SINEW__V1__ERROR__CODE__LIMIT, "this key has 2 sessions");
  }
  close_session(LEFT, b);
  const uint64_t third = open_named(LEFT, "third");
  expect_refused(LEFT, "fourth", SINEW__V1__ERROR__CODE__LIMIT, "this key has 2 sessions");
  sn_test_keyed_restart(&keyed, SIGTERM);
  assert_true(open_named(LEFT, "third") == third);
  expect_gone(LEFT, b);
}

// The list that is read at the start counts: a quota that was lowered, a role that is not enough, a key that is gone.
static void test_other_list(void **state) {
  (void)state;
  uint64_t version;
  const uint64_t left[2] = {open_named(LEFT, "arm"), open_named(LEFT, "hand")}, right = open_named(RIGHT, "arm");
  assert_int_equal(sn_test_daemon_stop(&keyed.daemon, SIGTERM), 0);
  allow("tune sessions=1", "tune sessions=3");
  sn_test_keyed_start(&keyed);
  assert_true(sn_test_kept_weight(&c[RIGHT], right, &version) > 0);
  assert_true(sn_test_daemon_logged(&keyed.daemon, "this key has 1 sessions; more are not allowed"));
  const int stays = is_refused(left[0]) ? 1 : 0;
  assert_true(is_refused(left[!stays]) && !is_refused(left[stays]));
  assert_true(sn_test_kept_weight(&c[LEFT], left[stays], &version) > 0);

  // Another one of the same name is its owner's alone, once it may have sessions again.
  assert_int_equal(sn_test_daemon_stop(&keyed.daemon, SIGTERM), 0);
  allow("watch", "");
  sn_test_keyed_start(&keyed);
  assert_int_equal(sn_test_count_logged(&keyed.daemon, "may have no session"), 2);
  assert_true(is_refused(left[stays]) && is_refused(right));
  expect_gone(ADMIN, right);
  assert_int_equal(sn_test_daemon_stop(&keyed.daemon, SIGTERM), 0);
  allow("tune sessions=2", "tune sessions=3");
  sn_test_keyed_start(&keyed);
  expect_gone(LEFT, left[stays]);
  sn_test_disconnect(&c[RIGHT]);  // libzmq does not try again when a key was turned away
  sn_test_connect_key(&c[RIGHT], &keyed, &key[RIGHT]);
  assert_true(open_named(RIGHT, "arm") != right);
  assert_true(open_named(LEFT, "one") != 0 && open_named(LEFT, "two") != 0);  // refused ones count no more
}

// A role is as the list has it then: what the key may no more it may not at its old sessions either.
static void test_other_role(void **state) {
  (void)state;
  SnTestChange change;
  uint64_t version;
  const uint64_t a = open_named(LEFT, "arm");
  assert_int_equal(sn_test_daemon_stop(&keyed.daemon, SIGTERM), 0);
  allow("plan", "");
  sn_test_keyed_start(&keyed);
  assert_true(sn_test_kept_weight(&c[LEFT], a, &version) > 0);
  sn_test_change_begin(&change, a);
  sn_test_change_weight(&change, 0, "reach", 9);
  Sinew__V1__Request request = sn_test_change_request(&change);
  sn_test_expect_error(sn_test_ask_kept(&c[LEFT], &request), SINEW__V1__ERROR__CODE__PERMISSION, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_owners_and_quotas, setup, teardown),
                                     cmocka_unit_test_setup_teardown(test_other_list, setup, teardown),
                                     cmocka_unit_test_setup_teardown(test_other_role, setup, teardown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
