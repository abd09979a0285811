#include "clients/reference/mujoco_reference.h"

#include <stdio.h>
#include <stdlib.h>

#include "physics/import/import_mjcf.h"

mjModel *sn_oracle_read_file(const char *path, SnError *err) {
  char text[1000] = "";
  mjModel *mj = sn_import_read(path, text, sizeof text);
  if (!mj)
    sn_fail(err, SN_ERR_FORMAT, "%s: MuJoCo cannot load it%s%s", path, *text ? ": " : ", as it has warned", text);
  return mj;
}

mjModel *sn_oracle_read_string(const char *xml, SnError *err) {
  char text[1000] = "";
  mjSpec *spec = mj_parseXMLString(xml, NULL, text, sizeof text);
  mjModel *mj = spec ? mj_compile(spec, NULL) : NULL;
  if (spec && !mj) snprintf(text, sizeof text, "%s", mjs_getError(spec));
  if (spec) mj_deleteSpec(spec);
  if (!mj) sn_fail(err, SN_ERR_FORMAT, "MuJoCo cannot load the model: %s", text);
  return mj;
}

void sn_oracle_tighten(mjModel *mj) {
  mj->opt.disableflags |= mjDSBL_AUTORESET;
  const bool islands = (mj->opt.enableflags & mjENBL_SLEEP) != 0;  // islands are what sleeps
  if (!islands) mj->opt.disableflags |= mjDSBL_ISLAND;
  mj->opt.solver = mjSOL_NEWTON;
  // iterations end when the cost falls by less than the tolerance times the inertia: of an island in MuJoCo, of all
  // trees in ours, so that a grain beside a block is solved less exactly
  mj->opt.tolerance = islands ? 1e-22 : 1e-14;
  mj->opt.iterations = 200;
  mj->opt.ls_tolerance = 1e-10;
  mj->opt.ccd_tolerance = 1e-12;
  mj->opt.ccd_iterations = 500;
}

SnCode sn_oracle_open(SnOracle *o, mjModel *mj, SnError *err) {
  memset(o, 0, sizeof *o);
  o->mj = mj;
  o->rng = 1;
  o->m = sn_import_mjmodel(mj, err);
  o->d = o->m ? mj_makeData(mj) : NULL;
  o->memory = o->d ? aligned_alloc(64, sn_world_size(o->m)) : NULL;
  if (!o->memory) {
    const SnCode code = o->m ? sn_fail(err, SN_ERR_MEMORY, "no memory for the state of the model") : SN_ERR_UNSUPPORTED;
    sn_oracle_free(o);
    return err && err->code != SN_OK ? err->code : code;
  }
  sn_world_init(o->m, &o->w, o->memory);
  if (sn_has_sleep(o->m)) o->w.sleep_on[0] = 1;  // as in the body of a user
  o->lane = (SnLane){.id = 0, .n = 1, .shared = &o->shared, .team = NULL};
  return SN_OK;
}

void sn_oracle_free(SnOracle *o) {
  sn_model_free(o->m);
  free(o->memory);
  if (o->d) mj_deleteData(o->d);
  if (o->mj) mj_deleteModel(o->mj);
  memset(o, 0, sizeof *o);
}

void sn_oracle_randomize(SnOracle *o, double speed) {
  const mjModel *mj = o->mj;
  mjData *d = o->d;
  for (int j = 0; j < mj->njnt; ++j) {
    double *q = d->qpos + mj->jnt_qposadr[j];
    const double *q0 = mj->qpos0 + mj->jnt_qposadr[j], *range = mj->jnt_range + 2 * j;
    const int type = mj->jnt_type[j];
    if (type == mjJNT_HINGE || type == mjJNT_SLIDE) {
      q[0] = mj->jnt_limited[j] ? range[0] + (range[1] - range[0]) * 0.5 * (1 + sn_oracle_uniform(o))
                                : q0[0] + sn_oracle_uniform(o);
      continue;
    }
    if (type == mjJNT_FREE) {
      for (int i = 0; i < 3; ++i) q[i] = q0[i] + 0.1 * sn_oracle_uniform(o);
      q += 3;
    }
    for (int i = 0; i < 4; ++i) q[i] = sn_oracle_uniform(o);
    mju_normalize4(q);
  }
  for (int i = 0; i < mj->nv; ++i) d->qvel[i] = speed * sn_oracle_uniform(o);
  for (int i = 0; i < mj->na; ++i) d->act[i] = 0.5 * (1 + sn_oracle_uniform(o));
  for (int i = 0; i < mj->nu; ++i) {
    const double *r = mj->actuator_ctrlrange + 2 * i, u = 0.5 * (1 + sn_oracle_uniform(o));
    d->ctrl[i] = mj->actuator_ctrllimited[i] ? r[0] + (r[1] - r[0]) * u : 2 * u - 1;
  }
}

