// What the constraint stage would otherwise search for in every step.
//
// A *source* is an element of the model that may make rows: an active equality, a dof or tendon with
// friction loss, a limited joint or tendon. Sources stand in the order of MuJoCo's rows (equality,
// friction loss of dofs, of tendons, limits of joints, of tendons; manual, Computation, Constraint model);
// contacts follow them at run time. Which columns the rows of a source touch never changes, so the sorted
// columns are stored here. A contact's columns are those of the two bodies' chains without the ancestors
// that both have: the chain of each body is stored, ascending, and common ancestors are a common prefix,
// because a dof's parent always has a smaller index.
#include "physics/base/bits.h"
#include "physics/model/model_private.h"

// Where the sources are written; with NULL arrays they are only counted.
typedef struct SourceList {
  int nsrc, ncol;
  int *type, *id, *size, *nnz, *coladr, *col;
} SourceList;

// Adds columns cols[0..n) to the sorted list col[0..ncol) without repeats; returns the new length.
static int merge_columns(int *col, int ncol, const int *cols, int n) {
  for (int i = 0; i < n; ++i) {
    int k = ncol;
    while (k > 0 && col[k - 1] > cols[i]) --k;
    if (k > 0 && col[k - 1] == cols[i]) continue;
    for (int j = ncol; j > k; --j) col[j] = col[j - 1];
    col[k] = cols[i];
    ++ncol;
  }
  return ncol;
}

static void add_source(SourceList *list, int type, int id, int size, const int *col, int ncol) {
  if (ncol == 0) return;  // moves nothing: MuJoCo makes no row either
  if (list->type) {
    const int s = list->nsrc;
    list->type[s] = type;
    list->id[s] = id;
    list->size[s] = size;
    list->nnz[s] = ncol;
    list->coladr[s] = list->ncol;
    memcpy(list->col + list->ncol, col, sizeof(int) * (size_t)ncol);
  }
  list->nsrc++;
  list->ncol += ncol;
}

// Body of an equality's object 1 or 2.
static int equality_body(const SnModel *m, int i, int object) {
  const int id = object == 0 ? m->eq_obj1id[i] : m->eq_obj2id[i];
  return m->eq_objtype[i] == SN_OBJ_SITE ? m->site_bodyid[id] : id;
}

// Columns of object 1 or 2 of an equality, merged into col.
static int equality_columns(const SnModel *m, int i, int object, int *col, int ncol) {
  const int id = object == 0 ? m->eq_obj1id[i] : m->eq_obj2id[i];
  switch (m->eq_type[i]) {
    case SN_EQ_CONNECT:
    case SN_EQ_WELD: {
      const int b = equality_body(m, i, object);
      return merge_columns(col, ncol, m->chain_dof + m->chain_adr[b], m->chain_adr[b + 1] - m->chain_adr[b]);
    }
    case SN_EQ_JOINT:
      return id < 0 ? ncol : merge_columns(col, ncol, m->jnt_dofadr + id, 1);
    default:
      return id < 0 ? ncol : merge_columns(col, ncol, m->ten_J_colind + m->ten_J_rowadr[id], m->ten_J_rownnz[id]);
  }
}

static void add_equalities(const SnModel *m, SourceList *list, int *col) {
  for (int i = 0; i < m->neq; ++i) {
    if (!m->eq_active0[i]) continue;
    int ncol = equality_columns(m, i, 0, col, 0);
    ncol = equality_columns(m, i, 1, col, ncol);
    const int size = m->eq_type[i] == SN_EQ_WELD ? 6 : (m->eq_type[i] == SN_EQ_CONNECT ? 3 : 1);
    add_source(list, SN_CNSTR_EQUALITY, i, size, col, ncol);
  }
}

static void add_friction_losses(const SnModel *m, SourceList *list) {
  for (int i = 0; i < m->nv; ++i)
    if (m->dof_frictionloss[i] != 0) add_source(list, SN_CNSTR_FRICTION_DOF, i, 1, &i, 1);
  for (int i = 0; i < m->ntendon; ++i)
    if (m->tendon_frictionloss[i] > 0)
      add_source(list, SN_CNSTR_FRICTION_TENDON, i, 1, m->ten_J_colind + m->ten_J_rowadr[i], m->ten_J_rownnz[i]);
}

static void add_limits(const SnModel *m, SourceList *list) {
  for (int i = 0; i < m->njnt; ++i) {
    if (!m->jnt_limited[i] || m->jnt_type[i] == SN_JNT_FREE) continue;
    const int adr = m->jnt_dofadr[i], col[3] = {adr, adr + 1, adr + 2};
    const bool ball = m->jnt_type[i] == SN_JNT_BALL;
    add_source(list, SN_CNSTR_LIMIT_JOINT, i, ball ? 1 : 2, col, ball ? 3 : 1);
  }
  for (int i = 0; i < m->ntendon; ++i)
    if (m->tendon_limited[i])
      add_source(list, SN_CNSTR_LIMIT_TENDON, i, 2, m->ten_J_colind + m->ten_J_rowadr[i], m->ten_J_rownnz[i]);
}

