// Tendon paths, lengths and moment arms.
//
// A spatial tendon is a chain of straight lines between points fixed to bodies, and arcs on wrap geoms,
// its length L the sum of theirs, each divided by the divisor of its pulley. With u the unit vector of a
// line from p0 (on body 0) to p1 (on body 1), the line stretches at u . (v1 - v0); arcs do not stretch,
// because the string leaves them along a tangent. So a line acts on the bodies like the wrench
//   W = (m, u),  m = (p - c) x u,  p any point of the line, c the point that cdof refers to,
// +W on body 1 and -W on body 0, and the moment arm of dof k is
//   dL/dq_k = cdof_k . (sum of W over lines with body 1 behind k  -  the same with body 0).
// Which lines count for which dof is fixed at load (setup_tendon.c: arm_line), so are the lengths of
// lines between sites of the same rigid body (ten_const). A wrap owns two lines; where its string
// is free both carry the wrench of the direct line, and the geom's body sees their difference, zero.
//
// Tendon paths over several kinematic trees: m refers to the centre of mass of the tendon's first tree
// (seg_root) and is moved to that of the dof's own tree where that is another one (arm_root).
//
// Adjoint (own). The bars r_z of a tendon's rates J_t z multiply products that are linear in the motions, so that
// sum_z r_z (J_t z) = J_t A, with one motion A = sum_z r_z z for each tendon: its twist on the links that the tendon is
// fixed to (tenlink) replaces all motions. A link gets from its tendons, by z, r_z times the pull W of the tendon on
// it, and the wrench of the derivative of (length_bar L + J_t A) when it is displaced with all twists, as fields, at
// rest. Of a line u from p0 to p1, dv the difference of the fields at its ends,
//   force on p1 = length_bar u + (dv - u (u . dv)) / L + u x w_1,  minus the same with w_0 on p0:
// the line's tension, its turning, and the field's value at the displaced point. Of a path that wraps, with gradient g
// and its change h for the velocities y of the ends relative to the geom (actuator_private.h), the force on end i is
// length_bar g_i + h_i + g_i x (w_i - w_geom); the geom gets the reaction of the first two terms at p_i, and the torque
// g_i x y_i, because y turns with it. A path that is free, by a hair, has the derivative of the straight line; the
// curvature jumps where it touches.
#include "physics/actuator/actuator.h"
#include "physics/actuator/actuator_private.h"
#include "physics/base/vec.h"

