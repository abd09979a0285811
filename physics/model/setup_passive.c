// Which joints and tendons have springs or dampers, and which of these tendons pull on each dof.
#include "physics/model/model_private.h"

#define PASSIVE_ALLOC(name, count) ((m->name = sn_model_alloc(m, sizeof *m->name * (size_t)(count))) != NULL)

static bool passive_any(sn_real linear, const sn_real *poly) {
  bool any = linear != 0;
  for (int p = 0; p < SN_NPOLY; ++p) any = any || poly[p] != 0;
  return any;
}

// The transpose of ten_J's pattern for the tendons on the list: per dof, tendons in ascending order.
static void passive_transpose(SnModel *m) {
  for (int k = 0; k < m->ntenpassive; ++k) {
    const int t = m->tenpassive_list[k];
    for (int e = 0; e < m->ten_J_rownnz[t]; ++e) ++m->dof_tendon_adr[m->ten_J_colind[m->ten_J_rowadr[t] + e] + 1];
  }
  for (int i = 0; i < m->nv; ++i) m->dof_tendon_adr[i + 1] += m->dof_tendon_adr[i];
  // Filling advances the start of a dof to its end, which is the start of the next.
  for (int k = 0; k < m->ntenpassive; ++k) {
    const int t = m->tenpassive_list[k];
    for (int adr = m->ten_J_rowadr[t]; adr < m->ten_J_rowadr[t] + m->ten_J_rownnz[t]; ++adr) {
      const int at = m->dof_tendon_adr[m->ten_J_colind[adr]]++;
      m->dof_tendon_id[at] = t;
      m->dof_tendon_J[at] = adr;
    }
  }
  for (int i = m->nv; i > 0; --i) m->dof_tendon_adr[i] = m->dof_tendon_adr[i - 1];
  m->dof_tendon_adr[0] = 0;
}

SnCode sn_setup_passive(SnModel *m, SnError *err) {
  if (!PASSIVE_ALLOC(jntspring_list, m->njnt) || !PASSIVE_ALLOC(tenpassive_list, m->ntendon) ||
      !PASSIVE_ALLOC(dof_tendon_adr, m->nv + 1) || !PASSIVE_ALLOC(dof_tendon_id, m->nJten) ||
      !PASSIVE_ALLOC(dof_tendon_J, m->nJten))
    return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  m->njntspring = m->ntenpassive = m->nlift = 0;
  for (int j = 0; j < m->njnt; ++j)
    if (passive_any(m->jnt_stiffness[j], m->jnt_stiffnesspoly + SN_NPOLY * j)) m->jntspring_list[m->njntspring++] = j;
  for (int t = 0; t < m->ntendon; ++t) {
    const sn_real *damp = m->ten_damp + (1 + SN_NPOLY) * t;
    if (passive_any(m->tendon_stiffness[t], m->tendon_stiffnesspoly + SN_NPOLY * t) || passive_any(damp[0], damp + 1))
      m->tenpassive_list[m->ntenpassive++] = t;
  }
  // none is lifted in a model without a body above 0, though others be below: as in MuJoCo
  for (int i = 0; m->ngravcomp > 0 && i < m->nbody; ++i)
    m->nlift += i > 0 && m->link_of_body[i] == i && m->link_lift[4 * i + 3] != 0;
  passive_transpose(m);
  return SN_OK;
}
