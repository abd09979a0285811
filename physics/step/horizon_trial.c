// Trials of a step, until one is accepted: by the control of the error, and by how steps end at events. Host only
// (horizon.h).
#include "physics/step/horizon.h"
#include "physics/step/horizon_private.h"

enum { MOST_TRIES = 6 };                   // trials of a step that are broken off at jumps, and at kinks
enum { MOST_KINKS = 3, MOST_JUMPS = 32 };  // steps across events one after the other, behind which these are ignored
// A body that chatters on a surface meets events without end. Each costs so many of the steps that lie between them;
// where the credit is used up, events are ignored until as many steps have been taken as it was worth.
enum { COST_OF_EVENT = 3 };

// Notes what acts at a stage that has been evaluated. *reach: its time from the start of the step, becomes that of a
// kink [s].
static SnTrial watch_stage(SnHorizon *h, const SnApproach *a, sn_real *reach) {
  sn_real kink = 0;
  if (!a) return SN_TRIAL_GOOD;
  const SnEvent event = sn_horizon_watches(h) ? sn_horizon_event(h, *reach, &kink) : SN_EVENT_NONE;
  if (event == SN_EVENT_JUMP && a->jumps) return SN_TRIAL_JUMP;
  if (event != SN_EVENT_KINK || !a->kinks) return SN_TRIAL_GOOD;
  *reach = kink;
  return SN_TRIAL_KINK;
}

SnTrial sn_horizon_take(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, SnProgress *p, sn_real dt,
                        const SnApproach *a, sn_real *reach) {
  SnHorizonScratch *x = h->scratch;
  const SnTableau *rk = x->rk;
  s->time[1] = dt;
  x->crossing[sn_horizon_slot(h, p->step)] = 0;
  memcpy(h->world.qacc_warmstart, s->acc, sizeof *s->acc * (size_t)h->model.nv);
  if (a && sn_horizon_watches(h)) sn_horizon_copy_rows(&x->now, &x->start);
  for (int j = 1; j < rk->stages; ++j) {
    sn_horizon_sum(h, s, rk->a[j], j);
    sn_horizon_move(h, s, dt, rk->ends && j == rk->stages - 1);
    *reach = (sn_real)rk->c[j] * dt;
    if (!sn_horizon_forward(h, in, s, p->segment, j, dt)) return SN_TRIAL_BAD;
    const SnTrial trial = watch_stage(h, a, reach);
    if (trial != SN_TRIAL_GOOD) return trial;
  }
  if (!sn_horizon_move_to_end(h, s, p->step)) return SN_TRIAL_BAD;
  if (!sn_horizon_watches(h) || rk->ends) return SN_TRIAL_GOOD;
  *reach = dt;
  if (!sn_horizon_forward(h, in, s, p->segment, rk->stages, dt)) return SN_TRIAL_BAD;
  return watch_stage(h, a, reach);
}

// The next time behind t at which a step ends.
static sn_real next_forced(const SnHorizon *h, const SnHorizonInput *in, const SnProgress *p) {
  sn_real end = in->duration;
  if (p->segment + 1 < in->nknot) end = sn_min(end, in->knot_time[p->segment + 1]);
  if (h->settings.stop_at_outputs && p->out < in->nout) end = sn_min(end, in->out_time[p->out]);
  return end;
}

// The size of the next step within the bounds, and where it ends.
static sn_real step_end(const SnHorizon *h, const SnHorizonInput *in, SnProgress *p) {
  const sn_real forced = next_forced(h, in, p);
  if (h->settings.largest_step > 0) p->size = sn_min(p->size, h->settings.largest_step);
  const sn_real left = forced - p->t;
  return p->size * SN_R(1.000001) >= left ? forced : p->t + p->size;
}

// Leads across the event that lies within `time` of the start of step s. Returns false where the end is not finite.
static bool cross_event(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, SnProgress *p, sn_real time,
                        sn_real *t1) {
  SnHorizonScratch *x = h->scratch;
  *t1 = sn_min(p->t + time, next_forced(h, in, p));
  s->time[1] = *t1 - p->t;
  x->crossing[sn_horizon_slot(h, p->step)] = 1;
  x->last = x->before = 1;
  p->restart = true;
  ++p->crossed;
  p->credit -= COST_OF_EVENT;
  p->chatters = p->credit < 0;
  return sn_horizon_move_to_end(h, s, p->step);
}

