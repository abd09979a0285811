// Memory of an adjoint, and what belongs to no stage.
#include "physics/world/adjoint.h"

#include "physics/base/vec.h"
#include "physics/world/layout.h"

#if defined(SN_PACK)
size_t sn_adjoint_columns_layout(const SnModel *m, void *base) {
  const size_t host = (sizeof(SnAdjoint) + 63) / 64 * 64, head = host + (sizeof(SnAdjointHost) + 63) / 64 * 64;
  SnAdjoint *a = (SnAdjoint *)base;
  SnLayout layout;
  if (sn_adjoint_place(m, &layout, NULL) != SN_OK) return 0;
  if (base) {
    sn_adjoint_bind(&layout, a, (unsigned char *)base + head);
    a->host = (SnAdjointHost *)(void *)((unsigned char *)base + host);
    *a->host = (SnAdjointHost){NULL, NULL};
    memset(a->twist, 0, 6 * SN_NMOTION * sizeof *a->twist);  // of link 0
  }
  return head + layout.bytes;
}
#elif !defined(__CUDACC__)
// Bytes of the columns that stand behind an adjoint of `first` bytes at base. None where the text for them is not there
// (physics/CMakeLists.txt) or this machine cannot run it.
static size_t layout_columns(const SnModel *m, SnAdjoint *a, void *base, size_t first) {
#if defined(SN_HAS_COLUMNS)
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2")) return 0;
#endif
  if (!base) return sn_adjoint_columns_layout(m, NULL);
  a->host->columns = (SnAdjointColumns *)((unsigned char *)base + first);
  return sn_adjoint_columns_layout(m, a->host->columns);
#else
  (void)m, (void)a, (void)base, (void)first;
  return 0;
#endif
}

// Bytes of what the CPU alone has.
enum { ADJOINT_HOST = (sizeof(SnAdjointHost) + 63) / 64 * 64 };

size_t sn_adjoint_layout(const SnModel *m, SnAdjoint *a, void *base) {
  SnLayout layout;
  if (sn_adjoint_place(m, &layout, NULL) != SN_OK) return SN_TOO_LARGE;
  const size_t columns = layout.bytes + ADJOINT_HOST;
  if (base) {
    sn_adjoint_bind(&layout, a, base);
    a->host = (SnAdjointHost *)(void *)((unsigned char *)base + layout.bytes);
    *a->host = (SnAdjointHost){NULL, NULL};
  }
  return columns + layout_columns(m, a, base, columns);
}

size_t sn_adjoint_size(const SnModel *m) { return sn_adjoint_layout(m, NULL, NULL); }

void sn_adjoint_init(const SnModel *m, SnAdjoint *a, void *memory) {
  SnLayout layout;
  sn_adjoint_layout(m, a, memory);
  if (sn_adjoint_place(m, &layout, NULL) == SN_OK) memset(memory, 0, layout.bytes);
}
#endif

SN_LOCAL void adjoint_zero(const SnLane *lane, sn_bar *x, int n) {
  (void)lane;
  SN_FOR(i, n) x[i] = sn_bar_of(0);
}

SN_FUNC void sn_adjoint_begin(const SnModel *m, SnAdjoint *a, SnLane *lane) {
  (void)m;
  adjoint_zero(lane, a->twist, 6 * SN_NMOTION);  // of link 0
  SN_SYNC(lane);
}

SN_FUNC void sn_adjoint_clear(const SnModel *m, SnAdjoint *a, SnLane *lane) {
  adjoint_zero(lane, a->qpos_bar, m->nv);
  adjoint_zero(lane, a->qvel_bar, m->nv);
  adjoint_zero(lane, a->act_bar, m->na);
  adjoint_zero(lane, a->ctrl_bar, m->nu);
  adjoint_zero(lane, a->mocap_bar, 6 * m->nmocap);
  adjoint_zero(lane, a->past_bar, sn_past_size(m));
  adjoint_zero(lane, a->ctrl_late_bar, m->ndelay > 0 ? m->nu : 0);
  if (sn_has_noslip(m)) SN_ONE(lane) *a->slip_on = 0;
  if (sn_has_exact_diagonal(m)) SN_ONE(lane) *a->diag_on = 0;
  if (sn_has_metric(m)) SN_ONE(lane) *a->metric_on = *a->metric_over = 0;
  sn_adjoint_clear_bars(m, a, lane);
}

SN_FUNC void sn_adjoint_clear_bars(const SnModel *m, SnAdjoint *a, SnLane *lane) {
  SN_FOR(k, m->nlink + 1) {
    const int link = k < m->nlink ? m->level_body[k] : 0;
    if (sn_is_left_out(m, a, link)) continue;
    sn_zero(a->wrench + 6 * link, 6);
    sn_zero(a->twist_bar + 6 * SN_NMOTION * link, 6 * SN_NMOTION);
    sn_zero(a->acc_bar + 6 * link, 6);
  }
  adjoint_zero(lane, a->ten_length_bar, m->ntendon);
  adjoint_zero(lane, a->ten_rate_bar, SN_NMOTION * m->ntendon);
  adjoint_zero(lane, a->trn_length_bar, m->nout);
  adjoint_zero(lane, a->trn_rate_bar, SN_NMOTION * m->nout);
  adjoint_zero(lane, a->force_bar, m->nout);
  SN_ONE(lane) *a->sat_on = 0;
  SN_SYNC(lane);
}

SN_FUNC void sn_adjoint_clear_contacts(const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  adjoint_zero(lane, a->con_dist_bar, w->ncon[0]);
  adjoint_zero(lane, a->con_pos_bar, 3 * w->ncon[0]);
  adjoint_zero(lane, a->con_frame_bar, 9 * w->ncon[0]);
  SN_SYNC(lane);
}
