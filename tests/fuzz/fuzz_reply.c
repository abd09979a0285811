// Fuzz target: what a client decodes from a server: libsinew_client, the replies that sinewctl prints, sinewctl watch.
// libzmq is not there (fake_zmq.h): whatever the client asks is answered from the input, by a reply of the kind that it
// waits for, of another kind, or by bytes. What the library gives out must be fit to move a robot by.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include "clients/libsinew_client/reflect.h"
#include "clients/sinewctl/watch_private.h"
#include "tests/fuzz/fake_zmq.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/message_maker.h"

enum { OPERATIONS = 24, KINDS = 9, REPLY_BYTES = 1 << 18 };

#define TIMEOUT 0.1  // [s] of a request, on a clock that goes on by the next at each look
#define LOOK_TIME 0.005

static FuzzBytes input;
static uint64_t asked_id;    // of the latest request
static unsigned asked_kind;  // its body
static bool waiting;         // it has not been answered
static FILE *nowhere;        // what is printed goes there
static uint8_t reply[REPLY_BYTES];

static bool fake_time;                // time is that of `looks`
static int64_t looks;                 // at the clock
static bool done[KINDS];              // operations of a controller that have succeeded
static bool answered, watched, told;  // sinewctl's requests, sinewctl watch, telemetry

static const char *text_of(const ProtobufCMessageDescriptor *message, const char *field, unsigned byte) {
  static const char *const text[] = {"small", "ipc:///t", "tcp://127.0.0.1:1", "adam", "\x1b[2J", "cpu", ""};
  (void)message;
  (void)field;
  return text[byte % (sizeof text / sizeof *text)];
}

static unsigned length_of(const char *field, unsigned byte) {
  static const unsigned length[] = {2, 4, 8, 16, 0, 1, 3, 7, 12, 6, 40};
  (void)field;
  return length[byte % (sizeof length / sizeof *length)];
}

static const uint64_t session[] = {7};
static const FuzzHints hints = {text_of, length_of, session, 1, false, NULL};

// Nobody sleeps here (sinewctl watch would, between two looks).
int nanosleep(const struct timespec *time, struct timespec *left) {
  (void)left;
  return time ? 0 : -1;
}

// While an input runs, time is the number of looks at the clock: the same each time, however busy the machine is.
int clock_gettime(clockid_t clock, struct timespec *time) {
  if (!fake_time) return (int)syscall(SYS_clock_gettime, clock, time);
  const int64_t now = ++looks * (int64_t)(1e9 * LOOK_TIME);
  *time = (struct timespec){now / 1000000000, now % 1000000000};
  return 0;
}

// Notes what is asked; a request that cannot be read is the library's mistake.
static void sent(const void *bytes, size_t size, bool more) {
  Sinew__V1__Request *request = sinew__v1__request__unpack(NULL, size, bytes);
  if (!request || more || request->body_case == SINEW__V1__REQUEST__BODY__NOT_SET)
    fuzz_fail("what is sent is no request");
  asked_id = request->id;
  asked_kind = (unsigned)request->body_case;
  waiting = true;
  sinew__v1__request__free_unpacked(request, NULL);
}

// The body of a reply, by the name that the request's has.
static unsigned kind_of_reply(unsigned c) {
  const ProtobufCMessageDescriptor *d = &sinew__v1__reply__descriptor;
  const ProtobufCFieldDescriptor *asked =
      protobuf_c_message_descriptor_get_field(&sinew__v1__request__descriptor, asked_kind);
  const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field_by_name(d, asked ? asked->name : "error");
  if (c < 208 && f) return f->id;
  f = protobuf_c_message_descriptor_get_field_by_name(d, c < 232 ? "plan" : c < 240 ? "stream" : "error");
  return f->id;
}

