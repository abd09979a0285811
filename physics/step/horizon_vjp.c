// The discrete adjoint of a run: its steps backwards, with their sizes constant but where events move them
// (horizon_events.c). Host only (horizon.h).
//
// A state Y on the way, a stage, an output or the end of a step, is the start of its step moved by dt times a weighted
// sum xi, dv, dact of stages. From its bar come, by sn_integrate_pos_vjp, that of the start and of xi, and from these
// those of the stages' rates, accelerations and rates of activations. Stages are evaluated again from the last to
// the first, from what is kept: each but the first one of a step once, the solver begins at its solution.
#include "physics/actuator/actuator.h"
#include "physics/base/vec.h"
#include "physics/step/horizon_private.h"
#include "physics/step/integrate_private.h"
#include "physics/step/step.h"

static bool any(const sn_real *x, int n) {
  for (int i = 0; i < n; ++i)
    if (x[i] != 0) return true;
  return false;
}

static void add(sn_real *to, const sn_real *x, int n) {
  for (int i = 0; i < n; ++i) to[i] += x[i];
}

// Zeroes the bars of activations that their range has stopped at the end of a step.
static void stop_activations(const SnHorizon *h, const SnKeptStep *s, sn_real *bar) {
  const SnModel *m = &h->model;
  if (m->opt.disableflags & SN_DSBL_ACTUATION) return;
  for (int i = 0; i < m->nactuator; ++i) {
    const sn_real *range = m->actuator_actrange + 2 * i;
    const int adr = m->actuator_actadr[i];
    if (!m->actuator_actlimited[i]) continue;
    for (int k = adr; k >= 0 && k < adr + m->actuator_actnum[i]; ++k) {
      const sn_real next = s->act[k] + s->time[1] * h->scratch->dact[k];
      if (!(next >= range[0] && next <= range[1])) bar[k] = 0;
    }
  }
}

// Hands the bar (2 nv + na) of a state, and xi_bar, to the start of the step and to its first n stages, of which the
// state is the sum with these weights. Changes both. `limit`: as sn_horizon_move.
static void state_vjp(SnHorizon *h, const SnKeptStep *s, const double *weight, int n, bool limit, sn_real *bar) {
  const SnModel *m = &h->model;
  SnHorizonScratch *x = h->scratch;
  const int nv = m->nv, na = m->na;
  const sn_real dt = s->time[1];
  sn_real *v_bar = bar + nv, *act_bar = bar + 2 * nv;
  sn_horizon_sum(h, s, weight, n);
  if (limit) stop_activations(h, s, act_bar);
  sn_integrate_pos_vjp(m, &h->lane, x->xi, dt, bar, x->start_bar, x->xi_bar);
  add(x->start_bar + nv, v_bar, nv + na);
  for (int j = 0; j < n; ++j) {
    const sn_real w = (sn_real)weight[j];
    for (int i = 0; i < nv; ++i) {
      x->rate_bar[j * nv + i] += w * x->xi_bar[i];
      x->acc_bar[j * nv + i] += w * dt * v_bar[i];
    }
    for (int i = 0; i < na; ++i) x->adot_bar[j * na + i] += w * dt * act_bar[i];
  }
}

void sn_horizon_dynamics_vjp(SnHorizon *h, const sn_real *acc_bar, const sn_real *adot_bar) {
  const SnModel *m = &h->model;
  SnAdjoint *a = &h->scratch->adjoint;
  const int nv = m->nv, na = m->na;
  sn_adjoint_clear(m, a, &h->lane);
  memcpy(a->qacc_bar, acc_bar, sizeof *a->qacc_bar * (size_t)nv);
  memcpy(a->act_dot_bar, adot_bar, sizeof *a->act_dot_bar * (size_t)na);
  for (int i = 0; i < nv; ++i) a->motion[SN_Y * nv + i] = a->motion[SN_NEXT * nv + i] = 0;
  for (int i = 0; i < m->nactuator; ++i) {
    const int adr = m->actuator_actadr[i];
    if (!sn_actuator_disabled(m, i) && !(m->opt.disableflags & SN_DSBL_ACTUATION)) continue;
    for (int k = adr; k >= 0 && k < adr + m->actuator_actnum[i]; ++k) a->act_dot_bar[k] = 0;
  }
  sn_forward_vjp(m, &h->world, a, &h->lane);
  sn_position_vjp(m, &h->world, a, &h->lane);
}

