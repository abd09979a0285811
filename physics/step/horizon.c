// The stages, and the run over them: horizon.h says what it computes. Host only.
//
// A step begins at the state that is kept of it. Its stages are moved from there by weighted sums of the stages before
// (rates of the coordinates about the start, accelerations, rates of activations). All methods are run as if their last
// stage stood at the end of the step: where a method has none there, one more is evaluated for interpolated outputs and
// serves as the first stage of the next step. Where controls jump, the next step's first stage is evaluated anew.
#include "physics/step/horizon.h"

#include "physics/actuator/actuator.h"
#include "physics/constraint/constraint.h"
#include "physics/step/horizon_private.h"
#include "physics/step/integrate_private.h"
#include "physics/step/step.h"

// ---- stages ----

void sn_horizon_sum(SnHorizon *h, const SnKeptStep *s, const double *weight, int n) {
  SnHorizonScratch *x = h->scratch;
  const int nv = h->model.nv, na = h->model.na;
  memset(x->xi, 0, sizeof *x->xi * (size_t)nv);
  memset(x->dv, 0, sizeof *x->dv * (size_t)nv);
  memset(x->dact, 0, sizeof *x->dact * (size_t)na);
  for (int j = 0; j < n; ++j) {
    const sn_real w = (sn_real)weight[j];
    if (w == 0) continue;
    for (int i = 0; i < nv; ++i) {
      x->xi[i] += w * s->rate[j * nv + i];
      x->dv[i] += w * s->acc[j * nv + i];
    }
    for (int i = 0; i < na; ++i) x->dact[i] += w * s->adot[j * na + i];
  }
}

void sn_horizon_move(SnHorizon *h, const SnKeptStep *s, sn_real dt, bool limit) {
  const SnModel *m = &h->model;
  const SnHorizonScratch *x = h->scratch;
  SnWorld *w = &h->world;
  memcpy(w->qpos, s->qpos, sizeof *w->qpos * (size_t)m->nq);
  sn_integrate_pos(m, &h->lane, w->qpos, x->xi, dt);
  for (int i = 0; i < m->nv; ++i) w->qvel[i] = s->qvel[i] + dt * x->dv[i];
  for (int i = 0; i < m->na; ++i) w->act[i] = s->act[i] + dt * x->dact[i];
  if (!limit || m->opt.disableflags & SN_DSBL_ACTUATION) return;
  for (int i = 0; i < m->nactuator; ++i) {
    const sn_real *range = m->actuator_actrange + 2 * i;
    const int adr = m->actuator_actadr[i];
    if (!m->actuator_actlimited[i]) continue;
    for (int k = adr; k >= 0 && k < adr + m->actuator_actnum[i]; ++k)
      w->act[k] = sn_clip(w->act[k], range[0], range[1]);
  }
}

int sn_horizon_controls(const SnHorizon *h, const SnHorizonInput *in, int segment, sn_real t, sn_real *part) {
  *part = 0;
  if (!h->settings.linear || segment < 0 || segment + 1 >= in->nknot) return sn_maxi(segment, 0);
  const sn_real *at = in->knot_time + segment;
  *part = sn_clip((t - at[0]) / (at[1] - at[0]), 0, 1);
  return segment;
}

// The world's controls at time t, `segment` the last knot at or before the step's start; -1: before the first.
static void set_controls(SnHorizon *h, const SnHorizonInput *in, int segment, sn_real t) {
  const int nu = h->model.nu;
  sn_real part;
  if (in->nknot == 0) return;
  const int k = sn_horizon_controls(h, in, segment, t, &part);
  for (int i = 0; i < nu; ++i) {
    const sn_real *u = in->knot + k * nu + i;
    h->world.ctrl[i] = part > 0 ? (1 - part) * u[0] + part * u[nu] : u[0];
  }
}

static bool all_good(const sn_real *x, int n) {
  for (int i = 0; i < n; ++i)
    if (sn_is_bad(x[i])) return false;
  return true;
}

bool sn_horizon_evaluate_at(SnHorizon *h, const SnHorizonInput *in, int segment, sn_real t) {
  const SnModel *m = &h->model;
  SnWorld *w = &h->world;
  if (!all_good(w->qpos, m->nq) || !all_good(w->qvel, m->nv) || !all_good(w->act, m->na)) return false;
  set_controls(h, in, segment, t);
  sn_forward(m, w, &h->lane);
  if (!all_good(w->qacc, m->nv)) return false;
  sn_solve_finish(m, w, &h->lane);
  ++h->evaluations;
  return all_good(w->qacc, m->nv);
}

