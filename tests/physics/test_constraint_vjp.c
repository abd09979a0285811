// Constraint rows backwards: every kind of row against central differences, contacts through their distance, point and
// frame, which are coordinates of their own here.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "physics/constraint.h"
#include "tests/harness/constraint_zoo.h"
#include "tests/harness/gradcheck.h"

enum { ROWS = 160, CONTACTS = 10, CONTACT = 13 };  // most rows and contacts that take part, numbers of a contact

typedef struct Rows {
  SnGradWorld g;
  SnZooCase zoo;
  double speed;
  int ncon, nefc, sides;
  SnContact contact[CONTACTS];
  int type[ROWS], id[ROWS];
  int count[8];  // rows by type, over all samples
} Rows;

static void run(Rows *k, const double *dx) {
  SnGradWorld *g = &k->g;
  sn_grad_world_move(g, dx);
  sn_kinematics(g->m, &g->w, &g->lane);
  sn_com_pos(g->m, &g->w, &g->lane);
  sn_tendon(g->m, &g->w, &g->lane);
  sn_transmission(g->m, &g->w, &g->lane);
  sn_velocity(g->m, &g->w, &g->lane);
  sn_grad_world_motions(g);
  memcpy(g->w.contact, k->contact, sizeof *k->contact * (size_t)k->ncon);
  g->w.ncon[0] = k->ncon;
  for (int i = 0; dx && i < k->ncon; ++i) {
    const double *d = dx + sn_grad_world_nx(g) + CONTACT * i;
    SnContact *con = g->w.contact + i;
    con->dist += (sn_real)d[0];
    for (int e = 0; e < 3; ++e) con->pos[e] += (sn_real)d[1 + e];
    for (int e = 0; e < 9; ++e) con->frame[e] += (sn_real)d[4 + e];
  }
  sn_make_constraint(g->m, &g->w, &g->lane);
  sn_reference_constraint(g->m, &g->w, &g->lane);
}

static bool sample(void *context) {
  Rows *k = context;
  SnGradWorld *g = &k->g;
  sn_zoo_sample(g->o, k->speed);
  sn_grad_world_sample(g);
  sn_grad_world_move(g, NULL);
  sn_kinematics(g->m, &g->w, &g->lane);
  sn_com_pos(g->m, &g->w, &g->lane);
  sn_collision(g->m, &g->w, &g->lane);
  k->ncon = g->w.ncon[0] < CONTACTS ? g->w.ncon[0] : CONTACTS;
  memcpy(k->contact, g->w.contact, sizeof *k->contact * (size_t)k->ncon);
  run(k, NULL);
  k->nefc = g->w.nefc[0];
  assert_true(k->nefc <= ROWS);
  for (int i = 0; i < k->nefc; ++i) {
    k->type[i] = g->w.efc_type[i];
    k->id[i] = g->w.efc_id[i];
    ++k->count[k->type[i]];
  }
  return k->nefc > 0;
}

// Of every row: J lambda, -(J a - aref), log D.
static bool forward(void *context, const double *dx, double *y) {
  Rows *k = context;
  const SnModel *m = k->g.m;
  SnWorld *w = &k->g.w;
  run(k, dx);
  for (int i = 0; i < 3 * ROWS; ++i) y[i] = 0;
  if (w->nefc[0] != k->nefc) return false;
  sn_real Jz[2][ROWS];
  for (int z = 0; z < 2; ++z) sn_mul_J(m, w, &k->g.lane, Jz[z], k->g.a.motion + z * m->nv);
  for (int i = 0; i < k->nefc; ++i) {
    if (w->efc_type[i] != k->type[i] || w->efc_id[i] != k->id[i]) return false;
    y[i] = (double)Jz[SN_LAMBDA][i];
    y[ROWS + i] = (double)(w->efc_aref[i] - Jz[SN_ACC][i]);
    y[2 * ROWS + i] = log((double)w->efc_D[i]);
  }
  return true;
}

