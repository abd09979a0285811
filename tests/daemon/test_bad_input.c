// sinewd as a black box: whatever arrives, whoever caused it gets a clear error, and another session goes on.
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include <cmocka.h>

#include "proto/validate.h"
#include "tests/support/raw_peer.h"

enum { ROUNDS = 3000, MESSAGE_BYTES = 200000 };

static const uint64_t SEED = 20260711;

// Sanitizers need memory of their own, and keep what has been freed.
#ifdef SN_TEST_SLOW
enum { JUDGE_MEMORY = 0 };
static const char MEMORY[] = "--memory-megabytes=0";
#else
enum { JUDGE_MEMORY = 1 };
static const char MEMORY[] = "--memory-megabytes=500";
#endif

static SnTestDaemon sinewd;
static SnTestClient client, other;
static uint64_t session, others_session;
static Sinew__V1__Reply *opened, *others_opened;

static uint64_t next_random(uint64_t *s) {
  *s ^= *s >> 12;
  *s ^= *s << 25;
  *s ^= *s >> 27;
  return *s * 2685821657736338717ull;
}

static int setup(void **state) {
  (void)state;
  char bytes[40];
  snprintf(bytes, sizeof bytes, "--message-bytes=%d", MESSAGE_BYTES);
  sn_test_daemon_prepare(&sinewd);
  sn_test_daemon_write(&sinewd, "models/broken.xml", "<mujoco><worldbody><geom type=\"cube\"/></worldbody></mujoco>");
  sn_test_daemon_write(
      &sinewd, "models/cloth.xml",
      "<mujoco><worldbody><flexcomp name=\"shirt\" type=\"grid\" count=\"3 3 1\" spacing=\".1 .1 .1\" dim=\"2\" "
      "mass=\"1\" radius=\".01\"/></worldbody></mujoco>");
  sn_test_daemon_write(
      &sinewd, "models/latin.xml",
      "<mujoco><worldbody><body><joint name=\"t\xfcr\"/><geom size=\".1\"/></body></worldbody></mujoco>");
  sn_test_daemon_write(&sinewd, "tasks/broken.yaml", "model: arm_reach.xml\nhorizonn: 3\n");
  sn_test_daemon_write(&sinewd, "tasks/lost.yaml",
                       "model: nowhere.xml\nterms:\n  - name: a\n    residual: {joint_position: all}\n    weight: 1\n");
  sn_test_daemon_start(&sinewd, (const char *const[]){bytes, MEMORY, NULL});
  sn_test_connect(&client, sinewd.endpoint);
  sn_test_connect(&other, sinewd.endpoint);
  session = sn_test_open(&client, "arm_reach", 1, &opened);
  others_session = sn_test_open(&other, "arm_reach", 2, &others_opened);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  sn_test_done(opened);
  sn_test_done(others_opened);
  sn_test_disconnect(&client);
  sn_test_disconnect(&other);
  int status = sn_test_daemon_stop(&sinewd, SIGTERM);
  sn_test_daemon_remove(&sinewd);
  return status;
}

// After every test: the other session still plans, and so does the one of the client that sent the bad input.
static int both_plan(void **state) {
  (void)state;
  const struct {
    SnTestClient *c;
    uint64_t id;
    Sinew__V1__State *initial;
  } who[] = {{&other, others_session, others_opened->open->initial}, {&client, session, opened->open->initial}};
  for (int i = 0; i < 2; i++) {
    Sinew__V1__Reply *r = sn_test_plan(who[i].c, who[i].id, who[i].initial, 0.05);
    int ok = r->body_case == SINEW__V1__REPLY__BODY_PLAN && r->plan->steps > 0;
    sn_test_done(r);
    if (!ok) return -1;
  }
  return 0;
}

static void expect_plan_error(Sinew__V1__State *s, const char *word) {
  sn_test_expect_error(sn_test_plan(&client, session, s, 0.05), SINEW__V1__ERROR__CODE__INVALID, word);
}

