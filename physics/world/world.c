// Memory of a world, and what stands in it before the first step.
#include "physics/base/vec.h"
#include "physics/world/layout.h"
#include "physics/world/world.h"

// Frames of the world and of all that is welded to it.
SN_LOCAL void world_static_frames(const SnModel *m, SnWorld *w, SnLane *lane) {
  (void)lane;
  SN_FOR(i, m->nbody) {
    if (m->link_of_body[i] != 0) continue;
    sn_copy3(w->xpos + 3 * i, m->base_pos + 3 * i);
    sn_copy4(w->xquat + 4 * i, m->base_quat + 4 * i);
    sn_copy(w->xmat + 9 * i, m->base_mat + 9 * i, 9);
    sn_copy3(w->xipos + 3 * i, m->body_lpos + 3 * i);
    sn_copy(w->ximat + 9 * i, m->body_lmat + 9 * i, 9);
  }
  SN_FOR(i, m->ngeom) {
    if (m->link_of_geom[i] != 0) continue;
    sn_copy3(w->geom_xpos + 3 * i, m->geom_lpos + 3 * i);
    sn_copy(w->geom_xmat + 9 * i, m->geom_lmat + 9 * i, 9);
  }
  SN_FOR(i, m->nsite) {
    if (m->link_of_site[i] != 0) continue;
    sn_copy3(w->site_xpos + 3 * i, m->site_lpos + 3 * i);
    sn_copy(w->site_xmat + 9 * i, m->site_lmat + 9 * i, 9);
  }
}

// Writes what `stage` leaves alone because it stays the same: frames of all that hangs on the world, its cvel (0), its
// subtree_com (0 where sn_com_pos does not compute it). Needs a sync after it.
SN_LOCAL void world_static_fields(const SnModel *m, SnWorld *w, SnLane *lane, SnStage stage) {
  if (stage == SN_STAGE_KINEMATICS) world_static_frames(m, w, lane);
  SN_FOR(i, m->nbody) {
    if (m->link_of_body[i] != 0) continue;
    if (stage == SN_STAGE_INERTIA) sn_zero(w->subtree_com + 3 * i, 3);
    if (stage == SN_STAGE_VELOCITY) sn_zero(w->cvel + 6 * i, 6);
  }
}

SN_FUNC void sn_world_begin(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_ONE(lane) {
    memset(w->cfd, 0, sizeof *w->cfd);
    *w->warn = 0;
    if (sn_has_sleep(m)) w->sleep_on[0] = w->nasleep[0] = 0;
  }
  SN_FOR(i, sn_has_sleep(m) * m->ntree) {
    w->tree_asleep[i] = SN_AWAKE;
    w->tree_framed[i] = SN_FRAMES_UNKNOWN;
  }
  sn_lane_zero(lane, w->sleep_qpos, sn_has_sleep(m) * m->nq);
  sn_lane_zero(lane, w->time, 1);
  sn_lane_zero(lane, w->step, 1);
  sn_lane_zero(lane, w->qpos, m->nq);
  sn_lane_zero(lane, w->qvel, m->nv);
  sn_lane_zero(lane, w->act, m->na);
  sn_lane_zero(lane, w->ctrl, m->nu);
  sn_past_reset(m, lane, w->past);
  sn_lane_zero(lane, w->mocap_pos, 3 * m->nmocap);
  sn_lane_zero(lane, w->mocap_quat, 4 * m->nmocap);
  sn_lane_zero(lane, w->qacc_warmstart, m->nv);
  for (int stage = SN_STAGE_KINEMATICS; stage <= SN_STAGE_INTEGRATE; ++stage)
    world_static_fields(m, w, lane, (SnStage)stage);
  SN_SYNC(lane);
}

#if !defined(__CUDACC__)
// One lane that needs no other.
static SnLane one_lane(void) { return (SnLane){.n = 1}; }

size_t sn_world_layout(const SnModel *m, SnWorld *w, void *base) {
  SnLayout layout;
  if (sn_world_place(m, SN_LAYOUT_LINE, &layout, NULL) != SN_OK) return SN_TOO_LARGE;
  if (base) sn_world_bind(&layout, w, base, NULL);
  return layout.bytes;
}

size_t sn_world_size(const SnModel *m) { return sn_world_layout(m, NULL, NULL); }

