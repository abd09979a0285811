// The client library against a daemon of the test's own: a ROUTER in a thread that answers by the book, or late, twice,
// with another kind of message, or never. So expiry, fallback, retry and time-outs need no engine and no luck.
#include "clients/sinew_client.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>
// cmocka needs what stands above.
#include <cmocka.h>

#include "proto/sinew.pb-c.h"

enum { NQ = 3, NV = 2, NU = 2, ROWS = 4 };

typedef struct FakeDaemon {
  void *context, *router;
  pthread_t thread;
  char folder[32], endpoint[64];
  // What it does wrong; set while no request is under way.
  int silent;                   // so many requests get no answer
  bool keep;                    // plan requests are kept, for fake_release
  bool wrong_kind;              // health in place of the answer
  bool garbage;                 // bytes that are no Reply
  bool no_model;                // a task without its model
  bool no_plan;                 // diverged
  bool refuse;                  // an error
  double time_to_live;          // of plans
  int better;                   // plans that a state of the stream gets
  bool ends;                    // the stream, at the next state
  uint64_t sequence, seen;      // of the latest plan of the stream; that the client says it has read
  uint64_t stream_id;           // of the request that began it
  int requests, opens, closes;  // seen
} FakeDaemon;

static FakeDaemon fake;

typedef struct Kept {
  zmq_msg_t sender;
  uint64_t id;
  double time;
} Kept;
static Kept kept[8];
static int nkept;

static void reply_to(zmq_msg_t *sender, Sinew__V1__Reply *reply) {
  uint8_t bytes[4096];
  assert_true(sinew__v1__reply__get_packed_size(reply) <= sizeof bytes);
  const size_t size = sinew__v1__reply__pack(reply, bytes);
  zmq_msg_t copy;
  zmq_msg_init(&copy);
  zmq_msg_copy(&copy, sender);
  zmq_msg_send(&copy, fake.router, ZMQ_SNDMORE);
  zmq_send(fake.router, bytes, size, 0);
}

// A plan whose every control is the time of its state.
static void reply_plan(zmq_msg_t *sender, uint64_t id, double time, Sinew__V1__Plan__Status status) {
  double ctrl[ROWS * NU];
  for (int i = 0; i < ROWS * NU; ++i) ctrl[i] = time + i / NU;
  Sinew__V1__Plan plan = SINEW__V1__PLAN__INIT;
  plan.session = 42;
  plan.status = status;
  plan.state_time = plan.start = time;
  plan.time_to_live = fake.time_to_live;
  plan.step = 0.1;
  plan.stream_sequence = fake.sequence;
  if (status == SINEW__V1__PLAN__STATUS__OK) {
    plan.steps = ROWS;
    plan.n_ctrl = ROWS * NU;
    plan.ctrl = ctrl;
  }
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  reply.id = id;
  reply.body_case = SINEW__V1__REPLY__BODY_PLAN;
  reply.plan = &plan;
  reply_to(sender, &reply);
}

static void reply_open(zmq_msg_t *sender, Sinew__V1__Reply *reply) {
  double zero[NQ] = {0};
  Sinew__V1__State initial = SINEW__V1__STATE__INIT;
  initial.n_qpos = NQ;
  initial.n_qvel = NV;
  initial.qpos = initial.qvel = zero;
  Sinew__V1__OpenReply open = SINEW__V1__OPEN_REPLY__INIT;
  open.session = 42;
  open.initial = &initial;
  reply->body_case = SINEW__V1__REPLY__BODY_OPEN;
  reply->open = &open;
  reply_to(sender, reply);
}

static void reply_task(zmq_msg_t *sender, Sinew__V1__Reply *reply) {
  Sinew__V1__Quantity limited = SINEW__V1__QUANTITY__INIT, free_one = SINEW__V1__QUANTITY__INIT;
  limited.limited = true;
  limited.min = -1;
  limited.max = 2;
  Sinew__V1__Quantity *ctrl[NU] = {&limited, &free_one};
  Sinew__V1__ModelDescription model = SINEW__V1__MODEL_DESCRIPTION__INIT;
  model.model = (char *)"fake";
  model.timestep = 0.1;
  model.nq = NQ;
  model.nv = NV;
  model.nu = NU;
  model.n_ctrl = NU;
  model.ctrl = ctrl;
  Sinew__V1__TaskDescription task = SINEW__V1__TASK_DESCRIPTION__INIT;
  if (!fake.no_model) task.model = &model;
  reply->body_case = SINEW__V1__REPLY__BODY_DESCRIBE_TASK;
  reply->describe_task = &task;
  reply_to(sender, reply);
}