// The next message; an error where the input has ended and one is waited for, so that nobody waits in vain.
static bool receive(const void **bytes, size_t *size, bool *more) {
  *more = false;
  *bytes = reply;
  if (input.at == input.end && !waiting) return false;
  const unsigned c = input.at == input.end ? 255 : fuzz_byte(&input);
  if (c < 12) return false;
  if (c < 16) {
    *size = fuzz_byte(&input) << 8;
    *size |= fuzz_byte(&input);
    if (*size > (size_t)(input.end - input.at)) *size = (size_t)(input.end - input.at);
    *bytes = input.at;
    input.at += *size;
    waiting = false;
  } else if (c < 24) {
    *size = fuzz_message(&input, &hints, &sinew__v1__telemetry__descriptor, 0, 0, reply, sizeof reply);
  } else {
    const uint64_t id = c == 255 ? 0 : c < 32 ? fuzz_byte(&input) : asked_id;
    *size = fuzz_message(&input, &hints, &sinew__v1__reply__descriptor, kind_of_reply(c), id, reply, sizeof reply);
    waiting = waiting && id != asked_id && id != 0;
  }
  return true;
}

// What becomes of connections and handshakes, by bytes that a message does not begin with.
static unsigned event(unsigned *value) {
  static const unsigned number[] = {ZMQ_EVENT_DISCONNECTED, ZMQ_EVENT_HANDSHAKE_SUCCEEDED,
                                    ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL, ZMQ_EVENT_HANDSHAKE_FAILED_AUTH,
                                    ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL};
  if (input.at == input.end || *input.at < 4 || *input.at >= 12) return 0;
  const unsigned c = fuzz_byte(&input) - 4;
  *value = c == 4 ? ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH : c;
  return number[c < 5 ? c : 0];
}

// Whatever a server says, controls are numbers.
static void check_controls(const SinewSessionInfo *info, const double *ctrl) {
  for (int i = 0; i < info->nu; ++i)
    if (!isfinite(ctrl[i])) fuzz_fail("control %d is %g", i, ctrl[i]);
}

// Asks for anything, and prints the answer as sinewctl does.
static void ask(SinewClient *client) {
  static uint8_t packed[4096];
  const ProtobufCMessageDescriptor *d = &sinew__v1__request__descriptor;
  const unsigned field = d->fields[1 + fuzz_byte(&input) % (d->n_fields - 1)].id;
  FuzzBytes none = {packed, packed};
  const size_t size = fuzz_message(&none, &hints, d, field, 1, packed, sizeof packed);
  Sinew__V1__Request *request = sinew__v1__request__unpack(NULL, size, packed);
  Sinew__V1__Reply *got = NULL;
  SinewError err;
  if (!request) fuzz_fail("no request of kind %u", field);
  if (sn_request(client, request, &got, &err) == SINEW_OK) {
    answered = true;
    sn_message_print(nowhere, &got->base, 0);
    cJSON *json = sn_message_to_json(&got->base);
    cJSON_free(cJSON_PrintUnformatted(json));
    cJSON_Delete(json);
  }
  sn_free_reply(got);
  sinew__v1__request__free_unpacked(request, NULL);
}

static void watch(SinewClient *client) {
  SinewError err;
  FILE *own = stdout;
  const unsigned c = fuzz_byte(&input);
  stdout = nowhere;
  watched |= watch_run(client, &(WatchOptions){.session = 7, .count = 3, .interval = c & 1 ? 1e-9 : 0, .json = c & 2},
                       &err) == SINEW_OK;
  stdout = own;
}

static void look_at_telemetry(SinewClient *client) {
  Sinew__V1__Telemetry *telemetry;
  SinewError err;
  if (sn_wire_telemetry(client, 0, &telemetry, &err) != SINEW_OK) return;
  told = true;
  sn_message_print(nowhere, &telemetry->base, 0);
  sinew__v1__telemetry__free_unpacked(telemetry, NULL);
}

