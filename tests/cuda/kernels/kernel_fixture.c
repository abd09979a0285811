#include "tests/cuda/kernels/kernel_fixture.h"

#include <math.h>
#include <stdlib.h>

#include "planner/optimize/sampling.h"
#include "tests/support/lanes.h"

enum { SPACING = 3, PHASE = 1 };

// ---- memory ----

// The next n numbers of an array that is counted first.
static sn_real *cut(sn_real *base, size_t *used, int n) {
  sn_real *at = base ? base + *used : NULL;
  *used += (size_t)n;
  return at;
}

static int steps_of(const SnFixtureSettings *s, int i) { return s->steps > i ? s->steps - i : 1; }

static void lay_out_rollout(SnKernelFixture *x, int i) {
  const SnModel *m = x->s.m;
  const int steps = steps_of(&x->s, i), rows = steps + 1;
  SnRollout *p = &x->gradient[i].rollout;
  p->nstep = steps;
  p->qpos = cut(x->in, &x->nin, m->nq);
  p->qvel = cut(x->in, &x->nin, m->nv);
  p->act = cut(x->in, &x->nin, m->na);
  p->qacc_warmstart = cut(x->in, &x->nin, m->nv);
  p->ctrl = cut(x->in, &x->nin, steps * m->nu);
  p->target = cut(x->in, &x->nin, rows * x->s.cost->ntarget);
  p->out_time = cut(x->out, &x->nout, rows);
  p->out_qpos = cut(x->out, &x->nout, rows * m->nq);
  p->out_qvel = cut(x->out, &x->nout, rows * m->nv);
  p->out_act = cut(x->out, &x->nout, rows * m->na);
  p->out_qacc = cut(x->out, &x->nout, rows * m->nv);
  p->sum = cut(x->out, &x->nout, x->s.cost->nterm);
}

static void lay_out_bar(SnKernelFixture *x, int i) {
  const SnModel *m = x->s.m;
  const int rows = x->gradient[i].rollout.nstep + 1;
  SnRolloutBar *b = &x->gradient[i].vjp.bar;
  b->on = 1;
  b->cost = SN_R(-0.7);
  b->qpos = cut(x->in, &x->nin, rows * m->nv);
  b->qvel = cut(x->in, &x->nin, rows * m->nv);
  b->act = cut(x->in, &x->nin, rows * m->na);
  b->sensordata = cut(x->in, &x->nin, rows * m->nsensordata);
  b->ctrl = cut(x->in, &x->nin, (rows - 1) * m->nu);
}

static void lay_out_vjp(SnKernelFixture *x, int i) {
  const SnModel *m = x->s.m;
  const int n = sn_tangent_size(m), rows = x->gradient[i].rollout.nstep + 1, whole = x->s.products ? 1 : 0;
  SnRolloutVjp *b = &x->gradient[i].vjp;
  b->cfd = x->s.cfd;
  b->cfd_qacc = cut(x->out, &x->nout, rows * m->nv);
  b->running = cut(x->out, &x->nout, x->s.cost->nterm);
  b->terminal = cut(x->out, &x->nout, x->s.cost->nterm);
  b->state_bar = cut(x->out, &x->nout, n);
  b->scratch = cut(x->out, &x->nout, n);
  b->ctrl_bar = cut(x->out, &x->nout, rows * m->nu);
  b->target_bar = cut(x->out, &x->nout, rows * x->s.cost->ntarget);
  for (int t = 0; t <= x->s.steps; ++t)
    x->state[i][t] = (SnRolloutVjpState){.A = cut(x->out, &x->nout, whole * n * n),
                                         .B = cut(x->out, &x->nout, whole * n * m->nu),
                                         .state_bar = cut(x->out, &x->nout, whole * n),
                                         .ctrl_bar = cut(x->out, &x->nout, whole * m->nu),
                                         .before_bar = cut(x->out, &x->nout, whole * m->nu),
                                         .target_bar = cut(x->out, &x->nout, x->s.cost->ntarget)};
}

