// Attack: loads of models whose import hangs, one model again and again, or several. Others load meanwhile, and who
// waits for such a model gets the same answer as the one who loads it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"

enum { MODELS = 5, QUEUE = 24 };

// [s]
static const double import_time = 4;

static void send_load(SnTestClient *c, const char *model) {
  Sinew__V1__LoadModelRequest load = SINEW__V1__LOAD_MODEL_REQUEST__INIT;
  load.model = (char *)(uintptr_t)model;
  sn_test_send(c, SN_TEST_MESSAGE(load_model, LOAD_MODEL, &load));
}

// Opens a session of another client, which must not wait for what hangs: nothing of that has been answered by then.
// Returns how long it took [s].
static double open_meanwhile(void) {
  SnTestClient other;
  sn_test_connect(&other, sinewd.endpoint);
  const double began = sn_clock_now();
  sn_test_open(&other, "arm_reach", 1, NULL);
  const double took = sn_clock_now() - began;
  if (JUDGE_TIME) assert_null(sn_test_receive(&client, 0));
  sn_test_disconnect(&other);
  return took;
}

// All of them time out after the time of one import, or of two, not of ten: none is tried for each that waits.
static void test_one_model_again_and_again(void **state) {
  (void)state;
  enum { LOADS = 10 };
  const double began = sn_clock_now();
  for (int i = 0; i < LOADS; i++) send_load(&client, "hang0");
  const double opened = open_meanwhile();
  for (int i = 0; i < LOADS; i++)
    sn_test_expect_error(sn_test_receive(&client, 60), SINEW__V1__ERROR__CODE__TIMEOUT, "took longer");
  const double all = sn_clock_now() - began;
  print_message("%d loads of one hanging model: another open took %.2f s, all were answered after %.2f s\n", LOADS,
                opened, all);
  if (JUDGE_TIME) assert_true(all < 5 * import_time);
}

// One client has all threads but one.
static void test_several_models(void **state) {
  (void)state;
  char name[MODELS][16];
  for (int i = 0; i < MODELS; i++) {
    snprintf(name[i], sizeof name[i], "hang%d", i);
    send_load(&client, name[i]);
  }
  const double opened = open_meanwhile();
  for (int i = 0; i < MODELS; i++)
    sn_test_expect_error(sn_test_receive(&client, 60), SINEW__V1__ERROR__CODE__TIMEOUT, "took longer");
  print_message("%d hanging models: another open took %.2f s\n", MODELS, opened);
}

// What waits is counted, wherever it waits.
static void test_queue(void **state) {
  (void)state;
  enum { LOADS = 2 * QUEUE };
  int refused = 0;
  for (int i = 0; i < LOADS; i++) send_load(&client, "hang0");
  for (int i = 0; i < LOADS; i++) {
    Sinew__V1__Reply *r = sn_test_receive(&client, 60);
    assert_non_null(r);
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_ERROR);
    refused += r->error->code == SINEW__V1__ERROR__CODE__LIMIT;
    sn_test_done(r);
  }
  assert_in_range(refused, LOADS - QUEUE - 3, LOADS - QUEUE);
  Sinew__V1__Reply *r = sn_test_statistics(&client, 0);
  assert_int_equal(r->statistics->queue, 0);
  sn_test_done(r);
}

static int setup(void **state) {
  (void)state;
  char path[128], option[160], name[32], seconds[40], queue[40];
  sn_test_daemon_prepare(&sinewd);
  for (int i = 0; i < MODELS; i++) {
    snprintf(name, sizeof name, "models/hang%d.xml", i);
    sn_test_daemon_write(&sinewd, name, "<mujoco/>");
  }
  snprintf(path, sizeof path, "%s/importer", sinewd.folder);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fprintf(f, "#!/bin/sh\ncase \"$*\" in */hang*) exec sleep 1000;; esac\nexec %s/sinew-import \"$@\"\n",
          sn_test_binary_folder());
  fclose(f);
  chmod(path, 0700);
  snprintf(option, sizeof option, "--importer=%s", path);
  snprintf(seconds, sizeof seconds, "--import-seconds=%g", import_time);
  snprintf(queue, sizeof queue, "--queue=%d", QUEUE);
  sn_test_daemon_start(&sinewd, (const char *const[]){option, seconds, queue, NULL});
  sn_test_connect(&client, sinewd.endpoint);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_model_again_and_again),
                                     cmocka_unit_test(test_several_models), cmocka_unit_test(test_queue)};
  return cmocka_run_group_tests(tests, setup, sn_test_group_teardown);
}