static SinewStatus call(SinewSession *s, unsigned operation, const SinewState *state, double *ctrl, double *gradient) {
  const SinewStreamDef stream = sinew_default_stream();
  SinewError err;
  double cost;
  bool corrected;
  switch (operation) {
    case 0:
      return sinew_session_plan(s, state, 0.01, &err);
    case 1:
      return sinew_session_send(s, state, 0.01, &err);
    case 2:
      return sinew_session_receive(s, 0, &err);
    case 3:
      return sinew_session_stream_start(s, &stream, &err);
    case 4:
      return sinew_session_stream_send(s, state, &err);
    case 5:
      return sinew_session_stream_receive(s, 0, &err);
    case 6:
      return sinew_session_stream_stop(s, &err);
    case 7:
      return sinew_session_feedback(s, state, ctrl, &corrected, &err);
    default:
      return sinew_session_evaluate(s, state, ctrl, 1, &cost, gradient, &err);
  }
}

// What a controller calls.
static void operate(SinewSession *s, const SinewState *state, double *ctrl, double *gradient) {
  const SinewSessionInfo *info = sinew_session_info(s);
  const unsigned operation = fuzz_byte(&input) % KINDS;
  SinewError err;
  done[operation] |= call(s, operation, state, ctrl, gradient) == SINEW_OK;
  if (operation == 7) check_controls(info, ctrl);
  sinew_session_control(s, fuzz_byte(&input) / 64.0, ctrl, &err);
  check_controls(info, ctrl);
}

static void use_session(SinewSession *s) {
  const SinewSessionInfo *info = sinew_session_info(s);
  const size_t nu = (size_t)info->nu + 1;
  double *ctrl = calloc(2 * nu, sizeof *ctrl);
  SinewState state = info->initial;
  if (!ctrl) fuzz_fail("out of memory");
  for (int i = 0; i < OPERATIONS && input.at < input.end; ++i) {
    state.time = fuzz_byte(&input) / 64.0;
    operate(s, &state, ctrl, ctrl + nu);
  }
  free(ctrl);
}

// Of tcp more of a handshake is told.
static void use_client(const char *endpoint) {
  SinewError err;
  SinewClient *client = sinew_client_connect(endpoint, TIMEOUT, 0, &err);
  if (!client) return;
  const unsigned what = fuzz_byte(&input);
  if (what % 4 == 1) watch(client);
  if (what % 4 == 2 && sn_wire_subscribe(client, "ipc:///u", &err) == SINEW_OK)
    for (int i = 0; i < 4; ++i) look_at_telemetry(client);
  if (what % 4 == 3)
    for (int i = 0; i < OPERATIONS && input.at < input.end; ++i) ask(client);
  SinewSessionDef def = sinew_default_session();
  def.task = "small";
  def.gain_rows = 2;
  SinewSession *s = sinew_session_open(client, &def, &err);
  if (s) use_session(s);
  sinew_session_close(s, &err);
  sinew_client_disconnect(client);
}

void fuzz_one(const uint8_t *data, size_t size) {
  if (!nowhere) nowhere = fopen("/dev/null", "w");
  fake_zmq = (FakeZmq){.receive = receive, .event = event, .sent = sent};
  input = (FuzzBytes){data, data + size};
  waiting = false;
  looks = 0;
  fake_time = true;
  use_client(size % 2 ? "ipc:///t" : "tcp://127.0.0.1:1");
  fake_time = false;
}

const char *fuzz_missing(void) {
  static const char *const what[KINDS] = {"plan",           "send",        "receive",  "stream_start", "stream_send",
                                          "stream_receive", "stream_stop", "feedback", "evaluate"};
  for (int i = 0; i < KINDS; ++i)
    if (!done[i]) return what[i];
  return !answered ? "sinewctl's requests" : !watched ? "sinewctl watch" : !told ? "telemetry" : NULL;
}

// A message as bytes of an input.
static size_t put(uint8_t *out, const ProtobufCMessage *message) {
  const size_t n = protobuf_c_message_pack(message, out + 3);
  out[0] = 12;
  out[1] = (uint8_t)(n >> 8);
  out[2] = (uint8_t)n;
  return n + 3;
}

