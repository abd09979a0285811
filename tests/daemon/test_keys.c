// A sinewd that asks for keys: who is let in, what each role may do, whose sessions are whose, and the list read again.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"
#include "tests/support/daemon_keys.h"
#include "tests/support/raw_peer.h"

enum { WATCH, PLAN, OTHER, TUNE, ADMIN, NKEYS };

static SnTestKeyed keyed;
static SnTestKey key[NKEYS], stranger;
static const char *const role[NKEYS] = {"watch", "plan", "plan", "tune", "admin"};

// The list with all keys but one.
static void write_list(char *text, size_t size, int without) {
  int n = snprintf(text, size, "# keys of the test\n\n");
  for (int i = 0; i < NKEYS; i++)
    if (i != without)
      n += snprintf(text + n, size - (size_t)n, "%s %s name=%s-%d\n", key[i].public, role[i], role[i], i);
}

static int setup(void **state) {
  (void)state;
  char text[1000];
  for (int i = 0; i < NKEYS; i++) sn_test_key(&key[i]);
  sn_test_key(&stranger);
  sn_test_keyed_prepare(&keyed);
  write_list(text, sizeof text, -1);
  sn_test_write_mode(keyed.allow, text, 0600);
  sn_test_keyed_start(&keyed);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  sn_test_keyed_stop(&keyed);
  return 0;
}

// Requests of each kind in their least form; session 0 where they need one.
typedef struct Messages {
  Sinew__V1__HelloRequest hello;
  Sinew__V1__HealthRequest health;
  Sinew__V1__StatisticsRequest statistics;
  Sinew__V1__MetricsRequest metrics;
  Sinew__V1__ListModelsRequest list_models;
  Sinew__V1__ListTasksRequest list_tasks;
  Sinew__V1__DescribeModelRequest describe_model;
  Sinew__V1__DescribeTaskRequest describe_task;
  Sinew__V1__LoadModelRequest load_model;
  Sinew__V1__UnloadModelRequest unload_model;
  Sinew__V1__OpenRequest open;
  Sinew__V1__PlanRequest plan;
  Sinew__V1__EvaluateRequest evaluate;
  Sinew__V1__GetConfigRequest get_config;
  Sinew__V1__SetConfigRequest set_config;
  Sinew__V1__RevertRequest revert;
  Sinew__V1__ResetRequest reset;
  Sinew__V1__CloseRequest close;
  Sinew__V1__StreamRequest stream;
  Sinew__V1__StreamState stream_state;
  Sinew__V1__SnapshotRequest snapshot;
  Sinew__V1__TraceRequest trace;
  Sinew__V1__FlightRequest flight;
  Sinew__V1__State state;
  double qpos[2], qvel[2];
} Messages;

