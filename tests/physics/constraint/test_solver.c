// The constrained acceleration against MuJoCo at tight tolerance, and what must hold at any solution.
#include "physics/step/step.h"
#include "physics/constraint/constraint.h"
#include "physics/constraint/solver_private.h"
#include "tests/support/constraint_models.h"

#include <stdio.h>
#include <stdlib.h>

static double worst_qacc, worst_force, worst_gradient;
static int most_iterations;

// gradient = M qacc - qfrc_smooth - J' force, relative to the size of its terms.
static double gradient_error(SnOracle *o) {
  const SnModel *m = o->m;
  double worst = 0, scale = 0, *Ma = calloc((size_t)m->nv + 1, sizeof *Ma);
  double *qacc = calloc((size_t)m->nv + 1, sizeof *qacc), *Jf = calloc((size_t)m->nv + 1, sizeof *Jf);
  for (int i = 0; i < m->nv; ++i) qacc[i] = (double)o->w.qacc[i];
  mj_mulM(o->mj, o->d, Ma, qacc);
  for (int r = 0; r < o->w.nefc[0]; ++r)
    for (int k = 0; k < o->w.efc_J_rownnz[r]; ++k) {
      const int adr = o->w.efc_J_rowadr[r] + k;
      Jf[o->w.efc_J_colind[adr]] += (double)o->w.efc_J[adr] * (double)o->w.efc_force[r];
      scale = sn_larger(scale, fabs((double)o->w.efc_J[adr] * (double)o->w.efc_force[r]));
    }
  for (int i = 0; i < m->nv; ++i) {
    worst = sn_larger(worst, fabs(Ma[i] - (double)o->w.qfrc_smooth[i] - Jf[i]));
    scale = sn_larger(scale, sn_larger(fabs(Ma[i]), fabs((double)o->w.qfrc_smooth[i])));
  }
  free(Ma);
  free(qacc);
  free(Jf);
  return worst / (scale + 1e-9);
}

// Complementarity of scalar rows and membership of the friction cones.
static void check_forces(SnOracle *o, const char *what) {
  const SnWorld *w = &o->w;
  for (int r = 0; r < w->nefc[0]; ++r) {
    const double f = (double)w->efc_force[r], jar = (double)w->efc_jar[r];
    switch (w->efc_type[r]) {
      case SN_CNSTR_EQUALITY:
        break;
      case SN_CNSTR_FRICTION_DOF:
      case SN_CNSTR_FRICTION_TENDON:
        if (!(fabs(f) <= (double)w->efc_frictionloss[r] * (1 + 1e-12))) fail_msg("%s: friction loss %g", what, f);
        break;
      case SN_CNSTR_CONTACT_ELLIPTIC: {
        const SnContact *con = w->contact + w->efc_id[r];
        if (con->efc_address != r) break;
        double t = 0;
        for (int j = 1; j < con->dim; ++j) {
          const double s = (double)(w->efc_force[r + j] / con->friction[j - 1]);
          t += s * s;
        }
        if (!(f >= 0 && sqrt(t) <= f * (1 + 16 * (double)SN_EPS) + 1e-9))
          fail_msg("%s: force outside its cone: normal %g, friction %g", what, f, sqrt(t));
        break;
      }
      default:
        if (!(f >= 0 && (f == 0 || jar <= 0))) fail_msg("%s: row %d pulls: force %g at residual %g", what, r, f, jar);
    }
  }
}

