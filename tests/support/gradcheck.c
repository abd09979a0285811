#include "tests/support/gradcheck.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "physics/actuator/actuator.h"
#include "physics/collision/collision.h"
#include "physics/dynamics/dynamics.h"
#include "physics/step/step.h"
#include "tests/support/slow.h"
#include "tests/support/tolerance.h"

typedef struct Draw {
  uint64_t seed, count;
} Draw;

// Uniform in [-1, 1).
static double draw(Draw *d) {
  uint64_t x = d->seed + 0x9e3779b97f4a7c15u * ++d->count;  // splitmix64, S. Vigna
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return (double)((x ^ (x >> 31)) >> 11) * 0x1p-52 - 1;
}

static double *numbers(int n) {
  double *x = calloc((size_t)n + 1, sizeof *x);
  if (!x) fail_msg("out of memory");
  return x;
}

typedef struct Check {
  const SnGradCase *c;
  double *dx, *up, *down, *ybar, *xbar, *again, *v, *difference;
  double largest;  // entry of any gradient seen
  bool rounded;    // some entry differs from the difference
} Check;

static void all_finite(const Check *k, const char *what, const double *x, int n, int sample) {
  for (int i = 0; i < n; ++i)
    if (!isfinite(x[i])) fail_msg("%s, sample %d: %s[%d] = %g", k->c->name, sample, what, i, x[i]);
}

// d (ybar . y) / dx along dx by central differences; false where the branch changes.
static bool directional(const Check *k, const double *direction, double *out) {
  const SnGradCase *c = k->c;
  const double h = c->step > 0 ? c->step : 1e-6;
  for (int i = 0; i < c->nx; ++i) k->dx[i] = h * direction[i];
  if (!c->forward(c->context, k->dx, k->up)) return false;
  for (int i = 0; i < c->nx; ++i) k->dx[i] = -h * direction[i];
  if (!c->forward(c->context, k->dx, k->down)) return false;
  double s = 0;
  for (int i = 0; i < c->ny; ++i) s += k->ybar[i] * (k->up[i] - k->down[i]);
  *out = s / (2 * h);
  return true;
}

static double tolerance_of(const SnGradCase *c) { return c->tolerance > 0 ? c->tolerance : 1e-6; }

// (2). False where the branch changes.
static bool compare_along(Check *k, int sample, double scale) {
  const SnGradCase *c = k->c;
  double expected = 0, along;
  for (int i = 0; i < c->nx; ++i) expected += k->xbar[i] * k->v[i];
  if (!directional(k, k->v, &along)) return false;
  if (!(fabs(along - expected) <= tolerance_of(c) * scale * sqrt(c->nx)))
    fail_msg("%s, sample %d: <J'w, v> = %.10g, <w, Jv> = %.10g", c->name, sample, expected, along);
  return true;
}

// (1). False where the branch changes.
static bool compare_each(Check *k, int sample) {
  const SnGradCase *c = k->c;
  double *unit = numbers(c->nx), scale = 1e-3;
  bool smooth = true;
  for (int i = 0; i < c->nx && smooth; ++i) {
    unit[i] = 1;
    smooth = directional(k, unit, k->difference + i);
    unit[i] = 0;
  }
  free(unit);
  if (!smooth) return false;
  all_finite(k, "difference", k->difference, c->nx, sample);
  for (int i = 0; i < c->nx; ++i) scale = sn_larger(scale, sn_larger(fabs(k->xbar[i]), fabs(k->difference[i])));
  for (int i = 0; i < c->nx; ++i) {
    k->rounded |= k->xbar[i] != k->difference[i];
    if (!(fabs(k->xbar[i] - k->difference[i]) <= tolerance_of(c) * scale))
      fail_msg("%s, sample %d: gradient[%d] = %.10g, difference %.10g (scale %.3g)", c->name, sample, i, k->xbar[i],
               k->difference[i], scale);
  }
  compare_along(k, sample, scale);
  return true;
}

static bool compare_sample(Check *k, int sample, double largest) {
#ifdef SN_SINGLE
  return k->rounded = true;
#endif
  if (SN_SLOW && compare_along(k, sample, sn_larger(largest, 1e-3))) return k->rounded = true;
  return compare_each(k, sample);
}