static void fill_messages(Messages *m, uint64_t session) {
  sinew__v1__hello_request__init(&m->hello);
  m->hello.protocol = 1;
  sinew__v1__health_request__init(&m->health);
  sinew__v1__statistics_request__init(&m->statistics);
  sinew__v1__metrics_request__init(&m->metrics);
  sinew__v1__list_models_request__init(&m->list_models);
  sinew__v1__list_tasks_request__init(&m->list_tasks);
  sinew__v1__describe_model_request__init(&m->describe_model);
  sinew__v1__describe_task_request__init(&m->describe_task);
  sinew__v1__load_model_request__init(&m->load_model);
  sinew__v1__unload_model_request__init(&m->unload_model);
  m->describe_model.model = m->load_model.model = m->unload_model.model = "arm_reach.xml";
  m->describe_task.task = "arm_reach";
  sinew__v1__open_request__init(&m->open);
  m->open.task = "no_such_task";  // a role that may open is told so
  sinew__v1__plan_request__init(&m->plan);
  sinew__v1__evaluate_request__init(&m->evaluate);
  sinew__v1__get_config_request__init(&m->get_config);
  sinew__v1__set_config_request__init(&m->set_config);
  sinew__v1__revert_request__init(&m->revert);
  m->revert.version = 1;
  sinew__v1__reset_request__init(&m->reset);
  sinew__v1__close_request__init(&m->close);
  sinew__v1__stream_request__init(&m->stream);
  m->stream.lease = 0.2;
  m->stream.deadline = 0.04;
  sinew__v1__stream_state__init(&m->stream_state);
  sinew__v1__snapshot_request__init(&m->snapshot);
  sinew__v1__trace_request__init(&m->trace);
  sinew__v1__flight_request__init(&m->flight);
  sinew__v1__state__init(&m->state);
  m->state.n_qpos = m->state.n_qvel = 2;
  m->qpos[0] = 0.35, m->qpos[1] = 1.3, m->qvel[0] = m->qvel[1] = 0;
  m->state.qpos = m->qpos;
  m->state.qvel = m->qvel;
  m->plan.state = m->evaluate.state = m->stream_state.state = &m->state;
  m->plan.deadline = 0.02;
  m->plan.session = m->evaluate.session = m->get_config.session = m->set_config.session = m->revert.session = session;
  m->reset.session = m->close.session = m->stream.session = m->stream_state.session = m->snapshot.session = session;
  m->trace.session = session;
}

// All requests but those that would end the session, and the least role of each.
typedef struct Case {
  Sinew__V1__Request request;
  int least;
} Case;

enum { CASES = 23 };

#define REQUEST(kind, KIND, role) ((Case){*SN_TEST_MESSAGE(kind, KIND, &m->kind), role})

static void fill_cases(Messages *m, Case c[CASES]) {
  int n = 0;
  c[n++] = REQUEST(hello, HELLO, WATCH);
  c[n++] = REQUEST(health, HEALTH, WATCH);
  c[n++] = REQUEST(statistics, STATISTICS, WATCH);
  c[n++] = REQUEST(metrics, METRICS, WATCH);
  c[n++] = REQUEST(list_models, LIST_MODELS, WATCH);
  c[n++] = REQUEST(list_tasks, LIST_TASKS, WATCH);
  c[n++] = REQUEST(describe_model, DESCRIBE_MODEL, PLAN);
  c[n++] = REQUEST(describe_task, DESCRIBE_TASK, PLAN);
  c[n++] = REQUEST(load_model, LOAD_MODEL, PLAN);
  c[n++] = REQUEST(open, OPEN, PLAN);
  c[n++] = REQUEST(plan, PLAN, PLAN);
  c[n++] = REQUEST(evaluate, EVALUATE, PLAN);
  c[n++] = REQUEST(get_config, GET_CONFIG, PLAN);
  c[n++] = REQUEST(reset, RESET, PLAN);
  c[n++] = REQUEST(stream, STREAM, PLAN);
  c[n++] = REQUEST(snapshot, SNAPSHOT, PLAN);
  c[n++] = REQUEST(trace, TRACE, PLAN);
  c[n++] = REQUEST(stream_state, STREAM_STATE, PLAN);
  c[n++] = REQUEST(close, CLOSE, PLAN);
  c[n++] = REQUEST(set_config, SET_CONFIG, TUNE);
  c[n++] = REQUEST(revert, REVERT, TUNE);
  c[n++] = REQUEST(unload_model, UNLOAD_MODEL, ADMIN);
  c[n++] = REQUEST(flight, FLIGHT, ADMIN);
  assert_int_equal(n, CASES);
}

// Sends a request and tells whether it was refused for its role, NOT_FOUND counts as allowed. Sessions are none here.
static bool is_permitted(SnTestClient *c, Sinew__V1__Request *request) {
  Sinew__V1__Reply *r = sn_test_request(c, request);
  const bool error = r->body_case == SINEW__V1__REPLY__BODY_ERROR;
  const bool permitted = !error || r->error->code != SINEW__V1__ERROR__CODE__PERMISSION;
  if (!permitted) assert_non_null(strstr(r->error->text, "needs the role"));
  sn_test_done(r);
  return permitted;
}

