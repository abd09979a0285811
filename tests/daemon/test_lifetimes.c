// What lasts and what ends: every request is answered though its session goes, a seed lasts, a refused change leaves
// nothing behind, a stream begins anew and follows its client, the newest is kept where not all can be.
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"
#include "tests/support/daemon_stream.h"
#include "tests/support/daemon_tuning.h"

static Sinew__V1__Request close_request(Sinew__V1__CloseRequest *in) {
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_CLOSE;
  request.close = in;
  return request;
}

// So often a daemon is asked for what depends on its having begun a plan in 200 ms.
enum { TRIES = 20 };

static bool is_replaced(const Sinew__V1__Reply *r) {
  return r->body_case == SINEW__V1__REPLY__BODY_PLAN && r->plan->status == SINEW__V1__PLAN__STATUS__REPLACED;
}

// Two plans of a session and its end, sent one after the other: each request has its answer, and one only. True when
// the first plan was being made, and the second one waited.
static bool close_while_planning(void) {
  enum { REQUESTS = 3 };
  Sinew__V1__Reply *opened;
  Sinew__V1__CloseRequest in = SINEW__V1__CLOSE_REQUEST__INIT;
  in.session = sn_test_open(&client, "arm_reach", 1, &opened);
  const uint64_t before = client.id;
  for (int i = 0; i < 2; i++) {
    sn_test_send_plan(&client, in.session, opened->open->initial, 3600);
    usleep(200000);
  }
  Sinew__V1__Request request = close_request(&in);
  sn_test_send(&client, &request);
  int answers[REQUESTS] = {0};
  bool waited = true;
  for (int i = 0; i < REQUESTS; i++) {
    Sinew__V1__Reply *r = sn_test_receive(&client, 30);
    if (!r) fail_msg("%d of %d requests were answered", i, REQUESTS);
    assert_true(r->id > before && r->id <= before + REQUESTS);
    answers[r->id - before - 1]++;
    if (r->body_case == SINEW__V1__REPLY__BODY_ERROR) {
      assert_int_equal(r->error->code, SINEW__V1__ERROR__CODE__NOT_FOUND);
      assert_int_not_equal(r->id, before + REQUESTS);
    }
    waited = waited && !is_replaced(r);
    sn_test_done(r);
  }
  for (int i = 0; i < REQUESTS; i++) assert_int_equal(answers[i], 1);
  assert_null(sn_test_receive(&client, 0.1));
  sn_test_done(opened);
  return waited;
}

static void test_close_answers_all(void **state) {
  (void)state;
  bool waited = false;
  for (int i = 0; i < TRIES && !waited; i++) waited = close_while_planning();
  assert_true(waited);
}

// A plan that may take an hour ends when a newer state waits: that one is planned for in its own time.
static void test_newer_state_ends_a_plan(void **state) {
  (void)state;
  static const double deadlines[] = {3600, 1};
  Sinew__V1__Reply *opened;
  const uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  bool waited = false;
  for (int k = 0; k < TRIES && !waited; k++) {
    const uint64_t before = client.id;
    for (int i = 0; i < 2; i++) {
      if (i) usleep(200000);
      sn_test_send_plan(&client, id, opened->open->initial, deadlines[i]);
    }
    for (uint64_t i = 1; i <= 2; i++) {
      Sinew__V1__Reply *r = sn_test_receive(&client, 30);
      if (!r) fail_msg("plan %d was not answered", (int)i);
      assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
      assert_int_equal(r->id, before + i);
      if (i == 1) waited = !is_replaced(r);
      // less what the daemon keeps back where slices and answers were late lately, half of it at most
      if (i == 2) assert_true(r->plan->age >= 0.5 * deadlines[1]);
      sn_test_done(r);
    }
  }
  assert_true(waited);
  sn_test_done(opened);
}

// Joint angles at the begin after a reset, with a seed or without.
static void reset(uint64_t session, const uint64_t *seed, double qpos[2]) {
  Sinew__V1__ResetRequest in = SINEW__V1__RESET_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  in.session = session;
  if (seed) {
    in.has_seed_case = SINEW__V1__RESET_REQUEST__HAS_SEED_SEED;
    in.seed = *seed;
  }
  request.body_case = SINEW__V1__REQUEST__BODY_RESET;
  request.reset = &in;
  Sinew__V1__Reply *r = sn_test_request(&client, &request);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_RESET);
  memcpy(qpos, r->reset->initial->qpos, 2 * sizeof *qpos);
  sn_test_done(r);
}