bool sn_horizon_evaluate(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, int segment, int stage,
                         sn_real dt) {
  const SnTableau *rk = h->scratch->rk;
  const sn_real reach = stage < rk->stages ? (sn_real)rk->c[stage] : 1;
  return sn_horizon_evaluate_at(h, in, segment, s->time[0] + reach * dt);
}

bool sn_horizon_forward(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, int segment, int stage,
                        sn_real dt) {
  const SnModel *m = &h->model;
  SnHorizonScratch *x = h->scratch;
  SnWorld *w = &h->world;
  if (!sn_horizon_evaluate(h, in, s, segment, stage, dt)) return false;
  if (stage == 0)
    memcpy(s->rate, w->qvel, sizeof *w->qvel * (size_t)m->nv);
  else
    sn_stage_rate(m, &h->lane, s->rate + stage * m->nv, w->qvel, x->xi, dt);
  memcpy(s->acc + stage * m->nv, w->qacc, sizeof *w->qacc * (size_t)m->nv);
  for (int i = 0; i < m->nactuator; ++i) {
    const int adr = m->actuator_actadr[i];
    const bool off = sn_actuator_disabled(m, i) || m->opt.disableflags & SN_DSBL_ACTUATION;
    for (int k = adr; k >= 0 && k < adr + m->actuator_actnum[i]; ++k)
      s->adot[stage * m->na + k] = off ? 0 : w->act_dot[k];
  }
  return all_good(s->rate + stage * m->nv, m->nv);
}

const double *sn_horizon_end(const SnHorizon *h, int k, int *n) {
  static const double euler = 1;
  const SnTableau *rk = h->scratch->rk;
  const bool crossing = h->scratch->crossing[sn_horizon_slot(h, k)];
  *n = crossing ? 1 : rk->stages;
  return crossing ? &euler : rk->b;
}

int sn_horizon_dense(const SnHorizon *h, int k, double theta, double *weight) {
  const SnTableau *rk = h->scratch->rk;
  weight[0] = theta;
  if (h->scratch->crossing[sn_horizon_slot(h, k)]) return 1;
  sn_tableau_dense(rk, theta, weight);
  return sn_tableau_end(rk) + 1;
}

// ---- the run ----

static SnCode check_times(const char *name, const sn_real *time, int n, sn_real most, SnError *err) {
  for (int k = 0; k < n; ++k) {
    if (!(time[k] >= 0 && time[k] <= most))
      return sn_fail(err, SN_ERR_ARGUMENT, "horizon: %s[%d] is %.6g: must be 0 to %.6g s", name, k, (double)time[k],
                     (double)most);
    if (k > 0 && !(time[k] > time[k - 1]))
      return sn_fail(err, SN_ERR_ARGUMENT, "horizon: %s[%d] is %.6g: must be behind the one before it, %.6g s", name, k,
                     (double)time[k], (double)time[k - 1]);
  }
  return SN_OK;
}

static SnCode check_input(const SnHorizon *h, const SnHorizonInput *in, SnError *err) {
  if (!(in->duration > 0 && in->duration <= SN_MAXVAL))
    return sn_horizon_bad(err, "duration", (double)in->duration, "must be finite and above 0 s");
  if (in->nknot < 0 || in->nout < 0)
    return sn_horizon_bad(err, "nknot or nout", sn_mini(in->nknot, in->nout), "must be at least 0");
  SnCode code = check_times("knot_time", in->knot_time, in->nknot, SN_MAXVAL, err);
  if (code == SN_OK) code = check_times("out_time", in->out_time, in->nout, in->duration, err);
  if (code != SN_OK) return code;
  for (int k = 0; k < in->nknot * h->model.nu; ++k)
    if (sn_is_bad(in->knot[k]))
      return sn_horizon_bad(err, "a control of a knot", (double)in->knot[k], "must be finite");
  return SN_OK;
}

static void write_output(const SnHorizon *h, const SnHorizonOutput *out, int k) {
  const SnModel *m = &h->model;
  const SnWorld *w = &h->world;
  if (!out) return;
  if (out->qpos) memcpy(out->qpos + (size_t)k * (size_t)m->nq, w->qpos, sizeof *w->qpos * (size_t)m->nq);
  if (out->qvel) memcpy(out->qvel + (size_t)k * (size_t)m->nv, w->qvel, sizeof *w->qvel * (size_t)m->nv);
  if (out->act) memcpy(out->act + (size_t)k * (size_t)m->na, w->act, sizeof *w->act * (size_t)m->na);
}

