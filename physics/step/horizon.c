// The run: horizon.h says what it computes. Host only.
//
// A step begins at the state that is kept of it. Its stages are moved from there by weighted sums of the stages before
// (rates of the coordinates about the start, accelerations, rates of activations). All methods are run as if their last
// stage stood at the end of the step: where a method has none there, one more is evaluated for interpolated outputs and
// serves as the first stage of the next step. Where controls jump, the next step's first stage is evaluated anew.
#include "physics/step/horizon.h"

#include <stdlib.h>

#include "physics/actuator/actuator.h"
#include "physics/constraint/constraint.h"
#include "physics/step/horizon_private.h"
#include "physics/step/integrate_private.h"
#include "physics/step/step.h"

enum { MOST_TRIES = 6 };                   // trials of a step that are broken off at jumps, and at kinks
enum { MOST_KINKS = 3, MOST_JUMPS = 32 };  // steps across events one after the other, behind which these are ignored
// A body that chatters on a surface meets events without end. Each costs so many of the steps that lie between them;
// where the credit is used up, events are ignored until as many steps have been taken as it was worth.
enum { COST_OF_EVENT = 3, WHOLE_CREDIT = 128 };

SnHorizonSettings sn_horizon_defaults(void) {
  return (SnHorizonSettings){.method = SN_RK_TSIT5,
                             .rtol = SN_R(1e-5),
                             .atol = SN_R(1e-5),
                             .p = SN_R(0.2),
                             .i = SN_R(0.4),
                             .safety = SN_R(0.9),
                             .shrink = SN_R(0.2),
                             .grow = SN_R(10.0),
                             .max_steps = 100000,
                             .events = true};
}

const char *sn_horizon_status_text(SnHorizonStatus status) {
  switch (status) {
    case SN_HORIZON_DONE:
      return "done";
    case SN_HORIZON_STEPS:
      return "the steps that are allowed (max_steps) do not suffice";
    case SN_HORIZON_SMALLEST:
      return "the tolerance asks for a step below the smallest one (smallest_step)";
    case SN_HORIZON_BAD:
      return "the state is not finite, or beyond what is allowed, with the smallest step, too";
    case SN_HORIZON_KEEP:
      return "more steps than can be kept for the way back (keep)";
    default:
      return "unknown status";
  }
}

// ---- memory ----

static size_t real_bytes(size_t n) { return (n * sizeof(sn_real) + 63) / 64 * 64; }

// Points *to at n numbers at *at behind base, or, when base is NULL, only counts.
static void take(sn_real **to, unsigned char *base, size_t *at, size_t n) {
  if (base) *to = (sn_real *)(void *)(base + *at);
  *at += real_bytes(n);
}

// Numbers of a kept step.
static size_t step_numbers(const SnModel *m, const SnTableau *rk) {
  const size_t nq = (size_t)m->nq, nv = (size_t)m->nv, na = (size_t)m->na, ns = (size_t)rk->stages + 1;
  return 2 + nq + nv + na + ns * (2 * nv + na);
}

size_t sn_horizon_step_bytes(const SnModel *m, int method) {
  return step_numbers(m, sn_tableau(method)) * sizeof(sn_real) + 2 * sizeof(int);
}

// Points all that a run has into memory, or only counts; returns the bytes.
static size_t place(SnHorizon *h, SnHorizonScratch *x, unsigned char *base) {
  const SnModel *m = &h->model;
  const size_t nq = (size_t)m->nq, nv = (size_t)m->nv, na = (size_t)m->na, ny = 2 * nv + na;
  const size_t ns = (size_t)x->rk->stages + 1, nslot = (size_t)sn_horizon_slots(&h->settings);
  const size_t npoint = (size_t)h->settings.checkpoints, nstep = npoint * (size_t)h->settings.keep;
  size_t at = 0;
  if (base) sn_world_init(m, &h->world, base);
  at += (sn_world_size(m) + 63) / 64 * 64;
  if (h->settings.keep > 0) {
    if (base) sn_adjoint_init(m, &x->adjoint, base + at);
    at += (sn_adjoint_size(m) + 63) / 64 * 64;
  }
  x->stride = step_numbers(m, x->rk);
  sn_real **const part[] = {&x->record, &x->xi,       &x->dv,       &x->dact,      &x->quat_error,
                            &x->moved,  &x->ctrl,     &x->next_bar, &x->start_bar, &x->state_bar,
                            &x->xi_bar, &x->rate_bar, &x->acc_bar,  &x->adot_bar};
  const size_t size[] = {nslot * x->stride, nv,      nv,     na, nq, nv, (size_t)m->nu, ny, ny, ny, nv,
                         ns * nv,           ns * nv, ns * na};
  for (size_t k = 0; k < sizeof part / sizeof *part; ++k) take(part[k], base, &at, size[k]);
  if (base) x->weight = (double *)(void *)(base + at);
  at += ns * sizeof(double);
  if (h->settings.keep > 0) {
    take(&x->back, base, &at, ns * ny);
    take(&x->back_input, base, &at, ns * ((size_t)m->nu + 6 * (size_t)m->nmocap));
  }
  take(&x->checkpoint, base, &at, npoint * sn_horizon_checkpoint_numbers(m));
  take(&x->begin, base, &at, npoint > 0 ? nstep + 1 : 0);
  SnEventRows *const rows[] = {&x->last_start, &x->start, &x->past, &x->now};
  for (int k = 0; k < 4; ++k) {
    take(&rows[k]->jar, base, &at, (size_t)m->nefcmax);
    if (base) rows[k]->row = (SnEventRow *)(void *)(base + at);
    at += ((size_t)m->nefcmax * sizeof(SnEventRow) + 63) / 64 * 64;
    if (base) rows[k]->state = (int *)(void *)(base + at);
    at += ((size_t)m->nefcmax * sizeof(int) + 63) / 64 * 64;
  }
  if (base) x->segment = (int *)(void *)(base + at);
  if (base) x->crossing = x->segment + nslot;
  if (base) x->checkpoint_knot = x->crossing + nslot;
  at += (2 * nslot + npoint) * sizeof(int);
  if (base) x->cross = base + at;
  return (at + nstep + 63) / 64 * 64;
}

