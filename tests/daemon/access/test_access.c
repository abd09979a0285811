// The list of keys: what it may say, what is refused and with which words, reading it again; and quotas.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/access/access.h"

// Keys with the characters that could be taken for something else.
#define KEY_1 "#aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define KEY_2 "name=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define KEY_3 "0123456789abcdefghijklmnopqrstuvwxyzABCD"

static char path[64];

static int setup(void **state) {
  (void)state;
  strcpy(path, "/tmp/sinew-allow-XXXXXX");
  const int fd = mkstemp(path);
  return fd < 0 || close(fd);
}

static int teardown(void **state) {
  (void)state;
  return unlink(path);
}

static void write_bytes(const char *text, size_t n) {
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  assert_int_equal(fwrite(text, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
  assert_int_equal(chmod(path, 0600), 0);
}

static void write_list(const char *text) { write_bytes(text, strlen(text)); }

static void test_list(void **state) {
  (void)state;
  SnAccess a;
  SnError err = {0};
  write_list("#\n# a comment\n\n" KEY_1 " watch\n  " KEY_2 "\ttune  name=left-arm sessions=3 requests=50.5\r\n" KEY_3
             " admin bytes=1e6 planning=0.25");
  if (sn_access_init(&a, path, &err) != SN_OK) fail_msg("%s", err.text);
  assert_true(a.keys);
  assert_int_equal(a.count, 3);
  assert_int_equal(a.peer[sn_access_find(&a, KEY_1)]->role, SN_ROLE_WATCH);
  const SnPeer *two = a.peer[sn_access_find(&a, KEY_2)], *three = a.peer[sn_access_find(&a, KEY_3)];
  assert_int_equal(two->role, SN_ROLE_TUNE);
  assert_string_equal(two->name, "left-arm");
  assert_true(two->quota.sessions == 3 && two->quota.requests == 50.5 && isinf(two->quota.bytes) && !two->trusted);
  assert_true(three->trusted && three->quota.bytes == 1e6 && three->quota.planning == 0.25);
  assert_true(isinf(three->quota.sessions));
  assert_int_equal(sn_access_find(&a, "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"), -1);
  sn_access_free(&a);
}

static void test_no_list(void **state) {
  (void)state;
  SnAccess a;
  SnError err = {0};
  assert_int_equal(sn_access_init(&a, "", &err), SN_OK);
  assert_false(a.keys);
  assert_true(a.local.trusted && !a.anyone.trusted);
  assert_int_equal(a.local.role, SN_ROLE_ADMIN);
  assert_int_equal(a.anyone.role, SN_ROLE_ADMIN);
  sn_access_free(&a);
}

static void test_mistakes(void **state) {
  (void)state;
  static const char *const bad[][2] = {
      {"short watch\n", ":1: a line begins with a public key"},
      {KEY_1 "x watch\n", ":1: a line begins with a public key"},
      {"\n\n" KEY_1 "\n", ":3: behind the key stands its role"},
      {KEY_1 " root\n", "behind the key stands its role: watch, plan, tune or admin"},
      {KEY_1 " none\n", "behind the key stands its role"},
      {KEY_1 " watch\n" KEY_1 " admin\n", ":2: this key is on the list twice"},
      {KEY_1 " plan sessions=0\n", "'sessions=0'; allowed are"},
      {KEY_1 " plan sessions=1.5\n", "'sessions=1.5'"},
      {KEY_1 " plan requests=-1\n", "'requests=-1'"},
      {KEY_1 " plan bytes=nan\n", "'bytes=nan'"},
      {KEY_1 " plan bytes=inf\n", "'bytes=inf'"},
      {KEY_1 " plan planning=1s\n", "'planning=1s'"},
      {KEY_1 " plan planning=\n", "'planning='"},
      {KEY_1 " plan quick\n", "'quick'"},
      {KEY_1 " plan colour=red\n", "'colour=red'"},
      {KEY_1 " plan name=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n", "of less than 64 bytes"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    SnAccess a;
    SnError err = {0};
    write_list(bad[i][0]);
    assert_int_equal(sn_access_init(&a, path, &err), SN_ERR_FORMAT);
    if (!strstr(err.text, bad[i][1])) fail_msg("'%s' does not say '%s'", err.text, bad[i][1]);
    sn_access_free(&a);
  }
  char line[2000];
  memset(line, ' ', sizeof line);
  memcpy(line, KEY_1 " watch", 46);
  line[sizeof line - 1] = '\0';
  write_list(line);
  SnAccess a;
  SnError err = {0};
  assert_int_equal(sn_access_init(&a, path, &err), SN_ERR_FORMAT);
  assert_non_null(strstr(err.text, "too long"));
  sn_access_free(&a);
}

// What stands behind a zero byte would be passed over: keys, or the limits of one.
static void test_zero_bytes(void **state) {
  (void)state;
  static const char tail[] = KEY_1 " watch\n\0\0\0\0\n", limit[] = KEY_1 " watch\n" KEY_2 " plan\0 requests=1\n",
                    last[] = KEY_1 " watch\n" KEY_2 " plan\0";
  static const struct {
    const char *text;
    size_t n;
  } list[] = {{tail, sizeof tail - 1}, {limit, sizeof limit - 1}, {last, sizeof last - 1}};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    SnAccess a;
    SnError err = {0};
    write_bytes(list[i].text, list[i].n);
    assert_int_equal(sn_access_init(&a, path, &err), SN_ERR_FORMAT);
    if (!strstr(err.text, ":2: the line holds a zero byte")) fail_msg("%zu: '%s'", i, err.text);
    sn_access_free(&a);
  }
}

// All mistakes are said at once.
static void test_two_mistakes(void **state) {
  (void)state;
  SnAccess a;
  SnError err = {0};
  write_list("x\n" KEY_1 " watch\n" KEY_2 " king\n");
  assert_int_equal(sn_access_init(&a, path, &err), SN_ERR_FORMAT);
  assert_non_null(strstr(err.text, ":1: "));
  assert_non_null(strstr(err.text, "\n"));
  assert_non_null(strstr(err.text, ":3: "));
  sn_access_free(&a);
}

// Who can write the list decides who may come in.
static void test_rights_of_the_list(void **state) {
  (void)state;
  SnAccess a;
  SnError err = {0};
  write_list(KEY_1 " watch\n");
  assert_int_equal(chmod(path, 0644), 0);
  assert_int_equal(sn_access_init(&a, path, &err), SN_OK);
  sn_access_free(&a);
  static const unsigned modes[] = {0620, 0602, 0666};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(chmod(path, modes[i]), 0);
    assert_int_equal(sn_access_init(&a, path, &err), SN_ERR_STATE);
    assert_non_null(strstr(err.text, "can be written by other users"));
    sn_access_free(&a);
  }
  if (geteuid() == 0) {  // only root can give a file away
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(chown(path, 54321, 54321), 0);
    assert_int_equal(sn_access_init(&a, path, &err), SN_ERR_STATE);
    assert_non_null(strstr(err.text, "owner 54321"));
    sn_access_free(&a);
    assert_int_equal(chown(path, 0, 0), 0);
  }
  assert_int_equal(sn_access_init(&a, "/tmp", &err), SN_ERR_IO);
  sn_access_free(&a);
  assert_int_equal(sn_access_init(&a, "/proc/self/mem", &err), SN_ERR_IO);  // it can be opened, and not read
  assert_non_null(strstr(err.text, "/proc/self/mem: Input/output error"));
  sn_access_free(&a);
  assert_int_equal(sn_access_init(&a, "/nonexistent/allow", &err), SN_ERR_IO);
  assert_non_null(strstr(err.text, "/nonexistent/allow"));
  sn_access_free(&a);
}

// Writes a list of so many keys.
static void write_many(int n) {
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  for (int i = 0; i < n; i++) fprintf(f, "%040d plan\n", i);
  assert_int_equal(fclose(f), 0);
}

static void test_most_keys(void **state) {
  (void)state;
  SnAccess a;
  SnError err = {0};
  write_many(SN_PEERS);
  if (sn_access_init(&a, path, &err) != SN_OK) fail_msg("%s", err.text);
  assert_int_equal(a.count, SN_PEERS);
  sn_access_free(&a);
  write_many(SN_PEERS + 1);
  assert_int_equal(sn_access_init(&a, path, &err), SN_ERR_FORMAT);
  assert_non_null(strstr(err.text, ":4097: there are too many keys; 4096 are allowed"));
  sn_access_free(&a);
}

// Whoever may do less is told of, wherever his line stands.
static void test_lowered(void **state) {
  (void)state;
  static const char *const lists[][2] = {{KEY_1 " watch\n" KEY_2 " tune\n" KEY_3 " plan\n", "+"},
                                         {KEY_1 " watch\n" KEY_2 " plan\n" KEY_3 " plan\n", "-"},
                                         {KEY_1 " admin\n" KEY_2 " plan\n" KEY_3 " tune\n", "+"},
                                         {KEY_2 " plan\n" KEY_3 " tune\n", "-"},
                                         {KEY_2 " plan\n" KEY_3 " tune\n", "+"},
                                         {KEY_2 " plan\n" KEY_3 " plan\n", "-"}};
  SnAccess a;
  SnError err = {0};
  bool lowered;
  write_list(lists[0][0]);
  assert_int_equal(sn_access_init(&a, path, &err), SN_OK);
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    write_list(lists[i][0]);
    assert_int_equal(sn_access_reload(&a, path, &lowered, &err), SN_OK);
    if (lowered != (*lists[i][1] == '-')) fail_msg("list %zu", i);
  }
  sn_access_free(&a);
}

