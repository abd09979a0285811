// A rollout and the way back along it on several lanes: the bits of one lane, also where the rollout leaves its world
// after each step, others use it, and the rollout goes on in another one.
#include <stdlib.h>

#include "clients/reference/probe_task.h"
#include "physics/step/step.h"
#include "planner/rollout/rollout_vjp.h"
#include "planner/optimize/sampling.h"
#include "tests/support/lanes.h"
#include "tests/support/small_models.h"
#include "tests/planner/bench_body.h"
#include "tests/planner/sensing_body.h"

enum { MAX_STEPS = 8, MAX_LANES = 5 };

// How a rollout is gone along.
typedef struct Manner {
  int steps, lanes;
  SnGradientMethod method;
  bool slices;    // the world is given away after each step
  bool cfd;       // what is differentiated has CFD
  bool cfd_path;  // the steps are
  bool bars;      // the way back has bars of states, controls and sensors
  bool grid;      // steps after the second are twice as long
  sn_real max_velocity;
} Manner;

// A rollout, the way back and all that they write, as one array: two of them are compared at once.
typedef struct Trip {
  const SnModel *m;
  const SnCost *cost;
  Manner manner;
  sn_real *in, *out;
  size_t nin, nout;
  SnRollout rollout;
  SnRolloutVjp vjp;
  SnRolloutVjpState state[MAX_STEPS + 1];
  SnRolloutScratch scratch;
  sn_real *res;
  SnWorld world[2];
  SnAdjoint adjoint;
  void *memory[3];
  // of each lane
  SnRolloutStatus status[MAX_LANES];
  bool finite[MAX_LANES];
  sn_real norm[MAX_LANES];
} Trip;

// The next n numbers of an array that is counted first.
static sn_real *cut(sn_real *base, size_t *used, int n) {
  sn_real *at = base ? base + *used : NULL;
  *used += (size_t)n;
  return at;
}

static void lay_out(Trip *x) {
  const SnModel *m = x->m;
  const int steps = x->manner.steps, rows = steps + 1, nv = m->nv, n = sn_tangent_size(m);
  SnRollout *p = &x->rollout;
  SnRolloutVjp *b = &x->vjp;
  x->nin = x->nout = 0;
  p->qpos = cut(x->in, &x->nin, m->nq);
  p->qvel = cut(x->in, &x->nin, nv);
  p->act = cut(x->in, &x->nin, m->na);
  p->qacc_warmstart = cut(x->in, &x->nin, nv);
  p->ctrl = cut(x->in, &x->nin, steps * m->nu);
  p->target = cut(x->in, &x->nin, rows * x->cost->ntarget);
  if (x->manner.bars) {
    b->bar = (SnRolloutBar){.on = 1, .cost = SN_R(0.5)};
    b->bar.qpos = cut(x->in, &x->nin, rows * nv);
    b->bar.qvel = cut(x->in, &x->nin, rows * nv);
    b->bar.act = cut(x->in, &x->nin, rows * m->na);
    b->bar.sensordata = cut(x->in, &x->nin, rows * m->nsensordata);
    b->bar.ctrl = cut(x->in, &x->nin, steps * m->nu);
  }
  p->out_time = cut(x->out, &x->nout, rows);
  p->out_qpos = cut(x->out, &x->nout, rows * m->nq);
  p->out_qvel = cut(x->out, &x->nout, rows * nv);
  p->out_act = cut(x->out, &x->nout, rows * m->na);
  p->out_qacc = cut(x->out, &x->nout, rows * nv);
  p->out_cost = cut(x->out, &x->nout, rows);
  p->out_sensordata = cut(x->out, &x->nout, rows * m->nsensordata);
  p->sum = cut(x->out, &x->nout, x->cost->nterm);
  p->saved = cut(x->out, &x->nout, sn_rollout_saved_size(m));
  b->cfd_qacc = cut(x->out, &x->nout, rows * nv);
  b->running = cut(x->out, &x->nout, x->cost->nterm);
  b->terminal = cut(x->out, &x->nout, x->cost->nterm);
  b->state_bar = cut(x->out, &x->nout, n);
  b->scratch = cut(x->out, &x->nout, n);
  b->ctrl_bar = cut(x->out, &x->nout, steps * m->nu);
  b->target_bar = cut(x->out, &x->nout, rows * x->cost->ntarget);
  x->scratch.res = cut(x->out, &x->nout, x->cost->nres);
  x->scratch.value = cut(x->out, &x->nout, x->cost->nall);
  x->res = cut(x->out, &x->nout, x->cost->nres);
  for (int t = 0; t < rows; ++t) {
    SnRolloutVjpState *s = &x->state[t];
    const bool whole = x->manner.method == SN_GRADIENT_PRODUCTS;
    s->A = cut(x->out, &x->nout, whole ? n * n : 0);
    s->B = cut(x->out, &x->nout, whole ? n * m->nu : 0);
    s->state_bar = cut(x->out, &x->nout, whole ? n : 0);
    s->ctrl_bar = cut(x->out, &x->nout, whole ? m->nu : 0);
    s->before_bar = cut(x->out, &x->nout, whole ? m->nu : 0);
    s->target_bar = cut(x->out, &x->nout, x->cost->ntarget);
  }
}