// What is in a slot.
static SnKeptStep kept_in(const SnHorizon *h, int slot) {
  const SnModel *m = &h->model;
  const SnHorizonScratch *x = h->scratch;
  const int ns = x->rk->stages + 1;
  sn_real *at = x->record + (size_t)slot * x->stride;
  SnKeptStep s;
  s.time = at;
  s.qpos = s.time + 2;
  s.qvel = s.qpos + m->nq;
  s.act = s.qvel + m->nv;
  s.rate = s.act + m->na;
  s.acc = s.rate + ns * m->nv;
  s.adot = s.acc + ns * m->nv;
  return s;
}

SnKeptStep sn_horizon_kept(const SnHorizon *h, int k) { return kept_in(h, sn_horizon_slot(h, k)); }

void sn_horizon_step(const SnHorizon *h, int k, sn_real time[2], const sn_real **qpos, const sn_real **qvel,
                     const sn_real **act) {
  const SnHorizonScratch *x = h->scratch;
  const int slot = h->settings.keep > 0 ? sn_horizon_slot(h, k) : 0;
  const bool held = slot >= 0 && slot < sn_maxi(h->settings.keep, 1);
  const SnKeptStep s = kept_in(h, held ? slot : 0);
  time[0] = held ? s.time[0] : x->begin[k];
  time[1] = held ? s.time[1] : x->begin[k + 1] - x->begin[k];
  if (qpos) *qpos = held ? s.qpos : NULL;
  if (qvel) *qvel = held ? s.qvel : NULL;
  if (act) *act = held ? s.act : NULL;
}

static SnCode bad(SnError *err, const char *name, double value, const char *rule) {
  return sn_fail(err, SN_ERR_ARGUMENT, "horizon: %s is %.9g: %s", name, value, rule);
}

static SnCode check_settings(const SnHorizonSettings *s, SnError *err) {
  const SnTableau *rk = sn_tableau(s->method);
  if (!rk) return bad(err, "method", s->method, "must be one of SnRkMethod, 0 to 8");
  if (!(s->rtol > 0 && s->rtol <= 1)) return bad(err, "rtol", (double)s->rtol, "must be above 0 and at most 1");
  if (!(s->atol > 0 && s->atol <= 1)) return bad(err, "atol", (double)s->atol, "must be above 0 and at most 1");
  const struct {
    const char *name;
    sn_real value;
  } time[] = {{"fixed_step", s->fixed_step},
              {"first_step", s->first_step},
              {"smallest_step", s->smallest_step},
              {"largest_step", s->largest_step}};
  for (size_t k = 0; k < sizeof time / sizeof *time; ++k)
    if (!(time[k].value >= 0 && time[k].value <= SN_MAXVAL))
      return bad(err, time[k].name, (double)time[k].value, "must be finite and at least 0 s");
  if (!rk->error && s->fixed_step == 0)
    return sn_fail(err, SN_ERR_ARGUMENT, "horizon: method %s has no error estimate: fixed_step must be above 0 s",
                   rk->name);
  const sn_real gains = sn_abs(s->p) + sn_abs(s->i) + sn_abs(s->d);
  if (!(gains <= 10)) return bad(err, "|p| + |i| + |d|", (double)gains, "must be at most 10");
  if (!(s->safety > 0 && s->safety <= 1)) return bad(err, "safety", (double)s->safety, "must be above 0 and at most 1");
  if (!(s->shrink > 0 && s->shrink <= s->safety))
    return bad(err, "shrink", (double)s->shrink, "must be above 0 and at most safety");
  if (!(s->grow >= 1 && s->grow <= SN_MAXVAL))
    return bad(err, "grow", (double)s->grow, "must be finite and at least 1");
  if (s->max_steps < 1) return bad(err, "max_steps", s->max_steps, "must be at least 1");
  if (s->keep < 0 || s->keep > 100000000) return bad(err, "keep", s->keep, "must be 0 to 100000000");
  if (s->checkpoints < 0 || (s->keep > 0 && s->checkpoints > 100000000 / s->keep))
    return bad(err, "checkpoints", s->checkpoints, "must be 0 to 100000000 / keep");
  return SN_OK;
}