static void answer_plan(zmq_msg_t *sender, const Sinew__V1__Request *request) {
  const double time = request->plan->state->time;
  if (fake.keep) {
    Kept *k = kept + nkept++;
    zmq_msg_init(&k->sender);
    zmq_msg_copy(&k->sender, sender);
    k->id = request->id;
    k->time = time;
    return;
  }
  reply_plan(sender, request->id, time, fake.no_plan ? SINEW__V1__PLAN__STATUS__DIVERGED : SINEW__V1__PLAN__STATUS__OK);
}

static void answer_stream(zmq_msg_t *sender, const Sinew__V1__Request *request, Sinew__V1__StreamReply__End end) {
  Sinew__V1__StreamReply out = SINEW__V1__STREAM_REPLY__INIT;
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  out.session = 42;
  out.end = end;
  reply.id = request->id;
  reply.body_case = SINEW__V1__REPLY__BODY_STREAM;
  reply.stream = &out;
  reply_to(sender, &reply);
}

static void begin_stream(zmq_msg_t *sender, const Sinew__V1__Request *request) {
  fake.stream_id = request->id;
  fake.sequence = 0;
  answer_stream(sender, request,
                request->stream->stop ? SINEW__V1__STREAM_REPLY__END__STOPPED : SINEW__V1__STREAM_REPLY__END__RUNNING);
}

static void stream_plans(zmq_msg_t *sender, const Sinew__V1__Request *request) {
  const Sinew__V1__StreamState *in = request->stream_state;
  fake.seen = in->seen;
  for (int i = 0; i < fake.better; ++i) {
    ++fake.sequence;
    reply_plan(sender, fake.stream_id, in->state->time,
               fake.no_plan ? SINEW__V1__PLAN__STATUS__DIVERGED : SINEW__V1__PLAN__STATUS__OK);
  }
  if (fake.ends) answer_stream(sender, request, SINEW__V1__STREAM_REPLY__END__LEASE);
}

// Cost: the sum of the controls; gradient: their number, everywhere.
static void answer_evaluate(zmq_msg_t *sender, const Sinew__V1__Request *request) {
  const Sinew__V1__EvaluateRequest *in = request->evaluate;
  Sinew__V1__Evaluation out = SINEW__V1__EVALUATION__INIT;
  Sinew__V1__Gradient gradient = SINEW__V1__GRADIENT__INIT;
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  double ones[8];
  for (size_t i = 0; i < in->n_ctrl; ++i) out.cost += in->ctrl[i];
  for (size_t i = 0; i < in->n_ctrl && i < 8; ++i) ones[i] = (double)in->n_ctrl;
  gradient.ctrl = ones;
  gradient.n_ctrl = in->n_ctrl - (fake.no_plan ? 1 : 0);
  if (in->want_gradient) out.gradient = &gradient;
  reply.id = request->id;
  reply.body_case = SINEW__V1__REPLY__BODY_EVALUATE;
  reply.evaluate = &out;
  reply_to(sender, &reply);
}

