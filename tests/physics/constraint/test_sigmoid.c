// Smoothed hard contacts: their formulas, the sweeps whose limit they are, bodies that fall, rest, bounce and slide.
#include <stdio.h>

#include "physics/constraint/constraint.h"
#include "physics/constraint/constraint_private.h"
#include "physics/dynamics/dynamics.h"
#include "physics/step/step.h"
#include "tests/support/constraint_models.h"
#include "tests/support/sigmoid_model.h"
#include "tests/support/slow.h"
#include "tests/support/tolerance.h"

static void close_to(double ours, double expected, double tolerance) {
  if (!(fabs(ours - expected) <= tolerance)) fail_msg("%.12g, expected %.12g within %.2g", ours, expected, tolerance);
}

// A ball of 2 kg that moves up and down over a plane; it touches at qpos 0. Its inverse weight is exact.
static const char kBall[] =
    "<mujoco><option timestep='.004'/><worldbody><geom type='plane' size='1 1 1' condim='1'/><body pos='0 0 .1'>"
    "<joint type='slide' axis='0 0 1'/><geom size='.1' mass='2' condim='1'/></body></worldbody></mujoco>";

static double ball_speed(double r, double v, double width, double stiffness, double restitution) {
  const double h = 0.004, s = 0.9999 / (1 + exp(r / width)), depth = width * log1p(exp(-r / width));
  return (1 - s) * (v - 9.81 * h) + s * (-restitution * v + stiffness / h * s * depth);
}

// The velocity after a step, by the formulas written down again; a row within 20 widths, none beyond.
static void formulas(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, kBall);
  for (int e = 0; e < 2; ++e) {
    sn_oracle_sigmoid(&o, 0.003, 0.2, 0.6 * e);
    for (int i = -10; i < 25; ++i) {
      const double r = 0.0029 * i, v = 0.1 * (i % 3) - 0.4;
      o.w.qpos[0] = (sn_real)r;
      o.w.qvel[0] = (sn_real)v;
      sn_step(o.m, &o.w, &o.lane);
      assert_int_equal(*o.w.nefc, r <= 0.06);
      const double expected = ball_speed(r, v, 0.003, 0.2, 0.6 * e), free = v - 9.81 * 0.004;
      close_to((double)o.w.qvel[0], r > 0.06 ? free : fmax(expected, free), SN_TOL(1e-9, 1e-5));
    }
  }
  sn_oracle_free(&o);
}

// Sweeps of projected Gauss-Seidel over rows of contacts whose forces are scaled, until none changes by more than
// 1e-12 of the largest. Returns their number; f (nefc): forces.
static int sweeps(const SnModel *m, const SnWorld *w, double *f) {
  const int n = *w->nefc, nv = m->nv;
  sn_real *B = calloc((size_t)n * (size_t)nv, sizeof *B);
  double *A = calloc((size_t)n, sizeof *A), *a = calloc((size_t)nv, sizeof *a), largest = 0, change = 1;
  int count = 0;
  for (int i = 0; i < nv; ++i) a[i] = (double)w->qacc_smooth[i];
  for (int i = 0; i < n; ++i) A[i] = (double)sn_inverse_row(m, w, w->efc_J_rowadr[i], w->efc_J_rownnz[i], B + i * nv);
  for (; change > 1e-12 * largest && count < 1000000; ++count) {
    change = 0;
    for (int i = 0; i < n; ++i) {
      double g = -(double)w->efc_aref[i];
      for (int k = w->efc_J_rowadr[i]; k < w->efc_J_rowadr[i] + w->efc_J_rownnz[i]; ++k)
        g += (double)w->efc_J[k] * a[w->efc_J_colind[k]];
      const double share = A[i] / (A[i] + (double)w->efc_R[i]), next = share * fmax(0, f[i] - g / A[i]);
      for (int q = 0; q < nv; ++q) a[q] += (next - f[i]) * (double)B[i * nv + q];
      change = sn_larger(change, fabs(next - f[i]));
      largest = sn_larger(largest, fabs(next));
      f[i] = next;
    }
  }
  free(B);
  free(A);
  free(a);
  return count;
}

// A heap, with exact diagonals, so that the first row of a contact is scaled by the sigmoid itself.
static const char kHeap[] =
    "<mujoco><option timestep='.004'><flag diagexact='enable'/></option><default><geom condim='%d' "
    "friction='.7'/></default>"
    "<worldbody><geom type='plane' size='1 1 1'/><body pos='0 0 .1'><freejoint/><geom type='box' size='.1 .1 .1'/>"
    "</body><body pos='.05 0 .25'><freejoint/><geom size='.05'/></body>"
    "<body pos='-.05 .02 .25'><freejoint/><geom type='capsule' size='.05 .05'/></body></worldbody></mujoco>";

