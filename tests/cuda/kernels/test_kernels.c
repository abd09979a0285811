// Bodies of kernels on one lane: the bits of the planner's own rollouts and gradients, however the work is cut into
// blocks, slices and chunks, in shared or global memory; what fails says so.
#include <math.h>
#include <stdlib.h>

#include "clients/reference/probe_task.h"
#include "planner/rollout/gradient.h"
#include "planner/optimize/sampling.h"
#include "tests/cuda/kernels/kernel_fixture.h"
#include "tests/support/small_models.h"

static const SnCfd far_contacts = {
    .on = 1, .friction = 1, .solimp = {SN_R(0.0), SN_R(0.9), SN_R(0.2), SN_R(0.5), 2}, .width = SN_R(0.01)};

// Returns contacts from distance as they are asked for.
static SnCfdSettings settings_of(const SnCfd *c) {
  SnCfdSettings s = {.on = c->on,
                     .surrogate = c->surrogate,
                     .friction = c->friction,
                     .width = (double)c->width,
                     .smooth = (double)c->smooth,
                     .pair = c->pair};
  for (int k = 0; k < SN_NIMP; ++k) s.solimp[k] = (double)c->solimp[k];
  return s;
}

// A model with contacts, a task that looks at all that moves, a state.
typedef struct Scene {
  SnOracle o;
  SnTask *task;
  SnCost *cost;
  SnFixtureSettings settings;
} Scene;

static void make_scene_with(Scene *s, int model, const char *term) {
  char text[1000];
  SnError err = {0};
  memset(s, 0, sizeof *s);
  sn_oracle_load_string(&s->o, sn_small_model(model));
  assert_true(sn_probe_task(s->o.m, text, sizeof text));
  strcat(text, term);
  s->task = sn_task_parse(text, strlen(text), "checked.yaml", &err);
  if (s->task) s->cost = sn_cost_create(s->task, s->o.m, &err);
  if (!s->cost) fail_msg("%s", err.text);
  sn_oracle_randomize(&s->o, 1);
  sn_oracle_copy_state(&s->o);
  s->settings = (SnFixtureSettings){.m = s->o.m,
                                    .cost = s->cost,
                                    .at = &s->o.w,
                                    .steps = 6,
                                    .candidates = 5,
                                    .states = 7,
                                    .blocks = 1,
                                    .lanes = 1,
                                    .max_velocity = 1000};
}

static void make_scene(Scene *s, int model) { make_scene_with(s, model, ""); }

static void free_scene(Scene *s) {
  sn_cost_free(s->cost);
  sn_task_free(s->task);
  sn_oracle_free(&s->o);
}

static void same(const sn_real *a, const sn_real *b, int n) {
  if (n) assert_memory_equal(a, b, sizeof *a * (size_t)n);
}

// ---- rollouts ----

// What a rollout of the planner's writes, in one array; as many numbers in *n.
static sn_real *make_states(const SnModel *m, int rows, SnTrajectory *out, int *n) {
  const int row = m->nq + 2 * m->nv + m->na + 2 + m->nsensordata;
  sn_real *x = calloc((size_t)(rows * row) + 1, sizeof *x);
  *n = rows * row;
  out->time = x;
  out->qpos = out->time + rows;
  out->qvel = out->qpos + rows * m->nq;
  out->act = out->qvel + rows * m->nv;
  out->qacc = out->act + rows * m->na;
  out->cost = out->qacc + rows * m->nv;
  out->sensordata = out->cost + rows;
  return x;
}

// Candidate c by the planner's noise and rollout. Arrays that it writes follow each other in the fixture, too.
static void same_rollout(const SnKernelFixture *x, int c, SnRolloutRunner *runner) {
  const SnModel *m = x->s.m;
  const SnRollout *p = &x->sample.rollout[x->s.own ? c : 0];
  const SnClock clock = sn_clock_monotonic();
  const SnState state = {.time = (double)p->time,
                         .qpos = p->qpos,
                         .qvel = p->qvel,
                         .act = p->act,
                         .mocap_pos = p->mocap_pos,
                         .qacc_warmstart = p->qacc_warmstart};
  const int n = p->nstep * m->nu;
  sn_real *ctrl = calloc((size_t)n + 1, sizeof *ctrl);
  sn_real *scratch = calloc((size_t)sn_candidate_scratch(x->sample.noise.knots, 1), sizeof *scratch);
  double term[32];
  SnLane lane = {.n = 1};
  assert_true(x->s.cost->nterm <= 32);
  sn_candidate_controls(m, &x->sample.noise, x->sample.first + c, &lane, p->ctrl, p->nstep, scratch, ctrl);
  same(ctrl, x->sample.ctrl + c * n, n);
  SnTrajectory out = {0};
  int states;
  sn_real *written = make_states(m, p->nstep + 1, &out, &states);
  sn_rollout_runner_begin(runner, &state, ctrl, p->target, p->nstep, (double)p->max_velocity, &out);
  assert_int_equal(sn_rollout_runner_run(runner, &clock, INFINITY), SN_ROLLOUT_DONE);
  assert_true((sn_real)sn_rollout_runner_cost(runner, term) == x->sample.total[c]);
  for (int i = 0; i < x->s.cost->nterm; ++i) assert_true((sn_real)term[i] == x->sample.sum[c * x->s.cost->nterm + i]);
  assert_true(x->sample.status[c] == SN_ROLLOUT_DONE && x->sample.t[c] == p->nstep);
  if (x->s.own) same(written, p->out_time, states);
  free(written);
  free(ctrl);
  free(scratch);
}