static void test_wrong_state_size(void **state) {
  (void)state;
  Sinew__V1__State s = *opened->open->initial;
  s.n_qpos = 1;
  expect_plan_error(&s, "state.qpos has 1 numbers; this session needs 2");
  s = *opened->open->initial;
  s.n_qvel = 0;
  expect_plan_error(&s, "state.qvel has 0 numbers");
  s = *opened->open->initial;
  s.n_act = 5;
  expect_plan_error(&s, "state.act has 5 numbers; this session needs 6, or none");
  s = *opened->open->initial;
  s.mocap = s.qpos;
  s.n_mocap = 2;
  expect_plan_error(&s, "state.mocap");
  s = *opened->open->initial;
  s.history = s.qpos;
  s.n_history = 2;
  expect_plan_error(&s, "state.history has 2 numbers; this session needs 0, or none");
}

static void test_not_a_number(void **state) {
  (void)state;
  static const double bad[] = {NAN, INFINITY, -INFINITY, 1e30};
  for (size_t i = 0; i < 4; i++) {
    double qpos[2] = {0.5, bad[i]}, time = opened->open->initial->time;
    Sinew__V1__State s = *opened->open->initial;
    s.qpos = qpos;
    expect_plan_error(&s, "State.qpos[1]");
    s.qpos = opened->open->initial->qpos;
    s.time = bad[i];
    expect_plan_error(&s, "State.time");
    s.time = time;
  }
}

static void test_bad_plan_requests(void **state) {
  (void)state;
  Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
  Sinew__V1__Controls applied = SINEW__V1__CONTROLS__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  double time[] = {0.2, 0.1}, ctrl[12] = {0};
  request.body_case = SINEW__V1__REQUEST__BODY_PLAN;
  request.plan = &plan;
  plan.session = session;
  sn_test_expect_error(sn_test_request(&client, &request), SINEW__V1__ERROR__CODE__INVALID, "state is missing");
  plan.state = opened->open->initial;
  sn_test_expect_error(sn_test_request(&client, &request), SINEW__V1__ERROR__CODE__INVALID, "deadline");
  plan.deadline = 0.02;
  plan.applied = &applied;
  applied.time = time;
  applied.ctrl = ctrl;
  applied.n_time = 2;
  applied.n_ctrl = 12;
  sn_test_expect_error(sn_test_request(&client, &request), SINEW__V1__ERROR__CODE__INVALID, "applied.time[1] is 0.1");
  time[1] = 0.3;
  applied.n_ctrl = 11;
  sn_test_expect_error(sn_test_request(&client, &request), SINEW__V1__ERROR__CODE__INVALID, "applied.ctrl has 11");
  plan.applied = NULL;
  plan.session = session + 1;
  sn_test_expect_error(sn_test_request(&client, &request), SINEW__V1__ERROR__CODE__NOT_FOUND, "no session");
}

static Sinew__V1__Reply *open_task(const char *task) {
  Sinew__V1__OpenRequest open = SINEW__V1__OPEN_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  open.task = (char *)(uintptr_t)task;
  request.body_case = SINEW__V1__REQUEST__BODY_OPEN;
  request.open = &open;
  return sn_test_request(&client, &request);
}

static void test_unknown_and_broken_tasks(void **state) {
  (void)state;
  sn_test_expect_error(open_task("nose"), SINEW__V1__ERROR__CODE__NOT_FOUND, "no task 'nose' in ");
  sn_test_expect_error(open_task("../tasks/arm_reach"), SINEW__V1__ERROR__CODE__INVALID, "is no name");
  sn_test_expect_error(open_task("/etc/passwd"), SINEW__V1__ERROR__CODE__INVALID, "is no name");
  sn_test_expect_error(open_task("broken"), SINEW__V1__ERROR__CODE__INVALID, "broken.yaml:2:1");
  sn_test_expect_error(open_task("lost"), SINEW__V1__ERROR__CODE__NOT_FOUND, "nowhere");
}

