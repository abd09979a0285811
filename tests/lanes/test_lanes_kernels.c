// Every kernel on several lanes: the bits of one lane, in all that kernels write. Sampling with noise in slices,
// gradients by worlds in chunks, by Jacobians, with CFD too, multistarts by Adam, marks.
#include <stdlib.h>

#include "clients/reference/probe_task.h"
#include "planner/optimize/sampling.h"
#include "tests/cuda/kernels/kernel_fixture.h"
#include "tests/support/small_models.h"

// What is done with a fixture, and by how many blocks.
typedef struct Work {
  void (*run)(SnKernelFixture *x);
  int steps, blocks, states;
  bool own, bars, products, multistart, cfd;
} Work;

static void sample(SnKernelFixture *x) { sn_fixture_sample(x, 2); }
static void sweep(SnKernelFixture *x) { sn_fixture_gradient(x, SN_FIXTURE_SWEEP); }
static void products(SnKernelFixture *x) { sn_fixture_gradient(x, SN_FIXTURE_PRODUCTS); }
// The second iteration has moments of the first. On lanes come launches after the end, which do nothing.
static void multistart(SnKernelFixture *x) {
  sn_fixture_multistart(x, 2);
  if (x->s.lanes == 1) return;
  sn_fixture_launch(x, SN_KERNEL_ITERATE, 0, 0);
  sn_fixture_launch(x, SN_KERNEL_SELECT, 0, 0);
}
// One item diverges; one takes no part, and stays as it is.
static void lose_one(SnKernelFixture *x) {
  x->gradient[0].rollout.max_velocity = SN_R(1e-9);
  x->gradient[1].active = 0;
  x->gradient[1].status = 77;
  x->gradient[1].vjp.ctrl_bar[0] = 77;
  sn_fixture_gradient(x, SN_FIXTURE_SWEEP);
  assert_true(x->gradient[1].status == 77 && x->gradient[1].vjp.ctrl_bar[0] == 77);
}
static void measure(SnKernelFixture *x) {
  x->work.marks = x->marks = calloc((size_t)x->s.blocks * SN_NMARK, sizeof *x->marks);
  sn_fixture_sample(x, 1);
  assert_true(x->marks[SN_MARK_SOLVER] > 0);
}

static const SnCfd far_contacts = {
    .on = 1, .friction = 1, .solimp = {SN_R(0.0), SN_R(0.9), SN_R(0.2), SN_R(0.5), 2}, .width = SN_R(0.01)};

static void compare(SnOracle *o, const SnCost *cost, const Work *work, const int *lanes) {
  SnKernelFixture one, many;
  SnFixtureSettings settings = {.m = o->m,
                                .cost = cost,
                                .at = &o->w,
                                .steps = work->steps,
                                .candidates = 3,
                                .states = work->states,
                                .blocks = work->blocks,
                                .lanes = 1,
                                .own = work->own,
                                .bars = work->bars,
                                .products = work->products,
                                .multistart = work->multistart,
                                .max_velocity = 1000};
  if (work->cfd) settings.cfd = far_contacts;
  sn_fixture_make(&one, &settings);
  work->run(&one);
  for (; *lanes; ++lanes) {
    settings.lanes = *lanes;
    sn_fixture_make(&many, &settings);
    work->run(&many);
    sn_fixture_same(&one, &many);
    sn_fixture_free(&many);
  }
  sn_fixture_free(&one);
}

// Numbers of lanes, 0 at the end. More than a warp's 32, and than the parts of a sum, take ways of their own: all
// works have them, on the first model.
static const int some[] = {5, 0}, many[] = {2, 32, 40, 0};

// All works on a model, with a task that looks at all that moves in it.
static void compare_model(SnOracle *o, const Work *work, int n, const int *lanes) {
  char text[2000];
  SnError err = {0};
  SnCost *cost = NULL;
  assert_true(sn_probe_task(o->m, text, sizeof text));
  SnTask *task = sn_task_parse(text, strlen(text), "checked.yaml", &err);
  if (task) cost = sn_cost_create(task, o->m, &err);
  if (!cost) fail_msg("%s", err.text);
  for (int k = 0; k < n; ++k) {
    if (work[k].multistart && o->m->nu == 0) continue;
    compare(o, cost, &work[k], lanes);
  }
  sn_cost_free(cost);
  sn_task_free(task);
}

static void small_models(void **state) {
  (void)state;
  static const Work works[] = {{.run = sample, .steps = 3, .blocks = 2, .states = 1},
                               {.run = sample, .steps = 3, .blocks = 2, .states = 1, .own = true},
                               {.run = sweep, .steps = 3, .blocks = 2, .states = 2},
                               {.run = sweep, .steps = 3, .blocks = 1, .states = 4, .bars = true, .cfd = true},
                               {.run = products, .steps = 2, .blocks = 1, .states = 3, .products = true},
                               {.run = products, .steps = 2, .blocks = 2, .states = 3, .bars = true, .products = true},
                               {.run = multistart, .steps = 3, .blocks = 2, .states = 4, .multistart = true},
                               {.run = lose_one, .steps = 3, .blocks = 1, .states = 4},
                               {.run = measure, .steps = 2, .blocks = 1, .states = 1}};
  for (int i = 0; i < SN_SMALL_MODELS; ++i) {
    SnOracle o;
    sn_oracle_load_string(&o, sn_small_model(i));
    sn_oracle_randomize(&o, 1);
    sn_oracle_copy_state(&o);
    compare_model(&o, works, sizeof works / sizeof *works, i == 0 ? many : some);
    sn_oracle_free(&o);
  }
}

static void myohand(void **state) {
  (void)state;
  static const Work works[] = {{.run = sample, .steps = 1, .blocks = 1, .states = 1},
                               {.run = multistart, .steps = 2, .blocks = 1, .states = 2, .multistart = true}};
  SnOracle o;
  sn_oracle_load_myosuite(&o, "envs/myo/assets/hand/myohand_baoding.xml");
  sn_oracle_copy_state(&o);
  compare_model(&o, works, sizeof works / sizeof *works, some);
  sn_oracle_free(&o);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(small_models), cmocka_unit_test(myohand)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