static void rollouts_are_the_planners(void **state) {
  (void)state;
  for (int k = 0; k < 2 * SN_SMALL_MODELS; ++k) {
    Scene s;
    SnError err;
    SnKernelFixture x;
    make_scene(&s, k / 2);
    s.settings.own = k % 2;
    sn_fixture_make(&x, &s.settings);
    sn_fixture_sample(&x, s.settings.steps + 1);
    SnRolloutRunner *runner = sn_rollout_runner_create(s.o.m, s.cost, &err);
    for (int c = 0; c < s.settings.candidates; ++c) same_rollout(&x, c, runner);
    if (s.o.m->nu) assert_true(x.sample.total[0] != x.sample.total[1]);
    sn_rollout_runner_free(runner);
    sn_fixture_free(&x);
    free_scene(&s);
  }
}

// In one launch; in slices, on several blocks, in shared memory. What is kept between slices is scratch.
static void check_slices(bool own) {
  Scene s;
  SnKernelFixture one;
  make_scene(&s, 1);
  s.settings.own = own;
  sn_fixture_make(&one, &s.settings);
  sn_fixture_sample(&one, s.settings.steps + 1);
  const size_t kept = sizeof(sn_real) * (size_t)(s.settings.candidates * sn_rollout_saved_size(s.o.m));
  for (int slice = 1; slice <= 4; ++slice) {
    SnKernelFixture x;
    SnFixtureSettings settings = s.settings;
    settings.blocks = slice;
    settings.shared = (size_t)slice * 20 * 1024;
    sn_fixture_make(&x, &settings);
    sn_fixture_sample(&x, slice);
    memcpy(x.sample.saved, one.sample.saved, kept);
    sn_fixture_same(&one, &x);
    sn_fixture_free(&x);
  }
  sn_fixture_free(&one);
  free_scene(&s);
}

static void rollouts_in_slices(void **state) {
  (void)state;
  check_slices(false);
  check_slices(true);
}

// ---- gradients ----

// Compares bits; of products under RK4, whose stages the CPU's packs of columns evaluate anew, numbers to rounding.
static void same_bars(const SnModel *m, SnGradientMethod method, const sn_real *a, const sn_real *b, int n) {
  sn_real largest = 0;
  if (method != SN_GRADIENT_PRODUCTS || m->opt.integrator != SN_INT_RK4) {
    same(a, b, n);
    return;
  }
  for (int i = 0; i < n; ++i) largest = sn_max(largest, sn_abs(b[i]));
  for (int i = 0; i < n; ++i) assert_true(sn_abs(a[i] - b[i]) <= SN_R(1000.0) * SN_EPS * largest);
}