static size_t put_reply(uint8_t *out, Sinew__V1__Reply__BodyCase kind, void *body) {
  Sinew__V1__Reply r = SINEW__V1__REPLY__INIT;
  r.body_case = kind;
  r.hello = body;  // all bodies share their place
  return put(out, &r.base);
}

static size_t put_hello(uint8_t *out) {
  Sinew__V1__HelloReply hello = SINEW__V1__HELLO_REPLY__INIT;
  hello.protocol = 1;
  hello.telemetry = (char *)"ipc:///t";
  return put_reply(out, SINEW__V1__REPLY__BODY_HELLO, &hello);
}

enum { NQ = 2, NU = 2, ROWS = 3 };

static size_t put_session(uint8_t *out) {
  double zero[NQ] = {0};
  Sinew__V1__State state = SINEW__V1__STATE__INIT;
  state.n_qpos = state.n_qvel = NQ;
  state.qpos = state.qvel = zero;
  Sinew__V1__OpenReply open = SINEW__V1__OPEN_REPLY__INIT;
  open.session = 7;
  open.initial = &state;
  Sinew__V1__Quantity part[NQ], *parts[NQ];
  for (int i = 0; i < NQ; ++i) {
    sinew__v1__quantity__init(&part[i]);
    part[i].address = (uint32_t)i;
    part[i].size = 1;
    part[i].limited = i;
    part[i].max = 1;
    parts[i] = &part[i];
  }
  Sinew__V1__ModelDescription model = SINEW__V1__MODEL_DESCRIPTION__INIT;
  model.nq = model.nv = NQ;
  model.nu = NU;
  model.timestep = 0.01;
  model.n_ctrl = NU;
  model.n_qpos = NQ;
  model.ctrl = model.qpos = parts;
  Sinew__V1__TaskDescription task = SINEW__V1__TASK_DESCRIPTION__INIT;
  task.model = &model;
  const size_t n = put_reply(out, SINEW__V1__REPLY__BODY_OPEN, &open);
  return n + put_reply(out + n, SINEW__V1__REPLY__BODY_DESCRIBE_TASK, &task);
}

// A plan, in which one number is none: 0 nowhere, 1 to 4 the controls, the gains, the states, the step.
static size_t put_plan(uint8_t *out, uint64_t number, int bad) {
  double ctrl[ROWS * NU] = {0.5, bad == 1 ? NAN : 1}, gain[NU * 2 * NQ] = {bad == 2 ? NAN : 1};
  double states[(ROWS + 1) * NQ] = {bad == 3 ? NAN : 0};
  Sinew__V1__Trajectory x = SINEW__V1__TRAJECTORY__INIT;
  x.n_qpos = x.n_qvel = (ROWS + 1) * NQ;
  x.qpos = x.qvel = states;
  Sinew__V1__Plan plan = SINEW__V1__PLAN__INIT;
  plan.session = 7;
  plan.status = SINEW__V1__PLAN__STATUS__OK;
  plan.time_to_live = 1;
  plan.step = bad == 4 ? NAN : 0.01;
  plan.steps = ROWS;
  plan.n_ctrl = ROWS * NU;
  plan.ctrl = ctrl;
  plan.states = &x;
  plan.gain_rows = 1;
  plan.n_gain = NU * 2 * NQ;
  plan.gain = gain;
  plan.stream_sequence = number;
  return put_reply(out, SINEW__V1__REPLY__BODY_PLAN, &plan);
}

static size_t put_evaluation(uint8_t *out) {
  double ctrl[NU] = {1, 2};
  Sinew__V1__Gradient gradient = SINEW__V1__GRADIENT__INIT;
  gradient.status = SINEW__V1__GRADIENT__STATUS__OK;
  gradient.n_ctrl = NU;
  gradient.ctrl = ctrl;
  Sinew__V1__Evaluation evaluation = SINEW__V1__EVALUATION__INIT;
  evaluation.cost = 1;
  evaluation.gradient = &gradient;
  return put_reply(out, SINEW__V1__REPLY__BODY_EVALUATE, &evaluation);
}

