// Rows of contacts.
//
// With n, t1, t2 the rows of the contact frame and u, w the relative linear and angular velocity of the two
// bodies at the contact point (body of geom[1] less body of geom[0]), the contact velocities are
//   n.u, t1.u, t2.u, n.w (spin), t1.w, t2.w (rolling), the first `dim` of them.
// Elliptic cone: these are the rows. Pyramid: for each friction dimension j the pair (n +- mu_j t_j).
// dim 1: n alone. Dofs that move both bodies drop out.
// Column of dof i on a body: u = cdof_lin + cdof_ang x (p - c), w = cdof_ang, with c the point about which
// the spatial vectors of the body's tree are taken (subtree_com of its root).
//
// Adjoint. The rows' bars reduce to coefficients F_z of the six contact velocities of each motion z. With g = sum of
// F_z over n, t1, t2 (a force), h the same of the turns (a torque), and u, w of that motion,
//   n_bar += F_z[0] u + F_z[3] w,  t1_bar, t2_bar alike;   pos_bar += g x w;
//   twist of body 2: (h + (p - c2) x g, g), of body 1 the negative about c1.
// A contact that pulls has the passive force -adhesion along n, which is a coefficient of lambda's velocity there.
// dist acts on the positions of all rows, and on the D of those that have none. Friction coefficients are constants.
#include "physics/base/vec.h"
#include "physics/constraint/constraint.h"
#include "physics/constraint/constraint_private.h"

typedef struct ContactChain {
  const int *dof[2];  // dofs that move one of the two bodies and not the other
  int num[2];
} ContactChain;

// The chains behind their first `common` dofs.
SN_LOCAL ContactChain contact_chain(const SnModel *m, const SnContact *con, int common) {
  ContactChain c;
  for (int side = 0; side < 2; ++side) {
    const int b = m->geom_bodyid[con->geom[side]];
    c.dof[side] = m->chain_dof + m->chain_adr[b] + common;
    c.num[side] = m->chain_adr[b + 1] - m->chain_adr[b] - common;
  }
  return c;
}

// Number of dofs at the start of both chains.
SN_LOCAL int contact_common(const SnModel *m, const SnContact *con) {
  const ContactChain c = contact_chain(m, con, 0);
  const int n = sn_mini(c.num[0], c.num[1]);
  int common = 0;
  while (common < n && c.dof[0][common] == c.dof[1][common]) ++common;
  return common;
}

// A contact at a distance with one row.
SN_INLINE bool contact_is_single(const SnContact *con) {
  return con->cfd == SN_CONTACT_FAR && con->dim == 1 && con->exclude == 0;
}

#if !defined(SN_PACK)
SN_FUNC bool sn_contact_continues(const SnModel *m, const SnWorld *w, int i) {
  const SnContact *con = w->contact + i, *last = con - 1;
  if (i == 0 || !contact_is_single(con) || !contact_is_single(last)) return false;
  for (int side = 0; side < 2; ++side)
    if (m->link_of_geom[con->geom[side]] != m->link_of_geom[last->geom[side]]) return false;
  return true;
}

SN_FUNC int sn_contact_count(const SnModel *m, SnWorld *w, int i, int *nnz) {
  SnContact *con = w->contact + i;
  *nnz = 0;
  if (m->opt.disableflags & SN_DSBL_CONTACT || con->exclude) return 0;
  con->common = contact_common(m, con);
  const ContactChain c = contact_chain(m, con, con->common);
  *nnz = c.num[0] + c.num[1];
  if (*nnz == 0) return 0;
  if (con->dim == 1) return 1;
  return m->opt.cone == SN_CONE_PYRAMIDAL ? 2 * (con->dim - 1) : con->dim;
}
#endif

// Column k of the block from the contact velocities vel (dim) that a unit velocity of its dof makes.
SN_INLINE void put_column(const SnContact *con, bool pyramid, const sn_real *vel, sn_real *J, int nnz) {
  if (con->dim == 1) {
    J[0] = vel[0];
  } else if (pyramid) {
    for (int j = 1; j < con->dim; ++j) {
      const sn_real slide = con->friction[j - 1] * vel[j];
      J[(2 * j - 2) * nnz] = vel[0] + slide;
      J[(2 * j - 1) * nnz] = vel[0] - slide;
    }
  } else {
    for (int j = 0; j < con->dim; ++j) J[j * nnz] = vel[j];
  }
}

