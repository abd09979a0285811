// The tasks that come with sinew: every file loads, binds to its model and starts; what they promise of their start.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "planner/planner.h"
#include "tests/planner/plans.h"
#include "tests/support/oracle.h"

static const char *folder = SN_TEST_SOURCE_DIR "/../planner/tasks";

// A task with its model in the planner.
typedef struct Fixture {
  SnTask *task;
  SnOracle o;
  SnPool *pool;
  SnBackend *backend;
  SnPlanner *p;
} Fixture;

// Fails the test when it cannot; false, having said so, where the model was not fetched.
static bool open_fixture(Fixture *x, const char *name, uint64_t seed) {
  SnError err = {0};
  char path[4096];
  memset(x, 0, sizeof *x);
  snprintf(path, sizeof path, "%s/%s.yaml", folder, name);
  x->task = sn_task_load(path, &err);
  if (!x->task) fail_msg("%s", err.text);
  assert_string_equal(x->task->name, name);
  assert_true(x->task->description[0] != 0);
  if (!sn_oracle_find_model(x->task->model, path)) {
    sn_task_free(x->task);
    return false;
  }
  sn_oracle_load_file(&x->o, path);
  x->pool = sn_pool_create(2, &err);
  x->backend = sn_backend_cpu(x->pool, &err);
  SnPlannerDef def = sn_default_planner_def();
  def.model = x->o.m;
  def.task = x->task;
  def.backend = x->backend;
  def.settings = x->task->settings;
  def.seed = seed;
  x->p = sn_planner_create(&def, &err);
  if (!x->p) fail_msg("%s: %s", name, err.text);
  return true;
}

static void close_fixture(Fixture *x) {
  sn_planner_free(x->p);
  sn_backend_free(x->backend);
  sn_pool_free(x->pool);
  sn_oracle_free(&x->o);
  sn_task_free(x->task);
}

static SnEvaluation evaluate_initial(Fixture *x) {
  SnError err = {0};
  const SnState *s = sn_planner_initial(x->p);
  const SnEvaluateRequest q = {.qpos = s->qpos, .qvel = s->qvel, .act = s->act};
  SnEvaluation e;
  if (sn_planner_evaluate(x->p, &q, INFINITY, &e, &err) != SN_OK) fail_msg("%s", err.text);
  return e;
}

// All files of the folder, with and without a seed.
static void all_load(void **state) {
  (void)state;
  DIR *d = opendir(folder);
  int n = 0;
  assert_non_null(d);
  for (struct dirent *e = readdir(d); e; e = readdir(d)) {
    char name[300];
    snprintf(name, sizeof name, "%s", e->d_name);
    char *dot = strrchr(name, '.');
    if (!dot || strcmp(dot, ".yaml") != 0) continue;
    *dot = 0;
    for (uint64_t seed = 0; seed < 2; ++seed) {
      Fixture x;
      if (!open_fixture(&x, name, seed)) break;
      const SnEvaluation start = evaluate_initial(&x);
      printf("%s, seed %d: cost %.4f at the start\n", name, (int)seed, start.cost);
      assert_true(isfinite(start.cost) && start.cost > 0 && start.nmeasure > 0);
      close_fixture(&x);
    }
    ++n;
  }
  closedir(d);
  assert_true(n >= 22);
  sn_oracle_needs_myosuite();
}

