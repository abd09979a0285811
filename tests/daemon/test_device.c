// sinewd on a device, as a black box: the emulator's library takes the place of a GPU's.
#include <glob.h>
#include <math.h>
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

#include "clients/base/statistics.h"
#include "tests/support/daemon_device.h"
#include "tests/support/daemon_group.h"
#include "tests/support/daemon_tuning.h"

// ---- the same plans ----

static void expect_bits(const double *a, const double *b, size_t n, const char *what, int round) {
  for (size_t i = 0; i < n; i++)
    if (memcmp(&a[i], &b[i], sizeof *a) != 0 && !(isnan(a[i]) && isnan(b[i])))
      fail_msg("plan %d: %s[%zu] is %.17g on the device, %.17g on the cpu", round, what, i, a[i], b[i]);
}

static void expect_same(const Sinew__V1__Plan *device, const Sinew__V1__Plan *cpu, int round) {
  assert_int_equal(device->n_ctrl, cpu->n_ctrl);
  assert_int_equal(device->iterations, cpu->iterations);
  assert_int_equal(device->candidates, cpu->candidates);
  assert_int_equal(device->n_terms, cpu->n_terms);
  expect_bits(device->ctrl, cpu->ctrl, cpu->n_ctrl, "ctrl", round);
  expect_bits(&device->cost_before, &cpu->cost_before, 1, "cost_before", round);
  expect_bits(&device->cost_after, &cpu->cost_after, 1, "cost_after", round);
  expect_bits(&device->gradient_norm, &cpu->gradient_norm, 1, "gradient_norm", round);
  for (size_t i = 0; i < cpu->n_terms; i++)
    expect_bits(&device->terms[i]->cost, &cpu->terms[i]->cost, 1, cpu->terms[i]->name, round);
}

// A body of its own, planned for with the same requests on a device and on the cpu.
static void compare_plans(SnTestServer *device, SnTestServer *cpu, char *task, char *planner) {
  enum { PLANS = 12, ITERATIONS = 3, EXECUTED = 6 };
  Sinew__V1__Reply *opened, *on_cpu;
  const uint64_t a = sn_test_open_with(&device->client, task, planner, 5, &opened),
                 b = sn_test_open_with(&cpu->client, task, planner, 5, &on_cpu);
  Sinew__V1__State *x = opened->open->initial;
  expect_bits(x->qpos, on_cpu->open->initial->qpos, x->n_qpos, "initial qpos", 0);
  double gained = 0;
  bool controls = false;
  for (int i = 0; i < PLANS; i++) {
    Sinew__V1__Reply *p = sn_test_plan_iterations(&device->client, a, x, ITERATIONS),
                     *q = sn_test_plan_iterations(&cpu->client, b, x, ITERATIONS);
    assert_string_equal(p->plan->backend, SN_TEST_DEVICE);
    assert_string_equal(q->plan->backend, "cpu");
    assert_false(p->plan->device_lost || q->plan->device_lost || p->plan->overflow);
    expect_same(p->plan, q->plan, i);
    controls = p->plan->n_ctrl > 0;
    gained += p->plan->cost_before - p->plan->cost_after;
    sn_test_follow(x, p->plan, EXECUTED);
    sn_test_done(p);
    sn_test_done(q);
  }
  print_message("%s, %s: %d plans bit for bit those of the cpu, which gain %g\n", task, planner, PLANS, gained);
  assert_true((gained > 0) == controls);  // billiard has none: its costs are compared
  sn_test_done(opened);
  sn_test_done(on_cpu);
}

static void test_plans_are_those_of_the_cpu(void **state) {
  (void)state;
  SnTestServer device, cpu;
  sn_test_server_device(&device, "");
  sn_test_server_begin(&cpu, (const char *const[]){"--backend=cpu", NULL});
  compare_plans(&device, &cpu, "arm_reach", "sampling");
  compare_plans(&device, &cpu, "arm_reach", "adam");
  compare_plans(&device, &cpu, "billiard", "adam");
  sn_test_server_end(&device);
  sn_test_server_end(&cpu);
}

