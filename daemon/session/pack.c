#include "daemon/session/pack.h"

#include <stdlib.h>
#include <string.h>

typedef struct SnScratchBlock {
  struct SnScratchBlock *next;
  max_align_t memory[];
} SnScratchBlock;

void *sn_scratch_alloc(SnScratch *scratch, size_t bytes) {
  SnScratchBlock *block = calloc(1, sizeof *block + bytes);
  if (!block) {
    scratch->failed = true;
    return NULL;
  }
  block->next = scratch->first;
  scratch->first = block;
  return block->memory;
}

void sn_scratch_free(SnScratch *scratch) {
  for (SnScratchBlock *block = scratch->first, *next; block; block = next) {
    next = block->next;
    free(block);
  }
  *scratch = (SnScratch){0};
}

double *sn_pack_reals(SnScratch *scratch, const sn_real *x, size_t n, size_t *count) {
  double *out = n ? sn_scratch_alloc(scratch, n * sizeof *out) : NULL;
  *count = out ? n : 0;
  for (size_t i = 0; i < *count; i++) out[i] = (double)x[i];
  return out;
}

sn_real *sn_unpack_reals(SnScratch *scratch, const double *x, size_t n) {
  sn_real *out = n ? sn_scratch_alloc(scratch, n * sizeof *out) : NULL;
  for (size_t i = 0; out && i < n; i++) out[i] = (sn_real)x[i];
  return out;
}

void sn_unpack_mocap(SnScratch *scratch, const Sinew__V1__State *state, const sn_real **pos, const sn_real **quat) {
  size_t n = state->n_mocap / 7;
  sn_real *p = n ? sn_scratch_alloc(scratch, 3 * n * sizeof *p) : NULL,
          *q = n ? sn_scratch_alloc(scratch, 4 * n * sizeof *q) : NULL;
  for (size_t i = 0; p && q && i < n; i++) {
    for (size_t k = 0; k < 3; k++) p[3 * i + k] = (sn_real)state->mocap[7 * i + k];
    for (size_t k = 0; k < 4; k++) q[4 * i + k] = (sn_real)state->mocap[7 * i + 3 + k];
  }
  *pos = p;
  *quat = q;
}

char *sn_pack_number_type(void) { return sizeof(sn_real) == sizeof(double) ? "double" : "float"; }

Sinew__V1__State *sn_pack_state(SnScratch *scratch, const SnModel *m, const SnState *from) {
  Sinew__V1__State *state = sn_scratch_alloc(scratch, sizeof *state);
  if (!state) return NULL;
  sinew__v1__state__init(state);
  state->time = from->time;
  state->qpos = sn_pack_reals(scratch, from->qpos, (size_t)m->nq, &state->n_qpos);
  state->qvel = sn_pack_reals(scratch, from->qvel, (size_t)m->nv, &state->n_qvel);
  state->act = sn_pack_reals(scratch, from->act, (size_t)m->na, &state->n_act);
  if (from->past) state->history = sn_pack_reals(scratch, from->past, (size_t)sn_past_size(m), &state->n_history);
  double *mocap = m->nmocap ? sn_scratch_alloc(scratch, (size_t)m->nmocap * 7 * sizeof *mocap) : NULL;
  if (!mocap) return state;
  for (int i = 0; i < m->nmocap; i++) {
    for (int k = 0; k < 3; k++) mocap[7 * i + k] = (double)from->mocap_pos[3 * i + k];
    for (int k = 0; k < 4; k++) mocap[7 * i + 3 + k] = (double)from->mocap_quat[4 * i + k];
  }
  state->mocap = mocap;
  state->n_mocap = (size_t)m->nmocap * 7;
  return state;
}

Sinew__V1__TermCost **sn_pack_terms(SnScratch *scratch, const SnCost *cost, const double *term, size_t *count) {
  size_t n = (size_t)cost->nterm;
  *count = 0;
  Sinew__V1__TermCost **list = sn_scratch_alloc(scratch, n * sizeof *list),
                      *items = sn_scratch_alloc(scratch, n * sizeof *items);
  if (!list || !items) return NULL;
  for (size_t i = 0; i < n; i++) {
    sinew__v1__term_cost__init(&items[i]);
    items[i].name = (char *)sn_cost_name(cost, (int)i);
    items[i].cost = term[i];
    list[i] = &items[i];
  }
  *count = n;
  return list;
}

Sinew__V1__Error__Code sn_wire_code(SnCode code) {
  switch (code) {
    case SN_ERR_ARGUMENT:
    case SN_ERR_FORMAT:
      return SINEW__V1__ERROR__CODE__INVALID;
    case SN_ERR_UNSUPPORTED:
      return SINEW__V1__ERROR__CODE__UNSUPPORTED;
    case SN_ERR_LIMIT:
    case SN_ERR_MEMORY:
      return SINEW__V1__ERROR__CODE__LIMIT;
    case SN_ERR_NOT_FOUND:
      return SINEW__V1__ERROR__CODE__NOT_FOUND;
    case SN_ERR_TIMEOUT:
      return SINEW__V1__ERROR__CODE__TIMEOUT;
    case SN_ERR_STATE:
      return SINEW__V1__ERROR__CODE__STATE;
    case SN_OK:
    case SN_ERR_IO:
      break;
  }
  return SINEW__V1__ERROR__CODE__INTERNAL;
}
