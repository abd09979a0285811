// Memory of an adjoint, and what belongs to no stage.
#include "physics/world/adjoint.h"
#include "physics/world/layout.h"

#if !defined(__CUDACC__)
size_t sn_adjoint_layout(const SnModel *m, SnAdjoint *a, void *base) {
  SnLayout layout;
  if (sn_adjoint_place(m, 0, &layout, NULL) != SN_OK) return SN_TOO_LARGE;
  if (base) sn_adjoint_bind(&layout, a, NULL, base);
  return layout.global;
}

size_t sn_adjoint_size(const SnModel *m) { return sn_adjoint_layout(m, NULL, NULL); }

void sn_adjoint_init(const SnModel *m, SnAdjoint *a, void *memory) {
  memset(memory, 0, sn_adjoint_size(m));
  sn_adjoint_layout(m, a, memory);
}
#endif

SN_FUNC void sn_adjoint_begin(const SnModel *m, SnAdjoint *a, SnLane *lane) {
  (void)m;
  sn_lane_zero(lane, a->twist, 6 * SN_NMOTION);  // of link 0
  SN_SYNC(lane);
}

SN_FUNC void sn_adjoint_clear(const SnModel *m, SnAdjoint *a, SnLane *lane) {
  sn_lane_zero(lane, a->qpos_bar, m->nv);
  sn_lane_zero(lane, a->qvel_bar, m->nv);
  sn_lane_zero(lane, a->act_bar, m->na);
  sn_lane_zero(lane, a->ctrl_bar, m->nu);
  sn_lane_zero(lane, a->mocap_bar, 6 * m->nmocap);
  sn_adjoint_clear_bars(m, a, lane);
}

SN_FUNC void sn_adjoint_clear_bars(const SnModel *m, SnAdjoint *a, SnLane *lane) {
  sn_lane_zero(lane, a->wrench, 6 * m->nbody);
  sn_lane_zero(lane, a->twist_bar, 6 * SN_NMOTION * m->nbody);
  sn_lane_zero(lane, a->acc_bar, 6 * m->nbody);
  sn_lane_zero(lane, a->ten_length_bar, m->ntendon);
  sn_lane_zero(lane, a->ten_rate_bar, SN_NMOTION * m->ntendon);
  sn_lane_zero(lane, a->trn_length_bar, m->nout);
  sn_lane_zero(lane, a->trn_rate_bar, SN_NMOTION * m->nout);
  sn_lane_zero(lane, a->force_bar, m->nout);
  SN_ONE(lane) *a->sat_on = 0;
  SN_SYNC(lane);
}

SN_FUNC void sn_adjoint_clear_contacts(const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  sn_lane_zero(lane, a->con_dist_bar, w->ncon[0]);
  sn_lane_zero(lane, a->con_pos_bar, 3 * w->ncon[0]);
  sn_lane_zero(lane, a->con_frame_bar, 9 * w->ncon[0]);
  SN_SYNC(lane);
}