// Each role may send what the table says and nothing more.
static void test_roles(void **state) {
  (void)state;
  Messages m;
  Case cases[CASES];
  fill_messages(&m, 999999999);
  fill_cases(&m, cases);
  for (int who = 0; who < NKEYS; who++) {
    SnTestClient c;
    sn_test_connect_key(&c, &keyed, &key[who]);
    const int rank = who == OTHER ? PLAN : who;
    for (int i = 0; i < CASES; i++)
      if (is_permitted(&c, &cases[i].request) != (rank >= cases[i].least))
        fail_msg("%s, request %d: %s", role[who], (int)cases[i].request.body_case,
                 rank >= cases[i].least ? "refused" : "allowed");
    sn_test_disconnect(&c);
  }
}

// Whoever connects over ipc is this user, and needs no key.
static void test_ipc_needs_no_key(void **state) {
  (void)state;
  SnTestClient c;
  Messages m;
  fill_messages(&m, 0);
  sn_test_connect(&c, keyed.daemon.endpoint);
  Sinew__V1__Reply *r = sn_test_request(&c, SN_TEST_MESSAGE(hello, HELLO, &m.hello));
  assert_string_equal(r->hello->role, "admin");
  assert_string_equal(r->hello->records, keyed.records);
  sn_test_done(r);
  sn_test_disconnect(&c);
}

// A key is told of its role, and of what is published for it.
static void test_hello(void **state) {
  (void)state;
  Messages m;
  fill_messages(&m, 0);
  for (int who = 0; who < NKEYS; who++) {
    SnTestClient c;
    sn_test_connect_key(&c, &keyed, &key[who]);
    Sinew__V1__Reply *r = sn_test_request(&c, SN_TEST_MESSAGE(hello, HELLO, &m.hello));
    assert_string_equal(r->hello->role, role[who]);
    assert_string_equal(r->hello->telemetry, keyed.telemetry);
    assert_string_equal(r->hello->records, who == ADMIN ? keyed.records : "");
    sn_test_done(r);
    sn_test_disconnect(&c);
  }
}

// Whether a client gets an answer. libzmq gives up on those who are not let in: they cannot even send.
static bool asks_once(SnTestClient *c, double seconds) {
  unsigned char health[64];
  zmq_send(c->socket, health, sn_raw_health(1, health, sizeof health), ZMQ_DONTWAIT);
  Sinew__V1__Reply *r = sn_test_receive(c, seconds);
  if (r) sn_test_done(r);
  return r != NULL;
}

// Asks again now and then: a connection that is not heard soon after others have ended may be ended with them, and what
// it has sent is lost.
static bool gets_in(const SnTestKeyed *k, const SnTestKey *with, double seconds) {
  SnTestClient c;
  bool in = false;
  sn_test_connect_key(&c, k, with);
  for (double until = sn_clock_now() + seconds; !in && sn_clock_now() < until;) in = asks_once(&c, 0.5);
  sn_test_disconnect(&c);
  return in;
}

// Connects a client that is heard.
static void come_in(SnTestClient *c, const SnTestKey *with) {
  sn_test_connect_key(c, &keyed, with);
  assert_true(sn_test_answers(c, 60));
}

// Lines of those who were turned away: one, and one a minute since the first of them came.
static double first_denied;
static void expect_few_lines(void) {
  assert_in_range(sn_test_count_logged(&keyed.daemon, "event=denied "), 1,
                  1 + (int)((sn_clock_now() - first_denied) / 60));
}