// Adds the bars of controls and mocap bodies of a stage at time t.
static void inputs_vjp(SnHorizon *h, const SnHorizonInput *in, int segment, sn_real t, const SnHorizonBars *bars) {
  const SnModel *m = &h->model;
  const SnAdjoint *a = &h->scratch->adjoint;
  if (bars->mocap) add(bars->mocap, a->mocap_bar, 6 * m->nmocap);
  sn_real part = 0;
  const int k = in->nknot > 0 ? sn_horizon_controls(h, in, segment, t, &part) : 0;
  if (h->settings.linear && segment >= 0 && segment + 1 < in->nknot) {
    const sn_real *u = in->knot + k * m->nu, last = in->knot_time[k + 1] - in->knot_time[k];
    for (int i = 0; i < m->nu; ++i) h->scratch->flow -= a->ctrl_bar[i] * (u[m->nu + i] - u[i]) / last;
  }
  if (!bars->knot) return;
  for (int i = 0; i < m->nu; ++i) {
    sn_real *to = bars->knot + k * m->nu + i;
    to[0] += (1 - part) * a->ctrl_bar[i];
    if (part > 0) to[m->nu] += part * a->ctrl_bar[i];
  }
}

// Stage j of step s: its bars become those of the stages before, of the start and of the inputs. Returns false where it
// cannot be evaluated.
static bool stage_vjp(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, int segment, int j,
                      const SnHorizonBars *bars) {
  const SnModel *m = &h->model;
  SnHorizonScratch *x = h->scratch;
  SnAdjoint *a = &x->adjoint;
  const int nv = m->nv, na = m->na, stages = x->rk->stages;
  const sn_real dt = s->time[1], *rate_bar = x->rate_bar + j * nv;
  const double *row = j < stages ? x->rk->a[j] : x->rk->b;
  const int n = sn_mini(j, stages);
  const bool limit = j == sn_tableau_end(x->rk);
  if (!any(rate_bar, nv) && !any(x->acc_bar + j * nv, nv) && !any(x->adot_bar + j * na, na)) return true;
  sn_horizon_sum(h, s, row, n);
  sn_horizon_move(h, s, dt, limit);
  memcpy(h->world.qacc_warmstart, s->acc + j * nv, sizeof *s->acc * (size_t)nv);
  if (!sn_horizon_evaluate(h, in, s, segment, j, dt)) return false;
  sn_horizon_dynamics_vjp(h, x->acc_bar + j * nv, x->adot_bar + j * na);
  inputs_vjp(h, in, segment, s->time[0] + (j < stages ? (sn_real)x->rk->c[j] : 1) * dt, bars);
  memset(x->xi_bar, 0, sizeof *x->xi_bar * (size_t)nv);
  if (j == 0)
    add(a->qvel_bar, rate_bar, nv);
  else
    sn_stage_rate_vjp(m, &h->lane, h->world.qvel, x->xi, dt, rate_bar, a->qvel_bar, x->xi_bar);
  memcpy(x->state_bar, a->qpos_bar, sizeof *a->qpos_bar * (size_t)nv);
  memcpy(x->state_bar + nv, a->qvel_bar, sizeof *a->qvel_bar * (size_t)nv);
  memcpy(x->state_bar + 2 * nv, a->act_bar, sizeof *a->act_bar * (size_t)na);
  if (j > 0)
    state_vjp(h, s, row, n, limit, x->state_bar);
  else
    add(x->start_bar, x->state_bar, 2 * nv + na);
  return true;
}

