// The continuous adjoint of a run, integrated backwards. Host only (horizon.h).
//
// With y' = f(y, u) and lambda(t) the derivative of the result by y(t), in the tangent space at y(t),
//
//   lambda' = - (df/dy)' lambda,     u_bar += (df/du)' lambda dt,
//
// and lambda gains the bar of an output at its time. A rotation moves by its velocity w in its own frame, a small turn
// d of it by d' = dw - w x d. So lambda' has - w x lambda of it beside what accelerations give. At an event lambda_- =
// S' lambda_+, with f_+ . lambda_+ for p of horizon_events.c.
//
// y(t) comes from the interpolants of the kept steps: to go back by y' = f itself is unstable wherever a motion is
// damped. Each kept step takes one step of the method or more, whose error relative to the size of lambda keeps to
// rtol. A stiff contact makes lambda as stiff as the motion.
#include "physics/base/vec.h"
#include "physics/step/horizon_private.h"

enum { MOST_SHORTER = 60 };  // rejected steps in a row

// Where the way back is: step k of the run, the size that is proposed for the next step backwards.
typedef struct Back {
  const SnHorizonInput *in;
  const SnHorizonBars *bars;
  const SnCfd *cfd;  // of rates; NULL: the run's
  SnCfd own;         // the run's
  int k;
  sn_real size;
} Back;

// to (nv) += w x lambda of the rotations.
static void add_turns(const SnModel *m, const sn_real *qvel, const sn_real *lambda, sn_real *to) {
  for (int j = 0; j < m->njnt; ++j) {
    if (m->jnt_type[j] != SN_JNT_FREE && m->jnt_type[j] != SN_JNT_BALL) continue;
    const int v = m->jnt_dofadr[j] + (m->jnt_type[j] == SN_JNT_FREE ? 3 : 0);
    sn_real turn[3];
    sn_cross(turn, qvel + v, lambda + v);
    sn_addto3(to + v, turn);
  }
}

// Evaluates (df/dy)' lambda and (df/du)' lambda at time t, into place j. Returns false where they are not to be had.
static bool rate(SnHorizon *h, const Back *b, sn_real t, const sn_real *lambda, int j) {
  const SnModel *m = &h->model;
  SnHorizonScratch *x = h->scratch;
  const SnKeptStep s = sn_horizon_kept(h, b->k);
  const SnAdjoint *a = &x->adjoint;
  const int nv = m->nv, na = m->na, segment = x->segment[sn_horizon_slot(h, b->k)];
  sn_real *to = x->back + j * (2 * nv + na), *input = x->back_input + j * (m->nu + 6 * m->nmocap);
  sn_horizon_sum(h, &s, x->weight, sn_horizon_dense(h, b->k, (double)((t - s.time[0]) / s.time[1]), x->weight));
  sn_horizon_move(h, &s, s.time[1], true);
  memcpy(h->world.qacc_warmstart, s.acc, sizeof *s.acc * (size_t)nv);
  *h->world.cfd = b->cfd ? *b->cfd : b->own;
  if (!sn_horizon_evaluate_at(h, b->in, segment, t)) return false;
  sn_horizon_dynamics_vjp(h, lambda + nv, lambda + 2 * nv);
  memcpy(to, a->qpos_bar, sizeof *to * (size_t)nv);
  add_turns(m, h->world.qvel, lambda, to);
  for (int i = 0; i < nv; ++i) to[nv + i] = a->qvel_bar[i] + lambda[i];
  memcpy(to + 2 * nv, a->act_bar, sizeof *to * (size_t)na);
  memcpy(input, a->ctrl_bar, sizeof *input * (size_t)m->nu);
  memcpy(input + m->nu, a->mocap_bar, sizeof *input * 6 * (size_t)m->nmocap);
  return true;
}

// to = next_bar + dt times the weighted sum of the first n rates.
static void advance(const SnHorizon *h, const double *weight, int n, sn_real dt, sn_real *to) {
  const SnHorizonScratch *x = h->scratch;
  const int ny = 2 * h->model.nv + h->model.na;
  for (int i = 0; i < ny; ++i) {
    sn_real sum = 0;
    for (int j = 0; j < n; ++j) sum += (sn_real)weight[j] * x->back[j * ny + i];
    to[i] = x->next_bar[i] + dt * sum;
  }
}