static const SnCfd cfd = {
    .on = 1, .friction = 1, .solimp = {SN_R(0.0), SN_R(0.9), SN_R(0.2), SN_R(0.5), 2}, .width = SN_R(0.01)};

static void fill_start(Trip *x, const SnWorld *at) {
  const SnModel *m = x->m;
  sn_real *in = x->in;
  memcpy(in, at->qpos, sizeof *in * (size_t)m->nq);
  memcpy(in += m->nq, at->qvel, sizeof *in * (size_t)m->nv);
  memcpy(in += m->nv, at->act, sizeof *in * (size_t)m->na);
  memcpy(in += m->na, at->qacc_warmstart, sizeof *in * (size_t)m->nv);
  in += m->nv;
  for (int i = 0; i < x->manner.steps * m->nu; ++i) in[i] = SN_R(0.4) + SN_R(0.3) * sn_sin((sn_real)i);
  in += x->manner.steps * m->nu;
  sn_cost_schedule(x->cost, (double)at->time[0], (double)m->opt.timestep, x->manner.steps + 1, in);
  in += (x->manner.steps + 1) * x->cost->ntarget;
  for (sn_real *end = x->in + x->nin; in < end; ++in) *in = SN_R(0.1) * sn_sin((sn_real)(end - in));
  x->rollout.mocap_pos = at->mocap_pos;
  x->rollout.time = at->time[0];
  if (x->manner.grid) x->rollout.grid = (SnGrid){2, {2, MAX_STEPS}, {1, 2}};
}

static void trip_make(Trip *x, const SnModel *m, const SnCost *cost, const SnWorld *at, const Manner *manner) {
  *x = (Trip){.m = m, .cost = cost, .manner = *manner};
  lay_out(x);
  x->in = calloc(x->nin + 1, sizeof *x->in);
  x->out = calloc(x->nout + 1, sizeof *x->out);
  lay_out(x);
  fill_start(x, at);
  x->rollout.running = cost->weight;
  x->rollout.terminal = cost->terminal;
  x->rollout.nstep = manner->steps;
  x->rollout.max_velocity = manner->max_velocity;
  if (manner->cfd_path) x->rollout.cfd = cfd;
  if (manner->cfd) x->vjp.cfd = cfd;
  x->vjp.rollout = &x->rollout;
  for (int i = 0; i < 2; ++i) {
    x->memory[i] = aligned_alloc(64, (sn_world_size(m) + 63) / 64 * 64);
    sn_world_init(m, &x->world[i], x->memory[i]);
  }
  x->memory[2] = aligned_alloc(64, (sn_adjoint_size(m) + 63) / 64 * 64);
  sn_adjoint_init(m, &x->adjoint, x->memory[2]);
}

static void trip_free(Trip *x) {
  free(x->in);
  free(x->out);
  for (int i = 0; i < 3; ++i) free(x->memory[i]);
}

