// Adjoint of actuation: activations, forces and the power of joint forces in a motion, against central differences.
#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/actuator_zoo.h"
#include "tests/harness/gradcheck.h"

// y: rates of activations, activations after a step, forces, and lambda' qfrc_actuator.
typedef struct Actuation {
  SnGradWorld g;
  double speed;
  sn_real *next;
} Actuation;

static const double kStep = 0.01;  // [s]

static void run(SnGradWorld *g) {
  sn_kinematics(g->m, &g->w, &g->lane);
  sn_com_pos(g->m, &g->w, &g->lane);
  sn_tendon(g->m, &g->w, &g->lane);
  sn_collision(g->m, &g->w, &g->lane);
  sn_transmission(g->m, &g->w, &g->lane);
  sn_velocity(g->m, &g->w, &g->lane);
  sn_actuation(g->m, &g->w, &g->lane);
  sn_grad_world_motions(g);
}

static bool sample(void *context) {
  Actuation *s = context;
  SnGradWorld *g = &s->g;
  sn_oracle_randomize(g->o, s->speed);
  for (int i = 0; i < g->m->na; ++i) g->o->d->act[i] *= 1.3;
  for (int i = 0; i < g->m->nu; ++i) g->o->d->ctrl[i] *= 1.5;  // beyond their ranges, too
  sn_grad_world_sample(g);
  return true;
}

static bool forward(void *context, const double *dx, double *y) {
  Actuation *s = context;
  SnGradWorld *g = &s->g;
  sn_grad_world_move(g, dx);
  run(g);
  sn_next_activation(g->m, &g->w, &g->lane, (sn_real)kStep, s->next);
  for (int i = 0; i < g->m->na; ++i) *y++ = (double)g->w.act_dot[i];
  for (int i = 0; i < g->m->na; ++i) *y++ = (double)s->next[i];
  for (int i = 0; i < g->m->nout; ++i) *y++ = (double)g->w.actuator_force[i];
  *y = 0;
  for (int i = 0; i < g->m->nv; ++i) *y += (double)(g->a.motion[SN_LAMBDA * g->m->nv + i] * (g->w.qfrc_actuator[i]));
  return true;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  Actuation *s = context;
  SnGradWorld *g = &s->g;
  sn_grad_world_move(g, NULL);
  // the multiplier of the last output is in the motion
  run(g);
  const int na = g->m->na, nout = g->m->nout;
  for (int i = 0; i < g->m->nv; ++i) g->a.motion[SN_LAMBDA * g->m->nv + i] *= (sn_real)ybar[2 * na + nout];
  sn_motion_propagate(g->m, &g->w, &g->a, &g->lane);
  sn_adjoint_clear(g->m, &g->a, &g->lane);
  for (int i = 0; i < na; ++i) g->a.act_dot_bar[i] = (sn_real)ybar[i];
  for (int i = 0; i < na; ++i) g->a.act_next_bar[i] = (sn_real)ybar[na + i];
  for (int i = 0; i < nout; ++i) g->a.force_bar[i] = (sn_real)ybar[2 * na + i];
  sn_next_activation_vjp(g->m, &g->w, &g->a, &g->lane, (sn_real)kStep);
  sn_actuation_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_transmission_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_tendon_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_kinematics_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_grad_world_result(g, xbar);
}

static void check_oracle(const char *name, SnOracle *o, double speed, int samples) {
  Actuation s = {.speed = speed};
  sn_grad_world_init(&s.g, o);
  s.next = calloc((size_t)o->m->na + 1, sizeof *s.next);
  assert_non_null(s.next);
  const SnGradCase c = {.name = name,
                        .nx = sn_grad_world_nx(&s.g),
                        .ny = 2 * o->m->na + o->m->nout + 1,
                        .context = &s,
                        .sample = sample,
                        .forward = forward,
                        .adjoint = adjoint,
                        .samples = samples};
  sn_gradcheck(&c, 1);
  free(s.next);
  sn_grad_world_free(&s.g);
}

static void every_branch(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, sn_actuator_zoo);
  check_oracle("actuation, zoo", &o, 1, 60);
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_branch)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