static void answer(zmq_msg_t *sender, const Sinew__V1__Request *request) {
  Sinew__V1__HelloReply hello = SINEW__V1__HELLO_REPLY__INIT;
  Sinew__V1__CloseReply closed = SINEW__V1__CLOSE_REPLY__INIT;
  Sinew__V1__Health health = SINEW__V1__HEALTH__INIT;
  Sinew__V1__Error error = SINEW__V1__ERROR__INIT;
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  hello.protocol = 1;
  error.text = (char *)"qpos[1] is nan";
  reply.id = request->id;
  fake.opens += request->body_case == SINEW__V1__REQUEST__BODY_OPEN;
  fake.closes += request->body_case == SINEW__V1__REQUEST__BODY_CLOSE;
  if (fake.wrong_kind) {
    reply.body_case = SINEW__V1__REPLY__BODY_HEALTH;
    reply.health = &health;
  } else if (fake.refuse) {
    reply.body_case = SINEW__V1__REPLY__BODY_ERROR;
    reply.error = &error;
  } else if (request->body_case == SINEW__V1__REQUEST__BODY_PLAN) {
    answer_plan(sender, request);
    return;
  } else if (request->body_case == SINEW__V1__REQUEST__BODY_EVALUATE) {
    answer_evaluate(sender, request);
    return;
  } else if (request->body_case == SINEW__V1__REQUEST__BODY_STREAM) {
    begin_stream(sender, request);
    return;
  } else if (request->body_case == SINEW__V1__REQUEST__BODY_STREAM_STATE) {
    stream_plans(sender, request);
    return;
  } else if (request->body_case == SINEW__V1__REQUEST__BODY_OPEN) {
    reply_open(sender, &reply);
    return;
  } else if (request->body_case == SINEW__V1__REQUEST__BODY_DESCRIBE_TASK) {
    reply_task(sender, &reply);
    return;
  } else if (request->body_case == SINEW__V1__REQUEST__BODY_CLOSE) {
    reply.body_case = SINEW__V1__REPLY__BODY_CLOSE;
    reply.close = &closed;
  } else {
    reply.body_case = SINEW__V1__REPLY__BODY_HELLO;
    reply.hello = &hello;
  }
  reply_to(sender, &reply);
}

// Serves one message; an empty one, which stop_thread sends, ends the thread.
static bool serve_one(void) {
  zmq_msg_t sender, message;
  zmq_msg_init(&sender);
  zmq_msg_init(&message);
  zmq_msg_recv(&sender, fake.router, 0);
  zmq_msg_recv(&message, fake.router, 0);
  const bool more = zmq_msg_size(&message) > 0;
  if (more) {
    Sinew__V1__Request *request = sinew__v1__request__unpack(NULL, zmq_msg_size(&message), zmq_msg_data(&message));
    ++fake.requests;
    if (fake.silent > 0) {
      --fake.silent;
    } else if (fake.garbage) {
      zmq_msg_send(&sender, fake.router, ZMQ_SNDMORE);
      zmq_send(fake.router, "\xff\xff\xff", 3, 0);
    } else {
      answer(&sender, request);
    }
    sinew__v1__request__free_unpacked(request, NULL);
  }
  zmq_msg_close(&sender);
  zmq_msg_close(&message);
  return more;
}

static void *serve(void *unused) {
  while (serve_one()) continue;
  return unused;
}

static void start_thread(void) { assert_int_equal(pthread_create(&fake.thread, NULL, serve, NULL), 0); }

// Ends the thread, after it has served all that came before: then the test owns socket and counters.
static void stop_thread(void) {
  void *socket = zmq_socket(fake.context, ZMQ_DEALER);
  usleep(50000);
  zmq_connect(socket, fake.endpoint);
  zmq_send(socket, "", 0, 0);
  pthread_join(fake.thread, NULL);
  zmq_close(socket);
}

static int set_up(void **state) {
  (void)state;
  memset(&fake, 0, sizeof fake);
  nkept = 0;
  fake.time_to_live = 0.5;
  strcpy(fake.folder, "/tmp/sinew-fake.XXXXXX");
  if (!mkdtemp(fake.folder)) return -1;
  snprintf(fake.endpoint, sizeof fake.endpoint, "ipc://%s/s", fake.folder);
  fake.context = zmq_ctx_new();
  fake.router = zmq_socket(fake.context, ZMQ_ROUTER);
  if (zmq_bind(fake.router, fake.endpoint) != 0) return -1;
  start_thread();
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  stop_thread();
  for (int i = 0; i < nkept; ++i) zmq_msg_close(&kept[i].sender);
  zmq_close(fake.router);
  zmq_ctx_term(fake.context);
  unlink(fake.endpoint + strlen("ipc://"));
  return rmdir(fake.folder);
}

static SinewClient *connect_with(double timeout, int retries) {
  char error[400];
  SinewClient *client = sinew_connect(fake.endpoint, timeout, retries, error, sizeof error);
  if (!client) fail_msg("%s", error);
  return client;
}

