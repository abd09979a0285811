#include "tests/cuda/agree_batch.h"

#include <math.h>
#include <stdlib.h>

#include "physics/sensor/sensor.h"
#include "tests/cuda/agree_table.h"
#include "tests/cuda/check_task.h"

enum { STEPS = 4, ROWS = STEPS + 1, ARRAYS = 6, BARS = 4 };

static const char *const array_name[ARRAYS] = {"qpos", "qvel", "act", "cost", "qacc", "sensordata"};
static const char *const bar_name[BARS] = {"ctrl_bar", "qpos_bar", "qvel_bar", "act_bar"};

// What one backend makes of a case: for each state the arrays of its trajectory, then the bars.
typedef struct Batch {
  const SnModel *m;
  int n, sizes[ARRAYS], bars[BARS], size;
  double *number;  // (n, size)
  SnTrajectory out[AGREE_STATES];
  double cost[AGREE_STATES];
  int steps[AGREE_STATES], status[AGREE_STATES];
} Batch;

// What both are given: the controls of each state, and the bars of the caller's cost.
typedef struct Own {
  double *ctrl, *target, *bar;
  SnTrajectoryBar bars;
} Own;

static double *place(const Batch *b, int state, int k) {
  double *at = b->number + (size_t)state * (size_t)b->size;
  for (int i = 0; i < k; ++i) at += i < ARRAYS ? b->sizes[i] : b->bars[i - ARRAYS];
  return at;
}

static void make_batch(Batch *b, const AgreeCase *c) {
  const SnModel *m = c->o.m;
  const int sizes[ARRAYS] = {m->nq, m->nv, m->na, 1, m->nv, m->nsensordata};
  *b = (Batch){.m = m, .n = c->count, .bars = {STEPS * m->nu, m->nv, m->nv, m->na}};
  for (int k = 0; k < ARRAYS; ++k) b->size += b->sizes[k] = ROWS * sizes[k];
  for (int k = 0; k < BARS; ++k) b->size += b->bars[k];
  b->number = check_array((size_t)(b->n * b->size), sizeof(double));
  for (int i = 0; i < b->n; ++i)
    b->out[i] = (SnTrajectory){.qpos = place(b, i, 0),
                               .qvel = place(b, i, 1),
                               .act = place(b, i, 2),
                               .cost = place(b, i, 3),
                               .qacc = place(b, i, 4),
                               .sensordata = place(b, i, 5)};
}

// Each state's controls at every step, and a linear cost of everything that has a derivative.
static Own make_own(const AgreeCase *c) {
  const SnModel *m = c->o.m;
  const SnCost *cost = c->smooth.cost;
  const int nu = m->nu, ns = m->nsensordata, row = 2 * m->nv + m->na + ns;
  Own own = {.ctrl = check_array((size_t)(c->count * STEPS * nu), sizeof(double)),
             .target = check_array((size_t)(ROWS * cost->ntarget), sizeof(double)),
             .bar = check_array((size_t)(ROWS * row + STEPS * nu), sizeof(double))};
  for (int i = 0; i < c->count * STEPS; ++i)
    for (int k = 0; k < nu; ++k) own.ctrl[i * nu + k] = c->ctrl[i / STEPS][k];
  sn_cost_schedule(cost, 0, (double)m->opt.timestep, ROWS, own.target);
  for (int i = 0; i < ROWS * row + STEPS * nu; ++i) own.bar[i] = sin(1.7 * i);
  double *sensor = own.bar + ROWS * (row - ns);
  for (int i = 0; i < m->nsensor; ++i)
    for (int k = 0; k < ROWS * m->sensor_dim[i] && !sn_sensor_differentiable(m, i); ++k)
      sensor[(k / m->sensor_dim[i]) * ns + m->sensor_adr[i] + k % m->sensor_dim[i]] = 0;
  own.bars = (SnTrajectoryBar){.cost = 0.5,
                               .qpos = own.bar,
                               .qvel = own.bar + ROWS * m->nv,
                               .act = own.bar + ROWS * 2 * m->nv,
                               .sensordata = sensor,
                               .ctrl = own.bar + ROWS * row};
  return own;
}