// The balls have settled in the palm, and each target is where the other one lies.
static void balls(void **state) {
  (void)state;
  Fixture x;
  if (!open_fixture(&x, "hand_balls", 0)) skip();
  const SnModel *m = sn_planner_model(x.p);
  const SnState *s = sn_planner_initial(x.p);
  const sn_real *ball[2];
  for (int k = 0; k < 2; ++k) {
    const int b = sn_model_find(m, SN_NAME_BODY, k ? "ball2" : "ball1");
    ball[k] = s->qpos + m->jnt_qposadr[m->body_jntadr[b]];
  }
  double apart = 0;
  for (int k = 0; k < 3; ++k) apart += (double)((ball[0][k] - ball[1][k]) * (ball[0][k] - ball[1][k]));
  apart = sqrt(apart);
  const SnEvaluation e = evaluate_initial(&x);
  assert_true(fabs(e.cost - 2 * apart) < 1e-5);
  assert_true(fabs(e.term[0] - apart) < 1e-5 && fabs(e.measure[1] - apart) < 1e-5);
  assert_true(apart > 0.04 && apart < 0.1);
  assert_true(s->time == 0 && fabs((double)m->opt.timestep - 0.0025) < 1e-9);
  // The same by MuJoCo with the task's contacts: 40 steps under zero control, palm up.
  mj_resetData(x.o.mj, x.o.d);
  for (int g = 0; g < x.o.mj->ngeom; ++g) {
    memcpy(x.o.mj->geom_solref + mjNREF * g, x.task->options.solref, mjNREF * sizeof(mjtNum));
    memcpy(x.o.mj->geom_solimp + mjNIMP * g, x.task->options.solimp, mjNIMP * sizeof(mjtNum));
  }
  x.o.d->qpos[x.o.mj->jnt_qposadr[mj_name2id(x.o.mj, mjOBJ_JOINT, "pro_sup")]] = -1.57;
  for (int k = 0; k < 40; ++k) mj_step(x.o.mj, x.o.d);
  const double *their[2];
  for (int k = 0; k < 2; ++k) their[k] = x.o.d->xpos + 3 * mj_name2id(x.o.mj, mjOBJ_BODY, k ? "ball2" : "ball1");
  mj_kinematics(x.o.mj, x.o.d);
  for (int k = 0; k < 2; ++k)
    for (int i = 0; i < 3; ++i) assert_true(fabs((double)ball[k][i] - their[k][i]) < 1e-4);
  close_fixture(&x);
}

static void pose(void **state) {
  (void)state;
  Fixture x;
  if (!open_fixture(&x, "hand_pose", 0)) skip();
  // The key of the reference pose: joints one by one, in the order of the model.
  const SnModel *m = sn_planner_model(x.p);
  const SnTerm *fingers = &x.task->term[0];
  assert_int_equal(fingers->residual.nname, 20);
  sn_real *qpos = calloc((size_t)m->nq, sizeof *qpos);
  memcpy(qpos, sn_planner_initial(x.p)->qpos, sizeof *qpos * (size_t)m->nq);
  for (int k = 0; k < 20; ++k) {
    const int j = sn_model_find(m, SN_NAME_JNT, fingers->residual.name[k]);
    qpos[m->jnt_qposadr[j]] = (sn_real)fingers->target.value[k];
    assert_true(fingers->target.value[k] >= (double)m->jnt_range[2 * j] - 1e-3 &&
                fingers->target.value[k] <= (double)m->jnt_range[2 * j + 1] + 1e-3);
  }
  const SnEvaluateRequest q = {
      .qpos = qpos, .qvel = sn_planner_initial(x.p)->qvel, .act = sn_planner_initial(x.p)->act};
  SnEvaluation e;
  SnError err = {0};
  assert_int_equal(sn_planner_evaluate(x.p, &q, INFINITY, &e, &err), SN_OK);
  assert_true(e.term[0] < 1e-9 && e.met[0] && !evaluate_initial(&x).met[0]);
  free(qpos);
  close_fixture(&x);
}

// A hand that does nothing does not touch the ball, and misses it by 5 cm at least.
static void catch_misses(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed <= 5; ++seed) {
    Fixture x;
    if (!open_fixture(&x, "ball_catch", seed)) skip();
    SnError err = {0};
    enum { STEPS = 256 };
    const SnModel *m = sn_planner_model(x.p);
    const SnState *s = sn_planner_initial(x.p);
    sn_real *ctrl = calloc((size_t)(STEPS * m->nu), sizeof *ctrl);
    sn_real cost[STEPS + 1];
    double nearest = INFINITY;
    const SnEvaluateRequest q = {
        .qpos = s->qpos, .qvel = s->qvel, .act = s->act, .nstep = STEPS, .ctrl = ctrl, .states = {.cost = cost}};
    SnEvaluation e;
    assert_int_equal(sn_planner_evaluate(x.p, &q, INFINITY, &e, &err), SN_OK);
    for (int t = 0; t < STEPS; ++t) nearest = fmin(nearest, (double)cost[t]);
    printf("ball_catch, seed %d: zero control misses by %.3f m\n", (int)seed, nearest);
    assert_true(nearest > 0.05 && cost[STEPS - 1] > 0.3);
    free(ctrl);
    close_fixture(&x);
  }
}

