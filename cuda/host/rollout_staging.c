// A group of candidates in the staging buffer. What all of them share lies there once, and every candidate's rollout
// points to it; so a batch that differs in its controls alone sends no state twice.
#include "cuda/host/rollout_staging_private.h"

#include <math.h>

size_t sn_rollouts_cut(const SnBackendModel *x, char *buffer, int group, SnSample *sample) {
  const SnModel *m = &x->model->m;
  const size_t n = (size_t)group, steps = (size_t)x->max_step;
  size_t used = 0;
  sample->ctrl = sn_cut(buffer, &used, n * steps * (size_t)m->nu * sizeof(sn_real));
  sample->saved = sn_cut(buffer, &used, n * (size_t)sn_rollout_saved_size(m) * sizeof(sn_real));
  return used;
}

bool sn_batch_wide(const SnBatch *batch) {
  return batch->nstate > 1 || batch->nctrl > 1 || batch->ntable > 1 || batch->out;
}

// The batch that takes most: it has all arrays; an address stands for each.
static SnBatch fullest(const SnBackendModel *x, bool wide, SnNoiseSettings *noise) {
  static double there[1];
  static const SnTrajectory out = {there, there, there, there, there, there, there, there, NULL};
  const int each = wide ? 2 : 1;  // more than one
  *noise = (SnNoiseSettings){.knots = sn_multistart_knots(x->max_step), .deviation = there};
  return (SnBatch){.state = &sn_full_state,
                   .nstate = each,
                   .ctrl = there,
                   .nctrl = each,
                   .target = there,
                   .ntable = each,
                   .noise = noise,
                   .nstep = x->max_step,
                   .out = wide ? &out : NULL};
}

// Inputs of all candidates of the group, each once where they share them. `same`: all are candidate 0 of the batch.
static void put_inputs(SnRollouts *r, const SnBackendModel *x, const SnBatch *b, bool same, SnSample *s) {
  const SnDeviceModel *d = x->model;
  const size_t nstep = (size_t)b->nstep;
  const int n = s->own ? r->count : 1;
  SnStaging *p = &r->memory.staging;
  r->rollout = sn_staging_put(p, (size_t)n * sizeof *r->rollout, (void *)&s->rollout);
  SnRollout rollout = {.nstep = b->nstep, .max_velocity = (sn_real)b->max_velocity};
  sn_staging_weights(p, x, &rollout);
  for (int k = 0; k < n; ++k) {
    const int i = same ? 0 : r->first + k;
    if (k == 0 || b->nstate > 1) sn_staging_state(p, d, sn_batch_state(b, i), &rollout);
    if (k == 0 || b->nctrl > 1)
      rollout.ctrl = sn_staging_reals(p, sn_batch_ctrl(b, i, d->m.nu), nstep * (size_t)d->m.nu);
    if (k == 0 || b->ntable > 1)
      rollout.target =
          sn_staging_reals(p, sn_batch_target(b, i, d->cost.ntarget), (nstep + 1) * (size_t)d->cost.ntarget);
    if (r->rollout) r->rollout[k] = rollout;
  }
}

// Space for the states of all candidates.
static void put_states(SnRollouts *r, const SnDeviceModel *d, const SnBatch *b, bool same) {
  for (int k = 0; b->out && k < r->count; ++k) {
    SnRollout counted = {.nstep = b->nstep};
    sn_staging_trajectory(&r->memory.staging, d, &b->out[same ? 0 : r->first + k],
                          r->rollout ? &r->rollout[k] : &counted);
  }
}

static const sn_real *put_deviation(SnStaging *p, const SnBackendModel *x, const SnNoiseSettings *noise) {
  return noise->deviation ? sn_staging_reals(p, noise->deviation, (size_t)noise->knots * (size_t)x->model->m.nu) : NULL;
}

void sn_rollouts_pack(SnRollouts *r, const SnBackendModel *x, const SnBatch *batch, bool wide) {
  SnNoiseSettings noise;
  const SnBatch full = fullest(x, wide, &noise);
  const SnBatch *b = batch ? batch : &full;
  const size_t nterm = (size_t)x->model->cost.nterm, n = (size_t)r->count;
  SnSample s = {.first = b->first + r->first, .count = r->count, .noisy = b->noise != NULL};
  SnStaging *p = &r->memory.staging;
  s.own = sn_batch_wide(b);
  s.nstep = b->nstep;
  sn_staging_begin(p);
  r->sample = sn_staging_put(p, sizeof s, (void *)&r->sample_there);
  put_inputs(r, x, b, !batch, &s);
  if (b->noise) {
    s.noise = sn_noise(b->noise);
    s.noise.deviation = put_deviation(p, x, b->noise);
  }
  sn_staging_results(p);
  r->total = sn_staging_put(p, n * sizeof(sn_real), (void *)&s.total);
  r->sum = sn_staging_put(p, n * nterm * sizeof(sn_real), (void *)&s.sum);
  r->status = sn_staging_put(p, n * sizeof(int), (void *)&s.status);
  r->warn = sn_staging_put(p, n * sizeof(int), (void *)&s.warn);
  r->t = sn_staging_put(p, n * sizeof(int), (void *)&s.t);
  put_states(r, x->model, b, !batch);
  sn_rollouts_cut(x, r->memory.kept.p, r->group, &s);
  if (r->sample) *r->sample = s;
}

void sn_rollouts_give(const SnRollouts *r, const SnDeviceModel *d, const SnBatch *batch) {
  const int nterm = d->cost.nterm;
  for (int c = 0; c < r->count; ++c) {
    const size_t i = (size_t)r->first + (size_t)c;
    const bool diverged = r->status[c] != SN_ROLLOUT_DONE;
    const sn_real *sum = r->sum + (size_t)c * (size_t)nterm;
    double *term = batch->term ? batch->term + i * (size_t)nterm : NULL;
    for (int k = 0; term && k < nterm; ++k) term[k] = diverged ? (double)INFINITY : (double)sum[k];
    batch->cost[i] = diverged ? (double)INFINITY : (double)r->total[c];
    if (batch->warn) batch->warn[i] = r->warn[c];
    if (batch->steps) batch->steps[i] = r->t[c];
    if (batch->out)
      sn_staging_give(&r->memory.staging, d, &r->rollout[c], diverged ? r->t[c] : batch->nstep + 1, &batch->out[i]);
    batch->done[i] = 1;
  }
}
