// Adjoint of tendons: lengths, and rates in all motions, against central differences.
#include <stdio.h>
#include <stdlib.h>

#include "physics/vec.h"
#include "tests/harness/actuator_zoo.h"
#include "tests/harness/gradcheck.h"

enum { OUT = 1 + SN_NMOTION };  // of a tendon: length, rates

typedef struct Tendons {
  SnGradWorld g;
  double speed;
  bool inside;  // tendons that wrap inside count alone; else the others
  int *branch;  // of every wrap at the base: touches, how it winds
} Tendons;

static void run(SnGradWorld *g) {
  sn_kinematics(g->m, &g->w, &g->lane);
  sn_com_pos(g->m, &g->w, &g->lane);
  sn_tendon(g->m, &g->w, &g->lane);
  sn_collision(g->m, &g->w, &g->lane);
  sn_transmission(g->m, &g->w, &g->lane);
  sn_velocity(g->m, &g->w, &g->lane);
  sn_grad_world_motions(g);
}

static int branch(const SnWorld *w, int k) { return w->wseg_on[k] ? 2 + w->wseg_turn[k] : 0; }

// True when tendon t takes part.
static bool counts(const Tendons *s, int t) {
  bool inside = false;
  for (int k = s->g.m->ten_wseg[t]; k < s->g.m->ten_wseg[t + 1]; ++k) inside = inside || s->branch[k] == 2;
  return inside == s->inside;
}

static bool sample(void *context) {
  Tendons *s = context;
  SnGradWorld *g = &s->g;
  sn_oracle_randomize(g->o, s->speed);
  sn_grad_world_sample(g);
  sn_grad_world_move(g, NULL);
  run(g);
  for (int k = 0; k < g->m->nwseg; ++k) s->branch[k] = branch(&g->w, k);
  return true;
}

static bool forward(void *context, const double *dx, double *y) {
  Tendons *s = context;
  SnGradWorld *g = &s->g;
  sn_grad_world_move(g, dx);
  run(g);
  for (int k = 0; k < g->m->nwseg; ++k)
    if (branch(&g->w, k) != s->branch[k]) return false;
  for (int t = 0; t < g->m->ntendon; ++t, y += OUT) {
    const bool on = counts(s, t);
    y[0] = on ? (double)g->w.ten_length[t] : 0;
    for (int z = 0; z < SN_NMOTION; ++z) y[1 + z] = on ? (double)g->a.ten_rate[SN_NMOTION * t + z] : 0;
  }
  return true;
}

static void bars(Tendons *s, const double *ybar) {
  SnGradWorld *g = &s->g;
  sn_adjoint_clear(g->m, &g->a, &g->lane);
  for (int t = 0; t < g->m->ntendon; ++t, ybar += OUT) {
    if (!counts(s, t)) continue;
    g->a.ten_length_bar[t] = (sn_real)ybar[0];
    for (int z = 0; z < SN_NMOTION; ++z) g->a.ten_rate_bar[SN_NMOTION * t + z] = (sn_real)ybar[1 + z];
  }
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  Tendons *s = context;
  SnGradWorld *g = &s->g;
  sn_grad_world_move(g, NULL);
  run(g);
  bars(s, ybar);
  sn_tendon_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_kinematics_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_grad_world_result(g, xbar);
}

static void check_oracle(const char *name, SnOracle *o, double speed, bool inside, double tolerance, int samples) {
  Tendons s = {.speed = speed, .inside = inside};
  sn_grad_world_init(&s.g, o);
  s.branch = calloc((size_t)o->m->nwseg + 1, sizeof *s.branch);
  assert_non_null(s.branch);
  const SnGradCase c = {.name = name,
                        .nx = sn_grad_world_nx(&s.g),
                        .ny = OUT * o->m->ntendon,
                        .context = &s,
                        .sample = sample,
                        .forward = forward,
                        .adjoint = adjoint,
                        .tolerance = tolerance,
                        .samples = samples};
  sn_gradcheck(&c, 1);
  free(s.branch);
  sn_grad_world_free(&s.g);
}

static void check_string(const char *name, const char *xml, bool inside, double tolerance, int samples) {
  SnOracle o;
  sn_oracle_load_string(&o, xml);
  check_oracle(name, &o, 1, inside, tolerance, samples);
  sn_oracle_free(&o);
}

static void every_branch(void **state) {
  (void)state;
  check_string("tendons, zoo", sn_tendon_zoo, false, 1e-6, 40);
}

static void wraps(void **state) {
  (void)state;
  check_string("tendons, wraps", sn_wrap_zoo, false, 1e-6, 60);
  // the forward function solves for the touching point to 1e-6, as MuJoCo does: differences show it
  check_string("tendons, wraps inside", sn_wrap_zoo, true, 1e-4, 60);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_branch), cmocka_unit_test(wraps)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
