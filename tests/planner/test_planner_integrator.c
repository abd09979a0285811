// Planners whose rollouts move by chosen steps: their gradients are derivatives of their costs, without and with
// contacts; they find what small steps of the model find; costs see the accelerations of the motion, whatever the
// model's integrator; any number of threads and any pauses give the same bits; nothing is allocated while a plan is
// made; what is refused.
#include <stdio.h>
#include <stdlib.h>

#include "planner/backend/backend_impl.h"
#include "tests/planner/counting_clock.h"
#include "tests/planner/plans.h"
#include "tests/support/allocations.h"
#include "tests/support/slow.h"

// A ball joint and a hinge, without anything that is not smooth.
static const char *const arm_xml =
    "<mujoco><compiler angle='radian'/><option timestep='0.01'/><worldbody>"
    "<body name='upper'><joint name='shoulder' type='ball' damping='.1'/>"
    "<geom type='capsule' fromto='0 0 0 0 0 -.3' size='.03' contype='0' conaffinity='0'/>"
    "<body name='lower' pos='0 0 -.3'><joint name='elbow' axis='0 1 0' damping='.1'/>"
    "<geom type='capsule' fromto='0 0 0 .1 0 -.3' size='.02' contype='0' conaffinity='0'/>"
    "<site name='tip' pos='.1 0 -.3'/></body></body></worldbody>"
    "<actuator><motor joint='shoulder' gear='1 0 0' ctrlrange='-2 2' ctrllimited='true'/>"
    "<motor joint='shoulder' gear='0 .5 1' ctrlrange='-2 2' ctrllimited='true'/>"
    "<motor joint='elbow' ctrlrange='-1 1' ctrllimited='true'/></actuator></mujoco>";

// Two muscles on tendons, and limits that are met.
static const char *const muscle_xml =
    "<mujoco><compiler angle='radian'/><option timestep='0.01'/><worldbody>"
    "<body name='upper'><joint name='shoulder' axis='0 1 0' range='-.4 .25' limited='true' solreflimit='.03 1' "
    "solimplimit='0 .95 .01' damping='.1'/>"
    "<geom type='capsule' fromto='0 0 0 0 0 -.3' size='.03'/><site name='anchor' pos='.04 0 -.1'/>"
    "<body name='lower' pos='0 0 -.3'><joint name='elbow' axis='0 1 0' damping='.1'/>"
    "<geom type='capsule' fromto='0 0 0 0 0 -.3' size='.02'/><site name='tip' pos='0 0 -.3'/><site name='pull' "
    "pos='.03 0 -.1'/></body></body><site name='base' pos='.05 0 .1'/></worldbody>"
    "<tendon><spatial name='flexor'><site site='anchor'/><site site='pull'/></spatial>"
    "<spatial name='lifter'><site site='base'/><site site='anchor'/></spatial></tendon>"
    "<actuator><motor joint='shoulder' ctrlrange='-3 3' ctrllimited='true'/>"
    "<muscle tendon='flexor' lengthrange='.1 .4' force='60'/>"
    "<muscle tendon='lifter' lengthrange='.1 .4' force='40'/></actuator>"
    "<sensor><accelerometer name='felt' site='tip'/></sensor></mujoco>";

// The tossed cube of physics/models/cube_toss.xml, which forces push on its way.
static const char *const cube_xml =
    "<mujoco><option gravity='0 0 -2' timestep='0.01' cone='pyramidal'><flag refsafe='disable'/></option>"
    "<default><geom solimp='0 0.95 0.001 0.5 2' solref='0.005 1'/></default><worldbody>"
    "<geom type='plane' size='20 20 .1'/><body name='cube' pos='0 0 .1'><freejoint name='free'/>"
    "<geom type='box' size='.05 .05 .05' density='100' euler='60 0 0'/><site name='tip' pos='.05 .05 .05'/></body>"
    "</worldbody><actuator><motor joint='free' gear='0 1 0 0 0 0' ctrlrange='-1 1' ctrllimited='true'/>"
    "<motor joint='free' gear='0 0 1 0 0 0' ctrlrange='-1 1' ctrllimited='true'/></actuator></mujoco>";