// Two sessions of one model with plans under way at the same time get the plans that each gets alone.
static void test_sessions_at_once(void **state) {
  (void)state;
  enum { SESSIONS = 3, ROUNDS = 4, ITERATIONS = 8 };
  SnTestServer device, cpu;
  SnTestClient c[SESSIONS];
  uint64_t on_device[SESSIONS], on_cpu[SESSIONS];
  Sinew__V1__Reply *opened[SESSIONS];
  sn_test_server_device(&device, "");
  sn_test_server_begin(&cpu, (const char *const[]){"--backend=cpu", NULL});
  for (int i = 0; i < SESSIONS; i++) {
    sn_test_connect(&c[i], device.daemon.endpoint);
    on_device[i] = sn_test_open_with(&c[i], "arm_reach", "adam", 10 + (uint64_t)i, &opened[i]);
    on_cpu[i] = sn_test_open_with(&cpu.client, "arm_reach", "adam", 10 + (uint64_t)i, NULL);
  }
  for (int k = 0; k < ROUNDS; k++) {
    for (int i = 0; i < SESSIONS; i++)
      sn_test_send_iterations(&c[i], on_device[i], opened[i]->open->initial, ITERATIONS);
    for (int i = 0; i < SESSIONS; i++) {
      Sinew__V1__Reply *p = sn_test_take_plan(&c[i]),
                       *q = sn_test_plan_iterations(&cpu.client, on_cpu[i], opened[i]->open->initial, ITERATIONS);
      expect_same(p->plan, q->plan, k);
      sn_test_follow(opened[i]->open->initial, p->plan, 4);
      sn_test_done(p);
      sn_test_done(q);
    }
  }
  for (int i = 0; i < SESSIONS; i++) {
    sn_test_done(opened[i]);
    sn_test_disconnect(&c[i]);
  }
  sn_test_server_end(&device);
  sn_test_server_end(&cpu);
}

// ---- what the daemon says of its device ----

static void test_hello_and_health(void **state) {
  (void)state;
  SnTestServer s;
  sn_test_server_device(&s, "");
  Sinew__V1__HelloRequest in = SINEW__V1__HELLO_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  in.protocol = 1;
  request.body_case = SINEW__V1__REQUEST__BODY_HELLO;
  request.hello = &in;
  Sinew__V1__Reply *r = sn_test_request(&s.client, &request);
  assert_int_equal(r->hello->n_backends, 2);
  assert_string_equal(r->hello->backends[0], SN_TEST_DEVICE);
  assert_string_equal(r->hello->backends[1], "cpu");
  sn_test_done(r);
  r = sn_test_health(&s.client);
  assert_int_equal(r->health->state, SINEW__V1__HEALTH__STATE__READY);
  assert_non_null(r->health->device);
  assert_string_equal(r->health->device->backend, SN_TEST_DEVICE);
  assert_true(strlen(r->health->device->text) > 0 && !r->health->device->lost);
  const uint64_t empty = r->health->device->memory_used;
  sn_test_done(r);

  // A task is described without memory of the device; sessions take some, and give it back.
  Sinew__V1__DescribeTaskRequest task = SINEW__V1__DESCRIBE_TASK_REQUEST__INIT;
  task.task = "arm_reach";
  request.body_case = SINEW__V1__REQUEST__BODY_DESCRIBE_TASK;
  request.describe_task = &task;
  r = sn_test_request(&s.client, &request);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_DESCRIBE_TASK);
  assert_int_equal(r->describe_task->model->nu, 6);
  sn_test_done(r);
  r = sn_test_statistics(&s.client, 0);
  assert_true(r->statistics->device->memory_used == empty);
  sn_test_done(r);
  const uint64_t id = sn_test_open_with(&s.client, "arm_reach", "adam", 1, NULL);
  r = sn_test_statistics(&s.client, 0);
  assert_true(r->statistics->sessions_on_device == 1 && r->statistics->sessions_on_cpu == 0);
  assert_string_equal(r->statistics->sessions[0]->backend, SN_TEST_DEVICE);
  assert_true(r->statistics->device->memory_used > empty && r->statistics->device->memory_total > 0);
  print_message("%s; a session of arm_reach takes %.1f MB\n", r->statistics->device->text,
                1e-6 * (double)(r->statistics->device->memory_used - empty));
  sn_test_done(r);
  Sinew__V1__CloseRequest close = SINEW__V1__CLOSE_REQUEST__INIT;
  close.session = id;
  request.body_case = SINEW__V1__REQUEST__BODY_CLOSE;
  request.close = &close;
  sn_test_done(sn_test_request(&s.client, &request));
  sn_test_server_end(&s);
}