// Contact velocities that a unit velocity of a dof makes; frame: the contact frame, negative for the first body;
// offset: the contact point from c.
SN_INLINE void contact_velocity(int dim, const sn_real *frame, const sn_bar *cdof, const sn_real *offset, sn_bar *vel) {
  sn_bar lin[3];
  sn_cross(lin, cdof, offset);
  sn_addto3(lin, cdof + 3);
  vel[0] = sn_dot3(frame, lin);
  if (dim > 1) {
    vel[1] = sn_dot3(frame + 3, lin);
    vel[2] = sn_dot3(frame + 6, lin);
  }
  for (int j = 3; j < dim; ++j) vel[j] = sn_dot3(frame + 3 * (j - 3), cdof);
}

SN_LOCAL void contact_position(SnWorld *w, const SnContact *con, SnBlock block) {
  const bool elliptic = w->efc_type[block.row] == SN_CNSTR_CONTACT_ELLIPTIC;
  for (int r = 0; r < block.num; ++r) {
    const bool friction = elliptic && r > 0;
    w->efc_pos[block.row + r] = friction ? 0 : con->dist;
    w->efc_margin[block.row + r] = friction ? 0 : con->includemargin;
  }
}

// Side of the next column: the chains are merged in the order of their dofs.
SN_INLINE int next_side(const ContactChain *c, const int next[2]) {
  return next[1] == c->num[1] || (next[0] < c->num[0] && c->dof[0][next[0]] < c->dof[1][next[1]]) ? 0 : 1;
}

// The row of a contact with one: what its force does to a dof is the product of the dof's axis and a wrench.
SN_LOCAL void contact_single_row(const SnModel *m, SnWorld *w, const SnContact *con, SnBlock block) {
  const ContactChain c = contact_chain(m, con, con->common);
  sn_real wrench[2][6];
  for (int side = 0; side < 2; ++side) {
    sn_real arm[3];
    sn_sub3(arm, con->pos, w->subtree_com + 3 * m->body_rootid[m->geom_bodyid[con->geom[side]]]);
    sn_scale3(wrench[side] + 3, con->frame, side == 0 ? SN_R(-1.0) : SN_R(1.0));
    sn_cross(wrench[side], arm, wrench[side] + 3);
  }
  int *col = w->efc_J_colind + block.adr, next[2] = {0, 0};
  sn_real *J = w->efc_J + block.adr;
  for (int k = 0; k < block.nnz; ++k) {
    const int side = next_side(&c, next), d = c.dof[side][next[side]++];
    const sn_real *S = w->cdof + 6 * d, *W = wrench[side];
    col[k] = d;
    J[k] = (S[0] * W[0] + S[1] * W[1] + S[2] * W[2]) + (S[3] * W[3] + S[4] * W[4] + S[5] * W[5]);
  }
  contact_position(w, con, block);
}

#if !defined(SN_PACK)
SN_FUNC void sn_contact_rows(const SnModel *m, SnWorld *w, int i, SnBlock block) {
  const SnContact *con = w->contact + i;
  if (contact_is_single(con)) {
    contact_single_row(m, w, con, block);
    return;
  }
  const ContactChain c = contact_chain(m, con, con->common);
  const bool pyramid = m->opt.cone == SN_CONE_PYRAMIDAL;
  sn_real offset[2][3], frame[2][9];
  for (int side = 0; side < 2; ++side) {
    sn_sub3(offset[side], con->pos, w->subtree_com + 3 * m->body_rootid[m->geom_bodyid[con->geom[side]]]);
    for (int k = 0; k < 9; ++k) frame[side][k] = side == 0 ? -con->frame[k] : con->frame[k];
  }
  int *col = w->efc_J_colind + block.adr;
  sn_real *J = w->efc_J + block.adr;
  int next[2] = {0, 0};
  for (int k = 0; k < block.nnz; ++k) {
    const int side = next_side(&c, next), d = c.dof[side][next[side]++];
    sn_real vel[6];
    contact_velocity(con->dim, frame[side], w->cdof + 6 * d, offset[side], vel);
    col[k] = d;
    put_column(con, pyramid, vel, J + k, block.nnz);
  }
  contact_position(w, con, block);
}
#endif