static const char *const task_text =
    "model: body.xml\n"
    "options: {timestep: %g%s}\n"
    "settings: {horizon: %d, integrator: %s, rtol: %g, atol: %g, planner: adam, adam_iterations: 4, "
    "candidates: 6, iterations: 2, knots: 4}\n"
    "terms:\n"
    "  - {name: reach, residual: {position: {site: tip}}, target: [0.1, 0.05, 0.2], weight: 1, terminal: 2}\n"
    "  - {name: speed, residual: {joint_velocity: all}, weight: 0.01}\n"
    "  - {name: effort, residual: {control: all}, weight: 0.01}\n"
    "  - {name: rate, residual: {control_rate: all}, weight: 0.0001}\n"
    "%s";

enum { MOST = 2500 };

// A planner of one of the bodies.
typedef struct Fixture {
  SnOracle o;
  SnTask *task;
  SnPool *pool;
  SnBackend *cpu;
  SnPlanner *p;
  CountingClock count;
  sn_real qpos[16], qvel[16], act[16], ctrl[MOST];
  int nstep;
} Fixture;

// How one is opened.
typedef struct Opening {
  const char *xml, *integrator, *options, *term;  // options and term: more of the task, or NULL
  int horizon, threads;
  double tolerance, timestep;  // [s]; 0: 10 ms
  bool counting;
  void (*change)(SnSettings *s, SnBackend *b);
} Opening;

static SnPlanner *create(Fixture *x, const Opening *o, SnError *err) {
  char text[2000];
  sn_oracle_load_string(&x->o, o->xml);
  snprintf(text, sizeof text, task_text, o->timestep > 0 ? o->timestep : 0.01, o->options ? o->options : "", o->horizon,
           o->integrator, o->tolerance, o->tolerance, o->term ? o->term : "");
  if (!(x->task = sn_task_parse(text, strlen(text), "body.yaml", err))) fail_msg("%s", err->text);
  x->pool = sn_pool_create(o->threads ? o->threads : 1, err);
  x->cpu = sn_backend_cpu(x->pool, err);
  SnPlannerDef def = sn_default_planner_def();
  def.model = x->o.m;
  def.task = x->task;
  def.backend = x->cpu;
  def.settings = x->task->settings;
  def.seed = 3;
  if (o->counting) def.clock = counting_clock(&x->count);
  if (o->change) o->change(&def.settings, x->cpu);
  return x->p = sn_planner_create(&def, err);
}

static void close_planner(Fixture *x) {
  sn_planner_free(x->p);
  sn_backend_free(x->cpu);
  sn_pool_free(x->pool);
  sn_task_free(x->task);
  sn_oracle_free(&x->o);
  free(x);
}

static Fixture *open_planner(const Opening *o) {
  SnError err = {0};
  Fixture *x = calloc(1, sizeof *x);
  if (!create(x, o, &err)) fail_msg("%s", err.text);
  const SnModel *m = sn_planner_model(x->p);
  const SnState *s = sn_planner_initial(x->p);
  x->nstep = o->horizon;
  assert_true(x->nstep * m->nu <= MOST && m->nq <= 16 && m->na <= 16);
  memcpy(x->qpos, s->qpos, sizeof *x->qpos * (size_t)m->nq);
  for (int i = 0; i < m->nv; ++i) x->qvel[i] = (sn_real)(0.5 * sin(1.7 * i));
  for (int i = 0; i < m->na; ++i) x->act[i] = SN_R(0.3);
  if (o->xml == cube_xml) {
    x->qpos[2] = SN_R(0.2);
    x->qvel[1] = SN_R(-0.1);
    x->qvel[2] = -2;
  }
  for (int t = 0; t < x->nstep; ++t)
    for (int i = 0; i < m->nu; ++i) x->ctrl[t * m->nu + i] = (sn_real)(0.3 + 0.2 * sin(0.06 * t + 2 * i));
  return x;
}

static SnEvaluateRequest question(const Fixture *x, bool gradient) {
  return (SnEvaluateRequest){
      .qpos = x->qpos, .qvel = x->qvel, .act = x->act, .nstep = x->nstep, .ctrl = x->ctrl, .gradient = gradient};
}

