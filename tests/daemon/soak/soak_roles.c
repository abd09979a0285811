// Clients that want something, and look at what they get.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "tests/daemon/soak/soak.h"
#include "tests/support/daemon_group.h"
#include "tests/support/daemon_tuning.h"

// An answer comes within so many seconds, or it is lost.
enum { ANSWER_SECONDS = SN_SLOW ? 240 : 60 };

enum { HELLO_SECONDS = SN_SLOW ? 20 : 5, HELLO_TRIES = 12 };

// Versions of a configuration that sinewd keeps: they are filled first, so that they do not grow later.
enum { VERSIONS = 1024 };

static const double LEASE = 900;

// ---- requests ----

void soak_wrong(Soak *s, atomic_long *count, const char *what, const char *why) {
  atomic_fetch_add(count, 1);
  if (s->counts != &s->shared->counts || atomic_exchange(&s->shared->told, true)) return;
  int n = 0;
  char text[sizeof s->shared->first];
  snprintf(text, sizeof text, "%s: %s", what, why);
  for (const char *p = text; *p; p++) s->shared->first[n++] = *p < ' ' || *p == '"' || *p == '\\' ? '\'' : *p;
}

void soak_connect(Soak *s, SnTestClient *c, const char *endpoint) {
  Sinew__V1__HelloRequest in = SINEW__V1__HELLO_REQUEST__INIT;
  in.protocol = 1;
  sn_test_connect(c, endpoint);
  for (int tries = 1;; tries++) {
    sn_test_send(c, SN_TEST_MESSAGE(hello, HELLO, &in));
    Sinew__V1__Reply *reply = sn_test_receive(c, HELLO_SECONDS);
    while (reply && reply->id != c->id) {
      sn_test_done(reply);
      reply = sn_test_receive(c, HELLO_SECONDS);
    }
    if (reply || tries == HELLO_TRIES) {
      if (!reply) soak_wrong(s, &s->counts->lost, "hello", "never heard");
      sn_test_done(reply);
      return;
    }
    atomic_fetch_add(&s->counts->unheard, 1);
  }
}

static const char *words_of(const Sinew__V1__Reply *reply) {
  return reply->body_case == SINEW__V1__REPLY__BODY_ERROR ? reply->error->text : "another body";
}

static const char *kind_of(const Sinew__V1__Request *request) {
  return protobuf_c_message_descriptor_get_field(&sinew__v1__request__descriptor, request->body_case)->name;
}

static Sinew__V1__Reply *ask_once(Soak *s, SnTestClient *c, Sinew__V1__Request *request) {
  atomic_fetch_add(&s->counts->asked, 1);
  sn_test_send(c, request);
  for (double until = sn_clock_now() + ANSWER_SECONDS, left; (left = until - sn_clock_now()) > 0;) {
    Sinew__V1__Reply *reply = sn_test_receive(c, left);
    if (reply && reply->id == c->id) return reply;
    sn_test_done(reply);
  }
  soak_wrong(s, &s->counts->lost, kind_of(request), "no answer");
  return NULL;
}

Sinew__V1__Reply *soak_ask(Soak *s, SnTestClient *c, Sinew__V1__Request *request) {
  for (;;) {
    Sinew__V1__Reply *reply = ask_once(s, c, request);
    if (!reply) return NULL;
    const bool failed = reply->body_case == SINEW__V1__REPLY__BODY_ERROR;
    const bool again = failed && reply->error->code == SINEW__V1__ERROR__CODE__RESTORING;
    const bool plan = reply->body_case == SINEW__V1__REPLY__BODY_PLAN;
    atomic_fetch_add(failed ? &s->counts->refused : plan ? &s->counts->planned : &s->counts->answered, 1);
    if (!again) return reply;
    sn_test_done(reply);
    soak_sleep(0.02);
  }
}

bool soak_expect(Soak *s, SnTestClient *c, Sinew__V1__Request *request, Sinew__V1__Reply__BodyCase body,
                 bool may_fail) {
  Sinew__V1__Reply *reply = soak_ask(s, c, request);
  if (!reply) return false;
  const bool good = reply->body_case == body, failed = reply->body_case == SINEW__V1__REPLY__BODY_ERROR;
  if (!good && !(failed && may_fail)) soak_wrong(s, &s->counts->wrong, kind_of(request), words_of(reply));
  sn_test_done(reply);
  return good;
}

