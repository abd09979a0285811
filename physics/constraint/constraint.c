// Constraint rows: J, position, impedance, reference acceleration.
//
// The constrained acceleration minimises (manual, Computation, Constraint solver)
//   1/2 |a - a_smooth|^2_M + sum_i s_i((J a - aref)_i)
// over rows of equalities, friction losses, limits and contacts. A row has a position r (residual of an
// equality, distance of a limit or contact) and a reference acceleration of a damped spring
//   aref = -b (J v) - k d(r) (r - margin) [- Jdot v for connect and weld] [+ R adhesion of contacts that pull].
//
// Rows are made in two passes that any number of lanes can share: each source (setup_constraint.c) and each
// contact says how many rows it has, prefix sums give every one its place, then each fills its own. The rows
// of one source or contact have the same columns and form a dense block of the sparse J; products with J go
// block by block.
//
// Adjoint: G of adjoint.h is a sum over rows, so each row has the bars of its three rates (f, -c, -b c), written to
// row_z, and that of its position, row_pos:
//   k d depth' c  +  d' [ k depth c + f (J lambda) / (d (1 - d)) ],
// the second part being impedance.c's. Each kind of row then hands them on to what it was made from.
#include "physics/base/vec.h"
#include "physics/constraint/constraint.h"
#include "physics/constraint/constraint_private.h"

// Rows of source s as the state and the disable flags have it.
SN_LOCAL int source_count(const SnModel *m, const SnWorld *w, int s) {
  const int off = m->opt.disableflags;
  if (sn_any_asleep(m, w) && sn_source_asleep(m, w, s)) return 0;
  if (s < m->nsrc_eq) return off & SN_DSBL_EQUALITY ? 0 : m->src_size[s];
  if (s < m->nsrc_fl) return off & SN_DSBL_FRICTIONLOSS ? 0 : m->src_size[s];
  return off & SN_DSBL_LIMIT ? 0 : sn_limit_count(m, w, s);
}

// First source or contact that does not fit, when the totals exceed the capacity.
SN_LOCAL int first_overflow(const SnModel *m, const SnWorld *w, int n) {
  for (int s = 0; s < n; ++s)
    if (w->src_row[s + 1] > m->nefcmax || w->src_adr[s + 1] > m->nJmax) return s;
  return n;
}

// src_row, src_adr, src_block for n sources and contacts; returns how many of them take part.
SN_LOCAL int place_rows(const SnModel *m, SnWorld *w, SnLane *lane, int n) {
  SN_FOR(s, n) {
    int nnz = 0, rows;
    if (s < m->nsrc) {
      rows = source_count(m, w, s);
      nnz = m->src_nnz[s];
    } else {
      rows = sn_contact_count(m, w, s - m->nsrc, &nnz);
    }
    w->src_row[s] = rows;
    w->src_adr[s] = rows * nnz;
    w->src_block[s] = rows > 0 && !(s > m->nsrc && sn_contact_continues(m, w, s - m->nsrc));
  }
  SN_SYNC(lane);
  int nefc = sn_compact(lane, w->src_row, n);
  const int nJ = sn_compact(lane, w->src_adr, n), nblock = sn_compact(lane, w->src_block, n);
  SN_ONE(lane) {
    w->src_row[n] = nefc;
    w->src_adr[n] = nJ;
    w->src_block[n] = nblock;
  }
  SN_SYNC(lane);
  if (nefc > m->nefcmax || nJ > m->nJmax) {
    n = first_overflow(m, w, n);
    SN_ONE(lane) *w->warn |= SN_WARN_EFC_FULL;
  }
  return n;
}

// Row at which source s starts, when only the first n take part.
SN_LOCAL int row_of_source(const SnWorld *w, int s, int n) { return w->src_row[sn_mini(s, n)]; }

// Column lists and addresses of a block; cols is NULL when the first row has its list already.
SN_LOCAL void fill_pattern(SnWorld *w, SnBlock block, const int *cols) {
  int *first = w->efc_J_colind + block.adr;
  if (cols)
    for (int k = 0; k < block.nnz; ++k) first[k] = cols[k];
  for (int r = 0; r < block.num; ++r) {
    w->efc_J_rownnz[block.row + r] = block.nnz;
    w->efc_J_rowadr[block.row + r] = block.adr + r * block.nnz;
  }
  // each row from the one before, in one run
  for (int k = block.nnz; k < block.num * block.nnz; ++k) first[k] = first[k - block.nnz];
}

