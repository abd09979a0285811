// Constraint rows backwards: every kind of row against central differences, contacts through their distance, point and
// frame, which are coordinates of their own here.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "physics/actuator/actuator.h"
#include "physics/base/vec.h"
#include "physics/collision/collision.h"
#include "physics/constraint/constraint.h"
#include "physics/constraint/constraint_private.h"
#include "physics/dynamics/dynamics.h"
#include "physics/step/step.h"
#include "tests/support/constraint_models.h"
#include "tests/support/gradcheck.h"
#include "tests/support/surface_model.h"

// Most rows and contacts that take part; coordinates of a contact and of the first mocap body, which follow those of
// the state.
enum { ROWS = 160, CONTACTS = 10, CONTACT = 13, MOCAP = 6 };

typedef struct Rows {
  SnGradWorld g;
  double speed;
  const SnCfd *cfd;  // NULL: MuJoCo's contacts
  int ncon, nefc;
  SnContact contact[CONTACTS];
  int type[ROWS], id[ROWS];
  int count[8], far;  // rows by type and contacts at a distance, over all samples
} Rows;

static void move_mocap(SnWorld *w, const double *dx) {
  sn_real turn[3], unit[4] = {1, 0, 0, 0}, q[4];
  for (int e = 0; e < 3; ++e) {
    turn[e] = (sn_real)dx[e];
    w->mocap_pos[e] += (sn_real)dx[3 + e];
  }
  sn_quatintegrate(unit, turn, 1);
  sn_mulquat(q, unit, w->mocap_quat);
  sn_copy4(w->mocap_quat, q);
}

static void run(Rows *k, const double *dx) {
  SnGradWorld *g = &k->g;
  sn_grad_world_move(g, dx);
  if (dx && g->m->nmocap > 0) move_mocap(&g->w, dx + sn_grad_world_nx(g) + CONTACT * CONTACTS);
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
  sn_constraint_sample(g->o, k->speed);
  if (k->cfd) *g->w.cfd = *k->cfd;
  sn_grad_world_sample(g);
  sn_grad_world_move(g, NULL);
  sn_kinematics(g->m, &g->w, &g->lane);
  sn_com_pos(g->m, &g->w, &g->lane);
  sn_collision(g->m, &g->w, &g->lane);
  k->ncon = g->w.ncon[0] < CONTACTS ? g->w.ncon[0] : CONTACTS;
  memcpy(k->contact, g->w.contact, sizeof *k->contact * (size_t)k->ncon);
  for (int i = 0; i < k->ncon; ++i) k->far += k->contact[i].cfd == SN_CONTACT_FAR;
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
  sn_tendon_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_kinematics_vjp(g->m, &g->w, &g->a, &g->lane);
  sn_grad_world_result(g, xbar);
  for (int i = 0; i < k->ncon; ++i) {
    double *out = xbar + sn_grad_world_nx(g) + CONTACT * i;
    out[0] += (double)g->a.con_dist_bar[i];
    for (int e = 0; e < 3; ++e) out[1 + e] += (double)g->a.con_pos_bar[3 * i + e];
    for (int e = 0; e < 9; ++e) out[4 + e] += (double)g->a.con_frame_bar[9 * i + e];
  }
  for (int e = 0; e < MOCAP && g->m->nmocap > 0; ++e)
    xbar[sn_grad_world_nx(g) + CONTACT * CONTACTS + e] += (double)g->a.mocap_bar[e];
}