static SnEvaluation evaluate(Fixture *x, bool gradient) {
  const SnEvaluateRequest q = question(x, gradient);
  SnError err = {0};
  SnEvaluation e;
  if (sn_planner_evaluate(x->p, &q, INFINITY, &e, &err) != SN_OK) fail_msg("%s", err.text);
  return e;
}

// Moves velocities and controls by eps times a direction that `k` numbers.
static void move(Fixture *x, int k, double eps) {
  const SnModel *m = sn_planner_model(x->p);
  for (int i = 0; i < m->nv; ++i) x->qvel[i] += (sn_real)(eps * cos(1.3 * i + k));
  for (int i = 0; i < x->nstep * m->nu; ++i) x->ctrl[i] += (sn_real)(eps * sin(0.7 * i + 2.1 * k));
}

static double along(const Fixture *x, const SnGradient *g, int k) {
  const SnModel *m = sn_planner_model(x->p);
  double sum = 0;
  for (int i = 0; i < m->nv; ++i) sum += (double)g->qvel_bar[i] * cos(1.3 * i + k);
  for (int i = 0; i < x->nstep * m->nu; ++i) sum += (double)g->ctrl_bar[i] * sin(0.7 * i + 2.1 * k);
  return sum;
}

static void check_gradient(const Opening *o, double tolerance) {
  const double eps = 1e-5;
  Fixture *x = open_planner(o);
  for (int k = 0; k < (SN_SLOW ? 1 : 2); ++k) {
    const SnEvaluation e = evaluate(x, true);
    assert_true(!e.diverged && e.gradient && e.gradient->status == SN_GRADIENT_DONE);
    const double slope = along(x, e.gradient, k);
    move(x, k, eps);
    const double above = evaluate(x, false).cost;
    move(x, k, -2 * eps);
    const double difference = (above - evaluate(x, false).cost) / (2 * eps);
    move(x, k, eps);
    if (!(fabs(slope - difference) <= tolerance * fabs(difference)))
      fail_msg("%s, direction %d: %.9g, by differences %.9g", o->integrator, k, slope, difference);
  }
  close_planner(x);
}

static void gradients_are_those_of_the_cost(void **state) {
  (void)state;
  if (sizeof(sn_real) < sizeof(double)) skip();
  check_gradient(&(Opening){arm_xml, "tsit5", .horizon = 40, .tolerance = 1e-12}, 1e-6);
  check_gradient(&(Opening){arm_xml, "dopri8", .horizon = 40, .tolerance = 1e-12}, 1e-6);
  check_gradient(&(Opening){muscle_xml, "tsit5", .horizon = 40, .tolerance = 1e-12}, 1e-5);
  check_gradient(&(Opening){muscle_xml, "dopri5", .horizon = 40, .tolerance = 1e-12}, 1e-5);
  check_gradient(&(Opening){cube_xml, "tsit5", .horizon = 100, .tolerance = 1e-12}, 1e-4);
}

// The cost after 0.4 s at the end of that time alone, under controls that do not change.
static double cost_at_end(const char *xml, const char *integrator, double timestep) {
  static const char *const names[] = {"reach", "speed", "effort", "rate"};
  SnError err = {0};
  const Opening o = {xml, integrator, .horizon = (int)lround(0.4 / timestep), .tolerance = 1e-9, .timestep = timestep};
  Fixture *x = open_planner(&o);
  for (int i = 0; i < 4; ++i)
    if (sn_planner_set_weight(x->p, names[i], 0, i == 0 ? 2 : 0, &err) != SN_OK) fail_msg("%s", err.text);
  for (int i = 0; i < x->nstep * sn_planner_model(x->p)->nu; ++i) x->ctrl[i] = SN_R(0.3);
  const double sum = evaluate(x, false).cost;
  close_planner(x);
  return sum;
}