// Options of the run: none of the integrator's damping, and a solver that is exact where the tolerance asks for it.
static void set_options(SnHorizon *h) {
  SnOption *o = &h->model.opt;
  o->integrator = SN_INT_RK4;
  o->tolerance = sn_min(o->tolerance, SN_R(0.01) * sn_min(h->settings.rtol, h->settings.atol));
  o->iterations = sn_maxi(o->iterations, 100);
  o->ls_iterations = sn_maxi(o->ls_iterations, 50);
}

SnHorizon *sn_horizon_create(const SnModel *m, const SnHorizonSettings *settings, SnError *err) {
  if (check_settings(settings, err) != SN_OK) return NULL;
  SnHorizon *h = calloc(1, sizeof *h);
  SnHorizonScratch *x = calloc(1, sizeof *x);
  if (h) h->scratch = x;
  if (h && x) {
    h->model = *m;
    h->lane = (SnLane){.n = 1, .shared = &x->lane_shared};
    h->settings = *settings;
    x->rk = sn_tableau(settings->method);
    set_options(h);
    const bool fits = sn_world_size(m) < SN_TOO_LARGE && sn_adjoint_size(m) < SN_TOO_LARGE;
    x->memory = fits ? aligned_alloc(64, place(h, x, NULL)) : NULL;
  }
  if (!h || !x || !x->memory) {
    free(x);
    free(h);
    sn_fail(err, SN_ERR_MEMORY, "horizon: no memory for a run that keeps %d steps", settings->keep);
    return NULL;
  }
  place(h, x, x->memory);
  return h;
}

void sn_horizon_free(SnHorizon *h) {
  if (!h) return;
  free(h->scratch->memory);
  free(h->scratch);
  free(h);
}

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
    return bad(err, "duration", (double)in->duration, "must be finite and above 0 s");
  if (in->nknot < 0 || in->nout < 0)
    return bad(err, "nknot or nout", sn_mini(in->nknot, in->nout), "must be at least 0");
  SnCode code = check_times("knot_time", in->knot_time, in->nknot, SN_MAXVAL, err);
  if (code == SN_OK) code = check_times("out_time", in->out_time, in->nout, in->duration, err);
  if (code != SN_OK) return code;
  for (int k = 0; k < in->nknot * h->model.nu; ++k)
    if (sn_is_bad(in->knot[k])) return bad(err, "a control of a knot", (double)in->knot[k], "must be finite");
  return SN_OK;
}

// The next time behind t at which a step ends.
static sn_real next_forced(const SnHorizon *h, const SnHorizonInput *in, const SnProgress *p) {
  sn_real end = in->duration;
  if (p->segment + 1 < in->nknot) end = sn_min(end, in->knot_time[p->segment + 1]);
  if (h->settings.stop_at_outputs && p->out < in->nout) end = sn_min(end, in->out_time[p->out]);
  return end;
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
  const SnKeptStep next = kept_in(h, slot);
  memmove(next.acc, s->acc + end * m->nv, sizeof *s->acc * (size_t)m->nv);
  memmove(next.adot, s->adot + end * m->na, sizeof *s->adot * (size_t)m->na);
  begin_step(h, &next, t1);
  memcpy(next.rate, next.qvel, sizeof *next.rate * (size_t)m->nv);
  x->segment[slot] = p->segment;
  if (euler) memcpy(h->world.qacc_warmstart, next.acc, sizeof *next.acc * (size_t)m->nv);
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

// Takes steps until one is accepted. *t1: its end.
static SnHorizonStatus accept_step(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, SnProgress *p,
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
      p->credit = sn_mini(p->credit + 1, WHOLE_CREDIT);
      p->chatters = p->chatters && p->credit < WHOLE_CREDIT;
      return SN_HORIZON_DONE;
    }
    ++h->rejected;
    p->size = dt * factor;
    if (p->size < least) return good ? SN_HORIZON_SMALLEST : SN_HORIZON_BAD;
  }
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
  *p = (SnProgress){.segment = -1, .credit = WHOLE_CREDIT};
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

static SnHorizonStatus run(SnHorizon *h, const SnHorizonInput *in, const SnHorizonOutput *out) {
  SnProgress p;
  if (!begin_run(h, in, out, &p)) return SN_HORIZON_BAD;
  while (p.t < in->duration) {
    const SnKeptStep s = sn_horizon_kept(h, p.step);
    sn_real t1;
    if (!begin_stage(h, in, &s, &p)) return SN_HORIZON_BAD;
    const SnHorizonStatus status = accept_step(h, in, &s, &p, &t1);
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
  return SN_OK;
}