// The solver's forces are those in which the sweeps end.
static void limit_of_sweeps(void **state) {
  (void)state;
  for (int condim = 1; condim <= 3; condim += 2) {
    SnOracle o;
    char xml[2000];
    int most = 0, newton = 0, rows = 0;
    double worst = 0;
    snprintf(xml, sizeof xml, kHeap, condim);
    sn_oracle_load_string(&o, xml);
    sn_oracle_sigmoid(&o, 0.004, 0.2, 0);
    for (int k = 0; k < sn_draws(10); ++k) {
      for (int i = 0; i < o.m->nq; ++i) o.w.qpos[i] = o.m->qpos0[i];
      for (int b = 0; b < 3; ++b) o.w.qpos[7 * b + 2] += (sn_real)(0.004 * sn_oracle_uniform(&o));
      for (int i = 0; i < o.m->nv; ++i) o.w.qvel[i] = (sn_real)(0.3 * sn_oracle_uniform(&o));
      sn_forward(o.m, &o.w, &o.lane);
      sn_solve_finish(o.m, &o.w, &o.lane);
      double *f = calloc((size_t)*o.w.nefc, sizeof *f), size = 0;
      const int count = sweeps(o.m, &o.w, f);
      for (int i = 0; i < *o.w.nefc; ++i) {
        if (condim == 1)
          close_to((double)(1 / (1 + o.w.efc_R[i] / o.w.efc_diagA[i])),
                   0.9999 / (1 + exp((double)o.w.efc_pos[i] / 0.004)), SN_TOL(1e-12, 1e-5));
        size = sn_larger(size, f[i]);
      }
      for (int i = 0; i < *o.w.nefc; ++i) worst = sn_larger(worst, fabs(f[i] - (double)o.w.efc_force[i]) / size);
      most = count > most ? count : most;
      newton = *o.w.solver_niter > newton ? *o.w.solver_niter : newton;
      rows = *o.w.nefc > rows ? *o.w.nefc : rows;
      free(f);
    }
    printf("condim %d: up to %d rows, %d sweeps, %d iterations of Newton; forces differ by %.2g\n", condim, rows, most,
           newton, worst);
    assert_true(worst < SN_TOL(1e-8, 1e-2) && most > 20);
    sn_oracle_free(&o);
  }
}

// Runs n steps from the present state.
static void run(SnOracle *o, int n) {
  for (int i = 0; i < n; ++i) sn_step(o->m, &o->w, &o->lane);
  assert_int_equal(*o->w.warn, 0);
}

// A ball comes to rest where weight and reference balance; without stiffness it sinks as the logarithm of time.
static void rest(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, kBall);
  for (int k = 0; k < 2; ++k) {
    const double width = k ? 0.001 : 0.004, h = 0.004;
    sn_oracle_sigmoid(&o, width, 0.2, 0);
    o.w.qpos[0] = SN_R(0.05);
    run(&o, 2000);
    close_to((double)o.w.qvel[0], 0, SN_TOL(1e-9, 1e-5));
    const double r = (double)o.w.qpos[0], s = 0.9999 / (1 + exp(r / width));
    const double up = 0.2 / (h * h) * s * width * log1p(exp(-r / width));
    close_to(up * s / (1 - s), 9.81, SN_TOL(1e-5, 0.1));
  }
  sn_oracle_sigmoid(&o, 0.004, 0, 0);
  o.w.qpos[0] = 0;
  run(&o, 1000);
  const double early = (double)o.w.qpos[0];
  run(&o, 1000);
  close_to(((double)o.w.qpos[0] - early) / 0.004, -log(2), 0.02);
  sn_oracle_free(&o);
}

// Where the sigmoid is much narrower than what a step moves by, a ball leaves with the share e of its velocity.
static void bounce(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, kBall);
  sn_oracle_sigmoid(&o, 1e-5, 0, 0.7);
  o.w.qpos[0] = SN_R(0.3);
  double fastest = 0;
  for (int i = 0; i < 100; ++i) {
    run(&o, 1);
    fastest = sn_larger(fastest, (double)o.w.qvel[0]);
  }
  close_to(fastest, 0.7 * sqrt(2 * 9.81 * 0.3), 0.06);
  sn_oracle_free(&o);
}

static const char kBox[] =
    "<mujoco><option timestep='.004' cone='%s'/><default><geom friction='.5'/></default><worldbody>"
    "<geom type='plane' size='9 9 1'/><body pos='0 0 .1'><freejoint/><geom type='box' size='.1 .1 .1'/></body>"
    "</worldbody></mujoco>";