static void run_rollouts(SnBackend *b, SnBackendModel *x, const AgreeCase *c, const Own *own, Batch *to) {
  const SnClock clock = sn_clock_monotonic();
  unsigned char done[AGREE_STATES] = {0};
  const SnBatch batch = {.state = c->state,
                         .nstate = c->count,
                         .ctrl = own->ctrl,
                         .nctrl = c->count,
                         .target = own->target,
                         .ntable = 1,
                         .nstep = STEPS,
                         .count = c->count,
                         .max_velocity = 1e6,
                         .cost = to->cost,
                         .done = done,
                         .steps = to->steps,
                         .out = to->out};
  check_ended(sn_backend_rollouts(b, x, &batch, &clock, INFINITY), b, c->name);
}

static void run_gradients(SnBackend *b, SnBackendModel *x, const AgreeCase *c, const Own *own, Batch *to) {
  const SnClock clock = sn_clock_monotonic();
  SnGradient item[AGREE_STATES];
  SnGradientBatch batch = {.settings = sn_default_gradient_settings(), .item = item, .count = c->count};
  for (int i = 0; i < c->count; ++i)
    item[i] = (SnGradient){.state = c->state[i],
                           .ctrl = own->ctrl + i * STEPS * to->m->nu,
                           .target = own->target,
                           .nstep = STEPS,
                           .max_velocity = 1e6,
                           .bar = &own->bars,
                           .ctrl_bar = place(to, i, ARRAYS),
                           .qpos_bar = place(to, i, ARRAYS + 1),
                           .qvel_bar = place(to, i, ARRAYS + 2),
                           .act_bar = place(to, i, ARRAYS + 3)};
  check_ended(sn_backend_gradients(b, x, &batch, &clock, INFINITY), b, c->name);
  for (int i = 0; i < c->count; ++i) to->status[i] = (int)item[i].status;
}

static void run(SnBackend *b, const AgreeCase *c, const Own *own, Batch *to) {
  SnError err = {0};
  SnBackendModel *x = sn_backend_load(b, c->o.m, c->smooth.cost, STEPS, &err);
  if (!x || sn_backend_reserve_batches(b, x, c->count, &err) != SN_OK ||
      sn_backend_reserve_gradients(b, x, c->count, &err) != SN_OK)
    fail_msg("%s: %s", c->name, err.text);
  make_batch(to, c);
  run_rollouts(b, x, c, own, to);
  run_gradients(b, x, c, own, to);
  sn_backend_unload(b, x);
}

static void compare(const AgreeCase *c, const Batch *ours, const Batch *ref, int i) {
  if (ours->steps[i] != ref->steps[i] || ours->status[i] != ref->status[i])
    agree_note(AGREE_ROW_BATCH, INFINITY, "%s, state %d: %d steps, not %d", c->name, i, ours->steps[i], ref->steps[i]);
  for (int k = 0; k < ARRAYS; ++k)
    if (ref->sizes[k] > 0)
      agree_note(AGREE_ROW_BATCH, agree_error(place(ours, i, k), place(ref, i, k), ref->sizes[k]), "%s, state %d: %s",
                 c->name, i, array_name[k]);
  for (int k = 0; k < BARS; ++k)
    if (ref->bars[k] > 0)
      agree_note(AGREE_ROW_BARS, agree_error(place(ours, i, ARRAYS + k), place(ref, i, ARRAYS + k), ref->bars[k]),
                 "%s, state %d: %s", c->name, i, bar_name[k]);
}

void agree_batch_check(SnBackend *cpu, SnBackend *other, const AgreeCase *c) {
  Batch ref, ours, again;
  const Own own = make_own(c);
  run(cpu, c, &own, &ref);
  run(other, c, &own, &ours);
  run(other, c, &own, &again);
  if (memcmp(ours.number, again.number, sizeof *ours.number * (size_t)(ours.n * ours.size)) != 0)
    fail_msg("%s: a repetition of a batch gives other bits", c->name);
  for (int i = 0; i < c->count; ++i) compare(c, &ours, &ref, i);
  Batch *const all[] = {&ref, &ours, &again};
  for (int k = 0; k < 3; ++k) free(all[k]->number);
  free(own.ctrl);
  free(own.target);
  free(own.bar);
}