// Item i by the planner's gradient. `twice`: it was computed before from nearly the same inputs.
static void same_gradient(const SnKernelFixture *x, int i, SnGradientMethod method, bool twice) {
  const SnModel *m = x->s.m;
  const SnGradientItem *gradient = &x->gradient[i];
  const SnRollout *p = &gradient->rollout;
  const SnClock clock = sn_clock_monotonic();
  const int rows = p->nstep + 1;
  SnError err;
  SnPool *pool = sn_pool_create(1, &err);
  SnGradientWork *work = sn_gradient_create(m, x->s.cost, x->s.steps, 1, SN_GRADIENT_KEEP, pool, &err);
  sn_real *out = calloc((size_t)(rows * (m->nu + x->s.cost->ntarget) + sn_tangent_size(m)) + 1, sizeof *out);
  SnGradient g = {.state = {.time = (double)p->time,
                            .qpos = p->qpos,
                            .qvel = p->qvel,
                            .act = p->act,
                            .mocap_pos = p->mocap_pos,
                            .qacc_warmstart = p->qacc_warmstart},
                  .ctrl = p->ctrl,
                  .target = p->target,
                  .nstep = p->nstep,
                  .max_velocity = (double)p->max_velocity,
                  .qpos_bar = out,
                  .qvel_bar = out + m->nv,
                  .act_bar = out + 2 * m->nv,
                  .ctrl_bar = out + sn_tangent_size(m)};
  g.target_bar = g.ctrl_bar + p->nstep * m->nu;
  const SnRolloutBar *b = &gradient->vjp.bar;
  const SnTrajectoryBar bar = {(double)b->cost, b->qpos, b->qvel, b->act, b->sensordata, b->ctrl, NULL};
  if (b->on) g.bar = &bar;
  SnGradientBatch batch = {.settings = {.method = method, .cfd = settings_of(&x->s.cfd)}, .item = &g, .count = 1};
  assert_true(sn_gradient_run(work, &batch, &clock, INFINITY));
  if (twice) {
    g.continues = true;
    g.status = SN_GRADIENT_PENDING;
    assert_true(sn_gradient_run(work, &batch, &clock, INFINITY));
  }
  assert_true((int)g.status == gradient->status && (sn_real)g.cost == p->total);
  const sn_real norm = (sn_real)g.norm;
  same_bars(m, method, &norm, &gradient->norm, 1);
  same_bars(m, method, out, gradient->vjp.state_bar, sn_tangent_size(m));
  same_bars(m, method, g.ctrl_bar, gradient->vjp.ctrl_bar, p->nstep * m->nu);
  same_bars(m, method, g.target_bar, gradient->vjp.target_bar, rows * x->s.cost->ntarget);
  free(out);
  sn_gradient_free(work);
  sn_pool_free(pool);
}

static void gradients_are_the_planners(void **state) {
  (void)state;
  for (int k = 0; k < 4 * SN_SMALL_MODELS; ++k) {
    Scene s;
    SnKernelFixture x;
    const bool products = k % 2, cfd = k / 2 % 2;
    make_scene(&s, k / 4);
    s.settings.bars = (k / 4 + products + cfd) % 2;  // on one model or the other
    s.settings.products = products;
    if (cfd) s.settings.cfd = far_contacts;
    sn_fixture_make(&x, &s.settings);
    for (int pass = 0; pass < 2; ++pass) {
      sn_fixture_gradient(&x, products ? SN_FIXTURE_PRODUCTS : SN_FIXTURE_SWEEP);
      for (int i = 0; i < SN_FIXTURE_GRADIENTS; ++i) {
        assert_int_equal(x.gradient[i].status, SN_GRADIENT_DONE);
        assert_int_equal(x.cfd_steps[i], cfd ? x.gradient[i].rollout.nstep : 0);
        same_gradient(&x, i, products ? SN_GRADIENT_PRODUCTS : SN_GRADIENT_SWEEP, pass);
      }
    }
    sn_fixture_free(&x);
    free_scene(&s);
  }
}

// Chunks of states, blocks, shared memory.
static void gradients_in_chunks(void **state) {
  (void)state;
  for (int products = 0; products < 2; ++products) {
    Scene s;
    SnKernelFixture one;
    make_scene(&s, 1);
    s.settings.products = products;
    sn_fixture_make(&one, &s.settings);
    sn_fixture_gradient(&one, products ? SN_FIXTURE_PRODUCTS : SN_FIXTURE_SWEEP);
    for (int chunk = 1; chunk <= 5; ++chunk) {
      SnKernelFixture x;
      SnFixtureSettings settings = s.settings;
      settings.states = chunk;
      settings.blocks = chunk;
      settings.shared = (size_t)chunk * 20 * 1024;
      sn_fixture_make(&x, &settings);
      sn_fixture_gradient(&x, products ? SN_FIXTURE_PRODUCTS : SN_FIXTURE_SWEEP);
      sn_fixture_same(&one, &x);
      sn_fixture_free(&x);
    }
    sn_fixture_free(&one);
    free_scene(&s);
  }
}

