// Adjoint of transmissions: lengths, and rates in all motions, against central differences.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "physics/actuator/actuator.h"
#include "physics/dynamics/dynamics.h"
#include "tests/support/actuator_models.h"
#include "tests/support/gradcheck.h"

enum { OUT = 1 + SN_NMOTION };  // of an output: length, rates

static void run(SnGradWorld *g) {
  sn_grad_world_velocities(g);
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
    for (int z = 0; z < SN_NMOTION; ++z) y[1 + z] = (double)g->a.trn_rate[SN_NMOTION * o + z];
  }
  return true;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  SnGradWorld *g = context;
  sn_grad_world_move(g, NULL);
  run(g);
  sn_adjoint_clear(g->m, &g->a, &g->lane);
  for (int o = 0; o < g->m->nout; ++o, ybar += OUT) {
    g->a.trn_length_bar[o] = (sn_real)ybar[0];
    for (int z = 0; z < SN_NMOTION; ++z) g->a.trn_rate_bar[SN_NMOTION * o + z] = (sn_real)ybar[1 + z];
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
  sn_oracle_load_string(&o, sn_actuator_xml);
  check_oracle("transmissions, all kinds", &o, 60);
  sn_oracle_free(&o);
}

// Adhesion: rates with the contacts' points and normals as coordinates of their own, behind those of the state.
typedef struct Adhesion {
  SnGradWorld g;
  SnContact *contact;  // at the base
  int ncon;
} Adhesion;

enum { CONTACTS = 12 };  // most that take part

static bool adhesion_sample(void *context) {
  Adhesion *s = context;
  SnGradWorld *g = &s->g;
  sn_oracle_randomize(g->o, 1);
  g->o->d->qpos[7] *= 0.2;
  g->o->d->qpos[8] *= 0.2;
  sn_grad_world_sample(g);
  sn_grad_world_move(g, NULL);
  run(g);
  s->ncon = *g->w.ncon;
  memcpy(s->contact, g->w.contact, sizeof *s->contact * (size_t)s->ncon);
  return s->ncon > 0 && s->ncon <= CONTACTS;
}

static bool adhesion_forward(void *context, const double *dx, double *y) {
  Adhesion *s = context;
  SnGradWorld *g = &s->g;
  const int nx = sn_grad_world_nx(g);
  sn_grad_world_move(g, dx);
  run(g);
  // the contacts stay with their coordinates, whatever the bodies do
  *g->w.ncon = s->ncon;
  memcpy(g->w.contact, s->contact, sizeof *s->contact * (size_t)s->ncon);
  for (int c = 0; c < s->ncon && dx; ++c)
    for (int e = 0; e < 3; ++e) {
      g->w.contact[c].pos[e] += (sn_real)dx[nx + 6 * c + e];
      g->w.contact[c].frame[e] += (sn_real)dx[nx + 6 * c + 3 + e];
    }
  sn_transmission(g->m, &g->w, &g->lane);
  sn_motion_propagate(g->m, &g->w, &g->a, &g->lane);
  for (int i = 0; i < SN_NMOTION * g->m->nout; ++i) y[i] = (double)g->a.trn_rate[i];
  return true;
}

static void adhesion_adjoint(void *context, const double *ybar, double *xbar) {
  Adhesion *s = context;
  SnGradWorld *g = &s->g;
  double y[100];
  assert_true(SN_NMOTION * g->m->nout <= 100);
  adhesion_forward(s, NULL, y);
  sn_adjoint_clear(g->m, &g->a, &g->lane);
  for (int c = 0; c < s->ncon; ++c) {
    memset(g->a.con_pos_bar + 3 * c, 0, 3 * sizeof(sn_real));
    memset(g->a.con_frame_bar + 9 * c, 0, 9 * sizeof(sn_real));
  }
  for (int i = 0; i < SN_NMOTION * g->m->nout; ++i) g->a.trn_rate_bar[i] = (sn_real)ybar[i];
  sn_transmission_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_kinematics_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_grad_world_result(g, xbar);
  xbar += sn_grad_world_nx(g);
  for (int c = 0; c < s->ncon; ++c)
    for (int e = 0; e < 3; ++e) {
      xbar[6 * c + e] += (double)g->a.con_pos_bar[3 * c + e];
      xbar[6 * c + 3 + e] += (double)g->a.con_frame_bar[9 * c + e];
    }
}

