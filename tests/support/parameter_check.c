#include "tests/support/parameter_check.h"

#include <stdio.h>
#include <stdlib.h>

#include "physics/model/model_bar.h"
#include "physics/step/step.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tolerance.h"

enum { PARAMETERS = 16, MOST = 40 };  // most parameters; dofs and activations

// The next velocity and activations (nv + na) of a model from the state of another world.
static void next_state(const SnModel *m, const SnWorld *from, double *next) {
  void *memory = aligned_alloc(64, sn_world_size(m));
  SnWorld w;
  SnLaneShared shared = {0};
  SnLane lane = {.n = 1, .shared = &shared};
  sn_world_init(m, &w, memory);
  sn_world_copy_state(m, &w, from);
  sn_step(m, &w, &lane);
  for (int i = 0; i < m->nv; ++i) next[i] = (double)w.qvel[i];
  for (int i = 0; i < m->na; ++i) next[m->nv + i] = (double)w.act[i];
  free(memory);
}

// Compares row by row; E (2 nv + na, n) has the derivatives.
static void compare(const SnModel *const pair[2], const SnWorld *w, double step, const sn_real *E, int n,
                    const char *what) {
  const int nv = pair[0]->nv, rows = nv + pair[0]->na;
  double up[MOST], down[MOST], scale[2] = {0};  // of velocities, of activations
  next_state(pair[0], w, up);
  next_state(pair[1], w, down);
  for (int i = 0; i < rows; ++i) scale[i >= nv] = sn_larger(scale[i >= nv], fabs(up[i] - down[i]) / (2 * step));
  for (int i = 0; i < rows; ++i) {
    const double by_difference = (up[i] - down[i]) / (2 * step), ours = (double)E[(nv + i) * n];
    if (!(fabs(ours - by_difference) <= 1e-6 * (scale[i >= nv] + 1e-3)))
      fail_msg("%s %d by %s: %.10g, by differences %.10g", i < nv ? "dof" : "activation", i < nv ? i : i - nv, what,
               ours, by_difference);
  }
  if (!(scale[0] + scale[1] > 1e-6)) fail_msg("%s moves nothing", what);
}

void sn_check_step_parameters(SnOracle *o, const char *what, const char *const *names, int n, SnMovedModel moved) {
  const SnModel *m = o->m;
  SnGradWorld g;
  SnModel *plus[PARAMETERS], *minus[PARAMETERS];
  double step[PARAMETERS];
  SnError err;
  assert_true(m->nv + m->na <= MOST && n <= PARAMETERS);
  for (int p = 0; p < n; ++p) {
    plus[p] = moved(m, p, step[p] = 1e-5);
    minus[p] = moved(m, p, -1e-5);
  }
  SnModelTangents *t =
      sn_model_tangents_create(m, (const SnModel *const *)plus, (const SnModel *const *)minus, step, n, &err);
  if (!t) fail_msg("%s", err.text);
  sn_grad_world_init(&g, o);
  sn_grad_world_sample(&g);
  sn_grad_world_move(&g, NULL);
  sn_forward(m, &g.w, &g.lane);
  static sn_real A[2 * MOST * 2 * MOST], E[2 * MOST * PARAMETERS], B[2 * MOST * MOST];
  void *memory = aligned_alloc(64, sn_parameter_rows_size(t));
  const SnParameterRows by = {t, memory};
  const SnStepJacobian to = {.A = A, .B = B, .by = &by, .E = E};
  assert_true(m->nu <= MOST);
  sn_step_sensitivity(m, &g.w, &g.a, &g.lane, &to);
  for (int p = 0; p < n; ++p) {
    char text[300];
    snprintf(text, sizeof text, "%s (%s)", names[p], what);
    compare((const SnModel *const[2]){plus[p], minus[p]}, &g.w, step[p], E + p, n, text);
    sn_model_free(plus[p]);
    sn_model_free(minus[p]);
  }
  free(memory);
  sn_model_tangents_free(t);
  sn_grad_world_free(&g);
}
