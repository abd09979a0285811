// Many integrations on threads: each gets what a run of its own gives it, bit for bit, and so do the ways back; what is
// refused.
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/clients/libsinew/body_fixture.h"

enum { N = 9, OUTS = 3, KNOTS = 2, MOST = 512, P = 2 };

// Integrators of a model, their runs, and all results, of rows.
typedef struct Crowd {
  SinewModel *model;
  SinewIntegratorDef def;
  SinewIntegrator *x[N];
  SinewParameters *parameters;
  int nq, nv, na, nu, nmocap;
  double start[MOST], speed[MOST], knot[MOST], act[MOST];
  double qpos[MOST], qvel[MOST], out_act[MOST];
  double bar[MOST];
  double by_qpos[MOST], by_qvel[MOST], by_act[MOST], by_knot[MOST], by_mocap[MOST], by_parameter[N * P];
  int status[N];
  SinewIntegrationReport report[N];
} Crowd;

static const double knot_time[KNOTS] = {0, 0.03}, out_time[OUTS] = {0.01, 0.02, 0.06};

static void make_parameters(Crowd *c) {
  SinewError err;
  int n;
  const double *const mass = sinew_model_array(c->model, "body_mass", &n, NULL);
  SinewModel *moved[2][P];
  double heavier[MOST];
  const double step[P] = {1e-5, 1e-5};
  for (int way = 0; way < 2; ++way)
    for (int p = 0; p < P; ++p) {
      memcpy(heavier, mass, sizeof *mass * (size_t)n);
      heavier[n - 1 - p] += way ? -step[p] : step[p];
      const SinewArray array = {.name = "body_mass", .value = heavier, .rows = n, .cols = 1};
      moved[way][p] = sinew_model_with_arrays(c->model, &array, 1, &err);
      test_accepted(moved[way][p] ? SINEW_OK : err.status, &err);
    }
  c->parameters = sinew_parameters_create(c->model, (const SinewModel *const *)moved[0],
                                          (const SinewModel *const *)moved[1], step, P, &err);
  test_accepted(c->parameters ? SINEW_OK : err.status, &err);
  for (int k = 0; k < 2 * P; ++k) sinew_model_free(moved[k / P][k % P]);
}

static void make(Crowd *c) {
  memset(c, 0, sizeof *c);
  c->model = test_model_of_text(body_xml);
  const SinewSizes *s = sinew_model_sizes(c->model);
  c->nq = s->nq;
  c->nv = s->nv;
  c->na = s->na;
  c->nu = s->nu;
  c->nmocap = s->nmocap;
  assert_true(N * OUTS * s->nq <= MOST && N * KNOTS * s->nu <= MOST && N * 6 * s->nmocap <= MOST);
  c->def = sinew_default_integrator();
  c->def.model = c->model;
  c->def.gradients = true;
  c->def.memory = (size_t)1 << 24;
  SinewError err;
  uint64_t seed = 3;
  const double *const qpos0 = sinew_model_array(c->model, "qpos0", NULL, NULL);
  for (int i = 0; i < N; ++i) {
    c->x[i] = sinew_integrator_create(&c->def, &err);
    test_accepted(c->x[i] ? SINEW_OK : err.status, &err);
    for (int k = 0; k < s->nq; ++k) c->start[i * s->nq + k] = qpos0[k] + 0.05 * test_random(&seed);
    c->report[i] = sinew_default_integration_report();
  }
  for (int k = 0; k < N * s->nv; ++k) c->speed[k] = test_random(&seed);
  for (int k = 0; k < N * KNOTS * s->nu; ++k) c->knot[k] = 0.5 + 0.4 * test_random(&seed);
  for (int k = 0; k < N * s->na; ++k) c->act[k] = 0.5 + 0.4 * test_random(&seed);
  for (int k = 0; k < N * OUTS * s->nq; ++k) c->bar[k] = test_random(&seed);
  make_parameters(c);
}

static void free_crowd(Crowd *c) {
  for (int i = 0; i < N; ++i) sinew_integrator_free(c->x[i]);
  sinew_parameters_free(c->parameters);
  sinew_model_free(c->model);
}

// Fills in the rows from body i on.
static SinewIntegration run_of(Crowd *c, int i) {
  SinewIntegration run = sinew_default_integration();
  run.duration = 0.06;
  run.nknot = KNOTS;
  run.knot_time = knot_time;
  run.knot = c->knot + i * KNOTS * c->nu;
  run.nout = OUTS;
  run.out_time = out_time;
  run.out_qpos = c->qpos + i * OUTS * c->nq;
  run.out_qvel = c->qvel + i * OUTS * c->nv;
  run.out_act = c->out_act + i * OUTS * c->na;
  return run;
}