// Somebody else steps in the world: from another state, with other contacts and a warning.
static void intrude(const Trip *x, SnLane *lane, SnWorld *w) {
  const SnRolloutState other = {7, x->m->qpos0, x->rollout.qacc_warmstart, x->rollout.act, NULL, x->rollout.qvel,
                                0, NULL};
  const SnRollout without = {.cfd = x->rollout.cfd};
  sn_rollout_set_state(x->m, w, lane, &without, &other, x->rollout.cfd.on ? &without.cfd : &cfd);
  sn_forward(x->m, w, lane);
  sn_integrate(x->m, w, lane);
  SN_ONE(lane) *w->warn = SN_WARN_BAD_STATE;
  SN_SYNC(lane);
}

static void go_along(Trip *x, SnLane *lane) {
  SnWorld *w = &x->world[0];
  SnRolloutStatus status = SN_ROLLOUT_UNDER_WAY;
  sn_rollout_begin(x->m, x->cost, w, lane, &x->rollout);
  for (int k = 1; status == SN_ROLLOUT_UNDER_WAY; ++k) {
    if (x->manner.slices) {
      sn_rollout_save(x->m, w, lane, &x->rollout);
      w = &x->world[k % 2];
      intrude(x, lane, w);
      sn_rollout_restore(x->m, w, lane, &x->rollout);
    }
    status = sn_rollout_step(x->m, x->cost, w, lane, &x->rollout, &x->scratch);
  }
  x->status[lane->id] = status;
}

static bool go_back(Trip *x, SnLane *lane) {
  const SnRolloutVjp *b = &x->vjp;
  const bool products = x->manner.method == SN_GRADIENT_PRODUCTS;
  const SnRolloutVjpScratch at = {&x->world[1], &x->adjoint, x->res};
  bool finite = true;
  sn_rollout_vjp_begin(x->m, x->cost, lane, b);
  for (int t = 0; products && t <= x->rollout.nstep; ++t) {
    sn_rollout_vjp_recompute(x->m, lane, b, t, &x->world[1]);
    sn_rollout_vjp_jacobian(x->m, x->cost, lane, b, t, at, &x->state[t]);
  }
  for (int t = x->rollout.nstep; t >= 0; --t) {
    if (products) {
      finite &= sn_rollout_vjp_product(x->m, x->cost, lane, b, t, &x->state[t]);
      continue;
    }
    sn_rollout_vjp_recompute(x->m, lane, b, t, &x->world[1]);
    finite &= sn_rollout_vjp_sweep(x->m, x->cost, lane, b, t, at, &x->state[t]);
  }
  return finite;
}

static void travel(SnLane *lane, void *arg) {
  Trip *x = arg;
  go_along(x, lane);
  if (x->status[lane->id] != SN_ROLLOUT_DONE) return;
  x->finite[lane->id] = go_back(x, lane);
  x->norm[lane->id] = sn_norm(lane, x->vjp.ctrl_bar, x->rollout.nstep * x->m->nu);
}

// Everything that a trip writes but what it keeps between slices.
static void same(Trip *a, Trip *b) {
  if (!a->manner.slices)
    memcpy(b->rollout.saved, a->rollout.saved, sizeof(sn_real) * (size_t)sn_rollout_saved_size(a->m));
  assert_int_equal(a->nout, b->nout);
  assert_memory_equal(a->out, b->out, sizeof *a->out * a->nout);
  assert_memory_equal(&a->rollout.total, &b->rollout.total, sizeof a->rollout.total);
  assert_true(a->rollout.t == b->rollout.t && a->rollout.status == b->rollout.status &&
              a->rollout.warn == b->rollout.warn);
  for (int i = 0; i < b->manner.lanes; ++i) {
    assert_true(b->status[i] == a->status[0] && b->finite[i] == a->finite[0]);
    assert_memory_equal(&b->norm[i], &a->norm[0], sizeof a->norm[0]);
  }
}