// Wrench of the line p0 -> p1 about c, times scale, in W[6]; returns its length. MuJoCo's direction
// of a line of zero length is x.
SN_INLINE sn_real ten_line(sn_real *W, const sn_real *p0, const sn_real *p1, const sn_real *c, sn_real scale) {
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
SN_LOCAL void ten_segment(const SnModel *m, SnWorld *w, int s) {
  const sn_real *p0 = w->site_xpos + 3 * m->seg_site[2 * s], *p1 = w->site_xpos + 3 * m->seg_site[2 * s + 1];
  const sn_real scale = m->seg_scale[s];
  w->seg_length[s] = scale * ten_line(w->line_wrench + 6 * s, p0, p1, w->subtree_com + 3 * m->seg_root[s], scale);
}

// Segment k that may wrap around a geom: two lines, the arc, the touching points.
SN_LOCAL void ten_wrap(const SnModel *m, SnWorld *w, int k) {
  const int geom = m->wseg_geom[k], site = m->wseg_side_site[k];
  const sn_real *p0 = w->site_xpos + 3 * m->wseg_site[2 * k], *p1 = w->site_xpos + 3 * m->wseg_site[2 * k + 1];
  const sn_real *c = w->subtree_com + 3 * m->wseg_root[k], scale = m->wseg_scale[k];
  sn_real *W = w->line_wrench + 6 * (m->nseg + 2 * k), *pnt = w->wseg_point + 6 * k, moving_side[3];
  SnWrapGeom wrap = {.pos = w->geom_xpos + 3 * geom,
                     .mat = w->geom_xmat + 9 * geom,
                     .side = m->wseg_side + 3 * k,
                     .radius = m->geom_size[3 * geom],
                     .type = m->wseg_type[k],
                     .rule = m->wseg_rule[k]};
  if (site >= 0) {
    sn_real arm[3];
    sn_sub3(arm, w->site_xpos + 3 * site, wrap.pos);
    sn_mulmattvec3(moving_side, wrap.mat, arm);
    wrap.rule = sn_norm3(arm) < wrap.radius ? SN_SIDE_INSIDE : SN_SIDE_OUTSIDE;
    wrap.side = moving_side;
  }
  const sn_real arc = sn_wrap(pnt, w->wseg_turn + k, p0, p1, &wrap);
  w->wseg_on[k] = arc >= 0;
  if (arc < 0) {
    w->wseg_length[k] = scale * ten_line(W, p0, p1, c, scale);
    sn_copy(W + 6, W, 6);
    return;
  }
  const sn_real first = ten_line(W, p0, pnt, c, scale), last = ten_line(W + 6, pnt + 3, p1, c, scale);
  w->wseg_length[k] = scale * (first + arc + last);
}

// Length of tendon t from its segments or from joint positions.
SN_LOCAL void ten_path_length(const SnModel *m, SnWorld *w, int t) {
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
SN_LOCAL void ten_moment_arm(const SnModel *m, SnWorld *w, int a) {
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

// The same of an arm with one line, in halves that fit one vector operation. The zero makes a product of -0 the 0 that
// a sum would be.
SN_LOCAL void ten_lever(SnWorld *w, const int *lever, sn_real sign) {
  const sn_real *SN_RESTRICT axis = w->cdof + lever[1], *SN_RESTRICT W = w->line_wrench + lever[2];
  sn_real half[2];
  for (int k = 0; k < 2; ++k) half[k] = 0 + sign * (axis[k] * W[k] + axis[2 + k] * W[2 + k] + axis[4 + k] * W[4 + k]);
  w->ten_J[lever[0]] = half[0] + half[1];
}

// Number of path points of tendon t.
SN_LOCAL int ten_count_path(const SnModel *m, const SnWorld *w, int t) {
  int points = m->ten_point0[t];
  for (int k = m->ten_wseg[t]; k < m->ten_wseg[t + 1]; ++k) points += 2 * w->wseg_on[k];
  return points;
}

// Path points of tendon t as mjData lists them.
SN_LOCAL void ten_list_path(const SnModel *m, SnWorld *w, int t) {
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
SN_LOCAL void ten_all_paths(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(t, m->ntendon) w->ten_wrapnum[t] = w->ten_wrapadr[t] = ten_count_path(m, w, t);
  SN_SYNC(lane);
  sn_compact(lane, w->ten_wrapadr, m->ntendon);
  SN_FOR(t, m->ntendon) ten_list_path(m, w, t);
}

#if !defined(SN_PACK)
SN_FUNC void sn_tendon(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(s, m->nseg) ten_segment(m, w, s);
  SN_FOR(k, m->nwseg) ten_wrap(m, w, m->wseg_order[k]);
  SN_FOR(k, m->nJten) w->ten_J[k] = m->ten_J_fixed[k];
  SN_SYNC(lane);
  SN_FOR(t, m->ntendon) ten_path_length(m, w, t);
  SN_FOR(a, m->narm) {
    if (m->arm_sign[a] != 0)
      ten_lever(w, m->arm_lever + 3 * a, m->arm_sign[a]);
    else
      ten_moment_arm(m, w, a);
  }
  if (m->need_all) ten_all_paths(m, w, lane);
  SN_SYNC(lane);
}
#endif

// Of a tendon on a link, about ten_root's centre: parts of an entry of SnAdjoint.tenlink.
enum { TEN_TWIST = 0, TEN_PULL = 6, TEN_WRENCH = 12, TEN_LINK = 18 };

// From the centre of tendon t's tree to that of a link's own; false when it is the same tree.
SN_LOCAL bool ten_shift(const SnModel *m, const SnWorld *w, int t, int link, sn_real *shift) {
  const int root = m->body_rootid[link];
  if (root == m->ten_root[t] || link == 0) return false;
  sn_sub3(shift, w->subtree_com + 3 * root, w->subtree_com + 3 * m->ten_root[t]);
  return true;
}

// The motions in which the rate of tendon t has a bar: their number, and which.
SN_INLINE int ten_motions(const SnAdjoint *a, int t, int *list) {
  int n = 0;
  for (int z = 0; z < SN_NMOTION; ++z) {
    list[n] = z;
    n += sn_any(a->ten_rate_bar[SN_NMOTION * t + z]);
  }
  return n;
}

// Weighted twist of entry k, from the n motions of a list; sums zero.
SN_LOCAL void ten_open_link(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int t, int k, const int *list,
                            int n) {
  const int link = m->tenlink_link[k];
  const sn_bar *rate = a->ten_rate_bar + SN_NMOTION * t, *twist = a->twist + 6 * SN_NMOTION * link;
  sn_bar *at = a->tenlink + TEN_LINK * k, A[6] = {0}, turn[3];
  sn_real shift[3];
  for (int i = 0; i < n; ++i) {
    const sn_bar r = rate[list[i]], *z = twist + 6 * list[i];
    for (int e = 0; e < 6; ++e) A[e] += r * z[e];
  }
  if (*a->sat_on)
    for (int e = 0; e < 6; ++e) A[e] += a->sat_ten_bar[t] * a->sat_twist[6 * link + e];
  if (ten_shift(m, w, t, link, shift)) {
    sn_cross(turn, shift, A);
    sn_addto3(A + 3, turn);
  }
  for (int e = 0; e < 6; ++e) {
    at[TEN_TWIST + e] = A[e];
    at[TEN_PULL + e] = at[TEN_WRENCH + e] = sn_bar_of(0);
  }
}

// Sums of entry k about the centre of the link's own tree.
SN_LOCAL void ten_close_link(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int t, int k) {
  sn_bar *at = a->tenlink + TEN_LINK * k, moment[3];
  sn_real shift[3];
  if (!ten_shift(m, w, t, m->tenlink_link[k], shift)) return;
  for (int part = TEN_PULL; part <= TEN_WRENCH; part += 6) {
    sn_cross(moment, shift, at + part + 3);
    sn_subfrom3(at + part, moment);
  }
}

// Value of the motion A (rotation, translation) at r.
SN_INLINE void ten_field(sn_bar *v, const sn_bar *A, const sn_real *r) {
  sn_cross(v, A, r);
  sn_addto3(v, A + 3);
}

// W += sign times the wrench of the force f at r.
SN_INLINE void ten_add_force(sn_bar *W, const sn_real *r, const sn_bar *f, sn_real sign) {
  sn_bar moment[3];
  sn_cross(moment, r, f);
  sn_addtoscl3(W, moment, sign);
  sn_addtoscl3(W + 3, f, sign);
}

// A straight line from p0 to p1: the wrench that it has about c, its direction and its length times scale.
typedef struct TenLine {
  const sn_real *p0, *p1, *c;  // (3)
  sn_bar *force[2];            // (3) gets the forces on its ends, where the model's derivative is asked for; NULL
  const sn_real *W;            // (6)
  sn_real length, scale;
} TenLine;

// The line from entry at0 to at1. A line of no length pulls in MuJoCo's direction, which does not change.
SN_LOCAL void ten_line_vjp(sn_bar *at0, sn_bar *at1, const TenLine *line, sn_bar length_bar) {
  const sn_real *W = line->W, length = line->length, scale = line->scale;
  sn_real r0[3], r1[3];
  sn_bar v0[3], v1[3], dv[3], f[3], f0[3], f1[3];
  sn_sub3(r0, line->p0, line->c);
  sn_sub3(r1, line->p1, line->c);
  ten_field(v0, at0, r0);
  ten_field(v1, at1, r1);
  sn_sub3(dv, v1, v0);
  const sn_real *u = W + 3, per = length > scale * SN_MINVAL ? 1 / length : 0;
  sn_scale3(f, u, length_bar - per * sn_dot3(u, dv));
  sn_addtoscl3(f, dv, per * scale * scale);
  sn_cross(f0, u, at0);
  sn_cross(f1, u, at1);
  sn_addto3(f0, f);
  sn_addto3(f1, f);
  ten_add_force(at0 + TEN_WRENCH, r0, f0, -1);
  ten_add_force(at1 + TEN_WRENCH, r1, f1, 1);
#if defined(SN_MODEL_BARS)
  if (line->force[0]) {
    sn_subfrom3(line->force[0], f0);
    sn_addto3(line->force[1], f1);
  }
#endif
  for (int e = 0; e < 6; ++e) {
    at0[TEN_PULL + e] -= W[e];
    at1[TEN_PULL + e] += W[e];
  }
}

#if defined(SN_MODEL_BARS)
// Where the force on a site goes; NULL: nobody asks.
SN_INLINE sn_bar *ten_site_force(const SnAdjoint *a, int site) {
  return sn_model_bar(a) ? sn_model_bar(a)->site_wrench + 6 * site + 3 : NULL;
}

// length_bar times the length of the path around a geom of another radius, plus the rate of that length when its ends
// move at y (6) relative to the geom. False where that path is free.
SN_LOCAL bool ten_wrap_work(const SnModel *m, const SnWorld *w, int k, sn_real radius, sn_bar length_bar,
                            const sn_bar *y, sn_bar *work) {
  const int geom = m->wseg_geom[k], site = m->wseg_side_site[k];
  const sn_real *p0 = w->site_xpos + 3 * m->wseg_site[2 * k], *p1 = w->site_xpos + 3 * m->wseg_site[2 * k + 1];
  sn_real pnt[6], u0[3], u1[3], side[3];
  int turn;
  SnWrapGeom wrap = {.pos = w->geom_xpos + 3 * geom,
                     .mat = w->geom_xmat + 9 * geom,
                     .side = m->wseg_side + 3 * k,
                     .radius = radius,
                     .type = m->wseg_type[k],
                     .rule = m->wseg_rule[k]};
  if (site >= 0) {
    sn_real arm[3];
    sn_sub3(arm, w->site_xpos + 3 * site, wrap.pos);
    sn_mulmattvec3(side, wrap.mat, arm);
    wrap.rule = sn_norm3(arm) < m->geom_size[3 * geom] ? SN_SIDE_INSIDE : SN_SIDE_OUTSIDE;
    wrap.side = side;
  }
  const sn_real arc = sn_wrap(pnt, &turn, p0, p1, &wrap);
  if (arc < 0) return false;
  sn_sub3(u0, p0, pnt);
  sn_sub3(u1, p1, pnt + 3);
  const sn_real first = sn_normalize3(u0), last = sn_normalize3(u1);
  *work = m->wseg_scale[k] * (length_bar * (first + arc + last) + sn_dot3(u0, y) + sn_dot3(u1, y + 3));
  return true;
}

// Radius of the geom of segment k, by central differences of its path alone.
SN_LOCAL void ten_radius_model_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int k, sn_bar length_bar,
                                   const sn_bar *y) {
  const int geom = m->wseg_geom[k];
  const sn_real radius = m->geom_size[3 * geom], h = SN_DIFFERENCE * radius;
  sn_bar up, down;
  if (!sn_model_bar(a)->geom_size || !sn_model_bar(a)->geom_sized[geom] ||
      !ten_wrap_work(m, w, k, radius + h, length_bar, y, &up) ||
      !ten_wrap_work(m, w, k, radius - h, length_bar, y, &down))
    return;
  sn_model_bar(a)->geom_size[3 * geom] += (up - down) / (2 * h);
}
#else
#define ten_site_force(a, site) NULL
#endif

// Gradient and Hessian-vector product of the path of segment k, which touches its geom: sn_wrap_hvp.
SN_LOCAL void ten_hvp(const SnModel *m, const SnWorld *w, int k, const sn_bar *y, sn_real *g, sn_bar *h) {
  const int geom = m->wseg_geom[k];
  const sn_real *pos = w->geom_xpos + 3 * geom;
  sn_real x[6], touch[3];
  for (int i = 0; i < 2; ++i) sn_sub3(x + 3 * i, w->site_xpos + 3 * m->wseg_site[2 * k + i], pos);
  sn_sub3(touch, w->wseg_point + 6 * k, pos);
  const SnWrapGeom wrap = {
      .pos = pos, .mat = w->geom_xmat + 9 * geom, .radius = m->geom_size[3 * geom], .type = m->wseg_type[k]};
  const SnWrapPath path = {.touch = touch, .length = w->wseg_length[k] / m->wseg_scale[k], .turn = w->wseg_turn[k]};
  sn_wrap_hvp(g, h, x, y, &wrap, &path);
}

#if !defined(SN_PACK)
SN_FUNC void sn_tendon_wrap_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int k, const sn_real y[6],
                                sn_real g[6], sn_real h[6]) {
  ten_hvp(m, w, k, y, g, h);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) ten_radius_model_vjp(m, w, a, k, 0, y);
#else
  (void)a;
#endif
}
#endif

// Segment k, which touches its geom.
SN_LOCAL void ten_wrap_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int k, const sn_real *c,
                           sn_bar length_bar) {
  const int geom = m->wseg_geom[k], *entry = m->wseg_tenlink + 3 * k;
  const sn_real scale = m->wseg_scale[k];
  sn_real r[6], g[6];
  sn_bar *around = a->tenlink + TEN_LINK * entry[2], A[2][6], y[6], h[6];
  for (int i = 0; i < 2; ++i) {
    const sn_real *p = w->site_xpos + 3 * m->wseg_site[2 * k + i];
    const sn_bar *at = a->tenlink + TEN_LINK * entry[i];
    sn_sub3(r + 3 * i, p, c);
    for (int e = 0; e < 6; ++e) A[i][e] = at[e] - around[e];
    ten_field(y + 3 * i, A[i], r + 3 * i);
  }
  ten_hvp(m, w, k, y, g, h);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) ten_radius_model_vjp(m, w, a, k, length_bar, y);
