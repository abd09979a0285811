#include "tests/support/constraint_models.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "physics/constraint/constraint.h"

int sn_constraint_cases(SnConstraintCase *out, int max) {
  static const char *const cone[] = {"pyramidal", "elliptic"};
  static const int condim[] = {1, 3, 4, 6};
  static const double impratio[] = {1, 10, 0.3};
  static const char *const solref[] = {"0.02 1", "0.004 0.7", "-2000 -30"};
  static const char *const friction[] = {"0 0", "0.05 1.5", "0 -80"};
  static const char *const solimp[] = {"0.9 0.95 0.001 0.5 2", "0 0.99 0.03 0.3 3", "0.2 0.8 0.02 0.6 1"};
  static const char *const flag[] = {"", "refsafe=\"disable\""};
  int n = 0;
  for (int a = 0; a < 2; ++a)
    for (int b = 0; b < 4; ++b)
      for (int c = 0; c < 3; ++c)
        for (int d = 0; d < 3; ++d)
          for (int e = 0; e < 2; ++e) {
            if (n == max) return n;
            out[n] = (SnConstraintCase){
                cone[a], condim[b], impratio[c], solref[d], friction[(b + c + d) % 3], solimp[(a + b + d + e) % 3],
                flag[e], NULL};
            ++n;
          }
  return n;
}

void sn_constraint_load_contacts(SnOracle *o, const SnConstraintCase *c) {
  char xml[8000];
  snprintf(
      xml, sizeof xml,
      "<mujoco><option cone='%s' impratio='%g' timestep='0.004' %s><flag %s/></option>"
      "<default><geom condim='%d' solref='%s' solimp='%s' friction='0.7 0.02 0.003' density='800'/></default>"
      "<worldbody><geom type='plane' size='5 5 1' margin='0.01'/>"
      "<body pos='0 0 0.09'><freejoint/><geom type='box' size='0.1 0.07 0.1'/></body>"
      "<body pos='0.25 0 0.1'><freejoint/><geom type='sphere' size='0.1' friction='0.4 0.03 0.01'/></body>"
      "<body pos='0 0 0.29'><joint type='ball' damping='0.1'/><geom type='capsule' size='0.1' fromto='0 0 0 0 0.1 "
      "0'/></body>"
      "<body pos='0.5 0 0.3'><joint axis='0 1 0'/><geom name='upper' type='capsule' size='0.04' fromto='0 0 0 0 0 "
      "-0.3'/>"
      "  <body pos='0 0 -0.3'><joint axis='0 1 0'/><geom type='capsule' size='0.04' fromto='0 0 0 -0.2 0 0'/>"
      "    <body pos='-0.2 0 0'><joint axis='0 1 0'/><joint type='slide' axis='1 0 0'/>"
      "      <geom name='tip' type='capsule' size='0.04' fromto='0 0 0 0 0 0.25'/></body>"
      "    <body pos='0.1 0 0'><joint axis='1 0 0'/><geom name='side' type='sphere' size='0.1'/></body></body></body>"
      "<geom name='post' type='cylinder' size='0.05 0.2' pos='0.5 0.12 0.1'/>"
      "</worldbody>"
      "<contact><pair geom1='tip' geom2='upper' condim='%d' solref='%s' solreffriction='%s' friction='0.9 0.5 0.01 "
      "0.002 0.001'/>"
      "<pair geom1='side' geom2='tip' condim='3' friction='0.3 1.1 0.01 0.002 0.003' gap='0.02' margin='0.04'/>"
      "</contact></mujoco>",
      c->cone, c->impratio, c->option ? c->option : "", c->flag, c->condim, c->solref, c->solimp, c->condim, c->solref,
      c->solreffriction);
  sn_oracle_load_string(o, xml);
}

