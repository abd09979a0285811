// sinewd on a device, as a black box: the emulator's library takes the place of a GPU's.
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

#include <cmocka.h>

#include "tests/harness/daemon_group.h"
#include "tests/harness/daemon_tuning.h"

#define DEVICE "emulator_double"
#define FOLDER "--backend-folder=" SN_TEST_LIBRARY_DIR

// A daemon and a client of it.
typedef struct Server {
  SnTestDaemon daemon;
  SnTestClient client;
} Server;

static void begin(Server *s, const char *const *args) {
  *s = (Server){0};
  sn_test_daemon_start(&s->daemon, args);
  sn_test_connect(&s->client, s->daemon.endpoint);
}

static void begin_device(Server *s, const char *fault) {
  char text[64];
  snprintf(text, sizeof text, "--backend-fault=%s", fault);
  begin(s, (const char *const[]){"--backend=" DEVICE, FOLDER, text, NULL});
}

static void end(Server *s) {
  sn_test_disconnect(&s->client);
  assert_int_equal(sn_test_daemon_stop(&s->daemon, SIGTERM), 0);
  sn_test_daemon_remove(&s->daemon);
}

// ---- requests ----

static uint64_t open_arm(SnTestClient *c, char *planner, uint64_t seed, Sinew__V1__Reply **opened) {
  Sinew__V1__PlannerSettings settings = SINEW__V1__PLANNER_SETTINGS__INIT;
  Sinew__V1__OpenRequest open = SINEW__V1__OPEN_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  settings.has_planner_case = SINEW__V1__PLANNER_SETTINGS__HAS_PLANNER_PLANNER;
  settings.planner = planner;
  open.task = "arm_reach";
  open.seed = seed;
  open.planner = &settings;
  request.body_case = SINEW__V1__REQUEST__BODY_OPEN;
  request.open = &open;
  Sinew__V1__Reply *r = sn_test_request(c, &request);
  if (r->body_case == SINEW__V1__REPLY__BODY_ERROR) fail_msg("%s", r->error->text);
  const uint64_t id = r->open->session;
  if (opened)
    *opened = r;
  else
    sn_test_done(r);
  return id;
}

static void send_plan(SnTestClient *c, uint64_t session, Sinew__V1__State *x, uint32_t iterations) {
  Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  plan.session = session;
  plan.state = x;
  plan.want_states = true;
  plan.has_iterations_case = SINEW__V1__PLAN_REQUEST__HAS_ITERATIONS_ITERATIONS;
  plan.iterations = iterations;
  request.body_case = SINEW__V1__REQUEST__BODY_PLAN;
  request.plan = &plan;
  sn_test_send(c, &request);
}

static Sinew__V1__Reply *take_plan(SnTestClient *c) {
  Sinew__V1__Reply *r = sn_test_receive(c, 60);
  assert_non_null(r);
  if (r->body_case == SINEW__V1__REPLY__BODY_ERROR) fail_msg("%s", r->error->text);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_PLAN);
  assert_int_equal(r->plan->status, SINEW__V1__PLAN__STATUS__OK);
  assert_true(r->plan->cost_after <= r->plan->cost_before);
  return r;
}

static Sinew__V1__Reply *plan_arm(SnTestClient *c, uint64_t session, Sinew__V1__State *x, uint32_t iterations) {
  send_plan(c, session, x, iterations);
  return take_plan(c);
}

static Sinew__V1__Reply *health(SnTestClient *c) {
  Sinew__V1__HealthRequest in = SINEW__V1__HEALTH_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_HEALTH;
  request.health = &in;
  Sinew__V1__Reply *r = sn_test_request(c, &request);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_HEALTH);
  return r;
}

// ---- the same plans ----

