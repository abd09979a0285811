// Impedance and regularisation of rows (manual, Modeling, Solver parameters).
//
// Impedance d(x), x = |pos - margin| / width, goes from d0 at x = 0 to dwidth at x >= 1 along a spline of two
// powers p that meet at the midpoint. With A the approximate inverse inertia that the row sees,
//   R = A (1 - d) / d,  D = 1 / R.
// The reference of a row is a spring: solref > 0 gives time constant and damping ratio,
//   k = 1 / (dwidth timeconst dampratio)^2,  b = 2 / (dwidth timeconst),
// solref <= 0 gives stiffness and damping directly, k = -solref0 / dwidth^2, b = -solref1 / dwidth.
// Rows of friction have k = 0.
//
// Contacts: the first friction row of an elliptic cone has R1 = R0 / impratio, the others keep R_j mu_j^2
// constant, and mu = mu_1 sqrt(R1 / R0) is the friction of the cone in which distances are Euclidean. All
// rows of a pyramid share R = 2 mu^2 R0, which gives it the friction impedance of the elliptic cone. At the
// end A is set to what R implies: A = R d / (1 - d).
//
// Contacts from distance (CFD, SnCfd): where bodies that take part do not touch, d follows a spline of its own; on both
// sides of touch the position part of the reference is k d s log(1 + exp(-r / s)) with a width s.
//
// The integrator `discrete` has the spring at the end of the step. With s = 1 + h b + h^2 k d,
//   aref = [-(b + h k d) J v + k d depth - Jdot v] / s,     D = s d / ((1 - d) A), at most as of the largest impedance,
// where the friction of an elliptic cone follows the D of its normal, and the spring of limits and contacts that a step
// cannot resolve, h^2 k d > 1 (as found in MuJoCo 4.0.0), is k = 1 / (h^2 d), b = 2 dampratio sqrt(k), with flag
// refsafe and a solref above 0.
//
// Smoothed hard contacts (sigmoid.c) have a spring and an impedance of their own, the same on all their rows.
//
// Contacts that pull have R times their adhesion in aref, too, so that G falls with log D by it times c.
//
// Adjoint: d reaches G (adjoint.h) through aref = -b J v + k d depth and, as log D, through the force of a given
// residual, which is proportional to D except on saturated friction loss (whose d is constant anyway). As D = d / ((1 -
// d) A), d log D = d' / (d (1 - d)) on all rows of a contact, whichever share they have in the R of the first. One that
// holds R at a bound has none.
//
// Of the springs of `discrete` daref = (k / s) (depth - h J v - h^2 aref) dd and d log D = [1 / (d (1 - d)) + h^2 k /
// s] dd; of one that is replaced (b / (2 d s)) (J v + h aref) and 1 / (d (1 - d)) - h b / (2 d s), as k d is constant.
//
// By the model: k, b and d follow from solref and solimp as above, D from A, too: d log D = - d log A. Numbers that are
// replaced or held at a bound have no derivative. Of elliptic cones R_j = R1 mu_1^2 / mu_j^2, and where the contact
// slides the force is f_0 = -D_0 (x_0 - T) / (1 + mu^2), f_j = -f_0 mu_j^2 x_j / T, T^2 = sum (mu_j x_j)^2 with x the
// residual; of pyramids R holds mu_1^2 (1 + mu_1^2).
//
// Not smooth: d at x = 0 (the slope is taken as 0 there) and at x = 1 (0, too).
#include "physics/base/vec.h"
#include "physics/constraint/constraint_private.h"

typedef struct RowParams {
  sn_real solref[SN_NREF];
  sn_real solreffriction[SN_NREF];  // contacts, elliptic cone; zero: solref holds
  sn_real solimp[SN_NIMP];
} RowParams;

SN_LOCAL RowParams admit_params(const SnModel *m, const SnWorld *w, const sn_real *solref,
                                const sn_real *solreffriction, const sn_real *solimp) {
  RowParams p;
  for (int i = 0; i < SN_NREF; ++i) {
    p.solref[i] = solref[i];
    p.solreffriction[i] = solreffriction ? solreffriction[i] : 0;
  }
  sn_admit_solref(m, w, p.solref, SN_R(0.02), 1);
  sn_admit_solref(m, w, p.solreffriction, 0, 0);
  p.solimp[0] = sn_clip(solimp[0], SN_MINIMP, SN_MAXIMP);
  p.solimp[1] = sn_clip(solimp[1], SN_MINIMP, SN_MAXIMP);
  p.solimp[2] = sn_max(0, solimp[2]);
  p.solimp[3] = sn_clip(solimp[3], SN_MINIMP, SN_MAXIMP);
  p.solimp[4] = sn_max(1, solimp[4]);
  return p;
}

