// What sinewd says of the terms of a task: what they look at, and their targets along predicted states.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/daemon_group.h"
#include "tests/support/daemon_tuning.h"

// One of each: a free, a ball, a slide and a hinge joint, a muscle, a motor, a sensor.
static const char *const model =
    "<mujoco><option timestep='0.01'/><worldbody><site name='mark' pos='1 2 3'/>"
    "<body name='cube' pos='0 0 1'><freejoint name='float'/><geom name='shell' size='0.1'/></body>"
    "<body name='arm'><joint name='shoulder' type='ball' damping='1'/><geom size='0.1'/><site name='tip' pos='0 0 1'/>"
    "<body name='hand' pos='0 0 1'><joint name='wrist' axis='0 1 0' damping='1'/><geom size='0.1'/></body></body>"
    "<body name='cart'><joint name='rail' type='slide' damping='1'/><geom size='0.1'/></body></worldbody>"
    "<tendon><spatial name='cord'><site site='mark'/><site site='tip'/></spatial></tendon>"
    "<actuator><motor name='push' joint='rail' ctrlrange='-1 1' ctrllimited='true'/>"
    "<muscle name='pull' tendon='cord' lengthrange='1 5'/></actuator>"
    "<sensor><framepos name='where' objtype='site' objname='tip'/></sensor></mujoco>";

static const char *const task =
    "model: terms.xml\n"
    "plant: {solref: [0.03, 1], solimp: [0.1, 0.9, 0.002, 0.5, 2]}\n"
    "settings: {planner: sampling, horizon: 10, candidates: 4, knots: 4, iterations: 1}\n"
    "terms:\n"
    "  - {name: follow, residual: {position: {site: tip}}, target: {position: {body: hand}}, norm: smooth_abs, width: "
    "0.2, weight: 1}\n"
    "  - {name: start, residual: {orientation: {geom: shell}}, target: {orientation: {body: cube}, at: start, frame: "
    "arm}, weight: 2, terminal: 3}\n"
    "  - {name: keys, residual: {distance: [{site: tip}, {geom: shell}]}, target: {keyframes: {times: [0, 0.05], "
    "values: [1, 2], interpolation: zero}}, weight: 1}\n"
    "  - {name: posture, residual: {joint_position: all}, target: {value: [1, 0, 0, 0, 0.5, 0.25]}, weight: 1}\n"
    "  - {name: some, residual: {joint_velocity: [wrist, float]}, weight: 1}\n"
    "  - {name: muscles, residual: {activation: all}, weight: 1}\n"
    "  - {name: effort, residual: {control: all}, weight: 1}\n"
    "  - {name: jerk, residual: {control_rate: [pull]}, weight: 1}\n"
    "  - {name: length, residual: {tendon_length: cord}, target: 2, weight: 1}\n"
    "  - {name: sensed, residual: {sensor: where}, weight: 1}\n"
    "  - {name: run, residual: {velocity: {body: cube}, axis: [z, x]}, weight: 1, side: below, weights: [2, 3]}\n"
    "  - {name: middle, residual: {position: {bodies: [arm, hand, cube]}}, weight: 1, gate: {residual: {position: "
    "{site: tip}, axis: z}, target: 1, below: 0.5, width: 0.25}}\n"
    "  - {name: spin, residual: {angular_velocity: {site: tip}}, weight: 1, gate: {residual: {joint_velocity: [rail, "
    "wrist]}, norm: euclidean}}\n";

// A row of what the description of a term must say.
typedef struct Expected {
  const char *quantity, *objects, *norm, *kind, *target_objects, *frame, *unit;
  double width;
  bool follows;
  const char *axis;
} Expected;

