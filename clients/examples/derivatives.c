// Derivatives of a step: x' = A dx + B du, and a product with them, checked by a difference of two steps.
//   derivatives MODEL.xml
#include <math.h>
#include <sinew.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const SinewError *err) { return fprintf(stderr, "%s\n", err->text), 1; }

// Makes a step from a state with control j moved by h. Returns number k of the next state: a velocity or activation.
static double after(SinewData *data, const SinewState *from, int k, int j, double h, SinewError *err) {
  const int nv = sinew_model_sizes(sinew_data_model(data))->nv;
  double *ctrl = sinew_data_array(data, "ctrl", NULL, NULL);
  sinew_data_set_state(data, from, err);
  ctrl[j] += h;
  sinew_step(data, 1, err);
  ctrl[j] -= h;
  const SinewState next = sinew_data_state(data);
  return k < 2 * nv ? next.qvel[k - nv] : next.act[k - 2 * nv];
}

// Prints the largest derivative of velocities and activations by controls, in three ways.
static int compare(SinewData *data, const SinewSizes *s, double *A, double *B, double *bar, SinewError *err) {
  double *ctrl_bar = bar + s->nstate;
  SinewStateBar next = {0};
  int k = s->nv, j = 0;
  if (sinew_step_jacobian(data, A, B, NULL, NULL, err) != SINEW_OK) return fail(err);
  for (int i = s->nv * s->nu; i < s->nstate * s->nu; ++i)
    if (fabs(B[i]) > fabs(B[k * s->nu + j])) k = i / s->nu, j = i % s->nu;
  bar[k] = 1;  // the function is number k of the next state
  next.qvel = bar + s->nv;
  next.act = bar + 2 * s->nv;
  if (sinew_step_vjp(data, SINEW_TANGENT, &next, NULL, NULL, ctrl_bar, err) != SINEW_OK) return fail(err);
  SinewData *other = sinew_data_create(sinew_data_model(data), err);
  if (!other) return fail(err);
  if (sinew_data_copy_state(other, data, err) != SINEW_OK) return fail(err);
  const SinewState from = sinew_data_state(data);
  const double h = 1e-6, up = after(other, &from, k, j, h, err), down = after(other, &from, k, j, -h, err);
  const double entry = B[k * s->nu + j], difference = (up - down) / (2 * h);
  printf("d x'[%d] / d u[%d]: %.6f of B, %.6f by a product, %.6f by a difference\n", k, j, entry, ctrl_bar[j],
         difference);
  sinew_data_free(other);
  return fabs(entry - difference) <= 1e-4 * fabs(entry) && fabs(entry - ctrl_bar[j]) <= 1e-9 * fabs(entry) ? 0 : 1;
}

int main(int argc, char **argv) {
  SinewError err;
  SinewModel *model = sinew_model_load(argc > 1 ? argv[1] : "model.xml", &err);
  SinewData *data = model ? sinew_data_create(model, &err) : NULL;
  if (!data) return fail(&err);
  const SinewSizes *s = sinew_model_sizes(model);
  const size_t n = (size_t)s->nstate, nu = (size_t)s->nu;
  double *A = calloc(n * n, sizeof *A), *B = calloc(n * nu, sizeof *B), *bar = calloc(n + nu, sizeof *bar);
  int failed = s->nv == 0 || s->nu == 0 || !A || !B || !bar;
  double *ctrl = sinew_data_array(data, "ctrl", NULL, NULL);
  for (size_t i = 0; i < nu; ++i) ctrl[i] = 0.5;
  if (!failed && sinew_step(data, 20, &err) != SINEW_OK) failed = fail(&err);
  for (size_t i = 0; i < nu; ++i) ctrl[i] = 0.8;  // a muscle at rest has a kink: it rises faster than it falls
  if (!failed) failed = compare(data, s, A, B, bar, &err);
  free(A);
  free(B);
  free(bar);
  sinew_data_free(data);
  sinew_model_free(model);
  return failed;
}