SN_LOCAL RowParams source_params(const SnModel *m, const SnWorld *w, int type, int id) {
  const int ref = SN_NREF * id, imp = SN_NIMP * id;
  switch (type) {
    case SN_CNSTR_EQUALITY:
      return admit_params(m, w, m->eq_solref + ref, NULL, m->eq_solimp + imp);
    case SN_CNSTR_FRICTION_DOF:
      return admit_params(m, w, m->dof_solref + ref, NULL, m->dof_solimp + imp);
    case SN_CNSTR_FRICTION_TENDON:
      return admit_params(m, w, m->tendon_solref_fri + ref, NULL, m->tendon_solimp_fri + imp);
    case SN_CNSTR_LIMIT_JOINT:
      return admit_params(m, w, m->jnt_solref + ref, NULL, m->jnt_solimp + imp);
    default:
      return admit_params(m, w, m->tendon_solref_lim + ref, NULL, m->tendon_solimp_lim + imp);
  }
}

SN_LOCAL sn_real impedance_power(sn_real x, sn_real p) { return p == 1 ? x : (p == 2 ? x * x : sn_pow(x, p)); }

// The spline of impedances: y(0) = 0, y(1) = 1, two powers that meet at mid; 0 < x < 1. dy: its slope.
SN_LOCAL sn_real impedance_spline(sn_real x, sn_real mid, sn_real p, sn_real *dy) {
  if (p == 1) {
    *dy = 1;
    return x;
  }
  if (x <= mid) {
    const sn_real a = 1 / impedance_power(mid, p - 1), t = impedance_power(x, p - 1);
    *dy = p * a * t;
    return a * impedance_power(x, p);
  }
  const sn_real b = 1 / impedance_power(1 - mid, p - 1);
  *dy = p * b * impedance_power(1 - x, p - 1);
  return 1 - b * impedance_power(1 - x, p);
}

// Impedance at distance r = pos - margin, and its slope with respect to pos.
SN_LOCAL sn_real impedance_at(const sn_real *solimp, sn_real r, sn_real *slope) {
  const sn_real d0 = solimp[0], dwidth = solimp[1], width = solimp[2];
  *slope = 0;
  if (d0 == dwidth || width <= SN_MINVAL) return SN_R(0.5) * (d0 + dwidth);
  const sn_real x = sn_abs(r / width);
  if (x >= 1) return dwidth;
  if (x <= 0) return d0;
  sn_real dy;
  const sn_real y = impedance_spline(x, solimp[3], solimp[4], &dy);
  *slope = dy * (r < 0 ? SN_R(-1.0) : SN_R(1.0)) * (dwidth - d0) / width;
  return d0 + y * (dwidth - d0);
}

// x^p for p >= 0; a small whole p by products.
SN_LOCAL sn_real impedance_far_power(sn_real x, sn_real p) {
  const int n = (int)p;
  if ((sn_real)n != p || n > 16) return sn_pow(x, p);
  sn_real y = 1;
  for (int i = 0; i < n; ++i) y *= x;
  return y;
}

// The same of bodies that are r >= 0 from touching, by SnCfd.solimp: not bounded from below, so that nothing jumps
// where a row begins.
SN_LOCAL sn_real impedance_far(const sn_real *solimp, sn_real r, sn_real *slope) {
  const sn_real far = sn_clip(solimp[0], 0, SN_MAXIMP), touch = sn_clip(solimp[1], 0, SN_MAXIMP), reach = solimp[2];
  *slope = 0;
  const sn_real x = 1 - r / reach;
  if (!(x > 0)) return far;
  if (x >= 1) return touch;
  // MuJoCo's spline: two powers that meet at mid
  const sn_real mid = sn_clip(solimp[3], SN_MINIMP, SN_MAXIMP), p = sn_max(1, solimp[4]);
  const bool near = x > mid;
  const sn_real t = near ? 1 - x : x, end = near ? 1 - mid : mid, s = impedance_far_power(t / end, p - 1);
  *slope = -p * s * (touch - far) / reach;
  return far + (near ? 1 - t * s : t * s) * (touch - far);
}

// Stiffness and damping of a row; friction: one that has no position.
SN_LOCAL void row_spring(const sn_real *ref, sn_real dwidth, bool friction, sn_real *kbip) {
  sn_solref_spring(ref, dwidth, kbip);
  if (friction) kbip[0] = 0;
}