Sinew__V1__Reply *soak_open(Soak *s, SnTestClient *c, const char *task, const char *name, const char *planner) {
  Sinew__V1__OpenRequest in = SINEW__V1__OPEN_REQUEST__INIT;
  Sinew__V1__PlannerSettings planned_by = SINEW__V1__PLANNER_SETTINGS__INIT;
  Sinew__V1__SessionSettings session = SINEW__V1__SESSION_SETTINGS__INIT;
  in.task = (char *)(uintptr_t)task;
  in.seed = soak_below(s, 1000);
  if (name) in.name = (char *)(uintptr_t)name;
  planned_by.has_planner_case = SINEW__V1__PLANNER_SETTINGS__HAS_PLANNER_PLANNER;
  planned_by.planner = (char *)(uintptr_t)planner;
  planned_by.has_candidates_case = SINEW__V1__PLANNER_SETTINGS__HAS_CANDIDATES_CANDIDATES;
  planned_by.candidates = 8;
  session.has_lease_case = SINEW__V1__SESSION_SETTINGS__HAS_LEASE_LEASE;
  session.lease = LEASE;
  in.planner = &planned_by;
  in.session = &session;
  Sinew__V1__Reply *reply = soak_ask(s, c, SN_TEST_MESSAGE(open, OPEN, &in));
  if (reply && reply->body_case == SINEW__V1__REPLY__BODY_OPEN) return reply;
  // A visitor may come when all places are taken.
  const bool limit = reply && reply->body_case == SINEW__V1__REPLY__BODY_ERROR &&
                     reply->error->code == SINEW__V1__ERROR__CODE__LIMIT && !name;
  if (reply && !limit) soak_wrong(s, &s->counts->wrong, "open", words_of(reply));
  sn_test_done(reply);
  return NULL;
}

// The sessions that stay are opened once, and are there again after a restart.
static Sinew__V1__Reply *open_lasting(Soak *s, SnTestClient *c, const char *kind, int number, const char *planner) {
  char name[32];
  snprintf(name, sizeof name, "%s %d", kind, number);
  soak_connect(s, c, number % 2 ? s->tcp : s->ipc);
  Sinew__V1__Reply *reply = NULL;
  do {
    reply = soak_open(s, c, "arm_reach", name, planner);
  } while (!reply && soak_goes_on(s, 1));
  if (reply && reply->open->restarts > 0) atomic_fetch_add(&s->counts->restored, 1);
  return reply;
}

static bool all_finite(const double *x, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!isfinite(x[i])) return false;
  return true;
}

bool soak_plan(Soak *s, SnTestClient *c, uint64_t session, const Sinew__V1__State *state) {
  Sinew__V1__PlanRequest in = SINEW__V1__PLAN_REQUEST__INIT;
  Sinew__V1__State from = *state;
  double qvel[64] = {0};
  if (from.n_qvel > 64) return false;
  for (size_t i = 0; i < from.n_qvel; i++) qvel[i] = state->qvel[i] + 0.1 * (soak_part(s) - 0.5);
  from.qvel = qvel;
  from.time = state->time + soak_part(s);
  in.session = session;
  in.state = &from;
  in.deadline = soak_below(s, 10) ? 2 : 0.002;  // some cannot be met
  in.want_states = soak_below(s, 4) == 0;
  in.has_iterations_case = SINEW__V1__PLAN_REQUEST__HAS_ITERATIONS_ITERATIONS;
  in.iterations = 1 + soak_below(s, 2);
  Sinew__V1__Reply *reply = soak_ask(s, c, SN_TEST_MESSAGE(plan, PLAN, &in));
  if (!reply) return false;
  const bool planned = reply->body_case == SINEW__V1__REPLY__BODY_PLAN;
  const Sinew__V1__Plan *plan = planned ? reply->plan : NULL;
  if (!planned)
    soak_wrong(s, &s->counts->wrong, "plan", words_of(reply));
  else if (plan->session != session || plan->n_ctrl == 0 || !all_finite(plan->ctrl, plan->n_ctrl))
    soak_wrong(s, &s->counts->wrong, "plan", "not one of that session, or not finite");
  if (planned && plan->status == SINEW__V1__PLAN__STATUS__WARM_START) atomic_fetch_add(&s->counts->warm, 1);
  sn_test_done(reply);
  return planned;
}