static void copy_real(sn_real *dst, const double *src, int n) {
  for (int i = 0; i < n; ++i) dst[i] = (sn_real)src[i];
}

static void copy_int(int *dst, const int *src, int n) {
  for (int i = 0; i < n; ++i) dst[i] = src[i];
}

void sn_oracle_copy_state(SnOracle *o) {
  const SnModel *m = o->m;
  const mjData *d = o->d;
  o->w.time[0] = (sn_real)d->time;
  copy_real(o->w.qpos, d->qpos, m->nq);
  copy_real(o->w.qvel, d->qvel, m->nv);
  copy_real(o->w.act, d->act, m->na);
  copy_real(o->w.ctrl, d->ctrl, m->nu);
  copy_real(o->w.past, d->history, m->nhistory);
  copy_real(sn_plastic(m, o->w.past), d->plastic, m->nplastic);
  copy_real(o->w.mocap_pos, d->mocap_pos, 3 * m->nmocap);
  copy_real(o->w.mocap_quat, d->mocap_quat, 4 * m->nmocap);
  copy_real(o->w.qacc_warmstart, d->qacc_warmstart, m->nv);
  *o->w.warn = 0;
  if (!sn_has_sleep(m)) return;
  o->w.sleep_on[0] = 1;
  copy_int(o->w.tree_asleep, d->tree_asleep, m->ntree);
  copy_real(o->w.sleep_qpos, d->qpos, m->nq);
}

static void fill_contacts(SnOracle *o) {
  const mjData *d = o->d;
  const int n = sn_mini(d->ncon, o->m->nconmax);
  o->w.ncon[0] = n;
  for (int i = 0; i < n; ++i) {
    const mjContact *a = d->contact + i;
    SnContact *b = o->w.contact + i;
    b->dist = (sn_real)a->dist;
    copy_real(b->pos, a->pos, 3);
    copy_real(b->frame, a->frame, 9);
    b->includemargin = (sn_real)a->includemargin;
    copy_real(b->friction, a->friction, 5);
    copy_real(b->solref, a->solref, 2);
    copy_real(b->solreffriction, a->solreffriction, 2);
    copy_real(b->solimp, a->solimp, 5);
    b->mu = (sn_real)a->mu;
    b->adhesion = (sn_real)a->adhesion;
    b->dim = a->dim;
    b->geom[0] = a->geom[0];
    b->geom[1] = a->geom[1];
    b->exclude = a->exclude;
    b->efc_address = a->efc_address;
    b->pair = -1;  // not known
    b->feature = 0;
    for (int k = 0; k < 6; ++k) b->corner[k] = -1;
  }
}

// Entry of MuJoCo's J, which is dense or CSR by its own choice.
static double jacobian_entry(const SnOracle *o, int row, int col) {
  const mjData *d = o->d;
  if (!mj_isSparse(o->mj)) return d->efc_J[row * o->m->nv + col];
  for (int k = d->efc_J_rowadr[row]; k < d->efc_J_rowadr[row] + d->efc_J_rownnz[row]; ++k)
    if (d->efc_J_colind[k] == col) return d->efc_J[k];
  return 0;
}

// True when our pattern, left by our own stage, has room for every non-zero of MuJoCo's row.
static bool pattern_covers(const SnOracle *o, int row) {
  const SnWorld *w = &o->w;
  const int adr = w->efc_J_rowadr[row], n = w->efc_J_rownnz[row];
  if (adr < 0 || n < 0 || n > o->m->nv || adr > o->m->nJmax - n) return false;
  int theirs = 0, ours = 0;
  for (int c = 0; c < o->m->nv; ++c) theirs += jacobian_entry(o, row, c) != 0;
  for (int k = adr; k < adr + n; ++k) {
    const int c = w->efc_J_colind[k];
    if (c < 0 || c >= o->m->nv) return false;
    ours += jacobian_entry(o, row, c) != 0;
  }
  return ours == theirs;
}