// Replaces the spring of a row that a step of `discrete` cannot resolve.
SN_LOCAL void resolve_spring(const SnModel *m, const SnWorld *w, const sn_real *ref, sn_real *kbip) {
  const sn_real h = sn_timestep(m, w);
  if (!sn_has_metric(m) || (m->opt.disableflags & SN_DSBL_REFSAFE)) return;
  if (!(ref[0] > 0) || !(h * h * kbip[0] * kbip[2] > 1)) return;
  kbip[0] = 1 / sn_max(SN_MINVAL, h * h * kbip[2]);
  kbip[1] = 2 * ref[1] * sn_sqrt(kbip[0]);
}

// True of a row whose spring that was.
SN_LOCAL bool is_resolved(const SnModel *m, const SnWorld *w, const sn_real *kbip) {
  const sn_real h = sn_timestep(m, w);
  return sn_abs(h * h * kbip[0] * kbip[2] - 1) <= 8 * SN_EPS;
}

// s of a spring: 1 but under `discrete`.
SN_LOCAL sn_real spring_factor(const SnModel *m, const SnWorld *w, const sn_real *kbip) {
  const sn_real h = sn_timestep(m, w);
  return sn_has_metric(m) ? 1 + h * (kbip[1] + h * kbip[0] * kbip[2]) : 1;
}

#if !defined(SN_PACK)
SN_FUNC SnRowSpring sn_row_spring(const SnModel *m, const SnWorld *w, int row) {
  const sn_real *kbip = w->efc_KBIP + 4 * row, s = spring_factor(m, w, kbip);
  if (!sn_has_metric(m)) return (SnRowSpring){kbip[0], kbip[1], s};
  return (SnRowSpring){kbip[0] / s, (kbip[1] + sn_timestep(m, w) * kbip[0] * kbip[2]) / s, s};
}
#endif

SN_LOCAL void put_regularizer(SnWorld *w, int row, sn_real R) {
  const sn_real imp = w->efc_KBIP[4 * row + 2];
  w->efc_R[row] = R;
  w->efc_D[row] = 1 / R;
  w->efc_diagA[row] = R * imp / (1 - imp);
}

// R of a row; a row without impedance (contacts from distance, at their reach) has a D next to nothing.
SN_LOCAL sn_real regularizer(const SnModel *m, const SnWorld *w, const sn_real *kbip, sn_real diagA) {
  const sn_real imp = kbip[2];
  if (!sn_has_metric(m)) return sn_min(sn_max(SN_MINVAL, (1 - imp) * diagA / sn_max(imp, SN_R(1e-30))), SN_R(1e30));
  const sn_real ratio = (1 - imp) / sn_max(imp * spring_factor(m, w, kbip), SN_R(1e-30));
  return sn_min(sn_max(SN_MINVAL, sn_max(ratio, (1 - SN_MAXIMP) / SN_MAXIMP) * diagA), SN_R(1e30));
}

// Approximate inverse inertia of row k of a source.
SN_LOCAL sn_real source_weight(const SnModel *m, int type, int id, int k) {
  switch (type) {
    case SN_CNSTR_EQUALITY:
      return sn_equality_weight(m, id, k);
    case SN_CNSTR_FRICTION_DOF:
      return m->dof_invweight0[id];
    case SN_CNSTR_LIMIT_JOINT:
      return m->dof_invweight0[m->jnt_dofadr[id]];
    default:
      return m->tendon_invweight0[id];
  }
}

#if !defined(SN_PACK)
SN_FUNC void sn_source_impedance(const SnModel *m, SnWorld *w, int s, SnBlock block) {
  const int type = m->src_type[s], id = m->src_id[s];
  const RowParams p = source_params(m, w, type, id);
  const bool equality = s < m->nsrc_eq, friction = !equality && s < m->nsrc_fl;
  sn_real norm = 0;  // all rows of a connect or weld share the impedance at the norm of their residual
  if (equality && block.num > 1) norm = sn_sqrt(sn_dot(w->efc_pos + block.row, w->efc_pos + block.row, block.num));
  for (int k = 0; k < block.num; ++k) {
    const int row = block.row + k;
    const sn_real pos = equality && block.num > 1 ? norm : w->efc_pos[row];
    sn_real *kbip = w->efc_KBIP + 4 * row;
    kbip[2] = impedance_at(p.solimp, pos - w->efc_margin[row], kbip + 3);
    row_spring(p.solref, p.solimp[1], friction, kbip);
    if (s >= m->nsrc_fl) resolve_spring(m, w, p.solref, kbip);
    const sn_real A = sn_has_exact_diagonal(m) ? sn_exact_diagonal(m, w, block, row) : source_weight(m, type, id, k);
    put_regularizer(w, row, regularizer(m, w, kbip, A));
  }
}