static void solve_and_check(SnOracle *o, const char *what) {
  const mjData *d = o->d;
  sn_constraint_make_rows(o);
  sn_world_poison(o->m, &o->w, SN_STAGE_SOLVER);
  sn_solve(o->m, &o->w, &o->lane);
  const double eq = sn_oracle_error(o->w.qacc, d->qacc, o->m->nv),
               ef = sn_oracle_error(o->w.efc_force, d->efc_force, d->nefc);
  const double ec = sn_oracle_error(o->w.qfrc_constraint, d->qfrc_constraint, o->m->nv), eg = gradient_error(o);
  if (!(eq <= SN_TOL_QACC)) fail_msg("%s: qacc: relative error %g", what, eq);
  if (!(ef <= SN_TOL_FORCE)) fail_msg("%s: efc_force: relative error %g", what, ef);
  if (!(ec <= SN_TOL_FORCE)) fail_msg("%s: qfrc_constraint: relative error %g", what, ec);
  if (!(eg <= SN_TOL_GRADIENT)) fail_msg("%s: gradient %g", what, eg);
  for (int r = 0; r < d->nefc; ++r)
    if (o->w.efc_state[r] != d->efc_state[r] && fabs(d->efc_force[r]) > 1e-6 * (1 + fabs(d->efc_force[r])))
      fail_msg("%s: row %d: state %d, MuJoCo %d (force %g)", what, r, o->w.efc_state[r], d->efc_state[r],
               d->efc_force[r]);
  for (int i = 0; i < o->m->nv; ++i) assert_true(o->w.qacc_warmstart[i] == o->w.qacc[i]);
  check_forces(o, what);
  if (*o->w.warn) fail_msg("%s: warning %d after %d iterations", what, *o->w.warn, o->w.solver_niter[0]);
  worst_qacc = sn_larger(worst_qacc, eq);
  worst_force = sn_larger(worst_force, ef);
  worst_gradient = sn_larger(worst_gradient, eg);
  if (o->w.solver_niter[0] > most_iterations) most_iterations = o->w.solver_niter[0];
}

static void report(const char *name) {
  printf("%s: worst qacc %.1e, force %.1e, gradient %.1e, most iterations %d\n", name, worst_qacc, worst_force,
         worst_gradient, most_iterations);
  worst_qacc = worst_force = worst_gradient = 0;
  most_iterations = 0;
}

static void over_cases(void (*load)(SnOracle *, const SnConstraintCase *), int samples, const char *name) {
  sn_constraint_for_cases(load, samples, name, solve_and_check);
  report(name);
}

static void contacts(void **state) {
  (void)state;
  over_cases(sn_constraint_load_contacts, 6, "contacts");
}

static void joints_tendons_equalities(void **state) {
  (void)state;
  over_cases(sn_constraint_load_joints, 4, "joints");
}

// H = M + J' C J at our solution, with MuJoCo's cone Hessians: dense, (nv, nv).
static double *dense_hessian(SnOracle *o) {
  const SnWorld *w = &o->w;
  const int nv = o->m->nv, nefc = w->nefc[0];
  double *H = calloc((size_t)nv * (size_t)nv + 1, sizeof *H), *J = calloc((size_t)nefc * (size_t)nv + 1, sizeof *J);
  double *jar = calloc((size_t)nefc + 1, sizeof *jar), cost;
  for (int r = 0; r < nefc; ++r) {
    jar[r] = (double)w->efc_jar[r];
    for (int k = 0; k < w->efc_J_rownnz[r]; ++k)
      J[r * nv + w->efc_J_colind[w->efc_J_rowadr[r] + k]] = (double)w->efc_J[w->efc_J_rowadr[r] + k];
  }
  mj_fullM(o->mj, o->d, H);
  mj_constraintUpdate(o->mj, o->d, jar, &cost, 1);
  for (int r = 0; r < nefc; ++r) {
    const bool cone = w->efc_state[r] == SN_CSTATE_CONE;
    const mjContact *con = o->d->contact + w->efc_id[r];
    if (!cone && w->efc_state[r] != SN_CSTATE_QUADRATIC) continue;
    const int first = cone ? con->efc_address : r, last = cone ? first + con->dim : r + 1;
    for (int s = first; s < last; ++s) {
      const double C = cone ? con->H[(r - first) * con->dim + (s - first)] : (double)w->efc_D[r];
      for (int i = 0; i < nv; ++i)
        for (int j = 0; j < nv; ++j) H[i * nv + j] += C * J[r * nv + i] * J[s * nv + j];
    }
  }
  free(J);
  free(jar);
  return H;
}