// Steps of the model come to the same, by errors that halve with their size.
static void small_steps_find_the_same(void **state) {
  (void)state;
  if (sizeof(sn_real) < sizeof(double)) skip();
  static const char *const bodies[] = {arm_xml, muscle_xml};
  for (int k = 0; k < 2; ++k) {
    const double chosen = cost_at_end(bodies[k], "tsit5", 0.01), coarse = cost_at_end(bodies[k], "step", 0.001),
                 fine = cost_at_end(bodies[k], "step", 0.0005);
    const double part = (fine - chosen) / (coarse - chosen);
    if (!(part > 0.45 && part < 0.55 && fabs(fine - chosen) < 5e-3 * fabs(chosen)))
      fail_msg("body %d: %.9g; steps of 1 ms %.9g, of 0.5 ms %.9g", k, chosen, coarse, fine);
  }
}

static void all_planners(SnSettings *s, SnBackend *b) {
  (void)b;
  s->adam_starts = 2;
  s->noise_scale = 0.05;
  s->hybrid_refined = 2;
  s->hybrid_gradients = 2;
  s->lbfgs_iterations = 4;
  snprintf(s->grid, sizeof s->grid, "8x1,8x4");
}

static SnPlanRequest request(const Fixture *x) {
  SnPlanRequest r = sn_default_plan_request();
  r.qpos = x->qpos;
  r.qvel = x->qvel;
  r.act = x->act;
  r.want_states = true;
  r.latency = 0.015;
  return r;
}

// A plan, in slices where `pauses`; x stays open.
static SnPlan plan_by(Fixture *x, int kind, bool pauses) {
  SnError err = {0};
  SnPlan plan;
  SnSettings s = *sn_planner_settings(x->p);
  s.planner = kind;
  if (sn_planner_configure(x->p, &s, &err) != SN_OK) fail_msg("%s", err.text);
  const SnPlanRequest r = request(x);
  begin_plan(x->p, &r);
  while (!sn_planner_slice(x->p, pauses ? (double)atomic_load(&x->count.reads) + 4 : (double)INFINITY)) continue;
  sn_planner_finish(x->p, &plan);
  return plan;
}

// Rows of the lead and of the plan, with their states.
static void same_bits(const SnPlan *a, const SnPlan *b) {
  const size_t rows = (size_t)a->nstep, size = sizeof *a->ctrl;
  assert_int_equal(a->nstep, b->nstep);
  assert_true(a->cost_before == b->cost_before && a->cost_after == b->cost_after);
  assert_memory_equal(a->ctrl, b->ctrl, size * rows * (size_t)a->nu);
  assert_memory_equal(a->qpos, b->qpos, size * (rows + 1) * (size_t)a->nq);
  assert_memory_equal(a->qvel, b->qvel, size * (rows + 1) * (size_t)a->nv);
}

// Every planner (in a slow build three) with them gets better plans, the same from any number of threads and after any
// pauses.
static void planners_have_them(void **state) {
  (void)state;
  static const int kinds[] = {SN_PLANNER_ADAM,  SN_PLANNER_SAMPLING, SN_PLANNER_HYBRID,
                              SN_PLANNER_LBFGS, SN_PLANNER_MPPI,     SN_PLANNER_CEM};
  for (size_t k = 0; k < (SN_SLOW ? 3 : sizeof kinds / sizeof *kinds); ++k) {
    Opening o = {cube_xml, "tsit5", .horizon = 40, .tolerance = 1e-4, .threads = 1, .change = all_planners};
    Fixture *one = open_planner(&o);
    o.threads = 3;
    Fixture *three = open_planner(&o);
    o.counting = true;
    Fixture *paused = open_planner(&o);
    const SnPlan a = plan_by(one, kinds[k], false), b = plan_by(three, kinds[k], false),
                 c = plan_by(paused, kinds[k], true);
    assert_int_equal(a.status, SN_PLAN_OK);
    assert_true(a.lead == 2 && a.qpos && a.cost_after < a.cost_before);
    same_bits(&a, &b);
    same_bits(&a, &c);
    close_planner(one);
    close_planner(three);
    close_planner(paused);
  }
}