SN_FUNC void sn_contact_impedance(const SnModel *m, SnWorld *w, int i, SnBlock block) {
  SnContact *con = w->contact + i;
  const int type = w->efc_type[block.row];
  const RowParams p = admit_params(m, w, con->solref, con->solreffriction, con->solimp);
  sn_real kbip[4], slope;
  const sn_real r = con->dist - con->includemargin;
  kbip[2] = con->cfd == SN_CONTACT_FAR ? impedance_far(w->cfd->solimp, r, &slope) : impedance_at(p.solimp, r, &slope);
  kbip[3] = slope;
  row_spring(p.solref, p.solimp[1], false, kbip);
  resolve_spring(m, w, p.solref, kbip);
  if (sn_has_sigmoid(m)) sn_sigmoid_spring(m, w, r, kbip);
  for (int k = 0; k < block.num; ++k)
    for (int j = 0; j < 4; ++j) w->efc_KBIP[4 * (block.row + k) + j] = kbip[j];

  const int b1 = m->geom_bodyid[con->geom[0]], b2 = m->geom_bodyid[con->geom[1]];
  const sn_real tran = m->body_invweight0[2 * b1] + m->body_invweight0[2 * b2], mu1 = con->friction[0];
  const bool pyramid = type == SN_CNSTR_CONTACT_PYRAMIDAL;
  const sn_real A = pyramid ? tran + mu1 * mu1 * tran : tran;
  const sn_real R0 = regularizer(m, w, kbip, sn_has_exact_diagonal(m) ? sn_exact_diagonal(m, w, block, block.row) : A);
  if (type == SN_CNSTR_CONTACT_FRICTIONLESS) {
    put_regularizer(w, block.row, R0);
    return;
  }
  const sn_real R1 = R0 / sn_max(SN_MINVAL, m->opt.impratio);
  con->mu = mu1 * sn_sqrt(R1 / R0);
  if (pyramid) {
    for (int k = 0; k < block.num; ++k) put_regularizer(w, block.row + k, 2 * con->mu * con->mu * R0);
    return;
  }
  const bool own = p.solreffriction[0] != 0 || p.solreffriction[1] != 0;
  put_regularizer(w, block.row, R0);
  for (int k = 1; k < block.num; ++k) {
    if (sn_has_sigmoid(m))
      w->efc_KBIP[4 * (block.row + k)] = 0;
    else
      row_spring(own ? p.solreffriction : p.solref, p.solimp[1], true, w->efc_KBIP + 4 * (block.row + k));
    const sn_real mu = con->friction[k - 1];
    put_regularizer(w, block.row + k, k == 1 ? R1 : R1 * mu1 * mu1 / (mu * mu));
  }
}
#endif

// R of the row by which the bounds of regularizer() were checked: of an elliptic contact its first row, of a pyramid
// what all its edges' R is made of.
SN_LOCAL sn_real bounded_R(const SnWorld *w, int row) {
  const int type = w->efc_type[row];
  if (type == SN_CNSTR_CONTACT_ELLIPTIC) return w->efc_R[w->contact[w->efc_id[row]].efc_address];
  if (type != SN_CNSTR_CONTACT_PYRAMIDAL) return w->efc_R[row];
  const sn_real mu = w->contact[w->efc_id[row]].mu;
  return w->efc_R[row] / (2 * mu * mu);
}

#if !defined(SN_PACK)
SN_FUNC bool sn_is_bounded(const SnWorld *w, int row) {
  const sn_real R = bounded_R(w, row);
  return R <= SN_MINVAL * (1 + 8 * SN_EPS) || R >= SN_R(1e30) * (1 - 8 * SN_EPS);
}
#endif

SN_FUNC sn_bar sn_scaled_force(const SnWorld *w, const SnAdjoint *a, int row) {
  return a->row_lambda[row] * w->efc_force[row] - a->row_c[row] * (w->efc_R[row] * sn_row_adhesion(w, row));
}

// Rate of a row at the end of a step of `discrete` that its reference would make.
SN_LOCAL sn_real end_rate(const SnModel *m, const SnWorld *w, int row) {
  const sn_real aref = w->efc_aref[row] - w->efc_R[row] * sn_row_adhesion(w, row);
  return w->efc_vel[row] + sn_timestep(m, w) * aref;
}