#endif
  for (int i = 0; i < 2; ++i) {
    sn_bar *at = a->tenlink + TEN_LINK * entry[i], F[6], G[6], t[3], turn[3];
    sn_real W[6];
    const sn_real *ri = r + 3 * i;
    // pull; force on the geom, reversed; torque by which the velocity relative to the geom turns; force on the end
    sn_scale3(W + 3, g + 3 * i, scale);
    sn_cross(W, ri, W + 3);
    for (int e = 0; e < 3; ++e) G[3 + e] = length_bar * W[3 + e] + scale * h[3 * i + e];
    sn_cross(G, ri, G + 3);
    sn_cross(turn, W + 3, y + 3 * i);
    sn_cross(t, W + 3, A[i]);
    sn_add3(F + 3, G + 3, t);
    sn_cross(F, ri, F + 3);
    for (int e = 0; e < 6; ++e) {
      at[TEN_PULL + e] += W[e];
      at[TEN_WRENCH + e] += F[e];
      around[TEN_PULL + e] -= W[e];
      around[TEN_WRENCH + e] -= e < 3 ? G[e] - turn[e] : G[e];
    }
#if defined(SN_MODEL_BARS)
    if (!sn_model_bar(a)) continue;
    sn_bar *on = sn_model_bar(a)->geom_wrench + 6 * geom;
    sn_addto3(ten_site_force(a, m->wseg_site[2 * k + i]), F + 3);
    sn_real x[3];
    sn_sub3(x, w->site_xpos + 3 * m->wseg_site[2 * k + i], w->geom_xpos + 3 * geom);
    sn_cross(t, G + 3, x);  // the reaction, about the geom's centre
    sn_addto3(on, t);
    sn_addto3(on, turn);
    sn_subfrom3(on + 3, G + 3);
#endif
  }
}