// |H x - b| of our factor's solution x for a random b, relative to the largest |H_ij x_j|.
static double factor_error(SnOracle *o) {
  const int nv = o->m->nv;
  double *H = dense_hessian(o), worst = 0, scale = 0;
  sn_real *x = calloc((size_t)nv + 1, sizeof *x);
  double *b = calloc((size_t)nv + 1, sizeof *b);
  for (int i = 0; i < nv; ++i) x[i] = (sn_real)(b[i] = sn_oracle_uniform(o));
  sn_hessian_solve(o->m, &o->w, &o->lane, x);
  for (int i = 0; i < nv; ++i) {
    double s = -b[i];
    for (int j = 0; j < nv; ++j) {
      s += H[i * nv + j] * (double)x[j];
      scale = sn_larger(scale, fabs(H[i * nv + j] * (double)x[j]));
    }
    worst = sn_larger(worst, fabs(s));
  }
  free(H);
  free(x);
  free(b);
  return worst / scale;
}

// The factor after a solve is that of H; so is one that was updated after rows had changed their state.
static void hessian(void **state) {
  (void)state;
  enum { MAXCASE = 200 };
  static SnConstraintCase cases[MAXCASE];
  const int n = sn_constraint_cases(cases, MAXCASE);
  double made = 0, updated = 0;
  int updates = 0;
  for (int i = 0; i < n; ++i) {
    SnOracle o;
    if (i % 3)
      sn_constraint_load_contacts(&o, cases + i);
    else
      sn_constraint_load_joints(&o, cases + i);
    for (int k = 0; k < 4; ++k) {
      sn_constraint_sample(&o, 0.5);
      sn_constraint_make_rows(&o);
      if (o.w.nefc[0] == 0) continue;
      sn_solve(o.m, &o.w, &o.lane);
      sn_hessian_factor(o.m, &o.w, &o.lane);
      made = sn_larger(made, factor_error(&o));
      int changed = 0;
      for (int r = o.w.nefc[0] - 1; r >= 0 && changed < SN_MAXUPDATE; r -= 3) {
        if (o.w.efc_state[r] == SN_CSTATE_CONE) continue;
        o.w.efc_state[r] = o.w.efc_state[r] == SN_CSTATE_QUADRATIC ? SN_CSTATE_SATISFIED : SN_CSTATE_QUADRATIC;
        ++changed;
      }
      sn_hessian_refresh(o.m, &o.w, &o.lane, changed, 0);
      updates += o.w.hessian_status[0] == SN_HESSIAN_UPDATED;
      updated = sn_larger(updated, factor_error(&o));
    }
    sn_oracle_free(&o);
  }
  printf("factor: relative residual %.1e, of %d updated ones %.1e\n", made, updates, updated);
  assert_true(updates > 100);
  if (!(made <= SN_TOL_FACTOR && updated <= SN_TOL_FACTOR)) fail_msg("factor of H: residual %g, %g", made, updated);
}

// Contacts between free bodies neither push nor turn the two of them as a whole.
// A heap of free bodies that all hang together: common columns of the factor come in runs.
static void heaps(void **state) {
  (void)state;
  static const char *const cone[] = {"pyramidal", "elliptic"};
  double residual = 0;
  for (int c = 0; c < 2; ++c) {
    SnOracle o;
    char xml[8000];
    int n =
        snprintf(xml, sizeof xml, "<mujoco><option cone='%s'/><worldbody><geom type='plane' size='5 5 1'/>", cone[c]);
    for (int i = 0; i < 27; ++i)
      n += snprintf(xml + n, sizeof xml - (size_t)n, "<body pos='%g %g %g'><freejoint/><geom size='.05'/></body>",
                    .0995 * (i % 3), .0995 * (i / 3 % 3), .0495 + .0995 * (i / 9));
    snprintf(xml + n, sizeof xml - (size_t)n, "</worldbody></mujoco>");
    sn_oracle_load_string(&o, xml);
    for (int k = 0; k < 10; ++k) {
      for (int i = 0; i < o.mj->nv; ++i) o.d->qvel[i] = .02 * sn_oracle_uniform(&o);
      mj_forward(o.mj, o.d);
      assert_true(o.d->ncon > 40);
      sn_oracle_fill(&o);
      solve_and_check(&o, "heap");
      sn_hessian_factor(o.m, &o.w, &o.lane);
      residual = sn_larger(residual, factor_error(&o));
      mj_step(o.mj, o.d);
    }
    sn_oracle_free(&o);
  }
  printf("heaps: factor: relative residual %.1e\n", residual);
  if (!(residual <= SN_TOL_FACTOR)) fail_msg("heaps: factor of H: residual %g", residual);
  report("heaps");
}