// One lane at once, which is given back, against several with the world given away.
static Trip compare(const SnModel *m, const SnCost *cost, const SnWorld *at, Manner manner) {
  Trip one;
  manner.lanes = 1;
  manner.slices = false;
  trip_make(&one, m, cost, at, &manner);
  sn_lanes_run(1, travel, &one);
  manner.slices = true;
  for (int lanes = 1; lanes <= MAX_LANES; lanes += lanes == 1 ? 1 : 3) {
    Trip many;
    manner.lanes = lanes;
    trip_make(&many, m, cost, at, &manner);
    sn_lanes_run(lanes, travel, &many);
    same(&one, &many);
    trip_free(&many);
  }
  return one;
}

// A rollout that ends well and has a gradient.
static void compare_done(const SnModel *m, const SnCost *cost, const SnWorld *at, const Manner *manner) {
  Trip x = compare(m, cost, at, *manner);
  assert_int_equal(x.rollout.status, SN_ROLLOUT_DONE);
  assert_true(x.rollout.t == manner->steps && x.finite[0]);
  assert_true(x.rollout.total > 0 && (m->nu == 0 || x.norm[0] > 0));
  trip_free(&x);
}

// A task that looks at all that moves in it.
typedef struct Checked {
  SnTask *task;
  SnCost *cost;
} Checked;

static Checked check_all(const SnModel *m) {
  char text[1000];
  SnError err = {0};
  Checked c = {0};
  assert_true(sn_probe_task(m, text, sizeof text));
  c.task = sn_task_parse(text, strlen(text), "checked.yaml", &err);
  if (c.task) c.cost = sn_cost_create(c.task, m, &err);
  if (!c.cost) fail_msg("%s", err.text);
  return c;
}

static void check_free(Checked *c) {
  sn_cost_free(c->cost);
  sn_task_free(c->task);
}

// A body with every kind of target: rows, another element, a schedule.
static void small_body(void **state) {
  (void)state;
  SnError err = {0};
  SnCost *cost = sn_cost_create(task, body.m, &err);
  if (!cost) fail_msg("%s", err.text);
  for (int k = 0; k < 2; ++k) {
    sn_oracle_randomize(&body, 1);
    sn_oracle_copy_state(&body);
    compare_done(body.m, cost, &body.w,
                 &(Manner){.steps = MAX_STEPS, .method = (SnGradientMethod)k, .grid = k == 1, .max_velocity = 100});
  }
  sn_cost_free(cost);
}

static void small_models(void **state) {
  (void)state;
  static const int integrators[] = {SN_INT_EULER, SN_INT_IMPLICITFAST, SN_INT_RK4, SN_INT_DISCRETE};
  for (int i = 0; i <= SN_SMALL_MODELS; ++i) {
    SnOracle o;
    sn_oracle_load_string(&o, i < SN_SMALL_MODELS ? sn_small_model(i) : sn_branching_model());
    Checked c = check_all(o.m);
    for (int k = 0; k < 4; ++k) {
      o.m->opt.integrator = integrators[(k + i) % 4];
      sn_oracle_randomize(&o, 1);
      sn_oracle_copy_state(&o);
      compare_done(o.m, c.cost, &o.w,
                   &(Manner){.steps = k < 3 ? 3 : 2,
                             .method = k < 3 ? SN_GRADIENT_SWEEP : SN_GRADIENT_PRODUCTS,
                             .cfd = k % 2 == 1,
                             .cfd_path = k == 2,
                             .bars = k == 0 || k == 3,
                             .grid = k == 0 || k == 2,
                             .max_velocity = 1000});
    }
    check_free(&c);
    sn_oracle_free(&o);
  }
}

// A body with sensors of all kinds, whose numbers are an output, and bars of them; the adjoint of a step has one pass,
// or more by noslip and by exact diagonals.
static void sensors(void **state) {
  (void)state;
  SensingBody *x = sensing_open();
  SensingInput input;
  const SnState initial = sensing_input(x, &input, 1);
  sn_world_set_state(x->m, &x->o.w, &initial);
  for (int k = 0; k < 4; ++k) {
    x->o.m->opt.noslip_iterations = k == 2 ? 3 : 0;
    x->o.m->opt.enableflags = k == 3 ? SN_ENBL_DIAGEXACT : 0;
    compare_done(
        x->m, x->cost, &x->o.w,
        &(Manner){
            .steps = k < 2 ? MAX_STEPS : 3, .method = (SnGradientMethod)(k % 2), .bars = true, .max_velocity = 100});
  }
  sensing_close(x);
}