static void test_reload(void **state) {
  (void)state;
  SnAccess a;
  SnError err = {0};
  bool lowered;
  write_list(KEY_1 " plan\n" KEY_2 " tune sessions=1\n");
  assert_int_equal(sn_access_init(&a, path, &err), SN_OK);
  const SnPeer *one = a.peer[sn_access_find(&a, KEY_1)], *two = a.peer[sn_access_find(&a, KEY_2)];

  write_list(KEY_2 " admin\n" KEY_1 " plan\n" KEY_3 " watch\n");
  assert_int_equal(sn_access_reload(&a, path, &lowered, &err), SN_OK);
  assert_false(lowered);
  assert_ptr_equal(a.peer[sn_access_find(&a, KEY_1)], one);
  assert_true(two->role == SN_ROLE_ADMIN && two->trusted && isinf(two->quota.sessions));

  write_list("nonsense\n");
  assert_int_equal(sn_access_reload(&a, path, &lowered, &err), SN_ERR_FORMAT);
  assert_int_equal(a.count, 3);
  assert_int_equal(two->role, SN_ROLE_ADMIN);

  write_list(KEY_2 " plan\n");
  assert_int_equal(sn_access_reload(&a, path, &lowered, &err), SN_OK);
  assert_true(lowered);
  assert_int_equal(sn_access_find(&a, KEY_1), -1);
  assert_int_equal(one->role, SN_ROLE_NONE);
  assert_true(two->role == SN_ROLE_PLAN && !two->trusted);

  write_list(KEY_1 " plan\n" KEY_2 " plan\n");
  assert_int_equal(sn_access_reload(&a, path, &lowered, &err), SN_OK);
  assert_false(lowered);
  assert_ptr_equal(a.peer[sn_access_find(&a, KEY_1)], one);
  sn_access_free(&a);
}