void soak_close(Soak *s, SnTestClient *c, uint64_t session) {
  Sinew__V1__CloseRequest in = SINEW__V1__CLOSE_REQUEST__INIT;
  in.session = session;
  soak_expect(s, c, SN_TEST_MESSAGE(close, CLOSE, &in), SINEW__V1__REPLY__BODY_CLOSE, false);
}

// ---- roles that stay connected ----

static void evaluate(Soak *s, SnTestClient *c, uint64_t session, Sinew__V1__State *state) {
  Sinew__V1__EvaluateRequest in = SINEW__V1__EVALUATE_REQUEST__INIT;
  double ctrl[12];
  for (int i = 0; i < 12; i++) ctrl[i] = soak_part(s);
  in.session = session;
  in.state = state;
  in.ctrl = ctrl;
  in.n_ctrl = 12;
  in.want_gradient = true;
  soak_expect(s, c, SN_TEST_MESSAGE(evaluate, EVALUATE, &in), SINEW__V1__REPLY__BODY_EVALUATE, false);
}

void soak_controller(Soak *s) {
  SnTestClient c;
  Sinew__V1__Reply *opened = open_lasting(s, &c, "controller", s->number, s->number ? "sampling" : "adam");
  while (opened && soak_goes_on(s, 0.1)) {
    soak_plan(s, &c, opened->open->session, opened->open->initial);
    if (soak_below(s, 20) == 0) evaluate(s, &c, opened->open->session, opened->open->initial);
  }
  sn_test_done(opened);
  sn_test_disconnect(&c);
}

// Changes all that may change, asks for changes that may not be, goes back to old versions. Returns the version.
static uint64_t tune(Soak *s, SnTestClient *c, uint64_t session, uint64_t version) {
  SnTestChange change;
  sn_test_change_fill(&change, session, (int)soak_below(s, 5));
  const bool bad = soak_below(s, 4) == 0;
  if (bad) change.term[0].weight = -1;
  Sinew__V1__Request request = sn_test_change_request(&change);
  Sinew__V1__Reply *reply = soak_ask(s, c, &request);
  if (!reply) return version;
  if (reply->body_case == SINEW__V1__REPLY__BODY_SET_CONFIG && !bad) {
    version = reply->set_config->version;
    atomic_fetch_add(&s->counts->changed, 1);
  } else if (!bad || reply->body_case != SINEW__V1__REPLY__BODY_ERROR) {
    soak_wrong(s, &s->counts->wrong, "set_config", bad ? "a wrong change is in force" : "a good change is not");
  }
  sn_test_done(reply);
  return version;
}

static void look_back(Soak *s, SnTestClient *c, uint64_t session, uint64_t version) {
  Sinew__V1__RevertRequest revert = SINEW__V1__REVERT_REQUEST__INIT;
  Sinew__V1__GetConfigRequest get = SINEW__V1__GET_CONFIG_REQUEST__INIT;
  revert.session = get.session = session;
  revert.version = get.version = version - soak_below(s, 10);
  // Versions of before a restart are not there.
  soak_expect(s, c, SN_TEST_MESSAGE(get_config, GET_CONFIG, &get), SINEW__V1__REPLY__BODY_GET_CONFIG, true);
  soak_expect(s, c, SN_TEST_MESSAGE(revert, REVERT, &revert), SINEW__V1__REPLY__BODY_REVERT, true);
}

void soak_tuner(Soak *s) {
  SnTestClient c[2];
  Sinew__V1__Reply *opened[2];
  int n = 0;
  for (int i = 0; i < 2; i++) opened[i] = open_lasting(s, &c[i], "controller", i, i ? "sampling" : "adam");
  while (opened[0] && opened[1] && soak_goes_on(s, n < 3 * VERSIONS ? 0.02 : 1)) {
    const int i = n++ % 2;
    const uint64_t session = opened[i]->open->session;
    const uint64_t version = tune(s, &c[i], session, 0);
    if (version > 20 && soak_below(s, 5) == 0) look_back(s, &c[i], session, version);
  }
  for (int i = 0; i < 2; i++) {
    sn_test_done(opened[i]);
    sn_test_disconnect(&c[i]);
  }
}