void sn_constraint_load_bodies(SnOracle *o, const SnConstraintCase *c) {
  char xml[3000];
  snprintf(xml, sizeof xml,
           "<mujoco><option timestep='0.004' cone='%s' impratio='%g' %s><flag %s/></option><default><geom condim='%d' "
           "solref='%s' "
           "solimp='%s' friction='0.7 0.02 0.01' density='800'/></default><worldbody><geom type='plane' size='5 5 1'/>"
           "<body pos='0 0 0.09'><freejoint/><geom type='box' size='0.1 0.07 0.1'/></body>"
           "<body pos='0.25 0 0.095'><freejoint/><geom type='sphere' size='0.1' friction='0.4 0.03 0.02'/></body>"
           "<body pos='0.25 0.3 0.04' euler='0 85 0'><freejoint/><geom type='capsule' size='0.05 0.1'/>"
           "<body pos='0 0.09 0'><joint axis='0 0.3 1' frictionloss='0.05' armature='0.01'/>"
           "<geom type='sphere' size='0.05' pos='0 0.06 0'/></body></body>"
           "<body pos='0.21 0.02 0.26'><freejoint/><geom type='sphere' size='0.07'/></body></worldbody></mujoco>",
           c->cone, c->impratio, c->option ? c->option : "", c->flag, c->condim, c->solref, c->solimp);
  sn_oracle_load_string(o, xml);
}

void sn_constraint_load_joints(SnOracle *o, const SnConstraintCase *c) {
  char xml[8000];
  snprintf(
      xml, sizeof xml,
      "<mujoco><compiler autolimits='true'/><option cone='%s' impratio='%g' timestep='0.004' %s><flag "
      "contact='disable' "
      "%s/></option>"
      "<default><geom type='capsule' size='0.03' fromto='0 0 0 0 0 -0.2' density='900'/>"
      "<joint solreflimit='%s' solimplimit='%s' solreffriction='%s' solimpfriction='0.8 0.9 0.01 0.5 2'/>"
      "<tendon solreflimit='%s' solimplimit='%s' solreffriction='0.03 0.8'/>"
      "<equality solref='%s' solimp='%s'/></default>"
      "<worldbody><site name='w0' pos='0.3 0 0.6'/><site name='w1' pos='0 0.3 0.4' euler='20 30 40'/>"
      "<body name='a0' pos='0 0 1'><joint name='j0' axis='1 0 0' range='-30 20' margin='0.2' "
      "frictionloss='0.4'/><geom/>"
      "  <body name='a1' pos='0 0 -0.2'><joint name='j1' type='slide' axis='0 0.6 0.8' range='-0.1 0.2' "
      "margin='0.3'/><geom/>"
      "    <site name='s1' pos='0.02 0.03 -0.1' euler='10 -50 70'/>"
      "    <body name='a2' pos='0 0 -0.2'><joint name='j2' type='ball' range='0 40' margin='0.1' "
      "frictionloss='0.05'/><geom/>"
      "      <site name='s2' pos='0 0 -0.15'/>"
      "      <body name='a3' pos='0 0 -0.2'><joint name='j3' axis='0 1 0' "
      "frictionloss='0.2'/><geom/></body></body></body></body>"
      "<body name='b0' pos='0.4 0 1'><freejoint/><geom/><site name='s3' pos='0.05 0.01 -0.02' euler='0 45 10'/>"
      "  <body name='b1' pos='0 0 -0.2'><joint name='j4' axis='0 1 1' range='-20 20'/><geom/>"
      "    <body name='b2' pos='0 0 -0.2'><joint name='j5' axis='1 0 0'/><geom/><site name='s4'/></body></body></body>"
      "<body name='m0' mocap='true' pos='0.4 0.3 1'/>"
      "<body name='c0' pos='-0.4 0 1'><joint type='ball' name='j6'/><geom/></body>"
      "</worldbody>"
      "<tendon><fixed name='t0' range='-0.2 0.1' margin='0.05' frictionloss='0.3'><joint joint='j0' coef='1'/><joint "
      "joint='j1' coef='-2'/></fixed>"
      "<spatial name='t1' range='0 0.3' frictionloss='0.2'><site site='w0'/><site site='s1'/><site "
      "site='s2'/></spatial>"
      "<spatial name='t2'><site site='w0'/><site site='s4'/></spatial>"
      "<spatial name='t3'><site site='w0'/><site site='w1'/></spatial>"
      "<spatial name='t4' range='0.4 0.45' margin='0.1'><site site='s2'/><site site='s4'/></spatial></tendon>"
      "<equality><connect body1='a1' body2='b1' anchor='0.1 0 -0.1'/><connect body1='a3' anchor='0 0.05 0'/>"
      "<connect site1='s2' site2='s3'/><weld body1='b0' body2='m0' torquescale='0.7'/>"
      "<weld body1='a2' body2='c0' relpose='0.1 0.2 0.3 0.6 0.8 0 0.1' anchor='0.02 0.01 0.03' torquescale='2'/>"
      "<weld site1='s1' site2='s3' torquescale='1.5'/><weld body1='b2' body2='a0' active='false'/>"
      "<weld body1='a2' body2='a1'/><connect body1='m0' body2='world' anchor='0 0 0'/>"
      "<joint joint1='j0' joint2='j3' polycoef='0.1 0.5 -0.3 0.2 0.1'/><joint joint1='j5' polycoef='0.2'/>"
      "<tendon tendon1='t0' tendon2='t1' polycoef='0.05 0.4 0.1 -0.2 0.3'/><tendon tendon1='t2' polycoef='0.1'/>"
      "</equality></mujoco>",
      c->cone, c->impratio, c->option ? c->option : "", c->flag, c->solref, c->solimp, c->solref, c->solref, c->solimp,
      c->solref, c->solimp);
  sn_oracle_load_string(o, xml);
}