// Nobody without a key of the list is heard, nor is one who takes another server's key for the daemon's.
static void test_strangers(void **state) {
  (void)state;
  first_denied = sn_clock_now();
  assert_false(gets_in(&keyed, NULL, 0.5));
  assert_false(gets_in(&keyed, &stranger, 0.5));
  SnTestKey half = key[ADMIN];  // the public key is no secret
  memcpy(half.secret, stranger.secret, sizeof half.secret);
  assert_false(gets_in(&keyed, &half, 0.5));
  SnTestKeyed wrong = keyed;
  wrong.server = stranger;
  assert_false(gets_in(&wrong, &key[ADMIN], 0.5));
  assert_true(gets_in(&keyed, &key[ADMIN], 30));
  expect_few_lines();
}

// Each of many strangers is turned away; others do not notice, files do not pile up, the log has no line more.
static void test_storm_of_strangers(void **state) {
  (void)state;
  enum { TIMES = 300 };
  SnTestClient good;
  sn_test_connect_key(&good, &keyed, &key[WATCH]);
  assert_true(sn_test_answers(&good, 10));
  const int files = sn_test_daemon_files(&keyed.daemon);
  for (int i = 0; i < TIMES; i++) {
    SnTestClient c;
    sn_test_connect_key(&c, &keyed, &stranger);
    sn_test_receive(&c, 0.005);
    sn_test_disconnect(&c);
  }
  assert_true(sn_test_answers(&good, 30));
  for (double until = sn_clock_now() + 20; sn_test_daemon_files(&keyed.daemon) > files + 2 && sn_clock_now() < until;)
    usleep(50000);
  assert_in_range(sn_test_daemon_files(&keyed.daemon), 1, files + 2);
  assert_true(gets_in(&keyed, &key[WATCH], 30));
  expect_few_lines();
  sn_test_disconnect(&good);
}

static uint64_t told_id(SnTestClient *c, uint64_t session) {
  Sinew__V1__StatisticsRequest all = SINEW__V1__STATISTICS_REQUEST__INIT;
  Sinew__V1__Reply *r = sn_test_request(c, SN_TEST_MESSAGE(statistics, STATISTICS, &all));
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_STATISTICS);
  assert_int_equal(r->statistics->n_sessions, 1);
  const uint64_t id = r->statistics->sessions[0]->session;
  if (id != 0) assert_int_equal(id, session);
  sn_test_done(r);
  return id;
}

// A session is its key's: others are not told of it, and are answered as if there were none. An admin may use it.
static void test_sessions_belong_to_keys(void **state) {
  (void)state;
  SnTestClient c[NKEYS];
  for (int i = 0; i < NKEYS; i++) come_in(&c[i], &key[i]);
  const uint64_t id = sn_test_open(&c[PLAN], "arm_reach", 1, NULL);
  Messages m;
  Case cases[CASES];
  fill_messages(&m, id);
  fill_cases(&m, cases);
  m.statistics.session = id;
  for (int who = 0; who < NKEYS; who++) {
    assert_int_equal(told_id(&c[who], id), who == PLAN || who == ADMIN ? id : 0);
    for (int i = 0; i < CASES && (who == OTHER || who == TUNE); i++) {
      const int kind = (int)cases[i].request.body_case;
      const bool of_session = kind >= SINEW__V1__REQUEST__BODY_PLAN && kind != SINEW__V1__REQUEST__BODY_HEALTH &&
                              kind != SINEW__V1__REQUEST__BODY_METRICS;
      if (of_session && who >= cases[i].least)
        sn_test_expect_error(sn_test_request(&c[who], &cases[i].request), SINEW__V1__ERROR__CODE__NOT_FOUND,
                             "no session");
    }
  }
  Sinew__V1__Reply *r = sn_test_plan(&c[PLAN], id, &m.state, 0.02);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
  sn_test_done(r);
  r = sn_test_plan(&c[ADMIN], id, &m.state, 0.02);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
  sn_test_done(r);
  r = sn_test_request(&c[PLAN], SN_TEST_MESSAGE(close, CLOSE, &m.close));
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_CLOSE);
  sn_test_done(r);
  for (int i = 0; i < NKEYS; i++) sn_test_disconnect(&c[i]);
}