// While a launch runs the daemon answers: its health says how long the planner has been away, before that comes back.
static void test_health_while_a_launch_runs(void **state) {
  (void)state;
  SnTestServer s;
  SnTestClient other;
  Sinew__V1__Reply *opened, *r;
  sn_test_server_begin(&s, (const char *const[]){"--backend=" SN_TEST_DEVICE, SN_TEST_DEVICE_FOLDER,
                                                 "--backend-fault=slow:0.4", "--stall=0.5", NULL});
  sn_test_connect(&other, s.daemon.endpoint);
  const uint64_t id = sn_test_open_with(&s.client, "arm_reach", "adam", 1, &opened);
  sn_test_send_iterations(&s.client, id, opened->open->initial, 1);
  double oldest = 0, slowest = 0;
  int stalled = 0;
  for (r = NULL; !r; r = sn_test_receive(&s.client, 0.05)) {
    const double asked = sn_clock_now();
    Sinew__V1__Reply *h = sn_test_health(&other);
    slowest = sn_larger(slowest, sn_clock_now() - asked);
    oldest = sn_larger(oldest, h->health->planner_age);
    assert_int_equal(h->health->state, h->health->planner_age > 0.5 ? SINEW__V1__HEALTH__STATE__STALLED
                                                                    : SINEW__V1__HEALTH__STATE__READY);
    stalled += h->health->state == SINEW__V1__HEALTH__STATE__STALLED;
    sn_test_done(h);
  }
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
  assert_string_equal(r->plan->backend, SN_TEST_DEVICE);
  sn_test_done(r);
  print_message("the planner was away for %.1f s; the slowest answer took %.3f s\n", oldest, slowest);
  assert_true(stalled > 0 && oldest > 1);
  for (double until = sn_clock_now() + 10;;) {
    r = sn_test_health(&other);
    const bool ready = r->health->state == SINEW__V1__HEALTH__STATE__READY;
    sn_test_done(r);
    if (ready) break;
    assert_true(sn_clock_now() < until);
  }
  sn_test_done(opened);
  sn_test_disconnect(&other);
  sn_test_server_end(&s);
}

// ---- memory ----

// Asks once the planner has come round twice after the daemon, which asks its device ten times a second, had to ask.
static uint64_t memory_used(SnTestServer *s) {
  const struct timespec pause = {.tv_nsec = 10000000};
  double since = sn_clock_now() + 0.2;
  uint64_t used = 0;
  for (int rounds = 0; rounds < 2; nanosleep(&pause, NULL)) {
    const double asked = sn_clock_now();
    assert_true(asked < since + 60);
    Sinew__V1__Reply *r = sn_test_health(&s->client);
    used = r->health->device->memory_used;
    if (asked - r->health->planner_age > since) {
      rounds++;
      since = sn_clock_now();
    }
    sn_test_done(r);
  }
  return used;
}

// Megabytes that a session of the arm takes.
static int megabytes_of_arm(void) {
  SnTestServer s;
  sn_test_server_device(&s, "");
  sn_test_open_with(&s.client, "arm_reach", "adam", 1, NULL);
  Sinew__V1__Reply *r = sn_test_health(&s.client);
  const int megabytes = (int)((r->health->device->memory_used + (1 << 20) - 1) >> 20);
  sn_test_done(r);
  sn_test_server_end(&s);
  return megabytes;
}

// A session with a long horizon and many starts does not fit. Returns what is used afterwards: blocks of the model have
// scratch for the longest horizon that anybody asked for, also where the rest was refused.
static uint64_t refuse_long(SnTestServer *s, uint64_t used) {
  Sinew__V1__PlannerSettings settings = SINEW__V1__PLANNER_SETTINGS__INIT;
  Sinew__V1__OpenRequest open = SINEW__V1__OPEN_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  settings.has_planner_case = SINEW__V1__PLANNER_SETTINGS__HAS_PLANNER_PLANNER;
  settings.planner = "adam";
  settings.has_horizon_case = SINEW__V1__PLANNER_SETTINGS__HAS_HORIZON_HORIZON;
  settings.horizon = 2048;
  settings.has_adam_starts_case = SINEW__V1__PLANNER_SETTINGS__HAS_ADAM_STARTS_ADAM_STARTS;
  settings.adam_starts = 64;
  open.task = "arm_reach";
  open.planner = &settings;
  request.body_case = SINEW__V1__REQUEST__BODY_OPEN;
  request.open = &open;
  for (int i = 0; i < 3; i++) {
    Sinew__V1__Reply *r = sn_test_request(&s->client, &request);
    assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_ERROR);
    if (i == 0) print_message("refused: %s\n", r->error->text);
    sn_test_expect_error(r, SINEW__V1__ERROR__CODE__LIMIT, "MB");
    const uint64_t now = memory_used(s);
    assert_true(i == 0 ? now - used < 2u << 20 : now == used);
    used = now;
  }
  return used;
}

