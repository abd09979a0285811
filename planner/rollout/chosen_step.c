// Chosen steps: each is a run of physics/step/horizon.c whose controls are held and whose one output is its end.
#include "planner/rollout/chosen_step.h"

#include <limits.h>

enum { CHOSEN_KEPT = 256 };  // steps of a stretch that the way back has at hand; of more it replays as many at a time

bool sn_chosen_settings(const SnSettings *s, SnHorizonSettings *to) {
  char method[16];
  *to = sn_horizon_defaults();
  to->method = sn_tableau_find(
      sn_settings_choice_name(sn_settings_find("integrator"), s->integrator, method, (int)sizeof method));
  to->rtol = (sn_real)s->rtol;
  to->atol = (sn_real)s->atol;
  to->max_steps = s->max_steps;
  return to->method >= 0;
}

SnHorizon *sn_chosen_create(const SnModel *m, const SnHorizonSettings *settings, bool back, SnError *err) {
  SnHorizonSettings s = *settings;
  if (back) {
    s.keep = CHOSEN_KEPT;
    s.checkpoints = s.max_steps / CHOSEN_KEPT + 1;
  }
  return sn_horizon_create(m, &s, err);
}

const SnModel *sn_chosen_model(const SnHorizon *h, const SnModel *m) { return h && sn_has_metric(m) ? &h->model : m; }

// The stretch of `duration`, whose end is its output.
static SnHorizonInput stretch(const sn_real *duration) {
  return (SnHorizonInput){.duration = *duration, .nout = 1, .out_time = duration};
}

// Runs a stretch from the state of the world; the whole of it is the first size that is tried.
static bool run(SnHorizon *h, const sn_real *duration, int most) {
  const SnHorizonInput in = stretch(duration);
  SnHorizonStatus status;
  SnError err;
  h->settings.first_step = *duration;
  h->settings.max_steps = most;
  h->accepted = h->rejected = 0;
  *h->world.warn = 0;
  return most > 0 && sn_horizon_run(h, &in, NULL, &status, &err) == SN_OK && status == SN_HORIZON_DONE;
}

static void copy(sn_real *to, const sn_real *from, int n) {
  if (n > 0) memcpy(to, from, sizeof *to * (size_t)n);
}

bool sn_chosen_step(SnHorizon *h, SnWorld *w, sn_real duration, int most, int *tried) {
  const SnModel *m = &h->model;
  const SnWorld *own = &h->world;
  copy(own->qpos, w->qpos, m->nq);
  copy(own->qvel, w->qvel, m->nv);
  copy(own->act, w->act, m->na);
  copy(own->ctrl, w->ctrl, m->nu);
  copy(own->mocap_pos, w->mocap_pos, 3 * m->nmocap);
  copy(own->mocap_quat, w->mocap_quat, 4 * m->nmocap);
  copy(own->qacc_warmstart, w->qacc, m->nv);
  own->time[0] = w->time[0];
  *own->cfd = *w->cfd;
  const bool good = run(h, &duration, most);
  if (tried) *tried = h->accepted + h->rejected;
  *w->warn |= *own->warn;
  if (!good) return false;
  copy(w->qpos, own->qpos, m->nq);
  copy(w->qvel, own->qvel, m->nv);
  copy(w->act, own->act, m->na);
  copy(w->qacc_warmstart, own->qacc, m->nv);
  w->time[0] += duration;
  return true;
}

bool sn_chosen_step_vjp(SnHorizon *h, const SnRolloutVjp *b, int t, const void *kept, const SnRolloutVjpState *state) {
  const SnModel *m = &h->model;
  const SnRollout *rollout = b->rollout;
  const sn_real duration = sn_rollout_seconds(m, rollout, t);
  const SnHorizonInput in = stretch(&duration);
  const size_t row = (size_t)t, nv = (size_t)m->nv;
  const SnRolloutState from = {rollout->out_time[t],
                               rollout->out_qpos + row * (size_t)m->nq,
                               rollout->out_qvel + row * nv,
                               rollout->out_act + row * (size_t)m->na,
                               rollout->ctrl + row * (size_t)m->nu,
                               rollout->out_qacc + row * nv,
                               0,
                               NULL};
  const SnHorizonBars bars = {.out_qpos = b->state_bar,
                              .out_qvel = b->state_bar + nv,
                              .out_act = b->state_bar + 2 * nv,
                              .qpos = state->state_bar,
                              .qvel = state->state_bar + nv,
                              .act = state->state_bar + 2 * nv,
                              .knot = state->ctrl_bar};
  SnError err;
  sn_rollout_set_state(m, &h->world, &h->lane, rollout, &from, &rollout->cfd);
  if (kept)
    sn_horizon_load_run(h, kept);
  else if (!run(h, &duration, INT_MAX))
    return false;
  return sn_horizon_vjp(h, &in, &b->cfd, &bars, &err) == SN_OK;
}