// A subscriber to telemetry or records by a key.
static void *subscribe(void *context, const char *address, const SnTestKey *with) {
  const int zero = 0;
  void *socket = zmq_socket(context, ZMQ_SUB);
  zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof zero);
  zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0);
  sn_test_use_key(socket, with, keyed.server.public);
  assert_int_equal(zmq_connect(socket, address), 0);
  return socket;
}

static bool hears(void *socket, double seconds) {
  zmq_pollitem_t item = {socket, 0, ZMQ_POLLIN, 0};
  return zmq_poll(&item, 1, (long)(1000 * seconds)) > 0;
}

// Telemetry is for all keys of the list and tells no ids. Records, which have all of a session, are for admins.
static void test_what_is_published(void **state) {
  (void)state;
  SnTestClient c;
  void *context = zmq_ctx_new();
  come_in(&c, &key[PLAN]);
  Sinew__V1__Reply *opened;
  const uint64_t id = sn_test_open(&c, "arm_reach", 1, &opened);
  void *telemetry = subscribe(context, keyed.telemetry, &key[WATCH]);
  void *none = subscribe(context, keyed.telemetry, &stranger);
  void *records[2] = {subscribe(context, keyed.records, &key[PLAN]), subscribe(context, keyed.records, &key[ADMIN])};
  assert_true(hears(telemetry, 10));
  assert_false(hears(none, 0.6));
  zmq_msg_t frame;
  zmq_msg_init(&frame);
  assert_true(zmq_msg_recv(&frame, telemetry, 0) > 0);
  Sinew__V1__Telemetry *t = sinew__v1__telemetry__unpack(NULL, zmq_msg_size(&frame), zmq_msg_data(&frame));
  assert_int_equal(t->statistics->n_sessions, 1);
  assert_int_equal(t->statistics->sessions[0]->session, 0);
  sinew__v1__telemetry__free_unpacked(t, NULL);
  zmq_msg_close(&frame);
  bool admin = false;
  for (int i = 0; i < 100 && !admin; i++) {
    sn_test_done(sn_test_plan(&c, id, opened->open->initial, 0.02));
    admin = hears(records[1], 0.05);
  }
  assert_true(admin);
  assert_false(hears(records[0], 0.3));
  void *const all[] = {telemetry, none, records[0], records[1]};
  for (int i = 0; i < 4; i++) zmq_close(all[i]);
  zmq_ctx_term(context);
  Sinew__V1__CloseRequest end = SINEW__V1__CLOSE_REQUEST__INIT;
  end.session = id;
  sn_test_done(sn_test_request(&c, SN_TEST_MESSAGE(close, CLOSE, &end)));
  sn_test_done(opened);
  sn_test_disconnect(&c);
}

// A key that is taken off the list loses its sessions, its connection and its subscriptions; others lose nothing. A
// list with a mistake changes nothing.
static void test_list_read_again(void **state) {
  (void)state;
  char without[1000], whole[1000];
  void *context = zmq_ctx_new();
  SnTestClient gone, stays;
  write_list(without, sizeof without, OTHER);
  write_list(whole, sizeof whole, -1);
  come_in(&gone, &key[OTHER]);
  come_in(&stays, &key[PLAN]);
  sn_test_open(&gone, "arm_reach", 1, NULL);
  const uint64_t id = sn_test_open(&stays, "arm_reach", 1, NULL);
  void *telemetry[2] = {subscribe(context, keyed.telemetry, &key[OTHER]),
                        subscribe(context, keyed.telemetry, &key[PLAN])};
  assert_true(hears(telemetry[0], 10) && hears(telemetry[1], 30));

  sn_test_keyed_reload(&keyed, "not a key\n", "event=reload-failed text=\"configuration and keys stay as they were");
  assert_true(sn_test_answers(&gone, 10));
  sn_test_keyed_reload(&keyed, without, "the keys of");
  assert_false(asks_once(&gone, 0.5));
  assert_false(gets_in(&keyed, &key[OTHER], 0.5));
  assert_int_equal(sn_test_count_logged(&keyed.daemon, "its key may have none any more"), 1);
  assert_int_equal(told_id(&stays, id), id);
  char bytes[4096];
  for (int i = 0; i < 2; i++)
    while (hears(telemetry[i], 0)) zmq_recv(telemetry[i], bytes, sizeof bytes, 0);
  assert_true(hears(telemetry[1], 30));
  assert_false(hears(telemetry[0], 0.6));
  sn_test_keyed_reload(&keyed, whole, "the keys of");
  assert_true(gets_in(&keyed, &key[OTHER], 30));
  for (int i = 0; i < 2; i++) zmq_close(telemetry[i]);
  zmq_ctx_term(context);
  sn_test_disconnect(&gone);
  sn_test_disconnect(&stays);
}