// Anywhere in the range of the joints and somewhat beyond it.
static void far_state(SnOracle *o, double speed) {
  const mjModel *mj = o->mj;
  sn_oracle_randomize(o, speed);
  for (int j = 0; j < mj->njnt; ++j) {
    double *q = o->d->qpos + mj->jnt_qposadr[j];
    if (mj->jnt_type[j] == mjJNT_FREE) continue;
    if (mj->jnt_type[j] == mjJNT_BALL)
      q[0] += 1.5 * (1 + sn_oracle_uniform(o));
    else if (mj->jnt_limited[j])
      q[0] += 0.3 * sn_oracle_uniform(o);
    if (mj->jnt_type[j] == mjJNT_BALL) mju_normalize4(q);
  }
}

// Close to the reference pose, where equalities nearly hold: rows in every state.
static void near_state(SnOracle *o, double speed) {
  const mjModel *mj = o->mj;
  sn_oracle_randomize(o, speed);
  double *v = calloc((size_t)mj->nv + 1, sizeof *v);
  for (int i = 0; i < mj->nv; ++i) v[i] = sn_oracle_uniform(o);
  mju_copy(o->d->qpos, mj->qpos0, mj->nq);
  mj_integratePos(mj, o->d->qpos, v, 0.02);
  free(v);
}

void sn_constraint_sample(SnOracle *o, double speed) {
  const mjModel *mj = o->mj;
  if (speed < 0.2)
    near_state(o, speed);
  else
    far_state(o, speed);
  for (int i = 0; i < mj->nv; ++i) o->d->qacc_warmstart[i] = sn_oracle_uniform(o);
  mj_forward(mj, o->d);
  sn_oracle_fill(o);
}

bool sn_constraint_load_real(SnOracle *o, int i, int steps, const char **name, bool *missing) {
  static const char *const list[] = {"envs/myo/assets/hand/myohand_baoding.xml",
                                     "envs/myo/assets/hand/myohand_pose.xml",
                                     "envs/myo/assets/arm/myoarm_relocate.xml",
                                     "simhive/myo_sim/arm/myoarm.xml",
                                     "simhive/myo_sim/leg/myolegs.xml",
                                     "simhive/MPL_sim/scenes/sally.xml",
                                     "envs/myo/assets/arm/myoarm_bionic_bimanual.xml",
                                     "envs/myo/assets/arm/myoarm_tabletennis.xml",
                                     "simhive/myo_sim/torso/myotorso.xml",
                                     "diffmjx:ball.xml",
                                     "diffmjx:billiard.xml",
                                     "diffmjx:billiard_nogravity.xml",
                                     "diffmjx:cube.xml"};
  if (i >= (int)(sizeof list / sizeof *list)) return false;
  *name = list[i];
  char path[5000];
  const char *colon = strchr(*name, ':'), *myo = sn_oracle_myosuite();
  if (colon)
    snprintf(path, sizeof path, SN_TEST_SOURCE_DIR "/../../shared/models/diffmjx/%s", colon + 1);
  else
    snprintf(path, sizeof path, "%s/%s", myo ? myo : "", *name);
  struct stat st;
  *missing = stat(path, &st) != 0;
  if (*missing) return true;
  sn_oracle_load_file(o, path);
  for (int k = 0; k < steps; ++k) {
    if (k % 20 == 0)
      for (int u = 0; u < o->mj->nu; ++u) {
        const double *r = o->mj->actuator_ctrlrange + 2 * u, x = 0.5 * (1 + sn_oracle_uniform(o));
        o->d->ctrl[u] = o->mj->actuator_ctrllimited[u] ? r[0] + (r[1] - r[0]) * x : 2 * x - 1;
      }
    mj_step(o->mj, o->d);
  }
  mj_forward(o->mj, o->d);
  for (int k = 0; colon && o->d->ncon == 0 && k < 4000; ++k) {  // until something touches
    mj_step(o->mj, o->d);
    mj_forward(o->mj, o->d);
  }
  sn_oracle_fill(o);
  return true;
}