// What tendon t does to its links: entries of tenlink.
SN_LOCAL void ten_path_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int t) {
  const sn_bar length_bar = a->ten_length_bar[t];
  const sn_real *c = w->subtree_com + 3 * m->ten_root[t];
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a) && sn_model_bar(a)->ten_const) sn_model_bar(a)->ten_const[t] += length_bar;
#endif
  int list[SN_NMOTION];
  const int n = ten_motions(a, t, list);
  int used = sn_any(length_bar) || (*a->sat_on && sn_any(a->sat_ten_bar[t])) ? 1 << SN_NMOTION : 0;
  for (int i = 0; i < n; ++i) used |= 1 << list[i];
  a->ten_used[t] = used;
  if (!used) return;
  for (int k = m->tenlink_adr[t]; k < m->tenlink_adr[t + 1]; ++k) ten_open_link(m, w, a, t, k, list, n);
  for (int s = m->ten_seg[t]; s < m->ten_seg[t + 1]; ++s) {
    const int *entry = m->seg_tenlink + 2 * s, *site = m->seg_site + 2 * s;
    const TenLine line = {.p0 = w->site_xpos + 3 * site[0],
                          .p1 = w->site_xpos + 3 * site[1],
                          .c = c,
                          .force = {ten_site_force(a, site[0]), ten_site_force(a, site[1])},
                          .W = w->line_wrench + 6 * s,
                          .length = w->seg_length[s],
                          .scale = m->seg_scale[s]};
    ten_line_vjp(a->tenlink + TEN_LINK * entry[0], a->tenlink + TEN_LINK * entry[1], &line, length_bar);
  }
  for (int k = m->ten_wseg[t]; k < m->ten_wseg[t + 1]; ++k) {
    const int *entry = m->wseg_tenlink + 3 * k, *site = m->wseg_site + 2 * k;
    if (w->wseg_on[k]) {
      ten_wrap_vjp(m, w, a, k, c, length_bar);
      continue;
    }
    const TenLine line = {.p0 = w->site_xpos + 3 * site[0],
                          .p1 = w->site_xpos + 3 * site[1],
                          .c = c,
                          .force = {ten_site_force(a, site[0]), ten_site_force(a, site[1])},
                          .W = w->line_wrench + 6 * (m->nseg + 2 * k),
                          .length = w->wseg_length[k],
                          .scale = m->wseg_scale[k]};
    ten_line_vjp(a->tenlink + TEN_LINK * entry[0], a->tenlink + TEN_LINK * entry[1], &line, length_bar);
  }
  for (int k = m->tenlink_adr[t]; k < m->tenlink_adr[t + 1]; ++k) ten_close_link(m, w, a, t, k);
}