static Sinew__V1__Reply *load_model(const char *name) {
  Sinew__V1__LoadModelRequest load = SINEW__V1__LOAD_MODEL_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  load.model = (char *)(uintptr_t)name;
  request.body_case = SINEW__V1__REQUEST__BODY_LOAD_MODEL;
  request.load_model = &load;
  return sn_test_request(&client, &request);
}

static void test_bad_models(void **state) {
  (void)state;
  sn_test_expect_error(load_model("nose"), SINEW__V1__ERROR__CODE__NOT_FOUND, "no model 'nose' in ");
  sn_test_expect_error(load_model("broken"), SINEW__V1__ERROR__CODE__INVALID, "cube");
  sn_test_expect_error(load_model("cloth"), SINEW__V1__ERROR__CODE__UNSUPPORTED, "shirt");
}

// What is said of a long name is cut, and not within a character; names of a model may be of another alphabet.
static void test_texts(void **state) {
  (void)state;
  char name[SN_WIRE_NAME + 1] = "x";
  for (int i = 1; i + 1 < SN_WIRE_NAME; i += 2) memcpy(name + i, "\xc3\xa4", 3);
  sn_test_expect_error(open_task(name), SINEW__V1__ERROR__CODE__INVALID, "is no name");
  sn_test_expect_error(load_model(name), SINEW__V1__ERROR__CODE__INVALID, "is no name");
  Sinew__V1__DescribeModelRequest describe = SINEW__V1__DESCRIBE_MODEL_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  describe.model = "latin";
  request.body_case = SINEW__V1__REQUEST__BODY_DESCRIBE_MODEL;
  request.describe_model = &describe;
  Sinew__V1__Reply *reply = sn_test_request(&client, &request);
  assert_int_equal(reply->body_case, SINEW__V1__REPLY__BODY_DESCRIBE_MODEL);
  assert_string_equal(reply->describe_model->qpos[0]->name, "t?r");
  sn_test_done(reply);
}

static void test_bad_evaluation(void **state) {
  (void)state;
  double ctrl[7] = {0};
  Sinew__V1__EvaluateRequest evaluate = SINEW__V1__EVALUATE_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_EVALUATE;
  request.evaluate = &evaluate;
  evaluate.session = session;
  evaluate.state = opened->open->initial;
  evaluate.ctrl = ctrl;
  evaluate.n_ctrl = 7;
  sn_test_expect_error(sn_test_request(&client, &request), SINEW__V1__ERROR__CODE__INVALID, "ctrl has 7 numbers");
  ctrl[2] = NAN;
  evaluate.n_ctrl = 6;
  sn_test_expect_error(sn_test_request(&client, &request), SINEW__V1__ERROR__CODE__INVALID, "EvaluateRequest.ctrl[2]");
  ctrl[2] = 0;
  Sinew__V1__State s = *opened->open->initial;
  evaluate.state = &s;
  s.n_qpos = 1;
  sn_test_expect_error(sn_test_request(&client, &request), SINEW__V1__ERROR__CODE__INVALID, "state.qpos has 1 numbers");
  s.n_qpos = 2;
  evaluate.want_gradient = true;
  evaluate.n_ctrl = 0;
  sn_test_expect_error(sn_test_request(&client, &request), SINEW__V1__ERROR__CODE__INVALID, "a gradient needs ctrl");
}

static void expect_stream_error(const Sinew__V1__StreamRequest *in, Sinew__V1__Error__Code code, const char *word) {
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_STREAM;
  request.stream = (Sinew__V1__StreamRequest *)(uintptr_t)in;
  sn_test_expect_error(sn_test_request(&client, &request), code, word);
}