static const Expected expected[] = {
    {"position", "site tip;", "smooth_abs", "element", "body hand;", "", "m", 0.2, true, ""},
    {"orientation", "geom shell;", "squared", "element", "body cube;", "arm", "quaternion", 0, false, ""},
    {"distance", "site tip;geom shell;", "squared", "keyframes", "", "", "m", 0, false, ""},
    {"joint_position", "joint shoulder;joint wrist;joint rail;", "squared", "value", "", "", "quaternion, rad, m", 0, 0,
     ""},
    {"joint_velocity", "joint wrist;joint float;", "squared", "value", "", "", "rad/s, m/s", 0, false, ""},
    {"activation", "actuator pull;", "squared", "value", "", "", "1", 0, false, ""},
    {"control", "actuator push;actuator pull;", "squared", "value", "", "", "1", 0, false, ""},
    {"control_rate", "actuator pull;", "squared", "value", "", "", "1/s", 0, false, ""},
    {"tendon_length", "tendon cord;", "squared", "value", "", "", "m", 0, false, ""},
    {"sensor", "sensor where;", "squared", "value", "", "", "", 0, false, ""},
    {"velocity", "body cube;", "squared", "value", "", "", "m/s", 0, false, "zx"},
    {"position", "body arm;body hand;body cube;", "squared", "value", "", "", "m", 0, false, ""},
    {"angular_velocity", "site tip;", "squared", "value", "", "", "rad/s", 0, false, ""}};

static void expect_objects(Sinew__V1__ObjectName **list, size_t n, const char *names) {
  char text[200] = "";
  for (size_t i = 0; i < n; i++) {
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s %s;", list[i]->kind, list[i]->name);
  }
  assert_string_equal(text, names);
}

static void expect_gate(const Sinew__V1__TermDescription *t) {
  const Sinew__V1__GateDescription *g = t->gate;
  const bool below = strcmp(t->name, "middle") == 0;
  assert_true((g != NULL) == (below || strcmp(t->name, "spin") == 0));
  if (!g) return;
  assert_string_equal(g->quantity, below ? "position" : "joint_velocity");
  expect_objects(g->objects, g->n_objects, below ? "site tip;" : "joint rail;joint wrist;");
  assert_string_equal(g->axis, below ? "z" : "");
  assert_string_equal(g->norm, below ? "" : "euclidean");
  assert_string_equal(g->side, below ? "below" : "");
  assert_true(g->value == (below ? 0.5 : 0) && g->width == (below ? 0.25 : 0));
  assert_string_equal(g->unit, below ? "m" : "m/s, rad/s");
  assert_string_equal(g->target_kind, below ? "value" : "");
}

static void test_descriptions(void **state) {
  (void)state;
  Sinew__V1__DescribeTaskRequest describe = SINEW__V1__DESCRIBE_TASK_REQUEST__INIT;
  describe.task = "terms";
  Sinew__V1__Reply *r = SN_TEST_REPLY(describe_task, DESCRIBE_TASK, &describe);
  const Sinew__V1__TaskDescription *d = r->describe_task;
  assert_int_equal(d->n_terms, sizeof expected / sizeof *expected);
  for (size_t i = 0; i < d->n_terms; i++) {
    const Sinew__V1__TermDescription *t = d->terms[i];
    const Expected *e = &expected[i];
    assert_string_equal(t->quantity, e->quantity);
    expect_objects(t->objects, t->n_objects, e->objects);
    assert_string_equal(t->norm, e->norm);
    assert_true(t->width == e->width && t->target_follows == e->follows);
    assert_string_equal(t->target_kind, e->kind);
    expect_objects(t->target_objects, t->n_target_objects, e->target_objects);
    assert_string_equal(t->frame, e->frame);
    assert_string_equal(t->unit, e->unit);
    assert_string_equal(t->axis, e->axis);
    const bool run = strcmp(t->name, "run") == 0;
    assert_string_equal(t->side, run ? "below" : "both");
    expect_gate(t);
    assert_true(run ? t->n_weights == 2 && t->weights[0] == 2 && t->weights[1] == 3 : t->n_weights == 0);
  }
  const double solref[] = {0.03, 1}, solimp[] = {0.1, 0.9, 0.002, 0.5, 2};
  assert_true(d->plant->n_solref == 2 && d->plant->n_solimp == 5);
  assert_memory_equal(d->plant->solref, solref, sizeof solref);
  assert_memory_equal(d->plant->solimp, solimp, sizeof solimp);
  sn_test_done(r);
  describe.task = "arm_reach";
  r = SN_TEST_REPLY(describe_task, DESCRIBE_TASK, &describe);
  assert_true(r->describe_task->plant->n_solref == 0 && r->describe_task->plant->n_solimp == 0);
  sn_test_done(r);
}