// By MuJoCo: under the plan that the task begins with nothing touches the ball while a plan looks ahead. So the cost
// does not depend on any control there, and its gradient is zero; that with contacts from distance is not.
static void needs_contacts_from_distance(const char *task, const char *body) {
  for (uint64_t seed = 0; seed <= 2; ++seed) {
    Fixture x;
    if (!open_fixture(&x, task, seed)) skip();
    mjModel *m = x.o.mj;
    mjData *d = x.o.d;
    const SnState *s = sn_planner_initial(x.p);
    mj_resetData(m, d);
    for (int i = 0; i < m->nq; ++i) d->qpos[i] = (double)s->qpos[i];
    for (int i = 0; i < m->nv; ++i) d->qvel[i] = (double)s->qvel[i];
    for (int i = 0; i < m->na; ++i) d->act[i] = (double)s->act[i];
    sn_real ctrl[128];
    assert_true(m->nu <= 128);
    sn_task_initial_plan(x.task, sn_planner_model(x.p), seed, ctrl);
    for (int i = 0; i < m->nu; ++i) d->ctrl[i] = (double)ctrl[i];
    const int ball = m->body_geomadr[mj_name2id(m, mjOBJ_BODY, body)];
    for (int k = 0; k < 256; ++k) {
      mj_step(m, d);
      for (int c = 0; c < d->ncon; ++c) assert_true(d->contact[c].geom[0] != ball && d->contact[c].geom[1] != ball);
    }
    SnError err = {0};
    SnSettings settings = x.task->settings;
    settings.adam_iterations = 1;
    for (int cfd = 0; cfd < 2; ++cfd) {
      settings.cfd = cfd ? SN_CFD_BACKWARD : SN_CFD_NONE;
      assert_int_equal(sn_planner_configure(x.p, &settings, &err), SN_OK);
      const SnPlanRequest r = request_of(x.p, 0);
      const SnPlan plan = plan_of(x.p, &r);
      printf("%s, seed %d, cfd %d: norm of the gradient %g\n", task, (int)seed, cfd, plan.gradient_norm);
      assert_true(cfd ? plan.gradient_norm > 1e-3 : plan.gradient_norm == 0);
    }
    close_fixture(&x);
  }
}

static void tennis_needs_contacts_from_distance(void **state) {
  (void)state;
  needs_contacts_from_distance("bionic_tennis", "ball");
}

static void catch_needs_contacts_from_distance(void **state) {
  (void)state;
  needs_contacts_from_distance("ball_catch_still", "ball1");
}

// The built-in arm: two joints, six muscles, moment arms of the sign that a muscle's name says.
static void arm(void **state) {
  (void)state;
  Fixture x;
  assert_true(open_fixture(&x, "arm_reach", 0));
  const SnModel *m = x.o.m;
  assert_true(m->nv == 2 && m->nu == 6 && m->na == 6 && m->nwrap >= 18);
  const struct {
    const char *name;
    int shoulder, elbow;  // 1: bends forwards, -1: back
  } muscles[] = {{"delt_ant", 1, 0},     {"delt_post", -1, 0}, {"brachialis", 0, 1},
                 {"triceps_lat", 0, -1}, {"biceps", 1, 1},     {"triceps_long", -1, -1}};
  for (int k = 0; k < 200; ++k) {
    sn_oracle_randomize(&x.o, 0);
    mj_forward(x.o.mj, x.o.d);
    for (int i = 0; i < 6; ++i) {
      const int t = mj_name2id(x.o.mj, mjOBJ_TENDON, muscles[i].name),
                wanted[2] = {muscles[i].shoulder, muscles[i].elbow};
      const double length = x.o.d->ten_length[t];
      assert_true(length >= x.o.mj->actuator_lengthrange[2 * i] - 1e-3 &&
                  length <= x.o.mj->actuator_lengthrange[2 * i + 1] + 1e-3);
      double arm_of[2] = {0, 0};
      for (int e = x.o.mj->ten_J_rowadr[t]; e < x.o.mj->ten_J_rowadr[t] + x.o.mj->ten_J_rownnz[t]; ++e)
        arm_of[x.o.mj->ten_J_colind[e]] = -x.o.d->ten_J[e];
      for (int j = 0; j < 2; ++j) {
        if (wanted[j] == 0)
          assert_true(fabs(arm_of[j]) < 1e-9);
        else
          assert_true(wanted[j] * arm_of[j] > 0.005 && wanted[j] * arm_of[j] < 0.06);
      }
    }
  }
  close_fixture(&x);
}

// A planner of the task with other settings and another time step.
static void plan_anew(Fixture *x, uint64_t seed, double timestep, const SnSettings *settings) {
  SnError err = {0};
  sn_planner_free(x->p);
  x->task->options.has_timestep = true;
  x->task->options.timestep = timestep;
  SnPlannerDef def = sn_default_planner_def();
  def.model = x->o.m;
  def.task = x->task;
  def.backend = x->backend;
  def.settings = *settings;
  def.seed = seed;
  x->p = sn_planner_create(&def, &err);
  if (!x->p) fail_msg("%s", err.text);
}