static void test_bad_streams(void **state) {
  (void)state;
  Sinew__V1__StreamRequest in = SINEW__V1__STREAM_REQUEST__INIT;
  in.session = session;
  expect_stream_error(&in, SINEW__V1__ERROR__CODE__INVALID, "lease: 0 is out of bounds, allowed is 0.05 to 3600");
  in.lease = 1e9;
  expect_stream_error(&in, SINEW__V1__ERROR__CODE__INVALID, "StreamRequest.lease");
  in.lease = (double)NAN;
  expect_stream_error(&in, SINEW__V1__ERROR__CODE__INVALID, "StreamRequest.lease");
  in.lease = 1;
  in.deadline = -1;
  expect_stream_error(&in, SINEW__V1__ERROR__CODE__INVALID, "StreamRequest.deadline");
  in.deadline = 0;
  in.iterations = 1u << 30;
  expect_stream_error(&in, SINEW__V1__ERROR__CODE__INVALID, "StreamRequest.iterations");
  in.iterations = 0;
  in.session = session + 1;
  expect_stream_error(&in, SINEW__V1__ERROR__CODE__NOT_FOUND, "no session");

  Sinew__V1__StreamState fed = SINEW__V1__STREAM_STATE__INIT;
  Sinew__V1__State s = *opened->open->initial;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_STREAM_STATE;
  request.stream_state = &fed;
  fed.session = session;
  sn_test_expect_error(sn_test_request(&client, &request), SINEW__V1__ERROR__CODE__INVALID, "state is missing");
  fed.state = &s;
  sn_test_expect_error(sn_test_request(&client, &request), SINEW__V1__ERROR__CODE__STATE, "no stream");
  s.n_qvel = 0;
  sn_test_expect_error(sn_test_request(&client, &request), SINEW__V1__ERROR__CODE__INVALID, "state.qvel");
  fed.session = session + 1;
  sn_test_expect_error(sn_test_request(&client, &request), SINEW__V1__ERROR__CODE__NOT_FOUND, "no session");
}

static void test_truncated_and_random_bytes(void **state) {
  (void)state;
  unsigned char good[1024], bytes[1024];
  uint64_t s = SEED;
  print_message("seed %llu\n", (unsigned long long)SEED);
  Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  plan.session = session;
  plan.state = opened->open->initial;
  plan.deadline = 0.001;
  request.id = 1;
  request.body_case = SINEW__V1__REQUEST__BODY_PLAN;
  request.plan = &plan;
  size_t n = sinew__v1__request__pack(&request, good);
  for (int i = 0; i < ROUNDS; i++) {
    size_t m = n;
    memcpy(bytes, good, n);
    if (i % 3 == 0) {
      m = next_random(&s) % n;
    } else if (i % 3 == 1) {
      bytes[next_random(&s) % n] ^= (unsigned char)(1u << next_random(&s) % 8);
    } else {
      m = next_random(&s) % sizeof bytes;
      for (size_t k = 0; k < m; k++) bytes[k] = (unsigned char)next_random(&s);
    }
    // Every message, whatever it is, is answered: an error, or a plan where the change did no harm.
    sn_test_send_bytes(&client, bytes, m);
    Sinew__V1__Reply *r = sn_test_receive(&client, 60);
    assert_non_null(r);
    sn_test_done(r);
  }
}

static void test_several_frames(void **state) {
  (void)state;
  assert_int_equal(zmq_send(client.socket, "", 0, ZMQ_SNDMORE), 0);
  assert_int_equal(zmq_send(client.socket, "x", 1, ZMQ_SNDMORE), 1);
  assert_int_equal(zmq_send(client.socket, "y", 1, 0), 1);
  sn_test_expect_error(sn_test_receive(&client, 10), SINEW__V1__ERROR__CODE__MALFORMED, "several frames");
  sn_test_send_bytes(&client, "", 0);
  sn_test_expect_error(sn_test_receive(&client, 10), SINEW__V1__ERROR__CODE__MALFORMED, "0 bytes");
}