static void lay_out_start(SnKernelFixture *x, int i) {
  const int nu = x->s.m->nu, n = sn_multistart_knots(x->s.steps) * nu;
  SnGradientItem *gradient = &x->gradient[i];
  x->start[i] = (SnMultistartStart){.base = cut(x->out, &x->nout, x->s.steps * nu),
                                    .offset = cut(x->out, &x->nout, n),
                                    .best = cut(x->out, &x->nout, n),
                                    .gradient = cut(x->out, &x->nout, n),
                                    .moments = {.first = cut(x->out, &x->nout, n), .second = cut(x->out, &x->nout, n)},
                                    .ctrl = cut(x->out, &x->nout, x->s.steps * nu),
                                    .ctrl_bar = gradient->vjp.ctrl_bar,
                                    .term = gradient->rollout.sum};
  gradient->rollout.ctrl = x->start[i].ctrl;
}

// What a candidate begins from: a velocity and controls of its own, or those of the first; and where its states go.
static void lay_out_candidate(SnKernelFixture *x, int c) {
  const SnModel *m = x->s.m;
  const int rows = x->s.steps + 1;
  SnRollout *p = &x->begin[c];
  if (c > 0 && !x->s.own) return;
  p->qvel = cut(x->in, &x->nin, m->nv);
  p->ctrl = cut(x->in, &x->nin, x->s.steps * m->nu);
  if (!x->s.own) return;
  p->out_time = cut(x->out, &x->nout, rows);
  p->out_qpos = cut(x->out, &x->nout, rows * m->nq);
  p->out_qvel = cut(x->out, &x->nout, rows * m->nv);
  p->out_act = cut(x->out, &x->nout, rows * m->na);
  p->out_qacc = cut(x->out, &x->nout, rows * m->nv);
  p->out_cost = cut(x->out, &x->nout, rows);
  p->out_sensordata = cut(x->out, &x->nout, rows * m->nsensordata);
}

static void lay_out(SnKernelFixture *x) {
  const SnFixtureSettings *s = &x->s;
  const size_t count = (size_t)s->candidates, nu = (size_t)s->m->nu, steps = (size_t)s->steps;
  x->nin = x->nout = 0;
  for (int i = 0; i < SN_FIXTURE_GRADIENTS; ++i) {
    lay_out_rollout(x, i);
    lay_out_vjp(x, i);
    if (s->bars) lay_out_bar(x, i);
    if (s->multistart) lay_out_start(x, i);
  }
  for (int c = 0; c < s->candidates; ++c) lay_out_candidate(x, c);
  x->multistart.initial_ctrl = cut(x->in, &x->nin, (int)nu);
  x->multistart.nominal = cut(x->out, &x->nout, (int)(steps * nu));
  x->multistart.best_term = cut(x->out, &x->nout, s->cost->nterm);
  x->sample.ctrl = cut(x->out, &x->nout, (int)(count * steps * nu));
  x->sample.sum = cut(x->out, &x->nout, s->candidates * s->cost->nterm);
  x->sample.total = cut(x->out, &x->nout, s->candidates);
  x->sample.saved = cut(x->out, &x->nout, s->candidates * sn_rollout_saved_size(s->m));
}

static void *memory(size_t bytes) {
  void *p = aligned_alloc(64, (bytes + 64) / 64 * 64);
  assert_non_null(p);
  memset(p, 0xff, bytes);
  return p;
}

// ---- contents ----

static sn_real wave(int i, int k) { return sn_sin(SN_R(0.37) * (sn_real)(7 * i + 3 * k)); }

static void fill_rollout(SnKernelFixture *x, int i) {
  const SnModel *m = x->s.m;
  const SnWorld *at = x->s.at;
  SnRollout *p = &x->gradient[i].rollout;
  memcpy((void *)p->qpos, at->qpos, sizeof(sn_real) * (size_t)m->nq);
  for (int k = 0; k < m->nv; ++k) ((sn_real *)p->qvel)[k] = at->qvel[k] + SN_R(0.05) * (sn_real)i * wave(k, i);
  memcpy((void *)p->act, at->act, sizeof(sn_real) * (size_t)m->na);
  for (int k = 0; k < p->nstep * m->nu; ++k) ((sn_real *)p->ctrl)[k] = SN_R(0.4) + SN_R(0.3) * wave(k, i);
  sn_cost_schedule(x->s.cost, (double)at->time[0], (double)m->opt.timestep, p->nstep + 1, (sn_real *)p->target);
  p->time = at->time[0];
  p->mocap_pos = at->mocap_pos;
  p->running = x->s.cost->weight;
  p->terminal = x->s.cost->terminal;
  p->max_velocity = x->s.max_velocity;
}