// The next reply that is no plan of a stream, whose plans are looked at; NULL when none comes in time.
static Sinew__V1__Reply *receive_beside_stream(Soak *s, SnTestClient *c, double seconds) {
  for (double until = sn_clock_now() + seconds, left; (left = until - sn_clock_now()) > 0;) {
    Sinew__V1__Reply *reply = sn_test_receive(c, left);
    if (!reply || reply->body_case != SINEW__V1__REPLY__BODY_PLAN) return reply;
    if (!all_finite(reply->plan->ctrl, reply->plan->n_ctrl)) soak_wrong(s, &s->counts->wrong, "stream", "not finite");
    atomic_fetch_add(&s->counts->streamed, 1);
    sn_test_done(reply);
  }
  return NULL;
}

// Begins or ends a stream.
static bool set_stream(Soak *s, SnTestClient *c, uint64_t session, bool stop, double lease) {
  Sinew__V1__StreamRequest in = SINEW__V1__STREAM_REQUEST__INIT;
  in.session = session;
  in.stop = stop;
  in.lease = lease;
  in.deadline = 0.05;
  atomic_fetch_add(&s->counts->asked, 1);
  sn_test_send(c, SN_TEST_MESSAGE(stream, STREAM, &in));
  Sinew__V1__Reply *reply;
  while ((reply = receive_beside_stream(s, c, ANSWER_SECONDS)) && reply->id != c->id) sn_test_done(reply);
  const bool good = reply && reply->body_case == SINEW__V1__REPLY__BODY_STREAM;
  if (!reply)
    soak_wrong(s, &s->counts->lost, "stream", "no answer");
  else if (!good)
    soak_wrong(s, &s->counts->wrong, "stream", words_of(reply));
  if (reply) atomic_fetch_add(&s->counts->answered, 1);
  sn_test_done(reply);
  return good;
}

static void send_state(SnTestClient *c, uint64_t session, Sinew__V1__State *state) {
  Sinew__V1__StreamState in = SINEW__V1__STREAM_STATE__INIT;
  in.session = session;
  in.state = state;
  sn_test_send(c, SN_TEST_MESSAGE(stream_state, STREAM_STATE, &in));
}

// A stream of some states, which its client ends, or whose lease runs out.
static void stream_once(Soak *s, SnTestClient *c, uint64_t session, Sinew__V1__State *initial) {
  const bool leaves = soak_below(s, 4) == 0;
  const double begin = initial->time;
  if (!set_stream(s, c, session, false, leaves ? 0.5 : LEASE)) return;
  bool ended = false;
  for (int i = 0, n = 3 + (int)soak_below(s, 10); i < n && !ended; i++) {
    initial->time += 0.01;
    send_state(c, session, initial);
    Sinew__V1__Reply *reply = receive_beside_stream(s, c, 0.02);
    ended = reply != NULL;  // its lease: on a busy machine that may be as early as this
    sn_test_done(reply);
  }
  while (leaves && !ended) {
    Sinew__V1__Reply *reply = receive_beside_stream(s, c, ANSWER_SECONDS);
    if (!reply) soak_wrong(s, &s->counts->lost, "stream", "its lease does not end");
    ended = !reply || reply->body_case == SINEW__V1__REPLY__BODY_STREAM;
    sn_test_done(reply);
  }
  if (ended && !leaves) soak_wrong(s, &s->counts->wrong, "stream", "it ended by itself");
  if (!ended) set_stream(s, c, session, true, LEASE);
  initial->time = begin;
}

void soak_streamer(Soak *s) {
  SnTestClient c;
  Sinew__V1__Reply *opened = open_lasting(s, &c, "streamer", 0, "sampling");
  while (opened && soak_goes_on(s, 2)) stream_once(s, &c, opened->open->session, opened->open->initial);
  sn_test_done(opened);
  sn_test_disconnect(&c);
}

static void *subscribe(void *context, const char *endpoint) {
  const int zero = 0;
  void *socket = zmq_socket(context, ZMQ_SUB);
  zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof zero);
  zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0);
  zmq_connect(socket, endpoint);
  return socket;
}

