// Centres of mass, motion axes, the inertia matrix, its sparse L'DL factor and solves.
//
// All spatial quantities of a tree are taken about one point, the centre of mass of everything under the tree's root
// body (subtree_com[body_rootid]), in axes of the world. cdof holds the velocity field of a dof there, cinert a link's
// inertia:
//   J = R I R' + m (|c|^2 1 - c c'),   h = m c,   m          (c from that point to the link's centre of mass)
// Composite rigid bodies: crb sums cinert over a subtree, and M(i, j) = cdof_j' crb(link of i) cdof_i for j on the way
// from i to the root (Featherstone, Rigid Body Dynamics Algorithms, chapter 6), plus armature on the diagonal and
// ten_J' armature ten_J of tendons, restricted to M's pattern as MuJoCo does (mj_makeM; compared with its M and qLD).
//
// M = L' D L, L unit lower triangular with M's pattern: no fill-in (Featherstone 2005). Written by columns, from leaves
// to roots:
//   D(i) = M(i,i) - sum_k D(k) L(k,i)^2,   D(i) L(i,j) = M(i,j) - sum_k D(k) L(k,i) L(k,j)
// k over the dofs below i. Rows of one depth depend only on deeper rows, so a depth is a parallel phase.
//
// M_ii = S' I S, S the axis of dof i and I the inertia of all behind it. Where that is displaced by a twist d, dM_ii =
// -2 d . (S xx I S), a wrench on each link; where S is moved, dM_ii = 2 (I S) . dS. The diagonal of efm_fluid
// (metric.c) changes in the same way, with -h C for I and C the slopes of a fluid on all behind. By the model, of one
// link of mass m, centre c and inertia J about it dM_ii = |u|^2 dm + 2 m u . (w x dc) + w' dJ w, w the turn of S and u
// its velocity at c.
#include "physics/base/vec.h"
#include "physics/dynamics/dynamics.h"

// A part of both passes of sn_com_pos, as KIN_INLINE in kinematics.c.
#define INERTIA_INLINE __attribute__((always_inline)) SN_INLINE

// In two halves, so that two entries fit one vector operation.
SN_INLINE sn_real inertia_dot6(const sn_real *a, const sn_real *b) {
  return (a[0] * b[0] + a[2] * b[2] + a[4] * b[4]) + (a[1] * b[1] + a[3] * b[3] + a[5] * b[5]);
}

// Inertia of link i about its centre of mass, in axes of the world, and its spatial inertia about `center`.
INERTIA_INLINE void inertia_link(const SnModel *m, SnWorld *w, int i, const sn_real *center) {
  const sn_real *R = w->xmat + 9 * i, *I = m->link_inertia + 6 * i, mass = m->link_mass[i];
  sn_real *G = w->link_xinertia + 6 * i, *out = w->cinert + 10 * i;
  sn_real RI[9], c[3];
  for (int r = 0; r < 3; ++r) {
    const sn_real *a = R + 3 * r;
    RI[3 * r] = a[0] * I[0] + a[1] * I[3] + a[2] * I[4];
    RI[3 * r + 1] = a[0] * I[3] + a[1] * I[1] + a[2] * I[5];
    RI[3 * r + 2] = a[0] * I[4] + a[1] * I[5] + a[2] * I[2];
  }
  for (int r = 0; r < 3; ++r) G[r] = sn_dot3(RI + 3 * r, R + 3 * r);
  G[3] = sn_dot3(RI, R + 3);
  G[4] = sn_dot3(RI, R + 6);
  G[5] = sn_dot3(RI + 3, R + 6);
  sn_sub3(c, w->link_xcom + 3 * i, center);
  const sn_real h[3] = {mass * c[0], mass * c[1], mass * c[2]};
  out[0] = G[0] + h[1] * c[1] + h[2] * c[2];
  out[1] = G[1] + h[0] * c[0] + h[2] * c[2];
  out[2] = G[2] + h[0] * c[0] + h[1] * c[1];
  out[3] = G[3] - h[0] * c[1];
  out[4] = G[4] - h[0] * c[2];
  out[5] = G[5] - h[1] * c[2];
  sn_copy3(out + 6, h);
  out[9] = mass;
}