// Bars follow each other.
static void fill_bar(SnKernelFixture *x, int i) {
  const SnRolloutBar *b = &x->gradient[i].vjp.bar;
  const sn_real *end = b->ctrl + x->gradient[i].rollout.nstep * x->s.m->nu;
  for (sn_real *at = (sn_real *)b->qpos; at < end; ++at) *at = wave((int)(at - b->qpos), i);
}

static void fill_gradient(SnKernelFixture *x, int i) {
  if (x->s.bars) fill_bar(x, i);
  x->gradient[i].active = 1;
  x->gradient[i].state = x->state[i];
  x->gradient[i].cfd_steps = &x->cfd_steps[i];
  x->gradient[i].continues = 1;
  x->gradient[i].multistart = x->s.multistart ? 0 : -1;
  x->gradient[i].index = i;
  x->gradient[i].start = x->s.multistart ? &x->start[i] : NULL;
  x->gradient[i].init = x->s.multistart;
}

static SnNoise some_noise(const SnFixtureSettings *s) {
  return (SnNoise){.seed = 5,
                   .plan = 2,
                   .spacing = SPACING,
                   .phase = PHASE,
                   .knots = sn_noise_knots(s->steps, SPACING, PHASE),
                   .interpolation = SN_SPLINE_LINEAR,
                   .colour = SN_NOISE_PINK,
                   .scale = SN_R(0.3)};
}

// Candidates [first, first + count) of the sample, as a sample of their own.
static SnSample part_of(const SnKernelFixture *x, int first, int count) {
  const SnModel *m = x->s.m;
  const size_t k = (size_t)first;
  SnSample s = x->sample;
  s.rollout += x->s.own ? first : 0;
  s.first += first;
  s.count = count;
  s.ctrl += k * (size_t)(x->s.steps * m->nu);
  s.sum += k * (size_t)x->s.cost->nterm;
  s.total += k;
  s.saved += k * (size_t)sn_rollout_saved_size(m);
  s.t += k;
  s.status += k;
  s.warn += k;
  return s;
}

static void fill_candidate(SnKernelFixture *x, int c) {
  const SnModel *m = x->s.m;
  SnRollout *p = &x->begin[c], from = x->gradient[0].rollout;
  for (int k = 0; k < m->nv; ++k) ((sn_real *)p->qvel)[k] = from.qvel[k] + SN_R(0.05) * (sn_real)c * wave(k, c);
  for (int k = 0; k < x->s.steps * m->nu; ++k) ((sn_real *)p->ctrl)[k] = SN_R(0.4) + SN_R(0.2) * wave(k, 9 + c);
  p->time = from.time;
  p->qpos = from.qpos;
  p->act = from.act;
  p->mocap_pos = from.mocap_pos;
  p->qacc_warmstart = from.qacc_warmstart;
  p->target = from.target;
  p->running = from.running;
  p->terminal = from.terminal;
  p->nstep = from.nstep;
  p->max_velocity = from.max_velocity;
}

static void fill_shared(SnKernelFixture *x) {
  const SnFixtureSettings *s = &x->s;
  const SnNoise noise = some_noise(s);
  SnMultistart *r = &x->multistart;
  const int rows = s->steps * s->m->nu;
  for (int c = 0; c < (s->own ? s->candidates : 1); ++c) fill_candidate(x, c);
  for (int k = 0; k < rows; ++k) r->nominal[k] = SN_R(0.4) + SN_R(0.2) * wave(k, 8);
  x->sample.rollout = x->begin;
  x->sample.own = s->own;
  x->sample.nstep = s->steps;
  x->sample.noisy = 1;
  x->sample.noise = noise;
  x->sample.count = s->candidates;
  x->sample.t = x->books;
  x->sample.status = x->books + s->candidates;
  x->sample.warn = x->books + 2 * s->candidates;
  x->part[0] = part_of(x, 0, 1);
  x->part[1] = part_of(x, 1, s->candidates - 1);
  r->grid = (SnAdamGrid){s->steps, sn_noise_knots(s->steps, 2, 1), 2, 1, SN_SPLINE_LINEAR, {0}};
  r->rule = (SnAdamRule){SN_R(0.05), SN_R(0.9), SN_R(0.99), SN_R(1e-8), SN_CLIP_GLOBAL, SN_R(1.0)};
  r->noise = noise;
  r->starts = SN_FIXTURE_GRADIENTS;
  r->best_cost = r->gradient_norm = (sn_real)NAN;
  x->turn = (SnMultistartTurn){.data = r, .count = SN_FIXTURE_GRADIENTS, .active = 1, .todo = 1 << 20};
}

