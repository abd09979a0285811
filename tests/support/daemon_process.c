#include "tests/support/daemon_process.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include <cmocka.h>

#include "proto/wire_text.h"

enum { ARGS_MAX = 40 };

const char *sn_test_binary_folder(void) { return SN_TEST_BINARY_DIR; }

static void pause_ms(int ms) {
  struct timespec t = {ms / 1000, (ms % 1000) * 1000000L};
  nanosleep(&t, NULL);
}

void sn_test_daemon_prepare(SnTestDaemon *d) {
  char path[128];
  *d = (SnTestDaemon){.files = d->files};
  strcpy(d->folder, "/tmp/sinew-test-XXXXXX");
  assert_non_null(mkdtemp(d->folder));
  snprintf(d->endpoint, sizeof d->endpoint, "ipc://%s/socket", d->folder);
  snprintf(d->telemetry, sizeof d->telemetry, "ipc://%s/socket.telemetry", d->folder);
  snprintf(d->records, sizeof d->records, "ipc://%s/socket.records", d->folder);
  snprintf(d->log, sizeof d->log, "%s/log", d->folder);
  static const char *const sub[] = {"models", "tasks", "cache"};
  for (int i = 0; i < 3; i++) {
    snprintf(path, sizeof path, "%s/%s", d->folder, sub[i]);
    assert_int_equal(mkdir(path, 0700), 0);
  }
}