static void check_rows(Rows *k, const char *name, SnOracle *o, int samples, double tolerance) {
  sn_model_need_all(o->m);
  sn_grad_world_init(&k->g, o);
  const SnGradCase c = {.name = name,
                        .nx = sn_grad_world_nx(&k->g) + CONTACT * CONTACTS + MOCAP,
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

static void check_case(void *context, SnOracle *o, const char *name, double speed) {
  Rows *k = context;
  k->speed = speed;
  check_rows(k, name, o, 4, 1e-6);
}

static void over_cases(void (*load)(SnOracle *, const SnConstraintCase *), const char *kind, int stride) {
  static Rows k;
  memset(&k, 0, sizeof k);
  sn_constraint_for_gradients(load, kind, stride, check_case, &k, k.count);
}

static void contacts(void **state) {
  (void)state;
  over_cases(sn_constraint_load_contacts, "contacts", 5);
}

static void joints_tendons_equalities(void **state) {
  (void)state;
  over_cases(sn_constraint_load_joints, "joints", 11);
}

// Weak springs, so that what moves with the velocities is as large as what moves with the positions.
static void weak(void **state) {
  (void)state;
  static const SnConstraintCase c[2] = {{"elliptic", 4, 3, "-1 -0.5", "0 -2", "0.4 0.8 0.3 0.4 3", "", NULL},
                                        {"pyramidal", 6, 3, "-1 -0.5", "0 -2", "0.3 0.6 0.4 0.5 2", "", NULL}};
  static Rows k;
  memset(&k, 0, sizeof k);
  k.speed = 2;
  for (int i = 0; i < 2; ++i)
    for (int kind = 0; kind < 2; ++kind) {
      SnOracle o;
      (kind ? sn_constraint_load_contacts : sn_constraint_load_joints)(&o, c + i);
      check_rows(&k, kind ? "contacts, weak" : "joints, weak", &o, 10, 1e-7);
      sn_oracle_free(&o);
    }
}

// A ball joint behind which its own body slides: MuJoCo counts that slide's velocity into the turning of the ball's
// axes.
static void ball_and_slide(void **state) {
  (void)state;
  static Rows k;
  SnOracle o;
  memset(&k, 0, sizeof k);
  k.speed = 2;
  sn_oracle_load_string(&o,
                        "<mujoco><default><geom size='.05' pos='.1 0 0'/><equality solref='-1 -.5' solimp='.4 .7 .3 .5 "
                        "2'/></default><worldbody><body name='a'><joint axis='0 1 0'/><geom/><body name='b' pos='.2 0 "
                        "0'><joint type='ball' pos='.02 0 .01'/><joint type='slide' axis='0 .6 .8'/><joint "
                        "type='slide' axis='1 0 0'/><geom/><body name='c' pos='0 0 .2'><joint axis='1 0 0'/><geom/>"
                        "</body></body></body></worldbody><equality><connect body1='c' anchor='0 .1 0'/><weld "
                        "body1='b' body2='a'/></equality></mujoco>");
  for (int i = 0; i < 10; ++i) {
    sn_constraint_sample(&o, 2);
    sn_constraint_make_rows(&o);
    sn_constraint_check_rows(&o, "ball and slide");
  }
  check_rows(&k, "ball and slide", &o, 10, 1e-7);
  sn_oracle_free(&o);
}

// Contacts from distance: rows of bodies that do not touch, softplus of those that do.
static void contacts_from_distance(void **state) {
  (void)state;
  static const SnConstraintCase c[2] = {{"elliptic", 4, 3, "0.02 1", "0 -2", "0.4 0.8 0.3 0.4 3", "", NULL},
                                        {"pyramidal", 6, 3, "-50 -2", "0 -2", "0.3 0.6 0.4 0.5 2", "", NULL}};
  SnCfd cfd = {.on = 1, .solimp = {0, SN_R(0.1), 1, SN_R(0.5), 2}, .width = SN_R(0.02)};
  static Rows k;
  memset(&k, 0, sizeof k);
  k.cfd = &cfd;
  for (int i = 0; i < 4; ++i) {
    SnOracle o;
    sn_constraint_load_contacts(&o, c + i % 2);
    cfd.friction = i / 2;
    k.speed = i % 2 ? 0.1 : 2;
    check_rows(&k, "contacts from distance", &o, 10, 1e-6);
    sn_oracle_free(&o);
  }
  assert_true(k.far > 100 && k.count[SN_CNSTR_CONTACT_FRICTIONLESS] > 50);
}

// Surfaces that move; contacts' points and frames turn with their geoms' here, and the fields with the geoms.
static void surfaces(void **state) {
  (void)state;
  static Rows k;
  memset(&k, 0, sizeof k);
  k.speed = 0.05;
  for (int i = 0; i < 2; ++i) {
    SnOracle o;
    sn_surface_load(&o, i == 1);
    check_rows(&k, "moving surfaces", &o, 10, 1e-6);
    sn_oracle_free(&o);
  }
  assert_true(k.count[SN_CNSTR_CONTACT_ELLIPTIC] > 50 && k.count[SN_CNSTR_CONTACT_PYRAMIDAL] > 50);
}

static void all_finite(const char *what, const sn_real *x, int n) {
  for (int i = 0; i < n; ++i)
    if (!isfinite(x[i])) fail_msg("%s[%d] = %g", what, i, (double)x[i]);
}

// Rows, solution and their adjoint at the oracle's state for qacc_bar = 1; everything finite.
static void whole(SnGradWorld *g) {
  const SnModel *m = g->m;
  sn_grad_world_sample(g);
  sn_grad_world_move(g, NULL);
  sn_forward(m, &g->w, &g->lane);
  sn_adjoint_clear(m, &g->a, &g->lane);
  for (int i = 0; i < m->nv; ++i) g->a.qacc_bar[i] = 1;
  sn_solve_vjp(m, &g->w, &g->a, &g->lane);
  sn_motion_propagate(m, &g->w, &g->a, &g->lane);
  sn_constraint_vjp(m, &g->w, &g->a, &g->lane);
  const int ncon = g->w.ncon[0], nefc = g->w.nefc[0];
  all_finite("row_z", g->a.row_z, 3 * nefc);
  all_finite("row_pos", g->a.row_pos, nefc);
  all_finite("con_dist_bar", g->a.con_dist_bar, ncon);
  all_finite("con_pos_bar", g->a.con_pos_bar, 3 * ncon);
  all_finite("con_frame_bar", g->a.con_frame_bar, 9 * ncon);
  all_finite("qpos_bar", g->a.qpos_bar, m->nv);
  all_finite("qvel_bar", g->a.qvel_bar, m->nv);
  all_finite("wrench", g->a.wrench, 6 * m->nbody);
  all_finite("twist_bar", g->a.twist_bar, 6 * SN_NMOTION * m->nbody);
  all_finite("acc_bar", g->a.acc_bar, 6 * m->nbody);
  all_finite("ten_length_bar", g->a.ten_length_bar, m->ntendon);
  all_finite("ten_rate_bar", g->a.ten_rate_bar, SN_NMOTION * m->ntendon);
}

static void load_world(SnOracle *o, SnGradWorld *g, const char *xml) {
  sn_oracle_load_string(o, xml);
  sn_grad_world_init(g, o);
  mj_resetData(o->mj, o->d);
}

static void free_world(SnOracle *o, SnGradWorld *g) {
  sn_grad_world_free(g);
  sn_oracle_free(o);
}

static void near(double ours, double expected) {
  if (!(fabs(ours - expected) <= SN_TOL(1e-9, 1e-3) * fmax(1e-3, fabs(expected))))
    fail_msg("%.12g, expected %.12g", ours, expected);
}

// A limit by the formulas of the manual, written down again; constant impedances, and both ends of the spline.
static void impedance(void **state) {
  (void)state;
  static const double solimp[][5] = {{.9, .9, .01, .5, 2}, {.3, .8, 0, .5, 2}, {0, 0, .1, .5, 2},
                                     {1, 1, .1, .5, 1},    {0, 1, .25, .5, 6}, {.2, .9, .25, .4, 3}};
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 3; ++j) {
      const double *p = solimp[i], r = j == 0 ? -.25 : (j == 1 ? -1. : -.125);
      char xml[1000];
      SnOracle o;
      SnGradWorld g;
      snprintf(xml, sizeof xml,
               "<mujoco><worldbody><body><joint type='slide' axis='1 0 0' range='0 9' limited='true' solreflimit='-50 "
               "-3' solimplimit='%g %g %g %g %g'/><geom size='.1'/></body></worldbody></mujoco>",
               p[0], p[1], p[2], p[3], p[4]);
      load_world(&o, &g, xml);
      o.d->qpos[0] = r;
      o.d->qvel[0] = -1;
      whole(&g);
      assert_int_equal(*g.w.nefc, 1);
      const double lambda = (double)g.a.row_lambda[0], c = (double)g.a.row_c[0], f = (double)g.w.efc_force[0];
      const double d0 = fmax(1e-4, fmin(p[0], .9999)), d1 = fmax(1e-4, fmin(p[1], .9999)), x = fmin(1, -r / p[2]);
      double d = d1, slope = 0, k = 50 / (d1 * d1);
      if (d0 == d1 || p[2] == 0) d = (d0 + d1) / 2;
      if (d0 != d1 && p[2] > 0 && x < 1) {
        d = d0 + (d1 - d0) *
                     (x <= p[3] ? pow(x, p[4]) / pow(p[3], p[4] - 1) : 1 - pow(1 - x, p[4]) / pow(1 - p[3], p[4] - 1));
        slope = -(d1 - d0) / p[2] * p[4] * (x <= p[3] ? pow(x / p[3], p[4] - 1) : pow((1 - x) / (1 - p[3]), p[4] - 1));
      }
      near((double)g.a.row_pos[0], -k * (d + slope * r) * c + lambda * f * slope / (d * (1 - d)));
      near((double)g.a.qpos_bar[0], (double)g.a.row_pos[0]);
      near((double)g.a.qvel_bar[0], -3 / d1 * c);
      free_world(&o, &g);
    }
}

// Residuals of norm zero: nothing comes through the impedance.
static void zero_residual(void **state) {
  (void)state;
  SnOracle o;
  SnGradWorld g;
  load_world(&o, &g,
             "<mujoco><default><equality solref='-50 -3' solimp='.3 .9 .01 .5 1'/></default><worldbody><body "
             "name='a'><freejoint/><geom size='.1'/></body><body name='b' pos='.5 0 0'><freejoint/><geom size='.1'/>"
             "</body></worldbody><equality><weld body1='a' body2='b'/><connect body1='a' anchor='0 .1 0'/></equality>"
             "</mujoco>");
  o.d->qvel[0] = 1;
  o.d->qvel[4] = 1;
  whole(&g);
  assert_int_equal(*g.w.nefc, 9);
  for (int i = 0; i < 9; ++i) {
    assert_true(fabs((double)g.w.efc_pos[i]) < 1e-12);
    near((double)g.a.row_pos[i], -50 / .81 * .3 * (double)g.a.row_c[i]);
  }
  free_world(&o, &g);
}

// A ball joint at angle 0, where its axis has no direction, next to it, and at pi.
static void ball_angles(void **state) {
  (void)state;
  static const double angle[] = {0, 1e-300, 1e-20, 1e-12, 1e-3, 3.14159265358979, 3.14159265358980, 6.283185307179586};
  SnOracle o;
  SnGradWorld g;
  load_world(&o, &g,
             "<mujoco><worldbody><body><joint type='ball' limited='true' range='0 .01' margin='.1'/><geom size='.1' "
             "pos='.1 0 .1'/></body></worldbody></mujoco>");
  for (int i = 0; i < 8; ++i) {
    o.d->qpos[0] = cos(angle[i] / 2);
    o.d->qpos[1] = 0.6 * sin(angle[i] / 2);
    o.d->qpos[2] = 0.8 * sin(angle[i] / 2);
    o.d->qpos[3] = 0;
    for (int k = 0; k < 3; ++k) o.d->qvel[k] = 1 + k;
    whole(&g);
    assert_int_equal(*g.w.nefc, 1);
    assert_true(g.a.qvel_bar[0] != 0 && g.a.qpos_bar[0] != 0);
  }
  free_world(&o, &g);
}

// A ball that falls straight: no slip, both cones; its contact resting, separated inside the margin, and just touching.
static void no_slip(void **state) {
  (void)state;
  static const char *const cone[] = {"pyramidal", "elliptic"};
  static const double height[] = {.09, .1, .105, .11};
  for (int c = 0; c < 2; ++c)
    for (int dim = 1; dim <= 6; dim += dim == 1 ? 2 : (dim == 3 ? 1 : 2)) {
      char xml[1000];
      SnOracle o;
      SnGradWorld g;
      snprintf(xml, sizeof xml,
               "<mujoco><option cone='%s'/><worldbody><geom type='plane' size='1 1 1' margin='.01' condim='%d'/><body "
               "pos='0 0 .09'><freejoint/><geom size='.1' condim='%d'/></body></worldbody></mujoco>",
               cone[c], dim, dim);
      load_world(&o, &g, xml);
      for (int i = 0; i < 4; ++i)
        for (int v = -1; v <= 1; ++v) {
          o.d->qpos[2] = height[i];
          o.d->qvel[2] = v;
          whole(&g);
          if (i == 0 && v == -1) assert_true(g.a.con_dist_bar[0] != 0);
        }
      free_world(&o, &g);
    }
}

// A tendon that is stretched straight in the model's pose: its inverse inertia is 0 and D sits at its bound.
static void bounded_weight(void **state) {
  (void)state;
  static Rows k;
  SnOracle o;
  memset(&k, 0, sizeof k);
  k.speed = 2;
  sn_oracle_load_string(
      &o,
      "<mujoco><worldbody><site name='w' pos='0 0 1'/><body><joint axis='0 1 0'/><geom size='.1'/><site name='s' "
      "pos='0 "
      "0 .5'/></body></worldbody><tendon><spatial limited='true' range='0 .1' solreflimit='-5 -3' solimplimit='.1 .9 3 "
      ".5 2'><site site='w'/><site site='s'/></spatial></tendon></mujoco>");
  check_rows(&k, "bounded weight", &o, 10, 1e-6);
  assert_true(o.m->tendon_invweight0[0] == 0);
  sn_oracle_free(&o);
}

// Fast and far out: joints to three times their range, bodies pushed into each other.
static void wild_states(void **state) {
  (void)state;
  static SnConstraintCase cases[200];
  const int n = sn_constraint_cases(cases, 200);
  for (int i = 0; i < n; i += 13)
    for (int kind = 0; kind < 2; ++kind) {
      SnOracle o;
      SnGradWorld g;
      (kind ? sn_constraint_load_contacts : sn_constraint_load_joints)(&o, cases + i);
      sn_grad_world_init(&g, &o);
      for (int s = 0; s < 20; ++s) {
        sn_constraint_sample(&o, 100);
        for (int j = 0; j < o.mj->njnt; ++j)
          if (o.mj->jnt_type[j] <= mjJNT_SLIDE && o.mj->jnt_type[j] != mjJNT_BALL)
            o.d->qpos[o.mj->jnt_qposadr[j]] *= o.mj->jnt_type[j] == mjJNT_FREE ? 1 : 3;
        whole(&g);
      }
      free_world(&o, &g);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(contacts),
                                     cmocka_unit_test(joints_tendons_equalities),
                                     cmocka_unit_test(weak),
                                     cmocka_unit_test(ball_and_slide),
                                     cmocka_unit_test(contacts_from_distance),
                                     cmocka_unit_test(surfaces),
                                     cmocka_unit_test(impedance),
                                     cmocka_unit_test(zero_residual),
                                     cmocka_unit_test(ball_angles),
                                     cmocka_unit_test(no_slip),
                                     cmocka_unit_test(bounded_weight),
                                     cmocka_unit_test(wild_states)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