// Velocity field of a turn about `axis` through a point, `offset` from there to the centre; of a slide along it.
SN_LOCAL void inertia_turn(sn_real *cdof, const sn_real *axis, const sn_real *offset) {
  sn_copy3(cdof, axis);
  sn_cross(cdof + 3, axis, offset);
}
SN_LOCAL void inertia_slide(sn_real *cdof, const sn_real *axis) {
  sn_set3(cdof, 0, 0, 0);
  sn_copy3(cdof + 3, axis);
}

// cdof of the dofs of joint j. Turns of ball and free joints are about the axes of the body's frame after all joints.
INERTIA_INLINE void inertia_joint(const SnModel *m, SnWorld *w, int j) {
  const int body = m->jnt_bodyid[j], type = m->jnt_type[j];
  sn_real *cdof = w->cdof + 6 * m->jnt_dofadr[j], offset[3];
  sn_sub3(offset, w->subtree_com + 3 * m->body_rootid[body], w->xanchor + 3 * j);
  if (type == SN_JNT_HINGE) {
    inertia_turn(cdof, w->xaxis + 3 * j, offset);
  } else if (type == SN_JNT_SLIDE) {
    inertia_slide(cdof, w->xaxis + 3 * j);
  } else {
    const sn_real *R = w->xmat + 9 * body;
    if (type == SN_JNT_FREE) {
      sn_zero(cdof, 18);
      cdof[3] = cdof[10] = cdof[17] = 1;
      cdof += 18;
    }
    for (int k = 0; k < 3; ++k) {
      const sn_real axis[3] = {R[k], R[3 + k], R[6 + k]};
      inertia_turn(cdof + 6 * k, axis, offset);
    }
  }
}

// Coordinate `axis` of the centre of mass of all that hangs on root body r.
INERTIA_INLINE sn_real inertia_root_com(const SnModel *m, const SnWorld *w, int r, int axis) {
  const int root = m->root_body[r];
  const sn_real mass = m->body_subtreemass[root];
  if (mass < SN_MINVAL) return m->link_of_body[root] ? w->link_xcom[3 * root + axis] : m->body_lpos[3 * root + axis];
  sn_real moment = m->root_moment[3 * r + axis];
  for (int k = m->root_adr[r]; k < m->root_adr[r + 1]; ++k) {
    const int i = m->root_link[k];
    moment += m->link_mass[i] * w->link_xcom[3 * i + axis];
  }
  return moment / mass;
}

// subtree_com of body b from the bodies below it.
SN_LOCAL void inertia_subtree_com(const SnModel *m, SnWorld *w, int b) {
  sn_real mass = 0, sum[3] = {0, 0, 0};
  for (int i = b; i <= m->body_last[b]; ++i) {
    const int link = m->link_of_body[i];
    sn_real pos[3];
    sn_mulmatvec3(pos, w->xmat + 9 * link, m->body_lpos + 3 * i);
    sn_addto3(pos, w->xpos + 3 * link);
    if (i == b) sn_copy3(w->subtree_com + 3 * b, pos);
    sn_addtoscl3(sum, pos, m->body_mass[i]);
    mass += m->body_mass[i];
  }
  if (mass >= SN_MINVAL) sn_scale3(w->subtree_com + 3 * b, sum, SN_R(1.0) / mass);
}