static void momentum(void **state) {
  (void)state;
  static const char *const cone[] = {"pyramidal", "elliptic"};
  for (int c = 0; c < 2; ++c) {
    SnOracle o;
    char xml[2000];
    snprintf(xml, sizeof xml,
             "<mujoco><option cone='%s' gravity='0 0 0'/><default><geom condim='6' friction='0.8 0.1 "
             "0.05'/></default><worldbody>"
             "<body><freejoint/><geom type='box' size='0.2 0.1 0.1'/></body>"
             "<body pos='0 0 0.18'><freejoint/><geom type='capsule' size='0.1' fromto='-0.2 0 0 0.2 0 0'/></body>"
             "<body pos='0.3 0 0'><freejoint/><geom type='sphere' size='0.12'/></body></worldbody></mujoco>",
             cone[c]);
    sn_oracle_load_string(&o, xml);
    int touching = 0;
    for (int k = 0; k < 30; ++k) {
      for (int i = 0; i < o.mj->nq; ++i) o.d->qpos[i] = o.mj->qpos0[i] + 0.02 * sn_oracle_uniform(&o);
      for (int i = 0; i < o.mj->nv; ++i) o.d->qvel[i] = sn_oracle_uniform(&o);
      mj_forward(o.mj, o.d);
      sn_oracle_fill(&o);
      solve_and_check(&o, "momentum");
      touching += o.w.ncon[0];
      double force[3] = {0}, torque[3] = {0}, size = 1e-9;
      for (int b = 0; b < 3; ++b) {
        double f[3], local[3], t[3], arm[3];
        for (int i = 0; i < 3; ++i) {
          f[i] = (double)o.w.qfrc_constraint[6 * b + i];
          local[i] = (double)o.w.qfrc_constraint[6 * b + 3 + i];
          size = sn_larger(size, fabs(f[i]));
        }
        mju_mulMatVec3(t, o.d->xmat + 9 * (b + 1), local);  // a free joint's torque is in the body's frame
        mju_cross(arm, o.d->xpos + 3 * (b + 1), f);
        for (int i = 0; i < 3; ++i) {
          force[i] += f[i];
          torque[i] += t[i] + arm[i];
        }
      }
      for (int i = 0; i < 3; ++i)
        if (!(sn_larger(fabs(force[i]), fabs(torque[i])) <= SN_TOL_MOMENTUM * size))
          fail_msg("momentum: force %g, torque %g of %g", force[i], torque[i], size);
    }
    assert_true(touching > 30);
    sn_oracle_free(&o);
  }
}

