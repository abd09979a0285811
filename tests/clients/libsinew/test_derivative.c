// Derivatives of a step and of its sensors: against MuJoCo's differences, against differences of our own steps, against
// each other; contacts from distance; what is refused.
#include <stdio.h>

#include "tests/clients/libsinew/pair_fixture.h"

// The matrices of a state.
typedef struct Matrices {
  int n, nu, ns;
  double *A, *B, *C, *D;
} Matrices;

static Matrices make_matrices(const BodyPair *b) {
  const SinewSizes *s = sinew_model_sizes(b->model);
  Matrices x = {.n = s->nstate, .nu = s->nu, .ns = s->nsensordata};
  const size_t n = (size_t)x.n, nu = (size_t)x.nu, ns = (size_t)x.ns;
  x.A = calloc(n * n + 1, sizeof *x.A);
  x.B = calloc(n * nu + 1, sizeof *x.B);
  x.C = calloc(ns * n + 1, sizeof *x.C);
  x.D = calloc(ns * nu + 1, sizeof *x.D);
  return x;
}

static void free_matrices(Matrices *x) {
  free(x->A);
  free(x->B);
  free(x->C);
  free(x->D);
}

static double size_of(const double *x, int n) {
  double most = 1e-9;
  for (int i = 0; i < n; ++i) most = sn_larger(most, fabs(x[i]));
  return most;
}

static void equals_mujoco(void **state) {
  (void)state;
  enum { SAMPLES = 4 };
  int compared = 0, skipped = 0;
  for (int i = 0; i < BODY_MODELS; ++i) {
    BodyPair b;
    const char *name = body_open(&b, i);
    if (b.o.mj->opt.integrator == mjINT_RK4) {  // MuJoCo has no differences of it
      body_close(&b);
      continue;
    }
    const bool sensors = i != 5;  // it has two whose derivative is not known
    Matrices ours = make_matrices(&b), fine = make_matrices(&b), coarse = make_matrices(&b);
    const int n = ours.n, nu = ours.nu, ns = ours.ns;
    for (int k = 0; k < SAMPLES; ++k) {
      body_sample(&b, 1);
      body_ok(&b,
              sinew_step_jacobian(b.data, ours.A, ours.B, sensors ? ours.C : NULL, sensors ? ours.D : NULL, &b.err));
      mjd_transitionFD(b.o.mj, b.o.d, 1e-6, 1, fine.A, nu ? fine.B : NULL, ns ? fine.C : NULL,
                       nu && ns ? fine.D : NULL);
      mjd_transitionFD(b.o.mj, b.o.d, 4e-6, 1, coarse.A, nu ? coarse.B : NULL, ns ? coarse.C : NULL,
                       nu && ns ? coarse.D : NULL);
      body_compare_columns(name, ours.A, fine.A, coarse.A, n, n, &compared, &skipped);
      body_compare_columns(name, ours.B, fine.B, coarse.B, n, nu, &compared, &skipped);
      if (!sensors) continue;
      body_compare_columns(name, ours.C, fine.C, coarse.C, ns, n, &compared, &skipped);
      body_compare_columns(name, ours.D, fine.D, coarse.D, ns, nu, &compared, &skipped);
    }
    free_matrices(&ours);
    free_matrices(&fine);
    free_matrices(&coarse);
    body_close(&b);
  }
  printf("%d columns compared, %d left out\n", compared, skipped);
  assert_true(compared > 500 && skipped < compared / 2);
}

