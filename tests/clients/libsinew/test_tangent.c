// Positions moved along tangents, and tangents between positions: MuJoCo's, there and back, and wrong calls.
#include "tests/clients/libsinew/pair_fixture.h"

static void equals_mujoco(void **state) {
  (void)state;
  enum { SAMPLES = 20 };
  for (int i = 0; i < BODY_MODELS; ++i) {
    BodyPair b;
    body_open(&b, i);
    const int nq = b.o.mj->nq, nv = b.o.mj->nv;
    double *from = malloc(sizeof *from * (size_t)(3 * nq + 3 * nv)), *theirs = from + nq, *ours = theirs + nq;
    double *v = ours + nq, *back = v + nv, *reference = back + nv;
    for (int sample = 0; sample < SAMPLES; ++sample) {
      body_sample(&b, 1);
      memcpy(from, b.o.d->qpos, sizeof *from * (size_t)nq);
      memcpy(theirs, from, sizeof *from * (size_t)nq);
      for (int k = 0; k < nv; ++k) v[k] = sn_oracle_uniform(&b.o);
      mj_integratePos(b.o.mj, theirs, v, 0.7);
      body_ok(&b, sinew_model_integrate(b.model, from, v, 0.7, ours, &b.err));
      for (int k = 0; k < nq; ++k) assert_true(fabs(ours[k] - theirs[k]) <= 1e-14 * sn_larger(1, fabs(theirs[k])));
      mj_differentiatePos(b.o.mj, reference, 1, from, theirs);
      body_ok(&b, sinew_model_difference(b.model, from, ours, back, &b.err));
      for (int k = 0; k < nv; ++k) {
        assert_true(fabs(back[k] - reference[k]) <= 1e-12);
        assert_true(fabs(back[k] - 0.7 * v[k]) <= 1e-12);
      }
      body_ok(&b, sinew_model_integrate(b.model, from, v, 0.7, from, &b.err));  // in place
      assert_memory_equal(from, ours, sizeof *from * (size_t)nq);
    }
    free(from);
    body_close(&b);
  }
}

static void wrong_calls(void **state) {
  (void)state;
  BodyPair b;
  body_open(&b, 1);
  const int nq = b.o.mj->nq, nv = b.o.mj->nv;
  double *x = calloc((size_t)(2 * nq + nv), sizeof *x), *v = x + nq, *to = v + nv;
  for (int k = 0; k < nq; ++k) x[k] = to[k] = b.o.mj->qpos0[k];
  SinewError *e = &b.err;
  assert_int_equal(sinew_model_integrate(NULL, x, v, 1, to, e), SINEW_ERR_ARGUMENT);
  assert_int_equal(sinew_model_integrate(b.model, NULL, v, 1, to, e), SINEW_ERR_ARGUMENT);
  assert_int_equal(sinew_model_integrate(b.model, x, NULL, 1, to, e), SINEW_ERR_ARGUMENT);
  assert_int_equal(sinew_model_integrate(b.model, x, v, 1, NULL, e), SINEW_ERR_ARGUMENT);
  assert_int_equal(sinew_model_integrate(b.model, x, v, (double)NAN, to, e), SINEW_ERR_ARGUMENT);
  assert_int_equal(sinew_model_difference(NULL, x, to, v, e), SINEW_ERR_ARGUMENT);
  assert_int_equal(sinew_model_difference(b.model, NULL, to, v, e), SINEW_ERR_ARGUMENT);
  assert_int_equal(sinew_model_difference(b.model, x, NULL, v, e), SINEW_ERR_ARGUMENT);
  assert_int_equal(sinew_model_difference(b.model, x, to, NULL, e), SINEW_ERR_ARGUMENT);
  to[2] = (double)INFINITY;
  assert_int_equal(sinew_model_difference(b.model, x, to, v, e), SINEW_ERR_ARGUMENT);
  assert_non_null(strstr(e->text, "qpos2[2] is inf"));
  v[1] = 2e10;
  assert_int_equal(sinew_model_integrate(b.model, x, v, 1, x, e), SINEW_ERR_ARGUMENT);
  assert_non_null(strstr(e->text, "tangent[1] is 2e+10"));
  assert_memory_equal(x, b.o.mj->qpos0, sizeof *x * (size_t)nq);
  free(x);
  body_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(equals_mujoco), cmocka_unit_test(wrong_calls)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
