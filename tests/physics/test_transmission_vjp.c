// Adjoint of transmissions: lengths, and rates in all motions, against central differences.
#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/actuator_zoo.h"
#include "tests/harness/gradcheck.h"

enum { OUT = 1 + SN_NMOTION };  // of an output: length, rates

static void run(SnGradWorld *g) {
  sn_kinematics(g->m, &g->w, &g->lane);
  sn_com_pos(g->m, &g->w, &g->lane);
  sn_tendon(g->m, &g->w, &g->lane);
  sn_collision(g->m, &g->w, &g->lane);
  sn_transmission(g->m, &g->w, &g->lane);
  sn_velocity(g->m, &g->w, &g->lane);
  sn_grad_world_motions(g);
}

static bool sample(void *context) {
  SnGradWorld *g = context;
  sn_oracle_randomize(g->o, 1);
  sn_grad_world_sample(g);
  return true;
}

static bool forward(void *context, const double *dx, double *y) {
  SnGradWorld *g = context;
  sn_grad_world_move(g, dx);
  run(g);
  for (int o = 0; o < g->m->nout; ++o, y += OUT) {
    y[0] = (double)g->w.actuator_length[o];
    for (int z = 0; z < SN_NMOTION; ++z) y[1 + z] = (double)g->a.out_rate[SN_NMOTION * o + z];
  }
  return true;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  SnGradWorld *g = context;
  sn_grad_world_move(g, NULL);
  run(g);
  sn_adjoint_clear(g->m, &g->a, &g->lane);
  for (int o = 0; o < g->m->nout; ++o, ybar += OUT) {
    g->a.out_length_bar[o] = (sn_real)ybar[0];
    for (int z = 0; z < SN_NMOTION; ++z) g->a.out_rate_bar[SN_NMOTION * o + z] = (sn_real)ybar[1 + z];
  }
  sn_transmission_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_tendon_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_kinematics_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_grad_world_result(g, xbar);
}

static void check_oracle(const char *name, SnOracle *o, int samples) {
  SnGradWorld g;
  sn_grad_world_init(&g, o);
  const SnGradCase c = {.name = name,
                        .nx = sn_grad_world_nx(&g),
                        .ny = OUT * o->m->nout,
                        .context = &g,
                        .sample = sample,
                        .forward = forward,
                        .adjoint = adjoint,
                        .samples = samples};
  sn_gradcheck(&c, 1);
  sn_grad_world_free(&g);
}

static void every_transmission(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, sn_actuator_zoo);
  check_oracle("transmissions, zoo", &o, 60);
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_transmission)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