// Coefficients of the contact velocities of each motion, from the bars of the rows; returns the bar of dist. False in
// *any: all of them are zero.
SN_LOCAL sn_bar contact_coefficients(const SnWorld *w, const SnAdjoint *a, const SnContact *con, sn_real pull,
                                     sn_bar F[3][6], bool *any) {
  const int first = con->efc_address, dim = con->dim;
  const bool pyramid = w->efc_type[first] == SN_CNSTR_CONTACT_PYRAMIDAL;
  const int num = pyramid ? 2 * (dim - 1) : dim;
  sn_bar dist = {0};
  for (int z = 0; z < 3; ++z) sn_zero(F[z], 6);
  *any = false;
  for (int r = 0; r < num; ++r) {
    const sn_bar *bar = a->row_z + 3 * (first + r);
    const sn_real slide = pyramid ? con->friction[r / 2] : 0;
    dist += a->row_pos[first + r];
    *any = *any || sn_any(bar[0]) || sn_any(bar[1]);
    for (int z = 0; z < 3; ++z) {
      F[z][pyramid ? 0 : r] += bar[z];
      if (pyramid) F[z][r / 2 + 1] += r % 2 ? -slide * bar[z] : slide * bar[z];
    }
  }
  F[SN_LAMBDA][0] -= pull;
  *any = *any || pull != 0;
  return dist;
}

// A contact with one row: all motions at once, as the row's velocity is the product of a wrench and the twists.
SN_LOCAL void contact_single_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_bar *F,
                                 sn_bar *twist) {
  const SnContact *con = w->contact + i;
  sn_bar sum[2][6], *pos = a->con_pos_bar + 3 * i, *normal = a->con_frame_bar + 9 * i, t[3];
  for (int side = 0; side < 2; ++side) {
    const int body = m->geom_bodyid[con->geom[side]];
    const sn_bar *T = sn_twist(m, a, body, SN_LAMBDA);
    const sn_real sign = side == 0 ? SN_R(-1.0) : SN_R(1.0);
    sn_real arm[3], wrench[6];
    sn_sub3(arm, con->pos, sn_twist_origin(m, w, body));
    sn_cross(wrench, arm, con->frame);
    sn_copy3(wrench + 3, con->frame);
    for (int z = 0; z < 3; ++z)
      for (int e = 0; e < 6; ++e) twist[18 * side + 6 * z + e] = sign * F[z] * wrench[e];
    for (int e = 0; e < 6; ++e) sum[side][e] = F[0] * T[e] + F[1] * T[6 + e] + F[2] * T[12 + e];
    sn_cross(t, sum[side], arm);
    sn_addto3(t, sum[side] + 3);
    sn_addtoscl3(normal, t, sign);
  }
  sn_sub3(t, sum[1], sum[0]);
  sn_cross(pos, con->frame, t);
}

// The same of any contact, motion by motion.
SN_LOCAL void contact_motion_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, sn_bar F[3][6],
                                 sn_bar *twist) {
  const SnContact *con = w->contact + i;
  const int body[2] = {m->geom_bodyid[con->geom[0]], m->geom_bodyid[con->geom[1]]}, turns = con->dim - 3;
  sn_real arm[2][3];
  sn_bar *pos = a->con_pos_bar + 3 * i, *frame = a->con_frame_bar + 9 * i;
  for (int side = 0; side < 2; ++side) sn_sub3(arm[side], con->pos, sn_twist_origin(m, w, body[side]));
  for (int z = 0; z < 3; ++z) {
    const sn_bar *T0 = sn_twist(m, a, body[0], (SnMotion)z), *T1 = sn_twist(m, a, body[1], (SnMotion)z);
    sn_bar u[3], turn[3], g[3] = {0}, h[3] = {0}, t[3];
    sn_sub3(turn, T1, T0);
    sn_sub3(u, T1 + 3, T0 + 3);
    sn_cross(t, T1, arm[1]);
    sn_addto3(u, t);
    sn_cross(t, T0, arm[0]);
    sn_subfrom3(u, t);
    for (int r = 0; r < 3; ++r) {
      sn_addtoscl3(frame + 3 * r, u, F[z][r]);
      sn_addtoscl3(g, con->frame + 3 * r, F[z][r]);
    }
    for (int r = 0; r < turns; ++r) {
      sn_addtoscl3(frame + 3 * r, turn, F[z][3 + r]);
      sn_addtoscl3(h, con->frame + 3 * r, F[z][3 + r]);
    }
    sn_cross(t, g, turn);
    sn_addto3(pos, t);
    for (int side = 0; side < 2; ++side) {
      const sn_real sign = side == 0 ? SN_R(-1.0) : SN_R(1.0);
      sn_cross(t, arm[side], g);
      for (int e = 0; e < 3; ++e) {
        twist[18 * side + 6 * z + e] = sign * (h[e] + t[e]);
        twist[18 * side + 6 * z + 3 + e] = sign * g[e];
      }
    }
  }
}

