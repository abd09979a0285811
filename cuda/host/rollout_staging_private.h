// Inside of rollouts: a session's buffers for them, and how a group of a batch goes into the staging buffer and its
// results come out. Shared by rollouts.c and rollout_staging.c.
#ifndef SINEW_CUDA_HOST_ROLLOUT_STAGING_PRIVATE_H_
#define SINEW_CUDA_HOST_ROLLOUT_STAGING_PRIVATE_H_

#include "cuda/host/host.h"

typedef struct SnRollouts {
  int group;           // candidates at once
  int wide;            // candidates at once of wide batches (sn_batch_wide); 0: there is no room for any
  SnOwnMemory memory;  // kept: controls and states between launches
  // A group of the batch. All but sample_there lie in the staging buffer.
  SnSample *sample;
  const SnSample *sample_there;  // on the device
  SnRollout *rollout;            // (count, or 1) as SnSample.rollout
  sn_real *total, *sum;
  int *status, *warn, *t;
  // The batch under way.
  bool active;
  int first, count;     // candidates [first, first + count) of the batch are its group
  SnRolloutWay way;     // way that its worlds go
  int done, all;        // calls of sn_rollout_step that every rollout of the group has had, of all: the last ends it
  double step_seconds;  // time of one of them, measured; < 0: not yet
} SnRollouts;

// Returns whether candidates of the batch differ in more than their noise, or give their states.
bool sn_batch_wide(const SnBatch *batch);

// Puts the group [r->first, r->first + r->count) of a batch into the staging buffer, and space for its results. With
// `batch` NULL it only counts, for as many steps as there may be, of a wide batch where `wide` is set.
void sn_rollouts_pack(SnRollouts *r, const SnBackendModel *x, const SnBatch *batch, bool wide);
// Gives the results of the group, which have come back.
void sn_rollouts_give(const SnRollouts *r, const SnDeviceModel *d, const SnBatch *batch);

// Cuts controls and states of a group's candidates from `buffer`, or counts them (NULL). Returns the bytes.
size_t sn_rollouts_cut(const SnBackendModel *x, char *buffer, int group, SnSample *sample);

#endif