// d aref / dd under `discrete`, of a row whose spring corrects `depth`.
SN_LOCAL sn_real reference_slope(const SnModel *m, const SnWorld *w, int row, sn_real depth) {
  const sn_real *kbip = w->efc_KBIP + 4 * row, h = sn_timestep(m, w), s = spring_factor(m, w, kbip);
  const sn_real rate = end_rate(m, w, row);
  if (is_resolved(m, w, kbip)) return kbip[1] / (2 * kbip[2] * s) * rate;
  return kbip[0] / s * (depth - h * rate);
}

// True where R under `discrete` is that of the largest impedance.
SN_LOCAL bool is_least(const SnModel *m, const SnWorld *w, const sn_real *kbip) {
  return spring_factor(m, w, kbip) * kbip[2] / (1 - kbip[2]) >= SN_MAXIMP / (1 - SN_MAXIMP);
}

// d log D / dd under `discrete`.
SN_LOCAL sn_real impedance_log_slope(const SnModel *m, const SnWorld *w, int row) {
  const bool cone = w->efc_type[row] == SN_CNSTR_CONTACT_ELLIPTIC;
  const sn_real *kbip = w->efc_KBIP + 4 * (cone ? w->contact[w->efc_id[row]].efc_address : row), imp = kbip[2];
  const sn_real h = sn_timestep(m, w), s = spring_factor(m, w, kbip);
  if (is_least(m, w, kbip)) return 0;
  return 1 / (imp * (1 - imp)) + (is_resolved(m, w, kbip) ? -h * kbip[1] / (2 * imp * s) : h * h * kbip[0] / s);
}

SN_FUNC sn_bar sn_impedance_bar(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int row, sn_real depth) {
  const sn_real *kbip = w->efc_KBIP + 4 * row, imp = kbip[2], slope = kbip[3];
  if (slope == 0) return sn_bar_of(0);
  const bool metric = sn_has_metric(m);
  const sn_bar reference =
      metric ? a->row_c[row] * (slope * reference_slope(m, w, row, depth)) : a->row_c[row] * kbip[0] * slope * depth;
  const sn_bar force = sn_scaled_force(w, a, row);
  if (!sn_any(force) || imp <= SN_R(1e-30)) return reference;
  if (sn_is_bounded(w, row)) return reference;
  return reference + force * (metric ? slope * impedance_log_slope(m, w, row) : slope / (imp * (1 - imp)));
}

#if defined(SN_MODEL_BARS)
// Bars of what several rows of a source or contact share.
typedef struct ImpedanceBar {
  sn_bar impedance, weight;  // d; log A
  sn_bar width;              // dwidth, through k and b
  sn_bar solref[SN_NREF], solreffriction[SN_NREF];
} ImpedanceBar;

// Stiffness and damping of a row: bars of the solref that they were made of, and of dwidth. resolved: the spring was
// replaced, so that its damping ratio alone is left.
SN_LOCAL void row_spring_model_vjp(const sn_real *ref, sn_real dwidth, const sn_real *kbip, bool resolved, sn_bar k_bar,
                                   sn_bar b_bar, sn_bar *ref_bar, sn_bar *width_bar) {
  const sn_real k = kbip[0], b = kbip[1];
  if (resolved) {
    ref_bar[1] += b_bar * (2 * sn_sqrt(k));
    return;
  }
  if (ref[0] > 0) {
    ref_bar[0] -= 2 * k_bar * k / ref[0];
    ref_bar[1] -= 2 * k_bar * k / ref[1];
  } else {
    ref_bar[0] -= k_bar / (dwidth * dwidth);
  }
  if (ref[1] > 0)
    ref_bar[0] -= b_bar * b / ref[0];
  else
    ref_bar[1] -= b_bar / dwidth;
  *width_bar -= (2 * k_bar * k + b_bar * b) / dwidth;
}