SN_LOCAL void fill_source(const SnModel *m, SnWorld *w, int s, SnBlock block) {
  fill_pattern(w, block, m->src_col + m->src_coladr[s]);
  for (int r = block.row; r < block.row + block.num; ++r) {
    w->efc_type[r] = m->src_type[s];
    w->efc_id[r] = m->src_id[s];
    w->efc_pos[r] = w->efc_margin[r] = w->efc_frictionloss[r] = 0;
  }
  if (s < m->nsrc_eq)
    sn_equality_rows(m, w, s, block);
  else if (s < m->nsrc_fl)
    sn_friction_rows(m, w, s, block);
  else
    sn_limit_rows(m, w, s, block);
  sn_source_impedance(m, w, s, block);
}

SN_LOCAL void fill_contact(const SnModel *m, SnWorld *w, int i, SnBlock block) {
  const int dim = w->contact[i].dim;
  const int type = dim == 1
                       ? SN_CNSTR_CONTACT_FRICTIONLESS
                       : (m->opt.cone == SN_CONE_PYRAMIDAL ? SN_CNSTR_CONTACT_PYRAMIDAL : SN_CNSTR_CONTACT_ELLIPTIC);
  for (int r = block.row; r < block.row + block.num; ++r) {
    w->efc_type[r] = type;
    w->efc_id[r] = i;
    w->efc_frictionloss[r] = 0;
  }
  sn_contact_rows(m, w, i, block);
  fill_pattern(w, block, NULL);
  sn_contact_impedance(m, w, i, block);
}

#if !defined(SN_PACK)
SN_FUNC void sn_make_constraint(const SnModel *m, SnWorld *w, SnLane *lane) {
  const bool off = (m->opt.disableflags & SN_DSBL_CONSTRAINT) != 0;
  const int ncon = w->ncon[0], all = off ? 0 : m->nsrc + ncon;
  const int n = place_rows(m, w, lane, all);
  SN_ONE(lane) {
    w->ne[0] = row_of_source(w, m->nsrc_eq, n);
    w->nf[0] = row_of_source(w, m->nsrc_fl, n) - w->ne[0];
    w->nl[0] = row_of_source(w, m->nsrc, n) - w->ne[0] - w->nf[0];
    w->nefc[0] = w->src_row[n];
    w->nblock[0] = w->src_block[n];
    w->block_row[w->src_block[n]] = w->src_row[n];
  }
  SN_FOR(i, ncon) w->contact[i].efc_address = -1;
  SN_SYNC(lane);
  SN_FOR(s, n) {
    SnBlock block = {w->src_row[s], w->src_row[s + 1] - w->src_row[s], w->src_adr[s], 0};
    if (block.num == 0) {
      if (s >= m->nsrc && w->contact[s - m->nsrc].exclude == 0) w->contact[s - m->nsrc].exclude = 3;
      continue;
    }
    block.nnz = (w->src_adr[s + 1] - block.adr) / block.num;
    if (w->src_block[s + 1] > w->src_block[s]) w->block_row[w->src_block[s]] = block.row;
    if (s < m->nsrc) {
      fill_source(m, w, s, block);
    } else {
      w->contact[s - m->nsrc].efc_address = block.row;
      fill_contact(m, w, s - m->nsrc, block);
    }
  }
  SN_SYNC(lane);
}

SN_FUNC sn_real sn_reference_depth(const SnModel *m, const SnWorld *w, int row, sn_real *slope) {
  const sn_real r = w->efc_pos[row] - w->efc_margin[row];
  const bool sigmoid = sn_has_sigmoid(m);
  *slope = -1;
  if ((!w->cfd->on && !sigmoid) || w->efc_type[row] < SN_CNSTR_CONTACT_FRICTIONLESS) return -r;
  if (!sigmoid && w->contact[w->efc_id[row]].cfd == SN_CONTACT_HARD) return -r;
  // log(1 + exp(-x)) and its slope, without overflow; far away both are nothing
  const sn_real width = sigmoid ? m->opt.contact_width : w->cfd->width, x = r / width;
  if (x > SN_R(80.0)) {
    *slope = 0;
    return 0;
  }
  const sn_real e = sn_exp(-sn_abs(x));
  *slope = x > 0 ? -e / (1 + e) : -1 / (1 + e);
  return width * (sn_max(-x, 0) + sn_log1p(e));
}

