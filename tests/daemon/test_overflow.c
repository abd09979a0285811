// A body of more contacts than a world has room for: sinewd plans with what fits, and says so, on the CPU and on a
// device.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"

// The engine has room for 256 contacts and one more a pair of bodies; a box on a plane has four.
enum { MANY = 200, FEW = 20 };

// A sledge of so many boxes on a plane, with a motor that lifts it.
static void write_files(const SnTestDaemon *d, const char *name, int boxes) {
  char path[128];
  snprintf(path, sizeof path, "%s/models/%s.xml", d->folder, name);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(
      "<mujoco><worldbody><geom type='plane' size='1 1 1'/><body name='sledge' pos='0 0 0.0099'>"
      "<joint name='lift' type='slide' axis='0 0 1' damping='1'/><site name='top'/>\n",
      f);
  for (int i = 0; i < boxes; i++)
    fprintf(f, "<geom type='box' size='0.01 0.01 0.01' mass='0.01' pos='%g %g 0'/>\n", 0.03 * (i % 20),
            0.03 * (i / 20));
  fputs("</body></worldbody><actuator><motor joint='lift' ctrlrange='-1 1'/></actuator></mujoco>\n", f);
  assert_int_equal(fclose(f), 0);
  snprintf(path, sizeof path, "%s/tasks/%s.yaml", d->folder, name);
  assert_non_null(f = fopen(path, "w"));
  fprintf(f,
          "description: a sledge that shall rise\nmodel: %s.xml\nsettings: {horizon: 4, candidates: 4, iterations: 1, "
          "knots: 2}\nterms:\n  - name: height\n    residual: {position: {site: top}}\n    target: [0, 0, 0.1]\n    "
          "norm: squared\n    weight: 1\n",
          name);
  assert_int_equal(fclose(f), 0);
}

static void plan_sledge(SnTestDaemon *d, SnTestClient *c, const char *task, char *backend, bool overflows) {
  enum { PLANS = 3 };
  Sinew__V1__Reply *opened;
  const uint64_t id = sn_test_open(c, task, 0, &opened);
  for (int i = 0; i < PLANS; i++) {
    Sinew__V1__Reply *r = sn_test_plan(c, id, opened->open->initial, 5);
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
    assert_int_equal(r->plan->status, SINEW__V1__PLAN__STATUS__OK);
    assert_string_equal(r->plan->backend, backend);
    assert_int_equal(r->plan->overflow, overflows);
    sn_test_done(r);
  }
  Sinew__V1__Reply *r = sn_test_statistics(c, id);
  assert_int_equal(r->statistics->sessions[0]->overflows, overflows ? PLANS : 0);
  sn_test_done(r);
  char line[64];
  snprintf(line, sizeof line, "event=overflow session=%llu", (unsigned long long)id);
  assert_int_equal(sn_test_daemon_logged(d, line), overflows);
  sn_test_done(opened);
}

static void check_backend(char *backend) {
  char option[64];
  SnTestDaemon d = {0};
  SnTestClient c;
  snprintf(option, sizeof option, "--backend=%s", backend);
  sn_test_daemon_prepare(&d);
  write_files(&d, "many", MANY);
  write_files(&d, "few", FEW);
  sn_test_daemon_start(&d, (const char *const[]){option, "--backend-folder=" SN_TEST_LIBRARY_DIR, NULL});
  sn_test_connect(&c, d.endpoint);
  plan_sledge(&d, &c, "few", backend, false);
  plan_sledge(&d, &c, "many", backend, true);
  sn_test_disconnect(&c);
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  sn_test_daemon_remove(&d);
}

static void test_overflow_on_the_cpu(void **state) {
  (void)state;
  check_backend("cpu");
}

static void test_overflow_on_a_device(void **state) {
  (void)state;
  check_backend("emulator_double");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_overflow_on_the_cpu),
      cmocka_unit_test(test_overflow_on_a_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