static SnPeer with_quota(double requests, double bytes, double planning) {
  return (SnPeer){.quota = {INFINITY, requests, bytes, planning}};
}

// So many a second, and a burst of one second's worth.
static void test_requests_a_second(void **state) {
  (void)state;
  char why[200];
  SnPeer p = with_quota(10, INFINITY, INFINITY);
  int taken = 0;
  for (int i = 0; i < 100; i++) taken += sn_quota_request(&p, 1, 5, why, sizeof why);
  assert_int_equal(taken, 10);
  assert_non_null(strstr(why, "10 requests a second"));
  for (int i = 1; i <= 1000; i++) taken += sn_quota_request(&p, 1, 5 + 0.01 * i, why, sizeof why);
  assert_in_range(taken, 108, 110);
}

static void test_bytes_a_second(void **state) {
  (void)state;
  char why[200];
  SnPeer p = with_quota(INFINITY, 1000, INFINITY);
  assert_true(sn_quota_request(&p, 600, 1, why, sizeof why));
  assert_false(sn_quota_request(&p, 600, 1, why, sizeof why));
  assert_non_null(strstr(why, "1000 bytes a second"));
  assert_true(sn_quota_request(&p, 400, 1, why, sizeof why));
  // One that is longer than a second's worth waits until nothing is used, and is paid for.
  assert_false(sn_quota_request(&p, 5000, 1.5, why, sizeof why));
  assert_true(sn_quota_request(&p, 5000, 2.5, why, sizeof why));
  assert_false(sn_quota_request(&p, 1, 6, why, sizeof why));
  assert_true(sn_quota_request(&p, 1, 7, why, sizeof why));
}

