// Many bodies on threads: each gets what a step or forward of its own gives it, bit for bit; what is refused.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/clients/libsinew/body_fixture.h"

enum { N = 37 };

static const char ball_xml[] =
    "<mujoco><worldbody><geom type='plane' size='1 1 .1'/><body pos='0 0 .2'><freejoint/><geom size='.1'/></body>"
    "</worldbody><actuator/></mujoco>";

// Bodies of two models in random states.
typedef struct Crowd {
  SinewModel *model[2];
  SinewData *data[N];
} Crowd;

static Crowd make_crowd(void) {
  Crowd c = {.model = {test_model_of_text(body_xml), test_model_of_text(ball_xml)}};
  SinewError err;
  uint64_t seed = 5;
  for (int i = 0; i < N; ++i) {
    c.data[i] = sinew_data_create(c.model[i % 3 == 0], &err);
    test_accepted(c.data[i] ? SINEW_OK : err.status, &err);
    const SinewSizes *s = sinew_model_sizes(sinew_data_model(c.data[i]));
    double *qvel = sinew_data_array(c.data[i], "qvel", NULL, NULL),
           *ctrl = sinew_data_array(c.data[i], "ctrl", NULL, NULL);
    for (int k = 0; k < s->nv; ++k) qvel[k] = test_random(&seed);
    for (int k = 0; k < s->nu; ++k) ctrl[k] = .5 + .5 * test_random(&seed);
  }
  return c;
}

static void free_crowd(Crowd *c) {
  for (int i = 0; i < N; ++i) sinew_data_free(c->data[i]);
  for (int i = 0; i < 2; ++i) sinew_model_free(c->model[i]);
}

// All of what two bodies of one model have; reads sensordata where `sensors`.
static void assert_same(SinewData *a, SinewData *b, bool sensors) {
  static const char *const names[] = {"time", "qpos", "qvel", "act", "qacc", "qacc_warmstart", "xpos", "sensordata"};
  for (size_t i = 0; i < sizeof names / sizeof *names - !sensors; ++i) {
    int rows, cols;
    const double *x = sinew_data_array(a, names[i], &rows, &cols), *y = sinew_data_array(b, names[i], NULL, NULL);
    if (rows * cols > 0) assert_memory_equal(x, y, sizeof *x * (size_t)(rows * cols));
  }
  assert_int_equal(sinew_data_warnings(a), sinew_data_warnings(b));
}

static void as_one_after_the_other(void **state) {
  (void)state;
  for (int threads = 1; threads <= 3; ++threads) {
    Crowd c = make_crowd(), alone = make_crowd();
    SinewBackend *cpu = test_cpu(threads);
    SinewError err;
    int status[N];
    for (int round = 0; round < 4; ++round) {
      memset(status, -1, sizeof status);
      test_accepted(sinew_bodies_step(cpu, c.data, N, 7, status, &err), &err);
      for (int i = 0; i < N; ++i) {
        test_accepted(sinew_step(alone.data[i], 7, &err), &err);
        assert_int_equal(status[i], SINEW_OK);
        assert_same(c.data[i], alone.data[i], false);
      }
      memset(status, -1, sizeof status);
      test_accepted(sinew_bodies_forward(cpu, c.data, N, status, &err), &err);
      for (int i = 0; i < N; ++i) {
        test_accepted(sinew_forward(alone.data[i], &err), &err);
        assert_int_equal(status[i], SINEW_OK);
        assert_same(c.data[i], alone.data[i], true);
      }
    }
    sinew_backend_close(cpu);
    free_crowd(&alone);
    free_crowd(&c);
  }
}

// A body that diverges says so in its status, and nowhere else.
static void divergence_is_data(void **state) {
  (void)state;
  Crowd c = make_crowd();
  SinewBackend *cpu = test_cpu(2);
  SinewError err;
  int status[N];
  sinew_data_array(c.data[5], "ctrl", NULL, NULL)[0] = (double)NAN;
  sinew_data_array(c.data[8], "qvel", NULL, NULL)[0] = 2e10;
  for (int call = 0; call < 2; ++call) {
    test_accepted(
        call ? sinew_bodies_forward(cpu, c.data, N, status, &err) : sinew_bodies_step(cpu, c.data, N, 3, status, &err),
        &err);
    for (int i = 0; i < N; ++i) {
      const bool bad = i == 5 || i == 8;
      assert_int_equal(status[i], bad ? SINEW_ERR_DIVERGED : SINEW_OK);
      assert_int_equal(sinew_data_warnings(c.data[i]), bad ? SINEW_WARN_BAD_STATE : 0);
      assert_true((sinew_data_time(c.data[i]) > 0) == !bad);
    }
  }
  sinew_backend_close(cpu);
  free_crowd(&c);
}

static void refusals(void **state) {
  (void)state;
  Crowd c = make_crowd();
  SinewBackend *cpu = test_cpu(2);
  SinewBackendOptions options = sinew_default_backend();
  SinewError err;
  int status[N];
  options.folder = SN_TEST_LIBRARY_DIR;
  SinewBackend *device = sinew_backend_open("emulator_double", &options, &err);
  assert_non_null(device);
#define REFUSED(code, word, ...) test_refused(sinew_bodies_step(__VA_ARGS__, &err), &err, code, word)
  REFUSED(SINEW_ERR_ARGUMENT, "backend is NULL", NULL, c.data, N, 1, status);
  REFUSED(SINEW_ERR_ARGUMENT, "data is NULL", cpu, NULL, N, 1, status);
  REFUSED(SINEW_ERR_ARGUMENT, "status is NULL", cpu, c.data, N, 1, NULL);
  REFUSED(SINEW_ERR_ARGUMENT, "count is -1", cpu, c.data, -1, 1, status);
  REFUSED(SINEW_ERR_ARGUMENT, "steps is -2", cpu, c.data, N, -2, status);
  REFUSED(SINEW_ERR_UNSUPPORTED, "the backend is a device", device, c.data, N, 1, status);
  SinewData *list[4] = {c.data[0], c.data[1], c.data[2], c.data[1]};
  REFUSED(SINEW_ERR_ARGUMENT, "data[1] and data[3] are one body", cpu, list, 4, 1, status);
  list[3] = NULL;
  REFUSED(SINEW_ERR_ARGUMENT, "data[3] is NULL", cpu, list, 4, 1, status);
#undef REFUSED
  test_refused(sinew_bodies_forward(NULL, list, 3, status, &err), &err, SINEW_ERR_ARGUMENT, "sinew_bodies_forward");
  for (int i = 0; i < N; ++i) assert_true(sinew_data_time(c.data[i]) == 0);
  test_accepted(sinew_bodies_step(cpu, list, 3, 1, status, &err), &err);  // nothing is left of what was refused
  test_accepted(sinew_bodies_step(cpu, NULL, 0, 1, NULL, &err), &err);
  sinew_backend_close(device);
  sinew_backend_close(cpu);
  free_crowd(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_one_after_the_other), cmocka_unit_test(divergence_is_data),
                                     cmocka_unit_test(refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
