// Steps that do not fit into memory: a run keeps the start of every `keep` steps, and the way back replays the steps
// behind it, with the sizes that they had. Host only (horizon.h).
//
// So a run of n steps takes memory for `keep` steps, n / keep starts and n times, and n - keep steps more forwards. The
// bits of a replayed step are those of the run. Its first acceleration is kept where it cannot be evaluated again from
// the same warm start; all other stages begin with that of the stage before.
#include "physics/step/horizon_private.h"

size_t sn_horizon_checkpoint_numbers(const SnModel *m) {
  return 1 + (size_t)m->nq + 2 * (size_t)m->nv + 2 * (size_t)m->na;
}

size_t sn_horizon_checkpoint_bytes(const SnModel *m, int keep) {
  return sn_horizon_checkpoint_numbers(m) * sizeof(sn_real) + sizeof(int) + (size_t)keep * (sizeof(sn_real) + 1);
}

// Copies between the start of a step and a checkpoint.
static void copy_start(const SnModel *m, const SnKeptStep *s, sn_real *at, bool save) {
  sn_real *const part[] = {s->time, s->qpos, s->qvel, s->act, s->acc, s->adot};
  const int size[] = {1, m->nq, m->nv, m->na, m->nv, m->na};
  for (int k = 0; k < 6; ++k) {
    memcpy(save ? at : part[k], save ? part[k] : at, sizeof *at * (size_t)size[k]);
    at += size[k];
  }
}

void sn_horizon_save(const SnHorizon *h, int k, int segment) {
  const SnHorizonScratch *x = h->scratch;
  const int keep = h->settings.keep;
  if (h->settings.checkpoints == 0 || keep == 0 || k % keep != 0) return;
  const SnKeptStep s = sn_horizon_kept(h, k);
  copy_start(&h->model, &s, x->checkpoint + (size_t)(k / keep) * sn_horizon_checkpoint_numbers(&h->model), true);
  x->checkpoint_knot[k / keep] = segment;
  x->begin[k] = s.time[0];
}

void sn_horizon_note_step(const SnHorizon *h, int k, sn_real t1) {
  const SnHorizonScratch *x = h->scratch;
  if (h->settings.checkpoints == 0 || h->settings.keep == 0) return;
  x->begin[k + 1] = t1;
  x->cross[k] = (unsigned char)x->crossing[sn_horizon_slot(h, k)];
}

// Brings the start of step k, a multiple of keep, into the slot that it has with the present base.
static void load(const SnHorizon *h, int k) {
  const SnHorizonScratch *x = h->scratch;
  const int point = k / h->settings.keep;
  const SnKeptStep s = sn_horizon_kept(h, k);
  copy_start(&h->model, &s, x->checkpoint + (size_t)point * sn_horizon_checkpoint_numbers(&h->model), false);
  memcpy(s.rate, s.qvel, sizeof *s.rate * (size_t)h->model.nv);
  x->segment[sn_horizon_slot(h, k)] = x->checkpoint_knot[point];
}

// Takes step s again, whose first stage is known, to t1.
static bool retake(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, SnProgress *p, sn_real t1) {
  SnHorizonScratch *x = h->scratch;
  const int slot = sn_horizon_slot(h, p->step);
  const sn_real dt = t1 - s->time[0];
  sn_real reach;
  p->first_known = false;
  if (x->cross[p->step]) {
    s->time[1] = dt;
    x->crossing[slot] = 1;
    if (!sn_horizon_move_to_end(h, s, p->step)) return false;
  } else {
    if (sn_horizon_take(h, in, s, p, dt, NULL, &reach) != SN_TRIAL_GOOD) return false;
    p->first_known = sn_horizon_watches(h) && !x->rk->ends;
  }
  return sn_horizon_write_outputs(h, in, NULL, s, p, t1);
}

// Takes the steps from `base` on, a multiple of keep, again.
static bool replay(SnHorizon *h, const SnHorizonInput *in, int base) {
  SnHorizonScratch *x = h->scratch;
  const int evaluations = h->evaluations, end = sn_mini(base + h->settings.keep, h->accepted);
  bool good = true;
  x->base = base;
  load(h, base);
  SnProgress p = {.step = base, .segment = x->segment[0], .t = x->begin[base], .first_known = true};
  while (p.out < in->nout && in->out_time[p.out] <= p.t) ++p.out;
  for (int k = base; k < end && good; ++k) {
    const SnKeptStep s = sn_horizon_kept(h, k);
    good = sn_horizon_first_stage(h, in, &s, &p) && retake(h, in, &s, &p, x->begin[k + 1]);
    if (good && k + 1 < end) sn_horizon_next_step(h, in, &s, &p, x->begin[k + 1], k + 1 - base);
  }
  if (good && end < h->accepted) load(h, end);
  h->evaluations = evaluations;
  return good;
}

bool sn_horizon_at_hand(SnHorizon *h, const SnHorizonInput *in, int k) {
  const int keep = h->settings.keep, base = h->settings.checkpoints > 0 ? k / keep * keep : 0;
  return base == h->scratch->base || replay(h, in, base);
}

// ---- runs outside ----

// Numbers of such a copy: the time reached, steps; then two integers a step.
static size_t copy_numbers(const SnHorizon *h, int steps) { return 2 + (size_t)steps * h->scratch->stride; }

size_t sn_horizon_run_bytes(const SnHorizon *h) {
  if (!h->scratch->done || h->accepted > h->settings.keep) return 0;
  return copy_numbers(h, h->accepted) * sizeof(sn_real) + 2 * (size_t)h->accepted * sizeof(int);
}

void sn_horizon_save_run(const SnHorizon *h, void *to) {
  const SnHorizonScratch *x = h->scratch;
  const size_t steps = (size_t)h->accepted, numbers = copy_numbers(h, h->accepted);
  sn_real *at = to;
  int *flags = (int *)(void *)(at + numbers);
  at[0] = h->reached;
  at[1] = (sn_real)h->accepted;
  memcpy(at + 2, x->record, (numbers - 2) * sizeof *at);
  memcpy(flags, x->segment, steps * sizeof *flags);
  memcpy(flags + steps, x->crossing, steps * sizeof *flags);
}

void sn_horizon_load_run(SnHorizon *h, const void *from) {
  SnHorizonScratch *x = h->scratch;
  const sn_real *at = from;
  h->reached = at[0];
  h->accepted = (int)at[1];
  const size_t steps = (size_t)h->accepted, numbers = copy_numbers(h, h->accepted);
  const int *flags = (const int *)(const void *)(at + numbers);
  memcpy(x->record, at + 2, (numbers - 2) * sizeof *at);
  memcpy(x->segment, flags, steps * sizeof *flags);
  memcpy(x->crossing, flags + steps, steps * sizeof *flags);
  memcpy(x->ctrl, h->world.ctrl, sizeof *x->ctrl * (size_t)h->model.nu);
  x->base = 0;
  x->done = true;
}