// Parts of what a link gets from its tendons: what goes to the bar of its twist in each motion and in that of saturated
// joints, and to its wrench.
enum { TEN_SATURATION = SN_NMOTION, TEN_TO_WRENCH, TEN_PARTS };

// Adds a part to where it goes.
SN_INLINE void ten_gather_part(const SnModel *m, SnAdjoint *a, int link, const int part) {
  const int from = part == TEN_TO_WRENCH ? TEN_WRENCH : TEN_PULL;
  sn_bar *to, sum[6];
  if (part == TEN_TO_WRENCH)
    to = a->wrench + 6 * link;
  else if (part == TEN_SATURATION)
    to = a->sat_twist_bar + 6 * link;
  else
    to = a->twist_bar + 6 * (SN_NMOTION * link + part);
  sn_copy(sum, to, 6);
  for (int i = m->linkten_adr[link]; i < m->linkten_adr[link + 1]; ++i) {
    const int k = m->linkten[i], t = m->tenlink_tendon[k];
    sn_bar scale = sn_bar_of(1);
    if (part == TEN_SATURATION) scale = a->sat_ten_bar[t];
    if (part < SN_NMOTION) scale = a->ten_rate_bar[SN_NMOTION * t + part];
    if (!a->ten_used[t] || !sn_any(scale)) continue;
    for (int e = 0; e < 6; ++e) sum[e] += scale * a->tenlink[TEN_LINK * k + from + e];
  }
  sn_copy(to, sum, 6);
}