// False when the sample cannot be compared.
static bool check_sample(Check *k, Draw *d, int sample) {
  const SnGradCase *c = k->c;
  if (c->sample && !c->sample(c->context)) return false;
  for (int i = 0; i < c->ny; ++i) k->ybar[i] = draw(d);
  for (int i = 0; i < c->nx; ++i) k->v[i] = draw(d);
  memset(k->xbar, 0, sizeof *k->xbar * (size_t)c->nx);
  memset(k->again, 0, sizeof *k->again * (size_t)c->nx);
  c->adjoint(c->context, k->ybar, k->xbar);
  all_finite(k, "gradient", k->xbar, c->nx, sample);
  c->adjoint(c->context, k->ybar, k->again);
  if (memcmp(k->xbar, k->again, sizeof *k->xbar * (size_t)c->nx))
    fail_msg("%s, sample %d: the adjoint does not repeat itself", c->name, sample);
  c->adjoint(c->context, k->ybar, k->again);
  for (int i = 0; i < c->nx; ++i)
    if (!(fabs(k->again[i] - 2 * k->xbar[i]) <= 1e-12 * fmax(1, fabs(k->xbar[i]))))
      fail_msg("%s, sample %d: gradient[%d] is %g, twice added %g", c->name, sample, i, k->xbar[i], k->again[i]);
  double largest = 0;
  for (int i = 0; i < c->nx; ++i) largest = sn_larger(largest, fabs(k->xbar[i]));
  if (!compare_sample(k, sample, largest)) return false;
  k->largest = sn_larger(k->largest, largest);
  return true;
}

void sn_gradcheck(const SnGradCase *c, uint64_t seed) {
  Check k = {c,
             numbers(c->nx),
             numbers(c->ny),
             numbers(c->ny),
             numbers(c->ny),
             numbers(c->nx),
             numbers(c->nx),
             numbers(c->nx),
             numbers(c->nx),
             0,
             false};
  Draw d = {seed, 0};
  const int samples = c->samples > 0 ? c->samples : 20;
  int compared = 0;
  for (int i = 0; i < samples; ++i) compared += check_sample(&k, &d, i);
  printf("gradcheck %s: seed %llu, %d of %d samples, largest gradient %.3g\n", c->name, (unsigned long long)seed,
         compared, samples, k.largest);
  if (compared < SN_ALIKE(0.5, 0.4) * samples)
    fail_msg("%s: only %d of %d samples could be compared", c->name, compared, samples);
  if (k.largest == 0) fail_msg("%s: the gradient is zero everywhere", c->name);
  if (!k.rounded) fail_msg("%s: the gradient is bit-equal to differences", c->name);
  double *all[] = {k.dx, k.up, k.down, k.ybar, k.xbar, k.again, k.v, k.difference};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) free(all[i]);
}

static sn_real *reals(int n) {
  sn_real *x = calloc((size_t)n + 1, sizeof *x);
  if (!x) fail_msg("out of memory");
  return x;
}

static void *block(size_t bytes) {
  void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!p) fail_msg("out of memory");
  return p;
}

void sn_grad_world_init(SnGradWorld *g, SnOracle *o) {
  const SnModel *m = o->m;
  memset(g, 0, sizeof *g);
  g->o = o;
  g->m = m;
  g->memory = block(sn_world_size(m));
  sn_world_init(m, &g->w, g->memory);
  g->adjoint_memory = block(sn_adjoint_size(m));
  sn_adjoint_init(m, &g->a, g->adjoint_memory);
  g->lane = (SnLane){.n = 1, .shared = &g->shared};
  g->qpos = reals(m->nq);
  g->qvel = reals(m->nv);
  g->act = reals(m->na);
  g->ctrl = reals(m->nu);
  g->past = reals(sn_past_size(m));
  g->mocap_pos = reals(3 * m->nmocap);
  g->mocap_quat = reals(4 * m->nmocap);
  g->warm = reals(m->nv);
  g->motion = numbers(SN_NMOTION * m->nv);
}

void sn_grad_world_free(SnGradWorld *g) {
  void *all[] = {g->memory, g->adjoint_memory, g->qpos,       g->qvel, g->act,   g->ctrl,
                 g->past,   g->mocap_pos,      g->mocap_quat, g->warm, g->motion};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) free(all[i]);
}

int sn_grad_world_nx(const SnGradWorld *g) { return 2 * g->m->nv + g->m->na + g->m->nu; }

static void take(sn_real *to, const double *from, int n) {
  for (int i = 0; i < n; ++i) to[i] = (sn_real)from[i];
}

