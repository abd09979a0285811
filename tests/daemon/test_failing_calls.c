// Every call for memory, files and threads that sinewd makes while it serves a request fails, one at a time: whoever
// asked gets an answer, an error or a warning; no error says that the request is wrong; nobody's session is lost, and
// the same request succeeds afterwards. All of it comes several times, and takes no memory from the second time on.
//
//   daemon_test_failing_calls [all [SEED]]      all calls; else some of each request
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"
#include "tests/support/daemon_kept.h"
#include "tests/support/daemon_tuning.h"
#include "tests/support/fail_once.h"
#include "tests/support/raw_peer.h"

// An answer comes within so many seconds, or it is lost.
#define WAIT 20

enum { SOME = 6, FEW = 40 };  // calls of each request in the short form; so few are all tried

// All of it comes so often. What is taken each time is a leak; now and then libzmq takes a block more for its queues.
// Blocks are counted, since the bytes of one are by what lies beside it. A version of the configuration has three.
enum { ROUNDS = 3, VERSION_BLOCKS = 3 };

static bool all;
static unsigned seed;
static SnTestDaemon d;
static SnTestClient c;
static SnTestFailures *failures;
static uint64_t named, other;  // sessions: the first is kept
static Sinew__V1__Reply *opened;
static Sinew__V1__Snapshot *snapshot;
static SnTestChange change;

#define BODY(NAME) SINEW__V1__REPLY__BODY_##NAME

// Starts the daemon whose calls fail as `failures` says; does not wait for it.
static void start_failing(void) {
  char folder[128], flights[128];
  const char *const args[] = {folder, flights, "--telemetry=none", "--threads=1", "--lease-seconds=3600", NULL};
  snprintf(folder, sizeof folder, "--state=%s/state", d.folder);
  snprintf(flights, sizeof flights, "--flight-folder=%s/flights", d.folder);
  sn_test_daemon_spawn_preloaded(&d, args, SN_TEST_FAIL_LIBRARY, "SN_TEST_FAIL");
}

// The long form takes longer than the usual lease.
static void lengthen_lease(uint64_t session) {
  sn_test_change_begin(&change, session);
  change.session.has_lease_case = SINEW__V1__SESSION_SETTINGS__HAS_LEASE_LEASE;
  change.session.lease = 3600;
  Sinew__V1__Request longer = sn_test_change_request(&change);
  sn_test_done(sn_test_expect_kept(&c, &longer, BODY(SET_CONFIG)));
}

static void open_other(void) {
  other = sn_test_open(&c, "arm_reach", 2, NULL);
  lengthen_lease(other);
}

static int setup(void **state) {
  (void)state;
  d = (SnTestDaemon){0};
  sn_test_daemon_prepare(&d);
  failures = sn_test_daemon_share(&d, sizeof *failures);
  start_failing();
  sn_test_connect(&c, d.endpoint);
  assert_true(sn_test_answers(&c, 20));
  opened = sn_test_open_named(&c, "named", 1, sn_test_sampling());
  named = opened->open->session;
  lengthen_lease(named);
  open_other();
  sn_test_done(sn_test_plan(&c, named, opened->open->initial, 0.01));
  Sinew__V1__SnapshotRequest in = SINEW__V1__SNAPSHOT_REQUEST__INIT;
  in.session = named;
  Sinew__V1__Reply *reply = sn_test_expect_kept(&c, SN_TEST_MESSAGE(snapshot, SNAPSHOT, &in), BODY(SNAPSHOT));
  snapshot = reply->snapshot;
  return 0;
}

static int teardown(void **state) {
  (void)state;
  atomic_store(&failures->left, 0);
  sn_test_done(opened);
  return sn_test_end(&d, &c);
}

// ---- requests ----

static union {
  Sinew__V1__HelloRequest hello;
  Sinew__V1__HealthRequest health;
  Sinew__V1__StatisticsRequest statistics;
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
  Sinew__V1__ResetRequest reset;
  Sinew__V1__CloseRequest close;
  Sinew__V1__StreamRequest stream;
  Sinew__V1__StreamState stream_state;
  Sinew__V1__RevertRequest revert;
  Sinew__V1__SnapshotRequest snapshot;
  Sinew__V1__MetricsRequest metrics;
  Sinew__V1__TraceRequest trace;
  Sinew__V1__FlightRequest flight;
} u;
static double ctrl[6];
static Sinew__V1__State streamed;  // the latest state of the stream, which none before has the time of

