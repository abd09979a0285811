// What the tree of bodies fixes at load: links, levels, and the pattern of the inertia matrix.
//
// A link is a body together with all bodies welded to it: MuJoCo's weld groups except that of the
// world, which never moves. Bodies without joints of their own take part in no recursion: their mass
// belongs to their link. A link has the id of its first body, so arrays over bodies serve links too.
//
// Rows of the inertia matrix (M_rownnz, M_rowadr, M_colind) hold the ancestors of a dof in ascending
// order and the dof itself last; a row is the beginning of its descendants' rows, and the descendants
// of a dof are the dofs that follow it up to dof_last. R. Featherstone, Rigid Body Dynamics
// Algorithms (2008), section 6.5, calls the reason why L'DL then has no fill-in.
#include "physics/model/model_private.h"

#define TREE_ALLOC(name, count) ((m->name = sn_model_alloc(m, sizeof *m->name * (size_t)(count))) != NULL)

static SnCode tree_no_memory(SnError *err) { return sn_fail(err, SN_ERR_MEMORY, "model: out of memory"); }

static bool tree_is_link(const SnModel *m, int i) { return i > 0 && m->body_weldid[i] == i; }

// The body whose frame carries body i: its link, or, for a link, the link of its parent (0: the world).
static void tree_bases(SnModel *m) {
  for (int i = 1; i < m->nbody; ++i) {
    m->body_base[i] = m->body_weldid[tree_is_link(m, i) ? m->body_parentid[i] : i];
    m->nlink += tree_is_link(m, i);
    m->nwelded += !tree_is_link(m, i) && m->body_weldid[i] > 0;
  }
}

// Links sorted by depth; links of each root body; children of each link; welded bodies.
static void tree_lists(SnModel *m, const int *depth) {
  int k = 0, nwelded = 0, nroot = 0;
  for (int level = 0; level < m->nlevel; ++level) {
    m->level_adr[level] = k;
    for (int i = 1; i < m->nbody; ++i)
      if (tree_is_link(m, i) && depth[i] == level + 1) m->level_body[k++] = i;
  }
  m->level_adr[m->nlevel] = k;
  k = 0;
  int child = 0;
  for (int i = 0; i < m->nbody; ++i) {
    const int first = k;
    m->child_adr[i] = child;
    for (int j = i + 1; j < m->nbody; ++j) {
      if (tree_is_link(m, j) && m->body_base[j] == i) m->child_body[child++] = j;
    }
    for (int j = i; j < m->nbody; ++j) {
      if (i > 0 && tree_is_link(m, j) && m->body_rootid[j] == i) m->root_link[k++] = j;
    }
    if (k > first) {
      m->root_adr[nroot] = first;
      m->root_body[nroot++] = i;
    }
    if (!tree_is_link(m, i) && m->body_weldid[i] > 0) m->welded_body[nwelded++] = i;
  }
  m->child_adr[m->nbody] = child;
  m->root_adr[nroot] = k;
  m->nroot = nroot;
}

static SnCode tree_links(SnModel *m, SnError *err) {
  m->nlink = m->nwelded = m->nlevel = m->nroot = 0;
  int *depth = sn_model_alloc(m, sizeof(int) * (size_t)m->nbody);
  if (!depth || !TREE_ALLOC(body_base, m->nbody)) return tree_no_memory(err);
  tree_bases(m);
  for (int i = 1; i < m->nbody; ++i) {
    if (!tree_is_link(m, i)) continue;
    depth[i] = depth[m->body_base[i]] + 1;
    m->nlevel = sn_maxi(m->nlevel, depth[i]);
  }
  if (!TREE_ALLOC(level_adr, m->nlevel + 1) || !TREE_ALLOC(level_body, m->nlink) ||
      !TREE_ALLOC(child_adr, m->nbody + 1) || !TREE_ALLOC(child_body, m->nlink) || !TREE_ALLOC(root_body, m->nlink) ||
      !TREE_ALLOC(root_adr, m->nlink + 1) || !TREE_ALLOC(root_link, m->nlink) || !TREE_ALLOC(welded_body, m->nwelded) ||
      !TREE_ALLOC(freebody_list, m->nlink))
    return tree_no_memory(err);
  tree_lists(m, depth);
  m->nfreebody = 0;
  for (int i = 1; i < m->nbody; ++i) {
    const bool free_joint = m->body_jntnum[i] == 1 && m->jnt_type[m->body_jntadr[i]] == SN_JNT_FREE;
    if (free_joint && m->child_adr[i + 1] == m->child_adr[i]) m->freebody_list[m->nfreebody++] = i;
  }
  return SN_OK;
}

