// Random rollouts of the small body, for tests of batches.
#ifndef SINEW_TESTS_CLIENTS_LIBSINEW_BATCH_FIXTURE_H_
#define SINEW_TESTS_CLIENTS_LIBSINEW_BATCH_FIXTURE_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/clients/libsinew/body_fixture.h"

// Lists sizes of the small body, and of the rollouts.
enum { NQ = 5, NV = 4, NA = 2, NU = 3, NS = 8, N = 5, T = 12, ROWS = T + 1 };

// Holds N rollouts of T steps from different states with different controls, and what comes of them.
typedef struct Rollouts {
  double time[N], qpos[N * NQ], qvel[N * NV], act[N * NA], mocap[N * 7], ctrl[N * T * NU];
  double warmstart[N * NV], out_warmstart[N * NV];
  double out_time[N * ROWS], out_qpos[N * ROWS * NQ], out_qvel[N * ROWS * NV], out_act[N * ROWS * NA];
  double out_sensordata[N * ROWS * NS], cost[N], term[N * 4];
  int status[N], good_states[N];
  unsigned warnings[N];
} Rollouts;

// Fills in states and controls by a seed: quaternions are not of unit length, one body lies on the floor; warm starts
// are zero.
static inline void random_rollouts(Rollouts *x, uint64_t seed) {
  memset(x, 0, sizeof *x);
  for (int i = 0; i < N; ++i) {
    x->time[i] = 0.1 * i;
    for (int k = 0; k < NQ; ++k) x->qpos[i * NQ + k] = (k == 0 ? 1 : 0) + 0.4 * test_random(&seed);
    for (int k = 0; k < NV; ++k) x->qvel[i * NV + k] = 2 * test_random(&seed);
    for (int k = 0; k < NA; ++k) x->act[i * NA + k] = 0.5 + 0.4 * test_random(&seed);
    for (int k = 0; k < 7; ++k) x->mocap[i * 7 + k] = (k == 3 ? 1 : 0) + 0.2 * test_random(&seed);
  }
  x->qpos[4] = 0.3;
  for (int i = 0; i < N * T * NU; ++i) x->ctrl[i] = 0.5 + 0.5 * test_random(&seed);
}

// Returns the call that computes them all, into all arrays.
static inline SinewRollouts rollouts_of(Rollouts *x) {
  SinewRollouts r = sinew_default_rollouts();
  r.count = N;
  r.steps = T;
  r.time = x->time, r.qpos = x->qpos, r.qvel = x->qvel, r.act = x->act, r.mocap = x->mocap, r.ctrl = x->ctrl;
  r.out_time = x->out_time, r.out_qpos = x->out_qpos, r.out_qvel = x->out_qvel, r.out_act = x->out_act;
  r.out_sensordata = x->out_sensordata, r.cost = x->cost, r.term = x->term;
  r.qacc_warmstart = x->warmstart, r.out_qacc_warmstart = x->out_warmstart;
  r.status = x->status, r.good_states = x->good_states, r.warnings = x->warnings;
  return r;
}

static inline SinewBatch *make_batch(const SinewModel *model, const SinewTask *task, SinewBackend *backend,
                                     bool gradients) {
  SinewError err;
  SinewBatchDef def = sinew_default_batch();
  def.model = model;
  def.task = task;
  def.backend = backend;
  def.capacity = N;
  def.steps = T;
  def.gradients = gradients;
  SinewBatch *batch = sinew_batch_create(&def, &err);
  if (!batch) fail_msg("%s", err.text);
  return batch;
}

static inline void run_batch(SinewBatch *batch, const SinewRollouts *r) {
  SinewError err;
  test_accepted(sinew_batch_rollout(batch, r, &err), &err);
}

#endif