#if !defined(SN_PACK)
// All of sn_com_pos, or what belongs to frames that are not held; asleep is a constant, as in kinematics.c.
INERTIA_INLINE void inertia_links(const SnModel *m, SnWorld *w, SnLane *lane, const bool asleep) {
  SN_FOR(k, m->nlink) {
    const int i = m->level_body[k];
    if (asleep && sn_frames_held(m, w, i)) continue;
    sn_mulmatvec3(w->link_xcom + 3 * i, w->xmat + 9 * i, m->link_com + 3 * i);
    sn_addto3(w->link_xcom + 3 * i, w->xpos + 3 * i);
  }
  SN_SYNC(lane);
  SN_FOR(k, 3 * m->nroot) {
    const int root = m->root_body[k / 3], axis = k % 3;
    if (!(asleep && sn_frames_held(m, w, root))) w->subtree_com[3 * root + axis] = inertia_root_com(m, w, k / 3, axis);
  }
  SN_FOR(k, m->ncom) {
    if (!(asleep && sn_frames_held(m, w, m->com_list[k]))) inertia_subtree_com(m, w, m->com_list[k]);
  }
  SN_SYNC(lane);
  SN_FOR(k, m->nlink) {
    const int i = m->level_body[k];
    if (!(asleep && sn_frames_held(m, w, i))) inertia_link(m, w, i, w->subtree_com + 3 * m->body_rootid[i]);
  }
  SN_FOR(j, m->njnt) {
    if (!(asleep && sn_frames_held(m, w, m->jnt_bodyid[j]))) inertia_joint(m, w, j);
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_com_pos(const SnModel *m, SnWorld *w, SnLane *lane) {
  if (!sn_any_asleep(m, w)) {
    inertia_links(m, w, lane, false);
    return;
  }
  inertia_links(m, w, lane, true);
  SN_FOR(t, m->ntree) {
    if (w->tree_framed[t] == SN_FRAMES_UNKNOWN && !w->tree_awake[t]) w->tree_framed[t] = SN_FRAMES_KNOWN;
  }
  SN_SYNC(lane);
}

// mat += b J'J over M's pattern, J a sparse row. Ends with a sync.
SN_FUNC void sn_add_JtJ(const SnModel *m, SnLane *lane, sn_real *mat, sn_real b, int nnz, const int *col,
                        const sn_real *J) {
  SN_FOR(p, nnz) {
    const int i = col[p], *chain = m->M_colind + m->M_rowadr[i], n = m->M_rownnz[i];
    sn_real *row = mat + m->M_rowadr[i];
    for (int q = 0; q < nnz; ++q) {
      const int depth = m->M_rownnz[col[q]] - 1;
      if (depth < n && chain[depth] == col[q]) row[depth] += b * J[p] * J[q];
    }
  }
  SN_SYNC(lane);
}

// The piece of row i of M that begins at `col`, without tendons.
SN_LOCAL void inertia_rows_piece(const SnModel *m, SnWorld *w, int i, int col) {
  const int adr = m->M_rowadr[i], end = sn_mini(m->M_rownnz[i], col + SN_FACTOR_WIDTH);
  const int *colind = m->M_colind + adr;
  const sn_real *cdof = w->cdof, *base = m->M_base + adr;
  sn_real *row = w->M + adr, momentum[6];
  if (m->dof_simplenum[i]) {
    row[col] = base[col];
    return;
  }
  sn_mulinert(momentum, w->crb + 10 * m->dof_bodyid[i], cdof + 6 * i);
  for (int c = col; c < end; ++c) row[c] = base[c] + inertia_dot6(cdof + 6 * colind[c], momentum);
}

SN_FUNC void sn_make_M(const SnModel *m, SnWorld *w, SnLane *lane) {
  // composite inertias, from the leaves
  for (int level = m->nlevel - 1; level >= 0; --level) {
    const int *body = m->level_body + m->level_adr[level];
    SN_FOR_ENTRIES(k, from, end, 10, m->level_adr[level + 1] - m->level_adr[level]) {
      const int i = body[k];
      sn_real *crb = w->crb + 10 * i;
      for (int e = from; e < end; ++e) crb[e] = w->cinert[10 * i + e];
      for (int c = m->child_adr[i]; c < m->child_adr[i + 1]; ++c) {
        const sn_real *child = w->crb + 10 * m->child_body[c];
        for (int e = from; e < end; ++e) crb[e] += child[e];
      }
    }
    SN_SYNC(lane);
  }
  SN_FOR(k, m->nfactor) inertia_rows_piece(m, w, m->factor_dof[k], m->factor_col[k]);
  SN_SYNC(lane);
  for (int t = 0; t < m->ntendon; ++t) {
    const int adr = m->ten_J_rowadr[t];
    if (m->ten_arm[t] != 0)
      sn_add_JtJ(m, lane, w->M, m->ten_arm[t], m->ten_J_rownnz[t], m->ten_J_colind + adr, w->ten_J + adr);
  }
}

#if defined(SN_SERIAL)
// n columns from `col` of row i, the diagonal among them when `last`: then D(i) goes to D. Deeper rows are done. A
// pivot below SN_MINVAL is replaced by it. n and last are constants where it is called, so that the columns stay in
// registers.
SN_INLINE void inertia_factor_columns(const SnModel *m, sn_real *mat, sn_real *D, int i, int col, const int n,
                                      const bool last) {
  const int depth = m->M_rownnz[i] - 1, *rowadr = m->M_rowadr;
  sn_real *row = mat + rowadr[i] + col, acc[SN_FACTOR_WIDTH], diag = mat[rowadr[i] + depth];
  for (int c = 0; c < n; ++c) acc[c] = row[c];
  for (int k = i + 1; k <= m->dof_last[i]; ++k) {
    const sn_real *rk = mat + rowadr[k], L = rk[depth], DL = D[k] * L;
    rk += col;
    for (int c = 0; c < n; ++c) acc[c] -= DL * rk[c];
    if (!last) diag -= DL * L;
  }
  if (last) diag = acc[n - 1];
  if (!(diag >= SN_MINVAL)) diag = SN_MINVAL;
  const sn_real inv = SN_R(1.0) / diag;
  for (int c = 0; c < n - last; ++c) row[c] = acc[c] * inv;
  if (last) D[i] = diag;
}

// The piece of row i that begins at `col`.
SN_LOCAL void inertia_factor_piece(const SnModel *m, sn_real *mat, sn_real *D, int i, int col) {
  switch (m->M_rownnz[i] - col) {
    case 1:
      inertia_factor_columns(m, mat, D, i, col, 1, true);
      break;
    case 2:
      inertia_factor_columns(m, mat, D, i, col, 2, true);
      break;
    case 3:
      inertia_factor_columns(m, mat, D, i, col, 3, true);
      break;
    case 4:
      inertia_factor_columns(m, mat, D, i, col, 4, true);
      break;
    case 5:
      inertia_factor_columns(m, mat, D, i, col, 5, true);
      break;
    case 6:
      inertia_factor_columns(m, mat, D, i, col, 6, true);
      break;
    case 7:
      inertia_factor_columns(m, mat, D, i, col, 7, true);
      break;
    case 8:
      inertia_factor_columns(m, mat, D, i, col, 8, true);
      break;
    default:
      inertia_factor_columns(m, mat, D, i, col, SN_FACTOR_WIDTH, false);
      break;
  }
}

// The rows of a level; deeper ones are done.
SN_LOCAL void inertia_factor_level(const SnModel *m, sn_real *mat, sn_real *D, int level) {
  for (int k = m->factor_adr[level]; k < m->factor_adr[level + 1]; ++k)
    inertia_factor_piece(m, mat, D, m->factor_dof[k], m->factor_col[k]);
}
#endif

SN_FUNC void sn_factor_LD(const SnModel *m, SnWorld *w, SnLane *lane, sn_real *mat, sn_real *diag_inv) {
  // Until the end diag_inv holds D, and the diagonal of mat its old values, which all pieces of a row read.
#if defined(SN_SERIAL)
  for (int level = m->ndoflevel - 1; level >= 0; --level) inertia_factor_level(m, mat, diag_inv, level);
#else
  sn_lanes_factor(m, w, lane, mat, diag_inv);
#endif
  SN_FOR(i, m->nv) {
    mat[m->M_rowadr[i] + m->M_rownnz[i] - 1] = diag_inv[i];
    diag_inv[i] = SN_R(1.0) / diag_inv[i];
  }
  SN_SYNC(lane);
  SN_ONE(lane) {
    for (int i = 0; i < m->nv; ++i)
      if (diag_inv[i] >= SN_R(1.0) / SN_MINVAL) *w->warn |= SN_WARN_INERTIA;
  }
}

SN_FUNC void sn_factor_M(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(k, m->nC) w->qLD[k] = w->M[k];
  SN_SYNC(lane);
  sn_factor_LD(m, w, lane, w->qLD, w->qLDiagInv);
}
#endif

// s - sum over b in (i, last] of LD(b, column of i) x_b: what lies below dof i has its column at i's depth. Several
// partial sums, and the term that a solve learns last is added last: neither waits for the other.
SN_INLINE sn_bar inertia_minus_below(const SnModel *m, const sn_real *mat, const sn_bar *x, int i, sn_bar s) {
  const int *rowadr = m->M_rowadr, last = m->dof_last[i];
  const sn_real *column = mat + m->M_rownnz[i] - 1;
  if (last == i) return s;
  sn_bar s1 = {0}, s2 = {0};
  int b = last;
  for (; b > i + 3; b -= 3) {
    s -= column[rowadr[b]] * x[b];
    s1 += column[rowadr[b - 1]] * x[b - 1];
    s2 += column[rowadr[b - 2]] * x[b - 2];
  }
  for (; b > i + 1; --b) s -= column[rowadr[b]] * x[b];
  return s - (s1 + s2) - column[rowadr[i + 1]] * x[i + 1];
}

// s - sum over the n first entries of row i of LD(i, c) x_c, in the same way.
SN_INLINE sn_bar inertia_minus_row(const SnModel *m, const sn_real *mat, const sn_bar *x, int i, int n, sn_bar s) {
  const int *col = m->M_colind + m->M_rowadr[i];
  const sn_real *row = mat + m->M_rowadr[i];
  if (n == 0) return s;
  sn_bar s1 = {0}, s2 = {0};
  int c = 0;
  for (; c + 3 < n; c += 3) {
    s -= row[c] * x[col[c]];
    s1 += row[c + 1] * x[col[c + 1]];
    s2 += row[c + 2] * x[col[c + 2]];
  }
  for (; c < n - 1; ++c) s -= row[c] * x[col[c]];
  return s - (s1 + s2) - row[n - 1] * x[col[n - 1]];
}

SN_FUNC void sn_solve_LD(const SnModel *m, SnLane *lane, const sn_real *LD, const sn_real *diag_inv, sn_bar *x) {
#if !defined(SN_SERIAL) && !defined(SN_PACK)
  if (sn_lanes_solve_LD(m, lane, LD, diag_inv, x)) return;
#endif
  // x <- L^-T x, from the leaves
  for (int level = m->ndoflevel - 2; level >= 0; --level) {
    const int *dof = m->doflevel_dof + m->doflevel_adr[level];
    SN_FOR(k, m->doflevel_adr[level + 1] - m->doflevel_adr[level])
    x[dof[k]] = inertia_minus_below(m, LD, x, dof[k], x[dof[k]]);
    SN_SYNC(lane);
  }
  // x <- L^-1 D^-1 x, from the roots
  for (int level = 0; level < m->ndoflevel; ++level) {
    const int *dof = m->doflevel_dof + m->doflevel_adr[level];
    SN_FOR(k, m->doflevel_adr[level + 1] - m->doflevel_adr[level])
    x[dof[k]] = inertia_minus_row(m, LD, x, dof[k], level, x[dof[k]] * diag_inv[dof[k]]);
    SN_SYNC(lane);
  }
}

// -h C S of all behind link k, S the axis of dof i.
SN_LOCAL void inertia_drag(const SnModel *m, const SnWorld *w, int k, int i, sn_real *force) {
  const sn_real *C = w->link_slope + 36 * k;
  for (int e = 0; e < 6; ++e) force[e] = -sn_timestep(m, w) * sn_dot(C + 6 * e, w->cdof + 6 * i, 6);
}

#if defined(SN_MODEL_BARS)
// Link k in the motion of dof i, which moves it, with the bar of M_ii: its own mass, centre of mass and inertia.
SN_LOCAL void inertia_link_model_vjp(const SnModel *m, const SnWorld *w, SnModelBar *to, int k, int i, sn_bar bar) {
  const sn_real *S = w->cdof + 6 * i, *R = w->xmat + 9 * k;
  sn_real c[3], u[3], t[3], local[3];
  sn_bar x[3], y[3];
  sn_sub3(c, w->link_xcom + 3 * k, w->subtree_com + 3 * m->body_rootid[k]);
  sn_cross(u, S, c);
  sn_addto3(u, S + 3);
  if (to->link_mass) to->link_mass[k] += bar * sn_dot3(u, u);
  if (to->link_com) {
    sn_cross(t, u, S);
    sn_mulmattvec3(local, R, t);
    sn_addtoscl3(to->link_com + 3 * k, local, bar * (2 * m->link_mass[k]));
  }
  if (!to->link_inertia) return;
  for (int e = 0; e < 3; ++e) {
    x[e] = bar * S[e];
    y[e] = sn_bar_of(S[e]);
  }
  sn_add_inertia_bar(to->link_inertia + 6 * k, R, x, y, 1);
}

// The bars of the diagonals of M and of efm_fluid.
typedef struct InertiaBar {
  const sn_bar *inertia, *drag;
} InertiaBar;

// The bar of the axis S of dof i, as far as it moves all behind link k: 2 I S and -2 h C S, with their bars.
SN_LOCAL void inertia_axis_bar(const SnModel *m, const SnWorld *w, int k, int i, const InertiaBar *bar, sn_bar *out) {
  sn_real force[6];
  sn_mulinert(force, w->crb + 10 * k, w->cdof + 6 * i);
  for (int e = 0; e < 6; ++e) out[e] = bar->inertia[i] * (2 * force[e]);
  if (!bar->drag) return;
  inertia_drag(m, w, k, i, force);
  for (int e = 0; e < 6; ++e) out[e] += bar->drag[i] * (2 * force[e]);
}

// W += the wrench on all behind link k in the motion of dof i: they are displaced, its axis is not.
SN_LOCAL void inertia_add_wrench(const SnModel *m, const SnWorld *w, int k, int i, const InertiaBar *bar, sn_bar *W) {
  sn_bar axis[6];
  inertia_axis_bar(m, w, k, i, bar, axis);
  sn_addcrossforce(W, w->cdof + 6 * i, axis, sn_bar_of(-1));
}

// Link k: its own numbers, and the wrenches and pulls on its frame and dofs. What moves with a dof is displaced in the
// motions of the dofs before it and of those of its joint; those of deeper dofs go along.
SN_LOCAL void inertia_frame_model_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int k, const InertiaBar *bar) {
  SnModelBar *to = sn_model_bar(a);
  const int first = m->body_dofadr[k], end = first + m->body_dofnum[k];
  sn_bar W[6] = {0};
  for (int i = m->dof_parentid[first]; i >= 0; i = m->dof_parentid[i]) {
    inertia_add_wrench(m, w, k, i, bar, W);
    inertia_link_model_vjp(m, w, to, k, i, bar->inertia[i]);
  }
  sn_copy(a->wrench + 6 * k, W, 6);
  for (int i = first; i < end;) {
    const int joint = m->dof_jntid[i];
    int next = i;
    for (; next < end && m->dof_jntid[next] == joint; ++next) {
      inertia_add_wrench(m, w, k, next, bar, W);
      inertia_link_model_vjp(m, w, to, k, next, bar->inertia[next]);
    }
    for (; i < next; ++i) {
      inertia_axis_bar(m, w, k, i, bar, to->dof_pull + 6 * i);
      sn_copy(to->dof_wrench + 6 * i, W, 6);
    }
  }
}

SN_FUNC void sn_inertia_diagonal_model_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, const sn_bar *bar,
                                           const sn_bar *drag) {
  const InertiaBar both = {bar, drag};
  SnModelBar *to = sn_model_bar(a);
  for (int i = 0; to->dof_arm && i < m->nv; ++i) to->dof_arm[i] += bar[i];
  for (int t = 0; to->ten_arm && t < m->ntendon; ++t) {
    const SnRow row = sn_tendon_row(m, w, t);
    for (int q = 0; q < row.n; ++q) to->ten_arm[t] += bar[row.col[q]] * (row.J[q] * row.J[q]);
  }
  for (int k = 0; k < m->nlink; ++k)
    if (m->body_dofnum[m->level_body[k]] > 0) inertia_frame_model_vjp(m, w, a, m->level_body[k], &both);
  sn_kinematics_model_vjp(m, w, a);
  for (int k = 0; k < m->nlink; ++k) sn_zero(a->wrench + 6 * m->level_body[k], 6);
}
#endif