static char why_not[200];
static bool charged;

static bool may_plan(SnPeer *p, double allowed, double now) {
  charged = false;
  return sn_quota_planning(p, allowed, now, &charged, why_not, sizeof why_not);
}

// What has no deadline is paid for afterwards.
static void test_planning(void **state) {
  (void)state;
  SnPeer p = with_quota(INFINITY, INFINITY, 0.5);
  assert_true(may_plan(&p, 0, 10) && !charged);
  sn_quota_spend(&p, 0.4);
  assert_true(may_plan(&p, 0, 10) && !charged);
  sn_quota_spend(&p, 1.1);
  assert_false(may_plan(&p, 0, 10));
  assert_non_null(strstr(why_not, "0.5 s a second; try again in 2 s"));
  assert_false(may_plan(&p, 0, 11.9));
  assert_true(may_plan(&p, 0, 12.1));
  SnPeer free = with_quota(INFINITY, INFINITY, INFINITY);
  sn_quota_spend(&free, 1e6);
  assert_true(may_plan(&free, 5, 1) && !charged);
}

// A key that has worked for long without a quota, and gets one by a reload, owes nothing; from then on it is held to
// it.
static void test_quota_that_comes_later(void **state) {
  (void)state;
  SnAccess a;
  SnError err = {0};
  bool lowered;
  char why[200];
  write_list(KEY_1 " plan\n");
  assert_int_equal(sn_access_init(&a, path, &err), SN_OK);
  SnPeer *p = a.peer[sn_access_find(&a, KEY_1)];
  for (int round = 0; round < 2; round++) {
    const double now = 100 + 10 * round;
    for (int i = 0; i < 100000; i++) assert_true(sn_quota_request(p, 1000, now, why, sizeof why));
    assert_true(may_plan(p, 0, now));
    sn_quota_spend(p, 1e4);
    write_list(KEY_1 " plan requests=10 bytes=1e4 planning=0.5\n");
    assert_int_equal(sn_access_reload(&a, path, &lowered, &err), SN_OK);
    if (!sn_quota_request(p, 9000, now, why, sizeof why)) fail_msg("%s", why);
    assert_false(sn_quota_request(p, 9000, now, why, sizeof why));
    if (!may_plan(p, 0, now)) fail_msg("%s", why_not);
    sn_quota_spend(p, 2);
    assert_false(may_plan(p, 0, now));
    write_list(KEY_1 " plan\n");
    assert_int_equal(sn_access_reload(&a, path, &lowered, &err), SN_OK);
  }
  sn_access_free(&a);
}