// Shortens the next trial to a part of `time`, where an event is thought to be: the more the more trials there were.
static void come_near(SnApproach *a, sn_real time, int tries) {
  static const sn_real back[] = {SN_R(1e-6), SN_R(1e-4), SN_R(1e-2), SN_R(0.1), SN_R(0.5)};
  a->most = time * (1 - back[sn_mini(tries, 4)]);
}

// A trial has met a kink `time` behind the start of step s. Returns true where it has been crossed.
static bool meet_kink(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, SnProgress *p, sn_real time,
                      SnApproach *a, sn_real *t1) {
  const sn_real crossing = sn_horizon_crossing();
  if (time <= SN_R(0.5) * crossing && cross_event(h, in, s, p, crossing, t1)) return true;
  come_near(a, time, a->cuts + 1);
  a->kinks = ++a->cuts < MOST_TRIES;
  return false;
}

// A trial has met a jump, `reach` behind the start of step s or before. Returns true where it has been crossed.
static bool meet_jump(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, SnProgress *p, sn_real reach,
                      SnApproach *a, sn_real *t1) {
  sn_real time;
  const bool found = sn_horizon_find_event(h, s, reach, true, &time);
  if (found && time <= sn_horizon_crossing() && sn_horizon_find_event(h, s, time, false, &time) &&
      cross_event(h, in, s, p, time, t1))
    return true;
  come_near(a, found ? sn_min(time, reach) : reach, found ? a->tries : MOST_TRIES);
  a->jumps = ++a->tries < MOST_TRIES;
  return false;
}

SnHorizonStatus sn_horizon_accept(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, SnProgress *p,
                                  sn_real *t1) {
  const SnHorizonSettings *set = &h->settings;
  SnHorizonScratch *x = h->scratch;
  const sn_real least = sn_max(set->smallest_step, 16 * SN_EPS * sn_max(p->t, SN_MINVAL));
  // states that change back and forth, as where a cone's tip is, are left to the control of the error
  SnApproach a = {.jumps = !p->chatters && p->crossed < MOST_JUMPS,
                  .kinks = !p->chatters && p->crossed < MOST_KINKS,
                  .most = SN_MAXVAL};
  for (;;) {
    *t1 = sn_min(step_end(h, in, p), p->t + a.most);
    const sn_real dt = *t1 - p->t, last = x->last, before = x->before;
    sn_real reach = 0;
    if (h->accepted + h->rejected >= set->max_steps) return SN_HORIZON_STEPS;
    const SnTrial trial = sn_horizon_take(h, in, s, p, dt, &a, &reach);
    const bool good = trial == SN_TRIAL_GOOD;
    if (trial == SN_TRIAL_KINK || trial == SN_TRIAL_JUMP) {
      ++h->rejected;
      if ((trial == SN_TRIAL_KINK ? meet_kink : meet_jump)(h, in, s, p, reach, &a, t1)) return SN_HORIZON_DONE;
      if (!a.jumps || !a.kinks) a.most = SN_MAXVAL;
      continue;
    }
    p->crossed = 0;
    if (!good && (set->fixed_step > 0 || dt <= least)) return SN_HORIZON_BAD;
    p->first_known = sn_horizon_watches(h) && !x->rk->ends;
    if (set->fixed_step > 0) return SN_HORIZON_DONE;
    const sn_real error = good ? sn_horizon_error(h, s) : SN_MAXVAL;
    const bool accepted = error < 1;
    const sn_real factor = sn_horizon_factor(h, error, accepted);
    if (accepted) {  // a step that was cut short says nothing against the size that was proposed
      p->size = dt < p->size ? sn_max(p->size, dt * factor) : dt * factor;
      if (a.most < SN_MAXVAL) {
        x->last = last;
        x->before = before;
      }
      p->credit = sn_mini(p->credit + 1, SN_EVENT_CREDIT);
      p->chatters = p->chatters && p->credit < SN_EVENT_CREDIT;
      return SN_HORIZON_DONE;
    }
    ++h->rejected;
    p->size = dt * factor;
    if (p->size < least) return good ? SN_HORIZON_SMALLEST : SN_HORIZON_BAD;
  }
}