// Reads all that has come.
static int drain(void *socket) {
  int n = 0;
  char bytes[64];
  while (zmq_recv(socket, bytes, sizeof bytes, ZMQ_DONTWAIT) >= 0) n++;
  return n;
}

static void ask_for_all(Soak *s, SnTestClient *c, uint64_t session) {
  Sinew__V1__HelloRequest hello = SINEW__V1__HELLO_REQUEST__INIT;
  Sinew__V1__HealthRequest health = SINEW__V1__HEALTH_REQUEST__INIT;
  Sinew__V1__StatisticsRequest statistics = SINEW__V1__STATISTICS_REQUEST__INIT;
  Sinew__V1__MetricsRequest metrics = SINEW__V1__METRICS_REQUEST__INIT;
  Sinew__V1__TraceRequest trace = SINEW__V1__TRACE_REQUEST__INIT;
  Sinew__V1__FlightRequest flight = SINEW__V1__FLIGHT_REQUEST__INIT;
  hello.protocol = 1;
  trace.session = session;
  soak_expect(s, c, SN_TEST_MESSAGE(hello, HELLO, &hello), SINEW__V1__REPLY__BODY_HELLO, false);
  soak_expect(s, c, SN_TEST_MESSAGE(health, HEALTH, &health), SINEW__V1__REPLY__BODY_HEALTH, false);
  soak_expect(s, c, SN_TEST_MESSAGE(statistics, STATISTICS, &statistics), SINEW__V1__REPLY__BODY_STATISTICS, false);
  soak_expect(s, c, SN_TEST_MESSAGE(metrics, METRICS, &metrics), SINEW__V1__REPLY__BODY_METRICS, false);
  soak_expect(s, c, SN_TEST_MESSAGE(trace, TRACE, &trace), SINEW__V1__REPLY__BODY_TRACE, false);
  if (soak_below(s, 20) == 0)
    soak_expect(s, c, SN_TEST_MESSAGE(flight, FLIGHT, &flight), SINEW__V1__REPLY__BODY_FLIGHT, true);
}

// One that subscribes to telemetry and stays; to records of all sessions it comes and goes.
void soak_watcher(Soak *s) {
  SnTestClient c;
  Sinew__V1__Reply *opened = open_lasting(s, &c, "controller", 0, "adam");
  void *telemetry = subscribe(c.context, s->telemetry);
  while (opened && soak_goes_on(s, 1)) {
    void *records = subscribe(c.context, s->records);
    ask_for_all(s, &c, opened->open->session);
    soak_sleep(0.3 * soak_part(s));
    const int n = drain(telemetry) + drain(records);
    atomic_fetch_add(&s->counts->published, n);
    zmq_close(records);
  }
  sn_test_done(opened);
  zmq_close(telemetry);
  sn_test_disconnect(&c);
}

// ---- roles that come and go ----

static const char *const tasks[] = {"arm_reach", "cart_pole", "acrobot"};
static const char *const planners[] = {"adam", "sampling", "mppi", "cem", "lbfgs"};

// Takes a snapshot and goes on from it.
static void rewind_session(Soak *s, SnTestClient *c, uint64_t session) {
  Sinew__V1__SnapshotRequest take = SINEW__V1__SNAPSHOT_REQUEST__INIT;
  Sinew__V1__ResetRequest reset = SINEW__V1__RESET_REQUEST__INIT;
  take.session = reset.session = session;
  Sinew__V1__Reply *reply = soak_ask(s, c, SN_TEST_MESSAGE(snapshot, SNAPSHOT, &take));
  if (reply && reply->body_case == SINEW__V1__REPLY__BODY_SNAPSHOT) {
    reset.snapshot = reply->snapshot;
    soak_expect(s, c, SN_TEST_MESSAGE(reset, RESET, &reset), SINEW__V1__REPLY__BODY_RESET, false);
  } else if (reply) {
    soak_wrong(s, &s->counts->wrong, "snapshot", words_of(reply));
  }
  sn_test_done(reply);
}