#if defined(SN_SERIAL)
// All parts of a link.
SN_LOCAL void ten_gather_link(const SnModel *m, SnAdjoint *a, int link) {
  int used = 0;  // motions that some tendon of it uses
  for (int i = m->linkten_adr[link]; i < m->linkten_adr[link + 1]; ++i)
    used |= a->ten_used[m->tenlink_tendon[m->linkten[i]]];
  if (!used) return;
  ten_gather_part(m, a, link, TEN_TO_WRENCH);
  if (*a->sat_on) ten_gather_part(m, a, link, TEN_SATURATION);
  for (int z = 0; z < SN_NMOTION; ++z)
    if (used & 1 << z) ten_gather_part(m, a, link, z);
}
#endif

// What links get from their tendons.
SN_LOCAL void ten_gather(const SnModel *m, SnAdjoint *a, SnLane *lane) {
  (void)lane;
#if defined(SN_SERIAL)
  for (int link = 0; link < m->nbody; ++link)
    if (m->linkten_adr[link + 1] > m->linkten_adr[link] && !sn_is_left_out(m, a, link)) ten_gather_link(m, a, link);
#else
  SN_FOR(i, m->nbody * TEN_PARTS) {  // links have many tendons, and are fewer than lanes
    const int link = i / TEN_PARTS, part = i % TEN_PARTS;
    if (m->linkten_adr[link + 1] > m->linkten_adr[link] && (part != TEN_SATURATION || *a->sat_on))
      ten_gather_part(m, a, link, part);
  }
#endif
}