// Sources in the order of the rows; the sizes nsrc_eq and nsrc_fl mark the end of a kind.
static void list_sources(SnModel *m, SourceList *list, int *scratch) {
  list->nsrc = list->ncol = 0;
  add_equalities(m, list, scratch);
  m->nsrc_eq = list->nsrc;
  add_friction_losses(m, list);
  m->nsrc_fl = list->nsrc;
  add_limits(m, list);
  m->nsrc = list->nsrc;
  m->nsrccol = list->ncol;
}

// chain_dof: the dofs that move each body, ascending.
static SnCode setup_chains(SnModel *m, SnError *err) {
  m->chain_adr = sn_model_alloc(m, sizeof(int) * (size_t)(m->nbody + 1));
  if (!m->chain_adr) return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  for (int pass = 0; pass < 2; ++pass) {
    int n = 0;
    for (int b = 0; b < m->nbody; ++b) {
      const int weld = m->body_weldid[b], num = m->body_dofnum[weld];
      const int last = num ? m->body_dofadr[weld] + num - 1 : -1;
      int len = 0;
      for (int i = last; i >= 0; i = m->dof_parentid[i]) ++len;
      m->chain_adr[b] = n;
      if (pass == 1)
        for (int i = last, k = n + len - 1; i >= 0; i = m->dof_parentid[i], --k) m->chain_dof[k] = i;
      n += len;
    }
    m->chain_adr[m->nbody] = n;
    if (pass == 1) break;
    m->nchain = n;
    m->chain_dof = sn_model_alloc(m, sizeof(int) * (size_t)n);
    if (!m->chain_dof) return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  }
  return SN_OK;
}

// Most rows of one contact (pyramid of the largest condim) and most columns of one row.
static void contact_bounds(const SnModel *m, int *rows, int *cols) {
  int dim = 1, longest = 0;
  for (int i = 0; i < m->ngeom; ++i) {
    const int b = m->geom_bodyid[i];
    dim = sn_maxi(dim, m->geom_condim[i]);
    longest = sn_maxi(longest, m->chain_adr[b + 1] - m->chain_adr[b]);
  }
  for (int i = 0; i < m->npair; ++i) dim = sn_maxi(dim, m->pair_dim[i]);
  *rows = dim == 1 ? 1 : 2 * (dim - 1);
  *cols = sn_mini(m->nv, 2 * longest);
}

// Capacities: every source, the contacts that touch at their largest, and one row of every pair at a distance.
static SnCode setup_capacity(SnModel *m, SnError *err) {
  int rows, cols;
  contact_bounds(m, &rows, &cols);
  int64_t nefc = (int64_t)(m->nconmax - m->nfarmax) * rows + m->nfarmax, nJ = nefc * cols;
  for (int s = 0; s < m->nsrc; ++s) {
    nefc += m->src_size[s];
    nJ += (int64_t)m->src_size[s] * m->src_nnz[s];
  }
  const int64_t limit = 1 << 28;
  if (nJ > limit || nefc > limit)
    return sn_fail(err, SN_ERR_LIMIT, "constraints: %lld entries of efc_J in %lld rows, at most %lld are allowed",
                   (long long)nJ, (long long)nefc, (long long)limit);
  m->nefcmax = (int)nefc;
  m->nJmax = (int)nJ;
  return SN_OK;
}

// Columns of each row of M below the diagonal as bits: the pattern that the solver's Hessian starts from.
static SnCode setup_inertia_bits(SnModel *m, SnError *err) {
  m->nword = (m->nv + 63) / 64;
  m->M_bits = sn_model_alloc(m, sizeof(uint64_t) * (size_t)(m->nv * m->nword));
  if (!m->M_bits) return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  for (int i = 0; i < m->nv; ++i)
    for (int k = m->M_rowadr[i]; k < m->M_rowadr[i] + m->M_rownnz[i] - 1; ++k)
      sn_bit_set(m->M_bits + i * m->nword, m->M_colind[k]);
  return SN_OK;
}

SnCode sn_setup_constraint(SnModel *m, SnError *err) {
  SnCode code = setup_chains(m, err);
  if (code == SN_OK) code = setup_inertia_bits(m, err);
  if (code != SN_OK) return code;
  m->nsurface = 0;
  for (int g = 0; g < m->ngeom; ++g) {
    bool moves = false;
    for (int e = 0; e < 6; ++e) moves = moves || m->geom_surfacevel[6 * g + e] != 0;
    m->nsurface += moves;
  }
  int *scratch = sn_model_alloc(m, sizeof(int) * (size_t)(m->nv + 1));
  if (!scratch) return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  SourceList list = {0};
  list_sources(m, &list, scratch);
  const size_t n = sizeof(int) * (size_t)m->nsrc;
  list.type = m->src_type = sn_model_alloc(m, n);
  list.id = m->src_id = sn_model_alloc(m, n);
  list.size = m->src_size = sn_model_alloc(m, n);
  list.nnz = m->src_nnz = sn_model_alloc(m, n);
  list.coladr = m->src_coladr = sn_model_alloc(m, n);
  list.col = m->src_col = sn_model_alloc(m, sizeof(int) * (size_t)m->nsrccol);
  if (!list.type || !list.id || !list.size || !list.nnz || !list.coladr || !list.col)
    return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  list_sources(m, &list, scratch);
  return setup_capacity(m, err);
}