// Plans in lockstep, `rows` of each executed by our own engine: predicted states are those of the body. Returns the
// worst value of the first measure from plan `from` on.
static double lockstep(Fixture *x, int plans, int rows, int from, int iterations) {
  SnError err = {0};
  const SnModel *m = sn_planner_model(x->p);
  const SnState *s = sn_planner_initial(x->p);
  const double h = (double)m->opt.timestep;
  const size_t nq = (size_t)m->nq, nv = (size_t)m->nv, na = (size_t)m->na;
  sn_real *qpos = calloc(nq + nv + na + 1, sizeof *qpos), *qvel = qpos + nq, *act = qvel + nv;
  memcpy(qpos, s->qpos, sizeof *qpos * nq);
  memcpy(qvel, s->qvel, sizeof *qvel * nv);
  memcpy(act, s->act, sizeof *act * na);
  double worst = 0;
  for (int k = 0; k < plans; ++k) {
    SnPlanRequest r = sn_default_plan_request();
    SnPlan plan;
    r.time = rows * k * h;
    r.qpos = qpos;
    r.qvel = qvel;
    r.act = act;
    r.max_iterations = iterations;
    r.want_states = true;
    assert_int_equal(sn_planner_plan(x->p, &r, &plan, &err), SN_OK);
    assert_true(plan.step == h && plan.cost_after <= plan.cost_before && plan.qpos != NULL);
    memcpy(qpos, plan.qpos + (size_t)rows * nq, sizeof *qpos * nq);
    memcpy(qvel, plan.qvel + (size_t)rows * nv, sizeof *qvel * nv);
    memcpy(act, plan.act + (size_t)rows * na, sizeof *act * na);
    const SnEvaluateRequest q = {.time = r.time + rows * h, .qpos = qpos, .qvel = qvel, .act = act};
    SnEvaluation e;
    assert_int_equal(sn_planner_evaluate(x->p, &q, INFINITY, &e, &err), SN_OK);
    if (k >= from) worst = sn_larger(worst, e.measure[0]);
  }
  free(qpos);
  return worst;
}

// The arm follows the moving point, our own engine being the body: in its last second within 2 cm, by two iterations of
// sampling a plan.
static void arm_follows(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    Fixture x;
    assert_true(open_fixture(&x, "arm_reach", seed));
    SnError err = {0};
    SnSettings sampling = x.task->settings;
    sampling.planner = SN_PLANNER_SAMPLING;
    assert_int_equal(sn_planner_configure(x.p, &sampling, &err), SN_OK);
    const double worst = lockstep(&x, 150, 4, 100, 2);
    printf("arm_reach, seed %d: %.4f m at most in the last second\n", (int)seed, worst);
    assert_true(worst < 0.02);
    close_fixture(&x);
  }
}

// Robots with motors, our own engine being the body: the arm of two links reaches its point to 15 mm, the half-cheetah
// runs after one second, as fast as it shall within 1 m/s.
static void robots(void **state) {
  (void)state;
  const struct {
    const char *task;
    int plans, rows, from;
    double wanted;
  } cases[] = {{"reacher", 50, 2, 40, 0.015}, {"half_cheetah", 35, 4, 25, 1}};
  for (int i = 0; i < 2; ++i) {
    Fixture x;
    if (!open_fixture(&x, cases[i].task, 1)) continue;
    const double worst = lockstep(&x, cases[i].plans, cases[i].rows, cases[i].from, 0);
    printf("%s: %.4f at most at the end\n", cases[i].task, worst);
    assert_true(worst < cases[i].wanted);
    close_fixture(&x);
  }
}