static SinewSession *open_on(SinewClient *client, SinewFallback *fallback) {
  SinewSessionDef def = sinew_default_session();
  def.task = "fake";
  def.fallback = fallback;
  SinewSession *session;
  assert_int_equal(sinew_open(client, &def, &session), SINEW_OK);
  return session;
}

static SinewState state_at(double time) {
  static const double zero[NQ];
  return (SinewState){.time = time, .qpos = zero, .qvel = zero};
}

static void test_connect_refuses(void **state) {
  (void)state;
  char error[400];
  assert_null(sinew_connect(fake.endpoint, 0, 0, error, sizeof error));
  assert_non_null(strstr(error, "timeout must be"));
  assert_null(sinew_connect("nonsense", 1, 0, error, sizeof error));
  assert_non_null(strstr(error, "cannot connect to nonsense"));
  assert_null(sinew_connect("ipc:///nowhere/at/all", 0.1, 1, error, sizeof error));
  assert_non_null(strstr(error, "no answer from ipc:///nowhere/at/all within 0.1 s"));
  assert_null(sinew_connect("ipc:///nowhere/at/all", 0.1, 0, NULL, 0));
}

static void test_open(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  const SinewSessionInfo *info = sinew_session_info(session);
  assert_int_equal(info->id, 42);
  assert_true(info->nq == NQ && info->nv == NV && info->nu == NU && info->na == 0);
  assert_true(info->ctrl_range[0] == -1 && info->ctrl_range[1] == 2 && info->ctrl_range[2] < -1e300);
  assert_null(sinew_current_plan(session));
  assert_int_equal(sinew_close(session), SINEW_OK);
  sinew_disconnect(client);
}

// A session that cannot be used is closed at the daemon, and the text says why.
static void test_open_fails_half_way(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  fake.no_model = true;
  SinewSessionDef def = sinew_default_session();
  SinewSession *session;
  assert_int_equal(sinew_open(client, &def, &session), SINEW_ARGUMENT);
  def.task = "fake";
  assert_int_equal(sinew_open(client, &def, &session), SINEW_PROTOCOL);
  assert_null(session);
  assert_non_null(strstr(sinew_error(client), "incomplete"));
  const char *const settings[] = {"candidats=3", NULL};
  def.settings = settings;
  assert_int_equal(sinew_open(client, &def, &session), SINEW_ARGUMENT);
  assert_non_null(strstr(sinew_error(client), "unknown field 'candidats'"));
  stop_thread();
  assert_int_equal(fake.opens, 1);
  assert_int_equal(fake.closes, 1);
  start_thread();
  sinew_disconnect(client);
}

static void test_expiry_and_fallback(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, sinew_fallback_hold);
  double ctrl[NU] = {9, 9};
  assert_int_equal(sinew_control(session, 1, ctrl), SINEW_NO_PLAN);
  assert_true(ctrl[0] == 0 && ctrl[1] == 0);
  const SinewState now = state_at(1);
  assert_int_equal(sinew_plan(session, &now, 0.1), SINEW_OK);
  const double at[] = {0.9, 1, 1.05, 1.1, 1.3, 1.45, 1.5}, row[] = {0, 0, 0, 1, 3, 3, 3};
  for (size_t i = 0; i < sizeof at / sizeof *at; ++i) {
    assert_int_equal(sinew_control(session, at[i], ctrl), SINEW_OK);
    assert_true(ctrl[0] == 1 + row[i] && ctrl[1] == ctrl[0]);
  }
  ctrl[0] = 0;
  assert_int_equal(sinew_control(session, 1.51, ctrl), SINEW_EXPIRED);
  assert_true(ctrl[0] == 4);  // held
  sinew_close(session);
  session = open_on(client, NULL);
  assert_int_equal(sinew_plan(session, &now, 0.1), SINEW_OK);
  assert_int_equal(sinew_control(session, 2, ctrl), SINEW_EXPIRED);
  assert_true(ctrl[0] == 0 && ctrl[1] == 0);  // relaxed
  sinew_close(session);
  sinew_disconnect(client);
}

