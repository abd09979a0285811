// Bodies, joints and degrees of freedom form trees whose parents come first, their addresses follow each other
// without gaps, and the rows of sparse matrices are ascending and complete.
#include "physics/model/model_private.h"

#define COMPLAIN(field, i, rule) return sn_model_complain(err, #field, (i), (double)m->field[i], rule)

static int dofs_of(int type) { return type == SN_JNT_FREE ? 6 : type == SN_JNT_BALL ? 3 : 1; }
static int positions_of(int type) { return type == SN_JNT_FREE ? 7 : type == SN_JNT_BALL ? 4 : 1; }

static SnCode check_bodies(const SnModel *m, SnError *err) {
  if (m->body_jntnum[0] || m->body_dofnum[0]) COMPLAIN(body_jntnum, 0, "the world has no joints");
  int njnt = 0, nv = 0, ngeom = 0, nmocap = 0;
  for (int i = 0; i < m->nbody; ++i) {
    const int parent = m->body_parentid[i];
    if (i ? parent >= i : parent != 0) COMPLAIN(body_parentid, i, "a parent comes before its child");
    if (m->body_rootid[i] != (i == 0 ? 0 : parent == 0 ? i : m->body_rootid[parent]))
      COMPLAIN(body_rootid, i, "must be the child of the world above it");
    const bool own = m->body_jntnum[i] > 0 || m->body_mocapid[i] >= 0 || i == 0;
    if (m->body_weldid[i] != (own ? i : m->body_weldid[parent]))
      COMPLAIN(body_weldid, i, "must be the body that carries it");
    if (m->body_mocapid[i] >= 0) {
      if (m->body_mocapid[i] != nmocap++) COMPLAIN(body_mocapid, i, "mocap bodies are numbered in order");
      if (parent != 0 || m->body_jntnum[i])
        COMPLAIN(body_mocapid, i, "a mocap body is a child of the world without joints");
    }
    if (m->body_jntnum[i] > 0 && m->body_jntadr[i] != njnt)
      COMPLAIN(body_jntadr, i, "joints follow the order of bodies");
    if (m->body_dofnum[i] > 0 && m->body_dofadr[i] != nv)
      COMPLAIN(body_dofadr, i, "degrees of freedom follow the order of bodies");
    if (m->body_geomnum[i] > 0 && m->body_geomadr[i] != ngeom)
      COMPLAIN(body_geomadr, i, "geoms follow the order of bodies");
    if (m->body_jntnum[i] > m->njnt - njnt) COMPLAIN(body_jntnum, i, "more joints than the model has");
    if (m->body_dofnum[i] > m->nv - nv) COMPLAIN(body_dofnum, i, "more degrees of freedom than the model has");
    if (m->body_geomnum[i] > m->ngeom - ngeom) COMPLAIN(body_geomnum, i, "more geoms than the model has");
    for (int k = njnt; k < njnt + m->body_jntnum[i]; ++k)
      if (m->jnt_bodyid[k] != i) COMPLAIN(jnt_bodyid, k, "must be the body that lists the joint");
    for (int k = nv; k < nv + m->body_dofnum[i]; ++k)
      if (m->dof_bodyid[k] != i) COMPLAIN(dof_bodyid, k, "must be the body that lists the degree of freedom");
    for (int k = ngeom; k < ngeom + m->body_geomnum[i]; ++k)
      if (m->geom_bodyid[k] != i) COMPLAIN(geom_bodyid, k, "must be the body that lists the geom");
    njnt += m->body_jntnum[i];
    nv += m->body_dofnum[i];
    ngeom += m->body_geomnum[i];
    if (m->body_mass[i] < 0) COMPLAIN(body_mass, i, "must be at least 0");
    for (int k = 3 * i; k < 3 * i + 3; ++k)
      if (m->body_inertia[k] < 0) COMPLAIN(body_inertia, k, "must be at least 0");
  }
  if (njnt != m->njnt || nv != m->nv || ngeom != m->ngeom || nmocap != m->nmocap)
    return sn_fail(err, SN_ERR_FORMAT,
                   "model: bodies list %d joints, %d degrees of freedom, %d geoms, %d mocap poses of %d, %d, %d, %d",
                   njnt, nv, ngeom, nmocap, m->njnt, m->nv, m->ngeom, m->nmocap);
  return SN_OK;
}