static SinewState state_of(const Crowd *c, int i) {
  return (SinewState){.qpos = c->start + i * c->nq, .qvel = c->speed + i * c->nv, .act = c->act + i * c->na};
}

static SinewIntegrationBars bars_of(Crowd *c, int i) {
  SinewIntegrationBars bars = sinew_default_integration_bars();
  bars.coordinates = SINEW_ARRAY;
  bars.out_qpos = c->bar + i * OUTS * c->nq;
  bars.out_qvel = c->bar + i * OUTS * c->nv;
  bars.out_act = c->bar + i * OUTS * c->na;
  bars.qpos = c->by_qpos + i * c->nq;
  bars.qvel = c->by_qvel + i * c->nv;
  bars.act = c->by_act + i * c->na;
  bars.knot = c->by_knot + i * KNOTS * c->nu;
  bars.mocap = c->by_mocap + i * 6 * c->nmocap;
  bars.parameters = c->parameters;
  bars.parameter = c->by_parameter + i * P;
  return bars;
}

static void assert_same(const Crowd *a, const Crowd *b) {
  const size_t from = offsetof(Crowd, qpos), to = offsetof(Crowd, bar);
  assert_memory_equal((const char *)a + from, (const char *)b + from, to - from);
  const size_t by = offsetof(Crowd, by_qpos), end = offsetof(Crowd, status);
  assert_memory_equal((const char *)a + by, (const char *)b + by, end - by);
  for (int i = 0; i < N; ++i) {
    assert_int_equal(a->report[i].end, b->report[i].end);
    assert_int_equal(a->report[i].accepted, b->report[i].accepted);
    assert_int_equal(a->report[i].rejected, b->report[i].rejected);
    assert_true(a->report[i].reached == b->report[i].reached);
  }
}

static void as_one_after_the_other(void **state) {
  (void)state;
  static Crowd many, alone;
  SinewError err;
  make(&alone);
  for (int i = 0; i < N; ++i) {
    const SinewState from = state_of(&alone, i);
    const SinewIntegration run = run_of(&alone, i);
    const SinewIntegrationBars bars = bars_of(&alone, i);
    test_accepted(sinew_integrator_run(alone.x[i], &from, &run, &alone.report[i], &err), &err);
    assert_int_equal(alone.report[i].end, SINEW_END_DONE);
    test_accepted(sinew_integrator_vjp(alone.x[i], &bars, &err), &err);
  }
  double moved = 0;
  for (int k = 0; k < N * P; ++k) moved += fabs(alone.by_parameter[k]);
  assert_true(moved > 1e-6);
  for (int threads = 1; threads <= 3; ++threads) {
    make(&many);
    SinewBackend *cpu = test_cpu(threads);
    for (int round = 0; round < 2; ++round) {
      const SinewState from = state_of(&many, 0);
      const SinewIntegration run = run_of(&many, 0);
      const SinewIntegrationBars bars = bars_of(&many, 0);
      test_accepted(sinew_integrators_run(cpu, many.x, N, &from, &run, many.report, &err), &err);
      test_accepted(sinew_integrators_vjp(cpu, many.x, N, &bars, many.status, &err), &err);
      for (int i = 0; i < N; ++i) assert_int_equal(many.status[i], SINEW_OK);
      assert_same(&many, &alone);
    }
    sinew_backend_close(cpu);
    free_crowd(&many);
  }
  free_crowd(&alone);
}

// A run that is not done is data, and so is that nothing goes back through it: its derivatives are zero.
static void one_that_is_not_done(void **state) {
  (void)state;
  static Crowd c;
  SinewError err;
  make(&c);
  SinewBackend *cpu = test_cpu(2);
  c.def.max_steps = 1;
  sinew_integrator_free(c.x[4]);
  c.x[4] = sinew_integrator_create(&c.def, &err);
  const SinewState from = state_of(&c, 0);
  const SinewIntegration run = run_of(&c, 0);
  const SinewIntegrationBars bars = bars_of(&c, 0);
  test_accepted(sinew_integrators_run(cpu, c.x, N, &from, &run, c.report, &err), &err);
  for (int i = 0; i < N; ++i) assert_int_equal(c.report[i].end, i == 4 ? SINEW_END_STEPS : SINEW_END_DONE);
  for (int i = 0; i < N * P; ++i) c.by_parameter[i] = 7;
  test_accepted(sinew_integrators_vjp(cpu, c.x, N, &bars, c.status, &err), &err);
  for (int i = 0; i < N; ++i) {
    assert_int_equal(c.status[i], i == 4 ? SINEW_ERR_STATE : SINEW_OK);
    assert_true((c.by_parameter[i * P] == 0) == (i == 4));
    assert_true((c.by_qvel[i * c.nv] == 0) == (i == 4));
  }
  test_accepted(sinew_integrators_run(cpu, c.x, 0, &from, &run, NULL, &err), &err);
  test_accepted(sinew_integrators_run(cpu, c.x, N, &from, &run, NULL, &err), &err);
  sinew_backend_close(cpu);
  free_crowd(&c);
}