void sn_world_init(const SnModel *m, SnWorld *w, void *memory) {
  SnLane lane = one_lane();
  memset(memory, 0, sn_world_size(m));
  sn_world_layout(m, w, memory);
  sn_world_begin(m, w, &lane);
  sn_world_reset(m, w);
}

// Mocap bodies take the pose that the model gives them.
static void reset_mocap(const SnModel *m, SnWorld *w) {
  for (int i = 0; i < m->nbody; ++i) {
    const int k = m->body_mocapid[i];
    if (k < 0) continue;
    memcpy(w->mocap_pos + 3 * k, m->body_pos + 3 * i, 3 * sizeof(sn_real));
    memcpy(w->mocap_quat + 4 * k, m->body_quat + 4 * i, 4 * sizeof(sn_real));
  }
}

void sn_ctrl_reset(const SnModel *m, sn_real *ctrl) {
  memset(ctrl, 0, sizeof(sn_real) * (size_t)m->nu);
  for (int i = 0; i < m->nactuator; ++i)
    if (sn_ctrl_is_quat(m, i)) ctrl[m->actuator_ctrladr[i]] = 1;
}

void sn_world_reset(const SnModel *m, SnWorld *w) {
  const SnLane lane = one_lane();
  w->time[0] = w->step[0] = 0;
  *w->warn = 0;
  memcpy(w->qpos, m->qpos0, sizeof(sn_real) * (size_t)m->nq);
  memset(w->qvel, 0, sizeof(sn_real) * (size_t)m->nv);
  memset(w->qacc_warmstart, 0, sizeof(sn_real) * (size_t)m->nv);
  memset(w->act, 0, sizeof(sn_real) * (size_t)m->na);
  sn_ctrl_reset(m, w->ctrl);
  sn_past_reset(m, &lane, w->past);
  reset_mocap(m, w);
  if (!sn_has_sleep(m)) return;
  memcpy(w->tree_asleep, m->tree_asleep0, sizeof(int) * (size_t)m->ntree);
  memcpy(w->sleep_qpos, w->qpos, sizeof(sn_real) * (size_t)m->nq);
}

void sn_world_reset_key(const SnModel *m, SnWorld *w, int key) {
  sn_world_reset(m, w);
  const size_t k = (size_t)key;
  w->time[0] = m->key_time[k];
  memcpy(w->qpos, m->key_qpos + k * (size_t)m->nq, sizeof(sn_real) * (size_t)m->nq);
  memcpy(w->qvel, m->key_qvel + k * (size_t)m->nv, sizeof(sn_real) * (size_t)m->nv);
  memcpy(w->act, m->key_act + k * (size_t)m->na, sizeof(sn_real) * (size_t)m->na);
  memcpy(w->ctrl, m->key_ctrl + k * (size_t)m->nu, sizeof(sn_real) * (size_t)m->nu);
  if (m->nplastic > 0)
    memcpy(sn_plastic(m, w->past), m->key_plastic + k * (size_t)m->nplastic, sizeof(sn_real) * (size_t)m->nplastic);
  memcpy(w->mocap_pos, m->key_mpos + k * 3 * (size_t)m->nmocap, sizeof(sn_real) * 3 * (size_t)m->nmocap);
  memcpy(w->mocap_quat, m->key_mquat + k * 4 * (size_t)m->nmocap, sizeof(sn_real) * 4 * (size_t)m->nmocap);
}

void sn_world_copy_state(const SnModel *m, SnWorld *dst, const SnWorld *src) {
#define SN_WORLD_FIELD(stage, type, name, rows, cols) \
  if (SN_STAGE_##stage == SN_STAGE_STATE) memcpy(dst->name, src->name, sizeof(type) * (size_t)(rows) * (size_t)(cols));
#include "physics/world/world_fields.inc"
#undef SN_WORLD_FIELD
  *dst->warn = *src->warn;
}

void sn_world_poison(const SnModel *m, SnWorld *w, SnStage wanted) {
  // All bytes 0xff make a NaN of either precision and -1 of an int. An empty field may have no address (layout.h).
#define SN_WORLD_FIELD(stage, type, name, rows, cols) \
  if (SN_STAGE_##stage == wanted && w->name) memset(w->name, 0xff, sizeof(type) * (size_t)(rows) * (size_t)(cols));
#include "physics/world/world_fields.inc"
#undef SN_WORLD_FIELD
  SnLane lane = one_lane();
  world_static_fields(m, w, &lane, wanted);
}
#endif