// Cold start, no rows, too few iterations, MuJoCo's default tolerance.
static void options(void **state) {
  (void)state;
  static const SnConstraintCase c = {"elliptic", 4, 1, "0.02 1", "0 0", "0.9 0.95 0.001 0.5 2", "", NULL};
  SnOracle o;
  sn_constraint_load_contacts(&o, &c);
  int starved = 0, ours = 0, theirs = 0;
  for (int k = 0; k < 40; ++k) {
    o.mj->opt.tolerance = 1e-14;
    o.m->opt.tolerance = SN_R(1e-14);
    sn_constraint_sample(&o, 1);
    o.m->opt.disableflags |= SN_DSBL_WARMSTART;
    solve_and_check(&o, "cold start");
    o.m->opt.disableflags &= ~SN_DSBL_WARMSTART;

    o.m->opt.iterations = 1;
    sn_oracle_copy_state(&o);
    sn_solve(o.m, &o.w, &o.lane);
    assert_int_equal(o.w.solver_niter[0], o.w.nefc[0] > 0);
    starved += *o.w.warn == SN_WARN_NOT_CONVERGED;
    o.m->opt.iterations = 200;

    o.mj->opt.tolerance = 1e-8;
    o.m->opt.tolerance = SN_R(1e-8);
    mj_forward(o.mj, o.d);
    sn_oracle_copy_state(&o);
    sn_solve(o.m, &o.w, &o.lane);
    assert_int_equal(*o.w.warn, 0);
    ours += o.w.solver_niter[0];
    theirs += o.d->solver_niter[0];
    const double e = sn_oracle_error(o.w.qacc, o.d->qacc, o.m->nv);
    if (!(e <= SN_TOL(1e-4, 1e-2))) fail_msg("default tolerance: qacc: relative error %g", e);
  }
  printf("default tolerance: %d iterations, MuJoCo %d\n", ours, theirs);
  assert_true(starved > 5);
  assert_true(ours <= theirs + theirs / 4);
  o.w.qfrc_smooth[0] = o.w.qacc_smooth[0] = (sn_real)NAN;  // a diverged body must not spoil the next start
  sn_solve(o.m, &o.w, &o.lane);
  for (int i = 0; i < o.m->nv; ++i) assert_true(isfinite(o.w.qacc_warmstart[i]));
  o.w.qfrc_smooth[0] = o.w.qacc_smooth[0] = 0;
  o.m->opt.disableflags |= SN_DSBL_CONSTRAINT;
  sn_make_constraint(o.m, &o.w, &o.lane);
  sn_reference_constraint(o.m, &o.w, &o.lane);
  sn_solve(o.m, &o.w, &o.lane);
  assert_int_equal(o.w.nefc[0], 0);
  for (int i = 0; i < o.m->nv; ++i) assert_true(o.w.qacc[i] == o.w.qacc_smooth[i] && o.w.qfrc_constraint[i] == 0);
  sn_oracle_free(&o);
}

// A body that turns about its own centre, and an equality that pulls at it: of three rows as stiff as can be two say
// the same, and the factor of H has no digit left. Whole steps would end at 1e24.
static void dependent_rows(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o,
                        "<mujoco><worldbody><body name='still'/><body name='turns' pos='-.147 -.204 .331' "
                        "euler='0 45 0'><joint type='ball'/><geom type='ellipsoid' size='.05 .03 .07'/></body>"
                        "</worldbody><equality><connect body1='still' body2='turns' anchor='0 0 .1'/></equality>"
                        "</mujoco>");
  for (int step = 0; step < 50; ++step) {
    mj_forward(o.mj, o.d);
    sn_oracle_copy_state(&o);
    sn_forward(o.m, &o.w, &o.lane);
    for (int i = 0; i < o.m->nv; ++i) {
      const double error = fabs((double)o.w.qacc[i] - o.d->qacc[i]);
      if (!(error <= SN_TOL(1e-6, 1e-2) * (1 + fabs(o.d->qacc[i]))))
        fail_msg("step %d: qacc[%d] is %g, MuJoCo's %g", step, i, (double)o.w.qacc[i], o.d->qacc[i]);
    }
    mj_step(o.mj, o.d);
  }
  sn_oracle_free(&o);
}

static void real_models(void **state) {
  (void)state;
  for (int steps = 100; steps <= 300; steps += 200) sn_constraint_for_real(steps, solve_and_check);
  report("real models");
}

int main(void) {
  printf("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(contacts),       cmocka_unit_test(joints_tendons_equalities),
                                     cmocka_unit_test(hessian),        cmocka_unit_test(heaps),
                                     cmocka_unit_test(momentum),       cmocka_unit_test(options),
                                     cmocka_unit_test(dependent_rows), cmocka_unit_test(real_models)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
