// Kept sessions of a sinewd that asks for keys: a name is its key's, and so is what a restart brings back.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"
#include "tests/support/daemon_kept.h"
#include "tests/support/daemon_keys.h"

enum { ONE, TWO, THREE, ADMIN, NKEYS };

static SnTestKeyed keyed;
static SnTestKey key[NKEYS];
static SnTestClient c[NKEYS];

static void write_list(const char *const role[NKEYS]) {
  char text[1000];
  int n = snprintf(text, sizeof text, "# keys\n");
  for (int i = 0; i < NKEYS; i++)
    if (role[i]) n += snprintf(text + n, sizeof text - (size_t)n, "%s %s\n", key[i].public, role[i]);
  sn_test_write_mode(keyed.allow, text, 0600);
}

static int setup(void **state) {
  (void)state;
  sn_test_keyed_prepare(&keyed);
  snprintf(keyed.state, sizeof keyed.state, "%s/state", keyed.daemon.folder);
  for (int i = 0; i < NKEYS; i++) sn_test_key(&key[i]);
  write_list((const char *const[NKEYS]){"tune", "plan", "plan", "admin"});
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

static uint64_t open_named(int who, char *name, bool resumed) {
  Sinew__V1__Reply *r = sn_test_open_named(&c[who], name, 7, NULL);
  const uint64_t id = r->open->session;
  assert_int_equal(r->open->resumed, resumed);
  sn_test_done(r);
  return id;
}

// Whether a key may use a session; if not, there is none for it.
static bool may_use(int who, uint64_t id) {
  Sinew__V1__GetConfigRequest in = SINEW__V1__GET_CONFIG_REQUEST__INIT;
  in.session = id;
  Sinew__V1__Reply *r = sn_test_ask_kept(&c[who], SN_TEST_MESSAGE(get_config, GET_CONFIG, &in));
  const bool may = r->body_case == SINEW__V1__REPLY__BODY_GET_CONFIG;
  if (!may) assert_int_equal(r->error->code, SINEW__V1__ERROR__CODE__NOT_FOUND);
  sn_test_done(r);
  return may;
}

static void test_names_are_keys(void **state) {
  (void)state;
  uint64_t id[NKEYS];
  for (int i = 0; i < NKEYS; i++) id[i] = open_named(i, "arm", false);
  for (int i = 0; i < NKEYS; i++)
    for (int k = 0; k < i; k++) assert_true(id[i] != id[k]);
  for (int i = 0; i < NKEYS; i++) assert_true(open_named(i, "arm", true) == id[i]);

  // The next daemon has TWO no more, and THREE may watch alone.
  assert_int_equal(sn_test_daemon_stop(&keyed.daemon, SIGTERM), 0);
  write_list((const char *const[NKEYS]){"plan", NULL, "watch", "admin"});
  sn_test_keyed_start(&keyed);
  assert_int_equal(sn_test_count_logged(&keyed.daemon, "may have no session"), 2);
  assert_true(may_use(ONE, id[ONE]));
  assert_true(may_use(ADMIN, id[ADMIN]));
  assert_true(may_use(ADMIN, id[ONE]));
  assert_false(may_use(ONE, id[ADMIN]));
  assert_false(may_use(ADMIN, id[TWO]));
  assert_false(may_use(ADMIN, id[THREE]));
  assert_true(open_named(ONE, "arm", true) == id[ONE]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_names_are_keys)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