void soak_visit(Soak *s, bool linger) {
  SnTestClient c;
  char name[32];
  snprintf(name, sizeof name, "visitor %d", s->number);
  const bool named = soak_below(s, 3) == 0;
  soak_connect(s, &c, soak_below(s, 2) ? s->tcp : s->ipc);
  // One of another key is another session: all here are one key's by ipc, and one's by tcp.
  Sinew__V1__Reply *opened =
      soak_open(s, &c, tasks[named ? 0 : soak_below(s, 3)], named ? name : NULL, planners[soak_below(s, 5)]);
  if (opened) {
    const uint64_t session = opened->open->session;
    for (int i = 0, n = (int)soak_below(s, 6); i < n || linger; i++) soak_plan(s, &c, session, opened->open->initial);
    if (soak_below(s, 3) == 0) rewind_session(s, &c, session);
    soak_close(s, &c, session);
    atomic_fetch_add(&s->counts->visits, 1);
  }
  sn_test_done(opened);
  sn_test_disconnect(&c);
}

void soak_visitor(Soak *s) {
  while (soak_goes_on(s, 1)) soak_visit(s, false);
}

// A model that is another one each time, so that it is imported.
static void import_model(Soak *s, SnTestClient *c) {
  char path[256], fresh[264];
  snprintf(path, sizeof path, "%s/soak.xml", s->models);
  snprintf(fresh, sizeof fresh, "%s.new", path);
  FILE *f = fopen(fresh, "w");
  if (!f) return;
  const bool broken = soak_below(s, 4) == 0;
  fprintf(f,
          "<mujoco><worldbody><body><joint type=\"hinge\"/><geom type=\"capsule\" size=\".02 %g\"/></body>"
          "</worldbody>%s</mujoco>",
          0.1 + 0.01 * soak_below(s, 20), broken ? "<what/>" : "");
  fclose(f);
  rename(fresh, path);
  Sinew__V1__DescribeModelRequest in = SINEW__V1__DESCRIBE_MODEL_REQUEST__INIT;
  in.model = "soak";
  soak_expect(s, c, SN_TEST_MESSAGE(describe_model, DESCRIBE_MODEL, &in), SINEW__V1__REPLY__BODY_DESCRIBE_MODEL,
              broken);
  atomic_fetch_add(&s->counts->imports, 1);
}

void soak_loader(Soak *s) {
  while (soak_goes_on(s, 1.5)) {
    SnTestClient c;
    char *name = (char *)(uintptr_t)tasks[soak_below(s, 3)];
    Sinew__V1__LoadModelRequest load = SINEW__V1__LOAD_MODEL_REQUEST__INIT;
    Sinew__V1__UnloadModelRequest unload = SINEW__V1__UNLOAD_MODEL_REQUEST__INIT;
    Sinew__V1__DescribeTaskRequest task = SINEW__V1__DESCRIBE_TASK_REQUEST__INIT;
    Sinew__V1__ListModelsRequest models = SINEW__V1__LIST_MODELS_REQUEST__INIT;
    Sinew__V1__ListTasksRequest list = SINEW__V1__LIST_TASKS_REQUEST__INIT;
    load.model = unload.model = task.task = name;
    soak_connect(s, &c, s->ipc);
    soak_expect(s, &c, SN_TEST_MESSAGE(load_model, LOAD_MODEL, &load), SINEW__V1__REPLY__BODY_LOAD_MODEL, false);
    soak_expect(s, &c, SN_TEST_MESSAGE(describe_task, DESCRIBE_TASK, &task), SINEW__V1__REPLY__BODY_DESCRIBE_TASK,
                false);
    if (soak_below(s, 4) == 0) {
      soak_expect(s, &c, SN_TEST_MESSAGE(list_models, LIST_MODELS, &models), SINEW__V1__REPLY__BODY_LIST_MODELS, false);
      soak_expect(s, &c, SN_TEST_MESSAGE(list_tasks, LIST_TASKS, &list), SINEW__V1__REPLY__BODY_LIST_TASKS, false);
    }
    if (soak_below(s, 6) == 0) import_model(s, &c);
    // It may be in use.
    soak_expect(s, &c, SN_TEST_MESSAGE(unload_model, UNLOAD_MODEL, &unload), SINEW__V1__REPLY__BODY_UNLOAD_MODEL, true);
    atomic_fetch_add(&s->counts->loads, 1);
    sn_test_disconnect(&c);
  }
}