// Sum over tendons of length_bar length + rate_bar rate of the motions at q, by which differences stand in for the
// adjoint of tendon paths.
static double tendon_sum(const SnGradWorld *g) {
  double s = 0;
  for (int t = 0; t < g->m->ntendon; ++t) {
    s += (double)(g->a.ten_length_bar[t] * g->w.ten_length[t]);
    for (int z = 0; z < SN_NMOTION; ++z)
      s += (double)(g->a.ten_rate_bar[SN_NMOTION * t + z] * g->a.ten_rate[SN_NMOTION * t + z]);
  }
  return s;
}

static void tendons_vjp(Rows *k, double *xbar) {
  SnGradWorld *g = &k->g;
  double *dx = calloc((size_t)(sn_grad_world_nx(g) + CONTACT * CONTACTS), sizeof *dx);
  for (int i = 0; g->m->ntendon > 0 && i < 2 * g->m->nv; ++i) {
    const double h = 1e-6;
    dx[i] = h;
    run(k, dx);
    const double up = tendon_sum(g);
    dx[i] = -h;
    run(k, dx);
    xbar[i] += (up - tendon_sum(g)) / (2 * h);
    dx[i] = 0;
  }
  free(dx);
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  Rows *k = context;
  SnGradWorld *g = &k->g;
  run(k, NULL);
  sn_adjoint_clear(g->m, &g->a, &g->lane);
  for (int i = 0; i < k->nefc; ++i) {
    g->w.efc_force[i] = (sn_real)ybar[i];
    g->a.row_c[i] = (sn_real)ybar[ROWS + i];
    g->a.row_lambda[i] = (sn_real)(ybar[2 * ROWS + i] / ybar[i]);
  }
  sn_constraint_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_kinematics_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_grad_world_result(g, xbar);
  for (int i = 0; i < k->ncon; ++i) {
    double *out = xbar + sn_grad_world_nx(g) + CONTACT * i;
    out[0] += (double)g->a.con_dist_bar[i];
    for (int e = 0; e < 3; ++e) out[1 + e] += (double)g->a.con_pos_bar[3 * i + e];
    for (int e = 0; e < 9; ++e) out[4 + e] += (double)g->a.con_frame_bar[9 * i + e];
  }
  tendons_vjp(k, xbar);
}

static void check_rows(Rows *k, const char *name, SnOracle *o, int samples, double tolerance) {
  sn_model_need_all(o->m);
  sn_grad_world_init(&k->g, o);
  const SnGradCase c = {.name = name,
                        .nx = sn_grad_world_nx(&k->g) + CONTACT * CONTACTS,
                        .ny = 3 * ROWS,
                        .context = k,
                        .sample = sample,
                        .forward = forward,
                        .adjoint = adjoint,
                        .tolerance = tolerance,
                        .samples = samples};
  sn_gradcheck(&c, 1);
  sn_grad_world_free(&k->g);
}

static void over_cases(void (*load)(SnOracle *, const SnZooCase *), const char *kind, int stride) {
  static SnZooCase cases[200];
  static Rows k;
  const int n = sn_zoo_cases(cases, 200);
  memset(&k, 0, sizeof k);
  for (int i = 0; i < n; i += stride)
    for (int near = 0; near < 2; ++near) {
      SnOracle o;
      char name[300];
      const SnZooCase *c = cases + i;
      load(&o, c);
      k.speed = near ? 0.1 : 2;
      snprintf(name, sizeof name, "%s, %s: %s condim %d impratio %g solref %s friction %s solimp %s", kind,
               near ? "near" : "far", c->cone, c->condim, c->impratio, c->solref, c->solreffriction, c->solimp);
      check_rows(&k, name, &o, 4, 1e-6);
      sn_oracle_free(&o);
    }
  printf("%s: rows by type:", kind);
  for (int t = 0; t < 8; ++t) printf(" %d", k.count[t]);
  printf("\n");
}

static void contacts(void **state) {
  (void)state;
  over_cases(sn_zoo_contacts, "contacts", 5);
}

static void joints_tendons_equalities(void **state) {
  (void)state;
  over_cases(sn_zoo_joints, "joints", 11);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(contacts), cmocka_unit_test(joints_tendons_equalities)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