// Each matrix alone is the same as with the others; the body stays where it is.
static void alone(void **state) {
  (void)state;
  BodyPair b;
  body_open(&b, 4);
  body_sample(&b, 1);
  Matrices all = make_matrices(&b), one = make_matrices(&b);
  const int n = all.n, nu = all.nu, ns = all.ns;
  SinewData *other = sinew_data_create(b.model, &b.err);
  body_ok(&b, sinew_data_copy_state(other, b.data, &b.err));
  body_ok(&b, sinew_step_jacobian(b.data, all.A, all.B, all.C, all.D, &b.err));
  body_ok(&b, sinew_step_jacobian(b.data, one.A, NULL, NULL, NULL, &b.err));
  body_ok(&b, sinew_step_jacobian(b.data, NULL, one.B, NULL, NULL, &b.err));
  body_ok(&b, sinew_step_jacobian(b.data, NULL, NULL, one.C, NULL, &b.err));
  body_ok(&b, sinew_step_jacobian(b.data, NULL, NULL, NULL, one.D, &b.err));
  assert_memory_equal(all.A, one.A, sizeof(double) * (size_t)(n * n));
  assert_memory_equal(all.B, one.B, sizeof(double) * (size_t)(n * nu));
  assert_memory_equal(all.C, one.C, sizeof(double) * (size_t)(ns * n));
  assert_memory_equal(all.D, one.D, sizeof(double) * (size_t)(ns * nu));
  assert_true(size_of(all.D, ns * nu) > 0.1);
  body_ok(&b, sinew_step(b.data, 1, &b.err));
  body_ok(&b, sinew_step(other, 1, &b.err));
  assert_memory_equal(sinew_data_state(b.data).qpos, sinew_data_state(other).qpos, sizeof(double) * (size_t)b.o.mj->nq);
  sinew_data_free(other);
  free_matrices(&all);
  free_matrices(&one);
  body_close(&b);
}

static double *random_numbers(BodyPair *b, int n) {
  double *x = calloc((size_t)n + 1, sizeof *x);
  for (int i = 0; i < n; ++i) x[i] = sn_oracle_uniform(&b->o);
  return x;
}

// out (cols) += J' x of a matrix (rows, cols), from column `first` on.
static void add_product(double *out, int count, const double *J, int rows, int cols, int first, const double *x) {
  for (int i = 0; i < rows; ++i)
    for (int k = 0; k < count; ++k) out[k] += J[i * cols + first + k] * x[i];
}

static void near(const char *what, const double *x, const double *ref, int n) {
  const double scale = size_of(ref, n);
  for (int i = 0; i < n; ++i)
    if (!(fabs(x[i] - ref[i]) <= 1e-11 * scale)) fail_msg("%s: entry %d is %.17g, not %.17g", what, i, x[i], ref[i]);
}

// A product is that with the matrices, for every integrator.
static void products(void **state) {
  (void)state;
  for (int i = 0; i < BODY_MODELS - 1; ++i) {
    BodyPair b;
    body_open(&b, i);
    body_sample(&b, 1);
    Matrices J = make_matrices(&b);
    const int n = J.n, nu = J.nu, ns = J.ns, nv = b.o.mj->nv, na = b.o.mj->na;
    double *bar = random_numbers(&b, n), *sensor_bar = random_numbers(&b, ns), *ref = calloc((size_t)(n + nu), 8),
           *out = calloc((size_t)(n + nu), 8);
    body_ok(&b, sinew_step_jacobian(b.data, J.A, J.B, J.C, J.D, &b.err));
    for (int part = 0; part < 4; ++part) {  // of the step and the sensors, of the step, of the sensors, of nothing
      const SinewStateBar next = {bar, bar + nv, bar + 2 * nv}, to = {out, out + nv, out + 2 * nv}, none = {0};
      memset(ref, 0, sizeof *ref * (size_t)(n + nu));
      if (part < 2) add_product(ref, n, J.A, n, n, 0, bar);
      if (part < 2) add_product(ref + n, nu, J.B, n, nu, 0, bar);
      if (part % 2 == 0) add_product(ref, n, J.C, ns, n, 0, sensor_bar);
      if (part % 2 == 0) add_product(ref + n, nu, J.D, ns, nu, 0, sensor_bar);
      body_ok(&b, sinew_step_vjp(b.data, SINEW_TANGENT,
                                 part < 2    ? &next
                                 : part == 2 ? &none
                                             : NULL,
                                 part % 2 == 0 ? sensor_bar : NULL, &to, out + n, &b.err));
      near("qpos", out, ref, nv);
      near("qvel", out + nv, ref + nv, nv);
      near("act", out + 2 * nv, ref + 2 * nv, na);
      near("ctrl", out + n, ref + n, nu);
    }
    body_ok(&b, sinew_step_vjp(b.data, SINEW_TANGENT, NULL, NULL, NULL, NULL, &b.err));
    free(bar);
    free(sensor_bar);
    free(ref);
    free(out);
    free_matrices(&J);
    body_close(&b);
  }
}