// Adds the bars of one row. ref: its solref, of friction in `ref_bar`'s place.
SN_LOCAL void row_model_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int row, const sn_real *ref,
                            sn_real dwidth, sn_bar *ref_bar, ImpedanceBar *bar) {
  const sn_real *kbip = w->efc_KBIP + 4 * row, imp = kbip[2];
  const sn_bar c = a->row_c[row];
  const sn_bar force = sn_scaled_force(w, a, row);
  const bool metric = sn_has_metric(m);
  sn_real slope, depth = sn_reference_depth(m, w, row, &slope), vel = w->efc_vel[row];
  bar->impedance += metric ? c * reference_slope(m, w, row, depth) : c * kbip[0] * depth;
  if (metric) {  // of springs at the end of the step
    vel = end_rate(m, w, row);
    depth -= sn_timestep(m, w) * vel;
  }
  const sn_real s = spring_factor(m, w, kbip);
  row_spring_model_vjp(ref, dwidth, kbip, metric && is_resolved(m, w, kbip),
                       kbip[0] == 0 ? sn_bar_of(0) : c * imp * depth / s, -c * vel / s, ref_bar, &bar->width);
  // the force of saturated friction loss does not depend on D
  const int state = w->efc_state[row];
  if (state == SN_CSTATE_LINEARNEG || state == SN_CSTATE_LINEARPOS) return;
  if (imp <= SN_R(1e-30) || sn_is_bounded(w, row)) return;
  bar->impedance += metric ? force * impedance_log_slope(m, w, row) : force / (imp * (1 - imp));
  bar->weight -= force;
}

// Adds what log D under `discrete` has of the spring of a row, or of a contact's first one, once `bar` has the weight
// of all rows that share it.
SN_LOCAL void weight_model_vjp(const SnModel *m, const SnWorld *w, int row, const RowParams *p, ImpedanceBar *bar) {
  const sn_real *kbip = w->efc_KBIP + 4 * row, h = sn_timestep(m, w), s = spring_factor(m, w, kbip);
  if (!sn_has_metric(m) || is_least(m, w, kbip)) return;
  row_spring_model_vjp(p->solref, p->solimp[1], kbip, is_resolved(m, w, kbip),
                       kbip[0] == 0 ? sn_bar_of(0) : bar->weight * (-h * h * kbip[2] / s), bar->weight * (-h / s),
                       bar->solref, &bar->width);
}

// Numbers of solimp at distance r, from the bars of d and of dwidth. raw: as they stand in the model. Where d0 is
// dwidth the curve between them is flat, and still says which of them counts by how much.
SN_LOCAL void solimp_model_vjp(const sn_real *raw, const sn_real *solimp, sn_real r, sn_bar bar, sn_bar width_bar,
                               sn_bar *out) {
  const sn_real d0 = solimp[0], dwidth = solimp[1], width = solimp[2], mid = solimp[3], p = solimp[4];
  const bool free0 = raw[0] == d0, free1 = raw[1] == dwidth;
  if (free1) out[1] += width_bar;
  if (width <= SN_MINVAL) {
    if (free0) out[0] += SN_R(0.5) * bar;
    if (free1) out[1] += SN_R(0.5) * bar;
    return;
  }
  const sn_real x = sn_abs(r / width), span = dwidth - d0;
  sn_real dy = 0;
  const sn_real y = x >= 1 ? 1 : (x <= 0 ? 0 : impedance_spline(x, mid, p, &dy));
  if (free0) out[0] += bar * (1 - y);
  if (free1) out[1] += bar * y;
  if (x >= 1 || x <= 0) return;
  if (raw[2] == width) out[2] -= bar * dy * x * span / width;
  const bool near = x <= mid;
  const sn_real t = near ? x / mid : (1 - x) / (1 - mid), part = near ? y : 1 - y;
  if (raw[3] == mid && p != 1) out[3] += bar * span * (1 - p) * (near ? part / mid : part / (1 - mid));
  if (raw[4] == p) out[4] += (near ? bar : -bar) * span * part * sn_log(t);
}

// Numbers of solref, unless others have replaced them: both where their signs differ, though one may be the default's.
SN_LOCAL void solref_model_vjp(const sn_real *raw, const sn_real *ref, const sn_bar *bar, sn_bar *out) {
  if ((raw[0] > 0) != (raw[1] > 0)) return;
  for (int i = 0; i < SN_NREF; ++i)
    if (raw[i] == ref[i]) out[i] += bar[i];
}

// Where the bars of a kind of source go; a field may be NULL.
typedef struct SourceBar {
  const sn_real *solref, *solimp;  // as they stand in the model
  sn_bar *solref_bar, *solimp_bar;
} SourceBar;

SN_LOCAL SourceBar source_bar(const SnModel *m, const SnModelBar *b, int type) {
  switch (type) {
    case SN_CNSTR_EQUALITY:
      return (SourceBar){m->eq_solref, m->eq_solimp, b->eq_solref, b->eq_solimp};
    case SN_CNSTR_FRICTION_DOF:
      return (SourceBar){m->dof_solref, m->dof_solimp, b->dof_solref, b->dof_solimp};
    case SN_CNSTR_FRICTION_TENDON:
      return (SourceBar){m->tendon_solref_fri, m->tendon_solimp_fri, b->tendon_solref_fri, b->tendon_solimp_fri};
    case SN_CNSTR_LIMIT_JOINT:
      return (SourceBar){m->jnt_solref, m->jnt_solimp, b->jnt_solref, b->jnt_solimp};
    default:
      return (SourceBar){m->tendon_solref_lim, m->tendon_solimp_lim, b->tendon_solref_lim, b->tendon_solimp_lim};
  }
}