// Makes a request of a kind: SIMPLE(plan, PLAN, PLAN_REQUEST, u.plan.session = named).
#define REQUEST(kind, KIND, INIT, ...)                      \
  static Sinew__V1__Request make_##kind(void) {             \
    u.kind = (__typeof__(u.kind))SINEW__V1__##INIT##__INIT; \
    __VA_ARGS__;                                            \
    return *SN_TEST_MESSAGE(kind, KIND, &u.kind);           \
  }
REQUEST(hello, HELLO, HELLO_REQUEST, u.hello.protocol = 1)
REQUEST(health, HEALTH, HEALTH_REQUEST, )
REQUEST(statistics, STATISTICS, STATISTICS_REQUEST, )
REQUEST(list_models, LIST_MODELS, LIST_MODELS_REQUEST, )
REQUEST(list_tasks, LIST_TASKS, LIST_TASKS_REQUEST, )
REQUEST(describe_model, DESCRIBE_MODEL, DESCRIBE_MODEL_REQUEST, u.describe_model.model = "arm_reach")
REQUEST(describe_task, DESCRIBE_TASK, DESCRIBE_TASK_REQUEST, u.describe_task.task = "arm_reach")
REQUEST(load_model, LOAD_MODEL, LOAD_MODEL_REQUEST, u.load_model.model = "cart_pole")
REQUEST(unload_model, UNLOAD_MODEL, UNLOAD_MODEL_REQUEST, u.unload_model.model = "cart_pole")
REQUEST(open, OPEN, OPEN_REQUEST, u.open.task = "arm_reach"; u.open.planner = sn_test_sampling(); u.open.name = "new";
        u.open.snapshot = snapshot)
REQUEST(plan, PLAN, PLAN_REQUEST, u.plan.session = named; u.plan.state = opened->open->initial; u.plan.deadline = 0.01;
        u.plan.want_states = true)
REQUEST(evaluate, EVALUATE, EVALUATE_REQUEST, u.evaluate.session = named; u.evaluate.state = opened->open->initial;
        u.evaluate.ctrl = ctrl; u.evaluate.n_ctrl = 6; u.evaluate.want_gradient = u.evaluate.want_states = true)
REQUEST(get_config, GET_CONFIG, GET_CONFIG_REQUEST, u.get_config.session = named)
REQUEST(reset, RESET, RESET_REQUEST, u.reset.session = named; u.reset.snapshot = snapshot)
REQUEST(close, CLOSE, CLOSE_REQUEST, u.close.session = other)
REQUEST(stream, STREAM, STREAM_REQUEST, u.stream.session = named; u.stream.lease = 60)
REQUEST(revert, REVERT, REVERT_REQUEST, u.revert.session = named; u.revert.version = 1)
REQUEST(snapshot, SNAPSHOT, SNAPSHOT_REQUEST, u.snapshot.session = named)
REQUEST(metrics, METRICS, METRICS_REQUEST, )
REQUEST(trace, TRACE, TRACE_REQUEST, u.trace.session = named)
REQUEST(flight, FLIGHT, FLIGHT_REQUEST, )

static Sinew__V1__Request make_stream_state(void) {
  u.stream_state = (Sinew__V1__StreamState)SINEW__V1__STREAM_STATE__INIT;
  u.stream_state.session = named;
  u.stream_state.state = &streamed;
  streamed.time += 1e-6;
  return *SN_TEST_MESSAGE(stream_state, STREAM_STATE, &u.stream_state);
}

static Sinew__V1__Request make_set_config(void) {
  sn_test_change_begin(&change, named);
  sn_test_change_weight(&change, 0, "reach", 2);
  return sn_test_change_request(&change);
}

static void forget(Sinew__V1__Request request) { sn_test_done(sn_test_ask_kept(&c, &request)); }