void sn_grad_world_sample(SnGradWorld *g) {
  const SnModel *m = g->m;
  const mjData *d = g->o->d;
  take(g->qpos, d->qpos, m->nq);
  take(g->qvel, d->qvel, m->nv);
  take(g->act, d->act, m->na);
  take(g->ctrl, d->ctrl, m->nu);
  take(g->past, d->history, m->nhistory);
  take(g->past + m->nhistory, d->plastic, m->nplastic);
  g->time = d->time;
  take(g->mocap_pos, d->mocap_pos, 3 * m->nmocap);
  take(g->mocap_quat, d->mocap_quat, 4 * m->nmocap);
  take(g->warm, d->qacc_warmstart, m->nv);
  for (int i = 0; i < SN_NMOTION * m->nv; ++i) g->motion[i] = sn_oracle_uniform(g->o);
}

static void put(sn_real *to, const sn_real *from, const double *dx, int n) {
  for (int i = 0; i < n; ++i) to[i] = from[i] + (dx ? (sn_real)dx[i] : 0);
}

void sn_grad_world_move(SnGradWorld *g, const double *dx) {
  const SnModel *m = g->m;
  const double *dv = dx ? dx + m->nv : NULL, *dact = dx ? dv + m->nv : NULL, *dctrl = dx ? dact + m->na : NULL;
  memcpy(g->w.qpos, g->qpos, sizeof(sn_real) * (size_t)m->nq);
  if (dx) {
    sn_real *tangent = reals(m->nv);
    take(tangent, dx, m->nv);
    sn_integrate_pos(m, &g->lane, g->w.qpos, tangent, 1);
    free(tangent);
  }
  put(g->w.qvel, g->qvel, dv, m->nv);
  put(g->w.act, g->act, dact, m->na);
  put(g->w.ctrl, g->ctrl, dctrl, m->nu);
  g->w.time[0] = (sn_real)g->time;
  put(g->w.past, g->past, NULL, sn_past_size(m));
  put(g->w.mocap_pos, g->mocap_pos, NULL, 3 * m->nmocap);
  put(g->w.mocap_quat, g->mocap_quat, NULL, 4 * m->nmocap);
  put(g->w.qacc_warmstart, g->warm, NULL, m->nv);
}

void sn_grad_world_velocities(SnGradWorld *g) {
  sn_kinematics(g->m, &g->w, &g->lane);
  sn_com_pos(g->m, &g->w, &g->lane);
  sn_tendon(g->m, &g->w, &g->lane);
  sn_collision(g->m, &g->w, &g->lane);
  sn_transmission(g->m, &g->w, &g->lane);
  sn_velocity(g->m, &g->w, &g->lane);
}

void sn_grad_world_motions(SnGradWorld *g) {
  const int nv = g->m->nv;
  for (int z = 0; z < SN_NMOTION; ++z)
    for (int i = 0; i < nv; ++i) g->a.motion[z * nv + i] = z == SN_VEL ? g->w.qvel[i] : (sn_real)g->motion[z * nv + i];
  sn_motion_propagate(g->m, &g->w, &g->a, &g->lane);
}

void sn_grad_world_result(const SnGradWorld *g, double *xbar) {
  const SnModel *m = g->m;
  const sn_real *from[4] = {g->a.qpos_bar, g->a.qvel_bar, g->a.act_bar, g->a.ctrl_bar};
  const int n[4] = {m->nv, m->nv, m->na, m->nu};
  for (int k = 0; k < 4; ++k)
    for (int i = 0; i < n[k]; ++i) *xbar++ += (double)from[k][i];
}

void sn_grad_world_integrate(SnGradWorld *g, double *y) {
  const SnModel *m = g->m;
  sn_integrate(m, &g->w, &g->lane);
  for (int i = 0; i < m->nv; ++i) y[i] = (double)g->w.qvel[i];
  for (int i = 0; i < m->na; ++i) y[m->nv + i] = (double)g->w.act[i];
}

void sn_grad_world_step_vjp(SnGradWorld *g, const double *ybar, double *xbar) {
  const SnModel *m = g->m;
  sn_adjoint_clear(m, &g->a, &g->lane);
  for (int i = 0; i < m->nv; ++i) {
    g->a.qpos_next_bar[i] = 0;
    g->a.qvel_next_bar[i] = (sn_real)ybar[i];
  }
  for (int i = 0; i < m->na; ++i) g->a.act_next_bar[i] = (sn_real)ybar[m->nv + i];
  sn_step_vjp(m, &g->w, &g->a, &g->lane);
  sn_position_vjp(m, &g->w, &g->a, &g->lane);
  sn_grad_world_result(g, xbar);
}