// A body that moves as its plans say: the state after `row` steps.
static void follow(Sinew__V1__State *x, const Sinew__V1__Plan *plan, size_t row) {
  const Sinew__V1__Trajectory *t = plan->states;
  assert_true(t && t->n_time > row);
  x->time = t->time[row];
  memcpy(x->qpos, t->qpos + row * x->n_qpos, x->n_qpos * sizeof *x->qpos);
  memcpy(x->qvel, t->qvel + row * x->n_qvel, x->n_qvel * sizeof *x->qvel);
  memcpy(x->act, t->act + row * x->n_act, x->n_act * sizeof *x->act);
}

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
static void compare_plans(Server *device, Server *cpu, char *planner) {
  enum { PLANS = 12, ITERATIONS = 3, EXECUTED = 6 };
  Sinew__V1__Reply *opened, *on_cpu;
  const uint64_t a = open_arm(&device->client, planner, 5, &opened), b = open_arm(&cpu->client, planner, 5, &on_cpu);
  Sinew__V1__State *x = opened->open->initial;
  expect_bits(x->qpos, on_cpu->open->initial->qpos, x->n_qpos, "initial qpos", 0);
  double first = 0, last = 0;
  for (int i = 0; i < PLANS; i++) {
    Sinew__V1__Reply *p = plan_arm(&device->client, a, x, ITERATIONS), *q = plan_arm(&cpu->client, b, x, ITERATIONS);
    assert_string_equal(p->plan->backend, DEVICE);
    assert_string_equal(q->plan->backend, "cpu");
    assert_false(p->plan->device_lost || q->plan->device_lost || p->plan->overflow);
    expect_same(p->plan, q->plan, i);
    if (i == 0) first = p->plan->cost_before;
    last = p->plan->cost_after;
    follow(x, p->plan, EXECUTED);
    sn_test_done(p);
    sn_test_done(q);
  }
  print_message("%s: %d plans bit for bit those of the cpu; cost from %g to %g\n", planner, PLANS, first, last);
  assert_true(last < first);
  sn_test_done(opened);
  sn_test_done(on_cpu);
}

static void test_plans_are_those_of_the_cpu(void **state) {
  (void)state;
  Server device, cpu;
  begin_device(&device, "");
  begin(&cpu, (const char *const[]){"--backend=cpu", NULL});
  compare_plans(&device, &cpu, "sampling");
  compare_plans(&device, &cpu, "adam");
  end(&device);
  end(&cpu);
}

// Two sessions of one model with plans under way at the same time get the plans that each gets alone.
static void test_sessions_at_once(void **state) {
  (void)state;
  enum { SESSIONS = 3, ROUNDS = 4, ITERATIONS = 8 };
  Server device, cpu;
  SnTestClient c[SESSIONS];
  uint64_t on_device[SESSIONS], on_cpu[SESSIONS];
  Sinew__V1__Reply *opened[SESSIONS];
  begin_device(&device, "");
  begin(&cpu, (const char *const[]){"--backend=cpu", NULL});
  for (int i = 0; i < SESSIONS; i++) {
    sn_test_connect(&c[i], device.daemon.endpoint);
    on_device[i] = open_arm(&c[i], "adam", 10 + (uint64_t)i, &opened[i]);
    on_cpu[i] = open_arm(&cpu.client, "adam", 10 + (uint64_t)i, NULL);
  }
  for (int k = 0; k < ROUNDS; k++) {
    for (int i = 0; i < SESSIONS; i++) send_plan(&c[i], on_device[i], opened[i]->open->initial, ITERATIONS);
    for (int i = 0; i < SESSIONS; i++) {
      Sinew__V1__Reply *p = take_plan(&c[i]),
                       *q = plan_arm(&cpu.client, on_cpu[i], opened[i]->open->initial, ITERATIONS);
      expect_same(p->plan, q->plan, k);
      follow(opened[i]->open->initial, p->plan, 4);
      sn_test_done(p);
      sn_test_done(q);
    }
  }
  for (int i = 0; i < SESSIONS; i++) {
    sn_test_done(opened[i]);
    sn_test_disconnect(&c[i]);
  }
  end(&device);
  end(&cpu);
}

// ---- what the daemon says of its device ----

