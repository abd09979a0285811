// Bodies whose trees fall asleep: beside MuJoCo, when the caller moves them, writes back a state, or writes nonsense.
// What keeps all trees awake, and what is refused.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/clients/libsinew/pair_fixture.h"

static const char scene[] =
    "<mujoco><option timestep='.005'><flag sleep='enable'/></option><worldbody><geom type='plane' size='5 5 1'/>"
    "<body pos='0 0 .0995'><freejoint/><geom type='box' size='.1 .1 .1'/></body>"
    "<body pos='0 0 .2982'><freejoint/><geom type='box' size='.1 .1 .1'/></body>"
    "<body pos='1 0 .0995' sleep='init'><freejoint/><geom type='box' size='.1 .1 .1'/></body>"
    "<body pos='0 2 1'><joint type='slide' axis='1 0 0' damping='1'/><geom size='.1' contype='0' conaffinity='0'/>"
    "</body></worldbody></mujoco>";
enum { TREES = 4, NQ = 22, NV = 19, AWAKE = -11 };

static int *trees(BodyPair *b) { return sinew_data_int_array(b->data, "tree_asleep", NULL, NULL); }
static double *array(BodyPair *b, const char *name) { return sinew_data_array(b->data, name, NULL, NULL); }

static void check_trees(BodyPair *b, int step) {
  for (int t = 0; t < TREES; ++t)
    if (trees(b)[t] != b->o.d->tree_asleep[t])
      fail_msg("step %d: tree %d has %d, MuJoCo %d", step, t, trees(b)[t], b->o.d->tree_asleep[t]);
}

// A caller moves a sleeper, and pushes one, in place; a keyframe-like state by sinew_data_set_state.
static void beside_mujoco(void **state) {
  (void)state;
  BodyPair b;
  body_open_string(&b, scene);
  check_trees(&b, -1);
  assert_int_equal(trees(&b)[2], 2);
  double worst = 0;
  for (int step = 0; step < 300; ++step) {
    if (step == 100) array(&b, "qpos")[9] = b.o.d->qpos[9] += .05;
    if (step == 200) array(&b, "qvel")[12] = b.o.d->qvel[12] = .4;
    if (step == 250) {
      SinewState s = sinew_data_state(b.data);
      double qpos[NQ];
      memcpy(qpos, s.qpos, sizeof qpos);
      qpos[0] = b.o.d->qpos[0] += .01;
      s.qpos = qpos;
      body_ok(&b, sinew_data_set_state(b.data, &s, &b.err));
    }
    mj_step(b.o.mj, b.o.d);
    body_ok(&b, sinew_step(b.data, 1, &b.err));
    check_trees(&b, step);
    for (int i = 0; i < NQ; ++i) worst = sn_larger(worst, fabs(array(&b, "qpos")[i] - b.o.d->qpos[i]));
    if (step == 99 || step == 199)
      for (int t = 0; t < 2; ++t) assert_int_equal(trees(&b)[t], 1 - t);
  }
  printf("positions within %.1e m\n", worst);
  assert_true(worst < 1e-7);
  body_close(&b);
}

// What is kept of a body and written back goes on with the same bits; without the numbers of trees it does not.
static void written_back(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int n;
  } part[] = {{"time", 1}, {"qpos", NQ}, {"qvel", NV}, {"qacc_warmstart", NV}, {"sleep_qpos", NQ}};
  double kept[5][NQ];
  int tree[TREES];
  BodyPair b;
  body_open_string(&b, scene);
  body_ok(&b, sinew_step(b.data, 150, &b.err));
  for (int k = 0; k < 5; ++k) memcpy(kept[k], array(&b, part[k].name), sizeof(double) * (size_t)part[k].n);
  memcpy(tree, trees(&b), sizeof tree);
  assert_true(tree[0] >= 0);
  SinewData *other = sinew_data_create(b.model, &b.err);
  assert_non_null(other);
  body_ok(&b, sinew_data_copy_state(other, b.data, &b.err));
  body_ok(&b, sinew_step(b.data, 50, &b.err));
  body_ok(&b, sinew_step(other, 50, &b.err));
  double after[NQ];
  memcpy(after, array(&b, "qpos"), sizeof after);
  assert_memory_equal(after, sinew_data_array(other, "qpos", NULL, NULL), sizeof after);
  for (int with = 0; with < 2; ++with) {
    body_ok(&b, sinew_data_reset(b.data, &b.err));
    for (int k = 0; k < 5; ++k) memcpy(array(&b, part[k].name), kept[k], sizeof(double) * (size_t)part[k].n);
    if (with) memcpy(trees(&b), tree, sizeof tree);
    body_ok(&b, sinew_step(b.data, 50, &b.err));
    assert_int_equal(memcmp(after, array(&b, "qpos"), sizeof after) == 0, with);
  }
  // nonsense wakes or is a cycle of fewer: nothing is read outside of arrays, and steps go on
  const int nonsense[][TREES] = {{7, 1000000, -1000000, 3}, {1, 2, 1, 3}, {0, 0, 0, 0}, {3, 3, 3, -5}};
  for (int k = 0; k < 4; ++k) {
    body_ok(&b, sinew_data_reset(b.data, &b.err));
    memcpy(trees(&b), nonsense[k], sizeof nonsense[k]);
    body_ok(&b, sinew_step(b.data, 3, &b.err));
    array(&b, "qvel")[0] = 1;
    body_ok(&b, sinew_step(b.data, 3, &b.err));
    for (int t = 0; t < TREES; ++t) assert_in_range(trees(&b)[t] - AWAKE, 0, TREES - 1 - AWAKE);
  }
  sinew_data_free(other);
  body_close(&b);
}