enum { MAXCASE = 200 };

void sn_constraint_for_gradients(void (*load)(SnOracle *, const SnConstraintCase *), const char *kind, int stride,
                                 SnConstraintGradient *check, void *context, const int count[8]) {
  static SnConstraintCase cases[MAXCASE];
  const int n = sn_constraint_cases(cases, MAXCASE);
  for (int i = 0; i < n; i += stride)
    for (int near = 0; near < 2; ++near) {
      SnOracle o;
      char name[300];
      const SnConstraintCase *c = cases + i;
      load(&o, c);
      snprintf(name, sizeof name, "%s, %s: %s condim %d impratio %g solref %s friction %s solimp %s", kind,
               near ? "near" : "far", c->cone, c->condim, c->impratio, c->solref, c->solreffriction, c->solimp);
      check(context, &o, name, near ? 0.1 : 2);
      sn_oracle_free(&o);
    }
  printf("%s: rows by type:", kind);
  for (int t = 0; t < 8; ++t) printf(" %d", count[t]);
  printf("\n");
}

int sn_constraint_for_cases(void (*load)(SnOracle *, const SnConstraintCase *), int samples, const char *name,
                            SnConstraintCheck *check) {
  static SnConstraintCase cases[MAXCASE];
  const int n = sn_constraint_cases(cases, MAXCASE);
  for (int i = 0; i < n; ++i) {
    SnOracle o;
    load(&o, cases + i);
    for (int k = 0; k < samples; ++k) {
      char what[300];
      snprintf(what, sizeof what, "%s %d: %s condim %d impratio %g solref %s solimp %s %s", name, k, cases[i].cone,
               cases[i].condim, cases[i].impratio, cases[i].solref, cases[i].solimp, cases[i].flag);
      sn_constraint_sample(&o, k % 2 ? 3 : 0.1);
      check(&o, what);
    }
    sn_oracle_free(&o);
  }
  return n;
}

void sn_constraint_for_real(int steps, SnConstraintCheck *check) {
  SnOracle o;
  const char *name;
  bool missing;
  for (int i = 0; sn_constraint_load_real(&o, i, steps, &name, &missing); ++i) {
    if (missing) {
      printf("%s: skipped, the file is not there\n", name);
      continue;
    }
    check(&o, name);
    sn_oracle_free(&o);
  }
  sn_oracle_needs_myosuite();
}

void sn_constraint_make_rows(SnOracle *o) {
  assert_true(o->d->ncon <= o->m->nconmax);
  for (int i = 0; i < o->w.ncon[0]; ++i) {
    SnContact *con = o->w.contact + i;
    con->mu = 0;  // ours to set, as are the address and the mark of a contact that moves nothing
    con->efc_address = -7;
    if (con->exclude == 3) con->exclude = 0;
  }
  sn_world_poison(o->m, &o->w, SN_STAGE_CONSTRAINT);
  sn_make_constraint(o->m, &o->w, &o->lane);
  sn_reference_constraint(o->m, &o->w, &o->lane);
}

