// Plans by iLQG: on a linear body with quadratic costs controls and gains are those of the Riccati recursion, with
// limits those of the quadratic programme; on a body of muscles the same plans for any threads, pauses and deadlines.
#include "physics/world/adjoint.h"
#include "tests/planner/adam_fixture.h"
#include "tests/support/allocations.h"
#include "tests/support/tolerance.h"

// ---- a linear body ----

static const char *const linear_task =
    "model: linear.xml\n"
    "initial: {joints: {a: 0.4, b: -0.3}}\n"
    "settings: {horizon: 30, planner: ilqg, ilqg_iterations: 1, ilqg_regularization: 0}\n"
    "terms:\n"
    "  - {name: place, residual: {joint_position: all}, target: [0.3, -0.2], weight: 3, terminal: 20}\n"
    "  - {name: speed, residual: {joint_velocity: all}, weight: 0.2, terminal: 1}\n"
    "  - {name: filter, residual: {activation: all}, weight: 0.1}\n"
    "  - {name: effort, residual: {control: all}, weight: 0.05}\n";

enum { STEPS = 30, N = 5, NU = 3 };
static const double h = 0.02, terms_of_x[N] = {3, 3, 0.2, 0.2, 0.1}, terms_at_end[N] = {20, 20, 1, 1, 0};

typedef struct Linear {
  SnOracle o;
  SnTask *task;
  SnPool *pool;
  SnBackend *cpu;
  SnPlanner *p;
} Linear;

// Two masses, a spring between them, two motors and one with an activation: state (q1 q2 v1 v2 a), n = 5.
static void write_linear(char *xml, size_t size, const char *limit) {
  snprintf(
      xml, size,
      "<mujoco><option timestep='0.02' gravity='0 0 0'/><worldbody>"
      "<body name='a'><joint name='a' type='slide' axis='1 0 0' stiffness='2' damping='.3'/><geom size='.1' mass='1' "
      "contype='0' conaffinity='0'/></body>"
      "<body name='b'><joint name='b' type='slide' axis='1 0 0' damping='.1'/><geom size='.1' mass='2' contype='0' "
      "conaffinity='0'/></body></worldbody>"
      "<tendon><fixed name='spring' stiffness='5' springlength='0'><joint joint='a' coef='1'/><joint joint='b' "
      "coef='-1'/></fixed></tendon>"
      "<actuator><motor joint='a' ctrllimited='true' ctrlrange='-%s %s'/><motor joint='b' gear='2' "
      "ctrllimited='true' ctrlrange='-%s %s'/><general joint='b' dyntype='filter' dynprm='.1' gainprm='3'/>"
      "</actuator></mujoco>",
      limit, limit, limit, limit);
}

static void open_linear_task(Linear *x, const char *text, const char *limit, int iterations) {
  SnError err = {0};
  char xml[2000];
  write_linear(xml, sizeof xml, limit);
  sn_oracle_load_string(&x->o, xml);
  x->task = sn_task_parse(text, strlen(text), "linear.yaml", &err);
  if (!x->task) fail_msg("%s", err.text);
  x->pool = sn_pool_create(1, &err);
  x->cpu = sn_backend_cpu(x->pool, &err);
  SnPlannerDef def = sn_default_planner_def();
  def.model = x->o.m;
  def.task = x->task;
  def.backend = x->cpu;
  def.settings = x->task->settings;
  def.settings.ilqg_iterations = iterations;
  x->p = sn_planner_create(&def, &err);
  if (!x->p) fail_msg("%s", err.text);
}

static void open_linear(Linear *x, const char *limit, int iterations) {
  open_linear_task(x, linear_task, limit, iterations);
}

static void close_linear(Linear *x) {
  sn_planner_free(x->p);
  sn_backend_free(x->cpu);
  sn_pool_free(x->pool);
  sn_task_free(x->task);
  sn_oracle_free(&x->o);
}

