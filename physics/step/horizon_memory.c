// What a run needs before it begins: its settings, its memory, and where in that a step is kept. Host only (horizon.h).
#include <stdlib.h>

#include "physics/step/horizon.h"
#include "physics/step/horizon_private.h"

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

SnKeptStep sn_horizon_kept_in(const SnHorizon *h, int slot) {
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

SnKeptStep sn_horizon_kept(const SnHorizon *h, int k) { return sn_horizon_kept_in(h, sn_horizon_slot(h, k)); }

void sn_horizon_step(const SnHorizon *h, int k, sn_real time[2], const sn_real **qpos, const sn_real **qvel,
                     const sn_real **act) {
  const SnHorizonScratch *x = h->scratch;
  const int slot = h->settings.keep > 0 ? sn_horizon_slot(h, k) : 0;
  const bool held = slot >= 0 && slot < sn_maxi(h->settings.keep, 1);
  const SnKeptStep s = sn_horizon_kept_in(h, held ? slot : 0);
  time[0] = held ? s.time[0] : x->begin[k];
  time[1] = held ? s.time[1] : x->begin[k + 1] - x->begin[k];
  if (qpos) *qpos = held ? s.qpos : NULL;
  if (qvel) *qvel = held ? s.qvel : NULL;
  if (act) *act = held ? s.act : NULL;
}

SnCode sn_horizon_bad(SnError *err, const char *name, double value, const char *rule) {
  return sn_fail(err, SN_ERR_ARGUMENT, "horizon: %s is %.9g: %s", name, value, rule);
}

static SnCode check_settings(const SnHorizonSettings *s, SnError *err) {
  const SnTableau *rk = sn_tableau(s->method);
  if (!rk) return sn_horizon_bad(err, "method", s->method, "must be one of SnRkMethod, 0 to 8");
  if (!(s->rtol > 0 && s->rtol <= 1))
    return sn_horizon_bad(err, "rtol", (double)s->rtol, "must be above 0 and at most 1");
  if (!(s->atol > 0 && s->atol <= 1))
    return sn_horizon_bad(err, "atol", (double)s->atol, "must be above 0 and at most 1");
  const struct {
    const char *name;
    sn_real value;
  } time[] = {{"fixed_step", s->fixed_step},
              {"first_step", s->first_step},
              {"smallest_step", s->smallest_step},
              {"largest_step", s->largest_step}};
  for (size_t k = 0; k < sizeof time / sizeof *time; ++k)
    if (!(time[k].value >= 0 && time[k].value <= SN_MAXVAL))
      return sn_horizon_bad(err, time[k].name, (double)time[k].value, "must be finite and at least 0 s");
  if (!rk->error && s->fixed_step == 0)
    return sn_fail(err, SN_ERR_ARGUMENT, "horizon: method %s has no error estimate: fixed_step must be above 0 s",
                   rk->name);
  const sn_real gains = sn_abs(s->p) + sn_abs(s->i) + sn_abs(s->d);
  if (!(gains <= 10)) return sn_horizon_bad(err, "|p| + |i| + |d|", (double)gains, "must be at most 10");
  if (!(s->safety > 0 && s->safety <= 1))
    return sn_horizon_bad(err, "safety", (double)s->safety, "must be above 0 and at most 1");
  if (!(s->shrink > 0 && s->shrink <= s->safety))
    return sn_horizon_bad(err, "shrink", (double)s->shrink, "must be above 0 and at most safety");
  if (!(s->grow >= 1 && s->grow <= SN_MAXVAL))
    return sn_horizon_bad(err, "grow", (double)s->grow, "must be finite and at least 1");
  if (s->max_steps < 1) return sn_horizon_bad(err, "max_steps", s->max_steps, "must be at least 1");
  if (s->keep < 0 || s->keep > 100000000) return sn_horizon_bad(err, "keep", s->keep, "must be 0 to 100000000");
  if (s->checkpoints < 0 || (s->keep > 0 && s->checkpoints > 100000000 / s->keep))
    return sn_horizon_bad(err, "checkpoints", s->checkpoints, "must be 0 to 100000000 / keep");
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

// Some contact pulls from a distance.
static bool pulls_in_gap(const SnModel *m) {
  bool gap = false;
  for (int g = 0; g < m->ngeom; ++g) gap = gap || m->geom_gap[g] != 0;
  for (int k = 0; k < m->npair; ++k) gap = gap || m->pair_gap[k] != 0;
  return gap && m->nadhesive > 0;
}

static SnCode check_model(const SnModel *m, SnError *err) {
  if (pulls_in_gap(m))
    return sn_fail(err, SN_ERR_UNSUPPORTED,
                   "horizon: a geom or pair has adhesion and gap, so that it begins to pull by a jump: chosen steps do "
                   "not support it; set gap to 0");
  if (m->nhistory > 0)
    return sn_fail(
        err, SN_ERR_UNSUPPORTED,
        "horizon: an actuator or a sensor has a history buffer (nsample), which takes a sample with every time "
        "step of the model: chosen steps do not support it; leave delays and buffers out");
  if (m->nplastic > 0)
    return sn_fail(err, SN_ERR_UNSUPPORTED,
                   "horizon: the spring of a joint or tendon yields (springyield) at the end of every time step of the "
                   "model: chosen steps do not support it; set springyield to 0");
  if (sn_has_speculative(m))
    return sn_fail(err, SN_ERR_UNSUPPORTED,
                   "horizon: flag speculative makes contacts that depend on how long a step is: chosen steps do not "
                   "support it; switch it off");
  if (sn_has_sigmoid(m))
    return sn_fail(err, SN_ERR_UNSUPPORTED,
                   "horizon: option 'contact' is sigmoid, whose contacts are those of steps of one size, not of chosen "
                   "steps; with mujoco they are supported");
  if (sn_has_noslip(m))
    return sn_fail(err, SN_ERR_UNSUPPORTED,
                   "horizon: option noslip_iterations is %d: the noslip solver jumps with every sweep, which chosen "
                   "steps do not support; set it to 0",
                   m->opt.noslip_iterations);
  return SN_OK;
}

SnHorizon *sn_horizon_create(const SnModel *m, const SnHorizonSettings *settings, SnError *err) {
  if (check_settings(settings, err) != SN_OK || check_model(m, err) != SN_OK) return NULL;
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