static Sinew__V1__Reply *ask_of(SnTestClient *c, uint64_t session) {
  Sinew__V1__GetConfigRequest in = SINEW__V1__GET_CONFIG_REQUEST__INIT;
  in.session = session;
  return sn_test_request(c, SN_TEST_MESSAGE(get_config, GET_CONFIG, &in));
}

// A key that may plan no more loses its sessions, and may go on to watch.
static void test_lowered_key(void **state) {
  (void)state;
  char lowered[1000], whole[1000];
  SnTestClient c;
  write_list(whole, sizeof whole, -1);
  write_list(lowered, sizeof lowered, OTHER);
  const size_t n = strlen(lowered);
  snprintf(lowered + n, sizeof lowered - n, "%s watch\n", key[OTHER].public);
  come_in(&c, &key[OTHER]);
  const uint64_t id = sn_test_open(&c, "arm_reach", 1, NULL);
  const int before = sn_test_count_logged(&keyed.daemon, "its key may have none any more");
  sn_test_keyed_reload(&keyed, lowered, "the keys of");
  for (double until = sn_clock_now() + 60; sn_clock_now() < until; usleep(10000))
    if (sn_test_count_logged(&keyed.daemon, "its key may have none any more") > before) break;
  assert_int_equal(sn_test_count_logged(&keyed.daemon, "its key may have none any more"), before + 1);
  assert_true(sn_test_answers(&c, 10));
  sn_test_keyed_reload(&keyed, whole, "the keys of");
  sn_test_expect_error(ask_of(&c, id), SINEW__V1__ERROR__CODE__NOT_FOUND, "no session");
  sn_test_disconnect(&c);
}