// Dense row r of MuJoCo's and of our Jacobian.
static void dense_row(const SnOracle *o, int r, double *ref, sn_real *ours) {
  const int nv = o->m->nv;
  const mjData *d = o->d;
  for (int i = 0; i < nv; ++i) ref[i] = ours[i] = 0;
  if (mj_isSparse(o->mj))
    for (int k = 0; k < d->efc_J_rownnz[r]; ++k)
      ref[d->efc_J_colind[d->efc_J_rowadr[r] + k]] = d->efc_J[d->efc_J_rowadr[r] + k];
  else
    for (int i = 0; i < nv; ++i) ref[i] = d->efc_J[r * nv + i];
  for (int k = 0; k < o->w.efc_J_rownnz[r]; ++k) {
    const int c = o->w.efc_J_colind[o->w.efc_J_rowadr[r] + k];
    assert_true(k == 0 || c > o->w.efc_J_colind[o->w.efc_J_rowadr[r] + k - 1]);
    ours[c] = o->w.efc_J[o->w.efc_J_rowadr[r] + k];
  }
}

static void check(const char *what, const char *field, const sn_real *ours, const double *ref, int n) {
  const double e = sn_oracle_error(ours, ref, n), tol = SN_TOL_ROWS;
  if (!(e <= tol)) fail_msg("%s: %s: relative error %g, allowed %g", what, field, e, tol);
}

void sn_constraint_check_rows(SnOracle *o, const char *what) {
  const mjData *d = o->d;
  const SnWorld *w = &o->w;
  const int nefc = d->nefc, nv = o->m->nv;
  if (w->nefc[0] != nefc || w->ne[0] != d->ne || w->nf[0] != d->nf || w->nl[0] != d->nl)
    fail_msg("%s: rows %d (%d equality, %d friction, %d limit), MuJoCo %d (%d, %d, %d)", what, w->nefc[0], w->ne[0],
             w->nf[0], w->nl[0], nefc, d->ne, d->nf, d->nl);
  double *ref = malloc(sizeof *ref * (size_t)(nv + 1) * (size_t)(nefc + 1));
  sn_real *ours = malloc(sizeof *ours * (size_t)(nv + 1) * (size_t)(nefc + 1));
  for (int r = 0; r < nefc; ++r) {
    assert_int_equal(w->efc_type[r], d->efc_type[r]);
    assert_int_equal(w->efc_id[r], d->efc_id[r]);
    dense_row(o, r, ref + r * nv, ours + r * nv);
    if (SN_TOL(1, 0)) check(what, "efc_J row", ours + r * nv, ref + r * nv, nv);
  }
  check(what, "efc_J", ours, ref, nefc * nv);
  check(what, "efc_pos", w->efc_pos, d->efc_pos, nefc);
  check(what, "efc_margin", w->efc_margin, d->efc_margin, nefc);
  check(what, "efc_frictionloss", w->efc_frictionloss, d->efc_frictionloss, nefc);
  check(what, "efc_diagA", w->efc_diagA, d->efc_diagA, nefc);
  check(what, "efc_D", w->efc_D, d->efc_D, nefc);
  check(what, "efc_R", w->efc_R, d->efc_R, nefc);
  check(what, "efc_vel", w->efc_vel, d->efc_vel, nefc);
  check(what, "efc_aref", w->efc_aref, d->efc_aref, nefc);
  for (int r = 0; r < nefc; ++r) {
    check(what, "efc_KBIP", w->efc_KBIP + 4 * r, d->efc_KBIP + 4 * r, 1);
    for (int j = 1; j < 4; ++j) check(what, "efc_KBIP", w->efc_KBIP + 4 * r + j, d->efc_KBIP + 4 * r + j, 1);
    check(what, "efc_D", w->efc_D + r, d->efc_D + r, 1);
  }
  for (int i = 0; i < d->ncon; ++i) {
    assert_int_equal(w->contact[i].efc_address, d->contact[i].efc_address);
    assert_int_equal(w->contact[i].exclude, d->contact[i].exclude);
    if (d->contact[i].efc_address >= 0) check(what, "mu", &w->contact[i].mu, &d->contact[i].mu, 1);
  }
  free(ref);
  free(ours);
}