// J in our pattern where it fits, for the solver's lists of blocks belong to it; otherwise all non-zeros.
static void fill_jacobian(SnOracle *o, int nefc) {
  const SnModel *m = o->m;
  SnWorld *w = &o->w;
  bool keep = true;
  for (int r = 0; r < nefc && keep; ++r) keep = pattern_covers(o, r);
  int end = 0;
  for (int r = 0; r < nefc; ++r) {
    if (keep) {
      for (int k = w->efc_J_rowadr[r]; k < w->efc_J_rowadr[r] + w->efc_J_rownnz[r]; ++k)
        w->efc_J[k] = (sn_real)jacobian_entry(o, r, w->efc_J_colind[k]);
      continue;
    }
    w->efc_J_rowadr[r] = end;
    for (int c = 0; c < m->nv && end < m->nJmax; ++c) {
      const double x = jacobian_entry(o, r, c);
      if (x == 0) continue;
      w->efc_J_colind[end] = c;
      w->efc_J[end++] = (sn_real)x;
    }
    w->efc_J_rownnz[r] = end - w->efc_J_rowadr[r];
  }
}

static void fill_rows(SnOracle *o) {
  const mjData *d = o->d;
  SnWorld *w = &o->w;
  const int n = sn_mini(d->nefc, o->m->nefcmax);
  w->ne[0] = d->ne;
  w->nf[0] = d->nf;
  w->nl[0] = d->nl;
  w->nefc[0] = n;
  copy_int(w->efc_type, d->efc_type, n);
  copy_int(w->efc_id, d->efc_id, n);
  copy_real(w->efc_pos, d->efc_pos, n);
  copy_real(w->efc_margin, d->efc_margin, n);
  copy_real(w->efc_frictionloss, d->efc_frictionloss, n);
  copy_real(w->efc_diagA, d->efc_diagA, n);
  copy_real(w->efc_KBIP, d->efc_KBIP, 4 * n);
  copy_real(w->efc_D, d->efc_D, n);
  copy_real(w->efc_R, d->efc_R, n);
  copy_real(w->efc_vel, d->efc_vel, n);
  copy_real(w->efc_aref, d->efc_aref, n);
  fill_jacobian(o, n);
}

// actuator_moment in our fixed pattern; MuJoCo drops zeros from rows of sites and bodies.
static void fill_moment(SnOracle *o) {
  const SnModel *m = o->m;
  const mjData *d = o->d;
  SnWorld *w = &o->w;
  for (int i = 0; i < m->nout; ++i)
    for (int k = m->mom_rowadr[i]; k < m->mom_rowadr[i] + m->mom_rownnz[i]; ++k) {
      w->actuator_moment[k] = 0;
      for (int j = d->moment_rowadr[i]; j < d->moment_rowadr[i] + d->moment_rownnz[i]; ++j)
        if (d->moment_colind[j] == m->mom_colind[k]) w->actuator_moment[k] = (sn_real)d->actuator_moment[j];
    }
}

// Copy n numbers of a field that both engines have under one name.
#define REAL(name, n) copy_real(o->w.name, o->d->name, (n))
#define INTS(name, n) copy_int(o->w.name, o->d->name, (n))

static void fill_kinematics(SnOracle *o) {
  const SnModel *m = o->m;
  REAL(xpos, 3 * m->nbody);
  REAL(xquat, 4 * m->nbody);
  REAL(xmat, 9 * m->nbody);
  REAL(xipos, 3 * m->nbody);
  REAL(ximat, 9 * m->nbody);
  REAL(xanchor, 3 * m->njnt);
  REAL(xaxis, 3 * m->njnt);
  REAL(geom_xpos, 3 * m->ngeom);
  REAL(geom_xmat, 9 * m->ngeom);
  REAL(site_xpos, 3 * m->nsite);
  REAL(site_xmat, 9 * m->nsite);
}

static void fill_inertia(SnOracle *o) {
  const SnModel *m = o->m;
  REAL(subtree_com, 3 * m->nbody);
  REAL(cdof, 6 * m->nv);
  REAL(crb, 10 * m->nbody);
  REAL(M, m->nC);
  REAL(qLD, m->nC);
  REAL(qLDiagInv, m->nv);
}

