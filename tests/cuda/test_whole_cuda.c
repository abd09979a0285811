// Plans through everything that an NVIDIA device has, but for the machine code of its kernels: device_cuda.c on the
// tests' CUDA runtime, which runs the kernels' bodies on one lane. So they are the CPU's, bit for bit.
#include "tests/cuda/plugin_fixture.h"
#include "tests/planner/plans.h"

// Two plans of a few steps, the second from a shifted warm start; what they are, into ctrl and cost.
static void plan(const Scene *x, SnBackend *b, int planner, int method, sn_real *ctrl, double *cost) {
  SnError err = {0};
  SnPlannerDef def = sn_default_planner_def();
  def.model = x->o.m;
  def.task = x->task;
  def.backend = b;
  def.settings = x->task->settings;
  def.settings.planner = planner;
  def.settings.gradient = method;
  def.settings.horizon = 24;
  def.settings.candidates = 5;
  def.settings.adam_starts = 3;
  def.settings.adam_rate = 0.05;
  def.seed = 7;
  SnPlanner *p = sn_planner_create(&def, &err);
  if (!p) fail_msg("%s", err.text);
  for (int i = 0; i < 2; ++i) {
    SnPlanRequest r = request_of(p, sn_planner_initial(p)->time + 3 * i * (double)sn_planner_model(p)->opt.timestep);
    r.max_iterations = 6;
    const SnPlan plan = plan_of(p, &r);
    assert_int_equal(plan.status, SN_PLAN_OK);
    assert_int_equal(plan.iterations, 6);
    assert_true(plan.cost_after < plan.cost_before);
    cost[i] = plan.cost_after;
    memcpy(ctrl, plan.ctrl, sizeof *ctrl * (size_t)plan.nstep * (size_t)plan.nu);
  }
  sn_planner_free(p);
}

static void plans_are_those_of_the_cpu(void **state) {
  (void)state;
  static const char *const chains[] = {"kernel", "scan"};
  const struct {
    int planner, method;
  } ways[] = {{SN_PLANNER_SAMPLING, 0}, {SN_PLANNER_ADAM, SN_GRADIENT_SWEEP}, {SN_PLANNER_ADAM, SN_GRADIENT_PRODUCTS}};
  Scene x;
  if (!scene_open(&x, "arm_reach")) skip();
  const size_t n = 24 * (size_t)x.m->nu;
  sn_real *want = calloc(n, sizeof *want), *got = calloc(n, sizeof *got);
  for (size_t c = 0; c < 2; ++c) {
    SnError err = {0};
    SnBackendOptions options = sn_default_backend_options();
    options.folder = SN_TEST_LIBRARIES;
    options.chain = chains[c];
    SnBackend *b = sn_backend_open("fake_cuda", NULL, &options, &err);
    if (!b) fail_msg("%s", err.text);
    char text[300];
    sn_backend_describe(b, text, sizeof text);
    printf("%s\n", text);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
      double cost[2][2];
      plan(&x, x.cpu, ways[i].planner, ways[i].method, want, cost[0]);
      plan(&x, b, ways[i].planner, ways[i].method, got, cost[1]);
      // Products by a scan differ by rounding.
      const bool scans = c == 1 && ways[i].planner == SN_PLANNER_ADAM && ways[i].method == SN_GRADIENT_PRODUCTS;
      printf("planner %d, method %d, chain %s: cost %.17g, the CPU's %.17g\n", ways[i].planner, ways[i].method,
             chains[c], cost[1][1], cost[0][1]);
      if (!scans) assert_memory_equal(want, got, sizeof *want * n);
      for (int k = 0; k < 2; ++k) assert_true(fabs(cost[0][k] - cost[1][k]) <= (scans ? 1e-9 : 0) * fabs(cost[0][k]));
    }
    sn_backend_free(b);
  }
  free(want);
  free(got);
  scene_close(&x);
}

int main(void) {
  printf("seed 7\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(plans_are_those_of_the_cpu)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