static void fill_work(SnKernelFixture *x) {
  const SnFixtureSettings *s = &x->s;
  const int knots = some_noise(s).knots;
  SnWork *w = &x->work;
  SnError err;
  w->model = *s->m;
  w->cost = *s->cost;
  for (int k = 0; k < 2; ++k) w->turn[w->nturn++].sample = &x->part[k];
  w->gradient = x->gradient;
  w->ngradient = SN_FIXTURE_GRADIENTS;
  w->multistart = &x->turn;
  w->nmultistart = s->multistart ? 1 : 0;
  assert_int_equal(sn_world_place(s->m, SN_LAYOUT_LINE, &w->block.world, &err), SN_OK);
  assert_int_equal(sn_adjoint_place(s->m, &w->block.adjoint, &err), SN_OK);
  assert_int_equal(sn_world_place(s->m, SN_LAYOUT_LINE, &w->state.world, &err), SN_OK);
  w->block.stride = sn_kernel_bytes(&w->block) + 64;
  w->state.stride = w->state.world.bytes;
  w->scratch_size = s->cost->nres + s->cost->nall + sn_candidate_scratch(knots, SN_FIXTURE_LANES);
  x->nglobal = (size_t)s->blocks * w->block.stride;
  w->block.memory = x->global = memory(x->nglobal);
  w->state.memory = x->worlds = memory((size_t)(SN_FIXTURE_GRADIENTS * s->states) * w->state.stride);
  w->scratch = x->scratch = memory(sizeof(sn_real) * (size_t)(s->blocks * w->scratch_size));
}

void sn_fixture_make(SnKernelFixture *x, const SnFixtureSettings *settings) {
  memset(x, 0, sizeof *x);
  x->s = *settings;
  for (int i = 0; i < SN_FIXTURE_GRADIENTS; ++i) x->state[i] = calloc((size_t)settings->steps + 1, sizeof *x->state[i]);
  x->begin = calloc((size_t)settings->candidates + 1, sizeof *x->begin);
  lay_out(x);
  x->in = calloc(x->nin + 1, sizeof *x->in);
  x->out = calloc(x->nout + 1, sizeof *x->out);
  x->books = calloc(3 * (size_t)settings->candidates + 1, sizeof *x->books);
  lay_out(x);
  for (int i = 0; i < SN_FIXTURE_GRADIENTS; ++i) {
    fill_rollout(x, i);
    fill_gradient(x, i);
  }
  fill_shared(x);
  fill_work(x);
}

void sn_fixture_free(SnKernelFixture *x) {
  for (int i = 0; i < SN_FIXTURE_GRADIENTS; ++i) free(x->state[i]);
  free(x->begin);
  free(x->in);
  free(x->out);
  free(x->books);
  free(x->global);
  free(x->worlds);
  free(x->scratch);
  free(x->marks);
}

// ---- launches ----

typedef struct Launch {
  SnKernelFixture *x;
  SnKernel kernel;
} Launch;

static void run_blocks(SnLane *lane, void *argument) {
  const Launch *launch = argument;
  const SnKernelFixture *x = launch->x;
  for (int b = 0; b < x->s.blocks; ++b)
    sn_kernel_body(launch->kernel, &x->work, b, x->s.blocks, lane, sn_kernel_slot(&x->work, b));
}

void sn_fixture_launch(SnKernelFixture *x, SnKernel kernel, int from, int to) {
  Launch launch = {x, kernel};
  x->work.from = from;
  x->work.to = to;
  memset(x->global, 0xff, x->nglobal);
  sn_lanes_run(x->s.lanes, run_blocks, &launch);
}

// What products leave in the states of an item: a vector times a matrix for each state.
static void multiply(const SnKernelFixture *x, int i) {
  const int n = sn_tangent_size(x->s.m);
  for (int t = x->s.steps - 1; t >= 0; --t) {
    const SnRolloutVjpState *s = &x->state[i][t];
    const sn_real *next = x->state[i][t + 1].state_bar;
    for (int k = 0; k < n; ++k)
      for (int j = 0; j < n; ++j) s->state_bar[j] += s->A[k * n + j] * next[k];
  }
}