// The body's step, by hand: damping of joints is implicit.
static void linear_step(double A[N][N], double B[N][NU]) {
  const double inverse[2] = {1 / (1 + h * 0.3), 1 / (2 + h * 0.1)}, damping[2] = {0.3, 0.1};
  const double K[2][2] = {{2 + 5, -5}, {-5, 5}}, force[2][NU] = {{1, 0, 0}, {0, 2, 0}}, act[2] = {0, 3};
  memset(A, 0, sizeof(double) * N * N);
  memset(B, 0, sizeof(double) * N * NU);
  for (int i = 0; i < 2; ++i) {
    double *v = A[2 + i], *q = A[i];
    v[0] = -h * inverse[i] * K[i][0];
    v[1] = -h * inverse[i] * K[i][1];
    v[2 + i] = 1 - h * inverse[i] * damping[i];
    v[4] = h * inverse[i] * act[i];
    for (int k = 0; k < NU; ++k) B[2 + i][k] = h * inverse[i] * force[i][k];
    for (int k = 0; k < N; ++k) q[k] = (i == k) + h * v[k];
    for (int k = 0; k < NU; ++k) B[i][k] = h * B[2 + i][k];
  }
  A[4][4] = 1 - h / 0.1;
  B[4][2] = h / 0.1;
}

// Solves S x = r in place for N columns of r, S (NU, NU) symmetric.
static void solve(double S[NU][NU], double r[NU][N]) {
  for (int i = 0; i < NU; ++i)
    for (int k = 0; k < NU; ++k) {
      const double f = k == i ? 0 : S[k][i] / S[i][i];
      for (int j = 0; j < NU; ++j) S[k][j] -= f * S[i][j];
      for (int j = 0; j < N; ++j) r[k][j] -= f * r[i][j];
    }
  for (int i = 0; i < NU; ++i)
    for (int j = 0; j < N; ++j) r[i][j] /= S[i][i];
}

// The Riccati recursion of the finite horizon: gain[t], from the last step to the first.
static void riccati(double gain[STEPS][NU][N]) {
  double A[N][N], B[N][NU], P[N][N] = {{0}};
  linear_step(A, B);
  for (int i = 0; i < N; ++i) P[i][i] = 2 * terms_at_end[i];
  for (int t = STEPS - 1; t >= 0; --t) {
    double PA[N][N] = {{0}}, PB[N][NU] = {{0}}, S[NU][NU] = {{0}}, R[NU][N] = {{0}}, next[N][N] = {{0}};
    for (int i = 0; i < N; ++i)
      for (int k = 0; k < N; ++k) {
        for (int j = 0; j < N; ++j) PA[i][j] += P[i][k] * A[k][j];
        for (int j = 0; j < NU; ++j) PB[i][j] += P[i][k] * B[k][j];
      }
    for (int i = 0; i < NU; ++i) {
      S[i][i] = 2 * 0.05 / STEPS;
      for (int k = 0; k < N; ++k) {
        for (int j = 0; j < NU; ++j) S[i][j] += B[k][i] * PB[k][j];
        for (int j = 0; j < N; ++j) R[i][j] -= B[k][i] * PA[k][j];
      }
    }
    solve(S, R);
    memcpy(gain[t], R, sizeof R);
    for (int i = 0; i < N; ++i) {
      next[i][i] = 2 * terms_of_x[i] / STEPS;
      for (int k = 0; k < N; ++k)
        for (int j = 0; j < N; ++j) {
          next[i][j] += A[k][i] * PA[k][j];
          for (int c = 0; c < NU; ++c) next[i][j] += A[k][i] * PB[k][c] * R[c][j];
        }
    }
    memcpy(P, next, sizeof P);
  }
}

// The slope of the cost at a plan, by control.
static void slopes(const Linear *x, const SnPlan *plan, double *slope) {
  SnError err = {0};
  SnEvaluation e;
  const SnState *s = sn_planner_initial(x->p);
  const SnEvaluateRequest q = {
      .qpos = s->qpos, .qvel = s->qvel, .act = s->act, .nstep = plan->nstep, .ctrl = plan->ctrl, .gradient = true};
  if (sn_planner_evaluate(x->p, &q, INFINITY, &e, &err) != SN_OK) fail_msg("%s", err.text);
  for (int i = 0; i < STEPS * NU; ++i) slope[i] = (double)e.gradient->ctrl_bar[i];
}