// Asked `after` times it says that the call shall end; never where that is below 0.
typedef struct Caller {
  int asked, after;
} Caller;

static bool had_enough(void *user) {
  Caller *caller = user;
  return ++caller->asked > caller->after && caller->after >= 0;
}

// Who is asked in a call: its caller alone, though another thread takes the first integrator.
typedef struct Asked {
  pthread_t caller;
  atomic_int elsewhere;
} Asked;

static bool look_who(void *user) {
  Asked *asked = user;
  if (!pthread_equal(pthread_self(), asked->caller)) atomic_fetch_add(&asked->elsewhere, 1);
  return false;
}

// Calls from a thread that has no processor for itself, and waits wherever the other thread of the backend can work: so
// that one is the first to take an integrator.
static void *call_slowly(void *user) {
  Crowd *c = user;
  SinewError err;
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  int one = 0;
  while (!CPU_ISSET(one, &set)) ++one;
  CPU_ZERO(&set);
  CPU_SET(one, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
  SinewBackend *cpu = test_cpu(2);
  pthread_setschedparam(pthread_self(), SCHED_IDLE, &(struct sched_param){0});
  ((Asked *)c->def.interrupt_user)->caller = pthread_self();
  const SinewState from = state_of(c, 0);
  const SinewIntegrationBars bars = bars_of(c, 0);
  const SinewIntegration run = run_of(c, 0);
  for (int k = 0; k < 3; ++k) {
    test_accepted(sinew_integrators_run(cpu, c->x, 2, &from, &run, c->report, &err), &err);
    test_accepted(sinew_integrators_vjp(cpu, c->x, 2, &bars, c->status, &err), &err);
  }
  sinew_backend_close(cpu);
  return NULL;
}

static void caller_alone_is_asked(void **state) {
  (void)state;
  static Crowd c;
  static Asked asked;
  SinewError err;
  make(&c);
  c.def.interrupt = look_who;
  c.def.interrupt_user = &asked;
  c.def.largest_step = 1e-5;  // longer than it takes to be asked
  c.def.memory = (size_t)1 << 26;
  for (int i = 0; i < 2; ++i) {
    sinew_integrator_free(c.x[i]);
    c.x[i] = sinew_integrator_create(&c.def, &err);
    test_accepted(c.x[i] ? SINEW_OK : err.status, &err);
  }
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, call_slowly, &c), 0);
  pthread_join(thread, NULL);
  assert_int_equal(asked.elsewhere, 0);
  free_crowd(&c);
}

// A caller ends runs and ways back, of one integrator and of lists, by the interrupt of the first; what was done before
// goes on to be had, and the integrators to work.
static void interrupted(void **state) {
  (void)state;
  static Crowd c;
  SinewError err;
  make(&c);
  SinewBackend *cpu = test_cpu(2);
  Caller caller = {0, -1}, other = {0, 0};
  c.def.interrupt = had_enough;
  c.def.max_steps = 10000000;
  c.def.largest_step = 1e-4;
  c.def.memory = (size_t)1 << 26;
  for (int i = 0; i < N; ++i) {
    sinew_integrator_free(c.x[i]);
    c.def.interrupt_user = i == 0 ? &caller : &other;
    c.x[i] = sinew_integrator_create(&c.def, &err);
    test_accepted(c.x[i] ? SINEW_OK : err.status, &err);
  }
  const SinewState from = state_of(&c, 0);
  const SinewIntegrationBars bars = bars_of(&c, 0);
  SinewIntegration run = run_of(&c, 0);
  run.duration = 0.5;
  for (int way = 0; way < 2; ++way) {
    const int count = way ? N : 1;
    run.duration = way ? 0.3 : 1.5;
    test_accepted(sinew_integrators_run(cpu, c.x, count, &from, &run, c.report, &err), &err);
    for (int k = 0; k < 3; ++k) {
      SinewStatus got;
      caller = (Caller){0, 1};
      if (k == 2) run.duration = 1e4;
      if (k < 2 && way)
        got = sinew_integrators_vjp(cpu, c.x, count, &bars, c.status, &err);
      else if (k < 2)
        got = sinew_integrator_vjp(c.x[0], &bars, &err);
      else if (way)
        got = sinew_integrators_run(cpu, c.x, count, &from, &run, c.report, &err);
      else
        got = sinew_integrator_run(c.x[0], &from, &run, &c.report[0], &err);
      test_refused(got, &err, SINEW_ERR_INTERRUPTED, "interrupted by its caller");
      assert_int_equal(caller.asked, 2);
      assert_int_equal(other.asked, 0);
    }
    caller = (Caller){0, -1};
    run.duration = 0.06;
    test_accepted(sinew_integrators_run(cpu, c.x, count, &from, &run, c.report, &err), &err);
    test_accepted(sinew_integrators_vjp(cpu, c.x, count, &bars, c.status, &err), &err);
  }
  sinew_backend_close(cpu);
  free_crowd(&c);
}

