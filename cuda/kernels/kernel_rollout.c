// Kernels that run paths forward. The loop over steps is inside: a world stays in its block's memory.
#include <math.h>

#include "cuda/kernels/kernel_block.h"

// Puts candidate c of the sample into the head's path.
SN_LOCAL void rollout_load(const SnKernelBlock *b, const SnSampleTurn *turn, int c) {
  const SnSample *s = turn->sample;
  SnPath *path = &b->head->path;
  const size_t k = (size_t)c;
  *path = s->path;
  path->ctrl = s->noisy ? s->ctrl + k * (size_t)s->path.nstep * (size_t)b->m->nu : s->base;
  path->sum = s->sum + k * (size_t)b->cost->nterm;
  path->kept = s->kept ? s->kept + k * (size_t)sn_path_kept_size(b->m) : NULL;
  if (turn->from == 0) return;
  path->total = s->total[c];
  path->t = s->t[c];
  path->status = s->status[c];
  path->warn = s->warn[c];
}

SN_LOCAL void rollout_store(const SnKernelBlock *b, const SnSample *s, int c) {
  const SnPath *path = &b->head->path;
  s->total[c] = path->total;
  s->t[c] = path->t;
  s->status[c] = path->status;
  s->warn[c] = path->warn;
}

SN_LOCAL void rollout_candidate(const SnKernelBlock *b, const SnSampleTurn *turn, int c) {
  const SnSample *s = turn->sample;
  const SnModel *m = b->m;
  SnLane *lane = b->lane;
  SnPath *path = &b->head->path;
  SnWorld *w = &b->head->world;
  const int from = turn->from, to = turn->to;
  if (from > 0 && s->status[c] != SN_PATH_UNDER_WAY) return;
  SN_ONE(lane) rollout_load(b, turn, c);
  SN_SYNC(lane);
  if (from > 0) {
    sn_path_return(m, w, lane, path);
  } else {
    if (s->noisy)
      sn_candidate_controls(m, &s->noise, s->first + c, lane, s->base, path->nstep, b->noise,
                            s->ctrl + (size_t)c * (size_t)path->nstep * (size_t)m->nu);
    sn_path_begin(m, b->cost, w, lane, path);
  }
  SnPathStatus status = SN_PATH_UNDER_WAY;
  for (int t = from; t < to && status == SN_PATH_UNDER_WAY; ++t)
    status = sn_path_step(m, b->cost, w, lane, path, &b->scratch);
  if (status == SN_PATH_UNDER_WAY) sn_path_leave(m, w, lane, path);
  SN_ONE(lane) rollout_store(b, s, c);
  SN_SYNC(lane);
}

SN_FUNC void sn_kernel_rollout(const SnWork *work, int block, int blocks, SnLane *lane, void *fast) {
  const SnKernelBlock b = sn_block_enter(work, block, blocks, lane, fast);
  sn_block_world(&b);
  int c = block;  // of the sample that has its turn
  for (int k = 0; k < work->nturn; ++k) {
    const SnSampleTurn *turn = &work->turn[k];
    const int count = turn->sample->count;
    for (; c < count; c += blocks) rollout_candidate(&b, turn, c);
    c -= count;
  }
  sn_block_leave(&b);
}

// One lane: a trial begins.
SN_LOCAL void forward_open(SnTrial *x) {
  const int nstep = x->path.nstep;
  x->status = SN_GRADIENT_PENDING;
  x->norm = 0;
  x->back.path = &x->path;
  x->back.cfd_start = 0;
  if (!x->back.cfd.on) return;
  x->back.cfd_start = x->continues && !x->open && *x->cfd_steps == nstep;
  *x->cfd_steps = 0;
}

SN_LOCAL void forward_trial(const SnKernelBlock *b, SnTrial *x) {
  SnLane *lane = b->lane;
  SnWorld *w = &b->head->world;
  SN_ONE(lane) forward_open(x);
  SN_SYNC(lane);
  sn_path_begin(b->m, b->cost, w, lane, &x->path);
  SnPathStatus status = SN_PATH_UNDER_WAY;
  while (status == SN_PATH_UNDER_WAY) status = sn_path_step(b->m, b->cost, w, lane, &x->path, &b->scratch);
  sn_backward_begin(b->m, b->cost, lane, &x->back);
  if (status != SN_PATH_DIVERGED) return;
  SN_FOR(i, b->cost->nterm) x->path.sum[i] = (sn_real)INFINITY;
  sn_trial_fail(b, x, SN_GRADIENT_DIVERGED);
}

SN_FUNC void sn_kernel_forward(const SnWork *work, int block, int blocks, SnLane *lane, void *fast) {
  const SnKernelBlock b = sn_block_enter(work, block, blocks, lane, fast);
  sn_block_world(&b);
  for (int i = block; i < work->ntrial; i += blocks)
    if (work->trial[i].active) forward_trial(&b, work->trial + i);
  sn_block_leave(&b);
}