// The pole hangs at first; a closed loop with MuJoCo as the body swings it up and holds it there.
static void cart_pole(void **state) {
  (void)state;
  enum { PLANS = 75, EXECUTE = 4, HELD = 25 };
  Fixture x;
  if (!open_fixture(&x, "cart_pole", 1)) fail();
  SnError err = {0};
  mjModel *m = x.o.mj;
  mjData *d = x.o.d;
  const SnState *s = sn_planner_initial(x.p);
  const int tip = mj_name2id(m, mjOBJ_SITE, "tip");
  double worst = 0;
  mj_resetData(m, d);
  for (int i = 0; i < m->nq; ++i) d->qpos[i] = (double)s->qpos[i];
  mj_forward(m, d);
  assert_true(d->site_xpos[3 * tip + 2] < 0.05);
  for (int k = 0; k < PLANS; ++k) {
    sn_real qpos[2] = {(sn_real)d->qpos[0], (sn_real)d->qpos[1]}, qvel[2] = {(sn_real)d->qvel[0], (sn_real)d->qvel[1]};
    SnPlanRequest r = sn_default_plan_request();
    SnPlan plan;
    r.time = d->time;
    r.qpos = qpos;
    r.qvel = qvel;
    assert_int_equal(sn_planner_plan(x.p, &r, &plan, &err), SN_OK);
    for (int i = 0; i < EXECUTE; ++i) {
      d->ctrl[0] = (double)plan.ctrl[i];
      mj_step(m, d);
    }
    mj_forward(m, d);
    const double *at = d->site_xpos + 3 * tip;
    if (k >= PLANS - HELD) worst = sn_larger(worst, sqrt(at[0] * at[0] + pow(at[2] - 2, 2)));
  }
  printf("cart_pole: %.4f m off over the last second\n", worst);
  assert_true(worst < 0.1);
  close_fixture(&x);
}

// The same with a body whose time step is half the planner's, by either planner.
static void arm_follows_on_a_grid(void **state) {
  (void)state;
  for (int planner = SN_PLANNER_SAMPLING; planner <= SN_PLANNER_ADAM; ++planner) {
    Fixture x;
    assert_true(open_fixture(&x, "arm_reach", 1));
    SnSettings s = x.task->settings;
    s.planner = planner;
    s.horizon = 96;
    snprintf(s.grid, sizeof s.grid, "48x2");
    plan_anew(&x, 1, 0.0025, &s);
    const double worst = lockstep(&x, 100, 8, 60, planner == SN_PLANNER_ADAM ? 6 : 2);
    printf("arm_reach at 2.5 ms, planned at 5 ms: %.4f m at most in the last 0.8 s\n", worst);
    assert_true(worst < 0.02);
    close_fixture(&x);
  }
}

// The hand with its balls, planned at 5 ms with a body at 2.5 ms: gradients of long steps lead down the cost of a body
// that has short ones.
static void balls_on_a_grid(void **state) {
  (void)state;
  Fixture x;
  if (!open_fixture(&x, "hand_balls", 1)) skip();
  SnSettings s = x.task->settings;
  assert_int_equal(s.horizon, 256);
  s.planner = SN_PLANNER_ADAM;
  s.adam_moments = SN_MOMENTS_KEPT;
  s.adam_rate = 0.02;
  s.adam_clip_norm = 0.01;
  snprintf(s.grid, sizeof s.grid, "128x2");
  plan_anew(&x, 1, 0.0025, &s);
  SnError err = {0};
  SnPlan plan;
  const SnState *start = sn_planner_initial(x.p);
  SnPlanRequest r = sn_default_plan_request();
  r.qpos = start->qpos;
  r.qvel = start->qvel;
  r.act = start->act;
  r.max_iterations = 6;
  double cost[2];
  for (int k = 0; k < 2; ++k) {
    assert_int_equal(sn_planner_plan(x.p, &r, &plan, &err), SN_OK);
    const SnEvaluateRequest q = {.qpos = r.qpos, .qvel = r.qvel, .act = r.act, .nstep = plan.nstep, .ctrl = plan.ctrl};
    SnEvaluation e;
    assert_true(plan.nstep == 256 && plan.cost_after < plan.cost_before);
    assert_int_equal(sn_planner_evaluate(x.p, &q, INFINITY, &e, &err), SN_OK);
    cost[k] = e.cost;
    printf("hand_balls: %.4f -> %.4f on the grid, %.4f at 2.5 ms\n", plan.cost_before, plan.cost_after, cost[k]);
  }
  assert_true(cost[1] < cost[0]);
  close_fixture(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_load),
                                     cmocka_unit_test(cart_pole),
                                     cmocka_unit_test(balls),
                                     cmocka_unit_test(pose),
                                     cmocka_unit_test(catch_misses),
                                     cmocka_unit_test(arm),
                                     cmocka_unit_test(arm_follows),
                                     cmocka_unit_test(arm_follows_on_a_grid),
                                     cmocka_unit_test(balls_on_a_grid),
                                     cmocka_unit_test(robots),
                                     cmocka_unit_test(tennis_needs_contacts_from_distance),
                                     cmocka_unit_test(catch_needs_contacts_from_distance)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