// The seed of a reset is the session's from then on.
static void test_seed_lasts(void **state) {
  (void)state;
  Sinew__V1__Reply *opened;
  const uint64_t other = 6, id = sn_test_open(&client, "arm_reach", 5, &opened);
  double first[2], then[2], again[2];
  reset(id, NULL, first);
  assert_memory_equal(first, opened->open->initial->qpos, sizeof first);
  reset(id, &other, then);
  assert_memory_not_equal(then, first, sizeof first);
  reset(id, NULL, again);
  assert_memory_equal(again, then, sizeof then);
  sn_test_done(opened);
}

// A change that is refused for its last part has not changed the first one either: neither plans nor the next version
// know of it.
static void test_refused_change_leaves_nothing(void **state) {
  (void)state;
  Sinew__V1__Reply *opened, *r;
  SnTestChange c;
  const uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  const double life = opened->open->config->session->time_to_live;
  sn_test_change_begin(&c, id);
  c.session.has_latency_case = SINEW__V1__SESSION_SETTINGS__HAS_LATENCY_LATENCY;
  c.session.latency = 0.02;
  c.session.has_time_to_live_case = SINEW__V1__SESSION_SETTINGS__HAS_TIME_TO_LIVE_TIME_TO_LIVE;
  c.session.time_to_live = life + 1;
  sn_test_change_weight(&c, 0, "nosuch", 1);
  Sinew__V1__Request request = sn_test_change_request(&c);
  sn_test_expect_error(sn_test_request(&client, &request), SINEW__V1__ERROR__CODE__NOT_FOUND, "no term 'nosuch'");
  r = sn_test_plan(&client, id, opened->open->initial, 0.02);
  assert_true(r->plan->lead == 0 && r->plan->time_to_live == life && r->plan->config_version == 1);
  sn_test_done(r);
  sn_test_change_begin(&c, id);
  request = sn_test_change_request(&c);
  r = sn_test_request(&client, &request);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_SET_CONFIG);
  assert_true(r->set_config->session->latency == 0 && r->set_config->session->time_to_live == life);
  sn_test_done(r);
  sn_test_done(opened);
}

// A stream that begins after another one of the session counts its plans and states from one.
static void test_stream_begins_anew(void **state) {
  (void)state;
  Sinew__V1__Reply *opened;
  const uint64_t id = sn_test_open(&client, "arm_reach", 1, &opened);
  Sinew__V1__State x = *opened->open->initial;
  for (int i = 0; i < 2; i++) {
    SnTestStream s = sn_test_stream_start(&client, id, 30, 0.2);
    x.time = i;
    sn_test_stream_state(&s, &x, 0);
    sn_test_stream_await(&s, i);
    sn_test_stream_request(&s, true, 0, 0);
    Sinew__V1__Reply *r = sn_test_stream_read(&s, 30);
    assert_non_null(r);
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_STREAM);
    assert_true(r->stream->states == 1 && (int)r->stream->plans == s.plans);
    sn_test_done(r);
  }
  sn_test_done(opened);
}

// A client that has connected anew goes on with its stream: plans come where its states come from.
static void test_stream_follows_its_client(void **state) {
  (void)state;
  Sinew__V1__Reply *opened;
  SnTestClient again;
  SnTestStream s = {.c = &client, .session = sn_test_open(&client, "arm_reach", 1, &opened)};
  s = sn_test_stream_start(&client, s.session, 30, 0.2);
  Sinew__V1__State x = *opened->open->initial;
  sn_test_stream_state(&s, &x, -1);
  sn_test_stream_await(&s, x.time);
  sn_test_connect(&again, sinewd.endpoint);
  s.c = &again;
  x.time = 1;
  sn_test_stream_state(&s, &x, -1);
  // What was on its way to the old connection may be missing here: its numbers go on, the stamp tells.
  bool found = false;
  for (const double until = sn_clock_now() + 30; !found && sn_clock_now() < until;) {
    Sinew__V1__Reply *r = sn_test_receive(&again, 1);
    if (!r) continue;
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
    assert_true(r->id == s.id && r->plan->session == s.session);
    found = r->plan->state_time == 1;
    sn_test_done(r);
  }
  assert_true(found);
  Sinew__V1__CloseRequest in = SINEW__V1__CLOSE_REQUEST__INIT;
  in.session = s.session;
  Sinew__V1__Request request = close_request(&in);
  sn_test_send(&again, &request);
  bool ended = false;
  while (!ended) {
    Sinew__V1__Reply *r = sn_test_receive(&again, 30);
    assert_non_null(r);
    ended = r->body_case == SINEW__V1__REPLY__BODY_STREAM;
    if (ended) assert_int_equal(r->stream->end, SINEW__V1__STREAM_REPLY__END__CLOSED);
    sn_test_done(r);
  }
  for (Sinew__V1__Reply *r; (r = sn_test_receive(&client, 0.1));) sn_test_done(r);  // of the old connection
  sn_test_disconnect(&again);
  sn_test_done(opened);
}