// With rates of controls, which come last there: as by the sweep.
static void products_with_rates(void **state) {
  (void)state;
  Scene s;
  SnKernelFixture sweep, products;
  make_scene_with(&s, 2, "  - {name: rate, residual: {control_rate: all}, weight: 0.0001}\n");
  sn_fixture_make(&sweep, &s.settings);
  sn_fixture_gradient(&sweep, SN_FIXTURE_SWEEP);
  s.settings.products = true;
  sn_fixture_make(&products, &s.settings);
  sn_fixture_gradient(&products, SN_FIXTURE_PRODUCTS);
  for (int i = 0; i < SN_FIXTURE_GRADIENTS; ++i) {
    const sn_real *a = sweep.gradient[i].vjp.ctrl_bar, *b = products.gradient[i].vjp.ctrl_bar;
    const double tight = (sizeof(sn_real) == 4 ? 1e-3 : 1e-9) * (double)sweep.gradient[i].norm;
    assert_true(tight > 0);
    for (int k = 0; k < sweep.gradient[i].rollout.nstep * s.o.m->nu; ++k)
      assert_true(fabs((double)(a[k] - b[k])) <= tight);
  }
  sn_fixture_free(&sweep);
  sn_fixture_free(&products);
  free_scene(&s);
}

static void is_zero(const sn_real *x, int n) {
  for (int i = 0; i < n; ++i) assert_true(x[i] == 0);
}

static void has_no_gradient(const SnKernelFixture *x, int i, int status) {
  const SnGradientItem *gradient = &x->gradient[i];
  assert_int_equal(gradient->status, status);
  assert_true(gradient->norm == 0);
  is_zero(gradient->vjp.state_bar, sn_tangent_size(x->s.m));
  is_zero(gradient->vjp.ctrl_bar, gradient->rollout.nstep * x->s.m->nu);
  is_zero(gradient->vjp.target_bar, (gradient->rollout.nstep + 1) * x->s.cost->ntarget);
}

// One item diverges, one takes no part, one is whole.
static void failures(void **state) {
  (void)state;
  for (int method = SN_FIXTURE_SWEEP; method <= SN_FIXTURE_PRODUCTS; ++method) {
    Scene s;
    SnKernelFixture x;
    make_scene(&s, 1);
    s.settings.products = true;
    sn_fixture_make(&x, &s.settings);
    x.gradient[0].rollout.max_velocity = SN_R(1e-9);
    x.gradient[1].active = 0;
    x.gradient[1].status = 77;
    x.gradient[1].vjp.ctrl_bar[0] = 77;
    sn_fixture_gradient(&x, (SnFixtureMethod)method);
    has_no_gradient(&x, 0, SN_GRADIENT_DIVERGED);
    assert_true(isinf((double)x.gradient[0].rollout.total));
    assert_true(x.gradient[1].status == 77 && x.gradient[1].vjp.ctrl_bar[0] == 77);
    assert_int_equal(x.gradient[2].status, SN_GRADIENT_DONE);
    sn_fixture_free(&x);
    free_scene(&s);
  }
}

// A weight that takes the derivative, not the cost, out of the range of numbers.
static void unbounded(void **state) {
  (void)state;
  for (int method = SN_FIXTURE_SWEEP; method <= SN_FIXTURE_PRODUCTS; ++method) {
    Scene s;
    SnKernelFixture x;
    make_scene(&s, 1);
    s.settings.products = true;
    sn_fixture_make(&x, &s.settings);
    sn_real *weight = calloc((size_t)s.cost->nterm, sizeof *weight);
    for (int i = 0; i < s.cost->nterm; ++i) weight[i] = sizeof(sn_real) == 4 ? SN_R(1e37) : (sn_real)1e307;
    x.gradient[1].rollout.running = weight;
    sn_fixture_gradient(&x, (SnFixtureMethod)method);
    if (x.gradient[1].status != SN_GRADIENT_DIVERGED) has_no_gradient(&x, 1, SN_GRADIENT_UNBOUNDED);
    assert_int_equal(x.gradient[0].status, SN_GRADIENT_DONE);
    free(weight);
    sn_fixture_free(&x);
    free_scene(&s);
  }
}

// Too many contacts: the rollout's warnings say so.
static void overflow(void **state) {
  (void)state;
  Scene s;
  SnKernelFixture x;
  make_scene(&s, 1);
  s.o.m->nconmax = 1;
  sn_fixture_make(&x, &s.settings);
  for (int i = 0; i < SN_FIXTURE_GRADIENTS; ++i) x.gradient[i].rollout.cfd = far_contacts;
  x.begin[0].cfd = far_contacts;
  sn_fixture_gradient(&x, SN_FIXTURE_SWEEP);
  sn_fixture_sample(&x, 2);
  for (int i = 0; i < SN_FIXTURE_GRADIENTS; ++i) assert_true(x.gradient[i].rollout.warn & SN_WARN_CONTACT_FULL);
  for (int c = 0; c < s.settings.candidates; ++c) assert_true(x.sample.warn[c] & SN_WARN_CONTACT_FULL);
  sn_fixture_free(&x);
  free_scene(&s);
}

// ---- multistart ----