SN_FUNC void sn_reference_constraint(const SnModel *m, SnWorld *w, SnLane *lane) {
  sn_mul_J(m, w, lane, w->efc_vel, w->qvel);
  if (m->nsurface > 0) {
    SN_FOR(i, w->ncon[0]) sn_surface_rows(m, w, i);
    SN_SYNC(lane);
  }
  SN_FOR(i, w->nefc[0]) {
    const sn_real *kbip = w->efc_KBIP + 4 * i;
    sn_real slope;
    const SnRowSpring s = sn_row_spring(m, w, i);
    w->efc_aref[i] = -s.damping * w->efc_vel[i] + s.stiffness * kbip[2] * sn_reference_depth(m, w, i, &slope);
  }
  SN_SYNC(lane);
  if (sn_has_sigmoid(m)) {
    SN_FOR(i, w->ncon[0]) sn_sigmoid_reference(m, w, i);
    SN_SYNC(lane);
  }
  if (m->nadhesive > 0) {
    SN_FOR(i, w->nefc[0]) w->efc_aref[i] += w->efc_R[i] * sn_row_adhesion(w, i);
    SN_SYNC(lane);
  }
  if (w->ne[0] > 0) {
    SN_FOR(s, m->nsrc_eq)
    if (w->src_row[s] < w->ne[0]) sn_equality_bias(m, w, s, w->src_row[s]);
    SN_SYNC(lane);
  }
}
#endif

#if defined(SN_SERIAL)
SN_FUNC void sn_mul_J(const SnModel *m, const SnWorld *w, SnLane *lane, sn_bar *r, const sn_bar *x) {
  (void)m, (void)lane;
  for (int b = 0; b < w->nblock[0]; ++b) {
    const SnBlock k = sn_block(w, b);
    const int *col = w->efc_J_colind + k.adr;
    if (k.nnz == 1) {
      for (int row = 0; row < k.num; ++row) r[k.row + row] = w->efc_J[k.adr + row] * x[col[0]];
      continue;
    }
    int row = 0;
    // four rows at a time: each of their sums still runs over the columns in order
    for (; row + 4 <= k.num; row += 4) {
      const sn_real *J = w->efc_J + k.adr + row * k.nnz;
      sn_bar s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
      for (int i = 0; i < k.nnz; ++i) {
        const sn_bar xi = x[col[i]];
        s0 += J[i] * xi;
        s1 += J[k.nnz + i] * xi;
        s2 += J[2 * k.nnz + i] * xi;
        s3 += J[3 * k.nnz + i] * xi;
      }
      r[k.row + row] = s0;
      r[k.row + row + 1] = s1;
      r[k.row + row + 2] = s2;
      r[k.row + row + 3] = s3;
    }
    for (; row < k.num; ++row) {
      const sn_real *J = w->efc_J + k.adr + row * k.nnz;
      sn_bar s = {0};
      for (int i = 0; i < k.nnz; ++i) s += J[i] * x[col[i]];
      r[k.row + row] = s;
    }
  }
}
#else
// Several lanes: a row each. What a single column gives has no sum.
SN_FUNC void sn_mul_J(const SnModel *m, const SnWorld *w, SnLane *lane, sn_bar *r, const sn_bar *x) {
  (void)m;
  SN_FOR(row, w->nefc[0]) {
    const int adr = w->efc_J_rowadr[row], nnz = w->efc_J_rownnz[row], *col = w->efc_J_colind + adr;
    const sn_real *J = w->efc_J + adr;
    sn_bar sum = {0};
    for (int i = 0; i < nnz; ++i) sum += J[i] * x[col[i]];
    r[row] = nnz == 1 ? J[0] * x[col[0]] : sum;
  }
  SN_SYNC(lane);
}
#endif