static uint64_t requests_served(void) {
  Sinew__V1__Reply *r = sn_test_statistics(&client, 0);
  const uint64_t n = r->statistics->requests;
  sn_test_done(r);
  return n;
}

// A client that asks and asks before it reads finds what there was room for, and then the newest answer.
static void test_newest_answer_is_kept(void **state) {
  (void)state;
  enum { REQUESTS = 6000, SMALL = 4096 };
  SnTestClient deaf;
  int two = 2, zero = 0, small = SMALL, reconnect = 20, unlimited = 0;
  deaf.context = zmq_ctx_new();
  deaf.socket = zmq_socket(deaf.context, ZMQ_DEALER);
  deaf.id = 0;
  zmq_setsockopt(deaf.socket, ZMQ_LINGER, &zero, sizeof zero);
  zmq_setsockopt(deaf.socket, ZMQ_RECONNECT_IVL, &reconnect, sizeof reconnect);
  zmq_setsockopt(deaf.socket, ZMQ_RCVHWM, &two, sizeof two);
  zmq_setsockopt(deaf.socket, ZMQ_RCVBUF, &small, sizeof small);
  zmq_setsockopt(deaf.socket, ZMQ_SNDHWM, &unlimited, sizeof unlimited);
  assert_int_equal(zmq_connect(deaf.socket, sinewd.endpoint), 0);
  Sinew__V1__HelloRequest hello = SINEW__V1__HELLO_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  hello.protocol = 1;
  request.body_case = SINEW__V1__REQUEST__BODY_HELLO;
  request.hello = &hello;
  const uint64_t before = requests_served();
  for (int i = 0; i < REQUESTS; i++) sn_test_send(&deaf, &request);
  const double until = sn_clock_now() + 60;
  for (uint64_t looks = 1; requests_served() - before - looks < REQUESTS; looks++) {
    assert_true(sn_clock_now() < until);
    usleep(10000);
  }
  int read = 0;
  uint64_t last = 0;
  while (last < REQUESTS) {
    Sinew__V1__Reply *r = sn_test_receive(&deaf, 10);
    if (!r) fail_msg("the last answer of %d is that of request %d of %d", read, (int)last, REQUESTS);
    assert_true(r->id > last);
    last = r->id;
    read++;
    sn_test_done(r);
  }
  print_message("%d of %d answers kept, the newest among them\n", read, REQUESTS);
  assert_true(read < REQUESTS);
  sn_test_disconnect(&deaf);
}

static bool is_loaded(SnTestClient *c, const char *model) {
  Sinew__V1__ListModelsRequest list = SINEW__V1__LIST_MODELS_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_LIST_MODELS;
  request.list_models = &list;
  Sinew__V1__Reply *r = sn_test_request(c, &request);
  bool loaded = false;
  for (size_t i = 0; i < r->list_models->n_models; i++)
    loaded = loaded || (!strcmp(r->list_models->models[i]->name, model) && r->list_models->models[i]->loaded);
  sn_test_done(r);
  return loaded;
}