static void what_is_refused(void **state) {
  (void)state;
  static Crowd c;
  SinewError err;
  make(&c);
  SinewBackend *cpu = test_cpu(2);
  SinewState from = state_of(&c, 0);
  SinewIntegration run = run_of(&c, 0);
  SinewIntegrationBars bars = bars_of(&c, 0);
  SinewIntegrator *list[N];
  memcpy(list, c.x, sizeof list);
  const SinewStatus bad = SINEW_ERR_ARGUMENT;
#define RUN(count) sinew_integrators_run(cpu, list, count, &from, &run, c.report, &err), &err
  test_refused(sinew_integrators_run(NULL, list, N, &from, &run, c.report, &err), &err, bad, "backend is NULL");
  test_refused(sinew_integrators_run(cpu, NULL, N, &from, &run, c.report, &err), &err, bad, "integrators is NULL");
  test_refused(sinew_integrators_run(cpu, list, N, NULL, &run, c.report, &err), &err, bad, "from is NULL");
  test_refused(sinew_integrators_vjp(cpu, list, N, &bars, NULL, &err), &err, bad, "status is NULL");
  test_refused(RUN(-1), bad, "count is -1");
  list[3] = NULL;
  test_refused(RUN(N), bad, "integrators[3] is NULL");
  list[3] = c.x[6];
  test_refused(RUN(N), bad, "integrators[6] is listed twice");
  list[3] = c.x[3];
  run.nout = -2;
  test_refused(RUN(N), bad, "nout is -2");
  run.nout = OUTS;
  c.report[5].size = 8;
  test_refused(RUN(N), bad, "reports[5].size");
  c.report[5].size = sizeof c.report[5];
  c.speed[7 * c.nv] = NAN;
  c.speed[5 * c.nv] = INFINITY;
  test_refused(RUN(N), SINEW_ERR_DIVERGED, "qvel[0] is inf");  // the first of the list that is refused
  c.speed[7 * c.nv] = c.speed[5 * c.nv] = 0;
  test_accepted(RUN(N));
  c.bar[2 * OUTS * c.nq] = NAN;
  test_refused(sinew_integrators_vjp(cpu, list, N, &bars, c.status, &err), &err, bad, "out_qpos[0] is nan");
  c.bar[2 * OUTS * c.nq] = 0;
  run.nout = 1;
  test_accepted(sinew_integrators_run(cpu, list, N - 1, &from, &run, c.report, &err), &err);
  test_refused(sinew_integrators_vjp(cpu, list, N, &bars, c.status, &err), &err, bad, "integrators[8] ran with other");
#undef RUN
  sinew_backend_close(cpu);
  free_crowd(&c);
}

// Bodies of another structure do not share rows.
static void other_models_are_refused(void **state) {
  (void)state;
  static Crowd c;
  SinewError err;
  make(&c);
  SinewBackend *cpu = test_cpu(1);
  SinewModel *ball =
      test_model_of_text("<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>");
  c.def.model = ball;
  sinew_integrator_free(c.x[1]);
  c.x[1] = sinew_integrator_create(&c.def, &err);
  const SinewState from = state_of(&c, 0);
  const SinewIntegration run = run_of(&c, 0);
  test_refused(sinew_integrators_run(cpu, c.x, N, &from, &run, c.report, &err), &err, SINEW_ERR_ARGUMENT,
               "integrators[1] has another structure");
  sinew_backend_close(cpu);
  free_crowd(&c);
  sinew_model_free(ball);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(as_one_after_the_other), cmocka_unit_test(one_that_is_not_done),
      cmocka_unit_test(caller_alone_is_asked),  cmocka_unit_test(interrupted),
      cmocka_unit_test(what_is_refused),        cmocka_unit_test(other_models_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
