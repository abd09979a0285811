// Tendon paths, lengths and moment arms.
//
// A spatial tendon is a chain of straight lines between points fixed to bodies, and arcs on wrap geoms,
// its length L the sum of theirs, each divided by the divisor of its pulley. With u the unit vector of a
// line from p0 (on body 0) to p1 (on body 1), the line stretches at u . (v1 - v0); arcs do not stretch,
// because the string leaves them along a tangent. So a line acts on the bodies like the wrench
//   W = (m, u),  m = (p - c) x u,  p any point of the line, c the point that cdof refers to,
// +W on body 1 and -W on body 0, and the moment arm of dof k is
//   dL/dq_k = cdof_k . (sum of W over lines with body 1 behind k  -  the same with body 0).
// Which lines count for which dof is fixed at load (derive_tendon.c: arm_line), so are the lengths of
// lines between sites of the same rigid body (ten_const). A wrap owns two lines; where its string
// is free both carry the wrench of the direct line, and the geom's body sees their difference, zero.
//
// Tendon paths over several kinematic trees: m refers to the centre of mass of the tendon's first tree
// (seg_root) and is moved to that of the dof's own tree where that is another one (arm_root).
#include "physics/stages.h"
#include "physics/vec.h"
#include "physics/wrap.h"

// Wrench of the line p0 -> p1 about c, times scale, in W[6]; returns its length. MuJoCo's direction
// of a line of zero length is x.
SN_LOCAL sn_real sn_line(sn_real *W, const sn_real *p0, const sn_real *p1, const sn_real *c, sn_real scale) {
  sn_real arm[3];
  sn_sub3(W + 3, p1, p0);
  const sn_real length = sn_norm3(W + 3);
  if (length < SN_MINVAL)
    sn_set3(W + 3, scale, 0, 0);
  else
    sn_scale3(W + 3, W + 3, scale / length);
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
  const int geom = m->wseg_geom[k], site = m->wseg_side_site[k];
  const sn_real *p0 = w->site_xpos + 3 * m->wseg_site[2 * k], *p1 = w->site_xpos + 3 * m->wseg_site[2 * k + 1];
  const sn_real *c = w->subtree_com + 3 * m->wseg_root[k], scale = m->wseg_scale[k], radius = m->geom_size[3 * geom];
  const sn_real *pos = w->geom_xpos + 3 * geom, *mat = w->geom_xmat + 9 * geom, *side = m->wseg_side + 3 * k;
  sn_real *W = w->line_wrench + 6 * (m->nseg + 2 * k), *pnt = w->wseg_point + 6 * k, moving_side[3];
  int rule = m->wseg_rule[k];
  if (site >= 0) {
    sn_real arm[3];
    sn_sub3(arm, w->site_xpos + 3 * site, pos);
    sn_mulmattvec3(moving_side, mat, arm);
    rule = sn_norm3(arm) < radius ? SN_SIDE_INSIDE : SN_SIDE_OUTSIDE;
    side = moving_side;
  }
  const sn_real arc = sn_wrap(pnt, p0, p1, pos, mat, radius, m->wseg_type[k], rule, side);
  w->wseg_on[k] = arc >= 0;
  if (arc < 0) {
    w->wseg_length[k] = scale * sn_line(W, p0, p1, c, scale);
    sn_copy(W + 6, W, 6);
    return;
  }
  const sn_real first = sn_line(W, p0, pnt, c, scale), last = sn_line(W + 6, pnt + 3, p1, c, scale);
  w->wseg_length[k] = scale * (first + arc + last);
}

// Length of tendon t from its segments or from joint positions.
SN_LOCAL void sn_tendon_length(const SnModel *m, SnWorld *w, int t) {
  sn_real length = m->ten_const[t];
  if (m->tendon_type[t] == SN_TENDON_FIXED) {
    for (int i = m->tendon_adr[t]; i < m->tendon_adr[t] + m->tendon_num[t]; ++i)
      length += m->wrap_prm[i] * w->qpos[m->jnt_qposadr[m->wrap_objid[i]]];
  }
  for (int s = m->ten_seg[t]; s < m->ten_seg[t + 1]; ++s) length += w->seg_length[s];
  for (int k = m->ten_wseg[t]; k < m->ten_wseg[t + 1]; ++k) length += w->wseg_length[k];
  w->ten_length[t] = length;
}

// Moment arm a: one entry of ten_J, a dof of a tendon.
SN_LOCAL void sn_moment_arm(const SnModel *m, SnWorld *w, int a) {
  const int entry = m->arm_entry[a], dof = m->ten_J_colind[entry], root = m->arm_root[a];
  const sn_real *axis = w->cdof + 6 * dof;
  sn_real even = 0, odd = 0, pull[3] = {0, 0, 0};
  for (int i = m->arm_adr[a]; i < m->arm_adr[a + 1]; ++i) {
    const int line = m->arm_line[i];
    const sn_real *W = w->line_wrench + 6 * (line < 0 ? ~line : line);
    const sn_real e = axis[0] * W[0] + axis[2] * W[2] + axis[4] * W[4];
    const sn_real o = axis[1] * W[1] + axis[3] * W[3] + axis[5] * W[5];
    even += line < 0 ? -e : e;
    odd += line < 0 ? -o : o;
    if (root >= 0) sn_addtoscl3(pull, W + 3, line < 0 ? SN_R(-1.0) : SN_R(1.0));
  }
  if (root >= 0) {
    sn_real shift[3], moment[3];
    sn_sub3(shift, w->subtree_com + 3 * root, w->subtree_com + 3 * m->body_rootid[m->dof_bodyid[dof]]);
    sn_cross(moment, shift, pull);
    even += sn_dot3(axis, moment);
  }
  w->ten_J[entry] = even + odd;
}

// Number of path points of tendon t.
SN_LOCAL int sn_path_points(const SnModel *m, const SnWorld *w, int t) {
  int points = m->ten_point0[t];
  for (int k = m->ten_wseg[t]; k < m->ten_wseg[t + 1]; ++k) points += 2 * w->wseg_on[k];
  return points;
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
      if (site)
        sn_copy3(w->wrap_xpos + 3 * n, w->site_xpos + 3 * m->wrap_objid[i]);
      else
        sn_set3(w->wrap_xpos + 3 * n, 0, 0, 0);
      ++n;
    } else if (w->wseg_on[k]) {
      w->wrap_obj[n] = w->wrap_obj[n + 1] = m->wrap_objid[i];
      sn_copy(w->wrap_xpos + 3 * n, w->wseg_point + 6 * k, 6);
      n += 2;
    }
  }
}

// The list of path points; the motion of the body does not depend on it.
SN_LOCAL void sn_all_paths(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(t, m->ntendon) w->ten_wrapnum[t] = w->ten_wrapadr[t] = sn_path_points(m, w, t);
  SN_SYNC(lane);
  sn_compact(lane, w->ten_wrapadr, m->ntendon);
  SN_FOR(t, m->ntendon) sn_tendon_path(m, w, t);
}

SN_FUNC void sn_tendon(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(s, m->nseg) sn_segment(m, w, s);
  SN_FOR(k, m->nwseg) sn_wrapped_segment(m, w, k);
  SN_FOR(k, m->nJten) w->ten_J[k] = m->ten_J_fixed[k];
  SN_SYNC(lane);
  SN_FOR(t, m->ntendon) sn_tendon_length(m, w, t);
  SN_FOR(a, m->narm) sn_moment_arm(m, w, a);
  if (m->need_all) sn_all_paths(m, w, lane);
  SN_SYNC(lane);
}