// Where there is no room for one more model, the one that has been there longest and nobody uses makes it.
static void test_oldest_model_goes(void **state) {
  (void)state;
  static const char *const names[] = {"a", "b", "c", "d"};
  SnTestDaemon d = {0};
  SnTestClient c;
  char name[32];
  sn_test_daemon_prepare(&d);
  for (int i = 0; i < 4; i++) {
    snprintf(name, sizeof name, "models/%s.xml", names[i]);
    sn_test_daemon_write(&d, name, "<mujoco><worldbody><body><joint/><geom size='1'/></body></worldbody></mujoco>");
  }
  sn_test_daemon_start(&d, (const char *const[]){"--loaded=3", NULL});
  sn_test_connect(&c, d.endpoint);
  Sinew__V1__LoadModelRequest load = SINEW__V1__LOAD_MODEL_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_LOAD_MODEL;
  request.load_model = &load;
  for (int i = 0; i < 4; i++) {
    load.model = (char *)(uintptr_t)names[i];
    Sinew__V1__Reply *r = sn_test_request(&c, &request);
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_LOAD_MODEL);
    sn_test_done(r);
  }
  assert_false(is_loaded(&c, "a"));
  for (int i = 1; i < 4; i++) assert_true(is_loaded(&c, names[i]));
  sn_test_disconnect(&c);
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  sn_test_daemon_remove(&d);
}

// An import gets the time and the memory of the configuration, and no more.
static void test_limits_of_an_import(void **state) {
  (void)state;
  SnTestDaemon d = {0};
  SnTestClient c;
  char path[128], option[160], words[1000] = "";
  sn_test_daemon_prepare(&d);
  snprintf(path, sizeof path, "%s/models/hang.xml", d.folder);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fclose(f);
  snprintf(path, sizeof path, "%s/importer", d.folder);
  f = fopen(path, "w");
  assert_non_null(f);
  fprintf(f, "#!/bin/sh\necho \"$*\" >%s/words\nexec sleep 1000\n", d.folder);
  fclose(f);
  assert_int_equal(chmod(path, 0700), 0);
  snprintf(option, sizeof option, "--importer=%s", path);
  sn_test_daemon_start(&d, (const char *const[]){option, "--import-seconds=4.5", "--import-megabytes=77",
                                                 "--memory-megabytes=4000", "--stall=900", NULL});
  sn_test_connect(&c, d.endpoint);
  Sinew__V1__LoadModelRequest load = SINEW__V1__LOAD_MODEL_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  load.model = "hang";
  request.body_case = SINEW__V1__REQUEST__BODY_LOAD_MODEL;
  request.load_model = &load;
  const double began = sn_clock_now();
  sn_test_expect_error(sn_test_request(&c, &request), SINEW__V1__ERROR__CODE__TIMEOUT, "took longer than 4.5 s");
  assert_true(sn_clock_now() - began >= 4.5);
  snprintf(path, sizeof path, "%s/words", d.folder);
  f = fopen(path, "r");
  assert_non_null(f);
  assert_non_null(fgets(words, sizeof words, f));
  fclose(f);
  assert_non_null(strstr(words, "--seconds 5 --memory 77 "));
  sn_test_disconnect(&c);
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  sn_test_daemon_remove(&d);
}

// A daemon that serves one process alone goes on while that is its parent, and ends well when it is not.
static void test_ends_with_its_parent(void **state) {
  (void)state;
  SnTestDaemon d = {0};
  SnTestClient c;
  char option[32];
  snprintf(option, sizeof option, "--parent=%ld", (long)getpid());
  sn_test_daemon_start(&d, (const char *const[]){option, NULL});
  const struct timespec ticks = sn_clock_timespec(0.3);
  nanosleep(&ticks, NULL);
  sn_test_connect(&c, d.endpoint);
  Sinew__V1__HealthRequest health = SINEW__V1__HEALTH_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_HEALTH;
  request.health = &health;
  sn_test_done(sn_test_request(&c, &request));
  sn_test_disconnect(&c);
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  assert_false(sn_test_daemon_logged(&d, "is gone"));
  sn_test_daemon_spawn(&d, (const char *const[]){"--parent=1", NULL});
  assert_int_equal(sn_test_daemon_wait(&d), 0);
  assert_true(sn_test_daemon_logged(&d, "process 1, which has started sinewd, is gone"));
  sn_test_daemon_remove(&d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_close_answers_all),
      cmocka_unit_test(test_newer_state_ends_a_plan),
      cmocka_unit_test(test_seed_lasts),
      cmocka_unit_test(test_refused_change_leaves_nothing),
      cmocka_unit_test(test_stream_begins_anew),
      cmocka_unit_test(test_stream_follows_its_client),
      cmocka_unit_test(test_newest_answer_is_kept),
      cmocka_unit_test(test_oldest_model_goes),
      cmocka_unit_test(test_limits_of_an_import),
      cmocka_unit_test(test_ends_with_its_parent),
  };
  return cmocka_run_group_tests(tests, sn_test_group_setup, sn_test_group_teardown);
}