// The error of a step of size dt in units of what is allowed.
static sn_real error_of(const SnHorizon *h, sn_real dt) {
  const SnHorizonScratch *x = h->scratch;
  const int ny = 2 * h->model.nv + h->model.na;
  double error = 0, size = 0;
  for (int i = 0; i < ny; ++i) {
    sn_real sum = 0;
    for (int j = 0; j < x->rk->stages; ++j) sum += (sn_real)x->rk->error[j] * x->back[j * ny + i];
    error += (double)(dt * sum) * (double)(dt * sum);
    size += (double)x->next_bar[i] * (double)x->next_bar[i];
  }
  return size > 0 ? (sn_real)sqrt(error / size) / h->settings.rtol : 0;
}

// Adds what the inputs get in an accepted step of size dt back from time t.
static void add_inputs(SnHorizon *h, const Back *b, sn_real t, sn_real dt) {
  const SnModel *m = &h->model;
  const SnHorizonScratch *x = h->scratch;
  const int nu = m->nu, segment = x->segment[sn_horizon_slot(h, b->k)];
  for (int j = 0; j < x->rk->stages; ++j) {
    const sn_real *input = x->back_input + j * (nu + 6 * m->nmocap), w = dt * (sn_real)x->rk->b[j];
    sn_real part = 0;
    const int k = b->in->nknot > 0 ? sn_horizon_controls(h, b->in, segment, t - (sn_real)x->rk->c[j] * dt, &part) : 0;
    for (int i = 0; b->bars->knot && i < nu; ++i) {
      b->bars->knot[k * nu + i] += w * (1 - part) * input[i];
      if (part > 0) b->bars->knot[(k + 1) * nu + i] += w * part * input[i];
    }
    for (int i = 0; b->bars->mocap && i < 6 * m->nmocap; ++i) b->bars->mocap[i] += w * input[nu + i];
  }
}

// Brings lambda from time t back to `to`, inside step k. Returns false where a rate is not to be had, or no step is
// short enough.
static bool go(SnHorizon *h, Back *b, sn_real t, sn_real to) {
  SnHorizonScratch *x = h->scratch;
  const SnTableau *rk = x->rk;
  int shorter = 0;
  while (t > to) {
    const sn_real dt = sn_min(b->size, t - to);
    for (int j = 0; j < rk->stages; ++j) {
      advance(h, rk->a[j], j, dt, x->state_bar);
      if (!rate(h, b, t - (sn_real)rk->c[j] * dt, x->state_bar, j)) return false;
    }
    const sn_real error = error_of(h, dt);
    const sn_real factor = SN_R(0.9) * sn_pow(1 / sn_max(error, SN_R(1e-10)), 1 / (sn_real)rk->order);
    if (!(error <= 1)) {
      if (++shorter > MOST_SHORTER) return false;
      b->size = dt * sn_clip(factor, SN_R(0.2), SN_R(0.9));
      continue;
    }
    shorter = 0;
    add_inputs(h, b, t, dt);
    advance(h, rk->b, rk->stages, dt, x->next_bar);
    b->size = sn_max(dt < b->size ? b->size : 0, dt * sn_clip(factor, 1, 10));
    t = dt < t - to ? t - dt : to;
  }
  return true;
}

// Step k, which leads across an event: the jump, and Euler's step.
static bool cross(SnHorizon *h, const Back *b) {
  static const double one = 1;
  SnHorizonScratch *x = h->scratch;
  const SnKeptStep s = sn_horizon_kept(h, b->k);
  const int nv = h->model.nv, na = h->model.na;
  if (b->k + 1 < h->accepted) {
    const SnKeptStep after = sn_horizon_kept(h, b->k + 1);
    x->flow = sn_dot(x->next_bar, after.qvel, nv) + sn_dot(x->next_bar + nv, after.acc, nv) +
              sn_dot(x->next_bar + 2 * nv, after.adot, na);
    *h->world.cfd = b->own;  // rows begin and end where they did in the run
    if (!sn_horizon_jump_vjp(h, b->in, b->bars, b->k)) return false;
  }
  memcpy(x->state_bar, x->next_bar, sizeof *x->next_bar * (2 * (size_t)nv + (size_t)na));
  if (!rate(h, b, s.time[0], x->state_bar, 0)) return false;
  advance(h, &one, 1, s.time[1], x->next_bar);
  return true;
}

