// Gradients of a cost of the caller's own on the emulator: rollouts alone, what he makes of their states, the way back.
// The bits of the CPU in double by both methods; divergence, a device that is lost between.
#include "physics/sensor/sensor.h"
#include "tests/cuda/batch_fixture.h"

enum { COUNT = 5, NV = SENSING_NV, NA = SENSING_NA, NU = SENSING_NU, TARGETS = SENSING_TARGETS, SENSORS = 60 };

// The bars of a rollout, and what is asked for.
typedef struct Bars {
  double qpos[MANY_ROWS * NV], qvel[MANY_ROWS * NV], act[MANY_ROWS * NA], sensordata[MANY_ROWS * SENSORS];
  double ctrl[SENSING_STEPS * NU];
  SnTrajectoryBar bar;
} Bars;

typedef struct Result {
  double ctrl[SENSING_STEPS * NU], qpos[NV], qvel[NV], act[NA], target[MANY_ROWS * TARGETS], term[MANY_TERMS];
  double cost, norm;
  int status, steps, warn;
} Result;

// One backend's work on all rollouts.
typedef struct Side {
  SnBackend *b;
  SnBackendModel *d;
  Written *w;
  Bars bars[COUNT];
  Result result[COUNT];
  SnGradient item[COUNT];
  SnGradientBatch batch;
} Side;

static void draw(SnOracle *from, double *x, int n) {
  for (int i = 0; i < n; ++i) x[i] = sn_oracle_uniform(from);
}

// Sensors without a gradient have no bar.
static void draw_bars(const SnModel *m, Bars *b, int seed) {
  SnOracle from = {.rng = (uint64_t)(400 + seed)};
  const int n = m->nsensordata;
  assert_true(n <= SENSORS);
  draw(&from, b->qpos, MANY_ROWS * NV);
  draw(&from, b->qvel, MANY_ROWS * NV);
  draw(&from, b->act, MANY_ROWS * NA);
  draw(&from, b->sensordata, MANY_ROWS * n);
  draw(&from, b->ctrl, SENSING_STEPS * NU);
  for (int i = 0; i < m->nsensor; ++i)
    for (int k = 0; k < m->sensor_dim[i] * MANY_ROWS && !sn_sensor_differentiable(m, i); ++k)
      b->sensordata[(k / m->sensor_dim[i]) * n + m->sensor_adr[i] + k % m->sensor_dim[i]] = 0;
  b->bar = (SnTrajectoryBar){-0.7, b->qpos, b->qvel, b->act, b->sensordata, b->ctrl, NULL};
}

static Side *side_open(const Many *x, SnBackend *b, int method, bool with_cost) {
  SnError err = {0};
  Side *s = calloc(1, sizeof *s);
  s->b = b;
  s->d = many_load(x, b, with_cost);
  s->w = written_make(x);
  if (sn_backend_reserve_gradients(b, s->d, COUNT, &err) != SN_OK) fail_msg("%s", err.text);
  for (int k = 0; k < COUNT; ++k) {
    Result *r = &s->result[k];
    draw_bars(x->body->m, &s->bars[k], k);
    s->item[k] = (SnGradient){.state = x->state[k],
                              .ctrl = x->input[k].ctrl,
                              .target = with_cost ? x->input[k].target : NULL,
                              .nstep = SENSING_STEPS - k % 2,
                              .max_velocity = 1e3,
                              .bar = &s->bars[k].bar,
                              .term = r->term,
                              .out = &s->w->out[k],
                              .ctrl_bar = r->ctrl,
                              .qpos_bar = r->qpos,
                              .qvel_bar = r->qvel,
                              .act_bar = r->act,
                              .target_bar = with_cost ? r->target : NULL};
  }
  s->batch = (SnGradientBatch){.settings = {.method = (SnGradientMethod)method}, .item = s->item, .count = COUNT};
  return s;
}

static void side_close(Side *s) {
  sn_backend_unload(s->b, s->d);
  written_free(s->w);
  free(s);
}

// What the items say, beside what is in their arrays.
static void note(Side *s) {
  for (int k = 0; k < COUNT; ++k) {
    Result *r = &s->result[k];
    const SnGradient *g = &s->item[k];
    r->cost = g->cost;
    r->norm = g->norm;
    r->status = (int)g->status;
    r->steps = g->steps;
    r->warn = g->warn;
  }
}