// What does not fit is refused with the figures, and the session that is there goes on as if nothing had been.
static void test_budget(void **state) {
  (void)state;
  SnTestServer s, cpu;
  Sinew__V1__Reply *opened, *r;
  char budget[40];
  const int megabytes = megabytes_of_arm() + 1;
  snprintf(budget, sizeof budget, "--device-megabytes=%d", megabytes);
  sn_test_server_begin(&s, (const char *const[]){"--backend=" SN_TEST_DEVICE, SN_TEST_DEVICE_FOLDER, budget, NULL});
  sn_test_server_begin(&cpu, (const char *const[]){"--backend=cpu", NULL});
  const uint64_t id = sn_test_open_with(&s.client, "arm_reach", "adam", 1, &opened),
                 same = sn_test_open_with(&cpu.client, "arm_reach", "adam", 1, NULL);
  r = sn_test_health(&s.client);
  assert_int_equal(r->health->device->memory_budget, megabytes << 20);
  uint64_t used = r->health->device->memory_used;
  assert_true(used > 0 && used <= r->health->device->memory_budget);
  sn_test_done(r);

  used = refuse_long(&s, used);

  // Nor does a session that is there grow beyond it.
  Sinew__V1__PlannerSettings more = SINEW__V1__PLANNER_SETTINGS__INIT;
  Sinew__V1__SetConfigRequest change = SINEW__V1__SET_CONFIG_REQUEST__INIT;
  more.has_adam_starts_case = SINEW__V1__PLANNER_SETTINGS__HAS_ADAM_STARTS_ADAM_STARTS;
  more.adam_starts = 64;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  change.session = id;
  change.planner = &more;
  request.body_case = SINEW__V1__REQUEST__BODY_SET_CONFIG;
  request.set_config = &change;
  r = sn_test_request(&s.client, &request);
  if (r->body_case == SINEW__V1__REPLY__BODY_ERROR) print_message("refused: %s\n", r->error->text);
  sn_test_expect_error(r, SINEW__V1__ERROR__CODE__LIMIT, "MB");

  r = sn_test_statistics(&s.client, 0);
  assert_int_equal(r->statistics->sessions_on_device, 1);
  assert_int_equal(r->statistics->sessions[0]->config_version, 1);
  assert_true(r->statistics->device->memory_used == used);
  sn_test_done(r);
  for (int i = 0; i < 3; i++) {
    Sinew__V1__Reply *p = sn_test_plan_iterations(&s.client, id, opened->open->initial, 4),
                     *q = sn_test_plan_iterations(&cpu.client, same, opened->open->initial, 4);
    assert_string_equal(p->plan->backend, SN_TEST_DEVICE);
    expect_same(p->plan, q->plan, i);
    sn_test_follow(opened->open->initial, p->plan, 4);
    sn_test_done(p);
    sn_test_done(q);
  }
  sn_test_done(opened);
  sn_test_server_end(&s);
  sn_test_server_end(&cpu);
}

// Memory is reserved when a session is opened, by both planners.
static void test_plans_take_no_memory(void **state) {
  (void)state;
  char *const planners[] = {"sampling", "adam"};
  SnTestServer s;
  sn_test_server_device(&s, "");
  for (int k = 0; k < 2; k++) {
    Sinew__V1__Reply *opened;
    const uint64_t id = sn_test_open_with(&s.client, "arm_reach", planners[k], 3, &opened), used = memory_used(&s);
    assert_true(used > 0);
    sn_test_done(sn_test_plan_iterations(&s.client, id, opened->open->initial, 2));
    assert_true(memory_used(&s) == used);
    sn_test_done(opened);
  }
  sn_test_server_end(&s);
}

