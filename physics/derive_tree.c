#include "physics/model.h"

// Bodies sorted by depth: a recursion over the tree runs level by level.
SnCode sn_derive_tree(SnModel *m, SnError *err) {
  int *depth = sn_model_alloc(m, sizeof(int) * (size_t)m->nbody);
  m->level_body = sn_model_alloc(m, sizeof(int) * (size_t)m->nbody);
  if (!depth || !m->level_body) return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  m->nlevel = 0;
  for (int i = 1; i < m->nbody; ++i) {
    depth[i] = depth[m->body_parentid[i]] + 1;
    m->nlevel = sn_maxi(m->nlevel, depth[i]);
  }
  m->level_adr = sn_model_alloc(m, sizeof(int) * (size_t)(m->nlevel + 1));
  if (!m->level_adr) return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  int k = 0;
  for (int level = 0; level < m->nlevel; ++level) {
    m->level_adr[level] = k;
    for (int i = 1; i < m->nbody; ++i)
      if (depth[i] == level + 1) m->level_body[k++] = i;
  }
  m->level_adr[m->nlevel] = k;
  return SN_OK;
}