// One iteration finds the best controls and their gains.
static void riccati_gains(void **state) {
  (void)state;
  static double gain[STEPS][NU][N], slope[STEPS * NU];
  const double close_to = SN_TOL(1e-9, 1e-3);
  Linear x;
  open_linear(&x, "1000", 1);
  SnPlanRequest r = request_of(x.p, 0);
  r.gain_rows = STEPS;
  SnPlan plan = plan_of(x.p, &r);
  assert_true(plan.cost_after < plan.cost_before / 4 && plan.gain && plan.gain_rows == STEPS && plan.qpos);
  riccati(gain);
  for (int t = 0; t < STEPS; ++t)
    for (int i = 0; i < NU; ++i)
      for (int j = 0; j < N; ++j) {
        const double is = (double)plan.gain[(t * NU + i) * N + j], ought = gain[t][i][j];
        if (!(fabs(is - ought) <= close_to * (1 + fabs(ought))))
          fail_msg("gain[%d][%d][%d] is %.15g, not %.15g", t, i, j, is, ought);
      }
  slopes(&x, &plan, slope);
  for (int i = 0; i < STEPS * NU; ++i)
    if (!(fabs(slope[i]) <= close_to)) fail_msg("slope %d is %g", i, slope[i]);
  // nothing is left to be found
  const double least = plan.cost_after;
  plan = plan_of(x.p, &(SnPlanRequest){.qpos = r.qpos, .qvel = r.qvel, .act = r.act, .deadline = INFINITY});
  assert_true(fabs(plan.cost_before - least) < 1e-6 && plan.cost_after >= least - close_to && !plan.gain);
  close_linear(&x);
}

// With limits that hold: controls inside have no slope, at a limit it points outwards.
static void limits(void **state) {
  (void)state;
  static double slope[STEPS * NU];
  int held = 0;
  Linear x;
  open_linear(&x, "2", 40);
  SnPlanRequest r = request_of(x.p, 0);
  r.gain_rows = 1 + STEPS;
  const SnPlan plan = plan_of(x.p, &r);
  assert_true(plan.gain_rows == STEPS);
  slopes(&x, &plan, slope);
  for (int i = 0; i < STEPS * NU; ++i) {
    const double u = (double)plan.ctrl[i], limit = i % NU < 2 ? 2 : (double)INFINITY, tiny = SN_TOL(1e-7, 1e-3);
    held += fabs(u) == 2;
    assert_true(fabs(u) <= limit);
    if (!(fabs(u) < limit - 1e-6 ? fabs(slope[i]) < tiny : slope[i] * u < tiny))
      fail_msg("control %d, %g: slope %g", i, u, slope[i]);
  }
  assert_in_range(held, 5, STEPS * 2 - 5);
  close_linear(&x);
}

// Where a control changes nothing, the pass without regularisation fails: it begins anew with the least there is, and
// the plan is that of who asks for so much.
static void pass_begins_anew(void **state) {
  (void)state;
  const double regularization[] = {0, 1e-6, 4e-6};
  static sn_real ctrl[3][STEPS * NU], gain[3][STEPS * NU * N];
  char text[1000];
  snprintf(text, sizeof text, "%.*s", (int)(strstr(linear_task, "  - {name: filter") - linear_task), linear_task);
  for (int i = 0; i < 3; ++i) {
    SnError err = {0};
    Linear x;
    open_linear_task(&x, text, "1000", 1);
    SnSettings s = x.task->settings;
    s.ilqg_iterations = 1;
    s.ilqg_regularization = regularization[i];
    if (sn_planner_configure(x.p, &s, &err) != SN_OK) fail_msg("%s", err.text);
    SnPlanRequest r = request_of(x.p, 0);
    r.gain_rows = STEPS;
    const SnPlan plan = plan_of(x.p, &r);
    assert_true(plan.cost_after < plan.cost_before / 4 && plan.gain && plan.gain_rows == STEPS);
    memcpy(ctrl[i], plan.ctrl, sizeof ctrl[i]);
    memcpy(gain[i], plan.gain, sizeof gain[i]);
    close_linear(&x);
  }
  assert_memory_equal(ctrl[0], ctrl[1], sizeof ctrl[0]);
  assert_memory_equal(gain[0], gain[1], sizeof gain[0]);
  assert_memory_not_equal(ctrl[1], ctrl[2], sizeof ctrl[1]);
}