static void test_tuning_storm(void **state) {
  (void)state;
  SnTestServer s;
  sn_test_server_device(&s, "");
  sn_test_tuning_storm(&s.client, "sampling", 100);
  sn_test_tuning_storm(&s.client, "adam", 100);
  sn_test_server_end(&s);
}

// ---- configuration ----

static void expect_no_start(const char *const *args, const char *word) {
  SnTestDaemon d = {0};
  sn_test_daemon_prepare(&d);
  sn_test_daemon_spawn(&d, args);
  assert_int_equal(sn_test_daemon_wait(&d), 1);
  if (!sn_test_daemon_logged(&d, word)) fail_msg("the log does not say '%s'", word);
  assert_false(sn_test_daemon_logged(&d, "event=ready"));
  sn_test_daemon_remove(&d);
}

static void test_backend_that_is_not_there(void **state) {
  (void)state;
  expect_no_start((const char *const[]){"--backend=cuda", "--backend-folder=/nonexistent", NULL},
                  "backend is 'cuda', which cannot be opened");
  expect_no_start((const char *const[]){"--backend=abacus", NULL}, "backend is 'abacus', which cannot be opened");
}

// A folder in which the emulator's library has the name of a device's.
static void make_folder(char *folder, char library[100], char where[100]) {
  assert_non_null(mkdtemp(folder));
  snprintf(library, 100, "%s/libsinew_cuda.so", folder);
  snprintf(where, 100, "--backend-folder=%s", folder);
  assert_int_equal(symlink(SN_TEST_LIBRARY_DIR "/libsinew_" SN_TEST_DEVICE ".so", library), 0);
}

static void remove_folder(const char *folder, const char *library) {
  assert_int_equal(unlink(library), 0);
  assert_int_equal(rmdir(folder), 0);
}

// Opens a session, plans once, and checks where.
static void expect_plans_on(SnTestServer *s, char *planner, const char *backend) {
  Sinew__V1__Reply *opened;
  const uint64_t id = sn_test_open_with(&s->client, "arm_reach", planner, 1, &opened);
  Sinew__V1__Reply *r = sn_test_plan_iterations(&s->client, id, opened->open->initial, 1);
  assert_string_equal(r->plan->backend, backend);
  sn_test_done(r);
  r = sn_test_statistics(&s->client, id);
  assert_string_equal(r->statistics->sessions[0]->backend, backend);
  sn_test_done(r);
  sn_test_done(opened);
}

// Checks that the page of metrics, which is given again for a tenth of a second, has a line.
static void expect_metric(SnTestServer *s, const char *line) {
  Sinew__V1__MetricsRequest metrics = SINEW__V1__METRICS_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_METRICS;
  request.metrics = &metrics;
  usleep(200000);
  sn_test_send(&s->client, &request);
  Sinew__V1__Reply *r = sn_test_receive(&s->client, 20);
  assert_non_null(r);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_METRICS);
  if (!strstr(r->metrics->text, line)) fail_msg("no \"%s\" in %s", line, r->metrics->text);
  sn_test_done(r);
}

// The file that the daemon has kept of its measurement: "" before there is one.
static void kept_file(const SnTestServer *s, char path[300]) {
  char pattern[200];
  glob_t found;
  snprintf(pattern, sizeof pattern, "%s/cache/contest-*.txt", s->daemon.folder);
  path[0] = '\0';
  if (glob(pattern, 0, NULL, &found) == 0) snprintf(path, 300, "%s", found.gl_pathv[0]);
  globfree(&found);
}

// Puts other figures in place of those that were measured: what they hold for stays.
static void force_figures(const char *path, const char *rows) {
  char head[5][5000];
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  for (int i = 0; i < 5; i++) assert_non_null(fgets(head[i], sizeof head[i], f));
  fclose(f);
  f = fopen(path, "w");
  for (int i = 0; i < 5; i++) fputs(head[i], f);
  fprintf(f, "%send\n", rows);
  fclose(f);
}

