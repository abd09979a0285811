// Steps that cannot be taken: numbers that are none, and what they leave behind. Two threads on one body. What is taken
// from the heap.
#include <pthread.h>
#include <stdio.h>

#include "tests/clients/libsinew/pair_fixture.h"
#include "tests/support/allocations.h"

static const double too_large[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 1.1e10, -1.1e10};
enum { BAD = sizeof too_large / sizeof *too_large };

// A free body, a slide with a motor and with a muscle, a mocap body.
static const char cart[] =
    "<mujoco><compiler autolimits='true'/><option timestep='.01' gravity='0 0 0'/><worldbody><body name='m' "
    "mocap='true'/><body><joint name='x' type='slide' axis='1 0 0'/><geom size='.1' mass='1' contype='0' "
    "conaffinity='0'/></body><body pos='0 0 5'><freejoint/><geom size='.1' contype='0' conaffinity='0'/></body>"
    "</worldbody><actuator><motor name='a' joint='x'/><general name='i' joint='x' dyntype='integrator' gainprm='0'/>"
    "<muscle name='u' joint='x' lengthrange='-1 1' force='0'/></actuator></mujoco>";

// Everything that a step begins with.
typedef struct Kept {
  double time, qpos[8], qvel[7], act[2], warm[7];
} Kept;

static Kept keep(SinewData *data) {
  Kept k;
  const SinewState s = sinew_data_state(data);
  memset(&k, 0, sizeof k);
  k.time = s.time;
  memcpy(k.qpos, s.qpos, sizeof k.qpos);
  memcpy(k.qvel, s.qvel, sizeof k.qvel);
  memcpy(k.act, s.act, sizeof k.act);
  memcpy(k.warm, sinew_data_array(data, "qacc_warmstart", NULL, NULL), sizeof k.warm);
  return k;
}

// Every input that is NaN or too large is named, by steps, forwards and derivatives; the body stays where it is.
static void bad_inputs(void **state) {
  (void)state;
  BodyPair b;
  body_open_string(&b, cart);
  SinewField f;
  int inputs = 0;
  for (int i = 0; sinew_data_field(b.data, i, &f); ++i) {
    if (!f.input || f.rows * f.cols == 0) continue;  // no tree of this model sleeps
    ++inputs;
    double *x = sinew_data_array(b.data, f.name, NULL, NULL);
    for (int k = 0; k < BAD; ++k) {
      const int at = f.rows * f.cols - 1;
      const double good = x[at];
      char text[100];
      snprintf(text, sizeof text, "%s[%d] is %g;", f.name, at, too_large[k]);
      x[at] = too_large[k];
      const Kept before = keep(b.data);
      for (int call = 0; call < 3; ++call) {
        const SinewStatus status = call == 0   ? sinew_step(b.data, 2, &b.err)
                                   : call == 1 ? sinew_forward(b.data, &b.err)
                                               : sinew_step_jacobian(b.data, NULL, NULL, NULL, NULL, &b.err);
        assert_int_equal(status, SINEW_ERR_DIVERGED);
        if (!strstr(b.err.text, text)) fail_msg("'%s' does not say '%s'", b.err.text, text);
        assert_true(sinew_data_warnings(b.data) & SINEW_WARN_BAD_STATE);
        const Kept after = keep(b.data);
        assert_memory_equal(&before, &after, sizeof after);
      }
      x[at] = good;
      body_ok(&b, sinew_data_reset(b.data, &b.err));
      body_ok(&b, sinew_step(b.data, 1, &b.err));
      body_ok(&b, sinew_data_reset(b.data, &b.err));
    }
  }
  assert_int_equal(inputs, 8);
  body_close(&b);
}

// States that a caller puts in are checked before anything is changed.
static void bad_states(void **state) {
  (void)state;
  BodyPair b;
  body_open_string(&b, cart);
  body_ok(&b, sinew_step(b.data, 3, &b.err));
  static const char *const name[] = {"time", "qpos", "qvel", "act", "mocap"};
  static const int size[] = {1, 8, 7, 2, 7};
  const Kept before = keep(b.data);
  for (int i = 0; i < 5; ++i)
    for (int k = 0; k < BAD; ++k) {
      double x[8] = {0};
      char text[100];
      SinewState s = {.time = 0};
      x[size[i] - 1] = too_large[k];
      s.time = i == 0 ? x[0] : 0;
      *(i == 1 ? &s.qpos : i == 2 ? &s.qvel : i == 3 ? &s.act : &s.mocap) = i == 0 ? NULL : x;
      snprintf(text, sizeof text, "sinew_data_set_state: %s[%d] is %g;", name[i], size[i] - 1, too_large[k]);
      assert_int_equal(sinew_data_set_state(b.data, &s, &b.err), SINEW_ERR_DIVERGED);
      if (!strstr(b.err.text, text)) fail_msg("'%s' does not say '%s'", b.err.text, text);
      const Kept after = keep(b.data);
      assert_memory_equal(&before, &after, sizeof after);
    }
  body_close(&b);
}