#if !defined(SN_PACK)
#if defined(SN_SERIAL)
// r[col[i]] += sum over the rows of a block of J_row,i f_row, rows in order.
SN_LOCAL void add_block_Jt(const SnWorld *w, SnBlock k, sn_real *r, const sn_real *f) {
  const int *col = w->efc_J_colind + k.adr, n = k.nnz;
  for (int row = 0; row < k.num; row += 4) {
    const int last = k.num - 1, r1 = sn_mini(row + 1, last), r2 = sn_mini(row + 2, last), r3 = sn_mini(row + 3, last);
    const sn_real *SN_RESTRICT J0 = w->efc_J + k.adr + row * n, *SN_RESTRICT J1 = w->efc_J + k.adr + r1 * n;
    const sn_real *SN_RESTRICT J2 = w->efc_J + k.adr + r2 * n, *SN_RESTRICT J3 = w->efc_J + k.adr + r3 * n;
    const sn_real f0 = f[row], f1 = row + 1 <= last ? f[r1] : 0, f2 = row + 2 <= last ? f[r2] : 0;
    const sn_real f3 = row + 3 <= last ? f[r3] : 0;
    for (int i = 0; i < n; ++i) r[col[i]] += (J0[i] * f0 + J1[i] * f1) + (J2[i] * f2 + J3[i] * f3);
  }
}

SN_FUNC void sn_mul_Jt(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real *r, const sn_real *f) {
  (void)lane;
  for (int i = 0; i < m->nv; ++i) r[i] = 0;
  for (int b = 0; b < w->nblock[0]; ++b) {
    const SnBlock k = sn_block(w, b);
    const sn_real *fk = f + k.row;
    if (k.nnz == 1) {
      sn_real sum = 0;
      for (int row = 0; row < k.num; ++row) sum += w->efc_J[k.adr + row] * fk[row];
      r[w->efc_J_colind[k.adr]] += sum;
    } else {
      bool any = false;
      for (int row = 0; row < k.num; ++row) any = any || fk[row] != 0;
      if (any) add_block_Jt(w, k, r, fk);
    }
  }
}
#else
// What a block adds to the entry of its column q, as add_block_Jt does.
SN_LOCAL sn_real block_Jt_entry(const SnWorld *w, SnBlock k, int q, const sn_real *f, sn_real r) {
  const sn_real *J = w->efc_J + k.adr + q;
  if (k.nnz == 1) {
    sn_real sum = 0;
    for (int row = 0; row < k.num; ++row) sum += J[row] * f[row];
    return r + sum;
  }
  for (int row = 0; row < k.num; row += 4) {
    sn_real term[4] = {0, 0, 0, 0};
    for (int i = 0; i < 4; ++i) {
      const int at = sn_mini(row + i, k.num - 1);
      term[i] = J[at * k.nnz] * (row + i < k.num ? f[at] : 0);
    }
    r += (term[0] + term[1]) + (term[2] + term[3]);
  }
  return r;
}

// Several lanes: one block after the other, whose columns they share out. A block of a single column is for the lane
// that has its dof: none of these waits for another.
SN_FUNC void sn_mul_Jt(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real *r, const sn_real *f) {
  const int nblock = w->nblock[0], *colind = w->efc_J_colind;
  bool wide = true;
  SN_FOR(i, m->nv) r[i] = 0;
  for (int b = 0; b < nblock; ++b) {
    const SnBlock k = sn_block(w, b);
    const int *col = colind + k.adr;
    if (wide || k.nnz > 1) SN_SYNC(lane);
    wide = k.nnz > 1;
    if (wide) {
      SN_FOR(q, k.nnz) r[col[q]] = block_Jt_entry(w, k, q, f + k.row, r[col[q]]);
    } else if (sn_is_mine(lane, col[0])) {
      r[col[0]] = block_Jt_entry(w, k, 0, f + k.row, r[col[0]]);
    }
  }
  SN_SYNC(lane);
}
#endif
#endif

// Bars of the rates and of the position of a row. The rows of a connect or weld share their impedance: its part is
// added by sn_equality_vjp.
SN_LOCAL void row_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int row) {
  const sn_real *kbip = w->efc_KBIP + 4 * row, force = w->efc_force[row];
  const sn_bar c = a->row_c[row];
  sn_bar *z = a->row_z + 3 * row;
  sn_real slope;
  z[0] = sn_bar_of(force);
  z[1] = -c;
  const SnRowSpring s = sn_row_spring(m, w, row);
  z[2] = -s.damping * c;
  a->row_pos[row] = sn_bar_of(0);
  if (force == 0 && !sn_any(c)) return;
  const sn_real depth = sn_reference_depth(m, w, row, &slope);
  a->row_pos[row] = s.stiffness * kbip[2] * slope * c;
  if (w->efc_type[row] == SN_CNSTR_EQUALITY) {
    const int type = m->eq_type[w->efc_id[row]];
    if (type == SN_EQ_CONNECT || type == SN_EQ_WELD) return;
  }
  a->row_pos[row] += sn_impedance_bar(m, w, a, row, depth);
}