// What is no plan leaves the plan in force as it is.
static void test_refused_and_diverged(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  SinewState now = state_at(1);
  assert_int_equal(sinew_plan(session, &now, 0.1), SINEW_OK);
  now = state_at(1.2);
  fake.no_plan = true;
  assert_int_equal(sinew_plan(session, &now, 0.1), SINEW_NO_PLAN);
  fake.no_plan = false;
  fake.refuse = true;
  assert_int_equal(sinew_plan(session, &now, 0.1), SINEW_REFUSED);
  assert_string_equal(sinew_error(client), "qpos[1] is nan");
  fake.refuse = false;
  fake.wrong_kind = true;
  assert_int_equal(sinew_plan(session, &now, 0.1), SINEW_PROTOCOL);
  fake.wrong_kind = false;
  fake.garbage = true;
  assert_int_equal(sinew_plan(session, &now, 0.1), SINEW_PROTOCOL);
  fake.garbage = false;
  assert_true(sinew_current_plan(session)->state_time == 1);
  now.qpos = NULL;
  assert_int_equal(sinew_plan(session, &now, 0.1), SINEW_ARGUMENT);
  assert_int_equal(sinew_send_state(session, &now, 0.1), SINEW_ARGUMENT);
  sinew_close(session);
  sinew_disconnect(client);
}

static void test_retry(void **state) {
  (void)state;
  SinewClient *client = connect_with(1, 2);
  SinewSession *session = open_on(client, NULL);
  const SinewState now = state_at(1);
  fake.silent = 2;
  assert_int_equal(sinew_plan(session, &now, 0.1), SINEW_OK);
  fake.silent = 3;
  assert_int_equal(sinew_plan(session, &now, 0.1), SINEW_TIMEOUT);
  assert_non_null(strstr(sinew_error(client), "within 1 s"));
  assert_int_equal(sinew_plan(session, &now, 0.1), SINEW_OK);
  stop_thread();
  assert_true(fake.requests >= 3 + 3 + 3 + 1);  // more where the machine is slow
  start_thread();
  sinew_close(session);
  sinew_disconnect(client);
}

// A late answer is neither that of the next request nor a plan that sinew_receive takes.
static void test_late_answer(void **state) {
  (void)state;
  SinewClient *client = connect_with(1, 0);
  SinewSession *session = open_on(client, NULL);
  SinewState now = state_at(1);
  fake.keep = true;
  assert_int_equal(sinew_plan(session, &now, 0.1), SINEW_TIMEOUT);
  stop_thread();
  fake.keep = false;
  reply_plan(&kept[0].sender, kept[0].id, kept[0].time, SINEW__V1__PLAN__STATUS__OK);
  assert_int_equal(sinew_receive(session, 0.2), SINEW_TIMEOUT);
  assert_null(sinew_current_plan(session));
  reply_plan(&kept[0].sender, kept[0].id, kept[0].time, SINEW__V1__PLAN__STATUS__OK);
  start_thread();
  now = state_at(2);
  assert_int_equal(sinew_plan(session, &now, 0.1), SINEW_OK);
  assert_true(sinew_current_plan(session)->state_time == 2);
  sinew_close(session);
  sinew_disconnect(client);
}