void sn_test_daemon_spawn(SnTestDaemon *d, const char *const *args) {
  if (!*d->folder) sn_test_daemon_prepare(d);
  char text[5][256],
      *argv[ARGS_MAX + 10] = {SN_TEST_BINARY_DIR "/sinewd", "--models=" SN_TEST_SOURCE_DIR "/../physics/models",
                              "--tasks=" SN_TEST_SOURCE_DIR "/../planner/tasks", "--backend=cpu"};
  snprintf(text[0], sizeof text[0], "--endpoint=%s", d->endpoint);
  snprintf(text[1], sizeof text[1], "--models=%s/models", d->folder);
  snprintf(text[2], sizeof text[2], "--tasks=%s/tasks", d->folder);
  snprintf(text[3], sizeof text[3], "--cache=%s/cache", d->folder);
  int n = 4;
  for (int i = 0; i < 4; i++) argv[n++] = text[i];
  for (int i = 0; args && args[i] && i < ARGS_MAX; i++) argv[n++] = (char *)(uintptr_t)args[i];
  d->pid = fork();
  assert_true(d->pid >= 0);
  if (d->pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that fails stops what it started
    const struct rlimit files = {(rlim_t)d->files, (rlim_t)d->files};
    if (d->files > 0) setrlimit(RLIMIT_NOFILE, &files);
    int fd = open(d->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(fd, STDERR_FILENO);
    dup2(fd, STDOUT_FILENO);
    execv(argv[0], argv);
    _exit(127);
  }
}

static void show_log(const SnTestDaemon *d) {
  char line[1000];
  FILE *f = fopen(d->log, "r");
  while (f && fgets(line, sizeof line, f)) print_message("  sinewd: %s", line);
  if (f) fclose(f);
}

static void shared_file(const SnTestDaemon *d, char path[128]) { snprintf(path, 128, "%s/shared", d->folder); }

void *sn_test_daemon_share(const SnTestDaemon *d, size_t size) {
  char path[128];
  shared_file(d, path);
  const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  assert_true(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
  void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  assert_true(shared != MAP_FAILED);
  close(fd);
  return shared;
}

void sn_test_daemon_spawn_preloaded(SnTestDaemon *d, const char *const *args, const char *library,
                                    const char *variable) {
  char path[128];
  shared_file(d, path);
  setenv(variable, path, 1);
  setenv("LD_PRELOAD", library, 1);
  sn_test_daemon_spawn(d, args);
  unsetenv("LD_PRELOAD");
  unsetenv(variable);
}

void sn_test_daemon_start(SnTestDaemon *d, const char *const *args) {
  sn_test_daemon_spawn(d, args);
  SnTestClient client;
  sn_test_connect(&client, d->endpoint);
  Sinew__V1__HealthRequest health = SINEW__V1__HEALTH_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_HEALTH;
  request.health = &health;
  sn_test_send(&client, &request);
  Sinew__V1__Reply *reply = NULL;
  bool ended = false;
  for (double until = sn_clock_now() + 60; !reply && !ended && sn_clock_now() < until;) {
    reply = sn_test_receive(&client, 0.1);
    ended = !reply && waitpid(d->pid, NULL, WNOHANG) == d->pid;
  }
  sn_test_disconnect(&client);
  if (!reply) {
    show_log(d);
    if (!ended) kill(d->pid, SIGKILL);
    fail_msg("sinewd did not come up");
  }
  sn_test_done(reply);
}

int sn_test_daemon_wait(SnTestDaemon *d) {
  int status = 0;
  for (const double until = sn_clock_now() + 30; sn_clock_now() < until;) {
    pid_t pid = waitpid(d->pid, &status, WNOHANG);
    if (pid == d->pid) {
      if (WIFEXITED(status)) return WEXITSTATUS(status);
      show_log(d);
      return -1;
    }
    pause_ms(10);
  }
  show_log(d);
  kill(d->pid, SIGKILL);
  waitpid(d->pid, &status, 0);
  return -1;
}

int sn_test_daemon_stop(SnTestDaemon *d, int signal) {
  kill(d->pid, signal);
  return sn_test_daemon_wait(d);
}

void sn_test_daemon_remove(SnTestDaemon *d) {
  char command[100];
  snprintf(command, sizeof command, "rm -rf %s", d->folder);
  if (strncmp(d->folder, "/tmp/sinew-test-", 16) == 0 && system(command) != 0)
    print_message("cannot remove %s\n", d->folder);
  *d->folder = '\0';
}

void sn_test_daemon_write(const SnTestDaemon *d, const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", d->folder, name);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  assert_true(fputs(text, f) >= 0);
  assert_int_equal(fclose(f), 0);
}

int sn_test_daemon_logged_times(const SnTestDaemon *d, const char *word) {
  char line[5000];
  int times = 0;
  FILE *f = fopen(d->log, "r");
  while (f && fgets(line, sizeof line, f)) times += strstr(line, word) != NULL;
  if (f) fclose(f);
  return times;
}

bool sn_test_daemon_logged(const SnTestDaemon *d, const char *word) { return sn_test_daemon_logged_times(d, word) > 0; }

void sn_test_connect(SnTestClient *c, const char *endpoint) {
  int zero = 0, reconnect = 20;
  c->id = 0;
  c->context = zmq_ctx_new();
  c->socket = zmq_socket(c->context, ZMQ_DEALER);
  zmq_setsockopt(c->socket, ZMQ_LINGER, &zero, sizeof zero);
  zmq_setsockopt(c->socket, ZMQ_RECONNECT_IVL, &reconnect, sizeof reconnect);
  assert_int_equal(zmq_connect(c->socket, endpoint), 0);
}

void sn_test_disconnect(SnTestClient *c) {
  zmq_close(c->socket);
  zmq_ctx_term(c->context);
}

void sn_test_begin(SnTestDaemon *d, SnTestClient *c) {
  sn_test_daemon_start(d, NULL);
  sn_test_connect(c, d->endpoint);
}

int sn_test_end(SnTestDaemon *d, SnTestClient *c) {
  sn_test_disconnect(c);
  const int status = sn_test_daemon_stop(d, SIGTERM);
  sn_test_daemon_remove(d);
  return status;
}

void sn_test_send_bytes(SnTestClient *c, const void *bytes, size_t size) {
  assert_int_equal(zmq_send(c->socket, bytes, size, 0), (int)size);
}

void sn_test_send(SnTestClient *c, Sinew__V1__Request *request) {
  request->id = ++c->id;
  size_t size = sinew__v1__request__get_packed_size(request);
  unsigned char *bytes = malloc(size + 1);
  sinew__v1__request__pack(request, bytes);
  sn_test_send_bytes(c, bytes, size);
  free(bytes);
}

void sn_test_done(Sinew__V1__Reply *reply) { sinew__v1__reply__free_unpacked(reply, NULL); }

// Clients in other languages refuse a message with a text that is no UTF-8.
static void expect_texts(zmq_msg_t *frame) {
  const size_t size = zmq_msg_size(frame);
  unsigned char *mended = malloc(size + 1);
  assert_non_null(mended);
  memcpy(mended, zmq_msg_data(frame), size);
  sn_wire_mend_texts(&sinew__v1__reply__descriptor, mended, size);
  if (memcmp(mended, zmq_msg_data(frame), size) != 0) fail_msg("a text of a reply is no UTF-8");
  free(mended);
}

Sinew__V1__Reply *sn_test_receive(SnTestClient *c, double seconds) {
  zmq_pollitem_t item = {c->socket, 0, ZMQ_POLLIN, 0};
  zmq_msg_t frame;
  if (zmq_poll(&item, 1, (long)(1000 * seconds)) <= 0) return NULL;
  zmq_msg_init(&frame);
  assert_true(zmq_msg_recv(&frame, c->socket, 0) >= 0);
  assert_false(zmq_msg_more(&frame));
  expect_texts(&frame);
  Sinew__V1__Reply *reply = sinew__v1__reply__unpack(NULL, zmq_msg_size(&frame), zmq_msg_data(&frame));
  zmq_msg_close(&frame);
  assert_non_null(reply);
  return reply;
}

Sinew__V1__Reply *sn_test_request(SnTestClient *c, Sinew__V1__Request *request) {
  sn_test_send(c, request);
  Sinew__V1__Reply *reply = sn_test_receive(c, 60);
  assert_non_null(reply);
  assert_int_equal(reply->id, c->id);
  return reply;
}

void sn_test_expect_error(Sinew__V1__Reply *reply, Sinew__V1__Error__Code code, const char *word) {
  assert_non_null(reply);
  assert_int_equal(reply->body_case, SINEW__V1__REPLY__BODY_ERROR);
  if (reply->error->code != code || !strstr(reply->error->text, word))
    fail_msg("code %d, '%s'; wanted code %d and '%s'", reply->error->code, reply->error->text, code, word);
  sn_test_done(reply);
}

uint64_t sn_test_open_by(SnTestClient *c, const char *task, uint64_t seed, Sinew__V1__PlannerSettings *planner,
                         Sinew__V1__Reply **initial) {
  Sinew__V1__OpenRequest open = SINEW__V1__OPEN_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  open.task = (char *)(uintptr_t)task;
  open.seed = seed;
  open.planner = planner;
  request.body_case = SINEW__V1__REQUEST__BODY_OPEN;
  request.open = &open;
  Sinew__V1__Reply *reply = sn_test_request(c, &request);
  if (reply->body_case == SINEW__V1__REPLY__BODY_ERROR) fail_msg("open %s: %s", task, reply->error->text);
  assert_int_equal(reply->body_case, SINEW__V1__REPLY__BODY_OPEN);
  uint64_t session = reply->open->session;
  if (initial)
    *initial = reply;
  else
    sn_test_done(reply);
  return session;
}

Sinew__V1__PlannerSettings *sn_test_sampling(void) {
  static Sinew__V1__PlannerSettings settings = SINEW__V1__PLANNER_SETTINGS__INIT;
  settings.has_planner_case = SINEW__V1__PLANNER_SETTINGS__HAS_PLANNER_PLANNER;
  settings.planner = "sampling";
  return &settings;
}

uint64_t sn_test_open(SnTestClient *c, const char *task, uint64_t seed, Sinew__V1__Reply **initial) {
  return sn_test_open_by(c, task, seed, sn_test_sampling(), initial);
}

void sn_test_send_plan(SnTestClient *c, uint64_t session, Sinew__V1__State *state, double deadline) {
  Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  plan.session = session;
  plan.state = state;
  plan.deadline = deadline;
  request.body_case = SINEW__V1__REQUEST__BODY_PLAN;
  request.plan = &plan;
  sn_test_send(c, &request);
}

Sinew__V1__Reply *sn_test_plan(SnTestClient *c, uint64_t session, Sinew__V1__State *state, double deadline) {
  sn_test_send_plan(c, session, state, deadline);
  Sinew__V1__Reply *reply = sn_test_receive(c, deadline + 30);
  assert_non_null(reply);
  assert_int_equal(reply->id, c->id);
  return reply;
}