void sn_horizon_add_output(const SnHorizon *h, const SnHorizonBars *bars, int k, sn_real *bar) {
  const int nv = h->model.nv, na = h->model.na;
  if (bars->out_qpos) add(bar, bars->out_qpos + (size_t)k * (size_t)nv, nv);
  if (bars->out_qvel) add(bar + nv, bars->out_qvel + (size_t)k * (size_t)nv, nv);
  if (bars->out_act) add(bar + 2 * nv, bars->out_act + (size_t)k * (size_t)na, na);
}

// What an output at part theta of step k adds to p of horizon_events.c, its bar in state_bar.
static sn_real output_flow(SnHorizon *h, const SnKeptStep *s, int k, double theta) {
  SnHorizonScratch *x = h->scratch;
  const double eps = 1e-6;  // the weights are polynomials of theta
  const int nv = h->model.nv, na = h->model.na;
  const sn_real *bar = x->state_bar;
  sn_real sum = 0;
  for (int e = -1; e <= 1; e += 2) {
    sn_horizon_sum(h, s, x->weight, sn_horizon_dense(h, k, theta + e * eps, x->weight));
    sum += (sn_real)(e / (2 * eps)) * (sn_dot(bar + nv, x->dv, nv) + sn_dot(bar + 2 * nv, x->dact, na));
  }
  const int n = sn_horizon_dense(h, k, theta, x->weight);
  sn_horizon_sum(h, s, x->weight, n);
  return sum + sn_dot(bar, s->qvel, nv) + s->time[1] * sn_dot(bar, x->dv, nv);
}

// Sets p of horizon_events.c where the time of the end of step k is given: f before it times next_bar.
static void end_flow(SnHorizon *h, const SnKeptStep *s, int k) {
  SnHorizonScratch *x = h->scratch;
  const int nv = h->model.nv, na = h->model.na, end = x->crossing[sn_horizon_slot(h, k)] ? 0 : sn_tableau_end(x->rk);
  const sn_real *bar = x->next_bar;
  int n;
  const double *weight = sn_horizon_end(h, k, &n);
  sn_horizon_sum(h, s, weight, n);
  x->flow = sn_dot(bar, s->qvel, nv) + s->time[1] * sn_dot(bar, x->dv, nv) + sn_dot(bar + nv, s->acc + end * nv, nv) +
            sn_dot(bar + 2 * nv, s->adot + end * na, na);
}

// Adds the outputs inside step k and at its end, time `end`, to the bars. *out: those behind it have been added.
static void outputs_vjp(SnHorizon *h, const SnHorizonInput *in, const SnHorizonBars *bars, int k, sn_real end,
                        int *out) {
  SnHorizonScratch *x = h->scratch;
  const SnKeptStep s = sn_horizon_kept(h, k);
  const size_t ny = 2 * (size_t)h->model.nv + (size_t)h->model.na;
  const bool watch = sn_horizon_watches(h);
  const int slot = sn_horizon_slot(h, k);
  bool given = k + 1 == h->accepted || x->segment[slot + 1] != x->segment[slot];
  for (; *out > 0 && in->out_time[*out - 1] == end; --*out) {
    sn_horizon_add_output(h, bars, *out - 1, x->next_bar);
    given = true;
  }
  if (given && watch) end_flow(h, &s, k);
  for (; *out > 0 && in->out_time[*out - 1] > s.time[0]; --*out) {
    memset(x->state_bar, 0, sizeof *x->state_bar * ny);
    memset(x->xi_bar, 0, sizeof *x->xi_bar * (size_t)h->model.nv);
    sn_horizon_add_output(h, bars, *out - 1, x->state_bar);
    if (!any(x->state_bar, (int)ny)) continue;
    const double theta = (double)((in->out_time[*out - 1] - s.time[0]) / s.time[1]);
    if (watch) x->flow += output_flow(h, &s, k, theta);
    state_vjp(h, &s, x->weight, sn_horizon_dense(h, k, theta, x->weight), true, x->state_bar);
  }
}

