// Contacts from distance in a planner: a pusher that does not touch its ball learns of it, rollouts stay as they are.
#include <math.h>
#include <stdio.h>

#include "planner/planner.h"
#include "planner/rollout/cfd.h"
#include "tests/support/oracle.h"

// A motor moves a pusher along x; a ball lies 10 cm before it and 3 cm off its line, another aside.
static const char kScene[] =
    "<mujoco><option gravity='0 0 0' timestep='.005'/><worldbody>"
    "<body name='pusher'><joint name='x' type='slide' axis='1 0 0' damping='1'/><geom size='.05' mass='1'/></body>"
    "<body name='ball' pos='.2 .03 0'><joint name='b' type='slide' axis='1 0 0' damping='1'/><geom size='.05' "
    "mass='.5'/>"
    "<body name='rider' pos='0 0 .2'><geom size='.02' mass='.01' contype='0' conaffinity='0'/></body></body>"
    "<body name='other' pos='0 1 0'><joint type='slide' axis='1 0 0'/><geom size='.05' mass='.5'/></body>"
    "</worldbody><actuator><motor joint='x' ctrlrange='-20 20' ctrllimited='true'/></actuator></mujoco>";

static const char kTask[] =
    "description: push\nmodel: scene.xml\ncfd_bodies: %s\n"
    "settings: {planner: adam, horizon: 60, adam_iterations: 12, adam_rate: 0.1, cfd_reach: 0.5}\n"
    "terms:\n  - {name: ball, residual: {position: {body: ball}}, target: {value: [0.5, 0.03, 0]}, norm: squared, "
    "weight: "
    "1, "
    "terminal: 1}\nsuccess:\n  - {name: there, term: ball, below: 0.01}\n";

typedef struct Fixture {
  SnOracle o;
  SnTask *task;
  SnPool *pool;
  SnBackend *backend;
  SnPlanner *p;
} Fixture;

static void open_fixture(Fixture *x, const char *bodies, const char *cfd) {
  SnError err = {0};
  char text[2048];
  snprintf(text, sizeof text, kTask, bodies);
  sn_oracle_load_string(&x->o, kScene);
  x->task = sn_task_parse(text, strlen(text), "push.yaml", &err);
  if (!x->task) fail_msg("%s", err.text);
  x->pool = sn_pool_create(1, &err);
  x->backend = sn_backend_cpu(x->pool, &err);
  SnPlannerDef def = sn_default_planner_def();
  def.model = x->o.m;
  def.task = x->task;
  def.backend = x->backend;
  def.settings = x->task->settings;
  assert_int_equal(sn_settings_set_name(&def.settings, sn_settings_find("cfd"), cfd, &err), SN_OK);
  if (!(x->p = sn_planner_create(&def, &err))) fail_msg("%s", err.text);
}

static void close_fixture(Fixture *x) {
  sn_planner_free(x->p);
  sn_backend_free(x->backend);
  sn_pool_free(x->pool);
  sn_task_free(x->task);
  sn_oracle_free(&x->o);
}

// One plan from the start.
static SnPlan plan(Fixture *x) {
  SnError err = {0};
  SnPlanRequest q = sn_default_plan_request();
  const SnState *s = sn_planner_initial(x->p);
  q.qpos = s->qpos;
  q.qvel = s->qvel;
  q.act = s->act;
  SnPlan result;
  if (sn_planner_plan(x->p, &q, &result, &err) != SN_OK) fail_msg("%s", err.text);
  return result;
}

static void gradient_at_a_distance(void **state) {
  (void)state;
  Fixture plain, cfd, forward;
  open_fixture(&plain, "[]", "none");
  open_fixture(&cfd, "[]", "cfd");
  open_fixture(&forward, "[]", "cfd_forward");
  const SnPlan a = plan(&plain), b = plan(&cfd), c = plan(&forward);
  // without contact the motor has no effect on the ball
  assert_true(a.gradient_norm == 0);
  assert_true(a.cost_after == a.cost_before);
  // the first rollout is the same, bit for bit, and the derivative leads towards the ball
  assert_true(b.cost_before == a.cost_before);
  assert_true(b.cost_after < b.cost_before);
  double mean = 0;
  for (int t = 0; t < 20; ++t) mean += (double)b.ctrl[t];
  assert_true(mean > 0);
  // rollouts with CFD are others, if only a little while nothing moves
  assert_true(fabs(c.cost_before - a.cost_before) < 1e-6);
  assert_true(c.cost_after < c.cost_before && c.cost_after != b.cost_after);
  printf("cost %.4f; from a distance %.4f; hovering %.4f\n", a.cost_after, b.cost_after, c.cost_after);
  close_fixture(&plain);
  close_fixture(&cfd);
  close_fixture(&forward);
}