// auto measures at the first opening of a model, and keeps it. From then on a session plans where figures say: here by
// figures of the test's own. One start of Adam and one gradient stay on the CPU, many candidates use the device.
static void test_auto_by_measurement(void **state) {
  (void)state;
  char folder[] = "/tmp/sinew-test-XXXXXX", library[100], where[100], path[300];
  make_folder(folder, library, where);
  SnTestServer s;
  sn_test_server_begin(&s, (const char *const[]){"--backend=auto", where, NULL});
  assert_true(sn_test_daemon_logged(&s.daemon, "auto: cpu, double, "));
  assert_true(sn_test_daemon_logged(&s.daemon, "for what is measured to be faster there"));
  Sinew__V1__Reply *opened;
  kept_file(&s, path);
  assert_string_equal(path, "");
  sn_test_open_with(&s.client, "arm_reach", "adam", 1, &opened);
  sn_test_done(opened);
  kept_file(&s, path);
  assert_true(path[0] != '\0');
  assert_true(sn_test_daemon_logged(&s.daemon, ", where the device is faster: steps: "));
  force_figures(path,
                "steps 1 1 0.5 0 0 0\nsteps 4 0.001 0.5 0 0 0\n"
                "gradients 1 1 0.5 0 0 0\ngradients 4 1 0.5 0 0 0\n"
                "refinements 1 1 0.5 0 0 0\nrefinements 4 0.001 0.5 0 0 0\n");
  expect_plans_on(&s, "adam", "cpu");
  expect_plans_on(&s, "lbfgs", "cpu");
  expect_plans_on(&s, "ilqg", "cpu");
  expect_plans_on(&s, "sampling", "cuda");
  expect_metric(&s, "sinew_device_wins_from{model=\"arm_reach\",what=\"steps\"} 4\n");
  expect_metric(&s, "sinew_device_wins_from{model=\"arm_reach\",what=\"gradients\"} 0\n");
  expect_metric(&s, "sinew_backend_info{backend=\"auto\"} 1\n");
  assert_true(sn_test_daemon_logged(
      &s.daemon, "cpu for arm_reach, which asks for 1 refinements at once: the device is faster from 4"));
  assert_true(sn_test_daemon_logged(
      &s.daemon, "cpu for arm_reach, which asks for 1 gradients at once: the device is faster at no"));
  assert_true(sn_test_daemon_logged(&s.daemon, "cuda for arm_reach, which asks for "));
  force_figures(path, "refinements 1 0.001 0.5 0 0 0\n");
  expect_plans_on(&s, "adam", "cuda");
  expect_plans_on(&s, "sampling", "cpu");
  // What is not as it should be is measured anew.
  force_figures(path, "refinements 1 0.001\n");
  sn_test_open_with(&s.client, "arm_reach", "adam", 1, &opened);
  sn_test_done(opened);
  assert_int_equal(sn_test_daemon_logged_times(&s.daemon, "event=device-measured"), 2);
  sn_test_server_end(&s);
  remove_folder(folder, library);
}

// Without a device auto is the CPU and says why; a device that is named has all sessions, measured or not.
static void test_auto_without_a_device(void **state) {
  (void)state;
  char folder[] = "/tmp/sinew-test-XXXXXX", library[100], where[100];
  make_folder(folder, library, where);
  for (int named = 0; named < 2; named++) {
    SnTestServer s;
    sn_test_server_begin(&s, (const char *const[]){named ? "--backend=cuda" : "--backend=auto",
                                                   named ? where : "--backend-folder=/nonexistent", NULL});
    Sinew__V1__Reply *r = sn_test_health(&s.client);
    assert_int_equal(r->health->state, SINEW__V1__HEALTH__STATE__READY);
    assert_int_equal(r->health->device != NULL, named);
    sn_test_done(r);
    expect_plans_on(&s, "adam", named ? "cuda" : "cpu");
    assert_true(sn_test_daemon_logged(&s.daemon, named ? "as configured; if it is lost" : "as auto chooses: "));
    assert_int_equal(sn_test_daemon_logged_times(&s.daemon, "event=device-measured"), 0);
    sn_test_server_end(&s);
  }
  remove_folder(folder, library);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_backend_that_is_not_there),  cmocka_unit_test(test_auto_by_measurement),
      cmocka_unit_test(test_auto_without_a_device),      cmocka_unit_test(test_hello_and_health),
      cmocka_unit_test(test_plans_are_those_of_the_cpu), cmocka_unit_test(test_sessions_at_once),
      cmocka_unit_test(test_health_while_a_launch_runs), cmocka_unit_test(test_budget),
      cmocka_unit_test(test_plans_take_no_memory),       cmocka_unit_test(test_tuning_storm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