// What a start with keys refuses, in words.
static void test_bad_starts(void **state) {
  (void)state;
  static const struct {
    const char *secret, *list;
    unsigned secret_mode, list_mode;
    const char *word;
  } bad[] = {
      {"", "", 0644, 0600, "a secret key must have mode 600"},
      {"", "", 0640, 0600, "a secret key must have mode 600"},
      {"too short\n", "", 0600, 0600, "has no key"},
      {"", "", 0600, 0666, "can be written by other users"},
      {"", "hello admin\n", 0600, 0600, "begins with a public key"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    SnTestKeyed k = {0};
    sn_test_keyed_prepare(&k);
    sn_test_write_mode(k.key_file, *bad[i].secret ? bad[i].secret : k.server.secret, bad[i].secret_mode);
    sn_test_write_mode(k.allow, bad[i].list, bad[i].list_mode);
    char text[3][192];
    const char *const args[] = {text[0], text[1], text[2], NULL};
    snprintf(text[0], sizeof text[0], "--curve-key=%s", k.key_file);
    snprintf(text[1], sizeof text[1], "--allow=%s", k.allow);
    snprintf(text[2], sizeof text[2], "--tcp=%s", k.tcp);
    sn_test_daemon_spawn(&k.daemon, args);
    assert_int_equal(sn_test_daemon_wait(&k.daemon), 1);
    if (!sn_test_daemon_logged(&k.daemon, bad[i].word)) fail_msg("the log has no '%s'", bad[i].word);
    sn_test_daemon_remove(&k.daemon);
  }
  SnTestKeyed k = {0};
  sn_test_keyed_prepare(&k);
  char one[192];
  snprintf(one, sizeof one, "--curve-key=%s", k.key_file);
  sn_test_daemon_spawn(&k.daemon, (const char *const[]){one, NULL});
  assert_int_equal(sn_test_daemon_wait(&k.daemon), 1);
  assert_true(sn_test_daemon_logged(&k.daemon, "curve_key and allow go together; allow is not set"));
  sn_test_daemon_remove(&k.daemon);
}

// What a peer is told that says in the handshake of loopback tcp that it is this user, or a key.
static uint64_t told_to_forger(int port) {
  static const char *const lies[] = {"Peer-Address", "host:0:0:1", "User-Id", ":0", "User-Id", "0:0", NULL};
  unsigned char bytes[8192];
  Sinew__V1__StatisticsRequest all = SINEW__V1__STATISTICS_REQUEST__INIT;
  Sinew__V1__Request *request = SN_TEST_MESSAGE(statistics, STATISTICS, &all);
  const int fd = sn_raw_connect_tcp(port, "DEALER", lies);
  assert_true(fd >= 0);
  assert_true(sn_raw_frame(fd, 0, bytes, sinew__v1__request__pack(request, bytes)));
  // The length of a frame is one byte, of a long one eight.
  int n = 0, got = 1;
  size_t head = 9, size = sizeof bytes;
  while (got > 0 && (size_t)n < head + size) {
    got = sn_raw_receive(fd, 10, bytes + n, sizeof bytes - (size_t)n);
    n += got > 0 ? got : 0;
    if (n < 9) continue;
    head = bytes[0] & 2 ? 9 : 2;
    size = head == 2 ? bytes[1] : (size_t)bytes[7] << 8 | bytes[8];
  }
  close(fd);
  Sinew__V1__Reply *r = sinew__v1__reply__unpack(NULL, (size_t)n - head, bytes + head);
  assert_non_null(r);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_STATISTICS);
  assert_int_equal(r->statistics->n_sessions, 1);
  const uint64_t id = r->statistics->sessions[0]->session;
  sn_test_done(r);
  return id;
}

// Without keys a process of this machine that came over loopback is told no ids, and may use those that it knows.
static void test_loopback_without_keys(void **state) {
  (void)state;
  SnTestDaemon d = {0};
  char tcp[64], option[80];
  const int port = sn_test_free_port();
  snprintf(tcp, sizeof tcp, "tcp://127.0.0.1:%d", port);
  snprintf(option, sizeof option, "--tcp=%s", tcp);
  sn_test_daemon_start(&d, (const char *const[]){option, NULL});
  SnTestClient local, other;
  sn_test_connect(&local, d.endpoint);
  sn_test_connect(&other, tcp);
  const uint64_t id = sn_test_open(&other, "arm_reach", 1, NULL);
  assert_int_equal(told_id(&other, id), 0);
  assert_int_equal(told_id(&local, id), id);
  assert_int_equal(told_to_forger(port), 0);
  Sinew__V1__Reply *r = sn_test_statistics(&other, id);
  assert_int_equal(r->statistics->sessions[0]->session, id);
  sn_test_done(r);
  sn_test_disconnect(&local);
  sn_test_disconnect(&other);
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  sn_test_daemon_remove(&d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_roles),
      cmocka_unit_test(test_ipc_needs_no_key),
      cmocka_unit_test(test_hello),
      cmocka_unit_test(test_strangers),
      cmocka_unit_test(test_storm_of_strangers),
      cmocka_unit_test(test_sessions_belong_to_keys),
      cmocka_unit_test(test_what_is_published),
      cmocka_unit_test(test_list_read_again),
      cmocka_unit_test(test_lowered_key),
      cmocka_unit_test(test_bad_starts),
      cmocka_unit_test(test_loopback_without_keys),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
