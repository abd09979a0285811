// Differentiates a cost of one's own: rollouts run forward, the program makes a number of their trajectories and hands
// its derivative with respect to them back (their adjoint), as automatic differentiation does. The cost here:
//
//   L = sum of 1/2 |qpos|^2 over the states + 1/2 |qvel at the end|^2 + 0.01 times 1/2 |ctrl|^2
//
//   adjoint MODEL
#include <math.h>
#include <sinew.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 4, STEPS = 64, ROWS = STEPS + 1 };

// Holds the model's sizes, and trajectories of all rollouts beside the derivatives of L by them.
typedef struct Motion {
  int nq, nv, nu;
  double *ctrl, *qpos, *qvel;
  double *ctrl_bar, *qpos_bar, *qvel_bar;
} Motion;

static int fail(const SinewError *err) { return fprintf(stderr, "adjoint: %s\n", err->text), 1; }

static double *numbers(int n) { return calloc((size_t)n + 1, sizeof(double)); }

// Adds 1/2 weight |x|^2 to L for n numbers, and writes its derivative.
static double half_square(const double *x, double *bar, int n, double weight) {
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    sum += 0.5 * weight * x[i] * x[i];
    bar[i] = weight * x[i];
  }
  return sum;
}

// Returns L, the sum over all rollouts. Bars that stay zero are those of velocities before the end.
static double cost(Motion *m) {
  double sum = half_square(m->qpos, m->qpos_bar, COUNT * ROWS * m->nq, 1);
  sum += half_square(m->ctrl, m->ctrl_bar, COUNT * STEPS * m->nu, 0.01);
  for (int i = 0; i < COUNT; ++i) {
    const int end = (i * ROWS + STEPS) * m->nv;
    sum += half_square(m->qvel + end, m->qvel_bar + end, m->nv, 1);
  }
  return sum;
}

// Allocates all arrays of a motion. Returns false when out of memory.
static bool make_motion(Motion *m, const SinewSizes *size) {
  m->nq = size->nq, m->nv = size->nv, m->nu = size->nu;
  m->ctrl = numbers(COUNT * STEPS * m->nu), m->ctrl_bar = numbers(COUNT * STEPS * m->nu);
  m->qpos = numbers(COUNT * ROWS * m->nq), m->qpos_bar = numbers(COUNT * ROWS * m->nq);
  m->qvel = numbers(COUNT * ROWS * m->nv), m->qvel_bar = numbers(COUNT * ROWS * m->nv);
  return m->ctrl && m->ctrl_bar && m->qpos && m->qpos_bar && m->qvel && m->qvel_bar;
}

// Runs the rollouts and returns their cost, NaN on failure.
static double forward(SinewBatch *batch, Motion *m, SinewError *err) {
  SinewRollouts rollouts = sinew_default_rollouts();
  rollouts.count = COUNT;
  rollouts.steps = STEPS;
  rollouts.one_state = true;
  rollouts.ctrl = m->ctrl;
  rollouts.out_qpos = m->qpos;
  rollouts.out_qvel = m->qvel;
  return sinew_batch_rollout(batch, &rollouts, err) == SINEW_OK ? cost(m) : NAN;
}

// Goes back through them from the derivatives of the cost.
static SinewStatus back(SinewBatch *batch, const Motion *m, double *gradient, SinewError *err) {
  SinewTrajectoryBars bars = sinew_default_bars();
  bars.coordinates = SINEW_ARRAY;  // by the entries of qpos
  bars.qpos = m->qpos_bar;
  bars.qvel = m->qvel_bar;
  bars.ctrl = m->ctrl_bar;
  SinewGradients out = sinew_default_gradients();
  out.ctrl = gradient;
  return sinew_batch_vjp(batch, &bars, &out, err);
}

int main(int argc, char **argv) {
  if (argc != 2) return fprintf(stderr, "usage: adjoint MODEL\n"), 2;
  SinewError err;
  SinewModel *model = sinew_model_load(argv[1], &err);
  SinewBackend *backend = model ? sinew_backend_open("cpu", NULL, &err) : NULL;
  if (!backend) return fail(&err);
  SinewBatchDef def = sinew_default_batch();
  def.model = model;
  def.backend = backend;
  def.capacity = COUNT;
  def.steps = STEPS;
  def.gradients = true;
  SinewBatch *batch = sinew_batch_create(&def, &err);
  if (!batch) return fail(&err);

  Motion m;
  if (!make_motion(&m, sinew_model_sizes(model))) return 1;
  const int n = COUNT * STEPS * m.nu;
  double *gradient = numbers(n), length = 0, slope = 0;
  if (!gradient) return 1;
  for (int i = 0; i < n; ++i) m.ctrl[i] = (double)rand() / RAND_MAX;
  const double before = forward(batch, &m, &err);
  if (isnan(before) || back(batch, &m, gradient, &err) != SINEW_OK) return fail(&err);

  // The slope along the gradient is its length.
  for (int i = 0; i < n; ++i) length = hypot(length, gradient[i]);
  for (int side = 1; side >= -1; side -= 2) {
    for (int i = 0; i < n; ++i) m.ctrl[i] += (side > 0 ? 1 : -2) * 1e-5 * gradient[i] / length;
    slope += side * forward(batch, &m, &err) / 2e-5;
  }
  printf("cost %.6g, gradient of length %.6g, by a difference %.6g\n", before, length, slope);

  double *const arrays[] = {m.ctrl, m.qpos, m.qvel, m.ctrl_bar, m.qpos_bar, m.qvel_bar, gradient};
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; ++i) free(arrays[i]);
  sinew_batch_free(batch);
  sinew_backend_close(backend);
  sinew_model_free(model);
  return fabs(slope - length) <= 1e-5 * length ? 0 : 1;
}