#if defined(SN_MODEL_BARS)
SN_FUNC void sn_contact_velocities(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int i, sn_bar *velocity) {
  const SnContact *con = w->contact + i;
  sn_zero(velocity, 18);
  for (int side = 0; side < 2; ++side) {
    const int body = m->geom_bodyid[con->geom[side]];
    sn_real arm[3], frame[9];
    sn_sub3(arm, con->pos, sn_twist_origin(m, w, body));
    for (int e = 0; e < 9; ++e) frame[e] = side == 0 ? -con->frame[e] : con->frame[e];
    for (int z = 0; z < 3; ++z) {
      sn_bar vel[6] = {0};
      contact_velocity(con->dim, frame, sn_twist(m, a, body, (SnMotion)z), arm, vel);
      for (int e = 0; e < con->dim; ++e) velocity[6 * z + e] += vel[e];
    }
  }
  if (m->nsurface == 0) return;
  sn_real surface[6];
  sn_surface_velocity(m, w, i, surface);
  for (int e = 0; e < 6; ++e) velocity[6 * SN_VEL + e] += surface[e];
}
#endif

SN_FUNC bool sn_contact_rows_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, sn_bar *twist) {
  const SnContact *con = w->contact + i;
  const int row = con->efc_address;
  sn_bar F[3][6];
  bool any;
  a->con_dist_bar[i] = sn_bar_of(0);
  sn_zero(a->con_pos_bar + 3 * i, 3);
  sn_zero(a->con_frame_bar + 9 * i, 9);
  if (row < 0) return false;
  const sn_real pull = sn_is_passive(m) ? con->adhesion : 0;  // the passive force along the normal
  if (con->dim == 1) {
    sn_bar z[3];
    sn_copy3(z, a->row_z + 3 * row);
    z[SN_LAMBDA] -= pull;
    a->con_dist_bar[i] = a->row_pos[row];
    if (!sn_any(z[0]) && !sn_any(z[1])) return false;
    contact_single_vjp(m, w, a, i, z, twist);
    return true;
  }
  a->con_dist_bar[i] = contact_coefficients(w, a, con, pull, F, &any);
  if (any) contact_motion_vjp(m, w, a, i, F, twist);
  return any;
}

#if !defined(SN_PACK)
SN_FUNC void sn_contact_force(const SnWorld *w, int i, sn_real force[6]) {
  const SnContact *con = w->contact + i;
  const int row = con->efc_address;
  sn_zero(force, 6);
  if (row < 0) return;
  switch (w->efc_type[row]) {
    case SN_CNSTR_CONTACT_FRICTIONLESS:
      force[0] = w->efc_force[row];
      break;
    case SN_CNSTR_CONTACT_ELLIPTIC:
      sn_copy(force, w->efc_force + row, con->dim);
      break;
    default:  // each friction dimension has two edges of the pyramid, n + mu t and n - mu t
      for (int k = 1; k < con->dim; ++k) {
        const sn_real *edge = w->efc_force + row + 2 * (k - 1);
        force[0] += edge[0] + edge[1];
        force[k] = con->friction[k - 1] * (edge[0] - edge[1]);
      }
      break;
  }
  force[0] -= con->adhesion;  // what is left between the bodies
}

SN_FUNC void sn_contact_force_vjp(const SnWorld *w, SnAdjoint *a, int i, const sn_real force_bar[6]) {
  const SnContact *con = w->contact + i;
  const int row = con->efc_address;
  if (row < 0) return;
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a) && sn_model_bar(a)->pair_conparam && con->adhesion != 0)
    sn_model_bar(a)->pair_conparam[SN_NCONPARAM * con->pair + 15] -= force_bar[0];
#endif
  if (w->efc_type[row] != SN_CNSTR_CONTACT_PYRAMIDAL) {
    for (int k = 0; k < con->dim; ++k) a->row_pos[row + k] += force_bar[k];
    return;
  }
  for (int k = 1; k < con->dim; ++k) {
    const sn_real slide = con->friction[k - 1] * force_bar[k];
    a->row_pos[row + 2 * (k - 1)] += force_bar[0] + slide;
    a->row_pos[row + 2 * (k - 1) + 1] += force_bar[0] - slide;
#if defined(SN_MODEL_BARS)
    const sn_real *edge = w->efc_force + row + 2 * (k - 1);
    if (sn_model_bar(a) && sn_model_bar(a)->pair_conparam)
      sn_model_bar(a)->pair_conparam[SN_NCONPARAM * con->pair + k] += force_bar[k] * (edge[0] - edge[1]);
#endif
  }
}
#endif
