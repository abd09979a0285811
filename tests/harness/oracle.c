#include "tests/harness/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "physics/import_mjcf.h"

static void start(SnOracle *o, mjModel *mj, const char *text) {
  if (!mj) fail_msg("MuJoCo: %s", text);
  mj->opt.disableflags |= mjDSBL_ISLAND;
  mj->opt.tolerance = 1e-14;
  mj->opt.iterations = 200;
  mj->opt.ls_tolerance = 1e-10;
  mj->opt.ccd_tolerance = 1e-12;
  mj->opt.ccd_iterations = 500;
  SnError err = {0};
  o->mj = mj;
  o->d = mj_makeData(mj);
  o->m = sn_import_mjmodel(mj, &err);
  if (!o->m) fail_msg("import: %s", err.text);
  o->memory = aligned_alloc(64, sn_world_size(o->m));
  sn_world_init(o->m, &o->w, o->memory);
  o->lane = (SnLane){.id = 0, .n = 1, .shared = &o->shared, .team = NULL};
  o->rng = 1;
}

void sn_oracle_load_string(SnOracle *o, const char *xml) {
  memset(o, 0, sizeof *o);
  char text[1000] = "";
  mjSpec *spec = mj_parseXMLString(xml, NULL, text, sizeof text);
  if (!spec) fail_msg("MuJoCo: %s", text);
  mjModel *mj = mj_compile(spec, NULL);
  if (!mj) snprintf(text, sizeof text, "%s", mjs_getError(spec));
  mj_deleteSpec(spec);
  start(o, mj, text);
}

void sn_oracle_load_file(SnOracle *o, const char *path) {
  memset(o, 0, sizeof *o);
  char text[1000] = "";
  start(o, mj_loadXML(path, NULL, text, sizeof text), text);
}

void sn_oracle_free(SnOracle *o) {
  sn_model_free(o->m);
  free(o->memory);
  mj_deleteData(o->d);
  mj_deleteModel(o->mj);
}