static void test_hello_and_health(void **state) {
  (void)state;
  Server s;
  begin_device(&s, "");
  Sinew__V1__HelloRequest in = SINEW__V1__HELLO_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  in.protocol = 1;
  request.body_case = SINEW__V1__REQUEST__BODY_HELLO;
  request.hello = &in;
  Sinew__V1__Reply *r = sn_test_request(&s.client, &request);
  assert_int_equal(r->hello->n_backends, 2);
  assert_string_equal(r->hello->backends[0], DEVICE);
  assert_string_equal(r->hello->backends[1], "cpu");
  sn_test_done(r);
  r = health(&s.client);
  assert_int_equal(r->health->state, SINEW__V1__HEALTH__STATE__READY);
  assert_non_null(r->health->device);
  assert_string_equal(r->health->device->backend, DEVICE);
  assert_true(strlen(r->health->device->text) > 0 && !r->health->device->lost);
  const uint64_t empty = r->health->device->memory_used;
  sn_test_done(r);

  // A task is described without room on the device; sessions take some, and give it back.
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
  const uint64_t id = open_arm(&s.client, "adam", 1, NULL);
  r = sn_test_statistics(&s.client, 0);
  assert_true(r->statistics->sessions_on_device == 1 && r->statistics->sessions_on_cpu == 0);
  assert_string_equal(r->statistics->sessions[0]->backend, DEVICE);
  assert_true(r->statistics->device->memory_used > empty && r->statistics->device->memory_total > 0);
  print_message("%s; a session of arm_reach takes %.1f MB\n", r->statistics->device->text,
                1e-6 * (double)(r->statistics->device->memory_used - empty));
  sn_test_done(r);
  Sinew__V1__CloseRequest close = SINEW__V1__CLOSE_REQUEST__INIT;
  close.session = id;
  request.body_case = SINEW__V1__REQUEST__BODY_CLOSE;
  request.close = &close;
  sn_test_done(sn_test_request(&s.client, &request));
  end(&s);
}

// ---- a lost device ----

static int count_in_log(const SnTestDaemon *d, const char *word) {
  char line[5000];
  int n = 0;
  FILE *f = fopen(d->log, "r");
  assert_non_null(f);
  while (fgets(line, sizeof line, f)) n += strstr(line, word) != NULL;
  fclose(f);
  return n;
}

static void expect_degraded(Server *s, unsigned sessions) {
  Sinew__V1__Reply *r = health(&s->client);
  assert_int_equal(r->health->state, SINEW__V1__HEALTH__STATE__DEGRADED);
  assert_non_null(strstr(r->health->text, "on the CPU"));
  assert_true(r->health->device->lost && strlen(r->health->device->reason) > 0 && r->health->device->lost_for >= 0);
  assert_non_null(strstr(r->health->text, r->health->device->reason));
  sn_test_done(r);
  r = sn_test_statistics(&s->client, 0);
  assert_true(r->statistics->device->lost && r->statistics->device->lost_for > 0);
  assert_true(r->statistics->sessions_on_device == 0 && r->statistics->sessions_on_cpu == sessions);
  for (unsigned i = 0; i < sessions; i++) assert_string_equal(r->statistics->sessions[i]->backend, "cpu");
  sn_test_done(r);
}

