// Kernels that run rollouts forward. The loop over steps is inside: a world stays in its block's memory.
#include <math.h>

#include "cuda/kernels/kernel_block_private.h"

// What candidate c of the sample begins from.
SN_LOCAL const SnRollout *sample_rollout(const SnSample *s, int c) { return s->rollout + (s->own ? c : 0); }

// Puts candidate c of the sample into the head's rollout.
SN_LOCAL void rollout_load(const SnKernelBlock *b, const SnSampleTurn *turn, int c) {
  const SnSample *s = turn->sample;
  SnRollout *rollout = &b->head->rollout;
  const size_t k = (size_t)c;
  *rollout = *sample_rollout(s, c);
  if (s->noisy) rollout->ctrl = s->ctrl + k * (size_t)s->nstep * (size_t)sn_block_model(b)->nu;
  rollout->sum = s->sum + k * (size_t)b->cost->nterm;
  rollout->saved = s->saved ? s->saved + k * (size_t)sn_rollout_saved_size(sn_block_model(b)) : NULL;
  if (turn->from == 0) return;
  rollout->total = s->total[c];
  rollout->t = s->t[c];
  rollout->status = s->status[c];
  rollout->warn = s->warn[c];
}

SN_LOCAL void rollout_store(const SnKernelBlock *b, const SnSample *s, int c) {
  const SnRollout *rollout = &b->head->rollout;
  s->total[c] = rollout->total;
  s->t[c] = rollout->t;
  s->status[c] = rollout->status;
  s->warn[c] = rollout->warn;
}

SN_LOCAL void rollout_candidate(const SnKernelBlock *b, const SnSampleTurn *turn, int c) {
  const SnSample *s = turn->sample;
  const SnModel *m = sn_block_model(b);
  SnLane *lane = b->lane;
  SnRollout *rollout = &b->head->rollout;
  SnWorld *w = b->world;
  const int from = turn->from, to = turn->to;
  if (from > 0 && s->status[c] != SN_ROLLOUT_UNDER_WAY) return;
  if (from == 0 && s->again && !(s->warn[c] & SN_WARN_FULL)) return;
  SN_ONE(lane) rollout_load(b, turn, c);
  SN_SYNC(lane);
  if (from > 0) {
    sn_rollout_restore(m, w, lane, rollout);
  } else {
    if (s->noisy)
      sn_candidate_controls(m, &s->noise, s->first + c, lane, sample_rollout(s, c)->ctrl, s->nstep, b->noise,
                            s->ctrl + (size_t)c * (size_t)s->nstep * (size_t)m->nu);
    sn_rollout_begin(m, b->cost, w, lane, rollout);
  }
  SnRolloutStatus status = SN_ROLLOUT_UNDER_WAY;
  for (int t = from; t < to && status == SN_ROLLOUT_UNDER_WAY; ++t)
    status = sn_rollout_step(m, b->cost, w, lane, rollout, &b->scratch);
  if (status == SN_ROLLOUT_UNDER_WAY) sn_rollout_save(m, w, lane, rollout);
  SN_ONE(lane) rollout_store(b, s, c);
  SN_SYNC(lane);
}

SN_FUNC void sn_kernel_rollout(const SnWork *work, int block, int blocks, SnLane *lane, void *memory) {
  SnKernelBlock b = sn_block_enter(work, block, blocks, lane, memory);
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

// One lane: an item begins.
SN_LOCAL void forward_open(SnGradientItem *x) {
  const int nstep = x->rollout.nstep;
  x->status = SN_GRADIENT_PENDING;
  x->norm = 0;
  x->vjp.rollout = &x->rollout;
  x->vjp.cfd_start = 0;
  if (!x->vjp.cfd.on) return;
  x->vjp.cfd_start = x->continues && !x->init && *x->cfd_steps == nstep;
  *x->cfd_steps = 0;
}

SN_LOCAL void forward_item(const SnKernelBlock *b, SnGradientItem *x) {
  SnLane *lane = b->lane;
  SnWorld *w = b->world;
  SN_ONE(lane) forward_open(x);
  SN_SYNC(lane);
  sn_rollout_begin(sn_block_model(b), b->cost, w, lane, &x->rollout);
  SnRolloutStatus status = SN_ROLLOUT_UNDER_WAY;
  while (status == SN_ROLLOUT_UNDER_WAY)
    status = sn_rollout_step(sn_block_model(b), b->cost, w, lane, &x->rollout, &b->scratch);
  sn_rollout_vjp_begin(sn_block_model(b), b->cost, lane, &x->vjp);
  if (status != SN_ROLLOUT_DIVERGED) return;
  SN_FOR(i, b->cost->nterm) x->rollout.sum[i] = (sn_real)INFINITY;
  sn_gradient_item_fail(b, x, SN_GRADIENT_DIVERGED);
}

SN_FUNC void sn_kernel_forward(const SnWork *work, int block, int blocks, SnLane *lane, void *memory) {
  SnKernelBlock b = sn_block_enter(work, block, blocks, lane, memory);
  sn_block_world(&b);
  for (int i = block; i < work->ngradient; i += blocks)
    if (work->gradient[i].active) forward_item(&b, work->gradient + i);
  sn_block_leave(&b);
}
