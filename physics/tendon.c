// Tendon paths, lengths and moment arms.
//
// A spatial tendon is a chain of straight lines between points fixed to bodies, and arcs on wrap geoms,
// its length L the sum of theirs, each divided by the divisor of its pulley. With u the unit vector of a
// line from p0 (on body 0) to p1 (on body 1), the line stretches at u . (v1 - v0); arcs do not stretch,
// because the string leaves them along a tangent. So a line acts on the bodies like the wrench
//   W = (m, u),  m = (p - c) x u,  p any point of the line, c the point that cdof refers to,
// +W on body 1 and -W on body 0, and the moment arm of dof k is
//   dL/dq_k = cdof_k . (sum of W over lines with body 1 behind k  -  the same with body 0).
// Which lines count for which dof is fixed at load (derive_tendon.c: pair_line), so are the lengths of
// lines between sites of the same rigid body (ten_const). A wrap owns two lines; where its string
// is free both carry the wrench of the direct line, and the geom's body sees their difference, zero.
//
// Tendon paths over several kinematic trees: m refers to the centre of mass of the tendon's first tree
// (ten_root) and is moved to that of the dof's own tree where that is another one (ten_J_root).
#include "physics/stages.h"
#include "physics/vec.h"
#include "physics/wrap.h"

// Wrench of the line p0 -> p1 about c, times scale, in W[6]; returns its length. MuJoCo's direction
// of a line of zero length is x.
SN_LOCAL sn_real sn_line(sn_real *W, const sn_real *p0, const sn_real *p1, const sn_real *c, sn_real scale) {
  sn_real arm[3];
  sn_sub3(W + 3, p1, p0);
  const sn_real length = sn_norm3(W + 3);
  if (length < SN_MINVAL) sn_set3(W + 3, scale, 0, 0);
  else sn_scale3(W + 3, W + 3, scale / length);
  sn_sub3(arm, p0, c);
  sn_cross(W, arm, W + 3);
  return length;
}

// Straight segment s between two sites.
SN_LOCAL void sn_segment(const SnModel *m, SnWorld *w, int s) {
  const sn_real *p0 = w->site_xpos + 3 * m->seg_site[2 * s], *p1 = w->site_xpos + 3 * m->seg_site[2 * s + 1];
  const sn_real scale = m->seg_scale[s];
  w->seg_length[s] = scale * sn_line(w->line_wrench + 6 * s, p0, p1, w->subtree_com + 3 * m->seg_root[s], scale);
}

// Segment k that may wrap around a geom: two lines, the arc, the touching points.
SN_LOCAL void sn_wrapped_segment(const SnModel *m, SnWorld *w, int k) {
  const int geom = m->wseg_geom[k], side = m->wseg_side[k];
  const sn_real *p0 = w->site_xpos + 3 * m->wseg_site[2 * k], *p1 = w->site_xpos + 3 * m->wseg_site[2 * k + 1];
  const sn_real *c = w->subtree_com + 3 * m->wseg_root[k], scale = m->wseg_scale[k];
  sn_real *W = w->line_wrench + 6 * (m->nseg + 2 * k), *pnt = w->wseg_point + 6 * k;
  const sn_real arc = sn_wrap(pnt, p0, p1, w->geom_xpos + 3 * geom, w->geom_xmat + 9 * geom, m->geom_size[3 * geom],
                              m->wseg_type[k], side >= 0 ? w->site_xpos + 3 * side : NULL);
  w->wseg_on[k] = arc >= 0;
  if (arc < 0) {
    w->wseg_length[k] = scale * sn_line(W, p0, p1, c, scale);
    sn_copy(W + 6, W, 6);
    return;
  }
  const sn_real first = sn_line(W, p0, pnt, c, scale), last = sn_line(W + 6, pnt + 3, p1, c, scale);
  w->wseg_length[k] = scale * (first + arc + last);
}

// Length of tendon t from its segments, or from joint positions, and the number of its path points.
SN_LOCAL void sn_tendon_length(const SnModel *m, SnWorld *w, int t) {
  sn_real length = m->ten_const[t];
  int points = m->ten_point0[t];
  if (m->tendon_type[t] == SN_TENDON_FIXED) {
    for (int i = m->tendon_adr[t]; i < m->tendon_adr[t] + m->tendon_num[t]; ++i)
      length += m->wrap_prm[i] * w->qpos[m->jnt_qposadr[m->wrap_objid[i]]];
  }
  for (int s = m->ten_seg[t]; s < m->ten_seg[t + 1]; ++s) length += w->seg_length[s];
  for (int k = m->ten_wseg[t]; k < m->ten_wseg[t + 1]; ++k) {
    length += w->wseg_length[k];
    points += 2 * w->wseg_on[k];
  }
  w->ten_length[t] = length;
  w->ten_wrapnum[t] = w->ten_wrapadr[t] = points;
}

// Entry k of ten_J: one dof of one tendon.
SN_LOCAL void sn_moment_arm(const SnModel *m, SnWorld *w, int k) {
  const int dof = m->ten_J_colind[k], root = m->ten_J_root[k];
  sn_real W[6] = {0};
  for (int i = m->ten_pair[k]; i < m->ten_pair[k + 1]; ++i) {
    const int line = m->pair_line[i];
    if (line >= 0) for (int j = 0; j < 6; ++j) W[j] += w->line_wrench[6 * line + j];
    else for (int j = 0; j < 6; ++j) W[j] -= w->line_wrench[6 * ~line + j];
  }
  if (root >= 0) {
    sn_real shift[3], moment[3];
    sn_sub3(shift, w->subtree_com + 3 * root, w->subtree_com + 3 * m->body_rootid[m->dof_bodyid[dof]]);
    sn_cross(moment, shift, W + 3);
    sn_addto3(W, moment);
  }
  w->ten_J[k] = m->ten_J_fixed[k] + sn_dot(w->cdof + 6 * dof, W, 6);
}

// Path points of tendon t as mjData lists them.
SN_LOCAL void sn_tendon_path(const SnModel *m, SnWorld *w, int t) {
  if (m->tendon_type[t] == SN_TENDON_FIXED) return;
  int n = w->ten_wrapadr[t];
  for (int i = m->tendon_adr[t]; i < m->tendon_adr[t] + m->tendon_num[t]; ++i) {
    const int k = m->wrap_seg[i];
    if (k < 0) {
      const bool site = m->wrap_type[i] == SN_WRAP_SITE;
      w->wrap_obj[n] = site ? -1 : -2;
      if (site) sn_copy3(w->wrap_xpos + 3 * n, w->site_xpos + 3 * m->wrap_objid[i]);
      else sn_set3(w->wrap_xpos + 3 * n, 0, 0, 0);
      ++n;
    } else if (w->wseg_on[k]) {
      w->wrap_obj[n] = w->wrap_obj[n + 1] = m->wrap_objid[i];
      sn_copy(w->wrap_xpos + 3 * n, w->wseg_point + 6 * k, 6);
      n += 2;
    }
  }
}

SN_FUNC void sn_tendon(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(s, m->nseg) sn_segment(m, w, s);
  SN_FOR(k, m->nwseg) sn_wrapped_segment(m, w, k);
  SN_SYNC(lane);
  SN_FOR(t, m->ntendon) sn_tendon_length(m, w, t);
  SN_FOR(k, m->nJten) sn_moment_arm(m, w, k);
  SN_SYNC(lane);
  sn_compact(lane, w->ten_wrapadr, m->ntendon);
  SN_FOR(t, m->ntendon) sn_tendon_path(m, w, t);
  SN_SYNC(lane);
}