SN_LOCAL void add_bar(sn_bar *to, int i, sn_bar x) {
  if (to) to[i] += x;
}

// What A of row k of a source is made of: bar is that of log A.
SN_LOCAL void source_weight_model_vjp(const SnModel *m, SnModelBar *b, int type, int id, int k, sn_bar bar) {
  bar = bar / source_weight(m, type, id, k);
  if (type == SN_CNSTR_FRICTION_DOF) {
    add_bar(b->dof_invweight0, id, bar);
  } else if (type == SN_CNSTR_LIMIT_JOINT) {
    add_bar(b->dof_invweight0, m->jnt_dofadr[id], bar);
  } else if (type != SN_CNSTR_EQUALITY) {
    add_bar(b->tendon_invweight0, id, bar);
  } else {
    const int object[2] = {m->eq_obj1id[id], m->eq_obj2id[id]};
    for (int i = 0; i < 2; ++i) {
      if (m->eq_type[id] == SN_EQ_CONNECT || m->eq_type[id] == SN_EQ_WELD) {
        const int body = m->eq_objtype[id] == SN_OBJ_SITE ? m->site_bodyid[object[i]] : object[i];
        add_bar(b->body_invweight0, 2 * body + (k > 2), bar);
      } else if (object[i] >= 0 && m->eq_type[id] == SN_EQ_JOINT) {
        add_bar(b->dof_invweight0, m->jnt_dofadr[object[i]], bar);
      } else if (object[i] >= 0) {
        add_bar(b->tendon_invweight0, object[i], bar);
      }
    }
  }
}

SN_FUNC void sn_source_model_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnBlock block) {
  const int type = w->efc_type[block.row], id = w->efc_id[block.row];
  const bool shared = type == SN_CNSTR_EQUALITY && block.num > 1;
  const RowParams p = source_params(m, w, type, id);
  const SourceBar to = source_bar(m, sn_model_bar(a), type);
  const sn_real norm = sn_sqrt(sn_dot(w->efc_pos + block.row, w->efc_pos + block.row, block.num));
  for (int k = 0; k < block.num; ++k) {
    const int row = block.row + k;
    ImpedanceBar bar = {0};
    row_model_vjp(m, w, a, row, p.solref, p.solimp[1], bar.solref, &bar);
    weight_model_vjp(m, w, row, &p, &bar);
    const sn_real r = (shared ? norm : w->efc_pos[row]) - w->efc_margin[row];
    if (to.solref_bar) solref_model_vjp(to.solref + SN_NREF * id, p.solref, bar.solref, to.solref_bar + SN_NREF * id);
    if (to.solimp_bar)
      solimp_model_vjp(to.solimp + SN_NIMP * id, p.solimp, r, bar.impedance, bar.width, to.solimp_bar + SN_NIMP * id);
    // an exact diagonal depends on the model as J and M do: diagonal.c
    if (!sn_has_exact_diagonal(m)) source_weight_model_vjp(m, sn_model_bar(a), type, id, k, bar.weight);
  }
}

// Coefficients of friction of an elliptic contact, through its R and its cone.
SN_LOCAL void cone_model_vjp(const SnWorld *w, const SnAdjoint *a, const SnContact *con, sn_bar *friction) {
  const int row = con->efc_address, state = w->efc_state[row];
  const sn_real *x = w->efc_jar + row, *f = w->efc_force + row, *mu = con->friction;
  const sn_bar *l = a->row_lambda + row;
  if (state == SN_CSTATE_QUADRATIC) {
    for (int j = 2; j < con->dim; ++j) {
      friction[j - 1] += 2 * l[j] * f[j] / mu[j - 1];
      friction[0] -= 2 * l[j] * f[j] / mu[0];
    }
  }
  if (state != SN_CSTATE_CONE) return;
  sn_real T = 0;
  for (int j = 1; j < con->dim; ++j) T += mu[j - 1] * mu[j - 1] * x[j] * x[j];
  T = sn_sqrt(T);
  sn_bar along = l[0];  // bar of f_0, those of the others added
  for (int j = 1; j < con->dim; ++j) along += l[j] * f[j] / f[0];
  friction[0] -= along * f[0] * 2 * con->mu * con->mu / ((1 + con->mu * con->mu) * mu[0]);
  const sn_real D = w->efc_D[row] / (1 + con->mu * con->mu);
  sn_bar slide = {0};  // bar of log T through the others
  for (int j = 1; j < con->dim; ++j) slide -= l[j] * f[j];
  for (int j = 1; j < con->dim; ++j) {
    const sn_real share = mu[j - 1] * x[j] * x[j];  // T dT
    friction[j - 1] += 2 * l[j] * f[j] / mu[j - 1] + (slide / T + along * D) * share / T;
  }
}