// A number of the state after a step, and of the sensors before it, from entries of arrays.
typedef struct Number {
  BodyPair *b;
  double *qpos, *qvel, *act, *sensor;  // weights
} Number;

static double dot(const double *x, const double *y, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

// The number, from state s moved in entry i of qpos by h.
static double number_at(const Number *f, const SinewState *s, int i, double h) {
  BodyPair *b = f->b;
  const mjModel *mj = b->o.mj;
  double *qpos = calloc((size_t)mj->nq, sizeof *qpos);
  SinewState moved = *s;
  memcpy(qpos, s->qpos, sizeof *qpos * (size_t)mj->nq);
  qpos[i] += h;
  moved.qpos = qpos;
  body_ok(b, sinew_data_set_state(b->data, &moved, &b->err));
  body_ok(b, sinew_forward(b->data, &b->err));
  double sum = dot(f->sensor, sinew_data_array(b->data, "sensordata", NULL, NULL), mj->nsensordata);
  body_ok(b, sinew_step(b->data, 1, &b->err));
  const SinewState next = sinew_data_state(b->data);
  sum += dot(f->qpos, next.qpos, mj->nq) + dot(f->qvel, next.qvel, mj->nv) + dot(f->act, next.act, mj->na);
  free(qpos);
  return sum;
}

// Products in the entries of arrays are differences by entries, of entries.
static void array_coordinates(void **state) {
  (void)state;
  int compared = 0;
  for (int i = 0; i < 5; ++i) {
    BodyPair b;
    const char *name = body_open(&b, i);
    if (i == 1) {  // too far from smooth
      body_close(&b);
      continue;
    }
    body_sample(&b, 1);
    const mjModel *mj = b.o.mj;
    for (int k = 0; k < mj->nq; ++k) b.o.d->qpos[k] *= 1 + 0.5 * (mj->nq > mj->nv);  // quaternions of another length
    body_follow(&b);
    const Number f = {&b, random_numbers(&b, mj->nq), random_numbers(&b, mj->nv), random_numbers(&b, mj->na),
                      random_numbers(&b, mj->nsensordata)};
    double *out = calloc((size_t)mj->nq, sizeof *out);
    const SinewStateBar next = {f.qpos, f.qvel, f.act}, to = {out, NULL, NULL};
    body_ok(&b, sinew_step_vjp(b.data, SINEW_ARRAY, &next, f.sensor, &to, NULL, &b.err));
    const SinewState s = {b.o.d->time, b.o.d->qpos, b.o.d->qvel, b.o.d->act, sinew_data_state(b.data).mocap};
    const double scale = sn_larger(1, size_of(out, mj->nq));
    for (int k = 0; k < mj->nq; ++k) {
      const double fine = (number_at(&f, &s, k, 1e-6) - number_at(&f, &s, k, -1e-6)) / 2e-6;
      const double coarse = (number_at(&f, &s, k, 4e-6) - number_at(&f, &s, k, -4e-6)) / 8e-6;
      if (fabs(fine - coarse) > 1e-5 * scale) continue;
      ++compared;
      if (!(fabs(fine - out[k]) <= 1e-4 * scale)) fail_msg("%s: by entry %d it is %g, not %g", name, k, out[k], fine);
    }
    free(f.qpos);
    free(f.qvel);
    free(f.act);
    free(f.sensor);
    free(out);
    body_close(&b);
  }
  printf("%d entries compared\n", compared);
  assert_true(compared > 50);
}

// Contacts from distance in derivatives alone: the step is MuJoCo's, its derivative that of the body that hovers.
static void from_distance(void **state) {
  (void)state;
  BodyPair b;
  body_open(&b, 4);
  body_ok(&b, sinew_data_reset_keyframe(b.data, 0, &b.err));
  SinewData *plain = sinew_data_create(b.model, &b.err), *hover = sinew_data_create(b.model, &b.err);
  body_ok(&b, sinew_data_copy_state(plain, b.data, &b.err));
  body_ok(&b, sinew_data_copy_state(hover, b.data, &b.err));
  SinewCfd cfd = sinew_default_cfd();
  cfd.use = SINEW_CFD_BACKWARD;
  body_ok(&b, sinew_data_set_cfd(b.data, &cfd, &b.err));
  cfd.use = SINEW_CFD_FORWARD;
  body_ok(&b, sinew_data_set_cfd(hover, &cfd, &b.err));
  Matrices x = make_matrices(&b), y = make_matrices(&b), z = make_matrices(&b);
  const size_t bytes = sizeof(double) * (size_t)(x.n * x.n);
  body_ok(&b, sinew_step_jacobian(b.data, x.A, NULL, NULL, NULL, &b.err));
  body_ok(&b, sinew_step_jacobian(hover, y.A, NULL, NULL, NULL, &b.err));
  body_ok(&b, sinew_step_jacobian(plain, z.A, NULL, NULL, NULL, &b.err));
  assert_memory_equal(x.A, y.A, bytes);
  assert_memory_not_equal(x.A, z.A, bytes);
  for (int k = 0; k < 3; ++k) {
    SinewData *data = k == 0 ? b.data : k == 1 ? plain : hover;
    body_ok(&b, sinew_step(data, 1, &b.err));
  }
  const size_t nq = sizeof(double) * (size_t)b.o.mj->nq;
  assert_memory_equal(sinew_data_state(b.data).qpos, sinew_data_state(plain).qpos, nq);
  assert_memory_not_equal(sinew_data_state(hover).qpos, sinew_data_state(plain).qpos, nq);
  assert_true(sinew_data_ncon(hover) > sinew_data_ncon(plain));
  sinew_data_free(plain);
  sinew_data_free(hover);
  free_matrices(&x);
  free_matrices(&y);
  free_matrices(&z);
  body_close(&b);
}

static void refusals(void **state) {
  (void)state;
  BodyPair b;
  body_open(&b, 5);
  body_sample(&b, 1);
  Matrices x = make_matrices(&b);
  double *bar = calloc((size_t)x.ns + (size_t)b.o.mj->nq, sizeof *bar);
  assert_int_equal(sinew_step_jacobian(b.data, NULL, NULL, x.C, NULL, &b.err), SINEW_ERR_UNSUPPORTED);
  assert_non_null(strstr(b.err.text, "sensor 22 "));
  assert_int_equal(sinew_step_jacobian(b.data, NULL, NULL, NULL, x.D, &b.err), SINEW_ERR_UNSUPPORTED);
  body_ok(&b, sinew_step_jacobian(b.data, x.A, NULL, NULL, NULL, &b.err));
  body_ok(&b, sinew_step_vjp(b.data, SINEW_TANGENT, NULL, bar, NULL, NULL, &b.err));
  bar[x.ns - 1] = 1;  // whether a site is in another
  assert_int_equal(sinew_step_vjp(b.data, SINEW_TANGENT, NULL, bar, NULL, NULL, &b.err), SINEW_ERR_UNSUPPORTED);
  assert_non_null(strstr(b.err.text, "sensor 25 "));
  for (int part = 0; part < 4; ++part) {
    const SinewStateBar next = {part == 0 ? bar : NULL, part == 1 ? bar : NULL, part == 2 ? bar : NULL};
    bar[0] = part % 2 ? (double)INFINITY : (double)NAN;
    assert_int_equal(sinew_step_vjp(b.data, SINEW_ARRAY, &next, part == 3 ? bar : NULL, NULL, NULL, &b.err),
                     SINEW_ERR_ARGUMENT);
    assert_non_null(strstr(b.err.text, "[0] is "));
  }
  assert_int_equal(sinew_step_vjp(b.data, (SinewCoordinates)2, NULL, NULL, NULL, NULL, &b.err), SINEW_ERR_ARGUMENT);
  free(bar);
  free_matrices(&x);
  body_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(equals_mujoco), cmocka_unit_test(alone),
                                     cmocka_unit_test(products),      cmocka_unit_test(array_coordinates),
                                     cmocka_unit_test(from_distance), cmocka_unit_test(refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