// The time until a plan is due must be left; several at the same time take no more than until the last is due.
static void test_charge_beforehand(void **state) {
  (void)state;
  SnPeer p = with_quota(INFINITY, INFINITY, 0.5);
  assert_true(may_plan(&p, 0.3, 10) && charged);
  assert_true(may_plan(&p, 0.3, 10.1) && charged);
  assert_false(may_plan(&p, 0.6, 10.1));
  assert_true(may_plan(&p, 0.2, 10.1) && charged);  // due before the others are
  assert_int_equal(p.under_way, 3);
  sn_quota_spend(&p, 0.3);
  assert_true(may_plan(&p, 0, 10.21));  // 0.3 s are used, and 0.2 s may yet be
  assert_false(may_plan(&p, 0.25, 10.21));
  for (int i = 0; i < 3; i++) sn_quota_answered(&p, 10.21);
  sn_quota_answered(&p, 10.21);  // one more than there are changes nothing
  assert_int_equal(p.under_way, 0);
  assert_true(may_plan(&p, 0.2, 10.21) && charged);  // what they did not take is free again
  // Its answer is lost: the charge ends when it is due.
  assert_false(may_plan(&p, 0.3, 10.3));
  assert_true(may_plan(&p, 0.3, 10.9) && charged);
  assert_int_equal(p.under_way, 1);
}

// One that is longer than a second's worth comes when nothing is used, and alone.
static void test_a_long_plan(void **state) {
  (void)state;
  SnPeer p = with_quota(INFINITY, INFINITY, 0.1);
  sn_quota_spend(&p, 0.01);
  assert_false(may_plan(&p, 2, 10));
  assert_non_null(strstr(why_not, "try again in 0.1 s"));
  assert_false(may_plan(&p, 2, 10.05));
  assert_true(may_plan(&p, 2, 10.2) && charged);
  assert_false(may_plan(&p, 0.05, 10.2));
  assert_non_null(strstr(why_not, "try again in 2 s"));
  assert_false(may_plan(&p, 2, 10.2));
  sn_quota_spend(&p, 2);
  sn_quota_answered(&p, 12.2);
  assert_false(may_plan(&p, 2, 32));
  assert_true(may_plan(&p, 2, 32.3) && charged);
}

// Whatever is asked for, what a key had at any time is what the time allows, and a second's worth.
static void test_never_above(void **state) {
  (void)state;
  SnPeer p = with_quota(INFINITY, INFINITY, 0.3);
  unsigned seed = 7;
  double had = 0, most = -INFINITY;
  int taken = 0;
  for (double now = 0; now < 200; now += 0.001) {
    const double allowed = 0.005 + 0.001 * (rand_r(&seed) % 290);
    if (!may_plan(&p, allowed, now)) continue;
    taken++;
    had += allowed;
    now += allowed;
    sn_quota_spend(&p, allowed);
    sn_quota_answered(&p, now);
    if (had - 0.3 * now > most) most = had - 0.3 * now;
  }
  print_message("%d plans, %.2f s of 200; at most %.3f s above what the time allows\n", taken, had, most);
  assert_true(had > 0.28 * 200 && most < 0.3 + 1e-6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_list),
      cmocka_unit_test(test_no_list),
      cmocka_unit_test(test_mistakes),
      cmocka_unit_test(test_zero_bytes),
      cmocka_unit_test(test_two_mistakes),
      cmocka_unit_test(test_rights_of_the_list),
      cmocka_unit_test(test_most_keys),
      cmocka_unit_test(test_lowered),
      cmocka_unit_test(test_reload),
      cmocka_unit_test(test_requests_a_second),
      cmocka_unit_test(test_bytes_a_second),
      cmocka_unit_test(test_planning),
      cmocka_unit_test(test_quota_that_comes_later),
      cmocka_unit_test(test_charge_beforehand),
      cmocka_unit_test(test_a_long_plan),
      cmocka_unit_test(test_never_above),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