// True when M's row of `dof` begins with M's row of each of its columns.
static bool tree_row_is_nested(const SnModel *m, int dof) {
  const int *col = m->M_colind + m->M_rowadr[dof];
  const int n = m->M_rownnz[dof];
  if (n < 1 || col[n - 1] != dof) return false;
  for (int c = 0; c < n - 1; ++c) {
    const int a = col[c];
    if (m->M_rownnz[a] != c + 1 || memcmp(m->M_colind + m->M_rowadr[a], col, sizeof(int) * (size_t)(c + 1)) != 0)
      return false;
  }
  return true;
}

// dof_last: the last descendant of each dof. All dofs in between must be descendants too.
static SnCode tree_descendants(SnModel *m, SnError *err) {
  for (int i = 0; i < m->nv; ++i) m->dof_last[i] = i;
  for (int i = 0; i < m->nv; ++i) {
    for (int c = 0; c < m->M_rownnz[i] - 1; ++c) {
      const int a = m->M_colind[m->M_rowadr[i] + c];
      if (m->dof_last[a] != i - 1)
        return sn_fail(err, SN_ERR_FORMAT, "model: the dofs below dof %d are not contiguous", a);
      m->dof_last[a] = i;
    }
  }
  return SN_OK;
}

// Dofs sorted by depth, and the items of the factorisation: pieces of SN_FACTOR_WIDTH columns of a row.
static void tree_dof_levels(SnModel *m) {
  int k = 0, item = 0;
  for (int level = 0; level < m->ndoflevel; ++level) {
    m->doflevel_adr[level] = k;
    m->factor_adr[level] = item;
    for (int i = 0; i < m->nv; ++i) {
      if (m->M_rownnz[i] != level + 1) continue;
      m->doflevel_dof[k++] = i;
      for (int c = 0; c <= level; c += SN_FACTOR_WIDTH) {
        m->factor_dof[item] = i;
        m->factor_col[item++] = c;
      }
    }
  }
  m->doflevel_adr[m->ndoflevel] = k;
  m->factor_adr[m->ndoflevel] = item;
}

static SnCode tree_dofs(SnModel *m, SnError *err) {
  m->ndoflevel = m->nfactor = 0;
  for (int i = 0; i < m->nv; ++i) {
    if (!tree_row_is_nested(m, i))
      return sn_fail(err, SN_ERR_FORMAT, "model: row %d of the inertia matrix is not the chain of its dof", i);
    m->ndoflevel = sn_maxi(m->ndoflevel, m->M_rownnz[i]);
    m->nfactor += (m->M_rownnz[i] + SN_FACTOR_WIDTH - 1) / SN_FACTOR_WIDTH;
  }
  if (!TREE_ALLOC(dof_last, m->nv) || !TREE_ALLOC(doflevel_adr, m->ndoflevel + 1) || !TREE_ALLOC(doflevel_dof, m->nv) ||
      !TREE_ALLOC(factor_adr, m->ndoflevel + 1) || !TREE_ALLOC(factor_dof, m->nfactor) ||
      !TREE_ALLOC(factor_col, m->nfactor) || !TREE_ALLOC(M_base, m->nC))
    return tree_no_memory(err);
  tree_dof_levels(m);
  return tree_descendants(m, err);
}