#if defined(SN_MODEL_BARS)
// Coefficients of fixed tendons: of the length, and of the rates in all motions.
SN_LOCAL void ten_fixed_model_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a) {
  for (int dof = 0; dof < m->nv; ++dof) {
    for (int i = m->fixed_adr[dof]; i < m->fixed_adr[dof + 1]; ++i) {
      const int t = m->fixed_tendon[i];
      sn_bar bar = a->ten_length_bar[t] * w->qpos[m->jnt_qposadr[m->dof_jntid[dof]]];
      for (int z = 0; z < SN_NMOTION; ++z) bar += a->ten_rate_bar[SN_NMOTION * t + z] * a->motion[z * m->nv + dof];
      if (*a->sat_on) bar += a->sat_ten_bar[t] * a->sat_motion[dof];
      sn_model_bar(a)->ten_J_fixed[m->fixed_entry[i]] += bar;
    }
  }
}
#endif

SN_FUNC void sn_tendon_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  SN_SYNC(lane);
  SN_FOR(t, m->ntendon) ten_path_vjp(m, w, a, t);
  SN_SYNC(lane);
  ten_gather(m, a, lane);
  SN_FOR(dof, m->nv) {
    for (int i = m->fixed_adr[dof]; i < m->fixed_adr[dof + 1]; ++i) {
      const sn_real coef = m->ten_J_fixed[m->fixed_entry[i]];
      const int t = m->fixed_tendon[i];
      a->qpos_bar[dof] += coef * a->ten_length_bar[t];
      a->qvel_bar[dof] += coef * a->ten_rate_bar[SN_NMOTION * t + SN_VEL];
    }
  }
  SN_SYNC(lane);
  if (m->nactmotion > 0) sn_saturation_sweep(m, w, a, lane);
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a) && sn_model_bar(a)->ten_J_fixed) {
    SN_ONE(lane) ten_fixed_model_vjp(m, w, a);
    SN_SYNC(lane);
  }
#endif
}