static void stop_stream(void) {
  Sinew__V1__Request request = make_stream();
  request.stream->stop = true;
  forget(request);
}

// What a kind needs before its requests come: a stream has one plan for each state.
static void prepare(const char *kind) {
  if (!strcmp(kind, "unload_model")) forget(make_load_model());
  if (strcmp(kind, "stream_state")) return;
  Sinew__V1__Request request = make_stream();
  request.stream->iterations = 1;
  forget(request);
  streamed = *opened->open->initial;
}

// What has to be undone, so that the request can come again.
static void undo(const char *kind) {
  if (!strcmp(kind, "load_model")) forget(make_unload_model());
  if (!strcmp(kind, "unload_model")) forget(make_load_model());
  if (!strcmp(kind, "stream")) stop_stream();
  if (!strcmp(kind, "open")) {
    Sinew__V1__Request request = make_open();
    Sinew__V1__Reply *reply = sn_test_expect_kept(&c, &request, BODY(OPEN));  // the one that was opened, or a new one
    request = make_close();
    request.close->session = reply->open->session;
    sn_test_done(reply);
    forget(request);
  }
  if (!strcmp(kind, "close")) {
    Sinew__V1__Request request = make_close();
    forget(request);
    open_other();
  }
}

static const struct {
  const char *name;
  Sinew__V1__Request (*make)(void);
} kinds[] = {{"hello", make_hello},
             {"health", make_health},
             {"statistics", make_statistics},
             {"list_models", make_list_models},
             {"list_tasks", make_list_tasks},
             {"describe_model", make_describe_model},
             {"describe_task", make_describe_task},
             {"load_model", make_load_model},
             {"unload_model", make_unload_model},
             {"open", make_open},
             {"plan", make_plan},
             {"evaluate", make_evaluate},
             {"get_config", make_get_config},
             {"set_config", make_set_config},
             {"revert", make_revert},
             {"reset", make_reset},
             {"snapshot", make_snapshot},
             {"stream", make_stream},
             {"close", make_close},
             {"metrics", make_metrics},
             {"trace", make_trace},
             {"stream_state", make_stream_state},
             {"flight", make_flight}};

enum { LOAD_MODEL = 7, UNLOAD_MODEL = 8, EVALUATE = 11, RESET = 15, KINDS = sizeof kinds / sizeof *kinds };

// ---- failures ----

typedef struct Outcome {
  long calls, tried, errors, lost, blamed;
} Outcome;

// Whether that answers the latest request, of this kind. A state of a stream gets a plan, or an error under its own id
// or that of the stream.
static bool answers(const Sinew__V1__Reply *reply, bool state) {
  if (reply->id == c.id || !state) return reply->id == c.id;
  return reply->body_case == BODY(ERROR) ||
         (reply->body_case == BODY(PLAN) && reply->plan->state_time == streamed.time);
}

// Sends the request; NULL when no answer has come. The next call that fails is the `at`th from now on; 0: none.
static Sinew__V1__Reply *ask(Sinew__V1__Request request, long at) {
  atomic_store(&failures->left, at);
  sn_test_send(&c, &request);
  Sinew__V1__Reply *reply;
  do {
    reply = sn_test_receive(&c, WAIT);
    if (!reply || answers(reply, request.body_case == SINEW__V1__REQUEST__BODY_STREAM_STATE)) break;
    sn_test_done(reply);
  } while (true);
  atomic_store(&failures->left, 0);
  return reply;
}

// Whether an error puts it down to who asked.
static bool blames(const Sinew__V1__Reply *reply) {
  if (!reply || reply->body_case != BODY(ERROR)) return false;
  const Sinew__V1__Error__Code code = reply->error->code;
  return code == SINEW__V1__ERROR__CODE__MALFORMED || code == SINEW__V1__ERROR__CODE__INVALID ||
         code == SINEW__V1__ERROR__CODE__NOT_FOUND || code == SINEW__V1__ERROR__CODE__UNSUPPORTED ||
         code == SINEW__V1__ERROR__CODE__PERMISSION;
}

