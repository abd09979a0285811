// Computes the gradient of a task's cost with respect to all controls of a rollout, and checks it by a difference.
//   gradient MODEL TASK
#include <math.h>
#include <sinew.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 64 };

static int fail(const SinewError *err) { return fprintf(stderr, "gradient: %s\n", err->text), 1; }

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: gradient MODEL TASK\n"), 2;
  SinewError err;
  SinewModel *model = sinew_model_load(argv[1], &err);
  SinewTask *task = model ? sinew_task_load(argv[2], &err) : NULL;
  SinewBackend *backend = task ? sinew_backend_open("cpu", NULL, &err) : NULL;
  if (!backend) return fail(&err);

  SinewBatchDef def = sinew_default_batch();
  def.model = model;
  def.task = task;
  def.backend = backend;
  def.capacity = 2;  // for the difference: two at once
  def.steps = STEPS, def.gradients = true;
  SinewBatch *batch = sinew_batch_create(&def, &err);
  const int n = STEPS * sinew_model_sizes(model)->nu;
  double *ctrl = calloc(2 * (size_t)n, sizeof *ctrl), *gradient = calloc(2 * (size_t)n, sizeof *gradient), cost[2];
  if (!batch || !ctrl || !gradient) return fail(&err);

  SinewRollouts rollouts = sinew_default_rollouts();
  rollouts.count = 1;
  rollouts.steps = STEPS;
  rollouts.one_state = true;  // all from where the task begins
  const SinewState start = sinew_batch_initial(batch);
  rollouts.qpos = start.qpos, rollouts.qvel = start.qvel, rollouts.act = start.act, rollouts.mocap = start.mocap;
  rollouts.ctrl = ctrl;
  rollouts.cost = cost;
  SinewGradients out = sinew_default_gradients();
  out.ctrl = gradient;
  for (int i = 0; i < n; ++i) ctrl[i] = 0.2 + 0.1 * sin(i);
  if (sinew_batch_rollout(batch, &rollouts, &err) != SINEW_OK) return fail(&err);
  if (sinew_batch_vjp(batch, NULL, &out, &err) != SINEW_OK) return fail(&err);
  const double before = cost[0];
  // The slope along the gradient is its length.
  double length = 0;
  for (int i = 0; i < n; ++i) length = hypot(length, gradient[i]);
  for (int i = 0; i < n; ++i) {
    const double step = 1e-4 * gradient[i] / length;
    ctrl[n + i] = ctrl[i] - step;
    ctrl[i] += step;
  }
  rollouts.count = 2;
  if (sinew_batch_rollout(batch, &rollouts, &err) != SINEW_OK) return fail(&err);
  const double difference = (cost[0] - cost[1]) / 2e-4;
  printf("cost %.6g, gradient of length %.6g, by a difference %.6g\n", before, length, difference);
  free(ctrl), free(gradient);
  sinew_batch_free(batch), sinew_backend_close(backend), sinew_task_free(task), sinew_model_free(model);
  return fabs(difference - length) <= 1e-5 * length ? 0 : 1;
}