static void begin(Side *s, bool forward, SnGradientStatus from) {
  s->batch.forward = forward;
  for (int k = 0; k < COUNT; ++k) s->item[k].status = from;
}

static void clear(Side *s) {
  memset(s->result, 0x55, sizeof s->result);
  memset(s->w->number, 0x55, sizeof *s->w->number * (size_t)(COUNT * s->w->size));
}

static void run(Side *s, bool forward, SnGradientStatus from) {
  begin(s, forward, from);
  assert_true(sn_backend_gradients(s->b, s->d, &s->batch, steady_clock(), INFINITY));
  note(s);
}

static void same(const Side *a, const Side *b) {
  assert_memory_equal(a->w->number, b->w->number, sizeof *a->w->number * (size_t)(COUNT * a->w->size));
  for (int k = 0; k < COUNT; ++k) assert_memory_equal(&a->result[k], &b->result[k], sizeof a->result[k]);
}

// In one go; rollouts alone, which leave all derivatives as they were, and then the way back, twice; each part of the
// bar alone.
static void same_as_cpu(void **state) {
  (void)state;
  Many *x = many_open(COUNT);
  SnBackend *b = open_library("emulator_double", 0, "blocks:2");
  for (int k = 0; k < 4; ++k) {
    Side *cpu = side_open(x, x->cpu, k % 2, k / 2), *device = side_open(x, b, k % 2, k / 2);
    Side *const both[] = {cpu, device};
    for (int part = 0; part < 7; ++part) {
      for (int i = 0; i < 2 * COUNT; ++i) {
        Bars *p = &both[i % 2]->bars[i / 2];
        p->bar = (SnTrajectoryBar){part == 6 ? 0 : part,
                                   part == 0 || part > 5 ? p->qpos : NULL,
                                   part == 1 || part > 5 ? p->qvel : NULL,
                                   part == 2 || part > 5 ? p->act : NULL,
                                   part == 3 || part > 5 ? p->sensordata : NULL,
                                   part == 4 || part > 5 ? p->ctrl : NULL,
                                   NULL};
      }
      for (int i = 0; i < 2; ++i) clear(both[i]);
      for (int i = 0; i < 2; ++i) run(both[i], false, SN_GRADIENT_PENDING);
      same(cpu, device);
      for (int i = 0; i < COUNT; ++i)
        assert_true(device->result[i].status == SN_GRADIENT_DONE && (device->result[i].norm > 0 || part == 5));
    }
    const Result once = device->result[1];
    for (int i = 0; i < 2; ++i) clear(both[i]);
    for (int i = 0; i < 2; ++i) run(both[i], true, SN_GRADIENT_PENDING);
    same(cpu, device);
    for (int i = 0; i < COUNT; ++i) assert_int_equal(device->result[i].status, SN_GRADIENT_ROLLED);
    for (int again = 0; again < 2; ++again) {
      for (int i = 0; i < 2; ++i) run(both[i], false, SN_GRADIENT_ROLLED);
      same(cpu, device);
      assert_memory_equal(once.ctrl, device->result[1].ctrl, sizeof once.ctrl);
    }
    side_close(cpu);
    side_close(device);
  }
  sn_backend_free(b);
  many_close(x);
}

// Contacts from distance on the way back, whose solvers start from what the way back before has left: rollouts alone
// between two of them leave that as it is.
static void cfd_goes_on(void **state) {
  (void)state;
  Many *x = many_open(COUNT);
  SnBackend *b = open_library("emulator_double", 0, NULL);
  const SnCfdSettings cfd = {.on = true, .solimp = {0, 0.9, 0.2, 0.5, 2}, .width = 0.01, .friction = 1};
  for (int method = SN_GRADIENT_SWEEP; method <= SN_GRADIENT_PRODUCTS; ++method) {
    Side *cpu = side_open(x, x->cpu, method, true), *device = side_open(x, b, method, true);
    Side *const both[] = {cpu, device};
    for (int i = 0; i < 2; ++i) {
      both[i]->batch.settings.cfd = cfd;
      clear(both[i]);
      run(both[i], false, SN_GRADIENT_PENDING);
      for (int k = 0; k < COUNT; ++k) both[i]->item[k].continues = true;
      run(both[i], true, SN_GRADIENT_PENDING);
      run(both[i], false, SN_GRADIENT_ROLLED);
    }
    same(cpu, device);
    side_close(cpu);
    side_close(device);
  }
  sn_backend_free(b);
  many_close(x);
}

