#include "tests/support/step_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "physics/constraint/constraint.h"
#include "physics/step/step.h"
#include "tests/support/small_models.h"

const int sn_integrators[SN_STEP_INTEGRATORS] = {SN_INT_EULER, SN_INT_IMPLICITFAST, SN_INT_RK4, SN_INT_DISCRETE};
const char *const sn_integrator_name[SN_STEP_INTEGRATORS] = {"Euler", "implicitfast", "RK4", "discrete"};

void sn_needs_doubles(void) {
#ifdef SN_SINGLE
  print_message("skipped: differences need doubles\n");
  skip();
#endif
}

void sn_step_integrator(SnOracle *o, int i) {
  const bool metric = sn_has_metric(o->m);
  o->m->opt.integrator = o->mj->opt.integrator = sn_integrators[i];
  if (metric == sn_has_metric(o->m)) return;
  free(o->memory);
  o->memory = aligned_alloc(64, sn_world_size(o->m));
  if (!o->memory) fail_msg("out of memory");
  sn_world_init(o->m, &o->w, o->memory);
}

void sn_step_model(SnOracle *o, int i) {
  static char xml[20000];
  snprintf(xml, sizeof xml, "%s", sn_small_model(i));
  char *site = strstr(xml, "name='u0' pos='.04 0 -.1'");
  if (site) site[strlen("name='u0' pos='.0")] = '6';
  assert_true(i > 0 || site);
  sn_oracle_load_string(o, xml);
}

void sn_step_full(SnGradWorld *g) {
  sn_forward(g->m, &g->w, &g->lane);
  sn_solve_finish(g->m, &g->w, &g->lane);
  sn_integrate(g->m, &g->w, &g->lane);
}

void sn_step_full_vjp(SnGradWorld *g, const double *ybar) {
  const SnModel *m = g->m;
  sn_adjoint_clear(m, &g->a, &g->lane);
  for (int i = 0; i < m->nv; ++i) {
    g->a.qpos_next_bar[i] = (sn_real)ybar[i];
    g->a.qvel_next_bar[i] = (sn_real)ybar[m->nv + i];
  }
  for (int i = 0; i < m->na; ++i) g->a.act_next_bar[i] = (sn_real)ybar[2 * m->nv + i];
  for (int i = 0; i < sn_past_size(m); ++i) g->a.past_next_bar[i] = 0;
  sn_step_vjp(m, &g->w, &g->a, &g->lane);
  sn_position_vjp(m, &g->w, &g->a, &g->lane);
}