// It finds something better, counts its iterations, and one of n ends like n of one.
static void multistarts(void **state) {
  (void)state;
  enum { ITERATIONS = 4 };
  Scene s;
  SnKernelFixture once, x;
  make_scene(&s, 0);
  assert_true(s.o.m->nu > 0);
  s.settings.multistart = true;
  sn_fixture_make(&once, &s.settings);
  sn_fixture_multistart(&once, ITERATIONS);
  assert_true(once.multistart.measured && once.multistart.best_cost < once.multistart.cost_before);
  assert_true(once.turn.active == 0 && once.turn.todo == 0);
  for (int i = 0; i < SN_FIXTURE_GRADIENTS; ++i)
    assert_true(once.gradient[i].active == 0 && once.gradient[i].init == 0);
  s.settings.blocks = 2;
  s.settings.states = 3;
  sn_fixture_make(&x, &s.settings);
  for (int k = 0; k < ITERATIONS; ++k) {
    sn_fixture_multistart(&x, 1);
    if (k + 1 == ITERATIONS) break;
    x.turn.active = 1;
    for (int i = 0; i < SN_FIXTURE_GRADIENTS; ++i) x.gradient[i].active = 1;
  }
  sn_fixture_same(&once, &x);
  // a launch on a multistart that has ended does nothing
  sn_fixture_launch(&x, SN_KERNEL_ITERATE, 0, 0);
  sn_fixture_launch(&x, SN_KERNEL_SELECT, 0, 0);
  sn_fixture_same(&once, &x);
  // warnings of any start are those of the multistart, beside what it had
  x.turn.active = x.turn.todo = 1;
  x.turn.warn = SN_WARN_EFC_FULL;
  for (int i = 0; i < SN_FIXTURE_GRADIENTS; ++i) x.gradient[i].rollout.warn = i ? 0 : SN_WARN_CONTACT_FULL;
  sn_fixture_launch(&x, SN_KERNEL_SELECT, 0, 0);
  assert_int_equal(x.turn.warn, SN_WARN_EFC_FULL | SN_WARN_CONTACT_FULL);
  sn_fixture_free(&once);
  sn_fixture_free(&x);
  free_scene(&s);
}

// ---- marks ----

static unsigned long long ticks(const SnKernelFixture *x, SnMark mark) {
  unsigned long long sum = 0;
  for (int b = 0; b < x->s.blocks; ++b) sum += x->marks[b * SN_NMARK + (int)mark];
  return sum;
}

static void marks(void **state) {
  (void)state;
  Scene s;
  SnKernelFixture x;
  make_scene(&s, 1);
  s.settings.blocks = 2;
  s.settings.steps = 20;
  s.settings.states = 21;
  sn_fixture_make(&x, &s.settings);
  x.work.marks = x.marks = calloc(2 * SN_NMARK, sizeof *x.marks);
  sn_fixture_sample(&x, 21);
  assert_true(ticks(&x, SN_MARK_KINEMATICS) > 0 && ticks(&x, SN_MARK_SOLVER) > 0 && ticks(&x, SN_MARK_COST) > 0);
  assert_true(ticks(&x, SN_MARK_INTEGRATE) > 0 && ticks(&x, SN_MARK_COLLISION) > 0);
  assert_true(ticks(&x, SN_MARK_TENDON_VJP) == 0 && ticks(&x, SN_MARK_COST_VJP) == 0);
  const unsigned long long before = ticks(&x, SN_MARK_SOLVER);
  sn_fixture_gradient(&x, SN_FIXTURE_SWEEP);
  assert_true(ticks(&x, SN_MARK_SOLVER) > before && ticks(&x, SN_MARK_SOLVER_VJP) > 0);
  assert_true(ticks(&x, SN_MARK_COST_VJP) > 0 && ticks(&x, SN_MARK_KINEMATICS_VJP) > 0);
  for (int k = 0; k < SN_NMARK; ++k) assert_true(strlen(sn_mark_name((SnMark)k)) > 0);
  assert_string_equal(sn_mark_name(SN_MARK_SOLVER), "SOLVER");
  assert_string_equal(sn_mark_name(SN_NMARK), "");
  sn_fixture_free(&x);
  free_scene(&s);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(rollouts_are_the_planners),
                                     cmocka_unit_test(rollouts_in_slices),
                                     cmocka_unit_test(gradients_are_the_planners),
                                     cmocka_unit_test(gradients_in_chunks),
                                     cmocka_unit_test(products_with_rates),
                                     cmocka_unit_test(failures),
                                     cmocka_unit_test(unbounded),
                                     cmocka_unit_test(overflow),
                                     cmocka_unit_test(multistarts),
                                     cmocka_unit_test(marks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