// Continuous mode: all that has come is read, the newest plan is in force, and the daemon is told what was read.
static void test_stream(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  const SinewStreamDef def = sinew_default_stream();
  assert_int_equal(sinew_stream_start(session, &def), SINEW_OK);
  assert_int_equal(sinew_stream_poll(session, 0), SINEW_TIMEOUT);
  SinewState now = state_at(1);
  fake.better = 3;
  assert_int_equal(sinew_stream_state(session, &now), SINEW_OK);
  for (int i = 0; i < 50 && (!sinew_current_plan(session) || sinew_current_plan(session)->stream_sequence < 3); ++i)
    sinew_stream_poll(session, 0.1);
  assert_true(sinew_current_plan(session)->stream_sequence == 3 && sinew_current_plan(session)->state_time == 1);
  now = state_at(2);
  assert_int_equal(sinew_stream_state(session, &now), SINEW_OK);
  assert_int_equal(sinew_stream_poll(session, 5), SINEW_OK);
  assert_true(sinew_current_plan(session)->state_time == 2);
  stop_thread();
  assert_int_equal(fake.seen, 3);
  start_thread();

  // Diverged candidates leave the plan in force; so does a state that is refused.
  while (sinew_stream_poll(session, 0.1) == SINEW_OK) continue;
  fake.better = 1;
  fake.no_plan = true;
  now = state_at(3);
  assert_int_equal(sinew_stream_state(session, &now), SINEW_OK);
  assert_int_equal(sinew_stream_poll(session, 5), SINEW_NO_PLAN);
  assert_true(sinew_current_plan(session)->state_time == 2);
  fake.no_plan = false;
  fake.refuse = true;
  assert_int_equal(sinew_stream_state(session, &now), SINEW_OK);
  assert_int_equal(sinew_stream_poll(session, 5), SINEW_REFUSED);
  assert_string_equal(sinew_error(client), "qpos[1] is nan");
  fake.refuse = false;
  now.qvel = NULL;
  assert_int_equal(sinew_stream_state(session, &now), SINEW_ARGUMENT);

  // The daemon ends it; a new one counts from 1.
  fake.better = 0;
  fake.ends = true;
  now = state_at(4);
  assert_int_equal(sinew_stream_state(session, &now), SINEW_OK);
  assert_int_equal(sinew_stream_poll(session, 5), SINEW_ENDED);
  assert_non_null(strstr(sinew_error(client), "lease"));
  fake.ends = false;
  fake.better = 1;
  assert_int_equal(sinew_stream_start(session, &def), SINEW_OK);
  now = state_at(5);
  assert_int_equal(sinew_stream_state(session, &now), SINEW_OK);
  assert_int_equal(sinew_stream_poll(session, 5), SINEW_OK);
  assert_true(sinew_current_plan(session)->stream_sequence == 1 && sinew_current_plan(session)->state_time == 5);
  assert_int_equal(sinew_stream_stop(session), SINEW_OK);
  sinew_close(session);
  sinew_disconnect(client);
}

static void test_evaluate(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  SinewState now = state_at(1);
  const double ctrl[2 * NU] = {1, 2, 3, 4};
  double cost = 0, gradient[2 * NU] = {0};
  assert_int_equal(sinew_evaluate(session, &now, ctrl, 2, &cost, NULL), SINEW_OK);
  assert_true(cost == 10 && gradient[0] == 0);
  assert_int_equal(sinew_evaluate(session, &now, ctrl, 2, &cost, gradient), SINEW_OK);
  assert_true(gradient[0] == 4 && gradient[3] == 4);
  assert_int_equal(sinew_evaluate(session, &now, ctrl, 0, &cost, gradient), SINEW_ARGUMENT);
  fake.no_plan = true;
  assert_int_equal(sinew_evaluate(session, &now, ctrl, 2, &cost, gradient), SINEW_PROTOCOL);
  fake.no_plan = false;
  sinew_close(session);
  sinew_disconnect(client);
}

// Of states sent without waiting the newest plan wins, in whatever order the answers come.
static void test_newest_wins(void **state) {
  (void)state;
  SinewClient *client = connect_with(5, 0);
  SinewSession *session = open_on(client, NULL);
  assert_int_equal(sinew_receive(session, 0), SINEW_TIMEOUT);
  fake.keep = true;
  for (int i = 1; i <= 3; ++i) {
    const SinewState now = state_at(i);
    assert_int_equal(sinew_send_state(session, &now, 0.1), SINEW_OK);
  }
  stop_thread();
  assert_int_equal(nkept, 3);
  reply_plan(&kept[0].sender, kept[0].id, kept[0].time, SINEW__V1__PLAN__STATUS__REPLACED);
  reply_plan(&kept[2].sender, kept[2].id, kept[2].time, SINEW__V1__PLAN__STATUS__OK);
  reply_plan(&kept[1].sender, kept[1].id, kept[1].time, SINEW__V1__PLAN__STATUS__OK);
  assert_int_equal(sinew_receive(session, 5), SINEW_OK);
  assert_true(sinew_current_plan(session)->state_time == 3);
  assert_int_equal(sinew_receive(session, 0.2), SINEW_TIMEOUT);
  assert_true(sinew_current_plan(session)->state_time == 3);
  start_thread();
  sinew_close(session);
  sinew_disconnect(client);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(test_connect_refuses),
      TEST(test_open),
      TEST(test_open_fails_half_way),
      TEST(test_expiry_and_fallback),
      TEST(test_refused_and_diverged),
      TEST(test_retry),
      TEST(test_late_answer),
      TEST(test_stream),
      TEST(test_evaluate),
      TEST(test_newest_wins),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