// A box that is pushed slides to a stop as Coulomb's law has it, whichever way it goes, is not lifted by it, and stays.
static void slide(void **state) {
  (void)state;
  for (int cone = 0; cone < 2; ++cone) {
    SnOracle o;
    char xml[1000];
    snprintf(xml, sizeof xml, kBox, cone ? "elliptic" : "pyramidal");
    sn_oracle_load_string(&o, xml);
    sn_oracle_sigmoid(&o, 0.001, 0.2, 0);
    for (int way = 0; way < 2; ++way) {
      const double start = (double)o.w.qpos[way];
      double highest = -1, lowest = 1;
      run(&o, 200);
      o.w.qvel[way] = 2;
      for (int i = 0; i < 300; ++i) {
        run(&o, 1);
        highest = sn_larger(highest, (double)o.w.qpos[2] - 0.1);
        lowest = fmin(lowest, (double)o.w.qpos[2] - 0.1);
      }
      printf("%s: way %.4f m, height from %.2g to %.2g m\n", cone ? "elliptic" : "pyramidal",
             (double)o.w.qpos[way] - start, lowest, highest);
      close_to((double)o.w.qpos[way] - start, 4 / (2 * 0.5 * 9.81), 0.02);
      close_to((double)o.w.qvel[way], 0, 1e-6);
      assert_true(highest < 0.003 && lowest > -0.003);
    }
    sn_oracle_free(&o);
  }
}

// Joints and tendons with limits, losses and equalities do as without the option: no contact, the same bits.
static void other_rows(void **state) {
  (void)state;
  static SnConstraintCase cases[200];
  const int n = sn_constraint_cases(cases, 200);
  int rows = 0;
  for (int i = 0; i < n; i += 17) {
    SnOracle a, b;
    sn_constraint_load_joints(&a, cases + i);
    sn_constraint_load_joints(&b, cases + i);
    sn_oracle_sigmoid(&b, 0.002, 0.3, 0.5);
    for (int k = 0; k < 5; ++k) {
      sn_oracle_randomize(&a, 1);
      sn_oracle_randomize(&b, 1);
      sn_oracle_copy_state(&a);
      sn_oracle_copy_state(&b);
      sn_forward(a.m, &a.w, &a.lane);
      sn_forward(b.m, &b.w, &b.lane);
      if (*a.w.ncon + *b.w.ncon > 0) continue;
      rows += *a.w.nefc;
      assert_memory_equal(a.w.qacc, b.w.qacc, sizeof *a.w.qacc * (size_t)a.m->nv);
    }
    sn_oracle_free(&a);
    sn_oracle_free(&b);
  }
  assert_true(rows > 100);
}

static void refuse(const char *xml, void change(SnOption *), const char *words) {
  const sn_real none[SN_NIMP] = {(sn_real)NAN, (sn_real)NAN, (sn_real)NAN, (sn_real)NAN, (sn_real)NAN};
  SnOracle o;
  SnError err = {0};
  sn_oracle_load_string(&o, xml);
  SnOption opt = o.m->opt;
  opt.contact = SN_CONTACT_SIGMOID;
  if (change) change(&opt);
  if (sn_option_check(&opt, &err) == SN_OK) assert_null(sn_model_with_options(o.m, &opt, none, none, &err));
  if (!strstr(err.text, words)) fail_msg("no \"%s\" in: %s", words, err.text);
  sn_oracle_free(&o);
}

static void rk4(SnOption *o) { o->integrator = SN_INT_RK4; }
static void sleep_on(SnOption *o) { o->enableflags |= SN_ENBL_SLEEP; }
static void speculative(SnOption *o) { o->enableflags |= SN_ENBL_SPECULATIVE; }
static void unknown(SnOption *o) { o->contact = 2; }
static void no_width(SnOption *o) { o->contact_width = 0; }
static void stiff(SnOption *o) { o->contact_stiffness = SN_R(1.5); }
static void springy(SnOption *o) { o->contact_restitution = -1; }

static void refusals(void **state) {
  (void)state;
  refuse(kBall, rk4,
         "option 'contact': sigmoid in a model with integrator RK4 (supported: Euler, implicit, implicitfast)");
  refuse(kBall, sleep_on, "option 'contact': sigmoid in a model with flag sleep is not supported");
  refuse(kBall, speculative, "option 'contact': sigmoid in a model with flag speculative is not supported");
  refuse(kBall, unknown, "option contact is 2: must be mujoco (0) or sigmoid (1)");
  refuse(kBall, no_width, "option contact_width is 0: must be 1e-06 to 1 m");
  refuse(kBall, stiff, "option contact_stiffness is 1.5: must be 0 to 1");
  refuse(kBall, springy, "option contact_restitution is -1: must be 0 to 1");
  refuse(
      "<mujoco><worldbody><geom type='plane' size='1 1 1'/><body name='b' pos='0 0 1'><freejoint/><geom size='.1'/>"
      "</body></worldbody><actuator><adhesion name='glue' body='b' ctrlrange='0 1'/></actuator></mujoco>",
      NULL, "option 'contact': sigmoid in a model with adhesion, actuator 0 'glue', is not supported");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(formulas), cmocka_unit_test(limit_of_sweeps),
                                     cmocka_unit_test(rest),     cmocka_unit_test(bounce),
                                     cmocka_unit_test(slide),    cmocka_unit_test(other_rows),
                                     cmocka_unit_test(refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