// A and the product with a bar of the next state: of sleepers positions stay and velocities end.
static void derivatives(void **state) {
  (void)state;
  enum { N = 2 * NV };
  static double A[N * N], bar[3][NV], result[3][NV];
  BodyPair b;
  body_open_string(&b, scene);
  body_ok(&b, sinew_step(b.data, 150, &b.err));
  array(&b, "qvel")[18] = .3;
  body_ok(&b, sinew_step_jacobian(b.data, A, NULL, NULL, NULL, &b.err));
  for (int k = 0; k < N; ++k)
    for (int i = 0; i < N; ++i)
      if (k % NV != 18) assert_true(A[k * N + i] == (k < NV && i == k));
  const double h = .005, decay = 1 / (1 + h / b.o.mj->body_mass[4]);
  assert_true(fabs(A[(NV + 18) * N + NV + 18] - decay) < 1e-12 && fabs(A[18 * N + NV + 18] - h * decay) < 1e-12);
  for (int i = 0; i < NV; ++i) bar[0][i] = bar[1][i] = 1 + i;
  const SinewStateBar next = {bar[0], bar[1], NULL}, of = {result[0], result[1], NULL};
  body_ok(&b, sinew_step_vjp(b.data, SINEW_TANGENT, &next, NULL, &of, NULL, &b.err));
  for (int i = 0; i < NV - 1; ++i) assert_true(result[0][i] == 1 + i && result[1][i] == 0);
  body_close(&b);
}

// The model without the flag.
static SinewModel *without_flag(const SinewModel *model, SinewError *err) {
  SinewOptions o = sinew_default_options();
  assert_int_equal(sinew_model_get_options(model, &o, err), SINEW_OK);
  assert_true(o.enableflags == mjENBL_SLEEP && o.sleep_tolerance == 1e-3);
  o.enableflags = 0;
  SinewModel *copy = sinew_model_with_options(model, &o, err);
  assert_non_null(copy);
  return copy;
}

// The end of a rollout.
static void roll(const SinewModel *model, SinewBackend *cpu, double *qpos) {
  enum { STEPS = 120 };
  static double path[(STEPS + 1) * NQ];
  SinewError err;
  SinewBatchDef def = sinew_default_batch();
  def.model = model;
  def.backend = cpu;
  def.capacity = 1;
  def.steps = STEPS;
  SinewBatch *batch = sinew_batch_create(&def, &err);
  assert_non_null(batch);
  SinewRollouts r = sinew_default_rollouts();
  int status = -1;
  r.count = 1;
  r.steps = STEPS;
  r.out_qpos = path;
  r.status = &status;
  assert_int_equal(sinew_batch_rollout(batch, &r, &err), SINEW_OK);
  assert_int_equal(status, SINEW_OK);
  memcpy(qpos, path + STEPS * NQ, sizeof(double) * NQ);
  sinew_batch_free(batch);
}

// Rollouts have all trees awake: the bits of the model without the flag. A body falls asleep, and has others.
static void rollouts_are_awake(void **state) {
  (void)state;
  BodyPair b;
  SinewBackend *cpu[2];
  double asleep[NQ], with[NQ], without[NQ];
  body_open_string(&b, scene);
  body_open_cpus(cpu);
  SinewModel *awake = without_flag(b.model, &b.err);
  roll(b.model, cpu[0], with);
  roll(awake, cpu[0], without);
  assert_memory_equal(with, without, sizeof with);
  body_ok(&b, sinew_step(b.data, 120, &b.err));
  memcpy(asleep, array(&b, "qpos"), sizeof asleep);
  assert_true(trees(&b)[0] >= 0 && memcmp(asleep, with, sizeof with) != 0);
  SinewData *body = sinew_data_create(awake, &b.err);
  body_ok(&b, sinew_step(body, 120, &b.err));
  assert_memory_equal(sinew_data_array(body, "qpos", NULL, NULL), without, sizeof without);
  sinew_data_free(body);
  sinew_model_free(awake);
  body_close_cpus(cpu);
  body_close(&b);
}

static void refusals(void **state) {
  (void)state;
  BodyPair b;
  body_open_string(&b, scene);
  SinewCfd cfd = sinew_default_cfd();
  cfd.use = SINEW_CFD_BACKWARD;
  assert_int_equal(sinew_data_set_cfd(b.data, &cfd, &b.err), SINEW_ERR_UNSUPPORTED);
  assert_non_null(strstr(b.err.text, "flag sleep"));
  cfd.use = SINEW_CFD_NONE;
  body_ok(&b, sinew_data_set_cfd(b.data, &cfd, &b.err));
  SinewOptions o = sinew_default_options();
  body_ok(&b, sinew_model_get_options(b.model, &o, &b.err));
  o.integrator = mjINT_RK4;
  assert_null(sinew_model_with_options(b.model, &o, &b.err));
  assert_int_equal(b.err.status, SINEW_ERR_UNSUPPORTED);
  assert_non_null(strstr(b.err.text, "option 'sleep': sleeping under integrator RK4"));
  o.integrator = mjINT_EULER;
  o.sleep_tolerance = -1;
  assert_null(sinew_model_with_options(b.model, &o, &b.err));
  assert_non_null(strstr(b.err.text, "option sleep_tolerance is -1: must be at least 0"));
  body_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(beside_mujoco), cmocka_unit_test(written_back),
                                     cmocka_unit_test(derivatives), cmocka_unit_test(rollouts_are_awake),
                                     cmocka_unit_test(refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
