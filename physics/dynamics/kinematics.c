// Forward kinematics: qpos and mocap poses -> frames of bodies, geoms and sites, anchors and axes of joints.
//
// A link's frame starts at a constant pose in the link below it; each of its joints, in order, then moves it:
//   slide:        x += a (q - q0)
//   hinge, ball:  R <- R exp(.), x <- c - R p    with the anchor c = x + R p held in place
//   free:         x, R are the coordinates themselves
// where a = R (axis) and p are the joint's axis and anchor before its own motion, the conventions of MuJoCo's
// chapter Computation, Kinematic tree, compared field by field with mj_kinematics. Quaternions in qpos and of mocap
// bodies are scaled to unit length on use; products of unit quaternions are pulled back to the sphere by a Newton step.
//
// Welded bodies, geoms, sites and inertial frames follow their link by one rigid motion (setup_pose.c).
// The adjoint is in kinematics_vjp.c.
#include "physics/base/vec.h"
#include "physics/dynamics/dynamics.h"

// A part of both passes of sn_kinematics, with sleepers and without, which cost no calls.
#define KIN_INLINE __attribute__((always_inline)) SN_INLINE

// q <- q / |q| to second order in the deviation of |q| from 1.
SN_LOCAL void kin_renormalize(sn_real *q) {
  const sn_real s = SN_R(1.5) - SN_R(0.5) * (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  for (int i = 0; i < 4; ++i) q[i] *= s;
}

// Pose of link i before its joints move it.
SN_LOCAL void kin_base(const SnModel *m, const SnWorld *w, int i, sn_real *pos, sn_real *quat) {
  const int base = m->body_base[i], mocap = m->body_mocapid[i];
  if (mocap >= 0) {
    sn_copy3(pos, w->mocap_pos + 3 * mocap);
    sn_copy4(quat, w->mocap_quat + 4 * mocap);
    sn_normalize4(quat);
  } else if (base == 0) {
    sn_copy3(pos, m->base_pos + 3 * i);
    sn_copy4(quat, m->base_quat + 4 * i);
  } else {
    sn_frame_point(pos, w->xpos + 3 * base, w->xmat + 9 * base, m->base_pos + 3 * i);
    sn_mulquat(quat, w->xquat + 4 * base, m->base_quat + 4 * i);
  }
}

// Moves the pose by joint j; writes its anchor and axis.
KIN_INLINE void kin_joint(const SnModel *m, SnWorld *w, int j, sn_real *pos, sn_real *quat) {
  const int type = m->jnt_type[j];
  const sn_real *q = w->qpos + m->jnt_qposadr[j], *p = m->jnt_pos + 3 * j;
  sn_real *anchor = w->xanchor + 3 * j, *axis = w->xaxis + 3 * j;
  const bool off_center = p[0] != 0 || p[1] != 0 || p[2] != 0;
  sn_rotquat(axis, m->jnt_axis + 3 * j, quat);
  sn_copy3(anchor, pos);
  if (off_center) {
    sn_real arm[3];
    sn_rotquat(arm, p, quat);
    sn_addto3(anchor, arm);
  }
  if (type == SN_JNT_SLIDE) {
    sn_addtoscl3(pos, axis, q[0] - m->qpos0[m->jnt_qposadr[j]]);
    return;
  }
  sn_real turn[4], old[4];
  if (type == SN_JNT_BALL) {
    sn_copy4(turn, q);
    sn_normalize4(turn);
  } else {
    sn_axisangle2quat(turn, m->jnt_axis + 3 * j, q[0] - m->qpos0[m->jnt_qposadr[j]]);
  }
  sn_copy4(old, quat);
  sn_mulquat(quat, old, turn);
  if (off_center) {
    sn_real arm[3];
    sn_rotquat(arm, p, quat);
    sn_sub3(pos, anchor, arm);
  }
}

// Pose of link i after its first joint, a hinge: anchor and axis are fixed in the link below, and the turn is
// base_quat exp(axis angle) = cos(angle/2) base_quat + sin(angle/2) base_quat (0, axis).
KIN_INLINE void kin_first_hinge(const SnModel *m, SnWorld *w, int i, int j, sn_real *pos, sn_real *quat) {
  const int base = m->body_base[i], adr = m->jnt_qposadr[j];
  const sn_real half = SN_R(0.5) * (w->qpos[adr] - m->qpos0[adr]), s = sn_sin(half), c = sn_cos(half);
  const sn_real *q = m->base_quat + 4 * i, *dq = m->hinge_quat + 4 * j, *p = m->jnt_pos + 3 * j;
  const sn_real turn[4] = {c * q[0] + s * dq[0], c * q[1] + s * dq[1], c * q[2] + s * dq[2], c * q[3] + s * dq[3]};
  sn_mulquat(quat, w->xquat + 4 * base, turn);
  sn_frame_point(pos, w->xpos + 3 * base, w->xmat + 9 * base, m->hinge_anchor + 3 * j);
  sn_mulmatvec3(w->xaxis + 3 * j, w->xmat + 9 * base, m->hinge_axis + 3 * j);
  sn_copy3(w->xanchor + 3 * j, pos);
  if (p[0] != 0 || p[1] != 0 || p[2] != 0) {
    sn_real arm[3];
    sn_rotquat(arm, p, quat);
    sn_subfrom3(pos, arm);
  }
}

// Frame of link i; the link below it is done.
KIN_INLINE void kin_link(const SnModel *m, SnWorld *w, int i) {
  const int first = m->body_jntadr[i], n = m->body_jntnum[i];
  sn_real pos[3], quat[4];
  int done = n > 0 && m->jnt_type[first] == SN_JNT_HINGE;
  if (done) {
    kin_first_hinge(m, w, i, first, pos, quat);
  } else if (n == 1 && m->jnt_type[first] == SN_JNT_FREE) {
    const sn_real *q = w->qpos + m->jnt_qposadr[first];
    sn_copy3(pos, q);
    sn_copy4(quat, q + 3);
    sn_normalize4(quat);
    sn_copy3(w->xanchor + 3 * first, pos);
    sn_copy3(w->xaxis + 3 * first, m->jnt_axis + 3 * first);
    done = 1;
  } else {
    kin_base(m, w, i, pos, quat);
  }
  for (int j = first + done; j < first + n; ++j) kin_joint(m, w, j, pos, quat);
  kin_renormalize(quat);
  sn_copy3(w->xpos + 3 * i, pos);
  sn_copy4(w->xquat + 4 * i, quat);
  sn_quat2mat(w->xmat + 9 * i, quat);
}

KIN_INLINE void kin_welded_body(const SnModel *m, SnWorld *w, int i) {
  const int base = m->body_base[i];
  sn_frame_point(w->xpos + 3 * i, w->xpos + 3 * base, w->xmat + 9 * base, m->base_pos + 3 * i);
  sn_mulquat(w->xquat + 4 * i, w->xquat + 4 * base, m->base_quat + 4 * i);
  sn_quat2mat(w->xmat + 9 * i, w->xquat + 4 * i);
}

// Frame (lpos, lmat) of a link, in the world.
SN_LOCAL void kin_frame(const SnWorld *w, int link, const sn_real *lpos, const sn_real *lmat, sn_real *pos,
                        sn_real *mat) {
  sn_frame_point(pos, w->xpos + 3 * link, w->xmat + 9 * link, lpos);
  if (mat) sn_mulmatmat3(mat, w->xmat + 9 * link, lmat);
}

// Positions of a block of sites of one link, in a form that vector units take.
KIN_INLINE void kin_site_block(const SnModel *m, SnWorld *w, int block) {
  const int link = m->siteblock_link[block], *site = m->siteblock_site + SN_SITE_BLOCK * block;
  const sn_real *x = w->xpos + 3 * link, *R = w->xmat + 9 * link, *p = m->siteblock_pos + 3 * SN_SITE_BLOCK * block;
  sn_real pos[3][SN_SITE_BLOCK];
  for (int e = 0; e < 3; ++e)
    for (int s = 0; s < SN_SITE_BLOCK; ++s)
      pos[e][s] =
          x[e] + R[3 * e] * p[s] + R[3 * e + 1] * p[SN_SITE_BLOCK + s] + R[3 * e + 2] * p[2 * SN_SITE_BLOCK + s];
  for (int s = 0; s < SN_SITE_BLOCK; ++s) sn_set3(w->site_xpos + 3 * site[s], pos[0][s], pos[1][s], pos[2][s]);
}

// Frames of a block of geoms of one link, in the same form: rows of (lmat | lpos), all geoms of the block side by side.
KIN_INLINE void kin_geom_block(const SnModel *m, SnWorld *w, int block) {
  enum { N = SN_GEOM_BLOCK };
  const int link = m->geomblock_link[block], *geom = m->geomblock_geom + N * block;
  const sn_real *x = w->xpos + 3 * link, *R = w->xmat + 9 * link, *p = m->geomblock_frame + 12 * N * block;
  sn_real out[12][N];
  for (int e = 0; e < 3; ++e)
    for (int f = 0; f < 4; ++f)
      for (int s = 0; s < N; ++s)
        out[4 * e + f][s] =
            R[3 * e] * p[N * f + s] + R[3 * e + 1] * p[N * (4 + f) + s] + R[3 * e + 2] * p[N * (8 + f) + s];
  for (int s = 0; s < N; ++s) {
    sn_real *mat = w->geom_xmat + 9 * geom[s];
    for (int e = 0; e < 3; ++e) sn_set3(mat + 3 * e, out[4 * e][s], out[4 * e + 1][s], out[4 * e + 2][s]);
    sn_set3(w->geom_xpos + 3 * geom[s], x[0] + out[3][s], x[1] + out[7][s], x[2] + out[11][s]);
  }
}

// Finds the trees that sleep where their frames were computed, for sn_frames_held. Trees under one static body share
// the centre that inertias refer to: their frames are computed every time.
SN_LOCAL void kin_hold(const SnModel *m, SnWorld *w, SnLane *lane, bool asleep) {
  SN_FOR(t, m->ntree) {
    const int dof = m->tree_dofadr[t], last = m->dof_jntid[dof + m->tree_dofnum[t] - 1], body = m->tree_bodyadr[t];
    const int end = last + 1 < m->njnt ? m->jnt_qposadr[last + 1] : m->nq;
    bool held = w->tree_framed[t] == SN_FRAMES_KNOWN || w->tree_framed[t] == SN_FRAMES_HELD;
    held = held && asleep && !w->tree_awake[t] && m->body_rootid[body] == body;
    for (int k = m->jnt_qposadr[m->dof_jntid[dof]]; k < end; ++k) {
      held = held && w->frame_qpos[k] == w->qpos[k];
      w->frame_qpos[k] = w->qpos[k];
    }
    w->tree_framed[t] = held ? SN_FRAMES_HELD : SN_FRAMES_UNKNOWN;
  }
  SN_SYNC(lane);
}

// All frames, or those that are not held. asleep is a constant where it is called: without sleepers nothing is asked.
KIN_INLINE void kin_frames(const SnModel *m, SnWorld *w, SnLane *lane, const bool asleep) {
  for (int level = 0; level < m->nlevel; ++level) {
    const int *body = m->level_body + m->level_adr[level];
    SN_FOR(k, m->level_adr[level + 1] - m->level_adr[level]) {
      if (!(asleep && sn_frames_held(m, w, body[k]))) kin_link(m, w, body[k]);
    }
    SN_SYNC(lane);
  }
  SN_FOR(k, m->nwelded) {
    if (!(asleep && sn_frames_held(m, w, m->welded_body[k]))) kin_welded_body(m, w, m->welded_body[k]);
  }
  if (m->need_all) {
    SN_FOR(i, m->nbody) {
      const int link = m->link_of_body[i];
      if (!link || (asleep && sn_frames_held(m, w, i))) continue;
      kin_frame(w, link, m->body_lpos + 3 * i, m->body_lmat + 9 * i, w->xipos + 3 * i, w->ximat + 9 * i);
    }
  }
  SN_FOR(k, m->ngeomblock) {
    if (!(asleep && sn_frames_held(m, w, m->geomblock_link[k]))) kin_geom_block(m, w, k);
  }
  SN_FOR(k, m->nsiteblock) {
    if (!(asleep && sn_frames_held(m, w, m->siteblock_link[k]))) kin_site_block(m, w, k);
  }
  SN_FOR(k, m->nsiteframe) {
    const int i = m->siteframe_list[k], link = m->link_of_site[i];
    if (asleep && sn_frames_held(m, w, link)) continue;
    sn_mulmatmat3(w->site_xmat + 9 * i, w->xmat + 9 * link, m->site_lmat + 9 * i);
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_kinematics(const SnModel *m, SnWorld *w, SnLane *lane) {
  const bool asleep = sn_any_asleep(m, w);
  if (sn_has_sleep(m)) kin_hold(m, w, lane, asleep);
  if (asleep)
    kin_frames(m, w, lane, true);
  else
    kin_frames(m, w, lane, false);
}

SN_FUNC void sn_geom_pose(const SnModel *m, const SnWorld *w, int geom, sn_real pos[3], sn_real mat[9]) {
  kin_frame(w, m->link_of_geom[geom], m->geom_lpos + 3 * geom, m->geom_lmat + 9 * geom, pos, mat);
}

SN_FUNC void sn_site_pose(const SnModel *m, const SnWorld *w, int site, sn_real pos[3], sn_real mat[9]) {
  kin_frame(w, m->link_of_site[site], m->site_lpos + 3 * site, m->site_lmat + 9 * site, pos, mat);
}