// Contacts; what they leave on the links of their geoms is added to each in the order of contacts.
SN_LOCAL void contacts_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  const int ncon = w->ncon[0];
  (void)lane;
#if defined(SN_SERIAL)
  for (int i = 0; i < ncon; ++i) {
    sn_bar twist[36];
    if (!sn_contact_rows_vjp(m, w, a, i, twist)) continue;
    for (int side = 0; side < 2; ++side) {
      sn_bar *to = sn_twist_bar(m, a, m->geom_bodyid[w->contact[i].geom[side]], SN_LAMBDA);
      for (int e = 0; e < 18; ++e) to[e] += twist[18 * side + e];
    }
  }
#else
  SN_FOR(i, ncon)
  if (!sn_contact_rows_vjp(m, w, a, i, a->con_twist_bar + 36 * i)) sn_zero(a->con_twist_bar + 36 * i, 36);
  SN_SYNC(lane);
  SN_FOR(k, m->nlink) {
    const int link = m->level_body[k];
    sn_bar *to = sn_twist_bar(m, a, link, SN_LAMBDA);
    for (int i = 0; i < ncon; ++i) {
      for (int side = 0; side < 2; ++side) {
        if (m->link_of_geom[w->contact[i].geom[side]] != link) continue;
        for (int e = 0; e < 18; ++e) to[e] += a->con_twist_bar[36 * i + 18 * side + e];
      }
    }
  }
#endif
}

#if defined(SN_MODEL_BARS)
// What rows are made of besides positions, by the model.
SN_LOCAL void rows_model_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a) {
  const int sources = w->ne[0] + w->nf[0] + w->nl[0];
  for (int b = 0; b < w->nblock[0] && w->block_row[b] < sources; ++b) sn_source_model_vjp(m, w, a, sn_block(w, b));
  for (int i = 0; i < w->ncon[0]; ++i) {
    sn_bar velocity[18];
    if (w->contact[i].efc_address < 0) continue;
    sn_contact_velocities(m, w, a, i, velocity);
    sn_contact_model_vjp(m, w, a, i, velocity);
  }
}
#endif

SN_FUNC void sn_rows_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  const int ne = w->ne[0], nef = ne + w->nf[0], nefl = nef + w->nl[0];
  contacts_vjp(m, w, a, lane);
  if (m->nsurface > 0) {
    SN_SYNC(lane);
    // several may add to one link: in their order
    SN_ONE(lane) {
      for (int i = 0; i < w->ncon[0]; ++i) sn_surface_vjp(m, w, a, i);
    }
    SN_SYNC(lane);
  }
  SN_FOR(b, w->nblock[0]) {
    const SnBlock block = sn_block(w, b);
    if (block.row >= ne && block.row < nef) sn_friction_vjp(m, w, a, block);
  }
  SN_SYNC(lane);
  SN_FOR(b, w->nblock[0]) {
    const SnBlock block = sn_block(w, b);
    if (block.row >= nef && block.row < nefl) sn_limit_vjp(m, w, a, block);
  }
  SN_SYNC(lane);
  if (ne > 0) {
    SN_ONE(lane) {
      for (int b = 0; w->block_row[b] < ne; ++b) sn_equality_vjp(m, w, a, sn_block(w, b));
    }
    SN_SYNC(lane);
  }
#if defined(SN_MODEL_BARS)
  if (sn_model_bar(a)) {
    SN_ONE(lane) rows_model_vjp(m, w, a);
    SN_SYNC(lane);
  }
#endif
}

SN_FUNC void sn_constraint_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  SN_FOR(i, w->nefc[0]) row_vjp(m, w, a, i);
  SN_SYNC(lane);
  if (sn_has_sigmoid(m)) {
    SN_FOR(i, w->ncon[0]) sn_sigmoid_reference_vjp(m, w, a, i);
    SN_SYNC(lane);
  }
  if (sn_has_exact_diagonal(m)) sn_diagonal_vjp(m, w, a, lane);
  if (sn_has_metric(m)) sn_metric_rows_vjp(m, w, a, lane);
  sn_rows_vjp(m, w, a, lane);
  if (sn_has_noslip(m) && w->nefc[0] > 0) sn_noslip_exchange(m, w, lane);
}