void sn_fixture_gradient(SnKernelFixture *x, SnFixtureMethod method) {
  const int rows = x->s.steps + 1, chunk = x->s.states;
  for (int i = 0; i < SN_FIXTURE_GRADIENTS; ++i)
    x->gradient[i].method = method == SN_FIXTURE_SWEEP ? SN_GRADIENT_SWEEP : SN_GRADIENT_PRODUCTS;
  sn_fixture_launch(x, SN_KERNEL_FORWARD, 0, 0);
  for (int to = rows; to > 0; to -= chunk) {
    const int from = to > chunk ? to - chunk : 0;
    // a chunk is counted from its first state: the slots of worlds depend on it
    sn_fixture_launch(x, method == SN_FIXTURE_SWEEP ? SN_KERNEL_MAKE : SN_KERNEL_JACOBIAN, from, to);
    if (method == SN_FIXTURE_SWEEP) sn_fixture_launch(x, SN_KERNEL_SWEEP, from, to);
  }
  for (int i = 0; method == SN_FIXTURE_PRODUCTS && i < SN_FIXTURE_GRADIENTS; ++i)
    if (x->gradient[i].status == SN_GRADIENT_PENDING) multiply(x, i);
  if (method == SN_FIXTURE_PRODUCTS) sn_fixture_launch(x, SN_KERNEL_COLLECT, 0, rows);
  sn_fixture_launch(x, SN_KERNEL_EVALUATE, 0, 0);
}

// The second part is half a slice late, where a slice has halves.
void sn_fixture_sample(SnKernelFixture *x, int slice) {
  SnSampleTurn *turn = x->work.turn;
  const int late = slice / 2;
  turn[0].to = turn[1].to = 0;
  for (int k = 0; turn[1].to <= x->s.steps; ++k) {
    for (int i = 0; i < 2; ++i) {
      turn[i].from = turn[i].to;
      turn[i].to = (k + 1) * slice - (i ? late : 0);
    }
    sn_fixture_launch(x, SN_KERNEL_ROLLOUT, 0, 0);
  }
}

void sn_fixture_multistart(SnKernelFixture *x, int iterations) {
  x->turn.todo = iterations;
  for (int k = 0; k < iterations; ++k) {
    sn_fixture_launch(x, SN_KERNEL_ITERATE, 0, 0);
    sn_fixture_gradient(x, SN_FIXTURE_SWEEP);
    sn_fixture_launch(x, SN_KERNEL_SELECT, 0, 0);
  }
}

// ---- comparison ----

static void same_number(sn_real a, sn_real b) { assert_memory_equal(&a, &b, sizeof a); }

static void same_gradient(const SnKernelFixture *a, const SnKernelFixture *b, int i) {
  const SnGradientItem *p = &a->gradient[i], *q = &b->gradient[i];
  assert_true(p->active == q->active && p->status == q->status && p->init == q->init);
  assert_true(p->rollout.t == q->rollout.t && p->rollout.status == q->rollout.status &&
              p->rollout.warn == q->rollout.warn);
  assert_int_equal(a->cfd_steps[i], b->cfd_steps[i]);
  same_number(p->norm, q->norm);
  same_number(p->rollout.total, q->rollout.total);
  same_number(a->start[i].cost, b->start[i].cost);
  same_number(a->start[i].norm, b->start[i].norm);
  same_number(a->start[i].best_cost, b->start[i].best_cost);
  same_number(a->start[i].moments.power1, b->start[i].moments.power1);
  assert_int_equal(a->start[i].diverged, b->start[i].diverged);
}

void sn_fixture_same(const SnKernelFixture *a, const SnKernelFixture *b) {
  assert_int_equal(a->nout, b->nout);
  assert_memory_equal(a->out, b->out, sizeof *a->out * a->nout);
  assert_memory_equal(a->books, b->books, sizeof *a->books * 3 * (size_t)a->s.candidates);
  for (int i = 0; i < SN_FIXTURE_GRADIENTS; ++i) same_gradient(a, b, i);
  assert_true(a->turn.todo == b->turn.todo && a->turn.active == b->turn.active);
  assert_true(a->turn.warn == b->turn.warn && a->multistart.measured == b->multistart.measured);
  same_number(a->multistart.cost_before, b->multistart.cost_before);
  same_number(a->multistart.best_cost, b->multistart.best_cost);
  same_number(a->multistart.gradient_norm, b->multistart.gradient_norm);
}