static SnCode check_joints(const SnModel *m, SnError *err) {
  int nq = 0, nv = 0;
  for (int j = 0; j < m->njnt; ++j) {
    const int type = m->jnt_type[j], body = m->jnt_bodyid[j];
    if (m->jnt_qposadr[j] != nq) COMPLAIN(jnt_qposadr, j, "positions follow the order of joints");
    if (m->jnt_dofadr[j] != nv) COMPLAIN(jnt_dofadr, j, "degrees of freedom follow the order of joints");
    if (positions_of(type) > m->nq - nq || dofs_of(type) > m->nv - nv)
      COMPLAIN(jnt_type, j, "needs more positions than the model has");
    if (type == SN_JNT_FREE && (m->body_parentid[body] != 0 || m->body_jntnum[body] != 1))
      COMPLAIN(jnt_bodyid, j, "a free joint is the only one of a child of the world");
    for (int k = nv; k < nv + dofs_of(type); ++k) {
      if (m->dof_jntid[k] != j) COMPLAIN(dof_jntid, k, "must be the joint that lists it");
      if (m->dof_bodyid[k] != body) COMPLAIN(dof_bodyid, k, "must be the body of its joint");
    }
    nq += positions_of(type);
    nv += dofs_of(type);
  }
  if (nq != m->nq || nv != m->nv)
    return sn_fail(err, SN_ERR_FORMAT, "model: joints have %d positions and %d degrees of freedom of %d and %d", nq, nv,
                   m->nq, m->nv);
  return SN_OK;
}

// Last degree of freedom of the nearest ancestor of body b, b excluded, that has one; -1: none.
static int dof_above(const SnModel *m, int b) {
  while (b > 0) {
    b = m->body_parentid[b];
    if (m->body_dofnum[b]) return m->body_dofadr[b] + m->body_dofnum[b] - 1;
  }
  return -1;
}

static SnCode check_dofs(const SnModel *m, SnError *err) {
  for (int i = 0; i < m->nv; ++i) {
    const int b = m->dof_bodyid[i], parent = i > m->body_dofadr[b] ? i - 1 : dof_above(m, b);
    if (m->dof_parentid[i] != parent) COMPLAIN(dof_parentid, i, "must be the next one towards the root");
    if (m->dof_simplenum[i] > m->nv - i) COMPLAIN(dof_simplenum, i, "reaches past the last degree of freedom");
    if (m->dof_treeid[i] != m->body_treeid[b]) COMPLAIN(dof_treeid, i, "must be the tree of its body");
  }
  return SN_OK;
}

static SnCode check_trees(const SnModel *m, SnError *err) {
  int nv = 0;
  for (int t = 0; t < m->ntree; ++t) {
    if (m->tree_bodynum[t] > m->nbody - m->tree_bodyadr[t]) COMPLAIN(tree_bodynum, t, "reaches past the last body");
    if (m->tree_dofadr[t] != nv) COMPLAIN(tree_dofadr, t, "trees follow the order of degrees of freedom");
    if (m->tree_dofnum[t] > m->nv - nv) COMPLAIN(tree_dofnum, t, "reaches past the last degree of freedom");
    for (int k = nv; k < nv + m->tree_dofnum[t]; ++k)
      if (m->dof_treeid[k] != t) COMPLAIN(dof_treeid, k, "must be the tree that lists it");
    nv += m->tree_dofnum[t];
  }
  if (nv != m->nv) return sn_fail(err, SN_ERR_FORMAT, "model: trees list %d degrees of freedom of %d", nv, m->nv);
  return SN_OK;
}