static void myohand(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_myosuite(&o, "envs/myo/assets/hand/myohand_baoding.xml");
  Checked c = check_all(o.m);
  sn_oracle_copy_state(&o);
  compare_done(o.m, c.cost, &o.w,
               &(Manner){.steps = 2, .method = SN_GRADIENT_SWEEP, .cfd = true, .max_velocity = 1000});
  check_free(&c);
  sn_oracle_free(&o);
}

// Divergence and overflow come to all lanes alike, and what the rollout warns of stays through the slices.
static void ends_badly(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, sn_small_model(1));
  Checked c = check_all(o.m);
  sn_oracle_copy_state(&o);
  o.m->nconmax = 1;
  Trip x = compare(o.m, c.cost, &o.w, (Manner){.steps = 3, .cfd_path = true, .max_velocity = 1000});
  assert_true(x.rollout.status == SN_ROLLOUT_DONE && x.rollout.warn == SN_WARN_CONTACT_FULL);
  const sn_real speed = sn_abs(x.rollout.out_qvel[2 * o.m->nv + 2]);
  trip_free(&x);
  x = compare(o.m, c.cost, &o.w, (Manner){.steps = 3, .cfd_path = true, .max_velocity = SN_R(0.5) * speed});
  assert_true(x.rollout.status == SN_ROLLOUT_DIVERGED && x.rollout.t > 0 && x.rollout.t <= 2 && isinf(x.rollout.total));
  assert_int_equal(x.rollout.warn, SN_WARN_CONTACT_FULL);
  trip_free(&x);
  check_free(&c);
  sn_oracle_free(&o);
}

typedef struct Candidate {
  SnNoise noise;
  int index;
  sn_real *base, *scratch, *ctrl;
} Candidate;

static void make_candidate(SnLane *lane, void *arg) {
  const Candidate *c = arg;
  sn_candidate_controls(body.m, &c->noise, c->index, lane, c->base, 40, c->scratch, c->ctrl);
}

// Scratch has the room that is asked for and no more: what lies behind it stays.
static void candidates(void **state) {
  (void)state;
  enum { STEPS = 40, NU = 3, CAPACITY = 300 };
  sn_real base[STEPS * NU], one[STEPS * NU], many[STEPS * NU], scratch[CAPACITY + 1];
  assert_int_equal(body.m->nu, NU);
  for (int i = 0; i < STEPS * NU; ++i) base[i] = sn_sin((sn_real)i);
  for (int k = 0; k < 9; ++k) {
    Candidate c = {.noise = {.seed = 4,
                             .plan = 2,
                             .spacing = 4,
                             .phase = k % 4,
                             .interpolation = k % 3,
                             .colour = k / 3,
                             .scale = SN_R(0.3)},
                   .index = k,
                   .base = base,
                   .scratch = scratch,
                   .ctrl = one};
    c.noise.knots = sn_noise_knots(STEPS, c.noise.spacing, c.noise.phase);
    sn_lanes_run(1, make_candidate, &c);
    assert_int_equal(memcmp(base, one, sizeof base) == 0, k == 0);
    c.ctrl = many;
    for (int lanes = 2; lanes <= MAX_LANES; ++lanes) {
      const int capacity = sn_candidate_scratch(c.noise.knots, lanes);
      assert_true(capacity <= CAPACITY);
      memset(many, 0, sizeof many);
      scratch[capacity] = SN_R(0.125);
      sn_lanes_run(lanes, make_candidate, &c);
      assert_memory_equal(one, many, sizeof one);
      assert_true(scratch[capacity] == SN_R(0.125));
    }
  }
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(small_body), cmocka_unit_test(small_models),
                                     cmocka_unit_test(sensors),    cmocka_unit_test(myohand),
                                     cmocka_unit_test(ends_badly), cmocka_unit_test(candidates)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