// Keeps the world's state as the start of a step.
static void begin_step(const SnHorizon *h, const SnKeptStep *s, sn_real t) {
  const SnModel *m = &h->model;
  const SnWorld *w = &h->world;
  s->time[0] = t;
  memcpy(s->qpos, w->qpos, sizeof *w->qpos * (size_t)m->nq);
  memcpy(s->qvel, w->qvel, sizeof *w->qvel * (size_t)m->nv);
  memcpy(s->act, w->act, sizeof *w->act * (size_t)m->na);
}

bool sn_horizon_move_to_end(SnHorizon *h, const SnKeptStep *s, int step) {
  const SnModel *m = &h->model;
  const SnWorld *w = &h->world;
  int n;
  const double *weight = sn_horizon_end(h, step, &n);
  sn_horizon_sum(h, s, weight, n);
  sn_horizon_move(h, s, s->time[1], true);
  return all_good(w->qpos, m->nq) && all_good(w->qvel, m->nv) && all_good(w->act, m->na);
}

bool sn_horizon_write_outputs(SnHorizon *h, const SnHorizonInput *in, const SnHorizonOutput *out, const SnKeptStep *s,
                              SnProgress *p, sn_real t1) {
  SnHorizonScratch *x = h->scratch;
  const bool inside = p->out < in->nout && in->out_time[p->out] < t1;
  const bool euler = x->crossing[sn_horizon_slot(h, p->step)];
  if (inside && !x->rk->ends && !x->rk->dense && !p->first_known && !euler) {
    if (!sn_horizon_forward(h, in, s, p->segment, x->rk->stages, s->time[1])) return false;
    p->first_known = true;
  }
  for (; p->out < in->nout && in->out_time[p->out] < t1; ++p->out) {
    const double theta = (double)((in->out_time[p->out] - s->time[0]) / s->time[1]);
    sn_horizon_sum(h, s, x->weight, sn_horizon_dense(h, p->step, theta, x->weight));
    sn_horizon_move(h, s, s->time[1], true);
    write_output(h, out, p->out);
  }
  if (inside) sn_horizon_move_to_end(h, s, p->step);
  for (; p->out < in->nout && in->out_time[p->out] == t1; ++p->out) write_output(h, out, p->out);
  return true;
}

void sn_horizon_next_step(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, SnProgress *p, sn_real t1,
                          int slot) {
  const SnModel *m = &h->model;
  const SnHorizonScratch *x = h->scratch;
  const bool euler = x->crossing[sn_horizon_slot(h, p->step)];
  const int end = euler ? 0 : sn_tableau_end(x->rk), before = p->segment;
  // the stage at the end of s is the first one of the next step
  bool known = (x->rk->ends && !euler) || p->first_known;
  ++p->step;
  p->t = t1;
  while (p->segment + 1 < in->nknot && in->knot_time[p->segment + 1] <= t1) ++p->segment;
  if (p->segment != before && before >= 0 && !h->settings.linear) known = false;
  p->first_known = known;
  const SnKeptStep next = sn_horizon_kept_in(h, slot);
  memmove(next.acc, s->acc + end * m->nv, sizeof *s->acc * (size_t)m->nv);
  memmove(next.adot, s->adot + end * m->na, sizeof *s->adot * (size_t)m->na);
  begin_step(h, &next, t1);
  memcpy(next.rate, next.qvel, sizeof *next.rate * (size_t)m->nv);
  x->segment[slot] = p->segment;
  if (euler) memcpy(h->world.qacc_warmstart, next.acc, sizeof *next.acc * (size_t)m->nv);
}

// Begins a run: the first step's start, its first stage, its size.
static bool begin_run(SnHorizon *h, const SnHorizonInput *in, const SnHorizonOutput *out, SnProgress *p) {
  SnHorizonScratch *x = h->scratch;
  x->base = 0;
  const SnKeptStep s = sn_horizon_kept(h, 0);
  h->accepted = h->rejected = h->evaluations = 0;
  h->reached = 0;
  x->done = false;
  x->last = x->before = 1;
  *p = (SnProgress){.segment = -1, .credit = SN_EVENT_CREDIT};
  while (p->segment + 1 < in->nknot && in->knot_time[p->segment + 1] <= 0) ++p->segment;
  x->segment[0] = p->segment;
  memcpy(x->ctrl, h->world.ctrl, sizeof *x->ctrl * (size_t)h->model.nu);
  for (; p->out < in->nout && in->out_time[p->out] <= 0; ++p->out) write_output(h, out, p->out);
  begin_step(h, &s, 0);
  if (!sn_horizon_forward(h, in, &s, p->segment, 0, 0)) return false;
  p->first_known = true;
  sn_horizon_note_rows(h, &x->start, 0);
  x->last_start.nefc = -1;
  p->size = h->settings.fixed_step > 0 ? h->settings.fixed_step : h->settings.first_step;
  if (p->size == 0) p->size = sn_horizon_first(h, in, &s, p->segment);
  return true;
}