// Exit status of `sinewctl health`.
static int check_health(const Server *s) {
  char command[400];
  snprintf(command, sizeof command, "%s/sinewctl --endpoint %s health >/dev/null", sn_test_binary_folder(),
           s->daemon.endpoint);
  const int status = system(command);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Sessions go on on the CPU, new ones are opened there, and everybody is told. at_once: the device never made a plan.
static void lose_device(char *planner, const char *fault, bool at_once) {
  enum { PLANS = 400, AFTER = 4, SESSIONS = 2 };
  Server s;
  uint64_t id[SESSIONS];
  Sinew__V1__Reply *opened[SESSIONS], *r;
  begin_device(&s, fault);
  for (int i = 0; i < SESSIONS; i++) id[i] = open_arm(&s.client, planner, 1 + (uint64_t)i, &opened[i]);
  assert_int_equal(check_health(&s), 0);
  int before = 0, after = 0;
  for (int k = 0; k < PLANS && after < AFTER; k++) {
    for (int i = 0; i < SESSIONS; i++) {
      r = plan_arm(&s.client, id[i], opened[i]->open->initial, 3);
      if (!r->plan->device_lost) {
        assert_string_equal(r->plan->backend, DEVICE);
        assert_int_equal(after, 0);
        before++;
      } else {
        assert_string_equal(r->plan->backend, "cpu");
        assert_int_equal(r->plan->iterations, 3);
        after++;
      }
      follow(opened[i]->open->initial, r->plan, 4);
      sn_test_done(r);
    }
  }
  print_message("%s, %s: %d plans on the device, then %d on the cpu\n", planner, fault, before, after);
  assert_true((before == 0) == at_once && after >= AFTER);
  expect_degraded(&s, SESSIONS);
  assert_int_equal(check_health(&s), 2);
  assert_int_equal(count_in_log(&s.daemon, "device-lost"), 1);

  // Opened, and reset to another seed, after the loss.
  Sinew__V1__Reply *late;
  const uint64_t other = open_arm(&s.client, planner, 9, &late);
  r = plan_arm(&s.client, other, late->open->initial, 2);
  assert_string_equal(r->plan->backend, "cpu");
  assert_true(r->plan->device_lost);
  sn_test_done(r);
  Sinew__V1__ResetRequest reset = SINEW__V1__RESET_REQUEST__INIT;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  reset.session = id[0];
  reset.has_seed_case = SINEW__V1__RESET_REQUEST__HAS_SEED_SEED;
  reset.seed = 12;
  request.body_case = SINEW__V1__REQUEST__BODY_RESET;
  request.reset = &reset;
  r = sn_test_request(&s.client, &request);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_RESET);
  sn_test_done(plan_arm(&s.client, id[0], r->reset->initial, 2));
  sn_test_done(r);
  expect_degraded(&s, SESSIONS + 1);
  assert_int_equal(count_in_log(&s.daemon, "device-lost"), 1);
  sn_test_done(late);
  for (int i = 0; i < SESSIONS; i++) sn_test_done(opened[i]);
  end(&s);
}

static void test_loss_while_adam_refines(void **state) {
  (void)state;
  static const char *const fault[] = {"launch:30", "launch:31", "launch:40"};
  lose_device("adam", "launch:1", true);
  for (int i = 0; i < 3; i++) lose_device("adam", fault[i], false);
}

static void test_loss_while_sampling(void **state) {
  (void)state;
  lose_device("sampling", "launch:1", true);
  lose_device("sampling", "launch:1000", false);
}

// A daemon that shall end with its device does so after the plans under way are answered, and its successor has it
// back.
static void test_loss_ends_the_daemon(void **state) {
  (void)state;
  Server s;
  Sinew__V1__Reply *opened, *r;
  begin(&s,
        (const char *const[]){"--backend=" DEVICE, FOLDER, "--backend-fault=launch:100", "--device-loss=exit", NULL});
  const uint64_t id = open_arm(&s.client, "sampling", 1, &opened);
  bool lost = false;
  for (int k = 0; k < 100 && !lost; k++) {
    send_plan(&s.client, id, opened->open->initial, 3);
    r = sn_test_receive(&s.client, 60);
    assert_non_null(r);
    lost = r->body_case == SINEW__V1__REPLY__BODY_ERROR || r->plan->device_lost;
    if (r->body_case == SINEW__V1__REPLY__BODY_ERROR)
      assert_int_equal(r->error->code, SINEW__V1__ERROR__CODE__SHUTTING_DOWN);
    sn_test_done(r);
  }
  assert_true(lost);
  assert_int_equal(sn_test_daemon_wait(&s.daemon), 1);
  assert_true(sn_test_daemon_logged(&s.daemon, "device_loss is 'exit'"));
  sn_test_disconnect(&s.client);
  sn_test_daemon_remove(&s.daemon);
  begin(&s, (const char *const[]){"--backend=" DEVICE, FOLDER, "--device-loss=exit", NULL});
  r = health(&s.client);
  assert_int_equal(r->health->state, SINEW__V1__HEALTH__STATE__READY);
  assert_false(r->health->device->lost);
  sn_test_done(r);
  sn_test_done(opened);
  end(&s);
}