// Step k: next_bar, of its end, becomes that of its start. *out: outputs behind it have been added; goes on to those in
// it.
static bool step_vjp(SnHorizon *h, const SnHorizonInput *in, const SnCfd *cfd, const SnHorizonBars *bars, int k,
                     sn_real end, int *out) {
  const SnModel *m = &h->model;
  SnHorizonScratch *x = h->scratch;
  const SnKeptStep s = sn_horizon_kept(h, k);
  const size_t ns = (size_t)x->rk->stages + 1, nv = (size_t)m->nv, na = (size_t)m->na;
  memset(x->start_bar, 0, sizeof *x->start_bar * (2 * nv + na));
  memset(x->rate_bar, 0, sizeof *x->rate_bar * ns * nv);
  memset(x->acc_bar, 0, sizeof *x->acc_bar * ns * nv);
  memset(x->adot_bar, 0, sizeof *x->adot_bar * ns * na);
  outputs_vjp(h, in, bars, k, end, out);
  const int slot = sn_horizon_slot(h, k);
  if (x->crossing[slot] && k + 1 < h->accepted && !sn_horizon_jump_vjp(h, in, bars, k)) return false;
  if (cfd) *h->world.cfd = *cfd;  // behind the jump, whose rows are those of the run
  memset(x->xi_bar, 0, sizeof *x->xi_bar * nv);
  int n;
  const double *weight = sn_horizon_end(h, k, &n);
  state_vjp(h, &s, weight, n, true, x->next_bar);
  for (int j = x->crossing[slot] ? 0 : sn_tableau_end(x->rk); j >= 0; --j)
    if (!stage_vjp(h, in, &s, x->segment[slot], j, bars)) return false;
  memcpy(x->next_bar, x->start_bar, sizeof *x->next_bar * (2 * nv + na));
  return true;
}

SnCode sn_horizon_vjp(SnHorizon *h, const SnHorizonInput *in, const SnCfd *cfd, const SnHorizonBars *bars,
                      SnError *err) {
  SnHorizonScratch *x = h->scratch;
  const SnModel *m = &h->model;
  const int nv = m->nv, na = m->na;
  if (h->settings.keep == 0) return sn_fail(err, SN_ERR_STATE, "horizon: keep is 0: no step is kept for the way back");
  if (!x->done) return sn_fail(err, SN_ERR_STATE, "horizon: there is no run that is done");
  const SnCfd own = *h->world.cfd;
  if (in->nknot == 0) memcpy(h->world.ctrl, x->ctrl, sizeof *x->ctrl * (size_t)m->nu);
  memset(x->next_bar, 0, sizeof *x->next_bar * (size_t)(2 * nv + na));
  if (bars->knot) memset(bars->knot, 0, sizeof *bars->knot * (size_t)(sn_maxi(in->nknot, 1) * m->nu));
  if (bars->mocap) memset(bars->mocap, 0, sizeof *bars->mocap * 6 * (size_t)m->nmocap);
  x->adjoint.host->model = bars->model;
  sn_real end = h->reached;
  int out = in->nout;
  bool good = true, stopped = false;
  for (int k = h->accepted - 1; k >= 0 && good; --k) {
    if ((stopped = sn_horizon_stops(h))) break;
    *h->world.cfd = own;
    good = sn_horizon_at_hand(h, in, k) && step_vjp(h, in, cfd, bars, k, end, &out);
    end = sn_horizon_kept(h, k).time[0];
  }
  for (; out > 0; --out) sn_horizon_add_output(h, bars, out - 1, x->next_bar);
  x->adjoint.host->model = NULL;
  *h->world.cfd = own;
  if (stopped) return sn_horizon_stopped(err);
  if (!good) return sn_fail(err, SN_ERR_STATE, "horizon: a stage of the way back is not finite");
  if (bars->qpos) memcpy(bars->qpos, x->next_bar, sizeof *bars->qpos * (size_t)nv);
  if (bars->qvel) memcpy(bars->qvel, x->next_bar + nv, sizeof *bars->qvel * (size_t)nv);
  if (bars->act) memcpy(bars->act, x->next_bar + 2 * nv, sizeof *bars->act * (size_t)na);
  return SN_OK;
}
