#include "tests/cuda/agree_batch.h"

#include <math.h>
#include <stdlib.h>

#include "physics/sensor/sensor.h"
#include "tests/cuda/check_task.h"

enum { STEPS = 4, ROWS = STEPS + 1 };

// What a backend is given: the controls of each state, and the bars of the caller's cost.
typedef struct Own {
  double *ctrl, *target, *bar;
  SnTrajectoryBar bars;
} Own;

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

static void run_rollouts(SnBackend *b, SnBackendModel *x, const AgreeCase *c, const Own *own, AgreeResult *r) {
  const SnModel *m = c->o.m;
  const SnClock clock = sn_clock_monotonic();
  unsigned char done[AGREE_STATES] = {0};
  double cost[AGREE_STATES];
  SnTrajectory out[AGREE_STATES];
  const struct {
    const char *name;
    int n;
  } array[] = {{"qpos", m->nq}, {"qvel", m->nv}, {"act", m->na},
               {"cost", 1},     {"qacc", m->nv}, {"sensordata", m->nsensordata}};
  for (int i = 0; i < c->count; ++i) {
    double *to[6];
    for (int k = 0; k < 6; ++k)
      to[k] = agree_vector(r, AGREE_ROW_BATCH, NULL, ROWS * array[k].n, "%s, state %d: %s", c->name, i, array[k].name);
    out[i] =
        (SnTrajectory){.qpos = to[0], .qvel = to[1], .act = to[2], .cost = to[3], .qacc = to[4], .sensordata = to[5]};
  }
  const SnBatch batch = {.state = c->state,
                         .nstate = c->count,
                         .ctrl = own->ctrl,
                         .nctrl = c->count,
                         .target = own->target,
                         .ntable = 1,
                         .nstep = STEPS,
                         .count = c->count,
                         .max_velocity = 1e6,
                         .cost = cost,
                         .done = done,
                         .out = out};
  check_ended(sn_backend_rollouts(b, x, &batch, &clock, INFINITY), b, c->name);
}

static void run_gradients(SnBackend *b, SnBackendModel *x, const AgreeCase *c, const Own *own, AgreeResult *r) {
  const SnModel *m = c->o.m;
  const SnClock clock = sn_clock_monotonic();
  SnGradient item[AGREE_STATES];
  SnGradientBatch batch = {.settings = sn_default_gradient_settings(), .item = item, .count = c->count};
  const struct {
    const char *name;
    int n;
  } bar[] = {{"ctrl", STEPS * m->nu}, {"qpos", m->nv}, {"qvel", m->nv}, {"act", m->na}};
  for (int i = 0; i < c->count; ++i) {
    double *to[4];
    for (int k = 0; k < 4; ++k)
      to[k] = agree_vector(r, AGREE_ROW_BARS, NULL, bar[k].n, "%s, state %d: %s_bar", c->name, i, bar[k].name);
    item[i] = (SnGradient){.state = c->state[i],
                           .ctrl = own->ctrl + i * STEPS * m->nu,
                           .target = own->target,
                           .nstep = STEPS,
                           .max_velocity = 1e6,
                           .bar = &own->bars,
                           .ctrl_bar = to[0],
                           .qpos_bar = to[1],
                           .qvel_bar = to[2],
                           .act_bar = to[3]};
  }
  check_ended(sn_backend_gradients(b, x, &batch, &clock, INFINITY), b, c->name);
}

void agree_batch_run(SnBackend *b, const AgreeCase *c, AgreeResult *r) {
  SnError err = {0};
  Own own = make_own(c);
  SnBackendModel *x = sn_backend_load(b, c->o.m, c->smooth.cost, STEPS, &err);
  if (!x || sn_backend_reserve_batches(b, x, c->count, &err) != SN_OK ||
      sn_backend_reserve_gradients(b, x, c->count, &err) != SN_OK)
    fail_msg("%s: %s", c->name, err.text);
  run_rollouts(b, x, c, &own, r);
  run_gradients(b, x, c, &own, r);
  sn_backend_unload(b, x);
  free(own.ctrl);
  free(own.target);
  free(own.bar);
}