const char *sn_oracle_myosuite(void) {
  static char path[4096];
  const char *dir = getenv("SINEW_MYOSUITE_DIR"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (dir) snprintf(path, sizeof path, "%s", dir);
  else if (cache) snprintf(path, sizeof path, "%s/sinew/myosuite-2.12.2/myosuite", cache);
  else snprintf(path, sizeof path, "%s/.cache/sinew/myosuite-2.12.2/myosuite", home ? home : "");
  struct stat st;
  return stat(path, &st) == 0 ? path : NULL;
}

// splitmix64
double sn_oracle_uniform(SnOracle *o) {
  uint64_t z = (o->rng += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return (double)(z >> 11) * 0x1p-52 - 1.0;
}

void sn_oracle_randomize(SnOracle *o, double speed) {
  const mjModel *mj = o->mj;
  mjData *d = o->d;
  for (int j = 0; j < mj->njnt; ++j) {
    double *q = d->qpos + mj->jnt_qposadr[j];
    const double *q0 = mj->qpos0 + mj->jnt_qposadr[j], *range = mj->jnt_range + 2 * j;
    const int type = mj->jnt_type[j];
    if (type == mjJNT_HINGE || type == mjJNT_SLIDE) {
      q[0] = mj->jnt_limited[j] ? range[0] + (range[1] - range[0]) * 0.5 * (1 + sn_oracle_uniform(o)) : q0[0] + sn_oracle_uniform(o);
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

void sn_oracle_copy_state(SnOracle *o) {
  const mjModel *mj = o->mj;
  const mjData *d = o->d;
  o->w.time[0] = (sn_real)d->time;
  copy_real(o->w.qpos, d->qpos, (int)mj->nq);
  copy_real(o->w.qvel, d->qvel, (int)mj->nv);
  copy_real(o->w.act, d->act, (int)mj->na);
  copy_real(o->w.ctrl, d->ctrl, (int)mj->nu);
  copy_real(o->w.mocap_pos, d->mocap_pos, 3 * (int)mj->nmocap);
  copy_real(o->w.mocap_quat, d->mocap_quat, 4 * (int)mj->nmocap);
  copy_real(o->w.qacc_warmstart, d->qacc_warmstart, (int)mj->nv);
  *o->w.warn = 0;
}

static void fill_contacts(SnOracle *o) {
  const mjData *d = o->d;
  const int n = d->ncon < o->m->nconmax ? d->ncon : o->m->nconmax;
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
    b->dim = a->dim;
    b->geom[0] = a->geom[0];
    b->geom[1] = a->geom[1];
    b->exclude = a->exclude;
    b->efc_address = a->efc_address;
  }
}

void sn_oracle_fill(SnOracle *o) {
  sn_oracle_copy_state(o);
  const SnModel *m = o->m;
  const mjData *d = o->d;
  SnWorld *w = &o->w;
#define REAL(name, n) copy_real(w->name, d->name, (n))
#define INTS(name, n) for (int i = 0; i < (n); ++i) w->name[i] = d->name[i]
  REAL(xpos, 3 * m->nbody); REAL(xquat, 4 * m->nbody); REAL(xmat, 9 * m->nbody);
  REAL(xipos, 3 * m->nbody); REAL(ximat, 9 * m->nbody);
  REAL(xanchor, 3 * m->njnt); REAL(xaxis, 3 * m->njnt);
  REAL(geom_xpos, 3 * m->ngeom); REAL(geom_xmat, 9 * m->ngeom);
  REAL(site_xpos, 3 * m->nsite); REAL(site_xmat, 9 * m->nsite);
  REAL(subtree_com, 3 * m->nbody); REAL(cdof, 6 * m->nv); REAL(cinert, 10 * m->nbody); REAL(crb, 10 * m->nbody);
  REAL(M, m->nC); REAL(qLD, m->nC); REAL(qLDiagInv, m->nv);
  INTS(ten_wrapadr, m->ntendon); INTS(ten_wrapnum, m->ntendon); INTS(wrap_obj, 2 * m->nwrap);
  REAL(wrap_xpos, 6 * m->nwrap); REAL(ten_length, m->ntendon); REAL(ten_J, m->nJten);
  REAL(actuator_length, m->nout); INTS(moment_rownnz, m->nout); INTS(moment_rowadr, m->nout);
  INTS(moment_colind, m->nJmom); REAL(actuator_moment, m->nJmom);
  REAL(cvel, 6 * m->nbody); REAL(cdof_dot, 6 * m->nv);
  REAL(ten_velocity, m->ntendon); REAL(actuator_velocity, m->nout); REAL(qfrc_bias, m->nv);
  REAL(qfrc_spring, m->nv); REAL(qfrc_damper, m->nv); REAL(qfrc_gravcomp, m->nv); REAL(qfrc_passive, m->nv);
  REAL(act_dot, m->na); REAL(actuator_force, m->nout); REAL(qfrc_actuator, m->nv);
  REAL(qfrc_smooth, m->nv); REAL(qacc_smooth, m->nv); REAL(qacc, m->nv); REAL(qfrc_constraint, m->nv);
#undef REAL
#undef INTS
  fill_contacts(o);
}

double sn_oracle_error(const sn_real *ours, const double *ref, int n) {
  double worst = 0, scale = 0;
  for (int i = 0; i < n; ++i) {
    const double e = fabs((double)ours[i] - ref[i]);
    if (!(e <= worst)) worst = e;  // NaN is an error too
    scale = fmax(scale, fabs(ref[i]));
  }
  return worst / (scale + 1e-6);
}

void sn_oracle_check(const char *field, const sn_real *ours, const double *ref, int n, double tol) {
  const double e = sn_oracle_error(ours, ref, n);
  if (!(e <= tol)) fail_msg("%s: relative error %g, allowed %g", field, e, tol);
}