// A model whose pairs are too many to list cannot look at all of them; one with contacts of the sigmoid has others.
static void refused_models(void **state) {
  (void)state;
  SnError err = {0};
  SnModel m = {.unlisted = 1};
  SnSettings s = {.cfd = SN_CFD_NONE};
  assert_int_equal(sn_cfd_check(&m, &s, &err), SN_OK);
  s.cfd = SN_CFD_FORWARD;
  assert_int_equal(sn_cfd_check(&m, &s, &err), SN_ERR_UNSUPPORTED);
  assert_non_null(strstr(err.text, "switch cfd off"));
  m.unlisted = 0;
  assert_int_equal(sn_cfd_check(&m, &s, &err), SN_OK);
  m.opt.contact = SN_CONTACT_SIGMOID;
  assert_int_equal(sn_cfd_check(&m, &s, &err), SN_ERR_UNSUPPORTED);
  assert_non_null(strstr(err.text, "option 'contact' of the model is sigmoid"));
  s.cfd = SN_CFD_NONE;
  assert_int_equal(sn_cfd_check(&m, &s, &err), SN_OK);
}

static int taking_part(Fixture *x, int *all) {
  SnError err = {0};
  unsigned char *pair = sn_cfd_pairs(x->task, x->o.m, &err);
  int n = 0;
  *all = x->o.m->ncpair;
  for (int i = 0; i < *all; ++i) n += pair[i];
  free(pair);
  return n;
}

static void named_bodies(void **state) {
  (void)state;
  static const struct {
    const char *names;
    int pairs;
  } cases[] = {{"[]", 3}, {"ball", 2}, {"[ball, other]", 3}, {"rider", 0}, {"[rider, pusher]", 2}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    Fixture x;
    int all;
    open_fixture(&x, cases[i].names, "cfd");
    assert_int_equal(taking_part(&x, &all), cases[i].pairs);
    assert_int_equal(all, 3);
    close_fixture(&x);
  }
  SnError err = {0};
  static const char text[] =
      "description: d\nmodel: m\ncfd_bodies: ridr\nterms:\n  - {name: a, residual: {control: all}}\n";
  SnTask *task = sn_task_parse(text, sizeof text - 1, "bad.yaml", &err);
  assert_non_null(task);
  SnOracle o;
  sn_oracle_load_string(&o, kScene);
  assert_null(sn_cfd_pairs(task, o.m, &err));
  assert_string_equal(err.text,
                      "bad.yaml:3:13: cfd_bodies: the model has no body 'ridr', it has world, pusher, ball, rider, "
                      "other; did you mean 'rider'?");
  sn_oracle_free(&o);
  sn_task_free(task);
}

// The plan of some iterations with a rule for how contact points move in gradients.
static SnPlan plan_by(Fixture *x, const char *rule, int iterations) {
  SnError err = {0};
  SnSettings s = *sn_planner_settings(x->p);
  s.adam_iterations = iterations;
  assert_int_equal(sn_settings_set_name(&s, sn_settings_find("contact_gradient"), rule, &err), SN_OK);
  assert_int_equal(sn_planner_configure(x->p, &s, &err), SN_OK);
  return plan(x);
}

// Points carried rigidly: at rest, where no contact pushes yet, that is the same; on the way it is another gradient.
static void surrogate(void **state) {
  (void)state;
  for (int iterations = 1; iterations <= 8; iterations += 7) {
    Fixture a, b;
    open_fixture(&a, "[]", "cfd");
    open_fixture(&b, "[]", "cfd");
    const SnPlan exact = plan_by(&a, "exact", iterations), crude = plan_by(&b, "surrogate", iterations);
    printf("%d iterations: cost %.9g, with the surrogate %.9g\n", iterations, exact.cost_after, crude.cost_after);
    assert_true(exact.cost_before == crude.cost_before);
    assert_true((exact.cost_after == crude.cost_after) == (iterations == 1));
    close_fixture(&a);
    close_fixture(&b);
  }
}

// The step of the impedance at touch.
static void jump(void **state) {
  (void)state;
  Fixture x;
  open_fixture(&x, "[]", "cfd");
  SnSettings s = x.task->settings;
  s.cfd_touch = 0.9;  // MuJoCo's solimp[0]
  SnCfdSettings cfd = sn_cfd_settings(&s, NULL, true);
  assert_true(sn_cfd_jump(x.o.m, &cfd) < 1e-6);
  s.cfd_touch = 0.4;
  cfd = sn_cfd_settings(&s, NULL, true);
  assert_true(fabs(sn_cfd_jump(x.o.m, &cfd) - 0.5) < 1e-6);
  close_fixture(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gradient_at_a_distance), cmocka_unit_test(named_bodies),
                                     cmocka_unit_test(refused_models), cmocka_unit_test(surrogate),
                                     cmocka_unit_test(jump)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
