#include "tests/support/actuator_steps.h"

#include <stdio.h>
#include <string.h>

#include "physics/step/step.h"
#include "tests/support/step_fixture.h"
#include "tests/support/tolerance.h"

void sn_actuator_draw(SnOracle *o, double speed, double act) {
  sn_oracle_randomize(o, speed);
  for (int i = 0; i < o->m->na; ++i) o->d->act[i] *= act;
}

void sn_check_actuator_steps(SnOracle *o, const char *what, double act, int samples) {
  for (int s = 0; s < samples; ++s) {
    char name[120];
    sn_actuator_draw(o, 1, act);
    sn_oracle_copy_state(o);
    mj_step(o->mj, o->d);
    sn_step(o->m, &o->w, &o->lane);
    snprintf(name, sizeof name, "%s: next qvel", what);
    sn_oracle_check(name, o->w.qvel, o->d->qvel, o->m->nv, SN_TOL(1e-10, 1e-3));
    for (int i = 0; i < o->m->na; ++i) {
      snprintf(name, sizeof name, "%s: next act %d", what, i);
      sn_oracle_check(name, o->w.act + i, o->d->act + i, 1, SN_TOL(1e-9, 1e-3));
    }
  }
  sn_oracle_free(o);
}

typedef struct Steps {
  SnGradWorld g;
  double act;
} Steps;

static bool sample(void *context) {
  Steps *s = context;
  sn_actuator_draw(s->g.o, 0.3, s->act);
  sn_grad_world_sample(&s->g);
  return true;
}

static bool forward(void *context, const double *dx, double *y) {
  SnGradWorld *g = &((Steps *)context)->g;
  const int nv = g->m->nv;
  sn_grad_world_move(g, dx);
  sn_step_full(g);
  for (int i = 0; i < nv; ++i) y[i] = (double)g->w.qvel[i];
  for (int i = 0; i < g->m->na; ++i) y[nv + i] = (double)g->w.act[i];
  return true;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  SnGradWorld *g = &((Steps *)context)->g;
  double bar[200] = {0};
  assert_true(2 * g->m->nv + g->m->na <= 200);
  memcpy(bar + g->m->nv, ybar, sizeof *ybar * (size_t)(g->m->nv + g->m->na));
  sn_grad_world_move(g, NULL);
  sn_forward(g->m, &g->w, &g->lane);
  sn_step_full_vjp(g, bar);
  sn_grad_world_result(g, xbar);
}

void sn_check_actuator_gradient(SnOracle *o, const char *what, double act, int samples) {
  Steps s = {.act = act};
  sn_grad_world_init(&s.g, o);
  const SnGradCase c = {.name = what,
                        .nx = sn_grad_world_nx(&s.g),
                        .ny = o->m->nv + o->m->na,
                        .context = &s,
                        .sample = sample,
                        .forward = forward,
                        .adjoint = adjoint,
                        .samples = samples};
  sn_gradcheck(&c, 1);
  sn_grad_world_free(&s.g);
  sn_oracle_free(o);
}