// A page of metrics is given again for 0.1 s.
static void forget_page(int kind) {
  if (kinds[kind].make == make_metrics) usleep(110000);
}

// One call fails. Whatever that is, sinewd lives, and the sessions that were there are.
static void fail_at(int kind, long at, Outcome *o) {
  forget_page(kind);
  const long failed = atomic_load(&failures->failed);
  Sinew__V1__Reply *reply = ask(kinds[kind].make(), at);
  usleep(2000);
  o->tried += atomic_load(&failures->failed) > failed;
  o->lost += !reply;
  o->errors += reply && reply->body_case == BODY(ERROR);
  o->blamed += blames(reply);
  if (!reply || blames(reply))
    print_message("  %s: %s when call %ld fails, at %#lx\n", kinds[kind].name, reply ? reply->error->text : "no answer",
                  at, (unsigned long)atomic_load(&failures->caller));
  sn_test_done(reply);
  if (!sn_test_daemon_runs(&d))
    fail_msg("%s: sinewd has ended when call %ld failed, at %#lx", kinds[kind].name, at,
             (unsigned long)atomic_load(&failures->caller));
  undo(kinds[kind].name);
}

static void expect_whole(int kind) {
  Sinew__V1__Reply *reply = ask(kinds[kind].make(), 0);
  if (!reply || reply->body_case == BODY(ERROR))
    fail_msg("%s fails afterwards: %s", kinds[kind].name, reply ? reply->error->text : "no answer");
  sn_test_done(reply);
  undo(kinds[kind].name);
  Sinew__V1__PlanRequest in = SINEW__V1__PLAN_REQUEST__INIT;
  in.session = named;
  in.state = opened->open->initial;
  in.deadline = 0.01;
  sn_test_done(sn_test_expect_kept(&c, SN_TEST_MESSAGE(plan, PLAN, &in), BODY(PLAN)));
}

static Outcome fail_all(int kind) {
  Outcome o = {0};
  prepare(kinds[kind].name);
  expect_whole(kind);
  forget_page(kind);
  const long before = atomic_load(&failures->calls);
  sn_test_done(ask(kinds[kind].make(), 0));
  sn_test_daemon_rest(&d);
  o.calls = atomic_load(&failures->calls) - before;
  undo(kinds[kind].name);
  const long step = all || o.calls <= FEW ? 1 : o.calls / SOME;
  unsigned draw = seed + (unsigned)kind;  // the same ones each time
  for (long at = 1 + (step > 1 ? rand_r(&draw) % step : 0); at <= o.calls; at += step) fail_at(kind, at, &o);
  expect_whole(kind);
  if (!strcmp(kinds[kind].name, "stream_state")) stop_stream();
  return o;
}

// Blocks of memory that sinewd has, once these stay as they are: what it frees on another thread takes a moment.
static long blocks(void) {
  long before = -1, now = 0;
  for (int i = 0; i < 40 && now != before; i++) {
    before = now;
    sn_test_daemon_rest(&d);
    now = atomic_load(&failures->blocks);
  }
  return now;
}

static uint64_t version_of_named(void) {
  uint64_t version;
  sn_test_kept_weight(&c, named, &version);
  return version;
}

// A kind's calls fail, and what that has taken: but for the versions of the configuration that it has made, which are
// kept. It counts for the kind that gives the memory back, where that is another one.
static Outcome fail_and_weigh(int kind, long taken[KINDS]) {
  const uint64_t version = version_of_named();
  const long before = blocks();
  const Outcome o = fail_all(kind);
  const int payer = kind == UNLOAD_MODEL ? LOAD_MODEL : kind == EVALUATE ? RESET : kind;
  taken[payer] += blocks() - before - VERSION_BLOCKS * (long)(version_of_named() - version);
  return o;
}