// The bar of the motor's force at the last state is that of the control that still stands there, by both methods.
static void last_state(void **state) {
  (void)state;
  Many *x = many_open(COUNT);
  const SnModel *m = x->body->m;
  const int at = m->sensor_adr[sn_model_find(m, SN_NAME_SENSOR, "force")];
  for (int method = SN_GRADIENT_SWEEP; method <= SN_GRADIENT_PRODUCTS; ++method) {
    SnBackend *b = open_library("emulator_double", 0, NULL);
    Side *s = side_open(x, b, (SnGradientMethod)method, false);
    for (int k = 0; k < COUNT; ++k) {
      Bars *p = &s->bars[k];
      memset(p->sensordata, 0, sizeof p->sensordata);
      p->sensordata[s->item[k].nstep * m->nsensordata + at] = 3;
      p->bar = (SnTrajectoryBar){.sensordata = p->sensordata};
    }
    run(s, false, SN_GRADIENT_PENDING);
    for (int k = 0; k < COUNT; ++k)
      for (int i = 0; i < s->item[k].nstep * NU; ++i)
        assert_true(s->result[k].ctrl[i] == (i == (s->item[k].nstep - 1) * NU + 2 ? 3.0 : 0));
    side_close(s);
    sn_backend_free(b);
  }
  many_close(x);
}

// One diverges on its way forward, others later: it has no states from there on and no gradient, and nobody else knows.
static void divergence(void **state) {
  (void)state;
  Many *x = many_open(COUNT);
  SnBackend *b = open_library("emulator_double", 0, NULL);
  Side *cpu = side_open(x, x->cpu, SN_GRADIENT_SWEEP, true), *device = side_open(x, b, SN_GRADIENT_SWEEP, true);
  Side *const both[] = {cpu, device};
  for (int i = 0; i < 2; ++i) {
    clear(both[i]);
    both[i]->item[2].max_velocity = 1e-3;
    both[i]->item[3].max_velocity = 0.7;
    run(both[i], true, SN_GRADIENT_PENDING);
  }
  same(cpu, device);
  assert_true(device->result[2].status == SN_GRADIENT_DIVERGED && device->result[2].steps == 0);
  assert_true(device->result[3].status == SN_GRADIENT_DIVERGED && device->result[3].steps > 0);
  assert_true(isnan(device->w->out[3].qpos[SENSING_NQ * device->result[3].steps]));
  assert_int_equal(device->result[0].status, SN_GRADIENT_ROLLED);
  for (int i = 0; i < 2; ++i) {
    both[i]->batch.forward = false;
    assert_true(sn_backend_gradients(both[i]->b, both[i]->d, &both[i]->batch, steady_clock(), INFINITY));
    note(both[i]);
  }
  same(cpu, device);
  assert_int_equal(device->result[0].status, SN_GRADIENT_DONE);
  side_close(cpu);
  side_close(device);
  sn_backend_free(b);
  many_close(x);
}

// The device goes between the phases, or on the way back: nothing of the call counts.
static void lost_on_the_way(void **state) {
  (void)state;
  Many *x = many_open(COUNT);
  const char *const faults[] = {"launch:1", "launch:3"};
  for (int k = 0; k < 2; ++k) {
    SnBackend *b = open_library("emulator_double", 0, faults[k]);
    Side *s = side_open(x, b, SN_GRADIENT_SWEEP, true);
    char text[256];
    clear(s);
    begin(s, true, SN_GRADIENT_PENDING);
    assert_int_equal(sn_backend_gradients(b, s->d, &s->batch, steady_clock(), INFINITY), k);
    s->batch.forward = false;
    assert_false(sn_backend_gradients(b, s->d, &s->batch, steady_clock(), INFINITY));
    assert_true(sn_backend_lost(b, text, sizeof text));
    for (int i = 0; i < COUNT; ++i) {
      assert_int_equal(s->item[i].status, k ? SN_GRADIENT_ROLLED : SN_GRADIENT_PENDING);
      assert_memory_equal(s->result[i].ctrl, s->result[0].ctrl, sizeof s->result[i].ctrl);
    }
    side_close(s);
    sn_backend_free(b);
  }
  many_close(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_cpu), cmocka_unit_test(cfd_goes_on),
                                     cmocka_unit_test(last_state), cmocka_unit_test(divergence),
                                     cmocka_unit_test(lost_on_the_way)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