// Adds what actuators reflect onto a joint (tendon false) or tendon `id`: armature and the three
// coefficients of damping, each times the gear squared. `hint` is jnt_actuatorid or tendon_actuatorid:
// -1 none, below -1 several.
static void tree_reflect(const SnModel *m, bool tendon, int id, int hint, sn_real *armature, sn_real *damp) {
  if (hint == -1) return;
  for (int k = 0; k < m->nactuator; ++k) {
    const int trn = m->actuator_trntype[k];
    const bool fits = tendon ? trn == SN_TRN_TENDON : trn == SN_TRN_JOINT || trn == SN_TRN_JOINTINPARENT;
    if (!fits || m->actuator_trnid[2 * k] != id || (hint >= 0 && hint != k)) continue;
    const sn_real gear = m->actuator_gear[6 * m->actuator_outadr[k]], gear2 = gear * gear;
    *armature += m->actuator_armature[k] * gear2;
    damp[0] += m->actuator_damping[k] * gear2;
    for (int p = 0; p < SN_NPOLY; ++p) damp[1 + p] += m->actuator_dampingpoly[SN_NPOLY * k + p] * gear2;
  }
}

// Damping and armature of dofs and tendons with what actuators add to them.
static SnCode tree_reflected(SnModel *m, SnError *err) {
  if (!TREE_ALLOC(dof_arm, m->nv) || !TREE_ALLOC(dof_damp, (1 + SN_NPOLY) * m->nv) ||
      !TREE_ALLOC(ten_damp, (1 + SN_NPOLY) * m->ntendon) || !TREE_ALLOC(ten_arm, m->ntendon))
    return tree_no_memory(err);
  m->nimplicit = 0;
  for (int i = 0; i < m->nv; ++i) {
    const int j = m->dof_jntid[i], adr = m->M_rowadr[i], n = m->M_rownnz[i];
    sn_real *damp = m->dof_damp + (1 + SN_NPOLY) * i;
    m->dof_arm[i] = m->dof_armature[i];
    damp[0] = m->dof_damping[i];
    for (int p = 0; p < SN_NPOLY; ++p) damp[1 + p] = m->dof_dampingpoly[SN_NPOLY * i + p];
    bool implicit = damp[0] > 0 || m->jnt_actuatorid[j] != -1;
    for (int p = 0; p < SN_NPOLY; ++p) implicit = implicit || damp[1 + p] != 0;
    m->nimplicit += implicit;
    tree_reflect(m, false, j, m->jnt_actuatorid[j], m->dof_arm + i, damp);
    // A simple dof has a constant inertia and a row of one entry.
    for (int c = 0; c < n; ++c) m->M_base[adr + c] = 0;
    m->M_base[adr + n - 1] = m->dof_simplenum[i] ? m->dof_M0[i] : m->dof_arm[i];
  }
  for (int i = 0; i < m->ntendon; ++i) {
    sn_real *damp = m->ten_damp + (1 + SN_NPOLY) * i;
    m->ten_arm[i] = m->tendon_armature[i];
    damp[0] = m->tendon_damping[i];
    for (int p = 0; p < SN_NPOLY; ++p) damp[1 + p] = m->tendon_dampingpoly[SN_NPOLY * i + p];
    tree_reflect(m, true, i, m->tendon_actuatorid[i], m->ten_arm + i, damp);
  }
  return SN_OK;
}

// Rows of a triangle of the matrix of `implicit`: a dof and all between it and the root, also where M is diagonal.
static SnCode tree_implicit(SnModel *m, SnError *err) {
  m->nlu = 0;
  const bool on = m->opt.integrator == SN_INT_IMPLICIT;
  if (!TREE_ALLOC(lu_adr, on ? m->nv + 1 : 0)) return tree_no_memory(err);
  for (int i = 0; on && i < m->nv; ++i) {
    m->nlu += m->dof_simplenum[i] > 0 ? i - m->body_dofadr[m->dof_bodyid[i]] + 1 : m->M_rownnz[i];
    m->lu_adr[i + 1] = m->nlu;
  }
  return SN_OK;
}

SnCode sn_setup_tree(SnModel *m, SnError *err) {
  SnCode code = tree_links(m, err);
  if (code == SN_OK) code = tree_dofs(m, err);
  if (code == SN_OK) code = tree_implicit(m, err);
  if (code == SN_OK) code = tree_reflected(m, err);
  return code;
}