static void test_each_request(void **state) {
  (void)state;
  long tried = 0, lost = 0, blamed = 0;
  long least[KINDS];
  const int files = sn_test_daemon_files(&d);
  const double megabytes = sn_test_daemon_megabytes(&d);
  print_message("seed %u\n", seed);
  for (int round = 0; round < ROUNDS; round++) {
    long taken[KINDS] = {0};
    for (int kind = 0; kind < KINDS; kind++) {
      const Outcome o = fail_and_weigh(kind, taken);
      if (round == 0)
        print_message("%-15s %5ld calls, %5ld failed: %5ld errors, %5ld answers in spite of it, %ld lost\n",
                      kinds[kind].name, o.calls, o.tried, o.errors, o.tried - o.errors - o.lost, o.lost);
      tried += o.tried;
      lost += o.lost;
      blamed += o.blamed;
    }
    for (int kind = 0; kind < KINDS; kind++)
      least[kind] = round < 2 || taken[kind] < least[kind] ? taken[kind] : least[kind];
  }
  print_message("%ld calls failed; %.1f MB before, %.1f MB after; taken in one of %d rounds:", tried, megabytes,
                sn_test_daemon_megabytes(&d), ROUNDS - 1);
  for (int kind = 0; kind < KINDS; kind++) print_message(" %s %ld", kinds[kind].name, least[kind]);
  print_message(" blocks\n");
  for (int kind = 0; kind < KINDS; kind++)
    if (least[kind] > 0) fail_msg("%s takes %ld blocks of memory each time", kinds[kind].name, least[kind]);
  assert_true(tried > 50);
  assert_int_equal(lost, 0);
  assert_int_equal(blamed, 0);
  assert_true(sn_test_daemon_files(&d) <= files);
  Sinew__V1__Reply *reply = sn_test_statistics(&c, 0);
  assert_int_equal(reply->statistics->n_sessions, 2);
  sn_test_done(reply);
}

// Starts a daemon none of whose calls fails; returns how many it makes.
static long calls_of_a_start(void) {
  atomic_store(&failures->calls, 0);
  start_failing();
  assert_true(sn_test_answers(&c, 20));
  sn_test_daemon_rest(&d);
  return atomic_load(&failures->calls);
}

// Each call of a start fails, that of a daemon that has a session to restore: it says why it cannot start, or starts.
// How many calls it makes depends on what it does meanwhile: in the short form one may come too late to fail.
static void test_start(void **state) {
  (void)state;
  long started = 0, ended = 0;
  assert_int_equal(sn_test_daemon_stop(&d, SIGTERM), 0);
  const long calls = calls_of_a_start();
  for (long at = 1; all || at <= calls; at += all ? 1 : 1 + calls / SOME + rand_r(&seed) % 7) {
    assert_true(sn_test_daemon_stop(&d, SIGTERM) == 0 || at > 1);
    atomic_store(&failures->left, at);
    const long failed = atomic_load(&failures->failed);
    start_failing();
    int status;
    pid_t gone = 0;
    bool answers = false;
    for (double until = sn_clock_now() + 20; !answers && !gone && sn_clock_now() < until;) {
      answers = sn_test_answers(&c, 0.2);
      gone = answers ? 0 : waitpid(d.pid, &status, WNOHANG);
    }
    sn_test_daemon_rest(&d);
    const bool tried = atomic_load(&failures->failed) > failed;
    atomic_store(&failures->left, 0);
    if (!answers && !(gone == d.pid && WIFEXITED(status) && WEXITSTATUS(status) == 1))
      fail_msg("call %ld of a start fails, at %#lx: neither an answer nor status 1", at,
               (unsigned long)atomic_load(&failures->caller));
    if (gone) {
      assert_true(sn_test_daemon_logged(&d, "event=failed "));
      start_failing();
      assert_true(sn_test_answers(&c, 20));
    }
    started += tried && answers;
    ended += tried && gone;
    if (all && !tried) break;
  }
  char refused[128];
  snprintf(refused, sizeof refused, "%s/state/refused", d.folder);
  assert_int_not_equal(access(refused, F_OK), 0);
  uint64_t version;
  sn_test_kept_weight(&c, named, &version);
  print_message("%ld starts with a call that failed were served, %ld ended with status 1 and words\n", started, ended);
  assert_true(started + ended > 3);
}

int main(int argc, char **argv) {
  all = argc > 1 && !strcmp(argv[1], "all");
  seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : (unsigned)time(NULL);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_request), cmocka_unit_test(test_start)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