// Finds the targets of a term; NULL: there are none.
static const Sinew__V1__TermTarget *find_target(const Sinew__V1__Trajectory *states, const char *term) {
  for (size_t i = 0; i < states->n_targets; i++)
    if (!strcmp(states->targets[i]->name, term)) {
      assert_int_equal(states->targets[i]->n_target, states->n_time * states->targets[i]->size);
      return states->targets[i];
    }
  return NULL;
}

// The ellipse of planner/tasks/arm_reach.yaml.
static void expect_ellipse(const Sinew__V1__Trajectory *states) {
  const Sinew__V1__TermTarget *t = find_target(states, "reach");
  assert_non_null(t);
  assert_int_equal(t->size, 3);
  for (size_t i = 0; i < states->n_time; i++) {
    const double angle = 2 * 3.14159265358979323846 * states->time[i] / 4;
    const double *x = t->target + 3 * i;
    assert_true(fabs(x[0] - (0.45 + 0.08 * sin(angle))) < 1e-6 && x[1] == 0);
    assert_true(fabs(x[2] - (1.35 + 0.10 * sin(angle + 1.5708))) < 1e-6);
  }
}

// Asks for a plan with states, of a state at that time [s].
static Sinew__V1__Reply *plan_with_states(uint64_t session, const Sinew__V1__State *initial, double time) {
  Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
  Sinew__V1__State at = *initial;
  at.time = time;
  plan.session = session;
  plan.state = &at;
  plan.want_states = true;
  plan.has_iterations_case = SINEW__V1__PLAN_REQUEST__HAS_ITERATIONS_ITERATIONS;
  plan.iterations = 2;
  Sinew__V1__Reply *r = SN_TEST_REPLY(plan, PLAN, &plan);
  assert_non_null(r->plan->states);
  assert_int_equal(r->plan->states->n_time, r->plan->steps + 1);
  return r;
}

static Sinew__V1__Reply *evaluate_with_states(uint64_t session, const Sinew__V1__Plan *plan, Sinew__V1__State *from) {
  Sinew__V1__EvaluateRequest in = SINEW__V1__EVALUATE_REQUEST__INIT;
  in.session = session;
  in.state = from;
  in.ctrl = plan->ctrl;
  in.n_ctrl = plan->n_ctrl;
  in.want_states = true;
  Sinew__V1__Reply *r = SN_TEST_REPLY(evaluate, EVALUATE, &in);
  assert_non_null(r->evaluate->states);
  return r;
}

static void set_latency(uint64_t session, double latency) {
  SnTestChange c;
  sn_test_change_begin(&c, session);
  c.session.has_latency_case = SINEW__V1__SESSION_SETTINGS__HAS_LATENCY_LATENCY;
  c.session.latency = latency;
  sn_test_done(SN_TEST_REPLY(set_config, SET_CONFIG, &c.in));
}