static void adhesion(void **state) {
  (void)state;
  char xml[2000];
  snprintf(xml, sizeof xml, sn_adhesion_xml, "pyramidal");
  SnOracle o;
  Adhesion s;
  sn_oracle_load_string(&o, xml);
  sn_grad_world_init(&s.g, &o);
  s.contact = calloc((size_t)o.m->nconmax, sizeof *s.contact);
  assert_non_null(s.contact);
  const SnGradCase c = {.name = "transmissions, adhesion",
                        .nx = sn_grad_world_nx(&s.g) + 6 * CONTACTS,
                        .ny = SN_NMOTION * o.m->nout,
                        .context = &s,
                        .sample = adhesion_sample,
                        .forward = adhesion_forward,
                        .adjoint = adhesion_adjoint,
                        .samples = 40};
  sn_gradcheck(&c, 1);
  free(s.contact);
  sn_grad_world_free(&s.g);
  sn_oracle_free(&o);
}

// Rotations of no angle, a hair, half a turn; a crank whose rod just reaches, or has no length; all sites in one place.
static void degenerate(void **state) {
  (void)state;
  SnOracle o;
  SnGradWorld g;
  sn_oracle_load_string(
      &o,
      "<mujoco><worldbody><site name='w' pos='0 0 1'/><body pos='0 0 1'><joint name='b' type='ball'/><geom size='.1'/>"
      "<site name='s' pos='.3 0 0'/><site name='o'/></body><body pos='0 0 1'><freejoint name='f'/><geom size='.1'/>"
      "<site name='t' pos='0 .3 0'/><site name='p'/></body></worldbody><actuator>"
      "<motor joint='b' gear='1 2 3'/><motor jointinparent='b' gear='3 1 -2'/><motor jointinparent='f' gear='1 -2 3 4 "
      "-5 "
      "6'/><motor site='t' refsite='s' gear='1 2 3 .3 .2 .1'/><motor site='o' refsite='w' gear='1 2 3 .3 .2 .1'/>"
      "<motor site='p' refsite='o' gear='0 0 0 .3 .2 .1'/>"
      "<motor cranksite='s' slidersite='w' cranklength='.3'/><motor cranksite='t' slidersite='s' cranklength='1e-9'/>"
      "<motor cranksite='t' slidersite='s' cranklength='.424264068711928514'/>"
      "<motor cranksite='o' slidersite='w' cranklength='.1'/></actuator></mujoco>");
  sn_grad_world_init(&g, &o);
  static const double angles[] = {0,   1e-300, 1e-12, 1e-5, 0.01, 0.0100001, 3.14159265, 3.14159265358979323846,
                                  3.2, 6.28};
  for (size_t k = 0; k < sizeof angles / sizeof *angles; ++k)
    for (int axis = 0; axis < 4; ++axis)
      for (int moving = 0; moving < 2; ++moving) {
        const double c = cos(0.5 * angles[k]), s = sin(0.5 * angles[k]);
        o.d->qpos[0] = c;
        for (int e = 0; e < 3; ++e) o.d->qpos[1 + e] = axis == 3 ? s / sqrt(3) : axis == e ? s : 0;
        for (int i = 0; i < o.m->nv; ++i) o.d->qvel[i] = moving ? sn_oracle_uniform(&o) : 0;
        sn_grad_world_sample(&g);
        sn_grad_world_move(&g, NULL);
        run(&g);
        sn_adjoint_clear(g.m, &g.a, &g.lane);
        for (int i = 0; i < g.m->nout; ++i) g.a.trn_length_bar[i] = 1;
        for (int i = 0; i < SN_NMOTION * g.m->nout; ++i) g.a.trn_rate_bar[i] = 1;
        sn_transmission_vjp(g.m, &g.w, &g.a, &g.lane);
        sn_kinematics_vjp(g.m, &g.w, &g.a, &g.lane);
        for (int i = 0; i < g.m->nv; ++i)
          if (!isfinite((double)g.a.qpos_bar[i]) || !isfinite((double)g.a.qvel_bar[i]))
            fail_msg("angle %g, axis %d: gradient[%d] = %g, %g", angles[k], axis, i, (double)g.a.qpos_bar[i],
                     (double)g.a.qvel_bar[i]);
      }
  sn_grad_world_free(&g);
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_transmission), cmocka_unit_test(adhesion),
                                     cmocka_unit_test(degenerate)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
