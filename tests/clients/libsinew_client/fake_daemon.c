#include "tests/clients/libsinew_client/fake_daemon.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
// cmocka needs what stands above.
#include <cmocka.h>

FakeDaemon fake;
SinewError err;
Kept kept[8];
int nkept;

static void reply_to(zmq_msg_t *sender, Sinew__V1__Reply *reply) {
  uint8_t bytes[4096];
  if (fake.lie) fake.lie(reply);
  assert_true(sinew__v1__reply__get_packed_size(reply) <= sizeof bytes);
  const size_t size = sinew__v1__reply__pack(reply, bytes);
  zmq_msg_t copy;
  zmq_msg_init(&copy);
  zmq_msg_copy(&copy, sender);
  zmq_msg_send(&copy, fake.router, ZMQ_SNDMORE);
  zmq_send(fake.router, bytes, size, 0);
}

void reply_plan(zmq_msg_t *sender, uint64_t id, double time, Sinew__V1__Plan__Status status) {
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

static void note_open(const Sinew__V1__OpenRequest *in) {
  const Sinew__V1__SessionSettings *s = in->session;
  const Sinew__V1__PlannerSettings *p = in->planner;
  fake.seed = in->seed;
  fake.latency = s && s->has_latency_case ? s->latency : -1;
  fake.lease = s && s->has_lease_case ? s->lease : -1;
  fake.plans_live = s && s->has_time_to_live_case ? s->time_to_live : -1;
  fake.candidates = p && p->has_candidates_case ? (int)p->candidates : -1;
  fake.adam_iterations = p && p->has_adam_iterations_case ? (int)p->adam_iterations : -1;
}

static void reply_task(zmq_msg_t *sender, Sinew__V1__Reply *reply) {
  Sinew__V1__Quantity limited = SINEW__V1__QUANTITY__INIT, free_one = SINEW__V1__QUANTITY__INIT;
  limited.limited = true;
  limited.min = -1;
  limited.max = 5;
  limited.size = free_one.size = 1;
  free_one.address = 1;
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
  fake.gain_rows = (int)request->plan->gain_rows;
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
  fake.stream_lease = request->stream->lease;
  fake.stream_deadline = request->stream->deadline;
  fake.stream_period = request->stream->period;
  fake.stream_iterations = (int)request->stream->iterations;
  fake.stream_gain_rows = (int)request->stream->gain_rows;
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

static void answer_change(zmq_msg_t *sender, const Sinew__V1__Request *request) {
  uint8_t bytes[1000];
  Sinew__V1__Config out = SINEW__V1__CONFIG__INIT;
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  if (fake.change) sinew__v1__request__free_unpacked(fake.change, NULL);
  fake.change = sinew__v1__request__unpack(NULL, sinew__v1__request__pack(request, bytes), bytes);
  reply.id = request->id;
  reply.body_case = SINEW__V1__REPLY__BODY_SET_CONFIG;
  reply.set_config = &out;
  reply_to(sender, &reply);
}

static void answer(zmq_msg_t *sender, const Sinew__V1__Request *request) {
  Sinew__V1__HelloReply hello = SINEW__V1__HELLO_REPLY__INIT;
  Sinew__V1__CloseReply closed = SINEW__V1__CLOSE_REPLY__INIT;
  Sinew__V1__Health health = SINEW__V1__HEALTH__INIT;
  Sinew__V1__Error error = SINEW__V1__ERROR__INIT;
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  Sinew__V1__Limits limits = SINEW__V1__LIMITS__INIT;
  limits.message_bytes = fake.longest;
  hello.protocol = 1;
  hello.limits = fake.longest > 0 ? &limits : NULL;
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
  } else if (request->body_case == SINEW__V1__REQUEST__BODY_SET_CONFIG) {
    answer_change(sender, request);
    return;
  } else if (request->body_case == SINEW__V1__REQUEST__BODY_STREAM) {
    begin_stream(sender, request);
    return;
  } else if (request->body_case == SINEW__V1__REQUEST__BODY_STREAM_STATE) {
    stream_plans(sender, request);
    return;
  } else if (request->body_case == SINEW__V1__REQUEST__BODY_OPEN) {
    note_open(request->open);
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

void start_thread(void) {
  assert_int_equal(pthread_create(&fake.thread, NULL, serve, NULL), 0);
  fake.serving = true;
}

void stop_thread(void) {
  if (!fake.serving) return;  // what follows on a failure in between
  void *socket = zmq_socket(fake.context, ZMQ_DEALER);
  usleep(50000);
  zmq_connect(socket, fake.endpoint);
  zmq_send(socket, "", 0, 0);
  pthread_join(fake.thread, NULL);
  fake.serving = false;
  zmq_close(socket);
}

int set_up(void **state) {
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

int tear_down(void **state) {
  (void)state;
  stop_thread();
  for (int i = 0; i < nkept; ++i) zmq_msg_close(&kept[i].sender);
  if (fake.change) sinew__v1__request__free_unpacked(fake.change, NULL);
  zmq_close(fake.router);
  zmq_ctx_term(fake.context);
  unlink(fake.endpoint + strlen("ipc://"));
  return rmdir(fake.folder);
}

SinewClient *connect_with(double timeout, int retries) {
  SinewClient *client = sinew_client_connect(fake.endpoint, timeout, retries, &err);
  if (!client) fail_msg("%s", err.text);
  return client;
}

SinewSession *open_on(SinewClient *client, SinewSessionFallback *fallback) {
  SinewSessionDef def = sinew_default_session();
  def.task = "fake";
  def.fallback = fallback;
  SinewSession *session = sinew_session_open(client, &def, &err);
  if (!session) fail_msg("%s", err.text);
  return session;
}

SinewState state_at(double time) {
  static const double zero[NQ];
  return (SinewState){.time = time, .qpos = zero, .qvel = zero};
}

void expect_text(const char *said) {
  if (!strstr(err.text, said)) fail_msg("'%s' does not say '%s'", err.text, said);
}

void expect_error(SinewStatus status, const char *said) {
  assert_int_equal(err.status, status);
  expect_text(said);
  assert_int_equal(err.text[0] == 0, status == SINEW_OK);
}

void expect_status(SinewStatus status, SinewStatus wanted) {
  if (status != wanted) fail_msg("%s, not %s: '%s'", sinew_status_name(status), sinew_status_name(wanted), err.text);
  expect_error(wanted, "");
}