static void fill_tendons(SnOracle *o) {
  const SnModel *m = o->m;
  INTS(ten_wrapadr, m->ntendon);
  INTS(ten_wrapnum, m->ntendon);
  INTS(wrap_obj, 2 * m->nwrap);
  REAL(wrap_xpos, 6 * m->nwrap);
  REAL(ten_length, m->ntendon);
  REAL(ten_J, m->nJten);
}

static void fill_velocity(SnOracle *o) {
  const SnModel *m = o->m;
  REAL(cvel, 6 * m->nbody);
  REAL(cdof_dot, 6 * m->nv);
  REAL(ten_velocity, m->ntendon);
  REAL(actuator_velocity, m->nout);
  REAL(qfrc_bias, m->nv);
}

static void fill_passive(SnOracle *o) {
  const SnModel *m = o->m;
  REAL(qfrc_spring, m->nv);
  REAL(qfrc_damper, m->nv);
  REAL(qfrc_gravcomp, m->nv);
  REAL(qfrc_fluid, m->nv);
  REAL(qfrc_adhesion, m->nv);
  REAL(qfrc_passive, m->nv);
}

static void fill_solver(SnOracle *o) {
  const SnModel *m = o->m;
  REAL(qacc, m->nv);
  REAL(qfrc_constraint, m->nv);
  REAL(efc_force, o->w.nefc[0]);
  for (int i = 0; i < o->w.nefc[0]; ++i)  // by islands, where MuJoCo has them
    if (o->d->nisland > 0)
      o->w.efc_state[o->d->map_iefc2efc[i]] = o->d->iefc_state[i];
    else
      o->w.efc_state[i] = o->d->efc_state[i];
}

// Frames of trees that sleep are no longer those of our own step.
static void forget_frames(SnOracle *o) {
  for (int t = 0; t < o->m->ntree && sn_has_sleep(o->m); ++t) o->w.tree_framed[t] = SN_FRAMES_UNKNOWN;
}

void sn_oracle_fill_stage(SnOracle *o, SnStage stage) {
  const SnModel *m = o->m;
  switch (stage) {
    case SN_STAGE_CFD:  // MuJoCo has none of it
      break;
    case SN_STAGE_STATE:
      sn_oracle_copy_state(o);
      break;
    case SN_STAGE_SLEEP:  // computed from the state
      break;
    case SN_STAGE_KINEMATICS:
      fill_kinematics(o);
      forget_frames(o);
      break;
    case SN_STAGE_INERTIA:
      fill_inertia(o);
      forget_frames(o);
      break;
    case SN_STAGE_TENDON:
      fill_tendons(o);
      break;
    case SN_STAGE_TRANSMISSION:
      REAL(actuator_length, m->nout);
      fill_moment(o);
      break;
    case SN_STAGE_COLLISION:
      fill_contacts(o);
      break;
    case SN_STAGE_VELOCITY:
      fill_velocity(o);
      break;
    case SN_STAGE_PASSIVE:
      fill_passive(o);
      break;
    case SN_STAGE_ACTUATION:
      REAL(act_dot, m->na);
      REAL(actuator_force, m->nout);
      REAL(qfrc_actuator, m->nv);
      break;
    case SN_STAGE_SMOOTH:
      REAL(qfrc_smooth, m->nv);
      REAL(qacc_smooth, m->nv);
      break;
    case SN_STAGE_CONSTRAINT:
      fill_rows(o);
      break;
    case SN_STAGE_SOLVER:
      fill_solver(o);
      break;
    case SN_STAGE_INTEGRATE:
      break;
  }
#undef REAL
#undef INTS
}

void sn_oracle_fill(SnOracle *o) {
  for (int stage = SN_STAGE_STATE; stage <= SN_STAGE_INTEGRATE; ++stage) sn_oracle_fill_stage(o, (SnStage)stage);
}

double sn_oracle_error_at(const sn_real *ours, const double *ref, int n, int *where) {
  double worst = 0, scale = 0;
  int at = 0;
  for (int i = 0; i < n; ++i) {
    const double e = fabs((double)ours[i] - ref[i]);
    if (!(e <= worst) && !isnan(worst)) {  // NaN is an error too, and stays
      worst = e;
      at = i;
    }
    scale = fmax(scale, fabs(ref[i]));
  }
  if (where) *where = at;
  return worst / (scale + 1e-6);
}

double sn_oracle_error(const sn_real *ours, const double *ref, int n) { return sn_oracle_error_at(ours, ref, n, NULL); }
