// One body: state in and out, resets, keyframes, copies, warnings, memory.
#include <stdio.h>

#include "tests/clients/libsinew/pair_fixture.h"

static double *array(BodyPair *b, const char *name) {
  double *x = sinew_data_array(b->data, name, NULL, NULL);
  assert_non_null(x);
  return x;
}

static void equal(const double *ours, const double *theirs, int n) {
  for (int i = 0; i < n; ++i) assert_true(ours[i] == theirs[i]);
}

// The body and MuJoCo's data have the same state and controls, bit for bit; no warm start.
static void same_state(BodyPair *b) {
  const mjModel *mj = b->o.mj;
  const mjData *d = b->o.d;
  assert_true(sinew_data_time(b->data) == d->time);
  equal(array(b, "qpos"), d->qpos, mj->nq);
  equal(array(b, "qvel"), d->qvel, mj->nv);
  equal(array(b, "act"), d->act, mj->na);
  equal(array(b, "ctrl"), d->ctrl, mj->nu);
  equal(array(b, "mocap_pos"), d->mocap_pos, 3 * mj->nmocap);
  equal(array(b, "mocap_quat"), d->mocap_quat, 4 * mj->nmocap);
  for (int i = 0; i < mj->nv; ++i) assert_true(array(b, "qacc_warmstart")[i] == 0);
}

static void resets(void **state) {
  (void)state;
  BodyPair b;
  body_open(&b, 4);
  assert_ptr_equal(sinew_data_model(b.data), b.model);
  mj_resetData(b.o.mj, b.o.d);
  same_state(&b);
  for (int key = 0; key < b.o.mj->nkey; ++key) {
    body_sample(&b, 1);
    body_ok(&b, sinew_step(b.data, 3, &b.err));
    body_ok(&b, sinew_data_reset_keyframe(b.data, key, &b.err));
    mj_resetDataKeyframe(b.o.mj, b.o.d, key);
    same_state(&b);
  }
  assert_true(b.o.d->time == 0 && b.o.mj->nkey == 2);
  body_sample(&b, 1);
  body_ok(&b, sinew_data_reset(b.data, &b.err));
  mj_resetData(b.o.mj, b.o.d);
  same_state(&b);
  for (int key = -1; key < 3; key += 3) {
    assert_int_equal(sinew_data_reset_keyframe(b.data, key, &b.err), SINEW_ERR_ARGUMENT);
    assert_non_null(strstr(b.err.text, "the model has 2"));
  }
  body_close(&b);
}

// A state that is put in comes out again; what is NULL is as in the model, controls stay.
static void state_in_and_out(void **state) {
  (void)state;
  BodyPair b;
  body_open(&b, 5);
  body_sample(&b, 1);
  body_ok(&b, sinew_step(b.data, 2, &b.err));
  const SinewState now = sinew_data_state(b.data);
  SinewData *other = sinew_data_create(b.model, &b.err);
  body_ok(&b, sinew_data_set_state(other, &now, &b.err));
  const SinewState copy = sinew_data_state(other);
  assert_true(copy.time == now.time && copy.time > 0 && copy.qpos != now.qpos && copy.mocap != now.mocap);
  equal(copy.qpos, now.qpos, b.o.mj->nq);
  equal(copy.qvel, now.qvel, b.o.mj->nv);
  equal(copy.act, now.act, b.o.mj->na);
  equal(copy.mocap, now.mocap, 7);
  assert_ptr_equal(now.qpos, array(&b, "qpos"));
  body_ok(&b, sinew_data_set_state(b.data, &now, &b.err));  // its own views
  equal(array(&b, "qpos"), copy.qpos, b.o.mj->nq);
  equal(sinew_data_state(b.data).mocap, copy.mocap, 7);

  array(&b, "ctrl")[1] = 0.25;
  body_ok(&b, sinew_data_set_state(b.data, &(SinewState){.time = 2}, &b.err));
  mj_resetData(b.o.mj, b.o.d);
  memcpy(b.o.d->ctrl, array(&b, "ctrl"), sizeof(double) * (size_t)b.o.mj->nu);
  b.o.d->time = 2;
  same_state(&b);
  assert_true(b.o.d->ctrl[1] == 0.25);
  sinew_data_free(other);
  body_close(&b);
}

// Whoever copies all that a step depends on makes the same motion, bit for bit.
static void copies(void **state) {
  (void)state;
  BodyPair b;
  body_open(&b, 5);
  SinewData *other = sinew_data_create(b.model, &b.err);
  body_ok(&b, sinew_data_reset_keyframe(b.data, 0, &b.err));
  body_ok(&b, sinew_step(b.data, 5, &b.err));
  assert_true(sinew_data_ncon(b.data) > 0);
  body_ok(&b, sinew_data_copy_state(other, b.data, &b.err));
  for (int step = 0; step < 30; ++step) {
    body_ok(&b, sinew_step(b.data, 1, &b.err));
    body_ok(&b, sinew_step(other, 1, &b.err));
    const SinewState s = sinew_data_state(b.data), t = sinew_data_state(other);
    equal(s.qpos, t.qpos, b.o.mj->nq);
    equal(s.qvel, t.qvel, b.o.mj->nv);
    equal(s.act, t.act, b.o.mj->na);
    assert_true(s.time == t.time);
  }
  body_ok(&b, sinew_data_copy_state(other, other, &b.err));

  BodyPair c;
  body_open(&c, 5);
  assert_int_equal(sinew_data_copy_state(c.data, b.data, &b.err), SINEW_ERR_ARGUMENT);
  assert_non_null(strstr(b.err.text, "different models"));
  body_close(&c);
  sinew_data_free(other);
  body_close(&b);
}

