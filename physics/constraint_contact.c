// Rows of contacts.
//
// With n, t1, t2 the rows of the contact frame and u, w the relative linear and angular velocity of the two
// bodies at the contact point (body of geom[1] less body of geom[0]), the contact velocities are
//   n.u, t1.u, t2.u, n.w (spin), t1.w, t2.w (rolling), the first `dim` of them.
// Elliptic cone: these are the rows. Pyramid: for each friction dimension j the pair (n +- mu_j t_j).
// dim 1: n alone. Dofs that move both bodies drop out.
// Column of dof i on a body: u = cdof_lin + cdof_ang x (p - c), w = cdof_ang, with c the point about which
// the spatial vectors of the body's tree are taken (subtree_com of its root).
#include "physics/constraint.h"

typedef struct ContactChain {
  const int *dof[2];  // dofs that move one of the two bodies and not the other
  int num[2];
} ContactChain;

SN_LOCAL ContactChain contact_chain(const SnModel *m, const SnContact *con) {
  ContactChain c;
  for (int side = 0; side < 2; ++side) {
    const int b = m->geom_bodyid[con->geom[side]];
    c.dof[side] = m->chain_dof + m->chain_adr[b];
    c.num[side] = m->chain_adr[b + 1] - m->chain_adr[b];
  }
  const int n = sn_mini(c.num[0], c.num[1]);
  int common = 0;
  while (common < n && c.dof[0][common] == c.dof[1][common]) ++common;
  for (int side = 0; side < 2; ++side) {
    c.dof[side] += common;
    c.num[side] -= common;
  }
  return c;
}

SN_FUNC int sn_contact_count(const SnModel *m, const SnWorld *w, int i, int *nnz) {
  const SnContact *con = w->contact + i;
  *nnz = 0;
  if (m->opt.disableflags & SN_DSBL_CONTACT || con->exclude) return 0;
  const ContactChain c = contact_chain(m, con);
  *nnz = c.num[0] + c.num[1];
  if (*nnz == 0) return 0;
  if (con->dim == 1) return 1;
  return m->opt.cone == SN_CONE_PYRAMIDAL ? 2 * (con->dim - 1) : con->dim;
}

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
SN_INLINE void contact_velocity(int dim, const sn_real *frame, const sn_real *cdof, const sn_real *offset,
                                sn_real *vel) {
  sn_real lin[3];
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

SN_FUNC void sn_contact_rows(const SnModel *m, SnWorld *w, int i, SnBlock block) {
  const SnContact *con = w->contact + i;
  const ContactChain c = contact_chain(m, con);
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
    const int side = next[1] == c.num[1] || (next[0] < c.num[0] && c.dof[0][next[0]] < c.dof[1][next[1]]) ? 0 : 1;
    const int d = c.dof[side][next[side]++];
    sn_real vel[6];
    contact_velocity(con->dim, frame[side], w->cdof + 6 * d, offset[side], vel);
    col[k] = d;
    put_column(con, pyramid, vel, J + k, block.nnz);
  }
  contact_position(w, con, block);
}