// What sinewctl watch asks for: two looks at a session, whose telemetry is at tcp and so not asked for.
static size_t put_watch(uint8_t *out) {
  Sinew__V1__SessionStatistics of = SINEW__V1__SESSION_STATISTICS__INIT, *sessions = &of;
  Sinew__V1__Statistics statistics = SINEW__V1__STATISTICS__INIT;
  Sinew__V1__HelloReply hello = SINEW__V1__HELLO_REPLY__INIT;
  Sinew__V1__Config config = SINEW__V1__CONFIG__INIT;
  of.session = 7;
  of.unimproved = of.config_version = config.version = 1;
  statistics.n_sessions = 1;
  statistics.sessions = &sessions;
  hello.protocol = 1;
  hello.telemetry = (char *)"tcp://127.0.0.1:1";
  out[0] = 0;  // how it is asked for
  size_t n = 1 + put_reply(out + 1, SINEW__V1__REPLY__BODY_STATISTICS, &statistics);
  n += put_reply(out + n, SINEW__V1__REPLY__BODY_HELLO, &hello);
  n += put_reply(out + n, SINEW__V1__REPLY__BODY_GET_CONFIG, &config);
  for (int i = 0; i < 3; ++i) n += put_reply(out + n, SINEW__V1__REPLY__BODY_STATISTICS, &statistics);
  return n;
}

// An operation and its answer; in the plan of it a number is none where `bad` says so.
static size_t put_operation(uint8_t *out, int operation, uint64_t number, int bad) {
  Sinew__V1__StreamReply stream = SINEW__V1__STREAM_REPLY__INIT;
  stream.session = 7;
  stream.end = operation == 3 ? SINEW__V1__STREAM_REPLY__END__RUNNING : SINEW__V1__STREAM_REPLY__END__STOPPED;
  stream.lease = 1;
  size_t n = 0;
  out[n++] = (uint8_t)number;  // the state's time
  out[n++] = (uint8_t)operation;
  if (operation == 0 || operation == 2 || operation == 5) n += put_plan(out + n, number, bad);
  if (operation == 3 || operation == 6) n += put_reply(out + n, SINEW__V1__REPLY__BODY_STREAM, &stream);
  if (operation == 8) n += put_evaluation(out + n);
  out[n++] = (uint8_t)number;
  return n;
}

// A session in which a controller does one of its operations several times, after what that needs, with plans that are
// good or not; what sinewctl asks for.
size_t fuzz_seed(int i, uint8_t *bytes) {
  enum { CALLS = 5 * KINDS, OTHERS = 16, ROUNDS = 3, LENGTH = 300 };
  static const int before[KINDS][2] = {{0, 0}, {1, 1}, {1, 1}, {3, 3}, {3, 4}, {3, 4}, {3, 3}, {0, 0}, {8, 8}};
  size_t n = put_hello(bytes);
  if (i >= CALLS + OTHERS) return 0;
  bytes[n++] = (uint8_t)(i < CALLS ? 0 : 1 + (i - CALLS) % 3);
  if (i == CALLS) n += put_watch(bytes + n);
  if (i == CALLS + 1) n += put(bytes + n, &(const Sinew__V1__Telemetry)SINEW__V1__TELEMETRY__INIT.base);
  if (i < CALLS) {
    n += put_session(bytes + n);
    for (int k = 0; k < 2; ++k) n += put_operation(bytes + n, before[i % KINDS][k], 1, 0);
    for (int k = 0; k < ROUNDS; ++k) n += put_operation(bytes + n, i % KINDS, (uint64_t)k + 2, i / KINDS);
    return n;
  }
  for (size_t k = 0; k < LENGTH; ++k) bytes[n++] = (uint8_t)((k * (size_t)(i + 3) * 7 + k * k) >> i % 4);
  return n;
}