// One call of many steps is many calls of one.
static void many_steps(void **state) {
  (void)state;
  BodyPair b;
  body_open(&b, 0);
  SinewData *other = sinew_data_create(b.model, &b.err);
  body_ok(&b, sinew_step(b.data, 25, &b.err));
  for (int i = 0; i < 25; ++i) body_ok(&b, sinew_step(other, 1, &b.err));
  equal(sinew_data_state(b.data).qpos, sinew_data_state(other).qpos, b.o.mj->nq);
  body_ok(&b, sinew_step(other, 0, &b.err));
  equal(sinew_data_state(b.data).qpos, sinew_data_state(other).qpos, b.o.mj->nq);
  assert_int_equal(sinew_step(b.data, -1, &b.err), SINEW_ERR_ARGUMENT);
  sinew_data_free(other);
  body_close(&b);
}

// Warnings add up over steps, until they are cleared.
static void warnings(void **state) {
  (void)state;
  BodyPair b;
  memset(&b, 0, sizeof b);
  sn_oracle_load_string(&b.o,
                        "<mujoco><worldbody><geom type='plane' size='1 1 1'/><body pos='0 0 .09'><freejoint/>"
                        "<geom size='.1'/></body></worldbody></mujoco>");
  b.o.m->opt.iterations = 0;
  body_make(&b);
  array(&b, "qvel")[2] = -1;
  array(&b, "qvel")[0] = 1;
  body_ok(&b, sinew_step(b.data, 1, &b.err));
  const unsigned seen = sinew_data_warnings(b.data);
  assert_int_equal(seen, SINEW_WARN_NOT_CONVERGED);
  array(&b, "qpos")[2] = 5;
  body_ok(&b, sinew_step(b.data, 1, &b.err));
  assert_int_equal(sinew_data_warnings(b.data), seen);
  sinew_data_clear_warnings(b.data);
  body_ok(&b, sinew_step(b.data, 1, &b.err));
  assert_int_equal(sinew_data_warnings(b.data), 0);
  array(&b, "qpos")[2] = 0.09;
  array(&b, "qvel")[2] = -1;
  body_ok(&b, sinew_step(b.data, 1, &b.err));
  assert_int_equal(sinew_data_warnings(b.data), seen);
  body_ok(&b, sinew_data_reset(b.data, &b.err));
  assert_int_equal(sinew_data_warnings(b.data), 0);
  body_close(&b);
}

// A body that meets more contacts takes more memory, and makes the same motion as one that had it before.
static void memory_grows(void **state) {
  (void)state;
  BodyPair b;
  char xml[6000];
  int at = snprintf(xml, sizeof xml, "<mujoco><worldbody><geom type='plane' size='9 9 1'/>");
  for (int i = 0; i < 25; ++i)
    at +=
        snprintf(xml + at, sizeof xml - (size_t)at,
                 "<body pos='%g 0 .%d'><freejoint/><geom type='box' size='.1 .1 .1'/></body>", 0.4 * i, i < 2 ? 1 : 5);
  snprintf(xml + at, sizeof xml - (size_t)at, "</worldbody></mujoco>");
  body_open_string(&b, xml);
  int grown = -1;
  const size_t before = sinew_data_memory(b.data, &grown);
  assert_true(grown == 0 && before > sizeof(double) * 300 && sinew_data_memory(b.data, NULL) == before);
  body_ok(&b, sinew_step(b.data, 200, &b.err));
  const size_t after = sinew_data_memory(b.data, &grown);
  printf("%zu bytes, then %zu with %d contacts, grown %d times\n", before, after, sinew_data_ncon(b.data), grown);
  assert_true(sinew_data_ncon(b.data) == 100 && grown > 0 && after > before);
  assert_int_equal(sinew_data_warnings(b.data), 0);
  SinewData *other = sinew_data_create(b.model, &b.err);
  body_ok(&b, sinew_data_copy_state(other, b.data, &b.err));
  body_ok(&b, sinew_step(b.data, 1, &b.err));
  body_ok(&b, sinew_step(other, 1, &b.err));
  equal(sinew_data_state(b.data).qpos, sinew_data_state(other).qpos, b.o.mj->nq);
  sinew_data_free(other);
  body_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(resets),   cmocka_unit_test(state_in_and_out),
                                     cmocka_unit_test(copies),   cmocka_unit_test(many_steps),
                                     cmocka_unit_test(warnings), cmocka_unit_test(memory_grows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