// A row of M is a chain: without its last two entries it is the row of the last but one, which factor and solves rely
// on.
static SnCode check_inertia_pattern(const SnModel *m, SnError *err) {
  int adr = 0;
  for (int i = 0; i < m->nv; ++i) {
    const int n = m->M_rownnz[i];
    if (m->M_rowadr[i] != adr) COMPLAIN(M_rowadr, i, "rows follow each other");
    if (n > m->nC - adr) COMPLAIN(M_rownnz, i, "reaches past the last entry");
    const int *row = m->M_colind + adr;
    if (row[n - 1] != i) COMPLAIN(M_colind, adr + n - 1, "a row ends at the diagonal");
    if (n > 1) {
      const int above = row[n - 2];
      if (above >= i) COMPLAIN(M_colind, adr + n - 2, "columns of a row ascend");
      if (m->M_rownnz[above] != n - 1) COMPLAIN(M_rownnz, i, "a row extends the row of the entry before its diagonal");
      for (int k = 0; k < n - 1; ++k)
        if (row[k] != m->M_colind[m->M_rowadr[above] + k])
          COMPLAIN(M_colind, adr + k, "a row extends the row of the entry before its diagonal");
      if (above != m->dof_parentid[i]) COMPLAIN(M_colind, adr + n - 2, "the entry before the diagonal is the parent");
    }
    adr += n;
  }
  if (adr != m->nC) return sn_fail(err, SN_ERR_FORMAT, "model: rows of M have %d entries of %d", adr, m->nC);
  return SN_OK;
}

static SnCode check_tendon_pattern(const SnModel *m, SnError *err) {
  int adr = 0;
  for (int t = 0; t < m->ntendon; ++t) {
    const int n = m->ten_J_rownnz[t];
    if (m->ten_J_rowadr[t] != adr) COMPLAIN(ten_J_rowadr, t, "rows follow each other");
    if (n > m->nJten - adr) COMPLAIN(ten_J_rownnz, t, "reaches past the last entry");
    for (int k = adr + 1; k < adr + n; ++k)
      if (m->ten_J_colind[k] <= m->ten_J_colind[k - 1]) COMPLAIN(ten_J_colind, k, "columns of a row ascend");
    adr += n;
  }
  if (adr != m->nJten) return sn_fail(err, SN_ERR_FORMAT, "model: rows of ten_J have %d entries of %d", adr, m->nJten);
  return SN_OK;
}

bool sn_sleep_cycles_close(const int *tree_asleep, int ntree) {
  for (int t = 0; t < ntree; ++t) {
    int at = t, steps = 0;
    if (tree_asleep[t] < 0) continue;
    do {
      at = tree_asleep[at];
    } while (at >= 0 && at < ntree && at != t && ++steps < ntree);
    if (at != t) return false;
  }
  return true;
}

// Who sleeps at the start, and which trees tendons have.
static SnCode check_sleep(const SnModel *m, SnError *err) {
  if (!sn_sleep_cycles_close(m->tree_asleep0, m->ntree))
    return sn_fail(err, SN_ERR_FORMAT, "model: tree_asleep0: trees that sleep have to form cycles");
  for (int t = 0; t < m->ntendon; ++t) {
    const int *tree = m->tendon_treeid + 2 * t;
    if (m->tendon_treenum[t] > 0 && (tree[0] < 0 || (m->tendon_treenum[t] > 1 && tree[1] < 0)))
      COMPLAIN(tendon_treenum, t, "has more trees than tendon_treeid");
  }
  return SN_OK;
}

SnCode sn_model_check_tree(const SnModel *m, SnError *err) {
  SnCode code = check_bodies(m, err);
  if (code == SN_OK) code = check_joints(m, err);
  if (code == SN_OK) code = check_dofs(m, err);
  if (code == SN_OK) code = check_trees(m, err);
  if (code == SN_OK) code = check_sleep(m, err);
  if (code == SN_OK) code = check_inertia_pattern(m, err);
  if (code == SN_OK) code = check_tendon_pattern(m, err);
  return code;
}
