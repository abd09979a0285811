// A batch of rollouts as libsinew holds it.
#ifndef SINEW_CLIENTS_LIBSINEW_BATCH_PRIVATE_H_
#define SINEW_CLIENTS_LIBSINEW_BATCH_PRIVATE_H_

#include "clients/libsinew/backend_private.h"
#include "clients/libsinew/cfd_private.h"
#include "clients/libsinew/interrupt_private.h"

// Holds what the way back needs, of as many rollouts as there is capacity for. Inputs are copies.
typedef struct ApiKept {
  int count, steps;              // size of the last rollouts; count 0: there are none
  SnGradient *item;              // (capacity)
  bool *rolled;                  // (capacity) it did not diverge
  double *qpos;                  // (capacity, nq) initial states
  double *qvel;                  // (capacity, nv)
  double *act;                   // (capacity, na)
  double *warmstart;             // (capacity, nv)
  double *history;               // (capacity, nhistory)
  double *ctrl;                  // (capacity, steps, nu)
  SnTrajectoryBar *bar;          // (capacity)
  double *states;                // (capacity, steps + 1, nq) positions on the way; NULL: the model has no quaternions
  double *tangent;               // (capacity, steps + 1, nv) scratch for bars by them; NULL likewise
  double *ctrl_bar;              // (capacity, steps, nu) scratch where the caller wants none
  double *qpos_bar;              // (capacity, nv)
  SnGradientStatus *linearized;  // (capacity) scratch
} ApiKept;

struct SinewBatch {
  ApiGuard guard;
  ApiInterrupt interrupt;
  SinewBackend *backend;
  SnModel *own;       // model with the options of the task; NULL: without a task
  const SnModel *m;   // own, or the definition's
  SinewModel *model;  // shows m
  SnCost *cost;       // NULL: none
  ApiCfd cfd;
  SnBackendModel *loaded;
  int capacity, steps;
  double max_velocity;
  double *initial;  // (nq + nv + na + 7 nmocap) where the task begins
  // Scratch of a call.
  const SnModel **models;  // (capacity) of each rollout; NULL inside: the batch's
  SnState *state;          // (capacity)
  SnTrajectory *out;       // (capacity)
  unsigned char *done;     // (capacity)
  double *cost_of;         // (capacity)
  int *made;               // (capacity)
  int *warn;               // (capacity)
  double *target;          // (capacity, steps + 1, ntarget)
  double *mocap_pos;       // (capacity, nmocap, 3)
  double *mocap_quat;      // (capacity, nmocap, 4)
  double *zero;            // (max(nv, na, steps nu)) zeros
  ApiKept *kept;           // NULL: a batch without gradients
  size_t bytes;            // all buffers together
};

// Adds up what buffers take [bytes], and says whether there was room for all.
typedef struct ApiRoom {
  size_t bytes;
  bool full;
} ApiRoom;

// Allocates zeros, at least one. On failure the room is full.
void *api_batch_alloc(size_t n, size_t size, ApiRoom *room);

// batch_vjp.c: makes room for the way back. Returns NULL when out of memory.
ApiKept *api_kept_create(const SnModel *m, int capacity, int steps, ApiRoom *room);
// batch_vjp.c: frees it; NULL is allowed.
void api_kept_free(ApiKept *kept);
// batch_vjp.c: computes rollouts whose states, outputs and targets are set, and keeps them. Returns false where the
// device is lost, or the caller has interrupted it.
bool api_kept_rollout(SinewBatch *batch, const SinewRollouts *r, int tables);

// Drops work that did not come to its end, and tells why it did not. Returns SINEW_ERR_INTERRUPTED or SINEW_ERR_DEVICE.
SinewStatus api_batch_unfinished(SinewBatch *batch, SinewError *err);

// Returns how many initial states of a call are taken apart: one where all rollouts have one state and one model.
int api_batch_states(const SinewRollouts *r);

// batch_vjp.c: checks that steps of the model have Jacobians. Returns SINEW_ERR_UNSUPPORTED where buffers of controls
// or sensors carry a part of the state that those know nothing of.
SinewStatus api_check_jacobians(const SinewBatch *batch, const char *who, SinewError *err);

// batch_vjp.c: checks that rollouts are kept. Returns SINEW_ERR_STATE where none are.
SinewStatus api_check_kept(const SinewBatch *batch, SinewError *err);

#endif