// A motion that leaves all bounds ends at its last good state, and the text says in which step, and why.
static void divergence(void **state) {
  (void)state;
  static const struct {
    double ctrl, integrator, qvel;
    const char *text;
  } list[] = {{1e9, 0, 9.99e9, "step 2 of 100: qvel[0] is"},  // a speed of 1e7 more with each step
              {2e9, 0, 9.995e9, "step 1 of 100: qvel[0] is"},
              {0, 9.9e9, 0, "step 102 of 200: act[0] is"},  // adds 9.9e7 with each step
              {0, 0, 1e10, "step 101 of 200: qpos[0] is"}};
  BodyPair b;
  body_open_string(&b, cart);
  for (size_t i = 0; i < sizeof list / sizeof *list; ++i) {
    const int steps = i < 2 ? 100 : 200;
    body_ok(&b, sinew_data_reset(b.data, &b.err));
    double *ctrl = sinew_data_array(b.data, "ctrl", NULL, NULL), *qvel = sinew_data_array(b.data, "qvel", NULL, NULL);
    ctrl[0] = list[i].ctrl;
    ctrl[1] = list[i].integrator;
    qvel[0] = list[i].qvel;
    assert_int_equal(sinew_step(b.data, steps, &b.err), SINEW_ERR_DIVERGED);
    if (!strstr(b.err.text, list[i].text)) fail_msg("'%s' does not say '%s'", b.err.text, list[i].text);
    assert_true(sinew_data_warnings(b.data) & SINEW_WARN_BAD_STATE);
    const Kept last = keep(b.data);
    for (int k = 0; k < 8; ++k) assert_true(fabs(last.qpos[k]) <= 1e10);
    for (int k = 0; k < 7; ++k) assert_true(fabs(last.qvel[k]) <= 1e10);
    assert_true(fabs(last.act[0]) <= 1e10);

    // the same by single calls: the state before the one that fails
    int done = 0;
    body_ok(&b, sinew_data_reset(b.data, &b.err));
    ctrl[0] = list[i].ctrl;
    ctrl[1] = list[i].integrator;
    qvel[0] = list[i].qvel;
    while (sinew_step(b.data, 1, &b.err) == SINEW_OK) ++done;
    const Kept single = keep(b.data);
    assert_memory_equal(&last, &single, sizeof last);
    assert_int_equal(done, atoi(strstr(list[i].text, "step ") + 5) - 1);
    ctrl[0] = ctrl[1] = qvel[0] = 0;
    sinew_data_clear_warnings(b.data);
    body_ok(&b, sinew_step(b.data, 1, &b.err));
    assert_int_equal(sinew_data_warnings(b.data), 0);
  }
  body_close(&b);
}

// What is called again and again takes nothing from the heap.
static void no_allocations(void **state) {
  (void)state;
  BodyPair b;
  body_open(&b, 4);
  const int n = sinew_model_sizes(b.model)->nstate, nu = b.o.mj->nu;
  double *A = calloc((size_t)(n * n + n * nu), sizeof *A), *B = A + n * n;
  double *qpos = calloc((size_t)b.o.mj->nq, sizeof *qpos);
  const SinewStateBar bar = {qpos, NULL, NULL};
  sinew_data_array(b.data, "xipos", NULL, NULL);
  long before = 0;
  for (int round = 0; round < 12; ++round) {
    SinewContact c;
    if (round == 2) before = sn_allocations();
    sinew_data_reset_keyframe(b.data, 0, &b.err);
    const SinewState s = sinew_data_state(b.data);
    body_ok(&b, sinew_data_set_state(b.data, &s, &b.err));
    body_ok(&b, sinew_step(b.data, 3, &b.err));
    body_ok(&b, sinew_forward(b.data, &b.err));
    body_ok(&b, sinew_data_contact(b.data, 0, &c, &b.err));
    assert_non_null(sinew_data_array(b.data, "efc_force", NULL, NULL));
    body_ok(&b, sinew_step_jacobian(b.data, A, B, NULL, NULL, &b.err));
    body_ok(&b, sinew_step_vjp(b.data, SINEW_ARRAY, &bar, NULL, NULL, A, &b.err));
  }
  printf("%ld allocations\n", sn_allocations() - before);
  assert_true(before > 0 && sn_allocations() == before);
  free(A);
  free(qpos);
  body_close(&b);
}

#ifndef NDEBUG
static void *steps_in_a_thread(void *data) {
  SinewError err;
  SinewStatus seen = SINEW_OK;
  for (int i = 0; i < 2000 && seen == SINEW_OK; ++i) seen = sinew_step(data, 1, &err);
  return seen == SINEW_ERR_STATE ? data : NULL;
}
#endif

// Two threads on one body are noticed.
static void two_threads(void **state) {
  (void)state;
#ifdef NDEBUG
  print_message("skipped: only debug builds notice two threads\n");
  skip();
#else
  BodyPair b;
  body_open(&b, 0);
  pthread_t thread;
  void *noticed = NULL;
  bool here = false;
  assert_int_equal(pthread_create(&thread, NULL, steps_in_a_thread, b.data), 0);
  for (int i = 0; i < 2000 && !here; ++i) {
    here = sinew_step(b.data, 1, &b.err) == SINEW_ERR_STATE;
    if (here) assert_non_null(strstr(b.err.text, "another thread is in a call on this body"));
  }
  pthread_join(thread, &noticed);
  assert_true(here || noticed);
  body_ok(&b, sinew_step(b.data, 1, &b.err));
  body_close(&b);
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bad_inputs), cmocka_unit_test(bad_states),
                                     cmocka_unit_test(divergence), cmocka_unit_test(no_allocations),
                                     cmocka_unit_test(two_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