// Whether a turn by dof j takes the axis of dof i along: of one joint all but the slides of a free one.
SN_LOCAL bool inertia_is_carried(const SnModel *m, int i, int j) {
  const int joint = m->dof_jntid[i];
  return joint == m->dof_jntid[j] && !(m->jnt_type[joint] == SN_JNT_FREE && i < m->jnt_dofadr[joint] + 3);
}

// M_ii is twice the energy of all behind dof i in its motion S_i, which a dof j behind its axis moves by S_j.
SN_FUNC void sn_inertia_diagonal_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane, const sn_bar *bar,
                                     const sn_bar *drag) {
  (void)lane;
  SN_FOR(j, m->nv) {
    const int body = m->dof_bodyid[j], first = m->body_dofadr[body];
    const bool simple = m->dof_simplenum[j] > 0;  // M has the diagonal alone there
    const sn_real *I = w->crb + 10 * body;
    for (int k = 0; k < (simple ? j - first : m->M_rownnz[j] - 1); ++k) {
      const int i = simple ? first + k : m->M_colind[m->M_rowadr[j] + k];
      sn_real force[6], turn[6];
      if (inertia_is_carried(m, i, j)) continue;
      sn_crossmotion(turn, w->cdof + 6 * j, w->cdof + 6 * i);
      sn_mulinert(force, I, w->cdof + 6 * i);
      a->qpos_bar[j] -= bar[i] * (2 * sn_dot(force, turn, 6));
      if (!drag) continue;
      inertia_drag(m, w, body, i, force);
      a->qpos_bar[j] -= drag[i] * (2 * sn_dot(force, turn, 6));
    }
  }
  SN_SYNC(lane);
}

// Row i of the product of x and a symmetric matrix in the pattern of M.
SN_INLINE sn_bar inertia_product(const SnModel *m, const sn_real *mat, const sn_bar *x, int i) {
  const sn_bar below = inertia_minus_below(m, mat, x, i, sn_bar_of(0));
  return -inertia_minus_row(m, mat, x, i, m->M_rownnz[i], below);
}

SN_FUNC void sn_mul_M(const SnModel *m, const SnWorld *w, SnLane *lane, sn_bar *r, const sn_bar *x) {
  SN_FOR(i, m->nv) r[i] = inertia_product(m, w->M, x, i);
  SN_SYNC(lane);
}

#if !defined(SN_PACK)
SN_FUNC void sn_add_product(const SnModel *m, SnLane *lane, const sn_real *mat, sn_real *r, const sn_real *x) {
  SN_FOR(i, m->nv) r[i] += inertia_product(m, mat, x, i);
  SN_SYNC(lane);
}
#endif