// A plan's states are those of its controls by chosen steps, from the lead on; contacts of the cube among them.
static void states_are_theirs(void **state) {
  (void)state;
  Fixture *x = open_planner(&(Opening){cube_xml, "tsit5", .horizon = 40, .tolerance = 1e-5});
  const SnPlan plan = plan_by(x, SN_PLANNER_ADAM, false);
  const size_t n = ((size_t)plan.nstep + 1) * (size_t)plan.nq;
  sn_real *qpos = calloc(n, sizeof *qpos);
  SnEvaluateRequest q = question(x, false);
  SnError err = {0};
  SnEvaluation e;
  q.nstep = plan.nstep;
  q.ctrl = plan.ctrl;
  q.states.qpos = qpos;
  if (sn_planner_evaluate(x->p, &q, INFINITY, &e, &err) != SN_OK) fail_msg("%s", err.text);
  for (size_t i = 0; i < n; ++i) assert_true(fabs((double)(qpos[i] - plan.qpos[i])) < 1e-4);
  free(qpos);
  close_planner(x);
}

// Costs on accelerations are those of the motion where the model's integrator is `discrete`, which gives those of a
// step. They have the bits of a model with another integrator: in a state, a rollout, its gradient and plans.
static void accelerations_are_those_of_the_motion(void **state) {
  (void)state;
  static const char *const integrators[] = {", integrator: Euler", ", integrator: discrete"};
  static const int kinds[] = {SN_PLANNER_ADAM, SN_PLANNER_SAMPLING};
  SnError err = {0};
  Fixture *x[2];
  SnEvaluation now[2], e[2];
  for (int k = 0; k < 2; ++k) {
    const Opening o = {muscle_xml,
                       "tsit5",
                       integrators[k],
                       "  - {name: felt, residual: {sensor: felt}, weight: 0.001}\n",
                       .horizon = 40,
                       .tolerance = 1e-6,
                       .change = all_planners};
    x[k] = open_planner(&o);
    x[k]->qpos[0] = SN_R(0.26);  // beyond its limit
    SnEvaluateRequest q = question(x[k], false);
    q.nstep = 0;
    if (sn_planner_evaluate(x[k]->p, &q, INFINITY, &now[k], &err) != SN_OK) fail_msg("%s", err.text);
    assert_true(now[k].term[4] > 0.01 * now[k].cost);
    now[k].term = NULL;
    e[k] = evaluate(x[k], true);
  }
  const SnModel *m = sn_planner_model(x[0]->p);
  assert_true(now[0].cost == now[1].cost && e[0].cost == e[1].cost && e[0].cost > 0);
  assert_memory_equal(e[0].gradient->qvel_bar, e[1].gradient->qvel_bar, sizeof(sn_real) * (size_t)m->nv);
  assert_memory_equal(e[0].gradient->ctrl_bar, e[1].gradient->ctrl_bar,
                      sizeof(sn_real) * (size_t)(x[0]->nstep * m->nu));
  for (int k = 0; k < 2; ++k) {
    const SnPlan a = plan_by(x[0], kinds[k], false), b = plan_by(x[1], kinds[k], false);
    assert_true(a.cost_after < a.cost_before && a.cost_now == b.cost_now);
    same_bits(&a, &b);
  }
  close_planner(x[0]);
  close_planner(x[1]);
}

static void few_steps(SnSettings *s, SnBackend *b) {
  (void)b;
  s->max_steps = 30;
}

// A rollout that needs more steps than are allowed has diverged; a plan then says so.
static void steps_are_limited(void **state) {
  (void)state;
  Fixture *x = open_planner(&(Opening){arm_xml, "tsit5", .horizon = 40, .tolerance = 1e-4, .change = few_steps});
  const SnEvaluation e = evaluate(x, true);
  assert_true(e.diverged && e.cost == (double)INFINITY);
  assert_int_equal(e.gradient->status, SN_GRADIENT_DIVERGED);
  assert_true(e.gradient->steps > 10 && e.gradient->steps < 30);
  const SnPlan plan = plan_by(x, SN_PLANNER_ADAM, false);
  assert_int_equal(plan.status, SN_PLAN_DIVERGED);
  close_planner(x);
}