// Coefficients of friction of a pyramid, through its edges' directions and its R.
SN_LOCAL void pyramid_model_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a, const SnContact *con,
                                const sn_bar *velocity, sn_bar *friction) {
  const int num = 2 * (con->dim - 1);
  const sn_real mu = con->friction[0];
  const sn_real slope = 2 / mu + (sn_has_exact_diagonal(m) ? 0 : 2 * mu / (1 + mu * mu));  // of log R
  for (int r = 0; r < num; ++r) {
    const int row = con->efc_address + r;
    const sn_real sign = r % 2 ? -1 : 1;
    for (int z = 0; z < 3; ++z) friction[r / 2] += sign * a->row_z[3 * row + z] * velocity[6 * z + r / 2 + 1];
    if (!sn_is_bounded(w, row)) friction[0] -= sn_scaled_force(w, a, row) * slope;
  }
}

SN_FUNC void sn_contact_model_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_bar *velocity) {
  const SnContact *con = w->contact + i;
  const int first = con->efc_address, type = w->efc_type[first], dim = con->dim;
  const int num = type == SN_CNSTR_CONTACT_PYRAMIDAL && dim > 1 ? 2 * (dim - 1) : dim;
  const RowParams p = admit_params(m, w, con->solref, con->solreffriction, con->solimp);
  const bool own = p.solreffriction[0] != 0 || p.solreffriction[1] != 0;
  ImpedanceBar bar = {0};
  for (int k = 0; k < num; ++k) {
    const bool friction = type == SN_CNSTR_CONTACT_ELLIPTIC && k > 0 && own;
    row_model_vjp(m, w, a, first + k, friction ? p.solreffriction : p.solref, p.solimp[1],
                  friction ? bar.solreffriction : bar.solref, &bar);
  }
  weight_model_vjp(m, w, first, &p, &bar);
  const bool weighed = sn_model_bar(a)->body_invweight0 && !sn_has_exact_diagonal(m);
  for (int side = 0; side < 2 && weighed; ++side) {
    const int b1 = m->geom_bodyid[con->geom[0]], b2 = m->geom_bodyid[con->geom[1]];
    const sn_real tran = m->body_invweight0[2 * b1] + m->body_invweight0[2 * b2];
    sn_model_bar(a)->body_invweight0[2 * (side == 0 ? b1 : b2)] += bar.weight / tran;
  }
  if (!sn_model_bar(a)->pair_conparam || con->pair >= m->ncpair) return;
  sn_bar *out = sn_model_bar(a)->pair_conparam + SN_NCONPARAM * con->pair;
  out[0] -= a->con_dist_bar[i];
  if (con->cfd == SN_CONTACT_FAR) bar.impedance = sn_bar_of(0);  // its impedance is not the model's
  if (!sn_has_sigmoid(m)) {                                      // nor is its spring
    solref_model_vjp(con->solref, p.solref, bar.solref, out + 6);
    solref_model_vjp(con->solreffriction, p.solreffriction, bar.solreffriction, out + 8);
    solimp_model_vjp(con->solimp, p.solimp, con->dist - con->includemargin, bar.impedance, bar.width, out + 10);
  }
  for (int k = 0; con->adhesion != 0 && k < num; ++k)
    out[15] += a->row_c[first + k] * (w->efc_R[first + k] * sn_row_adhesion(w, first + k) / con->adhesion);
  if (con->adhesion != 0 && sn_is_passive(m)) out[15] -= velocity[6 * SN_LAMBDA];
  if (type == SN_CNSTR_CONTACT_ELLIPTIC) cone_model_vjp(w, a, con, out + 1);
  if (sn_has_sigmoid(m)) sn_sigmoid_model_vjp(m, w, a, i, out + 1);
  if (type == SN_CNSTR_CONTACT_PYRAMIDAL) pyramid_model_vjp(m, w, a, con, velocity, out + 1);
}
#endif