// Brings the world back to the start of a step.
static void go_back(const SnHorizon *h, const SnKeptStep *s) {
  const SnModel *m = &h->model;
  const SnWorld *w = &h->world;
  memcpy(w->qpos, s->qpos, sizeof *w->qpos * (size_t)m->nq);
  memcpy(w->qvel, s->qvel, sizeof *w->qvel * (size_t)m->nv);
  memcpy(w->act, s->act, sizeof *w->act * (size_t)m->na);
}

bool sn_horizon_first_stage(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, SnProgress *p) {
  return p->first_known || sn_horizon_forward(h, in, s, p->segment, 0, 0);
}

// Sees to the first stage of step s, to what acts there, and behind an event to the size of the step.
static bool begin_stage(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, SnProgress *p) {
  SnHorizonScratch *x = h->scratch;
  if (!sn_horizon_first_stage(h, in, s, p)) return false;
  sn_horizon_save(h, p->step, p->segment);
  if (!p->first_known) {
    sn_horizon_note_rows(h, &x->start, 0);
    x->last_start.nefc = -1;
  } else if (p->step > 0 && sn_horizon_watches(h)) {  // the last stage of the step before
    const SnEventRows rows = x->last_start;
    x->last_start = x->start;
    x->last_start.time = -x->now.time;
    x->start = x->now;
    x->start.time = 0;
    x->now = rows;
  }
  if (p->restart) p->size = sn_min(p->size, sn_horizon_first(h, in, s, p->segment));
  p->restart = p->first_known = false;
  return true;
}

// The steps that the way back can go through.
static int most_kept(const SnHorizonSettings *s) { return s->keep * sn_maxi(s->checkpoints, 1); }

// The slot of the step behind step k, of which the slots then begin where they are full.
static int next_slot(const SnHorizon *h, int k) {
  const int keep = sn_maxi(h->settings.keep, 1), slot = sn_horizon_slot(h, k) + 1;
  return slot < keep ? slot : 0;
}

SnCode sn_horizon_stopped(SnError *err) { return sn_fail(err, SN_ERR_TIMEOUT, "horizon: the call was stopped"); }

// Returns SN_HORIZON_STATUSES where it was stopped.
static SnHorizonStatus run(SnHorizon *h, const SnHorizonInput *in, const SnHorizonOutput *out) {
  SnProgress p;
  if (!begin_run(h, in, out, &p)) return SN_HORIZON_BAD;
  while (p.t < in->duration) {
    const SnKeptStep s = sn_horizon_kept(h, p.step);
    sn_real t1;
    if (sn_horizon_stops(h)) return SN_HORIZON_STATUSES;
    if (!begin_stage(h, in, &s, &p)) return SN_HORIZON_BAD;
    const SnHorizonStatus status = sn_horizon_accept(h, in, &s, &p, &t1);
    if (status != SN_HORIZON_DONE) {
      go_back(h, &s);
      return status;
    }
    if (!sn_horizon_write_outputs(h, in, out, &s, &p, t1)) return SN_HORIZON_BAD;
    sn_horizon_note_step(h, p.step, t1);
    ++h->accepted;
    h->reached = t1;
    if (t1 >= in->duration) break;
    if (h->settings.keep > 0 && h->accepted >= most_kept(&h->settings)) return SN_HORIZON_KEEP;
    const int slot = next_slot(h, p.step);
    sn_horizon_next_step(h, in, &s, &p, t1, slot);
    h->scratch->base = p.step - slot;
  }
  return SN_HORIZON_DONE;
}

SnCode sn_horizon_run(SnHorizon *h, const SnHorizonInput *in, const SnHorizonOutput *out, SnHorizonStatus *status,
                      SnError *err) {
  const SnCode code = check_input(h, in, err);
  if (code != SN_OK) return code;
  const sn_real begin = h->world.time[0];
  *status = run(h, in, out);
  h->world.time[0] = begin + h->reached;
  h->scratch->done = *status == SN_HORIZON_DONE;
  return *status == SN_HORIZON_STATUSES ? sn_horizon_stopped(err) : SN_OK;
}