static void nothing_is_allocated(void **state) {
  (void)state;
  Fixture *x = open_planner(&(Opening){cube_xml, "tsit5", .horizon = 40, .tolerance = 1e-6, .threads = 2});
  plan_by(x, SN_PLANNER_ADAM, false);
  const long before = sn_allocations();
  const SnPlan plan = plan_by(x, SN_PLANNER_ADAM, false);
  assert_int_equal(plan.status, SN_PLAN_OK);
  assert_int_equal(sn_allocations(), before);
  close_planner(x);
}

// ---- what is refused ----

static void ask_ilqg(SnSettings *s, SnBackend *b) {
  (void)b;
  s->planner = SN_PLANNER_ILQG;
}
static void ask_products(SnSettings *s, SnBackend *b) {
  (void)b;
  s->gradient = SN_GRADIENT_PRODUCTS;
}
static void take_chosen(SnSettings *s, SnBackend *b) {
  (void)s;
  b->choose = NULL;
  b->name = "cuda";
}

static void refusals_name_what_does_not_fit(void **state) {
  (void)state;
  static const struct {
    void (*change)(SnSettings *s, SnBackend *b);
    const char *text;
  } cases[] = {{ask_ilqg, "integrator: 'tsit5' has no Jacobians of steps, which planner 'ilqg' needs; 'step' has them"},
               {ask_products,
                "integrator: 'tsit5' has no Jacobians of steps, which gradient 'products' needs; 'sweep' does without"},
               {take_chosen, "integrator: the backend 'cuda' makes no steps of chosen sizes, 'cpu' does"}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
    SnError err = {0};
    Fixture *x = calloc(1, sizeof *x);
    const Opening o = {arm_xml, "tsit5", .horizon = 40, .tolerance = 1e-4, .change = cases[k].change};
    assert_null(create(x, &o, &err));
    assert_int_equal(err.code, SN_ERR_UNSUPPORTED);
    assert_string_equal(err.text, cases[k].text);
    close_planner(x);
  }
}

// While a planner lives its integrator stays, and so it stays without Jacobians.
static void it_is_fixed(void **state) {
  (void)state;
  SnError err = {0};
  Fixture *x = open_planner(&(Opening){arm_xml, "tsit5", .horizon = 40, .tolerance = 1e-4});
  const SnSettings now = *sn_planner_settings(x->p);
  SnSettings s = now;
  s.planner = SN_PLANNER_ILQG;
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_ERR_UNSUPPORTED);
  assert_non_null(strstr(err.text, "which planner 'ilqg' needs"));
  s = now;
  s.integrator = 0;
  s.rtol = 1e-6;
  assert_int_not_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  assert_non_null(strstr(err.text, "integrator"));
  assert_non_null(strstr(err.text, "rtol"));
  assert_memory_equal(sn_planner_settings(x->p), &now, sizeof now);
  close_planner(x);
}

// Steps of the grid that the model's integrator cannot follow are no matter for chosen ones.
static void long_grid(SnSettings *s, SnBackend *b) {
  (void)b;
  snprintf(s->grid, sizeof s->grid, "4x10");
}
static void grids_may_be_long(void **state) {
  (void)state;
  SnError err = {0};
  Fixture *x = open_planner(&(Opening){cube_xml, "tsit5", .horizon = 40, .tolerance = 1e-4, .change = long_grid});
  assert_int_equal(plan_by(x, SN_PLANNER_ADAM, false).status, SN_PLAN_OK);
  close_planner(x);
  x = calloc(1, sizeof *x);
  assert_null(create(x, &(Opening){cube_xml, "step", .horizon = 40, .tolerance = 1e-4, .change = long_grid}, &err));
  assert_non_null(strstr(err.text, "time constant"));
  close_planner(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gradients_are_those_of_the_cost),
      cmocka_unit_test(small_steps_find_the_same),
      cmocka_unit_test(planners_have_them),
      cmocka_unit_test(states_are_theirs),
      cmocka_unit_test(accelerations_are_those_of_the_motion),
      cmocka_unit_test(steps_are_limited),
      cmocka_unit_test(nothing_is_allocated),
      cmocka_unit_test(refusals_name_what_does_not_fit),
      cmocka_unit_test(it_is_fixed),
      cmocka_unit_test(grids_may_be_long),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