// Targets that move with the time, through the lead and to the last row; then one that is set live, and the task's own
// again.
static void test_targets_of_plans(void **state) {
  (void)state;
  Sinew__V1__Reply *opened, *r, *e;
  const uint64_t session = sn_test_open(&client, "arm_reach", 3, &opened);
  const Sinew__V1__State *initial = opened->open->initial;
  set_latency(session, 0.02);
  r = plan_with_states(session, initial, 0.7);
  assert_int_equal(r->plan->lead, 4);
  expect_ellipse(r->plan->states);
  Sinew__V1__State at = *initial;
  at.time = 0.7;
  e = evaluate_with_states(session, r->plan, &at);
  expect_ellipse(e->evaluate->states);
  sn_test_done(e);
  sn_test_done(r);

  SnTestChange c;
  sn_test_change_begin(&c, session);
  sn_test_change_target(&c, 0, 3, 0.625);
  c.term[0].name = "reach";
  c.in.n_terms = 1;
  sn_test_done(SN_TEST_REPLY(set_config, SET_CONFIG, &c.in));
  r = plan_with_states(session, initial, 0.9);
  e = evaluate_with_states(session, r->plan, &at);
  const Sinew__V1__TermTarget *given[] = {find_target(r->plan->states, "reach"),
                                          find_target(e->evaluate->states, "reach")};
  for (size_t k = 0; k < 2; k++)
    for (size_t i = 0; i < given[k]->n_target; i++) assert_true(given[k]->target[i] == 0.625);
  sn_test_done(e);
  sn_test_done(r);

  sn_test_change_begin(&c, session);
  c.term[0].name = "reach";
  c.in.n_terms = 1;
  c.term[0].has_own_target_case = SINEW__V1__TERM_SETTINGS__HAS_OWN_TARGET_OWN_TARGET;
  c.term[0].own_target = true;
  sn_test_done(SN_TEST_REPLY(set_config, SET_CONFIG, &c.in));
  r = plan_with_states(session, initial, 1.1);
  expect_ellipse(r->plan->states);
  sn_test_done(r);
  sn_test_done(opened);
}

// One that follows an element has none until it is given one; keyframes step at a row.
static void test_targets_of_kinds(void **state) {
  (void)state;
  Sinew__V1__Reply *opened;
  const uint64_t session = sn_test_open(&client, "terms", 0, &opened);
  Sinew__V1__Reply *r = plan_with_states(session, opened->open->initial, 0);
  const Sinew__V1__Trajectory *states = r->plan->states;
  assert_int_equal(states->n_targets, sizeof expected / sizeof *expected - 1);
  assert_null(find_target(states, "follow"));
  const Sinew__V1__TermTarget *keys = find_target(states, "keys"), *posture = find_target(states, "posture");
  for (size_t i = 0; i < keys->n_target; i++) assert_true(keys->target[i] == (states->time[i] < 0.05 ? 1 : 2));
  const double wanted[] = {1, 0, 0, 0, 0.5, 0.25}, identity[] = {1, 0, 0, 0};
  assert_int_equal(posture->size, 6);
  const Sinew__V1__TermTarget *start = find_target(states, "start");
  for (size_t i = 0; i < states->n_time; i++) {
    assert_memory_equal(posture->target + 6 * i, wanted, sizeof wanted);
    assert_memory_equal(start->target + 4 * i, identity, sizeof identity);  // both bodies start upright
  }
  sn_test_done(r);

  SnTestChange c;
  sn_test_change_begin(&c, session);
  sn_test_change_target(&c, 0, 3, 1.5);
  c.term[0].name = "follow";
  c.in.n_terms = 1;
  sn_test_done(SN_TEST_REPLY(set_config, SET_CONFIG, &c.in));
  r = plan_with_states(session, opened->open->initial, 0);
  const Sinew__V1__TermTarget *follow = find_target(r->plan->states, "follow");
  assert_non_null(follow);
  for (size_t i = 0; i < follow->n_target; i++) assert_true(follow->target[i] == 1.5);
  sn_test_done(r);
  sn_test_done(opened);
}

// ---- continuous mode ----

enum { ROWS = 48, KEPT = 64 };

// A plan of the stream as it came.
typedef struct Streamed {
  double time, ctrl[ROWS * 6], qpos[(ROWS + 1) * 2];
} Streamed;

static Streamed kept[KEPT];
static int nkept;