// Step k from time `end` back to its start. *out: outputs behind it have been added.
static bool step_back(SnHorizon *h, Back *b, sn_real end, int *out) {
  SnHorizonScratch *x = h->scratch;
  const sn_real start = sn_horizon_kept(h, b->k).time[0], *time = b->in->out_time;
  const bool crossing = x->crossing[sn_horizon_slot(h, b->k)];
  for (sn_real t = end; t > start;) {
    for (; *out > 0 && time[*out - 1] >= t; --*out) sn_horizon_add_output(h, b->bars, *out - 1, x->next_bar);
    const sn_real to = *out > 0 && !crossing ? sn_max(start, time[*out - 1]) : start;
    if (!(crossing ? cross(h, b) : go(h, b, t, to))) return false;
    t = to;
  }
  return true;
}

static SnCode check(const SnHorizon *h, const SnHorizonBars *bars, SnError *err) {
  const SnTableau *rk = h->scratch->rk;
  if (h->settings.keep == 0 || !h->scratch->done)
    return sn_fail(err, SN_ERR_STATE, "horizon: there is no run that is done and was kept");
  if (bars->model) return sn_fail(err, SN_ERR_ARGUMENT, "horizon: the backsolve has no derivatives by the model");
  if (!rk->error || !(rk->ends || rk->dense || sn_horizon_watches(h)))
    return sn_fail(err, SN_ERR_ARGUMENT,
                   "horizon: the backsolve cannot go by steps of method %s: it needs an estimate of the error, and an "
                   "interpolant or steps that end at events",
                   rk->name);
  return SN_OK;
}

SnCode sn_horizon_backsolve(SnHorizon *h, const SnHorizonInput *in, const SnCfd *cfd, const SnHorizonBars *bars,
                            SnError *err) {
  SnHorizonScratch *x = h->scratch;
  const SnModel *m = &h->model;
  const size_t nv = (size_t)m->nv, na = (size_t)m->na;
  const SnCode code = check(h, bars, err);
  if (code != SN_OK) return code;
  if (in->nknot == 0) memcpy(h->world.ctrl, x->ctrl, sizeof *x->ctrl * (size_t)m->nu);
  memset(x->next_bar, 0, sizeof *x->next_bar * (2 * nv + na));
  if (bars->knot) memset(bars->knot, 0, sizeof *bars->knot * (size_t)sn_maxi(in->nknot, 1) * (size_t)m->nu);
  if (bars->mocap) memset(bars->mocap, 0, sizeof *bars->mocap * 6 * (size_t)m->nmocap);
  Back b = {.in = in, .bars = bars, .cfd = cfd, .own = *h->world.cfd, .size = h->reached};
  sn_real end = h->reached;
  int out = in->nout;
  bool good = true, stopped = false;
  for (b.k = h->accepted - 1; b.k >= 0 && good; --b.k) {
    if ((stopped = sn_horizon_stops(h))) break;
    *h->world.cfd = b.own;
    good = sn_horizon_at_hand(h, in, b.k) && step_back(h, &b, end, &out);
    end = sn_horizon_kept(h, b.k).time[0];
  }
  *h->world.cfd = b.own;
  if (stopped) return sn_horizon_stopped(err);
  if (!good) return sn_fail(err, SN_ERR_STATE, "horizon: the adjoint is not finite on the way back");
  for (; out > 0; --out) sn_horizon_add_output(h, bars, out - 1, x->next_bar);
  if (bars->qpos) memcpy(bars->qpos, x->next_bar, sizeof *bars->qpos * nv);
  if (bars->qvel) memcpy(bars->qvel, x->next_bar + nv, sizeof *bars->qvel * nv);
  if (bars->act) memcpy(bars->act, x->next_bar + 2 * nv, sizeof *bars->act * na);
  return SN_OK;
}