// ---- the bench body ----

static SnSettings ilqg_settings(void) {
  SnSettings s = task->settings;
  s.planner = SN_PLANNER_ILQG;
  s.ilqg_iterations = 4;
  return s;
}

static void improves(void **state) {
  (void)state;
  SnSettings s = ilqg_settings();
  s.ilqg_iterations = 12;
  Fixture *x = open_fixture(1, false, &s, true);
  SnPlan plan = plan_at(x, 0);
  printf("cost before %.4f, after %.4f\n", plan.cost_before, plan.cost_after);
  assert_true(plan.cost_after < 0.5 * plan.cost_before && plan.iterations == 12 &&
              plan.candidates == s.ilqg_alphas + 1);
  assert_true(evaluate(x, &plan) == plan.cost_after && isnan(plan.gradient_norm) && plan.remark[0] == '\0');
  for (int k = 0; k < plan.nstep * plan.nu; ++k)
    assert_true(plan.ctrl[k] >= (k % 3 ? 0 : -3) && plan.ctrl[k] <= (k % 3 ? 1 : 3));
  for (int k = 1; k < 4; ++k) {
    plan = plan_at(x, 0.05 * k);
    assert_true(plan.cost_after <= plan.cost_before);
  }
  free_fixture(x);
}

static void assert_same(const SnPlan *a, const SnPlan *b) {
  assert_true(a->cost_after == b->cost_after && a->cost_before == b->cost_before);
  assert_true(a->iterations == b->iterations && a->candidates == b->candidates && a->gain_rows == b->gain_rows);
  assert_memory_equal(a->ctrl, b->ctrl, ctrl_bytes(a));
  if (a->gain) assert_memory_equal(a->gain, b->gain, sizeof *a->gain * (size_t)(a->gain_rows * a->nu * 6));
}

// The same plans and gains in slices of any length and with any number of threads.
static void repeats(void **state) {
  (void)state;
  SnSettings s = ilqg_settings();
  Fixture *x = open_fixture(1, false, &s, true), *y = open_fixture(3, true, &s, true);
  for (int k = 0; k < 3; ++k) {
    SnPlanRequest r = initial_request(x, 0.05 * k);
    r.gain_rows = 40;
    const SnPlan a = plan_now(x, &r);
    begin_plan(y->p, &r);
    int n = 0;
    while (!sn_planner_slice(y->p, (double)atomic_load(&y->count.reads) + 30)) ++n;
    SnPlan b;
    sn_planner_finish(y->p, &b);
    assert_true(n > 20 && a.gain && a.gain_rows == 40);
    assert_same(&a, &b);
    // States are those of a rollout of the controls.
    static sn_real qpos[41 * 2], qvel[41 * 2], act[41 * 2];
    SnError err = {0};
    SnEvaluation e;
    const SnEvaluateRequest q = {.time = r.time,
                                 .qpos = r.qpos,
                                 .qvel = r.qvel,
                                 .act = r.act,
                                 .nstep = a.nstep,
                                 .ctrl = a.ctrl,
                                 .states = {.qpos = qpos, .qvel = qvel, .act = act}};
    if (sn_planner_evaluate(x->p, &q, INFINITY, &e, &err) != SN_OK) fail_msg("%s", err.text);
    assert_memory_equal(qpos, b.qpos, sizeof qpos);
    assert_memory_equal(qvel, b.qvel, sizeof qvel);
    assert_memory_equal(act, b.act, sizeof act);
  }
  free_fixture(x);
  free_fixture(y);
}