// The socket library drops the connection of whoever sends too much; the next one of that client works again.
static void test_oversized_message(void **state) {
  (void)state;
  SnTestClient big;
  sn_test_connect(&big, sinewd.endpoint);
  char *bytes = calloc(1, MESSAGE_BYTES + 1);
  sn_test_send_bytes(&big, bytes, MESSAGE_BYTES + 1);
  assert_null(sn_test_receive(&big, 0.5));
  sn_test_disconnect(&big);
  sn_test_send_bytes(&client, bytes, MESSAGE_BYTES);
  sn_test_expect_error(sn_test_receive(&client, 10), SINEW__V1__ERROR__CODE__MALFORMED, "no sinew.v1.Request");
  free(bytes);
}

// Bytes that are not even ZeroMQ.
static void test_foreign_protocol(void **state) {
  (void)state;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strcpy(address.sun_path, sinewd.endpoint + 6);
  for (int i = 0; i < 5; i++) {
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    ssize_t n = write(fd, "GET / HTTP/1.1\r\n\r\n", 18);
    assert_int_equal(n, 18);
    close(fd);
  }
}

// A message of endless frames piles up where only the memory guard reaches it.
static void test_endless_message(void **state) {
  (void)state;
  if (!JUDGE_MEMORY) skip();
  enum { FRAME = 100000, FRAMES = 12000 };
  static char frame[FRAME];
  const int fd = sn_raw_connect(sinewd.endpoint, "DEALER", NULL, 0);
  assert_true(fd >= 0);
  assert_true(sn_raw_frame(fd, 0, "", 0));
  for (int i = 0; i < FRAMES && sn_raw_frame(fd, SN_RAW_MORE, frame, sizeof frame); i++) continue;
  close(fd);
  for (int i = 0; i < 400 && !sn_test_daemon_logged(&sinewd, "all connections for requests are dropped"); i++)
    usleep(50000);
  assert_true(sn_test_daemon_logged(&sinewd, "all connections for requests are dropped"));

  Sinew__V1__HealthRequest health = SINEW__V1__HEALTH_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_HEALTH;
  request.health = &health;
  Sinew__V1__Reply *r = sn_test_request(&client, &request);
  print_message("%llu MB in use after a message of 1.2 GB\n", (unsigned long long)r->health->memory_bytes >> 20);
  assert_true(r->health->memory_bytes < 700u << 20);
  sn_test_done(r);
}

static void test_wrong_protocol_version(void **state) {
  (void)state;
  Sinew__V1__HelloRequest hello = SINEW__V1__HELLO_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  hello.protocol = 2;
  request.body_case = SINEW__V1__REQUEST__BODY_HELLO;
  request.hello = &hello;
  sn_test_expect_error(sn_test_request(&client, &request), SINEW__V1__ERROR__CODE__INVALID, "HelloRequest.protocol: 2");
}

int main(void) {
#define BAD_INPUT_TEST(name) cmocka_unit_test_setup_teardown(name, NULL, both_plan)
  const struct CMUnitTest tests[] = {
      BAD_INPUT_TEST(test_wrong_state_size),
      BAD_INPUT_TEST(test_not_a_number),
      BAD_INPUT_TEST(test_bad_plan_requests),
      BAD_INPUT_TEST(test_unknown_and_broken_tasks),
      BAD_INPUT_TEST(test_bad_models),
      BAD_INPUT_TEST(test_texts),
      BAD_INPUT_TEST(test_bad_evaluation),
      BAD_INPUT_TEST(test_bad_streams),
      BAD_INPUT_TEST(test_truncated_and_random_bytes),
      BAD_INPUT_TEST(test_several_frames),
      BAD_INPUT_TEST(test_oversized_message),
      BAD_INPUT_TEST(test_foreign_protocol),
      BAD_INPUT_TEST(test_endless_message),
      BAD_INPUT_TEST(test_wrong_protocol_version),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