// ---- memory ----

// What does not fit is refused with the figures, and the session that is there goes on as if nothing had been.
static void test_budget(void **state) {
  (void)state;
  Server s, cpu;
  Sinew__V1__Reply *opened, *r;
  begin(&s, (const char *const[]){"--backend=" DEVICE, FOLDER, "--device-megabytes=24", NULL});
  begin(&cpu, (const char *const[]){"--backend=cpu", NULL});
  const uint64_t id = open_arm(&s.client, "adam", 1, &opened), same = open_arm(&cpu.client, "adam", 1, NULL);
  r = health(&s.client);
  assert_int_equal(r->health->device->memory_budget, 24 << 20);
  const uint64_t used = r->health->device->memory_used;
  assert_true(used > 0 && used <= 24 << 20);
  sn_test_done(r);

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
  r = sn_test_request(&s.client, &request);
  assert_int_equal(r->body_case, SINEW__V1__REPLY__BODY_ERROR);
  print_message("refused: %s\n", r->error->text);
  sn_test_expect_error(r, SINEW__V1__ERROR__CODE__LIMIT, "MB");

  r = sn_test_statistics(&s.client, 0);
  assert_int_equal(r->statistics->sessions_on_device, 1);
  assert_true(r->statistics->device->memory_used == used);
  sn_test_done(r);
  for (int i = 0; i < 3; i++) {
    Sinew__V1__Reply *p = plan_arm(&s.client, id, opened->open->initial, 4),
                     *q = plan_arm(&cpu.client, same, opened->open->initial, 4);
    assert_string_equal(p->plan->backend, DEVICE);
    expect_same(p->plan, q->plan, i);
    follow(opened->open->initial, p->plan, 4);
    sn_test_done(p);
    sn_test_done(q);
  }
  sn_test_done(opened);
  end(&s);
  end(&cpu);
}

static void test_tuning_storm(void **state) {
  (void)state;
  Server s;
  begin_device(&s, "");
  sn_test_tuning_storm(&s.client, 100);
  end(&s);
}

// ---- configuration ----

static void expect_no_start(const char *const *args, const char *word) {
  SnTestDaemon d = {0};
  sn_test_daemon_prepare(&d);
  sn_test_daemon_spawn(&d, args);
  assert_int_equal(sn_test_daemon_wait(&d), 1);
  if (!sn_test_daemon_logged(&d, word)) fail_msg("the log does not say '%s'", word);
  assert_false(sn_test_daemon_logged(&d, "ready:"));
  sn_test_daemon_remove(&d);
}

static void test_backend_that_is_not_there(void **state) {
  (void)state;
  expect_no_start((const char *const[]){"--backend=cuda", "--backend-folder=/nonexistent", NULL},
                  "backend is 'cuda', which cannot be opened");
  expect_no_start((const char *const[]){"--backend=abacus", NULL}, "backend is 'abacus', which cannot be opened");
  Server s;
  begin(&s, (const char *const[]){"--backend=auto", "--backend-folder=/nonexistent", NULL});
  assert_true(sn_test_daemon_logged(&s.daemon, "because cuda cannot be used"));
  Sinew__V1__Reply *r = health(&s.client);
  assert_int_equal(r->health->state, SINEW__V1__HEALTH__STATE__READY);
  assert_null(r->health->device);
  sn_test_done(r);
  r = sn_test_statistics(&s.client, 0);
  assert_null(r->statistics->device);
  sn_test_done(r);
  end(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_backend_that_is_not_there),
      cmocka_unit_test(test_hello_and_health),
      cmocka_unit_test(test_plans_are_those_of_the_cpu),
      cmocka_unit_test(test_sessions_at_once),
      cmocka_unit_test(test_loss_while_adam_refines),
      cmocka_unit_test(test_loss_while_sampling),
      cmocka_unit_test(test_loss_ends_the_daemon),
      cmocka_unit_test(test_budget),
      cmocka_unit_test(test_tuning_storm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