// What the deadline leaves is reproduced by its numbers, the gains included.
static void deadline(void **state) {
  (void)state;
  SnSettings s = ilqg_settings();
  s.ilqg_iterations = 0;
  int partial = 0, none = 0, gains = 0;
  for (int budget = 20; budget < 1500; budget += 61) {
    Fixture *x = open_fixture(1, true, &s, true), *y = open_fixture(1, false, &s, true);
    SnPlanRequest r = initial_request(x, 0);
    r.gain_rows = 3;
    r.deadline = (double)atomic_load(&x->count.reads) + budget;
    const SnPlan a = plan_now(x, &r);
    assert_true((double)atomic_load(&x->count.reads) <= r.deadline + 9);
    none += a.iterations == 0;
    if (a.iterations > 0) {
      assert_true(a.cost_after <= a.cost_before);
      partial += a.candidates < s.ilqg_alphas + 1;
      r = initial_request(y, 0);
      r.gain_rows = 3;
      r.max_iterations = a.iterations;
      r.max_candidates = a.candidates;
      const SnPlan b = plan_now(y, &r);
      gains += a.gain != NULL;
      assert_same(&a, &b);
    }
    free_fixture(x);
    free_fixture(y);
  }
  printf("%d partial, %d without an iteration, %d with gains\n", partial, none, gains);
  assert_true(partial > 3 && none > 0 && gains > 3);
}

// A step that diverges is not taken; where the warm start itself does, the plan is none.
static void diverging(void **state) {
  (void)state;
  SnSettings s = ilqg_settings();
  s.ilqg_iterations = 12;
  s.max_velocity = 7;
  Fixture *x = open_fixture(1, false, &s, true);
  SnPlan plan = plan_at(x, 0);
  assert_true(plan.status == SN_PLAN_OK && isfinite(plan.cost_after) && plan.cost_after < plan.cost_before);
  s.max_velocity = 0.01;
  configure(x, &s);
  SnPlanRequest r = initial_request(x, 0);
  r.gain_rows = 2;
  plan = plan_now(x, &r);
  assert_true(plan.status == SN_PLAN_DIVERGED && plan.nstep == 0 && !plan.gain && plan.iterations == 12);
  s.max_velocity = 7;
  configure(x, &s);
  plan = plan_at(x, 0);
  assert_int_equal(plan.status, SN_PLAN_OK);
  free_fixture(x);
}

// Gains are the planner's: others refuse, and the plan in force stays. Without an iteration there are none yet.
static void gains(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings s = ilqg_settings(), adam = adam_settings();
  Fixture *x = open_fixture(1, false, &s, true);
  SnPlanRequest r = initial_request(x, 0);
  sn_real before[3];
  r.gain_rows = 5;
  SnPlan plan = plan_now(x, &r);
  assert_true(plan.gain_rows == 5 && plan.gain && plan.qpos);
  memcpy(before, sn_planner_control(x->p, 0.1), sizeof before);
  configure(x, &adam);
  assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_ERR_UNSUPPORTED);
  assert_string_equal(err.text, "gains: planner 'adam' makes none, 'ilqg' does");
  assert_memory_equal(before, sn_planner_control(x->p, 0.1), sizeof before);
  configure(x, &s);
  r.gain_rows = -1;
  assert_int_equal(sn_planner_begin(x->p, &r, &err), SN_ERR_ARGUMENT);
  r.gain_rows = 5;
  r.max_iterations = r.max_candidates = 1;
  plan = plan_now(x, &r);
  assert_true(!plan.gain && plan.gain_rows == 0 && plan.cost_after == plan.cost_before && plan.candidates == 1);
  assert_string_equal(plan.remark, "no gains: no iteration has made any");
  free_fixture(x);
}

// A look at a plan that has no predicted states yet leaves no remark behind: the plan at the end has its gains.
static void looked_at(void **state) {
  (void)state;
  SnSettings s = ilqg_settings();
  Fixture *x = open_fixture(1, false, &s, true);
  SnPlanRequest r = initial_request(x, 0);
  SnPlan peek;
  r.gain_rows = 5;
  begin_plan(x->p, &r);
  assert_false(sn_planner_slice(x->p, INFINITY));
  assert_true(sn_planner_peek(x->p, &peek) && !peek.gain && peek.gain_rows == 0);
  assert_string_equal(peek.remark, "no gains: the deadline left no time for predicted states");
  const SnPlan plan = finish_plan(x->p);
  assert_true(plan.gain && plan.gain_rows == 5);
  assert_string_equal(plan.remark, "");
  free_fixture(x);
}