static void keep(const Sinew__V1__Plan *plan) {
  assert_non_null(plan->states);
  assert_int_equal(plan->steps, ROWS);
  assert_int_equal(plan->states->n_qpos, (ROWS + 1) * 2);
  expect_ellipse(plan->states);
  if (nkept == KEPT) return;
  Streamed *k = &kept[nkept++];
  k->time = plan->state_time;
  memcpy(k->ctrl, plan->ctrl, sizeof k->ctrl);
  memcpy(k->qpos, plan->states->qpos, sizeof k->qpos);
}

static void want_states(SnTestStream *s, bool want) {
  Sinew__V1__StreamRequest in = SINEW__V1__STREAM_REQUEST__INIT;
  in.session = s->session;
  in.lease = 30;
  in.want_states = want;
  Sinew__V1__Reply *r = sn_test_stream_ask(s, SN_TEST_MESSAGE(stream, STREAM, &in));
  assert_int_equal(r->stream->end, SINEW__V1__STREAM_REPLY__END__RUNNING);
  s->before = s->id;
  s->id = s->c->id;
  sn_test_done(r);
}

static void expect_no_states(const Sinew__V1__Plan *plan) { assert_null(plan->states); }

// Every plan of a stream has its own states, better ones for the same state too, as an evaluation of its controls has
// them; until they are not wanted any more.
static void stream_has_states(char *planner) {
  Sinew__V1__Reply *opened;
  Sinew__V1__PlannerSettings *settings = sn_test_sampling();
  settings->planner = planner;
  SnTestStream s = {.c = &client, .session = sn_test_open_by(&client, "arm_reach", 1, settings, &opened)};
  Sinew__V1__State x = *opened->open->initial;
  s = sn_test_stream_start(&client, s.session, 30, 1);
  want_states(&s, true);
  s.check = keep;
  nkept = 0;
  for (int i = 1; i <= 5; i++) {
    x.time = 0.02 * i;
    sn_test_stream_state(&s, &x, (int64_t)s.sequence);
    sn_test_stream_await(&s, x.time);
  }
  for (double until = sn_clock_now() + 60; s.improved == 0;) {
    assert_true(sn_clock_now() < until);
    assert_null(sn_test_stream_read(&s, 0.05));
  }
  want_states(&s, false);
  // States of plans that were begun before still come; those of the next state's do not.
  s.check = NULL;
  x.time = 1;
  sn_test_stream_state(&s, &x, (int64_t)s.sequence);
  sn_test_stream_await(&s, 1);
  s.check = expect_no_states;
  assert_null(sn_test_stream_read(&s, 0.1));
  sn_test_stream_request(&s, true, 0, 0);
  sn_test_stream_end(&s, SINEW__V1__STREAM_REPLY__END__STOPPED, 10);
  assert_true(nkept > 5);
  for (int i = 0; i < nkept; i++) {
    const Sinew__V1__Plan plan = {.ctrl = kept[i].ctrl, .n_ctrl = ROWS * 6};
    x.time = kept[i].time;
    Sinew__V1__Reply *e = evaluate_with_states(s.session, &plan, &x);
    assert_memory_equal(e->evaluate->states->qpos, kept[i].qpos, sizeof kept[i].qpos);
    sn_test_done(e);
  }
  sn_test_done(opened);
}

static void test_stream_of_sampling(void **state) {
  (void)state;
  stream_has_states("sampling");
}

static void test_stream_of_adam(void **state) {
  (void)state;
  stream_has_states("adam");
}

static int setup(void **state) {
  sn_test_daemon_prepare(&sinewd);
  sn_test_daemon_write(&sinewd, "models/terms.xml", model);
  sn_test_daemon_write(&sinewd, "tasks/terms.yaml", task);
  return sn_test_group_setup(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_descriptions), cmocka_unit_test(test_targets_of_plans),
                                     cmocka_unit_test(test_targets_of_kinds), cmocka_unit_test(test_stream_of_sampling),
                                     cmocka_unit_test(test_stream_of_adam)};
  return cmocka_run_group_tests(tests, setup, sn_test_group_teardown);
}