static void refused(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings s = ilqg_settings(), adam = adam_settings();
  Fixture *x = make_fixture(1, false, &adam);
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_ERR_UNSUPPORTED);
  assert_string_equal(err.text,
                      "planner: ilqg needs Jacobians and rollouts with feedback, which the backend 'differences' does "
                      "not make");
  plan_at(x, 0);
  free_fixture(x);
}

// Between the planners and back; weights and settings that change while a plan is made.
static void live(void **state) {
  (void)state;
  SnError err = {0};
  SnSettings s = ilqg_settings(), adam = adam_settings(), sampling = task->settings;
  SnSettings *const turn[] = {&sampling, &s, &adam, &s, &sampling};
  Fixture *x = open_fixture(1, false, &adam, true);
  double last = (double)INFINITY;
  for (size_t i = 0; i < sizeof turn / sizeof *turn; ++i) {
    configure(x, turn[i]);
    const SnPlan plan = plan_at(x, 0);
    assert_true(plan.cost_after <= plan.cost_before && (i == 0 || plan.cost_before == last));
    last = plan.cost_after;
  }
  configure(x, &s);
  SnPlanRequest r = initial_request(x, 0);
  SnPlan peek, plan;
  begin_plan(x->p, &r);
  assert_false(sn_planner_slice(x->p, INFINITY));
  assert_int_equal(sn_planner_set_weight(x->p, "reach", 30, 20, &err), SN_OK);
  s.ilqg_alphas = 11;
  s.cfd = SN_CFD_BACKWARD;
  configure(x, &s);
  assert_false(sn_planner_slice(x->p, INFINITY));
  assert_true(sn_planner_peek(x->p, &peek) && peek.cost_after > 2 * last);
  plan = finish_plan(x->p);
  assert_true(plan.candidates == 12 && plan.iterations == 4 && plan.cost_after <= peek.cost_after);
  assert_true(evaluate(x, &plan) == plan.cost_after);
  free_fixture(x);
}

// More candidates in the midst of a plan: what is known of the best stays, whether there was room for them or not.
static void more_candidates(void **state) {
  (void)state;
  SnSettings few = ilqg_settings(), many = few;
  Fixture *x[2];
  SnPlan plan[2];
  many.ilqg_alphas = few.ilqg_alphas + 4;
  for (int room = 0; room < 2; ++room) {
    x[room] = open_fixture(1, false, &few, true);
    if (room) configure(x[room], &many);
    configure(x[room], &few);
    const SnPlanRequest r = initial_request(x[room], 0);
    begin_plan(x[room]->p, &r);
    assert_false(sn_planner_slice(x[room]->p, INFINITY));
    assert_false(sn_planner_slice(x[room]->p, INFINITY));
    configure(x[room], &many);
    plan[room] = finish_plan(x[room]->p);
  }
  assert_int_equal(plan[0].candidates, many.ilqg_alphas + 1);
  assert_same(&plan[0], &plan[1]);
  for (int room = 0; room < 2; ++room) free_fixture(x[room]);
}

// Nothing is taken from the heap while plans are made.
static void heap(void **state) {
  (void)state;
  SnSettings s = ilqg_settings();
  Fixture *x = open_fixture(2, false, &s, true);
  SnPlanRequest r = initial_request(x, 0);
  r.gain_rows = 10;
  plan_now(x, &r);
  const long before = sn_allocations();
  for (int k = 1; k < 4; ++k) {
    r.time += 0.05;
    r.latency = 0.02;
    const SnPlan plan = plan_now(x, &r);
    assert_true(plan.lead == 2 && plan.gain_rows == 10);
  }
  assert_int_equal(sn_allocations(), before);
  assert_true(before > 0);
  free_fixture(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(riccati_gains), cmocka_unit_test(limits),  cmocka_unit_test(pass_begins_anew),
      cmocka_unit_test(improves),      cmocka_unit_test(repeats), cmocka_unit_test(deadline),
      cmocka_unit_test(diverging),     cmocka_unit_test(gains),   cmocka_unit_test(looked_at),
      cmocka_unit_test(refused),       cmocka_unit_test(live),    cmocka_unit_test(more_candidates),
      cmocka_unit_test(heap)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
